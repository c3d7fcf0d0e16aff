"""``rankernel test``: whether sets of rankings differ significantly, which of them, and in which items."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from rankernel._utils.checks import printable
from rankernel.cli.options import (
    COMPUTING,
    Computing,
    Permutations,
    Reading,
    Showing,
    align_items,
    choice,
    parse_computing,
    read_source,
)
from rankernel.cli.terminal import UsageError, console, print_facts, print_json, print_table, progress
from rankernel.errors import RankingError
from rankernel.reports.ballots import Source

if TYPE_CHECKING:
    from rankernel.data import Data
    from rankernel.stats.differences import Differences
    from rankernel.stats.k_sample import PairwiseResult

MAX_DISTINCT = 20_000  # rows of a Gram matrix of 3 GB
ALPHA = 0.05
MAX_LINES = 30  # pairs of groups that are printed
MAX_DIFFERENCES = 6  # items, and pairs of items, that are printed
MAX_PAIRS = 2  # pairs of many groups whose differences are printed

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE", help="Two files; or one with --by; or none for the bundled example.", show_default=False
    ),
]
Sample = Annotated[
    int | None,
    typer.Option("--sample", min=2, help="Size of a random sample of each group.", rich_help_panel=COMPUTING),
]
Paired = Annotated[
    str | None,
    typer.Option(
        "--paired",
        metavar="COLUMN",
        help="Column of judges who ranked once in each of two groups: a paired test.",
        show_default=False,
    ),
]
Over = Annotated[
    str,
    choice(
        "--over",
        ("intersection", "union"),
        "Items of two files with different items: those in both files, or all, free where a file lacks them.",
        COMPUTING,
    ),
]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The results of the tests."""

    method: str
    kernel: str
    omnibus: dict[str, Any] | None  # the test of more than two groups
    comparisons: list[dict[str, Any]]  # one for each pair of groups
    differences: Differences  # between all groups
    shown: list[Differences] = field(default_factory=list)  # of many groups, between the most significant pairs

    def to_json(self) -> dict[str, Any]:
        """Return the results for JSON."""
        differences = {
            "groups": self.differences.groups,
            "items": [asdict(item) for item in self.differences.items],
            "pairs": [asdict(pair) | {"majorities_differ": pair.majorities_differ} for pair in self.differences.pairs],
        }
        return {"all": self.omnibus, "comparisons": self.comparisons, "differences": differences}


def compare(
    reading: Reading,
    showing: Showing,
    files: Files = None,
    paired: Paired = None,
    computing: Computing = Computing(kernel="auto"),  # noqa: B008 - a frozen value
    permutations: Permutations = 1000,
    sample: Sample = None,
    over: Over = "intersection",
) -> None:
    """Test whether sets of rankings have the same distribution, which of them differ, and in which items.

    Compares two files, or the groups of one file: all together, then pair by pair with Holm's correction. With --kernel
    auto, two groups are compared by an aggregated test of five Mallows kernels around the median heuristic, more groups
    by the kernel at the median.
    """
    kernel, method = parse_computing(computing, auto=True)
    options: dict[str, Any] = {"method": method, "n_permutations": permutations, "rng": computing.seed}
    if paired and sample:
        raise UsageError("--paired compares each judge with itself; give either --sample or --paired")
    samples, sources, items = read_samples(files or [], reading, paired, over)
    with progress(None, f"Comparing {len(samples)} groups"):
        if sample:
            samples = {name: random_sample(data, sample, computing.seed) for name, data in samples.items()}
        check_size(samples)
        if paired:
            outcome = paired_outcome(samples, sources[0], paired, kernel, options)
        elif len(samples) == 2:
            outcome = two_sample_outcome(samples, kernel, options)
        else:
            outcome = k_sample_outcome(samples, kernel, options)
    facts = {
        "data": " and ".join(dict.fromkeys(source.title for source in sources)),
        "read as": "; ".join(dict.fromkeys(source.reading for source in sources)),
        **({"items": items} if items else {}),
        "test": outcome.method,
        "kernel": outcome.kernel,
        "seed": str(computing.seed),
        **({"sample": f"at most {sample:,} random voters of each group"} if sample else {}),
    }
    if showing.json:
        print_json(facts | outcome.to_json())
    else:
        print_outcome(facts, outcome, permutations)


# ---------------------------------------------------------------------- samples


def read_samples(
    files: list[Path], reading: Reading, paired: str | None, over: str
) -> tuple[dict[str, Data], list[Source], str]:
    """Return the named sets to compare, their sources, and a description of the items if those of two files differ."""
    if len(files) > 2 or (len(files) == 2 and reading.by):
        raise UsageError("give two files, or one file with --by COLUMN")
    if len(files) == 1 and not reading.by:
        raise UsageError("give a second file, or --by COLUMN to compare the groups of one file")
    if len(files) == 2:
        if paired:
            raise UsageError("--paired is for the groups of one file: give --by COLUMN")
        sources = [read_source(file, reading) for file in files]
        names = [source.title for source in sources]
        if names[0] == names[1]:
            names = [str(file) for file in files] if files[0] != files[1] else [f"{names[0]} (1)", f"{names[0]} (2)"]
        aligned, items = align_items(sources, over)
        return dict(zip(names, aligned, strict=True)), sources, items
    source = read_source(files[0] if files else None, reading, *([paired] if paired else []))
    groups, of_row = source.named_groups
    if len(groups) < 2:
        raise RankingError(f"column {source.group_name} has only one value; a test needs two groups")
    return {name: source.rankings[of_row == number] for number, name in enumerate(groups)}, [source], ""


def random_sample(rankings: Data, n_voters: int, seed: int) -> Data:
    """Return a random sample of voters."""
    from rankernel.data import with_counts
    from rankernel.reports.ballots import sample_voters

    rows, counts = sample_voters(rankings.counts, n_voters, np.random.default_rng([seed, 1]))
    return with_counts(rankings[rows], counts)


def check_size(samples: dict[str, Data]) -> None:
    """Raise an error if the Gram matrix or the table of differences would be too large."""
    from rankernel.stats.differences import check_item_pairs

    check_item_pairs(next(iter(samples.values())).n_items, len(samples))
    n_distinct = sum(len(rankings.unique()) for rankings in samples.values())
    if n_distinct > MAX_DISTINCT:
        raise MemoryError(
            f"{n_distinct:,} distinct rankings need a Gram matrix of {n_distinct**2 * 8 / 1e9:.0f} GB; test a random "
            "sample with --sample 5000"
        )


# ---------------------------------------------------------------------- tests


def two_sample_outcome(samples: dict[str, Data], kernel: Any, options: dict[str, Any]) -> Outcome:
    """Return the outcome of the test of two sets."""
    from rankernel.stats.mmd import mmd_aggregated_test, mmd_test

    (first, X), (second, Y) = samples.items()
    result = mmd_aggregated_test(X, Y, **options) if kernel is None else mmd_test(X, Y, kernel, **options)
    return pair_outcome(result, (first, second), (X.n_voters, Y.n_voters))


def paired_outcome(
    samples: dict[str, Data], source: Source, column: str, kernel: Any, options: dict[str, Any]
) -> Outcome:
    """Return the outcome of the test of the same judges in two groups."""
    from rankernel.stats.paired import paired_test

    if len(samples) != 2:
        raise UsageError(f"--paired compares two groups, and there are {len(samples)}; select two with --only")
    (judges, X), (others, Y) = (sort_by_judge(name, source, column) for name in samples)
    if judges != others:
        unpaired = sorted(set(judges) ^ set(others))[0]
        raise RankingError(f"{source.origin}: judge {printable(unpaired)!r} is in only one group; remove such rows")
    result = paired_test(X, Y, kernel, **options)
    return pair_outcome(result, tuple(samples), (X.n_voters, Y.n_voters))


def sort_by_judge(name: str, source: Source, column: str) -> tuple[list[str], Data]:
    """Return the judges of a group, sorted, and their rankings in this order."""
    groups, of_row = source.named_groups
    judges = source.columns[column].astype(str)
    rows = np.flatnonzero(of_row == groups.index(name))
    rows = rows[np.argsort(judges[rows], kind="stable")]
    ordered = judges[rows].tolist()
    twice = [judge for judge, following in pairwise(ordered) if judge == following]
    if twice:
        raise RankingError(f"judge {printable(twice[0])!r} has several rows in group {name!r}; each may have one")
    return ordered, source.rankings[rows]


def pair_outcome(result: Any, names: tuple[str, ...], sizes: tuple[int, int]) -> Outcome:
    """Return the outcome of one test of two sets."""
    from rankernel.reports.text import round_numbers

    kernels = getattr(result, "kernels", (result.kernel,))
    aggregated = len(kernels) > 1
    comparison = {
        "first": names[0],
        "second": names[1],
        "n_first": sizes[0],
        "n_second": sizes[1],
        "statistic_is": "-log10 of the smallest p-value of a kernel" if aggregated else "squared MMD",
        **numbers_of(result),
        "adjusted_pvalue": result.pvalue,
    }
    differences = replace(result.differences(), groups=names)
    kernel = round_numbers(", ".join(map(str, kernels)))
    return Outcome(result.method, kernel, None, [comparison], differences, [differences])


def numbers_of(result: Any) -> dict[str, Any]:
    """Return the statistic, p-values, effect and Monte Carlo standard errors of a result."""
    names = ("statistic", "pvalue", "moment_pvalue", "n_moment_draws", "statistic_mcse", "effect", "effect_mcse")
    return {name: getattr(result, name) for name in (*names, "effect_interval")}


def k_sample_outcome(samples: dict[str, Data], kernel: Any, options: dict[str, Any]) -> Outcome:
    """Return the outcome of the test of several sets, together and pair by pair."""
    from rankernel.data import concat
    from rankernel.reports.text import round_numbers
    from rankernel.stats.differences import MAX_COLUMNS
    from rankernel.stats.k_sample import k_sample_test

    names = list(samples)
    numbers = np.repeat(np.arange(len(names)), [len(rankings) for rankings in samples.values()])
    result = k_sample_test(concat(samples.values()), numbers, kernel, **options)
    pairs = result.pairwise()
    comparisons = [
        {
            "first": names[int(pairs.first[index])],
            "second": names[int(pairs.second[index])],
            "n_first": samples[names[int(pairs.first[index])]].n_voters,
            "n_second": samples[names[int(pairs.second[index])]].n_voters,
            "statistic_is": "squared MMD",
            "statistic": float(pairs.statistics[index]),
            "pvalue": float(pairs.pvalues[index]),
            "moment_pvalue": float(pairs.moment_pvalues[index]),
            "adjusted_pvalue": float(pairs.adjusted_pvalues[index]),
            "adjusted_from": pairs.adjusted_from,
            "statistic_mcse": float(pairs.statistic_mcse[index]),
            "effect": float(pairs.effects[index]),
            "effect_mcse": float(pairs.effect_mcse[index]),
        }
        for index in range(len(pairs))
    ]
    differences = replace(result.differences(), groups=tuple(names))
    shown = most_significant(pairs, names) if len(names) > MAX_COLUMNS else []
    omnibus = {"n_groups": len(names), **numbers_of(result)}
    return Outcome(
        result.method, round_numbers(str(result.kernel)), omnibus, comparisons, differences, shown or [differences]
    )


def most_significant(pairs: PairwiseResult, names: list[str]) -> list[Differences]:
    """Return the differences between the groups that differ most significantly."""
    found = []
    for index in pairs.order()[:MAX_PAIRS]:
        if pairs.rejected[index]:
            first, second = pairs.first[index], pairs.second[index]
            between = pairs.pair(first, second).differences()
            found.append(replace(between, groups=(names[int(first)], names[int(second)])))
    return found


# ---------------------------------------------------------------------- text


def print_outcome(facts: dict[str, str], outcome: Outcome, permutations: int) -> None:
    """Print the outcome as text."""
    screen = console()
    print_facts(screen, facts)
    screen.print()
    if outcome.omnibus is not None:
        screen.print(f"The {outcome.omnibus['n_groups']} groups {verdict(outcome.omnibus['pvalue'])}: ", end="")
        screen.print(f"{pvalue_texts(outcome.omnibus, permutations)}, {effect_text(outcome.omnibus)}", style="bold")
        screen.print()
    n_tests = len(outcome.comparisons)
    shown = sorted(outcome.comparisons, key=lambda each: each["adjusted_pvalue"])[:MAX_LINES]
    for each in shown:
        sizes = f"{each['first']} ({each['n_first']:,} voters) and {each['second']} ({each['n_second']:,})"
        screen.print(f"{sizes} {verdict(each['adjusted_pvalue'])}: ", end="")
        screen.print(comparison_text(each, n_tests, permutations), style="bold")
    if n_tests > len(shown):
        screen.print(f"and {n_tests - len(shown):,} more pairs of groups; --json prints all of them")
    screen.print()
    for between in outcome.shown:
        if between is not outcome.differences:
            screen.print(printable(f"Differences between {between.groups[0]} and {between.groups[1]}:"), style="bold")
        for table in between.tables():
            print_table(screen, table[: MAX_DIFFERENCES + 1])
            screen.print()


def verdict(pvalue: float) -> str:
    """Return whether groups differ."""
    return "differ" if pvalue <= ALPHA else "do not differ significantly"


def comparison_text(comparison: dict[str, Any], n_tests: int, permutations: int) -> str:
    """Return the numbers of one comparison as text."""
    from rankernel.reports.text import pvalue_text
    from rankernel.stats.base import mcse_text

    from_moments = comparison.get("adjusted_from") == "moments"
    parts = [moment_text(comparison) if from_moments else pvalue_texts(comparison, permutations)]
    if n_tests > 1:
        adjusted = pvalue_text(comparison["adjusted_pvalue"], permutations, from_moments=True)
        parts[0] += f" (adjusted for {n_tests} tests: {adjusted})"
    if comparison["statistic_is"] == "squared MMD":
        parts.append(f"squared MMD {comparison['statistic']:.4g}{mcse_text(comparison['statistic_mcse'])}")
    return ", ".join([*parts, effect_text(comparison)])


def effect_text(numbers: dict[str, Any]) -> str:
    """Return the effect with its Monte Carlo standard error and its interval."""
    from rankernel.stats.base import mcse_text

    interval = " ({:.2g} to {:.2g})".format(*numbers["effect_interval"]) if "effect_interval" in numbers else ""
    return f"effect {numbers['effect']:.2g}{interval}{mcse_text(numbers['effect_mcse'])}"


def pvalue_texts(numbers: dict[str, Any], permutations: int) -> str:
    """Return the permutation p-value, and that from moments if the first is at its lower bound."""
    from rankernel.reports.text import pvalue_text

    text = pvalue_text(numbers["pvalue"], permutations)
    return f"{text}, {moment_text(numbers)}" if text.startswith("p ≤") else text


def moment_text(numbers: dict[str, Any]) -> str:
    """Return the p-value from moments."""
    from rankernel.reports.text import pvalue_text

    return f"{pvalue_text(numbers['moment_pvalue'], 0, from_moments=True)} from moments"
