"""Everything that a report tells, as numbers: ballots, embedding, clusters, comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel.gram.methods import MethodLike
from rankernel.kernels import Kernel, Mallows
from rankernel.report.ballots import Ballots, View, distinct_ballots
from rankernel.report.clusters import Clustering, clustered, first_shares, mean_places
from rankernel.report.comparisons import Comparison, all_compared, testable
from rankernel.report.embedding import Embedding, FloatArray, bearable_view, embedded
from rankernel.report.source import Source

__all__ = ["Settings", "Study", "n_steps", "studied"]


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
class Study:
    """What was found.

    Attributes
    ----------
    source, settings
        What it is about, and how it was made.
    ballots, view, embedding, clustering, comparisons
        The parts; ``clustering`` is None where there is only one ballot.
    order : array
        The items by their mean places, the best first.
    places : array
        Their mean places, from 1.
    firsts : array
        The share of voters who put each item first.
    preferences : array of shape (n_items, n_items)
        The share of voters who prefer one item to another.
    notes : list of str
        Warnings that came up.
    """

    source: Source
    settings: Settings
    ballots: Ballots
    view: View
    embedding: Embedding
    clustering: Clustering | None
    comparisons: list[Comparison]
    order: np.ndarray[Any, np.dtype[np.intp]]
    places: FloatArray
    firsts: FloatArray
    preferences: FloatArray
    notes: list[str]

    @property
    def winner(self) -> int | None:
        """The item that more than half prefer to each other one, if there is such an item (Condorcet)."""
        beats = self.preferences > 0.5
        winners = np.flatnonzero(beats.sum(axis=1) == len(beats) - 1)
        return int(winners[0]) if len(winners) else None


def n_steps(source: Source, settings: Settings) -> int:
    """Return how often a study says that it goes on."""
    groups = testable(distinct_ballots(source)) if source.groups is not None and settings.compare else []
    return 4 + len(groups) * (len(groups) - 1) // 2


def studied(source: Source, settings: Settings | None = None, step: Callable[[str], Any] | None = None) -> Study:
    """Return what there is to tell of some rankings.

    Parameters
    ----------
    source : Source
        The rankings.
    settings : Settings, optional
        How to look at them.
    step : callable, optional
        Called with the name of each step as it begins.
    """
    from rankernel.tasks.consensus import pairwise_preferences

    settings, step = settings or Settings(), step or (lambda _: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        step("Ballots")
        ballots = distinct_ballots(source)
        rankings = ballots.rankings
        step("Kernel values and map")
        kernel = settings.kernel.resolve(rankings)
        view = bearable_view(ballots, kernel, settings.method, settings.seed)
        embedding = embedded(ballots, view, kernel, settings.method, settings.seed)
        step("Clusters")
        clustering = clustered(ballots, view, embedding, settings.linkage, settings.n_clusters)
        step("Comparing groups" if settings.compare else "Drawing")
        comparisons = all_compared(ballots, kernel, settings, step) if settings.compare else []
    places = mean_places(rankings)
    return Study(
        source,
        settings,
        ballots,
        view,
        embedding,
        clustering,
        comparisons,
        np.argsort(places, kind="stable"),
        places,
        first_shares(rankings),
        pairwise_preferences(rankings),
        list(dict.fromkeys(str(warning.message) for warning in caught)),
    )
