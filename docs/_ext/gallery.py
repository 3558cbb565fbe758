"""The numbered scripts of examples/ as pages: each cell's words, code, output and figures.

A cell begins with `# %%`; what stands behind it, and comment lines right below, are its words. Scripts run once: what
they gave is kept in build/gallery under the hash of the script.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "gallery"
CELL = re.compile(r"^# %%[ ]?(.*)\n((?:#(?! %%).*\n)*)", re.MULTILINE)
#: Examples that need more than the package.
NEEDS = {"07_transformer": "torch"}


@dataclass(frozen=True)
class Cell:
    """Words and code."""

    words: str
    code: str


def cells_of(source: str) -> tuple[str, str, list[Cell]]:
    """Title, introduction and cells of a script."""
    docstring = source.split('"""')[1].strip()
    title, _, introduction = docstring.partition("\n")
    parts = CELL.split(source.split('"""', 2)[2])
    cells = []
    for head, comments, code in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        more = " ".join(line.removeprefix("#").strip() for line in comments.splitlines())
        cells.append(Cell(f"{head} {more}".strip(), code.strip("\n")))
    return title.strip(), introduction.strip(), cells


def run_cells(name: str, cells: list[Cell]) -> list[dict[str, object]] | None:
    """What each cell printed and drew; None where something it needs is not here."""
    package = NEEDS.get(name)
    if package is not None and find_spec(package) is None:
        return None
    key = hashlib.sha256(repr(cells).encode()).hexdigest()[:12]
    folder = CACHE / f"{name}-{key}"
    done = folder / "cells.json"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        job = json.dumps({"name": f"{name}.py", "cells": [cell.code for cell in cells], "folder": str(folder)})
        command = [sys.executable, str(Path(__file__).with_name("run_cells.py"))]
        environment = {"COLUMNS": "100"} | os.environ
        result = subprocess.run(
            command,
            input=job,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=folder,
            env=environment,
            check=False,
        )
        if result.returncode != 0:
            raise RuntimeError(f"examples/{name}.py fails:\n{result.stderr}")
        done.write_text(result.stdout, encoding="utf-8")
    outputs: list[dict[str, object]] = json.loads(done.read_text(encoding="utf-8"))
    return [output | {"folder": folder} for output in outputs]


def page(name: str, target: Path) -> tuple[str, str | None]:
    """Write the page of one example; its title and first figure."""
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    title, introduction, cells = cells_of(source)
    outputs = run_cells(name, cells)
    heading = name[3:].replace("_", " ").capitalize()
    lines = [f"# {heading}", "", title, "", introduction, "", f"The script is `examples/{name}.py`.", ""]
    if outputs is None:
        lines += [f"It needs {NEEDS[name]}, which was not here when this page was made: the output is not shown.", ""]
    picture = None
    for cell, output in zip(cells, outputs or [{}] * len(cells), strict=True):
        lines += [cell.words, "", "```python", cell.code, "```", ""]
        if text := str(output.get("text", "")).rstrip():
            lines += ["```text", text, "```", ""]
        for figure in output.get("figures", []):  # type: ignore[attr-defined]
            copy = f"{name}-{figure}"
            (target / copy).write_bytes((Path(str(output["folder"])) / figure).read_bytes())
            picture = picture or copy
            lines += [f"![Figure of this example]({copy})", ""]
    (target / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
    return title, picture


def make(app: Sphinx) -> None:
    """Write docs/gallery/, one page per example and a page of them all, before Sphinx looks for pages."""
    names = sorted(path.stem for path in (ROOT / "examples").glob("[0-9][0-9]_*.py"))
    target = Path(app.srcdir) / "gallery"
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    logging.getLogger(__name__).info("running %d examples (kept in build/gallery)", len(names))
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda name: page(name, target), names))
    lines = ["# Examples", "", "Numbered scripts of the folder `examples/`, with what they print and draw.", ""]
    lines += ["::::{grid} 1 2 2 3", ":gutter: 3", ""]
    for name, (title, picture) in zip(names, made, strict=True):
        lines += [
            f":::{{grid-item-card}} {name[3:].replace('_', ' ').capitalize()}",
            f":link: {name}",
            ":link-type: doc",
        ]
        lines += [f":img-bottom: {picture}"] if picture else []
        lines += ["", title, ":::", ""]
    lines += ["::::", "", "```{toctree}", ":hidden:", "", *names, "```", ""]
    (target / "index.md").write_text("\n".join(lines), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Pages are made once, when the builder is known."""
    app.connect("builder-inited", make)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
