"""The public names and where they are defined: what type checkers see, and what `__init__.py` imports on first use."""

from sobolev_novelty.algebra.terms import Term as Term, additive_terms as additive_terms, sum_of_terms as sum_of_terms
from sobolev_novelty.core.expression import Expression as Expression
from sobolev_novelty.core.geometry import Status as Status
from sobolev_novelty.core.linear.projection import TAU_ID as TAU_ID
from sobolev_novelty.design.next_rows import next_rows as next_rows
from sobolev_novelty.dynamics.regressor import DynamicsRegressor as DynamicsRegressor
from sobolev_novelty.engines.genetic import Genetic as Genetic
from sobolev_novelty.engines.igsr.engine import IGSR as IGSR
from sobolev_novelty.engines.igsr.ledger import Limits as Limits
from sobolev_novelty.engines.igsr.sampler import GrammarSampler as GrammarSampler
from sobolev_novelty.engines.igsr.talk.chat import ChatProposer as ChatProposer
from sobolev_novelty.engines.igsr.talk.transcript import Transcript as Transcript
from sobolev_novelty.engines.mcts import MCTS as MCTS
from sobolev_novelty.errors import (
    DataError as DataError,
    ExpressionError as ExpressionError,
    ExtrapolationWarning as ExtrapolationWarning,
    ParameterError as ParameterError,
    ParseError as ParseError,
    SobolevError as SobolevError,
)
from sobolev_novelty.kernels.evaluate import evaluate as evaluate
from sobolev_novelty.language.convert import (
    from_sympy as from_sympy,
    to_cpp as to_cpp,
    to_latex as to_latex,
    to_numpy as to_numpy,
    to_sympy as to_sympy,
)
from sobolev_novelty.language.own_operators import (
    register_operator as register_operator,
    unregister_operator as unregister_operator,
)
from sobolev_novelty.language.parsing import parse as parse
from sobolev_novelty.metric.batch import (
    TermNovelties as TermNovelties,
    conditional_novelty as conditional_novelty,
    novelties as novelties,
)
from sobolev_novelty.metric.guidance import (
    TermArchive as TermArchive,
    accepts as accepts,
    feedback as feedback,
    prune as prune,
    rerank as rerank,
)
from sobolev_novelty.report.intervals.intervals import (
    Interval as Interval,
    Intervals as Intervals,
    intervals as intervals,
    term_intervals as term_intervals,
)
from sobolev_novelty.report.rank import rank as rank
from sobolev_novelty.report.reporting import (
    NoveltyReport as NoveltyReport,
    novelty as novelty,
    novelty_of_arrays as novelty_of_arrays,
)
from sobolev_novelty.report.resolution.domains import DomainCheck as DomainCheck, check_domain as check_domain
from sobolev_novelty.report.streaming import novelty_of_chunks as novelty_of_chunks
from sobolev_novelty.report.streaming.accumulator import NoveltyAccumulator as NoveltyAccumulator
from sobolev_novelty.report.verdicts import TermVerdict as TermVerdict
from sobolev_novelty.search.contract.engine import Engine as Engine, SobolevGuidance as SobolevGuidance
from sobolev_novelty.search.contract.registry import register_engine as register_engine
from sobolev_novelty.search.islands.cores import Islands as Islands
from sobolev_novelty.search.loop.loop import Budget as Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor as SymbolicRegressor
from sobolev_novelty.search.problem.constraints import Constraints as Constraints, Units as Units
from sobolev_novelty.search.problem.dimensions import check_units as check_units

__version__: str
