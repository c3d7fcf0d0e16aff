"""``rankernel clean``: read, repair, leave out blanks, write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import usage
from rankernel.cli.options import WRITING, File, Reading, Writing
from rankernel.cli.output import check_free, console, print_json, show_facts, steps
from rankernel.cli.reading import read
from rankernel.errors import RankingError
from rankernel.rankings import Rankings
from rankernel.reports.phrases import plural

Merge = Annotated[
    bool, typer.Option("--merge", help="Write equal ballots once, with their count.", rich_help_panel=WRITING)
]


def clean(reading: Reading, writing: Writing, file: File = None, merge: Merge = False) -> None:
    """Read ballots, repair them, leave out blank ones, and write them with a tally of what was changed.

    The ending of the output says how: .csv (one column an item, cells are ranks, and the columns of --by and --id), a
    PrefLib file (.soc .soi .toc .toi .cat), or .blt.
    """
    from rankernel.io.registry import FORMATS

    target = writing.output
    if target is None:
        raise usage("say where to write with -o, such as -o clean.csv")
    ending = Path(target.name.lower().removesuffix(".gz")).suffix
    chosen = next((known for known in FORMATS.values() if known.write and ending in known.endings), None)
    if chosen is None or chosen.write is None:
        endings = ", ".join(end for known in FORMATS.values() if known.write for end in known.endings)
        raise usage(f"-o {printable(target.name)} ends in none of {endings}")
    check_free(target, writing.force, file)
    source = read(file, reading)
    rankings = source.rankings
    if not isinstance(rankings, Rankings):
        raise RankingError(f"{source.origin} holds pairs, which have nothing to be repaired; clean is for ballots")
    more: dict[str, Any] = {}
    if chosen.name == "table" and not merge:
        more["labels"] = source.columns
    elif source.columns and not merge:
        raise usage(f"--by and --id are kept in .csv only; {printable(target.name)} has no columns for them")
    with steps(None, "Writing"):
        chosen.write(rankings.unique() if merge else rankings[:], target, overwrite=writing.force, **more)
    facts = {
        "data": f"{source.title}: {plural(rankings.n_voters, 'voter')}, {plural(rankings.n_items, 'item')}",
        "read as": source.reading,
        "changed": source.description or "nothing",
        "written": printable(target),
    }
    if writing.json:
        print_json(facts | tally(rankings))
    else:
        show_facts(console(), facts)


def tally(rankings: Any) -> dict[str, Any]:
    """Return what was changed, for machines."""
    from dataclasses import asdict

    repairs = getattr(rankings, "repairs", None)
    return {"repairs": asdict(repairs) if repairs is not None else {}}
