"""Made-up flow states for the turbulence tests."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.data import RegressionData

needs_dns = pytest.mark.skipif(not hill.has_dns(), reason="the DNS fields are not available: set SOBOLEV_DATA")


def synthetic(n_columns: int = 20, n_rows: int = 15, seed: int = 0) -> RegressionData:
    """Random flow states and a target of three known terms plus a little noise."""
    rng = np.random.default_rng(seed)
    n = n_columns * n_rows
    S = rng.normal(size=(n, 3, 3))
    S = S + S.transpose(0, 2, 1)
    S -= np.eye(3) * np.trace(S, axis1=1, axis2=2)[:, None, None] / 3
    R = rng.normal(size=(n, 3, 3))
    R = R - R.transpose(0, 2, 1)
    invariants = np.column_stack([rng.uniform(0.1, 4, n), -rng.uniform(0.1, 4, n)])
    S2 = S @ S
    T = np.stack([S, S @ R - R @ S, S2 - np.eye(3) * np.trace(S2, axis1=1, axis2=2)[:, None, None] / 3], axis=1)
    x1, x2 = np.tanh(invariants / 2).T
    target = np.einsum("nk,nkij->nij", np.column_stack([0.3 + 0 * x1, 0.5 * x1 * x2, -0.2 * x2**2]), T)
    target = target + 1e-6 * rng.normal(size=target.shape)
    return RegressionData(invariants, T, target, np.arange(n, dtype=np.int32).reshape(n_columns, n_rows).T)
