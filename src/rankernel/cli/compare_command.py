"""``rankernel test``: whether sets of rankings differ significantly, which of them, and in which items."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from rankernel._utils.checks import printable
from rankernel.cli.options import (
    COMPUTING,
    Computing,
    Reading,
    Showing,
    align_items,
    option,
    parse_computing,
    read_battles,
    read_source,
)
from rankernel.cli.terminal import UsageError, console, print_facts, print_json, print_table, progress
from rankernel.data import concat, with_counts
from rankernel.errors import RankingError, ReadingWarning
from rankernel.rankings import as_rankings
from rankernel.reports.ballots import Source
from rankernel.reports.text import effect_text, plural, pvalue_text, round_numbers

if TYPE_CHECKING:
    from rankernel.data import Data
    from rankernel.gram.plan import MethodLike
    from rankernel.kernels.base import Kernel
    from rankernel.reports.groups import Comparison, GroupComparisons
    from rankernel.stats.differences import Differences

MAX_DISTINCT = 20_000  # rows of a Gram matrix of 3 GB; of more, voters are sampled
MAX_LINES = 30  # pairs of groups that are printed
MAX_DIFFERENCES = 6  # items, and pairs of items, that are printed
MAX_PAIRS = 2  # pairs of many groups whose differences are printed

FILES_HELP = "Two files; or one with --by; or none for the bundled example."
Files = Annotated[list[Path] | None, typer.Argument(metavar="FILE", help=FILES_HELP, show_default=False)]
PAIRED_HELP = "Column of judges who ranked once in each of two groups: a paired test."
SEQUENTIAL_HELP = (
    "Rows are in time order: a test of two groups that may be repeated whenever rows are added to the file. A new item "
    "changes all earlier values and begins a new test."
)
OVER_HELP = "Items of two files with different items: those in both files, or all, free where a file lacks them."


@dataclass(frozen=True)
class Testing:
    """Which groups are tested, and how."""

    paired: str | None = option("--paired COLUMN", PAIRED_HELP, COMPUTING)
    sequential: bool = option("--sequential", SEQUENTIAL_HELP, COMPUTING, default=False)
    permutations: int = option("--permutations N", "Number of permutations.", COMPUTING, 999, min=1)
    over: str = option("--over NAME", OVER_HELP, COMPUTING, "intersection", choices=("intersection", "union"))


def compare(reading: Reading, computing: Computing, showing: Showing, testing: Testing, files: Files = None) -> None:
    """Test whether sets of rankings have the same distribution, which of them differ, and in which items.

    Compares two files, or the groups of one file: all together, then pair by pair with Holm's correction. The kernel is
    that of the report; with --kernel auto, two groups are compared by an aggregated test of five Mallows kernels around
    the median heuristic. Comparisons are compared within pairs of items, with the Kendall kernel.
    """
    kernel, method = parse_computing(computing, auto=True)
    paired, sequential = testing.paired, testing.sequential
    if sequential and paired:
        raise UsageError("--sequential compares all rows in their order; leave out --paired")
    source, items = read_groups(files or [], reading, paired, testing.over, battles=not (paired or sequential))
    read_as = source.reading if source.comparison_groups is None else source.wording.say("reading_battles")
    facts = {"data": source.title, "read as": read_as, **({"items": items} if items else {})}
    if sequential:
        compare_sequentially(source, kernel, method, facts, showing)
        return
    from rankernel.reports.clusters import Settings
    from rankernel.reports.groups import compare_battles, groups_to_compare
    from rankernel.reports.summary import group_numbers

    settings = Settings(method=method, n_permutations=testing.permutations, rng=computing.seed)
    groups = groups_to_compare(source, None)
    with progress(f"Comparing {len(groups)} groups"):
        if source.comparison_groups is None:
            found = compare_rankings(source, groups, kernel, paired, settings)
        elif computing.kernel in (Computing().kernel, "auto"):
            found = compare_battles(source, groups, settings)
        else:
            raise UsageError("--kernel is for rankings; comparisons are tested with the Kendall kernel")
    if found is None:
        raise RankingError(f"column {source.group_name} has no two groups of two voters; a test needs two groups")
    facts |= {"test": found.joint.method, "kernel": kernel_text(found.joint)}
    if found.n_tested < sum(found.sizes.values()):
        facts["sample"] = f"random samples of {found.n_tested:,} of {plural(sum(found.sizes.values()), 'voter')}"
    if showing.json:
        print_json(facts | {"seed": computing.seed} | group_numbers(found))
    else:
        print_comparisons(facts | {"seed": str(computing.seed)}, source, found)


# ---------------------------------------------------------------------- groups


def read_groups(
    files: list[Path], reading: Reading, paired: str | None, over: str, battles: bool
) -> tuple[Source, str]:
    """Return the groups of a file, or two files as groups, and a description of the items if those of two differ."""
    if len(files) > 2 or (len(files) == 2 and reading.by):
        raise UsageError("give two files, or one file with --by COLUMN")
    if len(files) == 1 and not reading.by:
        raise UsageError("give a second file, or --by COLUMN to compare the groups of one file")
    if len(files) < 2:
        labels = [paired] if paired else []
        with warnings.catch_warnings():
            if battles:  # rankings of judges are not tested if comparisons are
                warnings.simplefilter("ignore", ReadingWarning)
            source = read_source(files[0] if files else None, reading, *labels, battles=battles)
        if len(source.named_groups[0]) < 2:
            raise RankingError(f"column {source.group_name} has only one value; a test needs two groups")
        return source, ""
    if paired:
        raise UsageError("--paired is for the groups of one file: give --by COLUMN")
    both = join_battles(files, reading) if battles else None
    if both is not None:
        return both, ""
    sources = [read_source(file, reading) for file in files]
    names = [source.title for source in sources]
    if names[0] == names[1]:
        names = [str(file) for file in files] if files[0] != files[1] else [f"{names[0]} (1)", f"{names[0]} (2)"]
    aligned, items = align_items(sources, over)
    groups = np.repeat(names, [len(data) for data in aligned])
    title = " and ".join(dict.fromkeys(source.title for source in sources))
    return Source(concat(aligned), title, group_name="file", groups=groups), items


def join_battles(files: list[Path], reading: Reading) -> Source | None:
    """Return two files of comparisons as groups of comparisons; None if they contain rankings."""
    from rankernel.comparisons import Comparisons

    found = [read_battles(file, reading) for file in files]
    names = [file.name if files[0].name != files[1].name else str(file) for file in files]
    columns = [
        (np.array(data.items)[data.first], np.array(data.items)[data.second], data.outcome, data.weights)
        for data in found
        if data is not None
    ]
    if len(columns) < 2:
        return None
    first, second, outcome, weights = (np.concatenate(column) for column in zip(*columns, strict=True))
    labels = {"file": np.repeat(names, [len(column[0]) for column in columns])}
    joined = Comparisons.from_arrays(first, second, outcome, weights=weights, labels=labels)
    return Source.of(joined, "file", title=" and ".join(names))


def compare_rankings(
    source: Source, groups: list[int], kernel: Kernel | None, paired: str | None, settings: Any
) -> GroupComparisons | None:
    """Return the comparison of groups of voters; None if there are fewer than two."""
    from rankernel.kernels import Mallows
    from rankernel.reports.ballots import distinct_ballots
    from rankernel.reports.groups import compare_groups, one_comparison

    ballots, names = distinct_ballots(source), source.named_groups[0]
    options = {"n_permutations": settings.n_permutations, "rng": settings.rng, "method": settings.method}
    resolved = None if kernel is None else kernel.resolve(source.rankings)
    if paired:
        from rankernel.stats.paired import paired_test

        first, second = judges_in_order(source, paired)
        return one_comparison(paired_test(first, second, resolved, **options), ballots, names, settings)
    if kernel is None and len(groups) == 2:
        from rankernel.stats.mmd import mmd_aggregated_test

        first, second = (ballots.of_group(group) for group in groups)
        result = mmd_aggregated_test(first, second, **options)
        return one_comparison(result, ballots, [names[group] for group in groups], settings)
    chosen = replace(settings, kernel=resolved or Mallows("median"))
    return compare_groups(ballots, groups, chosen, max_distinct=MAX_DISTINCT)


def judges_in_order(source: Source, column: str) -> list[Data]:
    """Return the rankings of two groups, each in the order of the names of their judges, who are the same."""
    groups, of_row = source.named_groups
    if len(groups) != 2:
        raise UsageError(f"--paired compares two groups, and there are {len(groups)}; select two with --only")
    judges, rows_of_group = source.rankings.labels[column].astype(str), []
    for number, name in enumerate(groups):
        rows = np.flatnonzero(of_row == number)
        rows = rows[np.argsort(judges[rows], kind="stable")]
        for judge, following in pairwise(judges[rows].tolist()):
            if judge == following:
                raise RankingError(f"judge {printable(judge)!r} has several rows in group {name!r}; each may have one")
        rows_of_group.append(rows)
    unpaired = sorted(set(judges[rows_of_group[0]]) ^ set(judges[rows_of_group[1]]))
    if unpaired:
        raise RankingError(f"{source.origin}: judge {printable(unpaired[0])!r} is in only one group; remove such rows")
    return [source.rankings[rows] for rows in rows_of_group]


def compare_sequentially(
    source: Source, kernel: Kernel | None, method: MethodLike, facts: dict[str, str], showing: Showing
) -> None:
    """Test two groups whose rows are in time order: the first row of one with the first row of the other, and so on."""
    from rankernel.stats.sequential import SequentialMMDTest

    groups, of_row = source.named_groups
    if len(groups) != 2:
        raise UsageError(f"--sequential compares two groups, and there are {len(groups)}; select two with --only")
    voters = {}
    for number, name in enumerate(groups):
        data = source.rankings[of_row == number]
        rows = np.repeat(np.arange(len(data)), data.counts)
        voters[name] = with_counts(as_rankings(data, name)[rows], np.ones(len(rows)))
    n_pairs = min(map(len, voters.values()))
    test = SequentialMMDTest(kernel, method=method).update(*(data[:n_pairs] for data in voters.values()))
    facts |= {
        "test": f"sequential MMD test of {n_pairs:,} pairs of rows in the order of the file",
        "kernel": round_numbers(str(test.kernel)),
        "unpaired rows": ", ".join(f"{len(data) - n_pairs:,} of {name}" for name, data in voters.items()),
    }
    if showing.json:
        names = ("evalue", "pvalue", "rejected", "stopped_at", "n_observations")
        print_json(facts | {name: getattr(test, name) for name in names} | {"n_items": source.rankings.n_items})
        return
    screen = console()
    print_facts(screen, facts)
    found = f"differ, first after {test.stopped_at:,} pairs" if test.rejected else "do not differ significantly so far"
    pvalue = f"p = {test.pvalue:.2g}, e-value {test.evalue:.3g}"
    valid = f"(valid at any time, as long as the items are the same {source.rankings.n_items})"
    screen.print(f"\n{printable(' and '.join(voters))} {found}: {pvalue} {valid}", style="bold")


# ---------------------------------------------------------------------- text


def print_comparisons(facts: dict[str, str], source: Source, found: GroupComparisons) -> None:
    """Print the tests of groups as text."""
    from rankernel.reports.groups import ALPHA

    screen = console()
    print_facts(screen, facts)
    subject, words = f"The {found.n_groups} groups", source.group_wording
    if found.n_groups == 2:
        pair = found.pairs[0]
        subject = f"{pair.first} ({words.count_voters(pair.n_voters[0])}) and {pair.second} ({pair.n_voters[1]:,})"
    verdict = "differ" if found.joint.pvalue <= ALPHA else "do not differ significantly"
    screen.print(f"\n{printable(f'{subject} {verdict}: {joint_text(found)}')}\n", style="bold")
    if found.n_groups > 2:
        rows = [["groups", words.nouns["voters"], "p-value, corrected", "effect (95% interval)", ""]]
        print_table(screen, rows + [pair_cells(found, pair) for pair in found.pairs[:MAX_LINES]])
        if len(found.pairs) > MAX_LINES:
            screen.print(f"and {len(found.pairs) - MAX_LINES:,} more pairs of groups; --json prints all of them")
        screen.print()
    for between in shown_differences(found):
        if found.n_groups > 2 and len(between.groups) == 2:
            screen.print(printable(f"Differences between {between.groups[0]} and {between.groups[1]}:"), style="bold")
        for table in between.tables():
            if len(table) == 1:
                continue
            print_table(screen, table[: MAX_DIFFERENCES + 1])
            screen.print()


def shown_differences(found: GroupComparisons) -> list[Differences]:
    """Return the differences between all groups or, of many, between the groups that differ most significantly."""
    from rankernel.reports.groups import certain_differences
    from rankernel.stats.differences import MAX_COLUMNS

    between = [pair.differences for pair in found.details[:MAX_PAIRS]]
    if found.differences is not None and (found.n_groups <= MAX_COLUMNS or not between):
        between = [found.differences]
    return [certain_differences(each) for each in between if each is not None]


def kernel_text(result: Any) -> str:
    """Return the kernel of a test; of an aggregated test all kernels, and that of the effect."""
    kernels = getattr(result, "kernels", (result.kernel,))
    effect = f"; effect with {result.kernel}" if len(kernels) > 1 else ""
    return round_numbers(", ".join(map(str, kernels)) + effect)


def joint_text(found: GroupComparisons) -> str:
    """Return p-value, statistic and effect of the test of all groups; at its lower bound, both p-values."""
    from rankernel.stats.base import is_splitting_bound, mcse_text

    result = found.joint
    parts = [pvalue_text(result.pvalue, found.n_permutations)]
    if found.at_bound(result.pvalue):
        at_bound = is_splitting_bound(result.moment_pvalue)
        parts.append(pvalue_text(result.moment_pvalue, 0, from_moments=True, at_bound=at_bound))
    if found.n_groups == 2 and not hasattr(result, "kernels"):
        parts.append(f"squared MMD {result.statistic:.4g}{mcse_text(result.statistic_mcse)}")
    effect = effect_text(result.effect, result.effect_interval)
    return ", ".join([*parts, f"effect {effect}{mcse_text(100 * result.effect_mcse)}"])


def pair_cells(found: GroupComparisons, pair: Comparison) -> list[str]:
    """Return the cells of a pair of groups; a p-value at the lower bound of permutations is that from moments."""
    from rankernel.reports.summary import pair_pvalue
    from rankernel.stats.base import is_splitting_bound, mcse_text

    pvalue = pair_pvalue(found, pair)
    if found.at_bound(pair.pvalue) and np.isfinite(pair.adjusted_moment_pvalue):
        at_bound = is_splitting_bound(pair.moment_pvalue)
        pvalue = pvalue_text(pair.adjusted_moment_pvalue, 0, from_moments=True, at_bound=at_bound)

    sizes = " and ".join(f"{n:,}" for n in pair.n_voters)
    effect = effect_text(pair.effect, pair.effect_interval, "") + mcse_text(100 * pair.effect_mcse)
    result = "significant" if pair.differs else "not significant"
    return [f"{pair.first} and {pair.second}", sizes, pvalue, effect, result]
