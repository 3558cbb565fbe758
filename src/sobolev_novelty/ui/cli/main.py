"""The command line ``sobolev``: one short handler per verb, heavy imports inside.

Exit codes: 0 done (``accepts``: accepted), 1 bad input or a file that could not be written, said in one line, 2 wrong
usage, 3 ``accepts`` rejects.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.ui.cli.app import app_command
from sobolev_novelty.ui.cli.commands import Commands
from sobolev_novelty.ui.cli.errors import one_line_errors
from sobolev_novelty.ui.cli.fit import EARLIER_NAMES, fit
from sobolev_novelty.ui.cli.llm import llm_app
from sobolev_novelty.ui.cli.next import next_command
from sobolev_novelty.ui.cli.options import (
    EquationOptions,
    FormatOptions,
    JsonOption,
    MeasureOptions,
    TableArgument,
    earlier_names,
    json_text,
    listed,
    print_json,
    table_source,
    with_groups,
)
from sobolev_novelty.ui.cli.screen import echo, fail_after_printing, open_standard_streams, shown

if TYPE_CHECKING:
    from sobolev_novelty.report.reporting import NoveltyReport
    from sobolev_novelty.ui.match import MatchedEquation

#: Exit code of ``sobolev accepts`` for a formula that is rejected: neither bad input (1) nor wrong usage (2).
REJECTED = 3

app = typer.Typer(
    name="sobolev",
    cls=Commands,
    help="Which terms of your equation are distinct, needed and determined by your data?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _match(equation: EquationOptions, written: FormatOptions) -> MatchedEquation:
    """Equation and table, read and matched."""
    from sobolev_novelty.report.render.progress_bar import progress_bar
    from sobolev_novelty.tables.files import read_table
    from sobolev_novelty.ui.match import match_equation

    with progress_bar("Reading"):
        table = read_table(table_source(equation.path), written.table_format())
    text, matching = equation.read()
    return match_equation(text, table, **matching)


def _print_report(report: NoveltyReport) -> None:
    import shutil

    from rich.console import Console

    from sobolev_novelty.report.render.terminal import report_table

    if sys.stdout.isatty():
        width = shutil.get_terminal_size((100, 24)).columns
        Console(highlight=False, soft_wrap=False).print(report_table(shown(report.to_dict()), width))
    else:
        echo(str(report))


def _print_notes(notes: Sequence[str]) -> None:
    """Notes that are not part of the result go to standard error."""
    for note in notes:
        echo(f"Note: {note}", err=True)


@app.command(context_settings=earlier_names(seed="random-state"))
@with_groups
def report(
    equation: EquationOptions,
    written: FormatOptions,
    measure: MeasureOptions,
    raw: Annotated[bool, typer.Option("--raw", help="Derivatives along raw, not standardized, inputs.")] = False,
    tangent: Annotated[
        bool, typer.Option("--tangent", help="Derivatives along the data only, for inputs on a curve or surface.")
    ] = False,
    free: Annotated[
        bool, typer.Option("--free-intercept", help="Take the constant out of every term before novelty is measured.")
    ] = False,
    bootstrap: Annotated[int, typer.Option(help="Resamples for intervals; 0 for none.")] = 0,
    random_state: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    chunk_rows: Annotated[
        int | None, typer.Option(help="Read DATA this many rows at a time. Default: only where the file is large.")
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write the report: .html, .json, .tex, .txt, or a figure as .png, .svg or .pdf. May be repeated."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(hidden=True)] = None,
    plot: Annotated[Path | None, typer.Option(hidden=True)] = None,
    latex: Annotated[bool, typer.Option("--latex", hidden=True)] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which terms of EQUATION are distinct and needed on the rows of DATA and, with --target, determined."""
    from sobolev_novelty.core.output import write_or_rescue

    with one_line_errors(as_json):
        if latex and as_json:
            raise ParameterError("--latex and --json cannot be combined. Choose one.")
        paths = [*(out or []), *(path for path in (html, plot) if path is not None)]
        _check_report_paths(paths)
        if raw and tangent:
            raise ParameterError("--raw and --tangent cannot be combined. Choose one.")
        options = measure.arguments() | {"coordinates": "raw" if raw else "tangent" if tangent else "standardized"}
        options["intercept"] = "free" if free else "term"
        found = _report(
            equation, written, options, bootstrap=bootstrap, random_state=random_state, chunk_rows=chunk_rows
        )
        if as_json:
            print_json(found.to_dict())
        elif latex:
            echo(found.latex_table(), nl=False)
        else:
            _print_report(found)
        problems = [write_or_rescue(path, _report_writer(found, path))[1] for path in paths]
    fail_after_printing("" if found.has_words else found.sentence, *problems)


def _report(
    equation: EquationOptions, written: FormatOptions, options: dict[str, Any], *, bootstrap: int,
    random_state: int, chunk_rows: int | None,
) -> NoveltyReport:  # fmt: skip
    """The report, in chunks where that was asked for or the file is large."""
    from sobolev_novelty.report.render.progress_bar import progress_bar
    from sobolev_novelty.tables.file_chunks import FileChunks, is_large
    from sobolev_novelty.ui.match import streamed_report

    if chunk_rows is not None and bootstrap:
        raise ParameterError("--bootstrap needs all rows in memory: leave out --chunk-rows, or --bootstrap.")
    if chunk_rows is not None and str(equation.path) == "-":
        raise ParameterError("Standard input is read whole: leave out --chunk-rows, or give a file.")
    if chunk_rows is None and (bootstrap or not is_large(equation.path)):
        matched = _match(equation, written)
        with progress_bar("Computing") as on_progress:
            return matched.report(**options, n_bootstrap=bootstrap, random_state=random_state, on_progress=on_progress)
    chunks = FileChunks(equation.path, chunk_rows, written.table_format())
    text, matching = equation.read()
    if matching.get("target") is not None:
        _print_notes(["The file is read in parts; whether coefficients are determined takes all rows at once."])
    with progress_bar("Reading") as on_progress:
        return streamed_report(text, chunks, **matching, **options, on_progress=on_progress)


def _check_report_paths(paths: Sequence[Path]) -> None:
    from sobolev_novelty.core.output import check_output
    from sobolev_novelty.errors import require

    figures = (".png", ".svg", ".pdf")
    for path in paths:
        check_output(path, (".html", ".json", ".tex", ".txt", *figures))
    if any(path.suffix.lower() in figures for path in paths):
        require("matplotlib", extra="plot")


def _report_writer(found: NoveltyReport, path: Path) -> Callable[[Path], object]:
    from sobolev_novelty.core.output import write_figure, write_whole

    texts: dict[str, Callable[[], str]] = {
        ".json": lambda: json_text(found.to_dict()) + "\n",
        ".tex": found.latex_table,
        ".txt": lambda: f"{found}\n",
    }
    suffix = path.suffix.lower()
    if suffix == ".html":
        return found.to_html
    if suffix in texts:
        return lambda path: write_whole(path, texts[suffix]())
    return lambda path: write_figure(path, found.plot())


@app.command()
@with_groups
def prune(
    equation: EquationOptions, written: FormatOptions, measure: MeasureOptions, as_json: JsonOption = False
) -> None:
    """Delete terms of EQUATION that do not pay and refit the others, unless accuracy and length together get worse."""
    from sobolev_novelty.report.render.progress_bar import progress_bar

    with one_line_errors(as_json):
        matched = _match(equation, written)
        with progress_bar("Pruning"):
            result = matched.prune(**measure.arguments())
        if as_json:
            print_json(result.to_dict())
        else:
            echo(str(result))


@app.command()
@with_groups
def intervals(
    equation: EquationOptions,
    written: FormatOptions,
    level: Annotated[float, typer.Option(help="Probability with which an interval covers the true value.")] = 0.95,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation of the target's measurement errors. Default: estimated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say how well the rows of DATA determine the constants of EQUATION: profile-likelihood intervals."""
    with one_line_errors(as_json):
        matched = _match(equation, written)
        found = matched.intervals(level=level, sigma=sigma)
        if as_json:
            print_json(found.to_dict() | {"notes": list(matched.notes)})
        else:
            echo(repr(found))
            _print_notes(matched.notes)


@app.command()
@with_groups
def accepts(
    equation: EquationOptions, written: FormatOptions, measure: MeasureOptions, as_json: JsonOption = False
) -> None:
    """The corpus filter: exit code 0 where every term of EQUATION is novel on DATA, 3 where one is not."""
    with one_line_errors(as_json):
        matched = _match(equation, written)
        verdict = matched.accepts(**measure.arguments())
        if as_json:
            lowest = None if math.isnan(verdict.min_novelty) else verdict.min_novelty
            found = {"accepted": verdict.accepted, "reason": verdict.reason, "min_novelty": lowest}
            print_json(found | {"notes": list(matched.notes)})
        else:
            echo(f"{'accepted' if verdict else 'rejected'}: {verdict.reason}")
            _print_notes(matched.notes)
    if not verdict:
        raise typer.Exit(REJECTED)


app.command(context_settings=EARLIER_NAMES)(fit)


@app.command()
@with_groups
def predict(
    model: Annotated[Path, typer.Argument(help="What 'sobolev fit --out' wrote.")],
    data: TableArgument,
    written: FormatOptions,
    index: Annotated[int | None, typer.Option(help="Row of the front; by default the chosen equation.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the predictions: .csv, .tsv or .parquet.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict with a saved model: one prediction per row, empty (nan) where an input is missing."""
    from sobolev_novelty.search.model.regressor import SymbolicRegressor
    from sobolev_novelty.ui.fit import predict_table

    with one_line_errors(as_json):
        loaded = SymbolicRegressor.load(model)
        found = predict_table(loaded, table_source(data), written=written.table_format(), index=index, out=out)
        if as_json:
            print_json(found.to_dict())
        else:
            echo(str(found))
            _print_notes(found.notes)
    fail_after_printing(found.problem)


@app.command()
def export(
    equation: Annotated[
        str | None, typer.Argument(metavar="[EQUATION]", help="Formula as text; left out with --model.")
    ] = None,
    to: Annotated[str, typer.Option(help="Language: numpy, jax, torch, c, cpp, julia, excel, latex, sympy.")] = "numpy",
    model: Annotated[Path | None, typer.Option(help="What 'sobolev fit --out' wrote, instead of EQUATION.")] = None,
    names: Annotated[
        str | None, typer.Option(help="Columns in their order, separated by commas. Default: x0, x1, …")
    ] = None,
    function: Annotated[str, typer.Option(help="Name of the function that is written.")] = "f",
    precision: Annotated[int | None, typer.Option(help="Significant digits of the constants. Default: all.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write EQUATION in another language: NumPy, JAX, PyTorch, C, Julia, an Excel formula, LaTeX or SymPy."""
    from sobolev_novelty.core.output import write_or_rescue, write_whole
    from sobolev_novelty.language.parsing import parse
    from sobolev_novelty.search.model.regressor import SymbolicRegressor
    from sobolev_novelty.search.model.settings import names_of

    problem = ""
    with one_line_errors(as_json):
        columns = listed(names)
        if (equation is None) == (model is None):
            raise ParameterError("Give EQUATION or --model, and not both.")
        if model is not None:
            loaded = SymbolicRegressor.load(model)
            expression, columns = loaded.expression_, columns or list(names_of(loaded))
        else:
            expression = parse(equation or "", names=columns)
        text = str(expression.to(to, names=columns, function_name=function, precision=precision))
        if out is not None:
            _, problem = write_or_rescue(out, lambda path: write_whole(path, text + "\n"))
        elif as_json:
            print_json({"equation": str(expression), "language": to, "code": text})
        else:
            echo(text)
    fail_after_printing(problem)


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Also write everything as one page: .html.")] = None,
    html: Annotated[Path | None, typer.Option(hidden=True)] = None,
    as_json: JsonOption = False,
) -> None:
    """The main job on built-in examples: a law, a bloated formula, the same on other data, pruning, feedback."""
    from sobolev_novelty.core.output import check_output, write_or_rescue, write_whole
    from sobolev_novelty.ui import demo as demonstration

    problem = ""
    with one_line_errors(as_json):
        path = out or html
        if path is not None:
            check_output(path, (".html",))
        cases = []
        for case in demonstration.cases():
            cases.append(case)
            if not as_json:
                echo(f"\n── {case.title} " + "─" * max(3, 76 - len(case.title)))
                echo(f"{case.words}\n")
                if case.report is not None:
                    _print_report(case.report)
                if case.output:
                    echo(case.output)
        if as_json:
            print_json({"cases": [case.to_dict() for case in cases]})
        if path is not None:
            page = demonstration.page(cases)
            _, problem = write_or_rescue(path, lambda path: write_whole(path, page))
    fail_after_printing(problem)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """What is compiled, which extras are present, where data is looked for."""
    from sobolev_novelty.ui.doctor import diagnose

    found = diagnose()
    if as_json:
        print_json(found.to_dict())
    else:
        echo(str(found))


def _print_version(wanted: bool) -> None:
    if wanted:
        from sobolev_novelty.ui.doctor import package_version

        echo(f"sobolev-novelty {package_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Which terms of your equation are distinct, needed and determined by your data?"""


app.command("app")(app_command)
app.command("next")(next_command)
app.add_typer(llm_app, name="llm")


def _shielded(arguments: list[str]) -> list[str]:
    """An equation that begins with a minus is not an option: these verbs have no options with a single dash."""
    if not arguments or arguments[0] not in ("report", "prune", "intervals", "accepts", "export", "next"):
        return arguments
    return [f" {a}" if a.startswith("-") and not a.startswith("--") and len(a) > 1 else a for a in arguments]


def main() -> None:
    """Entry point of ``sobolev``."""
    open_standard_streams()
    app(args=_shielded(sys.argv[1:]), prog_name="sobolev")


if __name__ == "__main__":
    main()
