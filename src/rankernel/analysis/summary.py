"""Everything that a report tells, as numbers: ballots, where they stand, clusters, comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel.analysis.clustering import Clustering, cluster_ballots, first_shares, mean_places
from rankernel.analysis.comparisons import Comparison, compare_groups, groups_to_compare
from rankernel.analysis.distinct_ballots import Ballots, View, distinct_ballots
from rankernel.analysis.placement import Placement, place_ballots, view_within
from rankernel.analysis.source import Source
from rankernel.arrays import FloatArray
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows


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
        How many clusters; found from the tree if left out.
    linkage : str
        How clusters are joined.
    n_permutations : int
        How many permutations stand behind a p-value.
    seed : int
        Where all randomness comes from.
    compare : bool
        Whether to compare groups, where there are any.
    """

    kernel: Kernel = field(default_factory=lambda: Mallows(nu="median"))
    method: MethodLike = "auto"
    n_clusters: int | None = None
    linkage: str = "ward"
    n_permutations: int = 999
    seed: int = 0
    compare: bool = True


@dataclass(frozen=True, eq=False)
class Summary:
    """What was found."""

    source: Source  # what it is about
    settings: Settings  # how it was made
    ballots: Ballots
    view: View
    placement: Placement
    clustering: Clustering | None  # None where there is only one ballot
    comparisons: list[Comparison]
    order: np.ndarray[Any, np.dtype[np.intp]]  # the items by their mean places, the best first
    places: FloatArray  # their mean places, from 1
    firsts: FloatArray  # the share of voters who put each item first
    preferences: FloatArray  # (n_items, n_items): the share of voters who prefer one item to another
    notes: list[str]  # warnings that came up

    @property
    def winner(self) -> int | None:
        """The item that more than half prefer to each other one, if there is such an item (Condorcet)."""
        beats = self.preferences > 0.5
        winners = np.flatnonzero(beats.sum(axis=1) == len(beats) - 1)
        return int(winners[0]) if len(winners) else None


def n_steps(source: Source, settings: Settings) -> int:
    """Return how often a summary says that it goes on."""
    groups = groups_to_compare(distinct_ballots(source)) if source.groups is not None and settings.compare else []
    return 4 + len(groups) * (len(groups) - 1) // 2


def summarize(source: Source, settings: Settings | None = None, step: Callable[[str], Any] | None = None) -> Summary:
    """Return what there is to tell of some rankings; ``step`` is called with the name of each step as it begins."""
    from rankernel.tasks.consensus.aggregation import pairwise_preferences

    settings, step = settings or Settings(), step or (lambda _: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        step("Ballots")
        ballots = distinct_ballots(source)
        rankings = ballots.rankings
        step("Kernel values and map")
        kernel = settings.kernel.resolve(rankings)
        view = view_within(ballots, kernel, settings.method, settings.seed)
        placement = place_ballots(ballots, view, kernel, settings.method, settings.seed)
        step("Clusters")
        clustering = cluster_ballots(ballots, view, placement, settings.linkage, settings.n_clusters)
        step("Comparing groups" if settings.compare else "Drawing")
        comparisons = compare_groups(ballots, kernel, settings, step) if settings.compare else []
    places = mean_places(rankings)
    return Summary(
        source,
        settings,
        ballots,
        view,
        placement,
        clustering,
        comparisons,
        np.argsort(places, kind="stable"),
        places,
        first_shares(rankings),
        pairwise_preferences(rankings),
        list(dict.fromkeys(str(warning.message) for warning in caught)),
    )
