"""Odd values for every argument of every public call, and valid calls to put them into."""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sobolev_novelty as sn

X = np.linspace(-1.0, 1.0, 80).reshape(40, 2)[:, ::-1] ** [1, 3] + [[0.1, 0.2]]
Y = 2.0 * X[:, 0] + np.cos(3.0 * X[:, 1])
TIMES = np.linspace(0.0, 4.0, 60)
STATES = 3.0 / (1.0 + 9.0 * np.exp(-1.2 * TIMES))[:, None]
SECONDS = 15


class Unspeakable:
    """An object that fails whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    __hash__ = None  # type: ignore[assignment]


#: Name -> how the value is made anew for each call: some can be read once only.
ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None, "True": lambda: True, "False": lambda: False, "0": lambda: 0, "1": lambda: 1,
    "-1": lambda: -1, "3": lambda: 3, "-7": lambda: -7, "10**400": lambda: 10**400, "-10**400": lambda: -(10**400),
    "0.5": lambda: 0.5, "1.5": lambda: 1.5, "-0.5": lambda: -0.5, "nan": lambda: float("nan"),
    "inf": lambda: float("inf"), "-inf": lambda: float("-inf"), "1e308": lambda: 1e308, "1j": lambda: 1j,
    "np.int64(2)": lambda: np.int64(2), "np.float64(0.5)": lambda: np.float64(0.5),
    "''": lambda: "", "x0": lambda: "x0", "nonsense": lambda: "no such thing", "5s": lambda: "5s", "'1'": lambda: "1",
    "bytes": lambda: b"x0", "surrogate": lambda: "\ud800", "nul": lambda: "a\x00b", "long": lambda: "a" * 100_000,
    "[]": list, "[1]": lambda: [1], "[1, 2]": lambda: [1, 2], "['x0']": lambda: ["x0"], "[None]": lambda: [None],
    "[[]]": lambda: [[]], "[nan, nan]": lambda: [float("nan")] * 2, "['a', 'a']": lambda: ["a", "a"],
    "(1, 2, 3, 4)": lambda: (1, 2, 3, 4), "{}": dict, "{'x0': 1}": lambda: {"x0": 1}, "{1: 2}": lambda: {1: 2},
    "{'x0': 'm'}": lambda: {"x0": "m"}, "{'sin': {'sin': -1}}": lambda: {"sin": {"sin": -1}},
    "{1}": lambda: {1}, "range": lambda: range(3), "iterator": lambda: iter([1.0]), "object": object,
    "type": lambda: int, "function": lambda: (lambda *a, **k: None), "failing": lambda: _fails, "...": lambda: ...,
    "array of nan": lambda: np.full(40, np.nan), "empty array": lambda: np.array([]),
    "0-d array": lambda: np.array(5.0), "3-d array": lambda: np.zeros((2, 2, 2)),
    "array of text": lambda: np.array(["a"] * 40),
    "dates": lambda: np.array(["2020-01-01"] * 40, dtype="M8[D]"), "complex": lambda: np.ones((40, 2)) * 1j,
    "structured": lambda: np.zeros(40, dtype=[("a", float), ("b", float)]), "object array": lambda: np.array([{}] * 40),
    "masked": lambda: np.ma.masked_array(np.ones((40, 2)), mask=np.eye(40, 2)),
    "Decimal": lambda: decimal.Decimal("0.5"), "Decimal nan": lambda: decimal.Decimal("NaN"),
    "Fraction": lambda: fractions.Fraction(1, 2),
    "empty frame": pd.DataFrame, "text frame": lambda: pd.DataFrame({"a": ["u"] * 40, "b": 1.0}),
    "dates frame": lambda: pd.DataFrame({"a": pd.date_range("2020", periods=40), "b": 1.0}),
    "text series": lambda: pd.Series(["u"] * 40), "NA": lambda: pd.NA, "NaT": lambda: pd.NaT,
    "now": lambda: datetime.datetime(2020, 1, 1), "path": lambda: Path("no/such/file"), "slice": lambda: slice(1),
    "memoryview": lambda: memoryview(b"ab"), "unspeakable": Unspeakable, "module": lambda: np,
    "dict of columns": lambda: {"x0": X[:, 0], "x1": X[:, 1]}, "Ellipsis list": lambda: [..., ...],
}  # fmt: skip


def _fails(*args: Any, **kwargs: Any) -> Any:
    raise KeyError("an own function")


def fitted() -> sn.SymbolicRegressor:
    search = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=40), random_state=0)
    return search.fit(X, Y)


def moving() -> sn.DynamicsRegressor:
    search = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=60), random_state=0)
    return sn.DynamicsRegressor(search, refine=False).fit(STATES, TIMES)


def fit_with(**options: Any) -> Any:
    """A fit with one option of its own: constructors of estimators only store."""
    return sn.SymbolicRegressor(**{"budget": sn.Budget(max_evaluations=20), **options}).fit(X, Y)


def engine_with(kind: type[Any]) -> Callable[..., Any]:
    def fit(**options: Any) -> Any:
        return fit_with(engine=kind(**options))

    return fit


def dynamics_with(**options: Any) -> Any:
    search = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=20), random_state=0)
    return sn.DynamicsRegressor(**{"regressor": search, "refine": False, **options}).fit(STATES, TIMES)


def calls(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any], Any]]:
    """Name -> function, a valid call, and where the names of its parameters are."""
    model, system = fitted(), moving()
    report = sn.novelty("x0 + cos(3*x1)", X, Y)
    equation, e = "x0 + cos(3*x1)", sn.parse("2*x0 + cos(3*x1)")
    plain: dict[str, tuple[Any, dict[str, Any]]] = {
        "novelty": (sn.novelty, {"equation": equation, "X": X, "y": Y}),
        "novelty, bootstrap": (sn.novelty, {"equation": equation, "X": X, "n_bootstrap": 2}),
        "novelties": (sn.novelties, {"equations": [equation], "X": X}),
        "conditional_novelty": (sn.conditional_novelty, {"new_terms": ["x0"], "given": ["x1"], "X": X}),
        "novelty_of_arrays": (sn.novelty_of_arrays, {"values": X.T, "gradients": np.ones((2, 1, 40))}),
        "novelty_of_chunks": (sn.novelty_of_chunks, {"equation": equation, "chunks": [X]}),
        "rank": (sn.rank, {"model": [equation], "X": X, "y": Y}),
        "next_rows": (sn.next_rows, {"models": [equation, "2*x0"], "X": X, "n": 2, "sigma": 0.1}),
        "next_rows, pool": (sn.next_rows, {"models": equation, "X": X, "y": Y, "pool": X, "n": 2}),
        "prune": (sn.prune, {"equation": equation, "X": X, "y": Y}),
        "rerank": (sn.rerank, {"candidates": [equation], "X": X, "scores": [0.5]}),
        "feedback": (sn.feedback, {"equation": equation, "X": X}),
        "accepts": (sn.accepts, {"equation": equation, "X": X}),
        "intervals": (sn.intervals, {"equation": equation, "X": X, "y": Y}),
        "term_intervals": (sn.term_intervals, {"terms": sn.additive_terms(e).terms, "X": X, "y": Y}),
        "check_domain": (sn.check_domain, {"equation": equation, "X": X}),
        "check_units": (sn.check_units, {"equation": "m*v", "units": {"m": "kg", "v": "m/s"}}),
        "evaluate": (sn.evaluate, {"expression": equation, "X": X}),
        "parse": (sn.parse, {"text": equation}),
        "additive_terms": (sn.additive_terms, {"expression": e}),
        "sum_of_terms": (sn.sum_of_terms, {"terms": sn.additive_terms(e).terms}),
        "from_sympy": (sn.from_sympy, {"obj": sn.to_sympy(e)}),
        "to_sympy": (sn.to_sympy, {"expression": e}),
        "to_latex": (sn.to_latex, {"expression": e}),
        "to_numpy": (sn.to_numpy, {"expression": e}),
        "to_cpp": (sn.to_cpp, {"expression": e}),
        "register_engine": (sn.register_engine, {"name": "mcts", "engine": "sobolev_novelty.engines.mcts:MCTS"}),
        "register_operator": (sn.register_operator, {"name": "odd_one", "function": np.tanh, "replace": True}),
        "unregister_operator": (sn.unregister_operator, {"name": "odd_one"}),
        "Budget": (sn.Budget, {"max_evaluations": 10}),
        "SobolevGuidance": (sn.SobolevGuidance, {}),
        "Constraints": (sn.Constraints, {}),
        "Units": (sn.Units, {}),
        "Islands": (sn.Islands, {}),
        "Limits": (sn.Limits, {"prices": (1.0, 2.0)}),
        "ChatProposer": (sn.ChatProposer, {"base_url": "http://127.0.0.1:1/v1", "model": "m"}),
        "GrammarSampler": (sn.GrammarSampler, {}),
        "Transcript": (sn.Transcript, {"path": folder / "transcript.jsonl"}),
        "TermArchive": (sn.TermArchive, {}),
        "TermArchive.update": (lambda **k: sn.TermArchive().update(**k), {"terms": ["x0"], "X": X}),
        "NoveltyAccumulator": (sn.NoveltyAccumulator, {"equation": equation}),
        "NoveltyAccumulator.update": (lambda **k: sn.NoveltyAccumulator(equation).update(**k), {"X": X}),
        "NoveltyAccumulator.merge": (sn.NoveltyAccumulator(equation).merge, {"other": sn.NoveltyAccumulator(equation)}),
        "NoveltyAccumulator.from_bytes": (sn.NoveltyAccumulator.from_bytes, {"data": b""}),
        "report.explain": (report.explain, {"i": 0}),
        "report.to_json": (report.to_json, {}),
        "report.to_html": (report.to_html, {}),
        "Expression.of": (sn.Expression.of, {"head": 1.0}),
        "Expression": (sn.Expression, {"tokens": (1.0,)}),
        "Expression.to": (e.to, {"language": "latex"}),
        "Expression.rounded": (e.rounded, {"digits": 3}),
        "Expression.rename": (e.rename, {"names": {"x0": "a"}}),
        "model.predict": (model.predict, {"X": X}),
        "model.score": (model.score, {"X": X, "y": Y}),
        "model.latex": (model.latex, {}),
        "model.latex_table": (model.latex_table, {}),
        "model.sympy": (model.sympy, {}),
        "model.choose": (model.choose, {"index": 0}),
        "model.novelty_report": (model.novelty_report, {"X": X, "y": Y}),
        "model.intervals": (model.intervals, {"X": X, "y": Y}),
        "model.save": (model.save, {"path": folder / "model.json"}),
        "SymbolicRegressor.load": (sn.SymbolicRegressor.load, {"path": folder / "model.json"}),
        "system.predict": (system.predict, {"X": STATES}),
        "system.integrate": (system.integrate, {"t": TIMES, "x0": [0.3]}),
        "system.solve": (system.solve, {"t": TIMES, "x0": [0.3]}),
        "system.check": (system.check, {"X": STATES, "t": TIMES}),
        "system.score": (system.score, {"X": STATES, "t": TIMES}),
        "system.novelty_report": (system.novelty_report, {"state": system.states_[0]}),
        "system.save": (system.save, {"path": folder / "system.json"}),
        "DynamicsRegressor.load": (sn.DynamicsRegressor.load, {"path": folder / "system.json"}),
        "fit": (lambda **k: sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=20)).fit(**k), {"X": X, "y": Y}),
        "system.fit": (dynamics_fit, {"X": STATES, "t": TIMES}),
    }
    found = {name: (function, valid, function) for name, (function, valid) in plain.items()}
    found["fit"] = (found["fit"][0], found["fit"][1], sn.SymbolicRegressor.fit)
    found["system.fit"] = (found["system.fit"][0], found["system.fit"][1], sn.DynamicsRegressor.fit)
    found["TermArchive.update"] = (*found["TermArchive.update"][:2], sn.TermArchive.update)
    found["NoveltyAccumulator.update"] = (*found["NoveltyAccumulator.update"][:2], sn.NoveltyAccumulator.update)
    found["SymbolicRegressor"] = (fit_with, {}, sn.SymbolicRegressor)
    found["DynamicsRegressor"] = (dynamics_with, {}, sn.DynamicsRegressor)
    for kind in (sn.Genetic, sn.MCTS, sn.IGSR):
        found[kind.__name__] = (engine_with(kind), {}, kind)
    return found


def dynamics_fit(**rows: Any) -> Any:
    search = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=20), random_state=0)
    return sn.DynamicsRegressor(search, refine=False).fit(**rows)


def parameters_of(where: Any) -> dict[str, str]:
    """The names of parameters with their annotations."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(where).parameters.values()
    return {p.name: str(p.annotation) for p in found if p.kind in kinds and p.name != "self"}


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[str, BaseException | None]:
    """What a call came to: "taken", "refused" by an error of ours, "foreign" or "slow"."""
    try:
        with at_most(SECONDS):
            function(**arguments)
    except sn.SobolevError as error:
        return "refused", error
    except TimeoutError as error:
        return "slow", error
    except Exception as error:
        return "foreign", error
    return "taken", None


__all__ = ["ODD", "SECONDS", "X", "Y", "calls", "outcome", "parameters_of"]
