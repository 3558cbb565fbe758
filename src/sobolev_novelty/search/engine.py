"""The contract between engines and the loop: engines propose forms, the loop fits, scores and decides.

An engine never evaluates a candidate. ``propose`` returns forms (expressions whose constants are starting values), the
loop fits their
constants, scores them, counts the budget and keeps the front, and ``observe`` hands the scored candidates back. The
Sobolev signal enters an
engine as an object it is given (``guidance``), never as a subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.operators import OPERATORS
from sobolev_novelty.projection import TAU_ID

#: Operators engines may use unless told otherwise.
DEFAULT_OPERATORS = (
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "square",
    "cube",
    "sqrt",
    "inv",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "arcsin",
    "arccos",
)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What a search is about: the sample it sees, the target, and what expressions may be made of.

    Parameters
    ----------
    sample : Sample
        Inputs of the rows used for searching, raw variables named ``x0, x1, …``.
    y : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,), optional
    operators : tuple of str
    max_complexity : int
        Nodes of the largest expression worth proposing.
    guesses : tuple of Expression
        The user's own starting points.
    """

    sample: Sample
    y: FloatArray
    weights: FloatArray | None = None
    operators: tuple[str, ...] = DEFAULT_OPERATORS
    max_complexity: int = 60
    guesses: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        unknown = [name for name in self.operators if name not in OPERATORS]
        if unknown:
            raise ParameterError(
                f"'operators' names unknown ones: {', '.join(unknown)}. Known: {', '.join(OPERATORS)}."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A fitted form.

    Parameters
    ----------
    form : Expression
        As it was proposed.
    expression : Expression
        With fitted constants.
    nmse : float
        Error on the search sample, relative to the target's variance; ``inf`` for a failed fit.
    score : float
        R_base of :mod:`sobolev_novelty.scoring`.
    """

    form: Expression
    expression: Expression
    nmse: float
    score: float

    @property
    def complexity(self) -> int:
        return self.expression.complexity


@dataclass(frozen=True, slots=True)
class SobolevGuidance:
    """The Sobolev signal as engines take it.

    Parameters
    ----------
    weight : float
        Of the penalty in R_SN (Eq. D.1).
    order : {0, 1, 2}
        Derivatives in the signature; 0 is the ablation of Appendix F.
    tau : float
    archive_capacity : int
        Terms kept across generations (genetic engine).
    pool_size : int
        Candidates reranked in each round (tree search).
    """

    weight: float = 0.01
    order: int = 1
    tau: float = TAU_ID
    archive_capacity: int = 64
    pool_size: int = 64


@dataclass(slots=True)
class State:
    """What an engine remembers between rounds; engines derive their own."""

    n_novelty_calls: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


class Engine(BaseEstimator, ABC):  # type: ignore[misc]
    """A way of proposing forms. Options are constructor arguments; everything that changes lives in the state."""

    guidance: SobolevGuidance | None

    @abstractmethod
    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        """The state before the first round."""

    @abstractmethod
    def propose(self, state: State, rng: np.random.Generator) -> list[Expression]:
        """Forms to be fitted next; an empty list says that the engine has nothing more to propose.

        A call should take well under a second, so that the loop can keep to a time budget.
        """

    @abstractmethod
    def observe(self, state: State, scored: list[Candidate]) -> State:
        """Take the scored candidates of the last round into account."""
