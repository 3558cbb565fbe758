"""Count the numbers that stand in the source of search, engines and algebra: what somebody chose and nobody derived.

    python tools/literals.py                  # the working tree: packages, and the modules with most
    python tools/literals.py 00b6994 HEAD     # revisions side by side; old modules count where they are now

Counted is every number of a Python file except 0, 1, -1, 2 and 1/2, wherever it stands (a row of a table, a default,
an index) and as often as it stands there; numbers inside text that is a formula, "1/(exp - 3)", or a list, "0.1 0.25",
so that a table moved into text counts as before; numbers of TOML files. Docstrings, sentences and formats do not count.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/sobolev_novelty/"
PACKAGES = ("search", "engines", "algebra")
PLAIN = (0, 1, -1, 2, 0.5)
NUMBER = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
#: Names and numbers between operators: at least one operator, no two words side by side.
FORMULA = re.compile(r"(?=.*[-+*/^(])(?!.*\w\s+\w)[\w\s.,+*/^(){}-]+")
LIST = re.compile(rf"\s*[-+]?{NUMBER.pattern}(?:[\s,;]+[-+]?{NUMBER.pattern})+\s*")


def of_python(source: str) -> list[complex]:
    """The counted numbers of a Python file."""
    found: list[complex] = []
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Constant):
            found += _of_value(node.value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            found += [-number for number in _of_value(node.operand.value)]
        else:
            nodes += _parts(node)
    return [number for number in found if number not in PLAIN]


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a node, without docstrings and the formats of f-strings."""
    for part in ast.iter_child_nodes(node):
        is_docstring = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
        if not is_docstring and part is not getattr(node, "format_spec", None):
            yield part


def _of_value(value: object) -> list[complex]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float | complex):
        return [value]
    if isinstance(value, str) and (FORMULA.fullmatch(value) or LIST.fullmatch(value)):
        return [float(number) for number in NUMBER.findall(value)]
    return []


def of_toml(source: str) -> list[complex]:
    """The counted numbers of a TOML file."""
    found, values = [], [tomllib.loads(source)]
    while values:
        value: Any = values.pop()
        if isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
        else:
            found += [number for number in _of_value(value) if number not in PLAIN]
    return found


def count(files: dict[str, str]) -> Counter[str]:
    """Numbers per module of ``files``: path below the package -> text."""
    counts: Counter[str] = Counter()
    for path, text in files.items():
        module = _now(path)
        if module.partition(".")[0] in PACKAGES:
            counts[module] += len(of_python(text) if path.endswith(".py") else of_toml(text))
    return counts


def per_package(counts: Counter[str]) -> dict[str, int]:
    return {name: sum(n for module, n in counts.items() if module.partition(".")[0] == name) for name in PACKAGES}


def _now(path: str) -> str:
    """The module that a path is today: before 0.2 many stood elsewhere."""
    from sobolev_novelty.moved import new_path

    module = path.rpartition(".")[0].replace("/", ".").removesuffix(".__init__")
    return new_path(module) or module


def working_tree() -> dict[str, str]:
    folder = ROOT / SOURCE
    paths = (path for ending in ("py", "toml") for path in folder.rglob(f"*.{ending}"))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def revision(name: str) -> dict[str, str]:
    command = ["git", "archive", "--format=tar", name, SOURCE]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {
            member.name.removeprefix(SOURCE): files.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in files
            if member.isfile() and member.name.endswith((".py", ".toml"))
        }


def main() -> None:
    trees = {name: count(revision(name)) for name in sys.argv[1:]} or {"working tree": count(working_tree())}
    last = next(reversed(trees.values()))
    most = [module for module, _ in last.most_common(15)]
    rows = [("", *trees)]
    rows += [(name, *(str(per_package(tree)[name]) for tree in trees.values())) for name in PACKAGES]
    rows += [("together", *(str(sum(tree.values())) for tree in trees.values()))]
    rows += [(module, *(str(tree[module]) for tree in trees.values())) for module in most]
    for name, *cells in rows:
        print(f"{name:45}" + "".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
