"""The pages of the site are ours, and their links lead somewhere."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

CHECK = ROOT / "tools" / "check_site.py"
#: What Sphinx writes beside the pages of a project, under these names.
OWN_PAGES = ("search", "genindex", "py-modindex")


def test_no_page_has_the_name_of_one_that_sphinx_writes_itself() -> None:
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.stem in OWN_PAGES] == []


def test_attributes_keep_their_underscores_and_do_not_become_types() -> None:
    pytest.importorskip("sphinx")
    rule = runpy.run_path(str(ROOT / "docs" / "conf.py"))["whole_names"]
    lines = [":ivar stop_reason_: Why.", ":vartype stop_reason_: str", ":ivar n_, m_: Two.", ":param given: a_"]
    rule(None, "class", "Any", None, None, lines)
    assert lines[:2] == [r":ivar stop_reason\_: Why.", r":vartype stop_reason\_: str"]
    # Sphinx takes what stands before a space for the type.
    assert " " not in lines[2].partition(": ")[0].removeprefix(":ivar ") and lines[3] == ":param given: a_"


def test_a_page_that_would_be_overwritten_stops_the_build(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1"\n')
    conf = tmp_path / "docs" / "conf.py"
    conf.write_text((ROOT / "docs" / "conf.py").read_text())
    runpy.run_path(str(conf))
    (tmp_path / "docs" / "search.md").write_text("# Ours\n")
    with pytest.raises(ValueError, match=r"docs/search.md would be overwritten .* Rename it."):
        runpy.run_path(str(conf))


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    good = '<a id="there"></a><a href="b.html#here">b</a><a href="#there">a</a><a href="mailto:a@b"></a>'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.html").write_text('<h1 id="here"></h1><a href="sub/"></a>')
    (tmp_path / "sub" / "index.html").write_text('<a href="../a.html#there"></a>')
    assert run(tmp_path) == (0, "3 pages, no broken link.\n")
    (tmp_path / "b.html").write_text('<a href="a.html#nowhere"></a><img src="none.png"><a href="a.html"></a>')
    code, told = run(tmp_path)
    assert code == 1
    assert told.splitlines() == [
        "a.html: 'b.html#here' names no place of that page.",
        "b.html: 'a.html#nowhere' names no place of that page.",
        "b.html: 'none.png' leads to no file.",
    ]


def test_a_site_without_pages_is_not_taken_for_a_good_one(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 1


def run(site: Path) -> tuple[int, str]:
    """What the tool says of a site."""
    command = [sys.executable, str(CHECK), str(site)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout
