"""Integrating equations, and saying when that goes wrong."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import LSODA

from sobolev_novelty import kernels
from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray

#: Accuracy of a solution, relative to the size of each state.
ACCURACY = 1e-8
#: Evaluations of the rates after which a solution is given up.
MAX_EVALUATIONS = 50_000
#: Steps shorter than this share of the time span lead into a singularity.
SHORTEST_STEP = 1e-10
#: A state farther out than this many times the largest one known has diverged.
FAR = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An integrated trajectory."""

    t: FloatArray  # shape (n_times,)
    x: FloatArray  # shape (n_times, n_states): ``nan`` from where the integration broke off
    diverged_at: float | None = None  # time at which it broke off
    reason: str = ""  # why; empty where it did not


class _NotFinite(Exception):
    """The rates have no finite value here."""


def integrate(
    expressions: Sequence[Expression],
    names: Sequence[str],
    t: FloatArray,
    x0: FloatArray,
    *,
    scale: FloatArray | None = None,
) -> Solution:
    """Solve the equations from ``x0`` at ``t[0]``.

    ``expressions``: one rate per state.
    ``names``: the states, and time where the equations may depend on it.
    ``t``: shape (n_times,), increasing.
    ``x0``: shape (n_states,).
    ``scale``: shape (n_states,), size of each state, for accuracy and for what counts as diverged; by default the
    largest of ``x0``, for all.
    """
    programs = kernels.compile_programs(expressions, names)
    with_time = len(names) > len(expressions)
    largest = float(np.abs(x0).max()) or 1.0
    size = np.full(len(x0), largest) if scale is None else np.maximum(scale, np.abs(x0))
    size = np.maximum(size, 1e-6 * (float(size.max()) or 1.0))
    limit = FAR * size
    n_calls = 0

    def rates(time: float, x: FloatArray) -> FloatArray:
        nonlocal n_calls
        n_calls += 1
        inputs = np.append(x, time) if with_time else x
        with np.errstate(all="ignore"):
            f = kernels.derivatives(programs, inputs[:, None])[:, 0, 0]
        if not np.isfinite(f).all():
            raise _NotFinite
        return np.asarray(f)

    found = np.full((len(t), len(x0)), np.nan)
    found[0] = x0
    row = 1
    reason = ""
    time = float(t[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            solver = LSODA(rates, time, x0, float(t[-1]), rtol=ACCURACY, atol=ACCURACY * size)
            while row < len(t) and not reason:
                message = solver.step()
                time = float(solver.t)
                end = int(np.searchsorted(t, time, side="right"))
                if end > row:
                    found[row:end] = solver.dense_output()(t[row:end]).T
                    row = end
                reason = _trouble(solver, message, names, limit, t) or (
                    f"The solver needed more than {MAX_EVALUATIONS} evaluations." if n_calls > MAX_EVALUATIONS else ""
                )
        except _NotFinite:
            reason = "The equations have no finite value there."
    if not reason:
        return Solution(t, found)
    found[np.flatnonzero(t > time)] = np.nan
    found[(np.abs(found) >= limit).any(axis=1)] = np.nan
    return Solution(t, found, time, reason)


def _trouble(solver: LSODA, message: str | None, names: Sequence[str], limit: FloatArray, t: FloatArray) -> str:
    """Why a solution ends after this step; empty where it goes on."""
    far = np.flatnonzero(~(np.abs(solver.y) < limit))
    if len(far):
        k = int(far[0])
        return f"{names[k]} left its range, beyond {number_text(float(limit[k]))} in size."
    if solver.status == "failed":
        return f"The solver failed: {message}."
    # The first steps are short, whatever the equation.
    is_stuck = solver.nfev > 1000 and solver.step_size < SHORTEST_STEP * (t[-1] - t[0])
    return "The solution runs into a singularity." if is_stuck and solver.t < t[-1] else ""
