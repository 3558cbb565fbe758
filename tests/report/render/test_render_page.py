"""The HTML page: self-contained, well-formed, and deaf to hostile labels."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sobolev_novelty.report.novelty_report import MAX_MATRIX_TERMS
from sobolev_novelty.report.render.mathml import formula
from sobolev_novelty.report.render.page import cases_page, report_fragment, report_page
from sobolev_novelty.report.reporting import novelty, novelty_of_arrays

X = np.linspace(-1.0, 1.0, 200)[:, None]
BLOATED = "2.1*sin(x0) + 0.3*x0 - 0.05*x0**3 + cos(3*x0)/(1 + x0**2) + sqrt(x0 + 0.9)"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "`</style><b>`",
    "' onmouseover='alert(1)",
    "数学 ∂φ/∂x \u202e evil",
    "</svg></td></table><iframe>",
    "&lt;already&gt; --> <!--",
]
VOID = {"meta", "rect", "path", "br", "img", "link"}
_TAGS = (
    "html head meta title style body main header footer section p h1 h2 div span strong code dl dt dd table thead "
    "tbody tr th td ul li pre details summary small figure figcaption "
    "svg rect path text math mrow mi mn mo msup msub mfrac msqrt mroot"
)
ALLOWED = set(_TAGS.split())


class Checker(HTMLParser):
    """Collects tags and text; fails on a tag that is not closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def _checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.stack == []
    assert checker.tags <= ALLOWED, checker.tags - ALLOWED
    assert not [name for name, _ in checker.attributes if name.startswith("on")]
    return checker


def test_the_page_is_well_formed_and_complete(tmp_path: Path) -> None:
    report = novelty(BLOATED, X, n_bootstrap=20, random_state=0)
    page = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    text = "".join(_checked(page).text)
    for part in (
        "2 of 5 terms are distinct and needed",
        "190 of 200 rows were used",
        "What the numbers mean",
        "Which terms rebuild which",
        "unexplained",
        "Not Every Term Adds New Structure",
        "holds in 100%",
    ):
        assert part in text


RNG = np.random.default_rng(0)
TABLE = RNG.uniform(0.5, 2.0, (300, 2))
TARGET = 3.0 / TABLE[:, 0] - 1.5e-6 * TABLE[:, 1] + RNG.normal(0.0, 0.1, 300)


def _with_target() -> str:
    return novelty("3/x0 - 0.0000015*x1**2 + 0.5", TABLE, TARGET).to_html()


def test_the_page_with_a_target_has_three_words_and_the_fit() -> None:
    text = "".join(_checked(_with_target()).text)
    for part in (
        "1 of 2 terms is distinct, needed and determined",
        "95 % interval, refitted",
        "✓ determined",
        "✗ not needed",
        "R², cross-validated",
        "Parity",
        "Residuals",
        "Effect of each term",
        "condition index",
        "bits saved",
        "ν of the paper",
    ):
        assert part in text


def test_statistics_are_folded_away() -> None:
    page = _with_target()
    inside = page[page.index("<details>") : page.index("</details>")]
    assert "VIF" in inside and "VIF" not in page.replace(inside, "") and "<details open" not in page


def test_numbers_have_a_true_minus_and_cannot_break() -> None:
    page = _with_target()
    cell = re.search(r'data-name="coefficient">([^<]*10⁻⁶)<', page)
    assert cell is not None and cell[1].startswith("−1.5") and " " not in cell[1]
    assert not re.search(r">-\d|\de-\d", re.sub(r"<code>.*?</code>", "", page))  # the code can be copied


def test_sentences_of_the_page_set_terms_as_formulas() -> None:
    page = _with_target()
    lead = page[page.index('<p class="lead">') : page.index("</header>")]
    assert "<msup>" in lead and "**" not in lead


def test_the_bar_shows_the_number_of_the_badge() -> None:
    report = novelty("3*x0 + 1000", TABLE + 100.0)
    page = report.to_html()
    assert report.nu[0] < 0.1 and report.verdicts[0].novelty == pytest.approx(1.0)
    assert "novelty with a free intercept 1.000, threshold 0.316: distinct" in page
    assert '<rect class="high" x="0" y="5" width="200.0"' in page


def test_a_page_read_back_from_json_lacks_only_the_points() -> None:
    data = json.loads(novelty("3/x0 + 0.5", TABLE, TARGET).to_json())
    text = "".join(_checked(report_page(data)).text)
    assert "The fit" in text and "Parity" not in text


def test_hostile_column_names_cannot_break_the_drawings_of_the_fit() -> None:
    names = ["<b>x</b>", '"><img src=x onerror=alert(1)>']
    report = novelty(f"3/`{names[0]}` + `{names[1]}`", TABLE, TARGET, names=names)
    assert not {"b", "img"} & _checked(report.to_html()).tags
    assert not {"b", "img"} & _checked(report._repr_html_()).tags


def test_a_coefficient_outside_its_interval_is_named() -> None:
    said = "the coefficient of term 0 is outside the interval"
    assert said in novelty("4/x0 + 0.5", TABLE, TARGET).to_html().replace("coefficients of terms 0 and 1 are", said[4:])
    assert "outside the interval" not in novelty("3/x0", TABLE, TARGET).to_html()


def test_nothing_is_loaded_from_anywhere() -> None:
    page = report_page(novelty(BLOATED, X).to_dict()) + _with_target()
    assert not re.search(r"https?:|//|url\(|@import|\bsrc=|\bhref=|<script|<link", page)


def test_the_page_is_made_for_phones_the_dark_and_screen_readers() -> None:
    page = report_page(novelty(BLOATED, X).to_dict())
    for part in (
        'name="viewport"',
        "prefers-color-scheme:dark",
        'lang="en"',
        'scope="row"',
        'role="img"',
        "aria-label=",
    ):
        assert part in page


@pytest.mark.parametrize("render", [report_page, report_fragment])
def test_hostile_labels_cannot_break_the_page(render: object) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(len(HOSTILE), 60))
    values[1] = values[0] + 1e-3 * values[1]  # low terms are explained: their labels appear there too
    data = novelty_of_arrays(values, labels=HOSTILE).to_dict()
    data["notes"] = HOSTILE
    data["features"] = HOSTILE
    data["expression"] = HOSTILE[0]
    data["dropped"] = {HOSTILE[1]: 3}
    text = "".join(_checked(render(data)).text)  # type: ignore[operator]
    assert "<script>alert(1)</script>" in text  # shown as text
    assert "\u202e" not in text


@given(st.lists(st.text(max_size=30), min_size=2, max_size=4))
@settings(max_examples=50, deadline=None)
def test_any_label_gives_a_well_formed_page(labels: list[str]) -> None:
    rng = np.random.default_rng(0)
    _checked(report_page(novelty_of_arrays(rng.normal(size=(len(labels), 40)), labels=labels).to_dict()))


def test_hostile_column_names_cannot_break_the_page() -> None:
    report = novelty("`<b>x</b>` + cos(3*`<b>x</b>`)", X, names=["<b>x</b>"])
    assert "b" not in _checked(report_page(report.to_dict())).tags


def test_two_fragments_share_no_ids() -> None:
    fragment = report_fragment(novelty(BLOATED, X).to_dict())
    assert " id=" not in fragment


def test_a_page_of_many_terms_says_why_there_is_no_matrix() -> None:
    rng = np.random.default_rng(0)
    data = novelty_of_arrays(rng.normal(size=(MAX_MATRIX_TERMS + 1, 100))).to_dict()
    assert "too many terms to draw the matrix" in report_page(data)
    assert '<svg class="matrix"' not in report_page(data)


def test_several_reports_make_one_page() -> None:
    data = novelty(BLOATED, X).to_dict()
    page = cases_page("Title", "Lead", [("One", "words", data, ""), ("Two", "words", None, "<b>output</b>")])
    text = "".join(_checked(page).text)
    assert "<b>output</b>" in text


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("a/b", "<mfrac>"),
        ("sqrt(x0)", "<msqrt>"),
        ("(a + b)*c", '<mo stretchy="false">(</mo>'),
        ("theta", "θ"),
        ("1e-20*x0", "<msup><mn>10</mn>"),
        ("exp(-x0)", "<msup><mi>e</mi>"),
        ("a - (b - c)", '<mo form="infix">−</mo>'),
        ("max(a, b)", "<mi>max</mi>"),
        ("a + (-2*b)", '<mo form="infix">−</mo><mn>2</mn>'),
        ("a - (-2*b)", '<mo form="infix">+</mo><mn>2</mn>'),
        ("2*Mass", "<mn>2</mn><mo>·</mo><mi>Mass</mi>"),
    ],
)
def test_formulas_are_set(text: str, markup: str) -> None:
    assert markup in formula(text)
    _checked(formula(text))


@pytest.mark.parametrize("text", ["term 0", "a b", "not a formula!", "+".join(["x0"] * 300), ""])
def test_what_is_no_formula_stays_text(text: str) -> None:
    assert formula(text).startswith("<code>")
