"""What defines a training run: corpus, network, training, read from a TOML file."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sobolev_novelty.engines.transformer.corpus import CorpusSettings
from sobolev_novelty.engines.transformer.model import ModelSettings
from sobolev_novelty.errors import ParameterError


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How a network is trained."""

    seed: int = 0  # of the initial weights
    samples: int = 5_000_000  # accepted formulas in all, cool-down included
    batch: int = 512  # formulas per step
    learning_rate: float = 7e-4  # on the plateau
    warmup_steps: int = 400  # steps of linear warm-up, at the start and after a start from exported weights
    cooldown_share: float = 0.25  # share of the samples during which the learning rate falls linearly
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.98
    max_gradient_norm: float = 1.0
    ema_decay: float = 0.999  # of the running mean of the weights, which is what is shipped
    pilot: int = 600_000  # matched arm: candidates from which the filter's pass rates are estimated
    validation: int = 2048  # formulas of each validation set

    def __post_init__(self) -> None:
        if self.batch < 1 or self.samples < self.batch:
            raise ParameterError(f"'samples' must be at least 'batch', {self.batch}. Got {self.samples}.")
        if not 0.0 <= self.cooldown_share <= 1.0:
            raise ParameterError(f"'cooldown_share' must be between 0 and 1. Got {self.cooldown_share}.")

    @property
    def steps(self) -> int:
        """Batches in all."""
        return self.samples // self.batch


@dataclass(frozen=True, slots=True)
class RunSettings:
    """One training run."""

    corpus: CorpusSettings
    model: ModelSettings
    training: TrainingSettings

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunSettings:
        """From three tables; what a table leaves out has its default."""
        unknown = set(values) - {"corpus", "model", "training"}
        if unknown:
            raise ParameterError(f"Unknown table(s): {', '.join(sorted(unknown))}. Known: corpus, model, training.")
        tables = {name: dict(values.get(name, {})) for name in ("corpus", "model", "training")}
        _check_keys("corpus", tables["corpus"], CorpusSettings)
        _check_keys("model", tables["model"], ModelSettings)
        _check_keys("training", tables["training"], TrainingSettings)
        for key in ("dimensions", "keep"):
            if key in tables["corpus"]:
                tables["corpus"][key] = tuple(tables["corpus"][key])
        corpus = CorpusSettings.of_law(tables["corpus"].pop("law", "lean"), **tables["corpus"])
        tokens = tables["model"].pop("tokens", "skeleton")
        longest = corpus.max_float_tokens if tokens == "float" else corpus.max_nodes
        model = ModelSettings(tokens, **{"length": longest + 2, **tables["model"]})
        if model.length < longest + 2:
            raise ParameterError(f"'length' must be at least {longest + 2} for this corpus. Got {model.length}.")
        return cls(corpus, model, TrainingSettings(**tables["training"]))

    @classmethod
    def from_toml(cls, path: Path, changes: Sequence[str] = ()) -> RunSettings:
        """Read a file; each change is a line such as ``training.batch = 1024``."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
            for change in changes:
                for table, entries in tomllib.loads(change).items():
                    if not isinstance(entries, dict):
                        raise ParameterError(f"A change names a table and a key: training.batch=1024. Got {change!r}.")
                    values.setdefault(table, {}).update(entries)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ParameterError(f"'{path}' or a change to it is not TOML in UTF-8: {error}. Correct it.") from error
        except OSError as error:
            raise ParameterError(f"{path} cannot be read: {error}.") from error
        return cls.from_dict(values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; :meth:`from_dict` reads them back."""
        return dataclasses.asdict(self)


def _check_keys(table: str, values: Mapping[str, Any], kind: Any) -> None:
    known = {entry.name for entry in dataclasses.fields(kind)}
    unknown = set(values) - known
    if unknown:
        raise ParameterError(
            f"[{table}] has unknown key(s) {', '.join(sorted(unknown))}. Known: {', '.join(sorted(known))}."
        )
