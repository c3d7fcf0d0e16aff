"""Elements of a page: whatever is not markup already is escaped, so that no name in the data can become code."""

from __future__ import annotations

import html
import json
from typing import Any

# Elements that are written without an end; every other one gets one, also if it is empty.
ALONE = frozenset({"circle", "image", "input", "option", "path", "rect"})


class Markup(str):
    """Text that is markup: written into a page as it is."""

    __slots__ = ()


def text(content: Any) -> Markup:
    """Return something as markup that shows it: escaped, unless it is markup already.

    Examples
    --------
    >>> text("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return content if isinstance(content, Markup) else Markup(html.escape(str(content), quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Return an element; ``class_`` is the attribute class, ``data_row`` is data-row, None leaves an attribute out.

    Examples
    --------
    >>> tag("p", "a < b", class_="note", id=None)
    '<p class="note">a &lt; b</p>'
    >>> tag("circle", cx=1.23456)
    '<circle cx="1.23"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ALONE:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def number(value: Any) -> Any:
    """Return a float with two decimals at most, as pictures need them; anything else as it is."""
    if not isinstance(value, float):
        return value
    return f"{value:.2f}".rstrip("0").rstrip(".")


def join(children: Any) -> Markup:
    """Return elements and texts one after the other."""
    return Markup("".join(text(child) for child in children if child is not None))


def embedded_json(content: Any) -> Markup:
    r"""Return JSON for a script element: nothing in it can end the element or begin another.

    Examples
    --------
    >>> embedded_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    written = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    for sign in "<>&":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(written)
