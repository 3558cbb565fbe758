"""A fit in five stages, each a function from one frozen value to the next: prepare, search, rate, choose, write."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.search.choose.choice import Choice
from sobolev_novelty.search.contract.engine import Engine, GuessSource, Problem, UserTerms
from sobolev_novelty.search.islands.cores import Cores
from sobolev_novelty.search.islands.seeding import Seeder
from sobolev_novelty.search.loop.loop import Budget, Callback, SearchResult
from sobolev_novelty.search.model.checkpoint import Checkpoint
from sobolev_novelty.search.model.display import in_users_terms, live_display, reason
from sobolev_novelty.search.model.finish import Clock, TrainingTable, shown_equations
from sobolev_novelty.search.model.preparation import Prepared, prepare, with_units
from sobolev_novelty.search.model.rules import Rule, by_rule
from sobolev_novelty.search.model.tables import choice_table
from sobolev_novelty.search.problem.control import Control
from sobolev_novelty.search.problem.dimensions import Dimensions

if TYPE_CHECKING:
    from sobolev_novelty.report.render.equation_table import EquationTable


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What a search remembers, for a warm start to go on from: its rows, its random numbers, the engine's state."""

    key: tuple[object, ...]
    rng: np.random.Generator
    prepared: Prepared | None = None
    state: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What one fit was asked for, read and checked."""

    rows: Rows  # all training rows, in the user's names
    target: str  # its name
    engine: Engine[Any]
    cores: Cores
    budget: Budget
    begin: float  # in the seconds of the budget's clock
    memory: Memory
    control: Control  # in the user's names
    dimensions: Dimensions | None
    operators: tuple[str, ...]
    max_complexity: int
    noise: str
    select: str | Rule
    guesses: Sequence[Expression] = ()
    source: GuessSource | None = None
    seeder: str | None = None
    saved: Checkpoint | None = None
    callbacks: tuple[Callback, ...] = ()
    verbose: bool | None = None

    @property
    def asks_in_words(self) -> bool:
        """Whether the columns are shown to somebody: they stay as they are."""
        return self.source is not None or self.seeder is not None or self.engine.asks_in_words


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """A task as a problem of a search."""

    task: Task
    prepared: Prepared
    problem: Problem
    clock: Clock
    counts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search gave."""

    posed: Posed
    result: SearchResult

    @property
    def memory(self) -> Memory:
        """What a warm start goes on from."""
        return replace(self.posed.task.memory, prepared=self.posed.prepared, state=self.result.state)

    @property
    def counts(self) -> dict[str, Any]:
        """What else was counted."""
        return self.posed.counts | self.result.counts

    def saved(self) -> tuple[int, int]:
        """Evaluations and novelty calls, those of a checkpoint's earlier runs included; the checkpoint is written."""
        saved, result = self.posed.task.saved, self.result
        if saved is None:
            return result.n_evaluations, result.n_novelty_calls
        saved.write(result, self.posed.problem.user.written)
        return result.n_evaluations + saved.n_evaluations, result.n_novelty_calls + saved.n_novelty_calls


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """What may come back, in the user's terms, and the rows that decide between it."""

    found: Found
    table: TrainingTable
    candidates: tuple[Expression, ...]
    clock: Clock


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What a fitted model shows."""

    equations: EquationTable
    index: int  # of the chosen one
    choice: Choice
    priced: EquationTable  # what was priced
    reason: str  # why this equation, in a sentence
    noise: str  # what it is, in a sentence
    rows: Rows  # those of the search, with all of the user's columns
    weighed: Rows  # the same with their weights under the noise at the chosen equation
    n_known: int  # training rows
    ranges: FloatArray  # lowest and highest value of each input in them


def prepared(task: Task) -> Posed:
    """Choose rows, columns and units, and read the guesses in them."""
    budget, memory = task.budget, task.memory
    early = Clock(task.begin, budget.seconds, kind=budget.clock).search
    known = None if memory.state is None else memory.prepared
    own = known or prepare(task.rows, memory.rng, early)
    clock = Clock(task.begin, budget.seconds, 0 if own.is_complete else len(task.rows), budget.clock)
    problem = _problem(task, own)
    if task.source is None:
        return Posed(task, own, problem, clock)
    given = tuple(task.source.guesses(replace(problem, deadline=clock.search), memory.rng))
    return Posed(task, own, replace(problem, guesses=problem.guesses + given), clock, {"guesses given": len(given)})


def _problem(task: Task, own: Prepared) -> Problem:
    user = UserTerms({f"x{k}": name for k, name in enumerate(task.rows.names)}, task.target, own.units)
    dimensions, guesses = task.dimensions, list(task.guesses)
    if dimensions is not None:
        is_plain = task.control.is_plain and not task.asks_in_words
        own, user, dimensions, guesses = with_units(dimensions, own, user, guesses, is_plain=is_plain)
    forms = (user.read(guess) for guess in guesses)
    kept = tuple(form for form in forms if set(form.variables) <= set(own.rows.names))
    control = task.control.read(user.read, {name: own_name for own_name, name in user.names.items()})
    is_plain = control.loss.is_squared and task.rows.level is None and user.natural is None
    return Problem(
        own.rows, task.operators, task.max_complexity, kept, user=user, dimensions=dimensions, control=control,
        more=own.more_rows, noise=task.noise if is_plain else "constant",
    )  # fmt: skip


def searched(posed: Posed) -> Found:
    """Run the search, with the guesses of another engine where they were asked for."""
    task, problem, memory = posed.task, posed.problem, posed.task.memory
    if np.ptp(problem.y) == 0.0:
        return Found(posed, SearchResult.of_constant(problem.y))
    written = problem.user.written
    with live_display(task.verbose, written, task.budget) as show:
        told = [show] if task.saved is None else [show, task.saved.callback(written)]
        told += [in_users_terms(callback, written) for callback in task.callbacks]
        options: dict[str, Any] = {"callbacks": told, "deadline": posed.clock.search}
        if task.seeder is None or memory.state is not None:
            found = task.cores.search(problem, task.engine, task.budget, memory.rng, state=memory.state, **options)
        else:
            other = Seeder(task.seeder, problem, task.budget, memory.rng, task.cores.n_threads, told)
            own = task.cores.search(problem, task.engine, other.rest, memory.rng, visitors=other, **options)
            found = other.added_to(own)
    return Found(posed, found)


def rated(found: Found) -> Rated:
    """What was found, in the user's names and units, and what nobody searched for, as far as it may come back."""
    posed, result, task = found.posed, found.result, found.posed.task
    clock = Clock.hurried() if result.is_interrupted else posed.clock
    table = TrainingTable(
        task.rows, posed.prepared.n_rows, posed.prepared.is_complete, task.control, task.engine.as_found,
        task.max_complexity, task.dimensions,
    )  # fmt: skip
    words = task.operators if task.control.template is None else ()
    candidates = table.candidates([*result.front.candidates, *result.leaders], posed.problem.user.written, words)
    return Rated(found, table, tuple(candidates), clock)


def chosen(rated: Rated) -> Choice:
    """The equation with the lowest price, or the one that another rule by name takes."""
    task, table = rated.found.posed.task, rated.table
    choice = table.choice(rated.candidates, task.noise, deadline=rated.clock.choice)
    if callable(task.select):
        return choice
    return replace(choice, chosen=by_rule(choice, "score" if table.as_found else task.select, task.control.loss))


def written(rated: Rated, choice: Choice) -> Written:
    """The table of equations as a person reads them, and what the rows of the search are worth at the chosen one."""
    from sobolev_novelty.report.render.equation_table import EquationTable

    posed = rated.found.posed
    rows = posed.prepared.table(posed.task.rows.names)
    table, index = shown_equations(
        choice, rated.table, rows.sample, posed.task.select, operators=posed.problem.written_operators,
        deadline=rated.clock.end,
    )  # fmt: skip
    expression = table["expression"].iloc[index]
    weighed = choice.noise.weighed(rows, expression, values([expression], rows.sample)[0])
    X = posed.task.rows.sample.X
    ranges = np.array([X.min(axis=1), X.max(axis=1)])
    noise = choice.noise.sentence(choice.level, posed.task.target)
    tables = EquationTable(table), EquationTable(choice_table(choice))
    return Written(tables[0], index, choice, tables[1], reason(choice), noise, rows, weighed, X.shape[1], ranges)


def load_tables() -> None:
    """Import what the end of a fit needs."""
    importlib.import_module("pandas")
    importlib.import_module("sobolev_novelty.report.render.equation_table")
