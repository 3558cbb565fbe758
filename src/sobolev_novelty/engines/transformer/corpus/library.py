"""The compiled corpus unit, through ctypes."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.errors import KernelError

HERE = Path(__file__).resolve().parent
LIBRARY = "_corpus.so"
#: The limits of native/corpus.h.
MAX_DIM, N_POINTS, MAX_NODES, MAX_TERMS = 10, 200, 80, 64
#: kg, m, s, A, K.
N_UNITS = 5
#: Where formulas are sampled, in the order of native/corpus.h.
INPUT_KINDS = ("whitened", "moved", "shared_box", "boxes", "log_boxes", "curves", "one_to_five")
LAWS = ("lean", "e2esr", "physics", "file")
ARMS = ("random", "filtered", "matched")
#: What becomes of a candidate, in the order in which it is asked.
VERDICTS = (
    "accepted", "too_long", "not_finite", "flat", "too_many_terms", "like_terms", "no_terms", "held_out",
    "too_few_rows", "low_novelty", "thinned",
)  # fmt: skip


class NativeSettings(ctypes.Structure):
    """``Settings`` of native/corpus.h, field by field."""

    _fields_ = (
        ("seed", ctypes.c_uint64),
        *((name, ctypes.c_int32) for name in ("law", "arm", "judge_kind", "max_dim")),
        *((name, ctypes.c_int32) for name in ("max_nodes", "max_float_tokens", "min_points", "tries", "is_free")),
        *((name, ctypes.c_double) for name in ("full_share", "max_target", "max_angle", "tau")),
        ("dim_weights", ctypes.c_double * MAX_DIM),
        ("input_weights", ctypes.c_double * len(INPUT_KINDS)),
        ("held_out", ctypes.c_void_p),
        ("n_held_out", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("keep", "file_tokens", "file_constants", "file_starts", "file_dims")),
        ("n_file", ctypes.c_int64),
    )


@cache
def native() -> ctypes.CDLL:
    """The library that SOBOLEV_CORPUS names, or the one that was installed or built beside this file."""
    path = os.environ.get("SOBOLEV_CORPUS")
    if path is None:
        # It is no Python module, but has a module's name, so that editable installs find it too.
        spec = importlib.util.find_spec("sobolev_novelty.engines.transformer.corpus._corpus")
        path = None if spec is None else spec.origin
    if path is None or not Path(path).is_file():
        raise KernelError(
            "The corpus unit is not compiled. Run: python -m sobolev_novelty.engines.transformer.corpus.build"
        )
    library = ctypes.CDLL(path)
    library.sobolev_corpus_skeleton.restype = ctypes.c_uint64
    sizes = np.zeros(6, dtype=np.int32)
    library.sobolev_corpus_sizes(pointer(sizes))
    expected = [ctypes.sizeof(NativeSettings), MAX_DIM, N_POINTS, MAX_NODES, MAX_TERMS, len(VERDICTS)]
    if sizes.tolist() != expected:
        raise KernelError(
            f"{path} is of another version. Run: python -m sobolev_novelty.engines.transformer.corpus.build"
        )
    return library


def pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    """Where a contiguous array begins."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)
