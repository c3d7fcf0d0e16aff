"""Clusters of ballots: the dendrogram of those shown, cut; the consensus of each cluster and what distinguishes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_uppercase
from typing import cast

import numpy as np

from rankernel._utils import FloatArray, Indices, IntArray
from rankernel.data import Data
from rankernel.errors import Argument, RankingError
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings
from rankernel.reports.embedding import Embedding
from rankernel.reports.number_of_clusters import Evidence, cut_tree, number_of_clusters, tree_of
from rankernel.reports.source import Ballots, View
from rankernel.reports.standing import approved_counts, count_contests, first_counts, standings
from rankernel.reports.text import Wording, ballot_text

# Weights of the differences in shares by which a cluster is named: a first choice is easier to read than a pair, and
# the most common ballot, which exists for every cluster, is the last resort.
FIRST_CHOICE_WEIGHT = 1.5
BALLOT_WEIGHT = 0.1


@dataclass(frozen=True)
class Distinction:
    """The preference that distinguishes a cluster from all other voters."""

    label: str  # in a few words
    kind: str  # "first", "pair" or "ballot"
    first: str  # the item ranked first, or above the second; or the text of a ballot
    second: str  # the other item of a pair
    share: float  # share of the cluster with this preference
    others: float  # share of all other voters


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cluster of voters."""

    name: str  # a letter; A is the largest cluster
    distinction: Distinction
    n_voters: int
    share: float  # of all voters
    consensus: Rankings  # one row
    shift: FloatArray  # (n_items,): mean position less that among all voters; negative is better
    ballot: Data  # the most common ballot, one row; its count is the number of its voters

    @property
    def title(self) -> str:
        """The letter and the distinction of the cluster."""
        return f"{self.name} · {self.distinction.label}"

    @property
    def consensus_order(self) -> list[tuple[int, str]]:
        """The items of the consensus in order with their positions; tied items have the first of their positions."""
        ranks, items = self.consensus.ranks[0], self.consensus.items
        return [(1 + int((ranks < ranks[i]).sum()), items[i]) for i in np.argsort(ranks, kind="stable").tolist()]


@dataclass(frozen=True, eq=False)
class Clustering:
    """A dendrogram of ballots and the clusters it was cut into."""

    tree: FloatArray  # (n_shown - 1, 4): linkage matrix of the ballots shown
    labels: Indices  # (n_ballots,): cluster of each ballot, shown or not
    shown: Indices  # (n_shown,): cluster of each ballot shown, the leaves of the tree
    clusters: list[Cluster]  # the largest first; a single one if no clusters were found
    evidence: Evidence | None  # None if the number of clusters was given
    consensus_rule: str  # name of the sentence that describes the consensus


def cluster_ballots(
    ballots: Ballots,
    view: View,
    embedding: Embedding,
    linkage: str,
    n_clusters: int | None,
    method: MethodLike,
    seed: int,
) -> Clustering | None:
    """Return the clusters, or None if there is only one distinct ballot."""
    if len(view.rows) < 2:
        return None
    tree = tree_of(embedding.gram, view.counts, linkage)
    evidence = None if n_clusters else number_of_clusters(ballots, embedding.kernel, method, linkage, seed)
    k = n_clusters or cast(Evidence, evidence).n_clusters
    labels = by_size(assign_all(cut_tree(tree, k), view, embedding), ballots.rankings.counts)
    rule, consensus = consensus_rule(embedding.kernel, ballots)
    clusters = describe_clusters(ballots, labels, consensus)
    return Clustering(tree, labels, labels[view.rows], clusters, evidence, rule)


def check_n_clusters(n_clusters: int | None, ballots: Ballots, view: View) -> None:
    """Raise if there are fewer ballots in the dendrogram than clusters."""
    n_distinct, n_leaves = len(ballots.rankings), len(view.rows)
    if n_clusters is None or n_clusters <= n_leaves or n_distinct == 1:
        return
    given = Argument("n_clusters", n_clusters)
    if n_clusters > n_distinct:
        raise RankingError(given, f" exceeds the number of distinct rankings, {n_distinct:,}; give a smaller number")
    raise RankingError(
        given,
        f" exceeds the number of distinct rankings in the dendrogram, {n_leaves:,} of a random sample of "
        f"{view.n_voters:,} voters; give a smaller number",
    )


def consensus_rule(kernel: Kernel, ballots: Ballots) -> tuple[str, Callable[[Data], Rankings]]:
    """Return the name and the function of the consensus: by the kernel where its mean embedding can be decoded."""
    from rankernel.models.consensus import borda, common_statistic, kernel_consensus

    share = ballots.approve_all_share
    if share is not None:
        return "consensus_approvals", lambda members: ranking_by(standings(members, share), members.items)
    if common_statistic(kernel, ballots.rankings.n_items) is not None:
        return "consensus_kernel", lambda members: kernel_consensus(members, kernel).ranking
    return "consensus_borda", lambda members: borda(members).ranking


def ranking_by(values: FloatArray, items: tuple[str, ...]) -> Rankings:
    """Return the ranking of items by values, the smallest first, equal values tied."""
    return Rankings._trusted(np.unique(values, return_inverse=True)[1].astype(np.int32)[None], items)


def assign_all(shown: Indices, view: View, embedding: Embedding) -> Indices:
    """Return the cluster of every ballot: those that are not shown go to the cluster with the nearest mean."""
    features = embedding.features
    if features is None:
        return shown
    weights = np.equal.outer(np.arange(int(shown.max()) + 1), shown) * view.counts
    means = weights @ features[view.rows] / weights.sum(axis=1, keepdims=True)
    labels: Indices = np.argmin((means**2).sum(axis=1) - features @ (2 * means.T), axis=1)
    labels[view.rows] = shown
    return labels


def by_size(labels: Indices, counts: IntArray) -> Indices:
    """Return the clusters renumbered by their voters, the largest first."""
    order = np.argsort(-np.bincount(labels, counts), kind="stable")
    rank: Indices = np.argsort(order)
    return rank[labels]


def describe_clusters(ballots: Ballots, labels: Indices, consensus: Callable[[Data], Rankings]) -> list[Cluster]:
    """Return the description of each cluster."""
    rankings, share = ballots.rankings, ballots.approve_all_share
    overall, clusters = standings(rankings, share), []
    parts = [rankings[np.flatnonzero(labels == number)] for number in range(int(labels.max()) + 1)]
    for number, (members, distinction) in enumerate(zip(parts, distinctions(parts, share), strict=True)):
        clusters.append(
            Cluster(
                letter(number),
                distinction,
                members.n_voters,
                members.n_voters / rankings.n_voters,
                consensus(members),
                standings(members, share) - overall,
                members[int(np.argmax(members.counts))],
            )
        )
    return clusters


def letter(number: int) -> str:
    """Return A, B, ..., Z, A2, B2, ..."""
    cycle, index = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[index] + (str(cycle + 1) if cycle else "")


def largest_shifts(shift: FloatArray, minimum: float, limit: int = 6) -> list[int]:
    """Return the items with the largest shifts of at least a minimum, from the most improved to the most worsened."""
    largest = np.argsort(-np.abs(shift), kind="stable")[:limit]
    shown = [int(item) for item in largest if abs(shift[item]) >= minimum]
    return sorted(shown, key=lambda item: float(shift[item]))


def distinctions(parts: list[Data], approve_all_share: float | None = None) -> list[Distinction]:
    """Return the first choice or the pair of items whose share differs most from all other voters, for each part.

    No two parts get the same one: a linear assignment maximises the sum of the weighted differences. Parts in excess
    of the items and pairs are described by their most common ballot.
    """
    from scipy.optimize import linear_sum_assignment

    items, voters = parts[0].items, np.array([part.n_voters for part in parts], dtype=np.float64)
    wording = Wording(approvals=approve_all_share is not None)
    pairs = np.argwhere(~np.eye(len(items), dtype=bool))
    counts = np.stack([preference_counts(part, pairs, approve_all_share) for part in parts])
    shares = counts / voters[:, None]
    others = (counts.sum(axis=0) - counts) / np.maximum(voters.sum() - voters, 1)[:, None]
    clarity = shares - others
    clarity[:, : len(items)] *= FIRST_CHOICE_WEIGHT
    common = np.array([part.counts.max() / part.n_voters for part in parts])
    by_ballot = np.where(np.eye(len(parts), dtype=bool), BALLOT_WEIGHT * common, -(len(items) ** 2))
    found = []
    for part, choice in zip(*linear_sum_assignment(-np.concatenate([clarity, by_ballot], axis=1)), strict=True):
        if choice >= counts.shape[1]:
            ballot = parts[part][int(np.argmax(parts[part].counts))]
            text = ballot_text(ballot, limit=len(items), approvals=wording.approvals)
            found.append(Distinction(text, "ballot", text, "", float(common[part]), 0.0))
            continue
        kind = "first" if choice < len(items) else "pair"
        a, b = (choice, None) if kind == "first" else pairs[choice - len(items)]
        first, second = items[a], "" if b is None else items[b]
        label = wording.say(f"label_{kind}", first=first, second=second)
        found.append(Distinction(label, kind, first, second, float(shares[part, choice]), float(others[part, choice])))
    return found


def preference_counts(
    part: Data, pairs: np.ndarray[tuple[int, int], np.dtype[np.intp]], approve_all_share: float | None
) -> FloatArray:
    """Return the number of voters who rank each item first or approve of it, and who prefer the first of each pair."""
    first = first_counts(part) if approve_all_share is None else approved_counts(part, approve_all_share)
    ahead = count_contests(part).ahead[pairs[:, 0], pairs[:, 1]]
    return np.concatenate([first, ahead])
