"""Write the list of skeletons that training must not see: python tools/hold_out.py DATA [--out FILE].

DATA is the folder with ``anchors/`` (docs/pretraining.md says what they are). Only hashes are stored.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from sobolev_novelty.bench.tasks import formula_tasks, whitebox_tasks
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.parsing import parse
from sobolev_novelty.transformer.decontaminate import HELD_OUT, skeleton_hashes

ROOT = Path(__file__).resolve().parents[1]


def formulas(data: Path) -> Iterator[tuple[str, str, str]]:
    """Every law as (source, name, text)."""
    for task in whitebox_tasks():
        yield "white-box tasks", task.name, task.formula
    for task in formula_tasks(ROOT / "experiments" / "formulas" / "textbook.toml"):
        yield "textbook laws", task.name, task.formula
    anchors = data / "anchors"
    for row in json.loads((anchors / "fastsrb.json").read_text())["equations"]:
        yield "FastSRB", row["id"], row["formula"]
        for text in row["accept"] or ():
            yield "FastSRB, accepted forms", row["id"], text
    for name, title in (("lsr_synth", "LSR-Synth"), ("lsr_transform", "LSR-Transform")):
        for row in json.loads((anchors / f"{name}.json").read_text())["problems"]:
            yield title, row["name"], row["formula"]
    with gzip.open(anchors / "odebench.json.gz", "rt") as file:
        for system in json.load(file):
            for text in system["substituted"][0]:
                yield "ODEBench", str(system["id"]), text
    with (anchors / "classic.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            yield "classic", row["name"], row["expression"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "sobolev_novelty" / "transformer" / HELD_OUT)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    hashes: set[int] = set()
    tally: dict[str, list[int]] = {}
    for source, name, text in formulas(arguments.data):
        counts = tally.setdefault(source, [0, 0])
        counts[0] += 1
        try:
            hashes |= skeleton_hashes(parse(text))
        except SobolevError as error:
            counts[1] += 1
            if arguments.verbose:
                print(f"{source} {name}: {error}\n    {text}")
    lines = ["# Hashes of skeletons held out of training; made by tools/hold_out.py."]
    lines += [f"# {source}: {n} formulas, {n - bad} hashed" for source, (n, bad) in tally.items()]
    lines += [f"{value:016x}" for value in sorted(hashes)]
    arguments.out.write_text("\n".join(lines) + "\n", encoding="ascii")
    print("\n".join(lines[: 1 + len(tally)]), f"\n{len(hashes)} skeletons -> {arguments.out}")


if __name__ == "__main__":
    main()
