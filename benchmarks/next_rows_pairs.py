"""A law and its imitation: which rows, added to twenty, tell which of the two is right.

Usage: python -m benchmarks.next_rows_pairs [--seed 2] [--pairs 300] [--store FILE]

Rows at hand are spread evenly over the box ("even"), or lie around its middle with a standard deviation of a sixth of
each range, as an apparatus runs that is not moved on purpose ("around a point"). Random rows are drawn as the rows at
hand are. Both equations are fitted to the twenty rows; ten rows are chosen, at once or two at a time with fits in
between; both are fitted again, and the one with the smaller error is taken for the law. Without --seed the store is
printed.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import sobolev_novelty as sn
from benchmarks.next_rows_laws import Law, Pair, fitted, pairs
from benchmarks.next_rows_store import RESULTS, add, stored
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.design.candidates import candidates_of
from sobolev_novelty.design.differences import Curve
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.report.intervals.constants import parametrised
from sobolev_novelty.search.fit.forms import split_form

STORE = RESULTS / "next_rows_pairs.parquet"
N_HAND, N_ADDED, NOISES, RANDOM = 20, 10, (0.1, 0.3), (10, 40, 160)
HANDS = ("even", "around a point")


def drawn(law: Law, n: int, hand: str, rng: np.random.Generator) -> FloatArray:
    """Rows as they come by themselves."""
    if hand == "even":
        return law.rows(n, rng)
    shares = np.clip(0.5 + rng.normal(size=(n, len(law.low))) / 6.0, 0.0, 1.0)
    return law.low + (law.high - law.low) * shares


def d_optimal(equations: list[Expression], X: FloatArray, candidates: Sample, n: int) -> FloatArray:
    """Rows that make the product of the determinants of the equations' information large, one after the other."""
    at_hand = Sample(np.ascontiguousarray(X.T), candidates.names)
    states = []
    for equation in equations:
        near, far = (Curve.of(parametrised(equation), rows, 1.0).slopes for rows in (at_hand, candidates))
        unit = np.linalg.norm(near, axis=1)[:, None] + 1e-300
        J = np.where(np.isfinite(far), far / unit, 0.0)
        states.append((np.linalg.inv(near @ near.T / (unit * unit.T) + 1e-9 * np.eye(len(near))), J))
    chosen = []
    for _ in range(n):
        k = int(np.sum([np.log1p(np.einsum("pn,pq,qn->n", J, A, J)) for A, J in states], axis=0).argmax())
        chosen.append(k)
        steps = [A @ J[:, k] for A, J in states]
        states = [
            (A - np.outer(s, s) / (1.0 + J[:, k] @ s), J) for (A, J), s in zip(states, steps, strict=True)
        ]  # fmt: skip
    return candidates.X[:, chosen].T


def space_filling(X: FloatArray, candidates: Sample, n: int) -> FloatArray:
    """Rows as far as can be from all others."""
    pool = candidates.X.T
    width = np.ptp(pool, axis=0)
    distance = np.min([np.square((pool - row) / width).sum(axis=1) for row in X], axis=0)
    chosen = []
    for _ in range(n):
        k = int(distance.argmax())
        chosen.append(k)
        distance = np.minimum(distance, np.square((pool - pool[k]) / width).sum(axis=1))
    return pool[chosen]


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Twenty rows at hand, measured, and how further ones are."""

    pair: Pair
    hand: str
    sigma: float
    X: FloatArray
    y: FloatArray
    rng: np.random.Generator

    @classmethod
    def of(cls, pair: Pair, hand: str, noise: float, rng: np.random.Generator) -> Trial:
        X = drawn(pair.law, N_HAND, hand, rng)
        sigma = noise * pair.law.spread
        return cls(pair, hand, sigma, X, evaluate(pair.law.expression, X) + sigma * rng.normal(size=N_HAND), rng)

    @property
    def box(self) -> FloatArray:
        return np.stack([self.pair.law.low, self.pair.law.high], axis=1)

    def with_rows(self, rows: FloatArray) -> Trial:
        """The same with these rows measured."""
        if not len(rows):
            return self
        y = evaluate(self.pair.law.expression, rows) + self.sigma * self.rng.normal(size=len(rows))
        return replace(self, X=np.vstack([self.X, rows]), y=np.concatenate([self.y, y]))

    def fits(self) -> tuple[tuple[Expression, float], tuple[Expression, float]]:
        """Law and imitation, fitted, with their squared errors."""
        return fitted(self.pair.law.expression, self.X, self.y), fitted(self.pair.imitation, self.X, self.y)

    def next_rows(self, n: int) -> FloatArray:
        """The rows of the package, which is told neither the law nor the noise."""
        (law, error), (other, other_error) = self.fits()
        form = split_form(law)
        spare = max(len(self.y) - form.n_free - len(form.terms), 1)
        sigma = float(np.sqrt(min(error, other_error) / spare))
        return sn.next_rows([law, other], self.X, bounds=self.box, n=n, sigma=sigma).to_numpy()


def trials(start: Trial) -> dict[str, Trial]:
    """What was measured in the end, by the name of the design."""
    law, rng, X = start.pair.law, start.rng, start.X
    near, other = (expression for expression, _ in start.fits())
    sample = Sample(np.ascontiguousarray(X.T), tuple(f"x{k}" for k in range(X.shape[1])))
    candidates = candidates_of(sample, bounds=start.box).sample
    added = {"none": X[:0]}
    added |= {f"{n} random": drawn(law, n, start.hand, rng) for n in RANDOM}
    if start.hand != "even":
        added |= {f"{n} random, all over the box": law.rows(n, rng) for n in RANDOM}
    added["D-optimal for the law"] = d_optimal([near], X, candidates, N_ADDED)
    added["D-optimal for both"] = d_optimal([near, other], X, candidates, N_ADDED)
    added["space filling"] = space_filling(X, candidates, N_ADDED)
    added["next_rows"] = start.next_rows(N_ADDED)
    found = {name: start.with_rows(rows) for name, rows in added.items()}
    by_two = start
    for _ in range(N_ADDED // 2):
        by_two = by_two.with_rows(by_two.next_rows(2))
    return found | {"next_rows, two at a time": by_two}


def judged(start: Trial) -> dict[str, float]:
    """Whether the law has the smaller error in the end, by design."""
    starts = [expression for expression, _ in start.fits()]
    found = {}
    for name, trial in trials(start).items():
        ends = [error for _, error in trial.fits()]
        errors = [min(e, fitted(s, trial.X, trial.y)[1]) for e, s in zip(ends, starts, strict=True)]
        found[name] = float(errors[0] < errors[1])
    return found


def run(seed: int, n_pairs: int, store: Path) -> None:
    rows = []
    for k, pair in enumerate(itertools.islice(pairs(seed), n_pairs)):
        for hand, noise in itertools.product(HANDS, NOISES):
            rng = np.random.default_rng([seed, k, HANDS.index(hand), int(100 * noise)])
            found = judged(Trial.of(pair, hand, noise, rng))
            shared = {"seed": seed, "pair": k, "law": str(pair.law.expression), "imitation": str(pair.imitation)}
            shared |= {"misses": pair.misses, "hand": hand, "noise": noise}
            rows += [shared | {"design": name, "right": right} for name, right in found.items()]
    add(store, rows)


def summary(store: Path, seed: int | None = None) -> str:
    frame = stored(store)
    frame = frame if seed is None else frame[frame["seed"] == seed]
    cells = frame.pivot_table(index="design", columns=["hand", "noise"], values="right", sort=False, aggfunc="mean")
    keys = [(hand, noise) for hand in HANDS for noise in NOISES]
    lines = [
        "| ten rows by | " + " | ".join(f"{hand}, {100 * noise:g} % noise" for hand, noise in keys) + " |",
        "| --- |" + " ---: |" * len(keys),
    ]
    for design, row in cells.iterrows():
        shown = [f"{100 * row[key]:.1f} %" if np.isfinite(row[key]) else "" for key in keys]
        lines.append(f"| {design} | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--store", type=Path, default=STORE)
    options = parser.parse_args()
    if options.seed is not None:
        run(options.seed, options.pairs, options.store)
    print(summary(options.store, options.seed))


if __name__ == "__main__":
    main()
