"""Rows that could be measured: a box with levels, whole numbers and fixed inputs, or a pool."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.parameters import is_list, is_real
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample, as_target
from sobolev_novelty.errors import DataError, ParameterError, shortened

#: Points inside a box, and corners and midpoints of its sides, at most.
N_INSIDE, N_CORNERS = 2048, 2048
#: Points of a full grid, and rows of a pool, at most.
MAX_GRID, MAX_POOL = 10_000, 20_000
#: Settings are rounded to a power of ten that is at most this share of an input's range.
STEP = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows that could be measured."""

    sample: Sample
    costs: FloatArray  # shape (n,): what each row costs, relative to the others
    is_pool: bool  # whether the rows come from a pool, where each can be taken once; a setting of a box can be repeated


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What an input can be set to: anything from ``low`` to ``high``, or some levels."""

    low: float
    high: float
    levels: FloatArray | None

    def at(self, share: FloatArray) -> FloatArray:
        """Values at shares of the way from the lowest to the highest."""
        if self.levels is not None:
            return self.levels[np.minimum((share * len(self.levels)).astype(np.intp), len(self.levels) - 1)]
        width = self.high - self.low
        values = self.low + share * width
        exponent = math.floor(math.log10(STEP * width)) if 1e-290 < width < math.inf else -400
        unit = 10.0**exponent if exponent > -290 else 0.0
        rounded = np.round(values / unit) * unit if unit else values
        # Ends stay exact, and a range far from zero keeps its digits.
        return np.where((share > 0.0) & (share < 1.0) & (rounded > self.low) & (rounded < self.high), rounded, values)


def candidates_of(
    sample: Sample,
    *,
    bounds: Any = None,
    pool: Any = None,
    levels: Mapping[str, Any] | None = None,
    integers: Sequence[str] | None = None,
    fixed: Any = None,
    costs: Any = None,
) -> Candidates:
    """Candidates from what the user said; see :func:`sobolev_novelty.next_rows`."""
    if pool is None:
        settings = _settings(sample, bounds, levels or {}, () if integers is None else integers, fixed)
        found, is_pool = Sample(np.ascontiguousarray(_points(settings).T), sample.names), False
    else:
        given = {"bounds": bounds, "levels": levels, "integers": integers, "fixed": fixed}
        both = next((name for name, value in given.items() if value is not None), None)
        if both is not None:
            raise ParameterError(
                f"'pool' holds the rows to choose from, and '{both}' describes a box. Give one of them."
            )
        found, is_pool = _pool(pool, sample.names), True
    return Candidates(found, _costs(costs, found, is_pool=is_pool), is_pool)


def _pool(pool: Any, names: tuple[str, ...]) -> Sample:
    """The rows of a pool, in the columns of the rows at hand."""
    has_names = isinstance(pool, Sample) or hasattr(pool, "columns")
    try:
        given = as_sample(pool) if has_names else as_sample(pool, names)
    except DataError as error:
        raise DataError(
            f"'pool' must be a table like 'X': {str(error).replace(chr(39) + 'X' + chr(39), 'it')}"
        ) from error
    missing = [name for name in names if name not in given.names]
    if missing:
        raise DataError(f"'pool' lacks columns of 'X': {', '.join(missing)}. Add them.")
    if given.n_samples > MAX_POOL:
        raise ParameterError(f"'pool' must have at most {MAX_POOL:,} rows. Got {given.n_samples:,}: give a part of it.")
    X = np.ascontiguousarray(given.X[[given.names.index(name) for name in names]])
    bad = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if len(bad):
        raise DataError(
            f"'pool' has {len(bad)} row(s) with missing values, the first is row {bad[0]}. Drop these rows."
        )
    return Sample(X, names)


def _settings(
    sample: Sample, bounds: Any, levels: Mapping[str, Any], integers: Sequence[str], fixed: Any
) -> list[_Setting]:
    """What each input can be set to."""
    names = sample.names
    ranges = _ranges(bounds, names)
    held = dict(fixed) if isinstance(fixed, Mapping) else dict.fromkeys(() if fixed is None else fixed)
    for argument, keys in (("levels", levels), ("integers", integers), ("fixed", held)):
        _check_names(argument, keys, names)
    found = []
    for name, column in zip(names, sample.X, strict=True):
        if name in held and name in levels:
            raise ParameterError(f"'fixed' and 'levels' both name the input {name}. Leave it out of one.")
        is_known = name in ranges or name in levels or held.get(name) is not None
        finite = column[np.isfinite(column)]
        if not len(finite) and not is_known:
            raise DataError(f"Column '{name}' of 'X' has no number to take a range from. Name it in 'bounds'.")
        if name in held:
            found.append(_one(float(np.median(finite)) if held[name] is None else _number("fixed", name, held[name])))
        elif name in levels:
            found.append(
                _levels(np.unique([_number("levels", name, v) for v in _entries("levels", name, levels[name])]))
            )
        else:
            low, high = ranges[name] if name in ranges else (float(finite.min()), float(finite.max()))
            found.append(_whole(name, low, high) if name in integers else _Setting(low, high, None))
    return found


def _one(value: float) -> _Setting:
    return _levels(np.array([value]))


def _levels(values: FloatArray) -> _Setting:
    return _Setting(float(values[0]), float(values[-1]), values)


def _whole(name: str, low: float, high: float) -> _Setting:
    first, last = math.ceil(low), math.floor(high)
    if first > last:
        raise ParameterError(
            f"'integers' names {name}, but there is no whole number from {low:g} to {high:g}. Widen it."
        )
    n = min(last - first + 1, N_INSIDE)
    return _levels(np.unique(np.round(np.linspace(float(first), float(last), n))))


def _ranges(bounds: Any, names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        if len(bounds) != len(names):
            raise ParameterError(
                f"'bounds' must have one (low, high) per column of 'X', {len(names)} in all. Got {len(bounds)}."
            )
        bounds = dict(zip(names, bounds, strict=True))
    _check_names("bounds", bounds, names)
    found = {}
    for name, pair in bounds.items():
        ends = [_number("bounds", name, end) for end in _entries("bounds", name, pair)]
        if len(ends) != 2 or not ends[0] <= ends[1]:
            raise ParameterError(f"'bounds' of {name} must be (low, high) with low ≤ high. Got {shortened(pair)}.")
        found[name] = (ends[0], ends[1])
    return found


def _check_names(argument: str, keys: Iterable[str], names: tuple[str, ...]) -> None:
    unknown = [key for key in keys if key not in names]
    if unknown:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise ParameterError(
            f"'{argument}' names {shortened(unknown[0])}, which is not a column of 'X'. Columns are {shown}."
        )


def _entries(argument: str, name: str, values: Any) -> list[Any]:
    if not is_list(values) or not len(values):
        raise ParameterError(f"'{argument}' of {name} must be a list of numbers. Got {shortened(values)}.")
    return list(values)


def _number(argument: str, name: str, value: Any) -> float:
    if not is_real(value) or abs(value) > 1e300:
        raise ParameterError(f"'{argument}' of {name} must be finite numbers. Got {shortened(value)}.")
    return float(value)


def _points(settings: Sequence[_Setting]) -> FloatArray:
    """The whole grid where it is small; or points all over the box and on its corners and sides, none twice."""
    sizes = [len(s.levels) if s.levels is not None else math.inf for s in settings]
    if math.prod(sizes) <= MAX_GRID:
        return np.array(list(itertools.product(*(s.levels for s in settings if s.levels is not None))))
    free = [k for k, s in enumerate(settings) if s.levels is None or len(s.levels) > 1]
    shares = np.zeros((0, len(settings)))
    for part in (_evenly(N_INSIDE, len(free)), _corners(len(free))):
        block = np.zeros((len(part), len(settings)))
        block[:, free] = part
        shares = np.vstack([shares, block])
    return np.unique(np.stack([s.at(shares[:, k]) for k, s in enumerate(settings)], axis=1), axis=0)


def _evenly(n: int, d: int) -> FloatArray:
    """Points that fill a unit cube evenly: multiples of powers of 1/g, where g^(d+1) = g + 1, modulo 1."""
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (d + 1))
    return np.asarray((0.5 + np.outer(np.arange(n), g ** -np.arange(1.0, d + 1.0))) % 1.0)


def _corners(d: int) -> FloatArray:
    """Corners of a unit cube and midpoints of its sides; of many inputs the corners only, of very many a part."""
    for parts in ((0.0, 0.5, 1.0), (0.0, 1.0)):
        if len(parts) ** d <= N_CORNERS:
            return np.array(list(itertools.product(parts, repeat=d)))
    return np.round(_evenly(N_CORNERS, d))


def _costs(costs: Any, found: Sample, *, is_pool: bool) -> FloatArray:
    if costs is None:
        return np.ones(found.n_samples)
    if callable(costs):
        import pandas as pd

        values = as_target(costs(pd.DataFrame(found.X.T, columns=list(found.names))), found.n_samples, "costs")
    elif not is_pool:
        raise ParameterError(
            "'costs' of a box must be a function of a DataFrame of rows. Got a list: it goes with 'pool'."
        )
    else:
        values = as_target(costs, found.n_samples, "costs")
    if not (values > 0.0).all():
        raise ParameterError(f"'costs' must be above 0. Got {float(values.min()):g}.")
    return values
