"""Constructor arguments by name, as scikit-learn's ``clone`` and nested parameters ask for them, without loading it.

An island's process needs engines and nothing else of scikit-learn, whose imports would be more than half of its start.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from sobolev_novelty.errors import ParameterError


class Options:
    """Something whose constructor only stores its arguments, under their names.

    >>> class Throw(Options):
    ...     def __init__(self, speed=3.0, angle=45.0):
    ...         self.speed, self.angle = speed, angle
    >>> Throw(angle=30.0).set_params(speed=2.0).get_params()
    {'angle': 30.0, 'speed': 2.0}
    >>> Throw(angle=30.0)
    Throw(angle=30.0)
    """

    @classmethod
    def _arguments(cls) -> dict[str, inspect.Parameter]:
        """Those of the constructor, by name."""
        if cls.__init__ is object.__init__:
            return {}
        _, *arguments = inspect.signature(cls.__init__).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return {a.name: a for a in sorted(arguments, key=lambda a: a.name) if a.kind in named}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments and their values. None of them has options of its own, so ``deep`` changes nothing."""
        return {name: getattr(self, name) for name in self._arguments()}

    def set_params(self, **options: Any) -> Self:
        """Change arguments."""
        valid = self._arguments()
        for name, value in options.items():
            if name not in valid:
                known = ", ".join(valid) or "none"
                raise ParameterError(f"{type(self).__name__} has no option {name!r}. Options: {known}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        found = ((name, getattr(self, name), argument.default) for name, argument in self._arguments().items())
        changed = [f"{name}={value!r}" for name, value, default in found if value is not default and value != default]
        return f"{type(self).__name__}({', '.join(changed)})"
