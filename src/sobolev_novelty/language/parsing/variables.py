"""Conventions for variables: how the text writes them -> the names of the expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sobolev_novelty.core.expression import is_renumbered
from sobolev_novelty.errors import ParseError

CONVENTIONS = ("auto", "x0", "x1", "names")


@dataclass(frozen=True, slots=True)
class Mention:
    """A variable as the text first mentions it.

    ``index`` is the number of ``x3``, ``X_3``, ``x[3]`` or ``x[:,3]``, else None; ``is_subscript`` says that the text
    is not a plain name, ``is_column`` that it is NumPy's ``x[:,3]``, which counts from 0 whatever the others do.
    """

    name: str
    position: int
    index: int | None = None
    is_subscript: bool = False
    is_column: bool = False


def resolve(mentions: Mapping[str, Mention], names: Sequence[str] | None, convention: str, text: str) -> dict[str, str]:
    """Key of each mention -> the variable's name."""
    if names is None:
        return _resolve_freely(mentions, convention, text)
    exact_first = convention not in ("x0", "x1")
    known = set(names)
    resolved: dict[str, str] = {}
    numbered: dict[str, int] = {}
    for key, mention in mentions.items():
        if mention.name in known and (exact_first or mention.index is None):
            resolved[key] = mention.name
        elif mention.index is None or convention == "names":
            raise ParseError(_unknown(mention, names), text, mention.position)
        else:
            numbered[key] = mention.index
    if not numbered:
        return resolved
    base = _base(convention, [mentions[key] for key in numbered], len(names), text)
    if not all(mentions[key].is_column for key in numbered):
        _refuse_mixing([mentions[key] for key in resolved], names, base, text)
    for key, index in numbered.items():
        column = index if mentions[key].is_column else index - base
        if not 0 <= column < len(names):
            reason = (
                f"'{mentions[key].name}' is out of range: numbering starts at {base} and there are {len(names)} names."
            )
            raise ParseError(reason, text, mentions[key].position)
        resolved[key] = names[column]
    return resolved


def _refuse_mixing(exact: Sequence[Mention], names: Sequence[str], base: int, text: str) -> None:
    """A name that looks like a number must be that column: with the names x0, x1 the text x1 + x2 is a guess."""
    for mention in exact:
        if mention.index is not None and names.index(mention.name) != mention.index - base:
            raise ParseError(
                f"'{mention.name}' is the name of a column, but counted from {base} it would be another "
                'one. Say which: variables="x0" or variables="x1".',
                text,
                mention.position,
            )


def _base(convention: str, numbered: Sequence[Mention], n_names: int, text: str) -> int:
    """The index of the first variable, 0 or 1."""
    if convention != "auto":
        return 1 if convention == "x1" else 0
    indices = {mention.index for mention in numbered if not mention.is_column}
    if not indices or 0 in indices:
        return 0
    if n_names in indices:
        return 1
    first = next(mention for mention in numbered if not mention.is_column)
    raise ParseError(
        f"'{first.name}' could be column {first.index} counted from 0 or from 1, and no column has that name. "
        'Say which: variables="x0" or variables="x1".',
        text,
        first.position,
    )


def _resolve_freely(mentions: Mapping[str, Mention], convention: str, text: str) -> dict[str, str]:
    """Without names: numbers become x0, x1, … where the convention or index 0 says that they are numbers."""
    numbers_count = convention in ("x0", "x1", "x0 or names") or (
        convention == "auto"
        and any((is_renumbered(m.name) or m.is_subscript) and m.index == 0 for m in mentions.values())
    )
    base = 1 if convention == "x1" else 0
    resolved: dict[str, str] = {}
    for key, mention in mentions.items():
        if mention.index is None or not (numbers_count or mention.is_subscript):
            resolved[key] = mention.name
            continue
        column = mention.index if mention.is_column else mention.index - base
        if column < 0:
            raise ParseError(f"'{mention.name}' is out of range: numbering starts at 1.", text, mention.position)
        resolved[key] = f"x{column}"
    _refuse_merging(mentions, resolved, convention, text)
    return resolved


def _refuse_merging(mentions: Mapping[str, Mention], resolved: dict[str, str], convention: str, text: str) -> None:
    """Two plain spellings that would become one variable are a guess."""
    if convention != "auto":
        return
    seen: dict[str, Mention] = {}
    for key, name in resolved.items():
        mention, first = mentions[key], seen.setdefault(name, mentions[key])
        if first.name != mention.name:
            raise ParseError(
                f"'{mention.name}' and '{first.name}' may be one variable or two. "
                'Say which: variables="x0", variables="names", or give the names.',
                text,
                mention.position,
            )


def _unknown(mention: Mention, names: Sequence[str]) -> str:
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    hint = " SymPy writes the imaginary unit this way; expressions here are real." if mention.name == "I" else ""
    return f"'{mention.name[:60]}' is not a known variable.{hint} Known: {shown or 'none'}."
