"""Several searches at once: processes, Dask clusters, and engines that give first guesses."""

from sobolev_novelty.moved import forwarded

__getattr__ = forwarded(__name__)
