"""From a p-value to a paragraph that a newspaper could print: ``python -m benchmarks.newspaper -o FOLDER``.

Reads the SUSHI data and the Dublin North election of 2002 from the folder RANKERNEL_DATA.
Every number of the paragraph comes from a result record.
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


def percent(share: float) -> str:
    return f"{share:.0%}"


def apart(pair: PairDifference) -> float:
    """Return how far the shares of two groups are apart."""
    return abs(pair.shares[0] - pair.shares[1])


# start: sushi
def sushi_test(root: str) -> MMDResult:
    """Do people who live in the east and in the west of Japan want the same sushi?"""
    sushi = rk.load_sushi(root)
    west = sushi.users["east_west"] == 1
    return rk.mmd_test(sushi.rankings[~west], sushi.rankings[west], n_permutations=500)


def sushi_words(result: MMDResult) -> str:
    """Return what a newspaper could print."""
    found = result.differences(contributions="pairs")
    pair, item = max(found.pairs, key=apart), max(found.items, key=lambda each: each.rank_range)
    low, high = result.effect_interval
    return (
        f"Asked to rank {len(found.items)} kinds of sushi, {result.n_voters[0]:,} people in the east of Japan and "
        f"{result.n_voters[1]:,} in the west {'give different answers' if result.pvalue <= 0.05 else 'may well agree'} "
        f"({p_text(result)}). The gap makes up {result.effect:.2%} of all differences between people (95% interval "
        f"{low:.2%} to {high:.2%}). It is widest between {pair.first} and {pair.second}: {percent(pair.shares[0])} of "
        f"easterners prefer {pair.first}, of westerners {percent(pair.shares[1])} ({percent(pair.intervals[1][0])} to "
        f"{percent(pair.intervals[1][1])}). The place of {item.item} changes most: {item.mean_ranks[0]:.1f} on average "
        f"in the east, {item.mean_ranks[1]:.1f} in the west."
    )


# end: sushi


# start: dublin
def dublin_test(root: str) -> MMDResult:
    """Do voters who number every candidate want the same as those who stop early, in their first three choices?"""
    ballots = rk.read_preflib(Path(root, "preflib", "00001-00000001.soi"))
    named = ballots.n_buckets - (ballots.kinds() == "top-k")  # what is left out shares the last bucket
    all_of_them = ballots.n_items - 1  # who names all but one has said everything
    patient, brief = ballots[named >= all_of_them], ballots[(named >= 3) & (named < all_of_them)]
    return rk.mmd_test(patient.top(3), brief.top(3), n_permutations=999)


def dublin_words(result: MMDResult) -> str:
    """Return what a newspaper could print."""
    found = result.differences(contributions="pairs")
    pair, item = max(found.pairs, key=apart), max(found.items, key=lambda each: each.rank_range)
    low, high = result.effect_interval
    return (
        f"Of the voters of Dublin North who named at least three candidates in 2002, {result.n_voters[0]:,} numbered "
        f"all {len(found.items)} or all but one, and {result.n_voters[1]:,} stopped early. The first three choices of "
        f"the two groups {'differ' if result.pvalue <= 0.05 else 'may well be alike'} ({p_text(result)}), by "
        f"{result.effect:.2%} of all differences between voters (95% interval {low:.2%} to {high:.2%}). If who chose "
        f"neither counts half for each, {percent(pair.shares[0])} of those who numbered everybody are for {pair.first} "
        f"against {pair.second}, of those who stopped {percent(pair.shares[1])} ({percent(pair.intervals[1][0])} to "
        f"{percent(pair.intervals[1][1])}). The place of {item.item} changes most: {item.mean_ranks[0]:.1f} on average "
        f"with the patient, {item.mean_ranks[1]:.1f} with the brief."
    )


# end: dublin


def p_text(result: MMDResult) -> str:
    """Return the p-value by permutations; the smallest that they can give is a bound."""
    return pvalue_text(result.pvalue, len(result.null_distribution))


PARAGRAPHS: dict[str, tuple[Callable[[str], MMDResult], Callable[[MMDResult], str]]] = {
    "SUSHI": (sushi_test, sushi_words),
    "Dublin North 2002": (dublin_test, dublin_words),
}


def row(name: str, root: str) -> dict[str, Any]:
    """Return a paragraph, and what is kept of the record that it comes from."""
    test, words = PARAGRAPHS[name]
    result = test(root)
    return {
        "data": name,
        "voters": sum(result.n_voters),
        "different ballots": len(result.rankings),
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
