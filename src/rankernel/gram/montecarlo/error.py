"""How sure an estimate is: from the spread of its draws to an error bar that holds."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankernel.arrays import FloatArray

FEWEST_BLOCKS = 32  # below, the spread between blocks of draws says too little about the error
REPETITIONS = 16  # of all draws, independent, where there are fewer blocks
COVERED = 0.955  # of all intervals of two error bars, however few blocks the spread was measured from
FEW = 16.0  # pairs of blocks of draws: an estimate that rests on fewer may miss what was not drawn
FEW_OF_ALL = 1 / 16  # where there are not many pairs at all; of normal ones a third carries the spread


def error_bars(variance: FloatArray, bias: FloatArray, factor: FloatArray, n_blocks: int) -> FloatArray:
    """Return the root mean square distance from the truth, its random part widened by a factor, and for few blocks."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) * (factor * widening(n_blocks)) ** 2 + bias**2))


@lru_cache(maxsize=64)
def widening(n_blocks: int) -> float:
    """Return by how much a standard error from few blocks is widened so that two of it cover what they should."""
    from scipy.stats import t

    return float(max(t.ppf((1 + COVERED) / 2, max(n_blocks - 1, 1)) / 2, 1.0))


def n_carrying(squares: FloatArray, fourths: FloatArray) -> FloatArray:
    """Return how many pairs of blocks carry the spread, from the sums of second and fourth powers of deviations.

    If all were normal it would be a third of the pairs; if one is much larger than all others it is 1.
    """
    return np.asarray(np.divide(squares**2, fourths, out=np.full(squares.shape, np.inf), where=fourths > 0))


def widened(carrying: FloatArray, n_pairs: int) -> FloatArray:
    """Return by how much an error bar is widened because an estimate rests on few pairs of draws; 1 if it does not."""
    return np.sqrt(np.maximum(min(FEW, FEW_OF_ALL * n_pairs) / carrying, 1.0))
