"""Mixtures of Mallows models, fitted to partial rankings by the EM algorithm with exact steps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import Seed, as_seed, check_integer, check_number
from rankernel._utils.combinatorics import mean_inversions
from rankernel.datasets import mallows
from rankernel.errors import ArgumentValueError
from rankernel.models.estimators import RankingEstimator
from rankernel.models.mallows import MAX_THETA, MallowsRows
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings, Unlisted, relations_of_ranks

N_STARTS = 5  # local searches of a center, where it is not found exactly


@dataclass(eq=False, repr=False)
class MallowsMixture(RankingEstimator):
    r"""A mixture of Mallows models, a probabilistic clustering of partial rankings.

    A ranking R has the probability :math:`\sum_g \pi_g P(R | c_g, \theta_g)`, where each component is a Mallows model
    with the Kendall distance, and P is the sum over the completions of R. Without free items this is
    :math:`q^{D} \prod_b [n_b]_q! / [n]_q!` with :math:`q = e^{-\theta}`, bucket sizes :math:`n_b` and the number D of
    pairs in different buckets that the center orders the other way. Both steps of the EM algorithm are exact: the
    center is a Kemeny ranking of the weighted stated pairs, and theta solves one equation. Rankings with free items and
    preferences have exact probabilities too, by sums over their lattices of down-sets; the new center is then used
    only if it increases the likelihood. These sums take long. So for rankings with free items the initializations use
    the approximation that the listed items alone follow a Mallows model, and the exact algorithm starts from the best
    initialization.

    A mixture answers how probable each cluster is for a voter, and how concentrated each cluster is;
    :class:`KernelKMeans` takes any kernel and also finds clusters without one central ranking.

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
    unlisted : {"last", "free"}, optional
        Meaning of NaN or None in a plain array or data frame: the item is last, or free. By default an error.

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
    log_likelihoods_ : array of shape (n_iterations,)
        The log-likelihood after each step of the best initialization, or of the exact algorithm that starts from it.
    converged_ : bool
        Whether the algorithm converged in these steps.
    n_iter_ : int
        Their number.
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

    n_components: int = 1
    _: KW_ONLY
    n_init: int = 8
    max_iter: int = 300
    tol: float = 1e-6
    random_state: Seed = 0
    unlisted: Unlisted | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the mixture to rankings or preferences, each with its count; ``y`` is ignored."""
        data = self._fit_items(X)
        for name in ("n_components", "n_init", "max_iter"):
            check_integer(name, getattr(self, name))
        check_number("tol", self.tol, 0)
        distinct = data.unique()
        if self.n_components > len(distinct):
            raise ArgumentValueError("n_components", self.n_components, f"at most {len(distinct)} distinct rankings")
        rng = np.random.default_rng(as_seed(self.random_state, "random_state"))
        exact = rows = MallowsRows(distinct)
        if isinstance(distinct, Rankings) and exact.is_incomplete.any():
            rows = MallowsRows(distinct, listed_only=True)
        best = max((self._run(rows, rng) for _ in range(self.n_init)), key=lambda run: run.log_likelihoods[-1])
        if rows is not exact:
            best = self._run(exact, rng, best)
        order = np.argsort(-best.weights, kind="stable")
        self.centers_ = Rankings._trusted(best.centers[order], data.items)
        self.thetas_, self.weights_ = best.thetas[order], best.weights[order]
        self.is_optimal_ = best.is_optimal[order]
        self.log_likelihoods_, self.log_likelihood_ = best.log_likelihoods, float(best.log_likelihoods[-1])
        self.converged_, self.n_iter_ = best.converged, len(best.log_likelihoods)
        self.labels_ = self.predict(data)
        return self

    def _run(self, rows: MallowsRows, rng: np.random.Generator, start: Run | None = None) -> Run:
        """Return the result of one initialization, or of the algorithm from a given result."""
        counts, n_groups = rows.data.counts.astype(np.float64), self.n_components
        if start is None:
            posterior = initial_groups(rows, n_groups, rng)
            centers, thetas = np.zeros((n_groups, rows.n_items), dtype=np.int32), np.full(n_groups, np.nan)
        else:
            centers, thetas = start.centers.copy(), start.thetas.copy()
            posterior, _ = posterior_of(rows, centers, thetas, start.weights)
        is_optimal, values, converged = np.zeros(n_groups, dtype=bool), [-np.inf], False
        while len(values) <= self.max_iter and not converged:
            weights = counts @ posterior / counts.sum()
            for g in range(n_groups):
                update = best_component(rows, posterior[:, g] * counts, centers[g], float(thetas[g]), rng)
                centers[g], thetas[g], is_optimal[g] = update
            posterior, value = posterior_of(rows, centers, thetas, weights)
            converged = value - values[-1] <= self.tol * counts.sum()
            values.append(value)
        return Run(centers, thetas, weights, is_optimal, np.array(values[1:]), converged)

    def _joint(self, X: Any) -> FloatArray:
        """Return the log-probability of each ranking and component."""
        return joint_log_prob(MallowsRows(self._match_items(X)), self.centers_.ranks, self.thetas_, self.weights_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the posterior probability of each component for each ranking."""
        return np.asarray(softmax(self._joint(X), axis=1))

    def predict(self, X: Any) -> IntArray:
        """Return the most probable component of each ranking."""
        return np.asarray(self._joint(X).argmax(axis=1))

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of each ranking."""
        return np.asarray(logsumexp(self._joint(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-probability per voter; ``y`` is ignored."""
        log_likelihood, n_voters = self._log_likelihood(X)
        return log_likelihood / n_voters

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion; smaller is better. A center counts as one parameter."""
        log_likelihood, n_voters = self._log_likelihood(X)
        return float(np.log(n_voters)) * (3 * len(self.weights_) - 1) - 2 * log_likelihood

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion; smaller is better. A center counts as one parameter."""
        return 2 * (3 * len(self.weights_) - 1) - 2 * self._log_likelihood(X)[0]

    def _log_likelihood(self, X: Any) -> tuple[float, int]:
        """Return the log-likelihood of all voters, and their number."""
        data = self._match_items(X)
        return float(data.counts @ self.score_samples(data)), data.n_voters

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


class Run(NamedTuple):
    """The result of one initialization."""

    centers: RankArray
    thetas: FloatArray
    weights: FloatArray
    is_optimal: Any
    log_likelihoods: FloatArray
    converged: bool


def joint_log_prob(rows: MallowsRows, centers: RankArray, thetas: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the log-probability of each row and component."""
    logs = [rows.log_prob(center, theta) for center, theta in zip(centers, thetas.tolist(), strict=True)]
    return np.stack(logs, axis=1) + np.log(np.maximum(weights, np.finfo(float).tiny))


def posterior_of(
    rows: MallowsRows, centers: RankArray, thetas: FloatArray, weights: FloatArray
) -> tuple[FloatArray, float]:
    """Return the posterior probabilities of the components, and the log-likelihood."""
    logs = joint_log_prob(rows, centers, thetas, weights)
    totals = logsumexp(logs, axis=1)
    return np.exp(logs - totals[:, None]), float(rows.data.counts @ totals)


def best_component(
    rows: MallowsRows, weights: FloatArray, center: RankArray, theta: float, rng: np.random.Generator
) -> tuple[RankArray, float, bool]:
    """Return the center and theta that maximise the weighted likelihood, and whether the center is optimal.

    With incomplete rows, the center of the stated pairs is used if it has a larger likelihood than the previous one,
    and theta is that of the EM algorithm whose complete data are full rankings, so the likelihood does not decrease.
    """
    new, is_optimal = rows.best_center(weights, N_STARTS, rng)
    if not rows.is_incomplete.any():
        return new, rows.best_theta(weights, new), is_optimal
    if not np.isfinite(theta):
        center, theta = new, 1.0
    elif not np.array_equal(new, center):
        old_value, new_value = (float(weights @ rows.log_prob(each, theta)) for each in (center, new))
        center = center if old_value >= new_value else new
    distance, total = float(weights @ rows.mean_distances(center, theta)), float(weights.sum())

    def derivative(value: float) -> float:
        return total * mean_inversions(rows.n_items, value) - distance

    if derivative(0.0) <= 0:
        return center, 0.0, False
    return center, MAX_THETA if derivative(MAX_THETA) >= 0 else brentq(derivative, 0.0, MAX_THETA, xtol=1e-12), False


def initial_groups(rows: MallowsRows, n_components: int, rng: np.random.Generator) -> FloatArray:
    """Return an initial assignment of rows to components, by k-means++ on the stated pairs."""
    counts, chosen = rows.data.counts.astype(np.float64), np.empty((0, rows.n_items), dtype=np.int32)
    nearest = np.ones(len(counts))
    for _ in range(n_components):
        chances = counts * nearest if (counts * nearest).any() else counts
        row = rows.data[[int(rng.choice(len(counts), p=chances / chances.sum()))]]
        before = row.before[0] if isinstance(row, Preferences) else relations_of_ranks(row.ranks)[0]
        # A random linear extension: an item has a larger key than all items before it.
        keys = before.sum(axis=0) + rng.random(rows.n_items)
        chosen = np.vstack([chosen, np.argsort(np.argsort(keys)).astype(np.int32)])
        nearest = rows.discordant(chosen).min(axis=1) ** 2
    return np.asarray(softmax(-rows.discordant(chosen), axis=1))
