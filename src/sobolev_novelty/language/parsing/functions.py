"""What may be called: every spelling of the operator table, and formulas for common functions that are not primitives.

No formula uses an operand twice: nested calls would otherwise grow without bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sobolev_novelty.core.expression import Nested
from sobolev_novelty.core.operators import OPERATORS, Operator


@dataclass(frozen=True, slots=True)
class Function:
    """A callable name: how many operands it takes and the tree it stands for."""

    name: str
    n_min: int
    n_max: int
    build: Callable[..., Nested]

    @property
    def arity(self) -> str:
        """The number of operands, in words."""
        if self.n_min == self.n_max:
            return str(self.n_min)
        return f"{self.n_min} or more" if self.n_max >= MANY else f"{self.n_min} to {self.n_max}"


MANY = 1_000_000
_FOLDED = ("add", "mul", "min", "max")


def _o(name: str, *operands: Nested) -> Nested:
    return (OPERATORS[name], *operands)


def _primitive(row: Operator) -> Function:
    if row.name not in _FOLDED:
        return Function(row.name, row.arity, row.arity, lambda *operands: (row, *operands))

    def fold_left(first: Nested, *others: Nested) -> Nested:
        for other in others:
            first = (row, first, other)
        return first

    return Function(row.name, 2, MANY, fold_left)


def _log(a: Nested, base: Nested | None = None) -> Nested:
    return _o("log", a) if base is None else _o("div", _o("log", a), _o("log", base))


def _positive(a: Nested) -> Nested:
    """1 where a > 0, else 0."""
    return _o("max", _o("sign", a), 0.0)


_COMPOSITES: tuple[Function, ...] = (
    Function("log", 1, 2, _log),
    Function("ln", 1, 1, _log),
    Function("sec", 1, 1, lambda a: _o("inv", _o("cos", a))),
    Function("csc", 1, 1, lambda a: _o("inv", _o("sin", a))),
    Function("sech", 1, 1, lambda a: _o("inv", _o("cosh", a))),
    Function("csch", 1, 1, lambda a: _o("inv", _o("sinh", a))),
    Function("coth", 1, 1, lambda a: _o("inv", _o("tanh", a))),
    Function("gauss", 1, 1, lambda a: _o("exp", _o("neg", _o("square", a)))),
    Function("relu", 1, 1, lambda a: _o("max", a, 0.0)),
    Function("softplus", 1, 1, lambda a: _o("log1p", _o("exp", a))),
    Function("expm1", 1, 1, lambda a: _o("sub", _o("exp", a), 1.0)),
    Function("exp2", 1, 1, lambda a: _o("pow", 2.0, a)),
    Function("hypot", 2, 2, lambda a, b: _o("sqrt", _o("add", _o("square", a), _o("square", b)))),
    Function("heaviside", 1, 1, _positive),
    # PySR: cond(a, b) is b where a > 0, else 0; greater(a, b) is 1 where a > b, else 0.
    Function("cond", 2, 2, lambda a, b: _o("mul", _positive(a), b)),
    Function("greater", 2, 2, lambda a, b: _positive(_o("sub", a, b))),
    Function("identity", 1, 1, lambda a: a),
)

#: Spellings that the operator table leaves to the parser -> canonical name.
_SYNONYMS = {
    "plus": "add", "sum": "add", "minus": "sub", "times": "mul", "prod": "mul", "true_divide": "div",
    "float_power": "pow", "sqr": "square", "absolute": "abs",
    "safe_log": "log", "safe_log2": "log2", "safe_log10": "log10", "safe_log1p": "log1p", "safe_sqrt": "sqrt",
    "safe_pow": "pow", "safe_acosh": "arccosh", "arsinh": "arcsinh", "arcosh": "arccosh",
    "artanh": "arctanh", "id": "identity", "step": "heaviside",
}  # fmt: skip


def _table() -> dict[str, Function]:
    table: dict[str, Function] = {}
    for row in OPERATORS.values():
        function = _primitive(row)
        for spelling in (row.name, *row.aliases):
            table[spelling] = table[spelling.lower()] = function
    table.update((function.name, function) for function in _COMPOSITES)
    table.update((spelling, table[name]) for spelling, name in _SYNONYMS.items())
    return table


FUNCTIONS: Mapping[str, Function] = _table()

#: Names that differ from ``FUNCTIONS`` in each dialect.
DIALECTS: Mapping[str, Mapping[str, Function]] = {
    "plain": {},
    "gplearn": {
        "div": FUNCTIONS["gpdiv"],
        "log": FUNCTIONS["gplog"],
        "sqrt": FUNCTIONS["sqrtabs"],
        "inv": FUNCTIONS["gpinv"],
    },
    # Bingo takes absolute values that its text does not show.
    "bingo": {"log": FUNCTIONS["logabs"], "sqrt": FUNCTIONS["sqrtabs"]},
    "pysr": {},
}


def find_function(name: str, dialect: Mapping[str, Function]) -> Function | None:
    """The function of this spelling, own operators first; capitals are tolerated (``Sin``, ``Recip``)."""
    own = OPERATORS.get(name)
    if own is not None and own.is_own:
        return _primitive(own)
    for spelling in (name, name.lower()):
        found = dialect.get(spelling) or FUNCTIONS.get(spelling)
        if found is not None:
            return found
    return None
