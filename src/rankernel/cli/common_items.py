"""Two files whose items differ: compared over the items of both, or over all of either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankernel.cli.options import COMPUTING, complete_from, one_of
from rankernel.cli.output import listed
from rankernel.data import has_ordered_pair, select_items
from rankernel.errors import RankingError
from rankernel.rankings import Rankings
from rankernel.reports.phrases import plural
from rankernel.reports.source import Source

if TYPE_CHECKING:
    from rankernel.data import Data

OVER = ("intersection", "union")
MOST_NAMES = 8
Over = Annotated[
    str,
    typer.Option(
        "--over",
        metavar="|".join(OVER),
        help="Two files with different items: compare over those that both have, or over all; of an item that a file "
        "does not have, nothing is known there.",
        callback=one_of(*OVER),
        autocompletion=complete_from(OVER),
        rich_help_panel=COMPUTING,
    ),
]


def over_common_items(sources: list[Source], over: str) -> tuple[list[Data], str]:
    """Return the rankings of two sources over the same items in one order, and what was done, in words."""
    first, second = (source.rankings for source in sources)
    shared = [item for item in first.items if item in second.items]
    alone = [[item for item in a.items if item not in b.items] for a, b in ((first, second), (second, first))]
    if not any(alone):
        return [first, over_items(second, first.items)], ""
    missing = "; ".join(
        f"only in {source.origin}: {listed(items, MOST_NAMES)}"
        for source, items in zip(sources, alone, strict=True)
        if items
    )
    if over == "union":
        everything = (*first.items, *alone[1])
        said = (
            f"all {len(everything)} of either file (--over union), nothing known of those it does not have; {missing}"
        )
        return [over_items(data, everything) for data in (first, second)], said
    if len(shared) < 2:
        raise RankingError(
            f"the two files have {plural(len(shared), 'item')} in common ({missing}); --over union compares them over "
            "all items, and --fold-case takes names that differ in case or blanks only as one"
        )
    said = f"the {len(shared)} that both files have (--over intersection); {missing}"
    kept = []
    for source in sources:
        data = over_items(source.rankings, tuple(shared))
        speaks = has_ordered_pair(data)
        if not speaks.any():
            raise RankingError(f"no row of {source.origin} says anything of the items in common; take --over union")
        if not speaks.all():
            silent = int(data.counts[~speaks].sum())
            said += f"; left out: {plural(silent, 'voter')} of {source.origin} who say nothing of these"
        kept.append(data[speaks])
    return kept, said


def over_items(data: Data, items: tuple[str, ...]) -> Data:
    """Return what rows say of some items; of those that they do not have, nothing is known."""
    known = select_items(data, [data.items.index(item) for item in items if item in data.items])
    if len(known.items) == len(items):
        return known
    return known.with_items(items, unlisted="free") if isinstance(known, Rankings) else known.with_items(items)
