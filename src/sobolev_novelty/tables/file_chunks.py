"""Tables from files too large to be read whole, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables.compression import BoundedReader
from sobolev_novelty.tables.entries import cleaned
from sobolev_novelty.tables.files import Table, TableFile, check_not_empty
from sobolev_novelty.tables.format import TableFormat, TextLayout
from sobolev_novelty.tables.parquet import ParquetTable

if TYPE_CHECKING:
    import pandas as pd

#: Files of more bytes than this are read in chunks.
LARGE_FILE = 200 * 2**20
#: Entries in a chunk whose number of rows is not given.
CHUNK_ENTRIES = 2**20


def is_large(path: Path) -> bool:
    """Whether a file is better read in chunks."""
    return path.is_file() and path.stat().st_size > LARGE_FILE


@dataclass(frozen=True, slots=True)
class FileChunks:
    r"""A table in a file, to be read some rows at a time, as often as wanted.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = path.write_text("a,b\n1,2\n3,4\n5,6\n")
    >>> [(len(table), table.first_row) for table in FileChunks(path, 2).tables()]
    [(2, 0), (1, 2)]
    """

    path: Path
    chunk_rows: int | None = None  # rows per chunk; by default as many as make a chunk of a few megabytes
    #: See :func:`sobolev_novelty.tables.files.read_table`, also for the kinds of file.
    written: TableFormat = field(default_factory=TableFormat)

    def __post_init__(self) -> None:
        if self.chunk_rows is not None and self.chunk_rows < 1:
            raise ParameterError(f"'chunk_rows' must be at least 1. Got {self.chunk_rows}.")

    def first(self) -> Table:
        """The first chunk, with all columns; a file without rows or columns is refused."""
        table = next(iter(self.tables()), None)
        if table is None:
            raise DataError(f"'{self.path}' has no rows of data. Give a row for each measurement.")
        check_not_empty(table, str(self.path))
        return table

    def tables(self, columns: Sequence[str] | None = None, on_progress: OnProgress = silent) -> Iterator[Table]:
        """The chunks in order.

        ``columns``: those that are needed; others may come with them.
        ``on_progress``: told after each chunk how much of the file has been read.
        """
        if self.path.exists() and not self.path.is_file():
            raise ParameterError(
                f"'chunk_rows': '{self.path}' is a pipe, which can be read only once. Leave it out, or give a file."
            )
        file = TableFile.of(self.path, self.written)
        layout = None if file.is_parquet else file.layout(self.written)
        parts = self._parquet(file, columns) if layout is None else self._text(file, layout)
        first_row = 0
        for frame, done, total in parts:
            on_progress(Step(min(done, total), total, file.label))
            yield self._table(frame, file, layout, first_row)
            first_row += len(frame)

    @staticmethod
    def _table(frame: pd.DataFrame, file: TableFile, layout: TextLayout | None, first_row: int) -> Table:
        if layout is None:
            return Table(frame, file.label, first_row)
        frame, notes = cleaned(frame, layout.decimal)
        return Table(frame, file.label, first_row, file.notes + layout.notes + notes, layout.units)

    def _rows(self, n_columns: int) -> int:
        return max(1, CHUNK_ENTRIES // max(1, n_columns)) if self.chunk_rows is None else self.chunk_rows

    def _text(self, file: TableFile, layout: TextLayout) -> Iterator[tuple[pd.DataFrame, int, int]]:
        """Chunks, each with the bytes read so far and those of the file."""
        import pandas as pd

        size = max(1, self.path.stat().st_size)
        with file.open() as raw, file.text(raw) as handle:
            with file.errors(layout.separator):
                # All columns are read: with some of them left out, pandas would take rows that are too long.
                n_rows = self._rows(len(layout.names))
                reader: Any = pd.read_csv(layout.opened(handle), chunksize=n_rows, **layout.options())
            with reader:
                while True:
                    with file.errors(layout.separator):
                        frame = next(reader, None)
                    if isinstance(handle, BoundedReader):
                        handle.allow_as_much_again()
                    if frame is None:
                        return
                    yield frame, raw.tell(), size

    def _parquet(
        self, file: TableFile, columns: Sequence[str] | None
    ) -> Iterator[tuple[pd.DataFrame, int, int]]:  # fmt: skip
        """Chunks, each with the rows read so far and those of the file."""
        with file.errors():
            # Buffered, so that a row group as large as the file is not read at once.
            table = ParquetTable.opened(self.path, buffer_size=2**20)
        with table.stored as stored:
            rows = self._rows(stored.metadata.num_columns)
            wanted = None if columns is None else list(columns)
            n_read = 0
            for groups in _row_groups(stored.metadata, rows):
                # One iterator keeps the buffers of all its row groups until it ends.
                batches = table.batches(rows, groups, wanted)
                while True:
                    with file.errors():
                        batch = next(batches, None)
                        frame = None if batch is None else table.frame(batch)
                    if frame is None:
                        break
                    n_read += len(frame)
                    yield frame, n_read, stored.metadata.num_rows


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
