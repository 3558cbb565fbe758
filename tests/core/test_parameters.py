"""Every argument of every public call, given what it cannot be: one line of ours that names it, never silence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sobolev_novelty as sn
from odd_arguments import ODD, calls, outcome, parameters_of
from sobolev_novelty.core.operators import own_operators
from sobolev_novelty.core.parameters import (
    CORES,
    LAMBDAS,
    NAMES,
    NOTHING,
    PATH,
    SEED,
    Kind,
    check,
    checked,
    kinds_of,
    list_of,
    number,
    one_of,
    whole,
)
from sobolev_novelty.search.contract import registry

#: What no argument at all may be.
NEVER = {
    "nan", "-inf", "10**400", "-10**400", "1j", "bytes", "[[]]", "[None]", "{1}", "object", "...", "NA", "NaT", "now",
    "slice", "unspeakable", "module", "complex", "structured", "object array", "dates", "dates frame", "text frame",
    "Decimal nan", "iterator", "Ellipsis list", "empty frame", "dict of columns",
}  # fmt: skip
#: What a scalar type in a signature stands for, told independently of the table.
WHOLE = {"0", "1", "-1", "3", "-7", "np.int64(2)"}
ANNOTATED = {
    "int": WHOLE,
    "float": WHOLE | {"0.5", "1.5", "-0.5", "1e308", "np.float64(0.5)"},
    "bool": {"True", "False"},
    "str": {"''", "x0", "nonsense", "5s", "'1'", "surrogate", "nul", "long"},
    "None": {"None"},
}
#: Columns that are missing in every row are data: a report says so, other verbs are nan, and such a score comes last.
MISSING = {("scores", "[None]"), ("X", "[None]"), ("X", "[nan, nan]"), ("X", "array of nan")}
#: A block of rows may be empty.
EMPTY = {("NoveltyAccumulator.update", "empty frame")}
#: Columns of numbers are levels of inputs.
LEVELS = ("levels", "dict of columns")
#: Errors of a caller's own function are the caller's.
OWN = ("function", "failing", "type")
CALLS = [
    "novelty", "novelty, bootstrap", "novelties", "conditional_novelty", "novelty_of_arrays", "novelty_of_chunks",
    "rank", "next_rows", "next_rows, pool", "prune", "rerank", "feedback", "accepts", "intervals", "term_intervals",
    "check_domain", "check_units", "evaluate", "parse", "additive_terms", "sum_of_terms", "from_sympy", "to_sympy",
    "to_latex", "to_numpy", "to_cpp", "register_engine", "register_operator", "unregister_operator", "Budget",
    "SobolevGuidance", "Limits", "ChatProposer", "GrammarSampler", "Transcript", "TermArchive", "TermArchive.update",
    "NoveltyAccumulator", "NoveltyAccumulator.update", "NoveltyAccumulator.merge", "NoveltyAccumulator.from_bytes",
    "report.explain", "report.to_json", "report.to_html", "Expression.of", "Expression", "Expression.to",
    "Expression.rounded", "Expression.rename", "model.predict", "model.score", "model.latex", "model.latex_table",
    "model.sympy", "model.choose", "model.novelty_report", "model.intervals", "model.save", "SymbolicRegressor.load",
    "system.predict", "system.integrate", "system.solve", "system.check", "system.score", "system.novelty_report",
    "system.save", "DynamicsRegressor.load", "fit", "system.fit", "SymbolicRegressor", "DynamicsRegressor", "Genetic",
    "MCTS", "IGSR", "Constraints", "Units", "Islands",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _what_is_registered_goes_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Odd names that are accepted as names of engines or operators must not reach other tests of this process."""
    monkeypatch.setattr(registry, "ENGINES", dict(registry.ENGINES))
    yield
    for operator in own_operators():
        sn.unregister_operator(operator.name)


#: Name -> function, a valid call, and where the names of its parameters are.
Calls = Mapping[str, tuple[Callable[..., Any], dict[str, Any], Any]]


@pytest.fixture(scope="module")
def every_call(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    return calls(tmp_path_factory.mktemp("odd"))


def may_be_taken(annotation: str, label: str) -> bool:
    """Whether a signature allows a value; true where it says no more than Any."""
    parts = {part.strip() for part in annotation.split("|")}
    return not parts <= set(ANNOTATED) or any(label in ANNOTATED[part] for part in parts)


#: Thousands of searches, or of engines: CI runs them.
LONG = ("SymbolicRegressor", "DynamicsRegressor", "system.fit", "MCTS", "IGSR")


@pytest.mark.parametrize("name", [pytest.param(c, marks=[pytest.mark.slow] * (c in LONG)) for c in CALLS])
def test_odd_values_are_refused_by_an_error_of_ours_in_time(
    every_call: Calls,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    function, valid, where = every_call[name]
    wrong = []
    assert len(ODD) >= 40
    for parameter, annotation in parameters_of(where).items():
        for label, made in ODD.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result, error = outcome(function, {**valid, parameter: made()})
            if result in ("foreign", "slow") and not (label in OWN and callable(made())):
                wrong.append((parameter, label, result, repr(error)[:120]))
            is_odd = label in NEVER and (parameter, label) not in {*MISSING, LEVELS} and (name, label) not in EMPTY
            if result == "taken" and (is_odd or not may_be_taken(annotation, label)):
                wrong.append((parameter, label, "taken in silence", annotation))
            if result == "refused" and len(str(error)) > 2100:
                wrong.append((parameter, label, "an error of", str(len(str(error)))))
    assert not wrong


def test_every_public_call_is_in_the_list(
    every_call: Calls,
) -> None:
    tested = {name.split(",")[0] for name in every_call}
    assert set(CALLS) == set(every_call)
    # Values that calls return, errors and enumerations are made by the package; Engine is abstract.
    returned = {
        "DomainCheck", "Interval", "Intervals", "NoveltyReport", "Status", "TermNovelties", "TermVerdict", "Term",
        "Engine",
    }  # fmt: skip
    public = {name for name in dir(sn) if callable(getattr(sn, name))}
    errors = {
        name for name in public if isinstance(getattr(sn, name), type) and issubclass(getattr(sn, name), Exception)
    }
    warned = {"ExtrapolationWarning"}
    assert public - returned - errors - warned <= tested


def test_an_argument_is_refused_in_one_line_with_its_name_its_value_and_the_remedy() -> None:
    X = np.linspace(-1.0, 1.0, 50)[:, None]
    with pytest.raises(sn.ParameterError, match=r"^'tau' must be a number from 0 to 1\. Got None\.$"):
        sn.novelty("x0", X, tau=None)  # type: ignore[arg-type]
    with pytest.raises(sn.ParameterError, match=r"^'parallel' must be a whole number other than 0; -1 takes all cores"):
        sn.SymbolicRegressor(parallel=0).fit(X, X[:, 0])
    with pytest.raises(
        sn.ParameterError, match=r"^'novelty' must be True or False, or a SobolevGuidance\. Got 'yes'\.$"
    ):
        sn.SymbolicRegressor(novelty="yes").fit(X, X[:, 0])  # type: ignore[arg-type]
    with pytest.raises(sn.ParameterError, match=r"^'budget' must be a Budget.* seconds above 0, or None\. Got '5s'"):
        sn.SymbolicRegressor(budget="5s").fit(X, X[:, 0])  # type: ignore[arg-type]
    with pytest.raises(sn.ParameterError, match=r"^'operators' must be a list of names of operators, such as"):
        sn.SymbolicRegressor(operators=[np.sin]).fit(X, X[:, 0])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (whole(0, 2), [0, 2, np.int64(1)], [3, -1, 1.0, True, "1", None]),
        (number(0.0, 1.0), [0, 1.0, np.float32(0.5)], [1.1, float("nan"), False, "0", 1j]),
        (number(0.0, above=True), [1e-300, 5], [0, -1.0, float("inf"), 10**400]),
        (one_of("term", "free"), ["term"], ["Term", "", None, ["term"]]),
        (list_of(whole(1), "counts"), [[1, 2], (3,), np.array([4])], ["12", {1}, [0], 1, np.ones((2, 2))]),
        (NAMES, [["a"], ("a", "b"), np.array(["a"])], ["a", [1], [""], {"a": 1}, range(2)]),
        (LAMBDAS, [(1.0,), [1, 2, 3]], [(), (1, 2, 3, 4), (-1.0,), 1.0]),
        (CORES, [1, -1, 64], [0, 1.0, True, 10**400]),
        (SEED, [0, np.random.default_rng(0), np.random.RandomState(0)], [-1, 2**32, "0", 0.5]),
        (PATH, ["a", Path("b")], ["", "a\0", "\ud800", "a" * 300, 1]),
        (whole(1) | NOTHING, [1, None], [0, False]),
    ],
    ids=lambda value: value.words if isinstance(value, Kind) else "",
)
def test_a_kind_holds_what_its_words_say(kind: Kind, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        check("it", value, kind)
    for value in bad:
        with pytest.raises(sn.ParameterError, match="'it' must be "):
            check("it", value, kind)


def test_arguments_are_looked_at_by_place_and_by_name() -> None:
    @checked(speed=number(0.0))
    def throw(speed: float, order: int = 1) -> tuple[float, int]:
        """Throw."""
        return speed, order

    assert throw(1.0, order=2) == (1.0, 2) and throw.__doc__ == "Throw."
    for call in (lambda: throw(-1.0), lambda: throw(1.0, 3), lambda: throw(speed=1.0, order=True)):
        with pytest.raises(sn.ParameterError):
            call()
    assert list(kinds_of(throw)) == ["speed", "order"]
