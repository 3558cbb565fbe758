"""What a report's numbers say, as sentences for a scientist; shared by the terminal, the page and the figure.

Notation
--------
``data``  the dict of ``NoveltyReport.to_dict()``;  ``nu`` a novelty;  ``tau`` the threshold of the verdict
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

from sobolev_novelty.core.digits import DEFAULT_DIGITS, number_text, typeset
from sobolev_novelty.report.render.formulas import short_formula

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
    "A term is distinct where its novelty is above the threshold τ once the constant is taken out of every term, so "
    "that the verdict does not depend on units or origins. Below it the coefficient can change a lot while the others "
    "make up for it (by a factor 1/ν more than for an independent term).",
    "Needed says what is lost without the term when the others are refitted; determined, where a target is given, "
    "whether its coefficient stands out of its error. Distinct alone does not say that a term is right or that the "
    "equation fits. The verdict belongs to this equation on these rows; data that cover a wider range can change it.",
)


def plain(text: object) -> str:
    """Text without control and direction characters, which could break a terminal or disguise a label.

    >>> plain("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return "".join(
        "\ufffd" if unicodedata.category(c) in {"Cc", "Cf", "Cs"} else c for c in str(text).replace("\n", " ")
    )


def shorten(text: object, width: int) -> str:
    """A label in at most ``width`` characters, numbers in four digits, cut in the middle: both ends tell terms apart.

    >>> shorten("sin(x0)*exp(-x1**2)", 11)
    'sin(x…1**2)'
    """
    clean = plain(short_formula(text))
    if len(clean) <= width:
        return clean
    tail = (width - 1) // 2
    return f"{clean[: width - 1 - tail]}…{clean[len(clean) - tail :]}"


def number(value: float | None, digits: int = DEFAULT_DIGITS, half_width: float | None = None) -> str:
    """A number for a person (:func:`sobolev_novelty.core.digits.number_text`); what is not finite is a dash.

    >>> number(0.123456), number(12345678.0), number(None)
    ('0.1235', '1.235e+07', '–')
    """
    return number_text(value, half_width, digits)


def novelty_text(value: float | None) -> str:
    """ν with three decimals; a value that is tiny but not zero is shown as such.

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


#: The word on a term's badge, by what its verdict says of *distinct*.
BADGES = {
    "yes": "distinct",
    "partly": "partly distinct",
    "no": "imitated",
    "few rows": "few rows",
    "unresolved": "unresolved",
    "constant": "intercept",
    "unknown": "no verdict",
}


def term_verdict(term: Data) -> str:
    """One or two words on a term: distinct, partly distinct, imitated, few rows, unresolved, intercept, null."""
    return "null" if term["is_null"] else BADGES[term["verdict"]["distinct"]]


def is_low(term: Data) -> bool:
    """Whether others imitate the term, so that a reader wants to know which."""
    return not term["is_null"] and term["verdict"]["distinct"] in ("partly", "no")


#: The questions, and the word of each that speaks for a term.
_QUESTIONS = {"distinct": "yes", "needed": "yes", "determined": "yes"}

#: Writes the name of a term: as text, or as a page sets it.
Write = Callable[[object], str]


def headline(data: Data) -> str:
    """The verdict in a few words: how many terms pass every question that was asked; the intercept is not counted.

    >>> words = [("yes", "yes"), ("no", "yes"), ("yes", "yes"), ("constant", "constant")]
    >>> terms = [{"is_null": False, "verdict": {"distinct": d, "needed": n}} for d, n in words]
    >>> headline({"status": "ok", "has_target": False, "terms": terms})
    '2 of 3 terms are distinct and needed'
    """
    if not has_words(data):
        return "No verdict: no novelty could be computed"
    judged = _judged(data)
    m, k = len(judged), n_good(data)
    if m == 0:
        return "The equation is constant on these rows"
    if m == 1:
        besides = "besides the intercept " if len(data["terms"]) > 1 else ""
        return f"The only term {besides}is {_passes_and_fails(data, judged[0])}"
    words = listed(_asked(data))
    if k == m:
        return f"{'Both' if m == 2 else f'All {m}'} terms are {words}"
    if k:
        return f"{k} of {m} terms {'is' if k == 1 else 'are'} {words}"
    missed = [question for question in _asked(data) if not any(_passes(term, question) for term in judged)]
    return f"None of the {m} terms is {missed[0] if missed else f'{words} at once'}"


def has_words(data: Data) -> bool:
    """Whether anything is said of the terms: on few rows they have no novelty, but may be needed and determined."""
    is_said = [term["verdict"]["needed"] not in ("unknown", "constant") for term in data["terms"]]
    return data["status"] == "ok" or any(is_said)


def n_good(data: Data) -> int:
    """Terms that pass every question that was asked."""
    return sum(all(_passes(term, question) for question in _asked(data)) for term in _judged(data))


def _asked(data: Data) -> list[str]:
    asked = list(_QUESTIONS) if data["has_target"] else ["distinct", "needed"]
    return asked if data["status"] == "ok" else asked[1:]


def _judged(data: Data) -> list[Data]:
    return [term for term in data["terms"] if term_verdict(term) != "intercept"]


def _passes(term: Data, question: str) -> bool:
    return not term["is_null"] and term["verdict"][question] == _QUESTIONS[question]


def _passes_and_fails(data: Data, term: Data) -> str:
    good = [question for question in _asked(data) if _passes(term, question)]
    bad = [question for question in _asked(data) if question not in good]
    if not good:
        return f"neither {' nor '.join(bad)}"
    return listed(good) + (f", but not {listed(bad, 'or')}" if bad else "")


def listed(words: list[str], last: str = "and") -> str:
    """Words as a sentence lists them.

    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or"), listed(["a"])
    ('a, b and c', 'a or b', 'a')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def verdict(data: Data, write: Write | None = None) -> str:
    """What the verdicts say, in a few sentences: distinct, then needed, then determined.

    ``write``: writes the name of a term; by default as text of at most 40 characters.
    """
    if not has_words(data):
        return f"{headline(data)}. {data['sentence']}"
    parts = rest_of_verdict(data, write)
    return f"{headline(data)}{'; ' if parts else '.'}{' '.join(parts)}"


def rest_of_verdict(data: Data, write: Write | None = None) -> list[str]:
    """The sentences after the headline; the first begins with a small letter."""
    write = write or (lambda label: shorten(label, 40))
    idle, loose = _with_word(data, "needed", "no"), _with_word(data, "determined", "no", "flat", "one-sided")
    if data["has_target"] and idle and idle == loose:
        whose = "its coefficient is" if len(idle) == 1 else "their coefficients are"
        last = [
            *_needed_sentences(data, write, idle=[]),
            f"{_capital(_listed(idle, write))} {_is(idle)} not needed, the fit is as good without, and {whose} not "
            "determined by the data.",
        ]
    else:
        last = [*_needed_sentences(data, write, idle), *_determined_sentences(data, write, loose)]
    return [*_distinct_sentences(data, write), *last]


def _with_word(data: Data, question: str, *words: str) -> list[Data]:
    return [t for t in _judged(data) if not t["is_null"] and t["verdict"].get(question) in words]


def _distinct_sentences(data: Data, write: Write) -> list[str]:
    null = [term for term in data["terms"] if term["is_null"]]
    is_known = data["status"] == "ok"
    low = _with_word(data, "distinct", "partly", "no")
    judged = [term for term in _judged(data) if not term["is_null"]]
    few, fast = _with_word(data, "distinct", "few rows"), _with_word(data, "distinct", "unresolved")
    said = [] if is_known else [str(data["sentence"])]
    if low:
        whom = "each" if len(low) == len(judged) else _listed(low, write)
        partly = " in part" if all(term["verdict"]["distinct"] == "partly" for term in low) else ""
        said.append(f"{whom} can be imitated{partly} by the other terms.")
    elif is_known and len(judged) > 1 and not (few or fast or null):
        said.append("none can be imitated by the others.")
    elif is_known and len(judged) == 1 and not (few or fast or null):
        said.append("there is no other that could imitate it.")
    if null:
        said.append(f"{_listed(null, write)} {_is(null)} zero on every row used.")
    for term in few:
        rows = max(1, round(term["verdict"]["rows"] or 1.0))
        said.append(f"{_listed([term], write)} rests on {rows} of {data['n_used']:,} rows.")
    if fast:
        said.append(
            f"{_listed(fast, write)} {'changes' if len(fast) == 1 else 'change'} faster than the rows can show."
        )
    return [said[0], *(_capital(part) for part in said[1:])] if said else []


def _needed_sentences(data: Data, write: Write, idle: list[Data]) -> list[str]:
    said = []
    little, shared = _with_word(data, "needed", "little"), _with_word(data, "needed", "shared")
    if idle and data["has_target"]:
        said.append(f"{_capital(_listed(idle, write))} {_is(idle)} not needed: the fit is as good without.")
    elif idle:
        said.append(f"Without {_listed(idle, write)} the prediction changes by less than 1 % of its spread.")
    if little:
        said.append(
            f"{_capital(_listed(little, write))} {_is(little)} real but small: below 1 % of the prediction's spread."
        )
    if shared:
        said.append(f"Of {_listed(shared, write)} one can be spared, but not all.")
    needed, judged = _with_word(data, "needed", "yes"), _judged(data)
    if 1 < len(needed) == len(judged) > n_good(data):
        said.append("Each is needed.")
    return said


def _determined_sentences(data: Data, write: Write, loose: list[Data]) -> list[str]:
    if not data["has_target"]:
        return []
    known = [1.0 / t["verdict"]["t"] for t in _with_word(data, "determined", "yes") if t["verdict"]["t"]]
    if loose:
        which = "The coefficient of" if len(loose) == 1 else "The coefficients of"
        return [f"{which} {_listed(loose, write)} {_is(loose)} not determined by the data."]
    if not known:
        return []
    how_well = _errors(min(known), max(known))
    if len(known) == 1:
        return [f"Its coefficient is determined (standard error {how_well})."]
    return [f"All coefficients are determined (standard errors {how_well})."]


def _errors(low: float, high: float) -> str:
    """Standard errors as shares, to one digit and never better than one in a thousand.

    >>> _errors(0.0234, 0.31), _errors(1e-7, 1e-5)
    ('of 2 to 30 %', 'below 0.1 %')
    """
    if high < 0.001:
        return "below 0.1 %"
    first, last = (float(f"{100 * max(share, 0.001):.1g}") for share in (low, high))
    return f"of {last:g} %" if first == last else f"of {first:g} to {last:g} %"


def _is(terms: list[Data]) -> str:
    return "is" if len(terms) == 1 else "are"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _listed(terms: list[Data], write: Write, at_most: int = 3) -> str:
    names = [write(term["term"]) for term in terms[:at_most]]
    if len(terms) > at_most:
        names.append(f"{len(terms) - at_most} more")
    return f"the term {names[0]}" if len(names) == 1 else f"the terms {listed(names)}"


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
    n, used, known = data["n_samples"], data["n_used"], data["n_known"]
    if known is not None and known > n:
        said = f"{used:,} of {known:,} rows were used: those of the search"
    else:
        said = f"All {n:,} rows were used" if used == n and not data["dropped"] else f"{used:,} of {n:,} rows were used"
    said += f"; the words come from {data['n_judged']:,} of them, evenly spaced." if data["n_judged"] else "."
    if not data["dropped"]:
        return said
    reasons = "; ".join(f"{count:,} because {plain(reason)}" for reason, count in data["dropped"].items())
    return f"{said} Not used: {reasons}."


def fit_text(data: Data) -> str:
    """How well the equation gives the target, in a sentence; empty without one.

    >>> fit_text({"fit": {"r2": 0.97123, "refitted_r2": 0.9714, "cv_r2": 0.9688, "rmse": 1.2345, "n_rows": 100}})
    'R² 0.9712 as given, 0.9714 with refitted coefficients, 0.9688 cross-validated; rms residual 1.23.'
    """
    fit = data["fit"]
    if not fit:
        return ""
    checked = "" if fit["cv_r2"] is None else f", {r2_text(fit['cv_r2'])} cross-validated"
    return (
        f"R² {r2_text(fit['r2'])} as given, {r2_text(fit['refitted_r2'])} with refitted coefficients{checked}; "
        f"rms residual {number(fit['rmse'], 3)}."
    )


def r2_text(value: float | None) -> str:
    """R² with four decimals, so that values near 1 can be told apart; far below 0 to two digits.

    >>> r2_text(0.98765), r2_text(1.0), r2_text(0.99999), r2_text(-123.4), r2_text(None)
    ('0.9877', '1', '>0.9999', '−120', '–')
    """
    if value is None:
        return "–"
    if value < -1.0:
        return typeset(f"{float(f'{value:.2g}'):g}")
    return ("1" if value == 1.0 else ">0.9999") if value > 0.99995 else f"{value:.4f}".replace("-", "−")


def geometry_text(data: Data) -> str:
    """Order and coordinates, in words."""
    measured = ("values", "values and slopes", "values, slopes and curvatures")[data["order"]]
    along = {"standardized": "standardized inputs", "raw": "raw inputs", "path": "the path of the rows"}.get(
        data["coordinates"], "the data"
    )
    where = f" along {along}" if data["order"] else ""
    weights = data["weights"]
    unequal = "" if all(w == 1.0 for w in weights) else f", weights {', '.join(number(w) for w in weights)}"
    # Where inputs lie on a curve the words take slopes along it, whatever the numbers beside them do.
    is_default = data["order"] == 1 and data["coordinates"] == "standardized" and not unequal
    words = "; for the words, slopes along the data only" if data["views"] and is_default else ""
    return f"order {data['order']}: {measured}{where}{unequal}{words}"
