"""Structural proposals: forms read off the data by screening, for the loop to fit and judge.

``reductions`` finds variables that factor out or only occur together, ``dictionaries`` writes down bounded sets of
columns over what is left, ``exact_relations`` solves small families whole, and ``proposals`` puts the pieces together.
Nothing here uses the Sobolev signal, and nothing is scored: the loop decides.
"""
