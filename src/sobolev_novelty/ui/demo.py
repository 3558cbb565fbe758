"""What ``sobolev demo`` shows: the main job on embedded examples whose data it generates itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.lab.bench.problems.tasks import whitebox_tasks
from sobolev_novelty.metric.guidance import accepts, feedback, prune
from sobolev_novelty.report.reporting import NoveltyReport, novelty

#: What a search makes of noisy sines: three terms that do one job.
BLOATED = "2.1*sin(x) + 0.3*x - 0.05*x**3 + 0.8*cos(2*x)"
_N_ROWS = 400


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One step of the demonstration."""

    title: str
    words: str  # why it is shown
    report: NoveltyReport | None = None
    output: str = ""  # text that a verb returned
    numbers: dict[str, Any] = field(default_factory=dict)  # the same for programs

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        report = None if self.report is None else self.report.to_dict()
        return {"title": self.title, "words": self.words, "report": report, "output": self.output, **self.numbers}


def cases() -> Iterator[Case]:
    """The steps, one after the other, so that each can be shown when it is done.

    >>> next(iter(cases())).report.qualified.tolist()
    [True, True, True]
    """
    rng = np.random.default_rng(0)
    X = rng.uniform([1.0, 0.5, 0.0, 0.2], [3.0, 4.0, 2.0, 2.0], size=(_N_ROWS, 4))
    yield Case(
        "A law of physics",
        "The energy of a mass on a spring: motion, height and strain. Each term does something that the others cannot.",
        novelty("0.5*m*v**2 + 9.81*m*h + 12*s**2", X, names=["m", "v", "h", "s"]),
    )
    narrow, y = _swing(rng, 1.0)
    yield Case(
        "A formula that a search made too long",
        "Between -1 and 1, sin(x), x and x**3 look almost alike: the data cannot tell how much is due to each.",
        novelty(BLOATED, narrow, n_bootstrap=200, random_state=0),
    )
    yield Case(
        "The same formula on wider data",
        "Between -6 and 6 the sine turns while the powers do not: the verdict belongs to the equation and the data.",
        novelty(BLOATED, _swing(rng, 6.0)[0]),
    )
    yield _pruned(narrow, y)
    words = "The same finding as text for the next prompt."
    yield Case("Feedback for a language model", words, output=feedback(BLOATED, narrow))
    yield _filtered(narrow)
    yield _ground_truth(rng)


def page(shown: Sequence[Case]) -> str:
    """The cases as one self-contained page."""
    from sobolev_novelty.report.render.page import cases_page

    return cases_page(
        "Which terms do your data tell apart?",
        "Short examples, from a law of physics to a formula that a search made too long.",
        [(c.title, c.words, None if c.report is None else c.report.to_dict(), c.output) for c in shown],
    )


def _swing(rng: np.random.Generator, reach: float) -> tuple[Sample, FloatArray]:
    x = rng.uniform(-reach, reach, _N_ROWS)
    y = 2.4 * np.sin(x) + 0.8 * np.cos(2 * x) + 0.01 * rng.normal(size=_N_ROWS)
    return as_sample(x[:, None], ["x"]), y


def _pruned(sample: Sample, y: FloatArray) -> Case:
    result = prune(BLOATED, sample, y)
    after = result.expression
    rounded = after.with_constants([float(f"{value:.4g}") for value in after.constants])
    deleted = [f"deleted {step.term}  (novelty {step.novelty:.3f})" for step in result.steps]
    return Case(
        "Pruning",
        "Terms are deleted one by one and the rest is refitted, as long as the score does not drop. The data were made "
        "with 2.4*sin(x) + 0.8*cos(2*x) and a little noise: what could not be told apart goes first, and what stays is "
        "needed.",
        output="\n".join([f"before  {BLOATED}", *deleted, f"after   {rounded}"]),
        numbers={"before": BLOATED, "after": str(after), "deleted": [step.term for step in result.steps]},
    )


def _filtered(sample: Sample) -> Case:
    formulas = [BLOATED, "2.4*sin(x) + 0.8*cos(2*x)"]
    verdicts = [accepts(formula, sample) for formula in formulas]
    lines = [
        f"{'accepted' if v else 'rejected'}  {formula}\n          {v.reason}"
        for formula, v in zip(formulas, verdicts, strict=True)
    ]
    return Case(
        "The corpus filter",
        "Formulas for training a generative model pass only if all their terms qualify.",
        output="\n".join(lines),
        numbers={"accepted": [bool(v) for v in verdicts]},
    )


def _ground_truth(rng: np.random.Generator) -> Case:
    tasks = whitebox_tasks()
    reports = [novelty(task.expression, task.sample(1000, rng)[0], names=task.variables) for task in tasks]
    several = [report for report in reports if len(report) > 1]
    n_terms = sum(len(report) for report in several)
    n_qualified = sum(int(report.qualified.sum()) for report in several)
    return Case(
        "Known laws",
        "The equations of the Feynman and Strogatz collections, each on its own data: laws have few redundant terms.",
        output=f"{len(reports)} equations, {len(several)} of them with more than one term: {n_qualified} of their "
        f"{n_terms} terms qualify ({n_qualified / n_terms:.1%}).",
        numbers={
            "n_tasks": len(reports), "n_multi_term": len(several), "n_terms": n_terms, "n_qualified": n_qualified,
        },
    )  # fmt: skip
