"""The site: `make docs` builds it into build/site. Pages are the Markdown files beside this one, read through MyST."""

import re
import sys
import tomllib
from pathlib import Path

from sphinx.ext import autosummary

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Sobolev Novelty"
author = "The Sobolev Novelty developers"
copyright = "the Sobolev Novelty developers. MIT licence"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "mathml",
    "sphinx_design",
    "gallery",
]
# Sphinx writes pages of these names itself, over ours and without a word.
for taken in ("search", "genindex", "py-modindex"):
    if list(HERE.glob(f"{taken}.*")):
        raise ValueError(f"docs/{taken}.md would be overwritten by Sphinx's own page of this name. Rename it.")

exclude_patterns = ["_ext", "_build", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4
math_eqref_format = "Eq. {number}"
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Public names must resolve. Those of other libraries, types in words ("array of shape (n,)") and types that have no
# page need not: there is no network while the site is built.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!sobolev_novelty\.\w+$).*"), ("py:mod", ".*")]

html_theme = "pydata_sphinx_theme"
html_title = "Sobolev Novelty"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "Sobolev Novelty"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
toc_object_entries_show_parents = "hide"
html_sidebars = {"index": []}


def drop_missing(app, name, source):
    """A toctree entry that ends in a star is left out where there is no such page."""
    source[0] = re.sub(
        r"^([\w-]+)\*$",
        lambda entry: entry[1] if (HERE / f"{entry[1]}.md").exists() else "",
        source[0],
        flags=re.MULTILINE,
    )


def without_requests(app, what, name, value, skip, options):
    """scikit-learn adds `set_…_request` to every estimator; they are described there."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def plain_bars(app, what, name, value, options, lines):
    """`|b|` in a docstring is the size of b, not a substitution."""
    lines[:] = [re.sub(r"\|(\w+)\|", r"\\|\1\\|", line) for line in lines]


def whole_names(app, what, name, value, options, lines):
    """An attribute keeps its underscore at the end, and of two in one entry the first is not the type of the second."""
    for k, line in enumerate(lines):
        field = re.match(r":(ivar|vartype) ([^:]+):(.*)", line)
        if field is not None:
            names = ",\u200b".join(re.sub(r"_$", r"\\_", part.strip()) for part in field[2].split(","))
            lines[k] = f":{field[1]} {names}:{field[3]}"


def setup(app):
    """Connect the rules above."""
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("autodoc-process-docstring", whole_names, priority=900)  # after napoleon has made fields of sections
    # A summary does not end at the number of an equation.
    autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.", "Eqs.")
    app.connect("source-read", drop_missing)
    app.connect("autodoc-skip-member", without_requests)
