"""The embedded solver and the measures: exactness on easy flows, agreement with OpenFOAM on the real case."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.data import BaseFlow, FlowConditions, MeshVelocity
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver, flow_tensors
from sobolev_novelty.lab.turbulence.solving.mesh import build_mesh, build_operators, velocity_gradient
from sobolev_novelty.lab.turbulence.solving.newton import nested_dissection
from sobolev_novelty.lab.turbulence.studying.measures import measure, profiles, wall_shear
from turbulence_samples import needs_dns


def wavy_nodes(n_rows: int = 12, n_columns: int = 16, height: float = 0.1) -> np.ndarray:
    """A channel of length 4 and height 2 over a sine wall."""
    x = np.linspace(0, 4, n_columns + 1)
    floor = height * np.cos(np.pi * x / 2)
    s = np.linspace(0, 1, n_rows + 1)[:, None]
    return np.stack([np.broadcast_to(x, (n_rows + 1, n_columns + 1)), floor + s * (2 - floor)], axis=-1)


def laminar_base(nodes: np.ndarray, U: np.ndarray) -> BaseFlow:
    one = np.ones(U.shape[:2])
    return BaseFlow(nodes, U, one, one, 0 * one, 0 * one)


@pytest.fixture(scope="module")
def solver() -> EmbeddedSolver:
    return EmbeddedSolver(hill.load_base_flow())


def test_metric_closure_of_the_mesh():
    mesh = build_mesh(wavy_nodes())
    total = np.zeros((mesh.n_cells, 2))
    np.add.at(total, mesh.owner, mesh.S)
    np.add.at(total, mesh.neighbour, -mesh.S)
    np.add.at(total, mesh.wall_cell, mesh.wall_S)
    np.testing.assert_allclose(total, 0, atol=1e-14)
    np.testing.assert_allclose(mesh.volumes.sum(), 8.0, rtol=1e-2)


def test_gradient_is_second_order_inside():
    errors = []
    for n in (16, 32):
        mesh = build_mesh(wavy_nodes(n, n))
        x, y = mesh.centres.T
        U = np.stack([np.sin(np.pi * x / 2) * y**2, np.cos(np.pi * x / 2) * y], axis=1)
        g = velocity_gradient(U, mesh, build_operators(mesh)).reshape(n, n, 2, 2)[2:-2]
        exact = np.pi / 2 * (np.cos(np.pi * x / 2) * y**2).reshape(n, n)[2:-2]
        errors.append(np.abs(g[..., 0, 0] - exact).max())
    assert errors[1] < 0.35 * errors[0]


def test_plane_channel_gives_the_parabola():
    nodes = wavy_nodes(16, 8, height=0.0)
    y = build_mesh(nodes).centres.reshape(16, 8, 2)[..., 1]
    U = np.stack([np.ones_like(y), 0 * y], axis=-1)
    result = EmbeddedSolver(laminar_base(nodes, U), FlowConditions(0.1, 1.0, "volume")).solve()
    assert result.is_converged, result.status
    np.testing.assert_allclose(result.U[..., 0], 1.5 * y * (2 - y), atol=8e-3)
    np.testing.assert_allclose(result.U[..., 1], 0, atol=1e-9)


def test_conditions_that_no_flow_has_are_refused():
    with pytest.raises(ParameterError, match="'viscosity' must be positive. Got 0"):
        FlowConditions(viscosity=0)
    with pytest.raises(ParameterError, match="'forced_zone' must be 'crest' or 'volume'. Got 'inlet'"):
        FlowConditions(forced_zone="inlet")


def test_a_constant_stress_divergence_free_inside_changes_nothing_but_near_walls():
    nodes = wavy_nodes()
    U = np.zeros((12, 16, 2))
    U[..., 0] = 1.0
    solver = EmbeddedSolver(laminar_base(nodes, U), FlowConditions(0.05, 1.0))
    source = solver.system.stress_source(np.tile([0.3, -0.1, 0.2], (solver.mesh.n_cells, 1)))
    np.testing.assert_allclose(source.reshape(2, 12, 16)[:, 1:-1], 0, atol=1e-14)


def test_the_jacobian_is_the_derivative_of_the_residual():
    rng = np.random.default_rng(0)
    nodes = wavy_nodes()
    U = np.stack([1 + 0.1 * rng.normal(size=(12, 16)), 0.1 * rng.normal(size=(12, 16))], axis=-1)
    system = EmbeddedSolver(laminar_base(nodes, U), FlowConditions(0.05, 1.0)).system
    n = system.mesh.n_cells
    w, dw = rng.normal(size=(2, 3 * n))
    nothing = np.zeros((2, n))
    h = 1e-7
    difference = (
        system.linearise(w + h * dw, 0.1, nothing).residual - system.linearise(w - h * dw, 0.1, nothing).residual
    ) / (2 * h)
    np.testing.assert_allclose(system.jacobian(system.linearise(w, 0.1, nothing)) @ dw, difference, atol=1e-5)


def test_nested_dissection_is_a_permutation():
    for shape in ((80, 120), (5, 7), (1, 30)):
        assert sorted(nested_dissection(shape)) == list(range(shape[0] * shape[1]))


def test_a_mesh_that_is_not_periodic_is_refused():
    nodes = wavy_nodes()
    nodes[3, -1, 1] += 0.1
    with pytest.raises(DataError, match="periodic"):
        build_mesh(nodes)


def test_the_main_bubble_is_the_longest():
    nodes = wavy_nodes()
    U = np.ones((12, 16, 2))
    U[0, 3:8, 0] = -1.0
    U[0, 11, 0] = -2.0
    result = measure(MeshVelocity(nodes, U))
    x = build_mesh(nodes).centres.reshape(12, 16, 2)[0, :, 0]
    np.testing.assert_allclose([result.reattachment, result.separation, result.max_reversed], [x[8], x[3], 2.0])
    np.testing.assert_allclose(result.reattachment_interpolated, 0.5 * (x[7] + x[8]))
    assert result.n_bubbles == 2


def test_no_bubble_gives_nan():
    result = measure(MeshVelocity(wavy_nodes(), np.ones((12, 16, 2))))
    assert np.isnan(result.reattachment)


def test_wall_shear_has_the_sign_of_the_near_wall_velocity():
    nodes = wavy_nodes()
    U = np.zeros((12, 16, 2))
    U[0, :, 0] = np.where(np.arange(16) < 5, -1.0, 1.0)
    x, shear = wall_shear(MeshVelocity(nodes, U))
    assert x.shape == (16,)
    assert ((shear > 0) == (np.arange(16) >= 5)).all()


def test_profiles_interpolate_linearly():
    nodes = wavy_nodes(height=0.0)
    centres = build_mesh(nodes).centres.reshape(12, 16, 2)
    U = np.stack([centres[..., 1], 0 * centres[..., 1]], axis=-1)
    drawn = list(profiles(MeshVelocity(nodes, U), (0.0, 2.0)))
    assert [station for station, _, _ in drawn] == [0.0, 2.0]
    for _, y, values in drawn:
        np.testing.assert_allclose(values[:, 0], y)


@pytest.mark.parametrize(
    ("load", "reattachment", "reversed_velocity", "tolerance"),
    [
        pytest.param(lambda: hill.load_dns(mesh="xiao"), 5.28, 7.39e-3, 1e-3, marks=needs_dns, id="DNS"),
        pytest.param(lambda: hill.load_sst(mesh="xiao"), 7.36, 5.81e-3, 5e-3, marks=needs_dns, id="k-omega SST"),
        pytest.param(
            lambda: MeshVelocity(hill.load_base_flow().nodes, hill.load_base_flow().U),
            3.70,
            4.14e-3,
            2e-3,
            id="k-epsilon",
        ),
    ],
)
def test_stored_definitions_give_the_rows_of_the_table(load, reattachment, reversed_velocity, tolerance):
    result = measure(load())
    np.testing.assert_allclose(
        [result.reattachment, result.max_reversed], [reattachment, reversed_velocity], rtol=tolerance
    )


def test_recomputed_tensors_are_those_of_the_regression():
    base, data = hill.load_base_flow(), hill.load_regression()
    mesh = build_mesh(base.nodes)
    state = flow_tensors(base.U.reshape(-1, 2), (base.k / base.epsilon).ravel(), mesh, build_operators(mesh))
    order = data.structured_cell.ravel()
    np.testing.assert_allclose(state.invariants, data.invariants[order], rtol=1e-5)
    np.testing.assert_allclose(state.tensors, data.tensors[order], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closure", "alpha", "reattachment", "reversed_velocity"),
    [(None, 1.0, 3.655, 4.142e-3), ("dsrrans_model1", 0.7, 4.951, 4.820e-3)],
    ids=["base", "published closure"],
)
def test_the_embedded_solver_agrees_with_openfoam(solver, closure, alpha, reattachment, reversed_velocity):
    result = solver.solve(None if closure is None else hill.load_published(closure), alpha)
    assert result.is_converged, result.status
    found = measure(MeshVelocity(solver.base.nodes, result.U))
    np.testing.assert_allclose(
        [found.reattachment_interpolated, found.max_reversed], [reattachment, reversed_velocity], rtol=1e-3
    )


@pytest.mark.slow
def test_the_exact_target_bounds_what_this_base_can_reach(solver):
    data = hill.load_regression()
    result = solver.solve_stress(solver.stress_of(data.target[data.structured_cell.ravel()], 1.0))
    found = measure(MeshVelocity(solver.base.nodes, result.U), hill.load_dns() if hill.has_dns() else None)
    assert result.is_converged, result.status
    np.testing.assert_allclose([found.reattachment_interpolated, found.max_reversed], [4.894, 7.166e-3], rtol=5e-3)
    assert found.field_error < 0.03 or not hill.has_dns()


@needs_dns
def test_the_quoted_figures_of_the_dns_are_those_of_its_field():
    found = measure(hill.load_dns(mesh="xiao")).to_dict()
    np.testing.assert_allclose([found[name] for name in hill.DNS_MEASURES], list(hill.DNS_MEASURES.values()), rtol=1e-4)
