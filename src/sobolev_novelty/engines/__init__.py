"""Engines of search. They do not know each other; :mod:`sobolev_novelty.search` runs each."""
