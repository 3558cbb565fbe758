"""To LaTeX, with the brackets that are needed and no others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sobolev_novelty.core.digits import DEFAULT_DIGITS, number_text
from sobolev_novelty.core.expression import Expression, format_number, numbered_index
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.parameters import DIGITS, NOTHING, TREE, checked, list_of, number
from sobolev_novelty.errors import ParameterError

# How tightly a piece of LaTeX holds together. An operand looser than its place wants goes between brackets.
_SUM, _PRODUCT, _SIGNED, _FRACTION, _POWER, _CLOSED = range(1, 7)

#: Operators whose own notation separates them from their surroundings; everything not listed here or below is f(...).
_TIGHTNESS = {
    "add": _SUM, "sub": _SUM, "mul": _PRODUCT, "neg": _SIGNED, "div": _FRACTION, "inv": _FRACTION, "aq": _FRACTION,
    "pow": _POWER, "square": _POWER, "cube": _POWER, "powabs": _POWER,
    "sqrt": _CLOSED, "cbrt": _CLOSED, "sqrtabs": _CLOSED, "abs": _CLOSED,
}  # fmt: skip

#: What the left and the right operand must at least be; operands of the others are in braces or brackets already.
_WANTED = {
    "add": (_SUM, _SUM), "sub": (_SUM, _PRODUCT), "mul": (_PRODUCT, _PRODUCT), "neg": (_FRACTION,),
    "pow": (_CLOSED, 0), "square": (_CLOSED,), "cube": (_CLOSED,), "log1p": (_PRODUCT,),
}  # fmt: skip

_GREEK = re.compile(
    "(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|chi|psi|"
    r"omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega)\Z"
)
_SPLIT_NAME = re.compile(r"([A-Za-z]+?)_?([0-9]+|(?<=_)[A-Za-z0-9]+)\Z")
_SPECIAL = {
    **{c: f"\\{c}" for c in "_%$#&{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}

_Piece = tuple[str, int]


@checked(
    expression=TREE,
    precision=DIGITS | NOTHING,
    half_widths=list_of(number(0.0) | NOTHING, "one number or None per constant") | NOTHING,
)
def to_latex(
    expression: Expression,
    precision: int | None = DEFAULT_DIGITS,
    *,
    half_widths: Sequence[float | None] | None = None,
) -> str:
    r"""The expression in LaTeX, without dollar signs.

    Parameters
    ----------
    expression : Expression
    precision : int, optional
        Significant digits of the constants, four by default; None for as many as it takes to give back the same
        number.
    half_widths : sequence of float or None, optional
        Half the width of each constant's interval, in prefix order: it decides how many digits are known.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> to_latex(parse("(x0 + x1)**2/sqrt(omega_0) - 1.5e-7*x0"))
    '\\frac{\\left(x_{0} + x_{1}\\right)^{2}}{\\sqrt{\\omega_{0}}} - 1.5 \\times 10^{-7} \\, x_{0}'
    """
    n = len(expression.constants)
    known = [None] * n if half_widths is None else list(half_widths)  # the fold comes from the end
    if len(known) != n:
        raise ParameterError(f"'half_widths' must have one entry per constant, {n} in all. Got {len(known)}.")

    def leaf(token: float | str) -> _Piece:
        if isinstance(token, str):
            return _latex_name(token), _CLOSED
        half_width = known.pop()
        return _latex_number(format_number(token) if precision is None else number_text(token, half_width, precision))

    return expression.fold(leaf, _node)[0]


def _node(op: Operator, args: tuple[_Piece, ...]) -> _Piece:
    wanted = _WANTED.get(op.name, (0, 0))
    texts = [_bracketed(text, tightness < want) for (text, tightness), want in zip(args, wanted)]
    if op.name in ("add", "sub", "mul", "log1p") and texts[-1].startswith("-"):
        texts[-1] = _bracketed(texts[-1], True)
    template = op.latex
    if op.name == "mul" and texts[1][0].isdigit():
        template = r"{0} \cdot {1}"  # a space between two numbers would join them
    return template.format(*texts), _TIGHTNESS.get(op.name, _POWER)


def _bracketed(text: str, is_needed: bool) -> str:
    return rf"\left({text}\right)" if is_needed else text


def _latex_number(text: str) -> _Piece:
    is_negative = text.startswith("-")
    mantissa, has_exponent, exponent = text.partition("e")
    if not has_exponent:
        return text, _SIGNED if is_negative else _CLOSED
    power = f"10^{{{int(exponent)}}}"
    if mantissa in ("1", "-1"):
        return mantissa[:-1] + power, _SIGNED if is_negative else _POWER
    return rf"{mantissa} \times {power}", _PRODUCT


def _latex_name(name: str) -> str:
    index = numbered_index(name)
    if index is not None:
        return f"{name[0]}_{{{index}}}"
    match = _SPLIT_NAME.match(name)
    stem, subscript = (match[1], match[2]) if match else (name, "")
    if _GREEK.match(stem):
        stem = "\\" + stem
    elif len(stem) > 1 or not stem.isalpha():
        # An empty line ends \text, and TeX stops.
        printable = "".join(c if c.isprintable() else " " for c in stem)
        kind = "mathrm" if stem.isalnum() and stem.isascii() else "text"
        stem = f"\\{kind}{{{''.join(_SPECIAL.get(c, c) for c in printable)}}}"
    if not subscript:
        return stem
    is_word = len(subscript) > 1 and not subscript.isdigit()
    return f"{stem}_{{\\mathrm{{{subscript}}}}}" if is_word else f"{stem}_{{{subscript}}}"
