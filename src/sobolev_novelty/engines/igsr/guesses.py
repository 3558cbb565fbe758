"""A proposer as a source of guesses for any engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sobolev_novelty.algebra.writing import ONE, Writer, chained
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.igsr.prompts import SYSTEM, VERSION, question_text, subject
from sobolev_novelty.engines.igsr.talk.answers import read_answer
from sobolev_novelty.engines.igsr.talk.protocol import Proposer, Question
from sobolev_novelty.search.contract.engine import Problem


def model_guesses(
    proposer: Proposer, problem: Problem, rng: np.random.Generator, *, n_calls: int = 3
) -> list[Expression]:
    """The terms that a proposer offers for a problem, each alone and those of one answer together.

    ``n_calls``: calls at most; none is begun when the time is over.
    """
    about = subject(problem.user.inputs(problem.sample), problem.y, problem.user.target, problem.operators)
    text = question_text(about, current=(), r2=0.0, best=(), feedback="", n_terms=proposer.n_terms)
    writer = Writer(problem.operators)
    forms: dict[Expression, None] = {}
    for _ in range(n_calls):
        if problem.deadline.is_over:
            break
        seed = int(rng.integers(2**31))
        question = Question(
            SYSTEM, text, about.vocabulary, (), proposer.n_terms, seed, VERSION, problem.deadline.remaining
        )
        reading = read_answer(proposer.ask(question).text, about.vocabulary, max_terms=2 * proposer.n_terms)
        terms = [problem.user.read(term) for term in reading.terms]
        for form in (*([*terms[:k], ONE] for k in range(len(terms), 1, -1)), *([term] for term in terms)):
            written = _written(form, writer, problem)
            if written is not None:
                forms[written] = None
    return list(forms)


def _written(terms: Sequence[Expression], writer: Writer, problem: Problem) -> Expression | None:
    form = writer.written(chained("add", terms))
    if form is None or form.complexity > problem.max_complexity:
        return None
    return form if set(form.variables) <= set(problem.sample.names) else None
