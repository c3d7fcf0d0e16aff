"""Sums over coordinates or items in a fixed order, so that an entry has the same bits in every block.

The order of summation of a BLAS depends on the shape of the block.
"""

from rankernel._loops.compiled import compiled_strictly

ROWS = 4  # rows at once, so that each number of the right side is loaded once for four products


@compiled_strictly
def inner_products(left, right, out):
    """Write ``left @ right``."""
    n_grouped = left.shape[0] // ROWS * ROWS
    out[:] = 0.0
    for i in range(0, n_grouped, ROWS):
        for d in range(left.shape[1]):
            a, b, c, e = left[i, d], left[i + 1, d], left[i + 2, d], left[i + 3, d]
            for j in range(right.shape[1]):
                value = right[d, j]
                out[i, j] += a * value
                out[i + 1, j] += b * value
                out[i + 2, j] += c * value
                out[i + 3, j] += e * value
    for i in range(n_grouped, left.shape[0]):
        for d in range(left.shape[1]):
            a = left[i, d]
            for j in range(right.shape[1]):
                out[i, j] += a * right[d, j]


@compiled_strictly
def position_sums(X, Y, matrix, out):
    """Write the sums over items a of ``matrix[X[i, a], Y[j, a]]``."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = 0.0
            for a in range(X.shape[1]):
                total += matrix[X[i, a], Y[j, a]]
            out[i, j] = total
