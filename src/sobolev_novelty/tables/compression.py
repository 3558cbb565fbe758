"""Compressed bytes as text that is never longer than its reader allows, with errors that are our own."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import zipfile
from collections.abc import Callable
from typing import IO, Any

from sobolev_novelty.errors import DataError, SobolevError

#: Suffix -> compression.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
#: First bytes -> compression, for what has no name.
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\3\4": "zip"}


def compression_of(content: bytes) -> str | None:
    """How bytes are compressed, by how they begin.

    >>> compression_of(gzip.compress(b"a,b")), compression_of(b"a,b")
    ('gzip', None)
    """
    return next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), None)


def decompressed(raw: IO[bytes], compression: str, name: str, max_bytes: int) -> IO[bytes]:
    """The text behind compressed bytes.

    ``compression``: one of ``gzip``, ``bz2``, ``xz``, ``zstd``, ``zip``.
    ``name``: for messages.
    ``max_bytes``: more than this is refused, unless :meth:`BoundedReader.allow_as_much_again` is called in between.

    >>> decompressed(io.BytesIO(gzip.compress(b"a,b")), "gzip", "data.csv.gz", 100).read()
    b'a,b'
    """
    return BoundedReader(raw, compression, name, max_bytes)


def check_expansion(name: str, n_bytes: int, max_bytes: int) -> None:
    """Refuse what takes more memory than is allowed."""
    if n_bytes > max_bytes:
        raise DataError(
            f"'{name}' holds more than {max_bytes >> 20} MB when it is decompressed. If you trust it, allow more "
            "('max_megabytes').",
            arguments=["max_megabytes"],
        )


class BoundedReader(io.BufferedReader):
    """A decompressor that counts what it gives out."""

    def __init__(self, raw: IO[bytes], compression: str, name: str, max_bytes: int) -> None:
        self._counter = _Counter(raw, compression, name, max_bytes)
        super().__init__(self._counter, 2**16)

    def allow_as_much_again(self) -> None:
        """Start to count anew: what was given out is no longer in memory."""
        self._counter.n_given = 0


class _Counter(io.RawIOBase):
    def __init__(self, raw: IO[bytes], compression: str, name: str, max_bytes: int) -> None:
        self._name = name
        self._max_bytes = max_bytes
        self.n_given = 0
        self._text: Any = self._guarded(lambda: _OPENERS[compression](raw))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._guarded(lambda: self._text.read(len(buffer)))
        buffer[: len(part)] = part
        self.n_given += len(part)
        check_expansion(self._name, self.n_given, self._max_bytes)
        return len(part)

    def close(self) -> None:
        if not self.closed and hasattr(self, "_text"):
            self._text.close()
        super().close()

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """Do something with the decompressor. Each has errors of its own, some only of the base class."""
        try:
            return step()
        except SobolevError:
            raise
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise DataError(
                f"'{self._name}' cannot be read: {lines[0].rstrip('.')}. Check the file, or write it again."
            ) from error


def _open_zip(raw: IO[bytes]) -> IO[bytes]:
    archive = zipfile.ZipFile(raw)
    if len(archive.namelist()) != 1:
        raise DataError(f"The archive holds {len(archive.namelist())} files. Give an archive of one table.")
    return archive.open(archive.namelist()[0])


def _open_zstd(raw: IO[bytes]) -> IO[bytes]:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise DataError("Reading .zst needs the package 'zstandard': install it, or compress with gzip.") from None
    handle: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(raw)
    return handle


_OPENERS: dict[str, Callable[[Any], Any]] = {
    "gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open, "zip": _open_zip, "zstd": _open_zstd,
}  # fmt: skip
