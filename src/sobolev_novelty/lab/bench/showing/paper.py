"""The paper's own numbers, by the names methods have here."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources


@cache
def _table() -> dict[str, dict[str, list[float]]]:
    text = resources.files("sobolev_novelty.lab.bench.showing").joinpath("paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def paper_name(method: str) -> str:
    """What the paper calls a method of ours, or its own name.

    >>> paper_name("genetic+novelty"), paper_name("DSR")
    ('SN-GP', 'DSR')
    """
    return str(_table()["names"].get(method, method))


def paper_row(table: str, method: str) -> tuple[float, ...] | None:
    """The paper's row for a method; ``None`` if it has none.

    ``table`` is ``qualification``, ``whitebox``, ``blackbox`` or ``ablation``.
    """
    row = _table().get(table, {}).get(paper_name(method))
    return None if row is None else tuple(float(value) for value in row)


def paper_rows(table: str) -> dict[str, tuple[float, ...]]:
    """All rows of a table of the paper, by the paper's names; none for a suite the paper does not have."""
    return {name: tuple(float(value) for value in row) for name, row in _table().get(table, {}).items()}
