"""The store of a sweep: one row per (task, method, seed, noise)."""

from __future__ import annotations

from typing import NamedTuple

from sobolev_novelty.lab.evidence.schema import Column, Schema
from sobolev_novelty.lab.evidence.store import EvidenceStore

#: What a row of a sweep holds. To store one thing more, add a line here and return it from whoever computes it.
RUNS = Schema(
    "sobolev bench run",
    (
        Column("task", str, "name of the task", "key"),
        Column("method", str, "label of the method in its experiment", "key"),
        Column("seed", int, "decides the split, the noise and the search", "key"),
        Column("noise", float, "noise on the training target, as a share of its root mean square", "key"),
        Column("expression", str, "what was found, in x0, x1, …"),
        Column("r2_train", float, "R² on the training part; empty where a prediction is not finite"),
        Column("r2_test", float, "R² on the test part; empty where a prediction is not finite"),
        Column("complexity", int, "nodes of the expression"),
        Column("novelties", str, "novelty of every term on the training inputs, JSON"),
        Column("novelty_status", str, "whether novelty could be computed"),
        Column("exact_numeric", int, "1 if the expression is the truth, by numbers"),
        Column("exact_symbolic", int, "1 if it is the truth, by algebra; empty where SymPy gave no answer"),
        Column("exact_note", str, "which rule decided"),
        Column("terms", str, "which terms of the truth were found, JSON; of suites with rows beyond the data"),
        Column("evaluations", int, "candidates that were fitted and scored"),
        Column("sn_calls", int, "novelty evaluations"),
        Column("wall_time", float, "seconds of the fit"),
        Column("traceback", str, "why there is no expression"),
        Column("extra", str, "what else the method reports, JSON"),
        Column("data", str, "fingerprint of the task: its formula and ranges, or its file"),
    ),
)
#: Columns that say where and when, not what: two runs of a deterministic method differ in these only.
CIRCUMSTANCES = ("wall_time", *RUNS.names("origin", "claim"))


class Job(NamedTuple):
    """What identifies a row."""

    task: str
    method: str
    seed: int
    noise: float = 0.0


class Store(EvidenceStore):
    """The results of a sweep.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(f"{tempfile.mkdtemp()}/runs.sqlite")
    >>> job = Job("feynman_I_12_1", "linear", 0)
    >>> store.claim(job), store.claim(job)
    (True, False)
    >>> store.finish(job, {"status": "done", "r2_test": 0.9})
    True
    >>> store.frame()[["task", "r2_test"]].values.tolist()
    [['feynman_I_12_1', 0.9]]
    """

    schema = RUNS
