"""Novelty: one candidate from parsed strings, the factorisation alone, a population."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import sobolev_novelty as sn
from benchmarks.measure import Measure, at_least, in_turn, plain, seconds
from benchmarks.populations import lambdified, random_terms
from sobolev_novelty import kernels
from sobolev_novelty.algebra import terms as terms_module
from sobolev_novelty.algebra.terms import Term, additive_terms, sum_of_terms
from sobolev_novelty.core.geometry import Geometry
from sobolev_novelty.core.linear.projection import residuals
from sobolev_novelty.kernels import compile_programs


def by_least_squares(Psi: Any) -> Any:
    """m separate solves: what is usually done."""
    unit = Psi / np.linalg.norm(Psi, axis=0)
    nu = np.empty(unit.shape[1])
    for i in range(unit.shape[1]):
        others = np.delete(unit, i, axis=1)
        weights = np.linalg.lstsq(others, unit[:, i], rcond=None)[0]
        nu[i] = np.linalg.norm(unit[:, i] - others @ weights)
    return nu


def independent_terms(seed: int, n: int, names: list[str], X: Any, size: int = 8) -> list[Any]:
    """Terms that are finite on X and keep some distance from each other, so that all methods have the same work."""
    chosen: list[Any] = []
    for term in random_terms(seed, 50 * n, names, size):
        if len(additive_terms(term)) != 1:
            continue
        jets = kernels.derivatives(compile_programs([term], names), X, 1)
        if not np.isfinite(jets).all() or np.abs(jets).max() > 1e6:
            continue
        trial = kernels.novelties(compile_programs([*chosen, term], names), [0, len(chosen) + 1], X)
        if trial.nu.min() > 0.05:
            chosen.append(term)
        if len(chosen) == n:
            return chosen
    raise RuntimeError("Not enough independent terms.")


def measures(repeats: int) -> tuple[list[Measure], dict[str, float]]:
    single, notes = one_candidate(repeats)
    return [*single, *factorisation(repeats), *population(repeats)], notes


def one_candidate(repeats: int) -> tuple[list[Measure], dict[str, float]]:
    """The path a user takes: a parsed expression and a DataFrame; and the kernel under it."""
    names = [f"x{k}" for k in range(4)]
    X = np.random.default_rng(0).uniform(0.5, 3.0, size=(4, 1000))
    table = pd.DataFrame(X.T, columns=names)
    terms = independent_terms(1, 15, names, X)
    equation = sum_of_terms([Term(1.5 + i, term) for i, term in enumerate(terms)])
    terms = [term.expression for term in additive_terms(equation)]  # as the equation has them
    functions = lambdified(terms, names, with_gradient=True)
    factors = Geometry().block_factors(X.std(axis=1))

    def ours() -> Any:
        return sn.novelty(equation, table).nu

    def kernel() -> Any:
        return kernels.novelties(compile_programs(terms, names), [0, 15], X).nu

    def theirs(known: Any = functions) -> Any:
        jets = [[np.broadcast_to(row, 1000) for row in function(*X)] for function in known.values()]
        return by_least_squares((np.array(jets) * factors[:, None] / np.sqrt(1000)).reshape(15, -1).T)

    def ours_anew() -> Any:
        terms_module._split.cache_clear()
        return ours()

    def theirs_anew() -> Any:
        return theirs(lambdified(terms, names, with_gradient=True))

    error = float(np.abs(ours() - theirs()).max())
    setting = "15 terms, d = 4, N = 1000"
    times = in_turn(ours, theirs, 3 * repeats, (20, 1))
    anew = in_turn(ours_anew, theirs_anew, max(2, repeats // 2), (5, 1))
    below = in_turn(kernel, theirs, 3 * repeats, (20, 1))
    found = [
        at_least(
            f"sn.novelty of a parsed expression on a DataFrame, {setting}, vs SymPy lambdify + m lstsq",
            times[:, 1] / times[:, 0], 25, 40,
            note=f"both have seen the expression before; largest difference {error:.1e}",
        ),
        plain("the same, with an expression that neither has seen", anew[:, 1] / anew[:, 0]),
        at_least(
            f"ν of all terms in the kernel, {setting}, vs SymPy lambdify + m lstsq (warm)", below[:, 1] / below[:, 0],
            20, 60, note="translation counted",
        ),
    ]  # fmt: skip
    notes = {
        "one sn.novelty, µs": float(np.median(times[:, 0]) * 1e6),
        "one sn.novelty of a new expression, µs": float(np.median(anew[:, 0]) * 1e6),
        "one candidate in the kernel, µs": float(np.median(below[:, 0]) * 1e6),
    }
    return found, notes


def factorisation(repeats: int) -> list[Measure]:
    from statsmodels.stats.outliers_influence import variance_inflation_factor

    Psi = np.random.default_rng(0).normal(size=(11_000, 40)) + np.random.default_rng(1).normal(size=(11_000, 1))
    error = float(np.abs(residuals(Psi).nu - by_least_squares(Psi)).max())
    times = in_turn(lambda: residuals(Psi), lambda: by_least_squares(Psi), repeats, (10, 1))
    name = "ν of all terms, m = 40, d = 10, N = 1000, factorisation only, vs m lstsq"
    found = [at_least(name, times[:, 1] / times[:, 0], 40, 100, note=f"largest difference {error:.1e}")]
    close = Psi.copy()
    close[:, 1] = close[:, 0] + 1e-4 * close[:, 2]
    times = in_turn(lambda: residuals(close), lambda: by_least_squares(close), repeats, (3, 1))
    found.append(plain("the same with a nearly dependent pair (QR instead of Gram)", times[:, 1] / times[:, 0]))
    times = in_turn(
        lambda: residuals(Psi),
        lambda: [variance_inflation_factor(Psi, i) for i in range(40)],
        max(2, repeats // 2),
        (10, 1),
    )
    found.append(plain("the same vs statsmodels variance_inflation_factor", times[:, 1] / times[:, 0]))
    return found


def population(repeats: int, n_candidates: int = 1000) -> list[Measure]:
    """The batch verb on one core."""
    names = [f"x{k}" for k in range(5)]
    X = np.random.default_rng(0).uniform(0.5, 3.0, size=(5, 1000))
    terms = random_terms(2, 20 * n_candidates, names)
    alone = kernels.novelties(compile_programs(terms, names), np.arange(len(terms) + 1), X)
    finite = [term for term, rows in zip(terms, alone.rows.tolist(), strict=True) if rows == 1000]
    candidates = [finite[5 * k : 5 * k + 5] for k in range(n_candidates)]
    sums = [sum_of_terms([Term(1.5 + i, term) for i, term in enumerate(own)]) for own in candidates]
    table = pd.DataFrame(X.T, columns=names)

    def rates(equations: Any, *, anew: bool = False) -> list[float]:
        found = []
        for _ in range(3 * repeats):
            if anew:
                terms_module._split.cache_clear()
            found.append(n_candidates / seconds(lambda: sn.novelties(equations, table)))
        return found

    nu = np.concatenate([found.nu for found in sn.novelties(candidates, table)])
    note = f"terms finite at every row; {(nu < 0.03).mean():.0%} of the novelties need the second, slower walk"
    setting = "5 terms of 8 nodes, d = 5, N = 1000"
    return [
        at_least(f"sn.novelties, lists of terms, {setting}", rates(candidates), 25_000, 40_000, unit="/s", note=note),
        plain("the same, sums of them that were seen before", rates(sums), unit="/s"),
        plain("the same, sums of them that are new", rates(sums, anew=True), unit="/s"),
    ]
