"""What can be taken away: the report, the model, the front, and the equation for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

from sobolev_novelty.errors import DataError
from sobolev_novelty.ui.app.workspace import Analysis, Workspace

#: File -> language of the equation in it.
LANGUAGES = {
    "equation.tex": "latex", "equation.py": "numpy", "equation-jax.py": "jax", "equation-torch.py": "torch",
    "equation.c": "c", "equation.cpp": "cpp", "equation.jl": "julia", "equation-excel.txt": "excel",
    "equation-sympy.txt": "sympy",
}  # fmt: skip
_TYPES = {
    "html": "text/html; charset=utf-8", "json": "application/json", "csv": "text/csv; charset=utf-8",
}  # fmt: skip


def download(workspace: Workspace, name: str) -> tuple[bytes, str]:
    """The content of a file and its type.

    ``name``: one of :data:`FILES`.
    """
    return FILES[name](workspace).encode("utf-8"), _TYPES.get(name.rpartition(".")[2], "text/plain; charset=utf-8")


def _analysis(workspace: Workspace) -> Analysis:
    if workspace.analysis is None:
        raise DataError("There is no report yet: give a table and an equation, and press Report.")
    return workspace.analysis


def _equation(language: str) -> Callable[[Workspace], str]:
    def written(workspace: Workspace) -> str:
        found = _analysis(workspace)
        # A formula for a spreadsheet counts all columns of the user's table; a function takes the inputs.
        names = found.columns if language == "excel" else found.inputs
        return f"{found.expression.to(language, names=names)}\n"

    return written


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _model(workspace: Workspace) -> str:
    workspace.model()  # says so where there is none
    assert workspace.fit is not None
    return _json(workspace.fit.model)


def _front(workspace: Workspace) -> str:
    return str(workspace.model().equations_.to_csv(index=False))


def _next_rows(workspace: Workspace) -> str:
    found = workspace.next
    if found is None:
        raise DataError("No rows were chosen yet: press Next rows.")
    lines = [found["columns"], *found["rows"]]
    return _csv(lines)


def _csv(lines: list[list[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


#: Name of a file -> its text.
FILES: dict[str, Callable[[Workspace], str]] = {
    "report.html": lambda workspace: _analysis(workspace).page,
    "report.json": lambda workspace: _json(_analysis(workspace).data),
    "report.tex": lambda workspace: _analysis(workspace).latex,
    "report.txt": lambda workspace: _analysis(workspace).text,
    "model.json": _model,
    "front.csv": _front,
    "next-rows.csv": _next_rows,
} | {name: _equation(language) for name, language in LANGUAGES.items()}
