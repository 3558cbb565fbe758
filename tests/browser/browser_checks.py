"""What a machine can see of a page that is hard to use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

#: Faults of a page as sentences.
CHECKS = Path(__file__).with_name("checks.js").read_text(encoding="utf-8")


def faults_of(page: Any, *, widths: tuple[int, ...] = (400, 800, 1400)) -> list[str]:
    """Contrast, labels and width of a page and its frames, at several widths and in both colour schemes."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(60)  # the frame of a report takes its new height
            for frame in (frame for frame in page.frames if frame.url != "about:blank"):
                found += [f"{scheme}, {width} px: {fault}" for fault in frame.evaluate(CHECKS)]
    return found
