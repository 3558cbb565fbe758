"""Which term goes first: least deletion cost, against separate fits without each term."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sobolev_novelty as sn
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.metric.deletion import COSTS, costs_of, deletion_costs, least_needed, without_least_needed
from sobolev_novelty.metric.guidance import refit

TERMS = ("x0", "x1", "sin(x0)", "cos(3*x1)", "x0*x1", "exp(0.5*x1)", "1")
X = np.random.default_rng(5).uniform(-2.0, 2.0, (120, 2))
SAMPLE = as_sample(X)


def diagnosed(equation: str, order: int = 1) -> sn.TermNovelties:
    return sn.novelties([equation], X, order=order)[0]


@given(st.lists(st.sampled_from(TERMS), min_size=2, max_size=5, unique=True), st.integers(0, 99))
def test_the_error_cost_is_what_the_error_rises_by_when_the_others_are_refitted(names: list[str], seed: int) -> None:
    y = np.random.default_rng(seed).normal(size=len(X))
    columns = np.column_stack([evaluate(sn.parse(name), X) for name in names])

    def squared(chosen: np.ndarray) -> float:
        return float(np.mean((y - chosen @ np.linalg.lstsq(chosen, y, rcond=None)[0]) ** 2))

    fitted = refit([sn.Term(1.0, sn.parse(name)) for name in names], SAMPLE, y)
    rises = [squared(np.delete(columns, i, axis=1)) - squared(columns) for i in range(len(names))]
    costs = costs_of(sn.novelties([list(fitted)], X)[0], SAMPLE, "error")
    np.testing.assert_allclose(costs**2, rises, atol=1e-9)


def test_the_novelty_cost_is_the_distance_of_the_theorem_and_size_asks_for_no_novelty() -> None:
    found = diagnosed("2*x0 - 3*sin(x0) + 0.5*cos(3*x1)")
    np.testing.assert_array_equal(costs_of(found, SAMPLE), found.contribution)
    sizes = costs_of(found, SAMPLE, "size")
    each = [2.0 * X[:, 0], 3.0 * np.sin(X[:, 0]), 0.5 * np.cos(3.0 * X[:, 1])]
    np.testing.assert_allclose(sizes, [np.sqrt(np.mean(values**2)) for values in each])


def test_a_useless_term_is_novel_and_only_the_rule_of_the_appendix_hides_it() -> None:
    found = diagnosed("2*x0 + sin(0.5*x0) + 1e-3*cos(9*x1)")
    assert found.nu[2] > 0.9
    for cost in ("novelty", "error", "size"):
        assert str(without_least_needed(found, SAMPLE, cost)) == "2*x0 + sin(0.5*x0)"
    assert str(without_least_needed(found, SAMPLE, "D.2")) == "2*x0 + 0.001*cos(9*x1)"


def test_a_term_at_the_threshold_does_not_qualify_and_the_appendix_may_delete_it() -> None:
    b, nu, lengths = np.ones(3), np.array([TAU_ID, 1.0, 0.2]), np.array([0.3, 0.01, 3.0])
    assert least_needed(deletion_costs(b, nu, lengths, "D.2")) == 0
    assert least_needed(deletion_costs(b, nu, lengths)) == 1
    assert least_needed(deletion_costs(b[:2], nu[:2], lengths[:2], "D.2", float(np.nextafter(TAU_ID, 0.0)))) is None


@pytest.mark.parametrize("cost", COSTS)
def test_nothing_goes_where_a_term_is_alone_or_nothing_is_known(cost: str) -> None:
    assert least_needed(deletion_costs(np.ones(1), np.zeros(1), np.ones(1), cost)) is None
    assert least_needed(deletion_costs(np.ones(2), np.full(2, np.nan), np.full(2, np.nan), cost)) is None
    few = X[:20]
    assert without_least_needed(sn.novelties(["x0 + sin(x0)"], few)[0], as_sample(few), cost) is None


def test_an_unknown_cost_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="'cost' must be one of novelty, error, size, D.2. Got 'nu'."):
        deletion_costs(np.ones(2), np.ones(2), np.ones(2), "nu")
    with pytest.raises(ParameterError, match="'deletes' must be"):
        sn.SobolevGuidance(deletes="gated")
