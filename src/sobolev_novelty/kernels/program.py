"""Programs: expressions as the kernels read them.

A program is its expression's prefix sequence, one ``int32`` per token: an opcode (1 to 255, the operator's row; below 0
an own operator), ``CONSTANT``, or ``FIRST_VARIABLE`` + column. The kernels walk it from right to left with a stack.
Constants are kept apart, in prefix order, so that a fit can change them without touching the code. A population is one
:class:`Programs`: all codes in a row, with offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import OPCODES
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError, KernelError

IntArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]

CONSTANT = 0
FIRST_VARIABLE = 256
#: Longer programs are refused: the scratch memory of a thread grows with the longest program.
MAX_PROGRAM_LENGTH = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """A population of compiled expressions."""

    codes: IntArray  # int32, shape (total_length,)
    offsets: OffsetArray  # int64, shape (n_programs + 1,): program ``i`` is ``codes[offsets[i]:offsets[i + 1]]``
    constants: FloatArray  # shape (total_constants,): in prefix order within each program
    constant_offsets: OffsetArray  # int64, shape (n_programs + 1,)
    n_features: int  # columns the variables may refer to

    @property
    def n_programs(self) -> int:
        """Number of programs in the population."""
        return len(self.offsets) - 1

    @property
    def has_own(self) -> bool:
        """Whether some program holds an operator that a user registered: only the NumPy kernel can call it."""
        return bool(self.codes.min(initial=0) < 0)


def compile_programs(expressions: Sequence[Expression], names: Sequence[str]) -> Programs:
    """Translate expressions; variable ``names[k]`` is column ``k``."""
    places: dict[object, int] = dict(OPCODES)
    places.update(zip(names, count(FIRST_VARIABLE)))
    place = places.get
    codes: list[int] = []
    constants: list[float] = []
    offsets = [0]
    constant_offsets = [0]
    for expression in expressions:
        tokens = expression.tokens
        if len(tokens) > MAX_PROGRAM_LENGTH:
            raise KernelError(
                f"The expression has {len(tokens)} nodes; programs of more than {MAX_PROGRAM_LENGTH} are refused. "
                "Simplify it first."
            )
        own = list(map(place, tokens, repeat(CONSTANT)))
        n_constants = own.count(CONSTANT)
        if n_constants:
            numbers = [token for token in tokens if isinstance(token, float)]
            if len(numbers) < n_constants:
                raise _unknown_variable(tokens, places, names)
            constants += numbers
        codes += own
        offsets.append(len(codes))
        constant_offsets.append(len(constants))
    return Programs(
        np.array(codes, dtype=np.int32),
        np.array(offsets, dtype=np.int64),
        np.array(constants, dtype=np.float64),
        np.array(constant_offsets, dtype=np.int64),
        len(names),
    )


def _unknown_variable(tokens: Sequence[Token], places: Mapping[object, int], names: Sequence[str]) -> ExpressionError:
    token = next(token for token in tokens if not isinstance(token, float) and token not in places)
    shown = ", ".join(list(names)[:12]) + (", …" if len(names) > 12 else "")
    return ExpressionError(f"Variable '{token}' is not a column of X. Its columns are: {shown or 'none'}.")


def select(programs: Programs, indices: npt.NDArray[np.int64]) -> Programs:
    """The programs with these indices, in this order."""
    codes = [programs.codes[programs.offsets[i] : programs.offsets[i + 1]] for i in indices]
    constants = [programs.constants[programs.constant_offsets[i] : programs.constant_offsets[i + 1]] for i in indices]
    return Programs(
        np.concatenate(codes) if codes else np.zeros(0, dtype=np.int32),
        np.concatenate([[0], np.cumsum([len(c) for c in codes], dtype=np.int64)]).astype(np.int64),
        np.concatenate(constants) if constants else np.zeros(0),
        np.concatenate([[0], np.cumsum([len(c) for c in constants], dtype=np.int64)]).astype(np.int64),
        programs.n_features,
    )


def unique(programs: Programs) -> tuple[Programs, npt.NDArray[np.int64]]:
    """The different programs among these, and for each of these its index among them."""
    places: dict[tuple[bytes, bytes], int] = {}
    index = np.empty(programs.n_programs, dtype=np.int64)
    first: list[int] = []
    offsets, constant_offsets = programs.offsets.tolist(), programs.constant_offsets.tolist()
    for i in range(programs.n_programs):
        key = (
            programs.codes[offsets[i] : offsets[i + 1]].tobytes(),
            programs.constants[constant_offsets[i] : constant_offsets[i + 1]].tobytes(),
        )
        place = places.setdefault(key, len(first))
        if place == len(first):
            first.append(i)
        index[i] = place
    if len(first) == programs.n_programs:
        return programs, index
    return select(programs, np.array(first, dtype=np.int64)), index


def with_constants(programs: Programs, constants: FloatArray) -> Programs:
    """The same codes with other constants, all programs' in a row."""
    return Programs(programs.codes, programs.offsets, constants, programs.constant_offsets, programs.n_features)
