"""Null models of rankings without clusters or outliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.q_factorials import inversion_probabilities, log_q_factorials_derivative
from rankernel.data import Data, pairwise_wins, with_counts
from rankernel.encoding import FREE
from rankernel.models.kemeny_search import kemeny_order
from rankernel.models.mallows import MAX_THETA, MallowsModel
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences, closure
from rankernel.rankings import Rankings


def fit_plackett_luce(data: Data) -> PlackettLuce:
    """Return the Plackett-Luce model of voters; of preferences every pair that a user relates is a race of two."""
    if isinstance(data, Rankings):
        return PlackettLuce.fit(data)
    wins = np.tensordot(data.counts, data.before, axes=1)
    better, worse = np.nonzero(wins)
    ranks = np.full((len(better) + 1, data.n_items), FREE, dtype=np.int32)  # the last row says nothing
    ranks[np.arange(len(better)), better], ranks[np.arange(len(worse)), worse] = 0, 1
    return PlackettLuce.fit(Rankings._trusted(ranks, data.items, np.append(wins[better, worse], 1)))


def sample_like(
    data: Data, labels: Indices, models: Sequence[PlackettLuce | MallowsModel], rng: np.random.Generator
) -> Data:
    """Return for each row a ballot of the same shape, drawn from the model of its cluster."""
    full = np.empty((len(data), data.n_items), dtype=np.int32)
    for number, model in enumerate(models):
        own = labels == number
        full[own] = model.sample(int(own.sum()), rng=rng).ranks
    return coarsen(full, data)


def coarsen(full: RankArray, data: Data) -> Data:
    """Return full rankings told as the ballots are told: the same ties, the same items left open, the same pairs."""
    if isinstance(data, Preferences):
        before = data.before
        related = before | before.transpose(0, 2, 1)
        packed = closure(np.packbits(related & (full[:, :, None] < full[:, None, :]), axis=2))
        return Preferences._trusted(packed, data.items, np.array(data.counts), data.users, ((),) * len(data))
    free = data.ranks == FREE
    order = np.argsort(np.where(free, data.n_items + full, full), axis=1)
    places = sorted_buckets(data)
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order, places, axis=1)
    return Rankings._trusted(np.where(free, FREE, ranks).astype(np.int32), data.items, np.array(data.counts))


def sorted_buckets(data: Rankings) -> RankArray:
    """Return the buckets of each ranking, one entry for each item, the free ones last."""
    return np.sort(np.where(data.ranks == FREE, data.n_items, data.ranks), axis=1)


ELSEWHERE = 0.05  # the share of ballots from anywhere that a fit begins with
LEAST_SHARE = 1e-6
ROUNDS = 20
SETTLED = 0.02  # of a voter, by which no weight changes any more
FINE = 1000  # parts of a voter that a fit can count
PENALTY = 0.1  # of a Plackett-Luce model, as it has by itself
SURENESS = (0.5, 0.7, 1.0, 1.4, 2.0)  # of voters of one kind, in parts of the concentration that was fitted
FLATTER = (0.25, 0.0)  # from which ballots are drawn beside
MIXING_ROUNDS = 200

Model = MallowsModel | PlackettLuce


@dataclass(frozen=True, eq=False)
class InlierModel:
    """A model of which the voters are more or less sure: what was fitted, and the share of each :data:`SURENESS`."""

    fitted: Model
    shares: FloatArray

    @classmethod
    def of(cls, fitted: Model, ballots: Rankings) -> InlierModel:
        """Return a model that was fitted to ballots, with the shares of voters that are more or less sure."""
        models = [*(at_concentration(fitted, factor) for factor in SURENESS), anywhere(ballots)]
        logs = np.stack([model.log_prob(ballots) for model in models])
        likely = np.exp(logs - logs.max(axis=0))
        voters = ballots.counts / ballots.n_voters
        shares = np.array([*np.full(len(SURENESS), (1 - ELSEWHERE) / len(SURENESS)), ELSEWHERE])
        for _ in range(MIXING_ROUNDS):
            joint = shares[:, None] * likely
            shares = np.maximum(joint / joint.sum(axis=0) @ voters, LEAST_SHARE)
            shares /= shares.sum()
        return cls(fitted, shares[:-1] / shares[:-1].sum())

    def log_prob(self, ballots: Rankings) -> FloatArray:
        """Return the log-probability of each ballot."""
        return self.mixed(np.stack([at_concentration(self.fitted, f).log_prob(ballots) for f in SURENESS]))

    def mixed(self, logs: FloatArray) -> FloatArray:
        """Return log-probabilities from those of the model at each concentration."""
        return log_mixture(self.shares, logs)


def inlier_models(data: Data) -> list[InlierModel]:
    """Return models of the usual ballots: Plackett-Luce, and Mallows where no item is free, which makes it quick.

    Preferences have no probabilities that could be had quickly: one plain fit of all must do.
    """
    if isinstance(data, Preferences):
        return [InlierModel(fit_plackett_luce(data), np.equal(SURENESS, 1.0).astype(np.float64))]
    ballots = data.unique()
    found = [robust_fit(ballots, lambda some: PlackettLuce.fit(some, penalty=PENALTY * FINE))]
    if ballots.is_exhaustive():
        found.append(robust_fit(ballots, MallowsModel.fit))
    return [InlierModel.of(model, ballots) for model in found]


def robust_fit(ballots: Rankings, fit: Callable[[Rankings], Model]) -> Model:
    """Return the model of the ballots that are not from anywhere."""
    from_anywhere = anywhere(ballots).log_prob(ballots)
    weights, elsewhere = np.ones(len(ballots)), ELSEWHERE
    for _ in range(ROUNDS):
        counts = np.rint(FINE * weights * ballots.counts)
        counted = np.flatnonzero(counts)
        model = fit(with_counts(ballots[counted], counts[counted]))  # type: ignore[arg-type]
        odds = np.log(elsewhere / (1 - elsewhere)) + from_anywhere - model.log_prob(ballots)
        before, weights = weights, 1 / (1 + np.exp(np.minimum(odds, 700.0)))
        elsewhere = max(1 - float(weights @ ballots.counts) / ballots.n_voters, LEAST_SHARE)
        if np.abs(weights - before).max() < SETTLED or elsewhere > 1 - ELSEWHERE:
            break
    return model


def anywhere(ballots: Rankings) -> PlackettLuce:
    """Return the model by which all rankings are equally likely."""
    return PlackettLuce(np.ones(ballots.n_items))


def at_concentration(model: Model, factor: float) -> Model:
    """Return the model with another concentration, in parts of its own; 0 is the uniform one."""
    if isinstance(model, MallowsModel):
        return MallowsModel(model.center, model.theta * factor)
    return PlackettLuce((model.weights / model.weights.max()) ** factor)


# ---------------------------------------------------------------------- draws


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Ballots drawn in several ways, with the weights that make them ballots of a model: of mean 1, nearly."""

    ballots: Data
    weights: FloatArray


def sample_inliers(model: InlierModel, like: Data, rows: Indices, rng: np.random.Generator) -> WeightedSample:
    """Return ballots, each told as a row of some data is told: ``rows`` says which."""
    ways = [at_concentration(model.fitted, factor) for factor in (*SURENESS, *FLATTER)]
    parts = np.array_split(np.arange(len(rows)), len(ways))
    full = np.empty((len(rows), like.n_items), dtype=np.int32)
    for part, way in zip(parts, ways, strict=True):
        full[part] = way.sample(len(part), rng=rng).ranks
    ranked = Rankings._trusted(full, like.items)
    logs = np.stack([way.log_prob(ranked) for way in ways])
    shares = np.array([len(part) for part in parts]) / len(rows)
    weights = np.exp(model.mixed(logs[: len(SURENESS)]) - log_mixture(shares, logs))
    return WeightedSample(coarsen(full, like[rows]), weights)


def log_mixture(shares: FloatArray, logs: FloatArray) -> FloatArray:
    """Return the logarithm of a mixture of densities, one row of logarithms each.

    Examples
    --------
    >>> np.exp(log_mixture(np.array([0.25, 0.75]), np.log([[0.2, 1.0], [0.4, 0.0 + 1e-300]]))).round(2)
    array([0.35, 0.25])
    """
    from scipy.special import logsumexp

    return np.asarray(logsumexp(logs, axis=0, b=shares[:, None]))


def shape_codes(data: Data) -> Indices:
    """Return a number for each row that is the same for rows of the same shape: ties, length and free items."""
    if isinstance(data, Preferences):
        return np.zeros(len(data), dtype=np.intp)
    found: Indices = np.unique(sorted_buckets(data), axis=0, return_inverse=True)[1].ravel()
    return found


# ---------------------------------------------------------------------- models without clusters

LIMIT = 10  # items of a majority cycle for which the best center is proven
MANY = 100  # items, whose center is the order of their net majorities: to search for a better one takes long


def fit_null_models(data: Data) -> tuple[Model, ...]:
    """Return the models without groups that fit some voters best, one of each kind."""
    return fit_plackett_luce(data), fit_mallows(data)


def fit_mallows(data: Data) -> MallowsModel:
    """Return the order that contradicts voters least as the center, and the theta with which ballots do it as often.

    A ballot without free items is cut to the sizes of its buckets, and what is expected of it is what is expected of
    all items, less of those inside a bucket: theta has the greatest likelihood. Where items are free, or only some
    pairs are related, every pair that is related counts by itself.
    """
    from scipy.optimize import brentq

    wins = pairwise_wins(data)
    order = center_of(wins, data.n_voters)
    ranks = np.empty(data.n_items, dtype=np.int32)
    ranks[order] = np.arange(data.n_items)
    against = int(np.tril(wins[np.ix_(order, order)], -1).sum())
    sizes, gaps = bucket_sizes(data), gaps_related(data, ranks)

    def excess(theta: float) -> float:
        expected = -sizes @ log_q_factorials_derivative(data.n_items, theta)
        return float(expected + gaps @ inversion_probabilities(len(gaps) - 1, theta)) - against

    if excess(0.0) <= 0:
        return MallowsModel(tuple(ranks.tolist()), 0.0)
    theta = MAX_THETA if excess(MAX_THETA) > 0 else brentq(excess, 0.0, MAX_THETA, xtol=1e-6)
    return MallowsModel(tuple(ranks.tolist()), theta)


def center_of(wins: IntArray, n_voters: int) -> Indices:
    """Return the items in the order that contradicts voters least, or nearly."""
    margins: FloatArray = (wins - wins.T) / (2 * n_voters)
    if len(margins) > MANY:
        return np.argsort(-margins.sum(axis=1), kind="stable")
    return kemeny_order(0.5 + margins, LIMIT, 1, np.random.default_rng(0)).order


def bucket_sizes(data: Data) -> FloatArray:
    """Return for ballots without free items how often all items are there, less how often so many are tied."""
    sizes = np.zeros(data.n_items + 1)
    if isinstance(data, Rankings):
        known = (data.ranks != FREE).all(axis=1)
        ranks, counts = data.ranks[known], data.counts[known]
        sizes[-1] = counts.sum()
        for bucket in range(int(ranks.max(initial=-1)) + 1):
            np.subtract.at(sizes, (ranks == bucket).sum(axis=1), counts)
    return sizes


def gaps_related(data: Data, center: RankArray) -> FloatArray:
    """Return how many pairs of items so far apart in the center are related by ballots that leave items free."""
    some = data if isinstance(data, Preferences) else data[np.flatnonzero((data.ranks == FREE).any(axis=1))]
    if not len(some):
        return np.zeros(1)
    gaps = np.abs(np.subtract.outer(center, center))
    return np.asarray(np.bincount(gaps.ravel(), pairwise_wins(some).ravel(), data.n_items), dtype=np.float64)
