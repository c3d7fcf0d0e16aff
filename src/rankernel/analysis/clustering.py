"""Ballots into clusters: a tree of those in view, cut; what each cluster wants, and what sets it apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_uppercase
from typing import cast

import numpy as np

from rankernel.analysis.distinct_ballots import Ballots, View
from rankernel.analysis.majorities import count_majorities
from rankernel.analysis.number_of_clusters import Evidence, number_of_clusters
from rankernel.analysis.placement import Placement
from rankernel.analysis.source import are_approvals
from rankernel.arrays import FloatArray, Indices, IntArray, Mask
from rankernel.data import Data, concat
from rankernel.encoding import FREE
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings

EASILY_SAID = 1.5  # how many times as much a pair of items must set a cluster apart as a first choice, to be its mark


@dataclass(frozen=True)
class Mark:
    """What sets a cluster apart from all other voters."""

    first: str  # an item that it puts first, or before another one
    second: str | None  # the other one
    share: float  # of its voters who say so
    others: float  # of all other voters who do
    approval: bool = False  # whether it approves of the item, rather than putting it first

    def __str__(self) -> str:
        if self.second is not None:
            return f"{self.first} over {self.second}"
        return f"approves {self.first}" if self.approval else f"{self.first} first"


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cluster."""

    name: str  # a letter; A is the largest
    mark: Mark  # what sets it apart; no two clusters have the same
    n_voters: int  # how many voters are in it
    share: float  # their share of all voters
    consensus: Rankings  # one ranking that speaks for it, one row
    shift: FloatArray  # (n_items,): places that each item stands lower than among all voters; negative: higher
    firsts: FloatArray  # (n_items,): the share of voters who put each item first; a tie for the first place is divided
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
    from rankernel.tasks.clusters.dendrogram import Linkage, flat_clusters, weighted_linkage
    from rankernel.tasks.clusters.kernel_distance import gram_distances

    if len(view.rows) < 2:
        return None
    tree = weighted_linkage(gram_distances(placement.gram), view.counts, cast(Linkage, linkage))
    evidence = None if n_clusters else number_of_clusters(ballots, placement.kernel, method, linkage, seed)
    wanted = n_clusters or cast(Evidence, evidence).n_clusters
    labels = everywhere(flat_clusters(tree, min(wanted, len(view.rows))), view, placement)
    labels = by_size(labels, ballots.rankings.counts)
    rule, consensus = consensus_rule(placement.kernel, ballots.rankings.n_items)
    clusters = describe_clusters(ballots.rankings, labels, consensus)
    return Clustering(tree, labels, labels[view.rows], clusters, evidence, rule)


def consensus_rule(kernel: Kernel, n_items: int) -> tuple[str, Callable[[Data], Rankings]]:
    """Return what stands for a cluster, in words, and what makes it: by the kernel itself, if there is a way back."""
    from rankernel.tasks.consensus.aggregation import borda
    from rankernel.tasks.consensus.decoding import has_decoder
    from rankernel.tasks.consensus.kernel_consensus import kernel_consensus

    if has_decoder(kernel, n_items):
        return "the ranking nearest to its mean", lambda own: kernel_consensus(own, kernel).ranking
    return "the order of its mean places", lambda own: borda(own).ranking


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


def describe_clusters(rankings: Data, labels: Indices, consensus: Callable[[Data], Rankings]) -> list[Cluster]:
    """Return what each cluster wants."""
    overall, clusters = mean_places(rankings), []
    parts = [rankings[np.flatnonzero(labels == number)] for number in range(int(labels.max()) + 1)]
    for number, (own, mark) in enumerate(zip(parts, marks_of(parts), strict=True)):
        clusters.append(
            Cluster(
                letter(number),
                mark,
                own.n_voters,
                own.n_voters / rankings.n_voters,
                consensus(own),
                mean_places(own) - overall,
                first_shares(own),
                own[int(np.argmax(own.counts))],
            )
        )
    return clusters


def marks_of(parts: list[Data]) -> list[Mark]:
    """Return what sets each part apart: the first choice, or the pair of items, whose share differs most from others.

    No two parts get the same: what is said most clearly of all parts together is chosen.
    """
    from scipy.optimize import linear_sum_assignment

    items, voters = parts[0].items, np.array([part.n_voters for part in parts], dtype=np.float64)
    approval = are_approvals(concat(parts))
    first = np.stack([approved_counts(part) if approval else first_counts(part) for part in parts])
    if len(parts) == 1:
        best = int(np.argmax(first[0]))
        return [Mark(items[best], None, float(first[0, best] / voters[0]), 0.0, approval)]
    pairs = np.argwhere(~np.eye(len(items), dtype=bool))
    ahead = np.stack([count_majorities(part).ahead[pairs[:, 0], pairs[:, 1]] for part in parts])
    counts = np.concatenate([first, ahead], axis=1)
    shares = counts / voters[:, None]
    others = (counts.sum(axis=0) - counts) / np.maximum(voters.sum() - voters, 1)[:, None]
    clarity = shares - others
    clarity[:, : len(items)] *= EASILY_SAID
    marks = []
    for part, said in zip(*linear_sum_assignment(-clarity), strict=True):
        a, b = (said, None) if said < len(items) else pairs[said - len(items)]
        second = None if b is None else items[b]
        marks.append(Mark(items[a], second, float(shares[part, said]), float(others[part, said]), approval))
    return marks


def letter(number: int) -> str:
    """Return A, B, ..., Z, A2, B2, ..."""
    again, place = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(again + 1) if again else "")


def mean_places(rankings: Data) -> FloatArray:
    """Return the mean place of each item, from 1; tied items share their places."""
    from rankernel.tasks.consensus.aggregation import mean_of_seen

    return mean_of_seen(rankings, "ranks") + (rankings.n_items + 1) / 2


def first_shares(rankings: Data) -> FloatArray:
    """Return the share of voters who put each item first, among those who put some item before another."""
    says = first_items(rankings).any(axis=1)
    return first_counts(rankings) / max(int(rankings.counts[says].sum()), 1)


def first_counts(rankings: Data) -> FloatArray:
    """Return how many voters put each item first; a voter who puts several first is divided among them."""
    first = first_items(rankings)
    return np.asarray(rankings.counts @ (first / np.maximum(first.sum(axis=1, keepdims=True), 1)))


def approved_counts(rankings: Data) -> FloatArray:
    """Return how many voters approve of each item, and not of all."""
    first = first_items(rankings)
    return np.asarray(rankings.counts @ first, dtype=np.float64)


def first_items(rankings: Data) -> Mask:
    """Return which items stand first in each row, none where it puts no item before another.

    In preferences these are the items that are better than some and worse than none.
    """
    if isinstance(rankings, Preferences):
        before = rankings.before
        return np.asarray(before.any(axis=2) & ~before.any(axis=1))
    first: Mask = np.asarray(rankings.ranks == 0)
    says = (rankings.n_buckets > 1) | ((rankings.ranks == FREE).any(axis=1) & first.any(axis=1))
    return np.asarray(first & says[:, None])
