"""Answers to a page: one self-contained HTML file about some rankings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rankernel._utils.checks import check_instance, check_labels, check_path, printable
from rankernel.data import as_data
from rankernel.errors import RankingError
from rankernel.reports.source import Source

if TYPE_CHECKING:
    from rankernel.reports.pictures import Report
    from rankernel.reports.summary import Settings

__all__ = ["report"]

ENDINGS = (".html", ".htm")


def report(
    rankings: Any,
    path: str | os.PathLike[str] | None = None,
    labels: Any = None,
    title: str = "Rankings",
    by: str = "group",
    settings: Settings | None = None,
    noun: str = "item",
    voter: str = "voter",
) -> Report:
    """Return a page about some rankings, and write it if a path is given: one HTML file that needs no other.

    In a notebook the page is shown, and each of its ``pictures`` can be shown and saved alone.

    Parameters
    ----------
    rankings : Rankings, Preferences or array of ranks
        What the page is about.
    path : path, optional
        Where to write it, a name that ends in ``.html``; a file that is there is replaced.
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
    voter : str
        Who ranks, such as "judge".

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk", "tea"]], counts=[3, 2])
    >>> print(report(ballots, title="Drinks"))
    5 voters ranked 2 items. Among those who say, tea beats the other one: 60.0% put tea before milk, 40.0% the reverse.
    Pictures: first choices, duels
    """
    from rankernel.reports.page import page
    from rankernel.reports.pictures import make_report
    from rankernel.reports.summary import Settings, summarize

    ballots = as_data(rankings, name="rankings")
    groups = None if labels is None else check_labels("labels", labels, len(ballots)).astype(str)
    for name, text in (("title", title), ("by", by), ("noun", noun), ("voter", voter)):
        check_instance(name, text, str, "a text")
    if settings is not None:
        check_instance("settings", settings, Settings, "Settings, or None")
    target = None if path is None else check_path("path", path)
    if target is not None and target.suffix.lower() not in ENDINGS:
        raise RankingError(f"path {printable(target.name)} does not end in .html; a report is a page")
    about = getattr(ballots, "about", None)
    source = Source(
        ballots,
        title,
        by=by if labels is not None else "",
        groups=groups,
        noun=noun,
        voter=voter,
        approve_all=about.all_in_first if about else None,
    )
    study = summarize(source, settings)
    made = make_report(study, page(study))
    if target is not None:
        made.save(target)
    return made
