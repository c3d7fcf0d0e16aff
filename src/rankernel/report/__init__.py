"""Answers to a page: one self-contained HTML file about some rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankernel.report.source import Source

if TYPE_CHECKING:
    from rankernel.report.study import Settings

__all__ = ["Source", "report"]


def report(source: Source, settings: Settings | None = None) -> str:
    """Return a page about some rankings: one HTML file that needs no other, and no network.

    Parameters
    ----------
    source : Source
        The rankings, their title, and the group of each row if that is known.
    settings : Settings, optional
        Kernel, method, number of clusters, seed.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk", "tea"]], counts=[3, 2])
    >>> "5 voters ranked 2 items" in report(Source(ballots, "Drinks"))
    True
    """
    from rankernel.report.page import page
    from rankernel.report.study import studied

    return page(studied(source, settings))
