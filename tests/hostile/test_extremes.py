"""Numbers at the ends of what floats hold, and what is said where they cannot hold more."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from places import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks.ulp import RANGES, errors

import sobolev_novelty as sn
from sobolev_novelty import kernels
from sobolev_novelty.algebra.terms import additive_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.tangent import tangent_frame
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.kernels import evaluate as evaluation, numpy_kernel
from sobolev_novelty.kernels.program import compile_programs
from sobolev_novelty.lab.turbulence.selecting.data import FlowConditions
from sobolev_novelty.lab.turbulence.solving.foam_case import FoamCase, write_case
from sobolev_novelty.report.streaming.accumulator import NoveltyAccumulator

X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 2))
needs_extended = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp, reason="this machine has no floats of a wider range"
)


@pytest.mark.parametrize(
    "text", ["1e13*x0 - 1e13*x0 + x0", "x0 + 1e13*x0 - 1e13*x0", "1e13*x0 + x0 - 1e13*x0", "(1e13 + 1)*x0 - 1e13*x0"]
)
def test_whole_numbers_cancel_exactly(text: str) -> None:
    (term,) = additive_terms(sn.parse(text)).terms
    assert (term.coefficient, str(term.expression)) == (1.0, "x0")


@pytest.mark.parametrize("text", ["0.1*x0 + 0.2*x0 - 0.3*x0", "x0/3 + x0/3 + x0/3 - x0", "7*x0 - 10*(0.7*x0)"])
def test_what_rounding_leaves_of_fractions_is_not_a_term(text: str) -> None:
    assert additive_terms(sn.parse(text)).terms == ()


@needs_extended
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("intercept", ["term", "free"])
@pytest.mark.parametrize("units", [(1e150, 1e150), (1e-150, 1e-150), (1e150, 1e-150)], ids=str)
@pytest.mark.parametrize("text", ["x0 + 1/x1**2", "1/x0**2 + x1", "x0*x1 + 1/x0**2 + 3", "x0/x1 + sqrt(x1)"])
def test_slopes_beyond_the_range_of_floats_count_as_in_other_units(
    text: str, units: tuple[float, float], intercept: str, order: int
) -> None:
    found = sn.novelty(text, X * units, order=order, intercept=intercept)
    expected = sn.novelty(text, X, order=order, intercept=intercept)
    np.testing.assert_allclose(found.nu, expected.nu, rtol=1e-9)
    assert found.n_used == len(X)
    words = [[v.distinct for v in report.verdicts] for report in (found, expected)]
    assert words[0] == words[1]
    np.testing.assert_allclose(found.views["tangent"], expected.views["tangent"], rtol=1e-9)
    assert not [note for note in found.notes if "smaller than floats" in note]


@needs_extended
def test_many_equations_and_one_have_the_same_novelty_in_such_units() -> None:
    texts = ["x0 + 1/x1**2", "x0*x1 + 1/x0**2"]
    for text, found in zip(texts, sn.novelties(texts, 1e150 * X), strict=True):
        np.testing.assert_allclose(found.nu, sn.novelty(text, X).nu, rtol=1e-9)


def test_a_value_that_is_not_finite_is_not_made_finite_by_a_wider_range() -> None:
    assert sn.novelty("x0 + 1/x1**2", 1e-200 * X).n_used == 0  # 1e400
    assert not np.isfinite(sn.evaluate("1/x1**2", 1e-200 * X)).any()


def test_slopes_that_underflow_are_named_where_there_is_no_wider_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "EXTENDED", np.float64)
    report = sn.novelty("x0 + 1/x1**2", 1e150 * X)
    assert [note for note in report.notes if "term 1 along 'x1' is smaller than floats can be" in note]
    assert not [note for note in sn.novelty("x0 + 1/x1**2", X).notes if "smaller than floats" in note]
    np.testing.assert_allclose(sn.novelty("1/x0 + x1", 1e150 * X).nu, sn.novelty("1/x0 + x1", X).nu, rtol=1e-9)


def test_a_column_without_entries_is_not_called_constant() -> None:
    table = X.copy()
    table[:, 1] = np.nan
    report = sn.novelty("x0 + x0**2", table)
    assert "Column 'x1' has no finite entry: it carries no information." in report.notes
    assert "constant" not in " ".join(report.notes)
    assert not tangent_frame(as_sample(table)).is_lower
    streamed = NoveltyAccumulator("x0 + x0**2")
    streamed.update(table)
    assert "Column 'x1' has no finite entry: it carries no information." in streamed.report().notes


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_both_kernels_agree_on_what_is_finite_up_to_the_largest_floats(name: str, order: int) -> None:
    rng = np.random.default_rng(1)
    powers = 10.0 ** rng.uniform(-320, 308, 300)
    ends = [0.0, -0.0, 1.0, -1.0, 709.7, 709.8, 710.5, -745.2, 1e308, 1.7e308, -1e308, 5e-324]
    x = np.concatenate([powers, -powers, ends])
    data = np.array([x, rng.permutation(x)])
    programs = compile_programs([Expression.of(name, *["x0", "x1"][: OPERATORS[name].arity])], ("x0", "x1"))
    with np.errstate(all="ignore"):
        found = kernels.derivatives(programs, data, order)
        expected = numpy_kernel.derivatives(programs, data, order)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


def test_numbers_of_numpy_are_written_as_numbers_into_openfoam_dictionaries(tmp_path: Path) -> None:
    nodes = np.stack(np.meshgrid(np.linspace(0.0, 1.0, 4), np.linspace(0.0, 1.0, 4)), axis=-1)
    conditions = FlowConditions(np.float64(5e-06), np.float64(1.25))
    case = FoamCase(nodes, "kEpsilon", conditions, alpha=np.float64(0.5), tolerance=np.float64(1e-7))
    write_case(tmp_path, case)
    texts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in texts if "np." in text or "float64" in text]
    assert re.search(r"nu 5e-06;", "".join(texts))


@pytest.mark.parametrize("name", RANGES)
def test_every_function_of_the_kernel_is_right_to_four_units_of_the_last_place(name: str) -> None:
    assert errors(name, 200).max() <= 4.0
