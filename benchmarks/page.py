"""docs/speed.md and its figure, from the stored numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TITLES = {
    "rows": ("rows", "million node·rows per second"),
    "terms": ("terms of a candidate", "µs per candidate"),
    "features": ("features", "µs per candidate"),
    "population": ("candidates in one call", "µs per candidate"),
    "threads": ("threads", "speed-up"),
}


#: Of a whole search on a noisy law against the commit before its pursuit was compiled.
MUST, AIM = 3.0, 6.0
RESULTS = Path(__file__).resolve().parents[1] / "results" / "benchmarks"


def write_text(folder: Path) -> None:
    """The page from what is stored: the kernels' numbers and, where they were measured, those of whole searches."""
    page = text(json.loads((RESULTS / "kernels.json").read_text()))
    for name, part in (("search_speed.json", _searches), ("islands.json", _islands)):
        stored = RESULTS / name
        page += part(json.loads(stored.read_text())) if stored.exists() else ""
    (folder / "speed.md").write_text(page)


def write(stored: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder)
    if "scaling" in stored:
        figure(stored["scaling"]["curves"], folder / "speed.svg")


def text(stored: dict[str, Any]) -> str:
    machine = stored["machine"]
    lines = [
        "# Speed of the kernels",
        "",
        "Made by `python -m benchmarks.run` (`make bench`) from `results/benchmarks/kernels.json`; no number is",
        "copied by hand. One core unless said, both sides in turn in one process, processor time (wall time where",
        "threads are counted), medians; in brackets the quartiles over the repeats of the run. The lines about threads",
        "mean something only where the load average is below the number of cores.",
        "",
        f"{machine['processor']}, {machine['system']}; kernel: {machine['kernel']}; commit {machine['commit']}, "
        f"{machine['date']}; "
        f"load average {', '.join(map(str, machine['load']))}; "
        + ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        + ".",
        "",
        "| measure | must | aim | measured | met | remarks |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for part in ("evaluation", "novelty", "fits"):
        for m in stored.get(part, {}).get("measures", []):
            value = f"{_number(m['value'])} {m['unit']} ({_number(m['low'])} – {_number(m['high'])})"
            met = "yes" if m["is_met"] else "**no**"
            lines.append(f"| {m['name']} | {m['must']} | {m['aim']} | {value} | {met} | {m['note']} |")
    speeds = stored.get("evaluation", {}).get("numbers", {})
    if speeds:
        lines += [
            "",
            "## Evaluators",
            "",
            "Random trees of 10 to 20 nodes, 4 inputs, 1000 rows, float64 unless said.",
            "",
        ]
        lines += ["| evaluator | million node·rows per second |", "| --- | --- |"]
        lines += [f"| {name} | {_number(value)} |" for name, value in sorted(speeds.items(), key=lambda kv: -kv[1])]
    if "scaling" in stored:
        lines += [
            "",
            "## Scaling",
            "",
            "![Scaling in rows, terms, features, population and threads](speed.svg)",
            "",
        ]
        for name, curve in stored["scaling"]["curves"].items():
            series = [key for key in curve[0] if key != "x"]
            lines += [f"| {TITLES[name][0]} | " + " | ".join(series) + " |", "| --- |" + " --- |" * len(series)]
            lines += [f"| {point['x']:,} | " + " | ".join(_number(point[s]) for s in series) + " |" for point in curve]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _searches(stored: dict[str, Any]) -> str:
    machine = stored["machine"]
    lines = [
        "",
        "## Whole searches",
        "",
        f"`SymbolicRegressor().fit` with a budget in evaluations, one core, processor time, commit {stored['before']}",
        "in turn with the one named; made by `python -m benchmarks.search_speed` from",
        "`results/benchmarks/search_speed.json`. Where equation and front are the same, only the speed changed. Load",
        f"average {', '.join(map(str, machine['load']))}.",
        "",
        "Most of a genetic search on a noisy law was structural pursuit in NumPy. Its inner products, gains and",
        "its choice of columns are one pass of the compiled kernel over panels of columns in single precision, handed",
        "out to threads. A child multiplies its new direction only, the rest follows from its ancestors; exchanges and",
        "several targets ask together. Columns of a dictionary are joined, scaled and laid out panel by panel without",
        "being written down, and computed again when they are chosen.",
        "Hypotheses that differ in the target only share one interpolant. Canonical forms work on bare tokens, and",
        "Python's collector of cyclic garbage looks at a search less often. What is left is a third in the kernel",
        "(fits, pursuit) and otherwise spread over many small parts in Python, which two islands share and two threads",
        "cannot.",
        "",
        "With the same turns of structure and evolution the noisy law was 2.52 x as fast (commit 6232e9f). The rest",
        "came with a rule: after the first hundred batches structural forms, which cost most, have every third",
        "generation.",
        "",
        "| search | evaluations | commit | evaluations per second before | now | ratio | same equation and front |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in stored["cases"].items():
        same = f"{sum(row['same equation and front'])} of {len(row['same equation and front'])} seeds"
        rates = f"{_number(row['rate before'])} | {_number(row['rate'])} | {row['ratio']:.2f} x"
        lines.append(f"| {name} | {row['evaluations']:,} | {row['commit']} | {rates} | {same} |")
    asked = stored["cases"].get("noisy law, genetic")
    if asked:
        verdict = "met" if asked["ratio"] >= MUST else "not met"
        lines += ["", f"Asked of the noisy law: {MUST:g} x on one core, aim {AIM:g} x; {verdict}."]
    if "threads" in stored:
        found = stored["threads"]
        lines += [
            "",
            f"`parallel=Islands(2)` against one core, noisy law: {found['ratio']:.2f} x in wall time at a load",
            f"average of {found['load']:.1f}, {found['processor']:.2f} x in the processor time of the busier process:",
            "islands meet, and on a machine with other work the later one is waited for.",
        ]
    return "\n".join(lines) + "\n"


def _islands(stored: dict[str, Any]) -> str:
    slow = [row for row in stored["runs"] if row["one"] > stored["slow"]]
    lost = sum(row["two"] > row["one"] for row in slow)
    tasks = ", ".join(f"{task} {ratio:.2f} x" for task, ratio in stored["tasks"].items())
    return "\n".join([
        "",
        "Time to the exact law, tasks without noise, wall seconds on an idle machine",
        "(`python -m benchmarks.islands`): two islands on two cores against one, over the tasks that take one core",
        f"more than {stored['slow']:g} s, ratio of medians over seeds: median {stored['median']:.2f} x (asked: 1.6 x):",
        f"{tasks}.",
        f"Of {len(slow)} single runs that took one core longer, two took longer still in {lost}: which island meets a",
        f"law first is partly chance. A run without the law counts with the limit of {stored['limit']:g} s. Looked at",
        f"were the laws that {' and '.join(stored['stores'])} had found after {stored['slow']:g} s.",
        f"Load average {stored['load'][0]:.1f}.",
    ]) + "\n"  # fmt: skip


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def figure(curves: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "sobolev"
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.2), layout="constrained")
    for axis, (name, curve) in zip(axes, curves.items(), strict=True):
        for series in (key for key in curve[0] if key != "x"):
            axis.plot([p["x"] for p in curve], [p[series] for p in curve], marker="o", label=series)
        if name != "threads":
            axis.set_xscale("log")
            axis.set_yscale("log")
        axis.set_xlabel(TITLES[name][0])
        axis.set_ylabel(TITLES[name][1])
        axis.grid(visible=True, alpha=0.3)
        if len(curve[0]) > 2:
            axis.legend()
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
