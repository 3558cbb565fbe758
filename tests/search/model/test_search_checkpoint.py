"""Checkpoints: a killed run goes on, and a file that is none is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import DataError
from sobolev_novelty.search.contract.engine import Candidate
from sobolev_novelty.search.loop.front import ParetoFront
from sobolev_novelty.search.loop.loop import Budget, SearchProgress
from sobolev_novelty.search.model import checkpoint
from sobolev_novelty.search.model.checkpoint import Checkpoint
from sobolev_novelty.search.model.regressor import SymbolicRegressor

X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 3))
Y = X[:, 0] ** 2.3 + np.log(X[:, 1] + X[:, 2]) * X[:, 0]
XS = Expression.of("x0")
FRONT = ParetoFront((Candidate(XS, XS, 0.5, 0.5),))


def same(expression: Expression) -> Expression:
    return expression


def fitted(path: Path, n: int, y: np.ndarray = Y) -> SymbolicRegressor:
    return SymbolicRegressor("mcts", budget=Budget(max_evaluations=n), random_state=0).fit(X, y, checkpoint=path)


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    first = fitted(path, 150)
    assert json.loads(path.read_text())["n_evaluations"] == first.n_evaluations_
    second = fitted(path, 400)
    assert second.n_evaluations_ == 400
    assert second.equations_["loss"].min() <= first.equations_["loss"].min() * (1 + 1e-9)


def test_a_checkpoint_of_other_data_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    fitted(path, 50)
    before = path.read_text()
    with pytest.raises(DataError, match="belongs to other data. Delete it or give another path"):
        fitted(path, 50, Y + 1.0)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[1]", "does not hold a JSON object"),
        ("{", "cannot be read as JSON"),
        ('{"format": "something"}', "is not a checkpoint"),
    ],
)
def test_a_file_that_is_not_a_checkpoint_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(DataError, match=sentence):
        Checkpoint.open(path, X, Y)


@pytest.mark.parametrize("damage", [{"equations": None}, {"seconds": "soon"}, {"n_evaluations": None}])
def test_a_damaged_checkpoint_is_refused_with_a_remedy(tmp_path: Path, damage: dict[str, object]) -> None:
    path = tmp_path / "run.json"
    Checkpoint.open(path, X, Y).write(SearchProgress(FRONT, 10, 2, 1.5), same)
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(DataError, match="is damaged.* Delete it or give another path"):
        Checkpoint.open(path, X, Y)


def test_what_was_spent_adds_up_over_runs_and_leaves_time_for_the_equations_found(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    for _ in range(2):
        Checkpoint.open(path, X, Y).write(SearchProgress(FRONT, 10, 2, 1.5), same)
    saved = Checkpoint.open(path, X, Y)
    assert (saved.equations, saved.n_evaluations, saved.n_novelty_calls, saved.seconds) == (("x0",), 20, 4, 3.0)
    assert saved.remaining(Budget(max_evaluations=100, seconds=10.0), 1) == Budget(max_evaluations=80, seconds=7.0)
    spent = saved.remaining(Budget(max_evaluations=15, seconds=2.0), 3)
    assert spent.max_evaluations == 4
    assert spent.seconds is not None and 0.0 < spent.seconds < 0.1


def test_it_is_written_now_and_then_while_a_search_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    save = Checkpoint.open(path, X, Y).callback(same)
    progress = SearchProgress(FRONT, 10, 0, 0.1)
    save(progress)
    assert not path.exists()
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    save(progress)
    assert json.loads(path.read_text())["n_evaluations"] == 10


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_search(tmp_path: Path) -> None:
    """The folder disappears while the search runs."""
    folder = tmp_path / "gone"
    with pytest.warns(UserWarning, match="could not be written .* the search goes on"):
        model = fitted(folder / "run.json", 50)
    assert model.n_evaluations_ == 50
