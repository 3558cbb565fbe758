"""``sobolev bench``: run an experiment, and make every table and figure from its rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sobolev_novelty.cli_errors import one_line_errors
from sobolev_novelty.cli_options import OLD_NAMES, JsonOption, print_json
from sobolev_novelty.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

bench_app = typer.Typer(
    name="bench",
    help="Run benchmarks and make their tables and figures.",
    no_args_is_help=True,
    add_completion=False,
    context_settings=OLD_NAMES,
)
StoreArgument = Annotated[Path, typer.Argument(help="SQLite file that 'bench run' made.")]
NoiseOption = Annotated[float, typer.Option(help="Noise level of the rows.")]
FormOption = Annotated[str, typer.Option("--format", help="md, tex or csv.")]
OutOption = Annotated[Path | None, typer.Option(help="File to write; standard output by default.")]


@bench_app.command("run")
def run_command(
    experiment: Annotated[Path, typer.Argument(help="TOML file: suite, methods, seeds, budget.")],
    *,
    store: Annotated[Path | None, typer.Option(help="SQLite file; results/<experiment>.sqlite by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Tasks to run at the same time on this machine.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786.")] = None,
    only: Annotated[str | None, typer.Option(help="Only these methods of the experiment, separated by commas.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run what is not stored yet. If it is killed, only the jobs in progress are lost; run it again to continue."""
    from sobolev_novelty.bench.experiment import load_experiment
    from sobolev_novelty.bench.progress import duration, live_progress
    from sobolev_novelty.bench.run import run
    from sobolev_novelty.bench.store import Store

    with one_line_errors(as_json):
        plan = load_experiment(experiment)
        if only is not None:
            plan = plan.restricted([name.strip() for name in only.split(",")])
        target = Store(store or Path("results") / f"{plan.name}.sqlite")
        with live_progress() as on_progress:
            summary = run(plan, target, n_jobs=jobs, dask=dask, on_progress=on_progress)
    if as_json:
        print_json(asdict(summary))
        return
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(summary.statuses.items())) or "nothing to run"
    typer.echo(f"{summary.ran} run in {duration(summary.seconds)} ({statuses}), {summary.skipped} already stored.")
    if summary.held:
        typer.echo(f"Another runner is working on {summary.held} more.")
    if summary.missing:
        typer.echo(f"The data of {len(summary.missing)} tasks are not on this machine: {', '.join(summary.missing)}.")
    typer.echo(f"Store: {target.path}")


@bench_app.command("table")
def table_command(
    store: StoreArgument,
    *,
    kind: Annotated[str, typer.Option(help="results, differences, contrasts or ablation.")] = "results",
    form: FormOption = "md",
    noise: NoiseOption = 0.0,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make one of the paper's tables from stored rows."""
    from sobolev_novelty.bench.contrasts import contrast_table
    from sobolev_novelty.bench.tables import ablation_table, difference_table, results_table

    with one_line_errors(as_json):
        frame, suite, contrasts = _stored(store)
        makers = {
            "results": lambda: results_table(frame, suite, noise=noise),
            "differences": lambda: difference_table(frame, suite, noise=noise),
            "contrasts": lambda: contrast_table(frame, suite, contrasts, noise=noise),
            "ablation": lambda: ablation_table(frame),
        }
        if kind not in makers:
            raise ParameterError(f"--kind must be one of {', '.join(makers)}. Got '{kind}'.")
        table = makers[kind]()
        _deliver(table.frame.to_json(orient="records") if as_json else table.render(form), out)


@bench_app.command("figure")
def figure_command(
    store: StoreArgument,
    *,
    out: Annotated[list[Path], typer.Option(help="File to write, .svg, .png or .pdf; may be given several times.")],
    kind: Annotated[str, typer.Option(help="ranks or ablation.")] = "ranks",
    noise: NoiseOption = 0.0,
    with_paper: Annotated[bool, typer.Option(help="Show the paper's methods alongside ours.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Draw one of the paper's figures from stored rows."""
    from sobolev_novelty.bench.figures import derivative_ablation, rank_plane, save_figure

    with one_line_errors(as_json):
        if kind not in ("ranks", "ablation"):
            raise ParameterError(f"--kind must be one of ranks, ablation. Got '{kind}'.")
        frame, suite, _ = _stored(store)
        picture = rank_plane(frame, suite, noise=noise, with_paper=with_paper) if kind == "ranks" else None
        _print_written([save_figure(picture or derivative_ablation(frame), path) for path in out], as_json)


@bench_app.command("gap")
def gap_command(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="More expressions: stores (.sqlite) and SRBench results (feather, parquet, CSV, JSON)."),
    ] = None,
    *,
    coordinates: Annotated[str, typer.Option(help="own (those each method used) or raw.")] = "own",
    noise: Annotated[float, typer.Option(help="Noise level of the candidates; below 0 for all.")] = 0.0,
    form: FormOption = "md",
    out: OutOption = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw novelty against complexity.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Term qualification of the ground truth and of published and stored expressions (Section 4.1)."""
    from sobolev_novelty.bench.figures import novelty_against_complexity, save_figure
    from sobolev_novelty.bench.gap import gap_candidates, gap_table, judge, refusals
    from sobolev_novelty.bench.tables import qualification_table
    from sobolev_novelty.progress import tracked
    from sobolev_novelty.render.progress_bar import progress_bar

    with one_line_errors(as_json):
        if coordinates not in ("own", "raw"):
            raise ParameterError(f"--coordinates must be one of own, raw. Got '{coordinates}'.")
        candidates = list(gap_candidates(results or [], noise=None if noise < 0 else noise))
        with progress_bar("Judging") as on_progress:
            judgements = [judge(each, coordinates=coordinates) for each in tracked(candidates, on_progress)]
        table = gap_table(judgements)
        if figure is not None:
            save_figure(novelty_against_complexity(table), figure)
        if as_json:
            content = {
                "coordinates": coordinates,
                "methods": json.loads(table.to_json(orient="records")),
                "refusals": refusals(judgements),
            }
            _deliver(json.dumps(content), out)
            return
        text = qualification_table(table, coordinates=coordinates).render(form)
        if form == "md":
            text += "".join(f"\nRefused {count} ×: {reason}" for reason, count in refusals(judgements).items()) + "\n"
        _deliver(text, out)


@bench_app.command("page")
def page_command(
    sources: Annotated[
        list[Path], typer.Argument(help="Stores (.sqlite), and what 'bench gap --json' wrote (.json), in order.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="Markdown file; figures are written beside it.")],
    as_json: JsonOption = False,
) -> None:
    """Write one page with every table and figure of the stored runs."""
    from sobolev_novelty.bench.page import write_page

    with one_line_errors(as_json):
        _print_written(write_page(sources, out), as_json)


def _stored(path: Path) -> tuple[pd.DataFrame, str, list[list[str]]]:
    """The rows of a store, the suite of tasks they belong to, and the methods its experiment set out to compare."""
    from sobolev_novelty.bench.store import Store

    source = Store(path, read_only=True)
    settings = source.settings()
    return source.frame(), str(settings.get("suite", "whitebox")), settings.get("contrasts", [])


def _deliver(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    typer.echo(str(out))


def _print_written(paths: list[Path], as_json: bool) -> None:
    written = [str(path) for path in paths]
    if as_json:
        print_json({"written": written})
    else:
        typer.echo("\n".join(written))
