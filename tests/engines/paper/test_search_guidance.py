"""Who decides whether an engine gets the Sobolev signal: the regressor, unless the engine was told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.engines.paper.gp import PaperGP
from sobolev_novelty.engines.paper.mcts import PaperMCTS
from sobolev_novelty.search.contract.engine import Engine

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (80, 2))
Y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 0] ** 2 + 0.3 * RNG.normal(size=80)
ENGINES = [
    (sn.Genetic, {"structural": False}),
    (sn.MCTS, {}),
    (PaperGP, {"population_size": 30, "n_offspring": 30}),
    (PaperMCTS, {"n_rounds": 5}),
    (sn.IGSR, {}),
]


def novelty_calls(engine: Engine[Any], **options: Any) -> int:
    model = sn.SymbolicRegressor(engine, budget=sn.Budget(max_evaluations=400), random_state=0, **options)
    return int(model.fit(X, Y).n_novelty_calls_)


@pytest.mark.parametrize(("kind", "options"), ENGINES, ids=lambda value: getattr(value, "__name__", ""))
def test_an_engine_that_is_told_none_gets_no_signal(kind: type[Engine[Any]], options: dict[str, Any]) -> None:
    assert novelty_calls(kind(**options, guidance=None)) == 0
    assert novelty_calls(kind(**options, guidance=None), novelty=sn.SobolevGuidance()) == 0
    assert novelty_calls(kind(**options)) > 0
    assert novelty_calls(kind(**options), novelty=False) == 0
    assert novelty_calls(kind(**options, guidance=sn.SobolevGuidance())) > 0


def test_what_an_engine_was_told_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for guidance in (None, "default", sn.SobolevGuidance(order=0)):
        engine = sn.Genetic(guidance=guidance)
        budget = sn.Budget(max_evaluations=20)
        sn.SymbolicRegressor(engine, budget=budget, random_state=0).fit(X, Y).save(path)
        assert sn.SymbolicRegressor.load(path).engine.guidance == guidance  # type: ignore[union-attr]


def test_an_engine_of_an_older_file_follows_the_regressor_as_it_did(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    model = sn.SymbolicRegressor(sn.Genetic(guidance=None), budget=sn.Budget(max_evaluations=20), random_state=0)
    model.fit(X, Y).save(path)
    content = json.loads(path.read_text())
    content["version"] = 3
    path.write_text(json.dumps(content))
    assert sn.SymbolicRegressor.load(path).engine.guidance == "default"  # type: ignore[union-attr]
