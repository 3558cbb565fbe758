"""A report as a LaTeX table (booktabs)."""

from __future__ import annotations

from collections.abc import Sequence

from sobolev_novelty.core.digits import percent_text
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.language.convert import to_latex
from sobolev_novelty.report.render.sentences import Data, novelty_text, number, plain
from sobolev_novelty.report.render.words import coefficient_text

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "`": r"\textasciigrave{}",
}  # fmt: skip

#: Heads of the columns that a target adds: the word, and the standard error of the coefficient.
TARGET_HEAD = r"& Determined & Error [\%] "
#: What is not a word on a term.
_NO_WORD = {"constant": "--", "unknown": "--", None: "--"}


def report_table(data: Data, expressions: Sequence[Expression] | None = None) -> str:
    r"""A booktabs table, one row per term.

    ``expressions``: the terms; they are set as formulas. Without them the labels are set as text.

    >>> import sobolev_novelty as sn
    >>> report = sn.novelty("x0 + cos(3*x0)", [[i / 50] for i in range(-50, 50)])
    >>> print(report.latex_table().splitlines()[2])
    Term & $b$ & $\nu$ & $1/\nu^2$ & Contribution & Distinct & Needed \\
    """
    has_target = data["has_target"]
    has_interval = any("interval" in term for term in data["terms"])
    interval_head = "& 95\\,\\% interval " if has_interval else ""
    lines = [
        f"\\begin{{tabular}}{{lrr{'c' if has_interval else ''}rrcc{'cr' if has_target else ''}}}",
        r"\toprule",
        f"Term & $b$ & $\\nu$ {interval_head}& $1/\\nu^2$ & Contribution & Distinct & Needed "
        f"{TARGET_HEAD if has_target else ''}\\\\",
        r"\midrule",
    ]
    for i, term in enumerate(data["terms"]):
        label = escape(term["term"]) if expressions is None else f"${to_latex(expressions[i])}$"
        lines.append(f"{label} & {' & '.join(_cells(term, has_interval, has_target))} \\\\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escape(text: object) -> str:
    r"""Any text as LaTeX sets it literally.

    >>> escape("a_b & 5 %")
    'a\\_b \\& 5 \\%'
    """
    return "".join(_SPECIAL.get(character, character) for character in plain(text))


def _cells(term: Data, has_interval: bool, has_target: bool) -> list[str]:
    nu = term["novelty"]
    cells = [_number(coefficient_text(term)), "--" if nu is None else f"${novelty_text(nu)}$"]
    if has_interval:
        low, high = term["interval"]
        cells.append(f"$[{novelty_text(low)},\\,{novelty_text(high)}]$")
    inflation = r"$\infty$" if nu == 0.0 else _number(number(term["inflation"], 3))
    found = term["verdict"] | ({"distinct": "no"} if term["is_null"] else {})
    questions = ("distinct", "needed", "determined") if has_target else ("distinct", "needed")
    words = [_NO_WORD.get(found[question], found[question]) for question in questions]
    error = [f"${percent_text(1.0 / found['t']).rstrip('%').strip()}$" if found["t"] else "--"] if has_target else []
    return [*cells, inflation, _number(number(term["contribution"], 3)), *words, *error]


def _number(text: str) -> str:
    mantissa, has_exponent, exponent = text.partition("e")
    if text == "–":
        return "--"
    return f"${mantissa} \\times 10^{{{int(exponent)}}}$" if has_exponent else f"${mantissa}$"
