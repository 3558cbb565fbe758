"""From data to a velocity field: a closure for periodic-hill flow, selected, run and compared with DNS."""

# %%
import numpy as np

from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.selection import Greedy, SobolevGuided, backward, forward
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver
from sobolev_novelty.lab.turbulence.solving.problem import closure_problem, closure_report
from sobolev_novelty.lab.turbulence.studying.measures import measure

# %% One factorisation of 273 tensor terms serves both rules.
data = hill.load_regression()
problem = closure_problem(data)
for rule in (Greedy(), SobolevGuided()):
    path = forward(problem, 24, rule)
    kept = backward(problem, path.indices, 10)
    fit = problem.fit(kept)
    print(f"{rule.name:8} 8 terms: {path.mse(8):.5f}; 24 pruned to 10: {fit.mse:.5f}, condition {fit.condition:.1e}")

# %% The guided closure, and how much of each term the others could replace.
closure = problem.closure(kept, "guided")
for term, nu in zip(closure.terms, closure_report(closure, data).nu, strict=True):
    print(f"  {term!s:18} novelty {nu:.3f}")
print(closure.to_latex())

# %% Its velocity field, in the embedded solver.
solver = EmbeddedSolver(hill.load_base_flow())
result = solver.solve(closure, alpha=0.7)
print(result.status, f"in {result.seconds:.1f} s")

# %% Beside DNS, whose figures are quoted; with its fields (sobolev turbulence prepare) there is a field error too.
rows = {"DNS": hill.DNS_MEASURES}
for name, U in (("k-epsilon", solver.base.U), ("closure", result.U)):
    rows[name] = measure(hill.MeshVelocity(solver.base.nodes, np.asarray(U))).to_dict()
for name, found in rows.items():
    position, reverse = found["reattachment_interpolated"], found["max_reversed"]
    print(f"{name:10} reattachment {position:.2f}, max reversed {1e3 * reverse:.2f}e-3 m/s")
