"""How far the kernel's functions are from the truth, in units of the last place, for every instruction set.

The truth is mpmath's, with 50 digits. ``python -m benchmarks.ulp`` writes ``results/benchmarks/ulp.json`` and the table
of ``docs/limits.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "results" / "benchmarks" / "ulp.json"
PAGE = ROOT / "docs" / "limits.md"
MARKS = ("<!-- ulp: made by benchmarks/ulp.py -->", "<!-- end of ulp -->")
SETS = ("baseline", "avx2", "avx512")
#: Operator -> the interval its operands are drawn from; sizes are drawn evenly in the logarithm.
RANGES: dict[str, tuple[float, float]] = {
    "sqrt": (0.0, 1e300), "cbrt": (-1e300, 1e300), "exp": (-700.0, 700.0), "log": (0.0, 1e300), "log2": (0.0, 1e300),
    "log10": (0.0, 1e300), "sin": (-1e4, 1e4), "cos": (-1e4, 1e4), "tan": (-1e4, 1e4), "arcsin": (-1.0, 1.0),
    "arccos": (-1.0, 1.0), "arctan": (-1e10, 1e10), "sinh": (-700.0, 700.0), "cosh": (-700.0, 700.0),
    "tanh": (-30.0, 30.0), "arcsinh": (-1e10, 1e10), "arccosh": (1.0, 1e10), "arctanh": (-1.0, 1.0),
    "log1p": (-1.0, 1e10), "inv": (-1e300, 1e300), "pow": (0.0, 1e10),
}  # fmt: skip


def operands(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Half of them even in the interval, half even in the logarithm."""
    low, high = RANGES[name]
    even = rng.uniform(max(low, -1e6), min(high, 1e6), n // 2)
    top = min(abs(high), 1e300)
    spread = 10.0 ** rng.uniform(-15.0, np.log10(top), n - n // 2)
    if low < 0.0:
        spread *= rng.choice([-1.0, 1.0], len(spread))
    if low > 0.0:
        spread = low + spread
    found = np.concatenate([even, spread])
    return found[(found > low) & (found < high) & (found != 0.0)]


def truths() -> dict[str, Callable[..., Any]]:
    """Operator -> function of mpmath."""
    import mpmath

    named = {
        name: getattr(mpmath, name)
        for name in ("sqrt", "exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    }
    return named | {
        "cbrt": lambda a: mpmath.sign(a) * mpmath.cbrt(abs(a)), "log2": lambda a: mpmath.log(a) / mpmath.log(2),
        "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "arcsinh": mpmath.asinh,
        "arccosh": mpmath.acosh, "arctanh": mpmath.atanh, "log1p": mpmath.log1p, "inv": lambda a: 1 / a,
        "pow": lambda a, b: a**b,
    }  # fmt: skip


def errors(name: str, n: int = 2000, seed: int = 0) -> np.ndarray:
    """Distances from the truth, in units of the last place of the truth rounded."""
    import mpmath

    from sobolev_novelty import kernels
    from sobolev_novelty.core.expression import Expression
    from sobolev_novelty.kernels.program import compile_programs

    rng = np.random.default_rng(seed)
    X = [operands(name, n, rng)]
    if name == "pow":
        X.append(rng.uniform(-20.0, 20.0, len(X[0])))
    programs = compile_programs([Expression.of(name, *["x0", "x1"][: len(X)])], ("x0", "x1")[: len(X)])
    found = kernels.derivatives(programs, np.array(X), 0)[0, 0]
    truth = truths()[name]
    distances = []
    with mpmath.workdps(50):
        for row, value in zip(np.array(X).T.tolist(), found.tolist(), strict=True):
            exact = truth(*map(mpmath.mpf, row))
            rounded = float(exact)
            if np.isfinite(rounded) and abs(rounded) > 1e-300:
                distances.append(float(abs(mpmath.mpf(value) - exact) / float(np.spacing(abs(rounded)))))
    return np.array(distances)


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """The largest errors as Markdown."""
    sets = list(found)
    lines = [f"| function | {' | '.join(sets)} |", f"| --- |{' ---: |' * len(sets)}"]
    lines += [f"| {name} | {' | '.join(format(found[s][name]['max'], '.2f') for s in sets)} |" for name in RANGES]
    return "\n".join(lines)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", action="store_true", help="the present instruction set, as JSON on standard output")
    parser.add_argument("-n", type=int, default=2000, help="operands for each function")
    given = parser.parse_args()
    if given.one:
        distances = {name: errors(name, given.n) for name in RANGES}
        print(
            json.dumps(
                {
                    name: {"max": round(float(d.max()), 3), "mean": round(float(d.mean()), 3), "n": len(d)}
                    for name, d in distances.items()
                }
            )
        )
        return
    found = {}
    for name in SETS:
        command = [sys.executable, "-m", "benchmarks.ulp", "--one", "-n", str(given.n)]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "SOBOLEV_SIMD": name}, capture_output=True, text=True, check=True
        )
        found[name] = json.loads(done.stdout)
    STORED.write_text(json.dumps(found, indent=1) + "\n")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{table(found)}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
