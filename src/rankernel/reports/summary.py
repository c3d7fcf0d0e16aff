"""Everything that a report tells, as numbers: ballots, where they stand, clusters, comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rankernel._utils.arrays import FloatArray, Indices, Mask
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.reports.clustering import Clustering, check_number, cluster_ballots
from rankernel.reports.comparisons import Comparisons, compare_groups, groups_to_compare
from rankernel.reports.distinct_ballots import Ballots, View, distinct_ballots
from rankernel.reports.majorities import BestOrder, Majorities, count_majorities, find_best_order
from rankernel.reports.placement import Placement, place_ballots, view_within
from rankernel.reports.source import Source
from rankernel.reports.standing import approved_counts, first_shares, mean_places, says_which
from rankernel.reports.wording import Wording

MOST_ITEMS = 3000  # every two of which are compared


@dataclass(frozen=True)
class Settings:
    """How a report is made.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    method : "auto" or a method object
        How Gram matrices are computed.
    n_clusters : int, optional
        How many clusters; as many as there are more of than chance makes, if left out.
    linkage : str
        How clusters are joined.
    n_permutations : int
        How many permutations stand behind a p-value.
    rng : int
        Where all randomness comes from.
    compare : bool
        Whether to compare groups, where there are any.
    groups : tuple of str
        The groups to compare; all if there are none here.
    """

    kernel: Kernel = field(default_factory=lambda: Mallows(nu="median"))
    method: MethodLike = "auto"
    n_clusters: int | None = None
    linkage: str = "ward"
    n_permutations: int = 999
    seed: int = 0
    compare: bool = True
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Summary:
    """What was found."""

    source: Source  # what it is about
    settings: Settings  # how it was made
    ballots: Ballots
    view: View
    placement: Placement
    clustering: Clustering | None  # None where there is only one ballot
    comparisons: Comparisons | None  # None where there are no groups to compare
    places: FloatArray  # the mean places of the items, from 1
    shares: FloatArray  # the share of voters who put each item first or, of approvals, who approve of it
    notes: list[str]  # warnings that came up

    @cached_property
    def majorities(self) -> Majorities:
        """What voters say of every two items; found when it is asked for, as it takes long for many items."""
        return count_majorities(self.ballots.rankings)

    @cached_property
    def best_order(self) -> BestOrder:
        """The order that contradicts voters least; found when it is asked for."""
        return find_best_order(self.majorities, self.settings.seed)

    @property
    def order(self) -> Indices:
        """The items in the order that contradicts voters least, the best first."""
        return self.best_order.order

    @property
    def says(self) -> Mask:
        """Which ballots put some item before another."""
        return says_which(self.ballots.rankings)

    @property
    def words(self) -> Wording:
        """What things are called."""
        return self.source.words

    @property
    def grouped(self) -> Clustering | None:
        """The clusters, where there are several."""
        return self.clustering if self.clustering and len(self.clustering.clusters) > 1 else None


def n_steps(source: Source, settings: Settings) -> int:
    """Return how often a summary says that it goes on."""
    return 4 + (source.groups is not None and settings.compare)


def summarize(source: Source, settings: Settings | None = None, step: Callable[[str], Any] | None = None) -> Summary:
    """Return what there is to tell of some rankings; ``step`` is called with the name of each step as it begins."""
    settings, step = settings or Settings(), step or (lambda _: None)
    method, seed = settings.method, settings.seed
    n_items = source.rankings.n_items
    if n_items > MOST_ITEMS:
        problem = f"{source.origin or source.title} has {n_items:,} items, and every two of them are compared"
        raise RankingError(f"{problem}, of at most {MOST_ITEMS:,}; leave out items that few name")
    groups = groups_to_compare(source, settings.groups)  # what is wrong is said before computing
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        step("Ballots")
        ballots = distinct_ballots(source)
        rankings = ballots.rankings
        step("Kernel values and map")
        kernel = settings.kernel.resolve(rankings)
        view = view_within(ballots, kernel, method, seed)
        check_number(settings.n_clusters, ballots, view)
        placement = place_ballots(ballots, view, kernel, method, seed)
        step("Clusters")
        clustering = cluster_ballots(ballots, view, placement, settings.linkage, settings.n_clusters, method, seed)
        comparisons = None
        if source.groups is not None and settings.compare:
            step("Comparing groups")
            comparisons = compare_groups(ballots, groups, kernel, settings)
        step("Drawing")
    return Summary(
        source,
        settings,
        ballots,
        view,
        placement,
        clustering,
        comparisons,
        mean_places(rankings),
        shares_of(ballots),
        list(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def shares_of(ballots: Ballots) -> FloatArray:
    """Return the share of voters who put each item first, of those who say; or, of approvals, of all who approve."""
    rankings = ballots.rankings
    if ballots.approving is None:
        return first_shares(rankings)
    return approved_counts(rankings, ballots.approving) / rankings.n_voters
