"""next_rows(): the rows to measure next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.algebra.terms import Term, additive_terms
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.geometry import Geometry, Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.parameters import (
    FUNCTION,
    NOTHING,
    POSITIVE,
    Kind,
    checked,
    dictionary,
    instance,
    is_list,
    read,
    whole,
)
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample, as_target
from sobolev_novelty.design.candidates import Candidates, candidates_of
from sobolev_novelty.design.differences import (
    Curve,
    Rival,
    contained,
    pairs_of_equations,
    risk_of,
    risks_after,
    without_each_term,
)
from sobolev_novelty.design.rivals import Equations, equations_of
from sobolev_novelty.design.words import APART, Differences, sentences
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.language.peers import for_every_equation
from sobolev_novelty.metric.batch import novelties_of
from sobolev_novelty.report.intervals.constants import Parametrised, parametrised, parametrised_terms

if TYPE_CHECKING:
    from sobolev_novelty.design.table import NextRows

#: Rows at most.
MAX_ROWS = 1000
#: A row that adds less than this to every Λ buys nothing.
NOTHING_GAINED = 1e-6
#: Of a model so many equations at most; two that differ nowhere by more than this many standard deviations are one.
N_OF_MODEL, SAME = 10, 1.0
#: Rows of one call are so far apart, as a share of an input's range, where the equations are guesses of a search: what
#: no equation says is the same in a row that repeats another.
SPREAD = 0.1
#: Digits of equations in sentences.
DIGITS = 3

_COLUMN = Kind("a column", lambda v: isinstance(v, str))
_MODELS = read("an equation, a list of equations, or a fitted model")
_BOUNDS = (
    dictionary(_COLUMN, Kind("", is_list), "a dictionary of columns and (low, high)")
    | Kind("a list of (low, high) per column", lambda v: is_list(v) or getattr(v, "ndim", 0) == 2)
)  # fmt: skip
_NAMED = Kind("a list of columns", lambda v: is_list(v) and all(map(_COLUMN.holds, v)))
_ANYTHING = Kind("", lambda v: True)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What is to be told apart, on usable rows.

    Parameters
    ----------
    rivals : tuple of Rival
    pairs : tuple of (int, int)
        The law and the rival of every Λ, in the order of ``rivals``.
    labels : tuple of str
        Of the equations, or of the terms.
    terms : tuple of Term
        Of the one equation; empty for several.
    same : tuple of (int, int)
        Equations that are one function with other constants.
    are_guesses : bool
        Whether a search offers them: the law may be none of them.
    """

    rivals: tuple[Rival, ...]
    pairs: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]
    terms: tuple[Term, ...]
    same: tuple[tuple[int, int], ...]
    are_guesses: bool


@checked(
    models=_MODELS,
    y=read("one finite number per row") | NOTHING,
    bounds=_BOUNDS | NOTHING,
    pool=read("a table with the columns of X") | NOTHING,
    levels=dictionary(_COLUMN, Kind("", is_list), "a dictionary of columns and their levels") | NOTHING,
    integers=_NAMED | NOTHING,
    fixed=dictionary(_COLUMN, _ANYTHING, "a dictionary of columns and their values") | _NAMED | NOTHING,
    n=whole(1, MAX_ROWS),
    sigma=POSITIVE | NOTHING,
    costs=FUNCTION | instance("one number per row of the pool", list, tuple, np.ndarray) | NOTHING,
)
@for_every_equation
def next_rows(
    models: Any,
    X: Any,
    y: Any = None,
    *,
    bounds: Mapping[str, Sequence[float]] | Sequence[Sequence[float]] | None = None,
    pool: Any = None,
    levels: Mapping[str, Sequence[float]] | None = None,
    integers: Sequence[str] | None = None,
    fixed: Mapping[str, float] | Sequence[str] | None = None,
    n: int = 10,
    sigma: float | None = None,
    costs: Callable[[Any], Any] | Sequence[float] | None = None,
) -> NextRows:
    r"""The rows to measure next: where equations that fit the rows at hand would differ most.

    The rows are chosen one after the other. Each one makes the mean, over all pairs of a law *i* and a rival *j*, of
    :math:`\Phi(-\sqrt{\Lambda_{ij}}/2)` as small as one row can: the chance that the wrong one of the two would fit
    better. :math:`\Lambda_{ij}` is the squared difference of the two over all rows, in standard deviations of the
    noise, that is left when the constants of *j* have been refitted to *i* (linearised), averaged over what the rows at
    hand leave open of *i*. One equation alone has as rivals itself without each of its terms: Λ is then the cost of
    deleting the term, (\|b\| ν ‖φ‖/σ)². No measured value is looked at.

    Parameters
    ----------
    models : equation, list of equations, or fitted model
        Of a model the chosen equation and the different functions that cost little more, ten in all.
    X : array of shape (n_samples, n_features) or DataFrame
        The rows at hand.
    y : array of shape (n_samples,), optional
        Refits the equations to the rows at hand first, and tells the noise; the choice of rows does not look at it.
    bounds : dict of (low, high), or one (low, high) per column, optional
        The box in which inputs can be set; by default the range of each input at hand.
    pool : table with the columns of ``X``, optional
        Rows to choose from, each at most once, instead of a box.
    levels : dict of lists, optional
        Values that an input can be set to. With levels of all inputs the candidates are the full grid.
    integers : list of columns, optional
        Inputs that take whole numbers only.
    fixed : dict of values, or list of columns, optional
        Inputs that cannot be set: the value that they will have, or the median of the rows at hand.
    n : int
        Rows wanted. Fewer are returned where no candidate would add anything.
    sigma : float, optional
        Standard deviation of the noise of a measurement. By default what the residuals of the model or of the fit to
        ``y`` say, and without either a tenth of the spread of the first equation.
    costs : function of a DataFrame of rows, or one number per row of ``pool``, optional
        What a row costs: then the gain per cost decides.

    Returns
    -------
    DataFrame
        The rows in the columns of ``X``, the one to measure first on top. ``words`` says what they will buy, and
        ``steps`` has the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.1, 1.2, 12)[:, None]
    >>> rows = next_rows(["1.03*x0 - 0.2*x0**3", "sin(x0)"], X, bounds=[(0.0, 3.0)], n=3, sigma=0.05)
    >>> rows["x0"].tolist()
    [3.0, 2.31, 2.29]
    >>> print(rows.words)
    Noise: σ = 0.05, as given.
    The leading equations 1.03*x0 - 0.2*x0**3 and sin(x0) differ by 0.1σ now and by 4.8σ after 3 rows.
    Chance that a wrong one of two would fit better: 36 % now, 0.4 % after 3 rows.
    """
    sample = as_sample(X)
    target = None if y is None else as_target(y, sample.n_samples)
    equations = equations_of(models, sample, target, sigma)
    given = candidates_of(sample, bounds=bounds, pool=pool, levels=levels, integers=integers, fixed=fixed, costs=costs)
    task, usable = _task(equations, sample, given.sample)
    candidates = Candidates(given.sample.rows(usable), given.costs[usable], given.is_pool)
    chosen, found = _chosen(task, candidates, sample, n)
    words = sentences(
        found, sigma=equations.sigma, origin=equations.origin, asked=n, n_candidates=len(candidates.costs),
        n_left_out=int((~usable).sum()), is_pool=candidates.is_pool,
        novelties=_novelties(task.terms, sample, candidates.sample.X[:, chosen]),
    )  # fmt: skip
    return _table(given, np.flatnonzero(usable)[chosen].tolist(), found, words, columns=X, numbers=pool)


def _task(equations: Equations, sample: Sample, candidates: Sample) -> tuple[_Task, npt.NDArray[np.bool_]]:
    """The equations at the rows and candidates where all of them are finite, compared with each other."""
    expressions, wholes, far = _compared(equations, candidates)
    at_hand = [Curve.of(one, sample, equations.sigma) for one in wholes]
    used = np.logical_and.reduce([one.is_usable for one in at_hand])
    usable = np.logical_and.reduce([one.is_usable for one in far])
    if not usable.any():
        worst = expressions[int(np.argmin([one.is_usable.sum() for one in far]))]
        raise DataError(
            f"No candidate has finite values of every equation; {_text(worst)} has the fewest. Leave it out of "
            "'models', or give other 'bounds' or another 'pool'."
        )
    at_hand, far = [one.rows(used) for one in at_hand], [one.rows(usable) for one in far]
    if len(expressions) == 1:
        terms = additive_terms(expressions[0]).terms
        rivals = without_each_term(wholes[0], at_hand[0], far[0])
        labels = tuple("the constant" if term.is_constant else _text(term.expression) for term in terms)
        return _Task(
            tuple(rivals), tuple((k, k) for k in range(len(terms))), labels, terms, (), equations.is_offered
        ), usable
    inside = contained(far)
    rivals = pairs_of_equations(at_hand, far, inside)
    pairs = tuple((i, j) for j in range(len(far)) for i in np.flatnonzero(~inside[:, j]).tolist())
    same = [(i, j) for i in range(len(far)) for j in range(i + 1, len(far)) if inside[i, j] and inside[j, i]]
    return _Task(tuple(rivals), pairs, tuple(map(_text, expressions)), (), tuple(same), equations.is_offered), usable


def _compared(
    equations: Equations, candidates: Sample
) -> tuple[tuple[Expression, ...], list[Parametrised], list[Curve]]:
    """The equations with their constants, and at the candidates; one that is alone as a sum of its terms."""
    expressions, sigma = equations.expressions, equations.sigma
    wholes = [parametrised(expression) for expression in expressions]
    far = [Curve.of(one, candidates, sigma) for one in wholes]
    if equations.is_offered:
        kept = _different(far)
        expressions = tuple(expressions[k] for k in kept)
        wholes, far = [wholes[k] for k in kept], [far[k] for k in kept]
    if len(expressions) > 1:
        return expressions, wholes, far
    terms = additive_terms(expressions[0]).terms
    if not terms:
        raise ParameterError("'models' is the equation 0, which has no terms to tell apart. Give another one.")
    whole = parametrised_terms([t.coefficient for t in terms], [t.expression for t in terms])
    return expressions, [whole], [Curve.of(whole, candidates, sigma)]


def _different(curves: Sequence[Curve]) -> list[int]:
    """The first curve, and those that are finite wherever it is and differ from all before them somewhere."""
    first = curves[0].is_usable
    kept = [0]
    for k, curve in enumerate(curves):
        if k and len(kept) < N_OF_MODEL and curve.is_usable[first].all():
            apart = [np.abs(curve.values - curves[j].values)[first].max(initial=0.0) for j in kept]
            kept += [k] if min(apart) > SAME else []
    return kept


def _text(expression: Expression) -> str:
    text = short_text(expression, digits=DIGITS)
    return text if len(text) <= 60 else text[:59] + "…"


def _chosen(task: _Task, candidates: Candidates, sample: Sample, n: int) -> tuple[list[int], Differences]:
    """Candidates, one after the other, and the differences after each."""
    rivals, chosen = list(task.rivals), list[int]()
    if not rivals:
        return chosen, Differences(
            (), np.zeros((1, 0)), np.full(1, 0.5), tuple((task.labels[i], task.labels[j]) for i, j in task.same)
        )
    lengths, risks = [_curves(rivals)], [risk_of(rivals)]
    for _ in range(n):
        gains = [rival.gains() for rival in rivals]
        if task.are_guesses and lengths[-1].min() >= APART**2:
            # Nothing is left to tell apart, and the law may be none of these: the farthest rows show it best.
            worth, is_open = 1.0 / candidates.costs, np.ones(len(candidates.costs), dtype=bool)
        else:
            now, after = risks_after(rivals, gains)
            worth = (now - after) / candidates.costs
            is_open = np.max([gain.max(axis=0) for gain in gains], axis=0) > NOTHING_GAINED
        if candidates.is_pool:
            is_open[chosen] = False
        if task.are_guesses and chosen:
            apart = is_open & _are_apart(candidates.sample, chosen)
            is_open = apart if apart.any() else is_open
        if not is_open.any():
            break
        k = _best(np.where(is_open, worth, -np.inf), candidates.sample, sample, chosen)
        chosen.append(k)
        rivals = [rival.after(k) for rival in rivals]
        lengths.append(_curves(rivals))
        risks.append(risk_of(rivals))
    return chosen, _differences(task, np.array(lengths), np.array(risks))


def _are_apart(candidates: Sample, chosen: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Which candidates are farther from all chosen ones than :data:`SPREAD` of the range, along some input."""
    width = np.ptp(candidates.X, axis=1)
    unit = SPREAD * np.where(width > 0.0, width, 1.0)
    found = np.ones(candidates.n_samples, dtype=bool)
    for row in candidates.X[:, list(chosen)].T:
        found &= (np.abs(candidates.X - row[:, None]) > unit[:, None]).any(axis=0)
    return found


def _best(worth: FloatArray, candidates: Sample, sample: Sample, chosen: Sequence[int]) -> int:
    """The candidate that is worth most; of equal ones the farthest from all rows."""
    most = float(worth.max())
    equal = np.flatnonzero(worth >= most - 1e-9 * abs(most))
    if len(equal) == 1:
        return int(equal[0])
    width = np.ptp(candidates.X, axis=1)
    unit = np.where(width > 0.0, width, 1.0)[:, None]
    places, rows = candidates.X[:, equal] / unit, np.hstack([sample.X, candidates.X[:, list(chosen)]]) / unit
    distance = np.full(len(equal), np.inf)
    for row in rows[:, np.isfinite(rows).all(axis=0)].T:
        distance = np.minimum(distance, np.square(places - row[:, None]).sum(axis=0))
    return int(equal[distance.argmax()])


def _curves(rivals: Sequence[Rival]) -> FloatArray:
    return np.concatenate([rival.curves for rival in rivals])


def _differences(task: _Task, lengths: FloatArray, risks: FloatArray) -> Differences:
    """Of the two directions of a pair the one that differs less."""
    places: dict[tuple[int, int], list[int]] = {}
    for k, (i, j) in enumerate(task.pairs):
        places.setdefault((min(i, j), max(i, j)), []).append(k)
    keys = sorted(places)
    labels = tuple((task.labels[i], task.labels[j] if i != j else "") for i, j in keys)
    same = tuple((task.labels[i], task.labels[j]) for i, j in task.same)
    return Differences(
        labels, np.sqrt(np.stack([lengths[:, places[k]].min(axis=1) for k in keys], axis=1)), risks, same
    )


def _novelties(terms: Sequence[Term], sample: Sample, added: FloatArray) -> list[str]:
    """How novelty of the terms would go, where there are enough rows for one."""
    if len(terms) < 2 or not added.shape[1]:
        return []
    each = []
    for k in range(added.shape[1] + 1):
        rows = Sample(np.hstack([sample.X, added[:, :k]]), sample.names)
        found = novelties_of([terms], rows, Geometry(intercept="free"))[0]
        each.append(found.nu if found.status is Status.OK else np.full(len(terms), np.nan))
    nu, n = np.array(each), added.shape[1]
    lines = []
    for t, term in enumerate(terms):
        if np.isnan(nu[n, t]):
            continue
        before = f"{nu[0, t]:.2f} → " if np.isfinite(nu[0, t]) else ""
        distinct = np.flatnonzero(nu[:, t] > TAU_ID)
        when = " (not distinct yet)"
        if len(distinct) and nu[n, t] > TAU_ID:
            k = int(distinct[0])
            when = "" if nu[0, t] > TAU_ID else f", distinct after {'1 row' if k == 1 else f'{k} rows'}"
        lines.append(f"ν of {_text(term.expression)}: {before}{nu[n, t]:.2f}{when}")
    return ["; ".join(lines) + "."] if lines else []


def _table(
    given: Candidates, chosen: Sequence[int], found: Differences, words: str, *, columns: Any, numbers: Any
) -> NextRows:
    import pandas as pd

    from sobolev_novelty.design.table import NextRows

    rows = list(chosen)
    index = None if not given.is_pool else numbers.index[rows] if hasattr(numbers, "iloc") else rows
    names = list(columns.columns) if hasattr(columns, "columns") else list(given.sample.names)
    table = NextRows(given.sample.X[:, rows].T, columns=names, index=index)
    table.words = words
    table.steps = pd.DataFrame({"risk": found.risks, "leading": found.leading, "closest": found.closest})
    return table
