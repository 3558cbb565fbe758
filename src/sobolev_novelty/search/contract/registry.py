"""The engines by name, for the regressor, the command line, stored models and benchmarks.

A new engine is one file and one line of :data:`ENGINES`; one of your own gets its name by :func:`register_engine`, or,
where it is in an installed package, by an entry point of the group ``sobolev.engines``. Nothing heavy is imported here:
an engine's module is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

from sobolev_novelty.core.installed import Brought, brought
from sobolev_novelty.core.parameters import WORD, Kind, checked
from sobolev_novelty.errors import ParameterError, require

if TYPE_CHECKING:
    from sobolev_novelty.search.contract.engine import Engine

#: Name -> ``module:class``, or the class.
ENGINES: dict[str, str | type[Engine[Any]]] = {
    "genetic": "sobolev_novelty.engines.genetic:Genetic",
    "mcts": "sobolev_novelty.engines.mcts:MCTS",
    "transformer": "sobolev_novelty.engines.transformer.engine:Transformer",
    "igsr": "sobolev_novelty.engines.igsr.engine:IGSR",
    "paper_gp": "sobolev_novelty.engines.paper.gp:PaperGP",
    "paper_mcts": "sobolev_novelty.engines.paper.mcts:PaperMCTS",
}

_TEMPLATE = "sobolev_novelty.engines.template:template_engine"

#: Packages that only some engines need, and the extra that brings them; engines that need one.
_EXTRAS = {"torch": "transformer"}
_NEEDED = {"transformer": "torch"}


def engine_names() -> tuple[str, ...]:
    """The names by which engines are known.

    >>> engine_names()[:2]
    ('genetic', 'mcts')
    """
    return tuple(_known())


@cache
def _brought() -> dict[str, Brought]:
    return brought("sobolev.engines")


def _known() -> dict[str, str | type[Engine[Any]]]:
    """Ours, those registered in this process, and those of installed packages."""
    return ENGINES | {name: found.place for name, found in _brought().items() if name not in ENGINES}


def _is_engine(value: Any) -> bool:
    return isinstance(value, type) or (isinstance(value, str) and ":" in value)


@checked(name=WORD, engine=Kind("a class derived from Engine, or 'package.module:Class'", _is_engine))
def register_engine(name: str, engine: str | type[Engine[Any]]) -> None:
    """Give an engine a name.

    ``SymbolicRegressor(name)``, ``--engine name``, saved models and the benchmark's methods ``name`` and
    ``name+novelty`` then know it, in this process.

    Parameters
    ----------
    name : str
        An identifier that no other engine has.
    engine : str or type
        The class, or ``"package.module:Class"``, which is imported on first use.

    Examples
    --------
    >>> register_engine("mcts", "sobolev_novelty.engines.mcts:MCTS")  # as it is already
    """
    if not name.isidentifier():
        raise ParameterError(f"'name' must be an identifier: letters, digits, underscores. Got '{name}'.")
    if ENGINES.get(name, engine) != engine:
        raise ParameterError(f"'name' must be new. '{name}' is taken by {ENGINES[name]}.")
    ENGINES[name] = engine


def engine_class(name: str) -> type[Engine[Any]]:
    """The engine of this name."""
    if name in ENGINES:
        engine = ENGINES[name]
        return _loaded(engine) if isinstance(engine, str) else engine
    if name in _brought():
        return _engine_of(_brought()[name])
    raise ParameterError(f"'engine' must be one of {', '.join(engine_names())}, or an Engine. Got '{name}'.")


def _engine_of(found: Brought) -> type[Engine[Any]]:
    from sobolev_novelty.search.contract.engine import Engine

    engine = found.load()
    if not (isinstance(engine, type) and issubclass(engine, Engine)):
        raise found.problem("is not a class derived from sobolev_novelty.Engine")
    return engine


def template_engine(guesses: object) -> Engine[Any]:
    """The engine that fills a template, with these guesses of the user's."""
    return _loaded(_TEMPLATE)(guesses)  # type: ignore[no-any-return]


def _loaded(place: str) -> Any:
    module, _, attribute = place.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name in _EXTRAS:
            require(error.name, extra=_EXTRAS[error.name])
        raise


def check_installed(name: str) -> None:
    """Refuse an engine that is asked for later and whose packages are not here; nothing is loaded."""
    package = _NEEDED.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        require(package, extra=_EXTRAS[package])


def engine_named(name: str, **options: Any) -> Engine[Any]:
    """The engine of this name with these options; the others have their defaults.

    >>> engine_named("mcts", n_rollouts=4).n_rollouts
    4
    """
    return engine_class(name)(**options)


def name_of(engine: Engine[Any]) -> str | None:
    """The name of an engine's class; None where it has none.

    >>> name_of(engine_named("genetic"))
    'genetic'
    """
    kinds = (type(engine), place_of(type(engine)))
    return next((name for name, known in _known().items() if known in kinds), None)


def place_of(engine: type[Engine[Any]]) -> str:
    """``module:class``."""
    return f"{engine.__module__}:{engine.__qualname__}"
