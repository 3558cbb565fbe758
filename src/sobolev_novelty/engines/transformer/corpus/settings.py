"""What defines a corpus: the law of its formulas and inputs, the arm, the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sobolev_novelty.core.geometry import INTERCEPTS
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.engines.transformer.corpus.library import (
    ARMS,
    INPUT_KINDS,
    LAWS,
    MAX_DIM,
    MAX_NODES,
    MAX_TERMS,
    N_POINTS,
)
from sobolev_novelty.errors import ParameterError

#: Inputs of the lean law: half clusters, half boxes and curves; of E2ESR's law: whitened clusters.
_INPUTS = {
    "lean": {"whitened": 0.3, "moved": 0.15, "shared_box": 0.22, "boxes": 0.13, "log_boxes": 0.1, "curves": 0.1},
    "e2esr": {"whitened": 1.0},
    "physics": {"whitened": 1.0},
    "file": {"whitened": 1.0},
}
_LAW_DEFAULTS: dict[str, dict[str, Any]] = {
    "lean": {
        "dimensions": (1.0, 2.0, 3.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.7, 0.5),
        "max_nodes": 40,
        "max_float_tokens": 72,
        "max_target": 1e7,
        "max_angle": 200.0,
        "full_share": 0.7,
        "tries": 1,
    },
    "e2esr": {
        "dimensions": (1.0,) * MAX_DIM,
        "max_nodes": MAX_NODES,
        "max_float_tokens": 126,
        "max_target": 1e30,
        "max_angle": 1e6,
        "full_share": 0.0,
        "tries": 100,
    },
}
# The other arms of the paper's experiment differ from E2ESR's law in the formulas only.
_LAW_DEFAULTS["physics"] = _LAW_DEFAULTS["e2esr"] | {"dimensions": (0.0, 2.0, 3.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5)}
_LAW_DEFAULTS["file"] = _LAW_DEFAULTS["e2esr"]


@dataclass(frozen=True, slots=True)
class CorpusSettings:
    """What defines a corpus. Use :meth:`of_law` for the defaults of a law.

    Parameters
    ----------
    seed : int
    law : {"lean", "e2esr", "physics", "file"}
        Lean: constants only where they matter, operands in one order, like terms rejected. E2ESR: its own distribution.
        Physics: unit-consistent sums of up to three monomials (``native/physics.h``). File: formulas of a file.
    arm : {"random", "filtered", "matched"}
        All valid formulas; those whose terms are all novel; random ones thinned by ``keep``.
    inputs : mapping of str to float
        Weight of each kind of inputs (``INPUT_KINDS``).
    judge : str or None
        Kind of inputs on which the filter judges; the formula's own when None.
    intercept : {"term", "free"}
        Whether the filter judges beside a free intercept, as ``sobolev_novelty.accepts``.
    dimensions : tuple of float
        Weight of 1, 2, … inputs.
    max_nodes, max_float_tokens : int
        Longest formulas, in nodes and in tokens with written-out constants.
    min_points, full_share
        A share ``full_share`` of the formulas has 200 points, the others any number from ``min_points`` (E2ESR: five
        per input if that is more) to 200; points are repeated to fill 200 rows.
    max_target, max_angle : float
        Formulas with larger values, or larger arguments of sin, cos and tan, are rejected.
    tries : int
        Draws per candidate until its values are valid, dimension and number of functions fixed.
    keep : tuple of float
        Matched arm: chance to stay by dimension and number of terms, (10, 65) flattened.
    formulas : str or None
        Law "file": the path of the formulas (:mod:`sobolev_novelty.tables.formula_files`), drawn with equal chances.
    hold_out : bool
        Reject skeletons of the benchmarks (:mod:`sobolev_novelty.engines.transformer.corpus.decontaminate`).
    """

    seed: int
    law: str
    arm: str
    inputs: Mapping[str, float]
    dimensions: tuple[float, ...]
    max_nodes: int
    max_float_tokens: int
    max_target: float
    max_angle: float
    full_share: float
    tries: int
    judge: str | None = None
    intercept: str = "term"
    min_points: int = 32
    tau: float = TAU_ID
    keep: tuple[float, ...] = ()
    hold_out: bool = False
    formulas: str | None = None

    @classmethod
    def of_law(cls, law: str, *, seed: int = 0, arm: str = "random", **changes: Any) -> CorpusSettings:
        """The defaults of a law, with changes."""
        if law not in LAWS:
            raise ParameterError(f"'law' must be one of {', '.join(LAWS)}. Got {law!r}.")
        values = {"inputs": _INPUTS[law], **_LAW_DEFAULTS[law], **changes}
        return cls(seed=seed, law=law, arm=arm, **values)

    def __post_init__(self) -> None:
        _check_one_of("arm", self.arm, ARMS)
        _check_one_of("intercept", self.intercept, INTERCEPTS)
        for kind in (*self.inputs, *([self.judge] if self.judge is not None else [])):
            _check_one_of("inputs", kind, INPUT_KINDS)
        if not 1 <= len(self.dimensions) <= MAX_DIM:
            raise ParameterError(f"'dimensions' must have 1 to {MAX_DIM} weights. Got {len(self.dimensions)}.")
        if not 2 <= self.max_nodes <= MAX_NODES:
            raise ParameterError(f"'max_nodes' must be 2 to {MAX_NODES}. Got {self.max_nodes}.")
        if not 16 <= self.min_points <= N_POINTS:
            raise ParameterError(f"'min_points' must be 16 to {N_POINTS}. Got {self.min_points}.")
        if (self.law == "file") != (self.formulas is not None):
            raise ParameterError(f"'formulas' is the path of the law 'file', and of no other. Got {self.formulas!r}.")
        if self.keep and len(self.keep) != MAX_DIM * (MAX_TERMS + 1):
            raise ParameterError(f"'keep' must have {MAX_DIM} times {MAX_TERMS + 1} entries. Got {len(self.keep)}.")


def _check_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(f"'{name}' must be one of {', '.join(known)}. Got {value!r}.")
