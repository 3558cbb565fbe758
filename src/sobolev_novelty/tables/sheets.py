"""Workbooks of spreadsheets (.xlsx, .xls, .xlsb, .ods) as text."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

from sobolev_novelty.errors import DataError, ParameterError, meant, require
from sobolev_novelty.tables.compression import check_expansion

WORKBOOKS = (".xlsx", ".xls", ".xlsb", ".xlsm", ".ods")


def is_workbook(content: bytes) -> bool:
    """Whether bytes without a name are a workbook rather than another archive."""
    if not content.startswith(b"PK\3\4"):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return not {"xl/workbook.xml", "xl/workbook.bin"}.isdisjoint(archive.namelist())
    except zipfile.BadZipFile:
        return False


def sheet_as_text(content: Path | bytes, name: str, sheet: str | None, max_bytes: int) -> tuple[bytes, tuple[str, ...]]:
    """One sheet of a workbook as comma-separated text, and what is said of the others.

    ``name``: for messages.
    ``sheet``: by default the first that is not empty.
    ``max_bytes``: a workbook is an archive; one that holds more than this is refused.
    """
    calamine: Any = require("python_calamine", extra="excel")
    raw = content.read_bytes() if isinstance(content, Path) else content
    if raw.startswith(b"PK\3\4"):
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                check_expansion(name, sum(part.file_size for part in archive.infolist()), max_bytes)
        except zipfile.BadZipFile as error:
            raise _unreadable(name, error) from error
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(raw))
        names = book.sheet_names
    except Exception as error:  # the library's own, and what it passes on
        raise _unreadable(name, error) from error
    if sheet is not None and sheet not in names:
        raise ParameterError(
            f"'sheet': '{name}' has no sheet '{sheet}'.{meant(sheet, names)} Its sheets: {', '.join(names)}.",
            arguments=["sheet"],
        )
    for candidate in names if sheet is None else [sheet]:
        try:
            rows = book.get_sheet_by_name(candidate).to_python()
        except Exception as error:
            raise _unreadable(name, error) from error
        if rows:
            others = [other for other in names if other != candidate]
            note = f"Sheet '{candidate}' is read; others: {', '.join(others)}."
            return _as_text(rows), (note,) if others and sheet is None else ()
    raise DataError(f"'{name}' has no rows of data. Give a row for each measurement.")


def _as_text(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[_entry(cell) for cell in row] for row in rows])
    return text.getvalue().encode()


def _entry(cell: Any) -> str:
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    return str(cell)


def _unreadable(name: str, error: Exception) -> DataError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return DataError(
        f"'{name}' cannot be read as a workbook: {lines[0].rstrip('.')}. Open it in a spreadsheet and save it again, "
        "without a password."
    )
