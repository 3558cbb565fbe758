"""The scikit-learn regressor: one face for all engines."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sobolev_novelty.core.digits import DEFAULT_DIGITS
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import declared
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, Sample, as_target, plain_table
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import as_expression, read_together, values
from sobolev_novelty.report.intervals.intervals import Intervals, intervals
from sobolev_novelty.report.reporting import NoveltyReport, novelty
from sobolev_novelty.search.contract.engine import (
    CLOCKS,
    DEFAULT_OPERATORS,
    Engine,
    GuessSource,
    Problem,
    SobolevGuidance,
    UserTerms,
)
from sobolev_novelty.search.contract.registry import engine_named, template_engine
from sobolev_novelty.search.islands.cores import Cores, Islands
from sobolev_novelty.search.islands.seeding import Seeder, seeding_engine
from sobolev_novelty.search.loop.loop import Budget, Callback, SearchResult
from sobolev_novelty.search.model.arguments import METHODS, REGRESSOR, Asked, check_arguments
from sobolev_novelty.search.model.checkpoint import Checkpoint
from sobolev_novelty.search.model.display import in_users_terms, live_display
from sobolev_novelty.search.model.finish import Clock, Memory, TrainingTable, load_tables, shown_equations
from sobolev_novelty.search.model.preparation import (
    Prepared,
    prepare,
    refuse_several_targets,
    row_weights,
    with_units,
)
from sobolev_novelty.search.model.reading import validated, validated_rows
from sobolev_novelty.search.model.rules import Rule, by_rule
from sobolev_novelty.search.model.settings import DEFAULT_BUDGET, Settings, as_budget, as_units, with_earlier_names
from sobolev_novelty.search.model.storage import StoredEngine, model_from_dict, model_to_dict, read_json, write_json
from sobolev_novelty.search.model.tables import choice_table, rivals_table, verdicts_table
from sobolev_novelty.search.model.words import described, reason
from sobolev_novelty.search.problem.alike_inputs import alike_inputs
from sobolev_novelty.search.problem.constraints import Constraints, Units
from sobolev_novelty.search.problem.control import Control
from sobolev_novelty.search.problem.dimensions import Dimensions
from sobolev_novelty.search.problem.loss import LossFunction
from sobolev_novelty.search.problem.outside import warn_outside

if TYPE_CHECKING:
    import pandas as pd
    import sympy
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT_MAX_COMPLEXITY = 60


@declared(METHODS, **REGRESSOR)
class SymbolicRegressor(RegressorMixin, Settings):  # type: ignore[misc]
    """Find an equation for data, preferring terms that the others cannot imitate.

    Parameters
    ----------
    engine : str or Engine
        How forms are proposed: ``"genetic"``, ``"mcts"``, ``"transformer"`` or another registered name. Options of an
        engine are arguments of its class: ``engine=MCTS(exploration=0.5)``.
    novelty : bool or SobolevGuidance
        Whether the engine gets the Sobolev signal. Everything else (budget, seeds, fitting, score) is the same without.
    budget : Budget or float, optional
        When to stop, or after how many seconds; by default after 20 000 evaluations or 60 seconds, whichever is first.
    operators : sequence of str, optional
        What equations may be made of; by default the usual ones.
    constraints : Constraints, optional
        Which equations are allowed and what their operators cost: largest complexity and depth, nesting, directions, a
        template (docs/control.md).
    loss : {"squared", "absolute", "huber"} or callable
        What is minimised; a callable ``loss(y, prediction)`` returns one value per row, or their mean.
    guesses : sequence of str, Expression or SymPy expression, str, or GuessSource, optional
        Your own starting points; their constants are fitted. Or the name of an engine, such as ``"transformer"``, whose
        best fits join a search that has found no exact one in its first fifth; they take another fifth at most. Or a
        source, such as :class:`~sobolev_novelty.engines.igsr.talk.chat.ChatProposer`, which is asked for some at the
        beginning, within the budget's time.
    select : {"price", "score", "distinct", "validation", "one-se"} or callable
        Which equation is chosen (docs/choice.md): the one with the lowest price; the simplest exact fit or else the
        best accuracy–complexity score, as in the paper; the cheapest whose terms are all distinct (ν > τ); the lowest
        cross-validated error; the simplest within one standard error of it. A callable gets ``equations_`` and returns
        the index of a row.
    noise : {"auto", "constant", "relative", "counts", "power"}
        How the noise of the target goes with its value: not at all, as the value, as its root, or as a power that is
        found. ``auto`` takes the kind under which the rows cost least. Known noise is ``sigma`` of :meth:`fit`.
    units : Units or mapping of str to str, optional
        Physical units of the columns, ``{"m": "kg", "v": "m/s"}``, and of the target under its own name (``"y"`` where
        it has none). A column that is missing is a pure number. Equations whose units make no sense, such as
        ``exp(m)``, are not tried.
    parallel : int or Islands, optional
        Cores, -1 for all: threads, which do not change the result. Or ``Islands(4)``: four searches in processes of
        their own that tell each other what they found. Another number of islands gives another result.
    random_state : int, RandomState or None

    Attributes
    ----------
    expression_ : Expression
        The chosen equation, in the names of the columns.
    equations_ : DataFrame
        The front, simplest first: complexity, loss (its mean over the rows), score (R_base), min_novelty, mean_novelty,
        expression, chosen.
    verdicts_ : DataFrame
        Whether each term of the chosen equation is distinct, needed and determined on the training rows, with the 95 %
        interval of its coefficient and the other numbers of ``novelty_report().table``. Saved with the model.
    choice_ : DataFrame
        Every equation that took part, the cheapest first: nats of structure, numbers, rows and findings, and behind.
    reason_, noise_ : str
        Why this equation was chosen, and what the noise is, in a sentence each.
    rivals_ : DataFrame
        The chosen equation and the different functions within five nats of it; none is an answer.
    alike_inputs_ : tuple of str
        A sentence for each set of inputs that the training rows cannot tell apart.
    n_evaluations_, n_novelty_calls_ : int
        Forms fitted; novelty evaluations made by the engine.
    counts_ : dict
        What else was counted: the calls of a language model, the terms it offered, the guesses it gave.
    stop_reason_ : str
        Why the search ended.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev_novelty.search.loop.loop import Budget
    >>> X = np.random.default_rng(0).uniform(1, 3, (100, 2))
    >>> model = SymbolicRegressor("mcts", budget=Budget(max_evaluations=500), random_state=0)
    >>> print(model.fit(X, 2.5 * X[:, 0] / X[:, 1]).expression_)
    2.5*(x0/x1)
    """

    @with_earlier_names
    def __init__(
        self,
        engine: str | Engine[Any] = "genetic",
        *,
        novelty: bool | SobolevGuidance = True,
        budget: Budget | float | None = None,
        operators: Sequence[str] | None = None,
        constraints: Constraints | None = None,
        loss: str | LossFunction = "squared",
        guesses: Sequence[Any] | str | GuessSource | None = None,
        select: str | Rule = "price",
        noise: str = "auto",
        units: Units | Mapping[str, str] | None = None,
        parallel: int | Islands | None = 1,
        random_state: Any = None,
    ) -> None:
        self.engine = engine
        self.novelty = novelty
        self.budget = budget
        self.operators = operators
        self.constraints = constraints
        self.loss = loss
        self.guesses = guesses
        self.select = select
        self.noise = noise
        self.units = units
        self.parallel = parallel
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sigma: Any = None,
        x_sigma: Any = None,
        warm_start: bool = False,
        checkpoint: str | Path | None = None,
        callback: Callback | None = None,
        verbose: bool | None = None,
    ) -> SymbolicRegressor:
        """Search for an equation.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        sigma : float or array of shape (n_samples,), optional
            Standard deviation of the noise of each row, where you know it; instead of weights.
        x_sigma : float or array of shape (n_features,), optional
            Standard deviations of the errors of the inputs, beside ``sigma``.
        warm_start : bool
            Whether to begin with the equations of the fit before. Where that was a warm start as well, with the same
            rows and settings, the search goes on where it ended.
        checkpoint : path, optional
            A JSON file, written every few seconds. Where it exists (a run was killed), the search goes on from the
            equations in it with the rest of the budget. The engine's own memory is not in it: not bit for bit the same.
        callback : callable, optional
            Called after each round with a :class:`~sobolev_novelty.search.loop.loop.SearchProgress` in your names and
            units (``progress.best``, ``progress.front``, …). Return True to end the search; what was found is kept.
        verbose : bool, optional
            Whether to show progress; by default on a terminal and in a notebook.
        """
        check_arguments(self)
        asked = Asked(sample_weight, sigma, x_sigma, warm_start, checkpoint, callback, verbose).after(self._of_fit())
        # Threads of linear algebra that wait for each other can take most of a time budget.
        with threadpool_limits(limits=self._cores().n_threads):
            return self._fit(X, y, asked)

    def _fit(self, X: Any, y: Any, asked: Asked) -> SymbolicRegressor:
        budget = as_budget(self.budget)
        begin = CLOCKS[budget.clock]()
        load_tables()  # a first import takes a second on a busy machine, and the fit's time has begun
        refuse_several_targets(y)
        target = getattr(y, "name", None)
        previous = list(self.equations_["expression"]) if asked.warm_start and hasattr(self, "equations_") else []
        X, y = validated(self, X, y)
        weights, x_sigma = row_weights(X, asked.sample_weight, asked.sigma, asked.x_sigma)
        rows = Rows.of(X, y, weights, self._names(), level=None if asked.sigma is None else 1.0, x_sigma=x_sigma)
        memory = self._remembered((X, y, weights, x_sigma), asked)
        if memory.state is None:
            prepared = prepare(rows, memory.rng, Clock(begin, budget.seconds, kind=budget.clock).search)
            memory = replace(memory, prepared=prepared)
        prepared, rng, names = memory.prepared, memory.rng, self._names()
        source = self.guesses if isinstance(self.guesses, GuessSource) else None
        seeder = seeding_engine(self.guesses)
        own: Any = () if source is not None or seeder is not None else self.guesses or ()
        guesses = [*previous, *(as_expression(guess, names) for guess in read_together(own, names))]
        saved = None if asked.checkpoint is None else Checkpoint.open(Path(asked.checkpoint), X, y)
        if saved is not None:
            guesses += [as_expression(text, names) for text in saved.equations]
            budget = saved.remaining(budget, len(guesses))
            if saved.equations:  # the run before had its seeds
                seeder = source = None
        clock = Clock(begin, budget.seconds, 0 if prepared.is_complete else len(y), budget.clock)
        in_words = source is not None or seeder is not None or self._engine().asks_in_words
        target = "y" if target is None else str(target)
        problem = self._problem(prepared, guesses, target, in_words=in_words, is_known=asked.sigma is not None)
        counts = {}
        if source is not None:
            found = tuple(source.guesses(replace(problem, deadline=clock.search), rng))
            problem = replace(problem, guesses=problem.guesses + found)
            counts = {"guesses given": len(found)}
        told = [] if asked.callback is None else [in_users_terms(asked.callback, problem.user.written)]
        with live_display(asked.verbose, problem.user.written, budget) as show:
            result = self._search(problem, budget, memory, saved, clock, seeder=seeder, callbacks=[show, *told])
        self.counts_ = counts | result.counts
        table = TrainingTable(rows, prepared.n_rows, prepared.is_complete, self._control(), self._engine().as_found)
        self._store(result, table, prepared, problem, Clock.hurried() if result.is_interrupted else clock)
        self._memory_ = replace(memory, state=result.state) if asked.warm_start else None
        if saved is not None:
            saved.write(result, problem.user.written)
            self.n_evaluations_ += saved.n_evaluations
            self.n_novelty_calls_ += saved.n_novelty_calls
        return self

    def predict(self, X: Any, index: int | None = None) -> FloatArray:
        """Values of the chosen equation, or of row ``index`` of ``equations_``.

        ``nan`` or ``inf`` outside its domain. The first rows beyond the training range of an input that the equation
        uses draw an :class:`~sobolev_novelty.errors.ExtrapolationWarning`, once for each model.
        """
        check_is_fitted(self)
        X, expression = validated_rows(self, X), self._equation(index)
        if not self._warned_ and hasattr(self, "_ranges_"):
            self._warned_ += warn_outside(X, expression, self._names(), self._ranges_)
        return np.asarray(values([expression], Sample(np.ascontiguousarray(X.T), self._names()))[0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the chosen equation at other rows."""
        rows = plain_table(X)
        weights = None if sample_weight is None else as_target(sample_weight, len(rows), "sample_weight")
        return float(super().score(rows, as_target(y, len(rows)), weights))

    def sympy(self, index: int | None = None) -> sympy.Expr:
        """The equation as a SymPy expression."""
        from sobolev_novelty.language.convert import to_sympy

        return to_sympy(self._equation(index))

    def latex(self, index: int | None = None, precision: int | None = DEFAULT_DIGITS) -> str:
        """The equation as LaTeX, constants in four digits or as many as asked for; None for all of them."""
        from sobolev_novelty.language.convert import to_latex

        return to_latex(self._equation(index), precision)

    def latex_table(self, precision: int = 3) -> str:
        """The front as a booktabs table: complexity, loss, score, lowest novelty, equation."""
        from sobolev_novelty.search.model.display import front_latex

        check_is_fitted(self)
        return front_latex(self.equations_, precision)

    def choose(self, index: int) -> SymbolicRegressor:
        """Make another row of ``equations_`` the chosen equation.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(1, 3, (100, 2))
        >>> model = SymbolicRegressor("mcts", budget=Budget(max_evaluations=200), random_state=0)
        >>> model.fit(X, X[:, 0] ** 2 + X[:, 1]).choose(0).expression_ == model.equations_["expression"][0]
        True
        """
        self.expression_ = self._equation(index)
        self.equations_["chosen"] = np.arange(len(self.equations_)) == index % len(self.equations_)
        self._verdicts_: pd.DataFrame | None = None
        self._rivals_: pd.DataFrame | None = None
        return self

    def novelty_report(self, X: Any = None, y: Any = None, index: int | None = None) -> NoveltyReport:
        """Novelty of the equation's terms, on the rows of the search or on any others.

        Parameters
        ----------
        X, y : arrays or DataFrame, optional
            Rows with the columns of the training table, and their target; by default the rows of the search.
        index : int, optional
            Row of ``equations_``; by default the chosen one.
        """
        X_used, *rest, weights = self._rows(X, y)
        found = novelty(
            self._equation(index), X_used, *rest, sample_weight=weights, names=self._names(), max_terms=None
        )
        return found if X is not None else found.taken_from(self._n_known_)

    def intervals(self, X: Any = None, y: Any = None, index: int | None = None, **options: Any) -> Intervals:
        """Profile-likelihood intervals of the equation's constants, on the rows of the search or on any others.

        Options are those of :func:`sobolev_novelty.intervals`; the noise is that of the fit.
        """
        weights = self._rows_.weights if X is None and hasattr(self, "_rows_") else None
        X, y, _ = self._rows(X, y)
        if y is None:
            raise ParameterError("'y' is missing: intervals need the target of the rows of 'X'.")
        if "sigma" not in options:
            options = {"sample_weight": weights, "noise": self._shape_} | options
        return intervals(self._equation(index), X, y, names=self._names(), **options)

    @property
    def verdicts_(self) -> pd.DataFrame:
        """What the training rows say of each term of the chosen equation; see the class."""
        check_is_fitted(self)
        if self._verdicts_ is None:
            sample, y, weights = self._rows(None, None)
            self._verdicts_ = verdicts_table(self.expression_, Rows(sample, y, weights))
        return self._verdicts_

    @property
    def rivals_(self) -> pd.DataFrame:
        """Different functions that come close to the chosen equation; see the class."""
        from sobolev_novelty.report.render.equation_table import EquationTable

        self._rows(None, None)
        if self._rivals_ is None:
            self._rivals_ = EquationTable(rivals_table(self._choice_))
        return self._rivals_

    @property
    def alike_inputs_(self) -> tuple[str, ...]:
        """Which inputs the training rows cannot tell apart, in sentences; see the class."""
        return alike_inputs(self._rows(None, None)[0].X.T, self._names())

    def _rows(self, X: Any, y: Any) -> tuple[Any, Any, FloatArray | None]:
        """Rows that were given, or those of the search with target and weights."""
        check_is_fitted(self)
        if X is not None:
            return X, y, None
        if not hasattr(self, "_rows_"):
            raise ParameterError("A loaded model has no training rows: give 'X'.")
        return self._rows_.sample, self._rows_.y, self._weights_

    def plot(self, ax: Axes | None = None) -> Figure:
        """The front: error against complexity, the chosen equation marked (matplotlib); on ``ax`` where it is given."""
        from sobolev_novelty.search.model.display import front_figure

        check_is_fitted(self)
        return front_figure(self.equations_, ax)

    def save(self, path: str | Path) -> None:
        """Write the fitted model as JSON: equations, verdicts, names and settings, the engine's too; no data, no code.

        A rule of choice or a loss that is a function is not written.
        """
        check_is_fitted(self)
        write_json(Path(path), model_to_dict(self))

    @classmethod
    def load(cls, path: str | Path) -> SymbolicRegressor:
        """Read a model that :meth:`save` wrote. Nothing in the file is executed.

        Where the engine is not known here, or a file cannot hold its options, the model predicts; ``fit`` asks for one.
        """
        return model_from_dict(cls, read_json(Path(path)), str(path))

    def _repr_html_inner(self) -> str:
        return str(self._repr_mimebundle_()["text/html"])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the chosen equation and the front; before ``fit``, scikit-learn's diagram."""
        if not hasattr(self, "equations_"):
            return dict(super()._repr_mimebundle_(**kwargs))
        from sobolev_novelty.search.model.display import model_html

        notes = [self.stop_reason_]
        if hasattr(self, "_rows_"):
            n = len(self.rivals_) - 1
            near = "1 different function is" if n == 1 else f"{n} different functions are"
            notes += [f"{near} within 5 nats: model.rivals_."] * (n > 0) + [*self.alike_inputs_]
        html = model_html(self.equations_, self.expression_, f"{self.reason_} {self.noise_}".strip(), " ".join(notes))
        return {"text/plain": repr(self), "text/html": html}

    __str__ = described

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "equations_")

    # --- parts of fit

    def _names(self) -> tuple[str, ...]:
        named = getattr(self, "feature_names_in_", None)
        return (
            tuple(f"x{k}" for k in range(self.n_features_in_)) if named is None else tuple(str(name) for name in named)
        )

    def _problem(
        self, prepared: Prepared, guesses: Sequence[Expression], target: str, *, in_words: bool, is_known: bool
    ) -> Problem:
        user = UserTerms({f"x{k}": name for k, name in enumerate(self._names())}, target, prepared.units)
        operators = DEFAULT_OPERATORS if self.operators is None else tuple(self.operators)
        limit = self._constraints().max_complexity or DEFAULT_MAX_COMPLEXITY
        dimensions, asked = self._dimensions(target), self._control()
        if dimensions is not None:
            is_plain = asked.is_plain and not in_words
            prepared, user, dimensions, guesses = with_units(dimensions, prepared, user, guesses, is_plain=is_plain)
        forms = tuple(user.read(guess) for guess in guesses)
        kept = tuple(form for form in forms if set(form.variables) <= set(prepared.rows.names))
        control = asked.read(user.read, {name: own for own, name in user.names.items()})
        is_plain = control.loss.is_squared and not is_known and user.natural is None
        parts: dict[str, Any] = {"user": user, "dimensions": dimensions, "control": control, "more": prepared.more_rows}
        parts["noise"] = self.noise if is_plain else "constant"
        return Problem(prepared.rows, operators, limit, kept, **parts)

    def _dimensions(self, target: str) -> Dimensions | None:
        units = as_units(self.units)
        is_said = bool(units.inputs) or units.target is not None
        return Dimensions.of(units, self._names(), target) if is_said else None

    def _constraints(self) -> Constraints:
        return Constraints() if self.constraints is None else self.constraints

    def _control(self) -> Control:
        return Control.of(self._names(), self.constraints, self.loss)

    def _search(
        self,
        problem: Problem,
        budget: Budget,
        memory: Memory,
        saved: Checkpoint | None,
        clock: Clock,
        *,
        seeder: str | None,
        callbacks: Sequence[Callback] = (),
    ) -> SearchResult:
        engine, cores, rng, written = self._engine(), self._cores(), memory.rng, problem.user.written
        if np.ptp(problem.y) == 0.0:
            return SearchResult.of_constant(problem.y)
        told = list(callbacks) if saved is None else [saved.callback(written), *callbacks]
        options: dict[str, Any] = {"callbacks": told, "deadline": clock.search}
        if seeder is None or memory.state is not None:
            return cores.search(problem, engine, budget, rng, state=memory.state, **options)
        other = Seeder(seeder, problem, budget, rng, cores.n_threads, told)
        return other.added_to(cores.search(problem, engine, other.rest, rng, visitors=other, **options))

    def _cores(self) -> Cores:
        return Cores.of(self.parallel, is_own_loss=callable(self.loss))

    def _engine(self) -> Engine[Any]:
        if isinstance(self.engine, StoredEngine):
            raise self.engine.refusal()
        if self._constraints().template is not None:
            return template_engine(self.guesses)
        engine = engine_named(self.engine) if isinstance(self.engine, str) else clone(self.engine)
        if not isinstance(engine, Engine):
            raise ParameterError(f"'engine' must be a name or an Engine. Got {type(self.engine).__name__}.")
        engine.guided_by(self.novelty)
        return engine

    def _remembered(self, rows: Sequence[FloatArray | None], asked: Asked) -> Memory:
        """The memory of the last fit where a warm start goes on from it; otherwise an empty one."""
        arrays = [array for array in rows if array is not None] if asked.warm_start else []
        data = tuple(zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in arrays)
        no_matter = ("budget",) if isinstance(self.parallel, Islands) else ("budget", "parallel")
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in no_matter}
        key = (data, tuple(np.shape(array) for array in arrays), repr(settings))
        memory: Memory | None = getattr(self, "_memory_", None)
        if asked.warm_start and memory is not None and memory.key == key:
            return memory
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        return Memory(key, None, rng, None)  # type: ignore[arg-type]  # the rows are prepared next

    def _store(
        self, result: SearchResult, data: TrainingTable, prepared: Prepared, problem: Problem, clock: Clock
    ) -> None:
        from sobolev_novelty.report.render.equation_table import EquationTable

        words = problem.operators if problem.control.template is None else ()
        choice = data.choice(
            [*result.front.candidates, *result.leaders], problem.user.written, operators=words,
            max_complexity=problem.max_complexity, dimensions=self._dimensions(problem.user.target), noise=self.noise,
            deadline=clock.choice,
        )  # fmt: skip
        if not callable(self.select):
            rule = "score" if data.as_found else self.select
            choice = replace(choice, chosen=by_rule(choice, rule, data.control.loss))
        self._rows_, self._n_known_ = prepared.table(data.rows.names), len(data.rows)
        self._ranges_ = np.array([data.rows.sample.X.min(axis=1), data.rows.sample.X.max(axis=1)])
        self._warned_: list[str] = []
        table, index = shown_equations(
            choice, data, self._rows_.sample, self.select, operators=problem.written_operators,
            max_complexity=problem.max_complexity, deadline=clock.end,
        )  # fmt: skip
        self.equations_ = EquationTable(table)
        self.choose(index)
        at_rows = values([self.expression_], self._rows_.sample)[0]
        self._weights_ = choice.noise.weighed(self._rows_, self.expression_, at_rows).weights
        self._shape_ = choice.noise
        self._choice_, self.choice_ = choice, EquationTable(choice_table(choice))
        self.reason_, self.noise_ = reason(choice), choice.noise.sentence(choice.level, problem.user.target)
        self.n_evaluations_, self.n_novelty_calls_ = result.n_evaluations, result.n_novelty_calls
        self.stop_reason_, self.seconds_ = str(result.stop), result.seconds

    def _equation(self, index: int | None) -> Expression:
        check_is_fitted(self)
        if index is None:
            return self.expression_
        if not -len(self.equations_) <= index < len(self.equations_):
            raise ParameterError(f"'index' must be a row of equations_, 0 to {len(self.equations_) - 1}. Got {index}.")
        return cast("Expression", self.equations_["expression"].iloc[index])


__all__ = ["DEFAULT_BUDGET", "Budget", "SobolevGuidance", "SymbolicRegressor"]
