"""What a user says of equations beyond a small error, as values: which are allowed, and in which units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sobolev_novelty.core.operators import OPERATORS, SPELLINGS
from sobolev_novelty.core.parameters import COUNT, FLAG, NOTHING, TEXT, UNITS, WORD, Kind, check, checked_class, whole
from sobolev_novelty.errors import ParameterError, shortened


def _dictionary(example: str) -> Kind:
    """A dictionary; what is in it is looked at by its reader, which names the entry."""
    return Kind(f"a dictionary such as {example}", lambda v: isinstance(v, Mapping))


DIRECTIONS = {"increasing": 1.0, "decreasing": -1.0}
_NESTING = _dictionary("{'sin': {'cos': 0}}")


@checked_class(
    max_complexity=COUNT | NOTHING,
    operator_costs=_dictionary("{'sin': 3}") | NOTHING,
    nesting=_NESTING | NOTHING,
    max_depth=COUNT | NOTHING,
    monotone=_dictionary("{'x0': 'increasing'}") | NOTHING,
    template=Kind("text of at most 2,000 characters", lambda v: WORD.holds(v) and len(v) <= 2000) | NOTHING,
)
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Constraints:
    """Which equations are allowed and what their operators cost (docs/control.md).

    Parameters
    ----------
    max_complexity : int, optional
        Nodes of the largest equation kept, or what they cost; 60 by default.
    operator_costs : mapping of str to int, optional
        Complexity of an operator, ``{"sin": 3}``; 1 for the others, for variables and constants.
    nesting : mapping, optional
        ``{"sin": {"sin": 0, "cos": 0}}``: how many of the inner operators may lie on one path inside the outer one.
    max_depth : int, optional
        Nodes from the root of the largest equation to its deepest leaf.
    monotone : mapping of str to {"increasing", "decreasing"}, optional
        How equations must go with an input within the range of the data.
    template : str, optional
        ``"a*f(x) + g(y)"``: the shape of the equation, with unknown functions of the inputs named; other names are
        constants. The search is then one for these functions, whatever the engine.

    Examples
    --------
    >>> Constraints(max_complexity=20, nesting={"sin": {"sin": 0}})
    Constraints(max_complexity=20, nesting={'sin': {'sin': 0}})
    """

    max_complexity: int | None = None
    operator_costs: Mapping[str, int] | None = None
    nesting: Mapping[str, Mapping[str, int]] | None = None
    max_depth: int | None = None
    monotone: Mapping[str, str] | None = None
    template: str | None = None

    def __post_init__(self) -> None:
        _ = self.costs, self.limits
        for name, direction in (self.monotone or {}).items():
            if not isinstance(direction, str) or direction not in DIRECTIONS:
                raise ParameterError(
                    f"'monotone' must be 'increasing' or 'decreasing' for '{name}'. Got {shortened(direction)}."
                )

    @property
    def costs(self) -> dict[str, int]:
        """Operator -> its complexity."""
        return {
            _operator("operator_costs", name): _whole("operator_costs", cost, 1, f" for '{name}'")
            for name, cost in (self.operator_costs or {}).items()
        }

    @property
    def limits(self) -> dict[str, dict[str, int]]:
        """Operator -> operator -> how many of the latter may lie on one path inside the former."""
        for inner in (self.nesting or {}).values():
            check("nesting", inner, _NESTING)
        return {
            _operator("nesting", outer): {
                _operator("nesting", name): _whole("nesting", limit, 0, f" for '{name}' in '{outer}'")
                for name, limit in inner.items()
            }
            for outer, inner in (self.nesting or {}).items()
        }

    def __repr__(self) -> str:
        said = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"Constraints({', '.join(f'{name}={value!r}' for name, value in said if value is not None)})"


@checked_class(inputs=UNITS, target=TEXT | NOTHING, constants=FLAG)
@dataclass(frozen=True, slots=True)
class Units:
    """Physical units of the columns. Equations whose units make no sense, such as ``exp(m)``, are not tried.

    Parameters
    ----------
    inputs : mapping of str to str
        ``{"m": "kg", "v": "m/s"}``; a column that is missing is a pure number.
    target : str, optional
        Unit of the target.
    constants : bool
        Whether constants may carry units; otherwise every term must have the unit of the target by itself.

    Examples
    --------
    >>> Units({"m": "kg", "v": "m/s"}, target="J").constants
    True
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    constants: bool = True


def _operator(argument: str, name: Any) -> str:
    op = SPELLINGS.get(name) if isinstance(name, str) else None
    if op is None:
        raise ParameterError(f"'{argument}' names '{name}', which is not an operator. Known: {', '.join(OPERATORS)}.")
    return op.name


def _whole(argument: str, value: Any, least: int, where: str) -> int:
    if not whole(least).holds(value):
        raise ParameterError(f"'{argument}' must be a whole number of at least {least}{where}. Got {shortened(value)}.")
    return int(value)
