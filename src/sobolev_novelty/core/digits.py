"""Numbers for people, as many digits as are known, four where nothing says how well; and for JSON.

The one place that decides how many digits a constant is shown with; text, LaTeX, tables, figures and pages ask here.
What is stored or parsed again is written in full by :func:`sobolev_novelty.core.expression.format_number` instead.
In JSON what is not finite is ``None``, which becomes ``nan`` again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

#: Significant digits of a number of which nothing else is known.
DEFAULT_DIGITS = 4
#: More digits than this are never shown.
MAX_DIGITS = 12
#: Whole numbers below this are written out: years, counts and exponents are not measured.
WHOLE = 1e5


def significant_digits(value: float, half_width: float, most: int = MAX_DIGITS) -> int:
    """Digits of ``value`` down to the place of a tenth of its uncertainty, but no more than ``most``.

    >>> significant_digits(1.23456, 0.05), significant_digits(0.00123456, 0.5), significant_digits(1.0, 1e-30)
    (4, 1, 12)
    """
    if value == 0.0 or not half_width > 0.0:
        return DEFAULT_DIGITS if value == 0.0 else most
    last = math.floor(math.log10(half_width / 10.0))
    first = math.floor(math.log10(abs(value)))
    return min(max(first - last + 1, 1), most)


def number_text(value: float | None, half_width: float | None = None, digits: int = DEFAULT_DIGITS) -> str:
    """A number for a person; what is missing or not finite is a dash.

    ``half_width``: half the width of the number's interval: the last digit shown is of the order of a tenth of it.
    ``digits``: significant digits where no usable half-width is given.

    >>> number_text(0.123456), number_text(12345678.0), number_text(2010.0), number_text(None)
    ('0.1235', '1.235e+07', '2010', '–')
    >>> number_text(1.23456, 0.05), number_text(1.23456, 0.0003), number_text(17.3, 40.0)
    ('1.235', '1.23456', '17')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if half_width is not None and math.isfinite(half_width):
        return _plain(value, significant_digits(value, half_width))
    if digits >= DEFAULT_DIGITS and value == round(value) and abs(value) < WHOLE:
        return str(int(value))
    return f"{value:.{digits}g}"


#: A name between backticks, which stays, or a number of a formula's text.
_WRITTEN = re.compile(r"`(?:[^`]|``)*+`|(?<![\w.])(?:\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


def short_numbers(text: str, digits: int = DEFAULT_DIGITS) -> str:
    """The text of a formula for a person: its numbers as :func:`number_text` has them, names as they are.

    >>> short_numbers("2.34567891234*sin(1.5*x12 + `a 1.234567`) - 1e-300*x0"), short_numbers("term 3")
    ('2.346*sin(1.5*x12 + `a 1.234567`) - 1e-300*x0', 'term 3')
    """
    return _WRITTEN.sub(lambda m: m[0] if m[0][0] == "`" else number_text(float(m[0]), digits=digits), text)


def _plain(value: float, digits: int) -> str:
    """Without an exponent as long as no zero would have to stand for an unknown digit."""
    text = f"{value:.{digits}g}"
    _, has_exponent, exponent = text.partition("e")
    if has_exponent and 0 <= int(exponent) == digits:  # 1.2e+02 is 120: one zero more reads better than a power
        return str(round(float(text)))
    return text


def interval_text(low: float, high: float, estimate: float) -> str:
    """Both ends of an interval to the digits of the estimate; an open end is infinite.

    >>> interval_text(0.98231, 1.0341, 1.0), interval_text(0.3, math.inf, 1.0)
    ('0.982 … 1.034', '0.3 … ∞')
    >>> interval_text(1e-12, 4.0, 2.0)
    '0 … 4'
    """
    half = max((abs(end - estimate) for end in (low, high) if math.isfinite(end)), default=None)
    return " … ".join(_end_text(end, half) for end in (low, high))


def _end_text(end: float, half: float | None) -> str:
    if not math.isfinite(end):
        return "∞" if end > 0 else "−∞"
    # An end much closer to zero than the last digit is zero, and not a power of ten of its own.
    return "0" if half is not None and abs(end) < half / 100.0 else number_text(end, half)


_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def typeset(text: str) -> str:
    """A written number as print has it: a true minus sign and a power of ten, and no place to break the line.

    >>> typeset("-1.74e-06").replace(chr(160), " "), typeset("0.5"), typeset("1e+07").replace(chr(160), " ")
    ('−1.74 × 10⁻⁶', '0.5', '1 × 10⁷')
    """
    mantissa, has_exponent, exponent = text.partition("e")
    power = f"\u00a0×\u00a010{str(int(exponent)).translate(_POWERS)}" if has_exponent else ""
    return mantissa.replace("-", "−") + power


def percent_text(share: float | None, digits: int = 2) -> str:
    """A share in per cent, never with a power of ten; a no-break space before the sign.

    >>> [percent_text(share).replace(chr(160), " ") for share in (1.3, 0.0234, 1e-9, 40.0, 0.0)]
    ['130 %', '2.3 %', '<0.01 %', '>1000 %', '0 %']
    """
    if share is None or not math.isfinite(share):
        return "–"
    if 0.0 < share < 1e-4:
        return "<0.01\u00a0%"
    return ">1000\u00a0%" if share >= 10.0 else f"{float(f'{100.0 * share:.{digits}g}'):g}\u00a0%"


def typeset_interval(low: float, high: float, estimate: float) -> str:
    """Both ends as print has them, a common power of ten taken out.

    >>> typeset_interval(-4.64e-6, 1.1e-6, -1.7e-6).replace(chr(160), " "), typeset_interval(470.0, 520.0, 495.0)
    ('(−4.6 … 1.1) × 10⁻⁶', '470 … 520')
    """
    written = [end.partition("e") for end in interval_text(low, high, estimate).split(" … ")]
    powers = [int(exponent) for _, _, exponent in written if exponent]
    if not powers:
        return " … ".join(typeset(mantissa) for mantissa, _, _ in written)
    power = max(powers)
    unit = 10.0**power
    ends = interval_text(low / unit, high / unit, estimate / unit)
    return f"({ends.replace('-', '−')}){typeset(f'1e{power}')[1:]}"


def json_number(value: float) -> float | None:
    """A plain float; None where it is not finite.

    >>> json_number(2), json_number(float("inf"))
    (2.0, None)
    """
    return float(value) if math.isfinite(value) else None


def json_value(value: Any) -> Any:
    """Numbers, also in a tuple, by :func:`json_number`; all else as it is."""
    if isinstance(value, tuple):
        return [json_number(part) for part in value]
    return json_number(value) if isinstance(value, float) else value


def json_rows(matrix: npt.NDArray[np.float64]) -> list[list[float | None]]:
    """A matrix, row by row."""
    return [[json_number(value) for value in row] for row in matrix.tolist()]


def floats(values: Iterable[float | None]) -> npt.NDArray[np.float64]:
    """An array, ``nan`` for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
