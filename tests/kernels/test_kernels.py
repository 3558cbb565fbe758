"""The compiled kernel equals the NumPy kernel on every operator and instruction set, and refuses what it cannot run."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.errors import DataError, KernelError, ParameterError
from sobolev_novelty.kernels import Programs, compile_programs, native_kernel, numpy_kernel
from sobolev_novelty.kernels.backend import native
from sobolev_novelty.kernels.program import CONSTANT, FIRST_VARIABLE, MAX_PROGRAM_LENGTH

compiled = pytest.mark.skipif(native() is None, reason="the compiled kernel is not built: make kernel")
LEVELS = {"baseline": 0, "avx2": 1, "avx512": 2}
NAMES = ["x0", "x1", "x2"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 1e-3, 1e-4, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e308, -1e308]
SPECIAL += [709.8, -745.2, 1e8, -3e12, 1e22]
EXPONENTS = [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 4.0, 5.0, 6.0, -2.0, -3.0, -4.0, 2.5, -0.7, 7.0]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each instruction set; those the processor lacks fall back to the next lower one."""
    monkeypatch.setattr(native_kernel, "level", lambda: LEVELS[request.param])
    return str(request.param)


def operator_programs() -> tuple[list[Expression], Programs]:
    expressions = []
    for op in OPERATORS.values():
        if op.arity == 1:
            expressions.append(Expression.of(op, "x0"))
            continue
        expressions.append(Expression.of(op, "x0", "x1"))
        expressions.append(Expression.of(op, "x0", "x0"))
        for constant in EXPONENTS:
            expressions += [Expression.of(op, "x0", constant), Expression.of(op, constant, "x1")]
    # The same beside the inputs themselves, whose derivatives are there already when those of the operator are added.
    beside = Expression.of("add", "x0", "x1")
    expressions += [Expression.of("add", beside, expression) for expression in expressions]
    return expressions, compile_programs(expressions, NAMES)


def special_samples(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first, second = np.meshgrid(SPECIAL, SPECIAL)
    rows = [first.ravel(), second.ravel(), first.ravel()[::-1]]
    return np.hstack([np.array(rows), rng.normal(scale=3.0, size=(3, 301))])


def assert_same(ours: np.ndarray, reference: np.ndarray, *, rtol: float = 1e-11, atol: float = 1e-14) -> None:
    np.testing.assert_allclose(ours, reference, rtol=rtol, atol=atol, equal_nan=True)


def in_domain(X: np.ndarray) -> np.ndarray:
    """Without -inf: NumPy takes a power of 0.5 by sqrt, nan there, where IEEE pow gives inf."""
    return X[:, ~np.isneginf(X).any(axis=0)]


def random_expression(draw: st.DrawFn, size: int) -> list[object]:
    if size <= 1:
        constant = st.floats(-3.0, 3.0, allow_subnormal=False)
        return [draw(st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), constant, st.sampled_from(EXPONENTS)))]
    op = draw(st.sampled_from([op for op in OPERATORS.values() if op.arity == 1 or size > 2]))
    if op.arity == 1:
        return [op, *random_expression(draw, size - 1)]
    left = draw(st.integers(1, size - 2))
    return [op, *random_expression(draw, left), *random_expression(draw, size - 1 - left)]


@st.composite
def expressions(draw: st.DrawFn, max_size: int = 20) -> Expression:
    return Expression(random_expression(draw, draw(st.integers(1, max_size))))


@compiled
def test_the_operator_table_of_the_compiled_kernel_is_ours() -> None:
    assert native().operators() == list(OPERATORS)


@compiled
@pytest.mark.parametrize("order", [0, 1, 2])
def test_every_operator_equals_numpy_at_special_values(order: int, level: str) -> None:
    _, programs = operator_programs()
    X = in_domain(special_samples())
    ours = kernels.derivatives(programs, X, order)
    reference = numpy_kernel.derivatives(programs, X, order)
    # Outside the domain the row is lost whatever its derivatives are.
    lost = np.isnan(reference[:, :1]) & np.isnan(ours[:, :1])
    assert (np.isnan(reference[:, 0]) == np.isnan(ours[:, 0])).all()
    assert_same(np.where(lost, 0.0, ours), np.where(lost, 0.0, reference))


@compiled
def test_jacobians_of_every_operator_equal_numpy_at_special_values(level: str) -> None:
    _, programs = operator_programs()
    X = in_domain(special_samples())
    for ours, reference in zip(kernels.jacobians(programs, X), numpy_kernel.jacobians(programs, X), strict=True):
        assert_same(ours, reference)


@compiled
def test_operators_on_numbers_alone_equal_numpy() -> None:
    numbers = [-2.5, -1.0, -0.3, -1e-4, 0.0, 0.3, 0.5, 1.0, 2.0, 2.5]
    constant = [Expression.of(op, a) for op in OPERATORS.values() if op.arity == 1 for a in numbers]
    constant += [
        Expression.of(op, a, b) for op in OPERATORS.values() if op.arity == 2 for a in numbers for b in numbers
    ]
    programs = compile_programs(constant, NAMES)
    X = np.ones((3, 9))
    for ours, reference in zip(kernels.jacobians(programs, X), numpy_kernel.jacobians(programs, X), strict=True):
        assert_same(ours, reference)


@compiled
@pytest.mark.parametrize("n_terms", range(1, 10))
def test_weighted_fits_of_any_number_of_terms_equal_numpy(n_terms: int, level: str) -> None:
    """Inner products are taken in blocks of columns: every remainder has its own loop."""
    rng = np.random.default_rng(n_terms)
    X, y, weights = rng.uniform(0.5, 2.0, (3, 101)), rng.normal(size=101), rng.uniform(0.1, 2.0, 101)
    programs = compile_programs(
        [Expression.of("sin", Expression.of("mul", float(k + 1), "x0")) for k in range(n_terms)], NAMES
    )
    free = np.zeros(n_terms, dtype=bool)
    ours = kernels.fit(programs, [0, n_terms], free, X, y, weights)
    reference = numpy_kernel.fit(programs, np.array([0, n_terms]), free, X, y, weights)
    np.testing.assert_allclose(ours.coefficients, reference.coefficients, rtol=1e-7)
    np.testing.assert_allclose(ours.loss, reference.loss, rtol=1e-10)


@compiled
def test_exponential_and_logarithm_are_right_to_the_last_digits(level: str) -> None:
    x = np.concatenate([np.linspace(-745.5, 710.0, 5001), np.logspace(-323, 308, 5001), [-746.0, 711.0, 1e300]])
    X = np.array([x])
    exp, log = (
        kernels.derivatives(compile_programs([Expression.of(f, "x0")], ["x0"]), X)[0, 0] for f in ("exp", "log")
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_max_ulp(exp[exp > 1e-307], np.exp(x)[exp > 1e-307], 2)
        np.testing.assert_allclose(exp, np.exp(x), rtol=1e-15, atol=1e-323)
        np.testing.assert_array_equal(np.isnan(log), np.isnan(np.log(x)))
        np.testing.assert_allclose(log, np.log(x), rtol=5e-16, atol=0.0)


@compiled
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e8, 1e12, 1e300])
def test_sine_and_cosine_are_right_for_angles_of_any_size(size: float, level: str) -> None:
    x = np.random.default_rng(0).normal(size=4003) * size
    x[:5] = [np.pi, np.pi / 2, 1e5 * np.pi, -np.pi / 2, 0.0]
    programs = compile_programs([Expression.of("sin", "x0"), Expression.of("cos", "x0")], ["x0"])
    ours = kernels.derivatives(programs, x[None], 1)
    np.testing.assert_allclose(ours[0], [np.sin(x), np.cos(x)], rtol=1e-15, atol=4e-16)
    np.testing.assert_allclose(ours[1], [np.cos(x), -np.sin(x)], rtol=1e-15, atol=4e-16)


def sensitivity(programs: Programs, X: np.ndarray, order: int) -> np.ndarray:
    """How much results move when the inputs move by rounding errors: no two implementations can agree beyond."""
    reference = numpy_kernel.derivatives(programs, X, order)
    moved = [numpy_kernel.derivatives(programs, X * (1.0 + step), order) for step in (-1e-13, 1e-13)]
    with np.errstate(all="ignore"):
        return np.nan_to_num(sum(np.abs(m - reference) for m in moved), nan=np.inf, posinf=np.inf)


@compiled
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(expressions(), min_size=1, max_size=6), st.integers(0, 2), st.integers(1, 40))
def test_random_programs_equal_numpy(batch: list[Expression], order: int, n_samples: int) -> None:
    programs = compile_programs(batch, NAMES)
    X = np.random.default_rng(n_samples).uniform(-2.0, 2.0, size=(3, n_samples))
    ours = kernels.derivatives(programs, X, order)
    reference = numpy_kernel.derivatives(programs, X, order)
    slack = sensitivity(programs, X, order)
    with np.errstate(all="ignore"):
        close = np.abs(ours - reference) <= 1e-9 * np.abs(reference) + 1e-11 + 1e3 * slack
    same = close | (ours == reference) | (np.isnan(ours) & np.isnan(reference)) | ~np.isfinite(slack)
    # A derivative that overflows on the way is lost either way: inf or nan depends on the order of products.
    both_lost = ~np.isfinite(ours) & ~np.isfinite(reference)
    assert (same | both_lost).all(), [str(e) for e in batch]


@compiled
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(expressions(12), min_size=1, max_size=4), st.integers(0, 2))
def test_random_programs_with_hostile_inputs_never_fail(batch: list[Expression], order: int) -> None:
    programs = compile_programs(batch, NAMES)
    X = special_samples()
    ours = kernels.derivatives(programs, X, order)
    reference = numpy_kernel.derivatives(programs, X, order)
    finite = np.isfinite(reference[:, 0])
    assert (np.isfinite(ours[:, 0]) == finite).mean() > 0.98  # overflow is a matter of the last digit
    assert np.isfinite(kernels.jacobians(programs, X)[0]).shape == finite.shape


@compiled
@pytest.mark.parametrize("n_samples", [0, 1, 7, 8, 9, 255, 256, 257, 1000, 1003])
def test_any_number_of_samples(n_samples: int) -> None:
    expressions = [Expression.of("sin", Expression.of("mul", "x0", "x1")), Expression.of("x2"), Expression.of(2.0)]
    programs = compile_programs(expressions, NAMES)
    X = np.random.default_rng(0).normal(size=(3, n_samples))
    for order in (0, 1, 2):
        assert_same(kernels.derivatives(programs, X, order), numpy_kernel.derivatives(programs, X, order))
    for ours, reference in zip(kernels.jacobians(programs, X), numpy_kernel.jacobians(programs, X), strict=True):
        assert_same(ours, reference)


def test_no_programs_and_no_features() -> None:
    assert kernels.derivatives(compile_programs([], NAMES), np.zeros((3, 5)), 1).shape == (0, 4, 5)
    constant = compile_programs([Expression.of(2.0)], [])
    np.testing.assert_array_equal(kernels.derivatives(constant, np.zeros((0, 5)), 2), np.full((1, 1, 5), 2.0))


def test_strided_read_only_and_float32_inputs_are_converted() -> None:
    programs = compile_programs([Expression.of("mul", "x0", "x1")], NAMES)
    X = np.arange(24.0).reshape(3, 8)
    expected = numpy_kernel.derivatives(programs, X, 1)
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    frozen = X.copy()
    frozen.flags.writeable = False
    for given_X in (wide, frozen, X.astype(np.float32), np.asfortranarray(X), X.astype(int), X.tolist()):
        np.testing.assert_array_equal(kernels.derivatives(programs, given_X, 1), expected)


def test_a_constant_exponent_gives_no_nan_in_the_gradient() -> None:
    programs = compile_programs([Expression.of("pow", "x0", 2.0), Expression.of("pow", "x0", 3.5)], NAMES)
    X = np.array([[-2.0, 0.0, 1.0]] * 3)
    out = kernels.derivatives(programs, X, 1)
    np.testing.assert_array_equal(out[0, 1], [-4.0, 0.0, 2.0])
    assert np.isnan(out[1, 1, 0]) and out[1, 1, 1] == 0.0


def program(codes: list[int], constants: list[float] = (), n_features: int = 3) -> Programs:  # type: ignore[assignment]
    return Programs(
        np.array(codes, dtype=np.int32),
        np.array([0, len(codes)], dtype=np.int64),
        np.array(constants, dtype=np.float64),
        np.array([0, len(constants)], dtype=np.int64),
        n_features,
    )


HOSTILE = {
    "holds an unknown operator": program([200, FIRST_VARIABLE]),
    "unknown operator": program([-12_345]),  # own operators of other tests have the first negative numbers
    "holds more than one tree": program([FIRST_VARIABLE, FIRST_VARIABLE]),
    "ends early": program([1, FIRST_VARIABLE]),
    "operands are missing": program([]),
    "refers to a column": program([FIRST_VARIABLE + 3]),
    "different number of constants": program([CONSTANT], [1.0, 2.0]),
    "than its offsets say": program([FIRST_VARIABLE], [1.0]),
    "longer than the limit": program([6] * MAX_PROGRAM_LENGTH + [FIRST_VARIABLE]),
}


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("message", HOSTILE)
def test_programs_that_are_not_trees_are_refused(message: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "numpy":
        monkeypatch.setattr(kernels, "native", lambda: None)
    X = np.zeros((3, 10))
    for call in (kernels.derivatives, kernels.jacobians):
        with pytest.raises(KernelError, match=message):
            call(HOSTILE[message], X)
    with pytest.raises(KernelError, match=message):
        kernels.novelties(HOSTILE[message], [0, 1], X)


@pytest.mark.parametrize("offsets", [[1, 1], [0, 2], [0, -1, 1], [0, 5, 1]])
def test_offsets_that_leave_the_codes_are_refused(offsets: list[int]) -> None:
    constant_offsets = np.zeros(len(offsets), dtype=np.int64)
    codes = np.array([FIRST_VARIABLE], dtype=np.int32)
    bad = Programs(codes, np.array(offsets, dtype=np.int64), np.zeros(0), constant_offsets, 3)
    with pytest.raises(
        KernelError, match=r"'offsets' must ascend|offsets do not span the codes|has offsets that decrease"
    ):
        kernels.derivatives(bad, np.zeros((3, 4)))


def test_a_million_nodes_are_refused_and_the_longest_program_runs() -> None:
    with pytest.raises(KernelError, match="refused"):
        compile_programs([Expression([OPERATORS["neg"]] * 1_000_000 + ["x0"])], NAMES)
    half = (MAX_PROGRAM_LENGTH - 1) // 2
    left = compile_programs([Expression([OPERATORS["add"]] * half + ["x0"] * (half + 1))], NAMES)
    right = compile_programs([Expression([OPERATORS["mul"], "x0"] * half + ["x0"])], NAMES)
    bushy = compile_programs([Expression([OPERATORS["add"], OPERATORS["sin"], "x0"] * 33_000 + ["x0"])], NAMES)
    X = np.full((3, 20), 0.5)
    assert_same(kernels.derivatives(left, X, 1)[0, 1], np.full(20, half + 1.0))
    assert_same(kernels.derivatives(right, X, 2)[0, 0], np.zeros(20))
    assert_same(kernels.derivatives(bushy, X, 1)[0, 0], np.full(20, 33_000 * np.sin(0.5) + 0.5), rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: kernels.derivatives(p, np.zeros(3)), DataError, "'X' must have 2 dimensions"),
        (lambda p: kernels.derivatives(p, np.zeros((3, 2), dtype=complex)), DataError, "real numbers"),
        (lambda p: kernels.derivatives(p, [["a"]]), DataError, "real numbers"),
        (lambda p: kernels.derivatives(p, np.zeros((3, 2)), 3), ParameterError, "'order' must be 0, 1 or 2. Got 3"),
        (lambda p: kernels.derivatives(p, np.zeros((3, 2)), n_threads=0), ParameterError, "'n_threads'"),
        (lambda p: kernels.fit(p, [0, 1], [], np.zeros((3, 2)), np.zeros(3)), DataError, "'y' must have shape"),
        (lambda p: kernels.fit(p, [0, 2], [], np.zeros((3, 2)), np.zeros(2)), KernelError, "'term_offsets'"),
        (lambda p: kernels.fit(p, [0, 1], [True], np.zeros((3, 2)), np.zeros(2)), DataError, "'free'"),
        (lambda p: kernels.fit(p, [0, 1], [], np.zeros((3, 2)), [0, 0], [1, -1]), DataError, "'weights'"),
        (lambda p: kernels.novelties(p, [0, 1], np.zeros((3, 2)), members=[7]), DataError, "'members'"),
        (lambda p: kernels.novelties(p, [0, 9], np.zeros((3, 2))), KernelError, "'offsets'"),
        (lambda p: kernels.novelties(p, [0, 1], np.zeros((3, 2)), scales=[1.0]), DataError, "'scales'"),
    ],
)
def test_misuse_is_named(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(compile_programs([Expression.of("x0")], NAMES))  # type: ignore[operator]


@compiled
def test_the_compiled_module_checks_its_buffers_itself() -> None:
    module = native()
    assert module is not None
    good = program([FIRST_VARIABLE])
    arrays = (good.codes, good.offsets, good.constants, good.constant_offsets)
    X, out = np.zeros((3, 8)), np.zeros((1, 1, 8))
    read_only = out.copy()
    read_only.flags.writeable = False
    bad_calls = [
        ("'out' has the wrong shape", (arrays, X, 0, out[:, :, :4], 1, -1)),
        ("'out' has the wrong shape", (arrays, X, 0, np.zeros((1, 1, 7)), 1, -1)),
        ("'out' has the wrong shape", (arrays, X, 1, out, 1, -1)),
        ("'order' must be 0, 1 or 2", (arrays, X, 5, out, 1, -1)),
        ("'out' must be a C-contiguous writable array", (arrays, X, 0, read_only, 1, -1)),
        ("'n_threads' must be at least 1", (arrays, X, 0, out, 0, -1)),
        ("'X' has format 'f'", (arrays, X.astype(np.float32), 0, out, 1, -1)),
        ("'X' must be a C-contiguous array", (arrays, X[:, ::2], 0, out, 1, -1)),
        ("'X' must be a C-contiguous array", (arrays, "text", 0, out, 1, -1)),
        ("takes exactly 4 arguments", (arrays[:3], X, 0, out, 1, -1)),
        ("'codes' has format", ((good.codes.astype(np.int64), *arrays[1:]), X, 0, out, 1, -1)),
        ("must have the same length", ((good.codes, good.offsets[:1], *arrays[2:]), X, 0, out, 1, -1)),
        ("do not span the codes", ((good.codes, np.array([0, 1 << 40]), *arrays[2:]), X, 0, out, 1, -1)),
    ]
    for message, arguments in bad_calls:
        with pytest.raises((ValueError, TypeError), match=message):
            module.derivatives(*arguments)
    module.derivatives(arrays, X, 0, out, 10_000, 99)


@compiled
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.integers(0, 45), st.integers(250, 262), st.integers(-(2**31), 2**31 - 1)), max_size=12))
def test_random_codes_run_or_are_refused(codes: list[int]) -> None:
    bad = program(codes, [1.0] * codes.count(CONSTANT))
    try:
        out = kernels.derivatives(bad, np.ones((3, 9)), 2)
    except KernelError:
        return
    assert out.shape == (1, 10, 9)


def population(n: int) -> tuple[Programs, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n))
    forms = [
        Expression.of(
            "sin",
            Expression.of("add", Expression.of("mul", float(a[i]), "x0"), Expression.of("pow", "x1", float(b[i]))),
        )
        for i in range(n)
    ]
    return compile_programs(forms, NAMES), rng.uniform(0.5, 2.0, size=(3, 501))


@compiled
@pytest.mark.parametrize("n_threads", [2, 3, 16])
def test_results_do_not_depend_on_the_number_of_threads(n_threads: int) -> None:
    programs, X = population(60)
    for order in (0, 1, 2):
        np.testing.assert_array_equal(
            kernels.derivatives(programs, X, order), kernels.derivatives(programs, X, order, n_threads=n_threads)
        )
    np.testing.assert_array_equal(
        kernels.jacobians(programs, X)[1], kernels.jacobians(programs, X, n_threads=n_threads)[1]
    )
    offsets, free, y = np.arange(0, 61, 3), np.ones(120, dtype=bool), np.sin(X[0]) + X[1]
    one, many = (kernels.fit(programs, offsets, free, X, y, n_threads=n) for n in (1, n_threads))
    np.testing.assert_array_equal(one.loss, many.loss)
    np.testing.assert_array_equal(one.constants, many.constants)
    members = np.random.default_rng(1).integers(60, size=60)
    one_nu, many_nu = (kernels.novelties(programs, offsets, X, members=members, n_threads=n) for n in (1, n_threads))
    np.testing.assert_array_equal(one_nu.nu, many_nu.nu)


def _in_a_child(_: int) -> float:
    programs, X = population(20)
    return float(np.nansum(kernels.derivatives(programs, X, 1, n_threads=2)))


@compiled
def test_the_kernel_works_after_a_fork() -> None:
    here = _in_a_child(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_in_a_child, range(4)) == [here] * 4


def test_the_environment_chooses_the_kernel() -> None:
    script = "from sobolev_novelty.kernels import backend; b = backend(); print(b.name, b.is_compiled, b.reason)"
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "SOBOLEV_KERNEL": "numpy"},
        text=True,
        capture_output=True,
        check=True,
    )
    assert result.stdout.split()[:2] == ["numpy", "False"] and "SOBOLEV_KERNEL" in result.stdout


@compiled
def test_the_backend_says_what_it_is() -> None:
    backend = kernels.backend()
    assert backend.name == "native" and backend.instruction_set in LEVELS and backend.vector_maths


def test_memory_that_is_not_aligned_is_taken_too() -> None:
    """Arrays that Dask received begin anywhere in the message."""
    x = np.linspace(1.0, 2.0, 40)
    raw = np.zeros(8 * 40 + 3, dtype=np.uint8)
    shifted = raw[3:].view(np.float64).reshape(1, 40)
    shifted[:] = x
    assert not shifted.flags.aligned
    programs = compile_programs([Expression.of("mul", "x0", "x0")], ("x0",))
    np.testing.assert_allclose(kernels.jacobians(programs, shifted)[0][0], x * x)
