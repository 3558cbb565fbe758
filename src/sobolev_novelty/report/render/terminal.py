"""A report as a rich table: with colours on a terminal, as plain text where it is captured."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from sobolev_novelty.core.digits import percent_text
from sobolev_novelty.report.render.formulas import short_formula
from sobolev_novelty.report.render.sentences import (
    Data,
    fit_text,
    geometry_text,
    is_low,
    novelty_text,
    number,
    plain,
    rebuilt_text,
    rows_text,
    shorten,
    threshold_text,
    verdict,
)
from sobolev_novelty.report.render.words import (
    Word,
    coefficient_text,
    determined_word,
    digits_of_equation,
    distinct_word,
    needed_word,
)

#: Cells of the bar that shows ν at most and at least; it gives way to the terms, and there is none where it must.
WIDE_BAR, NARROW_BAR = 20, 6
#: The terms get no more room than this at the cost of the bar.
MAX_TERM_WIDTH = 48
#: At most this many low terms are explained below the table.
MAX_EXPLAINED = 6


def report_text(data: Data, width: int | None = None) -> str:
    """The report as plain text, without colour codes.

    ``width``: characters per line; by default the terminal's, or 100.

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

    ``width``: characters per line: what does not fit beside the terms is left out.
    """
    parts: list[Text | Table] = []
    if data["expression"] is not None:
        parts.append(
            Text(plain(short_formula(data["expression"], digits_of_equation(data))), style="bold", overflow="fold")
        )
    if data["terms"]:
        parts.append(_table(data, max(width, 40)))
    parts.append(Text(verdict(data), style="bold"))
    parts += _explanations(data)
    parts += _views(data)
    parts += [Text(f"Note: {plain(note)}", style="yellow") for note in data["notes"]]
    rule = f"Distinct: ν with a free intercept above {threshold_text(data)}; {geometry_text(data)}."
    footer = f"{fit_text(data)} {rows_text(data)} {rule}"
    parts.append(Text(footer.strip(), style="dim"))
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of the table: its head, and its cell for a term."""

    head: str
    cell: Callable[[Data], Text]
    is_right: bool = False

    def width(self, data: Data) -> int:
        """Characters that it takes."""
        return max(len(self.head), *(len(self.cell(term).plain) for term in data["terms"]))


def _table(data: Data, width: int) -> Table:
    columns = _columns(data, width)
    labels = [Text(shorten(term["term"], 120)) for term in data["terms"]]
    wanted = min(max(4, *(len(label) for label in labels)), MAX_TERM_WIDTH)
    # Two characters between columns; the terms are the only column that folds.
    room = width - wanted - 5 - len(str(len(labels) - 1))
    fewer = [column for column in columns if column.head != "ν"]  # the words do not need the paper's
    if sum(2 + column.width(data) for column in columns) > room >= sum(2 + column.width(data) for column in fewer):
        columns = fewer
    bar = min(room - 2 - sum(2 + column.width(data) for column in columns), WIDE_BAR)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column("term", overflow="fold")
    if bar >= NARROW_BAR:
        table.add_column(f"0{' ' * (bar - 2)}1", no_wrap=True)
    for column in columns:
        table.add_column(column.head, justify="right" if column.is_right else "left", no_wrap=True)
    for i, term in enumerate(data["terms"]):
        drawn = [_bar(term["verdict"]["novelty"], data["tau"], _style(distinct_word(term)), bar)]
        table.add_row(
            Text(str(i)), labels[i], *(drawn if bar >= NARROW_BAR else []), *(column.cell(term) for column in columns)
        )
    return table


def _columns(data: Data, width: int) -> list[_Column]:
    """Those that fit, without the terms and the bar."""
    has_interval = width >= 70 and any("interval" in term for term in data["terms"])
    room = width - (22 if has_interval else 0)
    has_sizes, has_words = room >= 120, room >= 70  # inflation and contribution; words and not only marks
    columns = [
        _Column("coefficient" if has_sizes else "coeff.", lambda term: Text(coefficient_text(term)), True),
        _Column("ν", lambda term: Text(novelty_text(term["novelty"])), True),
    ]
    if has_interval:
        columns += [
            _Column("95 % interval", lambda term: Text(" – ".join(novelty_text(end) for end in term["interval"]))),
            _Column("holds", lambda term: Text(f"{term['stability']:.0%}"), True),
        ]
    if has_sizes:
        columns += [
            _Column("1/ν²", lambda term: Text(_inflation(term)), True),
            _Column("contribution", lambda term: Text(number(term["contribution"], 3)), True),
        ]
    free = _Column(
        "free ν", lambda term: Text(novelty_text(term["verdict"]["novelty"]), _style(distinct_word(term))), True
    )
    if not has_words:
        marks = _Column("d n d" if data["has_target"] else "d n", lambda term: _marks(term, data["has_target"]))
        return [*columns, free, marks]
    columns += [
        free,
        _Column("distinct", _distinct),
        _Column("needed", _needed),
    ]
    return [*columns, _Column("determined", _determined)] if data["has_target"] else columns


def _style(word: Word) -> str:
    return "dim" if word.is_good is None else "cyan" if word.is_good else "yellow"


def _distinct(term: Data) -> Text:
    word, said = distinct_word(term), term["verdict"]["distinct"]
    text = "zero" if term["is_null"] else {"constant": "", "unknown": ""}.get(said, said)
    return Text(f"{word.mark} {text}".rstrip(), style=_style(word))


def _marks(term: Data, has_target: bool) -> Text:
    words = [distinct_word(term), needed_word(term), *([determined_word(term)] if has_target else [])]
    return Text(" ").join(Text(word.mark, style=_style(word)) for word in words)


def _needed(term: Data) -> Text:
    word = needed_word(term)
    text = word.mark if word.is_good is None else f"{word.mark} {term['verdict']['needed']} {word.number}"
    return Text(text, style=_style(word))


def _determined(term: Data) -> Text:
    word, found = determined_word(term), term["verdict"]
    error = f" ±{percent_text(1.0 / found['t'])}" if found["t"] else ""
    text = word.mark if word.is_good is None else f"{word.mark} {found['determined']}{error}"
    return Text(text, style=_style(word))


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
