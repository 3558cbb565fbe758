"""OpenFOAM where it is installed: base models, and closures through a library that reads its terms from the case.

Debian's package (``apt-get install openfoam``) has the solver but no headers; the library is compiled once against the
headers of the Debian *source* package, for which ``SOBOLEV_FOAM_SOURCE`` names the unpacked folder. The built library
is kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from sobolev_novelty.core.output import write_whole
from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.errors import DataError, SobolevError
from sobolev_novelty.lab.evidence.scratch import folder_prefix, remove_abandoned_folders
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import HILL_FLOW, BaseFlow, FlowConditions
from sobolev_novelty.lab.turbulence.solving.flow import FlowResult
from sobolev_novelty.lab.turbulence.solving.foam_case import FoamCase, check_nodes, read_field, write_case

SOLVER = "simpleFoam"
#: Of temporary folders.
KIND = "foam"
LIBRARIES = (
    "incompressibleTurbulenceModels",
    "turbulenceModels",
    "incompressibleTransportModels",
    "finiteVolume",
    "meshTools",
    "OpenFOAM",
)
_HEADER_FOLDERS = (
    "OpenFOAM",
    "OSspecific/POSIX",
    "finiteVolume",
    "meshTools",
    "TurbulenceModels/turbulenceModels",
    "TurbulenceModels/incompressible",
)

#: Double precision, 32-bit labels: how Debian builds its libraries.
_COMPILER_OPTIONS = (
    *("-std=c++11", "-m64", "-O2", "-fPIC", "-shared", "-w", "-ftemplate-depth-100"),
    *("-DWM_DP", "-DWM_LABEL_SIZE=32", "-DNoRepository"),
)


class OpenFoamError(SobolevError, RuntimeError):
    """OpenFOAM is missing, cannot be compiled against, or its run failed."""


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment.setdefault("WM_PROJECT_DIR", "/usr/share/openfoam")
    return environment


def _model_source() -> str:
    return (files("sobolev_novelty.lab.turbulence.solving") / "foam" / "sobolevClosure.C").read_text()


def _library_path() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    digest = hashlib.sha256(_model_source().encode()).hexdigest()[:12]
    return root / "sobolev-novelty" / f"libsobolevClosure-{digest}.so"


def build_library(source: str | Path | None = None) -> Path:
    """Compile the closure model once; later calls return the built library.

    ``source``: unpacked OpenFOAM source; ``$SOBOLEV_FOAM_SOURCE`` without it.
    """
    target = _library_path()
    if target.is_file():
        return target
    root = Path(source or os.environ.get("SOBOLEV_FOAM_SOURCE", ""))
    if not (root / "src" / "OpenFOAM").is_dir():
        raise OpenFoamError(
            f"'{root}' has no OpenFOAM source (src/OpenFOAM). Run: apt-get source --download-only openfoam, unpack "
            "the orig archive and set SOBOLEV_FOAM_SOURCE to the folder."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        includes = [f"-I{_linked_headers(root / 'src' / name, Path(scratch))}" for name in _HEADER_FOLDERS]
        model = Path(scratch) / "sobolevClosure.C"
        write_whole(model, _model_source())
        built = Path(scratch) / target.name
        command = [
            "g++",
            *_COMPILER_OPTIONS,
            *includes,
            f"-I{root / 'src' / 'transportModels'}",
            str(model),
            "-o",
            str(built),
            *(f"-l{name}" for name in LIBRARIES),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OpenFoamError(f"g++ could not build the closure library: {done.stderr.strip()[-400:]}")
        shutil.move(built, target)
    return target


def _linked_headers(folder: Path, scratch: Path) -> Path:
    """One folder of links to all headers and template sources below ``folder``, as OpenFOAM's own build makes."""
    links = scratch / folder.relative_to(folder.parents[1] if folder.parents[0].name == "src" else folder.parents[2])
    links.mkdir(parents=True)
    for path in folder.rglob("*.[CH]"):
        link = links / path.name
        if "lnInclude" not in path.parts and not link.exists():
            link.symlink_to(path.resolve())
    return links


class OpenFoamSolver:
    """The same face as :class:`~sobolev_novelty.lab.turbulence.solving.flow.EmbeddedSolver`, computed by OpenFOAM.

    ``base``: mesh and frozen fields.
    ``n_iterations``: at most this many SIMPLE iterations.
    ``tolerance``: initial residual of all equations at which a run counts as converged.
    """

    name = "openfoam"

    def __init__(
        self,
        base: BaseFlow,
        conditions: FlowConditions = HILL_FLOW,
        *,
        n_iterations: int = 4000,
        tolerance: float = 1e-7,
    ) -> None:
        self.base = base
        self.template = FoamCase(
            base.nodes,
            "sobolevClosure",
            conditions,
            {"U": base.U, "p": base.p, "k": base.k, "epsilon": base.epsilon, "nut": base.nut},
            n_iterations=n_iterations,
            tolerance=tolerance,
        )

    def solve(self, closure: Closure | None = None, alpha: float = 1.0, on_progress: OnProgress = silent) -> FlowResult:
        """Mean flow under a frozen closure; without one, under the base model's frozen eddy viscosity."""
        case = replace(
            self.template, closure=closure or Closure((), (), "none"), alpha=alpha, library=str(build_library())
        )
        return run_case(case, on_progress)


def run_case(case: FoamCase, on_progress: OnProgress = silent) -> FlowResult:
    """Write a case, run the solver on it, read velocity and pressure back."""
    if shutil.which(SOLVER) is None:
        raise OpenFoamError("simpleFoam is not on the PATH. Run: apt-get install openfoam; or use the embedded solver.")
    shape = check_nodes(case.nodes)
    remove_abandoned_folders(KIND)
    with tempfile.TemporaryDirectory(prefix=folder_prefix(KIND)) as scratch:
        folder = Path(scratch)
        write_case(folder, case)
        begin = time.perf_counter()
        log = _run_solver(folder, case.n_iterations, on_progress)
        seconds = time.perf_counter() - begin
        U, p = (read_field(_last_time(folder) / name, shape) for name in ("U", "p"))
    converged = re.search(r"SIMPLE solution converged in (\d+) iterations", log)
    residuals = re.findall(r"Solving for (?:Ux|Uy|p), Initial residual = (\S+?),", log)[-4:]
    forces = re.findall(r"pressure gradient = (\S+)", log)
    return FlowResult(
        U=U,
        p=p,
        force=float(forces[-1]) if forces else np.nan,
        residual=max((float(value) for value in residuals), default=np.nan),
        n_steps=int(converged.group(1)) if converged else case.n_iterations,
        seconds=seconds,
        is_converged=converged is not None,
        solver="openfoam",
    )


def _run_solver(folder: Path, n_iterations: int, on_progress: OnProgress) -> str:
    lines: list[str] = []
    iteration = 0
    with subprocess.Popen(
        [SOLVER, "-case", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environment(),
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Time = "):
                iteration = int(float(line.split("=")[1]))
            elif "Solving for Ux" in line:
                residual = float(line.split("Initial residual =")[1].split(",")[0])
                on_progress(Step(iteration, n_iterations, f"residual {residual:.1e}"))
    log = "".join(lines)
    if process.returncode:
        raise OpenFoamError(f"simpleFoam failed with exit status {process.returncode}: {log.strip()[-600:]}")
    return log


def _last_time(folder: Path) -> Path:
    times = [path for path in folder.iterdir() if path.is_dir() and re.fullmatch(r"\d+(\.\d+)?", path.name)]
    last = max(times, key=lambda path: float(path.name))
    if float(last.name) == 0:
        raise DataError(f"'{folder}' has no written time besides 0: the solver stopped before its first output.")
    return last
