"""Pretrain a network: ``python -m sobolev_novelty.transformer.train experiments/pretrain_product.toml --out DIR``.

The learning rate warms up, stays, and cools down linearly, so that any checkpoint of the plateau can be finished. A run that
finds its state in ``--out`` goes on exactly where it stopped: batch ``k`` of the corpus is a function of ``k``. Data are
made by threads ahead of the network. Everything is logged as JSON lines.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sobolev_novelty.errors import ParameterError, SobolevError
from sobolev_novelty.transformer.checkpoint import Stored, load_state, read_weights, save_state, write_weights
from sobolev_novelty.transformer.corpus import VERDICTS, Batch, Corpus, matching_keep, ordered_batches
from sobolev_novelty.transformer.model import Model
from sobolev_novelty.transformer.settings import RunSettings
from sobolev_novelty.transformer.tokenizer import N_SKELETON, PAD

LOG = "log.jsonl"
#: The learning rate ends at this share of the plateau.
FINAL_SHARE = 0.02
#: The validation corpora start here; no training seed does.
VALIDATION_SEED = 999_983
#: Seconds kept for the last checkpoint when the time is limited.
RESERVE = 6.0

Prepared = tuple[Tensor, Tensor, Tensor, "np.ndarray[Any, Any]"]


class TrainingError(SobolevError, RuntimeError):
    """Training cannot go on."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Warm-up, plateau, cool-down: the learning rate is a function of the step.

    Parameters
    ----------
    warmup_from : int
        Step at which the warm-up begins: 0, or the step of the export from which the run started.
    cooldown_from, cooldown_steps : int
        The run ends after the cool-down.
    """

    peak: float
    warmup_from: int
    warmup_steps: int
    cooldown_from: int
    cooldown_steps: int

    @property
    def end(self) -> int:
        return self.cooldown_from + self.cooldown_steps

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        warm = min(1.0, (step - self.warmup_from + 1) / max(self.warmup_steps, 1))
        left = (self.end - step) / max(self.cooldown_steps, 1)
        cool = 1.0 if step < self.cooldown_from else FINAL_SHARE + (1.0 - FINAL_SHARE) * max(0.0, left)
        return self.peak * warm * cool


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


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and how the steps run."""

    device: str
    n_threads: int
    compile_mode: str = "none"

    def prepare(self, batch: Batch) -> Prepared:
        """Tensors in memory from which the device copies by itself; runs in a data thread."""
        tensors = [torch.from_numpy(array) for array in (batch.X, batch.y, batch.tokens)]
        if self.device == "cuda":
            tensors = [tensor.pin_memory() for tensor in tensors]
        return tensors[0], tensors[1], tensors[2], batch.counts

    def load(self, prepared: Prepared) -> tuple[Tensor, Tensor, Tensor]:
        X, y, tokens = (tensor.to(self.device, non_blocking=True) for tensor in prepared[:3])
        return X, y, tokens.long()

    def precision(self) -> torch.autocast:
        """bfloat16 on a GPU; most CPUs emulate it, slower than float32."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda")

    def compiled(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        if self.compile_mode == "none":
            return function
        mode = None if self.compile_mode == "default" else self.compile_mode
        compiled: Callable[..., Tensor] = torch.compile(function, mode=mode)
        return compiled


class Trainer:
    """One run: the network, its optimizer, its running mean, and where it stands."""

    def __init__(self, settings: RunSettings, machine: Machine) -> None:
        training = settings.training
        self.settings, self.machine = settings, machine
        self.model = Model(settings.model, seed=training.seed).to(machine.device)
        self.averaged = copy.deepcopy(self.model).requires_grad_(False)
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        vectors = [p for p in self.model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": training.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=training.learning_rate,
            betas=(training.beta1, training.beta2),
            fused=machine.device == "cuda",
        )
        cooldown = round(training.cooldown_share * training.steps)
        self.schedule = Schedule(training.learning_rate, 0, training.warmup_steps, training.steps - cooldown, cooldown)
        self.step = 0
        self.counts = np.zeros(len(VERDICTS), dtype=np.int64)
        self.corpus = Corpus(settings.corpus, settings.model.with_floats)
        self._loss = machine.compiled(self.model.loss)
        self._parameters = list(self.model.parameters())
        self._averages = list(self.averaged.parameters())

    @property
    def progress(self) -> dict[str, Any]:
        """Where the run stands, for a config.json."""
        return {
            "step": self.step,
            "samples": self.step * self.settings.training.batch,
            "schedule": dataclasses.asdict(self.schedule),
            "funnel": dict(zip(VERDICTS, self.counts.tolist(), strict=True)),
        }

    def train_step(self, prepared: Prepared) -> tuple[Tensor, Tensor]:
        """One update; returns loss and gradient norm, still on the device."""
        training = self.settings.training
        rate = self.schedule.rate(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self.machine.compile_mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        X, y, tokens = self.machine.load(prepared)
        with self.machine.precision():
            loss = self._loss(X, y, tokens)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, training.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        # Early means forget fast: the first weights of a run are no average of anything.
        k = self.step - self.schedule.warmup_from
        decay = min(training.ema_decay, (1.0 + k) / (10.0 + k))
        with torch.no_grad():
            torch._foreach_lerp_(self._averages, self._parameters, 1.0 - decay)
        self.counts += prepared[3]
        self.step += 1
        return loss.detach().clone(), norm.detach()

    def cool_down(self, steps: int) -> None:
        """Begin the cool-down now; the run ends after ``steps`` more."""
        self.schedule = dataclasses.replace(self.schedule, cooldown_from=self.step, cooldown_steps=max(1, steps))

    @property
    def is_cooling(self) -> bool:
        return self.step >= self.schedule.cooldown_from

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "schedule": dataclasses.asdict(self.schedule),
            "counts": torch.from_numpy(self.counts.copy()),
            "settings": json.dumps(self.settings.to_dict()),
            "random": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where the state was taken."""
        if json.loads(state["settings"]) != json.loads(json.dumps(self.settings.to_dict())):
            raise ParameterError("The state in '--out' belongs to other settings. Give another folder.")
        self.model.load_state_dict(state["model"])
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.schedule = int(state["step"]), Schedule(**state["schedule"])
        self.counts = state["counts"].numpy().copy()
        torch.set_rng_state(state["random"])

    def start_from(self, stored: Stored) -> None:
        """Take over weights, step and funnel of an export; moments and running mean begin anew, with a warm-up."""
        if stored.kind != "export":
            raise ParameterError("'--start-from' names weights for use. Give a folder that '--export' wrote.")
        if stored.settings.model != self.settings.model or stored.settings.corpus != self.settings.corpus:
            raise ParameterError("The export in '--start-from' has another network or corpus than these settings.")
        self.model.load_state_dict(stored.tensors)
        self.averaged.load_state_dict(stored.tensors)
        self.step = int(stored.progress["step"])
        funnel = stored.progress["funnel"]
        self.counts = np.array([funnel.get(verdict, 0) for verdict in VERDICTS], dtype=np.int64)
        self.schedule = dataclasses.replace(self.schedule, warmup_from=self.step)

    @torch.no_grad()
    def validate(self, batches: dict[str, Prepared]) -> dict[str, dict[str, float]]:
        """The running mean on formulas it was not trained on: nats per token, right tokens, right formulas."""
        found = {}
        for name, prepared in batches.items():
            X, y, tokens = self.machine.load(prepared)
            nats, right, structure, n_structure, whole = 0.0, 0, 0, 0, 0
            for part in range(0, len(X), 512):
                rows = slice(part, part + 512)
                with self.machine.precision():
                    logits = self.averaged(X[rows], y[rows], tokens[rows, :-1]).float()
                goal = tokens[rows, 1:]
                counts = goal != PAD
                nats += float(
                    torch.nn.functional.cross_entropy(
                        logits.flatten(0, 1), goal.flatten(), ignore_index=PAD, reduction="sum"
                    )
                )
                hit = (logits.argmax(-1) == goal) | ~counts
                is_structure = counts & (goal < N_SKELETON)
                right += int((hit & counts).sum())
                structure += int((hit & is_structure).sum())
                n_structure += int(is_structure.sum())
                whole += int(hit.all(dim=1).sum())
            n_tokens = int((tokens[:, 1:] != PAD).sum())
            found[name] = {
                "nats_per_token": nats / n_tokens,
                "tokens_right": right / n_tokens,
                "structure_right": structure / n_structure,
                "formulas_right": whole / len(X),
            }
        return found


class Journal:
    """JSON lines in a file, and the same on standard output."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = time.monotonic()

    def write(self, kind: str, **values: Any) -> None:
        line = json.dumps({"kind": kind, "seconds": round(time.monotonic() - self.start, 2), **values})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        sys.stdout.write(line + "\n")
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
    held_back = _validation_sets(trainer)
    batches: Iterator[Prepared] = ordered_batches(
        trainer.corpus, training.batch, first=trainer.step, n_threads=machine.n_threads, prepare=machine.prepare
    )
    meter = _Meter(trainer, journal)
    last = time.monotonic()
    try:
        while trainer.step < trainer.schedule.end:
            meter.add(*_timed_step(trainer, batches))
            if trainer.step % limits.log_steps == 0:
                meter.flush()
            now = time.monotonic()
            elapsed = now - journal.start
            if _is_time_to_cool(limits, trainer, elapsed):
                meter.flush()
                _checkpoint(trainer, limits, journal, held_back)
                left = limits.seconds - RESERVE - (time.monotonic() - journal.start)
                trainer.cool_down(int(meter.steps_per_second * left * 0.97))
                journal.write("cooldown", step=trainer.step, steps=trainer.schedule.cooldown_steps)
                last = time.monotonic()
            if elapsed > limits.seconds - RESERVE:
                break
            if now - last > limits.checkpoint_seconds:
                meter.flush()
                _checkpoint(trainer, limits, journal, held_back)
                last = time.monotonic()
    finally:
        batches.close()  # type: ignore[attr-defined]
    meter.flush()
    _checkpoint(trainer, limits, journal, held_back)
    is_finished = trainer.step >= trainer.schedule.end
    if limits.weights is not None:
        write_weights(limits.weights, "weights", trainer.settings, trainer.averaged.state_dict(), trainer.progress)
    journal.write("end", step=trainer.step, samples=trainer.step * training.batch, is_finished=is_finished)
    for folder in (limits.export, limits.weights):
        if folder is not None:
            shutil.copyfile(journal.path, folder / LOG)


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
    found = trainer.validate(held_back)
    rounded = {name: {key: round(value, 4) for key, value in values.items()} for name, values in found.items()}
    funnel = {verdict: int(n) for verdict, n in zip(VERDICTS, trainer.counts, strict=True) if n}
    took = round(time.monotonic() - before, 2)
    journal.write("checkpoint", step=trainer.step, validation=rounded, funnel=funnel, took=took)
    if limits.export is not None and limits.export.is_dir():
        shutil.copyfile(journal.path, limits.export / LOG)


def _validation_sets(trainer: Trainer) -> dict[str, Prepared]:
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
    """Entry point of ``python -m sobolev_novelty.transformer.train``."""
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
    parser.add_argument("--threads", type=int, default=max(1, min(12, (os.cpu_count() or 2) - 2)), help="data threads")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", choices=("none", "default", "reduce-overhead", "max-autotune"))
    options = parser.parse_args(arguments)
    changes = list(options.set)
    if options.seed is not None:
        changes += [f"corpus.seed={options.seed}", f"training.seed={options.seed}"]
    torch.set_float32_matmul_precision("high")
    compile_mode = options.compile or ("default" if options.device == "cuda" else "none")
    cooling = None if options.cooldown_minutes is None else 60.0 * options.cooldown_minutes
    train(
        RunSettings.from_toml(options.settings, changes),
        Machine(options.device, options.threads, compile_mode),
        Limits(options.out, 60.0 * options.minutes, cooling, options.finish_samples, options.export, options.weights),
        start_from=options.start_from,
    )


if __name__ == "__main__":
    main()
