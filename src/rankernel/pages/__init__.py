"""Answers to a page: one self-contained HTML file about some rankings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel.analysis.source import Source
from rankernel.rankings import as_rankings
from rankernel.whole_files import whole_file

if TYPE_CHECKING:
    from rankernel.analysis.summary import Settings

__all__ = ["report"]


def report(
    rankings: Any,
    path: str | os.PathLike[str] | None = None,
    labels: Any = None,
    title: str = "Rankings",
    by: str = "group",
    settings: Settings | None = None,
) -> str:
    """Return a page about some rankings, and write it if a path is given: one HTML file that needs no other.

    Parameters
    ----------
    rankings : Rankings or array of ranks
        What the page is about.
    path : path, optional
        Where to write it; a file that is there is replaced.
    labels : array of shape (n_rankings,), optional
        The group of each row, to be compared with each other.
    title : str
        Title of the page.
    by : str
        What the groups are, such as "district".
    settings : Settings, optional
        Kernel, method, number of clusters, seed.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk", "tea"]], counts=[3, 2])
    >>> "5 voters ranked 2 items" in report(ballots, title="Drinks")
    True
    """
    from rankernel.analysis.summary import summarize
    from rankernel.pages.page import page

    groups = None if labels is None else np.asarray(labels).astype(str)
    source = Source(as_rankings(rankings), title, by=by if labels is not None else "", groups=groups)
    html = page(summarize(source, settings))
    if path is not None:
        with whole_file(path) as temporary:
            temporary.write_text(html, encoding="utf-8")
    return html
