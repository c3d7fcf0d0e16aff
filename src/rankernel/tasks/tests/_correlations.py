r"""How strongly rankings and a covariate depend on each other: a correlation of their kernels, with its interval.

The correlation is :math:`\mathrm{HSIC}(K, L) / \sqrt{\mathrm{HSIC}(K, K)\, \mathrm{HSIC}(L, L)}`, each of the three
estimated without bias (Song et al. 2012). The interval is a bootstrap of the voters, in the manner of that of groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel.arrays import FloatArray, IntArray
from rankernel.gram.tiles import stretches
from rankernel.tasks.tests._effects import N_BOOTSTRAP, Interval, reflected
from rankernel.tasks.tests._permutations import ENTRIES, generator

LEAST_VOTERS = 4


@dataclass(frozen=True, eq=False)
class PairedVoters:
    """Voters with a ballot and a value: the kernels between ballots and between values, and the voters of each cell."""

    gram: FloatArray
    rows: IntArray
    other: FloatArray
    values: IntArray
    times: FloatArray

    @classmethod
    def of(cls, gram: FloatArray, rows: IntArray, other: FloatArray, values: IntArray) -> PairedVoters:
        """Return the voters by cells, from the row and the value of each."""
        cells, times = np.unique(np.stack((rows, values)), axis=1, return_counts=True)
        return cls(gram, cells[0], other, cells[1], times.astype(np.float64))

    @property
    def n_voters(self) -> int:
        """How many voters there are."""
        return int(self.times.sum())

    def correlation(self) -> float:
        """Return the correlation of the two kernels; nan where voters are too few for it."""
        if self.n_voters < LEAST_VOTERS:
            return float("nan")
        return float(self.of_voters(self.times[None], between_voters=True)[0])

    def interval(self, seed: int) -> Interval:
        """Return the interval of the correlation: voters drawn anew, with replacement."""
        if self.n_voters < LEAST_VOTERS:
            return float("nan"), float("nan")
        rng, n, parts = generator(seed, "bootstrap of the voters"), self.n_voters, []
        for stretch in stretches(N_BOOTSTRAP, max(ENTRIES // len(self.times), 1)):
            drawn = rng.multinomial(n, self.times / n, size=stretch.stop - stretch.start).astype(np.float64)
            parts.append(self.of_voters(drawn, between_voters=True))
        population = float(self.of_voters(self.times[None], between_voters=False)[0])
        return reflected(self.correlation(), population, np.concatenate(parts))

    def of_voters(self, weights: FloatArray, between_voters: bool) -> FloatArray:
        """Return the correlation for each row of numbers of voters: of a sample, or of a population of its own."""
        across, own, other = (np.zeros(len(weights)) for _ in range(3))
        left, right = np.empty_like(weights), np.empty_like(weights)
        for part in stretches(len(self.times), max(ENTRIES // len(self.times), 1)):
            K = self.gram[np.ix_(self.rows[part], self.rows)]
            L = self.other[np.ix_(self.values[part], self.values)]
            left[:, part], right[:, part] = weights @ K.T, weights @ L.T
            for total, product in ((across, K * L), (own, K * K), (other, L * L)):
                total += np.einsum("pc,pc->p", weights @ product.T, weights[:, part])
        K, L = np.diagonal(self.gram)[self.rows], np.diagonal(self.other)[self.values]
        if between_voters:  # no voter is paired with itself
            left, right = left - K, right - L
            across, own, other = across - weights @ (K * L), own - weights @ K**2, other - weights @ L**2
        n = float(self.n_voters)

        def centred(total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
            sums = [np.einsum("pc,pc->p", weights, side) for side in (first, second)]
            mixed = np.einsum("pc,pc,pc->p", weights, first, second)
            if between_voters:
                found = (total + sums[0] * sums[1] / ((n - 1) * (n - 2)) - 2 * mixed / (n - 2)) / (n * (n - 3))
            else:
                found = total / n**2 + sums[0] * sums[1] / n**4 - 2 * mixed / n**3
            return np.asarray(found)

        lengths = centred(own, left, left) * centred(other, right, right)
        products = centred(across, left, right)
        return np.where(lengths > 0, products, 0.0) / np.sqrt(np.where(lengths > 0, lengths, 1.0))
