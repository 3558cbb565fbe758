"""Formulas from the network: samples that are well-formed by construction.

Shapes
------
``B`` tables, ``S`` sequences of each, ``L`` places, ``V`` vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sobolev_novelty.engines.transformer.model import Model, ModelSettings
from sobolev_novelty.engines.transformer.tokenizer import (
    ARITY,
    BEGIN,
    CONSTANT,
    END,
    FIRST_EXPONENT,
    FIRST_INPUT,
    FIRST_MANTISSA,
    FIRST_OPERATOR,
    N_FLOAT,
    N_SKELETON,
    OPERATOR_NAMES,
    PAD,
)
from sobolev_novelty.errors import ParameterError


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """Which tokens may come next.

    ``digits``, ``exponents``: (V,).
    """

    operands: Tensor  # (V,): places that a token opens; a sign opens its digits and its exponent
    #: (B, 1, V): tokens that may stand where an operand begins, given how many inputs each table has.
    begins_operand: Tensor
    digits: Tensor
    exponents: Tensor
    length: int

    @classmethod
    def of(cls, settings: ModelSettings, n_inputs: Tensor) -> Grammar:
        """For tables with these numbers of inputs, (B,)."""
        V = settings.vocabulary_size
        ids = torch.arange(V, device=n_inputs.device)
        operands = torch.zeros(V, dtype=torch.long)
        known = min(V, len(ARITY))
        operands[:known] = torch.from_numpy(ARITY[:known])
        is_input = (ids >= FIRST_INPUT) & (ids < FIRST_OPERATOR)
        legal = (ids >= FIRST_INPUT) & (ids < FIRST_MANTISSA) if settings.with_floats else ids >= CONSTANT
        legal = legal & (~is_input | (ids - FIRST_INPUT < n_inputs.view(-1, 1, 1)))
        digits = (ids >= FIRST_MANTISSA) & (ids < FIRST_EXPONENT)
        exponents = (ids >= FIRST_EXPONENT) & (ids < N_FLOAT)
        return cls(operands.to(ids.device), legal, digits, exponents, settings.length)

    def restricted(self, operators: Collection[str], max_nodes: int) -> Grammar:
        """The grammar with these operators only, for formulas of at most so many nodes."""
        forbidden = [number for number, name in OPERATOR_NAMES.items() if name not in operators]
        begins = self.begins_operand.clone()
        begins[..., forbidden] = False
        return replace(self, begins_operand=begins, length=min(self.length, max(1, max_nodes) + 2))

    def allowed(self, place: int, open_places: Tensor, last: Tensor) -> Tensor:
        """(B, S) open places and last tokens -> (B, S, V): what keeps the formula well-formed and short enough."""
        after = open_places.unsqueeze(-1) - 1 + self.operands  # open places if this token came next
        room = self.length - 2 - place  # tokens that still fit, END left out
        ok = self.begins_operand & (after <= room - 1)
        ok = torch.where(((last >= N_SKELETON) & (last < FIRST_MANTISSA)).unsqueeze(-1), self.digits, ok)
        ok = torch.where(((last >= FIRST_MANTISSA) & (last < FIRST_EXPONENT)).unsqueeze(-1), self.exponents, ok)
        ends = torch.arange(len(self.operands), device=last.device) == END
        return torch.where((open_places == 0).unsqueeze(-1), ends, ok)


@torch.no_grad()
def sample(
    model: Model,
    X: Tensor,
    y: Tensor,
    n_inputs: Tensor,
    n_sequences: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Formulas for each table: the first greedy, the others drawn.

    ``X``: (B, N, 10), unused columns are 0; a table with fewer than 200 rows is best repeated up to 200.
    ``y``: (B, N).
    ``n_inputs``: (B,).

    Returns (B, S, L) tensor of tokens: BEGIN left out, padded after END;
    :func:`sobolev_novelty.engines.transformer.tokenizer.decode` reads a row.
    """
    if n_sequences < 1:
        raise ParameterError(f"'n_sequences' must be at least 1. Got {n_sequences}.")
    B, S, L = X.shape[0], n_sequences, model.settings.length
    grammar = Grammar.of(model.settings, n_inputs.to(X.device))
    caches = model.start(X, y, S)
    out = torch.full((B, S, L), PAD, dtype=torch.long, device=X.device)
    last = torch.full((B, S), BEGIN, device=X.device)
    open_places = torch.ones((B, S), dtype=torch.long, device=X.device)
    is_done = torch.zeros((B, S), dtype=torch.bool, device=X.device)
    for place in range(L - 1):
        logits = model.next_logits(last.flatten(), caches, place).float().view(B, S, -1)
        logits = logits.masked_fill(~grammar.allowed(place, open_places, last), float("-inf"))
        last = logits.argmax(dim=-1)
        if S > 1:
            chances = torch.softmax(logits[:, 1:] / temperature, dim=-1).flatten(0, 1)
            last[:, 1:] = torch.multinomial(chances, 1, generator=generator).view(B, S - 1)
        out[:, :, place] = torch.where(is_done, PAD, last)
        is_done |= last == END
        if bool(is_done.all()):
            break
        open_places = torch.where(open_places > 0, open_places - 1 + grammar.operands[last], 0)
    return out
