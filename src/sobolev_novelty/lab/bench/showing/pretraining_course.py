"""R² on the tasks along the training, under the paper's inference and under ours: the pretraining experiment again.

What a network wrote is read several times, so that the effect of a readout is seen on the same formulas. One file
belongs to one network, or to the corpus without a network.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.output import write_whole
from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.showing.bootstrap import sign_flip_p
from sobolev_novelty.lab.bench.showing.pretraining import (
    PAPER,
    Interval,
    arm_name,
    interval,
    least_squares,
    solved,
    told,
    white_box,
)
from sobolev_novelty.lab.evidence.origin import circumstances

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 1
#: How formulas are read: the inference that wrote them, the readout, and the steps on constants.
READINGS = {
    "paper": ("paper", "written", 200),
    "unrefined": ("paper", "written", 0),
    "our readout": ("paper", "least squares", 20),
    "ours": ("ours", "least squares", 20),
}
_TITLES = {
    "paper": "the paper's inference",
    "unrefined": "the same, constants as written",
    "our readout": "the same formulas, our readout",
    "ours": "our inference",
}
#: Draws of the corpus without a network, and formulas of each: as many as a network writes.
GENERATOR_DRAWS = 4
_ARMS = {"random": "#1b5e9e", "matched": "#3f7d3a", "filtered": "#c2410c"}


@dataclass(frozen=True, slots=True)
class Reading:
    """One time of the training, read in one way (``READINGS``): a list per draw with an entry per task.

    ``r2`` is None where no formula was finite; ``nodes``, ``n_terms`` and ``n_qualified`` are those of the formula in
    standardized inputs.
    """

    samples: int
    kind: str
    r2: list[list[float | None]]
    nodes: list[list[int | None]]
    n_terms: list[list[int | None]]
    n_qualified: list[list[int | None]]

    @property
    def scores(self) -> FloatArray:
        """max(0, R²) of each task, mean over draws; failures are 0."""
        return np.asarray(np.mean([[max(0.0, value or 0.0) for value in own] for own in self.r2], axis=0))

    @property
    def qualified(self) -> float:
        """Share of terms with ν above the threshold, in formulas of several terms."""
        pairs = [
            (n, k)
            for terms, own in zip(self.n_terms, self.n_qualified, strict=True)
            for n, k in zip(terms, own, strict=True)
            if n is not None and k is not None and n > 1
        ]
        return sum(k for _, k in pairs) / max(1, sum(n for n, _ in pairs))


@dataclass(frozen=True, slots=True)
class Course:
    """One network along its training, or the corpus alone."""

    arm: str
    seed: int
    settings: dict[str, Any]
    tasks: list[str]
    readings: list[Reading] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Course:
        """What :meth:`write` wrote, as it is or packed with gzip."""
        try:
            packed = path.read_bytes()
            content = json.loads(gzip.decompress(packed) if path.suffix == ".gz" else packed)
            if content["format"] != FORMAT:
                raise DataError(f"'{path}' is of another version: format {content['format']!r}.")
            readings = [Reading(**values) for values in content["readings"]]
            return cls(content["arm"], content["seed"], content["settings"], content["tasks"], readings)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"'{path}' holds no course of a training: {error!r}.") from error

    def write(self, path: Path) -> None:
        """As a whole or not at all; a line per reading."""
        head = {name: getattr(self, name) for name in ("arm", "seed", "settings", "tasks")}
        text = json.dumps({"format": FORMAT, **head, "origin": circumstances()}, allow_nan=False)[:-1]
        lines = ",\n".join(json.dumps(asdict(reading), allow_nan=False) for reading in self.readings)
        write_whole(path, f'{text}, "readings": [\n{lines}\n]}}\n')

    def has(self, kind: str, samples: int) -> bool:
        """Whether the reading of this kind at this time is there."""
        return any((reading.kind, reading.samples) == (kind, samples) for reading in self.readings)


def follow(sources: Sequence[Path], out: Path, *, n_jobs: int = 1, on_progress: OnProgress = silent) -> Course:
    """Read what one network wrote, file after file, and write the course; readings that are there already are kept."""
    from sobolev_novelty.lab.pretraining.formulas import Formulas, Record

    found = [Formulas.read(path) for path in sources]
    settings = found[0].settings
    groups: dict[tuple[int, str], dict[str, Record]] = {}
    for record in (record for formulas in found for record in formulas.records):
        groups.setdefault((record.samples, record.inference), {})[record.task] = record
    tasks = list(next(iter(groups.values())))
    course = Course(arm_name(**settings["corpus"]), int(settings["training"]["seed"]), settings, tasks)
    course = _gone_on_with(course, out)
    jobs = [
        (samples, kind, records)
        for (samples, inference), records in sorted(groups.items())
        for kind, (writer, _, _) in READINGS.items()
        if writer == inference and not course.has(kind, samples)
    ]
    with _mapping(n_jobs) as mapped:
        for k, (samples, kind, records) in enumerate(jobs):
            on_progress(Step(k, len(jobs), f"{samples:,} formulas, {_TITLES[kind]}"))
            decoding = _decoding(kind, n_draws=len(next(iter(records.values())).draws))
            rows = list(mapped(_rows_of_record, [records[task] for task in tasks], repeat(decoding)))
            course.readings.append(_reading(samples, kind, rows))
            course.write(out)
    return course


def _rows_of_record(record: Any, decoding: Any) -> list[dict[str, Any]]:
    return solved(record.task, record.propose, decoding)


def _rows_of_corpus(task: str, corpus: Any, decoding: Any) -> list[dict[str, Any]]:
    from sobolev_novelty.lab.pretraining.evaluate import by_generator

    return solved(task, by_generator(corpus), decoding)


@contextmanager
def _mapping(n_jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """``map`` in so many processes."""
    if n_jobs == 1:
        yield map
        return
    with ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool.map


def follow_generator(
    settings: Path,
    out: Path,
    *,
    tasks: Sequence[str] | None = None,
    n_jobs: int = 1,
    on_progress: OnProgress = silent,
) -> Course:
    """The same formulas of the corpus without a network, as many as a network writes; readings there are kept."""
    from sobolev_novelty.engines.transformer.settings import RunSettings

    corpus = RunSettings.from_toml(settings).corpus
    names = white_box(tasks)
    course = Course(f"{arm_name(**asdict(corpus))}, no network", corpus.seed, {"corpus": asdict(corpus)}, names)
    course = _gone_on_with(course, out)
    missing = [kind for kind in READINGS if not course.has(kind, 0)]
    with _mapping(n_jobs) as mapped:
        for k, kind in enumerate(missing):
            on_progress(Step(k, len(missing), _TITLES[kind]))
            decoding = _decoding(kind, n_draws=GENERATOR_DRAWS)
            decoding = replace(decoding, n_samples=decoding.n_samples + decoding.n_bags)  # beside the greedy ones
            rows = list(mapped(_rows_of_corpus, names, repeat(corpus), repeat(decoding)))
            course.readings.append(_reading(0, kind, rows))
            course.write(out)
    return course


def _decoding(kind: str, *, n_draws: int) -> Any:
    """What writes and what reads."""
    from sobolev_novelty.lab.pretraining.evaluate import INFERENCES

    inference, readout, n_iterations = READINGS[kind]
    return replace(INFERENCES[inference], readout=readout, n_iterations=n_iterations, n_draws=n_draws)


def _gone_on_with(start: Course, out: Path) -> Course:
    if not out.exists():
        return start
    before = Course.read(out)
    if replace(before, readings=[]) != Course(**json.loads(json.dumps(asdict(start)))):
        raise DataError(f"'{out}' holds another course. Delete it, or give another path.")
    return before


def _reading(samples: int, kind: str, rows: Sequence[Sequence[dict[str, Any]]]) -> Reading:
    """From the rows of each task."""

    def column(name: str) -> list[list[Any]]:
        return [[own[d].get(name) for own in rows] for d in range(len(rows[0]))]

    r2 = [[None if value is None else round(value, 6) for value in own] for own in column("r2")]
    return Reading(samples, kind, r2, column("complexity"), column("n_terms"), column("n_qualified"))


@dataclass(frozen=True, slots=True)
class Point:
    """An arm at one time, read in one way: a reading per seed."""

    arm: str
    samples: int
    kind: str
    readings: dict[int, Reading]

    @property
    def mean(self) -> Interval:
        """Over tasks and seeds."""
        return interval(np.array([reading.scores for reading in self.readings.values()]))

    def less(self, rival: Point) -> FloatArray:
        """Differences from another arm: a row for each seed that both have, a column per task."""
        both = sorted(set(self.readings) & set(rival.readings))
        return np.array([self.readings[seed].scores - rival.readings[seed].scores for seed in both])


def points(courses: Sequence[Course]) -> list[Point]:
    """The readings by arm, time and kind."""
    tasks = courses[0].tasks if courses else []
    groups: dict[tuple[str, int, str], dict[int, Reading]] = {}
    for course in courses:
        if course.tasks != tasks:
            raise DataError("The courses are of different tasks. Give files that belong together.")
        for reading in course.readings:
            own = groups.setdefault((course.arm, reading.samples, reading.kind), {})
            if course.seed in own:
                raise DataError(f"Two files hold '{course.arm}', seed {course.seed}, {reading.samples} formulas.")
            own[course.seed] = reading
    return [Point(arm, samples, kind, own) for (arm, samples, kind), own in sorted(groups.items())]


def table(courses: Sequence[Course]) -> str:
    """The end of the training in Markdown: each arm read in every way, beside what needs no network."""
    found = points(courses)
    head = ("arm", "formulas", "seeds", *_TITLES.values(), "> 0.99", "failures", "nodes", "qualified")
    lines = [f"| {' | '.join(head)} |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    for arm in dict.fromkeys(point.arm for point in found):
        own = [point for point in found if point.arm == arm]
        last = {
            kind: max((p for p in own if p.kind == kind), key=lambda p: p.samples, default=None) for kind in READINGS
        }
        chosen = last["paper"]
        if chosen is None:
            continue
        means = ["" if point is None else told(point.mean) for point in last.values()]
        cells = [
            arm,
            f"{chosen.samples:,}",
            str(len(chosen.readings)),
            *means,
            *_details(list(chosen.readings.values())),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    for name, degree in (("linear least squares", 1), ("quadratic least squares", 2)):
        level = told(interval(least_squares(degree, courses[0].tasks)[None, :]))
        lines.append(f"| {name} | | | {level} | | | | | | | |")
    lines += [f"| paper, {name} | 35,000,000 | 3 | {value:.3f} | | | | | | | |" for name, value in PAPER.items()]
    return "\n".join(lines) + "\n"


def _details(readings: Sequence[Reading]) -> list[str]:
    """Of the paper's inference: share above 0.99, failures, nodes, qualified terms."""
    r2 = [value for reading in readings for own in reading.r2 for value in own]
    nodes = [n for reading in readings for own in reading.nodes for n in own if n is not None]
    above = np.mean([value is not None and value > 0.99 for value in r2])
    failed = np.mean([value is None for value in r2])
    qualified = np.mean([reading.qualified for reading in readings])
    return [f"{above:.1%}", f"{failed:.1%}", f"{np.mean(nodes):.1f}" if nodes else "", f"{qualified:.0%}"]


def differences(courses: Sequence[Course]) -> str:
    """The comparisons of the protocol at the end of the training, in Markdown.

    The interval is over tasks and seeds; p is that of the sign-flip test over tasks, of means over seeds.
    """
    found = points(courses)
    last = max((point.samples for point in found), default=0)
    ends = {(point.arm, point.kind): point for point in found if point.samples == last}
    lines = ["| difference | " + " | ".join(_TITLES.values()) + " |", "| --- |" + " ---: |" * len(READINGS)]
    for arm, rival in (("filtered", "random"), ("matched", "random"), ("filtered", "matched")):
        cells = []
        for kind in READINGS:
            d = ends[arm, kind].less(ends[rival, kind]) if {(arm, kind), (rival, kind)} <= set(ends) else np.empty(0)
            cells.append(f"{told(interval(d), sign=True)}, p = {sign_flip_p(d.mean(axis=0)):.2g}" if d.size else "")
        lines.append(f"| {arm} − {rival} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def along(courses: Sequence[Course], kind: str = "paper") -> str:
    """R² along the training in Markdown: a line for each time, a column for each arm."""
    found = [point for point in points(courses) if point.kind == kind and point.samples]
    arms = [arm for arm in _ARMS if any(point.arm == arm for point in found)]
    lines = [f"| formulas | {' | '.join(arms)} | filtered − matched |", "| ---: " * (len(arms) + 2) + "|"]
    for samples in sorted({point.samples for point in found}):
        now = {point.arm: point for point in found if point.samples == samples}
        d = now["filtered"].less(now["matched"]) if {"filtered", "matched"} <= set(now) else np.empty(0)
        cells = [told(now[arm].mean) if arm in now else "" for arm in arms]
        lines.append(f"| {samples:,} | {' | '.join(cells)} | {told(interval(d), sign=True) if d.size else ''} |")
    return "\n".join(lines) + "\n"


def figure(courses: Sequence[Course]) -> Figure:
    """R² against formulas seen, a panel per reading of the same formulas: seeds thin, means thick, with intervals."""
    from sobolev_novelty.lab.bench.showing.figures import new_figure  # pandas comes with it

    drawn = new_figure(11.0, 3.8)
    panels: Any = drawn.subplots(1, 3, sharey=True)
    found = points(courses)
    level = float(least_squares(2, courses[0].tasks).mean())
    for axes, kind in zip(panels, ("paper", "unrefined", "our readout"), strict=True):
        own = [point for point in found if point.kind == kind]
        for arm, colour in _ARMS.items():
            drawn_arm = [point for point in own if point.arm == arm]
            if drawn_arm:
                _draw_arm(axes, drawn_arm, colour)
        for point in own:
            if point.samples == 0:
                axes.axhline(point.mean.value, color="#555555", linestyle=":", label="random formulas, no network")
        axes.axhline(level, color="#999999", linestyle="-.", linewidth=1, label="quadratic least squares")
        axes.set(xscale="log", xlabel="formulas seen in training", title=_TITLES[kind])
    panels[0].set(ylabel="mean of max(0, R²), 133 tasks", ylim=(0.0, 1.0))
    panels[1].legend(fontsize=7, loc="center left")
    return drawn


def _draw_arm(axes: Any, own: Sequence[Point], colour: str) -> None:
    seen, spans = [point.samples for point in own], [point.mean for point in own]
    for seed in own[0].readings:
        axes.plot(seen, [p.readings[seed].scores.mean() for p in own], color=colour, linewidth=0.7, alpha=0.5)
    axes.plot(seen, [s.value for s in spans], color=colour, marker="o", markersize=3, label=own[0].arm)
    axes.fill_between(seen, [s.lower for s in spans], [s.upper for s in spans], color=colour, alpha=0.08)
