r"""The first three moments of a permutation distribution, exactly, and the Pearson III curve through them.

A statistic :math:`\Gamma = \sum_{i,j} A_{ij} B_{\pi(i) \pi(j)}` of two symmetric matrices of voters, one of them
permuted at random, has moments that are sums over the matrices (Kazi-Aoual, Hitier, Sabatier and Lebreton 1995; Mielke,
Berry and Johnson 1976 for groups). A power of Gamma is a sum over several edges (i, j). Which of their ends are the
same voter is a partition of the ends; given it, all voters in its place are equally likely, so that the two matrices
come apart:

    E Gamma^k = sum over partitions P of 2k ends of S_A(P) S_B(P) / N (N - 1) ... (N - |P| + 1),

with S(P) the sum of the products of k entries over all choices of |P| different voters. Different voters are got from
any voters by the Moebius function of the partitions, and where all rows add up to 0 and the trace is 0, few sums over
any voters remain: two for the second moment, five for the third.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import factorial, prod

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel.gram.blocks import slices

TILE = 512  # rows of a matrix that are centred at once
MOST_ROWS = 2000  # of a matrix whose third power is taken: its cost grows with the cube
# Sums that remain, by their number of vertices and of loops.
SECOND = {(2, 0): 0, (1, 2): 1}  # sum of a_ij^2, of a_ii^2
THIRD = {(3, 0): 0, (2, 0): 1, (2, 1): 2, (2, 2): 3, (1, 3): 4}  # tr A^3, a_ij^3, a_ii a_ij^2, a_ii a_ij a_jj, a_ii^3


@dataclass(frozen=True, eq=False)
class Moments:
    """The mean, the variance and the skewness of a distribution."""

    mean: float
    variance: float
    skewness: float

    @classmethod
    def of_cumulants(cls, mean: float, variance: float, third: float) -> Moments:
        """Return the moments of a distribution by its first three cumulants."""
        return cls(mean, variance, third / variance**1.5 if variance > 0 else 0.0)

    @classmethod
    def of_sample(cls, values: FloatArray) -> Moments:
        """Return the moments of what was drawn."""
        spread = values - values.mean()
        return cls.of_cumulants(float(values.mean()), float((spread**2).mean()), float((spread**3).mean()))

    @property
    def third(self) -> float:
        """The third cumulant."""
        return float(self.skewness * max(self.variance, 0.0) ** 1.5)  # rounding may leave a little less than nothing

    def times(self, factor: float) -> Moments:
        """Return the moments of a positive multiple."""
        return Moments(self.mean * factor, self.variance * factor**2, self.skewness)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the sum of two independent quantities."""
        return Moments.of_cumulants(self.mean + other.mean, self.variance + other.variance, self.third + other.third)

    def tail(self, value: float) -> float:
        """Return the probability of so large a value, by the Pearson III curve with these moments."""
        from scipy.special import gammainc, gammaincc, ndtr

        if not self.variance > 0:
            return 1.0
        z = (value - self.mean) / np.sqrt(self.variance)
        if abs(self.skewness) < 1e-6:
            return float(ndtr(-z))
        shape = 4 / self.skewness**2
        place = max(shape + 2 * z / self.skewness, 0.0)
        return float(gammaincc(shape, place) if self.skewness > 0 else gammainc(shape, place))


@dataclass(frozen=True, eq=False)
class PowerSums:
    """What the moments take from one matrix: its trace, sums of degree two and of degree three."""

    trace: float
    second: FloatArray
    third: FloatArray | None


@dataclass(frozen=True, eq=False)
class CentredVoters:
    """A symmetric matrix of voters, centred: its rows add up to 0. Voters of one row of ``gram`` are alike.

    Unbiased: no voter is paired with itself, and the diagonal is 0. Biased: each is, and the diagonal is that of
    ``gram``.
    """

    gram: FloatArray
    counts: FloatArray
    biased: bool
    shifts: FloatArray  # taken from rows and from columns
    constant: float  # added to all

    @classmethod
    def of(cls, gram: FloatArray, counts: FloatArray, biased: bool) -> CentredVoters:
        """Centre a kernel between values that occur ``counts`` times."""
        n = counts.sum()
        if biased:
            means = gram @ counts / n
            return cls(gram, counts, biased, means, float(counts @ means / n))
        sums = gram @ counts - np.diagonal(gram)
        return cls(gram, counts, biased, sums / (n - 2), float(counts @ sums / ((n - 1) * (n - 2))))

    def part(self, rows: slice | Indices, columns: Indices | None = None) -> FloatArray:
        """Return some rows of the centred matrix, for two different voters; of all columns, or of some."""
        values, shifts = self.gram[rows], self.shifts
        if columns is not None:
            values, shifts = values[:, columns], shifts[columns]
        return np.asarray(values - self.shifts[rows, None] - shifts + self.constant)

    def whole(self) -> FloatArray:
        """Return the centred matrix."""
        out = np.empty(self.gram.shape)
        for rows in slices(len(out), TILE):
            out[rows] = self.part(rows)
        return out

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of the centred matrix."""
        return np.asarray(np.diagonal(self.gram) - 2 * self.shifts + self.constant)

    @cached_property
    def sums(self) -> PowerSums:
        """The power sums of the matrix, less the multiple of the identity that makes its trace 0."""
        c, n = self.counts, float(self.counts.sum())
        trace = float(c @ self.diagonal) if self.biased else 0.0
        level = trace / (n - 1)  # A - level (1 - 1/n), centred still
        shifted = CentredVoters(self.gram, c, self.biased, self.shifts, self.constant + level / n)
        between = shifted.diagonal  # two voters of one row
        own = between - level if self.biased else np.zeros(len(c))
        squares, cubes, products = shifted.row_sums(own)
        more = own - between
        second = np.array([c @ (squares - between**2 + own**2), c @ own**2])
        if len(c) > MOST_ROWS:
            return PowerSums(trace, second, None)
        third = np.array(
            [
                shifted.cubed_trace() + c @ (3 * more * squares + 3 * more**2 * between + more**3),
                c @ (cubes - between**3 + own**3),
                c @ (own * (squares - between**2 + own**2)),
                c @ (own * products + own**2 * more),
                c @ own**3,
            ]
        )
        return PowerSums(trace, second, third)

    def row_sums(self, own: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sums over the voters of each row of squares, of cubes, and of products with ``own``."""
        parts = []
        for rows in slices(len(self.counts), TILE):
            matrix = self.part(rows)
            squares = matrix * matrix
            parts.append((squares @ self.counts, (squares * matrix) @ self.counts, matrix @ (self.counts * own)))
        squares, cubes, products = (np.concatenate(kind) for kind in zip(*parts, strict=True))
        return squares, cubes, products

    def cubed_trace(self) -> float:
        """Return the trace of the third power, as if each voter were paired with itself like with its equals."""
        weights = np.sqrt(self.counts)
        matrix = weights[:, None] * self.whole() * weights  # of few rows: see MOST_ROWS
        total = 0.0
        for rows in slices(len(matrix), TILE):
            square = matrix[rows] @ matrix[:, : rows.stop]  # up to the diagonal: it is symmetric
            square[:, : rows.start] *= 2
            total += float(np.einsum("uv,uv->", square, matrix[rows, : rows.stop]))
        return total


def permutation_moments(left: CentredVoters, right: CentredVoters) -> Moments:
    """Return the moments of the sum over voters of one matrix times the other, one of them permuted at random.

    The skewness is nan where matrices are too large for it.
    """
    A, B, n = left.sums, right.sums, int(left.counts.sum())
    mean = A.trace * B.trace / (n - 1)
    variance = expected_power(A.second, B.second, n, 2)
    if A.third is None or B.third is None:
        return Moments(mean, variance, float("nan"))
    return Moments.of_cumulants(mean, variance, expected_power(A.third, B.third, n, 3))


def expected_power(left: FloatArray, right: FloatArray, n_voters: int, power: int) -> float:
    """Return the mean of a power of the statistic, from the sums that remain of two matrices."""
    return float(
        sum(
            left @ table @ right / prod(range(n_voters - places + 1, n_voters + 1))
            for places, table in pattern_tables(power).items()
            if places <= n_voters
        )
    )


@lru_cache(maxsize=2)
def pattern_tables(power: int) -> dict[int, FloatArray]:
    """Return for each number of different voters the sum over patterns of what they take from both matrices."""
    found: dict[int, FloatArray] = {}
    for pattern in partitions(2 * power):
        row = distinct_sum(pattern, SECOND if power == 2 else THIRD)
        places = max(pattern) + 1
        found[places] = found.get(places, 0.0) + np.outer(row, row)
    return found


def distinct_sum(pattern: tuple[int, ...], remain: dict[tuple[int, int], int]) -> FloatArray:
    """Return the sum over different voters as a combination of the sums over any voters that remain."""
    row = np.zeros(len(remain))
    for merger in partitions(max(pattern) + 1):
        place = remaining([merger[end] for end in pattern], remain)
        if place is not None:
            sizes = np.bincount(merger)
            row[place] += prod((-1) ** (int(size) - 1) * factorial(int(size) - 1) for size in sizes)
    return row


def remaining(ends: list[int], remain: dict[tuple[int, int], int]) -> int | None:
    """Return which sum the edges between ``ends`` stand for, or None if it is 0: a row, or the trace, factors out."""
    n_vertices = len(set(ends))
    if min(np.bincount(ends)) < 2:
        return None
    n_loops = sum(a == b for a, b in zip(ends[::2], ends[1::2], strict=True))
    return remain.get((n_vertices, n_loops))


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Return all partitions of so many things, as the number of the part of each."""

    def grow(start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(start) == n:
            yield start
            return
        for part in range(max(start, default=-1) + 2):
            yield from grow((*start, part))

    return grow(())
