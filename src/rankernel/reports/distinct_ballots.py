"""The different ballots of some data, the voters behind each by group, and the ones that pictures can show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import Indices, IntArray
from rankernel._utils.checks import printable
from rankernel.data import Data, rename_items, with_counts
from rankernel.reports.source import Source

MOST_SHOWN = 1500  # ballots in a picture, and leaves of a tree


@dataclass(frozen=True, eq=False)
class Ballots:
    """Different ballots."""

    rankings: Data  # one row for each different ballot; its count is the number of voters
    groups: tuple[str, ...]  # names of the groups, none if they are not known
    by_group: IntArray  # (n_ballots, n_groups): how many voters of each group gave each ballot
    # Of approvals, the share of those who approve of all among those who put no item before another; else None.
    approving: float | None = None

    def of_group(self, group: int) -> Data:
        """Return the ballots of one group."""
        rows = np.flatnonzero(self.by_group[:, group])
        return with_counts(self.rankings[rows], self.by_group[rows, group])


@dataclass(frozen=True, eq=False)
class View:
    """The ballots that pictures show: all of them, or those of some voters taken at random."""

    rows: Indices  # which ballots
    counts: IntArray  # how many of the voters who are shown gave each
    sampled: bool

    @property
    def n_voters(self) -> int:
        """How many voters are shown."""
        return int(self.counts.sum())


def distinct_ballots(source: Source) -> Ballots:
    """Return the different ballots of a source."""
    rankings = source.rankings
    different = rename_items(rankings, unambiguous(rankings.items)).unique()
    names, codes = source.named_groups
    by_group = np.zeros((len(different), len(names)), dtype=np.int64)
    if names:
        np.add.at(by_group, (rankings.unique_indices()[1], codes), rankings.counts)
    return Ballots(different, names, by_group, source.approving)


def unambiguous(items: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that can be shown anywhere; those that would become equal get a number."""
    shown: dict[str, None] = {}
    for item in items:
        name, number = printable(item), 1
        while (unique := name if number == 1 else f"{name} ({number})") in shown:
            number += 1
        shown[unique] = None
    return tuple(shown)


def view_of(ballots: Ballots, seed: int, most: int = MOST_SHOWN) -> View:
    """Return all ballots if pictures can hold them, else those of so many voters taken at random."""
    counts = ballots.rankings.counts
    if len(counts) <= most:
        return View(np.arange(len(counts)), counts, sampled=False)
    return View(*some_voters(counts, most, seed), sampled=True)


def some_voters(counts: IntArray, n_voters: int, seed: int) -> tuple[Indices, IntArray]:
    """Return the rows of some voters taken at random, each at most once, and how many of them gave each row."""
    if counts.sum() <= n_voters:
        return np.arange(len(counts)), counts
    rng = np.random.default_rng([seed, 1])
    voters = rng.choice(int(counts.sum()), n_voters, replace=False)  # by their numbers: counts are not written out
    rows, taken = np.unique(np.searchsorted(np.cumsum(counts), voters, side="right"), return_counts=True)
    return rows, np.asarray(taken, dtype=np.int64)
