"""Parts of an equation and summaries of rows as plain JSON values: no pickle, so that foreign bytes run no code."""

from __future__ import annotations

import base64
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.report.streaming.moments import Moments, Size
from sobolev_novelty.report.streaming.row_summary import RowSummary

#: An equation, or one of the terms it is given as, before the columns of the data are known.
Part: TypeAlias = str | Expression | Term

_MOMENTS = tuple(field.name for field in fields(Moments))
_COUNTS = ("dropped", "n_finite")


def part_to_json(part: Part) -> dict[str, Any]:
    """Text as it is; an expression as tokens, operators in a list of one."""
    if isinstance(part, str):
        return {"text": part}
    if isinstance(part, Term):
        return part_to_json(part.expression) | {"coefficient": part.coefficient}
    return {"tokens": [[token.name] if isinstance(token, Operator) else token for token in part.tokens]}


def part_from_json(data: dict[str, Any]) -> Part:
    """The inverse of :func:`part_to_json`."""
    if "text" in data:
        return str(data["text"])
    tokens: list[Token] = [OPERATORS[token[0]] if isinstance(token, list) else token for token in data["tokens"]]
    expression = Expression(tokens)
    return Term(float(data["coefficient"]), expression) if "coefficient" in data else expression


def summary_to_json(summary: RowSummary) -> dict[str, Any]:
    """Numbers, and arrays as base64 text of little-endian numbers."""
    return {
        "factors": _text(summary.factors, "<f8"),
        "units": _text(summary.units, "<f8"),
        "moments": {name: _text(getattr(summary.moments, name), _dtype(name)) for name in _MOMENTS},
        "size": [summary.size.unit.hex(), summary.size.total.hex()],
        "n_samples": summary.n_samples,
        "n_used": summary.n_used,
        **{name: _text(getattr(summary, name), "<i8") for name in _COUNTS},
    }


def summary_from_json(data: dict[str, Any], like: RowSummary) -> RowSummary:
    """The inverse of :func:`summary_to_json`; ``ValueError`` where the numbers do not fit one like ``like``."""
    found = RowSummary(
        _array(data["factors"], like.factors, "<f8"),
        # Before format 3 slopes were along the inputs as they are.
        _array(data["units"], like.units, "<f8") if "units" in data else like.units,
        Moments(
            **{name: _array(data["moments"][name], getattr(like.moments, name), _dtype(name)) for name in _MOMENTS}
        ),
        Size(*(float.fromhex(number) for number in data["size"])),
        int(data["n_samples"]),
        int(data["n_used"]),
        **{name: _array(data[name], getattr(like, name), "<i8") for name in _COUNTS},
    )
    counts = np.concatenate([found.moments.count, found.dropped, found.n_finite, [found.n_used]])
    if not (
        counts.min() >= 0
        and counts.max() <= found.n_samples
        and np.isfinite(found.factors).all()
        and _are_units(found.units)
    ):
        raise ValueError("its numbers contradict each other")
    return found


def _are_units(units: npt.NDArray[Any]) -> bool:
    return bool((np.isfinite(units) & (units > 0.0)).all())


def _dtype(name: str) -> str:
    return "<i8" if name == "count" else "<f8"


def _text(array: npt.NDArray[Any], dtype: str) -> str:
    return base64.b64encode(array.astype(dtype).tobytes()).decode()


def _array(text: str, like: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype).reshape(like.shape).astype(like.dtype)
