"""From a p-value to a paragraph that a newspaper could print: ``python -m benchmarks.newspaper -o FOLDER``.

Reads the SUSHI data and the Dublin North election of 2002 from the folder RANKERNEL_DATA.
Every number of the paragraph comes from a result record.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

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
def dublin_paragraph(root: str) -> tuple[str, rk.MMDResult]:
    """Do voters who number every candidate want the same as those who stop early, in their first three choices?"""
    ballots = rk.read_preflib(Path(root, "preflib", "00001-00000001.soi"))
    named = ballots.n_buckets - (ballots.kinds() == "top-k")  # what is left out shares the last bucket
    all_of_them = ballots.n_items - 1  # who names all but one has said everything
    patient, brief = ballots[named >= all_of_them].top(3), ballots[(named >= 3) & (named < all_of_them)].top(3)
    result = rk.mmd_test(patient, brief, n_permutations=999)
    low, high = result.effect_interval
    found = result.differences(by="pairs")
    pair, item = found.pairs[0], found.items[0]
    words = (
        f"Of the voters of Dublin North who named at least three candidates in 2002, {patient.n_voters:,} numbered all "
        f"{ballots.n_items} or all but one, and {brief.n_voters:,} stopped early. The first three choices of the two "
        f"groups {'differ' if result.pvalue <= 0.05 else 'may well be alike'} (p = {result.pvalue:.2g}), by "
        f"{result.effect:.1%} of all differences between voters (95% interval {low:.1%} to {high:.1%}). If who chose "
        f"neither counts half for each, {percent(pair.shares[0])} of those who numbered everybody are for {pair.first} "
        f"against {pair.second}, of those who stopped {percent(pair.shares[1])} ({percent(pair.intervals[1][0])} to "
        f"{percent(pair.intervals[1][1])}). The place of {item.item} changes most: {item.places[0]:.1f} on average "
        f"with the patient, {item.places[1]:.1f} with the brief."
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
    rows = [row("SUSHI", *sushi_paragraph(root)), row("Dublin North 2002", *dublin_paragraph(root))]
    for each in rows:
        print(each["paragraph"], "\n")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        save(output / "newspaper.json", rows)


if __name__ == "__main__":
    main()
