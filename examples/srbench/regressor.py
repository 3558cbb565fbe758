"""SobolevNovelty for SRBench: copy this folder to ``algorithms/sobolev-novelty`` of a checkout of SRBench.

SRBench asks for ``est``, a scikit-learn regressor, and ``model(est, X)``, the fitted expression as text that SymPy
reads, in the names of the columns of ``X``. ``complexity(est)`` is its number of nodes, and ``eval_kwargs`` tells the
harness how to treat the data.
"""

from __future__ import annotations

from typing import Any

from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor

#: SRBench stops a fit on up to 1000 rows after an hour, a larger one after ten; ten minutes leave room for slow
#: machines.
est = SymbolicRegressor(engine="genetic", novelty=True, budget=Budget(seconds=600.0), random_state=0)

#: Nothing is tuned.
hyper_params: list[dict[str, Any]] = []

#: The regressor scales its data itself, and its expression is in the names of the columns.
eval_kwargs: dict[str, Any] = {
    "scale_x": False,
    "scale_y": False,
    "test_params": {"budget": Budget(seconds=5.0, max_evaluations=2000)},
}


def model(est: SymbolicRegressor, X: Any = None) -> str:
    """The fitted expression as SymPy reads it, in the names of the columns of ``X``.

    Parameters
    ----------
    est : SymbolicRegressor
        Fitted.
    X : DataFrame, optional
        Its column names are used; without it the names seen in ``fit``, or ``x0, x1, …``.
    """
    from sobolev_novelty.language.convert import to_sympy
    from sobolev_novelty.language.convert.languages import safe_identifiers

    expression = est.expression_
    columns = getattr(X, "columns", None)
    if columns is not None:
        seen = getattr(est, "feature_names_in_", None)
        names = [f"x{k}" for k in range(len(columns))] if seen is None else list(seen)
        # SymPy runs the text that it reads: a name that is not an identifier becomes one.
        safe = safe_identifiers([str(name) for name in columns], frozenset())
        shown = [name if name.isidentifier() else safe[name] for name in map(str, columns)]
        expression = expression.rename(dict(zip(names, shown, strict=True)))
    return str(to_sympy(expression))


def complexity(est: SymbolicRegressor) -> int:
    """Operator, variable and constant nodes of the fitted expression."""
    return int(est.expression_.complexity)
