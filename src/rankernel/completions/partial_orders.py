"""Partial orders: validation, series-parallel decomposition, and the lattice of down-sets.

A partial order is given by its transitively closed relation ``before``, a boolean matrix: ``before[x, y]`` is true if
item x precedes item y. Linear extensions of a series composition are concatenated, those of a parallel composition are
shuffled; only prime parts need their lattice of down-sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, gcd, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._utils.arrays import FloatArray, FullRanks, Indices, IntArray, Mask, RankArray
from rankernel.errors import ExactnessError, RankingError

Words = NDArray[np.uint64]
Costs = NDArray[np.int16]

MAX_DOWN_SETS = 2_000_000
# Beyond this many down-sets the lattice takes more time than a dozen draws by coupling from the past, and memory.
FEW_DOWN_SETS = 100_000
ZERO, ONE = np.uint64(0), np.uint64(1)
PAIRS, FOURS, BYTES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
ONES_IN_BYTES = np.uint64(0x0101010101010101)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def check_relation(before: ArrayLike) -> Mask:
    """Return a relation as a boolean matrix; raise an error unless it is a transitively closed partial order."""
    relation = np.asarray(before, dtype=bool)
    if relation.ndim != 2 or relation.shape[0] != relation.shape[1] or not len(relation):
        raise RankingError(f"before has shape {relation.shape}; it must be a square matrix, before[x, y]")
    both = np.argwhere(relation & relation.T)
    if len(both):
        x, y = both[0]
        raise RankingError(
            f"before: items {x} and {y} are each before the other; Preferences.from_pairs contracts cycles"
        )
    number = relation.astype(np.float32)
    missing = np.argwhere((number @ number > 0) & ~relation)
    if len(missing):
        x, y = missing[0]
        raise RankingError(
            f"before: item {x} is before another item that is before item {y}, yet not before {y}; give the transitive "
            "closure"
        )
    return relation


# ---------------------------------------------------------------------- series-parallel decomposition


@dataclass(frozen=True, eq=False)
class Antichain:
    """Items without any relation."""

    items: Indices


@dataclass(frozen=True, eq=False)
class Prime:
    """Items whose partial order decomposes neither in series nor in parallel."""

    items: Indices
    before: Mask


@dataclass(frozen=True, eq=False)
class Series:
    """Parts that all precede the next part."""

    items: Indices
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Parallel:
    """Parts without relations between them."""

    items: Indices
    parts: tuple[Part, ...]


Part = Antichain | Prime | Series | Parallel


def decompose(before: Mask, items: Indices | None = None) -> Part:
    """Return a partial order as nested series and parallel compositions."""
    items = np.arange(len(before)) if items is None else items
    if not before.any():
        return Antichain(items)

    def parts(groups: list[Indices]) -> tuple[Part, ...]:
        return tuple(decompose(before[np.ix_(group, group)], items[group]) for group in groups)

    groups = connected_components(before | before.T)
    if len(groups) > 1:
        isolated = [group for group in groups if len(group) == 1]
        others = [group for group in groups if len(group) > 1]
        return Parallel(items, parts(others + ([np.concatenate(isolated)] if isolated else [])))
    groups = series_parts(before)
    return Series(items, parts(groups)) if len(groups) > 1 else Prime(items, before)


def series_parts(before: Mask) -> list[Indices]:
    """Return the items of the finest series decomposition, first part first."""
    components = connected_components(~(before | before.T))
    return sorted(components, key=lambda items: int(before[:, items[0]].sum()))


def connected_components(graph: Mask) -> list[Indices]:
    """Return the connected components of a symmetric relation, in order of their first items."""
    # scipy.sparse.csgraph takes longer for the few items of a partial order.
    remaining = np.ones(len(graph), dtype=bool)
    components = []
    while remaining.any():
        member = np.zeros(len(graph), dtype=bool)
        front = np.zeros(len(graph), dtype=bool)
        front[np.argmax(remaining)] = True
        while front.any():
            member |= front
            front = graph[front].any(axis=0) & ~member
        remaining &= ~member
        components.append(np.flatnonzero(member))
    return components


# ---------------------------------------------------------------------- the lattice of down-sets


class DownSets(NamedTuple):
    """The lattice of the down-sets of a partial order; its paths from bottom to top are the linear extensions.

    A step appends one item to a down-set. Where steps have costs, a path has weight ``exp(-theta * cost)`` with the sum
    of the costs of its steps. A named tuple, because compiled functions accept it.

    Attributes
    ----------
    sets : array of shape (n_sets, n_words)
        The down-sets, one bit per item, each after all of its subsets.
    start : array of shape (n_sets + 1,)
        The steps that leave down-set s are those numbered ``start[s]`` to ``start[s + 1]``.
    target, item : arrays of shape (n_steps,)
        The down-set at which each step arrives, and the item that it appends.
    """

    sets: Words
    start: IntArray
    target: RankArray
    item: NDArray[np.int16]

    @classmethod
    def of(cls, before: Mask, limit: int = MAX_DOWN_SETS) -> DownSets | None:
        """Return the lattice, or None if it has more than ``limit`` down-sets."""
        # All subsets of the minimal items are down-sets, and so are the complements of subsets of the maximal items.
        n_minimal, n_maximal = (int(np.sum(~before.any(axis=axis))) for axis in (0, 1))
        if limit < 2.0 ** max(n_minimal, n_maximal):
            return None
        predecessors = bit_rows(before.T)
        capacity = 256
        while True:
            lattice = cls._within(predecessors, min(capacity, limit))
            if lattice is not None or capacity >= limit:
                return lattice
            capacity *= 8

    @classmethod
    def _within(cls, predecessors: Words, capacity: int) -> DownSets | None:
        """Return the lattice, or None if it has more than ``capacity`` down-sets."""
        # The lattice is a subgraph of a hypercube, so its d down-sets have at most (d / 2) log2 d steps between them.
        max_steps = (capacity * capacity.bit_length() + 1) // 2
        sets = np.zeros((capacity, predecessors.shape[1]), dtype=np.uint64)
        start = np.empty(capacity + 1, dtype=np.int64)
        target = np.empty(max_steps, dtype=np.int32)
        item = np.empty(max_steps, dtype=np.int16)
        table = np.full(1 << (2 * capacity).bit_length(), -1, dtype=np.int32)
        n_sets, n_steps = fill_lattice(predecessors, sets, start, target, item, table)
        if n_sets < 0:
            return None
        return cls(sets[:n_sets].copy(), start[: n_sets + 1].copy(), target[:n_steps].copy(), item[:n_steps].copy())

    @classmethod
    def required(cls, before: Mask, limit: int | None = None) -> DownSets:
        """Return the lattice, or raise an :class:`ExactnessError` if it is too large."""
        limit = MAX_DOWN_SETS if limit is None else limit
        lattice = cls.of(before, limit)
        if lattice is None:
            raise ExactnessError(
                f"a part of {len(before)} items has more than {limit:,} down-sets, too many for an exact result; use "
                "draws (draw_extensions is exact at any size)"
            )
        return lattice

    def n_paths(self) -> int:
        """Return the exact number of paths, by the Chinese remainder theorem."""
        number, modulus = 0, 1
        for factor in coprime_moduli(factorial(int(self.item.max()) + 1)):
            remainder = int(n_paths_modulo(self, np.uint64(factor)))
            number += modulus * ((remainder - number) * pow(modulus, -1, factor) % factor)
            modulus *= factor
        return number

    def discordance_costs(self, center: NDArray[np.integer[Any]]) -> Costs:
        """Return the number of discordant pairs with a full ranking that each step adds."""
        return step_costs(self, bit_rows(center[None, :] > center[:, None]))

    def equal_costs(self) -> Costs:
        """Return zero costs, for which all paths have equal probability."""
        return np.zeros(len(self.target), dtype=np.int16)


def bit_rows(relation: Mask) -> Words:
    """Return each row of a boolean matrix as 64-bit words."""
    n_words = (relation.shape[1] + 63) // 64
    padded = np.zeros((len(relation), 64 * n_words), dtype=bool)
    padded[:, : relation.shape[1]] = relation
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def coprime_moduli(bound: int) -> list[int]:
    """Return pairwise coprime numbers just below 2^62 whose product exceeds the bound."""
    moduli: list[int] = []
    candidate = 2**62 - 1
    while prod(moduli) <= bound:
        if all(gcd(candidate, modulus) == 1 for modulus in moduli):
            moduli.append(candidate)
        candidate -= 2
    return moduli


@compiled
def bit_count(word: np.uint64) -> np.int64:
    """Return the number of bits that are set."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & BYTES
    return np.int64((word * ONES_IN_BYTES) >> np.uint64(56))


@compiled
def contains(down_set: Words, x: int) -> bool:
    """Return whether an item is in a down-set."""
    return (down_set[x >> 6] >> np.uint64(x & 63)) & ONE != ZERO


@compiled
def includes(down_set: Words, other: Words) -> bool:
    """Return whether a down-set includes another set."""
    outside = ZERO
    for w in range(len(other)):
        outside |= other[w] & ~down_set[w]
    return outside == ZERO


@compiled
def equal(down_set: Words, other: Words) -> bool:
    """Return whether two down-sets are equal."""
    difference = ZERO
    for w in range(len(other)):
        difference |= down_set[w] ^ other[w]
    return difference == ZERO


@compiled
def find_slot(table: RankArray, sets: Words, key: Words) -> np.int64:
    """Return the slot of a down-set in the hash table, or the slot where it is to be inserted."""
    code = ZERO
    for word in key:
        code = (code ^ word) * MIX_1
        code = (code ^ (code >> np.uint64(29))) * MIX_2
        code = code ^ (code >> np.uint64(32))
    slot = np.int64(code & np.uint64(len(table) - 1))
    while table[slot] >= 0 and not equal(sets[table[slot]], key):
        slot = (slot + 1) & (len(table) - 1)
    return slot


@compiled
def fill_lattice(
    predecessors: Words, sets: Words, start: IntArray, target: RankArray, item: NDArray[np.int16], table: RankArray
) -> tuple[int, int]:
    """Fill the lattice layer by layer; return the numbers of down-sets and steps, or -1 if they exceed the arrays.

    ``sets`` must be zero and ``table``, whose length is a power of two, -1 everywhere.
    """
    n_items, n_words = predecessors.shape
    key = np.zeros(n_words, dtype=np.uint64)
    table[find_slot(table, sets, key)] = 0
    n_sets, n_steps, s = 1, 0, 0
    while s < n_sets:
        start[s] = n_steps
        for x in range(n_items):
            if contains(sets[s], x) or not includes(sets[s], predecessors[x]):
                continue
            for w in range(n_words):
                key[w] = sets[s, w]
            key[x >> 6] |= ONE << np.uint64(x & 63)
            slot = find_slot(table, sets, key)
            if n_steps == len(target) or (table[slot] < 0 and n_sets == len(sets)):
                return -1, -1
            if table[slot] < 0:
                for w in range(n_words):
                    sets[n_sets, w] = key[w]
                table[slot] = n_sets
                n_sets += 1
            target[n_steps] = table[slot]
            item[n_steps] = x
            n_steps += 1
        s += 1
    start[n_sets] = n_steps
    return n_sets, n_steps


@compiled
def step_costs(lattice: DownSets, later: Words) -> Costs:
    """Return for each step the number of items of the down-set that the center ranks after the appended item."""
    costs = np.empty(len(lattice.item), dtype=np.int16)
    for s in range(len(lattice.sets)):
        for e in range(lattice.start[s], lattice.start[s + 1]):
            discordant = np.int64(0)
            for w in range(lattice.sets.shape[1]):
                discordant += bit_count(lattice.sets[s, w] & later[lattice.item[e], w])
            costs[e] = discordant
    return costs


@compiled
def n_paths_modulo(lattice: DownSets, modulus: np.uint64) -> np.uint64:
    """Return the number of paths modulo an integer below 2^63."""
    paths = np.zeros(len(lattice.sets), dtype=np.uint64)
    paths[-1] = ONE
    for s in range(len(paths) - 2, -1, -1):
        total = ZERO
        for e in range(lattice.start[s], lattice.start[s + 1]):
            total += paths[lattice.target[e]]
            if total >= modulus:
                total -= modulus
        paths[s] = total
    return paths[0]


@compiled_strictly
def log_weights(lattice: DownSets, costs: Costs, theta: float) -> FloatArray:
    """Return for each down-set the logarithm of the weight of all paths from it to the top."""
    start, target = lattice.start, lattice.target
    logs = np.zeros(len(lattice.sets))
    for s in range(len(logs) - 2, -1, -1):
        largest = -np.inf
        for e in range(start[s], start[s + 1]):
            largest = max(largest, logs[target[e]] - theta * costs[e])
        total = 0.0
        for e in range(start[s], start[s + 1]):
            total += np.exp(logs[target[e]] - theta * costs[e] - largest)
        logs[s] = largest + np.log(total)
    return logs


@compiled_strictly
def step_probabilities(lattice: DownSets, costs: Costs, theta: float) -> FloatArray:
    """Return the probability of each step given the down-set that it leaves."""
    logs = log_weights(lattice, costs, theta)
    probabilities = np.empty(len(lattice.target))
    for s in range(len(lattice.sets)):
        for e in range(lattice.start[s], lattice.start[s + 1]):
            probabilities[e] = np.exp(logs[lattice.target[e]] - theta * costs[e] - logs[s])
    return probabilities


@compiled_strictly
def mean_cost(lattice: DownSets, costs: Costs, theta: float) -> float:
    """Return the mean cost of a path."""
    probabilities = step_probabilities(lattice, costs, theta)
    mean = np.zeros(len(lattice.sets))
    for s in range(len(mean) - 2, -1, -1):
        for e in range(lattice.start[s], lattice.start[s + 1]):
            mean[s] += probabilities[e] * (costs[e] + mean[lattice.target[e]])
    return mean[0]


@compiled_strictly
def path_marginals(lattice: DownSets, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(item x at position p) and P(item x before item y)."""
    sets, start, target, item = lattice.sets, lattice.start, lattice.target, lattice.item
    n_items = np.int64(0)
    for word in sets[-1]:
        n_items += bit_count(word)
    position = np.zeros((n_items, n_items))
    pair = np.zeros((n_items, n_items))
    visited = np.zeros(len(sets))
    visited[0] = 1.0
    for s in range(len(sets)):
        size = np.int64(0)
        for word in sets[s]:
            size += bit_count(word)
        for e in range(start[s], start[s + 1]):
            probability = visited[s] * probabilities[e]
            visited[target[e]] += probability
            position[item[e], size] += probability
            for x in range(n_items):
                if contains(sets[s], x):
                    pair[x, item[e]] += probability
    return position, pair


@compiled_strictly
def draw_paths(lattice: DownSets, probabilities: FloatArray, uniforms: FloatArray) -> FullRanks:
    """Return one path per row of uniform numbers, one number per item, as positions of the items."""
    start, target, item = lattice.start, lattice.target, lattice.item
    n_draws, n_items = uniforms.shape
    ranks = np.empty((n_draws, n_items), dtype=np.int16)
    for d in range(n_draws):
        s = np.int64(0)
        for position in range(n_items):
            e, last = start[s], start[s + 1] - 1
            remaining = uniforms[d, position] - probabilities[e]
            # Probabilities sum to one only up to rounding, so the last step is taken where none else is.
            while remaining >= 0 and e < last:
                e += 1
                remaining -= probabilities[e]
            ranks[d, item[e]] = position
            s = np.int64(target[e])
    return ranks
