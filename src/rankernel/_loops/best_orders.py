"""Orders of little total regret: the least by dynamic programming over sets of items, or by moves of single ones."""

import numpy as np

from rankernel._loops.compiled import compiled_strictly


@compiled_strictly
def regret_sums(regret, first, n_bits):
    """Return what it costs each item to stand before a set of the items first, first + 1, ...; one row a set."""
    sums = np.zeros((1 << n_bits, len(regret)))
    for bit in range(n_bits):
        for subset in range(1 << bit):
            for a in range(len(regret)):
                sums[subset + (1 << bit), a] = sums[subset, a] + regret[a, first + bit]
    return sums


@compiled_strictly
def least_costs(low, high, n_low):
    """Return the least cost of ordering each set of items: one comes first, and the rest is a smaller set."""
    n_items = low.shape[1]
    least = np.zeros(1 << n_items)
    for items in range(1, 1 << n_items):
        best = np.inf
        for a in range(n_items):
            if items >> a & 1:
                cost = low[items & ((1 << n_low) - 1), a] + high[items >> n_low, a] + least[items ^ (1 << a)]
                best = min(best, cost)
        least[items] = best
    return least


@compiled_strictly
def best_order(regret, tied):
    """Return the order of least total regret; ``regret[a, b]`` is the cost of a before b, and 0 for a = b.

    Among orders whose costs differ by no more than ``tied`` in any step, items with lower numbers come first.
    """
    n_items = len(regret)
    n_low = n_items // 2
    # Two tables of half the items make every sum over a set out of two numbers.
    low, high = regret_sums(regret, 0, n_low), regret_sums(regret, n_low, n_items - n_low)
    least = least_costs(low, high, n_low)
    order = np.empty(n_items, dtype=np.int64)
    items = (1 << n_items) - 1
    for position in range(n_items):
        for a in range(n_items):
            if items >> a & 1:
                cost = low[items & ((1 << n_low) - 1), a] + high[items >> n_low, a] + least[items ^ (1 << a)]
                if cost <= least[items] + tied:
                    order[position] = a
                    items ^= 1 << a
                    break
    return order


@compiled_strictly
def move_while_it_helps(preferences, order, rounding):
    """Move single items of an order to the place that costs least, until no item has a better one."""
    moved = True
    while moved:
        moved = False
        for item in order.copy():
            cost, least, here = 0.0, 0.0, 0.0
            passed, best, place = 0, 0, 0
            for position, other in enumerate(order):
                if other == item:
                    here, place = cost, position
                    continue
                cost += preferences[item, other] - preferences[other, item]  # to let one more pass
                passed += 1
                if cost < least:
                    least, best = cost, passed
            if least < here - rounding:
                for position in range(place, best):
                    order[position] = order[position + 1]
                for position in range(place, best, -1):
                    order[position] = order[position - 1]
                order[best] = item
                moved = True


@compiled_strictly
def packed_circles(preferences):
    """Return what no order can avoid beyond the smaller side of each pair, by circles of three that share no majority.

    Whoever orders a > b > c > a gives up one of three majorities, at least the smallest. Each circle takes that much of
    all three, and the next one has what is left.
    """
    left = np.maximum(preferences - preferences.T, 0.0)
    total = 0.0
    n_items = len(left)
    for a in range(n_items):
        for b in range(a + 1, n_items):
            for c in range(b + 1, n_items):
                x, y = (b, c) if left[a, b] > 0 else (c, b)
                least = min(left[a, x], left[x, y], left[y, a])
                if least > 0:
                    left[a, x] -= least
                    left[x, y] -= least
                    left[y, a] -= least
                    total += least
    return total
