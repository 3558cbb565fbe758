"""Formulas as MathML, which browsers draw themselves: no script, and nothing is fetched from elsewhere."""

from html import escape
from typing import Any

from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: Any) -> None:
    """A formula within a line."""
    self.body.append(convert(node.astext()))
    raise_skip()


def block(self: HTML5Translator, node: Any) -> None:
    """A displayed formula with its number, which is also the link to it."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(convert(node.astext(), display="block"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<a class="eqno" href="#{escape(node["ids"][0])}" title="{_("Link to this equation")}">')
        self.body.append(f"({escape(str(number))})</a>")
    self.body.append("</div>")
    raise_skip()


def raise_skip() -> None:
    """The node has been written; its children are its source."""
    from docutils import nodes

    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name that conf.py chooses."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
