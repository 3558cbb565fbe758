"""One tree for all searches: visits and rewards go up in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from places import ROOT
from sobolev_novelty.engines.tree import TreeNode

SOURCE = ROOT / "src" / "sobolev_novelty"
CLIMB = re.compile(r"(\w+) = \1\.parent\b")


@dataclass(slots=True, eq=False)
class Named(TreeNode):
    name: str


def test_a_reward_reaches_every_node_up_to_the_root_and_no_sister() -> None:
    root = Named("root")
    left, right = Named("left", parent=root), Named("right", parent=root)
    leaf = Named("leaf", parent=left)
    assert [node.name for node in leaf.lineage()] == ["leaf", "left", "root"]
    for node, reward in ((leaf, 0.8), (left, 0.2), (right, 0.4)):
        node.count_visit()
        node.backpropagate(reward)
    assert [(node.visits, round(node.total, 12), node.best) for node in (root, left, right, leaf)] == [
        (3, 1.4, 0.8),
        (2, 1.0, 0.8),
        (1, 0.4, 0.4),
        (1, 0.8, 0.8),
    ]
    assert left.value == 0.5 * 1.0 / 2 + 0.5 * 0.8


def test_backpropagation_stands_in_one_place() -> None:
    climbing = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(CLIMB.search(line) for line in path.read_text(encoding="utf-8").splitlines())
    }
    assert climbing == {"engines/tree.py"}


def test_every_tree_search_grows_this_tree() -> None:
    from sobolev_novelty.engines import mcts
    from sobolev_novelty.engines.igsr import tree as igsr
    from sobolev_novelty.engines.paper import mcts as paper
    from sobolev_novelty.lab.turbulence.selecting import tree_search

    assert all(issubclass(node, TreeNode) for node in (mcts.Node, igsr.Node, paper.Node, tree_search._Node))
