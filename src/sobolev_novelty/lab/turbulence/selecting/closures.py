"""A closure: tensor terms with coefficients, evaluated at a flow state, printed as LaTeX, Python, C++, OpenFOAM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.turbulence.selecting.tensors import N_CHANNELS, TensorTerm, monomials


@dataclass(frozen=True, slots=True)
class Closure:
    """b⊥ = Σ c · x1^a x2^b · T_k."""

    terms: tuple[TensorTerm, ...]
    coefficients: tuple[float, ...]
    name: str = "closure"

    def __post_init__(self) -> None:
        if len(self.terms) != len(self.coefficients):
            raise ParameterError(f"{len(self.terms)} terms need as many coefficients. Got {len(self.coefficients)}.")

    def __len__(self) -> int:
        return len(self.terms)

    def __str__(self) -> str:
        return _signed_sum((c, str(t)) for t, c in zip(self.terms, self.coefficients)) or "0"

    def coefficient_values(self, x: FloatArray) -> FloatArray:
        """G_1, G_2, G_3 at the samples, shape (n_samples, 3)."""
        G = np.zeros((len(x), N_CHANNELS))
        if self.terms:
            contributions = monomials(self.terms, x)[0] * np.array(self.coefficients)
            for index, term in enumerate(self.terms):
                G[:, term.channel] += contributions[:, index]
        return G

    def evaluate(self, x: FloatArray, T: FloatArray) -> FloatArray:
        """b⊥ at the samples, shape (n_samples, 3, 3)."""
        return np.asarray(np.einsum("nk,nkij->nij", self.coefficient_values(x), T))

    @property
    def functions(self) -> tuple[str, ...]:
        """G_1, G_2, G_3 as Python text in x1 and x2."""
        return tuple(
            _signed_sum((c, t.monomial) for t, c in zip(self.terms, self.coefficients) if t.channel == k) or "0"
            for k in range(N_CHANNELS)
        )

    def to_latex(self, digits: int = 4) -> str:
        """One aligned equation."""
        parts: list[str] = []
        for term, c in zip(self.terms, self.coefficients):
            number = f"{abs(c):.{digits}g}"
            if "e" in number:
                mantissa, exponent = number.split("e")
                number = rf"{mantissa}\times10^{{{int(exponent)}}}"
            parts.append(("-" if c < 0 else "+" if parts else "") + number + r"\," + term.latex)
        return r"\widehat{\mathbf{b}}^{\perp} = " + (" ".join(parts) or "0")

    def to_python(self) -> str:
        """A function that needs NumPy only."""
        G = "\n".join(f"    g{k + 1} = {text}" for k, text in enumerate(self.functions))
        return (
            "import numpy as np\n\n\n"
            "def b_perp(S, R):\n"
            '    """Stress correction; S, R: (..., 3, 3), made dimensionless with k/epsilon."""\n'
            "    x1 = np.tanh(np.einsum('...ij,...ji', S, S) / 2)[..., None, None]\n"
            "    x2 = np.tanh(np.einsum('...ij,...ji', R, R) / 2)[..., None, None]\n"
            "    S2 = S @ S\n"
            "    t2 = S @ R - R @ S\n"
            "    t3 = S2 - np.eye(3) * np.trace(S2, axis1=-2, axis2=-1)[..., None, None] / 3\n"
            f"{G}\n"
            "    return g1 * S + g2 * t2 + g3 * t3\n"
        )

    def to_cpp(self) -> str:
        """The three coefficient functions in standard C++."""
        lines = ["#include <cmath>", ""]
        for k in range(N_CHANNELS):
            pieces = [
                (c, "*".join(_cpp_power(n, p) for n, p in (("x1", t.power1), ("x2", t.power2)) if p) or "1.0")
                for t, c in zip(self.terms, self.coefficients)
                if t.channel == k
            ]
            body = _signed_sum(pieces) or "0.0"
            lines += [f"inline double G{k + 1}(double x1, double x2)", "{", f"    return {body};", "}", ""]
        return "\n".join(lines)

    def to_foam(self) -> str:
        """The terms as the OpenFOAM model reads them: a list of ``(channel power1 power2 coefficient)``."""
        rows = "\n".join(
            f"    ({t.channel} {t.power1} {t.power2} {c!r})" for t, c in zip(self.terms, map(float, self.coefficients))
        )
        return f"closureTerms\n(\n{rows}\n);\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as stored in results."""
        rows = [[t.channel, t.power1, t.power2, float(c)] for t, c in zip(self.terms, self.coefficients)]
        return {"name": self.name, "terms": rows}

    def to_json(self) -> str:
        """Text that :meth:`from_json` reads."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Closure:
        """Read what :meth:`to_dict` wrote."""
        try:
            rows = [(int(k), int(a), int(b), float(c)) for k, a, b, c in content["terms"]]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                "A closure needs 'terms', a list of [channel 0..2, power of x1, power of x2, coefficient]. "
                f"Got {str(content)[:80]}."
            ) from error
        return cls(
            tuple(TensorTerm(k, a, b) for k, a, b, _ in rows),
            tuple(c for *_, c in rows),
            str(content.get("name", "closure")),
        )

    @classmethod
    def from_json(cls, text: str) -> Closure:
        """Read what :meth:`to_json` wrote."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"The closure file is not JSON: {error}. Write it with Closure.to_json.") from error
        return cls.from_dict(content)


def _cpp_power(name: str, power: int) -> str:
    return name if power == 1 else f"std::pow({name}, {power})"


def _signed_sum(pieces: Any) -> str:
    """'0.5 - 2*x1' from (0.5, '1'), (-2.0, 'x1')."""
    text = ""
    for coefficient, factor in pieces:
        number = repr(abs(float(coefficient))).removesuffix(".0")
        body = number if factor in ("1", "1.0") else f"{number}*{factor}"
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {body}" if text else (f"-{body}" if sign == "-" else body)
    return text
