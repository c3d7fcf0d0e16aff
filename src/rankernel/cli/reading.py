"""From the name of a file to rankings, with what is known of them beside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rankernel.analysis.source import Source
from rankernel.cli.failures import usage
from rankernel.cli.options import Reading
from rankernel.cli.output import steps
from rankernel.encoding import Unlisted, printable

if TYPE_CHECKING:
    from rankernel.io import CsvRankings

TABLES = (".csv", ".tsv", ".txt")
ORDERS = (".soc", ".soi", ".toc", ".toi", ".cat")


def read(file: Path | None, how: Reading, judge: str | None = None) -> Source:
    """Return the rankings in a file; without a file, the bundled example. ``judge`` is a column to keep, too."""
    with steps(None, "Reading"):
        return source_of(file, how, judge)


def source_of(file: Path | None, how: Reading, judge: str | None) -> Source:
    """Return the rankings of a file by what its name says that it is."""
    only_csv = {
        "--by": how.by,
        "--count": how.count,
        "--ignore": how.ignore,
        "--tie": how.separator,
        "--paired": judge,
    }
    if file is None:
        return bundled(how, only_csv)
    kind = Path(file.name.lower().removesuffix(".gz")).suffix
    if kind in TABLES:
        return table(file, how, judge)
    given = [name for name, value in only_csv.items() if value]
    if given:
        raise usage(f"{given[0]} is for CSV files; {printable(file.name)} has no named columns")
    if kind not in ORDERS:
        raise usage(
            f"{printable(file.name)} is no kind of file that is known; use {', '.join((*ORDERS, '.csv'))}, or .gz"
        )
    return preflib(file, cast(Unlisted, how.unlisted))


def bundled(how: Reading, only_csv: dict[str, Any]) -> Source:
    """Return the bundled example, which has two kinds of groups."""
    from rankernel.datasets import load_example

    given = [name for name, value in only_csv.items() if value and name != "--by"]
    if given or how.unlisted != "last":
        raise usage(f"{given[0] if given else '--unlisted free'} is for a file; the bundled example is read as it is")
    example = load_example()
    groups = {"district": example.districts, "group": example.groups}
    if how.by is not None and how.by not in groups:
        raise usage(f"the bundled example has no column {printable(how.by)!r}; its groups are {', '.join(groups)}")
    column = how.by or "district"
    return Source(
        example.rankings,
        "The council election of Nowhere Bay",
        "the bundled example",
        " ".join(example.description.split()),
        column,
        groups[column],
    )


def preflib(file: Path, unlisted: Unlisted) -> Source:
    """Return the rankings of a PrefLib file, named by its header."""
    from rankernel.io.files import read_text
    from rankernel.io.preflib import read_header, read_preflib

    rankings = read_preflib(file, unlisted)
    header, _, _ = read_header(read_text(file), file)
    title, _ = header.get("TITLE", ("", 0))
    return Source(rankings, printable(title or file.name), printable(file.name), unlisted=unlisted)


def table(file: Path, how: Reading, judge: str | None = None) -> Source:
    """Return the rankings of a table."""
    from rankernel.io import read_csv

    rankings: CsvRankings = read_csv(
        file,
        layout=cast(Any, how.layout),
        count=how.count,
        labels=[column for column in (how.by, judge) if column],
        ignore=how.ignore or [],
        unlisted=cast(Unlisted, how.unlisted),
        separator=how.separator,
        overvotes="tie" if how.separator else "stop",
    )
    mended = f"Mended while reading: {rankings.repairs}." if rankings.repairs else ""
    groups = rankings.labels[how.by] if how.by else None
    name = printable(file.name)
    return Source(rankings, name, name, mended, printable(how.by or ""), groups, how.unlisted)
