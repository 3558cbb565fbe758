"""Which equation is chosen, and why: prices in nats, noise that goes with the value, repeated rows.

A reaction rate over three decades of concentration, each measured twice with 3 % relative error.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from sobolev_novelty import SymbolicRegressor
from sobolev_novelty.search.loop.loop import Budget

rng = np.random.default_rng(3)
concentration = np.repeat(np.geomspace(0.01, 10.0, 40), 2)
rate = 4.2 * concentration / (0.7 + concentration) * (1.0 + 0.03 * rng.normal(size=80))
table = pd.DataFrame({"c": concentration})

model = SymbolicRegressor(budget=Budget(max_evaluations=2000), random_state=0)
model.fit(table, pd.Series(rate, name="rate"))

print(model.expression_.rounded(3))
print(model.reason_)
print(model.noise_)
print(model.choice_[["structure", "numbers", "rows", "findings", "behind", "expression"]].head(4).round(1).to_string())

# The noise of the fit goes on: intervals of the constants, and bands for a new measurement.
print(model.intervals())
prediction, low, high = model.intervals().band(pd.DataFrame({"c": [0.05, 5.0]}), observation=True)
print(np.round(np.c_[prediction, low, high], 3))

# Where you know the errors of the rows, say so.
known = SymbolicRegressor(budget=Budget(max_evaluations=2000), random_state=0)
print(known.fit(table, rate, sigma=0.03 * rate).reason_)
