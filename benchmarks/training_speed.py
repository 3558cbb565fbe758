"""Where a training step spends its time, in one call of two or three minutes on a GPU.

Usage: python -m benchmarks.training_speed experiments/pretrain_product.toml [--batches 512 1024] [--threads 4 12]

For each batch size: steps on one prepared batch, launched one by one and recorded as a CUDA graph; the kernels that
take most (first size); steps with the real data path. Figures are samples per second, printed as they are found.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import torch

from sobolev_novelty.engines.transformer.corpus import ordered_batches
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.lab.pretraining.trainer import Machine, Prepared, Trainer

BEGIN = time.monotonic()


def say(*words: object) -> None:
    print(f"{time.monotonic() - BEGIN:6.1f}", *words, flush=True)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rate(step: Callable[[Prepared], object], batches: Iterator[Prepared], size: int, seconds: float) -> float:
    """Samples per second."""
    for _ in range(5):
        step(next(batches))
    synchronize()
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        for _ in range(10):
            step(next(batches))
        n += 10
        synchronize()
    return n * size / (time.monotonic() - begin)


def profile(step: Callable[[Prepared], object], prepared: Prepared, n_rows: int) -> None:
    """The kernels that take most of ten steps."""
    from torch.profiler import ProfilerActivity

    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
    with torch.profiler.profile(activities=activities) as found:
        for _ in range(10):
            step(prepared)
        synchronize()
    on_cpu = torch.autograd.DeviceType.CPU
    rows = [row for row in found.key_averages() if row.device_type != on_cpu and row.self_device_time_total > 0]
    rows.sort(key=lambda row: -row.self_device_time_total)
    total = sum(row.self_device_time_total for row in rows)
    say(f"kernels {total / 1e4:.2f} ms a step, {sum(row.count for row in rows) / 10:.0f} launches")
    for row in rows[:n_rows]:
        print(f"  {row.self_device_time_total / 1e4:7.3f} ms {row.count / 10:6.1f} x {row.key[:100]}")


def measure(settings: RunSettings, device: str, threads: list[int], seconds: float, n_rows: int) -> None:
    """One batch size."""
    size = settings.training.batch
    mode = "graph" if device == "cuda" else "none"
    machine = Machine(device, 1, mode)
    trainer = Trainer(settings, machine)
    prepared = machine.prepare(trainer.corpus.batch(0, size))

    def launched(prepared: Prepared) -> None:
        trainer._update(*machine.load(prepared))

    launched(prepared)
    synchronize()
    say(f"batch {size}: compiled")
    fixed = itertools.repeat(prepared)
    say(f"batch {size}: {rate(launched, fixed, size, seconds):.0f}/s launched, one batch")
    if n_rows:
        profile(launched, prepared, n_rows)
    say(f"batch {size}: {rate(trainer.train_step, fixed, size, seconds):.0f}/s {mode}, one batch")
    for n in threads:
        for name, step in (("launched", launched), (mode, trainer.train_step)):
            made = ordered_batches(trainer.corpus, size, n_threads=n, prepare=machine.prepare)
            with closing(made):
                say(f"batch {size}: {rate(step, made, size, seconds):.0f}/s {name}, {n} data threads")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", type=Path)
    parser.add_argument("--batches", type=int, nargs="*", default=[512, 1024])
    parser.add_argument("--threads", type=int, nargs="*", default=[4, 12])
    parser.add_argument("--seconds", type=float, default=2.5, help="of each measurement")
    parser.add_argument("--rows", type=int, default=45, help="kernels shown")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    torch._dynamo.config.automatic_dynamic_shapes = False
    for k, size in enumerate(options.batches):
        settings = RunSettings.from_toml(options.settings, [f"training.batch={size}"])
        measure(settings, options.device, options.threads, options.seconds, 0 if k else options.rows)


if __name__ == "__main__":
    main()
