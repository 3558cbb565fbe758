"""Kinds of feedback to the proposer of terms, at equal calls and tokens: what experiments/igsr_feedback.toml states.

Usage: python -m benchmarks.igsr_feedback grammar|MODEL [--llm URL] [--suite blackbox|lsr_synth] [--names given]
       python -m benchmarks.igsr_feedback MODEL --table

``grammar`` is the control, which reads no words: its arms differ by the token limit alone. Any other name is a model
behind ``--llm`` (benchmarks/local_llm.py serves one on this machine). Results go to a store of ``sobolev bench``,
``results/igsr_MODEL_SUITE.sqlite``; a killed run goes on where it was. Calls are kept in ``results/igsr_MODEL.jsonl``:
a question that two arms have in common is asked once, and counted in both.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
import traceback
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from sobolev_novelty import IGSR, Budget, ChatProposer, GrammarSampler, Limits, SymbolicRegressor, Transcript
from sobolev_novelty.engines.igsr.talk.protocol import Proposer
from sobolev_novelty.lab.bench.judging.judge import assess_fit, assess_novelty
from sobolev_novelty.lab.bench.problems.suites import TaskData, task_data
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.bench.showing.tables import differences, task_scores
from sobolev_novelty.lab.evidence.origin import circumstances

ROOT = Path(__file__).resolve().parents[1]
PROTOCOL = ROOT / "experiments" / "igsr_feedback.toml"


def label(feedback: str, names: str) -> str:
    return feedback if names == "given" else f"{feedback}, {names}"


def fitted(part: TaskData, proposer: Proposer, feedback: str, names: str, stated: dict[str, Any]) -> SymbolicRegressor:
    """One arm on one task."""
    engine = IGSR(
        proposer,
        influence="influence" in feedback,
        limits=Limits(calls=stated["calls"], tokens=stated["tokens"]),
        names=names,  # type: ignore[arg-type]
        n_terms=stated["n_terms"],
    )
    model = SymbolicRegressor(
        engine,
        novelty="novelty" in feedback,
        budget=Budget(max_evaluations=stated["max_evaluations"], seconds=stated["seconds"]),
        random_state=stated["seed"],
    )
    return model.fit(pd.DataFrame(part.X_train, columns=list(part.variables)), pd.Series(part.y_train, name="target"))


def row(part: TaskData, proposer: Proposer, feedback: str, names: str, stated: dict[str, Any]) -> dict[str, Any]:
    """What is stored of it; a failure too."""
    begin = time.perf_counter()
    try:
        model = fitted(part, proposer, feedback, names, stated)
        expression = model.expression_.rename({name: f"x{k}" for k, name in enumerate(part.variables)})
        found = {
            "status": "done", "expression": str(expression), "complexity": expression.complexity,
            "evaluations": model.n_evaluations_, "sn_calls": model.n_novelty_calls_,
            "extra": json.dumps({"stop_reason": model.stop_reason_, **model.counts_}, sort_keys=True),
        }  # fmt: skip
        found |= assess_fit(expression, part) | assess_novelty(expression, part)
    except Exception:
        found = {"status": "failed", "traceback": traceback.format_exc()[-4000:]}
    return {**found, "wall_time": time.perf_counter() - begin, **circumstances()}


def run(model: str, url: str | None, suites: list[str], names: list[str], stated: dict[str, Any]) -> None:
    proposer: Proposer = GrammarSampler(concurrency=1)
    if url is not None:
        chat = ChatProposer(
            url, model, temperature=stated["temperature"], n_terms=stated["n_terms"],
            max_answer_tokens=stated["max_answer_tokens"], timeout=300.0,
        )  # fmt: skip
        proposer = Transcript(ROOT / "results" / f"igsr_{model}.jsonl", chat)
    for suite in suites:
        store = Store(ROOT / "results" / f"igsr_{model}_{suite}.sqlite")
        kept = {name: value for name, value in stated.items() if name not in ("tasks", "feedback", "names")}
        store.check_settings({"suite": suite, "model": model, **kept})
        for task in stated["tasks"][suite]:
            part = None
            # All kinds of feedback on a task before the next one: what is unfinished is still paired.
            for hidden, feedback in product(names, stated["feedback"]):
                job = Job(task, label(feedback, hidden), stated["seed"])
                if not store.claim(job):
                    continue
                part = part or task_data(task, stated["seed"], max_train_rows=stated["max_train_rows"], suite=suite)
                found = row(part, proposer, feedback, hidden, stated)
                store.finish(job, found)
                print(task, job.method, found["status"], found.get("r2_test"), found.get("extra", ""), flush=True)


def table(model: str, suites: list[str], stated: dict[str, Any]) -> str:
    """Means of each arm and its difference from the one without feedback, as Markdown."""
    lines = []
    for suite in suites:
        path = ROOT / "results" / f"igsr_{model}_{suite}.sqlite"
        if not path.is_file():
            continue
        frame = Store(path, read_only=True).frame()
        scores = task_scores(frame)
        n_tasks = frame["task"].nunique()
        lines += [
            f"**{model}, {suite}, {n_tasks} tasks**", "",
            "| feedback | R² | complexity | mean novelty | Δ R² | Δ complexity | Δ novelty |",
            "| --- | ---: | ---: | ---: | --- | --- | --- |",
        ]  # fmt: skip
        order = [label(*arm[::-1]) for arm in product(stated["names"], stated["feedback"])]
        for method in (name for name in order if (scores["method"] == name).any()):
            own = scores[scores["method"] == method]
            base = "none, anonymous" if "anonymous" in method else "none"
            cells = [f"{own['r2'].mean():.4f}", f"{own['complexity'].mean():.2f}", f"{own['novelty'].mean():.4f}"]
            if method != base and (scores["method"] == base).any():
                found = differences(scores, base, method)
                cells += [
                    f"{100 * d.value:+.1f} % [{100 * d.lower:+.1f}, {100 * d.upper:+.1f}], {d.n_differ} differ"
                    + (", **clear**" if d.is_clear else "")
                    for d in found.values()
                ]
            else:
                cells += ["", "", ""]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--llm", help="endpoint; left out for the grammar control")
    parser.add_argument("--suite", choices=("blackbox", "lsr_synth"))
    parser.add_argument("--names", choices=("given", "anonymous"))
    parser.add_argument("--table", action="store_true", help="print what is stored, run nothing")
    options = parser.parse_args()
    stated = tomllib.loads(PROTOCOL.read_text(encoding="utf-8"))
    suites = [options.suite] if options.suite else list(stated["tasks"])
    if options.table:
        print(table(options.model, suites, stated))
        return
    if (options.model == "grammar") == (options.llm is not None):
        parser.error("give --llm for a model, and none for the grammar control")
    run(options.model, options.llm, suites, [options.names] if options.names else stated["names"], stated)


if __name__ == "__main__":
    main()
