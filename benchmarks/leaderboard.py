"""Simultaneous coverage of the ranks of leaderboards: ``python benchmarks/leaderboard.py``.

Data sets are simulated from known strengths. A leaderboard is correct if no two items are separated in the wrong order
or although they are equal; then all intervals of ranks contain the true ranks. The table gives the share of correct
leaderboards with its standard error, and the mean number of ranks in an interval.

``python benchmarks/leaderboard.py -o docs/benchmarks/leaderboard.json`` stores the numbers (with ``--designs`` those of
some designs, beside the others), and
``python -m benchmarks.pages`` writes them into the appendix of the benchmarks.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk

STRENGTHS = {
    "equal": np.zeros(8),
    "three groups": np.repeat([0.0, 0.5, 1.0], [3, 3, 2]),
    "apart": np.linspace(0, 3.5, 8),
}


def rankings(rng: np.random.Generator, strengths: np.ndarray, n_voters: int, missing: float = 0.0) -> rk.Rankings:
    """Return rankings of normal utilities, some of them missing."""
    scores = rng.normal(strengths, 1.0, (n_voters, len(strengths)))
    scores[rng.random(scores.shape) < missing] = np.nan
    scores[:, :2] = np.where(np.isnan(scores).all(axis=1, keepdims=True), 0.0, scores[:, :2])
    return rk.Rankings.from_scores(scores, unlisted="free")


def battles(
    rng: np.random.Generator,
    strengths: np.ndarray,
    n_battles: int,
    n_judges: int = 0,
    spread: float = 0.0,
    ties: float = 0.0,
    uneven: bool = False,
) -> rk.Comparisons:
    """Return battles of judges who differ in their strengths by a standard deviation."""
    n = len(strengths)
    chances = np.arange(1, n + 1, dtype=float) if uneven else np.ones(n)
    first = rng.choice(n, n_battles, p=chances / chances.sum())
    second = (first + rng.integers(1, n, n_battles)) % n
    judge = rng.integers(0, max(n_judges, 1), n_battles)
    opinions = strengths + spread * rng.normal(size=(max(n_judges, 1), n))
    difference = opinions[judge, first] - opinions[judge, second]
    outcome = np.where(rng.random(n_battles) < 1 / (1 + np.exp(-difference)), 1, -1)
    outcome[rng.random(n_battles) < ties] = 0
    return rk.Comparisons.from_arrays(first, second, outcome, judge=judge if n_judges else None, items=range(n))


def with_few_judges(rng: np.random.Generator, strengths: np.ndarray) -> rk.Comparisons:
    """Return battles of 40 judges who differ, where 4 of the judges made all 40 battles of one item."""
    n, rare = len(strengths), 3
    others = np.delete(np.arange(n), rare)
    first = others[rng.integers(0, n - 1, 2000)]
    second = np.roll(others, -1)[(np.searchsorted(others, first) + rng.integers(0, n - 2, 2000)) % (n - 1)]
    first, second = np.append(first, np.full(40, rare)), np.append(second, others[rng.integers(0, n - 1, 40)])
    judge = np.append(rng.integers(0, 40, 2000), rng.integers(0, 4, 40))
    opinions = strengths + 0.5 * rng.normal(size=(40, n))
    chance = 1 / (1 + np.exp(opinions[judge, second] - opinions[judge, first]))
    outcome = np.where(rng.random(len(first)) < chance, 1, -1)
    return rk.Comparisons.from_arrays(first, second, outcome, judge=judge, items=range(n))


def round_robin(rng: np.random.Generator, strengths: np.ndarray, n_battles: int) -> rk.Comparisons:
    """Return the same number of battles of each two items."""
    first, second = (np.repeat(side, n_battles) for side in np.triu_indices(len(strengths), 1))
    chance = 1 / (1 + np.exp(strengths[second] - strengths[first]))
    outcome = np.where(rng.random(len(first)) < chance, 1, -1)
    return rk.Comparisons.from_arrays(first, second, outcome, items=range(len(strengths)))


DESIGNS: dict[str, Any] = {
    "10 voters": lambda rng, s: rankings(rng, s, 10),
    "30 voters": lambda rng, s: rankings(rng, s, 30),
    "100 voters": lambda rng, s: rankings(rng, s, 100),
    "100 voters, 30 % missing": lambda rng, s: rankings(rng, s, 100, 0.3),
    "2,000 battles": lambda rng, s: battles(rng, s, 2000),
    "2,000 battles, 40 % ties": lambda rng, s: battles(rng, s, 2000, ties=0.4),
    "2,000 battles, uneven schedule": lambda rng, s: battles(rng, s, 2000, uneven=True),
    "4,000 battles of 40 judges who differ": lambda rng, s: battles(rng, s, 4000, 40, 0.5),
    "4,000 battles of 12 judges who differ": lambda rng, s: battles(rng, s, 4000, 12, 0.5),
    "one item has 40 battles of 4 judges": with_few_judges,
    "win rates of 2 battles a pair": lambda rng, s: round_robin(rng, s, 2),
    "win rates of 20 battles a pair": lambda rng, s: round_robin(rng, s, 20),
    "contests of 2 battles a pair": lambda rng, s: round_robin(rng, s, 2),
    "contests of 20 battles a pair": lambda rng, s: round_robin(rng, s, 20),
}
SCORES = {"win rates": "borda", "contests": "copeland"}  # by the beginning of the design; others have the default


def measure(design: str, name: str, n_runs: int) -> dict[str, Any]:
    """Return the coverage and the mean length of the intervals of ranks."""
    rng, strengths = np.random.default_rng([len(design), len(name)]), STRENGTHS[name]
    score = next((score for start, score in SCORES.items() if design.startswith(start)), None)
    correct, ranks = 0, 0.0
    for run in range(n_runs):
        board = rk.leaderboard(DESIGNS[design](rng, strengths), score=score, n_resamples=400, rng=run)
        true = strengths[[int(item) for item in board.items]]
        correct += not (board.above.before[0] & (true[:, None] <= true)).any()
        ranks += float((np.diff(board.rank_intervals, axis=1) + 1).mean())
    return {"design": design, "items": name, "runs": n_runs, "coverage": correct / n_runs, "ranks": ranks / n_runs}


def main() -> None:
    """Measure all designs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=DESIGNS)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    cells = []
    if options.output is not None and options.output.exists():
        cells = [
            cell
            for cell in json.loads(options.output.read_text(encoding="utf-8"))["rows"]
            if cell["design"] not in options.designs
        ]
    for design in options.designs:
        for name in STRENGTHS:
            cells.append(measure(design, name, options.runs))
            print(cells[-1], flush=True)
    if options.output is not None:
        content = {"shown_as": "table in appendix.md", "rows": cells}
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
