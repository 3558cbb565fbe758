"""scikit-learn: linear models, alone or behind scalers and ``PolynomialFeatures`` in a pipeline; several targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.peers.adapter import monomial
from sobolev_novelty.terms import Term, sum_of_terms

#: What a pipeline may be made of.
_KNOWN = "PolynomialFeatures, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and a linear model"


def from_linear(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted linear model of scikit-learn, or of a pipeline that ends in one.

    Parameters
    ----------
    model : estimator or Pipeline
        Steps may be ``PolynomialFeatures`` and scalers; a search over parameters stands for its best estimator.
    names : sequence of str, optional
        Names of the inputs; those seen in ``fit`` or ``x0, x1, …`` by default.
    """
    found = _targets(model, names)
    if len(found) > 1:
        raise ParameterError(f"The model has {len(found)} targets. Give one estimator per target.")
    return found[0]


def linear_system(model: Any, *, names: Sequence[str] | None = None) -> dict[str, Expression] | None:
    """The expressions of a model with several targets, as ``y0, y1, …``."""
    found = _targets(model, names)
    return None if len(found) == 1 else {f"y{k}": expression for k, expression in enumerate(found)}


def _targets(model: Any, names: Sequence[str] | None) -> list[Expression]:
    from sobolev_novelty.peers import from_model, is_model

    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "estimators_") and not hasattr(model, "coef_"):
        return [from_model(one, names=names) for one in model.estimators_]
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    *before, last = [step for step in steps if step not in (None, "passthrough")]
    if not hasattr(last, "coef_") and not (before and is_model(last)):
        raise ParameterError(
            f"'model' must be a fitted linear model, or a pipeline that ends in one. Got {type(last).__name__}."
        )
    first = steps[0]
    own = getattr(first, "feature_names_in_", None)
    if names is None:
        names = [f"x{k}" for k in range(first.n_features_in_)] if own is None else [str(name) for name in own]
    columns = [Expression.of(name) for name in names]
    for step in before:
        columns = _transformed(step, columns)
    if not hasattr(last, "coef_"):  # another library's model, or our own, behind scalers
        return [_substituted(from_model(last), last, columns)]
    weights = np.atleast_2d(np.asarray(last.coef_, dtype=float))
    offsets = np.broadcast_to(np.ravel(last.intercept_), (len(weights),))
    return [_weighted(float(b), row, columns) for b, row in zip(offsets, weights, strict=True)]


def _substituted(expression: Expression, last: Any, columns: list[Expression]) -> Expression:
    own = getattr(last, "feature_names_in_", None)
    names = [f"x{k}" for k in range(len(columns))] if own is None else [str(name) for name in own]
    inner = dict(zip(names, columns, strict=True))

    def leaf(token: float | str) -> Expression:
        return inner[token] if isinstance(token, str) else Expression.of(token)

    return expression.fold(leaf, lambda op, operands: Expression.of(op, *operands))


def _weighted(offset: float, weights: Any, columns: list[Expression]) -> Expression:
    terms = [Term(float(w), column) for w, column in zip(weights, columns, strict=True) if w != 0.0]
    if offset != 0.0 or not terms:
        terms.insert(0, Term(offset, Expression.of(1.0)))
    return sum_of_terms(terms)


def _transformed(step: Any, columns: list[Expression]) -> list[Expression]:
    kind = type(step).__name__
    if kind == "PolynomialFeatures":
        return [monomial(powers, columns) for powers in step.powers_.tolist()]
    n = len(columns)
    if kind == "MinMaxScaler":  # x*scale + min
        factors, shifts = step.scale_, step.min_
    elif kind in ("StandardScaler", "RobustScaler", "MaxAbsScaler"):  # (x - centre)/scale
        centre = next((c for c in (getattr(step, a, None) for a in ("mean_", "center_")) if c is not None), 0.0)
        centre = centre if getattr(step, "with_mean", True) else 0.0
        scale = 1.0 if getattr(step, "scale_", None) is None else step.scale_
        factors = 1.0 / np.broadcast_to(scale, n)
        shifts = -np.broadcast_to(centre, n) * factors
    else:
        raise ParameterError(f"The pipeline has a step '{kind}', which is not read here. Known: {_KNOWN}.")
    return [
        Expression.of("add", Expression.of("mul", float(a), column), float(b))
        if b
        else Expression.of("mul", float(a), column)
        for a, b, column in zip(factors, shifts, columns, strict=True)
    ]
