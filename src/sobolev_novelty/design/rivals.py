"""What is to be told apart: one equation, several, or a fitted model and what it nearly chose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import as_expression, derivatives, read_together
from sobolev_novelty.language.peers import front_of, is_model
from sobolev_novelty.report.intervals.constants import parametrised
from sobolev_novelty.report.intervals.profiles import best_fit
from sobolev_novelty.report.intervals.rows import FittedRows

#: Equations of a list at most; those of a model that are looked at.
MAX_EQUATIONS, N_READ = 20, 40
#: Equations of a model that cost so much more than the chosen one, in nats, have lost; but some are always looked at.
NEAR_NATS, N_AT_LEAST = 10.0, 4
#: The noise where nothing is known of it, as a share of the spread of the first equation.
SHARE_OF_SPREAD = 0.1
#: A fit that leaves no more than this share of the spread has no noise that could be estimated.
EXACT = 1e-6


@dataclass(frozen=True, slots=True)
class Equations:
    """Equations to tell apart, the leading one first, and the noise.

    Parameters
    ----------
    expressions : tuple of Expression
    sigma : float
    origin : str
        Where ``sigma`` comes from: ``"given"``, ``"target"``, ``"model"`` or ``"assumed"``.
    is_offered : bool
        Whether a model offers them: then those after the first can be left out.
    """

    expressions: tuple[Expression, ...]
    sigma: float
    origin: str
    is_offered: bool


def equations_of(models: Any, sample: Sample, y: FloatArray | None, sigma: float | None) -> Equations:
    """Read the equations; with a target they are refitted, and the best one's residuals say what the noise is."""
    expressions, errors = _read(models, sample)
    if len(expressions) > MAX_EQUATIONS and not is_model(models):
        raise ParameterError(
            f"'models' must be at most {MAX_EQUATIONS} equations. Got {len(expressions)}: leave out some."
        )
    found = [(e, error) for e, error in zip(expressions, errors, strict=True)]
    origin = "model"
    if y is not None:
        found, origin = [_refitted(e, sample, y) for e, _ in found], "target"
    known = [error for _, error in found if math.isfinite(error)]
    unique = tuple(dict.fromkeys(e for e, _ in found))
    spread = _spread(unique[0], sample)
    is_offered = is_model(models)
    if sigma is not None:
        return Equations(unique, sigma, "given", is_offered)
    if known and min(known) > EXACT * spread:
        return Equations(unique, min(known), origin, is_offered)
    return Equations(unique, SHARE_OF_SPREAD * spread, "assumed", is_offered)


def _read(models: Any, sample: Sample) -> tuple[list[Expression], list[float]]:
    """Equations and, where a model says so, the standard deviation of its residuals."""
    is_several = isinstance(models, list | tuple) and not is_model(models)
    if is_several and not len(models):
        raise ParameterError("'models' is an empty list. Give an equation, several, or a fitted model.")
    names = sample.names
    expressions: list[Expression] = []
    errors: list[float] = []
    for one in read_together(models if is_several else [models], names):
        if is_model(one):
            offered, error = _of_model(one, sample)
            expressions += offered
            errors += [error, *[math.nan] * (len(offered) - 1)]
        else:
            expressions.append(as_expression(one, names))
            errors.append(math.nan)
    return expressions, errors


def _of_model(model: Any, sample: Sample) -> tuple[list[Expression], float]:
    """The chosen equation and those that cost little more, or the best of its front; and the noise."""
    names = sample.names
    chosen = as_expression(model, names)
    front = {as_expression(entry.expression, names): entry.loss for entry in front_of(model)}
    prices = getattr(model, "choice_", None)  # of a regressor of this package: nats behind the chosen equation
    if prices is not None and len(prices):
        behind = {as_expression(e, names): b for e, b in zip(prices["expression"], prices["behind"], strict=True)}
    else:
        least = min(front.values(), default=math.nan)
        behind = {e: 0.5 * sample.n_samples * math.log(loss / least) for e, loss in front.items() if loss > 0.0 < least}
    order = sorted(behind, key=lambda e: behind[e] if math.isfinite(behind[e]) else math.inf)
    near = [e for k, e in enumerate(order) if behind[e] <= NEAR_NATS or k < N_AT_LEAST]
    loss, spare = front.get(chosen, math.nan), sample.n_samples - len(parametrised(chosen).theta)
    error = math.sqrt(loss * sample.n_samples / spare) if spare > 0 and loss >= 0.0 else math.nan
    return list(dict.fromkeys([chosen, *near]))[:N_READ], error


def _refitted(expression: Expression, sample: Sample, y: FloatArray) -> tuple[Expression, float]:
    """An equation with its constants refitted, and the noise that its residuals tell; as it was where that fails."""
    whole = parametrised(expression)
    try:
        rows = FittedRows.of([expression], sample, y, None, None).differentiable(whole)
    except DataError:
        return expression, math.nan
    found = best_fit(rows.model(whole), rows.y, whole.theta)
    if found is None:
        return expression, math.nan
    spare = rows.n_rows - found.rank
    return whole.at(found.theta), math.sqrt(found.loss / spare) if spare > 0 else math.nan


def _spread(expression: Expression, sample: Sample) -> float:
    """Standard deviation of an equation over the rows at hand; its size where it is constant."""
    with np.errstate(all="ignore"):
        values = derivatives([expression], sample, order=0)[0, 0]
        values = values[np.isfinite(values)]
        spread = float(np.std(values)) if len(values) else 0.0
        size = float(np.abs(values).max(initial=0.0))
    return spread if 0.0 < spread < math.inf else size if 0.0 < size < math.inf else 1.0
