"""Experiments: one TOML file states problems, methods, seeds and budget.

.. code-block:: toml

    suite = "whitebox"          # or "blackbox", or a .toml file of formulas beside this one
    seeds = [0, 1]
    noise = [0.0]
    budget = 30.0               # seconds a search may use
    timeout = 90.0              # seconds after which a fit is killed
    memory = 4.0                # GiB of address space of a task
    max_train_rows = 1000
    tasks = ["strogatz_*"]      # optional: names or patterns; the whole suite by default
    contrasts = [["genetic", "genetic-large"]]  # optional: which methods will be compared, said before the first run

    [methods.genetic]           # a label; the rest are options of the method
    [methods.genetic-large]
    method = "genetic"          # the registry name, or "package.module:function"; the label by default
    population_size = 500
    dummies = 2                 # this method gets two more inputs, shuffled copies of others; 0 by default
    with_units = true           # and is told the units (options 'units' and 'y_units'; Feynman tasks)
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.bench.problems.suites import MAX_TRAIN_ROWS, suite_tasks, task_fingerprint
from sobolev_novelty.lab.bench.problems.tasks import read_toml, task_units
from sobolev_novelty.lab.bench.running.methods import check_options
from sobolev_novelty.lab.bench.running.store import Job


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method with its options, under the label it has in tables, and what it is given beside the task."""

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)  # handed to the method
    dummies: int = 0  # further inputs that have nothing to do with the target
    with_units: bool = False  # whether it is told the units of the inputs and the target

    @property
    def settings(self) -> dict[str, Any]:
        """All of that but the label; what has its default is left out."""
        given = {"dummies": self.dummies, "with_units": self.with_units}
        return {"method": self.method, **self.options, **{key: value for key, value in given.items() if value}}


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to run."""

    name: str
    suite: str  # ``"whitebox"``, ``"blackbox"``, or a file of formulas, relative to ``folder``
    methods: tuple[MethodSpec, ...]
    tasks: tuple[str, ...]  # names, in the order of the suite
    seeds: tuple[int, ...] = (0,)
    noises: tuple[float, ...] = (0.0,)
    budget: float = 30.0  # seconds a search may use; handed to the method
    timeout: float = 90.0  # seconds after which loading and fitting are killed
    memory: float = 4.0  # address space of a task, in GiB
    max_train_rows: int = MAX_TRAIN_ROWS
    assess_timeout: float = 60.0  # seconds for novelty and the exact-solution verdict after the fit
    folder: Path = Path()  # the folder of the experiment's file
    #: tuple of (str, str): labels of the methods that the experiment was made to compare.
    contrasts: tuple[tuple[str, str], ...] = ()

    def jobs(self) -> Iterator[Job]:
        """All jobs; the methods of a task come together, so that an unfinished sweep is still a paired one."""
        for seed in self.seeds:
            for noise in self.noises:
                for task in self.tasks:
                    for spec in self.methods:
                        yield Job(task, spec.label, seed, noise)

    def restricted(self, labels: Sequence[str]) -> Experiment:
        """The experiment with only these methods."""
        known = [spec.label for spec in self.methods]
        unknown = [label for label in labels if label not in known]
        if unknown:
            raise ParameterError(
                f"The experiment has no method {', '.join(unknown)}. Its methods are: {', '.join(known)}."
            )
        return replace(self, methods=tuple(spec for spec in self.methods if spec.label in labels))

    def check_methods(self) -> None:
        """Refuse unknown methods and options before anything is run."""
        for spec in self.methods:
            units = {"units": {}, "y_units": "1"} if spec.with_units else {}
            check_options(spec.method, {**spec.options, **units})
            if spec.with_units:
                for task in self.tasks:
                    task_units(task)

    def fingerprints(self, missing: Collection[str] = ()) -> dict[str, str]:
        """What each task is, in a few characters that change with its formula or data; not of the missing ones."""
        suite = _located(self.suite, self.folder)
        return {name: task_fingerprint(name, suite) for name in self.tasks if name not in missing}

    def settings(self) -> dict[str, Any]:
        """What must be the same for all rows of a store."""
        methods = {f"method:{spec.label}": spec.settings for spec in self.methods}
        contrasts = {"contrasts": [list(pair) for pair in self.contrasts]} if self.contrasts else {}
        common = {"suite": self.suite, "budget": self.budget, "max_train_rows": self.max_train_rows}
        return {**common, **contrasts, **methods}

    def request(self, job: Job) -> dict[str, Any]:
        """Everything a worker process needs to know to run a job; JSON."""
        spec = next(spec for spec in self.methods if spec.label == job.method)
        return {
            "task": job.task,
            "suite": _located(self.suite, self.folder),
            "method": spec.method,
            "options": dict(spec.options),
            "dummies": spec.dummies,
            "with_units": spec.with_units,
            "seed": job.seed,
            "noise": job.noise,
            "budget": self.budget,
            "timeout": self.timeout,
            "memory": self.memory,
            "max_train_rows": self.max_train_rows,
            "assess_timeout": self.assess_timeout,
        }


def load_experiment(path: str | Path) -> Experiment:
    """Read a TOML file."""
    path = Path(path)
    return experiment_from(read_toml(path, "experiment file"), name=path.stem, folder=path.parent)


_NUMBERS = ("budget", "timeout", "memory", "assess_timeout")
_KNOWN = {"suite", "tasks", "seeds", "noise", "methods", "max_train_rows", "contrasts", *_NUMBERS}


def experiment_from(table: Mapping[str, Any], name: str, folder: Path = Path()) -> Experiment:
    """Check the contents of an experiment file."""
    unknown = set(table) - _KNOWN
    if unknown:
        raise ParameterError(f"Unknown keys: {', '.join(sorted(unknown))}. Known: {', '.join(sorted(_KNOWN))}.")
    if not table.get("methods"):
        raise ParameterError("The experiment names no method. Add a table such as [methods.genetic].")
    for key in _NUMBERS:
        if key in table and not (isinstance(table[key], int | float) and table[key] > 0):
            raise ParameterError(f"'{key}' must be a positive number. Got {table[key]!r}.")
    suite = str(table.get("suite", "whitebox"))
    numbers = {key: float(table[key]) for key in _NUMBERS if key in table}
    methods = _methods(table["methods"])
    return Experiment(
        name,
        suite,
        methods,
        _tasks(_located(suite, folder), table.get("tasks", ["*"])),
        seeds=tuple(int(seed) for seed in table.get("seeds", [0])),
        noises=tuple(float(noise) for noise in table.get("noise", [0.0])),
        max_train_rows=int(table.get("max_train_rows", MAX_TRAIN_ROWS)),
        folder=folder,
        contrasts=_contrasts(table.get("contrasts", []), methods),
        **numbers,
    )


def _located(suite: str, folder: Path) -> str:
    return str((folder / suite).resolve()) if suite.endswith(".toml") else suite


def _methods(table: Mapping[str, Any]) -> tuple[MethodSpec, ...]:
    specs = []
    for label, options in table.items():
        if not isinstance(options, Mapping):
            raise ParameterError(f"[methods.{label}] must be a table of options. Got {options!r}.")
        dummies, with_units = options.get("dummies", 0), options.get("with_units", False)
        if not (isinstance(dummies, int) and dummies >= 0):
            raise ParameterError(f"'dummies' of [methods.{label}] must be a whole number from 0 on. Got {dummies!r}.")
        if not isinstance(with_units, bool):
            raise ParameterError(f"'with_units' of [methods.{label}] must be true or false. Got {with_units!r}.")
        rest = {key: value for key, value in options.items() if key not in ("method", "dummies", "with_units")}
        specs.append(MethodSpec(label, str(options.get("method", label)), rest, dummies, with_units))
    return tuple(specs)


def _contrasts(pairs: Any, methods: Sequence[MethodSpec]) -> tuple[tuple[str, str], ...]:
    labels = {spec.label for spec in methods}
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and set(pair) <= labels):
            raise ParameterError(f"'contrasts' must hold pairs of methods of the experiment. Got {pair!r}.")
    return tuple((str(a), str(b)) for a, b in pairs)


def _tasks(suite: str, patterns: list[str]) -> tuple[str, ...]:
    names = suite_tasks(suite)
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise ParameterError(f"'tasks' has '{pattern}', which no task of the suite '{suite}' matches.")
    return tuple(name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
