"""Progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sobolev_novelty.core.progress import OnProgress, Progress, silent


@contextmanager
def progress_bar(words: str, *, is_shown: bool | None = None) -> Iterator[OnProgress]:
    """A bar on standard error that follows a task; it pulses as long as the total is not known.

    ``words``: what is being done.
    ``is_shown``: by default only where standard error is a terminal.
    """
    if not (sys.stderr.isatty() if is_shown is None else is_shown):
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)

        def show(progress: Progress) -> None:
            description = f"{words}: {progress.note}" if progress.note else words
            bar.update(task, completed=progress.done, total=progress.total, description=description)

        yield show
