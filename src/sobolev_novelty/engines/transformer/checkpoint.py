"""What is kept of a training run.

``state.pt`` holds everything, for an exact resume on one machine: weights, moments, running mean, step, schedule,
random states, funnel. It is 16 bytes per parameter, too much for machines that exchange little; there an *export* goes
along: the float32 weights and the step. A run that starts from it has fresh moments and a fresh running mean and warms
up again; with β₂ = 0.98 the moments forget what was before some fifty steps anyway. This is the one inexact resume.
*Weights* are for use: the running mean in bfloat16, or with matrices of 8-bit integers and one scale per row, which
halves them:

::

    python -m sobolev_novelty.engines.transformer.checkpoint FOLDER SMALLER --int8
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sobolev_novelty.core.output import whole_file, write_whole
from sobolev_novelty.engines.transformer.model import Model
from sobolev_novelty.engines.transformer.safetensors import read_shards, write_shards
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.engines.transformer.tokenizer import vocabulary
from sobolev_novelty.errors import DataError, SobolevError, shortened

STATE = "state.pt"
CONFIG = "config.json"
FORMAT = 1
_KINDS = ("export", "weights")
#: What the scales of a quantised matrix are called, after its name.
SCALES = ".scales"


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """Weights read from a folder, with what their ``config.json`` says."""

    settings: RunSettings
    tensors: dict[str, Tensor]
    progress: dict[str, Any]
    kind: str


def save_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Write the full state, as a whole or not at all."""
    with whole_file(folder / STATE) as file:
        try:
            torch.save(dict(state), file)
        except RuntimeError as error:  # what torch makes of a full disk
            raise OSError(str(error)) from error


def load_state(folder: Path) -> dict[str, Any] | None:
    """The full state, or None where there is none."""
    path = folder / STATE
    if not path.is_file():
        return None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # zipfile's, pickle's and torch's own, down to RuntimeError
        raise DataError(f"{path} is damaged: {shortened(error)}. Delete it to start again, or fetch a copy.") from error
    if not isinstance(loaded, dict):
        raise DataError(f"{path} is not the state of a training run. Give another folder.")
    return loaded


def write_weights(
    folder: Path,
    kind: str,
    settings: RunSettings,
    tensors: Mapping[str, Tensor],
    progress: Mapping[str, Any],
    *,
    int8: bool = False,
) -> None:
    """Write an export (float32) or weights for use (bfloat16, or int8), sharded, with ``config.json`` last."""
    folder.mkdir(parents=True, exist_ok=True)
    dtype = torch.float32 if kind == "export" else torch.bfloat16
    stored = quantised(tensors) if int8 else {name: tensor.to(dtype) for name, tensor in tensors.items()}
    # Names tell the step, so that a folder whose writing was cut short still has the files its config.json names.
    step = int(progress["step"])
    files = write_shards(folder, f"{kind}-{step:07d}", stored)
    config = {
        "format": FORMAT,
        "kind": kind,
        "n_parameters": sum(tensor.numel() for tensor in tensors.values()),
        "dtype": "int8" if int8 else str(dtype).removeprefix("torch."),
        "files": files,
        "progress": dict(progress),
        "vocabulary": list(vocabulary(settings.model.with_floats)[: settings.model.vocabulary_size]),
        "settings": settings.to_dict(),
    }
    if settings.model.with_floats:
        del config["vocabulary"]  # nine hundred numbers, which tokenizer.py defines
    write_whole(folder / CONFIG, json.dumps(config, indent=1) + "\n")
    for old in folder.glob(f"{kind}-*.safetensors"):
        if old.name not in files:
            old.unlink()


def read_weights(folder: Path) -> Stored:
    """Read what :func:`write_weights` wrote; every file is checked against its checksum."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        kind, files, progress = config["kind"], dict(config["files"]), dict(config["progress"])
        if config["format"] != FORMAT or kind not in _KINDS:
            raise DataError(
                f"{folder / CONFIG} is of another version: format {shortened(config['format'])}, kind "
                f"{shortened(kind)}."
            )
        settings = RunSettings.from_dict(config["settings"])
    except SobolevError:
        raise
    except Exception as error:  # a file from elsewhere may hold anything, down to numbers where tables belong
        raise DataError(f"{folder} holds no weights: {shortened(error)}. Give a folder with config.json.") from error
    return Stored(settings, _dequantised(folder, read_shards(folder, files)), progress, kind)


def quantised(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as 8-bit integers times one scale per row; embeddings, norms and offsets in bfloat16."""
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or name.startswith(("embed_tokens", "embed_places")):
            stored[name] = tensor.to(torch.bfloat16)
            continue
        matrix = tensor.float()
        scales = (matrix.abs().amax(dim=1) / 127.0).clamp_min(1e-30)
        stored[name] = (matrix / scales[:, None]).round().to(torch.int8)
        stored[name + SCALES] = scales
    return stored


def _dequantised(folder: Path, stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    scales = {name.removesuffix(SCALES): tensor for name, tensor in stored.items() if name.endswith(SCALES)}
    for name, scale in scales.items():
        if name not in stored or stored[name].ndim != 2 or scale.shape != stored[name].shape[:1]:
            raise _unusable(folder, f"the scales of {shortened(name, 60)} do not belong to a matrix")
    return {
        name: tensor.float() * scales[name][:, None] if name in scales else tensor
        for name, tensor in stored.items()
        if not name.endswith(SCALES)
    }


def load_model(folder: Path) -> Model:
    """A network with stored weights, in float32, ready for use."""
    stored = read_weights(folder)
    settings = stored.settings.model
    if settings.encoder_layers + settings.decoder_layers > len(stored.tensors):  # before they are made
        raise _unusable(folder, "there are fewer tensors than layers")
    try:
        with torch.device("meta"):  # initial weights would take longer than reading these
            model = Model(settings, seed=None)
        model.load_state_dict({name: tensor.float() for name, tensor in stored.tensors.items()}, assign=True)
    except Exception as error:  # sizes that contradict each other: torch's own, down to RuntimeError
        raise _unusable(folder, shortened(str(error).replace("\n", " "))) from error
    return model.eval()


def _unusable(folder: Path, reason: str) -> DataError:
    return DataError(f"The weights in {folder} do not fit their settings: {reason}. Fetch the folder again.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of ``python -m sobolev_novelty.engines.transformer.checkpoint``."""
    parser = argparse.ArgumentParser(description="Write an export or weights anew, as weights for use.")
    parser.add_argument("source", type=Path, help="a folder with config.json")
    parser.add_argument("target", type=Path, help="folder for the weights")
    parser.add_argument("--int8", action="store_true", help="8-bit integers with a scale per row instead of bfloat16")
    options = parser.parse_args(arguments)
    stored = read_weights(options.source)
    write_weights(options.target, "weights", stored.settings, stored.tensors, stored.progress, int8=options.int8)


if __name__ == "__main__":
    main()
