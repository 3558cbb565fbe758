"""Skeletons as forms: when two are the same, and from where their constants start."""

from __future__ import annotations

import numpy as np
import pytest

from needs_torch import one_thread  # noqa: F401
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.transformer.skeletons import is_new, started_forms
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import Problem

pytestmark = pytest.mark.torch

X = np.random.default_rng(0).uniform(1.0, 2.0, (2, 40))
PROBLEM = Problem(Rows(Sample(X, ("x0", "x1")), X[0]))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2*x0 + 3", "x0 - 7", True),
        ("x0*x1 + sin(2*x0)", "sin(5*x0) - 4*(x1*x0)", False),  # the order of factors is another writing
        ("sin(2*x0)", "sin(x0)", False),
        ("x0 + 1", "x0", False),
        ("(x0 + 1)*x1", "x1*(x0 + 1)", False),
        ("exp(2*x0)", "exp(-3*x0)", True),
    ],
)
def test_the_same_skeleton_is_the_same_terms_without_constants(one: str, other: str, same: bool) -> None:
    known: set[frozenset[object]] = set()
    assert is_new(parse(one), known)  # type: ignore[arg-type]
    assert is_new(parse(other), known) is not same  # type: ignore[arg-type]


def test_four_starts_are_four_different_forms_and_every_other_one_has_an_offset() -> None:
    forms = list(started_forms([parse("sin(1*x0)*x1")], PROBLEM, 4, np.random.default_rng(0)))
    assert len(set(forms)) == 4
    inner = [form.constants[0] for form in forms]
    assert len(set(inner)) == 4
    assert [len(form.constants) for form in forms] == [1, 2, 1, 2]


def test_without_inner_constants_there_is_one_form_without_and_one_with_an_offset() -> None:
    forms = [str(form) for form in started_forms([parse("x0*x1")], PROBLEM, 4, np.random.default_rng(0))]
    assert forms == ["x0*x1", "x0*x1 + 1"]
    assert len(list(started_forms([parse("x0 + 1")], PROBLEM, 4, np.random.default_rng(0)))) == 1


def test_forms_that_a_problem_does_not_allow_are_left_out() -> None:
    few = Problem(Rows(PROBLEM.sample, PROBLEM.y), operators=("add", "mul"), max_complexity=5)
    skeletons = [parse(text) for text in ("sin(x0)", "x0*x0*x1*x1", "square(x0)")]
    forms = [str(form) for form in started_forms(skeletons, few, 1, np.random.default_rng(0))]
    assert forms == ["x0*x0"]
