"""What :func:`report` returns: the page, and its pictures as objects that a notebook shows and that can be saved."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from rankernel.analysis.summary import Summary
from rankernel.checks import file_name
from rankernel.pages.draw_bars import WIDE as WIDE_BARS
from rankernel.pages.draw_bars import first_choices
from rankernel.pages.draw_heat import gram_picture
from rankernel.pages.draw_map import map_picture
from rankernel.pages.draw_tree import WIDE as WIDE_TREE
from rankernel.pages.draw_tree import tree_picture
from rankernel.pages.markup import Markup
from rankernel.pages.page import template
from rankernel.pages.story import lede
from rankernel.whole_files import whole_file

FRAME_HEIGHT = 800  # of a page in a notebook


@dataclass(frozen=True)
class Picture:
    """A picture of a report.

    Attributes
    ----------
    name : str
        What it shows.
    svg : str
        The picture as SVG, with its style: it needs nothing else.
    """

    name: str
    svg: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as an SVG file; one that is there is replaced."""
        with whole_file(file_name("path", path)) as temporary:
            temporary.write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        # As an image, so that its style stays inside.
        address = base64.b64encode(self.svg.encode("utf-8")).decode("ascii")
        return f'<img alt="{escape(self.name)}" src="data:image/svg+xml;base64,{address}">'


@dataclass(frozen=True)
class Report:
    """A page about some rankings, and its pictures.

    Attributes
    ----------
    headline : str
        Who is ahead, in a few sentences.
    html : str
        The page.
    pictures : dict of Picture
        The pictures by name: ``"first choices"``, ``"map"`` and, where there are clusters, ``"tree"`` and ``"gram"``.
    """

    headline: str
    html: str = field(repr=False)
    pictures: dict[str, Picture] = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; a file that is there is replaced."""
        with whole_file(file_name("path", path)) as temporary:
            temporary.write_text(self.html, encoding="utf-8")

    def __str__(self) -> str:
        return f"{self.headline}\nPictures: {', '.join(self.pictures)}"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{FRAME_HEIGHT}"></iframe>'


def make_report(study: Summary, html: str) -> Report:
    """Return a page with its pictures."""
    return Report(lede(study), html, {name: Picture(name, alone(svg)) for name, svg in drawn(study)})


def drawn(study: Summary) -> Iterator[tuple[str, Markup]]:
    """Yield the pictures of a page."""
    yield "approvals" if study.source.approvals else "first choices", first_choices(study, WIDE_BARS)
    yield "map", map_picture(study)
    if study.grouped:
        yield "tree", tree_picture(study, study.grouped, WIDE_TREE)
        yield "gram", gram_picture(study, study.grouped)


def alone(svg: Markup) -> str:
    """Return a picture of the page as a file of its own: with the style of the page, and in its own size."""
    viewed = svg.split('viewBox="0 0 ', 1)[1].split('"', 1)[0]
    width, height = viewed.split(" ")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    opening, rest = svg.split(">", 1)
    # Light wherever it is shown: a picture does not know what stands behind it.
    style = template("style.css").replace("screen and (prefers-color-scheme: dark)", "not all")
    written = escape(f"{style} svg {{ background: var(--paper); }}", quote=False)
    return f"{opening.replace('<svg', head, 1)}><style>{written}</style>{rest}\n"
