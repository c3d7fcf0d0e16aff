"""From a p-value to a paragraph that a newspaper could print: ``python -m benchmarks.newspaper -o FOLDER``.

Reads the SUSHI data and the ballots of Dublin North from the folder RANKERNEL_DATA. Every number of a paragraph comes
from a result record.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import save


def percent(share: float) -> str:
    return f"{share:.0%}"


def differ(p: float) -> str:
    return "give different answers" if p <= 0.05 else "give answers that chance may explain"


# start: sushi
def sushi_paragraph(root: str) -> tuple[str, rk.MMDResult]:
    """Do people who grew up in the east and in the west of Japan want the same sushi?"""
    sushi = rk.load_sushi(root)
    west = sushi.users["east_west"] == 1
    result = rk.mmd_test(sushi.rankings[~west], sushi.rankings[west], n_permutations=500)
    low, high = result.effect_interval
    found = result.differences(by="pairs")
    pair, item = found.pairs[0], found.items[0]
    words = (
        f"Asked to rank ten kinds of sushi, people from the east and from the west of Japan {differ(result.pvalue)} "
        f"(p = {result.pvalue:.2g}). The gap makes up {result.effect:.1%} of all differences between people (95% "
        f"interval {low:.1%} to {high:.1%}). It is widest between {pair.first} and {pair.second}: "
        f"{percent(pair.shares[0])} of easterners prefer {pair.first}, of westerners {percent(pair.shares[1])} "
        f"({percent(pair.intervals[1][0])} to {percent(pair.intervals[1][1])}). On average {item.item} stands at place "
        f"{item.places[0]:.1f} in the east and {item.places[1]:.1f} in the west."
    )
    return words, result


# end: sushi


# start: dublin
def dublin_paragraph(root: str) -> tuple[str, rk.KSampleResult]:
    """Do voters of Dublin North who rank few candidates want the same first two as those who rank many?"""
    ballots = rk.read_preflib(Path(root) / "preflib" / "00001-00000001.soi", unlisted="free")
    listed = (ballots.ranks >= 0).sum(axis=1)
    ballots, listed = ballots[listed > 1].top(2), listed[listed > 1]
    names = np.array(["two or three", "four to six", "seven or more"])
    result = rk.k_sample_test(ballots, names[np.digitize(listed, [4, 7])], n_permutations=199)
    pairs = result.pairwise()
    first, second = (pairs.first[pairs.order()[0]], pairs.second[pairs.order()[0]])
    both = pairs.pair(first, second)
    pair, (low, high) = both.differences(by="pairs").pairs[0], both.effect_interval
    words = (
        f"Voters of Dublin North who rank {names[0]}, {names[1]}, or {names[2]} candidates {differ(result.pvalue)} "
        f"when it comes to their first two (p = {result.pvalue:.2g} for all three groups; {int(pairs.rejected.sum())} "
        f"of {len(pairs)} pairs of groups differ at {pairs.level:.0%} after correction). Most apart are those who rank "
        f"{first} and {second}: {percent(pair.shares[0])} of the former and {percent(pair.shares[1])} of the latter "
        f"are for {pair.first} rather than {pair.second}, ties counted half. Of all differences between the voters of "
        f"these two groups, {both.effect:.1%} lie between the groups (95% interval {low:.1%} to {high:.1%})."
    )
    return words, result


# end: dublin


def row(name: str, words: str, result: Any) -> dict[str, Any]:
    """Return what is kept of a result."""
    return {
        "data": name,
        "pvalue": result.pvalue,
        "tail_pvalue": result.tail_pvalue,
        "effect": round(result.effect, 5),
        "effect_interval": [round(end, 5) for end in result.effect_interval],
        "paragraph": words,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newspaper", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="a folder for newspaper.json")
    output = parser.parse_args().output
    root = os.environ["RANKERNEL_DATA"]
    rows = [row("SUSHI", *sushi_paragraph(root)), row("Dublin North", *dublin_paragraph(root))]
    for each in rows:
        print(each["paragraph"], "\n")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        save(output / "newspaper.json", rows)


if __name__ == "__main__":
    main()
