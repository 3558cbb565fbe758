"""scikit-learn: linear models, alone or behind scalers and ``PolynomialFeatures`` in a pipeline; several targets.

A polynomial of scaled inputs is written as the polynomial of the inputs that it is, where that costs few digits: the
square of a scaled input brings numbers that the coefficients of lower powers make up for, and terms that no data
determine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sobolev_novelty.algebra.terms import Term, sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.peers.adapter import monomial

#: A polynomial is multiplied out where its summands are no more than this much larger than their sum, and so many.
MOST_CANCELLED, MOST_SUMMANDS = 1e6, 100_000
#: Coefficients below this share of what was added up have cancelled.
CANCELLED = 1e-12
#: What a pipeline may be made of.
_KNOWN = "PolynomialFeatures, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and a linear model"


def from_linear(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted linear model of scikit-learn, or of a pipeline that ends in one.

    ``model``: steps may be ``PolynomialFeatures`` and scalers; a search over parameters stands for its best estimator.
    ``names``: names of the inputs; those seen in ``fit`` or ``x0, x1, …`` by default.
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
    from sobolev_novelty.language.peers import from_model, is_model

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
    inputs = columns = [Expression.of(name) for name in names]
    for step in before:
        columns = _transformed(step, columns)
    if not hasattr(last, "coef_"):  # another library's model, or our own, behind scalers
        return [_behind(from_model(last), last, columns)]
    weights = np.atleast_2d(np.asarray(last.coef_, dtype=float))
    offsets = np.broadcast_to(np.ravel(last.intercept_), (len(weights),))
    polynomials = _polynomials(before, len(inputs))
    found = []
    for b, row in zip(offsets.tolist(), weights, strict=True):
        whole = None if polynomials is None else _sum([b, *row.tolist()], [{(0,) * len(inputs): 1.0}, *polynomials])
        found.append(_weighted(b, row, columns) if whole is None else _written(whole, inputs))
    return found


def _behind(expression: Expression, last: Any, columns: list[Expression]) -> Expression:
    own = getattr(last, "feature_names_in_", None)
    names = [f"x{k}" for k in range(len(columns))] if own is None else [str(name) for name in own]
    return expression.substituted(dict(zip(names, columns, strict=True)))


def _weighted(offset: float, weights: Any, columns: list[Expression]) -> Expression:
    terms = [Term(float(w), column) for w, column in zip(weights, columns, strict=True) if w != 0.0]
    if offset != 0.0 or not terms:
        terms.insert(0, Term(offset, Expression.of(1.0)))
    return sum_of_terms(terms)


#: Powers of the inputs -> coefficient.
Polynomial = dict[tuple[int, ...], float]


def _polynomials(steps: Sequence[Any], n_inputs: int) -> list[Polynomial] | None:
    """The columns behind the steps as polynomials of the inputs; None where that is not asked for or costs digits."""
    kinds = [type(step).__name__ for step in steps]
    if "PolynomialFeatures" not in kinds[1:]:
        return None
    columns: list[Polynomial] = [{tuple(row): 1.0} for row in np.eye(n_inputs, dtype=int).tolist()]
    worst = 1.0
    for step, kind in zip(steps, kinds, strict=True):
        if kind == "PolynomialFeatures":
            powers = step.powers_
            worst **= int(powers.sum(axis=1).max(initial=1))
            n_summands = sum(float(np.prod([len(columns[j]) ** int(m) for j, m in enumerate(p) if m])) for p in powers)
            if worst > MOST_CANCELLED or n_summands > MOST_SUMMANDS:
                return None
            columns = [_product(columns, row) for row in powers.tolist()]
        else:
            factors, shifts = _affine(step, len(columns))
            worst *= 1.0 + 2.0 * float(np.abs(shifts).max(initial=0.0))
            constant = {(0,) * n_inputs: 1.0}
            columns = [_sum([a, b], [c, constant]) for a, b, c in zip(factors, shifts, columns, strict=True)]
    return columns if worst <= MOST_CANCELLED else None


def _sum(weights: Sequence[float], polynomials: Sequence[Polynomial]) -> Polynomial:
    total: Polynomial = {}
    size: Polynomial = {}
    for weight, polynomial in zip(weights, polynomials, strict=True):
        for powers, c in polynomial.items() if weight else ():
            total[powers] = total.get(powers, 0.0) + weight * c
            size[powers] = size.get(powers, 0.0) + abs(weight * c)
    return {powers: c for powers, c in total.items() if abs(c) > CANCELLED * size[powers]}


def _product(columns: Sequence[Polynomial], exponents: Sequence[int]) -> Polynomial:
    found: Polynomial = {(0,) * len(next(iter(columns[0]), ())): 1.0}
    for column, exponent in zip(columns, exponents, strict=True):
        for _ in range(exponent):
            each = [
                ({tuple(map(sum, zip(p, q, strict=True))): d for q, d in column.items()}, c) for p, c in found.items()
            ]
            found = _sum([c for _, c in each], [shifted for shifted, _ in each])
    return found


def _written(polynomial: Polynomial, inputs: Sequence[Expression]) -> Expression:
    """Lower powers first."""
    ordered = sorted(polynomial.items(), key=lambda entry: (sum(entry[0]), [-power for power in entry[0]]))
    terms = [Term(c, monomial(powers, inputs)) for powers, c in ordered]
    return sum_of_terms(terms or [Term(0.0, Expression.of(1.0))])


def _transformed(step: Any, columns: list[Expression]) -> list[Expression]:
    kind = type(step).__name__
    if kind == "PolynomialFeatures":
        return [monomial(powers, columns) for powers in step.powers_.tolist()]
    factors, shifts = _affine(step, len(columns))
    return [
        Expression.of("add", Expression.of("mul", float(a), column), float(b))
        if b
        else Expression.of("mul", float(a), column)
        for a, b, column in zip(factors, shifts, columns, strict=True)
    ]


def _affine(step: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Factor and shift of each column behind a scaler."""
    kind = type(step).__name__
    if kind == "MinMaxScaler":  # x*scale + min
        return np.asarray(step.scale_), np.asarray(step.min_)
    if kind not in ("StandardScaler", "RobustScaler", "MaxAbsScaler"):  # (x - centre)/scale
        raise ParameterError(f"The pipeline has a step '{kind}', which is not read here. Known: {_KNOWN}.")
    centre = next((c for c in (getattr(step, a, None) for a in ("mean_", "center_")) if c is not None), 0.0)
    centre = centre if getattr(step, "with_mean", True) else 0.0
    scale = 1.0 if getattr(step, "scale_", None) is None else step.scale_
    factors = 1.0 / np.broadcast_to(scale, n)
    return factors, np.broadcast_to(-np.broadcast_to(centre, n) * factors, n)
