"""What the trees of all searches share: a node knows the one above it, and rewards go up to the root."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self


@dataclass(slots=True, eq=False, kw_only=True)
class TreeNode:
    """A place in a tree; what stands there is the subclass's."""

    parent: Self | None = None
    #: Times a descent came through.
    visits: int = 0
    #: Sum and maximum of the rewards from here on down.
    total: float = 0.0
    best: float = 0.0

    @property
    def value(self) -> float:
        """Half the mean, half the best of the rewards below."""
        return 0.5 * self.total / max(self.visits, 1) + 0.5 * self.best

    def lineage(self) -> Iterator[Self]:
        """The node itself, the one above it, and so on to the root."""
        node: Self | None = self
        while node is not None:
            yield node
            node = node.parent

    def promise(self, exploration: float, n_above: int) -> float:
        """The upper confidence bound of a child of a node that was passed so often."""
        return self.value + exploration * math.sqrt(math.log(n_above + 1.0)) / math.sqrt(self.visits + 1e-9)

    def count_visit(self) -> None:
        """Count one descent that ended here."""
        for node in self.lineage():
            node.visits += 1

    def backpropagate(self, reward: float) -> None:
        """Hand a reward up to the root."""
        for node in self.lineage():
            node.total += reward
            node.best = max(node.best, reward)
