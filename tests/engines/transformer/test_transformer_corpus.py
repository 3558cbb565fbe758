"""The corpus: reproducible, the same for any number of threads, filtered as by the library, without held-out laws."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from contextlib import closing
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sobolev_novelty as sn
from needs_torch import corpus, corpus_unit, one_thread  # noqa: F401
from sobolev_novelty.algebra.terms import additive_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.engines.transformer.corpus import (
    MAX_DIM,
    VERDICTS,
    Corpus,
    CorpusSettings,
    matching_keep,
    ordered_batches,
)
from sobolev_novelty.engines.transformer.corpus.build import build
from sobolev_novelty.engines.transformer.corpus.decontaminate import held_out_hashes, skeleton_hash, skeleton_hashes
from sobolev_novelty.engines.transformer.corpus.library import MAX_TERMS
from sobolev_novelty.engines.transformer.tokenizer import BEGIN, CONSTANT, END, FIRST_INPUT, FIRST_OPERATOR, decode
from sobolev_novelty.errors import DataError, KernelError, ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("corpus_unit")]

#: Verdicts that `accepts` never sees: such candidates are no formulas of the law.
BEFORE_THE_FILTER = ("too_long", "not_finite", "flat", "too_many_terms", "like_terms")
#: How `accepts` begins its reason.
REASONS = {
    "accepted": "All ",
    "low_novelty": "Term ",
    "too_few_rows": "Fewer than 32 rows",
    "no_terms": "The expression is zero",
}


@pytest.mark.parametrize("law", ["lean", "e2esr"])
def test_a_batch_is_a_function_of_its_number(law: str) -> None:
    first, second = (corpus(law).batch(5, 40) for _ in range(2))
    for name in ("X", "y", "tokens", "indices", "dims", "n_terms", "counts"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (corpus(law, seed=8).batch(5, 40).tokens != first.tokens).any()
    assert (corpus(law).batch(6, 40).tokens != first.tokens).any()


def test_a_formula_of_a_batch_is_the_candidate_of_its_index() -> None:
    source = corpus("e2esr")
    batch = source.batch(2, 20)
    for row, index in enumerate(batch.indices.tolist()):
        candidate = source.candidate(index)
        assert candidate.verdict == "accepted"
        dim, n_points = candidate.X.shape
        assert [BEGIN, *candidate.tokens.tolist(), END] == [t for t in batch.tokens[row].tolist() if t]
        repeated = np.arange(batch.X.shape[1]) % n_points
        np.testing.assert_array_equal(batch.X[row, :, :dim], candidate.X.T.astype(np.float32)[repeated])
        np.testing.assert_array_equal(batch.y[row], candidate.y.astype(np.float32)[repeated])
        assert not batch.X[row, :, dim:].any()
        assert n_points >= 32


def test_batches_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for n_threads in (1, 3):
        with closing(ordered_batches(corpus(), 16, first=4, n_threads=n_threads, prepare=lambda b: b)) as batches:
            found.append([batch.tokens for batch in islice(batches, 5)])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0][0], corpus().batch(4, 16).tokens)


@pytest.mark.slow
def test_formulas_do_not_depend_on_the_instruction_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sobolev_novelty.engines.transformer.corpus import library

    here = corpus("e2esr", arm="filtered", with_floats=True).batch(0, 300)
    monkeypatch.setenv("SOBOLEV_CORPUS", str(build(tmp_path, portable=True)))
    library.native.cache_clear()
    elsewhere = corpus("e2esr", arm="filtered", with_floats=True).batch(0, 300)
    library.native.cache_clear()
    for name in ("X", "y", "tokens", "counts"):
        np.testing.assert_array_equal(getattr(here, name), getattr(elsewhere, name))


@pytest.mark.parametrize("law", ["lean", "e2esr"])
def test_targets_are_the_values_of_the_formula(law: str) -> None:
    source = corpus(law)
    for index in source.batch(0, 100).indices.tolist():
        candidate = source.candidate(index)
        values = evaluate(candidate.expression, candidate.X.T)
        np.testing.assert_allclose(candidate.y, values, rtol=1e-9, atol=1e-9 * np.abs(values).max())


@pytest.mark.parametrize(
    "n", [250, pytest.param(2500, marks=pytest.mark.slow)], ids=["a thousand in all", "ten thousand in all"]
)
@pytest.mark.parametrize(
    ("law", "options"),
    [
        ("lean", {}),
        ("lean", {"inputs": {"curves": 1.0}}),
        ("e2esr", {}),
        ("e2esr", {"inputs": {"one_to_five": 1.0}}),
        ("e2esr", {"intercept": "free"}),
    ],
    ids=["lean", "lean on curves", "e2esr", "e2esr on boxes", "e2esr beside a free intercept"],
)
def test_the_filter_judges_as_the_library_does(law: str, options: dict[str, Any], n: int) -> None:
    source = corpus(law, arm="filtered", **options)
    judged = 0
    index = 0
    seen = set()
    while judged < n:
        candidate = source.candidate(index)
        index += 1
        if candidate.verdict in BEFORE_THE_FILTER:
            continue
        judged += 1
        seen.add(candidate.verdict)
        formula = candidate.expression
        verdict = sn.accepts(formula, candidate.X.T, intercept=options.get("intercept", "term"))
        assert verdict.accepted == (candidate.verdict == "accepted"), (index, str(formula))
        assert verdict.reason.startswith(REASONS[candidate.verdict]), (index, verdict.reason)
        assert len(additive_terms(formula)) == candidate.n_terms, (index, str(formula))
        if candidate.min_novelty > 1e-3:  # below, the unit only says that it is low
            assert candidate.min_novelty == pytest.approx(verdict.min_novelty, abs=1e-7)
    assert {"accepted", "low_novelty"} <= seen


def test_lean_formulas_have_no_like_terms_and_bounded_angles() -> None:
    source = corpus()
    for index in source.batch(1, 60).indices.tolist():
        candidate = source.candidate(index)
        formula = candidate.expression
        assert len(formula) <= 40
        for place, token in enumerate(formula.tokens):
            if str(token) in ("sin", "cos", "tan"):
                assert np.abs(evaluate(formula.subtree(place + 1), candidate.X.T)).max() <= 200.0


def test_e2esr_formulas_have_its_law() -> None:
    source = corpus("e2esr", with_floats=True)
    batch = source.batch(0, 2000)
    share = np.bincount(batch.dims, minlength=11)[1:] / 2000
    np.testing.assert_allclose(share, 0.1, atol=0.03)  # the dimension stays uniform after rejection
    assert (batch.n_terms >= 2).mean() > 0.99  # a constant is always added
    constants = np.concatenate([source.candidate(i).constants for i in batch.indices[:200].tolist()])
    constants = np.abs(constants[constants != 0.0])
    assert constants.min() >= 0.001 and constants.max() <= 99.9
    np.testing.assert_allclose([float(f"{c:.2e}") for c in constants], constants, rtol=0, atol=0)


def test_arms_with_one_seed_see_the_same_candidates() -> None:
    random, filtered = corpus("e2esr").batch(0, 200), corpus("e2esr", arm="filtered").batch(0, 200)
    common = np.intersect1d(random.indices, filtered.indices)
    assert len(common) > 100
    rows = [np.flatnonzero(batch.indices == common[0])[0] for batch in (random, filtered)]
    np.testing.assert_array_equal(random.tokens[rows[0]], filtered.tokens[rows[1]])


def test_the_matched_arm_has_the_law_of_the_filtered_one() -> None:
    filtered = corpus("e2esr", arm="filtered", judge="one_to_five")
    reached, passed = filtered.pass_rates(4000, n_threads=2)
    assert reached.sum() > 3900 and 0.1 < passed.sum() / reached.sum() < 0.5
    keep = matching_keep(reached, passed)
    matched = Corpus(dataclasses.replace(filtered.settings, arm="matched", keep=keep, judge=None))
    n_terms = {name: c.batch(3, 1000).n_terms.mean() for name, c in (("filtered", filtered), ("matched", matched))}
    assert n_terms["matched"] == pytest.approx(n_terms["filtered"], abs=0.25)
    assert corpus("e2esr").batch(3, 1000).n_terms.mean() > n_terms["matched"] + 1.0


def test_pass_rates_do_not_depend_on_the_number_of_threads() -> None:
    source = corpus("lean", arm="filtered")
    np.testing.assert_array_equal(source.pass_rates(301), source.pass_rates(301, n_threads=3))


def test_the_funnel_counts_every_draw() -> None:
    batch = corpus("lean", arm="filtered", hold_out=True).batch(0, 300)
    counts = dict(zip(VERDICTS, batch.counts.tolist(), strict=True))
    assert counts["accepted"] == 300
    assert sum(counts.values()) == batch.indices[-1] + 1
    assert counts["held_out"] > 0 and counts["low_novelty"] > 0 and counts["like_terms"] > 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x0*x1", "-3.5*x1*x0 + 2"),
        ("x0*exp(-x1)", "x1*exp(4*x0)"),
        ("x0/(x1 + x2)", "2*x2/(3*x0 + x1)"),
        ("sqrt(x0**2 + x1**2)", "3*sqrt(2*x1**2 + 0.5*x0**2)"),
        ("x0*(x1 - x2)", "2*x2*x0 + x0*x1"),
        ("x0*x1 + x2*x3", "x0*x2 + x1*x3"),
        ("sin(x0*x1)/x1", "2*sin(3*x1*x0)/x0 - 1"),
        ("x0**3*x1**2", "x1*x1*x0*x0*x1"),
    ],
)
def test_one_skeleton_whatever_the_constants_the_order_and_the_names(one: str, other: str) -> None:
    assert skeleton_hash(parse(one)) == skeleton_hash(parse(other))


def test_different_skeletons_have_different_hashes() -> None:
    texts = [
        "x0", "x0*x1", "x0/x1", "x0*exp(x1)", "exp(x0*x1)", "x0 + x1", "x0*x1 + x2", "x0*x1 + x0", "x0**2*x1",
        "sin(x0)", "cos(x0)", "sin(x0 + 1)", "x0*sin(x0)", "x0*sin(x1)", "sqrt(x0)", "sqrt(x0 + x1)", "1/(x0 + x1)",
        "x0/(x0 + x1)", "x0/(x1 + x2)", "x0*x1 + x2*x3", "x0*x1 + x0*x2", "x0*x1*x2", "log(x0)", "x0*log(x0)", "x0**3",
    ]  # fmt: skip
    assert len({skeleton_hash(parse(text)) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "text", ["x0*x1", "3*x1*exp(-2*x0/x2)", "x0/x1", "4*x0**2*x1", "cos(3*x0*x3)*x1*exp(-x0*x2) + 1"]
)
def test_laws_of_the_benchmarks_are_held_out(text: str) -> None:
    assert np.isin(sorted(skeleton_hashes(parse(text))), held_out_hashes()).any()


def test_no_formula_of_a_decontaminated_corpus_is_held_out() -> None:
    clean, plain = corpus(hold_out=True, dimensions=(1.0, 1.0)), corpus(dimensions=(1.0, 1.0))
    hashes = {int(value) for value in held_out_hashes()}
    rejected = kept = 0
    for index in range(400):
        candidate, before = clean.candidate(index), plain.candidate(index)
        if before.verdict == "accepted":
            is_held_out = skeleton_hash(before.expression) in hashes
            assert candidate.verdict == ("held_out" if is_held_out else "accepted")
            rejected += is_held_out
            kept += not is_held_out
    assert rejected > 20 and kept > 100


def test_the_list_holds_out_every_law_that_tokens_can_write() -> None:
    from sobolev_novelty.errors import ExpressionError
    from sobolev_novelty.lab.bench.problems.tasks import whitebox_tasks

    hashes = {int(value) for value in held_out_hashes()}
    without_tokens = []
    for task in whitebox_tasks():
        try:
            assert skeleton_hashes(parse(task.formula)) <= hashes, task.name
        except ExpressionError:
            without_tokens.append(task.name)
    assert without_tokens == ["feynman_I_26_2", "feynman_I_30_5", "feynman_test_10"]  # arcsin and arccos


def test_formulas_read_only_their_own_inputs() -> None:
    batch = corpus().batch(0, 200)
    inputs = (batch.tokens >= FIRST_INPUT) & (batch.tokens < FIRST_OPERATOR)
    highest = np.where(inputs, batch.tokens - FIRST_INPUT, -1).max(axis=1)
    np.testing.assert_array_equal(highest + 1, batch.dims)
    assert (batch.tokens == CONSTANT).any()


def unit_of(formula: Expression, units: np.ndarray) -> tuple[Fraction, ...]:
    """The unit of a formula; an assertion fails where units do not match."""
    nothing = (Fraction(0),) * units.shape[1]

    def leaf(token: float | str) -> tuple[Fraction, ...]:
        return tuple(map(Fraction, units[int(token[1:])].tolist())) if isinstance(token, str) else nothing

    def node(op: Operator, of: tuple[tuple[Fraction, ...], ...]) -> tuple[Fraction, ...]:
        powers = {"inv": Fraction(-1), "square": Fraction(2), "cube": Fraction(3), "sqrt": Fraction(1, 2)}
        if op.name == "mul":
            return tuple(a + b for a, b in zip(*of, strict=True))
        if op.name in powers:
            return tuple(powers[op.name] * a for a in of[0])
        assert op.name in ("add", "sub", "sin", "cos", "exp"), op.name
        assert of[0] == (of[1] if op.arity == 2 else nothing), str(formula)
        return of[0]

    return formula.fold(leaf, node)


def test_formulas_of_the_physics_grammar_are_consistent_in_their_units() -> None:
    source = corpus("physics", hold_out=True)
    batch = source.batch(0, 400)
    assert batch.dims.min() >= 2 and batch.dims.max() == 9 and set(batch.n_terms.tolist()) == {1, 2, 3}
    seen: Counter[str] = Counter()
    hashes = {int(value) for value in held_out_hashes()}
    for index in batch.indices.tolist():
        candidate = source.candidate(index)
        formula, units = candidate.expression, candidate.units
        unit_of(formula, units)
        assert skeleton_hash(formula) not in hashes
        assert len(formula.variables) == len(candidate.X)
        assert np.abs(units).max() <= 4
        seen["with units"] += bool(units.any())
        seen.update({str(token) for token in formula.tokens if isinstance(token, Operator)})
    assert {"add", "sub", "mul", "inv", "square", "sin", "cos", "exp", "sqrt"} <= set(seen)
    assert seen["with units"] > 380


def test_a_file_of_formulas_is_a_corpus(tmp_path: Path) -> None:
    texts = [
        "2.5*m*v**2 + b*tanh(m)",
        "x1*sin(x2/3)",
        "arcsin(x0)",
        "x0 +",
        "0*x0 + x1",
        "1e99*x0 + x1",
        "x2 - 3.14159*x9",
    ]
    path = tmp_path / "laws.json"
    path.write_text(json.dumps(texts))
    source = corpus("file", formulas=str(path), with_floats=True)
    assert source.n_left_out == 4
    batch = source.batch(0, 60)
    np.testing.assert_array_equal(
        batch.tokens, corpus("file", formulas=str(path), with_floats=True).batch(0, 60).tokens
    )
    assert set(batch.dims.tolist()) == {2, 3}
    written = Counter(str(source.candidate(index).expression) for index in batch.indices.tolist())
    assert set(written) == {str(decode(tokens)) for tokens in batch.tokens.tolist()}
    assert "x0 - 3.14*x1" in written and "x0*sin(x1*inv(3))" in written and len(written) == 3
    filtered = corpus("file", formulas=str(path), arm="filtered", judge="one_to_five")
    assert filtered.candidate(0).verdict in VERDICTS


def test_a_file_without_formulas_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "laws.txt"
    path.write_text("arcsin(x0)\n")
    with pytest.raises(DataError, match="no formula that the tokens can write; 1 were left out"):
        corpus("file", formulas=str(path))
    with pytest.raises(ParameterError, match="'formulas' is the path of the law 'file', and of no other"):
        corpus("lean", formulas=str(path))


def test_settings_that_cannot_be_used_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="'law' must be one of lean, e2esr"):
        CorpusSettings.of_law("other")
    with pytest.raises(ParameterError, match="'arm' must be one of"):
        corpus(arm="other")
    with pytest.raises(ParameterError, match="'inputs' must be one of"):
        corpus(inputs={"other": 1.0})
    with pytest.raises(ParameterError, match="'max_nodes' must be 2 to 80"):
        corpus(max_nodes=81)
    with pytest.raises(ParameterError, match="needs 'keep'"):
        corpus(arm="matched")
    monkeypatch.setattr("sobolev_novelty.engines.transformer.corpus.STRIDE", 500)
    with pytest.raises(KernelError, match="Only 0 of 500 candidates were accepted"):
        corpus(max_target=1e-9).batch(0, 1)
    assert len(corpus(arm="matched", keep=(1.0,) * (MAX_DIM * (MAX_TERMS + 1))).batch(0, 3).dims) == 3


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="'no-such-compiler' was not found"):
        build(tmp_path, compiler="no-such-compiler")
