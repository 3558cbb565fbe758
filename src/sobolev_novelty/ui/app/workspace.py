"""What one user is working on: a table, an equation, its report, what pruning made of it, a search.

It knows nothing of browsers: every method takes plain values and raises the package's errors, and ``state`` is what a
page shows. It lives in the server, so that a closed page loses nothing.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import check
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables.files import Table, TableFile, read_table
from sobolev_novelty.tables.format import TableFormat
from sobolev_novelty.ui.app.cancelling import Cancellable
from sobolev_novelty.ui.app.fit_process import Fit, FitRequest
from sobolev_novelty.ui.app.model_files import ModelFile, read_model
from sobolev_novelty.ui.match import MatchedEquation, match_equation

#: Rows and columns of a table that the page shows.
PREVIEW_ROWS, PREVIEW_COLUMNS = 4, 12
#: Names under which people keep what is to be predicted.
_TARGET_NAMES = ("y", "target")


@dataclass(frozen=True, slots=True)
class Question:
    """An equation, and how it is to be read on the table."""

    equation: str = ""
    target: str | None = None
    features: tuple[str, ...] | None = None
    dialect: str = "plain"
    variables: str = "auto"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Question:
        """From what a page sent; anything that is not text is refused."""
        features = given.get("features")
        if features is not None and not (isinstance(features, list) and all(isinstance(f, str) for f in features)):
            raise ParameterError("'features' must be a list of columns.")
        for name in ("equation", "target", "dialect", "variables"):
            if not isinstance(given.get(name) or "", str):
                raise ParameterError(f"'{name}' must be text. Got {type(given[name]).__name__}.")
        return cls(
            given.get("equation") or "", given.get("target") or None, None if features is None else tuple(features),
            given.get("dialect") or "plain", given.get("variables") or "auto",
        )  # fmt: skip

    def matched(self, table: Table) -> MatchedEquation:
        """Equation and table brought together."""
        if not self.equation.strip():
            raise ParameterError("There is no equation yet: type one, or open a model file.")
        return match_equation(
            self.equation, table, target=self.target, features=self.features, variables=self.variables,
            dialect=self.dialect,
        )  # fmt: skip

    def without_left_side(self, columns: tuple[str, ...]) -> Question:
        """Of ``y = 2*x`` the right-hand side; the left is the target where it names a column and none was chosen."""
        # Cut by hand: of a regular expression that goes back, a long line of spaces takes hours.
        left, _, right = self.equation.partition("=")
        name, equation = left.strip().removeprefix("`").removesuffix("`"), right.lstrip()
        if not name or not equation or equation.startswith("=") or any(sign in name for sign in "`()"):
            return self
        return replace(self, equation=equation, target=self.target or (name if name in columns else None))


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """A report that is finished: its data, the equation, and the table's columns at that time."""

    number: int
    expression: Expression
    data: dict[str, Any]
    inputs: tuple[str, ...]
    columns: tuple[str, ...]
    page: str
    latex: str
    text: str


@dataclass(slots=True)
class Workspace:
    """See the module."""

    limit: int = 100 * 2**20  # bytes of the largest file that is taken
    table: Table | None = None
    question: Question = field(default_factory=Question)
    model_file: ModelFile | None = None
    analysis: Analysis | None = None
    pruned: dict[str, Any] | None = None
    next: dict[str, Any] | None = None
    fit: Fit | None = None
    _shown_table: dict[str, Any] | None = None
    # It outlives the table: a page takes a number that it has drawn for the report that it shows.
    _report_numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _work: threading.RLock = field(default_factory=threading.RLock)
    _running: Cancellable = field(default_factory=Cancellable)

    def state(self) -> dict[str, Any]:
        """Everything a page shows, ready for JSON."""
        question, analysis = self.question, self.analysis
        return {
            "limit": self.limit,
            "table": self._shown_table,
            "equation": question.equation,
            "target": question.target,
            "features": None if question.features is None else list(question.features),
            "dialect": question.dialect,
            "variables": question.variables,
            "model_file": None if self.model_file is None else self.model_file.to_dict(),
            "report": None if analysis is None else {"number": analysis.number, "equation": str(analysis.expression)},
            "pruned": self.pruned,
            "next": self.next,
            "fit": None if self.fit is None else self.fit.to_dict(),
        }

    def open_table(self, name: str, content: bytes, written: TableFormat) -> None:
        """Take a table; what was found on the one before is put away, the equation stays."""
        self.take_table(read_table(TableFile.named(name, content, written), written))

    def take_table(self, table: Table) -> None:
        """The table from now on."""
        with self._work:
            self._refuse_while_fitting("another table can be opened")
            target = self.question.target
            if target not in table.columns:
                target = next((name for name in table.columns if name.lower() in _TARGET_NAMES), None)
            self.table, self._shown_table = table, _table_state(table)
            self.question = replace(self.question, target=target, features=None)
            self.analysis = self.pruned = self.next = self.fit = None

    def open_model(self, name: str, content: bytes) -> None:
        """Take the equation of a model file."""
        found = read_model(name, content)
        with self._work:
            self.model_file = found
            self.question = replace(self.question, equation=found.chosen, dialect=found.dialect, variables="auto")

    def report(self, question: Question) -> None:
        """Judge an equation on the table."""
        with self._work:
            table = self._table()
            question = question.without_left_side(table.columns)
            self.pruned = self.next = None
            self._analyse(question, table)

    def prune(self, question: Question) -> None:
        """What is left of an equation when the terms that do not pay are deleted."""
        with self._work:
            table = self._table()
            question = question.without_left_side(table.columns)
            self.pruned = self._running.run(lambda: self._pruned(question, table))

    def measure_next(self, question: Question) -> None:
        """The rows to measure next: for the equation of the finished search its rivals too, else its own terms."""
        with self._work:
            table = self._table()
            question = question.without_left_side(table.columns)
            self.next = self._running.run(lambda: self._next(question, table))

    def cancel(self) -> None:
        """End the report or the pruning under way, asked for in another thread, which says so there."""
        if not self._running.cancel():
            raise ParameterError("Nothing is under way that could be cancelled.")

    def take_pruned(self) -> None:
        """Go on with the pruned equation."""
        with self._work:
            if self.pruned is None:
                raise ParameterError("There is no pruned equation yet: press Prune.")
            self._analyse(replace(self.question, equation=self.pruned["after"], dialect="plain"), self._table())
            self.pruned = None

    def start_fit(self, question: Question, options: Mapping[str, Any]) -> None:
        """Search for an equation, with ``seconds``, ``max_complexity`` and ``select`` of ``options``."""
        from sobolev_novelty.search.model.arguments import REGRESSOR

        select = options.get("select") or "price"
        check("select", select, REGRESSOR["select"])
        with self._work:
            table = self._table()
            self._refuse_while_fitting("another search can start")
            if question.target is None:
                raise ParameterError("'target' is missing: choose the column that the equation is to predict.")
            request = FitRequest(
                table, question.target, question.features, _number(options, "seconds", 60.0, 1.0, 86_400.0),
                _whole_number(options, "max_complexity", 3, 200), select,
            )  # fmt: skip
            self.question, self.pruned = question, None
            self.fit = Fit.start(request, self._fitted)

    def stop_fit(self) -> None:
        """Ask the search to end."""
        if self.fit is None or not self.fit.is_running:
            raise ParameterError("No search is running.")
        self.fit.stop()

    def choose(self, index: Any) -> None:
        """Make another equation of a finished search the chosen one, and judge it."""
        from sobolev_novelty.search.model.storage import model_to_dict

        with self._work:
            fit = self.fit
            if fit is None or fit.model is None:
                raise ParameterError("No search has finished yet.")
            if not isinstance(index, int) or not 0 <= index < len(fit.front):
                raise ParameterError(f"'index' must be a row of the front, 0 to {len(fit.front) - 1}. Got {index!r}.")
            model = self.model()
            model.choose(index)
            fit.model = model_to_dict(model)
            fit.front = [row | {"is_best": k == index} for k, row in enumerate(fit.front)]
            self._judge_fit(fit)

    def model(self) -> Any:
        """The regressor of the finished search."""
        from sobolev_novelty.search.model.regressor import SymbolicRegressor
        from sobolev_novelty.search.model.storage import model_from_dict

        if self.fit is None or self.fit.model is None:
            raise DataError("No search has finished yet: there is no model.")
        return model_from_dict(SymbolicRegressor, self.fit.model, "model.json")

    def close(self) -> None:
        """End the search that may be running."""
        if self.fit is not None:
            self.fit.close()

    # --- parts

    def _table(self) -> Table:
        if self.table is None:
            raise DataError("There is no table yet: drop one on the page, or choose a file.")
        return self.table

    def _refuse_while_fitting(self, what: str) -> None:
        if self.fit is not None and self.fit.is_running:
            raise ParameterError(f"A search is running. Stop it before {what}.")

    def _analyse(self, question: Question, table: Table) -> None:
        self.analysis = self._running.run(lambda: self._analysis(question, table))
        self.question = question

    def _analysis(self, question: Question, table: Table) -> Analysis:
        matched = question.matched(table)
        found = matched.report()
        return Analysis(
            next(self._report_numbers), matched.expression, found.to_dict(), matched.sample.names, table.columns,
            found.to_html(), found.latex_table(), f"{found}\n",
        )  # fmt: skip

    def _pruned(self, question: Question, table: Table) -> dict[str, Any]:
        found = question.matched(table).prune()
        self._analyse(question, table)
        return found.to_dict()

    def _next(self, question: Question, table: Table) -> dict[str, Any]:
        from sobolev_novelty.ui.next import measurements_of

        matched = question.matched(table)
        fit = self.fit
        is_fitted = fit is not None and fit.model is not None and fit.request.table is table
        models = self.model() if is_fitted and self.model().expression_ == matched.expression else matched.expression
        return measurements_of(models, matched).to_dict()

    def _fitted(self, fit: Fit) -> None:
        with self._work:
            if fit is self.fit:
                self._judge_fit(fit)

    def _judge_fit(self, fit: Fit) -> None:
        """The report of the chosen equation, on the table and the columns of its search."""
        assert fit.model is not None
        request = fit.request
        self._analyse(Question(fit.model["chosen"], request.target, request.features), request.table)


def _table_state(table: Table) -> dict[str, Any]:
    head = table.frame.iloc[:PREVIEW_ROWS, :PREVIEW_COLUMNS]
    return {
        "name": table.source,
        "n_rows": len(table),
        "columns": [{"name": name, "is_numeric": table.first_text(name) is None} for name in table.columns],
        "preview": [[_entry(value) for value in row] for row in head.itertuples(index=False)],
        "notes": list(table.notes),
    }


def _entry(value: Any) -> str:
    """An entry of a table, at most 40 characters of it."""
    import pandas as pd

    text = "" if pd.isna(value) else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _number(options: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = options.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ParameterError(f"'{name}' must be a number from {low:g} to {high:g}. Got {value!r}.")
    return float(value)


def _whole_number(options: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    value = options.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ParameterError(f"'{name}' must be a whole number from {low} to {high}, or empty. Got {value!r}.")
    return value
