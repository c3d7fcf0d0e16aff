"""Analysis of the battles of LLMFAO: ``RANKERNEL_DATA=... python -m benchmarks.arena -o docs/benchmarks/arena.json``.

The file of 8,931 battles of 59 models by 124 judges comes with https://github.com/dustalov/evalica, with the strengths
that evalica computes for it.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import save

SHOWN = 5  # models in the table, at the top and at the bottom


def main() -> None:
    """Answer the questions of the tutorial."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    folder = Path(os.environ["RANKERNEL_DATA"]) / "arena"
    battles = rk.read_comparisons(folder / "llmfao.csv")
    board, fit = rk.leaderboard(battles), rk.bradley_terry(battles)
    with (folder / "llmfao-golden.csv").open(encoding="utf-8") as file:
        golden = {
            row["item"]: float(row["score"]) for row in csv.DictReader(file) if row["algorithm"] == "bradley_terry"
        }
    expected = np.log([golden[item] for item in battles.items])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.ReadingWarning)  # cycles are counted below, and small judges are left out
        contradicting = battles.preferences().n_contradicting
        judges = battles.rankings()
    outliers = rk.outlier_test(judges, rk.Mallows("median"))
    found = {
        "battles": len(battles),
        "models": battles.n_items,
        "judges": battles.n_judges,
        "ties": float(battles.tied.mean()),
        "median battles of a model": int(np.median((battles.wins + battles.wins.T + battles.ties).sum(axis=1))),
        "separated": int(board.above.before.sum()),
        "judges with cycles": contradicting,
        "difference to evalica": float(np.abs(fit.strengths - expected + expected.mean()).max()),
        "p of prompts": rk.k_sample_test(battles, "prompt", rk.Mallows(0.5)).pvalue,
        "prompts": len(np.unique(battles.labels["prompt"])),
        "judges with rankings": len(judges),
        "outliers": int((outliers.adjusted_pvalues <= outliers.alpha).sum()),
    }
    print(found)
    print(board)
    if options.output is not None:
        rows = board.rows()
        save(options.output, [*rows[:SHOWN], *rows[-SHOWN:]], shown_as="table in arenas.md", **found)


if __name__ == "__main__":
    main()
