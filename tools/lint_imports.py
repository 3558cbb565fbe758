"""The layers of pyproject.toml, checked on the source tree: python tools/lint_imports.py.

In an editable installation a finder of meson-python stands before the path and names no folder, so `lint-imports` by
itself sees a package without modules.
"""

import sys
from pathlib import Path

from importlinter.cli import lint_imports_command

sys.meta_path = [finder for finder in sys.meta_path if "mesonpy" not in type(finder).__name__.lower()]
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
lint_imports_command()
