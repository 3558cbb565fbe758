"""Sobolev Novelty: which terms of an equation are distinct, needed and determined by the data?

>>> import sobolev_novelty as sn
>>> report = sn.novelty("x0 + sin(x0)", [[i / 50 - 1] for i in range(100)])
>>> report.qualified.tolist()
[False, False]
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

from sobolev_novelty.moved import install


def _public() -> dict[str, str]:
    """Public name -> module, as the stub beside this file has them for type checkers."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {name.name: node.module or "" for node in imports for name in node.names}


install()

#: Names are imported on first use, so that `import sobolev_novelty` loads nothing heavy.
_PUBLIC = _public()

__all__ = sorted(_PUBLIC)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sobolev-novelty")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'sobolev_novelty' has no attribute '{name}'")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
