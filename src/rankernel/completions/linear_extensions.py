"""Completions of rankings and partial orders: counting, enumeration, exact uniform sampling, marginal probabilities.

The completions of a partial order are its linear extensions; it is given by its closed relation ``before`` (see
:mod:`rankernel.completions.linear_extensions`). Draws are independent: the reversal behind antithetic draws maps
completions to completions only for bucket orders with free items.
"""

from __future__ import annotations

from math import comb, factorial, prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.pairs import popcount
from rankernel._loops.random_streams import GOLDEN, mix
from rankernel._utils import FloatArray, FullRanks, Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import Seed, as_generator, check_integer, check_list, printable
from rankernel._utils.resources import check_interrupt
from rankernel.errors import ExactnessError, RankingError
from rankernel.preferences import Preferences
from rankernel.rankings import FREE, as_rankings, check_positions, count_completions, relations_of_ranks

Marginals = tuple[FloatArray, FloatArray]

MAX_COMPLETIONS, MAX_EXTENSIONS = 5_000_000, 1_000_000
TOP_53 = np.uint64(11)
NO_ITEM = -1
Words = NDArray[np.uint64]
Costs = NDArray[np.int16]
MAX_DOWN_SETS = 2_000_000
# Beyond this many down-sets the lattice takes more time than a dozen draws by coupling from the past, and memory.
FEW_DOWN_SETS = 100_000
ZERO, ONE = np.uint64(0), np.uint64(1)


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


class Part(NamedTuple):
    """A part of a partial order.

    The kind is "antichain" (no relations), "series" (each inner part precedes the next), "parallel" (no relations
    between inner parts), or "prime" (decomposes neither way, with the relation ``before``).
    """

    kind: Literal["antichain", "series", "parallel", "prime"]
    items: Indices
    before: Mask
    parts: tuple[Part, ...] = ()


def decompose(before: Mask, items: Indices | None = None) -> Part:
    """Return a partial order as nested series and parallel compositions."""
    items = np.arange(len(before)) if items is None else items
    if not before.any():
        return Part("antichain", items, before)

    def parts(groups: list[Indices]) -> tuple[Part, ...]:
        return tuple(decompose(before[np.ix_(group, group)], items[group]) for group in groups)

    groups = connected_components(before | before.T)
    if len(groups) > 1:
        isolated = [group for group in groups if len(group) == 1]
        others = [group for group in groups if len(group) > 1]
        return Part("parallel", items, before, parts(others + ([np.concatenate(isolated)] if isolated else [])))
    groups = series_parts(before)
    return Part("series", items, before, parts(groups)) if len(groups) > 1 else Part("prime", items, before)


def series_parts(before: Mask) -> list[Indices]:
    """Return the items of the finest series decomposition, first part first."""
    return sorted(connected_components(~(before | before.T)), key=lambda items: int(before[:, items[0]].sum()))


def connected_components(graph: Mask) -> list[Indices]:
    """Return the connected components of a symmetric relation, in order of their first items."""
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
        predecessors, capacity = bit_rows(before.T), min(256, limit)
        while True:
            # The lattice is a subgraph of a hypercube: d down-sets have at most (d / 2) log2 d steps between them.
            max_steps = (capacity * capacity.bit_length() + 1) // 2
            sets, start = np.zeros((capacity, predecessors.shape[1]), dtype=np.uint64), np.empty(capacity + 1, np.int64)
            target, item = np.empty(max_steps, dtype=np.int32), np.empty(max_steps, dtype=np.int16)
            table = np.full(1 << (2 * capacity).bit_length(), -1, dtype=np.int32)
            n, m = fill_lattice(predecessors, sets, start, target, item, table)
            if n >= 0:
                return cls(sets[:n].copy(), start[: n + 1].copy(), target[:m].copy(), item[:m].copy())
            if capacity >= limit:
                return None
            capacity = min(8 * capacity, limit)

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
        """Return the exact number of paths."""
        paths = [1] * len(self.sets)  # from each down-set to the top
        for s in range(len(paths) - 2, -1, -1):
            paths[s] = sum(paths[t] for t in self.target[self.start[s] : self.start[s + 1]].tolist())
        return paths[0]

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
def find_slot(table: RankArray, sets: Words, key: Words) -> np.int64:
    """Return the slot of a down-set in the hash table, or the slot where it is to be inserted."""
    code = ZERO
    for word in key:
        code = mix(code ^ word)
    slot = np.int64(code & np.uint64(len(table) - 1))
    while table[slot] >= 0 and not (includes(sets[table[slot]], key) and includes(key, sets[table[slot]])):
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
                discordant += np.int64(popcount(lattice.sets[s, w] & later[lattice.item[e], w]))
            costs[e] = discordant
    return costs


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
        n_items += np.int64(popcount(word))
    position = np.zeros((n_items, n_items))
    pair = np.zeros((n_items, n_items))
    visited = np.zeros(len(sets))
    visited[0] = 1.0
    for s in range(len(sets)):
        size = np.int64(0)
        for word in sets[s]:
            size += np.int64(popcount(word))
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


# ---------------------------------------------------------------------- completions of rankings


def n_completions(ranks: RankArray) -> int:
    """Return the number of completions of one ranking."""
    return count_completions(np.bincount(ranks[ranks != FREE]).tolist(), len(ranks))


def enumerate_completions(ranks: RankArray, limit: int = MAX_COMPLETIONS) -> FullRanks:
    """Return all completions of one ranking as positions of the items, in lexicographic order of their item lists.

    Parameters
    ----------
    ranks : array of shape (n_items,)
        The ranking: bucket index of each item, -1 for free items.
    limit : int
        The largest number of completions; more are an error.

    Returns
    -------
    array of shape (n_completions, n_items)

    Examples
    --------
    >>> enumerate_completions(np.array([0, 1, -1]))
    array([[0, 1, 2],
           [0, 2, 1],
           [1, 2, 0]], dtype=int16)
    """
    row = as_rankings([check_list("ranks", ranks, "one ranking, the bucket index of each item")], "ranks").ranks
    return all_completions(row[0], check_integer("limit", limit, 0, 2**63 - 1))


def all_completions(ranks: RankArray, limit: int = MAX_COMPLETIONS) -> FullRanks:
    """Return all completions of one row of :class:`Rankings`, which is not checked again."""
    check_positions(len(ranks))
    number = n_completions(ranks)
    if number > limit:
        raise ExactnessError(f"the ranking has {number:,} completions; at most limit={limit:,} are enumerated")
    return all_extensions(bit_rows(relations_of_ranks(ranks[None])[0].T), number)


# ---------------------------------------------------------------------- counting and enumeration of linear extensions


def count_extensions(before: ArrayLike, limit: int | None = None) -> int:
    """Return the exact number of linear extensions; ``limit`` is the largest number of down-sets of a prime part."""
    return count_part(decompose(check_relation(before)), limit)


def count_part(part: Part, limit: int | None = None) -> int:
    """Return the number of linear extensions of a part."""
    if part.kind == "antichain":
        return factorial(len(part.items))
    if part.kind == "prime":
        return DownSets.required(part.before, limit).n_paths()
    number = prod(count_part(inner, limit) for inner in part.parts)
    if part.kind == "parallel":  # times the number of shuffles
        number *= factorial(len(part.items)) // prod(factorial(len(inner.items)) for inner in part.parts)
    return number


def n_extensions(preferences: Preferences, limit: int | None = None) -> list[int]:
    """Return the number of linear extensions of each user's preferences: see :meth:`Preferences.n_extensions`."""
    numbers = []
    for name, user in zip(preferences.users, preferences, strict=True):
        try:
            numbers.append(count_extensions(user.before[0], limit))
        except ExactnessError as error:
            raise ExactnessError(f"user {printable(name)!r}: {error}") from None
    return numbers


def enumerate_extensions(before: ArrayLike, limit: int = MAX_EXTENSIONS) -> FullRanks:
    """Return all linear extensions as positions of the items, in lexicographic order of their item lists."""
    relation = check_relation(before)
    number = count_part(decompose(relation))
    if number > limit:
        raise ExactnessError(f"there are {number:,} linear extensions; at most {limit:,} are enumerated")
    return all_extensions(bit_rows(relation.T), number)


@compiled
def all_extensions(predecessors: Words, n_extensions: int) -> FullRanks:
    """Return all linear extensions in lexicographic order, by backtracking over positions."""
    n_items, n_words = predecessors.shape
    out = np.empty((n_extensions, n_items), dtype=np.int16)
    ranks = np.full(n_items, -1, dtype=np.int16)  # -1 marks items after the current position
    item_at = np.full(n_items, NO_ITEM, dtype=np.int64)
    down_set = np.zeros(n_words, dtype=np.uint64)
    position, row = 0, 0
    while row < n_extensions:
        x = item_at[position]
        if x != NO_ITEM:  # backtrack: remove the item tried last
            down_set[x >> 6] ^= ONE << np.uint64(x & 63)
            ranks[x] = -1
        x += 1
        while x < n_items:
            if ranks[x] < 0:
                missing = ZERO  # calling `includes` with a row of predecessors takes twice as long
                for w in range(n_words):
                    missing |= predecessors[x, w] & ~down_set[w]
                if missing == ZERO:
                    break
            x += 1
        if x == n_items:
            item_at[position] = NO_ITEM
            position -= 1
            continue
        item_at[position] = x
        down_set[x >> 6] ^= ONE << np.uint64(x & 63)
        ranks[x] = position
        if position == n_items - 1:
            for a in range(n_items):
                out[row, a] = ranks[a]
            row += 1
        else:
            position += 1
    return out


# ---------------------------------------------------------------------- uniform draws


def draw_extensions(
    before: ArrayLike, n_draws: int, *, rng: Seed = None, max_down_sets: int = FEW_DOWN_SETS
) -> FullRanks:
    """Return independent, exactly uniform linear extensions as positions of the items, shape (n_draws, n_items).

    Prime parts are drawn on their lattice of down-sets, or by coupling from the past where the lattice is larger than
    ``max_down_sets``.
    """
    return draw_part(decompose(check_relation(before)), n_draws, as_generator(rng), max_down_sets)


def draw_part(part: Part, n_draws: int, rng: np.random.Generator, max_down_sets: int) -> FullRanks:
    """Return uniform linear extensions of a part, as positions among its items."""
    size = len(part.items)
    if part.kind == "antichain":
        return random_permutations(n_draws, size, rng)
    if part.kind == "prime":
        lattice = DownSets.of(part.before, max_down_sets)
        if lattice is None:
            return draw_by_coupling_from_the_past(part.before, n_draws, rng)
        return draw_paths(lattice, step_probabilities(lattice, lattice.equal_costs(), 0.0), rng.random((n_draws, size)))
    ranks = np.empty((n_draws, size), dtype=np.int16)
    # In a shuffle, all assignments of positions to parallel parts have equal probability.
    positions = np.arange(size, dtype=np.int16)[None]
    if part.kind == "parallel":
        positions = random_permutations(n_draws, size, rng)
    for inner in part.parts:
        chosen, positions = np.split(positions, [len(inner.items)], axis=1)
        inside = draw_part(inner, n_draws, rng, max_down_sets).astype(np.intp)
        chosen = np.broadcast_to(np.sort(chosen, axis=1), inside.shape)
        ranks[:, np.searchsorted(part.items, inner.items)] = np.take_along_axis(chosen, inside, axis=1)
    return ranks


def random_permutations(n_draws: int, n_items: int, rng: np.random.Generator) -> FullRanks:
    """Return uniform permutations, one per row."""
    return rng.permuted(np.tile(np.arange(n_items, dtype=np.int16), (n_draws, 1)), axis=1)


# ---------------------------------------------------------------------- coupling from the past


def draw_by_coupling_from_the_past(before: Mask, n_draws: int, rng: np.random.Generator) -> FullRanks:
    """Return exactly uniform linear extensions by coupling from the past (Huber 2006), O(n^3 log n) steps per draw."""
    n_items = len(before)
    if n_items == 1:
        return np.zeros((n_draws, 1), dtype=np.int16)
    order = np.argsort(before.sum(axis=0), kind="stable")
    seeds = rng.integers(0, 2**64, size=n_draws, dtype=np.uint64)
    ranks = np.empty((n_draws, n_items), dtype=np.int16)
    sorted_relation = before[np.ix_(order, order)]
    for number, seed in enumerate(seeds):
        ranks[number, order] = coupled_draw(sorted_relation, seed, n_items**3)
        check_interrupt()
    return ranks


@compiled_strictly
def random_word(seed: np.uint64, number: int) -> np.uint64:
    """Return word ``number`` of the splitmix64 stream of a seed, so that blocks of the past can be repeated."""
    return mix(seed + np.uint64(number + 1) * GOLDEN)


@compiled_strictly
def run_block(before: Mask, seed: np.uint64, n_steps: int, order: Indices, follow: bool) -> bool:
    """Run one block of the bounding chain; return whether all linear extensions have coalesced.

    With ``follow`` the linear extension ``order`` is updated along with it, otherwise ``order`` becomes the bound. The
    chain moves by adjacent transpositions: a random position, a fair coin, and the two neighbours are exchanged on
    heads unless that violates the partial order. Invariant: an item at position p of ``bound`` is at position p or
    earlier in *every* linear extension started with the block. Items, numbered along a linear extension, enter the
    bound one after another at the last position, where the invariant is trivial; the coin is reversed for a linear
    extension exactly where the invariant would be violated otherwise. Once all items are in the bound, all linear
    extensions equal it.
    """
    n_items = len(before)
    bound = np.empty(n_items, dtype=np.int64)
    for position in range(n_items - 1):
        bound[position] = NO_ITEM
    bound[-1] = 0
    n_entered = 1
    for step in range(n_steps):
        word = random_word(seed, step)
        position = int((word >> TOP_53) * 2.0**-53 * (n_items - 1))
        heads = (word & ONE) == ONE
        upper, lower = bound[position], bound[position + 1]
        if follow:
            first, second = order[position], order[position + 1]
            if heads != (first == lower) and not before[first, second]:
                order[position], order[position + 1] = second, first
        if heads and (upper == NO_ITEM or lower == NO_ITEM or not before[upper, lower]):
            bound[position], bound[position + 1] = lower, upper
            if bound[-1] == NO_ITEM:
                bound[-1] = n_entered
                n_entered += 1
    if not follow:
        for position in range(n_items):
            order[position] = bound[position]
    return n_entered == n_items


@compiled_strictly
def coupled_draw(before: Mask, seed: np.uint64, first_block: int) -> FullRanks:
    """Return one exactly uniform linear extension; items must be numbered along a linear extension.

    Blocks of doubled length reach back into the past until all linear extensions coalesce in one of them; the result is
    then updated through the later blocks with the same random numbers.
    """
    ranks, order = np.empty(len(before), dtype=np.int16), np.empty(len(before), dtype=np.int64)
    block = 0
    while not run_block(before, random_word(seed, block), first_block << block, order, False):
        block += 1
    for later in range(block - 1, -1, -1):
        run_block(before, random_word(seed, later), first_block << later, order, True)
    for position in range(len(before)):
        ranks[order[position]] = position
    return ranks


# ---------------------------------------------------------------------- marginal probabilities


def extension_marginals(before: ArrayLike, limit: int | None = None) -> Marginals:
    """Return P(item x at position p) and P(item x before item y) under a uniform linear extension, exactly.

    ``limit`` is the largest number of down-sets of a prime part.
    """
    return part_marginals(decompose(check_relation(before)), limit)


def part_marginals(part: Part, limit: int | None = None) -> Marginals:
    """Return the position and pair probabilities of a part, among its items."""
    size = len(part.items)
    if part.kind == "antichain":
        return np.full((size, size), 1 / size), (1 - np.eye(size)) / 2
    if part.kind == "prime":
        lattice = DownSets.required(part.before, limit)
        position, pair = path_marginals(lattice, step_probabilities(lattice, lattice.equal_costs(), 0.0))
        pair[part.before] = 1.0  # exactly, without rounding errors
        return position, pair
    combine = concatenate_marginals if part.kind == "series" else shuffle_marginals
    result = part_marginals(part.parts[0], limit)
    for inner in part.parts[1:]:
        result = combine(*result, *part_marginals(inner, limit))
    order = np.argsort(np.concatenate([inner.items for inner in part.parts]))
    return result[0][order], result[1][np.ix_(order, order)]


def concatenate_marginals(
    position: FloatArray, pair: FloatArray, position_2: FloatArray, pair_2: FloatArray
) -> Marginals:
    """Return the marginals of one part followed by another."""
    n, m = len(position), len(position_2)
    return (
        np.block([[position, np.zeros((n, m))], [np.zeros((m, n)), position_2]]),
        np.block([[pair, np.ones((n, m))], [np.zeros((m, n)), pair_2]]),
    )


def shuffle_marginals(position: FloatArray, pair: FloatArray, position_2: FloatArray, pair_2: FloatArray) -> Marginals:
    """Return the marginals of two parts after a uniform shuffle."""
    n, m = len(position), len(position_2)
    between = position @ shuffle_precedence(n, m) @ position_2.T
    return (
        np.concatenate([position @ shuffle_positions(n, m), position_2 @ shuffle_positions(m, n)]),
        np.block([[pair, between], [1 - between.T, pair_2]]),
    )


def shuffle_positions(n: int, m: int) -> FloatArray:
    """Return P(the i-th of n cards is at position p) after shuffling them into m others, shape (n, n + m)."""
    total = comb(n + m, n)
    return np.array(
        [
            [comb(p, i) * comb(n + m - 1 - p, n - 1 - i) / total if i <= p <= i + m else 0.0 for p in range(n + m)]
            for i in range(n)
        ]
    )


def shuffle_precedence(n: int, m: int) -> FloatArray:
    """Return P(the i-th of n cards is before the j-th of m others) after shuffling, shape (n, m)."""
    total = comb(n + m, n)
    # The i-th card is before the j-th other card if more than i cards are; exactly k are with this probability:
    exactly = np.array(
        [[comb(k + j, j) * comb(n - k + m - 1 - j, m - 1 - j) / total for j in range(m)] for k in range(n + 1)]
    )
    return np.asarray(np.cumsum(exactly[::-1], axis=0)[::-1][1:], dtype=np.float64)
