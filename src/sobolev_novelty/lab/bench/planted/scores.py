r"""What each method says of the terms of a planted case: one score per term, larger for a term that belongs.

*Verdict* is :attr:`~sobolev_novelty.report.verdicts.TermVerdict.score`, the smallest of the margins of distinct, needed
and determined. *VIF* (its negative), *|t|* and *drop-one BIC* are those of ordinary least squares with an intercept.
*Stability selection* (Meinshausen and Bühlmann 2010) is the share of half-samples, averaged over the path of penalties,
in which the lasso takes the term up. *ν* is Sobolev Novelty alone, with the constant as a rival and with a free
intercept.
"""

from __future__ import annotations

import numpy as np

from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.linear.least_squares import fit_columns
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.lab.bench.planted.planted import Case
from sobolev_novelty.metric.batch import novelties_of
from sobolev_novelty.report.verdicts import term_verdicts

#: Half-samples, penalties on the path, its end relative to its beginning, and sweeps of coordinate descent at most.
N_HALVES, N_PENALTIES, LAST_PENALTY, N_SWEEPS = 50, 12, 1e-3, 30


#: Every method, ours first.
METHODS = (
    "verdict", "VIF", "|t|", "drop-one BIC", "stability selection", "ν, constant a term", "ν, free intercept",
)  # fmt: skip


def scores(case: Case) -> dict[str, FloatArray]:
    """Every method's score of every term of the case, refitted to its target."""
    columns = derivatives(case.terms, case.sample, 0)[:, 0]
    fit = fit_columns(columns, case.y)
    n = fit.n_rows
    terms = [Term(float(b), e) for b, e in zip(fit.coefficients, case.terms, strict=True)]
    verdicts = term_verdicts(terms, case.sample, case.y)
    found = (
        np.array([verdict.score for verdict in verdicts]),
        -fit.variance_inflation,
        fit.t,
        n * np.log1p(fit.drop_one / fit.rss) - np.log(n),
        stability(columns, case.y, np.random.default_rng(case.seed)),
        novelties_of([terms], case.sample)[0].nu,
        np.array([verdict.novelty for verdict in verdicts]),
    )
    return dict(zip(METHODS, found, strict=True))


def stability(columns: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """How often the lasso takes up each term, over half-samples and penalties."""
    n, m = len(y), len(columns)
    halves = np.array([rng.permutation(n)[: n // 2] for _ in range(N_HALVES)])
    Z = columns[:, halves].transpose(1, 0, 2)  # (halves, terms, rows)
    Z = Z - Z.mean(axis=2, keepdims=True)
    norms = np.linalg.norm(Z, axis=2, keepdims=True)
    Z = Z / np.where(norms > 0.0, norms, 1.0)
    target = y[halves] - y[halves].mean(axis=1, keepdims=True)
    G, c = Z @ Z.transpose(0, 2, 1), np.einsum("hmn,hn->hm", Z, target)
    top = np.abs(c).max(axis=1)
    b = np.zeros((N_HALVES, m))
    taken = np.zeros(m)
    for share in np.geomspace(1.0, LAST_PENALTY, N_PENALTIES + 1)[1:]:
        for _ in range(N_SWEEPS):
            largest = 0.0
            for j in range(m):
                rest = c[:, j] - (G[:, j] * b).sum(axis=1) + b[:, j]
                new = np.sign(rest) * np.maximum(np.abs(rest) - share * top, 0.0)
                largest = max(largest, float(np.abs(new - b[:, j]).max()))
                b[:, j] = new
            if largest < 1e-4 * float(top.min()):
                break
        taken += (b != 0.0).mean(axis=0)
    return taken / N_PENALTIES
