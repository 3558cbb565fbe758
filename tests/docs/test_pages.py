"""Pages agree with the stores they quote."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pandas as pd
import pytest

from places import ROOT
from sobolev_novelty.lab.bench.judging.against_line import beaten_table
from sobolev_novelty.lab.bench.running.store import Store
from sobolev_novelty.lab.bench.showing.tables import task_scores

_spec = importlib.util.spec_from_file_location("pages", ROOT / "tools" / "pages.py")
assert _spec is not None and _spec.loader is not None
pages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pages)

BLOCKS = [
    pytest.param(block["command"], block["text"], id=f"{path.name}: {block['command']}")
    for path in pages.pages()
    for block in pages.BLOCK.finditer(path.read_text(encoding="utf-8"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "text"), BLOCKS)
def test_a_block_is_what_its_command_prints(command: str, text: str) -> None:
    assert pages.output_of(command) == text


def test_a_block_is_replaced_and_the_rest_of_the_page_is_not() -> None:
    page = "before\n<!-- made by: sobolev --version -->\nold\n<!-- end -->\nafter\n"
    new = pages.refreshed(page)
    assert new.startswith("before\n<!-- made by: sobolev --version -->\n") and new.endswith("<!-- end -->\nafter\n")
    assert "old" not in new and pages.refreshed(new) == new


def test_a_block_of_another_command_is_refused() -> None:
    with pytest.raises(SystemExit, match="is made by"):
        pages.output_of("rm -rf results")


def test_the_published_rates_of_srbench_are_those_of_its_table() -> None:
    root = os.environ.get("SOBOLEV_DATA")
    if not root:
        pytest.skip("SOBOLEV_DATA is not set: SRBench's published table is not here")
    frame = pd.read_csv(Path(root) / "srbench_results" / "srbench2021_groundtruth_medians.csv.gz")
    rates = 100.0 * frame.groupby(["target_noise", "algorithm"])["symbolic_solution_rate"].mean()
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    for noise, n_quoted in ((0.0, 2), (0.1, 2), (0.001, 1), (0.01, 1)):
        for method, rate in rates[noise].sort_values(ascending=False)[:n_quoted].items():
            assert f"{method}, {rate:.1f} %" in page or f"{method} with {rate:.1f} %" in page


@pytest.mark.parametrize(
    ("store", "noise", "in_readme"),
    [
        (
            "found_exact",
            0.0,
            "{numeric:.0f} % of the 133 white-box laws in at most 30 seconds each on one core ({symbolic:.0f} %",
        ),
        ("found_noisy", 0.1, "{numeric:.0f} % of them at 10 % noise ({symbolic:.0f} % by SymPy"),
        ("found_noisy", 0.01, ""),
        ("found_noisy", 0.001, ""),
    ],
)
def test_our_rates_beside_srbenchs_are_those_of_the_stores(store: str, noise: float, in_readme: str) -> None:
    frame = Store(ROOT / "results" / f"{store}.sqlite", read_only=True).frame()
    rows = frame[(frame["method"] == "genetic+novelty") & (frame["noise"] == noise)]
    assert len(rows) == 133
    shares = {kind: 100.0 * rows[f"exact_{kind}"].fillna(0).astype(float).mean() for kind in ("symbolic", "numeric")}
    words = "| {symbolic:.1f} % | {numeric:.1f} %".format(**shares)
    assert words in (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert in_readme.format(**shares) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_black_box_rates_of_the_page_of_evidence_are_those_of_the_store() -> None:
    frame = Store(ROOT / "results" / "blackbox_seeds.sqlite", read_only=True).frame()
    scores = task_scores(frame).groupby("method")[["r2", "complexity"]].mean()
    ours, operon, line = (scores.loc[name] for name in ("genetic+novelty", "pyoperon", "linear"))
    beaten = beaten_table(frame, "blackbox").frame
    words = (
        f"mean R² of {ours.r2:.2f} with {ours.complexity:.0f} nodes",
        f"{operon.r2:.2f} with {operon.complexity:.0f}",
        f"least squares {line.r2:.2f}",
        f"{(beaten['method'] == 'genetic+novelty').sum()} of our {(frame['method'] == 'genetic+novelty').sum()} runs",
    )
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert [text for text in words if text not in page] == []
