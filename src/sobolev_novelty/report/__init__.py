"""What rows say of an equation: a report, its words, intervals, pages."""

from sobolev_novelty.moved import forwarded

__getattr__ = forwarded(__name__)
