"""Write the list of skeletons that training must not see: python tools/hold_out.py DATA [--out FILE].

DATA is the folder with ``anchors/`` (docs/pretraining.md says what they are). Only hashes are stored. A law is held out
in the form in which it is given and in those that SymPy turns it into: expanded, factored, over one denominator, with
products under roots, in exponents and in logarithms taken apart or put together, all for positive inputs.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import sympy

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.transformer.corpus.decontaminate import HELD_OUT, skeleton_hashes
from sobolev_novelty.errors import ExpressionError, SobolevError
from sobolev_novelty.lab.bench.problems.tasks import formula_tasks, whitebox_tasks
from sobolev_novelty.language.convert import from_sympy, to_sympy
from sobolev_novelty.language.parsing import parse

ROOT = Path(__file__).resolve().parents[1]


class Law(NamedTuple):
    """A formula with the names of its inputs, without which an input called E would be read as a number."""

    source: str
    name: str
    text: str
    inputs: Sequence[str]


def laws(data: Path) -> Iterator[Law]:
    """Every formula that training must not see."""
    for task in whitebox_tasks():
        yield Law("white-box tasks", task.name, task.formula, task.variables)
    for task in formula_tasks(ROOT / "experiments" / "formulas" / "textbook.toml"):
        yield Law("textbook laws", task.name, task.formula, task.variables)
    anchors = data / "anchors"
    for row in json.loads((anchors / "fastsrb.json").read_text())["equations"]:
        inputs = [variable["id"] for variable in row["variables"]]
        yield Law("FastSRB", row["id"], row["formula"], inputs)
        for text in row["accept"] or ():
            yield Law("FastSRB, accepted forms", row["id"], text, inputs)
    for name, title in (("lsr_synth", "LSR-Synth"), ("lsr_transform", "LSR-Transform")):
        for row in json.loads((anchors / f"{name}.json").read_text())["problems"]:
            yield Law(title, row["name"], row["formula"], row["inputs"])
    with gzip.open(anchors / "odebench.json.gz", "rt") as file:
        for system in json.load(file):
            for text in system["substituted"][0]:
                yield Law("ODEBench", str(system["id"]), text, [f"x_{j}" for j in range(system["dim"])])
    with (anchors / "classic.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            yield Law("classic", row["name"], row["expression"], [f"x{j + 1}" for j in range(int(row["variables"]))])


#: Ways to write a law, each a function of a SymPy expression in positive symbols.
FORMS: dict[str, Callable[[Any], Any]] = {
    "expanded": sympy.expand,
    "logarithms apart": lambda e: sympy.expand_log(e, force=True),
    "logarithms apart, expanded": lambda e: sympy.expand(sympy.expand_log(e, force=True)),
    "logarithms together": lambda e: sympy.logcombine(e, force=True),
    "exponents apart": sympy.expand_power_exp,
    "roots apart": lambda e: sympy.expand_power_base(e, force=True),
    "powers together": lambda e: sympy.powsimp(e, force=True),
    "one denominator": sympy.together,
    "cancelled": sympy.cancel,
    "factored": sympy.factor,
    "factored inside": lambda e: sympy.factor(e, deep=True),
    "denominator expanded": lambda e: (
        sympy.expand(sympy.numer(sympy.together(e))) / sympy.expand(sympy.denom(sympy.together(e)))
    ),
}
SECONDS_PER_FORM = 5


def other_forms(expression: Expression) -> Iterator[Expression]:
    """The law in the forms that SymPy finds; one that it does not find in time is left out."""
    plain = expression.rename({name: f"x{j}" for j, name in enumerate(expression.variables)})
    positive = {sympy.Symbol(f"x{j}"): sympy.Symbol(f"x{j}", positive=True) for j in range(len(expression.variables))}
    start = to_sympy(plain)
    start = start.subs({symbol: positive.get(sympy.Symbol(symbol.name), symbol) for symbol in start.free_symbols})
    for form in FORMS.values():
        signal.alarm(SECONDS_PER_FORM)
        try:
            yield from_sympy(form(start))
        except (SobolevError, TimeoutError, sympy.PolynomialError, RecursionError, ZeroDivisionError):
            continue
        finally:
            signal.alarm(0)


def stop(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "sobolev_novelty" / "transformer" / HELD_OUT)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, stop)
    hashes: set[int] = set()
    tally: dict[str, list[int]] = {}
    for law in laws(arguments.data):
        counts = tally.setdefault(law.source, [0, 0])
        counts[0] += 1
        try:
            expression = parse(law.text, names=law.inputs)
            hashes |= skeleton_hashes(expression)
            for form in other_forms(expression):
                with suppress(ExpressionError):
                    hashes |= skeleton_hashes(form)
        except SobolevError as error:
            counts[1] += 1
            if arguments.verbose:
                print(f"{law.source} {law.name}: {error}\n    {law.text}")
    lines = ["# Hashes of skeletons held out of training; made by tools/hold_out.py."]
    lines += [f"# {source}: {n} formulas, {n - bad} hashed" for source, (n, bad) in tally.items()]
    lines += [f"{value:016x}" for value in sorted(hashes)]
    arguments.out.write_text("\n".join(lines) + "\n", encoding="ascii")
    print("\n".join(lines[: 1 + len(tally)]), f"\n{len(hashes)} skeletons -> {arguments.out}")


if __name__ == "__main__":
    main()
