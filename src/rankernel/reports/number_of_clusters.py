"""The number of clusters: the largest that is significant and reproducible.

A (k+1)-th cluster is *significant* if it reduces the dispersion within clusters by more than in data sets without it,
at the significance level :data:`ALPHA`. These are drawn from a Plackett-Luce and from a Mallows model fitted to each of
the k clusters, with the ties and list lengths of the data; the reduction must exceed the simulated ones of either model
(a parametric bootstrap with Student's t as the predictive distribution). k clusters are *reproducible* if random halves
of the voters give similar ones, with an adjusted Rand index of at least :data:`MIN_AGREEMENT`. As the power of a test
grows with the number of voters, samples of :data:`SAMPLE_SIZE` voters are used: the number is the median over three
samples, the third of which is drawn only if the first two disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, Indices
from rankernel.data import Data, with_counts
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.models.mallows import MallowsModel
from rankernel.models.null_models import fit_mallows, fit_plackett_luce, sample_like
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.reports.source import Ballots, sample_voters

MAX_CLUSTERS = 8
MIN_VOTERS = 12
MIN_BALLOTS = 3
MAX_SECONDS = 20.0  # for the kernel values of one step in all samples; slower kernels get smaller samples
N_SAMPLES = 3
# Error rates with these values are in benchmarks/groups.py.
SAMPLE_SIZE = 400
N_REPLICATES = 6  # simulated data sets of each model, and divisions into halves
ALPHA = 0.01
MIN_AGREEMENT = 0.5
MODELS: dict[str, Callable[[Data], MallowsModel | PlackettLuce]] = {
    "Plackett-Luce": fit_plackett_luce,
    "Mallows": fit_mallows,
}


@dataclass(frozen=True)
class Step:
    """The test of one more cluster."""

    n_clusters: int  # with the new one
    gain: float  # relative reduction of the dispersion within clusters
    null_gain: float  # mean reduction in the simulated data sets
    pvalue: float
    model: str  # of the simulated data sets: the one with the larger p-value


@dataclass(frozen=True)
class Evidence:
    """The number of clusters and its evidence, from a sample of voters that gave this number."""

    n_clusters: int  # 1: no clusters
    sample_size: int  # voters of a sample
    numbers: tuple[int, ...] = (1,)  # number of clusters in each sample
    steps: tuple[Step, ...] = ()  # for 2, 3, ... clusters up to the first that is not significant; empty without a test
    agreement: tuple[float, ...] = ()  # adjusted Rand index of halves for 2, 3, ... significant clusters


def number_of_clusters(ballots: Ballots, kernel: Kernel, method: MethodLike, linkage: str, seed: int) -> Evidence:
    """Return the number of clusters of the ballots."""
    from threadpoolctl import threadpool_limits

    rankings, rng = ballots.rankings, np.random.default_rng([seed, 2])
    if rankings.n_voters < MIN_VOTERS or len(rankings) < MIN_BALLOTS:
        return Evidence(1, rankings.n_voters)
    size = sample_size(rankings, kernel, method, rng)
    samples: list[Evidence] = []
    with threadpool_limits(1, "blas"):  # the matrices are small
        while len(samples) < (1 if size == rankings.n_voters else N_SAMPLES):
            rows, counts = sample_voters(rankings.counts, size, rng)
            voters = with_counts(rankings[np.repeat(rows, counts)], np.ones(size))
            samples.append(evidence_in_sample(Sample.of(voters, kernel, method, linkage), rng))
            if len(samples) == 2 and samples[0].n_clusters == samples[1].n_clusters:
                break
    numbers = tuple(sample.n_clusters for sample in samples)
    chosen = numbers.index(sorted(numbers)[len(numbers) // 2])
    return replace(samples[chosen], numbers=numbers)


def sample_size(rankings: Data, kernel: Kernel, method: MethodLike, rng: np.random.Generator) -> int:
    """Return the number of voters of a sample."""
    size = min(SAMPLE_SIZE, rankings.n_voters)
    rows, _ = sample_voters(rankings.counts, size, rng)
    seconds = kernel.plan(rankings[rows], method=method).seconds * 2 * N_REPLICATES * N_SAMPLES
    return size if seconds <= MAX_SECONDS else max(int(size * (MAX_SECONDS / seconds) ** 0.5), MIN_VOTERS)


def evidence_in_sample(sample: Sample, rng: np.random.Generator) -> Evidence:
    """Return the number of clusters in one sample."""
    steps: list[Step] = []
    limit = max(min(MAX_CLUSTERS, len(sample.counts) - 1), 2)
    while len(steps) < limit - 1 and (not steps or steps[-1].pvalue <= ALPHA):
        steps.append(cluster_test(sample, len(steps) + 2, rng))
    n_significant = 1 + sum(step.pvalue <= ALPHA for step in steps)
    agreement = sample.agreement(range(2, n_significant + 1), rng)
    reproducible = [k for k, index in enumerate(agreement, start=2) if index >= MIN_AGREEMENT]
    n_clusters = max(reproducible, default=1)
    return Evidence(n_clusters, len(sample.voters), (n_clusters,), tuple(steps), agreement)


def cluster_test(sample: Sample, n_clusters: int, rng: np.random.Generator) -> Step:
    """Return the test of ``n_clusters`` clusters against one cluster fewer; the second model only if it may matter."""
    labels = sample.labels(n_clusters - 1)[sample.ballot_of_voter]
    gain, steps = sample.gain(n_clusters), []
    for name, fit in MODELS.items():
        models = [fit(sample.voters[np.flatnonzero(labels == c)]) for c in range(n_clusters - 1)]
        drawn = (sample_like(sample.voters, labels, models, rng) for _ in range(N_REPLICATES))
        gains = np.array([sample.redrawn(voters).gain(n_clusters) for voters in drawn])
        steps.append(Step(n_clusters, gain, float(gains.mean()), predictive_pvalue(gain, gains), name))
        if steps[-1].pvalue > ALPHA:
            break
    return max(steps, key=lambda step: step.pvalue)


def predictive_pvalue(value: float, sample: FloatArray) -> float:
    """Return the probability of a larger further draw from the normal distribution of a sample.

    Examples
    --------
    >>> round(predictive_pvalue(3.0, np.array([0.0, 1.0, 2.0])), 3)
    0.113
    """
    from scipy.special import stdtr

    error = sample.std(ddof=1) * np.sqrt(1 + 1 / len(sample))
    return float(stdtr(len(sample) - 1, (sample.mean() - value) / max(error, 1e-12)))


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of voters and the dendrogram of their distinct ballots."""

    voters: Data  # one row for each voter
    ballot_of_voter: Indices  # index of the distinct ballot of each voter
    counts: FloatArray  # voters of each distinct ballot
    gram: FloatArray
    tree: FloatArray
    kernel: Kernel
    method: MethodLike
    linkage: str

    @classmethod
    def of(cls, voters: Data, kernel: Kernel, method: MethodLike, linkage: str) -> Sample:
        """Return voters with the dendrogram of their ballots."""
        first, ballot_of_voter = voters.unique_indices()
        gram = np.asarray(kernel.plan(voters[first], method=method).gram(), dtype=np.float64)
        counts = np.bincount(ballot_of_voter).astype(np.float64)
        tree = tree_of(gram, counts, linkage)
        return cls(voters, ballot_of_voter, counts, gram, tree, kernel, method, linkage)

    def redrawn(self, voters: Data) -> Sample:
        """Return other voters with the dendrogram of their ballots."""
        return Sample.of(voters, self.kernel, self.method, self.linkage)

    def labels(self, n_clusters: int) -> Indices:
        """Return the cluster of each distinct ballot."""
        return cut_tree(self.tree, n_clusters)

    def gain(self, n_clusters: int) -> float:
        """Return the relative reduction of the dispersion by the last of ``n_clusters`` clusters."""
        before, after = (dispersion(self.gram, self.counts, self.labels(k)) for k in (n_clusters - 1, n_clusters))
        return 1 - after / before if before > 0 else 0.0

    def agreement(self, numbers: range, rng: np.random.Generator) -> tuple[float, ...]:
        """Return the mean adjusted Rand index between the clusters of two random halves, for each number."""
        from sklearn.metrics import adjusted_rand_score

        found = np.zeros((N_REPLICATES, len(numbers)))
        for indices in found if len(numbers) else ():
            mixed = rng.permutation(self.ballot_of_voter)
            halves = (mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :])
            first, second = (self.clusters_of_half(half, numbers) for half in halves)
            pairs = zip(first, second, strict=True)
            indices[:] = [adjusted_rand_score(*(labels[self.ballot_of_voter] for labels in pair)) for pair in pairs]
        return tuple(found.mean(axis=0).tolist())

    def clusters_of_half(self, half: Indices, numbers: range) -> list[Indices]:
        """Return the cluster with the nearest mean for each ballot, the clusters being those of half of the voters."""
        rows, counts = np.unique(half, return_counts=True)
        gram = self.gram[np.ix_(rows, rows)]
        tree = tree_of(gram, counts, self.linkage)
        found = []
        for n_clusters in numbers:
            labels = cut_tree(tree, n_clusters)
            shares = np.where(labels == np.arange(int(labels.max()) + 1)[:, None], counts, 0.0)
            shares /= shares.sum(axis=1, keepdims=True)
            squared_norms = ((shares @ gram) * shares).sum(axis=1)
            found.append(np.argmin(squared_norms - 2 * self.gram[:, rows] @ shares.T, axis=1))
        return found


def tree_of(gram: FloatArray, counts: NDArray[Any], linkage: str) -> FloatArray:
    """Return the linkage matrix of ballots weighted by their voters."""
    from rankernel.learn.hierarchy import Linkage, gram_distances, weighted_linkage

    if len(gram) < 2:
        return np.empty((0, 4))
    return weighted_linkage(gram_distances(gram), counts, cast(Linkage, linkage))


def cut_tree(tree: FloatArray, n_clusters: int) -> Indices:
    """Return the cluster of each leaf; at most as many clusters as leaves."""
    from rankernel.learn.hierarchy import flat_clusters

    if n_clusters == 1 or not len(tree):
        return np.zeros(len(tree) + 1, dtype=np.intp)
    return flat_clusters(tree, min(n_clusters, len(tree) + 1))


def dispersion(gram: FloatArray, counts: FloatArray, labels: Indices) -> float:
    """Return the sum of squared kernel distances of voters from the means of their clusters."""
    members = np.equal.outer(np.arange(int(labels.max()) + 1), labels) * counts  # (n_clusters, n_ballots)
    sums = ((members @ gram) * members).sum(axis=1)
    return float(counts @ np.diagonal(gram) - (sums / members.sum(axis=1)).sum())
