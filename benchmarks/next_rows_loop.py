"""Search and `next_rows` in turn: rows until the law is chosen, against random rows and others.

Usage: python -m benchmarks.next_rows_loop [--seed 1] [--laws 40] [--arms next_rows random] [--store FILE]

From 8 rows in the lowest tenth of each range: fit, stop if the law is chosen, else measure 4 more rows; at most 200
rows, which count as 200. Left out are laws that are chosen from the first 8 rows, and laws that the search does not
choose from 200 rows drawn evenly from the box; whether rows help can
be seen only where the search can find the law. Noise: a tenth of the spread in the box.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sobolev_novelty as sn
from benchmarks.next_rows_laws import Law, fitted, laws
from benchmarks.next_rows_store import RESULTS, add, stored
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.search.fit.forms import split_form

STORE = RESULTS / "next_rows_loop.parquet"
N_START, BATCH, MOST, NOISE = 8, 4, 200, 0.1
#: Share of the law's spread that a law's form, refitted to exact values, may leave; constants more than the law has.
EXACT, SPARE = 1e-4, 1
EVALUATIONS = 500


def is_law(found: Expression, law: Law) -> bool:
    """Whether the form of an equation holds the law, with at most one constant more."""
    form, own = split_form(found), split_form(law.expression)
    if form.n_free + len(form.terms) > own.n_free + len(own.terms) + SPARE:
        return False
    X = law.rows(300, np.random.default_rng(1))
    with np.errstate(all="ignore"):
        if not np.isfinite(evaluate(found, X)).all():
            return False
        loss = fitted(found, X, evaluate(law.expression, X))[1]
    return bool(np.sqrt(loss / len(X)) < EXACT * law.spread)


def searched(X: FloatArray, y: FloatArray) -> sn.SymbolicRegressor:
    """A small search."""
    budget = sn.Budget(max_evaluations=EVALUATIONS)
    return sn.SymbolicRegressor(budget=budget, random_state=0).fit(X, y, verbose=False)


def batch(arm: str, model: sn.SymbolicRegressor, X: FloatArray, law: Law, rng: np.random.Generator) -> FloatArray:
    """Rows to measure next."""
    if arm == "random":
        return law.rows(BATCH, rng)
    bounds = np.stack([law.low, law.high], axis=1)
    if arm == "next_rows":
        rows = sn.next_rows(model, X, bounds=bounds, n=BATCH).to_numpy()
    else:  # space filling
        rows = filling(X, law)
    return np.vstack([rows, law.rows(BATCH - len(rows), rng)])


def filling(X: FloatArray, law: Law) -> FloatArray:
    """Rows as far as can be from all others, of 2000 random ones."""
    width = law.high - law.low
    pool = law.rows(2000, np.random.default_rng(len(X)))
    distance = np.min([np.square((pool - row) / width).sum(axis=1) for row in X], axis=0)
    chosen = []
    for _ in range(BATCH):
        k = int(distance.argmax())
        chosen.append(k)
        distance = np.minimum(distance, np.square((pool - pool[k]) / width).sum(axis=1))
    return pool[chosen]


def first_rows(law: Law, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Rows in the lowest tenth of each range, measured."""
    X = law.low + 0.1 * (law.high - law.low) * rng.random((N_START, len(law.low)))
    return X, measured(law, X, rng)


def measured(law: Law, X: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.asarray(evaluate(law.expression, X) + NOISE * law.spread * rng.normal(size=len(X)))


def can_be_found(law: Law, rng: np.random.Generator) -> bool:
    """Whether the search chooses the law from all the rows that an arm may have."""
    X = law.rows(MOST, rng)
    return is_law(searched(X, measured(law, X, rng)).expression_, law)


def rows_needed(arm: str, law: Law, seed: int) -> int:
    """Rows until the law is chosen; 0 where it is from the first."""
    rng = np.random.default_rng(seed)
    X, y = first_rows(law, rng)
    while True:
        model = searched(X, y)
        if is_law(model.expression_, law):
            return 0 if len(X) == N_START else len(X)
        if len(X) + BATCH > MOST:
            return MOST
        more = batch(arm, model, X, law, rng)
        X, y = np.vstack([X, more]), np.concatenate([y, measured(law, more, rng)])


def run(seed: int, n_laws: int, arms: list[str], store: Path) -> None:
    drawn = laws(seed, least_inputs=2, most_inputs=4, most_terms=2, is_plain=True)
    kept = 0
    for k, law in enumerate(drawn):
        start = searched(*first_rows(law, np.random.default_rng([seed, k])))
        if is_law(start.expression_, law) or not can_be_found(law, np.random.default_rng([seed, k, 1])):
            continue
        kept += 1
        rows = [
            {
                "seed": seed,
                "law": k,
                "equation": str(law.expression),
                "arm": arm,
                "rows": rows_needed(arm, law, seed_of),
            }
            for arm in arms
            for seed_of in [int(np.random.default_rng([seed, k]).integers(2**31))]
        ]
        print(kept, k, law.expression, {row["arm"]: row["rows"] for row in rows}, flush=True)
        add(store, rows)
        if kept == n_laws:
            return


def summary(store: Path) -> str:
    frame = stored(store)
    lines = [
        "| rows by | laws | median rows | of them added | mean rows | chosen within 200 |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for arm, own in frame.groupby("arm", sort=False):
        rows, found = own["rows"], 100.0 * (own["rows"] < MOST).mean()
        median = rows.median()
        lines.append(f"| {arm} | {len(own)} | {median:g} | {median - N_START:g} | {rows.mean():.0f} | {found:.0f} % |")
    wide = frame.pivot_table(index=["seed", "law"], columns="arm", values="rows")
    fewer, more = (wide["next_rows"] < wide["random"]).sum(), (wide["next_rows"] > wide["random"]).sum()
    same = len(wide) - fewer - more
    lines += ["", f"Fewer rows than random ones for {fewer} laws, as many for {same}, more for {more}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="Run laws of this seed; without it, print the store.")
    parser.add_argument("--laws", type=int, default=40)
    parser.add_argument("--arms", nargs="+", default=["next_rows", "random"])
    parser.add_argument("--store", type=Path, default=STORE)
    options = parser.parse_args()
    if options.seed is not None:
        run(options.seed, options.laws, options.arms, options.store)
    print(summary(options.store))


if __name__ == "__main__":
    main()
