"""Mallows kernels of rankings with free items: dynamic programmes over the items placed so far.

Each programme follows random completions item by item, and carries for each state the mean of ``q^cost``, where cost
counts the discordant pairs so far. A state holds ``(low, mean, excess)``: the mean of ``q^cost`` is ``q^low * mean``
and the mean of ``(cost - low) q^cost`` is ``q^low * excess``, low being the smallest cost that leads there. So nothing
underflows however large the cost, every term is positive, and the derivative comes along:
``d/dnu log = -(low + excess / mean)``.
"""

from typing import NamedTuple

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel.arrays import IntArray

# Columns of a table of states.
LOW, MEAN, EXCESS = 0, 1, 2

# Rows of a table of numbers: powers q^k, brackets [k] = 1 + q + ... + q^(k-1), and minus the slopes of these in nu.
POWER, BRACKET, SLOPE = 0, 1, 2


@compiled
def add(table, target, cost, more, extra, q):
    """Let a path of this cost arrive at a state."""
    if table[target, MEAN] == 0.0:
        table[target, LOW], table[target, MEAN], table[target, EXCESS] = cost, more, extra
        return
    gap = cost - table[target, LOW]
    if gap >= 0:
        weight = q[POWER, int(gap)]
        table[target, MEAN] += weight * more
        table[target, EXCESS] += weight * (extra + gap * more)
    else:
        weight = q[POWER, int(-gap)]
        table[target, EXCESS] = weight * (table[target, EXCESS] - gap * table[target, MEAN]) + extra
        table[target, MEAN] = weight * table[target, MEAN] + more
        table[target, LOW] = cost


@compiled
def clear(table):
    """Forget all states."""
    for state in range(len(table)):
        table[state, MEAN] = 0.0


@compiled
def gathered(table, first, step, q):
    """Add up every step-th state of a table, from the first on."""
    total = np.zeros((1, 3))
    for state in range(first, len(table), step):
        if table[state, MEAN] > 0.0:
            add(total, 0, table[state, LOW], table[state, MEAN], table[state, EXCESS], q)
    return total[0]


# ---------------------------------------------------------------------- how many items each gap holds

# An occupancy of m + 1 gaps is kept as its prefix sums; those of one total form a layer, and are numbered in it by the
# combinatorial number system: sum over j < m of binomial(prefix[j] + j, j + 1).


@compiled
def binomials(n):
    """Pascal's triangle up to row n."""
    table = np.zeros((n + 1, n + 1), dtype=np.int64)
    for i in range(n + 1):
        table[i, 0] = 1
        for j in range(1, i + 1):
            table[i, j] = table[i - 1, j - 1] + table[i - 1, j]
    return table


@compiled
def start_layer(prefix, total):
    """Move to occupancy number 0 of a layer: all items in the last gap."""
    for j in range(len(prefix) - 1):
        prefix[j] = 0
    prefix[-1] = total


@compiled
def advance(prefix):
    """Move to the next occupancy of the same layer; say whether there is one."""
    for j in range(len(prefix) - 1):
        if prefix[j] < prefix[j + 1]:
            prefix[j] += 1
            for i in range(j):
                prefix[i] = 0
            return True
    return False


@compiled
def increased(prefix, number, binomial, numbers):
    """For each gap, find the number in the next layer of the occupancy with one more item in it."""
    last = len(prefix) - 1
    numbers[last] = number
    for g in range(last - 1, -1, -1):
        numbers[g] = numbers[g + 1] + binomial[prefix[g] + g, g]


@compiled
def held(prefix, g):
    """Return the number of items in gap g."""
    return prefix[g] - prefix[g - 1] if g else prefix[0]


# ---------------------------------------------------------------------- no free item on the left: by class


@compiled
def class_programme(classes, q):
    """Mean of q^cost of a random completion of the right ranking, cost against a left one without free items.

    ``classes[i, j]`` items are in left bucket i and right bucket j (last column: free on the right). The completion is
    written down best item first; a state is how many items of each class it has used. The number of a state is that of
    the listed items used (blocks of one right bucket after the other) times ``n_free``, plus that of the free ones.
    """
    n_left, n_right = classes.shape[0], classes.shape[1] - 1
    free_stride = strides(classes, n_right)
    n_free = free_stride[n_left]
    n_blocks = 1
    for j in range(n_right):
        n_blocks += strides(classes, j)[n_left] - 1
    table = np.zeros((n_blocks * n_free, 3))
    table[0, MEAN] = 1.0
    listed, still_open = np.zeros(n_left, dtype=np.int64), np.zeros(n_left, dtype=np.int64)
    block = 0
    for j in range(n_right):
        stride = strides(classes, j)
        for i in range(n_left):
            still_open[i] = classes[i, j]
        # The last way to have used a bucket, all of it, is the first of the next bucket.
        for _ in range(stride[n_left] - 1):
            use_one(table, block * n_free, classes, listed, still_open, stride, free_stride, q)
            use_next(still_open, listed, classes, j)
            block += 1
    use_one(table, block * n_free, classes, listed, still_open, free_stride, free_stride, q)
    return table[-1]


@compiled
def strides(counts, column):
    """Mixed radix for numbers from 0 to each count of a column; the last entry is how many there are."""
    stride = np.ones(len(counts) + 1, dtype=np.int64)
    for i in range(len(counts)):
        stride[i + 1] = stride[i] * (counts[i, column] + 1)
    return stride


@compiled
def use_one(table, first, classes, listed, still_open, stride, free_stride, q):
    """Go on by one item from each state of a block, where ``listed[i]`` listed items of left bucket i are used."""
    n_left, free = classes.shape[0], classes.shape[1] - 1
    n_listed, n_open, n_free = 0, 0, 0
    for i in range(n_left):
        n_open += still_open[i]
        n_free += classes[i, free]
        for j in range(free):
            n_listed += classes[i, j]
        n_listed -= listed[i]
    used = np.zeros(n_left, dtype=np.int64)
    n_used = 0
    for here in range(first, first + free_stride[n_left]):
        cost, mean, excess = table[here, LOW], table[here, MEAN], table[here, EXCESS]
        if mean > 0.0:
            n_items = n_listed + n_free - n_used
            for i in range(n_left - 1, -1, -1):
                if used[i] < classes[i, free]:
                    chance = (classes[i, free] - used[i]) / n_items
                    add(table, here + free_stride[i], cost, chance * mean, chance * excess, q)
                if still_open[i] > 0:
                    chance = n_listed / n_items * still_open[i] / n_open
                    add(table, here + stride[i] * free_stride[n_left], cost, chance * mean, chance * excess, q)
                cost += listed[i] + used[i]
        n_used += count_on(used, classes, free)


@compiled
def count_on(used, classes, column):
    """Move to the next way to have used items of a column; return by how many items it has more."""
    more = 0
    for i in range(len(used)):
        if used[i] < classes[i, column]:
            used[i] += 1
            return more + 1
        more -= used[i]
        used[i] = 0
    return more


@compiled
def use_next(still_open, listed, classes, column):
    """Move to the next way to have used listed items of a right bucket."""
    for i in range(len(listed)):
        if still_open[i] > 0:
            still_open[i] -= 1
            listed[i] += 1
            return
        still_open[i] = classes[i, column]
        listed[i] -= classes[i, column]


# ---------------------------------------------------------------------- no free item on the left, a chain on the right


@compiled
def gap_programme(listed, free, q):
    """Mean of q^cost of a random completion of a chain, cost against a left ranking without free items.

    ``listed[u]`` is the left bucket of the u-th item of the chain, ``free`` the left buckets of the other items,
    ascending. Free items enter the gaps of the chain in that order, as if items of one left bucket were ordered, too;
    a state is how many each gap holds.
    """
    m, f = len(listed), len(free)
    binomial = binomials(f + m + 1)
    table, following = np.zeros((binomial[f + m, m], 3)), np.zeros((binomial[f + m, m], 3))
    table[0, MEAN] = 1.0
    for u in range(m):
        for v in range(u + 1, m):
            table[0, LOW] += 1 if listed[u] > listed[v] else 0
    prefix, numbers = np.zeros(m + 1, dtype=np.int64), np.zeros(m + 1, dtype=np.int64)
    against = np.zeros(m + 1, dtype=np.int64)
    for t in range(f):
        count_against(listed, free[t], against)
        clear(following)
        start_layer(prefix, t)
        for number in range(binomial[t + m, m]):
            increased(prefix, number, binomial, numbers)
            fill_gaps(table, number, following, numbers, 1, 0, against, prefix, 1.0, q)
            advance(prefix)
        table, following = following, table
    return gathered(table, 0, 1, q)


@compiled
def count_against(listed, bucket, against):
    """Count the items of the chain that an item of this left bucket is in the wrong order with, in each gap."""
    against[0] = 0
    for u in range(len(listed)):
        against[0] += 1 if listed[u] < bucket else 0
    for u in range(len(listed)):
        against[u + 1] = against[u] + (1 if listed[u] > bucket else -1 if listed[u] < bucket else 0)


@compiled
def fill_gaps(table, here, following, numbers, inner, local, against, prefix, chance, q):
    """Insert one item at a random place among slots and gaps: it passes the items of later gaps and ``against[g]``."""
    cost, mean, excess = table[here, LOW], table[here, MEAN], table[here, EXCESS]
    total, gaps = prefix[-1], len(prefix)
    mean *= chance / (total + gaps)
    excess *= chance / (total + gaps)
    for g in range(gaps):
        places = held(prefix, g) + 1
        more = mean * q[BRACKET, places]
        extra = excess * q[BRACKET, places] + mean * q[SLOPE, places]
        add(following, numbers[g] * inner + local, cost + against[g] + total - prefix[g], more, extra, q)


# ---------------------------------------------------------------------- free items on either side


class Plan(NamedTuple):
    """Two rankings as the insertion programme needs them."""

    classes: IntArray  # items in left bucket i and right bucket j; last row and column: free
    before: IntArray  # the same, added up over the left buckets before i
    started: IntArray  # items in the left buckets before i
    right_sizes: IntArray
    bucket_of: IntArray  # right bucket of each slot
    mixed: IntArray  # mixed radix for the items of a right bucket that are free on the left
    by_listed: bool
    n_progress: int
    n_items: int


def insertion_plan(classes: IntArray, by_listed: bool) -> Plan:
    """Return the plan of two rankings, from the items of each pair of buckets."""
    right_sizes = classes[:, :-1].sum(axis=0)
    free = classes[-1, :-1]
    left = np.zeros((len(classes), classes.shape[1]), dtype=np.int64)
    left[1:] = np.cumsum(classes[:-1], axis=0)
    started = left.sum(axis=1)
    return Plan(
        classes=classes,
        before=np.ascontiguousarray(left[:, :-1]),
        started=started,
        right_sizes=right_sizes,
        bucket_of=np.repeat(np.arange(len(right_sizes)), right_sizes),
        mixed=np.cumprod([1, *np.where(free == right_sizes, 1, free + 1)]),
        by_listed=bool(by_listed),
        n_progress=1 + int(started[-1] if by_listed else classes[-1, -1]),
        n_items=int(classes.sum()),
    )


@compiled
def insertion_programme(plan, q):
    """Mean of q^cost of random completions of two rankings, free items on either side.

    The left completion is written down best item first and each item is inserted into the right one: a listed item
    into a random slot of its right bucket, another into a random place between the slots. A state is: how many items
    each gap between slots holds; which slots are filled; for each right bucket with items both listed and free on the
    left, how many of the free ones came; and progress: how many items came that are listed on the left (``by_listed``)
    or else free on both sides, for each tells the other.
    """
    m = len(plan.bucket_of)
    f = plan.n_items - m
    block = plan.mixed[-1] * plan.n_progress
    inner = block << m
    binomial = binomials(f + m + 1)
    table, following = np.zeros((binomial[f + m, m] * inner, 3)), np.zeros((binomial[f + m, m] * inner, 3))
    table[0, MEAN] = 1.0
    prefix, numbers = np.zeros(m + 1, dtype=np.int64), np.zeros(m + 1, dtype=np.int64)
    filled, filled_from = np.zeros(len(plan.right_sizes), dtype=np.int64), np.zeros(m + 1, dtype=np.int64)
    listed, free = np.zeros(len(plan.right_sizes) + 1), np.zeros(len(plan.right_sizes) + 1)
    for t in range(f + 1):
        clear(following)
        start_layer(prefix, t)
        for number in range(binomial[t + m, m]):
            increased(prefix, number, binomial, numbers)
            for slots in range(1 << m):
                counted = False
                for local in range(slots * block, (slots + 1) * block):
                    here = number * inner + local
                    if table[here, MEAN] == 0.0:
                        continue
                    if not counted:
                        n_came = t + count_filled(slots, plan.bucket_of, filled, filled_from)
                        counted = True
                    if n_came == plan.n_items:
                        continue
                    find_chances(plan, local % block, n_came, filled, listed, free)
                    fill_slots(plan, table, here, slots, prefix, filled, filled_from, listed, free, q)
                    if listed[-1] > 0.0:
                        target = local + (1 if plan.by_listed else 0)
                        fill_gaps(table, here, following, numbers, inner, target, filled_from, prefix, listed[-1], q)
                    if free[-1] > 0.0:
                        target = local + (0 if plan.by_listed else 1)
                        fill_gaps(table, here, following, numbers, inner, target, filled_from, prefix, free[-1], q)
            advance(prefix)
        if t < f:
            table, following = following, table
    return gathered(table, inner - 1, inner, q)


@compiled
def count_filled(slots, bucket_of, filled, filled_from):
    """Count the filled slots of each right bucket and from each slot on; return how many there are."""
    for j in range(len(filled)):
        filled[j] = 0
    for s in range(len(bucket_of) - 1, -1, -1):
        taken = slots >> s & 1
        filled_from[s] = filled_from[s + 1] + taken
        filled[bucket_of[s]] += taken
    return filled_from[0]


@compiled
def find_chances(plan, local, n_came, filled, listed, free):
    """Find the chance that the next left item is in right bucket j, and listed or free on the left."""
    n_left, n_right = plan.classes.shape[0] - 1, plan.classes.shape[1] - 1
    mixed, progress = local // plan.n_progress, local % plan.n_progress
    others = 0
    for j in range(n_right):
        came = came_free(plan, j, mixed, filled[j])
        free[j] = (plan.classes[n_left, j] - came) / (plan.n_items - n_came)
        others += came
    came_listed = progress if plan.by_listed else n_came - progress - others
    came_both = n_came - came_listed - others
    free[n_right] = (plan.classes[n_left, n_right] - came_both) / (plan.n_items - n_came)
    n_listed = plan.started[n_left]
    if came_listed == n_listed:
        for j in range(n_right + 1):
            listed[j] = 0.0
        return
    i = 0
    while plan.started[i + 1] <= came_listed:
        i += 1
    bucket_left = plan.started[i + 1] - came_listed
    share = (n_listed - came_listed) / (plan.n_items - n_came) / bucket_left
    for j in range(n_right):
        came = filled[j] - came_free(plan, j, mixed, filled[j]) - plan.before[i, j]
        listed[j] = share * (plan.classes[i, j] - came)
        bucket_left -= plan.classes[i, j] - came
    listed[n_right] = share * bucket_left


@compiled
def came_free(plan, j, mixed, filled):
    """Return how many items of right bucket j came that are free on the left."""
    n_free = plan.classes[-1, j]
    if n_free == plan.right_sizes[j]:
        return filled
    return mixed // plan.mixed[j] % (n_free + 1)


@compiled
def fill_slots(plan, table, here, slots, prefix, filled, filled_from, listed, free, q):
    """Insert one item listed on the right into each slot that it may take."""
    block = plan.mixed[-1] * plan.n_progress
    cost, mean, excess = table[here, LOW], table[here, MEAN], table[here, EXCESS]
    for s in range(len(plan.bucket_of)):
        j = plan.bucket_of[s]
        if slots >> s & 1:
            continue
        target = here + (block << s)
        price = cost + prefix[-1] - prefix[s] + filled_from[s + 1]
        empty = plan.right_sizes[j] - filled[j]
        if listed[j] > 0.0:
            chance, step = listed[j] / empty, 1 if plan.by_listed else 0
            add(table, target + step, price, chance * mean, chance * excess, q)
        if free[j] > 0.0:
            chance, step = free[j] / empty, plan.n_progress * plan.mixed[j] * (plan.mixed[j + 1] > plan.mixed[j])
            add(table, target + step, price, chance * mean, chance * excess, q)
