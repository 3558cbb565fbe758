"""Where results go: paths are checked before the work, and a result that cannot be written there is kept elsewhere."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from sobolev_novelty.errors import OutputError, ParameterError, SobolevError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` when all is written: readers see the old one or the new one.

    That holds for several writers at once, for a process that is killed, and for a machine that loses power.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(draft, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and not isinstance(error, SobolevError):
            raise OutputError(path, error) from error
        raise


def write_whole(path: Path, text: str) -> None:
    """Write text as a whole or not at all.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_whole(path, "42")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('42', 1)
    """
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8"))


def write_through(path: Path, text: str) -> None:
    """Write text where the path leads, through links; an error of ours where that cannot be done."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(path, error) from error


def check_output(path: Path, suffixes: Sequence[str] = (), argument: str = "out") -> None:
    """Refuse a path that cannot be written or does not end in one of these (none: any will do), before the work.

    Examples
    --------
    >>> check_output(Path("model.doc"), [".json"])
    Traceback (most recent call last):
    ...
    sobolev_novelty.errors.ParameterError: 'out' must end in .json. Got 'model.doc'.
    """
    if suffixes and path.suffix.lower() not in suffixes:
        known = ", ".join(suffixes[:-1]) + " or " * (len(suffixes) > 1) + suffixes[-1]
        raise ParameterError(f"'{argument}' must end in {known}. Got '{path}'.")
    folder = path.parent
    if not folder.is_dir():
        raise ParameterError(f"'{argument}': the folder '{folder}' does not exist. Make it, or give another path.")
    if path.is_dir():
        raise ParameterError(f"'{argument}': '{path}' is a folder. Give the path of a file.")
    # Files are replaced as a whole, which needs the folder; a file that may not be written is respected.
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ParameterError(f"'{argument}': '{path}' cannot be written. Check its permissions, or give another path.")


def write_or_rescue(path: Path, write: Callable[[Path], object]) -> tuple[str | None, str]:
    """Write a result; where that fails, write it into the temporary folder. No ``OSError`` leaves this function.

    Parameters
    ----------
    path : Path
    write : callable
        Writes the result to the path it is given.

    Returns
    -------
    path, problem
        Where the result is, and why it is not where it was wanted; empty where it is.

    Examples
    --------
    >>> path, problem = write_or_rescue(Path("no such folder/a.txt"), lambda path: path.write_text("42"))
    >>> Path(path).read_text(), problem[:43]
    ('42', "'no such folder/a.txt' could not be written")
    """
    try:
        write(path)
        return str(path), ""
    except OSError as error:
        problem = f"'{path}' could not be written ({error.strerror or error})."
    try:
        rescued = Path(tempfile.mkdtemp(prefix="sobolev-")) / path.name
        write(rescued)
    except OSError as error:
        return None, f"{problem} Nor could the temporary folder ({error.strerror or error})."
    return str(rescued), f"{problem} The result is in '{rescued}'."
