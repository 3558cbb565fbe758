"""The corpus filter on files of formulas (Appendix D.4): streaming, on all cores, by the rule of ``accepts``.

::

    inputs.py     where formulas are judged
    judging.py    formulas as text -> outcomes, or verdicts with reasons
    streaming.py  files of formulas -> files of those that are kept
"""

from sobolev_novelty.lab.pretraining.corpus_filter.inputs import Inputs
from sobolev_novelty.lab.pretraining.corpus_filter.judging import OUTCOMES, FormulaJudge, Judgement
from sobolev_novelty.lab.pretraining.corpus_filter.streaming import FilterSummary, filter_formulas

__all__ = ["OUTCOMES", "FilterSummary", "FormulaJudge", "Inputs", "Judgement", "filter_formulas"]
