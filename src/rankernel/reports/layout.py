"""The frame of sections, pictures and tables, each with a name under which it can be taken away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankernel.reports.markup import Markup, tag

COLOURS = 7  # and one more, a grey, for all others


def shade(number: int) -> int:
    """Return the colour of a cluster or group: no two have the same, those beyond the colours are the others."""
    return min(number, COLOURS)


def section(name: str, title: str, *content: Any) -> Markup:
    """Return a section with its title."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *content, id=name, aria_labelledby=f"{name}-title")


def figure(name: str, content: Any, *caption: Any) -> Markup:
    """Return a picture with its caption, if it has one; the name is that of the file it is saved as."""
    return tag("figure", content, tag("figcaption", *caption) if caption else None, data_name=name)


def by_size(wide: Markup, narrow: Markup, paper: Sequence[Markup] = ()) -> Markup:
    """Return a picture as it is drawn for a desk, for a phone and for paper, of which one is shown.

    On paper it may come in several parts, one below the other, so that it can go over to the next page; if there are
    none, the narrow one is printed.
    """
    return tag(
        "div",
        tag("div", wide, class_="wide-only"),
        tag("div", narrow, class_="narrow-only" if paper else "narrow-only paper-too"),
        tag("div", *paper, class_="paper-only") if paper else None,
    )


def large_and_small(says: str, written: Sequence[Sequence[Markup]], class_: str = "") -> list[Markup]:
    """Return words in a picture as they are written where it is large, and where it is small; either says the same."""
    return [
        tag("g", *parts, class_=f"{class_} {size}".strip(), data_says=says, aria_hidden="true")
        for size, parts in zip(("large", "small"), written, strict=True)
        if parts
    ]


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


def heading(shown: str, whole: str, scope: str = "col") -> Markup:
    """Return the head of a row or column that may be shortened; the whole of it goes into the CSV."""
    return tag("th", shown, scope=scope, data_whole=whole if whole != shown else None)
