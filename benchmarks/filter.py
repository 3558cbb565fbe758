"""``sobolev filter`` on one core: ``python -m benchmarks.filter [--formulas 20000] [--store]``.

E2ESR-like formulas of our own corpus as lines of text, read, judged and written. What counts is the processor time of
the whole call; the library's own path (parser, terms, batch kernel) runs beside it on a part of the lines.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import islice
from pathlib import Path

from benchmarks.measure import Measure, at_least, plain, seconds
from benchmarks.run import ROOT, machine
from sobolev_novelty.engines.transformer.corpus import Corpus, CorpusSettings
from sobolev_novelty.lab.pretraining.corpus_filter import FormulaJudge, Inputs, filter_formulas

RESULT = ROOT / "results" / "benchmarks" / "filter.json"


def lines(n: int, seed: int = 3) -> list[str]:
    """Formulas of E2ESR's law."""
    source = Corpus(CorpusSettings.of_law("e2esr", seed=seed))
    return [str(candidate.expression) for candidate in islice(source.accepted(), n)]


def measures(n: int, repeats: int) -> list[Measure]:
    formulas = lines(n)
    with tempfile.TemporaryDirectory() as folder:
        whole, part, kept = (Path(folder) / name for name in ("all.txt", "some.txt", "kept.txt"))
        whole.write_text("\n".join(formulas) + "\n")
        n_part = max(1, n // 10)
        part.write_text("\n".join(formulas[:n_part]) + "\n")

        def rates(source: Path, count: int, inputs: str, *, with_reasons: bool = False) -> list[float]:
            judge = FormulaJudge(Inputs.of(inputs))
            reasons = Path(folder) / "reasons.jsonl" if with_reasons else None
            filter_formulas(source, kept, judge, reasons=reasons)
            return [
                count / seconds(lambda: filter_formulas(source, kept, judge, reasons=reasons)) for _ in range(repeats)
            ]

        return [
            at_least(
                "sobolev filter, E2ESR-like lines, normal inputs", rates(whole, n, "normal"), 4000, 10000, unit="/s"
            ),
            plain("the same on U[1, 5]", rates(whole, n, "uniform:1,5"), unit="/s"),
            plain("the same with --reasons", rates(part, n_part, "normal", with_reasons=True), unit="/s"),
        ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formulas", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--store", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    options = parser.parse_args()
    found = measures(options.formulas, options.repeats)
    for measure in found:
        print(
            f"{measure.value:10.0f} {measure.unit:3s} (must {measure.must}, aim {measure.aim}; "
            f"{measure.low:.0f} … {measure.high:.0f})  {measure.name}"
        )
    if options.store:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        content = {"measures": [measure.as_dict() for measure in found], "machine": machine()}
        RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
