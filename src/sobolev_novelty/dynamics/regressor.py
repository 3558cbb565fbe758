"""The regressor for trajectories: one equation per state, chosen and refined by integrating."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from sobolev_novelty import kernels
from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.parameters import (
    FLAG,
    FUNCTION,
    NOTHING,
    WORD,
    Kind,
    check_stored,
    declared,
    instance,
    one_of,
    read,
)
from sobolev_novelty.core.sample import FloatArray, numeric_array
from sobolev_novelty.dynamics.choice import SystemChoice
from sobolev_novelty.dynamics.differentiation import METHODS, Differentiator, SmoothCurve, smooth
from sobolev_novelty.dynamics.integration import Solution, integrate
from sobolev_novelty.dynamics.shooting import shoot
from sobolev_novelty.dynamics.trajectories import Trajectory, as_trajectories, state_rows
from sobolev_novelty.errors import DataError, ParameterError, shortened
from sobolev_novelty.kernels.evaluate import as_expression
from sobolev_novelty.report.reporting import NoveltyReport, novelty
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.search.model.storage import read_json, write_json
from sobolev_novelty.search.problem.constraints import Constraints

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "sobolev-novelty equations of motion"
DEFAULT_BUDGET = Budget(max_evaluations=6_000, seconds=30.0)
DEFAULT_MAX_COMPLEXITY = 40
SELECTIONS = ("trajectory", "regressor")
#: Integrated trajectories whose misfit is above this share of a state's variance do not follow the data.
FOLLOWS_NMSE = 0.05
#: A trajectory is lost where a state is off by this share of its spread.
LOST = 0.5
#: Rows of a search: smoothed rates at neighbouring points say the same.
MAX_ROWS = 256


@dataclass(frozen=True, slots=True)
class TrajectoryCheck:
    """How the integrated equations follow one measured trajectory."""

    #: Root mean square of the misfit of each state, relative to its spread, up to where the integration broke off.
    errors: dict[str, float]
    lost_at: float | None  # first time at which a state is off the smoothed one by half of its spread
    diverged_at: float | None  # time at which it broke off
    reason: str  # why; empty where it did not

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], states: Sequence[str]) -> TrajectoryCheck:
        """The check that a file holds; ValueError or TypeError where it holds something else."""
        errors = {state: _number(values["errors"][state]) for state in states}
        lost_at, diverged_at = (
            None if values[name] is None else _number(values[name]) for name in ("lost_at", "diverged_at")
        )
        return cls(errors, lost_at, diverged_at, _text(values["reason"]))

    @property
    def is_followed(self) -> bool:
        """Whether the whole trajectory is followed: never lost, and to a twentieth of each state's variance."""
        is_near = all(error**2 < FOLLOWS_NMSE for error in self.errors.values())
        return self.diverged_at is None and self.lost_at is None and is_near

    def __str__(self) -> str:
        misfit = ", ".join(f"{name} {100 * error:.2g} %" for name, error in self.errors.items())
        if self.diverged_at is not None:
            return (
                f"THE INTEGRATION DIVERGES at t = {number_text(self.diverged_at)}: {self.reason} Until then: {misfit}."
            )
        if self.is_followed:
            return f"followed, misfit {misfit} of the spread."
        until = "" if self.lost_at is None else f" beyond t = {number_text(self.lost_at)}"
        return f"NOT FOLLOWED{until}, misfit {misfit} of the spread."


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shortened(value, 40)} stands where a text belongs")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{shortened(value, 40)} stands where a number belongs")
    return float(value)


STATES = read("a numeric table with one column per state, or a list of such tables")
START = read("one finite number per state")
TABLES: dict[str, dict[str, Kind]] = {
    "fit": {"X": STATES, "verbose": FLAG | NOTHING},
    **{name: {"X": STATES} for name in ("predict", "check", "score")},
    **{name: {"x0": START} for name in ("integrate", "solve")},
    "novelty_report": {"state": WORD},
    "save": {},
    "load": {},
}


@declared(
    TABLES,
    regressor=instance("a SymbolicRegressor", SymbolicRegressor) | NOTHING,
    derivative=one_of(*METHODS) | FUNCTION,
    select=one_of(*SELECTIONS),
    refine=FLAG,
    time=WORD,
    trajectory=WORD | NOTHING,
    with_time=FLAG,
)
class DynamicsRegressor(BaseEstimator):  # type: ignore[misc]
    """Find the equations of motion behind trajectories: one rate of change per state.

    Derivatives are estimated with a smoothing chosen by cross-validation; :class:`SymbolicRegressor` searches an
    equation for each; the equations of its front are compared, and their constants refitted, by integrating them
    (docs/dynamics.md).

    Parameters
    ----------
    regressor : SymbolicRegressor, optional
        How each equation is searched: engine, budget, operators and so on. By default 6000 evaluations or 30 seconds
        per state, and equations of up to 40 nodes.
    derivative : {"spline", "local", "finite"} or callable
        How rates are estimated: penalised splines; local cubics (Savitzky–Golay filters, for any spacing of times);
        central differences, for data without noise. Or a function of states and times, such as an object of
        ``pysindy.differentiation``.
    select : {"trajectory", "regressor"}
        Which equation of each front is chosen: the one with the shortest description of the measured states, or the
        one that the regressor's own rule chooses from the rates.
    refine : bool
        Whether the constants are refitted to the trajectories.
    time : str
        Column of time in DataFrames.
    trajectory : str, optional
        Column of a DataFrame that tells its trajectories apart.
    with_time : bool
        Whether the equations may depend on time, under the name ``time``.
    random_state : int, optional
        Seed of the searches; the regressor's own where it is None.

    Attributes
    ----------
    expressions_ : dict of str to Expression
        The rate of each state.
    equations_ : DataFrame
        One row per state: equation, complexity, R² of the rates, misfit of the integrated trajectories, lowest novelty.
    models_ : dict of str to SymbolicRegressor
        The search of each state, with its front.
    checks_ : list of TrajectoryCheck
        How the integrated equations follow each trajectory, from its first smoothed state.
    curves_ : list of SmoothCurve
        The smoothed trajectories and their rates.
    notes_ : tuple of str

    Examples
    --------
    >>> t = np.linspace(0.0, 5.0, 200)
    >>> x = 3.0 / (1.0 + 9.0 * np.exp(-1.2 * t))  # logistic growth
    >>> search = SymbolicRegressor(budget=Budget(max_evaluations=500), random_state=0)
    >>> model = DynamicsRegressor(search).fit(x[:, None], t)
    >>> model.checks_[0].is_followed
    True
    >>> float(np.round(model.integrate([0.0, 30.0], [0.1])[-1, 0], 2))
    3.0
    """

    def __init__(
        self,
        regressor: SymbolicRegressor | None = None,
        *,
        derivative: str | Differentiator = "spline",
        select: str = "trajectory",
        refine: bool = True,
        time: str = "t",
        trajectory: str | None = None,
        with_time: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.regressor = regressor
        self.derivative = derivative
        self.select = select
        self.refine = refine
        self.time = time
        self.trajectory = trajectory
        self.with_time = with_time
        self.random_state = random_state

    def fit(self, X: Any, t: Any = None, *, verbose: bool | None = None) -> DynamicsRegressor:
        """Search the equations.

        Parameters
        ----------
        X : DataFrame, array of shape (n_points, n_states), or list of them
            One table per trajectory.
        t : array of shape (n_points,), float, or list of them, optional
            Times, or the step between rows; not needed for DataFrames with a column of time.
        verbose : bool, optional
            Whether to show the progress of the searches; by default on a terminal and in a notebook.
        """
        check_stored(self)
        trajectories, self.notes_ = as_trajectories(X, t, time=self.time, trajectory=self.trajectory)
        self.states_ = trajectories[0].names
        if self.with_time and self.time in self.states_:
            raise DataError(f"'time' must differ from the states' names. Got {self.time!r}.")
        self.curves_ = [smooth(trajectory, self.derivative) for trajectory in trajectories]
        self.models_ = {name: self._searched(k, verbose) for k, name in enumerate(self.states_)}
        chosen = self._chosen(trajectories)
        if self.refine:
            refined = shoot(chosen, self._inputs(), trajectories, self.curves_)
            if refined is None:
                self.notes_ += ("The constants could not be refitted to the trajectories.",)
            else:
                chosen = list(refined.expressions)
                if refined.n_stretches > 1:
                    self.notes_ += (
                        f"The constants were refitted to {refined.n_stretches} stretches of each trajectory: "
                        "the whole of it is too sensitive to its start, or the equations do not follow it.",
                    )
        # Of a state that never moves a fit leaves rounding.
        moves = np.any([np.ptp(trajectory.x, axis=0) > 0.0 for trajectory in trajectories], axis=0)
        rates = [expression if is_moving else Expression.of(0.0) for expression, is_moving in zip(chosen, moves)]
        self.expressions_ = dict(zip(self.states_, rates, strict=True))
        scale = np.max([np.abs(trajectory.x).max(axis=0) for trajectory in trajectories], axis=0)
        self._scale_ = np.asarray(scale)
        self.checks_ = self.check(list(trajectories))
        self.equations_ = self._table()
        return self

    def predict(self, X: Any) -> FloatArray:
        """Rates of change at rows of states (and time, where the equations depend on it), (n_rows, n_states)."""
        check_is_fitted(self)
        rows = state_rows(X, self.states_, self.time if self.with_time else None)
        programs = kernels.compile_programs(list(self.expressions_.values()), self._inputs())
        with np.errstate(all="ignore"):
            return np.asarray(kernels.derivatives(programs, np.ascontiguousarray(rows.T))[:, 0].T)

    def integrate(self, t: Any, x0: Any) -> FloatArray:
        """States at times ``t`` from ``x0`` at ``t[0]``, (n_times, n_states); ``nan`` from where they diverge."""
        return self.solve(t, x0).x

    def solve(self, t: Any, x0: Any) -> Solution:
        """As :meth:`integrate`, with the time and the reason where the integration broke off."""
        check_is_fitted(self)
        times, start = numeric_array(t, "t"), numeric_array(x0, "x0").reshape(-1)
        if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0.0).all():
            raise DataError("'t' must be at least two increasing times.")
        if start.shape != (len(self.states_),) or not np.isfinite(start).all():
            raise DataError(f"'x0' must have one finite value per state: {', '.join(self.states_)}. Got {x0!r}.")
        equations = list(self.expressions_.values())
        return integrate(equations, self._inputs(), times, start, scale=self._scale_)

    def check(self, X: Any, t: Any = None) -> list[TrajectoryCheck]:
        """Integrate from the first state of each trajectory and compare; tables as in :meth:`fit`.

        The first state is the smoothed one: noise in the start is not an error of the equations.
        """
        check_is_fitted(self)
        trajectories = self._trajectories(X, t)
        return [self._check(trajectory, curve) for trajectory, curve in trajectories]

    def score(self, X: Any, t: Any = None) -> float:
        """R² of the integrated trajectories, averaged over states and trajectories; -inf where one diverges."""
        checks = self.check(X, t)
        if any(check.diverged_at is not None for check in checks):
            return -math.inf
        return float(np.mean([1.0 - error**2 for check in checks for error in check.errors.values()]))

    def novelty_report(self, state: str) -> NoveltyReport:
        """What the smoothed rows say of each term of a state's equation: distinct, needed, determined."""
        check_is_fitted(self)
        if state not in self.expressions_:
            raise ParameterError(f"'state' must be one of {', '.join(self.states_)}. Got {state!r}.")
        if not hasattr(self, "curves_"):
            raise ParameterError(
                "A loaded model has no training rows: use sobolev_novelty.novelty on rows of your own."
            )
        X, y, weights = self._rows(self.states_.index(state))
        return novelty(self.expressions_[state], X, y, sample_weight=weights, names=self._inputs(), max_terms=None)

    def report(self) -> str:
        """The equations, how they follow the data, and the verdicts on their terms, in words."""
        check_is_fitted(self)
        parts = [str(self)]
        for state in self.states_:
            parts.append(f"d{state}/d{self.time}\n{self.novelty_report(state)}")
        return "\n\n".join(parts)

    def save(self, path: str | Path) -> None:
        """Write the equations as JSON: enough to predict and to integrate; no data, no fronts, no code."""
        check_is_fitted(self)
        content = {
            "format": FORMAT, "version": 1, "time": self.time, "with_time": self.with_time,
            "equations": {state: str(expression) for state, expression in self.expressions_.items()},
            "scale": self._scale_.tolist(), "checks": [asdict(check) for check in self.checks_],
            "notes": list(self.notes_),
        }  # fmt: skip
        write_json(Path(path), content)

    @classmethod
    def load(cls, path: str | Path) -> DynamicsRegressor:
        """Read equations that :meth:`save` wrote. Nothing in the file is executed."""
        content = read_json(Path(path))
        if content.get("format") != FORMAT or content.get("version") != 1:
            raise DataError(f"'{path}' does not hold equations of motion (format '{FORMAT}', version 1).")
        try:
            model = cls(time=_text(content["time"]), with_time=content["with_time"] is True)
            model.states_ = tuple(content["equations"])
            inputs = model._inputs()
            texts = {state: _text(text) for state, text in content["equations"].items()}
            model.expressions_ = {state: as_expression(text, inputs) for state, text in texts.items()}
            model._scale_ = np.array([_number(scale) for scale in content["scale"]])
            model.checks_ = [TrajectoryCheck.from_dict(check, model.states_) for check in content["checks"]]
            model.notes_ = tuple(_text(note) for note in content["notes"])
            if not model.states_ or model._scale_.shape != (len(model.states_),):
                raise ValueError("there is not one scale for each state")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"'{path}' does not hold whole equations of motion: {shortened(error)}.") from error
        return model

    def __str__(self) -> str:
        if not hasattr(self, "expressions_"):
            return repr(self)
        lines = [f"d{state}/d{self.time} = {short_text(e)}" for state, e in self.expressions_.items()]
        several = len(self.checks_) > 1
        lines += [f"Integrated{f', trajectory {k}' if several else ''}: {c}" for k, c in enumerate(self.checks_)]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes_)])

    def _repr_html_inner(self) -> str:
        return str(self._repr_mimebundle_()["text/html"])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the equations and how they follow the data."""
        import html

        text = str(self)
        return {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expressions_")

    # --- parts of fit

    def _inputs(self) -> tuple[str, ...]:
        return (*self.states_, self.time) if self.with_time else self.states_

    def _rows(self, state: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Smoothed states, the rate of one of them, and how far it is trusted, of all trajectories."""
        x = np.concatenate([curve.x for curve in self.curves_])
        if self.with_time:
            x = np.column_stack([x, np.concatenate([curve.t for curve in self.curves_])])
        y = np.concatenate([curve.rates[:, state] for curve in self.curves_])
        return x, y, np.concatenate([curve.trust[:, state] for curve in self.curves_])

    def _searched(self, state: int, verbose: bool | None) -> SymbolicRegressor:
        import pandas as pd

        default = SymbolicRegressor(
            budget=DEFAULT_BUDGET, constraints=Constraints(max_complexity=DEFAULT_MAX_COMPLEXITY)
        )
        model = default if self.regressor is None else clone(self.regressor)
        if self.random_state is not None:
            model.set_params(random_state=self.random_state)
        X, y, weights = self._rows(state)
        rows = np.linspace(0, len(y) - 1, min(len(y), MAX_ROWS)).astype(int)
        table = pd.DataFrame(X[rows], columns=list(self._inputs()))
        rate = pd.Series(y[rows], name=f"d{self.states_[state]}/d{self.time}")
        return model.fit(table, rate, weights[rows], verbose=verbose)

    def _chosen(self, trajectories: Sequence[Trajectory]) -> list[Expression]:
        """One equation per state: by the regressor's rule, or by their description of what was measured."""
        chosen = [self.models_[name].expression_ for name in self.states_]
        if self.select == "regressor":
            return chosen
        fronts = [list(self.models_[name].equations_["expression"]) for name in self.states_]
        return SystemChoice(trajectories, self.curves_, self._inputs()).best(chosen, fronts)

    def _trajectories(self, X: Any, t: Any) -> list[tuple[Trajectory, SmoothCurve]]:
        if isinstance(X, list) and X and all(isinstance(x, Trajectory) for x in X):  # fit's own, smoothed already
            return list(zip(X, self.curves_, strict=True))
        trajectories, _ = as_trajectories(X, t, time=self.time, trajectory=self.trajectory)
        if trajectories[0].names != self.states_ and hasattr(X, "columns"):
            raise DataError(
                f"'X' must have the states {', '.join(self.states_)}. Got {', '.join(trajectories[0].names)}."
            )
        return [(trajectory, smooth(trajectory, self.derivative)) for trajectory in trajectories]

    def _check(self, trajectory: Trajectory, curve: SmoothCurve) -> TrajectoryCheck:
        found = self.solve(trajectory.t, curve.x[0])
        known = np.isfinite(found.x).all(axis=1)
        spread = np.std(trajectory.x, axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        off = np.abs(found.x[known] - trajectory.x[known]) / spread
        lost = np.flatnonzero((np.abs(found.x[known] - curve.x[known]) > LOST * spread).any(axis=1))
        return TrajectoryCheck(
            dict(zip(self.states_, np.sqrt(np.mean(off**2, axis=0)).tolist())),
            float(trajectory.t[known][lost[0]]) if len(lost) else None,
            found.diverged_at,
            found.reason,
        )

    def _table(self) -> pd.DataFrame:
        import pandas as pd

        from sobolev_novelty.metric.batch import novelties

        rows = []
        for k, (state, expression) in enumerate(self.expressions_.items()):
            X, y, weights = self._rows(k)
            residual = y - self.predict(X)[:, k]
            centred = y - np.average(y, weights=weights)
            total = float(weights @ centred**2)
            nu = novelties([expression], X, names=self._inputs())[0].nu
            rows.append(
                {
                    "state": state,
                    "expression": expression,
                    "complexity": expression.complexity,
                    "r2_rate": 1.0 - float(weights @ residual**2) / total if total > 0.0 else math.nan,
                    "misfit": max(check.errors[state] for check in self.checks_),
                    "min_novelty": float(np.min(nu)) if len(nu) else math.nan,
                }
            )
        return pd.DataFrame(rows)


__all__ = ["METHODS", "DynamicsRegressor", "TrajectoryCheck"]
