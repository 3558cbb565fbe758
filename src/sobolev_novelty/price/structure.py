"""What a form costs among all forms of the same operators and inputs."""

from __future__ import annotations

import math

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator

#: What a form chooses from at every second node, an operator, and at the others beside one of the inputs: in the 133
#: laws of the white box the operators have an entropy of 1.81 nats, as six equally frequent ones, and constants and
#: inputs one of 0.59. Their sum is ln 11.
CHOICES = 11
#: Functions that laws hardly ever use, and the nats that each costs beside its node: of the 133 laws of the white box
#: and the 50 of ``lab/bench/problems/everyday.toml`` 3 % have one of them, and 60 % some other function: ln 20.
SELDOM, SELDOM_NATS = frozenset({"arcsin", "arccos", "arctan", "tanh", "abs", "cbrt"}), 3.0


def form_nats(complexity: int, n_inputs: int) -> float:
    """The logarithm of how many forms there are of this complexity, about.

    >>> round(form_nats(5, 1), 1), round(form_nats(5, 4), 1)
    (6.0, 9.5)
    """
    return 0.5 * complexity * math.log(CHOICES * n_inputs)


def structure_nats(expression: Expression, n_inputs: int, complexity: int | None = None) -> float:
    """The price of a form.

    ``complexity``: its cost, where operators have costs of their own.

    >>> from sobolev_novelty.language.parsing import parse
    >>> round(structure_nats(parse("tanh(x0)"), 1) - structure_nats(parse("exp(x0)"), 1), 1)
    3.0
    """
    seldom = sum(isinstance(token, Operator) and token.name in SELDOM for token in expression.tokens)
    return form_nats(expression.complexity if complexity is None else complexity, n_inputs) + SELDOM_NATS * seldom
