"""The exact law of the Hamming distance between random completions.

A formula for ``E x^agreements`` in whole numbers, evaluated at a power of two larger than all counts, writes the
counts into the digits of one large integer: nothing is rounded before the last division.
"""

from __future__ import annotations

import math

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.gram.exact.exp_hamming import (
    FullSweep,
    chain_paths_of,
    chain_states,
    full_agreements,
    log_match_law,
    staircase_of,
    top_k_matching,
)
from rankernel.gram.exact.overlap import DistanceLaw, Overlap, Shape

MOST_ITEMS = 60
MOST_TOP_K_ITEMS = 5000
MOST_CHAIN_STATES = 1_000_000
LARGEST_EXACT_DOUBLE = 2**53


class HammingLaw(DistanceLaw):
    """Law of the number of items whose positions differ.

    Covers rankings without free items, a full ranking and any other, short chains with free items, and one side that
    says nothing.

    >>> from rankernel.gram.exact.overlap import Overlap
    >>> HammingLaw().pmf(Overlap.of(np.array([0, 0, 0]), np.array([0, 1, 2]))) * 6
    array([1., 0., 3., 2.])
    """

    name = "Hamming law"
    distance = "hamming"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether one of the four ways below is open and short."""
        n_items = left.n_items
        if says_nothing(left, right) or (left.is_top_k and right.is_top_k):
            return n_items <= MOST_TOP_K_ITEMS
        if left.is_exhaustive and right.is_exhaustive:
            return n_items <= MOST_ITEMS
        return FullSweep().covers(left, right) or are_short_chains(left, right)

    def pmf(self, overlap: Overlap) -> FloatArray:
        """Return the probabilities of the distances 0..n."""
        left, right = overlap.left_shape, overlap.right_shape
        if says_nothing(left, right):
            return match_distances(overlap.n_items, overlap.n_items, overlap.n_items, 0)
        if left.is_top_k and right.is_top_k:
            return match_distances(overlap.n_items, *top_k_matching(overlap))
        if left.is_exhaustive and right.is_exhaustive:
            return bucket_distances(overlap)
        if left.is_full or right.is_full:
            return full_agreements(overlap)[::-1].copy()
        return chain_distances(overlap)


def says_nothing(left: Shape, right: Shape) -> bool:
    """At most one bucket on one side: each order of the items is a completion, equally likely."""
    return min(len(left.sizes), len(right.sizes)) <= 1


def are_short_chains(left: Shape, right: Shape) -> bool:
    """Chains whose lattice paths are few enough to be counted exactly in doubles, and summed in whole numbers."""
    m, r = left.n_listed, right.n_listed
    if not (left.is_chain and right.is_chain) or chain_states(left, right) > MOST_CHAIN_STATES:
        return False
    pinned_paths = sum(
        math.comb(m + r - b, b) * math.comb(m + r - 2 * b, m - b) << (m + r - 2 * b) for b in range(min(m, r) + 1)
    )
    return pinned_paths < LARGEST_EXACT_DOUBLE


def match_distances(n_items: int, n_random: int, n_targets: int, n_apart: int) -> FloatArray:
    """Return the law of n_apart + n_targets less the matches among n_random places."""
    out = np.zeros(n_items + 1)
    out[n_apart : n_apart + n_targets + 1] = np.exp(log_match_law(n_random, n_targets))[::-1]
    return out


def bucket_distances(overlap: Overlap) -> FloatArray:
    """Return the law for rankings without free items, from the expansion of the staircase in whole numbers."""
    cells, left_sizes, right_sizes = (array.tolist() for array in staircase_of(overlap))
    total = math.prod(map(math.factorial, left_sizes + right_sizes))
    digit = total.bit_length()
    by_pinned, carried = {0: 1}, None
    for cell, following in zip(cells, [*cells[1:], [None, None]], strict=True):
        carries = "row" if following[0] == cell[0] else "column" if following[1] == cell[1] else None
        sizes = (left_sizes[cell[0]], right_sizes[cell[1]])
        by_pinned = absorb(by_pinned, carried, carries, sizes, pinned_weights(cell[2], cell[3], (1 << digit) - 1))
        carried = carries
    return distances_from_digits(by_pinned[0], digit, total, overlap.n_items)


def pinned_weights(n_positions: int, n_shared: int, gain: int) -> list[int]:
    """Return ``C(C,u) C(P,u) u! gain^u`` for each possible u."""
    most = min(n_positions, n_shared)
    return [math.comb(n_shared, u) * math.perm(n_positions, u) * gain**u for u in range(most + 1)]


def absorb(
    by_pinned: dict[int, int], carried: str | None, carries: str | None, sizes: tuple[int, int], weights: list[int]
) -> dict[int, int]:
    """Return the sums behind one cell, by the number of pinned items in the bucket that goes on."""
    out: dict[int, int] = {}
    for before, value in by_pinned.items():
        for u, weight in enumerate(weights):
            in_row, in_column = (u + before if carried == side else u for side in ("row", "column"))
            term = value * weight
            if carries != "row":
                term *= math.factorial(sizes[0] - in_row)
            if carries != "column":
                term *= math.factorial(sizes[1] - in_column)
            to = in_row if carries == "row" else in_column if carries == "column" else 0
            out[to] = out.get(to, 0) + term
    return out


def chain_distances(overlap: Overlap) -> FloatArray:
    """Return the law for chains with free items: lattice paths, filled up with free items in whole numbers."""
    n = overlap.n_items
    free_left, free_right = overlap.left_shape.free, overlap.right_shape.free
    paths = chain_paths_of(overlap)
    n_both_free = free_left + free_right - n + paths.shape[3] - 1
    total = math.perm(n, free_left) * math.perm(n, free_right)
    digit = total.bit_length()
    gain = (1 << digit) - 1
    value = 0
    for b, j, k, a in np.argwhere(paths).tolist():
        gaps = free_left + free_right - n + b
        for i in range(min(gaps, n_both_free, free_left - j, free_right - k) + 1):
            pinned = math.comb(n, gaps) * math.comb(gaps, i) * math.perm(n_both_free, i)
            others = math.factorial(free_left - i - j) * math.factorial(free_right - i - k)
            value += (int(paths[b, j, k, a]) * pinned * others * gain ** (i + j + k)) << (digit * a)
    return distances_from_digits(value, digit, total, n)


def distances_from_digits(value: int, digit: int, total: int, n_items: int) -> FloatArray:
    """Return the law whose counts of agreements are the digits of ``value`` in base ``2^digit``."""
    mask = (1 << digit) - 1
    return np.array([(value >> (digit * (n_items - d)) & mask) / total for d in range(n_items + 1)])
