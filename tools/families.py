"""The families of structural forms as a table of Markdown: docs/searching.md holds it.

python tools/families.py
"""

from __future__ import annotations

from sobolev_novelty.search.propose.neighbours import NEIGHBOURS
from sobolev_novelty.search.propose.structure.families import FAMILIES
from sobolev_novelty.search.propose.structure.family import Level

HEAD = "| family | when | columns | how few are chosen | tasks at hand |\n| --- | --- | --- | --- | --- |"

NEAR = """Tried near the best equations, by the genetic engine:

| best by | up to nodes | tried |
| --- | ---: | --- |"""


def table() -> str:
    """One table for each level, in the order in which families are tried."""
    parts = []
    for level in Level:
        cells = ((f.name, f.when, f.columns, f.selection, f.tasks) for f in FAMILIES if f.level is level)
        rows = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]
        parts.append("\n".join([f"Tried on {level.value}:\n", HEAD, *rows]))
    near = [f"| {row.of.value} | {row.most} | {row.name} |" for row in NEIGHBOURS]
    parts.append("\n".join([NEAR, *near]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(table())
