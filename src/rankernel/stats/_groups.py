"""Voters in groups: the dispersion between the groups, random divisions of the voters, and what the moments say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel._utils.checks import printable
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.memory import check_task, check_voters
from rankernel.data import Data, drop_item, with_counts
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.stats._moments import CentredVoters, Moments, permutation_moments
from rankernel.stats._permutations import (
    ENTRIES,
    TERM,
    TIED,
    Divisions,
    Null,
    Permutations,
    Shuffles,
    check_divisible,
    off_diagonal_forms,
    probability_of,
    voter_forms,
)
from rankernel.stats._voters import Ballots, group_codes, plan_for_test, voter_gram

FEW_ROWS = 64  # of a Gram matrix, so that they stay in the cache
VOTER_BYTES = 64
NO_MOMENTS = Moments(0.0, 0.0, 0.0)  # where no tail is asked for
MATRICES = ("gram", "centred")  # of voters, which can be computed again


@dataclass(frozen=True, eq=False)
class GroupedVoters:
    """The voters of some groups by their ballots, and the kernel between the ballots.

    Attributes
    ----------
    data : Rankings or Preferences
        One row for each row of the Gram matrix; its counts are the voters of all groups.
    names : tuple of str
        The groups.
    table : array of shape (n_strata, n_groups, n_rows)
        How many voters there are of each stratum, group and row.
    kernel : Kernel or None
        The kernel, its width a number, if it is known.
    plan : Plan or None
        How kernel values are computed, if they were not given.
    given : array or None
        The Gram matrix, if it was.
    n_jobs : int or None
        How many tiles of the Gram matrix to compute at once.
    places : array or None
        Which rows of the plan these are, if not all.
    """

    data: Data
    names: tuple[str, ...]
    table: IntArray
    kernel: Kernel | None
    plan: Plan | None
    given: FloatArray | None = None
    n_jobs: int | None = None
    places: Indices | None = None

    @classmethod
    def planned(
        cls,
        data: Data,
        groups: IntArray,
        names: tuple[str, ...],
        strata: IntArray,
        kernel: Kernel,
        method: MethodLike,
        n_jobs: int | None = None,
    ) -> GroupedVoters:
        """Return the voters of groups, ``groups`` and ``strata`` a number for each row."""
        plan = plan_for_test(kernel, data, method)
        return cls.counted(Ballots.of(data, plan), groups, names, strata, plan, n_jobs)

    @classmethod
    def counted(
        cls,
        ballots: Ballots,
        groups: IntArray,
        names: tuple[str, ...],
        strata: IntArray,
        plan: Plan,
        n_jobs: int | None = None,
    ) -> GroupedVoters:
        """Return the voters of groups by their ballots."""
        table = table_of(ballots, groups, strata, len(names))
        return cls(ballots.data, names, table, plan.kernel, plan, n_jobs=n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the matrix: it can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name not in MATRICES}

    @cached_property
    def gram(self) -> FloatArray:
        """The kernel between two voters by their rows, computed when it is first needed."""
        if self.given is not None:
            return self.given
        assert self.plan is not None
        check_task("a test of groups", len(self.plan._X))
        return voter_gram(self.plan, self.n_jobs)

    @cached_property
    def centred(self) -> CentredVoters:
        """The kernel between voters, centred, no voter paired with itself."""
        return CentredVoters.of(self.gram, self.counts, biased=False)

    def forget(self) -> None:
        """Give the memory of the matrix back until it is needed again."""
        for name in MATRICES:
            self.__dict__.pop(name, None)

    @property
    def rows(self) -> Indices:
        """Which rows of the plan these are."""
        return np.arange(len(self.data)) if self.places is None else self.places

    @cached_property
    def by_group(self) -> FloatArray:
        """How many voters of each group stand behind each row: shape (n_groups, n_rows)."""
        return np.asarray(self.table.sum(axis=0), dtype=np.float64)

    @cached_property
    def sizes(self) -> FloatArray:
        """How many voters each group has."""
        return np.asarray(self.by_group.sum(axis=1))

    @property
    def counts(self) -> FloatArray:
        """How many voters stand behind each row."""
        return np.asarray(self.by_group.sum(axis=0))

    def check_sizes(self, least: int) -> None:
        """Refuse groups that are too small for the statistic."""
        small = np.flatnonzero(self.sizes < least)
        if len(small):
            raise RankingError(
                f"of the groups {printable(self.names[small[0]])!r} has {int(self.sizes[small[0]])} voter(s); this "
                f"statistic needs at least {least}: leave the group out, or join it to another"
            )

    def group_sums(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of the kernel between all voters of each two groups, and of each voter with itself."""
        between = self.by_group @ self.gram @ self.by_group.T
        return np.asarray(between), np.asarray(self.by_group @ np.diagonal(self.gram))

    def pair(self, first: int, second: int) -> GroupedVoters:
        """Return two of the groups alone, with the kernel values that they have here."""
        chosen = self.table[:, [first, second]]
        rows = np.flatnonzero(chosen.any(axis=(0, 1)))
        table = chosen[:, :, rows]
        data = with_counts(self.data[rows], table.sum(axis=(0, 1)))
        return GroupedVoters(
            data,
            (self.names[first], self.names[second]),
            table[table.any(axis=(1, 2))],
            self.kernel,
            self.plan,
            self.gram[np.ix_(rows, rows)],
            places=self.rows[rows],
        )

    def without(self, item: int) -> GroupedVoters:
        """Return the same voters, their ballots without one of the items."""
        assert self.plan is not None
        assert self.kernel is not None
        data = drop_item(self.data, item)
        plan = self.kernel.plan(data, method=self.plan.requested)
        row_of = np.arange(len(data)) if plan._rows is None else plan._rows
        table = np.zeros((*self.table.shape[:2], len(plan._X)), dtype=np.int64)
        np.add.at(table.transpose(2, 0, 1), row_of, self.table.transpose(2, 0, 1))
        return GroupedVoters(Ballots.of(data, plan).data, self.names, table, self.kernel, plan, n_jobs=self.n_jobs)

    # ------------------------------------------------------------------ the statistic

    def dispersion(self, biased: bool) -> float:
        """Return the dispersion between the groups."""
        sums, traces = self.group_sums()
        n, own = self.sizes.sum(), 0.0 if biased else 1.0
        total = float(sums.sum() - own * traces.sum())
        return float(self.alike(biased) @ (np.diagonal(sums) - own * traces)) - total / float(n)

    def alike(self, biased: bool) -> FloatArray:
        """Return by what the pairs of voters of each group are multiplied in the dispersion."""
        n = self.sizes.sum()
        return np.asarray(1 / self.sizes if biased else (n - 1) / (n * (self.sizes - 1)))

    def weights(self, biased: bool) -> CentredVoters:
        """Return the kernel between groups whose sum with that of the voters is the dispersion between the groups."""
        return CentredVoters.of(np.diag(self.alike(biased)), self.sizes, biased)

    def moments(self, biased: bool) -> Moments | None:
        """Return the exact moments of the dispersion between the groups, where voters are permuted freely."""
        if len(self.table) > 1:
            return None
        voters = CentredVoters.of(self.gram, self.counts, biased) if biased else self.centred
        return permutation_moments(voters, self.weights(biased))

    def least(self) -> float:
        """Return how likely permutations leave the groups as they are; those of the same size may change names."""
        from scipy.special import gammaln

        strata, groups, rows = np.nonzero(self.table)
        by_group = self.table.transpose(1, 0, 2)
        alike = np.unique(by_group.sum(axis=2), axis=0, return_counts=True)[1]
        same = np.unique(by_group.reshape(len(by_group), -1), axis=0, return_counts=True)[1]
        renamings = float(np.exp(gammaln(alike + 1).sum() - gammaln(same + 1).sum()))
        return renamings * probability_of(strata, groups, rows, self.table[strata, groups, rows])


def table_of(ballots: Ballots, groups: IntArray, strata: IntArray, n_groups: int) -> IntArray:
    """Count the voters by stratum, group and ballot, from the stratum and the group of each row."""
    table = np.zeros((int(strata.max()) + 1, n_groups, len(ballots.data)), dtype=np.int64)
    np.add.at(table, (strata, groups, ballots.of_row), ballots.counts)
    return table


def strata_codes(strata: Any, data: Data) -> IntArray:
    """Return the number of the stratum of each row."""
    return np.zeros(len(data), dtype=np.int64) if strata is None else group_codes(strata, data, "strata")


# ---------------------------------------------------------------------- two groups


class RandomDivisions:
    """The statistic of groups, and that of random divisions of their voters."""

    voters: GroupedVoters
    biased: bool
    statistic: float
    tolerance: float
    per_dispersion: float  # how much of the dispersion between the groups the statistic is

    def draw(self, n_divisions: int) -> FloatArray:
        """Return the statistic of the next divisions."""
        raise NotImplementedError

    def null(self, wanted: Permutations) -> Null:
        """Return the null distribution of the statistic, its moments exact where they are known."""
        known = self.voters.moments(self.biased)
        exact = None if known is None else known.times(self.per_dispersion)
        return Null.drawn(self.draw, self.statistic, self.tolerance, wanted, exact)

    def pvalue(self, wanted: Permutations) -> float:
        """Return the p-value by permutations alone."""
        return Null.drawn(self.draw, self.statistic, self.tolerance, wanted, NO_MOMENTS).pvalue


class TwoGroups(RandomDivisions):
    """The squared discrepancy of two groups."""

    def __init__(self, voters: GroupedVoters, biased: bool, seed: int) -> None:
        self.voters, self.biased = voters, biased
        self.form = Discrepancy(voters.gram, voters.counts, int(voters.sizes[0]), biased)
        self.divisions = Divisions(voters.table, seed)
        self.statistic = float(self.form.of(voters.by_group[:1])[0])
        self.tolerance = TIED * self.form.scale
        self.per_dispersion = float(voters.sizes.sum() / voters.sizes.prod())

    def draw(self, n_divisions: int) -> FloatArray:
        """Return the statistic of the next divisions."""
        return np.concatenate([self.form.of(counts) for counts in self.divisions.draw(n_divisions)])


class Discrepancy:
    """The squared discrepancy as a function of the first sample alone, for fixed voters in all."""

    def __init__(self, gram: FloatArray, both: FloatArray, n_first: int, biased: bool) -> None:
        self.gram, self.both, self.biased = gram, both, biased
        self.m, self.n = n_first, int(both.sum()) - n_first
        self.diagonal = np.diagonal(gram).copy()
        self.sums, absolute = off_diagonal_sums(gram, both)
        self.total = float(both @ self.sums)
        own_pairs = both * both if biased else both * (both - 1)
        self.scale = (absolute + float(own_pairs @ np.abs(self.diagonal))) / both.sum() ** 2
        self.shared = np.flatnonzero(both > 1)

    def of(self, first: FloatArray) -> FloatArray:
        """Return the statistic for each row of numbers of voters of the first sample."""
        within, reach = off_diagonal_forms(self.gram, first), first @ self.sums
        XX, YY, XY = within, self.total - 2 * reach + within, reach - within
        if len(self.shared):  # different voters behind the same row
            x, diagonal = first[:, self.shared], self.diagonal[self.shared]
            y = self.both[self.shared] - x
            XX, YY, XY = XX + (x * (x - 1)) @ diagonal, YY + (y * (y - 1)) @ diagonal, XY + (x * y) @ diagonal
        m, n = self.m, self.n
        if not self.biased:
            return np.asarray(XX / (m * (m - 1)) + YY / (n * (n - 1)) - 2 * XY / (m * n))
        own = first @ self.diagonal
        return np.asarray((XX + own) / m**2 + (YY + self.both @ self.diagonal - own) / n**2 - 2 * XY / (m * n))


def off_diagonal_sums(gram: FloatArray, counts: FloatArray) -> tuple[FloatArray, float]:
    """Return the sum of each row over the voters of other rows, and the sum of the sizes of all entries."""
    sums, absolute = np.empty(len(gram)), 0.0
    for start in range(0, len(gram), FEW_ROWS):
        tile = gram[start : start + FEW_ROWS].copy()
        np.fill_diagonal(tile[:, start:], 0.0)
        sums[start : start + FEW_ROWS] = tile @ counts
        absolute += float(counts[start : start + FEW_ROWS] @ np.abs(tile, out=tile) @ counts)
    return sums, absolute


# ---------------------------------------------------------------------- any number of groups


class ManyGroups(RandomDivisions):
    """The dispersion between groups."""

    def __init__(self, voters: GroupedVoters, biased: bool, seed: int) -> None:
        self.voters, self.biased = voters, biased
        check_divisible(voters.table)
        check_voters(int(voters.sizes.sum()), VOTER_BYTES, "a test of several groups")
        strata, groups, rows = np.nonzero(voters.table)
        times = voters.table[strata, groups, rows]
        self.gram, self.sizes = voters.gram, voters.sizes
        self.groups = np.repeat(groups, times)
        self.shuffles = Shuffles(np.repeat(rows, times), np.repeat(strata, times), seed)
        self.diagonal = np.diagonal(self.gram).copy()
        n = float(self.sizes.sum())
        self.alike = voters.alike(biased)
        sums, absolute = off_diagonal_sums(self.gram, voters.counts)
        shared = voters.counts * (voters.counts - (not biased)) * self.diagonal
        self.constant = (float(voters.counts @ sums) + float(shared.sum())) / n
        self.tolerance = TIED * (absolute + float(np.abs(shared).sum())) / n
        self.statistic = float(self.of_counts(voters.by_group[None])[0])
        self.per_dispersion = 1.0

    @property
    def few_rows(self) -> bool:
        """Whether matrix products are quicker than sums over pairs of voters."""
        return len(self.gram) ** 2 * len(self.sizes) < TERM * float(self.sizes @ self.sizes)

    def draw(self, n_divisions: int) -> FloatArray:
        """Return the statistic of the next divisions."""
        width = len(self.gram) * len(self.sizes) if self.few_rows else len(self.sizes)
        parts = slices(n_divisions, max(ENTRIES // width, 1))
        return np.concatenate([run_interruptibly(self.next, part.stop - part.start) for part in parts])

    def next(self, n_divisions: int) -> FloatArray:
        """Return the statistic of divisions that fit into memory at once."""
        if self.few_rows:
            return self.of_counts(self.shuffles.counts(self.groups, n_divisions, len(self.sizes), len(self.gram)))
        return np.asarray(
            self.shuffles.sums(self.groups, n_divisions, self.gram, self.biased) @ self.alike - self.constant
        )

    def of_counts(self, counts: FloatArray) -> FloatArray:
        """Return the statistic of tables of voters by group and row."""
        flat = counts.reshape(-1, counts.shape[2])
        sums = voter_forms(self.gram, flat)
        if self.biased:
            sums = sums + flat @ self.diagonal
        return np.asarray(sums.reshape(counts.shape[:2]) @ self.alike - self.constant)


def dispersion_of(voters: GroupedVoters, biased: bool, seed: int) -> RandomDivisions:
    """Return the statistic of groups, and its permutations."""
    two = len(voters.names) == 2
    return TwoGroups(voters, biased, seed) if two else ManyGroups(voters, biased, seed)
