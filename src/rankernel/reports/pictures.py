"""What :func:`report` returns: the page, and its pictures as objects that a notebook shows and that can be saved."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from rankernel._utils.checks import check_path
from rankernel._utils.files import whole_file
from rankernel.reports.draw_bars import WIDE as WIDE_BARS
from rankernel.reports.draw_bars import first_choices
from rankernel.reports.draw_comparison import null_picture, pairs_picture
from rankernel.reports.draw_duels import duels_picture
from rankernel.reports.draw_heat import WIDE as WIDE_GRAM
from rankernel.reports.draw_heat import gram_picture
from rankernel.reports.draw_map import LEAST_BALLOTS, map_picture
from rankernel.reports.draw_tree import WIDE as WIDE_TREE
from rankernel.reports.draw_tree import tree_picture
from rankernel.reports.markup import Markup, join, tag
from rankernel.reports.page import template
from rankernel.reports.section_clusters import cluster_bars
from rankernel.reports.section_pictures import cluster_names
from rankernel.reports.story import lede
from rankernel.reports.summary import Summary

FRAME_HEIGHT = 800  # of a page in a notebook
KEY_LINE = 20.0  # from one line of a key to the next


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
        with whole_file(check_path("path", path)) as temporary:
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
        The pictures by name: ``"first choices"`` or ``"approvals"``, ``"map"``, ``"duels"``; where there are clusters,
        ``"tree"``, ``"gram"`` and ``"cluster A"``, ...; where there are groups, ``"pairs: ..."`` and ``"chance: ..."``
        for the pairs that the page tells of.
    """

    headline: str
    html: str = field(repr=False)
    pictures: dict[str, Picture] = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; a file that is there is replaced."""
        with whole_file(check_path("path", path)) as temporary:
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
    words, grouped = study.words, study.grouped
    yield "approvals" if words.approvals else "first choices", first_choices(study, WIDE_BARS)[0]
    if len(study.view.rows) >= LEAST_BALLOTS:
        yield "map", with_key(map_picture(study), cluster_names(study))
    if study.ballots.rankings.n_items > 1:
        yield "duels", duels_picture(study)
    if grouped:
        yield "tree", with_key(tree_picture(study, grouped, WIDE_TREE), cluster_names(study))
        yield "gram", with_key(gram_picture(study, grouped, WIDE_GRAM), cluster_names(study))
        for number, cluster in enumerate(grouped.clusters):
            if bars := cluster_bars(study, number, cluster):
                yield f"cluster {cluster.name}", bars
    for pair in study.comparisons.details if study.comparisons else ():
        names = study.ballots.groups[pair.first], study.ballots.groups[pair.second]
        if shares := pairs_picture(pair, names, words):
            yield f"pairs: {names[0]} and {names[1]}", shares
        yield f"chance: {names[0]} and {names[1]}", null_picture(pair, words)


def with_key(svg: Markup, names: list[str]) -> Markup:
    """Return a picture with what its colours stand for below it."""
    opening, rest = svg.split(">", 1)
    width, height = sides(opening)
    lines = []
    for number, name in enumerate(names):
        y = height + KEY_LINE * (number + 0.5)
        lines += [
            tag("rect", x=2.0, y=y, width=10.0, height=10.0, class_=f"fill k{number}"),
            tag("text", name, x=20.0, y=y + 10, class_="label"),
        ]
    taller = f"0 0 {width:g} {height + KEY_LINE * (len(names) + 0.5) * bool(names):g}"
    written = opening.replace(f"0 0 {width:g} {height:g}", taller, 1)
    return Markup(f"{written}>{rest.removesuffix('</svg>')}{join(lines)}</svg>")


def sides(opening: str) -> tuple[float, float]:
    """Return the width and the height of a picture, from how it begins."""
    width, height = opening.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split(" ")
    return float(width), float(height)


def alone(svg: Markup) -> str:
    """Return a picture of the page as a file of its own: with the style of the page, and in its own size."""
    opening, rest = svg.split(">", 1)
    width, height = sides(opening)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
    # Light wherever it is shown: a picture does not know what stands behind it.
    style = template("style.css").replace("screen and (prefers-color-scheme: dark)", "not all")
    written = escape(f"{style} svg {{ background: var(--paper); }}", quote=False)
    return f"{opening.replace('<svg', head, 1)}><style>{written}</style>{rest}\n"
