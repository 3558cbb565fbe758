"""The engine: the contract with an untrained network, and laws with the one of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from needs_torch import one_thread, tiny, torch  # noqa: F401
from sobolev_novelty import SymbolicRegressor
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.transformer import pretrained
from sobolev_novelty.engines.transformer.checkpoint import load_model, main, read_weights, write_weights
from sobolev_novelty.engines.transformer.engine import BAG_ROWS, Transformer, _bag, _ordinary
from sobolev_novelty.engines.transformer.model import Model
from sobolev_novelty.engines.transformer.pretrained import VARIABLE, weights_folder
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.search.contract.engine import Problem
from sobolev_novelty.search.contract.registry import engine_named, name_of
from sobolev_novelty.search.loop.loop import Budget, run
from sobolev_novelty.testing import engine_checks

pytestmark = pytest.mark.torch

RNG = np.random.default_rng(0)
X = RNG.uniform(1.0, 3.0, (200, 3))
#: Checks that ask for more than an untrained network has.
NEED_TRAINING = {"check_finds_a_simple_law"}


def write_untrained(folder: Path) -> Path:
    settings = tiny()
    write_weights(folder, "weights", settings, Model(settings.model, seed=5).state_dict(), {"step": 1})
    return folder


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a network of some thousand random weights."""
    return str(write_untrained(tmp_path_factory.mktemp("weights")))


def small(untrained: str, **options: Any) -> Transformer:
    return Transformer(weights=untrained, device="cpu", **{"n_samples": 40, **options})


# --- the contract, with an untrained network


@pytest.mark.parametrize(
    ("name", "check"),
    [check for check in engine_checks() if check[0] not in NEED_TRAINING],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_untrained_network_keeps_the_contract(name: str, check: Any, untrained: str) -> None:
    check(small(untrained), 60)


def test_the_engine_ends_when_its_samples_are_used_up(untrained: str) -> None:
    model = SymbolicRegressor(small(untrained), random_state=0).fit(X, np.sin(X[:, 0] ** 3) * X[:, 2])
    assert model.stop_reason_ == "All 40 samples of the network were tried."
    assert 5 < model.n_evaluations_ < 400


def test_the_engine_keeps_to_a_budget_of_evaluations(untrained: str) -> None:
    model = SymbolicRegressor(small(untrained), budget=Budget(max_evaluations=7), random_state=0).fit(X, X[:, 0])
    assert model.n_evaluations_ <= 7


def test_the_signal_changes_nothing(untrained: str) -> None:
    y = X[:, 0] * X[:, 1]
    tables = [
        SymbolicRegressor(small(untrained), novelty=novelty, random_state=0).fit(X, y).equations_
        for novelty in (False, True)
    ]
    assert tables[0]["expression"].tolist() == tables[1]["expression"].tolist()


def test_of_more_than_ten_inputs_the_best_ten_are_read(untrained: str) -> None:
    wide = np.random.default_rng(1).normal(size=(300, 15))
    problem = Problem(Rows(Sample(wide.T.copy(), tuple(f"x{k}" for k in range(15))), wide[:, 13] + 2.0 * wide[:, 11]))
    engine = small(untrained)
    state = engine.start(problem, np.random.default_rng(0))
    assert len(state.columns) == 10
    assert {11, 13} <= set(state.columns.tolist())
    used = {name for form in engine.propose(state, np.random.default_rng(0)) for name in form.variables}
    assert used <= {f"x{k}" for k in state.columns}


def test_a_bag_has_200_rows_of_ordinary_size() -> None:
    table = np.stack([np.linspace(1.0, 2.0, 500) * 1e8, np.linspace(0.0, 1e-40, 500)])
    weights = np.where(np.arange(500) < 250, 0.0, 1.0)
    problem = Problem(Rows(Sample(table, ("x0", "x1")), 1e200 * table[0], weights))
    bag, target = _bag(problem, np.array([0, 1]), np.random.default_rng(0))
    assert bag.shape == (1, BAG_ROWS, 10)
    assert torch.isfinite(bag).all()
    assert torch.isfinite(target).all()
    assert not bag[..., 2:].any()
    assert float(bag[0, :, 0].min()) >= 1.4  # rows without weight are not read
    few = Problem(Rows(Sample(table[:, :7], ("x0", "x1")), table[0, :7]))
    assert len(np.unique(_bag(few, np.array([0, 1]), np.random.default_rng(0))[0][0, :, 0])) == 7
    np.testing.assert_array_equal(_ordinary(X[:, 0]), X[:, 0])


def test_torch_has_its_threads_back_after_a_search(untrained: str) -> None:
    torch.set_num_threads(2)
    SymbolicRegressor(small(untrained), random_state=0).fit(X, X[:, 0])
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": -1}, "'n_samples' must be a whole number of at least 0. Got -1"),
        ({"n_starts": 0}, "'n_starts' must be a whole number of at least 1. Got 0"),
        ({"temperature": 0.0}, "'temperature' must be a number above 0"),
        ({"device": "abacus"}, "'device' must be one that torch has here"),
    ],
)
def test_options_out_of_range_are_refused(untrained: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SymbolicRegressor(Transformer(**{"weights": untrained, **options})).fit(X, X[:, 0])


# --- weights


def test_weights_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"holds no config.json.*--weights"):
        SymbolicRegressor(Transformer(weights=str(tmp_path))).fit(X, X[:, 0])
    monkeypatch.setattr(pretrained, "PACKAGED", tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(DataError, match="This copy of the package has no weights"):
        weights_folder()


def test_the_environment_variable_names_a_folder(untrained: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, untrained)
    assert weights_folder() == Path(untrained).resolve()


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    folder = write_untrained(tmp_path)
    (file,) = folder.glob("*.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="is damaged: its checksum"):
        SymbolicRegressor(Transformer(weights=str(folder))).fit(X, X[:, 0])


def test_weights_of_eight_bits_are_near_and_half_as_large(untrained: str, tmp_path: Path) -> None:
    main([untrained, str(tmp_path), "--int8"])
    before, after = read_weights(Path(untrained)), read_weights(tmp_path)
    assert before.settings == after.settings
    assert set(before.tensors) == set(after.tensors)
    for name, tensor in before.tensors.items():
        step = tensor.float().abs().amax(dim=-1, keepdim=True) / 127.0
        assert ((after.tensors[name].float() - tensor.float()).abs() <= 0.51 * step + 1e-9).all()
    sizes = [sum(file.stat().st_size for file in Path(f).glob("*.safetensors")) for f in (untrained, tmp_path)]
    assert sizes[1] < 0.75 * sizes[0]  # most of so small a network is names and embeddings
    assert not load_model(tmp_path).training


def test_without_torch_the_error_names_the_extra() -> None:
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.partition('.')[0] == 'torch': raise ModuleNotFoundError('No torch', name='torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from sobolev_novelty import SymbolicRegressor\n"
        "SymbolicRegressor('transformer').fit([[1.0], [2.0], [3.0]], [1.0, 4.0, 9.0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install '.[transformer]'" in done.stderr


# --- the network of the package

packaged = pytest.mark.skipif(
    not (pretrained.PACKAGED / "config.json").is_file(), reason="this copy of the package has no weights"
)


@packaged
def test_the_packaged_network_finds_a_law() -> None:
    y = 2.5 * X[:, 0] / X[:, 1] + np.sin(X[:, 2])
    model = SymbolicRegressor("transformer", random_state=0).fit(X, y)
    assert str(model.expression_) == "2.5*(x0/x1) + sin(x2)"
    assert model.stop_reason_ == "The fit is exact up to rounding."
    assert name_of(engine_named("transformer")) == "transformer"


@packaged
def test_the_packaged_files_are_small() -> None:
    sizes = [file.stat().st_size for file in pretrained.PACKAGED.glob("*.safetensors")]
    assert max(sizes) <= 16 * 2**20
    assert sum(sizes) < 13e6


@packaged
def test_its_fits_start_another_engine(tmp_path: Path) -> None:
    y = np.exp(-0.5 * X[:, 0] * X[:, 1]) * np.cos(2.0 * X[:, 2])
    budget = Budget(max_evaluations=3000)
    model = SymbolicRegressor("genetic", guesses="transformer", budget=budget, random_state=0).fit(X, y)
    assert "Guesses from 'transformer': " in model.stop_reason_
    assert model.n_evaluations_ <= 3000
    assert model.score(X, y) > 0.999
    model.save(tmp_path / "model.json")
    assert SymbolicRegressor.load(tmp_path / "model.json").guesses == "transformer"


@packaged
def test_the_same_seed_gives_the_same_front_with_the_packaged_network() -> None:
    problem = Problem(Rows(Sample(X.T.copy(), ("x0", "x1", "x2")), np.log(X[:, 0]) * X[:, 1] - X[:, 2] ** 2 / X[:, 0]))
    fronts = [
        run(problem, Transformer(n_samples=64), Budget(max_evaluations=100), np.random.default_rng(3)).front
        for _ in range(2)
    ]
    assert [c.expression for c in fronts[0]] == [c.expression for c in fronts[1]]
