"""Which kernel is in use, and why."""

from __future__ import annotations

import functools
import importlib
import os
from dataclasses import dataclass
from types import ModuleType

from sobolev_novelty.errors import ParameterError

_LEVELS = {"baseline": 0, "avx2": 1, "avx512": 2}
_VECTOR_MATHS = {0: "none", 1: "libmvec (sin, cos, exp, log, pow)", 2: "libmvec"}


@dataclass(frozen=True, slots=True)
class Backend:
    """The kernel in use."""

    name: str  # ``"native"`` (the compiled kernel) or ``"numpy"``
    reason: str  # why, as a sentence
    is_compiled: bool
    instruction_set: str = ""  # ``"avx512"``, ``"avx2"`` or ``"baseline"`` for the compiled kernel, else ``""``
    #: The library behind sin, exp, … over whole vectors; ``"none"`` where they are called one by one.
    vector_maths: str = "none"


@functools.cache
def native() -> ModuleType | None:
    """The compiled module, or None where it is not used."""
    if os.environ.get("SOBOLEV_KERNEL", "").lower() == "numpy":
        return None
    return _import_native()[0]


@functools.cache
def level() -> int:
    """Instruction set asked for by ``SOBOLEV_SIMD`` (baseline, avx2 or avx512); -1, the best there is, without it."""
    wanted = os.environ.get("SOBOLEV_SIMD", "").lower()
    if wanted and wanted not in _LEVELS:
        raise ParameterError(f"'SOBOLEV_SIMD' must be one of {', '.join(_LEVELS)}. Got '{wanted}'.")
    return _LEVELS.get(wanted, -1)


def backend() -> Backend:
    """Which kernel is in use, and why.

    The environment is read once: ``SOBOLEV_KERNEL=numpy`` forces NumPy, ``SOBOLEV_SIMD=avx2`` a lesser instruction set.

    >>> backend().name in ("native", "numpy")
    True
    """
    module = native()
    if module is None:
        if os.environ.get("SOBOLEV_KERNEL", "").lower() == "numpy":
            return Backend("numpy", "SOBOLEV_KERNEL=numpy is set.", is_compiled=False)
        return Backend("numpy", f"The compiled kernel is missing: {_import_native()[1]}.", is_compiled=False)
    name, libmvec = module.instruction_set(level())
    return Backend(
        "native",
        "The compiled kernel was built, and this is the best instruction set it has for this processor."
        if level() < 0
        else "The compiled kernel was built; SOBOLEV_SIMD chose the instruction set.",
        is_compiled=True,
        instruction_set=name,
        vector_maths=_VECTOR_MATHS[libmvec],
    )


@functools.cache
def _import_native() -> tuple[ModuleType | None, str]:
    try:
        return importlib.import_module("sobolev_novelty.kernels._native"), ""
    except ImportError as error:
        return None, str(error)
