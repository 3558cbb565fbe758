"""The arrays of the turbulence data, made from checkouts of the two public repositories.

Two clones are all that is needed; what the repositories do not hold (the tensor bases, DNS on the RANS mesh) is
computed. Files are compared with checksums before they are read; the sums of what is written are kept in
``prepared.json``.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.output import write_arrays, write_whole
from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.turbulence.solving.flow import flow_tensors
from sobolev_novelty.lab.turbulence.solving.foam_case import read_values
from sobolev_novelty.lab.turbulence.solving.mesh import build_mesh, build_operators

IntArray = npt.NDArray[np.intp]

_FIELDS = "turbulenceCases/testing/case_0p8/0"
_MESH = "turbulenceCases/training/case_0p8/constant/polyMesh"
_DATASET = "turbulenceCases/training/dataset/kEpsilon"
_XIAO = "pehill-5-cases-OpenFOAM/case_0p8"

#: sha256 of source files of DSRRANS, commit 2667778.
SOURCE_CHECKSUMS = {
    f"{_FIELDS}/U": "7a28f6b32e4ffab09d520eadd954e9197a0769738e4327f0286b4005ace197f7",
    f"{_FIELDS}/k": "62e7121481ea60a41a0a8dc07d25a3fff81e061f697098e7d39d8479d200a19b",
    f"{_FIELDS}/epsilon": "1f4d11654c0873551dbd5fb6932b2ed72b19188fffda5221a9d78bafe3efa780",
    f"{_FIELDS}/nut": "da5f292676ed4331ede96018b545449dfefd9cd141745d208d39c54ced6eea91",
    f"{_FIELDS}/p": "6b4c0820236486a226de12e4d4854b3f49ea1df4373e6287bb5edfae8d936649",
    f"{_MESH}/points": "100352b455dc3cd78feda3ce0f2e7f85ce6608d7d55d3e71b8f913e804dcca7f",
    f"{_MESH}/faces": "ae7cc2a564a558352d19497cf4af5e08fbd3001f2d5af15e7cd17aebc79cc7df",
    f"{_MESH}/owner": "77b2129b7d06a7c5d9c818b3b07bbbb8acc310ed46929986f516a4ac485d2792",
    f"{_MESH}/neighbour": "700c320aa7dce8e249657f808911ecac0fffd2a8e3ead0dda02437e3d95a90f1",
    f"{_MESH}/boundary": "58ead8180421a61036046b3c5ebdf17941bd714a1a1b96a87e55054a7fb87343",
}
#: sha256 of the numbers (float64, C order) of the two regression arrays: Lambda[:, :2] and nonLinearRShat.
ARRAY_CHECKSUMS = {
    "invariants": "cd2bbd86754fa92c4ae83a18786c4dfc20f9d41784022746aa57a43c27c1388f",
    "target": "c57c168edea2f44f8c923bd2071863cb61c81ab17f00f34fea07f4d37864c080",
}


def prepare(dsrrans: str | Path, xiao: str | Path, out: str | Path, on_progress: OnProgress = silent) -> list[Path]:
    """Write the array files of case α = 0.8.

    ``dsrrans``, ``xiao``: checkouts of github.com/thw1021/DSRRANS and github.com/xiaoh/para-database-for-PIML.
    ``out``: folder to write to; afterwards ``SOBOLEV_DATA`` is its parent when it is called ``turbulence``.
    """
    first, second, target = Path(dsrrans), Path(xiao), Path(out)
    for name, expected in SOURCE_CHECKSUMS.items():
        digest = hashlib.sha256(_bytes(first / name)).hexdigest()
        if digest != expected:
            raise DataError(f"'{first / name}' has sha256 {digest}, not {expected}. Check out commit 2667778.")
    on_progress(Step(0, 3, "RANS mesh and fields"))
    cells, nodes = structured_mesh(first / _MESH)
    base = {name: read_values(first / _FIELDS / name)[cells] for name in ("U", "k", "epsilon", "nut", "p")}
    on_progress(Step(1, 3, "DNS mesh and fields"))
    dns_cells, dns_nodes = structured_mesh(second / _XIAO / "constant" / "polyMesh")
    dns_U = read_values(second / _XIAO / "0" / "UDNS")[dns_cells][..., :2]
    dns_tau = read_values(second / _XIAO / "0" / "TauDNS")[dns_cells][..., [0, 1, 3, 5]]
    on_progress(Step(2, 3, "tensor bases and interpolation"))
    mesh = build_mesh(nodes)
    state = flow_tensors(
        base["U"][..., :2].reshape(-1, 2), (base["k"] / base["epsilon"]).ravel(), mesh, build_operators(mesh)
    )
    order = np.argsort(cells.ravel())
    on_rans = interpolate(np.concatenate([dns_U, dns_tau], axis=-1), dns_nodes, mesh.centres).reshape(*cells.shape, 6)
    invariants = _checked_array(first / _DATASET / "case_0p8_Lambda.npy", "invariants", columns=2)
    tables: dict[str, dict[str, npt.NDArray[Any]]] = {
        "regression_case_0p8.npz": {
            "invariants": invariants,
            "tensors": state.tensors[order],
            "target": _checked_array(first / _DATASET / "case_0p8_nonLinearRShat.npy", "target"),
            "structured_cell": cells.astype(np.int32),
            "cell_xy": mesh.centres[order],
        },
        "aposteriori_case_0p8.npz": {
            "nodes": nodes,
            "U": base["U"][..., :2],
            **{name: base[name][..., 0] for name in ("k", "epsilon", "nut", "p")},
            "foam_cell": cells,
            "dns_U": on_rans[..., :2],
            "dns_tau": on_rans[..., 2:],
        },
        "dns_xiao_case_0p8.npz": {"nodes": dns_nodes, "U": dns_U, "tau": dns_tau},
    }
    return _write(target, tables)


def _write(target: Path, tables: dict[str, dict[str, npt.NDArray[Any]]]) -> list[Path]:
    target.mkdir(parents=True, exist_ok=True)
    written, sums = [], {}
    for name, arrays in tables.items():
        write_arrays(target / name, arrays)
        sums[name] = hashlib.sha256((target / name).read_bytes()).hexdigest()
        written.append(target / name)
    write_whole(target / "prepared.json", json.dumps(sums, indent=1) + "\n")
    return [*written, target / "prepared.json"]


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"'{path}' is missing. Give the root of a full checkout.")
    return path.read_bytes()


def _checked_array(path: Path, name: str, columns: int | None = None) -> FloatArray:
    _bytes(path)
    array = np.load(path, allow_pickle=False)
    array = np.ascontiguousarray(array if columns is None else array[:, :columns], dtype=np.float64)
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    if digest != ARRAY_CHECKSUMS[name]:
        raise DataError(
            f"The numbers of '{path}' have sha256 {digest}, not {ARRAY_CHECKSUMS[name]}. Check out the commit."
        )
    return array


def _list(path: Path) -> str:
    """Body of the outermost list of an OpenFOAM file."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", _bytes(path).decode(), flags=re.DOTALL)
    text = re.sub(r"FoamFile\s*\{.*?\}", "", text, count=1, flags=re.DOTALL)
    return text[text.index("(") + 1 : text.rindex(")")]


def structured_mesh(folder: Path) -> tuple[IntArray, FloatArray]:
    """Cells [j, i] and nodes of an OpenFOAM mesh that is one layer of a structured block between two walls.

    Row 0 is the row of cells on the lower wall, ordered downstream; each next row holds the neighbours above.
    """
    points = np.array(_list(folder / "points").replace("(", " ").replace(")", " ").split(), dtype=float).reshape(-1, 3)
    faces = np.array(re.findall(r"4\((\d+) (\d+) (\d+) (\d+)\)", _list(folder / "faces")), dtype=np.intp)
    owner = np.array(_list(folder / "owner").split(), dtype=np.intp)
    neighbour = np.array(_list(folder / "neighbour").split(), dtype=np.intp)
    n_inner = len(neighbour)
    below = _patch(folder, "bottomWall")
    above: dict[tuple[int, int], int] = {}
    linked: dict[int, list[int]] = {}
    for face, (a, b) in enumerate(zip(owner[:n_inner].tolist(), neighbour.tolist())):
        above[a, b] = above[b, a] = face
        linked.setdefault(a, []).append(b)
        linked.setdefault(b, []).append(a)
    front = points[:, 2] < 0.5 * (points[:, 2].min() + points[:, 2].max())

    def edge(face: int) -> FloatArray:
        """The two front points of a face, downstream."""
        ends = points[[p for p in faces[face] if front[p]], :2]
        return ends[np.argsort(ends[:, 0])]

    row_faces = sorted(below, key=lambda face: float(edge(face)[0, 0]))
    row = [int(owner[face]) for face in row_faces]
    rows, lines, seen = [row], [[edge(face) for face in row_faces]], set(row)
    while True:
        current = rows[-1]
        following = [[cell for cell in linked[c] if cell not in seen] for c in current]
        if not any(following):
            break
        following_row = [options[0] for options in following]
        lines.append([edge(above[a, b]) for a, b in zip(current, following_row)])
        seen.update(following_row)
        rows.append(following_row)
    top = {int(owner[face]): face for face in _patch(folder, "topWall")}
    lines.append([edge(top[cell]) for cell in rows[-1]])
    nodes = np.array([[*(segment[0] for segment in line), line[-1][1]] for line in lines])
    return np.array(rows, dtype=np.intp), nodes


def _patch(folder: Path, name: str) -> range:
    entry = re.search(rf"{name}\s*\{{(.*?)\}}", _list(folder / "boundary"), re.DOTALL)
    if entry is None:
        raise DataError(f"'{folder / 'boundary'}' has no patch '{name}'.")
    count, first = (int(re.search(rf"{key}\s+(\d+)", entry[1])[1]) for key in ("nFaces", "startFace"))  # type: ignore[index]
    return range(first, first + count)


def interpolate(values: FloatArray, nodes: FloatArray, at: FloatArray) -> FloatArray:
    """Linear interpolation of cell values (J, I, c) to points (n, 2), zero on the walls, periodic downstream."""
    from scipy.interpolate import LinearNDInterpolator

    centres = build_mesh(nodes).centres
    period = nodes[0, -1] - nodes[0, 0]
    walls = np.concatenate([0.5 * (nodes[j, 1:] + nodes[j, :-1]) for j in (0, -1)])
    inside = values.reshape(-1, values.shape[-1])
    places = np.concatenate([centres, walls])
    known = np.concatenate([inside, np.zeros((len(walls), values.shape[-1]))])
    images = [places + shift * period for shift in (-1, 0, 1)]
    return np.asarray(LinearNDInterpolator(np.concatenate(images), np.tile(known, (3, 1)))(at))
