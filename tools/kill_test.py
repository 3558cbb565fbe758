"""Kill runs at random moments, with SIGKILL, and check that nothing is lost, doubled or torn.

::

    python tools/kill_test.py                          # 20 kills of each -> results/benchmarks/kills.json
    python tools/kill_test.py --kills 3 bench fit      # fewer, of some

After every kill the files must be readable, and hold all that they held after the kill before. At the end a run that is
left alone must finish: every job once, and for training (the weights) and OpenFOAM (numbers read from the flow) with
the results of a run that was never killed, to the last bit. What was running at each kill is counted as well: a solver
that had not started yet proves nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "results" / "benchmarks" / "kills.json"


class Lost(AssertionError):
    """Something is lost, doubled or torn: its first word says which."""


def demand(condition: object, what: str) -> None:
    if not condition:
        raise Lost(what)


class Scenario(ABC):
    """Work that can be killed, in a folder."""

    @abstractmethod
    def work(self, folder: Path) -> None:
        """Do it, or go on with it, to the end; runs in a process of its own."""

    @abstractmethod
    def state(self, folder: Path) -> Any:
        """What the files hold; raises where one is torn."""

    @abstractmethod
    def grows(self, before: Any, after: Any) -> bool:
        """Whether ``after`` holds all that ``before`` did."""

    @abstractmethod
    def is_whole(self, folder: Path) -> bool:
        """Whether the finished work is all there, once."""


def rows_of(path: Path) -> dict[Any, Any]:
    """Finished rows by key; the file must pass SQLite's own check."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as connection:
        demand(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), "torn: the store")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return {}
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM runs WHERE status != 'claimed'")]
    key = "key" if rows and "key" in rows[0] else "seed"
    found = {row[key]: row for row in rows}
    demand(len(found) == len(rows), f"doubled: {len(rows)} rows of {len(found)} jobs")
    return found


class Bench(Scenario):
    """A sweep of a fast method: four jobs, each in a process of its own."""

    N = 4

    def work(self, folder: Path) -> None:
        from sobolev_novelty.lab.bench.running.experiment import experiment_from
        from sobolev_novelty.lab.bench.running.run import run
        from sobolev_novelty.lab.bench.running.store import Store

        plan = {"tasks": ["strogatz_vdp1"], "seeds": list(range(self.N)), "max_train_rows": 50, "timeout": 120.0}
        run(experiment_from(plan | {"methods": {"linear": {}}}, "kills"), Store(folder / "runs.sqlite"), n_jobs=2)

    def state(self, folder: Path) -> Any:
        return rows_of(folder / "runs.sqlite")

    def grows(self, before: Any, after: Any) -> bool:
        return all(after.get(key) == row for key, row in before.items())

    def is_whole(self, folder: Path) -> bool:
        left = list((folder / "tmp").glob("sobolev-bench-*"))
        return sorted(self.state(folder)) == list(range(self.N)) and not left


class Turbulence(Scenario):
    """The store of a study, filled as a study fills it: what is not there is computed and added."""

    N = 30

    def work(self, folder: Path) -> None:
        from sobolev_novelty.lab.turbulence.studying.store import RunStore

        store = RunStore(folder / "study.sqlite")
        for k in range(self.N):
            if store.find(f"row/{k}") is None:
                store.add(f"row/{k}", {"measures": {"reattachment": float(k)}, "n_terms": k})

    def state(self, folder: Path) -> Any:
        return rows_of(folder / "study.sqlite")

    def grows(self, before: Any, after: Any) -> bool:
        return all(after.get(key) == row for key, row in before.items())

    def is_whole(self, folder: Path) -> bool:
        rows = self.state(folder)
        return len(rows) == self.N and all(
            json.loads(rows[f"row/{k}"]["measures"]) == {"reattachment": float(k)} for k in range(self.N)
        )


class OpenFoam(Scenario):
    """The cross-check of a study: its closures in OpenFOAM, with the real solver, on the mesh of the data."""

    ALPHAS = (0.3, 0.5, 0.7)
    ITERATIONS = 120

    def work(self, folder: Path) -> None:
        from sobolev_novelty.lab.turbulence.selecting import data as hill
        from sobolev_novelty.lab.turbulence.solving.openfoam import OpenFoamSolver
        from sobolev_novelty.lab.turbulence.studying import study

        plan = folder / "study.toml"
        if not plan.exists():
            plan.write_text("[tree_search]\n", encoding="utf-8")
        store = study.study_store(study.load_study(plan), folder)
        closure = hill.load_published().to_dict()
        for alpha in self.ALPHAS:  # what the study in the embedded solver leaves
            if store.find(f"row/{alpha}") is None:
                store.add(f"row/{alpha}", {"closure": closure, "alpha": alpha})
        study.make_solver = lambda name, base: OpenFoamSolver(base, n_iterations=self.ITERATIONS)  # the usual: 4,000
        study.run_study(plan, folder, solver="openfoam")

    def state(self, folder: Path) -> Any:
        return rows_of(folder / "study.sqlite")

    def grows(self, before: Any, after: Any) -> bool:
        return all(after.get(key) == row for key, row in before.items())

    def is_whole(self, folder: Path) -> bool:
        rows = self.state(folder)
        wanted = {f"{kind}/{alpha}" for kind in ("row", "openfoam") for alpha in self.ALPHAS}
        if set(rows) != wanted or list((folder / "tmp").glob("sobolev-foam-*")):
            return False
        found = {key: [rows[key][name] for name in ("measures", "residual", "status")] for key in sorted(rows)}
        first = folder.parent / "first.json"  # of the run that was left alone
        if not first.exists():
            first.write_text(json.dumps(found), encoding="utf-8")
        return bool(json.loads(first.read_text(encoding="utf-8")) == found)


class Fit(Scenario):
    """A search with a checkpoint that is written all the time, and a model at the end."""

    EVALUATIONS = 500

    def work(self, folder: Path) -> None:
        import numpy as np

        from sobolev_novelty.search.loop.loop import Budget
        from sobolev_novelty.search.model import checkpoint
        from sobolev_novelty.search.model.regressor import SymbolicRegressor

        checkpoint.INTERVAL = 0.0
        X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 3))
        y = X[:, 0] * np.sin(3.0 * X[:, 1]) + np.exp(-X[:, 2]) + 0.1 * np.random.default_rng(1).normal(size=60)
        model = SymbolicRegressor("mcts", budget=Budget(max_evaluations=self.EVALUATIONS), random_state=0)
        model.fit(X, y, checkpoint=folder / "run.json").save(folder / "model.json")

    def state(self, folder: Path) -> Any:
        path = folder / "run.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"n_evaluations": 0}

    def grows(self, before: Any, after: Any) -> bool:
        return bool(after["n_evaluations"] >= before["n_evaluations"])

    def is_whole(self, folder: Path) -> bool:
        from sobolev_novelty.search.model.regressor import SymbolicRegressor

        found = SymbolicRegressor.load(folder / "model.json")
        spent = self.state(folder)["n_evaluations"]
        return bool(found.equations_["chosen"].sum() == 1) and spent >= self.EVALUATIONS


class Pretraining(Scenario):
    """A network of some thousand weights, whose state is written five times a second."""

    def work(self, folder: Path) -> None:
        import torch

        from sobolev_novelty.engines.transformer.settings import RunSettings
        from sobolev_novelty.lab.pretraining.train import Limits, train
        from sobolev_novelty.lab.pretraining.trainer import Machine

        torch.set_num_threads(1)
        content = {
            "corpus": {"law": "lean", "seed": 3, "dimensions": [1.0, 1.0], "max_nodes": 12},
            "model": {"tokens": "skeleton", "width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
            "training": {"samples": 1600, "batch": 4, "warmup_steps": 3, "validation": 8},
        }
        limits = Limits(folder / "run", checkpoint_seconds=0.2, log_steps=1, weights=folder / "weights")
        train(RunSettings.from_dict(content), Machine("cpu", n_threads=1), limits)

    def state(self, folder: Path) -> Any:
        from sobolev_novelty.engines.transformer.checkpoint import load_state

        (folder / "run").mkdir(exist_ok=True)
        found = load_state(folder / "run")
        return 0 if found is None else int(found["step"])

    def grows(self, before: Any, after: Any) -> bool:
        return bool(after >= before)

    def is_whole(self, folder: Path) -> bool:
        import torch

        from sobolev_novelty.engines.transformer.checkpoint import read_weights

        through = folder.parent / "through"
        if not through.exists():
            through.mkdir()
            subprocess.run(_command("pretraining", through), check=True, stdout=subprocess.DEVNULL)
        one, other = read_weights(folder / "weights").tensors, read_weights(through / "weights").tensors
        return set(one) == set(other) and all(torch.equal(one[name], other[name]) for name in one)


SCENARIOS: dict[str, type[Scenario]] = {
    "bench": Bench, "fit": Fit, "pretraining": Pretraining, "turbulence": Turbulence, "openfoam": OpenFoam,
}  # fmt: skip


def _command(name: str, folder: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "--work", name, str(folder)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done: how often a program was running when all were killed, runs that reached their end."""

    kills: int
    finished: int
    running: dict[str, int]


def _running(group: int) -> set[str]:
    """Names of the programs in a group of processes."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text(encoding="utf-8").partition("(")[2].rpartition(")")
        except (OSError, UnicodeError):  # it has ended
            continue
        if int(fields.split()[2]) == group and fields.split()[0] not in "ZX":
            found.add(name)
    return found


def kill_at_random(name: str, kills: int, seed: int) -> Outcome:
    """Kill a scenario this often; raises :class:`Lost` where something is wrong."""
    scenario, rng = SCENARIOS[name](), random.Random(seed)
    n_killed, n_finished, round_number = 0, 0, 0
    running: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as top:
        shortest = 0.0
        while n_killed < kills or not n_finished:
            folder = Path(top) / f"round{round_number}"
            is_fresh = not folder.exists()
            folder.mkdir(exist_ok=True)
            before = scenario.state(folder)
            begin = time.monotonic()
            child = subprocess.Popen(_command(name, folder), stdout=subprocess.DEVNULL, start_new_session=True)
            try:
                # The first run is left alone: it says how long one takes.
                child.wait(timeout=None if not n_finished or n_killed >= kills else rng.uniform(0.1, 0.9) * shortest)
            except subprocess.TimeoutExpired:
                running.update(_running(child.pid))
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                n_killed += 1
            else:
                demand(child.returncode == 0, f"{name} ended with exit code {child.returncode}")
                demand(scenario.is_whole(folder), f"lost: the finished work of {name} is not whole")
                if is_fresh:  # one that goes on is over sooner, and would be killed before it works
                    elapsed = time.monotonic() - begin
                    shortest = min(shortest or elapsed, elapsed)
                n_finished += 1
                round_number += 1
                continue
            after = scenario.state(folder)
            demand(scenario.grows(before, after), f"lost: {before} of {name} became {after}")
        # What the last kill left is finished.
        folder = Path(top) / f"round{round_number}"
        folder.mkdir(exist_ok=True)
        subprocess.run(_command(name, folder), check=True, stdout=subprocess.DEVNULL)
        demand(scenario.is_whole(folder), f"lost: the finished work of {name} is not whole")
    return Outcome(n_killed, n_finished + 1, dict(running))


def stored_outcome(name: str, kills: int, seed: int) -> dict[str, Any]:
    """Kill a scenario and say what came of it, also where something is wrong."""
    from sobolev_novelty.lab.evidence.origin import circumstances

    found: dict[str, Any] = {"what": (SCENARIOS[name].__doc__ or "").strip(), "seed": seed, **circumstances()}
    begin = time.monotonic()
    try:
        found |= asdict(kill_at_random(name, kills, seed)) | {"lost": 0, "doubled": 0, "torn": 0}
    except Lost as error:
        found |= {"failed": str(error)}
    return found | {"seconds": round(time.monotonic() - begin)}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path, default=STORED, help="what is there of other scenarios stays")
    parser.add_argument("--work", metavar="NAME", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        warnings.simplefilter("ignore")
        folder = Path(given.names[0])
        (folder / "tmp").mkdir(exist_ok=True)
        tempfile.tempdir = str(folder / "tmp")
        SCENARIOS[given.work]().work(folder)
        return 0
    stored = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    for name in given.names or SCENARIOS:
        if name == "openfoam" and shutil.which("simpleFoam") is None:
            print("openfoam: left out, simpleFoam is not installed", flush=True)
            continue
        stored[name] = stored_outcome(name, given.kills, given.seed)
        print(name, json.dumps(stored[name]), flush=True)
        given.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return int(any("failed" in found for found in stored.values()))


if __name__ == "__main__":
    sys.exit(main())
