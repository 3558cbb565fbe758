"""Tables from files too large to be read whole: the tables of :mod:`sobolev_novelty.files`, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev_novelty.errors import DataError, ParameterError, require
from sobolev_novelty.files import (
    COMPRESSIONS,
    Table,
    check_not_empty,
    kind_of,
    parquet_errors,
    text_errors,
    text_options,
)

if TYPE_CHECKING:
    import pandas as pd

#: Files of more bytes than this are read in chunks.
LARGE_FILE = 200 * 2**20
#: Entries of a chunk whose number of rows nobody gave.
CHUNK_ENTRIES = 2**20


def is_large(path: Path) -> bool:
    """Whether a file is better read in chunks."""
    return path.is_file() and path.stat().st_size > LARGE_FILE


@dataclass(frozen=True, slots=True)
class FileChunks:
    """A table in a file, to be read some rows at a time, as often as wanted.

    Parameters
    ----------
    path : Path
        See :func:`sobolev_novelty.files.read_table`, also for ``separator`` and ``has_header``.
    rows : int, optional
        Rows of a chunk; by default as many as make a chunk of a few megabytes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n5,6\\n")
    >>> [(len(table), table.first_row) for table, share in FileChunks(path, 2).tables()]
    [(2, 0), (1, 2)]
    """

    path: Path
    rows: int | None = None
    separator: str | None = None
    has_header: bool = True

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise ParameterError(f"'rows' of a chunk must be at least 1 (--chunk-rows). Got {self.rows}.")

    def first(self) -> Table:
        """The first chunk, with all columns; a file without rows or columns is refused."""
        found = next(iter(self.tables()), None)
        if found is None:
            raise DataError(f"'{self.path}' has no rows. Give at least 32 rows of data.")
        check_not_empty(found[0], self.path)
        return found[0]

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[tuple[Table, float]]:
        """The chunks in order, each with the share of the file that has been read then.

        ``columns`` are those that are needed; others may come with them.
        """
        kind, separator = kind_of(self.path, self.separator)
        parts = self._parquet(columns) if kind == "parquet" else self._text(separator)
        first_row = 0
        for frame, share in parts:
            yield Table(frame, self.path.name, first_row), min(share, 1.0)
            first_row += len(frame)

    def _rows(self, n_columns: int) -> int:
        return max(1, CHUNK_ENTRIES // max(1, n_columns)) if self.rows is None else self.rows

    def _text(self, separator: str) -> Iterator[tuple[pd.DataFrame, float]]:
        import pandas as pd

        compression: Any = COMPRESSIONS.get(self.path.suffix.lower())
        size = max(1, self.path.stat().st_size)
        with self.path.open("rb") as handle:
            with text_errors(self.path, separator):
                # All columns are read: with some of them left out, pandas would take rows that are too long.
                options = text_options(self.path, separator, self.has_header)
                rows = self._rows(len(options["names"]))
                reader: Any = pd.read_csv(handle, chunksize=rows, compression=compression, **options)
            with reader:
                while True:
                    with text_errors(self.path, separator):
                        frame = next(reader, None)
                    if frame is None:
                        return
                    yield frame, handle.tell() / size

    def _parquet(self, columns: Sequence[str] | None) -> Iterator[tuple[pd.DataFrame, float]]:
        with parquet_errors(self.path):
            # Buffered, so that a row group as large as the file is not read at once.
            file = require("pyarrow.parquet", extra="parquet").ParquetFile(self.path, buffer_size=2**20)
        with file:
            rows = self._rows(file.metadata.num_columns)
            wanted = None if columns is None else list(columns)
            n_read = 0
            for groups in _row_groups(file.metadata, rows):
                # One iterator keeps the buffers of all its row groups until it ends.
                batches = file.iter_batches(batch_size=rows, row_groups=groups, columns=wanted)
                while True:
                    with parquet_errors(self.path):
                        batch = next(batches, None)
                        frame = None if batch is None else batch.to_pandas()
                    if frame is None:
                        break
                    n_read += len(frame)
                    yield frame, n_read / file.metadata.num_rows


def _row_groups(metadata: Any, rows: int) -> Iterator[list[int]]:
    """Runs of row groups of at least this many rows."""
    run: list[int] = []
    n = 0
    for k in range(metadata.num_row_groups):
        run.append(k)
        n += metadata.row_group(k).num_rows
        if n >= rows:
            yield run
            run, n = [], 0
    if run:
        yield run
