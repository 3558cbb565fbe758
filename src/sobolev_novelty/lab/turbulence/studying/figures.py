"""Pictures of flows and selections, as matplotlib figures; numbers come in as arrays, nothing is computed twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import require
from sobolev_novelty.lab.turbulence.selecting.data import CREST_VELOCITY, MeshVelocity
from sobolev_novelty.lab.turbulence.selecting.selection import Selection
from sobolev_novelty.lab.turbulence.solving.mesh import build_mesh
from sobolev_novelty.lab.turbulence.studying.measures import STATIONS, profiles, wall_shear

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colour-blind safe, in the order of the rows.
COLOURS = ("#000000", "#7f7f7f", "#0072b2", "#d55e00", "#56b4e9", "#e69f00", "#009e73", "#cc79a7")
BULK = CREST_VELOCITY


def _canvas(n_rows: int, n_columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, list[Axes]]:
    require("matplotlib", extra="plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.subplots(n_rows, n_columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def _outline(axis: Axes, nodes: FloatArray) -> None:
    axis.fill_between(nodes[0, :, 0], nodes[0, :, 1], -0.05, color="0.85", lw=0)
    axis.plot(nodes[0, :, 0], nodes[0, :, 1], color="0.3", lw=0.8)
    axis.set_xlim(nodes[0, 0, 0], nodes[0, -1, 0])
    axis.set_ylim(-0.05, float(nodes[-1, :, 1].max()))
    axis.set_aspect("equal")


def velocity_fields(fields: Mapping[str, MeshVelocity]) -> Figure:
    """Streamwise velocity side by side, one colour scale, U_x = 0 drawn as a line."""
    figure, axes = _panels(len(fields), 2.0, 0.5)
    low = min(float(field.U[..., 0].min()) for field in fields.values()) / BULK
    high = max(float(field.U[..., 0].max()) for field in fields.values()) / BULK
    image = None
    for axis, (name, field) in zip(axes, fields.items()):
        nodes = field.nodes
        centres = field.centres
        u = field.U[..., 0] / BULK
        image = axis.pcolormesh(nodes[..., 0], nodes[..., 1], u, cmap="viridis", vmin=low, vmax=high, rasterized=True)
        axis.contour(centres[..., 0], centres[..., 1], u, levels=[0.0], colors="white", linewidths=1.0)
        _outline(axis, nodes)
        axis.set_title(name, fontsize=10, loc="left")
    assert image is not None
    figure.colorbar(image, ax=axes[: len(fields)], label="$U_x / U_b$", shrink=0.85, pad=0.01)
    return figure


def _panels(n: int, height: float, margin: float) -> tuple[Figure, list[Axes]]:
    """``n`` panels in two columns, the coordinates named on the outer ones."""
    columns = min(n, 2)
    rows = -(-n // columns)
    figure, axes = _canvas(rows, columns, (5.2 * columns, height * rows + margin), sharex=True, sharey=True)
    for axis in axes[n:]:
        axis.set_visible(False)
    for axis in axes[::columns]:
        axis.set_ylabel("y/H")
    for axis in axes[n - columns : n]:
        axis.set_xlabel("x/H")
        axis.tick_params(labelbottom=True)
    return figure, axes


def streamlines(fields: Mapping[str, MeshVelocity], reattachment: Mapping[str, float | None]) -> Figure:
    """Lines of constant stream function, the recirculation bubble filled, reattachment marked on the wall."""
    figure, axes = _panels(len(fields), 2.35, 0.2)
    for axis, (name, field) in zip(axes, fields.items()):
        x, y, psi = stream_function(field)
        top = float(psi.max())
        axis.contourf(x, y, psi, levels=[float(psi.min()) - 1.0, -1e-4 * top], colors=["#f3c9a5"])
        axis.contour(x, y, psi, levels=np.linspace(0.03, 0.97, 12) * top, colors="#0072b2", linewidths=0.7)
        inner = np.linspace(float(psi.min()), -1e-4 * top, 5)[1:] if psi.min() < -2e-4 * top else np.array([])
        if len(inner):
            axis.contour(x, y, psi, levels=inner, colors="#d55e00", linewidths=0.7, linestyles="solid")
        _outline(axis, field.nodes)
        position = reattachment.get(name)
        if position is not None and np.isfinite(position):
            wall = np.interp(position, field.nodes[0, :, 0], field.nodes[0, :, 1])
            axis.plot([position], [wall], marker="^", color="black", ms=6, clip_on=False, zorder=5)
            axis.annotate(
                f"{position:.2f}", (position, wall), (0, 8), textcoords="offset points", ha="center", fontsize=8
            )
        axis.set_title(name, fontsize=10, loc="left")
    return figure


def stream_function(field: MeshVelocity) -> tuple[FloatArray, FloatArray, FloatArray]:
    """x, y and ψ at the middles of the horizontal faces; ψ is the flux below, 0 on the lower wall.

    The flux through a face of row j is that of the mean of its two cells.
    """
    mesh = build_mesh(field.nodes)
    rows, columns = mesh.shape
    S = mesh.S[: rows * columns].reshape(rows, columns, 2)  # faces across the flow; face i lies left of cell i
    left = 0.5 * (field.U + np.roll(field.U, 1, axis=1))
    flux = np.einsum("jic,jic->ji", S, left)
    psi = np.concatenate([np.zeros((1, columns)), np.cumsum(flux, axis=0)])
    # The period closes the picture on the right.
    psi = np.concatenate([psi, psi[:, :1]], axis=1)
    return field.nodes[..., 0], field.nodes[..., 1], psi


def velocity_profiles(fields: Mapping[str, MeshVelocity], scale: float = 0.8) -> Figure:
    """U_x at x/H = 0, 1, …, 8, drawn from each station."""
    figure, (axis,) = _canvas(1, 1, (10, 4.6))
    for colour, (number, (name, field)) in zip(COLOURS, enumerate(fields.items())):
        for station, y, U in profiles(field, STATIONS):
            axis.plot(
                station + scale * U[:, 0] / BULK,
                y,
                color=colour,
                lw=2.0 if number == 0 else 1.2,
                ls="-" if number % 2 == 0 else "--",
                label=name if station == STATIONS[0] else None,
            )
    nodes = next(iter(fields.values())).nodes
    for station in STATIONS:
        axis.axvline(station, color="0.85", lw=0.6, zorder=0)
    _outline(axis, nodes)
    axis.set_aspect("auto")
    axis.set_xlim(-0.3, 9.2)
    axis.set_xlabel(f"x/H + {scale:g} $U_x/U_b$")
    axis.set_ylabel("y/H")
    figure.legend(loc="outside upper center", ncols=min(4, len(fields)), fontsize=9, frameon=False)
    return figure


def wall_shear_curves(fields: Mapping[str, MeshVelocity]) -> Figure:
    """Wall shear stress of the lower wall, relative to U_b²/2."""
    figure, (axis,) = _canvas(1, 1, (9, 4))
    for colour, (number, (name, field)) in zip(COLOURS, enumerate(fields.items())):
        x, shear = wall_shear(field)
        axis.plot(
            x,
            1e3 * shear / (0.5 * BULK**2),
            color=colour,
            lw=2 if number == 0 else 1.2,
            ls="-" if number % 2 == 0 else "--",
            label=name,
        )
    axis.axhline(0, color="0.5", lw=0.8)
    axis.set_xlim(0, float(next(iter(fields.values())).nodes[0, -1, 0]))
    axis.set_ylim(-12, 25)
    axis.set_xlabel("x/H")
    axis.set_ylabel("friction coefficient · 10³")
    figure.legend(loc="outside upper center", ncols=min(4, len(fields)), fontsize=9, frameon=False)
    return figure


def selection_curves(paths: Sequence[Selection], held_out: Mapping[str, Mapping[int, float]] | None = None) -> Figure:
    """Error, condition number, largest coefficient and conditional novelty along forward selections."""
    figure, axes = _canvas(2, 2, (10, 6.4), sharex=True)
    for colour, path in zip(("#0072b2", "#d55e00"), paths):
        n = np.arange(1, len(path.steps) + 1)
        axes[0].plot(n, [step.mse for step in path.steps], color=colour, label=f"{path.rule}, training", marker=".")
        if held_out and path.rule in held_out:
            counts = sorted(held_out[path.rule])
            values = [held_out[path.rule][count] for count in counts]
            axes[0].plot(counts, values, color=colour, ls="--", marker="o", ms=3, label=f"{path.rule}, held out")
        axes[1].semilogy(n, [step.condition for step in path.steps], color=colour, marker=".")
        axes[2].semilogy(n, [step.max_coefficient for step in path.steps], color=colour, marker=".")
        axes[3].semilogy(n, [max(step.novelty, 1e-8) for step in path.steps], color=colour, marker=".")
    titles = ("mean squared error", "condition number", "largest |coefficient|", "conditional novelty when selected")
    for axis, title in zip(axes, titles):
        axis.set_title(title, fontsize=10, loc="left")
        axis.grid(alpha=0.3, lw=0.5)
    axes[0].legend(fontsize=8, frameon=False)
    axes[3].axhline(1 / np.sqrt(10), color="0.5", lw=0.8, ls=":")
    axes[3].annotate("1/√10", (1, 1 / np.sqrt(10)), (2, -10), textcoords="offset points", fontsize=8, color="0.4")
    for axis in axes[2:]:
        axis.set_xlabel("terms")
    return figure
