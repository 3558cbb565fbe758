"""PySINDy: the model is terms times coefficients already; the terms are read from their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sobolev_novelty.algebra.terms import Term, sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.parsing import parse


def from_pysindy(model: Any, *, target: int | None = None, names: Sequence[str] | None = None) -> Expression:
    """The expression of one target of a fitted ``pysindy.SINDy``.

    ``target``: which row of the coefficients; may be left out where there is one.
    ``names``: names of the inputs; the model's ``feature_names`` by default.
    """
    coefficients = np.atleast_2d(np.asarray(model.coefficients(), dtype=float))
    if target is None:
        if len(coefficients) > 1:
            raise ParameterError(f"'target' must be given: the model has {len(coefficients)} targets. Got None.")
        target = 0
    if not 0 <= target < len(coefficients):
        raise ParameterError(f"'target' must be below {len(coefficients)}. Got {target}.")
    own = [str(name) for name in model.feature_names]
    terms = [
        Term(float(value), _without_unit_factors(parse(text, names=own, variables="names")))
        for text, value in zip(model.get_feature_names(), coefficients[target], strict=True)
        if value != 0.0
    ]
    renamed = dict(zip(own, names, strict=True)) if names is not None else {}
    return sum_of_terms(terms).rename(renamed)


def pysindy_system(model: Any, *, names: Sequence[str] | None = None) -> dict[str, Expression] | None:
    """Every equation of a model with several targets, by the name of its state where there is one for each."""
    n_targets = len(np.atleast_2d(model.coefficients()))
    if n_targets == 1:
        return None
    own = [str(name) for name in model.feature_names]
    keys = own if len(own) == n_targets else [f"y{k}" for k in range(n_targets)]
    return {key: from_pysindy(model, target=k, names=names) for k, key in enumerate(keys)}


def _without_unit_factors(expression: Expression) -> Expression:
    """``sin(1*x0)``, as PySINDy writes its first frequency, is ``sin(x0)``."""

    def node(op: Operator, operands: tuple[Expression, ...]) -> Expression:
        if op.name == "mul" and operands[0].tokens == (1.0,):
            return operands[1]
        return Expression.of(op, *operands)

    return expression.fold(Expression.of, node)
