"""What must not change when the question is asked in another way: one list of terms, one novelty."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from places import ROOT, TESTS

sys.path.insert(0, str(ROOT))

from benchmarks.metamorphic import RIGHT_TO, deviations, random_list, rises

import sobolev_novelty as sn
from sobolev_novelty import kernels

SEEDS = range(12)
#: Novelties below this are decided by rounding, which differs from one way to the other.
ABSOLUTE = 1e-9


def case(seed: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng([18, seed])
    return random_list(rng), rng.uniform(-2.0, 2.0, (80, 2))


def nu_of(terms: list[str], X: np.ndarray, **options: object) -> np.ndarray:
    return sn.novelties([[sn.parse(term) for term in terms]], X, **options)[0].nu  # type: ignore[arg-type]


def test_a_further_term_never_raises_a_novelty() -> None:
    found = rises(2000, 18)
    assert found.n_violations == 0, found


def test_well_conditioned_lists_agree_with_eighty_digits() -> None:
    found = deviations(25, 18)
    assert found.n_well_conditioned > 5
    assert max(found.worst_numpy, found.worst_kernel) < RIGHT_TO, found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_terms_and_rows_and_their_factors_do_not_matter(seed: int) -> None:
    terms, X = case(seed)
    expected = nu_of(terms, X)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(terms))
    np.testing.assert_allclose(nu_of([terms[k] for k in order], X), expected[order], rtol=1e-6, atol=ABSOLUTE)
    np.testing.assert_allclose(nu_of(terms, X[rng.permutation(len(X))]), expected, rtol=1e-6, atol=ABSOLUTE)
    scaled = [f"{factor:.3g}*({term})" for factor, term in zip(10.0 ** rng.uniform(-5, 5, len(terms)), terms)]
    np.testing.assert_allclose(nu_of(scaled, X), expected, rtol=1e-6, atol=ABSOLUTE)


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_of_all_rows_change_nothing(seed: int) -> None:
    terms, X = case(seed)
    np.testing.assert_allclose(nu_of(terms, np.vstack([X, X, X])), nu_of(terms, X), rtol=1e-6, atol=ABSOLUTE)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_of_a_term_makes_both_zero_and_leaves_the_others(seed: int) -> None:
    terms, X = case(seed)
    doubled = nu_of([*terms, terms[0]], X)
    assert doubled[0] == doubled[-1] == 0.0
    np.testing.assert_allclose(doubled[1:-1], nu_of(terms, X)[1:], rtol=1e-6, atol=ABSOLUTE)


@pytest.mark.parametrize("factors", [(1000.0, 1e-3), (0.3048, 1e6), (1e-12, 60.0)])
@pytest.mark.parametrize("seed", SEEDS[:6])
def test_units_of_the_inputs_do_not_matter(seed: int, factors: tuple[float, float]) -> None:
    """Metres as kilometres: the inputs are divided, and multiplied again in the formula."""
    terms, X = case(seed)
    written = [term.replace("x0", "A").replace("x1", "B") for term in terms]
    written = [term.replace("A", f"({factors[0]!r}*x0)").replace("B", f"({factors[1]!r}*x1)") for term in written]
    np.testing.assert_allclose(nu_of(written, X / np.array(factors)), nu_of(terms, X), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_numpy_and_stream_give_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terms, X = case(seed)
    expected = nu_of(terms, X)
    streamed = sn.NoveltyAccumulator([sn.parse(term) for term in terms])
    for part in np.array_split(X, 5):
        streamed.update(part)
    np.testing.assert_allclose(streamed.report().nu, expected, rtol=1e-6, atol=ABSOLUTE)
    monkeypatch.setattr(kernels, "native", lambda: None)
    np.testing.assert_allclose(nu_of(terms, X), expected, rtol=1e-6, atol=ABSOLUTE)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_dask_gives_the_same(seed: int) -> None:
    array = pytest.importorskip("dask.array")
    terms, X = case(seed)
    found = sn.novelty([sn.parse(term) for term in terms], array.from_array(X, chunks=(17, 2)))
    np.testing.assert_allclose(found.nu, nu_of(terms, X), rtol=1e-6, atol=ABSOLUTE)


def test_a_relation_at_the_limit_of_rounding_is_not_undone_by_a_further_term() -> None:
    X = np.load(TESTS / "golden" / "relation_at_the_limit.npy")
    terms = ["sin(2*x1) + 1.42e-12*(arctan(x0*x1))", "sin(2*x1)", "1/(3 + x0) + x0", "arctan(x0*x1)", "x1**3"]
    before, after = nu_of(terms, X), nu_of([*terms, "sin(x0)*x1"], X)
    assert (after[: len(before)] <= before + 1e-9).all()


@pytest.mark.parametrize("distance", [1e-6, 1e-7, 1e-8])
def test_a_near_repetition_of_a_rebuilt_term_does_not_make_it_new(distance: float) -> None:
    X = np.random.default_rng(18).uniform(-2.0, 2.0, (80, 2))
    terms = ["sin(x0)", "sin(x0) + 1e-10*(x0*x1)", "x0*x1"]
    assert nu_of(terms, X).tolist() == [0.0, 0.0, 0.0]
    assert nu_of([*terms, f"x0*x1 + {distance}*cos(x1)"], X)[:3].tolist() == [0.0, 0.0, 0.0]
