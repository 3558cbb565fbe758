"""A report as one self-contained HTML page, and as the fragment that notebooks show.

No script, no font, no image is loaded: the page works from a file, offline, on a phone and in the dark. Every text that
comes from outside (labels, columns, notes) is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sobolev_novelty.render.formulas import short_formula
from sobolev_novelty.render.mathml import formula
from sobolev_novelty.render.sentences import (
    CITATION,
    MEANING,
    Data,
    geometry_text,
    headline,
    is_low,
    novelty_text,
    number,
    plain,
    rebuilt_from,
    rows_text,
    term_verdict,
    threshold_text,
    verdict,
)
from sobolev_novelty.render.style import STYLE
from sobolev_novelty.render.svg import novelty_bar, rebuild_matrix

_BADGE = {
    "distinct": ("high", "✓ distinct"),
    "partly distinct": ("low", "~ partly distinct"),
    "imitated": ("low", "✗ imitated"),
    "few rows": ("low", "! rests on few rows"),
    "unresolved": ("low", "! faster than the rows"),
    "intercept": ("none", "intercept"),
    "null": ("low", "∅ zero on all rows"),
    "no verdict": ("none", "no verdict"),
}


def report_page(data: Data) -> str:
    """The whole page.

    Parameters
    ----------
    data : dict
        ``NoveltyReport.to_dict()``.

    Examples
    --------
    >>> import sobolev_novelty as sn
    >>> report = sn.novelty("x0 + cos(3*x0)", [[i / 50] for i in range(-50, 50)])
    >>> report_page(report.to_dict())[:15]
    '<!doctype html>'
    """
    body = [
        '<header><p class="eyebrow">Sobolev Novelty report</p>',
        f"<h1>{_text(headline(data))}</h1>",
        f'<p class="lead">{_text(_rest_of_verdict(data))}</p></header>',
        _equation(data),
        _facts(data),
        _terms(data),
        _explanations(data),
        _matrix(data),
        _meaning(),
        _data_used(data),
        _citation(),
    ]
    return document(headline(data), "".join(body))


def report_fragment(data: Data) -> str:
    """The part that a notebook shows: verdict, terms, what rebuilds the low ones, notes.

    Examples
    --------
    >>> import sobolev_novelty as sn
    >>> report = sn.novelty("x0 + cos(3*x0)", [[i / 50] for i in range(-50, 50)])
    >>> report_fragment(report.to_dict())[:7]
    '<style>'
    """
    body = (
        f'<p class="lead"><strong>{_text(verdict(data))}</strong></p>{_equation(data)}{_terms(data, heading=False)}'
        f"{_explanations(data)}{_notes(data)}"
        f'<p class="small">{_text(rows_text(data))} Threshold {_text(threshold_text(data))}; '
        f"{_text(geometry_text(data))}.</p>"
    )
    return f'<style>{STYLE}</style><div class="sn"><div class="wrap">{body}</div></div>'


def cases_page(title: str, lead: str, cases: Sequence[tuple[str, str, Data | None, str]]) -> str:
    """Several reports on one page: (heading, words, report or None, text output) each."""
    parts = [
        f'<header><p class="eyebrow">Sobolev Novelty</p><h1>{_text(title)}</h1>'
        f'<p class="lead">{_text(lead)}</p></header>'
    ]
    for heading, words, data, output in cases:
        parts.append(f'<section class="case"><h2>{_text(heading)}</h2><p>{_text(words)}</p>')
        if data is not None:
            parts.append(
                f"{_equation(data)}<p><strong>{_text(verdict(data))}</strong></p>"
                f"{_terms(data, heading=False)}{_explanations(data)}"
            )
            parts.append(f'{_notes(data)}<p class="small">{_text(rows_text(data))}</p>')
        parts.append(f"<pre>{escape(output)}</pre></section>" if output else "</section>")
    return document(title, "".join([*parts, _meaning(), _citation()]))


def document(title: str, body: str) -> str:
    """``body``, already HTML, as a page with the style sheet."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)}</title><style>html,body{{margin:0}}{STYLE}</style></head>"
        f'<body class="sn"><main class="wrap">{body}</main></body></html>\n'
    )


def _text(text: object) -> str:
    return escape(plain(text))


def _rest_of_verdict(data: Data) -> str:
    rest = verdict(data).removeprefix(headline(data)).lstrip(";. ")
    return rest[:1].upper() + rest[1:]


def _equation(data: Data) -> str:
    if data["expression"] is None:
        return ""
    text = _text(short_formula(data["expression"]))
    return (
        '<div class="equation" tabindex="0" role="group" aria-label="Equation">'
        f'<div class="set">{formula(data["expression"])}</div><code>{text}</code></div>'
    )


def _facts(data: Data) -> str:
    facts = {
        "terms distinct": _distinct_count(data) if data["status"] == "ok" else "–",
        "rows used": f"{data['n_used']:,} of {data['n_samples']:,}",
        "inputs": str(len(data["features"])) if data["features"] else "–",
        "threshold τ": f"{data['tau']:.3f}",
    }
    if data["complexity"] is not None:
        facts["nodes"] = str(data["complexity"])
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in facts.items())
        + "</dl>"
    )


def _distinct_count(data: Data) -> str:
    words = [term_verdict(term) for term in data["terms"]]
    return f"{words.count('distinct')} of {len(words) - words.count('intercept')}"


def _terms(data: Data, *, heading: bool = True) -> str:
    if not data["terms"]:
        return ""
    head = (
        '<table class="terms"><thead><tr><th scope="col" class="term">Term</th>'
        f'<th scope="col">Novelty, with the threshold {data["tau"]:.3f}</th>'
        '<th scope="col">ν</th><th scope="col">Coefficient</th>'
        '<th scope="col">Contribution</th><th scope="col" class="verdict">Verdict</th></tr></thead><tbody>'
    )
    rows = "".join(_row(i, term, data["tau"]) for i, term in enumerate(data["terms"]))
    return f"{'<h2>The terms</h2>' if heading else ''}{head}{rows}</tbody></table>"


def _row(i: int, term: Data, tau: float) -> str:
    kind, words = _BADGE[term_verdict(term)]
    interval = ""
    if "interval" in term:
        low, high = (novelty_text(bound) for bound in term["interval"])
        interval = f'<span class="interval">{_text(low)} – {_text(high)}, holds in {term["stability"]:.0%}</span>'
    return (
        f'<tr><th scope="row" class="term"><span class="name"><span class="place">{i}</span>'
        f"<span>{formula(term['term'])}</span></span></th>"
        f'<td class="bars">{novelty_bar(term, tau)}</td>'
        f'<td data-name="novelty ν"><span><span class="nu">{_text(novelty_text(term["novelty"]))}</span>'
        f"{interval}</span></td>"
        f'<td data-name="coefficient">{_text(number(term["coefficient"]))}</td>'
        f'<td data-name="contribution">{_text(number(term["contribution"], 3))}</td>'
        f'<td class="verdict"><span class="badge {kind}">{_text(words)}</span>{_free(term)}</td></tr>'
    )


def _free(term: Data) -> str:
    nu = term["verdict"]["novelty"]
    return "" if nu is None else f'<span class="interval">ν {_text(novelty_text(nu))} with a free intercept</span>'


def _explanations(data: Data) -> str:
    low = [i for i, term in enumerate(data["terms"]) if is_low(term)]
    items = "".join(_explanation(data, i) for i in low)
    return f'<h2>How the other terms imitate these</h2><ul class="plain">{items}</ul>' if items else ""


def _explanation(data: Data, i: int) -> str:
    parts = rebuilt_from(data, i)
    if not parts:
        return ""
    term = data["terms"][i]
    pieces = []
    for k, (j, weight) in enumerate(parts):
        sign = "−" if weight < 0 else "+" if k else ""
        label = data["terms"][j]["term"]
        factor = "" if label == "1" else f" · {formula(label)}"
        pieces.append(f"{sign} {_text(number(abs(weight), 3))}{factor}".strip())
    more = " + …" if sum(1 for share in data["reconstruction"][i] if share) > len(parts) else ""
    left = (
        f"leaving {term['novelty']:.1%} unexplained"
        if term["novelty"]
        else "leaving nothing unexplained: the term is an exact combination of the others"
    )
    return f'<li>{formula(term["term"])} ≈ {" ".join(pieces)}{more} <span class="left">{_text(left)}</span></li>'


def _matrix(data: Data) -> str:
    drawing = rebuild_matrix(data)
    if drawing:
        return (
            '<h2>Which terms rebuild which</h2><p class="small">Each row is a term; a strong colour marks a term that '
            "rebuilds much of it. A row adds up to the share 1&nbsp;−&nbsp;ν² that the others rebuild together, split "
            "in proportion to their weights.</p>"
            f'<div class="scroll" tabindex="0" role="group" aria-label="Matrix, scrollable">{drawing}</div>'
        )
    if data["reconstruction"] is None and len(data["terms"]) > 1 and data["status"] == "ok":
        return '<h2>Which terms rebuild which</h2><p class="small">There are too many terms to draw the matrix.</p>'
    return ""


def _meaning() -> str:
    return "<h2>What the numbers mean</h2>" + "".join(f"<p>{_text(sentence)}</p>" for sentence in MEANING)


def _data_used(data: Data) -> str:
    inputs = (
        f"<p>Inputs: {', '.join(f'<code>{_text(name)}</code>' for name in data['features'])}.</p>"
        if data["features"]
        else ""
    )
    measured = geometry_text(data)
    return (
        f"<h2>Data and settings</h2><p>{_text(rows_text(data))}</p>{inputs}"
        f"<p>Measured with {_text(measured)}. Distinct means ν above {_text(threshold_text(data))} with a free "
        f"intercept.</p>{_notes(data)}"
    )


def _notes(data: Data) -> str:
    if not data["notes"]:
        return ""
    return '<ul class="plain notes">' + "".join(f"<li>{_text(note)}</li>" for note in data["notes"]) + "</ul>"


def _citation() -> str:
    words = f"Made with sobolev-novelty. If you use this, please cite: {_text(CITATION)}"
    return f'<footer><p class="small">{words}</p></footer>'
