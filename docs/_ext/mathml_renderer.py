"""Render formulas as MathML when the pages are built, without scripts, fonts or network access."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """Write an inline formula."""
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    """Write a displayed formula, with its number if it has one."""
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(mathml(node.astext(), display="block"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({node["number"]})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def mathml(formula: str, display: str = "inline") -> str:
    """Return a formula as MathML. A prime is already a superscript glyph and must not be reduced twice."""
    return convert(formula, display=display).replace("<mo>&#x02032;</mo>", '<mo class="prime">&#x02032;</mo>')
