"""Swaps: a term of an archive in the place of the one that an expression needs least."""

from __future__ import annotations

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.metric.guidance import TermArchive
from sobolev_novelty.search.propose.swapping import N_SWAPPED, Swaps

X = np.random.default_rng(2).uniform(-2.0, 2.0, (150, 2))
SAMPLE = as_sample(X)
Y = 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1])
NOISY = Y + 0.05 * np.random.default_rng(3).normal(size=len(Y))
FITTED = sn.novelties(["2*x0 + 0.1*cos(2*x1)"], X)[0]
POOL = [sn.parse(text) for text in ("log(x0)", "x1**2", "exp(x1)", "sin(3*x1)", "x0*x1", "x0", "sin(3.0001*x1)")]


def swaps(kind: str, capacity: int = 64) -> Swaps:
    return Swaps(TermArchive(capacity), SAMPLE, Y, kind, "novelty")


@pytest.mark.parametrize("kind", ["novelty", "size", "random"])
def test_the_least_needed_term_gives_way_to_what_the_target_asks_for(kind: str) -> None:
    own = swaps(kind)
    own.keep(POOL, np.random.default_rng(0))
    assert sn.parse("log(x0)") not in own.archive.terms  # not finite on the rows
    forms = own.of(FITTED, np.random.default_rng(1))
    assert 0 < len(forms) <= N_SWAPPED
    if kind == "random":
        return
    for form in forms:
        terms = {str(term.expression) for term in sn.additive_terms(form)}
        assert "x0" in terms and "cos(2*x1)" not in terms and len(terms) == 2
    first = {str(term.expression) for term in sn.additive_terms(forms[0])} - {"x0"}
    assert kind == "novelty" or first == {"sin(3*x1)"}


def test_by_novelty_the_archive_spans_much_and_by_size_it_has_the_first_that_fit_in() -> None:
    novel, first = swaps("novelty", 3), swaps("size", 3)
    for own in (novel, first):
        own.keep(POOL, np.random.default_rng(0))
    twins = {sn.parse("sin(3*x1)"), sn.parse("sin(3.0001*x1)")}
    assert len(novel.archive) == 3 and len(twins & set(novel.archive.terms)) <= 1
    assert [str(term) for term in first.archive.terms] == ["x1**2", "exp(x1)", "sin(3*x1)"]
    first.keep([sn.parse("cos(x0)")], np.random.default_rng(0))
    assert [str(term) for term in first.archive.terms] == ["cos(x0)", "x1**2", "exp(x1)"]


def test_there_is_no_swap_of_a_single_term_or_from_an_empty_archive() -> None:
    rng = np.random.default_rng(0)
    for kind in ("novelty", "size", "random"):
        assert swaps(kind).of(FITTED, rng) == []
        own = swaps(kind)
        own.keep(POOL, rng)
        assert own.of(sn.novelties(["2*x0"], X)[0], rng) == []


@pytest.mark.parametrize(
    "options", [{"screens": "count"}, {"screens": "none"}, {"swaps": "size"}, {"swaps": "novelty"}]
)
@pytest.mark.parametrize("engine", ["genetic", "paper_gp"])
def test_each_way_of_guiding_gives_a_search_of_its_own(engine: str, options: dict[str, str]) -> None:
    found = []
    for guidance in (sn.SobolevGuidance(), sn.SobolevGuidance(**options)):
        made = sn.Genetic(structural=False) if engine == "genetic" else engine
        budget = sn.Budget(max_evaluations=1200, stop_when_exact=False)
        model = sn.SymbolicRegressor(made, novelty=guidance, budget=budget, random_state=0).fit(X, NOISY)
        found.append(([str(e) for e in model.equations_["expression"]], model.n_novelty_calls_))
    assert found[0] != found[1]
    if options == {"screens": "none"} and engine == "genetic":
        assert found[1][1] < found[0][1]
