"""Types of arrays, checks, and small tools that all layers use."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RankArray = NDArray[np.int32]  # bucket index of each item, 0 is the best; -1 marks a free item
FullRanks = NDArray[np.int16]  # position of each item in full rankings
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


def slices(length: int, step: int) -> Iterator[slice]:
    """Return consecutive slices of a length, of ``step`` rows each but of at least one."""
    step = max(step, 1)
    return (slice(start, min(start + step, length)) for start in range(0, length, step))
