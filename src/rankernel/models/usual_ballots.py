r"""Models of one kind of voter, fitted so that a few ballots of another kind do not matter.

A ballot comes from the model, or, with a small probability that is estimated, too, from anywhere: all rankings equally
likely. The model is fitted to each ballot by as much as it is likely to be of the first kind (an EM algorithm), so that
ballots which the model does not explain do not count. Where there are none, hardly any ballot loses weight.

Voters of one kind may be more or less sure: the concentration of the model is mixed, from half of what was fitted to
twice of it, with shares that are estimated in the same way.

Probabilities far out in a tail are had by drawing from the model at all these concentrations and at smaller ones, down
to the uniform: each draw has a weight that makes up for where it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel.data import Data, with_counts
from rankernel.models.mallows_model import MallowsModel
from rankernel.models.null_ballots import as_said, fit_model, sorted_buckets
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings

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
class UsualModel:
    """A model of which the voters are more or less sure: what was fitted, and the share of each :data:`SURENESS`."""

    fitted: Model
    shares: FloatArray

    @classmethod
    def of(cls, fitted: Model, ballots: Rankings) -> UsualModel:
        """Return a model that was fitted to ballots, with the shares of voters that are more or less sure."""
        models = [*(at_concentration(fitted, factor) for factor in SURENESS), anywhere(ballots)]
        logs = np.stack([model.log_probability(ballots) for model in models])
        likely = np.exp(logs - logs.max(axis=0))
        voters = ballots.counts / ballots.n_voters
        shares = np.array([*np.full(len(SURENESS), (1 - ELSEWHERE) / len(SURENESS)), ELSEWHERE])
        for _ in range(MIXING_ROUNDS):
            joint = shares[:, None] * likely
            shares = np.maximum(joint / joint.sum(axis=0) @ voters, LEAST_SHARE)
            shares /= shares.sum()
        return cls(fitted, shares[:-1] / shares[:-1].sum())

    def log_probability(self, ballots: Rankings) -> FloatArray:
        """Return the log-probability of each ballot."""
        return self.mixed(np.stack([at_concentration(self.fitted, f).log_probability(ballots) for f in SURENESS]))

    def mixed(self, logs: FloatArray) -> FloatArray:
        """Return log-probabilities from those of the model at each concentration."""
        return log_mixture(self.shares, logs)


def usual_models(data: Data) -> list[UsualModel]:
    """Return models of the usual ballots: Plackett-Luce, and Mallows where no item is free, which makes it quick.

    Preferences have no probabilities that could be had quickly: one plain fit of all must do.
    """
    if isinstance(data, Preferences):
        return [UsualModel(fit_model(data), np.equal(SURENESS, 1.0).astype(np.float64))]
    ballots = data.unique()
    found = [robust_fit(ballots, lambda some: PlackettLuce.fit(some, PENALTY * FINE))]
    if ballots.is_exhaustive():
        found.append(robust_fit(ballots, MallowsModel.fit))
    return [UsualModel.of(model, ballots) for model in found]


def robust_fit(ballots: Rankings, fit: Callable[[Rankings], Model]) -> Model:
    """Return the model of the ballots that are not from anywhere."""
    from_anywhere = anywhere(ballots).log_probability(ballots)
    weights, elsewhere = np.ones(len(ballots)), ELSEWHERE
    for _ in range(ROUNDS):
        counts = np.rint(FINE * weights * ballots.counts)
        counted = np.flatnonzero(counts)
        model = fit(with_counts(ballots[counted], counts[counted]))  # type: ignore[arg-type]
        odds = np.log(elsewhere / (1 - elsewhere)) + from_anywhere - model.log_probability(ballots)
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
class WeighedBallots:
    """Ballots drawn in several ways, with the weights that make them ballots of a model: of mean 1, nearly."""

    ballots: Data
    weights: FloatArray


def draw_usual(model: UsualModel, like: Data, rows: Indices, rng: np.random.Generator) -> WeighedBallots:
    """Return ballots, each told as a row of some data is told: ``rows`` says which."""
    ways = [at_concentration(model.fitted, factor) for factor in (*SURENESS, *FLATTER)]
    parts = np.array_split(np.arange(len(rows)), len(ways))
    full = np.empty((len(rows), like.n_items), dtype=np.int32)
    for part, way in zip(parts, ways, strict=True):
        full[part] = way.sample(len(part), rng).ranks
    ranked = Rankings._trusted(full, like.items)
    logs = np.stack([way.log_probability(ranked) for way in ways])
    shares = np.array([len(part) for part in parts]) / len(rows)
    weights = np.exp(model.mixed(logs[: len(SURENESS)]) - log_mixture(shares, logs))
    return WeighedBallots(as_said(full, like[rows]), weights)


def log_mixture(shares: FloatArray, logs: FloatArray) -> FloatArray:
    """Return the logarithm of a mixture of densities, one row of logarithms each.

    Examples
    --------
    >>> np.exp(log_mixture(np.array([0.25, 0.75]), np.log([[0.2, 1.0], [0.4, 0.0 + 1e-300]]))).round(2)
    array([0.35, 0.25])
    """
    from scipy.special import logsumexp

    return np.asarray(logsumexp(logs, axis=0, b=shares[:, None]))


def shapes(data: Data) -> Indices:
    """Return a number for each row that is the same for rows of the same shape: ties, length and free items."""
    if isinstance(data, Preferences):
        return np.zeros(len(data), dtype=np.intp)
    found: Indices = np.unique(sorted_buckets(data), axis=0, return_inverse=True)[1].ravel()
    return found
