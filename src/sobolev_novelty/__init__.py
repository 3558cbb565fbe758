"""Sobolev Novelty: which terms of an equation does the data support?

>>> import sobolev_novelty as sn
>>> report = sn.novelty("x0 + sin(x0)", [[i / 50 - 1] for i in range(100)])
>>> report.qualified.tolist()
[False, False]
"""

from __future__ import annotations

import importlib
from typing import Any

#: Public name -> module. Names are imported on first use, so that `import sobolev_novelty` loads nothing heavy.
_PUBLIC = {
    "Expression": "sobolev_novelty.expression",
    "parse": "sobolev_novelty.parsing",
    "to_sympy": "sobolev_novelty.convert",
    "from_sympy": "sobolev_novelty.convert",
    "to_latex": "sobolev_novelty.convert",
    "to_numpy": "sobolev_novelty.convert",
    "to_cpp": "sobolev_novelty.convert",
    "evaluate": "sobolev_novelty.evaluate",
    "additive_terms": "sobolev_novelty.terms",
    "sum_of_terms": "sobolev_novelty.terms",
    "Term": "sobolev_novelty.terms",
    "TAU_ID": "sobolev_novelty.projection",
    "novelty": "sobolev_novelty.streaming",
    "novelty_of_chunks": "sobolev_novelty.streaming",
    "NoveltyAccumulator": "sobolev_novelty.streaming.accumulator",
    "novelty_of_arrays": "sobolev_novelty.report",
    "conditional_novelty": "sobolev_novelty.batch",
    "novelties": "sobolev_novelty.batch",
    "TermNovelties": "sobolev_novelty.batch",
    "NoveltyReport": "sobolev_novelty.report",
    "Status": "sobolev_novelty.geometry",
    "prune": "sobolev_novelty.guidance",
    "rerank": "sobolev_novelty.guidance",
    "TermArchive": "sobolev_novelty.guidance",
    "feedback": "sobolev_novelty.guidance",
    "accepts": "sobolev_novelty.guidance",
    "SymbolicRegressor": "sobolev_novelty.search.regressor",
    "Budget": "sobolev_novelty.search.loop",
    "Genetic": "sobolev_novelty.search.genetic",
    "MCTS": "sobolev_novelty.search.mcts",
    "SobolevGuidance": "sobolev_novelty.search.engine",
    "Engine": "sobolev_novelty.search.engine",
    "register_engine": "sobolev_novelty.search.registry",
    "SobolevError": "sobolev_novelty.errors",
    "ParseError": "sobolev_novelty.errors",
    "ExpressionError": "sobolev_novelty.errors",
    "DataError": "sobolev_novelty.errors",
    "ParameterError": "sobolev_novelty.errors",
}

__all__ = sorted(_PUBLIC)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sobolev-novelty")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'sobolev_novelty' has no attribute '{name}'")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
