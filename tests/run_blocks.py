"""Run the blocks of one page in a process of its own: JSON in, what each printed as JSON out.

A process of its own, because other packages change warnings, threads and even the processor's rounding.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import traceback
import warnings
from typing import Any


def run_python(code: str, name: str, namespace: dict[str, Any]) -> tuple[str, str]:
    """What a block printed, and its error."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, name, "exec"), namespace)
    except Exception:
        return out.getvalue(), traceback.format_exc()
    return out.getvalue(), ""


def run_command(command: str) -> tuple[str, str]:
    """What a command printed, and its error. `sobolev` runs in this process unless the shell is needed."""
    words = shlex.split(command, comments=True)
    if not words or words[0] != "sobolev" or re.search(r"[|<>&;$]|\*", command):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, encoding="utf-8", check=False)
        return done.stdout + done.stderr, "" if done.returncode == 0 else f"exit code {done.returncode}"
    from typer.testing import CliRunner

    from sobolev_novelty.ui.cli.main import app

    result = CliRunner(env={"COLUMNS": "100"}).invoke(app, words[1:])
    error = "" if result.exit_code in (0, 3) else f"exit code {result.exit_code}: {result.exception!r}"
    return result.output, error


def main() -> None:
    """Jobs are pairs of a kind and a text."""
    jobs = json.loads(sys.stdin.read())
    os.environ["COLUMNS"] = "100"
    warnings.simplefilter("ignore")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for kind, name, text in jobs:
        found, error = run_python(text, name, namespace) if kind == "python" else run_command(text)
        outputs.append([found, error])
        if error:
            break
    json.dump(outputs, sys.stdout)


if __name__ == "__main__":
    main()
