"""The corpus filter on files: the verdicts of ``accepts``, order kept, nothing fatal, any number of processes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from needs_corpus_unit import corpus_unit  # noqa: F401
from sobolev_novelty.core.expression import natural_order
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.transformer.corpus import Corpus, CorpusSettings
from sobolev_novelty.engines.transformer.corpus.text import TextJudge
from sobolev_novelty.errors import KernelError, ParameterError, SobolevError
from sobolev_novelty.lab.pretraining.corpus_filter import FormulaJudge, Inputs, filter_formulas, streaming
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.ui.cli.main import app

#: How `accepts` begins its reason.
BEGINNINGS = {
    "accepted": "All ",
    "low_novelty": "Term ",
    "too_few_rows": "Fewer than 32 rows",
    "no_terms": "The expression is zero",
}


pytestmark = pytest.mark.usefixtures("corpus_unit")


def corpus_texts(law: str, n: int, seed: int = 3) -> list[str]:
    """Formulas of our own corpus as text."""
    source = Corpus(CorpusSettings.of_law(law, seed=seed))
    return [str(candidate.expression) for candidate in islice(source.accepted(), n)]


def in_infix(text: str) -> str:
    """Inverses, squares and cubes as people write them."""
    for name, before, after in (("inv(", "(1/(", "))"), ("square(", "((", ")**2)"), ("cube(", "((", ")^3)")):
        while (start := text.find(name)) >= 0:
            depth, end = 1, start + len(name)
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            text = text[:start] + before + text[start + len(name) : end - 1] + after + text[end:]
    return text


def outcome_by_accepts(text: str, inputs: Inputs) -> tuple[str, sn.Verdict | None]:
    """What `sobolev_novelty.accepts` says, formula by formula."""
    try:
        expression = parse(text)
        variables = tuple(sorted(expression.variables, key=natural_order))
        verdict = sn.accepts(expression, inputs.sample(variables))
    except SobolevError:
        return "unreadable", None
    return next(name for name, words in BEGINNINGS.items() if verdict.reason.startswith(words)), verdict


def check_against_accepts(texts: Sequence[str], inputs: Inputs) -> dict[str, int]:
    found = FormulaJudge(inputs).outcomes(texts)
    expected = [outcome_by_accepts(text, inputs)[0] for text in texts]
    wrong = [(text, mine, theirs) for text, mine, theirs in zip(texts, found, expected, strict=True) if mine != theirs]
    assert not wrong, wrong[:3]
    return {name: found.count(name) for name in set(found)}


@pytest.mark.parametrize("part", [0.2, pytest.param(1.0, marks=pytest.mark.slow)], ids=["two thousand", "ten thousand"])
def test_formulas_of_the_corpus_are_judged_as_by_accepts(part: float) -> None:
    seen: set[str] = set()
    for law, n, inputs in (("e2esr", 5000, "normal"), ("e2esr", 2000, "uniform:1,5"), ("lean", 1500, "normal")):
        seen |= set(check_against_accepts(corpus_texts(law, int(part * n)), Inputs.of(inputs)))
    written_out = [in_infix(text) for text in corpus_texts("lean", int(part * 1500), 4)]
    seen |= set(check_against_accepts(written_out, Inputs.of("normal")))
    assert {"accepted", "low_novelty", "too_few_rows"} <= seen


def test_reasons_terms_and_novelties_are_those_of_accepts() -> None:
    inputs = Inputs.of("uniform:1,5", n_rows=64, seed=2)
    texts = [*corpus_texts("e2esr", 100), "x0 - x0", "log(-x0**2)", "x3 + tanh(x1)", "x0 +"]
    for text, judgement in zip(texts, FormulaJudge(inputs).judgements(texts), strict=True):
        outcome, verdict = outcome_by_accepts(text, inputs)
        assert judgement.outcome == outcome
        if verdict is not None:
            assert judgement.verdict.reason == verdict.reason
            np.testing.assert_equal(judgement.verdict.min_novelty, verdict.min_novelty)
            row = judgement.to_dict()
            assert row["novelties"] is None or min(row["novelties"]) == verdict.min_novelty
            assert row["terms"] == [str(term) for term in sn.additive_terms(parse(text)).expressions]


#: Texts that the unit must read as the parser does: signs, powers, quotients, calls, numbers, names, spaces.
WRITTEN = [
    "-2**2*x0 + x1", "x0**-2 + x0", "x0^0.5 - -x1", "x0/x1/x2", "x0/(x1*x2) + x0/x1*x2", "2/3*x0 + 1", "--x0 + x1",
    "x0**2**0.5 + x0", "x0**(1/3) + x0", "add(x0, mul(2, x1))", "pow(x0, 3) - ln(x1)", ".5*x0 + 1e-3*x1 + 2.E+1",
    "pi*x0 + e", "sub(x0,div(1,x1))", "neg(x0) + abs(x1)", "atan(x0) + arctan(x1)", "mass*speed**2/2 - 3*mass",
    "sin (x0)*cos( x1 )", "(((x0)))", "x0 - (x1 - (x0 - x1))", "3", "0*x0", "x0 - x0", "sqrt(4*x0**2)*x1 + x0*x1",
    "(2*x0 + 2*x1)**1.5 + (x0 + x1)**1.5", "(x0 + 1)**4/(x0 + 1)**3", "1/(x0/x1)", "x7*x2 + x7", "b*a + b",
    "x10 + x9*x10",
    "x0**1 + x1**0", "+x0 + +x1", "1/x0**2 + 1/square(x0)", "exp(-x0**2/2)", "(x0*x1)**0.5*(x0*x1)**1.5",
    "2*(x0+x1)*(x0-x1)",
    "-x0**2", "(-x0)**2 + (-2)**2*x1", "inv(0*x0) + x1", "x0/0 + x1", "(1e200*x0)**2 + x1", "1/(x0 - x0) + x0",
]  # fmt: skip
#: Texts that the unit must leave to the parser, whether they are formulas or not.
LEFT_TO_PYTHON = [
    "tanh(x0)", "2 x0", "X0 + x1", "x_0 + x_1", "x0**x1", "x[:,0]", "`a b` + 1", "np.sin(x0)", "log(x0, 2)",
    "max(x0, x1)",
    "Sin(x0)", "x0 (x1)", "x01 + x1", "x0·x1", "1e999*x0", "1e-999*x0", "x0**20000", "add(x0, x1, x2)",
    "x0 // x1", "x0)",
    "(x0", "sin()", "sin(x0, x1)", "sin", "lambda", "nan*x0", "2e", "1.2.3", "", "x0,x1", "(x0, x1)", "2(x0)",
    "x0x1(2)",
    "+".join(f"x{k}" for k in range(11)), "sin(" * 300 + "x0" + ")" * 300,
]  # fmt: skip

#: Numbers and sizes beyond what the unit holds: too many terms, factors or characters; overflow.
AT_THE_LIMITS = [
    "1e308*x0 + 1e308*x0", "1e200*x0*1e200 + x1", "1e-200*x0*1e-200 + x1", "(1e-200*x0)**3 + x0", "1e308*10/1 + x0",
    "1e300/1e-300*x0 + x1", "1e-300/1e300*x0 + x1", "(-2*x0)**0.5 + x1", "(1e-300*x0)**2.5*x1 + x1",
    "(x0 + x1)**0.5*(-2*x0 - 2*x1)**0.5", "(x0 + 1)**300*(1e-3*x0 + 1e-3)**300 + x0",
    "sqrt(1e-320*x0 + 1e-320*x1) + x0",
    "sqrt(x0 + 1)**2 + x0", "sqrt(x0**2)**2 + x0", "sqrt(x0 + x1)*sqrt(x0 + x1)*1e308*1e10", "(2*x0)**1e6 + x1",
    "sqrt(2) + x0", "cos(0)*x0 - tan(1)*x1", "(1 - 1)**2*x0 + abs(-2)*x1", "exp(1000)*x0 + log(0)*x1", "log(0 - 1)*x0",
    "sin(exp(1000))*x0 + x1", "(0 - 1e308 - 1e308)*x0 + x1", "exp(800)*exp(800) + x0", "(3 - 3)**0.5 + x0",
    "x0\t+\tx1", "x0 +\n x1\r", "sin\t(x0)", "x0*" + "1." + "0" * 100, "1" * 400 + "*x0", "x" + "1" * 9,
    "a" * 200 + " + x0",
    "*".join(f"(x0 + {k})" for k in range(12)), "*".join(f"sin({k}*x0)" for k in range(1, 40)),
    "+".join(f"sin({k}*x0)" for k in range(1, 80)), "sin(" + "+".join(f"cos({k}*x0)" for k in range(1, 80)) + ")",
    "(x0 + x1 + x2)**2*(x0 + 1)*(x1 + 1)*(x2 + 1)*(x0 + 2)*(x1 + 2)", "(" * 80 + "x0" + ")" * 80, "x0 " + "+ 1" * 3000,
    "-" * 300 + "x0", "x0" + "*x0" * 300, "x0" + "/x0" * 300, "x0" + "+(x1" * 90 + ")" * 90,
    "x0+" * 200 + "x1*" * 200 + "2",
    "sqrt(" * 40 + "x0 + 1" + ")" * 40, "*".join(f"sqrt(sin({k}*x0) + x1)**2" for k in range(1, 8)),
    "+".join(f"sqrt(x0 + {k})**2" for k in range(1, 30)), "x0 $ x1", "x0.real", "e.x", "1/sin", ".", "x0 + .", "1.x0",
]  # fmt: skip


@pytest.mark.parametrize("inputs", ["normal", "uniform:1,5"])
def test_numbers_and_sizes_beyond_the_unit_are_judged_as_by_accepts(inputs: str) -> None:
    check_against_accepts(AT_THE_LIMITS, Inputs.of(inputs, seed=1))


@pytest.mark.parametrize("inputs", ["normal", "uniform:1,5"])
def test_every_way_of_writing_is_judged_as_by_accepts(inputs: str) -> None:
    check_against_accepts([*WRITTEN, *LEFT_TO_PYTHON], Inputs.of(inputs, seed=1))


def test_the_unit_decides_what_it_knows_and_nothing_else() -> None:
    X = np.array([Inputs.of("uniform:1,5").column(k) for k in range(10)])
    judge = TextJudge(X, tau=TAU_ID)
    refused = {
        "x0**1 + x1**0",
        "x0**2**0.5 + x0",
        "inv(0*x0) + x1",
        "x0/0 + x1",
        "1/(x0 - x0) + x0",
        "(1e200*x0)**2 + x1",
    }
    decided = dict(zip(WRITTEN, judge([text.encode() for text in WRITTEN])[0].tolist(), strict=True))
    assert {text for text, verdict in decided.items() if verdict < 0} <= refused
    assert set(judge([text.encode() for text in LEFT_TO_PYTHON])[0].tolist()) == {-1}


def test_random_characters_are_never_judged_otherwise_than_by_accepts() -> None:
    rng = random.Random(5)
    pieces = [
        "x0",
        "x1",
        "2",
        ".5",
        "1e2",
        "+",
        "-",
        "*",
        "/",
        "**",
        "^",
        "(",
        ")",
        "sin(",
        "pow(",
        ",",
        " ",
        "e",
        "a",
        "x",
    ]
    texts = ["".join(rng.choices(pieces, k=rng.randint(1, 9))) for _ in range(4000)]
    counts = check_against_accepts(texts, Inputs.of("normal"))
    assert counts["unreadable"] > 500 and counts["accepted"] > 50


def test_columns_of_a_table_are_found_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {"speed": rng.uniform(1, 5, 500), "mass": rng.uniform(1, 5, 500), "x0": rng.uniform(1, 2, 500)}
    path = tmp_path / "data.csv"
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), "1,,2", *(",".join(map(repr, map(float, row))) for row in rows)]))
    inputs = Inputs.of(str(path), n_rows=100, seed=1)
    assert inputs.table is not None and inputs.table.X.shape == (3, 100)
    texts = [
        "mass*speed + mass",
        "x0 + sin(x0)",
        "mass - mass**1.1",
        "speed/mass + tanh(x0)",
        "length + mass",
        "x2 + x0",
    ]
    found = FormulaJudge(inputs).judgements(texts)
    assert FormulaJudge(inputs).outcomes(texts) == [judgement.outcome for judgement in found]
    expected = sn.accepts("mass*speed + mass", inputs.sample(("speed", "mass")))
    assert found[0].verdict == expected
    assert "'length' is not a known variable" in found[4].verdict.reason
    own = Sample(inputs.table.X[[2]], ("x0",))
    assert found[1].verdict == sn.accepts("x0 + sin(x0)", own)


def test_columns_called_like_functions_are_variables(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    values = np.random.default_rng(0).uniform(1, 5, (64, 2))
    path.write_text("e,gamma\n" + "\n".join(f"{a!r},{b!r}" for a, b in values.tolist()))
    inputs = Inputs.of(str(path))
    texts = ["e + e**1.1", "gamma + e"]
    assert FormulaJudge(inputs).outcomes(texts) == [j.outcome for j in FormulaJudge(inputs).judgements(texts)]
    assert FormulaJudge(inputs).judgements(texts)[0].outcome == "low_novelty"


@pytest.mark.parametrize("changes", [{"tau": 0.0}, {"order": 0}, {"order": 2}, {"dialect": "gplearn"}])
def test_other_measures_are_judged_too(changes: dict[str, object]) -> None:
    judge = FormulaJudge(Inputs.of("uniform:1,5"), **changes)  # type: ignore[arg-type]
    texts = ["x0 + log(x0)", "div(x0, x1) + x0", "x0 + x0**2", *corpus_texts("lean", 50)]
    assert judge.outcomes(texts) == [judgement.outcome for judgement in judge.judgements(texts)]


def test_without_the_compiled_unit_the_library_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = FormulaJudge().outcomes(WRITTEN)

    def missing() -> None:
        raise KernelError("not compiled")

    monkeypatch.setattr("sobolev_novelty.engines.transformer.corpus.text.native", missing)
    assert FormulaJudge().outcomes(WRITTEN) == expected


def test_files_do_not_depend_on_the_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "CHUNK", 40)
    source = tmp_path / "formulas.txt"
    texts = [*corpus_texts("e2esr", 150), "x0 +", "tanh(x0) + x1"]
    source.write_text("\n".join(texts) + "\n")
    summaries, contents = [], []
    for n_jobs in (1, 2):
        out, reasons = tmp_path / f"kept{n_jobs}.txt", tmp_path / f"reasons{n_jobs}.jsonl"
        summaries.append(filter_formulas(source, out, FormulaJudge(), reasons=reasons, n_jobs=n_jobs))
        contents.append((out.read_bytes(), reasons.read_bytes()))
    assert contents[0] == contents[1] and summaries[0] == summaries[1]
    assert summaries[0] == filter_formulas(source, tmp_path / "again.txt", FormulaJudge())
    assert (tmp_path / "again.txt").read_bytes() == contents[0][0]
    kept = contents[0][0].decode().splitlines()
    rows = [json.loads(line) for line in contents[0][1].decode().splitlines()]
    assert [row["line"] for row in rows] == list(range(1, len(texts) + 1))
    assert kept == [row["formula"] for row in rows if row["accepted"]]
    assert summaries[0].unreadable == ((151, "The expression ends where an operand is expected. (Character 5.)"),)


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_what_is_kept_has_the_form_of_what_was_read(form: str, tmp_path: Path) -> None:
    entries = [{"law": "x0 + cos(3*x0)", "id": 1}, {"law": "x0 + x0**1.01"}, {"id": 2}, "x1"]
    lines = [json.dumps(entry) for entry in entries]
    source, out = tmp_path / f"in.{form}", tmp_path / "out"
    source.write_text(json.dumps(entries) if form == "json" else "\n".join(lines))
    summary = filter_formulas(source, out, FormulaJudge(Inputs.of("uniform:1,5")), field="law")
    text = out.read_text()
    assert (json.loads(text) if form == "json" else [json.loads(line) for line in text.splitlines()]) == [
        entries[0],
        "x1",
    ]
    assert summary.counts["unreadable"] == 1 and summary.unreadable[0][0] == 3
    source.write_text("[]" if form == "json" else "")
    assert filter_formulas(source, out, FormulaJudge()).n_read == 0
    assert out.read_text() == ("[]\n" if form == "json" else "")


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    import tracemalloc

    source = tmp_path / "long.txt"
    peaks = []
    for n in (4, 16):
        source.write_text("\n".join(corpus_texts("e2esr", 500) * 2 * n))
        tracemalloc.start()
        filter_formulas(source, tmp_path / "kept.txt", FormulaJudge())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_the_command_filters_standard_input(tmp_path: Path) -> None:
    text = "x0 + cos(3*x0)\nx0 +\nx0 + x0**1.01\n"
    result = CliRunner().invoke(app, ["filter", "-", "--inputs", "uniform:1,5"], input=text)
    assert result.exit_code == 0, result.output
    assert result.stdout == "x0 + cos(3*x0)\n"
    assert "3 formula(s) read, 1 kept (33.3%), 2 rejected" in result.stderr
    assert "line 2: The expression ends" in result.stderr
    kept = tmp_path / "kept.txt"
    result = CliRunner().invoke(app, ["filter", "-", "--json", "--out", str(kept)], input=text)
    assert json.loads(result.stdout)["read"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--inputs", "uniform:5,1"], "--inputs must be like uniform:1,5"),
        (["--inputs", "missing.csv"], "--inputs must be normal"),
        (["--rows", "31"], "--rows must be 32 to 200"),
        (["--json"], "give --out a file"),
        (["--format", "csv"], "--format must be one of"),
        (["--out", "a.txt", "--reasons", "a.txt"], "--reasons must be another file"),
        (["--tau", "2"], "--tau must be a number from 0 to 1"),
    ],
)
def test_wrong_options_are_said_in_one_line(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["filter", "-", *options], input="x0\n")
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_the_filter_needs_no_torch(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from sobolev_novelty.lab.pretraining.corpus_filter import FormulaJudge\n"
        "print(FormulaJudge().outcomes(['x0', 'x0 + tanh(0.1*x0)']))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['accepted', 'low_novelty']"


def test_pretraining_without_torch_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['sobolev', 'pretrain', 'a.toml', '--out', 'x']\n"
        "from sobolev_novelty.ui.cli.main import main; main()"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "pip install '.[transformer]'" in found.stderr


def test_a_sample_that_is_too_small_is_refused() -> None:
    with pytest.raises(ParameterError, match="'n_rows' must be 32 to 200"):
        Inputs.of("normal", n_rows=201)
