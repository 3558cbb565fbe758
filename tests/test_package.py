"""The package as a whole: examples in docstrings, sizes, equations, layers, files of the project."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import sobolev_novelty as sn
from places import ROOT, added, source_of

#: Where the package is installed: wheel, editable or source tree.
PACKAGE = Path(sn.__file__).parent
MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages([str(PACKAGE)], "sobolev_novelty.", onerror=lambda name: None)
    if not name.endswith(("__main__", "._native", "._corpus"))
)
NAMED = re.compile(
    r"\b(Eqs?\.|Theorem|Thm\.|Corollary|Proposition|Lemma|Definition|Alg\.|Appendix|Sec\.|Section)\s+"
    r"([A-F](?:\.\d+)*|\d+(?:\.\d+)*)(?:,? (?:and|to) ([A-F](?:\.\d+)+|\d+(?:\.\d+)*))?"
)


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} needs an extra: {error}")
    with np.printoptions():
        result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_packages_own_example_is_true() -> None:
    assert doctest.testmod(sn).failed == 0
    assert doctest.testmod(sn).attempted > 0


@pytest.mark.parametrize("name", sn.__all__)
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(sn, name)
    assert name in dir(sn)
    if not isinstance(value, float | tuple | str):
        assert (value.__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'sobolev_novelty' has no attribute 'no_such_name'"):
        sn.no_such_name  # noqa: B018


def test_no_module_exceeds_600_lines() -> None:
    too_long = {path.name: n for path in sources() if (n := len(path.read_text(encoding="utf-8").splitlines())) > 600}
    assert too_long == {}


def test_the_functions_and_tests_beside_the_equations_exist() -> None:
    missing = []
    for line in (ROOT / "docs" / "equations.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("| ") or line.startswith("| ---") or " | function | " in line:
            continue
        file = ""
        for name in re.findall(r"`([^`]+)`", line):
            if name.startswith(("test_", "::")):
                file = name.partition("::")[0] or file
                test = name.partition("::")[2]
                if f"def {test or 'test_'}" not in source_of(file):
                    missing.append(name)
            elif not name.startswith("sobolev ") and not _resolves(name):
                missing.append(name)
    assert missing == []


def _resolves(name: str) -> bool:
    """Whether a dotted name below the package is a module, or an attribute of one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["sobolev_novelty", *parts[:n]]))
        except ModuleNotFoundError as error:
            if error.name == "torch":
                return True  # what needs the extra cannot be looked at without it
            continue
        for part in parts[n:]:
            if part not in getattr(found, "__dataclass_fields__", {}) and not hasattr(found, part):
                return False
            found = getattr(found, part, None)
        return True
    return False


def test_every_equation_the_code_names_is_listed() -> None:
    listed = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    missing = set()
    for path in sources():
        for kind, first, second in NAMED.findall(path.read_text(encoding="utf-8")):
            for number in filter(None, (first, second)):
                label = f"{kind.replace('Eqs.', 'Eq.').replace('Thm.', 'Theorem')} {number}"
                if not re.search(re.escape(label) + r"(?![\d])", listed):
                    missing.add(f"{path.name}: {label}")
    assert missing == set()


def test_the_tests_and_functions_that_the_list_of_equations_names_exist() -> None:
    table = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| ") and ".py" in line]
    assert len(rows) >= 18
    for row in rows:
        file = ""
        for named, test in re.findall(r"`(test_\w+\.py)?(?:::(test_\w+))?`", row):
            file = named or file
            if test:
                assert f"def {test}(" in source_of(file), test
        places = "algebra.terms|core.geometry|core.linear.projection|metric|report"
        for name in re.findall(rf"`((?:{places})\.[\w.]+)", row):
            assert _resolves(name), name


def test_documents_agree_with_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install . && sobolev demo" in readme
    command = "pip install '.[test]' && pytest"
    assert command in readme
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"version: {project['project']['version']}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((?!http)([^)#]+)\)", readme)) <= {
        str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()
    }


def test_the_architecture_is_two_pages() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split()) <= 1200


def test_every_package_says_in_ten_lines_what_is_not_obvious_there() -> None:
    packages = [path.parent for path in PACKAGE.glob("*/__init__.py")]
    for folder in packages:
        text = (folder / "README.md").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 10 and text.startswith(f"# {folder.name}\n"), folder.name
        for name in re.findall(r"`([a-z_]+(?:[./][a-z_.]+)+)(?:\(\))?`", text):
            inside = ".".join([folder.name, name])
            is_path = any((root / name).exists() for root in (ROOT, PACKAGE, folder))
            is_sentence = name.startswith("report.to_dict")
            assert is_path or is_sentence or _resolves(inside) or _resolves(name), (folder.name, name)


def test_the_layers_of_the_architecture_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers, *_ = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Layers")[2]
    assert re.split(r"\s*›\s*", text.split("```")[1].strip()) == layers


def test_no_folder_has_more_modules_than_one_can_read_at_a_glance() -> None:
    registries = {PACKAGE / "language" / "peers", PACKAGE}  # adapters, one for each package; the tree itself
    for folder in [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]:
        inside = [path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
        names = {path.stem for path in inside} - {"__init__"}
        assert len(names) <= 12 or folder in registries, (folder.name, sorted(names))


def test_the_worked_diffs_of_contributing_fit_the_files() -> None:
    blocks = re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    n_lines = 0
    for header, body in re.findall(r"^(--- .*\n\+\+\+ .*)\n((?:(?!--- ).*\n)*)", "".join(blocks), re.MULTILINE):
        old, new = (line.split()[1] for line in header.splitlines())
        source = "" if old == "/dev/null" else (ROOT / new.removeprefix("b/")).read_text(encoding="utf-8")
        assert source or not (ROOT / new.removeprefix("b/")).exists()
        for line in body.splitlines():
            if line[0] in " -":
                assert f"\n{line[1:]}\n" in source, f"{new}: {line}"
                n_lines += 1
    assert len(blocks) == 7 and n_lines >= 15


@pytest.mark.parametrize("title", ["An engine", "A criterion", "A command", "A family"])
def test_what_a_stranger_adds_takes_at_most_fifteen_lines(title: str) -> None:
    assert 0 < sum(len(text.splitlines()) for text in added(title).values()) <= 15


def test_the_worked_criterion_finds_what_it_says() -> None:
    from sobolev_novelty.search.choose import criteria

    lines = added("A criterion")["src/sobolev_novelty/search/choose/criteria.py"]
    known = dict(vars(criteria))
    exec(lines, known)
    assert known["CRITERIA"][:-1] == criteria.CRITERIA
    found = known["CRITERIA"][-1](sn.parse("x0**13"), None, None)
    assert found.sentence == "It has a power of 13." and known["CRITERIA"][-1](sn.parse("x0**3"), None, None) is None


def test_the_worked_engine_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sobolev_novelty.testing import check_engine

    (tmp_path / "worked_engine.py").write_text(added("An engine")["src/sobolev_novelty/engines/pairs.py"])
    monkeypatch.syspath_prepend(tmp_path)
    check_engine(importlib.import_module("worked_engine").Pairs(), max_evaluations=40)


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(example.strip().splitlines()) <= 11
    exec(compile(example, "README.md", "exec"), {})
    assert re.search(r"^2\.(4|4000\d+|3999\d+)\*sin\(x0\)$", capsys.readouterr().out, re.MULTILINE)


def test_the_readmes_share_of_laws_stands_on_the_page_that_it_links_to() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (result,) = [line for line in readme.splitlines() if "of the 133 white-box laws" in line]
    share = int(re.search(r"finds (\d+) %", result)[1])
    page, section = re.search(r"\]\((docs/[\w-]+\.md)#([\w-]+)\)", result).groups()
    text = (ROOT / page).read_text(encoding="utf-8")
    titles = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)]
    assert section in titles
    assert share in {round(float(number)) for number in re.findall(r"([\d.]+) %", text)}


def test_hashes_name_every_base_dependency_at_its_version() -> None:
    lines = (ROOT / "hashes.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert all(
        re.fullmatch(r"[A-Za-z0-9_.\-]+==[A-Za-z0-9_.+!\-]+ --hash=sha256:[0-9a-f]{64}", line) for line in pinned
    )
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert {line.split()[0] for line in pinned} <= set(constraints)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {line.partition("==")[0].lower() for line in pinned}
    assert {re.match(r"[\w-]+", text)[0].lower() for text in project["dependencies"]} <= names


def test_every_package_of_an_extra_has_its_licence_named() -> None:
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    named = {
        name.strip().lower() for names in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE) for name in names.split(",")
    }
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    packages = {re.match(r"[\w-]+", text)[0].lower() for texts in extras.values() for text in texts}
    assert packages <= named, packages - named


def test_constraints_are_exact_versions_without_addresses() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.\-]+==[A-Za-z0-9_.+!\-]+", line) for line in pinned)
