"""The compiled module trusts nobody: every argument of every function is checked before memory is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.kernels import compile_programs
from sobolev_novelty.kernels.backend import native
from sobolev_novelty.kernels.native_kernel import PANEL, RULES

module: Any = native()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel is not built: make kernel")

N, D = 40, 2
OUTPUTS = {"out", "values", "jacobian", "coefficients", "constants", "loss", "status", "novelty", "lengths", "rows"}
OUTPUTS |= {"triangles", "places", "gains"}


def zeros(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return np.zeros(shape, dtype=dtype)


def longs(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def arguments(name: str) -> dict[str, Any]:
    """Arguments that the function accepts, in its order: two terms with one constant each, three columns."""
    terms = [Expression.of("mul", 2.0, "x0"), Expression.of("sin", Expression.of("mul", 3.0, "x1"))]
    programs = compile_programs(terms, ("x0", "x1"))
    arrays = (programs.codes, programs.offsets, programs.constants, programs.constant_offsets)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (D, N))
    last = {"n_threads": 1, "level": -1}
    each: dict[str, dict[str, Any]] = {
        "derivatives": {"programs": arrays, "X": X, "order": 1, "out": zeros(2, 1 + D, N)},
        "jacobians": {"programs": arrays, "X": X, "values": zeros(2, N), "jacobian": zeros(2, N)},
        "fit": {
            "programs": arrays, "term_offsets": longs(0, 2), "free": zeros(2, dtype=np.bool_), "X": X, "y": X[0].copy(),
            "weights": np.ones(N), "n_iterations": 3, "coefficients": zeros(2), "constants": zeros(2), "loss": zeros(1),
            "status": zeros(1, dtype=np.int32),
        },
        "novelties": {
            "programs": arrays, "members": longs(0, 1), "offsets": longs(0, 2), "X": X, "factors": np.ones(1 + D),
            "order": 1, "free_intercept": False, "min_rows": 32, "rules": RULES, "novelty": zeros(2),
            "lengths": zeros(2), "rows": longs(0), "status": zeros(1, dtype=np.int32), "triangles": zeros(4),
            "triangle_offsets": longs(0, 4),
        },
        "unit_columns": {
            "left": zeros(3, N), "right": zeros(2, N), "first": longs(0, 2), "second": longs(1, 1), "how": 3,
            "is_log": False, "begin": 1, "lengths": zeros(3), "panels": zeros(1, N, PANEL, dtype=np.float32),
        },
        "offers": {
            "panels": zeros(1, N, PANEL, dtype=np.float32), "n_columns": 3, "directions": zeros(2, N, dtype=np.float32),
            "members": longs(0, 1), "offsets": longs(0, 2), "parents": longs(-1), "slots": longs(0),
            "weights": zeros(2, dtype=np.float32), "standings": zeros(2, 1, 2, PANEL, dtype=np.float32),
            "smallest": 0.1, "places": zeros(1, 4, dtype=np.int64),
            "gains": zeros(1, 4, dtype=np.float32),
        },
    }  # fmt: skip
    return {**each[name], **last}


FUNCTIONS = ["derivatives", "jacobians", "fit", "novelties", "unit_columns", "offers"]
ARRAYS = [(name, key) for name in FUNCTIONS for key, value in arguments(name).items() if isinstance(value, np.ndarray)]
RESULTS = [(name, key) for name, key in ARRAYS if key in OUTPUTS]


def call(name: str, changed: dict[str, Any]) -> None:
    good = arguments(name)
    assert set(changed) <= set(good)
    getattr(module, name)(*{**good, **changed}.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_good_arguments_are_taken_and_fewer_are_not(name: str) -> None:
    call(name, {})
    with pytest.raises(TypeError):
        getattr(module, name)(*list(arguments(name).values())[:-1])


@pytest.mark.parametrize(("name", "key"), ARRAYS)
def test_an_array_of_another_kind_is_refused_by_name(name: str, key: str) -> None:
    array = arguments(name)[key]
    spread = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype=array.dtype)[..., ::2]
    pairs = np.zeros(array.shape, dtype=[("a", "u1", (array.itemsize,))])
    may_be_left_out = key in ("weights", "triangles") or (name, key) == ("unit_columns", "panels")
    missing = ["text"] if may_be_left_out else ["text", None]
    for bad in [*missing, *([spread] if array.size > 1 else [])]:
        with pytest.raises(ValueError, match=f"'{key}' must be a C-contiguous"):
            call(name, {key: bad})
    for bad in (array.astype(complex), array[None], array.astype(f"V{array.itemsize}"), array.astype(">f8"), pairs):
        with pytest.raises(ValueError, match=f"'{key}' has format"):
            call(name, {key: bad})


@pytest.mark.parametrize(("name", "key"), RESULTS)
def test_a_result_is_not_written_to_a_read_only_array(name: str, key: str) -> None:
    array = arguments(name)[key]
    array.flags.writeable = False
    with pytest.raises(ValueError, match=f"'{key}' must be a C-contiguous writable array"):
        call(name, {key: array})


WRONG: list[tuple[str, str, dict[str, Any]]] = [
    ("derivatives", "'order' must be 0, 1 or 2", {"order": -1}),
    ("derivatives", "'order' must be 0, 1 or 2", {"order": 3}),
    *[("derivatives", "wrong shape", {"out": zeros(*shape)}) for shape in ((1, 3, N), (2, 2, N), (2, 3, N + 1))],
    *[("jacobians", "wrong shape", {"values": zeros(*shape)}) for shape in ((1, N), (2, N - 1))],
    *[("jacobians", "wrong shape", {"jacobian": zeros(*shape)}) for shape in ((1, N), (2, N - 1))],
    ("jacobians", "'n_threads' must be at least 1", {"n_threads": 0}),
    *[("fit", "'term_offsets' must ascend", {"term_offsets": longs(*o)}) for o in ((), (1, 2), (0, 1), (0, 3, 1, 2))],
    ("fit", "'free' must have one entry per constant", {"free": zeros(1, dtype=np.bool_)}),
    ("fit", "'free' must have one entry per constant", {"constants": zeros(3)}),
    ("fit", "'y' and 'weights'", {"y": zeros(N + 1)}),
    ("fit", "'y' and 'weights'", {"weights": zeros(N - 1)}),
    ("fit", "wrong shapes", {"coefficients": zeros(1)}),
    ("fit", "wrong shapes", {"loss": zeros(2)}),
    ("fit", "wrong shapes", {"status": zeros(2, dtype=np.int32)}),
    ("fit", "'n_iterations' must not be negative", {"n_iterations": -1}),
    ("novelties", "'order' must be 0, 1 or 2", {"order": -1}),
    ("novelties", "'order' must be 0, 1 or 2", {"order": 3}),
    *[("novelties", "'offsets' must ascend", {"offsets": longs(*o)}) for o in ((), (1, 2), (0, 1), (0, 3, 1, 2))],
    ("novelties", "'factors' has the wrong length", {"factors": np.ones(D)}),
    ("novelties", "wrong shapes", {"novelty": zeros(3)}),
    ("novelties", "wrong shapes", {"lengths": zeros(1)}),
    ("novelties", "wrong shapes", {"rows": longs(0, 0)}),
    ("novelties", "wrong shapes", {"status": zeros(2, dtype=np.int32)}),
    ("novelties", "wrong shapes", {"rules": RULES[:-1]}),
    ("novelties", "wrong shapes", {"triangle_offsets": longs(0, 2, 4)}),
    ("novelties", "wrong shapes", {"triangle_offsets": longs(0, 5)}),
    ("novelties", "'triangle_offsets' has the wrong steps", {"triangles": zeros(3), "triangle_offsets": longs(0, 3)}),
    ("novelties", "not there", {"members": longs(0, 2)}),
    ("novelties", "not there", {"members": longs(-1, 0)}),
    ("unit_columns", "'n_threads' must be at least 1", {"n_threads": 0}),
    ("unit_columns", "wrong shape", {"lengths": zeros(2)}),
    ("unit_columns", "wrong shape", {"begin": -1}),
    ("unit_columns", "wrong shape", {"begin": 2}),
    ("unit_columns", "different numbers of rows", {"right": zeros(2, N + 1)}),
    ("unit_columns", "different lengths", {"first": longs(0)}),
    ("unit_columns", "not there", {"first": longs(0, 3)}),
    ("unit_columns", "not there", {"second": longs(-1, 0)}),
    ("unit_columns", "no way to join", {"how": 4}),
    ("unit_columns", "no way to join", {"how": -1}),
    *[
        ("unit_columns", "wrong shape", {"panels": zeros(*shape, dtype=np.float32)})
        for shape in ((2, N, PANEL), (1, N + 1, PANEL), (1, N, PANEL // 2))
    ],
    ("offers", "'n_threads' must be at least 1", {"n_threads": 0}),
    ("offers", "'panels' has the wrong shape", {"n_columns": -1}),
    *[
        ("offers", "'panels' has the wrong shape", {"panels": zeros(*shape, dtype=np.float32)})
        for shape in ((2, N, PANEL), (1, N + 1, PANEL), (1, N, PANEL // 2))
    ],
    ("offers", "'offsets' must ascend", {"offsets": longs(0, 1)}),
    ("offers", "wrong shape", {"places": zeros(2, 4, dtype=np.int64)}),
    ("offers", "wrong shape", {"gains": zeros(2, 4, dtype=np.float32)}),
    ("offers", "wrong shape", {"gains": zeros(1, 3, dtype=np.float32)}),
    ("offers", "not there", {"members": longs(0, 2)}),
    ("offers", "not there", {"members": longs(0, -1)}),
    ("offers", "not there", {"members": longs(-2, 0), "parents": longs(1)}),
    ("offers", "has no residual", {"members": longs(-1, 0)}),
    ("offers", "wrong length", {"parents": longs(-1, -1)}),
    ("offers", "wrong length", {"slots": longs()}),
    ("offers", "wrong length", {"weights": zeros(1, dtype=np.float32)}),
    *[
        ("offers", "'standings' has the wrong shape", {"standings": zeros(*shape, dtype=np.float32)})
        for shape in ((2, 2, 2, PANEL), (2, 1, 1, PANEL), (2, 1, 2, PANEL // 2))
    ],
    *[
        ("offers", "written meanwhile", {"parents": longs(a), "slots": longs(b)})
        for a, b in ((2, 0), (0, 2), (0, 0), (-2, 0))
    ],
    (
        "offers",
        "A node has no residual",
        {
            "offsets": longs(0, 0, 2),
            "parents": longs(-1, -1),
            "slots": longs(-1, -1),
            "places": zeros(2, 4, dtype=np.int64),
            "gains": zeros(2, 4, dtype=np.float32),
        },
    ),
]


@pytest.mark.parametrize(("name", "message", "changed"), WRONG)
def test_arguments_that_do_not_fit_together_are_refused(name: str, message: str, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        call(name, changed)


PROGRAMS: list[tuple[str, int, Any]] = [
    ("must have the same length", 1, longs()),
    ("must have the same length", 3, longs(0, 1, 2, 2)),
    ("do not span", 1, longs(1, 3, 7)),
    ("do not span", 1, longs(0, 3, 8)),
    ("do not span", 3, longs(1, 1, 2)),
    ("do not span", 3, longs(0, 1, 3)),
    ("decrease or leave the codes", 1, longs(0, -1, 7)),
    ("decrease or leave the codes", 1, longs(0, 9, 7)),
    ("different number of constants", 3, longs(0, -1, 2)),
    ("different number of constants", 3, longs(0, 2, 2)),
    ("has format", 2, zeros(2, dtype=np.float32)),
]


@pytest.mark.parametrize("name", ["derivatives", "jacobians", "fit", "novelties"])
@pytest.mark.parametrize(("message", "place", "bad"), PROGRAMS)
def test_programs_whose_parts_do_not_fit_together_are_refused(name: str, message: str, place: int, bad: Any) -> None:
    programs = list(arguments(name)["programs"])
    programs[place] = bad
    with pytest.raises(ValueError, match=message):
        call(name, {"programs": tuple(programs)})


def test_a_candidate_of_too_many_columns_is_refused() -> None:
    n = 4097
    programs = compile_programs([Expression.of("x0")] * n, ("x0", "x1"))
    arrays = (programs.codes, programs.offsets, programs.constants, programs.constant_offsets)
    none = zeros(0, dtype=np.bool_)
    with pytest.raises(ValueError, match="more than 4096 terms and constants"):
        call(
            "fit",
            {
                "programs": arrays,
                "term_offsets": longs(0, n),
                "free": none,
                "constants": zeros(0),
                "coefficients": zeros(n),
            },
        )
    with pytest.raises(ValueError, match="more than 4096 terms"):
        call(
            "novelties",
            {
                "programs": arrays,
                "members": np.arange(n),
                "offsets": longs(0, n),
                "novelty": zeros(n),
                "lengths": zeros(n),
                "triangles": None,
            },
        )


def test_a_level_that_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError):
        module.instruction_set("best")
