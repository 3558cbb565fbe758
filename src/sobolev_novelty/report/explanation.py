"""Which other terms rebuild a term."""

from __future__ import annotations

from dataclasses import dataclass

from sobolev_novelty.core.digits import short_numbers


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which other terms rebuild one term, with what weights, leaving what.

    ``parts`` holds (label, weight), largest share first: term ≈ Σ weight · label in value and derivative, with
    ``residual`` = ν left over.
    """

    label: str
    residual: float
    parts: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        label = short_numbers(self.label)
        if not self.parts:
            return f"{label}: no other term rebuilds any of it (novelty {self.residual:.3g})."
        parts = (f"{'-' if w < 0 else '+'} {abs(w):.4g}*({short_numbers(part)})" for part, w in self.parts)
        left = f"leaving {self.residual:.1%} unexplained ({self.residual**2:.1%} of its energy)."
        return f"{label} ≈ {' '.join(parts).removeprefix('+ ')}\n{left}"

    def __repr__(self) -> str:
        return str(self)
