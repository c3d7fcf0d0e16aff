"""Words: which letter stands at which position. All words with given letters, their order, and swaps between them."""

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled
from rankernel._utils.arrays import FloatArray, IntArray, RankArray

WordArray = NDArray[np.int16]


@compiled
def all_words(sizes: IntArray, n_words: int) -> WordArray:
    """Return every word with ``sizes[c]`` letters c, in lexicographic order."""
    n = 0
    for letter in range(len(sizes)):
        n += sizes[letter]
    out = np.empty((n_words, n), dtype=np.int16)
    word, index = np.empty(n, dtype=np.int16), 0
    for letter in range(len(sizes)):
        for _ in range(sizes[letter]):
            word[index] = letter
            index += 1
    for row in range(n_words):
        for i in range(n):
            out[row, i] = word[i]
        # The next word: raise the last letter that can be raised, then reverse what comes after it into order.
        i = n - 2
        while i >= 0 and word[i] >= word[i + 1]:
            i -= 1
        if i < 0:
            break
        j = n - 1
        while word[j] <= word[i]:
            j -= 1
        word[i], word[j] = word[j], word[i]
        i, j = i + 1, n - 1
        while i < j:
            word[i], word[j] = word[j], word[i]
            i, j = i + 1, j - 1
    return out


@compiled
def partial_index(word: WordArray, start: int, stop: int, counts: IntArray, n_words: int) -> int:
    """Return the terms of letters ``start`` to ``stop`` in the index of a word in the lexicographic order.

    ``counts`` are the letters from ``start`` on, and ``n_words`` how many words they form; ``counts`` is used up.
    """
    index, rest = 0, len(word) - start
    for position in range(start, stop):
        letter = word[position]
        for smaller in range(letter):
            index += n_words * counts[smaller] // rest
        n_words = n_words * counts[letter] // rest
        counts[letter] -= 1
        rest -= 1
    return index


@compiled
def swaps(words: WordArray, sizes: IntArray, adjacent: bool) -> IntArray:
    """Return the index of each word after a swap of each two positions, or of neighbouring ones only."""
    n_words, n = words.shape
    n_edges = n - 1 if adjacent else n * (n - 1) // 2
    out = np.empty((n_words, n_edges), dtype=np.int64)
    counts, spare, word = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64), np.empty(n, np.int16)
    for row in range(n_words):
        for i in range(n):
            word[i] = words[row, i]
        for c in range(len(sizes)):  # whole arrays would take seconds to compile
            counts[c] = sizes[c]
        n_suffixes, edge = n_words, 0
        for p in range(n - 1):
            for q in range(p + 1, p + 2 if adjacent else n):
                # Only the letters between the two positions change their share in the index.
                change = 0
                for _ in range(2):
                    for c in range(len(sizes)):
                        spare[c] = counts[c]
                    change = partial_index(word, p, q + 1, spare, n_suffixes) - change
                    word[p], word[q] = word[q], word[p]
                out[row, edge] = row + change
                edge += 1
            n_suffixes = n_suffixes * counts[word[p]] // (n - p)
            counts[word[p]] -= 1
    return out


@compiled
def pair_words(X: RankArray, Y: RankArray) -> IntArray:
    """Return, for each pair of full rankings, the index of the word of the right positions, read in left order."""
    n = X.shape[1]
    n_words = 1
    for k in range(2, n + 1):
        n_words *= k
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.int64)
    item_at, word, counts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int16), np.empty(n, dtype=np.int64)
    for i in range(X.shape[0]):
        for a in range(n):
            item_at[X[i, a]] = a
        for j in range(Y.shape[0]):
            for position in range(n):
                word[position] = Y[j, item_at[position]]
            counts[:] = 1
            out[i, j] = partial_index(word, 0, n, counts, n_words)
    return out


@compiled
def sums_over_matching(
    words: WordArray, shares: IntArray, ends: IntArray, values: FloatArray, derivatives: FloatArray
) -> tuple[float, float, int]:
    """Return sums over the words with ``shares[i, c]`` letters c in segment i, up to ``ends[i]``, and how many."""
    value, derivative, n_matching = 0.0, 0.0, 0
    left = np.empty(shares.shape[1], dtype=np.int64)
    for row in range(words.shape[0]):
        start, fits = 0, True
        for i in range(len(ends)):
            for c in range(shares.shape[1]):
                left[c] = shares[i, c]
            for position in range(start, ends[i]):
                left[words[row, position]] -= 1
                if left[words[row, position]] < 0:
                    fits = False
                    break
            if not fits:
                break
            start = ends[i]
        if fits:
            value += values[row]
            derivative += derivatives[row]
            n_matching += 1
    return value, derivative, n_matching
