"""One vocabulary: what forms are made of is listed in one module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sobolev_novelty
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.search.propose import vocabulary

PACKAGE = Path(sobolev_novelty.__file__).parent
#: Lists of functions that are no choice of what to try, and why they are where they are.
OTHERS = {
    "search/contract/engine.py": "the operators that a problem allows unless the user says otherwise",
    "search/choose/criteria.py": "the operators that a person takes for algebra",
    "engines/transformer/tokenizer.py": "the alphabet of a trained network",
    "engines/igsr/additive.py": "the functions that have poles",
}
#: ``np.arange`` counts rows as well, and ``np.linspace`` spreads them.
GRIDS = ("logspace", "geomspace")


def _sequences(tree: ast.AST) -> Iterator[tuple[int, list[object]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            found = []
            for element in node.elts:
                try:
                    found.append(ast.literal_eval(element))
                except ValueError:
                    found.append(None)
            yield node.lineno, found


def _is_list_of_functions(values: list[object]) -> bool:
    return sum(isinstance(v, str) and v in OPERATORS and OPERATORS[v].arity == 1 for v in values) > 2


def _is_list_of_exponents(values: list[object]) -> bool:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    is_simple = all((2.0 * float(v)).is_integer() for v in numbers)
    return len(set(numbers)) == len(values) > 2 and is_simple and min(numbers) < 0 < max(numbers)


def _modules() -> list[Path]:
    found = [path for folder in ("search", "engines") for path in sorted((PACKAGE / folder).rglob("*.py"))]
    return [path for path in found if path != Path(vocabulary.__file__)]


def _listed(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [
        f"line {line}: {values}"
        for line, values in _sequences(tree)
        if _is_list_of_functions(values) or _is_list_of_exponents(values)
    ]
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return found + [f"line {f.lineno}: {f.attr}" for f in calls if isinstance(f, ast.Attribute) and f.attr in GRIDS]


def test_no_other_module_of_a_search_or_an_engine_lists_functions_exponents_or_grids() -> None:
    for path in _modules():
        if (place := path.relative_to(PACKAGE).as_posix()) not in OTHERS:
            assert not _listed(path), f"{place} has a list of its own: it belongs into search/propose/vocabulary.py"


def test_the_modules_that_may_list_functions_still_do() -> None:
    for place in OTHERS:
        assert _listed(PACKAGE / place), f"{place} needs no exception"


@pytest.mark.parametrize(
    ("source", "is_list"),
    [
        ('("sin", "cos", "exp")', True), ("(-2, -1, 1, 2)", True), ("[0.5, 1.0, -1.0]", True),
        ('("sin", "cos")', False), ("(0.2, 0.3, -0.1)", False), ("(1, 2, 3)", False), ('("add", "sub", "mul")', False),
    ],
)  # fmt: skip
def test_a_list_of_functions_or_of_exponents_is_seen(source: str, is_list: bool) -> None:
    [(_, values)] = _sequences(ast.parse(source))
    assert (_is_list_of_functions(values) or _is_list_of_exponents(values)) is is_list


def test_every_function_of_the_vocabulary_is_an_operator() -> None:
    names = [
        getattr(vocabulary, name) for name in ("IN_DICTIONARIES", "FIRST", "BENDING", "RELATED", "DRAWN", "FACTORS")
    ]
    assert {name for listed in names for name in listed} <= set(OPERATORS)
