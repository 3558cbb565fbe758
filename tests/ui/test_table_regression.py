"""The regressor over tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from sobolev_novelty.errors import DataError
from sobolev_novelty.tables.files import read_table
from sobolev_novelty.ui.fit import fit_table, predict_table


def _model(max_evaluations: int) -> sn.SymbolicRegressor:
    return sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=max_evaluations), random_state=0)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(1, 2, 60), "b": rng.uniform(1, 2, 60), "note": np.arange(60)})
    frame["y"] = 3.0 * frame["a"] / frame["b"]
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_table_is_fitted_saved_and_predicted(csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    summary = fit_table(_model(200), csv, target="y", drop=["note"], out=out)
    assert summary.equation == "3*(a/b)"
    assert summary.r2 is not None and summary.r2 > 1 - 1e-12
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False))["complexity"] == 5
    assert "3*(a/b)" in str(summary)
    predictions = predict_table(sn.SymbolicRegressor.load(out), csv, out=tmp_path / "p.csv")
    np.testing.assert_allclose(predictions.values, read_table(csv).frame["y"], rtol=1e-9)
    assert len(read_table(tmp_path / "p.csv").frame) == 60


def test_an_unknown_column_is_named(csv: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'z'.*a, b, note, y"):
        fit_table(_model(20), csv, target="z")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_table(tmp_path / "absent.csv")


def test_a_table_without_the_models_columns_is_refused(csv: Path, tmp_path: Path) -> None:
    model = _model(20)
    fit_table(model, csv, target="y", drop=["note"])
    other = tmp_path / "other.csv"
    other.write_text("a,c\n1,2\n")
    with pytest.raises(DataError, match=r"lacks columns.*b"):
        predict_table(model, other)


def test_a_table_that_was_read_before_is_fitted_until_a_callback_ends_it(csv: Path) -> None:
    model = _model(100_000)
    told: list[int] = []

    def stop_at_once(progress: object) -> bool:
        told.append(1)
        return True

    summary = fit_table(model, read_table(csv), target="y", drop=["note"], callback=stop_at_once)
    assert len(told) == 1 and summary.stop_reason == "A callback ended the search."


def test_every_row_of_the_front_has_its_own_r2(csv: Path) -> None:
    model = _model(60)
    summary = fit_table(model, csv, target="y", drop=["note"])
    frame = read_table(csv).frame
    y = frame["y"].to_numpy()
    for k, row in enumerate(summary.front):
        rest = y - model.predict(frame[["a", "b"]], index=k)
        assert row["r2"] == pytest.approx(1.0 - np.mean(rest**2) / np.var(y), abs=1e-12)
