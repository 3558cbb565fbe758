"""OpenFOAM cases written from our arrays, and their fields read back. Cells are numbered ``j * n_columns + i``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.output import write_whole
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import HILL_FLOW, FlowConditions
from sobolev_novelty.lab.turbulence.solving.mesh import build_mesh

_DIMENSIONS = {
    "U": "[0 1 -1 0 0 0 0]",
    "p": "[0 2 -2 0 0 0 0]",
    "k": "[0 2 -2 0 0 0 0]",
    "epsilon": "[0 2 -3 0 0 0 0]",
    "omega": "[0 0 -1 0 0 0 0]",
    "nut": "[0 2 -1 0 0 0 0]",
}
_NUT_WALL = "type nutLowReWallFunction; Cmu 0.09; kappa 0.41; E 9.8; value uniform 0;"
#: Wall conditions of the DSRRANS case for k–ε; low-Reynolds ones for k–ω SST.
_WALLS: Mapping[str, Mapping[str, str]] = {
    "kEpsilon": {
        "U": "type fixedValue; value uniform (0 0 0);",
        "p": "type zeroGradient;",
        "k": "type kLowReWallFunction; Ceps2 1.9; Ck -0.416; Bk 8.366; C 11; value uniform 6e-08;",
        "epsilon": "type epsilonWallFunction; lowReCorrection true; blending stepwise; n 2; value uniform 1.5e-12;",
        "nut": _NUT_WALL,
    },
    "kOmegaSST": {
        "U": "type fixedValue; value uniform (0 0 0);",
        "p": "type zeroGradient;",
        "k": "type fixedValue; value uniform 1e-15;",
        "omega": "type omegaWallFunction; blended true; value uniform 0.01;",
        "nut": _NUT_WALL,
    },
}
_START: Mapping[str, Mapping[str, float]] = {
    "kEpsilon": {"p": 0.0, "k": 6e-8, "epsilon": 1.5e-12, "nut": 0.0},
    "kOmegaSST": {"p": 0.0, "k": 1e-5, "omega": 0.01, "nut": 0.0},
}


@dataclass(frozen=True, slots=True)
class FoamCase:
    """What a case folder is written from."""

    nodes: FloatArray  # shape (rows + 1, columns + 1, 2)
    model: str  # {"kEpsilon", "kOmegaSST", "sobolevClosure"}
    conditions: FlowConditions = HILL_FLOW
    #: mapping of field names to arrays of shape (rows, columns[, 2]): fields not named start uniform.
    start: Mapping[str, FloatArray] | None = None
    closure: Closure | None = None  # needed by ``sobolevClosure``
    alpha: float = 1.0
    n_iterations: int = 5000
    tolerance: float = 1e-7  # initial residual of all equations at which a run ends
    library: str = ""  # path of the closure library, for ``sobolevClosure``


def _header(kind: str, name: str) -> str:
    return f"FoamFile\n{{\n    version 2.0;\n    format ascii;\n    class {kind};\n    object {name};\n}}\n"


def _block(rows: Iterable[str], n: int) -> str:
    return f"{n}\n(\n" + "\n".join(rows) + "\n)"


def write_case(folder: Path, case: FoamCase) -> None:
    """Write mesh, start fields and dictionaries of a case."""
    for name in ("0", "constant/polyMesh", "system"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _write_mesh(folder / "constant" / "polyMesh", case.nodes)
    _write_fields(folder / "0", case)
    _write_dictionaries(folder, case)


def _write_mesh(folder: Path, nodes: FloatArray) -> None:
    rows, columns = nodes.shape[0] - 1, nodes.shape[1] - 1
    flat = nodes.reshape(-1, 2)
    depth = 0.1
    points = np.concatenate([np.column_stack([flat, np.full(len(flat), z)]) for z in (0.0, depth)])
    node = np.arange(len(flat)).reshape(rows + 1, columns + 1)
    back = len(flat)
    cell = np.arange(rows * columns).reshape(rows, columns)

    def quad(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Face over the edge a → b whose normal lies right of the edge."""
        return np.stack([a, b, b + back, a + back], axis=-1).reshape(-1, 4)

    across = quad(node[:-1], node[1:]).reshape(rows, columns + 1, 4)  # normal downstream
    along = quad(node[:, 1:], node[:, :-1]).reshape(rows + 1, columns, 4)  # normal up
    # Inner faces in the order of their owner, then their neighbour: downstream first, then up.
    inner_faces = np.concatenate([across[:, 1:-1].reshape(-1, 4), along[1:-1].reshape(-1, 4)])
    owner = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    neighbour = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    order = np.lexsort((neighbour, owner))
    low = np.stack([node[:-1, :-1], node[:-1, 1:], node[1:, 1:], node[1:, :-1]], axis=-1).reshape(-1, 4)
    patches = [
        ("inlet", across[:, 0, ::-1], cell[:, 0], "type cyclic; neighbourPatch outlet;"),
        ("outlet", across[:, -1], cell[:, -1], "type cyclic; neighbourPatch inlet;"),
        ("topWall", along[-1], cell[-1], "type wall;"),
        ("bottomWall", along[0, :, ::-1], cell[0], "type wall;"),
        ("sides", np.concatenate([low[:, ::-1], low + back]), np.tile(cell.ravel(), 2), "type empty;"),
    ]
    faces = np.concatenate([inner_faces[order], *(np.asarray(patch[1]).reshape(-1, 4) for patch in patches)])
    owners = np.concatenate([owner[order], *(np.asarray(patch[2]).ravel() for patch in patches)])
    note = f'note "nPoints:{len(points)} nCells:{cell.size} nFaces:{len(faces)} nInternalFaces:{len(order)}";'
    label_header = _header("labelList", "owner").replace("object", f"{note}\n    object")
    _write(
        folder / "points",
        _header("vectorField", "points"),
        (f"({x!r} {y!r} {z!r})" for x, y, z in points.tolist()),
        len(points),
    )
    _write(folder / "faces", _header("faceList", "faces"), (f"4({a} {b} {c} {d})" for a, b, c, d in faces), len(faces))
    _write(folder / "owner", label_header, map(str, owners), len(owners))
    _write(folder / "neighbour", label_header.replace("owner", "neighbour"), map(str, neighbour[order]), len(order))
    entries, first = [], len(order)
    for name, patch_faces, _, kind in patches:
        count = np.asarray(patch_faces).size // 4
        entries.append(f"{name} {{ {kind} nFaces {count}; startFace {first}; }}")
        first += count
    _write(folder / "boundary", _header("polyBoundaryMesh", "boundary"), entries, len(entries))
    zone = _block(map(str, cell[:, 0]), rows)
    entry = f"crest {{ type cellZone; cellLabels List<label> {zone}; }}"
    _write(folder / "cellZones", _header("regIOobject", "cellZones"), [entry], 1)


def _write(path: Path, header: str, rows: Iterable[str], n: int) -> None:
    write_whole(path, header + _block(rows, n) + "\n")


def _write_fields(folder: Path, case: FoamCase) -> None:
    base = "kEpsilon" if case.model == "sobolevClosure" else case.model
    if base not in _WALLS:
        raise DataError(f"'model' must be one of {', '.join([*_WALLS, 'sobolevClosure'])}. Got {case.model!r}.")
    start = dict(case.start or {})
    for name, wall in _WALLS[base].items():
        if name in start:
            values = np.asarray(start[name], dtype=float)
            if name == "U":
                rows = [f"({u!r} {v!r} 0)" for u, v in values.reshape(-1, 2).tolist()]
                inner = "nonuniform List<vector> " + _block(rows, len(rows))
            else:
                rows = [repr(value) for value in values.ravel().tolist()]
                inner = "nonuniform List<scalar> " + _block(rows, len(rows))
        else:
            inner = f"uniform ({case.conditions.mean_velocity} 0 0)" if name == "U" else f"uniform {_START[base][name]}"
        kind = "volVectorField" if name == "U" else "volScalarField"
        sides = "inlet { type cyclic; } outlet { type cyclic; } sides { type empty; }"
        walls = f"topWall {{ {wall} }} bottomWall {{ {wall} }}"
        text = f"dimensions {_DIMENSIONS[name]};\ninternalField {inner};\nboundaryField {{ {sides} {walls} }}\n"
        write_whole(folder / name, _header(kind, name) + text)


_SCHEMES = """
ddtSchemes { default steadyState; }
gradSchemes { default Gauss linear; }
divSchemes
{
    default none;
    div(phi,U) Gauss linearUpwind grad(U);
    div(phi,k) Gauss upwind;
    div(phi,epsilon) Gauss upwind;
    div(phi,omega) Gauss upwind;
    div(closureStress) Gauss linear;
    div((nuEff*dev2(T(grad(U))))) Gauss linear;
}
laplacianSchemes { default Gauss linear corrected; }
interpolationSchemes { default linear; }
snGradSchemes { default corrected; }
wallDist { method meshWave; correctWalls true; }
"""

_SOLUTION = """
solvers
{{
    p {{ solver GAMG; smoother DICGaussSeidel; tolerance 1e-10; relTol 0.05; }}
    "(U|k|epsilon|omega)" {{ solver PBiCGStab; preconditioner DILU; tolerance 1e-10; relTol 0; }}
}}
SIMPLE
{{
    nNonOrthogonalCorrectors 1; pRefCell 0; pRefValue 0; consistent yes;
    residualControl {{ "(U|p|k|epsilon|omega)" {tolerance!r}; }}
}}
relaxationFactors {{ equations {{ U 0.7; p 0.3; "(k|epsilon|omega)" 0.7; }} }}
"""


def _write_dictionaries(folder: Path, case: FoamCase) -> None:
    library = f'libs ("{case.library}");\n' if case.library else ""
    control = (
        f"application simpleFoam;\nstartFrom startTime;\nstartTime 0;\nstopAt endTime;\nendTime {case.n_iterations};\n"
        f"deltaT 1;\nwriteControl timeStep;\nwriteInterval {case.n_iterations};\nwriteFormat ascii;\n"
        f"writePrecision 10;\ntimeFormat general;\ntimePrecision 8;\nrunTimeModifiable false;\n{library}"
    )
    zone, velocity = case.conditions.forced_zone, case.conditions.mean_velocity
    selection = "selectionMode cellZone; cellZone crest;" if zone == "crest" else "selectionMode all;"
    force = f"momentumSource {{ type meanVelocityForce; {selection} fields (U); Ubar ({float(velocity)!r} 0 0); }}\n"
    model = f"simulationType RAS;\nRAS\n{{\nRASModel {case.model};\nturbulence on;\nprintCoeffs off;\n"
    if case.model == "sobolevClosure":
        if case.closure is None:
            raise DataError("The model 'sobolevClosure' needs a 'closure'. Got None.")
        model += f"sobolevClosureCoeffs\n{{\nalpha1 {float(case.alpha)!r};\n{case.closure.to_foam()}}}\n"
    texts = {
        "system/controlDict": control,
        "system/fvSchemes": _SCHEMES,
        "system/fvSolution": _SOLUTION.format(tolerance=float(case.tolerance)),
        "system/fvOptions": force,
        "constant/transportProperties": f"transportModel Newtonian;\nnu {float(case.conditions.viscosity)!r};\n",
        "constant/turbulenceProperties": model + "}\n",
    }
    for name, text in texts.items():
        write_whole(folder / name, _header("dictionary", name.split("/")[1]) + text)


def read_values(path: Path) -> FloatArray:
    """Numbers of an ASCII field file, shape (n_cells, n_components); one row where the field is uniform."""
    if not path.is_file():
        raise DataError(f"'{path}' is missing: the case is incomplete.")
    text = path.read_text()
    match = re.search(r"internalField\s+nonuniform\s+List<\w+>\s+(\d+)\s*\(", text)
    if match is None:
        uniform = re.search(r"internalField\s+uniform\s+([^;]+);", text)
        if uniform is None:
            raise DataError(f"'{path}' has no internalField. Is it an ASCII field of OpenFOAM?")
        return np.array([uniform.group(1).strip("() ").split()], dtype=float)
    body = text[match.end() : text.index("boundaryField", match.end())]
    numbers = np.array(body.replace("(", " ").replace(")", " ").replace(";", " ").split(), dtype=float)
    return numbers.reshape(int(match.group(1)), -1)


def read_field(path: Path, shape: tuple[int, int]) -> FloatArray:
    """Cell values of a field file, shape (rows, columns) or (rows, columns, 2) for vectors."""
    values, n_cells = read_values(path), shape[0] * shape[1]
    if len(values) == 1:
        values = np.tile(values, (n_cells, 1))
    if len(values) != n_cells:
        raise DataError(f"'{path}' holds {len(values)} cells, the mesh {n_cells}. Use the mesh it was made on.")
    return values[:, 0].reshape(shape) if values.shape[1] == 1 else values[:, :2].reshape(*shape, 2)


def check_nodes(nodes: FloatArray) -> tuple[int, int]:
    """Rows and columns of a mesh that can be written."""
    return build_mesh(nodes).shape
