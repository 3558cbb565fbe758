"""What the rows cannot decide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.parsing import parse
from sobolev_novelty.search.loop import Budget
from sobolev_novelty.search.regressor import SymbolicRegressor
from sobolev_novelty.search.rivals import rivals
from sobolev_novelty.search.validation import Rows

RNG = np.random.default_rng(0)
T = np.sort(RNG.uniform(0.5, 3.0, 120))


def test_equations_that_fit_as_well_are_rivals_and_worse_ones_are_not() -> None:
    x = np.c_[T, T + 0.02 * RNG.normal(size=120), RNG.normal(size=120)]
    y = 2.0 * T + 0.3 * RNG.normal(size=120)
    rows = Rows(x, y, None, ("x0", "x1", "x2"))
    found = rivals(parse("2*x0"), [parse(text) for text in ("2*x1", "x0 + x1", "2*x0", "1 + x2", "x0*2")], rows)
    assert next(str(e) for e in found["expression"]) == "2*x0"
    assert {str(e) for e in found["expression"][1:]} == {"2*x1", "x0 + x1"}
    assert found["lead"].iloc[0] == 0.0 and (found["difference"].iloc[1:] > 0.0).all()


def test_a_model_names_its_rivals(tmp_path: Path) -> None:
    X = np.c_[T, T + 0.01 * RNG.normal(size=120)]
    y = 3.0 * T + 0.5 * RNG.normal(size=120)
    model = SymbolicRegressor(budget=Budget(max_evaluations=600), random_state=0, verbose=False).fit(X, y)
    assert model.rivals_["expression"].iloc[0] == model.expression_
    assert len(model.rivals_) > 1
    assert "x1 is a function of x0" in model.alike_inputs_[0]
    page = model._repr_mimebundle_()["text/html"]
    assert "model.rivals_" in page and "cannot be told apart" in page
    model.save(tmp_path / "model.json")
    with pytest.raises(ParameterError, match="no training rows"):
        _ = SymbolicRegressor.load(tmp_path / "model.json").rivals_
