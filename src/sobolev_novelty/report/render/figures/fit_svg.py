"""The page's drawings of a fit: parity, residuals, and how far each term moves the prediction. Colours: style sheet."""

from __future__ import annotations

import math
from html import escape

from sobolev_novelty.core.digits import number_text, typeset
from sobolev_novelty.report.render.sentences import Data, plain, r2_text, shorten

#: Size of a drawing of points, and of the room for its labels, in its own units.
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 300, 230, 56, 38, 10
#: Effects of at most so many terms are drawn, the largest first.
_MAX_EFFECTS = 15

_Pair = tuple[float, float]


def fit_drawings(data: Data) -> list[str]:
    """Parity, residuals and effects as SVG; those for which there are numbers."""
    pairs = [(y, p) for y, p in zip(*(data.get("points") or ([], [])), strict=True) if y is not None and p is not None]
    found = []
    if pairs:
        found.append(_parity(pairs, data["fit"]["r2"]))
        found.append(_residuals(pairs, data["fit"]["rmse"]))
    return [*found, *_effects(data)]


def ticks(low: float, high: float) -> list[float]:
    """Two to six round numbers within the range.

    >>> ticks(0.0, 1.0), ticks(3.0, 47.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [10.0, 20.0, 30.0, 40.0])
    """
    span = high - low
    if not (span > 0.0 and math.isfinite(span)):
        return [low]
    unit = 10.0 ** math.floor(math.log10(span))
    step = next(k * unit for k in (0.1, 0.2, 0.5, 1.0, 2.0) if span / (k * unit) <= 5.001)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _range(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or 0.5 * abs(low) or 1.0
    return low - margin, high + margin


def _parity(pairs: list[_Pair], r2: float | None) -> str:
    ends = _range([value for pair in pairs for value in pair])
    said = f"Predicted against given target at {len(pairs)} rows; R² {r2_text(r2)} over all rows."
    diagonal = ((ends[0], ends[0]), (ends[1], ends[1]))
    return _points(pairs, (ends, ends), diagonal, ("target", "prediction"), ("Parity", said))


def _residuals(pairs: list[_Pair], rmse: float | None) -> str:
    rest = [(p, y - p) for y, p in pairs]
    across, up = _range([p for p, _ in rest]), _range([0.0, *(r for _, r in rest)])
    said = f"Target less prediction at {len(pairs)} rows; root mean square {_number(rmse)} over all rows."
    zero = ((across[0], 0.0), (across[1], 0.0))
    return _points(rest, (across, up), zero, ("prediction", "residual"), ("Residuals", said))


def _points(
    pairs: list[_Pair],
    box: tuple[_Pair, _Pair],
    line: tuple[_Pair, _Pair],
    names: tuple[str, str],
    said: tuple[str, str],
) -> str:
    """Points between two axes with the ranges ``box``, with a line to compare them with."""
    across, up = box

    def x(value: float) -> str:
        return f"{_LEFT + (_WIDTH - _LEFT - 8) * (value - across[0]) / (across[1] - across[0]):.1f}"

    def y(value: float) -> str:
        return f"{_HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * (value - up[0]) / (up[1] - up[0]):.1f}"

    parts = [f'<path class="frame" d="M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - 8}"/>']
    for tick in ticks(*across):
        parts.append(f'<text x="{x(tick)}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{_number(tick)}</text>')
    for tick in ticks(*up):
        parts.append(f'<text x="{_LEFT - 6}" y="{float(y(tick)) + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
    (x0, y0), (x1, y1) = line
    parts.append(f'<path class="threshold" d="M{x(x0)} {y(y0)}L{x(x1)} {y(y1)}"/>')
    # One path of dots: a zero-length stroke with round ends is a dot.
    parts.append(f'<path class="dots" d="{"".join(f"M{x(a)} {y(b)}h0" for a, b in pairs)}"/>')
    middle = _LEFT + (_WIDTH - _LEFT) // 2
    parts.append(f'<text class="name" x="{middle}" y="{_HEIGHT - 5}" text-anchor="middle">{names[0]}</text>')
    height = (_HEIGHT - _BOTTOM + _TOP) // 2
    turned = f'transform="rotate(-90 11 {height})"'
    parts.append(f'<text class="name" x="11" y="{height}" text-anchor="middle" {turned}>{names[1]}</text>')
    return _drawing(said, parts, _WIDTH, _HEIGHT)


def _effects(data: Data) -> list[str]:
    """How far each term moves the prediction from its middle, beside how far the target itself varies."""
    fit = data["fit"]
    if not fit:
        return []
    rows = [(shorten(t["term"], 20), e) for t, e in zip(data["terms"], fit["effects"], strict=True) if _moves(e)]
    if not rows or not _moves(fit["spread"]):
        return []
    rows = sorted(rows, key=lambda row: row[1][0] - row[1][1])[:_MAX_EFFECTS]
    low = min(fit["spread"][0], *(effect[0] for _, effect in rows))
    high = max(fit["spread"][1], *(effect[1] for _, effect in rows))
    left = min(round(6.7 * max(6, *(len(label) for label, _ in rows))) + 10, 150)
    scale = (_WIDTH - left - 12) / (high - low)
    bottom = _TOP + 24 * (len(rows) + 1)
    parts = [f'<path class="frame" d="M{left - scale * low:.1f} {_TOP}V{bottom}"/>']
    for k, (label, effect) in enumerate([*rows, ("target", fit["spread"])]):
        y, kind = _TOP + 24 * k, "spread" if k == len(rows) else "high"
        begin, width = left + scale * (effect[0] - low), max(scale * (effect[1] - effect[0]), 1.5)
        parts.append(f'<text class="label" x="{left - 8}" y="{y + 16}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect class="{kind}" x="{begin:.1f}" y="{y + 6}" width="{width:.1f}" height="12" rx="3"/>')
    for tick in ticks(low, high):
        at = left + scale * (tick - low)
        parts.append(f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{_number(tick)}</text>')
    listed = "; ".join(f"{label} {_number(e[0])} to {_number(e[1])}" for label, e in rows)
    said = f"How far each term moves the prediction from its median, middle 90 % of the rows, in units of y: {listed}."
    return [_drawing(("Effect of each term", said), parts, _WIDTH, bottom + 20)]


def _moves(effect: list[float | None]) -> bool:
    return None not in effect and effect[1] != effect[0]


def _number(value: float | None) -> str:
    return typeset(number_text(value, digits=3))


def _drawing(said: tuple[str, str], parts: list[str], width: int, height: int) -> str:
    title, words = (escape(plain(text)) for text in said)
    caption = words.partition(":")[0].rstrip(".") + "."
    return (
        f'<figure><svg class="fit" viewBox="0 0 {width} {height}" role="img" aria-label="{title}. {words}">'
        f"{''.join(parts)}</svg><figcaption><strong>{title}</strong> {caption}</figcaption></figure>"
    )
