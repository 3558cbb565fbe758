"""Every published model is read, or refused for a reason that is right, and computes what was checked."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from published_models import Dataset, PublishedModel, r2_on, read_dataset, read_published
from sobolev_novelty.errors import DataError
from sobolev_novelty.language.parsing import parse


@pytest.fixture(scope="module")
def ground_truth(shared_data: Path) -> list[PublishedModel]:
    return list(read_published(shared_data, "ground_truth"))


@pytest.fixture(scope="module")
def black_box(shared_data: Path) -> list[PublishedModel]:
    return list(read_published(shared_data, "black_box"))


def refusals(models: list[PublishedModel]) -> Counter[str]:
    return Counter(model.refusal.split(".")[0] for model in models if model.expression is None)


def test_the_ground_truth_models_parse_or_are_refused_for_the_right_reason(ground_truth: list[PublishedModel]) -> None:
    assert len(ground_truth) == 18_721
    assert refusals(ground_truth) == {
        "'I' is not a known variable": 47,  # complex-valued
        "The source gives no model": 8,
        "'zoo' is not a finite number": 5,  # SymPy's complex infinity
        "The number is too large for a float": 1,  # 1.6e+12013
        "The number is too small for a float; write 0 if that is meant": 1,  # 1.4e-4450
        "'v0' is not a known variable": 1,  # a style of its own, against what the file states
    }


def test_the_black_box_models_all_parse(black_box: list[PublishedModel]) -> None:
    assert len(black_box) == 9_841
    assert refusals(black_box) == {}


def test_every_published_model_survives_printing(
    ground_truth: list[PublishedModel], black_box: list[PublishedModel]
) -> None:
    for model in ground_truth + black_box:
        if model.expression is not None:
            assert parse(str(model.expression)) == model.expression


def agrees(model: PublishedModel, data: Dataset) -> bool:
    """R² within 0.01 of the stored one; where a model misses by orders of magnitude, to nine digits."""
    assert model.expression is not None
    return bool(np.isclose(r2_on(model.expression, data), model.r2_stored, rtol=1e-9, atol=0.01))


def test_raw_space_models_reproduce_the_stored_r2(ground_truth: list[PublishedModel], shared_data: Path) -> None:
    data = cache(lambda name: read_dataset(shared_data, name))
    checked = [model for model in ground_truth if model.space == "raw" and not np.isnan(model.r2_stored)]
    assert len(checked) == 18_322
    assert all(model.expression is not None for model in checked)
    wrong = [model for model in checked if not agrees(model, data(model.dataset))]
    # One model takes the cosine of exp(54): the last digit of the exponential decides, and kernels may differ in it.
    assert len(wrong) <= 1
    assert all("cos(exp(" in str(model.expression) for model in wrong)


def test_standardised_models_reproduce_the_stored_r2(ground_truth: list[PublishedModel], shared_data: Path) -> None:
    checked = [model for model in ground_truth if model.space != "raw" and not np.isnan(model.r2_stored)]
    assert len(checked) == 184
    for model in checked:
        raw = read_dataset(shared_data, model.dataset)
        X = (raw.X - raw.X.mean(axis=1, keepdims=True)) / raw.X.std(axis=1, keepdims=True)
        assert agrees(model, Dataset(raw.name, raw.columns, X, (raw.y - raw.y.mean()) / raw.y.std()))


def test_a_missing_data_set_and_an_unknown_suite_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'nothing' is not below"):
        read_dataset(tmp_path, "nothing")
    with pytest.raises(DataError, match="'suite' must be one of"):
        next(read_published(tmp_path, "white_box"))


def test_r2_uses_the_rows_with_a_finite_value() -> None:
    data = Dataset("toy", ("x0",), np.array([[-1.0, 1.0, 4.0]]), np.array([9.0, 1.0, 2.0]))
    assert r2_on(parse("sqrt(x0)"), data) == 1.0
    assert np.isnan(r2_on(parse("log(-1)"), data))
