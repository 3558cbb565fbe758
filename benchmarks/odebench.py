"""ODEBench: equations found from noisy trajectories, beside PySINDy's. docs/dynamics.md states the protocol.

Usage: python -m benchmarks.odebench            run what is missing in results/odebench.sqlite
       python -m benchmarks.odebench --table    print what is stored, run nothing

``SOBOLEV_DATA`` must name the folder with ``anchors/odebench.json.gz``.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.ode_systems import OdeSystem, integration_error, ode_systems
from sobolev_novelty import Budget, Constraints, DynamicsRegressor, SymbolicRegressor
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.dynamics.differentiation import smooth
from sobolev_novelty.dynamics.integration import integrate
from sobolev_novelty.dynamics.trajectories import Trajectory
from sobolev_novelty.lab.bench.judging.exact import exact_solution
from sobolev_novelty.lab.bench.judging.terms import has_form
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.evidence.origin import circumstances
from sobolev_novelty.language.peers import from_pysindy

STORE = Path(__file__).resolve().parents[1] / "results" / "odebench.sqlite"
NOISE, SEED, EVALUATIONS, DEGREE = 0.01, 0, 1500, 3
#: Of the grid of "pysindy, tuned".
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.5)
#: R² of an integrated trajectory from which ODEBench counts it as found.
GOOD_R2 = 0.9

#: Method -> equations, by label: methods that share their searches are run together.
Found = dict[str, tuple[list[Expression], float]]


def ours(x: FloatArray, t: FloatArray) -> Found:
    search = SymbolicRegressor(
        budget=Budget(max_evaluations=EVALUATIONS), constraints=Constraints(max_complexity=40), random_state=SEED
    )
    begin = time.perf_counter()
    model = DynamicsRegressor(search).fit(x, t)
    seconds = time.perf_counter() - begin
    searches = list(model.models_.values())
    return {
        "sobolev": (list(model.expressions_.values()), seconds),
        "sobolev, rates only": ([one.expression_ for one in searches], sum(one.seconds_ for one in searches)),
    }


def theirs(label: str, fit: Callable[[FloatArray, FloatArray], list[Expression]]) -> Callable[..., Found]:
    def run(x: FloatArray, t: FloatArray) -> Found:
        begin = time.perf_counter()
        return {label: (fit(x, t), time.perf_counter() - begin)}

    return run


# PySINDy is imported where it is run: what is stored can be printed without it.
def sindy_defaults(x: FloatArray, t: FloatArray) -> list[Expression]:
    import pysindy as ps

    model = ps.SINDy()
    model.fit(x, t=t, feature_names=[f"x{k}" for k in range(x.shape[1])])
    return [from_pysindy(model, target=k) for k in range(x.shape[1])]


def sindy_tuned(x: FloatArray, t: FloatArray) -> list[Expression]:
    """The model of the grid whose integrated trajectory has the least BIC (after Mangan et al. 2017)."""
    import pysindy as ps

    names = tuple(f"x{k}" for k in range(x.shape[1]))
    best: tuple[float, list[Expression]] | None = None
    libraries: tuple[Callable[[], Any], ...] = (
        lambda: ps.PolynomialLibrary(2),
        lambda: ps.PolynomialLibrary(3),
        lambda: ps.PolynomialLibrary(3) + ps.FourierLibrary(1),
    )
    differences = (ps.FiniteDifference, ps.SmoothedFiniteDifference)
    for library, method, threshold in product(libraries, differences, THRESHOLDS):
        model = ps.SINDy(
            optimizer=ps.STLSQ(threshold=threshold), feature_library=library(), differentiation_method=method()
        )
        model.fit(x, t=t, feature_names=list(names))
        found = [from_pysindy(model, target=k) for k in range(len(names))]
        solution = integrate(found, names, t, x[0], scale=np.abs(x).max(axis=0))
        misfit = np.mean((solution.x - x) ** 2, axis=0)  # nan where the solution broke off
        bic = len(t) * float(np.sum(np.log(misfit))) + np.count_nonzero(model.coefficients()) * np.log(len(t))
        if best is None or bic < best[0] or not np.isfinite(best[0]):
            best = (bic, found)
    assert best is not None
    return best[1]


def sindy_novelty(x: FloatArray, t: FloatArray) -> list[Expression]:
    import pysindy as ps

    from sobolev_novelty.dynamics.pysindy_optimizer import NoveltyOptimizer

    names = [f"x{k}" for k in range(x.shape[1])]
    curve = smooth(Trajectory(t, x, tuple(names)))
    library = ps.PolynomialLibrary(DEGREE) + ps.FourierLibrary(1)
    model = ps.SINDy(optimizer=NoveltyOptimizer(), feature_library=library)
    model.fit(curve.x, t=t, x_dot=curve.rates, feature_names=names)
    return [from_pysindy(model, target=k) for k in range(x.shape[1])]


METHODS: dict[tuple[str, ...], Callable[[FloatArray, FloatArray], Found]] = {
    ("pysindy, defaults",): theirs("pysindy, defaults", sindy_defaults),
    ("pysindy, tuned",): theirs("pysindy, tuned", sindy_tuned),
    ("pysindy, novelty",): theirs("pysindy, novelty", sindy_novelty),
    ("sobolev, rates only", "sobolev"): ours,
}


def judged(system: OdeSystem, equations: Sequence[Expression], seconds: float) -> list[dict[str, Any]]:
    """One row per equation."""
    test = system.trajectories[1]
    solution = integrate(equations, system.names, system.t, test[0], scale=np.abs(test).max(axis=0))
    error = integration_error(test, solution.x)
    r2 = 1.0 - np.mean(((solution.x - test) / test.std(axis=0)) ** 2) if np.isfinite(error) else None
    second = {
        "error": error if np.isfinite(error) else None,
        "r2": None if r2 is None else float(r2),
        "diverged_at": solution.diverged_at,
        "reason": solution.reason,
    }
    rows = []
    box = system.box()
    for found, truth in zip(equations, system.equations, strict=True):
        form, why = has_form(found, truth, box)
        verdict = exact_solution(found, truth, box, algebra_seconds=0.0)
        rows.append(
            {
                "status": "done", "expression": str(found), "complexity": found.complexity,
                "exact_numeric": int(verdict.numeric), "exact_note": verdict.note,
                "extra": json.dumps({"form": form, "form_note": why, "second": second}),
                "wall_time": seconds / len(equations), **circumstances(),
            }
        )  # fmt: skip
    return rows


def run() -> None:
    store = Store(STORE)
    store.check_settings({"noise": NOISE, "seed": SEED, "evaluations": EVALUATIONS, "degree": DEGREE})
    for system in ode_systems():
        x = system.measured(NOISE, SEED)
        for labels, method in METHODS.items():
            jobs = [(label, k, Job(f"{system.name}_{name}", label, SEED, NOISE))
                    for label in labels for k, name in enumerate(system.names)]  # fmt: skip
            claimed = [one for one in jobs if store.claim(one[2])]
            if not claimed:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = method(x, system.t)
                rows = {label: judged(system, *found[label]) for label in labels}
            except Exception:
                failure = {"status": "failed", "traceback": traceback.format_exc()[-4000:], **circumstances()}
                rows = {label: [failure] * len(system.names) for label in labels}
            for label, k, job in claimed:
                store.finish(job, rows[label][k])
                print(job.task, label, rows[label][k]["status"], rows[label][k].get("expression"), flush=True)


def table() -> str:
    """What is stored, as Markdown."""
    frame = Store(STORE, read_only=True).frame()
    frame["extra"] = [json.loads(text) if isinstance(text, str) else {} for text in frame["extra"]]
    frame["system"] = frame["task"].str.rsplit("_", n=1).str[0]
    lines = [
        "| method | equations | form found | exact | systems found | nodes | second start: error | R² > 0.9 | s each |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    order = [label for labels in METHODS for label in labels][::-1]
    for method in order:
        own = frame[frame["method"] == method]
        if len(own):
            lines.append(_line(method, own))
    return "\n".join(lines)


def _line(method: str, own: pd.DataFrame) -> str:
    form = pd.Series([bool(extra.get("form")) for extra in own["extra"]], index=own.index)
    whole = form.groupby(own["system"]).all()
    second = own.groupby("system")["extra"].first().map(lambda extra: extra.get("second", {}))
    errors = [np.inf if one.get("error") is None else one["error"] for one in second]
    good = [one.get("r2") is not None and one["r2"] > GOOD_R2 for one in second]
    exact = own["exact_numeric"].fillna(0)
    return (
        f"| {method} | {len(own)} | {int(form.sum())} ({100 * form.mean():.0f} %) | {int(exact.sum())} | "
        f"{int(whole.sum())} of {len(whole)} | {own['complexity'].median():.0f} | {np.median(errors):.3g} | "
        f"{sum(good)} of {len(good)} | {own['wall_time'].mean():.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="print what is stored, run nothing")
    if not parser.parse_args().table:
        run()
    print(table())


if __name__ == "__main__":
    main()
