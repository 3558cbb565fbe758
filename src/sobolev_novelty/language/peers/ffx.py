"""FFX: a quotient of two sums of coefficients times bases, read from its objects; its text rounds coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.algebra.terms import Term, sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.peers.adapter import FrontEntry

#: FFX's numbers for operators of one argument; the two hinges have a threshold.
_ABS, _MAX0, _MIN0, _LOG10, _GREATER, _LESS = 1, 2, 3, 4, 5, 6


def from_ffx(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted ``ffx.FFXRegressor``, or of one of its models."""
    model = getattr(model, "model_", model)
    if hasattr(model, "constant"):
        return Expression.of(float(model.constant))
    if not hasattr(model, "bases_n"):
        raise ParameterError(f"'model' must be a fitted FFX model. Got {type(model).__name__}.")
    above = _weighted(model.coefs_n[0], model.coefs_n[1:], model.bases_n, names)
    if not len(model.bases_d):
        return above
    return Expression.of("div", above, _weighted(1.0, model.coefs_d, model.bases_d, names))


def ffx_front(model: Any, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """Every model that FFX kept, simplest first; ``loss`` is its error on its test rows, where it has one."""
    entries = (
        FrontEntry(int(m.complexity()), float(getattr(m, "test_nmse", "nan")), from_ffx(m, names=names))
        for m in getattr(model, "models_", [model])
    )
    return tuple(sorted(entries, key=lambda entry: entry.complexity))


def _weighted(offset: float, weights: Sequence[float], bases: Sequence[Any], names: Sequence[str] | None) -> Expression:
    terms = [Term(float(weight), _base(base, names)) for weight, base in zip(weights, bases, strict=True)]
    return sum_of_terms([Term(float(offset), Expression.of(1.0)), *terms])


def _base(base: Any, names: Sequence[str] | None) -> Expression:
    if hasattr(base, "base1"):
        return Expression.of("mul", _base(base.base1, names), _base(base.base2, names))
    if hasattr(base, "simple_base"):
        return _operator(base, _base(base.simple_base, names))
    variable = Expression.of(names[base.var] if names is not None else f"x{base.var}")
    return variable if base.exponent == 1 else Expression.of("pow", variable, float(base.exponent))


def _operator(base: Any, inner: Expression) -> Expression:
    threshold = Expression.of(float(base.thr)) if base.nonlin_op in (_GREATER, _LESS) else Expression.of(0.0)
    made = {
        _ABS: lambda: Expression.of("abs", inner),
        _MAX0: lambda: Expression.of("max", 0.0, inner),
        _MIN0: lambda: Expression.of("min", 0.0, inner),
        _LOG10: lambda: Expression.of("log10", inner),
        _GREATER: lambda: Expression.of("max", 0.0, Expression.of("sub", threshold, inner)),
        _LESS: lambda: Expression.of("max", 0.0, Expression.of("sub", inner, threshold)),
    }
    if base.nonlin_op not in made:
        raise ParameterError(f"FFX's operator {base.nonlin_op} is not known here. Known: 1 to 6.")
    return made[base.nonlin_op]()
