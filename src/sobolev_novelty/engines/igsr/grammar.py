"""The grammar of admissible terms, from the operator table and the variables' names: as GBNF and as a JSON schema.

A server that takes a grammar (llama.cpp) can then only answer with terms that our parser reads. Rules are unrolled to a
fixed depth: a small model could nest brackets until its tokens are spent.
"""

from __future__ import annotations

import json
from typing import Any

from sobolev_novelty.core.expression import format_name
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.engines.igsr.talk.protocol import Vocabulary
from sobolev_novelty.errors import ParameterError

#: Functions and brackets inside each other.
DEPTH = 2
#: Factors of a product; those behind the first are less deep, so that no term is larger than the parser allows.
MAX_FACTORS = 3
_INFIX = {"add": '" + "', "sub": '" - "'}


def gbnf(vocabulary: Vocabulary, n_terms: int) -> str:
    r"""A GBNF grammar of ``n_terms`` lines with one term each.

    >>> vocabulary = Vocabulary(("x0", "body mass"), ("add", "mul", "sin"), ((0.0, 1.0), (1.0, 2.0)))
    >>> print(gbnf(vocabulary, 4).splitlines()[0])
    root ::= term "\n" term "\n" term "\n" term "\n"
    """
    if n_terms < 1:
        raise ParameterError(f"'n_terms' must be at least 1. Got {n_terms}.")
    operators = [OPERATORS[name] for name in vocabulary.operators]
    functions = [operator.name for operator in operators if operator.arity == 1 and not operator.symbol]
    sums = [_INFIX[name] for name in vocabulary.operators if name in _INFIX]
    rules = ["root ::= " + " ".join(['term "\\n"'] * n_terms), f"term ::= product{DEPTH}"]
    for depth in range(DEPTH, -1, -1):
        rules.append(f"product{depth} ::= {_product(depth, vocabulary)}")
        choices = ["power"]
        if depth:
            choices += [f"{_quoted(name + '(')} argument{depth - 1} {_quoted(')')}" for name in functions]
            choices += [f'"(" sum{depth - 1} ")"'] if sums else []
        rules.append(f"factor{depth} ::= {' | '.join(choices)}")
        if sums:
            joined = f"({' | '.join(sums)})"
            inner = f"product{max(depth - 1, 0)}"
            rules.append(f"sum{depth} ::= {inner} {joined} ({inner} | number)")
        scaled = ['number "*" '] if "mul" in vocabulary.operators else []
        whole = [f"product{depth}", *(f"{factor}product{depth}" for factor in scaled)]
        rules.append(f"argument{depth} ::= {' | '.join([*whole, f'sum{depth}'] if sums else whole)}")
    raised = f' | name "**" {_choice(("2", "3"))}' if set(vocabulary.operators) & {"pow", "square", "cube"} else ""
    rules.append(f"power ::= name{raised}")
    rules.append(f"name ::= {_choice([format_name(name) for name in vocabulary.names])}")
    rules.append('number ::= [0-9] ("." [0-9])?')
    return "\n".join(_reachable(rules)) + "\n"


def json_schema(vocabulary: Vocabulary, n_terms: int) -> dict[str, Any]:
    """A JSON schema of a list of terms; what a term may be is in its description, which schemas cannot enforce."""
    known = ", ".join(format_name(name) for name in vocabulary.names)
    return {
        "type": "object",
        "properties": {
            "terms": {
                "type": "array",
                "description": f"{n_terms} formulas of {known}",
                "items": {"type": "string"},
            }
        },
        "required": ["terms"],
        "additionalProperties": False,
    }


def _product(depth: int, vocabulary: Vocabulary) -> str:
    joints = [f'"{symbol}"' for name, symbol in (("mul", "*"), ("div", "/")) if name in vocabulary.operators]
    if not joints:
        return f"factor{depth}"
    further = f" (({' | '.join(joints)}) factor{max(depth - 1, 0)}"
    n_further = MAX_FACTORS - 1 if depth else 1
    return f"factor{depth}" + further * n_further + ")?" * n_further


def _reachable(rules: list[str]) -> list[str]:
    """The rules that the first one needs, in their order."""
    bodies = dict(rule.split(" ::= ", 1) for rule in rules)
    wanted, queue = {"root"}, ["root"]
    while queue:
        body = bodies[queue.pop()]
        for name in bodies:
            if name not in wanted and name in body.replace("(", " ").replace(")", " ").split():
                wanted.add(name)
                queue.append(name)
    return [rule for rule in rules if rule.split(" ::= ", 1)[0] in wanted]


def _choice(texts: tuple[str, ...] | list[str]) -> str:
    return "(" + " | ".join(_quoted(text) for text in texts) + ")"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
