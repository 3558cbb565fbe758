"""Language models on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from llm_server import chat_server, saying
from sobolev_novelty.engines.igsr.engine import IGSR
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.ui.cli.main import app


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def data(tmp_path: Path) -> str:
    X = np.random.default_rng(0).uniform(0.5, 2.0, (100, 2))
    path = tmp_path / "data.csv"
    pd.DataFrame({"mass": X[:, 0], "body length": X[:, 1], "y": X[:, 0] * X[:, 1]}).to_csv(path, index=False)
    return str(path)


def fit(data: str, *options: str) -> Result:
    return invoke("fit", data, "--target", "y", "--max-evaluations", "60", *options)


def test_fit_asks_the_endpoint_and_says_so(data: str) -> None:
    with chat_server(saying("mass*`body length`")) as server:
        result = fit(data, "--engine", "igsr", "--llm", server.url, "--model", "m", "--llm-calls", "2")
        assert len(server.received) == 2
        assert "body length" in server.received[0]["body"]["messages"][1]["content"]
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == "mass*`body length`"
    assert "calls made: 2, terms offered: 2, parsed: " in result.output


def test_names_can_be_hidden(data: str) -> None:
    with chat_server(saying("x0*x1")) as server:
        result = fit(data, "--engine", "igsr", "--llm", server.url, "--model", "m", "--llm-calls", "1", "--anonymous")
        assert "body" not in server.received[0]["body"]["messages"][1]["content"]
    assert result.output.splitlines()[0] == "mass*`body length`"


def test_a_transcript_is_recorded_and_replayed(data: str, tmp_path: Path) -> None:
    transcript = str(tmp_path / "calls.jsonl")
    options = ("--engine", "igsr", "--llm-calls", "2", "--transcript", transcript, "--json")
    with chat_server(saying("mass*`body length`\nmass")) as server:
        first = fit(data, *options, "--llm", server.url, "--model", "m")
    again = fit(data, *options)
    assert first.exit_code == again.exit_code == 0, again.output
    one, two = json.loads(first.output), json.loads(again.output)
    assert one["equation"] == two["equation"] and one["front"] == two["front"]
    assert two["counts"]["calls replayed"] == two["counts"]["calls made"] == 2


def test_other_engines_take_the_model_as_a_source_of_guesses(data: str) -> None:
    with chat_server(saying("mass*`body length`")) as server:
        result = fit(data, "--engine", "mcts", "--llm", server.url, "--model", "m", "--llm-calls", "1")
        assert len(server.received) == 1
    assert result.output.splitlines()[0] == "mass*`body length`" and "guesses given: 1" in result.output


def test_igsr_needs_no_model_and_its_saved_model_can_be_fitted_again(data: str, tmp_path: Path) -> None:
    result = fit(data, "--engine", "igsr", "--out", str(tmp_path / "model.json"))
    assert result.exit_code == 0 and "calls made: " in result.output
    assert isinstance(SymbolicRegressor.load(tmp_path / "model.json").engine, IGSR)


def test_an_endpoint_that_is_not_there_is_named_in_the_result(data: str) -> None:
    with chat_server(saying("x")) as server:
        url = server.url
    result = fit(data, "--engine", "igsr", "--llm", url, "--model", "m", "--llm-calls", "1", "--budget", "20")
    assert result.exit_code == 0
    assert "calls failed: 1, last problem: The connection to 127.0.0.1 failed: Connection refused." in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "igsr", "--llm", "http://127.0.0.1/v1"), "--model is missing"),
        (("--engine", "igsr", "--model", "m"), "--model needs the address of an endpoint"),
        (("--engine", "igsr", "--llm", "nowhere", "--model", "m"), "--llm must be an address"),
        (("--engine", "igsr", "--llm-calls", "0"), "--llm-calls must be a whole number of at least 1"),
        (("--engine", "genetic", "--anonymous"), "--engine must be igsr"),
        (("--engine", "genetic", "--llm-tokens", "5", "--llm", "http://h/v1", "--model", "m"), "--engine must be igsr"),
        (("--engine", "igsr", "--transcript", "missing.jsonl"), "holds no calls"),
    ],
)
def test_wrong_options_are_one_line(data: str, options: tuple[str, ...], message: str) -> None:
    result = fit(data, *options)
    assert result.exit_code == 1 and message in result.output and len(result.output.strip().splitlines()) == 1


def test_the_grammar_is_printed(data: str) -> None:
    result = invoke("llm", "grammar", data, "--target", "y", "--terms", "3")
    assert result.exit_code == 0 and result.output.startswith('root ::= term "\\n" term "\\n" term "\\n"\n')
    assert 'name ::= ("mass" | "`body length`")' in result.output
    both = json.loads(invoke("llm", "grammar", "--names", "a,b", "--json").output)
    assert set(both) == {"gbnf", "json_schema"}
    schema = json.loads(invoke("llm", "grammar", "--names", "a,b", "--schema").output)
    assert schema == both["json_schema"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Give the variables: either DATA or --names."),
        (("--names", "a", "--operators", "foo"), "--operators names unknown ones: foo."),
        (("--names", "a,b", "--target", "c"), "--target must be one of a, b. Got 'c'."),
        (("--names", "a", "--terms", "0"), "--terms must be at least 1. Got 0."),
    ],
)
def test_a_grammar_that_cannot_be_written_is_one_line(options: tuple[str, ...], message: str) -> None:
    result = invoke("llm", "grammar", *options)
    assert result.exit_code == 1 and message in result.output
