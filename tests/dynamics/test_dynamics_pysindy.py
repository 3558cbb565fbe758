"""The optimizer for PySINDy: deletion by cost, near-ties broken by novelty."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from dynamical_systems import lorenz, trajectory
from sobolev_novelty.dynamics.differentiation import smooth
from sobolev_novelty.dynamics.trajectories import Trajectory
from sobolev_novelty.errors import ParameterError

ps = pytest.importorskip("pysindy", reason="PySINDy is not installed")

from sobolev_novelty.dynamics.pysindy_optimizer import NoveltyOptimizer  # noqa: E402

X = np.linspace(0.0, 6.0, 200)
#: 1 = sin² + cos²: each of the three is in the span of the others.
DEPENDENT = np.column_stack([np.ones_like(X), np.sin(X) ** 2, np.cos(X) ** 2, X])


def test_it_is_an_optimizer_of_pysindy() -> None:
    optimizer = NoveltyOptimizer(threshold=0.05, beam_width=4)
    assert isinstance(optimizer, ps.optimizers.BaseOptimizer)
    assert clone(optimizer).get_params() == optimizer.get_params()


def test_lorenz_is_found_from_noisy_data() -> None:
    t = np.linspace(0.0, 10.0, 512)
    names = ("x", "y", "z")
    curve = smooth(Trajectory(t, trajectory(lorenz, [-8.0, 8.0, 27.0], t, noise=0.01), names))
    model = ps.SINDy(optimizer=NoveltyOptimizer(), feature_library=ps.PolynomialLibrary(2))
    model.fit(curve.x, t=t, x_dot=curve.rates, feature_names=list(names))
    labels = model.get_feature_names()
    found = [{label: value for label, value in zip(labels, row, strict=True) if value} for row in model.coefficients()]
    assert [set(one) for one in found] == [{"x", "y"}, {"x", "y", "x z"}, {"z", "x y"}]
    np.testing.assert_allclose([found[0]["y"], found[1]["x"], found[2]["z"]], [10.0, 28.0, -8.0 / 3.0], rtol=0.02)


@pytest.mark.parametrize(
    ("target", "kept"),
    [(3.0 * np.sin(X) ** 2, {1}), (2.0 * np.cos(X) ** 2 + 0.3 * X, {2, 3}), (np.full_like(X, 5.0), {0})],
)
def test_of_dependent_columns_the_fewest_are_kept(target: np.ndarray, kept: set[int]) -> None:
    optimizer = NoveltyOptimizer().fit(DEPENDENT, target)
    assert set(np.flatnonzero(optimizer.coef_[0])) == kept
    np.testing.assert_allclose(DEPENDENT @ optimizer.coef_[0], target, atol=1e-8)


def test_a_near_tie_goes_to_the_most_distinct_columns_and_the_others_are_named() -> None:
    library = DEPENDENT[:, :3]
    optimizer = NoveltyOptimizer().fit(library, 0.5 + np.sin(X) ** 2)  # any two of the three rebuild it
    chosen = tuple(np.flatnonzero(optimizer.coef_[0]))
    rivals = {chosen, *optimizer.ties_[0]}
    assert rivals == {(0, 1), (0, 2), (1, 2)}

    def least(support: tuple[int, ...]) -> float:
        return float(np.sqrt(1.0 - _cosine(library[:, support]) ** 2))

    assert least(chosen) == max(least(support) for support in rivals)
    np.testing.assert_allclose(optimizer.novelty_[0, list(chosen)], least(chosen), rtol=1e-9)


def _cosine(pair: np.ndarray) -> float:
    a, b = (pair / np.linalg.norm(pair, axis=0)).T
    return float(a @ b)


def test_columns_of_low_novelty_are_dropped_whatever_they_cost() -> None:
    noise = np.random.default_rng(0).standard_normal(len(X))
    library = np.column_stack([X, X + 1e-3 * noise])
    target = X + 0.5 * noise  # 500 times the difference of the two
    assert np.count_nonzero(NoveltyOptimizer(min_novelty=0.0).fit(library, target).coef_) == 2
    assert np.count_nonzero(NoveltyOptimizer().fit(library, target).coef_) == 1


def test_the_cost_of_a_deletion_does_not_depend_on_units() -> None:
    target = 2.0 * np.cos(X) ** 2 + 0.3 * X
    scales = np.array([1.0, 1e-3, 1e4, 1e2])
    optimizer = NoveltyOptimizer().fit(DEPENDENT * scales, 1e-6 * target)
    assert set(np.flatnonzero(optimizer.coef_[0])) == {2, 3}


def test_columns_and_targets_of_zeros_do_no_harm() -> None:
    library = np.column_stack([np.zeros_like(X), X])
    targets = np.column_stack([2.0 * X, np.zeros_like(X)])
    np.testing.assert_allclose(NoveltyOptimizer().fit(library, targets).coef_, [[0.0, 2.0], [0.0, 0.0]], atol=1e-12)


def test_options_are_checked() -> None:
    with pytest.raises(ParameterError, match="'threshold' must be at least 0 and below 1. Got 2"):
        NoveltyOptimizer(threshold=2.0)
    with pytest.raises(ParameterError, match="'beam_width' must be at least 1. Got 0"):
        NoveltyOptimizer(beam_width=0)
