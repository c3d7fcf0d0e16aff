"""Mallows kernels of rankings with free items: dynamic programmes over the items placed so far.

Each programme follows random completions item by item, and carries for each state the mean of ``q^cost``, where cost
counts the discordant pairs so far. A state holds ``(low, mean, excess)``: the mean of ``q^cost`` is ``q^low * mean``
and the mean of ``(cost - low) q^cost`` is ``q^low * excess``, low being the smallest cost that leads there. So nothing
underflows however large the cost, every term is positive, and the derivative comes along:
``d/dnu log = -(low + excess / mean)``.

The loops are flat and allocate nothing: both would be compiled anew into each of them. ``work`` is theirs to write in,
and ``now`` says in which of two tables the states are (an argument: a 0 written here would be compiled for apart).
"""

from functools import lru_cache
from math import comb

import numpy as np

from rankernel._loops.compiled import compiled

# Columns of a table of states.
LOW, MEAN, EXCESS = 0, 1, 2

# Rows of a table of numbers: powers q^k, brackets [k] = 1 + q + ... + q^(k-1), and minus the slopes of these in nu.
POWER, BRACKET, SLOPE = 0, 1, 2


@compiled
def add(tables, layer, target, cost, more, extra, q):
    """Let a path of this cost arrive at a state."""
    if tables[layer, target, MEAN] == 0.0:
        tables[layer, target, LOW] = cost
        tables[layer, target, MEAN] = more
        tables[layer, target, EXCESS] = extra
        return
    gap = cost - tables[layer, target, LOW]
    weight = q[POWER, int(abs(gap))]
    if gap >= 0:
        tables[layer, target, MEAN] += weight * more
        tables[layer, target, EXCESS] += weight * (extra + gap * more)
    else:
        older = tables[layer, target, EXCESS] - gap * tables[layer, target, MEAN]
        tables[layer, target, EXCESS] = weight * older + extra
        tables[layer, target, MEAN] = weight * tables[layer, target, MEAN] + more
        tables[layer, target, LOW] = cost


def gathered(states, q):
    """Return the sum of some states."""
    low, mean, excess = states[states[:, MEAN] > 0.0].T
    gap = low - low.min()
    weight = q[POWER, gap.astype(np.int64)]
    return np.array([low.min(), (weight * mean).sum(), (weight * (excess + gap * mean)).sum()])


# ---------------------------------------------------------------------- no free item on the left: by class


def class_programme(classes, q):
    """Return the mean of q^cost of a random right completion, cost against a left ranking without free items.

    ``classes[i, j]`` items are in left bucket i and right bucket j (last column: free on the right). The completion is
    written down best item first; a state is how many items of each class it has used. The number of a state is that of
    the listed items used (blocks of one right bucket after the other) times the ways to have used the free ones, plus
    the number of such a way.
    """
    n_left, n_columns = classes.shape
    # Mixed radix for numbers from 0 to each count of a column; the last entry is how many there are.
    strides = np.ones((n_columns, n_left + 1), dtype=np.int64)
    strides[:, 1:] = np.cumprod(classes.T + 1, axis=1)
    n_states = (1 + int((strides[:-1, -1] - 1).sum())) * int(strides[-1, -1])
    tables = np.zeros((1, n_states, 3))
    tables[0, 0, MEAN] = 1.0
    use_all(np.ascontiguousarray(classes), strides, q, np.zeros((3, n_left), dtype=np.int64), tables, 0)
    return tables[0, -1]


@compiled
def use_all(classes, strides, q, work, tables, now):
    """Go on by one item from each state, block after block: a block has used the same listed items."""
    n_left, n_right = classes.shape[0], classes.shape[1] - 1
    listed, still_open, used = 0, 1, 2  # rows of ``work``, by left bucket
    n_free_states, total_free, n_listed = strides[n_right, n_left], 0, 0
    for i in range(n_left):
        total_free += classes[i, n_right]
        for j in range(n_right):
            n_listed += classes[i, j]
    block = 0
    for j in range(n_right + 1):
        n_open = 0
        for i in range(n_left):
            work[still_open, i] = classes[i, j] if j < n_right else 0
            n_open += work[still_open, i]
        # The last way to have used a bucket, all of it, is the first of the next bucket.
        for way in range(strides[j, n_left] - 1 if j < n_right else 1):
            if way:
                for i in range(n_left):  # the next way to have used listed items of this bucket
                    if work[still_open, i] > 0:
                        work[still_open, i] -= 1
                        work[listed, i] += 1
                        n_open -= 1
                        n_listed -= 1
                        break
                    work[still_open, i] = classes[i, j]
                    work[listed, i] -= classes[i, j]
                    n_open += classes[i, j]
                    n_listed += classes[i, j]
            n_used = 0
            for i in range(n_left):
                work[used, i] = 0
            for here in range(block * n_free_states, (block + 1) * n_free_states):
                cost, mean, excess = tables[now, here, LOW], tables[now, here, MEAN], tables[now, here, EXCESS]
                n_items = n_listed + total_free - n_used
                for i in range(n_left - 1, -1, -1):
                    if mean == 0.0:
                        break
                    for is_listed in range(2):
                        if is_listed and work[still_open, i] > 0:
                            chance = n_listed / n_items * work[still_open, i] / n_open
                            target = here + strides[j, i] * n_free_states
                        elif not is_listed and work[used, i] < classes[i, n_right]:
                            chance = (classes[i, n_right] - work[used, i]) / n_items
                            target = here + strides[n_right, i]
                        else:
                            continue
                        add(tables, now, target, cost, chance * mean, chance * excess, q)
                    cost += work[listed, i] + work[used, i]
                for i in range(n_left):  # the next way to have used free items
                    if work[used, i] < classes[i, n_right]:
                        work[used, i] += 1
                        n_used += 1
                        break
                    n_used -= work[used, i]
                    work[used, i] = 0
            block += 1
        if j < n_right:  # the bucket is used up
            for i in range(n_left):
                n_listed -= work[still_open, i]
                work[listed, i] += work[still_open, i]


# ---------------------------------------------------------------------- how many items each gap holds

# An occupancy of m + 1 gaps is kept as its prefix sums; those of one total form a layer, and are numbered in it by the
# combinatorial number system: sum over j < m of binomial(prefix[j] + j, j + 1).

PREFIX, NUMBERS, AGAINST, FILLED, CAME = range(5)  # rows of the work of a programme over gaps


@lru_cache(maxsize=64)
def binomials(m, f):
    """Return the binomial coefficients that number the occupancies of m + 1 gaps by up to f items; the rest are 0."""
    table = np.zeros((m + f + 1, m + 1), dtype=np.int64)
    for j in range(m + 1):
        for more in range(f + 1):
            table[j + more, j] = comb(j + more, j)
    return table


@compiled
def start_layer(work, m, total):
    """Move to occupancy number 0 of a layer: all items in the last gap."""
    for j in range(m):
        work[PREFIX, j] = 0
    work[PREFIX, m] = total


@compiled
def advance(work, m):
    """Move to the next occupancy of the same layer, if there is one."""
    for j in range(m):
        if work[PREFIX, j] < work[PREFIX, j + 1]:
            work[PREFIX, j] += 1
            for i in range(j):
                work[PREFIX, i] = 0
            return


@compiled
def fill_gaps(tables, now, here, new, inner, local, chance, work, m, q):
    """Insert one item at a random place among slots and gaps: it passes the items of later gaps and ``against[g]``.

    ``numbers[g]`` is the number in the next layer of the occupancy with one more item in gap g.
    """
    total = work[PREFIX, m]
    mean = tables[now, here, MEAN] * chance / (total + m + 1)
    excess = tables[now, here, EXCESS] * chance / (total + m + 1)
    for g in range(m + 1):
        places = work[PREFIX, g] - (work[PREFIX, g - 1] if g else 0) + 1
        more = mean * q[BRACKET, places]
        extra = excess * q[BRACKET, places] + mean * q[SLOPE, places]
        cost = tables[now, here, LOW] + work[AGAINST, g] + total - work[PREFIX, g]
        add(tables, new, work[NUMBERS, g] * inner + local, cost, more, extra, q)


# ---------------------------------------------------------------------- no free item on the left, a chain on the right


def gap_programme(listed, free, q):
    """Return the mean of q^cost of a random completion of a chain, cost against a left ranking without free items.

    ``listed[u]`` is the left bucket of the u-th item of the chain, ``free`` the left buckets of the other items,
    ascending. Free items enter the gaps of the chain in that order, as if items of one left bucket were ordered, too;
    a state is how many each gap holds.
    """
    m, f = len(listed), len(free)
    binomial = binomials(m, f)
    tables = np.zeros((2, binomial[f + m, m], 3))
    tables[0, 0] = np.count_nonzero(np.triu(listed[:, None] > listed[None, :], 1)), 1.0, 0.0
    layer = let_all_in(listed, free, binomial, q, np.zeros((5, m + 1), dtype=np.int64), tables, 0)
    return gathered(tables[layer], q)


@compiled
def let_all_in(listed, free, binomial, q, work, tables, now):
    """Insert the free items one after the other; return in which table the last states are, the first being in one."""
    m = len(listed)
    for t in range(len(free)):
        # How many items of the chain an item of this left bucket is in the wrong order with, in each gap.
        work[AGAINST, 0] = 0
        for u in range(m):
            work[AGAINST, 0] += 1 if listed[u] < free[t] else 0
        for u in range(m):
            turn = 1 if listed[u] > free[t] else -1 if listed[u] < free[t] else 0
            work[AGAINST, u + 1] = work[AGAINST, u] + turn
        new = 1 - now
        for state in range(tables.shape[1]):
            tables[new, state, MEAN] = 0.0
        start_layer(work, m, t)
        for number in range(binomial[t + m, m]):
            work[NUMBERS, m] = number
            for g in range(m - 1, -1, -1):
                work[NUMBERS, g] = work[NUMBERS, g + 1] + binomial[work[PREFIX, g] + g, g]
            fill_gaps(tables, now, number, new, 1, 0, 1.0, work, m, q)
            advance(work, m)
        now = new
    return now


# ---------------------------------------------------------------------- free items on either side


def insertion_programme(classes, by_listed, q):
    """Return the mean of q^cost of random completions of two rankings, free items on either side.

    ``classes[i, j]`` items are in left bucket i and right bucket j; last row and column: free. The left completion is
    written down best item first and each item is inserted into the right one: a listed item into a random slot of its
    right bucket, another into a random place between the slots. A state is: how many items each gap between slots
    holds; which slots are filled; for each right bucket with items both listed and free on the left, how many of the
    free ones came; and progress: how many items came that are listed on the left (``by_listed``) or else free on both
    sides, for each tells the other.
    """
    n_right, n_items = classes.shape[1] - 1, int(classes.sum())
    right_sizes, free = classes[:, :-1].sum(axis=0), classes[-1, :-1]
    before = np.zeros(classes.shape, dtype=np.int64)
    before[1:] = np.cumsum(classes[:-1], axis=0)  # items in left buckets before i, by right bucket
    started = before.sum(axis=1)
    bucket_of = np.repeat(np.arange(n_right), right_sizes)  # right bucket of each slot
    mixed = np.cumprod([1, *np.where(free == right_sizes, 1, free + 1)])
    n_progress = 1 + int(started[-1] if by_listed else classes[-1, -1])
    m = len(bucket_of)
    f, inner = n_items - m, int(mixed[-1]) * n_progress << m
    binomial = binomials(m, f)
    tables = np.zeros((2, int(binomial[f + m, m]) * inner, 3))
    tables[0, 0, MEAN] = 1.0
    work, chances = np.zeros((5, max(m, n_right) + 2), dtype=np.int64), np.zeros((2, n_right + 1))
    layer = insert_all(
        np.ascontiguousarray(classes),
        before,
        started,
        right_sizes,
        bucket_of,
        mixed,
        bool(by_listed),
        n_progress,
        n_items,
        binomial,
        q,
        work,
        chances,
        tables,
        0,
    )
    return gathered(tables[layer, inner - 1 :: inner], q)


@compiled
def insert_all(
    classes,
    before,
    started,
    right_sizes,
    bucket_of,
    mixed,
    by_listed,
    n_progress,
    n_items,
    binomial,
    q,
    work,
    chances,
    tables,
    now,
):
    """Insert the items one after the other; return in which table the last states are.

    ``chances[0, j]`` is the chance that the next left item is in right bucket j and listed on the left, and
    ``chances[1, j]`` that it is free there; the last entries are for items that are free on the right.
    """
    m, n_right = len(bucket_of), classes.shape[1] - 1
    f, block = n_items - m, mixed[n_right] * n_progress
    inner = block << m
    for t in range(f + 1):
        new = 1 - now
        for state in range(tables.shape[1]):
            tables[new, state, MEAN] = 0.0
        start_layer(work, m, t)
        for number in range(binomial[t + m, m]):
            work[NUMBERS, m] = number
            for g in range(m - 1, -1, -1):
                work[NUMBERS, g] = work[NUMBERS, g + 1] + binomial[work[PREFIX, g] + g, g]
            for slots in range(1 << m):
                n_came = -1
                for local in range(slots * block, (slots + 1) * block):
                    here = number * inner + local
                    if tables[now, here, MEAN] == 0.0:
                        continue
                    if n_came < 0:
                        # The filled slots of each right bucket, and those from each slot on.
                        for j in range(n_right):
                            work[FILLED, j] = 0
                        work[AGAINST, m] = 0
                        for s in range(m - 1, -1, -1):
                            taken = slots >> s & 1
                            work[AGAINST, s] = work[AGAINST, s + 1] + taken
                            work[FILLED, bucket_of[s]] += taken
                        n_came = t + work[AGAINST, 0]
                    if n_came == n_items:
                        continue
                    find_chances(
                        classes,
                        before,
                        started,
                        right_sizes,
                        mixed,
                        by_listed,
                        n_progress,
                        n_items,
                        local % block,
                        n_came,
                        work,
                        chances,
                    )
                    for s in range(m):
                        j = bucket_of[s]
                        if slots >> s & 1:
                            continue
                        for is_free in range(2):
                            chance = chances[is_free, j] / (right_sizes[j] - work[FILLED, j])
                            if chance > 0.0:
                                step = n_progress * mixed[j] if is_free and mixed[j + 1] > mixed[j] else 0
                                step += 1 if by_listed and not is_free else 0
                                cost = tables[now, here, LOW] + work[PREFIX, m] - work[PREFIX, s] + work[AGAINST, s + 1]
                                more, extra = chance * tables[now, here, MEAN], chance * tables[now, here, EXCESS]
                                add(tables, now, here + (block << s) + step, cost, more, extra, q)
                    for is_free in range(2):
                        if chances[is_free, n_right] > 0.0:
                            to = local + (1 if by_listed != (is_free == 1) else 0)
                            fill_gaps(tables, now, here, new, inner, to, chances[is_free, n_right], work, m, q)
            advance(work, m)
        if t < f:
            now = new
    return now


@compiled
def find_chances(
    classes, before, started, right_sizes, mixed, by_listed, n_progress, n_items, local, n_came, work, chances
):
    """Find the chance that the next left item is in right bucket j, and listed or free on the left."""
    n_left, n_right = classes.shape[0] - 1, classes.shape[1] - 1
    ways, progress, others = local // n_progress, local % n_progress, 0
    for j in range(n_right):
        # How many items of right bucket j came that are free on the left.
        all_free = classes[n_left, j] == right_sizes[j]
        came = work[FILLED, j] if all_free else ways // mixed[j] % (classes[n_left, j] + 1)
        work[CAME, j] = came
        chances[1, j] = (classes[n_left, j] - came) / (n_items - n_came)
        others += came
    came_listed = progress if by_listed else n_came - progress - others
    came_both = n_came - came_listed - others
    chances[1, n_right] = (classes[n_left, n_right] - came_both) / (n_items - n_came)
    n_listed = started[n_left]
    i = 0
    while i < n_left and started[i + 1] <= came_listed:
        i += 1
    bucket_left = started[i + 1] - came_listed if i < n_left else 0
    share = (n_listed - came_listed) / (n_items - n_came) / bucket_left if i < n_left else 0.0
    for j in range(n_right):
        left_over = classes[i, j] - (work[FILLED, j] - work[CAME, j] - before[i, j]) if i < n_left else 0
        chances[0, j] = share * left_over
        bucket_left -= left_over
    chances[0, n_right] = share * bucket_left
