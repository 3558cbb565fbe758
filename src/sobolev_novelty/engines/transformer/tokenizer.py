"""Formulas as the tokens that the network writes.

A *skeleton* has one placeholder per constant. With floats, a constant is three tokens: sign, three digits, exponent of
ten. The formula is in prefix order, as an :class:`~sobolev_novelty.core.expression.Expression` is; inputs are numbered.
The corpus unit (``corpus/native/corpus.h``) has the same vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression, Nested, Token
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.errors import ExpressionError

MAX_INPUTS = 10
SPECIAL = ("<pad>", "<begin>", "<end>", "<c>")
PAD, BEGIN, END, CONSTANT = range(4)
FIRST_INPUT = 4
_OPERATOR_NAMES = (
    "add", "sub", "mul", "inv", "abs", "square", "sqrt", "sin", "cos", "tan", "arctan", "log", "exp", "cube",
)  # fmt: skip
FIRST_OPERATOR = FIRST_INPUT + MAX_INPUTS
SKELETON_NAMES = (*SPECIAL, *(f"x{j}" for j in range(MAX_INPUTS)), *_OPERATOR_NAMES)
N_SKELETON = len(SKELETON_NAMES)

PLUS, MINUS = N_SKELETON, N_SKELETON + 1
FIRST_MANTISSA = N_SKELETON + 2
MANTISSAS = range(100, 1000)
FIRST_EXPONENT = FIRST_MANTISSA + len(MANTISSAS)
EXPONENTS = range(-10, 9)
N_FLOAT = FIRST_EXPONENT + len(EXPONENTS)
FLOAT_NAMES = (
    *SKELETON_NAMES, "+", "-", *(f"N{digits}" for digits in MANTISSAS), *(f"E{exponent}" for exponent in EXPONENTS),
)  # fmt: skip

_NUMBER = {name: FIRST_OPERATOR + k for k, name in enumerate(_OPERATOR_NAMES)}
#: Number -> name of the tokens that are operators.
OPERATOR_NAMES = {number: name for name, number in _NUMBER.items()}
#: Operands that each token opens; a sign opens its digits and its exponent.
ARITY = np.array(
    [OPERATORS[name].arity if name in _NUMBER else 2 if name in "+-" else 0 for name in FLOAT_NAMES], dtype=np.int64
)


def vocabulary(with_floats: bool) -> tuple[str, ...]:
    """Names of the tokens, by number."""
    return FLOAT_NAMES if with_floats else SKELETON_NAMES


def to_prefix(
    expression: Expression, names: Sequence[str] | None = None
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
    """Skeleton tokens of an expression, and its constants at their places (0 elsewhere).

    ``names`` are the inputs, in order; by default ``x0``, ``x1``, ….
    """
    inputs = {name: j for j, name in enumerate(names or [f"x{j}" for j in range(MAX_INPUTS)])}
    tokens = np.zeros(len(expression), dtype=np.int8)
    constants = np.zeros(len(expression))
    for place, token in enumerate(expression.tokens):
        if isinstance(token, Operator):
            if token.name not in _NUMBER:
                raise ExpressionError(
                    f"'{token.name}' has no token. Use rewritten() first; known: {', '.join(_NUMBER)}."
                )
            tokens[place] = _NUMBER[token.name]
        elif isinstance(token, str):
            if inputs.get(token, MAX_INPUTS) >= MAX_INPUTS:
                raise ExpressionError(f"'{token}' is not one of the first {MAX_INPUTS} inputs.")
            tokens[place] = FIRST_INPUT + inputs[token]
        else:
            tokens[place], constants[place] = CONSTANT, token
    return tokens, constants


def from_prefix(tokens: Sequence[int], constants: Sequence[float], names: Sequence[str] | None = None) -> Expression:
    """The expression of skeleton tokens with a constant at each place where one stands."""
    out: list[Token] = []
    for token, constant in zip(tokens, constants, strict=True):
        out.append(float(constant) if token == CONSTANT else _named(int(token), names))
    return Expression(out)


def _named(token: int, names: Sequence[str] | None) -> Token:
    if FIRST_INPUT <= token < FIRST_OPERATOR:
        return names[token - FIRST_INPUT] if names else SKELETON_NAMES[token]
    if FIRST_OPERATOR <= token < N_SKELETON:
        return OPERATORS[SKELETON_NAMES[token]]
    raise ExpressionError(f"Token {token} is not part of a formula.")


def encode(expression: Expression, *, with_floats: bool, names: Sequence[str] | None = None) -> list[int]:
    """Tokens of an expression, without BEGIN and END.

    >>> from sobolev_novelty.language.parsing import parse
    >>> encode(parse("1.5*sin(x0)"), with_floats=False)
    [16, 3, 21, 4]
    """
    tokens, constants = to_prefix(expression, names)
    out: list[int] = []
    for token, constant in zip(tokens.tolist(), constants.tolist(), strict=True):
        out.extend(float_tokens(constant) if with_floats and token == CONSTANT else (token,))
    return out


def decode(tokens: Sequence[int], *, names: Sequence[str] | None = None) -> Expression:
    """The expression of tokens of either kind, up to END; a placeholder becomes 1.

    >>> str(decode([16, 3, 21, 4]))
    '1*sin(x0)'
    """
    out: list[Token] = []
    queue = iter(int(token) for token in tokens)
    for token in queue:
        if token == END:
            break
        if token == CONSTANT:
            out.append(1.0)
        elif token in (PLUS, MINUS):
            out.append(_float_of(token, next(queue, -1), next(queue, -1)))
        elif token != BEGIN:
            out.append(_named(token, names))
    return Expression(out)


def float_tokens(value: float) -> tuple[int, int, int]:
    """Sign, digits and exponent of a constant, rounded to three digits.

    >>> [FLOAT_NAMES[token] for token in float_tokens(-0.25)]
    ['-', 'N250', 'E-3']
    """
    digits, _, exponent = f"{abs(value):.2e}".partition("e")
    mantissa, power = int(digits.replace(".", "")), int(exponent) - 2
    if mantissa not in MANTISSAS or power not in EXPONENTS:
        raise ExpressionError(f"The constant {value!r} has no tokens: magnitudes from 1e-8 to 9.99e10 have.")
    sign = MINUS if value < 0 else PLUS
    return sign, FIRST_MANTISSA + mantissa - MANTISSAS.start, FIRST_EXPONENT + power - EXPONENTS.start


def _float_of(sign: int, mantissa: int, exponent: int) -> float:
    if not (FIRST_MANTISSA <= mantissa < FIRST_EXPONENT <= exponent < N_FLOAT):
        raise ExpressionError("A sign must be followed by digits and an exponent.")
    digits, power = MANTISSAS[mantissa - FIRST_MANTISSA], EXPONENTS[exponent - FIRST_EXPONENT]
    return float(f"{'-' if sign == MINUS else ''}{digits}e{power}")


def rewritten(expression: Expression) -> Expression:
    """The expression in operators that have tokens: quotients as inverses, powers as squares, cubes and roots.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(rewritten(parse("x0/x1**2")))
    'x0*inv(square(x1))'
    """
    return Expression.from_nested(expression.fold(lambda leaf: leaf, _rewrite))


def _rewrite(operator: Operator, operands: tuple[Nested, ...]) -> Nested:
    first = operands[0]
    if operator.name in _NUMBER:
        return (operator, *operands)
    if operator.name == "div":
        inverse = _of("inv", operands[1])
        return inverse if first == 1.0 else _of("mul", first, inverse)
    if operator.name == "pow":
        return _power(first, operands[1])
    if operator.name in _REWRITTEN:
        return _REWRITTEN[operator.name](first)
    raise ExpressionError(f"'{operator.name}' cannot be written with the tokens: {', '.join(_NUMBER)}.")


def _of(name: str, *operands: Nested) -> Nested:
    return (OPERATORS[name], *operands)


_REWRITTEN: dict[str, Callable[[Nested], Nested]] = {
    "neg": lambda a: -a if isinstance(a, float) else _of("mul", -1.0, a),
    "log2": lambda a: _of("mul", 1.0 / math.log(2.0), _of("log", a)),
    "log10": lambda a: _of("mul", 1.0 / math.log(10.0), _of("log", a)),
    "log1p": lambda a: _of("log", _of("add", 1.0, a)),
    "cot": lambda a: _of("inv", _of("tan", a)),
    "sigmoid": lambda a: _of("inv", _of("add", 1.0, _of("exp", _of("mul", -1.0, a)))),
    "tanh": lambda a: _of("sub", 1.0, _of("mul", 2.0, _of("inv", _of("add", 1.0, _of("exp", _of("mul", 2.0, a)))))),
}


def _power(base: Nested, exponent: Nested) -> Nested:
    if not isinstance(exponent, float) or not (2.0 * exponent).is_integer() or abs(exponent) > 9:
        return _of("exp", _of("mul", exponent, _of("log", base)))
    if exponent < 0:
        return _of("inv", _power(base, -exponent))
    whole, half = divmod(exponent, 1.0)
    factors: list[Nested] = [_of("sqrt", base)] if half else []
    count = int(whole)
    while count:
        step = 3 if count >= 3 and count != 4 else min(count, 2)
        factors.append(base if step == 1 else _of("square" if step == 2 else "cube", base))
        count -= step
    product: Nested = factors.pop() if factors else 1.0
    while factors:
        product = _of("mul", factors.pop(), product)
    return product
