"""The words of a question. The paper does not print IGSR's prompts: these are ours, and they have a version.

Nothing of the table leaves the machine but what is written here: the variables' names (unless hidden), their ranges and
means, the same of the target, and terms with their influence. Rows are shown only where the user asks for some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.expression import Expression, format_name
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.engines.igsr.talk.protocol import Vocabulary

#: Changes whenever any word below does: answers to other words are other answers.
VERSION = "1"

SYSTEM = (
    "You are an expert in finding equations from data. You answer with formulas only: one term per line, no numbering, "
    "no explanations."
)
#: Terms and models that a prompt lists at most.
MAX_CURRENT, MAX_BEST = 12, 3


@dataclass(frozen=True, slots=True)
class Subject:
    """What a run asks about: the part of the words that stays the same."""

    vocabulary: Vocabulary
    text: str


def subject(
    inputs: Sample,
    y: FloatArray,
    target: str,
    operators: Sequence[str],
    *,
    descriptions: Mapping[str, str] | None = None,
    n_rows_shown: int = 0,
) -> Subject:
    """Describe a problem.

    ``inputs``: in the names and units that are shown.
    ``descriptions``: of variables or the target: meaning, unit.
    ``n_rows_shown``: rows of the table to show, the first ones.
    """
    told = descriptions or {}
    lines = ["Variables:"]
    for name, column in zip(inputs.names, inputs.X, strict=True):
        lines.append(f"- {format_name(name)}: {_range(column)}{_told(told.get(name))}")
    lines.append(f"Target: {format_name(target)}: {_range(y)}{_told(told.get(target))}")
    if n_rows_shown:
        lines.append("Some rows: " + ", ".join([*map(format_name, inputs.names), format_name(target)]))
        shown = np.vstack([inputs.X, y])[:, :n_rows_shown].T
        lines += [", ".join(f"{value:.4g}" for value in row) for row in shown]
    functions = [name for name in operators if not OPERATORS[name].symbol]
    symbols = [OPERATORS[name].symbol for name in operators if OPERATORS[name].symbol]
    lines.append(f"Allowed: {' '.join(dict.fromkeys(symbols))} {' '.join(functions)}")
    ranges = tuple((float(column.min()), float(column.max())) for column in inputs.X)
    return Subject(Vocabulary(inputs.names, tuple(operators), ranges), "\n".join(lines))


def question_text(
    about: Subject,
    *,
    current: Sequence[tuple[Expression, float]],
    r2: float,
    best: Sequence[tuple[float, Expression]],
    feedback: str,
    n_terms: int,
) -> str:
    """The prompt for one expansion.

    ``current``: sequence of (term, influence), the parent's terms; influence is the rise of the validation error, as a
    share of the target's variance, when the term is removed.
    ``r2``: of the parent on the validation part.
    ``best``: sequence of (R², model).
    ``feedback``: appended where it is not empty; without it the text is byte for byte that of plain IGSR.
    """
    parts = ["The target is modelled as a sum of terms; the coefficients are fitted.", about.text]
    if current:
        lines = [f"- {term} (removing it costs {influence:.2g})" for term, influence in current[:MAX_CURRENT]]
        parts.append("\n".join([f"Current terms, R² {r2:.3f}:", *lines]))
    else:
        parts.append("The model has no terms yet.")
    if best:
        parts.append(
            "\n".join(["Best models so far:", *(f"- R² {value:.3f}: {model}" for value, model in best[:MAX_BEST])])
        )
    if feedback:
        parts.append(feedback)
    parts.append(f"Write {n_terms} new terms, one per line.")
    return "\n\n".join(parts)


def _range(values: FloatArray) -> str:
    return f"{values.min():.3g} to {values.max():.3g}, mean {values.mean():.3g}"


def _told(words: str | None) -> str:
    return f"; {words}" if words else ""
