"""What an estimator was given, read and checked: its arguments and a table, as a task of the five stages.

Our own reader of tables comes first, then scikit-learn's bookkeeping of columns and names.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, as_target, plain_table
from sobolev_novelty.errors import DataError, DataTypeError, ParameterError
from sobolev_novelty.kernels.evaluate import as_expression, read_together
from sobolev_novelty.search.contract.engine import CLOCKS, DEFAULT_OPERATORS, Engine, GuessSource
from sobolev_novelty.search.contract.registry import engine_named, template_engine
from sobolev_novelty.search.islands.cores import Cores, Islands
from sobolev_novelty.search.islands.seeding import seeding_engine
from sobolev_novelty.search.model.arguments import Asked
from sobolev_novelty.search.model.checkpoint import Checkpoint
from sobolev_novelty.search.model.finish import DEFAULT_MAX_COMPLEXITY
from sobolev_novelty.search.model.preparation import refuse_several_targets, row_weights
from sobolev_novelty.search.model.settings import as_budget, as_units, constraints_of, control_of, names_of
from sobolev_novelty.search.model.stages import Memory, Task, load_tables
from sobolev_novelty.search.model.storage import StoredEngine
from sobolev_novelty.search.problem.dimensions import Dimensions


def task_of(model: Any, X: Any, y: Any, asked: Asked) -> Task:
    """What this call of ``fit`` is to do."""
    budget = as_budget(model.budget)
    begin = CLOCKS[budget.clock]()
    load_tables()  # a first import takes a second on a busy machine, and the fit's time has begun
    refuse_several_targets(y)
    target = getattr(y, "name", None)
    target = "y" if target is None else str(target)
    known = list(model.equations_["expression"]) if asked.warm_start and hasattr(model, "equations_") else []
    X, y = validated(model, X, y)
    names = names_of(model)
    weights, x_sigma = row_weights(X, asked.sample_weight, asked.sigma, asked.x_sigma)
    rows = Rows.of(X, y, weights, names, level=None if asked.sigma is None else 1.0, x_sigma=x_sigma)
    source = model.guesses if isinstance(model.guesses, GuessSource) else None
    seeder = seeding_engine(model.guesses)
    own: Any = () if source is not None or seeder is not None else model.guesses or ()
    known += [as_expression(guess, names) for guess in read_together(own, names)]
    saved = None if asked.checkpoint is None else Checkpoint.open(Path(asked.checkpoint), X, y)
    if saved is not None:
        known += [as_expression(text, names) for text in saved.equations]
        budget = saved.remaining(budget, len(known))
        if saved.equations:  # the run before had its seeds
            seeder = source = None
    units, constraints = as_units(model.units), constraints_of(model)
    has_units = bool(units.inputs) or units.target is not None
    return Task(
        rows=rows,
        target=target,
        engine=engine_of(model),
        cores=cores_of(model),
        budget=budget,
        begin=begin,
        memory=_remembered(model, (X, y, weights, x_sigma), asked),
        control=control_of(model),
        dimensions=Dimensions.of(units, names, target) if has_units else None,
        operators=DEFAULT_OPERATORS if model.operators is None else tuple(model.operators),
        max_complexity=constraints.max_complexity or DEFAULT_MAX_COMPLEXITY,
        noise=model.noise,
        select=model.select,
        guesses=known,
        source=source,
        seeder=seeder,
        saved=saved,
        callbacks=() if asked.callback is None else (asked.callback,),
        verbose=asked.verbose,
    )


def cores_of(model: Any) -> Cores:
    """Where the search runs."""
    return Cores.of(model.parallel, is_own_loss=callable(model.loss))


def engine_of(model: Any) -> Engine[Any]:
    """An engine of this fit's own."""
    if isinstance(model.engine, StoredEngine):
        raise model.engine.refusal()
    if constraints_of(model).template is not None:
        return template_engine(model.guesses)
    engine = engine_named(model.engine) if isinstance(model.engine, str) else clone(model.engine)
    if not isinstance(engine, Engine):
        raise ParameterError(f"'engine' must be a name or an Engine. Got {type(model.engine).__name__}.")
    engine.guided_by(model.novelty)
    return engine


def _remembered(model: Any, rows: Sequence[FloatArray | None], asked: Asked) -> Memory:
    """The memory of the last fit where a warm start goes on from it; otherwise an empty one."""
    arrays = [array for array in rows if array is not None] if asked.warm_start else []
    data = tuple(zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in arrays)
    no_matter = ("budget",) if isinstance(model.parallel, Islands) else ("budget", "parallel")
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in no_matter}
    key = (data, tuple(np.shape(array) for array in arrays), repr(settings))
    memory: Memory | None = getattr(model, "_memory_", None)
    if asked.warm_start and memory is not None and memory.key == key:
        return memory
    return Memory(key, np.random.default_rng(check_random_state(model.random_state).randint(2**31 - 1)))


def validated(estimator: Any, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """Rows and target of a fit; the estimator remembers the number and the names of the columns."""
    if y is None:
        raise DataError("'y' is missing (y should be a 1d array): give one number per row of 'X'.")
    table = plain_table(X)
    as_target(y, len(table))
    rows, target = _by_sklearn(estimator, table, y, y_numeric=True, ensure_min_samples=2)
    return rows, np.asarray(target, dtype=np.float64)


def validated_rows(estimator: Any, X: Any) -> FloatArray:
    """Rows of a fitted estimator's own columns."""
    rows: FloatArray = _by_sklearn(estimator, plain_table(X), reset=False)
    return rows


def _by_sklearn(estimator: Any, *data: Any, **options: Any) -> Any:
    try:
        return validate_data(estimator, *data, dtype=np.float64, **options)
    except (TypeError, ValueError) as error:
        raise (DataTypeError if isinstance(error, TypeError) else DataError)(str(error)) from error


__all__ = ["cores_of", "task_of", "validated", "validated_rows"]
