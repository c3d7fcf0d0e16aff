"""Where an item stands, and which of two comes first, in a uniform linear extension: exactly, part by part."""

from __future__ import annotations

from math import comb

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.completions.decomposition import Antichain, Parallel, Part, Prime, Series
from rankernel.completions.down_sets import whole_lattice


def part_marginals(part: Part, limit: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the position and pair probabilities of a part, among its own items."""
    size = len(part.items)
    match part:
        case Antichain():
            return np.full((size, size), 1 / size), (1 - np.eye(size)) / 2
        case Prime(_, before):
            lattice = whole_lattice(before, limit)
            position, pair = lattice.marginals(lattice.step_probabilities())
            # What is known is certain, not certain up to rounding.
            pair[before] = 1.0
            return position, pair
        case Series(_, parts) | Parallel(_, parts):
            position, pair = part_marginals(parts[0], limit)
            items = parts[0].items
            join = concatenated if isinstance(part, Series) else shuffled
            for inner in parts[1:]:
                position, pair = join(position, pair, *part_marginals(inner, limit))
                items = np.concatenate([items, inner.items])
            into = np.argsort(items)
            return position[into], pair[np.ix_(into, into)]


def concatenated(
    position: FloatArray, pair: FloatArray, position_2: FloatArray, pair_2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the marginals of one part followed by another."""
    n, m = len(position), len(position_2)
    return (
        np.block([[position, np.zeros((n, m))], [np.zeros((m, n)), position_2]]),
        np.block([[pair, np.ones((n, m))], [np.zeros((m, n)), pair_2]]),
    )


def shuffled(
    position: FloatArray, pair: FloatArray, position_2: FloatArray, pair_2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the marginals of two parts shuffled into each other."""
    n, m = len(position), len(position_2)
    between = position @ first_precedes(n, m) @ position_2.T
    return (
        np.concatenate([position @ shuffled_places(n, m), position_2 @ shuffled_places(m, n)]),
        np.block([[pair, between], [1 - between.T, pair_2]]),
    )


def shuffled_places(n: int, m: int) -> FloatArray:
    """Return P(the i-th of n cards is at place p) after shuffling them into m others, shape (n, n + m)."""
    total = comb(n + m, n)
    return np.array(
        [
            [comb(p, i) * comb(n + m - 1 - p, n - 1 - i) / total if i <= p <= i + m else 0.0 for p in range(n + m)]
            for i in range(n)
        ]
    )


def first_precedes(n: int, m: int) -> FloatArray:
    """Return P(the i-th of n cards lies before the j-th of m others) after shuffling, shape (n, m)."""
    total = comb(n + m, n)
    # k of the n cards lie before the j-th other one; the i-th is among them exactly if k > i.
    exactly = np.array(
        [[comb(k + j, j) * comb(n - k + m - 1 - j, m - 1 - j) / total for j in range(m)] for k in range(n + 1)]
    )
    more = np.cumsum(exactly[::-1], axis=0)[::-1]
    return np.asarray(more[1:], dtype=np.float64)
