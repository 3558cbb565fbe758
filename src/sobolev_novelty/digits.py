"""Numbers for people: as many digits as are known, four where nothing says how well a number is known.

The one place that decides how many digits a constant is shown with; text, LaTeX, tables, figures and pages ask here.
What is stored or parsed again is written in full by :func:`sobolev_novelty.expression.format_number` instead.
"""

from __future__ import annotations

import math

#: Significant digits of a number of which nothing else is known.
DEFAULT_DIGITS = 4
#: More digits than this are never shown.
MAX_DIGITS = 12
#: Whole numbers below this are written out: years, counts and exponents are not measured.
WHOLE = 1e5


def significant_digits(value: float, half_width: float) -> int:
    """Digits of ``value`` down to the place of a tenth of its uncertainty.

    Examples
    --------
    >>> significant_digits(1.23456, 0.05), significant_digits(0.00123456, 0.5), significant_digits(1.0, 1e-30)
    (4, 1, 12)
    """
    if value == 0.0 or not half_width > 0.0:
        return DEFAULT_DIGITS if value == 0.0 else MAX_DIGITS
    last = math.floor(math.log10(half_width / 10.0))
    first = math.floor(math.log10(abs(value)))
    return min(max(first - last + 1, 1), MAX_DIGITS)


def number_text(value: float | None, half_width: float | None = None, digits: int = DEFAULT_DIGITS) -> str:
    """A number for a person; what is missing or not finite is a dash.

    Parameters
    ----------
    value : float or None
    half_width : float, optional
        Half the width of the number's interval: the last digit shown is of the order of a tenth of it.
    digits : int
        Significant digits where no usable half-width is given.

    Examples
    --------
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


def _plain(value: float, digits: int) -> str:
    """Without an exponent as long as no zero would have to stand for an unknown digit."""
    text = f"{value:.{digits}g}"
    _, has_exponent, exponent = text.partition("e")
    if has_exponent and 0 <= int(exponent) == digits:  # 1.2e+02 is 120: one zero more reads better than a power
        return str(round(float(text)))
    return text


def interval_text(low: float, high: float, estimate: float) -> str:
    """Both ends of an interval to the digits of the estimate; an open end is infinite.

    Examples
    --------
    >>> interval_text(0.98231, 1.0341, 1.0), interval_text(0.3, math.inf, 1.0)
    ('0.982 … 1.034', '0.3 … ∞')
    """
    sides = [abs(end - estimate) for end in (low, high) if math.isfinite(end)]
    half = max(sides, default=None)
    ends = (number_text(end, half) if math.isfinite(end) else ("∞" if end > 0 else "−∞") for end in (low, high))
    return " … ".join(ends)
