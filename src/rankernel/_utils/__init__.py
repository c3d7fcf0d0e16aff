"""Types of arrays, checks, and small tools that all layers use."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RankArray = NDArray[np.int32]  # bucket index of each item, 0 is the best; -1 marks a free item
FullRanks = NDArray[np.int16]  # position of each item in full rankings
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
