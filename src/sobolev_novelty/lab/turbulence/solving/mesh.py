"""A structured curvilinear mesh, periodic downstream, walls below and above; and its linear finite-volume operators.

The discretisation is OpenFOAM's: polygon centroids, linear interpolation with weights from face-normal distances, Gauss
gradients, over-relaxed non-orthogonal correction of face-normal gradients.

Notation
--------
P, N   owner and neighbour cell of a face;  S  face area vector, from P to N;  d  vector from centre P to centre N
L      interpolation to faces;  D  sum of outgoing face values (so that ∫div = D·flux);  G  cell gradient
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError

IntArray = npt.NDArray[np.intp]
Sparse = sp.csr_array


@dataclass(frozen=True, slots=True)
class Mesh:
    """Geometry of the cells, the inner (and periodic) faces and the wall faces.

    Cells are numbered ``j * n_columns + i``.
    """

    shape: tuple[int, int]
    volumes: FloatArray
    centres: FloatArray
    owner: IntArray
    neighbour: IntArray
    S: FloatArray
    from_owner: FloatArray
    from_neighbour: FloatArray
    wall_cell: IntArray
    wall_S: FloatArray
    wall_distance: FloatArray

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.volumes)

    @property
    def weights(self) -> FloatArray:
        """Share of the owner in the linear interpolation."""
        own = np.abs(np.einsum("fi,fi->f", self.S, self.from_owner))
        other = np.abs(np.einsum("fi,fi->f", self.S, self.from_neighbour))
        return np.asarray(other / (own + other))


def _polygon(corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Area and centroid of polygons, corners (n, k, 2) counter-clockwise; relative coordinates keep the digits."""
    origin = corners.mean(axis=1, keepdims=True)
    a = corners - origin
    b = np.roll(a, -1, axis=1)
    cross = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    area = 0.5 * cross.sum(axis=1)
    centroid = ((a + b) * cross[..., None]).sum(axis=1) / (6 * area[:, None])
    return area, centroid + origin[:, 0]


def build_mesh(nodes: FloatArray) -> Mesh:
    """Mesh from nodes of shape (n_rows + 1, n_columns + 1, 2); the last column of nodes is the first, one period on."""
    if nodes.ndim != 3 or nodes.shape[2] != 2:
        raise DataError(f"'nodes' must have shape (rows + 1, columns + 1, 2). Got {nodes.shape}.")
    n_rows, n_columns = nodes.shape[0] - 1, nodes.shape[1] - 1
    period = nodes[0, -1] - nodes[0, 0]
    if not np.allclose(nodes[:, -1] - nodes[:, 0], period, rtol=0, atol=1e-6 * float(np.linalg.norm(period))):
        raise DataError("The first and last column of 'nodes' must be the same up to one shift: the mesh is periodic.")
    corners = np.stack([nodes[:-1, :-1], nodes[:-1, 1:], nodes[1:, 1:], nodes[1:, :-1]], axis=2)
    volumes, centres = _polygon(corners.reshape(-1, 4, 2))
    if (volumes <= 0).any():
        raise DataError(f"Cell {int(np.argmin(volumes))} has no positive area: order nodes bottom-up and downstream.")
    cell = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)

    # Faces across the flow: face i lies between columns i - 1 and i; face 0 is the periodic one.
    low, high = nodes[:-1, :-1], nodes[1:, :-1]
    along = high - low
    S_i = np.stack([along[..., 1], -along[..., 0]], axis=-1).reshape(-1, 2)
    middle_i = (0.5 * (low + high)).reshape(-1, 2)
    owner_i, neighbour_i = np.roll(cell, 1, axis=1).ravel(), cell.ravel()
    shift = np.zeros((n_rows, n_columns, 2))
    shift[:, 0] = period
    # Faces along the flow, below row j.
    along = nodes[:, 1:] - nodes[:, :-1]
    S_all = np.stack([-along[..., 1], along[..., 0]], axis=-1)
    middle_all = 0.5 * (nodes[:, 1:] + nodes[:, :-1])
    S_j, middle_j = S_all[1:-1].reshape(-1, 2), middle_all[1:-1].reshape(-1, 2)
    owner_j, neighbour_j = cell[:-1].ravel(), cell[1:].ravel()

    owner, neighbour = np.concatenate([owner_i, owner_j]), np.concatenate([neighbour_i, neighbour_j])
    middle = np.concatenate([middle_i, middle_j])
    seen_by_owner = middle + np.concatenate([shift.reshape(-1, 2), np.zeros_like(middle_j)])
    wall_cell = np.concatenate([cell[0], cell[-1]])
    wall_S = np.concatenate([-S_all[0], S_all[-1]])
    to_wall = np.concatenate([middle_all[0], middle_all[-1]]) - centres[wall_cell]
    return Mesh(
        shape=(n_rows, n_columns),
        volumes=volumes,
        centres=centres,
        owner=owner,
        neighbour=neighbour,
        S=np.concatenate([S_i, S_j]),
        from_owner=seen_by_owner - centres[owner],
        from_neighbour=middle - centres[neighbour],
        wall_cell=wall_cell,
        wall_S=wall_S,
        wall_distance=np.einsum("fi,fi->f", to_wall, wall_S) / np.linalg.norm(wall_S, axis=1),
    )


def diagonal(values: FloatArray) -> Sparse:
    """Sparse diagonal matrix."""
    return sp.csr_array(sp.diags_array(values))


@dataclass(frozen=True, slots=True)
class Operators:
    """Linear operators of a mesh, as sparse matrices.

    ``pick_owner``, ``pick_neighbour``, ``L``: (n_faces, n_cells).
    """

    pick_owner: Sparse
    pick_neighbour: Sparse
    L: Sparse
    D: Sparse  # (n_cells, n_faces)
    gradient: tuple[Sparse, Sparse]  # two (n_cells, n_cells): Gauss gradient of a field that is zero on the walls
    #: two (n_cells, n_cells): Gauss gradient of a field with zero normal derivative on the walls.
    gradient_free: tuple[Sparse, Sparse]
    pick_wall: Sparse  # (n_wall_faces, n_cells)

    def face_normal_gradient(self, mesh: Mesh, gradient: tuple[Sparse, Sparse]) -> Sparse:
        """|S| ∂/∂n at the faces: two-point part and non-orthogonal correction."""
        area = np.linalg.norm(mesh.S, axis=1)
        n = mesh.S / area[:, None]
        d = mesh.from_owner - mesh.from_neighbour
        coefficient = 1.0 / np.maximum(np.einsum("fi,fi->f", n, d), 0.05 * np.linalg.norm(d, axis=1))
        correction = n - d * coefficient[:, None]
        compact = diagonal(area * coefficient) @ (self.pick_neighbour - self.pick_owner)
        skew = [diagonal(area * correction[:, i]) @ self.L @ gradient[i] for i in range(2)]
        return sp.csr_array(compact + skew[0] + skew[1])


def build_operators(mesh: Mesh) -> Operators:
    """All operators that do not depend on the flow."""
    n_faces, n_cells = len(mesh.owner), mesh.n_cells
    faces = np.arange(n_faces)
    ones = np.ones(n_faces)
    pick_owner = sp.csr_array((ones, (faces, mesh.owner)), shape=(n_faces, n_cells))
    pick_neighbour = sp.csr_array((ones, (faces, mesh.neighbour)), shape=(n_faces, n_cells))
    L = diagonal(mesh.weights) @ pick_owner + diagonal(1 - mesh.weights) @ pick_neighbour
    D = (pick_owner - pick_neighbour).T.tocsr()
    per_volume = diagonal(1 / mesh.volumes)
    gradient = [per_volume @ D @ diagonal(mesh.S[:, i]) @ L for i in range(2)]
    n_walls = len(mesh.wall_cell)
    pick_wall = sp.csr_array((np.ones(n_walls), (np.arange(n_walls), mesh.wall_cell)), shape=(n_walls, n_cells))
    free = [gradient[i] + per_volume @ pick_wall.T @ diagonal(mesh.wall_S[:, i]) @ pick_wall for i in range(2)]
    csr = sp.csr_array
    return Operators(
        pick_owner,
        pick_neighbour,
        csr(L),
        csr(D),
        (csr(gradient[0]), csr(gradient[1])),
        (csr(free[0]), csr(free[1])),
        pick_wall,
    )


def velocity_gradient(U: FloatArray, mesh: Mesh, operators: Operators) -> FloatArray:
    """du_i/dx_j at the cells, shape (n_cells, 2, 2), index [cell, i, j]; U has shape (n_cells, 2)."""
    columns = [[operators.gradient[j] @ U[:, i] for j in range(2)] for i in range(2)]
    return np.moveaxis(np.array(columns), 2, 0)
