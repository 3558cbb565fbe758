"""What ``sobolev doctor`` says: version, kernel, extras, OpenFOAM, where data is looked for."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sobolev_novelty.errors import how_to_install

#: Extra -> the modules it brings.
EXTRAS = {
    "plot": ("matplotlib",),
    "parquet": ("pyarrow",),
    "dask": ("dask", "distributed"),
    "transformer": ("torch",),
    "bench": ("pmlb", "gplearn", "pyoperon", "pysindy", "ffx", "HROCH", "psutil"),
}
#: Folders below $SOBOLEV_DATA that parts of the package read.
_FOLDERS = ("pmlb", "srbench_results", "turbulence")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one installation."""

    version: str
    python: str
    platform: str
    kernel: str
    kernel_words: str
    extras: dict[str, dict[str, str | None]]
    openfoam: str | None
    data_folder: str | None
    data_words: str

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        missing = {extra: how_to_install(extra) for extra, found in self.extras.items() if None in found.values()}
        return asdict(self) | {"install": missing}

    def __str__(self) -> str:
        lines = [
            f"sobolev-novelty  {self.version}",
            f"Python           {self.python} on {self.platform}",
            f"kernel           {self.kernel}: {self.kernel_words}",
        ]
        for extra, found in self.extras.items():
            present = ", ".join(f"{module} {version}" for module, version in found.items() if version is not None)
            absent = ", ".join(module for module, version in found.items() if version is None)
            parts = [f"✓ {present}"] if present else []
            parts += [f"✗ {absent} missing: {how_to_install(extra)}"] if absent else []
            lines.append(f"[{extra}]".ljust(17) + "  ".join(parts))
        lines.append(f"OpenFOAM         {self.openfoam or 'not found; only flow simulations need it'}")
        lines.append(f"data             {self.data_words}")
        return "\n".join(lines)


def diagnose() -> Diagnosis:
    """Look at this installation.

    >>> diagnose().kernel in {"native", "numpy"}
    True
    """
    kernel, words = _kernel()
    folder = os.environ.get("SOBOLEV_DATA")
    return Diagnosis(
        version=package_version(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        kernel=kernel,
        kernel_words=words,
        extras={extra: {module: _module_version(module) for module in modules} for extra, modules in EXTRAS.items()},
        openfoam=_openfoam(),
        data_folder=folder,
        data_words=_data_words(folder),
    )


def package_version() -> str:
    """The installed version; words where the package runs from its source tree."""
    return _version("sobolev-novelty") or "not installed (run from the source tree)"


def _kernel() -> tuple[str, str]:
    from sobolev_novelty import kernels

    used = kernels.backend()
    details = ", ".join(d for d in (getattr(used, "instruction_set", ""), getattr(used, "vector_maths", "")) if d)
    return str(used.name), f"{used.reason}{f' ({details})' if details else ''}"


def _module_version(module: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    return _version(module) or "present"


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _openfoam() -> str | None:
    solver = shutil.which("simpleFoam")
    if solver is not None:
        return solver
    project = os.environ.get("WM_PROJECT_DIR")
    return project if project and Path(project).is_dir() else None


def _data_words(folder: str | None) -> str:
    if folder is None:
        return "SOBOLEV_DATA is not set: benchmark data is downloaded when needed; set it to use a local copy"
    if not Path(folder).is_dir():
        return f"SOBOLEV_DATA names '{folder}', which is not a folder: correct it or unset it"
    found = [name for name in _FOLDERS if (Path(folder) / name).is_dir()]
    return f"SOBOLEV_DATA is '{folder}', with {', '.join(found) if found else 'none of ' + ', '.join(_FOLDERS)}"
