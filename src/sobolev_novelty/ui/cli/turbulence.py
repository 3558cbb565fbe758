"""``sobolev turbulence``: select a closure, solve a flow, compare it with DNS, draw figures."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sobolev_novelty.core.output import check_output, write_arrays, write_whole
from sobolev_novelty.core.progress import OnProgress, Step
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.report.render.progress_bar import progress_bar
from sobolev_novelty.ui.cli.errors import one_line_errors
from sobolev_novelty.ui.cli.options import OLD_NAMES, JsonOption, QuietOption, print_json
from sobolev_novelty.ui.cli.screen import echo

if TYPE_CHECKING:
    from sobolev_novelty.lab.turbulence.selecting.closures import Closure

turbulence_app = typer.Typer(
    help="Closures for periodic-hill flow: select, solve, compare, figure.",
    no_args_is_help=True,
    context_settings=OLD_NAMES,
)

DEFAULT_STUDY = Path("experiments/turbulence_comparison.toml")
DEFAULT_RESULTS = Path("results/turbulence")


@contextmanager
def _working(words: str, quiet: bool, as_json: bool) -> Iterator[OnProgress]:
    """A progress bar, unless it is not wanted; errors become one line."""
    with (
        one_line_errors(as_json),
        progress_bar(words, is_shown=False if quiet or as_json else None) as on_progress,
    ):
        yield on_progress


def _print_written(paths: list[Path], as_json: bool) -> None:
    if as_json:
        print_json([str(path) for path in paths])
    else:
        echo("\n".join(f"Wrote {path}" for path in paths))


@turbulence_app.command()
def prepare(
    *,
    dsrrans: Annotated[Path, typer.Argument(help="Checkout of github.com/thw1021/DSRRANS.")],
    xiao: Annotated[Path, typer.Argument(help="Checkout of github.com/xiaoh/para-database-for-PIML.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("turbulence"),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make the data files, DNS included, from the two public repositories, verifying their checksums."""
    with _working("Preparing", quiet, as_json) as on_progress:
        from sobolev_novelty.lab.turbulence.selecting import prepare as preparation

        paths = preparation.prepare(dsrrans, xiao, out, on_progress)
    _print_written(paths, as_json)
    if not as_json:
        echo(f"Set SOBOLEV_DATA to {out.resolve().parent}")


@turbulence_app.command()
def select(
    *,
    rule: Annotated[str, typer.Option(help="greedy, sobolev, threshold, mcts or sn-mcts.")] = "sobolev",
    n_terms: Annotated[int, typer.Option("--terms", help="Number of terms (an upper limit for the tree search).")] = 10,
    forward_to: Annotated[int | None, typer.Option(help="Select this many terms first, then prune back.")] = None,
    max_degree: Annotated[int, typer.Option(help="Largest total degree of a monomial.")] = 12,
    seed: Annotated[int, typer.Option(help="Seed of the tree search.")] = 0,
    out: Annotated[Path, typer.Option(help="Closure file to write.")] = Path("closure.json"),
    form: Annotated[str, typer.Option("--print", help="Also print the closure as latex, python or cpp.")] = "",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find a closure in the regression data and write it to a file."""
    with _working("Selecting", quiet, as_json) as on_progress:
        from sobolev_novelty.lab.turbulence.selecting import data as hill
        from sobolev_novelty.lab.turbulence.selecting.tensors import dictionary
        from sobolev_novelty.lab.turbulence.solving.problem import closure_problem, closure_report
        from sobolev_novelty.lab.turbulence.studying.store import plain

        begin = time.perf_counter()
        check_output(out)
        data = hill.load_regression()
        on_progress(Step(0, 2, "factoring the dictionary"))
        problem = closure_problem(data, dictionary(max_degree))
        closure, kept, path = _search(rule, problem, n_terms, forward_to=forward_to, seed=seed, on_progress=on_progress)
        fit, report = problem.fit(kept), closure_report(closure, data)
        printed = _print_form(closure, form)
        write_whole(out, closure.to_json() + "\n")
    summary = {
        "rule": rule,
        "n_terms": len(closure),
        "mse": fit.mse,
        "r2": 1 - fit.mse / problem.variance,
        "condition": fit.condition,
        "max_coefficient": float(abs(fit.coefficients).max()),
        "seconds": round(time.perf_counter() - begin, 2),
        "file": str(out),
        "terms": [
            {"term": str(term), "coefficient": c, "novelty": float(nu)}
            for term, c, nu in zip(closure.terms, closure.coefficients, report.nu)
        ],
        "path": path,
    }
    if as_json:
        print_json(plain(summary) | ({"printed": printed} if printed else {}))
        return
    table = Table("term", "coefficient", "novelty", title=f"{rule}: MSE {fit.mse:.5f}, condition {fit.condition:.2g}")
    for entry in summary["terms"]:  # type: ignore[attr-defined]
        table.add_row(entry["term"], f"{entry['coefficient']:.5g}", f"{entry['novelty']:.3f}")
    Console().print(table)
    if printed:
        echo(printed)
    echo(f"Wrote {out} in {summary['seconds']} s.")


def _search(
    rule: str, problem: Any, n_terms: int, *, forward_to: int | None, seed: int, on_progress: OnProgress
) -> tuple[Closure, list[int], list[dict[str, Any]]]:
    import numpy as np

    from sobolev_novelty.lab.turbulence.selecting.selection import rule_named, select_closure
    from sobolev_novelty.lab.turbulence.selecting.tree_search import TreeSearch, tree_search
    from sobolev_novelty.search.contract.engine import SobolevGuidance

    if rule in ("greedy", "sobolev", "threshold"):
        on_progress(Step(1, 2, "selecting terms"))
        closure, kept, path = select_closure(problem, n_terms, rule_named(rule), forward_to=forward_to)
        return closure, kept, [{**asdict(step), "term": str(step.term)} for step in path.steps]
    if rule not in ("mcts", "sn-mcts"):
        raise ParameterError(f"--rule must be greedy, sobolev, threshold, mcts or sn-mcts. Got {rule!r}.")
    options = TreeSearch(max_terms=n_terms, guidance=SobolevGuidance() if rule == "sn-mcts" else None)
    found = tree_search(problem, options, np.random.default_rng(seed), on_progress)
    return found.closure, found.indices, []


def _print_form(closure: Closure, form: str) -> str:
    forms = {"": lambda: "", "latex": closure.to_latex, "python": closure.to_python, "cpp": closure.to_cpp}
    if form not in forms:
        raise ParameterError(f"--print must be latex, python or cpp. Got {form!r}.")
    return forms[form]()


@turbulence_app.command()
def solve(
    *,
    closure_file: Annotated[str, typer.Argument(help="Closure file, dsrrans_model1, dsrrans_model2 or none.")],
    alpha: Annotated[float, typer.Option(help="α1, factor of the closure stress.")] = 1.0,
    solver: Annotated[str, typer.Option(help="embedded, openfoam or feedback.")] = "embedded",
    out: Annotated[Path | None, typer.Option(help="Write the field: .npz.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute the velocity field under a closure and compare it with DNS.

    The figures of the DNS are quoted; the field error needs the DNS fields (sobolev turbulence prepare).
    """
    with _working("Solving", quiet, as_json) as on_progress:
        from sobolev_novelty.lab.turbulence.selecting import data as hill
        from sobolev_novelty.lab.turbulence.solving.solvers import make_solver
        from sobolev_novelty.lab.turbulence.studying.runs import flow_row
        from sobolev_novelty.lab.turbulence.studying.store import plain

        if out is not None:
            check_output(out)
        closure = _read_closure(closure_file)
        engine = make_solver(solver, hill.load_base_flow())
        result = engine.solve(closure, alpha, on_progress)
        row = flow_row(closure, alpha, result, engine, {})
        if out is not None:
            write_arrays(out, {"nodes": engine.base.nodes, "U": result.U, "p": result.p})
    if as_json:
        print_json(plain(row) | {"dns": dict(hill.DNS_MEASURES)})
    else:
        dns = {"measures": hill.DNS_MEASURES, "status": "Xiao et al. (2020), quoted"}
        _print_measures([(Path(closure_file).stem, row), ("DNS", dns)], "The closure compared with DNS")
        echo(f"{solver}: {result.status}, {result.seconds:.1f} s.")
        if not hill.has_dns():
            echo("The field error needs the DNS fields, which are not part of the package: see docs/turbulence.md.")
    if not result.is_converged:
        raise typer.Exit(2)


def _read_closure(name: str) -> Closure | None:
    from sobolev_novelty.lab.turbulence.selecting import data as hill
    from sobolev_novelty.lab.turbulence.selecting.closures import Closure

    if name == "none":
        return None
    if name.startswith("dsrrans_"):
        return hill.load_published(name)
    path = Path(name)
    if not path.is_file():
        raise DataError(f"'{name}' is not a closure file. Write one with: sobolev turbulence select --out {name}")
    try:
        return Closure.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(
            f"'{name}' is not a closure file: {error}. Write one with: sobolev turbulence select"
        ) from error


@turbulence_app.command()
def compare(
    *,
    experiment: Annotated[Path, typer.Argument(help="Experiment file.")] = DEFAULT_STUDY,
    results: Annotated[
        Path, typer.Option(help="Folder of stored runs; finished runs are not repeated.")
    ] = DEFAULT_RESULTS,
    solver: Annotated[
        str, typer.Option(help="embedded runs the study; openfoam or feedback run its stored closures.")
    ] = "embedded",
    only: Annotated[
        list[str] | None, typer.Option("--row", help="Rows to run in the other solver; all by default.")
    ] = None,
    grid: Annotated[bool, typer.Option("--grid/--no-grid", help="Also run the grid of term counts and α1.")] = True,
    docs: Annotated[Path | None, typer.Option(help="Page whose tables are regenerated from the stored runs.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run an experiment file, storing each run, and print its table."""
    with _working("Comparing", quiet, as_json) as on_progress:
        from sobolev_novelty.lab.turbulence.studying.study import run_study

        outcome = run_study(
            experiment, results, solver=solver, with_grid=grid, only=only or (), on_progress=on_progress
        )
        if docs is not None:
            from sobolev_novelty.lab.turbulence.studying.tables import all_tables, refresh_page

            refresh_page(docs, all_tables(experiment.parent, results))
    if as_json:
        print_json(outcome.to_dict())
        return
    _print_measures(outcome.rows, outcome.name)
    for line in outcome.sentences:
        echo(line)


def _print_measures(rows: list[tuple[str, dict[str, Any]]], title: str) -> None:
    table = Table(
        "row", "α1", "reattachment", "(interpolated)", "max reversed, 1e-3 m/s", "field error", "status", title=title
    )
    for name, row in rows:
        found = row.get("measures") or {}
        numbers = [found.get(key) for key in ("reattachment", "reattachment_interpolated")]
        reverse, error = found.get("max_reversed"), found.get("field_error")
        table.add_row(
            name,
            "" if row.get("alpha") is None else f"{row['alpha']:.3g}",
            *("-" if value is None else f"{value:.3f}" for value in numbers),
            "-" if reverse is None else f"{1e3 * reverse:.3f}",
            "-" if error is None else f"{100 * error:.2f} %",
            str(row.get("status", "")),
        )
    Console(width=None if sys.stdout.isatty() else 130).print(table)


@turbulence_app.command()
def figure(
    *,
    kind: Annotated[str, typer.Argument(help="fields, streamlines, profiles, wall-shear, selection or all.")] = "all",
    experiment: Annotated[Path, typer.Option(help="Experiment file whose stored runs are drawn.")] = DEFAULT_STUDY,
    results: Annotated[Path, typer.Option(help="Folder of stored runs.")] = DEFAULT_RESULTS,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = DEFAULT_RESULTS / "figures",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw figures from stored runs; velocity fields that were not kept are computed again."""
    with _working("Drawing", quiet, as_json) as on_progress:
        from sobolev_novelty.lab.turbulence.studying.study_figures import draw_study

        paths = draw_study(kind, experiment, results, out, on_progress)
    _print_written(paths, as_json)
