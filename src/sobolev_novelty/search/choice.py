"""Which equation of a front is reported: rules of choice, and baselines that must be beaten.

A rule ranks the candidates; the first that no doubt stands against (:mod:`sobolev_novelty.search.doubt`) is chosen.
Exact fits (:data:`TRUSTED_NMSE`) are trusted, whatever their poles, where the rows say more than chance could
(:mod:`sobolev_novelty.search.chance`): the law is found. A search can explain noise, so its equations have to stand
against the straight line and the constant on rows that were held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.algebra.writing import summands
from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.projection import TAU_ID
from sobolev_novelty.scoring import EXACT_NMSE, PARSIMONY, base_score
from sobolev_novelty.search.chance import is_beyond_chance, length, n_numbers
from sobolev_novelty.search.dimensions import Dimensions
from sobolev_novelty.search.doubt import doubt
from sobolev_novelty.search.engine import Candidate, Deadline
from sobolev_novelty.search.fits import Fitter
from sobolev_novelty.search.forms import split_form
from sobolev_novelty.search.front import only_noise_is_left
from sobolev_novelty.search.rounding import rounding_errors
from sobolev_novelty.search.steady_line import held_out_squares, steadied
from sobolev_novelty.search.validation import (
    IndexArray,
    Rows,
    Validation,
    cross_validated,
    dealt_folds,
    lead,
    rim_errors,
)
from sobolev_novelty.terms import additive_terms

if TYPE_CHECKING:
    import pandas as pd

#: The table of equations -> the index of the row to choose.
Rule = Callable[["pd.DataFrame"], int]

RULES = ("score", "distinct", "validation", "one-se")
#: Fits with an error below this share of the target's variance are trusted as they are.
TRUSTED_NMSE = 1e-9
#: How many times the error that rounding of the rows leaves a law may have; its constants are not quite the true ones.
ROUNDING_SLACK = 4.0
#: Nodes that a number with all its digits weighs there: rows so exact could not have confirmed it by chance.
NODES_PER_NUMBER = 4
#: On fewer rows a search can explain much noise, and folds that do not repeat it are too kind to its equations.
FEW_ROWS = 300
#: The straight line is a candidate where there are this many rows for each of its columns; the folds say what it is
#: worth.
ROWS_PER_COLUMN = 2
#: Nodes that a column of the straight line takes: a coefficient, a product, the column, a sum.
NODES_PER_COLUMN = 4
#: Share of a baseline's cross-validated error that chance is counted to explain at least, on few rows: the folds do not
#: repeat the search. Set by looking at searches on seven small tables of PMLB (docs/intervals.md has the figures, and
#: those of tables that were not looked at).
LEAST_CHANCE = 0.15
#: Up to this share chance is counted as 2 ln N / n, which is more than it is where rows are few: the search is not one
#: draw of N forms. On eight to twenty rows that would leave nothing to be found.
MOST_LINEAR = 0.7
#: How many times that an equation must gain, in logarithms: a search that goes from good forms to better ones finds
#: more than as many draws would, and a few rows may carry the lead.
CHANCE_MARGIN = 2.0
#: Standard errors that count as clear, row by row.
CLEAR_LEAD = 3.0
#: The same for a straight line in fewer inputs than the baseline: its form was not searched for.
SHORT_LINE_LEAD = 1.0
#: Different equations of one search that may stand against the baselines: who tries often wins by chance.
N_CONTESTS = 10
#: Standard errors by which a longer equation with a better score must be ahead of the shortest description.
LONGER_LEAD = 1.0
#: Times the rows are dealt into folds anew for that comparison.
N_REPEATS = 5
#: Equations that are looked at for doubts when the time is over, on many rows; on few all of them are.
N_LATE = 10
#: Nodes of an equation above which a shorter one is looked for that the rows cannot clearly tell from it.
LONG = 25
#: On many rows a doubt is outweighed where what no doubt stands against has an error this many times as large on rows
#: held out: cot(x) has a pole, and is still a better account of rows on both sides of it than a straight line. Or where
#: that takes as many nodes at least and this many nats more: arcsin(x/y) ends where the rows end.
OUTWEIGHED = 4.0
OUTWEIGHED_NATS = 10.0


def linear_form(rows: Rows, max_complexity: int) -> Expression | None:
    """The straight line in all columns that vary, to be fitted.

    Where there are too many for the rows or for the limit, the columns that lower the error most, one after the other,
    as long as they do so by more than the best of as many random columns would: folds cannot tell, because the columns
    were chosen on all rows. None where no column does.
    """
    varying = np.flatnonzero(np.ptp(rows.X, axis=0) > 0.0)
    n = min(len(varying), len(rows.y) // ROWS_PER_COLUMN, (max_complexity - 1) // NODES_PER_COLUMN)
    if n < 1:
        return None
    columns = (varying if n == len(varying) else _telling(rows, varying, n)).tolist()
    if not columns:
        return None
    first, *rest = columns
    total = Expression.of(rows.names[first])
    for place in rest:
        total = Expression.of("add", total, rows.names[place])
    return Expression.of("add", total, 1.0)


def _telling(rows: Rows, varying: IndexArray, n: int) -> IndexArray:
    """The columns of a forward selection, in the order of the table."""
    root = np.ones(len(rows.y)) if rows.weights is None else np.sqrt(rows.weights)
    Z = root[:, None] * (rows.X[:, varying] - np.average(rows.X[:, varying], axis=0, weights=rows.weights))
    residual = root * (rows.y - np.average(rows.y, weights=rows.weights))
    chosen: list[int] = []
    left = np.linalg.norm(Z, axis=0)
    for _ in range(n):
        lengths = np.linalg.norm(Z, axis=0)
        with np.errstate(all="ignore"):
            gains = np.where(lengths > 1e-7 * left, np.abs(residual @ Z) / lengths, -1.0)
        gains[chosen] = -1.0
        best = int(np.argmax(gains))
        chance = np.linalg.norm(residual) * np.sqrt(2.0 * np.log(max(2, len(varying) - len(chosen))) / len(residual))
        if gains[best] <= chance:
            break
        chosen.append(best)
        direction = Z[:, best] / lengths[best]
        residual = residual - (residual @ direction) * direction
        Z = Z - np.outer(direction, direction @ Z)
    return np.sort(varying[chosen])


def check_select(select: object) -> None:
    """Refuse what is not a rule of choice, before a search is spent on it."""
    if not callable(select) and select not in RULES:
        raise ParameterError(f"'select' must be one of {', '.join(RULES)}, or a callable. Got {select!r}.")


def chosen_index(
    candidates: Sequence[Candidate],
    table: pd.DataFrame,
    rows: Rows,
    select: str | Rule,
    *,
    baselines: Sequence[Candidate] = (),
    n_rows: int | None = None,
    n_tried: int = 1,
    longest: int = 0,
    deadline: Deadline | None = None,
) -> int:
    """The row of the table of equations that a rule chooses.

    Parameters
    ----------
    candidates : sequence of Candidate
        One for each row of the table.
    table : DataFrame
        ``equations_``, as a rule of the user's own gets it.
    select : {"score", "distinct", "validation", "one-se"} or callable
    baselines : sequence of Candidate
        Those of the candidates that nobody searched for. With the rule "score" the others have to beat them.
    n_rows : int, optional
        Rows that the errors of the candidates are of, where there are more than those in ``rows``.
    n_tried : int
        Forms that the search has fitted.
    longest : int
        Complexity of the longest equation that was best on the rows of the search.
    deadline : Deadline, optional
        When it is over the first of the ranking that no doubt stands against is taken, without a look at rows held
        out, unless rows are few: there the judgement is quick.
    """
    if callable(select):
        index = select(table)
        if not isinstance(index, int | np.integer) or not -len(table) <= index < len(table):
            raise ParameterError(
                f"'select' must return the index of a row of equations_, 0 to {len(table) - 1}. Got {index!r}."
            )
        return int(index) % len(table)
    n_rows = len(rows.y) if n_rows is None else n_rows
    order = _ranked(candidates, table, rows, select, n_rows=n_rows, longest=longest, deadline=deadline)
    contest = Contest.of(baselines if select == "score" else (), rows, n_tried)
    index = _first_unopposed(order, candidates, rows, contest, baselines=baselines, n_rows=n_rows, deadline=deadline)
    is_over = deadline is not None and deadline.is_over
    return index if select != "score" or is_over else _shorter(index, candidates, rows, contest, deadline)


def _first_unopposed(
    order: Sequence[int],
    candidates: Sequence[Candidate],
    rows: Rows,
    contest: Contest,
    *,
    baselines: Sequence[Candidate],
    n_rows: int,
    deadline: Deadline | None,
) -> int:
    """The first of a ranking that no doubt stands against and that holds its own against the baselines."""
    lost: set[str] = set()  # errors of equations that lost: one is often there several times, in other words
    doubted: list[int] = []
    for index in order:
        candidate = candidates[index]
        if deadline is not None and deadline.is_over and len(rows.y) >= FEW_ROWS:
            if lost:  # what comes next has the lower score, and the baseline is better than what had a higher one
                break
            return _first_undoubted(order[:N_LATE], candidates, rows, n_rows, deadline)
        if _is_trusted(candidate, rows) or contest.is_best(candidate):
            return _outweighing(doubted, index, candidates, rows, n_rows)
        if candidate in baselines or len(lost) >= N_CONTESTS:
            continue
        if doubt(candidate.expression, rows, deadline):
            doubted.append(index)
        elif contest.is_won_by(candidate):
            return _outweighing(doubted, index, candidates, rows, n_rows)
        else:
            lost.add(f"{candidate.nmse:.4g}")
    return next((i for i in order if contest.is_best(candidates[i])), order[0])


def _first_undoubted(
    order: Sequence[int], candidates: Sequence[Candidate], rows: Rows, n_rows: int, deadline: Deadline
) -> int:
    """The first of a ranking that is exact or that no doubt stands against; the very first where there is none."""
    for k, index in enumerate(order):
        candidate = candidates[index]
        if _is_trusted(candidate, rows) or not doubt(candidate.expression, rows, deadline):
            return _outweighing(order[:k], index, candidates, rows, n_rows)
    return order[0]


def _shorter(
    index: int, candidates: Sequence[Candidate], rows: Rows, contest: Contest, deadline: Deadline | None
) -> int:
    """A shorter equation than a long one, where rows held out do not speak clearly for the length.

    Few read more than :data:`LONG` nodes. Of those that are less than :data:`CLEAR_LEAD` standard errors behind, row by
    row, the best score on the rows held out is taken, with a node at three times its usual price.
    """
    long = candidates[index]
    is_safe = contest.is_best(long) and len(rows.y) < FEW_ROWS
    if long.complexity <= LONG or is_safe or not rows.loss.is_squared or _is_trusted(long, rows):
        return index
    others = [i for i, c in enumerate(candidates) if c.complexity < long.complexity]
    found = _validated([candidates[i].expression for i in (*others, index)], rows)
    centre = np.average(rows.y, weights=rows.weights)
    total = float(np.average((rows.y - centre) ** 2, weights=rows.weights))
    scores = [
        base_score(error / total, candidates[i].complexity, math.inf, parsimony=PARSIMONY**3)
        for i, error in zip((*others, index), found.mean.tolist(), strict=True)
    ]
    better = [k for k in range(len(others)) if scores[k] > scores[-1]]
    for k in sorted(better, key=lambda k: -scores[k]):
        if deadline is not None and deadline.is_over:
            break
        candidate = candidates[others[k]]
        is_clear = lead(found.squares[-1], found.squares[k], rows.weights) >= CLEAR_LEAD
        if not is_clear and not doubt(candidate.expression, rows, deadline) and contest.is_won_by(candidate):
            return others[k]
    return index


def _outweighing(doubted: Sequence[int], index: int, candidates: Sequence[Candidate], rows: Rows, n_rows: int) -> int:
    """The first of those passed over that outweighs its doubt beside the one to be taken."""
    if not doubted or len(rows.y) < FEW_ROWS:
        return index
    taken, n_inputs = candidates[index], rows.X.shape[1]
    limit = taken.nats(n_rows, n_inputs) - OUTWEIGHED_NATS
    mean = cross_validated([candidates[i].expression for i in (*doubted, index)], rows).mean
    for i, error in zip(doubted, mean, strict=False):
        is_shorter = candidates[i].complexity <= taken.complexity and rows.loss.is_squared
        if OUTWEIGHED * error < mean[-1] or (is_shorter and candidates[i].nats(n_rows, n_inputs) < limit):
            return i
    return index


def _is_trusted(candidate: Candidate, rows: Rows) -> bool:
    """Whether a fit is exact, and not by chance."""
    is_exact = candidate.nmse < TRUSTED_NMSE
    return is_exact and is_beyond_chance(candidate.expression, candidate.nmse, len(rows.y), rows.X.shape[1])


def by_rank(candidates: Sequence[Candidate]) -> Rule:
    """The rule that takes the simplest exact fit, or else the best score, whatever speaks against it."""
    return lambda _: max(range(len(candidates)), key=lambda i: candidates[i].rank)


def within_rounding(candidates: Sequence[Candidate], rows: Rows) -> int | None:
    """The simplest candidate whose error is that of numbers rounded in the rows: they can say nothing against it.

    R_base does not see the difference between an error of 1e-6 and one of 1e-13, and would take the shorter equation.
    """
    low = [i for i, candidate in enumerate(candidates) if _is_trusted(candidate, rows)]
    # An exact fit says that nothing was rounded: whole numbers that the law gives are not whole by rounding.
    if not low or not rows.loss.is_squared or min(candidates[i].nmse for i in low) < EXACT_NMSE:
        return None
    limits = ROUNDING_SLACK * rounding_errors([candidates[i].expression for i in low], rows)
    found = [i for i, limit in zip(low, limits.tolist(), strict=True) if candidates[i].nmse <= limit]
    return min(found, key=lambda i: (_weight(candidates[i].expression), candidates[i].nmse), default=None)


def _weight(expression: Expression) -> int:
    return expression.complexity + NODES_PER_NUMBER * n_numbers(expression)


def _ranked(
    candidates: Sequence[Candidate],
    table: pd.DataFrame,
    rows: Rows,
    select: str,
    *,
    n_rows: int,
    longest: int,
    deadline: Deadline | None,
) -> list[int]:
    """Indices, the best first."""
    law = within_rounding(candidates, rows)
    by_score = sorted(range(len(candidates)), key=lambda i: (i == law, candidates[i].rank), reverse=True)
    if candidates[by_score[0]].nmse < TRUSTED_NMSE:
        return by_score
    if select == "score":
        if not rows.loss.is_squared or n_rows < FEW_ROWS:
            return by_score
        described = _by_description(candidates, n_rows, rows.X.shape[1], longest) or by_score
        is_short = _is_too_short(candidates[described[0]], candidates[by_score[0]], rows, deadline)
        return by_score if is_short else described
    if select == "distinct":
        distinct = (table["min_novelty"] > TAU_ID).tolist()
        return sorted(by_score, key=lambda i: not distinct[i])
    found = cross_validated([candidate.expression for candidate in candidates], rows)
    by_error = sorted(range(len(candidates)), key=lambda i: (found.mean[i], candidates[i].complexity))
    if select == "validation":
        return by_error
    best = by_error[0]
    limit = found.mean[best] + found.standard_error[best]
    within = [i for i in range(len(candidates)) if found.mean[i] <= limit]
    simplest = sorted(within, key=lambda i: candidates[i].complexity)
    return simplest + [i for i in by_error if i not in within]


def _by_description(candidates: Sequence[Candidate], n_rows: int, n_inputs: int, longest: int) -> list[int] | None:
    """Indices, the shortest description first, where much longer equations were found and describe the rows no better.

    What R_base takes for a hair's breadth may then be the difference between a law and an approximation. None where
    descriptions get shorter as equations get longer: no law was found, and R_base says how much length an approximation
    is worth.
    """
    if not only_noise_is_left(candidates, n_rows, n_inputs, longest):
        return None

    def key(i: int) -> tuple[float, int]:
        # Of one equation in different words the sum that is written out: 9.8*a + 0.4*b, not 0.4*(b + 24.5*a).
        return round(candidates[i].nats(n_rows, n_inputs), 6), -len(summands(candidates[i].expression))

    return sorted(range(len(candidates)), key=key)


def _is_too_short(described: Candidate, scored: Candidate, rows: Rows, deadline: Deadline | None) -> bool:
    """Whether rows held out speak for the longer equation that R_base takes: then no law was found.

    R_base buys length with large gains only. Where it does so beside a law, the gain is one of chance, and rows held
    out know nothing of it.
    """
    if scored.complexity <= described.complexity or (deadline is not None and deadline.is_over):
        return False
    own, other = cross_validated([scored.expression, described.expression], rows).squares
    return lead(own, other, rows.weights) >= LONGER_LEAD


def baselines(
    rows: Rows, max_complexity: int, operators: Collection[str], dimensions: Dimensions | None = None
) -> list[Expression]:
    """The constant, and the straight line where it is allowed and its units go together, fitted to the rows."""
    forms = [Expression.of(1.0)]
    line = linear_form(rows, max_complexity) if {"add", "mul"} <= set(operators) else None
    if line is not None:
        forms.append(line)
    fitter = Fitter(np.ascontiguousarray(rows.X.T), rows.names, rows.y, rows.weights, 1.0)
    fits = fitter.fit([split_form(form) for form in forms])
    found = [assemble(fit.terms, fit.coefficients.tolist()) for fit in fits if math.isfinite(fit.nmse)]
    found = [e for e in found if dimensions is None or not e.variables or dimensions.allows(e)]
    return [expression for expression in found if expression.complexity <= max(max_complexity, 1)]


def steady(baseline: Expression, rows: Rows) -> Expression:
    """A baseline as it competes: a straight line on few rows is not left to least squares alone."""
    return steadied(baseline, rows) if _may_be_steadied(baseline, rows) else baseline


def _may_be_steadied(baseline: Expression, rows: Rows) -> bool:
    is_line = len(baseline.variables) > 1 and _is_straight(baseline)
    return is_line and len(rows.y) < FEW_ROWS and rows.loss.is_squared


def chance_gain(n_rows: int, n_tried: int, complexity: int, n_inputs: int, n_found: int = 0) -> float:
    """Share of the error of a baseline that nobody searched for which a searched equation explains by chance.

    The best of N forms explains a share 2 ln N / n of pure noise in n rows (the look-elsewhere effect), where rows are
    many. N is the number of forms that were tried, or that there are up to the equation's complexity where those are
    fewer (:func:`~sobolev_novelty.search.chance.length`). Where rows are few, beside k numbers that were found only
    n − k are left to be met by chance: a share 1 − N^(−2/(n − k)). And where forms are so many that they could meet all
    of these, a search that goes from good ones to better ones gets there without having tried them all.

    Examples
    --------
    >>> round(chance_gain(250, 1000, 20, 2), 2), round(chance_gain(40, 1000, 20, 2), 2)
    (0.15, 0.35)
    >>> round(chance_gain(12, 20_000, 7, 1, n_found=3), 2)  # Michaelis and Menten's law in twelve rows
    0.71
    >>> round(chance_gain(15, 1000, 20, 2, n_found=9), 4)
    0.9987
    """
    forms, spare = _log_forms(n_tried, complexity, n_inputs), max(n_rows - n_found, 1)
    reachable = max(forms, length(complexity, n_inputs) - 0.5 * spare)
    return max(LEAST_CHANCE, min(MOST_LINEAR, 2.0 * forms / n_rows), -math.expm1(-2.0 * reachable / spare))


def required_lead(n_tried: int, complexity: int, n_inputs: int) -> float:
    """The same in standard errors, for losses whose size outliers decide: the best of N is √(2 ln N) ahead by chance.

    Examples
    --------
    >>> round(required_lead(1000, 20, 2), 2), required_lead(1, 20, 2)
    (3.72, 3.0)
    """
    return max(CLEAR_LEAD, math.sqrt(2.0 * _log_forms(n_tried, complexity, n_inputs)))


def _log_forms(n_tried: int, complexity: int, n_inputs: int) -> float:
    return min(math.log(max(n_tried, 1)), length(complexity, n_inputs))


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """What a searched equation has to beat on rows that were held out.

    Parameters
    ----------
    n_tried : int
        Forms that the search has fitted.
    best : Candidate or None
        The baseline with the lowest cross-validated error.
    squares : ndarray of shape (n_samples,)
        Its squared error at each row, when it was not fitted to.
    """

    rows: Rows
    n_tried: int
    best: Candidate | None = None
    squares: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, baselines: Sequence[Candidate], rows: Rows, n_tried: int = 1) -> Contest:
        """The contest with the better of the baselines."""
        if not baselines:
            return cls(rows, n_tried)
        squares = _validated([baseline.expression for baseline in baselines], rows).squares
        for k, baseline in enumerate(baselines):
            if _may_be_steadied(baseline.expression, rows):
                squares[k] = held_out_squares(baseline.expression, rows, dealt_folds(rows, n_repeats=N_REPEATS))
        best = int(np.argmin(np.average(squares, axis=1, weights=rows.weights)))
        return cls(rows, n_tried, baselines[best], squares[best])

    def is_best(self, candidate: Candidate) -> bool:
        """Whether this is the baseline to beat."""
        return self.best is not None and candidate.expression == self.best.expression

    def is_won_by(self, candidate: Candidate) -> bool:
        """Whether a candidate holds its own against the baseline, within the data and at their rim.

        On few rows it must be clearly better, because it was searched for; for a straight line in fewer inputs one
        standard error is enough, because its form was not. On many rows it must not be clearly worse.
        """
        if self.best is None:
            return True
        rows, form = self.rows, candidate.expression
        squares = _validated([form], rows).squares[0]
        ahead = lead(squares, self.squares, rows.weights)
        if len(rows.y) >= FEW_ROWS:
            return ahead >= -1.0
        if _is_straight(form):
            return ahead >= SHORT_LINE_LEAD
        by_chance = chance_gain(len(rows.y), self.n_tried, form.complexity, rows.X.shape[1], n_numbers(form))
        error, base = np.average([squares, self.squares], axis=1, weights=rows.weights)
        is_ahead = error <= base * (1.0 - by_chance) ** CHANCE_MARGIN
        if not rows.loss.is_squared:
            is_ahead = ahead >= required_lead(self.n_tried, form.complexity, rows.X.shape[1])
        if not is_ahead:
            return False
        own, base = rim_errors([split_form(form), split_form(self.best.expression)], rows, form.variables)
        return bool(own <= base)


def _validated(expressions: Sequence[Expression], rows: Rows) -> Validation:
    return cross_validated(expressions, rows, n_repeats=N_REPEATS if len(rows.y) < FEW_ROWS else 1)


def _is_straight(expression: Expression) -> bool:
    """Whether an equation is a constant or linear in the inputs."""
    return all(len(term.expression.tokens) == 1 for term in additive_terms(expression))
