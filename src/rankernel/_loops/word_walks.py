"""Words with given letters: all of them in lexicographic order, their indices, and swaps between them."""

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled
from rankernel._utils import IntArray, RankArray

WordArray = NDArray[np.int16]


@compiled
def all_words(sizes: IntArray, n_words: int) -> WordArray:
    """Return every word with ``sizes[c]`` letters c, in lexicographic order."""
    n = 0
    for letter in range(len(sizes)):
        n += sizes[letter]
    out = np.empty((n_words, n), dtype=np.int16)
    word, position = np.empty(n, dtype=np.int16), 0
    for letter in range(len(sizes)):
        for _ in range(sizes[letter]):
            word[position] = letter
            position += 1
    for row in range(n_words):
        for i in range(n):
            out[row, i] = word[i]
        # The next word: raise the last letter that can be raised, then sort the letters after it by reversing them.
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
    """Return the contribution of the letters from ``start`` to ``stop`` to the lexicographic index of a word.

    ``counts`` are the numbers of each letter from ``start`` on (overwritten), and ``n_words`` the words they form.
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
    """Return the index of each word after a swap of each two positions, or of adjacent ones only."""
    n_words, n = words.shape
    n_edges = n - 1 if adjacent else n * (n - 1) // 2
    out = np.empty((n_words, n_edges), dtype=np.int64)
    counts, spare, word = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64), np.empty(n, np.int16)
    for row in range(n_words):
        for i in range(n):
            word[i] = words[row, i]
        for c in range(len(sizes)):  # array expressions would take seconds to compile
            counts[c] = sizes[c]
        n_suffixes, edge = n_words, 0
        for p in range(n - 1):
            for q in range(p + 1, p + 2 if adjacent else n):
                # Only the contribution of the letters between the two positions changes.
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
