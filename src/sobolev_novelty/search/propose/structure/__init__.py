"""Structural forms: read off the data by screening, for the loop to fit and judge.

``families`` is the table of all of them, ``proposals`` tries its rows in turn, ``reductions`` finds variables that
factor out or only occur together, and ``dictionaries`` writes down bounded sets of columns over what is left. Nothing
here uses the Sobolev signal, and nothing is scored.
"""
