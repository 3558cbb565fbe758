"""A sweep on the terminal: how far it is, what runs, how long it will take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sobolev_novelty.core.progress import silent
from sobolev_novelty.lab.bench.running.run import SweepProgress

#: Jobs in progress that are listed; a cluster may have hundreds.
_SHOWN = 12


def duration(seconds: float | None) -> str:
    """Seconds as a person says them."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def progress_table(state: SweepProgress) -> RenderableType:
    """One picture of a sweep."""
    parts = (f"{state.done} of {state.total} done", state.note, f"{duration(state.seconds_left)} to go")
    head = Text(", ".join(filter(None, parts)))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("task", "method", "seed", "noise", "running"):
        table.add_column(name, justify="left" if name in ("task", "method") else "right")
    for job, seconds in state.running[:_SHOWN]:
        table.add_row(job.task, job.method, str(job.seed), f"{job.noise:g}", duration(seconds))
    if len(state.running) > _SHOWN:
        table.add_row(f"and {len(state.running) - _SHOWN} more")
    return Group(head, ProgressBar(total=max(state.total, 1), completed=state.done, width=60), table)


@contextmanager
def live_progress() -> Iterator[Callable[[SweepProgress], None]]:
    """A table on standard error that follows the sweep, where there is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda state: live.update(progress_table(state))
