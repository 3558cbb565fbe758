"""Why a law was not chosen: the search, the choice, or the rows.

*Search failure*: the law, refitted, is better than the chosen equation by the yardstick, and was never met. *Choice
failure*: it was met and passed over, although nothing that was met is better by the yardstick. *Unlearnable*: something
that is not the law is the better account of these rows for everybody who knows the noise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.bench.judging.everyday_results import all_judged, stored_runs
from sobolev_novelty.lab.bench.judging.yardstick import Measured, is_found, law_error
from sobolev_novelty.lab.bench.problems.everyday import EVERYDAY
from sobolev_novelty.lab.bench.problems.suites import task_data
from sobolev_novelty.lab.bench.running.store import Store
from sobolev_novelty.language.parsing import parse

KINDS = ("chosen", "search failure", "choice failure", "unlearnable")
#: Noise that counts as none: the yardstick needs a size.
LEAST_NOISE = 1e-6
#: Rows on which equations are compared by the yardstick, and equations that are.
MAX_ROWS, MAX_MET = 2000, 30


def kind_of(*, is_chosen: bool, is_met: bool, is_learnable: bool, is_law_cheaper: bool) -> str:
    """The kind of one run.

    >>> kind_of(is_chosen=False, is_met=False, is_learnable=True, is_law_cheaper=True)
    'search failure'
    """
    if is_chosen:
        return KINDS[0]
    if is_met:
        return KINDS[2] if is_learnable else KINDS[3]
    return KINDS[1] if is_law_cheaper else KINDS[3]


def failures_of(path: Path, n_jobs: int = 1) -> list[dict[str, Any]]:
    """One row for each method and level of noise of a store: runs of each kind."""
    source = Store(path, read_only=True)
    suite = str(source.settings().get("suite", "whitebox"))
    if suite in EVERYDAY:
        found = [
            ("genetic+novelty", j.noise, kind_of(
                is_chosen=j.is_chosen, is_met=j.is_met, is_learnable=j.is_learnable, is_law_cheaper=j.is_law_cheaper
            )) for j in all_judged(*stored_runs(path), n_jobs)
        ]  # fmt: skip
        return _counted(path.stem, found)
    rows = [row for row in source.frame().to_dict("records") if row["status"] == "done"]
    runs = [
        (suite, str(r["task"]), int(r["seed"]), float(r["noise"]), str(r["expression"]), json.loads(r["extra"]))
        for r in rows
    ]
    if not runs or any("priced" not in run[-1] for run in runs):
        raise ParameterError(f"'store' lacks what was priced: '{path}'. Run its experiment with 'table = true'.")
    if n_jobs == 1:
        kinds = [_kind(run) for run in runs]
    else:
        with ProcessPoolExecutor(n_jobs) as pool:
            kinds = list(pool.map(_kind, runs, chunksize=4))
    return _counted(path.stem, [(str(r["method"]), f"{r['noise']:g}", k) for r, k in zip(rows, kinds, strict=True)])


def _kind(run: tuple[str, str, int, float, str, Mapping[str, Any]]) -> str:
    suite, name, seed, noise, chosen, extra = run
    data = task_data(name, seed, noise=noise, suite=suite)
    law, own = data.truth, parse(chosen)
    if law is None:
        raise ParameterError(f"'suite' must be one of laws. '{suite}' has no law for '{name}'.")
    size = noise * math.sqrt(float(np.mean(data.y_train**2)))
    spread = float(np.std(data.y_test)) or 1.0
    some = np.unique(np.linspace(0, len(data.y_train) - 1, MAX_ROWS).astype(np.intp))
    sigma = max(size, LEAST_NOISE * spread)
    measured = Measured(data.X_train[some], data.y_train[some], lambda values: np.full(len(values), sigma))
    met = list(dict.fromkeys([own, *(parse(text) for text in extra["priced"][:MAX_MET])]))
    are_law = {}
    for e in met:
        error = law_error(e, data.X_test, data.y_test, is_relative=False, spread=spread)
        are_law[e] = is_found(e, law, data.X_test, error, noise=sigma / spread, n_rows=len(data.y_train))
    if are_law[own]:
        return KINDS[0]
    least = measured.yardstick(law)
    is_learnable = all(measured.yardstick(e) > least for e in met if not are_law[e])
    is_met = any(are_law.values())
    return kind_of(
        is_chosen=False, is_met=is_met, is_learnable=is_learnable, is_law_cheaper=least < measured.yardstick(own)
    )


def _counted(name: str, found: Sequence[tuple[str, str, str]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for method, noise, kind in found:
        groups.setdefault((method, noise), []).append(kind)
    return [
        {"store": name, "method": method, "noise": noise, "runs": len(kinds)} | {k: kinds.count(k) for k in KINDS}
        for (method, noise), kinds in sorted(groups.items())
    ]


def rendered(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a table of a page."""
    head = ("store", "method", "noise", "runs", *KINDS)
    lines = [
        f"| {' | '.join(str(row[name]) if name not in KINDS else _share(row[name], row['runs']) for name in head)} |"
        for row in rows
    ]
    return "\n".join([f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |", *lines])


def _share(n: int, of: int) -> str:
    return f"{n} ({100.0 * n / of:.1f} %)"
