r"""Diffusion kernels: the heat kernel of a graph whose nodes are the full rankings.

.. math:: k(x, y) = \left(e^{-\beta L}\right)_{xy}, \qquad L = \mathrm{degree} \cdot I - A,

where A joins rankings that differ by a swap of two positions: any two (``"transpositions"``, degree n(n-1)/2) or two
adjacent ones (``"adjacent"``, degree n - 1). Each row of k sums to 1 over all rankings.

The value depends only on the map from the positions of x to those of y, and for all transpositions only on the cycle
type of this map: the random walk on n! rankings reduces to one on the partitions of n. The exponential is summed as the
power series of :math:`e^{\beta A}`. All terms are positive, so that even the smallest values are relatively accurate.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import check_choice
from rankernel._utils.combinatorics import PartitionIndex, all_partitions
from rankernel.distances import Distance, fill_cycles
from rankernel.errors import RankingError
from rankernel.kernels.base import AnyFunction, Facts, Kernel, check_max_items, check_rate, number

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Graph = Literal["transpositions", "adjacent"]
MAX_ITEMS: dict[str, int] = {"transpositions": 36, "adjacent": 9}  # 17,977 cycle types and 362,880 rankings
MAX_SWAPS = 256.0  # expected swaps in one power series, far from the overflow of exp


@dataclass(frozen=True)
class Diffusion(Kernel):
    r"""Diffusion kernel :math:`\exp(-\beta L)` on a graph of rankings, L its Laplacian (Kondor and Barbosa 2010).

    In the graph ``"transpositions"`` two rankings are neighbours if they differ by a swap of any two items (for up to
    36 items). In the graph ``"adjacent"`` the two swapped items must have adjacent positions (for up to 9 items). The
    value is the probability that a random walk that swaps along each edge at rate 1 goes from one ranking to the other
    in time beta.

    Parameters
    ----------
    beta : float
        The time of the random walk: the larger beta, the wider the kernel.
    graph : {"transpositions", "adjacent"}
        The swaps that are edges of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> Diffusion(beta=0.5).matrix(np.array([[0, 1]]), np.array([[0, 1], [1, 0]]))
    array([[0.68393972, 0.31606028]])
    """

    beta: float = 0.1
    graph: Graph = "transpositions"

    def __post_init__(self) -> None:
        check_rate("beta", self.beta)
        number("beta", self.beta)  # not "median": there is no distance
        check_choice("graph", self.graph, ("transpositions", "adjacent"))

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the heat kernel between the rows of two arrays of full rankings."""
        heat, classes = self._heat_and_classes(X, Y)
        return heat.values[classes]

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        r"""Return the derivative in beta, :math:`-L e^{-\beta L}`."""
        heat, classes = self._heat_and_classes(X, Y)
        return {"beta": heat.derivatives[classes]}

    def _heat_and_classes(self, X: NDArray[Any], Y: NDArray[Any]) -> tuple[Heat, IntArray]:
        """Return the values for each class of pairs of rankings, and the class of each pair."""
        X, Y, n_items = np.asarray(X, dtype=np.int32), np.asarray(Y, dtype=np.int32), X.shape[1]
        for side in (X, Y):
            if (np.sort(side, axis=1) != np.arange(n_items)).any():
                raise RankingError(f"full rankings are expected: each row a permutation of 0, ..., {n_items - 1}")
        check_max_items(self, n_items)
        if self.graph == "adjacent":
            return word_heat((1,) * n_items, float(self.beta), "adjacent"), pair_words(X, Y)
        return transposition_heat(n_items, float(self.beta)), pair_types(X, Y)

    def facts(self, n_items: int) -> Facts:
        """Return the kernel of all transpositions as a function of the cycle type.

        Antithetic draws have a lower variance if the edges are adjacent swaps, as for Kendall, but not if they are all
        swaps, as for Cayley.
        """
        if self.graph == "adjacent":
            return Facts(is_psd=True, max_items=MAX_ITEMS[self.graph], coupling="antithetic")
        beta = float(self.beta)
        function = AnyFunction(
            lambda codes: transposition_heat(n_items, beta).values[types_of(codes, n_items)],
            lambda codes: {"beta": transposition_heat(n_items, beta).derivatives[types_of(codes, n_items)]},
        )
        return Facts(is_psd=True, max_items=MAX_ITEMS[self.graph], distance=CYCLE_TYPE, function=function)


# ---------------------------------------------------------------------- cycle types as integers

MAX_CODED_ITEMS = 20
CODE_BITS = 18  # codes of up to 20 items are short enough for a table of all codes


@lru_cache(maxsize=8)
def type_index(n_items: int) -> PartitionIndex:
    """Return the index of the cycle types: the partitions of the number of items."""
    types = all_partitions(n_items, n_items + 1)
    return PartitionIndex.of(types, CODE_BITS if n_items <= MAX_CODED_ITEMS else 62)


@lru_cache(maxsize=8)
def type_weights(n_items: int) -> IntArray:
    """Return the weights of cycles whose sums are the codes: see :attr:`Distance.cycle_weights`."""
    index = type_index(n_items)
    return np.append(index.numbers, index.mask)


@lru_cache(maxsize=8)
def types_by_code(n_items: int) -> IntArray:
    """Return a table of the cycle type of each code."""
    codes = type_index(n_items).codes
    result = np.zeros(2**CODE_BITS, dtype=np.int64)
    result[codes] = np.arange(len(codes))
    return result


def pair_types(X: RankArray, Y: RankArray) -> IntArray:
    """Return the cycle type of the map from left to right positions, as an index, for each pair of full rankings."""
    codes = np.empty((len(X), len(Y)), dtype=np.int64)
    fill_cycles(X, Y, type_weights(X.shape[1]), codes)
    return type_index(X.shape[1]).rows_of(codes)


def fill_types(X: RankArray, Y: RankArray, out: IntArray) -> None:
    """Write the code of the cycle type of each pair of full rankings; for many items the index itself."""
    if X.shape[1] <= MAX_CODED_ITEMS:
        fill_cycles(X, Y, type_weights(X.shape[1]), out)
    else:
        out[:] = pair_types(X, Y)


def types_of(codes: NDArray[Any], n_items: int) -> IntArray:
    """Return the indices of cycle types, given as values of :data:`CYCLE_TYPE`."""
    return np.asarray(types_by_code(n_items)[codes] if n_items <= MAX_CODED_ITEMS else codes)


# Not a distance, but an integer for each pair of rankings that determines the kernel.
CYCLE_TYPE = Distance(
    "cycle type",
    integer=True,
    cycle_weights=type_weights,
    fill=fill_types,
    maximum=lambda n: 2**CODE_BITS - 1 if n <= MAX_CODED_ITEMS else 2**62,
)


# ---------------------------------------------------------------------- tables of values


@dataclass(frozen=True)
class Heat:
    """Values of a heat kernel and their derivatives in beta, one for each class of pairs of rankings."""

    values: FloatArray
    derivatives: FloatArray


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
    adjacency = type_adjacency(n_items)
    start = np.zeros(adjacency.shape[0])
    start[-1] = 1.0
    return heat_from(adjacency, start, beta, n_items, "transpositions")


@lru_cache(maxsize=64)
def word_heat(sizes: tuple[int, ...], beta: float, graph: Graph) -> Heat:
    """Return the probability that swaps in time beta sort a word, for each word.

    Words are the arrangements of ``sizes[c]`` letters c, in lexicographic order. With the buckets of a ranking as
    letters, it is the sum of the heat kernel over the completions of that ranking.

    Examples
    --------
    A single letter b among a's moves along the positions; at first only the second word leads to the sorted one.

    >>> print(word_heat((3, 1), 0.0, "adjacent").derivatives)  # aaab aaba abaa baaa
    [-1.  1.  0.  0.]
    """
    adjacency = word_adjacency(sizes, graph)
    start = np.zeros(adjacency.shape[0])
    start[0] = 1.0
    return heat_from(adjacency, start, beta, sum(sizes), graph)


def n_words(sizes: tuple[int, ...]) -> int:
    """Return the number of arrangements of ``sizes[c]`` letters c."""
    return math.factorial(sum(sizes)) // math.prod(map(math.factorial, sizes))


def n_swaps(n_items: int, graph: Graph) -> int:
    """Return the number of pairs of positions that may be swapped: the degree of the graph."""
    return max(n_items - 1, 0) if graph == "adjacent" else n_items * (n_items - 1) // 2


@lru_cache(maxsize=8)
def type_adjacency(n_items: int) -> csr_matrix:
    """Return the number of transpositions that lead from each cycle type to each other."""
    from scipy.sparse import csr_matrix

    types, index = all_partitions(n_items, n_items + 1), type_index(n_items)
    rows, columns, ways = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)], [np.empty(0)]
    for a in range(1, n_items):
        for b in range(1, min(a, n_items - a) + 1):
            # Cycles of lengths a and b merge by ab transpositions; one of length a + b splits into them by a + b, or by
            # half as many if they are equal.
            pairs = types[:, a] * (types[:, b] - (a == b)) / (1 + (a == b))
            split = np.flatnonzero(pairs)
            merged = index.merged(split, a, b)
            rows += [split, merged]
            columns += [merged, split]
            ways += [a * b * pairs[split], types[merged, a + b] * (a + b) / (1 + (a == b))]
    edges = np.concatenate(rows), np.concatenate(columns)
    return csr_matrix((np.concatenate(ways), edges), shape=(len(types), len(types)))


@lru_cache(maxsize=8)
def word_adjacency(sizes: tuple[int, ...], graph: Graph) -> csr_matrix:
    """Return the number of swaps that lead from each word to each other, found by random codes of the words."""
    from scipy.sparse import csr_matrix

    letters, n_items = all_words(sizes).T, sum(sizes)
    salt = np.random.default_rng(0).integers(2**64, size=(n_items, len(sizes)), dtype=np.uint64)
    codes = np.sum([salt[p, letters[p]] for p in range(n_items)], axis=0)
    order, targets = np.argsort(codes), []
    for p, q in itertools.combinations(range(n_items), 2):
        if q == p + 1 or graph == "transpositions":
            swapped = codes - salt[p, letters[p]] - salt[q, letters[q]] + salt[p, letters[q]] + salt[q, letters[p]]
            targets.append(order[np.searchsorted(codes, swapped, sorter=order)])
    columns = np.array(targets, dtype=np.int64).reshape(len(targets), len(codes)).T.ravel()
    ends = np.arange(len(codes) + 1) * len(targets)
    return csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(codes), len(codes)))


@lru_cache(maxsize=8)
def all_words(sizes: tuple[int, ...]) -> NDArray[np.int16]:
    """Return all arrangements of ``sizes[c]`` letters c, in lexicographic order."""
    words, unused = np.empty((1, 0), dtype=np.int16), np.array([sizes])
    for _ in range(sum(sizes)):
        row, letter = np.nonzero(unused)
        words, unused = np.column_stack([words[row], letter.astype(np.int16)]), unused[row]
        unused[np.arange(len(row)), letter] -= 1
    return words


def pair_words(X: RankArray, Y: RankArray) -> IntArray:
    """Return, for each pair of full rankings, the index of the word of the right positions, read in left order."""
    right = Y.T.astype(np.int16)
    letters = [right[items] for items in np.argsort(X, axis=1).T]
    index = np.zeros((len(X), len(Y)), dtype=np.int64)
    for p, letter in enumerate(letters):
        n_smaller = np.zeros(index.shape, dtype=np.int16)
        for later in letters[p + 1 :]:
            n_smaller += later < letter
        index += math.factorial(len(letters) - 1 - p) * n_smaller.astype(np.int64)
    return index


def heat_from(adjacency: csr_matrix, start: FloatArray, beta: float, n_items: int, graph: Graph) -> Heat:
    """Return ``exp(beta (A - degree)) start`` and its derivative in beta."""
    degree = n_swaps(n_items, graph)
    diameter = degree if graph == "adjacent" else max(n_items - 1, 0)
    values = matrix_exponential(adjacency, start, degree, min(beta, mixing_time(n_items, graph)), diameter)
    derivatives = adjacency @ values - degree * values
    values.flags.writeable = derivatives.flags.writeable = False
    return Heat(values, derivatives)


@np.errstate(under="ignore")
def matrix_exponential(
    adjacency: csr_matrix, start: FloatArray, degree: int, beta: float, min_terms: int
) -> FloatArray:
    """Return ``exp(beta (A - degree)) start`` by power series with positive terms."""
    n_steps = max(1, math.ceil(beta * degree / MAX_SWAPS))
    time = beta / n_steps
    total = start
    for _ in range(n_steps):
        term, n_terms, n_negligible = total, 0, 0
        # Even and odd rankings alternate, so that only two negligible terms in a row end the series.
        while n_negligible < 2:
            n_terms += 1
            term = adjacency @ term * (time / n_terms)
            total = total + term
            negligible = n_terms > max(min_terms, time * degree) and bool((term <= 1e-18 * total).all())
            n_negligible = n_negligible + 1 if negligible else 0
        total = total * math.exp(-time * degree)
    return total


def mixing_time(n_items: int, graph: Graph) -> float:
    """Return a time after which all values equal their limit in double precision.

    The spectral gap is that of a single item: 2 - 2 cos(pi/n) for adjacent swaps, n for all.
    """
    if n_items < 2:
        return 0.0
    gap = 2 - 2 * math.cos(math.pi / n_items) if graph == "adjacent" else float(n_items)
    return (math.lgamma(n_items + 1) + 45.0) / gap
