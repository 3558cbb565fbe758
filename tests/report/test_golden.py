"""Numbers of the paper, re-made. ``golden/*.json`` give place, value, tolerance and command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from places import TESTS
from sobolev_novelty.lab.bench.problems.tasks import Task, whitebox_tasks
from sobolev_novelty.language.parsing import parse

GOLDEN = json.loads((TESTS / "golden" / "ground_truth_row.json").read_text(encoding="utf-8"))


def ground_truth_row(inputs_of: Callable[[Task], np.ndarray]) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Counts over the multi-term truths, and the terms that fail, by task."""
    multi_term, terms, qualified = 0, 0, 0
    failing: dict[str, list[str]] = {}
    for task in whitebox_tasks():
        report = sn.novelty(task.expression, inputs_of(task), names=task.variables)
        if len(report) < 2:
            continue
        assert report.status is sn.Status.OK, task.name
        multi_term += 1
        terms += len(report)
        qualified += int(report.qualified.sum())
        low = [label for label, passes in zip(report.labels, report.qualified, strict=True) if not passes]
        if low:
            failing[task.name] = low
    counts = {
        "tasks": len(whitebox_tasks()),
        "multi_term_expressions": multi_term,
        "terms": terms,
        "qualified": qualified,
    }
    return counts, failing


def assert_golden(row: tuple[dict[str, int], dict[str, list[str]]]) -> None:
    counts, failing = row
    assert counts == GOLDEN["value"]
    assert set(failing) == set(GOLDEN["failing"])
    for task, expected in GOLDEN["failing"].items():
        if isinstance(expected, int):
            assert len(failing[task]) == expected
        else:
            assert [parse(label) for label in sorted(failing[task])] == [parse(label) for label in sorted(expected)]


@pytest.mark.parametrize("seed", GOLDEN["seeds"])
def test_the_ground_truth_row_from_the_projects_own_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert_golden(ground_truth_row(lambda task: task.sample(GOLDEN["n_samples"], rng)[0]))


def test_the_ground_truth_row_on_the_published_samples(shared_data: Path) -> None:
    assert_golden(ground_truth_row(lambda task: published_inputs(shared_data, task)))


def published_inputs(folder: Path, task: Task) -> np.ndarray:
    home = folder / ("pmlb" if task.system is not None else "feynman/sample2000")
    table = pd.read_csv(home / task.name / f"{task.name}.tsv.gz", sep="\t")
    return table[list(task.variables)].to_numpy()


@pytest.mark.parametrize(
    ("options", "qualified"), [({"coordinates": "raw"}, {89}), ({"order": 0}, {83, 84, 85})], ids=["raw", "values only"]
)
def test_other_conventions_give_other_counts(options: dict[str, object], qualified: set[int]) -> None:
    # What tells the conventions apart; the golden row would not notice a silent change of default otherwise.
    rng = np.random.default_rng(0)
    found = 0
    for task in whitebox_tasks():
        report = sn.novelty(task.expression, task.sample(1000, rng)[0], names=task.variables, **options)  # type: ignore[arg-type]
        found += int(report.qualified.sum()) if len(report) > 1 else 0
    assert found in qualified
