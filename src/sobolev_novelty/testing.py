"""The contract every engine passes; public, so that other people's engines can be tested with it.

>>> from sobolev_novelty.engines.mcts import MCTS
>>> check_engine(MCTS(n_rollouts=2), max_evaluations=40)
"""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.search.contract.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.loop.loop import Budget, SearchResult, run

#: Rounds an engine is watched for in the checks that look at single proposals.
N_ROUNDS = 4
#: Seconds of the search in the check of time budgets, and how late it may end: the machine may be busy.
TIME_BUDGET, OVERTIME = 0.5, 5.0


class ContractError(SobolevError, AssertionError):
    """An engine breaks the contract; the message says which rule and how."""


Check = Callable[[Engine[Any], int], None]


def check_engine(engine: Engine[Any], *, max_evaluations: int = 200) -> None:
    """Raise :class:`ContractError` at the first rule an engine breaks.

    Parameters
    ----------
    engine : Engine
        It is cloned for every check and not changed.
    max_evaluations : int
        Budget of each of the short searches.
    """
    for _, check in engine_checks():
        check(engine, max_evaluations)


def engine_checks() -> tuple[tuple[str, Check], ...]:
    """Name and function ``(engine, max_evaluations)`` of each rule, for parametrised tests.

    >>> [name for name, _ in engine_checks()][:2]
    ['check_is_an_engine', 'check_can_be_cloned']
    """
    return tuple((check.__name__, check) for check in _CHECKS)


def check_is_an_engine(engine: Engine[Any], max_evaluations: int) -> None:
    """It derives from Engine and has a ``guidance`` parameter: "default" (follow the regressor), a signal, or None."""
    _require(isinstance(engine, Engine), f"An engine derives from Engine. Got {type(engine).__name__}.")
    _require("guidance" in engine.get_params(deep=False), "An engine has a constructor argument 'guidance'.")


def check_can_be_cloned(engine: Engine[Any], max_evaluations: int) -> None:
    """The constructor only stores its arguments, so that scikit-learn can clone and tune the engine."""
    twin = clone(engine)
    for name, value in engine.get_params(deep=False).items():
        _require(
            getattr(twin, name) is not None or value is None, f"Argument '{name}' is lost when the engine is cloned."
        )


def check_search_leaves_engine_unchanged(engine: Engine[Any], max_evaluations: int) -> None:
    """Everything that changes lives in the state, not in the engine."""
    subject = _with_guidance(engine, None)
    before = copy.deepcopy(vars(subject))
    _search(subject, small_problem(), max_evaluations)
    _require(repr(vars(subject)) == repr(before), "A search changed the engine. Keep what changes in the state.")


def check_proposals_are_valid(engine: Engine[Any], max_evaluations: int) -> None:
    """Proposals are expressions of known variables and allowed operators, and not larger than allowed."""
    for operators in (small_problem().operators, ("add", "mul", "sin")):
        problem = small_problem(operators=operators)
        for guidance in (None, SobolevGuidance()):
            for proposals, _ in _rounds(_with_guidance(engine, guidance), problem):
                for form in proposals:
                    _check_form(form, problem)


def check_proposes_something(engine: Engine[Any], max_evaluations: int) -> None:
    """The first round is not empty."""
    proposals, _ = next(_rounds(_with_guidance(engine, None), small_problem()))
    _require(len(proposals) > 0, "The first round proposed nothing.")


def check_is_deterministic(engine: Engine[Any], max_evaluations: int) -> None:
    """Same problem, same seed, same proposals, same front."""
    for guidance in (None, SobolevGuidance()):
        subject = _with_guidance(engine, guidance)
        proposed = [[forms for forms, _ in _rounds(subject, small_problem())] for _ in range(2)]
        _require(proposed[0] == proposed[1], "The same seed gave different proposals. Draw from 'rng' alone.")
        first, second = (_search(subject, small_problem(), max_evaluations) for _ in range(2))
        _require_equal(first, second, "Two searches with the same seed differ. Draw from 'rng' alone.")


def check_does_not_depend_on_n_jobs(engine: Engine[Any], max_evaluations: int) -> None:
    """One thread or two, same front."""
    subject = _with_guidance(engine, None)
    first = _search(subject, small_problem(), max_evaluations, n_jobs=1)
    second = _search(subject, small_problem(), max_evaluations, n_jobs=2)
    _require_equal(first, second, "The result depends on n_jobs.")


def check_plain_makes_no_novelty_calls(engine: Engine[Any], max_evaluations: int) -> None:
    """With ``guidance=None`` no novelty is computed, so that the plain backbone is plain."""
    result = _search(_with_guidance(engine, None), small_problem(), max_evaluations)
    _require(
        result.n_novelty_calls == 0, f"Without guidance {result.n_novelty_calls} novelty calls were made; none may."
    )


def check_survives_failures(engine: Engine[Any], max_evaluations: int) -> None:
    """Candidates that could not be fitted (infinite error, score 0) are observed without an error."""
    for guidance in (None, SobolevGuidance()):
        subject = _with_guidance(engine, guidance)
        rng = np.random.default_rng(0)
        state = subject.start(small_problem(), rng)
        for _ in range(N_ROUNDS):
            forms = subject.propose(state, rng)
            state = subject.observe(state, [Candidate(form, form, float("inf"), 0.0) for form in forms])
            _require(isinstance(state, State), "'observe' returns a State.")
        state = subject.observe(state, [])  # the budget may end before any form of a round is fitted
        _require(isinstance(state, State), "'observe' returns a State.")


def check_state_can_be_pickled(engine: Engine[Any], max_evaluations: int) -> None:
    """A search can be stored between rounds and goes on as it would have."""
    subject = _with_guidance(engine, None)
    rng = np.random.default_rng(0)
    state = subject.start(small_problem(), rng)
    forms = subject.propose(state, rng)
    state = subject.observe(state, [Candidate(form, form, 0.5, 0.5) for form in forms])
    twin, twin_rng = pickle.loads(pickle.dumps((state, rng)))
    ours, theirs = list(subject.propose(state, rng)), list(subject.propose(twin, twin_rng))
    _require(ours == theirs, "A pickled state proposes different forms.")


def check_keeps_to_a_time_budget(engine: Engine[Any], max_evaluations: int) -> None:
    """A search ends soon after its time is over: an engine that waits looks at ``problem.deadline``."""
    begin = time.monotonic()
    run(small_problem(), _with_guidance(engine, None), Budget(seconds=TIME_BUDGET), np.random.default_rng(0))
    late = time.monotonic() - begin - TIME_BUDGET
    _require(
        late <= OVERTIME,
        f"A search of {TIME_BUDGET:g} s ended {late:.1f} s late. Wait for 'problem.deadline.remaining' at most.",
    )


def check_copes_with_awkward_data(engine: Engine[Any], max_evaluations: int) -> None:
    """Few rows, a constant column, huge and tiny values, an input that changes sign."""
    rng = np.random.default_rng(1)
    X = np.stack([np.full(12, 3.0), rng.normal(size=12) * 1e12, rng.normal(size=12) * 1e-12])
    for y in (X[1] * 1e6, X[2] - 1e-12, np.arange(12.0)):
        _search(_with_guidance(engine, None), Problem(Rows(Sample(X, ("x0", "x1", "x2")), y)), min(max_evaluations, 60))


def check_finds_a_simple_law(engine: Engine[Any], max_evaluations: int) -> None:
    """The product of two inputs is found within a few thousand evaluations."""
    sample = small_problem().sample
    problem = Problem(Rows(sample, 2.0 * sample.X[0] * sample.X[1]))
    result = _search(_with_guidance(engine, None), problem, 5000)
    best = result.best
    _require(best is not None and best.nmse < 1e-12, "2*x0*x1 was not found within 5000 evaluations.")


def small_problem(operators: tuple[str, ...] | None = None) -> Problem:
    """Fifty rows of three inputs, and a target of two terms."""
    X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 50))
    y = X[0] * X[1] + np.sin(2.0 * X[2]) + 0.1 * X[0] ** 2
    options: dict[str, Any] = {} if operators is None else {"operators": operators}
    return Problem(Rows(Sample(X, ("x0", "x1", "x2")), y), max_complexity=25, **options)


_CHECKS: tuple[Check, ...] = (
    check_is_an_engine,
    check_can_be_cloned,
    check_search_leaves_engine_unchanged,
    check_proposals_are_valid,
    check_proposes_something,
    check_is_deterministic,
    check_does_not_depend_on_n_jobs,
    check_plain_makes_no_novelty_calls,
    check_survives_failures,
    check_state_can_be_pickled,
    check_keeps_to_a_time_budget,
    check_copes_with_awkward_data,
    check_finds_a_simple_law,
)


def _with_guidance(engine: Engine[Any], guidance: SobolevGuidance | None) -> Engine[Any]:
    subject: Engine[Any] = clone(engine)
    subject.guidance = guidance
    return subject


def _search(engine: Engine[Any], problem: Problem, max_evaluations: int, n_jobs: int = 1) -> SearchResult:
    return run(problem, engine, Budget(max_evaluations=max_evaluations), np.random.default_rng(0), n_jobs=n_jobs)


def _rounds(engine: Engine[Any], problem: Problem) -> Iterator[tuple[list[Expression], State]]:
    """The proposals and trials of a few rounds, answered with made-up scores."""
    rng = np.random.default_rng(0)
    state = engine.start(problem, rng)
    for _ in range(N_ROUNDS):
        proposals = list(engine.propose(state, rng))
        yield proposals, state
        state = engine.observe(state, [Candidate(form, form, 0.5, 0.5 - 0.001 * len(form)) for form in proposals])
        if state.trials:
            trials, state.trials = state.trials, []
            yield trials, state
            state = engine.observe(state, [Candidate(form, form, 0.5, 0.5 - 0.001 * len(form)) for form in trials])


def _check_form(form: Any, problem: Problem) -> None:
    _require(isinstance(form, Expression), f"A proposal is an Expression. Got {type(form).__name__}.")
    for token in form.tokens:
        if isinstance(token, Operator):
            _require(
                token.name in problem.operators, f"'{form}' uses the operator '{token.name}', which is not allowed."
            )
        elif isinstance(token, str):
            _require(token in problem.sample.names, f"'{form}' uses the unknown variable '{token}'.")
    _require(
        form.complexity <= problem.max_complexity,
        f"'{form}' has {form.complexity} nodes; {problem.max_complexity} are allowed.",
    )


def _require_equal(first: SearchResult, second: SearchResult, message: str) -> None:
    same = [c.expression for c in first.front] == [c.expression for c in second.front]
    _require(same and first.n_evaluations == second.n_evaluations, message)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ContractError(message)
