"""The loop: it fits what an engine proposes, scores it, counts the budget, keeps the front and decides when to stop.

With a budget in evaluations the result depends on the data, the engine and the seed only: not on the machine's speed,
not on the number of threads.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, cast

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import COUNT, FLAG, NOTHING, SECONDS, checked_class, one_of
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import EXACT_NMSE, base_score
from sobolev_novelty.errors import ExpressionError, ParameterError
from sobolev_novelty.price.description import quick_nats
from sobolev_novelty.price.noise import POWERS, Noise
from sobolev_novelty.price.numbers import free_nats, n_numbers
from sobolev_novelty.search.contract.engine import CLOCKS, Candidate, Deadline, Engine, GoesOn, Problem, S
from sobolev_novelty.search.fit.fits import Fitted, Fitter, clean_up
from sobolev_novelty.search.fit.forms import Form, split_form
from sobolev_novelty.search.loop.collector import rare_collections
from sobolev_novelty.search.loop.front import ParetoFront, distinct, only_noise_is_left, select
from sobolev_novelty.search.loop.judge import Judge, failed
from sobolev_novelty.search.loop.noise import cheapest_kind
from sobolev_novelty.search.loop.stop import Stop, StopReason
from sobolev_novelty.search.propose.beside import Beside
from sobolev_novelty.search.propose.neighbours import shortened

#: Forms fitted between two looks at the clock.
BATCH = 256
MIN_BATCH = 4
#: Evaluations and rounds granted after the first exact fit, to find a simpler equivalent; the engine must have seen it.
GRACE_EVALUATIONS = 512
GRACE_ROUNDS = 2
#: Rows on which the values of forms without free constants are compared.
FINGERPRINT_ROWS = 16
#: Fits that a result keeps beside the front: the best by score and by description, of so many looked at. More rows than
#: those of the search may tell them apart.
N_LEADERS, N_CONTENDERS = 20, 300
N_LOOKED_AT = 3000
#: Share of a search after which it goes on with more rows, where there are more; not where an error below this is left.
FIRST_SHARE = 0.5
NEARLY_EXACT = 1e-10
#: An engine that brings nothing new this many times in a row is taken for exhausted.
MAX_IDLE_ROUNDS = 50


@checked_class(max_evaluations=COUNT | NOTHING, seconds=SECONDS | NOTHING, stop_when_exact=FLAG, clock=one_of(*CLOCKS))
@dataclass(frozen=True, slots=True)
class Budget:
    """When a search ends.

    Parameters
    ----------
    max_evaluations : int, optional
        Forms fitted at most. A repeated form costs nothing.
    seconds : float, optional
        The batch under way is finished; forms that an engine proposes later are not fitted.
    stop_when_exact : bool
        End at an exact fit (after a short grace in which a simpler equivalent may turn up).
    clock : {"wall", "processor"}
        What the seconds are: those that pass, or those that the processors work for this process, all threads together.
        The latter makes runs comparable on a machine that others use too.

    Examples
    --------
    >>> Budget(max_evaluations=1000)
    Budget(max_evaluations=1000, seconds=None, stop_when_exact=True, clock='wall')
    """

    max_evaluations: int | None = None
    seconds: float | None = None
    stop_when_exact: bool = True
    clock: str = "wall"

    def __post_init__(self) -> None:
        if self.max_evaluations is None and self.seconds is None:
            raise ParameterError("A budget needs 'max_evaluations' or 'seconds'. Got neither.")


@dataclass(frozen=True, slots=True, eq=False)
class SearchProgress:
    """What callbacks are told after each round; also a Progress, in evaluations."""

    front: ParetoFront
    n_evaluations: int
    n_novelty_calls: int
    seconds: float
    total: int | None = None

    @property
    def done(self) -> int:
        """Forms fitted so far."""
        return self.n_evaluations

    @property
    def note(self) -> str:
        """The best equation so far."""
        return "" if self.best is None else str(self.best.expression)

    @property
    def best(self) -> Candidate | None:
        """The candidate that would be chosen now."""
        return select(self.front)


#: A callback may return True to end the search.
Callback = Callable[[SearchProgress], bool | None]

#: Asked after each round for forms found elsewhere; None ends the search.
Visitors = Callable[[SearchProgress], Sequence[Expression] | None]


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """What a search gave.

    Parameters
    ----------
    front : ParetoFront
    n_evaluations, n_novelty_calls : int
    seconds : float
    stop : Stop
        Why it ended.
    leaders : tuple of Candidate
        The best of all fits, on the front or not, best first.
    counts : dict
        What else the engine counted.
    state : State, optional
        What the engine remembers at the end: a further search may go on from it.
    """

    front: ParetoFront
    n_evaluations: int
    n_novelty_calls: int
    seconds: float
    stop: Stop
    leaders: tuple[Candidate, ...] = ()
    counts: dict[str, Any] = field(default_factory=dict)
    state: Any = None

    @classmethod
    def of_constant(cls, y: FloatArray) -> SearchResult:
        """The result for a target that is the same in all rows: nothing is searched."""
        constant = Expression.of(float(y[0]))
        front = ParetoFront((Candidate(constant, constant, 0.0, base_score(0.0, 1, len(y))),))
        return cls(front, 0, 0, 0.0, StopReason.CONSTANT.with_details())

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return self.stop.reason is StopReason.INTERRUPTED

    @property
    def best(self) -> Candidate | None:
        """Chosen by :func:`~sobolev_novelty.search.loop.front.select`."""
        return select(self.front)


def run(
    problem: Problem,
    engine: Engine[S],
    budget: Budget,
    rng: np.random.Generator,
    *,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
    visitors: Visitors | None = None,
    state: S | None = None,
    deadline: Deadline | None = None,
) -> SearchResult:
    """Search until the budget is spent, the fit is exact, or the engine has nothing more to propose.

    The user's guesses are fitted first, and the engine observes them with its first round. Ctrl-C ends the search and
    keeps what was found.

    Parameters
    ----------
    n_jobs : int
        Threads of the fitting kernel; the result does not depend on it.
    callbacks : sequence of callable
        Called with a :class:`SearchProgress` after each round; one that returns True ends the search.
    visitors : callable, optional
        Called in the same way; the forms it returns are fitted and observed with the next round; None ends the search.
    state : State, optional
        That of an earlier search for the same problem with the same engine, to go on from.
    deadline : Deadline, optional
        Where part of the budget's time is needed for something else.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev_novelty.core.rows import Rows
    >>> from sobolev_novelty.core.sample import as_sample
    >>> from sobolev_novelty.engines.mcts import MCTS
    >>> x = np.linspace(1.0, 2.0, 64)
    >>> problem = Problem(Rows(as_sample(x), 3.0 * x**2))
    >>> result = run(problem, MCTS(), Budget(max_evaluations=500), np.random.default_rng(0))
    >>> result.best.nmse < 1e-20
    True
    """
    ends = Deadline.after(budget.seconds, budget.clock)
    if deadline is not None and deadline.remaining < ends.remaining:
        ends = deadline
    problem = replace(problem, deadline=ends, n_threads=max(1, n_jobs))
    if isinstance(state, GoesOn):  # it has seen more rows before
        problem = problem.with_more_rows
    search = _Search(problem, budget, n_jobs, tuple(callbacks), as_found=engine.as_found, state=state)
    try:
        # Forms leave their domain all the time; a non-finite number is a failed candidate, not a warning.
        with np.errstate(all="ignore"), rare_collections():
            guessed = search.evaluate([*problem.guesses, Expression.of(1.0)])[: len(problem.guesses)]
            if search.stop is None:
                _rounds(search, engine, rng, guessed, visitors)
    except KeyboardInterrupt:
        search.stop = StopReason.INTERRUPTED.with_details()
    return search.result()


def _rounds(
    search: _Search, engine: Engine[S], rng: np.random.Generator, guessed: list[Candidate], visitors: Visitors | None
) -> None:
    state = search.state
    if state is None:
        state = engine.start(search.problem, rng)
        state.beside = Beside.of(search.problem, engine.beside, rng)
    if hasattr(state, "problem"):  # the deadline of an earlier search is over
        state.problem = search.problem
    search.state = state
    search.counts = state.counts
    search.check_budget()
    while search.stop is None:
        n_proposed, n_evaluations = search.n_proposed, search.n_evaluations
        search.n_rounds += 1
        scored = search.evaluate(search.in_time(search.proposed(engine, state, rng)))
        search.check_budget()  # the engine may have taken the rest of the time
        if search.n_proposed == n_proposed:
            search.stop = search.stop or StopReason.EXHAUSTED.with_details(state.last_words)
            return
        state = search.observed(engine, state, [*guessed, *scored])
        guessed = []
        if state.trials and search.stop is None:
            trials, state.trials = state.trials, []
            state = search.observed(engine, state, search.evaluate(trials))
        search.n_novelty_calls, search.counts = state.n_novelty_calls, state.counts
        search.idle_rounds = search.idle_rounds + 1 if search.n_evaluations == n_evaluations else 0
        if search.idle_rounds >= MAX_IDLE_ROUNDS:
            search.stop = StopReason.NOTHING_NEW.with_details(MAX_IDLE_ROUNDS)
        search.report()
        going = state if isinstance(state, GoesOn) else None
        if going is not None and (problem := search.better_posed()) is not None:
            going.forget_errors()
            again = search.begin_again(problem)
            going.problem = search.problem
            state = search.observed(engine, state, again)
        if visitors is not None and search.stop is None:
            guessed = search.visited_by(visitors)


@dataclass(slots=True)
class _Search:
    """The loop's own state: everything seen so far and what it cost."""

    problem: Problem
    budget: Budget
    n_jobs: int
    callbacks: tuple[Callback, ...]
    as_found: bool = False
    state: Any = None
    front: ParetoFront = field(default_factory=ParetoFront)
    stop: Stop | None = None
    seconds_per_form: float = 0.0
    n_proposed: int = 0
    n_evaluations: int = 0
    n_novelty_calls: int = 0
    counts: dict[str, Any] = field(default_factory=dict)
    idle_rounds: int = 0
    started: float = field(default_factory=time.perf_counter)
    n_rounds: int = 0
    exact_since: tuple[int, int] | None = None  # evaluations and rounds at the first exact fit
    seen: dict[Expression, Candidate] = field(default_factory=dict)  # by the form as proposed
    fits: dict[frozenset[Expression], Candidate] = field(default_factory=dict)  # by its terms
    prints: dict[frozenset[bytes], Candidate] = field(default_factory=dict)  # by its values
    shortened: set[Expression] = field(default_factory=set)
    began_with: float = field(init=False)  # seconds that the search had
    fitter: Fitter = field(init=False)
    few: FloatArray = field(init=False)  # inputs of a few rows
    allowed: frozenset[object] = field(init=False)
    judge: Judge = field(init=False)
    noise: Noise = field(default_factory=Noise)
    given: tuple[FloatArray | None, FloatArray | None] = field(init=False)  # weights of the rows, and of more rows
    look_at_noise: int = 0  # evaluations after which the kind of noise is looked at again

    def __post_init__(self) -> None:
        self.began_with = self.problem.deadline.remaining
        more = self.problem.more
        self.given = self.problem.weights, None if more is None else more.weights
        if self.problem.noise in POWERS and not math.isnan(POWERS[self.problem.noise]):
            self.noise = Noise.of(POWERS[self.problem.noise], self.problem.y)
            self.problem = self.problem.weighed(self.noise, self.given)
        self._look_at_rows()

    def _look_at_rows(self) -> None:
        self.fitter = Fitter(self.problem.rows, max(1, self.n_jobs))
        n = len(self.problem.rows)
        rows = np.unique(np.linspace(0, n - 1, FINGERPRINT_ROWS).astype(np.intp))
        self.few = np.ascontiguousarray(self.problem.sample.X[:, rows])
        self.allowed = frozenset(self.problem.sample.names)
        self.judge = Judge.of(self.problem)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def wants_more_rows(self) -> bool:
        """Whether half of the search is over, there are more rows, and of these nothing but noise is left.

        While longer equations still describe the rows better, more of them would only take time.
        """
        if self.problem.more is None or self.stop is not None or not self.front:
            return False
        limit, left = self.budget.max_evaluations, self.problem.deadline.remaining
        by_count = limit is not None and self.n_evaluations >= FIRST_SHARE * limit
        by_time = math.isfinite(left) and left <= (1.0 - FIRST_SHARE) * self.began_with
        if not (by_count or by_time) or self.front[-1].nmse < NEARLY_EXACT:
            return False
        d, n = self.problem.sample.X.shape
        return only_noise_is_left(self.front.candidates, n, d, self.front[-1].complexity)

    def better_posed(self) -> Problem | None:
        """The problem with more rows, or with the weights of another kind of noise, where it is time for that."""
        if self.wants_more_rows():
            self.given = self.given[1], None
            return self.problem.with_more_rows
        noise = self.found_noise()
        if noise is None or noise == self.noise:
            return None
        self.noise = noise
        return self.problem.weighed(noise, self.given)

    def found_noise(self) -> Noise | None:
        """The kind of noise under which a leading equation costs least; looked at whenever the search has doubled."""
        limit = self.budget.max_evaluations
        is_late = limit is not None and 2 * self.n_evaluations > limit
        if self.problem.noise != "auto" or self.stop is not None or self.n_evaluations < self.look_at_noise or is_late:
            return None
        self.look_at_noise = 2 * self.n_evaluations
        if not self.front or self.front[-1].nmse < NEARLY_EXACT:
            return None
        rows = self.problem.rows.weighed(self.given[0])
        return cheapest_kind(self.fitter, rows, dict.fromkeys([*self.front, *self.leaders()]))

    def begin_again(self, problem: Problem) -> list[Candidate]:
        """The best of all candidates, fitted to the problem anew: the search goes on there, and forgets the others."""
        before, has_more = len(self.problem.y), len(problem.y) > len(self.problem.y)
        # The best first: the budget may end on the way.
        ranked = sorted(self.front, key=lambda c: c.rank, reverse=True)
        leaders = self.leaders() if has_more else self.leaders()[:N_LEADERS]
        best = dict.fromkeys(c.expression for c in (*ranked, *leaders))
        self.problem = problem
        self._look_at_rows()
        self.front = ParetoFront()
        for known in (self.seen, self.fits, self.prints):
            known.clear()
        self.seconds_per_form *= len(problem.y) / before
        return self.evaluate(best)

    def proposed(self, engine: Engine[S], state: S, rng: np.random.Generator) -> Iterable[Expression]:
        """The structural forms whose turn it is, and what the engine proposes beside them."""
        first = state.beside.next(self.problem.deadline) if isinstance(state.beside, Beside) else []
        forms, known = engine.propose(state, rng), set(first)
        return chain(first, (form for form in forms if form not in known)) if first else forms

    def observed(self, engine: Engine[S], state: S, scored: list[Candidate]) -> S:
        """The engine's state after it has seen candidates."""
        beside, self.state = state.beside, engine.observe(state, scored)
        self.state.beside = beside
        if isinstance(beside, Beside):
            beside.n_rounds += 1
        return cast("S", self.state)

    def in_time(self, proposals: Iterable[Expression]) -> Iterator[Expression]:
        """What an engine proposes before the time is over."""
        for form in proposals:
            self.n_proposed += 1
            if self.problem.deadline.is_over:
                return
            yield form

    def evaluate(self, proposals: Iterable[Expression]) -> list[Candidate]:
        """Scored candidates, one per proposal in the order given; those the budget did not reach are left out."""
        scored: list[Candidate] = []
        forms = iter(proposals)
        while self.stop is None and (batch := list(islice(forms, self.batch_size()))):
            begin = time.perf_counter()
            scored += self.evaluate_batch(batch)
            if not self.as_found and self.problem.control.template is None:
                self.shorten()
            self.seconds_per_form = max((time.perf_counter() - begin) / len(batch), 0.8 * self.seconds_per_form)
            self.check_budget()
        return scored

    def leaders(self) -> tuple[Candidate, ...]:
        """The best of all fits by their score, and by the length of their description; best score first."""
        fits, (d, n) = list(self.fits.values()), self.problem.sample.X.shape
        per_number = free_nats(n)
        by_score = heapq.nlargest(N_LOOKED_AT, fits, key=lambda c: c.rank)
        by_length = heapq.nsmallest(N_LOOKED_AT, fits, key=lambda c: quick_nats(c.nmse, c.complexity, 0.0, n, d))
        by_length.sort(key=lambda c: quick_nats(c.nmse, c.complexity, per_number * n_numbers(c.expression), n, d))
        best = distinct([*distinct(by_score, N_LEADERS), *distinct(by_length, N_CONTENDERS)], N_LEADERS + N_CONTENDERS)
        return tuple(sorted(best, key=lambda candidate: candidate.rank, reverse=True))

    def batch_size(self) -> int:
        """Forms that are likely fitted before the time is over."""
        remaining = self.problem.deadline.remaining
        if remaining >= BATCH * self.seconds_per_form:
            return BATCH
        return max(MIN_BATCH, int(remaining / self.seconds_per_form))

    def evaluate_batch(self, proposals: Sequence[Expression]) -> list[Candidate]:
        fresh = [form for form in dict.fromkeys(proposals) if form not in self.seen]
        valid = [form for form in fresh if self.is_valid(form)]
        if len(valid) < len(fresh):
            self.seen.update((form, failed(form)) for form in fresh if not self.is_valid(form))
        splits = self.splits(valid)
        valid = list(splits)
        keys = {form: frozenset(split.terms) for form, split in splits.items()}
        prints = self.fingerprints(splits)
        queue: dict[frozenset[Expression], Expression] = {}
        queued_prints: set[frozenset[bytes] | None] = set()
        for form in sorted(valid, key=len):  # of equals the simplest is fitted
            fingerprint = prints.get(form)
            is_new = keys[form] not in self.fits and keys[form] not in queue
            if is_new and fingerprint not in queued_prints and not self.is_repeated(form, fingerprint):
                queue[keys[form]] = form
                queued_prints |= set() if fingerprint is None else {fingerprint}
        chosen = set(queue.values())
        in_turn = self.affordable([form for form in valid if form in chosen])
        self.fit([(form, splits[form]) for form in in_turn], keys, prints)
        for form in valid:
            known = self.fits.get(keys[form])
            if known is None and form in prints:
                known = self.prints.get(prints[form])
            if known is not None:
                self.seen[form] = known if known.form is form else replace(known, form=form)
        return [self.seen[form] for form in proposals if form in self.seen]

    def splits(self, forms: Sequence[Expression]) -> dict[Expression, Form]:
        """The forms in parts; those whose numbers, multiplied out, no float can hold are failed candidates."""
        found: dict[Expression, Form] = {}
        for form in forms:
            try:
                found[form] = split_form(form)
            except ExpressionError:
                self.seen[form] = failed(form)
        return found

    def shorten(self) -> None:
        """Try what an exact fit looks like with an operator less, until nothing is gained."""
        while True:
            exact = [c for c in self.front if c.nmse < EXACT_NMSE]
            best = min(exact, key=lambda c: c.complexity, default=None)
            if best is None or best.expression in self.shortened:
                return
            self.shortened.add(best.expression)
            self.evaluate_batch(shortened(best.expression))

    def is_valid(self, form: Expression) -> bool:
        known = self.allowed.issuperset([token for token in form.tokens if isinstance(token, str)])
        control = self.problem.control
        if not known or control.complexity(form) > self.problem.max_complexity:
            return False
        return control.shaped(form) is not None and self.makes_sense(form)

    def makes_sense(self, form: Expression) -> bool:
        """Whether the units of a form go together; those of a constant always do."""
        dimensions = self.problem.dimensions
        return dimensions is None or not form.variables or dimensions.allows(form)

    def is_repeated(self, form: Expression, fingerprint: frozenset[bytes] | None) -> bool:
        """Whether a form with the same values was fitted before and is not more complex."""
        known = None if fingerprint is None else self.prints.get(fingerprint)
        cost = self.problem.control.complexity
        return known is not None and cost(known.form) <= cost(form)

    def affordable(self, forms: list[Expression]) -> list[Expression]:
        limit = self.budget.max_evaluations
        return forms if limit is None else forms[: max(0, limit - self.n_evaluations)]

    def fingerprints(self, splits: dict[Expression, Form]) -> dict[Expression, frozenset[bytes]]:
        """Directions of the terms' values on a few rows.

        Equal ones span the same fits. Only for forms without free constants.
        """
        fixed = {form: split for form, split in splits.items() if split.n_free == 0}
        if not fixed:
            return {}
        values = self.fitter.values([term for split in fixed.values() for term in split.terms], self.few)
        with np.errstate(all="ignore"):
            scale = values[np.arange(len(values)), np.argmax(np.abs(values), axis=1)]
            directions = np.round(values / scale[:, None], 9) + 0.0
        result: dict[Expression, frozenset[bytes]] = {}
        start = 0
        for form, split in fixed.items():
            result[form] = frozenset(row.tobytes() for row in directions[start : start + len(split.terms)])
            start += len(split.terms)
        return result

    def fit(
        self,
        forms: list[tuple[Expression, Form]],
        keys: dict[Expression, frozenset[Expression]],
        prints: dict[Expression, frozenset[bytes]],
    ) -> None:
        fitted = self.fitter.fit([split for _, split in forms])
        self.n_evaluations += len(forms)
        candidates = self.judge.scored([form for form, _ in forms], fitted)
        indices = () if self.as_found or self.problem.deadline.is_over else range(len(candidates))
        promising = [i for i in indices if self.reaches_for_front(candidates[i], fitted[i])]
        cleaned = clean_up(self.fitter, [fitted[i] for i in promising])
        for i, candidate in zip(promising, self.judge.scored([forms[i][0] for i in promising], cleaned), strict=True):
            candidates[i] = self.judge.refined(candidate, self.front)
        for (form, _), candidate in zip(forms, candidates, strict=True):
            is_new = self.front.admits(candidate.nmse, candidate.complexity)
            # A fit may drop a factor or a term: what is left must be allowed too. Engines do not breed from the rest.
            kept = self.judge.admitted(candidate) if is_new else candidate
            self.fits[keys[form]] = kept
            if form in prints:
                self.prints[prints[form]] = kept
            if kept.complexity <= self.problem.max_complexity and self.makes_sense(kept.expression):
                self.front = self.front.including(kept)

    def reaches_for_front(self, candidate: Candidate, fit: Fitted) -> bool:
        """Whether more work on this fit could change the front."""
        hope = candidate.nmse / self.judge.hope if fit.is_converged else candidate.nmse / (2.0 * self.judge.hope)
        return self.front.admits(hope, candidate.complexity) or candidate.nmse < EXACT_NMSE

    def check_budget(self) -> None:
        if self.exact_since is None and any(c.nmse < EXACT_NMSE for c in self.front):
            self.exact_since = self.n_evaluations, self.n_rounds
        limit = self.budget.max_evaluations
        if limit is not None and self.n_evaluations >= limit:
            self.stop = StopReason.EVALUATIONS.with_details(limit)
        elif self.problem.deadline.is_over:
            self.stop = StopReason.SECONDS.with_details(self.budget.seconds)
        elif self.budget.stop_when_exact and self.exact_since is not None and self.is_grace_over(*self.exact_since):
            self.stop = StopReason.EXACT.with_details()

    def is_grace_over(self, n_evaluations: int, n_rounds: int) -> bool:
        return self.n_evaluations >= n_evaluations + GRACE_EVALUATIONS and self.n_rounds >= n_rounds + GRACE_ROUNDS

    def result(self) -> SearchResult:
        assert self.stop is not None
        return SearchResult(
            self.front, self.n_evaluations, self.n_novelty_calls, self.seconds, self.stop, self.leaders(), self.counts,
            self.state,
        )  # fmt: skip

    @property
    def progress(self) -> SearchProgress:
        return SearchProgress(
            self.front, self.n_evaluations, self.n_novelty_calls, self.seconds, self.budget.max_evaluations
        )

    def report(self) -> None:
        for callback in self.callbacks:
            if callback(self.progress) and self.stop is None:
                self.stop = StopReason.CALLBACK.with_details()

    def visited_by(self, visitors: Visitors) -> list[Candidate]:
        """The candidates of forms that were found elsewhere."""
        forms = visitors(self.progress)
        if forms is None:
            self.stop = StopReason.ELSEWHERE.with_details()
            return []
        return self.evaluate(forms)
