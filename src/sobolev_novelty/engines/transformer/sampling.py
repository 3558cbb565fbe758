"""Many formulas for one table, each prefix computed once.

Samples begin alike: of a thousand, a handful of first tokens and some dozens of second ones. A *branch* is a distinct
prefix with the number of samples that go through it; at each place a branch's samples are divided among the next tokens
by one multinomial draw. The law is that of independent samples, and the network sees each prefix once. Branches that
have ended leave the batch.

Shapes
------
``U`` branches, ``L`` places, ``V`` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.engines.transformer.decoding import Grammar
from sobolev_novelty.engines.transformer.model import LayerCache, Model
from sobolev_novelty.engines.transformer.tokenizer import BEGIN, END, PAD
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Deadline

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A formula that was drawn."""

    tokens: tuple[int, ...]  # without BEGIN and END
    count: int  # how many of the samples it is; 0 for a greedy formula that no sample hit
    log_chance: float  # of the whole formula at temperature 1, END included


@dataclass(frozen=True, slots=True, eq=False)
class _Branches:
    """Prefixes under way; row ``i`` of every array, and of the caches, belongs to branch ``i``."""

    tokens: IntArray  # (U, L)
    counts: IntArray  # (U,)
    log_chances: FloatArray  # (U,)
    open_places: IntArray  # (U,)
    is_greedy: npt.NDArray[np.bool_]  # (U,)

    @classmethod
    def root(cls, n_samples: int, length: int) -> _Branches:
        one = np.ones(1, dtype=np.int64)
        return cls(np.full((1, length), PAD), n_samples * one, np.zeros(1), one, one.astype(bool))

    def rows(self, rows: IntArray) -> _Branches:
        return _Branches(
            self.tokens[rows],
            self.counts[rows],
            self.log_chances[rows],
            self.open_places[rows],
            self.is_greedy[rows],
        )

    def divided(
        self, logits: Tensor, place: int, rng: np.random.Generator, spread: _Spread
    ) -> tuple[IntArray, _Branches]:
        """Each branch's samples among the next tokens: the parent of each new branch, and the new branches."""
        log_chances = torch.log_softmax(logits, dim=-1).numpy()  # (U, V)
        chances = torch.softmax(logits / spread.temperature, dim=-1).numpy()
        counts = rng.multinomial(self.counts, chances / chances.sum(axis=1, keepdims=True))
        is_greedy = np.zeros(counts.shape, dtype=bool)
        is_greedy[self.is_greedy, log_chances[self.is_greedy].argmax(axis=1)] = True
        parents, tokens = np.nonzero((counts > 0) | is_greedy)
        sequences = self.tokens[parents]
        sequences[:, place] = tokens
        before = self.open_places[parents]
        return parents, _Branches(
            sequences,
            counts[parents, tokens],
            self.log_chances[parents] + log_chances[parents, tokens],
            np.where(before > 0, before - 1 + spread.operands[tokens], 0),
            is_greedy[parents, tokens],
        )

    def ended(self, place: int) -> list[Drawn]:
        """The formulas whose last token is END, without it."""
        return [
            Drawn(tuple(self.tokens[i, :place].tolist()), int(self.counts[i]), float(self.log_chances[i]))
            for i in np.flatnonzero(self.tokens[:, place] == END).tolist()
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """How samples divide: the temperature, and the places that each token opens."""

    temperature: float
    operands: IntArray


def draw(
    model: Model,
    X: Tensor,
    y: Tensor,
    grammar: Grammar,
    *,
    n_samples: int,
    rng: np.random.Generator,
    temperature: float = 1.0,
    deadline: Deadline | None = None,
) -> list[Drawn]:
    """The greedy formula and the distinct ones of ``n_samples`` samples, the most likely first.

    ``X``: (1, N, 10), unused columns are 0; a table with fewer than 200 rows is best repeated up to 200.
    ``y``: (1, N).
    ``grammar``: for one table, on the CPU.
    ``deadline``: what has not ended by then is left out.
    """
    if n_samples < 0:
        raise ParameterError(f"'n_samples' must not be negative. Got {n_samples}.")
    deadline = deadline or Deadline()
    spread = _Spread(temperature, grammar.operands.numpy())
    branches = _Branches.root(n_samples, grammar.length)
    last = torch.full((1,), BEGIN)
    found: list[Drawn] = []
    with torch.inference_mode():
        caches = model.start(X, y, n_samples + 1)
        for place in range(grammar.length - 1):
            if deadline.is_over:
                break
            active = [cache.first(len(last)) for cache in caches]
            logits = model.next_logits(last.to(X.device), active, place).double().cpu()
            allowed = grammar.allowed(place, torch.from_numpy(branches.open_places)[None], last[None])[0]
            parents, branches = branches.divided(logits.masked_fill(~allowed, float("-inf")), place, rng, spread)
            found += branches.ended(place)
            alive = np.flatnonzero(branches.tokens[:, place] != END)
            if len(alive) == 0:
                break
            alive = alive[_arranged(parents[alive])]
            branches = branches.rows(alive)
            last = torch.from_numpy(branches.tokens[:, place])
            _move(caches, parents[alive], place)
    return sorted(found, key=lambda formula: -formula.log_chance)


def _arranged(parents: IntArray) -> IntArray:
    """An order of branches in which as many as can stand where their parent stood: those need no copy."""
    n = len(parents)
    order = np.full(n, -1)
    # Parents come sorted: the first of equal ones stays in place, others fill the gaps.
    stays = (np.diff(parents, prepend=-1) > 0) & (parents < n)
    order[parents[stays]] = np.flatnonzero(stays)
    order[order < 0] = np.flatnonzero(~stays)
    return order


def _move(caches: list[LayerCache], parents: IntArray, place: int) -> None:
    """What the caches hold of each branch, from its parent's row to its own."""
    moved = np.flatnonzero(parents != np.arange(len(parents)))
    if len(moved) == 0:
        return
    to, source = torch.from_numpy(moved), torch.from_numpy(parents[moved])
    for cache in caches:
        for kept in (cache.keys, cache.values):
            kept[: place + 1, to] = kept[: place + 1, source]
