"""Expressions: immutable prefix sequences of tokens.

A token is an :class:`~sobolev_novelty.core.operators.Operator`, a ``float`` (a constant) or a ``str`` (a variable's
name). A subtree is a slice, equality and hashing are the tuple's. The same sequence is the genome of genetic
programming, the path of tree search and the target of the transformer.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from sobolev_novelty.core.digits import DEFAULT_DIGITS, number_text
from sobolev_novelty.core.operators import OPERATORS, SPELLINGS, Operator
from sobolev_novelty.core.parameters import DIGITS, checked
from sobolev_novelty.errors import ExpressionError, shortened

Token = Operator | float | str
T = TypeVar("T")

#: A tree as nested tuples ``(operator, operand[, operand])``: what builders make before it becomes a sequence.
Nested: TypeAlias = float | str | tuple[Any, ...]

#: Names that would be read as something else, beside those of own operators.
RESERVED = frozenset(SPELLINGS) | {"pi", "e", "E", "nan", "NaN", "inf", "Inf", "oo", "zoo"} | frozenset(keyword.kwlist)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
_NUMBERED_NAME = re.compile(r"[xX]_?(0|[1-9][0-9]{0,5})\Z")


class Expression:
    """One formula.

    Parameters
    ----------
    tokens : sequence of Operator, float or str
        The formula in prefix order.

    Examples
    --------
    >>> e = Expression.of("add", Expression.of("sin", "x0"), 2.0)
    >>> str(e), e.complexity, e.depth
    ('sin(x0) + 2', 4, 3)
    >>> e.children[0]
    Expression('sin(x0)')
    """

    __slots__ = ("_hash", "tokens")

    tokens: tuple[Token, ...]
    _hash: int

    def __init__(self, tokens: Sequence[Token]) -> None:
        if not isinstance(tokens, list | tuple):
            raise ExpressionError(f"'tokens' must be a list of tokens in prefix order. Got {shortened(tokens)}.")
        checked = tuple([_check_token(token) for token in tokens])
        open_operands = 1
        for position, token in enumerate(checked):
            if open_operands == 0:
                raise ExpressionError(f"The tokens hold more than one tree: token {position} follows a complete one.")
            open_operands += token.arity - 1 if isinstance(token, Operator) else -1
        if open_operands:
            raise ExpressionError(f"The tokens end early: {open_operands} operand(s) are missing.")
        _set_tokens(self, checked)

    @classmethod
    def _trusted(cls, tokens: tuple[Token, ...]) -> Expression:
        """Wrap tokens that are known to be one tree (slices and joins of checked ones)."""
        self = _new(cls)
        _set_tokens(self, tokens)
        return self

    @classmethod
    def from_nested(cls, root: Nested, names: Mapping[str, str] | None = None) -> Expression:
        """Flatten nested tuples, without recursion; ``names`` renames variables on the way."""
        renamed = names or {}
        tokens: list[Token] = []
        stack: list[Nested] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, tuple):
                tokens.append(node[0])
                stack.extend(node[:0:-1])
            else:
                tokens.append(renamed.get(node, node) if isinstance(node, str) else node)
        return cls._trusted(tuple(tokens))

    @classmethod
    def of(cls, head: str | float | Operator, *operands: Expression | str | float) -> Expression:
        """Build a tree: ``of("add", "x0", 2.0)``; without operands a leaf: ``of(2.0)``, ``of("x0")``."""
        if not operands:
            return cls._trusted((_check_token(head),)) if not isinstance(head, Operator) else cls((head,))
        op = head if isinstance(head, Operator) else SPELLINGS.get(str(head))
        if op is None:
            raise ExpressionError(f"'{head}' is not an operator. Known: {', '.join(OPERATORS)}.")
        if op.arity != len(operands):
            raise ExpressionError(f"'{op.name}' takes {op.arity} operand(s). Got {len(operands)}.")
        tokens: list[Token] = [op]
        for o in operands:
            if isinstance(o, Expression):
                tokens += o.tokens
            else:
                tokens.append(_check_token(o))
        return cls._trusted(tuple(tokens))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Expressions are immutable: build a new one.")

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.tokens == other.tokens

    def __hash__(self) -> int:
        # Expressions are dictionary keys in every search; the tuple's hash is not cached by Python.
        try:
            return self._hash
        except AttributeError:
            own = hash(self.tokens)
            _set_hash(self, own)
            return own

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"

    def __str__(self) -> str:
        return to_infix(self)

    def __reduce__(self) -> tuple[type[Expression], tuple[tuple[Token, ...]]]:
        return Expression, (self.tokens,)

    @property
    def head(self) -> Token:
        """The token at the root."""
        return self.tokens[0]

    @property
    def complexity(self) -> int:
        """Number of operator, variable and constant nodes (the paper's C)."""
        return len(self.tokens)

    @property
    def depth(self) -> int:
        """Nodes on the longest path from the root to a leaf."""
        return self.fold(lambda leaf: 1, lambda op, args: 1 + max(args))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in order of first appearance."""
        return tuple(dict.fromkeys([token for token in self.tokens if isinstance(token, str)]))

    @property
    def constants(self) -> tuple[float, ...]:
        """The constants, in prefix order."""
        return tuple([token for token in self.tokens if isinstance(token, float)])

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands of the root."""
        tokens = self.tokens
        head = tokens[0]
        if not isinstance(head, Operator):
            return ()
        if head.arity == 1:
            return (Expression._trusted(tokens[1:]),)
        first_end = self.end(1)
        return Expression._trusted(tokens[1:first_end]), Expression._trusted(tokens[first_end:])

    def end(self, start: int) -> int:
        """Index after the subtree that begins at ``start``."""
        return end_of_tree(self.tokens, start)

    def subtree(self, start: int) -> Expression:
        """The subtree that begins at token ``start``: a slice."""
        return Expression._trusted(self.tokens[start : self.end(start)])

    def replace(self, start: int, other: Expression) -> Expression:
        """A copy with the subtree at ``start`` replaced by ``other``."""
        return Expression._trusted(self.tokens[:start] + other.tokens + self.tokens[self.end(start) :])

    def fold(self, leaf: Callable[[float | str], T], node: Callable[[Operator, tuple[T, ...]], T]) -> T:
        """Reduce the tree bottom-up, without recursion.

        ``leaf`` maps a constant or a variable's name, ``node`` an operator and its operands' results.
        """
        stack: list[T] = []
        for token in reversed(self.tokens):
            if not isinstance(token, Operator):
                stack.append(leaf(token))
            elif token.arity == 1:
                stack.append(node(token, (stack.pop(),)))
            else:
                first = stack.pop()
                stack.append(node(token, (first, stack.pop())))
        return stack[0]

    def rename(self, names: Mapping[str, str]) -> Expression:
        """Variables renamed; those not in ``names`` stay."""
        if not isinstance(names, Mapping):
            raise ExpressionError(f"'names' must be a dictionary of old and new names. Got {shortened(names)}.")
        new = {old: names.get(old, old) for old in self.variables}
        if not all(isinstance(name, str) and name for name in new.values()):
            raise ExpressionError(f"'names' must hold texts that are not empty. Got {shortened(new)}.")
        return Expression._trusted(tuple([new[t] if isinstance(t, str) else t for t in self.tokens]))

    def substituted(self, parts: Mapping[str, Expression]) -> Expression:
        """The same tree with other expressions in the place of variables; those not mentioned stay.

        Examples
        --------
        >>> str(Expression.of("mul", "a", "b").substituted({"b": Expression.of("exp", "a")}))
        'a*exp(a)'
        """
        return self.fold(
            lambda token: parts.get(token, Expression.of(token)) if isinstance(token, str) else Expression.of(token),
            lambda op, operands: Expression.of(op, *operands),
        )

    def with_constants(self, values: Sequence[float]) -> Expression:
        """The same form with other constants, in prefix order."""
        tokens = list(self.tokens)
        n_known = 0
        for k, token in enumerate(tokens):
            if isinstance(token, float):
                if n_known < len(values):
                    number = float(values[n_known])
                    tokens[k] = number if math.isfinite(number) else _check_token(number)
                n_known += 1
        if len(values) != n_known:
            raise ExpressionError(f"The form has {n_known} constants. Got {len(values)} values.")
        return Expression._trusted(tuple(tokens)) if n_known else self

    @checked(digits=DIGITS)
    def rounded(self, digits: int) -> Expression:
        """The same form with its constants rounded to significant digits.

        Examples
        --------
        >>> Expression.of("mul", 2.3456789, "x0").rounded(3)
        Expression('2.35*x0')
        """
        return self.with_constants([float(f"{value:.{digits}g}") for value in self.constants])

    def __call__(self, table: Any = None, /, **columns: Any) -> Any:
        """The value: at numbers or arrays given by name, or at every row of a table.

        Parameters
        ----------
        table : DataFrame, dict, or array of shape (n_samples, n_features), optional
            The columns of an array are ``x0, x1, …``.
        **columns : float or array
            Variables by name.

        Examples
        --------
        >>> e = Expression.of("add", Expression.of("square", "x0"), "x1")
        >>> e(x0=3.0, x1=0.5), e([[1.0, 2.0], [2.0, 2.0]]).tolist()
        (9.5, [3.0, 6.0])
        """
        from sobolev_novelty.language.convert import values_of

        return values_of(self, table, columns)

    def to(
        self,
        language: str,
        *,
        names: Sequence[str] | None = None,
        function_name: str = "f",
        precision: int | None = None,
    ) -> Any:
        """The expression in another language: see :func:`sobolev_novelty.language.convert.export`.

        Examples
        --------
        >>> Expression.of("mul", 2.0, Expression.of("sin", "x0")).to("excel")
        '=(2.0*SIN(A2))'
        """
        from sobolev_novelty.language.convert import export

        return export(self, language, names=names, function_name=function_name, precision=precision)

    def _repr_latex_(self) -> str:
        from sobolev_novelty.language.convert import to_latex

        return f"${to_latex(self)}$"


# Expressions refuse to be changed, so their slots are filled past ``__setattr__``; searches build them by the million.
_new = object.__new__
_set_tokens = Expression.__dict__["tokens"].__set__
_set_hash = Expression.__dict__["_hash"].__set__


def end_of_tree(tokens: tuple[Token, ...], start: int) -> int:
    """Index after the tree that begins at ``start``."""
    open_operands = 1
    position = start
    while open_operands:
        token = tokens[position]
        if not isinstance(token, Operator):
            open_operands -= 1
        elif token.arity == 2:
            open_operands += 1
        position += 1
    return position


def _check_token(token: object) -> Token:
    if isinstance(token, Operator | str):
        if token == "":
            raise ExpressionError("A variable needs a name. Got an empty string.")
        return token
    if isinstance(token, int | float) and not isinstance(token, bool):
        try:
            value = float(token)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise ExpressionError(f"A constant must be finite. Got {shortened(token)}.")
        return value
    try:  # NumPy scalars
        value = float(token)  # type: ignore[arg-type]
    except Exception:  # somebody else's object may raise anything
        raise ExpressionError(f"A token is an operator, a number or a name. Got {shortened(token)}.") from None
    return _check_token(value)


def format_number(value: float) -> str:
    """Shortest text that reads back as the same float, without a trailing ``.0``."""
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text


def numbered_index(name: str) -> int | None:
    """The number in ``x3``, ``X3``, ``x_3`` or ``X_3``; None for any other name."""
    match = _NUMBERED_NAME.match(name)
    return int(match[1]) if match else None


def natural_order(name: str) -> tuple[bool, int, str]:
    """Key that sorts variables: numbered ones by their number, then the others by name.

    >>> sorted(["mass", "x10", "x9"], key=natural_order)
    ['x9', 'x10', 'mass']
    """
    number = numbered_index(name)
    return number is None, number or 0, name


def is_renumbered(name: str) -> bool:
    """Whether the parser may read this plain name as another spelling of a numbered one (x0, x1, …)."""
    return not name.startswith("x") or name.startswith("x_") if _NUMBERED_NAME.match(name) else False


def is_reserved(name: str) -> bool:
    """Whether this name would be read as something else; a variable called so is printed between backticks."""
    return name in RESERVED or name in SPELLINGS


def format_name(name: str) -> str:
    """The name as the parser reads it: between backticks where it is reserved or not a plain identifier.

    >>> format_name("mass"), format_name("body mass"), format_name("sin")
    ('mass', '`body mass`', '`sin`')
    """
    return name if _PLAIN_NAME.match(name) and not is_reserved(name) else _quoted(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _format_names(names: Sequence[str]) -> dict[str, str]:
    """All names of one expression. Where one is another spelling of ``x0``, the parser would renumber its kind."""
    renumbered = {name for name in names if is_renumbered(name)}
    if all(numbered_index(name) for name in renumbered):
        renumbered = set()
    return {name: _quoted(name) if name in renumbered else format_name(name) for name in names}


#: A piece of text in the making: its first character, its precedence, and strings in nested tuples. Joining at the end
#: keeps printing linear in the length of the expression.
_Piece = tuple[str, int, "_Rope"]
_Rope: TypeAlias = "str | tuple[_Rope, ...]"


def short_text(
    expression: Expression, half_widths: Sequence[float | None] | None = None, digits: int = DEFAULT_DIGITS
) -> str:
    """The expression for a person: constants to the digits their intervals allow, four where there is none.

    ``half_widths``: half the width of each constant's interval, in prefix order; see
    :func:`sobolev_novelty.core.digits.number_text`.

    >>> e = Expression.of("mul", 2.123456789, Expression.of("sin", Expression.of("mul", 0.7316812, "x0")))
    >>> short_text(e), short_text(e, [0.3, None])
    ('2.123*sin(0.7317*x0)', '2.12*sin(0.7317*x0)')
    """
    constants = expression.constants
    known = [None] * len(constants) if half_widths is None else half_widths
    return to_infix(expression, [number_text(c, half, digits) for c, half in zip(constants, known, strict=True)])


def to_infix(expression: Expression, constants: Sequence[str] | None = None) -> str:
    """Text that parses back to the same expression.

    ``constants``: what to write for the constants, in prefix order, instead of the numbers in full.

    >>> to_infix(Expression.of("mul", Expression.of("neg", "x0"), Expression.of("pow", "x1", -2.0)))
    '-x0*x1**(-2)'
    """
    names = _format_names(expression.variables)
    written = None if constants is None else list(constants)  # the fold comes from the end

    def leaf(token: float | str) -> _Piece:
        if isinstance(token, str):
            text = names[token]
        else:
            text = format_number(token) if written is None else written.pop()
        return text[0], 3 if text[0] == "-" else 9, text

    rope: list[_Rope] = [expression.fold(leaf, _join)[2]]
    parts: list[str] = []
    while rope:
        piece = rope.pop()
        if isinstance(piece, str):
            parts.append(piece)
        else:
            rope.extend(reversed(piece))
    return "".join(parts)


def _join(op: Operator, args: tuple[_Piece, ...]) -> _Piece:
    if not op.symbol:
        inner = tuple(part for _, _, text in args for part in (", ", text))[1:]
        return op.name[0], 9, (op.name, "(", *inner, ")")
    if op.arity == 1:
        first, precedence, text = args[0]
        # A bare number after the minus would be read as one negative constant.
        is_bare = precedence >= 4 and not first.isdigit() and first != "."
        return "-", op.precedence, ("-", text) if is_bare else ("-(", text, ")")
    (first, left_precedence, left), (right_first, right_precedence, right) = args
    is_power = op.name == "pow"
    if left_precedence < op.precedence or (is_power and left_precedence == op.precedence):
        first, left = "(", ("(", left, ")")
    if right_precedence < op.precedence or (not is_power and right_precedence == op.precedence) or right_first == "-":
        right = ("(", right, ")")
    symbol = f" {op.symbol} " if op.precedence == 1 else op.symbol
    return first, op.precedence, (left, symbol, right)
