r"""Is this expression the truth? SRBench's notion of an exact symbolic solution, checked twice.

Notation
--------
``m, t``  values of the model and of the truth at points neither was fitted on
``c``     a constant

A model is an exact solution if ``model - truth`` is a constant, or ``model / truth`` a constant other than zero.

*By numbers.* The model counts if the part of ``m`` that ``t + c`` (or ``c t``) does not reach is below 1e-6 of the
spread (or length) of ``t``, and it is not a constant itself. This is tried with the constants as they are, and again
with each constant replaced by the nearest fraction with denominator up to 12, or multiple of :math:`\pi` by such a
fraction, where that lies within 0.1 %: a fit that stopped at 0.49997 means 1/2.

*By algebra.* SymPy simplifies the difference and the ratio with all floats rounded to three decimals, as SRBench
does, in a child process that is killed when its time is up; ``None`` then. Rounding makes this verdict the more
generous one for constants near 1 and a random one for constants below 1e-3; the numbers are the better judge, and
both are stored.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from sobolev_novelty.algebra.numbers import nearest_simple
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.running.worker import end_with_parent

#: Largest unexplained share of an exact solution.
NUMERIC_TOLERANCE = 1e-6
#: A constant is moved to a simple number this near to it, relatively.
SNAP_DISTANCE = 1e-3
SNAP_DENOMINATOR = 12
#: Beyond this share, no rounding of constants makes the model the truth: algebra is not tried.
HOPELESS = 0.05
ALGEBRA_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ExactVerdict:
    """Both verdicts."""

    numeric: bool
    symbolic: bool | None  # ``None`` where SymPy gave no answer in time
    note: str  # which rule decided, or why there is no answer


def exact_solution(
    model: Expression, truth: Expression, X: FloatArray, *, algebra_seconds: float = ALGEBRA_SECONDS
) -> ExactVerdict:
    """Whether ``model`` is ``truth`` up to an added or a multiplied constant.

    ``model``, ``truth``: in the names ``x0, x1, …``.
    ``X``: shape (n_samples, n_features), points that were not used for fitting.
    ``algebra_seconds``: time for SymPy; 0 skips it.
    """
    t = evaluate(truth, X)
    shares = {"as found": _unexplained(evaluate(model, X), t)}
    shares["with simple constants"] = _unexplained(evaluate(snapped(model), X), t)
    how, (rule, share) = min(shares.items(), key=lambda item: item[1][1])
    numeric = share <= NUMERIC_TOLERANCE
    note = f"{rule} {how}: {share:.1e} unexplained."
    if share > HOPELESS:
        return ExactVerdict(False, False, note)
    if algebra_seconds <= 0:
        return ExactVerdict(numeric, None, f"{note} Algebra was not tried.")
    symbolic, reason = symbolic_verdict(model, truth, algebra_seconds)
    return ExactVerdict(numeric, symbolic, f"{note} {reason}")


def _unexplained(m: FloatArray, t: FloatArray) -> tuple[str, float]:
    """The better of the two rules, and the share of the truth it leaves unexplained."""
    usable = np.isfinite(t)
    m, t = m[usable], t[usable]
    if not np.isfinite(m).all() or len(t) < 2 or np.ptp(m) <= 1e-12 * np.abs(m).max():
        return "difference", math.inf
    # A truth that is itself constant cannot occur in the suites; its spread would be zero.
    spread = float(np.std(t)) or math.inf
    difference = float(np.std(m - t)) / spread
    # Least squares through the origin, for m = c t, judged against the centred part so that an offset cannot hide an
    # error.
    c = float(m @ t / (t @ t))
    ratio = float(np.sqrt(np.mean((m - c * t) ** 2))) / (abs(c) * spread) if c != 0.0 else math.inf
    return ("difference", difference) if difference <= ratio else ("ratio", ratio)


def snapped(expression: Expression) -> Expression:
    """The expression with each constant moved to a simple number, where one is near."""
    bases, denominators = (1.0, math.pi, 1.0 / math.pi), range(1, SNAP_DENOMINATOR + 1)
    return expression.with_constants(
        [
            nearest_simple(value, SNAP_DISTANCE, bases=bases, denominators=denominators, is_relative=True) or value
            for value in expression.constants
        ]
    )


def symbolic_verdict(model: Expression, truth: Expression, seconds: float = ALGEBRA_SECONDS) -> tuple[bool | None, str]:
    """SRBench's check in a child process: verdict and the rule that decided."""
    request = json.dumps({"model": str(model), "truth": str(truth)})
    # A job of the benchmark was forked with SymPy in it: to fork again costs nothing, to import it anew a second.
    answered = _forked if sys.platform == "linux" and "sympy" in sys.modules else _alone
    try:
        answer = answered(request, seconds)
    except TimeoutError:
        return None, f"SymPy gave no answer in {seconds:g} s."
    except ChildProcessError as error:
        return None, f"SymPy failed: {error}"
    return bool(answer["verdict"]), str(answer["rule"])


def _alone(request: str, seconds: float) -> dict[str, Any]:
    """The answer of a fresh interpreter."""
    command = [sys.executable, "-m", "sobolev_novelty.lab.bench.judging.exact"]
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ChildProcessError(last[0])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _forked(request: str, seconds: float) -> dict[str, Any]:
    """The answer of a copy of this process."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_tell_answer, args=(sender, request, os.getpid()))
    child.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            raise TimeoutError
        told: dict[str, Any] = receiver.recv()
    except EOFError:
        child.join()
        raise ChildProcessError(f"exit code {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
    if "error" in told:
        raise ChildProcessError(told["error"])
    return told


def _tell_answer(sender: Connection, request: str, parent: int) -> None:
    # A job that is killed cannot end its children, and SymPy may think for hours.
    end_with_parent()
    if os.getppid() != parent:
        return
    try:
        sender.send(_answered(request))
    except Exception as error:
        sender.send({"error": f"{type(error).__name__}: {error}"})


def _answered(request: str) -> dict[str, Any]:
    asked = json.loads(request)
    verdict, rule = _answer(asked["model"], asked["truth"])
    return {"verdict": verdict, "rule": rule}


def _answer(model_text: str, truth_text: str) -> tuple[bool, str]:
    import sympy

    from sobolev_novelty.language.convert import to_sympy
    from sobolev_novelty.language.parsing import parse

    def rounded(e: sympy.Expr) -> sympy.Expr:
        # As fractions: SymPy does not see that arcsin(0.5*x) and arcsin(x/2) are the same.
        return e.xreplace({a: sympy.Rational(str(round(float(a), 3))) for a in e.atoms(sympy.Float)})

    # Inputs are positive or of either sign; "real" is all that may be assumed for every task.
    model, truth = (to_sympy(parse(text)) for text in (model_text, truth_text))
    names = sorted(model.free_symbols | truth.free_symbols, key=str)
    real = {name: sympy.Symbol(str(name), real=True) for name in names}
    model, truth = model.xreplace(real), truth.xreplace(real)
    if not model.free_symbols:
        return False, "The model is a constant."
    for rule, combined in (("difference", truth - model), ("ratio", model / truth)):
        simple = rounded(sympy.simplify(rounded(sympy.expand(combined)), ratio=1))
        if not simple.free_symbols and simple.is_finite and (rule == "difference" or not simple.is_zero):
            return True, f"SymPy: the {rule} is {simple}."
    return False, "SymPy: neither difference nor ratio is constant."


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answered(sys.stdin.read())))
