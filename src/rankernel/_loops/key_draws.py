"""From keys to completions, and the rules by which the keys of several draws are coupled.

A *part* of a ranking is one of its buckets, or all items together where some are free. A rule fills a table
``keys[draw, member]`` for one part; in every single row all orders of the members must be equally probable.
"""

import numpy as np

from rankernel._loops.compiled import compiled_strictly
from rankernel._loops.row_hashes import absorb, normal, seed_state, uniform

IID, ANTITHETIC, ORTHOGONAL, LATIN = 0, 1, 2, 3
SHORT = 512


@compiled_strictly
def comes_first(items, keys, i, j):
    """Say whether place i sorts before place j: by key, equal keys by item."""
    return keys[i] < keys[j] or (keys[i] == keys[j] and items[i] < items[j])


@compiled_strictly
def sift_down(items, keys, root, end):
    """Restore the heap below ``root``: no place sorts before its two children."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and comes_first(items, keys, child, child + 1):
            child += 1
        if not comes_first(items, keys, root, child):
            return
        items[root], items[child] = items[child], items[root]
        keys[root], keys[child] = keys[child], keys[root]
        root = child


@compiled_strictly
def sort_by_keys(items, keys, places, spare):
    """Sort items, given in ascending order, by key, equal keys by item; keys, places and spare are used up.

    Up to some hundred are ranked by counting, with nothing for the processor to guess, more by a heap.
    """
    size = len(items)
    if size > SHORT:
        heap_sort(items, keys)
        return
    for j in range(size):
        before = np.int64(0)
        for i in range(j):
            earlier = np.int64(keys[i] <= keys[j])
            before += earlier
            places[i] += 1 - earlier
        places[j] = before
    for j in range(size):
        spare[j] = items[j]
    for j in range(size):
        items[places[j]] = spare[j]


@compiled_strictly
def heap_sort(items, keys):
    """Sort items together with their keys; equal keys by item."""
    size = len(items)
    for root in range(size // 2 - 1, -1, -1):
        sift_down(items, keys, root, size)
    for end in range(size - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        keys[0], keys[end] = keys[end], keys[0]
        sift_down(items, keys, 0, end)


@compiled_strictly
def group_by_bucket(ranks, members, ends):
    """List the items bucket by bucket and where each bucket ends, free items behind; return the number of buckets."""
    n_items = len(ranks)
    n_buckets = 0
    for a in range(n_items):
        n_buckets = max(n_buckets, ranks[a] + 1)
    for b in range(n_buckets + 1):
        ends[b] = 0
    for a in range(n_items):
        ends[ranks[a] if ranks[a] >= 0 else n_buckets] += 1
    total = 0
    for b in range(n_buckets + 1):
        size = ends[b]
        ends[b] = total
        total += size
    for a in range(n_items):
        b = ranks[a] if ranks[a] >= 0 else n_buckets
        members[ends[b]] = a
        ends[b] += 1
    return n_buckets


@compiled_strictly
def place(members, ends, n_buckets, within, spread, items, places, spare, row):
    """Write the completion that keys give.

    ``within`` (in the order of ``members``) orders each bucket; ``spread`` (in the order of the items) orders the free
    items among all: listed items take the places of listed keys, bucket by bucket. Both tables are used up.
    """
    n_items = len(members)
    for j in range(n_items):
        items[j] = members[j]
    start = 0
    for b in range(n_buckets):
        if ends[b] - start > 1:
            sort_by_keys(items[start : ends[b]], within[start : ends[b]], places, spare)
        start = ends[b]
    if start == n_items:
        for position in range(n_items):
            row[items[position]] = position
        return
    is_free = np.zeros(n_items, dtype=np.bool_)
    for j in range(start, n_items):
        is_free[members[j]] = True
    order = np.arange(n_items)
    sort_by_keys(order, spread, places, spare)
    listed = 0
    for position in range(n_items):
        if is_free[order[position]]:
            row[order[position]] = position
        else:
            row[items[listed]] = position
            listed += 1


@compiled_strictly
def complete(ranks, keys):
    """Return the completion of each ranking that each vector of its keys gives."""
    n_rankings, n_draws, n_items = keys.shape
    out = np.empty((n_rankings, n_draws, n_items), dtype=np.int16)
    members, items = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    ends, places = np.empty(n_items + 1, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    spare = np.empty(n_items, dtype=np.int64)
    within, spread = np.empty(n_items), np.empty(n_items)
    for i in range(n_rankings):
        n_buckets = group_by_bucket(ranks[i], members, ends)
        for d in range(n_draws):
            for j in range(n_items):
                spread[j] = keys[i, d, j]
                within[j] = keys[i, d, members[j]]
            place(members, ends, n_buckets, within, spread, items, places, spare, out[i, d])
    return out


@compiled_strictly
def fill_orthogonal(keys, state):
    """Fill with plus and minus orthogonal directions, uniform on the sphere of the vectors that sum to zero."""
    n_draws, size = keys.shape
    basis = np.empty((min(size - 1, (n_draws + 1) // 2), size))
    for d in range(n_draws):
        number = (d // 2) % (size - 1)
        sign = -1.0 if d % 2 else 1.0
        if d % 2 == 0:
            random_direction(basis, number, state)
        for j in range(size):
            keys[d, j] = sign * basis[number, j]


@compiled_strictly
def random_direction(basis, number, state):
    """Write a random unit vector that sums to zero and is orthogonal to the vectors before it."""
    size = basis.shape[1]
    for j in range(size):
        basis[number, j] = normal(state)
    # Twice is enough: the second pass removes what rounding left of the first.
    for _ in range(2):
        mean, length = 0.0, 0.0
        for j in range(size):
            mean += basis[number, j] / size
        for j in range(size):
            basis[number, j] -= mean
        for i in range(number):
            remove_component(basis, number, i)
        for j in range(size):
            length += basis[number, j] ** 2
        for j in range(size):
            basis[number, j] /= np.sqrt(length)


@compiled_strictly
def remove_component(basis, number, i):
    """Make one vector orthogonal to another, of length 1."""
    product = 0.0
    for j in range(basis.shape[1]):
        product += basis[i, j] * basis[number, j]
    for j in range(basis.shape[1]):
        basis[number, j] -= product * basis[i, j]


@compiled_strictly
def golden_step(size):
    """Return the number coprime to ``size`` that is nearest to its golden section."""
    middle = round(0.6180339887498949 * size)
    for away in range(size):
        for step in (middle - away, middle + away):
            if 0 < step <= size:
                a, b = size, step
                while b:
                    a, b = b, a % b
                if a == 1:
                    return step
    return 1


@compiled_strictly
def fill_latin(keys, state):
    """Fill with cyclic shifts of a random order, all shifts before any is repeated.

    Shifts go in golden steps, so that the first few of many are spread out.
    """
    n_draws, size = keys.shape
    step = golden_step(size)
    base, numbers = np.empty(size, dtype=np.int64), np.empty(size)
    places, spare = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for d in range(n_draws):
        if d % size == 0:
            for j in range(size):
                base[j], numbers[j] = j, uniform(state)
            sort_by_keys(base, numbers, places, spare)
        shift = (d % size) * step % size
        for j in range(size):
            keys[d, j] = (base[j] + shift) % size


@compiled_strictly
def fill_part(rule, keys, state):
    """Fill the keys of one part in one block of draws."""
    n_draws, size = keys.shape
    if rule == ORTHOGONAL:
        fill_orthogonal(keys, state)
    elif rule == LATIN:
        fill_latin(keys, state)
    else:
        for d in range(n_draws):
            for j in range(size):
                keys[d, j] = 1.0 - keys[d - 1, j] if rule == ANTITHETIC and d % 2 else uniform(state)


@compiled_strictly
def fill_block(rule, stream, state, ends, n_buckets, within, spread):
    """Fill the keys of one block of draws, every part from a stream of its own."""
    start = 0
    for b in range(n_buckets):
        if ends[b] - start > 1:
            seed_state(state, absorb(stream, np.uint64(b + 1)))
            fill_part(rule, within[:, start : ends[b]], state)
        start = ends[b]
    if start < spread.shape[1] and spread.shape[1] > 1:
        seed_state(state, absorb(stream, np.uint64(0)))
        fill_part(rule, spread, state)


@compiled_strictly
def draw(ranks, n_draws, streams, rule, block):
    """Return coupled completions of each ranking, in blocks independent of each other."""
    n_rankings, n_items = ranks.shape
    out = np.empty((n_rankings, n_draws, n_items), dtype=np.int16)
    members, items = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    ends, places = np.empty(n_items + 1, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    spare = np.empty(n_items, dtype=np.int64)
    rows, state = min(block, n_draws), np.empty(4, dtype=np.uint64)
    within, spread = np.zeros((rows, n_items)), np.zeros((rows, n_items))
    for i in range(n_rankings):
        n_buckets = group_by_bucket(ranks[i], members, ends)
        for start in range(0, n_draws, block):
            stop = min(start + block, n_draws)
            stream = absorb(streams[i], np.uint64(start // block))
            fill_block(rule, stream, state, ends, n_buckets, within[: stop - start], spread[: stop - start])
            for d in range(start, stop):
                place(members, ends, n_buckets, within[d - start], spread[d - start], items, places, spare, out[i, d])
    return out
