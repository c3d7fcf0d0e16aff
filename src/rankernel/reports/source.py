"""The data of a report: rankings with their names and groups, their distinct ballots, and the sample that is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import Indices, IntArray
from rankernel._utils.checks import printable
from rankernel.data import Data, group_codes, rename_items, with_counts
from rankernel.errors import RankingError
from rankernel.preferences import Preferences
from rankernel.reports.standing import are_approvals, has_preference
from rankernel.reports.text import Wording

UNNAMED = "(none)"  # shown for a group whose name is empty
DOMINANT_SHARE = 0.6  # of the voters of a ballot, to colour it by their group


@dataclass(frozen=True, eq=False)
class Source:
    """Rankings with their description and the group of each row."""

    rankings: Data  # at least one ranking
    title: str = "Rankings"
    origin: str = ""  # such as the name of a file
    description: str = ""
    group_name: str = ""  # what the groups are, such as "district"; empty without groups
    groups: NDArray[np.str_] | None = None  # group of each row
    unlisted: str = "last"  # how unlisted items were read
    columns: dict[str, NDArray[np.str_]] = field(default_factory=dict)  # other columns, such as identifiers
    noun: str = "item"  # what is ranked
    voter: str = "voter"  # who ranks
    n_approve_all: int | None = None  # of approval ballots: number of voters who approve of all items, if known

    def __post_init__(self) -> None:
        if not len(self.rankings):
            raise RankingError(f"{printable(self.origin or self.title)} has no rankings")
        if self.groups is not None and len(self.groups) != len(self.rankings):
            raise RankingError(f"there are {len(self.groups)} groups for {len(self.rankings)} rankings; give one each")

    @cached_property
    def named_groups(self) -> tuple[tuple[str, ...], IntArray]:
        """The names of the groups in natural order, and the group of each row as an index."""
        if self.groups is None:
            return (), np.zeros(len(self.rankings), dtype=np.int64)
        distinct, codes = np.unique(self.groups, return_inverse=True)
        names, numbers = group_codes(np.array([printable(name) or UNNAMED for name in distinct.tolist()]))
        return names, numbers[codes.ravel()]

    @cached_property
    def wording(self) -> Wording:
        """The nouns of the report."""
        return Wording(self.noun, self.voter, are_approvals(self.rankings))

    @property
    def approve_all_share(self) -> float | None:
        """Of approval ballots, the share that approves of all items among those without a preference; else None.

        Ballots without a preference are taken to approve of no item if the data do not tell.
        """
        if not self.wording.approvals:
            return None
        without = int(self.rankings.counts[~has_preference(self.rankings)].sum())
        return min((self.n_approve_all or 0) / max(without, 1), 1.0)

    @property
    def reading(self) -> str:
        """How unlisted items were read, as a sentence fragment."""
        if isinstance(self.rankings, Preferences):
            return self.wording.say("reading_pairs")
        if self.rankings.is_full():
            return self.wording.say("reading_full")
        return self.wording.say("reading_free" if self.unlisted == "free" else "reading_last")


@dataclass(frozen=True, eq=False)
class Ballots:
    """The distinct ballots of a source."""

    rankings: Data  # one row for each distinct ballot; its count is the number of voters
    groups: tuple[str, ...]  # names of the groups, empty without groups
    by_group: IntArray  # (n_ballots, n_groups): number of voters of each group who gave each ballot
    approve_all_share: float | None = None  # see Source

    def of_group(self, group: int) -> Data:
        """Return the ballots of one group."""
        rows = np.flatnonzero(self.by_group[:, group])
        return with_counts(self.rankings[rows], self.by_group[rows, group])

    def members(self, labels: Indices) -> IntArray:
        """Return the number of voters of each group in each cluster, (n_clusters, n_groups)."""
        return np.stack([self.by_group[labels == number].sum(axis=0) for number in range(int(labels.max()) + 1)])

    def dominant_groups(self) -> Indices:
        """Return the group of more than 60% of the voters of each ballot, -1 for none."""
        if not self.groups:
            return np.full(len(self.rankings), -1)
        dominant = self.by_group.max(axis=1) > DOMINANT_SHARE * self.by_group.sum(axis=1)
        return np.where(dominant, self.by_group.argmax(axis=1), -1)


def distinct_ballots(source: Source) -> Ballots:
    """Return the distinct ballots of a source."""
    rankings = source.rankings
    distinct = rename_items(rankings, printable_names(rankings.items)).unique()
    names, codes = source.named_groups
    by_group = np.zeros((len(distinct), len(names)), dtype=np.int64)
    if names:
        np.add.at(by_group, (rankings.unique_indices()[1], codes), rankings.counts)
    return Ballots(distinct, names, by_group, source.approve_all_share)


def printable_names(items: tuple[str, ...]) -> tuple[str, ...]:
    """Return printable names; those that would become equal get a number."""
    shown: dict[str, None] = {}
    for item in items:
        name, number = printable(item), 1
        while (unique := name if number == 1 else f"{name} ({number})") in shown:
            number += 1
        shown[unique] = None
    return tuple(shown)


@dataclass(frozen=True, eq=False)
class View:
    """The ballots that pictures show: all of them, or those of a random sample of voters."""

    rows: Indices  # indices of the ballots
    counts: IntArray  # number of sampled voters who gave each
    sampled: bool

    @property
    def n_voters(self) -> int:
        """The number of voters shown."""
        return int(self.counts.sum())


def view_of(ballots: Ballots, limit: int, seed: int) -> View:
    """Return all ballots if there are at most ``limit``, else those of ``limit`` voters sampled at random."""
    counts = ballots.rankings.counts
    if len(counts) <= limit:
        return View(np.arange(len(counts)), counts, sampled=False)
    return View(*sample_voters(counts, limit, np.random.default_rng([seed, 1])), sampled=True)


def sample_voters(counts: IntArray, n_voters: int, rng: np.random.Generator) -> tuple[Indices, IntArray]:
    """Return the rows of voters sampled without replacement, and the number of sampled voters of each row."""
    if counts.sum() <= n_voters:
        return np.arange(len(counts)), counts
    voters = rng.choice(int(counts.sum()), n_voters, replace=False)  # voters as indices into the cumulated counts
    rows, sampled = np.unique(np.searchsorted(np.cumsum(counts), voters, side="right"), return_counts=True)
    return rows, np.asarray(sampled, dtype=np.int64)
