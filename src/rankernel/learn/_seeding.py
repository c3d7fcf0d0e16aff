"""Where a partition starts from: rows far from each other, drawn one after the other (k-means++)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.checks import check_integer


def spread_seeds(
    costs_to: Callable[[int], FloatArray], weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Indices:
    """Return different rows, each drawn with the probability that its weighted cost has in the sum of all.

    ``costs_to(row)`` says what it costs each row to have ``row`` as its seed. The first seed is drawn by weight alone.
    """
    seeds = [int(rng.choice(len(weights), p=weights / weights.sum()))]
    costs = costs_to(seeds[0])
    while len(seeds) < n_clusters:
        chances = np.maximum(weights * costs, 0)
        chances[seeds] = 0
        if not chances.any():  # all other rows equal a seed
            chances = weights.copy()
            chances[seeds] = 0
        seeds.append(int(rng.choice(len(weights), p=chances / chances.sum())))
        costs = np.minimum(costs, costs_to(seeds[-1]))
    return np.array(seeds, dtype=np.intp)


def check_partition(n_clusters: int, n_init: int, max_iter: int, n_rankings: int) -> None:
    """Refuse numbers that no partition can have."""
    for name, value in (("n_clusters", n_clusters), ("n_init", n_init), ("max_iter", max_iter)):
        check_integer(name, value)
    if n_clusters > n_rankings:
        raise ValueError(f"n_clusters={n_clusters} but X has {n_rankings} rankings; ask for fewer clusters")
