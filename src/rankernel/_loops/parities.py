"""Products of the signs of sets of pairs, as parities of bits."""

import numpy as np

from rankernel._loops.bits import popcount
from rankernel._loops.compiled import compiled


@compiled
def mean_parities(signs, offsets, subsets, out):
    """Fill ``out[i, j]`` with the mean over full rankings ``offsets[i]:offsets[i + 1]`` of the product of signs in j.

    ``signs`` and ``subsets`` are rows of 64-bit words, one bit for each pair of items: a pair in the wrong order, and a
    pair that belongs to the set.
    """
    n_words = signs.shape[1]
    for i in range(out.shape[0]):
        start, stop = offsets[i], offsets[i + 1]
        for j in range(out.shape[1]):
            odd = np.int64(0)
            for draw in range(start, stop):
                word = np.uint64(0)
                for w in range(n_words):
                    word ^= signs[draw, w] & subsets[j, w]
                odd += np.int64(popcount(word) & np.uint64(1))
            out[i, j] = 1.0 - 2.0 * odd / (stop - start)
