"""Equations of motion from noisy trajectories, checked by integrating them."""

# %% Two runs of a predator and its prey, measured with 1 % of noise
import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

import sobolev_novelty as sn

rng = np.random.default_rng(0)
t = np.linspace(0.0, 10.0, 200)


def rates(_, x):
    return [1.3 * x[0] - 0.9 * x[0] * x[1], 0.7 * x[0] * x[1] - 1.1 * x[1]]


runs = []
for k, start in enumerate(([1.0, 0.5], [2.5, 1.0])):
    x = solve_ivp(rates, (0.0, 10.0), start, t_eval=t, rtol=1e-9).y.T
    x += 0.01 * np.sqrt(np.mean(x**2, axis=0)) * rng.standard_normal(x.shape)
    runs.append(pd.DataFrame({"t": t, "prey": x[:, 0], "hunter": x[:, 1], "run": k}))

# %% One equation per state
search = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=400), operators=("add", "sub", "mul"), random_state=0)
model = sn.DynamicsRegressor(search, trajectory="run").fit(pd.concat(runs))
print(model)
print(model.equations_.round(4).to_string(index=False))

# %% Another start, ten times as far
later = model.integrate(np.linspace(0.0, 100.0, 5), [2.0, 1.0])
print(later.round(3))

# %% What the data say of the terms
print(model.novelty_report("prey"))

# %% PySINDy with our optimizer: 1, sin² and cos² are dependent, and one of them is enough
try:
    from sobolev_novelty.dynamics.pysindy_optimizer import NoveltyOptimizer
except ImportError as error:
    print(error)
else:
    library = np.column_stack([np.ones_like(t), np.sin(t) ** 2, np.cos(t) ** 2])
    optimizer = NoveltyOptimizer().fit(library, 3.0 * np.sin(t) ** 2)
    print("coefficients of 1, sin², cos²:", optimizer.coef_.round(6)[0])
