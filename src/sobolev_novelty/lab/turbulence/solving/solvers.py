"""One face for all flow solvers: a closure and α1 in, a velocity field out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from sobolev_novelty.core.progress import OnProgress, silent
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import BaseFlow
from sobolev_novelty.lab.turbulence.selecting.feedback import FeedbackSolver
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver, FlowResult
from sobolev_novelty.lab.turbulence.solving.openfoam import OpenFoamSolver


@runtime_checkable
class FlowSolver(Protocol):
    """What every flow solver can do."""

    base: BaseFlow

    @property
    def name(self) -> str:
        """Name of the solver, stored with its results."""

    def solve(self, closure: Closure | None = None, alpha: float = 1.0, on_progress: OnProgress = silent) -> FlowResult:
        """Mean flow under a closure; without one, under the base model alone."""


#: All of them, by name.
SOLVERS: Mapping[str, Callable[[BaseFlow], FlowSolver]] = MappingProxyType(
    {solver.name: solver for solver in (EmbeddedSolver, FeedbackSolver, OpenFoamSolver)}
)


def make_solver(name: str, base: BaseFlow) -> FlowSolver:
    """A solver by name: "embedded", "feedback" or "openfoam"."""
    if name not in SOLVERS:
        raise ParameterError(f"'solver' must be one of {', '.join(SOLVERS)}. Got {name!r}.")
    return SOLVERS[name](base)
