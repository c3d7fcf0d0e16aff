"""``rankernel test``: whether sets of rankings differ by more than chance, which, and in what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from rankernel._utils.checks import printable
from rankernel.cli.common_items import Over, over_common_items
from rankernel.cli.failures import usage
from rankernel.cli.kernel_text import parse_kernel, parse_method
from rankernel.cli.options import COMPUTING, Computing, Permutations, Reading, Showing
from rankernel.cli.output import SHOWN_GROUPS, console, listed, print_json, show_facts, steps
from rankernel.cli.reading import read
from rankernel.errors import RankingError
from rankernel.reports.source import Source

if TYPE_CHECKING:
    from rankernel.data import Data
    from rankernel.stats.differences import Differences
    from rankernel.stats.k_sample import PairwiseResult

MOST_DISTINCT = 20_000  # a matrix of 3 GB
LEVEL = 0.05
MOST_LINES = 30  # pairs of groups that are printed
MOST_DIFFERENCES = 6  # items, and pairs of items
MOST_PAIRS = 2  # of many groups, with what they differ in

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE", help="Two files; or one with --by; or none for the bundled example.", show_default=False
    ),
]
Sample = Annotated[
    int | None,
    typer.Option("--sample", min=2, help="Take this many voters of each at random.", rich_help_panel=COMPUTING),
]
Pair = Annotated[
    tuple[str, str] | None,
    typer.Option("--pair", metavar="A B", help="Compare these two groups only.", show_default=False),
]
Paired = Annotated[
    str | None,
    typer.Option(
        "--paired",
        metavar="COLUMN",
        help="CSV column that names the judge: each ranked once in either group, and is compared with itself.",
        show_default=False,
    ),
]


def compare_sets(
    reading: Reading,
    showing: Showing,
    files: Files = None,
    pair: Pair = None,
    paired: Paired = None,
    computing: Computing = Computing(kernel="auto"),  # noqa: B008 - a frozen value
    permutations: Permutations = 1000,
    sample: Sample = None,
    over: Over = "intersection",
) -> None:
    """Test whether sets of rankings come from one distribution, which of them differ, and in what.

    Compares two files, or the groups of one file: all together, then pair by pair, corrected by Holm's method. With
    --kernel auto, two groups are compared by five Mallows kernels around the median heuristic, which make one test of
    the right level; more groups by the one at the median.
    """
    wanted: Any = "auto" if computing.kernel == "auto" else parse_kernel(computing.kernel)
    how, seed = parse_method(computing.method, computing.seed), computing.seed
    if paired and sample:
        raise usage("--paired compares each judge with itself; give either --sample or --paired")
    named, sources, items = samples(files or [], reading, paired, over)
    named = chosen(named, pair)
    with steps(None, f"Comparing {len(named)} groups"):
        if sample:
            named = {name: some(rankings, sample, seed) for name, rankings in named.items()}
        check_size(named)
        if paired:
            found = paired_answer(named, sources[0], paired, wanted, how, permutations, seed)
        elif len(named) == 2:
            found = answer_of_two(named, wanted, how, permutations, seed)
        else:
            found = answer_of_many(named, wanted, how, permutations, seed)
    facts = {
        "data": " and ".join(dict.fromkeys(f"{source.title}" for source in sources)),
        "read as": "; ".join(dict.fromkeys(source.reading for source in sources)),
        **({"items": items} if items else {}),
        "test": found.method,
        "kernel": found.kernel,
        "seed": str(seed),
    }
    if sample:
        facts["sample"] = f"at most {sample:,} voters of each, taken at random"
    if showing.json:
        told = {"all": found.omnibus, "comparisons": found.comparisons, "differences": found.differences_by_name()}
        print_json(facts | told)
    else:
        show(facts, found, permutations)


def samples(
    files: list[Path], reading: Reading, judge: str | None, over: str
) -> tuple[dict[str, Data], list[Source], str]:
    """Return the sets to compare by name, where they come from, and over which items, if that needs words."""
    if len(files) > 2 or (len(files) == 2 and reading.by):
        raise usage("give two files, or one file with --by COLUMN")
    if len(files) == 1 and not reading.by:
        raise usage("give a second file, or --by COLUMN to compare the groups of one")
    if len(files) == 2:
        if judge:
            raise usage("--paired is for the groups of one file: give --by COLUMN, too")
        sources = [read(file, reading) for file in files]
        names = [source.title for source in sources]
        if names[0] == names[1]:
            names = [str(file) for file in files] if files[0] != files[1] else [f"{names[0]} (1)", f"{names[0]} (2)"]
        aligned, items = over_common_items(sources, over)
        return dict(zip(names, aligned, strict=True)), sources, items
    source = read(files[0] if files else None, reading, judge)
    groups, of_row = source.named_groups
    if len(groups) < 2:
        raise RankingError(f"column {source.by} has one value only; a test needs two groups")
    return {name: source.rankings[of_row == number] for number, name in enumerate(groups)}, [source], ""


def chosen(named: dict[str, Data], pair: tuple[str, str] | None) -> dict[str, Data]:
    """Return the sets that are asked for."""
    if pair is None:
        return named
    for name in pair:
        if name not in named:
            raise usage(f"--pair: there is no group {printable(name)!r}; there are {listed(list(named), SHOWN_GROUPS)}")
    if pair[0] == pair[1]:
        raise usage("--pair: name two different groups")
    return {name: named[name] for name in pair}


def some(rankings: Data, n_voters: int, seed: int) -> Data:
    """Return some voters taken at random."""
    from rankernel.data import with_counts
    from rankernel.reports.distinct_ballots import some_voters

    rows, counts = some_voters(rankings.counts, n_voters, seed)
    return with_counts(rankings[rows], counts)


def check_size(named: dict[str, Data]) -> None:
    """Refuse sets whose Gram matrix is too large, or of too many items to say in what they differ."""
    from rankernel.stats.differences import check_item_pairs

    check_item_pairs(next(iter(named.values())).n_items, len(named))
    distinct = sum(len(rankings.unique()) for rankings in named.values())
    if distinct > MOST_DISTINCT:
        raise MemoryError(
            f"{distinct:,} different rankings make a Gram matrix of {distinct**2 * 8 / 1e9:.0f} GB; take some "
            "voters at random with --sample 5000"
        )


# ---------------------------------------------------------------------- what was found


@dataclass(frozen=True, eq=False)
class Answer:
    """What the tests of a command found, for people and for machines."""

    method: str
    kernel: str
    omnibus: dict[str, Any] | None
    comparisons: list[dict[str, Any]]
    differences: Differences  # between all groups
    clearest: list[Differences]  # those that are shown: of many groups, between the pairs that differ most clearly

    def differences_by_name(self) -> dict[str, Any]:
        """Return in what groups differ, as records."""
        return {
            "groups": self.differences.groups,
            "items": [asdict(item) for item in self.differences.items],
            "pairs": [asdict(pair) | {"reverses": pair.reverses} for pair in self.differences.pairs],
        }


def answer_of_two(named: dict[str, Data], kernel: Any, method: Any, permutations: int, seed: int) -> Answer:
    """Return what the test of two sets found."""
    from rankernel.stats.mmd import mmd_aggregated_test, mmd_test

    (first, X), (second, Y) = named.items()
    test = mmd_aggregated_test if kernel == "auto" else mmd_test
    result = test(X, Y, kernel, n_permutations=permutations, rng=seed, method=method)
    return answer_of_pair(result, (first, second), (X.n_voters, Y.n_voters))


def paired_answer(
    named: dict[str, Data], source: Source, column: str, kernel: Any, method: Any, permutations: int, seed: int
) -> Answer:
    """Return what the test of the same judges in two groups found."""
    from rankernel.stats.paired import paired_test

    if len(named) != 2:
        raise usage(f"--paired compares two groups, and there are {len(named)}; name them with --pair A B")
    before, after = (judges_in_order(name, source, column) for name in named)
    if before[0] != after[0]:
        alone = sorted(set(before[0]) ^ set(after[0]))
        raise RankingError(
            f"{source.origin}: judge {printable(alone[0])!r} is in one of the groups only; leave out rows of judges "
            "who did not rank twice"
        )
    wanted = None if kernel == "auto" else kernel
    result = paired_test(before[1], after[1], wanted, n_permutations=permutations, rng=seed, method=method)
    return answer_of_pair(result, tuple(named), (before[1].n_voters, after[1].n_voters))


def judges_in_order(name: str, source: Source, column: str) -> tuple[list[str], Data]:
    """Return the judges of a group, sorted, and their rankings in this order."""
    groups, of_row = source.named_groups
    judges = source.columns[column].tolist()
    rows = np.flatnonzero(of_row == groups.index(name)).tolist()
    order = sorted(rows, key=lambda row: str(judges[row]))
    ordered = [str(judges[row]) for row in order]
    twice = [a for a, b in pairwise(ordered) if a == b]
    if twice:
        raise RankingError(
            f"judge {printable(twice[0])!r} has several rows in group {name!r}; give each one row a group"
        )
    return ordered, source.rankings[order]


def answer_of_pair(result: Any, names: tuple[str, ...], sizes: tuple[int, int]) -> Answer:
    """Return what one test of two sets says."""
    from rankernel.reports.phrases import short_numbers
    from rankernel.stats.mmd import AggregatedMMDResult

    several = isinstance(result, AggregatedMMDResult)
    kernels = result.kernels if several else (result.kernel,)
    comparison = {
        "first": names[0],
        "second": names[1],
        "n_first": sizes[0],
        "n_second": sizes[1],
        "statistic": result.statistic,
        "statistic_is": "-log10 of the smallest p-value of a kernel" if several else "squared MMD",
        "pvalue": result.pvalue,
        "moment_pvalue": result.moment_pvalue,
        "adjusted_pvalue": result.pvalue,
        **errors_and_effect(result),
    }
    differences = replace(result.differences(contributions="pairs"), groups=names)
    kernel = short_numbers(", ".join(map(str, kernels)))
    return Answer(result.method, kernel, None, [comparison], differences, [differences])


def errors_and_effect(result: Any) -> dict[str, Any]:
    """Return what a test says of the effect, and what estimated kernel values add to errors."""
    return {
        "n_moment_draws": result.n_moment_draws,
        "statistic_mcse": result.statistic_mcse,
        "effect": result.effect,
        "effect_mcse": result.effect_mcse,
        "effect_interval": result.effect_interval,
    }


def answer_of_many(named: dict[str, Data], kernel: Any, method: Any, permutations: int, seed: int) -> Answer:
    """Return what the test of several sets found, of all together and of each two."""
    from rankernel.data import concat
    from rankernel.reports.phrases import short_numbers
    from rankernel.stats.differences import MAX_COLUMNS
    from rankernel.stats.k_sample import k_sample_test

    names = list(named)
    labels = np.repeat(np.arange(len(names)), [len(rankings) for rankings in named.values()])
    wanted = None if kernel == "auto" else kernel
    result = k_sample_test(concat(named.values()), labels, wanted, n_permutations=permutations, rng=seed, method=method)
    pairs = result.pairwise()
    voters = {str(number): rankings.n_voters for number, rankings in enumerate(named.values())}
    comparisons = [
        {
            "first": names[int(first)],
            "second": names[int(second)],
            "n_first": voters[first],
            "n_second": voters[second],
            "statistic": float(pairs.statistics[place]),
            "statistic_is": "squared MMD",
            "pvalue": float(pairs.pvalues[place]),
            "moment_pvalue": float(pairs.moment_pvalues[place]),
            "adjusted_pvalue": float(pairs.adjusted_pvalues[place]),
            "adjusted_from": pairs.adjusted_from,
            "statistic_mcse": float(pairs.statistic_mcse[place]),
            "effect": float(pairs.effects[place]),
            "effect_mcse": float(pairs.effect_mcse[place]),
        }
        for place, (first, second) in enumerate(zip(pairs.first, pairs.second, strict=True))
    ]
    omnibus = {
        "n_groups": len(names),
        "statistic": result.statistic,
        "pvalue": result.pvalue,
        "moment_pvalue": result.moment_pvalue,
        **errors_and_effect(result),
    }
    differences = replace(result.differences(contributions="pairs"), groups=tuple(names))
    clearest = clearest_differences(pairs, names) if len(names) > MAX_COLUMNS else []
    return Answer(
        result.method, short_numbers(str(result.kernel)), omnibus, comparisons, differences, clearest or [differences]
    )


def clearest_differences(pairs: PairwiseResult, names: list[str]) -> list[Differences]:
    """Return in what those groups differ that do so most clearly."""
    found = []
    for place in pairs.order()[:MOST_PAIRS]:
        if pairs.rejected[place]:
            first, second = pairs.first[place], pairs.second[place]
            between = pairs.pair(first, second).differences(contributions="pairs")
            found.append(replace(between, groups=(names[int(first)], names[int(second)])))
    return found


def show(facts: dict[str, str], found: Answer, permutations: int) -> None:
    """Print the tests for people."""
    from rankernel.stats.results import mcse_text

    screen = console()
    show_facts(screen, facts)
    screen.print()
    if found.omnibus is not None:
        low, high = found.omnibus["effect_interval"]
        differ = "differ" if found.omnibus["pvalue"] <= LEVEL else "may well be alike"
        screen.print(f"The {found.omnibus['n_groups']} groups {differ}: ", end="")
        error = mcse_text(found.omnibus["effect_mcse"])
        screen.print(
            f"{both_pvalues(found.omnibus, permutations)}, effect {found.omnibus['effect']:.2g}{error} "
            f"({low:.2g} to {high:.2g})",
            style="bold",
        )
        screen.print()
    n_tests = len(found.comparisons)
    shown = sorted(found.comparisons, key=lambda each: each["adjusted_pvalue"])[:MOST_LINES]
    for each in shown:
        differ = "differ" if each["adjusted_pvalue"] <= LEVEL else "may well be alike"
        from_moments = each.get("adjusted_from") == "moments"
        p = f"p = {each['moment_pvalue']:.2g} (moments)" if from_moments else both_pvalues(each, permutations)
        corrected = f" (corrected for {n_tests} tests: {each['adjusted_pvalue']:.2g})" if n_tests > 1 else ""
        screen.print(
            f"{each['first']} ({each['n_first']:,} voters) and {each['second']} ({each['n_second']:,}) {differ}: ",
            end="",
        )
        interval = " ({:.2g} to {:.2g})".format(*each["effect_interval"]) if "effect_interval" in each else ""
        statistic = ""
        if each["statistic_is"] == "squared MMD":
            statistic = f"squared MMD {each['statistic']:.4g}{mcse_text(each['statistic_mcse'])}, "
        effect = f"effect {each['effect']:.2g}{mcse_text(each['effect_mcse'])}{interval}"
        screen.print(f"{p}{corrected}, {statistic}{effect}", style="bold")
    if n_tests > len(shown):
        screen.print(f"and {n_tests - len(shown):,} more pairs of groups; all of them with --json")
    screen.print()
    for between in found.clearest:
        if between is not found.differences:
            screen.print(printable(f"In what {between.groups[0]} and {between.groups[1]} differ:"), style="bold")
        for table in between.tables():
            show_table(screen, table[: MOST_DIFFERENCES + 1])


def both_pvalues(found: dict[str, Any], permutations: int) -> str:
    """Return the permutation p-value, and that from moments if the first is at its lower bound."""
    from rankernel.reports.phrases import pvalue_text

    told = pvalue_text(found["pvalue"], permutations)
    return f"{told} (moments {found['moment_pvalue']:.2g})" if told.startswith("p ≤") else told


def show_table(screen: Any, rows: list[list[str]]) -> None:
    """Print a table with a heading."""
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for name in rows[0]:
        grid.add_column(printable(name))
    for row in rows[1:]:
        grid.add_row(*map(printable, row))
    screen.print(grid)
    screen.print()
