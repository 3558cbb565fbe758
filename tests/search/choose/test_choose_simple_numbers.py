"""Constants become simple numbers where noisy rows allow it, and only there."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.price.numbers import free_nats
from sobolev_novelty.price.structure import form_nats
from sobolev_novelty.search.choose.simple_numbers import with_simple_constants
from sobolev_novelty.search.contract.engine import Deadline
from sobolev_novelty.search.fit.final_fit import polished

NAMES = ("x0", "x1")


def table(law: str, noise: float, *, n: int = 500, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, (n, 2))
    y = evaluate(sn.parse(law), Sample(np.ascontiguousarray(X.T), NAMES))
    return X, y + noise * np.std(y) * rng.normal(size=n)


def simplified(law: str, form: str, noise: float, seed: int = 0) -> sn.Expression:
    X, y = table(law, noise, seed=seed)
    fitted, _ = polished(sn.parse(form), Rows.of(X, y))
    return with_simple_constants(fitted, Rows.of(X, y))


@pytest.mark.parametrize(
    ("law", "form"),
    [
        ("x0*x1 + x1**2", "1.1*x0*x1 + 0.9*x1**2"),
        ("2*x0*(1 - cos(x0*x1))", "1.9*x0*(1.05 - cos(x0*x1))"),
        ("x0/(1 + x1)/2", "0.4*x0/(1.1 + x1)"),
        ("exp(-x0**2/2)/sqrt(2*pi)", "0.41*exp(-0.52*x0**2)"),
        ("x0*x1/(4*pi)", "0.081*x0*x1"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_a_law_in_simple_numbers_is_written_in_them(law: str, form: str, seed: int) -> None:
    found = simplified(law, form, 0.02, seed)
    X, _ = table(law, 0.0, n=50, seed=99)
    sample = Sample(np.ascontiguousarray(X.T), NAMES)
    np.testing.assert_allclose(evaluate(found, sample), evaluate(sn.parse(law), sample), rtol=1e-12)


def test_a_number_that_stands_in_the_equation_may_come_again() -> None:
    law = "10*(x1 - (x0**3 - x0)/3)"
    assert sorted(np.abs(simplified(law, "9*x1 - 3*cube(x0) + 3*x0", 0.02).constants)) == pytest.approx(
        [10 / 3, 10 / 3, 10.0], rel=1e-12
    )


def test_a_constant_that_is_known_well_and_is_not_simple_stays() -> None:
    found = simplified("0.7371*x0 + 1.2345*x1", "0.7*x0 + 1.2*x1", 0.01)
    np.testing.assert_allclose(found.constants, [0.7371, 1.2345], rtol=0.01)
    assert not {0.74, 1.25} & set(found.constants)


def test_exact_data_leave_an_equation_as_it_is() -> None:
    X, y = table("1.0037*x0 + 2", 0.0)
    law = sn.parse("1.0037*x0 + 2")
    assert with_simple_constants(law, Rows.of(X, y)) == law


def test_a_term_that_may_be_zero_goes() -> None:
    assert simplified("3*x0", "2.9*x0 + 0.01", 0.05).variables == ("x0",)
    assert str(simplified("3*x0", "2.9*x0 + 0.01", 0.05)) == "3*x0"


def test_rows_of_weight_zero_do_not_count() -> None:
    X, y = table("x0*x1", 0.02)
    weights = np.where(np.arange(len(y)) < 400, 1.0, 0.0)
    spoilt = np.where(weights > 0.0, y, 1e3)
    assert str(with_simple_constants(sn.parse("1.001*(x0*x1)"), Rows.of(X, spoilt, weights))) == "x0*x1"


def test_when_the_time_is_over_nothing_changes() -> None:
    X, y = table("x0*x1", 0.02)
    law = sn.parse("1.001*(x0*x1)")
    assert with_simple_constants(law, Rows.of(X, y), deadline=Deadline(0.0)) == law


def test_simple_numbers_cost_no_accuracy() -> None:
    """Laws whose constants are anything: the error on new rows, of what least squares gives and of what is written.

    It may rise by what the exchange saves and no more: the nodes that go, and as many numbers as are others after it,
    each at what n rows know of one. A rise of the error by a factor q costs n rows n/2 ln q nats.
    """
    rng, n = np.random.default_rng(0), 200
    ratios = []
    for seed in range(60):
        a, b, c = rng.normal(0.0, 2.0, 3)
        law = f"{a}*x0 + {b}*exp(-x1) + {c}*x0*x1"
        X, y = table(law, 0.1, n=n, seed=seed)
        fitted, _ = polished(sn.parse(law), Rows.of(X, y))
        simple = with_simple_constants(fitted, Rows.of(X, y))
        sample = Sample(np.ascontiguousarray(table(law, 0.0, n=400, seed=1000 + seed)[0].T), NAMES)
        truth = evaluate(sn.parse(law), sample)
        errors = [np.mean((evaluate(e, sample) - truth) ** 2) for e in (fitted, simple)]
        noise = (0.1 * np.std(truth)) ** 2  # of one row
        ratios.append((errors[1] + noise) / (errors[0] + noise))
        n_changed = len(set(fitted.constants) - set(simple.constants))
        saved = form_nats(fitted.complexity - simple.complexity, len(NAMES)) + n_changed * free_nats(n)
        assert 0.5 * n * math.log(ratios[-1]) <= saved
    assert np.mean(ratios) < 1.02  # terms that do not pay for their nodes go


def test_a_search_on_noisy_rows_gives_the_law_in_its_own_numbers() -> None:
    X, y = table("x0*(1 + x1**2)", 0.1)
    model = sn.SymbolicRegressor(random_state=0, budget=sn.Budget(max_evaluations=600)).fit(X, y)
    sample = Sample(np.ascontiguousarray(X.T), NAMES)
    np.testing.assert_allclose(
        evaluate(model.expression_, sample), evaluate(sn.parse("x0*(1 + x1**2)"), sample), rtol=1e-12
    )
    assert model.score(X, y) == pytest.approx(1.0 - model.equations_.query("chosen")["loss"].iloc[0] / np.var(y))


def test_a_phase_is_looked_at_between_minus_pi_and_pi() -> None:
    found = simplified("x0 - cos(x0 - x1 - pi/2)/2", "1.01*x0 - 0.48*cos(x0 - x1 + 11)", 0.05)
    assert sorted(abs(c) for c in found.constants) == pytest.approx([0.5, np.pi / 2], rel=1e-12)


def test_no_function_comes_in_by_a_phase() -> None:
    found = simplified("x0 + sin(x1 + pi/2)", "x0 + sin(x1 + 7.85)", 0.05)
    assert "cos" not in str(found)


@pytest.mark.parametrize("seed", [2, 3, 5, 6])
def test_two_constants_that_resemble_each_other_become_simple_together(seed: int) -> None:
    # On these rows x0**3 and x0 resemble each other: neither coefficient is certain enough by itself.
    rng = np.random.default_rng(seed)
    X = np.stack([rng.uniform(0.5, 1.5, 300), rng.uniform(-1.0, 1.0, 300)], axis=1)
    y = 10.0 * X[:, 1] + 10.0 / 3.0 * (X[:, 0] - X[:, 0] ** 3)
    y += rng.normal(0.0, 0.1 * np.std(y), 300)
    fitted, _ = polished(sn.parse("10*x1 - 3.3*x0**3 + 3.3*x0"), Rows.of(X, y))
    found = with_simple_constants(fitted, Rows.of(X, y))
    assert sorted(abs(c) for c in found.constants if abs(c) > 3.0) == pytest.approx([10 / 3, 10 / 3, 10.0], rel=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_decimals_that_people_choose_are_simple_where_the_rows_are_certain(seed: int) -> None:
    X, y = table("x1 - 0.05*x0**2", 0.01, n=400, seed=seed)
    fitted, _ = polished(sn.parse("x1 - 0.0502*x0**2"), Rows.of(X, y))
    found = with_simple_constants(fitted, Rows.of(X, y))
    assert 0.05 in [round(abs(c), 14) for c in found.constants]
