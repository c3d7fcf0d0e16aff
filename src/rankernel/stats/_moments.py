r"""Sums over pairs of voters, and the exact moments of such sums under permutations.

The statistic :math:`\Gamma = \sum_{i,j} A_{ij} B_{\pi(i) \pi(j)}` of two symmetric matrices of voters, one
of them permuted at random, has moments that are sums over the matrices (Kazi-Aoual, Hitier, Sabatier and Lebreton 1995;
Mielke, Berry and Johnson 1976 for groups). A power of Gamma is a sum over k edges (i, j). A partition P of the 2k ends
says which of them are the same voter; given P, all assignments of voters are equally likely, so the two matrices
separate:

    E Gamma^k = sum over partitions P of 2k ends of S_A(P) S_B(P) / N (N - 1) ... (N - |P| + 1),

where S(P) is the sum of products of k entries over all choices of |P| different voters. Sums over different voters
follow from sums over arbitrary voters by Moebius inversion on the partition lattice. If all rows sum to 0 and the trace
is 0, few sums over arbitrary voters are nonzero: two for the second moment, five for the third.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from math import factorial, prod

import numpy as np

from rankernel._utils import FloatArray, Indices
from rankernel.gram.evaluator import slices

BLOCK_ROWS = 256  # rows of a matrix that are processed at once
MAX_ROWS_FOR_SKEWNESS = 2000  # the third moment takes the cube of the number of rows
# Sums that can be nonzero, by their numbers of vertices and of loops.
SECOND = {(2, 0): 0, (1, 2): 1}  # sum of a_ij^2, of a_ii^2
THIRD = {(3, 0): 0, (2, 0): 1, (2, 1): 2, (2, 2): 3, (1, 3): 4}  # tr A^3, a_ij^3, a_ii a_ij^2, a_ii a_ij a_jj, a_ii^3


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
