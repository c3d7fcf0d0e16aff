"""The Mallows model: exact sampling given partial rankings, probabilities, and maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from rankernel._loops.compiled import compiled_strictly
from rankernel._loops.random_streams import Streams
from rankernel._utils import FloatArray, FullRanks, Indices, Mask, RankArray
from rankernel._utils.checks import Seed, as_seed, check_instance, check_integer, check_number
from rankernel._utils.combinatorics import (
    inversion_probabilities,
    log_q_factorial,
    log_q_factorials,
    log_q_factorials_derivative,
    mean_inversions,
)
from rankernel._utils.resources import slices
from rankernel.completions.draws import CompletionModel, Coupling, Weighted, draw_each
from rankernel.completions.linear_extensions import (
    MAX_DOWN_SETS,
    Costs,
    DownSets,
    check_relation,
    draw_paths,
    log_weights,
    mean_cost,
    series_parts,
    step_probabilities,
)
from rankernel.data import Data, as_data, as_nonempty_data
from rankernel.datasets import mallows
from rankernel.errors import ExactnessError, RankingError
from rankernel.models.kemeny_search import kemeny_order
from rankernel.models.plackett_luce import ModelFit
from rankernel.preferences import Preferences
from rankernel.rankings import FREE, Rankings, as_full_ranking, relations_of_ranks

# For theta = 30 a draw differs from the center with probability 1e-13 per item.
MAX_THETA = 30.0
FEW_DOWN_SETS = 200_000
MAX_CENTERS = 16  # for which the costs of linear extensions are cached
CHUNK_NUMBERS = 2**22
MAX_EXACT_ITEMS = 16  # items of a majority cycle for which the center is optimal; others use local search


@dataclass(frozen=True)
class MallowsModel(CompletionModel):
    r"""The Mallows model with the Kendall distance d: :math:`p(\sigma | R) \propto e^{-\theta d(\sigma, c)}`.

    Draws given R are exact for rankings without free items (independent Mallows models inside the buckets, by repeated
    insertion) and for rankings with free items and a small lattice of down-sets,
    which has :math:`2^f (1 + \sum_i (2^{n_i} - 1))` elements. Otherwise items are inserted one by one at the positions
    that R allows, with self-normalised importance weights; the effective sample size is low if R orders many pairs of
    items in the opposite way to the center.

    Parameters
    ----------
    center : array of shape (n_items,)
        The central full ranking: the position of each item, 0 is the best.
    theta : float
        The dispersion parameter; 0 is the uniform distribution, larger values are more concentrated.
    max_down_sets : int
        The largest lattice of down-sets for exact draws.

    Attributes
    ----------
    summary : ModelFit or None
        After :meth:`fit`: ``items``, ``log_likelihood``, ``aic``, ``bic``, ``n_voters``, and ``standard_errors`` of
        theta alone.

    Examples
    --------
    >>> from rankernel.completions import draw
    >>> model = MallowsModel(center=[0, 1, 2], theta=np.log(2))
    >>> draws = draw([[0, 1, 1]], n_draws=3000, completions=model, coupling="iid", rng=1)
    >>> round(float((draws.ranks[0, :, 1] == 1).mean()), 2)
    0.67
    """

    center: tuple[int, ...]
    theta: float
    max_down_sets: int = FEW_DOWN_SETS
    summary: ModelFit | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", tuple(as_full_ranking(self.center).ranks[0].tolist()))
        object.__setattr__(self, "theta", check_number("theta", self.theta, 0))
        check_integer("max_down_sets", self.max_down_sets)
        check_instance("summary", self.summary, ModelFit | None, "the summary of a fit, or None")

    @classmethod
    def fit(cls, X: Any, *, center: Any = None, max_down_sets: int = FEW_DOWN_SETS) -> MallowsModel:
        r"""Return the maximum likelihood fit to rankings or preferences.

        The likelihood of a partial ranking is the probability of the set of its completions,
        :math:`\sum_{\sigma \in R} e^{-\theta d(\sigma, c)} / [n]_q!` with :math:`q = e^{-\theta}`. Without free items
        this is :math:`q^{D} \prod_i [n_i]_q! / [n]_q!`, where D is the number of discordant pairs between buckets; the
        center that minimises the sum of D (Kemeny, on stated pairs) has maximum likelihood. With free items, and for
        partial orders, the sum runs over the lattices of down-sets. If these are too large, theta solves the estimating
        equation that equates the observed and the expected number of discordant pairs among the pairs that the
        incomplete rows state.

        Parameters
        ----------
        X : Rankings, Preferences or array of ranks
            The data; each row counts as often as its count.
        center : full ranking, optional
            The center; by default it is fitted (exactly, unless a majority cycle has more than 16 items).
        max_down_sets : int
            The largest total number of down-sets of the rows with free items, or of partial orders, for maximum
            likelihood; 0 uses the estimating equation.

        Returns
        -------
        MallowsModel
            The model; theta is at most 30. Its log-likelihood and standard error are nan if the estimating equation
            was used; the standard error is also nan if theta is 0 or 30.

        Examples
        --------
        >>> model = MallowsModel.fit(Rankings([[0, 1, 2], [0, 2, 1], [1, 0, 2]], counts=[4, 2, 2]))
        >>> model.center, round(model.theta, 3)
        ((0, 1, 2), 1.356)
        >>> round(model.summary.log_likelihood, 3), model.summary.standard_errors.round(3).tolist()
        (-9.504, [0.515])
        """
        check_integer("max_down_sets", max_down_sets, 0)
        data = as_nonempty_data(X).unique()
        rows, counts = MallowsRows(data, max_down_sets), data.counts.astype(np.float64)
        if center is None:
            ranks, _ = rows.best_center(counts)
        else:
            ranks = as_full_ranking(center).ranks[0]
            check_same_number(data.n_items, len(ranks))
        theta = rows.best_theta(counts, ranks)
        value = np.nan if rows.by_pairs else float(counts @ rows.log_prob(ranks, theta))
        variance, step = np.nan, min(1e-4, theta / 2)
        if not rows.by_pairs and 0 < theta < MAX_THETA:
            derivative = rows.derivative(counts, ranks)
            variance = 2 * step / (derivative(theta - step) - derivative(theta + step))
        covariance = partial(np.full, (1, 1), variance)
        summary = ModelFit(data.items, value, 2, data.n_voters, covariance)
        return cls(tuple(ranks.tolist()), theta, summary=summary)

    def sample(self, n_rankings: int, *, rng: Seed = 0, items: Iterable[object] | None = None) -> Rankings:
        """Draw full rankings from the model, of the items of the data: see :func:`rankernel.datasets.mallows`.

        Examples
        --------
        >>> MallowsModel(center=[1, 0, 2], theta=20.0).sample(2, items=["a", "b", "c"]).to_orders()
        [['b', 'a', 'c'], ['b', 'a', 'c']]
        """
        names = self.summary.items if items is None and self.summary is not None else items
        return mallows(n_rankings, self.center, self.theta, rng=np.random.default_rng(as_seed(rng)), items=names)

    def log_prob(self, X: Any) -> FloatArray:
        """Return the log-probability of each row of rankings or preferences.

        The probability of a partial ranking or order is that of the set of its completions. Raises an
        :class:`ExactnessError` if a row has too many down-sets.

        Examples
        --------
        >>> model = MallowsModel(center=[0, 1, 2], theta=np.log(2))
        >>> np.exp(model.log_prob([[0, 1, 2], [0, 1, 1]])).round(3)
        array([0.381, 0.571])
        """
        data = as_data(X)
        check_same_number(data.n_items, len(self.center))
        return MallowsRows(data).log_prob(np.array(self.center), self.theta)

    # ------------------------------------------------------------------ draws given a ranking

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return independent draws, and importance weights if one of the rankings needs them."""
        self.check_independent(coupling)
        check_same_number(ranks.shape[1], len(self.center))
        return draw_each(self._draw_row, ranks, n_draws, ranks.shape[1], streams)

    def _draw_row(self, ranks: RankArray, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return draws of one ranking and their log-weights, None if the draws are exact."""
        before = relations_of_ranks(ranks[None])[0]
        if not (ranks == FREE).any():
            return self.insert(before, n_draws, rng)[0], None
        if n_down_sets(ranks) > self.max_down_sets:
            return self.insert(before, n_draws, rng)
        return MallowsExtensions(before, self.center, self.max_down_sets).draw(self.theta, n_draws, rng), None

    def draw_relation(self, before: ArrayLike, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return draws of linear extensions and their log-weights, None if the draws are exact."""
        try:
            return MallowsExtensions(before, self.center, self.max_down_sets).draw(self.theta, n_draws, rng), None
        except ExactnessError:
            return self.insert(check_relation(before), n_draws, rng)

    def insert(self, before: Mask, n_draws: int, rng: np.random.Generator) -> tuple[FullRanks, FloatArray]:
        """Return draws by restricted insertion in the order of the center, and their log-weights.

        A log-weight is the logarithm of ``exp(-theta d)`` over the probability of the draw.
        """
        uniforms = rng.random((n_draws, len(before)))
        return insert_items(before, np.argsort(self.center), self.theta, uniforms)


def check_same_number(n_items: int, n_center: int) -> None:
    """Raise an error if data and center have different numbers of items."""
    if n_items != n_center:
        raise RankingError(f"center ranks {n_center} items, but the data has {n_items}")


def n_down_sets(ranks: NDArray[np.integer[Any]]) -> int:
    """Return the number of down-sets of a ranking: part of one bucket with all earlier ones, and any free items."""
    listed = ranks[ranks != FREE]
    sizes = np.bincount(listed).tolist() if len(listed) else []
    return int(2 ** (len(ranks) - len(listed)) * (1 + sum(2**size - 1 for size in sizes)))


# ---------------------------------------------------------------------- linear extensions


class MallowsExtensions:
    r"""The Mallows model on the linear extensions of a partial order, :math:`p(\sigma) \propto e^{-\theta d(\sigma)}`.

    Here d is the number of discordant pairs of a linear extension and the center. Parts in series are independent; an
    antichain has closed forms, any other part a sum over its lattice of down-sets.
    """

    def __init__(self, before: ArrayLike, center: ArrayLike, limit: int = MAX_DOWN_SETS) -> None:
        relation = check_relation(before)
        self.n_items = len(relation)
        #: The items of each part, and its lattice (None for an antichain).
        self.lattices: list[tuple[Indices, DownSets | None]] = []
        for items in series_parts(relation):
            inside = relation[np.ix_(items, items)]
            self.lattices.append((items, DownSets.required(inside, limit) if inside.any() else None))
        self._set_center(np.asarray(center))

    def _set_center(self, ranks: NDArray[Any]) -> None:
        if not np.array_equal(np.sort(ranks), np.arange(self.n_items)):
            raise RankingError(f"center={ranks.tolist()} is not a permutation of 0 to {self.n_items - 1}")
        #: The items of each part, the order of the center, and the lattice with its costs (None for an antichain).
        self.parts: list[tuple[Indices, Indices, tuple[DownSets, Costs] | None]] = [
            (items, np.argsort(ranks[items]), None if sets is None else (sets, sets.discordance_costs(ranks[items])))
            for items, sets in self.lattices
        ]
        order = np.concatenate([items for items, _ in self.lattices])
        part = np.repeat(np.arange(len(self.lattices)), [len(items) for items, _ in self.lattices])
        discordant = (part[:, None] < part) & (ranks[order][:, None] > ranks[order])
        #: Number of discordant pairs of items in different parts, the same for all linear extensions.
        self.fixed_distance = int(np.sum(discordant))

    def at(self, center: NDArray[Any]) -> MallowsExtensions:
        """Return the model of the same partial order with another center."""
        new = copy(self)
        new._set_center(center)
        return new

    @property
    def n_down_sets(self) -> int:
        """Total number of down-sets of the lattices."""
        return sum(len(sets.sets) for _, sets in self.lattices if sets is not None)

    def log_sum(self, theta: float) -> float:
        """Return the logarithm of the sum of ``exp(-theta d)`` over all linear extensions."""
        total = -theta * self.fixed_distance
        for items, _, lattice in self.parts:
            total += log_q_factorial(len(items), theta) if lattice is None else float(log_weights(*lattice, theta)[0])
        return total

    def mean_distance(self, theta: float) -> float:
        """Return the mean of d, which is minus the derivative of :meth:`log_sum`."""
        total = float(self.fixed_distance)
        for items, _, lattice in self.parts:
            total += mean_inversions(len(items), theta) if lattice is None else mean_cost(*lattice, theta)
        return total

    def draw(self, theta: float, n_draws: int, rng: np.random.Generator) -> FullRanks:
        """Return independent exact draws as positions of the items, shape (n_draws, n_items)."""
        ranks = np.empty((n_draws, self.n_items), dtype=np.int16)
        start = 0
        for items, order, lattice in self.parts:
            size = len(items)
            uniforms = rng.random((n_draws, size))
            if lattice is None:
                inside, _ = insert_items(np.zeros((size, size), dtype=bool), order, theta, uniforms)
            else:
                inside = draw_paths(lattice[0], step_probabilities(*lattice, theta), uniforms)
            ranks[:, items] = start + inside
            start += size
        return ranks


@compiled_strictly
def insert_items(before: Mask, order: Indices, theta: float, uniforms: FloatArray) -> tuple[FullRanks, FloatArray]:
    """Return draws by inserting the items in a given order, each at a position that the partial order allows.

    A position with j of the earlier items after the new one has probability proportional to exp(-theta j), by
    inversion. Also return the logarithm of exp(-theta d) over the probability of each draw.
    """
    n_draws, n_items = uniforms.shape
    ranks = np.empty((n_draws, n_items), dtype=np.int16)
    log_weights = np.zeros(n_draws)
    for d in range(n_draws):
        rank = ranks[d]
        for i in range(n_items):
            x = order[i]
            low, high = 0, i
            for y in order[:i]:
                if before[y, x]:
                    low = max(low, rank[y] + 1)
                elif before[x, y]:
                    high = min(high, rank[y])
            n_positions = high - low + 1
            if theta == 0:
                log_sum = np.log(n_positions)
                n_after = int(uniforms[d, i] * n_positions)
            else:
                total = np.expm1(-theta * n_positions)
                log_sum = np.log(total / np.expm1(-theta))
                n_after = int(-np.log1p(uniforms[d, i] * total) / theta)
            position = high - min(n_after, n_positions - 1)
            log_weights[d] += log_sum - theta * (i - high)
            for y in order[:i]:
                if rank[y] >= position:
                    rank[y] += 1
            rank[x] = position
    return ranks, log_weights


# ---------------------------------------------------------------------- maximum likelihood


class MallowsRows:
    """Log-probabilities of rows as functions of the center and theta, and maximum likelihood with weights of the rows.

    Rows without free items have closed forms in their discordant pairs and bucket sizes. Other rows, and partial
    orders, are sums over their lattices of down-sets, if these have at most ``max_down_sets`` in total. Otherwise, if a
    limit is given, they only enter the estimating equation of theta by the pairs that they state (``by_pairs``); if
    ``listed_only``, the listed items alone follow a Mallows model.
    """

    def __init__(self, data: Data, max_down_sets: int | None = None, *, listed_only: bool = False) -> None:
        self.data, self.n_items = data, data.n_items
        #: Number of buckets of each size, 0 in incomplete rows; and the number of items of the model of each row.
        self.sizes, self.n_ranked = np.zeros((len(data), data.n_items + 1)), np.full(len(data), data.n_items)
        self.is_incomplete = np.ones(len(data), dtype=bool)
        if isinstance(data, Rankings):
            for bucket in range(int(data.ranks.max(initial=-1)) + 1):
                np.add.at(self.sizes, (np.arange(len(data)), (data.ranks == bucket).sum(axis=1)), 1.0)
            self.is_incomplete = (data.ranks == FREE).any(axis=1) & (not listed_only)
            if listed_only:
                self.n_ranked = (data.ranks != FREE).sum(axis=1)
        self.sizes[:, 0] = 0.0
        self.sizes[self.is_incomplete] = 0.0
        self.by_pairs, left, incomplete = False, max_down_sets, list[MallowsExtensions]()
        try:
            for row in data[np.flatnonzero(self.is_incomplete)]:
                before = row.before[0] if isinstance(row, Preferences) else relations_of_ranks(row.ranks)[0]
                extensions = MallowsExtensions(before, np.arange(self.n_items), MAX_DOWN_SETS if left is None else left)
                left = None if left is None else left - extensions.n_down_sets
                incomplete.append(extensions)
        except ExactnessError:
            if max_down_sets is None:
                raise
            self.by_pairs = True
        #: The linear extensions of the incomplete rows, with the costs of a center.
        self._extensions = lru_cache(MAX_CENTERS)(lambda center: [each.at(np.array(center)) for each in incomplete])

    def _relations(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield which pairs the rows state, as numbers of shape (n_rows, n_items, n_items), in chunks of rows."""
        for rows in slices(len(self.data), CHUNK_NUMBERS // self.n_items**2):
            part = self.data[rows]
            before = part.before if isinstance(part, Preferences) else relations_of_ranks(part.ranks)
            yield rows, before.astype(np.float64)

    def discordant(self, centers: NDArray[Any]) -> FloatArray:
        """Return the number of stated pairs that each center orders the other way, shape (n_rows, n_centers)."""
        reverse = (centers[:, :, None] > centers[:, None, :]).astype(np.float64)
        parts = [np.tensordot(before, reverse, axes=([1, 2], [1, 2])) for _, before in self._relations()]
        return np.concatenate(parts) if parts else np.empty((0, len(centers)))

    def wins(self, weights: FloatArray) -> FloatArray:
        """Return the total weight of the rows that have item x before item y."""
        parts = [np.tensordot(weights[rows], before, axes=1) for rows, before in self._relations()]
        return np.asarray(sum(parts, np.zeros((self.n_items, self.n_items))))

    def log_prob(self, center: NDArray[Any], theta: float) -> FloatArray:
        """Return the log-probability of each row."""
        table = log_q_factorials(self.n_items, theta) + gammaln(np.arange(self.n_items + 1) + 1)
        logs = self.sizes @ table - theta * self.discordant(center[None])[:, 0]
        logs[self.is_incomplete] = [each.log_sum(theta) for each in self._extensions(tuple(center))]
        return np.asarray(logs - table[self.n_ranked])

    def mean_distances(self, center: NDArray[Any], theta: float) -> FloatArray:
        """Return the mean distance to the center over the completions of each row, weighted by exp(-theta d)."""
        means = self.discordant(center[None])[:, 0] - self.sizes @ log_q_factorials_derivative(self.n_items, theta)
        means[self.is_incomplete] = [each.mean_distance(theta) for each in self._extensions(tuple(center))]
        return means

    def best_center(
        self, weights: FloatArray, n_starts: int = 1, rng: np.random.Generator | None = None
    ) -> tuple[RankArray, bool]:
        """Return a full ranking with the fewest discordant pairs, and whether it is proven to be the best.

        A pair is discordant if a row orders it strictly and the center orders it the other way. Exact unless a majority
        cycle has more than 16 items, which are ordered by local search.
        """
        shares = self.wins(weights) / max(float(weights.sum()), np.finfo(float).tiny)
        result = kemeny_order(shares, MAX_EXACT_ITEMS, n_starts, rng or np.random.default_rng(0))
        return np.argsort(result.order).astype(np.int32), bool(result.exact)

    def derivative(self, weights: FloatArray, center: NDArray[Any]) -> Callable[[float], float]:
        """Return the derivative of the weighted log-likelihood in theta, as a function of theta.

        It is the expected number of discordant pairs minus that given the rows.
        """
        n, discordant = self.n_items, self.discordant(center[None])[:, 0]
        complete, rest = np.where(self.is_incomplete, 0.0, weights), weights[self.is_incomplete]
        numbers = np.bincount(self.n_ranked, complete, n + 1) - complete @ self.sizes
        distance = float((weights if self.by_pairs else complete) @ discordant)
        extensions = [] if self.by_pairs else self._extensions(tuple(center))
        gaps: NDArray[Any] = np.zeros(n)
        if self.by_pairs:  # the stated pairs of incomplete rows by their distance in the center
            distances = np.abs(np.subtract.outer(center, center)).ravel()
            gaps = np.bincount(distances, self.wins(weights - complete).ravel(), n)

        def derivative(theta: float) -> float:
            value = -numbers @ log_q_factorials_derivative(n, theta) - distance
            if self.by_pairs:
                return float(value + gaps @ inversion_probabilities(n - 1, theta))
            means = np.array([each.mean_distance(theta) for each in extensions])
            return float(value + rest @ (mean_inversions(n, theta) - means))

        return derivative

    def best_theta(self, weights: FloatArray, center: NDArray[Any]) -> float:
        """Return the theta of maximum likelihood, among all local maxima from 0 to 30."""
        derivative, several = self.derivative(weights, center), self.is_incomplete.any() and not self.by_pairs
        # The likelihood is concave without incomplete rows; with them it may have several maxima.
        grid = [0.0, *np.geomspace(1e-3, MAX_THETA, 30)[: -1 if several else 0].tolist(), MAX_THETA]
        values = [derivative(theta) for theta in grid]
        maxima = [0.0] if values[0] <= 0 else []
        maxima += [
            brentq(derivative, low, high, xtol=1e-13, rtol=1e-14)
            for low, high, rises, falls in zip(grid, grid[1:], values, values[1:], strict=False)
            if rises > 0 >= falls
        ]
        maxima += [MAX_THETA] if values[-1] > 0 else []
        return max(maxima, key=lambda theta: weights @ self.log_prob(center, theta)) if several else maxima[0]
