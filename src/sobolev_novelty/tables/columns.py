"""Which columns and rows of a table are used, and what is said of the others: nothing is left out silently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sobolev_novelty.core.sample import Sample, abridged
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables.files import Table


def input_columns(
    table: Table, *, features: Sequence[str] | None = None, others: Mapping[str, Sequence[str]]
) -> list[str]:
    """The columns that are inputs: those named, or all but the others.

    ``features``: the inputs, in order.
    ``others``: argument -> columns that it names and that are not inputs: ``{"target": ["y"]}``.

    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"a": [1], "b": [2], "y": [3]}), "data.csv")
    >>> input_columns(table, others={"target": ["y"]})
    ['a', 'b']
    """
    named: dict[str, str] = {}
    for argument, names in {**others, "features": features or ()}.items():
        table.check_columns(names, argument)
        both = [name for name in names if named.get(name, argument) != argument]
        if both:
            raise ParameterError(
                f"'{named[both[0]]}' and '{argument}' both name the column '{both[0]}'. Take it out of one of them.",
                arguments=[named[both[0]], argument],
            )
        named |= dict.fromkeys(names, argument)
    columns = (
        [name for name in table.columns if name not in named] if features is None else list(dict.fromkeys(features))
    )
    if not columns:
        raise DataError(f"'{table.source}' has no input column besides {', '.join(named)}. Give at least one input.")
    return columns


def unusable_columns(tables: Iterable[Table], names: Sequence[str]) -> dict[str, str]:
    """Those of these columns that are not numeric in some row, or missing in every row, each with the reason.

    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "data.csv")
    >>> unusable_columns([table], ["a", "b"])
    {'b': "is not numeric ('x' in data row 1)"}
    """
    text: dict[str, str] = {}
    empty = set(names)
    for table in tables if names else ():
        suspects = table.not_numeric()
        for name in names:
            entry = table.first_text(name) if name in suspects and name not in text else None
            if entry is not None:
                text[name] = f"is not numeric ({entry})"
        empty &= table.empty()
        if len(text) == len(names):
            break
    return {name: text.get(name, "has no entries") for name in names if name in text or name in empty}


def usable_columns(
    table: Table, columns: Sequence[str], unusable: Mapping[str, str]
) -> tuple[list[str], tuple[str, ...]]:
    """The columns that remain, and a note on each that does not."""
    kept = [name for name in columns if name not in unusable]
    if not kept:
        reasons = abridged([f"'{name}' {reason}" for name, reason in unusable.items()], "columns are like that", 4)
        raise DataError(
            f"'{table.source}' has no numeric column to use as input: {'; '.join(reasons)}. Correct the entry, leave "
            "it empty, or encode the column as numbers."
        )
    notes = [f"Column '{name}' {reason}: it is left out." for name, reason in unusable.items()]
    return kept, abridged(notes, "columns are not numeric or have no entries: they are left out.")


def sample_of(table: Table, names: Sequence[str]) -> Sample:
    """These columns as a sample; an error names an entry that is not a number."""
    if table.not_numeric().isdisjoint(names):
        frame = table.frame if tuple(names) == table.columns else table.frame.loc[:, list(names)]
        values = frame.to_numpy(dtype=np.float64, na_value=np.nan).T
    else:
        values = np.stack([table.numbers(name) for name in names])
    return Sample(np.ascontiguousarray(values), tuple(names))


def rows_note(n_left_out: int, n_rows: int, names: Sequence[str]) -> tuple[str, ...]:
    """What is said of rows in which one of these columns has no finite number; nothing where there are none.

    >>> rows_note(2, 50, ["y"])
    ('2 of 50 rows are left out: y is missing or not finite there.',)
    """
    if not n_left_out:
        return ()
    missing = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    if len(names) > 5:
        missing = f"one of {len(names)} columns ({', '.join(names[:3])}, …)"
    verb = "is" if n_left_out == 1 else "are"
    return (f"{n_left_out} of {n_rows} rows {verb} left out: {missing} is missing or not finite there.",)
