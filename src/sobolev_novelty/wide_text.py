"""Text tables of thousands of columns, read as one: pandas takes some 50 µs for each column, whatever it holds."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING

import numpy as np

from sobolev_novelty.table_format import BLANKS, TextLayout

if TYPE_CHECKING:
    import pandas as pd

#: Columns from which it is worth the trouble.
MANY_COLUMNS = 1000
#: Longer texts are left to pandas, which reads them in pieces.
MAX_BYTES = 2**28
_LIKE_ASCII = ("utf-8", "utf-8-sig", "cp1252", "latin-1", "ascii")


def read_wide(handle: IO[bytes], layout: TextLayout) -> pd.DataFrame | None:
    """A table of numbers with many columns; ``None`` where pandas has to look at it column by column.

    Parameters
    ----------
    handle : binary stream
        From the start of the text; after ``None`` it is somewhere else.
    layout : TextLayout
    """
    if len(layout.names) < MANY_COLUMNS or layout.encoding not in _LIKE_ASCII:
        return None
    if layout.separator == BLANKS or not layout.separator.isascii():
        return None
    content = handle.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES or b'"' in content:
        return None
    lines = [line for line in content.splitlines()[layout.n_skipped :] if line.strip()]
    separator = layout.separator.encode()
    if not lines or any(line.count(separator) != len(layout.names) - 1 for line in lines):
        return None  # pandas says which row is too long
    import pandas as pd

    options = layout.options() | {"names": ["entry"], "skiprows": 0, "skip_blank_lines": False, "sep": "\t"}
    entries = pd.read_csv(io.BytesIO(b"\n".join(lines).replace(separator, b"\n") + b"\n"), **options)["entry"]
    if entries.dtype.kind not in "iuf" or len(entries) != len(lines) * len(layout.names):
        return None
    values = entries.to_numpy(dtype=np.float64).reshape(len(lines), len(layout.names))
    return pd.DataFrame(values, columns=list(layout.names))
