"""``rankernel info`` and ``rankernel clean``: describe a file, and write it with its repairs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError
from rankernel.cli.options import OUTPUT, File, Reading, Showing, Writing
from rankernel.cli.output import check_target, console, listed, print_facts, print_json, progress
from rankernel.cli.reading import read_source
from rankernel.data import format_rows, with_counts
from rankernel.errors import RankingError
from rankernel.rankings import Rankings, sum_counts
from rankernel.reports.ballots import Source
from rankernel.reports.text import plural

N_MOST_COMMON = 5
SHOWN_ITEMS = 30
Merge = Annotated[
    bool, typer.Option("--merge", help="Write equal ballots once, with their count.", rich_help_panel=OUTPUT)
]


def info(reading: Reading, showing: Showing, file: File = None) -> None:
    """Describe a file: rankings, items, kinds of rankings, most common ballots."""
    source = read_source(file, reading)
    with progress(None, "Counting"):
        facts = describe(source)
    if showing.json:
        print_json(facts)
    else:
        print_description(source, facts)


def describe(source: Source) -> dict[str, Any]:
    """Return the numbers that describe rankings."""
    rankings = source.rankings
    first, inverse = rankings.unique_indices()
    distinct = with_counts(rankings[first], sum_counts(rankings.counts, inverse, len(first)))
    kinds, kind_of_distinct = np.unique(distinct.kinds(), return_inverse=True)
    n_rows = np.bincount(kind_of_distinct[inverse], minlength=len(kinds))
    n_voters = sum_counts(distinct.counts, kind_of_distinct, len(kinds))
    common = distinct[(-distinct.counts).argsort(kind="stable")[:N_MOST_COMMON]]
    facts: dict[str, Any] = {
        "title": source.title,
        "origin": source.origin,
        "n_rankings": len(rankings),
        "n_distinct": len(distinct),
        "n_voters": rankings.n_voters,
        "n_items": rankings.n_items,
        "items": list(rankings.items),
        "kinds": dict(zip(kinds.tolist(), n_rows.tolist(), strict=True)),
        "voters_by_kind": dict(zip(kinds.tolist(), n_voters.tolist(), strict=True)),
        "largest_count": int(distinct.counts.max()),
        "most_common": [
            {"ballot": text, "voters": count}
            for text, count in zip(format_rows(common), common.counts.tolist(), strict=True)
        ],
        "unlisted": source.reading,
    }
    if source.description:
        facts["description"] = source.description
    if source.groups is not None:
        groups, of_row = source.named_groups
        sizes = sum_counts(rankings.counts, of_row, len(groups))
        facts["by"], facts["groups"] = source.group_name, dict(zip(groups, sizes.tolist(), strict=True))
    return facts


def print_description(source: Source, facts: dict[str, Any]) -> None:
    """Print the description of rankings as text."""
    screen = console()
    screen.print(source.title, style="bold")
    if source.description:
        screen.print(source.description, style="dim")
    rows = {
        "rankings": f"{plural(facts['n_rankings'], 'row')}, {facts['n_distinct']:,} distinct, "
        f"{plural(facts['n_voters'], 'voter')}",
        "kinds": ", ".join(f"{number:,} {kind}" for kind, number in facts["kinds"].items()),
        "items": f"{facts['n_items']:,}: {listed(source.rankings.items, SHOWN_ITEMS)}",
        "read as": facts["unlisted"],
    }
    if "groups" in facts:
        groups = facts["groups"].items()
        rows[f"by {source.group_name}"] = ", ".join(f"{group} {plural(voters, 'voter')}" for group, voters in groups)
    print_facts(screen, rows)
    screen.print("most common:", style="dim")
    n_digits = len(f"{facts['largest_count']:,}")
    for each in facts["most_common"]:
        screen.print(f"  {each['voters']:>{n_digits},} × {each['ballot']}", no_wrap=True, overflow="ellipsis")


def clean(reading: Reading, writing: Writing, file: File = None, merge: Merge = False) -> None:
    """Read ballots, repair them, drop blank ones, and write them with the number of repairs.

    The suffix of the output selects the format: .csv (one column per item with ranks, and the columns of --by and
    --labels), PrefLib (.soc .soi .toc .toi .cat), or .blt.
    """
    from rankernel.io.registry import FORMATS
    from rankernel.io.text_files import Repairs

    target = writing.output
    if target is None:
        raise UsageError("give the file to write with -o, such as -o clean.csv")
    suffix = Path(target.name.lower().removesuffix(".gz")).suffix
    writers = {suffix: known for known in FORMATS.values() if known.write for suffix in known.suffixes}
    if suffix not in writers:
        raise UsageError(f"-o {printable(target.name)} does not end in {', '.join(writers)}")
    check_target(target, writing.force, file)
    source = read_source(file, reading)
    rankings, chosen = source.rankings, writers[suffix]
    if not isinstance(rankings, Rankings):
        raise RankingError(f"{source.origin} holds comparisons, which need no repairs; clean is for ballots")
    labels: dict[str, Any] = {}
    if chosen.name == "table" and not merge:
        labels["labels"] = source.columns
    elif source.columns and not merge:
        raise UsageError(
            f"{printable(target.name)} has no columns for --by and --labels; write a .csv, or give --merge"
        )
    assert chosen.write is not None
    with progress(None, "Writing"):
        chosen.write(rankings.unique() if merge else rankings, target, overwrite=writing.force, **labels)
    repairs = Repairs() if rankings.source is None else rankings.source.repairs
    words = source.wording
    facts: dict[str, Any] = {
        "data": f"{source.title}: {words.count_voters(rankings.n_voters)}, {words.count_items(rankings.n_items)}",
        "read as": source.reading,
        "repaired": asdict(repairs) if writing.json else str(repairs),
        "written": printable(target),
    }
    if writing.json:
        print_json(facts)
    else:
        print_facts(console(), facts)
