"""Every seed of the tree searches of the turbulence comparison: python -m benchmarks.turbulence_seeds

The comparison keeps the best training score of five seeds. What is said of its terms must hold for all of them, or be
said of the one. Writes results/turbulence/tree_search_seeds.json; with ``--table`` it only prints what is stored.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.lab.evidence.origin import circumstances
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.tensors import dictionary
from sobolev_novelty.lab.turbulence.selecting.tree_search import TreeSearch, tree_search
from sobolev_novelty.lab.turbulence.solving.problem import closure_problem, closure_report
from sobolev_novelty.search.contract.engine import SobolevGuidance

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "results" / "turbulence" / "tree_search_seeds.json"


def run() -> list[dict[str, Any]]:
    study = tomllib.loads((ROOT / "experiments" / "turbulence_comparison.toml").read_text(encoding="utf-8"))
    data = hill.load_regression()
    problem = closure_problem(data, dictionary(study["selection"]["max_degree"]))
    options = dict(study["tree_search"])
    seeds = options.pop("seeds")
    rows = []
    for name, guidance in (("MCTS", None), ("SN-MCTS", SobolevGuidance())):
        for seed in seeds:
            found = tree_search(problem, TreeSearch(guidance=guidance, **options), np.random.default_rng(seed))
            fit = problem.fit(found.indices)
            rows.append({
                "search": name, "seed": seed, "n_terms": len(found.indices),
                "min_novelty": float(closure_report(found.closure, data).nu.min()), "mse": float(fit.mse),
                "condition": float(fit.condition), "max_coefficient": float(np.abs(fit.coefficients).max()),
            })  # fmt: skip
    return rows


def main() -> None:
    if "--table" not in sys.argv:
        OUT.write_text(json.dumps({**circumstances(), "rows": run()}, indent=1) + "\n", encoding="utf-8")
    print("| search | seed | terms | lowest novelty | error | condition | largest coefficient |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in json.loads(OUT.read_text(encoding="utf-8"))["rows"]:
        print(
            f"| {row['search']} | {row['seed']} | {row['n_terms']} | {row['min_novelty']:.3f} | {row['mse']:.4f} "
            f"| {row['condition']:.0f} | {row['max_coefficient']:.2f} |"
        )


if __name__ == "__main__":
    main()
