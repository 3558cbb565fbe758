"""Files that hold an equation: a saved model, a hall of fame of PySR, or plain text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sobolev_novelty.errors import DataError
from sobolev_novelty.language.peers.pysr import equation_of_hall_of_fame, is_hall_of_fame

#: Characters of a text file that is taken for one equation.
MAX_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The equations of a file, the chosen one, and the dialect they are written in."""

    name: str
    chosen: str
    equations: tuple[str, ...]
    dialect: str = "plain"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"name": self.name, "equations": list(self.equations)}


def read_model(name: str, content: bytes) -> ModelFile:
    r"""The equations of a file; nothing in it is executed.

    ``name``: the file's, for messages.

    >>> read_model("law.txt", b"2*sin(x) + 1").chosen
    '2*sin(x) + 1'
    >>> read_model("hall_of_fame.csv", b"Complexity,Loss,Equation\n1,2.0,x0\n3,0.1,x0 * x1").equations
    ('x0', 'x0 * x1')
    """
    if content.lstrip()[:1] == b"{":
        return _saved_model(name, content)
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise DataError(f"'{name}' is not text: {error.reason}. Save the equation as UTF-8.") from error
    if "\0" in text:
        raise DataError(f"'{name}' is not text. Give a saved model, a hall of fame of PySR, or an equation as text.")
    if not text:
        raise DataError(f"'{name}' holds no equation. Write one formula there.")
    if is_hall_of_fame(text):
        chosen, _, n_rows = equation_of_hall_of_fame(text)
        rows = tuple(equation_of_hall_of_fame(text, row)[0] for row in range(n_rows))
        return ModelFile(name, chosen, rows, "pysr")
    if len(text) > MAX_TEXT:
        raise DataError(f"'{name}' holds {len(text):,} characters: too many for an equation. Is it the table?")
    return ModelFile(name, text, (text,))


def _saved_model(name: str, content: bytes) -> ModelFile:
    from sobolev_novelty.search.model.regressor import SymbolicRegressor
    from sobolev_novelty.search.model.storage import json_object, model_from_dict

    model = model_from_dict(SymbolicRegressor, json_object(content, name), name)
    return ModelFile(name, str(model.expression_), tuple(str(e) for e in model.equations_["expression"]))
