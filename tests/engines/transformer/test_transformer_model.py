"""The network: causal, a function of a set of points, the same with kept keys; its samples are formulas."""

from __future__ import annotations

import numpy as np
import pytest

from needs_torch import corpus, corpus_unit, one_thread, tiny, torch  # noqa: F401
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.transformer.decoding import sample
from sobolev_novelty.engines.transformer.model import Model, ModelSettings, features
from sobolev_novelty.engines.transformer.tokenizer import BEGIN, END, PAD, decode, encode
from sobolev_novelty.errors import ParameterError

pytestmark = pytest.mark.torch


def network(tokens: str = "skeleton", length: int = 16) -> Model:
    settings = ModelSettings(tokens, length, width=32, heads=4, encoder_layers=2, decoder_layers=2)
    return Model(settings, seed=1).eval()


def table(n_tables: int = 3, n_points: int = 40, n_inputs: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    X = torch.zeros(n_tables, n_points, 10)
    X[:, :, :n_inputs] = torch.randn(n_tables, n_points, n_inputs, generator=generator)
    return X, torch.randn(n_tables, n_points, generator=generator)


def test_a_later_token_changes_no_earlier_logit() -> None:
    model, (X, y) = network(), table()
    tokens = torch.randint(3, 28, (3, 12), generator=torch.Generator().manual_seed(1))
    changed = tokens.clone()
    changed[:, 7:] = 4 + (changed[:, 7:] + 5) % 20
    with torch.no_grad():
        before, after = model(X, y, tokens), model(X, y, changed)
    torch.testing.assert_close(before[:, :7], after[:, :7], rtol=0.0, atol=0.0)
    assert (before[:, 7:] - after[:, 7:]).abs().max() > 1e-3


def test_the_order_of_the_points_does_not_matter_nor_their_repetition() -> None:
    model, (X, y) = network(), table()
    tokens = torch.randint(3, 28, (3, 6))
    order = torch.randperm(40, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        plain = model(X, y, tokens)
        torch.testing.assert_close(model(X[:, order], y[:, order], tokens), plain, rtol=1e-4, atol=1e-4)
        twice = model(X.repeat(1, 5, 1), y.repeat(1, 5), tokens)
    # The deviation divides by n - 1, so that repeated rows are not quite the same table.
    torch.testing.assert_close(twice, plain, rtol=0.1, atol=0.1)


def test_kept_keys_give_the_same_logits() -> None:
    model, (X, y) = network(), table()
    sequences = torch.randint(3, 28, (3, 2, 10), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        caches = model.start(X, y, 2)
        for place in range(10):
            logits = model.next_logits(sequences[:, :, place].flatten(), caches, place).view(3, 2, -1)
            for k in range(2):
                whole = model(X, y, sequences[:, k, : place + 1])[:, -1]
                torch.testing.assert_close(logits[:, k], whole, rtol=1e-4, atol=1e-5)


def test_keys_made_together_are_those_of_each_layer() -> None:
    model = network()
    memory = torch.randn(3, 40, 32, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        for layer, together in zip(model.decoder, model.point_keys(memory), strict=True):
            for made, alone in zip(together, layer.attend_points.keys(memory), strict=True):
                torch.testing.assert_close(made, alone)
        attention = model.encoder[0].attend_self
        torch.testing.assert_close(attention.to_itself(memory), attention(memory, *attention.keys(memory)))


def test_features_are_finite_for_numbers_of_any_size() -> None:
    X, y = table()
    scale = torch.tensor([1e-30, 1.0, 1e30]).view(3, 1, 1)
    found = features(X * scale, y * scale[:, :, 0] * 1e5)
    assert torch.isfinite(found).all()
    assert found.abs().max() < 50.0
    unused = features(X, y).view(3, 40, -1, 11)[..., 3:10]
    assert not unused.any()  # an input that is not there says nothing


@pytest.mark.parametrize(("tokens", "length"), [("skeleton", 14), ("float", 20)])
def test_samples_are_formulas_of_the_inputs_that_are_there(tokens: str, length: int) -> None:
    model, (X, y) = network(tokens, length), table()
    out = sample(model, X, y, torch.tensor([1, 2, 3]), 64, generator=torch.Generator().manual_seed(4))
    assert out.shape == (3, 64, length)
    distinct = set()
    for n_inputs, rows in zip((1, 2, 3), out.tolist(), strict=True):
        for row in rows:
            end = row.index(END)
            assert set(row[end + 1 :]) <= {PAD}
            assert BEGIN not in row
            formula = decode(row)  # raises when it is not one tree
            assert isinstance(formula, Expression)
            assert set(formula.variables) <= {f"x{j}" for j in range(n_inputs)}
            distinct.add(formula)
    assert len(distinct) > 30


def test_samples_follow_the_generator_and_the_first_is_greedy() -> None:
    model, (X, y) = network(), table()
    draws = [
        sample(model, X, y, torch.tensor([3, 3, 3]), 8, generator=torch.Generator().manual_seed(k)) for k in (5, 5, 6)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(draws[0][:, 0], draws[2][:, 0])
    alone = sample(model, X, y, torch.tensor([3, 3, 3]), 1)
    assert torch.equal(alone[:, 0], draws[0][:, 0])
    with pytest.raises(ParameterError, match="'n_sequences' must be at least 1"):
        sample(model, X, y, torch.tensor([3, 3, 3]), 0)


@pytest.mark.usefixtures("corpus_unit")
def test_a_batch_can_be_learned_by_heart_and_decoded() -> None:
    settings = tiny()
    batch = corpus(dimensions=(1.0, 1.0), max_nodes=12).batch(0, 8)
    model = Model(ModelSettings("skeleton", 14, width=32, heads=2, encoder_layers=1, decoder_layers=1))
    assert settings.model.length == model.settings.length
    X, y = torch.from_numpy(batch.X[:, :32]), torch.from_numpy(batch.y[:, :32])
    tokens = torch.from_numpy(batch.tokens).long()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for _ in range(150):
        optimizer.zero_grad()
        loss = model.loss(X, y, tokens)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    greedy = sample(model, X, y, torch.from_numpy(batch.dims.astype(np.int64)), 1)[:, 0]
    for row, truth in zip(greedy.tolist(), batch.tokens.tolist(), strict=True):
        assert encode(decode(row), with_floats=False) == [token for token in truth if token > 2]


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="'width' must be a multiple"):
        ModelSettings("skeleton", 10, width=30, heads=8)
    with pytest.raises(ParameterError, match="'tokens' must be"):
        ModelSettings("words", 10)
