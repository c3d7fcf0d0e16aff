"""``rankernel test``: whether two sets of rankings differ by more than chance."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankernel.analysis.source import Source
from rankernel.cli.failures import usage
from rankernel.cli.kernel_text import parse_kernel, parse_method
from rankernel.cli.options import COMPUTING, Computing, Permutations, Reading, Showing
from rankernel.cli.output import console, print_json, show_facts, steps
from rankernel.cli.reading import read
from rankernel.encoding import printable
from rankernel.errors import RankingError

if TYPE_CHECKING:
    from rankernel.rankings import Rankings

MOST_DISTINCT = 20_000  # a matrix of 3 GB
LEVEL = 0.05

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


def two_sample_test(
    reading: Reading,
    showing: Showing,
    files: Files = None,
    computing: Computing = Computing(kernel="auto"),  # noqa: B008 - a frozen value
    permutations: Permutations = 1000,
    sample: Sample = None,
) -> None:
    """Test whether two sets of rankings come from one distribution (MMD).

    Compares two files, or the groups of one file. With --kernel auto, five Mallows kernels around the median heuristic
    make one test of the right level. P-values of several pairs are corrected by Holm's method.
    """
    wanted: Any = "auto" if computing.kernel == "auto" else parse_kernel(computing.kernel)
    how, seed = parse_method(computing.method, computing.seed), computing.seed
    named, sources = samples(files or [], reading)
    if sample:
        named = {name: some(rankings, sample, seed) for name, rankings in named.items()}
    check_size(named)
    found = results(named, wanted, how, permutations, seed)
    facts = {
        "data": " and ".join(dict.fromkeys(f"{source.title}" for source in sources)),
        "read as": "; ".join(dict.fromkeys(source.reading for source in sources)),
        "test": found[0]["method"],
        "kernel": "; ".join(dict.fromkeys(each["kernel"] for each in found)),
        "seed": str(seed),
    }
    if sample:
        facts["sample"] = f"at most {sample:,} voters of each, taken at random"
    if showing.json:
        print_json(facts | {"comparisons": found})
    else:
        show(facts, found, permutations)


def samples(files: list[Path], reading: Reading) -> tuple[dict[str, Rankings], list[Source]]:
    """Return the sets to compare by name, and where they come from."""
    if len(files) > 2 or (len(files) == 2 and reading.by):
        raise usage("give two files, or one file with --by COLUMN")
    if len(files) == 1 and not reading.by:
        raise usage("give a second file, or --by COLUMN to compare the groups of one")
    if len(files) == 2:
        sources = [read(file, reading) for file in files]
        names = [source.title for source in sources]
        if names[0] == names[1]:
            names = [str(file) for file in files] if files[0] != files[1] else [f"{names[0]} (1)", f"{names[0]} (2)"]
        return dict(zip(names, (source.rankings for source in sources), strict=True)), sources
    source = read(files[0] if files else None, reading)
    assert source.groups is not None
    groups = sorted(set(source.groups.tolist()))
    if len(groups) < 2:
        raise RankingError(f"column {source.by} has one value only; a test needs two groups")
    return {printable(group): source.rankings[source.groups == group] for group in groups}, [source]


def some(rankings: Rankings, n_voters: int, seed: int) -> Rankings:
    """Return some voters taken at random."""
    from rankernel.analysis.distinct_ballots import some_voters
    from rankernel.rankings import Rankings

    rows, counts = some_voters(rankings.counts, n_voters, seed)
    return Rankings(rankings.ranks[rows], rankings.items, counts)


def check_size(named: dict[str, Rankings]) -> None:
    """Refuse sets whose Gram matrix is too large."""
    largest = sorted((len(rankings.unique()) for rankings in named.values()), reverse=True)[:2]
    if sum(largest) > MOST_DISTINCT:
        raise MemoryError(
            f"{sum(largest):,} different rankings make a Gram matrix of {sum(largest) ** 2 * 8 / 1e9:.0f} GB; "
            "take some voters at random with --sample 5000"
        )


def results(named: dict[str, Rankings], kernel: Any, method: Any, permutations: int, seed: int) -> list[dict[str, Any]]:
    """Return what each test found."""
    import numpy as np

    from rankernel.analysis.comparisons import holm
    from rankernel.analysis.phrases import short_numbers
    from rankernel.tasks.tests.mmd import mmd_test
    from rankernel.tasks.tests.mmd_aggregated import mmd_aggregated_test
    from rankernel.tasks.tests.results import AggregatedMMDResult

    pairs = list(combinations(named, 2))
    found: list[dict[str, Any]] = []
    with steps(len(pairs), "Testing") as step:
        for first, second in pairs:
            X, Y = named[first], named[second]
            test = mmd_aggregated_test if kernel == "auto" else mmd_test
            result = test(X, Y, kernel, permutations, seed, method=method)
            several = isinstance(result, AggregatedMMDResult)
            kernels = result.kernels if isinstance(result, AggregatedMMDResult) else (result.kernel,)
            found.append(
                {
                    "first": first,
                    "second": second,
                    "n_first": X.n_voters,
                    "n_second": Y.n_voters,
                    "statistic": result.statistic,
                    "statistic_is": "-log10 of the smallest p-value of a kernel" if several else "squared MMD",
                    "pvalue": result.pvalue,
                    "method": result.method,
                    "kernel": short_numbers(", ".join(map(str, kernels))),
                }
            )
            step("Testing")
    for each, corrected in zip(found, holm(np.array([each["pvalue"] for each in found])).tolist(), strict=True):
        each["corrected"] = corrected
    return found


def show(facts: dict[str, str], found: list[dict[str, Any]], permutations: int) -> None:
    """Print the tests for people."""
    from rankernel.analysis.phrases import pvalue_text

    screen = console()
    show_facts(screen, facts)
    screen.print()
    for each in found:
        differ = "differ" if each["corrected"] <= LEVEL else "may well be alike"
        p = pvalue_text(each["pvalue"], permutations)
        corrected = f" (corrected for {len(found)} tests: {each['corrected']:.2g})" if len(found) > 1 else ""
        screen.print(
            f"{each['first']} ({each['n_first']:,} voters) and {each['second']} ({each['n_second']:,}) {differ}: ",
            end="",
        )
        screen.print(f"{p}{corrected}, {each['statistic_is']} {each['statistic']:.4g}", style="bold")
