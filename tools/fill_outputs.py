"""Run the blocks of pages and write what they print below them: python tools/fill_outputs.py docs/tutorial.md …

Outputs that agree already are left as they are, so that only what changed is rewritten. Read the difference before you
commit it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from docs_blocks import PIECE, Block, blocks_of, is_run, outputs_agree, run


def outputs_of(page: Path) -> dict[tuple[int, str], str]:
    """What was printed, by line and text of what was run."""
    blocks = [block for block in blocks_of(page) if is_run(block)]
    plain = [block for block in blocks if not block.needs]
    packages = sorted({block.needs for block in blocks if block.needs and find_spec(block.needs)})
    runs = [plain] + [[plain[0], *(b for b in blocks if b.needs == package)] for package in packages]
    found = {}
    for group in runs:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("results", "experiments"):
                shutil.copytree(ROOT / name, Path(folder) / name)
            for block, what, _, printed in run(page, group, Path(folder)):
                found[block.line, what] = printed
    return found


def rewritten(block: Block, found: dict[tuple[int, str], str]) -> str | None:
    """The block with its output as it is now; None where nothing changes."""
    if block.mark in ("output varies", "set-up"):
        return None
    if block.language == "python":
        printed = found.get((block.line, block.body))
        if printed is None or outputs_agree(block.expected or "", printed):
            return None
        shown = "\n".join(line.rstrip() for line in printed.replace("\u00a0", " ").strip("\n").splitlines())
        return f"```python\n{block.body}```" + (f"\n\n```text\n{shown}\n```" if shown else "")
    lines, changed = [], False
    for command, output in block.commands:
        printed = found[block.line, command]
        agrees = outputs_agree(output, printed)
        changed |= not agrees
        shown = (
            output
            if agrees
            else "".join(f"{line.rstrip()}\n" for line in printed.replace("\u00a0", " ").strip("\n").splitlines())
        )
        lines.append(f"$ {command}\n{shown}")
    return f"```console\n{''.join(lines)}```" if changed else None


def fill(page: Path) -> None:
    """Rewrite one page in place, from its end so that positions stay right."""
    found = outputs_of(page)
    text = page.read_text(encoding="utf-8")
    pieces = {text.count("\n", 0, piece.start()) + 1: piece for piece in PIECE.finditer(text)}
    for block in reversed(blocks_of(page)):
        new = rewritten(block, found) if is_run(block) else None
        if new is None:
            continue
        end = pieces[block.line].end()
        if block.expected is not None:
            end = next(piece.end() for line, piece in sorted(pieces.items()) if line > block.line)
        text = text[: pieces[block.line].start()] + new + text[end:]
        print(f"{page.name}, line {block.line}: output rewritten")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fill(Path(name))
