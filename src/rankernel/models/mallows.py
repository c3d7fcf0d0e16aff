"""The Mallows model: sampling, probabilities and maximum likelihood."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, FullRanks, Indices, Mask, RankArray
from rankernel._utils.checks import check_integer, check_number
from rankernel._utils.q_factorials import log_q_factorial, mean_inversions
from rankernel._utils.rng import Seed, Streams, as_seed
from rankernel.completions.couplings import Coupling
from rankernel.completions.draws import CompletionModel, self_normalized_weights
from rankernel.completions.enumerate import check_n_items
from rankernel.completions.partial_orders import MAX_DOWN_SETS, DownSets, check_relation, in_series
from rankernel.datasets.simulate import mallows
from rankernel.encoding import FREE
from rankernel.errors import ExactnessError, RankingError, SamplingWarning, warn
from rankernel.models.kemeny_search import kemeny_order
from rankernel.rankings import Rankings, as_full_ranking, as_rankings


@dataclass(frozen=True, eq=False)
class Block:
    """One of the parts that stand in series; without a lattice it is an antichain."""

    items: Indices
    order: Indices
    lattice: DownSets | None
    costs: NDArray[np.int16] | None


class MallowsExtensions:
    r"""The Mallows model on the linear extensions of a partial order, :math:`p(\sigma) \propto e^{-\theta d(\sigma)}`.

    Here d is the number of pairs that a linear extension orders unlike the center. Parts that stand in series are
    independent; an antichain has closed forms, any other part a sum over its lattice of down-sets.

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
            raise RankingError(f"the center must be a permutation of 0 to {len(relation) - 1}; got {ranks.tolist()}")
        self.n_items = len(relation)
        self.blocks = [mallows_block(relation, ranks, items, limit) for items in in_series(relation)]
        owner = np.empty(self.n_items, dtype=np.intp)
        for number, block in enumerate(self.blocks):
            owner[block.items] = number
        #: Discordances with the center that every linear extension has: those between the blocks.
        self.fixed_distance = int(np.sum((owner[:, None] < owner) & (ranks[:, None] > ranks)))

    def log_sum(self, theta: float) -> float:
        """Return the logarithm of the sum of ``exp(-theta d)`` over all linear extensions."""
        total = -theta * self.fixed_distance
        for block in self.blocks:
            if block.lattice is None or block.costs is None:
                total += log_q_factorial(len(block.items), theta)
            else:
                total += float(block.lattice.log_weights(block.costs, theta)[0])
        return total

    def mean_distance(self, theta: float) -> float:
        """Return the mean of d, which is minus the derivative of :meth:`log_sum`."""
        total = float(self.fixed_distance)
        for block in self.blocks:
            if block.lattice is None or block.costs is None:
                total += mean_inversions(len(block.items), theta)
            else:
                lattice, given = block.lattice, block.lattice.step_probabilities(block.costs, theta)
                total += float(_loops.lattices.mean_cost(lattice.start, lattice.target, block.costs, given))
        return total

    def draw(self, theta: float, n_draws: int, rng: np.random.Generator) -> FullRanks:
        """Return independent exact draws as rank vectors, shape (n_draws, n_items)."""
        ranks = np.empty((n_draws, self.n_items), dtype=np.int16)
        n_before = 0
        for block in self.blocks:
            size = len(block.items)
            if block.lattice is None:
                nothing = np.zeros((size, size), dtype=bool)
                uniforms = rng.random((n_draws, size))
                inside, _ = _loops.extension_walks.insertions(nothing, block.order, float(theta), uniforms)
            else:
                inside = block.lattice.draw(block.lattice.step_probabilities(block.costs, theta), n_draws, rng)
            ranks[:, block.items] = n_before + inside
            n_before += size
        return ranks


def mallows_block(before: Mask, center: NDArray[Any], items: Indices, limit: int) -> Block:
    """Return one part in series, with its lattice unless it is an antichain."""
    inside = before[np.ix_(items, items)]
    order = np.argsort(center[items])
    if not inside.any():
        return Block(items, order, None, None)
    lattice = DownSets.of(inside, limit)
    if lattice is None:
        raise ExactnessError(
            f"a part of {len(items)} items has more than {limit:,} down-sets, too many for exact Mallows weights; "
            "use weighted draws (MallowsModel does so by itself)"
        )
    return Block(items, order, lattice, lattice.costs(center[items]))


# At this theta a draw differs from the center with probability 1e-13 for each item: nothing larger is worth telling.
MAX_THETA = 30.0
FEW_DOWN_SETS = 200_000
# The exact consensus looks at all subsets of the items.
MAX_EXACT_ITEMS = 16


@dataclass(frozen=True)
class MallowsModel(CompletionModel):
    r"""Completions near a central ranking are more probable: :math:`p(\sigma | R) \propto e^{-\theta d(\sigma, c)}`.

    Here d is the Kendall distance. Draws are exact for rankings without free items (independent Mallows models inside
    the buckets, by repeated insertion) and for those with free items whose lattice of down-sets,
    :math:`2^f (1 + \sum_i (2^{n_i} - 1))` of them, is small. Otherwise items are inserted one by one where the ranking
    allows it, and draws carry self-normalised importance weights; these become uneven where many listed items are
    ordered unlike the center.

    Parameters
    ----------
    center : array of shape (n_items,)
        A full ranking: the position of each item, 0 the best.
    theta : float
        How sharply the probability falls off; 0 is the uniform model.
    max_down_sets : int
        The largest lattice for exact draws.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", tuple(as_full_ranking(self.center).ranks[0].tolist()))
        object.__setattr__(self, "theta", check_number("theta", self.theta, 0))
        check_integer("max_down_sets", self.max_down_sets)

    @classmethod
    def fit(cls, X: Any) -> MallowsModel:
        r"""Return the model that fits rankings: their consensus as the center, theta by maximum likelihood.

        The likelihood of a partial ranking is the probability of the set of its completions,
        :math:`\sum_{\sigma \in R} e^{-\theta d(\sigma, c)} / [n]_q!` with :math:`q = e^{-\theta}`: for rankings without
        free items :math:`q^{d} \prod_i [n_i]_q! / [n]_q!` with d the discordances between buckets (so the Kemeny
        consensus is the maximum likelihood center, too), else a sum over down-sets. Rankings whose lattice of
        down-sets is too large do not count for theta; a :class:`SamplingWarning` tells how many. Theta is at most 30.

        Parameters
        ----------
        X : Rankings
            Any rankings; counts are respected.

        Examples
        --------
        >>> model = MallowsModel.fit(Rankings([[0, 1, 2], [0, 2, 1], [1, 0, 2]], counts=[4, 2, 2]))
        >>> model.center, round(model.theta, 3)
        ((0, 1, 2), 1.356)
        """
        data = as_rankings(X, "X").unique()
        if not len(data):
            raise RankingError("there are no rankings to fit a Mallows model to")
        center = mallows_center(data)
        return cls(tuple(center.tolist()), fit_theta(Likelihood(data, center)))

    def sample(self, n_rankings: int, *, rng: Seed = 0, items: Iterable[object] | None = None) -> Rankings:
        """Draw full rankings from the model itself: see :func:`rankernel.datasets.mallows`.

        Examples
        --------
        >>> MallowsModel(center=[1, 0, 2], theta=20.0).sample(2, items=["a", "b", "c"]).to_orders()
        [['b', 'a', 'c'], ['b', 'a', 'c']]
        """
        return mallows(n_rankings, self.center, self.theta, rng=np.random.default_rng(as_seed(rng)), items=items)

    def draw(
        self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return independent draws, and importance weights if one of the rankings needs them."""
        self.independent_only(coupling)
        check_n_items(ranks.shape[1])
        self.check_items(ranks)
        full = np.empty((len(ranks), n_draws, ranks.shape[1]), dtype=np.int16)
        weights = np.ones((len(ranks), n_draws))
        weighted = False
        for row, (ranking, stream) in enumerate(zip(ranks, streams, strict=True)):
            full[row], logs = self.draw_row(ranking, n_draws, np.random.Generator(np.random.PCG64(int(stream))))
            if logs is not None:
                weights[row] = self_normalized_weights(logs[None, :])[0]
                weighted = True
        return full, weights if weighted else None

    def check_items(self, ranks: RankArray) -> None:
        """Refuse rankings of another number of items."""
        if ranks.shape[1] != len(self.center):
            raise RankingError(f"the center ranks {len(self.center)} items, the rankings have {ranks.shape[1]}")

    def log_prob(self, X: Any) -> FloatArray:
        """Return the log-probability of each ranking: that of a full ranking, or of all completions of a partial one.

        Raises an :class:`ExactnessError` where a ranking has too many free items for that.
        """
        ranks = as_rankings(X, "X").ranks
        self.check_items(ranks)
        free = (ranks == FREE).any(axis=1)
        sums = np.empty(len(ranks))
        sums[~free] = self.log_sums_of_buckets(ranks[~free])
        for row in np.flatnonzero(free):
            sums[row] = MallowsExtensions(relation_of(ranks[row]), self.center).log_sum(self.theta)
        return np.asarray(sums - log_q_factorial(len(self.center), self.theta))

    def log_sums_of_buckets(self, ranks: RankArray) -> FloatArray:
        """Return the logarithm of the sum of ``exp(-theta d)`` over all completions of rankings without free items."""
        n = len(self.center)
        ordered = ranks[:, np.argsort(self.center)]  # as the center has the items: a pair that descends disagrees
        apart = np.zeros(len(ranks))
        for place in range(n - 1):
            apart += (ordered[:, place, None] > ordered[:, place + 1 :]).sum(axis=1)
        cells = (np.arange(len(ranks))[:, None] * n + ranks).ravel()
        sizes = np.bincount(cells, minlength=len(ranks) * n).reshape(len(ranks), n)
        ways = np.array([log_q_factorial(size, self.theta) for size in range(n + 1)])
        return np.asarray(ways[sizes].sum(axis=1) - self.theta * apart)

    def draw_row(
        self, ranks: NDArray[np.integer[Any]], n_draws: int, rng: np.random.Generator
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return draws of one ranking and their log-weights, None where the draws are exact.

        A log-weight is the logarithm of ``exp(-theta d)`` over the probability with which the draw was made.
        """
        before = relation_of(ranks)
        if not (ranks == FREE).any():
            return self.insert(before, n_draws, rng)[0], None
        if n_down_sets(ranks) > self.max_down_sets:
            return self.insert(before, n_draws, rng)
        return MallowsExtensions(before, self.center, self.max_down_sets).draw(self.theta, n_draws, rng), None

    def draw_relation(
        self, before: ArrayLike, n_draws: int, rng: np.random.Generator
    ) -> tuple[FullRanks, FloatArray | None]:
        """Return draws of the linear extensions of a partial order and their log-weights, as :meth:`draw_row` does."""
        try:
            return MallowsExtensions(before, self.center, self.max_down_sets).draw(self.theta, n_draws, rng), None
        except ExactnessError:
            return self.insert(check_relation(before), n_draws, rng)

    def insert(self, before: Mask, n_draws: int, rng: np.random.Generator) -> tuple[FullRanks, FloatArray]:
        """Return draws by restricted insertion in the order of the center, and their log-weights."""
        uniforms = rng.random((n_draws, len(before)))
        draws, logs = _loops.extension_walks.insertions(before, np.argsort(self.center), self.theta, uniforms)
        return draws, logs


def relation_of(ranks: NDArray[np.integer[Any]]) -> Mask:
    """Return which items stand before which in one ranking."""
    return np.asarray((ranks[:, None] < ranks) & (ranks != FREE)[:, None])


def n_down_sets(ranks: NDArray[np.integer[Any]]) -> int:
    """Return the number of down-sets of a ranking: part of one bucket and all before it, and any of the free items."""
    listed = ranks[ranks != FREE]
    sizes = np.bincount(listed).tolist() if len(listed) else []
    return int(2 ** (len(ranks) - len(listed)) * (1 + sum(2**size - 1 for size in sizes)))


# ---------------------------------------------------------------------- fitting


def mallows_center(rankings: Any) -> RankArray:
    """Return a full ranking with the fewest disagreements with the given ones (Kemeny), as ranks.

    A disagreement is a pair of items that a voter orders strictly and the consensus orders the other way; ties and
    free items disagree with nothing. Exact where no cycle of majorities has more than 16 items; beyond, items of a
    cycle are moved one by one until no move helps.

    Examples
    --------
    Most voters have item 0 before items 1 and 2, and four of seven have 2 before 1:

    >>> mallows_center(Rankings([[0, 1, 2], [1, 2, 0], [0, 2, 1]], counts=[3, 2, 2]))
    array([0, 2, 1], dtype=int32)
    """
    data = as_rankings(rankings)
    found = kemeny_order(strict_shares(data), MAX_EXACT_ITEMS, 1, np.random.default_rng(0))
    ranks = np.empty(data.n_items, dtype=np.int32)
    ranks[found.order] = np.arange(data.n_items)
    return ranks


def strict_shares(rankings: Rankings) -> FloatArray:
    """Return the share of voters who put x strictly before y, shape (n_items, n_items)."""
    ranks, listed = rankings.ranks, rankings.ranks != FREE
    shares = rankings.counts / rankings.n_voters
    return np.array([shares @ (listed[:, [x]] & (ranks[:, [x]] < ranks)) for x in range(rankings.n_items)])


class Likelihood:
    """The log-likelihood of rankings as a function of theta, the center given."""

    def __init__(self, rankings: Rankings, center: RankArray) -> None:
        self.n_items = rankings.n_items
        self.n_voters = 0
        #: Discordances between buckets, and how many buckets of each size: all there is to say without free items.
        self.distance = 0
        self.n_buckets = np.zeros(self.n_items + 1, dtype=np.int64)
        self.with_free: list[tuple[int, MallowsExtensions]] = []
        n_ignored = 0
        for ranks, count in zip(rankings.ranks, rankings.counts.tolist(), strict=True):
            before = relation_of(ranks)
            if not (ranks == FREE).any():
                self.distance += count * int(np.sum(before & (center[:, None] > center)))
                np.add.at(self.n_buckets, np.bincount(ranks), count)
            elif n_down_sets(ranks) <= FEW_DOWN_SETS:
                self.with_free.append((count, MallowsExtensions(before, center, FEW_DOWN_SETS)))
            else:
                n_ignored += count
                continue
            self.n_voters += count
        self.warn_of(n_ignored)

    def warn_of(self, n_ignored: int) -> None:
        """Tell of rankings that do not count, and refuse to go on without any that do."""
        if not self.n_voters:
            raise ExactnessError(
                f"no ranking has fewer than {FEW_DOWN_SETS:,} down-sets, so none has a feasible likelihood; "
                "choose theta yourself: MallowsModel(center, theta)"
            )
        if n_ignored:
            warn(
                f"{n_ignored:,} rankings with many free items do not count for theta: they have more than "
                f"{FEW_DOWN_SETS:,} down-sets",
                SamplingWarning,
            )

    def value(self, theta: float) -> float:
        """Return the log-likelihood."""
        total = -theta * self.distance - self.n_voters * log_q_factorial(self.n_items, theta)
        total += sum(
            int(self.n_buckets[size]) * log_q_factorial(int(size), theta) for size in np.flatnonzero(self.n_buckets)
        )
        return total + sum(count * extensions.log_sum(theta) for count, extensions in self.with_free)

    def slope(self, theta: float) -> float:
        """Return the derivative of the log-likelihood: mean distance to the center, less the same given the data."""
        given = self.distance + sum(
            int(self.n_buckets[size]) * mean_inversions(int(size), theta) for size in np.flatnonzero(self.n_buckets)
        )
        given += sum(count * extensions.mean_distance(theta) for count, extensions in self.with_free)
        return self.n_voters * mean_inversions(self.n_items, theta) - given


def fit_theta(likelihood: Likelihood) -> float:
    """Return the theta of the highest likelihood, among all its local maxima from 0 to 30."""
    from scipy.optimize import brentq

    # Without free items the likelihood is concave; with them it may have several maxima, so we look everywhere.
    between = np.geomspace(1e-3, MAX_THETA, 30)[: -1 if likelihood.with_free else 0]
    grid = np.array([0.0, *between, MAX_THETA])
    slopes = [likelihood.slope(theta) for theta in grid]
    peaks = [0.0] if slopes[0] <= 0 else []
    peaks += [
        brentq(likelihood.slope, low, high, xtol=1e-13, rtol=1e-14)
        for low, high, rises, falls in zip(grid, grid[1:], slopes, slopes[1:], strict=False)
        if rises > 0 >= falls
    ]
    peaks += [MAX_THETA] if slopes[-1] > 0 else []
    return max(peaks, key=likelihood.value)
