"""Answers to a page: one self-contained HTML file about some rankings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rankernel.analysis.source import Source
from rankernel.checks import file_name, instance
from rankernel.checks import labels as one_label_a_row
from rankernel.data import as_data
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
    noun: str = "item",
) -> str:
    """Return a page about some rankings, and write it if a path is given: one HTML file that needs no other.

    Parameters
    ----------
    rankings : Rankings, Preferences or array of ranks
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
    noun : str
        What is ranked, such as "candidate".

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk", "tea"]], counts=[3, 2])
    >>> "5 voters ranked 2 items" in report(ballots, title="Drinks")
    True
    """
    from rankernel.analysis.summary import Settings, summarize
    from rankernel.pages.page import page

    ballots = as_data(rankings, name="rankings")
    groups = None if labels is None else one_label_a_row("labels", labels, len(ballots)).astype(str)
    for name, text in (("title", title), ("by", by), ("noun", noun)):
        instance(name, text, str, "a text")
    if settings is not None:
        instance("settings", settings, Settings, "Settings, or None")
    target = None if path is None else file_name("path", path)
    source = Source(ballots, title, by=by if labels is not None else "", groups=groups, noun=noun)
    html = page(summarize(source, settings))
    if target is not None:
        with whole_file(target) as temporary:
            temporary.write_text(html, encoding="utf-8")
    return html
