"""From data to a velocity field: a closure for periodic-hill flow, selected, run and compared with DNS."""

# %%
import sys

import numpy as np

from sobolev_novelty.turbulence import data as hill
from sobolev_novelty.turbulence.flow import EmbeddedSolver
from sobolev_novelty.turbulence.measures import measure
from sobolev_novelty.turbulence.problem import closure_problem
from sobolev_novelty.turbulence.selection import Greedy, SobolevGuided, backward, forward
from sobolev_novelty.turbulence.study import closure_report

if not hill.is_available():
    print("The turbulence data is not here. Make it with 'sobolev turbulence prepare' and set SOBOLEV_DATA.")
    sys.exit()

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

# %% Beside DNS.
dns = hill.load_dns()
for name, U in (("DNS", dns.U), ("k-epsilon", solver.base.U), ("closure", result.U)):
    found = measure(hill.MeshVelocity(dns.nodes, np.asarray(U)), dns)
    print(
        f"{name:10} reattachment {found.reattachment_interpolated:.2f}, "
        f"max reversed {1e3 * found.max_reversed:.2f}e-3 m/s, field error {100 * found.field_error:.2f} %"
    )
