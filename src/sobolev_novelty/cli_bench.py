"""``sobolev bench``: run an experiment, and make every table and figure from its rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

bench_app = typer.Typer(
    name="bench", help="Run benchmarks and make their tables and figures.", no_args_is_help=True, add_completion=False
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@bench_app.callback()
def _group() -> None:
    """Run benchmarks and make their tables and figures."""


@bench_app.command("run")
def run_command(
    experiment: Annotated[Path, typer.Argument(help="TOML file: suite, methods, seeds, budget.")],
    store: Annotated[Path | None, typer.Option(help="SQLite file; results/<experiment>.sqlite by default.")] = None,
    workers: Annotated[int, typer.Option(help="Tasks at a time on this machine.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786.")] = None,
    as_json: Json = False,
) -> None:
    """Run what the store does not have yet. Killing it loses only what is in flight; run it again to go on."""
    from rich.console import Console

    from sobolev_novelty.bench.experiment import load_experiment
    from sobolev_novelty.bench.progress import duration, live_progress
    from sobolev_novelty.bench.run import run
    from sobolev_novelty.bench.store import Store

    plan = load_experiment(experiment)
    target = Store(store or Path("results") / f"{plan.name}.sqlite")
    with live_progress(Console(stderr=True)) as on_progress:
        summary = run(plan, target, workers=workers, dask=dask, on_progress=on_progress)
    if as_json:
        typer.echo(json.dumps(asdict(summary)))
        return
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(summary.statuses.items())) or "nothing to run"
    typer.echo(f"{summary.ran} run in {duration(summary.seconds)} ({statuses}), {summary.skipped} were there.")
    if summary.held:
        typer.echo(f"{summary.held} are being run by another runner.")
    if summary.missing:
        typer.echo(f"{len(summary.missing)} tasks have no data here: {', '.join(summary.missing)}.")
    typer.echo(f"Store: {target.path}")


def main(arguments: list[str] | None = None) -> Any:
    """Run as ``python -m sobolev_novelty.cli_bench``; errors raised on purpose are one line and exit code 1."""
    from sobolev_novelty.errors import SobolevError

    try:
        return bench_app(arguments)
    except SobolevError as error:
        typer.echo(f"Error: {error}", err=True)
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
