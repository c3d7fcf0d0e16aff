"""Ballots into clusters: a tree of those in view, cut; what each cluster wants, and what sets it apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_uppercase
from typing import cast

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel.data import Data
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings
from rankernel.reports.distinct_ballots import Ballots, View
from rankernel.reports.marks import Mark, marks_of
from rankernel.reports.number_of_clusters import Evidence, number_of_clusters
from rankernel.reports.placement import Placement
from rankernel.reports.standing import standings


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cluster."""

    name: str  # a letter; A is the largest
    mark: Mark  # what sets it apart; no two clusters have the same
    n_voters: int  # how many voters are in it
    share: float  # their share of all voters
    consensus: Rankings  # one ranking that speaks for it, one row
    shift: FloatArray  # (n_items,): how much lower each item stands than among all voters; negative: higher
    ballot: Data  # the most common ballot, one row, its count the voters who gave it


@dataclass(frozen=True, eq=False)
class Clustering:
    """A tree of ballots and the clusters it was cut into."""

    tree: FloatArray  # (n_shown - 1, 4): the linkage matrix of the ballots in view
    labels: Indices  # (n_ballots,): the cluster of each ballot, in view or not
    shown: Indices  # (n_shown,): the cluster of each ballot in view: the leaves of the tree
    clusters: list[Cluster]  # the largest first; a single one where no groups were found
    evidence: Evidence | None  # what speaks for their number; None where it was asked for
    rule: str  # what the consensus of a cluster is, in words


def cluster_ballots(
    ballots: Ballots,
    view: View,
    placement: Placement,
    linkage: str,
    n_clusters: int | None,
    method: MethodLike = "auto",
    seed: int = 0,
) -> Clustering | None:
    """Return the clusters, or None where there is only one ballot."""
    from rankernel.learn.hierarchy import Linkage, flat_clusters, gram_distances, weighted_linkage

    if len(view.rows) < 2:
        return None
    tree = weighted_linkage(gram_distances(placement.gram), view.counts, cast(Linkage, linkage))
    evidence = None if n_clusters else number_of_clusters(ballots, placement.kernel, method, linkage, seed)
    wanted = n_clusters or cast(Evidence, evidence).n_clusters
    labels = everywhere(flat_clusters(tree, wanted), view, placement)
    labels = by_size(labels, ballots.rankings.counts)
    rule, consensus = consensus_rule(placement.kernel, ballots)
    clusters = describe_clusters(ballots, labels, consensus)
    return Clustering(tree, labels, labels[view.rows], clusters, evidence, rule)


def check_number(n_clusters: int | None, ballots: Ballots, view: View) -> None:
    """Refuse more clusters than there are ballots in the tree."""
    n_different, n_leaves = len(ballots.rankings), len(view.rows)
    if n_clusters is None or n_clusters <= n_leaves or n_different == 1:
        return
    if n_clusters > n_different:
        raise RankingError(f"n_clusters={n_clusters} is more than there are different rankings ({n_different:,})")
    raise RankingError(
        f"n_clusters={n_clusters} is more than there are different rankings in the tree ({n_leaves:,}), which is that "
        f"of {view.n_voters:,} voters taken at random; take fewer"
    )


def consensus_rule(kernel: Kernel, ballots: Ballots) -> tuple[str, Callable[[Data], Rankings]]:
    """Return what stands for a cluster, in words, and what makes it: by the kernel itself, if there is a way back."""
    from rankernel.models.consensus import borda, kernel_consensus
    from rankernel.models.decoding import has_decoder

    if ballots.approving is not None:
        return "the order of its approvals", lambda own: in_order(standings(own, ballots.approving), own.items)
    if has_decoder(kernel, ballots.rankings.n_items):
        return "the ranking nearest to its mean", lambda own: kernel_consensus(own, kernel).ranking
    return "the order of its mean places", lambda own: borda(own).ranking


def in_order(values: FloatArray, items: tuple[str, ...]) -> Rankings:
    """Return the ranking of items by some values, the smallest first, equal ones tied."""
    return Rankings._trusted(np.unique(values, return_inverse=True)[1].astype(np.int32)[None], items)


def everywhere(shown: Indices, view: View, placement: Placement) -> Indices:
    """Return the cluster of every ballot: those that are not in view go to the nearest mean."""
    features = placement.features
    if features is None:
        return shown
    weights = np.equal.outer(np.arange(int(shown.max()) + 1), shown) * view.counts
    means = weights @ features[view.rows] / weights.sum(axis=1, keepdims=True)
    squares = (means**2).sum(axis=1) - features @ (2 * means.T)
    labels: Indices = np.argmin(squares, axis=1)
    labels[view.rows] = shown
    return labels


def by_size(labels: Indices, counts: IntArray) -> Indices:
    """Return the same clusters numbered by their voters, the largest first."""
    order = np.argsort(-np.bincount(labels, counts), kind="stable")
    place: Indices = np.argsort(order)
    return place[labels]


def describe_clusters(ballots: Ballots, labels: Indices, consensus: Callable[[Data], Rankings]) -> list[Cluster]:
    """Return what each cluster wants."""
    rankings, approving = ballots.rankings, ballots.approving
    overall, clusters = standings(rankings, approving), []
    parts = [rankings[np.flatnonzero(labels == number)] for number in range(int(labels.max()) + 1)]
    for number, (own, mark) in enumerate(zip(parts, marks_of(parts, approving), strict=True)):
        clusters.append(
            Cluster(
                letter(number),
                mark,
                own.n_voters,
                own.n_voters / rankings.n_voters,
                consensus(own),
                standings(own, approving) - overall,
                own[int(np.argmax(own.counts))],
            )
        )
    return clusters


def letter(number: int) -> str:
    """Return A, B, ..., Z, A2, B2, ..."""
    again, place = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(again + 1) if again else "")
