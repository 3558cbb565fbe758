"""Runs of the experiments with `next_rows`: tables in results/, rows added to what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

RESULTS = Path(__file__).resolve().parents[1] / "results"


def stored(path: Path) -> pd.DataFrame:
    """All rows of a store; none where there is no store yet."""
    return pd.read_parquet(path) if path.exists() else pd.DataFrame()


def add(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows to a store."""
    pd.concat([stored(path), pd.DataFrame(rows)], ignore_index=True).to_parquet(path, compression="zstd")
