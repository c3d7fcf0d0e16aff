r"""A sequential test by betting, which may be evaluated after every observation (Shekhar and Ramdas 2023).

Observation t has an embedding :math:`d_t` whose sign is random under the null hypothesis, given everything else:
:math:`\phi(x_t) - \phi(y_t)` for two samples, and :math:`(\phi(x) - \phi(x')) \otimes (\psi(z) - \psi(z'))` of two
successive rankings x, x' with covariates z, z' for independence (Podkopaev et al. 2023). The normalised witness of the
past is :math:`f_t = \sum_{s<t} d_s / |\sum_{s<t} d_s|`, and the payoff

.. math:: v_t = \langle f_t, d_t \rangle / \max_{s \le t} |d_s|

lies in [-1, 1] for every kernel and has mean 0 under the null hypothesis, because the divisor does not depend on the
sign of :math:`d_t`. So the wealth :math:`\prod_t (1 + \lambda_t v_t)` of a gambler whose bets :math:`\lambda_t` depend
on the past is a nonnegative martingale that starts at 1: the probability that it ever exceeds 1/alpha is at most alpha
(Ville). Bets follow the online Newton step. Estimated kernel values depend on the rankings and the seed only, so the
same holds for them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, RankArray
from rankernel._utils.checks import Seed, as_generator, check_choice, check_labels, check_number, short_repr
from rankernel._utils.resources import slices
from rankernel.completions.draws import CompletionModel
from rankernel.errors import RankingError
from rankernel.gram.bandwidth import median_of_pairs
from rankernel.gram.plan import MethodLike, Plan
from rankernel.kernels.base import MEDIAN, Kernel
from rankernel.rankings import Rankings, as_rankings, is_missing, unique_rows
from rankernel.stats.base import check_kernel, warn_if_not_characteristic
from rankernel.stats.goodness_of_fit import bucket_patterns, make_sampler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_BET = 0.9  # of the wealth
NEWTON_STEP = 2 / (2 - math.log(3))  # of Cutkosky and Orabona (2018)
ROUNDING = 1e-9  # norms of the witness, relative to the largest one possible, that are rounding errors
WARM_UP = 10  # observations that set a bandwidth, on which nothing is bet
CHUNK = 256  # observations whose kernel values are computed at once
TWO_SAMPLES = np.array([1.0, -1.0])  # signs of the points x, y
INDEPENDENCE = np.array([1.0, 1.0, -1.0, -1.0])  # signs of the points (x, z), (x', z'), (x, z'), (x', z)


class SequentialMMDTest:
    """Sequential kernel test of streams of rankings, which may be evaluated at any time.

    The null hypothesis is that two streams have the same distribution, that one stream has a reference distribution,
    or that rankings are independent of a covariate. Data are added by :meth:`update`, in any portions. Sampling may
    stop at any time, for instance as soon as :attr:`rejected`: the probability that a true null hypothesis is ever
    rejected is at most ``alpha``. Observations must be independent of each other.

    Parameters
    ----------
    kernel : Kernel, optional
        The kernel, ``Mallows("median")`` by default. "median" is resolved from the first ten observations, which do not
        change the e-value.
    alpha : float
        The significance level.
    reference : model, function or Rankings, optional
        The reference distribution of one stream: each new ranking is compared with a draw from it. A model or a
        function as in :func:`goodness_of_fit_test`, whose draws are coarsened to the buckets of the new ranking; or
        rankings, which are drawn with replacement.
    covariate_kernel : {"auto", "delta", "gaussian"}
        The kernel of the covariate: "gaussian" for floating-point numbers by default, else "delta".
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    rng : int, Generator or None
        The source of the draws from the reference distribution.

    Attributes
    ----------
    log_evalues : list of float
        The logarithm of the e-value after each observation.
    n_observations : int
        The number of observations: pairs of rankings, rankings of one stream, or pairs of rankings with covariates.
    stopped_at : int or None
        The number of observations at the first rejection.

    Notes
    -----
    An observation costs one kernel value for each distinct ranking so far. The object can be pickled and resumed.

    Examples
    --------
    >>> from rankernel import Mallows, datasets
    >>> x, y = (datasets.mallows(200, center, 0.8, rng=1) for center in ([0, 1, 2, 3], [1, 0, 2, 3]))
    >>> test = SequentialMMDTest(Mallows(0.5)).update(x[:50], y[:50])
    >>> test.rejected
    False
    >>> test.update(x[50:], y[50:]).rejected
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        alpha: float = 0.05,
        reference: Any = None,
        covariate_kernel: str = "auto",
        method: MethodLike = "auto",
        rng: Seed = 0,
    ) -> None:
        self.kernel = check_kernel(kernel)
        self.alpha = check_number("alpha", alpha, 0, 1, above=True)
        self.covariate_kernel = check_choice("covariate_kernel", covariate_kernel, ("auto", "delta", "gaussian"))
        is_known = reference is None or isinstance(reference, CompletionModel) or callable(reference)
        self.reference = reference if is_known else as_rankings(reference, "reference")
        self.method = method
        self.log_evalues: list[float] = []
        self._rng = as_generator(rng)
        self._items: tuple[str, ...] = ()
        self._kind = ""  # what the test was updated with
        self._pending: list[tuple[RankArray, NDArray[Any]]] = []  # observations before the bandwidth is set
        self._waiting: tuple[RankArray, NDArray[Any]] | None = None  # a ranking without a partner, and its covariate
        self._plan: Plan | None = None
        self._bandwidth: float | None = None
        self._witness: tuple[RankArray, NDArray[Any], FloatArray] | None = None  # distinct points and their weights
        self._squared_norm = self._largest = self._bet = self._log_wealth = 0.0
        self._curvature = 1.0

    @property
    def n_observations(self) -> int:
        """The number of observations so far."""
        return len(self.log_evalues)

    @property
    def evalue(self) -> float:
        """The e-value (the wealth of the bets); its expectation is at most 1 under the null hypothesis."""
        return math.exp(min(self._log_wealth, 700.0))

    @property
    def pvalue(self) -> float:
        """The anytime-valid p-value: one over the largest e-value so far, at most 1."""
        return math.exp(-max([0.0, *self.log_evalues]))

    @property
    def stopped_at(self) -> int | None:
        """The number of observations at which the p-value first was at most alpha."""
        over = np.flatnonzero(np.array(self.log_evalues) >= -math.log(self.alpha))
        return int(over[0]) + 1 if len(over) else None

    @property
    def rejected(self) -> bool:
        """Whether the null hypothesis is rejected at the level alpha."""
        return self.stopped_at is not None

    def __repr__(self) -> str:
        state = f"rejected after {self.stopped_at:,}" if self.rejected else "not rejected"
        numbers = f"e-value {self.evalue:.3g}, p-value {self.pvalue:.3g}"
        return f"SequentialMMDTest: {self.n_observations:,} observations, {numbers}, {state} (alpha = {self.alpha:g})"

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the e-value after each observation, and the value at which the null hypothesis is rejected."""
        from rankernel.plots import evalues

        return evalues(self, ax=ax)

    # ------------------------------------------------------------------ data

    @np.errstate(under="ignore")
    def update(self, X: Any, Y: Any = None, *, covariate: Any = None) -> Self:
        """Add observations in their order of time, and return the test.

        Parameters
        ----------
        X : Rankings or integer array
            New rankings. A row of count c is c successive rankings.
        Y : Rankings or integer array, optional
            As many rankings of the second stream: row i of X and row i of Y are a pair.
        covariate : array, optional
            A label or number for each row of X, for a test of independence. Successive rows are compared.
        """
        kind = "Y" if Y is not None else "covariate" if covariate is not None else "reference"
        if (Y is not None) + (covariate is not None) + (self.reference is not None) != 1:
            raise ValueError(
                "give one of Y (two streams), covariate (independence), or reference in SequentialMMDTest(...)"
            )
        if self._kind not in ("", kind):
            raise ValueError(f"the test was updated with {self._kind} before, and now with {kind}; use a new test")
        given = as_rankings(X, "X")
        if Y is not None:
            ranks, others = self._voters(given, "X"), self._voters(as_rankings(Y, "Y"), "Y")
            if len(ranks) != len(others):
                raise RankingError(f"X has {len(ranks)} voters and Y has {len(others)}; give pairs")
        elif covariate is None:
            ranks = self._voters(given, "X")
            others = self._draw_reference(self._rankings(ranks))
        else:
            values = check_labels("covariate", covariate, len(given))
            ranks, values = self._voters(given, "X"), np.repeat(self._check_covariate(values), given.counts)
        if covariate is None:
            points, values = np.stack([ranks, others], axis=1), np.zeros((len(ranks), 2))
        else:
            points, values = self._swapped(ranks, values)
        self._add(points, values)
        self._kind = kind
        return self

    def _aligned(self, rankings: Rankings, name: str) -> Rankings:
        """Return rankings with the items in the order of the first update."""
        if name == "X" and not self._kind:
            self._items = rankings.items
        if other := sorted(set(rankings.items) ^ set(self._items)):
            which = f"{name} has the new item" if other[0] in rankings.items else f"{name} does not have the item"
            raise RankingError(
                f"{which} {short_repr(other[0])}; all updates must have the same items: give those that may appear "
                "with items=... from the first update on, or use a new test"
            )
        return rankings if rankings.items == self._items else rankings.with_items(self._items)

    def _voters(self, rankings: Rankings, name: str) -> RankArray:
        """Return the ranks of each voter."""
        return np.repeat(self._aligned(rankings, name).ranks, rankings.counts, axis=0)

    def _draw_reference(self, X: Rankings) -> RankArray:
        """Return one draw from the reference distribution for each ranking."""
        if isinstance(self.reference, Rankings):
            shares = self.reference.counts / self.reference.n_voters
            return self._aligned(self.reference, "reference").ranks[self._rng.choice(len(shares), len(X), p=shares)]
        if not X.is_exhaustive():
            raise RankingError(
                "X has free items, so draws of the reference cannot be coarsened likewise; give Y instead"
            )
        full = make_sampler(self.reference, X)(len(X), self._rng)
        return np.take_along_axis(bucket_patterns(X), full.astype(np.intp), axis=1)

    def _check_covariate(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return finite numbers, or labels as strings, like those of the updates before."""
        kernel = self.covariate_kernel
        if kernel == "auto":
            kernel = "gaussian" if values.dtype.kind == "f" else "delta"
        is_numeric = values.dtype.kind in "biuf"
        values = values.astype(np.float64) if is_numeric else values
        for row, value in enumerate(values.tolist()):
            if is_missing(value) or value in (math.inf, -math.inf):
                raise RankingError(f"the covariate of row {row} is {value}; leave out rows without a label or number")
        if self._waiting is not None and (self._waiting[1].dtype.kind == "f") != is_numeric:
            kinds = ("text", "numbers") if is_numeric else ("numbers", "text")
            raise RankingError("covariate was {} before, and is {} now; give values of one type".format(*kinds))
        if kernel == "gaussian" and not is_numeric:
            raise RankingError("covariate: the Gaussian kernel takes numbers; give covariate_kernel='delta'")
        self.covariate_kernel = kernel
        return values if is_numeric else values.astype(str)

    def _swapped(self, ranks: RankArray, values: NDArray[Any]) -> tuple[RankArray, NDArray[Any]]:
        """Return the points of successive pairs of rankings; the last of an odd number waits for the next update."""
        if self._waiting is not None:
            ranks, values = np.concatenate([self._waiting[0], ranks]), np.concatenate([self._waiting[1], values])
        n_pairs = len(ranks) // 2
        self._waiting = (ranks[2 * n_pairs :], values[2 * n_pairs :])
        first, second = (2 * np.arange(n_pairs)[:, None] + np.array(order) for order in ([0, 1, 0, 1], [0, 1, 1, 0]))
        return ranks[first], values[second]

    # ------------------------------------------------------------------ bets

    def _add(self, points: RankArray, values: NDArray[Any]) -> None:
        """Add observations, each of several points; those that set a bandwidth wait until there are enough."""
        n_free = 0
        if self._plan is None:
            is_gaussian = points.shape[1] == len(INDEPENDENCE) and self.covariate_kernel == "gaussian"
            n_free = WARM_UP if is_gaussian or MEDIAN in self.kernel.params.values() else 0
            pending = [*self._pending, (points, values)]
            points, values = (np.concatenate(parts) for parts in zip(*pending, strict=True))
            if len(points) < max(n_free, 1):
                self._pending = pending
                return
            self._plan = self.kernel.plan(self._rankings(points[: max(n_free, 1)]), method=self.method)
            self.kernel, self._pending = self._plan.kernel, []
            warn_if_not_characteristic(self.kernel, self._rankings(points))
            if is_gaussian:
                first = values[:n_free, :2].ravel()
                self._bandwidth = median_of_pairs(np.abs(first[:, None] - first), np.ones(len(first)))
        for rows in slices(len(points), CHUNK):
            self._bet_on(points[rows], values[rows], n_free - rows.start)

    def _rankings(self, points: RankArray) -> Rankings:
        """Return points as rankings."""
        return Rankings._trusted(points.reshape(-1, points.shape[-1]), self._items)

    def _values(self, points: RankArray, values: NDArray[Any], others: RankArray, other: NDArray[Any]) -> FloatArray:
        """Return the kernel between points: that of the rankings times that of the covariates."""
        assert self._plan is not None
        gram = self._plan._between(self._rankings(points), self._rankings(others)).gram()
        left, right = values.reshape(-1, 1), other.reshape(1, -1)
        if self._bandwidth is None:
            return np.asarray(gram * (left == right))
        return np.asarray(gram * np.exp(-((left - right) ** 2) / (2 * self._bandwidth**2)))

    def _bet_on(self, points: RankArray, values: NDArray[Any], n_free: int) -> None:
        """Bet on observations one after the other, except for the first ``n_free``, and add them to the witness."""
        n, n_points = values.shape
        signs = TWO_SAMPLES if n_points == 2 else INDEPENDENCE
        among = self._values(points, values, points, values).reshape(n, n_points, n, n_points)
        products = np.einsum("ajbk,j,k->ab", among, signs, signs)  # of the embeddings of two observations
        past = np.zeros(n)
        if self._witness is not None:
            ranks, other, weights = self._witness
            past = (self._values(points, values, ranks, other) @ weights).reshape(n, n_points) @ signs
        for t in range(n):
            product, square = past[t] + products[t, :t].sum(), max(products[t, t], 0.0)
            self._largest = max(self._largest, math.sqrt(square))
            self._play(product, t >= n_free)
            self._squared_norm += 2 * product + square
        self._extend_witness(points, values, np.tile(signs, n))

    def _play(self, product: float, with_bet: bool) -> None:
        """Add one payoff to the wealth, given the product of the sum of past embeddings with the new one."""
        norm = math.sqrt(max(self._squared_norm, 0.0))
        is_known = norm > ROUNDING * self._largest * max(self.n_observations, 1)
        payoff = min(max(product / norm / self._largest, -1.0), 1.0) if is_known else 0.0
        if with_bet:
            self._log_wealth += math.log1p(self._bet * payoff)
            gradient = -payoff / (1 + self._bet * payoff)
            self._curvature += gradient**2
            self._bet = min(max(self._bet - NEWTON_STEP * gradient / self._curvature, 0.0), MAX_BET)
        self.log_evalues.append(self._log_wealth)

    def _extend_witness(self, points: RankArray, values: NDArray[Any], signs: FloatArray) -> None:
        """Add signed points to the witness, in which equal points are merged."""
        ranks, flat = points.reshape(-1, points.shape[-1]), values.ravel()
        if self._witness is not None:
            ranks, flat, signs = (
                np.concatenate([old, new]) for old, new in zip(self._witness, (ranks, flat, signs), strict=True)
            )
        codes = np.unique(flat, return_inverse=True)[1]
        first, point_of = unique_rows(np.column_stack([ranks, codes]).astype(np.int32))
        weights = np.asarray(np.bincount(point_of, weights=signs, minlength=len(first)), dtype=np.float64)
        self._witness = ranks[first], flat[first], weights
