"""What permutation tests share: random divisions of voters, quadratic forms of many at once, p-values with ties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_integer
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.stats._moments import Moments
from rankernel.stats.adaptive import Adaptive

SIDE = 256  # of a tile of the Gram matrix
ENTRIES = 2**22  # of an array that holds one row for each permutation
MOST_DENSE = 10**9  # voters that NumPy divides at random
DENSE = 32  # voters a ballot, from which drawing ballot by ballot is quicker than voter by voter
ENOUGH = 4  # permutations, times what the smallest p-value that counts needs
FOR_MOMENTS = 1000  # permutations behind a tail whose moments are not known exactly
TERM = 8  # multiplications in a matrix product that take as long as one term of a sum over pairs of voters
TIED = 1e-13  # of the mean size of a kernel value: closer statistics differ by rounding only

Permutations = int | Adaptive
PermutationsLike = int | Literal["adaptive"] | Adaptive


def generator(rng: Seed, purpose: str) -> np.random.Generator:
    """Return a generator for one purpose, which no other purpose disturbs."""
    return np.random.default_rng(int(stream_key(as_seed(rng), purpose)))


def as_permutations(wanted: Any) -> Permutations:
    """Return how many permutations are wanted: a number, or a rule that decides while they are drawn."""
    if isinstance(wanted, str) and wanted == "adaptive":
        return Adaptive()
    return wanted if isinstance(wanted, Adaptive) else check_integer("n_permutations", wanted)


def sure_for_many(wanted: Permutations, level: float, n_tests: int) -> Permutations:
    """Return a rule whose decisions are sure for the smallest of many p-values, too; a number stays as it is."""
    if isinstance(wanted, int) or n_tests == 1:
        return wanted
    return Adaptive(level / n_tests, max(wanted.most, ENOUGH * ceil(n_tests / level)))


def least_pvalue(wanted: Permutations) -> float:
    """Return the smallest p-value that there can be."""
    return 1 / (1 + wanted) if isinstance(wanted, int) else wanted.boundaries().least_pvalue()


# ---------------------------------------------------------------------- p-values


@dataclass(frozen=True, eq=False)
class Null:
    """The statistic for random permutations, and the p-values that they give.

    Attributes
    ----------
    values : array
        The statistic for the permutations that were asked for.
    pvalue : float
        The p-value that they give.
    moments : Moments
        Those of all permutations, as far as they are known, else of what was drawn.
    n_for_moments : int
        How many permutations that is, if need be more than were asked for; 0 where the moments are exact.
    """

    values: FloatArray
    pvalue: float
    moments: Moments
    n_for_moments: int

    @classmethod
    def drawn(
        cls,
        draw: Callable[[int], FloatArray],
        statistic: float,
        tolerance: float,
        wanted: Permutations,
        exact: Moments | None,
    ) -> Null:
        """Draw as many permutations as are wanted, ``exact`` the moments of all; ``draw`` goes on where it stopped."""
        if isinstance(wanted, int):
            values = draw(wanted)
            return cls.of(values, pvalue(values, statistic, tolerance), exact, draw)
        rule, values, look, exceedances = wanted.boundaries(), np.empty(0), -1, 0
        while look < 0 or not rule.stops(look, exceedances):
            look += 1
            values = np.concatenate([values, draw(rule.looks[look] - len(values))])
            exceedances = int(count_at_least(values, np.array([statistic]), tolerance)[0])
        return cls.of(values, rule.pvalue(look, exceedances), exact, draw)

    @classmethod
    def of(
        cls, values: FloatArray, found: float, exact: Moments | None, draw: Callable[[int], FloatArray] | None = None
    ) -> Null:
        """Return a null distribution with its moments; where these are not known, enough are drawn for a tail."""
        if exact is not None and not np.isnan(exact.skewness):
            return cls(values, found, exact, 0)
        missing = FOR_MOMENTS - len(values)
        enough = np.concatenate([values, draw(missing)]) if draw is not None and missing > 0 else values
        sampled = Moments.of_sample(enough)
        moments = sampled if exact is None else Moments(exact.mean, exact.variance, sampled.skewness)
        return cls(values, found, moments, len(enough))

    def tail(self, statistic: float, tolerance: float, least: float) -> float:
        """Return the p-value by a Pearson III curve.

        ``least`` is the probability of the data themselves, which no p-value is below.
        """
        return min(max(self.moments.tail(statistic - tolerance), least), 1.0)


def count_at_least(null: FloatArray, values: FloatArray, tolerance: float) -> IntArray:
    """Return how many of a null distribution are at least as large as each value, equal ones included."""
    below = np.searchsorted(np.sort(null), values - tolerance, side="left")
    return np.asarray(len(null) - below, dtype=np.int64)


def pvalue(null: FloatArray, statistic: float, tolerance: float) -> float:
    """Return (1 + #{null >= statistic}) / (1 + #null): the test has its level exactly, ties count against it."""
    return float(1 + count_at_least(null, np.array([statistic]), tolerance)[0]) / (1 + len(null))


def probability_of(strata: IntArray, groups: IntArray, rows: IntArray, times: IntArray) -> float:
    """Return how likely permutations within strata give these very voters: of each cell its place, and how many.

    Examples
    --------
    Two voters of each group, all different: one of six divisions.

    >>> one = np.ones(4, dtype=np.int64)
    >>> round(probability_of(0 * one, np.array([0, 0, 1, 1]), np.arange(4), one), 6)
    0.166667
    """
    from scipy.special import gammaln

    def ways(*parts: IntArray) -> float:
        place = np.unique(np.stack((strata, *parts)), axis=1, return_inverse=True)[1]
        return float(gammaln(np.bincount(place.ravel(), times) + 1).sum())

    return float(np.exp(ways(groups) + ways(rows) - float(gammaln(times + 1).sum()) - ways()))


# ---------------------------------------------------------------------- permutations


class Divisions:
    """Random divisions of all voters into two samples, one after the other: how many of each row go to the first.

    Permuting voters that share rows makes these numbers multivariate hypergeometric. ``table`` holds the voters by
    stratum, by sample and by row; each stratum keeps the size of its first sample.
    """

    def __init__(self, table: IntArray, seed: int) -> None:
        check_divisible(table)
        self.n_rows = table.shape[2]
        self.strata = [
            DivisionStream(voters.sum(axis=0), int(voters[0].sum()), generator(seed, f"divisions of stratum {number}"))
            for number, voters in enumerate(table)
        ]

    def draw(self, n_divisions: int) -> Iterator[FloatArray]:
        """Yield the next divisions, many at a time."""
        for part in slices(n_divisions, max(ENTRIES // self.n_rows, 1)):
            counts = np.zeros((part.stop - part.start, self.n_rows))
            for stratum in self.strata:
                stratum.add_to(counts)
            yield counts


class DivisionStream:
    """One division of the voters of a stratum after another: ``size`` of them go to the first sample."""

    def __init__(self, voters: IntArray, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.rows = np.flatnonzero(voters)
        self.present = voters[self.rows]
        self.dense = self.present.sum() >= DENSE * len(self.rows)
        if self.dense and self.present.sum() >= MOST_DENSE:
            raise RankingError(
                f"there are {int(self.present.sum()):,} voters, and at most {MOST_DENSE:,} can be permuted; divide all "
                "counts by the same number: with so many voters the p-value is next to 0 for any difference"
            )
        if not self.dense:
            self.row_of_voter = np.repeat(self.rows, self.present)
            self.state = rng.integers(2**64, size=4, dtype=np.uint64)

    def add_to(self, counts: FloatArray) -> None:
        """Add a division to each row of ``counts``, ballot by ballot where voters are many, else voter by voter."""
        if self.dense:
            drawn = self.rng.multivariate_hypergeometric(self.present, self.size, size=len(counts), method="marginals")
            counts[:, self.rows] += drawn.astype(np.float64)
        else:
            _loops.permuted_sums.choose_voters(self.row_of_voter, self.size, self.state, counts)


class Shuffles:
    """Random permutations of the rows of voters, within strata, one after the other."""

    def __init__(self, rows: IntArray, strata: IntArray, seed: int) -> None:
        self.rows, self.strata = rows.copy(), runs(strata)
        self.state = generator(seed, "shuffles of voters").integers(2**64, size=4, dtype=np.uint64)

    def counts(self, groups: IntArray, n_shuffles: int, n_groups: int, n_rows: int) -> FloatArray:
        """Return for the next permutations how many voters of each group stand behind each row."""
        found = np.zeros((n_shuffles, n_groups, n_rows))
        _loops.permuted_sums.grouped_counts(self.rows, self.strata, groups, self.state, found)
        return found

    def sums(self, groups: IntArray, n_shuffles: int, gram: FloatArray, biased: bool) -> FloatArray:
        """Return for the next permutations the sums over pairs of voters of each group, those with itself if biased."""
        members = runs(groups)
        found = np.empty((n_shuffles, len(members[1]) - 1))
        _loops.permuted_sums.grouped_sums(gram, self.rows, self.strata, members, float(biased), self.state, found)
        return found


def runs(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return the places of labels 0, 1, ... sorted by label, and where each label begins among them."""
    sizes = np.bincount(labels)
    return np.argsort(labels, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])


class PermutedValues:
    """Random permutations of one value a voter, within strata, one after the other."""

    def __init__(self, values: IntArray, strata: IntArray, seed: int) -> None:
        self.values = values
        self.streams = [generator(seed, f"permutations of stratum {s}") for s in range(int(strata.max()) + 1)]
        self.members = [np.flatnonzero(strata == stratum) for stratum in range(len(self.streams))]

    def draw(self, n_permutations: int, n_at_once: int) -> Iterator[IntArray]:
        """Yield the next permutations, each a row, ``n_at_once`` at a time."""
        for part in slices(n_permutations, n_at_once):
            shuffled = np.tile(self.values, (part.stop - part.start, 1))
            for rng, inside in zip(self.streams, self.members, strict=True):
                shuffled[:, inside] = rng.permuted(shuffled[:, inside], axis=1)
            yield shuffled


def is_divisible(table: IntArray) -> bool:
    """Say whether a voter can change sides within a stratum: voters by stratum, by group and by row."""
    return bool(((table.sum(axis=2) > 0).sum(axis=1) > 1).any())


def check_divisible(table: IntArray) -> None:
    """Refuse strata in which no voter can change sides."""
    if not is_divisible(table):
        raise RankingError(
            "no stratum has voters of two groups, so that there is nothing to permute; use coarser strata"
        )


# ---------------------------------------------------------------------- forms


def off_diagonal_forms(gram: FloatArray, vectors: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{u \ne v} c_u c_v K_{uv}` for each row c of ``vectors``.

    Matrix products over the lower triangle of K alone, tile by tile: half the work of one product with all of it, and
    no second matrix of its size. The diagonal never enters, so it cannot drown smaller entries by rounding.
    """
    total = np.zeros(len(vectors))
    for start in range(0, len(gram), SIDE):
        inside = slice(start, start + SIDE)
        tile = gram[inside, inside].copy()
        np.fill_diagonal(tile, 0.0)
        products = 2 * (vectors[:, :start] @ gram[inside, :start].T) if start else 0.0
        total += np.einsum("pu,pu->p", products + vectors[:, inside] @ tile, vectors[:, inside])
    return total


def voter_forms(gram: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the sum over pairs of different voters, for each row of numbers of voters."""
    total, shared = off_diagonal_forms(gram, vectors), np.flatnonzero(vectors.max(axis=0, initial=0) > 1)
    if len(shared):
        several = vectors[:, shared]
        total += (several * (several - 1)) @ np.diagonal(gram)[shared]
    return total
