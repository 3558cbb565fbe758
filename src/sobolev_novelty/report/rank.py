"""rank(): every equation that a model offers, with the novelty of its terms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.geometry import Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.parameters import checked
from sobolev_novelty.core.sample import as_sample, as_target
from sobolev_novelty.kernels.evaluate import as_expression, evaluate, read_together
from sobolev_novelty.language.peers import for_every_equation, front_of, is_model
from sobolev_novelty.language.peers.adapter import FrontEntry
from sobolev_novelty.metric.batch import novelties

if TYPE_CHECKING:
    import pandas as pd


@checked()
@for_every_equation
def rank(model: Any, X: Any, y: Any = None, *, tau: float = TAU_ID, order: int = 1) -> pd.DataFrame:
    """Every equation that a model offers, in its own order (simplest first), with the novelty of its terms.

    Parameters
    ----------
    model : fitted model, path of a hall of fame of PySR, equation, or a list of equations and models
        What :func:`sobolev_novelty.novelty` takes. A model with several targets gives a dict with a table for each, its
        chosen equation only.
    X : array of shape (n_samples, n_features) or DataFrame
    y : array of shape (n_samples,), optional
        With it ``loss`` is the mean squared error on these rows; without, what the model itself says.
    tau, order
        See :func:`sobolev_novelty.novelty`.

    Returns
    -------
    DataFrame
        complexity (the model's own count), loss, n_terms, n_qualified, min_novelty, mean_novelty, equation.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> rank(["x0", "x0 + sin(x0)"], X)[["n_terms", "n_qualified"]].values.tolist()
    [[1, 1], [2, 0]]
    """
    from sobolev_novelty.report.render.equation_table import EquationTable

    sample = as_sample(X)
    entries = [entry for one in read_together(_each(model), sample.names) for entry in _entries(one, sample.names)]
    target = None if y is None else as_target(y, sample.n_samples)
    rows = []
    for entry, own in zip(entries, novelties([e.expression for e in entries], sample, order=order), strict=True):
        known = own.status is Status.OK
        loss = entry.loss if target is None else float(np.mean((evaluate(entry.expression, sample) - target) ** 2))
        rows.append(
            {
                "complexity": entry.complexity,
                "loss": loss,
                "n_terms": len(own),
                "n_qualified": int((own.nu > tau).sum()),
                "min_novelty": float(np.min(own.nu)) if known else math.nan,
                "mean_novelty": float(np.mean(own.nu)) if known else math.nan,
                "equation": entry.expression,
            }
        )
    return EquationTable(rows)


def _each(model: Any) -> list[Any]:
    return list(model) if isinstance(model, list | tuple) and not is_model(model) else [model]


def _entries(model: Any, names: tuple[str, ...]) -> list[FrontEntry]:
    if is_model(model):
        return [FrontEntry(e.complexity, e.loss, as_expression(e.expression, names)) for e in front_of(model)]
    expression = as_expression(model, names)
    return [FrontEntry(expression.complexity, math.nan, expression)]
