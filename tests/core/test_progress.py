"""One protocol for everything that takes a while."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sobolev_novelty.core.progress import OnProgress, Progress, Step, part_of, silent, tracked
from sobolev_novelty.lab.bench.running.run import SweepProgress
from sobolev_novelty.report.render.progress_bar import progress_bar


@dataclass(frozen=True, slots=True)
class Rounds:
    """A task that tells more than the protocol asks for."""

    n_rounds: int
    best: float
    total: float | None = 10
    note: str = "searching"

    @property
    def done(self) -> float:
        return self.n_rounds


def test_items_are_told_as_they_are_done() -> None:
    told: list[Progress] = []
    seen = []
    for item in tracked("abc", told.append, "spelling"):
        assert len(told) == len(seen)
        seen.append(item)
    assert seen == ["a", "b", "c"]
    assert told == [Step(1, 3, "spelling"), Step(2, 3, "spelling"), Step(3, 3, "spelling")]


def test_a_part_adds_its_notes_and_leaves_the_count_of_the_whole() -> None:
    told: list[Progress] = []
    part = part_of(Step(3, 8, "row 4"), told.append)
    assert told == [Step(3, 8, "row 4")]
    part(Step(1, 99, "solving"))
    assert told[1:] == [Step(3, 8, "row 4: solving")]


def test_a_sweep_fulfils_the_protocol() -> None:
    progress: Progress = SweepProgress(40, 10, 2)
    assert (progress.done, progress.total, progress.note) == (10, 40, "2 without a model")
    assert SweepProgress(40, 10, 0).note == ""


def test_whoever_shows_progress_takes_any_value_that_has_the_three_fields(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, standard error is then a terminal
    with progress_bar("Working", is_shown=True) as on_progress:
        for progress in (Step(1), Step(2, 4, "reading"), Rounds(5, 0.5)):
            on_progress(progress)
    shown = capsys.readouterr()
    assert shown.out == "" and "Working: searching" in shown.err


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("Working") as on_progress:
        on_progress(Step(1, 2))
    assert capsys.readouterr() == ("", "")
    quiet: OnProgress = silent
    assert on_progress is quiet
