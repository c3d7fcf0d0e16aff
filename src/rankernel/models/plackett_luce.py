r"""The Plackett-Luce model: exact sampling given partial rankings, exact likelihood, and maximum likelihood.

The model is a race: item x arrives after an exponential time of rate :math:`w_x`, and the order of arrival is the
ranking. A bucket with rates w comes before items of total rate W with probability

.. math:: I = \int_0^\infty W e^{-W y} \prod_x (1 - e^{-w_x y}) \, dy,

where y is the first arrival among the later items. As a function of s = log y the integrand is smooth and decays
exponentially on both sides, so the trapezoidal rule converges exponentially in the number of nodes across the peak: for
a normal peak of standard deviation d and step h the error is near exp(-2 pi^2 d^2 / h^2). The peak of a large bucket is
narrow, so the step is proportional to its standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from rankernel._loops.compiled import compiled_strictly
from rankernel._loops.random_streams import State, Streams, exponential, seed_state, substream, uniform
from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import Seed, as_seed, check_instance, check_integer, check_number
from rankernel._utils.resources import check_interrupt, run_interruptibly, slices
from rankernel.completions.draws import CHUNK_KEYS, CompletionModel, Coupling, Weighted, complete
from rankernel.datasets import plackett_luce, positive_weights
from rankernel.errors import RankingError, warn
from rankernel.rankings import Rankings, as_rankings, check_positions

TOLERANCE = 1e-6  # largest gradient of the loss per voter at the end of a fit
MAX_STEP = 0.2  # of the trapezoidal rule, in log y
STEPS_PER_DEVIATION = 2.0
MAX_DECAY = 42.0  # logarithm of the ratio of the peak to the smallest node: exp(-42) is below the rounding error


@dataclass(frozen=True, eq=False)
class ModelFit:
    """The data that a model was fitted to, its likelihood, and standard errors.

    Attributes
    ----------
    items : tuple of str
        The names of the items.
    log_likelihood : float
        The log-likelihood of all voters.
    n_parameters : int
        The number of parameters; a center counts as one.
    n_voters : int
        The number of voters.
    """

    items: tuple[str, ...]
    log_likelihood: float
    n_parameters: int
    n_voters: int
    _covariance: Callable[[], FloatArray] = field(repr=False)  # computed on first use

    @cached_property
    def covariance(self) -> FloatArray:
        """The covariance matrix of the estimates, by the inverse of the observed information."""
        return self._covariance()

    @property
    def standard_errors(self) -> FloatArray:
        """The standard errors of the estimates."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def aic(self) -> float:
        """Akaike's information criterion; smaller is better."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """The Bayesian information criterion; smaller is better."""
        return float(self.n_parameters * np.log(self.n_voters)) - 2 * self.log_likelihood


@dataclass(frozen=True, eq=False)
class PlackettLuce(CompletionModel):
    r"""The Plackett-Luce model: items are chosen one after another with probability proportional to their weights.

    A full ranking has probability :math:`p(\sigma) = \prod_i w_{x_i} / (w_{x_i} + ... + w_{x_n})`, where
    :math:`x_1, ..., x_n` are the items, best first, and :math:`p(\sigma | R) \propto p(\sigma)` on the completions of
    R. Draws are exact for all rankings, also with ties and free items.

    Parameters
    ----------
    weights : array of shape (n_items,)
        Positive weights in the order of the items; only their ratios matter.

    Attributes
    ----------
    summary : ModelFit or None
        After :meth:`fit`: ``items``, ``log_likelihood``, ``aic``, ``bic``, ``n_voters``, and ``standard_errors`` and
        ``covariance`` of the log-weights (of mean 0).

    Examples
    --------
    Items 1 and 2 of a top-1 list of four: item 2 is before item 1 three times out of four.

    >>> from rankernel.completions import draw
    >>> model = PlackettLuce([1, 1, 3, 5])
    >>> drawn = draw([[0, 1, 1, 1]], n_draws=10_000, completions=model).ranks[0]
    >>> round(float((drawn[:, 2] < drawn[:, 1]).mean()), 2)
    0.75
    >>> round(float(np.exp(model.log_prob([[0, 1, 1, 1]])[0])), 12)
    0.1
    """

    weights: FloatArray
    summary: ModelFit | None = field(default=None, repr=False)

    @np.errstate(under="ignore")
    def __post_init__(self) -> None:
        array = positive_weights(self.weights)
        if not (array / array.max() > 0).all():
            raise RankingError("weights: the ratio of the smallest to the largest weight underflows to 0")
        array.flags.writeable = False
        object.__setattr__(self, "weights", array)
        check_instance("summary", self.summary, ModelFit | None, "the summary of a fit, or None")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlackettLuce) and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash(self.weights.tobytes())

    @classmethod
    def fit(cls, X: Any, *, penalty: float = 0.1, max_iter: int = 10_000) -> PlackettLuce:
        r"""Return the penalised maximum likelihood fit to rankings.

        It maximises :math:`\sum_i c_i \log p(R_i) - \frac{\lambda}{2} \sum_x (\log w_x)^2`, where :math:`c_i` are the
        counts and :math:`p(R)` is the exact probability of the set of completions of R: free items drop out, ties and
        top-k lists are sums over their orders. The objective is concave in the log-weights, and the penalty
        :math:`\lambda > 0` keeps them finite if an item always wins or is never compared.

        Parameters
        ----------
        X : Rankings
            The data; each row counts as often as its count.
        penalty : float
            The inverse variance of a normal prior on the log-weights.
        max_iter : int
            The largest number of iterations of L-BFGS.

        Returns
        -------
        PlackettLuce
            The model; the geometric mean of its weights is 1.

        Examples
        --------
        Two items that win 30 and 10 times, almost without a penalty, have weights of ratio 3:

        >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[30, 10])
        >>> model = PlackettLuce.fit(ballots, penalty=1e-9)
        >>> round(float(model.weights[0] / model.weights[1]), 6)
        3.0
        >>> model.summary.items, model.summary.standard_errors.round(3).tolist(), round(model.summary.aic, 2)
        (('a', 'b'), [0.183, 0.183], 46.99)
        """
        from scipy.optimize import minimize
        from threadpoolctl import threadpool_limits

        penalty = check_number("penalty", penalty, 0, above=True)
        check_integer("max_iter", max_iter)
        data = as_rankings(X, "X").unique()
        if not len(data):
            raise RankingError("X: there are no rankings; give at least one")
        options = {"maxiter": max_iter, "maxfun": 10 * max_iter, "ftol": 1e-15, "gtol": 1e-9 * data.n_voters}
        with threadpool_limits(1, "blas"):  # threads slow down small systems
            start = np.zeros(data.n_items)
            minimized = partial(minimize, jac=True, method="L-BFGS-B", options=options)
            result = run_interruptibly(minimized, loss, start, (data, penalty))
        if np.abs(result.jac).max() > TOLERANCE * data.n_voters:
            warn(f"the fit has not converged: {result.message}; increase max_iter", RuntimeWarning)
        logs = result.x - result.x.mean()
        likelihood = penalty / 2 * float(result.x @ result.x) - float(result.fun)
        covariance = partial(run_interruptibly, log_weight_covariance, logs, data, penalty)
        summary = ModelFit(data.items, likelihood, data.n_items - 1, data.n_voters, covariance)
        return cls(np.exp(logs), summary)

    def sample(self, n_rankings: int, *, rng: Seed = 0, items: Iterable[object] | None = None) -> Rankings:
        """Draw full rankings from the model, of the items of the data: see :func:`rankernel.datasets.plackett_luce`.

        Examples
        --------
        >>> PlackettLuce([1, 1e9]).sample(2, items=["a", "b"]).to_orders()
        [['b', 'a'], ['b', 'a']]
        """
        names = self.summary.items if items is None and self.summary is not None else items
        return plackett_luce(n_rankings, self.weights, rng=np.random.default_rng(as_seed(rng)), items=names)

    def log_prob(self, X: Any) -> FloatArray:
        """Return the log-probability of each ranking; for a partial ranking, that of the set of its completions."""
        ranks = self._checked(as_rankings(X, "X").ranks)
        weights = self.weights / self.weights.max()
        return run_interruptibly(log_probabilities, ranks, weights, np.ones(len(ranks)), np.zeros(len(weights)))

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return independent draws from p(.|R), all of weight 1."""
        self.check_independent(coupling)
        ranks = self._checked(ranks)
        n_rankings, n_items = ranks.shape
        check_positions(n_items)
        out = np.empty((n_rankings, n_draws, n_items), dtype=np.int16)
        for rows in slices(n_rankings, CHUNK_KEYS // max(n_draws * n_items, 1)):
            times = arrival_times(ranks[rows], self.weights / self.weights.max(), n_draws, streams[rows])
            out[rows] = complete(np.zeros_like(ranks[rows]), times)  # all items in the order of their times
        return out, None

    def _checked(self, ranks: RankArray) -> RankArray:
        """Return ranks, and raise an error unless there is one weight per item."""
        if ranks.shape[1] != len(self.weights):
            raise RankingError(f"there are {len(self.weights)} weights for {ranks.shape[1]} items; give one for each")
        return np.ascontiguousarray(ranks, dtype=np.int32)


def log_probabilities(ranks: RankArray, weights: FloatArray, counts: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the log-probability of each ranking, and add counts times its gradient in the log-weights."""
    n_items, logs = len(weights), np.zeros(len(ranks))
    members, ends = np.empty(n_items, dtype=np.int64), np.empty(n_items + 1, dtype=np.int64)
    add_log_probabilities(ranks, weights, counts, members, ends, np.empty((2, n_items + 1)), logs, gradient)
    return logs


def loss(logs: FloatArray, data: Rankings, penalty: float) -> tuple[float, FloatArray]:
    """Return the penalised negative log-likelihood and its gradient in the log-weights."""
    check_interrupt()
    gradient = np.zeros(len(logs))
    counts = data.counts.astype(np.float64)
    values = log_probabilities(data.ranks, np.exp(logs - logs.max()), counts, gradient)
    return penalty / 2 * float(logs @ logs) - float(counts @ values), penalty * logs - gradient


def log_weight_covariance(logs: FloatArray, data: Rankings, penalty: float) -> FloatArray:
    """Return the covariance matrix of the log-weights, of mean 0, from central differences of the gradient."""
    n_items, step = len(logs), 1e-4
    shifts = step * np.eye(n_items)
    hessian = [
        (loss(logs + shift, data, penalty)[1] - loss(logs - shift, data, penalty)[1]) / (2 * step) for shift in shifts
    ]
    # A common factor of the weights does not change the likelihood, so that direction is made regular and removed.
    regular = (np.array(hessian) + np.transpose(hessian)) / 2 + 1
    centre = np.eye(n_items) - 1 / n_items
    return np.asarray(centre @ np.linalg.inv(regular) @ centre)


# ---------------------------------------------------------------------- the probability that a bucket comes first


@compiled_strictly
def log_density(y: float, rates: FloatArray, later: float) -> float:
    """Return the logarithm of ``later exp(-later y) prod (1 - exp(-rates y))``."""
    total = np.log(later) - later * y
    for rate in rates:
        total += np.log(-np.expm1(-rate * y))
    return total


@compiled_strictly
def log_density_derivative(y: float, rates: FloatArray, later: float) -> float:
    """Return the derivative of the log-density, a decreasing function of y."""
    total = -later
    for rate in rates:
        # Beyond 700 the exponential overflows and the term is 0.
        total += rate / np.expm1(rate * y) if rate * y < 700.0 else 0.0
    return total


@compiled_strictly
def mode(rates: FloatArray, later: float) -> float:
    """Return the mode of the log-concave density, by bisection on a logarithmic scale."""
    low = 1.0 / later
    while log_density_derivative(low, rates, later) < 0.0:
        low *= 0.5
    high = low
    while log_density_derivative(high, rates, later) > 0.0:
        high *= 2.0
    for _ in range(60):
        middle = np.sqrt(low * high)
        if log_density_derivative(middle, rates, later) > 0.0:
            low = middle
        else:
            high = middle
    return np.sqrt(low * high)


@compiled_strictly
def integrate(rates: FloatArray, later: float, gradient: FloatArray) -> float:
    """Return log I; write its derivatives in the logarithms of the rates into ``gradient``, that in log W last."""
    size = len(rates)
    peak = mode(rates, later)
    curvature = later * peak  # of the logarithm of the integrand in log y, at the peak
    for rate in rates:
        z = rate * peak
        share = z / np.expm1(z) if z < 700.0 else 0.0
        curvature += share * (share + z - 1.0)
    step = min(MAX_STEP, 1.0 / (STEPS_PER_DEVIATION * np.sqrt(curvature)))
    log_peak = log_density(peak, rates, later) + np.log(peak)
    total = 0.0
    for j in range(size + 1):
        gradient[j] = 0.0
    for side in (-1, 1):
        node = 0 if side > 0 else 1
        while True:
            y = peak * np.exp(side * node * step)
            exponent = log_density(y, rates, later) + np.log(y) - log_peak
            if exponent < -MAX_DECAY:
                break
            mass = np.exp(exponent)
            total += mass
            for j in range(size):
                z = rates[j] * y
                gradient[j] += mass * (z / np.expm1(z) if z < 700.0 else 0.0)
            gradient[size] += mass * (1.0 - later * y)
            node += 1
    for j in range(size + 1):
        gradient[j] /= total
    return log_peak + np.log(total * step)


@compiled_strictly
def group_by_bucket(ranks: RankArray, members: IntArray, ends: IntArray) -> int:
    """Write the items bucket by bucket, free items last, and the end of each bucket; return the number of buckets."""
    n_items = len(ranks)
    n_buckets = 0
    for a in range(n_items):
        n_buckets = max(n_buckets, ranks[a] + 1)
    for b in range(n_buckets + 1):
        ends[b] = 0
    for a in range(n_items):
        ends[ranks[a] if ranks[a] >= 0 else n_buckets] += 1
    total = 0
    for b in range(n_buckets + 1):
        size = ends[b]
        ends[b] = total
        total += size
    for a in range(n_items):
        b = ranks[a] if ranks[a] >= 0 else n_buckets
        members[ends[b]] = a
        ends[b] += 1
    return n_buckets


@compiled_strictly
def add_log_probabilities(
    ranks: RankArray,
    weights: FloatArray,
    counts: FloatArray,
    members: IntArray,
    ends: IntArray,
    parts: FloatArray,
    logs: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add the log-probability of each ranking to ``logs``, and counts times its gradient in the log-weights.

    ``members``, ``ends`` and ``parts`` are for intermediate results. ``parts`` has two rows: derivatives, and rates.
    """
    rates = parts[1]
    for i in range(len(ranks)):
        n_buckets = group_by_bucket(ranks[i], members, ends)
        later = 0.0
        stop = ends[n_buckets - 1] if n_buckets else 0
        for b in range(n_buckets - 1, -1, -1):
            start = ends[b - 1] if b else 0
            size = stop - start
            total = 0.0
            for j in range(size):
                rates[j] = weights[members[start + j]]
                total += rates[j]
            if later > 0.0:
                if size == 1:
                    share = rates[0] / (rates[0] + later)
                    logs[i] += np.log(share)
                    parts[0, 0], parts[0, 1] = 1.0 - share, share - 1.0
                else:
                    logs[i] += integrate(rates[:size], later, parts[0])
                for j in range(size):
                    gradient[members[start + j]] += counts[i] * parts[0, j]
                for j in range(stop, ends[n_buckets - 1]):
                    gradient[members[j]] += counts[i] * parts[0, size] * weights[members[j]] / later
            later += total
            stop = start


# ---------------------------------------------------------------------- arrival times


@compiled_strictly
def first_later_arrival(rates: FloatArray, later: float, peak: float, height: float, state: State) -> float:
    """Draw y from its log-concave density with known mode and density there, by Devroye's rejection method (1 in 4)."""
    log_peak = log_density(peak, rates, later)
    while True:
        x = 2.0 * uniform(state)
        log_height = -exponential(state)
        if x > 1.0:
            excess = exponential(state)
            x = 1.0 + excess
            log_height -= excess
        y = peak + x / height if uniform(state) < 0.5 else peak - x / height
        if y > 0.0 and log_height <= log_density(y, rates, later) - log_peak:
            return y


@compiled_strictly
def bucket_times(rates: FloatArray, later: float, peak: float, height: float, state: State, times: FloatArray) -> float:
    """Draw the arrivals of a bucket given that all precede any later item; return the first later arrival."""
    size = len(rates)
    if later == 0.0:
        for j in range(size):
            times[j] = exponential(state) / rates[j]
        return np.inf
    if size == 1:
        times[0] = exponential(state) / (rates[0] + later)
        return times[0] + exponential(state) / later
    y = first_later_arrival(rates, later, peak, height, state)
    for j in range(size):
        times[j] = -np.log1p(uniform(state) * np.expm1(-rates[j] * y)) / rates[j]
    return y


@compiled_strictly
def prepare_buckets(
    rates: FloatArray, ends: IntArray, n_buckets: int, later: FloatArray, peaks: FloatArray, heights: FloatArray
) -> None:
    """Write the total rate after each bucket, and the mode of its first later arrival and the density there."""
    total = 0.0
    parts = np.empty(len(rates) + 1)
    for b in range(n_buckets - 1, -1, -1):
        start = ends[b - 1] if b else 0
        bucket = rates[start : ends[b]]
        later[b] = total
        if total > 0.0 and len(bucket) > 1:
            peaks[b] = mode(bucket, total)
            heights[b] = np.exp(log_density(peaks[b], bucket, total) - integrate(bucket, total, parts))
        total += bucket.sum()


@compiled_strictly
def arrival_times(ranks: RankArray, weights: FloatArray, n_draws: int, streams: Streams) -> FloatArray:
    """Return arrival times of all items given the rankings, shape (n_rankings, n_draws, n_items).

    By memorylessness, the arrivals of a bucket after the first later arrival of the previous one are shifted so that
    its first arrival is at that time. Free items are independent.
    """
    n_rankings, n_items = ranks.shape
    out = np.empty((n_rankings, n_draws, n_items))
    members, ends = np.empty(n_items, dtype=np.int64), np.empty(n_items + 1, dtype=np.int64)
    rates, times, later = np.empty(n_items), np.empty(n_items), np.zeros(n_items)
    peaks, heights = np.ones(n_items), np.ones(n_items)
    state = np.empty(4, dtype=np.uint64)
    for i in range(n_rankings):
        n_buckets = group_by_bucket(ranks[i], members, ends)
        for j in range(n_items):
            rates[j] = weights[members[j]]
        prepare_buckets(rates, ends, n_buckets, later, peaks, heights)
        for d in range(n_draws):
            seed_state(state, substream(streams[i], d))
            start, clock = 0, 0.0
            for b in range(n_buckets):
                bucket = times[start : ends[b]]
                next_arrival = bucket_times(rates[start : ends[b]], later[b], peaks[b], heights[b], state, bucket)
                shift = clock - bucket.min() if b else 0.0
                for j in range(len(bucket)):
                    bucket[j] += shift
                clock = next_arrival + shift
                start = ends[b]
            for j in range(start, n_items):
                times[j] = exponential(state) / rates[j]
            for j in range(n_items):
                out[i, d, members[j]] = times[j]
    return out
