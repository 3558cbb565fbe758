"""Everyday tables: a design that a seed fixes, noise of the size it says, a judge that knows a law in other words."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.yardstick import Measured, is_found, is_same_form, law_error
from sobolev_novelty.lab.bench.problems.everyday import (
    EVERYDAY,
    IDLE,
    NOISES,
    ROWS,
    SETTINGS,
    drawn_table,
    everyday_task,
    everyday_tasks,
)
from sobolev_novelty.lab.bench.problems.suites import suite_tasks, task_data
from sobolev_novelty.lab.bench.problems.tasks import formula_tasks, whitebox_tasks
from sobolev_novelty.language.parsing import parse

TASKS = everyday_tasks("everyday")


def test_the_halves_share_no_law_and_have_1200_tables_each():
    built, held = ({task.law.name for task in everyday_tasks(suite)} for suite in EVERYDAY)
    assert not built & held
    assert len(built) + len(held) >= 40
    for suite in EVERYDAY:
        assert sum(task.n_rows in ROWS for task in everyday_tasks(suite)) == 1200
        assert len(set(suite_tasks(suite))) == len(suite_tasks(suite))


def test_every_level_of_every_factor_is_drawn_about_equally_often():
    drawn = [task for task in TASKS if task.n_rows in ROWS]
    for factor, levels in (("noise", NOISES), ("n_rows", ROWS), ("n_idle", IDLE), ("setting", SETTINGS)):
        counts = Counter(getattr(task, factor) for task in drawn)
        assert set(counts) == set(levels)
        assert min(counts.values()) > 0.7 * len(drawn) / len(levels)


def test_no_law_is_in_another_suite(request):
    others = {str(task.positional_expression) for task in whitebox_tasks()}
    folder = request.config.rootpath / "experiments" / "formulas"
    others |= {str(task.positional_expression) for path in folder.glob("*.toml") for task in formula_tasks(path)}
    own = {str(task.law.positional_expression) for suite in EVERYDAY for task in everyday_tasks(suite)}
    assert not own & others


def test_a_table_is_a_function_of_its_name_and_the_seed():
    task = TASKS[7]
    first, again, other = drawn_table(task, 0), drawn_table(task, 0), drawn_table(task, 1)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize("task", TASKS[::61], ids=lambda task: task.name)
def test_noise_has_the_size_that_the_judge_is_told(task):
    table = drawn_table(task, 0)
    law = task.law.expression.rename({name: f"x{k}" for k, name in enumerate(table.columns)})
    z = (table.y - evaluate(law, table.X)) / table.sigma
    assert abs(np.mean(z**2) - 1.0) < 5.0 * np.sqrt(2.0 / len(z))
    np.testing.assert_allclose(evaluate(law, table.X_test), table.y_test)


def test_levels_are_few_and_replicates_repeat_whole_rows():
    levels = drawn_table(next(t for t in TASKS if t.setting == "levels" and t.n_rows == 250), 0)
    assert max(len(np.unique(column)) for column in levels.X.T) <= 8
    again = drawn_table(next(t for t in TASKS if t.setting == "replicates" and t.n_rows == 250), 0)
    assert 250 / 5 <= len(np.unique(again.X, axis=0)) <= 250 / 3 + 1


def test_a_suite_of_tables_brings_its_own_noise():
    name = suite_tasks("everyday")[0]
    part = task_data(name, 0, suite="everyday")
    assert part.truth is not None
    assert len(part.y_test) == 1000
    with pytest.raises(ParameterError, match="noise of their own"):
        task_data(name, 0, suite="everyday", noise=0.1)
    with pytest.raises(ParameterError, match="has no table 'tide'"):
        everyday_task("everyday", "tide")


@pytest.mark.parametrize(
    ("found", "law", "is_same"),
    [
        ("1/(0.2 + 0.7/x0)", "5*x0/(3 + x0)", True),
        ("x0*(1.5 - 0.2*x0) + 1", "2 + 4*x0 - x0**2", True),
        ("exp(1.2 - 0.4*x0)", "7*exp(-0.9*x0)", True),
        ("2.1*sin(x0)*cos(x0)", "3*sin(2*x0)", True),
        ("5*x0/(3 + x0) + 0.01*x0", "5*x0/(3 + x0)", False),
        ("5*tanh(x0)", "5*x0/(3 + x0)", False),
        ("x0*x1", "x0", False),
    ],
)
def test_a_law_is_known_in_other_words_and_with_other_constants(found, law, is_same):
    X = np.random.default_rng(0).uniform(0.5, 3.0, (300, 2))
    assert is_same_form(parse(found), parse(law), X) is is_same


def test_a_law_far_from_its_constants_is_not_found():
    law, X = parse("3*x0"), np.linspace(1.0, 2.0, 100)[:, None]
    truth = evaluate(law, X)
    for text, is_it in (("3.01*x0", True), ("3.5*x0", False)):
        error = law_error(parse(text), X, truth, is_relative=False, spread=float(np.std(truth)))
        assert is_found(parse(text), law, X, error, noise=0.1, n_rows=25) is is_it


def test_a_law_is_learnable_until_an_imitation_describes_the_rows_better():
    rng = np.random.default_rng(1)
    for high, is_it in ((6.0, True), (0.3, False)):
        X = rng.uniform(0.0, high, (60, 1))
        y = 2.0 * np.sin(X[:, 0]) + 0.05 * rng.normal(size=60)
        known = Measured(X, y, lambda values: np.full(len(values), 0.05))
        law, *others = (known.yardstick(parse(text)) for text in ("2*sin(x0)", "2*x0", "x0**2"))
        assert (law < min(others)) is is_it
