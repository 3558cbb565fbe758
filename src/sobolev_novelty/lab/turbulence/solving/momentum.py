r"""Steady mean-flow equations on a periodic mesh: residual and Jacobian.

Notation
--------
u, v, p : ndarray of shape (n_cells,)
    Velocity components and kinematic pressure; ``w`` stacks the three.
phi : ndarray of shape (n_faces,)
    Volume flux through the inner faces.
a : ndarray of shape (n_cells, 3)
    Frozen stress correction, components 11, 12, 22; zero on the walls.

.. math::

    \nabla\cdot(\phi U) - \nabla\cdot(\nu_e\nabla U) - \nabla\cdot(\nu_e\,\mathrm{dev}_2(\nabla U)^T) + \nabla\cdot a
    + \nabla p = f\,e_x \;\text{in the forcing column},\qquad \nabla\cdot\phi = 0 .

Convection is linear upwind, the flux carries Rhie and Chow's pressure term with the diagonal of the base flow's upwind
matrix, relaxed as the OpenFOAM case relaxes it, because that diagonal is part of the converged answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.lab.turbulence.selecting.data import FlowConditions
from sobolev_novelty.lab.turbulence.solving.mesh import Mesh, Operators, Sparse, diagonal

#: Relaxation of the momentum equation in the OpenFOAM case; it scales the Rhie–Chow term.
RELAXATION = 0.7


@dataclass(frozen=True, slots=True)
class Linearisation:
    """Residual of a state and what its Jacobian needs."""

    residual: FloatArray
    phi: FloatArray
    u_face: FloatArray
    v_face: FloatArray


@dataclass(frozen=True, slots=True)
class MomentumSystem:
    """All parts of the equations that do not change during Newton's iteration. Build with :func:`momentum_system`.

    ``upwind_owner``, ``upwind_neighbour``: (n_faces, n_cells), linear-upwind face values seen from either side.
    """

    mesh: Mesh
    operators: Operators
    flux: tuple[Sparse, Sparse, Sparse]  # three (n_faces, n_cells) matrices: volume flux from u, v and p
    upwind_owner: Sparse
    upwind_neighbour: Sparse
    #: 2 × 2 blocks (n_cells, n_cells): laplacian and transposed-gradient terms.
    viscous: tuple[tuple[Sparse, Sparse], tuple[Sparse, Sparse]]
    pressure: tuple[Sparse, Sparse]  # two (n_cells, n_cells): volume-integrated pressure gradient
    forcing: FloatArray  # shape (n_cells,): volume of the cells the force acts in, zero elsewhere

    @property
    def mean_row(self) -> FloatArray:
        """Weights of the mean velocity that the forcing holds."""
        return np.asarray(self.forcing / self.forcing.sum())

    def linearise(self, w: FloatArray, force: float, source: FloatArray) -> Linearisation:
        """Residual of state ``w`` under a driving force and a source of shape (2, n_cells)."""
        u, v, p = np.split(w, 3)
        D = self.operators.D
        phi = self.flux[0] @ u + self.flux[1] @ v + self.flux[2] @ p
        downstream = phi > 0
        u_face = np.where(downstream, self.upwind_owner @ u, self.upwind_neighbour @ u)
        v_face = np.where(downstream, self.upwind_owner @ v, self.upwind_neighbour @ v)
        (uu, uv), (vu, vv) = self.viscous
        r_u = D @ (phi * u_face) + uu @ u + uv @ v + self.pressure[0] @ p - force * self.forcing + source[0]
        r_v = D @ (phi * v_face) + vu @ u + vv @ v + self.pressure[1] @ p + source[1]
        return Linearisation(np.concatenate([r_u, r_v, D @ phi]), phi, u_face, v_face)

    def jacobian(self, state: Linearisation) -> sp.csr_array:
        """Exact derivative of the residual, the upwind directions held fixed."""
        D = self.operators.D
        ahead = np.where(state.phi > 0, state.phi, 0.0)
        convection = D @ (diagonal(ahead) @ self.upwind_owner + diagonal(state.phi - ahead) @ self.upwind_neighbour)
        carry = [D @ diagonal(face) for face in (state.u_face, state.v_face)]
        rows = []
        for i in range(2):
            blocks = [carry[i] @ self.flux[j] + self.viscous[i][j] for j in range(2)]
            blocks[i] = blocks[i] + convection
            rows.append([*blocks, carry[i] @ self.flux[2] + self.pressure[i]])
        rows.append([D @ part for part in self.flux])
        return sp.csr_array(sp.block_array(rows))

    def stress_source(self, a: FloatArray) -> FloatArray:
        """∫∇·a of a cell stress (n_cells, 3), as a source of shape (2, n_cells)."""
        face = np.stack([self.operators.L @ a[:, c] for c in range(3)], axis=1)
        S = self.mesh.S
        flux_u = S[:, 0] * face[:, 0] + S[:, 1] * face[:, 1]
        flux_v = S[:, 0] * face[:, 1] + S[:, 1] * face[:, 2]
        return np.stack([self.operators.D @ flux_u, self.operators.D @ flux_v])


def _viscous_blocks(
    mesh: Mesh, ops: Operators, nu_e: FloatArray, nu: float
) -> tuple[tuple[Sparse, Sparse], tuple[Sparse, Sparse]]:
    """−∇·(ν_e ∇U) and −∇·(ν_e dev2(∇Uᵀ)); ν_e is ν on the walls."""
    area = np.linalg.norm(mesh.wall_S, axis=1)
    n = mesh.wall_S / area[:, None]
    W, G = ops.pick_wall, ops.gradient
    wall_friction = W.T @ diagonal(nu * area / mesh.wall_distance) @ W
    laplacian = wall_friction - ops.D @ diagonal(ops.L @ nu_e) @ ops.face_normal_gradient(mesh, G)
    weighted = [ops.L @ diagonal(nu_e) @ G[i] for i in range(2)]
    # On the wall the normal part of the cell gradient is replaced by the two-point one.
    normal = diagonal(n[:, 0]) @ W @ G[0] + diagonal(n[:, 1]) @ W @ G[1]
    jump = -diagonal(1 / mesh.wall_distance) @ W - normal
    at_wall = [nu * (W @ G[i] + diagonal(n[:, i]) @ jump) for i in range(2)]
    S, wall_S = [diagonal(mesh.S[:, i]) for i in range(2)], [diagonal(mesh.wall_S[:, i]) for i in range(2)]
    blocks: list[list[Sparse]] = [[], []]
    for j in range(2):
        for i in range(2):
            inner = S[i] @ weighted[j] - (2 / 3) * (S[j] @ weighted[i])
            wall = wall_S[i] @ at_wall[j] - (2 / 3) * (wall_S[j] @ at_wall[i])
            block = -(ops.D @ inner) - W.T @ wall
            blocks[j].append(sp.csr_array(block + laplacian if i == j else block))
    return (blocks[0][0], blocks[0][1]), (blocks[1][0], blocks[1][1])


def _momentum_diagonal(mesh: Mesh, nu_face: FloatArray, nu: float, phi: FloatArray) -> FloatArray:
    """Diagonal of the relaxed upwind momentum matrix."""
    area = np.linalg.norm(mesh.S, axis=1)
    d = mesh.from_owner - mesh.from_neighbour
    normal_distance = np.maximum(np.einsum("fi,fi->f", mesh.S, d) / area, 0.05 * np.linalg.norm(d, axis=1))
    diffusion = nu_face * area / normal_distance
    wall = nu * np.linalg.norm(mesh.wall_S, axis=1) / mesh.wall_distance
    n = mesh.n_cells
    total = np.bincount(mesh.owner, np.maximum(phi, 0) + diffusion, n)
    total += np.bincount(mesh.neighbour, np.maximum(-phi, 0) + diffusion, n)
    return np.asarray(total + np.bincount(mesh.wall_cell, wall, n)) / RELAXATION


def momentum_system(
    mesh: Mesh, ops: Operators, conditions: FlowConditions, *, nut: FloatArray, U: FloatArray
) -> MomentumSystem:
    """Assemble the parts that Newton's iteration keeps.

    ``nut``: shape (n_cells,), eddy viscosity, frozen.
    ``U``: shape (n_cells, 2), velocity of the base flow, for the Rhie–Chow diagonal.
    """
    nu = conditions.viscosity
    nu_e = nu + nut
    S = [diagonal(mesh.S[:, i]) for i in range(2)]
    along = [S[i] @ ops.L for i in range(2)]
    phi = along[0] @ U[:, 0] + along[1] @ U[:, 1]
    r = mesh.volumes / _momentum_diagonal(mesh, ops.L @ nu_e, nu, phi)
    free = ops.gradient_free
    rhie_chow = sum(S[i] @ ops.L @ diagonal(r) @ free[i] for i in range(2))
    rhie_chow = rhie_chow - diagonal(ops.L @ r) @ ops.face_normal_gradient(mesh, free)
    reach = [
        pick + diagonal(arm[:, 0]) @ pick @ ops.gradient[0] + diagonal(arm[:, 1]) @ pick @ ops.gradient[1]
        for pick, arm in ((ops.pick_owner, mesh.from_owner), (ops.pick_neighbour, mesh.from_neighbour))
    ]
    forced = np.arange(mesh.n_cells).reshape(mesh.shape)[:, : 1 if conditions.forced_zone == "crest" else None].ravel()
    forcing = np.zeros(mesh.n_cells)
    forcing[forced] = mesh.volumes[forced]
    V = diagonal(mesh.volumes)
    csr = sp.csr_array
    return MomentumSystem(
        mesh=mesh,
        operators=ops,
        flux=(csr(along[0]), csr(along[1]), csr(rhie_chow)),
        upwind_owner=csr(reach[0]),
        upwind_neighbour=csr(reach[1]),
        viscous=_viscous_blocks(mesh, ops, nu_e, nu),
        pressure=(csr(V @ free[0]), csr(V @ free[1])),
        forcing=forcing,
    )
