"""Ballots in the feature space of a kernel: map, dendrogram, number of clusters, and what distinguishes each cluster.

The number of clusters is the largest that is significant and reproducible. A (k+1)-th cluster is *significant* if it
reduces the dispersion within clusters by more than in data sets without it, at the significance level :data:`ALPHA`.
These are drawn from a Plackett-Luce and from a Mallows model fitted to each of the k clusters, with the ties and list
lengths of the data; the reduction must exceed the simulated ones of either model (a parametric bootstrap with Student's
t as the predictive distribution). k clusters are *reproducible* if random halves of the voters give similar ones, with
an adjusted Rand index of at least :data:`MIN_AGREEMENT`. As the power of a test grows with the number of voters,
samples of :data:`SAMPLE_SIZE` voters are used: the number is the median over three samples, the third of which is drawn
only if the first two disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, Indices
from rankernel.data import Data, pairwise_wins, with_counts
from rankernel.errors import Argument, RankingError
from rankernel.gram.plan import MethodLike, Plan
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.learn.hierarchy import Linkage, flat_clusters, gram_distances, weighted_linkage
from rankernel.models.null_models import Model, fit_mallows, fit_plackett_luce, sample_like
from rankernel.rankings import Rankings
from rankernel.reports.ballots import Ballots, View, first_counts, sample_voters, standings, view_of
from rankernel.reports.text import Wording, ballot_text

N_COMPONENTS = 2
N_FEATURES = 200
MAX_NUMBERS = 2**25  # in the Nyström features of all ballots; very many ballots get fewer features
N_CHECKED = 64  # ballots whose kernel values are estimated again for their standard error
MAX_SECONDS = 20.0  # for the Gram matrix of the ballots shown, and for those of one step in all samples of voters
MAX_CLUSTERS = 8
MIN_VOTERS = 12
MIN_BALLOTS = 3
N_SAMPLES = 3
# Error rates with these values are in benchmarks/groups.py.
SAMPLE_SIZE = 400
N_REPLICATES = 6  # simulated data sets of each model, and divisions into halves
ALPHA = 0.01
MIN_AGREEMENT = 0.5
MODELS: dict[str, Callable[[Data], Model]] = {"Plackett-Luce": fit_plackett_luce, "Mallows": fit_mallows}
MIN_SHARE = 0.5  # of the voters of a cluster, who share the preference that it is named after


# ---------------------------------------------------------------------- kernel values and map


@dataclass(frozen=True)
class Settings:
    """The options of a report; see :func:`rankernel.report`."""

    kernel: Kernel = field(default_factory=lambda: Mallows(nu="median"))
    method: MethodLike = "auto"
    n_clusters: int | None = None
    linkage: str = "ward"
    n_permutations: int = 999
    compare: tuple[str, ...] | None = None  # names of the groups to compare: all if None, none if empty
    max_ballots: int = 1500  # on the map and in the dendrogram
    rng: int = 0


@dataclass(frozen=True, eq=False)
class Embedding:
    """Kernel values and map coordinates of the ballots."""

    gram: FloatArray  # (n_shown, n_shown): Gram matrix of the ballots shown
    features: FloatArray | None  # (n_ballots, n_features): Nyström features if the ballots shown are a sample
    points: FloatArray  # (n_ballots, 2): coordinates on the map
    variance: FloatArray  # (2,): share of the variance along each axis
    values: str  # how kernel values were computed, in words
    omitted: float  # share of the trace that the features omit
    error: float  # standard error of a kernel value, relative to the standard deviation between ballots


def affordable(rankings: Data, settings: Settings, seconds: float, n_matrices: int = 1) -> int:
    """Return the number of rows up to which Gram matrices take at most a time: all rows or, by the plan, fewer."""
    needed = settings.kernel.plan(rankings, method=settings.method).seconds * n_matrices
    return len(rankings) if needed <= seconds else max(int(len(rankings) * (seconds / needed) ** 0.5), 2)


def choose_view(ballots: Ballots, settings: Settings) -> View:
    """Return the ballots to show: all or a sample of them, fewer if their Gram matrix would take too long."""
    view = view_of(ballots, settings.max_ballots, settings.rng)
    limit = affordable(ballots.rankings[view.rows], settings, MAX_SECONDS)
    return view if limit == len(view.rows) else view_of(ballots, limit, settings.rng)


def embed_ballots(ballots: Ballots, view: View, settings: Settings) -> Embedding:
    """Return the Gram matrix of the ballots shown and the map of all ballots."""
    from rankernel.learn.components import components_of_features, components_of_gram

    rankings, weights = ballots.rankings, ballots.rankings.counts.astype(np.float64)
    plan = settings.kernel.plan(rankings[view.rows], method=settings.method)
    gram = np.asarray(plan.gram(), dtype=np.float64)
    features, omitted, share_omitted = None, 0.0, 0.0
    if view.sampled:
        from rankernel.learn.nystrom import NystromFeatures

        n_features = min(N_FEATURES, max(MAX_NUMBERS // len(rankings), N_COMPONENTS))
        nystrom = NystromFeatures(n_features, kernel=settings.kernel, method=plan.method, random_state=settings.rng)
        features = nystrom.fit_transform(rankings)
        omitted, share_omitted = nystrom.trace_error_, nystrom.trace_error_ / max(nystrom.trace_, 1e-300)
        components = components_of_features(features, weights, min(N_COMPONENTS, *features.shape))
    else:
        components = components_of_gram(gram.copy(), weights, min(N_COMPONENTS, len(gram)))
    missing = N_COMPONENTS - len(components.eigenvalues)
    points = np.pad(components.coordinates, ((0, 0), (0, missing)))
    variance = np.pad(components.variance_ratio(omitted), (0, missing))
    return Embedding(gram, features, points, variance, plan.details, share_omitted, relative_error(plan))


def relative_error(plan: Plan) -> float:
    """Return the standard error of kernel values, relative to their standard deviation between ballots."""
    if plan._estimator is None:
        return 0.0
    estimate = plan._part(slice(0, N_CHECKED)).estimate()
    off_diagonal = ~np.eye(len(estimate.value), dtype=bool)
    deviation = float(estimate.value[off_diagonal].std()) if off_diagonal.any() else 0.0
    return float(np.sqrt((estimate.stderr[off_diagonal] ** 2).mean())) / deviation if deviation > 0 else 0.0


# ---------------------------------------------------------------------- number of clusters


@dataclass(frozen=True)
class Step:
    """The test of one more cluster."""

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


def number_of_clusters(ballots: Ballots, settings: Settings) -> Evidence:
    """Return the number of clusters of the ballots."""
    from threadpoolctl import threadpool_limits

    rankings, rng = ballots.rankings, np.random.default_rng([settings.rng, 2])
    if rankings.n_voters < MIN_VOTERS or len(rankings) < MIN_BALLOTS:
        return Evidence(1, rankings.n_voters)
    size = min(SAMPLE_SIZE, rankings.n_voters)
    rows, _ = sample_voters(rankings.counts, size, rng)
    share = affordable(rankings[rows], settings, MAX_SECONDS, 2 * N_REPLICATES * N_SAMPLES) / len(rows)
    if share < 1:
        size = max(int(size * share), MIN_VOTERS)
    samples: list[Evidence] = []
    with threadpool_limits(1, "blas"):  # the matrices are small
        while len(samples) < (1 if size == rankings.n_voters else N_SAMPLES):
            rows, counts = sample_voters(rankings.counts, size, rng)
            voters = with_counts(rankings[np.repeat(rows, counts)], np.ones(size))
            samples.append(evidence_in_sample(Sample.of(voters, settings), rng))
            if len(samples) == 2 and samples[0].n_clusters == samples[1].n_clusters:
                break
    numbers = tuple(sample.n_clusters for sample in samples)
    chosen = numbers.index(sorted(numbers)[len(numbers) // 2])
    return replace(samples[chosen], numbers=numbers)


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
    labels = cut_tree(sample.tree, n_clusters - 1)[sample.ballot_of_voter]
    gain, steps = sample.gain(n_clusters), []
    for name, fit in MODELS.items():
        models = [fit(sample.voters[np.flatnonzero(labels == c)]) for c in range(n_clusters - 1)]
        drawn = (sample_like(sample.voters, labels, models, rng) for _ in range(N_REPLICATES))
        samples = (Sample.of(voters, sample.settings) for voters in drawn)
        gains = np.array([each.gain(n_clusters) for each in samples])
        steps.append(Step(gain, float(gains.mean()), predictive_pvalue(gain, gains), name))
        if steps[-1].pvalue > ALPHA:
            break
    return max(steps, key=lambda step: step.pvalue)


def predictive_pvalue(value: float, sample: FloatArray) -> float:
    """Return the probability of a larger further draw from the normal distribution of a sample."""
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
    settings: Settings

    @classmethod
    def of(cls, voters: Data, settings: Settings) -> Sample:
        """Return voters with the dendrogram of their ballots."""
        first, ballot_of_voter = voters.unique_indices()
        plan = settings.kernel.plan(voters[first], method=settings.method)
        gram, counts = np.asarray(plan.gram(), dtype=np.float64), np.bincount(ballot_of_voter).astype(np.float64)
        return cls(voters, ballot_of_voter, counts, gram, tree_of(gram, counts, settings.linkage), settings)

    def gain(self, n_clusters: int) -> float:
        """Return the relative reduction of the dispersion by the last of ``n_clusters`` clusters."""
        cuts = (cut_tree(self.tree, k) for k in (n_clusters - 1, n_clusters))
        before, after = (dispersion(self.gram, self.counts, labels) for labels in cuts)
        return 1 - after / before if before > 0 else 0.0

    def agreement(self, numbers: range, rng: np.random.Generator) -> tuple[float, ...]:
        """Return the mean adjusted Rand index between the clusters of two random halves, for each number."""
        found = np.zeros((N_REPLICATES, len(numbers)))
        for indices in found if len(numbers) else ():
            mixed = rng.permutation(self.ballot_of_voter)
            halves = (mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :])
            first, second = (self.clusters_of_half(half, numbers) for half in halves)
            pairs = zip(first, second, strict=True)
            indices[:] = [adjusted_rand_index(*(labels[self.ballot_of_voter] for labels in pair)) for pair in pairs]
        return tuple(found.mean(axis=0).tolist())

    def clusters_of_half(self, half: Indices, numbers: range) -> list[Indices]:
        """Return the cluster with the nearest mean for each ballot, the clusters being those of half of the voters."""
        rows, counts = np.unique(half, return_counts=True)
        gram = self.gram[np.ix_(rows, rows)]
        tree, found = tree_of(gram, counts, self.settings.linkage), []
        for n_clusters in numbers:
            shares = members(cut_tree(tree, n_clusters), counts)
            shares /= shares.sum(axis=1, keepdims=True)
            squared_norms = ((shares @ gram) * shares).sum(axis=1)
            found.append(np.argmin(squared_norms - 2 * self.gram[:, rows] @ shares.T, axis=1))
        return found


def adjusted_rand_index(first: Indices, second: Indices) -> float:
    """Return the adjusted Rand index of two clusterings (Hubert and Arabie 1985); scikit-learn is slow to import."""
    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), 1)
    together, rows, columns = ((each * (each - 1)).sum() for each in (table, table.sum(axis=1), table.sum(axis=0)))
    expected, largest = rows * columns / (len(first) * (len(first) - 1)), (rows + columns) / 2
    return float((together - expected) / (largest - expected)) if largest > expected else 1.0


def tree_of(gram: FloatArray, counts: NDArray[Any], linkage: str) -> FloatArray:
    """Return the linkage matrix of ballots weighted by their voters."""
    if len(gram) < 2:
        return np.empty((0, 4))
    return weighted_linkage(gram_distances(gram), counts, cast(Linkage, linkage))


def cut_tree(tree: FloatArray, n_clusters: int) -> Indices:
    """Return the cluster of each leaf; at most as many clusters as leaves."""
    if n_clusters == 1 or not len(tree):
        return np.zeros(len(tree) + 1, dtype=np.intp)
    return flat_clusters(tree, min(n_clusters, len(tree) + 1))


def members(labels: Indices, counts: NDArray[Any]) -> FloatArray:
    """Return the voters of each ballot in each cluster: (n_clusters, n_ballots)."""
    return np.asarray(np.equal.outer(np.arange(int(labels.max()) + 1), labels) * counts, dtype=np.float64)


def dispersion(gram: FloatArray, counts: FloatArray, labels: Indices) -> float:
    """Return the sum of squared kernel distances of voters from the means of their clusters."""
    voters = members(labels, counts)
    sums = ((voters @ gram) * voters).sum(axis=1)
    return float(counts @ np.diagonal(gram) - (sums / voters.sum(axis=1)).sum())


# ---------------------------------------------------------------------- clusters


@dataclass(frozen=True)
class Distinction:
    """The preference that distinguishes a cluster from all other voters."""

    label: str  # in a few words
    kind: str  # "first", "pair" or "ballot"
    first: str  # the item ranked first, or above the second; or the text of a ballot
    second: str  # the other item of a pair
    share: float  # share of the cluster with this preference
    others: float  # share of all other voters
    lift: float  # share of the cluster relative to that of all voters


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


def cluster_ballots(ballots: Ballots, view: View, embedding: Embedding, settings: Settings) -> Clustering | None:
    """Return the clusters, or None if there is only one distinct ballot."""
    if len(view.rows) < 2:
        return None
    rankings, share = ballots.rankings, ballots.approve_all_share
    tree = tree_of(embedding.gram, view.counts, settings.linkage)
    evidence = None if settings.n_clusters else number_of_clusters(ballots, settings)
    k = evidence.n_clusters if evidence else settings.n_clusters or 1
    labels = assign_all(cut_tree(tree, k), view, embedding)
    labels = np.argsort(np.argsort(-np.bincount(labels, rankings.counts), kind="stable"))[labels]  # the largest first
    rule, consensus = consensus_rule(settings.kernel, ballots)
    parts, overall = [rankings[labels == number] for number in range(int(labels.max()) + 1)], standings(rankings, share)
    clusters: list[Cluster] = []
    for part, distinction in zip(parts, distinctions(parts, share), strict=True):
        name, part_share = letter(len(clusters)), part.n_voters / rankings.n_voters
        shift, most_common = standings(part, share) - overall, part[int(np.argmax(part.counts))]
        clusters.append(Cluster(name, distinction, part.n_voters, part_share, consensus(part), shift, most_common))
    return Clustering(tree, labels, labels[view.rows], clusters, evidence, rule)


def check_n_clusters(n_clusters: int | None, ballots: Ballots, view: View) -> None:
    """Raise if there are fewer ballots in the dendrogram than clusters."""
    n_distinct, n_leaves = len(ballots.rankings), len(view.rows)
    if n_clusters is not None and n_clusters > n_leaves and n_distinct > 1:
        what, which = "", f"{n_distinct:,}"
        if n_clusters <= n_distinct:
            what, which = " in the dendrogram", f"{n_leaves:,} of a random sample of {view.n_voters:,} voters"
        problem = f" exceeds the number of distinct rankings{what}, {which}; give a smaller number"
        raise RankingError(Argument("n_clusters", n_clusters), problem)


def consensus_rule(kernel: Kernel, ballots: Ballots) -> tuple[str, Callable[[Data], Rankings]]:
    """Return the name and the function of the consensus: by the kernel where its mean embedding can be decoded."""
    from rankernel.models.consensus import borda, common_statistic, kernel_consensus

    share = ballots.approve_all_share

    def by_approvals(voters: Data) -> Rankings:
        ranks = np.unique(standings(voters, share), return_inverse=True)[1]  # equal shares are tied
        return Rankings._trusted(ranks.astype(np.int32)[None], voters.items)

    if share is not None:
        return "consensus_approvals", by_approvals
    if common_statistic(kernel, ballots.rankings.n_items) is not None:
        return "consensus_kernel", lambda voters: kernel_consensus(voters, kernel).ranking
    return "consensus_borda", lambda voters: borda(voters).ranking


def assign_all(shown: Indices, view: View, embedding: Embedding) -> Indices:
    """Return the cluster of every ballot: those that are not shown go to the cluster with the nearest mean."""
    features = embedding.features
    if features is None:
        return shown
    weights = members(shown, view.counts)
    means = weights @ features[view.rows] / weights.sum(axis=1, keepdims=True)
    labels: Indices = np.argmin((means**2).sum(axis=1) - features @ (2 * means.T), axis=1)
    labels[view.rows] = shown
    return labels


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
    """Return the preference that each part is named after.

    It is the first choice (or approval) or else the pair of items with the largest lift, the share in the part relative
    to that among all voters, among those that at least half of the part share and no earlier part is named after. A
    part without such a preference is described by its most common ballot.
    """
    items, voters = parts[0].items, np.array([part.n_voters for part in parts], dtype=np.float64)
    wording, pairs = Wording(approvals=approve_all_share is not None), np.argwhere(~np.eye(len(items), dtype=bool))
    of_parts = [(first_counts(part, approve_all_share), pairwise_wins(part)[*pairs.T]) for part in parts]
    counts = np.stack([np.concatenate(both) for both in of_parts])
    shares, total = counts / voters[:, None], counts.sum(axis=0)
    others = (total - counts) / np.maximum(voters.sum() - voters, 1)[:, None]
    lifts = shares / np.maximum(total / voters.sum(), 1e-300)
    lifts[shares < MIN_SHARE] = 0.0
    found = []
    for number, part in enumerate(parts):
        choice, kind = int(np.argmax(lifts[number, : len(items)])), "first"
        if lifts[number, choice] <= 1 and len(pairs):
            choice, kind = len(items) + int(np.argmax(lifts[number, len(items) :])), "pair"
        if lifts[number, choice] <= 1:
            ballot = part[int(np.argmax(part.counts))]
            text = ballot_text(ballot, limit=len(items), approvals=wording.approvals)
            share = int(ballot.counts[0]) / part.n_voters
            found.append(Distinction(text, "ballot", text, "", share, 0.0, float(voters.sum() / voters[number])))
            continue
        names = (items[choice], "") if kind == "first" else tuple(items[item] for item in pairs[choice - len(items)])
        label = wording.say(f"label_{kind}", first=names[0], second=names[1])
        numbers = (float(each[number, choice]) for each in (shares, others, lifts))
        found.append(Distinction(label, kind, *names, *numbers))
        lifts[number + 1 :, choice] = 0.0
    return found
