"""The pretraining experiment: draws, refinement, choice, rows, intervals, the commands."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from needs_torch import corpus_unit, one_thread, tiny  # noqa: F401
from places import ROOT
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.engines.transformer.checkpoint import write_weights
from sobolev_novelty.engines.transformer.corpus import CorpusSettings
from sobolev_novelty.engines.transformer.model import Model, ModelSettings
from sobolev_novelty.engines.transformer.sampling import Drawn
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.showing import pretraining
from sobolev_novelty.lab.bench.showing.pretraining import (
    Evaluation,
    compared,
    evaluate_network,
    interval,
    table,
)
from sobolev_novelty.lab.bench.showing.pretraining_figure import figure, learning_curves
from sobolev_novelty.lab.pretraining.evaluate import Decoding, Scaling, _dealt, by_generator, by_network, solve
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.ui.cli.main import app

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("corpus_unit")]

TASKS = ["feynman_I_12_1", "strogatz_vdp2"]


@dataclass(frozen=True)
class Table:
    X_train: FloatArray
    y_train: FloatArray


def table_of(text: str, n_features: int = 2, n: int = 300) -> Table:
    X = np.random.default_rng(0).uniform(1.0, 5.0, (n, n_features))
    return Table(X, evaluate(text, X))


def fixed(*draws: list[str]) -> Any:
    return lambda sample, y, decoding, rng: [[parse(text) for text in texts] for texts in draws]


def small_network(folder: Path, *, tokens: str = "float", seed: int = 0, step: int = 5) -> Path:
    settings = RunSettings.from_dict(
        {
            "corpus": {"law": "e2esr", "seed": seed, "max_nodes": 20, "max_float_tokens": 30},
            "model": {"tokens": tokens, "width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
            "training": {"seed": seed, "samples": 100, "batch": 10},
        }
    )
    model = Model(settings.model, seed=seed)
    write_weights(folder, "weights", settings, model.state_dict(), {"step": step})
    return folder


def test_constants_are_refined_and_the_best_formula_is_chosen() -> None:
    part = table_of("3*x0 + sin(2*x1)")
    scaling = Scaling.of(part.X_train)
    near = f"1*x0 + sin({1.95 * scaling.deviation[1]}*x1 + {2.02 * scaling.mean[1]})"
    found = solve(part, fixed(["x0 + x1", near], ["x0 + x1"]), Decoding(n_draws=2, n_samples=2))
    assert found[0].nmse < 1e-15 and found[1].nmse > 0.001
    assert found[0].expression is not None
    np.testing.assert_allclose(evaluate(found[0].expression, scaling(part.X_train)), part.y_train, rtol=1e-6)
    raw = scaling.undone(found[0].expression)
    np.testing.assert_allclose(evaluate(raw, part.X_train), part.y_train, rtol=1e-6)


def test_of_exact_fits_the_shortest_is_chosen_and_one_skeleton_is_fitted_once() -> None:
    part = table_of("2*x0 + 1")
    found = solve(part, fixed(["x0 + 1 + x1", "x0 + 1", "3*x0 - 2", "x0 + 7"]), Decoding(n_draws=1, n_samples=2))[0]
    assert found.expression is not None and found.expression.variables == ("x0",)
    assert found.n_distinct == 3  # x0 + 1 and x0 + 7 are one skeleton


def test_a_draw_without_a_finite_formula_is_a_failure() -> None:
    found = solve(table_of("x0"), fixed(["log(-1 - x0**2)"]), Decoding(n_draws=1, n_samples=2))[0]
    assert found.expression is None and found.failure == "No formula is finite on the training rows."
    wide = Table(np.ones((40, 11)), np.ones(40))
    assert "reads 10 inputs; the task has 11" in solve(wide, fixed([]), Decoding(n_draws=1))[0].failure


def test_samples_are_dealt_to_the_draws_and_none_is_lost() -> None:
    found = [Drawn((4,), 5, -1.0), Drawn((5,), 0, -2.0), Drawn((6,), 3, -3.0)]
    dealt = _dealt(found, 4, np.random.default_rng(0))
    assert len(dealt) == 4 and all(1 <= len(own) <= 2 for own in dealt)
    assert {formula.tokens for own in dealt for formula in own} == {(4,), (6,)}


@pytest.mark.parametrize("tokens", ["float", "skeleton"])
def test_a_network_proposes_formulas_of_the_inputs_there_are(tokens: str) -> None:
    model = Model(ModelSettings(tokens, 24, 16, 2, 1, 1)).eval()
    part = table_of("x0*x1", n=250)
    sample = Scaling.of(part.X_train)(part.X_train)
    decoding = Decoding(n_draws=3, n_samples=8)
    first, again = (by_network(model)(sample, part.y_train, decoding, np.random.default_rng(1)) for _ in range(2))
    assert first == again and len(first) == 3
    for formulas in first:
        assert 2 <= len(formulas) <= 10
        assert {name for formula in formulas for name in formula.variables} <= {"x0", "x1"}
    greedy = [formulas[0] for formulas in first]
    assert greedy[0] == greedy[1] == greedy[2]


def test_the_generator_proposes_formulas_of_its_corpus() -> None:
    propose = by_generator(CorpusSettings.of_law("e2esr", arm="filtered"))
    sample = Sample(np.random.default_rng(0).normal(size=(3, 50)), ("x0", "x1", "x2"))
    draws = propose(sample, np.zeros(50), Decoding(n_draws=2, n_samples=6), np.random.default_rng(0))
    assert [len(own) for own in draws] == [6, 6]
    assert all(set(formula.variables) == {"x0", "x1", "x2"} for own in draws for formula in own)


def test_settings_that_cannot_be_used_say_why() -> None:
    with pytest.raises(ParameterError, match="'n_draws' must be at least 1"):
        Decoding(n_draws=0)
    with pytest.raises(ParameterError, match="'n_samples' must be a multiple of 'n_bags', 2"):
        Decoding(n_samples=3)


def test_an_evaluation_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, out = small_network(tmp_path / "weights"), tmp_path / "network.json"
    options = {"n_draws": 2, "n_samples": 4}
    whole = evaluate_network(weights, tmp_path / "whole.json", tasks=TASKS, **options)
    evaluate_network(weights, out, tasks=TASKS[:1], **options)
    again = evaluate_network(weights, out, tasks=TASKS, **options)
    assert again == whole == Evaluation.read(out)
    content = json.loads(out.read_text())
    assert content["paper"] == {"SN-filtered": 0.712, "Random": 0.497, "PhyE2E": 0.35}
    assert content["summary"]["n_tasks"] == 2 and content["samples"] == 50 and "version" in content["origin"]
    with pytest.raises(ParameterError, match="holds another evaluation"):
        evaluate_network(weights, out, tasks=TASKS, n_draws=3, n_samples=4)
    for row in whole.rows:
        assert {"task", "draw", "r2", "failure", "complexity", "mean_nu", "n_qualified", "mean_nu_raw"} <= set(
            row
        ) or row["failure"]


def evaluation(arm: str, seed: int, scores: list[float | None], samples: int = 1000) -> Evaluation:
    rows = [
        {"task": f"t{k}", "draw": draw, "r2": value, "failure": "", "complexity": 5, "n_terms": 2, "n_qualified": 1,
         "mean_nu": 0.5}
        for k, value in enumerate(scores) for draw in range(2)
    ]  # fmt: skip
    return Evaluation(arm, seed, samples, {}, rows)


def test_failures_and_negative_scores_count_as_zero() -> None:
    found = evaluation("random", 1, [0.5, None, -3.0, 1.0])
    np.testing.assert_allclose(found.scores(["t0", "t1", "t2", "t3"]), [0.5, 0.0, 0.0, 1.0])
    told = pretraining.summary(found.rows)
    assert told["mean_r2"] == 0.375 and told["failures"] == 0.25 and told["qualified"] == 0.5
    with pytest.raises(DataError, match="lacks t9"):
        found.scores(["t9"])


def test_arms_are_compared_on_the_same_tasks_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "least_squares", lambda degree, tasks: np.full(len(tasks), 0.5))
    monkeypatch.setattr(
        "sobolev_novelty.lab.bench.showing.pretraining_figure.least_squares", lambda degree, tasks: np.full(1, 0.5)
    )
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.8, 30)
    files = [evaluation("random", seed, base.tolist()) for seed in (1, 2, 3)]
    files += [evaluation("filtered", seed, (base + 0.1).tolist()) for seed in (1, 2, 3)]
    files += [evaluation("generator alone, random", 0, (base / 2).tolist(), samples=0)]
    rows = {row.arm: row for row in compared(files)}
    gain = rows["filtered"].against_random
    assert gain is not None and gain.is_clear and gain.value == pytest.approx(0.1)
    assert rows["filtered"].seeds == (1, 2, 3) and rows["random"].against_random is None
    assert rows["random"].mean.lower < rows["random"].mean.value < rows["random"].mean.upper
    text = table(files)
    assert "| filtered | 1,000 | 3 |" in text and "paper, PhyE2E | 35,000,000" in text and "quadratic" in text
    with pytest.raises(DataError, match="Two files hold 'random', seed 1"):
        compared([files[0], files[0]])
    pytest.importorskip("matplotlib")
    axes = figure(files).axes[0]
    labels = [entry.get_text() for entry in (*axes.get_yticklabels(), *axes.texts)]
    assert {"random\n1,000 formulas", "filtered\n1,000 formulas", "generator alone, random", "paper, Random"} <= set(
        labels
    )


def test_the_filter_is_compared_with_the_matched_arm() -> None:
    base = np.linspace(0.2, 0.8, 30)
    files = [
        evaluation(arm, seed, (base + gain).tolist())
        for arm, gain in (("random", 0.0), ("matched", 0.08), ("filtered", 0.1))
        for seed in (1, 2, 3)
    ]
    rows = {row.arm: row for row in compared(files)}
    own = rows["filtered"].against_matched
    assert own is not None and own.value == pytest.approx(0.02)
    assert rows["matched"].against_matched is None and rows["random"].against_matched is None


def test_learning_curves_come_from_training_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arm, seed, law in (
        ("random", 1, "e2esr"),
        ("random", 2, "e2esr"),
        ("filtered", 1, "e2esr"),
        ("physics", 1, "physics"),
    ):
        entries = [
            {"kind": "start", "settings": {"corpus": {"law": law, "arm": arm}}},
            *(
                {
                    "kind": "checkpoint",
                    "funnel": {"accepted": n},
                    "validation": {"random": {"nats_per_token": 3.0 - n / 1e3}},
                }
                for n in (100, 1000)
            ),
        ]
        (tmp_path / f"{arm}_{seed}.jsonl").write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    monkeypatch.setattr(
        "sobolev_novelty.lab.bench.showing.pretraining_figure.least_squares", lambda degree, tasks: np.full(1, 0.5)
    )
    logs = sorted(tmp_path.glob("*.jsonl"))
    assert learning_curves(logs)["random"] == [[(100, 2.9), (1000, 2.0)]] * 2
    assert set(learning_curves(logs)) == {"random", "filtered"}  # physics is validated on formulas of another law
    with pytest.raises(DataError, match="no_log.jsonl' is not a training log"):
        (tmp_path / "no_log.jsonl").write_text("[1]", encoding="utf-8")
        learning_curves([tmp_path / "no_log.jsonl"])
    pytest.importorskip("matplotlib")
    labels = [
        entry.get_text() for entry in figure([evaluation("random", 1, [0.5])], logs).axes[1].get_legend().get_texts()
    ]
    assert labels == ["filtered (1 seed)", "random (2 seeds)"]


def test_the_interval_covers_seeds_too() -> None:
    seeds = np.repeat([[0.3], [0.5], [0.7]], 40, axis=1)
    found = interval(seeds, n_resamples=2000)
    assert found.value == pytest.approx(0.5) and found.lower < 0.35 and found.upper > 0.65


def test_quadratic_least_squares_is_exact_for_a_product() -> None:
    assert pretraining.least_squares(2, ["feynman_I_12_1"])[0] == pytest.approx(1.0)
    assert 0.8 < pretraining.least_squares(1, ["feynman_I_12_1"])[0] < 0.99


def test_the_commands_train_evaluate_and_compare(tmp_path: Path) -> None:
    run = CliRunner().invoke
    weights, out = tmp_path / "weights", tmp_path / "tiny.json"
    result = run(
        app,
        ["pretrain", str(ROOT / "experiments" / "pretrain_tiny.toml"), "--out", str(tmp_path / "run"), "--weights",
         str(weights), "--device", "cpu", "--threads", "1", "--seed", "4", "--set", "training.samples=64", "--set",
         "training.batch=8", "--set", "training.validation=8"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    options = ["--draws", "2", "--samples", "4", "--tasks", ",".join(TASKS), "--json"]
    result = run(app, ["bench", "pretrained", str(weights), "--out", str(out), *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["seed"] == 4 and json.loads(result.stdout)["samples"] == 64
    alone = tmp_path / "alone.json"
    toml = ROOT / "experiments" / "pretrain_paper_physics.toml"
    result = run(app, ["bench", "pretrained", str(toml), "--out", str(alone), *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["arm"] == "generator alone, physics, random"
    result = run(app, ["bench", "pretrained-table", str(out), str(alone), "--json"])
    assert [row["samples"] for row in json.loads(result.stdout)] == [0, 64]


def test_wrong_options_of_pretrain_are_said_in_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["pretrain", str(tmp_path / "none.toml"), "--out", str(tmp_path)])
    assert result.exit_code == 1 and result.stderr.count("\n") == 1 and "cannot be read" in result.stderr


@pytest.mark.parametrize("name", ["physics", "one_to_five", "free_intercept", "random", "filtered", "matched"])
def test_the_experiments_differ_in_their_corpus_only(name: str) -> None:
    settings = RunSettings.from_toml(ROOT / "experiments" / f"pretrain_paper_{name}.toml")
    random = RunSettings.from_toml(ROOT / "experiments" / "pretrain_paper_random.toml")
    assert settings.model == random.model and settings.training == random.training
    assert (settings.corpus.inputs, settings.corpus.min_points) == (random.corpus.inputs, 32)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "filtered"),
        ({"judge": "one_to_five"}, "filtered, judged on one_to_five"),
        ({"intercept": "free"}, "filtered, free intercept"),
    ],
)
def test_arms_that_filter_differently_are_never_taken_for_one(options: dict[str, str], name: str) -> None:
    assert pretraining.arm_name(**asdict(CorpusSettings.of_law("e2esr", arm="filtered", **options))) == name
