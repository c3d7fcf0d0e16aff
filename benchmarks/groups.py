"""The number of clusters that the report finds in data without clusters and in mixtures of known clusters.

Run with ``python -m benchmarks.groups --repeats 20 --json FILE``. Each data set has its own centers, ballots and seed.
"""

import argparse
from collections import Counter
from functools import partial

import numpy as np

import rankernel as rk
from benchmarks.clock import save
from rankernel.datasets import mallows, mixture, plackett_luce, truncate
from rankernel.reports.ballots import Source, distinct_ballots
from rankernel.reports.clusters import MAX_CLUSTERS, Settings, number_of_clusters

LENGTHS = {1: 0.2, 2: 0.2, 3: 0.3, 8: 0.3}


def uniform(n_rankings, n_items, seed):
    """Return uniform random rankings."""
    return mallows(n_rankings, n_items, 0.0, rng=seed)


def strengths(n_rankings, n_items, seed, spread=2):
    """Return rankings of one Plackett-Luce model with log-strengths from 0 to ``spread``."""
    return plackett_luce(n_rankings, np.exp(np.linspace(0, spread, n_items)), rng=seed)


def around(n_groups, theta, n_rankings, n_items, seed, weights=None):
    """Return rankings of a mixture of Mallows models with random centers."""
    rng = np.random.default_rng([seed, n_groups])
    centers = [rng.permutation(n_items) for _ in range(n_groups)]
    parts = [partial(mallows, center=center, theta=theta) for center in centers]
    return mixture(n_rankings, parts, weights, rng=seed).rankings


def truncated(draw, n_rankings, n_items, seed):
    """Return rankings truncated to 1, 2, 3 or all items."""
    return truncate(draw(n_rankings, n_items, seed=seed), LENGTHS, rng=seed)


CASES = (
    ("uniform", 1, uniform, 600, 8),
    ("uniform", 1, uniform, 60, 5),
    ("one Plackett-Luce model", 1, strengths, 600, 8),
    ("one Plackett-Luce model, truncated", 1, partial(truncated, strengths), 600, 8),
    ("one Plackett-Luce model, e**6 times as strong", 1, partial(strengths, spread=6), 400, 5),
    ("one Mallows model, theta 0.5", 1, partial(around, 1, 0.5), 600, 8),
    ("one Mallows model, theta 1", 1, partial(around, 1, 1.0), 600, 8),
    ("one Mallows model, theta 1", 1, partial(around, 1, 1.0), 400, 5),
    ("one Mallows model, theta 1.5", 1, partial(around, 1, 1.5), 400, 5),
    ("one Mallows model, theta 1.5", 1, partial(around, 1, 1.5), 400, 6),
    ("one Mallows model, theta 1.5", 1, partial(around, 1, 1.5), 400, 8),
    ("one Mallows model, theta 2", 1, partial(around, 1, 2.0), 400, 5),
    ("one Mallows model, theta 2", 1, partial(around, 1, 2.0), 2000, 5),
    ("one Mallows model, theta 2", 1, partial(around, 1, 2.0), 400, 6),
    ("one Mallows model, theta 2", 1, partial(around, 1, 2.0), 400, 8),
    ("one Mallows model, theta 1.5, truncated", 1, partial(truncated, partial(around, 1, 1.5)), 600, 8),
    ("two groups, theta 0.7", 2, partial(around, 2, 0.7), 600, 8),
    ("two groups, 85 to 15, theta 1", 2, partial(around, 2, 1.0, weights=[0.85, 0.15]), 600, 8),
    ("three groups, theta 0.7", 3, partial(around, 3, 0.7), 600, 8),
    ("three groups, theta 1, truncated", 3, partial(truncated, partial(around, 3, 1.0)), 600, 8),
    ("three groups, theta 0.4", 3, partial(around, 3, 0.4), 600, 8),
    ("five groups, theta 1", 5, partial(around, 5, 1.0), 600, 8),
)


def rows(cases, n_repeats):
    """Yield for each case how often each number of clusters was found."""
    for name, n_groups, draw, n_rankings, n_items in cases:
        found = Counter(clusters_found(draw(n_rankings, n_items, seed=seed), seed) for seed in range(n_repeats))
        yield {
            "ballots": name,
            "voters": n_rankings,
            "items": n_items,
            "groups": n_groups if n_groups > 1 else "none",
            "right": found[n_groups] / n_repeats,
            **{f"found {k if k > 1 else 'none'}": found[k] for k in range(1, MAX_CLUSTERS + 1)},
        }


def clusters_found(rankings, seed):
    """Return the number of clusters of a report, 1 without clusters."""
    ballots = distinct_ballots(Source(rankings))
    kernel = rk.Mallows("median").resolve(ballots.rankings)
    return number_of_clusters(ballots, Settings(kernel, rng=seed)).n_clusters


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_args()
    found = []
    for row in rows(CASES, options.repeats):
        found.append(row)
        print(row, flush=True)
        if options.json:
            save(options.json, found, repeats=options.repeats)


if __name__ == "__main__":
    main()
