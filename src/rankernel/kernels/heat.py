r"""Heat kernels on full rankings: a random walk that swaps two positions, run for a while.

.. math:: k(x, y) = \left(e^{-\beta L}\right)_{xy}, \qquad L = \mathrm{degree} \cdot I - A,

where A joins rankings that differ by a swap of two positions: any two (``"transpositions"``, degree n(n-1)/2) or two
neighbouring ones (``"adjacent"``, degree n - 1). Each row of k sums to 1 over all rankings.

The value depends only on how the positions of x map to those of y: for all transpositions only on the cycle type of
this map, so that the walk on n! rankings becomes one on the partitions of n. The exponential is summed as the power
series of :math:`e^{\beta A}`, whose terms are all positive: even the smallest values keep their relative precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray, RankArray
from rankernel.distances import Distance, hamming, kendall
from rankernel.errors import ExactnessError, RankingError
from rankernel.kernels.partitions import Numbered, all_partitions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Graph = Literal["transpositions", "adjacent"]
LARGEST_N: dict[str, int] = {"transpositions": 36, "adjacent": 9}

# The power series is summed in pieces of at most this many expected swaps, far from the overflow of exp.
SWAPS_A_PIECE = 256.0


@dataclass(frozen=True)
class Heat:
    """Values of a heat kernel and their derivatives in beta, one for each class of pairs of rankings."""

    values: FloatArray
    slopes: FloatArray


def heat_matrix(X: NDArray[Any], Y: NDArray[Any], beta: float, graph: Graph = "transpositions") -> FloatArray:
    r"""Return the heat kernel :math:`e^{-\beta L}` between full rankings.

    Examples
    --------
    Two items have one swap: after an odd number of swaps the order is reversed.

    >>> X = np.array([[0, 1], [1, 0]])
    >>> print(np.round(2 * heat_matrix(X, X, beta=1.0)[0] - 1, 6))  # e^-2, -e^-2
    [ 0.135335 -0.135335]
    """
    if beta == 0:
        check_full(X, Y)
        return np.asarray(hamming.between(X, Y) == 0, dtype=np.float64)
    heat, classes = classes_of(X, Y, beta, graph)
    return heat.values[classes]


def heat_matrix_derivative(
    X: NDArray[Any], Y: NDArray[Any], beta: float, graph: Graph = "transpositions"
) -> FloatArray:
    r"""Return the derivative of :func:`heat_matrix` in beta, :math:`-L e^{-\beta L}`.

    Examples
    --------
    >>> X = np.array([[0, 1], [1, 0]])
    >>> print(heat_matrix_derivative(X, X, beta=0.0)[0])
    [-1.  1.]
    """
    if beta == 0:
        check_full(X, Y)
        moved = hamming.between(X, Y)
        one_swap = kendall.between(X, Y) == 1 if graph == "adjacent" else moved == 2
        return np.asarray(one_swap - float(n_swaps(X.shape[1], graph)) * (moved == 0))
    heat, classes = classes_of(X, Y, beta, graph)
    return heat.slopes[classes]


def classes_of(X: NDArray[Any], Y: NDArray[Any], beta: float, graph: Graph) -> tuple[Heat, IntArray]:
    """Return the values of the kernel for each class of pairs, and the class of each pair."""
    X, Y = np.ascontiguousarray(X, dtype=np.int32), np.ascontiguousarray(Y, dtype=np.int32)
    check_full(X, Y)
    n_items = X.shape[1]
    check_n_items(n_items, graph)
    if graph == "adjacent":
        return adjacent_heat(n_items, beta), _loops.word_walks.pair_words(X, Y)
    return transposition_heat(n_items, beta), pair_types(X, Y)


def check_full(*sides: NDArray[Any]) -> None:
    """Refuse rankings that are not full."""
    for side in sides:
        n_items = side.shape[1]
        if (np.sort(side, axis=1) != np.arange(n_items)).any():
            raise RankingError(f"a heat kernel compares full rankings: each row a permutation of 0, ..., {n_items - 1}")


def check_n_items(n_items: int, graph: str) -> None:
    """Refuse an unknown graph, and more items than its table can hold."""
    if graph not in get_args(Graph):
        raise ValueError(f"graph={graph!r} is not known; a heat kernel spreads by 'transpositions' or 'adjacent' swaps")
    if n_items > LARGEST_N[graph]:
        raise ExactnessError(
            f"the heat kernel of {graph} swaps is tabulated for at most {LARGEST_N[graph]} items, here are {n_items}; "
            "use another kernel, such as rk.Mallows, for more"
        )


# ---------------------------------------------------------------------- cycle types as numbers

MOST_CODED_ITEMS = 20
BITS = 18


@lru_cache(maxsize=8)
def cycle_types(n_items: int) -> IntArray:
    """Return all cycle types: the partitions of the number of items."""
    return all_partitions(n_items, n_items + 1)


@lru_cache(maxsize=8)
def numbered_types(n_items: int) -> Numbered:
    """Return the cycle types with a number for each; those of few items are short enough to look up in a table."""
    return Numbered.of(cycle_types(n_items), BITS if n_items <= MOST_CODED_ITEMS else 62)


@lru_cache(maxsize=8)
def cycle_numbers(n_items: int) -> IntArray:
    """Return numbers for cycles of each length whose sums tell all cycle types apart, in front 0, behind a mask."""
    numbered = numbered_types(n_items)
    return np.append(numbered.numbers, numbered.mask)


@lru_cache(maxsize=8)
def types_of_codes(n_items: int) -> IntArray:
    """Return the index of the cycle type that has each sum of numbers."""
    codes = numbered_types(n_items).codes
    found = np.zeros(2**BITS, dtype=np.int64)
    found[codes] = np.arange(len(codes))
    return found


def pair_types(X: RankArray, Y: RankArray) -> IntArray:
    """Return the index of the cycle type of the map from left to right positions, for each pair of full rankings."""
    codes = np.empty((len(X), len(Y)), dtype=np.int64)
    _loops.cycles.pair_codes(X, Y, cycle_numbers(X.shape[1]), codes)
    return numbered_types(X.shape[1]).rows_of(codes)


def fill_types(X: RankArray, Y: RankArray, out: IntArray) -> None:
    """Write the code of the cycle type of each pair of full rankings; of many items, its index."""
    check_n_items(X.shape[1], "transpositions")
    if X.shape[1] <= MOST_CODED_ITEMS:
        _loops.cycles.pair_codes(X, Y, cycle_numbers(X.shape[1]), out)
    else:
        out[:] = pair_types(X, Y)


# What the heat kernel of all transpositions is a function of: no distance, but computed and looked up as one.
CYCLE_TYPES = Distance(
    "cycle types",
    "lengths of the cycles that take r to s",
    integer=True,
    metric=False,
    negative_type=False,
    marked_in_paper=False,
    left_invariant=True,
    cycles=cycle_numbers,
    fill=fill_types,
    largest=lambda n: 2**BITS - 1 if n <= MOST_CODED_ITEMS else 2**62,
)


def types_at(codes: NDArray[Any], n_items: int) -> IntArray:
    """Return the indices of cycle types, given as :data:`CYCLE_TYPES` has them."""
    return np.asarray(types_of_codes(n_items)[codes] if n_items <= MOST_CODED_ITEMS else codes)


# ---------------------------------------------------------------------- tables of values


@lru_cache(maxsize=64)
def transposition_heat(n_items: int, beta: float) -> Heat:
    """Return the heat kernel of all transpositions for each cycle type.

    The types are the partitions of ``n_items``, largest parts first: one long cycle has index 0, the identity the last.

    Examples
    --------
    >>> heat = transposition_heat(2, 0.5)
    >>> print(np.round(2 * heat.values - 1, 6))  # -e^-1, e^-1
    [-0.367879  0.367879]
    """
    check_n_items(n_items, "transpositions")
    walk = cycle_type_walk(n_items)
    start = np.zeros(walk.shape[0])
    start[-1] = 1.0
    return heat_of(walk, start, beta, n_items, "transpositions")


def adjacent_heat(n_items: int, beta: float) -> Heat:
    """Return the heat kernel of adjacent transpositions for each map of positions, in lexicographic order.

    Examples
    --------
    Three items form a ring of six rankings, and the heat spreads to both sides alike.

    >>> values = adjacent_heat(3, 0.3).values  # 012 021 102 120 201 210
    >>> bool(values[1] == values[2] > values[3] == values[4] > values[5])
    True
    """
    check_n_items(n_items, "adjacent")
    return word_heat((1,) * n_items, beta, "adjacent")


@lru_cache(maxsize=64)
def word_heat(sizes: tuple[int, ...], beta: float, graph: Graph) -> Heat:
    """Return how likely each word is to be sorted after a time beta of swaps.

    Words are the arrangements of ``sizes[c]`` letters c, in lexicographic order. With the buckets of a ranking as
    letters, it is the sum of the heat kernel over the completions of that ranking.

    Examples
    --------
    A single letter b among a's is a walk on the positions; at first only the last word but one leads to the sorted.

    >>> print(word_heat((3, 1), 0.0, "adjacent").slopes)  # aaab aaba abaa baaa
    [-1.  1.  0.  0.]
    """
    walk = word_walk(sizes, graph)
    start = np.zeros(walk.shape[0])
    start[0] = 1.0
    return heat_of(walk, start, beta, sum(sizes), graph)


def n_words(sizes: tuple[int, ...]) -> int:
    """Return the number of arrangements of ``sizes[c]`` letters c."""
    return math.factorial(sum(sizes)) // math.prod(map(math.factorial, sizes))


def n_swaps(n_items: int, graph: Graph) -> int:
    """Return the number of pairs of positions that a walk swaps: the degree of the graph."""
    return max(n_items - 1, 0) if graph == "adjacent" else n_items * (n_items - 1) // 2


# ---------------------------------------------------------------------- walks


@lru_cache(maxsize=8)
def cycle_type_walk(n_items: int) -> csr_matrix:
    """Return the number of transpositions that lead from each cycle type to each other."""
    from scipy.sparse import csr_matrix

    types, numbered = cycle_types(n_items), numbered_types(n_items)
    rows, columns, ways = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)], [np.empty(0)]
    for a in range(1, n_items):
        for b in range(1, min(a, n_items - a) + 1):
            # Cycles of lengths a and b merge by ab transpositions; one of length a + b splits into them by a + b, or by
            # half as many if they are equal.
            pairs = types[:, a] * (types[:, b] - (a == b)) / (1 + (a == b))
            apart = np.flatnonzero(pairs)
            merged = numbered.merged(apart, a, b)
            rows += [apart, merged]
            columns += [merged, apart]
            ways += [a * b * pairs[apart], types[merged, a + b] * (a + b) / (1 + (a == b))]
    edges = np.concatenate(rows), np.concatenate(columns)
    return csr_matrix((np.concatenate(ways), edges), shape=(len(types), len(types)))


@lru_cache(maxsize=8)
def word_walk(sizes: tuple[int, ...], graph: Graph) -> csr_matrix:
    """Return the number of swaps that lead from each word to each other."""
    from scipy.sparse import csr_matrix

    letters = np.array(sizes, dtype=np.int64)
    targets = _loops.word_walks.swaps(words_of(sizes), letters, graph == "adjacent")
    n_rows, degree = targets.shape
    ends = np.arange(n_rows + 1) * degree
    return csr_matrix((np.ones(targets.size), targets.ravel(), ends), shape=(n_rows, n_rows))


@lru_cache(maxsize=8)
def words_of(sizes: tuple[int, ...]) -> NDArray[np.int16]:
    """Return all arrangements of ``sizes[c]`` letters c, in lexicographic order."""
    words: NDArray[np.int16] = _loops.word_walks.all_words(np.array(sizes, dtype=np.int64), n_words(sizes))
    return words


def heat_of(walk: csr_matrix, start: FloatArray, beta: float, n_items: int, graph: Graph) -> Heat:
    """Return the heat that has spread from ``start`` after a time beta, and its derivative."""
    if not (math.isfinite(beta) and beta >= 0):
        raise ValueError(f"beta={beta} is not a length of time; a heat kernel wants a finite beta of 0 or more")
    degree = n_swaps(n_items, graph)
    diameter = degree if graph == "adjacent" else max(n_items - 1, 0)
    values = spread(walk, start, degree, min(beta, mixing_time(n_items, graph)), least_terms=diameter)
    slopes = walk @ values - degree * values
    values.flags.writeable = slopes.flags.writeable = False
    return Heat(values, slopes)


def spread(walk: csr_matrix, start: FloatArray, degree: int, beta: float, least_terms: int) -> FloatArray:
    """Return exp(beta (walk - degree)) start, from positive terms only."""
    n_pieces = max(1, math.ceil(beta * degree / SWAPS_A_PIECE))
    time = beta / n_pieces
    total = start
    for _ in range(n_pieces):
        term, n_terms, n_negligible = total, 0, 0
        # Even and odd rankings take turns: only two negligible terms in a row end the series.
        while n_negligible < 2:
            n_terms += 1
            term = walk @ term * (time / n_terms)
            total = total + term
            settled = n_terms > max(least_terms, time * degree) and bool((term <= 1e-18 * total).all())
            n_negligible = n_negligible + 1 if settled else 0
        total = total * math.exp(-time * degree)
    return total


def mixing_time(n_items: int, graph: Graph) -> float:
    """Return a time after which all values equal their limit in double precision.

    The walk forgets its start at the rate of a single item: 2 - 2 cos(pi/n) on a line, n if all positions are swapped.
    """
    if n_items < 2:
        return 0.0
    rate = 2 - 2 * math.cos(math.pi / n_items) if graph == "adjacent" else float(n_items)
    return (math.lgamma(n_items + 1) + 45.0) / rate
