"""Markdown tables of the studies, made from stored runs only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sobolev_novelty.core.output import write_whole
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.turbulence.studying.comparison import CLOSURE_ROWS, grid_cells, grid_wins
from sobolev_novelty.lab.turbulence.studying.store import Row, RunStore
from sobolev_novelty.lab.turbulence.studying.study import load_study, study_store

START, END = "<!-- tables made by: sobolev turbulence compare --docs -->", "<!-- end of tables -->"


def _markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _number(value: float | None, form: str, factor: float = 1.0) -> str:
    return "–" if value is None else format(factor * value, form)


def _measures(row: Row) -> list[str]:
    found = row.get("measures") or {}
    return [
        _number(found.get("reattachment"), ".2f"),
        _number(found.get("reattachment_interpolated"), ".2f"),
        _number(found.get("max_reversed"), ".2f", 1e3),
        _number(found.get("field_error"), ".2f", 100),
    ]


def _closure_facts(row: Row) -> list[str]:
    return [
        str(row.get("n_terms") or "–"),
        _number(row.get("alpha"), ".2f") if row.get("closure") else "–",
        _number(row.get("condition"), ".1e"),
        _number(row.get("max_coefficient"), ".3g"),
        _number(row.get("min_novelty"), ".2g"),
    ]


def comparison_table(study: Mapping[str, Any], store: RunStore) -> str:
    """The rows of the paper's table beside ours."""
    names = ("DNS", "RANS", "k-epsilon", "DSRRANS published", *CLOSURE_ROWS, "exact target")
    body = []
    for name in names:
        row = store.find(f"row/{name}")
        if row is not None:
            paper = study["paper"].get(name, (None, None))
            printed = [_number(paper[0], ".2f"), _number(paper[1], ".2f")]
            body.append([name, *printed, *_measures(row), *_closure_facts(row)])
    head = ["row", "paper x_r", "paper max rev.", "x_r", "x_r interp.", "max rev. 1e-3", "field error %"]
    return _markdown([*head, "terms", "α1", "condition", "max c", "min ν"], body)


def grid_table(study: Mapping[str, Any], store: RunStore) -> str:
    """Interpolated reattachment / maximum reversed velocity / field error of every cell of the grid."""
    cells: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    for key, rule, count, start, alpha in grid_cells(study):
        row = store.find(key)
        column = f"{rule}, α1 = {alpha:g}"
        columns += [column] if column not in columns else []
        name = f"{start} pruned to {count}" if start else str(count)
        if row is not None:
            _, interpolated, reverse, error = _measures(row)
            cells.setdefault(name, {})[column] = f"{interpolated} / {reverse} / {error}"
    body = [[name, *(row.get(column, "–") for column in columns)] for name, row in cells.items()]
    return _markdown(["terms", *columns], body)


def wins_table(study: Mapping[str, Any], store: RunStore) -> str:
    """How often guidance is closer to DNS on the grid."""
    wins = grid_wins(study, store)
    pairs = wins.pop("pairs")
    return _markdown(["quantity", "guided closer to DNS"], [[name, f"{n} of {pairs}"] for name, n in wins.items()])


def validation_table(study: Mapping[str, Any], store: RunStore) -> str:
    """Held-out error per term count of both selection procedures."""
    rows = {name: store.find(f"row/{name}") for name in ("DSRRANS", "SN-DSRRANS")}
    counts = [str(count) for count in study["selection"]["counts"]]
    body = []
    for name, row in rows.items():
        for way in ("forward", "pruned"):
            table = (row or {}).get("cv", {}).get(way, {})
            body.append([f"{name}, {way}", *(_number(table.get(count), ".4f") for count in counts)])
    return _markdown(["held-out error", *counts], body)


def response_table(study: Mapping[str, Any], store: RunStore, with_path: bool = True) -> str:
    """Closures selected by the velocity they cause, and the paths they come from."""
    rules = study["stability"]["rules"]
    found = {rule: store.find(f"row/{rule}") for rule in rules}
    body = [[rule, *_measures(row), *_closure_facts(row)] for rule, row in found.items() if row is not None]
    head = ["rule", "x_r", "x_r interp.", "max rev. 1e-3", "field error %"]
    first = _markdown([*head, "terms", "α1", "condition", "max c", "min ν"], body)
    if not with_path:
        return first
    steps = []
    for rule, row in found.items():
        if row is not None:
            path = row["path"]
            triples = zip(path["held_out"], path["condition"], path["max_coefficient"])
            steps.append([rule, *(f"{e:.3f} / {c:.0e} / {m:.3g}" for e, c, m in triples)])
    counts = [str(count) for count in study["selection"]["counts"]]
    return (
        first
        + "\n\nHeld-out error / condition / largest coefficient along the path:\n\n"
        + _markdown(["rule", *counts], steps)
    )


def cross_check_table(stores: Sequence[RunStore]) -> str:
    """The same closures in other solvers."""
    body = []
    for store in stores:
        for row in store.rows():
            solver, _, name = row["key"].partition("/")
            if solver not in ("openfoam", "feedback"):
                continue
            own = store.find(f"row/{name}")
            if own is not None:
                embedded, other = _measures(own)[1:], _measures(row)[1:]
                body.append(
                    [name, solver, " / ".join(embedded), " / ".join(other), row["status"], f"{row['seconds']:.0f}"]
                )
    head = ["closure", "solver", "embedded: x_r / max rev. / error %", "the other solver", "status", "seconds"]
    return _markdown(head, body)


def check_table(store: RunStore) -> str:
    """Both solvers and the measures against the values they must reproduce."""
    lines = (
        ("DNS, its own mesh, first cell", "row/DNS", "reattachment", 5.28, 7.39),
        ("k–ω SST, stored field, first cell", "row/RANS", "reattachment", 7.36, 5.81),
        ("k–ω SST, generated OpenFOAM case, first cell", "base/kOmegaSST", "reattachment", 7.36, 5.81),
        ("k–ε, stored field, first cell", "row/k-epsilon", "reattachment", 3.70, 4.14),
        ("k–ε, generated OpenFOAM case, first cell", "base/kEpsilon", "reattachment", 3.70, 4.14),
        ("published closure, embedded, interpolated", "row/DSRRANS published", "reattachment_interpolated", 4.95, 4.82),
        (
            "published closure, OpenFOAM, interpolated",
            "openfoam/DSRRANS published",
            "reattachment_interpolated",
            4.95,
            4.82,
        ),
    )
    body = []
    for name, key, quantity, position, reverse in lines:
        row = store.find(key)
        if row is not None:
            found = row["measures"]
            measured = f"{found[quantity]:.4f} / {1e3 * found['max_reversed']:.4f}"
            body.append([name, f"{position:.2f} / {reverse:.2f}", measured, row["status"]])
    return _markdown(["check", "expected", "measured", "status"], body)


def pruning_table(store: RunStore) -> str:
    """Condition number / largest coefficient / error after pruning from several starts."""
    row = store.find("pruning")
    if row is None:
        return "not run"
    found = {(rule, start, count): values for rule, start, count, *values in row["cells"]}
    body = []
    for start, count in sorted({(start, count) for _, start, count in found}):
        cells = [found[rule, start, count] for rule in ("greedy", "sobolev")]
        texts = [f"{condition:.1e} / {largest:.3g} / {mse:.5f}" for mse, condition, largest in cells]
        body.append([f"{start} → {count}", *texts])
    return _markdown(["terms", "greedy", "sobolev"], body)


def speed_table(store: RunStore) -> str:
    """CPU seconds of the main steps."""
    row = store.find("speed")
    if row is None:
        return "not run"
    body = [[name, f"{value:.2f}"] for name, value in row["cpu_seconds"].items()]
    return _markdown(["step", "CPU seconds"], body)


def all_tables(experiments: Path, results: Path) -> str:
    """Every table of the documentation page, from the folders of experiment files and of stored runs."""
    names = ("comparison", "response", "threshold", "refined")
    first, second, third, fourth = (load_study(experiments / f"turbulence_{name}.toml") for name in names)
    a, b, c, d = (study_store(study, results, read_only=True) for study in (first, second, third, fourth))
    parts = {
        "Checks: x_r / max reversed 1e-3": check_table(a),
        "Speed": speed_table(a),
        "The pre-registered comparison": comparison_table(first, a),
        "Cross-validated error, which chose the term counts": validation_table(first, a),
        "The grid: interpolated x_r / max reversed 1e-3 / field error %": grid_table(first, a),
        "How often guidance is closer to DNS": wins_table(first, a),
        "Pruning from several starts: condition / largest coefficient / error": pruning_table(a),
        "Beyond: selection by velocity response": response_table(second, b),
        "The same with the threshold 1/√10 as a floor of novelty": response_table(third, c),
        "The first two with coefficients refined in the solver": response_table(fourth, d, with_path=False),
        "The same closures in other solvers": cross_check_table((a, b, c)),
    }
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in parts.items())


def refresh_page(page: Path, text: str) -> None:
    """Replace the tables of a page between its two marks."""
    content = page.read_text()
    if START not in content or END not in content:
        raise DataError(f"'{page}' lacks the marks {START!r} and {END!r}. Put both on lines of their own.")
    before, rest = content.split(START)
    write_whole(page, f"{before}{START}\n\n{text}\n\n{END}{rest.split(END)[1]}")
