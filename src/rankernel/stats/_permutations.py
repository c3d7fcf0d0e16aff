r"""The permutation engine that all tests share: statistics, permutation schemes, exact moments, and p-values.

A test is a :class:`PermutationStatistic`: the statistic of the data, a stream of its values under random permutations,
and its exact moments over all permutations where they are known, from which follow p-values. Most tests have the same
statistic, :class:`PairStatistic`: the sum over pairs of voters of the kernel between their rankings times a kernel
between their values, which are permuted: groups, labels, numbers, times, other rankings.

Random permutations depend on the seed and on the data. With permutations that depended on the seed only, the p-values
of different data sets would be compared with the same permutations, and with few of them the level would be that of
these permutations rather than the nominal one.

**Small p-values.** A Pearson type III distribution with these moments is accurate down to p-values of about 0.01, and
smaller ones can be many times too small where groups have different sizes or most voters agree. There p-values are
estimated by multilevel splitting (Guyader, Hengartner and Matzner-Lober 2011).

**Exact moments.** The statistic :math:`\Gamma = \sum_{i,j} A_{ij} B_{\pi(i) \pi(j)}` of two symmetric matrices of
voters, one of them permuted at random, has moments that are sums over the matrices (Kazi-Aoual, Hitier, Sabatier and
Lebreton 1995; Mielke, Berry and Johnson 1976 for groups). A power of Gamma is a sum over k edges (i, j). A partition P
of the 2k ends says which of them are the same voter; given P, all assignments of voters are equally likely, so the two
matrices separate:

    E Gamma^k = sum over partitions P of 2k ends of S_A(P) S_B(P) / N (N - 1) ... (N - |P| + 1),

where S(P) is the sum of products of k entries over all choices of |P| different voters. Sums over different voters
follow from sums over arbitrary voters by Moebius inversion on the partition lattice. If all rows sum to 0 and the trace
is 0, few sums over arbitrary voters are nonzero: two for the second moment, five for the third.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from math import factorial, prod
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.random_streams import State, uniform
from rankernel._utils import FloatArray, Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import Seed, as_seed, stream_key
from rankernel._utils.resources import check_voters, run_interruptibly, slices
from rankernel.errors import RankingError

if TYPE_CHECKING:
    from rankernel.stats.base import Sample

CHUNK_ENTRIES = 2**22  # entries of an array that has one row for each permutation
VOTER_BYTES = 64  # memory for each voter of a test that shuffles voters one by one
VOTERS_PER_CELL = 16  # of a table of rankings and values, from which random tables are faster than shuffles of voters
MAX_VOTERS = 10**9  # in SciPy's random tables
PAIR_COST = 8  # cost of one term of a sum over pairs of voters, in multiplications of a matrix product
PAIRS_PER_CALL = 2**28  # pairs of voters in one call of a compiled loop, which cannot be interrupted
RELATIVE_TOLERANCE = 1e-13  # of the mean absolute kernel value: statistics that are closer differ by rounding only
SMALL_PVALUE = 0.01  # smaller p-values from moments are compared with splitting (benchmarks/calibration.py)
MIN_SPLITTING_PVALUE = 1e-6  # where splitting stops
N_PARTICLES = 1000  # of splitting
SURVIVORS = 0.25  # the part of the particles that reach the next threshold
MAX_SPLIT_VOTERS = 50_000  # each particle is an arrangement of them
MAX_SPLIT_ENTRIES = 2**25  # entries of the sums of kernel values of all particles
BLOCK_ROWS = 256  # rows of a matrix that are processed at once
MAX_ROWS_FOR_SKEWNESS = 2000  # the third moment takes the cube of the number of rows
# Sums that can be nonzero, by their numbers of vertices and of loops.
SECOND = {(2, 0): 0, (1, 2): 1}  # sum of a_ij^2, of a_ii^2
THIRD = {(3, 0): 0, (2, 0): 1, (2, 1): 2, (2, 2): 3, (1, 3): 4}  # tr A^3, a_ij^3, a_ii a_ij^2, a_ii a_ij a_jj, a_ii^3


def named_generator(seed: Seed, purpose: str, *data: Any) -> np.random.Generator:
    """Return a generator whose stream depends on the seed, the purpose and the data only."""
    checksums = [crc32(np.ascontiguousarray(array).tobytes()) for array in data]
    return np.random.default_rng(int(stream_key(as_seed(seed), " ".join([purpose, *map(str, checksums)]))))


# ---------------------------------------------------------------------- sums over pairs of voters


def off_diagonal_forms(gram: FloatArray, vectors: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{u \ne v} c_u c_v K_{uv}` for each row c of ``vectors``.

    Matrix products over blocks of the lower triangle take half the time of one product with the full matrix, and no
    second matrix of its size. The diagonal is left out, so a large diagonal causes no rounding errors.
    """
    total = np.zeros(len(vectors))
    for rows in slices(len(gram), BLOCK_ROWS):
        block = gram[rows, rows].copy()
        np.fill_diagonal(block, 0.0)
        products = 2 * (vectors[:, : rows.start] @ gram[rows, : rows.start].T) if rows.start else 0.0
        total += np.einsum("pu,pu->p", products + vectors[:, rows] @ block, vectors[:, rows])
    return total


def off_diagonal_sums(gram: FloatArray, counts: FloatArray) -> tuple[FloatArray, float]:
    """Return the sum of each row over the voters of other rows, and the sum of the absolute values of all entries."""
    sums, absolute = np.empty(len(gram)), 0.0
    for rows in slices(len(gram), BLOCK_ROWS):
        block = gram[rows].copy()
        np.fill_diagonal(block[:, rows], 0.0)
        sums[rows] = block @ counts
        absolute += float(counts[rows] @ np.abs(block, out=block) @ counts)
    return sums, absolute


def pair_sums(gram: FloatArray, counts: FloatArray, biased: bool) -> FloatArray:
    """Return for each row of counts the sum of the kernel over ordered pairs of voters.

    Pairs of a voter with itself are included if ``biased``.
    """
    equal_pairs = counts * (counts - (not biased))
    return np.asarray(off_diagonal_forms(gram, counts) + equal_pairs @ np.diagonal(gram))


# ---------------------------------------------------------------------- exact moments


@dataclass(frozen=True, eq=False)
class Moments:
    """The first three cumulants of a distribution: its mean, its variance and its third central moment."""

    mean: float = 0.0
    variance: float = 0.0
    third: float = 0.0  # nan if it is not known

    @classmethod
    def from_sample(cls, values: FloatArray) -> Moments:
        """Return the moments of a sample."""
        deviations = values - values.mean()
        return cls(float(values.mean()), float((deviations**2).mean()), float((deviations**3).mean()))

    @property
    def skewness(self) -> float:
        """The skewness."""
        return float(self.third / self.variance**1.5) if self.variance > 0 else 0.0  # rounding can make it negative

    def with_skewness(self, skewness: float) -> Moments:
        """Return these moments, with a skewness if they have none."""
        if not np.isnan(self.third):
            return self
        return replace(self, third=float(skewness * max(self.variance, 0.0) ** 1.5))

    def scaled(self, factor: float) -> Moments:
        """Return the moments of a multiple."""
        return Moments(self.mean * factor, self.variance * factor**2, self.third * factor**3)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the sum of two independent variables."""
        return Moments(self.mean + other.mean, self.variance + other.variance, self.third + other.third)

    def sf(self, value: float) -> float:
        """Return the probability of at least ``value`` under the Pearson type III distribution with these moments."""
        from scipy.special import gammainc, gammaincc, ndtr

        if not self.variance > 0:
            return 1.0
        z = (value - self.mean) / np.sqrt(self.variance)
        if abs(self.skewness) < 1e-6:
            return float(ndtr(-z))
        shape = 4 / self.skewness**2
        x = max(shape + 2 * z / self.skewness, 0.0)
        return float(gammaincc(shape, x) if self.skewness > 0 else gammainc(shape, x))


@dataclass(frozen=True, eq=False)
class CentredKernel:
    """A doubly centred kernel matrix of voters, stored by the distinct values and the number of voters of each.

    Unbiased: a voter is not paired with itself, the diagonal is 0 and rows sum to 0 without it. Biased: each voter is
    paired with itself, with the diagonal of ``gram``. If the kernel is the product of numbers, ``gram`` has these
    numbers, whose mean over voters is 0, and no matrix is computed.
    """

    gram: FloatArray
    counts: FloatArray
    biased: bool
    row_offsets: FloatArray  # subtracted from rows and from columns
    constant: float  # added to all entries

    @classmethod
    def from_gram(cls, gram: FloatArray, counts: FloatArray, biased: bool) -> CentredKernel:
        """Centre the kernel matrix of values that occur ``counts`` times, or the products of such values."""
        n = counts.sum()
        if gram.ndim == 1:  # a shift does not change the centred kernel
            gram = gram - counts @ gram / n
        sums = gram * (gram @ counts) if gram.ndim == 1 else gram @ counts
        if biased:
            return cls(gram, counts, biased, sums / n, float(counts @ sums / n**2))
        sums = sums - self_products(gram)
        return cls(gram, counts, biased, sums / (n - 2), float(counts @ sums / ((n - 1) * (n - 2))))

    @property
    def is_product(self) -> bool:
        """Whether the kernel is the product of numbers."""
        return self.gram.ndim == 1

    def block(self, rows: slice | Indices, columns: Indices | None = None) -> FloatArray:
        """Return rows of the centred matrix, for pairs of different voters; all columns, or the given ones."""
        values, others = self.gram[rows], slice(None) if columns is None else columns
        values = np.outer(values, self.gram[others]) if self.is_product else values[:, others]
        return np.asarray(values - self.row_offsets[rows, None] - self.row_offsets[others] + self.constant)

    def matrix(self) -> FloatArray:
        """Return the centred matrix."""
        out = np.empty((len(self.counts), len(self.counts)))
        for rows in slices(len(out), BLOCK_ROWS):
            out[rows] = self.block(rows)
        return out

    def times(self, vectors: FloatArray) -> FloatArray:
        """Return the product of the centred matrix and of vectors."""
        product = np.outer(self.gram, self.gram @ vectors) if self.is_product else self.gram @ vectors
        sums = vectors.sum(axis=0)
        return np.asarray(
            product - np.outer(self.row_offsets, sums) + self.constant * sums - self.row_offsets @ vectors
        )

    @property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Matrices F and C of three columns such that the centred matrix of a product kernel is F C'."""
        ones = np.ones(len(self.counts))
        left = np.stack([self.gram, self.constant - self.row_offsets, -ones], axis=1)
        return left, np.stack([self.gram, ones, self.row_offsets], axis=1)

    @property
    def diagonal(self) -> FloatArray:
        """The entries for two voters with the same value."""
        return np.asarray(self_products(self.gram) - 2 * self.row_offsets + self.constant)

    @property
    def mean_absolute(self) -> float:
        """The mean absolute value of the entries for two voters, or an upper bound of it for the product of numbers."""
        weights = self.counts / self.counts.sum()
        if self.is_product:
            return float(
                (weights @ np.abs(self.gram)) ** 2 + 2 * weights @ np.abs(self.row_offsets) + abs(self.constant)
            )
        return float(
            sum(weights[rows] @ np.abs(self.block(rows)) @ weights for rows in slices(len(weights), BLOCK_ROWS))
        )

    def sums_of_powers(self, power: int) -> FloatArray:
        """Return the sum over voters of a power of the entries of each row."""
        if self.is_product:
            left, right = (reduce(row_products, [factor] * power) for factor in self.factors)
            return np.asarray(left @ (self.counts @ right))
        sums = np.empty(len(self.counts))
        for rows in slices(len(sums), BLOCK_ROWS):
            sums[rows] = reduce(np.multiply, [self.block(rows)] * power) @ self.counts
        return sums

    @property
    def cubed_trace(self) -> float:
        """The sum over three voters of the product of the entries of their pairs."""
        c = self.counts
        if self.is_product:
            left, right = self.factors
            return float(np.trace(np.linalg.matrix_power((c[:, None] * right).T @ left, 3)))
        total, weights = 0.0, np.sqrt(c)
        weighted = weights[:, None] * self.matrix() * weights
        for rows in slices(len(c), BLOCK_ROWS):
            square = weighted[rows] @ weighted[:, : rows.stop]  # the lower triangle of a symmetric matrix
            square[:, : rows.start] *= 2
            total += float(np.einsum("uv,uv->", square, weighted[rows, : rows.stop]))
        return total

    @cached_property
    def power_sums(self) -> tuple[float, FloatArray, FloatArray | None]:
        """The trace, and the nonzero sums of degree two and three (None for too many rows).

        The sums are those after subtracting the multiple of the identity that makes the trace 0.
        """
        c, n = self.counts, float(self.counts.sum())
        trace = float(c @ self.diagonal) if self.biased else 0.0
        shift = trace / (n - 1)  # A - shift (I - 1/n) is still centred
        shifted = replace(self, constant=self.constant + shift / n)
        equal = shifted.diagonal  # two voters with the same value
        same = equal - shift if self.biased else np.zeros(len(c))  # a voter with itself
        squares = shifted.sums_of_powers(2)
        second = np.array([c @ (squares - equal**2 + same**2), c @ same**2])
        if len(c) > MAX_ROWS_FOR_SKEWNESS and not self.is_product:
            return trace, second, None
        excess, products = same - equal, shifted.times((c * same)[:, None])[:, 0]
        third = np.array(
            [
                shifted.cubed_trace + c @ (3 * excess * squares + 3 * excess**2 * equal + excess**3),
                c @ (shifted.sums_of_powers(3) - equal**3 + same**3),
                c @ (same * (squares - equal**2 + same**2)),
                c @ (same * products + same**2 * excess),
                c @ same**3,
            ]
        )
        return trace, second, third


def self_products(gram: FloatArray) -> FloatArray:
    """Return the kernel of each value with itself, from a kernel matrix or from numbers whose product is the kernel."""
    return gram**2 if gram.ndim == 1 else np.diagonal(gram)


def row_products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the products of each column of one matrix with each column of the other."""
    return np.einsum("ia,ib->iab", left, right).reshape(len(left), -1)


def permutation_moments(left: CentredKernel, right: CentredKernel, factor: float = 1.0) -> Moments:
    """Return the moments of ``factor`` times the sum of one matrix times the other, one of them permuted at random.

    The third is nan if a matrix has more than ``MAX_ROWS_FOR_SKEWNESS`` rows.
    """
    (left_trace, left_second, left_third), n = left.power_sums, int(left.counts.sum())
    right_trace, right_second, right_third = right.power_sums
    variance, third = expected_power(left_second, right_second, n, 2), float("nan")
    if left_third is not None and right_third is not None:
        third = expected_power(left_third, right_third, n, 3)
    return Moments(left_trace * right_trace / (n - 1), variance, third).scaled(factor)


def expected_power(left: FloatArray, right: FloatArray, n_voters: int, power: int) -> float:
    """Return the mean of a power of the statistic, from the nonzero sums of two matrices of trace 0."""
    return float(
        sum(
            left @ table @ right / prod(range(n_voters - n_different + 1, n_voters + 1))
            for n_different, table in partition_tables(power).items()
            if n_different <= n_voters
        )
    )


@lru_cache(maxsize=2)
def partition_tables(power: int) -> dict[int, FloatArray]:
    """Return for each number of different voters the coefficients of products of sums of the two matrices."""
    tables: dict[int, FloatArray] = {}
    for partition in partitions(2 * power):
        row = distinct_sum(partition, SECOND if power == 2 else THIRD)
        n_different = max(partition) + 1
        tables[n_different] = tables.get(n_different, 0.0) + np.outer(row, row)
    return tables


def distinct_sum(partition: tuple[int, ...], nonzero: dict[tuple[int, int], int]) -> FloatArray:
    """Return a sum over different voters as a combination of the nonzero sums over arbitrary voters."""
    row = np.zeros(len(nonzero))
    for merger in partitions(max(partition) + 1):
        ends = [merger[end] for end in partition]
        n_loops = sum(a == b for a, b in zip(ends[::2], ends[1::2], strict=True))
        index = nonzero.get((len(set(ends)), n_loops))
        if index is not None and min(np.bincount(ends)) > 1:  # otherwise a row sum or the trace factors out, which is 0
            row[index] += prod((-1) ** (int(size) - 1) * factorial(int(size) - 1) for size in np.bincount(merger))
    return row


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all partitions of n elements, as the number of the part of each element."""

    def extend(start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(start) == n:
            yield start
            return
        for part in range(max(start, default=-1) + 2):
            yield from extend((*start, part))

    return extend(())


# ---------------------------------------------------------------------- the engine


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """The distribution of a statistic under the null hypothesis, and the p-values of the observed value."""

    values: FloatArray  # the statistic for random permutations
    pvalue: float  # by permutations
    moments: Moments  # exact over all permutations, or estimates of those that are not known
    n_moment_draws: int  # permutations behind estimated moments; 0 if all moments are exact
    moment_pvalue: float  # by the Pearson type III approximation, and by splitting if it is small


class PermutationStatistic(ABC):
    """A test statistic and its distribution under random permutations of the data.

    Attributes
    ----------
    value : float
        The statistic of the data.
    tolerance : float
        Statistics that differ by less are ties.
    min_moment_draws : int
        Least number of permutations from which moments are estimated if they are not known exactly.
    """

    value: float
    tolerance: float
    min_moment_draws: int = 1000

    @abstractmethod
    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next random permutations."""

    def moments(self) -> Moments | None:
        """Return the exact moments over all permutations; None if unknown, the third nan if only that is unknown."""
        return None

    def min_pvalue(self) -> float:
        """Return a lower bound of the p-value: the probability of the observed arrangement of the data."""
        return 0.0

    def splitting_pvalue(self) -> float:
        """Return an estimate of the p-value that is accurate for small ones; 0 if it is not known."""
        return 0.0

    def standard_error(self) -> float:
        """Return the Monte Carlo standard error of the statistic; 0 if kernel values are exact."""
        return 0.0

    def null_distribution(self, n_permutations: int) -> NullDistribution:
        """Return the distribution under the null hypothesis, and p-values.

        The p-value of B permutations is (1 + #{values >= statistic}) / (1 + B), which is valid for every B.
        """
        moments, n_moment_draws = self.moments(), 0
        if moments is None or np.isnan(moments.third):
            n_moment_draws = max(n_permutations, self.min_moment_draws)
        draws = self.draw(n_moment_draws or n_permutations)
        values = draws[:n_permutations]
        n_exceedances = int(count_exceedances(values, np.array([self.value]), self.tolerance)[0])
        if n_moment_draws:
            estimated = Moments.from_sample(draws)
            moments = estimated if moments is None else moments.with_skewness(estimated.skewness)
        assert moments is not None
        moment_pvalue = max(moments.sf(self.value - self.tolerance), self.min_pvalue())
        if moment_pvalue < SMALL_PVALUE:
            moment_pvalue = max(moment_pvalue, self.splitting_pvalue())
        pvalue = (1 + n_exceedances) / (1 + n_permutations)
        return NullDistribution(values, pvalue, moments, n_moment_draws, min(moment_pvalue, 1.0))


def count_exceedances(null: FloatArray, values: FloatArray, tolerance: float) -> IntArray:
    """Return how many entries of a null distribution are at least as large as each value, ties included."""
    n_below = np.searchsorted(np.sort(null), values - tolerance, side="left")
    return np.asarray(len(null) - n_below, dtype=np.int64)


# ---------------------------------------------------------------------- the statistic of most tests


class Cells(NamedTuple):
    """The stratum, the value and the ranking of voters, and the number of voters of each such cell."""

    strata: IntArray
    values: IntArray
    rows: IntArray  # of the Gram matrix of the rankings
    counts: IntArray

    @classmethod
    def from_rows(cls, strata: IntArray, values: IntArray, rows: IntArray, counts: IntArray) -> Cells:
        """Return the cells of rows of data, each with a number of voters."""
        cells, cell_of_row = np.unique(np.stack((strata, values, rows)), axis=1, return_inverse=True)
        return cls._make([*cells, np.bincount(cell_of_row.ravel(), counts).astype(np.int64)])


class Voters(NamedTuple):
    """The stratum, the value and the row of each voter; the rows are permuted."""

    strata: IntArray
    values: IntArray
    rows: RankArray
    order: IntArray  # voters sorted by stratum, those with its most common value last
    starts: IntArray  # where each stratum begins in ``order``
    is_common: Mask  # whether the value is the most common one of the stratum


class Features(NamedTuple):
    r"""The centred kernel between values v and w as :math:`\sum_f \lambda_f e_{vf} e_{wf} - o_v - o_w + \kappa`."""

    of_values: FloatArray  # e, of shape (n_values, n_features)
    weights: FloatArray  # lambda
    offsets: FloatArray  # y, with o_v the sum of y_f e_vf^2
    constant: float  # kappa


class PairStatistic(PermutationStatistic):
    r"""The sum over pairs of voters of the kernel of their rankings times a kernel of their values, which are permuted.

    The statistic is ``factor`` times :math:`\sum_{i \ne j} K_{ij} \tilde L_{ij}`, or the sum over all i and j if
    ``biased``, with K the kernel between rankings and :math:`\tilde L` the kernel between values (``values``), centred
    over voters. Values are permuted between the voters of each stratum. ``values`` are numbers if the kernel between
    values is their product. ``value_sample`` is given if values are rankings.

    A permutation is a random table of rankings and values with given margins, or a shuffle of voters where such tables
    are large. The sum over pairs follows from sums of features of the values over the voters with each ranking, or is
    computed by a loop over pairs, whichever takes fewer operations.
    """

    def __init__(
        self,
        sample: Sample,
        cells: Cells,
        values: FloatArray,
        seed: int,
        *,
        biased: bool = False,
        factor: float = 1.0,
        value_sample: Sample | None = None,
    ) -> None:
        self.sample, self.value_sample, self.cells = sample, value_sample, cells
        self.biased, self.factor, self.gram = biased, factor, sample.gram
        self.diagonal, self.n_voters = np.diagonal(self.gram).copy(), int(cells.counts.sum())
        n_rows, n_values = len(self.gram), len(values)
        row_counts, sizes = (
            np.bincount(labels, cells.counts, length).astype(np.float64)
            for labels, length in ((cells.rows, n_rows), (cells.values, n_values))
        )
        self.row_counts, self.values = row_counts, CentredKernel.from_gram(values, sizes, biased)
        self.are_products = self.values.is_product
        self.are_labels = not self.are_products and np.count_nonzero(values) == np.count_nonzero(np.diagonal(values))
        self.row_sums, absolute = off_diagonal_sums(self.gram, row_counts)
        others = row_counts - (not biased)
        self.row_sums += others * self.diagonal
        absolute += float(row_counts * others @ np.abs(self.diagonal))
        self.tolerance = RELATIVE_TOLERANCE * factor * absolute * self.values.mean_absolute
        self.n_features = 1 if self.are_products or n_values == 2 else n_values
        self.are_dense = self.n_features > 1 and not self.are_labels
        n_products = self.n_features * n_rows * (n_rows + n_values * self.are_dense)
        n_pairs = self.n_voters**2 if self.are_dense else sizes @ sizes
        self.by_pair = self.n_features > 1 and n_products > PAIR_COST * n_pairs
        n_sums = self.n_voters * (self.n_features if self.are_dense else 1)
        self.by_table = not self.by_pair and n_values * n_rows * VOTERS_PER_CELL < n_sums
        self.rng = named_generator(seed, "permutations of voters", *cells)
        self.generators = self.rng.spawn(int(cells.strata.max()) + 1) if self.by_table else []
        self.state: State = self.rng.integers(2**64, size=4, dtype=np.uint64)  # of compiled loops
        if self.by_table:
            if self.n_voters > MAX_VOTERS:
                raise RankingError(
                    f"there are {self.n_voters:,} voters, and at most {MAX_VOTERS:,} can be permuted; divide all "
                    "counts by the same number: with this many voters the p-value of any difference is close to 0"
                )
            table = np.zeros((1, n_rows, n_values))
            np.add.at(table[0], (cells.rows, cells.values), cells.counts)
            self.value = float(self.of_tables(table)[0])
        else:
            check_voters(self.n_voters, VOTER_BYTES, "a permutation test")
            self.value = float(self.of_voters(self.voters.rows[None].copy())[0])

    # ------------------------------------------------------------------ permutations

    @cached_property
    def voters(self) -> Voters:
        """All voters, sorted by value."""
        order = np.argsort(self.cells.values, kind="stable")
        strata, values, rows = (np.repeat(each[order], self.cells.counts[order]) for each in self.cells[:3])
        n_values = len(self.values.counts)
        codes, inverse = np.unique(self.cells.strata * n_values + self.cells.values, return_inverse=True)
        in_strata, in_values = np.divmod(codes, n_values)
        by_size = np.lexsort((-in_values, np.bincount(inverse.ravel(), self.cells.counts)))
        most_common = np.zeros(strata.max() + 1, dtype=np.int64)
        most_common[in_strata[by_size]] = in_values[by_size]  # the last one of each stratum remains
        is_common = values == most_common[strata]
        starts = np.concatenate([[0], np.cumsum(np.bincount(strata))])
        return Voters(strata, values, rows.astype(np.int32), np.lexsort((is_common, strata)), starts, is_common)

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next permutations."""
        n_entries = len(self.gram) * (len(self.values.counts) if self.by_table else self.n_features)
        size = max(CHUNK_ENTRIES // (self.n_voters if self.by_pair else max(n_entries, self.n_voters)), 1)
        sizes = [part.stop - part.start for part in slices(n_permutations, size)]
        if self.by_table:
            return np.concatenate([self.of_tables(self.random_tables(size)) for size in sizes])
        return np.concatenate([self.of_voters(self.shuffle(size)) for size in sizes])

    def random_tables(self, n_tables: int) -> FloatArray:
        """Return random tables of the numbers of voters by row and value, with the given margins in each stratum."""
        from scipy.stats import random_table

        tables = np.zeros((n_tables, len(self.gram), len(self.values.counts)))
        for stratum, generator in enumerate(self.generators):
            of_stratum = self.cells.strata == stratum
            _, values, rows, counts = (each[of_stratum] for each in self.cells)
            (used_rows, row), (used_values, value) = (np.unique(each, return_inverse=True) for each in (rows, values))
            drawn = np.zeros((len(used_rows), len(used_values)), dtype=np.int64)
            np.add.at(drawn, (row, value), counts)
            if min(drawn.shape) > 1:  # otherwise there is one table only
                drawn = random_table.rvs(drawn.sum(axis=1), drawn.sum(axis=0), size=n_tables, random_state=generator)
            tables[:, used_rows[:, None], used_values] += drawn
        return tables

    def shuffle(self, n_permutations: int) -> RankArray:
        """Return random permutations of the rows of voters within strata."""
        shuffled = np.empty((n_permutations, self.n_voters), dtype=np.int32)
        voters = self.voters
        run_interruptibly(
            shuffle_within, voters.rows, voters.order, voters.starts, voters.is_common, self.state, shuffled
        )
        return shuffled

    # ------------------------------------------------------------------ sums over pairs

    @cached_property
    def features(self) -> Features:
        """The features of values of which sums over voters are computed."""
        gram, offsets, constant = self.values.gram, self.values.row_offsets, self.values.constant
        if self.are_products:  # the offset of a number is its own product, which is left out of the sum of its row
            of_self = np.array([0.0 if self.biased else -1 / (self.n_voters - 2)])
            return Features(gram[:, None], np.ones(1), of_self, constant)
        if len(gram) == 2:  # L_vw = c + (b - c)(e_v + e_w) + (a - 2 b + c) e_v e_w, with e the indicator of one value
            one = int(np.argmin(self.values.counts))
            a, b, c = gram[one, one], gram[0, 1], gram[1 - one, 1 - one]
            base, change = offsets[1 - one], offsets[one] - offsets[1 - one] - (b - c)
            return Features(np.eye(2)[:, [one]], np.array([a - 2 * b + c]), np.array([change]), constant + c - 2 * base)
        if self.are_labels:
            return Features(np.eye(len(gram)), np.diagonal(gram).copy(), offsets, constant)
        weights, vectors = np.linalg.eigh(self.values.matrix())
        return Features(vectors, weights, np.zeros(len(gram)), 0.0)

    def of_tables(self, tables: FloatArray) -> FloatArray:
        """Return the statistic for tables of the numbers of voters by row and value."""
        of_values = self.features.of_values
        if not (self.are_products or self.are_dense):  # features are indicators of values
            sums = tables[..., of_values.any(axis=1)]
            return self.of_sums(sums, sums)
        return self.of_sums(tables @ of_values, tables @ of_values**2)

    def of_voters(self, rows: RankArray) -> FloatArray:
        """Return the statistic for permutations of the rows of voters."""
        if self.by_pair:
            return run_interruptibly(self.of_pairs, rows)
        return self.of_sums(*run_interruptibly(self.sums_by_row, rows, self.features.of_values))

    def sums_by_row(self, rows: RankArray, of_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of features and of their squares over the voters with each ranking."""
        sums = np.zeros((len(rows), len(self.gram), of_values.shape[1]))
        squares = np.zeros_like(sums) if self.are_products or self.are_dense else sums
        used = np.array([[0], [of_values.shape[1]]]).repeat(len(of_values), axis=1)  # the first feature, and how many
        if not self.are_dense or (of_values == np.eye(len(of_values))).all():
            used = np.stack((np.abs(of_values).argmax(axis=1), (of_values != 0).any(axis=1)))
        add_by_row(rows, self.voters.values, of_values, used, squares is not sums, sums, squares)
        return sums, squares

    def of_sums(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the statistic from sums of features, and of their squares, of shape (n, n_rows, n_features)."""
        _, weights, offsets, constant = self.features
        vectors = np.ascontiguousarray(sums.transpose(0, 2, 1)).reshape(-1, len(self.gram))
        forms = off_diagonal_forms(self.gram, vectors).reshape(len(sums), -1)
        of_pairs = sums**2 - (0.0 if self.biased else squares)  # of voters with the same ranking
        total = forms @ weights + of_pairs.reshape(len(sums), -1) @ np.outer(self.diagonal, weights).ravel()
        total -= 2 * squares.reshape(len(sums), -1) @ np.outer(self.row_sums, offsets).ravel()
        return np.asarray(self.factor * (total + constant * float(self.row_counts @ self.row_sums)))

    def of_pairs(self, rows: RankArray) -> FloatArray:
        """Return the statistic for permutations of the rows of voters, by a loop over pairs of voters."""
        values, kernel = self.voters.values, self.values
        matrix, offsets, constant = kernel.gram, kernel.row_offsets, kernel.constant
        first = np.searchsorted(values, values)  # voters are sorted by value, and paired with those of the same label
        if self.are_dense:
            matrix, offsets, constant, first = kernel.matrix(), 0 * offsets, 0.0, 0 * first
        sums = np.empty(len(rows))
        for part in slices(len(rows), max(PAIRS_PER_CALL // len(values) ** 2, 1)):
            sum_over_pairs(self.gram, rows[part], matrix, values, first, sums[part])
        if self.biased:
            sums += self.diagonal[rows] @ np.diagonal(matrix)[values]
        sums += constant * float(self.row_counts @ self.row_sums) - 2 * self.row_sums[rows] @ offsets[values]
        return np.asarray(self.factor * sums)

    # ------------------------------------------------------------------ p-values

    @cached_property
    def rankings(self) -> CentredKernel:
        """The kernel between rankings, centred over voters."""
        return CentredKernel.from_gram(self.gram, self.row_counts, True) if self.biased else self.sample.centred

    def moments(self) -> Moments | None:
        """Return the exact moments over all permutations; None with strata."""
        if self.cells.strata.max() > 0:
            return None
        return permutation_moments(self.rankings, self.values, self.factor)

    def min_pvalue(self) -> float:
        """Return the probability of the observed arrangement, where labels of equal size may exchange names."""
        from scipy.special import gammaln

        strata, values, rows, counts = self.cells

        def log_factorials(*labels: IntArray) -> float:
            groups = np.unique(np.stack((strata, *labels)), axis=1, return_inverse=True)[1]
            return float(gammaln(np.bincount(groups.ravel(), counts) + 1).sum())

        log_pvalue = log_factorials(values) + log_factorials(rows) - log_factorials() - gammaln(counts + 1).sum()
        if self.are_labels:
            order = np.lexsort((rows, strata, values))
            ends = np.cumsum(np.bincount(values, minlength=len(self.values.counts)))[:-1]
            tables = [np.split(each[order], ends) for each in (strata, rows, counts)]
            sizes = Counter(np.bincount(s, c, strata.max() + 1).tobytes() for s, _, c in zip(*tables, strict=True))
            equal = Counter(b"".join(each.tobytes() for each in table) for table in zip(*tables, strict=True))
            n_equal = [gammaln(np.array(list(counter.values())) + 1).sum() for counter in (sizes, equal)]
            log_pvalue += n_equal[0] - n_equal[1]
        return float(np.exp(log_pvalue))

    def splitting_pvalue(self) -> float:
        """Return the p-value by multilevel splitting; 0 if there are too many voters or values.

        Particles are arrangements of voters, which move by exchanging the rankings of two voters of a stratum.
        """
        n_sums = N_PARTICLES * len(self.gram) * self.n_features
        if self.n_voters > MAX_SPLIT_VOTERS or n_sums > MAX_SPLIT_ENTRIES:
            return 0.0
        voters = self.voters
        if self.are_dense:  # with one feature for each value, an exchange changes two sums
            of_values, products = np.eye(self.n_features), self.values.matrix()
            offsets = np.zeros(self.n_features)
        else:
            of_values, weights, offsets, _ = self.features
            products = of_values * weights
        own = (products * of_values).sum(axis=1) * (not self.biased)
        linear, at_rows = np.stack((own, 2 * of_values**2 @ offsets)), np.stack((self.diagonal, self.row_sums))
        rows = self.shuffle(N_PARTICLES)
        statistics = self.of_voters(rows) / self.factor
        by_feature = np.ascontiguousarray(self.sums_by_row(rows, of_values)[0].transpose(0, 2, 1))
        sums = (by_feature.reshape(-1, len(self.gram)) @ self.gram).reshape(by_feature.shape)
        movers = np.flatnonzero(~voters.is_common)  # of two random voters often both have the same value
        n_steps = min(max(len(movers), 50), 100)

        def move(threshold: float) -> None:
            labels = voters.strata, voters.values, movers, voters.order, voters.starts
            arrays = self.gram, of_values, products, linear, at_rows, *labels
            run_interruptibly(swap_rows, *arrays, n_steps, threshold, rows, sums, statistics, self.state)

        target = (self.value - self.tolerance) / self.factor
        return multilevel_splitting(statistics, (rows, sums), target, move, self.rng)

    def standard_error(self) -> float:
        """Return the Monte Carlo standard error of the statistic, from both kernels."""
        from scipy.sparse import coo_array

        _, values, rows, counts = self.cells
        table = coo_array((self.factor * counts, (rows, values)), (len(self.gram), len(self.values.counts))).tocsr()
        error = 0.0
        for sample, kernel, by_row in ((self.sample, self.values, table), (self.value_sample, self.rankings, table.T)):
            if sample is not None and sample.is_estimated:  # either kernel may be the centred one
                if kernel.is_product:
                    left, right = (by_row @ factor for factor in kernel.factors)
                else:
                    left, right = by_row @ kernel.matrix(), by_row.toarray()
                own = by_row @ (0.0 * kernel.counts if self.biased else kernel.diagonal)
                error = float(np.hypot(error, sample.standard_error(left, right / self.factor, own)))
        return error


# ---------------------------------------------------------------------- multilevel splitting


def multilevel_splitting(
    statistics: FloatArray,
    particles: tuple[Any, ...],
    target: float,
    move: Callable[[float], None],
    rng: np.random.Generator,
) -> float:
    """Return the probability that the statistic of a random arrangement is at least ``target``.

    Particles are random arrangements, in arrays whose first axis they are. Those that reach a threshold survive, the
    others become copies of survivors, and ``move`` changes all of them at random so that they stay above the threshold.
    The probability is the product of the parts that survive.
    """
    pvalue = 1.0
    while pvalue > MIN_SPLITTING_PVALUE:
        ordered = np.sort(statistics)
        threshold = ordered[int((1 - SURVIVORS) * len(ordered))]
        if threshold <= ordered[0]:  # ties: the next larger value
            larger = ordered[ordered > ordered[0]]
            if not len(larger):
                return pvalue
            threshold = larger[0]
        threshold = min(threshold, target)
        survivors = np.flatnonzero(statistics >= threshold)
        pvalue *= len(survivors) / len(statistics)
        if threshold >= target:
            return pvalue
        others = np.flatnonzero(statistics < threshold)
        copied = rng.choice(survivors, len(others))
        for array in (statistics, *particles):
            array[others] = array[copied]
        move(float(threshold))
    return MIN_SPLITTING_PVALUE


# ---------------------------------------------------------------------- compiled loops


@compiled_strictly
def shuffle_within(
    rows: RankArray, order: IntArray, starts: IntArray, is_common: Mask, state: State, shuffled: RankArray
) -> None:
    """Write random permutations of the rows of voters within strata; ``rows`` and ``state`` are changed.

    Fisher-Yates shuffles that stop at the voters with the most common value of the stratum, whose order is irrelevant.
    """
    for p in range(len(shuffled)):
        for s in range(len(starts) - 1):
            for i in range(starts[s], starts[s + 1]):
                if is_common[order[i]]:
                    break
                j = i + np.int64(uniform(state) * (starts[s + 1] - i))
                rows[order[i]], rows[order[j]] = rows[order[j]], rows[order[i]]
        for voter in range(len(rows)):
            shuffled[p, voter] = rows[voter]


@compiled_strictly
def add_by_row(
    rows: RankArray,
    values: IntArray,
    features: FloatArray,
    used: IntArray,
    with_squares: bool,
    sums: FloatArray,
    squares: FloatArray,
) -> None:
    """Add the features of the values of voters by row, for each permutation of the rows, and perhaps their squares.

    ``used`` has the first feature of each value that is not 0, and how many consecutive ones are used.
    """
    for p in range(len(rows)):
        for voter in range(len(values)):
            value, row = values[voter], rows[p, voter]
            for f in range(used[0, value], used[0, value] + used[1, value]):
                sums[p, row, f] += features[value, f]
                if with_squares:
                    squares[p, row, f] += features[value, f] ** 2


@compiled
def sum_over_pairs(
    gram: FloatArray, rows: RankArray, kernel: FloatArray, values: IntArray, first: IntArray, sums: FloatArray
) -> None:
    """Sum the products of both kernels over ordered pairs of voters, for each permutation of the rows of voters.

    Voter i is paired with the voters from ``first[i]`` to i - 1.
    """
    for p in range(len(rows)):
        total, permuted = 0.0, rows[p]
        for i in range(len(values)):
            left, right, part = gram[permuted[i]], kernel[values[i]], 0.0
            others, other_values = permuted[first[i] : i], values[first[i] : i]
            for j in range(len(others)):
                part += left[others[j]] * right[other_values[j]]
            total += 2 * part
        sums[p] = total


@compiled_strictly
def swap_rows(
    gram: FloatArray,
    features: FloatArray,
    products: FloatArray,
    linear: FloatArray,
    at_rows: FloatArray,
    strata: IntArray,
    values: IntArray,
    movers: IntArray,
    order: IntArray,
    starts: IntArray,
    n_steps: int,
    threshold: float,
    rows: RankArray,
    sums: FloatArray,
    statistics: FloatArray,
    state: State,
) -> None:
    """Exchange the rows of two random voters of a stratum, many times, if the statistic stays above a threshold.

    ``sums`` are the sums of features over voters times the kernel with each row, ``products`` the features times their
    weights. ``linear`` has the coefficients of the terms ``at_rows`` for each value.
    """
    for p in range(len(rows)):
        for _ in range(n_steps):
            i = movers[np.int64(uniform(state) * len(movers))]
            low, high = starts[strata[i]], starts[strata[i] + 1]
            j = order[low + np.int64(uniform(state) * (high - low))]
            a, b, u, v = values[i], values[j], rows[p, i], rows[p, j]
            if a == b or u == v:
                continue
            change = 0.0
            for k in range(len(linear)):
                change -= (linear[k, a] - linear[k, b]) * (at_rows[k, v] - at_rows[k, u])
            distance = gram[u, u] + gram[v, v] - 2 * gram[u, v]
            for f in range(features.shape[1]):
                product = products[a, f] - products[b, f]
                change += product * (2 * (sums[p, f, v] - sums[p, f, u]) + (features[a, f] - features[b, f]) * distance)
            if statistics[p] + change < threshold:
                continue
            rows[p, i], rows[p, j] = v, u
            statistics[p] += change
            for f in range(features.shape[1]):
                feature = features[a, f] - features[b, f]
                if feature != 0.0:
                    for row in range(len(gram)):
                        sums[p, f, row] += feature * (gram[v, row] - gram[u, row])
