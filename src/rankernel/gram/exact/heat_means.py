"""Heat kernels of rankings without free items, exactly.

Three ways. In no time only equal completions are reached, and these are counted. For all transpositions only the cycle
type of a random map of positions counts; if the tie of one ranking stands inside the tie of the other, the map consists
of fixed paths that are joined at random, and the distribution of its cycle type is known. For either graph the heat
kernel summed over the completions of a ranking is the chance that a word with its buckets as letters becomes sorted,
which needs no more states than there are such words.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from functools import lru_cache

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.partitions import all_partitions
from rankernel.errors import ExactnessError
from rankernel.gram.exact.overlap import Formula, Overlap, Shape
from rankernel.kernels.diffusion import (
    MAX_ITEMS,
    Graph,
    Heat,
    all_words,
    n_swaps,
    n_words,
    transposition_heat,
    type_index,
    word_heat,
)

# Joining many long paths takes seconds for each overlap if there are many items: few of either, then.
ANY_PATHS_N = 24
FEW_PATHS = 6

MAX_WORD_SWAPS = 4_000_000


class CycleTypeDiffusion(Formula):
    """Exact heat kernel of all transpositions, for rankings with one tie each, one of them inside the other.

    So for two top-k lists, or a full ranking and one with a single tie, of at most 24 items, or at most 36 if no more
    than 6 items are listed (or left out) by the shorter list.

    Examples
    --------
    All of three items tied on one side: the mean over all rankings is 1/3!.

    >>> import numpy as np
    >>> overlap = Overlap.of(np.arange(3, dtype=np.int32), np.zeros(3, np.int32))
    >>> print(round(CycleTypeDiffusion().log_value(overlap, 0.2)[0] * 6, 12))
    1.0
    """

    name = "cycle types of the transposition walk"
    logarithmic = False

    def seconds(self, left: Shape, right: Shape, width: float) -> float:
        """Return the time to join paths at random, which grows with the number of cycle types."""
        return 2e-3 * 1.25 ** max(left.n_items - 16, 0)

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact value here, at a cost worth paying."""
        if not (left.is_exhaustive and right.is_exhaustive and max(left.n_ties, right.n_ties) <= 1):
            return False
        inner, outer = sorted((tie_of(left), tie_of(right)), key=len)
        if len(inner) and not (outer.start <= inner.start and inner.stop <= outer.stop):
            return False
        n_items, n_long_paths = left.n_items, min(left.n_items - len(outer), len(outer))
        return n_items <= ANY_PATHS_N or (n_items <= MAX_ITEMS["transpositions"] and n_long_paths <= FEW_PATHS)

    def log_value(self, overlap: Overlap, beta: float) -> tuple[float, float]:
        """Return the kernel and its derivative in beta: it may be 0, and has no logarithm then."""
        if len(tie_of(overlap.left_shape)) > len(tie_of(overlap.right_shape)):
            overlap = overlap.swapped
        weights = cycle_type_weights(overlap.n_items, *cycles_and_paths(overlap))
        heat = transposition_heat(overlap.n_items, float(beta))
        return float(weights @ heat.values), float(weights @ heat.derivatives)


class WordDiffusion(Formula):
    """Exact heat kernel of any two rankings without free items, if one of them leaves few words.

    The words of a ranking are the arrangements of its buckets' labels: n!/(n_1! n_2! ...) of them, so many for a full
    ranking, few for a short top-k list or for large ties.

    Examples
    --------
    Two different winners of three items: a single item walks on a line of three positions.

    >>> import numpy as np
    >>> overlap = Overlap.of(np.array([0, 1, 1], np.int32), np.array([1, 0, 1], np.int32))
    >>> value, slope = WordDiffusion("adjacent").log_value(overlap, np.log(2))
    >>> print(round(value * 4, 12))  # 1 - (1/3 + 2^-1 / 2 + 2^-3 / 6)
    0.395833333333
    """

    logarithmic = False

    def __init__(self, graph: Graph) -> None:
        self.graph: Graph = graph
        self.name = f"words of the {graph} walk"

    def seconds(self, left: Shape, right: Shape, width: float) -> float:
        """Return the time to look at all words."""
        return 1e-4 + 2e-8 * min(n_words(left.sizes), n_words(right.sizes)) * left.n_items

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact value here, at a cost worth paying."""
        if not (left.is_exhaustive and right.is_exhaustive):
            return False
        fewest = min(n_words(left.sizes), n_words(right.sizes))
        return fewest * n_swaps(left.n_items, self.graph) <= MAX_WORD_SWAPS

    def log_value(self, overlap: Overlap, beta: float) -> tuple[float, float]:
        """Return the kernel and its derivative in beta: it may be 0, and has no logarithm then."""
        if n_words(overlap.left_shape.sizes) < n_words(overlap.right_shape.sizes):
            overlap = overlap.swapped
        letters = overlap.right_shape.sizes
        heat = word_heat(letters, float(beta), self.graph)
        value, slope = mean_over_words(overlap, letters, heat)
        share = 1 / math.prod(math.factorial(size) for size in letters)
        return share * value, share * slope


class EqualCompletions(Formula):
    """The heat kernel of any two rankings without free items at time 0: the chance that completions are equal.

    A completion of both has at each position an item of two given buckets, so there are some only if as many items as
    positions belong to each pair of buckets; then these are handed out in any order.

    Examples
    --------
    Of the two completions of each one is the same:

    >>> import numpy as np
    >>> overlap = Overlap.of(np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32))
    >>> EqualCompletions("adjacent").log_value(overlap, 0.0)
    (0.25, 0.0)
    """

    logarithmic = False
    name = "equal completions"

    def __init__(self, graph: Graph) -> None:
        self.graph: Graph = graph

    def is_for(self, width: float) -> bool:
        """Say whether no time has passed."""
        return width == 0

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether no item is free."""
        return left.is_exhaustive and right.is_exhaustive

    def is_accurate(self, left: Shape, right: Shape, width: float) -> bool:
        """Say whether no time has passed."""
        return self.is_for(width)

    def log_value(self, overlap: Overlap, beta: float) -> tuple[float, float]:
        """Return the kernel and its derivative in beta: what one swap reaches, less what it leaves."""
        if not self.is_for(beta):
            raise ExactnessError(f"equal completions are all that counts at beta=0 only, not at beta={beta:g}")
        sizes = overlap.left_shape.sizes, overlap.right_shape.sizes
        left, right = (np.repeat(np.arange(len(side)), side) for side in sizes)  # the buckets of each position
        lacking = overlap.counts[:-1, :-1].copy()
        np.add.at(lacking, (left, right), -1)
        n_swapped = n_swaps_to_match(lacking, left, right, self.graph)
        ways = math.prod(math.factorial(cell) for cell in overlap.cell_sizes.tolist())
        share = ways / math.prod(math.factorial(size) for side in sizes for size in side)
        equal = not lacking.any()
        return share * equal, share * (n_swapped - n_swaps(overlap.n_items, self.graph) * equal)


def n_swaps_to_match(lacking: IntArray, left: IntArray, right: IntArray, graph: Graph) -> int:
    """Return how many swaps of two positions on the right make the pairs of buckets of positions those of the items.

    ``lacking`` holds, for each pair of buckets, how many more items have it than positions.
    """
    n = len(left)
    p, q = (np.arange(n - 1), np.arange(1, n)) if graph == "adjacent" else np.triu_indices(n, 1)
    if not lacking.any():
        return int(((left[p] == left[q]) | (right[p] == right[q])).sum())
    if np.abs(lacking).sum() != 4:
        return 0
    gained = (lacking[left[p], right[q]] == 1) & (lacking[left[q], right[p]] == 1)
    lost = (lacking[left[p], right[p]] == -1) & (lacking[left[q], right[q]] == -1)
    return int((gained & lost).sum())


# ---------------------------------------------------------------------- words


def mean_over_words(overlap: Overlap, letters: tuple[int, ...], heat: Heat) -> tuple[float, float]:
    """Return the mean heat, and its derivative, over the words that the completions of the left ranking spell."""
    ends = np.cumsum(overlap.left_shape.sizes)
    value, slope, n_matching = _loops.word_walks.sums_over_matching(
        all_words(letters), overlap.counts[:-1, :-1], ends, heat.values, heat.derivatives
    )
    return value / n_matching, slope / n_matching


# ---------------------------------------------------------------------- cycle types


def tie_of(shape: Shape) -> range:
    """Return the positions of the one tie of a ranking, none if it is full."""
    start = 0
    for size in shape.sizes:
        if size > 1:
            return range(start, start + size)
        start += size
    return range(0)


def cycles_and_paths(overlap: Overlap) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lengths of the cycles that avoid the tie on the right, and of the paths between its positions.

    A completion maps left positions to right ones. The tied right positions are handed out at random: each starts a
    path that ends where it would next enter the tie.
    """
    tie = tie_of(overlap.right_shape)
    step = np.empty(overlap.n_items, dtype=np.int64)
    # Items are sorted by their left bucket, so an item's number is a left position that it may have.
    step[np.argsort(overlap.right, kind="stable")] = np.arange(overlap.n_items)
    seen: set[int] = set()
    paths = [follow(step, position, tie, seen) for position in tie]
    cycles = [follow(step, start, range(start, start + 1), seen) for start in range(len(step)) if start not in seen]
    return tuple(sorted(cycles, reverse=True)), tuple(sorted(paths, reverse=True))


def follow(step: IntArray, start: int, ends: range, seen: set[int]) -> int:
    """Return the number of steps from a position to the next end."""
    length, position = 0, start
    while True:
        seen.add(position)
        position, length = int(step[position]), length + 1
        if position in ends:
            return length


@lru_cache(maxsize=256)
def cycle_type_weights(n_items: int, cycles: tuple[int, ...], paths: tuple[int, ...]) -> FloatArray:
    """Return the probability of each cycle type if the paths are joined by a random permutation."""
    numbered = type_index(n_items)
    numbers, weights = numbered.numbers.tolist(), np.zeros(len(numbered.codes))
    by_rest: defaultdict[int, list[tuple[tuple[int, ...], float]]] = defaultdict(list)
    for closed, weight in close_long_paths(cycles, paths).items():
        by_rest[n_items - sum(closed)].append((closed, weight))
    for n_units, found in by_rest.items():
        known = [sum(numbers[length] for length in closed) & numbered.mask for closed, _ in found]
        units, shares = random_types(n_units, n_items)
        types = numbered.rows_of(np.add.outer(known, units))
        chances = np.multiply.outer([weight for _, weight in found], shares)
        weights += np.bincount(types.ravel(), chances.ravel(), len(weights))
    return weights


@lru_cache(maxsize=64)
def random_types(n_units: int, n_items: int) -> tuple[IntArray, FloatArray]:
    """Return the sums of the cycle types of a random permutation of some positions, and how likely each is."""
    units = all_partitions(n_units, n_items + 1)
    return units @ type_index(n_items).numbers, class_shares(units)


def class_shares(types: IntArray) -> FloatArray:
    """Return the share of each cycle type among all permutations: 1 / prod_k k^r_k r_k!."""
    lengths = np.maximum(np.arange(types.shape[1]), 1).astype(np.float64)
    factorials = np.cumprod([1.0, *range(1, types.shape[1])])
    shares: FloatArray = 1.0 / np.prod(lengths**types * factorials[types], axis=1)
    return shares


def close_long_paths(cycles: tuple[int, ...], paths: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Return the cycles that there are when every path longer than 1 is part of one, with their probabilities.

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
            for rest, added, chance in random_mates(waiting[1:], n_units):
                following[rest, tuple(sorted((*closed, waiting[0] + added), reverse=True))] += weight * chance
        states = following
    return dict(done)


@lru_cache(maxsize=4096)
def random_mates(others: tuple[int, ...], n_units: int) -> list[tuple[tuple[int, ...], int, float]]:
    """Return which long paths are left when the cycle of one path is closed, how long its mates are, and how likely."""
    n_paths = 1 + len(others) + n_units
    kinds = sorted(Counter(others).items(), reverse=True)
    found: defaultdict[tuple[tuple[int, ...], int], float] = defaultdict(float)
    for taken in itertools.product(*(range(count + 1) for _, count in kinds)):
        rest = tuple(length for (length, count), k in zip(kinds, taken, strict=True) for _ in range(count - k))
        ways = math.prod(math.comb(count, k) for (_, count), k in zip(kinds, taken, strict=True))
        n_long, length = sum(taken), sum(length * k for (length, _), k in zip(kinds, taken, strict=True))
        for units in range(n_units + 1):
            all_ways = n_paths * math.comb(n_paths - 1, n_long + units)
            found[rest, length + units] += ways * math.comb(n_units, units) / all_ways
    return [(rest, added, chance) for (rest, added), chance in found.items()]
