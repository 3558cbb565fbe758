"""Units: read, followed, refused where they make no sense."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.search.problem.dimensions import Dimensions, check_units, parse_unit, unit_text

UNITS = {"m": "kg", "v": "m/s", "r": "m"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kg*m/s^2", "N"),
        ("kg m s^-2", "N"),
        ("J/K", "kg*m**2/(s^2*K)"),
        ("km/h", "m/s"),
        ("mV", "W/A"),
        ("sqrt", None),
        ("m^(1/2)", "m^0.5"),
        ("1/s", "kHz"),
        ("", "1"),
        ("rad", "1"),
        ("m/s/s", "m/s^2"),
        ("Pa·m^3", "J"),
    ],
)
def test_units_are_read_by_their_dimensions(one: str, other: str | None) -> None:
    if other is None:
        with pytest.raises(ParameterError, match="'sqrt' is not a unit that is known here"):
            parse_unit(one)
    else:
        assert parse_unit(one) == parse_unit(other)


@pytest.mark.parametrize("text", ["kg*", "(m", "m^x", "m)", "*m", "m^", "m;s", "kg**", "__import__('os')", "m" * 300])
def test_what_is_not_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="nit"):
        parse_unit(text)


def test_a_dimension_is_written_in_base_units() -> None:
    assert unit_text(parse_unit("N")) == "m*kg/s^2"
    assert unit_text(parse_unit("W/(m^2 K)")) == "kg/(s^3*K)"
    assert unit_text(parse_unit("1")) == "1"


@pytest.mark.parametrize(
    ("equation", "target", "is_free", "message"),
    [
        ("m*v**2/2", "J", False, ""),
        ("m*v + exp(v)", None, True, r"In exp\(v\), v has the unit m/s, not a pure number"),
        ("exp(0.3*v)", None, True, ""),
        ("exp(0.3*v)", None, False, "not a pure number"),
        ("sin(v + r)", None, True, r"In v \+ r, v has the unit m/s and r has the unit m"),
        ("m*v", "J", False, r"The term m\*v has the unit m\*kg/s, the target m\^2\*kg/s\^2"),
        ("m*v", "J", True, ""),
        ("sqrt(v*v) + r/2", "m/s", False, "The term r has the unit m, the target m/s"),
        ("m**v", None, True, "not a pure number"),
        ("m*r**(4/2)/(r**(1 + 1)*m)*m*v**2", "J", False, ""),
    ],
)
def test_nonsense_is_named(equation: str, target: str | None, is_free: bool, message: str) -> None:
    if not message:
        check_units(equation, sn.Units(UNITS, target, is_free))
        return
    with pytest.raises(ParameterError, match=message):
        sn.check_units(equation, sn.Units(UNITS, target, is_free))


def test_units_of_columns_that_are_not_there_are_refused() -> None:
    with pytest.raises(ParameterError, match="'units' names columns that are not there: mass"):
        Dimensions.of(sn.Units({"mass": "kg"}), ("m",))


def energy() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"m": rng.uniform(1, 3, 150), "v": rng.uniform(1, 4, 150), "h": rng.uniform(0.5, 2, 150)})
    return X, (0.5 * X["m"] * X["v"] ** 2 * (1 + 0.05 * rng.normal(size=150))).to_numpy()


def test_a_search_with_units_tries_only_what_makes_sense(tmp_path: Path) -> None:
    X, y = energy()
    units = {"m": "kg", "v": "m/s", "h": "m"}
    model = SymbolicRegressor(
        units=sn.Units(units, "J", constants=False), budget=Budget(max_evaluations=100, seconds=5.0), random_state=0
    ).fit(X, y)
    dimensions = Dimensions.of(sn.Units(units, "J", constants=False), tuple(units))
    assert all(dimensions.allows(e) for e in model.equations_["expression"] if e.variables)
    assert set(model.expression_.variables) == {"m", "v"}
    model.save(tmp_path / "model.json")
    assert SymbolicRegressor.load(tmp_path / "model.json").units == sn.Units(units, "J", constants=False)


def test_products_of_powers_with_the_unit_of_the_target_are_tried_first() -> None:
    units = sn.Units({"m": "kg", "v": "m/s", "h": "m", "g": "m/s^2"}, "J", constants=False)
    dimensions = Dimensions.of(units, ("m", "v", "h", "g"))
    found = dimensions.monomials(("m", "v", "h", "g"))
    assert {str(e) for e in found} >= {"m*square(v)", "m*h*g"}
    assert all(dimensions.allows(e) for e in found)
    assert dimensions.monomials(tuple("abcdefgh")) == []


def test_a_guess_that_makes_no_sense_is_refused_with_the_term() -> None:
    X, y = energy()
    with pytest.raises(ParameterError, match=r"In exp\(m\), m has the unit kg"):
        SymbolicRegressor(units={"m": "kg"}, guesses=["exp(m) + v"], budget=Budget(max_evaluations=10)).fit(X, y)
    assert Dimensions({}, None).allows(parse("exp(x0)"))


def test_terms_of_different_units_are_refused_although_nobody_said_what_the_target_is():
    with pytest.raises(ParameterError, match="The term v has the unit m/s, the term m kg"):
        check_units("m + v", sn.Units({"m": "kg", "v": "m/s"}, constants=False))
    check_units("m + v", {"m": "kg", "v": "m/s"})  # numbers may carry units


@pytest.mark.parametrize("seed", range(3))
def test_what_comes_back_has_the_units_that_were_asked_for(seed: int):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, (60, 3))
    y = 7.6 * X[:, 0] + 0.01 * rng.normal(size=60)  # no law of these inputs has the unit of y
    units = sn.Units({"x0": "kg", "x1": "m", "x2": "s"}, "m/s", constants=False)
    model = SymbolicRegressor(budget=Budget(max_evaluations=400), units=units, random_state=seed).fit(X, y)
    for e in model.equations_["expression"]:
        if e.variables:
            check_units(e, units)
