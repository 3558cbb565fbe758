"""Forward selection over the term dictionary, greedy or Sobolev-guided, and backward deletion (Appendix D.5.2).

Both rules see the same gains: the reduction of the squared training error after adding a candidate and refitting all
coefficients. They differ only in which of the near-best candidates they take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import RegressionData
from sobolev_novelty.lab.turbulence.selecting.tensors import TensorTerm, design_matrix, stacked_target
from sobolev_novelty.lab.turbulence.solving.problem import ClosureProblem, closure_problem

#: A candidate whose values keep less than this share of their norm outside the chosen terms is skipped.
DEPENDENT = 1e-6
#: Novelties closer than this are equal; the larger gain then decides.
TIE = 1e-9


class Rule(Protocol):
    """How the next term is taken from the candidates' gains."""

    @property
    def name(self) -> str:
        """Short name, used in tables."""

    def choose(self, problem: ClosureProblem, gains: FloatArray, chosen: Sequence[int]) -> int | None:
        """Index of the next term, None to stop; ``gains`` is -inf for candidates that cannot be taken."""


@dataclass(frozen=True, slots=True)
class Greedy:
    """The largest gain."""

    name: str = "greedy"

    def choose(self, problem: ClosureProblem, gains: FloatArray, chosen: Sequence[int]) -> int:
        """Index of the largest gain."""
        return int(np.argmax(gains))


@dataclass(frozen=True, slots=True)
class SobolevGuided:
    """Among the candidates with at least ``share`` of the largest gain, the highest conditional novelty."""

    share: float = 0.94
    name: str = "sobolev"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ParameterError(f"'share' must lie in (0, 1]. Got {self.share}.")

    def choose(self, problem: ClosureProblem, gains: FloatArray, chosen: Sequence[int]) -> int:
        """Index of the most novel term of the pool; the larger gain where novelties are equal."""
        pool = np.flatnonzero(gains >= self.share * gains.max())
        nu = problem.conditional_novelty([int(i) for i in pool], chosen)
        best = pool[nu >= nu.max() - TIE]
        return int(best[np.argmax(gains[best])])


@dataclass(frozen=True, slots=True)
class NoveltyFloor:
    """The largest gain among the candidates whose conditional novelty exceeds ``tau``; stops where there is none."""

    tau: float = TAU_ID
    name: str = "threshold"

    def choose(self, problem: ClosureProblem, gains: FloatArray, chosen: Sequence[int]) -> int | None:
        """Index of the largest gain above the floor."""
        usable = np.flatnonzero(np.isfinite(gains))
        nu = problem.conditional_novelty([int(i) for i in usable], chosen)
        novel = usable[nu > self.tau]
        return int(novel[np.argmax(gains[novel])]) if len(novel) else None


def rule_named(name: str, share: float = 0.94) -> Rule:
    """The selection rule with a name: "greedy", "sobolev" or "threshold"."""
    rules: dict[str, Rule] = {"greedy": Greedy(), "sobolev": SobolevGuided(share), "threshold": NoveltyFloor()}
    if name not in rules:
        raise ParameterError(f"'rule' must be one of {', '.join(rules)}. Got {name!r}.")
    return rules[name]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a selection: the term, its conditional novelty when taken, and the refitted model."""

    index: int
    term: TensorTerm
    novelty: float
    pool_size: int
    mse: float
    condition: float
    max_coefficient: float


@dataclass(frozen=True, slots=True)
class Selection:
    """A forward path: the first n steps are the model of n terms."""

    rule: str
    steps: tuple[Step, ...]

    @property
    def indices(self) -> list[int]:
        """Dictionary positions in the order of selection."""
        return [step.index for step in self.steps]

    def mse(self, n_terms: int) -> float:
        """Training error of the first ``n_terms`` terms."""
        if not 1 <= n_terms <= len(self.steps):
            raise ParameterError(f"'n_terms' must lie in 1..{len(self.steps)}. Got {n_terms}.")
        return self.steps[n_terms - 1].mse


def forward(problem: ClosureProblem, n_terms: int, rule: Rule | None = None) -> Selection:
    """Add terms one by one, refitting all coefficients after each.

    The candidates are kept orthogonal to the chosen terms, so a gain is one inner product and a step one
    rank-1 update of the factors.

    Parameters
    ----------
    problem : ClosureProblem
    n_terms : int
        At most this many terms; fewer when no candidate is left that the rule takes.
    rule : Rule, optional
        :class:`Greedy` without it.
    """
    if not 1 <= n_terms <= len(problem.terms):
        raise ParameterError(f"'n_terms' must lie in 1..{len(problem.terms)}. Got {n_terms}.")
    rule = Greedy() if rule is None else rule
    free, residual = problem.R.copy(), problem.z.copy()
    norm = np.linalg.norm(free, axis=0)
    steps: list[Step] = []
    chosen: list[int] = []
    for _ in range(n_terms):
        left = np.linalg.norm(free, axis=0)
        usable = left > DEPENDENT * norm
        usable[chosen] = False
        if not usable.any():
            break
        gains = np.full(len(norm), -np.inf)
        gains[usable] = (residual @ free[:, usable] / left[usable]) ** 2
        index = rule.choose(problem, gains, chosen)
        if index is None:
            break
        nu = float(problem.conditional_novelty([index], chosen)[0])
        chosen.append(index)
        unit = free[:, index] / left[index]
        free -= np.outer(unit, unit @ free)
        residual -= unit * (unit @ residual)
        fit = problem.fit(chosen)
        steps.append(
            Step(
                index=index,
                term=problem.terms[index],
                novelty=nu,
                pool_size=int((gains >= 0.94 * gains.max()).sum()),
                mse=fit.mse,
                condition=fit.condition,
                max_coefficient=float(np.abs(fit.coefficients).max()),
            )
        )
    return Selection(rule.name, tuple(steps))


def backward(problem: ClosureProblem, chosen: Sequence[int], n_terms: int) -> list[int]:
    """Delete the term whose loss raises the refitted training error least, until ``n_terms`` are left.

    Each round costs one small QR: deleting column i raises the squared error by c_i² / (G⁻¹)_ii (deletion and
    refit, with G the Gram matrix of values), read from the inverse of the triangular factor.
    """
    if not 1 <= n_terms <= len(chosen):
        raise ParameterError(f"'n_terms' must lie in 1..{len(chosen)}. Got {n_terms}.")
    kept = list(chosen)
    while len(kept) > n_terms:
        q, r = np.linalg.qr(problem.R[:, kept])
        inverse = np.linalg.solve(r, np.eye(len(kept)))
        coefficients = inverse @ (q.T @ problem.z)
        rise = coefficients**2 / (inverse**2).sum(axis=1)
        kept.pop(int(np.argmin(rise)))
    return kept


def select_closure(
    problem: ClosureProblem, n_terms: int, rule: Rule, *, forward_to: int | None = None
) -> tuple[Closure, list[int], Selection]:
    """A closure of ``n_terms`` terms: forward to ``forward_to`` (default ``n_terms``), then backward.

    Returns its terms' positions in the dictionary,
    and the forward path it comes from.
    """
    start = n_terms if forward_to is None else forward_to
    path = forward(problem, start, rule)
    kept = backward(problem, path.indices, n_terms) if len(path.steps) > n_terms else path.indices
    pruned = f"-from{start}" if start > n_terms else ""
    return problem.closure(kept, f"{rule.name}-{n_terms}{pruned}"), kept, path


def streamwise_folds(data: RegressionData, n_folds: int) -> list[npt.NDArray[np.intp]]:
    """Test samples of each fold: contiguous blocks of mesh columns, because neighbours are not independent."""
    n_columns = data.structured_cell.shape[1]
    if not 2 <= n_folds <= n_columns:
        raise ParameterError(f"'n_folds' must lie in 2..{n_columns}. Got {n_folds}.")
    blocks = np.array_split(np.arange(n_columns), n_folds)
    return [data.structured_cell[:, block].ravel().astype(np.intp) for block in blocks]


def cross_validate(
    data: RegressionData, n_terms: Sequence[int], rule: Rule, *, n_folds: int = 6, forward_to: int | None = None
) -> FloatArray:
    """Held-out mean squared error of the whole selection procedure, per fold and term count.

    ``n_terms``: term counts to compare.
    ``forward_to``: select this many terms first and prune back to each count; without it, forward selection alone.

    Returns shape (n_folds, len(n_terms)).
    """
    errors = np.empty((n_folds, len(n_terms)))
    for fold, test in enumerate(streamwise_folds(data, n_folds)):
        train = np.setdiff1d(np.arange(len(data.target)), test)
        problem = closure_problem(data, samples=train)
        path = forward(problem, forward_to or max(n_terms), rule).indices
        x, T, b = data.inputs[test], data.tensors[test], stacked_target(data.target[test])
        for column, count in enumerate(n_terms):
            kept = backward(problem, path, count) if forward_to and count < len(path) else path[:count]
            A = design_matrix([problem.terms[i] for i in kept], x, T)
            errors[fold, column] = np.mean((b - A @ problem.fit(kept).coefficients) ** 2)
    return errors
