"""What a user asks of equations beyond a small error: costs, limits on nesting, monotonicity, a loss, a template.

One value, carried by the problem: the loop, the finish and the choice ask it the same questions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.search.problem.constraints import DIRECTIONS, Constraints
from sobolev_novelty.search.problem.loss import Loss
from sobolev_novelty.search.problem.template import Template

#: Lines along an input on which an equation must be monotone, points of each, and the seed of where they lie.
N_LINES, N_POINTS = 64, 33
#: A slope against the rule is rounding if it is below this share of the largest one.
ROUNDING = 1e-9
#: Levels of nested limits that are looked at: a subtree's largest number of each operator on one path.
Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """What equations cost and which are allowed.

    >>> from sobolev_novelty.language.parsing import parse
    >>> control = Control({"sin": 3}, {"sin": {"sin": 0}})
    >>> control.complexity(parse("sin(x0) + 1")), control.shaped(parse("sin(x0 + sin(x1))")) is None
    (6, True)
    """

    #: Complexity of an operator; 1 where it is missing, as for variables and constants.
    costs: Mapping[str, int] = field(default_factory=dict)
    #: Operator -> operator -> how many of the latter may lie on one path inside the former.
    nesting: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    max_depth: int | None = None  # nodes from the root to the deepest leaf
    monotone: Mapping[str, float] = field(default_factory=dict)  # input -> 1 for increasing, -1 for decreasing
    loss: Loss = field(default_factory=Loss)
    template: Template | None = None  # in the user's terms until :meth:`read`

    @classmethod
    def of(cls, names: Sequence[str], constraints: Constraints | None = None, loss: Any = "squared") -> Control:
        """What a user says, checked."""
        said = Constraints() if constraints is None else constraints
        unknown = [str(name) for name in said.monotone or {} if name not in names]
        if unknown:
            raise ParameterError(f"'monotone' names '{unknown[0]}', which is not a column. Known: {', '.join(names)}.")
        directions = {str(name): DIRECTIONS[direction] for name, direction in (said.monotone or {}).items()}
        template = None if said.template is None else Template.of(said.template, names)
        return cls(said.costs, said.limits, said.max_depth, directions, Loss.of(loss), template)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked of equations but small squared errors."""
        asked = (self.costs, self.nesting, self.max_depth, self.monotone, self.template)
        return self.loss.is_squared and not any(asked)

    def read(self, in_search: Callable[[Expression], Expression], names: Mapping[str, str]) -> Control:
        """The same in the variables of a search, where the inputs have other names and units."""
        template = None if self.template is None else self.template.read(in_search, names)
        directions = {names.get(name, name): sign for name, sign in self.monotone.items()}
        return replace(self, monotone=directions, template=template)

    def complexity(self, expression: Expression) -> int:
        """The cost of all nodes."""
        if not self.costs:
            return expression.complexity
        extra = (self.costs.get(token.name, 1) - 1 for token in expression.tokens if isinstance(token, Operator))
        return expression.complexity + sum(extra)

    def shaped(self, expression: Expression) -> Expression | None:
        """The expression where nesting and depth allow it; its sum written flatter where that helps; otherwise None."""
        if self.nesting and not self._is_nested_well(expression):
            return None
        if self.max_depth is None or expression.depth <= self.max_depth:
            return expression
        flat = flatter(expression)
        return flat if flat.depth <= self.max_depth else None

    def _is_nested_well(self, expression: Expression) -> bool:
        inner = tuple(dict.fromkeys(name for limits in self.nesting.values() for name in limits))
        none: Counts = (0,) * len(inner)
        broken: list[bool] = []

        def node(op: Operator, operands: tuple[Counts, ...]) -> Counts:
            counts = tuple(map(max, zip(*operands, strict=True)))
            limits = self.nesting.get(op.name, {})
            if any(counts[inner.index(name)] > limit for name, limit in limits.items()):
                broken.append(True)
            return tuple(count + (name == op.name) for name, count in zip(inner, counts, strict=True))

        expression.fold(lambda leaf: none, node)
        return not broken

    def is_monotone(self, expression: Expression, sample: Sample) -> bool:
        """Whether an equation rises and falls as it must, at the rows and in their box.

        By the exact derivative at the rows and on lines through the box, and by the values along these lines: a pole
        between two points shows in the latter only. Where an equation is not defined nothing is asked of it.
        """
        for name in expression.variables:
            sign = self.monotone.get(name)
            if sign is None:
                continue
            place = sample.names.index(name)
            lines = _lines(sample.X, place)
            points = Sample(np.ascontiguousarray(np.hstack([sample.X, lines.reshape(len(lines), -1)])), sample.names)
            with np.errstate(all="ignore"):
                jet = derivatives([expression], points, order=1)[0]
                slope = sign * jet[1 + place]
                known = np.abs(slope[np.isfinite(slope)])
                values = sign * jet[0, sample.n_samples :].reshape(lines.shape[1:])
                steps = np.diff(values, axis=1)
                sizes = np.abs(steps[np.isfinite(steps)])
                falls = (slope < -ROUNDING * known.max(initial=0.0)).any()
                jumps = (steps < -ROUNDING * sizes.max(initial=0.0)).any()
            if falls or jumps:
                return False
        return True

    def allows(self, expression: Expression, sample: Sample) -> bool:
        """Whether an equation may come back as it is written."""
        return self.shaped(expression) == expression and (not self.monotone or self.is_monotone(expression, sample))


def flatter(expression: Expression) -> Expression:
    """The top-level sum with its deepest terms nearest to the root.

    >>> from sobolev_novelty.language.parsing import parse
    >>> chain = parse("x0 + x1 - x2 + x3 + sin(x0)")
    >>> chain.depth, flatter(chain).depth
    (5, 4)
    """
    terms: list[tuple[bool, Expression]] = []
    stack = [(True, expression)]
    while stack:
        is_added, e = stack.pop()
        head = e.head.name if isinstance(e.head, Operator) else ""
        if head in ("add", "sub"):
            first, second = e.children
            stack += [(is_added == (head == "add"), second), (is_added, first)]
        else:
            terms.append((is_added, e))
    heap = [(e.depth, k, is_added, e) for k, (is_added, e) in enumerate(terms)]
    heapq.heapify(heap)
    count = len(heap)
    while len(heap) > 1:
        (da, _, plus_a, a), (db, _, plus_b, b) = heapq.heappop(heap), heapq.heappop(heap)
        if plus_a == plus_b:
            joined, plus = Expression.of("add", a, b), plus_a
        else:
            joined, plus = Expression.of("sub", *((a, b) if plus_a else (b, a))), True
        heapq.heappush(heap, (1 + max(da, db), count, plus, joined))
        count += 1
    _, _, is_added, found = heap[0]
    return found if is_added else Expression.of("neg", found)


def _lines(X: FloatArray, place: int) -> FloatArray:
    """Lines along an input through the box of the rows, half of them through rows: (n_features, lines, points)."""
    rng = np.random.default_rng(0)
    low, high = X.min(axis=1, keepdims=True), X.max(axis=1, keepdims=True)
    n = N_LINES // 2
    through = X[:, np.unique(np.linspace(0, X.shape[1] - 1, n).astype(np.intp))]
    bases = np.hstack([through, low + rng.random((len(X), n)) * (high - low), low, high])
    lines = np.repeat(bases[:, :, None], N_POINTS, axis=2)
    lines[place] = np.linspace(float(low[place, 0]), float(high[place, 0]), N_POINTS)
    return lines
