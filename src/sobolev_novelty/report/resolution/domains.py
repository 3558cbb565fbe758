r"""Poles, roots of negatives and overflows within the range of the inputs, also where no row lies.

Interval arithmetic over the box of the inputs (least to largest value of each column), subdivided where it cannot
decide, up to a work limit. Three answers:

- **safe**: proved; outward rounding is relative, a few units in the last place, so a zero stays a zero;
- **certain problem**: a point is known at which the expression is not finite, or a denominator changes its sign between
  two points and the quotient blows up where it does. What leaves the whole expression finite is no problem
  (``1/(1 + exp(-x))`` where the exponential overflows), nor is a single point that its surroundings do not show
  (``sin(x)/x`` at 0);
- **undecided**: the work limit came first.

Notation
--------
``low, high``  bounds of a subexpression on each of B boxes, shape (B,);  ``tainted``  boxes on which an operand was
in trouble already: what follows from it is not reported again
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.operators.interval_arithmetic import OVERFLOW, POLE, Bounds, applied
from sobolev_novelty.core.parameters import COUNT, checked
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.kernels.evaluate import as_expression, derivatives

BoolArray = npt.NDArray[np.bool_]

#: Boxes looked at before the answer is "undecided".
MAX_BOXES = 6000
#: Boxes looked at for each term of a report, where only certain problems are told.
NOTED_BOXES = 1000
#: Boxes looked at in one round; of more the first are followed.
MAX_ROUND = 1024
#: Points at which the ordinary size of a subexpression is taken.
N_ORDINARY = 128
#: A value this many times the ordinary size has blown up; this many times, it is on the way there.
BLOWN_UP, RISING = 1e8, 1e3
#: Distance of the points around a pole, as a share of the box.
NEARBY = 1e-9
#: What is said of a value that has blown up where no zero of the denominator is proved.
ALMOST = "all but has a pole"
#: Points of one round at which a failure is looked into.
MAX_JUDGED = 8
#: Halvings of the way between two points of opposite sign.
N_HALVINGS = 120


class Answer(Enum):
    """What is known of an expression over a box."""

    SAFE = "safe"
    CERTAIN = "certain problem"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Finding:
    """One subexpression that leaves its domain, or may."""

    problem: str  # what happens, as the end of a sentence: ``"has a pole"``
    expression: Expression  # the subexpression
    #: mapping of str to (float, float): where: bounds of its variables. Of a certain problem a point, low and high
    #: being equal.
    region: Mapping[str, tuple[float, float]]
    is_certain: bool

    @property
    def sentence(self) -> str:
        """The finding for a person."""
        text = short_text(self.expression)
        text = text if len(text) <= 60 else text[:59] + "…"
        if not self.is_certain:
            return f"Whether {text} {self.problem} within the range of the inputs could not be decided."
        where = ", ".join(f"{name} = {number_text(low)}" for name, (low, _) in self.region.items())
        return f"{text} {self.problem} within the range of the inputs{f', at {where}' if where else ''}."


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """What was found over a box.

    Parameters
    ----------
    findings : tuple of Finding
        Certain ones first.
    n_boxes : int
        Boxes that were looked at.
    """

    findings: tuple[Finding, ...]
    n_boxes: int

    @property
    def answer(self) -> Answer:
        """The three-valued answer; where nothing was looked at, nothing is known."""
        if not self.findings:
            return Answer.SAFE if self.n_boxes else Answer.UNDECIDED
        return Answer.CERTAIN if any(finding.is_certain for finding in self.findings) else Answer.UNDECIDED

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each certain finding, or else for the first that is undecided."""
        certain = tuple(finding.sentence for finding in self.findings if finding.is_certain)
        return certain or tuple(finding.sentence for finding in self.findings[:1])


@checked(max_boxes=COUNT)
def check_domain(
    equation: Any, X: Any, *, names: Sequence[str] | None = None, max_boxes: int = MAX_BOXES
) -> DomainCheck:
    """Look for poles, values outside a domain and overflows within the range of the inputs.

    Parameters
    ----------
    equation : str, Expression or SymPy expression
    X : array of shape (n_samples, n_features) or DataFrame
        The observed inputs: the box is the range of each column.
    max_boxes : int
        Work limit, at least 1.

    Examples
    --------
    >>> check_domain("1/(x0 - 0.5)", [[0.0], [1.0]]).sentences
    ('1/(x0 - 0.5) has a pole within the range of the inputs, at x0 = 0.5.',)
    >>> check_domain("log(x0**2 - x0 + 1)", [[0.0], [1.0]]).answer
    <Answer.SAFE: 'safe'>
    """
    sample = as_sample(X, names)
    expression = as_expression(equation, sample.names)
    box = {}
    for name in expression.variables:
        column = sample.X[sample.names.index(name)]
        finite = column[np.isfinite(column)]
        if not len(finite):
            return DomainCheck((), 0)
        box[name] = float(finite.min()), float(finite.max())
    with np.errstate(all="ignore"):
        return _Check(expression, box, max_boxes).run()


def domain_notes(expressions: Sequence[Expression], sample: Sample) -> tuple[str, ...]:
    """A sentence for each certain problem of the terms of an equation within the range of the inputs."""
    found = (
        check_domain(expression, sample, max_boxes=NOTED_BOXES)
        for expression in expressions
        if not isinstance(expression.head, float)
    )
    return tuple(dict.fromkeys(finding.sentence for check in found for finding in check.findings if finding.is_certain))


@dataclass(slots=True)
class _Check:
    """The state of one check."""

    expression: Expression
    box: dict[str, tuple[float, float]]
    max_boxes: int
    n_boxes: int = 0
    certain: dict[int, Finding] = field(default_factory=dict)
    given_up: dict[int, str] = field(default_factory=dict)  # boxes were left undivided
    signs: dict[int, dict[bool, FloatArray]] = field(default_factory=dict)  # a point for each sign of the critical part
    ordinary: dict[int, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    low: FloatArray = field(default_factory=lambda: np.zeros(0))
    high: FloatArray = field(default_factory=lambda: np.zeros(0))

    def run(self) -> DomainCheck:
        self.names = tuple(self.box)
        self.low = np.array([self.box[name][0] for name in self.names])
        self.high = np.array([self.box[name][1] for name in self.names])
        low, high = self.low[:, None], self.high[:, None]
        open_ones: dict[int, str] = {}
        remaining: dict[int, tuple[FloatArray, FloatArray]] = {}
        while low.shape[1] and self.n_boxes < self.max_boxes:
            self.n_boxes += low.shape[1]
            troubles = self.troubles(low, high)
            open_ones = {place: problem for place, (problem, _) in troubles.items()}
            for place, (problem, boxes) in troubles.items():
                remaining[place] = low[:, boxes], high[:, boxes]
                if place not in self.certain:
                    self.look_closer(place, problem, low[:, boxes], high[:, boxes])
            waiting = {place: boxes for place, (_, boxes) in troubles.items() if place not in self.certain}
            open_ones = {place: problem for place, problem in open_ones.items() if place in waiting}
            low, high = self.divided(low, high, waiting, open_ones)
        open_ones |= {place: problem for place, problem in self.given_up.items() if place not in self.certain}
        undecided = [self.undecided(place, problem, *remaining[place]) for place, problem in open_ones.items()]
        return DomainCheck((*self.certain.values(), *undecided), self.n_boxes)

    def troubles(self, low: FloatArray, high: FloatArray) -> dict[int, tuple[str, BoolArray]]:
        """Place of a token -> what may happen there, and on which boxes."""
        found: dict[int, tuple[str, BoolArray]] = {}
        n = low.shape[1]
        stack: list[tuple[FloatArray, FloatArray, BoolArray]] = []
        clean = np.zeros(n, dtype=bool)
        for place in range(len(self.expression.tokens) - 1, -1, -1):
            token = self.expression.tokens[place]
            if isinstance(token, float):
                stack.append((np.full(n, token), np.full(n, token), clean))
            elif isinstance(token, str):
                k = self.names.index(token)
                stack.append((low[k], high[k], clean))
            else:
                operands = [stack.pop() for _ in range(token.arity)]
                tainted = np.logical_or.reduce([operand[2] for operand in operands])
                bounds: Bounds = applied(token, [(a, b) for a, b, _ in operands])
                trouble = bounds.trouble & ~tainted
                if trouble.any():
                    found[place] = bounds.problem, trouble
                stack.append((bounds.low, bounds.high, tainted | trouble))
        return found

    def look_closer(self, place: int, problem: str, low: FloatArray, high: FloatArray) -> None:
        """Look at points of the boxes in question for one that proves the problem."""
        node = self.expression.subtree(place)
        critical = _critical(node)
        points = np.hstack([low, high, 0.5 * (low + high)])
        values, parts = self.at(points, node, critical)
        operands = self.at(points, *node.children)
        proper = np.isfinite(operands).all(axis=0)
        bad = proper & self.has_failed(problem, values, self.size(place, node))
        for k in np.flatnonzero(bad)[:MAX_JUDGED].tolist():
            self.judge(place, problem, node, points[:, k])
            if place in self.certain:
                return
        if problem != POLE:
            return
        known = self.signs.setdefault(place, {})
        for is_positive in (True, False):
            there = proper & np.isfinite(parts) & ((parts > 0.0) if is_positive else (parts < 0.0))
            if there.any():
                known.setdefault(is_positive, points[:, int(np.argmax(there))])
        if len(known) == 2:
            zero = self.zero_between(critical, known[True], known[False])
            value = self.at(zero[:, None], node)[0, 0]
            if not math.isfinite(value) or abs(value) > BLOWN_UP * self.size(place, node):
                self.judge(place, problem, node, zero, is_zero=True)

    def has_failed(self, problem: str, values: Any, size: float) -> Any:
        """Whether values are what the problem says: large ones belong to a pole, but are no overflow."""
        is_large = np.abs(values) > (np.inf if problem == OVERFLOW else BLOWN_UP * size)
        return ~np.isfinite(values) | is_large

    def zero_between(self, critical: Expression, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """Where the critical part vanishes between two points of opposite sign."""
        for _ in range(N_HALVINGS):
            middle = 0.5 * (positive + negative)
            value = self.at(middle[:, None], critical)[0, 0]
            if value == 0.0 or not math.isfinite(value):
                return middle
            if value > 0.0:
                positive = middle
            else:
                negative = middle
        return positive

    def at(self, points: FloatArray, *expressions: Expression) -> FloatArray:
        """Values at points (n_variables, n_points), shape (n_expressions, n_points)."""
        found = derivatives(expressions, Sample(np.ascontiguousarray(points), self.names), order=0)
        return np.asarray(found[:, 0])

    def size(self, place: int, node: Expression) -> float:
        """Median size of a subexpression over the box."""
        if place not in self.ordinary:
            draws = np.random.default_rng(0).random((len(self.names), N_ORDINARY))
            values = np.abs(self.at(self.low[:, None] + draws * (self.high - self.low)[:, None], node)[0])
            finite = values[np.isfinite(values)]
            self.ordinary[place] = max(float(np.median(finite)) if len(finite) else 1.0, 1e-200)
        return self.ordinary[place]

    def judge(self, place: int, problem: str, node: Expression, point: FloatArray, *, is_zero: bool = False) -> None:
        """Whether a point where a subexpression fails is one where the whole fails, and not only there."""
        value = self.at(point[:, None], self.expression)[0, 0]
        size = self.size(0, self.expression)
        fails = bool(self.has_failed(problem, value, size))
        if fails and problem == POLE:
            step = NEARBY * (self.high - self.low)
            around = np.clip(
                point[:, None] + step[:, None] * np.array([-1.0, 1.0]), self.low[:, None], self.high[:, None]
            )
            values = self.at(around, self.expression)[0]
            fails = bool((~np.isfinite(values) | (np.abs(values) > RISING * size)).any())
            if math.isfinite(value) and not is_zero:  # a spike: the denominator was not seen to vanish
                problem = ALMOST
        if not fails:
            self.signs.pop(place, None)  # another zero of the same part may still be a pole
            return
        where = dict(zip(self.names, point.tolist(), strict=True))
        self.certain[place] = Finding(problem, node, {n: (where[n], where[n]) for n in node.variables}, True)

    def undecided(self, place: int, problem: str, low: FloatArray, high: FloatArray) -> Finding:
        node = self.expression.subtree(place)
        bounds = {n: (float(low[k].min()), float(high[k].max())) for k, n in enumerate(self.names)}
        return Finding(problem, node, {n: bounds[n] for n in node.variables}, False)

    def divided(
        self, low: FloatArray, high: FloatArray, waiting: dict[int, BoolArray], problems: dict[int, str]
    ) -> tuple[FloatArray, FloatArray]:
        """The boxes in question, halved along the variable of the subexpression that spans the largest share."""
        pieces: list[tuple[FloatArray, FloatArray]] = []
        taken = np.zeros(low.shape[1], dtype=bool)
        whole = np.where(self.high > self.low, self.high - self.low, 1.0)
        for place, boxes in waiting.items():
            own = [self.names.index(name) for name in self.expression.subtree(place).variables]
            chosen = np.flatnonzero(boxes & ~taken)
            taken[chosen] = True
            if not own or not len(chosen):
                self.given_up |= {} if own else {place: problems[place]}
                continue
            share = (high[own][:, chosen] - low[own][:, chosen]) / whole[own][:, None]
            along = np.array(own)[np.argmax(share, axis=0)]
            splittable = share.max(axis=0) > 1e-15
            if not splittable.all():
                self.given_up[place] = problems[place]
            chosen, along = chosen[splittable], along[splittable]
            a, b = low[:, chosen], high[:, chosen]
            columns = np.arange(len(chosen))
            middle = 0.5 * (a[along, columns] + b[along, columns])
            left, right = b.copy(), a.copy()
            left[along, columns] = middle
            right[along, columns] = middle
            pieces += [(a, left), (right, b)]
        if not pieces:
            return low[:, :0], high[:, :0]
        lows, highs = (np.hstack(some) for some in zip(*pieces, strict=True))
        if lows.shape[1] > MAX_ROUND:
            self.given_up |= {place: problems[place] for place in waiting}
        return lows[:, :MAX_ROUND], highs[:, :MAX_ROUND]


def _critical(node: Expression) -> Expression:
    """The part whose zero is the pole of a node: a denominator, the cosine of a tangent, the base of a power."""
    parts: dict[str, Callable[[], Expression]] = {
        "tan": lambda: Expression.of("cos", node.children[0]),
        "cot": lambda: Expression.of("sin", node.children[0]),
        "div": lambda: node.children[1],
    }
    head = node.head
    assert isinstance(head, Operator)
    return parts.get(head.name, lambda: node.children[0])()
