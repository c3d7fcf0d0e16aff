"""The frame of sections, pictures and tables, each with a name under which it can be taken away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankernel.pages.markup import Markup, tag

COLOURS = 7  # and one more, a grey, for all others


def shade(number: int) -> int:
    """Return the colour of a cluster or group: no two have the same, those beyond the colours are the others."""
    return min(number, COLOURS)


def section(name: str, title: str, *content: Any) -> Markup:
    """Return a section with its title."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *content, id=name, aria_labelledby=f"{name}-title")


def figure(name: str, content: Any, *caption: Any) -> Markup:
    """Return a picture with its caption; the name is that of the file it is saved as."""
    return tag("figure", content, tag("figcaption", *caption), data_name=name)


def two_sizes(wide: Markup, narrow: Markup) -> Markup:
    """Return a picture as it is drawn for a desk and for a phone, of which one is shown."""
    return tag("div", tag("div", wide, class_="wide-only"), tag("div", narrow, class_="narrow-only"))


def table(name: str, label: str, heads: Sequence[Any], rows: Sequence[Markup], class_: str | None = None) -> Markup:
    """Return a table that scrolls by itself where it is wider than the page, and says so."""
    head = tag(
        "thead", tag("tr", *[each if isinstance(each, Markup) else tag("th", each, scope="col") for each in heads])
    )
    return tag(
        "div",
        tag("p", "Wider than the screen: scroll sideways. →", class_="hint", hidden="hidden"),
        tag(
            "div",
            tag("table", tag("caption", label, class_="unseen"), head, tag("tbody", *rows), class_=class_),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label=label,
        ),
        class_="tabular",
        data_name=name,
    )
