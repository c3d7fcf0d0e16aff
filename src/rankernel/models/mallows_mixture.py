"""Mixtures of Mallows models, fitted to partial rankings by the EM algorithm with exact steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import check_integer, check_number
from rankernel._utils.combinatorics import log_q_factorials, log_q_factorials_derivative
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import as_data, as_nonempty_data, only_rankings
from rankernel.datasets.simulate import mallows
from rankernel.errors import ArgumentValueError, RankingError
from rankernel.kernels import Mallows
from rankernel.models.kemeny_search import kemeny_order
from rankernel.models.mallows import MAX_EXACT_ITEMS, MAX_THETA
from rankernel.preferences import relations_of_ranks
from rankernel.rankings import FREE, Rankings

CHUNK_NUMBERS = 2**22
MIN_THETA = 1e-9  # of the Mallows kernel
N_STARTS = 5  # local searches of a center, where it is not found exactly


class MallowsMixture(BaseEstimator):  # type: ignore[misc]
    r"""A mixture of Mallows models, a probabilistic clustering of partial rankings.

    A ranking R has the probability :math:`\sum_g \pi_g P(R | c_g, \theta_g)`, where each component is a Mallows model
    with the Kendall distance, and P is the sum over the completions of R. Without free items this is
    :math:`q^{D} \prod_b [n_b]_q! / [n]_q!` with :math:`q = e^{-\theta}`, bucket sizes :math:`n_b` and the number D of
    pairs in different buckets that the center orders the other way. Both steps of the EM algorithm are exact: the
    center is a Kemeny ranking of the weighted stated pairs, and theta solves one equation. Rankings with free items
    have exact probabilities too where the Mallows kernel is exact; the new center is then used only if it
    increases the likelihood. These take long, so the initializations use an approximation first, in which the listed
    items alone follow a Mallows model, and the exact algorithm starts from the best of them.

    A mixture answers how probable each cluster is for a voter, and how concentrated each cluster is;
    :class:`KernelKMeans` takes any kernel, and clusters that are not balls around one ranking.

    Parameters
    ----------
    n_components : int
        The number of components.
    n_init : int
        The number of initializations; the result with the largest likelihood is used.
    max_iter : int
        The maximal number of steps of each initialization.
    tol : float
        The gain in mean log-likelihood per voter below which the algorithm stops.
    random_state : int, Generator or None
        Seed of the initializations.

    Attributes
    ----------
    centers_ : Rankings
        The centers: one full ranking per component, in decreasing order of the weights.
    thetas_, weights_ : arrays of shape (n_components,)
        The dispersion parameters and the weights of the components.
    labels_ : array of shape (n_rankings,)
        The most probable component of each ranking.
    log_likelihood_ : float
        The log-likelihood of all voters.
    converged_ : bool
        Whether the best initialization converged.
    n_iter_ : int
        The number of its steps.
    is_optimal_ : array of shape (n_components,)
        Whether each center is proven optimal given the other parameters.

    Examples
    --------
    >>> from rankernel import datasets
    >>> a, b = datasets.mallows(80, range(5), 2.0, rng=1), datasets.mallows(40, [4, 3, 2, 1, 0], 2.0, rng=2)
    >>> model = MallowsMixture(2).fit(np.concatenate([a.ranks, b.ranks]))
    >>> model.centers_.ranks.tolist()
    [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]
    >>> model.weights_.round(2).tolist()
    [0.67, 0.33]
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_init: int = 8,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Seed = 0,
    ) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the mixture to rankings, each with its count; ``y`` is ignored."""
        for name in ("n_components", "n_init", "max_iter"):
            check_integer(name, getattr(self, name))
        check_number("tol", self.tol, 0)
        data = only_rankings(as_nonempty_data(X), "a mixture")
        rows = StatedPairs.of(data.unique(), exact=False)
        if self.n_components > len(rows.ranks):
            raise ArgumentValueError("n_components", self.n_components, f"at most {len(rows.ranks)} distinct rankings")
        rng = np.random.default_rng(as_seed(self.random_state, "random_state"))
        runs = [self._run(rows, rng) for _ in range(self.n_init)]
        best = max(runs, key=lambda run: run.log_likelihood)
        exact = StatedPairs.of(data.unique())
        if len(exact.free):
            best = self._run(exact, rng, best)
        order = np.argsort(-best.weights, kind="stable")
        self.items_ = data.items
        self.centers_ = Rankings._trusted(best.centers[order], data.items)
        self.thetas_, self.weights_ = best.thetas[order], best.weights[order]
        self.is_optimal_ = best.is_optimal[order]
        self.log_likelihood_ = best.log_likelihood
        self.converged_, self.n_iter_ = best.converged, best.n_iter
        self.n_features_in_ = data.n_items
        self.labels_ = self.predict(data)
        return self

    def _run(self, rows: StatedPairs, rng: np.random.Generator, start: Run | None = None) -> Run:
        """Return the result of one initialization, or of the algorithm from a given result."""
        if start is None:
            posterior = initial_groups(rows, self.n_components, rng)
            centers = np.zeros((self.n_components, rows.n_items), dtype=np.int32)
            thetas = np.full(self.n_components, np.nan)
        else:
            centers, thetas = start.centers.copy(), start.thetas.copy()
            posterior, _ = rows.posterior(centers, thetas, start.weights)
        is_optimal = np.zeros(self.n_components, dtype=bool)
        previous, converged = -np.inf, False
        n_iter = 0
        while n_iter < self.max_iter and not converged:
            n_iter += 1
            weights = rows.counts @ posterior / rows.counts.sum()
            for g in range(self.n_components):
                update = rows.best_component(posterior[:, g] * rows.counts, centers[g], float(thetas[g]), rng)
                centers[g], thetas[g], is_optimal[g] = update
            posterior, value = rows.posterior(centers, thetas, weights)
            converged = value - previous <= self.tol * rows.counts.sum()
            previous = value
        return Run(centers, thetas, weights, is_optimal, value, n_iter, converged)

    def _joint(self, X: Any) -> FloatArray:
        """Return the log-probability of each ranking and component."""
        check_is_fitted(self)
        data = only_rankings(X, "a mixture")
        if data.n_items != len(self.items_):
            raise RankingError(f"X has {data.n_items} items, but the mixture was fitted to {len(self.items_)}")
        if isinstance(X, Rankings) and data.items != self.items_ and set(data.items) == set(self.items_):
            data = data.with_items(self.items_)
        return StatedPairs.of(data).log_prob(self.centers_.ranks, self.thetas_) + np.log(self.weights_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the posterior probability of each component for each ranking."""
        joint = self._joint(X)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def predict(self, X: Any) -> IntArray:
        """Return the most probable component of each ranking."""
        return np.asarray(self._joint(X).argmax(axis=1))

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of each ranking."""
        return np.asarray(logsumexp(self._joint(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-probability per voter; ``y`` is ignored."""
        counts = as_data(X).counts
        return float(counts @ self.score_samples(X) / counts.sum())

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion; smaller is better. A center counts as one parameter."""
        counts = as_data(X).counts
        n_parameters = 3 * len(self.weights_) - 1
        return float(n_parameters * np.log(counts.sum()) - 2 * counts @ self.score_samples(X))

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion; smaller is better. A center counts as one parameter."""
        n_parameters = 3 * len(self.weights_) - 1
        return float(2 * n_parameters - 2 * as_data(X).counts @ self.score_samples(X))

    def sample(self, n_rankings: int, *, rng: Seed = 0) -> tuple[Rankings, IntArray]:
        """Draw full rankings, and return them with their components."""
        check_is_fitted(self)
        generator = np.random.default_rng(as_seed(rng))
        component = generator.choice(len(self.weights_), check_integer("n_rankings", n_rankings), p=self.weights_)
        ranks = np.empty((n_rankings, len(self.items_)), dtype=np.int32)
        for g, (center, theta) in enumerate(zip(self.centers_.ranks, self.thetas_.tolist(), strict=True)):
            chosen = np.flatnonzero(component == g)
            if len(chosen):
                ranks[chosen] = mallows(len(chosen), center, theta, rng=generator).ranks
        return Rankings._trusted(ranks, self.items_), component


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one initialization."""

    centers: RankArray
    thetas: FloatArray
    weights: FloatArray
    is_optimal: Any
    log_likelihood: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class StatedPairs:
    """Distinct rankings, with what their Mallows likelihoods depend on."""

    ranks: RankArray
    counts: FloatArray
    sizes: FloatArray  # (n_rows, n_items + 1): number of buckets of each size; 0 in the rows of ``free``
    n_ranked: IntArray  # number of items of the Mallows model of each row
    free: IntArray  # the rows with free items whose probabilities are computed by the Mallows kernel

    @classmethod
    def of(cls, data: Rankings, *, exact: bool = True) -> StatedPairs:
        """Count the buckets of rankings; if not ``exact``, the listed items alone follow a Mallows model."""
        n = data.n_items
        sizes = np.zeros((len(data), n + 1))
        rows = np.arange(len(data))
        for bucket in range(int(data.ranks.max(initial=-1)) + 1):
            np.add.at(sizes, (rows, (data.ranks == bucket).sum(axis=1)), 1.0)
        sizes[:, 0] = 0.0
        n_listed = (data.ranks != FREE).sum(axis=1)
        free = np.flatnonzero(n_listed < n)[: None if exact else 0]
        sizes[free], n_listed[free] = 0.0, n
        return cls(data.ranks, data.counts.astype(np.float64), sizes, n_listed, free)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.ranks.shape[1]

    def wins(self, weights: FloatArray) -> FloatArray:
        """Return the weighted number of rankings that have item x before item y."""
        n = self.n_items
        total, step = np.zeros((n, n)), max(CHUNK_NUMBERS // n**2, 1)
        for start in range(0, len(self.ranks), step):
            part = slice(start, start + step)
            total += np.tensordot(weights[part], relations_of_ranks(self.ranks[part]).astype(np.float64), axes=1)
        return total

    def discordant(self, centers: RankArray) -> FloatArray:
        """Return the number of stated pairs that each center orders the other way, shape (n_rows, n_centers)."""
        n = self.n_items
        reverse = (centers[:, :, None] > centers[:, None, :]).reshape(len(centers), n * n).astype(np.float64)
        result, step = np.empty((len(self.ranks), len(centers))), max(CHUNK_NUMBERS // n**2, 1)
        for start in range(0, len(self.ranks), step):
            part = slice(start, start + step)
            before = relations_of_ranks(self.ranks[part])
            result[part] = before.reshape(len(before), n * n).astype(np.float64) @ reverse.T
        return result

    def log_prob(self, centers: RankArray, thetas: FloatArray) -> FloatArray:
        """Return the log-probability of each ranking in each component."""
        n = self.n_items
        log_factorials = gammaln(np.arange(n + 1) + 1)
        tables = np.stack([log_q_factorials(n, theta) + log_factorials for theta in thetas.tolist()], axis=1)
        logs = self.sizes @ tables - thetas * self.discordant(centers)
        if len(self.free):
            logs[self.free] = self.log_sums_with_free_items(centers, thetas)
        return np.asarray(logs - tables[self.n_ranked])

    def posterior(self, centers: RankArray, thetas: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
        """Return the posterior probabilities of the components, and the log-likelihood."""
        logs = self.log_prob(centers, thetas) + np.log(np.maximum(weights, 1e-300))
        totals = logsumexp(logs, axis=1)
        return np.exp(logs - totals[:, None]), float(self.counts @ totals)

    def log_sums_with_free_items(self, centers: RankArray, thetas: FloatArray) -> FloatArray:
        """Return the logarithm of the sum of exp(-theta d) over the completions, by the marginalised Mallows kernel."""
        ranks, n = self.ranks[self.free], self.n_items
        listed = (ranks != FREE).sum(axis=1)
        log_number = gammaln(n + 1) - gammaln(listed + 1)
        for bucket in range(int(ranks.max(initial=-1)) + 1):
            log_number += gammaln((ranks == bucket).sum(axis=1) + 1)
        values = [
            Mallows(max(theta, MIN_THETA)).log_gram(ranks, center[None])[:, 0]
            for center, theta in zip(centers, thetas.tolist(), strict=True)
        ]
        return np.asarray(log_number[:, None] + np.stack(values, axis=1))

    def mean_distances(self, center: RankArray, theta: float) -> FloatArray:
        """Return the mean distance to a center over the completions of each ranking, weighted by exp(-theta d)."""
        derivatives = log_q_factorials_derivative(self.n_items, theta)
        means = self.discordant(center[None])[:, 0] - self.sizes @ derivatives
        if len(self.free):
            kernel = Mallows(max(theta, MIN_THETA))
            exact = kernel.estimate(self.ranks[self.free], center[None], method="exact", gradient=True)
            assert exact.gradient is not None
            means[self.free] = -exact.gradient["nu"][:, 0] / exact.value[:, 0]
        return means

    def best_component(
        self, weights: FloatArray, center: RankArray, theta: float, rng: np.random.Generator
    ) -> tuple[RankArray, float, bool]:
        """Return the center and theta that maximise the weighted likelihood, and whether the center is optimal.

        With free items, the new center is used if it has a larger likelihood than the previous one.
        """
        total = max(float(weights.sum()), 1e-300)
        result = kemeny_order(self.wins(weights / total), MAX_EXACT_ITEMS, N_STARTS, rng)
        new = np.empty(self.n_items, dtype=np.int32)
        new[result.order] = np.arange(self.n_items)
        if not len(self.free):
            return new, self.best_theta(weights, self.discordant(new[None])[:, 0], self.sizes), bool(result.exact)
        if not np.isfinite(theta):
            center, theta = new, 1.0
        elif not np.array_equal(new, center):
            both = weights @ self.log_prob(np.stack([center, new]), np.array([theta, theta]))
            center = center if both[0] >= both[1] else new
        # The step of the EM algorithm whose complete data are full rankings, so that the likelihood does not decrease.
        nothing = np.zeros((len(weights), self.n_items + 1))
        return center.copy(), self.best_theta(weights, self.mean_distances(center, theta), nothing), False

    def best_theta(self, weights: FloatArray, distances: FloatArray, sizes: FloatArray) -> float:
        """Return the theta with the largest weighted likelihood, given distances and bucket sizes."""
        distance = float(weights @ distances)
        of_sizes = weights @ sizes - np.bincount(self.n_ranked, weights, self.n_items + 1)

        def derivative(theta: float) -> float:
            return float(of_sizes @ log_q_factorials_derivative(self.n_items, theta) - distance)

        if derivative(0.0) <= 0:
            return 0.0
        return MAX_THETA if derivative(MAX_THETA) >= 0 else float(brentq(derivative, 0.0, MAX_THETA, xtol=1e-12))


def initial_groups(rows: StatedPairs, n_components: int, rng: np.random.Generator) -> FloatArray:
    """Return an initial assignment of rankings to components, by k-means++ on the stated pairs."""
    chosen: list[RankArray] = []
    nearest = np.full(len(rows.ranks), np.inf)
    for _ in range(n_components):
        chances = rows.counts * (nearest if chosen else 1.0)
        if not chances.sum() > 0:
            chances = rows.counts
        row = int(rng.choice(len(rows.ranks), p=chances / chances.sum()))
        ranks = rows.ranks[row].astype(np.float64)
        ranks[ranks == FREE] = rng.uniform(0, max(ranks.max(), 1), int((ranks == FREE).sum()))
        center = np.argsort(np.argsort(ranks + rng.random(rows.n_items) / 2)).astype(np.int32)
        chosen.append(center)
        nearest = np.minimum(nearest, rows.discordant(center[None])[:, 0] ** 2)
    distances = rows.discordant(np.array(chosen))
    posterior = np.exp(-(distances - distances.min(axis=1, keepdims=True)))
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))
