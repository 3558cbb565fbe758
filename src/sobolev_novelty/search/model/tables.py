"""Tables of a fitted model, and how its file holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.digits import short_numbers
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.metric.batch import novelties
from sobolev_novelty.report.reporting import novelty
from sobolev_novelty.search.choose.choice import Choice, Priced
from sobolev_novelty.search.contract.engine import Candidate

if TYPE_CHECKING:
    import pandas as pd

#: Columns of a table of verdicts, and those of them that are words.
VERDICTS = (
    "term", "coefficient", "low", "high", "novelty", "qualified", "distinct", "nu_free", "needed", "loss", "determined",
)  # fmt: skip
TEXTS = ("term", "distinct", "needed", "determined")
#: Nats behind the chosen equation up to which another is a rival: e⁵ is odds of 150 to one.
RIVAL_NATS = 5.0


def equations_table(found: Sequence[Candidate], losses: Sequence[float], sample: Sample) -> pd.DataFrame:
    """The columns of ``equations_``, one row for each candidate; novelties are those on the rows of the search."""
    import pandas as pd

    own = novelties([candidate.expression for candidate in found], sample)
    return pd.DataFrame(
        {
            "complexity": candidate.complexity,
            "loss": loss,
            "score": candidate.score,
            "min_novelty": float(np.min(n.nu)) if n.status is Status.OK else math.nan,
            "mean_novelty": float(np.mean(n.nu)) if n.status is Status.OK else math.nan,
            "expression": candidate.expression,
            "chosen": False,
        }
        for candidate, loss, n in zip(found, losses, own, strict=True)
    )


def equation_at(equations: pd.DataFrame, index: int) -> Expression:
    """The equation of a row of ``equations_``."""
    if not -len(equations) <= index < len(equations):
        raise ParameterError(f"'index' must be a row of equations_, 0 to {len(equations) - 1}. Got {index}.")
    found: Expression = equations["expression"].iloc[index]
    return found


def choice_table(choice: Choice) -> pd.DataFrame:
    """``choice_``: one row for each equation, the cheapest first."""
    import pandas as pd

    return pd.DataFrame(
        {
            "complexity": p.complexity,
            "structure": p.price.structure,
            "numbers": p.price.numbers,
            "rows": p.price.rows,
            "findings": p.price.findings,
            "behind": p.nats - choice.chosen.nats,
            "found": " ".join(finding.sentence for finding in p.found or ()),
            "expression": p.expression,
            "chosen": p is choice.chosen,
        }
        for p in choice.priced
    )


def rivals_table(choice: Choice) -> pd.DataFrame:
    """The chosen equation and the different functions within :data:`RIVAL_NATS` of it, the best written of each.

    Equations are one function where their predictions in the box of the inputs and at the rows differ by no more than
    :attr:`Choice.known`. The column ``difference`` is the root mean square difference of these predictions from the
    chosen ones, in standard deviations of the target.
    """
    import pandas as pd

    chosen, rows = choice.chosen, choice.rows
    near = [chosen, *(p for p in choice.priced if p is not chosen and p.nats - chosen.nats <= RIVAL_NATS)]
    places = Sample(np.hstack([rows.box.X, rows.sample.X]), rows.names)
    kept: list[tuple[Priced, FloatArray]] = []
    for p, own in zip(near, values([p.expression for p in near], places), strict=True):
        if all(_distance(own, other) > choice.known for _, other in kept):
            kept.append((p, own))
    return pd.DataFrame(
        {
            "complexity": p.complexity,
            "behind": p.nats - chosen.nats,
            "difference": _distance(own, kept[0][1]) / rows.spread if p is not chosen else 0.0,
            "expression": p.expression,
        }
        for p, own in kept
    )


def _distance(p: FloatArray, q: FloatArray) -> float:
    with np.errstate(all="ignore"):
        left = float(np.sqrt(np.mean((p - q) ** 2)))
    return left if math.isfinite(left) else math.inf


def verdicts_table(expression: Expression, rows: Rows) -> pd.DataFrame:
    """What rows say of each additive term of an equation, with the columns :data:`VERDICTS`."""
    found = novelty(expression, rows.sample, rows.y, sample_weight=rows.weights, max_terms=None).table
    return found.assign(term=[short_numbers(text) for text in found["term"]]).reindex(columns=list(VERDICTS))


def verdicts_to_dicts(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON holds them; what is not finite is ``None``."""
    return [
        {
            str(name): None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.to_dict("records")
    ]


def verdicts_from_dicts(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The table that :func:`verdicts_to_dicts` was given; an open end is infinite again."""
    import pandas as pd

    for row in rows:
        if not all(isinstance(row[name], str | None) for name in TEXTS):
            raise TypeError("the words of a verdict must be texts")
    table = pd.DataFrame([{name: row[name] for name in VERDICTS} for row in rows], columns=list(VERDICTS))
    table = table.astype({name: float for name in VERDICTS if name not in (*TEXTS, "qualified")})
    return table.fillna({"low": -math.inf, "high": math.inf})
