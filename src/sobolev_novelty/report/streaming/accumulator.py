"""NoveltyAccumulator: novelty of rows that arrive in blocks, with the memory of one block."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Geometry, Status, status_of, without_intercept
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.parameters import Kind, checked
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.errors import DataError, ParameterError, SobolevError
from sobolev_novelty.kernels.evaluate import as_expression
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.batch import terms_of, three_weights
from sobolev_novelty.report.reporting import NoveltyReport
from sobolev_novelty.report.source import DROP_REASONS, WorkedOut, data_notes
from sobolev_novelty.report.streaming.row_summary import (
    Recipe,
    RowSummary,
    merge_summaries,
    no_rows,
    residuals_of_summary,
    summarise,
    verdicts_of_summary,
)
from sobolev_novelty.report.streaming.serialisation import (
    Part,
    part_from_json,
    part_to_json,
    summary_from_json,
    summary_to_json,
)

#: Rows of a block that are converted to the kernels' layout at once.
CONVERTED_ROWS = 65_536
#: The format that is written, and those that are read.
_FORMAT, _READ = 3, (2, 3)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The equation in the columns of the data."""

    names: tuple[str, ...]
    expression: Expression | None
    terms: tuple[Term, ...]
    notes: tuple[str, ...]
    recipe: Recipe


class NoveltyAccumulator:
    """Novelty of every term of an equation on rows that arrive in blocks.

    One pass, constant memory: what is kept does not grow with the rows. Any division of the rows into blocks and any
    order of merging gives the report of :func:`sobolev_novelty.novelty` on all of them, up to rounding.

    Parameters
    ----------
    equation : str, Expression, SymPy expression, or a list of them
        See :func:`sobolev_novelty.novelty`.
    names : sequence of str, optional
        Feature names; by default the columns of the first block, or ``x0, x1, …``.
    order, weights, coordinates, intercept, tau
        See :func:`sobolev_novelty.novelty`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 300)[:, None]
    >>> left, right = NoveltyAccumulator("x0 + sin(x0)"), NoveltyAccumulator("x0 + sin(x0)")
    >>> left.update(X[:100]).merge(right.update(X[100:])).report().nu.round(3).tolist()
    [0.123, 0.123]
    """

    @checked()
    def __init__(
        self,
        equation: Any,
        names: Sequence[str] | None = None,
        *,
        order: int = 1,
        weights: tuple[float, ...] = (1.0, 1.0, 1.0),
        coordinates: str = "standardized",
        intercept: str = "term",
        tau: float = TAU_ID,
    ) -> None:
        self._geometry = Geometry(order, three_weights(weights), coordinates, intercept)
        if self._geometry.is_along_data:
            raise ParameterError(
                "'coordinates' must be 'standardized' or 'raw' for rows in blocks: directions of the data need all of "
                f"them. Got '{coordinates}'."
            )
        self._tau = float(tau)
        self._is_list = isinstance(equation, list | tuple)
        self._equation = tuple(_part(p) for p in equation) if self._is_list else (_part(equation),)
        self._given = None if names is None else tuple(str(name) for name in names)
        self._plan = None if self._given is None else self._planned(self._given)
        self._summary: RowSummary | None = None

    @property
    def n_samples(self) -> int:
        """Rows seen so far."""
        return 0 if self._summary is None else self._summary.n_samples

    def update(self, X: Any) -> NoveltyAccumulator:
        """Add a block of rows: an array of shape (n_rows, n_features) or a DataFrame; it may have no rows.

        A block that is refused leaves everything as it was.
        """
        plan, found = self._plan, self._summary
        for rows in _slices(X):
            sample = self._as_sample(rows, plan)
            plan = self._planned(sample.names) if plan is None else plan
            part = summarise(plan.recipe, _columns_in_order(sample, plan.names))
            found = part if found is None else merge_summaries(found, part)
        self._plan, self._summary = plan, found
        return self

    @checked(other=Kind("a NoveltyAccumulator", lambda v: isinstance(v, NoveltyAccumulator)))
    def merge(self, other: NoveltyAccumulator) -> NoveltyAccumulator:
        """A new accumulator of the rows of both; it must be of the same equation and options."""
        if self._settings() != other._settings():
            raise ParameterError("Only accumulators of the same equation, names and options can be merged.")
        if self._plan is not None and other._plan is not None and self._plan.names != other._plan.names:
            raise DataError(
                f"The accumulators have seen different columns: {', '.join(self._plan.names)} and "
                f"{', '.join(other._plan.names)}."
            )
        merged = object.__new__(NoveltyAccumulator)
        merged.__dict__.update(self.__dict__)
        merged._plan = other._plan if self._plan is None else self._plan
        if other._summary is not None:
            merged._summary = (
                other._summary if self._summary is None else merge_summaries(self._summary, other._summary)
            )
        return merged

    def report(self) -> NoveltyReport:
        """The report on all rows seen so far; more may follow."""
        if self._plan is None or self._summary is None:
            raise DataError("There are no rows yet. Give at least 32 samples with 'update'.")
        plan, found, m = self._plan, self._summary, len(self._plan.terms)
        status = status_of(m, found.n_used)
        notes = plan.notes + data_notes(
            plan.names, found.moments.scales(), self._geometry, status=status, n_finite=found.n_finite,
            n_samples=found.n_samples,
            empty={name for name, count in zip(plan.names, found.moments.count, strict=True) if not count},
        )  # fmt: skip
        result = residuals_of_summary(found, self._geometry) if status is Status.OK else None
        dropped = {why: int(n) for why, n in zip(DROP_REASONS, found.dropped, strict=True)}
        return NoveltyReport(
            terms=plan.terms, coefficients=plan.recipe.coefficients,
            nu=np.full(m, np.nan) if result is None else without_intercept(result.nu, result.lengths, self._geometry),
            norms=np.full(m, np.nan) if result is None else result.lengths,
            status=status, n_samples=found.n_samples, n_used=found.n_used, geometry=self._geometry, names=plan.names,
            tau=self._tau, expression=plan.expression,
            source=WorkedOut(
                result, found.size.root_mean_square(found.n_used), dropped, notes,
                verdicts_of_summary(found, plan.recipe.coefficients, self._geometry, self._tau) if result else (),
            ),
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Everything as JSON text: to store, or to send to another machine."""
        return json.dumps(
            {
                "format": _FORMAT,
                "equation": [part_to_json(part) for part in self._equation],
                "is_list": self._is_list,
                "given_names": self._given,
                "names": None if self._plan is None else self._plan.names,
                "order": self._geometry.order,
                "weights": self._geometry.weights,
                "coordinates": self._geometry.coordinates,
                "intercept": self._geometry.intercept,
                "tau": self._tau,
                "tally": None if self._summary is None else summary_to_json(self._summary),
            }
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> NoveltyAccumulator:
        """The accumulator that :meth:`to_bytes` wrote; nothing in the bytes is executed."""
        try:
            state = json.loads(data)
            if state["format"] not in _READ:
                raise DataError(f"The accumulator has format {state['format']!r}; this version reads 2 and 3.")
            parts = [part_from_json(part) for part in state["equation"]]
            options = {name: state[name] for name in ("order", "coordinates", "intercept", "tau")}
            found = cls(
                parts if state["is_list"] else parts[0],
                state["given_names"],
                weights=tuple(state["weights"]),
                **options,
            )
            if state["names"] is not None:
                found._plan = found._planned(tuple(str(name) for name in state["names"]))
                if state["tally"] is not None:
                    found._summary = summary_from_json(state["tally"], no_rows(found._plan.recipe))
        except SobolevError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise DataError(f"The bytes are not an accumulator: {error}. Write them with 'to_bytes'.") from error
        return found

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return NoveltyAccumulator.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        shown = ", ".join(str(part) for part in self._equation)
        return f"NoveltyAccumulator({shown!r}, n_samples={self.n_samples})"

    def _settings(self) -> tuple[Any, ...]:
        return self._equation, self._is_list, self._given, self._geometry, self._tau

    def _as_sample(self, rows: Any, plan: _Plan | None) -> Sample:
        """Rows as the kernels read them; an array without names has the columns of the blocks before it."""
        names = self._given
        if names is None and plan is not None and not _is_frame(rows):
            names = plan.names
        return as_sample(rows, names)

    def _planned(self, names: tuple[str, ...]) -> _Plan:
        expression, terms, notes = terms_of(list(self._equation) if self._is_list else self._equation[0], names)
        expressions = [term.expression for term in terms]
        variables = {name for e in expressions for name in e.variables}
        columns = np.array([k for k, name in enumerate(names) if name in variables], dtype=np.int64)
        coefficients = np.array([term.coefficient for term in terms], dtype=np.float64)
        recipe = Recipe(kernels.compile_programs(expressions, names), coefficients, columns, self._geometry)
        return _Plan(names, expression, terms, notes, recipe)


def _part(equation: Any) -> Part:
    """Text stays text until the columns are known."""
    if isinstance(equation, str):
        parse(equation)  # what is no formula is refused now
        return equation
    return equation if isinstance(equation, Term) else as_expression(equation)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def _slices(X: Any) -> Iterator[Any]:
    """The rows of a block, some at a time: a block may be a memory-mapped array larger than memory."""
    if isinstance(X, Sample):
        for i in range(0, X.n_samples, CONVERTED_ROWS):
            yield Sample(X.X[:, i : i + CONVERTED_ROWS], X.names)
        return
    rows = (X.iloc if hasattr(X, "iloc") else X) if _is_frame(X) else np.atleast_1d(np.asanyarray(X))
    for i in range(0, len(X) if _is_frame(X) else len(rows), CONVERTED_ROWS):
        yield rows[i : i + CONVERTED_ROWS]


def _columns_in_order(sample: Sample, names: tuple[str, ...]) -> FloatArray:
    if sample.names == names:
        return sample.X
    if set(sample.names) != set(names):
        raise DataError(
            f"A block has the columns {', '.join(sample.names)}; earlier blocks had {', '.join(names)}. "
            "Give the same columns in every block."
        )
    return sample.X[[sample.names.index(name) for name in names]]
