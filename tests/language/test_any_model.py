"""Whatever a scientist has in hand goes into novelty, prune and rank as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sympy
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.core.operators.function_terms import is_function_list
from sobolev_novelty.language.peers.pysr import is_hall_of_fame
from sobolev_novelty.ui.cli.main import app

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 2))
FRAME = pd.DataFrame(X, columns=["mass", "speed"])
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2
HALL = """Complexity,Loss,Equation
1,4.2,"x1"
3,1.5,"x0 * x1"
8,0.01,"(square(x1) * 0.5) + sin(x0)"
12,0.0099,"(square(x1) * 0.5) + sin(x0) + (x0 * 1.0e-3)"
"""


@pytest.fixture
def hall(tmp_path: Path) -> Path:
    (tmp_path / "hall_of_fame.csv").write_text(HALL, encoding="utf-8")
    return tmp_path / "hall_of_fame.csv"


def test_numbered_variables_are_the_columns_of_a_dataframe() -> None:
    expression = sn.parse("sin(x0) + x1**2")
    symbols = sympy.sin(sympy.Symbol("x0")) + sympy.Symbol("x1") ** 2
    counted_from_one = sympy.sin(sympy.Symbol("x_1")) + sympy.Symbol("x_2") ** 2
    for equation in (expression, symbols, counted_from_one, "sin(x0) + x1**2", "sin(X1) + X2^2"):
        assert set(sn.novelty(equation, FRAME).expression.variables) == {"mass", "speed"}
        np.testing.assert_allclose(sn.novelty(equation, FRAME).nu, sn.novelty("sin(x0) + x1**2", X).nu)


def test_columns_that_are_called_x1_are_themselves() -> None:
    frame = pd.DataFrame(X, columns=["x1", "x0"])
    assert sn.evaluate(sn.parse("x1"), frame).tolist() == X[:, 0].tolist()


def test_our_regressor_goes_in_and_its_front_is_ranked() -> None:
    model = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=300), random_state=0).fit(FRAME, Y)
    assert sn.novelty(model, FRAME).expression == model.expression_
    assert set(sn.prune(model, FRAME, Y).expression.variables) <= {"mass", "speed"}
    table = sn.rank(model, FRAME)
    assert table["equation"].tolist() == model.equations_["expression"].tolist()
    np.testing.assert_allclose(table["min_novelty"], model.equations_["min_novelty"], rtol=1e-6)
    np.testing.assert_allclose(sn.rank(model, FRAME, Y)["loss"], model.equations_["loss"], rtol=1e-6, atol=1e-12)


def test_a_model_fitted_on_names_reads_an_array_in_its_order() -> None:
    model = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=200), random_state=0).fit(FRAME, Y)
    np.testing.assert_allclose(sn.evaluate(model, X), model.predict(FRAME))
    np.testing.assert_allclose(sn.evaluate(model, FRAME[["speed", "mass"]]), model.predict(FRAME))


def test_our_regressor_behind_a_scaler_is_read_in_the_users_units() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    inner = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=200), random_state=0)
    model = make_pipeline(StandardScaler(), inner).fit(FRAME, Y)
    np.testing.assert_allclose(sn.evaluate(model, FRAME), model.predict(FRAME), rtol=1e-9)
    assert set(sn.novelty(model, FRAME).expression.variables) <= {"mass", "speed"}


@pytest.mark.parametrize(
    "broken", [b"Complexity,Loss,Equation\nmany,1.0,x0\n", b"Complexity,Loss,Equation\n1,,x0\n", b"\xff\xfe\x00"]
)
def test_a_broken_hall_of_fame_is_refused_in_words(broken: bytes, tmp_path: Path) -> None:
    (tmp_path / "hall_of_fame.csv").write_bytes(broken)
    with pytest.raises(sn.DataError, match="Is it a hall of fame of PySR"):
        sn.novelty(tmp_path, X)


def test_a_long_equation_in_a_file_is_not_taken_for_a_table() -> None:
    assert not is_hall_of_fame("+".join(["x0"] * 100_000))
    assert is_hall_of_fame(HALL) and is_hall_of_fame('"Complexity","Loss","Equation"\n')


def test_a_hall_of_fame_is_a_model(hall: Path) -> None:
    assert str(sn.novelty(hall, X).expression) == "square(x1)*0.5 + sin(x0)"
    assert set(sn.novelty(hall.parent, FRAME).expression.variables) == {"mass", "speed"}
    table = sn.rank(hall, FRAME)
    assert table["complexity"].tolist() == [1, 3, 8, 12]
    assert table["n_qualified"].tolist() == [1, 1, 2, 1]
    assert table["loss"].tolist() == [4.2, 1.5, 0.01, 0.0099]


def pysr_model(**attributes: object) -> object:
    kind = type("PySRRegressor", (), attributes | {"__module__": "pysr.sr"})
    return kind()


def test_pysr_models_with_names_several_targets_and_operators_of_ones_own() -> None:
    table = pd.DataFrame({"complexity": [1, 2], "loss": [2.0, 1.0], "equation": ["X1", "square(X0) + X1"]})
    named = pysr_model(equations_=table, feature_names_in_=np.array(["X1", "X0"]), get_best=lambda self: table.iloc[1])
    frame = pd.DataFrame(X, columns=["X1", "X0"])
    np.testing.assert_allclose(sn.evaluate(sn.novelty(named, frame).expression, frame), X[:, 1] ** 2 + X[:, 0])
    assert len(sn.rank(named, frame)) == 2

    several = pysr_model(equations_=[table, table], get_best=lambda self: [table.iloc[0], table.iloc[1]])
    reports = sn.novelty(several, X)
    assert {name: str(report.expression) for name, report in reports.items()} == {"y0": "x1", "y1": "square(x0) + x1"}

    own = table.assign(equation=["X1", "mine(X0)"], sympy_format=[sympy.Symbol("X1"), sympy.cos(sympy.Symbol("x0"))])
    strange = pysr_model(equations_=own, get_best=lambda self: own.iloc[1])
    assert str(sn.novelty(strange, X).expression) == "cos(x0)"


def test_the_command_line_reads_a_hall_of_fame(hall: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    FRAME.assign(third=1.0 * np.arange(200)).to_csv(data, index=False)
    run = CliRunner().invoke(app, ["report", str(data), "--file", str(hall), "--features", "mass,speed", "--json"])
    assert run.exit_code == 0, run.stderr
    assert '"square(speed)"' in run.stdout or "speed" in run.stdout
    assert "Note: equation 2 (of 0 to 3) of the hall of fame is taken, PySR's own choice" in run.stderr
    # x1 alone could be column 1 or 2 in plain text; PySR counts from 0.
    run = CliRunner().invoke(app, ["report", str(data), "--file", str(hall), "--row", "0", "--json"])
    assert run.exit_code == 0, run.stderr
    assert '"expression": "speed"' in run.stdout
    run = CliRunner().invoke(app, ["report", str(data), "--file", str(hall), "--row", "7"])
    assert run.exit_code == 1
    assert "--row must be an equation of the hall of fame, 0 to 3. Got 7." in run.stderr
    (tmp_path / "plain.txt").write_text("mass + speed\n", encoding="utf-8")
    run = CliRunner().invoke(app, ["report", str(data), "--file", str(tmp_path / "plain.txt"), "--row", "0"])
    assert run.exit_code == 1
    assert "--row needs a hall of fame of PySR" in run.stderr


def test_functions_are_terms_and_the_report_says_how_they_were_differentiated() -> None:
    functions = [
        lambda X: np.sin(X[:, 0]), lambda x0: x0, lambda a, b: a * b, lambda X: np.abs(X[:, 1]), lambda X: 1.0,
    ]  # fmt: skip
    report = sn.novelty(functions, X)
    same = sn.novelty(["sin(x0)", "x0", "x0*x1", "abs(x1)", "1"], X)
    np.testing.assert_allclose(report.nu, same.nu, atol=1e-9)
    np.testing.assert_allclose(report.contribution, same.contribution, atol=1e-9)
    assert report.notes[0] == (
        "Derivatives: of term 0, term 1, term 2, term 4 by complex steps, of term 3 by central differences."
    )
    assert len(sn.novelty(functions, X, order=0).notes) == 0
    np.testing.assert_allclose(
        sn.novelty(functions, X, order=0).nu, sn.novelty(["sin(x0)", "x0", "x0*x1", "abs(x1)", "1"], X, order=0).nu
    )
    named = sn.novelty([lambda mass: mass**2, np.hypot], FRAME)
    np.testing.assert_allclose(named.nu, sn.novelty(["mass**2", "hypot(mass, speed)"], FRAME).nu, atol=1e-6)
    assert named.labels == ("term 0", "hypot")


def test_a_function_that_loses_the_imaginary_part_is_differentiated_by_differences() -> None:
    def hidden(X: np.ndarray) -> np.ndarray:
        return np.real(X[:, 0]) ** 2 + np.sin(X[:, 1])

    report = sn.novelty([hidden, lambda X: X[:, 1]], X)
    assert "of hidden by central differences" in report.notes[0]
    expected = sn.novelty_of_arrays(
        [X[:, 0] ** 2 + np.sin(X[:, 1]), X[:, 1]],
        [[2 * X[:, 0], np.cos(X[:, 1])], [0 * X[:, 0], 1 + 0 * X[:, 0]]],
        scales=X.std(axis=0),
    )
    np.testing.assert_allclose(report.nu, expected.nu, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"sigma": 0.3}, {"sample_weight": np.linspace(1.0, 2.0, len(X))}])
def test_functions_with_a_target_get_every_word_that_formulas_get(options: dict[str, object]) -> None:
    target = 2.0 * np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * np.cos(37.0 * X[:, 0])
    functions = [lambda X: np.sin(X[:, 0]), lambda X: X[:, 1], lambda X: np.tanh(X[:, 0] * X[:, 1])]
    found = sn.novelty(functions, X, target, **options)  # type: ignore[arg-type]
    expected = sn.novelty(["sin(x0)", "x1", "tanh(x0*x1)"], X, target, **options)  # type: ignore[arg-type]
    for one, other in zip(found.verdicts, expected.verdicts, strict=True):
        assert (one.distinct, one.needed, one.determined) == (other.distinct, other.needed, other.determined)
        for name in ("novelty", "loss", "t", "bits", "error_increase", "interval"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6)
    assert {v.determined for v in found.verdicts} == {"yes", "no"}
    assert found.fit_quality is not None and expected.fit_quality is not None
    assert found.fit_quality.r2 == pytest.approx(expected.fit_quality.r2)
    few = sn.novelty(functions[:2], X[:12], target[:12])
    assert few.has_words and few.fit_quality is not None and np.isnan(few.nu).all()


def test_functions_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(sn.ParameterError, match="has 3 parameters .a, b, c.. A function takes the whole table"):
        sn.novelty([lambda a, b, c: a], X)
    with pytest.raises(sn.DataError, match="term 0 must return one real number per row"):
        sn.novelty([lambda X: X], X)
    with pytest.raises(sn.ParameterError, match="'order' must be 0 or 1 for terms that are functions. Got 2."):
        sn.novelty([np.sin], X[:, :1], order=2)
    assert not is_function_list([sympy.Symbol("x"), sn.parse("x0")])
    assert not is_function_list([])


def test_an_unknown_kind_of_model_is_told_what_is_accepted() -> None:
    for verb in (
        lambda thing: sn.novelty(thing, X),
        lambda thing: sn.prune(thing, X, Y),
        lambda thing: sn.rank(thing, X),
    ):
        with pytest.raises(sn.ParameterError, match="a fitted model of HROCH, .*gplearn.* Got builtins.object"):
            verb(object())


def test_functions_that_write_to_their_columns_change_nothing() -> None:
    def doubled(x0: np.ndarray) -> np.ndarray:
        found = 2.0 * x0
        x0[:] = 0.0
        return found

    X = np.random.default_rng(0).uniform(1.0, 2.0, (200, 2))
    before = X.copy()
    found = sn.novelty([doubled, lambda x0, x1: x0 * x1**2], X).nu
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(found, sn.novelty(["2*x0", "x0*x1**2"], X).nu, rtol=1e-9)
