"""OpenFOAM: cases that can be written and read anywhere, runs where simpleFoam is installed."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import pytest

from sobolev_novelty.core.progress import Progress, Step
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import FlowConditions, MeshVelocity
from sobolev_novelty.lab.turbulence.selecting.tensors import TensorTerm
from sobolev_novelty.lab.turbulence.solving import openfoam
from sobolev_novelty.lab.turbulence.solving.foam_case import FoamCase, read_field, write_case
from sobolev_novelty.lab.turbulence.solving.openfoam import (
    OpenFoamError,
    OpenFoamSolver,
    build_library,
    run_case,
)
from sobolev_novelty.lab.turbulence.studying.measures import measure
from turbulence_samples import needs_dns

HAS_SOLVER = shutil.which(openfoam.SOLVER) is not None
needs_foam = pytest.mark.skipif(not HAS_SOLVER, reason="OpenFOAM is not installed: apt-get install openfoam")
needs_library = pytest.mark.skipif(
    not HAS_SOLVER or not (openfoam._library_path().is_file() or "SOBOLEV_FOAM_SOURCE" in os.environ),
    reason="the closure library cannot be built: set SOBOLEV_FOAM_SOURCE to OpenFOAM's unpacked source",
)


def channel_nodes(n_rows: int = 10, n_columns: int = 6) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(0, 3, n_columns + 1), np.linspace(0, 2, n_rows + 1))
    return np.stack([x, y], axis=-1)


def test_a_written_field_reads_back(tmp_path):
    U = np.random.default_rng(0).normal(size=(10, 6, 2))
    k = np.random.default_rng(1).uniform(size=(10, 6))
    write_case(tmp_path, FoamCase(channel_nodes(), "kEpsilon", FlowConditions(0.1, 1.0), start={"U": U, "k": k}))
    np.testing.assert_array_equal(read_field(tmp_path / "0" / "U", (10, 6)), U)
    np.testing.assert_array_equal(read_field(tmp_path / "0" / "k", (10, 6)), k)
    np.testing.assert_array_equal(read_field(tmp_path / "0" / "epsilon", (10, 6)), 1.5e-12)
    with pytest.raises(DataError, match="holds 60 cells, the mesh 70"):
        read_field(tmp_path / "0" / "k", (10, 7))


def test_the_mesh_has_upper_triangular_order(tmp_path):
    write_case(tmp_path, FoamCase(channel_nodes(), "kOmegaSST", FlowConditions(0.1, 1.0)))
    folder = tmp_path / "constant" / "polyMesh"

    def labels(name: str) -> np.ndarray:
        body = (folder / name).read_text().split("(", 1)[1]
        return np.array([int(v) for v in re.findall(r"\d+", body)])

    owner, neighbour = labels("owner"), labels("neighbour")
    pairs = list(zip(owner, neighbour))
    assert pairs == sorted(pairs)
    assert (neighbour > owner[: len(neighbour)]).all()


def test_a_closure_travels_through_the_dictionary(tmp_path):
    closure = Closure((TensorTerm(1, 3, 2),), (-0.25,))
    write_case(
        tmp_path, FoamCase(channel_nodes(), "sobolevClosure", FlowConditions(0.1, 1.0), closure=closure, alpha=0.7)
    )
    text = (tmp_path / "constant" / "turbulenceProperties").read_text()
    assert "(1 3 2 -0.25)" in text
    assert "alpha1 0.7" in text


def test_misuse_is_named(tmp_path):
    with pytest.raises(DataError, match="'model' must be one of"):
        write_case(tmp_path, FoamCase(channel_nodes(), "laminar", FlowConditions(0.1, 1.0)))
    with pytest.raises(DataError, match="needs a 'closure'"):
        write_case(tmp_path, FoamCase(channel_nodes(), "sobolevClosure", FlowConditions(0.1, 1.0)))


def test_building_without_source_says_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SOBOLEV_FOAM_SOURCE", raising=False)
    with pytest.raises(OpenFoamError, match="apt-get source"):
        build_library()


def test_a_missing_solver_is_reported(monkeypatch):
    monkeypatch.setattr(openfoam.shutil, "which", lambda name: None)
    with pytest.raises(OpenFoamError, match="simpleFoam is not on the PATH"):
        run_case(FoamCase(channel_nodes(), "kEpsilon"))


def test_a_run_tells_its_iterations_and_reads_what_the_solver_wrote(tmp_path, monkeypatch):
    """A script in place of simpleFoam: two iterations, after which the start fields are the result."""
    script = tmp_path / "simpleFoam"
    script.write_text(
        """#!/bin/sh
for i in 1 2; do
  echo "Time = $i"
  echo "smoothSolver:  Solving for Ux, Initial residual = 0.0$i, Final residual = 1e-9, No Iterations 2"
done
echo "Pressure gradient source: uncorrected Ubar = 1, pressure gradient = 0.5"
echo "SIMPLE solution converged in 2 iterations"
cp -r "$2/0" "$2/2"
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    told: list[Progress] = []
    result = run_case(FoamCase(channel_nodes(), "kEpsilon", FlowConditions(0.1, 3.0), n_iterations=8), told.append)
    assert told == [Step(1, 8, "residual 1.0e-02"), Step(2, 8, "residual 2.0e-02")]
    np.testing.assert_array_equal(result.U[..., 0], np.full((10, 6), 3.0))
    assert (result.is_converged, result.n_steps, result.force, result.residual) == (True, 2, 0.5, 0.02)


@pytest.mark.openfoam
@needs_foam
def test_the_converged_base_flow_is_a_fixed_point_of_the_generated_case():
    base = hill.load_base_flow()
    start = {"U": base.U, "p": base.p, "k": base.k, "epsilon": base.epsilon, "nut": base.nut}
    case = FoamCase(base.nodes, "kEpsilon", start=start, n_iterations=60)
    result = run_case(case)
    found = measure(MeshVelocity(base.nodes, result.U))
    np.testing.assert_allclose([found.reattachment, found.max_reversed], [3.70, 4.14e-3], rtol=2e-3)
    np.testing.assert_allclose(result.U, base.U, atol=2e-4 * 0.028)


@pytest.mark.openfoam
@pytest.mark.slow
@needs_foam
@needs_dns
def test_k_omega_sst_from_a_generated_case_gives_the_rans_row():
    nodes = hill.load_dns(mesh="xiao").nodes
    conditions = FlowConditions(mean_velocity=0.020188, forced_zone="volume")
    result = run_case(FoamCase(nodes, "kOmegaSST", conditions, n_iterations=10_000, tolerance=1e-6))
    assert result.is_converged, result.status
    found = measure(MeshVelocity(nodes, result.U))
    np.testing.assert_allclose([found.reattachment, found.max_reversed], [7.36, 5.81e-3], rtol=5e-3)


@pytest.mark.openfoam
@pytest.mark.slow
@needs_library
def test_openfoam_and_the_embedded_solver_agree_on_the_published_closure():
    from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver

    base = hill.load_base_flow()
    results = [cls(base).solve(hill.load_published(), 0.7) for cls in (EmbeddedSolver, OpenFoamSolver)]
    mine, foam = (measure(MeshVelocity(base.nodes, result.U)) for result in results)
    assert all(result.is_converged for result in results), os.linesep.join(result.status for result in results)
    np.testing.assert_allclose(
        [mine.reattachment_interpolated, mine.max_reversed],
        [foam.reattachment_interpolated, foam.max_reversed],
        rtol=1e-3,
    )
    np.testing.assert_allclose([foam.reattachment_interpolated, foam.max_reversed], [4.95, 4.82e-3], rtol=5e-3)
