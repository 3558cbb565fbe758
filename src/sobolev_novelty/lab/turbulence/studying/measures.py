"""Numbers read from a velocity field: reattachment, separation, recirculation, distance to DNS, wall shear, profiles.

Reattachment is the centre of the first near-wall cell with U_x > 0 after the *main* bubble, the longest run of reversed
near-wall cells; DNS has a second, small bubble that must not count. The interpolated value is the zero between that
cell and the one before.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.turbulence.selecting.data import VISCOSITY, MeshVelocity
from sobolev_novelty.lab.turbulence.solving.mesh import build_mesh

#: Stations of the profiles, x/H.
STATIONS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)


@dataclass(frozen=True, slots=True)
class Measures:
    """Quantities of one velocity field; nan where there is no bubble or no reference.

    ``reattachment``, ``reattachment_interpolated``: x/H where the main bubble ends: first cell with U_x > 0, and the
    zero of U_x.
    ``separation``, ``separation_interpolated``: x/H where it begins.
    """

    reattachment: float
    reattachment_interpolated: float
    separation: float
    separation_interpolated: float
    max_reversed: float  # largest −U_x, m/s
    field_error: float  # volume-weighted root mean square of |U − U_DNS| over the field, relative to that of U_DNS
    n_bubbles: int  # runs of reversed near-wall cells

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, as stored in results; None for nan."""
        return {name: value if np.isfinite(value) else None for name, value in asdict(self).items()}


def _zero(x0: float, u0: float, x1: float, u1: float) -> float:
    return x0 + (x1 - x0) * u0 / (u0 - u1)


def _reversed_runs(u: FloatArray) -> list[tuple[int, int]]:
    """Half-open ranges of consecutive cells with u ≤ 0."""
    flag = np.concatenate([[0], (u <= 0).astype(int), [0]])
    change = np.flatnonzero(np.diff(flag))
    return [(int(a), int(b)) for a, b in zip(change[::2], change[1::2])]


def measure(field: MeshVelocity, dns: MeshVelocity | None = None) -> Measures:
    """All scalar quantities of a velocity field.

    Parameters
    ----------
    dns : MeshVelocity, optional
        Reference on the same mesh, for the field error.
    """
    mesh = build_mesh(field.nodes)
    if field.U.shape != (*mesh.shape, 2):
        raise DataError(f"'U' must have shape {(*mesh.shape, 2)} on this mesh. Got {field.U.shape}.")
    x = mesh.centres.reshape(*mesh.shape, 2)[0, :, 0]
    u = field.U[0, :, 0]
    runs = _reversed_runs(u)
    ends = (np.nan, np.nan, np.nan, np.nan)
    if runs:
        first, after = max(runs, key=lambda run: x[run[1] - 1] - x[run[0]])
        reattach = (
            (x[after], _zero(x[after - 1], u[after - 1], x[after], u[after])) if after < len(u) else (np.nan,) * 2
        )
        separate = (x[first], _zero(x[first - 1], u[first - 1], x[first], u[first])) if first else (x[0], x[0])
        ends = (*reattach, *separate)
    return Measures(
        reattachment=float(ends[0]),
        reattachment_interpolated=float(ends[1]),
        separation=float(ends[2]),
        separation_interpolated=float(ends[3]),
        max_reversed=float(-field.U[..., 0].min()),
        field_error=np.nan if dns is None else field_error(field, dns),
        n_bubbles=len(runs),
    )


def field_error(field: MeshVelocity, dns: MeshVelocity) -> float:
    """Volume-weighted relative root-mean-square distance of two velocity fields on one mesh."""
    if field.U.shape != dns.U.shape or not np.allclose(field.nodes, dns.nodes):
        raise DataError("The field and the DNS must be on the same mesh. Load the DNS with mesh='rans' or mesh='xiao'.")
    V = build_mesh(field.nodes).volumes.reshape(field.U.shape[:2])[..., None]
    return float(np.sqrt((V * (field.U - dns.U) ** 2).sum() / (V * dns.U**2).sum()))


def wall_shear(field: MeshVelocity, viscosity: float = VISCOSITY) -> tuple[FloatArray, FloatArray]:
    """x/H and the wall shear stress ν ∂u_t/∂n of the lower wall, m²/s², positive downstream."""
    mesh = build_mesh(field.nodes)
    n_columns = mesh.shape[1]
    S = mesh.wall_S[:n_columns]
    n = S / np.linalg.norm(S, axis=1, keepdims=True)
    tangent = np.stack([-n[:, 1], n[:, 0]], axis=1)  # downstream, because n points down
    u_t = np.einsum("ci,ci->c", field.U[0], tangent)
    x = 0.5 * (field.nodes[0, 1:, 0] + field.nodes[0, :-1, 0])
    return x, viscosity * u_t / mesh.wall_distance[:n_columns]


def profiles(field: MeshVelocity, stations: tuple[float, ...] = STATIONS) -> list[tuple[float, FloatArray, FloatArray]]:
    """Velocity profiles: station, heights y (n_rows,), velocity (n_rows, 2), linear between mesh columns (periodic)."""
    centres = build_mesh(field.nodes).centres.reshape(*field.U.shape)
    period = float(field.nodes[0, -1, 0] - field.nodes[0, 0, 0])
    result = []
    for station in stations:
        columns = []
        for j in range(len(centres)):
            x = centres[j, :, 0]
            rows = [np.interp(station, x, values, period=period) for values in (centres[j, :, 1], *field.U[j].T)]
            columns.append(rows)
        table = np.array(columns)
        result.append((station, table[:, 0], table[:, 1:]))
    return result
