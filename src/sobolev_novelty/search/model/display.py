"""What a person sees of a search and of its model: a live display, sentences, a notebook's page, a picture."""

from __future__ import annotations

import html
import importlib
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import short_text
from sobolev_novelty.errors import require
from sobolev_novelty.price.numbers import n_numbers
from sobolev_novelty.search.choose.choice import Choice
from sobolev_novelty.search.loop.front import ParetoFront, select
from sobolev_novelty.search.loop.loop import Budget, Callback, SearchProgress
from sobolev_novelty.search.problem.units import ToUser

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

MAX_ROWS_SHOWN = 12
MAX_EQUATION_WIDTH = 100
#: Probability of so much lack of fit by chance below which the sentence speaks of it, as usual in tests of lack of fit.
LACKING = 0.01


@contextmanager
def live_display(verbose: bool | None, written: ToUser, budget: Budget) -> Iterator[Callback]:
    """A callback that keeps the terminal or the notebook up to date; a silent one where there is neither.

    ``verbose``: ``None``: only where standard error is a terminal, or in a notebook.
    ``written``: gives a candidate's expression in the user's names and units.
    """
    is_notebook = _is_notebook()
    if not (is_notebook or sys.stderr.isatty() if verbose is None else verbose):
        yield lambda progress: None
        return
    if is_notebook:
        with _notebook_display(written, budget) as show:
            yield show
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=4, transient=False) as live:

        def show(progress: SearchProgress) -> None:
            live.update(progress_table(progress, written, budget))

        yield show


def _is_notebook() -> bool:
    """Whether a notebook runs this; IPython is not imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def _notebook_display(written: ToUser, budget: Budget) -> Iterator[Callback]:
    """One output that is replaced every half second and empty in the end; plain HTML, no widgets."""
    ipython: Any = importlib.import_module("IPython.display")
    handle = ipython.display(ipython.HTML(""), display_id=True)
    shown_at = -1.0

    def show(progress: SearchProgress) -> None:
        nonlocal shown_at
        if progress.seconds < shown_at + 0.5:
            return
        shown_at = progress.seconds
        handle.update(ipython.HTML(progress_html(progress, written, budget)))

    try:
        yield show
    finally:
        handle.update(ipython.HTML(""))


def progress_html(progress: SearchProgress, written: ToUser, budget: Budget) -> str:
    """The pace and the front, best equation in bold."""
    from sobolev_novelty.report.render.equation_table import EquationTable, table_html

    best = select(progress.front)
    rows = [
        {"complexity": c.complexity, "1 − R²": float(c.nmse), "score": float(c.score)}
        | {"equation": written(c.expression), "chosen": c is best}
        for c in list(progress.front)[-MAX_ROWS_SHOWN:]
    ]
    return f"<p>{html.escape(_pace(progress, budget))}</p>{table_html(EquationTable(rows))}"


def _pace(progress: SearchProgress, budget: Budget) -> str:
    rate = progress.n_evaluations / max(progress.seconds, 1e-9)
    spent = f"{progress.n_evaluations:,}" + (
        "" if budget.max_evaluations is None else f" of {budget.max_evaluations:,}"
    )
    clock = f"{progress.seconds:.0f} s" + ("" if budget.seconds is None else f" of {budget.seconds:g} s")
    return f"{spent} evaluations · {clock} · {rate:,.0f}/s · {progress.n_novelty_calls:,} novelty calls"


def progress_table(progress: SearchProgress, written: ToUser, budget: Budget) -> Table:
    """The front as a table, best equation marked, with the pace in the title."""
    from rich.table import Table

    table = Table(title=_pace(progress, budget))
    for heading in ("", "complexity", "1 − R²", "score"):
        table.add_column(heading, justify="right")
    table.add_column("equation", overflow="fold")
    best = select(progress.front)
    for candidate in list(progress.front)[-MAX_ROWS_SHOWN:]:
        text = short_text(written(candidate.expression))
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


def model_html(model: Any) -> str:
    """A fitted model for a notebook: the chosen equation and why, the front with its row in bold, and notes."""
    from sobolev_novelty.report.render.equation_table import table_html
    from sobolev_novelty.report.render.figures.style import STYLE
    from sobolev_novelty.report.render.mathml import formula

    table, chosen, notes = model.equations_, model.expression_, [model.stop_reason_]
    if hasattr(model, "_made_"):
        n = len(model.rivals_) - 1
        near = "1 different function is" if n == 1 else f"{n} different functions are"
        notes += [f"{near} within 5 nats: model.rivals_."] * (n > 0) + [*model.alike_inputs_]
    return (
        f'<style>{STYLE}</style><div class="sn"><div class="wrap"><p class="eyebrow">Chosen equation</p>'
        f'<div class="equation"><div class="set">{formula(chosen)}</div>'
        f"<code>{html.escape(short_text(chosen))}</code></div><p>"
        f"{html.escape(f'{model.reason_} {model.noise_}'.strip())}</p>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="All equations">{table_html(table)}</div>'
        f'<p class="small">{html.escape(" ".join(notes))}</p></div></div>'
    )


def front_latex(equations: pd.DataFrame, precision: int) -> str:
    """The front as a booktabs table."""
    from sobolev_novelty.language.convert import to_latex

    rows = [
        f"{row['complexity']} & {row['loss']:.{precision}g} & {row['score']:.{precision}f} & "
        f"{'--' if math.isnan(row['min_novelty']) else format(row['min_novelty'], '.2f')} & "
        f"${to_latex(row['expression'])}$ \\\\"
        for row in equations.to_dict("records")
    ]
    head = "Complexity & Loss & Score & Lowest novelty & Equation \\\\"
    return "\n".join(
        [r"\begin{tabular}{rrrrl}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    )


def front_figure(equations: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Loss against complexity on a logarithmic scale, the chosen equation marked; on ``ax`` where it is given."""
    require("matplotlib", extra="plot")
    from sobolev_novelty.report.render.figures.fit_figure import axis_label
    from sobolev_novelty.report.render.figures.notebook_figure import NotebookFigure

    axes = NotebookFigure(figsize=(6.4, 4.0), dpi=144, layout="constrained").subplots() if ax is None else ax
    figure = axes.figure.figure
    floor = 1e-32
    loss = equations["loss"].clip(lower=floor)
    axes.step(equations["complexity"], loss, where="post", color="0.6", zorder=1)
    low = equations["min_novelty"].fillna(0.0)
    points: Any = axes.scatter(equations["complexity"], loss, c=low, vmin=0.0, vmax=1.0, cmap="viridis", zorder=2)
    picked = equations["chosen"].astype(bool)
    chosen, is_formula = axis_label(equations["expression"][picked].iloc[0], 70) if picked.any() else ("", False)
    axes.scatter(
        equations["complexity"][picked], loss[picked], s=160, facecolors="none", edgecolors="crimson", zorder=3
    )
    axes.set_yscale("log")
    axes.set_xlabel("complexity (nodes)")
    axes.set_ylabel("loss (mean squared error)")
    axes.set_title(chosen, fontsize=9, parse_math=is_formula)
    figure.colorbar(points, ax=axes, label="lowest novelty of a term")
    return figure


def described(model: Any) -> str:
    """The chosen equation and the reason; before ``fit`` the arguments, as scikit-learn shows them."""
    if not hasattr(model, "expression_"):
        return repr(model)
    lines = [short_text(model.expression_), getattr(model, "reason_", ""), getattr(model, "noise_", "")]
    return "\n".join(line for line in lines if line)


def reason(choice: Choice) -> str:
    """Why this equation, for a person."""
    own, written = choice.chosen, short_text(choice.chosen.expression)
    rest = (p for p in choice.priced if p is not own and math.isfinite(p.nats) and choice.differs(p))
    other = next(rest, None)
    if other is None:
        return f"{written}: no different equation was found."
    ahead = other.nats - own.nats
    behind = f"{number_text(abs(ahead), digits=2)} nats {'ahead of' if ahead >= 0.0 else 'behind'}"
    text = f"{written}: {behind} the next different equation, {short_text(other.expression)}."
    return " ".join([text, *(finding.sentence for finding in own.found or ()), lack_of_fit(choice)]).rstrip()


def lack_of_fit(choice: Choice) -> str:
    """Where inputs came more than once: whether the equation misses their means by more than the rows scatter."""
    rows, replicates = choice.rows, choice.rows.replicates
    spare, m = replicates.n_rows - replicates.n_distinct, replicates.n_distinct
    n_lack = m - n_numbers(choice.chosen.expression)
    if not spare or n_lack < 1 or not np.isfinite(choice.chosen.values).all():
        return ""
    w = np.ones_like(rows.y) if rows.weights is None else rows.weights
    pure, lack = replicates.split((rows.y - choice.chosen.values) / choice.heights, w)
    if not pure > 0.0:
        return ""
    from scipy.stats import f

    p = float(f.sf((lack / n_lack) / (pure / spare), n_lack, spare))
    word = "misses the means of repeated rows" if p < LACKING else "meets the means of repeated rows"
    return f"Among {m} different inputs it {word} (p = {number_text(p, digits=2)}; {spare} repeats)."
