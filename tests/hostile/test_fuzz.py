"""The fuzzers themselves, for a few fixed cases, and what they found."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest

from fuzz.mutation import mutated_bytes, mutated_json, mutated_text
from fuzz.run import Foreign, attempt, fuzz
from fuzz.targets import TARGETS, X, Y
from sobolev_novelty.errors import DataError, SobolevError
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.bench.showing.tables import results_table
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.report.streaming.accumulator import NoveltyAccumulator
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "commands"])
def test_changed_inputs_end_in_our_errors(name: str) -> None:
    outcomes = fuzz(TARGETS[name], 18, cases=60)
    assert outcomes.total() == 60


def test_changed_command_lines_end_in_one_line() -> None:
    assert fuzz(TARGETS["commands"], 18, cases=15).total() == 15


def test_a_foreign_error_and_a_slow_case_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(rng: Random) -> None:
        raise KeyError(rng.random())

    with pytest.raises(Foreign, match="case 3: KeyError"):
        attempt(broken, 1, 3)
    monkeypatch.setattr("fuzz.run.SLOW", -1.0)
    with pytest.raises(Foreign, match="took"):
        attempt(lambda rng: None, 1, 0)


def test_a_case_is_the_same_again_from_its_seed() -> None:
    text = json.dumps({"a": [1, 2, {"b": "x0 + x1"}]})
    for change in (
        lambda r: mutated_bytes(b"some bytes", r),
        lambda r: mutated_text(text, r),
        lambda r: mutated_json(text, r),
    ):
        assert [change(Random(k)) for k in range(20)] == [change(Random(k)) for k in range(20)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "runs.sqlite")
    made.check_settings({"suite": "whitebox"})
    made.claim(Job("feynman_I_12_1", "linear", 0))
    made.finish(Job("feynman_I_12_1", "linear", 0), {"status": "done", "r2_test": 0.5, "novelties": "[1.0]"})
    return made


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE runs SET r2_test = 'high'", "is damaged: column 'r2_test' holds 'high'.* Take a copy"),
        ("UPDATE runs SET expression = x'fffe'", "is damaged: column 'expression' holds"),
        ("UPDATE settings SET value = '[1'", "its settings are not JSON"),
        ("UPDATE runs SET novelties = '[1'", "'novelties' holds"),
        ("DROP TABLE runs", "is not a store"),
    ],
)
def test_a_damaged_store_is_refused_with_a_remedy(store: Store, statement: str, sentence: str) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(DataError, match=sentence):
        reader = Store(store.path, read_only=True)
        reader.settings(), reader.results(), results_table(reader.frame(), "whitebox")


def test_a_damaged_claim_is_nobodys(store: Store) -> None:
    job = Job("other", "linear", 0)
    store.claim(job)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET heartbeat = 'a', pid = NULL WHERE task = 'other'")
    assert store.claim(job)


@pytest.mark.parametrize(
    "damage",
    [
        {"equations": [{"expression": 5}]},
        {"equations": 5},
        {"settings": []},
        {"settings": {"engine": {"name": []}}},
        {"ranges": [[1e999]]},
        {"verdicts": [{}]},
        {"n_evaluations": float("inf")},
        {"stop_reason": None},
        {"chosen": {"a": 1}},
        {"chosen_index": 1e400},
        {"feature_names": ["a", "a", "a"]},
    ],
    ids=str,
)
def test_a_damaged_model_is_refused_with_a_remedy(damage: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, Y).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(DataError, match="is not a whole model.* fit and save again"):
        SymbolicRegressor.load(path)


def test_a_loaded_model_whose_equation_is_not_in_its_table_can_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, Y).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen_index": -1}))
    SymbolicRegressor.load(path).save(path)
    assert json.loads(path.read_text())["chosen_index"] == -1


@pytest.mark.parametrize("value", ["Infinity", "1e400", "-1", "[]"])
def test_accumulators_and_closures_with_odd_numbers_are_refused(value: str) -> None:
    with pytest.raises(SobolevError):
        Closure.from_json(f'{{"terms": [[0, {value}, 1, {value}]]}}')
    made = NoveltyAccumulator("x0 + x1")
    made.update(np.random.default_rng(0).normal(size=(40, 2)))
    state = json.loads(made.to_bytes())
    state["tally"]["n_samples"] = json.loads(value)
    with pytest.raises(SobolevError):
        NoveltyAccumulator.from_bytes(json.dumps(state).encode())


@pytest.mark.parametrize("saved_by", ["0.0.1", "99.0"])
def test_a_model_of_another_version_says_so(saved_by: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, Y).save(path)
    content = json.loads(path.read_text())
    SymbolicRegressor.load(path)  # its own version: not a word
    path.write_text(json.dumps(content | {"saved_by": saved_by}))
    with pytest.warns(UserWarning, match=rf"saved by version '{saved_by}' .* this is version"):
        SymbolicRegressor.load(path)


def test_an_error_of_sqlite_without_a_name_is_ours_too() -> None:
    """Python raises some of them itself, as for text that is not UTF-8 (seed 4711, case 51)."""
    assert fuzz(TARGETS["store"], 4711, first=51, cases=1).total() == 1
