"""What each argument of the public calls may be: one table, looked at when a call begins.

A :class:`Kind` says what an argument must be, in the words of the error, and whether a value is that. :data:`WORDS` has
the arguments that mean the same in every verb. :func:`checked` puts a table before a function or a class; constructors
that only store, as scikit-learn has them, are :func:`declared`, and :func:`check_stored` looks at their values later.
The page docs/arguments.md is made from the same tables (``tools/arguments.py``).

What is data (a table of inputs, a target, an equation) is read by ``data`` and ``evaluation``, which say themselves
what is wrong: its kind here is for the reference page.
"""

from __future__ import annotations

import inspect
import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sobolev_novelty.errors import ParameterError, shortened

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

#: Whole numbers beyond this are no counts: memory and time end before.
LARGEST_COUNT = 2**53


@dataclass(frozen=True, slots=True)
class Kind:
    """What an argument may be."""

    words: str  # what follows "must be"
    holds: Callable[[Any], bool]  # whether a value is that
    is_read: bool = False  # whether the value is data, judged by its reader

    def __or__(self, other: Kind) -> Kind:
        return Kind(f"{self.words}, or {other.words}", lambda v: self.holds(v) or other.holds(v), self.is_read)


def whole(low: int = 0, high: int = LARGEST_COUNT) -> Kind:
    """A whole number within limits.

    >>> whole(0, 2).words, whole(1).holds(True), whole(1).holds(3)
    ('a whole number from 0 to 2', False, True)
    """
    ends = f"of at least {low}" if high >= LARGEST_COUNT else f"from {low} to {high}"
    return Kind(f"a whole number {ends}", lambda v: _is_whole(v) and bool(low <= v <= high))


def number(low: float = -math.inf, high: float = math.inf, *, above: bool = False, below: bool = False) -> Kind:
    """A finite number within limits; ``above`` and ``below`` leave out the ends themselves.

    >>> number(0, 1).words, number(0, above=True).words, number(0, 1, above=True, below=True).words
    ('a number from 0 to 1', 'a number above 0', 'a number above 0 and below 1')
    >>> number(0, 1).holds(float("nan")), number(0).holds("1")
    (False, False)
    """
    if low > -math.inf and high < math.inf and not (above or below):
        ends = f" from {low:g} to {high:g}"
    else:
        left = (f" above {low:g}" if above else f" of at least {low:g}") if low > -math.inf else ""
        right = (f" below {high:g}" if below else f" at most {high:g}") if high < math.inf else ""
        ends = f"{left}{' and' if left and right else ''}{right}"

    def holds(v: Any) -> bool:
        return is_real(v) and (low < v if above else low <= v) and (v < high if below else v <= high)

    return Kind(f"a number{ends}", holds)


def one_of(*texts: str) -> Kind:
    """One of some texts.

    >>> one_of("term", "free").words
    "'term' or 'free'"
    """
    *first, last = map(repr, texts)
    words = f"{', '.join(first)} or {last}" if first else last
    return Kind(words, lambda v: isinstance(v, str) and v in texts)


def list_of(kind: Kind, words: str, *, at_least: int = 0, at_most: int = LARGEST_COUNT) -> Kind:
    """A list, a tuple or an array of one dimension whose entries are of a kind; a text or a set is none."""

    def holds(v: Any) -> bool:
        return is_list(v) and at_least <= len(v) <= at_most and all(map(kind.holds, v))

    return Kind(words, holds)


def dictionary(key: Kind, value: Kind, words: str) -> Kind:
    """A dictionary whose keys and values are of some kinds."""

    def holds(v: Any) -> bool:
        return isinstance(v, Mapping) and all(key.holds(k) and value.holds(e) for k, e in v.items())

    return Kind(words, holds)


def instance(words: str, *classes: type) -> Kind:
    """An object of some classes; a class itself is none."""
    return Kind(words, lambda v: isinstance(v, classes))


def read(words: str) -> Kind:
    """Data, which its reader judges."""
    return Kind(words, lambda v: True, is_read=True)


def is_list(value: Any) -> bool:
    """Whether a value has entries in an order, and can be read more than once."""
    if isinstance(value, list | tuple):
        return True
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping | set | frozenset | range):
        return False
    shape = getattr(value, "shape", None)  # of NumPy and pandas
    return isinstance(shape, tuple) and len(shape) == 1 and hasattr(value, "__len__") and hasattr(value, "__iter__")


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value: Any, *, finite: bool = True) -> bool:
    """Whether a value is a number of Python or NumPy that floats can hold; a truth value or a Decimal is none."""
    is_fraction = isinstance(value, numbers.Rational) and not isinstance(value, numbers.Integral)
    if isinstance(value, bool) or is_fraction or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(float(value)) or not finite
    except OverflowError:
        return False


def _is_path(value: Any) -> bool:
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        return False
    try:
        return max(map(len, os.fsencode(value).split(b"/"))) <= 255
    except UnicodeEncodeError:  # half a character
        return False


def _is_error(value: Any) -> bool:
    """One number whose square floats can hold, or something for the reader of one number per row."""
    one = value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
    is_many = is_list(one) or getattr(one, "ndim", 0) > 0 or hasattr(one, "__array__")
    return one is None or is_many or (is_real(one) and 1e-150 < one < 1e150)


def _are_tables(value: Any) -> bool:
    """Something to go through whose parts are not single rows or names of columns."""
    is_one = isinstance(value, str | bytes | memoryview | Mapping) or hasattr(value, "columns")
    return hasattr(value, "__iter__") and not is_one and getattr(value, "ndim", 3) > 2


def _is_generator(value: Any) -> bool:
    import numpy as np  # the command line says its help without it

    return isinstance(value, np.random.Generator | np.random.RandomState)


def _are_terms(value: Any) -> bool:
    """A list of terms, or what :func:`sobolev_novelty.additive_terms` returns."""
    found = getattr(value, "terms", value)
    return isinstance(found, list | tuple) and all(map(TERM.holds, found))


NOTHING = Kind("None", lambda v: v is None)
FLAG = Kind("True or False", lambda v: type(v).__name__ in ("bool", "bool_"))
TEXT = Kind("text", lambda v: isinstance(v, str))
WORD = Kind("text that is not empty", lambda v: isinstance(v, str) and bool(v.strip()))
FUNCTION = Kind("a function", callable)
PATH = Kind("the path of a file", _is_path)
COUNT = whole(1)
SHARE = number(0.0, 1.0)
POSITIVE = number(0.0, above=True)
#: Thirty years: what waits longer passes what clocks hold.
SECONDS = Kind("a number of seconds above 0", lambda v: is_real(v) and 0.0 < v <= 1e9)
INDEX = Kind("a whole number", _is_whole)
CORES = Kind("a whole number other than 0; -1 takes all cores", lambda v: _is_whole(v) and v != 0 and abs(v) <= 2**20)
NAMES = list_of(Kind("", lambda v: isinstance(v, str) and v != ""), "a list of names")
DIFFERENT_NAMES = Kind("a list of different names", lambda v: NAMES.holds(v) and len(set(v)) == len(v))
SEED = whole(0, 2**32 - 1) | Kind("a Generator or a RandomState of NumPy", _is_generator)
ORDER = Kind("0, 1 or 2", lambda v: is_real(v) and v in (0, 1, 2))
DIGITS = whole(1, 17)
LAMBDAS = list_of(number(0.0), "one to three numbers of at least 0 (λ0, λ1, λ2)", at_least=1, at_most=3)

#: An Expression; told by its tokens, because expressions are made of modules above this one.
TREE = Kind("an Expression: sn.parse(text) makes one", lambda v: isinstance(getattr(v, "tokens", None), tuple))
#: Equations, one after another; each is read by itself.
EQUATIONS = Kind("a list of equations", is_list)
TREES = list_of(TREE, "a list of Expressions")
TERM = Kind("a Term", lambda v: is_real(getattr(v, "coefficient", None)) and TREE.holds(getattr(v, "expression", None)))
TERMS = Kind("a list of terms, as additive_terms gives them", _are_terms)
CHUNKS = Kind("tables of rows, one after another", _are_tables)
LABELS = list_of(TEXT, "a list of texts")

UNITS = dictionary(TEXT, TEXT, "a dictionary of columns and their units, such as {'v': 'm/s'}")

ROWS = read("a numeric table with one column per input: an array or a DataFrame")
TARGET = read("one finite number per row")
WEIGHTS = read("one number of at least 0 per row, not all 0")
EQUATION = read("text, an Expression, a SymPy expression, a fitted model, or a list of terms")

#: Arguments that mean the same in every verb.
WORDS: Mapping[str, Kind] = {
    "X": ROWS,
    "y": TARGET,
    "t": read("increasing times, or the step between rows"),
    "equation": EQUATION,
    "expression": EQUATION,
    "model": EQUATION,
    "sigma": Kind("a number above 0, or one per row: the standard deviation of each measurement", _is_error),
    "sample_weight": WEIGHTS,
    "names": NAMES | NOTHING,
    "order": ORDER,
    "weights": LAMBDAS,
    "coordinates": one_of("standardized", "raw", "tangent", "path"),
    "intercept": one_of("term", "free"),
    "tau": SHARE,
    "level": number(0.0, 1.0, above=True, below=True),
    "n_bootstrap": whole(0, 10**6),
    "random_state": SEED | NOTHING,
    "on_progress": FUNCTION,
    "n_jobs": CORES,
    "max_terms": COUNT,
    "index": INDEX | NOTHING,
    "path": PATH,
    "i": INDEX,
    "values": read("an array of shape (n_terms, n_samples, ...)"),
    "gradients": read("an array of shape (n_terms, n_features, n_samples, ...), or None"),
    "coefficients": read("one number per term, or None"),
    "scales": read("one number of at least 0 per input, or None"),
    "labels": LABELS | NOTHING,
}


def check(name: str, value: Any, kind: Kind) -> None:
    """Refuse an argument that is not of its kind, in one line.

    >>> check("order", 3, whole(0, 2))
    Traceback (most recent call last):
    ...
    sobolev_novelty.errors.ParameterError: 'order' must be a whole number from 0 to 2. Got 3.
    """
    try:
        is_right = kind.holds(value)
    except Exception:  # an object of somebody else's whose own methods fail
        is_right = False
    if not is_right:
        raise ParameterError(f"'{name}' must be {kind.words}. Got {shortened(value)}.", arguments=[name])


def checked(**own: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Look at the arguments of a function before it runs: those of :data:`WORDS`, and its own.

    >>> @checked(speed=POSITIVE)
    ... def throw(speed, order=1): return speed
    >>> throw(-1.0)
    Traceback (most recent call last):
    ...
    sobolev_novelty.errors.ParameterError: 'speed' must be a number above 0. Got -1.0.
    """

    def around(function: Callable[P, R]) -> Callable[P, R]:
        places = tuple(inspect.signature(function).parameters)
        table = _table(places, own)
        by_place = [(name, table.get(name)) for name in places]

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for (name, kind), value in zip(by_place, args):
                if kind is not None:
                    check(name, value, kind)
            for name, value in kwargs.items():
                if name in table:
                    check(name, value, table[name])
            return function(*args, **kwargs)

        call.__kinds__ = table  # type: ignore[attr-defined]
        return call

    return around


def checked_class(**own: Kind) -> Callable[[C], C]:
    """Look at the arguments of a class's constructor."""

    def around(cls: C) -> C:
        made = checked(**own)(cls.__init__)  # type: ignore[misc]
        cls.__init__ = made  # type: ignore[misc]
        cls.__kinds__ = made.__kinds__  # type: ignore[attr-defined]
        return cls

    return around


def checked_methods(**tables: Mapping[str, Kind]) -> Callable[[C], C]:
    """Look at the arguments of some methods of a class."""

    def around(cls: C) -> C:
        for name, table in tables.items():
            found = vars(cls)[name]
            is_class_method = isinstance(found, classmethod)
            made = checked(**table)(found.__func__ if is_class_method else found)
            setattr(cls, name, classmethod(made) if is_class_method else made)
        return cls

    return around


def declared(methods: Mapping[str, Mapping[str, Kind]] | None = None, /, **own: Kind) -> Callable[[C], C]:
    """Say what the arguments of a constructor may be that only stores them; :func:`check_stored` looks at them.

    ``methods`` has tables of methods, which are looked at when these are called.
    """

    def around(cls: C) -> C:
        checked_methods(**(methods or {}))(cls)
        cls.__kinds__ = _table(inspect.signature(cls).parameters, own)  # type: ignore[attr-defined]
        return cls

    return around


def check_stored(owner: Any) -> None:
    """Look at the arguments that an object's constructor has stored under their names."""
    for name, kind in kinds_of(type(owner)).items():
        check(name, getattr(owner, name), kind)


def kinds_of(function: Any) -> Mapping[str, Kind]:
    """The table of a function or a class; empty where it has none."""
    found: Mapping[str, Kind] = getattr(function, "__kinds__", {})
    return found


def _table(places: Iterable[str], own: Mapping[str, Kind]) -> dict[str, Kind]:
    found = {name: own.get(name, WORDS.get(name)) for name in places}
    return {name: kind for name, kind in found.items() if kind is not None}
