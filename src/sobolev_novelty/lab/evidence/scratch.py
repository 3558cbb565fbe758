"""Temporary folders that name the process which made them, so that those of a killed one can be removed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from sobolev_novelty.lab.evidence.claims import process_start


def folder_prefix(kind: str) -> str:
    """How the temporary folders of this process begin.

    >>> folder_prefix("bench") == f"sobolev-bench-{os.getpid()}-"
    True
    """
    return f"sobolev-{kind}-{os.getpid()}-"


def remove_abandoned_folders(kind: str) -> None:
    """Remove what killed processes left behind: folders of this kind that name a process which is gone."""
    start = f"sobolev-{kind}-"
    for folder in Path(tempfile.gettempdir()).glob(f"{start}*-*"):
        number = folder.name.removeprefix(start).partition("-")[0]
        if number.isdigit() and process_start(int(number)) is None:
            shutil.rmtree(folder, ignore_errors=True)
