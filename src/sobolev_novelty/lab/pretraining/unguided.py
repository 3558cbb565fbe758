"""The corpus without the network: skeletons drawn blindly, fitted and chosen as the network's are. A reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.transformer.corpus import Corpus, CorpusSettings
from sobolev_novelty.engines.transformer.skeletons import is_new, started_forms
from sobolev_novelty.engines.transformer.tokenizer import MAX_INPUTS, decode
from sobolev_novelty.search.contract.engine import Candidate, Engine, Guidance, Problem, State
from sobolev_novelty.search.model.preparation import IndexArray, chosen_columns

#: Skeletons of a round.
ROUND = 128


@dataclass(slots=True)
class UnguidedState(State):
    """What was drawn so far."""

    problem: Problem
    columns: IndexArray
    seed: int
    n_drawn: int = 0
    skeletons: set[frozenset[Expression]] = field(default_factory=set)


class Unguided(Engine[UnguidedState]):
    """Skeletons of the lean corpus with as many inputs as the table has, benchmarks held out.

    ``n_starts``: starting points of the constants of each skeleton.
    ``guidance``: {"default"}, SobolevGuidance or None, by default what ``novelty=`` of the regressor says; None for
    none. Not used.
    """

    def __init__(self, *, n_samples: int = 1024, n_starts: int = 4, guidance: Guidance = "default") -> None:
        self.n_samples = n_samples
        self.n_starts = n_starts
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> UnguidedState:
        """Choose the columns, and a seed for the corpus."""
        columns = chosen_columns(problem.sample.X.T, problem.y, MAX_INPUTS)
        return UnguidedState(problem, columns, int(rng.integers(2**31)))

    def propose(self, state: UnguidedState, rng: np.random.Generator) -> Iterator[Expression]:
        """The next skeletons of the corpus, each from several starting points."""
        size = min(ROUND, self.n_samples - state.n_drawn)
        if size < 1:
            return
        names = [state.problem.sample.names[j] for j in state.columns]
        dimensions = tuple(float(d == len(names)) for d in range(1, MAX_INPUTS + 1))
        corpus = Corpus(CorpusSettings.of_law("lean", seed=state.seed, dimensions=dimensions, hold_out=True))
        batch = corpus.batch(state.n_drawn // ROUND, size)
        state.n_drawn += size
        drawn = [decode(tokens, names=names) for tokens in batch.tokens.tolist()]
        new = [skeleton for skeleton in drawn if is_new(skeleton, state.skeletons)]
        yield from started_forms(new, state.problem, self.n_starts, rng)

    def observe(self, state: UnguidedState, scored: list[Candidate]) -> UnguidedState:
        """Nothing is learned."""
        return state
