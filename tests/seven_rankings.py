"""Seven rankings of all kinds with multiplicities, and kernels with their oracles, for the tests of learners."""

import naive
import numpy as np

from rankernel import Hamming, Kendall, Mallows, Rankings

KERNELS = [
    (Kendall(), naive.kendall_kernel),
    (Mallows(nu=0.3), naive.mallows(0.3)),
    (Hamming() + Mallows(nu=0.2), lambda x, y: naive.hamming_kernel(x, y) + naive.mallows(0.2)(x, y)),
]
ROWS = [
    (0, 1, 2, 3, 4),
    (1, 0, 2, 3, 3),
    (4, 3, 2, 1, 0),
    (2, 2, 1, 0, -1),
    (-1, 0, -1, 1, 2),
    (0, 3, 1, 2, 3),
    (1, 4, 0, 2, 3),
]
COUNTS = [3, 1, 2, 1, 4, 2, 1]
DATA = Rankings(np.array(ROWS), counts=COUNTS)
EXPANDED = Rankings(np.repeat(np.array(ROWS), COUNTS, axis=0))


def square_distances(kernel, rows):
    K = naive.gram(kernel, rows, rows)
    return [[K[i][i] + K[j][j] - 2 * K[i][j] for j in range(len(rows))] for i in range(len(rows))]
