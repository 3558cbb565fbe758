"""Parquet files within bounds of memory: a few kilobytes of dictionaries and repetitions can stand for gigabytes.

Columns of text are kept as the file has them, each text once. Where the format allows no such reading (lists of texts,
texts written as differences), rows are taken in small batches and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from sobolev_novelty.errors import require
from sobolev_novelty.tables.compression import check_expansion

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

#: Rows that are taken at once where a row may hold anything.
FEW_ROWS = 256
#: Encodings in which a text may refer to the one before.
_DIFFERENCES = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}


@dataclass(frozen=True, slots=True, eq=False)
class ParquetTable:
    """An open file."""

    stored: Any
    texts: list[str]  # columns of text that are read as a dictionary
    is_bounded: bool  # whether a row takes no more than the file says

    @classmethod
    def opened(cls, source: Path | IO[bytes], **options: Any) -> ParquetTable:
        """Look at the columns, and open the file so that texts stay short."""
        parquet = require("pyarrow.parquet", extra="parquet")
        with parquet.ParquetFile(source, **options) as first:
            texts, is_bounded = _texts(first)
            if hasattr(source, "seek"):
                source.seek(0)
        return cls(parquet.ParquetFile(source, read_dictionary=texts, **options), texts, is_bounded)

    @property
    def n_bytes(self) -> int:
        """What the numbers of the file take, and the texts as they are stored."""
        metadata, total = self.stored.metadata, 0
        widths = [max(8, metadata.schema.column(k).length) for k in range(metadata.num_columns)]
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for k, width in enumerate(widths):
                column = group.column(k)
                total += max(width * column.num_values, column.total_uncompressed_size)
        return total

    def read(self, name: str, max_bytes: int, *, use_threads: bool) -> pd.DataFrame:
        """The whole table; more than ``max_bytes`` are refused."""
        check_expansion(name, self.n_bytes, max_bytes)
        if self.is_bounded:
            return self.frame(self.stored.read(use_threads=use_threads))
        arrow, batches, n_bytes = require("pyarrow", extra="parquet"), [], 0
        for batch in self.stored.iter_batches(batch_size=FEW_ROWS):
            n_bytes += batch.nbytes
            check_expansion(name, n_bytes, max_bytes)
            batches.append(batch)
        return self.frame(arrow.Table.from_batches(batches, self.stored.schema_arrow))

    def batches(self, rows: int, row_groups: Sequence[int], columns: Sequence[str] | None) -> Iterator[Any]:
        """Some rows at a time; few where a row may hold anything."""
        size = rows if self.is_bounded else min(rows, FEW_ROWS)
        return iter(self.stored.iter_batches(batch_size=size, row_groups=list(row_groups), columns=columns))

    def frame(self, part: Any) -> pd.DataFrame:
        """A table or a batch for pandas; equal texts are one object."""
        frame: pd.DataFrame = part.to_pandas()
        for name in self.texts:
            if name in frame.columns and frame[name].dtype == "category":
                frame[name] = frame[name].astype(object)
        return frame.rename(columns=str)


def _texts(stored: Any) -> tuple[list[str], bool]:
    """Columns of text that can be read as a dictionary, and whether there is nothing else of any length."""
    metadata, schema = stored.metadata, stored.schema_arrow
    texts: list[str] = []
    is_bounded = True
    for k in range(metadata.num_columns):
        column = metadata.schema.column(k)
        if column.physical_type != "BYTE_ARRAY":
            is_bounded = is_bounded and column.max_repetition_level == 0
            continue
        groups = (metadata.row_group(g).column(k) for g in range(metadata.num_row_groups))
        is_plain = all(_DIFFERENCES.isdisjoint(group.encodings) for group in groups)
        place = schema.get_field_index(column.path)
        if is_plain and column.max_repetition_level == 0 and place >= 0 and _is_text(schema.field(place).type):
            texts.append(column.path)
        else:
            is_bounded = False
    return texts, is_bounded


def _is_text(kind: Any) -> bool:
    types = require("pyarrow.types", extra="parquet")
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_dictionary))
