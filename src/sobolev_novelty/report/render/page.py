"""A report as one self-contained HTML page, and as the fragment that notebooks show.

No script, no font, no image is loaded: the page works from a file, offline, on a phone and in the dark. Every text that
comes from outside (labels, columns, notes) is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sobolev_novelty.core.digits import percent_text, typeset
from sobolev_novelty.report.render.figures.fit_svg import fit_drawings
from sobolev_novelty.report.render.figures.style import STYLE
from sobolev_novelty.report.render.figures.svg import novelty_bar, rebuild_matrix
from sobolev_novelty.report.render.formulas import short_formula
from sobolev_novelty.report.render.mathml import formula
from sobolev_novelty.report.render.sentences import (
    CITATION,
    MEANING,
    Data,
    fit_text,
    geometry_text,
    has_words,
    headline,
    is_low,
    listed,
    n_good,
    novelty_text,
    number,
    plain,
    r2_text,
    rebuilt_from,
    rest_of_verdict,
    rows_text,
    term_verdict,
    threshold_text,
)
from sobolev_novelty.report.render.words import (
    Word,
    coefficient_text,
    determined_word,
    digits_of_equation,
    distinct_word,
    is_within_interval,
    needed_word,
)


def report_page(data: Data) -> str:
    """The whole page."""
    body = [
        '<header><p class="eyebrow">Sobolev Novelty report</p>',
        f"<h1>{_text(headline(data))}</h1>",
        f'<p class="lead">{_rest_of_verdict(data)}</p></header>',
        _equation(data),
        _facts(data),
        _terms(data),
        _fit(data),
        _explanations(data),
        _matrix(data),
        _statistics(data),
        _meaning(),
        _data_used(data),
        _citation(),
    ]
    return document(headline(data), "".join(body))


def report_fragment(data: Data) -> str:
    """The part that a notebook shows: verdict, terms, what rebuilds the low ones, notes."""
    body = (
        f'<p class="lead"><strong>{_text(headline(data))}.</strong> {_rest_of_verdict(data)}</p>{_equation(data)}'
        f"{_terms(data, heading=False)}{_fit(data, is_short=True)}{_explanations(data)}"
        f"{_statistics(data)}{_notes(data)}"
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
                f"{_equation(data)}<p><strong>{_text(headline(data))}.</strong> {_rest_of_verdict(data)}</p>"
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
    """The sentences after the headline, terms set as formulas: the words between them are our own."""
    if not has_words(data):
        return _text(data["sentence"])
    said = " ".join(rest_of_verdict(data, formula))
    return said[:1].upper() + said[1:]


def _equation(data: Data) -> str:
    if data["expression"] is None:
        return ""
    widths = digits_of_equation(data)
    text = _text(short_formula(data["expression"], widths))
    return (
        '<div class="equation" tabindex="0" role="group" aria-label="Equation">'
        f'<div class="set">{formula(data["expression"], widths)}</div><code>{text}</code></div>'
    )


def _facts(data: Data) -> str:
    n_judged = sum(term_verdict(term) != "intercept" for term in data["terms"])
    n_rows = max(data["n_samples"], data["n_known"] or 0)
    facts = {
        "terms that pass": f"{n_good(data)} of {n_judged}" if has_words(data) else "–",
        "rows used": f"{data['n_used']:,}" if data["n_used"] == n_rows else f"{data['n_used']:,} of {n_rows:,}",
    }
    if data["fit"]:
        facts["R², as given"] = r2_text(data["fit"]["r2"])
        facts["R², refitted"] = r2_text(data["fit"]["refitted_r2"])
        facts["R², cross-validated"] = r2_text(data["fit"]["cv_r2"])
    else:
        facts["inputs"] = str(len(data["features"])) if data["features"] else "–"
    if data["complexity"] is not None:
        facts["nodes"] = str(data["complexity"])
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in facts.items())
        + "</dl>"
    )


def _terms(data: Data, *, heading: bool = True) -> str:
    if not data["terms"]:
        return ""
    how = "intercept free" if data["intercept"] == "free" else "intercept a term"
    heads = [
        ("term", "Term", ""),
        ("", "Coefficient", ""),
        ("word", "Distinct", f"ν, intercept free; τ {data['tau']:.3f}"),
        ("word", "Needed", "lost without it"),
        *([("word", "Determined", "95 % interval, refitted")] if data["has_target"] else []),
        ("", _paper_name(data), f"{how}; contribution"),
    ]
    head = "".join(
        f'<th scope="col" class="{kind}">{_text(name)}{f"<small>{_text(more)}</small>" if more else ""}</th>'
        for kind, name, more in heads
    )
    rows = "".join(_row(i, term, data) for i, term in enumerate(data["terms"]))
    return (
        f'{"<h2>The terms</h2>" if heading else ""}<table class="terms"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>{_outside(data)}"
    )


def _outside(data: Data) -> str:
    """Coefficients that a refit would change clearly: a reader must not take them for determined as they stand."""
    outside = [str(i) for i, term in enumerate(data["terms"]) if not is_within_interval(term)]
    if not outside:
        return ""
    which = (
        f"coefficient of term {outside[0]} is" if len(outside) == 1 else f"coefficients of terms {listed(outside)} are"
    )
    return f'<p class="small">As given, the {which} outside the interval that the data allow after refitting.</p>'


def _row(i: int, term: Data, data: Data) -> str:
    is_free = data["intercept"] == "free"
    interval = ""
    if "interval" in term:
        low, high = (novelty_text(bound) for bound in term["interval"])
        interval = f'<span class="beneath">{_text(low)} – {_text(high)}, holds in {term["stability"]:.0%}</span>'
    contribution = _text(typeset(number(term["contribution"], 3)))
    determined = _word_cell("determined", determined_word(term)) if data["has_target"] else ""
    return (
        f'<tr><th scope="row" class="term"><span class="name"><span class="place">{i}</span>'
        f"<span>{formula(term['term'])}</span></span></th>"
        f'<td data-name="coefficient">{_text(typeset(coefficient_text(term)))}</td>'
        f"{_word_cell('distinct', distinct_word(term), novelty_bar(term, data['tau'], is_free=is_free))}"
        f"{_word_cell('needed', needed_word(term))}{determined}"
        f'<td data-name="{_paper_name(data)}"><span><span class="nu">{_text(novelty_text(term["novelty"]))}</span>'
        f'{interval}<span class="beneath">contributes {contribution}</span></span></td></tr>'
    )


def _paper_name(data: Data) -> str:
    return "ν of the whole report" if data["intercept"] == "free" else "ν of the paper"


def _word_cell(question: str, word: Word, bar: str = "") -> str:
    """A badge, its number beneath and, where there is one, the bar of it."""
    if word.text == word.mark:
        return f'<td class="word" data-name="{question}"><span class="beneath">{_text(word.number or "–")}</span></td>'
    drawn = bar if word.is_good is not None else ""
    return (
        f'<td class="word" data-name="{question}"><span class="badge {word.kind}">{_text(f"{word.mark} {word.text}")}'
        f'</span>{drawn}<span class="beneath">{_text(word.number)}</span></td>'
    )


def _fit(data: Data, *, is_short: bool = False) -> str:
    """How well the equation gives the target: in a sentence and, on a page, drawn."""
    if not data["fit"]:
        return ""
    if is_short:
        return f'<p class="small">{_text(fit_text(data))}</p>'
    low, _, middle, _, high = (typeset(number(value, 3)) for value in data["fit"]["residual_quantiles"])
    rows = data["fit"]["n_rows"]
    words = f"Residuals: median {middle}, 90 % between {low} and {high}; {rows:,} rows, 5 folds."
    drawings = "".join(fit_drawings(data))
    return f'<h2>The fit</h2><p>{_text(fit_text(data))} {_text(words)}</p><div class="fits">{drawings}</div>'


def _statistics(data: Data) -> str:
    """What statisticians look for, folded away."""
    found = data.get("statistics")
    if not found:
        return ""
    columns = {"VIF": found["VIF"], "condition index": found["condition_index"], "proportion": found["proportion"]}
    if data["has_target"]:
        verdicts = [term["verdict"] for term in data["terms"]]
        columns["standard error"] = [1.0 / v["t"] if v["t"] else None for v in verdicts]
        columns["bits saved"] = [v["bits"] for v in verdicts]
        columns["error without it"] = [v["error_increase"] for v in verdicts]
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    rows = "".join(
        f'<tr><th scope="row" class="term">{formula(term["term"])}</th>'
        + "".join(f'<td data-name="{name}">{_statistic(name, values[i])}</td>' for name, values in columns.items())
        + "</tr>"
        for i, term in enumerate(data["terms"])
    )
    return (
        "<details><summary>Statistics: VIF, condition indices, bits</summary>"
        f'<table class="terms"><thead><tr><th scope="col" class="term">Term</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></details>"
    )


def _statistic(name: str, value: float | None) -> str:
    if name == "error without it" and value is not None:
        return _text(f"{'−' if value < 0.0 else '+'}{percent_text(abs(value))}")
    is_share = name in ("proportion", "standard error", "error without it")
    return _text(percent_text(value) if is_share else typeset(number(value, 3)))


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
        pieces.append(f"{sign} {_text(typeset(number(abs(weight), 3)))}{factor}".strip())
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
            f"in proportion to their weights. {_text(_rival(data))}</p>"
            f'<div class="scroll" tabindex="0" role="group" aria-label="Matrix, scrollable">{drawing}</div>'
        )
    if data["reconstruction"] is None and len(data["terms"]) > 1 and data["status"] == "ok":
        return '<h2>Which terms rebuild which</h2><p class="small">There are too many terms to draw the matrix.</p>'
    return ""


def _rival(data: Data) -> str:
    is_term = data["intercept"] != "free" and any(term_verdict(term) == "intercept" for term in data["terms"])
    return "As in the paper, the intercept is a term among the others here." if is_term else ""


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
