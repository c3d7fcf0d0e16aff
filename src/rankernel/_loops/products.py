"""Inner products that come out the same to the bit in every block.

A BLAS rounds as its blocks fall. Here each entry is summed in the order of the coordinates, whatever the shape of the
block, so that blocks computed apart fit together exactly.
"""

from rankernel._loops.compiled import compiled_strictly

ROWS = 4  # at once, so that each number of the right side is loaded once for four products


@compiled_strictly
def inner_products(left, right, out):
    """``out[i, j]`` = the sum over d of ``left[i, d] * right[d, j]``."""
    whole = left.shape[0] // ROWS * ROWS
    out[:] = 0.0
    for i in range(0, whole, ROWS):
        for d in range(left.shape[1]):
            a, b, c, e = left[i, d], left[i + 1, d], left[i + 2, d], left[i + 3, d]
            for j in range(right.shape[1]):
                value = right[d, j]
                out[i, j] += a * value
                out[i + 1, j] += b * value
                out[i + 2, j] += c * value
                out[i + 3, j] += e * value
    for i in range(whole, left.shape[0]):
        for d in range(left.shape[1]):
            a = left[i, d]
            for j in range(right.shape[1]):
                out[i, j] += a * right[d, j]
