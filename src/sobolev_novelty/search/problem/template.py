"""Templates: an equation whose shape is known but for some functions, ``"a*f(x) + g(y)"``.

Names that are called and are not operators are unknown functions of the arguments written behind them; names that are
not columns are constants. Every form is the template with an expression in the place of each function, so nothing else
can come back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import SPELLINGS, Operator
from sobolev_novelty.errors import ParameterError, SobolevError, shortened
from sobolev_novelty.language.parsing import parse

# Possessive, and only where a word begins: the time does not grow with the square of a long name.
_CALL = re.compile(r"(?<!\w)([A-Za-z_]\w*+)\s*+\(")
_HELP = "Write it as in 'a*f(x) + g(y)'."


@dataclass(frozen=True, slots=True)
class Call:
    """An unknown function and what it is a function of."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A template, read.

    >>> template = Template.of("a*f(x) + sin(g(x - y))", ("x", "y"))
    >>> [(call.function, *map(str, call.arguments)) for call in template.calls.values()], template.constants
    ([('f', 'x'), ('g', 'x - y')], ('a',))
    """

    body: Expression  # a variable stands for each call and for each constant
    calls: Mapping[str, Call]  # by the variable that stands for it
    constants: tuple[str, ...]

    @classmethod
    def of(cls, text: object, names: Sequence[str]) -> Template:
        """Read a template for a table with these columns."""
        if not isinstance(text, str):
            raise ParameterError(f"'template' must be text. Got {type(text).__name__}. {_HELP}")
        calls: dict[str, Call] = {}
        rest, start = text, 0
        while match := _CALL.search(rest, start):
            start = match.end()
            if match[1] not in SPELLINGS:
                end, parts = _inside(rest, start)
                place = f"_call{len(calls)}_"
                calls[place] = Call(match[1], tuple(_argument(part, match[1], names) for part in parts))
                rest, start = rest[: match.start()] + place + rest[end:], match.start() + len(place)
        try:
            body = parse(rest)
        except SobolevError as error:
            raise ParameterError(f"'template' cannot be read: {error} {_HELP}") from error
        if not calls:
            raise ParameterError(f"'template' has no unknown function. Got {shortened(text)}. {_HELP}")
        known = set(names)
        constants = tuple(name for name in body.variables if name not in known and name not in calls)
        free = set(constants)
        places = Counter([*(call.function for call in calls.values()), *(t for t in body.tokens if t in free)])
        twice = next((name for name, n in places.items() if n > 1), None)
        if twice is not None:
            raise ParameterError(
                f"'template' uses {shortened(twice)} twice, and the fit could not keep the two equal. Got "
                f"{shortened(text)}. Give each a name of its own."
            )
        return cls(body, calls, constants)

    def read(self, in_search: Callable[[Expression], Expression], names: Mapping[str, str]) -> Template:
        """The template in the variables of a search; a function takes a bare input in the units of the search."""

        def argument(e: Expression) -> Expression:
            return e.rename(names) if len(e) == 1 else in_search(e)

        calls = {place: Call(c.function, tuple(map(argument, c.arguments))) for place, c in self.calls.items()}
        return Template(in_search(self.body), calls, self.constants)

    @property
    def operators(self) -> tuple[str, ...]:
        """Those that the template itself is written in."""
        trees = [self.body, *(argument for call in self.calls.values() for argument in call.arguments)]
        return tuple({token.name for tree in trees for token in tree.tokens if isinstance(token, Operator)})

    def linear_calls(self) -> set[str]:
        """Calls that are summands of their own, up to constant factors: their terms' coefficients are linear."""
        return {found for term in _summands(self.body) for found in [self._linear(term)] if found is not None}

    @property
    def is_linear(self) -> bool:
        """Whether every summand is an unknown function, up to constant factors."""
        return all(self._linear(term) is not None for term in _summands(self.body))

    def _linear(self, term: Expression) -> str | None:
        heads = {token.name for token in term.tokens if isinstance(token, Operator)}
        places = [name for name in term.variables if name in self.calls]
        others = [name for name in term.variables if name not in self.calls and name not in self.constants]
        return places[0] if heads <= {"mul", "neg"} and len(places) == 1 and not others else None

    def form(self, functions: Mapping[str, Sequence[Expression]], start: Callable[[], float]) -> Expression:
        """The template with sums of these terms in the place of each function, constants at starting values.

        ``functions``: the terms of each call's function, of the variables ``arg0, arg1, …``.
        ``start``: draws a starting value.
        """
        linear = self.linear_calls()
        inner = {name: Expression.of(start()) for name in self.constants}
        outer: list[Expression] = []
        for place, terms in functions.items():
            arguments = {f"arg{k}": e for k, e in enumerate(self.calls[place].arguments)}
            written = [term.substituted(arguments) for term in terms]
            if place in linear:
                outer += written
            else:
                weighed = [Expression.of("mul", start(), e) if e.variables else Expression.of(start()) for e in written]
                inner[place] = _total(weighed)
        rest = [term for term in _summands(self.body) if self._linear(term) is None]
        return _total([*(term.substituted(inner) for term in rest), *outer])


def _summands(expression: Expression) -> list[Expression]:
    """The terms of the top-level sum; signs are left to the coefficients, except inside a term."""
    found, stack = [], [expression]
    while stack:
        e = stack.pop()
        head = e.head.name if isinstance(e.head, Operator) else ""
        if head in ("add", "sub", "neg"):
            stack += reversed(e.children)
        else:
            found.append(e)
    return found


def _total(terms: Sequence[Expression]) -> Expression:
    total = terms[0]
    for term in terms[1:]:
        total = Expression.of("add", total, term)
    return total


def _inside(text: str, start: int) -> tuple[int, list[str]]:
    """Where the bracket that was opened before ``start`` ends, and what stands between its commas."""
    depth, parts = 1, [""]
    for place in range(start, len(text)):
        letter = text[place]
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place + 1, parts
        if letter == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += letter
    raise ParameterError(f"'template' has a bracket that is not closed. Got {shortened(text)}. {_HELP}")


def _argument(text: str, function: str, names: Sequence[str]) -> Expression:
    try:
        found = parse(text)
    except SobolevError as error:
        raise ParameterError(f"'template' gives {function} an argument that cannot be read: {error} {_HELP}") from error
    unknown = [name for name in found.variables if name not in names]
    if unknown or not found.variables:
        raise ParameterError(
            f"'template' gives {function} the argument {shortened(text.strip())}, which is not made of columns. "
            f"Known: {', '.join(names)}."
        )
    return found
