"""The loop of a search, its front, and its memory of what was met."""

from sobolev_novelty.moved import forwarded

__getattr__ = forwarded(__name__)
