"""The style sheet of the page and of the notebook fragment; every rule begins with ``.sn`` and touches nothing else.

Blue and orange keep a contrast of at least 4.5 with the background in both schemes, also for the colour-blind; so do
the numbers of the matrix with the strongest orange (``--strong``) beneath them.
"""

from __future__ import annotations

from importlib import resources

STYLE = "\n" + resources.files("sobolev_novelty.report.render.figures").joinpath("style.css").read_text(
    encoding="utf-8"
)
