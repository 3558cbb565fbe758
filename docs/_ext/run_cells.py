"""Run the cells of one example in a process of its own: JSON in, what each cell printed and drew as JSON out."""

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def keep_figures(folder: Path) -> list[str]:
    """Every figure that the script saves is also kept here; the list grows with their names."""
    from matplotlib.figure import Figure

    kept: list[str] = []
    save = Figure.savefig

    def savefig(self: Figure, *arguments: Any, **options: Any) -> None:
        save(self, *arguments, **options)
        name = f"figure{len(kept)}.png"
        save(self, folder / name, dpi=110)
        kept.append(name)

    Figure.savefig = savefig  # type: ignore[method-assign]
    return kept


def main() -> None:
    """Cells share one namespace, as in the script."""
    job = json.loads(sys.stdin.read())
    folder = Path(job["folder"])
    kept = keep_figures(folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for code in job["cells"]:
        text, before = io.StringIO(), len(kept)
        with contextlib.redirect_stdout(text):
            exec(compile(ast.parse(code), job["name"], "exec"), namespace)
        outputs.append({"text": text.getvalue(), "figures": kept[before:]})
    json.dump(outputs, sys.stdout)


if __name__ == "__main__":
    main()
