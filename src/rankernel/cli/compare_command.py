"""``rankernel test``: whether sets of rankings differ significantly, which of them, and in which items."""

from __future__ import annotations

import warnings
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
    read_battles,
    read_source,
)
from rankernel.cli.terminal import UsageError, console, print_facts, print_json, print_table, progress
from rankernel.data import concat
from rankernel.errors import RankingError, ReadingWarning
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
    typer.Option(
        "--sample", min=2, metavar="N", help="Size of a random sample of each group.", rich_help_panel=COMPUTING
    ),
]
Paired = Annotated[
    str | None,
    typer.Option(
        "--paired",
        metavar="COLUMN",
        help="Column of judges who ranked once in each of two groups: a paired test.",
        show_default=False,
        rich_help_panel=COMPUTING,
    ),
]
Sequential = Annotated[
    bool,
    typer.Option(
        "--sequential",
        help="Rows are in time order: a test of two groups that may be repeated whenever rows are added to the file.",
        rich_help_panel=COMPUTING,
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
            "pairs": [
                asdict(pair) | {name: getattr(pair, name) for name in ("undecided", "majorities_differ", "reverses")}
                for pair in self.differences.pairs
            ],
        }
        return {"all": self.omnibus, "comparisons": self.comparisons, "differences": differences}


def compare(
    reading: Reading,
    showing: Showing,
    files: Files = None,
    paired: Paired = None,
    sequential: Sequential = False,
    computing: Computing = Computing(),  # noqa: B008 - a frozen value
    permutations: Permutations = 1000,
    sample: Sample = None,
    over: Over = "intersection",
) -> None:
    """Test whether sets of rankings have the same distribution, which of them differ, and in which items.

    Compares two files, or the groups of one file: all together, then pair by pair with Holm's correction. The kernel is
    that of the report; with --kernel auto, two groups are compared by an aggregated test of five Mallows kernels around
    the median heuristic. Comparisons are compared within pairs of items, with the Kendall kernel.
    """
    kernel, method = parse_computing(computing, auto=True)
    options: dict[str, Any] = {"method": method, "n_permutations": permutations, "rng": computing.seed}
    if paired and sample:
        raise UsageError("--paired compares each judge with itself; give either --sample or --paired")
    if sequential and (paired or sample):
        raise UsageError("--sequential compares all rows in their order; leave out --paired and --sample")
    battles = read_groups_of_battles(files or [], reading) if not (paired or sequential) else None
    if battles is not None:
        if computing.kernel not in (Computing().kernel, "auto") or sample:
            option = "--sample" if sample else "--kernel"
            raise UsageError(f"{option} is for rankings; all comparisons are tested, with the Kendall kernel")
        battle_outcome(battles, showing, permutations, computing.seed)
        return
    samples, sources, items = read_samples(files or [], reading, paired, over)
    if sequential:
        compare_sequentially(samples, sources, kernel, method, showing)
        return
    with progress(None, f"Comparing {len(samples)} groups"):
        if sample:
            samples = {name: random_sample(data, sample, computing.seed) for name, data in samples.items()}
        check_size(samples)
        if kernel is not None:
            whole = sources[0].rankings if len(sources) == 1 and not sample else concat(samples.values())
            kernel = kernel.resolve(whole)  # as in the report
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
    }
    if showing.json:
        settings = {"seed": computing.seed, "n_permutations": permutations, "sample": sample}
        print_json(facts | settings | outcome.to_json())
    else:
        chosen = {"sample": f"at most {sample:,} random voters of each group"} if sample else {}
        print_outcome(facts | {"seed": str(computing.seed)} | chosen, outcome, permutations)


def compare_sequentially(
    samples: dict[str, Data], sources: list[Source], kernel: Any, method: Any, showing: Showing
) -> None:
    """Test two groups whose rows are in time order: the first row of one with the first row of the other, and so on."""
    from rankernel.data import only_rankings, with_counts
    from rankernel.reports.text import round_numbers
    from rankernel.stats.sequential import SequentialMMDTest

    if len(samples) != 2:
        raise UsageError(f"--sequential compares two groups, and there are {len(samples)}; select two with --only")
    voters = {}
    for name, data in samples.items():
        rows = np.repeat(np.arange(len(data)), data.counts)
        voters[name] = with_counts(only_rankings(data, "a sequential test", name)[rows], np.ones(len(rows)))
    n_pairs = min(map(len, voters.values()))
    test = SequentialMMDTest(kernel, alpha=ALPHA, method=method).update(*(data[:n_pairs] for data in voters.values()))
    facts = {
        "data": " and ".join(dict.fromkeys(source.title for source in sources)),
        "read as": "; ".join(dict.fromkeys(source.reading for source in sources)),
        "test": f"sequential MMD test of {n_pairs:,} pairs of rows in the order of the file",
        "kernel": round_numbers(str(test.kernel)),
        "unpaired rows": ", ".join(f"{len(data) - n_pairs:,} of {name}" for name, data in voters.items()),
    }
    names = ("evalue", "pvalue", "rejected", "stopped_at", "n_observations")
    if showing.json:
        print_json(facts | {name: getattr(test, name) for name in names})
        return
    screen = console()
    print_facts(screen, facts)
    found = f"differ, first after {test.stopped_at:,} pairs" if test.rejected else "do not differ significantly so far"
    screen.print(f"\n{' and '.join(voters)} {found}: ", end="")
    screen.print(f"p = {test.pvalue:.2g}, e-value {test.evalue:.3g} (valid at any time)", style="bold")


# ---------------------------------------------------------------------- comparisons


def read_groups_of_battles(files: list[Path], reading: Reading) -> Source | None:
    """Return the groups of the comparisons of a file, or of two files; None for rankings and for groups of judges."""
    from rankernel.comparisons import Comparisons
    from rankernel.reports.battles import comparison_source

    if len(files) == 1 and reading.by:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReadingWarning)  # about the rankings of judges, which are not tested
            source = read_source(files[0], reading, battles=True)
        return source if source.comparison_groups is not None else None
    found = [read_battles(file, reading) for file in files] if len(files) == 2 else [None]
    if None in found:
        return None
    parts = [(data, np.array(data.items)) for data in found if data is not None]
    names = [file.name if files[0].name != files[1].name else str(file) for file in files]
    columns = [
        (items[data.first], items[data.second], data.outcome, data.weights, np.full(len(data), name))
        for (data, items), name in zip(parts, names, strict=True)
    ]
    first, second, outcome, weights, file = (np.concatenate(column) for column in zip(*columns, strict=True))
    joined = Comparisons.from_arrays(first, second, outcome, weights=weights, labels={"file": file})

    return comparison_source(joined, "file", title=" and ".join(names), group_name="file", voter="judge")


def battle_outcome(source: Source, showing: Showing, permutations: int, seed: int) -> None:
    """Test groups of comparisons, and print the result."""
    from rankernel.reports.battles import compare_battles
    from rankernel.reports.groups import groups_to_compare
    from rankernel.reports.summary import Settings
    from rankernel.reports.text import percent, pvalue_text

    names, codes = source.named_groups
    sizes = np.bincount(codes, minlength=len(names))
    groups = groups_to_compare(source, None)
    with progress(None, f"Comparing {len(groups)} groups"):
        found = compare_battles(source, groups, Settings(n_permutations=permutations, rng=seed))
    if found is None:
        raise RankingError(f"column {source.group_name} has no two groups of comparisons; a test needs two groups")
    facts: dict[str, Any] = {
        "data": source.title,
        "read as": " ".join(source.provenance).removeprefix("Read as ") or source.reading,
        "test": f"dispersion between groups, {permutations:,} permutations among the comparisons of the same two items",
        "kernel": found.kernel,
        "seed": seed,
    }
    if showing.json:
        omnibus = {"n_groups": found.n_groups, "pvalue": found.pvalue, "effect": found.effect}
        comparisons = [
            {"first": names[pair.first], "second": names[pair.second], "n_first": sizes[pair.first]}
            | {"n_second": sizes[pair.second], "adjusted_pvalue": pair.pvalue, "statistic": pair.statistic}
            | {"effect": pair.effect, "effect_interval": pair.interval}
            for pair in found.pairs
        ]
        pairs = [asdict(pair) for pair in found.items]
        differences = {"groups": [names[group] for group in found.drawn], "pairs": pairs}
        print_json(
            facts
            | {"all": omnibus | {"effect_interval": found.interval}, "comparisons": comparisons}
            | {"differences": differences}
        )
        return
    screen = console()
    print_facts(screen, {name: str(value) for name, value in facts.items()})
    screen.print()
    for pair in found.pairs[:MAX_LINES]:
        text = pvalue_text(pair.pvalue, permutations, found.from_moments, pair.at_bound)
        low, high = pair.interval or (np.nan, np.nan)
        effect = f"effect {max(pair.effect, 0.0):.1%} ({low:.1%} to {high:.1%})"
        both = (
            f"{names[pair.first]} ({sizes[pair.first]:,} comparisons) and {names[pair.second]} ({sizes[pair.second]:,})"
        )
        screen.print(printable(f"{both} {verdict(pair.pvalue)}: "), end="")
        screen.print(f"{text}, {effect}", style="bold")
    screen.print()
    rows = [["won against", *(names[group] for group in found.drawn)]]
    for item in found.items:
        cells = zip(item.shares, item.against, item.intervals, strict=True)
        rows.append(
            [f"{item.first} against {item.second}"]
            + [
                f"{won:.0%} ({low:.0%} to {high:.0%}), {percent(1 - won - lost)} ties"
                for won, lost, (low, high) in cells
            ]
        )
    if found.items:
        print_table(screen, rows)


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
        "effect_kernel": str(result.kernel),
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
    """Return the effect as on the page, with its interval, its standard error, and the kernel if there are several."""
    from rankernel.reports.text import round_numbers
    from rankernel.stats.base import mcse_text

    interval = " ({:.1%} to {:.1%})".format(*numbers["effect_interval"]) if "effect_interval" in numbers else ""
    aggregated = numbers.get("statistic_is", "squared MMD") != "squared MMD"
    kernel = f" with {round_numbers(numbers['effect_kernel'])}" if aggregated else ""
    error = mcse_text(100 * numbers["effect_mcse"])
    return f"effect {max(numbers['effect'], 0.0):.1%}{interval}{error}{kernel}"


def pvalue_texts(numbers: dict[str, Any], permutations: int) -> str:
    """Return the permutation p-value, and that from moments if the first is at its lower bound."""
    from rankernel.reports.text import pvalue_text

    text = pvalue_text(numbers["pvalue"], permutations)
    return f"{text}, {moment_text(numbers)}" if text.startswith("p ≤") else text


def moment_text(numbers: dict[str, Any]) -> str:
    """Return the p-value from moments."""
    from rankernel.reports.text import pvalue_text

    return f"{pvalue_text(numbers['moment_pvalue'], 0, from_moments=True)} from moments"
