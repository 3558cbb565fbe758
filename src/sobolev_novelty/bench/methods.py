"""Methods: ``(X, y, *, seed, budget, **options) -> MethodResult``, by name.

A method sees the training part only. It returns an expression in the names ``x0, x1, …``, which is judged by the same
code for everyone. A name of the form ``package.module:function`` is imported, so that you can benchmark a method of
your own without changing anything here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.registry import engine_names
from sobolev_novelty.terms import Term, sum_of_terms


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
    """The method of this name, or the function that ``package.module:function`` names.

    Examples
    --------
    >>> find_method("linear") is linear
    True
    """
    from sobolev_novelty.bench import peer_methods  # noqa: F401  registers its methods

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


def _search(engine: str, *, novelty: bool) -> Method:
    def run(
        X: FloatArray,
        y: FloatArray,
        *,
        seed: int,
        budget: float,
        guidance: dict[str, Any] | None = None,
        engine_options: dict[str, Any] | None = None,
        max_evaluations: int | None = None,
        stop_when_exact: bool = True,
        **options: Any,
    ) -> MethodResult:
        from sobolev_novelty.search.engine import SobolevGuidance
        from sobolev_novelty.search.loop import Budget
        from sobolev_novelty.search.registry import engine_named
        from sobolev_novelty.search.regressor import SymbolicRegressor

        model = SymbolicRegressor(
            engine=engine_named(engine).set_params(**(engine_options or {})),
            novelty=SobolevGuidance(**guidance) if guidance else novelty,
            budget=Budget(max_evaluations, budget, stop_when_exact),
            random_state=seed,
            verbose=False,
            **options,
        ).fit(X, y)
        extra = {"stop_reason": str(getattr(model, "stop_reason_", ""))}
        return MethodResult(model.expression_, model.n_evaluations_, model.n_novelty_calls_, extra)

    run.__doc__ = f"The engine '{engine}', {'with' if novelty else 'without'} the Sobolev signal."
    return run


def _engine_methods() -> dict[str, Method]:
    """Each registered engine without and with the signal."""
    plain = {engine: _search(engine, novelty=False) for engine in engine_names()}
    return plain | {f"{engine}+novelty": _search(engine, novelty=True) for engine in engine_names()}


METHODS |= _engine_methods()
