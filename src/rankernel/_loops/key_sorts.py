"""Sorting a few items by keys, inside other loops."""

import numpy as np

from rankernel._loops.compiled import compiled_strictly

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
