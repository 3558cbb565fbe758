"""Simple numbers near a fitted one: fractions, and their multiples of numbers such as pi."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np

#: Numerator times denominator at most: fractions of larger numbers are near anything.
MAX_PARTS = 1_000_000
#: Denominators of fractions that a number is taken for which differs from them in the last digits only.
DENOMINATORS = range(1, 13)
#: What simple numbers are multiples of, and nats that naming it costs: about how rare it is in laws. For fewer nats the
#: 0.4 of anybody's table would become 1/sqrt(2 pi).
SIMPLE_BASES = (
    (1.0, 0.0), (math.pi, 2.3), (1.0 / math.pi, 2.3), (math.pi**2, 4.0), (1.0 / math.pi**2, 4.0),
    (math.sqrt(2.0), 3.5), (1.0 / math.sqrt(2.0 * math.pi), 4.0), (math.sqrt(math.pi), 4.5), (math.sqrt(3.0), 4.0),
)  # fmt: skip
SIMPLE_DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
#: Those of plain fractions as well: people choose 0.05 and 0.075.
DECIMAL_DENOMINATORS = (20, 25, 40, 50, 100)
_SIMPLE = tuple(
    (base, denominator, nats)
    for base, nats in SIMPLE_BASES
    for denominator in (*SIMPLE_DENOMINATORS, *(DECIMAL_DENOMINATORS if base == 1.0 else ()))
)

#: The same without what each costs.
SIMPLE_PAIRS = tuple((base, denominator) for base, denominator, _ in _SIMPLE)

#: A number within this share of a simple one is meant as it.
LAST_DIGITS = 1e-12
_PARTS = np.array([denominator / base for base, denominator, _ in _SIMPLE])
_NATS = np.array([nats + math.log(denominator) for _, denominator, nats in _SIMPLE])


def nearest_simple(
    value: float,
    tolerance: float,
    *,
    bases: Iterable[float] = (1.0,),
    denominators: Iterable[int] = (1, 2, 3, 4),
    pairs: Iterable[tuple[float, int]] | None = None,
    is_relative: bool = False,
    max_parts: float = MAX_PARTS,
) -> float | None:
    """The nearest fraction, or multiple of a base by a fraction, within the tolerance; None where there is none.

    ``tolerance``: largest distance; with ``is_relative`` as a share of the value.
    ``bases``: what fractions are multiples of. Of equally near numbers that of the first base and denominator is taken.
    ``max_parts``: largest product of numerator and denominator.

    >>> nearest_simple(0.50001, 1e-3), nearest_simple(0.41, 1e-3)
    (0.5, None)
    >>> import math
    >>> nearest_simple(3.1416, 1e-3, bases=(1.0, math.pi), denominators=range(1, 13), is_relative=True)
    3.141592653589793
    """
    limit = tolerance * abs(value) if is_relative else tolerance
    best: float | None = None
    for base, denominator in product(bases, denominators) if pairs is None else pairs:
        parts = value / base * denominator
        if not abs(parts) * denominator <= max_parts:
            continue
        candidate = round(parts) / denominator * base
        distance = abs(candidate - value)
        if distance < limit or (best is None and distance == limit):
            best, limit = candidate, distance
    return best


def repeating_fraction(number: float) -> Fraction | None:
    """The fraction with a small denominator and no finite decimal that a number is, to the last bit; None for others.

    >>> repeating_fraction(2 / 3), repeating_fraction(0.25), repeating_fraction(0.333333)
    (Fraction(2, 3), None, None)
    """
    if not 1e-3 < abs(number) < 1e3:
        return None
    fraction = Fraction(number).limit_denominator(DENOMINATORS[-1])
    rest = fraction.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return fraction if rest > 1 and float(fraction) == number else None


def simple_numbers(value: float, reach: float) -> Iterator[tuple[float, float]]:
    """Simple numbers within reach of a value, of its sign, and the nats that it costs to write them down.

    >>> number, nats = min(simple_numbers(0.498, 0.01), key=lambda found: found[1])
    >>> number, round(nats, 1)
    (0.5, 0.7)
    """
    best: dict[float, float] = {}
    for base, denominator, nats in _SIMPLE:
        parts = abs(value) / base * denominator
        if parts > MAX_PARTS:
            continue
        for numerator in {math.floor(parts), math.ceil(parts)} - {0}:
            if math.gcd(numerator, denominator) > 1:
                continue
            number = math.copysign(numerator / denominator * base, value)
            if abs(number - value) <= reach:
                cost = nats + math.log(numerator * denominator)
                best[number] = min(cost, best.get(number, math.inf))
    yield from best.items()


def simple_nats(value: float) -> float:
    """Nats that it costs to write down a number that is a simple one to the last digits; infinite for others.

    >>> round(simple_nats(1.5), 2), simple_nats(1.5001)
    (1.79, inf)
    """
    parts = abs(value) * _PARTS
    whole = np.rint(parts)
    is_it = (np.abs(parts - whole) <= LAST_DIGITS * parts) & (whole > 0.0) & (parts <= MAX_PARTS)
    return float(np.min(_NATS[is_it] + np.log(whole[is_it]), initial=np.inf))
