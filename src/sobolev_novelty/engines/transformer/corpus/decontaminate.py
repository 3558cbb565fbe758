"""Keep the formulas of the benchmarks out of the training corpus.

A skeleton is a formula's additive terms without their constants; ``corpus/native/skeleton.h`` says which formulas share
one. ``held_out.txt`` lists the 64-bit hashes of those that training must not see, and the corpus unit rejects them. The
list is made by ``tools/hold_out.py`` from the white-box tasks, the textbook laws and the anchor benchmarks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib import resources

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.transformer.corpus.library import MAX_NODES, native, pointer
from sobolev_novelty.engines.transformer.tokenizer import rewritten, to_prefix
from sobolev_novelty.errors import ExpressionError

HELD_OUT = "held_out.txt"


def skeleton_hash(expression: Expression, names: Sequence[str] | None = None) -> int:
    """The hash of an expression's skeleton.

    Raises
    ------
    ExpressionError
        Where the expression has operators without tokens, more than ten inputs or too many terms: no formula of the
        corpus is equal to such a one.
    """
    tokens, constants = to_prefix(rewritten(expression), expression.variables if names is None else names)
    if len(tokens) > MAX_NODES:
        raise ExpressionError(f"The formula has {len(tokens)} nodes; the corpus has at most {MAX_NODES}.")
    value = int(native().sobolev_corpus_skeleton(pointer(tokens), pointer(constants), ctypes.c_int32(len(tokens))))
    if value == 0:
        raise ExpressionError("The formula has more additive terms than the corpus allows.")
    return value


def skeleton_hashes(expression: Expression) -> set[int]:
    """Hashes of the expression as it is and with general constants, where terms that cancel for these come back."""
    general = expression.with_constants([(k + 2.0) ** 0.5 for k in range(len(expression.constants))])
    return {skeleton_hash(expression), skeleton_hash(general)}


@cache
def held_out_hashes() -> npt.NDArray[np.uint64]:
    """The sorted hashes of the list that comes with the package."""
    text = resources.files("sobolev_novelty.engines.transformer.corpus").joinpath(HELD_OUT).read_text(encoding="ascii")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return np.array(sorted({int(line, 16) for line in lines}), dtype=np.uint64)
