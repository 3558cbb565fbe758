"""``sobolev filter`` and ``sobolev pretrain``: corpora of formulas, and networks trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sobolev_novelty.errors import ParameterError, require
from sobolev_novelty.ui.cli.errors import one_line_errors
from sobolev_novelty.ui.cli.options import JsonOption, MeasureOptions, print_json, with_groups
from sobolev_novelty.ui.cli.screen import echo


@with_groups
def filter_command(
    formulas: Annotated[
        Path, typer.Argument(help="One formula per line, .json (a list) or .jsonl; '-' for standard input.")
    ],
    measure: MeasureOptions,
    *,
    out: Annotated[Path, typer.Option(help="Where the formulas that are kept go; '-' for standard output.")] = Path(
        "-"
    ),
    reasons: Annotated[
        Path | None, typer.Option(help="JSON lines: verdict, reason, terms and novelties of every formula. Slower.")
    ] = None,
    inputs: Annotated[
        str, typer.Option(help="Where formulas are judged: normal, uniform:LOW,HIGH or the path of a table.")
    ] = "normal",
    rows: Annotated[int, typer.Option(help="Rows of that sample, 32 to 200.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of that sample.")] = 0,
    dialect: Annotated[str, typer.Option(help="plain, or gplearn for its protected operators.")] = "plain",
    form: Annotated[
        str, typer.Option("--format", help="text, json or jsonl. Default: what the name of FORMULAS ends in.")
    ] = "auto",
    field: Annotated[str, typer.Option(help="Key of the formula where entries are JSON objects.")] = "formula",
    jobs: Annotated[int, typer.Option(help="Processes, -1 for all cores; the result does not depend on it.")] = -1,
    as_json: JsonOption = False,
) -> None:
    """Keep the formulas of a corpus whose terms are all novel (the paper's Appendix D.4)."""
    from sobolev_novelty.lab.pretraining.corpus_filter import FormulaJudge, Inputs, filter_formulas
    from sobolev_novelty.report.render.progress_bar import progress_bar

    with one_line_errors(as_json):
        if as_json and str(out) == "-":
            raise ParameterError("--json prints the summary on standard output: give --out a file.")
        judge = FormulaJudge(Inputs.of(inputs, n_rows=rows, seed=seed), dialect=dialect, **measure.arguments())
        with progress_bar("Filtering") as on_progress:
            summary = filter_formulas(
                formulas, out, judge, reasons=reasons, form=form, field=field, n_jobs=jobs, on_progress=on_progress
            )
        if as_json:
            print_json(summary.to_dict())
        echo(str(summary), err=True)


def pretrain_command(
    settings: Annotated[Path, typer.Argument(help="A TOML file, such as experiments/pretrain_product.toml.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the state and the log; a run goes on from there.")],
    change: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, such as training.batch=1024. May be repeated.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the corpus and of the initial weights.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Wall time of this call, compilation included.")] = None,
    cooldown_minutes: Annotated[
        float | None, typer.Option(help="Of these minutes, the last ones cool down and finish.")
    ] = None,
    finish_samples: Annotated[int | None, typer.Option(help="Cool down from here, over so many samples.")] = None,
    start_from: Annotated[Path | None, typer.Option(help="An export of another machine.")] = None,
    export: Annotated[Path | None, typer.Option(help="Folder for float32 weights to go on from elsewhere.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Folder for weights for use, written at the end.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads that make data.")] = None,
    device: Annotated[str | None, typer.Option(help="cuda or cpu. Default: cuda where there is one.")] = None,
    compile_mode: Annotated[
        str | None, typer.Option("--compile", help="none, default, reduce-overhead or max-autotune.")
    ] = None,
) -> None:
    """Train a network on a corpus of formulas; what happens is printed as JSON lines. Needs torch."""
    with one_line_errors():
        require("torch", extra="transformer")
        from sobolev_novelty.lab.pretraining.train import main

        given = {
            "--seed": seed, "--minutes": minutes, "--cooldown-minutes": cooldown_minutes,
            "--finish-samples": finish_samples, "--start-from": start_from, "--export": export, "--weights": weights,
            "--threads": threads, "--device": device, "--compile": compile_mode,
        }  # fmt: skip
        options = [text for name, value in given.items() if value is not None for text in (name, str(value))]
        # The list of changes ends where the next option begins.
        main([str(settings), "--set", *(change or []), "--out", str(out), *options])
