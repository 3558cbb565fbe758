"""Where results go: paths are checked before the work, and a result that cannot be written there is kept elsewhere."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sobolev_novelty.errors import OutputError, ParameterError, SobolevError

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` when all is written: readers see the old one or the new one.

    That holds for several writers at once, for a process that is killed, and for a machine that loses power. A link
    stays one, and what it leads to is replaced; the new file has the permissions of the old one. A pipe or a device
    cannot be replaced and is written as it is.
    """
    try:
        if _is_stream(path):
            with path.open("ab") as handle:  # the file behind /dev/stdout keeps what it has
                yield handle
            return
        # The name of the file is no part of the draft's: it may be as long as a name can be.
        target = Path(os.path.realpath(path))
        draft = target.with_name(f".sobolev-{os.getpid()}-{secrets.token_hex(4)}.part")
        try:
            with draft.open("xb") as handle:
                with contextlib.suppress(OSError):
                    os.chmod(draft, stat.S_IMODE(target.stat().st_mode))
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(draft, target)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
    except OSError as error:
        if isinstance(error, SobolevError):
            raise
        raise OutputError(path, error) from error


def _is_stream(path: Path) -> bool:
    """Whether a path leads to a pipe, a device or a file that the shell has opened, as ``/dev/stdout`` does."""
    is_opened_elsewhere = path.as_posix().startswith(("/dev/std", "/dev/fd/", "/proc/"))
    return is_opened_elsewhere or (path.exists() and not path.is_file())


def write_whole(path: Path, text: str) -> None:
    """Write text as a whole or not at all.

    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_whole(path, "42")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('42', 1)
    """
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8"))


def write_figure(path: Path, figure: Figure, **options: Any) -> None:
    """Draw a figure of matplotlib into a file, whose ending says in which format."""
    with whole_file(path) as handle:
        figure.savefig(handle, format=path.suffix[1:].lower(), **options)


def write_arrays(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write arrays with their names, compressed."""
    import numpy as np

    with whole_file(path) as handle:
        np.savez_compressed(handle, **arrays)  # type: ignore[arg-type]


def check_output(path: Path, suffixes: Sequence[str] = (), argument: str = "out") -> None:
    """Refuse a path that cannot be written or does not end in one of these (none: any will do), before the work.

    >>> check_output(Path("model.doc"), [".json"])
    Traceback (most recent call last):
    ...
    sobolev_novelty.errors.ParameterError: 'out' must end in .json. Got 'model.doc'.
    """
    if suffixes and path.suffix.lower() not in suffixes:
        known = ", ".join(suffixes[:-1]) + " or " * (len(suffixes) > 1) + suffixes[-1]
        raise ParameterError(f"'{argument}' must end in {known}. Got '{path}'.")
    folder = Path(os.path.realpath(path)).parent if os.path.islink(path) else path.parent
    if not folder.is_dir():
        raise ParameterError(f"'{argument}': the folder '{folder}' does not exist. Make it, or give another path.")
    if os.path.isdir(path):
        raise ParameterError(f"'{argument}': '{path}' is a folder. Give the path of a file.")
    try:
        is_there = path.exists()
    except OSError as error:  # the name is too long
        words = f"'{path}' cannot be written: {error.strerror}. Give another path."
        raise ParameterError(f"'{argument}': {words}") from error
    # Files are replaced as a whole, which needs the folder; a file that may not be written is respected.
    may_replace = _is_stream(path) or os.access(folder, os.W_OK | os.X_OK)
    if not may_replace or (is_there and not os.access(path, os.W_OK)):
        raise ParameterError(f"'{argument}': '{path}' cannot be written. Check its permissions, or give another path.")


def write_or_rescue(path: Path, write: Callable[[Path], object]) -> tuple[str | None, str]:
    """Write a result; where that fails, write it into the temporary folder. No ``OSError`` leaves this function.

    ``write``: writes the result to the path it is given.

    Returns where the result is, and why it is not where it was wanted; empty where it is.

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
