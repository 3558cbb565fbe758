"""The comparisons of several stores side by side: a row for each, a column or a panel for each measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.showing.contrasts import MEASURES, contrast_table
from sobolev_novelty.lab.bench.showing.figures import new_figure
from sobolev_novelty.lab.bench.showing.tables import BenchTable, rows_at, suite_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Of each measure the digits that are shown, and whether more of it is better.
_SHOWN = {"R²": (3, True), "complexity": (2, False), "SN": (3, True), "solved": (3, True)}
_BETTER, _WORSE, _OPEN = "#1b5e9e", "#c2410c", "#9a9a9a"


class Source(NamedTuple):
    """What a store says: its name, its rows, their suite, and the methods its experiment set out to compare."""

    name: str
    frame: pd.DataFrame
    suite: str
    contrasts: list[list[str]]


def overview(sources: Iterable[Source]) -> pd.DataFrame:
    """The rows of :func:`contrast_table` of all stores and noise levels, each with its ``group`` and ``seeds``."""
    tables = []
    for source in sources:
        for noise in sorted(source.frame["noise"].unique()):
            rows = rows_at(source.frame, noise)
            found = contrast_table(source.frame, source.suite, source.contrasts, noise=noise).frame
            group = f"{suite_title(source.suite)}, noise {noise:g} ({source.name})"
            tables.append(found.assign(group=group, seeds=rows["seed"].nunique()))
    if not tables:
        raise DataError("Name at least one store that has rows.")
    return pd.concat(tables, ignore_index=True)


def overview_table(rows: pd.DataFrame) -> BenchTable:
    """One line for each contrast; differences that are clear are bold, those that no task makes are a dash."""
    lines = []
    for (group, contrast), found in rows.groupby(["group", "contrast"], sort=False):
        cells = {row["measure"]: _cell(row) for row in found.to_dict("records")}
        first = found.iloc[0]
        lines.append(
            {"where": group, "contrast": contrast, "tasks": int(first["tasks"]), "seeds": int(first["seeds"])}
            | {measure: cells.get(measure, "–") for measure in MEASURES.values()}
        )
    notes = (
        "Differences of means over tasks, with the paired bootstrap interval over tasks (95 %). Bold: clear, that is, "
        "the interval and the sign-flip test (p < 0.05) exclude zero, and at least ten tasks differ.",
    )
    return BenchTable("Comparisons", pd.DataFrame(lines), {}, notes)


def _cell(row: Mapping[Any, Any]) -> str:
    if not row["differ"]:
        return "–"
    digits, _ = _SHOWN[row["measure"]]
    value, lower, upper = (f"{row[key]:+.{digits}f}".replace("-", "−") for key in ("Δ", "from", "to"))
    return f"**{value}** ({lower} … {upper})" if row["clear"] == "yes" else f"{value} ({lower} … {upper})"


def _short(contrast: str) -> str:
    """What stands in both names once: ``a+b → a+c`` is ``a: b → c``.

    >>> _short("gp+control → gp+guided"), _short("gp → gp+guided"), _short("linear → gp")
    ('gp: control → guided', 'gp: plain → guided', 'linear → gp')
    """
    (before, _, first), (after, _, second) = (name.partition("+") for name in contrast.split(" → "))
    return f"{before}: {first or 'plain'} → {second or 'plain'}" if before == after else contrast


def overview_figure(rows: pd.DataFrame) -> Figure:
    """A panel for each measure, a line for each contrast: the difference and its interval."""
    lines: list[tuple[str, str | None]] = []
    for group, found in rows.groupby("group", sort=False):
        lines += [(str(group), contrast) for contrast in (None, *dict.fromkeys(found["contrast"]))]
    figure = new_figure(8.0, 0.9 + 0.2 * len(lines))
    panels: list[Axes] = list(figure.subplots(1, len(_SHOWN), sharey=True))
    places = {line: place for place, line in enumerate(lines)}
    for axes, (measure, (_, more_is_better)) in zip(panels, _SHOWN.items(), strict=True):
        axes.axvline(0.0, color="#555555", linewidth=0.8)
        for row in rows[(rows["measure"] == measure) & (rows["differ"] > 0)].to_dict("records"):
            is_better = (row["Δ"] > 0) == more_is_better
            color = _OPEN if row["clear"] != "yes" else _BETTER if is_better else _WORSE
            place = places[row["group"], row["contrast"]]
            axes.plot([row["from"], row["to"]], [place, place], color=color, linewidth=1.6)
            axes.plot([row["Δ"]], [place], "o", color=color, markersize=4)
        axes.set_title(f"{measure}\n{'more' if more_is_better else 'less'} is better", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    labels = [_short(contrast) if contrast else group.replace(" tasks", "") for group, contrast in lines]
    panels[0].set_yticks(range(len(lines)), labels)
    panels[0].set_ylim(len(lines) - 0.4, -0.8)
    for label, (_, contrast) in zip(panels[0].get_yticklabels(), lines, strict=True):
        label.set_fontweight("normal" if contrast else "bold")
    for color, text in ((_BETTER, "clearly better"), (_WORSE, "clearly worse"), (_OPEN, "not clear")):
        panels[-1].plot([], [], "o-", color=color, markersize=4, label=text)
    figure.legend(loc="outside lower right", ncols=3, fontsize=8, frameon=False)
    return figure
