"""Expressions -> programs -> numbers, one or a whole population."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression, numbered_index
from sobolev_novelty.core.geometry import check_order, second_order_pairs
from sobolev_novelty.core.parameters import checked
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels import numpy_kernel
from sobolev_novelty.language.convert import from_sympy
from sobolev_novelty.language.parsing import parse, parse_together
from sobolev_novelty.language.peers import ACCEPTED, from_model, is_model

#: Inputs spread wider than this, or less than its inverse, are :func:`is_far`: third powers leave the range of floats.
FAR = 1e75
#: Floats with a wider range, on machines that have them.
EXTENDED = np.longdouble
#: With more inputs than this, those that an equation does not use are left out of its derivatives.
MANY_INPUTS = 100
#: Numbers that are held at once where many equations are evaluated.
VALUES_AT_ONCE = 1 << 20
#: Names of the columns of a table with one column and no names.
_UNNAMED = ("x0",)


def as_expression(source: Any, names: Sequence[str] | None = None) -> Expression:
    """An expression from an expression, a text, a SymPy object or a fitted model.

    Where ``names`` are given, ``x0, x1, …`` are their columns, unless columns are called so.
    """
    if isinstance(source, Expression):
        return _in_columns(source, names)
    if isinstance(source, str):
        return _parsed([source], names)[0]
    if hasattr(source, "free_symbols") and hasattr(source, "func"):
        return _numbered(_in_one_column(from_sympy(source), names), names)
    if isinstance(source, int | float) and not isinstance(source, bool):
        return Expression.of(source)
    if is_model(source):
        return _in_columns(_in_order(from_model(source), source, names), names)
    raise ParameterError(f"An equation must be {ACCEPTED}. Got {type(source).__module__}.{type(source).__qualname__}.")


def read_together(sources: Iterable[Any], names: Sequence[str] | None) -> list[Any]:
    """Equations or terms in which all text is read by one convention: x2 is the same column in each of them.

    Text becomes expressions, in lists of terms too; everything else stays as it is.

    >>> read_together(["x1", ["cos(x2)", 2.0]], ["a", "b"])
    [Expression('a'), [Expression('cos(b)'), 2.0]]
    """
    found = list(sources)
    texts = [text for source in found for text in (source if type(source) is list else [source]) if type(text) is str]
    if not texts:
        return found
    read = iter(_parsed(texts, names))

    def taken(source: Any) -> Any:
        return next(read) if type(source) is str else source

    return [[taken(part) for part in source] if type(source) is list else taken(source) for source in found]


def _in_columns(expression: Expression, names: Sequence[str] | None) -> Expression:
    """``x0, x1, …`` renamed to the columns they count, where not all variables are columns already."""
    if names is None or set(expression.variables) <= set(names):
        return expression
    counted = {f"x{k}": name for k, name in enumerate(names)}
    return expression.rename(counted) if set(expression.variables) <= set(counted) else expression


def _in_order(expression: Expression, model: Any, names: Sequence[str] | None) -> Expression:
    """A model that was fitted on named columns and is asked about as many without names: they are in its order."""
    own = getattr(model, "feature_names_in_", None)
    if names is None or own is None or tuple(names) != tuple(f"x{k}" for k in range(len(own))):
        return expression
    return expression.rename(dict(zip(map(str, own), names, strict=True)))


def _numbered(expression: Expression, names: Sequence[str] | None) -> Expression:
    """SymPy's ``x_1`` or ``X0`` as text would be read: by the rules of ``parse``."""
    foreign = [name for name in expression.variables if names is not None and name not in names]
    if names is None or not foreign or any(numbered_index(name) is None for name in foreign):
        return expression
    return parse(str(expression), names=names)


def _parsed(texts: Sequence[str], names: Sequence[str] | None) -> list[Expression]:
    if names is not None and tuple(names) == _UNNAMED:
        free = [parse(text) for text in texts]
        if len({name for expression in free for name in expression.variables}) <= 1:
            return [_in_one_column(expression, names) for expression in free]
    return parse_together(texts, names=names)


def _in_one_column(expression: Expression, names: Sequence[str] | None) -> Expression:
    """With one column that has no name of its own, the only variable is that column, whatever it is called."""
    if names is None or tuple(names) != _UNNAMED or len(expression.variables) != 1:
        return expression
    return expression.rename({expression.variables[0]: _UNNAMED[0]})


@checked()
def evaluate(expression: Any, X: Any) -> FloatArray:
    """Values of one expression at every row of ``X``; outside its domain ``nan`` or ``inf``.

    Examples
    --------
    >>> evaluate("x0**2 + log(x1)", [[3.0, 1.0], [2.0, -1.0]])
    array([ 9., nan])
    """
    sample = as_sample(X)
    return np.asarray(derivatives([as_expression(expression, sample.names)], sample, order=0)[0, 0])


def on_own_inputs(expressions: Sequence[Expression], sample: Sample) -> Sample:
    """Of many inputs only those that the expressions use, for all slopes along the others are zero; of few, all.

    >>> on_own_inputs([parse("x1")], as_sample(np.ones((1, 2)))).names
    ('x0', 'x1')
    >>> on_own_inputs([parse("x1")], as_sample(np.ones((1, 2000)))).names
    ('x1',)
    """
    if sample.n_features <= MANY_INPUTS:
        return sample
    return sample.features({name for expression in expressions for name in expression.variables})


def derivatives(expressions: Sequence[Expression], sample: Sample, order: int = 1, *, n_threads: int = 1) -> FloatArray:
    """Values and derivatives of many expressions at every sample.

    Returns shape (n_expressions, n_rows, n_samples): row 0 the values, then the gradient (order ≥ 1), then the second
    derivatives j ≤ k (order 2).
    """
    check_order(order)
    programs = kernels.compile_programs(expressions, sample.names)
    return np.asarray(kernels.derivatives(programs, sample.X, order, n_threads=n_threads))


def values(expressions: Sequence[Expression], sample: Sample) -> FloatArray:
    """Values at every sample, (n_expressions, n_samples): many in blocks; not finite outside a domain, and no warning.

    >>> values([parse("2*x0"), parse("log(x0)")], as_sample([1.0, -1.0]))
    array([[ 2., -2.],
           [ 0., nan]])
    """
    step = max(1, VALUES_AT_ONCE // max(1, sample.n_samples))
    found = np.empty((len(expressions), sample.n_samples))
    with np.errstate(all="ignore"):
        for start in range(0, len(expressions), step):
            programs = kernels.compile_programs(expressions[start : start + step], sample.names)
            found[start : start + step] = kernels.derivatives(programs, sample.X)[:, 0]
    return found


def is_far(scales: FloatArray) -> bool:
    """Whether slopes along inputs of such spreads may leave the range of floats before they are standardized."""
    return bool(((scales > FAR) | ((scales < 1.0 / FAR) & (scales > 0.0))).any())


def standardized_derivatives(
    expressions: Sequence[Expression], sample: Sample, scales: FloatArray, order: int = 1
) -> FloatArray:
    """Rows of :func:`derivatives` along inputs that are divided by ``scales``.

    The slope of 1/x² at 1e150 is 1e-450, less than floats can be; times the spread of x it is as large as its value.
    Such slopes are worked out in extended range, where the machine has one.

    >>> x = 1e150 * np.array([[1.0], [2.0]])
    >>> standardized_derivatives([parse("1/x0**2")], as_sample(x), np.array([1e150]))[0, 1]
    array([-2.0e-300, -2.5e-301])
    """
    if order == 0 or not is_far(scales):
        return standardized(derivatives(expressions, sample, order), scales, order)
    return far_derivatives(kernels.compile_programs(expressions, sample.names), sample.X, scales, order)


def standardized(rows: FloatArray, scales: FloatArray, order: int) -> FloatArray:
    """Rows of :func:`derivatives` along inputs that are divided by ``scales``, where these are not far from one."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(rows * along_blocks(scales, order)[:, None])


def far_derivatives(programs: kernels.Programs, X: FloatArray, scales: FloatArray, order: int) -> FloatArray:
    """:func:`standardized_derivatives` of programs, in extended range."""
    values = np.asarray(kernels.derivatives(programs, X, 0))  # as they are computed everywhere
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        wide = numpy_kernel.derivatives(programs, X.astype(EXTENDED), order)
        slopes = (wide * along_blocks(scales.astype(wide.dtype), order)[:, None])[:, 1:].astype(np.float64)
    return np.concatenate([values, slopes], axis=1)


def along_blocks(scales: Any, order: int) -> Any:
    """The factor of each derivative row where every input is divided by its own: 1, s_j, s_j·s_k."""
    first = scales if order else scales[:0]
    second = [scales[j] * scales[k] for j, k in second_order_pairs(len(scales))] if order == 2 else []
    return np.concatenate([np.ones(1, scales.dtype), first, np.array(second, scales.dtype)])
