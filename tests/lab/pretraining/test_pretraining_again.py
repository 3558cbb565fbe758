"""The paper's inference: constants as written, arms abreast, what networks write in files, and how it is read."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from needs_torch import corpus_unit, one_thread  # noqa: F401
from places import ROOT
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.transformer.checkpoint import load_model
from sobolev_novelty.engines.transformer.model import Model, ModelSettings
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.showing import pretraining_course as courses
from sobolev_novelty.lab.bench.showing.pretraining_course import Course, Reading
from sobolev_novelty.lab.pretraining import abreast
from sobolev_novelty.lab.pretraining.evaluate import INFERENCES, Decoding, by_network
from sobolev_novelty.lab.pretraining.formulas import Bags, Formulas, Record, write_records, written_for
from sobolev_novelty.lab.pretraining.readouts import Refinement, Written, moved_constants
from sobolev_novelty.lab.pretraining.trainer import Machine
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.ui.cli.main import app

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("corpus_unit")]
X = np.random.default_rng(0).normal(size=(2, 200))
TABLE = Sample(X, ("x0", "x1"))
TASKS = ["feynman_I_12_1", "strogatz_vdp2"]


def test_the_written_readout_adds_no_coefficient_and_no_offset() -> None:
    y = 3.0 * X[0] + 5.0
    reader = Written(TABLE, y, Refinement(10, 100, 1))
    bare = reader.choose([parse("x0")])
    assert str(bare.expression) == "x0" and bare.nmse > 1.0
    own = reader.choose([parse("x0"), parse("1.0*x0 + 1.0")])
    assert own.nmse < 1e-12 and own.expression is not None
    np.testing.assert_allclose(sorted(own.expression.constants), [3.0, 5.0], rtol=1e-6)


def test_without_iterations_formulas_are_judged_as_they_are_written() -> None:
    y = 3.0 * X[0]
    found = Written(TABLE, y, Refinement(10, 0, 1)).choose([parse("2*x0"), parse("2.9*x0"), parse("x0*x1")])
    assert str(found.expression) == "2.9*x0" and found.n_distinct == 2
    assert Written(TABLE, y, Refinement(10, 5, 1)).choose([parse("log(-2 - x0**2)")]).failure


def test_moved_constants_are_never_worse_than_the_written_ones() -> None:
    y = np.sin(3.0 * X[0]) + X[1]
    for text in ("sin(2.9*x0) + 0.8*x1", "inv(x0 + 1.5)*2", "exp(800*x0)", "x0"):
        formula = parse(text)
        pair = (formula, moved_constants(formula, TABLE, y, 50))
        before, after = (Written(TABLE, y, Refinement(1, 0, 1)).choose([one]).nmse for one in pair)
        assert after <= before


def bags() -> Bags:
    tables = [("one", Sample(X[:1], ("x0",)), X[0] ** 2), ("two", TABLE, X[0] * X[1])]
    return Bags.of(tables, 4)


def test_bags_are_those_of_the_tables_and_come_back_from_their_file(tmp_path: Path) -> None:
    made = bags()
    made.write(tmp_path / "bags.npz")
    read = Bags.read(tmp_path / "bags.npz")
    assert read.names == ("one", "two") and read.n_inputs.tolist() == [1, 2]
    np.testing.assert_array_equal(read.X, made.X)
    np.testing.assert_allclose(made.y[1, 2], made.X[1, 2, :, 0] * made.X[1, 2, :, 1], rtol=1e-5, atol=1e-6)
    assert not made.X[0, :, :, 1:].any()
    (tmp_path / "no.npz").write_bytes(b"no")
    with pytest.raises(DataError, match=r"no.npz' holds no bags"):
        Bags.read(tmp_path / "no.npz")


def test_a_network_writes_for_all_tasks_at_once_formulas_of_their_inputs() -> None:
    model = Model(ModelSettings("float", 24, 16, 2, 1, 1)).eval()
    paper = dataclasses.replace(INFERENCES["paper"], n_draws=2)
    records = written_for(model, bags(), paper, samples=7, inference="paper")
    assert records == written_for(model, bags(), paper, samples=7, inference="paper")
    assert [record.task for record in records] == ["one", "two"]
    assert {name for own in records[0].formulas for f in own for name in f.variables} <= {"x0"}
    assert all(1 <= len(own) <= 11 for record in records for own in record.draws)
    ours = dataclasses.replace(INFERENCES["ours"], n_draws=2, n_samples=8)
    for record in written_for(model, bags(), ours, samples=7, inference="ours"):
        assert record.draws[0][0] == record.draws[1][0]  # the greedy formula of the shared bag
    with pytest.raises(ParameterError, match="'bags' must hold 5 bags"):
        written_for(model, bags(), dataclasses.replace(paper, n_draws=5), samples=7, inference="paper")


def test_draws_with_bags_of_their_own_have_greedy_formulas_of_their_own() -> None:
    model = Model(ModelSettings("float", 24, 16, 2, 1, 1), seed=3).eval()
    wide = Sample(np.random.default_rng(1).normal(size=(2, 900)), ("x0", "x1"))
    y = wide.X[0] * np.exp(wide.X[1])
    decoding = Decoding(n_draws=6, n_samples=2, n_bags=1, own_bags=True)
    draws = by_network(model)(wide, y, decoding, np.random.default_rng(0))
    assert len(draws) == 6 and all(1 <= len(own) <= 3 for own in draws)


def test_what_networks_wrote_comes_back_from_its_file(tmp_path: Path) -> None:
    records = [Record(5, "paper", "one", (("14 4 4", "4"), ("4",)))]
    path = tmp_path / "a.jsonl.gz"
    write_records(path, {"corpus": {}}, records)
    first = path.read_bytes()
    write_records(path, {"corpus": {}}, records)
    assert path.read_bytes() == first
    read = Formulas.read(path)
    assert read.records == tuple(records)
    assert [[str(f) for f in own] for own in read.records[0].formulas] == [["x0 + x0", "x0"], ["x0"]]
    path.write_bytes(first[:-9])
    with pytest.raises(DataError, match="holds no formulas of a network"):
        Formulas.read(path)


def tiny_runs() -> list[RunSettings]:
    return [
        RunSettings.from_dict(
            {
                "corpus": {"law": "e2esr", "seed": seed, "arm": arm, "max_nodes": 20, "max_float_tokens": 30},
                "model": {"tokens": "float", "width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
                "training": {"seed": seed, "samples": 4 * 64, "batch": 4, "validation": 8, "pilot": 400},
            }
        )
        for seed, arm in ((1, "random"), (1, "matched"), (2, "filtered"))
    ]


def test_arms_abreast_make_the_steps_they_make_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abreast, "POINTS", (0.5, 1.0))
    monkeypatch.setattr(abreast, "LAST_DRAWS", {"paper": 2})
    machine = Machine("cpu", 1)
    together = abreast.train_abreast(tiny_runs(), machine, abreast.Plan(tmp_path / "three", bags()))
    alone = abreast.train_abreast(tiny_runs()[2:], machine, abreast.Plan(tmp_path / "one"))[0]
    assert [lane.trainer.step for lane in together] == [64, 64, 64]
    for name, tensor in alone.trainer.averaged.state_dict().items():
        np.testing.assert_array_equal(tensor, together[2].trainer.averaged.state_dict()[name])
    folder = tmp_path / "three" / "matched_1"
    assert {record.samples for record in Formulas.read(folder / "paper.jsonl.gz").records} == {128, 256}
    assert load_model(folder / "weights").settings.width == 16
    kinds = [json.loads(line)["kind"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert kinds == ["start", "train", "checkpoint", "train", "train", "checkpoint", "end"]
    with pytest.raises(ParameterError, match="is there already"):
        abreast.train_abreast(tiny_runs(), machine, abreast.Plan(tmp_path / "three"))


def test_the_length_that_follows_from_the_time_is_that_of_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abreast, "_timed", lambda lanes: [abreast._round(lanes) for _ in range(60)] and 1e9)
    monkeypatch.setattr(abreast, "RESERVE", -1e-7)
    monkeypatch.setattr(abreast, "MARGIN", 0.0)
    lanes = abreast.train_abreast(tiny_runs(), Machine("cpu", 1), abreast.Plan(tmp_path, seconds=0.0))
    assert {lane.trainer.step for lane in lanes} == {128}
    assert {lane.trainer.settings.training.samples for lane in lanes} == {512}


def course(arm: str, seed: int, level: float) -> Course:
    def reading(samples: int, kind: str, shift: float) -> Reading:
        r2 = [[level + shift, None, 0.995, -2.0]] * 2
        return Reading(samples, kind, r2, [[5, None, 7, 9]] * 2, [[2, None, 1, 4]] * 2, [[1, None, 1, 4]] * 2)

    readings = [reading(n, kind, n / 1e4) for n in (500, 1000) for kind in ("paper", "unrefined", "our readout")]
    return Course(arm, seed, {}, ["a", "b", "c", "d"], readings)


def test_courses_are_compared_at_the_end_and_along_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courses, "least_squares", lambda degree, tasks: np.full(len(tasks), 0.5))
    found = [course(arm, seed, level) for arm, level in (("random", 0.2), ("matched", 0.3), ("filtered", 0.5))
             for seed in (1, 2, 3)]  # fmt: skip
    reading = found[0].readings[0]
    assert reading.scores.tolist() == [0.25, 0.0, 0.995, 0.0] and reading.qualified == pytest.approx(5 / 6)
    found[0].write(tmp_path / "a.json")
    (tmp_path / "a.json.gz").write_bytes(gzip.compress((tmp_path / "a.json").read_bytes()))
    assert Course.read(tmp_path / "a.json") == Course.read(tmp_path / "a.json.gz") == found[0]
    text = courses.table(found)
    assert "| filtered | 1,000 | 3 | 0.399 (" in text and "25.0% | 25.0% | 7.0 | 83%" in text
    assert re.search(r"filtered − matched \| \+0\.050 \(.*\), p = ", courses.differences(found))
    assert courses.along(found).count("\n") == 4 and "| 500 | 0.311 (" in courses.along(found)
    with pytest.raises(DataError, match="Two files hold 'random', seed 1, 500 formulas"):
        courses.points([found[0], found[0]])
    pytest.importorskip("matplotlib")
    labels = [entry.get_text() for entry in courses.figure(found).axes[1].get_legend().get_texts()]
    assert labels == ["random", "matched", "filtered", "quadratic least squares"]


def test_what_a_network_wrote_is_read_by_the_command_and_gone_on_with(tmp_path: Path) -> None:
    run, settings = CliRunner().invoke, tiny_runs()[0].to_dict()
    records = [Record(n, "paper", task, (("16 28 30 931 4", "4"),)) for n in (8, 16) for task in TASKS]
    write_records(tmp_path / "paper.jsonl.gz", settings, records[:2])
    out = tmp_path / "random_1.json"
    assert courses.follow([tmp_path / "paper.jsonl.gz"], out).readings[0].samples == 8
    write_records(tmp_path / "paper.jsonl.gz", settings, records)
    result = run(app, ["bench", "pretrained-course", str(tmp_path / "paper.jsonl.gz"), "--out", str(out)])
    assert result.exit_code == 0 and "random, seed 1: 6 readings" in result.output, result.output
    read = Course.read(out)
    assert [(r.samples, r.kind) for r in read.readings[::3]] == [(8, "paper"), (16, "paper")]
    result = run(app, ["bench", "pretrained-course-table", str(out), "--kind", "along"])
    assert result.exit_code == 0 and "| 16 |" in result.output, result.output
    alone = tmp_path / "generator.json"
    toml = str(ROOT / "experiments" / "pretrain_paper_random.toml")
    result = run(app, ["bench", "pretrained-course", toml, "--out", str(alone), "--tasks", TASKS[0]])
    assert result.exit_code == 0 and "random, no network, seed 1: 4 readings" in result.output, result.output
    result = run(app, ["bench", "pretrained-bags", "--out", str(tmp_path / "b.npz"), "--tasks", ",".join(TASKS)])
    assert result.exit_code == 0 and Bags.read(tmp_path / "b.npz").X.shape == (2, 4, 200, 10), result.output
