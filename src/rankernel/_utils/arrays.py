"""Names for the kinds of arrays that go around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RankArray = NDArray[np.int32]  # item -> bucket, 0 the best, -1 nothing is known
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
