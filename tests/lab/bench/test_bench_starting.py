"""Jobs are forked from a process that has imported what they need."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from sobolev_novelty.lab.bench.running import starting
from sobolev_novelty.lab.bench.running.experiment import experiment_from
from sobolev_novelty.lab.bench.running.isolation import run_isolated
from sobolev_novelty.lab.bench.running.store import Job
from sobolev_novelty.lab.evidence.claims import process_start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Jobs are forked on Linux only.")


def request(method: str, **options: object) -> dict[str, object]:
    methods = {"m": {"method": f"bench_methods_for_tests:{method}", **options}}
    table = {"tasks": ["strogatz_vdp1"], "max_train_rows": 100, "timeout": 60.0, "methods": methods}
    return experiment_from(table, "test").request(Job("strogatz_vdp1", "m", 0))


def test_jobs_of_one_nursery_share_nothing_but_the_imports() -> None:
    first, second = (run_isolated(request("draws")) for _ in range(2))
    nursery = starting._of_this_thread.nursery
    assert first["status"] == second["status"] == "done"
    assert first["expression"] != second["expression"]
    assert run_isolated(request("crash"))["status"] == "crashed"
    assert starting._of_this_thread.nursery is nursery and nursery.is_alive


@pytest.mark.slow
def test_a_job_that_ends_at_once_is_seen_to_end() -> None:
    begin = time.monotonic()
    for _ in range(10):
        assert run_isolated(request("crash"))["status"] == "crashed"
    assert time.monotonic() - begin < 50.0


@pytest.mark.slow
def test_another_environment_gets_another_nursery(monkeypatch: pytest.MonkeyPatch) -> None:
    run_isolated(request("fail"))
    before = starting._of_this_thread.nursery
    monkeypatch.setenv("SOBOLEV_TEST", "changed")
    run_isolated(request("fail"))
    assert starting._of_this_thread.nursery is not before
    pid = before.process.pid
    del before
    time.sleep(0.2)
    assert process_start(pid) is None, "the old one has ended"


@pytest.mark.slow
def test_a_dead_nursery_is_no_result_and_is_replaced(tmp_path: Path) -> None:
    run_isolated(request("fail"))
    nursery = starting._of_this_thread.nursery
    job = nursery.start(request("slow", seconds=600.0) | {"result_path": str(tmp_path / "r")}, tmp_path / "out")
    os.kill(nursery.process.pid, signal.SIGKILL)
    with pytest.raises(OSError, match="starts jobs has ended"):
        job.wait()
    time.sleep(0.5)
    assert process_start(job.pid) is None, "the job ends with it"
    assert run_isolated(request("fail"))["status"] == "failed"
