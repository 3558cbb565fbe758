"""How well a network solves tasks, with E2ESR's inference: the paper's pretraining experiment (Section 4.3).

Inputs are standardized, the target is not. The network reads bags of at most 200 rows and writes, for each bag, the
greedy formula and samples; a readout fits constants and chooses the formula (:mod:`.readouts`).

A *draw* is one such run. Samples of several draws come from the same bags, and each draw also has the greedy formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import numpy as np
import torch

from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.engines.transformer.corpus import N_POINTS, Corpus, CorpusSettings
from sobolev_novelty.engines.transformer.decoding import Grammar
from sobolev_novelty.engines.transformer.model import Model
from sobolev_novelty.engines.transformer.sampling import Drawn, draw
from sobolev_novelty.engines.transformer.tokenizer import MAX_INPUTS, decode
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.pretraining.readouts import LEAST_SQUARES, WRITTEN, Refinement, Solution, readout

#: Rows of the fits at most, as in E2ESR.
FIT_ROWS = 1024


class Split(Protocol):
    """A task as arrays, (n_samples, n_features) and (n_samples,)."""

    @property
    def X_train(self) -> FloatArray:
        """Inputs to learn from."""

    @property
    def y_train(self) -> FloatArray:
        """Their target."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How formulas are drawn and refined."""

    n_draws: int = 8  # independent runs per task
    n_samples: int = 128  # samples of each, over all bags; the greedy formula of each bag comes on top
    n_bags: int = 2  # sets of at most 200 training rows that the network reads
    own_bags: bool = False  # whether each draw has such sets of its own; otherwise all draws share them
    temperature: float = 1.0
    n_refined: int = 10  # formulas of each draw whose inner constants are fitted: those with the smallest error before
    n_iterations: int = 20  # steps of that fit
    n_starts: int = 1  # its starting points: what the network wrote, and others around it
    readout: str = LEAST_SQUARES  # {"least squares", "written"}: what is fitted, and how a formula is chosen
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_draws", "n_samples", "n_bags", "n_refined", "n_starts"):
            if getattr(self, name) < 1:
                raise ParameterError(f"'{name}' must be at least 1. Got {getattr(self, name)}.")
        if self.n_samples % self.n_bags:
            raise ParameterError(f"'n_samples' must be a multiple of 'n_bags', {self.n_bags}. Got {self.n_samples}.")
        if self.readout not in (LEAST_SQUARES, WRITTEN):
            raise ParameterError(f"'readout' must be '{LEAST_SQUARES}' or '{WRITTEN}'. Got {self.readout!r}.")


#: Ours, and the paper's as far as E2ESR's code tells it.
INFERENCES = {
    "ours": Decoding(),
    "paper": Decoding(
        n_draws=4, n_samples=10, n_bags=1, own_bags=True, temperature=0.1, n_iterations=200, readout=WRITTEN
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Standardized inputs: (x - mean) / deviation, by the training rows."""

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> Scaling:
        """By the columns of ``X``, (n_samples, n_features)."""
        deviation = X.std(axis=0)
        return cls(X.mean(axis=0), np.where(deviation > 0.0, deviation, 1.0))

    def __call__(self, X: FloatArray) -> Sample:
        """A table in standardized inputs, called x0, x1, …."""
        scaled = ((X - self.mean) / self.deviation).T
        return Sample(np.ascontiguousarray(scaled), tuple(f"x{j}" for j in range(len(scaled))))

    def undone(self, expression: Expression) -> Expression:
        """The same formula in raw inputs."""
        tokens: list[Token] = []
        for token in expression.tokens:
            if isinstance(token, str):
                j = int(token[1:])
                tokens += [
                    OPERATORS["div"], OPERATORS["sub"], token, float(self.mean[j]), float(self.deviation[j]),
                ]  # fmt: skip
            else:
                tokens.append(token)
        return Expression(tokens)


#: Formulas for a table, one list per draw.
Propose = Callable[[Sample, FloatArray, Decoding, np.random.Generator], list[list[Expression]]]


def by_network(model: Model) -> Propose:
    """Formulas that a network writes for the bags of a table."""

    def propose(sample: Sample, y: FloatArray, decoding: Decoding, rng: np.random.Generator) -> list[list[Expression]]:
        if not decoding.own_bags:
            return _sharing_bags(model, sample, y, decoding, rng)
        single = replace(decoding, n_draws=1)
        return [_sharing_bags(model, sample, y, single, rng)[0] for _ in range(decoding.n_draws)]

    return propose


def _sharing_bags(
    model: Model, sample: Sample, y: FloatArray, decoding: Decoding, rng: np.random.Generator
) -> list[list[Expression]]:
    draws: list[list[Expression]] = [[] for _ in range(decoding.n_draws)]
    grammar = Grammar.of(model.settings, torch.tensor([sample.n_features]))
    per_bag = decoding.n_samples // decoding.n_bags
    device = next(model.parameters()).device
    for _ in range(decoding.n_bags):
        X_bag, y_bag = (part.to(device) for part in _bag(sample, y, rng))
        greedy = draw(model, X_bag, y_bag, grammar, n_samples=0, rng=rng)
        found = draw(
            model, X_bag, y_bag, grammar, n_samples=per_bag * decoding.n_draws, rng=rng,
            temperature=decoding.temperature,
        )  # fmt: skip
        for own, dealt in zip(draws, _dealt(found, decoding.n_draws, rng), strict=True):
            own.extend(decode(formula.tokens) for formula in (*greedy, *dealt))
    return draws


def by_generator(settings: CorpusSettings) -> Propose:
    """Formulas of the corpus itself, drawn without looking at the table: what the search for constants does alone."""

    def propose(sample: Sample, y: FloatArray, decoding: Decoding, rng: np.random.Generator) -> list[list[Expression]]:
        only = tuple(float(j == sample.n_features - 1) for j in range(sample.n_features))
        corpus = Corpus(replace(settings, dimensions=only, seed=int(rng.integers(2**62)), keep=(), arm=_arm(settings)))
        accepted = corpus.accepted()
        return [
            [candidate.expression for candidate in islice(accepted, decoding.n_samples)]
            for _ in range(decoding.n_draws)
        ]

    return propose


def _arm(settings: CorpusSettings) -> str:
    # Within one dimension the matched arm differs from Random by its law of terms only.
    return "random" if settings.arm == "matched" else settings.arm


def _bag(sample: Sample, y: FloatArray, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """At most 200 rows, repeated up to 200, as the network reads them."""
    rows = np.arange(len(y)) if len(y) <= N_POINTS else rng.choice(len(y), N_POINTS, replace=False)
    rows = np.resize(rows, N_POINTS)
    X = np.zeros((1, N_POINTS, MAX_INPUTS), dtype=np.float32)
    X[0, :, : sample.n_features] = sample.X[:, rows].T
    return torch.from_numpy(X), torch.from_numpy(y[rows].astype(np.float32))[None]


def _dealt(found: Sequence[Drawn], n_draws: int, rng: np.random.Generator) -> list[list[Drawn]]:
    """Samples shuffled and dealt to the draws; each draw has a formula once, the most likely first."""
    owners = np.repeat(np.arange(len(found)), [formula.count for formula in found])
    rng.shuffle(owners)
    return [[found[k] for k in sorted(set(owners[d::n_draws].tolist()))] for d in range(n_draws)]


def solve(part: Split, propose: Propose, decoding: Decoding) -> list[Solution]:
    """The chosen formula of each draw for one task."""
    n_features = part.X_train.shape[1]
    if n_features > MAX_INPUTS:
        none = f"The network reads {MAX_INPUTS} inputs; the task has {n_features}."
        return [Solution(None, math.inf, 0, none)] * decoding.n_draws
    rng = np.random.default_rng(decoding.seed)
    sample, y = Scaling.of(part.X_train)(part.X_train), part.y_train
    draws = propose(sample, y, decoding, rng)
    rows = np.arange(min(len(y), FIT_ROWS))
    refinement = Refinement(decoding.n_refined, decoding.n_iterations, decoding.n_starts)
    chooser = readout(decoding.readout, sample.rows(rows), y[rows], refinement, rng)
    return [chooser.choose(formulas) for formulas in draws]
