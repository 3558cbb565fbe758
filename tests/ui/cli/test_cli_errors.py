"""Errors of the library in the words of the command line."""

from __future__ import annotations

import pytest
import typer

from sobolev_novelty.errors import DataError, ParameterError, ParseError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.ui.cli.errors import OPTIONS, one_line, one_line_errors
from sobolev_novelty.ui.cli.main import app


def test_an_argument_at_the_start_of_a_message_becomes_an_option() -> None:
    assert one_line(ParameterError("'n_jobs' must not be 0.")) == "--jobs must not be 0."
    assert one_line(DataError("'X' has no rows.")) == "'X' has no rows."


def test_arguments_that_an_error_declares_become_options_wherever_they_stand() -> None:
    error = DataError("Say what separates the columns ('separator').", arguments=["separator"])
    assert one_line(error) == "Say what separates the columns (--separator)."


def test_a_column_with_the_name_of_an_argument_stays_as_it_is() -> None:
    error = DataError("'target': there is no column 'target'.", arguments=["target"])
    assert one_line(error) == "--target: there is no column 'target'."
    assert one_line(DataError("Column 'target' is empty.")) == "Column 'target' is empty."


def test_an_error_in_an_equation_names_the_character() -> None:
    assert one_line(ParseError("This is wrong.", "a + ?", 4)) == "This is wrong. (Character 5, near 'a + ?'.)"


def test_a_file_that_cannot_be_opened_is_one_line() -> None:
    error = PermissionError(13, "Permission denied", "model.json")
    assert one_line(error) == "'model.json': Permission denied. Check the path and its permissions."


def test_errors_that_nobody_raised_on_purpose_pass_through() -> None:
    with pytest.raises(KeyError, match="a bug"), one_line_errors():
        raise KeyError("a bug")


def test_every_option_in_the_table_is_one_of_the_command_line() -> None:
    ours = typer.main.get_command(app)
    verbs = [ours.get_command(None, name) for name in ours.list_commands(None)]  # type: ignore[attr-defined]
    commands = [command for verb in verbs for command in (verb, *getattr(verb, "commands", {}).values())]
    known = {option for command in commands for parameter in command.params for option in parameter.opts}
    assert set(OPTIONS.values()) <= known


def test_a_convention_that_the_library_names_is_written_as_an_option() -> None:
    with pytest.raises(ParseError) as caught:
        parse("x1", names=["a", "b", "c"])
    assert 'variables="x0"' in str(caught.value)
    assert "Say which: --variables x0 or --variables x1." in one_line(caught.value)
