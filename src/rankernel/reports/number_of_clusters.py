"""How many clusters there are, if any: more than chance makes, and found again in either half of the voters.

Any ballots can be cut in two, and the cut always takes some dispersion away. So a further cluster counts only where it
takes away more than it does in ballots without it: drawn from models without groups, fitted to each cluster that is
there already. Of the numbers that pass, the largest is taken whose clusters come back when the voters are halved at
random.

The answer shall not depend on who is asked, nor grow with the number of voters: panels of a few hundred are asked, one
after another until it is clear what all of them would say on average, or many were. Where it is not clear even then,
the ballots shade into each other: the smallest number is said, and how many more there may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Indices
from rankernel.data import Data, with_counts
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.models.null_models import Model, fit_null_models, sample_like
from rankernel.reports.distinct_ballots import Ballots, some_voters

MOST_CLUSTERS = 8
LEAST_VOTERS = 12  # of fewer nothing can be said
LEAST_BALLOTS = 3  # different ones, else there is nothing to divide
SOME_VOTERS = 400  # a panel: enough to see groups
MOST_PANELS = 16
NULL_SETS = 8  # of each kind that a panel is held against at a time
LEAST_ROUNDS = 8  # of such sets and of halvings, where one panel is all there are
HALVINGS = 8
STABLE = 0.5  # adjusted Rand index between the clusters of two halves
SPREAD = 0.05  # of this index between panels, at least
SURE, POSSIBLE = 3.0, 2.0  # standard errors above chance: a cluster is there, or may be there
CLEAR = 2.0  # standard errors by which further panels will hardly change the answer
PATIENCE = 20.0  # seconds for the kernel values of all null sets of a step


@dataclass(frozen=True)
class Step:
    """Whether one more cluster is more than chance."""

    n_clusters: int  # with the new one
    gain: float  # the share of the dispersion within clusters that it takes away
    chance: float  # the mean share that it takes away where there is no such cluster, by the model that makes most
    surprise: float  # by how many standard errors the gain is more than that
    n_sets: int  # how many sets without it were drawn


@dataclass(frozen=True)
class Evidence:
    """What speaks for the number of clusters."""

    n_clusters: int  # 1: there are no groups to be seen
    most_clusters: int  # as many there may be: more than are sure where ballots shade into each other
    n_voters: int  # how many were looked at
    n_panels: int  # in how many parts
    stability: dict[int, float] = field(default_factory=dict)  # how alike the clusters of two halves are, by number
    steps: tuple[Step, ...] = ()  # for 2 clusters, 3, ..., until one is not more than chance; none where too few voters


def number_of_clusters(ballots: Ballots, kernel: Kernel, method: MethodLike, linkage: str, seed: int) -> Evidence:
    """Return how many clusters the ballots support."""
    from threadpoolctl import threadpool_limits

    rankings = ballots.rankings
    if rankings.n_voters < LEAST_VOTERS or len(rankings) < LEAST_BALLOTS:
        return Evidence(1, 1, rankings.n_voters, 1)
    panels, rng = panels_to_ask(ballots, kernel, method, seed), np.random.default_rng([seed, 2])
    with threadpool_limits(1, "blas"):  # of many small matrices: threads would only wait for each other
        return Asked(panels, kernel, method, linkage, rng).evidence(min(MOST_CLUSTERS, len(rankings) - 1))


def reached(steps: list[Step], surprise: float) -> int:
    """Return how many clusters are more than chance, each further one by so many standard errors."""
    failing = (step.n_clusters - 1 for step in steps if step.surprise < surprise)
    return next(failing, steps[-1].n_clusters if steps else 1)


def panels_to_ask(ballots: Ballots, kernel: Kernel, method: MethodLike, seed: int) -> list[Data]:
    """Return panels, a row for each voter and no voter in two, so small that all null sets can be had in time.

    All voters are in one where there are not too many.
    """
    rankings, wanted = ballots.rankings, SOME_VOTERS
    for _ in range(2):
        rows, counts = some_voters(rankings.counts, wanted, seed + 1)
        chosen = with_counts(rankings[rows], counts)
        seconds = kernel.plan(chosen, method=method).seconds * NULL_SETS * LEAST_ROUNDS
        if seconds <= PATIENCE:
            break
        wanted = max(int(wanted * (PATIENCE / seconds) ** 0.5), LEAST_VOTERS)
    rows, counts = some_voters(rankings.counts, wanted * MOST_PANELS, seed + 1)
    voters = np.random.default_rng([seed, 3]).permutation(np.repeat(rows, counts))
    n_panels = max(len(voters) // wanted, 1)
    return [with_counts(rankings[np.sort(part)], np.ones(len(part))) for part in np.array_split(voters, n_panels)]


@dataclass(eq=False)
class Asked:
    """Panels, their trees as far as they were asked, and how they are asked."""

    panels: list[Data]
    kernel: Kernel
    method: MethodLike
    linkage: str
    rng: np.random.Generator
    trees: list[Tree] = field(default_factory=list)

    def evidence(self, most: int) -> Evidence:
        """Return how many clusters the panels support, at most so many."""
        steps: list[Step] = []
        while len(steps) < most - 1 and (not steps or steps[-1].surprise >= POSSIBLE):
            steps.append(self.next_step(len(steps) + 2))
        sure, possible = (reached(steps, surprise) for surprise in (SURE, POSSIBLE))
        stability, doubt = self.stability(range(2, possible + 1))
        stable, perhaps = ({k for k in stability if stability[k] - STABLE >= sign * doubt[k]} for sign in (1, -1))
        chosen, most = max(stable.intersection(range(2, sure + 1)), default=1), max(perhaps, default=1)
        n_voters = sum(len(tree.voters) for tree in self.trees)
        return Evidence(chosen, most, n_voters, len(self.trees), stability, tuple(steps))

    @property
    def n_rounds(self) -> int:
        """How often panels are asked at most: each once, or a few panels several times."""
        return max(len(self.panels), LEAST_ROUNDS)

    def tree(self, place: int) -> Tree:
        """Return the tree of a panel, grown when it is first asked."""
        while place >= len(self.trees):
            self.trees.append(self.grown(self.panels[len(self.trees)]))
        return self.trees[place]

    def grown(self, voters: Data) -> Tree:
        """Return the tree of some voters."""
        return Tree.grown(voters, self.kernel, self.method, self.linkage)

    def next_step(self, n_clusters: int) -> Step:
        """Return whether so many clusters are more than chance makes of one fewer, on average over panels."""
        gains: list[float] = []
        nulls: list[FloatArray] = []
        known: list[list[list[Model]]] = []
        while True:
            place = len(nulls) % len(self.panels)
            tree = self.tree(place)
            labels = tree.labels(n_clusters - 1)[tree.ballot_of_voter]
            if place == len(gains):
                gains.append(tree.gain(n_clusters))
                parts = [
                    fit_null_models(tree.voters[np.flatnonzero(labels == c)]) for c in range(int(labels.max()) + 1)
                ]
                known.append([list(models) for models in zip(*parts, strict=True)])
            nulls.append(self.null_gains(tree, n_clusters, labels, known[place]))
            step = step_of(n_clusters, np.array(gains), np.array(nulls))
            if step.surprise > SURE + CLEAR or len(nulls) == self.n_rounds:
                return step
            # What all panels would say at best, by what those said that were asked.
            if step.surprise + CLEAR < POSSIBLE * np.sqrt(len(gains) / len(self.panels)):
                return step

    def null_gains(self, tree: Tree, n_clusters: int, labels: Indices, kinds: list[list[Model]]) -> FloatArray:
        """Return what the last cluster takes away in sets without it, one row for each kind of models."""
        return np.array(
            [
                [
                    self.grown(sample_like(tree.voters, labels, models, self.rng)).gain(n_clusters)
                    for _ in range(NULL_SETS)
                ]
                for models in kinds
            ]
        )

    def stability(self, numbers: range) -> tuple[dict[int, float], dict[int, float]]:
        """Return how alike the clusters of two halves are, and how far from that of all panels this may be."""
        rounds: list[FloatArray] = []
        while numbers and len(rounds) < self.n_rounds:
            rounds.append(self.tree(len(rounds) % len(self.panels)).stability(numbers, self.rng))
            errors = np.maximum(np.std(rounds, axis=0), SPREAD) / np.sqrt(len(rounds))
            if len(rounds) > 1 and (np.abs(np.mean(rounds, axis=0) - STABLE) > 2 * CLEAR * errors).all():
                break
        if not rounds:
            return {}, {}
        found, doubt = np.mean(rounds, axis=0).tolist(), (2 * errors).tolist()
        return dict(zip(numbers, found, strict=True)), dict(zip(numbers, doubt, strict=True))


def step_of(n_clusters: int, gains: FloatArray, nulls: FloatArray) -> Step:
    """Return by how many standard errors gains of panels are more than those of null sets, of either kind.

    ``nulls`` has the shape (n_rounds, n_kinds, n_sets). What sets of a panel differ by is what a panel itself may, so
    that the error is that of a mean over panels, and of a mean over sets.
    """
    gain, chance = float(gains.mean()), nulls.mean(axis=(0, 2))
    spread = np.sqrt(nulls.var(axis=2, ddof=1).mean(axis=0))
    errors = spread * np.sqrt(1 / len(gains) + 1 / nulls[:, 0].size)
    above = (gain - chance) / np.maximum(errors, 1e-9)
    worst = int(np.argmin(above))
    return Step(n_clusters, gain, float(chance[worst]), float(above[worst]), nulls.size)


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
        first, ballot_of_voter = voters.unique_indices()
        gram = np.asarray(kernel.plan(voters[first], method=method).gram(), dtype=np.float64)
        counts = np.bincount(ballot_of_voter).astype(np.float64)
        return cls(voters, ballot_of_voter, counts, gram, tree_of(gram, counts, linkage), linkage)

    def labels(self, n_clusters: int) -> Indices:
        """Return the cluster of each ballot."""
        from rankernel.learn.hierarchy import flat_clusters

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
    from rankernel.learn.hierarchy import Linkage, gram_distances, weighted_linkage

    if len(gram) < 2:
        return np.empty((0, 4))
    return weighted_linkage(gram_distances(gram), counts, cast(Linkage, linkage))


def within(gram: FloatArray, counts: FloatArray, labels: Indices) -> float:
    """Return how far voters are from the means of their clusters: the sum of squared kernel distances."""
    inside = np.equal.outer(np.arange(int(labels.max()) + 1), labels) * counts  # (n_clusters, n_ballots)
    sums = ((inside @ gram) * inside).sum(axis=1)
    return float(counts @ np.diagonal(gram) - (sums / inside.sum(axis=1)).sum())
