"""``sobolev next``: the rows to measure next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sobolev_novelty.ui.cli.errors import one_line_errors
from sobolev_novelty.ui.cli.options import (
    FeaturesOption,
    FormatOptions,
    JsonOption,
    TableArgument,
    listed,
    print_json,
    table_source,
    with_groups,
)
from sobolev_novelty.ui.cli.screen import echo


@with_groups
def next_command(
    equation: Annotated[
        str, typer.Argument(metavar="EQUATION", help="Formula as text, or the file that 'sobolev fit --out' wrote.")
    ],
    data: TableArgument,
    written: FormatOptions,
    rival: Annotated[
        list[str] | None, typer.Option(help="Another formula that fits the rows. May be repeated.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column that the equation predicts: refits constants and tells the noise.")
    ] = None,
    features: FeaturesOption = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="How far an input can be set, as T=20:80. May be repeated. Default: as far as DATA goes."),
    ] = None,
    levels: Annotated[
        list[str] | None, typer.Option(help="The only values of an input, as dose=0,1,5. May be repeated.")
    ] = None,
    integers: Annotated[str | None, typer.Option(help="Inputs that are whole numbers, separated by commas.")] = None,
    fixed: Annotated[
        list[str] | None, typer.Option(help="Input that cannot be set, as T=21 or T for its median. May be repeated.")
    ] = None,
    pool: Annotated[Path | None, typer.Option(help="Table of rows to choose from, instead of a box.")] = None,
    rows: Annotated[int, typer.Option(help="Rows wanted.", min=1, max=1000)] = 10,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation of the noise. Default: from the residuals.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the rows: .csv.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The rows to measure next: where EQUATION and its rivals, or its own terms, differ most for the noise."""
    from sobolev_novelty.ui.next import held, next_measurements, settings

    with one_line_errors(as_json):
        found = next_measurements(
            Path(equation) if equation.endswith(".json") else equation,
            table_source(data),
            rivals=rival or (), target=target, features=listed(features), pool=pool, written=written.table_format(),
            out=out, n=rows, sigma=sigma,
            bounds=settings(bounds, "bounds", ":") if bounds else None,
            levels=settings(levels, "levels", ",") if levels else None,
            integers=listed(integers), fixed=held(fixed) if fixed else None,
        )  # fmt: skip
        if as_json:
            print_json(found.to_dict())
        else:
            echo(str(found))
    if found.problem:
        echo(f"sobolev: {found.problem}", err=True)
        raise typer.Exit(1)
