"""``rankernel info``: what is in a file."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rankernel.analysis.phrases import plural
from rankernel.analysis.source import Source
from rankernel.cli.options import File, Reading, Showing
from rankernel.cli.output import console, print_json, show_facts
from rankernel.cli.reading import read
from rankernel.data import row_texts
from rankernel.encoding import printable

MOST_COMMON = 5
SHOWN_ITEMS = 30


def info(reading: Reading, showing: Showing, file: File = None) -> None:
    """Say what is in a file: rankings, items, kinds, multiplicities."""
    source = read(file, reading)
    facts = facts_of(source)
    if showing.json:
        print_json(facts)
    else:
        show(source, facts)


def facts_of(source: Source) -> dict[str, Any]:
    """Return what is to be said of rankings."""
    rankings = source.rankings
    distinct = rankings.unique()
    voters_by_kind: Counter[str] = Counter()
    for kind, voters in zip(rankings.kinds().tolist(), rankings.counts.tolist(), strict=True):
        voters_by_kind[kind] += voters
    common = distinct[(-distinct.counts).argsort(kind="stable")[:MOST_COMMON]]
    facts: dict[str, Any] = {
        "title": source.title,
        "origin": source.origin,
        "n_rankings": len(rankings),
        "n_distinct": len(distinct),
        "n_voters": rankings.n_voters,
        "n_items": rankings.n_items,
        "items": list(rankings.items),
        "kinds": dict(Counter(rankings.kinds().tolist())),
        "voters_by_kind": dict(voters_by_kind),
        "largest_count": int(distinct.counts.max()),
        "most_common": [
            {"ballot": words, "voters": voters}
            for words, voters in zip(row_texts(common), common.counts.tolist(), strict=True)
        ],
        "unlisted": source.reading,
    }
    if source.description:
        facts["description"] = source.description
    if source.groups is not None:
        groups: Counter[str] = Counter()
        for group, voters in zip(source.groups.tolist(), rankings.counts.tolist(), strict=True):
            groups[group] += voters
        facts["by"], facts["groups"] = source.by, dict(groups)
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
        "items": f"{facts['n_items']:,}: {listed(source.rankings.items)}",
        "read as": facts["unlisted"],
    }
    if "groups" in facts:
        groups = facts["groups"].items()
        rows[f"by {source.by}"] = ", ".join(f"{printable(group)} {plural(voters, 'voter')}" for group, voters in groups)
    show_facts(screen, rows)
    screen.print("most common:", style="dim")
    width = len(f"{facts['largest_count']:,}")
    for each in facts["most_common"]:
        screen.print(f"  {each['voters']:>{width},} × {each['ballot']}", no_wrap=True, overflow="ellipsis")


def listed(items: tuple[str, ...]) -> str:
    """Return the names of items, the first ones if there are many."""
    more = f" ... and {len(items) - SHOWN_ITEMS:,} more" if len(items) > SHOWN_ITEMS else ""
    return ", ".join(printable(item) for item in items[:SHOWN_ITEMS]) + more
