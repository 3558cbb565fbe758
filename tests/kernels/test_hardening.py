"""How the compiled units are linked: what reads foreign programs is guarded, and nothing is looked up late."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from sobolev_novelty.kernels.backend import native

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("readelf") is None, reason="needs Linux and readelf"
)


def shown(option: str) -> str:
    module = native()
    if module is None:
        pytest.skip("the compiled kernel is not built: make kernel")
    command = ["readelf", option, "--wide", str(module.__file__)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_kernel_has_stack_guards_and_is_bound_at_once() -> None:
    assert "__stack_chk_fail" in shown("--dyn-syms")
    assert "NOW" in shown("--dynamic")
    headers = shown("--program-headers")
    assert "GNU_RELRO" in headers
    (stack,) = [line for line in headers.splitlines() if "GNU_STACK" in line]
    assert "RWE" not in stack
