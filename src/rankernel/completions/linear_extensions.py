"""Completions of rankings and partial orders: counting, enumeration, exact uniform sampling, marginal probabilities.

The completions of a partial order are its linear extensions; it is given by its closed relation ``before`` (see
:mod:`rankernel.completions.partial_orders`). Draws are independent: the reversal behind antithetic draws maps
completions to completions only for bucket orders with free items.
"""

from __future__ import annotations

from math import comb, factorial, prod
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.random_streams import mix
from rankernel._utils.arrays import FloatArray, FullRanks, Indices, Mask, RankArray
from rankernel._utils.checks import check_choice, printable
from rankernel._utils.rng import GOLDEN, Seed, Streams, as_generator
from rankernel.completions.partial_orders import (
    FEW_DOWN_SETS,
    ONE,
    ZERO,
    Antichain,
    DownSets,
    Parallel,
    Part,
    Prime,
    Series,
    Words,
    bit_rows,
    check_relation,
    decompose,
    draw_paths,
    path_marginals,
    step_probabilities,
)
from rankernel.encoding import FREE
from rankernel.errors import ExactnessError, RankingError
from rankernel.preferences import Preferences, relations_of_ranks
from rankernel.rankings import count_completions

DrawMethod = Literal["auto", "down-sets", "coupling"]
Marginals = tuple[FloatArray, FloatArray]

MAX_ITEMS = 2**15  # positions are 16-bit integers
MAX_COMPLETIONS, MAX_EXTENSIONS = 5_000_000, 1_000_000
TOP_53 = np.uint64(11)
NO_ITEM = -1


# ---------------------------------------------------------------------- completions of rankings


def check_n_items(n_items: int) -> None:
    """Raise an error if positions do not fit into 16 bits."""
    if n_items > MAX_ITEMS:
        raise RankingError(f"there are {n_items:,} items; completions have at most {MAX_ITEMS:,}")


def n_completions(ranks: RankArray) -> int:
    """Return the number of completions of one ranking."""
    return count_completions(np.bincount(ranks[ranks != FREE]).tolist(), len(ranks))


def enumerate_completions(ranks: RankArray, limit: int = MAX_COMPLETIONS) -> FullRanks:
    """Return all completions of one ranking as positions of the items, in lexicographic order of their item lists.

    Examples
    --------
    >>> enumerate_completions(np.array([0, 1, -1]))
    array([[0, 1, 2],
           [0, 2, 1],
           [1, 2, 0]], dtype=int16)
    """
    ranks = np.ascontiguousarray(ranks, dtype=np.int32)
    check_n_items(len(ranks))
    number = n_completions(ranks)
    if number > limit:
        raise ExactnessError(f"the ranking has {number:,} completions; at most {limit:,} are enumerated")
    return all_extensions(bit_rows(relations_of_ranks(ranks[None])[0].T), number)


# ---------------------------------------------------------------------- counting and enumeration of linear extensions


def count_extensions(before: ArrayLike, limit: int | None = None) -> int:
    """Return the exact number of linear extensions; ``limit`` is the largest number of down-sets of a prime part.

    Examples
    --------
    The partial order "N", a < b > c < d:

    >>> before = np.zeros((4, 4), dtype=bool)
    >>> before[[0, 2, 2], [1, 3, 1]] = True
    >>> count_extensions(before)
    5
    """
    return count_part(decompose(check_relation(before)), limit)


def count_part(part: Part, limit: int | None = None) -> int:
    """Return the number of linear extensions of a part."""
    match part:
        case Antichain(items):
            return factorial(len(items))
        case Series(_, parts):
            return prod(count_part(inner, limit) for inner in parts)
        case Parallel(items, parts):
            shuffles = factorial(len(items)) // prod(factorial(len(inner.items)) for inner in parts)
            return shuffles * prod(count_part(inner, limit) for inner in parts)
        case Prime(_, before):
            return DownSets.required(before, limit).n_paths()


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
    """Return all linear extensions as positions of the items, in lexicographic order of their item lists.

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, [1, 2]] = True
    >>> enumerate_extensions(before)
    array([[0, 1, 2],
           [0, 2, 1]], dtype=int16)
    """
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


def draw_extensions(before: ArrayLike, n_draws: int, *, rng: Seed = None, method: DrawMethod = "auto") -> FullRanks:
    """Return independent, exactly uniform linear extensions as positions of the items, shape (n_draws, n_items).

    Prime parts are drawn on their lattice of down-sets, or by coupling from the past where the lattice is large.

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, 2] = True
    >>> draws = draw_extensions(before, 3000, rng=0)
    >>> bool((draws[:, 0] < draws[:, 2]).all()), round(float((draws[:, 1] == 1).mean()), 1)
    (True, 0.3)
    """
    check_choice("method", method, get_args(DrawMethod))
    return draw_part(decompose(check_relation(before)), n_draws, as_generator(rng), method)


def draw_part(part: Part, n_draws: int, rng: np.random.Generator, method: DrawMethod) -> FullRanks:
    """Return uniform linear extensions of a part, as positions among its items."""
    size = len(part.items)
    match part:
        case Antichain():
            return random_permutations(n_draws, size, rng)
        case Series(items, parts):
            ranks, start = np.empty((n_draws, size), dtype=np.int16), 0
            for inner in parts:
                ranks[:, np.searchsorted(items, inner.items)] = start + draw_part(inner, n_draws, rng, method)
                start += len(inner.items)
            return ranks
        case Parallel(items, parts):
            # A shuffle: all assignments of positions to parts have equal probability.
            ranks, positions = np.empty((n_draws, size), dtype=np.int16), random_permutations(n_draws, size, rng)
            for inner in parts:
                chosen, positions = np.split(positions, [len(inner.items)], axis=1)
                inside = draw_part(inner, n_draws, rng, method).astype(np.intp)
                columns = np.searchsorted(items, inner.items)
                ranks[:, columns] = np.take_along_axis(np.sort(chosen, axis=1), inside, axis=1)
            return ranks
        case Prime(_, before):
            lattice = None
            if method == "down-sets":
                lattice = DownSets.required(before)
            elif method == "auto":
                lattice = DownSets.of(before, FEW_DOWN_SETS)
            if lattice is None:
                return draw_by_coupling_from_the_past(before, n_draws, rng)
            probabilities = step_probabilities(lattice, lattice.equal_costs(), 0.0)
            return draw_paths(lattice, probabilities, rng.random((n_draws, size)))


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
    ranks[:, order] = coupled_draws(before[np.ix_(order, order)], seeds, n_items**3)
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
def coupled_draws(before: Mask, seeds: Streams, first_block: int) -> FullRanks:
    """Return one exactly uniform linear extension per seed; items must be numbered along a linear extension.

    Blocks of doubled length reach back into the past until all linear extensions coalesce in one of them; the result is
    then updated through the later blocks with the same random numbers.
    """
    n_items = len(before)
    ranks = np.empty((len(seeds), n_items), dtype=np.int16)
    order = np.empty(n_items, dtype=np.int64)
    for d in range(len(seeds)):
        block = 0
        while not run_block(before, random_word(seeds[d], block), first_block << block, order, False):
            block += 1
        for later in range(block - 1, -1, -1):
            run_block(before, random_word(seeds[d], later), first_block << later, order, True)
        for position in range(n_items):
            ranks[d, order[position]] = position
    return ranks


# ---------------------------------------------------------------------- marginal probabilities


def extension_marginals(before: ArrayLike, limit: int | None = None) -> Marginals:
    """Return P(item x at position p) and P(item x before item y) under a uniform linear extension, exactly.

    ``limit`` is the largest number of down-sets of a prime part.

    Examples
    --------
    >>> before = np.zeros((3, 3), dtype=bool)
    >>> before[0, 1] = True
    >>> position, pair = extension_marginals(before)
    >>> position[0].round(3), pair.round(3)
    (array([0.667, 0.333, 0.   ]), array([[0.   , 1.   , 0.667],
           [0.   , 0.   , 0.333],
           [0.333, 0.667, 0.   ]]))
    """
    return part_marginals(decompose(check_relation(before)), limit)


def part_marginals(part: Part, limit: int | None = None) -> Marginals:
    """Return the position and pair probabilities of a part, among its items."""
    size = len(part.items)
    match part:
        case Antichain():
            return np.full((size, size), 1 / size), (1 - np.eye(size)) / 2
        case Prime(_, before):
            lattice = DownSets.required(before, limit)
            position, pair = path_marginals(lattice, step_probabilities(lattice, lattice.equal_costs(), 0.0))
            pair[before] = 1.0  # exactly, without rounding errors
            return position, pair
        case Series(_, parts) | Parallel(_, parts):
            combine = concatenate_marginals if isinstance(part, Series) else shuffle_marginals
            result, items = part_marginals(parts[0], limit), parts[0].items
            for inner in parts[1:]:
                result = combine(*result, *part_marginals(inner, limit))
                items = np.concatenate([items, inner.items])
            order = np.argsort(items)
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
