"""The page's drawings: the bar of one novelty, the matrix of which terms rebuild which. Colours: style sheet."""

from __future__ import annotations

from html import escape

from sobolev_novelty.report.render.sentences import Data, novelty_text, rebuilt_shares, shorten, term_verdict

#: Side of a cell of the matrix, in pixels; smaller where there are many terms.
_CELL, _SMALL_CELL = 40, 22
_MAX_LARGE = 14


def novelty_bar(term: Data, tau: float, *, is_free: bool = False) -> str:
    """A bar from 0 to 1 filled up to ν with a free intercept, the number behind *distinct*, with the threshold.

    ``is_free``: whether the bootstrap interval is that of this ν, and not of ν with the constant as a term.
    """
    nu = term["verdict"]["novelty"]
    kind = "high" if term_verdict(term) == "distinct" else "low"
    said = f"novelty with a free intercept {novelty_text(nu)}, threshold {tau:.3f}: {term_verdict(term)}"
    parts = ['<rect class="track" x="0" y="5" width="200" height="10" rx="5"/>']
    if nu:
        # A sliver stays visible for tiny novelties.
        width, radius = max(200 * nu, 2), min(5.0, 100 * nu)
        parts.append(f'<rect class="{kind}" x="0" y="5" width="{width:.1f}" height="10" rx="{radius:.1f}"/>')
    if is_free and "interval" in term:
        low, high = (200 * (bound or 0.0) for bound in term["interval"])
        parts.append(f'<path class="whisker" d="M{low:.1f} 6v8M{low:.1f} 10H{high:.1f}M{high:.1f} 6v8"/>')
        said += f", 95 % interval {novelty_text(term['interval'][0])} to {novelty_text(term['interval'][1])}"
    x = 200 * tau
    parts.append(f'<path class="threshold" d="M{x:.1f} 0V20"/>')
    return (
        '<svg class="bar" viewBox="-2 0 204 20" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(said)}">{"".join(parts)}</svg>'
    )


def rebuild_matrix(data: Data) -> str:
    """Row: the term; column: the term that rebuilds a share of it. Empty where there is nothing to show."""
    shares = rebuilt_shares(data)
    m = len(data["terms"])
    if not shares or m < 2:
        return ""
    cell = _CELL if m <= _MAX_LARGE else _SMALL_CELL
    labels = [shorten(term["term"], 22) for term in data["terms"]]
    # 12-pixel monospace letters are at most 7.3 pixels wide.
    left = round(7.3 * max(len(label) for label in labels)) + 34
    top = 24
    parts = []
    for i, row in enumerate(shares):
        y = top + i * cell
        middle = y + cell / 2 + 4
        parts.append(
            f'<text class="label" x="{left - 30}" y="{middle:.0f}" text-anchor="end">{escape(labels[i])}</text>'
        )
        parts.append(f'<text class="index" x="{left - 8}" y="{middle:.0f}" text-anchor="end">{i}</text>')
        parts.append(
            f'<text class="index" x="{left + i * cell + cell / 2:.0f}" y="{top - 8}" text-anchor="middle">{i}</text>'
        )
        parts += [_cell(left + j * cell, y, cell, share, i == j) for j, share in enumerate(row)]
    width, height = left + m * cell + 2, top + m * cell + 2
    return (
        f'<svg class="matrix" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="Matrix of {m} by {m} terms: share of the row term that the column term rebuilds. '
        f'The list above gives the same in words.">{"".join(parts)}</svg>'
    )


def _cell(x: int, y: int, size: int, share: float, is_self: bool) -> str:
    if is_self:
        return f'<path class="self" d="M{x + 6} {y + size - 6}L{x + size - 6} {y + 6}"/>'
    rect = f'<rect class="track" x="{x + 1}" y="{y + 1}" width="{size - 2}" height="{size - 2}" rx="4"/>'
    if share < 0.005:
        return rect
    fill = rect.replace('"track"', f'"low" fill-opacity="{share:.3f}"')
    text = ""
    if size == _CELL:
        centre, base = x + size / 2, y + size / 2 + 4
        text = f'<text class="share" x="{centre:.0f}" y="{base:.0f}" text-anchor="middle">{share:.0%}</text>'
    return rect + fill + text
