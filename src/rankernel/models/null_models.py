r"""Null models: distributions of rankings without clusters or outliers, fitted to data.

Two families are used, Plackett-Luce (items of different strength) and Mallows (voters around one center), because
neither approximates the other; a finding must exceed the null distribution of both.

Inlier models are fitted robustly. With a small estimated probability a row is an outlier, drawn uniformly from all
rankings; the EM algorithm weights each row by its posterior probability of being an inlier. The concentration of the
fitted model is then mixed over factors from 0.5 to 2, with shares estimated by EM, because voters differ in how closely
they follow the model. Small tail probabilities are estimated by importance sampling from the model at all these
concentrations and at smaller ones, down to the uniform distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankernel._utils import FloatArray, Indices, RankArray
from rankernel.data import Data, pairwise_wins, with_counts
from rankernel.models.mallows import MallowsModel
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences, closure
from rankernel.rankings import FREE, Rankings

Model = MallowsModel | PlackettLuce

MAX_SEARCHED_ITEMS = 100  # a better center of more items than by net majorities takes seconds
OUTLIER_SHARE = 0.05  # at the start of EM
MIN_SHARE = 1e-6
MAX_ROUNDS = 20  # of the robust fit
CONVERGED = 0.02  # largest change of an inlier probability in the last round
COUNT_UNIT = 1000  # inlier probabilities are rounded to multiples of 1/1000, because fits take integer counts
PENALTY = 0.1  # of a Plackett-Luce fit
CONCENTRATIONS = (0.5, 0.7, 1.0, 1.4, 2.0)  # of inliers, as multiples of the fitted concentration
PROPOSALS = (0.25, 0.0)  # further concentrations for importance sampling
MIXING_ROUNDS = 200


# ---------------------------------------------------------------------- fits


def fit_plackett_luce(data: Data) -> PlackettLuce:
    """Return the Plackett-Luce fit; each pair of items that preferences relate counts as a ranking of two items."""
    if isinstance(data, Rankings):
        return PlackettLuce.fit(data)
    wins = pairwise_wins(data)
    better, worse = np.nonzero(wins)
    ranks = np.full((len(better) + 1, data.n_items), FREE, dtype=np.int32)  # the last row states nothing
    ranks[np.arange(len(better)), better], ranks[np.arange(len(worse)), worse] = 0, 1
    return PlackettLuce.fit(Rankings._trusted(ranks, data.items, np.append(wins[better, worse], 1)))


def fit_mallows(data: Data) -> MallowsModel:
    """Return a fast Mallows fit: by pairs for incomplete rows, and with a Borda-like center of more than 100 items."""
    center = None
    if data.n_items > MAX_SEARCHED_ITEMS:
        wins = pairwise_wins(data)
        center = np.argsort(np.argsort((wins.T - wins).sum(axis=1), kind="stable"))
    return MallowsModel.fit(data, center=center, max_down_sets=0)


def uniform_model(n_items: int) -> PlackettLuce:
    """Return the uniform distribution on all rankings."""
    return PlackettLuce(np.ones(n_items))


def with_concentration(model: Model, factor: float) -> Model:
    """Return the model with its concentration multiplied by a factor; 0 is the uniform distribution."""
    if isinstance(model, MallowsModel):
        return MallowsModel(model.center, model.theta * factor)
    return PlackettLuce((model.weights / model.weights.max()) ** factor)


# ---------------------------------------------------------------------- samples of the same shape


def sample_like(data: Data, clusters: Indices, models: Sequence[Model], rng: np.random.Generator) -> Data:
    """Return for each row a sample of the same shape from the model of its cluster."""
    full = np.empty((len(data), data.n_items), dtype=np.int32)
    for number, model in enumerate(models):
        rows = clusters == number
        full[rows] = model.sample(int(rows.sum()), rng=rng).ranks
    return coarsen(full, data)


def coarsen(full: RankArray, data: Data) -> Data:
    """Return full rankings with the bucket sizes and free items, or the related pairs, of the rows of some data."""
    if isinstance(data, Preferences):
        before = data.before
        related = before | before.transpose(0, 2, 1)
        packed = closure(np.packbits(related & (full[:, :, None] < full[:, None, :]), axis=2))
        return Preferences._trusted(packed, data.items, np.array(data.counts), data.users, ((),) * len(data))
    free = data.ranks == FREE
    order = np.argsort(np.where(free, data.n_items + full, full), axis=1)
    buckets = sorted_buckets(data)
    ranks = np.empty_like(buckets)
    np.put_along_axis(ranks, order, buckets, axis=1)
    return Rankings._trusted(np.where(free, FREE, ranks).astype(np.int32), data.items, np.array(data.counts))


def sorted_buckets(data: Rankings) -> RankArray:
    """Return the sorted bucket indices of the items of each ranking, free items last."""
    return np.sort(np.where(data.ranks == FREE, data.n_items, data.ranks), axis=1)


def shape_codes(data: Data) -> Indices:
    """Return a number for each row that is equal for rows of equal bucket sizes and numbers of free items."""
    if isinstance(data, Preferences):
        return np.zeros(len(data), dtype=np.intp)
    return np.unique(sorted_buckets(data), axis=0, return_inverse=True)[1].ravel()


# ---------------------------------------------------------------------- inlier models


@dataclass(frozen=True, eq=False)
class InlierModel:
    """A mixture of one model at several concentrations.

    Attributes
    ----------
    fitted : MallowsModel or PlackettLuce
        The model.
    shares : array of shape (5,)
        The share of each of :data:`CONCENTRATIONS`.
    """

    fitted: Model
    shares: FloatArray

    @classmethod
    def of(cls, fitted: Model, ballots: Rankings) -> InlierModel:
        """Return a fitted model with the maximum likelihood shares, by EM with a uniform component for outliers."""
        models = [*(with_concentration(fitted, factor) for factor in CONCENTRATIONS), uniform_model(ballots.n_items)]
        logs = np.stack([model.log_prob(ballots) for model in models])
        likelihood = np.exp(logs - logs.max(axis=0))
        frequencies = ballots.counts / ballots.n_voters
        n_inliers = len(CONCENTRATIONS)
        shares = np.array([*np.full(n_inliers, (1 - OUTLIER_SHARE) / n_inliers), OUTLIER_SHARE])
        for _ in range(MIXING_ROUNDS):
            joint = shares[:, None] * likelihood
            shares = np.maximum(joint / joint.sum(axis=0) @ frequencies, MIN_SHARE)
            shares /= shares.sum()
        return cls(fitted, shares[:-1] / shares[:-1].sum())

    def log_prob(self, ballots: Rankings) -> FloatArray:
        """Return the log-probability of each ranking."""
        logs = [with_concentration(self.fitted, factor).log_prob(ballots) for factor in CONCENTRATIONS]
        return log_mixture(self.shares, np.stack(logs))


def inlier_models(data: Data) -> list[InlierModel]:
    """Return the inlier models: Plackett-Luce, and Mallows if no item is free (otherwise it is slow).

    Probabilities of preferences are slow to compute, so their model is one fit to all rows.
    """
    if isinstance(data, Preferences):
        return [InlierModel(fit_plackett_luce(data), np.equal(CONCENTRATIONS, 1.0).astype(np.float64))]
    ballots = data.unique()
    models = [robust_fit(ballots, lambda rows: PlackettLuce.fit(rows, penalty=PENALTY * COUNT_UNIT))]
    if ballots.is_exhaustive():
        models.append(robust_fit(ballots, MallowsModel.fit))
    return [InlierModel.of(model, ballots) for model in models]


def robust_fit(ballots: Rankings, fit: Callable[[Rankings], Model]) -> Model:
    """Return the fit to inliers, by EM with a uniform component for outliers."""
    uniform_logs = uniform_model(ballots.n_items).log_prob(ballots)
    inlier, outlier_share = np.ones(len(ballots)), OUTLIER_SHARE
    for _ in range(MAX_ROUNDS):
        counts = np.rint(COUNT_UNIT * inlier * ballots.counts)
        rows = np.flatnonzero(counts)
        model = fit(with_counts(ballots[rows], counts[rows]))  # type: ignore[arg-type]
        log_odds = np.log(outlier_share / (1 - outlier_share)) + uniform_logs - model.log_prob(ballots)
        previous, inlier = inlier, 1 / (1 + np.exp(np.minimum(log_odds, 700.0)))
        outlier_share = max(1 - float(inlier @ ballots.counts) / ballots.n_voters, MIN_SHARE)
        if np.abs(inlier - previous).max() < CONVERGED or outlier_share > 1 - OUTLIER_SHARE:
            break
    return model


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """A sample from a proposal distribution, with importance weights of mean approximately 1."""

    ballots: Data
    weights: FloatArray


def sample_inliers(model: InlierModel, like: Data, rows: Indices, rng: np.random.Generator) -> WeightedSample:
    """Return a weighted sample of an inlier model with the shapes of the given rows of some data."""
    proposals = [with_concentration(model.fitted, factor) for factor in (*CONCENTRATIONS, *PROPOSALS)]
    parts = np.array_split(np.arange(len(rows)), len(proposals))
    full = np.empty((len(rows), like.n_items), dtype=np.int32)
    for part, proposal in zip(parts, proposals, strict=True):
        full[part] = proposal.sample(len(part), rng=rng).ranks
    ranked = Rankings._trusted(full, like.items)
    logs = np.stack([proposal.log_prob(ranked) for proposal in proposals])
    proposal_shares = np.array([len(part) for part in parts]) / len(rows)
    target = log_mixture(model.shares, logs[: len(CONCENTRATIONS)])
    return WeightedSample(coarsen(full, like[rows]), np.exp(target - log_mixture(proposal_shares, logs)))


def log_mixture(shares: FloatArray, logs: FloatArray) -> FloatArray:
    """Return the logarithm of a mixture of densities, given by the rows of their logarithms.

    Examples
    --------
    >>> np.exp(log_mixture(np.array([0.25, 0.75]), np.log([[0.2, 1.0], [0.4, 0.0 + 1e-300]]))).round(2)
    array([0.35, 0.25])
    """
    from scipy.special import logsumexp

    return np.asarray(logsumexp(logs, axis=0, b=shares[:, None]))
