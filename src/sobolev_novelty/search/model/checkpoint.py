"""Checkpoints: the front and the counters of a running search, in a file from which a killed run goes on."""

from __future__ import annotations

import math
import time
import warnings
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, shortened
from sobolev_novelty.search.loop.loop import Budget, Callback, SearchProgress, SearchResult
from sobolev_novelty.search.model.storage import read_json, write_json
from sobolev_novelty.search.problem.units import ToUser

FORMAT = "sobolev-novelty checkpoint"
#: Seconds between two writings.
INTERVAL = 5.0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A file, and what an earlier run left in it.

    ``n_evaluations``, ``n_novelty_calls``, ``seconds``: what the earlier run has spent.
    """

    path: Path
    data: int  # checksum of the training data: a file of other data is refused
    equations: tuple[str, ...] = ()  # the front of the earlier run; they are fitted first
    n_evaluations: int = 0
    n_novelty_calls: int = 0
    seconds: float = 0.0

    @classmethod
    def open(cls, path: Path, X: FloatArray, y: FloatArray) -> Checkpoint:
        """The checkpoint at this path; an empty one where there is no file."""
        data = zlib.crc32(np.ascontiguousarray(y).tobytes(), zlib.crc32(np.ascontiguousarray(X).tobytes()))
        if not path.is_file():
            return cls(path, data)
        content = read_json(path)
        if content.get("format") != FORMAT:
            raise DataError(f"'{path}' is not a checkpoint. Give another path.")
        if content.get("data") != data:
            raise DataError(f"The checkpoint '{path}' belongs to other data. Delete it or give another path.")
        try:
            equations = tuple(_checked(text, str) for text in _checked(content["equations"], list))
            counts = _checked(content["n_evaluations"], int), _checked(content["n_novelty_calls"], int)
            seconds = float(_checked(content["seconds"], (int, float)))
            if min(*counts, seconds) < 0 or max(counts) >= 2**63 or not math.isfinite(seconds):
                raise ValueError("counts and seconds must be from 0 on")
            return cls(path, data, equations, counts[0], counts[1], seconds)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            message = f"The checkpoint '{path}' is damaged: {shortened(error)}. Delete it or give another path."
            raise DataError(message) from error

    def remaining(self, budget: Budget, n_guesses: int) -> Budget:
        """What is left of a budget; enough at least to fit the equations found so far."""
        evaluations, seconds = budget.max_evaluations, budget.seconds
        if evaluations is not None:
            evaluations = max(evaluations - self.n_evaluations, n_guesses + 1)
        if seconds is not None:
            seconds = max(seconds - self.seconds, 1e-3)
        return replace(budget, max_evaluations=evaluations, seconds=seconds)

    def write(self, run: SearchProgress | SearchResult, written: ToUser) -> None:
        """Write the state of a run on top of what the earlier run spent; a search goes on where that fails."""
        content = {
            "format": FORMAT,
            "data": self.data,
            "equations": [str(written(c.expression)) for c in run.front],
            "n_evaluations": self.n_evaluations + run.n_evaluations,
            "n_novelty_calls": self.n_novelty_calls + run.n_novelty_calls,
            "seconds": self.seconds + run.seconds,
        }
        try:
            write_json(self.path, content)
        except OSError as error:
            reason = error.strerror or error
            # Python shows a warning once for each place: a full disk is not announced every five seconds.
            warnings.warn(
                f"The checkpoint '{self.path}' could not be written ({reason}); the search goes on.", stacklevel=2
            )

    def callback(self, written: ToUser) -> Callback:
        """Writes the file every few seconds."""
        last = [time.perf_counter()]

        def save(progress: SearchProgress) -> None:
            if time.perf_counter() - last[0] >= INTERVAL:
                last[0] = time.perf_counter()
                self.write(progress, written)

        return save


def _checked(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"got {shortened(value)}")
    return value
