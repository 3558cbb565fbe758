"""The paper's pretraining experiment (Section 4.3): networks on the white-box tasks, beside what needs no network.

One file of results belongs to one network (or to the generator alone): a row per task and draw, failures included.
Every table also has linear and quadratic least squares, and the paper's figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.output import write_whole
from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.judge import NOVELTY_ROWS
from sobolev_novelty.lab.bench.problems.suites import TaskData, r_squared, suite_tasks, task_data
from sobolev_novelty.lab.evidence.origin import circumstances
from sobolev_novelty.metric.batch import novelties

#: Mean R² after 35 million formulas in the paper (Section 4.3).
PAPER = {"SN-filtered": 0.712, "Random": 0.497, "PhyE2E": 0.350}
#: What a run of the tasks is split by; networks are compared on the same rows.
DATA_SEED, TRAIN_ROWS = 0, 1000
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Rows of one network, or of a method without one."""

    arm: str  # which corpus: ``random``, ``filtered``, ``matched``, …
    seed: int  # of corpus and network
    samples: int  # accepted formulas seen in training
    settings: dict[str, Any]  # what the rows depend on
    rows: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Evaluation:
        """What :meth:`write` wrote."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise DataError(f"'{path}' is of another version: format {content['format']!r}.")
            return cls(*(content[name] for name in ("arm", "seed", "samples", "settings", "rows")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"'{path}' holds no evaluation of a network: {error!r}.") from error

    def write(self, path: Path) -> None:
        """As a whole or not at all."""
        content = {
            "format": FORMAT, "arm": self.arm, "seed": self.seed, "samples": self.samples, "settings": self.settings,
            "summary": summary(self.rows), "paper": PAPER, "origin": circumstances(),
        }  # fmt: skip
        rows = ",\n".join(json.dumps(row, allow_nan=False) for row in self.rows)  # one per line
        text = json.dumps(content, indent=1, allow_nan=False).removesuffix("\n}") + f',\n "rows": [\n{rows}\n]}}\n'
        write_whole(path, text)

    @property
    def tasks(self) -> list[str]:
        """Tasks that have rows, in order."""
        return list(dict.fromkeys(row["task"] for row in self.rows))

    def scores(self, tasks: Sequence[str]) -> FloatArray:
        """max(0, R²) of each task, mean over draws; failures are 0."""
        found: dict[str, list[float]] = {task: [] for task in tasks}
        for row in self.rows:
            if row["task"] in found:
                found[row["task"]].append(score(row))
        missing = [task for task, values in found.items() if not values]
        if missing:
            raise DataError(f"The evaluation of '{self.arm}', seed {self.seed}, lacks {missing[0]}. Run it to its end.")
        return np.array([np.mean(values) for values in found.values()])


def score(row: dict[str, Any]) -> float:
    """max(0, R²) of a row; 0 for a failure."""
    return max(0.0, row["r2"]) if row["r2"] is not None else 0.0


def evaluate_network(
    weights: Path,
    out: Path,
    *,
    tasks: Sequence[str] | None = None,
    device: str | None = None,
    on_progress: OnProgress = silent,
    **decoding: Any,
) -> Evaluation:
    """Run a network on tasks and write the rows; a file that has some of them already is gone on with.

    ``weights``: folder with ``config.json``.
    ``out``: JSON file.
    ``tasks``: by default all white-box tasks.
    ``device``: where the network runs: ``"cpu"``, ``"cuda"``. By default a GPU if there is one.
    ``**decoding``: see :class:`sobolev_novelty.lab.pretraining.evaluate.Decoding`.
    """
    from sobolev_novelty.engines.transformer.checkpoint import load_model, read_weights
    from sobolev_novelty.engines.transformer.pretrained import chosen_device
    from sobolev_novelty.lab.pretraining.evaluate import Decoding, by_network

    stored = read_weights(weights)
    training = stored.settings.training
    samples = int(stored.progress["step"]) * training.batch
    run = Decoding(**decoding)
    start = Evaluation(
        arm_name(**asdict(stored.settings.corpus)), training.seed, samples,
        _settings(run=stored.settings.to_dict(), decoding=asdict(run)),
    )  # fmt: skip
    propose = by_network(load_model(weights).to(chosen_device(device)))
    return _evaluated(start, lambda task: propose, run, out, tasks=tasks, on_progress=on_progress)


def evaluate_generator(
    settings: Path, out: Path, *, tasks: Sequence[str] | None = None, on_progress: OnProgress = silent, **decoding: Any
) -> Evaluation:
    """The same with formulas of the corpus in place of a network's: how far fitting alone gets."""
    from sobolev_novelty.engines.transformer.settings import RunSettings
    from sobolev_novelty.lab.pretraining.evaluate import Decoding, by_generator

    corpus = RunSettings.from_toml(settings).corpus
    run = Decoding(**decoding)
    start = Evaluation(
        f"generator alone, {arm_name(**asdict(corpus))}", corpus.seed, 0,
        _settings(corpus=asdict(corpus), decoding=asdict(run)),
    )  # fmt: skip
    propose = by_generator(corpus)
    return _evaluated(start, lambda task: propose, run, out, tasks=tasks, on_progress=on_progress)


def write_bags(out: Path, tasks: Sequence[str] | None = None, *, n_bags: int = 4) -> int:
    """The training rows of tasks as networks read them, for a machine that has no tasks; how many tasks."""
    from sobolev_novelty.lab.pretraining.evaluate import Scaling
    from sobolev_novelty.lab.pretraining.formulas import Bags

    parts = [_part(name) for name in white_box(tasks)]
    tables = [(part.name, Scaling.of(part.X_train)(part.X_train), part.y_train) for part in parts]
    Bags.of(tables, n_bags, DATA_SEED).write(out)
    return len(tables)


def white_box(tasks: Sequence[str] | None) -> list[str]:
    """The tasks given, by default all."""
    return list(suite_tasks("whitebox") if tasks is None else tasks)


def _part(name: str) -> TaskData:
    return task_data(name, DATA_SEED, max_train_rows=TRAIN_ROWS)


def _settings(**values: Any) -> dict[str, Any]:
    """As they are read back from JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(values | {"data_seed": DATA_SEED, "train_rows": TRAIN_ROWS}))
    return plain


def arm_name(*, law: str, arm: str, judge: str | None = None, intercept: str = "term", **_: Any) -> str:
    """Law, arm, where and beside what the filter judges, where they are not the paper's; from a corpus's settings."""
    parts = [arm if law == "e2esr" else f"{law}, {arm}"]
    parts += [f"judged on {judge}"] if judge else []
    return ", ".join(parts + (["free intercept"] if intercept == "free" else []))


def _evaluated(
    start: Evaluation,
    propose_for: Callable[[str], Any],
    decoding: Any,
    out: Path,
    *,
    tasks: Sequence[str] | None,
    on_progress: OnProgress,
) -> Evaluation:
    names = white_box(tasks)
    evaluation = _gone_on_with(start, out)
    done = set(evaluation.tasks)
    for k, name in enumerate(names):
        on_progress(Step(k, len(names), name))
        if name in done:
            continue
        evaluation.rows.extend(solved(name, propose_for(name), decoding))
        evaluation.write(out)
    return evaluation


def solved(task: str, propose: Any, decoding: Any) -> list[dict[str, Any]]:
    """A row for each draw of a task."""
    from sobolev_novelty.lab.pretraining.evaluate import Scaling, solve

    part = _part(task)
    scaling = Scaling.of(part.X_train)
    rows = []
    for number, solution in enumerate(solve(part, propose, decoding)):
        row = {"task": task, "draw": number, "n_distinct": solution.n_distinct, "failure": solution.failure}
        rows.append(row | _assessed(solution.expression, scaling, part))
    return rows


def _gone_on_with(start: Evaluation, out: Path) -> Evaluation:
    if not out.exists():
        return start
    before = Evaluation.read(out)
    if replace(before, rows=[]) != start:
        raise ParameterError(f"'out': '{out}' holds another evaluation. Delete it, or give another path.")
    return before


def _assessed(expression: Expression | None, scaling: Any, part: TaskData) -> dict[str, Any]:
    """R² on the test rows, complexity, and novelty of the terms in standardized and in raw inputs."""
    nothing = {"r2": None, "formula": None, "complexity": None}
    if expression is None:
        return nothing
    X = part.X_train[:NOVELTY_ROWS]
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    own = _novelty(expression, scaling(X), "")
    raw = _novelty(scaling.undone(expression), Sample(np.ascontiguousarray(X.T), names), "_raw")
    r2 = r_squared(part.y_test, evaluate(expression, scaling(part.X_test)))
    return {"r2": r2, "formula": str(expression), "complexity": expression.complexity} | own | raw


def _novelty(expression: Expression, sample: Sample, suffix: str) -> dict[str, Any]:
    found = novelties([expression], sample)[0]
    is_known = found.status is Status.OK
    return {
        f"n_terms{suffix}": len(found) if is_known else None,
        f"n_qualified{suffix}": int((found.nu > TAU_ID).sum()) if is_known else None,
        f"mean_nu{suffix}": float(found.nu.mean()) if is_known else None,
    }


def least_squares(degree: int, tasks: Sequence[str] | None = None) -> FloatArray:
    """max(0, R²) of polynomials of degree 1 or 2 on each task."""
    scores = []
    for name in white_box(tasks):
        part = _part(name)
        mean, deviation = part.X_train.mean(axis=0), part.X_train.std(axis=0)
        train, test = (_powers((X - mean) / deviation, degree) for X in (part.X_train, part.X_test))
        weights = np.linalg.lstsq(train, part.y_train, rcond=None)[0]
        scores.append(max(0.0, r_squared(part.y_test, test @ weights) or 0.0))
    return np.array(scores)


def _powers(Z: FloatArray, degree: int) -> FloatArray:
    columns = [np.ones(len(Z)), *Z.T]
    if degree == 2:
        columns += [Z[:, i] * Z[:, j] for i, j in combinations_with_replacement(range(Z.shape[1]), 2)]
    return np.stack(columns, axis=1)


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over tasks and draws; the spread is that of the draws."""
    if not rows:
        return {}
    by_draw = [[row for row in rows if row["draw"] == number] for number in sorted({row["draw"] for row in rows})]
    means = [float(np.mean([score(row) for row in own])) for own in by_draw]
    return {
        "n_tasks": len({row["task"] for row in rows}),
        "n_draws": len(by_draw),
        "mean_r2": float(np.mean(means)),
        "sd_of_draws": float(np.std(means, ddof=1)) if len(means) > 1 else None,
        "median_r2": float(np.median([score(row) for row in rows])),
        "above_0.99": float(np.mean([score(row) > 0.99 for row in rows])),
        "above_0.999": float(np.mean([score(row) > 0.999 for row in rows])),
        "failures": float(np.mean([row["r2"] is None for row in rows])),
        "complexity": _mean(rows, "complexity"),
        **_shares(rows, ""),
        **_shares(rows, "_raw"),
    }


def _mean(rows: Sequence[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return float(np.mean(values)) if values else None


def _shares(rows: Sequence[dict[str, Any]], suffix: str) -> dict[str, Any]:
    """Mean novelty, and the share of qualified terms in formulas of several terms, as in the paper's tables."""
    several = [row for row in rows if (row.get(f"n_terms{suffix}") or 0) > 1]
    n_terms = sum(row[f"n_terms{suffix}"] for row in several)
    qualified = sum(row[f"n_qualified{suffix}"] for row in several)
    return {
        f"mean_nu{suffix}": _mean(rows, f"mean_nu{suffix}"),
        f"qualified{suffix}": qualified / n_terms if n_terms else None,
    }


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its interval over tasks and seeds."""

    value: float
    lower: float
    upper: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.lower > 0.0 or self.upper < 0.0


def interval(scores: FloatArray, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0) -> Interval:
    """Bootstrap over tasks and over training seeds at once.

    ``scores``: shape (n_seeds, n_tasks), scores, or differences of two arms with the same seeds on the same tasks.
    """
    n_seeds, n_tasks = scores.shape
    rng = np.random.default_rng(seed)
    means = np.empty(n_resamples)
    for k in range(n_resamples):
        own = scores[rng.integers(n_seeds, size=n_seeds)].mean(axis=0)
        means[k] = own[rng.integers(n_tasks, size=n_tasks)].mean()
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(means, [tail, 1.0 - tail])
    return Interval(float(scores.mean()), float(lower), float(upper))


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One line of the table: an arm at one number of samples."""

    arm: str
    samples: int
    seeds: tuple[int, ...]
    mean: Interval
    against_random: Interval | None
    against_matched: Interval | None
    summary: dict[str, Any]


def compared(evaluations: Sequence[Evaluation]) -> list[ArmRow]:
    """A line per arm and number of samples, with differences from Random at the same number and seeds.

    The filter's own effect is the difference of the filtered arm from the matched one.
    """
    if not evaluations:
        raise DataError("There is nothing to compare. Give files that 'bench pretrained' wrote.")
    tasks = evaluations[0].tasks
    groups: dict[tuple[str, int], dict[int, Evaluation]] = {}
    for evaluation in evaluations:
        same = groups.setdefault((evaluation.arm, evaluation.samples), {})
        if evaluation.seed in same:
            raise DataError(f"Two files hold '{evaluation.arm}', seed {evaluation.seed}, {evaluation.samples} samples.")
        same[evaluation.seed] = evaluation
    lines = []
    for (arm, samples), own in sorted(groups.items(), key=lambda entry: entry[0]):
        scores = {seed: evaluation.scores(tasks) for seed, evaluation in sorted(own.items())}
        against = {
            rival: _difference(scores, groups.get((rival, samples), {}), tasks) if arm != rival else None
            for rival in ("random", "matched")
        }
        rows = [row for evaluation in own.values() for row in evaluation.rows]
        lines.append(
            ArmRow(
                arm, samples, tuple(scores), interval(np.array(list(scores.values()))),
                against["random"], against["matched"] if arm == "filtered" else None, summary(rows),
            )
        )  # fmt: skip
    return lines


def _difference(scores: dict[int, FloatArray], rivals: dict[int, Evaluation], tasks: Sequence[str]) -> Interval | None:
    """Mean difference from another arm over the seeds that both have; None where there are none."""
    both = [seed for seed in scores if seed in rivals]
    return interval(np.array([scores[seed] - rivals[seed].scores(tasks) for seed in both])) if both else None


def table(evaluations: Sequence[Evaluation]) -> str:
    """The comparison in Markdown, with least squares and the paper's figures."""
    tasks = evaluations[0].tasks if evaluations else []
    head = (
        "arm",
        "formulas",
        "seeds",
        "mean of max(0, R²)",
        "against Random",
        "against Matched",
        "> 0.999",
        "failures",
        "nodes",
        "qualified",
    )
    lines = [f"| {' | '.join(head)} |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    for row in compared(evaluations):
        means = row.summary
        cells = [
            row.arm, f"{row.samples:,}", str(len(row.seeds)), told(row.mean),
            told(row.against_random, sign=True), told(row.against_matched, sign=True),
            f"{means['above_0.999']:.0%}", f"{means['failures']:.1%}", _number(means["complexity"], ".1f"),
            _number(means["qualified"], ".0%"),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    for name, degree in (("linear least squares", 1), ("quadratic least squares", 2)):
        found = interval(least_squares(degree, tasks)[None, :])
        lines.append(f"| {name} | | | {told(found)} | | | | | | |")
    lines += [f"| paper, {name} | 35,000,000 | 3 | {value:.3f} | | | | | | |" for name, value in PAPER.items()]
    return "\n".join(lines) + "\n"


def told(found: Interval | None, *, sign: bool = False) -> str:
    """A value with its interval, for a cell."""
    if found is None:
        return ""
    form = "+.3f" if sign else ".3f"
    return f"{found.value:{form}} ({found.lower:{form}} … {found.upper:{form}})"


def _number(value: float | None, form: str) -> str:
    return "" if value is None or math.isnan(value) else f"{value:{form}}"
