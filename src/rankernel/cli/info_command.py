"""``rankernel info``: what is in a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel.cli.options import File, Reading, Showing
from rankernel.cli.output import console, listed, print_json, show_facts, steps
from rankernel.cli.reading import read
from rankernel.data import format_rows, with_counts
from rankernel.encoding import sum_counts
from rankernel.reports.phrases import plural
from rankernel.reports.source import Source

MOST_COMMON = 5
SHOWN_ITEMS = 30


def info(reading: Reading, showing: Showing, file: File = None) -> None:
    """Say what is in a file: rankings, items, kinds, multiplicities."""
    source = read(file, reading)
    with steps(None, "Counting"):
        facts = facts_of(source)
    if showing.json:
        print_json(facts)
    else:
        show(source, facts)


def facts_of(source: Source) -> dict[str, Any]:
    """Return what is to be said of rankings."""
    rankings = source.rankings
    first, which = rankings.unique_indices()
    distinct = with_counts(rankings[first], sum_counts(rankings.counts, which, len(first)))
    kinds, of_distinct = np.unique(distinct.kinds(), return_inverse=True)
    rows = np.bincount(of_distinct[which], minlength=len(kinds))
    voters = sum_counts(distinct.counts, of_distinct, len(kinds))
    common = distinct[(-distinct.counts).argsort(kind="stable")[:MOST_COMMON]]
    facts: dict[str, Any] = {
        "title": source.title,
        "origin": source.origin,
        "n_rankings": len(rankings),
        "n_distinct": len(distinct),
        "n_voters": rankings.n_voters,
        "n_items": rankings.n_items,
        "items": list(rankings.items),
        "kinds": dict(zip(kinds.tolist(), rows.tolist(), strict=True)),
        "voters_by_kind": dict(zip(kinds.tolist(), voters.tolist(), strict=True)),
        "largest_count": int(distinct.counts.max()),
        "most_common": [
            {"ballot": words, "voters": voters}
            for words, voters in zip(format_rows(common), common.counts.tolist(), strict=True)
        ],
        "unlisted": source.reading,
    }
    if source.description:
        facts["description"] = source.description
    if source.groups is not None:
        groups, of_row = source.named_groups
        sizes = sum_counts(rankings.counts, of_row, len(groups))
        facts["by"], facts["groups"] = source.by, dict(zip(groups, sizes.tolist(), strict=True))
    return facts


def show(source: Source, facts: dict[str, Any]) -> None:
    """Print the facts for people."""
    screen = console()
    screen.print(source.title, style="bold")
    if source.description:
        screen.print(source.description, style="dim")
    rows = {
        "rankings": f"{plural(facts['n_rankings'], 'row')}, {facts['n_distinct']:,} different, "
        f"{plural(facts['n_voters'], 'voter')}",
        "kinds": ", ".join(f"{number:,} {kind}" for kind, number in facts["kinds"].items()),
        "items": f"{facts['n_items']:,}: {listed(source.rankings.items, SHOWN_ITEMS)}",
        "read as": facts["unlisted"],
    }
    if "groups" in facts:
        groups = facts["groups"].items()
        rows[f"by {source.by}"] = ", ".join(f"{group} {plural(voters, 'voter')}" for group, voters in groups)
    show_facts(screen, rows)
    screen.print("most common:", style="dim")
    width = len(f"{facts['largest_count']:,}")
    for each in facts["most_common"]:
        screen.print(f"  {each['voters']:>{width},} × {each['ballot']}", no_wrap=True, overflow="ellipsis")
