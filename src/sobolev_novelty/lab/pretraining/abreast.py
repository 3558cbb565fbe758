"""Train arms and seeds side by side on one device: ``python -m sobolev_novelty.lab.pretraining.abreast``.

A small network leaves part of a large GPU idle, and one process compiles once for all of them. All have made the same
number of steps at any time: what ends one ends all, and no arm has an engine, a machine or an hour of its own. On the
way each network writes formulas for tasks (:mod:`.formulas`).

The number of formulas is given, or follows from the seconds that are given and the speed of the first rounds.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from sobolev_novelty.engines.transformer.checkpoint import write_weights
from sobolev_novelty.engines.transformer.corpus import ordered_batches
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.pretraining.evaluate import INFERENCES
from sobolev_novelty.lab.pretraining.formulas import Bags, Record, write_records, written_for
from sobolev_novelty.lab.pretraining.train import LOG, Journal, TrainingError, thinning, validation_sets
from sobolev_novelty.lab.pretraining.trainer import Machine, Prepared, Trainer

#: Shares of a run after which networks write formulas; the cool-down begins at the last but one.
POINTS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1.0)
#: Draws of each inference at the end; on the way there is one of the paper's.
LAST_DRAWS = {"paper": 4, "ours": 2}
#: Rounds before the clock starts, and rounds that it times.
N_WARM, N_TIMED = 12, 48
#: Seconds kept for what the networks write, and the share of the rest that may be planned with.
RESERVE, MARGIN = 100.0, 0.96
#: Rounds between two looks at the losses.
LOG_ROUNDS = 50


@dataclass(slots=True)
class Lane:
    """One run: its network, its data, its stream, and what it left so far."""

    trainer: Trainer
    journal: Journal
    batches: Generator[Prepared, None, None]
    held_back: dict[str, Prepared]
    stream: torch.cuda.Stream | None
    losses: list[Tensor] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.journal.path.parent

    def step(self) -> None:
        """One update; on a GPU this only queues it."""
        prepared = next(self.batches)
        with torch.cuda.stream(self.stream):
            loss, _ = self.trainer.train_step(prepared)
        self.losses.append(loss)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call is to do."""

    out: Path  # folder with one folder for each run
    bags: Bags | None = None  # tasks that the networks write for; none without
    #: Wall time of the call, from which the number of formulas follows; not used where the settings are to count.
    seconds: float | None = None


def train_abreast(runs: Sequence[RunSettings], machine: Machine, plan: Plan) -> list[Lane]:
    """Train all runs to their end, round by round."""
    start = time.monotonic()
    lanes = _lanes(runs, machine, plan)
    try:
        done = 0
        if plan.seconds is not None:
            done = N_WARM + N_TIMED
            speed = _timed(lanes)
            left = plan.seconds - RESERVE - (time.monotonic() - start)
            _set_length(lanes, done + int(speed * left * MARGIN))
        for lane in lanes:
            trainer = lane.trainer
            lane.journal.write(
                "start", step=trainer.step, device=machine.device, torch=torch.__version__, threads=machine.n_threads,
                n_parameters=sum(p.numel() for p in trainer.model.parameters()), runs=len(lanes),
                schedule=dataclasses.asdict(trainer.schedule), settings=trainer.settings.to_dict(),
            )  # fmt: skip
        _rounds(lanes, plan, done)
    finally:
        for lane in lanes:
            lane.batches.close()
    return lanes


def _lanes(runs: Sequence[RunSettings], machine: Machine, plan: Plan) -> list[Lane]:
    lanes: list[Lane] = []
    keeps: dict[str, tuple[float, ...]] = {}
    for given in runs:
        settings, corpus, seed = given, given.corpus, given.training.seed
        if corpus.arm == "matched" and not corpus.keep:
            key = repr(dataclasses.replace(corpus, seed=0))
            if key not in keeps:
                keeps[key] = thinning(settings, machine.n_threads * len(runs))
            settings = dataclasses.replace(settings, corpus=dataclasses.replace(corpus, keep=keeps[key]))
        folder = plan.out / f"{corpus.arm}_{seed}"
        if folder.exists():
            raise ParameterError(f"'out': '{folder}' is there already. Delete it, or give another folder.")
        folder.mkdir(parents=True)
        trainer = Trainer(settings, machine)
        batches = ordered_batches(
            trainer.corpus, settings.training.batch, n_threads=machine.n_threads, prepare=machine.prepare
        )
        stream = torch.cuda.Stream() if machine.device == "cuda" else None
        lanes.append(Lane(trainer, Journal(folder / LOG), batches, validation_sets(trainer), stream))
    return lanes


def _timed(lanes: Sequence[Lane]) -> float:
    """Rounds per second, after the first ones."""
    for _ in range(N_WARM):
        _round(lanes)
    _settle(lanes)
    start = time.monotonic()
    for _ in range(N_TIMED):
        _round(lanes)
    _settle(lanes)
    return N_TIMED / (time.monotonic() - start)


def _set_length(lanes: Sequence[Lane], steps: int) -> None:
    """Let all runs end after so many steps, a multiple of 64: the points fall on whole steps."""
    steps = max(steps // 64, 2) * 64
    for lane in lanes:
        trainer = lane.trainer
        training = dataclasses.replace(trainer.settings.training, samples=steps * trainer.settings.training.batch)
        trainer.settings = dataclasses.replace(trainer.settings, training=training)
        cooldown = round(training.cooldown_share * steps)
        trainer.schedule = dataclasses.replace(
            trainer.schedule, cooldown_from=steps - cooldown, cooldown_steps=cooldown
        )


def _rounds(lanes: Sequence[Lane], plan: Plan, done: int) -> None:
    end = lanes[0].trainer.schedule.end
    points = {max(done + 1, round(share * end)) for share in POINTS}
    since, logged = time.monotonic(), done
    for number in range(done + 1, end + 1):
        _round(lanes)
        if number % LOG_ROUNDS == 0 or number in points:
            _log(lanes, (number - logged) / (time.monotonic() - since))
            if number in points:
                for lane in lanes:
                    _checkpoint(lane, plan, is_last=number == end)
            since, logged = time.monotonic(), number


def _round(lanes: Sequence[Lane]) -> None:
    for lane in lanes:
        lane.step()


def _settle(lanes: Sequence[Lane]) -> list[float]:
    """Mean losses since the last call, when all that was queued is done."""
    if lanes[0].stream is not None:
        torch.cuda.synchronize()
    means = [float(torch.stack(lane.losses).mean()) for lane in lanes]
    for lane in lanes:
        lane.losses.clear()
    return means


def _log(lanes: Sequence[Lane], rounds_per_second: float) -> None:
    for lane, loss in zip(lanes, _settle(lanes), strict=True):
        trainer = lane.trainer
        batch = trainer.settings.training.batch
        lane.journal.write(
            "train", step=trainer.step, samples=trainer.step * batch, loss=round(loss, 5),
            learning_rate=trainer.schedule.rate(trainer.step - 1),
            samples_per_second=round(rounds_per_second * batch),
        )  # fmt: skip
        if not loss < float("inf"):
            raise TrainingError(f"The loss of '{lane.folder.name}' is {loss} at step {trainer.step}.")


def _checkpoint(lane: Lane, plan: Plan, *, is_last: bool) -> None:
    """Validation, what the running mean writes for the tasks, and in the end its weights."""
    before = time.monotonic()
    trainer = lane.trainer
    found = {name: trainer.validate(prepared) for name, prepared in lane.held_back.items()}
    samples = trainer.step * trainer.settings.training.batch
    if plan.bags is not None:
        for name, n_draws in LAST_DRAWS.items() if is_last else [("paper", 1)]:
            lane.records += written_for(
                trainer.averaged, plan.bags, dataclasses.replace(INFERENCES[name], n_draws=n_draws), samples=samples,
                inference=name, seed=trainer.settings.training.seed,
            )  # fmt: skip
        for name in {record.inference for record in lane.records}:
            own = [record for record in lane.records if record.inference == name]
            write_records(lane.folder / f"{name}.jsonl.gz", trainer.settings.to_dict(), own)
    if is_last:
        write_weights(
            lane.folder / "weights", "weights", trainer.settings, trainer.averaged.state_dict(), trainer.progress,
            int8=True,
        )  # fmt: skip
    rounded = {name: {key: round(value, 4) for key, value in values.items()} for name, values in found.items()}
    lane.journal.write(
        "checkpoint", step=trainer.step, samples=samples, validation=rounded, funnel=trainer.progress["funnel"],
        took=round(time.monotonic() - before, 2),
    )  # fmt: skip
    if is_last:
        lane.journal.write("end", step=trainer.step, samples=samples, is_finished=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of ``python -m sobolev_novelty.lab.pretraining.abreast``."""
    parser = argparse.ArgumentParser(description="Train several arms and seeds side by side on one device.")
    parser.add_argument("settings", type=Path, nargs="+", help="TOML files, one for each arm")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of corpus and initial weights")
    parser.add_argument("--out", type=Path, required=True, help="folder; each run has ARM_SEED in it")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="changes, such as training.batch=64")
    parser.add_argument("--bags", type=Path, help="tasks to write for, from 'bench pretrained-bags'")
    parser.add_argument("--seconds", type=float, help="wall time; the number of formulas follows from it")
    parser.add_argument("--threads", type=int, default=1, help="data threads of each run")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", choices=("none", "default", "graph"))
    options = parser.parse_args(arguments)
    torch.set_float32_matmul_precision("high")
    runs = [
        RunSettings.from_toml(path, [*options.set, f"corpus.seed={seed}", f"training.seed={seed}"])
        for seed, path in product(options.seeds, options.settings)
    ]
    compile_mode = options.compile or ("graph" if options.device == "cuda" else "none")
    bags = None if options.bags is None else Bags.read(options.bags)
    train_abreast(
        runs, Machine(options.device, options.threads, compile_mode), Plan(options.out, bags, options.seconds)
    )


if __name__ == "__main__":
    main()
