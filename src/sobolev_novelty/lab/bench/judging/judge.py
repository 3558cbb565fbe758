"""How a found expression is judged: the same code for every method."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.exact import exact_solution
from sobolev_novelty.lab.bench.judging.terms import is_law, term_scores
from sobolev_novelty.lab.bench.problems.suites import TaskData, r_squared
from sobolev_novelty.metric.batch import novelties

#: Training rows on which novelty is measured; the first ones of the split, so the same for all methods of a task and
#: seed.
NOVELTY_ROWS = 2000
#: Below this test R² no expression is the truth up to rounding, and the symbolic check is not tried.
EXACT_R2 = 0.99


def assess_fit(expression: Expression, part: TaskData) -> dict[str, Any]:
    """R² on both parts; ``None`` where a prediction is not finite."""
    return {
        "r2_train": r_squared(part.y_train, evaluate(expression, part.X_train)),
        "r2_test": r_squared(part.y_test, evaluate(expression, part.X_test)),
    }


def assess_novelty(expression: Expression, part: TaskData) -> dict[str, Any]:
    """Novelty of every term on the training inputs, as JSON, or the reason why there is none."""
    found = novelties([expression], part.X_train[:NOVELTY_ROWS])[0]
    nu = found.nu.tolist() if found.status is Status.OK else []
    return {"novelties": json.dumps(nu), "novelty_status": found.status.value}


def assess_exactness(expression: Expression, part: TaskData) -> dict[str, Any]:
    """Whether the expression is the truth; nothing for tasks without one.

    Where there are rows beyond the data, noise is part of the task: the form is judged, and which terms were found.
    """
    if part.truth is None:
        return {}
    if part.X_far is not None:
        has, note = is_law(expression, part.truth, part.X_test)
        scores = term_scores(expression, part.truth, part.X_test, part.X_far)
        return {"exact_numeric": int(has), "exact_note": note, "terms": json.dumps(asdict(scores))}
    r2 = r_squared(part.y_test, evaluate(expression, part.X_test))
    if r2 is None or r2 < EXACT_R2:
        return {"exact_numeric": 0, "exact_symbolic": 0, "exact_note": f"Test R² is below {EXACT_R2}."}
    verdict = exact_solution(expression, part.truth, part.X_test)
    return {
        "exact_numeric": int(verdict.numeric),
        "exact_symbolic": None if verdict.symbolic is None else int(verdict.symbolic),
        "exact_note": verdict.note,
    }
