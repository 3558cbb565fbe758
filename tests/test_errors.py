"""The exception tree."""

from __future__ import annotations

import pickle

import pytest

import sobolev_novelty as sn
from sobolev_novelty import errors

TREE = {
    "ParseError": ValueError,
    "ExpressionError": ValueError,
    "DataError": ValueError,
    "DataTypeError": TypeError,
    "ParameterError": ValueError,
    "OutputError": OSError,
    "KernelError": RuntimeError,
    "MissingExtraError": ImportError,
}


@pytest.mark.parametrize(("name", "builtin"), TREE.items())
def test_every_error_is_ours_and_the_builtin_it_refines(name: str, builtin: type[Exception]) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.SobolevError)
    assert issubclass(error, builtin)
    assert name in (errors.__doc__ or "")


def test_the_docstring_draws_every_error_there_is() -> None:
    found = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert found - {"ExtrapolationWarning"} == {*TREE, "SobolevError"}


def test_a_parse_error_points_at_the_character() -> None:
    with pytest.raises(sn.ParseError) as caught:
        sn.parse("x0 + $")
    reason, text, caret = str(caught.value).split("\n")
    assert reason == "'$' is not part of a formula."
    assert text.strip() == "x0 + $"
    assert caret.index("^") == text.index("$")
    assert caught.value.position == 5


def test_a_parse_error_shows_a_window_of_a_long_text_and_survives_pickling() -> None:
    error = errors.ParseError("Bad character.", "a" * 1000 + "\n$" + "b" * 1000, 1001)
    assert len(str(error)) < 250
    lines = str(error).split("\n")
    assert len(lines) == 3
    assert lines[1][lines[2].index("^")] == "$"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.reason, copy.text, copy.position) == (error.reason, error.text, error.position)
    assert str(errors.ParseError("Nothing there.")) == "Nothing there."


def test_a_missing_extra_says_how_to_install_it() -> None:
    with pytest.raises(ImportError, match=r"needs 'no_such_thing'.*pip install '\.\[plot\]'"):
        errors.require("no_such_thing", extra="plot")


def test_errors_know_the_arguments_they_name_and_keep_them_in_a_pickle() -> None:
    error = errors.DataError("Give the 'separator'.", arguments=["separator"])
    copy = pickle.loads(pickle.dumps(error))
    assert copy.arguments == ("separator",) and str(copy) == str(error)
    assert errors.ParameterError("'order' must be 0.").arguments == ()
