"""The store of a study: one row per run, written as soon as the run ends, so that a study can be resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sobolev_novelty.errors import DataError, shortened
from sobolev_novelty.lab.evidence.origin import circumstances
from sobolev_novelty.lab.evidence.schema import Column, Schema
from sobolev_novelty.lab.evidence.store import EvidenceStore

Row = dict[str, Any]

#: What a row of a study holds. What only some runs have (how a closure was chosen, say) goes into the notes.
STUDY_RUNS = Schema(
    "sobolev turbulence compare",
    (
        Column("key", str, "what was run: row/…, grid/…, openfoam/…, feedback/…, base/…, or a check", "key"),
        Column("solver", str, "name of the flow solver"),
        Column("alpha", float, "α1, factor of the closure stress"),
        Column("closure", str, "name, terms and coefficients, JSON"),
        Column("is_converged", int, "1 if the flow solver converged"),
        Column("residual", float, "the solver's last residual"),
        Column("seconds", float, "wall time of the solver"),
        Column("measures", str, "numbers read from the velocity field, JSON"),
        Column("notes", str, "everything else about the run, JSON"),
    ),
)
_JSON = ("closure", "measures", "notes")


class RunStore(EvidenceStore):
    """The runs of one study."""

    schema = STUDY_RUNS

    def rows(self) -> list[Row]:
        """All stored rows, oldest first."""
        return [_decoded(row) for row in self.results()]

    def find(self, key: str) -> Row | None:
        """The row with this key."""
        found = self.results(self.schema.is_key, (key,))
        return _decoded(found[0]) if found else None

    def add(self, key: str, row: Mapping[str, Any]) -> Row:
        """Store a run, unless another process has stored it in the meantime; returns what is stored."""
        declared = self.schema.names("result")
        own = {name: value for name, value in row.items() if name in declared}
        notes = {name: value for name, value in row.items() if name not in declared}
        values = {"status": "done", **plain(own), "notes": plain(notes)}
        texts = {name: json.dumps(values[name], allow_nan=False) for name in _JSON if values.get(name)}
        self.insert((key,), {**values, "notes": None, **texts, **circumstances()})
        (stored,) = self.results(self.schema.is_key, (key,))
        return _decoded(stored)


def _decoded(row: Row) -> Row:
    """A stored row with its JSON read and its notes beside the columns."""
    try:
        texts = {name: None if row[name] is None else json.loads(row[name]) for name in _JSON}
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"The store is damaged: {shortened(error)} in run '{row['key']}'. Name another store."
        ) from error
    converged = None if row["is_converged"] is None else bool(row["is_converged"])
    notes = texts.pop("notes") or {}
    return {**notes, **{name: row[name] for name in row if name != "notes"}, **texts, "is_converged": converged}


def plain(value: Any) -> Any:
    """JSON values: tuples become lists, nan and infinities None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
