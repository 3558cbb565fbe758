"""ITEA: a sum of coefficients times functions of products of powers, read from its objects.

Where a term is not finite ITEA predicts its intercept; the expression gives ``nan``, and the report counts the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sobolev_novelty.algebra.terms import Term, sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.peers.adapter import monomial
from sobolev_novelty.language.peers.primitives import IDENTITY, matching_operator


def from_itea(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted ``ITEA_regressor`` or ``ITExpr_regressor``.

    ``names``: names of the inputs; the model's ``labels`` or ``x0, x1, …`` by default.
    """
    found = getattr(model, "bestsol_", model)
    if not hasattr(found, "coef_") or not hasattr(found, "expr"):
        raise ParameterError(f"'model' must be a fitted ITEA regressor. Got {type(model).__name__}.")
    n_inputs = len(found.expr[0][1]) if len(found.expr) else 0
    labels = [str(label) for label in getattr(found, "labels", ())]
    if names is None:
        names = labels if len(labels) == n_inputs else [f"x{k}" for k in range(n_inputs)]
    terms = [Term(float(np.asarray(found.intercept_).item()), Expression.of(1.0))]
    for weight, (function, exponents) in zip(np.ravel(found.coef_), found.expr, strict=True):
        inner = monomial(exponents, [Expression.of(name) for name in names])
        op = matching_operator(found.tfuncs[function], 1, function)
        terms.append(Term(float(weight), inner if op == IDENTITY else Expression.of(op, inner)))
    return sum_of_terms(terms)
