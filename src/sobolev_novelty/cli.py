"""The command line ``sobolev``: one short handler per verb, heavy imports inside.

Exit codes: 0 done (``accepts``: accepted), 1 bad input, said in one line, 2 wrong usage, 3 ``accepts`` rejects.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sobolev_novelty.errors import DataError, ParameterError, ParseError, SobolevError
from sobolev_novelty.search.registry import engine_names

if TYPE_CHECKING:
    from sobolev_novelty.file_chunks import FileChunks
    from sobolev_novelty.inquiry import Inquiry
    from sobolev_novelty.report import NoveltyReport, Progress

#: Exit code of ``sobolev accepts`` for a formula that is rejected: neither bad input (1) nor wrong usage (2).
REJECTED = 3

app = typer.Typer(
    name="sobolev",
    help="Which terms of your equation does your data support?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

EquationArgument = Annotated[
    str, typer.Argument(metavar="EQUATION", help="Formula as text, '-' for standard input; left out with --file.")
]
DataArgument = Annotated[
    Path | None, typer.Argument(metavar="DATA", help="Table: .csv, .tsv (also .gz) or .parquet, with column names.")
]
FileOption = Annotated[
    str | None, typer.Option("--file", help="Read the equation from this file, '-' for standard input.")
]
TargetOption = Annotated[str | None, typer.Option(help="Column that the equation predicts: not an input.")]
FeaturesOption = Annotated[str | None, typer.Option(help="Columns that are inputs, separated by commas. Default: all.")]
VariablesOption = Annotated[
    str, typer.Option(help="How the equation writes inputs: auto, names, x0 (from zero) or x1 (from one).")
]
DialectOption = Annotated[str, typer.Option(help="plain, or gplearn for its protected operators.")]
SeparatorOption = Annotated[str | None, typer.Option(help="What separates the columns of a text file.")]
NoHeaderOption = Annotated[bool, typer.Option("--no-header", help="The first line is data; columns are x0, x1, …")]
OrderOption = Annotated[int, typer.Option(help="Highest derivative that is compared: 0, 1 or 2.")]
TauOption = Annotated[float | None, typer.Option(help="Threshold of the verdict. Default: 1/√10.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@contextmanager
def one_line_errors(as_json: bool = False) -> Iterator[None]:
    """Turn an error raised on purpose, or a file that cannot be read or written, into one line and exit code 1."""
    try:
        yield
    except (SobolevError, OSError) as error:
        fail(error, as_json)


def fail(error: Exception, as_json: bool = False) -> NoReturn:
    """One line on standard error (and an object with the error where JSON was asked for); exit code 1."""
    message = _one_line(error)
    if as_json:
        typer.echo(json.dumps({"error": {"type": type(error).__name__, "message": message}}, ensure_ascii=False))
    typer.echo(f"sobolev: {message}", err=True)
    raise typer.Exit(1) from None


def _one_line(error: Exception) -> str:
    if isinstance(error, ParseError) and error.text:
        start = max(0, error.position - 20)
        near = error.text[start : error.position + 20]
        return " ".join(f"{error.reason} (Character {error.position + 1}, near {near!r}.)".split())
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, SobolevError):
        return f"'{error.filename}': {error.strerror}. Check the path and its permissions."
    return " ".join(str(error).split()) or type(error).__name__


def _inquiry(
    equation: str, data: Path | None, file: str | None, *, target: str | None, features: str | None, variables: str,
    dialect: str, separator: str | None, no_header: bool,
) -> Inquiry:  # fmt: skip
    """Equation and table, read and matched."""
    from sobolev_novelty.inquiry import read_inquiry

    equation, path = _equation_and_path(equation, data, file)
    with _busy(f"Reading {path.name}"):
        return read_inquiry(
            equation, path, target=target, features=_listed(features), variables=variables, dialect=dialect,
            separator=separator, has_header=not no_header,
        )  # fmt: skip


def _equation_and_path(equation: str, data: Path | None, file: str | None) -> tuple[str, Path]:
    if file is not None:
        if data is not None:
            raise ParameterError("Give the equation as an argument or with --file, not both.")
        return _text_of(file), Path(equation)
    if data is None:
        raise ParameterError("DATA is missing: give EQUATION and DATA, or DATA and --file.")
    return (_text_of("-") if equation == "-" else equation), data


def _listed(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def _text_of(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"'{file}' is not text: {error.reason}. Save the equation as UTF-8.") from error
    if not text.strip():
        raise DataError(
            f"{'Standard input' if file == '-' else repr(file)} holds no equation. Write one formula there."
        )
    return text.strip()


@contextmanager
def _busy(words: str) -> Iterator[None]:
    """A spinner on standard error, on a terminal only."""
    from rich.console import Console

    with Console(stderr=True).status(f"{words} …") if sys.stderr.isatty() else _nothing():
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _progress(words: str) -> Progress | None:
    """A bar on standard error for a loop, on a terminal only."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import track

    return lambda steps: track(steps, description=words, console=Console(stderr=True), transient=True)


@contextmanager
def _bar(words: str) -> Iterator[Callable[[float], None]]:
    """A bar on standard error that is told a share from 0 to 1, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def _print_rich(*parts: Any) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    for part in parts:
        console.print(part)


def _print_report(report: NoveltyReport) -> None:
    import shutil

    from sobolev_novelty.render.terminal import report_table

    if sys.stdout.isatty():
        _print_rich(report_table(report.to_dict(), shutil.get_terminal_size((100, 24)).columns))
    else:
        typer.echo(str(report))


@app.command()
def report(
    equation: EquationArgument,
    data: DataArgument = None,
    file: FileOption = None,
    target: TargetOption = None,
    features: FeaturesOption = None,
    variables: VariablesOption = "auto",
    dialect: DialectOption = "plain",
    separator: SeparatorOption = None,
    no_header: NoHeaderOption = False,
    order: OrderOption = 1,
    raw: Annotated[bool, typer.Option("--raw", help="Derivatives along raw, not standardized, inputs.")] = False,
    tau: TauOption = None,
    bootstrap: Annotated[int, typer.Option(help="Resamples for intervals; 0 for none.")] = 0,
    chunk_rows: Annotated[
        int | None, typer.Option(help="Read DATA this many rows at a time. Default: only where the file is large.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a figure: .png, .svg or .pdf.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which terms of EQUATION the rows of DATA support."""
    with one_line_errors(as_json):
        if latex and as_json:
            raise ParameterError("--latex and --json exclude each other. Choose one.")
        matching: dict[str, Any] = {"target": target, "features": features, "variables": variables, "dialect": dialect}
        measure: dict[str, Any] = {"order": order, "coordinates": "raw" if raw else "standardized", "tau": tau}
        source = _equation_and_path(equation, data, file)
        chunks = _chunks(source[1], chunk_rows, bootstrap, separator=separator, has_header=not no_header)
        if chunks is not None:
            found = _streamed_report(source[0], chunks, **matching, **measure)
        else:
            inquiry = _inquiry(*source, None, **matching, separator=separator, no_header=no_header)
            found = inquiry.report(
                **measure, n_bootstrap=bootstrap, random_state=seed, progress=_progress("Resampling")
            )
        if html is not None:
            found.to_html(html)
        if plot is not None:
            _save_figure(found, plot)
        if as_json:
            _print_json(found.to_dict())
        elif latex:
            typer.echo(found.latex_table(), nl=False)
        else:
            _print_report(found)
    if found.status.value != "ok":
        typer.echo(f"sobolev: {found.status.sentence}", err=True)
        raise typer.Exit(1)


def _chunks(
    path: Path, rows: int | None, bootstrap: int, *, separator: str | None, has_header: bool
) -> FileChunks | None:
    """How to read a file in chunks, or None where it is read whole."""
    from sobolev_novelty.file_chunks import FileChunks, is_large

    if rows is not None and bootstrap:
        raise ParameterError("--bootstrap needs all rows in memory: leave out --chunk-rows, or --bootstrap.")
    if rows is None and (bootstrap or not is_large(path)):
        return None
    return FileChunks(path, rows, separator, has_header)


def _streamed_report(equation: str, chunks: FileChunks, *, features: str | None, **options: Any) -> NoveltyReport:
    from sobolev_novelty.inquiry import streamed_report

    with _bar(f"Reading {chunks.path.name}") as on_share:
        return streamed_report(equation, chunks, features=_listed(features), on_share=on_share, **options)


def _save_figure(found: NoveltyReport, path: Path) -> None:
    figure = found.plot()
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise ParameterError(f"--plot: '{path.name}' is no kind of figure. Use one of: .{', .'.join(sorted(known))}.")
    figure.savefig(path)


@app.command()
def prune(
    equation: EquationArgument,
    data: DataArgument = None,
    target: TargetOption = None,
    file: FileOption = None,
    features: FeaturesOption = None,
    variables: VariablesOption = "auto",
    dialect: DialectOption = "plain",
    separator: SeparatorOption = None,
    no_header: NoHeaderOption = False,
    order: OrderOption = 1,
    tau: TauOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete unsupported terms of EQUATION and refit the others, never worse by accuracy and length together."""
    with one_line_errors(as_json):
        if target is None:
            raise ParameterError("--target is missing: name the column that the equation predicts.")
        inquiry = _inquiry(
            equation, data, file, target=target, features=features, variables=variables, dialect=dialect,
            separator=separator, no_header=no_header,
        )  # fmt: skip
        with _busy("Pruning"):
            result = inquiry.prune(order=order, tau=tau)
        if as_json:
            _print_json(result.to_dict())
        else:
            typer.echo(str(result))


@app.command()
def accepts(
    equation: EquationArgument,
    data: DataArgument = None,
    file: FileOption = None,
    target: TargetOption = None,
    features: FeaturesOption = None,
    variables: VariablesOption = "auto",
    dialect: DialectOption = "plain",
    separator: SeparatorOption = None,
    no_header: NoHeaderOption = False,
    order: OrderOption = 1,
    tau: TauOption = None,
    as_json: JsonOption = False,
) -> None:
    """The corpus filter: exit code 0 where every term of EQUATION is novel on DATA, 3 where one is not."""
    with one_line_errors(as_json):
        inquiry = _inquiry(
            equation, data, file, target=target, features=features, variables=variables, dialect=dialect,
            separator=separator, no_header=no_header,
        )  # fmt: skip
        verdict = inquiry.accepts(order=order, tau=tau)
        if as_json:
            lowest = verdict.min_novelty if verdict.min_novelty == verdict.min_novelty else None
            _print_json(
                {
                    "accepted": verdict.accepted,
                    "reason": verdict.reason,
                    "min_novelty": lowest,
                    "notes": list(inquiry.notes),
                }
            )
        else:
            typer.echo(f"{'accepted' if verdict else 'rejected'}: {verdict.reason}")
    if not verdict:
        raise typer.Exit(REJECTED)


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="Table with a header: CSV, TSV or parquet.")],
    target: Annotated[str, typer.Option(help="Column to be explained; all others are inputs.")],
    engine: Annotated[str, typer.Option(help=f"How forms are proposed: {', '.join(engine_names())}.")] = "genetic",
    novelty: Annotated[bool, typer.Option(help="Whether the Sobolev signal guides the search.")] = True,
    time: Annotated[float | None, typer.Option(help="Seconds.")] = 60.0,
    evaluations: Annotated[int | None, typer.Option(help="Forms fitted at most.")] = None,
    complexity: Annotated[int | None, typer.Option(help="Nodes of the largest equation.")] = None,
    operators: Annotated[str | None, typer.Option(help="Operators, separated by commas.")] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of row weights.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the model goes, as JSON.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="File from which a killed run goes on.")] = None,
    seed: int = 0,
    jobs: Annotated[int, typer.Option(help="Threads; the result does not depend on it.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Find an equation for a table, with terms that the data support."""
    from sobolev_novelty.cli_fit import fit_command

    with one_line_errors(as_json):
        summary = fit_command(
            data, target=target, engine=engine, novelty=novelty, time=time, max_evaluations=evaluations,
            max_complexity=complexity, operators=operators, drop=drop, weights=weights, out=out, checkpoint=checkpoint,
            seed=seed, n_jobs=jobs, verbose=False if as_json else None,
        )  # fmt: skip
        if as_json:
            _print_json(summary.to_dict())
        else:
            typer.echo(str(summary))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="What 'sobolev fit --out' wrote.")],
    data: Annotated[Path, typer.Argument(help="Table with the columns the model was fitted on.")],
    out: Annotated[Path | None, typer.Option(help="Write the predictions as CSV.")] = None,
    index: Annotated[int | None, typer.Option(help="Row of the front; by default the chosen equation.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict with a saved model."""
    from sobolev_novelty.cli_fit import predict_command

    with one_line_errors(as_json):
        frame = predict_command(model, data, out=out, index=index)
        values = [None if math.isnan(value) else value for value in frame["prediction"].tolist()]
        if as_json:
            _print_json({"predictions": values, "out": None if out is None else str(out)})
        elif out is None:
            typer.echo("\n".join("nan" if value is None else repr(value) for value in values))
        else:
            typer.echo(f"{len(values)} predictions written to {out}.")


@app.command()
def demo(
    html: Annotated[Path | None, typer.Option(help="Also write everything as one page.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The main job on embedded examples: a law, a bloated formula, the same on other data, pruning, feedback."""
    from sobolev_novelty import demonstration

    with one_line_errors(as_json):
        cases = []
        for case in demonstration.cases():
            cases.append(case)
            if not as_json:
                typer.echo(f"\n── {case.title} " + "─" * max(3, 76 - len(case.title)))
                typer.echo(f"{case.words}\n")
                if case.report is not None:
                    _print_report(case.report)
                if case.output:
                    typer.echo(case.output)
        if html is not None:
            html.write_text(demonstration.page(cases), encoding="utf-8")
        if as_json:
            _print_json({"cases": [case.to_dict() for case in cases]})


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """What is compiled, which extras are present, where data is looked for."""
    from sobolev_novelty.diagnosis import diagnose

    found = diagnose()
    if as_json:
        _print_json(found.to_dict())
    else:
        typer.echo(str(found))


def _print_version(wanted: bool) -> None:
    if wanted:
        from sobolev_novelty.diagnosis import package_version

        typer.echo(f"sobolev-novelty {package_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Which terms of your equation does your data support?"""


def _mount(module: str, app_name: str, verb: str) -> None:
    """Add the verbs of a module that is part of this installation."""
    if importlib.util.find_spec(module) is not None:
        app.add_typer(getattr(importlib.import_module(module), app_name), name=verb)


_mount("sobolev_novelty.cli_bench", "bench_app", "bench")
_mount("sobolev_novelty.cli_turbulence", "turbulence_app", "turbulence")


def _shielded(arguments: list[str]) -> list[str]:
    """An equation that begins with a minus is no option: these verbs have no options of one dash."""
    if not arguments or arguments[0] not in ("report", "prune", "accepts"):
        return arguments
    return [f" {a}" if a.startswith("-") and not a.startswith("--") and len(a) > 1 else a for a in arguments]


def main() -> None:
    """Entry point of ``sobolev``."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(args=_shielded(sys.argv[1:]), prog_name="sobolev")
    except SobolevError as error:
        print(f"sobolev: {_one_line(error)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
