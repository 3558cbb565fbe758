"""What the rows of a search say of each term of an equation, in a table that goes into the model's file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sobolev_novelty.core.digits import short_numbers
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.report.reporting import novelty

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("term", "distinct", "needed", "determined")
COLUMNS = (
    "term", "coefficient", "low", "high", "novelty", "qualified", "distinct", "nu_free", "needed", "loss", "determined",
)  # fmt: skip


def term_verdicts(expression: Expression, sample: Sample, y: FloatArray, weights: FloatArray | None) -> pd.DataFrame:
    """One row per additive term, with the columns :data:`COLUMNS`."""
    found = novelty(expression, sample, y, sample_weight=weights, max_terms=None).table
    return found.assign(term=[short_numbers(text) for text in found["term"]]).reindex(columns=list(COLUMNS))


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
    table = pd.DataFrame([{name: row[name] for name in COLUMNS} for row in rows], columns=list(COLUMNS))
    table = table.astype({name: float for name in COLUMNS if name not in (*TEXTS, "qualified")})
    return table.fillna({"low": -math.inf, "high": math.inf})
