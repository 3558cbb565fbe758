r"""Smaller problems inside a problem: variables that factor out, and variables that only occur together.

A hypothesis such as "the target is x₁² times a function of the others" or "x₁ and x₂ occur only as x₁ − x₂" leaves a
problem with one variable less. If it is true, a smooth interpolant of the reduced data predicts left-out points better,
because the points lie denser; if it is false, information is lost and the error jumps. The leave-one-out error of
Gaussian-process interpolation, in closed form from one small inverse, decides which hypotheses are worth following.

Notation
--------
``t``  target of the reduced problem;  ``K`` kernel matrix on n ≤ 250 rows;  r_i = (K⁻¹t)_i / (K⁻¹)_ii  the
leave-one-out residuals
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import product
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.subproblem import TURNED, Subproblem, Variable

#: Rows the interpolant sees.
SURROGATE_ROWS = 250
#: … and where more than two variables make every row cost more.
SURROGATE_ROWS_WIDE = 160
#: … and where an interpolant on so few rows knows next to nothing (an error above HARD).
SURROGATE_ROWS_HARD = 700
HARD = 0.25
MUST_PAY = 0.7
#: A hypothesis whose error grows by this factor is not tried again in deeper reductions.
_CLEARLY_FALSE = 4.0
#: Length scale and nugget of the interpolants that are tried; the larger nugget is for noisy targets.
_SMOOTHERS = ((1.5, 1e-7), (4.0, 1e-7), (3.0, 1e-2))
#: Error below which more powers of a scale are tried: noise cannot tell so many hypotheses apart.
_CLEAR = 0.05
#: Memory for interpolants that may be asked for again: some hundred on the usual rows.
_MAX_KEPT = 1 << 25


@dataclass(frozen=True, slots=True, eq=False)
class Interpolant:
    """What a Gaussian process of given inputs needs to predict left-out points of any target."""

    lower: FloatArray | None  # shape (n, n) or None: Cholesky factor of K; None where it has none
    diagonal: FloatArray  # shape (n,): that of K⁻¹

    @classmethod
    def of(cls, columns: Sequence[FloatArray], length: float, nugget: float) -> Interpolant:
        """The interpolant of columns of equal weight, with this length scale relative to their spread."""
        z = np.array(columns)
        z -= z.mean(axis=1, keepdims=True)
        z /= np.maximum(z.std(axis=1, keepdims=True), 1e-300) * (length * np.sqrt(len(columns)))
        # exp(−|z − z'|²/2) from inner products, in place: this is made thousands of times.
        K = z.T @ z
        half = 0.5 * np.diagonal(K)
        K -= half[:, None]
        K -= half
        np.exp(K, out=K)
        K += 1.0
        K[np.diag_indices_from(K)] += nugget
        lower, failed = dpotrf(K.T, lower=1, overwrite_a=1)  # K is symmetric; LAPACK wants columns
        if failed:
            return cls(None, np.zeros(0))
        # Of K⁻¹ = L⁻ᵀ L⁻¹ only the diagonal is needed: the squared lengths of the columns of L⁻¹.
        inverse, _ = dtrtri(lower, lower=1)
        return cls(lower, np.einsum("ij,ij->j", inverse, inverse))

    def error(self, t: FloatArray) -> float:
        """Root mean square of the leave-one-out residuals."""
        if self.lower is None:
            return float("inf")
        alpha, _ = dpotrs(self.lower, t, lower=1)
        residuals = alpha / self.diagonal
        # A few wild points (near a pole) must not hide that the rest is predicted well.
        return float(np.sqrt(np.mean(np.minimum(residuals**2, 25.0))))


class Interpolants:
    """Interpolants by their inputs: many hypotheses differ in the target only, and reductions meet in any order."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], Interpolant] = OrderedDict()

    def of(self, columns: Sequence[FloatArray], length: float, nugget: float) -> Interpolant:
        """The interpolant of these columns: a known one, or a new one in place of the one not asked for longest."""
        key = (length, nugget, *(column.tobytes() for column in columns))
        found = self._known.get(key)
        if found is None:
            n = len(columns[0])
            while len(self._known) >= max(1, _MAX_KEPT // (8 * n * n)):
                self._known.popitem(last=False)
            found = self._known[key] = Interpolant.of(columns, length, nugget)
        self._known.move_to_end(key)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """How an interpolant sees a problem, and what is known to be false of it."""

    in_logs: bool
    smoother: tuple[float, float]
    n_rows: int | None
    interpolants: Interpolants
    hopeless: frozenset[str] = frozenset()


def loo_error(
    variables: Sequence[Variable],
    target: FloatArray,
    *,
    in_logs: bool,
    smoothers: Sequence[tuple[float, float]] = _SMOOTHERS,
    n_rows: int | None = None,
    interpolants: Interpolants | None = None,
) -> tuple[float, tuple[float, float]]:
    """Leave-one-out error of an interpolant, relative to the target's spread, and the smoother it is for.

    ``inf`` where it cannot be made. Those made are kept in ``interpolants``.
    """
    known = Interpolants() if interpolants is None else interpolants
    usual = SURROGATE_ROWS if len(variables) <= 2 else SURROGATE_ROWS_WIDE
    n = min(usual if n_rows is None else n_rows, len(target))
    t = _target_coordinate(target[:n], in_logs)
    columns = [_coordinate(v.values[:n], in_logs and v.is_positive) for v in variables]
    if not np.isfinite(t).all() or not all(np.isfinite(c).all() for c in columns):
        return float("inf"), smoothers[0]
    spread = t.std()
    if spread <= 1e-13 * max(1.0, abs(t.mean())):
        return 0.0, smoothers[0]
    if not columns:
        return 1.0, smoothers[0]
    t = (t - t.mean()) / spread
    return min((known.of(columns, *s).error(t), s) for s in smoothers)


def _coordinate(values: FloatArray, in_logs: bool) -> FloatArray:
    return np.log(values) if in_logs else values


def _target_coordinate(t: FloatArray, in_logs: bool) -> FloatArray:
    """A monotone change of the target that an interpolant can follow: hypotheses about variables survive it."""
    if in_logs and (t > 0.0).all():
        return np.log(t)
    size = float(np.median(np.abs(t - np.median(t))))
    if size > 0.0 and np.abs(t).max() > 30.0 * size:
        return np.arcsinh(t / size)
    return t


def root(problem: Subproblem, interpolants: Interpolants | None = None, *, n_rows: int | None = None) -> Subproblem:
    """The problem with an interpolant in the coordinates that suit it better; a negative target is turned around."""
    if (problem.target < 0.0).all():
        return root(problem.behind(TURNED), interpolants)
    known = interpolants or Interpolants()
    rows = problem.variables, problem.target
    plain = loo_error(*rows, in_logs=False, n_rows=n_rows, interpolants=known)
    logs = (float("inf"), _SMOOTHERS[0])
    if any(v.is_positive for v in problem.variables):
        logs = loo_error(*rows, in_logs=True, n_rows=n_rows, interpolants=known)
    error, smoother = min(plain, logs)
    return replace(problem, error=error, view=View(logs < plain, smoother, n_rows, known))


def on_more_rows(problem: Subproblem) -> Subproblem:
    """The problem with an interpolant on more rows, if that pays: it helps against fast variation, not noise."""
    denser = root(problem, problem.view.interpolants, n_rows=SURROGATE_ROWS_HARD)
    return denser if denser.error < MUST_PAY * problem.error else problem


def reductions(problem: Subproblem, operators: Sequence[str]) -> Iterator[Subproblem | None]:
    """All reductions by one variable, best first; what is clearly false here is not tried again further down.

    ``None`` comes before them, once for every few hypotheses tried: a look at the clock is due.
    """
    view: View = problem.view
    tried: list[Subproblem] = []
    pace = 256 if view.n_rows is None else 16  # about as long as a few generations of an engine
    hopeless = set(view.hopeless)
    for count, (name, reduced) in enumerate(_hypotheses(problem, operators)):
        error, _ = loo_error(
            reduced.variables,
            reduced.target,
            in_logs=view.in_logs,
            smoothers=(view.smoother,),
            n_rows=view.n_rows,
            interpolants=view.interpolants,
        )
        if error > _CLEARLY_FALSE * problem.error:
            hopeless.add(name)
        else:
            tried.append(replace(reduced, error=error))
        if (count + 1) % pace == 0:
            yield None
    below = replace(view, hopeless=frozenset(hopeless))
    yield from (replace(reduced, view=below) for reduced in sorted(tried, key=lambda reduced: reduced.error))


#: What a hypothesis is called, so that it is not tried again, and the problem that is left where it is true.
Hypothesis = tuple[str, Subproblem]


def _hypotheses(problem: Subproblem, operators: Sequence[str]) -> Iterator[Hypothesis]:
    variables, hopeless = problem.variables, problem.view.hopeless
    for i, v in enumerate(variables):
        rest = variables[:i] + variables[i + 1 :]
        name = f"drop {v.expression}"
        if name not in hopeless:
            yield name, replace(problem, variables=rest)
        yield from _stripped(replace(problem, variables=rest), v, operators)
    for (i, a), (j, b) in itertools.combinations(enumerate(variables), 2):
        rest = tuple(v for k, v in enumerate(variables) if k not in (i, j))
        for merged in _merged(a, b, hopeless):
            yield f"merge {merged.expression}", replace(problem, variables=(*rest, merged))
        yield from _homogeneous(replace(problem, variables=rest), a, b)


def _stripped(rest: Subproblem, v: Variable, operators: Sequence[str]) -> Iterator[Hypothesis]:
    """The target is f(v) times a function of the rest."""
    for power in words.STRIPPED:
        name = f"strip {v.expression} {power}"
        is_defined = v.is_positive or (power.is_integer() and bool((np.abs(v.values) > 1e-9).all()))
        if name not in rest.view.hopeless and is_defined:
            yield name, rest.behind(Product(((v.expression, power),)), v.values**power)
    for function in words.FACTORS:
        name = f"strip {function} {v.expression}"
        if function in operators and name not in rest.view.hopeless:
            with np.errstate(all="ignore"):
                factor = OPERATORS[function].value(v.values)
            if np.isfinite(factor).all() and (np.abs(factor) > 1e-9).all():
                yield name, rest.behind(Product(((Expression.of(function, v.expression), 1.0),)), factor)


def _homogeneous(rest: Subproblem, a: Variable, b: Variable) -> Iterator[Hypothesis]:
    """The target is bᵏ times a function of a/b and the rest; of a clear target also of a·b."""
    if not (a.is_positive and b.is_positive):
        return
    is_clear = rest.error <= _CLEAR
    for sign in (-1.0, 1.0) if is_clear else (-1.0,):
        values = a.values / b.values if sign < 0.0 else a.values * b.values
        together = Variable(product([(a.expression, 1.0), (b.expression, sign)]), values)
        for power in (*words.HOMOGENEOUS, *(words.HOMOGENEOUS_TOO if is_clear else ())):
            name = f"scale {together.expression} {power}"
            if name not in rest.view.hopeless:
                step = Product(((b.expression, power),))
                yield name, rest.behind(step, b.values**power, variables=(*rest.variables, together))


def _merged(a: Variable, b: Variable, hopeless: frozenset[str]) -> Iterator[Variable]:
    """One variable in place of two."""
    squares = Expression.of("square", a.expression), Expression.of("square", b.expression)
    candidates: list[tuple[Expression, Callable[[], FloatArray]]] = []
    for name in ("sub", "add"):
        value = OPERATORS[name].value
        candidates.append((Expression.of(name, a.expression, b.expression), partial(value, a.values, b.values)))
        candidates.append((Expression.of(name, *squares), partial(value, a.values**2, b.values**2)))
    for p, q in words.TOGETHER_ONLY:
        expression = product([(a.expression, float(p)), (b.expression, float(q))])
        candidates.append((expression, partial(_power_product, a.values, b.values, p, q)))
    for expression, values in candidates:
        if f"merge {expression}" not in hopeless:
            # Not around the whole loop: a generator that is left in the middle may be closed in another thread.
            with np.errstate(all="ignore"):
                found = values()
            if np.isfinite(found).all():
                yield Variable(expression, found)


def _power_product(a: FloatArray, b: FloatArray, p: int, q: int) -> FloatArray:
    return np.asarray(a**p * b**q if q > 0 else a**p / b**-q)
