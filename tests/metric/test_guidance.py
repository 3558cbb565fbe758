"""The plug-in verbs."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sobolev_novelty as sn
from reference import TERMS, inputs, reference_matrix, reference_novelty
from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.core.score import base_score, choice_rank, nmse
from sobolev_novelty.errors import ParameterError, ParseError, SobolevError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.metric.batch import novelties, novelty_penalty
from sobolev_novelty.metric.guidance import (
    MAX_FILTER_POINTS,
    Score,
    farthest_first,
    refit,
)

subsets = st.lists(st.sampled_from(TERMS), min_size=1, max_size=5, unique=True)
seeds = st.integers(0, 10**6)
TAU = 1.0 / np.sqrt(10.0)


# --- prune


def accuracy(y: np.ndarray, prediction: np.ndarray, expression: Expression) -> float:
    return -nmse(y, prediction)


def brevity(y: np.ndarray, prediction: np.ndarray, expression: Expression) -> float:
    return -float(expression.complexity)


def accuracy_and_length(y: np.ndarray, prediction: np.ndarray, expression: Expression) -> float:
    return base_score(nmse(y, prediction), expression.complexity, len(y))


@given(
    terms=subsets,
    seed=seeds,
    noise=st.sampled_from([0.0, 0.01, 1.0]),
    score=st.sampled_from([accuracy, brevity, accuracy_and_length]),
)
def test_pruning_never_worsens_the_callers_score(terms: list[str], seed: int, noise: float, score: Score) -> None:
    rng = np.random.default_rng(seed)
    X = inputs(seed)
    b = rng.normal(size=len(terms))
    equation = sn.sum_of_terms([Term(c, sn.parse(t)) for c, t in zip(b, terms, strict=True)])
    y = evaluate(equation, X) + noise * rng.normal(size=len(X))
    slim = sn.prune(equation, X, y, score=score)
    before = score(y, evaluate(equation, X), equation)
    after = score(y, evaluate(slim.expression, X), slim.expression)
    assert after >= before
    assert slim.score == after
    for step, following in itertools.pairwise([*slim.steps, None]):
        assert step.score_after >= step.score_before
        assert following is None or following.score_before == step.score_after
    n_terms = len(sn.additive_terms(equation))
    assert len(sn.additive_terms(slim.expression)) == n_terms - len(slim.steps)


@given(terms=subsets, seed=seeds, noise=st.sampled_from([0.0, 0.01, 1.0]))
def test_by_default_pruning_chooses_as_the_search_does(terms: list[str], seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    X = inputs(seed)
    equation = sn.sum_of_terms([Term(c, sn.parse(t)) for c, t in zip(rng.normal(size=len(terms)), terms, strict=True)])
    y = evaluate(equation, X) + noise * rng.normal(size=len(X))

    def rank(expression: Expression) -> tuple[bool, float]:
        error = nmse(y, evaluate(expression, X))
        return choice_rank(error, base_score(error, expression.complexity, len(y)))

    slim = sn.prune(equation, X, y)
    assert rank(slim.expression) >= rank(equation)
    assert slim.score == rank(slim.expression)[1]
    if noise == 0.0:
        assert nmse(y, evaluate(slim.expression, X)) < 1e-20


@pytest.mark.parametrize("times", [2, 10])
def test_a_table_given_several_times_is_pruned_as_given_once(times: int) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (40, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=40)
    equation = "sin(3*x0) + 0.2*x1**2 + 0.1*x0*x1 + 0.3*cos(7*x1) + 0.2*cos(5*x0) + 0.1"
    once, again = sn.prune(equation, X, y), sn.prune(equation, np.tile(X, (times, 1)), np.tile(y, times))
    assert [step.term for step in once.steps] == [step.term for step in again.steps]
    np.testing.assert_allclose(again.score, once.score, rtol=1e-12)


def test_a_term_that_does_nothing_for_the_target_is_dropped_however_novel_it_is() -> None:
    X = inputs(0, 300)
    slim = sn.prune("sin(3*x0) + 0.003*x1**2", X, np.sin(3.0 * X[:, 0]))
    assert str(slim) == "sin(3*x0)"
    (step,) = slim.steps
    assert step.term == "x1**2" and step.novelty > 0.9


def test_a_small_term_of_an_exact_law_stays() -> None:
    X = inputs(0, 300)
    slim = sn.prune("sin(3*x0) + 0.003*x1**2", X, np.sin(3.0 * X[:, 0]) + 0.003 * X[:, 1] ** 2)
    assert str(slim) == "sin(3*x0) + 0.003*x1**2"


def test_a_needed_term_is_not_deleted_because_the_coefficients_were_poor() -> None:
    X = inputs(0, 300)
    y = 2.0 * np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2
    slim = sn.prune("5*sin(3*x0) - 4*x1**2", X, y)
    assert slim.steps == ()
    np.testing.assert_allclose(evaluate(slim.expression, X), y, atol=1e-12)


def test_with_too_few_rows_for_novelty_the_equation_comes_back_as_it_was() -> None:
    X = inputs(0)[:20]
    assert str(sn.prune("2*x0 + x1", X, X[:, 0])) == "2*x0 + x1"
    assert str(sn.prune("0", X, X[:, 0])) == "0"


def test_the_term_whose_deletion_costs_least_goes_first() -> None:
    X = inputs(0, 200)
    y = np.sin(X[:, 0])
    report = sn.novelty("sin(x0) + 0.5*x0 + 0.01*x0**3", X)
    slim = sn.prune("sin(x0) + 0.5*x0 + 0.01*x0**3", X, y, score=lambda y, p, e: -float(e.complexity), max_deletions=1)
    assert [step.term for step in slim.steps] == [report.labels[int(np.argmin(report.contribution))]]


def test_the_other_coefficients_are_refitted() -> None:
    x = np.linspace(-1.0, 1.0, 100)
    slim = sn.prune("0.7*sin(x0) + 0.3*x0", x, 2.0 * np.sin(x))
    (term,) = sn.additive_terms(slim.expression)
    assert str(term.expression) == "sin(x0)"
    np.testing.assert_allclose(term.coefficient, 2.0)
    assert str(slim) == "2*sin(x0)" or term.coefficient == pytest.approx(2.0)


def test_nothing_is_deleted_where_every_term_is_needed_or_alone() -> None:
    X = inputs(0)
    assert sn.prune("x0 + x1", X, X[:, 0] + X[:, 1]).steps == ()
    assert sn.prune("sin(x0)", X, X[:, 0]).steps == ()


def test_a_rejected_deletion_is_not_tried_again() -> None:
    calls = []

    def score(y: np.ndarray, prediction: np.ndarray, expression: Expression) -> float:
        calls.append(expression)
        return float(len(sn.additive_terms(expression)))  # every deletion makes it worse

    X = inputs(0)
    assert sn.prune("x0 + sin(x0) + tanh(x0)", X, X[:, 0], score=score).steps == ()
    # The equation and what is left without each of its three terms, each as written and refitted.
    assert len(calls) == 8


def test_a_score_that_is_nan_keeps_the_equation() -> None:
    X = inputs(0)
    for score in (lambda *_: float("nan"), lambda *_: np.nan):
        assert str(sn.prune("x0 + sin(x0)", X, X[:, 0], score=score)) == "x0 + sin(x0)"


def test_terms_beyond_the_range_of_squares_are_refitted() -> None:
    X = inputs(0)
    (huge, small) = refit(
        [Term(1.0, sn.parse("1e200*x0")), Term(1.0, sn.parse("1e-200*x1"))], as_sample(X), X.sum(axis=1)
    )
    np.testing.assert_allclose([huge.coefficient, small.coefficient], [1e-200, 1e200], rtol=1e-10)
    assert refit([], as_sample(X), X[:, 0]) == ()
    assert refit([Term(1.0, sn.parse("log(x0 - 9)"))], as_sample(X), X[:, 0])[0].coefficient == 0.0


def test_an_equation_that_is_not_finite_somewhere_can_be_pruned() -> None:
    X = inputs(0)
    slim = sn.prune("exp(800*x0) + x0 + sin(x0)", X, X[:, 0])
    assert slim.score >= 0.0


# --- rerank


def r_sn(score: float, nu: np.ndarray) -> float:
    """Eq. D.1, written out."""
    return score - 0.01 / len(nu) * sum(max(0.0, 1.0 - value / TAU) ** 2 for value in nu)


@given(candidates=st.lists(subsets, min_size=1, max_size=6), seed=seeds, data=st.data())
def test_candidates_are_ordered_by_the_formula(candidates: list[list[str]], seed: int, data: st.DataObject) -> None:
    X = inputs(seed)
    scores = data.draw(st.lists(st.floats(0.0, 0.02), min_size=len(candidates), max_size=len(candidates)))
    ranked = sn.rerank(candidates, X, scores)
    expected = [r_sn(s, reference_novelty(reference_matrix(c, X))) for c, s in zip(candidates, scores, strict=True)]
    assert sorted(entry.index for entry in ranked) == list(range(len(candidates)))
    np.testing.assert_allclose([entry.guided_score for entry in ranked], [expected[e.index] for e in ranked], atol=1e-9)
    guided = [entry.guided_score for entry in ranked]
    assert guided == sorted(guided, reverse=True)


def test_equals_keep_their_order_and_nan_comes_last() -> None:
    X = inputs(0)
    ranked = sn.rerank(["x0", "x1", "x0*x1", "1"], X, [float("nan"), 0.5, 0.5, 0.7])
    assert [entry.index for entry in ranked] == [3, 1, 2, 0]


def test_what_cannot_be_judged_gets_the_full_penalty() -> None:
    X = inputs(0)
    (hidden, zero) = sorted(sn.rerank(["log(x0 - 9)", "x0 - x0"], X, [1.0, 1.0]), key=lambda entry: entry.index)
    assert hidden.penalty == zero.penalty == 0.01


def test_the_penalty_is_zero_at_the_threshold_and_one_at_zero() -> None:
    assert novelty_penalty(np.array([TAU, 1.0])) == 0.0
    assert novelty_penalty(np.zeros(3)) == 1.0
    np.testing.assert_allclose(novelty_penalty(np.array([TAU / 2, 1.0])), 0.125)
    assert novelty_penalty(np.array([])) == 0.0


def test_bad_options_of_rerank_are_refused() -> None:
    X = inputs(0)
    with pytest.raises(ParameterError, match="'scores' must have one entry per candidate: 1. Got 2."):
        sn.rerank(["x0"], X, [1.0, 2.0])
    with pytest.raises(ParameterError, match="'weight' must be a number of at least 0. Got -1."):
        sn.rerank(["x0"], X, [1.0], weight=-1)
    with pytest.raises(ParameterError, match="'tau' must be above 0 and at most 1. Got 0."):
        sn.rerank(["x0"], X, [1.0], tau=0)


# --- TermArchive


def brute_force(columns: np.ndarray, capacity: int, least: float) -> list[int]:
    """The definition: again and again the column with the largest residual outside the span of those kept."""
    kept: list[int] = []
    while len(kept) < capacity:
        best, best_residual = None, least
        for j in range(columns.shape[1]):
            if j in kept:
                continue
            target = columns[:, j] / np.linalg.norm(columns[:, j])
            if kept:
                basis = columns[:, kept] / np.linalg.norm(columns[:, kept], axis=0)
                target = target - basis @ np.linalg.lstsq(basis, target, rcond=None)[0]
            if np.linalg.norm(target) > best_residual + (1e-10 if best is not None else 0.0):
                best, best_residual = j, float(np.linalg.norm(target))
        if best is None:
            break
        kept.append(best)
    return kept


@given(seed=seeds, n=st.integers(1, 10), capacity=st.integers(1, 6))
def test_the_greedy_order_is_the_definition(seed: int, n: int, capacity: int) -> None:
    columns = np.random.default_rng(seed).normal(size=(30, n)) + np.random.default_rng(seed).normal(size=(30, 1))
    columns /= np.linalg.norm(columns, axis=0)
    order, residuals = farthest_first(columns, capacity)
    assert order == brute_force(columns, capacity, 0.0)
    assert residuals == sorted(residuals, reverse=True)


@given(
    terms=st.lists(st.sampled_from(TERMS), min_size=1, max_size=12, unique=True), seed=seeds, capacity=st.integers(1, 6)
)
def test_the_archive_keeps_what_the_definition_keeps(terms: list[str], seed: int, capacity: int) -> None:
    X = inputs(seed)
    archive = sn.TermArchive(capacity=capacity, min_novelty=1e-4)
    archive.update(terms, X)
    expected = brute_force(reference_matrix(terms, X), capacity, 1e-4)
    assert archive.terms == [sn.parse(terms[j]) for j in expected]
    assert len(archive) <= capacity


def test_old_and_new_terms_compete_alike() -> None:
    X = inputs(0, 200)
    archive = sn.TermArchive(capacity=2)
    archive.update(["x0", "sin(x0)"], X)
    archive.update(["x1"], X)
    assert [str(term) for term in archive.terms] == ["x0", "x1"]
    archive.update([], X)
    assert len(archive) == 2


def test_dependent_null_and_infinite_terms_are_not_kept() -> None:
    X = inputs(0)
    archive = sn.TermArchive()
    archive.update(["x0", "2*x0", "0*x0", "log(x0)", "exp(exp(exp(9*x0)))", "x1"], X)
    assert [str(term) for term in archive.terms] == ["x0", "x1"]


def test_size_of_a_term_does_not_matter_to_the_archive() -> None:
    archive = sn.TermArchive()
    archive.update(["1e200*x0", "1e-200*x1"], inputs(0))
    assert len(archive) == 2


def test_a_missing_input_costs_the_row_and_not_the_terms() -> None:
    X = inputs(0)
    X[3, 0] = np.nan
    archive = sn.TermArchive()
    archive.update(["x0", "x1"], X)
    assert len(archive) == 2
    archive.update(["x0"], np.full((40, 2), np.nan))
    assert len(archive) == 0


def test_bad_options_of_the_archive_are_refused() -> None:
    with pytest.raises(ParameterError, match="'capacity' must be a whole number of at least 1. Got 0."):
        sn.TermArchive(capacity=0)
    with pytest.raises(ParameterError, match="'min_novelty' must be a number of at least 0 and below 1. Got -1."):
        sn.TermArchive(min_novelty=-1)
    with pytest.raises(ParameterError, match="'order' must be 0, 1 or 2. Got 3."):
        sn.TermArchive(order=3).update(["x0"], inputs(0))


def test_a_score_that_writes_to_its_arguments_changes_nothing() -> None:
    def careless(y: np.ndarray, prediction: np.ndarray, expression: Expression) -> float:
        prediction -= y
        y[:] = 0.0
        return -float(np.mean(prediction**2)) - 0.01 * expression.complexity

    def careful(y: np.ndarray, prediction: np.ndarray, expression: Expression) -> float:
        return -float(np.mean((prediction - y) ** 2)) - 0.01 * expression.complexity

    X = inputs(0)
    y = 3.0 * X[:, 0] ** 2 + X[:, 1]
    found = [sn.prune("3*x0**2 + x1 + sin(x0)", X, y, score=score).expression for score in (careless, careful)]
    assert str(found[0]) == str(found[1])


# --- feedback


def test_feedback_names_at_most_three_low_and_two_high_terms() -> None:
    X = inputs(0, 300)
    text = sn.feedback("x0 + sin(x0) + tanh(x0) + x0**3 + arctan(x0) + x1 + cos(3*x0)*x1 + exp(-x1**2)", X)
    low, high = text.split("These terms add behaviour of their own:")
    assert low.count("\n- ") == 3
    assert high.count("\n- ") == 2


@pytest.mark.parametrize("intercept", ["free", "term"])
@given(terms=subsets, seed=seeds)
def test_feedback_lists_the_lowest_and_is_empty_when_nothing_is_low(
    intercept: str, terms: list[str], seed: int
) -> None:
    X = inputs(seed)
    Psi = reference_matrix(terms, X)
    if intercept == "free":
        one = reference_matrix(["1"], X)
        Psi = Psi - one @ np.linalg.lstsq(one, Psi, rcond=None)[0]
        Psi[:, [term == "1" for term in terms]] = 0.0
    nu = reference_novelty(Psi)
    text = sn.feedback(terms, X, intercept=intercept)
    low = [terms[i] for i in np.argsort(nu, kind="stable") if nu[i] <= TAU and terms[i] != "1"]
    assert (text == "") == (not low)
    for term in low[:3]:
        assert f"- {sn.parse(term)} (novelty" in text


@pytest.mark.parametrize("intercept", ["free", "term"])
def test_feedback_never_names_the_constant(intercept: str) -> None:
    X = np.random.default_rng(0).uniform(4.0, 5.0, (200, 2))
    found = novelties(["sqrt(x0) + x0 + x1**2 + 2"], X)[0]
    assert found.nu[[str(term.expression) for term in found.terms].index("1")] < TAU  # so that it would be listed
    text = sn.feedback("sqrt(x0) + x0 + x1**2 + 2", X, intercept=intercept)
    assert "sqrt(x0) (novelty" in text and re.search(r"- [0-9.]+ \(novelty", text) is None
    assert sn.feedback("x1 + 2", X, intercept="free") == sn.feedback("x1", X, intercept="free") == ""


def test_feedback_takes_the_two_intercepts_only() -> None:
    with pytest.raises(ParameterError, match="'intercept' must be"):
        sn.feedback("x0", inputs(0), intercept="none")


@pytest.mark.parametrize("equation", ["x0 - x0", "log(x0 - 9) + x0"])
def test_feedback_is_empty_where_diagnosis_fails(equation: str) -> None:
    assert sn.feedback(equation, inputs(0)) == ""


@pytest.mark.parametrize("equation", ["", "x0 +", "nonsense(x0)", "x0 + unknown", [], ["x0", "1 +"]])
def test_feedback_does_not_call_unreadable_text_fine(equation: object) -> None:
    with pytest.raises(SobolevError, match=r"expression|known|unknown|empty"):
        sn.feedback(equation, inputs(0))


# --- accepts


@given(terms=subsets, seed=seeds, n=st.integers(20, 60))
def test_the_filter_is_that_of_appendix_d4(terms: list[str], seed: int, n: int) -> None:
    X = inputs(seed, n)
    verdict = sn.accepts(terms, X)
    nu = reference_novelty(reference_matrix(terms, X))
    expected = n >= 32 and (len(terms) == 1 or nu.min() > TAU)
    if abs(nu.min() - TAU) > 1e-9:
        assert bool(verdict) == verdict.accepted == expected
    assert verdict.reason.endswith(".")


def test_a_single_term_is_accepted_with_novelty_one() -> None:
    verdict = sn.accepts("exp(x0*x1)", inputs(0))
    assert verdict.accepted
    assert verdict.min_novelty == 1.0


def test_too_few_valid_points_are_rejected() -> None:
    assert sn.accepts("log(x0)", np.linspace(-1.0, 1.0, 62)).reason.startswith("Fewer than 32 rows")
    assert not sn.accepts("x0", np.ones((31, 1)))
    assert not sn.accepts("x0 - x0", inputs(0))


def test_a_free_intercept_takes_part_in_the_filter() -> None:
    X = np.linspace(1.0, 2.0, 100)[:, None]
    assert sn.accepts("3 + x0", X, intercept="free").min_novelty == pytest.approx(1.0)  # the 3 is part of the intercept
    assert sn.accepts("x0 + log(x0)", X) and not sn.accepts("x0 + log(x0)", X, intercept="free")
    constant = sn.accepts("4", X, intercept="free")
    assert not constant and constant.reason.startswith("Every term is constant")
    with pytest.raises(ParameterError, match="'intercept' must be 'term' or 'free'"):
        sn.accepts("x0", X, intercept="loose")
    assert np.isnan(sn.accepts("x0 - x0", inputs(0)).min_novelty)


def test_a_formula_that_vanishes_on_its_points_is_rejected() -> None:
    assert not sn.accepts("x0**2", np.zeros((50, 1)))


def test_at_most_200_points_are_used() -> None:
    assert MAX_FILTER_POINTS == 200
    X = inputs(0, 400)
    X[200:] = np.nan
    assert sn.accepts("x0 + x1", X)
    X = inputs(0, 400)
    X[:200] = np.nan
    assert not sn.accepts("x0 + x1", X)


def test_bad_input_of_the_filter_is_refused() -> None:
    with pytest.raises(ParameterError, match="'max_points' must be a whole number of at least 32. Got 0."):
        sn.accepts("x0", inputs(0), max_points=0)
    with pytest.raises(ParseError, match="not"):
        sn.accepts("q", inputs(0))
