"""A pretrained network proposes the equation, alone or as the start of another search (needs torch, no network)."""

# %%
import numpy as np

import sobolev_novelty as sn
from sobolev_novelty.engines.transformer.engine import Transformer
from sobolev_novelty.search.loop.loop import Budget

rng = np.random.default_rng(0)
X = rng.uniform(1.0, 3.0, (200, 3))
y = 2.5 * X[:, 0] / X[:, 1] + np.sin(X[:, 2])

# %% The network reads the table and writes formulas; their constants are fitted and the best is chosen.
model = sn.SymbolicRegressor("transformer", random_state=0).fit(X, y)
print(model.expression_)
print(model.n_evaluations_, "fits.", model.stop_reason_)

# %% More samples find more; each is a formula, so the time grows with them.
few = Transformer(n_samples=64)
print(sn.SymbolicRegressor(few, random_state=0).fit(X, y * X[:, 2]).equations_[["complexity", "loss", "expression"]])

# %% Its best fits as the start of the genetic engine, which goes on from there.
noisy = np.exp(-0.5 * X[:, 0] * X[:, 1]) + np.sqrt(X[:, 2] + X[:, 0]) + rng.normal(0.0, 0.01, 200)
seeded = sn.SymbolicRegressor("genetic", guesses="transformer", budget=Budget(max_evaluations=3000), random_state=0)
seeded.fit(X, noisy)
print(seeded.expression_)
print(seeded.stop_reason_)
