"""The Mallows model: exact sampling given partial rankings, probabilities, and maximum likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel._loops.compiled import compiled_strictly
from rankernel._utils import FloatArray, FullRanks, Indices, Mask, RankArray
from rankernel._utils.checks import check_instance, check_integer, check_number
from rankernel._utils.combinatorics import (
    inversion_probabilities,
    log_q_factorial,
    log_q_factorials_derivative,
    mean_inversions,
)
from rankernel._utils.rng import Seed, Streams, as_seed
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
from rankernel.data import Data, as_data, as_nonempty_data, pairwise_wins
from rankernel.datasets.simulate import mallows
from rankernel.errors import ExactnessError, RankingError
from rankernel.models.kemeny_search import kemeny_order
from rankernel.models.plackett_luce import ModelFit
from rankernel.preferences import Preferences, relations_of_ranks
from rankernel.rankings import FREE, Rankings, as_full_ranking

# For theta = 30 a draw differs from the center with probability 1e-13 per item.
MAX_THETA = 30.0
FEW_DOWN_SETS = 200_000
MAX_EXACT_ITEMS = 16  # items of a majority cycle for which the center is optimal; others use local search


@dataclass(frozen=True)
class MallowsModel(CompletionModel):
    r"""The Mallows model with the Kendall distance d: :math:`p(\sigma | R) \propto e^{-\theta d(\sigma, c)}`.

    Draws given R are exact for rankings without free items (independent Mallows models inside the buckets, by repeated
    insertion) and for rankings with free items and a small lattice of down-sets,
    :math:`2^f (1 + \sum_i (2^{n_i} - 1))` of them. Otherwise items are inserted one by one at the positions that R
    allows, with self-normalised importance weights; the effective sample size is low if R orders many items unlike the
    center.

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

    self_normalized = True

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
        if center is None:
            ranks = mallows_center(data)
        else:
            ranks = as_full_ranking(center).ranks[0]
            check_same_number(data.n_items, len(ranks))
        likelihood = Likelihood(data, ranks, max_down_sets)
        theta = fit_theta(likelihood)
        value = np.nan if likelihood.extensions is None else likelihood.value(theta)
        covariance = partial(np.full, (1, 1), likelihood.variance(theta))
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
        n_items = len(self.center)
        check_same_number(data.n_items, n_items)
        sums = np.empty(len(data))
        simple = np.zeros(len(data), dtype=bool)
        if isinstance(data, Rankings):
            simple = np.asarray((data.ranks != FREE).all(axis=1))
            sums[simple] = self._log_sums_of_buckets(data.ranks[simple])
        others = np.flatnonzero(~simple)
        for row, before in zip(others, relations(data[others]), strict=True):
            sums[row] = MallowsExtensions(before, self.center).log_sum(self.theta)
        return np.asarray(sums - log_q_factorial(n_items, self.theta))

    def _log_sums_of_buckets(self, ranks: RankArray) -> FloatArray:
        """Return the logarithm of the sum of ``exp(-theta d)`` over the completions of rankings without free items."""
        n = len(self.center)
        in_order = ranks[:, np.argsort(self.center)]  # items in the order of the center: a descent is discordant
        discordant = np.zeros(len(ranks))
        for position in range(n - 1):
            discordant += (in_order[:, position, None] > in_order[:, position + 1 :]).sum(axis=1)
        cells = (np.arange(len(ranks))[:, None] * n + ranks).ravel()
        sizes = np.bincount(cells, minlength=len(ranks) * n).reshape(len(ranks), n)
        logs = np.array([log_q_factorial(size, self.theta) for size in range(n + 1)])
        return np.asarray(logs[sizes].sum(axis=1) - self.theta * discordant)

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


def relations(data: Data) -> Iterator[Mask]:
    """Yield the closed relation of each row."""
    for row in data:
        yield row.before[0] if isinstance(row, Preferences) else relations_of_ranks(row.ranks)[0]


# ---------------------------------------------------------------------- linear extensions


class MallowsExtensions:
    r"""The Mallows model on the linear extensions of a partial order, :math:`p(\sigma) \propto e^{-\theta d(\sigma)}`.

    Here d is the number of discordant pairs of a linear extension and the center. Parts in series are independent; an
    antichain has closed forms, any other part a sum over its lattice of down-sets.

    Examples
    --------
    >>> chain = np.zeros((3, 3), dtype=bool)
    >>> chain[0, 1] = True
    >>> model = MallowsExtensions(chain, center=[0, 1, 2])
    >>> q = np.exp(-0.5)
    >>> bool(np.isclose(np.exp(model.log_sum(0.5)), 1 + q + q**2))
    True
    """

    def __init__(self, before: ArrayLike, center: ArrayLike, limit: int = MAX_DOWN_SETS) -> None:
        relation = check_relation(before)
        ranks = np.asarray(center)
        if not np.array_equal(np.sort(ranks), np.arange(len(relation))):
            raise RankingError(f"center={ranks.tolist()} is not a permutation of 0 to {len(relation) - 1}")
        self.n_items = len(relation)
        #: The items of each part, the order of the center, and the lattice with its costs (None for an antichain).
        self.parts: list[tuple[Indices, Indices, tuple[DownSets, Costs] | None]] = []
        part_of = np.empty(self.n_items, dtype=np.intp)
        for number, items in enumerate(series_parts(relation)):
            part_of[items] = number
            inside, lattice = relation[np.ix_(items, items)], None
            if inside.any():
                down_sets = DownSets.required(inside, limit)
                lattice = down_sets, down_sets.discordance_costs(ranks[items])
            self.parts.append((items, np.argsort(ranks[items]), lattice))
        #: Number of discordant pairs of items in different parts, the same for all linear extensions.
        self.fixed_distance = int(np.sum((part_of[:, None] < part_of) & (ranks[:, None] > ranks)))

    @property
    def n_down_sets(self) -> int:
        """Total number of down-sets of the lattices."""
        return sum(len(lattice[0].sets) for *_, lattice in self.parts if lattice is not None)

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


def mallows_center(data: Data) -> RankArray:
    """Return a full ranking with the fewest discordant pairs, as positions of the items.

    A pair is discordant if a voter orders it strictly and the center orders it the other way. Exact unless a majority
    cycle has more than 16 items, which are ordered by local search.

    Examples
    --------
    Most voters have item 0 before items 1 and 2, and four of seven have 2 before 1:

    >>> mallows_center(Rankings([[0, 1, 2], [1, 2, 0], [0, 2, 1]], counts=[3, 2, 2]))
    array([0, 2, 1], dtype=int32)
    """
    shares = pairwise_wins(data) / data.n_voters
    result = kemeny_order(shares, MAX_EXACT_ITEMS, 1, np.random.default_rng(0))
    ranks = np.empty(data.n_items, dtype=np.int32)
    ranks[result.order] = np.arange(data.n_items)
    return ranks


class Likelihood:
    """The log-likelihood of theta, from the distinct rows and the center.

    Incomplete rows have an exact likelihood if they have at most ``max_down_sets`` down-sets in total.
    """

    def __init__(self, data: Data, center: RankArray, max_down_sets: int) -> None:
        self.n_items = data.n_items
        #: Number of complete rows with all n items, minus the number of their buckets of each size.
        self.sizes = np.zeros(data.n_items + 1)
        complete = np.zeros(len(data), dtype=bool)
        if isinstance(data, Rankings):
            complete = np.asarray((data.ranks != FREE).all(axis=1))
            ranks, counts = data.ranks[complete], data.counts[complete]
            self.sizes[-1] = counts.sum()
            for bucket in range(int(ranks.max(initial=-1)) + 1):
                np.subtract.at(self.sizes, (ranks == bucket).sum(axis=1), counts)
            self.sizes[0] = 0.0
        #: Number of discordant pairs in complete rows.
        self.distance = discordances(data[complete], center)
        incomplete = data[np.flatnonzero(~complete)]
        #: The count and the linear extensions of each incomplete row; None if they have too many down-sets.
        self.extensions: list[tuple[int, MallowsExtensions]] | None = []
        try:
            for before, count in zip(relations(incomplete), incomplete.counts.tolist(), strict=True):
                extensions = MallowsExtensions(before, center, max_down_sets)
                max_down_sets -= extensions.n_down_sets
                self.extensions.append((count, extensions))
        except ExactnessError:
            self.extensions = None
        #: Number of stated pairs in incomplete rows by their distance in the center, and how many are discordant.
        self.gaps, self.discordant = np.zeros(1), 0
        if self.extensions is None:
            gaps = np.abs(np.subtract.outer(center, center)).ravel()
            self.gaps = np.bincount(gaps, pairwise_wins(incomplete).ravel(), self.n_items).astype(np.float64)
            self.discordant = discordances(incomplete, center)

    def value(self, theta: float) -> float:
        """Return the log-likelihood of the rows with an exact likelihood."""
        total = -theta * self.distance
        for size in np.flatnonzero(self.sizes).tolist():
            total -= float(self.sizes[size]) * log_q_factorial(size, theta)
        for count, extensions in self.extensions or []:
            total += count * (extensions.log_sum(theta) - log_q_factorial(self.n_items, theta))
        return total

    def derivative(self, theta: float) -> float:
        """Return the derivative in theta: the mean number of discordant pairs minus that given the data."""
        total = -float(self.sizes @ log_q_factorials_derivative(self.n_items, theta)) - self.distance
        for count, extensions in self.extensions or []:
            total += count * (mean_inversions(self.n_items, theta) - extensions.mean_distance(theta))
        return total + float(self.gaps @ inversion_probabilities(len(self.gaps) - 1, theta)) - self.discordant

    def variance(self, theta: float) -> float:
        """Return the inverse of the observed information, nan at a bound of theta or for the estimating equation."""
        if self.extensions is None or not 0 < theta < MAX_THETA:
            return np.nan
        step = min(1e-4, theta / 2)
        return 2 * step / (self.derivative(theta - step) - self.derivative(theta + step))


def discordances(data: Data, center: RankArray) -> int:
    """Return the number of stated pairs of all voters that the center orders the other way."""
    return int(np.sum(pairwise_wins(data)[center[:, None] > center]))


def fit_theta(likelihood: Likelihood) -> float:
    """Return the theta of maximum likelihood, among all local maxima from 0 to 30."""
    from scipy.optimize import brentq

    # The likelihood is concave without incomplete rows; with them it may have several maxima.
    between = np.geomspace(1e-3, MAX_THETA, 30)[: -1 if likelihood.extensions else 0]
    grid = np.array([0.0, *between, MAX_THETA])
    derivatives = [likelihood.derivative(theta) for theta in grid]
    maxima = [0.0] if derivatives[0] <= 0 else []
    maxima += [
        brentq(likelihood.derivative, low, high, xtol=1e-13, rtol=1e-14)
        for low, high, rises, falls in zip(grid, grid[1:], derivatives, derivatives[1:], strict=False)
        if rises > 0 >= falls
    ]
    maxima += [MAX_THETA] if derivatives[-1] > 0 else []
    return max(maxima, key=likelihood.value)
