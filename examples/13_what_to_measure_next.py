"""What to measure next: a search and `next_rows` in turn, with a simulated laboratory.

Balls fall through glycerol at 25 °C (0.934 Pa·s, 1258 kg/m³). The laboratory pulls a ball of one of six diameters at a
set speed and reads the drag to 2 % of its full scale. It follows Oseen: 3π η d v + (9/16) π ρ d² v². The first rows are
slow and small, where Stokes' law, and much else, fits as well.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import sobolev_novelty as sn

DIAMETERS = [2.0, 3.0, 5.0, 8.0, 10.0, 15.0]  # mm, as bearing balls are sold
SPEEDS = (0.02, 0.5)  # m/s, as far as the motor goes
rng = np.random.default_rng(4)


def measured(rows: pd.DataFrame) -> pd.Series:
    """Drag in mN: the simulated laboratory."""
    d, v = rows["d"], rows["v"]
    drag = 3.0 * np.pi * 0.934 * d * v + 0.5625 * np.pi * 1.258 * (d * v) ** 2
    return drag + 0.02 * 40.0 * rng.normal(size=len(rows))


def found(X: pd.DataFrame, y: pd.Series) -> sn.SymbolicRegressor:
    """A search of a second or two."""
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=1500), random_state=0).fit(X, y)
    print(f"\n{len(X)} rows: drag = {model.expression_.rounded(3)}")
    return model


X = pd.DataFrame({"d": rng.choice(DIAMETERS[:3], 12), "v": rng.uniform(0.02, 0.1, 12).round(3)})
y = measured(X)
for _ in range(5):
    model = found(X, y)
    rows = sn.next_rows(model, X, bounds={"v": SPEEDS}, levels={"d": DIAMETERS}, n=4, sigma=0.8)
    if rows.steps["leading"].iloc[0] > 5.0:  # the next best is five standard deviations away
        break
    print(rows)
    X, y = pd.concat([X, rows], ignore_index=True), pd.concat([y, measured(rows)], ignore_index=True)

# As many rows as the apparatus runs by itself, slow and small.
usual = pd.DataFrame({"d": rng.choice(DIAMETERS[:3], len(X)), "v": rng.uniform(0.02, 0.1, len(X)).round(3)})
found(usual, measured(usual))
