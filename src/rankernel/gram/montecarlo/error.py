"""How sure an estimate is: from the spread of its draws to an error bar that holds."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankernel.arrays import FloatArray

FEWEST_BLOCKS = 32  # below, the spread between blocks of draws says too little: independent repetitions are added
FEWEST_OF_ONE = 4  # blocks of one set of draws; below, only whole repetitions tell how it varies
REPETITIONS = 16  # of these
COVERED = 0.96  # of all intervals of two error bars, however few blocks the spread was measured from
# How many numbers have to carry the spread of so many: an estimate that rests on fewer may miss what was not drawn. Of
# normal ones a third does; but pairs of blocks of draws hang together, so that fewer of them may be expected.
FEWEST_CARRYING = {1: 3.0, 64: 4.0, 256: 16.0, 1024: 32.0}


def error_bars(variance: FloatArray, bias: FloatArray, factor: FloatArray, n_blocks: int) -> FloatArray:
    """Return the root mean square distance from the truth, its random part widened by a factor, and for few blocks."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) * (factor * widening(n_blocks)) ** 2 + bias**2))


@lru_cache(maxsize=64)
def widening(n_blocks: int) -> float:
    """Return by how much a standard error from few blocks is widened so that two of it cover what they should."""
    from scipy.stats import t

    return float(max(t.ppf((1 + COVERED) / 2, max(n_blocks - 1, 1)) / 2, 1.0))


def n_carrying(squares: FloatArray, fourths: FloatArray) -> FloatArray:
    """Return how many numbers carry the spread, from the sums of the second and fourth powers of their deviations.

    If all were normal it would be a third of them; if one is much larger than all others it is 1.
    """
    return np.asarray(np.divide(squares**2, fourths, out=np.full(squares.shape, np.inf), where=fourths > 0))


def widened(carrying: FloatArray, n_numbers: int) -> FloatArray:
    """Return by how much an error bar is widened because few numbers carry the spread; 1 where enough of them do."""
    least = max((fewest for n, fewest in FEWEST_CARRYING.items() if n <= n_numbers), default=0.0)
    return np.sqrt(np.maximum(least / carrying, 1.0))
