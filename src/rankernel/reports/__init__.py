"""Reports: one self-contained HTML page about rankings."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, get_args

from rankernel._utils.checks import (
    Seed,
    as_seed,
    check_choice,
    check_flag,
    check_integer,
    check_names,
    check_path,
    check_text,
    printable,
)
from rankernel._utils.resources import whole_file
from rankernel.data import as_data
from rankernel.errors import RankingError, require

if TYPE_CHECKING:
    from rankernel.gram.plan import MethodLike
    from rankernel.kernels.base import Kernel

__all__ = ["Picture", "Report", "report"]

SUFFIXES = (".html", ".htm")
FRAME_HEIGHT = 800  # of a page in a notebook, in pixels


@dataclass(frozen=True)
class Picture:
    """A picture of a report, shown by notebooks.

    Attributes
    ----------
    name : str
        The name of the picture.
    svg : str
        The picture as a self-contained SVG document.

    Examples
    --------
    >>> Picture("map", "<svg></svg>")
    Picture(name='map')
    """

    name: str
    svg: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to an SVG file; an existing file is replaced."""
        with whole_file(check_path("path", path)) as temporary:
            temporary.write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        # As an image, so that its style does not apply to the notebook.
        address = base64.b64encode(self.svg.encode("utf-8")).decode("ascii")
        return f'<img alt="{escape(self.name)}" src="data:image/svg+xml;base64,{address}">'


@dataclass(frozen=True)
class Report:
    """A page about rankings and its pictures, shown by notebooks.

    Attributes
    ----------
    headline : str
        The first sentences of the page.
    html : str
        The page as a self-contained HTML document.
    pictures : dict of Picture
        The pictures by name: ``"first choices"``, ``"approvals"`` or ``"leaderboard"``, ``"map"``, ``"contests"``; if
        there are clusters, ``"dendrogram"``, ``"gram"`` and ``"cluster A"``, ...; for several groups that differ,
        ``"groups"``; for pairs of groups described in detail, ``"pairs: ..."`` and ``"null distribution: ..."``.
    findings : dict
        The numbers of the page, as they are printed by ``rankernel report --json``.

    Examples
    --------
    >>> from rankernel import datasets
    >>> result = report(datasets.mallows(40, 4, 1.0), n_clusters=1)
    >>> "map" in result.pictures, result.html.startswith("<!DOCTYPE html>")
    (True, True)
    """

    headline: str
    html: str = field(repr=False)
    pictures: dict[str, Picture] = field(repr=False)
    findings: dict[str, Any] = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to an HTML file; an existing file is replaced."""
        with whole_file(check_path("path", path)) as temporary:
            temporary.write_text(self.html, encoding="utf-8")

    def __str__(self) -> str:
        return f"{self.headline}\nPictures: {', '.join(self.pictures)}"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{FRAME_HEIGHT}"></iframe>'


def report(
    data: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    groups: Any = None,
    compare: Iterable[str] | None = None,
    kernel: Kernel | str | None = None,
    method: MethodLike = "auto",
    n_clusters: int | None = None,
    linkage: str = "ward",
    n_permutations: int = 999,
    max_ballots: int = 1500,
    title: str | None = None,
    group_name: str | None = None,
    noun: str | None = None,
    voter: str | None = None,
    sample: bool | None = None,
    rng: Seed = 0,
) -> Report:
    """Return a self-contained HTML page about rankings, and write it if a path is given.

    The page has the standing of the items (first choices, head-to-head contests, the Kemeny ranking), clusters of
    voters, tests between groups, a map by kernel principal components, a dendrogram and the methods.

    Parameters
    ----------
    data : Rankings, Preferences, Comparisons or array of ranks
        The rankings. The page of comparisons begins with the leaderboard; the rankings are those of the judges.
    path : path, optional
        Name of the file to write, ending in ``.html``; an existing file is replaced.
    groups : array of shape (n_rankings,) or str, optional
        The group of each ranking or comparison, or the name of a label column of data that were read from a file. The
        groups are compared with each other; groups of comparisons with the Kendall kernel.
    compare : iterable of str, optional
        Names of the groups to compare; by default all. An empty one compares none.
    kernel : Kernel or str, optional
        The kernel or its name; by default ``Mallows(nu="median")``.
    method : "auto" or a method object
        How kernel values are computed; see :meth:`Kernel.gram`.
    n_clusters : int, optional
        Number of clusters; by default the largest number that is significant against models without clusters and
        reproducible in halves of the voters.
    linkage : str
        Linkage of the dendrogram, as in :func:`rankernel.linkage`.
    n_permutations : int
        Number of permutations of the tests between groups.
    max_ballots : int
        Maximum number of different ballots on the map and in the dendrogram; if there are more, as many voters are
        sampled at random.
    title : str, optional
        Title of the page; by default that of the file that the data were read from.
    group_name : str, optional
        The noun for a group, such as ``"district"``; by default the name of the column, or ``"group"``.
    noun : str, optional
        The noun for an item, such as ``"candidate"``; by default guessed from the file.
    voter : str, optional
        The noun for a voter; by default ``"voter"``, and ``"judge"`` for comparisons and files of comparisons.
    sample : bool, optional
        Whether the voters are a sample, so that the closest contest gets an interval, or a full count. By default
        rankings of candidates are a full count, all others a sample.
    rng : int, Generator or None
        Seed of all random samples and permutations; with the default 0 the same call gives the same page.

    Returns
    -------
    Report
        ``html`` is the page, ``pictures`` its figures.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk", "tea"]], counts=[3, 2])
    >>> made = report(ballots, title="Drinks")
    >>> made.headline.split(": ")[0]
    '5 voters ranked 2 items. tea wins the head-to-head contest'
    >>> list(made.pictures)
    ['first choices', 'contests']
    """
    require("jinja2", "report")
    from rankernel.comparisons import Comparisons
    from rankernel.kernels import as_kernel
    from rankernel.learn.hierarchy import Linkage
    from rankernel.reports.ballots import Source
    from rankernel.reports.clusters import Settings
    from rankernel.reports.page import pictures, render_page
    from rankernel.reports.summary import findings_of, headline, summarize

    stated: dict[str, Any] = {"title": title, "group_name": group_name, "noun": noun, "voter": voter}
    for name, text in stated.items():
        if text is not None:
            check_text(name, text)
    target = None if path is None else check_path("path", path)
    if target is not None and target.suffix.lower() not in SUFFIXES:
        raise RankingError(f"path {printable(target.name)} does not end in .html; a report is an HTML page")
    chosen = {} if kernel is None else {"kernel": as_kernel(kernel)}
    settings = Settings(
        method=method,
        n_clusters=None if n_clusters is None else check_integer("n_clusters", n_clusters),
        linkage=check_choice("linkage", linkage, get_args(Linkage)),
        n_permutations=check_integer("n_permutations", n_permutations),
        compare=None if compare is None else tuple(check_names("compare", compare)),
        max_ballots=check_integer("max_ballots", max_ballots, 2),
        rng=as_seed(rng),
        **chosen,
    )
    stated["sample"] = None if sample is None else check_flag("sample", sample)
    source = Source.of(data if isinstance(data, Comparisons) else as_data(data, name="data"), groups, **stated)
    summary = summarize(source, settings)
    drawn = {name: Picture(name, svg) for name, svg in pictures(summary)}
    made = Report(headline(summary), render_page(summary), drawn, findings_of(summary))
    if target is not None:
        made.save(target)
    return made
