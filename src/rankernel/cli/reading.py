"""From the file names and options of a command to rankings, kernel and method."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError
from rankernel.cli.kernel_text import parse_kernel, parse_method
from rankernel.cli.options import Computing, Reading, option_of
from rankernel.cli.output import SHOWN_GROUPS, listed, progress
from rankernel.data import Data, has_ordered_pair, select_items
from rankernel.errors import RankingError
from rankernel.rankings import Rankings
from rankernel.reports.ballots import Source
from rankernel.reports.text import plural

if TYPE_CHECKING:
    from rankernel.gram.methods import MethodLike
    from rankernel.kernels.base import Kernel
    from rankernel.reports.summary import Summary

MAX_NAMES = 8  # in a message
ELECTION_WORDS = ("election", "mayor", "council", "ward", "senate", "leader", "supervisor", "cast vote", "blt", "seats")


# ---------------------------------------------------------------------- rankings


def read_source(file: Path | None, reading: Reading, *labels: str) -> Source:
    """Return the rankings of a file, by default the bundled example, with their groups and further label columns."""
    if reading.only and file is not None and reading.by is None:
        raise UsageError("--only selects groups of a column: give --by COLUMN, too")
    with progress(None, "Reading"):
        source = bundled_example(reading, labels) if file is None else file_source(file, reading, labels)
        return select_groups(source, reading.only) if reading.only else source


def file_source(file: Path, reading: Reading, labels: tuple[str, ...]) -> Source:
    """Return the rankings of a file with its title, description and groups."""
    from rankernel.io.registry import read

    columns = dict.fromkeys([*([reading.by] if reading.by else []), *reading.options.get("label_columns", []), *labels])
    data = read(file, **reading.options | ({"label_columns": list(columns)} if columns else {}))
    about = data.source
    sentences = [f"Read as {about.format}."]
    if about.ignored:
        sentences.append(f"Columns ignored: {about.ignored_text}.")
    if about.repairs:
        sentences.append(f"Repaired: {about.repairs}.")
    n_cycles = getattr(data, "n_contradicting", 0)
    if n_cycles:
        sentences.append(f"{plural(n_cycles, 'user has', 'users have')} cyclic preferences, read as ties.")
    title = printable(about.title or file.name)
    return Source(
        data,
        title,
        printable(file.name),
        " ".join(sentences),
        printable(reading.by or ""),
        data.labels[reading.by] if reading.by else None,
        reading.options.get("unlisted", "last"),
        data.labels,
        guess_noun(title, about.format, data.items),
        n_approve_all=about.n_all_in_first,
        n_seats=about.seats,
    )


def bundled_example(reading: Reading, labels: tuple[str, ...]) -> Source:
    """Return the bundled example, grouped by district or bloc."""
    from rankernel.datasets import load_example

    for name in reading.options:
        raise UsageError(f"{option_of(name)} is for a file; the bundled example has no options")
    if labels:
        raise UsageError(f"the bundled example has no column {printable(labels[0])!r}; name a file")
    example = load_example()
    groups = {"district": example.districts, "group": example.groups}
    column = reading.by or "district"
    if column not in groups:
        raise UsageError(f"--by {printable(column)}: the bundled example has the groups {', '.join(groups)}")
    description = " ".join(example.description.split())
    title = "The council election of Nowhere Bay"
    return Source(example.rankings, title, "the bundled example", description, column, groups[column], noun="candidate")


def select_groups(source: Source, wanted: list[str]) -> Source:
    """Return the rows of some groups."""
    groups, of_row = source.named_groups
    for name in wanted:
        if name not in groups:
            known = listed(groups, SHOWN_GROUPS)
            raise UsageError(
                f"--only: there is no group {printable(name)!r} in {source.group_name}; the groups are {known}"
            )
    rows = np.isin(of_row, [groups.index(name) for name in wanted])
    columns = {name: values[rows] for name, values in source.columns.items()}
    assert source.groups is not None
    return dataclasses.replace(source, rankings=source.rankings[rows], groups=source.groups[rows], columns=columns)


# ---------------------------------------------------------------------- two files with different items


def align_items(sources: list[Source], over: str) -> tuple[list[Data], str]:
    """Return the rankings of two sources over the same items, and a description if the items differ."""
    first, second = (source.rankings for source in sources)
    shared = [item for item in first.items if item in second.items]
    unshared = [[item for item in a.items if item not in b.items] for a, b in ((first, second), (second, first))]
    if not any(unshared):
        return [first, over_items(second, first.items)], ""
    missing = "; ".join(
        f"only in {source.origin}: {listed(items, MAX_NAMES)}"
        for source, items in zip(sources, unshared, strict=True)
        if items
    )
    if over == "union":
        union = (*first.items, *unshared[1])
        description = f"all {len(union)} items of both files (--over union), free where a file lacks them; {missing}"
        return [over_items(data, union) for data in (first, second)], description
    if len(shared) < 2:
        raise RankingError(
            f"the files have {plural(len(shared), 'item')} in common ({missing}); --over union compares them over all "
            "items, and --fold-case merges names that differ only in case or spaces"
        )
    description = f"the {len(shared)} items in both files (--over intersection); {missing}"
    aligned = []
    for source in sources:
        data = over_items(source.rankings, tuple(shared))
        informative = has_ordered_pair(data)
        if not informative.any():
            raise RankingError(f"no row of {source.origin} orders the items in common; give --over union")
        if not informative.all():
            n_dropped = int(data.counts[~informative].sum())
            description += f"; dropped: {plural(n_dropped, 'voter')} of {source.origin} who do not order these items"
        aligned.append(data[informative])
    return aligned, description


def over_items(data: Data, items: tuple[str, ...]) -> Data:
    """Return the rows over the given items; items that the data lack are free."""
    known = select_items(data, [data.items.index(item) for item in items if item in data.items])
    if len(known.items) == len(items):
        return known
    return known.with_items(items, unlisted="free") if isinstance(known, Rankings) else known.with_items(items)


# ---------------------------------------------------------------------- rankings with kernel and method


@dataclass(frozen=True, eq=False)
class Job:
    """The rankings, the kernel and the method of a command."""

    source: Source
    kernel: Kernel
    method: MethodLike

    def facts(self, values: str) -> dict[str, str]:
        """Return a description of the data and of how kernel values are computed."""
        from rankernel.reports.text import round_numbers

        rankings, words = self.source.rankings, self.source.wording
        return {
            "data": f"{self.source.title}: {words.count_voters(rankings.n_voters)}, "
            f"{words.count_items(rankings.n_items)}",
            "read as": self.source.reading,
            "kernel": round_numbers(str(self.kernel)),
            "values": values,
        }


def parse_computing(computing: Computing, auto: bool = False) -> tuple[Kernel | None, MethodLike]:
    """Return the kernel and the method of a command; with ``auto``, the kernel "auto" is None."""
    with progress(None, "Starting"):  # the numerical modules are imported here
        kernel = None if auto and computing.kernel == "auto" else parse_kernel(computing.kernel)
        return kernel, parse_method(computing.method, computing.seed)


def read_job(file: Path | None, reading: Reading, computing: Computing) -> Job:
    """Return the job of a command; the options are checked before the file is read."""
    kernel, method = parse_computing(computing)
    assert kernel is not None
    source = read_source(file, reading)
    with progress(None, "Kernel"):
        return Job(source, kernel.resolve(source.rankings), method)


def summarize_job(job: Job, seed: int, **settings: Any) -> Summary:
    """Return the summary of a job, with a progress bar."""
    from rankernel.reports.summary import Settings, n_steps, summarize

    chosen = Settings(kernel=job.kernel, method=job.method, rng=seed, **settings)
    with progress(None, "Ballots"):
        total = n_steps(job.source, chosen)
    with progress(total, "Ballots") as step:
        return summarize(job.source, chosen, step)


def guess_noun(title: str, file_format: str, items: Iterable[str] = ()) -> str:
    """Return "candidate" if a file appears to be about an election, else "item".

    Examples
    --------
    >>> guess_noun("2006 Burlington Mayoral Election", "PrefLib"), guess_noun("Sushi", "PrefLib")
    ('candidate', 'item')
    >>> guess_noun("APA", "PrefLib", ["Candidate 1", "Candidate 2"])
    'candidate'
    """
    description = f"{title} {file_format}".casefold()
    named = [item.casefold().startswith("candidate") for item in items]
    return "candidate" if any(word in description for word in ELECTION_WORDS) or (named and all(named)) else "item"
