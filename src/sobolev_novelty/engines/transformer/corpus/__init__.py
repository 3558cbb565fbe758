"""Formulas with their data, in any number, each a function of (settings, index).

A *candidate* is what the law of formulas gives for one index. It enters the corpus when its values are finite, its
terms are few enough, its skeleton is not held out and, in the filtered arm, every term is novel on its own points.
Batch ``k`` takes the first accepted ones from index ``k · STRIDE`` on, so batches can be made in any order by any
number of threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.engines.transformer.corpus.formula_table import FormulaTable
from sobolev_novelty.engines.transformer.corpus.library import (
    ARMS,
    INPUT_KINDS,
    LAWS,
    MAX_DIM,
    MAX_NODES,
    MAX_TERMS,
    N_POINTS,
    N_UNITS,
    VERDICTS,
    NativeSettings,
    native,
    pointer,
)
from sobolev_novelty.engines.transformer.corpus.settings import CorpusSettings
from sobolev_novelty.engines.transformer.tokenizer import from_prefix
from sobolev_novelty.errors import KernelError, ParameterError

#: Candidates reserved for each batch; a batch uses a small part of them.
STRIDE = 1 << 20

T = TypeVar("T")
Int16Array = npt.NDArray[np.int16]
Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Formulas as the network sees them.

    ``dims``, ``n_terms``: int8 arrays of shape (n,).
    """

    #: float32, shape (n, 200, 10): inputs; unused columns are 0, and rows are repeated where a formula has fewer
    #: points.
    X: Float32Array
    y: Float32Array  # float32, shape (n, 200)
    tokens: Int16Array  # int16 array of shape (n, length): BEGIN, formula, END, padding
    indices: npt.NDArray[np.int64]  # int64, shape (n,): which candidate each formula is
    dims: npt.NDArray[np.int8]
    n_terms: npt.NDArray[np.int8]
    counts: npt.NDArray[np.int64]  # what became of the candidates that were looked at, by ``VERDICTS``


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One candidate in full precision: prefix tokens, their constants, its own points.

    ``units`` are the SI exponents (kg, m, s, A, K) of its inputs in the physics grammar, and 0 elsewhere.
    """

    tokens: npt.NDArray[np.int8]
    constants: FloatArray
    X: FloatArray
    y: FloatArray
    n_terms: int
    min_novelty: float
    verdict: str
    units: npt.NDArray[np.int8]

    @property
    def expression(self) -> Expression:
        """The formula, in x0, x1, …."""
        return from_prefix(self.tokens.tolist(), self.constants.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Batches and single formulas of one corpus.

    Parameters
    ----------
    settings : CorpusSettings
    with_floats : bool
        Constants are written out as sign, mantissa and exponent, instead of one placeholder.
    """

    settings: CorpusSettings
    with_floats: bool = False
    _held_out: npt.NDArray[np.uint64] = field(init=False)
    _keep: FloatArray = field(init=False)
    _file: FormulaTable = field(init=False)

    def __post_init__(self) -> None:
        from sobolev_novelty.engines.transformer.corpus.decontaminate import held_out_hashes

        if self.settings.arm == "matched" and not self.settings.keep:
            raise ParameterError("The matched arm needs 'keep': see matching_keep().")
        hashes = held_out_hashes() if self.settings.hold_out else np.zeros(0, dtype=np.uint64)
        object.__setattr__(self, "_held_out", hashes)
        object.__setattr__(self, "_keep", np.array(self.settings.keep, dtype=np.float64))
        object.__setattr__(self, "_file", FormulaTable.of(self.settings.formulas))

    @property
    def length(self) -> int:
        """Tokens per row, BEGIN and END included."""
        return 2 + (self.settings.max_float_tokens if self.with_floats else self.settings.max_nodes)

    def batch(self, number: int, size: int) -> Batch:
        """Batch ``number``: the same whenever and wherever it is made."""
        batch = Batch(
            np.empty((size, N_POINTS, MAX_DIM), dtype=np.float32),
            np.empty((size, N_POINTS), dtype=np.float32),
            np.empty((size, self.length), dtype=np.int16),
            np.empty(size, dtype=np.int64),
            np.empty(size, dtype=np.int8),
            np.empty(size, dtype=np.int8),
            np.zeros(len(VERDICTS), dtype=np.int64),
        )
        arrays = (batch.X, batch.y, batch.tokens, batch.indices, batch.dims, batch.n_terms, batch.counts)
        found = native().sobolev_corpus_fill(
            ctypes.byref(self._native()), ctypes.c_int64(number * STRIDE), ctypes.c_int64((number + 1) * STRIDE),
            size, int(self.with_floats), self.length, *(pointer(array) for array in arrays),
        )  # fmt: skip
        if found != size:
            raise KernelError(
                f"Only {found} of {STRIDE} candidates were accepted; {size} are needed. Loosen the settings."
            )
        return batch

    def candidate(self, index: int) -> Candidate:
        """Candidate number ``index``, accepted or not."""
        tokens = np.zeros(MAX_NODES, dtype=np.int8)
        constants, X, y = np.zeros(MAX_NODES), np.zeros((MAX_DIM, N_POINTS)), np.zeros(N_POINTS)
        info, lowest = np.zeros(4, dtype=np.int32), np.zeros(1)
        units = np.zeros((MAX_DIM, N_UNITS), dtype=np.int8)
        arrays = (tokens, constants, X, y, info, lowest, units)
        verdict = native().sobolev_corpus_formula(
            ctypes.byref(self._native()), ctypes.c_int64(index), *(pointer(array) for array in arrays)
        )
        length, dim, n_points, n_terms = (int(value) for value in info)
        return Candidate(
            tokens[:length], constants[:length], X[:dim, :n_points].copy(), y[:n_points].copy(), n_terms,
            float(lowest[0]), VERDICTS[verdict], units[:dim],
        )  # fmt: skip

    @property
    def n_left_out(self) -> int:
        """Formulas of the file that cannot be read or written with the tokens."""
        return self._file.n_left_out

    def accepted(self) -> Iterator[Candidate]:
        """The candidates of the corpus, from index 0 on."""
        return (candidate for candidate in map(self.candidate, count()) if candidate.verdict == "accepted")

    def pass_rates(self, n: int, *, first: int = 0, n_threads: int = 1) -> tuple[FloatArray, FloatArray]:
        """How many of ``n`` candidates reach the filter and pass it, by dimension and number of terms: two (10, 65)."""
        shape = (2, n_threads, MAX_DIM, MAX_TERMS + 1)
        counts = np.zeros(shape, dtype=np.int64)
        share = -(-n // n_threads)

        def survey(k: int) -> None:
            size = max(0, min(share, n - k * share))
            native().sobolev_corpus_survey(
                ctypes.byref(self._native()), ctypes.c_int64(first + k * share), ctypes.c_int64(size),
                pointer(counts[0, k]), pointer(counts[1, k]),
            )  # fmt: skip

        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(survey, range(n_threads)))
        reached, passed = counts.sum(axis=1).astype(np.float64)
        return reached, passed

    def _native(self) -> NativeSettings:
        s = self.settings
        native_settings = NativeSettings(
            seed=s.seed, law=LAWS.index(s.law), arm=ARMS.index(s.arm),
            judge_kind=-1 if s.judge is None else INPUT_KINDS.index(s.judge), max_dim=len(s.dimensions),
            max_nodes=s.max_nodes, max_float_tokens=s.max_float_tokens, min_points=s.min_points, tries=s.tries,
            is_free=int(s.intercept == "free"),
            full_share=s.full_share, max_target=s.max_target, max_angle=s.max_angle, tau=s.tau,
            held_out=self._held_out.ctypes.data, n_held_out=len(self._held_out), keep=self._keep.ctypes.data,
            **self._file.native_fields(),
        )  # fmt: skip
        native_settings.dim_weights[: len(s.dimensions)] = s.dimensions
        native_settings.input_weights[:] = [float(s.inputs.get(kind, 0.0)) for kind in INPUT_KINDS]
        return native_settings


def matching_keep(reached: FloatArray, passed: FloatArray) -> tuple[float, ...]:
    """Chances that thin a random corpus to the filtered one's law of dimension and number of terms."""
    rate = passed / np.maximum(reached, 1.0)
    return tuple((rate / rate.max()).ravel().tolist())


def ordered_batches(
    corpus: Corpus, size: int, *, first: int = 0, n_threads: int = 1, prepare: Callable[[Batch], T]
) -> Generator[T, None, None]:
    """Batches ``first``, ``first + 1``, … in order, made ahead by threads; ``prepare`` runs in the thread.

    The C code runs outside the interpreter's lock. Closing the iterator ends the threads.
    """

    def make(number: int) -> T:
        return prepare(corpus.batch(number, size))

    pool = ThreadPoolExecutor(n_threads)
    waiting: list[Future[T]] = []
    try:
        number = first
        while True:
            while len(waiting) < 2 * n_threads + 2:
                waiting.append(pool.submit(make, number))
                number += 1
            yield waiting.pop(0).result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


__all__ = [
    "INPUT_KINDS",
    "MAX_DIM",
    "MAX_NODES",
    "N_POINTS",
    "VERDICTS",
    "Batch",
    "Candidate",
    "Corpus",
    "CorpusSettings",
    "matching_keep",
    "ordered_batches",
]
