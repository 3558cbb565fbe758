"""Models as JSON files.

Equations as text, names and settings. Reading one parses text with the package's own grammar and runs nothing.
"""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.evaluate import as_expression
from sobolev_novelty.search.engine import Engine, SobolevGuidance
from sobolev_novelty.search.loop import Budget

FORMAT = "sobolev-novelty model"
FORMAT_VERSION = 1

#: Name -> module and class; imported on first use, so that engines do not import each other.
ENGINES = {
    "genetic": ("sobolev_novelty.search.genetic", "Genetic"),
    "mcts": ("sobolev_novelty.search.mcts", "MCTS"),
}

M = TypeVar("M")


def engine_named(name: str) -> Engine:
    """The engine of this name with its default options.

    Examples
    --------
    >>> engine_named("mcts").guidance is None
    True
    """
    try:
        module, attribute = ENGINES[name]
    except KeyError:
        raise ParameterError(f"'engine' must be one of {', '.join(ENGINES)}, or an Engine. Got '{name}'.") from None
    engine: Engine = getattr(importlib.import_module(module), attribute)()
    return engine


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write through a neighbouring file, so that a killed run leaves the old one whole."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text + "\n", encoding="utf-8")
    beside.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"'{path}' cannot be read as JSON: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f"'{path}' does not hold a JSON object.")
    return content


def model_to_dict(model: Any) -> dict[str, Any]:
    """A fitted regressor as plain numbers and text."""
    table = model.equations_
    rows = [
        {
            "expression": str(row.expression),
            "loss": _number(row.loss),
            "score": row.score,
            "min_novelty": _number(row.min_novelty),
            "mean_novelty": _number(row.mean_novelty),
        }
        for row in table.itertuples()
    ]
    named = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "feature_names": None if named is None else [str(name) for name in named],
        "n_features": int(model.n_features_in_),
        "chosen": str(model.expression_),
        "equations": rows,
        "n_evaluations": int(model.n_evaluations_),
        "n_novelty_calls": int(model.n_novelty_calls_),
        "stop_reason": model.stop_reason_,
        "settings": _settings(model),
    }


def _settings(model: Any) -> dict[str, Any]:
    """Constructor arguments that JSON can hold; an engine is stored by its class's name."""
    engine = model.engine
    names = {attribute: name for name, (_, attribute) in ENGINES.items()}
    seed = model.random_state
    return {
        "engine": engine if isinstance(engine, str) else names.get(type(engine).__name__, "genetic"),
        "novelty": asdict(model.novelty) if isinstance(model.novelty, SobolevGuidance) else bool(model.novelty),
        "budget": None if model.budget is None else asdict(model.budget),
        "timeout": model.timeout,
        "operators": None if model.operators is None else list(model.operators),
        "max_complexity": model.max_complexity,
        "warm_start": bool(model.warm_start),
        "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
    }


def model_from_dict(cls: type[M], content: dict[str, Any], where: str) -> M:
    """The regressor that :func:`model_to_dict` described."""
    import pandas as pd

    if content.get("format") != FORMAT or content.get("version") != FORMAT_VERSION:
        raise DataError(
            f"'{where}' is not a saved model of this package (format '{FORMAT}', version {FORMAT_VERSION})."
        )
    try:
        settings = dict(content["settings"])
        if settings.get("budget") is not None:
            settings["budget"] = Budget(**settings["budget"])
        if isinstance(settings.get("novelty"), dict):
            settings["novelty"] = SobolevGuidance(**settings["novelty"])
        model: Any = cls(**settings)
        names = content["feature_names"]
        model.n_features_in_ = int(content["n_features"])
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        known = names if names is not None else [f"x{k}" for k in range(model.n_features_in_)]
        rows = [dict(row, expression=as_expression(row["expression"], known)) for row in content["equations"]]
        model.expression_ = as_expression(content["chosen"], known)
        model.n_evaluations_ = int(content["n_evaluations"])
        model.n_novelty_calls_ = int(content["n_novelty_calls"])
        model.stop_reason_ = str(content["stop_reason"])
    except (KeyError, TypeError) as error:
        raise DataError(f"'{where}' is not a whole model: {error!r}.") from error
    table = pd.DataFrame(rows).astype({"loss": float, "score": float, "min_novelty": float, "mean_novelty": float})
    table.insert(0, "complexity", [row["expression"].complexity for row in rows])
    model.equations_ = table[["complexity", "loss", "score", "min_novelty", "mean_novelty", "expression"]]
    found: M = model
    return found


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
