"""The tokenizer and the operator-precedence machine. One pass, two stacks, no recursion."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from sobolev_novelty.core.expression import Nested, is_reserved, numbered_index
from sobolev_novelty.core.operators import OPERATORS, Operator, own_operators
from sobolev_novelty.errors import ParseError
from sobolev_novelty.language.parsing.functions import FUNCTIONS, Function, find_function
from sobolev_novelty.language.parsing.variables import Mention


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """What is refused as too large."""

    max_length: int = 1_000_000  # characters of the text
    #: Operators that wait for their operands at once, and brackets that are open; chains such as ``a + b + c`` wait for
    #: nothing. Each has its own count: printing puts a bracket around what an operator waits for.
    max_depth: int = 1_000
    max_nodes: int = 100_000  # nodes of the expression
    max_digits: int = 400  # characters of one number
    max_exponent: float = 10_000.0  # magnitude of a constant exponent


DEFAULT_LIMITS = ParseLimits()

# Every alternative is possessive or fixed, so that no text makes the tokenizer go back.
_NAME = r"(?:(?:np|numpy|math|sp|sympy)\.)?[^\W\d]\w*+"
_TOKEN = re.compile(
    rf"""\s*+(?:
      ((?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)                      # 1 number
    | ([xX](?:\s*+\[\s*+(?::\s*+,\s*+)?+[0-9]++\s*+\]|_\{{[0-9]++\}}))             # 2 subscript
    | ({_NAME}\s*+\()                                                              # 3 call
    | ({_NAME})                                                                    # 4 name
    | (`(?:[^`]++|``)*+`)                                                          # 5 quoted name
    | (\*\*|[-+*/^(),−·×⋅])                                                        # 6 symbol
    | (.)                                                                          # 7 anything else
    )""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER, _SUBSCRIPT, _CALL, _PLAIN, _QUOTED, _SYMBOL = range(1, 7)

_ADD, _SUB, _MUL, _DIV, _POW, _NEG = (OPERATORS[name] for name in ("add", "sub", "mul", "div", "pow", "neg"))
_INFIX = {
    "+": _ADD, "-": _SUB, "−": _SUB, "*": _MUL, "·": _MUL, "×": _MUL, "⋅": _MUL, "/": _DIV, "**": _POW, "^": _POW,
}  # fmt: skip
CONSTANTS = {"pi": math.pi, "e": math.e, "E": math.e}
_FOREIGN = {
    "=": "an equals sign: give the right-hand side only",
    "<": "a comparison", ">": "a comparison", "!": "not an operator here",
    "%": "not an operator here", "&": "not an operator here", "~": "not an operator here",
    "|": "not an operator here: write abs(...)",
    "'": "a quotation mark: names with spaces go between backticks",
    '"': "a quotation mark: names with spaces go between backticks",
    "[": "not a bracket of a formula: use ( ), or x[:,0] for a variable", "]": "not a bracket of a formula: use ( )",
    "{": "not a bracket of a formula: use ( ), or x_{0} for a variable", "}": "not a bracket of a formula: use ( )",
    ".": "attribute access, which is not part of a formula", ":": "not part of a formula", ";": "not part of a formula",
    "@": "not an operator here", "\\": "LaTeX, which is not read: write infix", "√": "not read: write sqrt(...)",
    "`": "a backtick that is never closed",
}  # fmt: skip

#: What waits on the stack: precedence (0 for an opening bracket), what to apply, position, operands below it.
_Waiting = tuple[int, Operator | Function | None, int, int]


class Machine:
    """Reads one text. ``run`` returns the tree in nested form; ``mentions`` then holds its variables."""

    __slots__ = (
        "_dialect", "_limits", "_literal_at", "_n_nodes", "_n_open", "_names", "_operands", "_text", "_waiting",
        "_wants_operand", "mentions",
    )  # fmt: skip

    def __init__(self, text: str, names: frozenset[str], dialect: Mapping[str, Function], limits: ParseLimits) -> None:
        self.mentions: dict[str, Mention] = {}
        self._text = text
        self._names = names
        self._dialect = dialect
        self._limits = limits
        self._operands: list[Nested] = []
        self._waiting: list[_Waiting] = [(0, None, -1, 0)]
        self._wants_operand = True
        self._literal_at = -1  # height of the operand stack at which a bare number literal lies
        self._n_nodes = 0
        self._n_open = 0  # brackets, those of functions too

    def run(self) -> Nested:
        """Read the whole text."""
        text = self._text
        if len(text) > self._limits.max_length:
            self._fail(f"The text has {len(text)} characters; more than {self._limits.max_length} are refused.", 0)
        end = len(text.rstrip())
        if not end:
            raise ParseError("The expression is empty.", text, 0)
        readers = {
            _NUMBER: self._number, _SUBSCRIPT: self._subscript, _CALL: self._call, _PLAIN: self._name,
            _QUOTED: self._quoted,
        }  # fmt: skip
        for match in _TOKEN.finditer(text, 0, end):
            kind = match.lastindex or 0
            start = match.start(kind)
            if kind == _SYMBOL:
                self._symbol(match[kind], start, start > match.start())
                continue
            reader = readers.get(kind)
            if reader is None:
                self._foreign(match[kind], start)
            if not self._wants_operand:
                self._juxtapose(start > match.start(), start)
            reader(match[kind], start)
        return self._finish(end)

    def _finish(self, end: int) -> Nested:
        if self._wants_operand:
            self._fail("The expression ends where an operand is expected.", end)
        self._reduce(1)
        if len(self._waiting) > 1:
            self._fail("This '(' is never closed.", self._waiting[-1][2])
        return self._operands[0]

    # -- operands ----------------------------------------------------------------------------------------------------

    def _number(self, token: str, start: int) -> None:
        if len(token) > self._limits.max_digits:
            self._fail(
                f"The number has {len(token)} characters; more than {self._limits.max_digits} are refused.", start
            )
        value = float(token)
        if not math.isfinite(value):
            self._fail("The number is too large for a float.", start)
        if value == 0.0 and token.lower().partition("e")[0].strip("0."):
            self._fail("The number is too small for a float; write 0 if that is meant.", start)
        self._push(value, start)
        self._literal_at = len(self._operands)

    def _subscript(self, token: str, start: int) -> None:
        digits = re.sub(r"\D", "", token)
        if len(digits) > 6:
            self._fail("The index of this variable is too large.", start)
        name = re.sub(r"\s", "", token)
        if name in self._names:
            self._mention(name, Mention(name, start), start)
        else:
            is_column = ":" in name
            self._mention(name, Mention(name, start, int(digits), is_subscript=True, is_column=is_column), start)

    def _quoted(self, token: str, start: int) -> None:
        name = token[1:-1].replace("``", "`")
        if not name:
            self._fail("A name between backticks needs at least one character.", start)
        self._mention("`" + name, Mention(name, start), start)

    def _name(self, token: str, start: int) -> None:
        if token in self._names or not is_reserved(token):
            bare = token.rpartition(".")[2]
            if bare != token:
                self._prefixed(token, bare, start)
            elif token in self.mentions:
                self._push(token, start)
            else:
                if not token.isascii() and not token.isidentifier():
                    self._fail("Raised and lowered digits are not read: write x**2 or x_1.", start)
                self._mention(token, Mention(token, start, numbered_index(token)), start)
        elif token in CONSTANTS:
            self._push(CONSTANTS[token], start)
        else:
            self._fail(_why_reserved(token), start)

    def _prefixed(self, token: str, bare: str, start: int) -> None:
        """``np.pi`` and the like."""
        if bare in ("pi", "e", "E"):
            self._push(CONSTANTS[bare], start)
        else:
            self._fail(
                f"'{token}' is neither a constant nor a function call: attribute access is not part of a formula.",
                start,
            )

    def _mention(self, key: str, mention: Mention, start: int) -> None:
        self.mentions.setdefault(key, mention)
        self._push(key, start)

    def _call(self, token: str, start: int) -> None:
        name = token[:-1].rstrip()
        bare = name.rpartition(".")[2]
        function = find_function(bare, self._dialect)
        is_spaced = len(name) + 1 < len(token)
        if is_spaced and (
            name in self._names or (function is None and (bare in CONSTANTS or numbered_index(name) is not None))
        ):
            # A variable, a space and a bracket: a product.
            self._name(name, start)
            self._juxtapose(True, start)
            self._open(None, start + len(token) - 1)
        elif function is None:
            self._fail(self._why_uncallable(name, bare), start)
        else:
            self._open(function, start)

    def _why_uncallable(self, name: str, bare: str) -> str:
        if name in self._names or bare in CONSTANTS or numbered_index(name) is not None:
            return f"'{name}' is not a function; for a product write {name}*(...)."
        close = difflib.get_close_matches(bare[:40], (*FUNCTIONS, *map(str, own_operators())), n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        if not hint and not bare.startswith("_"):
            hint = " One of your own has to be registered first: sobolev_novelty.register_operator."
        return f"'{name[:60]}' is not a known function.{hint}"

    def _push(self, node: float | str, start: int) -> None:
        self._operands.append(node)
        self._literal_at = -1
        self._wants_operand = False
        self._count(start)

    def _count(self, start: int) -> None:
        self._n_nodes += 1
        if self._n_nodes > self._limits.max_nodes:
            self._fail(f"The expression has more than {self._limits.max_nodes} nodes.", start)

    # -- operators ---------------------------------------------------------------------------------------------------

    def _symbol(self, token: str, start: int, is_spaced: bool) -> None:
        if token == "(":
            if not self._wants_operand:
                self._juxtapose(is_spaced, start)
            self._open(None, start)
        elif self._wants_operand:
            self._prefix(token, start)
        elif token == ")":
            self._close(start)
        elif token == ",":
            self._comma(start)
        else:
            self._infix(_INFIX[token], start)

    def _prefix(self, token: str, start: int) -> None:
        if token in "-−":
            self._wait((_NEG.precedence, _NEG, start, 0))
            self._count(start)
        elif token == ")" and isinstance(self._waiting[-1][1], Function):
            function = self._waiting[-1][1]
            self._fail(f"'{function.name}' lacks an argument: it takes {function.arity}.", start)
        elif token == "+":
            self._count(start)  # not a node, but work
        else:
            floor = token == "/" and self._text[start - 1 : start] == "/"
            reason = (
                "Floor division '//' is not part of a formula."
                if floor
                else f"Expected a number, a variable or '(' before '{token}'."
            )
            self._fail(reason, start)

    def _infix(self, op: Operator, start: int) -> None:
        # Powers associate to the right: x**y**z is x**(y**z).
        self._reduce(op.precedence + 1 if op is _POW else op.precedence)
        self._wait((op.precedence, op, start, 0))
        self._count(start)
        self._wants_operand = True

    def _juxtapose(self, is_spaced: bool, start: int) -> None:
        if not is_spaced:
            self._fail("An operator is missing here; for a product write '*'.", start)
        self._infix(_MUL, start)

    def _open(self, function: Function | None, start: int) -> None:
        self._wait((0, function, start, len(self._operands)))
        self._wants_operand = True

    def _wait(self, entry: _Waiting) -> None:
        is_bracket = entry[0] == 0
        self._n_open += is_bracket
        if max(self._n_open, len(self._waiting) - self._n_open) > self._limits.max_depth:
            self._fail(f"The expression is nested more than {self._limits.max_depth} deep.", entry[2])
        self._waiting.append(entry)

    def _comma(self, start: int) -> None:
        self._reduce(1)
        if not isinstance(self._waiting[-1][1], Function):
            self._fail(
                "A comma may only separate the arguments of a function; decimals are written with a point.", start
            )
        self._wants_operand = True

    def _close(self, start: int) -> None:
        self._reduce(1)
        _, function, opened, below = self._waiting[-1]
        if opened < 0:
            self._fail("This ')' has no matching '('.", start)
        self._waiting.pop()
        self._n_open -= 1
        self._literal_at = -1
        if not isinstance(function, Function):
            return
        arguments = self._operands[below:]
        if not function.n_min <= len(arguments) <= function.n_max:
            self._fail(f"'{function.name}' takes {function.arity} argument(s). Got {len(arguments)}.", opened)
        node = function.build(*arguments)
        if isinstance(node, tuple) and node[0] is _POW:
            self._check_exponent(node[2], opened)
        del self._operands[below:]
        self._operands.append(node)
        self._count(start)

    def _reduce(self, precedence: int) -> None:
        """Apply what waits with at least this precedence."""
        waiting, operands = self._waiting, self._operands
        while waiting[-1][0] >= precedence:
            _, op, start, _ = waiting.pop()
            assert isinstance(op, Operator)
            last = operands.pop()
            if op is not _NEG:
                if op is _POW:
                    self._check_exponent(last, start)
                operands[-1] = (op, operands[-1], last)
            elif self._literal_at == len(operands) + 1 and isinstance(last, float):
                operands.append(-last)  # -2 is one constant; -(2) and -2**x are negations
                self._n_nodes -= 1
            else:
                operands.append((op, last))
            self._literal_at = -1

    def _check_exponent(self, exponent: Nested, start: int) -> None:
        if isinstance(exponent, float) and abs(exponent) > self._limits.max_exponent:
            self._fail(f"The exponent is larger than {self._limits.max_exponent:g}.", start)

    # -- errors ------------------------------------------------------------------------------------------------------

    def _foreign(self, character: str, start: int) -> NoReturn:
        meaning = _FOREIGN.get(character, "not part of a formula")
        self._fail(f"{character!r} is {meaning}.", start)

    def _fail(self, reason: str, position: int) -> NoReturn:
        raise ParseError(reason, self._text, position)


def _why_reserved(token: str) -> str:
    if find_function(token, {}) is not None:
        return f"'{token}' is a function: write {token}(...). For a variable of that name write `{token}`."
    if token.lower() in ("nan", "inf", "infinity", "oo", "zoo"):
        return f"'{token}' is not a finite number."
    return f"'{token}' is a word of Python, not of formulas. For a variable of that name write `{token}`."
