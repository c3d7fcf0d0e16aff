"""From a p-value to a paragraph that a newspaper could print: ``python -m benchmarks.newspaper -o FOLDER``.

Reads the SUSHI data from the folder RANKERNEL_DATA. Every number of the paragraph comes from a result record.
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
    rows = [row("SUSHI", *sushi_paragraph(root))]
    for each in rows:
        print(each["paragraph"], "\n")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        save(output / "newspaper.json", rows)


if __name__ == "__main__":
    main()
