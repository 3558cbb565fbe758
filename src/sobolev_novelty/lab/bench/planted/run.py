"""Run the planted-terms benchmark, store it, and make its table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from sobolev_novelty.core.progress import OnProgress, silent, tracked
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.planted.planted import KINDS, NOISES, ROWS, cases
from sobolev_novelty.lab.bench.planted.scores import METHODS, scores
from sobolev_novelty.lab.bench.problems.tasks import Task
from sobolev_novelty.lab.evidence.origin import circumstances

#: Resamples of the laws for the intervals of the table.
N_RESAMPLES = 1000
_FORMAT = 1


def run_planted(tasks: Sequence[Task], *, seed: int = 0, on_progress: OnProgress = silent) -> dict[str, Any]:
    """Every law with every planted term; ready for JSON.

    Each stored case has the scores of its terms by method, the planted term last.
    """
    rows = []
    for task in tracked(tasks, on_progress, "laws"):
        for n_rows in ROWS:
            for noise in NOISES:
                for case in cases(task, n_rows, noise, seed):
                    found = scores(case)
                    rows.append(
                        {
                            "law": case.law, "kind": case.kind, "rows": n_rows, "noise": noise,
                            "planted": str(case.terms[-1]),
                            "scores": {method: [_stored(value) for value in found[method]] for method in METHODS},
                        }
                    )  # fmt: skip
    return {"format": _FORMAT, "seed": seed, **circumstances(), "cases": rows}


def load_planted(path: Path) -> dict[str, Any]:
    """What :func:`run_planted` gave, from its file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"There is no file '{path}'. Make it with 'sobolev bench planted'.") from error
    except ValueError as error:
        raise DataError(f"'{path}' is not JSON: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(f"'{path}' does not hold planted terms. Make it with 'sobolev bench planted'.")
    return content


def planted_table(content: dict[str, Any], *, plain_only: bool = False, n_resamples: int = N_RESAMPLES) -> pd.DataFrame:
    """Area under the ROC curve of every method, by kind and overall, with 95 % intervals over laws.

    The laws are resampled alike for all methods; ``<kind> lead`` is the lower bound of the verdict's lead over one.

    ``plain_only``: only cases whose planted term is written without decimals: it brings no fitted constants.
    """
    found = [case for case in content["cases"] if not plain_only or "." not in case["planted"]]
    lines: dict[str, dict[str, Any]] = {method: {"method": method} for method in METHODS}
    for kind in (*KINDS, "overall"):
        chosen = [case for case in found if kind in (case["kind"], "overall")]
        draws = {method: _areas(chosen, method, n_resamples) for method in METHODS}
        for method, own in draws.items():
            lower, upper = np.quantile(own[1:], [0.025, 0.975])
            lead = float(np.quantile((draws[METHODS[0]] - own)[1:], 0.025))
            lines[method] |= {kind: own[0], f"{kind} lower": lower, f"{kind} upper": upper, f"{kind} lead": lead}
    return pd.DataFrame(list(lines.values()))


def _areas(chosen: Sequence[dict[str, Any]], method: str, n_resamples: int) -> FloatArray:
    """The area, then those of resampled laws: the same resamples for every method."""
    laws = sorted({case["law"] for case in chosen})
    if len(laws) < 2:
        return np.full(1 + n_resamples, np.nan)
    place = {law: k for k, law in enumerate(laws)}
    score = np.array([_read(value) for case in chosen for value in case["scores"][method]])
    sizes = [len(case["scores"][method]) for case in chosen]
    is_planted = np.zeros(len(score), dtype=bool)
    is_planted[np.cumsum(sizes) - 1] = True
    law = np.repeat([place[case["law"]] for case in chosen], sizes)
    rng = np.random.default_rng(0)
    draws = (np.bincount(rng.integers(0, len(laws), len(laws)), minlength=len(laws))[law] for _ in range(n_resamples))
    return np.array([area(score, is_planted), *(area(score, is_planted, weights) for weights in draws)])


def area(
    score: FloatArray, is_planted: npt.NDArray[np.bool_], weights: npt.NDArray[np.integer[Any]] | None = None
) -> float:
    """Chance that a true term scores above a planted one; ties count half."""
    w = np.ones(len(score)) if weights is None else weights.astype(np.float64)
    _, place = np.unique(score, return_inverse=True)
    true = np.bincount(place, weights=w * ~is_planted)
    false = np.bincount(place, weights=w * is_planted)
    below = np.cumsum(false) - false
    total = float(true.sum() * false.sum())
    return float((true * (below + 0.5 * false)).sum() / total) if total > 0.0 else float("nan")


def render_planted(table: pd.DataFrame) -> str:
    """The table as Markdown: area and interval; ° marks what the verdict clearly leads, at 95 %."""
    kinds = [*KINDS, "overall"]
    head = ["method", *kinds]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * len(kinds)]
    for row in table.to_dict("records"):
        lines.append(f"| {row['method']} | " + " | ".join(_cell(row, kind) for kind in kinds) + " |")
    return "\n".join(lines).replace("|t|", "\\|t\\|") + "\n"


def _cell(row: dict[Any, Any], kind: str) -> str:
    if np.isnan(row[kind]):
        return "–"
    mark = "°" if row[f"{kind} lead"] > 0.0 else ""
    return f"{row[kind]:.3f}{mark} ({row[f'{kind} lower']:.3f}–{row[f'{kind} upper']:.3f})"


def _stored(value: float) -> float | str:
    """Six digits; JSON has no infinity."""
    number = float(value)
    return float(f"{number:.6g}") if np.isfinite(number) else str(number)


def _read(value: float | str) -> float:
    number = float(value)
    return number if not np.isnan(number) else 0.0
