"""What a report's numbers say, as sentences for a scientist; shared by the terminal, the page and the figure.

Notation
--------
``data``  the dict of ``NoveltyReport.to_dict()``;  ``nu`` a novelty;  ``tau`` the threshold of the verdict
"""

from __future__ import annotations

import unicodedata
from typing import Any

from sobolev_novelty.digits import DEFAULT_DIGITS, number_text
from sobolev_novelty.render.formulas import short_formula

Data = dict[str, Any]

#: How the paper is cited.
CITATION = (
    "B. Wang, K. Li, Y. Jing, T. Liu, C. Li, Y. Zhang, J. Cheng. "
    "Not Every Term Adds New Structure: Sobolev Novelty for Symbolic Regression."
)

#: What a reader may and may not conclude; the same words wherever a report is shown in full.
MEANING = (
    "Novelty ν is the share of a term's behaviour, its values and its slopes over your rows, that no combination of "
    "the other terms can imitate. 1 means nothing else in the equation does this; 0 means the others do all of it.",
    "At or below the threshold τ the data cannot tell how much of the effect belongs to this term: its coefficient "
    "can change a lot while the others make up for it (by a factor 1/ν more than for an independent term).",
    "A low novelty does not say that a term is wrong, and a high one does not say that it is right or that the "
    "equation fits. The verdict belongs to this equation on these rows; data that cover a wider range can change it.",
)


def plain(text: object) -> str:
    """Text without control and direction characters, which could break a terminal or disguise a label.

    Examples
    --------
    >>> plain("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return "".join(
        "\ufffd" if unicodedata.category(c) in {"Cc", "Cf", "Cs"} else c for c in str(text).replace("\n", " ")
    )


def shorten(text: object, width: int) -> str:
    """A label in at most ``width`` characters, numbers in four digits, cut in the middle: both ends tell terms apart.

    Examples
    --------
    >>> shorten("sin(x0)*exp(-x1**2)", 11)
    'sin(x…1**2)'
    """
    clean = plain(short_formula(text))
    if len(clean) <= width:
        return clean
    tail = (width - 1) // 2
    return f"{clean[: width - 1 - tail]}…{clean[len(clean) - tail :]}"


def number(value: float | None, digits: int = DEFAULT_DIGITS, half_width: float | None = None) -> str:
    """A number for a person (:func:`sobolev_novelty.digits.number_text`); what is not finite is a dash.

    Examples
    --------
    >>> number(0.123456), number(12345678.0), number(None)
    ('0.1235', '1.235e+07', '–')
    """
    return number_text(value, half_width, digits)


def novelty_text(value: float | None) -> str:
    """ν with three decimals; a value that is tiny but not zero is shown as such.

    Examples
    --------
    >>> novelty_text(0.5), novelty_text(0.0), novelty_text(1e-5), novelty_text(None)
    ('0.500', '0', '<0.001', '–')
    """
    if value is None:
        return "–"
    if value == 0.0:
        return "0"
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def threshold_text(data: Data) -> str:
    """τ, with its origin where it is the paper's."""
    tau = float(data["tau"])
    return f"τ = {tau:.3f}" + (" (1/√10)" if abs(tau - 10**-0.5) < 1e-12 else "")


def term_verdict(term: Data) -> str:
    """One or two words on a term: supported, not supported, null, no verdict."""
    if term["qualified"] is None:
        return "no verdict"
    if term["is_null"]:
        return "null"
    return "supported" if term["qualified"] else "not supported"


def headline(data: Data) -> str:
    """The verdict in a few words.

    Examples
    --------
    >>> headline({"status": "ok", "terms": [{}, {}, {}], "n_qualified": 2})
    '2 of 3 terms are supported by these data'
    """
    m, k = len(data["terms"]), int(data["n_qualified"])
    if data["status"] != "ok":
        return "No verdict: no novelty could be computed"
    if m == 1:
        return "The only term is supported by these data" if k else "The only term is not supported by these data"
    if k == m:
        return f"{'Both' if m == 2 else f'All {m}'} terms are supported by these data"
    if k == 0:
        return f"None of the {m} terms is supported by these data on its own"
    return f"{k} of {m} terms {'is' if k == 1 else 'are'} supported by these data"


def verdict(data: Data) -> str:
    """The verdict in words: how many terms are supported, and what is wrong with the others."""
    return f"{headline(data)}; {_rest(data)}" if data["status"] == "ok" else f"{headline(data)}. {data['sentence']}"


def _rest(data: Data) -> str:
    terms = data["terms"]
    low = [term for term in terms if not term["qualified"]]
    null = [term for term in low if term["is_null"]]
    if not low:
        return (
            "one term alone has nothing to be confused with (novelty 1)."
            if len(terms) == 1
            else "each does something that the others together cannot imitate well enough to replace it."
        )
    if len(null) == len(low):
        return f"{_listed(null)} {'is' if len(null) == 1 else 'are'} zero on every row used."
    rebuilt = [term for term in low if not term["is_null"]]
    if len(rebuilt) == len(terms):
        return "each can be imitated by the others, so the data do not say which of them carries the effect."
    return f"{_listed(rebuilt)} can be imitated by the other terms, so the data do not determine {_its(rebuilt)}."


def _its(terms: list[Data]) -> str:
    return "its coefficient" if len(terms) == 1 else "their coefficients"


def _listed(terms: list[Data], at_most: int = 3) -> str:
    names = [shorten(term["term"], 40) for term in terms[:at_most]]
    if len(terms) > at_most:
        names.append(f"{len(terms) - at_most} more")
    return f"the term {names[0]}" if len(names) == 1 else f"the terms {', '.join(names[:-1])} and {names[-1]}"


def rebuilt_from(data: Data, i: int, at_most: int = 4) -> list[tuple[int, float]]:
    """(number of the other term, weight), largest share first: term i ≈ Σ weight · other.

    ``reconstruction`` holds weights of signatures of length one; here they are those of the terms themselves. Shares
    below one per cent of the largest are left out.
    """
    if data["reconstruction"] is None:
        return []
    shares = data["reconstruction"][i]
    order = sorted((j for j, share in enumerate(shares) if share), key=lambda j: -abs(shares[j]))
    floor = 0.01 * abs(shares[order[0]]) if order else 0.0
    norms = [term["norm"] or 1.0 for term in data["terms"]]
    return [(j, shares[j] * norms[i] / norms[j]) for j in order[:at_most] if abs(shares[j]) > floor]


def rebuilt_shares(data: Data) -> list[list[float]] | None:
    """Row i: the share 1 − ν² of term i that the others rebuild, split among them in proportion to |weight|.

    Raw weights mislead: two nearly equal terms carry huge weights of opposite sign in every row, also where they
    rebuild nothing.

    Examples
    --------
    >>> terms = [{"novelty": 0.6}, {"novelty": 0.6}]
    >>> rebuilt_shares({"terms": terms, "reconstruction": [[0.0, 0.8], [0.8, 0.0]]})
    [[0.0, 0.64], [0.64, 0.0]]
    """
    if data["reconstruction"] is None:
        return None
    rows = []
    for term, row in zip(data["terms"], data["reconstruction"], strict=True):
        weights = [abs(weight or 0.0) for weight in row]
        total = sum(weights)
        rebuilt = 0.0 if term["novelty"] is None or not total else 1.0 - term["novelty"] ** 2
        rows.append([rebuilt * weight / total if total else 0.0 for weight in weights])
    return rows


def rebuilt_text(data: Data, i: int, width: int = 40) -> str:
    """What a term is rebuilt from, as a formula; empty where nothing rebuilds it."""
    parts = rebuilt_from(data, i)
    if not parts:
        return ""
    labels = [_factor(shorten(data["terms"][j]["term"], width)) for j, _ in parts]
    written = "".join(
        f"{' - ' if weight < 0 else ' + '}{number(abs(weight), 3)}{label}"
        for (_, weight), label in zip(parts, labels, strict=True)
    )
    shown = written[3:] if written.startswith(" + ") else f"-{written[3:]}"
    n_others = sum(1 for share in data["reconstruction"][i] if share)
    return shown + (" + …" if n_others > len(parts) else "")


def _factor(label: str) -> str:
    if label == "1":
        return ""
    return f"*({label})" if any(sign in label for sign in "+- ") else f"*{label}"


def rows_text(data: Data) -> str:
    """How many rows were used, and why others were not."""
    n, used = data["n_samples"], data["n_used"]
    if not data["dropped"]:
        return f"All {n:,} rows were used." if used == n else f"{used:,} of {n:,} rows were used."
    reasons = "; ".join(f"{count:,} because {plain(reason)}" for reason, count in data["dropped"].items())
    return f"{used:,} of {n:,} rows were used. Not used: {reasons}."


def geometry_text(data: Data) -> str:
    """Order and coordinates, in words."""
    measured = ("values", "values and slopes", "values, slopes and curvatures")[data["order"]]
    along = "standardized inputs" if data["coordinates"] == "standardized" else "raw inputs"
    where = f" along {along}" if data["order"] else ""
    weights = data["weights"]
    unequal = "" if all(w == 1.0 for w in weights) else f", weights {', '.join(number(w) for w in weights)}"
    return f"order {data['order']}: {measured}{where}{unequal}"
