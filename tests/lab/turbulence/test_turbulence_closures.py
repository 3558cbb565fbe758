"""Closures, their prints, the data loader, the store and the tree search."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import squashed
from sobolev_novelty.lab.turbulence.selecting.tensors import (
    TensorTerm,
    channel_arrays,
    dictionary,
    monomials,
    term_arrays,
)
from sobolev_novelty.lab.turbulence.selecting.tree_search import TreeSearch, tree_search
from sobolev_novelty.lab.turbulence.solving.problem import closure_problem, closure_report
from sobolev_novelty.lab.turbulence.studying.comparison import shrinkage
from sobolev_novelty.lab.turbulence.studying.store import RunStore
from sobolev_novelty.lab.turbulence.studying.study import load_study
from sobolev_novelty.search.contract.engine import SobolevGuidance
from turbulence_samples import synthetic

CLOSURE = Closure(
    (TensorTerm(0, 0, 0), TensorTerm(1, 3, 2), TensorTerm(2, 1, 0), TensorTerm(2, 0, 0)), (0.5, -2e-5, 1.5, -1.0)
)


def random_state(n: int = 40, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    S, R = rng.normal(size=(2, n, 3, 3))
    return S + S.transpose(0, 2, 1), R - R.transpose(0, 2, 1)


def bases(S: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    S2 = S @ S
    invariants = np.stack([np.einsum("nij,nji->n", S, S), np.einsum("nij,nji->n", R, R)], axis=1)
    T3 = S2 - np.eye(3) * np.trace(S2, axis1=1, axis2=2)[:, None, None] / 3
    return squashed(invariants), np.stack([S, S @ R - R @ S, T3], axis=1)


def test_the_printed_python_is_the_closure():
    S, R = random_state()
    space: dict = {}
    exec(CLOSURE.to_python(), space)
    np.testing.assert_allclose(space["b_perp"](S, R), CLOSURE.evaluate(*bases(S, R)), rtol=1e-12, atol=1e-12)


def test_the_printed_cpp_is_the_closure(tmp_path):
    main = CLOSURE.to_cpp() + (
        '#include <cstdio>\nint main() { std::printf("%.17g %.17g %.17g", G1(.3, -.7), G2(.3, -.7), G3(.3, -.7)); }\n'
    )
    (tmp_path / "g.cpp").write_text(main)
    try:
        subprocess.run(["g++", "-o", str(tmp_path / "g"), str(tmp_path / "g.cpp")], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no C++ compiler here")
    out = subprocess.run([str(tmp_path / "g")], check=True, capture_output=True, text=True).stdout
    np.testing.assert_allclose([float(v) for v in out.split()], CLOSURE.coefficient_values(np.array([[0.3, -0.7]]))[0])


def test_latex_names_every_term():
    assert CLOSURE.to_latex() == (
        r"\widehat{\mathbf{b}}^{\perp} = 0.5\,\mathbf{T}_1 -2\times10^{-5}\,x_1^{3}x_2^{2}\,\mathbf{T}_2"
        r" +1.5\,x_1\,\mathbf{T}_3 -1\,\mathbf{T}_3"
    )


def test_files_that_are_no_closure_are_refused():
    with pytest.raises(DataError, match="not JSON"):
        Closure.from_json("{")
    with pytest.raises(DataError, match="'terms'"):
        Closure.from_json('{"terms": [[1, 2]]}')


def test_derivatives_of_monomials_agree_with_differences():
    terms, h = dictionary(5), 1e-6
    x = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    blocks = monomials(terms, x)
    for j in range(2):
        step = h * np.eye(2)[j]
        difference = (monomials(terms, x + step)[0] - monomials(terms, x - step)[0]) / (2 * h)
        np.testing.assert_allclose(blocks[1 + j], difference, atol=1e-8)


def test_folding_the_components_keeps_all_inner_products():
    data = synthetic()
    terms = [term for term in dictionary(3) if term.channel == 1]
    full, folded = term_arrays(terms, data.inputs, data.tensors), channel_arrays(terms, data.inputs, data.tensors)
    for a, b in zip(full, folded, strict=True):
        long, short = a.reshape(len(terms), -1), b.reshape(len(terms), -1)
        np.testing.assert_allclose(long @ long.T, short @ short.T, rtol=1e-10)


def test_novelty_of_a_closure_has_one_value_per_term():
    report = closure_report(CLOSURE, synthetic())
    assert len(report.nu) == 4
    assert ((report.nu >= 0) & (report.nu <= 1)).all()


@pytest.mark.parametrize("guidance", [None, SobolevGuidance()], ids=["plain", "guided"])
def test_tree_search_finds_the_known_terms_and_repeats_itself(guidance):
    problem = closure_problem(synthetic(), dictionary(3))
    options = TreeSearch(n_rounds=300, max_terms=4, guidance=guidance)
    first, second = (tree_search(problem, options, np.random.default_rng(1)) for _ in range(2))
    assert first.closure == second.closure
    assert {"T1", "T2*x1*x2", "T3*x2**2"} <= {str(term) for term in first.closure.terms}
    assert first.history == tuple(sorted(first.history))


def test_guidance_never_raises_the_score_and_penalises_low_novelty():
    problem = closure_problem(synthetic(), dictionary(3))
    found = tree_search(
        problem, TreeSearch(n_rounds=100, max_terms=6, guidance=SobolevGuidance()), np.random.default_rng(0)
    )
    assert found.best.guided <= found.best.score
    nu = closure_report(found.closure, synthetic()).nu
    if found.best.guided == found.best.score:
        assert (nu >= TAU_ID - 0.05).all()


def test_tree_search_options_are_checked():
    with pytest.raises(ParameterError, match="'n_rounds' must be at least 1"):
        TreeSearch(n_rounds=0)


def test_shrinkage_is_one_for_a_perfect_closure():
    data = synthetic()
    chosen = Closure((TensorTerm(0, 0, 0), TensorTerm(1, 1, 1), TensorTerm(2, 0, 2)), (0.3, 0.5, -0.2))
    np.testing.assert_allclose(shrinkage(data, chosen, 4), 1.0, atol=1e-6)


def test_the_store_keeps_rows_as_they_were_first_stored(tmp_path):
    store = RunStore(tmp_path / "runs" / "a.sqlite")
    assert store.find("x") is None
    first = store.add("x", {"alpha": 1.0, "bad": float("nan"), "pair": (1, 2), "closure": CLOSURE.to_dict()})
    assert store.add("x", {"alpha": 2.0}) == first == store.find("x"), "a row with a result is never touched again"
    assert (first["alpha"], first["bad"], first["pair"]) == (1.0, None, [1, 2])
    assert Closure.from_dict(first["closure"]).terms == CLOSURE.terms
    assert first["measures"] is None and first["is_converged"] is None
    assert all(first[name] for name in ("version", "engine", "machine", "created"))
    store.add("w", {})
    assert [row["key"] for row in store.rows()] == sorted(["w", "x"], key=lambda key: store.find(key)["created"])


def test_missing_and_altered_data_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("SOBOLEV_DATA", raising=False)
    assert len(hill.load_regression().target) == 9600, "the regression data are part of the package"
    with pytest.raises(DataError, match="DNS fields are not part of the package.*SOBOLEV_DATA"):
        hill.load_dns()
    (tmp_path / "regression_case_0p8.npz").write_text("{}")
    with pytest.raises(DataError, match="sha256"):
        hill.load_regression(tmp_path)


def test_experiment_files_are_found_and_read(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        load_study(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= 1")
    with pytest.raises(DataError, match="not TOML"):
        load_study(tmp_path / "bad.toml")


def test_importing_the_command_line_loads_no_solver():
    code = "import sys, sobolev_novelty.ui.cli.turbulence\n"
    code += "print('scipy.sparse' in sys.modules, 'matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(f'["{out.split()[1]}"]') == ["False"]
