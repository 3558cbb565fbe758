"""One Markdown page with every table and figure that stored runs give, for the docs or a supplement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev_novelty.core.output import write_whole
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.running.store import Store
from sobolev_novelty.lab.bench.showing.gap import MIN_R2
from sobolev_novelty.lab.bench.showing.tables import (
    BenchTable,
    ablation_table,
    difference_table,
    guided_pairs,
    qualification_table,
    results_table,
    rows_at,
    suite_title,
)
from sobolev_novelty.lab.evidence.origin import Origin, engine_notes, source_name

if TYPE_CHECKING:
    import pandas as pd


def write_page(sources: Sequence[str | Path], out: str | Path) -> list[Path]:
    """Write the page and its figures beside it.

    ``sources``: stores (``.sqlite``), and results of ``sobolev bench gap --json`` (``.json``), in the order of the
    page.
    ``out``: the Markdown file. Figures are called ``<stem>_<store>.svg``.

    Returns everything written.
    """
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    parts = [f"# Results\n\nMade by `sobolev bench page`; no number is copied by hand.\n\n{_command(sources, out)}\n"]
    for source in map(Path, sources):
        figure = out.with_name(f"{out.stem}_{source.stem}.svg")
        if source.suffix == ".json":
            parts.append(_gap_part(source, figure))
        else:
            parts.append(_store_part(source, figure))
        if f"({figure.name})" in parts[-1]:
            written.append(figure)
    write_whole(out, "\n".join(parts))
    return [out, *written]


def _command(sources: Sequence[str | Path], out: Path) -> str:
    return f"```\nsobolev bench page {' '.join(str(source) for source in sources)} --out {out}\n```"


def _store_part(path: Path, figure: Path) -> str:
    from sobolev_novelty.lab.bench.showing.figures import derivative_ablation, rank_plane, save_figure

    store = Store(path, read_only=True)
    settings, frame = store.settings(), store.frame()
    if frame.empty:
        raise DataError(f"'{path}' has no finished rows. Run the experiment first.")
    suite = str(settings.get("suite", "whitebox"))
    lines = [f"## {suite_title(suite)}: {path.stem}", "", _circumstances(settings, frame), ""]
    if any("," in method for method in frame["method"].unique()):
        save_figure(derivative_ablation(frame), figure)
        return "\n".join([*lines, _marked(ablation_table(frame), frame), _image(figure, "Derivative ablation")])
    for noise in sorted(frame["noise"].unique()):
        rows = rows_at(frame, noise)
        lines.append(_marked(results_table(rows, suite, noise=noise), rows))
        if guided_pairs(rows["method"].unique()):
            lines.append(_marked(difference_table(rows, suite, noise=noise), rows))
    if suite in ("whitebox", "blackbox") and 0.0 in set(frame["noise"]):
        save_figure(rank_plane(frame, suite), figure)
        lines.append(_image(figure, "Accuracy against complexity, ranks and Pareto tiers"))
    return "\n".join(lines)


def _marked(table: BenchTable, rows: pd.DataFrame) -> str:
    """The table with a note on the rows that the present engine did not make."""
    return replace(table, notes=(*table.notes, *engine_notes(_origins(rows)))).render()


def _origins(rows: pd.DataFrame) -> list[Origin]:
    def text(value: object) -> str | None:
        return value if isinstance(value, str) else None

    return [(text(e), text(c), text(v)) for e, c, v in zip(rows["engine"], rows["commit"], rows["version"])]


def _circumstances(settings: dict[str, Any], frame: pd.DataFrame) -> str:
    sources = sorted({source_name(commit, version) for _, commit, version in _origins(frame)})
    seeds = ", ".join(str(seed) for seed in sorted(frame["seed"].unique()))
    limits = (
        f"{settings.get('budget', '?')} seconds per run, at most {settings.get('max_train_rows', '?')} training rows"
    )
    return (
        f"{frame['task'].nunique()} tasks, seeds {seeds}, {limits}, one core. {len(frame)} runs; {', '.join(sources)}."
    )


def _gap_part(path: Path, figure: Path) -> str:
    import pandas as pd

    from sobolev_novelty.lab.bench.showing.figures import novelty_against_complexity, save_figure

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        table = pd.DataFrame(content["methods"])
        coordinates, refusals = content["coordinates"], content["refusals"]
        suite, min_r2 = content.get("suite", "whitebox"), content.get("min_r2", MIN_R2)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"'{path}' was not written by 'sobolev bench gap --json': {error!r}.") from error
    save_figure(novelty_against_complexity(table), figure)
    shown = qualification_table(table, coordinates=coordinates, suite=suite, min_r2=min_r2)
    lines = [f"## Structural gap: {path.stem}", "", shown.render()]
    lines += [f"- refused {count} ×: {reason}" for reason, count in refusals.items()]
    return "\n".join([*lines, "", _image(figure, "Novelty against complexity")])


def _image(path: Path, words: str) -> str:
    return f"![{words}]({path.name})\n"
