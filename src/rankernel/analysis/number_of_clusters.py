"""How many clusters there are, if any: more than chance makes, and found again in either half of the voters.

Any ballots can be cut in two, and the cut always takes some dispersion away. So a further cluster counts only where it
takes away more than it does in ballots without it: drawn from one Plackett-Luce model for each cluster that is there
already, as long and as tied as the real ones. Of the numbers that pass, the largest is taken whose clusters come back
when the voters are halved at random. A panel of voters is asked; where the answer is close, further panels are, and in
doubt the smaller number is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel.analysis.distinct_ballots import Ballots, some_voters
from rankernel.arrays import FloatArray, Indices
from rankernel.completions.null_ballots import draw_ballots, fit_models, one_by_one
from rankernel.completions.plackett_luce import PlackettLuce
from rankernel.data import Data, first_and_inverse, with_counts
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel

MOST_CLUSTERS = 8
LEAST_VOTERS = 12  # of fewer nothing can be said
SOME_VOTERS = 400  # a panel: enough to see groups
MOST_ROUNDS = 16  # of halvings, of a new panel each as long as there are voters
TESTED_PANELS = 4  # that are held against null sets, which takes longer
NULL_SETS = 19  # of ballots without a further group: if none is divided as much, p = 1/20
HALVINGS = 8
STABLE = 0.5  # adjusted Rand index between the clusters of two halves
SPREAD = 0.05  # of this index between rounds
PATIENCE = 20.0  # seconds for the kernel values of all null sets of a step


@dataclass(frozen=True)
class Step:
    """Whether one more cluster is more than chance."""

    n_clusters: int  # with the new one
    gain: float  # the share of the dispersion within clusters that it takes away
    chance: float  # the mean share that it takes away where there is no such cluster
    n_sets: int  # how many sets without it were drawn: no more are, once one has reached the gain
    reached: bool  # whether one of them did


@dataclass(frozen=True)
class Evidence:
    """What speaks for the number of clusters."""

    n_clusters: int  # 1: there are no groups to be seen
    n_voters: int  # how many were looked at
    n_panels: int  # in how many parts
    stability: dict[int, float]  # how alike the clusters of two halves are, by the number of clusters
    steps: tuple[Step, ...]  # for 2 clusters, 3, ..., as far as clusters are stable; the last one may have failed


def number_of_clusters(ballots: Ballots, kernel: Kernel, method: MethodLike, linkage: str, seed: int) -> Evidence:
    """Return how many clusters the ballots support."""
    panels = panels_to_ask(ballots, kernel, method, seed)
    trees = [Tree.grown(panels[0], kernel, method, linkage)]
    n_distinct = len(trees[0].counts)
    if len(panels[0]) < LEAST_VOTERS or n_distinct < 3:
        return Evidence(1, len(panels[0]), 1, {}, ())
    rng = np.random.default_rng([seed, 2])
    numbers = range(2, min(MOST_CLUSTERS, n_distinct - 1) + 1)
    rounds: list[FloatArray] = []
    while len(rounds) < MOST_ROUNDS and (not rounds or (np.abs(margins(rounds)) < doubt(rounds)).any()):
        place = len(rounds) % len(panels)
        if place == len(trees):
            trees.append(Tree.grown(panels[place], kernel, method, linkage))
        rounds.append(trees[place].stability(numbers, rng))
    stability = dict(zip(numbers, np.mean(rounds, axis=0).tolist(), strict=True))
    stable = np.array(numbers)[margins(rounds) >= doubt(rounds)].tolist()
    steps: list[Step] = []
    for n_clusters in range(2, max(stable, default=1) + 1):
        steps.append(next_step(trees[:TESTED_PANELS], n_clusters, kernel, method, rng))
        if steps[-1].reached:
            break
    passed = {step.n_clusters for step in steps if not step.reached}
    n_voters = sum(len(tree.voters) for tree in trees)
    return Evidence(max(passed.intersection(stable), default=1), n_voters, len(trees), stability, tuple(steps))


def margins(rounds: list[FloatArray]) -> FloatArray:
    """Return by how much each number of clusters is more stable than it must be."""
    return np.asarray(np.mean(rounds, axis=0) - STABLE)


def doubt(rounds: list[FloatArray]) -> float:
    """Return how small a margin may be chance."""
    return float(2 * SPREAD / np.sqrt(len(rounds)))


def panels_to_ask(ballots: Ballots, kernel: Kernel, method: MethodLike, seed: int) -> list[Data]:
    """Return panels, a row for each voter and no voter in two, so small that all null sets can be had in time."""
    rankings, wanted = ballots.rankings, SOME_VOTERS
    for _ in range(2):
        rows, counts = some_voters(rankings.counts, wanted, seed + 1)
        chosen = with_counts(rankings[rows], counts)
        seconds = kernel.plan(chosen, method=method).seconds * NULL_SETS
        if seconds <= PATIENCE:
            break
        wanted = max(int(wanted * (PATIENCE / seconds) ** 0.5), LEAST_VOTERS)
    n_panels = min(rankings.n_voters // chosen.n_voters, MOST_ROUNDS)
    if n_panels == 1:
        return [one_by_one(chosen)]
    rows, counts = some_voters(rankings.counts, chosen.n_voters * n_panels, seed + 1)
    voters = np.random.default_rng([seed, 3]).permutation(np.repeat(rows, counts))
    return [with_counts(rankings[np.sort(part)], np.ones(len(part))) for part in np.array_split(voters, n_panels)]


def next_step(
    panels: list[Tree], n_clusters: int, kernel: Kernel, method: MethodLike, rng: np.random.Generator
) -> Step:
    """Return whether so many clusters are more than chance makes of one fewer, on average over panels."""
    gain, gains = float(np.mean([panel.gain(n_clusters) for panel in panels])), []
    labels = [panel.labels(n_clusters - 1)[panel.ballot_of_voter] for panel in panels]
    models = [fit_models(panel.voters, own) for panel, own in zip(panels, labels, strict=True)]

    def null_gain(panel: Tree, own: Indices, fitted: list[PlackettLuce]) -> float:
        drawn = draw_ballots(panel.voters, own, fitted, rng)
        return Tree.grown(drawn, kernel, method, panel.linkage).gain(n_clusters)

    for _ in range(NULL_SETS):
        gains.append(float(np.mean([null_gain(*each) for each in zip(panels, labels, models, strict=True)])))
        if gains[-1] >= gain:
            break
    return Step(n_clusters, gain, float(np.mean(gains)), len(gains), gains[-1] >= gain)


@dataclass(frozen=True, eq=False)
class Tree:
    """Voters, and the tree of their different ballots."""

    voters: Data  # a row each
    ballot_of_voter: Indices  # which of the different ballots each gave
    counts: FloatArray  # voters of each ballot
    gram: FloatArray
    tree: FloatArray
    linkage: str

    @classmethod
    def grown(cls, voters: Data, kernel: Kernel, method: MethodLike, linkage: str) -> Tree:
        """Return the tree of some voters."""
        distinct = voters.unique()
        gram = np.asarray(kernel.plan(distinct, method=method).gram(), dtype=np.float64)
        counts = distinct.counts.astype(np.float64)
        return cls(voters, first_and_inverse(voters)[1], counts, gram, tree_of(gram, counts, linkage), linkage)

    def labels(self, n_clusters: int) -> Indices:
        """Return the cluster of each ballot."""
        from rankernel.tasks.clusters.dendrogram import flat_clusters

        if n_clusters == 1 or len(self.counts) < 2:
            return np.zeros(len(self.counts), dtype=np.intp)
        return flat_clusters(self.tree, min(n_clusters, len(self.counts)))

    def gain(self, n_clusters: int) -> float:
        """Return the share of the dispersion within clusters that the last of so many takes away."""
        before, after = (within(self.gram, self.counts, self.labels(k)) for k in (n_clusters - 1, n_clusters))
        return 1 - after / before if before > 0 else 0.0

    def stability(self, numbers: range, rng: np.random.Generator) -> FloatArray:
        """Return how alike the clusters are that either half of the voters makes of all ballots, on average."""
        found = np.zeros((HALVINGS, len(numbers)))
        for halving in found:
            mixed = rng.permutation(self.ballot_of_voter)
            halves = (mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :])
            pair = [self.labels_by(half, numbers) for half in halves]
            halving[:] = [adjusted_rand(first, second, self.counts) for first, second in zip(*pair, strict=True)]
        return np.asarray(found.mean(axis=0))

    def labels_by(self, half: Indices, numbers: range) -> list[Indices]:
        """Return the cluster of each ballot where some voters make the clusters: that with the nearest mean."""
        rows, counts = np.unique(half, return_counts=True)
        own = replace(self, counts=counts.astype(np.float64), gram=self.gram[np.ix_(rows, rows)])
        own = replace(own, tree=tree_of(own.gram, own.counts, self.linkage))
        return [self.nearest(rows, own, own.labels(n_clusters)) for n_clusters in numbers]

    def nearest(self, rows: Indices, part: Tree, labels: Indices) -> Indices:
        """Return the cluster of each ballot whose mean is nearest, the clusters being made of some rows."""
        shares = np.where(labels == np.arange(int(labels.max()) + 1)[:, None], part.counts, 0.0)
        shares /= shares.sum(axis=1, keepdims=True)
        lengths = ((shares @ part.gram) * shares).sum(axis=1)
        nearest: Indices = np.argmin(lengths - 2 * self.gram[:, rows] @ shares.T, axis=1)
        return nearest


def adjusted_rand(first: Indices, second: Indices, counts: FloatArray) -> float:
    """Return the share of pairs of voters that two clusterings treat alike, corrected for chance (Hubert and Arabie).

    Examples
    --------
    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.ones(4))
    1.0
    """
    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), counts)
    both, left, right, every = (
        float((part * (part - 1)).sum() / 2) for part in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    chance = left * right / every
    return (both - chance) / ((left + right) / 2 - chance) if left + right > 2 * chance else 1.0


def tree_of(gram: FloatArray, counts: NDArray[Any], linkage: str) -> FloatArray:
    """Return the tree of ballots that so many voters gave; of a single ballot there is none."""
    from rankernel.tasks.clusters.dendrogram import Linkage, weighted_linkage
    from rankernel.tasks.clusters.kernel_distance import gram_distances

    if len(gram) < 2:
        return np.empty((0, 4))
    return weighted_linkage(gram_distances(gram), counts, cast(Linkage, linkage))


def within(gram: FloatArray, counts: FloatArray, labels: Indices) -> float:
    """Return how far voters are from the means of their clusters: the sum of squared kernel distances."""
    inside = float(counts @ np.diagonal(gram))
    for number in range(int(labels.max()) + 1):
        own = np.flatnonzero(labels == number)
        inside -= float(counts[own] @ gram[np.ix_(own, own)] @ counts[own] / counts[own].sum())
    return inside
