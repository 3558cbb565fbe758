"""Groups of options: declared once, taken by a verb as one argument."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from sobolev_novelty.tables.format import TableFormat
from sobolev_novelty.ui.cli.main import app
from sobolev_novelty.ui.cli.options import FormatOptions, JsonOption, MeasureOptions, listed, with_groups


def test_a_group_reaches_the_handler_as_one_value() -> None:
    other = typer.Typer()
    seen: list[object] = []

    @other.command()
    @with_groups
    def verb(written: FormatOptions, measure: MeasureOptions, as_json: JsonOption = False) -> None:
        """A verb."""
        seen.extend([written, measure.arguments(), as_json])

    result = CliRunner().invoke(other, ["--separator", "tab", "--no-header", "--tau", "0.2", "--json"])
    assert result.exit_code == 0, result.output
    assert seen == [FormatOptions("tab", no_header=True), {"order": 1, "tau": 0.2}, True]
    assert FormatOptions("tab", no_header=True).table_format() == TableFormat("tab", has_header=False)
    assert "A verb." in CliRunner().invoke(other, ["--help"]).stdout


def test_every_verb_that_reads_a_table_has_the_same_options_for_it() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for verb in ("report", "prune", "accepts", "fit", "predict"):
        options = {option for parameter in commands[verb].params for option in parameter.opts}
        assert {"--separator", "--decimal", "--encoding", "--no-header", "--json"} <= options, verb


def test_names_are_separated_by_commas() -> None:
    assert listed(None) is None
    assert listed(" a, b,,c ") == ["a", "b", "c"]
