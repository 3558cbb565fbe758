r"""IGSR and SN-IGSR: tree search over sets of terms that a proposer offers (Appendix D.3).

One round: *selection* walks to a node, an additive model; *expansion* asks the proposer for terms that go with it; the
loop fits the parent's terms with the offered ones, several starts of the inner constants as several forms, so that
every fit is counted by the one budget. *Screening*: of the terms with their fitted constants those whose influence on
the validation part is small are dropped, the others refitted; the child's validation score is backpropagated, and its
form goes to the loop in the next round.

The engine itself evaluates no candidate. Its own arithmetic is linear: columns of terms, least squares on the training
part, the error on the validation part (:mod:`~sobolev_novelty.engines.igsr.additive`). What the front holds and what a
fit costs are the loop's.

With guidance the words of :func:`sobolev_novelty.metric.guidance.feedback` about the parent are appended to the prompt,
and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.algebra.writing import ONE, Writer, chained
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import (
    COUNT,
    FLAG,
    NOTHING,
    POSITIVE,
    TEXT,
    check_stored,
    declared,
    dictionary,
    instance,
    number,
    one_of,
    whole,
)
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.core.score import base_score
from sobolev_novelty.engines.igsr.additive import Additive, Parts
from sobolev_novelty.engines.igsr.feedback import FEEDBACK, Parent
from sobolev_novelty.engines.igsr.ledger import Ledger, Limits
from sobolev_novelty.engines.igsr.prompts import SYSTEM, VERSION, Subject, question_text, subject
from sobolev_novelty.engines.igsr.sampler import GrammarSampler
from sobolev_novelty.engines.igsr.talk.answers import Reading, read_answer
from sobolev_novelty.engines.igsr.talk.protocol import PROPOSER, Answer, Proposer, Question
from sobolev_novelty.engines.igsr.tree import Node, select
from sobolev_novelty.search.contract.engine import (
    GUIDANCE,
    Candidate,
    Engine,
    Guidance,
    Problem,
    SobolevGuidance,
    State,
    UserTerms,
)
from sobolev_novelty.search.fit.forms import free_constants, split_form

#: Rows of the fixed training sample on which novelty is diagnosed.
NOVELTY_ROWS = 400
#: Terms that enter a pool beyond those a model may keep: influence has something to choose from.
EXTRA_TERMS = 3
#: Columns of a pool.
MAX_POOL = 24
#: Offered terms with inner constants that are also fitted alone beside the parent's.
N_ALONE = 2
#: Nodes beyond the terms themselves: of each a coefficient, a product and a sum, and the constant.
NODES_PER_TERM = 3
#: Calls that may fail in a row before the proposer is given up.
MAX_FAILURES = 5
#: Models that a prompt may name.
N_BEST = 3


@dataclass(slots=True, eq=False)
class Expansion:
    """A node whose offered terms are being fitted."""

    node: Node
    forms: tuple[Expression, ...]


@dataclass(slots=True)
class SetState(State):
    """The tree, the rows, what was asked, and what is being fitted."""

    problem: Problem
    parts: Parts
    about: Subject
    shown: UserTerms
    diagnosed: Sample
    ledger: Ledger
    writer: Writer
    root: Node = field(default_factory=Node)
    expansions: list[Expansion] = field(default_factory=list)
    refits: list[tuple[Node, Expression]] = field(default_factory=list)
    best: list[Node] = field(default_factory=list)
    stopped: str = ""


@declared(
    proposer=PROPOSER | NOTHING,
    guidance=GUIDANCE,
    influence=FLAG,
    limits=instance("a Limits", Limits) | NOTHING,
    names=one_of("given", "anonymous"),
    descriptions=dictionary(TEXT, TEXT, "a dictionary of columns and what they mean") | NOTHING,
    n_terms=COUNT | NOTHING,
    n_starts=COUNT,
    min_influence=number(0.0),
    exploration=number(0.0),
    widening=POSITIVE,
    n_rows_shown=whole(),
)
class IGSR(Engine[SetState]):
    """Influence-guided search over sets of terms that a language model, or the grammar sampler, offers.

    Parameters
    ----------
    proposer : Proposer, optional
        Who offers terms; by default :class:`~sobolev_novelty.engines.igsr.sampler.GrammarSampler`, which needs no
        model.
    guidance : {"default"}, SobolevGuidance or None
        By default what ``novelty=`` of the regressor says; None for none.
        Whether the proposer is told which terms repeat others, and by which threshold.
    influence : bool
        Whether it is told more about influence than the prompt says anyway: pairs, and what hardly matters.
    limits : Limits, optional
        Calls, tokens and money.
    names : {"given", "anonymous"}
        Whether variables are shown by the user's names, or as x0, x1, … without descriptions.
    descriptions : mapping of str to str, optional
        What the variables and the target mean, their units: shown to the proposer.
    n_terms : int, optional
        Terms asked for in one call; by default what the proposer suggests.
    max_terms : int
        Terms of a model at most.
    n_starts : int
        Starting points of inner constants: as offered, and random ones around. The one that explains most is fitted.
    min_influence : float
        A term is dropped where its removal raises the validation error by less than this share.
    exploration, widening : float
        Of the upper confidence bound; a node with n visits and children is expanded again while it was fewer than
        widening · √n times: a few calls go deep, many go wide.
    n_rows_shown : int
        Rows of the table that the proposer is shown: none unless asked for.
    intercept : {"free", "term"}
        What the constant of a model is where its terms are diagnosed: free, or a term as in the paper.

    Examples
    --------
    >>> IGSR(n_terms=4).get_params()["n_terms"]
    4
    """

    asks_in_words = True

    def __init__(
        self,
        proposer: Proposer | None = None,
        *,
        guidance: Guidance = "default",
        influence: bool = False,
        limits: Limits | None = None,
        names: Literal["given", "anonymous"] = "given",
        descriptions: Mapping[str, str] | None = None,
        n_terms: int | None = None,
        max_terms: int = 8,
        n_starts: int = 5,
        min_influence: float = 0.01,
        exploration: float = 0.1,
        widening: float = 0.6,
        n_rows_shown: int = 0,
        intercept: Literal["free", "term"] = "free",
    ) -> None:
        self.proposer = proposer
        self.guidance = guidance
        self.influence = influence
        self.limits = limits
        self.names = names
        self.descriptions = descriptions
        self.n_terms = n_terms
        self.max_terms = max_terms
        self.n_starts = n_starts
        self.min_influence = min_influence
        self.exploration = exploration
        self.widening = widening
        self.n_rows_shown = n_rows_shown
        self.intercept = intercept

    @property
    def feedback_kind(self) -> str:
        """The name of what the proposer is told, in :data:`~sobolev_novelty.engines.igsr.feedback.FEEDBACK`."""
        kinds = [name for name, on in (("novelty", self.signal is not None), ("influence", self.influence)) if on]
        return "+".join(kinds) or "none"

    def start(self, problem: Problem, rng: np.random.Generator) -> SetState:
        """The state before the first round."""
        check_stored(self)
        parts = Parts.of(problem, rng)
        user = problem.user
        hidden = {name: f"x{k}" for k, name in enumerate(problem.sample.names)}
        shown = user if self.names == "given" else UserTerms(hidden, "y", user.units)
        about = subject(
            shown.inputs(problem.sample), problem.y, shown.target, problem.operators,
            descriptions=self.descriptions if self.names == "given" else None, n_rows_shown=self.n_rows_shown,
        )  # fmt: skip
        training = parts.training_sample
        diagnosed = shown.inputs(training.rows(np.arange(min(NOVELTY_ROWS, training.n_samples))))
        return SetState(
            problem=problem, parts=parts, about=about, shown=shown, diagnosed=diagnosed,
            ledger=Ledger(self.limits or Limits()), writer=Writer(problem.operators),
        )  # fmt: skip

    def propose(self, state: SetState, rng: np.random.Generator) -> Iterator[Expression]:
        """The last round's children, refitted, and the expansions of this round."""
        yield from (form for _, form in state.refits)
        proposer: Proposer = self.proposer if self.proposer is not None else GrammarSampler()
        state.expansions = []
        asked = self._questions(state, proposer, rng)
        for (node, question), answer in zip(asked, self._answers(state, proposer, asked), strict=False):
            known = tuple(state.shown.written(term) for term in node.terms)
            reading = read_answer(answer.text, state.about.vocabulary, known=known, max_terms=2 * question.n_terms)
            state.ledger.enter(question, answer, reading)
            state.counts.update(state.ledger.counts())
            expansion = self._expansion(state, node, reading, rng)
            state.expansions.append(expansion)
            # Where nothing could be read, the parent's own form, which costs nothing, keeps the search going.
            yield from expansion.forms or [self._form(state, node.terms) or ONE]
        state.ledger.settle()
        if not asked:
            state.counts["stopped asking"] = state.stopped

    def observe(self, state: SetState, scored: list[Candidate]) -> SetState:
        """Screen the terms of the fitted candidates by influence; hand the validation scores up."""
        fitted = {candidate.form: candidate for candidate in scored if np.isfinite(candidate.nmse)}
        for node, form in state.refits:
            if form in fitted:
                self._settle_refit(state, node, fitted[form])
        state.refits = []
        for expansion in state.expansions:
            own = sorted((fitted[form] for form in expansion.forms if form in fitted), key=lambda c: c.nmse)
            child = self._child(state, expansion, own)
            if child is not None and child is not expansion.node:
                refit = self._form(state, child.terms)
                state.refits += [] if refit is None else [(child, refit)]
        state.expansions = []
        state.counts.update(state.ledger.counts())
        return state

    # --- asking

    def _questions(self, state: SetState, proposer: Proposer, rng: np.random.Generator) -> list[tuple[Node, Question]]:
        asked: list[tuple[Node, Question]] = []
        if state.ledger.failures_in_a_row >= MAX_FAILURES:
            state.stopped = f"{MAX_FAILURES} calls failed one after the other"
            return asked
        for _ in range(max(1, proposer.concurrency)):
            node = select(state.root, exploration=self.exploration, widening=self.widening)
            question = self._question(state, node, self.n_terms or proposer.n_terms, int(rng.integers(2**31)))
            state.stopped = state.ledger.reserve(question, proposer.max_answer_tokens)
            if state.stopped:
                break
            asked.append((node, question))
        return asked

    def _question(self, state: SetState, node: Node, n_terms: int, seed: int) -> Question:
        fitted = state.parts.additive(node.terms)
        terms = tuple(state.shown.written(term) for term in fitted.terms)
        influence = fitted.influence(range(len(terms)))[1]
        whole = assemble((*fitted.terms, ONE), [1.0] * (len(terms) + 1)) if terms else None
        parent = Parent(
            terms,
            None if whole is None else state.shown.written(whole),
            state.diagnosed,
            fitted,
            self.signal or SobolevGuidance(),
            self.intercept,
        )
        if self.signal is not None and whole is not None:
            state.n_novelty_calls += 1
        best = [(known.r2, self._shown_model(state, known)) for known in state.best]
        text = question_text(
            state.about, current=list(zip(terms, influence, strict=True)), r2=node.r2, best=best,
            feedback=FEEDBACK[self.feedback_kind](parent), n_terms=n_terms,
        )  # fmt: skip
        return Question(
            SYSTEM, text, state.about.vocabulary, tuple(map(str, terms)), n_terms, seed, VERSION,
            state.problem.deadline.remaining,
        )  # fmt: skip

    def _shown_model(self, state: SetState, node: Node) -> Expression:
        return chained("add", [state.shown.written(term) for term in node.terms])

    def _answers(self, state: SetState, proposer: Proposer, asked: Sequence[tuple[Node, Question]]) -> Iterator[Answer]:
        """In the order of the questions, whatever the order of arrival: the same transcript gives the same search."""
        if len(asked) == 1 or isinstance(proposer, GrammarSampler):
            for _, question in asked:
                yield proposer.ask(question)
        elif asked:
            with ThreadPoolExecutor(len(asked)) as pool:
                yield from pool.map(lambda pair: proposer.ask(pair[1]), asked)

    # --- fitting and screening

    def _expansion(self, state: SetState, node: Node, reading: Reading, rng: np.random.Generator) -> Expansion:
        """Forms of the parent with the offered terms: those that matter together, and the best ones alone."""
        read = (state.writer.written(state.shown.read(term)) for term in reading.terms)
        offered = tuple(dict.fromkeys(term for term in read if term is not None and _is_searched(term, state)))
        ranked = state.parts.ranked(node.terms, [list(self._starts(term, rng)) for term in offered])
        pool = state.parts.additive([*node.terms, *(term for term in ranked[:MAX_POOL] if term not in node.terms)])
        sets = [tuple(pool.terms[k] for k in self._kept(state, node, pool))]
        bent = [term for term in ranked if any(free_constants(term))][:N_ALONE]
        sets += [(*node.terms, term) for term in dict.fromkeys((*ranked[:1], *bent))]
        forms = (self._form(state, terms) for terms in sets)
        return Expansion(node, tuple(dict.fromkeys(form for form in forms if form is not None)))

    def _starts(self, term: Expression, rng: np.random.Generator) -> Iterator[Expression]:
        """The term, and copies whose free constants begin elsewhere."""
        yield term
        free = np.array(free_constants(term), dtype=bool)
        if not free.any():
            return
        given = np.array(term.constants)
        for k in range(1, self.n_starts):
            noise = rng.normal(size=len(given))
            # In turn: another size, the same sign; and anywhere around.
            moved = given * np.exp(noise) if k % 2 else given + noise * np.maximum(np.abs(given), 1.0)
            yield term.with_constants(np.where(free, moved, given).tolist())

    def _kept(self, state: SetState, node: Node, pool: Additive) -> list[int]:
        """Places of what influence leaves of the parent's terms and those that explain most beside them."""
        start = [k for k, term in enumerate(pool.terms) if term in node.terms]
        return pool.screened(
            pool.extended(start, self.max_terms + EXTRA_TERMS), min_influence=self.min_influence,
            max_terms=self.max_terms, max_nodes=state.problem.max_complexity,
        )  # fmt: skip

    def _form(self, state: SetState, terms: Sequence[Expression]) -> Expression | None:
        """The model as a form for the loop; None where the operators or the limit do not allow it."""
        if not terms:
            return None
        parts = [*terms, ONE] if state.writer.has("add") else [terms[0]]
        form = state.writer.written(chained("add", parts))
        return form if form is not None and form.complexity <= state.problem.max_complexity else None

    def _child(self, state: SetState, expansion: Expansion, own: Sequence[Candidate]) -> Node | None:
        """What influence leaves of the parent's and the offered terms, with the best constants found for them."""
        node = expansion.node
        terms = {_skeleton(term): term for term in node.terms}
        for candidate in own:  # the best fit first: its constants stand for the form
            for term in _fitted_terms(state, candidate):
                terms.setdefault(_skeleton(term), term)
        pool = state.parts.additive([*node.terms, *(t for t in terms.values() if t not in node.terms)][:MAX_POOL])
        kept = self._kept(state, node, pool)
        if not kept:
            node.backpropagate(node.score)
            return None
        chosen = tuple(sorted((pool.terms[k] for k in kept), key=str))
        state.ledger.n_kept += sum(term not in node.terms for term in chosen)
        child = node if frozenset(chosen) == frozenset(node.terms) else node.child(chosen)
        self._rate(state, child, pool, kept)
        child.backpropagate(child.score)
        return child

    def _settle_refit(self, state: SetState, node: Node, candidate: Candidate) -> None:
        """Take the loop's constants where they do better on the validation part."""
        terms = tuple(sorted(_fitted_terms(state, candidate), key=str))
        fitted = state.parts.additive(terms)
        places = range(len(fitted.terms))
        before = node.score
        if fitted.terms and _score(fitted, places) > before:
            node.terms = fitted.terms
            self._rate(state, node, fitted, places)
            node.backpropagate(node.score - before)

    def _rate(self, state: SetState, node: Node, pool: Additive, places: Sequence[int]) -> None:
        node.score = _score(pool, places)
        node.r2 = max(0.0, 1.0 - pool.error(places))
        ranked = sorted({*state.best, node}, key=lambda known: (-known.score, list(map(str, known.terms))))
        state.best = ranked[:N_BEST]


def _score(pool: Additive, places: Sequence[int]) -> float:
    """R_base of the validation error."""
    return base_score(pool.error(places), _nodes([pool.terms[k] for k in places]), np.inf)


def _nodes(terms: Sequence[Expression]) -> int:
    return sum(len(term) + NODES_PER_TERM for term in terms) + 1


def _skeleton(term: Expression) -> Expression:
    """The term with its free constants set to 1."""
    flags = free_constants(term)
    if not any(flags):
        return term
    return term.with_constants([1.0 if free else c for c, free in zip(term.constants, flags, strict=True)])


def _fitted_terms(state: SetState, candidate: Candidate) -> list[Expression]:
    """The terms of a fitted candidate in the operators that are allowed, without the constant."""
    written = (state.writer.written(term) for term in split_form(candidate.expression).terms if term.variables)
    return [term for term in written if term is not None]


def _is_searched(term: Expression, state: SetState) -> bool:
    """Whether a term has only inputs of the search (of many columns some are left out) and fits into a form."""
    return set(term.variables) <= set(state.problem.sample.names) and _nodes([term]) <= state.problem.max_complexity
