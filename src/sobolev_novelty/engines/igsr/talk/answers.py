r"""The words of an answer -> terms.

Whatever comes is read line by line by the package's own parser, with narrow limits; nothing is ever executed. Prose,
markdown, numbering, LaTeX, JSON, names before an equals sign and explanations after a term are stripped where a line
becomes a formula by it; other lines are counted and left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.igsr.talk.protocol import Vocabulary
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.language.parsing import ParseLimits, parse
from sobolev_novelty.search.fit.forms import split_form

#: What is looked at of an answer: characters, lines, characters of a line.
MAX_CHARACTERS, MAX_LINES, MAX_LINE = 1_000_000, 200, 1_000
#: What a term may be.
TERM_LIMITS = ParseLimits(max_length=MAX_LINE, max_depth=40, max_nodes=64, max_digits=30, max_exponent=20.0)

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_MARKER = re.compile(r"^\s*+(?:>\s*+)?(?:[-*•+]\s++|\(?(?:\d{1,3}|[a-hA-H])[.):]\s*+)?")
_LABEL = re.compile(r"^\s*+(?:[Tt]erm\s*+\d*+\s*+[:=]|[^=]{0,40}=)\s*+")
_EXPLANATION = re.compile(r"\s(?:#|//|--|–|—|%|where\b|because\b|:)|\s++\((?=[A-Za-z]++\s)|:\s|\s{3,}|;")
_COMMAND = re.compile(r"\\(?:left|right|,|;|!|quad|displaystyle|mathrm|operatorname|text|\(|\)|\[|\])")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*+)\}\{([^{}]*+)\}")
_ROOT = re.compile(r"\\sqrt\{([^{}]*+)\}")
_SUBSCRIPT = re.compile(r"_\{(\w++)\}")
_SCRIPT = re.compile(r"\^\{([^{}]*+)\}")
#: Nested fractions and roots that are undone, from inside.
MAX_NESTING = 6


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in an answer."""

    terms: tuple[Expression, ...] = ()  # distinct, in the names that were shown and the operators that are allowed
    n_offered: int = 0  # terms and lines that are not formulas; lines that only frame the others do not count
    n_malformed: int = 0  # lines that are not formulas of the vocabulary
    n_repeated: int = 0  # terms said before, in this answer or in the current model


def read_answer(text: str, vocabulary: Vocabulary, *, known: tuple[Expression, ...] = (), max_terms: int) -> Reading:
    r"""The terms in an answer, at most ``max_terms``.

    >>> vocabulary = Vocabulary(("x0", "x1"), ("mul", "div", "sin", "square"), ((0.0, 1.0), (1.0, 2.0)))
    >>> text = "Sure! Here:\n1. `sin(2*x0)`\n- $\\frac{x_0}{x_1}$\n- x2\n- x0/x1"
    >>> found = read_answer(text, vocabulary, max_terms=8)
    >>> [str(term) for term in found.terms], found.n_offered, found.n_malformed, found.n_repeated
    (['sin(2*x0)', 'x0/x1'], 5, 2, 1)
    """
    terms: dict[Expression, None] = {}
    n_malformed = n_repeated = n_offered = 0
    for line in _lines(text):
        n_offered += 1
        found = _terms_of(line, vocabulary)
        if not found:
            n_malformed += 1
            continue
        n_offered += len(found) - 1
        for term in found:
            if term in terms or term in known:
                n_repeated += 1
            elif len(terms) < max_terms:
                terms[term] = None
    return Reading(tuple(terms), n_offered, n_malformed, n_repeated)


def _lines(text: str) -> Iterator[str]:
    """The lines that may hold a term; the members of a JSON list where the answer is one."""
    text = _THOUGHT.sub("", text[:MAX_CHARACTERS])
    lines = _json_strings(text) or text.splitlines()
    for line in lines[:MAX_LINES]:
        stripped = line.strip()
        if stripped and not stripped.startswith("```") and stripped not in ("[", "]", "{", "}", "\\[", "\\]", "$$"):
            yield stripped


def _json_strings(text: str) -> list[str]:
    start = text.find("{") if "{" in text else text.find("[")
    if start < 0 or '"' not in text:
        return []
    try:
        content = json.loads(text[start : max(text.rfind("}"), text.rfind("]")) + 1])
    except (ValueError, RecursionError):
        return []
    members = content.get("terms") if isinstance(content, dict) else content
    return [member for member in members if isinstance(member, str)] if isinstance(members, list) else []


def _terms_of(line: str, vocabulary: Vocabulary) -> tuple[Expression, ...]:
    """The terms of the first spelling of a line that is a formula; none where none is."""
    if len(line) > MAX_LINE:
        return ()
    for spelling in dict.fromkeys(_spellings(line)):
        if spelling:
            found = _parsed(spelling, vocabulary)
            if found:
                return found
    parts = _split_at_commas(_MARKER.sub("", line))
    return tuple(term for part in parts for term in _parsed(part, vocabulary)) if len(parts) > 1 else ()


def _spellings(line: str) -> Iterator[str]:
    """The line as it is, and with less and less around it."""
    yield line
    bare = _MARKER.sub("", line).strip().rstrip(",;.")
    yield bare
    bare = bare.replace("**`", "`").replace("`**", "`")
    if bare.startswith("**") and bare.endswith("**"):
        bare = bare[2:-2]
    quoted = re.search(r"`([^`]++)`", bare) or re.search(r"\$([^$]++)\$", bare)
    for whole in ([quoted[1]] if quoted else []) + [bare.strip("`$*\"' ")]:
        without_label = _LABEL.sub("", whole)
        for part in (whole, without_label, _EXPLANATION.split(without_label, maxsplit=1)[0]):
            yield part.strip().rstrip(",;.")
        if "\\" in whole or "{" in whole:
            yield _without_latex(without_label)


def _without_latex(text: str) -> str:
    text = _SUBSCRIPT.sub(r"_\1", _COMMAND.sub(" ", text))
    for _ in range(MAX_NESTING):
        before = text
        text = _SCRIPT.sub(r"**(\1)", text)
        text = _ROOT.sub(r"sqrt(\1)", text)
        text = _FRACTION.sub(r"((\1)/(\2))", text)
        if text == before:
            break
    text = text.replace("\\cdot", "*").replace("\\times", "*").replace("\\pi", "pi").replace("\\ln", "log")
    return re.sub(r"\\([A-Za-z]++)", r"\1", text).replace("{", "(").replace("}", ")")


def _split_at_commas(line: str) -> list[str]:
    """Parts between commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(line):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(line[start:place].strip())
            start = place + 1
    return [part for part in (*parts, line[start:].strip().rstrip(".;")) if part]


def _parsed(text: str, vocabulary: Vocabulary) -> tuple[Expression, ...]:
    try:
        # No guessing: x2 of two inputs x0 and x1 is a mistake of the model, not the second input.
        numbered = all(name == f"x{k}" for k, name in enumerate(vocabulary.names))
        convention = "x0" if numbered else "names"
        whole = parse(text, names=vocabulary.names, variables=convention, limits=TERM_LIMITS)
        if not whole.variables:
            return ()
        written = (respelled(term, vocabulary.operators) for term in split_form(whole).terms if term.variables)
        return tuple(term for term in written if term is not None)
    except (SobolevError, ArithmeticError):  # a number beyond the floats, folded
        return ()
