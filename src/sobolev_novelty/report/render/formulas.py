"""Labels that are formulas, read back: how a page sets them and a terminal shortens their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.operators import Operator, own_operators
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.language.parsing import parse


def read_formula(text: str) -> Expression | None:
    """The expression behind a label; None where the label is free text that only happens to parse."""
    return _read(text, own_operators())


@lru_cache(maxsize=1024)
def _read(text: str, own: tuple[Operator, ...]) -> Expression | None:
    """The expression in the language of these own operators."""
    try:
        expression = parse(text)
    except SobolevError:
        return None
    return expression if str(expression) == text else None


def short_formula(text: object, widths: Mapping[float, float] | None = None) -> str:
    """A label with the numbers of a formula in four digits; other text stays as it is.

    ``widths``: |number| -> half-width of its interval: such a number has the digits that the interval allows.
    """
    expression = read_formula(str(text))
    if expression is None:
        return str(text)
    return short_text(expression, [(widths or {}).get(abs(constant)) for constant in expression.constants])
