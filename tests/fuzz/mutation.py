"""Random changes of bytes, texts and JSON values."""

from __future__ import annotations

import json
from random import Random
from typing import Any

#: Values that readers trip over.
ODD: list[Any] = [
    None, True, -1, 0, 10**12, 10**400, -(2**63), 1e308, -0.0, 5e-324, "", "x0", "nan", "1e999", "\x1b[31m", "\0", "\ud800",
    [], {}, [[]], [None], {"type": "tuple"}, {"type": "Budget", "fields": {"seconds": "a"}}, {"type": "tuple", "items": 5},
    "x0" * 5000, "(" * 3000, [0] * 50, float("nan"), float("inf"),
]  # fmt: skip
#: Pieces of text that mean something to a parser.
PIECES = [
    "(", ")", ",", "**", "^", "*", "/", "-", "+", "e", "1e", ".", "x0", "x", "sin(", "max(", "log", "1e400", "nan", "\n", "\r", "\t",
    '"', "'", ";", "\\", "{", "}", "[", "]", "é", "\u202e", "\x00", "0" * 400, "9" * 50, "=", "--", "%", "#", " ",
]  # fmt: skip


def mutated_bytes(content: bytes, rng: Random) -> bytes:
    """Bytes flipped, cut, doubled, moved, or replaced."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 2, 4, 16, 256)))
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3:
            data[at:end] = rng.randbytes(end - at)
        elif kind == 4:
            data[at:at] = rng.choice(PIECES).encode("utf-8", "surrogatepass")
        else:
            del data[at:]
    return bytes(data)


def mutated_text(text: str, rng: Random) -> str:
    """Characters cut, doubled, or replaced by pieces that mean something."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((1, 1, 3, 10)))
        kind = rng.randrange(4)
        middle = ("", text[at:end] * 2, rng.choice(PIECES), text[at:end] * rng.choice((50, 500)))[kind]
        text = text[:at] + middle + text[end:]
    return text


def mutated_value(value: Any, rng: Random) -> Any:
    """A JSON value of which one part is gone, odd, or belongs elsewhere."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(list(value))
        changed = dict(value)
        if rng.random() < 0.1:
            del changed[name]
        elif rng.random() < 0.05:
            changed[rng.choice(["", "type", "format", name + "_"])] = changed.pop(name)
        else:
            changed[name] = mutated_value(value[name], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        k = rng.randrange(len(value))
        part = rng.choice(([], [mutated_value(value[k], rng)], [value[k], value[k]]))
        return [*value[:k], *part, *value[k + 1 :]]
    if isinstance(value, str) and rng.random() < 0.5:
        return mutated_text(value, rng)
    if isinstance(value, int | float) and rng.random() < 0.3:
        return -value
    return rng.choice(ODD)


def mutated_json(text: str, rng: Random) -> bytes:
    """JSON text of which a value is changed, or that is no longer JSON."""
    if rng.random() < 0.25:
        return mutated_bytes(text.encode(), rng)
    value = json.loads(text)
    for _ in range(rng.choice((1, 1, 2))):
        value = mutated_value(value, rng)
    return json.dumps(value).encode()
