"""Structural proposals: pursuit, exact families, reductions, and the forms made from them."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, strategies as st

from algebra_cases import operators_of
from sobolev_novelty.algebra.writing import scaled, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS, Island, Problem
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import split_form
from sobolev_novelty.search.propose.pursuit import Combination, promising
from sobolev_novelty.search.propose.structure.dictionaries import (
    Pairs,
    additive_dictionary,
    algebraic_factors,
    distinct,
    functional_factors,
    joined,
    listed,
    power_products,
    scanned_dictionary,
    simple_dictionary,
)
from sobolev_novelty.search.propose.structure.exact_relations import polynomials, quotients, sums
from sobolev_novelty.search.propose.structure.families import FAMILIES, NAMES
from sobolev_novelty.search.propose.structure.family import Deal, Effort
from sobolev_novelty.search.propose.structure.interactions import interactions
from sobolev_novelty.search.propose.structure.power_laws import offset_power_law, power_law
from sobolev_novelty.search.propose.structure.proposals import _shuffled, is_doubtful, structural_forms
from sobolev_novelty.search.propose.structure.reductions import Interpolants, loo_error, reductions, root
from sobolev_novelty.search.propose.structure.relevance import _Process, relevant_inputs
from sobolev_novelty.search.propose.subproblem import Subproblem, Variable

RNG = np.random.default_rng(5)
X = RNG.uniform(1.0, 4.0, (400, 3))


def _variables(n: int = 3) -> list[Variable]:
    return [Variable(Expression.of(f"x{k}"), np.ascontiguousarray(X[:, k])) for k in range(n)]


def _problem(y: np.ndarray, n: int = 3) -> Subproblem:
    return Subproblem(tuple(_variables(n)), y)


def _reductions(problem: Subproblem) -> list[Subproblem]:
    return [found for found in reductions(problem, DEFAULT_OPERATORS) if found is not None]


def _nmse(form: Expression, y: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.mean((evaluate(form, X) - y) ** 2) / np.var(y))


def test_every_recipe_of_a_dictionary_writes_the_column_it_stands_for() -> None:
    variables = [Variable(v.expression, v.values[:60]) for v in _variables(2)]
    dictionary = additive_dictionary(variables, DEFAULT_OPERATORS, limit=3000)
    for j in range(0, len(dictionary), 37):
        values = evaluate(dictionary.expression(j), X[:60])
        np.testing.assert_allclose(values, dictionary.values[j], rtol=1e-9)


def test_distinct_keeps_one_column_a_direction() -> None:
    variables = _variables(1)
    doubled = power_products(variables, np.array([[1.0], [2.0]])) + power_products(variables, np.array([[1.0]]))
    assert len(distinct(doubled)) == 2


@pytest.mark.parametrize(("n_left", "n_right", "n"), [(7, 300, 2100), (300, 7, 2100), (40, 40, 1001), (3, 2, 99)])
def test_pairs_are_the_products_of_all_columns(n_left: int, n_right: int, n: int) -> None:
    left, right = RNG.normal(size=(n_left, 400)), RNG.normal(size=(n_right, 400))
    letters = [Expression.of(f"x{k}") for k in range(300)]
    made = joined([Pairs("mul", listed(left, letters), listed(right, letters), n)])
    np.testing.assert_array_equal(made.values, (left[:, None] * right).reshape(-1, 400)[:n])
    last = len(made) - 1
    assert made.expression(last) == Expression.of("mul", letters[last // n_right], letters[last % n_right])


def test_a_power_law_is_read_off_the_logarithms() -> None:
    y = 0.3 * X[:, 0] ** 2 / np.sqrt(X[:, 1])
    (form,) = power_law(_variables(), y)
    assert _nmse(form, y) < 1e-20


def test_a_power_law_beside_an_offset_is_found() -> None:
    y = 1.7 + 0.3 * X[:, 0] ** 2 / X[:, 1]
    assert min(_nmse(form, y) for form in offset_power_law(_variables(), y)) < 1e-6


def test_families_give_the_sparse_exact_sum() -> None:
    y = 3.0 * X[:, 0] - 2.0 * X[:, 0] * X[:, 1] - X[:, 0] ** 2
    forms = sums(_variables(2), y, DEFAULT_OPERATORS)
    assert min(form.complexity for form in forms if _nmse(form, y) < 1e-18) <= 16


def test_families_give_exact_quotients() -> None:
    y = 20.0 - X[:, 0] - X[:, 0] * X[:, 1] / (1.0 + 0.5 * X[:, 0] ** 2)
    (form,) = quotients(_variables(2), y)
    assert _nmse(form, y) < 1e-12


def test_a_family_that_is_not_exact_proposes_nothing() -> None:
    y = RNG.normal(size=400)
    assert sums(_variables(2), y, DEFAULT_OPERATORS) == []
    assert quotients(_variables(2), y) == []


def test_a_true_reduction_lowers_the_leave_one_out_error_and_a_false_one_raises_it() -> None:
    y = X[:, 0] ** 2 * np.exp(np.sin(X[:, 1] - X[:, 2]))
    start = root(_problem(y))
    best = _reductions(start)[0]
    assert best.error < start.error
    false, _ = loo_error(_variables(2)[1:], y, in_logs=start.view.in_logs, smoothers=(start.view.smoother,))
    assert false > 5.0 * start.error


def test_an_interpolant_that_hypotheses_share_gives_the_error_of_one_of_their_own() -> None:
    y = X[:, 0] ** 2 * np.cos(X[:, 1] - X[:, 2])
    known = Interpolants()
    for n in (1, 3, 2):
        for target in (y, y / X[:, 0], y / X[:, 1] ** 2):
            shared = loo_error(_variables(n), target, in_logs=True, interpolants=known)
            assert shared == loo_error(_variables(n), target, in_logs=True)


def test_a_reduced_problem_is_wrapped_back_into_the_original() -> None:
    y = X[:, 0] ** 2 * np.cos(X[:, 1] - X[:, 2])
    for reduced in _reductions(root(_problem(y)))[:6]:
        # With the reduced target as a variable of its own the wrapped expression must be the target.
        [whole] = reduced.written([Expression.of("t")])
        table = np.column_stack([X, reduced.target])
        sample = as_sample(table, ("x0", "x1", "x2", "t"))
        np.testing.assert_allclose(evaluate(whole, sample), y, rtol=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "x0*x1/(x0 + x1)",
        "x0/sqrt(1 + x1**2/x2**2)",
        "x0*cos(x1 - x2)",
        "sqrt(x0**2 + x1**2)",
        "x0*exp(-x1*x2)",
        "log(x0*x1) + x2",
        "x0*sin(x1)**2 + x2",
    ],
)
def test_structural_forms_contain_laws_that_are_in_no_benchmark(text: str) -> None:
    y = evaluate(parse(text), X)
    problem = Problem(Rows(as_sample(X), y))
    best = np.inf
    for batch in structural_forms(problem, np.random.default_rng(0)):
        best = min([best, *(_nmse(form, y) for form in batch)])
        if best < 1e-15:
            return
    assert best < 1e-15


def test_a_constant_target_or_constant_inputs_give_no_structural_forms() -> None:
    assert list(structural_forms(Problem(Rows(as_sample(X), np.ones(400))), np.random.default_rng(0))) == []
    flat = as_sample(np.ones((400, 2)))
    assert list(structural_forms(Problem(Rows(flat, RNG.normal(size=400))), np.random.default_rng(0))) == []


def test_a_smooth_law_is_not_doubtful_and_noise_is() -> None:
    rng = np.random.default_rng(0)
    smooth = Problem(Rows(as_sample(X), X[:, 0] ** 2 * X[:, 1]))
    noise = Problem(Rows(as_sample(X), rng.normal(size=len(X))))
    assert not is_doubtful(smooth, rng)
    assert is_doubtful(noise, rng)


def test_structural_forms_of_wide_noise_come_to_an_end() -> None:
    """Reductions of twelve variables would take minutes and tell nothing: they are not tried."""
    rng = np.random.default_rng(1)
    wide = rng.uniform(1.0, 2.0, (300, 12))
    batches = list(structural_forms(Problem(Rows(as_sample(wide), rng.normal(size=300))), rng))
    assert 0 < len(batches) < 60


DICTIONARIES = {
    "simple": lambda few: simple_dictionary(few, ("sin", "cos")),
    "algebraic": algebraic_factors,
    "functional": lambda few: functional_factors(few, DEFAULT_OPERATORS, limit=2000),
    "scanned": lambda few: scanned_dictionary(few[:1], DEFAULT_OPERATORS),
    "polynomials": lambda few: polynomials(few, 3),
}


@pytest.mark.parametrize("name", DICTIONARIES)
def test_every_dictionary_writes_the_columns_it_stands_for(name: str) -> None:
    few = [Variable(v.expression, v.values[:60]) for v in _variables(2)]
    dictionary = DICTIONARIES[name](few)
    assert len(dictionary) == len(dictionary.values)
    for j in range(0, len(dictionary), max(1, len(dictionary) // 60)):
        np.testing.assert_allclose(evaluate(dictionary.expression(j), X[:60]), dictionary.values[j], rtol=1e-7)


@pytest.mark.parametrize("operators", [("add", "mul"), ("add", "mul", "div", "sin"), ("mul", "inv", "exp", "sqrt")])
def test_functions_of_a_dictionary_are_allowed_ones(operators: tuple[str, ...]) -> None:
    few = [Variable(v.expression, v.values[:60]) for v in _variables(2)]
    for dictionary in (additive_dictionary(few, operators, limit=500), scanned_dictionary(few[:1], operators)):
        functions = {"sin", "cos", "exp", "log", "tanh", "sqrt"} - set(operators)
        picked = [dictionary.expression(j) for j in range(0, len(dictionary), 7)]
        # Half-integer powers of positive variables are respelled or dropped at the end.
        assert not {name for name in operators_of(picked) if name in functions and name != "sqrt"}


@given(st.lists(st.sampled_from([-2.0, -1.0, -1 / 3, 0.0, 0.5, 1.0, 1.5, 2.0]), min_size=3, max_size=3))
def test_every_power_law_of_positive_variables_is_found(powers: list[float]) -> None:
    y = -0.7 * np.prod(X ** np.array(powers), axis=1)
    if not any(powers):
        return
    (form,) = power_law(_variables(), y)
    assert _nmse(form, y) < 1e-20


def test_a_power_law_has_whole_powers_of_inputs_that_change_sign() -> None:
    signed = [Variable(Expression.of(f"x{k}"), X[:, k] - 2.0 * (k < 2)) for k in range(3)]
    a, b, c = (v.values for v in signed)

    def error(form: Expression, y: np.ndarray) -> float:
        return float(np.mean((evaluate(form, np.stack([a, b, c]).T) - y) ** 2) / np.var(y))

    (odd,) = power_law(signed, -3.0 * a * np.sqrt(c) / b**2)
    assert error(odd, -3.0 * a * np.sqrt(c) / b**2) < 1e-20
    y = np.square(a / b) * c + 1.0
    assert min(error(form, y) for form in offset_power_law(signed, y)) < 1e-12
    assert power_law(signed, np.abs(a) * c) == []  # the sign is not that of a product


def test_an_offset_is_found_a_hairs_breadth_below_the_target() -> None:
    u = np.exp(np.random.default_rng(2).uniform(-24.0, 12.0, 400))
    (form,) = offset_power_law([Variable(Expression.of("x0"), u)], 2.0 * u + 1.0)
    assert form == parse("2*x0 + 1") or abs(form.constants[-1] - 1.0) < 1e-9


def test_a_power_law_needs_one_sign_and_positive_variables() -> None:
    y = X[:, 0] - 2.0
    assert power_law(_variables(), y) == []
    signed = [Variable(Expression.of("x0"), X[:, 0] - 2.0)]
    assert power_law(signed, X[:, 0] ** 2) == []
    assert power_law(_variables(), np.exp(np.sin(5.0 * X[:, 0]))) == []


def test_where_nothing_is_exact_sums_of_every_size_are_proposed() -> None:
    """On noisy rows a longer sum always has the smaller error; the law is among the shorter ones."""
    noisy = [Combination(tuple(range(size)), 0.1 / size - 0.001 * k) for size in (1, 2, 3, 4) for k in range(3)]
    assert {len(c.columns) for c in promising(noisy)} == {1, 2, 3, 4}
    exact = [*noisy, Combination((7, 8), 1e-25)]
    assert promising(exact)[0].columns == (7, 8)
    assert len(promising(exact)) == 4


def test_a_form_whose_numbers_no_float_can_hold_does_not_end_the_others() -> None:
    def write(power: float) -> Expression | None:
        return None if power == 0.0 else scaled(float(np.exp(power)), Expression.of("x0"))

    with np.errstate(over="ignore"):
        assert [len(form) for form in writable(write, [1.0, 800.0, 0.0, 2.0])] == [3, 3]


def test_a_factor_beyond_the_range_of_floats_does_not_end_the_structural_forms() -> None:
    """Kepler's third law of two masses: a product of logarithms on the way had a factor that overflowed."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 5.0, (400, 4))
    d, G, m1, m2 = inputs.T
    problem = Problem(Rows(as_sample(inputs), 2.0 * np.pi * np.sqrt(d**3 / (G * (m1 + m2)))))
    forms = (form for batch in structural_forms(problem, rng) for form in batch)
    assert any(np.allclose(evaluate(form, inputs), problem.y, rtol=1e-9) for form in islice(forms, 600))


def friedman(n_rows: int, noise: float, seed: int) -> tuple[list[Variable], np.ndarray]:
    """Friedman's first function in standardized inputs, five of which have nothing to do with it."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(0.0, 1.0, (10, n_rows))
    y = 10 * np.sin(np.pi * u[0] * u[1]) + 20 * (u[2] - 0.5) ** 2 + 10 * u[3] + 5 * u[4]
    z = (u - u.mean(axis=1, keepdims=True)) / u.std(axis=1, keepdims=True)
    return [Variable(Expression.of(f"x{k}"), row) for k, row in enumerate(z)], y + rng.normal(0.0, noise, n_rows)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_interaction_beside_parabolas_is_found_among_other_inputs(seed: int) -> None:
    variables, y = friedman(250, 1.0, seed)
    forms = interactions(variables, y, DEFAULT_OPERATORS)
    X = np.stack([v.values for v in variables])
    fits = Fitter(Rows.of(X.T, y)).fit([split_form(form) for form in forms], 30)
    best = min(range(len(forms)), key=lambda i: fits[i].nmse)
    assert set(forms[best].variables) == {"x0", "x1", "x2", "x3", "x4"}
    assert forms[best].complexity < 40
    assert fits[best].nmse < 1.1 / np.var(y)  # nothing but the noise is left


def test_noise_has_no_interactions_worth_many_forms() -> None:
    rng = np.random.default_rng(0)
    variables = [Variable(Expression.of(f"x{k}"), row) for k, row in enumerate(rng.normal(size=(4, 60)))]
    forms = interactions(variables, rng.normal(size=60), DEFAULT_OPERATORS)
    assert len(forms) <= 17
    assert all(np.isfinite(form.constants).all() for form in forms)


def test_interactions_are_made_of_allowed_operators_and_enough_rows() -> None:
    variables, y = friedman(200, 0.5, 0)
    row = FAMILIES[NAMES.index("parabolas and one interaction")]
    for operators, applies in ((("add", "mul", "sin"), False), (DEFAULT_OPERATORS, True)):
        effort = Effort(operators, 200, 1, Deal(Island()), FAMILIES)
        assert row.applies(Subproblem(tuple(variables), y, error=0.5), effort) is applies
        assert not row.applies(Subproblem(tuple(variables), y, error=0.001), effort)
    assert interactions([Variable(v.expression, v.values[:15]) for v in variables], y[:15], DEFAULT_OPERATORS) == []
    plain = interactions(variables, y, ("add", "sub", "mul", "square"))
    assert operators_of(plain) == {"add", "sub", "mul", "square"}
    forms = interactions(variables, y, ("add", "sub", "mul", "square", "cos"))
    assert forms
    assert operators_of(forms) <= {"add", "sub", "mul", "square", "cos"}


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_inputs_that_do_not_matter_are_told_from_those_that_do(noise: float) -> None:
    rng = np.random.default_rng(8)
    inputs = rng.uniform(1.0, 3.0, (400, 9)) * 10.0 ** np.arange(-4, 5)  # in any units
    y = inputs[:, 0] * np.sin(inputs[:, 3] * 10.0) / inputs[:, 6]
    y = y + noise * y.std() * rng.normal(size=400)
    variables = [Variable(Expression.of(f"x{k}"), np.ascontiguousarray(x)) for k, x in enumerate(inputs.T)]
    assert [str(v.expression) for v in relevant_inputs(variables, y)] == ["x0", "x3", "x6"]


def test_where_rows_do_not_say_what_matters_every_input_stays() -> None:
    rng = np.random.default_rng(9)
    variables = [Variable(Expression.of(f"x{k}"), rng.normal(size=300)) for k in range(6)]
    assert len(relevant_inputs(variables, rng.normal(size=300))) == 6
    few = [Variable(v.expression, v.values[:20]) for v in variables]
    assert len(relevant_inputs(few, few[0].values)) == 6
    assert len(relevant_inputs(variables, np.ones(300))) == 6


def test_the_gradient_of_the_likelihood_is_that_of_differences() -> None:
    rng = np.random.default_rng(10)
    process = _Process.of(list(rng.normal(size=(3, 50))), rng.normal(size=50))
    begin = np.array([0.3, 1.0, -0.2, 0.1, -2.0])
    _, gradient = process._cost(begin)
    steps = 1e-5 * np.eye(5)
    expected = [(process._cost(begin + h)[0] - process._cost(begin - h)[0]) / 2e-5 for h in steps]
    assert gradient == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_a_law_among_inputs_that_do_not_matter_is_proposed_as_soon_as_without_them() -> None:
    rng = np.random.default_rng(11)
    inputs = rng.uniform(1.0, 3.0, (300, 8))
    y = inputs[:, 1] * inputs[:, 4] / (np.square(inputs[:, 6]) - 0.5 * inputs[:, 1])
    forms = islice(structural_forms(Problem(Rows(as_sample(inputs), y)), np.random.default_rng(0)), 60)
    best = min(
        (float(np.mean((evaluate(form, inputs) - y) ** 2) / np.var(y)) for batch in forms for form in batch),
        default=1.0,
    )
    assert best < 1e-12


def test_a_bell_curve_whose_tails_are_zero_in_floats_is_proposed() -> None:
    rng = np.random.default_rng(12)
    inputs = np.column_stack([rng.uniform(-9.0, 9.0, 300), rng.uniform(0.1, 5.0, 300)])
    y = np.exp(-0.5 * np.square(inputs[:, 0] / inputs[:, 1])) / inputs[:, 1]
    assert (y == 0.0).any()
    batches = islice(structural_forms(Problem(Rows(as_sample(inputs), y)), np.random.default_rng(0)), 80)
    assert any(np.mean((evaluate(form, inputs) - y) ** 2) < 1e-16 for batch in batches for form in batch)
    counts = np.random.default_rng(13).poisson(2.0, 300).astype(float)
    assert (
        len(_shuffled(Problem(Rows(as_sample(inputs), counts)), np.random.default_rng(0)).target) == 300
    )  # these zeros are zeros
