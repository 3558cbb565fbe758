"""Responses, refinement, feedback, figures and tables, on a small made-up flow."""

from __future__ import annotations

import numpy as np
import pytest

from places import ROOT
from sobolev_novelty.core.progress import Progress
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import BaseFlow, FlowConditions, MeshVelocity, RegressionData
from sobolev_novelty.lab.turbulence.selecting.feedback import FeedbackSolver
from sobolev_novelty.lab.turbulence.selecting.selection import Greedy, SobolevGuided, forward
from sobolev_novelty.lab.turbulence.selecting.tensors import TensorTerm, dictionary
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver
from sobolev_novelty.lab.turbulence.solving.problem import closure_problem
from sobolev_novelty.lab.turbulence.solving.response import (
    linear_response,
    refine,
    response_data,
    response_path,
    velocity_weight,
)
from sobolev_novelty.lab.turbulence.solving.solvers import FlowSolver, make_solver
from sobolev_novelty.lab.turbulence.studying import figures
from sobolev_novelty.lab.turbulence.studying.tables import END, START, all_tables, refresh_page
from turbulence_samples import synthetic

TRUTH = Closure((TensorTerm(1, 0, 0), TensorTerm(0, 1, 0)), (0.05, 0.06), "truth")


@pytest.fixture(scope="module")
def solver() -> EmbeddedSolver:
    """A wavy channel with a converged laminar flow as base; nut and k are made up."""
    n_rows, n_columns = 14, 16
    x = np.linspace(0, 4, n_columns + 1)
    floor = 0.15 * np.cos(np.pi * x / 2)
    s = np.linspace(0, 1, n_rows + 1)[:, None]
    nodes = np.stack([np.broadcast_to(x, (n_rows + 1, n_columns + 1)), floor + s * (2 - floor)], axis=-1)
    one = np.ones((n_rows, n_columns))
    U = np.stack([one, 0 * one], axis=-1)
    conditions = FlowConditions(viscosity=0.02, mean_velocity=1.0, forced_zone="volume")
    flow = EmbeddedSolver(BaseFlow(nodes, U, one, one, 0.02 * one, 0 * one), conditions).solve()
    assert flow.is_converged, flow.status
    base = BaseFlow(nodes, flow.U, 0.3 * one, one, 0.02 * one, flow.p)
    return EmbeddedSolver(base, conditions)


@pytest.fixture(scope="module")
def data(solver: EmbeddedSolver) -> RegressionData:
    """Targets that the truth produces on the base flow."""
    state = solver.base_tensors
    cells = np.arange(solver.mesh.n_cells, dtype=np.int32).reshape(solver.mesh.shape)
    target = TRUTH.evaluate(np.tanh(state.invariants / 2), state.tensors)
    return RegressionData(state.invariants, state.tensors, target, cells)


def test_the_linear_response_is_the_derivative_of_the_solver(solver):
    stress = solver.stress(TRUTH, 1.0)
    flow = solver.solve_stress(stress, tolerance=1e-11)
    h = 1e-4
    plus, minus = (solver.solve_stress((1 + sign * h) * stress, tolerance=1e-11).U for sign in (1, -1))
    difference = velocity_weight(solver) * np.moveaxis((plus - minus) / (2 * h), 2, 0).ravel()
    response = linear_response(solver, flow, stress)(stress)
    np.testing.assert_allclose(response, difference, atol=2e-3 * np.abs(difference).max())


@pytest.mark.parametrize("rule", [Greedy(), SobolevGuided()])
def test_selection_by_response_finds_the_terms_that_made_the_target(solver, data, rule):
    responses = response_data(solver, data, dictionary(2))
    path, problem = response_path(responses, data, rule, [1, 2], n_folds=4)
    place = path.choose(1e4, 10.0)
    assert path.counts[place] == 2
    closure = problem.closure(path.indices[place], "found")
    assert {str(term) for term in closure.terms} == {str(term) for term in TRUTH.terms}
    np.testing.assert_allclose(sorted(closure.coefficients), sorted(TRUTH.coefficients), rtol=1e-6)
    with pytest.raises(ParameterError, match="No term count keeps"):
        path.choose(0.5, 10.0)


def test_refinement_brings_the_flow_to_the_target(solver):
    target = solver.solve(TRUTH)
    start = Closure(TRUTH.terms, (0.0, 0.0), "start")
    closure, distances = refine(solver, start, target, n_steps=3, max_coefficient=1.0)
    assert distances[-1] < 1e-3 * distances[0]
    np.testing.assert_allclose(closure.coefficients, TRUTH.coefficients, rtol=1e-3)
    bounded, _ = refine(solver, start, target, n_steps=2, max_coefficient=0.02)
    assert max(abs(c) for c in bounded.coefficients) <= 0.02 + 1e-9


def test_solvers_and_responses_tell_how_far_they_are(solver, data):
    told: list[Progress] = []
    n_steps = solver.solve(TRUTH, on_progress=told.append).n_steps
    assert [step.done for step in told] == list(range(1, n_steps + 1))
    assert told[-1].note.startswith("load 1, residual ")
    told.clear()
    FeedbackSolver(solver.base, solver.conditions, max_steps=2).solve(TRUTH, on_progress=told.append)
    assert (told[0].done, told[0].total) == (1, 2) and told[0].note.startswith("stress change ")
    told.clear()
    response_data(solver, data, dictionary(1), told.append)
    assert [(step.done, step.total) for step in told] == [(k, 9) for k in range(1, 10)]


def test_feedback_converges_for_a_weak_closure_and_says_so(solver):
    feedback = FeedbackSolver(solver.base, solver.conditions, relaxation=0.7, max_steps=40)
    weak = Closure((TensorTerm(1, 0, 0),), (0.01,))
    result = feedback.solve(weak)
    assert result.is_converged, result.status
    assert result.residual < 1e-3
    hasty = FeedbackSolver(solver.base, solver.conditions, max_steps=1)
    assert "not converged" in hasty.solve(TRUTH).status


def test_an_implicit_part_alone_equals_the_frozen_eddy_viscosity(solver):
    feedback = FeedbackSolver(solver.base, solver.conditions)
    factor, stress = feedback.update(Closure((TensorTerm(0, 0, 0),), (0.09,)), 1.0, solver.base.U.reshape(-1, 2))
    np.testing.assert_allclose(factor, 0.5)
    np.testing.assert_array_equal(stress, 0)


def test_every_solver_has_the_same_face(solver):
    for name in ("embedded", "openfoam"):
        assert isinstance(make_solver(name, solver.base), FlowSolver)
    with pytest.raises(ParameterError, match="'solver' must be one of embedded, feedback, openfoam"):
        make_solver("magic", solver.base)


def test_the_stream_function_closes_on_the_upper_wall(solver):
    _, _, psi = figures.stream_function(MeshVelocity(solver.base.nodes, solver.base.U))
    np.testing.assert_allclose(psi[-1], psi[-1].mean(), rtol=0.02)
    np.testing.assert_array_equal(psi[0], 0)


def test_figures_are_drawn(solver, tmp_path):
    fields = {name: MeshVelocity(solver.base.nodes, solver.base.U) for name in ("DNS", "RANS", "closure")}
    problem = closure_problem(synthetic(), dictionary(3))
    paths = [forward(problem, 6, rule) for rule in (Greedy(), SobolevGuided())]
    drawn = [
        figures.velocity_fields(fields),
        figures.streamlines(fields, {"DNS": 1.0, "RANS": float("nan")}),
        figures.velocity_profiles(fields),
        figures.wall_shear_curves(fields),
        figures.selection_curves(paths, {"greedy": {2: 0.1, 4: 0.05}}),
    ]
    for number, figure in enumerate(drawn):
        figure.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5000


def test_the_page_shows_the_stored_runs():
    text = all_tables(ROOT / "experiments", ROOT / "results" / "turbulence")
    page = (ROOT / "docs" / "turbulence.md").read_text()
    assert text in page


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(DataError, match="lacks the marks"):
        refresh_page(page, "x")
    page.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    refresh_page(page, "new")
    assert page.read_text() == f"before\n{START}\n\nnew\n\n{END}\nafter\n"
