"""The structural gap (Sec. 4.1): what share of the terms that methods find is qualified, against the ground truth.

Only candidates with test R² ≥ 0.8 count (the caller may lower that for tables of measurements, where no law is known),
only expressions with more than one term are judged, and all candidates of a task are judged on the same inputs. Every
candidate ends in exactly one :class:`Outcome`, and every outcome is counted: nothing is dropped silently.

The same function has other terms in other coordinates. A method that fits standardized inputs writes ``2 z``; in raw
variables this is ``2 x/s - 2 m/s``, and a product of two such inputs has four terms where it had one. Both views are
given: in the coordinates the method used, and with the standardization written out in raw variables.
"""

from __future__ import annotations

import os
import signal
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.errors import ParseError, SobolevError
from sobolev_novelty.lab.bench.judging.candidates import (
    FoundExpression,
    published_candidates,
    srbench_candidates,
    store_candidates,
)
from sobolev_novelty.lab.bench.problems.suites import load, missing_tasks, suite_tasks
from sobolev_novelty.lab.bench.problems.tasks import whitebox_task, whitebox_tasks
from sobolev_novelty.lab.bench.running.store import Store
from sobolev_novelty.lab.bench.showing.paper import paper_row
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.batch import novelties

if TYPE_CHECKING:
    import pandas as pd

#: Rows of the sample on which a Feynman task is judged; Strogatz tasks have 400. With 2000 and more the ground-truth
#: count does not depend on the draw.
N_SAMPLES = 2000
#: Candidates below this test R² are not judged (Sec. 4.1).
MIN_R2 = 0.8
GROUND_TRUTH = "Ground Truth"
SECONDS_PER_CANDIDATE = 20.0


class Outcome(Enum):
    """What became of a candidate."""

    MULTI_TERM = "multi-term"
    SINGLE_TERM = "single term"
    LOW_R2 = "R² too low"
    NO_R2 = "no R² reported"
    NO_MODEL = "no model"
    REFUSED = "refused by the parser"
    NO_NOVELTY = "too few finite rows"
    TIMED_OUT = "timed out"
    OTHER_TASK = "not a task of the suite"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One candidate, judged."""

    method: str
    task: str
    outcome: Outcome
    complexity: int | None = None  # nodes of the expression as the method wrote it
    nu: tuple[float, ...] = ()  # novelty of every term, where the outcome is a multi-term or single-term expression
    reason: str = ""  # why it was refused


@cache
def gap_sample(task: str) -> Sample:
    """The inputs on which all candidates of a task are judged: drawn anew for a law, rows of the table otherwise."""
    rng = np.random.default_rng(zlib.crc32(task.encode()))
    if task in suite_tasks("blackbox"):
        X, _, names = load(task)
        return as_sample(X[rng.permutation(len(X))[:N_SAMPLES]], names)
    whitebox = whitebox_task(task)
    X, _ = whitebox.sample(N_SAMPLES, rng)
    return as_sample(X, whitebox.variables)


@cache
def _standardized_sample(task: str) -> Sample:
    sample = gap_sample(task)
    center, scale = (part[:, None] for part in _standardization(sample))
    return Sample((sample.X - center) / scale, sample.names)


def _standardization(sample: Sample) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of each input; a constant column keeps its unit."""
    spread = sample.X.std(axis=1)
    return sample.X.mean(axis=1), np.where(spread > 0.0, spread, 1.0)


def ground_truth_candidates() -> Iterator[FoundExpression]:
    """The 133 true formulas, as candidates."""
    for task in whitebox_tasks():
        yield FoundExpression(GROUND_TRUTH, task.name, task.formula, 1.0, "names")


def judge(
    candidate: FoundExpression,
    *,
    suite: str = "whitebox",
    coordinates: str = "own",
    min_r2: float = MIN_R2,
    seconds: float = SECONDS_PER_CANDIDATE,
) -> Judgement:
    """Judge one candidate.

    ``suite``: {"whitebox", "blackbox"}.
    ``coordinates``: {"own", "raw"}, the coordinates the method used, or raw variables.
    ``min_r2``: candidates below are counted, not judged.
    ``seconds``: time limit.
    """

    def ended(outcome: Outcome, **more: Any) -> Judgement:
        return Judgement(candidate.method, candidate.task, outcome, **more)

    unread = _outcome_before_reading(candidate, suite, min_r2)
    if unread is not None:
        return ended(unread)
    try:
        with time_limit(seconds):
            return _judge_text(candidate, coordinates, ended)
    except ParseError as error:
        return ended(Outcome.REFUSED, reason=error.reason)
    except SobolevError as error:
        return ended(Outcome.REFUSED, reason=str(error).splitlines()[0])
    except TimeoutError:
        return ended(Outcome.TIMED_OUT)


def _outcome_before_reading(candidate: FoundExpression, suite: str, min_r2: float) -> Outcome | None:
    if candidate.task not in _judged_tasks(suite):
        return Outcome.OTHER_TASK
    if candidate.text is None:
        return Outcome.NO_MODEL
    if candidate.r2_test is None:
        return Outcome.NO_R2
    return Outcome.LOW_R2 if candidate.r2_test < min_r2 else None


def _judge_text(candidate: FoundExpression, coordinates: str, ended: Callable[..., Judgement]) -> Judgement:
    assert candidate.text is not None
    sample = gap_sample(candidate.task)
    expression = parse(candidate.text, names=sample.names, variables=candidate.variables)
    complexity = expression.complexity
    if candidate.is_standardized and coordinates == "own":
        sample = _standardized_sample(candidate.task)
    elif candidate.is_standardized:
        expression = in_raw_variables(expression, sample)
    found = novelties([expression], sample)[0]
    if found.status is not Status.OK:
        return ended(Outcome.NO_NOVELTY, complexity=complexity)
    outcome = Outcome.MULTI_TERM if len(found) > 1 else Outcome.SINGLE_TERM
    return ended(outcome, complexity=complexity, nu=tuple(found.nu.tolist()))


def in_raw_variables(expression: Expression, sample: Sample) -> Expression:
    """An expression in standardized inputs, with the standardization written out: z -> x/s - m/s."""
    center, scale = _standardization(sample)
    raw = {
        name: Expression.of("sub", Expression.of("mul", 1.0 / s, name), float(m / s))
        for name, m, s in zip(sample.names, center, scale, strict=True)
    }

    def leaf(token: float | str) -> Expression:
        return raw[token] if isinstance(token, str) else Expression.of(token)

    def node(op: Operator, operands: tuple[Expression, ...]) -> Expression:
        return Expression.of(op, *operands)

    return expression.fold(leaf, node)


@cache
def _judged_tasks(suite: str) -> frozenset[str]:
    """Those whose data are here."""
    names = suite_tasks(suite)
    return frozenset(names) - frozenset(missing_tasks(names))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in the block after some seconds; without effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise TimeoutError(f"More than {seconds:g} s.")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def gap_table(judgements: Iterable[Judgement]) -> pd.DataFrame:
    """One row per method: the paper's columns, what became of all candidates, and the paper's own numbers.

    ``mean_novelty`` is the mean over the terms of multi-term expressions; ``complexity`` the mean over all judged
    expressions, single-term ones included.
    """
    import pandas as pd

    by_method: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_method.setdefault(judgement.method, []).append(judgement)
    # The ground truth first, then by name.
    methods = sorted(by_method, key=lambda method: (method != GROUND_TRUTH, method.lower()))
    rows: list[dict[str, Any]] = [_row(method, by_method[method]) for method in methods]
    return pd.DataFrame(rows)


def _row(method: str, judgements: list[Judgement]) -> dict[str, Any]:
    multi = [j for j in judgements if j.outcome is Outcome.MULTI_TERM]
    judged = [j for j in judgements if j.outcome in (Outcome.MULTI_TERM, Outcome.SINGLE_TERM)]
    nu = np.array([value for j in multi for value in j.nu])
    counts = Counter(j.outcome for j in judgements)
    paper = paper_row("qualification", method)
    return {
        "method": method,
        "multi_term": len(multi),
        "terms": len(nu),
        "qualified": int((nu > TAU_ID).sum()),
        "rate": float((nu > TAU_ID).mean() * 100) if len(nu) else None,
        "mean_novelty": float(nu.mean()) if len(nu) else None,
        "complexity": float(np.mean([j.complexity for j in judged])) if judged else None,
        "candidates": len(judgements),
        **{outcome.value: counts[outcome] for outcome in Outcome if outcome is not Outcome.MULTI_TERM},
        "paper_multi_term": None if paper is None else int(paper[0]),
        "paper_terms": None if paper is None else int(paper[1]),
        "paper_qualified": None if paper is None else int(paper[2]),
        "paper_rate": None if paper is None else 100 * paper[2] / paper[1],
    }


def refusals(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Reasons of the parser and how often each was given, most frequent first."""
    counts = Counter(j.reason for j in judgements if j.outcome is Outcome.REFUSED)
    return dict(counts.most_common())


def gap_candidates(
    files: Sequence[Path] = (), *, suite: str = "whitebox", noise: float | None = 0.0
) -> Iterator[FoundExpression]:
    """Ground truth, the published models below ``$SOBOLEV_DATA`` where it is set, and the expressions in ``files``.

    ``files``: our stores (``.sqlite``) and SRBench results.
    ``suite``: {"whitebox", "blackbox"}, the latter has no ground truth.
    ``noise``: only candidates found at this noise level; all with ``None``.
    """
    if suite == "whitebox":
        yield from ground_truth_candidates()
    sources: list[Iterator[FoundExpression]] = []
    root = os.environ.get("SOBOLEV_DATA")
    if root:
        published = "ground_truth" if suite == "whitebox" else "black_box"
        sources.append(published_candidates(Path(root), published))
    for file in files:
        is_store = file.suffix == ".sqlite"
        sources.append(store_candidates(Store(file, read_only=True)) if is_store else srbench_candidates(file))
    for candidate in chain.from_iterable(sources):
        if noise is None or candidate.noise == noise:
            yield candidate
