"""Arrays made from repository checkouts: structure recovered from an OpenFOAM mesh, interpolation, sums."""

from __future__ import annotations

import dataclasses
import hashlib
import io
from importlib import resources

import numpy as np
import pytest

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.turbulence.selecting import data as hill, prepare as preparation
from sobolev_novelty.lab.turbulence.selecting.data import FlowConditions, MeshVelocity
from sobolev_novelty.lab.turbulence.selecting.prepare import interpolate, prepare, structured_mesh
from sobolev_novelty.lab.turbulence.solving.foam_case import FoamCase, write_case
from sobolev_novelty.lab.turbulence.solving.mesh import build_mesh
from turbulence_samples import needs_dns


def wavy(n_rows: int = 7, n_columns: int = 9) -> np.ndarray:
    x = np.linspace(0, 4, n_columns + 1)
    floor = 0.2 * np.cos(np.pi * x / 2)
    s = np.linspace(0, 1, n_rows + 1)[:, None] ** 1.5
    return np.stack([np.broadcast_to(x, (n_rows + 1, n_columns + 1)), floor + s * (2 - floor)], axis=-1)


def test_structure_is_recovered_from_a_written_mesh(tmp_path):
    write_case(tmp_path, FoamCase(wavy(), "kEpsilon", FlowConditions(0.1, 1.0)))
    cells, nodes = structured_mesh(tmp_path / "constant" / "polyMesh")
    np.testing.assert_array_equal(cells, np.arange(63).reshape(7, 9))
    np.testing.assert_array_equal(nodes, wavy())


def test_interpolation_is_exact_for_fields_linear_in_height_that_vanish_on_the_walls():
    x, y = np.meshgrid(np.linspace(0, 4, 11), np.linspace(0, 2, 9))
    nodes = np.stack([x, y], axis=-1)
    height = build_mesh(nodes).centres[:, 1].reshape(8, 10, 1)
    values = np.minimum(height, 2 - height)
    points = np.random.default_rng(0).uniform((0, 0), (4, 0.85), (50, 2))
    np.testing.assert_allclose(interpolate(values, nodes, points)[:, 0], points[:, 1], atol=1e-12)


@needs_dns
def test_dns_on_the_rans_mesh_is_the_stored_one():
    dns, stored = hill.load_dns(mesh="xiao"), hill.load_dns()
    found = interpolate(dns.U, dns.nodes, build_mesh(stored.nodes).centres).reshape(stored.U.shape)
    # Triangulations of the same points may differ in a few cells.
    assert np.sqrt(np.mean((found - stored.U) ** 2)) < 1e-5 * 0.028 * 10
    np.testing.assert_allclose(found, stored.U, atol=2e-3 * 0.028)


def test_a_whole_checkout_gives_the_stored_arrays(tmp_path, monkeypatch):
    """A checkout is rebuilt from the stored arrays, with every other point of the base flow in place of the DNS."""
    base, data = hill.load_base_flow(), hill.load_regression()
    dns = MeshVelocity(base.nodes[::2, ::2], base.U[::2, ::2])
    first, second = tmp_path / "DSRRANS", tmp_path / "xiao"
    dataset = first / preparation._DATASET
    dataset.mkdir(parents=True)
    order = data.structured_cell.ravel()
    np.save(dataset / "case_0p8_Lambda.npy", np.pad(data.invariants, ((0, 0), (0, 3))))
    np.save(dataset / "case_0p8_nonLinearRShat.npy", data.target)
    fields = {"U": base.U, "k": base.k, "epsilon": base.epsilon, "nut": base.nut, "p": base.p}
    write_case(tmp_path / "a", FoamCase(base.nodes, "kEpsilon", start=fields))
    write_case(tmp_path / "b", FoamCase(dns.nodes, "kEpsilon", start={"U": dns.U}))
    for source, target in (
        (tmp_path / "a" / "0", first / preparation._FIELDS),
        (tmp_path / "a" / "constant" / "polyMesh", first / preparation._MESH),
        (tmp_path / "b" / "0", second / preparation._XIAO / "0"),
        (tmp_path / "b" / "constant" / "polyMesh", second / preparation._XIAO / "constant" / "polyMesh"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    folder = second / preparation._XIAO / "0"
    (folder / "U").rename(folder / "UDNS")
    rows = "\n".join(["(1 2 0 3 0 4)"] * dns.U[..., 0].size)
    (folder / "TauDNS").write_text(
        f"internalField nonuniform List<symmTensor> {dns.U[..., 0].size} (\n{rows}\n);\nboundaryField {{}}"
    )
    with pytest.raises(DataError, match="has sha256"):
        prepare(first, second, tmp_path / "turbulence")
    sums = {name: hashlib.sha256((first / name).read_bytes()).hexdigest() for name in preparation.SOURCE_CHECKSUMS}
    monkeypatch.setattr(preparation, "SOURCE_CHECKSUMS", sums)
    prepare(first, second, tmp_path / "turbulence")
    made = hill.load_base_flow(tmp_path / "turbulence")
    np.testing.assert_array_equal(made.U, base.U)
    regression = hill.load_regression(tmp_path / "turbulence")
    np.testing.assert_array_equal(regression.target, data.target)
    # Here the case was written in structured order, the stored tensors are in the repository's.
    np.testing.assert_allclose(regression.tensors, data.tensors[order], atol=1e-9)
    np.testing.assert_array_equal(hill.load_dns(tmp_path / "turbulence", mesh="xiao").U, dns.U)


def test_a_missing_checkout_is_named(tmp_path):
    with pytest.raises(DataError, match="Give the root of a full checkout"):
        prepare(tmp_path, tmp_path, tmp_path / "out")


@needs_dns
def test_the_data_of_the_package_are_those_prepared_from_the_repositories():
    folder = hill.data_folder()
    shipped, prepared = hill.load_regression(), hill.load_regression(folder)
    for name in ("invariants", "tensors", "target", "structured_cell"):
        np.testing.assert_array_equal(getattr(shipped, name), getattr(prepared, name))
    for mine, theirs in zip(
        dataclasses.astuple(hill.load_base_flow()), dataclasses.astuple(hill.load_base_flow(folder)), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_the_data_of_the_package_hold_no_dns_field_and_come_with_their_notice():
    files = resources.files("sobolev_novelty.lab.turbulence.selecting") / "data_files"
    assert {file.name for file in files.iterdir()} == {
        "NOTICE",
        "base_flow_case_0p8.npz",
        "closures_published.json",
        "regression_case_0p8.npz",
    }
    notice = (files / "NOTICE").read_text()
    assert "Copyright (c) 2023 thw1021" in notice and "Permission is hereby granted" in notice
    with np.load(io.BytesIO((files / "base_flow_case_0p8.npz").read_bytes()), allow_pickle=False) as arrays:
        assert not [name for name in arrays.files if "dns" in name]
