"""The numbers in search, engines and algebra become fewer: each package has a ceiling, and tools/literals.py counts."""

from __future__ import annotations

import sys

import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from literals import count, of_python, of_toml, per_package, working_tree

#: Lower a ceiling when numbers go; a new number has to replace another. At 00b6994 they were 546, 325 and 70.
CEILINGS = {"search": 525, "engines": 307, "algebra": 70}


def test_no_package_has_more_numbers_than_it_had() -> None:
    counted = per_package(count(working_tree()))
    above = {name: (n, CEILINGS[name]) for name, n in counted.items() if n > CEILINGS[name]}
    assert above == {}, "python tools/literals.py names the modules"


@pytest.mark.parametrize(
    "source, numbers",
    [
        ("x = [0, 1, -1, 2, 0.5, True, None]", []),
        ("GRID = (-2, 3, 1e-9)\ndef f(x=0.25):\n    return x[4] ** -0.5", [-2, -0.5, 0.25, 1e-9, 3, 4]),
        ('"""Of 1812, about 3/4."""\ndef f():\n    """Returns 7."""\n    return f"{x:.3g}{8}"', [8]),
        ('FORMS = ["1/(exp - 3)", "x0**4", "0.1 0.25", "at most 30 rows", "x3"]', [0.1, 0.25, 3, 4]),
    ],
)
def test_numbers_count_wherever_they_stand(source: str, numbers: list[float]) -> None:
    assert sorted(of_python(source), key=abs) == sorted(numbers, key=abs)


def test_numbers_of_toml_count_and_old_modules_count_where_they_are_now() -> None:
    assert sorted(of_toml('a = 3\nb = [1, 0.1, {c = 7}]\nd = "text 8"'), key=abs) == [0.1, 3, 7]
    assert count({"search/mcts.py": "N = 7", "terms.py": "N = 7, 8", "bench/run.py": "N = 9"}) == {
        "engines.mcts": 1,
        "algebra.terms": 2,
    }
