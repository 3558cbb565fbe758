"""Different functions that come close to the chosen equation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.search.choose.choice import Choice

if TYPE_CHECKING:
    import pandas as pd

#: Nats behind the chosen equation up to which another is a rival: e⁵ is odds of 150 to one.
RIVAL_NATS = 5.0


def rivals(choice: Choice) -> pd.DataFrame:
    """The chosen equation and the different functions within :data:`RIVAL_NATS` of it, the best written of each.

    Equations are one function where their predictions in the box of the inputs differ by no more than
    :attr:`~sobolev_novelty.search.choose.choice.Choice.known`.

    Returns
    -------
    DataFrame
        complexity, behind (nats), difference (root mean square difference of the predictions in the box, in standard
        deviations of the target) and expression; the first row is the chosen equation.
    """
    import pandas as pd

    chosen, spread = choice.chosen, choice.rows.spread
    near = [p for p in choice.priced if p is not chosen and p.nats - chosen.nats <= RIVAL_NATS]
    kept = [chosen]
    values = dict(zip([id(p) for p in (chosen, *near)], choice.predictions([chosen, *near]), strict=True))

    def distance(p: object, q: object) -> float:
        with np.errstate(all="ignore"):
            left = float(np.sqrt(np.mean((values[id(p)] - values[id(q)]) ** 2)))
        return left if math.isfinite(left) else math.inf

    for p in near:
        if all(distance(p, q) > choice.known for q in kept):
            kept.append(p)
    return pd.DataFrame(
        {
            "complexity": [p.complexity for p in kept],
            "behind": [p.nats - chosen.nats for p in kept],
            "difference": [distance(p, chosen) / spread if p is not chosen else 0.0 for p in kept],
            "expression": [p.expression for p in kept],
        }
    )
