"""How sure an estimate is: from the spread of its draws to an error bar that holds."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankernel.arrays import FloatArray

FEWEST_BLOCKS = 8  # below, the spread between blocks of draws says too little about the error
REPLICATES = 8  # independent repetitions of all draws, where there are fewer blocks
COVERED = 0.94  # of all intervals of two error bars, however few blocks the spread was measured from
MOST_OF_IT = 0.5
BY_CHANCE = 1e-3  # how often a block is so heavy if the draws are well-behaved


def error_bars(variance: FloatArray, bias: FloatArray, n_blocks: int) -> FloatArray:
    """Return the root mean square distance from the truth, widened for its own uncertainty where blocks are few."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) * widening(n_blocks) ** 2 + bias**2))


@lru_cache(maxsize=64)
def widening(n_blocks: int) -> float:
    """Return by how much a standard error from few blocks is widened so that two of it cover what they should."""
    from scipy.stats import t

    return float(max(t.ppf((1 + COVERED) / 2, max(n_blocks - 1, 1)) / 2, 1.0))


def doubtful(heaviest: FloatArray, n_blocks: int) -> FloatArray:
    """Return by how much an error bar is widened because one block of draws carries most of the variance; 1 if none.

    Then the estimate rests on a few draws, and what has not been drawn may weigh as much.
    """
    limit = heaviest_by_chance(n_blocks)
    return np.where(heaviest > limit, 1.0 + 2.0 * (heaviest - limit) / (1.0 - limit), 1.0)


@lru_cache(maxsize=64)
def heaviest_by_chance(n_blocks: int) -> float:
    """Return the part of the variance that the heaviest of so many blocks on each side rarely exceeds."""
    from scipy.stats import beta

    n = 2 * n_blocks
    return max(float(beta.isf(BY_CHANCE / n, 0.5, (n - 1) / 2)), MOST_OF_IT) if n_blocks > 2 else 1.0
