"""Options of engines: what scikit-learn asks of them, without its base class."""

from __future__ import annotations

import pytest
from sklearn.base import clone

import sobolev_novelty as sn
from sobolev_novelty.engines.genetic import Genetic
from sobolev_novelty.errors import ParameterError


def test_scikit_learn_clones_an_engine_with_its_options() -> None:
    engine = Genetic(population_size=60, guidance=sn.SobolevGuidance(tau=0.2))
    twin = clone(engine)
    assert twin is not engine and twin.get_params() == engine.get_params()
    assert twin.get_params()["population_size"] == 60


def test_options_of_the_engine_are_reached_through_the_regressor() -> None:
    model = sn.SymbolicRegressor(Genetic(population_size=60)).set_params(engine__population_size=80)
    assert model.get_params()["engine__population_size"] == 80
    assert clone(model).engine.population_size == 80


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(ParameterError, match=r"Genetic has no option 'size'. Options: .*population_size"):
        Genetic().set_params(size=3)


def test_an_engine_prints_what_differs_from_the_default() -> None:
    assert repr(Genetic()) == "Genetic()"
    assert repr(Genetic(population_size=60)) == "Genetic(population_size=60)"
