"""Units of inputs and target: read from text, followed through an equation, nonsense named.

A unit is reduced to its exponents of the seven base units; factors such as the 1000 of a kilometre do not matter,
because constants are fitted. Numbers in an equation are pure, or may carry whatever unit makes it consistent.

Notation
--------
``d``  dimension: exponents of m, kg, s, A, K, mol, cd, as fractions;  None for a number that may carry any unit
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from sobolev_novelty.algebra.canonical import tidy
from sobolev_novelty.algebra.products import EXPONENTS
from sobolev_novelty.algebra.terms import additive_terms
from sobolev_novelty.algebra.writing import product
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.parameters import FLAG, NOTHING, TEXT, UNITS, checked, instance
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import as_expression
from sobolev_novelty.search.problem.constraints import Units

Dimension = tuple[Fraction, ...]
BASES = ("m", "kg", "s", "A", "K", "mol", "cd")
PURE: Dimension = (Fraction(0),) * len(BASES)

#: Other units in terms of simpler ones.
DERIVED = {
    "g": "kg", "N": "kg*m/s^2", "J": "N*m", "W": "J/s", "Pa": "N/m^2", "Hz": "1/s", "C": "A*s", "V": "W/A", "F": "C/V",
    "ohm": "V/A", "Ω": "V/A", "S": "A/V", "Wb": "V*s", "T": "Wb/m^2", "H": "Wb/A", "lm": "cd", "lx": "cd/m^2",
    "Bq": "1/s", "Gy": "J/kg", "Sv": "J/kg", "kat": "mol/s", "L": "m^3", "l": "m^3", "bar": "Pa", "atm": "Pa",
    "eV": "J", "cal": "J", "min": "s", "h": "s", "hr": "s", "d": "s", "day": "s", "yr": "s", "t": "kg", "u": "kg",
    "Å": "m", "ha": "m^2", "rad": "1", "sr": "1", "deg": "1", "°": "1", "°C": "K", "degC": "K", "%": "1",
}  # fmt: skip
#: Inputs up to which products of powers are enumerated, how many are kept, and how many of these are added in pairs.
MAX_MONOMIAL_INPUTS, MAX_MONOMIALS, MAX_SUMMED = 7, 40, 8
PREFIXES = ("da", *"QRYZEPTGMkhdcmuµμnpfazy")
_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-zΩÅ°µμ%]+)|(?P<number>\d+(?:\.\d+)?)|(?P<sign>\*\*|[*/^()·+-]))")
#: Operators that leave the unit as it is; whose operands and value are pure numbers.
_KEEPING = ("neg", "abs", "min", "max", "add", "sub")
_ROOTS = {"cbrt": Fraction(1, 3), "sqrtabs": Fraction(1, 2)}


def parse_unit(text: str) -> Dimension:
    """The dimension of a unit such as ``"kg*m/s^2"``, ``"J/K"`` or ``"1"``.

    >>> parse_unit("kg*m/s^2") == parse_unit("N"), unit_text(parse_unit("mJ/(mol K)"))
    (True, 'm^2*kg/(s^2*K*mol)')
    """
    if not isinstance(text, str) or len(text) > 200:
        raise ParameterError(f"A unit must be text such as 'kg*m/s^2'. Got {str(text)[:40]!r}.")
    reader = _Reader(text, _tokens(text))
    found = reader.product() if reader.tokens else PURE
    if reader.tokens:
        raise reader.error(f"'{reader.tokens[0]}' is not expected here")
    return found


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise ParameterError(
                f"The unit '{text}' cannot be read: '{text[place:].strip()[:1]}' is not expected here."
            )
        tokens.append(match.group().strip())
        place = match.end()
    return tokens


@dataclass(slots=True)
class _Reader:
    """Reads products, quotients and powers from the left; a slash divides by the next factor only."""

    text: str
    tokens: list[str]

    def error(self, reason: str) -> ParameterError:
        return ParameterError(f"The unit '{self.text}' cannot be read: {reason}. Write it as in 'kg*m/s^2' or 'J/K'.")

    def product(self) -> Dimension:
        found = self.factor()
        while self.tokens and self.tokens[0] != ")":
            sign = self.tokens.pop(0) if self.tokens[0] in ("*", "·", "/") else "*"
            found = _times(found, self.factor(), -1 if sign == "/" else 1)
        return found

    def factor(self) -> Dimension:
        if not self.tokens:
            raise self.error("something is missing at its end")
        token = self.tokens.pop(0)
        if token == "(":
            found = self.product()
            if not self.tokens or self.tokens.pop(0) != ")":
                raise self.error("a bracket is not closed")
        elif token[0].isdigit():
            found = PURE
        elif token in ("*", "/", "^", "**", ")", "·", "+", "-"):
            raise self.error(f"'{token}' is not expected here")
        else:
            found = self.named(token)
        if self.tokens and self.tokens[0] in ("^", "**"):
            self.tokens.pop(0)
            found = _raised(found, self.exponent())
        return found

    def exponent(self) -> Fraction:
        """A number, with a sign or as a fraction in brackets."""
        tokens = self.tokens
        is_bracketed = bool(tokens) and tokens[0] == "("
        if is_bracketed:
            tokens.pop(0)
        sign = -1 if tokens and tokens[0] == "-" else 1
        if tokens and tokens[0] in ("-", "+"):
            tokens.pop(0)
        if not tokens or not tokens[0][0].isdigit():
            raise self.error("an exponent must be a number")
        found = sign * Fraction(tokens.pop(0))
        if is_bracketed:
            if len(tokens) > 1 and tokens[0] == "/" and tokens[1].isdigit() and int(tokens[1]):
                tokens.pop(0)
                found /= Fraction(tokens.pop(0))
            if not tokens or tokens.pop(0) != ")":
                raise self.error("a bracket is not closed")
        return found

    def named(self, name: str) -> Dimension:
        found = _known(name)
        if found is None:
            raise self.error(f"'{name}' is not a unit that is known here")
        return found


@cache
def _known(name: str) -> Dimension | None:
    if name in BASES:
        return tuple(Fraction(base == name) for base in BASES)
    if name in DERIVED:
        return parse_unit(DERIVED[name])
    for prefix in PREFIXES:
        rest = name[len(prefix) :]
        if name.startswith(prefix) and rest and (rest in BASES or rest in DERIVED):
            return _known(rest)
    return None


def _times(a: Dimension, b: Dimension, power: int = 1) -> Dimension:
    return tuple(x + power * y for x, y in zip(a, b, strict=True))


def _raised(d: Dimension, power: Fraction) -> Dimension:
    return tuple(power * x for x in d)


def unit_text(d: Dimension) -> str:
    """A dimension in base units."""

    def written(factors: Sequence[tuple[str, Fraction]]) -> str:
        return "*".join(
            base if k == 1 else f"{base}^{k}" if k.denominator == 1 else f"{base}^({k})" for base, k in factors
        )

    above = [(base, k) for base, k in zip(BASES, d, strict=True) if k > 0]
    below = [(base, -k) for base, k in zip(BASES, d, strict=True) if k < 0]
    if not below:
        return written(above) or "1"
    return (
        f"{written(above) or '1'}/{written(below)}"
        if len(below) == 1
        else f"{written(above) or '1'}/({written(below)})"
    )


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The units of a problem."""

    inputs: Mapping[str, Dimension]  # an input that is missing is a pure number
    target: Dimension | None = None  # none where it is not known
    is_free: bool = True  # whether numbers may carry units

    @classmethod
    def of(cls, units: Units, names: Sequence[str], target: str = "y") -> Dimensions:
        """The units that a user gave; those of the target also under its own name, where no input has it."""
        inputs = dict(units.inputs)
        own = inputs.pop(target, None) if target not in names else None
        unknown = [str(name) for name in inputs if name not in names]
        if unknown:
            raise ParameterError(
                f"'units' names columns that are not there: {', '.join(unknown)}. Known: {', '.join(names)}, and "
                f"{target} for the target."
            )
        if own is not None and units.target is not None:
            raise ParameterError(f"'units' has the target twice: as '{target}' and with target=. Leave out one.")
        found = own if units.target is None else units.target
        dimensions = {str(name): parse_unit(text) for name, text in inputs.items()}
        return cls(dimensions, None if found is None else parse_unit(found), units.constants)

    def renamed(self, names: Mapping[str, str]) -> Dimensions:
        """The same for other names of the inputs."""
        return Dimensions({names.get(name, name): d for name, d in self.inputs.items()}, self.target, self.is_free)

    def problem(self, expression: Expression) -> str:
        """What is wrong with an equation, as a sentence that names the part; empty where nothing is."""
        wanted, whose = self.target, "the target"
        for term in additive_terms(expression):
            try:
                d = self._followed(term.expression)
            except _NonsenseError as error:
                return str(error)
            if self.is_free or d is None or d == wanted:
                continue
            if wanted is None:  # nobody said what the target is: all terms must be alike
                wanted, whose = d, f"the term {short_text(term.expression)}"
                continue
            units = f"has the unit {unit_text(d)}, {whose} {unit_text(wanted)}"
            return f"The term {short_text(term.expression)} {units}."
        return ""

    def check(self, expression: Expression) -> None:
        """Raise an error that names what is wrong."""
        problem = self.problem(expression)
        if problem:
            raise ParameterError(f"'units' do not fit the equation. {problem}")

    def allows(self, form: Expression) -> bool:
        """Whether an equation makes sense."""
        return not self.problem(form)

    def monomials(self, names: Sequence[str]) -> list[Expression]:
        """Products of small powers of the inputs that have the unit of the target, simplest first; then sums of two."""
        if self.target is None or self.is_free or len(names) > MAX_MONOMIAL_INPUTS:
            return []
        reach = 4 if len(names) <= 4 else 2
        columns = np.array([[float(k) for k in self.inputs.get(name, PURE)] for name in names])
        grid = np.indices((2 * reach + 1,) * len(names)).reshape(len(names), -1).T - reach
        fitting = grid[np.abs(grid @ columns - [float(k) for k in self.target]).max(axis=1) < 1e-9]
        chosen = fitting[np.argsort(np.abs(fitting).sum(axis=1), kind="stable")][:MAX_MONOMIALS]
        found = [
            product((Expression.of(n), float(k)) for n, k in zip(names, row, strict=True)) for row in chosen.tolist()
        ]
        found = [e for e in found if e.variables]
        return found + [Expression.of("add", a, b) for a, b in combinations(found[:MAX_SUMMED], 2)]

    def _followed(self, expression: Expression) -> Dimension | None:
        return expression.fold(self._leaf, _joined)[0]

    def _leaf(self, token: str | float) -> _Part:
        if isinstance(token, str):
            return self.inputs.get(token, PURE), Expression.of(token)
        return None if self.is_free else PURE, Expression.of(token)


#: A subexpression and its dimension.
_Part = tuple[Dimension | None, Expression]


class _NonsenseError(Exception):
    """Units that do not go together."""


def _joined(op: Operator, operands: Sequence[_Part]) -> _Part:
    whole = Expression.of(op, *(e for _, e in operands))
    dimensions = [d for d, _ in operands]
    if op.name in ("mul", "div"):
        a, b = dimensions
        return None if a is None or b is None else _times(a, b, 1 if op.name == "mul" else -1), whole
    if op.name in EXPONENTS or op.name in _ROOTS:
        power = _ROOTS.get(op.name) or Fraction(EXPONENTS[op.name])
        return None if dimensions[0] is None else _raised(dimensions[0], power), whole
    if op.name in ("pow", "powabs"):
        return _power(operands, whole), whole
    if op.name in _KEEPING:
        known = [d for d in dimensions if d is not None]
        if len(set(known)) > 1:
            first, second = (f"{short_text(e)} has the unit {unit_text(d)}" for d, e in operands if d is not None)
            raise _NonsenseError(f"In {short_text(whole)}, {first} and {second}.")
        return known[0] if known else None, whole
    for d, e in operands:
        if d is not None and d != PURE:
            raise _NonsenseError(
                f"In {short_text(whole)}, {short_text(e)} has the unit {unit_text(d)}, not a pure number."
            )
    return PURE, whole


def _power(operands: Sequence[_Part], whole: Expression) -> Dimension | None:
    (base, _), (exponent, shown) = operands
    power = tidy(shown).head  # 3/2 is a number too
    if isinstance(power, float):
        return None if base is None else _raised(base, Fraction(power).limit_denominator(12))
    for d, e in operands:
        if d is not None and d != PURE:
            raise _NonsenseError(
                f"In {short_text(whole)}, {short_text(e)} has the unit {unit_text(d)}, not a pure number."
            )
    return PURE if base is not None and exponent is not None else None


@checked(units=UNITS | instance("Units", Units), y_units=TEXT | NOTHING, constant_units=FLAG)
def check_units(
    equation: Any, units: Mapping[str, str] | Units, y_units: str | None = None, *, constant_units: bool = True
) -> None:
    """Raise an error that names the part of an equation whose units make no sense.

    Parameters
    ----------
    equation : str, Expression or SymPy expression
    units : Units or mapping of str to str
        Unit of each input, such as ``{"m": "kg", "v": "m/s"}``; inputs that are missing are pure numbers.
    y_units : str, optional
        Before 0.2; now ``Units(…, target="J")``.
    constant_units : bool
        Before 0.2; now ``Units(…, constants=False)``.

    Examples
    --------
    >>> energy = Units({"m": "kg", "v": "m/s"}, target="J", constants=False)
    >>> check_units("m*v**2/2", energy)
    >>> try:
    ...     check_units("m*v**2/2 + exp(v)", energy)
    ... except ParameterError as error:
    ...     print(error)
    'units' do not fit the equation. In exp(v), v has the unit m/s, not a pure number.
    """
    if y_units is not None or not constant_units:
        warnings.warn(
            "'y_units' and 'constant_units' will be errors in 0.3: write Units(…, target=…, constants=…).",
            DeprecationWarning,
            stacklevel=3,
        )
    given = units if isinstance(units, Units) else Units(units)
    if y_units is not None or not constant_units:
        given = Units(given.inputs, y_units, constant_units)
    expression = as_expression(equation, None)
    Dimensions.of(given, tuple({*given.inputs, *expression.variables})).check(expression)
