"""``sobolev fit``: the arguments of the regressor in its own words, and around them what a table and a shell need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.registry import engine_named, engine_names
from sobolev_novelty.ui.cli.errors import one_line_errors, stopped_by_signals
from sobolev_novelty.ui.cli.llm import ProposerOptions
from sobolev_novelty.ui.cli.options import (
    FeaturesOption,
    FormatOptions,
    TableArgument,
    earlier_names,
    in_panel,
    listed,
    of_columns,
    print_json,
    table_source,
    with_groups,
)
from sobolev_novelty.ui.cli.screen import echo, fail_after_printing

if TYPE_CHECKING:
    from sobolev_novelty.search.model.regressor import SymbolicRegressor
    from sobolev_novelty.search.problem.constraints import Constraints, Units

_of_limits, _of_run = in_panel("Constraints and units"), in_panel("Budget and islands")
_of_output = in_panel("Output")


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The arguments of the regressor, one option for each."""

    engine: Annotated[str, typer.Option(help=f"How forms are proposed: {', '.join(engine_names())}.")] = "genetic"
    novelty: Annotated[bool, typer.Option(help="Whether the Sobolev signal guides the search.")] = True
    budget: Annotated[float | None, typer.Option(help="Seconds of the search; with --time for each state.")] = 60.0
    operators: Annotated[str | None, typer.Option(help="Operators, separated by commas. Default: usual ones.")] = None
    max_complexity: Annotated[int | None, typer.Option(help="Nodes of the largest equation. More: below.")] = None
    loss: Annotated[str, typer.Option(help="What is minimised: squared, absolute or huber.")] = "squared"
    guesses: Annotated[
        str | None, typer.Option(help="Equations, separated by semicolons; or an engine that gives some: transformer.")
    ] = None
    select: Annotated[str, typer.Option(help="Rule of choice: price, score, distinct, validation or one-se.")] = "price"
    noise: Annotated[str, typer.Option(help="Noise of the target: auto, constant, relative, counts or power.")] = "auto"
    units: Annotated[str | None, typer.Option(help="Of columns and target: 'm=kg, v=m/s, E=J'.")] = None
    parallel: Annotated[int, typer.Option(help="Cores, -1 for all. They do not change the result.")] = 1
    random_state: Annotated[int, typer.Option(help="Seed of the search.")] = 0


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """Which columns are what."""

    target: Annotated[str | None, of_columns(help="Column to predict; left out with --time.")] = None
    features: FeaturesOption = None
    drop: Annotated[str | None, of_columns(help="Columns to leave out, separated by commas.")] = None
    sample_weight: Annotated[str | None, of_columns(help="Weights of the rows.")] = None
    sigma: Annotated[str | None, of_columns(help="Standard deviations of the target's noise.")] = None
    time: Annotated[str | None, of_columns(help="Time: equations of motion of the other columns.")] = None
    trajectory: Annotated[str | None, of_columns(help="With --time, tells trajectories apart.")] = None


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Which equations are allowed beyond their size."""

    max_depth: Annotated[int | None, _of_limits(help="Nodes from the root to the deepest leaf.")] = None
    operator_costs: Annotated[str | None, _of_limits(help="Complexity of operators: 'sin=3, exp=2'.")] = None
    nesting: Annotated[
        str | None,
        _of_limits(help="How many of one inside another: 'sin(cos)=0, exp(exp)=1'."),
    ] = None
    monotone: Annotated[str | None, _of_limits(help="'x=increasing, t=decreasing'.")] = None
    template: Annotated[str | None, _of_limits(help="Shape of the equation: 'a*f(x) + g(t)'.")] = None
    pure_constants: Annotated[bool, _of_limits("--pure-constants", help="With --units: constants carry none.")] = False

    def constraints(self, max_complexity: int | None) -> Constraints:
        """These and the largest size as the regressor takes them."""
        from sobolev_novelty.search.problem.constraints import Constraints

        return Constraints(
            max_complexity=max_complexity,
            operator_costs=_pairs("operator_costs", self.operator_costs, "sin=3, exp=2", whole=True),
            nesting=_nesting(self.nesting),
            max_depth=self.max_depth,
            monotone=_pairs("monotone", self.monotone, "x=increasing, t=decreasing"),
            template=self.template,
        )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How long, and on what."""

    max_evaluations: Annotated[int | None, _of_run(help="Forms to fit at most, beside the seconds.")] = None
    islands: Annotated[
        int | None,
        _of_run(help="Searches side by side that tell each other what they found. Another number, another result."),
    ] = None
    schedule: Annotated[
        str | None, _of_run(help="Families of structural forms, separated by commas; with a minus all but these.")
    ] = None
    checkpoint: Annotated[Path | None, _of_run(help="File from which a run that was killed is continued.")] = None


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Where the result goes."""

    out: Annotated[Path | None, _of_output(help="Write the model: .json.")] = None
    quiet: Annotated[bool, _of_output("--quiet", help="No progress display.")] = False
    as_json: Annotated[bool, _of_output("--json", help="Print JSON and nothing else.")] = False


@with_groups
def fit(
    data: TableArgument,
    *,
    search: SearchOptions,
    columns: ColumnOptions,
    limits: LimitOptions,
    run: RunOptions,
    proposer: ProposerOptions,
    written: FormatOptions,
    output: OutputOptions,
) -> None:
    """Find an equation for a table, preferring terms that the others cannot imitate.

    With a column of time, find the equations of motion: the rate of change of every other column.
    """
    from sobolev_novelty.dynamics.regressor import DynamicsRegressor
    from sobolev_novelty.ui.fit import FitSummary, fit_table
    from sobolev_novelty.ui.motion import MotionSummary, fit_trajectories, refuse_for_trajectories

    if columns.time is None and columns.target is None:
        raise typer.BadParameter("Name the column to predict, or the column of time (--time).", param_hint="--target")
    summary: FitSummary | MotionSummary
    with stopped_by_signals(), one_line_errors(output.as_json):
        model = _regressor(search, limits, run, proposer)
        reading: dict[str, Any] = {
            "written": written.table_format(), "features": listed(columns.features),
            "drop": listed(columns.drop) or (), "out": output.out,
            "verbose": False if output.as_json or output.quiet else None,
        }  # fmt: skip
        if columns.time is None:
            summary = fit_table(
                model, table_source(data), target=columns.target or "", weights=columns.sample_weight,
                sigma=columns.sigma, checkpoint=run.checkpoint, **reading,
            )  # fmt: skip
        else:
            refuse_for_trajectories(
                columns.time, target=columns.target, sample_weight=columns.sample_weight, sigma=columns.sigma,
                checkpoint=run.checkpoint,
            )  # fmt: skip
            motion = DynamicsRegressor(model, time=columns.time, trajectory=columns.trajectory)
            summary = fit_trajectories(motion, table_source(data), **reading)
        if output.as_json:
            print_json(summary.to_dict())
        else:
            echo(str(summary))
        fail_after_printing(summary.problem)


def _regressor(
    search: SearchOptions, limits: LimitOptions, run: RunOptions, proposer: ProposerOptions
) -> SymbolicRegressor:
    from sobolev_novelty.search.islands.cores import Islands
    from sobolev_novelty.search.loop.loop import Budget
    from sobolev_novelty.search.model.regressor import SymbolicRegressor

    engine, source = proposer.applied_to(search.engine)
    if run.schedule is not None:
        engine = (engine_named(engine) if isinstance(engine, str) else engine).set_params(structural=run.schedule)
    return SymbolicRegressor(
        engine, novelty=search.novelty, budget=Budget(run.max_evaluations, search.budget),
        operators=listed(search.operators) or None, constraints=limits.constraints(search.max_complexity),
        loss=search.loss, guesses=_guesses(search.guesses) if source is None else source, select=search.select,
        noise=search.noise, units=_units(search.units, limits.pure_constants),
        parallel=search.parallel if run.islands is None else Islands(run.islands, threads=search.parallel),
        random_state=search.random_state,
    )  # fmt: skip


def _guesses(text: str | None) -> str | list[str] | None:
    """An engine by its name, or equations."""
    if text is None or text in engine_names():
        return text
    return [guess.strip() for guess in text.split(";") if guess.strip()]


def _units(text: str | None, is_pure: bool) -> Units | None:
    from sobolev_novelty.search.problem.constraints import Units

    given = _pairs("units", text, "m=kg, v=m/s")
    if given is None and is_pure:
        raise ParameterError(
            "'pure_constants' needs 'units', the units of the columns.", arguments=("pure_constants", "units")
        )
    return None if given is None else Units(given, constants=not is_pure)


def _pairs(argument: str, text: str | None, example: str, *, whole: bool = False) -> dict[str, Any] | None:
    """Names and what they stand for, separated by commas."""
    if text is None:
        return None
    found: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not (name and sign and value) or (whole and not value.isdecimal()):
            raise ParameterError(f"'{argument}' must be written as in '{example}'. Got '{part}'.")
        found[name] = int(value) if whole else value
    return found


def _nesting(text: str | None) -> dict[str, dict[str, int]] | None:
    """``sin(cos)=0``: no cosine inside a sine."""
    example = "sin(cos)=0, exp(exp)=1"
    found: dict[str, dict[str, int]] = {}
    for pair, limit in (_pairs("nesting", text, example, whole=True) or {}).items():
        match = re.fullmatch(r"(\w+)\((\w+)\)", pair)
        if match is None:
            raise ParameterError(f"'nesting' must be written as in '{example}'. Got '{pair}={limit}'.")
        found.setdefault(match[1], {})[match[2]] = limit
    return found or None


#: What options were called before 0.2.
EARLIER_NAMES = earlier_names(
    seconds="budget", complexity="max-complexity", evaluations="max-evaluations", jobs="parallel", seed="random-state",
    weights="sample-weight",
)  # fmt: skip
