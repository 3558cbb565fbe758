"""The tables that compare us with others and that answer users' requests are true where a machine can tell."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import sobolev_novelty as sn
from places import ROOT
from sobolev_novelty.ui.cli.main import app

DOCS = ROOT / "docs"
PEERS = ("PySR", "gplearn", "pyoperon", "PySINDy", "feyn")


def rows(page: str, columns: int) -> list[list[str]]:
    """Cells of all tables of a page that have so many columns, without heads and rules."""
    lines = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    heads = {lines[i - 1] for i, line in enumerate(lines) if line.startswith("| ---")}
    return [
        row
        for row, line in zip(cells, lines, strict=True)
        if len(row) == columns and "---" not in line and line not in heads
    ]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def check_ours(name: str) -> None:
    """`sn.Name`, `sn.Name.attribute`, either with `(argument=)`, or `sobolev verb`."""
    if name.startswith("sobolev "):
        assert name.split()[1] in get_command(app).commands  # type: ignore[attr-defined]
        return
    path, _, arguments = name.removeprefix("sn.").partition("(")
    value: Any = sn
    for part in path.split("."):
        value = getattr(value, part)
    for argument in re.findall(r"(\w+)=", arguments):
        assert argument in inspect.signature(value).parameters, name


def test_our_names_in_the_comparison_exist() -> None:
    ours = [name for row in rows("api-comparison.md", 7) for name in named(row[1])]
    checked = [name for name in ours if name.startswith(("sn.", "sobolev "))]
    assert len(checked) >= 40
    for name in checked:
        check_ours(name)


def test_the_comparison_has_forty_rows_and_begins_with_what_we_lack() -> None:
    table = rows("api-comparison.md", 7)
    assert len(table) >= 64  # a row that we lacked moves when we have it; none may vanish
    assert len({row[0] for row in table}) == len(table)
    lacking = [k for k, row in enumerate(table) if row[1].startswith("–")]
    ours = [k for k, row in enumerate(table) if row[1].startswith("`sn.")]
    assert lacking and max(lacking) < min(ours)


def parameters(*functions: Callable[..., Any]) -> set[str]:
    return {name for function in functions for name in inspect.signature(function).parameters}


def names_of_pysr() -> set[str]:
    spec = find_spec("pysr")
    assert spec is not None and spec.submodule_search_locations
    tree = ast.parse((Path(spec.submodule_search_locations[0]) / "sr.py").read_text(encoding="utf-8"))
    found = {"equations_"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.FunctionDef):
            found |= {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    return found


def names_of_gplearn() -> set[str]:
    genetic = importlib.import_module("gplearn.genetic")
    model = genetic.SymbolicRegressor
    made = {"make_function", "make_fitness"}
    assert all(
        hasattr(importlib.import_module(f"gplearn.{module}"), name)
        for module, name in (("functions", "make_function"), ("fitness", "make_fitness"))
    )
    source = inspect.getsource(genetic)
    assigned = set(re.findall(r"self\.(\w+)\b", source))
    return made | set(dir(genetic)) | set(dir(model)) | parameters(model, model.fit) | assigned


def names_of_pyoperon() -> set[str]:
    model = importlib.import_module("pyoperon.sklearn").SymbolicRegressor
    assigned = set(re.findall(r"self\.(\w+)\b", inspect.getsource(model)))
    return {"SymbolicRegressor"} | set(dir(model)) | parameters(model, model.fit, model.get_model_string) | assigned


def names_of_pysindy() -> set[str]:
    pysindy = importlib.import_module("pysindy")
    functions = (pysindy.SINDy, pysindy.SINDy.fit, pysindy.STLSQ, pysindy.EnsembleOptimizer)
    return set(dir(pysindy)) | set(dir(pysindy.SINDy)) | parameters(*functions)


def names_of_feyn() -> set[str]:
    feyn = importlib.import_module("feyn")
    return set(dir(feyn.Model)) | parameters(feyn.QLattice, feyn.QLattice.auto_run)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peer", PEERS)
def test_names_of_another_package_in_the_comparison_exist(peer: str) -> None:
    if find_spec(peer.lower()) is None:
        pytest.skip(f"{peer} is not installed")
    known = globals()[f"names_of_{peer.lower()}"]()
    cells = [row[2 + PEERS.index(peer)] for row in rows("api-comparison.md", 7)]
    names = {name for cell in cells for name in named(cell) if re.fullmatch(r"\w+", name)}
    assert len(names) >= 10
    assert names - known == set()


@pytest.mark.filterwarnings("ignore")
def test_the_options_on_the_page_for_users_of_pysr_exist() -> None:
    table = rows("coming-from-pysr.md", 3)
    assert len(table) >= 30
    model = sn.SymbolicRegressor
    ours = set(dir(model)) | parameters(model, model.fit) | {"equations_", "expression_", "verdicts_"}
    for row in table:
        for name in named(row[1]):
            if name.startswith("sn."):
                check_ours(name)
            elif re.fullmatch(r"\w+", name) and name != "MultiOutputRegressor":
                assert name in ours, name
    if find_spec("pysr") is not None:
        theirs = {name for row in table for name in named(row[0]) if re.fullmatch(r"\w+", name)}
        assert theirs - names_of_pysr() - {"y"} == set()


def test_all_35_requests_are_answered_with_a_page() -> None:
    table = rows("requests.md", 5)
    assert [row[0] for row in table] == [str(number) for number in range(1, 36)]
    answers = [row[3] for row in table]
    assert set(answers) <= {"served", "partly", "not"}
    for row in table:
        assert row[3] == "not" or re.search(r"\]\([\w-]+\.md#[\w-]+\)", row[4]), row
    text = (DOCS / "requests.md").read_text(encoding="utf-8")
    for word in ("served", "partly", "not"):
        assert f"{word} {answers.count(word)}" in text.replace("**", ""), f"{word}: {answers.count(word)}"
