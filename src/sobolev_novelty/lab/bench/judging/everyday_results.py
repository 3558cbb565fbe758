"""What became of the everyday tables: whether the law was met, chosen, and could have been learnt.

The runs hold every equation that was priced (``table = true`` in the experiment), so that a price can be judged again
without a search. Judges are :mod:`sobolev_novelty.lab.bench.judging.yardstick` and the rows without noise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.yardstick import Measured, is_found, law_error
from sobolev_novelty.lab.bench.problems.everyday import (
    EVERYDAY,
    NOISES,
    EverydayTable,
    EverydayTask,
    drawn_table,
    everyday_task,
)
from sobolev_novelty.lab.bench.running.store import Store
from sobolev_novelty.language.parsing import parse

if TYPE_CHECKING:
    import pandas as pd

#: Task, seed, equation, and what the method stored.
Run = tuple[str, int, str, Mapping[str, Any]]
#: An error on rows without noise above this, in spreads of the target, is a catastrophe.
CATASTROPHE = 1.0


@dataclass(frozen=True, slots=True)
class Judged:
    """One run."""

    task: str
    law: str
    noise: str
    setting: str
    n_rows: int
    n_idle: int
    is_met: bool  # whether the law, constants apart, is among the equations that were priced
    is_on_front: bool  # whether it is in ``equations_``
    is_chosen: bool
    is_learnable: bool  # by the yardstick, among the equations that were priced
    is_law_cheaper: bool  # whether the law, refitted, is better than the chosen equation by the yardstick
    has_idle: bool  # whether the chosen equation has an idle column
    #: Whether another row of ``equations_`` has a lower loss and no more nodes, or the other way round.
    is_dominated: bool
    is_finite: bool  # whether its predictions are finite at all new rows within the box of the inputs
    error: float  # its root mean square error there, in spreads of the target


def judged(suite: str, name: str, seed: int, chosen: str, extra: Mapping[str, Any]) -> Judged:
    """The judgement of one run.

    ``chosen``: the equation, in the names ``x0, x1, …``.
    ``extra``: what the method stored: ``front``, ``front_loss`` and ``priced``.
    """
    task = everyday_task(suite, name)
    table = drawn_table(task, seed)
    columns = {own: f"x{k}" for k, own in enumerate(table.columns)}
    law = parse(task.law.formula).rename(columns)
    own, front = parse(chosen), [parse(text) for text in extra["front"]]
    met = list(dict.fromkeys([own, *front, *(parse(text) for text in extra["priced"])]))
    are_law = {e: _is_law(e, law, task, table) for e in met}
    measured = Measured(table.X, table.y, lambda values: task.sigma(values, table.spread))
    ruler = {e: measured.yardstick(e) for e in met}
    least = measured.yardstick(law)
    inside = ((table.X_test >= table.X.min(axis=0)) & (table.X_test <= table.X.max(axis=0))).all(axis=1)
    with np.errstate(all="ignore"):
        left = (evaluate(own, table.X_test) - table.y_test)[inside]
    error = float(np.sqrt(np.mean(left**2))) / table.spread if len(left) else 0.0
    sizes = [(e.complexity, loss) for e, loss in zip(front, extra["front_loss"], strict=True)]
    here = next((size for e, size in zip(front, sizes, strict=True) if e == own), None)
    return Judged(
        name, task.law.name, task.noise, task.setting, task.n_rows, task.n_idle,
        is_met=any(are_law.values()), is_on_front=any(are_law[e] for e in (*front, own)), is_chosen=are_law[own],
        is_learnable=all(ruler[e] > least for e in met if not are_law[e]), is_law_cheaper=least < ruler[own],
        has_idle=any(name.startswith("idle_") and x in own.variables for name, x in columns.items()),
        is_dominated=here is not None and any(s != here and s[0] <= here[0] and s[1] <= here[1] for s in sizes),
        is_finite=bool(np.isfinite(left).all()), error=error if math.isfinite(error) else math.inf,
    )  # fmt: skip


def _is_law(e: Expression, law: Expression, task: EverydayTask, table: EverydayTable) -> bool:
    error = law_error(e, table.X_test, table.y_test, is_relative=task.is_relative, spread=table.spread)
    return is_found(e, law, table.X_test, error, noise=NOISES[task.noise], n_rows=task.n_rows)


def stored_runs(path: Path) -> tuple[str, list[Run]]:
    """The suite of a store and its runs, as :func:`all_judged` takes them."""
    source = Store(path, read_only=True)
    suite = str(source.settings().get("suite", ""))
    if suite not in EVERYDAY:
        raise ParameterError(f"'store' must hold runs of {' or '.join(EVERYDAY)}. '{path}' has the suite '{suite}'.")
    rows = source.frame().to_dict("records")
    done = [row for row in rows if row["status"] == "done"]
    found = [(str(r["task"]), int(r["seed"]), str(r["expression"]), json.loads(r["extra"])) for r in done]
    if any("priced" not in extra for *_, extra in found):
        raise ParameterError(f"'store' lacks what was priced: '{path}'. Run its experiment with 'table = true'.")
    return suite, found


def all_judged(suite: str, runs: Sequence[Run], n_jobs: int = 1) -> list[Judged]:
    """The judgements of runs ``(task, seed, equation, extra)``."""
    columns = ([suite] * len(runs), *zip(*runs, strict=True))
    if n_jobs == 1:
        return list(map(judged, *columns))
    with ProcessPoolExecutor(n_jobs) as pool:
        return list(pool.map(judged, *columns, chunksize=8))


#: Prices that are judged again on what was priced: factors of structure, numbers and findings.
ABLATIONS = {
    "the price": (1.0, 1.0, 1.0),
    "structure at half": (0.5, 1.0, 1.0),
    "structure at twice": (2.0, 1.0, 1.0),
    "numbers for nothing": (1.0, 0.0, 1.0),
    "without findings": (1.0, 1.0, 0.0),
}


def ablated(suite: str, name: str, seed: int, chosen: str, extra: Mapping[str, Any]) -> dict[str, Judged]:
    """What each of the changed prices would have chosen of the same equations, judged."""
    nats, found, known = extra["nats"], {}, {}
    columns = [np.array(nats[part], dtype=float) for part in ("structure", "numbers", "findings", "rows")]
    for word, factors in ABLATIONS.items():
        total = sum(f * column for f, column in zip((*factors, 1.0), columns, strict=True))
        best = extra["priced"][int(np.nanargmin(total))]
        if best not in known:
            known[best] = judged(suite, name, seed, best, {**extra, "front": [best], "front_loss": [0.0]})
        found[word] = known[best]
    return found


def ablation_table(suite: str, runs: Sequence[Run], n_jobs: int = 1) -> str:
    """The figures of each changed price, as a table of a page."""
    columns = ([suite] * len(runs), *zip(*runs, strict=True))
    with ProcessPoolExecutor(n_jobs) as pool:
        found = list(pool.map(ablated, *columns, chunksize=8))
    lines = ["| price | law chosen | of the learnable and met | not finite | worse than a spread | idle column |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for word in ABLATIONS:
        own = [one[word] for one in found]
        learnable = [j for j in own if j.is_met and j.is_learnable]
        idle = [j for j in own if j.n_idle]
        lines.append(
            f"| {word} | {_share(sum(j.is_chosen for j in own), len(own))} | "
            f"{_share(sum(j.is_chosen for j in learnable), len(learnable))} | {sum(not j.is_finite for j in own)} | "
            f"{sum(not j.error <= CATASTROPHE for j in own)} | {_share(sum(j.has_idle for j in idle), len(idle))} |"
        )
    return "\n".join(lines)


def summary(found: Sequence[Judged]) -> dict[str, Any]:
    """The figures of a table of judgements: shares, and the numbers of tables they rest on."""
    met = [j for j in found if j.is_met]
    front = [j for j in found if j.is_on_front]
    learnable = [j for j in met if j.is_learnable]
    decades = [j for j in found if j.task.endswith("relative1-n200-idle0-decades")]
    with_idle = [j for j in found if j.n_idle]
    worst = max((j.error for j in found), default=math.nan)
    return {
        "tables": len(found),
        "law priced": len(met),
        "law in equations_": len(front),
        "law chosen": sum(j.is_chosen for j in found),
        "chosen / in equations_": _share(sum(j.is_chosen for j in front), len(front)),
        "learnable and met": len(learnable),
        "of these chosen": _share(sum(j.is_chosen for j in learnable), len(learnable)),
        "not finite in the box": sum(not j.is_finite for j in found),
        "worst error, spreads": worst,
        "worse than one spread": sum(not j.error <= CATASTROPHE for j in found),
        "median error, spreads": float(np.median([j.error for j in found])) if found else math.nan,
        "dominated row chosen": sum(j.is_dominated for j in found),
        "idle column in it": _share(sum(j.has_idle for j in with_idle), len(with_idle)),
        "three decades, 200 rows, 1 %": _share(sum(j.is_chosen for j in decades), len(decades)),
        "search failures": sum(not j.is_met and j.is_law_cheaper for j in found),
        "choice failures": sum(not j.is_chosen for j in learnable),
    }


def _share(n: int, of: int) -> str:
    return f"{n} of {of} ({100.0 * n / of:.1f} %)" if of else "0 of 0"


def judged_frame(found: Sequence[Judged]) -> pd.DataFrame:
    """One row for each run."""
    import pandas as pd

    return pd.DataFrame([{f.name: getattr(j, f.name) for f in fields(Judged)} for j in found])
