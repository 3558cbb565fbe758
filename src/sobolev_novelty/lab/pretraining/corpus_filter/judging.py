"""Formulas as text, judged as ``accepts`` does, many at once.

The compiled corpus unit decides what it can read; the rest, and every formula of which the reasons are wanted, goes
through the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from sobolev_novelty.algebra.terms import additive_terms
from sobolev_novelty.core.expression import Expression, natural_order
from sobolev_novelty.core.geometry import Geometry, Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.parameters import SHARE, check
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.transformer.corpus.library import MAX_DIM, VERDICTS
from sobolev_novelty.engines.transformer.corpus.text import LOWEST_TAU, TextJudge, is_reserved
from sobolev_novelty.errors import KernelError, ParseError, SobolevError
from sobolev_novelty.lab.pretraining.corpus_filter.inputs import Inputs
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.batch import TermNovelties, novelties_of
from sobolev_novelty.metric.guidance import Verdict, verdict_on

#: What becomes of a formula; the names are those of the corpus unit and of ``Status``.
OUTCOMES = ("accepted", "low_novelty", "too_few_rows", "no_terms", "unreadable")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the library says of one formula."""

    verdict: Verdict
    outcome: str
    found: TermNovelties | None = None

    @classmethod
    def unreadable(cls, error: SobolevError) -> Judgement:
        """Of a text that is not a formula."""
        is_placed = isinstance(error, ParseError) and error.text
        reason = f"{error.reason} (Character {error.position + 1}.)" if is_placed else str(error)  # type: ignore[attr-defined]
        return cls(Verdict(False, " ".join(reason.split()), float("nan")), "unreadable")

    @classmethod
    def of(cls, found: TermNovelties, tau: float) -> Judgement:
        """Of novelties that are known."""
        verdict = verdict_on(found, tau)
        rejected = "low_novelty" if found.status is Status.OK else found.status.value
        return cls(verdict, "accepted" if verdict else rejected, found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        terms = self.found.terms if self.found is not None else ()
        is_known = self.found is not None and self.found.status is Status.OK
        return {
            "accepted": self.verdict.accepted,
            "outcome": self.outcome,
            "reason": self.verdict.reason,
            "min_novelty": self.verdict.min_novelty if is_known else None,
            "terms": [str(term.expression) for term in terms],
            "coefficients": [term.coefficient for term in terms],
            "novelties": self.found.nu.tolist() if self.found is not None and is_known else None,
        }


@dataclass(slots=True, eq=False)
class FormulaJudge:
    """Judges formulas as text.

    Parameters
    ----------
    inputs : Inputs
    tau : float
    order : {0, 1, 2}
    dialect : {"plain", "gplearn"}
        As in :func:`sobolev_novelty.language.parsing.parse`.

    Examples
    --------
    >>> judge = FormulaJudge(Inputs.of("uniform:-1,1"))
    >>> judge.outcomes(["x0 + sin(x0)", "x0 + cos(3*x0)", "x0 +"])
    ['low_novelty', 'accepted', 'unreadable']
    >>> judge.judgements(["x0 + sin(x0)"])[0].verdict.reason
    "Term 'x0' has novelty 0.131, not above 0.316."
    """

    inputs: Inputs = field(default_factory=Inputs)
    tau: float = TAU_ID
    order: int = 1
    dialect: str = "plain"
    _fast: TextJudge | None = field(init=False, default=None)
    _samples: Any = field(init=False)

    def __post_init__(self) -> None:
        check("tau", self.tau, SHARE)
        self._samples = lru_cache(maxsize=1024)(self.inputs.sample)
        table = self.inputs.table
        names = table.names if table is not None else ()
        if self.order != 1 or self.tau < LOWEST_TAU or any(map(is_reserved, names)):
            return
        X = table.X if table is not None else np.array([self.inputs.column(k) for k in range(MAX_DIM)])
        self._fast = TextJudge(X, names, self.tau, self.dialect)

    def outcomes(self, formulas: Sequence[str | bytes]) -> list[str]:
        """One of ``OUTCOMES`` for each formula."""
        texts = [formula.encode() if isinstance(formula, str) else formula for formula in formulas]
        if self._fast is None:
            return [judgement.outcome for judgement in self.judgements(texts)]
        try:
            found = [VERDICTS[code] if code >= 0 else "" for code in self._fast(texts)[0].tolist()]
        except KernelError:  # not compiled
            self._fast = None
            return self.outcomes(texts)
        open_ones = [k for k, outcome in enumerate(found) if not outcome]
        for k, judgement in zip(open_ones, self.judgements([texts[k] for k in open_ones]), strict=True):
            found[k] = judgement.outcome
        return found

    def judgements(self, formulas: Sequence[str | bytes]) -> list[Judgement]:
        """Verdict, reason, terms and novelties of each formula; those with the same variables in one call."""
        out: list[Judgement | None] = [None] * len(formulas)
        groups: dict[tuple[str, ...], list[tuple[int, Expression]]] = {}
        for k, formula in enumerate(formulas):
            try:
                expression = self._read(formula)
            except SobolevError as error:
                out[k] = Judgement.unreadable(error)
            else:
                groups.setdefault(self._ordered(expression.variables), []).append((k, expression))
        for variables, members in groups.items():
            together = self._judged([expression for _, expression in members], self._samples(variables))
            for (k, _), judgement in zip(members, together, strict=True):
                out[k] = judgement
        return [judgement for judgement in out if judgement is not None]

    def _read(self, formula: str | bytes) -> Expression:
        text = formula if isinstance(formula, str) else formula.decode("utf-8", errors="replace")
        names = self.inputs.table.names if self.inputs.table is not None else None
        return parse(text, names=names, dialect=self.dialect)

    def _ordered(self, variables: tuple[str, ...]) -> tuple[str, ...]:
        """Columns in the table's order; without a table numbered variables by number, then names."""
        if self.inputs.table is not None:
            return tuple(sorted(variables, key=self.inputs.table.names.index))
        return tuple(sorted(variables, key=natural_order))

    def _judged(self, expressions: Sequence[Expression], sample: Sample) -> list[Judgement]:
        try:
            terms = [additive_terms(expression).terms for expression in expressions]
            return [Judgement.of(found, self.tau) for found in novelties_of(terms, sample, Geometry(self.order))]
        except SobolevError as error:  # one formula that the kernels refuse must not take the others along
            if len(expressions) == 1:
                return [Judgement.unreadable(error)]
            return [judgement for one in expressions for judgement in self._judged([one], sample)]
