"""Methods: ``(X, y, *, seed, budget, **options) -> MethodResult``, by name.

A method sees the training part only. It returns an expression in the names ``x0, x1, …``, which is judged by the same
code for everyone. A name of the form ``package.module:function`` is imported, so that you can benchmark a method of
your own without changing anything here.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.algebra.terms import Term, sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.registry import engine_names

if TYPE_CHECKING:
    from sobolev_novelty.search.model.regressor import SymbolicRegressor


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What a method found.

    Parameters
    ----------
    expression : Expression
        In the names ``x0, x1, …``, for unscaled inputs and target.
    evaluations : int or None
        Candidates fitted and scored.
    sn_calls : int or None
        Novelty evaluations.
    extra : dict
        Anything else worth storing; JSON.
    """

    expression: Expression
    evaluations: int | None = None
    sn_calls: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)


Method = Callable[..., MethodResult]
METHODS: dict[str, Method] = {}


def method(name: str) -> Callable[[Method], Method]:
    """Register a method under a name."""

    def register(function: Method) -> Method:
        METHODS[name] = function
        return function

    return register


def find_method(name: str) -> Method:
    """The method of this name, or the function that ``package.module:function`` names."""
    from sobolev_novelty.lab.bench.running import peer_methods  # noqa: F401  registers its methods

    if ":" in name:
        module, _, attribute = name.partition(":")
        try:
            found: Method = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ParameterError(f"The method '{name}' cannot be imported: {error}.") from error
        return found
    methods = _engine_methods() | METHODS  # an engine may have been registered since
    try:
        return methods[name]
    except KeyError:
        known = ", ".join(sorted(methods))
        raise ParameterError(f"'{name}' is not a method. Known: {known}; or give 'package.module:function'.") from None


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse a method that does not exist, or options that it does not take.

    A function of your own that only the jobs can import is left to them: one that they cannot import either is told
    and not stored.

    >>> check_options("linear", {})
    """
    try:
        function = find_method(name)
    except ParameterError:
        if ":" in name:
            return
        raise
    try:
        inspect.signature(function).bind(None, None, seed=0, budget=1.0, **options)
        engine, _, signal = name.partition("+")
        if engine in engine_names():
            _regressor(
                engine, signal == "novelty", seed=0, budget=1.0, **{k: v for k, v in options.items() if k != "table"}
            )
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        raise ParameterError(f"The method '{name}' cannot be called with {given}: {str(error).rstrip('.')}.") from error


@method("linear")
def linear(X: FloatArray, y: FloatArray, *, seed: int, budget: float) -> MethodResult:
    """Ordinary least squares on all inputs."""
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    center = X.mean(axis=0)
    design = np.column_stack([np.ones(len(y)), (X - center) / scale])
    b = np.linalg.lstsq(design, y, rcond=None)[0]
    slopes = b[1:] / scale
    terms = [Term(float(b[0] - slopes @ center), Expression.of(1.0))]
    terms += [Term(float(slope), Expression.of(f"x{k}")) for k, slope in enumerate(slopes) if slope != 0.0]
    return MethodResult(sum_of_terms(terms), evaluations=1, sn_calls=0)


@method("quadratic")
def quadratic(X: FloatArray, y: FloatArray, *, seed: int, budget: float) -> MethodResult:
    """Least squares on all inputs and their products of two."""
    from sobolev_novelty.core.linear.least_squares import least_squares

    inputs = [Expression.of(f"x{k}") for k in range(X.shape[1])]
    pairs = list(itertools.combinations_with_replacement(range(len(inputs)), 2))
    terms = [Expression.of(1.0), *inputs, *(Expression.of("mul", inputs[j], inputs[k]) for j, k in pairs)]
    columns = np.vstack([np.ones(len(y)), X.T, *(X[:, j] * X[:, k] for j, k in pairs)])
    b = least_squares(columns, y)
    kept = [Term(float(c), term) for c, term in zip(b, terms, strict=True) if c != 0.0]
    return MethodResult(sum_of_terms(kept), evaluations=1, sn_calls=0)


@method("unguided")
def unguided(X: FloatArray, y: FloatArray, *, seed: int, budget: float, n_samples: int = 1024) -> MethodResult:
    """Skeletons of the transformer's corpus, drawn without looking at the data: what its network must beat."""
    from sobolev_novelty.lab.pretraining.unguided import Unguided
    from sobolev_novelty.search.model.regressor import SymbolicRegressor

    engine = Unguided(n_samples=n_samples)
    model = SymbolicRegressor(engine, novelty=False, budget=budget, random_state=seed).fit(X, y, verbose=False)
    return MethodResult(model.expression_, model.n_evaluations_, 0, {"stop_reason": model.stop_reason_})


#: What "engine+novelty" means in stored runs, whatever an engine's defaults are by now.
STORED_GUIDANCE = {"deletes": "D.2", "screens": "novelty"}


def _regressor(
    engine: str,
    novelty: bool,
    *,
    seed: int,
    budget: float,
    guidance: dict[str, Any] | None = None,
    engine_options: dict[str, Any] | None = None,
    max_evaluations: int | None = None,
    stop_when_exact: bool = True,
    clock: str = "wall",
    **options: Any,
) -> SymbolicRegressor:
    from sobolev_novelty.search.contract.engine import SobolevGuidance
    from sobolev_novelty.search.contract.registry import engine_named
    from sobolev_novelty.search.loop.loop import Budget
    from sobolev_novelty.search.model.regressor import SymbolicRegressor
    from sobolev_novelty.search.problem.constraints import Constraints, Units

    # An experiment's file has fields of constraints and units side by side with the rest, as its stored rows do.
    allowed = {f.name: options.pop(f.name) for f in fields(Constraints) if f.name in options}
    names = {"units": "inputs", "y_units": "target", "constant_units": "constants"}
    units = {now: options.pop(name) for name, now in names.items() if name in options}
    return SymbolicRegressor(
        engine=engine_named(engine).set_params(**(engine_options or {})),
        novelty=SobolevGuidance(**(STORED_GUIDANCE | (guidance or {}))) if guidance or novelty else False,
        budget=Budget(max_evaluations, budget, stop_when_exact, clock),
        constraints=Constraints(**allowed) if allowed else None,
        units=Units(**units) if units else None,
        random_state=seed,
        **options,
    )


def _search(engine: str, *, novelty: bool) -> Method:
    def run(
        X: FloatArray, y: FloatArray, *, seed: int, budget: float, table: bool = False, **options: Any
    ) -> MethodResult:
        model = _regressor(engine, novelty, seed=seed, budget=budget, **options).fit(X, y, verbose=False)
        extra: dict[str, Any] = {"stop_reason": str(getattr(model, "stop_reason_", ""))}
        if table:
            extra |= _table(model)
        return MethodResult(model.expression_, model.n_evaluations_, model.n_novelty_calls_, extra)

    run.__doc__ = f"The engine '{engine}', {'with' if novelty else 'without'} the Sobolev signal."
    return run


#: Rows of the choice that are stored.
MAX_STORED = 25


def _table(model: SymbolicRegressor) -> dict[str, Any]:
    """What a later look at a choice needs: the front, everything that was priced, and the noise that was found."""
    priced = model.choice_.head(MAX_STORED)
    columns = ("structure", "numbers", "rows", "findings")
    return {
        "front": [str(e) for e in model.equations_["expression"]],
        "front_loss": [float(loss) for loss in model.equations_["loss"]],
        "priced": [str(e) for e in priced["expression"]],
        "nats": {name: [round(float(v), 3) for v in priced[name]] for name in columns},
        "noise": model.noise_,
        "found": [str(text) for text in priced["found"]],
    }


def _engine_methods() -> dict[str, Method]:
    """Each registered engine without and with the signal."""
    plain = {engine: _search(engine, novelty=False) for engine in engine_names()}
    return plain | {f"{engine}+novelty": _search(engine, novelty=True) for engine in engine_names()}


METHODS |= _engine_methods()
