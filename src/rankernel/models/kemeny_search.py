"""The order that contradicts a matrix of pairwise preferences least, proven where the puzzle is small enough.

Items that form a group of which every member is preferred to every other item by at least half of the voters can be
put first without loss. So the strongly connected components of the strict majority graph are ordered one by one: most
real elections fall into many small ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.interrupts import run_interruptibly
from rankernel.preferences import closure, unpacked

ROUNDING = 1e-12  # of shares of voters
MOST_BOUNDED = 1000  # items for which a better bound is looked for: the time grows with the cube of their number
AT_ONCE = 14  # items whose order is found in about a millisecond: nobody need be heard meanwhile


@dataclass(frozen=True, eq=False)
class KemenyOrder:
    """Items, best first, and by how much another order could have less regret at most."""

    order: Indices
    gap: float
    details: str

    @property
    def exact(self) -> bool:
        """Whether no order is better for sure."""
        return self.gap == 0


def kemeny_order(
    preferences: FloatArray, limit: int, n_starts: int, rng: np.random.Generator, n_voters: int = 0
) -> KemenyOrder:
    """Return an order of least total regret, or of little where a component is too large.

    Where preferences are shares of so many voters that rounding may hide one of them, nothing is proven. Among orders
    that are equally good, items with lower numbers come first where the order is found exactly.
    """
    components = majority_components(preferences)
    parts = [ordered(preferences, items, limit, n_starts, rng) for items in components]
    # Nothing is lost between components, nor inside of those that were solved.
    gap = sum(most_to_gain(preferences, part) for part in parts if len(part) > limit)
    largest, hidden = max(map(len, components)), hidden_by_rounding(len(preferences), n_voters)
    if hidden:
        gap += hidden
        details = f"NOT proven optimal: among {n_voters:,} voters a single one is lost in rounding"
    elif largest == 1:
        details = "proven optimal: the majorities make no cycle"
    elif largest <= limit:
        details = f"proven optimal: the longest majority cycle has {largest} items"
    elif gap == 0:
        details = f"proven optimal: local search on a majority cycle of {largest} items met a lower bound"
    else:
        details = f"NOT proven optimal: local search on a majority cycle of {largest} items (exact up to {limit})"
    return KemenyOrder(np.concatenate(parts), gap, details)


def hidden_by_rounding(n_items: int, n_voters: int) -> float:
    """Return how much regret rounding may hide, where that is as much as half a voter; else 0."""
    hidden = ROUNDING * n_items * (n_items - 1) / 2
    return hidden if 2 * n_voters * hidden >= 1 else 0.0


def most_to_gain(preferences: FloatArray, order: Indices) -> float:
    """Return by how much another order of the same items could have less regret at most, by a bound on all of them."""
    inside = preferences[np.ix_(order, order)]
    excess = total_cost(preferences, order) - least_possible_regret(inside)
    if len(order) > MOST_BOUNDED:
        return excess
    gap = excess - float(run_interruptibly(_loops.best_orders.packed_circles, inside))
    return gap if gap > ROUNDING * len(order) else 0.0


def next_best_order(preferences: FloatArray, order: Indices, limit: int) -> Indices | None:
    """Return the best order that is not the one given, which is best; None where there is no other.

    Another order has two neighbours of this one the other way round. If these are of different components, to swap
    them is the least that it costs; if they are of one, the component is ordered anew with the two held in reverse. A
    component of more than ``limit`` items is searched by swaps of neighbours only.
    """
    if len(order) < 2:
        return None
    component = np.empty(len(order), dtype=np.intp)
    for number, items in enumerate(majority_components(preferences)):
        component[items] = number
    regret, least, best = total_cost(preferences, order), np.inf, order
    for place, (first, second) in enumerate(pairwise(order.tolist())):
        own = np.flatnonzero(component[order] == component[first])  # the places of the component, one behind the other
        changed = order.copy()
        if component[first] != component[second] or len(own) > limit:
            changed[[place, place + 1]] = second, first
            excess = float(preferences[first, second] - preferences[second, first])
        else:
            held = preferences.copy()
            held[second, first], held[first, second] = len(order) ** 2, 0.0
            changed[own] = ordered(held, order[own], limit, 1, np.random.default_rng(0))
            excess = total_cost(preferences, changed) - regret
        if excess < least:
            least, best = excess, changed
    return best


def total_cost(preferences: FloatArray, order: Indices) -> float:
    """Return how many pairs a voter has the other way round, on average."""
    return float(np.tril(preferences[np.ix_(order, order)], -1).sum())


def least_possible_regret(preferences: FloatArray) -> float:
    """Return what no order can be below: the smaller side of every pair."""
    return float(np.triu(np.minimum(preferences, preferences.T), 1).sum())


def majority_components(preferences: FloatArray) -> list[Indices]:
    """Return the strongly connected components of the strict majority graph, winners first."""
    reach = preferences - preferences.T > ROUNDING
    np.fill_diagonal(reach, True)
    reach = unpacked(closure(np.packbits(reach[None], axis=2)), len(reach))[0]
    # Whoever reaches a component reaches all that it reaches, and more: sorting by reach puts winners first.
    by_reach = np.argsort(-reach.sum(axis=1), kind="stable")
    mutual, components, placed = reach & reach.T, [], np.zeros(len(reach), dtype=bool)
    for item in by_reach:
        if not placed[item]:
            components.append(np.flatnonzero(mutual[item]))
            placed |= mutual[item]
    return components


def ordered(preferences: FloatArray, items: Indices, limit: int, n_starts: int, rng: np.random.Generator) -> Indices:
    """Return some of the items in their best order."""
    if len(items) == 1:
        return items
    inside = preferences[np.ix_(items, items)]
    if len(items) > limit:
        return items[searched(inside, n_starts, rng)]
    regret = np.ascontiguousarray(inside.T)
    np.fill_diagonal(regret, 0)
    solve = _loops.best_orders.best_order
    best: Indices = run_interruptibly(solve, regret, ROUNDING) if len(items) > AT_ONCE else solve(regret, ROUNDING)
    return items[best]


def searched(preferences: FloatArray, n_starts: int, rng: np.random.Generator) -> Indices:
    """Return the best of several local searches, the first from the Borda order, the others from random ones."""
    starts = [np.argsort(-preferences.sum(axis=1), kind="stable")]
    starts += [rng.permutation(len(preferences)) for _ in range(n_starts - 1)]
    return min((local_search(preferences, start) for start in starts), key=lambda order: total_cost(preferences, order))


def local_search(preferences: FloatArray, order: Indices) -> Indices:
    """Return an order in which no single item can be moved to a better place."""
    found = np.array(order, dtype=np.int64)
    run_interruptibly(_loops.best_orders.move_while_it_helps, np.ascontiguousarray(preferences), found, ROUNDING)
    return found
