"""A report as a rich table: with colours on a terminal, as plain text where it is captured."""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from sobolev_novelty.render.formulas import short_formula
from sobolev_novelty.render.sentences import (
    Data,
    geometry_text,
    is_low,
    novelty_text,
    number,
    plain,
    rebuilt_text,
    rows_text,
    shorten,
    term_verdict,
    threshold_text,
    verdict,
)

#: Cells of the bar that shows ν, on wide and on narrow terminals.
WIDE_BAR, NARROW_BAR = 20, 10
#: At most this many low terms are explained below the table.
MAX_EXPLAINED = 6

_MARK = {
    "distinct": "✓", "partly distinct": "~", "imitated": "✗", "few rows": "!", "unresolved": "!", "intercept": "·",
    "null": "∅", "no verdict": "?",
}  # fmt: skip
_STYLE = dict.fromkeys(_MARK, "yellow") | {"distinct": "cyan", "intercept": "dim", "no verdict": "dim"}


def report_text(data: Data, width: int | None = None) -> str:
    """The report as plain text, without colour codes.

    Parameters
    ----------
    data : dict
        ``NoveltyReport.to_dict()``.
    width : int, optional
        Characters per line; by default the terminal's, or 100.

    Examples
    --------
    >>> import sobolev_novelty as sn
    >>> report = sn.novelty("x0 + cos(3*x0)", [[i / 50] for i in range(-50, 50)])
    >>> report_text(report.to_dict(), width=80).splitlines()[0]
    'x0 + cos(3*x0)'
    """
    columns = shutil.get_terminal_size((100, 24)).columns if width is None else width
    console = Console(
        file=io.StringIO(), width=max(columns, 40), color_system=None, force_terminal=False, legacy_windows=False
    )
    with console.capture() as capture:
        console.print(report_table(data, columns))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def report_table(data: Data, width: int = 100) -> Group:
    """The report as something rich can print: equation, table, verdict, explanations, notes, footer.

    Parameters
    ----------
    data : dict
        ``NoveltyReport.to_dict()``.
    width : int
        Characters per line: what does not fit beside the terms is left out.
    """
    parts: list[Text | Table] = []
    if data["expression"] is not None:
        parts.append(Text(plain(short_formula(data["expression"])), style="bold", overflow="fold"))
    if data["terms"]:
        parts.append(_table(data, _Layout.of(data, width)))
    parts.append(Text(verdict(data), style="bold"))
    parts += _explanations(data)
    parts += _views(data)
    parts += [Text(f"Note: {plain(note)}", style="yellow") for note in data["notes"]]
    footer = f"{rows_text(data)} Distinct: ν above {threshold_text(data)}, intercept free; {geometry_text(data)}."
    parts.append(Text(footer, style="dim"))
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns fit."""

    has_interval: bool
    has_sizes: bool  # inflation and contribution
    bar: int
    has_words: bool  # the verdict as words, not only as a mark

    @classmethod
    def of(cls, data: Data, width: int) -> _Layout:
        has_interval = width >= 70 and any("interval" in term for term in data["terms"])
        room = width - (22 if has_interval else 0)
        return cls(has_interval, room >= 120, WIDE_BAR if room >= 90 else NARROW_BAR, room >= 70)


def _table(data: Data, layout: _Layout) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column("term", overflow="fold")
    table.add_column("coefficient" if layout.has_sizes else "coeff.", justify="right", no_wrap=True)
    table.add_column("ν", justify="right", no_wrap=True)
    table.add_column("free", justify="right", no_wrap=True)
    table.add_column(f"0{' ' * (layout.bar - 2)}1", no_wrap=True)
    if layout.has_interval:
        table.add_column("95 % interval", no_wrap=True)
        table.add_column("holds", justify="right", no_wrap=True)
    if layout.has_sizes:
        table.add_column("1/ν²", justify="right", no_wrap=True)
        table.add_column("contribution", justify="right", no_wrap=True)
    table.add_column("distinct" if layout.has_words else "", no_wrap=True)
    if layout.has_words:
        table.add_column("needed", no_wrap=True)
        if data["has_target"]:
            table.add_column("determined", no_wrap=True)
    for i, term in enumerate(data["terms"]):
        table.add_row(*_cells(i, term, data["tau"], layout), *_other_words(term, data["has_target"], layout))
    return table


def _cells(i: int, term: Data, tau: float, layout: _Layout) -> list[Text]:
    word = term_verdict(term)
    style = _STYLE[word]
    cells = [
        Text(str(i)),
        Text(shorten(term["term"], 120)),
        Text(number(term["coefficient"])),
        Text(novelty_text(term["novelty"])),
        Text(novelty_text(term["verdict"]["novelty"]), style=style),
        _bar(term["verdict"]["novelty"], tau, style, layout.bar),
    ]
    if layout.has_interval:
        low, high = term["interval"]
        cells += [Text(f"{novelty_text(low)} – {novelty_text(high)}"), Text(f"{term['stability']:.0%}")]
    if layout.has_sizes:
        cells += [Text(_inflation(term)), Text(number(term["contribution"], 3))]
    return [*cells, Text(f"{_MARK[word]} {word}" if layout.has_words else _MARK[word], style=style)]


def _other_words(term: Data, has_target: bool, layout: _Layout) -> list[Text]:
    if not layout.has_words:
        return []
    found = term["verdict"]
    if found["needed"] in ("constant", "unknown"):
        return [Text("–", style="dim")] * (1 + has_target)
    words = [f"{found['needed']} {number(100 * found['loss'], 3)} %"]
    if has_target:
        words.append(f"{found['determined']} ±{number(100 / found['t'], 2)} %" if found["t"] else "no")
    return [Text(word, style="" if word.startswith("yes") else "yellow") for word in words]


def _inflation(term: Data) -> str:
    return "∞" if term["novelty"] == 0.0 else number(term["inflation"], 3)


def _bar(nu: float | None, tau: float, style: str, n_cells: int) -> Text:
    """Cells filled up to ν; ┃ marks the threshold."""
    bar = Text()
    filled = 0 if nu is None else round(nu * n_cells)
    mark = min(int(tau * n_cells), n_cells - 1)
    for cell in range(n_cells):
        if cell == mark:
            bar.append("┃", style="bold")
        else:
            bar.append("━" if cell < filled else "╌", style=style if cell < filled else "dim")
    return bar


def _views(data: Data) -> list[Text | Table]:
    """Novelty by values, along the data and with all slopes, where the inputs lie on a curve or surface."""
    if not data["views"]:
        return []
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("ν, intercept free", overflow="fold")
    for name in data["views"]:
        table.add_column({"values": "values", "tangent": "along the data", "full": "all slopes"}[name], justify="right")
    for i, term in enumerate(data["terms"]):
        table.add_row(shorten(term["term"], 60), *(novelty_text(nu[i]) for nu in data["views"].values()))
    return [table]


def _explanations(data: Data) -> list[Text]:
    low = [i for i, term in enumerate(data["terms"]) if is_low(term)]
    lines = []
    for i in low[:MAX_EXPLAINED]:
        formula = rebuilt_text(data, i)
        if formula:
            term = data["terms"][i]
            left = f", leaving {term['novelty']:.1%} unexplained" if term["novelty"] else ", exactly"
            lines.append(Text(f"  {shorten(term['term'], 40)} ≈ {formula}{left}"))
    if len(low) > MAX_EXPLAINED:
        lines.append(Text(f"  … and {len(low) - MAX_EXPLAINED} more", style="dim"))
    return lines
