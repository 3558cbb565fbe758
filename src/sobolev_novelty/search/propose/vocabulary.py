"""What forms are made of: every list of functions, exponents, frequencies and sizes that is tried, side by side.

No other module of a search or an engine has such a list (a test looks). Names of operators that a problem does not
allow are left out where a list is used. A template is a function of ``s``.
"""

from __future__ import annotations

import numpy as np

from sobolev_novelty.algebra.outer import INSIDE, INVERSE_EXPM1, LOG1P, OUTERS, ROOT1P, SATURATION, composed
from sobolev_novelty.core.expression import Expression


def both_signs(*sizes: float) -> tuple[float, ...]:
    """The numbers below zero and above, in order.

    Examples
    --------
    >>> both_signs(1, 2)
    (-2, -1, 1, 2)
    """
    return (*(-size for size in reversed(sizes)), *sizes)


def by_turns(*sizes: float) -> tuple[float, ...]:
    """Each number, then the same with the other sign.

    Examples
    --------
    >>> by_turns(1.0, 0.5)
    (1.0, -1.0, 0.5, -0.5)
    """
    return tuple(signed for size in sizes for signed in (size, -size))


# --- functions, by name ---------------------------------------------------------------------------------------------

#: Columns of dictionaries: functions of simple arguments.
IN_DICTIONARIES = ("sin", "cos", "exp", "log", "tanh", "sqrt")
WAVES = ("sin", "cos")
#: Functions that are tried together in the simplest sums: greed errs less often among few.
TOGETHER = (WAVES, ("exp",), ("log",))
#: What a target may be divided by, and the interaction of two inputs: functions of unlimited arguments.
FACTORS = ("sin", "cos", "exp")
#: In the place of one input in quotients of polynomials: an angle, a rate, a size.
IN_QUOTIENTS = ("cos", "sin", "exp", "sqrt")
#: Atoms of the tree search: 1/(1 + x), √(1 + x).
OF_SHIFTED = ("inv", "sqrt")
#: For the unknown functions of a template; those with a scale of their own inside begin from two of them.
FIRST = ("square", "cube", "inv", "sqrt", "exp", "log", "sin", "cos", "tanh")
SCALED = ("exp", "sin", "cos", "tanh")
#: May be a straight line or a parabola on the data. A power of an input stays what it is.
BENDING = frozenset(("sin", "cos", "tan", "exp", "log", "tanh", "arcsin", "arccos", "arctan", "sqrt", "inv", "cbrt"))
#: Begin like a power of 1 + u.
RELATED = ("exp", "cos", "sin", "log")
#: Drawn by the sampler that stands for a language model.
DRAWN = ("sin", "cos", "exp", "log", "sqrt", "tanh", "inv", "square", "arcsin", "arccos")
#: With all of these operators, everything that is drawn can be written.
FOR_DRAWN = frozenset({"add", "sub", "mul", "div", "square", "cube", "sqrt", "inv", "exp"})
#: Outer functions tried with every kind of form, by name of ``OUTERS``. The others are rarer, or within the reach of
#: the dictionaries.
OUTER = ("sqrt", "inverse", "inverse sqrt", "exp", "square", "log", "arcsin", "arccos", "1/(exp - 1)")
#: Inside these the tree search may undo another one.
AROUND_OTHERS = frozenset(name for name in OUTERS if name.startswith(("exp", "inverse")))

# --- functions, as templates ----------------------------------------------------------------------------------------

_S = Expression.of(INSIDE)
DECAY = Expression.of("exp", Expression.of("neg", INSIDE))
WAVE_TEMPLATES = tuple(composed(name) for name in WAVES)
#: Elementary terms: functions of an input, and of its magnitude.
OF_INPUT = (
    _S, *(composed(name) for name in ("square", "cube", "sin", "cos", "tanh", "inv")), composed("square", "inv"),
)  # fmt: skip
OF_MAGNITUDE = (
    composed("sqrt"), composed("cbrt"), DECAY, LOG1P, SATURATION,
    *(Expression.of(name, LOG1P) for name in WAVES),
)  # fmt: skip
#: With a constant inside that is looked for on a grid: in dictionaries, and as the one term of one input, where
#: Planck's and Fermi's laws end.
SCANNED = (*WAVE_TEMPLATES, composed("exp"), composed("tanh"), LOG1P, SATURATION, INVERSE_EXPM1, ROOT1P)
MONOTONE = (
    *(composed(name) for name in ("exp", "tanh", "arctan")), INVERSE_EXPM1,
    Expression.of("inv", Expression.of("add", composed("exp"), 1.0)), LOG1P, SATURATION, ROOT1P,
)  # fmt: skip

#: A function of 1/v that v - 1/2 begins like, where v is large.
LIKE_LARGE = INVERSE_EXPM1

# --- exponents ------------------------------------------------------------------------------------------------------

#: Whole exponents, where there are many variables or many columns beside them.
WHOLE = both_signs(1, 2)
UP_TO_CUBES = both_signs(1, 2, 3)
FIRST_POWERS = both_signs(1)
#: Of monomials, and the largest sum of their sizes, by number of variables: the dictionary stays below some thousands.
EXPONENTS: dict[int, tuple[tuple[float, ...], float]] = {
    1: (both_signs(0.5, 1, 1.5, 2, 3, 4), 4),
    2: ((*both_signs(0.5, 1, 2, 3), 4), 6),
    3: ((*both_signs(0.5, 1, 2), 3), 6),
    4: (WHOLE, 5),
    5: (WHOLE, 4),
}
OF_MANY: tuple[tuple[float, ...], float] = (WHOLE, 3)
#: Largest sum of exponents in q ± p, by number of variables, and for more.
IN_FACTORS, IN_FACTORS_OF_MANY = {1: 4, 2: 6, 3: 6, 4: 5, 5: 5}, 4
#: Amplitudes of a wave.
AMPLITUDES = (-1, 0.5, 1, 2)
#: Powers of an input that a target may be divided by, and of a common scale; the last of both only of clear targets.
HOMOGENEOUS = by_turns(1.0, 2.0, 0.5)
HOMOGENEOUS_TOO = by_turns(3.0)
STRIPPED = (*HOMOGENEOUS, *HOMOGENEOUS_TOO, 4.0)
#: Exponents of two inputs that may occur only together.
TOGETHER_ONLY = ((1, 1), (1, -1), (2, 1), (1, 2), (2, -1), (1, -2))
#: Powers of 1 + u that are tried for each other, and for exp(u).
OF_ONE_PLUS = by_turns(1.0, 0.5, 2.0)
#: The one term of one input: powers in front (the first few where it changes sign), and inside the function.
IN_FRONT, N_IN_FRONT_OF_ANY = (0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -3.0, -5.0, *by_turns(0.5, 1.5)), 4
FEW = (1.0, -1.0, 2.0)
#: Elementary terms: powers between whole ones, where the input is positive.
EIGHTHS = np.array([k / 8 for k in range(-40, 25) if k % 8])
#: Monomials of one, two and three inputs from which the tree search draws, and powers of sums of two.
DRAWN_MONOMIALS = (
    (1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, 0.5, -0.5, 1.5), (1.0, 2.0, -1.0, -2.0, 0.5, 3.0), FEW,
)  # fmt: skip
OF_SUMS = (1.0, 2.0, -1.0)
#: Of a factor that is drawn in the place of a language model, and how often each is.
DRAWN_EXPONENTS = {1.0: 0.5, 2.0: 0.15, 3.0: 0.04, 0.5: 0.07, -1.0: 0.16, -2.0: 0.06, -0.5: 0.02}

# --- constants inside, relative to the largest magnitude of what they multiply --------------------------------------

#: Frequencies in radians: in dictionaries; of the one term of one input; of elementary terms, dense where slow.
CYCLES = np.linspace(0.3, 40.0, 150)
CYCLES_OF_ONE = np.arange(0.3, 40.0, 0.4)
PHASES = np.concatenate([np.arange(0.2, 16.0, 0.2), np.arange(16.0, 40.0, 0.4)])
#: Frequencies of fast waves: the highest, and the step between two.
HIGHEST_FREQUENCY, FREQUENCY_STEP = 120.0, 0.4
#: Whole turns over the data, for the atoms of the tree search.
TURNS = np.arange(0.75, 12.0, 0.25)
#: Sizes: in dictionaries; of the one term of one input; of elementary terms.
SIZES = np.multiply.outer((-1.0, 1.0), np.logspace(-2, 1.2, 24)).reshape(-1)
SIZES_OF_ONE = np.concatenate([-np.geomspace(50.0, 0.02, 24), np.geomspace(0.02, 50.0, 24)])
RATES = np.geomspace(0.05, 50.0, 36)
#: The same for elementary terms: what is scanned of an input, of its magnitude and of its square.
SCANNED_OF = (
    *((template, PHASES, "input") for template in WAVE_TEMPLATES),
    *((template, RATES, "magnitude") for template in (DECAY, LOG1P, SATURATION)),
    *((template, RATES, "square") for template in (DECAY, SATURATION)),
)
#: How far the offset of a power law may be from the least value of the target, in units of its spread: sqrt(1 + u) of a
#: u that goes over ten powers of ten has rows that are nearly one.
OFFSETS = np.logspace(-18.0, 1.0, 115)
#: Interactions: arguments at the far corner of the range, and where their zeros lie as shares of the range.
STRENGTHS = (1.0, 2.0, 3.5, 6.0)
ZEROS = (0.0, -0.4, 1.0, 1.4)
#: Factors inside functions of dictionaries (both, or the slow one), of atoms, and of the functions of a template.
SCALES, SLOW = (1.0, 0.5, 2.0), (1.0, 0.5)
ATOM_SCALES = (0.5, 2.0, 3.0)
TEMPLATE_SCALES = (-0.5, 3.0)
#: Constants that variation puts in front of a part of a term, and adds to one.
IN_FRONT_OF_PARTS, BESIDE_PARTS = (0.5, 1.0, 2.0, -1.0), (1.0, -1.0, 0.5, 2.0)
