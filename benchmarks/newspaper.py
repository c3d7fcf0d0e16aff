"""Summaries of test results as paragraphs: ``python -m benchmarks.newspaper -o FOLDER``.

Reads the SUSHI data and the Dublin North election of 2002 from the folder RANKERNEL_DATA.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rankernel as rk
from benchmarks.clock import save
from rankernel.reports.text import pvalue_text
from rankernel.stats import MMDResult, PairDifference
from reproduction.sushi import load_sushi


def percent(share: float) -> str:
    return f"{share:.0%}"


def difference(pair: PairDifference) -> float:
    """Return the difference of the proportions of two groups."""
    return abs(pair.shares[0] - pair.shares[1])


# start: sushi
def sushi_test(root: str) -> MMDResult:
    """Compare people from the east and the west of Japan."""
    sushi = load_sushi(root)
    west = sushi.users["east_west"] == 1
    return rk.mmd_test(sushi.rankings[~west], sushi.rankings[west], n_permutations=500)


def sushi_words(result: MMDResult) -> str:
    """Return a summary of the result."""
    found = result.differences()
    pair, item = max(found.pairs, key=difference), max(found.items, key=lambda each: each.rank_range)
    low, high = result.effect_interval
    return (
        f"The preferences for {len(found.items)} kinds of sushi of {result.n_voters[0]:,} people in the east of Japan "
        f"and {result.n_voters[1]:,} in the west {'differ' if result.pvalue <= 0.05 else 'do not clearly differ'} "
        f"({p_text(result)}). The difference is {result.effect:.2%} of the dispersion (95% interval {low:.2%} to "
        f"{high:.2%}). It is largest for the pair {pair.first} and {pair.second}: {percent(pair.shares[0])} of the "
        f"people in the east and {percent(pair.shares[1])} in the west ({percent(pair.intervals[1][0])} to "
        f"{percent(pair.intervals[1][1])}) prefer {pair.first}. The mean rank of {item.item} changes most: "
        f"{item.mean_ranks[0]:.1f} in the east, {item.mean_ranks[1]:.1f} in the west."
    )


# end: sushi


# start: dublin
def dublin_test(root: str) -> MMDResult:
    """Compare the first three preferences of voters with long and short ballots."""
    ballots = rk.read_preflib(Path(root, "preflib", "00001-00000001.soi"))
    n_listed = ballots.n_buckets - (ballots.kinds() == "top-k")  # unlisted candidates share the last bucket
    n_all = ballots.n_items - 1  # the last rank is then determined
    long, short = ballots[n_listed >= n_all], ballots[(n_listed >= 3) & (n_listed < n_all)]
    return rk.mmd_test(long.top(3), short.top(3), n_permutations=999)


def dublin_words(result: MMDResult) -> str:
    """Return a summary of the result."""
    found = result.differences()
    pair, item = max(found.pairs, key=difference), max(found.items, key=lambda each: each.rank_range)
    low, high = result.effect_interval
    return (
        f"In Dublin North in 2002, {result.n_voters[0]:,} voters ranked all {len(found.items)} candidates or all but "
        f"one, and {result.n_voters[1]:,} ranked at least three but fewer. The first three preferences of the two "
        f"groups {'differ' if result.pvalue <= 0.05 else 'do not clearly differ'} ({p_text(result)}). The difference "
        f"is {result.effect:.2%} of the dispersion (95% interval {low:.2%} to {high:.2%}). It is largest for the pair "
        f"{pair.first} and {pair.second}: {percent(pair.shares[0])} of the voters with long ballots and "
        f"{percent(pair.shares[1])} of those with short ballots ({percent(pair.intervals[1][0])} to "
        f"{percent(pair.intervals[1][1])}) rank {pair.first} above {pair.second}; {percent(pair.undecided[0])} and "
        f"{percent(pair.undecided[1])} rank neither above the other. The mean rank of "
        f"{item.item} changes most: {item.mean_ranks[0]:.1f} for long ballots, {item.mean_ranks[1]:.1f} for short ones."
    )


# end: dublin


def p_text(result: MMDResult) -> str:
    """Return the permutation p-value; the smallest possible one is an upper bound."""
    return pvalue_text(result.pvalue, len(result.null_distribution)).partition(" (")[0]


PARAGRAPHS: dict[str, tuple[Callable[[str], MMDResult], Callable[[MMDResult], str]]] = {
    "SUSHI": (sushi_test, sushi_words),
    "Dublin North 2002": (dublin_test, dublin_words),
}


def row(name: str, root: str) -> dict[str, Any]:
    """Return a paragraph and the result that it describes."""
    test, words = PARAGRAPHS[name]
    result = test(root)
    return {
        "data": name,
        "voters": sum(result.n_voters),
        "distinct ballots": len(result.rankings),
        "p-value": result.pvalue,
        "from moments": result.moment_pvalue,
        "effect": round(result.effect, 5),
        "interval": [round(end, 5) for end in result.effect_interval],
        "paragraph": words(result),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newspaper", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="a folder for newspaper.json")
    output = parser.parse_args().output
    root = os.environ["RANKERNEL_DATA"]
    rows = [row(name, root) for name in PARAGRAPHS]
    for each in rows:
        print(each["paragraph"], "\n")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        save(output / "newspaper.json", rows)


if __name__ == "__main__":
    main()
