"""The order of least total disagreement with a matrix of pairwise preferences (Kemeny), with a proof where feasible.

``preferences[a, b]`` is the share of voters who prefer a to b; an order with a before b costs ``preferences[b, a]``. If
every item of a group is preferred by at least half of the voters to every item outside, the group can be put first
without loss, so the strongly connected components of the strict majority graph are ordered one by one. Most elections
have many small components.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankernel._loops.compiled import compiled_strictly
from rankernel._utils import FloatArray, Indices
from rankernel._utils.resources import run_interruptibly
from rankernel.preferences import closure, unpacked

ROUNDING = 1e-12  # of shares of voters
MAX_BOUNDED = 1000  # items for which the bound by majority cycles is computed, in cubic time
MAX_UNINTERRUPTED = 14  # items that are ordered in about a millisecond, without checking for interrupts


class KemenyOrder(NamedTuple):
    """The items, best first, an upper bound on the difference to the smallest cost, and a description of the proof."""

    order: Indices
    gap: float
    details: str

    @property
    def exact(self) -> bool:
        """Whether the order is proven optimal."""
        return self.gap == 0


def kemeny_order(
    preferences: FloatArray, limit: int, n_starts: int, rng: np.random.Generator, n_voters: int = 0
) -> KemenyOrder:
    """Return an order of least total cost, or a local minimum for components of more than ``limit`` items.

    Among optimal orders, items with lower indices come first in components that are solved exactly. Nothing is proven
    if there are more voters than the precision of their shares can resolve.
    """
    components = majority_components(preferences)
    parts = [order_component(preferences, items, limit, n_starts, rng) for items in components]
    # Nothing is lost between components, nor inside of those that are solved exactly.
    gap = sum(optimality_gap(preferences, part) for part in parts if len(part) > limit)
    largest, hidden = max(map(len, components)), hidden_by_rounding(len(preferences), n_voters)
    if hidden:
        gap += hidden
        details = f"NOT proven optimal: a single one of {n_voters:,} voters is less than the rounding error"
    elif largest == 1:
        details = "proven optimal: there is no majority cycle"
    elif largest <= limit:
        details = f"proven optimal: the longest majority cycle has {largest} items"
    elif gap == 0:
        details = f"proven optimal: local search on a majority cycle of {largest} items attained a lower bound"
    else:
        details = f"NOT proven optimal: local search on a majority cycle of {largest} items (exact up to {limit})"
    return KemenyOrder(np.concatenate(parts), gap, details)


def total_cost(preferences: FloatArray, order: Indices) -> float:
    """Return the cost of an order: the mean number of pairs that a voter orders the other way."""
    return float(np.tril(preferences[np.ix_(order, order)], -1).sum())


def lower_bound(preferences: FloatArray) -> float:
    """Return a lower bound on the cost of all orders: the sum of the smaller share of each pair."""
    return float(np.triu(np.minimum(preferences, preferences.T), 1).sum())


def optimality_gap(preferences: FloatArray, order: Indices) -> float:
    """Return an upper bound on the difference between the cost of an order and the smallest cost."""
    inside = preferences[np.ix_(order, order)]
    excess = total_cost(preferences, order) - lower_bound(inside)
    if len(order) > MAX_BOUNDED:
        return excess
    gap = excess - float(run_interruptibly(disjoint_cycles_cost, inside))
    return gap if gap > ROUNDING * len(order) else 0.0


def hidden_by_rounding(n_items: int, n_voters: int) -> float:
    """Return the cost that rounding may hide if that is at least half a voter, else 0."""
    hidden = ROUNDING * n_items * (n_items - 1) / 2
    return hidden if 2 * n_voters * hidden >= 1 else 0.0


def next_best_order(preferences: FloatArray, order: Indices, limit: int) -> Indices | None:
    """Return the best order other than an optimal one, or None if there is no other.

    Another order reverses two neighbours of the optimal one. If these are in different components, their exchange is
    the cheapest change; if they are in one, the component is ordered again with the two held in reverse. In components
    of more than ``limit`` items only exchanges of neighbours are tried.
    """
    if len(order) < 2:
        return None
    component = np.empty(len(order), dtype=np.intp)
    for number, items in enumerate(majority_components(preferences)):
        component[items] = number
    cost, least, best = total_cost(preferences, order), np.inf, order
    for position, (first, second) in enumerate(pairwise(order.tolist())):
        members = np.flatnonzero(component[order] == component[first])  # consecutive positions
        changed = order.copy()
        if component[first] != component[second] or len(members) > limit:
            changed[[position, position + 1]] = second, first
            excess = float(preferences[first, second] - preferences[second, first])
        else:
            held = preferences.copy()
            held[second, first], held[first, second] = len(order) ** 2, 0.0
            changed[members] = order_component(held, order[members], limit, 1, np.random.default_rng(0))
            excess = total_cost(preferences, changed) - cost
        if excess < least:
            least, best = excess, changed
    return best


def majority_components(preferences: FloatArray) -> list[Indices]:
    """Return the strongly connected components of the strict majority graph, winners first."""
    reach = preferences - preferences.T > ROUNDING
    np.fill_diagonal(reach, True)
    reach = unpacked(closure(np.packbits(reach[None], axis=2)), len(reach))[0]
    # An item reaches more items than those of later components, so sorting by reach puts winners first.
    mutual, components, ordered = reach & reach.T, [], np.zeros(len(reach), dtype=bool)
    for item in np.argsort(-reach.sum(axis=1), kind="stable"):
        if not ordered[item]:
            components.append(np.flatnonzero(mutual[item]))
            ordered |= mutual[item]
    return components


def order_component(
    preferences: FloatArray, items: Indices, limit: int, n_starts: int, rng: np.random.Generator
) -> Indices:
    """Return the items of a component in their best order, or in the best order of several local searches."""
    if len(items) == 1:
        return items
    inside = preferences[np.ix_(items, items)]
    if len(items) <= limit:
        cost = np.ascontiguousarray(inside.T)
        np.fill_diagonal(cost, 0)
        return items[best_order(cost, ROUNDING)]
    starts = [np.argsort(-inside.sum(axis=1), kind="stable")]  # Borda
    starts += [rng.permutation(len(items)) for _ in range(n_starts - 1)]
    return items[min((local_search(inside, start) for start in starts), key=lambda order: total_cost(inside, order))]


def best_order(cost: FloatArray, tolerance: float) -> list[int]:
    """Return the order of least total cost, where ``cost[a, b]`` is that of a before b, and 0 for a = b.

    Among orders whose costs differ by at most ``tolerance`` in any step, items with lower indices come first.
    """
    n_items, n_low = len(cost), len(cost) // 2
    # The cost of an item before a set is the sum of two table entries, one for each half of the items.
    low, high = cost_sums(cost[:, :n_low]), cost_sums(cost[:, n_low:])
    least = np.zeros(1 << n_items)
    if n_items <= MAX_UNINTERRUPTED:
        find_least_costs(low, high, n_low, least)
    else:
        run_interruptibly(find_least_costs, low, high, n_low, least)
    order: list[int] = []
    items = (1 << n_items) - 1
    while items:
        for a in range(n_items):
            if items >> a & 1:
                total = low[items & ((1 << n_low) - 1), a] + high[items >> n_low, a] + least[items ^ (1 << a)]
                if total <= least[items] + tolerance:
                    order.append(a)
                    items ^= 1 << a
                    break
    return order


def cost_sums(cost: FloatArray) -> FloatArray:
    """Return the cost of each item before each subset of the items of the columns; one row per subset."""
    n_items, n_bits = cost.shape
    sums = np.zeros((1 << n_bits, n_items))
    for bit in range(n_bits):
        sums[1 << bit : 2 << bit] = sums[: 1 << bit] + cost[:, bit]
    return sums


def local_search(preferences: FloatArray, order: Indices) -> Indices:
    """Return an order in which no move of a single item lowers the cost."""
    result = np.array(order, dtype=np.int64)
    run_interruptibly(move_items, np.ascontiguousarray(preferences), result, ROUNDING)
    return result


# ---------------------------------------------------------------------- compiled loops


@compiled_strictly
def find_least_costs(low: FloatArray, high: FloatArray, n_low: int, least: FloatArray) -> None:
    """Fill in the least cost of ordering each set of items, by dynamic programming over subsets."""
    n_items = low.shape[1]
    for items in range(1, 1 << n_items):
        best = np.inf
        for a in range(n_items):
            if items >> a & 1:
                total = low[items & ((1 << n_low) - 1), a] + high[items >> n_low, a] + least[items ^ (1 << a)]
                best = min(best, total)
        least[items] = best


@compiled_strictly
def move_items(preferences: FloatArray, order: Indices, tolerance: float) -> None:
    """Move single items of an order to their cheapest position until no move lowers the cost."""
    moved = True
    while moved:
        moved = False
        for item in order.copy():
            cost, least, current = 0.0, 0.0, 0.0
            n_passed, best, start = 0, 0, 0
            for position, other in enumerate(order):
                if other == item:
                    current, start = cost, position
                    continue
                cost += preferences[item, other] - preferences[other, item]  # of one more item before this one
                n_passed += 1
                if cost < least:
                    least, best = cost, n_passed
            if least < current - tolerance:
                for position in range(start, best):
                    order[position] = order[position + 1]
                for position in range(start, best, -1):
                    order[position] = order[position - 1]
                order[best] = item
                moved = True


@compiled_strictly
def disjoint_cycles_cost(preferences: FloatArray) -> float:
    """Return a cost that no order avoids beyond the lower bound of the pairs, from disjoint majority cycles of three.

    An order violates at least one majority of a cycle a > b > c > a. Each cycle found uses up its smallest margin of
    all three pairs; later cycles have the remaining margins.
    """
    margin = np.maximum(preferences - preferences.T, 0.0)
    total = 0.0
    n_items = len(margin)
    for a in range(n_items):
        for b in range(a + 1, n_items):
            for c in range(b + 1, n_items):
                x, y = (b, c) if margin[a, b] > 0 else (c, b)
                least = min(margin[a, x], margin[x, y], margin[y, a])
                if least > 0:
                    margin[a, x] -= least
                    margin[x, y] -= least
                    margin[y, a] -= least
                    total += least
    return total
