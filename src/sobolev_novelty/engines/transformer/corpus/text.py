"""Formulas as text, judged by the compiled corpus unit: many thousands per second, without Python objects for them.

The unit knows the operators of the corpus and judges as :func:`sobolev_novelty.accepts` does. What it does not know for
certain (another operator, a formula that is too large, a novelty within 1e-6 of the threshold) it leaves undecided.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import RESERVED
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.engines.transformer.corpus.library import MAX_DIM, N_POINTS, native, pointer
from sobolev_novelty.engines.transformer.tokenizer import FIRST_OPERATOR, SKELETON_NAMES
from sobolev_novelty.language.parsing.functions import DIALECTS, FUNCTIONS
from sobolev_novelty.language.parsing.machine import CONSTANTS

#: Thresholds from which on the unit may judge: below, a Gram matrix does not tell novelties apart.
LOWEST_TAU = 1e-3
#: The three calls that the unit rewrites, numbered as in native/reader.h.
_CALLS = {name: number for number, name in enumerate(SKELETON_NAMES) if number >= FIRST_OPERATOR}
_CALLS |= {"div": 100, "pow": 101, "neg": 102}


class _Words(ctypes.Structure):
    """``Words`` of native/reader.h, field by field."""

    _fields_ = (
        ("word", ctypes.c_void_p),
        ("call", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("n_words", ctypes.c_int32),
        ("column", ctypes.c_void_p),
        ("column_index", ctypes.c_void_p),
        ("n_columns", ctypes.c_int32),
    )


@dataclass(frozen=True, slots=True, eq=False)
class TextJudge:
    """Judges texts on one sample.

    >>> judge = TextJudge(np.linspace(-1.0, 1.0, 100)[None, :], tau=0.316)
    >>> judge([b"x0 + sin(x0)", b"x0 + cos(3*x0)", b"erf(x0)"])[0].tolist()
    [9, 0, -1]
    """

    X: FloatArray  # shape (n_columns, n_points): at most 200 points, all finite
    #: Names of the columns. Without, variable number ``k`` of a formula (``x0``, ``x1``, … by number, then other names
    #: in the order of their letters) has column ``k``.
    columns: Sequence[str] = ()
    tau: float = 0.0  # at least 0.001
    dialect: str = "plain"  # {"plain", "gplearn"}
    _padded: FloatArray = field(init=False)
    _words: _Words = field(init=False)
    _kept: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        n_columns, n_points = self.X.shape
        assert n_points <= N_POINTS and self.tau >= LOWEST_TAU
        assert self.columns or n_columns <= MAX_DIM
        padded = np.zeros((max(n_columns, MAX_DIM), N_POINTS))
        padded[:n_columns, :n_points] = self.X
        meanings = _meanings(self.dialect)
        words = sorted(meanings)
        order = sorted(range(len(self.columns)), key=lambda k: self.columns[k].encode())
        kept = [
            _texts([word.encode() for word in words]),
            np.array([meanings[word][0] for word in words], dtype=np.int32),
            np.array([meanings[word][1] for word in words]),
            _texts([self.columns[k].encode() for k in order]),
            np.array(order, dtype=np.int32),
        ]
        table = _Words(
            ctypes.addressof(kept[0]), kept[1].ctypes.data, kept[2].ctypes.data, len(words),
            ctypes.addressof(kept[3]), kept[4].ctypes.data, len(order),
        )  # fmt: skip
        for name, value in (("_padded", padded), ("_words", table), ("_kept", kept)):
            object.__setattr__(self, name, value)

    def __call__(self, texts: Sequence[bytes]) -> tuple[npt.NDArray[np.int8], FloatArray]:
        """Places in ``VERDICTS`` (or -1: undecided) and smallest novelties."""
        start = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in texts], out=start[1:])
        verdicts, lowest = np.empty(len(texts), dtype=np.int8), np.empty(len(texts))
        native().sobolev_corpus_judge(
            ctypes.byref(self._words), b"".join(texts), pointer(start), ctypes.c_int64(len(texts)),
            pointer(self._padded), ctypes.c_int32(self.X.shape[1]), ctypes.c_double(self.tau), pointer(verdicts),
            pointer(lowest),
        )  # fmt: skip
        return verdicts, lowest


def _texts(texts: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * max(1, len(texts)))(*texts)


def is_reserved(name: str) -> bool:
    """Whether a column of this name would change how texts are read."""
    return name in _meanings("plain") or not name.isidentifier()


def _meanings(dialect: str) -> dict[str, tuple[int, float]]:
    """What each word that is not a variable means: its token where it is called, its value where it stands alone."""
    functions = {**FUNCTIONS, **DIALECTS[dialect]}
    meanings = {word: (0, CONSTANTS.get(word, np.nan)) for word in (*RESERVED, *functions, *CONSTANTS)}
    for spelling, function in functions.items():
        operands = ("a", "b")[: function.n_min]
        tree = function.build(*operands)
        call = _CALLS.get(tree[0].name, 0) if isinstance(tree, tuple) and tree[1:] == operands else 0
        meanings[spelling] = (call, meanings[spelling][1])
    return meanings
