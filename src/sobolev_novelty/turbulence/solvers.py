"""One face for all flow solvers: a closure and α1 in, a velocity field out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.turbulence.closures import Closure
from sobolev_novelty.turbulence.data import BaseFlow
from sobolev_novelty.turbulence.feedback import FeedbackSolver
from sobolev_novelty.turbulence.flow import EmbeddedSolver, FlowResult
from sobolev_novelty.turbulence.openfoam import OpenFoamSolver

#: Names that :func:`make_solver` knows.
SOLVERS = ("embedded", "feedback", "openfoam")


@runtime_checkable
class FlowSolver(Protocol):
    """What every flow solver can do."""

    base: BaseFlow

    @property
    def name(self) -> str:
        """Name of the solver, stored with its results."""

    def solve(self, closure: Closure | None = None, alpha: float = 1.0) -> FlowResult:
        """Mean flow under a closure; without one, under the base model alone."""


def make_solver(name: str, base: BaseFlow, report: Callable[[str], None] | None = None) -> FlowSolver:
    """A solver by name, telling its progress in words.

    Parameters
    ----------
    name : {"embedded", "feedback", "openfoam"}
    base : BaseFlow
    report : callable, optional
        Called with a short text after each step.
    """

    def say(text: str) -> None:
        if report is not None:
            report(text)

    if name == "embedded":
        return EmbeddedSolver(base, report=lambda load, step, size: say(f"load {load:g}, step {step}: {size:.1e}"))
    if name == "feedback":
        return FeedbackSolver(base, report=lambda step, change: say(f"outer step {step}: stress change {change:.1e}"))
    if name == "openfoam":
        return OpenFoamSolver(base, report=lambda step, size: say(f"iteration {step}: {size:.1e}"))
    raise ParameterError(f"'solver' must be one of {', '.join(SOLVERS)}. Got {name!r}.")
