"""The search tree: a node is a set of terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.tree import TreeNode


@dataclass(slots=True, eq=False)
class Node(TreeNode):
    """An additive model in the tree.

    ``r2``, ``score``: on the validation part; the score is R_base of it. ``n_expansions``: times terms were asked for.
    """

    #: In the variables of the search, inner constants fitted, the constant offset not among them.
    terms: tuple[Expression, ...] = ()
    r2: float = 0.0
    score: float = 0.0
    children: list[Node] = field(default_factory=list)
    n_expansions: int = 0

    def child(self, terms: tuple[Expression, ...]) -> Node:
        """The child with these terms, a new one where there is none."""
        members = frozenset(terms)
        for known in self.children:
            if frozenset(known.terms) == members:
                return known
        self.children.append(Node(terms, parent=self))
        return self.children[-1]


def select(root: Node, *, exploration: float, widening: float) -> Node:
    """The node to expand: down by the upper confidence bound until one has fewer expansions than its visits earn it.

    Visits are counted at once, so that several selections of one round spread out.
    """
    node = root
    while True:
        node.visits += 1
        if not node.children or node.n_expansions < widening * math.sqrt(node.visits):
            node.n_expansions += 1
            return node
        n_above = node.visits
        node = max(node.children, key=lambda child: child.promise(exploration, n_above))
