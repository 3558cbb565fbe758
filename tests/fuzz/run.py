"""Fuzz for a while: every error must derive from SobolevError, and no case may take longer than two seconds.

::

    python tests/fuzz/run.py --seconds 60                      # every target, seeds from today's date
    python tests/fuzz/run.py --target tables --seed 20260101   # one target, a seed that was printed

A failure prints the target, its seed and the number of the case; ``--seed S --first N --cases 1`` runs that case again.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.targets import TARGETS, Case
from sobolev_novelty.errors import SobolevError

#: A case that takes longer is a failure, in seconds of processor time; one that hangs ends the run with a traceback.
SLOW, HANGS = 2.0, 120.0


class Foreign(AssertionError):
    """A case that ended in an error of somebody else, or took too long."""


def random_source(seed: int, number: int) -> Random:
    """The random source of one case."""
    return Random(f"{seed}/{number}")


def attempt(case: Case, seed: int, number: int) -> str:
    """Run one case: ``"fine"``, or the class of our own error. Raises :class:`Foreign` otherwise."""
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case(random_source(seed, number))
        outcome = "fine"
    except SobolevError as error:
        if not str(error).strip():
            raise Foreign(f"case {number}: an error without a message") from error
        outcome = type(error).__name__
    except Exception as error:
        raise Foreign(f"case {number}: {type(error).__name__}: {str(error)[:300]}") from error
    if time.process_time() - begin > SLOW:
        raise Foreign(f"case {number} took {time.process_time() - begin:.1f} s")
    return outcome


def fuzz(
    make: Callable[[Path], Case], seed: int, *, first: int = 0, cases: int = 2**62, seconds: float = 1e9
) -> Counter[str]:
    """Run cases until their number or the time is spent; what came out of them, and how often."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        case = make(Path(folder))
        end = time.monotonic() + seconds
        number = first
        while number < first + cases and time.monotonic() < end:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            outcomes[attempt(case, seed, number)] += 1
            number += 1
        faulthandler.cancel_dump_traceback_later()
    return outcomes


def main() -> int:
    """Entry point; the exit code is the number of targets that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: all")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=int(datetime.now(UTC).strftime("%Y%m%d")))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=2**62)
    parser.add_argument(
        "--go-on", action="store_true", help="count failures by their text instead of stopping at the first"
    )
    given = parser.parse_args()
    n_failed = 0
    for name in given.target or TARGETS:
        first, end = given.first, time.monotonic() + given.seconds
        total: Counter[str] = Counter()
        failed = False
        with tempfile.TemporaryDirectory() as folder:
            case = TARGETS[name](Path(folder))
            while first < given.first + given.cases and time.monotonic() < end:
                faulthandler.dump_traceback_later(HANGS, exit=True)
                try:
                    total[attempt(case, given.seed, first)] += 1
                except Foreign as error:
                    failed = True
                    print(f"{name}, seed {given.seed}: {error}", flush=True)
                    cause = error.__cause__
                    if cause is not None:
                        print("".join(traceback.format_exception(cause)[-4:]), flush=True)
                    if not given.go_on:
                        break
                first += 1
            faulthandler.cancel_dump_traceback_later()
        n_failed += failed
        print(f"{name}, seed {given.seed}: {first - given.first} cases, {dict(total.most_common())}", flush=True)
    return n_failed


if __name__ == "__main__":
    sys.exit(main())
