r"""The permutation engine that all tests share: the statistic, permutation schemes, exact moments, and p-values.

A test is a :class:`PermutationStatistic`: the statistic of the data as a function of sums over the Gram matrix, a
stream of its values under random permutations, and its exact moments over all permutations where they are known.
:func:`sample_null_distribution` turns it into p-values.

Random permutations depend on the seed and on the data. With permutations that depended on the seed only, the p-values
of different data sets would be compared with the same permutations, and with few of them the level would be that of
these permutations rather than the nominal one.

The statistic :math:`\Gamma = \sum_{i,j} A_{ij} B_{\pi(i) \pi(j)}` of two symmetric matrices of voters, one of them
permuted at random, has moments that are sums over the matrices (Kazi-Aoual, Hitier, Sabatier and Lebreton 1995; Mielke,
Berry and Johnson 1976 for groups). A power of Gamma is a sum over k edges (i, j). A partition P of the 2k ends says
which of them are the same voter; given P, all assignments of voters are equally likely, so the two matrices separate:

    E Gamma^k = sum over partitions P of 2k ends of S_A(P) S_B(P) / N (N - 1) ... (N - |P| + 1),

where S(P) is the sum of products of k entries over all choices of |P| different voters. Sums over different voters
follow from sums over arbitrary voters by Moebius inversion on the partition lattice. If all rows sum to 0 and the trace
is 0, few sums over arbitrary voters are nonzero: two for the second moment, five for the third.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import factorial, prod
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.random_streams import State, uniform
from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.checks import Seed, as_seed, stream_key
from rankernel._utils.resources import run_interruptibly
from rankernel.errors import RankingError
from rankernel.gram.evaluator import slices

if TYPE_CHECKING:
    from rankernel.stats.base import Effect

BLOCK_ROWS = 256  # rows of a matrix that are processed at once
CHUNK_ENTRIES = 2**22  # entries of an array that has one row for each permutation
MAX_ROWS_FOR_SKEWNESS = 2000  # the third moment takes the cube of the number of rows
VOTER_BYTES = 64  # memory for each voter of a test that shuffles voters one by one
PAIR_COST = 8  # cost of one term of a sum over pairs of voters, in multiplications of a matrix product
RELATIVE_TOLERANCE = 1e-13  # of the mean absolute kernel value: statistics that are closer differ by rounding only
MAX_HYPERGEOMETRIC = 10**9  # voters in NumPy's multivariate hypergeometric sampler
VOTERS_PER_ROW = 32  # from which hypergeometric sampling is quicker than a shuffle of voters
SMALL_PVALUE = 0.01  # the Pearson type III approximation is compared with another estimate below
MIN_SPLITTING_PVALUE = 1e-6  # where splitting stops
N_PARTICLES = 1000  # of splitting
SURVIVORS = 0.25  # the part of the particles that reach the next threshold
# Sums that can be nonzero, by their numbers of vertices and of loops.
SECOND = {(2, 0): 0, (1, 2): 1}  # sum of a_ij^2, of a_ii^2
THIRD = {(3, 0): 0, (2, 0): 1, (2, 1): 2, (2, 2): 3, (1, 3): 4}  # tr A^3, a_ij^3, a_ii a_ij^2, a_ii a_ij a_jj, a_ii^3


def named_generator(seed: Seed, purpose: str, *data: Any) -> np.random.Generator:
    """Return a generator whose stream depends on the seed, the purpose and the data only."""
    checksums = [crc32(np.ascontiguousarray(array).tobytes()) for array in data]
    return np.random.default_rng(int(stream_key(as_seed(seed), " ".join([purpose, *map(str, checksums)]))))


# ---------------------------------------------------------------------- the engine


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
        """Return the exact moments over all permutations; None if unknown, skewness nan if only that is unknown."""
        return None

    def min_pvalue(self) -> float:
        """Return a lower bound of the p-value: the probability of the observed arrangement of the data."""
        return 0.0

    def splitting_pvalue(self) -> float:
        """Return an estimate of the p-value that is accurate for small ones; 0 if it is not known."""
        return 0.0

    def effect(self) -> Effect | None:
        """Return the effect size; None if it is not defined."""
        return None

    def standard_errors(self) -> tuple[float, float]:
        """Return the Monte Carlo standard errors of statistic and effect; 0 if kernel values are exact."""
        return 0.0, 0.0


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """The distribution of a statistic under the null hypothesis, and the p-values of the observed value."""

    values: FloatArray  # the statistic for random permutations
    pvalue: float  # by permutations
    moments: Moments  # exact over all permutations, or estimates of those that are not known
    n_moment_draws: int  # permutations behind estimated moments; 0 if all moments are exact
    moment_pvalue: float  # by the Pearson type III approximation, and by splitting if it is small


def sample_null_distribution(statistic: PermutationStatistic, n_permutations: int) -> NullDistribution:
    """Return the null distribution of a statistic.

    The p-value of B permutations is (1 + #{values >= statistic}) / (1 + B), which is valid for every B.
    """
    moments, values = statistic.moments(), statistic.draw(n_permutations)
    pvalue = (1 + int(count_exceedances(values, np.array([statistic.value]), statistic.tolerance)[0])) / (
        1 + len(values)
    )
    n_moment_draws = 0
    if moments is None or np.isnan(moments.skewness):
        missing = statistic.min_moment_draws - len(values)
        draws = np.concatenate([values, statistic.draw(missing)]) if missing > 0 else values
        estimated = Moments.from_sample(draws)
        moments = estimated if moments is None else Moments(moments.mean, moments.variance, estimated.skewness)
        n_moment_draws = len(draws)
    moment_pvalue = max(moments.sf(statistic.value - statistic.tolerance), statistic.min_pvalue())
    if moment_pvalue < SMALL_PVALUE:
        moment_pvalue = max(moment_pvalue, statistic.splitting_pvalue())
    return NullDistribution(values, pvalue, moments, n_moment_draws, min(moment_pvalue, 1.0))


def count_exceedances(null: FloatArray, values: FloatArray, tolerance: float) -> IntArray:
    """Return how many entries of a null distribution are at least as large as each value, ties included."""
    n_below = np.searchsorted(np.sort(null), values - tolerance, side="left")
    return np.asarray(len(null) - n_below, dtype=np.int64)


def arrangement_probability(strata: IntArray, groups: IntArray, rows: IntArray, counts: IntArray) -> float:
    """Return the probability that permutations within strata give the observed arrangement of voters.

    Cell i has ``counts[i]`` voters of stratum ``strata[i]``, group ``groups[i]`` and ranking ``rows[i]``.

    Examples
    --------
    Two voters of each group, all different: one of six divisions.

    >>> one = np.ones(4, dtype=np.int64)
    >>> round(arrangement_probability(0 * one, np.array([0, 0, 1, 1]), np.arange(4), one), 6)
    0.166667
    """
    from scipy.special import gammaln

    def log_factorials(*labels: IntArray) -> float:
        cells = np.unique(np.stack((strata, *labels)), axis=1, return_inverse=True)[1]
        return float(gammaln(np.bincount(cells.ravel(), counts) + 1).sum())

    by_cell = float(gammaln(counts + 1).sum())
    return float(np.exp(log_factorials(groups) + log_factorials(rows) - by_cell - log_factorials()))


# ---------------------------------------------------------------------- permutation schemes


class RandomDivisions:
    """A stream of random divisions of voters into two samples, as the number of voters of each row in the first.

    If voters are permuted, these numbers are multivariate hypergeometric. ``table`` has the number of voters by
    stratum, sample and row; the first sample keeps its size in each stratum. Strata with few voters in each row are
    divided by a shuffle of voters, which is faster there.
    """

    def __init__(self, table: IntArray, seed: int) -> None:
        check_exchangeable(table)
        self.n_rows = table.shape[2]
        self.sizes: list[int] = table[:, 0].sum(axis=1).tolist()
        self.rng = named_generator(seed, "divisions of voters", table)
        self.state = random_state(self.rng)
        self.strata: list[tuple[Indices, IntArray | None]] = []  # rows and their counts, or the row of each voter
        for counts in table.sum(axis=1):
            rows, n_voters = np.flatnonzero(counts), int(counts.sum())
            if n_voters < VOTERS_PER_ROW * len(rows):
                self.strata.append((np.repeat(rows, counts[rows]), None))
                continue
            if n_voters >= MAX_HYPERGEOMETRIC:
                raise RankingError(
                    f"there are {n_voters:,} voters, and at most {MAX_HYPERGEOMETRIC:,} can be permuted; divide all "
                    "counts by the same number: with this many voters the p-value of any difference is close to 0"
                )
            self.strata.append((rows, counts[rows]))

    def draw(self, n_divisions: int) -> Iterator[FloatArray]:
        """Yield the next divisions in chunks, each an array of shape (n, n_rows)."""
        for part in slices(n_divisions, max(CHUNK_ENTRIES // self.n_rows, 1)):
            first = np.zeros((part.stop - part.start, self.n_rows))
            for size, (rows, counts) in zip(self.sizes, self.strata, strict=True):
                if counts is None:
                    choose_voters(rows, size, self.state, first)
                else:
                    drawn = self.rng.multivariate_hypergeometric(counts, size, size=len(first), method="marginals")
                    first[:, rows] += drawn.astype(np.float64)
            yield first


class Shuffles:
    """A stream of random permutations, within strata, of one value for each voter; ``data`` varies its seed."""

    def __init__(self, values: IntArray, strata: IntArray, seed: int, *data: Any) -> None:
        self.values, self.strata = values.astype(np.int32), sort_by_label(strata)
        self.state = random_state(named_generator(seed, "shuffles of voters", values, strata, *data))

    def draw(self, n_permutations: int, n_entries: int = 1) -> Iterator[RankArray]:
        """Yield the next permutations in chunks, each of shape (n, n_voters), valid until the next one.

        ``n_entries`` is the number of array entries that the caller needs for each permutation.
        """
        size = max(CHUNK_ENTRIES // max(n_entries, len(self.values)), 1)
        buffer = np.empty((min(size, n_permutations), len(self.values)), dtype=np.int32)
        for part in slices(n_permutations, size):
            shuffled = buffer[: part.stop - part.start]
            run_interruptibly(shuffle_within, self.values, *self.strata, self.state, shuffled)
            yield shuffled


def random_state(rng: np.random.Generator) -> State:
    """Return a random state for compiled loops."""
    return rng.integers(2**64, size=4, dtype=np.uint64)


def sort_by_label(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return the indices of labels 0, 1, ... sorted by label, and where each label begins."""
    return np.argsort(labels, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(labels))])


def is_exchangeable(table: IntArray) -> bool:
    """Return whether any stratum has voters of two groups; ``table`` is by stratum, group and row."""
    return bool(((table.sum(axis=2) > 0).sum(axis=1) > 1).any())


def check_exchangeable(table: IntArray) -> None:
    """Raise an error if no stratum has voters of two groups."""
    if not is_exchangeable(table):
        raise RankingError("no stratum has voters of two groups, so there is nothing to permute; use coarser strata")


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


def pair_sums(gram: FloatArray, counts: FloatArray, biased: bool) -> FloatArray:
    """Return for each row of counts the sum of the kernel over ordered pairs of voters.

    Pairs of a voter with itself are included if ``biased``.
    """
    equal_pairs = counts * (counts - (not biased))
    return np.asarray(off_diagonal_forms(gram, counts) + equal_pairs @ np.diagonal(gram))


# ---------------------------------------------------------------------- compiled loops


@compiled_strictly
def choose_voters(rows: IntArray, size: int, state: State, counts: FloatArray) -> None:
    """Choose ``size`` voters at random for each row of ``counts``, and count the rows of the chosen voters.

    The first steps of a Fisher-Yates shuffle, which starts from the order that the last shuffle left: the choice is
    uniform from every order. ``rows`` and ``state`` are changed.
    """
    n_voters = len(rows)
    for p in range(len(counts)):
        for i in range(size):
            j = i + np.int64(uniform(state) * (n_voters - i))
            rows[i], rows[j] = rows[j], rows[i]
            counts[p, rows[i]] += 1.0


@compiled_strictly
def shuffle_within(values: RankArray, order: IntArray, starts: IntArray, state: State, shuffled: RankArray) -> None:
    """Write random permutations of ``values`` within strata into the rows of ``shuffled``.

    Stratum s has the voters order[starts[s]:starts[s + 1]]; ``values`` and ``state`` are changed.
    """
    for p in range(len(shuffled)):
        for s in range(len(starts) - 1):
            for i in range(starts[s], starts[s + 1] - 1):
                j = i + np.int64(uniform(state) * (starts[s + 1] - i))
                values[order[i]], values[order[j]] = values[order[j]], values[order[i]]
        shuffled[p] = values


@compiled_strictly
def count_by_group(rows: RankArray, groups: IntArray, counts: FloatArray) -> None:
    """Count the voters of each group by row, for each permutation of the rows of voters."""
    for p in range(len(counts)):
        for voter in range(len(groups)):
            counts[p, groups[voter], rows[p, voter]] += 1.0


@compiled
def sum_by_group(
    gram: FloatArray, rows: RankArray, members: IntArray, starts: IntArray, self_pairs: float, sums: FloatArray
) -> None:
    """Sum the kernel over pairs of voters of each group, for each permutation of the rows of voters.

    Group g has the voters members[starts[g]:starts[g + 1]]; the pair of a voter with itself has weight ``self_pairs``.
    """
    ordered = np.empty(len(members), dtype=np.int64)
    for p in range(len(sums)):
        for k in range(len(members)):
            ordered[k] = rows[p, members[k]]
        for g in range(len(starts) - 1):
            total = 0.0
            for i in range(starts[g], starts[g + 1]):
                values, part = gram[ordered[i]], 0.0
                for j in range(starts[g], i):
                    part += values[ordered[j]]
                total += 2 * part + self_pairs * values[ordered[i]]
            sums[p, g] = total


@compiled_strictly
def multilevel_splitting(
    gram: FloatArray, rows: RankArray, size: int, pair_weight: float, weights: FloatArray, target: float, state: State
) -> float:
    """Return the probability that a random division has a statistic of at least ``target``, by multilevel splitting.

    The statistic is ``pair_weight`` times the sum of the kernel over ordered pairs of the ``size`` voters of the first
    group, plus the sum of their ``weights``. Particles are divisions; those that reach a threshold survive, the others
    become copies of survivors, and all move by swaps of two voters that keep them above the threshold. The probability
    is the product of the parts that survive (Guyader, Hengartner and Matzner-Lober 2011).
    """
    n_voters = len(rows)
    orders = np.empty((N_PARTICLES, n_voters), dtype=np.int32)
    sums = np.zeros((N_PARTICLES, len(gram)))  # of the kernel between each row and the voters of the first group
    values = np.zeros(N_PARTICLES)
    for p in range(N_PARTICLES):
        orders[p] = rows
        for i in range(size):
            j = i + np.int64(uniform(state) * (n_voters - i))
            orders[p, i], orders[p, j] = orders[p, j], orders[p, i]
            u = orders[p, i]
            values[p] += pair_weight * 2 * sums[p, u] + weights[u]
            sums[p] += gram[u]
    pvalue, n_steps = 1.0, min(max(size, 50), 100)
    while pvalue > MIN_SPLITTING_PVALUE:
        ordered = np.sort(values)
        threshold = ordered[int((1 - SURVIVORS) * N_PARTICLES)]
        if threshold <= ordered[0]:  # ties: the next larger value
            larger = ordered[ordered > ordered[0]]
            if len(larger) == 0:
                return pvalue
            threshold = larger[0]
        threshold = min(threshold, target)
        survivors = np.flatnonzero(values >= threshold)
        if len(survivors) == 0:
            return pvalue / N_PARTICLES
        pvalue *= len(survivors) / N_PARTICLES
        if threshold >= target:
            return pvalue
        for p in range(N_PARTICLES):
            if values[p] < threshold:
                source = survivors[np.int64(uniform(state) * len(survivors))]
                orders[p], sums[p], values[p] = orders[source], sums[source], values[source]
            for _ in range(n_steps):
                a, b = np.int64(uniform(state) * size), size + np.int64(uniform(state) * (n_voters - size))
                u, v = orders[p, a], orders[p, b]
                if u == v:
                    continue
                change = 2 * (sums[p, v] - gram[u, v] - sums[p, u] + gram[u, u])
                value = values[p] + pair_weight * change + weights[v] - weights[u]
                if value >= threshold:
                    orders[p, a], orders[p, b], values[p] = v, u, value
                    for row in range(len(gram)):
                        sums[p, row] += gram[v, row] - gram[u, row]
    return MIN_SPLITTING_PVALUE


# ---------------------------------------------------------------------- exact moments


@dataclass(frozen=True, eq=False)
class Moments:
    """The mean, the variance and the skewness of a distribution."""

    mean: float
    variance: float
    skewness: float

    @classmethod
    def from_cumulants(cls, mean: float, variance: float, third: float) -> Moments:
        """Return the moments of a distribution with the given first three cumulants."""
        return cls(mean, variance, third / variance**1.5 if variance > 0 else 0.0)

    @classmethod
    def from_sample(cls, values: FloatArray) -> Moments:
        """Return the moments of a sample."""
        deviations = values - values.mean()
        return cls.from_cumulants(float(values.mean()), float((deviations**2).mean()), float((deviations**3).mean()))

    @property
    def third_cumulant(self) -> float:
        """The third cumulant."""
        return float(self.skewness * max(self.variance, 0.0) ** 1.5)  # rounding can make a variance negative

    def scaled(self, factor: float) -> Moments:
        """Return the moments of a positive multiple."""
        return Moments(self.mean * factor, self.variance * factor**2, self.skewness)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the sum of two independent variables."""
        third = self.third_cumulant + other.third_cumulant
        return Moments.from_cumulants(self.mean + other.mean, self.variance + other.variance, third)

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


ZERO_MOMENTS = Moments(0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class CentredKernel:
    """A doubly centred kernel matrix of voters, stored by the distinct values and the number of voters of each.

    Unbiased: a voter is not paired with itself, the diagonal is 0 and rows sum to 0 without it. Biased: each voter is
    paired with itself, with the diagonal of ``gram``.
    """

    gram: FloatArray
    counts: FloatArray
    biased: bool
    row_offsets: FloatArray  # subtracted from rows and from columns
    constant: float  # added to all entries

    @classmethod
    def from_gram(cls, gram: FloatArray, counts: FloatArray, biased: bool) -> CentredKernel:
        """Centre the kernel matrix of values that occur ``counts`` times."""
        n = counts.sum()
        if biased:
            means = gram @ counts / n
            return cls(gram, counts, biased, means, float(counts @ means / n))
        sums = gram @ counts - np.diagonal(gram)
        return cls(gram, counts, biased, sums / (n - 2), float(counts @ sums / ((n - 1) * (n - 2))))

    def block(self, rows: slice | Indices, columns: Indices | None = None) -> FloatArray:
        """Return rows of the centred matrix, for pairs of different voters; all columns, or the given ones."""
        values, offsets = self.gram[rows], self.row_offsets
        if columns is not None:
            values, offsets = values[:, columns], offsets[columns]
        return np.asarray(values - self.row_offsets[rows, None] - offsets + self.constant)

    def matrix(self) -> FloatArray:
        """Return the centred matrix."""
        out = np.empty(self.gram.shape)
        for rows in slices(len(out), BLOCK_ROWS):
            out[rows] = self.block(rows)
        return out

    @property
    def diagonal(self) -> FloatArray:
        """The entries for two voters with the same value."""
        return np.asarray(np.diagonal(self.gram) - 2 * self.row_offsets + self.constant)

    @cached_property
    def power_sums(self) -> tuple[float, FloatArray, FloatArray | None]:
        """The trace, and the nonzero sums of degree two and three (None for too many rows).

        The sums are those after subtracting the multiple of the identity that makes the trace 0.
        """
        c, n = self.counts, float(self.counts.sum())
        trace = float(c @ self.diagonal) if self.biased else 0.0
        shift = trace / (n - 1)  # A - shift (I - 1/n) is still centred
        shifted = CentredKernel(self.gram, c, self.biased, self.row_offsets, self.constant + shift / n)
        equal = shifted.diagonal  # two voters with the same value
        same = equal - shift if self.biased else np.zeros(len(c))  # a voter with itself
        squares, cubes, products = np.empty((3, len(c)))  # sums over voters in each row
        for rows in slices(len(c), BLOCK_ROWS):
            matrix = shifted.block(rows)
            square = matrix * matrix
            squares[rows], cubes[rows], products[rows] = square @ c, (square * matrix) @ c, matrix @ (c * same)
        second = np.array([c @ (squares - equal**2 + same**2), c @ same**2])
        if len(c) > MAX_ROWS_FOR_SKEWNESS:
            return trace, second, None
        weights, cubed_trace, excess = np.sqrt(c), 0.0, same - equal
        weighted = weights[:, None] * shifted.matrix() * weights
        for rows in slices(len(c), BLOCK_ROWS):
            square = weighted[rows] @ weighted[:, : rows.stop]  # the lower triangle of a symmetric matrix
            square[:, : rows.start] *= 2
            cubed_trace += float(np.einsum("uv,uv->", square, weighted[rows, : rows.stop]))
        third = np.array(
            [
                cubed_trace + c @ (3 * excess * squares + 3 * excess**2 * equal + excess**3),
                c @ (cubes - equal**3 + same**3),
                c @ (same * (squares - equal**2 + same**2)),
                c @ (same * products + same**2 * excess),
                c @ same**3,
            ]
        )
        return trace, second, third


def permutation_moments(left: CentredKernel, right: CentredKernel) -> Moments:
    """Return the moments of the sum over voters of one matrix times the other, one of them permuted at random.

    The skewness is nan if a matrix has more than ``MAX_ROWS_FOR_SKEWNESS`` rows.
    """
    (left_trace, left_second, left_third), n = left.power_sums, int(left.counts.sum())
    right_trace, right_second, right_third = right.power_sums
    mean = left_trace * right_trace / (n - 1)
    variance = expected_power(left_second, right_second, n, 2)
    if left_third is None or right_third is None:
        return Moments(mean, variance, float("nan"))
    return Moments.from_cumulants(mean, variance, expected_power(left_third, right_third, n, 3))


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
