"""Data in, equation out: the regressor, its front, what the signal adds, and how to keep the result."""

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import sobolev_novelty as sn

rng = np.random.default_rng(0)
table = pd.DataFrame(
    {
        "mass": rng.uniform(1, 5, 300),
        "speed": rng.uniform(1, 2, 300),
        "light": rng.uniform(3, 10, 300),
        "lab temperature": rng.normal(20, 1, 300),  # has nothing to do with it
    }
)
energy = table["mass"] * table["light"] ** 2 / np.sqrt(1 - (table["speed"] / table["light"]) ** 2)

# %% An equation in the names of the columns. With a budget in evaluations the result is the same on every machine.
budget = sn.Budget(max_evaluations=1500)
model = sn.SymbolicRegressor(budget=budget, random_state=0).fit(table, energy)
print(model.expression_)
print(model.stop_reason_, f"{model.n_evaluations_} evaluations, {model.n_novelty_calls_} novelty calls.")

# %% The front: from the roughest to the best, each with the lowest novelty of its terms.
print(model.equations_[["complexity", "loss", "score", "min_novelty", "expression"]].to_string(index=False))

# %% Anything of it can be used: predictions, LaTeX, SymPy, the report of its terms.
print("rough, first row:", round(float(model.predict(table, index=0)[0]), 2), "measured:", round(float(energy[0]), 2))
print(model.latex())
print(model.sympy())
print(model.novelty_report().table[["term", "novelty", "qualified"]].to_string(index=False))

# %% The same search without the signal, on noisy data: one argument.
noisy = energy * (1 + 0.02 * rng.normal(size=300))
for novelty in (False, True):
    found = sn.SymbolicRegressor(novelty=novelty, budget=budget, random_state=0).fit(table, noisy)
    lowest = found.novelty_report().nu.min()
    print(f"novelty={novelty}: R² {found.score(table, energy):.5f}, lowest novelty {lowest:.2f}, {found.expression_}")

# %% A guess of one's own is fitted first; a model is kept as JSON, with equations as text and no code.
guess = sn.SymbolicRegressor(guesses=["mass*light**2"], budget=sn.Budget(max_evaluations=1)).fit(table, energy)
print("the guess:", guess.expression_)
with tempfile.TemporaryDirectory() as folder:
    model.plot().savefig(Path(folder) / "front.png")  # the front as a picture
    path = Path(folder) / "energy.json"
    model.save(path)
    again = sn.SymbolicRegressor.load(path)
print("loaded:", again.expression_)
