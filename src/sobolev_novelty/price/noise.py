r"""Noise as scientists have it: constant, a share of the value, counts, a power of the value, or known row by row.

Notation
--------
``f``  values of an equation;  ``h``  how the standard deviation goes with them: :math:`\sigma_i = s\,h_i`
``w``  weights of the rows, 1 where none are given;  ``r = y - f``

.. math:: -\ln L = \frac{1}{2 s^2} \sum_i w_i r_i^2 / h_i^2 + \sum_i \ln h_i + n \ln s + \ldots
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import derivatives

#: Kinds by name, with the power of the value that the standard deviation goes with; that of ``power`` is found.
POWERS = {"constant": 0.0, "relative": 1.0, "counts": 0.5, "power": math.nan}
KINDS = ("auto", *POWERS)
#: Those whose power is known.
KNOWN_SHAPES = tuple(name for name, power in POWERS.items() if not math.isnan(power))


@dataclass(frozen=True, slots=True)
class Noise:
    """How the noise of the target goes with its value."""

    power: float = 0.0  # :math:`h = |f|^p`; 0 for constant noise
    floor: float = 0.0  # values count as at least this: no instrument resolves zero to all digits
    is_found: bool = False  # whether the power was found from the rows, a number that has its price

    @classmethod
    def of(cls, power: float, y: FloatArray, *, is_found: bool = False) -> Noise:
        """Noise that goes with a power of the value, for rows with these targets.

        The floor is half the smallest value that was measured, zero apart: below it nothing is known. Where all are
        zero, there is nothing that the noise could go with.
        """
        sizes = np.abs(y[y != 0.0])
        return cls(power, 0.5 * float(sizes.min()), is_found) if power and len(sizes) else cls()

    @property
    def is_constant(self) -> bool:
        """Whether the noise is the same in every row."""
        return self.power == 0.0

    def heights(self, values: FloatArray) -> FloatArray:
        """H where an equation has these values.

        >>> Noise(0.5, floor=1.0).heights(np.array([0.0, 4.0, -9.0]))
        array([1., 2., 3.])
        """
        if self.is_constant:
            return np.ones_like(values)
        return np.asarray(np.maximum(np.abs(values), self.floor) ** self.power)

    def weights(self, values: FloatArray, given: FloatArray | None = None) -> FloatArray | None:
        """Weights for a fit near an equation with these values: 1/h² times those that are given, with mean 1."""
        if self.is_constant:
            return given
        return weights_of(self.heights(values), given)

    def varies(self, rows: Rows) -> bool:
        """Whether the weights of rows depend on the equation."""
        return not self.is_constant or rows.x_sigma is not None

    def heights_at(self, rows: Rows, expression: Expression, values: FloatArray) -> FloatArray:
        """H at an equation with these values; errors of inputs count as far as its slopes carry them on.

        That is the effective variance of Orear (1982).
        """
        h = self.heights(values)
        if rows.x_sigma is None or rows.level is None:
            return h
        with np.errstate(all="ignore"):
            slopes = derivatives([expression], rows.sample, order=1)[0, 1:]
            carried = np.sum((slopes * rows.x_sigma[:, None]) ** 2, axis=0) / rows.level**2
        w = 1.0 if rows.weights is None else rows.weights
        return np.asarray(np.sqrt(h**2 + w * np.nan_to_num(carried, nan=0.0, posinf=0.0)))

    def weighed(self, rows: Rows, expression: Expression, values: FloatArray) -> Rows:
        """The rows with the weights of a fit near an equation; as they are given where its values are not finite."""
        if not self.varies(rows) or not np.isfinite(values).all():
            return rows
        return rows.weighed(weights_of(self.heights_at(rows, expression, values), rows.weights))

    def sentence(self, level: float, target: str = "the target") -> str:
        """What the noise is, for a person.

        >>> Noise(1.0).sentence(0.0123), Noise().sentence(0.5, "y")
        ('Noise: relative, about 1.23 % of the value.', 'Noise: constant, about 0.5 in y.')
        """
        text = number_text(level, digits=3)
        if self.is_constant:
            return f"Noise: constant, about {text} in {target}."
        if self.power == POWERS["relative"]:
            return f"Noise: relative, about {number_text(100.0 * level, digits=3)} % of the value."
        if self.power == POWERS["counts"]:
            return f"Noise: as in counts, its variance about {number_text(level**2, digits=3)} times the value."
        return f"Noise: about {text} times the value to the power of {number_text(self.power, digits=2)}."


def weights_of(heights: FloatArray, given: FloatArray | None = None) -> FloatArray:
    """1/h² times the weights that are given, with mean 1; by ratios, for squares of far values are no floats.

    >>> weights_of(np.array([1e200, 2e200]))
    array([1.6, 0.4])
    """
    w = (heights.min() / heights) ** 2
    w = w if given is None else w * given
    return np.asarray(w / w.mean())


def kinds_to_try(noise: str, y: FloatArray) -> tuple[str, ...]:
    """The kinds of noise that an argument admits for a target.

    ``auto`` looks for the noise of counts where the target is whole and not negative, and for relative noise where it
    has one sign: a measured value of the other sign could not come of it.

    >>> kinds_to_try("auto", np.array([1.5, 2.5])), kinds_to_try("auto", np.array([-1.5, 2.5]))
    (('constant', 'relative'), ('constant',))
    >>> kinds_to_try("auto", np.array([0.0, 4.0])), kinds_to_try("counts", np.array([0.0, 4.0]))
    (('constant', 'counts'), ('counts',))
    """
    if noise not in KINDS:
        raise ParameterError(f"'noise' must be one of {', '.join(KINDS)}. Got {noise!r}.")
    if noise != "auto":
        return (noise,)
    found = ["constant"]
    if (y > 0.0).all() or (y < 0.0).all():
        found.append("relative")
    if (y >= 0.0).all() and np.array_equal(y, np.rint(y)):
        found.append("counts")
    return tuple(found)


def found_power(y: FloatArray, values: FloatArray) -> float:
    """The power of the value that the size of the residuals goes with, to a tenth, from a straight line in logarithms.

    >>> f = np.geomspace(1.0, 100.0, 60)
    >>> found_power(f + np.sqrt(f) * np.cos(9.0 * np.arange(60)), f)
    0.5
    """
    with np.errstate(all="ignore"):
        size, scale = np.log(np.abs(y - values)), np.log(np.abs(values))
    used = np.isfinite(size) & np.isfinite(scale)
    if used.sum() < 3 or not np.ptp(scale[used]) > 0.0:
        return 0.0
    return round(float(np.clip(np.polyfit(scale[used], size[used], 1)[0], 0.0, 2.0)), 1)


def known_shape(noise: str, y: FloatArray) -> Noise:
    """The noise of a name whose power is known.

    >>> known_shape("relative", np.array([2.0, 4.0])).power
    1.0
    """
    if noise not in KNOWN_SHAPES:
        raise ParameterError(f"'noise' must be one of {', '.join(KNOWN_SHAPES)}, or a Noise. Got {noise!r}.")
    return Noise.of(POWERS[noise], y)
