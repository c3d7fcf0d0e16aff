r"""How strongly rankings and a covariate depend on each other: a correlation of their kernels, with its interval.

The correlation is :math:`\mathrm{HSIC}(K, L) / \sqrt{\mathrm{HSIC}(K, K)\, \mathrm{HSIC}(L, L)}`, each of the three
estimated without bias (Song et al. 2012). Within strata, each of them is the mean of those of the strata, weighed by
their voters; strata of fewer than four voters say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel.gram.blocks import slices
from rankernel.stats._effect_law import UNKNOWN, EstimatedEffect, Influence, Interval, Sample
from rankernel.stats._moments import CentredVoters, Moments, permutation_moments
from rankernel.stats._permutations import ENTRIES
from rankernel.stats._voters import Slopes

LEAST_VOTERS = 4


@dataclass(frozen=True, eq=False)
class PairedVoters:
    """Voters with a ballot and a value, by cells: a row and a value, and how many voters have both.

    ``left`` and ``right`` are the kernels of ballots and of values, centred over these voters, and ``places`` say which
    ballots and which values of all they are of.
    """

    left: CentredVoters
    right: CentredVoters
    rows: IntArray
    values: IntArray
    times: FloatArray
    places: IntArray
    other_places: IntArray

    @classmethod
    def of(cls, gram: FloatArray, rows: IntArray, other: FloatArray, values: IntArray) -> PairedVoters:
        """Return the voters by cells, from the row and the value of each."""
        cells, times = np.unique(np.stack((rows, values)), axis=1, return_counts=True)
        counted = times.astype(np.float64)
        left, place, used = centred_codes(gram, cells[0], counted)
        right, value, valued = centred_codes(other, cells[1], counted)
        return cls(left, right, place, value, counted, used, valued)

    def turned(self) -> PairedVoters:
        """Return the same voters, rankings and covariate exchanged."""
        return PairedVoters(self.right, self.left, self.values, self.rows, self.times, self.other_places, self.places)

    @property
    def n_voters(self) -> float:
        """How many voters there are."""
        return float(self.times.sum())

    def criteria(self) -> FloatArray:
        """Return without bias the criterion of both kernels, of that of the rankings alone, and of the covariate's."""
        n, c = self.n_voters, self.times
        found = np.zeros(3)
        for part in self.tiles():
            K, L = self.kernels(part)
            for place, product in enumerate((K * L, K * K, L * L)):
                found[place] += float(c[part] @ product @ c)
        K, L = self.left.diagonal[self.rows], self.right.diagonal[self.values]  # no voter is paired with itself
        return np.asarray((found - np.array([c @ (K * L), c @ K**2, c @ L**2])) / (n * (n - 3)))

    def kernels(self, part: slice) -> tuple[FloatArray, FloatArray]:
        """Return both centred kernels between some cells and all."""
        return (
            self.left.part(self.rows[part], self.rows),
            self.right.part(self.values[part], self.values),
        )

    def tiles(self) -> Iterator[slice]:
        """Return parts of the cells whose kernels with all cells fit into memory."""
        return slices(len(self.times), max(ENTRIES // len(self.times), 1))

    def witnesses(self) -> FloatArray:
        """Return at each cell the mean over voters of the products of which the criteria are means: shape (3, n)."""
        shares, found = self.times / self.n_voters, np.empty((3, len(self.times)))
        means = [
            np.asarray(side.gram @ side.counts / self.n_voters)[codes]
            for side, codes in ((self.left, self.rows), (self.right, self.values))
        ]
        for part in self.tiles():
            K, L = (
                side.gram[np.ix_(codes[part], codes)] - mean[part, None] - mean + shares @ mean
                for side, codes, mean in zip((self.left, self.right), (self.rows, self.values), means, strict=True)
            )
            for place, product in enumerate((K * L, K * K, L * L)):
                found[place, part] = product @ shares
        return found

    def null(self, skewness: float) -> Moments:
        """Return the moments of the criterion of both kernels where values are permuted between the voters."""
        n = self.n_voters
        found = permutation_moments(self.left, self.right).times(1 / (n * (n - 3)))
        return Moments(0.0, found.variance, skewness if np.isnan(found.skewness) else found.skewness)

    def slopes(self, some: Indices, alone: float) -> FloatArray:
        """Return by how much the criterion of both kernels, less ``alone`` times that of rankings, changes with them.

        For some rows: with the kernel between each of them and all.
        """
        counts, n = self.left.counts, self.n_voters
        table = np.zeros((len(counts), len(self.right.counts)))
        table[self.rows, self.values] = self.times
        across, itself = self.right.whole(), np.arange(len(some))
        toward = table[some] @ across @ table.T
        toward[itself, some] -= table[some] @ np.diagonal(across)
        own = counts[some, None] * self.left.part(some) * counts
        own[itself, some] -= counts[some] * self.left.diagonal[some]
        return np.asarray((toward - alone * own) / (n * (n - 3)))


def centred_codes(gram: FloatArray, codes: IntArray, times: FloatArray) -> tuple[CentredVoters, IntArray, IntArray]:
    """Return the kernel between the rows that occur, centred, the place of each code among them, and which they are."""
    used, place = np.unique(codes, return_inverse=True)
    own = gram if len(used) == len(gram) else gram[np.ix_(used, used)]
    counts = np.bincount(place.ravel(), times).astype(np.float64)
    return CentredVoters.of(own, counts, biased=False), place.ravel(), used


@dataclass(frozen=True, eq=False)
class Correlation:
    """The correlation of two kernels over the voters of some strata."""

    strata: tuple[PairedVoters, ...]

    @classmethod
    def within(
        cls, gram: FloatArray, rows: IntArray, other: FloatArray, values: IntArray, strata: IntArray
    ) -> Correlation:
        """Return the correlation within strata, from the row, the value and the stratum of each voter."""
        found = []
        for number in range(int(strata.max()) + 1):
            own = strata == number
            if own.sum() < LEAST_VOTERS:
                continue
            found.append(PairedVoters.of(gram, rows[own], other, values[own]))
        return cls(tuple(found))

    @property
    def weights(self) -> FloatArray:
        """The share of the voters in each stratum."""
        sizes = np.array([each.n_voters for each in self.strata])
        return np.asarray(sizes / sizes.sum())

    def criteria(self) -> FloatArray:
        """Return the three criteria, without bias."""
        return np.asarray(self.weights @ np.array([each.criteria() for each in self.strata]))

    def value(self) -> float:
        """Return the correlation; nan where voters are too few, or where errors hide all that differs."""
        if not self.strata:
            return float("nan")
        both, *own = self.criteria()
        if min(own) > 0:
            return float(both / np.sqrt(own[0] * own[1]))
        return 0.0 if min(own) == 0 else float("nan")

    def interval(self, skewness: float, error: float) -> Interval:
        """Return the interval of the correlation."""
        found = self.value()
        if np.isnan(found):
            return UNKNOWN
        length = float(np.sqrt(self.criteria()[1:].prod()))
        if not length > 0:
            return 0.0, 1.0
        witnesses = [each.witnesses() for each in self.strata]
        shares = [each.times / each.n_voters for each in self.strata]
        means = sum(
            weight * of_cells @ own for weight, of_cells, own in zip(self.weights, witnesses, shares, strict=True)
        )
        null = Moments(0.0, 0.0, 0.0)
        samples: list[Sample] = []
        for weight, each, of_cells, own in zip(self.weights, self.strata, witnesses, shares, strict=True):
            null += each.null(skewness).times(weight / length)
            both, first, second = 2 * weight * of_cells
            toward = both / np.sqrt(means[1] * means[2])
            samples.append((toward, (first / means[1] + second / means[2]) / 2 - toward, own, each.n_voters))
        base = float(means[0] / np.sqrt(means[1] * means[2]))
        return EstimatedEffect(found, null, Influence.of(base, samples), error).interval()


def correlation_slopes(correlation: Correlation, n_rows: int, covariate: bool) -> Slopes:
    """Return by how much a correlation changes with each value of the kernel of the rankings, or of the covariate."""
    criteria = correlation.criteria()
    length = float(np.sqrt(criteria[1] * criteria[2]))
    alone = float(criteria[0] / criteria[2 if covariate else 1])

    def slopes_of(some: Indices) -> FloatArray:
        found = np.zeros((len(some), n_rows))
        for weight, each in zip(correlation.weights, correlation.strata, strict=True):
            side = each.turned() if covariate else each
            here = np.flatnonzero(np.isin(some, side.places))
            own = np.searchsorted(side.places, some[here])
            slopes = side.slopes(own, alone) * weight / length
            found[np.ix_(here, side.places)] += slopes
        return found

    return slopes_of
