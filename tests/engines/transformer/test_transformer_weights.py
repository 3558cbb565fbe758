"""Weights from elsewhere: whatever their files hold, they are read or refused in one line."""

from __future__ import annotations

import copy
import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from needs_torch import one_thread, tiny, torch  # noqa: F401
from sobolev_novelty.engines.transformer.checkpoint import load_model, read_weights, write_weights
from sobolev_novelty.engines.transformer.model import Model
from sobolev_novelty.errors import DataError, SobolevError

pytestmark = pytest.mark.torch

ODD = [
    None, True, 0, -1, 1, 10**9, 10**400, 1.5, float("nan"), "", "a", "\ud800", "../x", [], [0], [[0] * 3], {},
    {"a": 1},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = tiny()
    torch.manual_seed(0)
    write_weights(tmp_path / "w", "weights", settings, Model(settings.model).state_dict(), {"step": 1}, int8=True)
    return tmp_path / "w"


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(content, dict):
        for key, value in content.items():
            yield from places(value, (*path, key))
    elif isinstance(content, list) and content:
        yield from places(content[0], (*path, 0))


def changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = copy.deepcopy(content)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return made


def read(folder: Path) -> None:
    """Loads the weights, or ends in an error of ours of one short line."""
    try:
        load_model(folder)
    except SobolevError as error:
        assert "\n" not in str(error) and len(str(error)) < 600
        str(error).encode("utf-8")


def test_any_entry_of_config_json_may_be_anything(folder: Path) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    n = 0
    for place in places(config):
        # What a run was trained on says nothing about its weights: a few values are enough there.
        for value in ODD[:: 5 if {"corpus", "training"} & set(place) else 1]:
            path.write_text(json.dumps(changed(config, place, value)), encoding="utf-8")
            read(folder)
            n += 1
    assert n > 400
    for text in ("", "[" * 100_000, '{"a": ' * 50_000, "1" * 6000, "\x00", '{"format": 1}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match="holds no weights"):
            read_weights(folder)


def test_any_entry_of_a_header_may_be_anything(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (name,) = config["files"]
    content = (folder / name).read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]

    def write(text: bytes, rest: bytes) -> None:
        whole = struct.pack("<Q", len(text)) + text + rest
        (folder / name).write_bytes(whole)
        files = {name: hashlib.sha256(whole).hexdigest()}
        (folder / "config.json").write_text(json.dumps(config | {"files": files}), encoding="utf-8")

    some = dict(list(header.items())[:3])
    for place in places(some):
        for value in [*ODD, [-1, -4], [2**40, 2**40], [0, 10**30], "F64", "I64"]:
            write(json.dumps(header | changed(some, place, value) if place else value).encode(), data)
            read(folder)
    rng = np.random.default_rng(0)
    for cut in rng.integers(0, len(content), 60).tolist():
        (folder / name).write_bytes(content[:cut])
        with pytest.raises(DataError):
            read_weights(folder)


@pytest.mark.parametrize("checksum", [None, True, 0, [], {}])
def test_a_missing_checksum_does_not_switch_the_check_off(folder: Path, checksum: object) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (name,) = config["files"]
    (folder / "config.json").write_text(json.dumps(config | {"files": {name: checksum}}), encoding="utf-8")
    with pytest.raises(DataError, match="has no checksum of"):
        read_weights(folder)
