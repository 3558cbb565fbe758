"""The exception tree.

::

    SobolevError
    ├── ParseError        (ValueError)   text that is not an expression; points at the character
    ├── ExpressionError   (ValueError)   a token sequence that is not a tree, an unknown operator or variable
    ├── DataError         (ValueError)   X, y or a file that cannot be used as given
    │   └── DataTypeError (TypeError)    entries that NumPy cannot make numbers of
    ├── ParameterError    (ValueError)   an option outside its range
    ├── OutputError       (OSError)      a file that cannot be written; the old one is as it was
    ├── KernelError       (RuntimeError) a program the kernels refuse
    └── MissingExtraError (ImportError)  an optional dependency that is not installed

``ExtrapolationWarning`` (UserWarning) is no error: a model is asked about rows beyond its training range.

Whoever catches ``SobolevError`` catches everything raised on purpose; whoever expects the built-in gets that too.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import ModuleType


def printable(text: str) -> str:
    r"""Text that does nothing but show: control characters, terminal escapes and reversed writing by their numbers.

    Line breaks, tabs and the spaces that do not break (before a per cent sign) stay.

    >>> print(printable("mass" + chr(27) + "[31m" + chr(0x202E)))
    mass\u001b[31m\u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t\u00a0" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k]:02x}{units[k + 1]:02x}" for k in range(0, len(units), 2))


def shortened(value: object, at_most: int = 160) -> str:
    """How a value is written, cut off where it is long: files hold texts of megabytes.

    >>> shortened([1, 2]), shortened("a" * 1000, 8)
    ('[1, 2]', "'aaaaaaa…")
    """
    try:
        text = " ".join(repr(value).split())  # an array is written in lines
    except Exception:  # numbers of thousands of digits are not written, and somebody else's object may do anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= at_most else f"{text[:at_most]}…"


def meant(name: str, names: Iterable[str]) -> str:
    """A question after the name that somebody may have meant; empty where none is near.

    >>> meant("lenght", ["length", "mass"]), meant("Mass", ["length", "mass"]), meant("t", ["length"])
    (" Did you mean 'length'?", " Did you mean 'mass'?", '')
    """
    known = {other[:80].casefold(): other for other in islice(names, 1000)}
    near = difflib.get_close_matches(name[:80].casefold(), known, n=1)
    return f" Did you mean '{known[near[0]]}'?" if near else ""


#: Characters of a message: a column's name, a cell or a formula of megabytes would bury what to do about it.
MAX_MESSAGE = 2000


def _of_readable_length(text: str) -> str:
    """The beginning says what is wrong, the end what to do."""
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE // 2]} … {text[-MAX_MESSAGE // 2 :]}"


class SobolevError(Exception):
    """Base of every error this package raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong and what to do, in one or two sentences.
    arguments : sequence of str
        Arguments of the caller that the message names in quotes: a command line puts its own options in their place.
    """

    def __init__(self, *message: object, arguments: Sequence[str] = ()) -> None:
        # Names come from files: an error that is shown must not move the cursor or hide what it says.
        super().__init__(*(_of_readable_length(printable(p)) if isinstance(p, str) else p for p in message))
        self.arguments = tuple(arguments)


class ExtrapolationWarning(UserWarning):
    """Predictions for rows outside the range of the training data."""


class ParseError(SobolevError, ValueError):
    """Text that cannot be read as an expression.

    Parameters
    ----------
    reason : str
        What is wrong, in one sentence.
    text : str
        The text that was given.
    position : int
        Index of the offending character.
    """

    def __init__(self, reason: str, text: str = "", position: int = 0) -> None:
        self.reason = _of_readable_length(reason)
        self.text = text
        self.position = position
        super().__init__(self._message())

    def _message(self) -> str:
        if not self.text:
            return _printable(self.reason)
        # A window around the character: hostile or machine-written text can be megabytes long.
        start = max(0, self.position - 40)
        window = _printable(self.text[start : self.position + 40])
        return f"{_printable(self.reason)}\n  {window}\n  {' ' * (self.position - start)}^"

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int]]:
        return type(self), (self.reason, self.text, self.position)


def _printable(text: str) -> str:
    """Line breaks, terminal escapes and lone surrogates as spaces: a message is shown, whatever the text holds."""
    return "".join(character if character.isprintable() else " " for character in text)


class ExpressionError(SobolevError, ValueError):
    """A token sequence that is not one tree, or names something unknown."""


class DataError(SobolevError, ValueError):
    """Data that cannot be used as given."""


class DataTypeError(DataError, TypeError):
    """Data that holds something which is no number at all, where NumPy raises a TypeError."""


class ParameterError(SobolevError, ValueError):
    """An option outside its range."""


class OutputError(SobolevError, OSError):
    """A file that cannot be written; what was there before is as it was.

    ``path``: the file.
    ``error``: what the system said.
    """

    def __init__(self, path: object, error: OSError) -> None:
        reason = error.strerror or str(error) or type(error).__name__
        super().__init__(f"'{path}' could not be written: {reason}. Check the disk, the path and its permissions.")
        self.errno, self.strerror = error.errno, reason
        self.path, self.cause = path, error

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[type[OutputError], tuple[object, OSError]]:
        return type(self), (self.path, self.cause)


class KernelError(SobolevError, RuntimeError):
    """A program the kernels refuse to run."""


class MissingExtraError(SobolevError, ImportError):
    """An optional dependency that is not installed."""


def in_callers_words(error: Exception, names: Mapping[str, str]) -> str:
    """The message of an error on one line, with a caller's own words in place of the library's arguments.

    Those are replaced that the error declares, otherwise the one it begins with; each once, where it first stands: a
    column may have the name of an argument.

    ``names``: argument of the library -> what the caller's users call it.

    >>> in_callers_words(ParameterError("'n_jobs' must not be 0."), {"n_jobs": "--jobs"})
    '--jobs must not be 0.'
    """
    if isinstance(error, ParseError) and error.text:
        start = max(0, error.position - 20)
        near = error.text[start : error.position + 20]
        # The library writes variables="x0".
        reason = re.sub(r'\b(\w++)="(\w++)"', lambda m: f"{names.get(m[1], m[1])} {m[2]}", error.reason)
        return " ".join(f"{reason} (Character {error.position + 1}, near {near!r}.)".split())
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, SobolevError):
        return f"'{_of_readable_length(str(error.filename))}': {error.strerror}. Check the path and its permissions."
    message = str(error)
    first = re.match(r"'(\w+)'", message)
    for name in getattr(error, "arguments", ()) or (first.groups() if first else ()):
        message = message.replace(f"'{name}'", names.get(name, f"'{name}'"), 1)
    return " ".join(message.split()) or type(error).__name__


def how_to_install(extra: str) -> str:
    """The command that brings an extra: the package is on no index, so its name alone would find nothing.

    >>> how_to_install("plot")
    "pip install '.[plot]' (in the folder of the checkout)"
    """
    return f"pip install '.[{extra}]' (in the folder of the checkout)"


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional dependency, or say how to install it.

    >>> require("math", extra="plot").pi > 3
    True
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs '{module}', which is not installed. Run: {how_to_install(extra)}"
        ) from error
