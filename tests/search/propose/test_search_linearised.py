"""Functions that are not bent on the data are written as lines and parabolas."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.propose.neighbours import linearised

SAMPLE = as_sample(np.column_stack([np.linspace(-1.0, 2.0, 60), np.linspace(0.5, 1.0, 60)]))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("285*sin(0.001*x0) + x1", ["285*(0.001*x0 + 1) + x1"]),
        ("x1*cos(0.001*x0)", ["x1*(square(0.001*x0) + 1)"]),
        ("x0*exp(0.0001*x1)", ["x0*(0.0001*x1 + 1)"]),
        ("sin(x0) + tanh(3*x0)", []),
        ("x0 + 2*x1", []),
        ("sin(2)*x0", []),
        ("log(x0)", []),  # not finite everywhere
        ("log(cos(0.01*x0))", ["cos(0.01*x0) + 1", "log(square(0.01*x0) + 1)"]),
    ],
)
def test_what_is_proposed(text: str, found: list[str]):
    assert [str(e) for e in linearised(parse(text), SAMPLE)] == [str(parse(e)) for e in found]


def test_an_argument_that_hardly_varies():
    assert linearised(parse("sin(0*x0 + 1)"), SAMPLE) == []
