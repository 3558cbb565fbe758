"""Exports are tested by computing: each language's text, run, gives the numbers of the expression."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.errors import DataError, ExpressionError, ParameterError
from sobolev_novelty.language.convert import LANGUAGES, to_numpy
from sobolev_novelty.language.convert.languages import safe_identifiers
from sobolev_novelty.ui.cli.main import app
from strategies import expressions

RNG = np.random.default_rng(0)
TABLE = np.vstack([RNG.uniform(-2, 2, (60, 2)), RNG.uniform(0.1, 0.9, (20, 2)), [[5e-4, 2.0], [2.0, -5e-4]]])
OF_OPERATOR = {
    name: Expression.of(op, *("x0", "x1")[: op.arity]) if op.arity == 1 else Expression.of(op, "x0", "x1")
    for name, op in OPERATORS.items()
}
#: Numbers that meet numbers, numbers on either side, a deep chain, and a template that repeats its operands.
SHAPES = [
    "1.5", "x1", "2**3 + x0*0 + sin(2)", "min(x0, 0.25) + max(-1.5, x1)", "gpdiv(x0 + 1, x1*x0)", "aq(2, x0)",
    "x0**2 - x1**3 + (x0 - 1.25)*(x1 + 1e-7)", "+".join(f"sin({k}*x0 + x1)" for k in range(40)),
    "sin(" * 45 + "x0" + ")" * 45, "-x0**2", "2**x0", "cbrt(3) + cbrt(x0) + sign(x1)",
]  # fmt: skip
CASES = {**OF_OPERATOR, **{text[:30]: sn.parse(text, names=["x0", "x1"]) for text in SHAPES}}


def ran(source: str, name: str = "f") -> Callable[..., object]:
    space: dict[str, object] = {}
    exec(compile(source, "exported", "exec"), space)
    return space[name]  # type: ignore[return-value]


def expected(expression: Expression) -> np.ndarray:
    return sn.evaluate(expression, TABLE)


@pytest.mark.parametrize("name", CASES)
def test_numpy_computes_the_same(name: str) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ran(CASES[name].to("numpy"))(TABLE), expected(CASES[name]), rtol=1e-12, atol=1e-12)


#: What is not a number, too large, too small, and where the protected operators change.
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-320, 5e-4, -5e-4, 1e-3, 1.5, -1.5, 1e308, -1e308]
SPECIAL_TABLE = np.array([[a, b] for a in SPECIAL for b in SPECIAL])


def special(expression: Expression) -> np.ndarray:
    with np.errstate(all="ignore"):
        return to_numpy(expression, ["x0", "x1"])(SPECIAL_TABLE)


@pytest.mark.torch
@pytest.mark.parametrize("name", OF_OPERATOR)
def test_torch_computes_the_same_of_numbers_that_are_none(name: str) -> None:
    torch = pytest.importorskip("torch")
    values = ran(OF_OPERATOR[name].to("torch", names=["x0", "x1"]))(torch.tensor(SPECIAL_TABLE)).numpy()
    np.testing.assert_allclose(values, special(OF_OPERATOR[name]), rtol=1e-9, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_torch_computes_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    values = ran(CASES[name].to("torch"))(torch.tensor(TABLE))
    assert values.dtype == torch.float64
    np.testing.assert_allclose(values.numpy(), expected(CASES[name]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_jax_computes_the_same(name: str) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        values = np.asarray(ran(CASES[name].to("jax"))(jax.numpy.asarray(TABLE)))
    np.testing.assert_allclose(values, expected(CASES[name]), rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_computes_the_same(tmp_path: Path) -> None:
    functions = [e.to("c", function_name=f"f{k}", names=["x0", "x1"]) for k, e in enumerate(CASES.values())]
    (tmp_path / "all.c").write_text("\n\n".join(functions), encoding="utf-8")
    library = tmp_path / "all.so"
    command = ["cc", "-O1", "-std=c99", "-Wall", "-Werror", "-shared", "-fPIC", "all.c", "-o", str(library), "-lm"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded = ctypes.CDLL(str(library))
    rows = [(ctypes.c_double * 2)(*row) for row in TABLE]
    for k, (name, expression) in enumerate(CASES.items()):
        function = getattr(loaded, f"f{k}")
        function.restype = ctypes.c_double
        values = [function(row) for row in rows]
        np.testing.assert_allclose(values, expected(expression), rtol=1e-9, atol=1e-12, err_msg=name)


def in_excel(formula: str, a: float, b: float) -> float:
    """Excel's functions in Python; an error of Excel's is nan."""
    functions = {
        "POWER": lambda x, y: math.nan if x < 0 and y != int(y) else float(np.power(x, y)),
        "IF": lambda test, yes, no: yes if test else no, "LN": math.log, "LOG": math.log, "LOG10": math.log10,
        "SIGN": lambda x: float(np.sign(x)), "ABS": abs, "MIN": min, "MAX": max, "SQRT": math.sqrt, "EXP": math.exp,
        **{name.upper(): getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
        **{name.upper(): getattr(math, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    }  # fmt: skip
    try:
        return float(eval(formula.removeprefix("="), {"__builtins__": {}}, functions | {"A2": a, "B2": b}))
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan


@pytest.mark.parametrize("name", CASES)
def test_excel_formulas_compute_the_same(name: str) -> None:
    formula = CASES[name].to("excel", names=["x0", "x1"])
    values = np.array([in_excel(formula, *row) for row in TABLE.tolist()])
    known = np.isfinite(values)
    np.testing.assert_allclose(values[known], expected(CASES[name])[known], rtol=1e-9, atol=1e-9)
    assert known.sum() == np.isfinite(expected(CASES[name])).sum()


def workbook(path: Path, rows: list[list[str]]) -> None:
    """A sheet of numbers and formulas in Excel's own format, from its first cell on."""
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    office = "http://schemas.openxmlformats.org"
    main, relations = f"{office}/spreadsheetml/2006/main", f"{office}/package/2006/relationships"
    kinds = f"{office}/officeDocument/2006/relationships"

    def cell(text: str) -> str:
        return f"<c><f>{escape(text[1:])}</f></c>" if text.startswith("=") else f"<c><v>{text}</v></c>"

    sheet = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    part = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{part}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" '
        f'ContentType="{part}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{kinds}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kinds}"><sheets><sheet name="s" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
        f'Type="{kinds}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, head + content)


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_a_real_spreadsheet_computes_the_same(tmp_path: Path) -> None:
    rows = TABLE[::9]
    formulas = [case.to("excel", names=["x0", "x1"]) for case in CASES.values()]
    cells = [["0", "0", *("0" for _ in formulas)]]
    for n, (a, b) in enumerate(rows.tolist(), start=2):
        here = [re.sub(r"\b([AB])2\b", rf"\g<1>{n}", formula) for formula in formulas]
        cells.append([repr(a), repr(b), *here])
    workbook(tmp_path / "sheet.xlsx", cells)
    profile = (tmp_path / "profile").as_uri()
    command = ["soffice", f"-env:UserInstallation={profile}", "--headless", "--convert-to", "csv", "sheet.xlsx"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=180)
    shown = pd.read_csv(tmp_path / "sheet.csv", header=None, skiprows=1).apply(pd.to_numeric, errors="coerce")
    for k, (name, case) in enumerate(CASES.items()):
        true, found = sn.evaluate(case, rows), shown.iloc[:, 2 + k].to_numpy()
        both = np.isfinite(true) & np.isfinite(found)
        np.testing.assert_allclose(found[both], true[both], rtol=1e-6, atol=1e-6, err_msg=name)
        assert both.sum() == np.isfinite(true).sum(), name


@pytest.mark.parametrize("name", CASES)
def test_julia_is_one_function_with_balanced_brackets(name: str) -> None:
    source = CASES[name].to("julia", names=["x0", "x1"])
    assert "std::" not in source and "{" not in source
    assert source.count("(") == source.count(")")
    code = source.split("\n\n")[-1].splitlines()
    assert code[0] == "function f(x0, x1)" and code[-1] == "end"
    assert code[-2].startswith("    return ")


def test_every_operator_has_an_excel_formula_and_latex_rounds() -> None:
    assert set(LANGUAGES) == {"numpy", "jax", "torch", "c", "cpp", "julia", "excel", "latex", "sympy"}
    e = sn.parse("2.123456*sin(x0) - 0.000123456")
    assert e.to("latex", precision=3) == r"2.12 \, \sin\left(x_{0}\right) - 0.000123"
    assert str(e.to("sympy", precision=2)) == "2.1*sin(x0) - 0.00012"
    assert e.to("excel", precision=2) == "=((2.1*SIN(A2))-0.00012)"


HOSTILE = [
    "a\nimport os", "x'; DROP", "end", "*/ int", "ü", "2nd", "?? /", "sin", "body mass", "body_mass",
    "__import__('pathlib').Path('pwned').touch()", "E", "I", "S", "beta", "min", "lambda", "a\n\nb", "$",
    "\\input{x}", "%", "=1+1", "#= x", "`run`", "$(run)", "x\\", "a\rb", "x0", "_t0", "\x00", "\u2028y = 1", "f",
]  # fmt: skip


@pytest.mark.parametrize("language", ["numpy", "torch", "jax", "c", "cpp", "julia", "excel"])
def test_hostile_names_stay_names(language: str, tmp_path: Path) -> None:
    e = Expression.of(HOSTILE[0])
    for name in HOSTILE[1:]:
        e = Expression.of("add", e, Expression.of("sin", name))
    source = e.to(language, names=HOSTILE)
    code = "\n".join(line for line in source.split("\n") if not re.match(r"\s*(#[^=]|//)", line) or "include" in line)
    words = "[A-Za-z_][A-Za-z_0-9]*"
    assert re.fullmatch(rf"(?:{words}|[0-9.]+(?:e-?[0-9]+)?|[-+*/=()\[\],:;.<>{{}}? \n#&|^]|std::)*", code), code
    row = RNG.normal(size=(3, len(HOSTILE)))
    expected_values = row[:, 0] + np.sin(row[:, 1:]).sum(axis=1)
    if language == "numpy":
        np.testing.assert_allclose(ran(source)(row), expected_values)
    if language in ("c", "cpp") and shutil.which("cc"):
        path = tmp_path / f"f.{language}"
        path.write_text(source, encoding="utf-8")
        compiler = ["cc", "-Wall", "-Wno-comment", "-Werror", "-trigraphs", "-c", path.name]
        subprocess.run(compiler, cwd=tmp_path, check=True)


@pytest.mark.parametrize("name", HOSTILE)
def test_sympy_reads_every_name_back_as_a_symbol_and_runs_none(name: str, tmp_path: Path, monkeypatch) -> None:
    sympy = pytest.importorskip("sympy")
    monkeypatch.chdir(tmp_path)
    e = Expression.of("add", Expression.of("sin", name), Expression.of("mul", 2.0, "x1"))
    for columns in ([name, "x1"], None):
        text = str(e.to("sympy", names=columns))
        read = sympy.sympify(text)
        assert len(read.free_symbols) == 2 and read == e.to("sympy", names=columns), text
    assert not list(tmp_path.iterdir())


def test_renamed_inputs_of_sympy_stay_different() -> None:
    pytest.importorskip("sympy")
    e = Expression.of(HOSTILE[0])
    for name in HOSTILE[1:]:
        e = Expression.of("add", e, name)
    assert len(e.to("sympy").free_symbols) == len(HOSTILE)
    assert {str(symbol) for symbol in sn.to_sympy(e).free_symbols} == set(HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.filterwarnings("ignore:Font")
def test_latex_reads_every_name_back_as_text(name: str) -> None:
    mathtext = pytest.importorskip("matplotlib.mathtext")
    text = Expression.of("mul", 2.0, Expression.of("sin", name)).to("latex")
    assert text.isprintable() and "\\input" not in text
    mathtext.MathTextParser("path").parse(f"${text}$")


def test_the_command_line_exports_names_that_are_code_as_words(tmp_path: Path, monkeypatch) -> None:
    sympy = pytest.importorskip("sympy")
    monkeypatch.chdir(tmp_path)
    header = "__import__('pathlib').Path('pwned').touch()"
    run = CliRunner().invoke(app, ["export", f"2*sin(`{header}`)", "--to", "sympy", "--names", header])
    assert run.exit_code == 0, run.output
    assert len(sympy.sympify(run.stdout).free_symbols) == 1
    assert not (tmp_path / "pwned").exists()


def test_identifiers_are_safe_and_differ() -> None:
    made = safe_identifiers(HOSTILE, frozenset(["end", "sin"]))
    assert len(set(made.values())) == len(HOSTILE)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name not in ("end", "sin") for name in made.values())
    assert made["body_mass"] == "body_mass" and made["body mass"] == "body_mass_1"


def test_what_cannot_be_exported_is_refused() -> None:
    e = sn.parse("x0")
    with pytest.raises(ParameterError, match="'language' must be one of numpy, jax, torch"):
        e.to("fortran")
    with pytest.raises(ParameterError, match="'precision' must be a whole number from 1 to 17, or None. Got 0."):
        e.to("c", precision=0)
    for word in ("lambda", "double", "end", "a b", "x; y"):
        with pytest.raises(ParameterError, match="'function_name'"):
            e.to("c", function_name=word)
    with pytest.raises(ExpressionError, match="Excel takes 8191"):
        sn.parse("+".join(f"sin({k}*x0)" for k in range(900))).to("excel")
    with pytest.raises(ExpressionError, match="Give 'names' in the order of the columns"):
        sn.parse("mass").to("c")


def test_expressions_can_be_called() -> None:
    e = sn.parse("mass*speed**2/2 + 1")
    assert e(mass=2.0, speed=3.0) == 10.0
    np.testing.assert_array_equal(e(mass=[1.0, 2.0], speed=2.0), [3.0, 5.0])
    frame = pd.DataFrame({"speed": [1.0, 2.0], "mass": [2.0, 4.0], "other": ["a", "b"]})
    np.testing.assert_array_equal(e(frame), [2.0, 9.0])
    np.testing.assert_array_equal(sn.parse("x1 + 1")([[1.0, 2.0], [3.0, 4.0]]), [3.0, 5.0])
    assert sn.parse("2*3")() == 6.0
    assert math.isnan(sn.parse("log(x0)")(x0=-1.0))
    with pytest.raises(ExpressionError, match="The expression needs 'speed'. Got mass."):
        e(mass=1.0)
    with pytest.raises(DataError, match="A table must have two dimensions"):
        sn.parse("x0")([1.0, 2.0])


@settings(max_examples=50, deadline=None)
@given(expressions())
def test_any_expression_is_the_same_in_numpy_and_in_a_call(expression: Expression) -> None:
    names = ["x0", "x1", "x2", "x3"]
    table = np.random.default_rng(1).uniform(0.5, 1.5, (20, 4))
    with np.errstate(all="ignore"):
        exported = ran(expression.to("numpy", names=names))(table)
        np.testing.assert_allclose(expression(table), exported, rtol=1e-9, atol=1e-12)


def test_the_command_line_exports(tmp_path: Path) -> None:
    run = CliRunner().invoke(
        app, ["export", "2*sin(mass) - speed", "--to", "c", "--names", "mass,speed", "--function", "g"]
    )
    assert run.exit_code == 0, run.output
    assert "double g(const double* x) {" in run.stdout and "return ((2.0 * sin(x[0])) - x[1]);" in run.stdout
    out = tmp_path / "f.jl"
    run = CliRunner().invoke(app, ["export", "x0**2", "--to", "julia", "--out", str(out)])
    assert run.exit_code == 0 and out.read_text(encoding="utf-8").startswith("or_nan")
    run = CliRunner().invoke(app, ["export", "x0", "--to", "fortran"])
    assert run.exit_code == 1 and "--to must be one of numpy" in run.stderr
    run = CliRunner().invoke(app, ["export", "--to", "c"])
    assert run.exit_code == 1 and "Give EQUATION or --model" in run.stderr
    model = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=100), random_state=0)
    frame = pd.DataFrame({"mass": np.linspace(1, 2, 50)})
    model.fit(frame, 3.0 * frame["mass"] ** 2).save(tmp_path / "model.json")
    run = CliRunner().invoke(app, ["export", "--model", str(tmp_path / "model.json"), "--to", "numpy", "--json"])
    assert run.exit_code == 0 and "def f(X):" in run.stdout
    shown = CliRunner().invoke(app, ["export", "--help"], env={"COLUMNS": "300"}).stdout
    assert all(language in shown for language in LANGUAGES)
