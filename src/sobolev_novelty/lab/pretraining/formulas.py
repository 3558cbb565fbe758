"""What networks write for tasks, kept in files: every readout can be tried on the same formulas, without the networks.

A network reads *bags*, the rows of each task as it sees them. Both sides are files, so that the machine that trains
needs no tasks and the one that fits constants needs no network.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.output import whole_file, write_arrays
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.engines.transformer.corpus import N_POINTS
from sobolev_novelty.engines.transformer.decoding import sample as sampled
from sobolev_novelty.engines.transformer.model import Model
from sobolev_novelty.engines.transformer.tokenizer import END, MAX_INPUTS, decode
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.pretraining.evaluate import Decoding, Propose

FORMAT = 1
#: Sequences that a network writes at once; keys and values of so many take 9 GB.
LARGEST_BATCH = 8_512


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """Rows of tasks as networks read them."""

    names: tuple[str, ...]
    n_inputs: npt.NDArray[np.int64]  # (n_tasks,)
    X: npt.NDArray[np.float32]  # float32, shape (n_tasks, n_bags, 200, 10): standardized; unused columns are 0
    y: npt.NDArray[np.float32]  # float32, shape (n_tasks, n_bags, 200)

    @classmethod
    def of(cls, tables: Sequence[tuple[str, Sample, FloatArray]], n_bags: int, seed: int = 0) -> Bags:
        """Bags of 200 rows, or of all rows repeated; each task has random numbers of its own.

        ``tables``: sequence of (name, standardized inputs, target).
        """
        X = np.zeros((len(tables), n_bags, N_POINTS, MAX_INPUTS), dtype=np.float32)
        y = np.zeros(X.shape[:3], dtype=np.float32)
        for k, (_, inputs, target) in enumerate(tables):
            rng = np.random.default_rng([seed, k])
            for b in range(n_bags):
                n = len(target)
                rows = np.resize(np.arange(n) if n <= N_POINTS else rng.choice(n, N_POINTS, replace=False), N_POINTS)
                X[k, b, :, : inputs.n_features] = inputs.X[:, rows].T
                y[k, b] = target[rows]
        n_inputs = np.array([inputs.n_features for _, inputs, _ in tables], dtype=np.int64)
        return cls(tuple(name for name, _, _ in tables), n_inputs, X, y)

    @classmethod
    def read(cls, path: Path) -> Bags:
        """What :meth:`write` wrote."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                names = tuple(str(name) for name in stored["names"])
                return cls(names, stored["n_inputs"], stored["X"], stored["y"])
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise DataError(f"'{path}' holds no bags: {error!r}. Write them with 'bench pretrained-bags'.") from error

    def write(self, path: Path) -> None:
        """As a whole or not at all."""
        write_arrays(path, {"names": np.array(self.names), "n_inputs": self.n_inputs, "X": self.X, "y": self.y})


@dataclass(frozen=True, slots=True)
class Record:
    """What a network wrote for one task at one time of its training."""

    samples: int  # formulas it had seen
    inference: str  # which of ``INFERENCES``
    task: str
    #: Distinct formulas of each draw as token numbers, the greedy ones first, then those drawn most often.
    draws: tuple[tuple[str, ...], ...]

    @property
    def formulas(self) -> list[list[Expression]]:
        """The formulas of each draw."""
        return [[decode([int(token) for token in text.split()]) for text in own] for own in self.draws]

    @property
    def propose(self) -> Propose:
        """These formulas, whatever the table is."""

        def propose(*_: Any) -> list[list[Expression]]:
            return self.formulas

        return propose


@dataclass(frozen=True, slots=True)
class Formulas:
    """A file of records: one network along its training."""

    settings: dict[str, Any]
    records: tuple[Record, ...]

    @classmethod
    def read(cls, path: Path) -> Formulas:
        """What :func:`write_records` wrote."""
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                head, *lines = map(json.loads, file)
            if head["format"] != FORMAT:
                raise DataError(f"'{path}' is of another version: format {head['format']!r}.")
            records = (
                Record(line["samples"], line["inference"], line["task"], tuple(tuple(own) for own in line["draws"]))
                for line in lines
            )
            return cls(head["settings"], tuple(records))
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"'{path}' holds no formulas of a network: {error!r}. Fetch a copy.") from error


def write_records(path: Path, settings: dict[str, Any], records: Iterable[Record]) -> None:
    """A head with the settings of the run, and a line per record; the same bytes for the same content."""
    lines = [json.dumps({"format": FORMAT, "settings": settings})]
    for record in records:
        values = {name: getattr(record, name) for name in ("samples", "inference", "task", "draws")}
        lines.append(json.dumps(values))
    with whole_file(path) as file:
        file.write(gzip.compress(("\n".join(lines) + "\n").encode(), compresslevel=9, mtime=0))


def written_for(
    model: Model, bags: Bags, decoding: Decoding, *, samples: int, inference: str, seed: int = 0
) -> list[Record]:
    """What a network writes for every task, all tasks at once: for a GPU."""
    need = decoding.n_bags * (decoding.n_draws if decoding.own_bags else 1)
    if bags.X.shape[1] < need:
        raise ParameterError(f"'bags' must hold {need} bags for each task. Got {bags.X.shape[1]}.")
    device = next(model.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    per_bag = decoding.n_samples // decoding.n_bags * (1 if decoding.own_bags else decoding.n_draws)
    size = max(1, LARGEST_BATCH // (1 + per_bag))  # tables at once
    X = torch.from_numpy(bags.X[:, :need].reshape(-1, *bags.X.shape[2:]))
    y = torch.from_numpy(bags.y[:, :need].reshape(-1, bags.y.shape[2]))
    n_inputs = torch.from_numpy(np.repeat(bags.n_inputs, need))
    parts = []
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        tokens = sampled(
            model, X[rows].to(device), y[rows].to(device), n_inputs[rows].to(device), 1 + per_bag,
            temperature=decoding.temperature, generator=generator,
        )  # fmt: skip
        parts.append(tokens.cpu().numpy().astype(np.int16))
    tokens = np.concatenate(parts).reshape(len(bags.names), need, 1 + per_bag, -1)
    return [
        Record(samples, inference, name, _dealt(own, decoding)) for name, own in zip(bags.names, tokens, strict=True)
    ]


def _dealt(tokens: npt.NDArray[np.int16], decoding: Decoding) -> tuple[tuple[str, ...], ...]:
    """(n_bags, 1 + samples, L) -> the distinct formulas of each draw; independent samples are dealt in turn."""
    draws = []
    for d in range(decoding.n_draws):
        if decoding.own_bags:
            own = tokens[d * decoding.n_bags : (d + 1) * decoding.n_bags]
            drawn = own[:, 1:]
        else:
            own, drawn = tokens, tokens[:, 1 + d :: decoding.n_draws]
        greedy = [_text(row) for row in own[:, 0]]
        counts: dict[str, int] = {}
        for row in drawn.reshape(-1, drawn.shape[-1]):
            text = _text(row)
            counts[text] = counts.get(text, 0) + 1
        often = sorted(counts, key=lambda text: -counts[text])
        draws.append(tuple(dict.fromkeys([*greedy, *often])))
    return tuple(draws)


def _text(row: npt.NDArray[np.int16]) -> str:
    tokens = row.tolist()
    return " ".join(map(str, tokens[: tokens.index(END)] if END in tokens else tokens))
