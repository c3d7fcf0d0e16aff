"""The analysis behind a report: ballots, standing of the items, map, clusters and comparisons of groups."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, Indices, Mask
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.reports.clustering import Clustering, check_n_clusters, cluster_ballots
from rankernel.reports.embedding import Embedding, choose_view, embed_ballots
from rankernel.reports.groups import Comparisons, compare_groups, groups_to_compare
from rankernel.reports.source import Ballots, Source, View, distinct_ballots
from rankernel.reports.standing import (
    Contests,
    KemenyRanking,
    approved_counts,
    count_contests,
    find_kemeny_ranking,
    first_shares,
    has_preference,
    mean_positions,
)
from rankernel.reports.text import Wording

MAX_ITEMS = 3000  # above, pairs of items are not compared
MAX_BALLOTS = 1500  # on the map and in the dendrogram


@dataclass(frozen=True)
class Settings:
    """The options of a report; see :func:`rankernel.report`."""

    kernel: Kernel = field(default_factory=lambda: Mallows(nu="median"))
    method: MethodLike = "auto"
    n_clusters: int | None = None
    linkage: str = "ward"
    n_permutations: int = 999
    compare: tuple[str, ...] | None = None  # names of the groups to compare: all if None, none if empty
    max_ballots: int = MAX_BALLOTS
    rng: int = 0


@dataclass(frozen=True, eq=False)
class Summary:
    """The results that a report shows."""

    source: Source
    settings: Settings
    ballots: Ballots
    view: View
    embedding: Embedding
    clustering: Clustering | None  # None if there is only one distinct ballot
    comparisons: Comparisons | None  # None without groups to compare
    notes: list[str]  # messages of warnings

    @cached_property
    def contests(self) -> Contests:
        """The head-to-head contests; computed on access, as many items take long."""
        return count_contests(self.ballots.rankings)

    @cached_property
    def kemeny(self) -> KemenyRanking:
        """The Kemeny ranking; computed on access."""
        return find_kemeny_ranking(self.contests, self.settings.rng)

    @cached_property
    def positions(self) -> FloatArray:
        """The mean position of each item, from 1."""
        return mean_positions(self.ballots.rankings)

    @cached_property
    def shares(self) -> FloatArray:
        """The share of voters with each item first, or of all voters who approve of it."""
        rankings, share = self.ballots.rankings, self.ballots.approve_all_share
        return first_shares(rankings) if share is None else approved_counts(rankings, share) / rankings.n_voters

    @property
    def has_preference(self) -> Mask:
        """Whether each ballot ranks some item above another."""
        return has_preference(self.ballots.rankings)

    @property
    def wording(self) -> Wording:
        """The nouns of the report."""
        return self.source.wording

    @property
    def labels(self) -> Indices:
        """The cluster of each ballot."""
        if self.clustering is None:
            return np.zeros(len(self.ballots.rankings), dtype=np.intp)
        return self.clustering.labels

    @property
    def grouped(self) -> Clustering | None:
        """The clustering if it has several clusters."""
        return self.clustering if self.clustering and len(self.clustering.clusters) > 1 else None


def compares(source: Source, settings: Settings) -> bool:
    """Return whether groups are compared."""
    return source.groups is not None and settings.compare != ()


def n_steps(source: Source, settings: Settings) -> int:
    """Return the number of steps of :func:`summarize`, for a progress bar."""
    return 4 + compares(source, settings)


def summarize(source: Source, settings: Settings | None = None, step: Callable[[str], Any] | None = None) -> Summary:
    """Return the results for a report; ``step`` is called with the name of each step as it begins."""
    settings, step = settings or Settings(), step or (lambda _: None)
    method, rng, n_items = settings.method, settings.rng, source.rankings.n_items
    if n_items > MAX_ITEMS:
        raise RankingError(
            f"{source.origin or source.title} has {n_items:,} items, and all pairs are compared, of at most "
            f"{MAX_ITEMS:,} items; leave out rarely ranked items"
        )
    groups = groups_to_compare(source, settings.compare)  # raises before anything is computed
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        step("Ballots")
        ballots = distinct_ballots(source)
        step("Kernel values and map")
        kernel = settings.kernel.resolve(ballots.rankings)
        view = choose_view(ballots, kernel, method, settings.max_ballots, rng)
        check_n_clusters(settings.n_clusters, ballots, view)
        embedding = embed_ballots(ballots, view, kernel, method, rng)
        step("Clusters")
        clustering = cluster_ballots(ballots, view, embedding, settings.linkage, settings.n_clusters, method, rng)
        comparisons = None
        if compares(source, settings):
            step("Comparing groups")
            comparisons = compare_groups(ballots, groups, kernel, settings)
        step("Drawing")
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    return Summary(source, settings, ballots, view, embedding, clustering, comparisons, notes)
