"""Different functions that come close to the chosen equation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.search.choose.choice import Choice, Priced

if TYPE_CHECKING:
    import pandas as pd

#: Nats behind the chosen equation up to which another is a rival: e⁵ is odds of 150 to one.
RIVAL_NATS = 5.0


def rivals(choice: Choice) -> pd.DataFrame:
    """The chosen equation and the different functions within :data:`RIVAL_NATS` of it, the best written of each.

    Equations are one function where their predictions in the box of the inputs and at the rows differ by no more than
    :attr:`~sobolev_novelty.search.choose.choice.Choice.known`. The column ``difference`` is the root mean square
    difference of these predictions from the chosen ones, in standard deviations of the target.
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
