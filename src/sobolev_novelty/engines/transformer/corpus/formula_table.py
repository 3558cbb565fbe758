"""Formulas of a file as the corpus unit reads them: the corpus of those who own one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression, natural_order
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.engines.transformer.corpus.library import MAX_DIM, MAX_NODES
from sobolev_novelty.engines.transformer.tokenizer import CONSTANT, float_tokens, rewritten, to_prefix
from sobolev_novelty.errors import DataError, SobolevError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.tables.formula_files import form_of, opened, read_records


@dataclass(frozen=True, slots=True, eq=False)
class FormulaTable:
    """Formulas one after the other."""

    tokens: npt.NDArray[np.int8]  # int8 array of shape (n_tokens,)
    constants: FloatArray  # shape (n_tokens,): with three digits, as tokens write them
    starts: npt.NDArray[np.int64]  # int64, shape (n_formulas + 1,)
    dims: npt.NDArray[np.int8]  # int8 array of shape (n_formulas,): inputs of each
    n_left_out: int = 0  # formulas of the file that cannot be read or written with the tokens

    def __len__(self) -> int:
        return len(self.dims)

    @classmethod
    def of(cls, path: str | None) -> FormulaTable:
        """The formulas of a file; none without one."""
        return _read(Path(path)) if path is not None else _joined([], 0)

    def native_fields(self) -> dict[str, Any]:
        """Fields of the unit's settings."""
        arrays: dict[str, np.ndarray[Any, Any]] = {
            "file_tokens": self.tokens, "file_constants": self.constants, "file_starts": self.starts,
            "file_dims": self.dims,
        }  # fmt: skip
        return {name: array.ctypes.data for name, array in arrays.items()} | {"n_file": len(self)}


_Prefix = tuple[npt.NDArray[np.int8], FloatArray, int]


def _joined(formulas: list[_Prefix], n_left_out: int) -> FormulaTable:
    return FormulaTable(
        np.concatenate([np.zeros(0, dtype=np.int8), *(tokens for tokens, _, _ in formulas)]),
        np.concatenate([np.zeros(0), *(constants for _, constants, _ in formulas)]),
        np.cumsum([0, *(len(tokens) for tokens, _, _ in formulas)], dtype=np.int64),
        np.array([dim for _, _, dim in formulas], dtype=np.int8),
        n_left_out,
    )


@lru_cache(maxsize=4)
def _read(path: Path) -> FormulaTable:
    found: list[_Prefix] = []
    n_left_out = 0
    with opened(path) as stream:
        for record in read_records(stream, form_of(path)):
            try:
                found.append(_prefix(parse(record.formula.decode("utf-8", errors="replace"))))
            except SobolevError:
                n_left_out += 1
    if not found:
        raise DataError(f"'{path}' has no formula that the tokens can write; {n_left_out} were left out.")
    return _joined(found, n_left_out)


def _prefix(expression: Expression) -> _Prefix:
    names = sorted(expression.variables, key=natural_order)
    if not 1 <= len(names) <= MAX_DIM:
        raise DataError(f"The formula has {len(names)} inputs; 1 to {MAX_DIM} are read.")
    tokens, constants = to_prefix(rewritten(expression), names)
    if not 2 <= len(tokens) <= MAX_NODES:
        raise DataError(f"The formula has {len(tokens)} nodes; 2 to {MAX_NODES} are read.")
    for place, constant in enumerate(constants.tolist()):
        if constant:
            float_tokens(constant)  # refuses what has no tokens
            constants[place] = float(f"{constant:.2e}")
    if (tokens[constants == 0.0] == CONSTANT).any():
        raise DataError("The formula has the constant 0, which has no tokens.")
    return tokens, constants, len(names)
