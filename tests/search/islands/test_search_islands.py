"""Islands: searches side by side, in real processes and on a real Dask cluster, one of which is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.engines.genetic import Genetic
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Island, Problem
from sobolev_novelty.search.islands import cores
from sobolev_novelty.search.islands.island import ProcessLink
from sobolev_novelty.search.loop.loop import SearchProgress
from sobolev_novelty.search.propose.beside import Beside
from sobolev_novelty.search.propose.structure.proposals import structural_forms

X = np.random.default_rng(0).uniform(1.0, 3.0, (120, 3))
HARD = np.sin(3.0 * X[:, 0]) * X[:, 1] + np.exp(-X[:, 2] * X[:, 0]) + np.tanh(X[:, 1] - X[:, 2]) * np.log(X[:, 0])


def model(engine: Any = "genetic", **options: Any) -> sn.SymbolicRegressor:
    settings = {"budget": sn.Budget(max_evaluations=1300), "random_state": 3, **options}
    return sn.SymbolicRegressor(engine, **settings)


def quick() -> Genetic:
    return Genetic(structural=False, population_size=60, n_offspring=40)


def test_the_same_seed_gives_the_same_result_for_the_same_number_of_islands() -> None:
    first, second = (model(quick(), parallel=sn.Islands(2)).fit(X, HARD) for _ in range(2))
    assert list(first.equations_["expression"]) == list(second.equations_["expression"])
    assert first.n_evaluations_ == 1300
    assert first.counts_["islands"] == 2
    assert first.stop_reason_ == "The budget of 1300 evaluations is spent."


def test_an_exact_law_ends_all_islands() -> None:
    found = model("mcts", parallel=sn.Islands(2), budget=sn.Budget(max_evaluations=20_000)).fit(
        X, 2.5 * X[:, 0] / X[:, 1]
    )
    assert str(found.expression_) == "2.5*(x0/x1)"
    assert found.n_evaluations_ < 20_000
    assert "exact" in found.stop_reason_


def test_islands_deal_out_the_structural_forms() -> None:
    problem = Problem(
        Rows(as_sample(X[:60, :2]), np.sqrt(X[:60, 0] + X[:60, 1] ** 3)), operators=("add", "mul", "sqrt")
    )

    def forms(island: Island) -> set[str]:
        part = replace(problem, island=island)
        return {str(form) for batch in structural_forms(part, np.random.default_rng(0)) for form in batch}

    whole, first, second = forms(Island()), forms(Island(0, 2)), forms(Island(1, 2))
    assert first | second == whole
    assert max(len(first), len(second)) < 0.8 * len(whole)


def test_islands_look_at_the_same_rows() -> None:
    problem = Problem(Rows(as_sample(X), HARD))
    parts = [replace(problem, island=Island(k, 2, seed=7)) for k in range(2)]
    found = [Beside.of(part, True, np.random.default_rng(k)) for k, part in enumerate(parts)]
    assert {beside.seed for beside in found if beside is not None} == {7}


def test_an_island_that_is_killed_is_begun_again_from_its_last_report(monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[ProcessLink] = []

    def opened(spec: Any) -> ProcessLink:
        links.append(ProcessLink(spec))
        return links[-1]

    def kill_once(_: SearchProgress) -> bool:
        if len(links) == 1:
            os.kill(links[0]._process.pid, signal.SIGKILL)
        return False

    monkeypatch.setattr(cores, "ProcessLink", opened)
    found = model(quick(), parallel=sn.Islands(2)).fit(X, HARD, callback=kill_once)
    assert len(links) == 2
    assert found.n_evaluations_ >= 1300
    assert found.score(X, HARD) > 0.5


def test_no_process_is_left_when_the_search_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[ProcessLink] = []
    monkeypatch.setattr(cores, "ProcessLink", lambda spec: links.append(ProcessLink(spec)) or links[-1])
    model(quick(), parallel=sn.Islands(3), budget=sn.Budget(max_evaluations=300)).fit(X, HARD)
    assert len(links) == 2
    assert all(link._process.poll() is not None for link in links)


def test_an_engine_that_cannot_travel_is_refused_with_what_to_do() -> None:
    class Local(Genetic):
        """Not importable elsewhere."""

    with pytest.raises(ParameterError, match="'engine' cannot be sent to another process.*'parallel'"):
        model(Local(), parallel=sn.Islands(2)).fit(X, HARD)


@pytest.mark.parametrize("number", [0, 2.0, True])
def test_a_number_of_islands_that_is_none_is_refused(number: object) -> None:
    with pytest.raises(ParameterError, match="'number' must be a whole number other than 0"):
        sn.Islands(number)  # type: ignore[arg-type]


def test_a_number_of_cores_never_starts_islands() -> None:
    budget = sn.Budget(max_evaluations=200)
    alone, spread = (model(quick(), parallel=cores, budget=budget).fit(X, HARD) for cores in (1, 3))
    assert "islands" not in spread.counts_
    assert list(alone.equations_["expression"]) == list(spread.equations_["expression"])


def test_a_cluster_of_two_workers_survives_the_death_of_one(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill_once(progress: SearchProgress) -> bool:
            if not killed and progress.n_evaluations > 500:
                worker = next(iter(client.run(os.getpid).values()))
                killed.append(worker)
                os.kill(worker, signal.SIGKILL)
            return False

        alone = model(quick(), budget=sn.Budget(max_evaluations=600)).fit(X, HARD)
        found = model(quick(), parallel=sn.Islands(client=client), budget=sn.Budget(max_evaluations=2400)).fit(
            X, HARD, callback=kill_once
        )
    assert killed
    assert found.counts_["islands"] == 3
    assert found.n_evaluations_ >= 2000
    assert found.score(X, HARD) > alone.score(X, HARD) - 0.05


def test_more_islands_than_workers_and_a_worker_that_is_not_replaced_end_all_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, local_directory=str(tmp_path)) as cluster,
        distributed.Client(cluster) as client,
        contextlib.ExitStack() as processes,
    ):
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, *options]
        workers = [
            processes.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            for _ in range(2)
        ]
        for worker in workers:
            processes.callback(worker.kill)
        client.wait_for_workers(2, timeout=60)

        def kill_once(progress: SearchProgress) -> bool:
            if not killed and progress.n_evaluations > 500:
                killed.append(workers[0].pid)
                workers[0].kill()
            return False

        found = model(quick(), parallel=sn.Islands(4, client=client), budget=sn.Budget(max_evaluations=3000))
        found.fit(X, HARD, callback=kill_once)
    assert killed
    assert found.counts_["islands"] == 4
    assert found.n_evaluations_ >= 2000


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_a_cluster_that_is_closed_during_a_fit_costs_its_islands_and_not_the_search(what: str, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    closed: list[str] = []
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,  # Dask keeps a default whose cluster closed
        pytest.warns(UserWarning, match=r"given up; the others go on.*the client of the cluster is closed"),
    ):

        def close_once(progress: SearchProgress) -> bool:
            if not closed and progress.n_evaluations > 500:
                closed.append(what)
                (client if what == "client" else cluster).close()
            return False

        found = model(quick(), parallel=sn.Islands(client=client), budget=sn.Budget(max_evaluations=2400))
        found.fit(X, HARD, callback=close_once)
        with pytest.raises(ParameterError, match="'client' must be connected to its cluster. Got one that is clos"):
            model(quick(), parallel=sn.Islands(client=client)).fit(X, HARD)
    assert closed == [what]
    assert found.n_evaluations_ >= 1200 and found.score(X, HARD) > 0.9


def test_a_client_that_is_none_is_refused() -> None:
    pytest.importorskip("distributed", reason="needs the extra 'dask'")
    with pytest.raises(ParameterError, match="'client' must be a dask.distributed.Client"):
        sn.Islands(2, client="tcp://127.0.0.1:8786")


class Failing(Genetic):
    """Ends in an error wherever it runs but here."""

    def start(self, problem: Problem, rng: np.random.Generator) -> Any:
        if problem.island.number:
            raise RuntimeError("no luck today")
        return super().start(problem, rng)


def test_an_island_that_fails_every_time_is_given_up_and_the_reason_is_told() -> None:
    with pytest.warns(UserWarning, match=r"died 4 times and was given up.*RuntimeError: no luck today"):
        found = model(Failing(structural=False), parallel=sn.Islands(2), budget=sn.Budget(max_evaluations=900)).fit(
            X, HARD
        )
    assert found.n_evaluations_ == 450
    assert found.score(X, HARD) > 0.3
