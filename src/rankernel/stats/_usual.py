"""How far usual ballots are from the mean of all: simulated from models, each with the shape of a real ballot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel.data import Data
from rankernel.gram.methods import unbiased_method
from rankernel.gram.plan import Plan
from rankernel.models.null_models import InlierModel, WeightedSample, sample_inliers, shape_codes
from rankernel.preferences import Preferences
from rankernel.stats._voters import Ballots

SIMULATED = 4000  # ballots of each model, divided among the shapes that there are
LEAST_SIMULATED = 800  # of each shape
MOST_SHAPES = 20  # that are simulated by themselves; rarer ones are taken together
TIED = 1e-10  # of the kernel of a ballot with itself: closer distances differ by rounding only


@dataclass(frozen=True, eq=False)
class UsualDistances:
    """The distances of ballots from the mean embedding of all others, and what simulated ballots are compared by.

    A ballot is part of the mean of all: its distance from the others is larger by the factor :math:`(n / (n - 1))^2`.
    That of a simulated ballot is stretched likewise, so that equal ballots are equally far away.
    """

    data: Data
    plan: Plan
    ballots: Data  # the distinct ones
    weights: FloatArray  # their shares
    squared_norm: float  # of the mean
    stretch: float
    distances: FloatArray

    @classmethod
    def of(cls, plan: Plan, gram: FloatArray, data: Data) -> UsualDistances:
        """Return the distances of the rows of some data, from the kernel between its distinct ballots."""
        row_of = np.arange(len(data)) if plan._rows is None else plan._rows
        n = float(data.n_voters)
        weights = np.bincount(row_of, data.counts, len(gram)) / n
        stretch, squared_norm = (n / (n - 1)) ** 2, float(weights @ gram @ weights)
        distances = stretch * (np.diagonal(gram) - 2 * gram @ weights + squared_norm)
        ballots = Ballots.of(data, plan).data
        return cls(data, plan, ballots, weights, squared_norm, stretch, np.asarray(distances[row_of]))

    def pvalues(self, models: Sequence[InlierModel], rng: np.random.Generator) -> FloatArray:
        """Return for each row how likely a ballot of its shape is so far away, by the model that says the most."""
        found = np.zeros(len(self.data))
        for rows in self.by_shape():
            share = float(self.data.counts[rows].sum() / self.data.n_voters)
            n_simulated = max(round(SIMULATED * share), LEAST_SIMULATED)
            chances = self.data.counts[rows] / self.data.counts[rows].sum()
            for model in models:
                drawn = sample_inliers(model, self.data, rng.choice(rows, n_simulated, p=chances), rng)
                tails = np.maximum(self.tails(drawn, self.distances[rows]), self.least(model, rows, n_simulated))
                found[rows] = np.maximum(found[rows], np.minimum(tails, 1.0))
        return found

    def by_shape(self) -> list[Indices]:
        """Return the rows of each shape, the rare ones together."""
        numbers = shape_codes(self.data)
        voters = np.bincount(numbers, self.data.counts)
        order = np.argsort(-voters, kind="stable")
        place = np.empty(len(voters), dtype=np.intp)
        place[order] = np.minimum(np.arange(len(voters)), MOST_SHAPES - 1)
        classes = place[numbers]
        return [np.flatnonzero(classes == number) for number in range(int(classes.max()) + 1)]

    def tails(self, drawn: WeightedSample, distances: FloatArray) -> FloatArray:
        """Return the weighed share of drawn ballots that are at least as far away as each distance."""
        first, inverse = drawn.ballots.unique_indices()
        method = unbiased_method(self.plan.method)
        different = drawn.ballots[first]
        toward = self.plan.kernel.gram(different, self.ballots, method=method) @ self.weights
        own = self.plan.kernel.plan(different, method=method).diagonal(unbiased=True)
        far = self.stretch * (own - 2 * toward + self.squared_norm)[inverse]
        order = np.argsort(far)
        above = np.concatenate([np.cumsum(drawn.weights[order][::-1])[::-1], [0.0]]) / len(far)
        scale = TIED * float(np.abs(own).mean())
        return np.asarray(above[np.searchsorted(far[order], distances - scale, side="left")])

    def least(self, model: InlierModel, rows: Indices, n_simulated: int) -> FloatArray:
        """Return what no p-value is below: the probability of the very ballot, or one over the simulations."""
        if isinstance(self.data, Preferences):
            return np.full(len(rows), 1 / (1 + n_simulated))
        return np.exp(model.log_prob(self.data[rows]))
