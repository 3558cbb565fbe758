"""The scikit-learn regressor: one face for all engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sobolev_novelty.core.digits import DEFAULT_DIGITS
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import declared
from sobolev_novelty.core.sample import FloatArray, Sample, as_target, plain_table
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.language.convert import to_latex, to_sympy
from sobolev_novelty.report.intervals.intervals import Intervals, intervals
from sobolev_novelty.report.reporting import NoveltyReport, novelty
from sobolev_novelty.search.contract.engine import Engine, GuessSource, SobolevGuidance
from sobolev_novelty.search.islands.cores import Islands
from sobolev_novelty.search.loop.loop import Budget, Callback
from sobolev_novelty.search.model.arguments import METHODS, REGRESSOR, Asked, check_arguments
from sobolev_novelty.search.model.display import described, front_figure, front_latex, model_html
from sobolev_novelty.search.model.reading import cores_of, task_of, validated_rows
from sobolev_novelty.search.model.rules import Rule
from sobolev_novelty.search.model.settings import DEFAULT_BUDGET, Settings, names_of, with_earlier_names
from sobolev_novelty.search.model.stages import Written, chosen, prepared, rated, searched, written
from sobolev_novelty.search.model.storage import model_from_dict, model_to_dict, read_json, write_json
from sobolev_novelty.search.model.tables import equation_at, rivals_table, verdicts_table
from sobolev_novelty.search.problem.alike_inputs import alike_inputs
from sobolev_novelty.search.problem.constraints import Constraints, Units
from sobolev_novelty.search.problem.loss import LossFunction
from sobolev_novelty.search.problem.outside import warn_outside

if TYPE_CHECKING:
    import pandas as pd
    import sympy
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        best fits join a search without an exact one in its first fifth, for another fifth at most. Or a source, such
        as :class:`~sobolev_novelty.engines.igsr.talk.chat.ChatProposer`, asked at the beginning, in the budget's time.
    select : {"price", "score", "distinct", "validation", "one-se"} or callable
        Which equation is chosen (docs/choice.md): that of the lowest price; the simplest exact fit or else the best
        accuracy–complexity score, as in the paper; the cheapest with distinct terms alone (ν > τ); that of the lowest
        cross-validated error; the simplest within one standard error. A callable gets ``equations_`` and returns a row.
    noise : {"auto", "constant", "relative", "counts", "power"}
        How the noise of the target goes with its value: not at all, as the value, as its root, or as a power that is
        found. ``auto`` takes the kind under which the rows cost least. Known noise is ``sigma`` of :meth:`fit`.
    units : Units or mapping of str to str, optional
        Physical units of the columns, ``{"m": "kg", "v": "m/s"}``, and of the target under its own name (``"y"`` where
        it has none). A column that is missing is a pure number. Nonsense such as ``exp(m)`` is not tried.
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
        with threadpool_limits(limits=cores_of(self).n_threads):
            found = searched(prepared(task_of(self, X, y, asked)))
            candidates = rated(found)
            made = written(candidates, chosen(candidates))
        self._show(made)
        self._memory_ = found.memory if asked.warm_start else None
        self.counts_, self.stop_reason_, self.seconds_ = found.counts, str(found.result.stop), found.result.seconds
        self.n_evaluations_, self.n_novelty_calls_ = found.saved()
        return self

    def predict(self, X: Any, index: int | None = None) -> FloatArray:
        """Values of the chosen equation, or of row ``index`` of ``equations_``.

        ``nan`` or ``inf`` outside its domain. The first rows beyond the training range of an input that the equation
        uses draw an :class:`~sobolev_novelty.errors.ExtrapolationWarning`, once for each model.
        """
        check_is_fitted(self)
        X, expression = validated_rows(self, X), self._equation(index)
        if not self._warned_ and hasattr(self, "_ranges_"):
            self._warned_ += warn_outside(X, expression, names_of(self), self._ranges_)
        return np.asarray(values([expression], Sample(np.ascontiguousarray(X.T), names_of(self)))[0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the chosen equation at other rows."""
        rows = plain_table(X)
        weights = None if sample_weight is None else as_target(sample_weight, len(rows), "sample_weight")
        return float(super().score(rows, as_target(y, len(rows)), weights))

    def sympy(self, index: int | None = None) -> sympy.Expr:
        """The equation as a SymPy expression."""
        return to_sympy(self._equation(index))

    def latex(self, index: int | None = None, precision: int | None = DEFAULT_DIGITS) -> str:
        """The equation as LaTeX, constants in four digits or as many as asked for; None for all of them."""
        return to_latex(self._equation(index), precision)

    def latex_table(self, precision: int = 3) -> str:
        """The front as a booktabs table: complexity, loss, score, lowest novelty, equation."""
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

        ``X`` has the columns of the training table, ``y`` is their target; ``index`` is a row of ``equations_``, by
        default the chosen one.
        """
        expression = self._equation(index)
        if X is not None:
            return novelty(expression, X, y, names=names_of(self), max_terms=None)
        own = self._own.weighed
        found = novelty(expression, own.sample, own.y, sample_weight=own.weights, max_terms=None)
        return found.taken_from(self._own.n_known)

    def intervals(self, X: Any = None, y: Any = None, index: int | None = None, **options: Any) -> Intervals:
        """Profile-likelihood intervals of the equation's constants, on the rows of the search or on any others.

        Options are those of :func:`sobolev_novelty.intervals`; the noise is that of the fit.
        """
        weights = None
        if X is None:
            X, y, weights = self._own.rows.sample, self._own.rows.y, self._own.rows.weights
        if y is None:
            raise ParameterError("'y' is missing: intervals need the target of the rows of 'X'.")
        if "sigma" not in options:
            options = {"sample_weight": weights, "noise": self._shape_} | options
        return intervals(self._equation(index), X, y, names=names_of(self), **options)

    @property
    def verdicts_(self) -> pd.DataFrame:
        """What the training rows say of each term of the chosen equation; see the class."""
        check_is_fitted(self)
        if self._verdicts_ is None:
            self._verdicts_ = verdicts_table(self.expression_, self._own.weighed)
        return self._verdicts_

    @property
    def rivals_(self) -> pd.DataFrame:
        """Different functions that come close to the chosen equation; see the class."""
        from sobolev_novelty.report.render.equation_table import EquationTable

        own = self._own
        if self._rivals_ is None:
            self._rivals_ = EquationTable(rivals_table(own.choice))
        return self._rivals_

    @property
    def alike_inputs_(self) -> tuple[str, ...]:
        """Which inputs the training rows cannot tell apart, in sentences; see the class."""
        return alike_inputs(self._own.rows.X, self._own.rows.names)

    @property
    def _own(self) -> Written:
        """What the fit wrote, with the rows of its search."""
        check_is_fitted(self)
        if not hasattr(self, "_made_"):
            raise ParameterError("A loaded model has no training rows: give 'X'.")
        return self._made_

    def plot(self, ax: Axes | None = None) -> Figure:
        """The front: error against complexity, the chosen equation marked (matplotlib); on ``ax`` where it is given."""
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
        return {"text/plain": repr(self), "text/html": model_html(self)}

    __str__ = described

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "equations_")

    def _show(self, made: Written) -> None:
        self._made_, self._ranges_, self._shape_ = made, made.ranges, made.choice.noise
        self._warned_: list[str] = []
        self.equations_, self.choice_ = made.equations, made.priced
        self.reason_, self.noise_ = made.reason, made.noise
        self.choose(made.index)

    def _equation(self, index: int | None) -> Expression:
        check_is_fitted(self)
        return self.expression_ if index is None else equation_at(self.equations_, index)


__all__ = ["DEFAULT_BUDGET", "Budget", "SobolevGuidance", "SymbolicRegressor"]
