"""Periodic-hill data, case α = 0.8, Re_H = 5600: where it is, whether it is the right one, what it holds.

The regression data, the base flow and the published closures are part of this package (``data_files``, from DSRRANS,
MIT; see the NOTICE beside them). The DNS carries no licence, so its fields are not: ``sobolev turbulence prepare``
makes them from the public repositories (:data:`SOURCES`), and the environment variable ``SOBOLEV_DATA`` names the
folder that holds them, under ``turbulence/``. :data:`DNS_MEASURES` quotes what is measured on them.

Notation
--------
Arrays over the structured mesh have index ``[j, i]``: ``j`` counts cells from the lower wall, ``i`` downstream from the
crest. Regression samples are in the cell order of the OpenFOAM case; ``structured_cell[j, i]`` is the sample of a cell.
SI units, H = 1 m.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import cast

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.tensors import TensorTerm

IntArray = npt.NDArray[np.int32]

#: Kinematic viscosity of the case, m²/s.
VISCOSITY = 5e-6
#: Mean velocity that the forcing holds at the crest column, m/s (Re_H = 0.028 · 1 / 5e-6 = 5600).
CREST_VELOCITY = 0.028

#: The public repositories, with the commit the checksums belong to.
SOURCES = MappingProxyType(
    {
        "https://github.com/thw1021/DSRRANS": "commit 2667778, MIT: mesh, k–ε fields, targets, closures",
        "https://github.com/xiaoh/para-database-for-PIML": "commit c01a100, to be cited (Xiao et al. 2020): DNS",
    }
)

#: Files of the package.
_REGRESSION, _BASE_FLOW = "regression_case_0p8.npz", "base_flow_case_0p8.npz"
#: Files under ``SOBOLEV_DATA``: base flow and DNS on the same mesh, DNS on its own, k–ω SST.
_BOTH, _DNS, _SST = "aposteriori_case_0p8.npz", "dns_xiao_case_0p8.npz", "rans_sst_reference.npz"
#: sha256 of every file that is read from a folder.
CHECKSUMS: Mapping[str, str] = MappingProxyType(
    {
        _BOTH: "dc8c8c7bf5860a79dd4b4e8c3c2a73c80dccdd696dd4bea56f9e740755b8d972",
        _DNS: "a6e357058a4858d03ad8a93abebfb736e1120cc8532da65030b2fa79ee9f5b36",
        _SST: "3dceb5115d7adc92dd284a356e3f49913b5b3640882075a0e95bf54250efb609",
        _REGRESSION: "171373bee9111f79f8742aa5e1de638b6c2a30b33a2df8539be79a77ff35a6ae",
    }
)


#: Measured on the DNS of Xiao et al. (2020), on its own mesh: reattachment x/H (first cell, interpolated) and the
#: largest reversed velocity, m/s.
DNS_MEASURES: Mapping[str, float] = MappingProxyType(
    {"reattachment": 5.278, "reattachment_interpolated": 5.213, "max_reversed": 7.394e-3}
)


@dataclass(frozen=True, slots=True)
class FlowConditions:
    """What drives a flow; by default the flow over the hills."""

    viscosity: float = VISCOSITY  # kinematic viscosity, m²/s
    mean_velocity: float = CREST_VELOCITY  # velocity that the forcing holds, m/s
    #: {"crest", "volume"}: where it is held and the force acts: in the first column, as in the OpenFOAM case, or
    #: everywhere.
    forced_zone: str = "crest"

    def __post_init__(self) -> None:
        if self.viscosity <= 0:
            raise ParameterError(f"'viscosity' must be positive. Got {self.viscosity}.")
        if self.forced_zone not in ("crest", "volume"):
            raise ParameterError(f"'forced_zone' must be 'crest' or 'volume'. Got {self.forced_zone!r}.")


HILL_FLOW = FlowConditions()


@dataclass(frozen=True, slots=True)
class RegressionData:
    """Samples of the stress correction and what it may depend on."""

    invariants: FloatArray  # shape (n_samples, 2): tr S² and tr R²
    tensors: FloatArray  # shape (n_samples, 3, 3, 3): the bases T1, T2, T3
    target: FloatArray  # shape (n_samples, 3, 3): b⊥, the stress correction
    structured_cell: IntArray  # shape (n_rows, n_columns): sample number of each mesh cell

    @property
    def inputs(self) -> FloatArray:
        """Squashed invariants x = tanh(I/2), shape (n_samples, 2)."""
        return squashed(self.invariants)


@dataclass(frozen=True, slots=True)
class BaseFlow:
    """A mesh and the converged fields of a base model on it, index ``[j, i]``."""

    nodes: FloatArray
    U: FloatArray
    k: FloatArray
    epsilon: FloatArray
    nut: FloatArray
    p: FloatArray


@dataclass(frozen=True, slots=True)
class MeshVelocity:
    """A mean velocity on a structured mesh: nodes (J+1, I+1, 2) and cell values (J, I, 2)."""

    nodes: FloatArray
    U: FloatArray

    @property
    def centres(self) -> FloatArray:
        """Mean of the four corners of each cell, shape (J, I, 2)."""
        n = self.nodes
        return 0.25 * (n[:-1, :-1] + n[1:, :-1] + n[:-1, 1:] + n[1:, 1:])


def squashed(invariants: FloatArray) -> FloatArray:
    """The paper's inputs, x = tanh(I/2) (Appendix D.5.1)."""
    return np.tanh(0.5 * invariants)


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder with the files that are not part of the package.

    ``folder``: the folder itself; without it, ``$SOBOLEV_DATA/turbulence``.
    """
    if folder is not None:
        found = Path(folder)
    elif root := os.environ.get("SOBOLEV_DATA"):
        found = Path(root) / "turbulence"
    else:
        raise DataError(
            "The DNS fields are not part of the package, and SOBOLEV_DATA is not set. Set it to the folder that holds "
            f"'turbulence/' (made from {' and '.join(SOURCES)} with: sobolev turbulence prepare)."
        )
    if not found.is_dir():
        raise DataError(f"'{found}' is not a folder. Set SOBOLEV_DATA to the folder that holds 'turbulence/'.")
    return found


def has(name: str, folder: str | Path | None = None) -> bool:
    """Whether a file that is not part of the package is available; its contents are checked when it is read."""
    try:
        return (data_folder(folder) / name).is_file()
    except DataError:
        return False


def has_dns() -> bool:
    """Whether the DNS fields are available."""
    return has(_BOTH) and has(_DNS)


def read_checked(name: str, folder: str | Path | None = None) -> bytes:
    """The bytes of one file, after its sha256 was compared with :data:`CHECKSUMS` or the folder's ``prepared.json``."""
    path = data_folder(folder) / name
    if not path.is_file():
        raise DataError(f"'{path}' is missing. Make it with: sobolev turbulence prepare")
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    prepared = path.parent / "prepared.json"
    own = json.loads(prepared.read_text()).get(name) if prepared.is_file() else None
    if digest not in (CHECKSUMS[name], own):
        raise DataError(f"'{path}' has sha256 {digest}, not {own or CHECKSUMS[name]}. Fetch or prepare the file again.")
    return content


def _shipped(name: str) -> bytes:
    """The bytes of a file that is part of the package."""
    return resources.files("sobolev_novelty.lab.turbulence.selecting").joinpath("data_files", name).read_bytes()


@lru_cache(maxsize=8)
def _arrays(name: str, folder: Path | None) -> Mapping[str, npt.NDArray[np.generic]]:
    content = _shipped(name) if folder is None else read_checked(name, folder)
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    for array in arrays.values():
        array.flags.writeable = False
    return MappingProxyType(arrays)


def _read(name: str, folder: Path | None, *keys: str) -> list[FloatArray]:
    arrays = _arrays(name, folder)
    return [cast(FloatArray, arrays[key]) for key in keys]


def load_regression(folder: str | Path | None = None) -> RegressionData:
    """The 9,600 samples of the closure regression: those of the package, or those prepared in a folder."""
    keys = ("invariants", "tensors", "target", "structured_cell")
    invariants, tensors, target, cells = _read(_REGRESSION, None if folder is None else Path(folder), *keys)
    return RegressionData(invariants, tensors, target, cells.astype(np.int32))


def load_base_flow(folder: str | Path | None = None) -> BaseFlow:
    """The converged k–ε flow on the 120 × 80 mesh: that of the package, or the one prepared in a folder."""
    keys = ("nodes", "U", "k", "epsilon", "nut", "p")
    return BaseFlow(*(_read(_BASE_FLOW, None, *keys) if folder is None else _read(_BOTH, Path(folder), *keys)))


def load_dns(folder: str | Path | None = None, *, mesh: str = "rans") -> MeshVelocity:
    """DNS mean velocity, on the mesh of the RANS case or on the one it was published on (``mesh="xiao"``)."""
    if mesh == "rans":
        return MeshVelocity(*_read(_BOTH, data_folder(folder), "nodes", "dns_U"))
    if mesh == "xiao":
        return MeshVelocity(*_read(_DNS, data_folder(folder), "nodes", "U"))
    raise DataError(f"'mesh' must be 'rans' or 'xiao'. Got {mesh!r}.")


def load_sst(folder: str | Path | None = None, *, mesh: str = "xiao") -> MeshVelocity:
    """A stored k–ω SST velocity (OpenFOAM v1912), on either mesh."""
    if mesh not in ("rans", "xiao"):
        raise DataError(f"'mesh' must be 'rans' or 'xiao'. Got {mesh!r}.")
    (U,) = _read(_SST, data_folder(folder), f"U_{mesh}_mesh")
    return MeshVelocity(load_dns(folder, mesh=mesh).nodes, U)


def load_published(name: str = "dsrrans_model1") -> Closure:
    """One of the two closures published with DSRRANS."""
    content = json.loads(_shipped("closures_published.json"))
    known = [key for key in content if key.startswith("dsrrans")]
    if name not in known:
        raise DataError(f"'name' must be one of {', '.join(known)}. Got {name!r}.")
    rows = content[name]
    return Closure(tuple(TensorTerm(r[0], r[1], r[2]) for r in rows), tuple(float(r[3]) for r in rows), name)
