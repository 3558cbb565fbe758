"""Pretrain a network: ``python -m sobolev_novelty.lab.pretraining.train experiments/pretrain_product.toml --out DIR``.

The learning rate warms up, stays, and cools down linearly, so that any checkpoint of the plateau can be finished. A run
that finds its state in ``--out`` goes on exactly where it stopped: batch ``k`` of the corpus is a function of ``k``.
Data are made by threads ahead of the network. Everything is logged as JSON lines.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sobolev_novelty.engines.transformer.checkpoint import load_state, read_weights, save_state, write_weights
from sobolev_novelty.engines.transformer.corpus import VERDICTS, Corpus, matching_keep, ordered_batches
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.lab.pretraining.trainer import Machine, Prepared, Trainer

LOG = "log.jsonl"
#: The validation corpora start here; no training seed does.
VALIDATION_SEED = 999_983
#: Seconds kept for the last checkpoint when the time is limited.
RESERVE = 6.0


class TrainingError(SobolevError, RuntimeError):
    """Training cannot go on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a call ends and what it leaves behind."""

    out: Path
    seconds: float = float("inf")
    cooldown_seconds: float | None = None
    finish_samples: int | None = None
    export: Path | None = None
    weights: Path | None = None
    checkpoint_seconds: float = 60.0
    log_steps: int = 100


class Journal:
    """JSON lines in a file, and the same on standard output."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the journal was opened."""
        return time.monotonic() - self.start

    def write(self, kind: str, **values: Any) -> None:
        """Add a line, and show it."""
        line = json.dumps({"kind": kind, "seconds": round(self.elapsed, 2), **values})
        with self.path.open("ab+") as file:
            # A run that was killed may have left half a line: this one begins on its own.
            if file.seek(0, 2) and (file.seek(-1, 2), file.read(1))[1] != b"\n":
                line = "\n" + line
            file.write(line.encode() + b"\n")
        sys.stdout.write(line.lstrip("\n") + "\n")
        sys.stdout.flush()


def thinning(settings: RunSettings, n_threads: int) -> tuple[float, ...]:
    """How the matched arm thins: pass rates of the filter, from a pilot with a seed of its own."""
    filtered = dataclasses.replace(settings.corpus, arm="filtered", seed=VALIDATION_SEED + 1)
    return matching_keep(*Corpus(filtered).pass_rates(settings.training.pilot, n_threads=n_threads))


def run(trainer: Trainer, limits: Limits) -> None:
    """Train until the schedule or the time ends; checkpoint, log, export."""
    journal = Journal(limits.out / LOG)
    training, machine = trainer.settings.training, trainer.machine
    if limits.finish_samples is not None and not trainer.is_cooling:
        trainer.cool_down(limits.finish_samples // training.batch)
    journal.write(
        "start", step=trainer.step, device=_device_name(machine.device), torch=torch.__version__,
        n_parameters=sum(p.numel() for p in trainer.model.parameters()), threads=machine.n_threads,
        schedule=dataclasses.asdict(trainer.schedule), settings=trainer.settings.to_dict(),
    )  # fmt: skip
    held_back = validation_sets(trainer)
    batches = ordered_batches(
        trainer.corpus, training.batch, first=trainer.step, n_threads=machine.n_threads, prepare=machine.prepare
    )
    with closing(batches):
        _steps(trainer, limits, journal, held_back, batches)
    is_finished = trainer.step >= trainer.schedule.end
    journal.write("end", step=trainer.step, samples=trainer.step * training.batch, is_finished=is_finished)
    for folder in (limits.export, limits.weights):
        if folder is not None and folder.is_dir():
            shutil.copyfile(journal.path, folder / LOG)


def _steps(
    trainer: Trainer, limits: Limits, journal: Journal, held_back: dict[str, Prepared], batches: Iterator[Prepared]
) -> None:
    """The loop, and a checkpoint at its end."""
    meter = _Meter(trainer, journal)
    last = time.monotonic()
    while trainer.step < trainer.schedule.end and journal.elapsed < limits.seconds - RESERVE:
        meter.add(*_timed_step(trainer, batches))
        if trainer.step % limits.log_steps == 0:
            meter.flush()
        must_cool = _is_time_to_cool(limits, trainer, journal.elapsed)
        leaves_plateau = trainer.step == trainer.schedule.cooldown_from
        if must_cool or leaves_plateau or time.monotonic() - last > limits.checkpoint_seconds:
            meter.flush()
            _checkpoint(trainer, limits, journal, held_back)
            last = time.monotonic()
        if must_cool:
            left = limits.seconds - RESERVE - journal.elapsed
            trainer.cool_down(int(meter.steps_per_second * left * 0.97))
            journal.write("cooldown", step=trainer.step, steps=trainer.schedule.cooldown_steps)
    meter.flush()
    _checkpoint(trainer, limits, journal, held_back)


def _timed_step(trainer: Trainer, batches: Iterator[Prepared]) -> tuple[Tensor, Tensor, float]:
    before = time.monotonic()
    prepared = next(batches)
    waited = time.monotonic() - before
    return (*trainer.train_step(prepared), waited)


def _is_time_to_cool(limits: Limits, trainer: Trainer, elapsed: float) -> bool:
    if limits.cooldown_seconds is None or trainer.is_cooling:
        return False
    return elapsed > limits.seconds - RESERVE - limits.cooldown_seconds


class _Meter:
    """Means over the steps since the last line; the device is asked only when a line is written."""

    def __init__(self, trainer: Trainer, journal: Journal) -> None:
        self.trainer, self.journal = trainer, journal
        self.losses: list[Tensor] = []
        self.norms: list[Tensor] = []
        self.waited = 0.0
        self.since = time.monotonic()
        self.steps_per_second = 0.0

    def add(self, loss: Tensor, norm: Tensor, waited: float) -> None:
        self.losses.append(loss)
        self.norms.append(norm)
        self.waited += waited

    def flush(self) -> None:
        if not self.losses:
            return
        loss, norm = float(torch.stack(self.losses).mean()), float(torch.stack(self.norms).mean())
        seconds = time.monotonic() - self.since
        rate = len(self.losses) / seconds
        if len(self.losses) >= 20 or not self.steps_per_second:  # a few steps say little about the speed
            self.steps_per_second = rate
        step, batch = self.trainer.step, self.trainer.settings.training.batch
        self.journal.write(
            "train", step=step, samples=step * batch, loss=loss, gradient_norm=round(norm, 4),
            learning_rate=self.trainer.schedule.rate(step - 1), samples_per_second=round(rate * batch),
            waiting=round(self.waited / seconds, 3),
        )  # fmt: skip
        if not np.isfinite(loss):
            raise TrainingError(
                f"The loss is {loss} at step {step}. Lower the learning rate; the last checkpoint is kept."
            )
        self.losses, self.norms, self.waited, self.since = [], [], 0.0, time.monotonic()


def _checkpoint(trainer: Trainer, limits: Limits, journal: Journal, held_back: dict[str, Prepared]) -> None:
    before = time.monotonic()
    save_state(limits.out, trainer.state())
    # An export is for going on: one from the middle of a cool-down could not go back to the plateau.
    if limits.export is not None and trainer.step <= trainer.schedule.cooldown_from:
        write_weights(limits.export, "export", trainer.settings, trainer.model.state_dict(), trainer.progress)
    found = {name: trainer.validate(prepared) for name, prepared in held_back.items()}
    _keep_the_best(trainer, limits, found)
    rounded = {name: {key: round(value, 4) for key, value in values.items()} for name, values in found.items()}
    funnel = {verdict: int(n) for verdict, n in zip(VERDICTS, trainer.counts, strict=True) if n}
    took = round(time.monotonic() - before, 2)
    journal.write("checkpoint", step=trainer.step, validation=rounded, funnel=funnel, took=took)
    if limits.export is not None and limits.export.is_dir():
        shutil.copyfile(journal.path, limits.export / LOG)


def _keep_the_best(trainer: Trainer, limits: Limits, found: dict[str, dict[str, float]]) -> None:
    """Weights for use are those of the checkpoint that predicts formulas of its own law best, mostly the last one."""
    if limits.weights is None:
        return
    nats = found["filtered" if trainer.settings.corpus.arm == "filtered" else "random"]["nats_per_token"]
    if nats <= trainer.best_nats:
        trainer.best_nats = nats
        progress = {**trainer.progress, "nats_per_token": nats}
        write_weights(limits.weights, "weights", trainer.settings, trainer.averaged.state_dict(), progress)


def validation_sets(trainer: Trainer) -> dict[str, Prepared]:
    """Formulas of another seed, random and filtered ones."""
    settings = trainer.settings
    sets = {}
    for arm in ("random", "filtered"):
        corpus = Corpus(
            dataclasses.replace(settings.corpus, arm=arm, seed=VALIDATION_SEED, keep=()), settings.model.with_floats
        )
        sets[arm] = trainer.machine.prepare(corpus.batch(0, settings.training.validation))
    return sets


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else f"{platform.processor() or platform.machine()} CPU"


def train(settings: RunSettings, machine: Machine, limits: Limits, *, start_from: Path | None = None) -> Trainer:
    """Train from the beginning, from an export, or on from the state in ``limits.out``."""
    limits.out.mkdir(parents=True, exist_ok=True)
    state = load_state(limits.out)
    stored = read_weights(start_from) if start_from is not None and state is None else None
    if settings.corpus.arm == "matched" and not settings.corpus.keep:
        before = stored.settings if state is None and stored else None
        if state is not None:
            before = RunSettings.from_dict(json.loads(state["settings"]))
        keep = before.corpus.keep if before else thinning(settings, machine.n_threads)
        settings = dataclasses.replace(settings, corpus=dataclasses.replace(settings.corpus, keep=keep))
    trainer = Trainer(settings, machine)
    if state is not None:
        trainer.restore(state)
    elif stored is not None:
        trainer.start_from(stored)
    run(trainer, limits)
    return trainer


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of ``python -m sobolev_novelty.lab.pretraining.train``."""
    parser = argparse.ArgumentParser(description="Pretrain the transformer.")
    parser.add_argument("settings", type=Path, help="a TOML file, such as experiments/pretrain_product.toml")
    parser.add_argument("--out", type=Path, required=True, help="folder of the state and the log; goes on from there")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="changes, such as training.batch=1024"
    )
    parser.add_argument("--seed", type=int, help="of the corpus and of the initial weights")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="wall time of this call, compilation included"
    )
    parser.add_argument("--cooldown-minutes", type=float, help="of these minutes, the last ones cool down and finish")
    parser.add_argument("--finish-samples", type=int, help="cool down from here, over so many samples")
    parser.add_argument("--start-from", type=Path, help="an export of another machine")
    parser.add_argument("--export", type=Path, help="folder for float32 weights to go on from elsewhere")
    parser.add_argument("--weights", type=Path, help="folder for bfloat16 weights for use, written at the end")
    parser.add_argument("--threads", type=int, default=max(1, min(6, (os.cpu_count() or 2) - 2)), help="data threads")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", choices=("none", "default", "reduce-overhead", "max-autotune", "graph"))
    options = parser.parse_args(arguments)
    changes = list(options.set)
    if options.seed is not None:
        changes += [f"corpus.seed={options.seed}", f"training.seed={options.seed}"]
    torch.set_float32_matmul_precision("high")
    compile_mode = options.compile or ("graph" if options.device == "cuda" else "none")
    cooling = None if options.cooldown_minutes is None else 60.0 * options.cooldown_minutes
    train(
        RunSettings.from_toml(options.settings, changes),
        Machine(options.device, options.threads, compile_mode),
        Limits(options.out, 60.0 * options.minutes, cooling, options.finish_samples, options.export, options.weights),
        start_from=options.start_from,
    )


if __name__ == "__main__":
    main()
