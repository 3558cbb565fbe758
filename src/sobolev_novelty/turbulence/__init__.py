"""Turbulence closures for periodic-hill flow: found by Sobolev-guided selection, run in a flow solver, compared with DNS.

The chain of one study is :mod:`~sobolev_novelty.turbulence.data` (what was measured) → :mod:`~sobolev_novelty.turbulence.tensors`
(candidate terms) → :mod:`~sobolev_novelty.turbulence.selection` or :mod:`~sobolev_novelty.turbulence.tree_search` (a closure) →
:mod:`~sobolev_novelty.turbulence.solvers` (a velocity field) → :mod:`~sobolev_novelty.turbulence.measures` (numbers beside DNS).
"""
