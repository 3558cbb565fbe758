"""Turbulence closures for periodic-hill flow: selected with Sobolev Novelty, run in a flow solver, compared with DNS.

A study runs through ``data`` (what was measured), ``tensors`` (candidate terms), ``selection`` or ``tree_search``
(a closure), ``solvers`` (a velocity field) and ``measures`` (numbers to compare with DNS).
"""
