"""Selection over the tensor dictionary: the figures of the notes, and properties that need no data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.progress import silent
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.selection import (
    Greedy,
    NoveltyFloor,
    SobolevGuided,
    backward,
    cross_validate,
    forward,
    select_closure,
)
from sobolev_novelty.lab.turbulence.selecting.tensors import design_matrix, dictionary, stacked_target
from sobolev_novelty.lab.turbulence.solving.checks import run_pruning
from sobolev_novelty.lab.turbulence.solving.problem import ClosureProblem, closure_problem
from sobolev_novelty.lab.turbulence.studying.store import RunStore
from turbulence_samples import synthetic

COUNTS = (2, 4, 6, 8, 10, 12, 16, 20, 24, 30)
GREEDY_MSE = (0.11846, 0.11026, 0.10621, 0.10547, 0.10294, 0.10088, 0.09883, 0.09808, 0.09695, 0.09510)
SOBOLEV_MSE = (0.11846, 0.10999, 0.10767, 0.10378, 0.10163, 0.10073, 0.09884, 0.09823, 0.09753, 0.09660)
GREEDY_TERMS = "T2 T1 T2*x1**11*x2 T3*x2**12 T3 T3*x1*x2**2 T1*x2 T1*x1**11*x2 T2*x2**12 T2*x1**7*x2**5"
SOBOLEV_TERMS = "T2 T1 T2*x1**12 T2*x2**12 T2*x1**7*x2**5 T3*x2**12 T3 T3*x1**2*x2**3 T2*x2 T2*x2**9"


@pytest.fixture(scope="module")
def hill_problem() -> ClosureProblem:
    return closure_problem(hill.load_regression())


@pytest.mark.parametrize(
    ("rule", "mse", "first"), [(Greedy(), GREEDY_MSE, GREEDY_TERMS), (SobolevGuided(), SOBOLEV_MSE, SOBOLEV_TERMS)]
)
def test_selection_reproduces_the_notes(hill_problem, rule, mse, first):
    path = forward(hill_problem, 30, rule)
    np.testing.assert_allclose([path.mse(n) for n in COUNTS], mse, atol=1.5e-5)
    assert [str(step.term) for step in path.steps[:10]] == first.split()


def test_pruning_from_24_terms_separates_the_condition_numbers(hill_problem):
    greedy, guided = (
        backward(hill_problem, forward(hill_problem, 24, rule).indices, 10) for rule in (Greedy(), SobolevGuided())
    )
    plain, novel = hill_problem.fit(greedy), hill_problem.fit(guided)
    np.testing.assert_allclose([plain.mse, novel.mse], [0.10297, 0.10118], atol=1e-5)
    np.testing.assert_allclose([plain.condition, novel.condition], [6.2e6, 2.61e3], rtol=0.02)
    np.testing.assert_allclose(
        [np.abs(plain.coefficients).max(), np.abs(novel.coefficients).max()], [7320, 2.56], rtol=0.01
    )


def test_published_closures_have_the_notes_error():
    data = hill.load_regression()
    for name, expected in (("dsrrans_model1", 0.105279), ("dsrrans_model2", 0.105515)):
        residual = hill.load_published(name).evaluate(data.inputs, data.tensors) - data.target
        mse = np.mean([residual[:, i, j] ** 2 for i, j in ((0, 0), (0, 1), (1, 1), (2, 2))])
        np.testing.assert_allclose(mse, expected, atol=1e-6)


@pytest.mark.parametrize("rule", [Greedy(), SobolevGuided()])
def test_known_terms_are_found(rule):
    problem = closure_problem(synthetic(), dictionary(4))
    closure, kept, path = select_closure(problem, 3, rule, forward_to=8)
    assert {str(t) for t in closure.terms} == {"T1", "T2*x1*x2", "T3*x2**2"}
    assert problem.fit(kept).mse < 1e-11
    assert len(path.steps) == 8


def test_errors_fall_and_factors_agree_with_plain_least_squares():
    data = synthetic()
    problem = closure_problem(data, dictionary(3))
    path = forward(problem, 10)
    errors = [step.mse for step in path.steps]
    assert len(errors) == 10
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(errors))
    A, b = design_matrix([s.term for s in path.steps], data.inputs, data.tensors), stacked_target(data.target)
    c = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(problem.fit(path.indices).coefficients, c, rtol=1e-6, atol=1e-9)


def test_backward_deletes_the_cheapest_term():
    problem = closure_problem(synthetic(), dictionary(2))
    chosen = forward(problem, 6).indices
    costs = [problem.fit([i for i in chosen if i != out]).mse for out in chosen]
    (gone,) = set(chosen) - set(backward(problem, chosen, 5))
    assert gone == chosen[int(np.argmin(costs))]


def test_conditional_novelty_is_one_in_an_empty_channel_and_zero_for_a_copy():
    problem = closure_problem(synthetic(), dictionary(2))
    first, other = problem.indices([dictionary(2)[1], dictionary(2)[-1]])
    np.testing.assert_allclose(problem.conditional_novelty([first, other], [first]), [0.0, 1.0], atol=1e-12)


def test_cross_validation_prefers_the_true_size():
    errors = cross_validate(synthetic(), [1, 3], Greedy(), n_folds=4, forward_to=None)
    assert errors.shape == (4, 2)
    assert (errors[:, 1] < errors[:, 0]).all()


def test_the_floor_keeps_every_selected_term_novel_and_stops():
    problem = closure_problem(synthetic(), dictionary(4))
    path = forward(problem, 45, NoveltyFloor())
    assert len(path.steps) < 45
    assert all(step.novelty > TAU_ID for step in path.steps)
    assert path.steps[-1].condition < 1e3


def test_bad_options_name_themselves():
    problem = closure_problem(synthetic(), dictionary(1))
    with pytest.raises(ParameterError, match=r"'n_terms' must lie in 1\.\.9\. Got 0"):
        forward(problem, 0)
    with pytest.raises(ParameterError, match="'share' must lie"):
        SobolevGuided(share=0)


def test_the_gain_of_pruning_depends_on_the_start(tmp_path):
    """From 24 terms guidance conditions better, from 16 worse: neither alone may be reported as the effect."""
    store = RunStore(tmp_path / "checks.sqlite")
    run_pruning(store, silent)
    found = {(rule, start, count): condition for rule, start, count, _, condition, _ in store.find("pruning")["cells"]}
    assert found["sobolev", 24, 10] < 1e-3 * found["greedy", 24, 10]
    assert found["sobolev", 16, 10] > 10 * found["greedy", 16, 10]
