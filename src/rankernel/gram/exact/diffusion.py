"""Diffusion kernels of rankings without free items.

For all transpositions the kernel depends only on the cycle type of a random map of positions. If the tie of one ranking
is inside the tie of the other, the map consists of fixed paths that are joined at random, and the distribution of its
cycle type is known. For either graph the heat kernel summed over the completions of a ranking is the probability that a
word with its buckets as letters becomes sorted, which needs no more states than there are such words.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from functools import lru_cache

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, IntArray
from rankernel._utils.combinatorics import all_partitions
from rankernel.gram.exact.footrule import tie_bounds
from rankernel.gram.exact.formulas import (
    CodeArray,
    Coder,
    Formula,
    Overlap,
    Pairs,
    Shape,
    are_exhaustive,
    have_one_tie,
    loop_coder,
    salts,
)
from rankernel.kernels.base import Kernel
from rankernel.kernels.diffusion import (
    MAX_ITEMS,
    Diffusion,
    all_words,
    n_swaps,
    n_words,
    transposition_heat,
    type_index,
    word_heat,
)
from rankernel.rankings import Rankings

ANY_PATHS_ITEMS = 24  # joining many long paths of more items takes seconds for each overlap
FEW_PATHS = 6  # long paths that are joined for any number of items
MAX_WORD_SWAPS = 4_000_000  # states times swaps of a random walk on words: about 0.1 s


class CycleTypes(Formula):
    """The kernel of all transpositions for rankings with one tie each, one of them inside the other.

    So for two top-k lists, or a full ranking and one with a single tie, of at most 24 items, or at most 36 if no more
    than 6 items are listed (or left out) by the shorter list.

    Examples
    --------
    All of three items tied on one side: the mean over all rankings is 1/3!.

    >>> overlap = Overlap.of(np.arange(3, dtype=np.int32), np.zeros(3, np.int32))
    >>> print(round(CycleTypes().mean(Diffusion(0.2), overlap)[0] * 6, 12))
    1.0
    """

    shapes = staticmethod(have_one_tie)

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time to join paths at random, which grows with the number of cycle types; few are joined."""
        if not (isinstance(kernel, Diffusion) and kernel.graph == "transpositions"):
            return None
        inner, outer = sorted((tie_positions(left), tie_positions(right)), key=len)
        if len(inner) and not (outer.start <= inner.start and inner.stop <= outer.stop):
            return None
        n_items, n_long_paths = left.n_items, min(left.n_items - len(outer), len(outer))
        if n_items > (MAX_ITEMS["transpositions"] if n_long_paths <= FEW_PATHS else ANY_PATHS_ITEMS):
            return None
        return 2e-3 * 1.25 ** max(n_items - 16, 0)

    def coder(self, X: Rankings, Y: Rankings, pairs: Pairs) -> Coder:
        """Return codes of the cycles and paths."""
        salt = salts(2, X.n_items + 1)
        (left, tie), (right, other_tie) = ((one_completion(side), tie_bounds(side)) for side in (X, Y))
        return loop_coder(path_codes, [left, tie], [right, other_tie], salt, offsets=False)

    def mean(self, kernel: Kernel, overlap: Overlap) -> tuple[float, ...]:
        """Return the mean over the distribution of the cycle type, and its derivative in beta."""
        assert isinstance(kernel, Diffusion)
        if len(tie_positions(overlap.left_shape)) > len(tie_positions(overlap.right_shape)):
            overlap = overlap.swapped
        pmf = cycle_type_pmf(overlap.n_items, *cycles_and_paths(overlap))
        heat = transposition_heat(overlap.n_items, float(kernel.beta))
        return float(pmf @ heat.values), float(pmf @ heat.derivatives)


class Words(Formula):
    """Either graph, for any two rankings without free items, if one of them has few words.

    The words of a ranking are the arrangements of its buckets' labels: n!/(n_1! n_2! ...) of them, many for a full
    ranking, few for a short top-k list or for large ties.

    Examples
    --------
    Two different winners of three items: a single item moves on a line of three positions.

    >>> overlap = Overlap.of(np.array([0, 1, 1], np.int32), np.array([1, 0, 1], np.int32))
    >>> value, _ = Words().mean(Diffusion(np.log(2), "adjacent"), overlap)
    >>> print(round(value * 4, 12))  # 1 - (1/3 + 2^-1 / 2 + 2^-3 / 6)
    0.395833333333
    """

    method = "random walk on words"
    shapes = staticmethod(are_exhaustive)

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time to compare all words of the ranking that has fewer."""
        assert isinstance(kernel, Diffusion)
        fewest = min(n_words(left.sizes), n_words(right.sizes))
        return 1e-4 + 3e-9 * fewest if fewest * n_swaps(left.n_items, kernel.graph) <= MAX_WORD_SWAPS else None

    def mean(self, kernel: Kernel, overlap: Overlap) -> tuple[float, ...]:
        """Return the mean over the words that the completions of the left ranking spell, and its derivative in beta."""
        assert isinstance(kernel, Diffusion)
        if n_words(overlap.left_shape.sizes) < n_words(overlap.right_shape.sizes):
            overlap = overlap.swapped
        letters, parts = overlap.right_shape.sizes, overlap.left_shape.sizes
        heat = word_heat(letters, float(kernel.beta), kernel.graph)
        code = (overlap.counts[:-1, :-1].astype(np.uint64) * salts(len(parts), len(letters))).sum()
        matching = word_codes(letters, parts) == code
        share = 1 / math.prod(map(math.factorial, letters)) / np.count_nonzero(matching)
        return float(share * heat.values[matching].sum()), float(share * heat.derivatives[matching].sum())


@lru_cache(maxsize=8)
def word_codes(sizes: tuple[int, ...], parts: tuple[int, ...]) -> CodeArray:
    """Return codes of all words that are equal if each of the consecutive parts of two words has the same letters."""
    part_of = np.repeat(np.arange(len(parts)), parts)
    salt = salts(len(parts), len(sizes))
    return np.sum([salt[part, letter] for part, letter in zip(part_of, all_words(sizes).T, strict=True)], axis=0)


FORMULAS: tuple[Formula, ...] = (CycleTypes(), Words())


# ---------------------------------------------------------------------- cycle types


def tie_positions(shape: Shape) -> range:
    """Return the positions of the one tie of a ranking, none if it is full."""
    start = 0
    for size in shape.sizes:
        if size > 1:
            return range(start, start + size)
        start += size
    return range(0)


def cycles_and_paths(overlap: Overlap) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lengths of the cycles that avoid the tie on the right, and of the paths between its positions.

    A completion maps left positions to right ones. The tied right positions are assigned at random: each starts a path
    that ends where it next enters the tie.
    """
    tie = tie_positions(overlap.right_shape)
    step = np.empty(overlap.n_items, dtype=np.int64)
    # Items are sorted by their left bucket, so that the index of an item is a possible left position.
    step[np.argsort(overlap.right, kind="stable")] = np.arange(overlap.n_items)
    visited: set[int] = set()
    paths = [path_length(step, position, tie, visited) for position in tie]
    cycles = [
        path_length(step, start, range(start, start + 1), visited) for start in range(len(step)) if start not in visited
    ]
    return tuple(sorted(cycles, reverse=True)), tuple(sorted(paths, reverse=True))


def path_length(step: IntArray, start: int, ends: range, visited: set[int]) -> int:
    """Return the number of steps from a position to the next end."""
    length, position = 0, start
    while True:
        visited.add(position)
        position, length = int(step[position]), length + 1
        if position in ends:
            return length


@lru_cache(maxsize=256)
def cycle_type_pmf(n_items: int, cycles: tuple[int, ...], paths: tuple[int, ...]) -> FloatArray:
    """Return the probability of each cycle type if the paths are joined by a random permutation."""
    index = type_index(n_items)
    numbers, pmf = index.numbers.tolist(), np.zeros(len(index.codes))
    by_rest: defaultdict[int, list[tuple[tuple[int, ...], float]]] = defaultdict(list)
    for closed, weight in close_long_paths(cycles, paths).items():
        by_rest[n_items - sum(closed)].append((closed, weight))
    for n_units, result in by_rest.items():
        codes = [sum(numbers[length] for length in closed) & index.mask for closed, _ in result]
        units, shares = random_types(n_units, n_items)
        types = index.rows_of(np.add.outer(codes, units))
        chances = np.multiply.outer([weight for _, weight in result], shares)
        pmf += np.bincount(types.ravel(), chances.ravel(), len(pmf))
    return pmf


@lru_cache(maxsize=64)
def random_types(n_units: int, n_items: int) -> tuple[IntArray, FloatArray]:
    """Return the codes of the cycle types of a random permutation of n_units positions, and their probabilities.

    The share of a cycle type among all permutations is 1 / prod_k k^r_k r_k!.
    """
    types = all_partitions(n_units, n_items + 1)
    lengths = np.maximum(np.arange(types.shape[1]), 1).astype(np.float64)
    factorials = np.cumprod([1.0, *range(1, types.shape[1])])
    return types @ type_index(n_items).numbers, 1.0 / np.prod(lengths**types * factorials[types], axis=1)


def close_long_paths(cycles: tuple[int, ...], paths: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Return the possible cycles when every path longer than 1 belongs to one, with their probabilities.

    The cycle of a given path has a uniformly distributed number of paths, the others drawn at random.
    """
    long = tuple(length for length in paths if length > 1)
    states = {(long, cycles): 1.0}
    n_units_and_closed = len(paths) - len(long) + sum(cycles) + sum(long)
    done: defaultdict[tuple[int, ...], float] = defaultdict(float)
    while states:
        following: defaultdict[tuple[tuple[int, ...], tuple[int, ...]], float] = defaultdict(float)
        for (waiting, closed), weight in states.items():
            if not waiting:
                done[closed] += weight
                continue
            n_units = n_units_and_closed - sum(closed) - sum(waiting)
            for rest, added, chance in random_cycle_members(waiting[1:], n_units):
                following[rest, tuple(sorted((*closed, waiting[0] + added), reverse=True))] += weight * chance
        states = following
    return dict(done)


@lru_cache(maxsize=4096)
def random_cycle_members(others: tuple[int, ...], n_units: int) -> list[tuple[tuple[int, ...], int, float]]:
    """Return the long paths that remain when the cycle of one path is closed, its added length, and probabilities."""
    n_paths = 1 + len(others) + n_units
    kinds = sorted(Counter(others).items(), reverse=True)
    result: defaultdict[tuple[tuple[int, ...], int], float] = defaultdict(float)
    for taken in itertools.product(*(range(count + 1) for _, count in kinds)):
        rest = tuple(length for (length, count), k in zip(kinds, taken, strict=True) for _ in range(count - k))
        ways = math.prod(math.comb(count, k) for (_, count), k in zip(kinds, taken, strict=True))
        n_long, length = sum(taken), sum(length * k for (length, _), k in zip(kinds, taken, strict=True))
        for units in range(n_units + 1):
            all_ways = n_paths * math.comb(n_paths - 1, n_long + units)
            result[rest, length + units] += ways * math.comb(n_units, units) / all_ways
    return [(rest, added, chance) for (rest, added), chance in result.items()]


def one_completion(X: Rankings) -> IntArray:
    """Return one completion of each ranking."""
    order = np.argsort(X.ranks, axis=1, kind="stable")
    position = np.empty(order.shape, dtype=np.int64)
    np.put_along_axis(position, order, np.broadcast_to(np.arange(X.n_items), order.shape), axis=1)
    return position


# ---------------------------------------------------------------------- compiled loops


@compiled
def path_codes(X, tie, Y, tie_Y, salt, out):
    """Write codes of the lengths of the paths between the positions of the larger tie, and of the other cycles.

    ``X[i, a]`` is the position of item a in one completion of ranking i, and ``tie[i]`` the start and end of its tie.
    """
    n = Y.shape[1]
    step, visited = np.empty(n, np.int64), np.empty(n, np.bool_)
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            begin, end = tie[i, 0], tie[i, 1]
            if end - begin < tie_Y[j, 1] - tie_Y[j, 0]:
                begin, end = tie_Y[j, 0], tie_Y[j, 1]
            for a in range(n):
                step[X[i, a]] = Y[j, a]
                visited[a] = False
            total = np.uint64(0)
            for start in range(begin, end):
                length, position = 0, start
                while True:
                    visited[position] = True
                    position, length = step[position], length + 1
                    if begin <= position < end:
                        break
                total += salt[0, length]
            for start in range(n):
                if not visited[start]:
                    length, position = 0, start
                    while not visited[position]:
                        visited[position] = True
                        position, length = step[position], length + 1
                    total += salt[1, length]
            out[i, j] = total
