r"""Dimensional analysis: a law between quantities is a law between fewer pure numbers (Buckingham's theorem).

A physicist sets :math:`G = c = 1`. Here some inputs are set to one, as many as there are independent units; the search
goes on in what is left, all of it pure numbers, and every equation of it makes sense.

Notation
--------
``r``  inputs that are one in natural units;  ``x``  the others

.. math::

    p_j = x_j \prod_i r_i^{a_{ij}}, \qquad y = s F(p), \quad s = \prod_i r_i^{b_i}

Least squares in y is least squares in y/s with weights s².
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from sobolev_novelty.algebra.canonical import tidy
from sobolev_novelty.algebra.factoring import factored
from sobolev_novelty.algebra.writing import product
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.search.problem.dimensions import PURE, Dimension, Dimensions

#: Inputs up to which all choices are looked at.
MAX_INPUTS = 12
#: Powers are fractions with denominators up to this.
MAX_DENOMINATOR = 4
#: What a power that is no whole number costs a choice, in units of powers.
FRACTION_COST = 2
#: Choices that cost this much more than the cheapest are still looked at: the target decides between them.
LEEWAY = 2

Powers = Mapping[str, Fraction]


@dataclass(frozen=True, slots=True, eq=False)
class NaturalUnits:
    """Which inputs are one, and what makes the others and the target pure numbers.

    >>> from sobolev_novelty.language.parsing import parse
    >>> from sobolev_novelty.search.problem.constraints import Units
    >>> units = {"m": "kg", "v": "m/s", "c": "m/s"}
    >>> X = np.array([[1.0, 2.0, 3.0, 4.0], [0.2, 0.4, 0.1, 0.3], [1.0, 2.0, 1.5, 2.5]])
    >>> given = Dimensions.of(Units(units, "J", constants=False), tuple(units))
    >>> y = X[0] * X[2] ** 2 + X[0] * X[1] ** 2 / 2
    >>> found = natural_units(given, Rows(Sample(X, tuple(units)), y))
    >>> found.ones, str(found.read(parse("m*c**2 + m*v**2/2"))), str(found.written(parse("1 + 0.5*v**2")))
    (('m', 'c'), '1 + 0.5*v**2', 'm*(square(c) + 0.5*square(v))')
    """

    ones: tuple[str, ...]
    groups: Mapping[str, Powers]  # for each other input the powers of the ones that its pure number has beside it
    scale: Powers  # powers of the ones that have the unit of the target

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that are left; each stands for its pure number."""
        return tuple(self.groups)

    def applied(self, rows: Rows) -> Rows:
        """The rows in natural units, with weights of mean 1."""
        columns, scale = dict(zip(rows.names, rows.sample.X, strict=True)), self.scales(rows.sample)
        numbers = np.array([columns[name] * _values(powers, columns) for name, powers in self.groups.items()])
        squares = scale**2 if rows.weights is None else rows.weights * scale**2
        return Rows(Sample(numbers, self.names), rows.y / scale, squares / squares.mean())

    def scales(self, sample: Sample) -> FloatArray:
        """What the target is divided by, at each row."""
        columns = dict(zip(sample.names, sample.X, strict=True))
        return np.broadcast_to(_values(self.scale, columns), sample.X.shape[1:])

    def written(self, expression: Expression) -> Expression:
        """An equation of pure numbers as one of the inputs."""
        inputs = {
            name: product([(Expression.of(name), 1.0), *_factors(powers)]) for name, powers in self.groups.items()
        }
        whole = expression.substituted(inputs)
        scale = product(_factors(self.scale))
        if not scale.variables:
            return whole
        try:
            return factored(tidy(Expression.of("mul", scale, whole)))
        except ExpressionError:  # numbers beyond the floats
            return Expression.of("mul", scale, whole)

    def read(self, expression: Expression) -> Expression:
        """An equation of the inputs that makes sense, in natural units."""
        return tidy(expression.substituted({name: Expression.of(1.0) for name in self.ones}))


def natural_units(dimensions: Dimensions, rows: Rows) -> NaturalUnits | None:
    """The positive inputs to be set to one: they leave the simplest numbers, and of such a scale near the target.

    None where numbers may carry units, where the target's unit is not known or no product of inputs has it, and where
    nothing or everything would be set to one.
    """
    names = rows.names
    if dimensions.target is None or dimensions.is_free or len(names) > MAX_INPUTS:
        return None
    units = {name: dimensions.inputs.get(name, PURE) for name in names}
    n_ones = int(np.linalg.matrix_rank(_floats(units.values())))
    may_be_one = [
        name for name, row in zip(names, rows.sample.X, strict=True) if units[name] != PURE and (row > 0.0).all()
    ]
    if not 0 < n_ones < len(names):
        return None
    every = [_in_terms_of(ones, units, dimensions.target) for ones in combinations(may_be_one, n_ones)]
    found = [choice for choice in every if choice is not None]
    least = min(map(_cost, found), default=Fraction(0))
    # The better the scale follows the target, the more alike are the rows that are left.
    near = {
        choice: _alignment(choice.scales(rows.sample), rows.y) for choice in found if _cost(choice) <= least + LEEWAY
    }
    return max(near, key=near.__getitem__, default=None)


def _alignment(scale: FloatArray, y: FloatArray) -> float:
    """Cosine between them, whatever the sign."""
    with np.errstate(all="ignore"):
        cosine = abs(float(scale @ y)) / float(np.linalg.norm(scale) * np.linalg.norm(y))
    return cosine if np.isfinite(cosine) else 0.0


def _in_terms_of(ones: tuple[str, ...], units: Mapping[str, Dimension], target: Dimension) -> NaturalUnits | None:
    basis = _floats(units[name] for name in ones)
    if np.linalg.matrix_rank(basis) < len(ones):
        return None

    def powers(dimension: Dimension) -> dict[str, Fraction] | None:
        found = least_squares(basis, _floats([dimension])[0])
        exact = [Fraction(float(k)).limit_denominator(MAX_DENOMINATOR) for k in found]
        made = [sum((k * units[name][i] for name, k in zip(ones, exact, strict=True)), Fraction(0)) for i in range(7)]
        return {name: k for name, k in zip(ones, exact, strict=True) if k} if made == list(dimension) else None

    scale = powers(target)
    groups = {name: powers(tuple(-k for k in unit)) for name, unit in units.items() if name not in ones}
    if scale is None or any(group is None for group in groups.values()):
        return None
    return NaturalUnits(ones, {name: group for name, group in groups.items() if group is not None}, scale)


def _cost(choice: NaturalUnits) -> Fraction:
    every = [k for group in (*choice.groups.values(), choice.scale) for k in group.values()]
    return sum((abs(k) + FRACTION_COST * (k.denominator > 1) for k in every), Fraction(0))


def _floats(dimensions: object) -> FloatArray:
    return np.array([[float(k) for k in d] for d in dimensions])  # type: ignore[attr-defined]


def _values(powers: Powers, rows: Mapping[str, FloatArray]) -> FloatArray:
    return np.asarray(np.prod([rows[name] ** float(k) for name, k in powers.items()], axis=0))


def _factors(powers: Powers) -> list[tuple[Expression, float]]:
    return [(Expression.of(name), float(k)) for name, k in powers.items()]
