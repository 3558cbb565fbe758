"""The kind of noise that the leading equations of a search speak for."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sobolev_novelty.core.rows import Rows
from sobolev_novelty.price.description import describe
from sobolev_novelty.price.noise import POWERS, Noise, kinds_to_try
from sobolev_novelty.search.contract.engine import Candidate
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import split_form

#: Leading equations from whose residuals the kind of noise is judged.
N_LOOKED_AT = 20


def cheapest_kind(fitter: Fitter, rows: Rows, candidates: Iterable[Candidate]) -> Noise | None:
    """The kind under which one of the candidates costs least; None where there is nothing to choose from."""
    kinds = [Noise.of(POWERS[kind], rows.y) for kind in kinds_to_try("auto", rows.y)]
    if len(kinds) == 1:
        return None
    d, n = rows.sample.X.shape
    known = sorted(candidates, key=lambda c: c.nats(n, d))[:N_LOOKED_AT]
    forms = [split_form(c.expression) for c in known]
    least: tuple[float, Noise] | None = None
    for kind in kinds:
        fits = Fitter(rows.weighed(kind.weights(rows.y, rows.weights))).fit(forms)
        for c, fit in zip(known, fits, strict=True):
            if math.isfinite(fit.loss):
                values = fit.coefficients @ fitter.values(fit.terms)
                nats = describe(rows, c.expression, values, kind, complexity=c.complexity).total
                least = (nats, kind) if least is None or nats < least[0] else least
    return None if least is None else least[1]
