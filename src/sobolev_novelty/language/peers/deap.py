"""DEAP: a tree is a prefix list of named primitives; what the names compute is in the user's primitive set.

Away from the guards of protected functions (``protectedDiv`` at a denominator of exactly 0) predictions are DEAP's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import SPELLINGS
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.peers.adapter import FrontEntry
from sobolev_novelty.language.peers.primitives import IDENTITY, matching_operator

#: DEAP's own names of its inputs.
_ARGUMENT = "ARG"


def from_deap(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a ``deap.gp.PrimitiveTree``, alone or as ``(tree, pset)``.

    ``model``: a hall of fame stands for its first tree. Without the primitive set only the usual names (``add``,
    ``sin`` …) are known.
    ``names``: names of the inputs; the tree's own by default, ``ARG0, ARG1, …`` becoming ``x0, x1, …``.
    """
    tree, pset = _parts(model)
    if not _is_tree(tree):
        trees = list(tree)
        if not trees or not _is_tree(trees[0]):
            raise ParameterError("'model' must be a DEAP tree or a hall of fame that is not empty.")
        tree = trees[0]
    tokens = [token for node in tree for token in _tokens(node, pset, names)]
    return Expression(tokens)


def deap_front(model: Any, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """Every tree of a hall of fame, with the first number of its fitness as loss."""
    trees, pset = _parts(model)
    if _is_tree(trees):
        trees = [trees]
    return tuple(FrontEntry(len(tree), _loss(tree), from_deap((tree, pset), names=names)) for tree in trees)


def _parts(model: Any) -> tuple[Any, Any]:
    if not isinstance(model, tuple):
        return model, None
    tree, pset = model
    return tree, pset


def _is_tree(model: Any) -> bool:
    return isinstance(model, list) and bool(model) and hasattr(model[0], "arity")


def _loss(tree: Any) -> float:
    values = list(getattr(getattr(tree, "fitness", None), "values", []))
    return float(values[0]) if values else float("nan")


def _tokens(node: Any, pset: Any, names: Sequence[str] | None) -> tuple[Token, ...]:
    if node.arity == 0:
        return (_leaf(node, pset, names),)
    if pset is not None:
        found = matching_operator(pset.context[node.name], node.arity, node.name)
        return () if found == IDENTITY else (found,)
    op = SPELLINGS.get(node.name)
    if op is None or op.arity != node.arity:
        raise ParameterError(
            f"The tree uses '{node.name}', which only its primitive set explains. Give both: (tree, pset)."
        )
    return (op,)


def _leaf(node: Any, pset: Any, names: Sequence[str] | None) -> Token:
    if not isinstance(node.value, str):
        return float(node.value)
    arguments = [f"{_ARGUMENT}{k}" for k in range(len(names))] if names is not None else []
    arguments = arguments if pset is None else list(pset.arguments)
    if names is not None and node.value in arguments:
        return names[arguments.index(node.value)]
    if node.value not in arguments and pset is not None and isinstance(pset.context.get(node.value), int | float):
        return float(pset.context[node.value])
    number = node.value.removeprefix(_ARGUMENT)
    return f"x{number}" if number != node.value and number.isdigit() else node.value
