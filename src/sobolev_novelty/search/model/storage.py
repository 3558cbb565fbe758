"""Models as JSON files.

Equations as text, names, and the constructor's arguments with the engine and its options. Reading one parses text with
the package's own grammar and runs nothing: an engine is made only if its name is registered here.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import own_operators
from sobolev_novelty.core.operators.elementwise import sample_of
from sobolev_novelty.core.output import write_whole
from sobolev_novelty.core.sample import repeated
from sobolev_novelty.errors import DataError, ParameterError, SobolevError, shortened
from sobolev_novelty.kernels.evaluate import as_expression
from sobolev_novelty.price.noise import Noise
from sobolev_novelty.search.contract.engine import Engine, GuessSource, SobolevGuidance
from sobolev_novelty.search.contract.registry import engine_named, engine_names, name_of, place_of
from sobolev_novelty.search.islands.cores import Islands
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.settings import BEFORE, control_of, names_of
from sobolev_novelty.search.model.tables import verdicts_from_dicts, verdicts_to_dicts
from sobolev_novelty.search.problem.constraints import Constraints, Units

FORMAT = "sobolev-novelty model"
#: Version 1 stored an engine by its name alone, without its options; version 2 no verdicts, ranges or place of the
#: chosen equation; version 3 not why it was chosen, and its engines' guidance None meant that they follow ``novelty=``;
#: version 4 had the arguments of 0.1.
FORMAT_VERSION = 5
#: Inputs of a model, at most: their names take memory before anything else is known of the file.
MAX_FEATURES = 1_000_000
#: The distribution whose version a model names.
_PACKAGE = "sobolev-novelty"

#: Columns of a model's table of equations.
TABLE_COLUMNS = ("complexity", "loss", "score", "min_novelty", "mean_novelty", "expression", "chosen")
#: Numbers of a row of ``choice_``, and rows of it that are stored.
NATS, MAX_PRICED = ("structure", "numbers", "rows", "findings", "behind"), 60
#: Value types that options may have beside numbers, text and lists.
_VALUES = {kind.__name__: kind for kind in (SobolevGuidance, Budget, Constraints, Units, Islands)}

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class StoredEngine:
    """The engine of a loaded model that cannot be made here: the model predicts, but a further fit is refused."""

    name: str  # as registered, or ``module:class``
    options: dict[str, Any]  # as in the file
    missing: tuple[str, ...]  # options that JSON could not hold
    reason: str  # why it cannot be made, as a sentence

    def refusal(self) -> ParameterError:
        """What a fit raises."""
        return ParameterError(
            f"'engine' of this loaded model, '{self.name}', cannot be made again: {self.reason} "
            "Give another one: model.set_params(engine=…)."
        )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write as a whole, so that a killed run leaves the old file."""
    try:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise DataError(f"'{path}' cannot be written: {error}. Fit again with finite settings.") from error
    write_whole(path, text + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        return json_object(path.read_bytes(), str(path))
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"'{path}' cannot be read as JSON: {reason}. Check the path and its permissions.") from error


def json_object(content: bytes, where: str) -> dict[str, Any]:
    """The JSON object that these bytes hold; ``where`` they come from is named in errors."""
    try:
        text = content.decode("utf-8")
        found = json.loads(text)
        if r"\ud" in text.lower():  # half of a character that takes two escapes can be read, but not be written
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"'{where}' cannot be read as JSON: {error}. Take a copy of the file, or give another path."
        ) from error
    if not isinstance(found, dict):
        raise DataError(f"'{where}' does not hold a JSON object. Give another path.")
    return found


def model_to_dict(model: Any) -> dict[str, Any]:
    """A fitted regressor as plain numbers and text."""
    table = model.equations_
    rows = [
        {
            "expression": str(row.expression),
            "loss": _number(row.loss),
            "score": _number(row.score),
            "min_novelty": _number(row.min_novelty),
            "mean_novelty": _number(row.mean_novelty),
        }
        for row in table.itertuples()
    ]
    named = getattr(model, "feature_names_in_", None)
    ranges = getattr(model, "_ranges_", None)
    verdicts = model.verdicts_ if hasattr(model, "_made_") else model._verdicts_
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        **_own_operators(model),
        "saved_by": _installed_version(),
        "feature_names": None if named is None else [str(name) for name in named],
        "n_features": int(model.n_features_in_),
        "chosen": str(model.expression_),
        "chosen_index": int(max(np.flatnonzero(table["chosen"]), default=-1)),
        "verdicts": None if verdicts is None else verdicts_to_dicts(verdicts),
        "ranges": None if ranges is None else [[_number(value) for value in row] for row in ranges.tolist()],
        "equations": rows,
        "reason": model.reason_,
        "noise": model.noise_,
        "noise_shape": [model._shape_.power, model._shape_.floor],
        "choice": _choice_rows(model.choice_),
        "n_evaluations": int(model.n_evaluations_),
        "n_novelty_calls": int(model.n_novelty_calls_),
        "stop_reason": model.stop_reason_,
        "settings": _settings(model),
    }


def model_from_dict(cls: type[M], content: dict[str, Any], where: str) -> M:
    """The regressor that :func:`model_to_dict` described."""
    import pandas as pd

    from sobolev_novelty.report.render.equation_table import EquationTable

    version = content.get("version")
    if content.get("format") != FORMAT or not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise DataError(
            f"'{where}' is not a saved model that this version of the package reads (format '{FORMAT}', version 1 to "
            f"{FORMAT_VERSION}). Got format {shortened(content.get('format'))}, version {shortened(version)}."
        )
    _tell_of_another_version(content, where)
    try:
        _check_own_operators(content.get("own_operators", {}), where)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # who wrote the file had other names
            model: Any = cls(**_constructor_arguments(content["settings"], version))
        names = content["feature_names"]
        model.n_features_in_ = _count(content, "n_features", at_least=1, at_most=MAX_FEATURES)
        if names is not None:
            model.feature_names_in_ = np.array(_names(names, model.n_features_in_), dtype=object)
        known = names if names is not None else [f"x{k}" for k in range(model.n_features_in_)]
        rows = [dict(row, expression=as_expression(_text(row["expression"]), known)) for row in content["equations"]]
        model._verdicts_, model._warned_ = None, []
        if version >= 3 and content["verdicts"] is not None:
            model._verdicts_ = verdicts_from_dicts(content["verdicts"])
        if version >= 3 and content["ranges"] is not None:
            model._ranges_ = np.array(content["ranges"], dtype=np.float64).reshape(2, model.n_features_in_)
        model.expression_ = as_expression(_text(content["chosen"]), known)
        model.n_evaluations_ = _count(content, "n_evaluations")
        model.n_novelty_calls_ = _count(content, "n_novelty_calls")
        model.stop_reason_ = _text(content["stop_reason"])
        table = pd.DataFrame(rows).astype({"loss": float, "score": float, "min_novelty": float, "mean_novelty": float})
        table.insert(0, "complexity", [control_of(model).complexity(row["expression"]) for row in rows])
        table["chosen"] = _is_chosen(content, [row["expression"] for row in rows], model.expression_)
        model.equations_ = EquationTable(table[list(TABLE_COLUMNS)])
        model.reason_, model.noise_ = (_text(content[name]) if version >= 4 else "" for name in ("reason", "noise"))
        model._shape_ = (
            Noise(float(content["noise_shape"][0]), float(content["noise_shape"][1])) if version >= 4 else Noise()
        )
        model.choice_ = EquationTable(_choice_table(content["choice"] if version >= 4 else [], known, model))
    except SobolevError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DataError(
            f"'{where}' is not a whole model: {shortened(error)}. Take a copy of the file, or fit and save again."
        ) from error
    found: M = model
    return found


def _choice_rows(table: Any) -> list[dict[str, Any]]:
    """What was priced, the cheapest first, as far as a person would read."""
    kept = table.head(MAX_PRICED).to_dict("records")
    return [
        {"expression": str(row["expression"]), "found": row["found"], **{name: _number(row[name]) for name in NATS}}
        for row in kept
    ]


def _choice_table(rows: list[dict[str, Any]], known: list[str], model: Any) -> Any:
    import pandas as pd

    expressions = [as_expression(_text(row["expression"]), known) for row in rows]
    numbers = pd.DataFrame([{name: row[name] for name in NATS} for row in rows], columns=list(NATS)).astype(float)
    numbers.insert(0, "complexity", [control_of(model).complexity(e) for e in expressions])
    table = numbers.fillna(math.inf)
    table["found"] = [_text(row["found"]) for row in rows]
    table["expression"] = pd.Series(expressions, dtype=object)
    table["chosen"] = [row["behind"] == 0.0 for row in rows]
    return table


def _own_operators(model: Any) -> dict[str, Any]:
    """The own operators of a model by name, with some of their values; nothing where there are none."""
    tokens = {token for e in (*model.equations_["expression"], model.expression_) for token in e.tokens}
    own = [row for row in own_operators() if row.name in (model.operators or ()) or row in tokens]
    if not own:
        return {}
    points = {row: [column[::8] for column in sample_of(row.arity, row.domain)] for row in own}
    return {
        "own_operators": {
            row.name: {"at": [c.tolist() for c in at], "values": [_number(v) for v in row.value(*at)]}
            for row, at in points.items()
        }
    }


def _check_own_operators(stored: dict[str, Any], where: str) -> None:
    """Refuse a model whose operators are not registered here: a file names functions, it never brings them."""
    known = {row.name: row for row in own_operators()}
    for name, example in stored.items():
        at = [np.array(column, dtype=np.float64) for column in example["at"]]
        values = np.array(example["values"], dtype=np.float64)
        row, quoted = known.get(name), shortened(name, 60)
        if row is None or row.arity != len(at):
            raise DataError(
                f"'{where}' uses an own operator of {len(at)} operand(s), {quoted}, that is not registered here. "
                "Register the same function before loading: "
                f"sobolev_novelty.register_operator({quoted}, …, arity={len(at)})."
            )
        if not np.allclose(row.value(*at), values, rtol=1e-6, atol=1e-12, equal_nan=True):
            raise DataError(
                f"'{where}' was saved with another function under the name {quoted} than the one that is registered "
                "here: its values differ. Register the same function before loading."
            )


def _installed_version() -> str | None:
    try:
        return metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        return None


def _tell_of_another_version(content: dict[str, Any], where: str) -> None:
    """The equations mean the same; a further fit need not find the same."""
    saved_by, installed = content.get("saved_by"), _installed_version()
    if "saved_by" in content and saved_by != installed and isinstance(saved_by, str):
        warnings.warn(
            f"'{where}' was saved by version {shortened(saved_by, 40)} of the package; this is version {installed}. It "
            "predicts the same; a further fit may find something else.",
            stacklevel=4,
        )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {shortened(value)}")
    return value


def _count(content: dict[str, Any], name: str, *, at_least: int = 0, at_most: int = 2**63 - 1) -> int:
    value = content[name]
    if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= at_most:
        raise ValueError(f"'{name}' must be a whole number from {at_least} to {at_most}. Got {shortened(value)}")
    return value


def _names(names: Any, n_features: int) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"'feature_names' must be a list of texts. Got {shortened(names)}")
    if len(names) != n_features or repeated(names):
        raise ValueError(f"'feature_names' must be {n_features} different names. Got {shortened(names)}")
    return names


def _is_chosen(content: dict[str, Any], expressions: list[Expression], chosen: Expression) -> Any:
    """Which row is the chosen one; older files name its text alone."""
    index = content.get("chosen_index", expressions.index(chosen) if chosen in expressions else -1)
    if not -1 <= int(index) < len(expressions):
        raise ValueError(f"chosen_index {index}")
    return np.arange(len(expressions)) == int(index)


# --- the constructor's arguments


def _settings(model: Any) -> dict[str, Any]:
    """The constructor's arguments, guesses as text; a random generator or a source of guesses is not stored."""
    arguments: dict[str, Any] = model.get_params(deep=False)
    engine, guesses = arguments.pop("engine"), arguments.pop("guesses")
    settings, _ = _plain_options(arguments)
    if isinstance(guesses, str):
        settings["guesses"] = guesses
    elif guesses is not None and not isinstance(guesses, GuessSource):
        settings["guesses"] = [str(as_expression(guess, names_of(model))) for guess in guesses]
    return {"engine": engine if isinstance(engine, str) else _engine_to_dict(engine)} | settings


def _constructor_arguments(settings: dict[str, Any], version: int) -> dict[str, Any]:
    arguments = {name: _restored(value) for name, value in settings.items() if name != "engine"}
    if version == 1:
        for name, kind in (("budget", Budget), ("novelty", SobolevGuidance)):
            if isinstance(settings.get(name), dict):
                arguments[name] = kind(**settings[name])
    if version < 5:  # None said nothing, and what belongs to a call of fit came with its rows
        arguments = {
            name: value
            for name, value in arguments.items()
            if name not in BEFORE or (value is not None and BEFORE[name].now != "fit")
        }
    engine = settings["engine"]
    if version < 4 and isinstance(engine, dict) and engine["options"].get("guidance", "") is None:
        engine = engine | {"options": engine["options"] | {"guidance": "default"}}
    return {"engine": engine if isinstance(engine, str) else _engine_from_dict(engine)} | arguments


def _engine_to_dict(engine: Engine[Any] | StoredEngine) -> dict[str, Any]:
    if isinstance(engine, StoredEngine):
        return {"name": engine.name, "options": engine.options, "missing": list(engine.missing)}
    options, missing = _plain_options(engine.get_params(deep=False))
    return {"name": name_of(engine) or place_of(type(engine)), "options": options, "missing": missing}


def _engine_from_dict(stored: dict[str, Any]) -> Engine[Any] | StoredEngine:
    """The engine, or what is known of it where it cannot be made: predictions need none."""
    name, options, missing = str(stored["name"]), dict(stored["options"]), tuple(map(str, stored["missing"]))
    if name not in engine_names():
        reason = "no engine of this name is registered here (sobolev_novelty.register_engine)."
    elif missing:
        reason = f"JSON could not hold its option(s) {', '.join(missing)}."
    else:
        try:
            return engine_named(name, **{option: _restored(value) for option, value in options.items()})
        except (ImportError, TypeError, ValueError) as error:  # an extra that is not installed, an option renamed since
            reason = f"{error}."
    return StoredEngine(name, options, missing, reason)


def _plain_options(options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What JSON can hold, and the names of the rest."""
    plain, missing = {}, []
    for name, value in options.items():
        try:
            plain[name] = _plain(value)
        except TypeError:
            missing.append(name)
    return plain, missing


def _plain(value: Any) -> Any:
    """A value as JSON holds it; value types and tuples with their names, so that they come back as they were."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if type(value) in _VALUES.values():
        held = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "client"}
        return {"type": type(value).__name__, "fields": {name: _plain(v) for name, v in held.items()}}
    if isinstance(value, tuple):
        return {"type": "tuple", "items": [_plain(item) for item in value]}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"type": "mapping", "items": {k: _plain(v) for k, v in value.items()}}
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TypeError(f"JSON cannot hold {type(value).__name__}")


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if isinstance(value, dict) and value.get("type") == "tuple":
        return tuple(_restored(item) for item in value["items"])
    if isinstance(value, dict) and value.get("type") == "mapping":
        return {str(name): _restored(item) for name, item in value["items"].items()}
    if isinstance(value, dict) and value.get("type") in _VALUES:
        return _VALUES[value["type"]](**{name: _restored(v) for name, v in value["fields"].items()})
    return value


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
