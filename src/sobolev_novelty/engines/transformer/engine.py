"""A pretrained network proposes skeletons: it reads a bag of points and writes formulas, whose constants the loop fits.

Each round shows the network another bag of at most 200 rows and takes the greedy formula and samples. A skeleton that
was not there yet becomes several forms: its constants start from different values, and every other form has a free
offset. The engine ends when its samples are used up, or after the round in which an exact fit was found: a simpler
equivalent is mostly in the same round, and a further one takes the network a second.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.parameters import COUNT, NOTHING, POSITIVE, WORD, declared, whole
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import EXACT_NMSE
from sobolev_novelty.engines.transformer.decoding import Grammar
from sobolev_novelty.engines.transformer.pretrained import chosen_device, network, weights_folder
from sobolev_novelty.engines.transformer.sampling import draw
from sobolev_novelty.engines.transformer.skeletons import is_new, started_forms
from sobolev_novelty.engines.transformer.tokenizer import FIRST_OPERATOR, MAX_INPUTS, SKELETON_NAMES, decode
from sobolev_novelty.search.contract.engine import GUIDANCE, Candidate, Engine, Guidance, Problem, State
from sobolev_novelty.search.model.preparation import IndexArray, chosen_columns
from sobolev_novelty.search.propose.neighbours import shorter_spellings

#: Rows the network reads at once; shorter tables are repeated up to here, as in training.
BAG_ROWS = 200
#: Samples of the first round, and of a round at most. Later rounds are larger: prefixes are shared.
FIRST_ROUND, LARGEST_ROUND = 256, 512
#: Share of the time left that drawing may take: what is drawn is to be fitted, too.
DRAWING_SHARE = 0.6
#: Best fits for which shorter spellings are tried at the end.
N_REWRITTEN = 5
#: Columns with a root mean square outside of these are shown to the network in other units.
SMALLEST, LARGEST = 1e-3, 1e3


@dataclass(slots=True)
class TransformerState(State):
    """What was drawn so far."""

    problem: Problem
    columns: IndexArray
    n_drawn: int = 0
    is_over: bool = False
    best: list[Candidate] = field(default_factory=list)
    rewritten: set[Expression] = field(default_factory=set)
    skeletons: set[frozenset[Expression]] = field(default_factory=set)


@declared(
    n_samples=whole(),
    temperature=POSITIVE,
    n_starts=COUNT,
    weights=WORD | NOTHING,
    device=WORD | NOTHING,
    guidance=GUIDANCE,
)
class Transformer(Engine[TransformerState]):
    """Skeletons from a pretrained network.

    The Sobolev signal changes nothing here: every skeleton is fitted, and the loop chooses.

    Parameters
    ----------
    n_samples : int
        Formulas drawn in all, repeated ones counted; the greedy ones come on top.
    temperature : float
        Of the samples: below 1 they are more alike.
    n_starts : int
        Starting points of the constants of each skeleton.
    weights : str, optional
        Folder of another network (``config.json`` and its files) than that of the package.
    device : str, optional
        As torch names it; by default a GPU where there is one.
    guidance : {"default"}, SobolevGuidance or None
        By default what ``novelty=`` of the regressor says; None for none.
        Accepted as every engine does, and not used.
    """

    def __init__(
        self,
        *,
        n_samples: int = 1024,
        temperature: float = 1.0,
        n_starts: int = 4,
        weights: str | None = None,
        device: str | None = None,
        guidance: Guidance = "default",
    ) -> None:
        self.n_samples = n_samples
        self.temperature = temperature
        self.n_starts = n_starts
        self.weights = weights
        self.device = device
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> TransformerState:
        """Read the network and choose the columns it sees."""
        network(weights_folder(self.weights), chosen_device(self.device))
        return TransformerState(problem, chosen_columns(problem.sample.X.T, problem.y, MAX_INPUTS))

    def propose(self, state: TransformerState, rng: np.random.Generator) -> Iterator[Expression]:
        """The new skeletons of another bag from several starting points each; in the end, shorter spellings."""
        if state.is_over:
            yield from self._rewritten(state)
            return
        n_samples = min(max(FIRST_ROUND, state.n_drawn), LARGEST_ROUND, self.n_samples - state.n_drawn)
        state.n_drawn += n_samples
        skeletons = [s for s in self._drawn(state, n_samples, rng) if is_new(s, state.skeletons)]
        yield from started_forms(skeletons, state.problem, self.n_starts, rng)

    def observe(self, state: TransformerState, scored: list[Candidate]) -> TransformerState:
        """See whether it is enough; what was scored does not change what the network writes."""
        if any(candidate.nmse < EXACT_NMSE for candidate in scored):
            state.is_over, state.last_words = True, "The fit is exact up to rounding."
        elif state.n_drawn >= self.n_samples and not state.is_over:
            state.is_over, state.last_words = True, f"All {self.n_samples} samples of the network were tried."
        fitted = {candidate.expression: candidate for candidate in (*state.best, *scored)}
        state.best = heapq.nlargest(N_REWRITTEN, fitted.values(), key=lambda candidate: candidate.rank)
        return state

    def _rewritten(self, state: TransformerState) -> Iterator[Expression]:
        """Shorter spellings of the best fits, each once."""
        problem = state.problem
        for candidate in state.best:
            if candidate.expression in state.rewritten or not np.isfinite(candidate.nmse):
                continue
            state.rewritten.add(candidate.expression)
            for spelling in shorter_spellings(candidate.expression):
                form = respelled(spelling, problem.operators)
                if form is not None and form.complexity <= problem.max_complexity:
                    yield form

    def _drawn(self, state: TransformerState, n_samples: int, rng: np.random.Generator) -> list[Expression]:
        problem, device = state.problem, chosen_device(self.device)
        model = network(weights_folder(self.weights), device)
        X, y = _bag(problem, state.columns, rng)
        names = [problem.sample.names[j] for j in state.columns]
        grammar = Grammar.of(model.settings, torch.tensor([len(names)])).restricted(
            _writable(problem.operators), problem.max_complexity
        )
        with _threads(problem.n_threads):
            found = draw(
                model,
                X.to(device),
                y.to(device),
                grammar,
                n_samples=n_samples,
                rng=rng,
                temperature=self.temperature,
                deadline=problem.deadline.sooner(DRAWING_SHARE),
            )
        return [decode(formula.tokens, names=names) for formula in found]


def _writable(operators: tuple[str, ...]) -> list[str]:
    """Operators of the vocabulary that the allowed ones can write."""
    names = SKELETON_NAMES[FIRST_OPERATOR:]
    examples = {name: Expression.of(name, *("x0", "x1")[: OPERATORS[name].arity]) for name in names}
    return [name for name, example in examples.items() if respelled(example, operators) is not None]


def _bag(problem: Problem, columns: IndexArray, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """At most 200 rows, as the network reads them: X (1, 200, 10) and y (1, 200)."""
    n, weights = len(problem.y), problem.weights
    usable = np.arange(n) if weights is None else np.flatnonzero(weights > 0.0)
    if len(usable) > BAG_ROWS:
        chances = None if weights is None else weights[usable] / weights[usable].sum()
        usable = rng.choice(usable, BAG_ROWS, replace=False, p=chances)
    rows = np.resize(usable, BAG_ROWS)
    X = np.zeros((BAG_ROWS, MAX_INPUTS), dtype=np.float32)
    for place, column in enumerate(columns):
        X[:, place] = _ordinary(problem.sample.X[column])[rows]
    return torch.from_numpy(X)[None], torch.from_numpy(_ordinary(problem.y)[rows].astype(np.float32))[None]


def _ordinary(column: FloatArray) -> FloatArray:
    """The column in units of a power of ten in which it has the size of what the network was trained on."""
    peak = float(np.abs(column).max())
    if peak == 0.0:
        return column
    size = peak * float(np.sqrt(np.mean((column / peak) ** 2)))
    return column if SMALLEST <= size <= LARGEST else column / 10.0 ** np.floor(np.log10(size))


@contextmanager
def _threads(n_threads: int) -> Iterator[None]:
    """Torch's threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
