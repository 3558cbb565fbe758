"""The blocks of a page: what is run, what it should print, and how two outputs are compared.

A page is Markdown. Blocks of one page run in their order, Python in one namespace, all in one temporary folder:

- ```` ```python ````: its output is the ```` ```text ```` block right below;
- ```` ```console ````: a line that begins with `$ ` is a command, the lines below it are its output;
- `[...]` in an output stands for any text, on a line of its own for any lines;
- `<!-- not run: reason -->` above a block: it is not run; `<!-- output varies: reason -->`: it is run, but its output
  is not compared;
- `# needs: package` as a block's first line: all such blocks run in a process of their own behind the page's first
  block, and are skipped without the package;
- `<!-- set-up` … `-->`: Python that is run and not shown, for tables that a page takes for granted.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PIECE = re.compile(
    r"^<!-- (?P<mark>not run|output varies): (?P<reason>.*?) -->$"
    r"|^<!-- set-up\n(?P<setup>.*?)^-->$"
    r"|^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?|(?<![\w.])\.\d+")
ANY = "[...]"


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page: a language, its text, and what a mark above it says."""

    line: int
    language: str
    body: str
    expected: str | None = None
    mark: str = ""
    reason: str = ""

    @property
    def needs(self) -> str:
        """The package that it says it needs."""
        found = re.match(r"# needs: (\w+)\n", self.body)
        return found[1] if found else ""

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Commands of a console block with their outputs."""
        parts = re.split(r"^\$ (.*)\n", self.body, flags=re.MULTILINE)
        return list(zip(parts[1::2], parts[2::2], strict=True))


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks and set-ups of a page, outputs joined to the block above them."""
    text = page.read_text(encoding="utf-8")
    blocks: list[Block] = []
    mark, reason, end = "", "", 0
    for piece in PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["mark"]:
            mark, reason = piece["mark"], piece["reason"]
            continue
        if piece["setup"] is not None:
            blocks.append(Block(line, "python", piece["setup"], mark="set-up"))
            continue
        language = piece["language"].strip()
        is_output = language == "text" and blocks and not text[end : piece.start()].strip()
        if is_output and blocks[-1].language == "python" and blocks[-1].expected is None:
            last = blocks.pop()
            blocks.append(Block(last.line, "python", last.body, piece["body"], last.mark, last.reason))
        else:
            blocks.append(Block(line, language, piece["body"], None, mark, reason))
        mark, reason, end = "", "", piece.end()
    return blocks


def _lines(text: str) -> list[str]:
    """Lines without what does not matter: blanks, bars, trailing space."""
    plain = re.sub(r"[━╌┃─]+", "━", text.replace("\u00a0", " "))
    return [line for line in (" ".join(line.split()) for line in plain.splitlines()) if line]


def _unit(number: str) -> float:
    """One in the last place that is written; whole numbers are counts, and exact."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = mantissa.partition(".")[2]
    return 10.0 ** (int(exponent or 0) - len(decimals)) if decimals or exponent else 0.0


def numbers_agree(expected: str, found: str) -> bool:
    """To three digits, or to one in the last place that is written."""
    a, b = (float(number.replace(",", "")) for number in (expected, found))
    unit = _unit(expected.replace(",", ""))
    return a == b if unit == 0.0 else abs(a - b) <= 1.0001 * max(1e-3 * abs(a), unit)


def _line_agrees(expected: str, found: str) -> bool:
    if ANY in expected:
        pattern = ".*".join(re.escape(part) for part in expected.split(ANY))
        return re.fullmatch(pattern, found) is not None
    first, second = NUMBER.findall(expected), NUMBER.findall(found)
    if NUMBER.split(expected) != NUMBER.split(found) or len(first) != len(second):
        return False
    return all(numbers_agree(a, b) for a, b in zip(first, second, strict=True))


def _matches(expected: list[str], found: list[str]) -> bool:
    if not expected:
        return not found
    if expected[0] == ANY:
        return any(_matches(expected[1:], found[start:]) for start in range(len(found) + 1))
    return bool(found) and _line_agrees(expected[0], found[0]) and _matches(expected[1:], found[1:])


def outputs_agree(expected: str, found: str) -> bool:
    """Whether a page shows what was printed, up to blanks and last digits."""
    return _matches(_lines(expected), _lines(found))


def is_run(block: Block) -> bool:
    """Whether it holds code or commands, and no mark against running them."""
    return block.mark != "not run" and (block.language == "python" or bool(block.commands))


def run(page: Path, blocks: list[Block], folder: Path) -> list[tuple[Block, str, str, str]]:
    """Block, what was run of it, what the page shows and what was printed."""
    jobs, shown = [], []
    for block in blocks:
        name = f"{page.name}:{block.line}"
        if block.language == "python":
            jobs.append(("python", name, "\n" * block.line + block.body))
            shown.append((block, block.body, block.expected or ""))
        else:
            for command, output in block.commands:
                jobs.append(("command", name, command))
                shown.append((block, command, output))
    (folder / "bin").mkdir()
    shim = folder / "bin" / "sobolev"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sobolev_novelty "$@"\n', encoding="utf-8")
    shim.chmod(shim.stat().st_mode | stat.S_IEXEC)
    # As a new user has it: no data but what the package and the checkout bring.
    environment = {name: value for name, value in os.environ.items() if name != "SOBOLEV_DATA"} | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "agg",
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run_blocks.py"))], input=json.dumps(jobs), capture_output=True,
        text=True, encoding="utf-8", cwd=folder, env=environment, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)
    for (block, what, _), (found, error) in zip(shown, outputs, strict=False):
        assert not error, f"{page.name}, line {block.line}: {what}\n{found}\n{error}"
    return [(block, what, expected, found) for (block, what, expected), (found, _) in zip(shown, outputs, strict=True)]
