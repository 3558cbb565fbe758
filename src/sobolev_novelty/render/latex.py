"""A report as a LaTeX table (booktabs)."""

from __future__ import annotations

from collections.abc import Sequence

from sobolev_novelty.convert import to_latex
from sobolev_novelty.expression import Expression
from sobolev_novelty.render.sentences import Data, novelty_text, number, plain

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "`": r"\textasciigrave{}",
}  # fmt: skip

#: What is not a word on a term.
_DISTINCT = {"constant": "--", "unknown": "--"}


def report_table(data: Data, expressions: Sequence[Expression] | None = None) -> str:
    r"""A booktabs table, one row per term.

    Parameters
    ----------
    data : dict
        ``NoveltyReport.to_dict()``.
    expressions : sequence of Expression, optional
        The terms; they are set as formulas. Without them the labels are set as text.

    Examples
    --------
    >>> import sobolev_novelty as sn
    >>> report = sn.novelty("x0 + cos(3*x0)", [[i / 50] for i in range(-50, 50)])
    >>> print(report.latex_table().splitlines()[2])
    Term & $b$ & $\nu$ & $1/\nu^2$ & Contribution & Distinct \\
    """
    has_interval = any("interval" in term for term in data["terms"])
    interval_head = "& 95\\,\\% interval " if has_interval else ""
    lines = [
        f"\\begin{{tabular}}{{lrr{'c' if has_interval else ''}rrc}}",
        r"\toprule",
        f"Term & $b$ & $\\nu$ {interval_head}& $1/\\nu^2$ & Contribution & Distinct \\\\",
        r"\midrule",
    ]
    for i, term in enumerate(data["terms"]):
        label = escape(term["term"]) if expressions is None else f"${to_latex(expressions[i])}$"
        lines.append(f"{label} & {' & '.join(_cells(term, has_interval))} \\\\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escape(text: object) -> str:
    r"""Any text as LaTeX sets it literally.

    Examples
    --------
    >>> escape("a_b & 5 %")
    'a\\_b \\& 5 \\%'
    """
    return "".join(_SPECIAL.get(character, character) for character in plain(text))


def _cells(term: Data, has_interval: bool) -> list[str]:
    nu = term["novelty"]
    cells = [_number(term["coefficient"]), "--" if nu is None else f"${novelty_text(nu)}$"]
    if has_interval:
        low, high = term["interval"]
        cells.append(f"$[{novelty_text(low)},\\,{novelty_text(high)}]$")
    inflation = r"$\infty$" if nu == 0.0 else _number(term["inflation"], 3)
    distinct = "no" if term["is_null"] else _DISTINCT.get(term["verdict"]["distinct"], term["verdict"]["distinct"])
    return [*cells, inflation, _number(term["contribution"], 3), distinct]


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return "--"
    mantissa, has_exponent, exponent = number(value, digits).partition("e")
    return f"${mantissa} \\times 10^{{{int(exponent)}}}$" if has_exponent else f"${mantissa}$"
