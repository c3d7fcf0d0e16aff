"""Cost model: seconds that one step of each loop takes on one core.

Measured on one ordinary machine by ``python -m benchmarks.cost`` and the same numbers everywhere, so that "auto" makes
the same decision on every machine and however busy it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankernel._utils.arrays import IntArray

STEP = {
    "entry": 4e-9,  # of a matrix, to write it and its mirror image
    "bits": 0.8e-9,  # a word of bits of two rankings compared
    "differing": 1.6e-9,  # bits of a word of one full ranking and of another counted
    "shared": 2e-9,  # items of two buckets counted, and looked up
    "tied": 15e-9,  # an item of a tie looked up in the ties of another ranking
    "listed": 3e-9,  # an item of a short list looked up in another list
    "inversion": 50e-9,  # an item of a long list inserted at its position
    "item": 1.2e-9,  # of a code: what a kernel sees of one item in two rankings
    "code": 12e-9,  # distinguished from others and looked up
    "product": 0.35e-9,  # of two features
    "feature": 10e-9,  # of one ranking made
    "distance": 0.5e-9,  # of two full rankings, for each item
    "cycle": 5e-9,  # of two full rankings followed, for each item
    "kernel": 12e-9,  # an elementary function of an array
    "draw": 25e-9,  # of a completion, for each item
    "sum": 0.35e-9,  # of a function of the Kendall distance of two draws whose pairs are one word of bits
    "lookup": 1.2e-9,  # of a function of a distance of two draws
}

SAMPLE = 96  # rows and columns from which the number of distinct values of a whole matrix is guessed


def distinct_values(codes: Callable[[IntArray, IntArray], IntArray], n_rows: int, n_columns: int) -> float:
    """Return about how many distinct codes a matrix has, from those of some of its rows and columns.

    The number grows with a power of the number of entries, which is read off two samples of different sizes.
    """
    rows, columns = (np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64)) for n in (n_rows, n_columns))
    if not len(rows) or not len(columns):
        return 0.0
    found = codes(rows, columns)
    n_found, n_some = len(np.unique(found)), len(np.unique(found[::2, ::2]))
    if found.size >= n_rows * n_columns:
        return float(n_found)
    growth = np.log(n_found / n_some) / np.log(found.size / found[::2, ::2].size) if found.size > 1 else 1.0
    return float(min(n_found * (n_rows * n_columns / found.size) ** growth, n_rows * n_columns))
