"""A benchmark of one's own: formulas, a method of one's own beside ours, a store that resumes, tables."""

# %% Formulas with the ranges of their inputs, in a file beside the experiment.
import os
import tempfile
from pathlib import Path

from sobolev_novelty.lab.bench.running.experiment import load_experiment
from sobolev_novelty.lab.bench.running.run import run
from sobolev_novelty.lab.bench.running.store import Store
from sobolev_novelty.lab.bench.showing.tables import results_table

folder = Path(tempfile.mkdtemp())
(folder / "hydraulics.toml").write_text("""
[manning]
formula = "R**(2/3) * sqrt(S) / n"
inputs = { R = [0.5, 5.0], S = [0.1, 2.0], n = [1.0, 3.0] }

[torricelli]
formula = "sqrt(2 * g * h)"
inputs = { g = [9.0, 10.0], h = [0.1, 4.0] }

[bernoulli]
formula = "p + rho * v**2 / 2 + rho * g * h"
inputs = { p = [1.0, 5.0], rho = [0.5, 2.0], v = [0.1, 3.0], g = [9.0, 10.0], h = [0.1, 2.0] }
""")

# %% A method: a function of the rows that gives an expression in x0, x1, … Each run has a process of its own.
(folder / "my_methods.py").write_text("""
import numpy as np
from sobolev_novelty import parse
from sobolev_novelty.lab.bench.running.methods import MethodResult

def power_law(X, y, *, seed, budget):
    design = np.column_stack([np.ones(len(y)), np.log(X)])
    scale, *powers = np.linalg.lstsq(design, np.log(y), rcond=None)[0]
    factors = [f"x{k}**{power:.6g}" for k, power in enumerate(powers)]
    return MethodResult(parse("*".join([f"{np.exp(scale):.6g}", *factors])), evaluations=1, sn_calls=0)
""")
os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])

# %% The experiment. On the command line: sobolev bench run hydraulics-run.toml --jobs 2
(folder / "hydraulics-run.toml").write_text("""
suite = "hydraulics.toml"
budget = 3.0
max_train_rows = 200

[methods.genetic]
[methods."genetic+novelty"]
[methods.linear]
[methods."power law"]
method = "my_methods:power_law"
""")
experiment = load_experiment(folder / "hydraulics-run.toml")
store = Store(folder / "hydraulics.sqlite")
summary = run(experiment, store, n_jobs=2)
print(f"{summary.ran} runs, {summary.statuses}")

# %% What is stored is never run again: kill a sweep at any moment and start it once more.
print("a second call runs", run(experiment, store).ran)

# %% The table: R² on the test part, nodes, novelty of the terms, laws found. Also as LaTeX and CSV.
print(results_table(store.frame(), experiment.suite).render())
print(store.frame().query("task == 'bernoulli'")[["method", "expression"]].to_string(index=False))
