r"""Rates of change as sums of terms, with their derivatives along states and constants.

Notation
--------
``x``      states (and time, where the equations depend on it), (n_inputs, n)
``theta``  θ, the coefficients of all terms, then their free constants
``f``      rates, (d, n);  ``f_x``  (d, n_inputs, n);  ``f_theta``  (d, p, n)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from sobolev_novelty import kernels
from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.fit.forms import split_form

Indices = npt.NDArray[np.intp]
#: Parameters -> residuals and their Jacobian.
Misfit = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

#: Evaluations of a misfit in one least-squares problem, at most.
MAX_STEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class RateForms:
    """The forms of a system's equations."""

    terms: tuple[Expression, ...]  # of all equations, in a row
    owner: Indices  # shape (n_terms,): the equation of each term
    programs: kernels.Programs  # the terms, compiled
    free: Indices  # places of the constants that a fit may change
    free_owner: Indices  # the term of each free constant
    n_equations: int

    @classmethod
    def of(cls, expressions: Sequence[Expression], names: Sequence[str]) -> RateForms:
        """The forms of some equations in these inputs.

        >>> from sobolev_novelty.language.parsing import parse
        >>> forms = RateForms.of([parse("2*x0 - sin(3*x0)")], ["x0"])
        >>> [str(term) for term in forms.terms], forms.n_parameters
        (['x0', 'sin(3*x0)'], 3)
        """
        split = [split_form(expression) for expression in expressions]
        terms = tuple(term for form in split for term in form.terms)
        programs = kernels.compile_programs(terms, names)
        owner = np.repeat(np.arange(len(split)), [len(form.terms) for form in split])
        free = np.flatnonzero([flag for form in split for flag in form.free])
        of_term = np.repeat(np.arange(len(terms)), np.diff(programs.constant_offsets))
        return cls(terms, owner, programs, free, of_term[free], len(split))

    @property
    def n_parameters(self) -> int:
        """Coefficients and free constants."""
        return len(self.terms) + len(self.free)

    def _with(self, theta: FloatArray) -> tuple[FloatArray, kernels.Programs]:
        constants = self.programs.constants.copy()
        constants[self.free] = theta[len(self.terms) :]
        return theta[: len(self.terms)], kernels.with_constants(self.programs, constants)

    def constants(self) -> FloatArray:
        """The free constants as they were given."""
        return np.asarray(self.programs.constants[self.free])

    def parameters(self, expressions: Sequence[Expression], names: Sequence[str], x: FloatArray) -> FloatArray:
        """The θ that gives these expressions, which have the forms, found from their values at some inputs."""
        programs = kernels.compile_programs(expressions, names)
        with np.errstate(all="ignore"):
            f = kernels.derivatives(programs, x)[:, 0]
            phi = kernels.derivatives(self.programs, x)[:, 0]
        usable = np.isfinite(f).all(axis=0) & np.isfinite(phi).all(axis=0)
        b = np.zeros(len(self.terms))
        for k in range(self.n_equations):
            rows = np.flatnonzero(self.owner == k)
            b[rows] = np.linalg.lstsq(phi[rows][:, usable].T, f[k, usable], rcond=1e-12)[0]
        return np.concatenate([b, self.constants()])

    def along_parameters(self, theta: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rates and their derivatives along the parameters."""
        b, programs = self._with(theta)
        with np.errstate(all="ignore"):
            values, slopes = kernels.jacobians(programs, x)
            f = np.zeros((self.n_equations, x.shape[1]))
            np.add.at(f, self.owner, b[:, None] * values)
            f_theta = np.zeros((self.n_equations, self.n_parameters, x.shape[1]))
            m = len(self.terms)
            f_theta[self.owner, np.arange(m)] = values
            if len(self.free):
                inner = b[self.free_owner][:, None] * slopes[self.free]
                f_theta[self.owner[self.free_owner], m + np.arange(len(self.free))] = inner
        return f, f_theta

    def along_inputs(self, theta: FloatArray, x: FloatArray) -> FloatArray:
        """Derivatives of the rates along the inputs."""
        b, programs = self._with(theta)
        f_x = np.zeros((self.n_equations, x.shape[0], x.shape[1]))
        with np.errstate(all="ignore"):
            np.add.at(f_x, self.owner, b[:, None, None] * kernels.derivatives(programs, x, 1)[:, 1:])
        return f_x

    def expressions(self, theta: FloatArray) -> list[Expression]:
        """The equations with these parameters."""
        b, programs = self._with(theta)
        parts = np.split(programs.constants, programs.constant_offsets[1:-1])
        terms = [term.with_constants(own.tolist()) for term, own in zip(self.terms, parts, strict=True)]
        return [
            assemble([terms[i] for i in rows], b[rows].tolist())
            for rows in (np.flatnonzero(self.owner == k) for k in range(self.n_equations))
        ]


def minimised(misfit: Misfit, theta: FloatArray) -> FloatArray:
    """Where least squares leads from ``theta``; ``theta`` itself where it leads nowhere."""
    last: list[tuple[FloatArray, tuple[FloatArray, FloatArray]]] = []

    def both(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not last or not np.array_equal(last[0][0], at):
            last[:] = [(at.copy(), misfit(at))]
        return last[0][1]

    def residual(at: FloatArray) -> FloatArray:
        return both(at)[0]

    def jacobian(at: FloatArray) -> FloatArray:
        return both(at)[1]

    if not all(np.isfinite(part).all() for part in both(theta)):
        return theta
    try:
        with np.errstate(all="ignore"):  # a step too far is taken back
            found = least_squares(residual, theta, jacobian, x_scale="jac", max_nfev=MAX_STEPS, xtol=1e-9)
    except (ValueError, np.linalg.LinAlgError):  # a step left the domain of an equation
        return theta
    return np.asarray(found.x)
