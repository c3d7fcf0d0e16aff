"""All completions of one ranking."""

import numpy as np

from rankernel._loops.compiled import compiled


@compiled
def enumerate_all(ranks, n_completions):
    """Return every completion, best places first: at each place the items that may stand there, in their order.

    An item may come next if it is free, or if it is in the first bucket that is not used up.
    """
    n_items = len(ranks)
    out = np.empty((n_completions, n_items), dtype=np.int16)
    left = np.zeros(n_items + 1, dtype=np.int64)
    for a in range(n_items):
        if ranks[a] >= 0:
            left[ranks[a]] += 1
    position_of = np.full(n_items, -1, dtype=np.int64)
    item_at = np.full(n_items, -1, dtype=np.int64)
    bucket, position, row = 0, 0, 0
    while row < n_completions:
        item = item_at[position]
        if item >= 0:  # take back the item tried last
            position_of[item] = -1
            if ranks[item] >= 0:
                bucket = ranks[item]
                left[bucket] += 1
        item += 1
        while item < n_items and (position_of[item] >= 0 or (ranks[item] >= 0 and ranks[item] != bucket)):
            item += 1
        if item == n_items:
            item_at[position] = -1
            position -= 1
            continue
        item_at[position], position_of[item] = item, position
        if ranks[item] >= 0:
            left[bucket] -= 1
            if left[bucket] == 0:
                bucket += 1
        if position == n_items - 1:
            for a in range(n_items):
                out[row, a] = position_of[a]
            row += 1
        else:
            position += 1
    return out
