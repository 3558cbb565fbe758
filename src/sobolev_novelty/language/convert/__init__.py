"""To and from SymPy; to LaTeX, NumPy, C++ and others. Infix is ``str(expression)``; reading text is ``parse``."""

from __future__ import annotations

from sobolev_novelty.language.convert.languages import LANGUAGES, export
from sobolev_novelty.language.convert.latex import to_latex
from sobolev_novelty.language.convert.source import NumpyFunction, to_cpp, to_numpy, to_numpy_source, values_of
from sobolev_novelty.language.convert.symbolic import from_sympy, to_sympy

__all__ = [
    "LANGUAGES",
    "NumpyFunction",
    "export",
    "from_sympy",
    "to_cpp",
    "to_latex",
    "to_numpy",
    "to_numpy_source",
    "to_sympy",
    "values_of",
]
