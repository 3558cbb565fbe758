"""Tensors in files of the safetensors format, in shards with checksums.

A file is the length of the header (8 bytes, little endian), the header (JSON: name -> dtype, shape, offsets) and the
raw bytes. It holds numbers only, so a foreign file can be read without running anything.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sobolev_novelty.core.output import whole_file
from sobolev_novelty.errors import DataError, shortened

_DTYPES = {
    "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16,
    "I64": torch.int64, "I8": torch.int8, "U8": torch.uint8,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
MAX_SHARD_BYTES = 15 * 1024 * 1024
_MAX_HEADER_BYTES = 1 << 24


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write one file, as a whole or not at all; returns its SHA-256."""
    header: dict[str, Any] = {}
    chunks: list[bytes] = []
    offset = 0
    for name, tensor in tensors.items():
        raw = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        place = [offset, offset + len(raw)]
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format asks for data that begin at a multiple of eight
    content = b"".join([struct.pack("<Q", len(text)), text, *chunks])
    with whole_file(path) as file:
        file.write(content)
    return hashlib.sha256(content).hexdigest()


def read_tensors(path: Path, *, sha256: str | None = None) -> dict[str, Tensor]:
    """Read one file, and check it against a checksum."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Fetch the folder again.") from error
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise DataError(f"{path} is damaged: its checksum is not the one in config.json. Fetch it again.")
    try:
        (size,) = struct.unpack_from("<Q", content)
        if size > min(len(content) - 8, _MAX_HEADER_BYTES):
            raise ValueError(f"the header would have {size} bytes")
        header = json.loads(content[8 : 8 + size])
        data = memoryview(content)[8 + size :]
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _tensor(entry, data) for name, entry in entries.items()}
    except Exception as error:  # a header may hold anything; torch has errors of its own
        raise DataError(f"{path} is not a safetensors file: {shortened(error)}.") from error


def _tensor(entry: Mapping[str, Any], data: memoryview) -> Tensor:
    dtype, shape, (start, end) = _DTYPES[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
    n_bytes = math.prod(shape) * dtype.itemsize
    if not 0 <= start <= end <= len(data) or end - start != n_bytes:
        raise ValueError(f"shape {shape} and bytes {start} to {end} do not agree")
    if n_bytes == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data[start:end]), dtype=dtype).reshape(shape)


def write_shards(
    folder: Path, stem: str, tensors: Mapping[str, Tensor], max_bytes: int = MAX_SHARD_BYTES
) -> dict[str, str]:
    """Write files of at most ``max_bytes`` of tensors; returns file name -> SHA-256."""
    shards: list[dict[str, Tensor]] = []
    room = 0
    for name, tensor in tensors.items():
        n_bytes = tensor.numel() * tensor.dtype.itemsize
        if n_bytes > room:
            shards.append({})
            room = max_bytes
        shards[-1][name] = tensor
        room -= n_bytes
    names = [f"{stem}-{k:02d}-of-{len(shards):02d}.safetensors" for k in range(1, len(shards) + 1)]
    return {name: write_tensors(folder / name, shard) for name, shard in zip(names, shards, strict=True)}


def read_shards(folder: Path, files: Mapping[str, str]) -> dict[str, Tensor]:
    """All tensors of some files, each checked."""
    tensors: dict[str, Tensor] = {}
    for name, checksum in files.items():
        if not isinstance(name, str) or Path(name).name != name:
            raise DataError(f"config.json names a file outside its folder: {shortened(name)}.")
        if not isinstance(checksum, str):  # without one nothing would be checked
            raise DataError(f"config.json has no checksum of {shortened(name)}. Got {shortened(checksum)}.")
        tensors.update(read_tensors(folder / name, sha256=checksum))
    return tensors
