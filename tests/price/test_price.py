"""What an equation costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Replicates, Rows
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.price.description import describe, quick_nats_of, rows_nats
from sobolev_novelty.price.likelihood import few_rows_nats, misfit_nats
from sobolev_novelty.price.noise import Noise, kinds_to_try
from sobolev_novelty.price.numbers import n_numbers, numbers_nats
from sobolev_novelty.price.structure import SELDOM_NATS, structure_nats

RNG = np.random.default_rng(0)
X = RNG.uniform(1.0, 3.0, (60, 2))


def priced(rows: Rows, text: str, noise: Noise) -> float:
    e = parse(text)
    return describe(rows, e, values([e], rows.sample)[0], noise).total


def test_a_longer_form_and_more_inputs_cost_more():
    short, long = parse("x0"), parse("x0*x1 + sin(x0)")
    assert structure_nats(short, 2) < structure_nats(long, 2) < structure_nats(long, 10)


@pytest.mark.parametrize("name", ["arcsin", "arccos", "tanh", "abs", "cbrt"])
def test_a_seldom_function_costs_more_than_an_exponential(name: str):
    assert structure_nats(parse(f"{name}(x0)"), 1) - structure_nats(parse("exp(x0)"), 1) == pytest.approx(SELDOM_NATS)


def test_operators_with_costs_of_their_own_are_priced_by_them():
    assert structure_nats(parse("sin(x0)"), 1, 9) > structure_nats(parse("sin(x0)"), 1)


def test_a_number_costs_what_the_rows_know_of_it_and_a_simple_one_what_it_takes_to_write_it():
    assert numbers_nats(parse("0.517*x0"), 100) == pytest.approx(0.5 * math.log(100))
    assert numbers_nats(parse("0.5*x0"), 100) < 1.0
    assert numbers_nats(parse("2*x0**3"), 100) == 0.0
    assert n_numbers(parse("2*x0 + 0.5")) == 1


def test_numbers_as_many_as_rows_are_forbidden_and_nothing_on_a_thousand_rows():
    assert few_rows_nats(4, 6, 0.1) > 10.0
    assert few_rows_nats(4, 5, 1e-20) > 60.0
    assert few_rows_nats(4, 1000, 0.1) < 0.1


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_units_of_the_target_do_not_change_what_equations_cost_beside_each_other(scale: float):
    y = 2.3456 * X[:, 0] + RNG.normal(size=60) * 0.1
    here = [priced(Rows.of(X, y), f"1.23456*{text}", Noise()) for text in ("(2*x0)", "(x0 + x1)")]
    there = [priced(Rows.of(X, scale * y), f"{scale * 1.23456!r}*{text}", Noise()) for text in ("(2*x0)", "(x0 + x1)")]
    assert there[0] - there[1] == pytest.approx(here[0] - here[1], abs=1e-6)


def test_what_is_exact_up_to_rounding_is_told_apart_by_its_form_alone():
    table = Rows.of(X, 2.0 * X[:, 0])
    assert priced(table, "2*x0", Noise()) < priced(table, "2*x0 + 1e-15*x1", Noise())


def test_rows_with_equal_inputs_speak_once_for_a_form():
    """Fifteen measurements at three settings: a curve through three means is no law."""
    x = np.repeat([1.0, 2.0, 3.0], 5)
    y = np.repeat([1.0, 5.0, 2.0], 5) + 0.01 * RNG.normal(size=15)
    wave = y.mean() + np.repeat([1.0, 5.0, 2.0], 5) - np.repeat([1.0, 5.0, 2.0], 5).mean()
    with_replicates = misfit_nats(y - y.mean(), np.ones(15), Replicates.of(x[:, None]))
    fitted = misfit_nats(y - wave, np.ones(15), Replicates.of(x[:, None]))
    alone = Replicates.of(np.arange(15.0)[:, None])
    gain = misfit_nats(y - y.mean(), np.ones(15), alone) - misfit_nats(y - wave, np.ones(15), alone)
    assert 0.0 < with_replicates - fitted < 0.4 * gain


def test_without_equal_inputs_there_is_no_pure_error():
    r = RNG.normal(size=20)
    assert Replicates.of(np.arange(20.0)[:, None]).split(r, np.ones(20)) == (0.0, pytest.approx(float(r @ r)))


@pytest.mark.parametrize(("noise", "power"), [("relative", 1.0), ("constant", 0.0), ("counts", 0.5)])
def test_the_rows_tell_which_noise_they_have(noise: str, power: float):
    rng = np.random.default_rng(3)
    x = np.geomspace(1.0, 1000.0, 300)
    f = 5.0 * x
    y = {
        "relative": f * (1.0 + 0.05 * rng.normal(size=300)),
        "constant": f + 50.0 * rng.normal(size=300),
        "counts": rng.poisson(f).astype(float),
    }[noise]
    table = Rows.of(x[:, None], y)
    costs = {p: rows_nats(table, f, Noise.of(p, y)) for p in (0.0, 0.5, 1.0)}
    assert min(costs, key=lambda p: costs[p]) == power


def test_a_known_size_of_the_noise_is_not_integrated_out():
    y = X[:, 0] + 0.1 * RNG.normal(size=60)
    known = Rows.of(X, y, level=0.1)
    assert rows_nats(known, X[:, 0], Noise()) == pytest.approx(0.5 * np.sum((y - X[:, 0]) ** 2) / 0.01)


def test_kinds_of_noise_that_are_none_are_refused():
    with pytest.raises(ParameterError, match="'noise' must be one of auto, constant, relative, counts, power. Got 'x'"):
        kinds_to_try("x", np.ones(3))
    assert kinds_to_try("auto", np.array([-1.0, 1.0])) == ("constant",)


def test_the_noise_in_words():
    assert "1.2 %" in Noise(1.0).sentence(0.012)
    assert "constant" in Noise().sentence(0.5, "rate")


def test_what_is_not_finite_costs_infinitely_much():
    assert rows_nats(Rows.of(X, X[:, 0]), np.full(60, np.nan), Noise()) == math.inf
    assert math.isfinite(quick_nats_of(Expression.of("x0"), 0.0, 1, 60, 2))


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_weights_of_values_whose_squares_are_no_floats_have_mean_one(power: float) -> None:
    values = np.array([1e200, 2e200, 4e200])
    weights = Noise.of(power, values).weights(values)
    assert weights is not None and weights.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(weights, Noise.of(power, values / 1e200).weights(values / 1e200))


def test_the_noise_of_a_target_that_is_zero_everywhere_is_constant() -> None:
    assert all(Noise.of(power, np.zeros(5)).is_constant for power in (0.5, 1.0))
