"""The network of the engine: that of the package, or of a folder that an argument or an environment variable names.

Nothing is downloaded. Every file is checked against the SHA-256 in its ``config.json``.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import torch

from sobolev_novelty.engines.transformer.checkpoint import CONFIG, load_model
from sobolev_novelty.engines.transformer.model import Model
from sobolev_novelty.errors import DataError, ParameterError

#: Names a folder with weights in place of those of the package.
VARIABLE = "SOBOLEV_TRANSFORMER_WEIGHTS"
PACKAGED = Path(__file__).with_name("weights")


def weights_folder(weights: str | Path | None = None) -> Path:
    """The folder with ``config.json``: the one given, else that of the environment variable, else the package's."""
    named = weights if weights is not None else os.environ.get(VARIABLE)
    folder = PACKAGED if named is None else Path(named)
    if not (folder / CONFIG).is_file():
        what = "This copy of the package has no weights" if named is None else f"'{folder}' holds no {CONFIG}"
        raise DataError(
            f"{what}: the transformer cannot write formulas. Give a folder that "
            f"'python -m sobolev_novelty.lab.pretraining.train … --weights FOLDER' wrote, "
            f"as 'weights' or in {VARIABLE}."
        )
    return folder.resolve()


def chosen_device(device: str | None = None) -> str:
    """The device given, else a GPU where torch sees one, else the CPU."""
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ParameterError(f"'device' must be one that torch has here, or None. Got {device!r}: {error}") from error
    return device


@lru_cache(maxsize=2)
def network(folder: Path, device: str) -> Model:
    """The network of a folder on a device, read once per process."""
    model = load_model(folder)
    if model.settings.with_floats:
        raise DataError(f"{folder} holds a network that writes constants out. The engine needs skeleton tokens.")
    return model.to(device)
