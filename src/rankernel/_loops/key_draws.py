"""From keys to completions, and the rules by which the keys of several draws are coupled.

A *part* of a ranking is one of its buckets, or all items together where some are free. A rule fills ``keys[draw]`` of
the members of one part; in every single draw all orders of the members must be equally probable. Every part and every
block of draws has a random stream of its own.

The compiled loops are flat and allocate nothing: both would be compiled anew into each of them.
"""

from dataclasses import dataclass
from math import gcd

import numpy as np

from rankernel._loops.compiled import compiled_strictly
from rankernel._loops.random_streams import absorb, normal, seed_state, uniform

IID, ANTITHETIC, ORTHOGONAL, LATIN = 0, 1, 2, 3
SHORT = 512  # items that are quicker ranked by counting than sorted
AT_ONCE = 2**18  # keys that are held at once
WITHIN, SPREAD = 0, 1  # keys that order a bucket, and keys that order the free items among all
LAYER, ROW, NUMBER, START, SIZE = range(5)  # what the table says of a part


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of rankings that are left to chance.

    ``table[p]`` says of part p which keys order it, its ranking, the number of its stream, and where its members are
    in ``members``, in ascending order. ``places`` is one completion of each ranking: buckets in order of their items,
    the free items behind the listed ones.
    """

    table: np.ndarray
    members: np.ndarray
    places: np.ndarray
    n_listed: np.ndarray


def parts_of(ranks):
    """Return the parts of more than one item, those of free items last."""
    n_rankings, n_items = ranks.shape
    order = np.argsort(np.where(ranks < 0, n_items, ranks), axis=1, kind="stable")
    places = np.empty((n_rankings, n_items), dtype=np.int16)
    np.put_along_axis(places, order, np.arange(n_items, dtype=np.int16)[None], axis=1)
    in_order = np.take_along_axis(ranks, order, axis=1)
    begins = np.ones((n_rankings, n_items), dtype=bool)
    begins[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    start = np.flatnonzero(begins)
    size = np.diff(np.append(start, ranks.size))
    rank = in_order.ravel()[start]
    shared = (size > 1) & (rank >= 0)
    start, size, rank = start[shared], size[shared], rank[shared]
    free = np.flatnonzero((ranks < 0).any(axis=1)) if n_items > 1 else np.empty(0, dtype=np.int64)
    table = np.zeros((len(start) + len(free), 5), dtype=np.int64)
    table[: len(start)] = np.column_stack(
        [np.full(len(start), WITHIN), start // max(n_items, 1), rank + 1, start, size]
    )
    table[len(start) :] = [SPREAD, 0, 0, ranks.size, n_items]
    table[len(start) :, ROW] = free
    n_listed = np.count_nonzero(ranks >= 0, axis=1)
    return Parts(table, np.append(order.ravel(), np.arange(n_items)), places, n_listed)


def draw(ranks, n_draws, streams, rule, block):
    """Return coupled completions of each ranking, in blocks independent of each other."""
    n_rankings, n_items = ranks.shape
    out = np.empty((n_rankings, n_draws, n_items), dtype=np.int16)
    n_blocks = max(min(AT_ONCE // max(block * n_items, 1), -(-n_draws // block)), 1)
    n_rows = max(AT_ONCE // max(n_blocks * block * n_items, 1), 1)
    for row in range(0, n_rankings, n_rows):
        rows = slice(row, row + n_rows)
        parts = parts_of(ranks[rows])
        for first in range(0, -(-n_draws // block), n_blocks):
            drawn = out[rows, first * block : (first + n_blocks) * block]
            keys = np.empty((2, *drawn.shape))
            fill_keys(rule, parts, streams[rows], first, block, keys)
            drawn[...] = place(parts, keys)
    return out


def fill_keys(rule, parts, streams, first, block, keys):
    """Fill ``keys[layer, ranking, draw, item]`` of some blocks of draws, from number ``first`` on."""
    n_items, state = keys.shape[3], np.empty(4, dtype=np.uint64)
    if rule == ORTHOGONAL:
        basis = np.empty((max(min(n_items - 1, (block + 1) // 2), 1), n_items))
        orthogonal_keys(parts.table, parts.members, streams, first, block, state, basis, keys)
    elif rule == LATIN:
        steps = np.ones(n_items + 1, dtype=np.int64)
        for size in np.unique(parts.table[:, SIZE]).tolist():
            steps[size] = golden_step(size)
        numbers, base = np.empty(n_items), np.empty(n_items, dtype=np.int64)
        latin_keys(parts.table, parts.members, streams, first, block, state, steps, numbers, base, keys)
    else:
        plain_keys(parts.table, parts.members, streams, first, block, state, rule == ANTITHETIC, keys)


def complete(ranks, keys):
    """Return the completion of each ranking that each vector of its keys gives."""
    return place(parts_of(ranks), np.broadcast_to(keys, (2, *keys.shape)))


def place(parts, keys):
    """Return the completions that keys give.

    The first layer orders each bucket. The second orders the free items among all: listed items take the places of
    listed keys, bucket by bucket.
    """
    out = np.empty(keys.shape[1:], dtype=np.int16)
    out[...] = parts.places[:, None]
    free = parts.table[:, LAYER] == SPREAD
    rank_parts(parts.table[~free], parts.members, keys[WITHIN], out)
    if free.any():
        among_all = np.empty_like(out)
        rank_parts(parts.table[free], parts.members, keys[SPREAD], among_all)
        item_at, place_of = np.empty(keys.shape[3], dtype=np.int64), np.empty(keys.shape[3], dtype=np.int64)
        let_in(parts.table[free, ROW], parts.n_listed, among_all, item_at, place_of, out)
    return out


def rank_parts(table, members, keys, out):
    """Write the places of the members of parts, by key, equal keys by item; large parts are sorted."""
    n_items, short = keys.shape[2], table[:, SIZE] <= SHORT
    own, places = np.empty(n_items), np.empty(n_items, dtype=np.int64)
    count_places(table[short], members, keys, own, places, out)
    for _, row, _, start, size in table[~short].tolist():
        part = members[start : start + size]
        order = np.argsort(keys[row][:, part], axis=1, kind="stable")
        np.put_along_axis(out[row], part[order], start % n_items + np.arange(size, dtype=np.int16)[None], axis=1)


@compiled_strictly
def count_places(table, members, keys, own, places, out):
    """Write the places of the members of each part, by counting, with nothing for the processor to guess."""
    for p in range(len(table)):
        row, start, size = table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[1]):
            for j in range(size):
                own[j] = keys[row, d, members[start + j]]
            for j in range(size):
                before = np.int64(0)
                for i in range(j):
                    earlier = np.int64(own[i] <= own[j])
                    before += earlier
                    places[i] += 1 - earlier
                places[j] = before
            for j in range(size):
                out[row, d, members[start + j]] = start % keys.shape[2] + places[j]


@compiled_strictly
def let_in(rows, n_listed, among_all, item_at, place_of, out):
    """Let the free items in: they take their places among all, the listed ones the places that are left, in order."""
    n_items = out.shape[2]
    for k in range(len(rows)):
        row = rows[k]
        for d in range(out.shape[1]):
            for a in range(n_items):
                item_at[among_all[row, d, a]] = a
            listed = 0
            for position in range(n_items):
                if out[row, d, item_at[position]] < n_listed[row]:
                    place_of[listed] = position
                    listed += 1
            for a in range(n_items):
                own = out[row, d, a]
                out[row, d, a] = place_of[own] if own < n_listed[row] else among_all[row, d, a]


@compiled_strictly
def plain_keys(table, members, streams, first, block, state, mirrored, keys):
    """Fill with independent numbers; ``mirrored``: every second draw of a block mirrors the one before it."""
    for p in range(len(table)):
        layer, row, start = table[p, LAYER], table[p, ROW], table[p, START]
        for d in range(keys.shape[2]):
            if d % block == 0:
                number = np.uint64(first + d // block)
                seed_state(state, absorb(absorb(streams[row], number), np.uint64(table[p, NUMBER])))
            for j in range(start, start + table[p, SIZE]):
                a = members[j]
                keys[layer, row, d, a] = 1.0 - keys[layer, row, d - 1, a] if mirrored and d % 2 else uniform(state)


@compiled_strictly
def orthogonal_keys(table, members, streams, first, block, state, basis, keys):
    """Fill with plus and minus orthogonal directions, uniform on the sphere of the vectors that sum to zero."""
    for p in range(len(table)):
        layer, row, start, size = table[p, LAYER], table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[2]):
            if d % block == 0:
                number = np.uint64(first + d // block)
                seed_state(state, absorb(absorb(streams[row], number), np.uint64(table[p, NUMBER])))
            new = (d % block // 2) % (size - 1)
            if d % block % 2 == 0:
                for j in range(size):
                    basis[new, j] = normal(state)
                # Twice is enough: the second pass removes what rounding left of the first.
                for _ in range(2):
                    mean, length = 0.0, 0.0
                    for j in range(size):
                        mean += basis[new, j] / size
                    for j in range(size):
                        basis[new, j] -= mean
                    for i in range(new):
                        product = 0.0
                        for j in range(size):
                            product += basis[i, j] * basis[new, j]
                        for j in range(size):
                            basis[new, j] -= product * basis[i, j]
                    for j in range(size):
                        length += basis[new, j] ** 2
                    for j in range(size):
                        basis[new, j] /= np.sqrt(length)
            sign = -1.0 if d % block % 2 else 1.0
            for j in range(size):
                keys[layer, row, d, members[start + j]] = sign * basis[new, j]


@compiled_strictly
def latin_keys(table, members, streams, first, block, state, steps, numbers, base, keys):
    """Fill with cyclic shifts of a random order, all shifts before any is repeated.

    Shifts go in golden steps, so that the first few of many are spread out.
    """
    for p in range(len(table)):
        layer, row, start, size = table[p, LAYER], table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[2]):
            if d % block == 0:
                number = np.uint64(first + d // block)
                seed_state(state, absorb(absorb(streams[row], number), np.uint64(table[p, NUMBER])))
            turn = d % block % size
            if turn == 0:
                for j in range(size):
                    numbers[j] = uniform(state)
                for j in range(size):
                    before = 0
                    for i in range(size):
                        before += numbers[i] < numbers[j] or (numbers[i] == numbers[j] and i < j)
                    base[before] = j
            shift = turn * steps[size] % size
            for j in range(size):
                keys[layer, row, d, members[start + j]] = (base[j] + shift) % size


def golden_step(size):
    """Return the number coprime to ``size`` that is nearest to its golden section."""
    middle = round(0.6180339887498949 * size)
    for away in range(size):
        for step in (middle - away, middle + away):
            if 0 < step <= size and gcd(step, size) == 1:
                return step
    return 1
