"""What a person sees of a search: a live display on a terminal, and the picture of a front."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sobolev_novelty.errors import require
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.front import ParetoFront, select
from sobolev_novelty.search.loop import Budget, Callback, SearchProgress
from sobolev_novelty.search.units import ToUser

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.table import Table

MAX_ROWS_SHOWN = 12
MAX_EQUATION_WIDTH = 100


@contextmanager
def live_display(verbose: bool | None, written: ToUser, budget: Budget) -> Iterator[Callback]:
    """A callback that keeps the terminal up to date; a silent one where there is no terminal.

    Parameters
    ----------
    verbose : bool or None
        ``None``: only where standard error is a terminal.
    written : callable
        Gives a candidate's expression in the user's names and units.
    """
    if not (sys.stderr.isatty() if verbose is None else verbose):
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=4, transient=False) as live:

        def show(progress: SearchProgress) -> None:
            live.update(progress_table(progress, written, budget))

        yield show


def progress_table(progress: SearchProgress, written: ToUser, budget: Budget) -> Table:
    """The front as a table, best equation marked, with the pace in the title."""
    from rich.table import Table

    rate = progress.n_evaluations / max(progress.seconds, 1e-9)
    spent = f"{progress.n_evaluations:,}" + (
        "" if budget.max_evaluations is None else f" of {budget.max_evaluations:,}"
    )
    clock = f"{progress.seconds:.0f} s" + ("" if budget.seconds is None else f" of {budget.seconds:g} s")
    table = Table(title=f"{spent} evaluations · {clock} · {rate:,.0f}/s · {progress.n_novelty_calls:,} novelty calls")
    for heading in ("", "complexity", "1 − R²", "score"):
        table.add_column(heading, justify="right")
    table.add_column("equation", overflow="fold")
    best = select(progress.front)
    for candidate in list(progress.front)[-MAX_ROWS_SHOWN:]:
        text = str(written(candidate.expression))
        shown = text if len(text) <= MAX_EQUATION_WIDTH else text[: MAX_EQUATION_WIDTH - 1] + "…"
        mark = "▶" if candidate is best else ""
        table.add_row(mark, str(candidate.complexity), f"{candidate.nmse:.3g}", f"{candidate.score:.4f}", shown)
    return table


def in_users_terms(callback: Callback, written: ToUser) -> Callback:
    """The callback, told of equations in the user's names and units."""

    def told(progress: SearchProgress) -> bool | None:
        front = ParetoFront(tuple(replace(c, expression=written(c.expression)) for c in progress.front))
        return callback(replace(progress, front=front))

    return told


def model_html(equations: pd.DataFrame, chosen: Expression, stop_reason: str) -> str:
    """A fitted model for a notebook: the chosen equation, the front with its row in bold, and why the search ended."""
    from sobolev_novelty.render.equation_table import DIGITS, table_html

    table = equations
    if "chosen" not in table.columns:
        table = table.assign(chosen=[expression == chosen for expression in table["expression"]])
    equation = html.escape(str(chosen.rounded(DIGITS)))
    return f"<p><code>{equation}</code></p>{table_html(table)}<p>{html.escape(stop_reason)}</p>"


def front_figure(equations: pd.DataFrame, chosen: str) -> Figure:
    """Loss against complexity on a logarithmic scale, the chosen equation marked."""
    require("matplotlib", extra="plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    floor = 1e-32
    loss = equations["loss"].clip(lower=floor)
    axes.step(equations["complexity"], loss, where="post", color="0.6", zorder=1)
    low = equations["min_novelty"].fillna(0.0)
    points: Any = axes.scatter(equations["complexity"], loss, c=low, vmin=0.0, vmax=1.0, cmap="viridis", zorder=2)
    picked = equations["expression"].astype(str) == chosen
    axes.scatter(
        equations["complexity"][picked], loss[picked], s=160, facecolors="none", edgecolors="crimson", zorder=3
    )
    axes.set_yscale("log")
    axes.set_xlabel("complexity (nodes)")
    axes.set_ylabel("loss (mean squared error)")
    axes.set_title(chosen if len(chosen) < 70 else chosen[:69] + "…", fontsize=9)
    figure.colorbar(points, label="lowest novelty of a term")
    return figure
