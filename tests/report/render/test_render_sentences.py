"""Sentences of a report."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.report.render import sentences
from sobolev_novelty.report.reporting import NoveltyReport, novelty, novelty_of_arrays

X = np.linspace(-1.0, 1.0, 200)[:, None]


def _data(equation: object, **options: object) -> sentences.Data:
    return novelty(equation, X, **options).to_dict()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("equation", "start"),
    [
        ("x0", "The only term is distinct and needed"),
        ("x0 + cos(3*x0)", "Both terms are distinct and needed"),
        ("x0 + 1e-9*cos(3*x0)", "1 of 2 terms is distinct and needed"),
        ("x0 + sin(x0)", "None of the 2 terms is distinct"),
        ("x0 + sin(x0) + cos(3*x0)", "1 of 3 terms is distinct and needed"),
        ("x0 + sin(x0) + cos(3*x0) + sin(9*x0)", "2 of 4 terms are distinct and needed"),
        ("x0 - x0", "No verdict: no novelty could be computed. The expression is zero"),
        ("log(x0 - 0.99)", "No verdict: no novelty could be computed. Fewer than 32 rows"),
    ],
)
def test_the_verdict_says_how_many_terms_stand(equation: str, start: str) -> None:
    assert sentences.verdict(_data(equation)).startswith(start)


def _of_words(*terms: tuple[str, str, str | None]) -> sentences.Data:
    names = ("distinct", "needed", "determined")
    verdicts = [dict(zip(names, words, strict=True)) for words in terms]
    entries = [{"term": f"x{i}", "is_null": False, "verdict": found} for i, found in enumerate(verdicts)]
    return {"status": "ok", "has_target": verdicts[0]["determined"] is not None, "terms": entries}


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ([("yes", "yes", "yes")] * 2, "Both terms are distinct, needed and determined"),
        ([("yes", "yes", "yes")] * 3, "All 3 terms are distinct, needed and determined"),
        ([("yes", "yes", "yes"), ("yes", "no", "no")], "1 of 2 terms is distinct, needed and determined"),
        ([("no", "yes", "yes"), ("yes", "no", "no")], "None of the 2 terms is distinct, needed and determined at once"),
        ([("yes", "yes", "no"), ("yes", "no", "flat")], "None of the 2 terms is determined"),
        ([("yes", "yes", "no")], "The only term is distinct and needed, but not determined"),
        ([("yes", "no", "no")], "The only term is distinct, but not needed or determined"),
        ([("no", "no", None)], "The only term is neither distinct nor needed"),
        ([("yes", "yes", "yes"), ("constant", "constant", None)],
         "The only term besides the intercept is distinct, needed and determined"),
        ([("constant", "constant", None)], "The equation is constant on these rows"),
    ],
)  # fmt: skip
def test_the_headline_counts_terms_that_pass_every_question(
    terms: list[tuple[str, str, str | None]], sentence: str
) -> None:
    assert sentences.headline(_of_words(*terms)) == sentence


def test_a_term_that_is_neither_needed_nor_determined_is_said_so_once() -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(0.5, 2.0, (200, 2))
    summary = novelty("2*x0 + 0.001*x1", rows, 2.0 * rows[:, 0] + rng.normal(0.0, 0.1, 200)).summary
    assert summary.startswith("1 of 2 terms is distinct, needed and determined; none can be imitated")
    assert "The term x1 is not needed, the fit is as good without, and its coefficient is not determined" in summary


def test_the_verdict_names_the_low_terms() -> None:
    assert "the terms x0 and sin(x0) can be imitated" in sentences.verdict(_data("x0 + sin(x0) + cos(3*x0)"))


def test_a_null_term_is_said_to_be_zero() -> None:
    data = novelty_of_arrays([X[:, 0], 0.0 * X[:, 0]], labels=["a", "b"]).to_dict()
    assert sentences.term_verdict(data["terms"][1]) == "null"
    assert "the term b is zero on every row used." in sentences.verdict(data).replace("The term b", "the term b")


def test_rows_and_reasons_are_told() -> None:
    text = sentences.rows_text(_data("sqrt(x0) + x0"))
    assert text == "100 of 200 rows were used. Not used: 100 because a term's value is not finite."


def test_rebuilt_weights_are_those_of_explain() -> None:
    report: NoveltyReport = novelty("2*sin(x0) + 3*x0 + cos(3*x0)", X)
    expected = {label: weight for label, weight in report.explain(0).parts if abs(weight) > 1e-6}
    data = report.to_dict()
    found = {data["terms"][j]["term"]: weight for j, weight in sentences.rebuilt_from(data, 0)}
    assert set(found) <= set(expected) and found
    for label, weight in found.items():
        np.testing.assert_allclose(weight, expected[label], rtol=1e-9)


def test_shares_of_a_row_add_up_to_what_the_others_rebuild() -> None:
    data = _data("sin(x0) + x0 + x0**3 + cos(3*x0)")
    shares = sentences.rebuilt_shares(data)
    assert shares is not None
    nu = np.array([term["novelty"] for term in data["terms"]])
    np.testing.assert_allclose(np.sum(shares, axis=1), 1.0 - nu**2, atol=1e-12)


@pytest.mark.parametrize("width", [3, 4, 5, 10, 11])
def test_shortened_labels_fit(width: int) -> None:
    assert len(sentences.shorten("sin(x0)*exp(-x1**2)", width)) == width


def test_control_and_direction_characters_are_shown_as_replaced() -> None:
    assert sentences.plain("a\x1b[31m\u202eb\nc") == "a�[31m�b c"
