"""Laws that every novelty must obey, on random lists of terms with near and exact repetitions.

A further term never raises a novelty; the C kernel and the NumPy definition agree with 80 digits of mpmath.

::

    python -m benchmarks.metamorphic                     # 100,000 lists and 1,000 against mpmath
    python -m benchmarks.metamorphic --lists 1000 --exact 20
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sobolev_novelty import novelties, parse
from sobolev_novelty.core.linear.projection import residuals
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.metric.signatures import signatures

STORED = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "metamorphic.json"
TERMS = (
    "1", "x0", "x1", "x0*x1", "x0**2", "x1**3", "sin(x0)", "sin(2*x1)", "cos(x0)", "exp(x0/2)", "tanh(x0 + x1)",
    "x0/(3 + x1)", "sin(x0)*x1", "log(4 + x0)", "sqrt(5 + x0 - x1)", "exp(-x1**2)", "arctan(x0*x1)", "1/(3 + x0)",
)  # fmt: skip
#: A novelty may rise by what rounding leaves.
ALLOWED = 1e-9
#: Lists whose Gram matrix has a smaller condition number are well conditioned, and must be right to this.
WELL_CONDITIONED, RIGHT_TO = 1e6, 1e-8


def random_list(rng: np.random.Generator) -> list[str]:
    """Two to seven terms, some of them repeated, exactly or nearly, or sums of others."""
    found = [str(term) for term in rng.choice(TERMS, rng.integers(1, 6), replace=False)]
    for _ in range(rng.integers(1, 3)):
        one, other = (str(term) for term in rng.choice(found + list(TERMS), 2))
        distance = 10.0 ** rng.uniform(-16, 0)
        found.append(
            [one, f"{one} + {distance:.3g}*({other})", f"{rng.uniform(-3, 3):.3f}*({one})", f"{one} + {other}", other][
                rng.integers(5)
            ]
        )
    return [found[k] for k in rng.permutation(len(found))]


@dataclass(frozen=True, slots=True)
class Rises:
    """How often a novelty rose when a term was added, and by how much at most."""

    n_lists: int
    n_violations: int
    worst: float


def rises(n_lists: int, seed: int, *, n_rows: int = 60, batch: int = 500) -> Rises:
    """Compare the novelties of every list without its last term with those of the whole list."""
    rng = np.random.default_rng(seed)
    worst, bad, done = 0.0, 0, 0
    while done < n_lists:
        X = rng.uniform(-2.0, 2.0, (n_rows, 2))
        lists = [random_list(rng) for _ in range(min(batch, n_lists - done))]
        whole = [[parse(term) for term in terms] for terms in lists]
        found = novelties([terms for some in whole for terms in (some[:-1], some)], X)
        for before, after in zip(found[::2], found[1::2], strict=True):
            rise = float(np.max(after.nu[: len(before.nu)] - before.nu, initial=0.0))
            worst, bad = max(worst, rise), bad + (rise > ALLOWED)
        done += len(lists)
    return Rises(n_lists, bad, worst)


@dataclass(frozen=True, slots=True)
class Deviations:
    """Largest differences to 80 digits."""

    n_lists: int
    n_well_conditioned: int
    worst_numpy: float
    worst_kernel: float


def deviations(n_lists: int, seed: int, *, n_rows: int = 40) -> Deviations:
    """Novelties of well-conditioned lists against mpmath, from the same signatures."""
    rng = np.random.default_rng(seed)
    n_well, worst_numpy, worst_kernel = 0, 0.0, 0.0
    for _ in range(n_lists):
        X = rng.uniform(-2.0, 2.0, (n_rows, 2))
        terms = [parse(term) for term in random_list(rng)]
        found = signatures(terms, as_sample(X))
        Psi = np.asarray(found.Psi)
        exact, condition = _exact(Psi)
        if condition > WELL_CONDITIONED:
            continue
        n_well += 1
        worst_numpy = max(worst_numpy, float(np.abs(residuals(Psi).nu - exact).max()))
        worst_kernel = max(worst_kernel, float(np.abs(novelties([terms], X)[0].nu - exact).max()))
    return Deviations(n_lists, n_well, worst_numpy, worst_kernel)


def _exact(Psi: np.ndarray) -> tuple[np.ndarray, float]:
    """ν_i² = 1/(G⁻¹)_ii with 80 digits, and the condition number of G."""
    import mpmath

    with mpmath.workdps(80):
        columns = [[mpmath.mpf(float(value)) for value in column] for column in Psi.T]
        lengths = [mpmath.sqrt(mpmath.fdot(column, column)) for column in columns]
        m = len(columns)
        G = mpmath.matrix(m, m)
        for i in range(m):
            for j in range(i, m):
                G[i, j] = G[j, i] = mpmath.fdot(columns[i], columns[j]) / (lengths[i] * lengths[j])
        condition = float(np.linalg.cond(np.array(G.tolist(), dtype=float)))
        if not condition < WELL_CONDITIONED:
            return np.zeros(m), np.inf
        inverse = G**-1
        return np.array([float(mpmath.sqrt(1 / inverse[i, i])) for i in range(m)]), condition


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=int, default=100_000)
    parser.add_argument("--exact", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    risen, deviating = rises(given.lists, given.seed), deviations(given.exact, given.seed)
    found = {
        "lists": risen.n_lists, "violations": risen.n_violations, "worst_rise": risen.worst,
        "lists_against_mpmath": deviating.n_lists, "well_conditioned": deviating.n_well_conditioned,
        "worst_numpy": deviating.worst_numpy, "worst_kernel": deviating.worst_kernel,
    }  # fmt: skip
    print(json.dumps(found))
    if given.lists >= 100_000:
        STORED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
