"""Samples by prefix: the law of independent samples, formulas that the grammar allows, one pass for each prefix."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from needs_torch import one_thread, torch  # noqa: F401
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.engines.transformer.decoding import Grammar, sample
from sobolev_novelty.engines.transformer.model import Model, ModelSettings
from sobolev_novelty.engines.transformer.sampling import Drawn, _arranged, draw
from sobolev_novelty.engines.transformer.tokenizer import BEGIN, END, decode
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Deadline

pytestmark = pytest.mark.torch

SETTINGS = ModelSettings("skeleton", 8, width=16, heads=2, encoder_layers=1, decoder_layers=2)
MODEL = Model(SETTINGS, seed=3).eval()
GENERATOR = torch.Generator().manual_seed(0)
X = torch.zeros(1, 40, 10)
X[:, :, :2] = torch.randn(1, 40, 2, generator=GENERATOR)
Y = torch.randn(1, 40, generator=GENERATOR)
GRAMMAR = Grammar.of(SETTINGS, torch.tensor([2]))


def drawn(n_samples: int, seed: int = 0, grammar: Grammar = GRAMMAR, **options: float) -> list[Drawn]:
    return draw(MODEL, X, Y, grammar, n_samples=n_samples, rng=np.random.default_rng(seed), **options)  # type: ignore[arg-type]


def test_all_samples_are_there_and_no_formula_twice() -> None:
    found = drawn(300)
    assert sum(formula.count for formula in found) == 300
    assert len({formula.tokens for formula in found}) == len(found)
    assert [f.log_chance for f in found] == sorted((f.log_chance for f in found), reverse=True)
    assert drawn(300) == found
    assert drawn(300, seed=1) != found


def test_the_greedy_formula_is_among_them_even_without_samples() -> None:
    greedy = [token for token in sample(MODEL, X, Y, torch.tensor([2]), 1)[0, 0].tolist() if token > END]
    (alone,) = drawn(0)
    assert list(alone.tokens) == greedy
    assert alone.count == 0
    assert alone.tokens in {formula.tokens for formula in drawn(50)}
    with pytest.raises(ParameterError, match="'n_samples' must not be negative"):
        drawn(-1)


def test_chances_are_those_of_the_network_without_kept_keys() -> None:
    for formula in drawn(60)[::7]:
        tokens = [BEGIN, *formula.tokens, END]
        with torch.no_grad():
            logits = MODEL(X, Y, torch.tensor([tokens[:-1]]))[0].double()
        open_places, total = 1, 0.0
        for place, token in enumerate(tokens[1:]):
            allowed = GRAMMAR.allowed(place, torch.tensor([[open_places]]), torch.tensor([[tokens[place]]]))[0, 0]
            total += float(torch.log_softmax(logits[place].masked_fill(~allowed, -math.inf), dim=-1)[token])
            open_places += int(GRAMMAR.operands[token]) - 1
        assert formula.log_chance == pytest.approx(total, abs=1e-4)


def test_counts_follow_the_chances() -> None:
    n = 20_000
    short = GRAMMAR.restricted(("add", "sin"), 3)
    found = drawn(n, grammar=short)
    likely = [f for f in found if n * math.exp(f.log_chance) > 20]
    assert len(likely) > 3
    excess = [(f.count - n * math.exp(f.log_chance)) ** 2 / (n * math.exp(f.log_chance)) for f in likely]
    assert np.mean(excess) < 1.0 + 5.0 * math.sqrt(2.0 / len(excess))


def test_a_restricted_grammar_gives_no_other_operator_and_no_longer_formula() -> None:
    names: Counter[str] = Counter()
    for formula in drawn(200, grammar=GRAMMAR.restricted(("mul", "sin"), 4)):
        expression = decode(formula.tokens)
        assert len(expression) <= 4
        names.update(token.name for token in expression.tokens if isinstance(token, Operator))
    assert set(names) == {"mul", "sin"}


def test_nothing_is_drawn_when_the_time_is_over() -> None:
    late = draw(MODEL, X, Y, GRAMMAR, n_samples=10, rng=np.random.default_rng(0), deadline=Deadline.after(0.0))
    assert late == []


def test_branches_stay_in_their_parents_row_where_they_can() -> None:
    for parents in ([0, 0, 1, 2, 2], [3, 4, 4], [0], [5, 5, 5, 6]):
        rows = np.array(parents)[_arranged(np.array(parents))]
        assert sorted(rows.tolist()) == sorted(parents)
        possible = {p for p in parents if p < len(parents)}
        assert int((rows == np.arange(len(rows))).sum()) >= len(possible)
