"""Formulas as MathML, which browsers set without help from the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from html import escape

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.report.render.formulas import read_formula
from sobolev_novelty.report.render.sentences import number, plain

#: A formula with more nodes than this is shown as text.
MAX_NODES = 160

_SUBSCRIPTED = re.compile(r"([A-Za-z]+?)_?(\d{1,4})\Z|([A-Za-z]+)_([A-Za-z0-9]{1,8})\Z")
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_GREEK = dict(zip(_GREEK_NAMES.split(), "αβγδεζηθικλμνξπρστφχψωΓΔΘΛΞΠΣΦΨΩ", strict=True))

_MINUS = "<mo>−</mo>"
_WORD = re.compile(r"(?:<m(?:sup|sub|row)>)*<mi>[^<]{2,}")

#: Markup and how tightly it binds: 1 a sum, 2 a product, 3 a sign, 4 a power, 9 one thing.
_Piece = tuple[str, int]


def formula(text: object, widths: Mapping[float, float] | None = None) -> str:
    """HTML for a formula, one ``<math>`` per summand so that lines can break between them; other text stays text.

    ``widths``: |number| -> half-width of its interval, see
    :func:`sobolev_novelty.report.render.formulas.short_formula`.
    """
    expression = read_formula(str(text))
    if expression is None or len(expression) > MAX_NODES:
        return f"<code>{escape(plain(text))}</code>"
    pieces = []
    for k, (sign, summand) in enumerate(_summands(expression)):
        markup = summand.fold(partial(_leaf, widths=widths or {}), _node)
        is_flipped = k > 0 and markup[1] > 1 and markup[0].startswith(_MINUS)  # + −2 x is written − 2 x
        written = (markup[0].removeprefix(_MINUS), markup[1]) if is_flipped else markup
        body = _within(written, 2) if k else markup[0]
        lead = f'<mo form="infix">{"+" if (sign > 0) != is_flipped else "−"}</mo>' if k else ""
        pieces.append(f"<math>{lead}{body}</math>")
    return " ".join(pieces)


def _summands(expression: Expression) -> list[tuple[int, Expression]]:
    """The parts of the outermost sum with their signs, in order."""
    summands: list[tuple[int, Expression]] = []
    while expression.head in (OPERATORS["add"], OPERATORS["sub"]):
        left, right = expression.children
        summands.append((1 if expression.head is OPERATORS["add"] else -1, right))
        expression = left
    return [(1, expression), *reversed(summands)]


def _leaf(token: float | str, widths: Mapping[float, float]) -> _Piece:
    if isinstance(token, float):
        mantissa, has_exponent, exponent = number(token, half_width=widths.get(abs(token))).partition("e")
        minus = "<mo>−</mo>" if mantissa.startswith("-") else ""
        markup = f"{minus}<mn>{mantissa.lstrip('-')}</mn>"
        if has_exponent:
            sign = "<mo>−</mo>" if exponent.startswith("-") else ""
            markup += f"<mo>×</mo><msup><mn>10</mn><mrow>{sign}<mn>{abs(int(exponent))}</mn></mrow></msup>"
        return markup, 3 if minus else 2 if has_exponent else 9
    match = _SUBSCRIPTED.match(token)
    if match is None:
        return _name(token), 9
    base, index = (match[1], match[2]) if match[1] else (match[3], match[4])
    lower = f"<mn>{index}</mn>" if index.isdigit() else f"<mi>{escape(index)}</mi>"
    return f"<msub>{_name(base)}{lower}</msub>", 9


def _name(name: str) -> str:
    return f"<mi>{escape(_GREEK.get(name, plain(name)))}</mi>"


def _row(markup: str) -> str:
    return f"<mrow>{markup}</mrow>"


def _bracketed(markup: str) -> str:
    """Brackets that grow only where there is a fraction to embrace: some fonts stretch them around anything."""
    stretchy = "true" if "<mfrac>" in markup else "false"
    return _row(f'<mo stretchy="{stretchy}">(</mo>{_row(markup)}<mo stretchy="{stretchy}">)</mo>')


def _within(piece: _Piece, precedence: int) -> str:
    """The operand, in brackets where it binds less tightly."""
    markup, own = piece
    return markup if own >= precedence else _bracketed(markup)


def _node(op: Operator, args: tuple[_Piece, ...]) -> _Piece:
    special = _RULES.get(op.name)
    if special is not None:
        return special(args)
    inner = "<mo>,</mo>".join(_row(markup) for markup, _ in args)
    return _row(f"<mi>{escape(op.name)}</mi><mo>&#x2061;</mo>{_bracketed(inner)}"), 9


def _product(args: tuple[_Piece, ...]) -> _Piece:
    left, right = _within(args[0], 2), _within(args[1], 3 if args[1][1] == 3 else 2)
    # A number before a letter needs no sign; before a number, a bracket or a word it does.
    needs_sign = right.startswith(("<mn>", "<mrow><mo", "<msup><mn>")) or _WORD.match(right)
    sign = "<mo>·</mo>" if needs_sign or not left.endswith("</mn>") else "<mo>&#x2062;</mo>"
    return f"{left}{sign}{right}", 2


def _power(base: _Piece, exponent: str) -> _Piece:
    return f"<msup>{_row(_within(base, 9)) if base[1] < 9 else base[0]}{exponent}</msup>", 4


def _fraction(above: str, below: str) -> _Piece:
    return f"<mfrac>{_row(above)}{_row(below)}</mfrac>", 4


_RULES: dict[str, Callable[[tuple[_Piece, ...]], _Piece]] = {
    "add": lambda a: (f"{a[0][0]}<mo>+</mo>{_within(a[1], 2)}", 1),
    "sub": lambda a: (f"{a[0][0]}<mo>−</mo>{_within(a[1], 2)}", 1),
    "neg": lambda a: (f"<mo>−</mo>{_within(a[0], 2)}", 1),
    "mul": _product,
    "div": lambda a: _fraction(a[0][0], a[1][0]),
    "inv": lambda a: _fraction("<mn>1</mn>", a[0][0]),
    "pow": lambda a: _power(a[0], _row(a[1][0]) if a[1][1] < 9 else a[1][0]),
    "square": lambda a: _power(a[0], "<mn>2</mn>"),
    "cube": lambda a: _power(a[0], "<mn>3</mn>"),
    "exp": lambda a: (f"<msup><mi>e</mi>{_row(a[0][0])}</msup>", 4),
    "sqrt": lambda a: (f"<msqrt>{_row(a[0][0])}</msqrt>", 9),
    "cbrt": lambda a: (f"<mroot>{_row(a[0][0])}<mn>3</mn></mroot>", 9),
    "abs": lambda a: (_row(f'<mo stretchy="false">|</mo>{_row(a[0][0])}<mo stretchy="false">|</mo>'), 9),
}
