"""Methods that misbehave, named in experiments as ``bench_methods_for_tests:…``."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import require
from sobolev_novelty.lab.bench.running.methods import MethodResult, linear


def slow(X, y, *, seed, budget, seconds):
    time.sleep(seconds)
    return linear(X, y, seed=seed, budget=budget)


def what_is_given(X, y, *, seed, budget, units=None, y_units=None):
    extra = {"columns": X.shape[1], "units": units, "y_units": y_units}
    return MethodResult(linear(X, y, seed=seed, budget=budget).expression, extra=extra)


def hang(X, y, *, seed, budget, pid_file):
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(pid_file, "w") as handle:
        handle.write(f"{os.getpid()} {grandchild.pid}")
    while True:
        pass


def hog(X, y, *, seed, budget):
    return bytearray(64 * 1024**3)


def crash(X, y, *, seed, budget):
    os.abort()


def fail(X, y, *, seed, budget):
    raise ValueError("no such luck")


def outside_domain(X, y, *, seed, budget):
    return MethodResult(Expression.of("log", Expression.of("sub", "x0", 1000.0)))


def bad_assessment(X, y, *, seed, budget):
    from sobolev_novelty.lab.bench.judging import judge

    assert hasattr(judge, "novelties")  # a name that nobody calls would make nothing stuck
    judge.novelties = lambda *arguments: time.sleep(600)
    return linear(X, y, seed=seed, budget=budget)


def recurse(X, y, *, seed, budget):
    return recurse(X, y, seed=seed, budget=budget)


def no_room(X, y, *, seed, budget):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def needs_a_package(X, y, *, seed, budget):
    return require("a_package_that_nobody_has", extra="bench")


def killed_by_the_system(X, y, *, seed, budget):
    os.kill(os.getpid(), signal.SIGKILL)  # as the out-of-memory killer does


def draws(X, y, *, seed, budget):
    """A method that asks nobody for a seed."""
    import numpy as np

    return MethodResult(Expression.of(float(np.random.random())))  # noqa: NPY002
