r"""Doubts that no error shows: poles within reach, terms on a few rows, waves between the rows, high powers.

Notation
--------
``c``  a term's part of the prediction, one value per row, about its mean;  ``s = w c²``  its squares, weighted
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations, product

import numpy as np

from sobolev_novelty.algebra.products import EXPONENTS
from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.domains import Answer, check_domain
from sobolev_novelty.evaluation import derivatives
from sobolev_novelty.expression import Expression, short_text
from sobolev_novelty.operators import Operator
from sobolev_novelty.search.engine import Deadline
from sobolev_novelty.search.forms import split_form
from sobolev_novelty.search.validation import Rows, averaged, has_levels, held_out, possible_levels
from sobolev_novelty.terms import Term, additive_terms, sum_of_terms

#: A term that rests on fewer rows has to foretell those rows from the others: lower the error there. On one or two rows
#: it may do so by luck, and has to lower the error to this share.
LEAST_ROWS = 10.0
LONE_ROWS, LONE_SHARE = 2.0, 0.1
#: Slope between neighbouring values of an input, in units of a term's size, that the rows resolve: four values for each
#: period of a wave. With fewer, other frequencies fit as well.
RESOLVED = 0.5 * math.pi
#: A term may be this much steeper than a straight line in the same input anyway.
GENTLE = 1.5
#: A term that becomes this many times as large in a corner of the range, or just beyond, as at any row.
RUNAWAY = 10.0
#: Points between the rows that are looked at, for each row.
N_BETWEEN = 20
#: Powers of sums and functions above this are no law's; a search builds them of squares and cubes, as a narrow bump.
LARGEST_POWER = 6.0
#: The same of an input: 12 is the repulsion of Lennard-Jones, and T**18 an exponential on a narrow range.
LARGEST_INPUT_POWER = 12.0
#: Functions that swing without end where what is inside them has a pole.
WAVES = ("sin", "cos", "tan")
#: Boxes looked at for poles; and seconds that this may take although the time of the fit is over. Most equations need
#: a tenth of them.
MAX_BOXES = 1000
LEAST_SECONDS = 0.03
#: Combinations of the levels of inputs that are looked at where there is no other input, and beside others.
MAX_LEVELS, MAX_FIXED = 10_000, 20


def doubt(expression: Expression, rows: Rows, deadline: Deadline | None = None) -> str:
    """Why an equation is not to be trusted beyond its rows, as a sentence; empty where nothing speaks against it.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev_novelty.parsing import parse
    >>> from sobolev_novelty.search.validation import Rows
    >>> x = np.linspace(0.0, 2.0, 50)
    >>> rows = Rows(x[:, None], x, None, ("x0",))
    >>> doubt(parse("x0 + exp(60*x0)"), rows), doubt(parse("x0 + exp(x0)"), rows)
    ('The term exp(60*x0) rests on 1.1 rows.', '')
    """
    found = _doubtful_term(expression, rows)
    if not found and has_pole(expression, rows, deadline):
        return "A pole lies within the range of the inputs, or just beyond."
    if not found and any(has_pole(inside, rows, deadline) for inside in _inside_waves(expression)):
        return "A wave swings without end within the range of the inputs, or just beyond."
    return found


def _inside_waves(expression: Expression) -> list[Expression]:
    """What stands inside waves, but for sums and products of inputs, which have no pole."""
    tokens = expression.tokens
    found = [
        expression.subtree(place + 1)
        for place, token in enumerate(tokens)
        if isinstance(token, Operator) and token.name in WAVES
    ]
    harmless = {"add", "sub", "mul", "neg", "square", "cube", "sqrt", "abs", *WAVES[:2]}
    return [e for e in found if any(isinstance(t, Operator) and t.name not in harmless for t in e.tokens)]


def has_pole(expression: Expression, rows: Rows, deadline: Deadline | None = None) -> bool:
    """Whether a problem is certain within the range of the inputs, or just beyond it.

    Beyond: each input alone, or all of them together, as far as their tails go on. Of an input with levels only these
    matter. When the time is over, :data:`LEAST_SECONDS` from now, the boxes that are left are not looked at.
    """
    if deadline is not None and deadline.remaining < LEAST_SECONDS:
        deadline = Deadline.after(LEAST_SECONDS)
    columns = {name: rows.X[:, rows.names.index(name)] for name in expression.variables}
    levels = {name: possible_levels(x) for name, x in columns.items() if has_levels(x)}
    if math.prod(map(len, levels.values())) > MAX_LEVELS:
        levels = {}
    grid = list(product(*(values.tolist() for values in levels.values())))
    if levels and len(levels) == len(columns):
        everywhere = Sample(np.ascontiguousarray(np.array(grid).T), tuple(levels))
        with np.errstate(all="ignore"):
            return not np.isfinite(derivatives([expression], everywhere, order=0)).all()
    boxes = [rows.corners(), rows.corners(widened=rows.names, reach=rows.tails)]
    boxes += [rows.corners(widened=(name,), reach=rows.tails) for name in expression.variables if name not in levels]
    for box, values in product(boxes, grid[:: 1 + len(grid) // MAX_FIXED]):
        if deadline is not None and deadline.is_over:
            return False
        part = _at(expression, dict(zip(levels, values, strict=True)))
        if check_domain(part, box, max_boxes=MAX_BOXES).answer is Answer.CERTAIN:
            return True
    return False


def _at(expression: Expression, values: Mapping[str, float]) -> Expression:
    """The expression with numbers in the place of some variables."""

    def leaf(token: float | str) -> Expression:
        return Expression.of(values.get(token, token) if isinstance(token, str) else token)

    return expression.fold(leaf, lambda op, operands: Expression.of(op, *operands)) if values else expression


def effective_rows(c: FloatArray, weights: FloatArray | None = None) -> float:
    r"""How many rows a sum of squares rests on: :math:`(\sum s)^2 / \sum s^2`, with s = w c² about the mean.

    n for a column of ±1, a third of the rows for a normal one, 1 for a single spike.

    Examples
    --------
    >>> import numpy as np
    >>> effective_rows(np.array([1.0, -1.0, 1.0, -1.0])), round(effective_rows(np.eye(100)[0]), 2)
    (4.0, 1.02)
    """
    with np.errstate(all="ignore"):
        s = (c - np.average(c, weights=weights)) ** 2
        s = s if weights is None else weights * s
        s = s / s.max() if len(s) and s.max() > 0.0 else s
        total, squares = float(s.sum()), float((s**2).sum())
    return total**2 / squares if squares > 0.0 and math.isfinite(total) else math.inf


def _doubtful_term(expression: Expression, rows: Rows) -> str:
    terms = [term for term in additive_terms(expression) if term.expression.variables]
    jets = derivatives([term.expression for term in terms], rows.sample, order=1) if terms else np.zeros((0, 1, 0))
    for term, jet in zip(terms, jets, strict=True):
        if power := _high_power(term.expression):
            return f"The term {short_text(term.expression)} has {power}."
        n = effective_rows(jet[0], rows.weights)
        most = LONE_SHARE if n < LONE_ROWS else 1.0
        if n < LEAST_ROWS and not _is_foretold(term, expression, jet[0], rows, most):
            return f"The term {short_text(term.expression)} rests on {n:.1f} rows."
        if _growth(term.expression, jet[0], rows) > RUNAWAY:
            return f"The term {short_text(term.expression)} runs away just beyond the rows."
        if growth_between(term.expression, jet[0], rows) > RUNAWAY:
            return f"The term {short_text(term.expression)} has a pole between the rows."
        size = float(np.std(jet[0]))
        for name in term.expression.variables:
            place = rows.names.index(name)
            if _step(jet[1 + place], rows.X[:, place]) > _resolved(rows.X[:, place]) * size:
                return f"The term {short_text(term.expression)} varies faster along {name} than the rows resolve."
    return ""


def _high_power(term: Expression) -> str:
    """A power that no law has, in words."""
    power = largest_power(term)
    if power > LARGEST_POWER:
        return f"a sum or a function to the power of {power:g}"
    power = largest_power(term, of_inputs=True)
    return f"an input to the power of {power:g}" if power > LARGEST_INPUT_POWER else ""


def largest_power(expression: Expression, *, of_inputs: bool = False) -> float:
    """The largest power, up or down, of anything that is not a product of inputs; or of an input.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> largest_power(parse("x0**12/x1**6")), largest_power(parse("square(cube(x0 + 1)*x1)/cos(x0)**3"))
    (1.0, 6.0)
    >>> largest_power(parse("x0**12/x1**6"), of_inputs=True), largest_power(parse("(x0 + 1)**9"), of_inputs=True)
    (12.0, 1.0)
    """
    largest = 1.0

    def node(op: Operator, operands: tuple[tuple[float, float | None], ...]) -> tuple[float, float | None]:
        # The power of what is below, 0 for a product of inputs; and the value of a constant.
        nonlocal largest
        power, exponent = operands[0][0], EXPONENTS.get(op.name)
        if op.name in ("pow", "powabs"):
            exponent = operands[1][1]
        if exponent is not None:
            power *= abs(exponent)
        elif op.name in ("mul", "div", "neg"):
            power = max(power for power, _ in operands)
        else:
            power = 0.0 if of_inputs else 1.0
        largest = max(largest, power)
        return power, None

    def leaf(token: float | str) -> tuple[float, float | None]:
        return (0.0, token) if isinstance(token, float) else (float(of_inputs), None)

    expression.fold(leaf, node)
    return largest


def _is_foretold(term: Term, expression: Expression, values: FloatArray, rows: Rows, most: float) -> bool:
    """Whether a term, fitted to the other rows, lowers the error at the rows that it rests on to a share ``most``."""
    s = (values - np.average(values, weights=rows.weights)) ** 2
    order = np.argsort(-s, kind="stable")
    share = np.cumsum(s[order]) / s.sum()
    n = min(max(2, int(np.searchsorted(share, 0.5)) + 1), max(1, len(s) // 5))
    others = [other for other in additive_terms(expression) if other is not term]
    without = sum_of_terms([*others, *([] if any(t.is_constant for t in others) else [Term(1.0, Expression.of(1.0))])])
    fold = np.sort(order[:n])
    found = held_out([split_form(expression), split_form(without)], rows, fold)
    own, base = averaged(found, rows, fold)
    return bool(own <= most * base)


def _growth(term: Expression, values: FloatArray, rows: Rows) -> float:
    """Largest deviation from the mean where two inputs reach the ends of the widened range, the others in the middle.

    As a multiple of the largest at the rows. A product of many powers grows in the corner of all of them; no one row is
    ever there.
    """
    ends = rows.corners(widened=rows.names, reach=rows.tails).X
    places = [rows.names.index(name) for name in term.variables]
    pairs = list(combinations(places, 2)) or [(place, place) for place in places]
    points = np.repeat(np.median(rows.X, axis=0)[:, None], 4 * len(pairs), axis=1)
    for k, (a, b) in enumerate(pairs):
        points[a, 4 * k : 4 * k + 4] = ends[a, [0, 0, 1, 1]]
        points[b, 4 * k : 4 * k + 4] = ends[b, [0, 1, 0, 1]]
    return _relative_size(term, Sample(points, rows.names), values)


def _relative_size(term: Expression, points: Sample, values: FloatArray) -> float:
    """Largest deviation of a term from its mean at some points, as a multiple of the largest among its values."""
    centre = float(np.mean(values))
    with np.errstate(all="ignore"):
        there = np.abs(derivatives([term], points, order=0)[0, 0] - centre)
        here = float(np.max(np.abs(values - centre)))
    there = there[np.isfinite(there)]
    return float(there.max()) / here if len(there) and here > 0.0 else 0.0


def growth_between(term: Expression, values: FloatArray, rows: Rows) -> float:
    """Largest deviation from the mean at points between the rows, as a multiple of the largest at the rows.

    Each input of a row goes to a random place between its neighbours: new rows will lie there. Intervals are not
    certain of a pole whose own sum has a pole; places beside it show it. Inputs with levels stay.
    """
    points = np.tile(np.ascontiguousarray(rows.X.T), (1, N_BETWEEN))
    rng = np.random.default_rng(0)
    for place in (rows.names.index(name) for name in term.variables):
        column = rows.X[:, place]
        if not has_levels(column):
            known, inverse = np.unique(column, return_inverse=True)
            low, high = np.r_[known[:1], known[:-1]], np.r_[known[1:], known[-1:]]
            inverse = np.tile(inverse.reshape(-1), N_BETWEEN)
            points[place] = low[inverse] + rng.random(len(inverse)) * (high - low)[inverse]
    return _relative_size(term, Sample(points, rows.names), values)


def _step(slope: FloatArray, column: FloatArray) -> float:
    """Median change from one value of an input to the next."""
    values, inverse = np.unique(column, return_inverse=True)
    gaps = np.diff(values)
    between = 0.5 * (np.r_[gaps[:1], gaps] + np.r_[gaps, gaps[-1:]])
    return float(np.median(np.abs(slope) * between[inverse.reshape(-1)])) if len(gaps) else 0.0


def _resolved(column: FloatArray) -> float:
    size = float(np.std(column))
    if has_levels(column):  # what a law does between them nobody will ask
        return math.inf
    return max(RESOLVED, GENTLE * _step(np.ones(len(column)), column) / size) if size > 0.0 else math.inf
