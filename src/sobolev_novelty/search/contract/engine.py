"""The contract between engines and the loop: engines propose forms, the loop fits, scores and decides.

An engine never evaluates a candidate. ``propose`` returns forms (expressions whose constants are starting values), the
loop fits their constants, scores them, counts the budget and keeps the front, and ``observe`` hands the scored
candidates back. The Sobolev signal enters an engine as an object it is given (``guidance``), never as a subclass.

An engine may be slow, a language model for example. It then looks at ``problem.deadline`` before it waits, and gives
its forms one by one as they come (``propose`` may be a generator): what arrives in time is fitted, the rest is not
waited for.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Geometry
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.parameters import COUNT, NOTHING, checked_class, instance, number, one_of, whole
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.core.score import choice_rank
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.metric.deletion import COSTS
from sobolev_novelty.price.description import quick_nats_of
from sobolev_novelty.price.noise import Noise
from sobolev_novelty.search.contract.options import Options
from sobolev_novelty.search.problem.control import Control
from sobolev_novelty.search.problem.dimensions import Dimensions
from sobolev_novelty.search.problem.natural_units import NaturalUnits
from sobolev_novelty.search.problem.units import Units

#: Operators engines may use unless told otherwise.
DEFAULT_OPERATORS = (
    "add", "sub", "mul", "div", "neg", "square", "cube", "sqrt", "inv",
    "exp", "log", "sin", "cos", "tanh", "arcsin", "arccos", "abs", "cbrt",
)  # fmt: skip
#: Of these, random variation leaves alone: they earn their place in sums of elementary terms, and would only dilute it.
SELDOM = ("abs", "cbrt")


#: By which time a search is measured: what a user waits, or what the process works, whatever else the machine does.
CLOCKS = {"wall": time.monotonic, "processor": time.process_time}


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the time of a search is over.

    >>> Deadline().remaining, Deadline.after(0.0).is_over, 9.0 < Deadline.after(10.0).remaining <= 10.0
    (inf, True, True)
    """

    at: float = math.inf  # in the seconds of its clock; infinite without a time budget
    clock: str = "wall"  # {"wall", "processor"}

    @classmethod
    def after(cls, seconds: float | None, clock: str = "wall") -> Deadline:
        """The deadline that many seconds from now; none for ``None``."""
        return cls(clock=clock) if seconds is None else cls(CLOCKS[clock]() + seconds, clock)

    def sooner(self, share: float) -> Deadline:
        """The deadline at which that share of the time left is over."""
        return Deadline.after(share * self.remaining, self.clock)

    @property
    def remaining(self) -> float:
        """Seconds left, not below 0: how long an engine may wait for an answer."""
        return max(0.0, self.at - CLOCKS[self.clock]())

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return CLOCKS[self.clock]() >= self.at


@dataclass(frozen=True, slots=True)
class Island:
    """Which of how many searches for the same law this one is.

    >>> [Island(0, 2).shares(n) for n in range(4)], Island().shares(3)
    ([True, False, True, False], True)
    >>> Island(1, 2).part(4), Island(4, 5).part(3)
    ((range(1, 4, 2), Island(number=0, of=1, seed=None)), (range(1, 3, 3), Island(number=1, of=2, seed=None)))
    """

    number: int = 0
    of: int = 1
    seed: int | None = None  # for what all of them must draw alike; None for a search by itself, which draws it

    def shares(self, n: int) -> bool:
        """Whether the n-th piece of work is dealt out to this one."""
        return n % self.of == self.number

    def part(self, n_tasks: int) -> tuple[range, Island]:
        """Which of some large tasks this island takes, and its place among those that take the same."""
        n_groups = min(self.of, n_tasks)
        group = self.number % n_groups
        return range(group, n_tasks, n_groups), Island(
            self.number // n_groups, len(range(group, self.of, n_groups)), self.seed
        )


@dataclass(frozen=True, slots=True, eq=False)
class UserTerms:
    """How the user names and measures the inputs of a problem, for engines that put it into words."""

    #: The user's name of a variable of the search; a variable that is missing here keeps its own.
    names: Mapping[str, str] = field(default_factory=dict)
    target: str = "y"  # the user's name of the target
    units: Units = field(default_factory=lambda: Units({}))  # what the columns of the search were divided by
    natural: NaturalUnits | None = None  # which inputs were set to one before

    def written(self, expression: Expression) -> Expression:
        """An expression of the search in the user's names and units."""
        found = self.units.to_user(expression)
        return (found if self.natural is None else self.natural.written(found)).rename(self.names)

    def read(self, expression: Expression) -> Expression:
        """The user's expression in the variables of the search."""
        found = expression.rename({name: own for own, name in self.names.items()})
        return self.units.to_search(found if self.natural is None else self.natural.read(found))

    def inputs(self, sample: Sample) -> Sample:
        """The inputs of the search in the user's names and units, where none was set to one."""
        X = self.units.undone(sample.X, sample.names)
        return Sample(X, tuple(self.names.get(name, name) for name in sample.names))


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What a search is about: the rows it sees, what expressions may be made of, and until when.

    Parameters
    ----------
    rows : Rows
        Those used for searching, inputs named ``x0, x1, …``. They are distinct
        (:func:`sobolev_novelty.core.score.merged_rows`): their number enters the score. ``problem.sample``,
        ``problem.y`` and ``problem.weights`` are theirs.
    operators : tuple of str
    max_complexity : int
        Complexity of the largest expression worth proposing.
    guesses : tuple of Expression
        The user's own starting points.
    deadline : Deadline
        Set by the loop.
    n_threads : int
        Threads an engine may use; set by the loop.
    user : UserTerms
        The user's names and units.
    island : Island
        Which of how many islands this search is: proposals that do not depend on chance are dealt out among them.
    dimensions : Dimensions, optional
        Physical units of the inputs and the target: forms that make no sense are not fitted.
    control : Control
        What operators cost, which forms are allowed, and the loss.
    more : Rows, optional
        These rows and others, for the second half of the search, with engines that can go on with them
        (:class:`GoesOn`). Under noise a few thousand rows do not tell a law from a dozen approximations; with more of
        them from the beginning a search would get half as far.
    noise : str
        Kind of noise that the user named, or "auto": the loop may weigh the rows accordingly, with the same engines.
    """

    rows: Rows
    operators: tuple[str, ...] = DEFAULT_OPERATORS
    max_complexity: int = 60
    guesses: tuple[Expression, ...] = ()
    deadline: Deadline = field(default_factory=Deadline)
    n_threads: int = 1
    user: UserTerms = field(default_factory=UserTerms)
    island: Island = field(default_factory=Island)
    dimensions: Dimensions | None = None
    control: Control = field(default_factory=Control)
    more: Rows | None = None
    noise: str = "constant"

    @property
    def sample(self) -> Sample:
        """The inputs."""
        return self.rows.sample

    @property
    def y(self) -> FloatArray:
        """The target."""
        return self.rows.y

    @property
    def weights(self) -> FloatArray | None:
        """Of the rows."""
        return self.rows.weights

    @property
    def with_more_rows(self) -> Problem:
        """The problem on all the rows there are."""
        return self if self.more is None else replace(self, rows=self.more, more=None)

    def weighed(self, noise: Noise, given: tuple[FloatArray | None, FloatArray | None]) -> Problem:
        """The problem with the weights that rows have under a kind of noise, beside those that were given.

        The shape of the noise is taken from the target: an equation is yet to be found.
        """
        more = self.more and self.more.weighed(noise.weights(self.more.y, given[1]))
        return replace(self, rows=self.rows.weighed(noise.weights(self.y, given[0])), more=more)

    @property
    def drawn_operators(self) -> tuple[str, ...]:
        """Operators for random variation: those the user names, or the usual ones."""
        is_default = self.operators == DEFAULT_OPERATORS
        return tuple(name for name in self.operators if not is_default or name not in SELDOM)

    @property
    def written_operators(self) -> tuple[str, ...]:
        """Operators of equations that come back: nobody who names none minds a power."""
        return (*self.operators, "pow") if self.operators == DEFAULT_OPERATORS else self.operators

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
        Error on the search sample, relative to that of a constant (squared errors: to the target's variance); ``inf``
        for a failed fit.
    score : float
        R_base of :mod:`sobolev_novelty.core.score`.
    cost : int, optional
        Its complexity where operators have costs of their own.
    """

    form: Expression
    expression: Expression
    nmse: float
    score: float
    cost: int | None = None

    @property
    def complexity(self) -> int:
        """Nodes of the fitted expression, or what they cost."""
        return self.expression.complexity if self.cost is None else self.cost

    @property
    def rank(self) -> tuple[bool, float]:
        """What decides between candidates, the largest first."""
        return choice_rank(self.nmse, self.score)

    def nats(self, n_rows: int, n_inputs: int) -> float:
        """The price of this candidate as far as a search knows it; see :mod:`sobolev_novelty.price`."""
        return quick_nats_of(self.expression, self.nmse, self.complexity, n_rows, n_inputs)

    @property
    def reward(self) -> float:
        """What a tree search backpropagates: R_base, and 1 for an exact fit.

        By R_base alone a short approximation may look better than a law that was found.
        """
        return 1.0 if self.rank[0] else self.score


#: Of :class:`SobolevGuidance`.
SCREENS = ("novelty", "count", "none")
SWAPS = ("none", "novelty", "size", "random")


@checked_class(
    weight=number(0.0), n_bred=COUNT, archive_capacity=whole(), pool_size=COUNT,
    deletes=one_of("default", "none", *COSTS), screens=one_of("default", *SCREENS), swaps=one_of(*SWAPS),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class SobolevGuidance:
    """The Sobolev signal as engines take it.

    *Genetic engine*: children are screened before any is fitted (``n_bred``), and the best expressions are tried
    without their weakest low-novelty term. *Tree search*: the best candidates of a round are reranked by R_SN
    (``weight``, ``pool_size``), the top one is tried without its weakest low-novelty term, and new branches are tried
    in the order of what their term adds. The final choice never looks at novelty.

    Parameters
    ----------
    weight : float
        Of the penalty in R_SN (Eq. D.1).
    order : {0, 1, 2}
        Derivatives in the signature; 0 is the ablation of Appendix F.
    tau : float
        A term qualifies if its ν is above this.
    n_bred : int
        Children bred at most for each one that is fitted: one whose terms do not all qualify is bred again (genetic
        engine). 1 screens nothing.
    archive_capacity : int
        Terms kept across generations (``paper_gp``); 0 for no archive.
    pool_size : int
        Candidates reranked in each round (tree search).
    intercept : {"term", "free"}
        Screening: whether a constant is a term among others, or projected out of every term.
    deletes : {"default", "none", "D.2", "novelty", "error", "size"}
        Which term an expression is tried without: that of least deletion cost
        (:mod:`sobolev_novelty.metric.deletion`), among those with ν ≤ τ alone ("D.2") or among all.
    screens : {"default", "novelty", "count", "none"}
        Which children are fitted first: those whose terms all qualify, or, for comparison, those with few terms; or
        all as they come. Each engine has its own default of both (``default_deletes``, ``default_screens``).
    swaps : {"none", "novelty", "size", "random"}
        How terms of an archive of fitted ones are put in the place of the one that an expression needs least
        (:mod:`sobolev_novelty.search.propose.swapping`).
    """

    weight: float = 0.01
    order: int = 1
    tau: float = TAU_ID
    n_bred: int = 2
    archive_capacity: int = 64
    pool_size: int = 64
    intercept: str = "term"
    deletes: str = "default"
    screens: str = "default"
    swaps: str = "none"

    def settled(self, deletes: str = "D.2", screens: str = "novelty") -> SobolevGuidance:
        """The same with these where it has "default"."""
        return replace(
            self,
            deletes=deletes if self.deletes == "default" else self.deletes,
            screens=screens if self.screens == "default" else self.screens,
        )

    @property
    def geometry(self) -> Geometry:
        """In which candidates are screened."""
        return Geometry(self.order, intercept=self.intercept)


#: As engines are given it: what ``novelty=`` of the regressor says, a signal of their own, or none.
Guidance = Literal["default"] | SobolevGuidance | None
GUIDANCE = one_of("default") | instance("a SobolevGuidance", SobolevGuidance) | NOTHING


@runtime_checkable
class GuessSource(Protocol):
    """Something that gives starting points for a problem: a language model, a trained network."""

    def guesses(self, problem: Problem, rng: np.random.Generator) -> Iterable[Expression]:
        """Forms in the variables of the search; they are fitted before the engine's first round."""


class TakesTurns(Protocol):
    """Forms that come beside those of an engine."""

    @property
    def is_turn(self) -> bool:
        """Whether there are some in this round."""


@dataclass(slots=True, kw_only=True)
class State:
    """What an engine remembers between rounds; engines derive their own, a data class that can be pickled.

    Parameters
    ----------
    beside : TakesTurns, optional
        Structural forms, set by the loop: an engine may propose less while they come.
    n_novelty_calls : int
        Candidates whose novelty was computed.
    last_words : str
        Why the engine has nothing more to propose, as a sentence.
    trials : list of Expression
        Second thoughts of a round, set by ``observe``: the loop fits them before the next round and calls ``observe``
        once more, with their candidates alone.
    counts : dict
        What else the engine counted, in words and numbers for the result: ``{"calls made": 12}``.
    """

    beside: TakesTurns | None = None
    n_novelty_calls: int = 0
    last_words: str = "The engine has nothing more to propose."
    trials: list[Expression] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class GoesOn(Protocol):
    """A state that can go on with other rows: the loop gives it the best candidates anew, fitted to them."""

    problem: Problem

    def forget_errors(self) -> None:
        """Drop what was fitted to the rows so far."""


S = TypeVar("S", bound=State)


class Engine(Options, ABC, Generic[S]):
    """A way of proposing forms. Options are constructor arguments; everything that changes lives in the state.

    Generic in the state: ``class Mine(Engine[MyState])``. :mod:`sobolev_novelty.testing` checks the contract, and
    :func:`sobolev_novelty.search.contract.registry.register_engine` gives an engine a name.

    Attributes
    ----------
    as_found : bool
        Of the class. True leaves candidates as the one fit of each left them: the loop drops no vanishing terms, snaps
        no numbers, polishes nothing and does not try an exact fit with an operator less, and the end of a fit neither
        simplifies nor respells, and chooses by rank alone. For backbones whose own strength is to be measured.
    asks_in_words : bool
        Of the class. True for an engine that shows the user's columns to somebody: they stay as they are.
    """

    as_found: ClassVar[bool] = False
    asks_in_words: ClassVar[bool] = False
    #: Which term guidance tries to do without, and which children it prefers, where it does not say so itself.
    default_deletes: ClassVar[str] = "D.2"
    default_screens: ClassVar[str] = "novelty"
    guidance: Guidance

    @property
    def beside(self) -> Any:
        """Which structural forms the loop proposes beside the engine: its option ``structural``, where it has one."""
        return None if self.as_found else getattr(self, "structural", None)

    @property
    def signal(self) -> SobolevGuidance | None:
        """The guidance that is used: none where it was left to a regressor and there is none."""
        if not isinstance(self.guidance, SobolevGuidance):
            return None
        return self.guidance.settled(self.default_deletes, self.default_screens)

    def guided_by(self, novelty: bool | SobolevGuidance) -> None:
        """Take what the regressor says, unless this engine was told to go without.

        An engine of somebody else's whose own default is None cannot tell that from "not said": it follows.
        """
        is_told_none = self.guidance is None and self._arguments()["guidance"].default is not None
        if not novelty:
            self.guidance = None
        elif isinstance(novelty, SobolevGuidance) and not is_told_none:
            self.guidance = novelty
        elif not (is_told_none or isinstance(self.guidance, SobolevGuidance)):
            self.guidance = SobolevGuidance()

    @abstractmethod
    def start(self, problem: Problem, rng: np.random.Generator) -> S:
        """The state before the first round."""

    @abstractmethod
    def propose(self, state: S, rng: np.random.Generator) -> Iterable[Expression]:
        """Forms to be fitted next; none says that the engine has nothing more to propose.

        A call should take well under a second. One that waits for something waits ``problem.deadline.remaining``
        seconds at most, and a generator hands over what it has before it waits again.
        """

    @abstractmethod
    def observe(self, state: S, scored: list[Candidate]) -> S:
        """Take the scored candidates of the last round into account; the user's guesses come with the first one."""
