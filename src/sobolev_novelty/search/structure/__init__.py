"""Structural proposals: forms read off the data by screening, for the loop to fit and judge.

``reductions`` finds variables that factor out or only occur together, ``columns`` writes down bounded dictionaries
over what is left, ``pursuit``
picks sparse combinations from them, and ``proposals`` puts the pieces together. Nothing here uses the Sobolev signal,
and nothing is scored:
the loop decides.
"""
