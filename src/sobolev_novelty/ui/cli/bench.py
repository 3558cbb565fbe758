"""``sobolev bench``: run an experiment, and make every table and figure from its rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sobolev_novelty.core.output import write_whole
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.ui.cli.errors import one_line_errors
from sobolev_novelty.ui.cli.options import OLD_NAMES, JsonOption, listed, print_json
from sobolev_novelty.ui.cli.screen import echo

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
OutOption = Annotated[Path | None, typer.Option(help="File to write; standard output by default.")]


@bench_app.command("run")
def run_command(
    experiment: Annotated[Path, typer.Argument(help="TOML file: suite, methods, seeds, budget.")],
    *,
    store: Annotated[Path | None, typer.Option(help="SQLite file; results/<experiment>.sqlite by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Tasks to run at the same time on this machine.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786.")] = None,
    only: Annotated[str | None, typer.Option(help="Only these methods of the experiment, separated by commas.")] = None,
    retry: Annotated[
        str | None, typer.Option(help="Run stored rows again that are failed, crashed, timeout, memory or changed.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run what is not stored yet. If it is killed, only the jobs in progress are lost; run it again to continue."""
    from sobolev_novelty.lab.bench.running.experiment import load_experiment
    from sobolev_novelty.lab.bench.running.progress import duration, live_progress
    from sobolev_novelty.lab.bench.running.run import run
    from sobolev_novelty.lab.bench.running.store import Store

    with one_line_errors(as_json):
        plan = load_experiment(experiment)
        if only is not None:
            plan = plan.restricted([name.strip() for name in only.split(",")])
        target = Store(store or Path("results") / f"{plan.name}.sqlite")
        with live_progress() as on_progress:
            again = [] if retry is None else [name.strip() for name in retry.split(",")]
            summary = run(plan, target, n_jobs=jobs, dask=dask, retry=again, on_progress=on_progress)
    if as_json:
        print_json(asdict(summary))
        raise typer.Exit(1 if summary.not_run else 0)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(summary.statuses.items())) or "nothing to run"
    echo(f"{summary.ran} run in {duration(summary.seconds)} ({statuses}), {summary.skipped} already stored.")
    if summary.held:
        echo(f"Another runner is working on {summary.held} more.")
    if summary.missing:
        echo(f"The data of {len(summary.missing)} tasks are not on this machine: {', '.join(summary.missing)}.")
    echo(f"Store: {target.path}")
    for reason, count in summary.not_run.items():
        echo(f"sobolev: {count} jobs could not be run here, and are not stored: {reason}", err=True)
    raise typer.Exit(1 if summary.not_run else 0)


@bench_app.command("table")
def table_command(
    store: StoreArgument,
    *,
    kind: Annotated[
        str, typer.Option(help="results, differences, contrasts, ablation, medians, beaten or telling.")
    ] = "results",
    noise: NoiseOption = 0.0,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a table from stored rows: the paper's, medians set by set, or the runs that a straight line beats."""
    from sobolev_novelty.lab.bench.judging.against_line import beaten_table, median_table
    from sobolev_novelty.lab.bench.judging.telling import telling_table
    from sobolev_novelty.lab.bench.showing.contrasts import contrast_table
    from sobolev_novelty.lab.bench.showing.tables import ablation_table, difference_table, results_table

    with one_line_errors(as_json):
        frame, suite, contrasts = _stored(store)
        makers = {
            "results": lambda: results_table(frame, suite, noise=noise),
            "differences": lambda: difference_table(frame, suite, noise=noise),
            "contrasts": lambda: contrast_table(frame, suite, contrasts, noise=noise),
            "ablation": lambda: ablation_table(frame),
            "medians": lambda: median_table(frame, suite, noise=noise),
            "beaten": lambda: beaten_table(frame, suite, noise=noise),
            "telling": lambda: telling_table(frame, suite),
        }
        if kind not in makers:
            raise ParameterError(f"--kind must be one of {', '.join(makers)}. Got '{kind}'.")
        table = makers[kind]()
        _deliver(table.frame.to_json(orient="records") if as_json else table.render(), out)


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
    from sobolev_novelty.lab.bench.showing.figures import derivative_ablation, rank_plane, save_figure

    with one_line_errors(as_json):
        if kind not in ("ranks", "ablation"):
            raise ParameterError(f"--kind must be one of ranks, ablation. Got '{kind}'.")
        frame, suite, _ = _stored(store)
        picture = rank_plane(frame, suite, noise=noise, with_paper=with_paper) if kind == "ranks" else None
        _print_written([save_figure(picture or derivative_ablation(frame), path) for path in out], as_json)


@bench_app.command("overview")
def overview_command(
    stores: Annotated[list[Path], typer.Argument(help="SQLite files that 'bench run' made, in order.")],
    *,
    out: OutOption = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw it: .svg, .png or .pdf.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Put the contrasts of several experiments side by side, one line for each."""
    from sobolev_novelty.lab.bench.showing.figures import save_figure
    from sobolev_novelty.lab.bench.showing.overview import Source, overview, overview_figure, overview_table

    with one_line_errors(as_json):
        rows = overview([Source(path.stem, *_stored(path)) for path in stores])
        if figure is not None:
            save_figure(overview_figure(rows), figure)
        _deliver(rows.to_json(orient="records") if as_json else overview_table(rows).render(), out)


@bench_app.command("gap")
def gap_command(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="More expressions: stores (.sqlite) and SRBench results (feather, parquet, CSV, JSON)."),
    ] = None,
    *,
    suite: Annotated[str, typer.Option(help="whitebox, or blackbox, which has no ground truth.")] = "whitebox",
    min_r2: Annotated[float, typer.Option(help="Candidates with a lower test R² are counted, not judged.")] = 0.8,
    coordinates: Annotated[str, typer.Option(help="own (those each method used) or raw.")] = "own",
    noise: Annotated[float, typer.Option(help="Noise level of the candidates; below 0 for all.")] = 0.0,
    out: OutOption = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw novelty against complexity.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Term qualification of the ground truth and of published and stored expressions (Section 4.1)."""
    from sobolev_novelty.core.progress import tracked
    from sobolev_novelty.lab.bench.showing.figures import novelty_against_complexity, save_figure
    from sobolev_novelty.lab.bench.showing.gap import gap_candidates, gap_table, judge, refusals
    from sobolev_novelty.lab.bench.showing.tables import qualification_table
    from sobolev_novelty.report.render.progress_bar import progress_bar

    with one_line_errors(as_json):
        if coordinates not in ("own", "raw"):
            raise ParameterError(f"--coordinates must be one of own, raw. Got '{coordinates}'.")
        if suite not in ("whitebox", "blackbox"):
            raise ParameterError(f"--suite must be one of whitebox, blackbox. Got '{suite}'.")
        candidates = list(gap_candidates(results or [], suite=suite, noise=None if noise < 0 else noise))
        with progress_bar("Judging") as on_progress:
            judgements = [
                judge(each, suite=suite, coordinates=coordinates, min_r2=min_r2)
                for each in tracked(candidates, on_progress)
            ]
        table = gap_table(judgements)
        if figure is not None:
            save_figure(novelty_against_complexity(table), figure)
        if as_json:
            content = {
                "suite": suite,
                "coordinates": coordinates,
                "min_r2": min_r2,
                "methods": json.loads(table.to_json(orient="records")),
                "refusals": refusals(judgements),
            }
            _deliver(json.dumps(content), out)
            return
        text = qualification_table(table, coordinates=coordinates, suite=suite, min_r2=min_r2).render()
        text += "".join(f"\nRefused {count} ×: {reason}" for reason, count in refusals(judgements).items()) + "\n"
        _deliver(text, out)


@bench_app.command("planted")
def planted_command(
    *,
    store: Annotated[Path, typer.Option(help="JSON file with the cases; made where it is missing.")] = Path(
        "results/planted.json"
    ),
    formulas: Annotated[
        list[Path] | None, typer.Option(help="TOML files with laws beside the 133 white-box tasks; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of rows, noise and planted terms.")] = 0,
    plain: Annotated[bool, typer.Option("--plain", help="Only planted terms without constants of their own.")] = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plant terms beside those of known laws, and see which method tells them apart."""
    from sobolev_novelty.lab.bench.planted.run import load_planted, planted_table, render_planted, run_planted
    from sobolev_novelty.lab.bench.problems.tasks import formula_tasks, whitebox_tasks
    from sobolev_novelty.report.render.progress_bar import progress_bar

    with one_line_errors(as_json):
        if not store.exists():
            tasks = [*whitebox_tasks(), *(task for path in formulas or [] for task in formula_tasks(path))]
            with progress_bar("Planting") as on_progress:
                content = run_planted(tasks, seed=seed, on_progress=on_progress)
            store.parent.mkdir(parents=True, exist_ok=True)
            write_whole(store, json.dumps(content, ensure_ascii=False) + "\n")
        table = planted_table(load_planted(store), plain_only=plain)
        _deliver(table.to_json(orient="records") if as_json else render_planted(table), out)


@bench_app.command("everyday")
def everyday_command(
    store: StoreArgument,
    *,
    jobs: Annotated[int, typer.Option(help="Processes that judge runs at the same time.")] = 1,
    frame: Annotated[Path | None, typer.Option(help="Write one row for each run: .csv.")] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Judge changed prices on the same equations.")] = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Everyday tables: was the law met, chosen, and could it have been learnt?"""
    from sobolev_novelty.lab.bench.judging.everyday_results import (
        ablation_table,
        all_judged,
        judged_frame,
        stored_runs,
        summary,
    )

    with one_line_errors(as_json):
        suite, runs = stored_runs(store)
        if ablate:
            _deliver(ablation_table(suite, runs, jobs), out)
            return
        found = all_judged(suite, runs, jobs)
        if frame is not None:
            write_whole(frame, judged_frame(found).to_csv(index=False))
        figures = summary(found)
        _deliver(json.dumps(figures) if as_json else _two_columns(figures), out)


@bench_app.command("identifiability")
def identifiability_command(
    store: StoreArgument,
    *,
    by: Annotated[
        str | None, typer.Option(help="condition, noise, rows, terms, inputs, setting or shape: a row for each level.")
    ] = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Many-term laws: laws and terms found, coefficients, and the error outside the data."""
    from sobolev_novelty.lab.bench.showing.identifiability import many_term_table

    with one_line_errors(as_json):
        frame, suite, _ = _stored(store)
        table = many_term_table(frame, suite, by=by)
        _deliver(table.frame.to_json(orient="records") if as_json else table.render(), out)


@bench_app.command("failures")
def failures_command(
    stores: Annotated[list[Path], typer.Argument(help="Stores whose experiment has 'table = true'.")],
    *,
    jobs: Annotated[int, typer.Option(help="Processes that judge runs at the same time.")] = 1,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Why a law was not chosen: never met though cheaper, met and passed over though learnable, or not learnable."""
    from sobolev_novelty.lab.bench.judging.failures import failures_of, rendered

    with one_line_errors(as_json):
        rows = [row for store in stores for row in failures_of(store, jobs)]
        _deliver(json.dumps(rows) if as_json else rendered(rows), out)


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
    from sobolev_novelty.lab.bench.showing.page import write_page

    with one_line_errors(as_json):
        _print_written(write_page(sources, out), as_json)


@bench_app.command("pretrained")
def pretrained_command(
    weights: Annotated[
        Path, typer.Argument(help="Folder with weights, or a TOML file of 'pretrain' for its generator alone.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="JSON file; rows that it has already are kept.")],
    draws: Annotated[int, typer.Option(help="Decoding runs per task.")] = 8,
    samples: Annotated[int, typer.Option(help="Samples of each, beside the greedy formulas.")] = 128,
    bags: Annotated[int, typer.Option(help="Sets of 200 rows that the network reads.")] = 2,
    temperature: Annotated[float, typer.Option(help="Of the samples.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    tasks: Annotated[str | None, typer.Option(help="White-box tasks, separated by commas. Default: all.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a pretrained network on the white-box tasks (docs/paper-pretraining.md)."""
    from sobolev_novelty.core.output import check_output
    from sobolev_novelty.errors import require
    from sobolev_novelty.lab.bench.showing.pretraining import evaluate_generator, evaluate_network, summary
    from sobolev_novelty.report.render.progress_bar import progress_bar

    with one_line_errors(as_json):
        check_output(out, (".json",))
        require("torch", extra="transformer")
        run = evaluate_network if weights.is_dir() else evaluate_generator
        with progress_bar("Tasks") as on_progress:
            found = run(
                weights, out, tasks=listed(tasks), on_progress=on_progress, n_draws=draws, n_samples=samples,
                n_bags=bags, temperature=temperature, seed=seed,
            )  # fmt: skip
        told = {"arm": found.arm, "seed": found.seed, "samples": found.samples, **summary(found.rows)}
        if as_json:
            print_json(told)
        else:
            echo("\n".join(f"{key:>12} {value}" for key, value in told.items()))


@bench_app.command("pretrained-table")
def pretrained_table_command(
    results: Annotated[
        list[Path], typer.Argument(help="JSON files that 'bench pretrained' wrote, or folders of them.")
    ],
    *,
    figure: Annotated[Path | None, typer.Option(help="Also draw it: .svg, .png or .pdf.")] = None,
    logs: Annotated[
        Path | None, typer.Option(help="Folder of training logs ARM_SEED.jsonl, for learning curves in the figure.")
    ] = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare networks: mean of max(0, R²) with intervals over tasks and seeds, beside what needs no network."""
    from sobolev_novelty.lab.bench.showing.pretraining import Evaluation, compared, table

    with one_line_errors(as_json):
        files = [path for given in results for path in (sorted(given.glob("*.json")) if given.is_dir() else [given])]
        found = [Evaluation.read(path) for path in files]
        if figure is not None:
            from sobolev_novelty.lab.bench.showing.figures import save_figure
            from sobolev_novelty.lab.bench.showing.pretraining_figure import figure as drawn

            save_figure(drawn(found, sorted(logs.glob("*.jsonl")) if logs is not None else ()), figure)
        _deliver(json.dumps([asdict(row) for row in compared(found)]) if as_json else table(found), out)


@bench_app.command("pretrained-bags")
def pretrained_bags_command(
    *,
    out: Annotated[Path, typer.Option(help="File of arrays, .npz.")],
    tasks: Annotated[str | None, typer.Option(help="White-box tasks, separated by commas. Default: all.")] = None,
) -> None:
    """Write the rows of the white-box tasks as networks read them, for a machine that trains and has no tasks."""
    from sobolev_novelty.core.output import check_output
    from sobolev_novelty.errors import require
    from sobolev_novelty.lab.bench.showing.pretraining import write_bags

    with one_line_errors():
        check_output(out, (".npz",))
        require("torch", extra="transformer")
        echo(f"{write_bags(out, listed(tasks))} tasks in {out}")


@bench_app.command("pretrained-course")
def pretrained_course_command(
    sources: Annotated[
        list[Path], typer.Argument(help="What one network wrote (.jsonl.gz), or a TOML file for its generator alone.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="JSON file; readings that it has already are kept.")],
    tasks: Annotated[str | None, typer.Option(help="Of a generator: white-box tasks, separated by commas.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
) -> None:
    """Fit and score what a network wrote along its training, under the paper's inference and under ours."""
    from sobolev_novelty.core.output import check_output
    from sobolev_novelty.errors import require
    from sobolev_novelty.lab.bench.showing.pretraining_course import follow, follow_generator
    from sobolev_novelty.report.render.progress_bar import progress_bar

    with one_line_errors():
        check_output(out, (".json",))
        require("torch", extra="transformer")
        with progress_bar("Readings") as on_progress:
            if sources[0].suffix == ".toml":
                course = follow_generator(sources[0], out, tasks=listed(tasks), n_jobs=jobs, on_progress=on_progress)
            else:
                course = follow(sources, out, n_jobs=jobs, on_progress=on_progress)
        echo(f"{course.arm}, seed {course.seed}: {len(course.readings)} readings in {out}")


@bench_app.command("pretrained-course-table")
def pretrained_course_table_command(
    results: Annotated[list[Path], typer.Argument(help="Files that 'bench pretrained-course' wrote, or folders.")],
    *,
    kind: Annotated[str, typer.Option(help="end, differences or along.")] = "end",
    figure: Annotated[Path | None, typer.Option(help="Also draw R² along the training: .svg, .png or .pdf.")] = None,
    out: OutOption = None,
) -> None:
    """Arms at the end of their training or along it, read in each way, with intervals over tasks and seeds."""
    from sobolev_novelty.lab.bench.showing import pretraining_course as courses

    with one_line_errors():
        kinds = {"end": courses.table, "differences": courses.differences, "along": courses.along}
        if kind not in kinds:
            raise ParameterError(f"'kind' must be one of {', '.join(kinds)}. Got {kind!r}.")
        files = [path for given in results for path in (sorted(given.glob("*.json*")) if given.is_dir() else [given])]
        found = [courses.Course.read(path) for path in files]
        if figure is not None:
            from sobolev_novelty.lab.bench.showing.figures import save_figure

            save_figure(courses.figure(found), figure)
        _deliver(kinds[kind](found), out)


def _stored(path: Path) -> tuple[pd.DataFrame, str, list[list[str]]]:
    """The rows of a store, the suite of tasks they belong to, and the methods its experiment set out to compare."""
    from sobolev_novelty.lab.bench.running.store import Store

    source = Store(path, read_only=True)
    settings = source.settings()
    return source.frame(), str(settings.get("suite", "whitebox")), settings.get("contrasts", [])


def _two_columns(figures: dict[str, object]) -> str:
    lines = [f"| {name} | {f'{value:.3g}' if isinstance(value, float) else value} |" for name, value in figures.items()]
    return "\n".join(["| | |", "| --- | ---: |", *lines])


def _deliver(text: str, out: Path | None) -> None:
    if out is None:
        echo(text)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, text)
    echo(str(out))


def _print_written(paths: list[Path], as_json: bool) -> None:
    written = [str(path) for path in paths]
    if as_json:
        print_json({"written": written})
    else:
        echo("\n".join(written))
