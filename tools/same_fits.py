"""Do two revisions find the same? Sixty small fits with each, compared to the last digit::

    python tools/same_fits.py main HEAD           # builds both in folders of their own; --jobs 2
    python tools/same_fits.py main HEAD --only 7  # one fit again

Compared are the forms in the order in which they were fitted, ``equations_`` with all digits, the chosen row, and the
words about it. Budgets are evaluations, so that the machine does not matter.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: Laws of up to three inputs in (1, 3).
LAWS = (
    "a*b", "a/b**2", "a*exp(-b)", "sin(2*a) + b", "0.5*a*b**2", "sqrt(a/b)", "a*b/(a + b)", "1/(1 + exp(-2*(a - 2)))",
    "a + 0.3*b*c", "a*cos(b) + c", "log(a) - 2*b", "a**1.7", "a*b*c", "(a - b)/c", "2*a/(0.5 + a)", "exp(-(a - 2)**2)",
    "a*(1 - b/3)", "tanh(a - 2)", "a**2 + b**2 - c", "sqrt(a**2 + b**2)",
)  # fmt: skip
PAPER = ("paper_gp", "paper_mcts")


def cases() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Law, what is special about its table, and what is special about the fit."""
    for law in LAWS:
        yield law, {}, {}
    for k, law in enumerate(LAWS[:15]):
        yield law, {"noise": 0.1}, {"engine": "mcts"} if k % 5 == 4 else {}
    for law, n in zip(LAWS[:10], (8, 10, 12, 15, 20, 24, 28, 32, 36, 40), strict=True):
        yield law, {"noise": 0.05, "n": n}, {}
    for law in LAWS[:5]:
        yield law, {"noise": 0.1, "n": 3000}, {}
    yield "a*b", {}, {"units": {"a": "m", "b": "1/s", "c": "kg"}, "y_units": "m/s"}
    yield "a*exp(-b)", {"noise": 0.1}, {"loss": "absolute"}
    yield "a*exp(-b)", {"noise": 0.1}, {"template": "a*f(b)"}
    yield "a*b", {"noise": 0.1, "weights": True}, {}
    yield "a/b", {"noise": 0.1}, {"monotone": {"a": "increasing"}}
    yield "sin(2*a) + b", {"noise": 0.1}, {"islands": 2, "n_jobs": 2}
    for engine in PAPER:
        yield "a*b + c", {"noise": 0.1}, {"engine": engine}
    yield "a*b + sin(c)", {"noise": 0.1}, {"engine": "igsr"}
    yield "a*b + sin(c)", {"noise": 0.1}, {"novelty": False, "noise": "relative"}


def fit(number: int) -> dict[str, Any]:
    """One of them, with the package that is installed."""
    import numpy as np
    import pandas as pd

    import sobolev_novelty as sn

    law, table, options = list(cases())[number]
    rng = np.random.default_rng(number)
    n = table.get("n", 120)
    X = pd.DataFrame(rng.uniform(1.0, 3.0, (n, 3)), columns=["a", "b", "c"])
    y = sn.parse(law)(X)
    y = y + table.get("noise", 0.0) * np.std(y) * rng.normal(size=n)
    forms: list[str] = []
    _listen(forms.append)
    extra = {"sample_weight": rng.uniform(0.5, 2.0, n)} if table.get("weights") else {}
    options = {"engine": "genetic", **options}
    budget = sn.Budget(max_evaluations=400 if options["engine"] in PAPER else 800)
    model = sn.SymbolicRegressor(budget=budget, random_state=0, **_arguments(sn, options)).fit(X, y, **extra)
    found = model.equations_
    return {
        "forms": f"{len(forms)} {zlib.crc32(' '.join(forms).encode()):08x}",
        "equations": [str(e) for e in found["expression"]],
        "losses": [repr(float(loss)) for loss in found["loss"]],
        "chosen": found["chosen"].tolist().index(True),
        "words": [model.reason_, model.noise_, model.stop_reason_],
    }


def _arguments(sn: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The same in the values of 0.2, where a revision has them."""
    if not hasattr(sn, "Constraints"):
        return options
    now = dict(options)
    limits = {name: now.pop(name) for name in ("template", "monotone") if name in now}
    if limits:
        now["constraints"] = sn.Constraints(**limits)
    if "units" in now:
        now["units"] = sn.Units(now["units"], target=now.pop("y_units"))
    if "islands" in now:
        now["parallel"] = sn.Islands(now.pop("islands"))
        del now["n_jobs"]
    return now


def _listen(told: Callable[[str], None]) -> None:
    """Tell every form that is fitted, wherever this revision keeps the class that fits."""
    import sobolev_novelty

    for module in pkgutil.walk_packages(sobolev_novelty.__path__, "sobolev_novelty."):
        if module.name.endswith(".fits"):
            fitter = importlib.import_module(module.name).Fitter
            own = fitter.fit

            def fitted(self: Any, forms: Any, *args: Any, own: Any = own) -> Any:
                for form in forms:
                    told("+".join(map(str, form.terms)))
                return own(self, forms, *args)

            fitter.fit = fitted


def built(revision: str, folder: Path) -> Path:
    """The package of a revision, in a folder of its own."""
    source, target = folder / "source", folder / "package"
    subprocess.run(["git", "worktree", "add", "--detach", "--quiet", source, revision], check=True, cwd=ROOT)
    try:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--target",
            target,
        ]
        subprocess.run([*command, source], check=True)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", source], check=True, cwd=ROOT)
    return target


def found_by(package: Path, number: int) -> Any:
    """What a revision finds, in a process of its own; its last words where it fails."""
    environment = os.environ | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", __file__, "--fit", str(number)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=package)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr[-2000:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("base", nargs="?")
    parser.add_argument("head", nargs="?", default="HEAD")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int)
    parser.add_argument("--fit", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit is not None:
        print(json.dumps(fit(asked.fit)))
        return
    if asked.base is None:
        parser.error("say which revision to compare with: tools/same_fits.py BASE HEAD")
    numbers = range(len(list(cases()))) if asked.only is None else [asked.only]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        packages = [built(revision, Path(folder) / str(k)) for k, revision in enumerate((asked.base, asked.head))]
        jobs = [(number, package) for number in numbers for package in packages]
        found = list(pool.map(lambda job: found_by(job[1], job[0]), jobs))
    different = 0
    for number, one, other in zip(numbers, found[::2], found[1::2], strict=True):
        if one != other or "error" in one:
            different += 1
            keys = [key for key in one | other if one.get(key) != other.get(key)]
            print(f"fit {number}, {list(cases())[number]}: {', '.join(keys) or 'both fail'}")
            for key in keys or ["error"]:
                print(f"  {one.get(key)}\n  {other.get(key)}")
    print(f"{len(found) // 2 - different} of {len(found) // 2} fits are the same.")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
