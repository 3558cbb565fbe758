"""A table and an equation for whoever has none at hand: a swing over a narrow range, three terms that do one job."""

from __future__ import annotations

import numpy as np

from sobolev_novelty.tables.files import Table
from sobolev_novelty.ui.app.workspace import Question
from sobolev_novelty.ui.demo import BLOATED


def example_table() -> Table:
    """400 rows of a damped swing with one percent of noise."""
    import pandas as pd

    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-1.0, 1.0, 400))
    y = 2.4 * np.sin(x) + 0.8 * np.cos(2.0 * x) + rng.normal(0.0, 0.02, 400)
    return Table(pd.DataFrame({"x": x, "y": y}), "example.csv")


def example_question() -> Question:
    """The equation of the demonstration."""
    return Question(BLOATED, "y")
