"""Ideas that stand in one place: what a second copy of them would look like is looked for in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from places import ROOT

PACKAGE = ROOT / "src" / "sobolev_novelty"

SEARCH = ("core", "price", "search", "engines")


def _classes() -> Iterator[tuple[str, str, set[str]]]:
    """File, name and annotated fields of every class of a search."""
    for folder in SEARCH:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    fields = {
                        f.target.id
                        for f in node.body
                        if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)
                    }
                    yield str(path.relative_to(PACKAGE)), node.name, fields


def test_one_class_holds_inputs_target_and_weights() -> None:
    found = [(file, name) for file, name, fields in _classes() if {"y", "weights"} <= fields]
    assert found == [("core/rows.py", "Rows")]


def test_variables_are_substituted_in_one_place() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    copies = [
        str(path.relative_to(PACKAGE))
        for path, text in sources.items()
        if re.search(r"lambda \w+, \w+: Expression\.of\(\w+, \*\w+\)", text)
    ]
    assert copies == ["core/expression.py"]


def test_columns_are_transposed_where_rows_are_made() -> None:
    """A candidate is not given a copy of the table of its own."""
    copies = [
        str(path.relative_to(PACKAGE))
        for path in sorted((PACKAGE / "search").rglob("*.py"))
        if re.search(r"ascontiguousarray\([\w.]*X(\[\w+\])?\.T\)", path.read_text(encoding="utf-8"))
    ]
    assert copies == ["search/model/regressor.py"]  # rows that a user asks predictions for


def test_columns_are_fitted_in_one_place() -> None:
    """Proposers, fits and units ask core.linear for the coefficients of a few columns."""
    copies = [
        str(path.relative_to(PACKAGE))
        for folder in ("search", "engines")
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if "lstsq(" in path.read_text(encoding="utf-8")
    ]
    assert set(copies) <= {
        "search/fit/final_fit.py",  # a step from triangular factors
        "search/propose/neighbours.py",
        "search/propose/structure/power_laws.py",
    }
