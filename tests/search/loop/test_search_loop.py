"""The loop: what it counts, keeps, cleans up, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.core.score import base_score, nmse
from sobolev_novelty.engines.mcts import MCTS
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.fit.fits import simple_number
from sobolev_novelty.search.loop.front import ParetoFront, select, undominated
from sobolev_novelty.search.loop.loop import Budget, SearchProgress, SearchResult, run

X = np.random.default_rng(0).uniform(1.0, 2.0, (2, 80))
SAMPLE = Sample(X, ("x0", "x1"))


@dataclass(slots=True)
class Script(State):
    round: int = 0
    seen: list[Candidate] = field(default_factory=list)


class Scripted(Engine[Script]):
    """Proposes what it is told, round by round, and remembers what it saw in the state."""

    def __init__(self, rounds: tuple[tuple[str, ...], ...] = (), guidance: SobolevGuidance | None = None) -> None:
        self.rounds = rounds
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> Script:
        return Script()

    def propose(self, state: Script, rng: np.random.Generator) -> list[Expression]:
        return [parse(text) for text in self.rounds[state.round]] if state.round < len(self.rounds) else []

    def observe(self, state: Script, scored: list[Candidate]) -> Script:
        if scored and str(scored[0].form) == "interrupt":
            raise KeyboardInterrupt
        state.round += 1
        state.seen += scored
        return state


@dataclass(slots=True)
class Waiting(State):
    problem: Problem
    n_answers: int = 0


class Slow(Engine[Waiting]):
    """Waits for each form, as for a language model; hands forms over one by one, or one in a list; ``is_considerate``
    waits no longer than there is time."""

    def __init__(
        self,
        wait: float = 0.5,
        is_listing: bool = False,
        is_considerate: bool = False,
        guidance: SobolevGuidance | None = None,
    ) -> None:
        self.wait = wait
        self.is_listing = is_listing
        self.is_considerate = is_considerate
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> Waiting:
        return Waiting(problem)

    def propose(self, state: Waiting, rng: np.random.Generator) -> Iterable[Expression]:
        return list(self._answers(state, 1)) if self.is_listing else self._answers(state, 3)

    def _answers(self, state: Waiting, n: int) -> Iterator[Expression]:
        for _ in range(n):
            remaining = state.problem.deadline.remaining
            if self.is_considerate and remaining < self.wait:
                return
            time.sleep(self.wait)
            state.n_answers += 1
            yield parse(f"sin({state.n_answers}.5*x0)")

    def observe(self, state: Waiting, scored: list[Candidate]) -> Waiting:
        return state


def search(y: np.ndarray, *rounds: tuple[str, ...], budget: Budget | None = None, **options: object) -> SearchResult:
    problem = Problem(Rows(SAMPLE, y, options.pop("weights", None)), **options)  # type: ignore[arg-type]
    return run(problem, Scripted(rounds), budget or Budget(max_evaluations=1000), np.random.default_rng(0))


def test_linear_and_inner_constants_are_fitted_together() -> None:
    y = 2.0 * X[0] - 3.0 * np.exp(-0.7 * X[1]) + 0.25
    best = search(y, ("x0 + exp(-1*x1) + 1",)).best
    assert best is not None
    assert str(best.expression) == "2*x0 - 3*exp(-0.7*x1) + 0.25"
    assert best.nmse < 1e-20


def test_the_printed_expression_has_the_reported_error() -> None:
    y = np.log(X[0]) * X[1] + np.sin(3 * X[0])
    result = search(y, ("x0*x1 + sin(2*x0) + 1", "x0/(x1 + 1)", "sqrt(x0 + 2*x1) - x0"))
    for candidate in result.front:
        error = nmse(y, evaluate(candidate.expression, SAMPLE))
        np.testing.assert_allclose(candidate.nmse, error, rtol=1e-6)
        expected = base_score(error, candidate.complexity, len(y))
        np.testing.assert_allclose(candidate.score, expected, rtol=1e-6)


def test_terms_that_vanish_are_dropped() -> None:
    best = search(2.0 * X[0], ("x0 + x1 + x0*x1 + 1",)).best
    assert best is not None
    assert str(best.expression) == "2*x0"


def test_an_exact_fit_is_stripped_of_what_it_does_not_need() -> None:
    best = search(np.sqrt(X[0] + X[1]), ("sqrt(x0 + x1)*tanh(40*x0) + 0*x1",)).best
    assert best is not None
    assert str(best.expression) == "sqrt(x0 + x1)"


def test_repeated_and_equal_forms_cost_nothing() -> None:
    y = X[0] ** 2.2
    once = search(y, ("x0*x1",))
    assert search(y, ("x0*x1", "x0*x1", "3*x0*x1", "x1*x0"), ("x0*x1",)).n_evaluations == once.n_evaluations


def test_failures_are_observed_and_not_kept() -> None:
    result = search(X[0] + 0.1 * X[1] ** 3, ("log(x0 - 5)", "x0"))
    assert all(np.isfinite(c.nmse) for c in result.front)
    assert result.n_evaluations == 3  # the constant, and both forms


@pytest.mark.parametrize("text", ["x7", "x0*x7"])
def test_unknown_variables_fail_the_candidate_not_the_search(text: str) -> None:
    assert search(X[0] * X[1], (text, "x0"), ("x1",)).n_evaluations == 3


def test_a_form_that_is_too_large_is_refused() -> None:
    result = search(X[0] ** 2, ("x0*x0*x0*x0*x0", "x0"), max_complexity=5)
    assert max(c.complexity for c in result.front) <= 5


def test_the_budget_in_evaluations_is_exact() -> None:
    forms = tuple(f"sin({k}*x0) + x1" for k in range(2, 40))
    result = search(X[0] ** X[1], forms, budget=Budget(max_evaluations=10))
    assert result.n_evaluations == 10
    assert str(result.stop) == "The budget of 10 evaluations is spent."


def test_an_exhausted_engine_ends_the_search() -> None:
    assert str(search(X[0] ** X[1], ("x0",)).stop) == "The engine has nothing more to propose."


def test_an_interrupt_keeps_the_best_so_far() -> None:
    problem = Problem(Rows(Sample(X, ("x0", "interrupt")), X[0] * 2.0 + X[1] ** 3))
    result = run(problem, Scripted((("x0",), ("interrupt",))), Budget(max_evaluations=50), np.random.default_rng(0))
    assert result.is_interrupted
    assert len(result.front) >= 2


@pytest.mark.parametrize("is_listing", [True, False])
def test_a_slow_engine_keeps_to_the_time_budget_and_what_came_in_time_is_fitted(is_listing: bool) -> None:
    begin = time.monotonic()
    engine = Slow(0.5, is_listing)
    result = run(Problem(Rows(SAMPLE, X[0] ** X[1])), engine, Budget(seconds=2.0), np.random.default_rng(0))
    assert time.monotonic() - begin < 2.6
    assert str(result.stop) == "The budget of 2 seconds is spent."
    assert 3 <= result.n_evaluations <= 4  # the constant, and an answer every half second while there is time


def test_an_engine_that_would_wait_too_long_can_ask_how_much_time_is_left() -> None:
    begin = time.monotonic()
    engine = Slow(20.0, is_considerate=True)
    result = run(Problem(Rows(SAMPLE, X[0] ** X[1])), engine, Budget(seconds=1.0), np.random.default_rng(0))
    assert time.monotonic() - begin < 1.0
    assert str(result.stop) == "The engine has nothing more to propose."
    assert result.best is not None


def test_without_a_time_budget_a_slow_engine_is_waited_for() -> None:
    engine = Slow(0.01, is_considerate=True)
    result = run(Problem(Rows(SAMPLE, X[0] ** X[1])), engine, Budget(max_evaluations=6), np.random.default_rng(0))
    assert result.n_evaluations == 6


def test_where_the_time_is_over_before_the_engine_starts_the_guesses_are_fitted() -> None:
    problem = Problem(Rows(SAMPLE, X[0] ** 2), guesses=(parse("x0*x0"),))
    result = run(problem, Slow(20.0), Budget(seconds=1e-9), np.random.default_rng(0))
    assert result.best is not None and result.best.nmse < 1e-20
    assert result.seconds < 5.0


def test_a_callback_sees_progress_and_may_stop() -> None:
    seen: list[SearchProgress] = []

    def stop(progress: SearchProgress) -> bool:
        seen.append(progress)
        return True

    problem = Problem(Rows(SAMPLE, X[0] ** X[1]))
    engine = Scripted((("x0",), ("x1",)))
    result = run(problem, engine, Budget(max_evaluations=50), np.random.default_rng(0), callbacks=[stop])
    assert str(result.stop) == "A callback ended the search."
    assert len(seen) == 1
    assert seen[0].best is not None
    assert (seen[0].done, seen[0].total) == (result.n_evaluations, 50)
    assert seen[0].note == str(seen[0].best.expression)


def test_weights_count_in_the_fit() -> None:
    y = X[0].copy()
    y[:40] = 100.0
    weights = np.concatenate([np.zeros(40), np.ones(40)])
    best = search(y, ("x0",), weights=weights).best
    assert best is not None
    assert str(best.expression) == "x0"


def test_the_choice_prefers_an_exact_fit_and_then_the_score() -> None:
    def candidate(text: str, error: float) -> Candidate:
        expression = parse(text)
        return Candidate(expression, expression, error, base_score(error, expression.complexity, 80))

    rough, fine, exact = candidate("x0", 1e-8), candidate("x0 + x1", 1e-9), candidate("x0 + x1 + x0*x1*x0", 1e-28)
    assert select(ParetoFront((rough, fine))) is rough
    assert select(ParetoFront((rough, fine, exact))) is exact
    assert select(ParetoFront()) is None


def test_rounding_does_not_rank_exact_fits() -> None:
    x, longer = Expression.of("x0"), parse("x0 + 0*x1")
    front = ParetoFront().including(Candidate(x, x, 1e-27, 1.0)).including(Candidate(longer, longer, 1e-30, 1.0))
    assert [c.expression for c in front] == [x]


@pytest.mark.parametrize(
    ("value", "simple"), [(0.333333333333, 1 / 3), (6.28318530718, 2 * np.pi), (0.1234567, 0.1234567)]
)
def test_simple_numbers_are_recognised(value: float, simple: float) -> None:
    assert simple_number(value) == simple


class Doubtful(Engine[Script]):
    """Wants the form of every round fitted again without its last term, at once."""

    as_found = True

    def __init__(self, guidance: SobolevGuidance | None = None) -> None:
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> Script:
        return Script()

    def propose(self, state: Script, rng: np.random.Generator) -> list[Expression]:
        return [parse(f"x0*x1 + sin({state.round}.5*x0) + x1")] if state.round < 3 else []

    def observe(self, state: Script, scored: list[Candidate]) -> Script:
        state.seen += scored
        if str(scored[0].form).endswith("+ x1"):
            state.trials = [parse(f"x0*x1 + sin({state.round}.5*x0)")]
        else:
            state.round += 1
        return state


def test_trials_are_fitted_before_the_next_round_and_counted() -> None:
    n_seen: list[int] = []
    states: list[Script] = []

    class Watched(Doubtful):
        def observe(self, state: Script, scored: list[Candidate]) -> Script:
            states[:] = [super().observe(state, scored)]
            return states[0]

    def after_round(progress: SearchProgress) -> None:
        n_seen.append(len(states[0].seen))

    problem, budget = Problem(Rows(SAMPLE, np.log(X[0]) * X[1])), Budget(max_evaluations=100)
    result = run(problem, Watched(), budget, np.random.default_rng(0), callbacks=[after_round])
    assert n_seen == [2, 4, 6]
    assert result.n_evaluations == 7  # the constant as well


def test_an_engine_may_ask_that_candidates_stay_as_they_were_found() -> None:
    y, guess = 2.0 * X[0], parse("x0 + x1 + x0*x1 + 1")
    problem, budget = Problem(Rows(SAMPLE, y), guesses=(guess,)), Budget(max_evaluations=2)
    cleaned = run(problem, Scripted(), budget, np.random.default_rng(0)).best
    found = run(problem, Doubtful(), budget, np.random.default_rng(0)).best
    assert cleaned is not None and found is not None
    assert str(cleaned.expression) == "2*x0"
    assert found.complexity > cleaned.complexity


def test_a_budget_in_processor_seconds_does_not_count_what_is_slept() -> None:
    rounds = tuple((f"sin({k}*x0) + x1",) for k in range(2, 6))

    def wait(_: SearchProgress) -> bool:
        time.sleep(0.3)
        return False

    budget = Budget(seconds=0.6, clock="processor")
    result = run(
        Problem(Rows(SAMPLE, X[0] ** X[1])), Scripted(rounds), budget, np.random.default_rng(0), callbacks=(wait,)
    )
    assert str(result.stop) == "The engine has nothing more to propose."
    assert result.seconds > 1.0
    with pytest.raises(ParameterError, match="'clock' must be 'wall' or 'processor'"):
        Budget(seconds=1.0, clock="moon")


def test_of_equations_that_spelling_made_equal_one_is_shown():
    def written(text: str, nmse: float) -> Candidate:
        return Candidate(parse(text), parse(text), nmse, 0.0)

    pool = [
        written("x0 + x1", 0.1),
        written("x0", 0.5),
        written("x1 + x0", 0.1),
        written("x1", 0.5),
        written("x0*x1 + 1", 0.2),
    ]
    assert undominated(pool) == [0, 1]
    assert undominated([written("x0*x1", 0.5), written("x0", 0.1)]) == [0, 1]  # the chosen one stays


def test_a_form_whose_numbers_overflow_is_a_failed_candidate_and_the_search_goes_on() -> None:
    x = np.linspace(1.0, 2.0, 40)
    sample = Sample(np.stack([x, x**2]), ("x0", "x1"))
    guesses = (parse("x0*(1e-300*x1 + 1e300*x0)"), parse("x0*x1"))
    problem = Problem(Rows(sample, 3.0 * x**3), guesses=guesses)
    result = run(problem, MCTS(), Budget(max_evaluations=50), np.random.default_rng(0))
    assert result.best is not None
    assert result.best.nmse < 1e-20


@dataclass(slots=True)
class Following(Script):
    """A script that can go on with other rows."""

    problem: Problem = field(kw_only=True)

    def forget_errors(self) -> None:
        self.seen.clear()


class Follower(Engine[Following]):
    """One new form in each round."""

    def __init__(self, guidance: SobolevGuidance | None = None) -> None:
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> Following:
        return Following(problem=problem)

    def propose(self, state: Following, rng: np.random.Generator) -> list[Expression]:
        state.round += 1
        longer = " + ".join(f"cos({k}*x1)" for k in range(1, 6))
        return [parse(f"x0 + sin({state.round}*x1)"), parse(f"x0 + {longer}")]

    def observe(self, state: Following, scored: list[Candidate]) -> Following:
        state.seen += scored
        return state


def test_the_second_half_goes_on_with_more_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (2, 600))
    y = X[0] + rng.normal(0.0, 0.1, 600)
    few = Sample(np.ascontiguousarray(X[:, :100]), SAMPLE.names)
    more = Rows(Sample(X, SAMPLE.names), y)
    problem = Problem(Rows(few, y[:100]), guesses=(parse("x0"),), more=more)
    result = run(problem, Follower(), Budget(max_evaluations=40), rng)
    assert result.state.problem.sample.n_samples == 600
    assert result.n_evaluations == 40
    # What the engine knows, and what comes back, is fitted to all rows, the guess of the first half included.
    for candidate in [*result.state.seen, *result.front]:
        assert candidate.nmse == pytest.approx(nmse(y, evaluate(candidate.expression, Sample(X, SAMPLE.names))))
    assert min(c.complexity for c in result.front if c.nmse < 0.2) <= 5


def test_an_exact_fit_needs_no_more_rows() -> None:
    more = Rows(SAMPLE, X[0] * X[1])
    few = SAMPLE.rows(np.arange(40))
    problem = Problem(Rows(few, X[0, :40] * X[1, :40]), guesses=(parse("x0*x1"),), more=more)
    result = run(problem, Follower(), Budget(max_evaluations=40, stop_when_exact=False), np.random.default_rng(0))
    assert result.state.problem.sample.n_samples == 40


def test_an_engine_that_cannot_go_on_keeps_its_rows() -> None:
    y = X[0] + np.random.default_rng(1).normal(0.0, 0.2, 80)
    few = SAMPLE.rows(np.arange(40))
    problem = Problem(Rows(few, y[:40]), guesses=(parse("x0"),), more=Rows(SAMPLE, y))
    result = run(problem, MCTS(), Budget(max_evaluations=300), np.random.default_rng(0))
    for candidate in result.front:
        assert candidate.nmse == pytest.approx(nmse(y[:40], evaluate(candidate.expression, few)))


def test_where_the_budget_ends_on_the_way_to_more_rows_the_best_is_there() -> None:
    rng = np.random.default_rng(0)
    wide = rng.uniform(1.0, 2.0, (2, 600))
    y = wide[0] + rng.normal(0.0, 0.1, 600)
    few = Sample(np.ascontiguousarray(wide[:, :100]), SAMPLE.names)
    more = Rows(Sample(wide, SAMPLE.names), y)
    problem = Problem(Rows(few, y[:100]), guesses=(parse("x0"),), more=more)
    result = run(problem, Follower(), Budget(max_evaluations=12), rng)
    assert result.state.problem.sample.n_samples == 600
    assert result.best is not None
    assert result.best.nmse < 0.2
