"""Tables, intervals and figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from typer.testing import CliRunner

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.problems.suites import suite_tasks
from sobolev_novelty.lab.bench.running.progress import duration, progress_table
from sobolev_novelty.lab.bench.running.run import SweepProgress
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.bench.showing.bootstrap import paired_difference, sign_flip_p
from sobolev_novelty.lab.bench.showing.figures import (
    derivative_ablation,
    novelty_against_complexity,
    pareto_tiers,
    rank_plane,
    rank_plane_numbers,
    save_figure,
)
from sobolev_novelty.lab.bench.showing.gap import gap_table, ground_truth_candidates, judge
from sobolev_novelty.lab.bench.showing.page import write_page
from sobolev_novelty.lab.bench.showing.paper import paper_row, paper_rows
from sobolev_novelty.lab.bench.showing.tables import (
    ablation_table,
    difference_table,
    guided_pairs,
    qualification_table,
    results_table,
    task_scores,
    term_scores_of,
)
from sobolev_novelty.ui.cli.bench import bench_app


@pytest.fixture
def store(tmp_path) -> Store:
    """Two methods on twenty tasks: the guided one is better by 0.1 everywhere, and once fails."""
    store = Store(tmp_path / "runs.sqlite")
    store.check_settings({"suite": "blackbox"})
    for method, gain in (("genetic", 0.0), ("genetic+novelty", 0.1)):
        for k in range(20):
            job = Job(f"task{k:02d}", method, 0)
            store.claim(job)
            if method == "genetic+novelty" and k == 19:
                store.finish(job, {"status": "timeout", "wall_time": 5.0, "traceback": "Killed."})
                continue
            r2 = -3.0 if k == 0 and not gain else 0.4 + 0.02 * k + gain
            result = {
                "status": "done",
                "r2_test": r2,
                "complexity": 10 + k,
                "novelties": "[0.5, 0.9]",
                "wall_time": 1.0,
            }
            store.finish(job, {**result, "sn_calls": 100, "expression": "x0 + x1"})
    return store


def test_failures_and_negative_scores_count_as_zero(store: Store) -> None:
    scores = task_scores(store.frame()).set_index(["method", "task"])
    assert scores.loc[("genetic", "task00"), "r2"] == 0.0
    assert scores.loc[("genetic+novelty", "task19"), "r2"] == 0.0
    assert scores.loc[("genetic+novelty", "task19"), "failures"] == 1
    np.testing.assert_allclose(scores.loc[("genetic", "task00"), "nmse"], 1.0)
    np.testing.assert_allclose(scores.loc[("genetic", "task05"), "novelty"], 0.7)


def test_the_results_table_has_our_means_and_the_papers(store: Store) -> None:
    table = results_table(store.frame(), "blackbox")
    rows = table.frame.set_index("method")
    np.testing.assert_allclose(rows.loc["genetic", "R²"], (sum(0.4 + 0.02 * k for k in range(1, 20))) / 20)
    assert rows.loc["genetic+novelty", "failed runs"] == 1
    assert rows.loc["genetic+novelty", "paper R²"] == 0.7298
    assert rows.loc["genetic", "paper"] == "GP"


def test_differences_come_with_intervals_and_the_papers_change(store: Store) -> None:
    rows = difference_table(store.frame(), "blackbox").frame.set_index("measure")
    assert rows.loc["complexity", "tasks"] == 19
    np.testing.assert_allclose(rows.loc["complexity", "Δ %"], 0.0, atol=1e-12)
    assert rows.loc["complexity", "clear"] == "no"
    np.testing.assert_allclose(rows.loc["R²", "paper Δ %"], 1.45, atol=0.01)
    assert rows.loc["R²", "from"] < rows.loc["R²", "Δ %"] < rows.loc["R²", "to"]


def test_the_papers_own_changes_follow_from_its_rows() -> None:
    for suite, base, guided, expected in [
        ("whitebox", "genetic", "genetic+novelty", (3.19, -10.51, 17.20)),
        ("blackbox", "mcts", "mcts+novelty", (6.89, -3.24, 2.10)),
        ("blackbox", "igsr", "igsr+novelty", (14.79, -0.13, 121.07)),
    ]:
        first, second = np.array(paper_row(suite, base)), np.array(paper_row(suite, guided))
        np.testing.assert_allclose(100 * (second / first - 1), expected, atol=0.006)
    rates = [100 * row[2] / row[1] for name, row in paper_rows("qualification").items() if name != "Ground Truth"]
    assert len(rates) == 15
    np.testing.assert_allclose(np.mean(rates), 38.3, atol=0.05)


def test_tables_are_written_as_markdown(store: Store) -> None:
    text = results_table(store.frame(), "blackbox").render()
    assert "genetic+novelty" in text
    assert text.endswith("\n")
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1


def test_an_empty_store_is_refused(tmp_path) -> None:
    with pytest.raises(DataError, match="no finished rows"):
        task_scores(Store(tmp_path / "empty.sqlite").frame())


@given(
    a=hnp.arrays(np.float64, 30, elements=st.floats(0.1, 1.0)),
    shift=st.floats(-0.5, 0.5).filter(lambda s: abs(s) > 1e-6),
)
@settings(max_examples=25, deadline=None)
def test_a_constant_gain_is_clear_however_much_tasks_differ(a: np.ndarray, shift: float) -> None:
    d = paired_difference(a, a + shift, n_resamples=200)
    np.testing.assert_allclose([d.value, d.lower, d.upper], shift, rtol=1e-6)
    assert d.is_clear


@pytest.mark.slow
def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for k in range(200):
        a = rng.normal(0.0, 1.0, 60)
        d = paired_difference(a, a + rng.normal(0.2, 0.5, 60), n_resamples=400, seed=k)
        covered += d.lower <= 0.2 <= d.upper
    assert 180 <= covered <= 200


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1.0], [1.0, 2.0], "on the same tasks"),
        ([], [], "on the same tasks"),
        ([1.0], [float("nan")], "must be finite"),
    ],
)
def test_scores_that_are_no_pairs_are_refused(a: list[float], b: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        paired_difference(np.array(a), np.array(b))


def test_pairs_are_found_by_their_labels() -> None:
    methods = ["mcts+novelty", "mcts", "genetic+novelty", "mcts+novelty, values only"]
    assert guided_pairs(methods) == [("mcts", "mcts+novelty")]


@given(points=hnp.arrays(np.float64, (12, 2), elements=st.integers(0, 6).map(float)))
def test_no_point_is_dominated_within_its_tier_and_each_later_one_is_by_the_tier_before(points: np.ndarray) -> None:
    tiers = np.array(pareto_tiers(points))

    def dominates(p: np.ndarray, q: np.ndarray) -> bool:
        return bool((p <= q).all() and (p < q).any())

    for i, q in enumerate(points):
        same = points[tiers == tiers[i]]
        assert not any(dominates(p, q) for p in same)
        if tiers[i] > 1:
            assert any(dominates(p, q) for p in points[tiers == tiers[i] - 1])


def test_ranks_are_by_mean_r2_and_mean_complexity(store: Store) -> None:
    numbers = rank_plane_numbers(store.frame(), "blackbox", with_paper=False).set_index("method")
    assert numbers.loc["genetic+novelty", "accuracy_rank"] == 1
    assert numbers.loc["genetic", "accuracy_rank"] == 2
    everyone = rank_plane_numbers(store.frame(), "blackbox")
    assert {"genetic", "GP"} <= set(everyone["method"]), "the paper's row stands beside ours"
    assert {"ours", "paper"} == set(everyone["source"])


@pytest.mark.slow
def test_figures_are_drawn_and_saved(store: Store, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    frame = store.frame()
    gap = gap_table(judge(candidate) for candidate in ground_truth_candidates())
    for k, figure in enumerate(
        [rank_plane(frame, "blackbox"), novelty_against_complexity(gap), derivative_ablation(frame)]
    ):
        for ending in ("svg", "png"):
            path = save_figure(figure, tmp_path / f"{k}.{ending}")
            assert path.stat().st_size > 2000
    with pytest.raises(DataError, match=r"must end in \.svg, \.png or \.pdf"):
        save_figure(figure, tmp_path / "f.bmp")


def test_the_qualification_table_names_the_papers_mean() -> None:
    gap = gap_table(judge(candidate) for candidate in ground_truth_candidates())
    text = qualification_table(gap).render()
    assert "| Ground Truth | 41 | 94 | 87 | 92.6 |" in text
    assert "Paper: 38.3 % over 15 methods" in text


def test_the_ablation_table_has_guided_methods_only(store: Store) -> None:
    assert ablation_table(store.frame()).frame["method"].tolist() == ["genetic+novelty"]


def test_an_ablation_is_compared_with_the_full_method(tmp_path) -> None:
    store = Store(tmp_path / "a.sqlite")
    for method, r2 in (("mcts+novelty", 0.9), ("mcts+novelty, values only", 0.8)):
        for k in range(12):
            store.claim(Job(f"t{k}", method, 0))
            result = {"status": "done", "r2_test": r2 - 0.01 * k, "complexity": 5, "novelties": "[1.0]", "sn_calls": 10}
            store.finish(Job(f"t{k}", method, 0), result)
    rows = ablation_table(store.frame()).frame.set_index("method")
    np.testing.assert_allclose(rows.loc["mcts+novelty, values only", ["Δ NMSE", "from", "to"]].astype(float), 0.1)
    assert rows.loc["mcts+novelty, values only", "paper NMSE"] == 0.0723


def test_sn_calls_are_compared_where_neither_run_ended_early(tmp_path) -> None:
    store = Store(tmp_path / "a.sqlite")
    reasons = ("The budget of 10 seconds is spent.", "The fit is exact up to rounding.")
    for method, calls in (("mcts+novelty", 90), ("mcts+novelty, values only", 100)):
        for k, reason in enumerate(reasons):
            job = Job(f"t{k}", method, 0)
            store.claim(job)
            extra = {"extra": json.dumps({"stop_reason": reason}), "sn_calls": calls if k == 0 else 1}
            store.finish(job, {"status": "done", "r2_test": 0.9, "complexity": 5, "novelties": "[1.0]", **extra})
    notes = ablation_table(store.frame()).notes
    assert "90.0 % of the SN calls of 'mcts+novelty, values only' (paper: 90.7 %)" in notes[1]
    assert notes[1].endswith("(runs of each: 1).")


def test_the_command_line_makes_tables_and_figures(store: Store, tmp_path) -> None:
    runner = CliRunner()
    done = runner.invoke(bench_app, ["table", str(store.path), "--kind", "differences"])
    assert done.exit_code == 0, done.output
    assert "genetic → genetic+novelty" in done.output
    done = runner.invoke(bench_app, ["table", str(store.path), "--json"])
    assert {row["method"] for row in json.loads(done.output)} == {"genetic", "genetic+novelty"}
    out = tmp_path / "sub" / "table.md"
    assert runner.invoke(bench_app, ["table", str(store.path), "--out", str(out)]).exit_code == 0
    assert out.read_text(encoding="utf-8").startswith("**Black-box tasks")
    pytest.importorskip("matplotlib")
    picture = tmp_path / "f.svg"
    done = runner.invoke(bench_app, ["figure", str(store.path), "--out", str(picture), "--json"])
    assert json.loads(done.output) == {"written": [str(picture)]}


def test_the_command_line_gives_the_gap(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("SOBOLEV_DATA", raising=False)
    more = tmp_path / "more.json"
    row = {"dataset": "feynman_I_12_1", "algorithm": "A", "symbolic_model": "x0*x1 + x0 +* 1", "r2_test": 0.9}
    more.write_text(json.dumps([row]), encoding="utf-8")
    done = CliRunner().invoke(bench_app, ["gap", str(more), "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.output)
    assert [(m["method"], m["terms"], m["qualified"]) for m in content["methods"]] == [
        ("Ground Truth", 94, 87),
        ("A", 0, 0),
    ]
    assert sum(content["refusals"].values()) == 1


@pytest.mark.parametrize("arguments", [["table", "nowhere.sqlite"], ["run", "nowhere.toml"]])
def test_bad_input_is_one_line_and_exit_code_one(arguments: list[str], capsys, monkeypatch) -> None:
    from sobolev_novelty.ui.cli.main import main

    monkeypatch.setattr("sys.argv", ["sobolev", "bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("sobolev: There is no ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("option", ["--jobs", "--workers"])
def test_a_number_of_jobs_below_one_is_refused_under_its_new_and_its_old_name(option: str, tmp_path) -> None:
    toml = tmp_path / "e.toml"
    toml.write_text('tasks = ["feynman_I_12_1"]\n[methods.linear]\n', encoding="utf-8")
    words = ["run", str(toml), "--store", str(tmp_path / "runs.sqlite"), option, "0", "--json"]
    done = CliRunner().invoke(bench_app, words)
    assert done.exit_code == 1, done.output
    assert json.loads(done.stdout)["error"] == {
        "type": "ParameterError",
        "message": "--jobs must be at least 1. Got 0.",
    }
    assert "--workers" not in CliRunner().invoke(bench_app, ["run", "--help"]).output


def test_the_progress_table_shows_what_runs_and_what_is_left() -> None:
    from rich.console import Console

    console = Console(width=100, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console.file:
        state = SweepProgress(40, 10, 1, tuple((Job(f"t{k}", "m", 0), 61.0) for k in range(15)), 3700.0)
        console.print(progress_table(state))
    text = console.export_text()
    assert "10 of 40 done, 1 without a model, 1 h 01 min to go" in text
    assert "1 min 01 s" in text
    assert "and 3 more" in text
    assert duration(0) == "0 s"


def test_a_page_has_tables_figures_and_how_it_was_made(store: Store, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    gap = gap_table(judge(candidate) for candidate in ground_truth_candidates())
    content = {"coordinates": "own", "methods": json.loads(gap.to_json(orient="records")), "refusals": {"zoo": 2}}
    (tmp_path / "gap.json").write_text(json.dumps(content))
    out = tmp_path / "page" / "results.md"
    sources = [str(tmp_path / "runs.sqlite"), str(tmp_path / "gap.json")]
    done = CliRunner().invoke(bench_app, ["page", *sources, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    written = [Path(path).name for path in json.loads(done.output)["written"]]
    assert written == ["results.md", "results_runs.svg", "results_gap.svg"]
    text = out.read_text()
    for words in (
        "20 tasks, seeds 0",
        "| genetic+novelty |",
        "**Differences, ",
        "(results_runs.svg)",
        "refused 2 ×: zoo",
    ):
        assert words in text
    assert all((out.parent / name).stat().st_size > 1000 for name in written[1:])


def test_a_page_refuses_what_is_neither_store_nor_gap(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    for name, text in (("other.json", "{}"), ("broken.json", '{"methods": ')):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=rf"{name}' was not written by 'sobolev bench gap --json'"):
            write_page([tmp_path / name], tmp_path / "results.md")


def test_a_noise_level_that_was_not_run_is_refused_with_those_that_were(store: Store) -> None:
    with pytest.raises(DataError, match=r"no rows with noise 0\.3\. It has: 0\."):
        results_table(store.frame(), "whitebox", noise=0.3)


def test_a_table_says_which_tasks_of_a_suite_were_not_run(store: Store) -> None:
    frame = store.frame()
    assert "of the 133 tasks of the suite were run." in results_table(frame, "whitebox").notes[-1]
    tasks = suite_tasks("blackbox")
    rows = pd.concat([frame.iloc[:1].assign(task=task) for task in tasks[3:]])
    words = f"119 of the 122 tasks of the suite were run (all but {', '.join(tasks[:3])})."
    assert results_table(rows, "blackbox").notes[-1] == words
    assert len(results_table(frame, "formulas/mine.toml").notes) == 1


def test_a_table_of_stored_rows_needs_no_data(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOBOLEV_DATA", str(tmp_path))
    assert len(results_table(store.frame(), "fastsrb").notes) == 1


def test_a_method_without_multi_term_expressions_has_no_share_of_qualified_terms(store: Store) -> None:
    frame = store.frame().assign(novelties="[1.0]")
    assert results_table(frame, "whitebox").frame["qualified %"].isna().all()


def test_a_method_that_found_nothing_ranks_last(store: Store) -> None:
    frame = store.frame()
    frame.loc[frame["method"] == "genetic", ["complexity", "r2_test"]] = None
    numbers = rank_plane_numbers(frame, "blackbox", with_paper=False).set_index("method")
    assert numbers.loc["genetic", ["accuracy_rank", "complexity_rank"]].tolist() == [2, 2]


def test_an_interval_that_rests_on_a_few_tasks_is_not_clear() -> None:
    a = np.linspace(0.1, 0.9, 100)
    few = paired_difference(a, a + np.where(np.arange(100) < 6, 0.5, 0.0))
    many = paired_difference(a, a + np.where(np.arange(100) < 40, 0.5, 0.0))
    assert few.lower > 0.0 and few.n_differ == 6 and not few.is_clear
    assert many.n_differ == 40 and many.is_clear


def test_the_sign_flip_test_is_calibrated_and_sees_a_shift() -> None:
    rng = np.random.default_rng(0)
    null = [sign_flip_p(rng.standard_t(2, size=40), n_flips=500, seed=k) for k in range(400)]
    assert 0.02 < np.mean(np.array(null) < 0.05) < 0.09
    assert sign_flip_p(rng.normal(1.0, 1.0, 40)) < 0.001
    assert sign_flip_p(np.zeros(40)) == 1.0


@pytest.mark.parametrize("text", ["{", "[1]", '{"precision": "x"}', '{"precision": [1]}'])
def test_a_damaged_column_of_terms_is_named(text: str) -> None:
    with pytest.raises(DataError, match="'terms' holds"):
        term_scores_of(text)


def test_what_was_not_judged_has_no_score() -> None:
    assert term_scores_of(None) == {}
    assert np.isnan(term_scores_of('{"coefficient_error": null}')["coefficient_error"])
