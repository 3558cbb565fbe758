"""A user's script, read by mypy in `make check`: the public names have types."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import numpy.typing as npt

import sobolev_novelty as sn

X = np.random.default_rng(0).uniform(-1, 1, size=(100, 1))
assert_type(sn.novelty("x0 + sin(x0)", X), sn.NoveltyReport)
assert_type(sn.novelties(["x0 + sin(x0)"], X), list[sn.TermNovelties])
assert_type(sn.parse("x0"), sn.Expression)
assert_type(sn.evaluate("x0", X), npt.NDArray[np.float64])
assert_type(sn.accepts("x0", X).reason, str)
assert_type(sn.prune("x0", X, X[:, 0]).expression, sn.Expression)
assert_type(sn.rerank(["x0"], X, [1.0])[0].guided_score, float)
assert_type(sn.feedback("x0", X), str)
assert_type(sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=10)).fit(X, X[:, 0]), sn.SymbolicRegressor)
assert_type(sn.TAU_ID, float)
assert_type(sn.__version__, str)
