"""Codes of the cycles of permutations."""

import numpy as np
import pytest

from rankernel import _loops


def cycle_lengths(first, second):
    step, left, lengths = dict(zip(first, second, strict=True)), set(first), []
    while left:
        position, length = left.pop(), 1
        while step[position] in left:
            position = step[position]
            left.remove(position)
            length += 1
        lengths.append(length)
    return lengths


@pytest.mark.parametrize("n", [1, 2, 5, 63, 64, 65, 90])  # a word has 64 bits
@pytest.mark.parametrize("mask", [2**62 - 1, 255])
def test_codes_add_a_weight_for_each_cycle(n, mask):
    rng = np.random.default_rng(n)
    weights = np.array([7, *rng.integers(1, 2**40, n), mask])
    X, Y = (np.argsort(rng.random((size, n)), axis=1) for size in (3, 4))
    Y[0] = X[0]
    found = np.empty((3, 4), dtype=np.int64)
    _loops.pairs.cycle_codes(X.T, Y.T, weights, found)
    expected = [[(7 + sum(weights[cycle_lengths(x, y)])) & mask for y in Y.tolist()] for x in X.tolist()]
    assert found.tolist() == expected
