"""Every block of every page runs, and prints what the page shows (`docs_blocks` has the rules)."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

import sobolev_novelty as sn
from docs_blocks import Block, blocks_of, is_run, numbers_agree, outputs_agree, run
from places import ROOT, source_of

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
#: Written by `sobolev bench page` and `benchmarks.run` from stored runs.
GENERATED = ("results.md", "speed.md")
SHOWN = ("text", "json", "toml", "diff", "latex", "sh-session")
WITH_BLOCKS = [
    page
    for page in PAGES
    if page.name not in GENERATED and any(b.commands or b.language == "python" for b in blocks_of(page))
]
#: Blocks that need a network, a GPU, a solver or hours, with the reason above each. More need a better reason.
MOST_NOT_RUN = 25
#: Blocks that run, but whose output is another on each machine or in each run: searches of other packages, clocks.
MOST_VARYING = 15


def compare(page: Path, results: list[tuple[Block, str, str, str]]) -> None:
    wrong = []
    for block, what, expected, found in results:
        if block.mark in ("output varies", "set-up"):
            continue
        if not outputs_agree(expected, found):
            wrong.append(
                f"{page.name}, line {block.line}\n{what}\n--- the page shows\n{expected}\n--- printed\n{found}"
            )
    assert wrong == [], "\n\n".join(wrong)


#: Pages that every run of the tests follows; CI follows all.
FOLLOWED = ("README", "start")
RUN = [page if page.stem in FOLLOWED else pytest.param(page, marks=pytest.mark.slow) for page in WITH_BLOCKS]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    if page.stem in ("transformer", "pretraining"):
        pytest.importorskip("torch", reason="this page needs torch")
    for name in ("results", "experiments"):
        shutil.copytree(ROOT / name, tmp_path / name)
    compare(page, run(page, [b for b in blocks_of(page) if is_run(b) and not b.needs], tmp_path))


PEERS = sorted({(page, block.needs) for page in PAGES for block in blocks_of(page) if block.needs and is_run(block)})


@pytest.mark.parametrize(("page", "package"), PEERS, ids=[f"{page.stem}-{package}" for page, package in PEERS])
def test_blocks_that_need_a_package_print_what_the_page_shows(page: Path, package: str, tmp_path: Path) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    runnable = [block for block in blocks_of(page) if is_run(block)]
    first = next(block for block in runnable if not block.needs)
    compare(page, run(page, [first, *(block for block in runnable if block.needs == package)], tmp_path)[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks_of(page):
        place = f"{page.name}, line {block.line}"
        if page.name in GENERATED or block.language.startswith("{"):
            continue
        if page.name == "README.md" and "pip install" in block.body:  # the two commands that CI runs
            continue
        assert block.language in (*SHOWN, "python", "console"), f"{place}: a block of language {block.language!r}"
        assert block.language != "console" or block.commands, (
            f"{place}: a console block has commands that begin with '$ '"
        )
        assert ">>>" not in block.body or block.language != "python", f"{place}: outputs go into a block of their own"


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    marked, varying = (
        [(page.name, b.line, b.reason) for page in PAGES for b in blocks_of(page) if b.mark == mark]
        for mark in ("not run", "output varies")
    )
    assert all(len(reason.split()) >= 2 for _, _, reason in marked + varying)
    assert len(marked) <= MOST_NOT_RUN, marked
    assert len(varying) <= MOST_VARYING, varying
    assert sum(is_run(block) for page in PAGES for block in blocks_of(page)) >= 3 * len(marked)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as MyST and GitHub make them, and of labels."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", h.lower().replace("`", "")).strip().replace(" ", "-") for h in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)) | set(re.findall(r'id="([\w-]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_resolve(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            assert re.fullmatch(r"https?://[\w.-]+(/[\w./~%#?=&+-]*)?", target), f"{page.name}: {target}"
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        made = file.parent.name == "gallery"  # written when the site is built
        assert made or file.is_file(), f"{page.name}: {target}"
        if anchor and file.suffix == ".md" and not made:
            assert anchor in anchors(file), f"{page.name}: {target}"


def test_tests_that_pages_name_exist() -> None:
    named = 0
    for page in PAGES:
        file = ""
        for module, test in re.findall(
            r"`(?:tests/[\w/]*)?(test_\w+\.py)?(?:::(test_\w+))?`", page.read_text(encoding="utf-8")
        ):
            file = module or file
            if file:
                assert f"def {test or 'test_'}" in source_of(file), f"{page.name}: {file}::{test}"
                named += bool(module)
    assert named >= 40


def test_the_reference_lists_every_public_name() -> None:
    listed = set(re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE))
    names = {name for name in sn.__all__ if not name.startswith("_") and name != "TAU_ID"}
    assert names <= listed, names - listed


def test_every_adapter_is_on_the_page_of_models() -> None:
    from sobolev_novelty.language.peers import ADAPTERS

    page = (DOCS / "any-model.md").read_text(encoding="utf-8").lower().replace("-", "_")
    assert [library for library in ADAPTERS if library.lower() not in page.replace("scikit_learn", "sklearn")] == []


def test_outputs_are_compared_to_three_digits_and_not_by_their_blanks() -> None:
    assert numbers_agree("0.1234", "0.12345") and not numbers_agree("0.123", "0.133")
    assert numbers_agree("0.003", "0.002") and not numbers_agree("300", "301")
    assert outputs_agree("a  0.50\n\nb", "a 0.5001\nb\n") and not outputs_agree("a 1.00", "b 1.00")
    assert outputs_agree("first\n[...]\nlast", "first\n1\n2\nlast") and outputs_agree("in [...] s", "in 3.4 s")
    assert not outputs_agree("first", "first\nsecond")
