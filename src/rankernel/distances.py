"""Distances between rankings, for all pairs of rows.

A distance is called as ``distances.kendall(X, Y)`` and returns the matrix of distances between the rows of ``X`` and
those of ``Y``. Distances compare rank vectors (item -> position), so relabelling the items changes nothing. Between
partial rankings they return the mean distance over all completions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import check_number, is_number, short_repr
from rankernel._utils.resources import run_interruptibly, slices
from rankernel.errors import ExactnessError, RankingError
from rankernel.rankings import Rankings, as_rankings, ranks_for_loops

MAX_EVALUATIONS = 10_000_000  # pairs of completions whose distances are averaged by enumeration
ROWS_AT_ONCE = 512  # rankings packed into bits at a time, so that their words stay in the cache


# ---------------------------------------------------------------------- features of full rankings

# Features that are affine in a statistic have a known mean over completions: signs of pairs, positions, or ranks.
Statistic = Literal["pairs", "positions", "ranks"]


def pair_signs(X: RankArray) -> FloatArray:
    """Return +1 for each pair of items a < b (in the order of triu_indices) with a before b, else -1."""
    a, b = np.triu_indices(X.shape[1], 1)
    return np.asarray(np.sign(X[:, b] - X[:, a]), dtype=np.float64)


def positions(X: RankArray) -> FloatArray:
    """Return the permutation matrices: shape (n_rankings, n_items, n_positions)."""
    return np.asarray(X[:, :, None] == np.arange(X.shape[1]), dtype=np.float64)


def centred_ranks(X: RankArray) -> FloatArray:
    """Return the ranks minus ``(n - 1) / 2``."""
    return np.asarray(X - (X.shape[1] - 1) / 2)


STATISTICS: dict[str, Callable[[RankArray], FloatArray]] = {
    "pairs": pair_signs,
    "positions": positions,
    "ranks": centred_ranks,
}


def uniform_mean(statistic: Statistic, n_items: int) -> FloatArray:
    """Return the mean of a statistic over all rankings, as one row."""
    if statistic == "positions":
        return np.full((1, n_items, n_items), 1 / n_items)
    return np.zeros((1, n_items if statistic == "ranks" else n_items * (n_items - 1) // 2))


Transform = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class LinearForm:
    """The form ``<m - c, A (m' - c)>`` in a statistic m of two rankings, A symmetric and positive semi-definite.

    It is linear in either statistic, so its mean over completions follows from the mean statistics.

    Parameters
    ----------
    statistic : {"pairs", "positions", "ranks"}
        The signs of pairs of items, the permutation matrix, or the centred ranks.
    multiply : callable
        Returns A times each of several statistics. Acts on each pair, or on the last axis of positions, separately.
    root : callable
        Returns F times each of several statistics, where ``A = F' F``.
    derivatives : dict of callables
        Returns the derivative of A in a parameter, times each of several statistics.
    mixes_items : bool
        Whether ``multiply`` and ``root`` take all pairs or items together.
    center : array, optional
        The statistic c of a full ranking; 0 by default.
    """

    statistic: Statistic
    multiply: Transform
    root: Transform
    derivatives: Mapping[str, Transform] = field(default_factory=dict)
    mixes_items: bool = False
    center: FloatArray | None = None

    @property
    def is_positional(self) -> bool:
        """Whether it is a sum over items of a function of their two positions."""
        return self.statistic == "positions" and not self.mixes_items and self.center is None

    def features(self, means: FloatArray) -> FloatArray:
        """Return vectors whose inner product is the form, given the statistics of several rankings."""
        return self.root(means if self.center is None else means - self.center).reshape(len(means), -1)


def scaled_form(statistic: Statistic, scale: float) -> LinearForm:
    """Return the inner product of two statistics, times a number."""
    return LinearForm(statistic, lambda means: scale * means, lambda means: math.sqrt(scale) * means)


def sum_over_depths(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rows times the matrix with the sum of the weights of all depths that include two positions.

    It is the sum over depths of the sum of a row up to the depth; small weights are added first.
    """
    return np.cumsum((np.cumsum(rows, axis=-1) * weights)[..., ::-1], axis=-1)[..., ::-1]


# ---------------------------------------------------------------------- distances


@dataclass(frozen=True)
class Distance:
    """A semimetric on rankings, with its known properties.

    Attributes
    ----------
    name : str
        Its name.
    integer : bool
        Whether its values are integers.
    metric : bool
        Whether it satisfies the triangle inequality.
    negative_type : bool
        Whether ``exp(-nu d)`` is positive semi-definite for every nu > 0 and every number of items (Schoenberg).
    negative_type_up_to : int
        The largest number of items for which it is of negative type, if it is not for all.
    coupling : str
        The coupling of Monte Carlo draws with the lowest variance for functions of it (``benchmarks/couplings.py``).
    form : LinearForm, optional
        The form f with ``d(x, y) = f(x, x) + f(y, y) - 2 f(x, y)``, where f(x, x) is the same for every full ranking x;
        the mean distance between partial rankings is then exact.
    mean : callable, optional
        Returns the mean distance of two random full rankings of n items.
    cycle_weights : callable, optional
        For distances that depend only on the cycles of the map between positions: for n items an array with the
        initial value, the weight of cycles of length 1 to n, and a bit mask applied to the sum.
    function : callable, optional
        The function of two rank vectors that a user gave.
    maximum : callable
        Returns the largest distance between two full rankings of n items; infinite if unknown.
    """

    name: str
    integer: bool = False
    metric: bool = False
    negative_type: bool = False
    negative_type_up_to: int = 2
    coupling: str = "iid"
    function: Callable[[RankArray, RankArray], float] | None = None
    form: LinearForm | None = field(default=None, repr=False, compare=False)
    mean: Callable[[int], float] | None = field(default=None, repr=False, compare=False)
    cycle_weights: Callable[[int], IntArray] | None = field(default=None, repr=False, compare=False)
    fill: Callable[[RankArray, RankArray, NDArray[Any]], None] = field(repr=False, compare=False, kw_only=True)
    maximum: Callable[[int], float] = field(repr=False, compare=False, kw_only=True)

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return the matrix of distances between rankings; between partial ones, of their mean over all completions.

        The mean is in closed form for Kendall, Spearman, footrule and Hamming. For the other distances all completions
        are enumerated if they are few.

        Parameters
        ----------
        X, Y : Rankings or integer array
            The rows and the columns; ``Y`` defaults to ``X``.

        Returns
        -------
        array of shape (n_rows, n_columns)
            Integers between full rankings if the distance is integer-valued, else floats.

        Raises
        ------
        ExactnessError
            If the distance has no closed form and the rankings have too many completions.

        Examples
        --------
        >>> kendall([[0, 1, 2], [2, 1, 0]], [[0, 2, 1]])
        array([[1],
               [2]])

        Items 1 and 2 are tied; the two completions are at distance 0 and 1:

        >>> kendall([[0, 1, 1]], [[0, 1, 2]])
        array([[0.5]])
        """
        left = as_rankings(X, "X")
        right = left if Y is None else as_rankings(Y, "Y")
        if left.n_items != right.n_items:
            raise RankingError(f"X ranks {left.n_items} items and Y ranks {right.n_items}; both must rank the same")
        if left.is_full() and right.is_full():
            return run_interruptibly(self.between, left.ranks, right.ranks)
        return run_interruptibly(self._mean_between, left, right)

    def between(self, X: RankArray, Y: RankArray) -> NDArray[Any]:
        """Return the distances between rows that are known to be full rankings, as positions 0..n-1."""
        out = np.empty((len(X), len(Y)), dtype=np.int64 if self.integer else np.float64)
        self.fill(ranks_for_loops(X), ranks_for_loops(Y), out)
        return out

    def _mean_between(self, X: Rankings, Y: Rankings) -> FloatArray:
        from rankernel.completions.linear_extensions import all_completions
        from rankernel.completions.marginals import statistic_means

        if self.form is not None:
            left, right = (statistic_means(side, self.form.statistic) for side in (X, Y))
            return self.from_mean_statistics(left, right, X.n_items)
        sizes, others = X.n_completions(), Y.n_completions()
        if sum(sizes) * sum(others) > MAX_EVALUATIONS:
            raise ExactnessError(
                f"the mean {self.name} distance of partial rankings has no closed form, and the rankings have "
                f"{sum(sizes):.3g} x {sum(others):.3g} pairs of completions, more than {MAX_EVALUATIONS:,}; average "
                "the distance over draws from rankernel.completions.draw, or use kendall, spearman, footrule or hamming"
            )
        full, columns = (
            np.concatenate([*map(all_completions, side.ranks), np.empty((0, side.n_items))]).astype(np.int32)
            for side in (X, Y)
        )
        means = np.empty((len(sizes), len(others)))
        starts = np.concatenate([[0], np.cumsum(others)[:-1]]).astype(np.int64)
        for row, end in enumerate(np.cumsum(sizes).tolist()):
            d = self.between(full[end - sizes[row] : end], columns).mean(axis=0)
            means[row] = np.add.reduceat(d, starts) / others if len(others) else 0.0
        return means

    def from_mean_statistics(self, left: FloatArray, right: FloatArray, n_items: int) -> FloatArray:
        """Return the mean distances, given the mean statistics of the :attr:`form` for rows and columns."""
        assert self.form is not None
        one = STATISTICS[self.form.statistic](np.arange(n_items, dtype=np.int32)[None])
        norm = float((one * self.form.multiply(one)).sum())
        products = left.reshape(len(left), -1) @ self.form.multiply(right).reshape(len(right), -1).T
        return np.asarray(2 * (norm - products))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[Any], Distance], tuple[Any]]:
        return as_distance, (self.name if self.function is None else self.function,)


Loop = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], None]


def fill_in_blocks(X: RankArray, Y: RankArray, out: NDArray[Any], prepare: Callable[..., Any], loop: Loop) -> None:
    """Call a compiled loop for some prepared rows and columns at a time, which stay in the cache."""
    for columns in slices(len(Y), ROWS_AT_ONCE):
        right = np.array(prepare(Y[columns]).T, order="C")
        for rows in slices(len(X), ROWS_AT_ONCE):
            loop(np.array(prepare(X[rows]).T, order="C"), right, out[rows, columns])


def fill_rankwise(name: str) -> Loop:
    """Return a call of the compiled loop over items for the distance of that name."""

    def fill(X: RankArray, Y: RankArray, out: NDArray[Any]) -> None:
        kind, largest = getattr(_loops.pairs, name), X.shape[1] ** 3 // 3
        sums = np.empty(ROWS_AT_ONCE, dtype=np.int32 if largest < 2**31 else np.int64)
        fill_in_blocks(X, Y, out, np.asarray, lambda x, y, part: _loops.pairs.rankwise(x, y, kind, sums, part))

    return fill


def fill_kendall(X: RankArray, Y: RankArray, out: NDArray[Any]) -> None:
    """Count the discordant pairs, with the order of each pair of items as one bit unless there are many items."""
    if X.shape[1] > _loops.pairs.MAX_BIT_ITEMS:
        n_buckets = np.full(max(len(X), len(Y)), X.shape[1])
        position = Y.astype(np.int64)
        _loops.pairs.count_discordant(X, np.argsort(X, axis=1), n_buckets, position, position, n_buckets, 0, out)
    else:
        fill_in_blocks(X, Y, out, _loops.pairs.pairs_in_order, _loops.pairs.differing_bits)


def fill_cycles(X: RankArray, Y: RankArray, weights: IntArray, out: NDArray[Any]) -> None:
    """Write the sums of the weights of cycles: see :attr:`Distance.cycle_weights`."""
    _loops.pairs.cycle_codes(ranks_for_loops(X.T), ranks_for_loops(Y.T), weights, out)


kendall = Distance(
    "kendall",
    integer=True,
    metric=True,
    negative_type=True,
    coupling="antithetic",
    form=scaled_form("pairs", 0.25),
    mean=lambda n: n * (n - 1) / 4,
    fill=fill_kendall,
    maximum=lambda n: n * (n - 1) // 2,
)

footrule = Distance(
    "footrule",
    integer=True,
    metric=True,
    negative_type=True,  # an l1 metric
    coupling="antithetic",
    form=LinearForm(  # of the indicators that an item is at or before each position but the last
        "positions",
        lambda at: sum_over_depths(at, np.arange(at.shape[-1]) < at.shape[-1] - 1),
        lambda at: np.cumsum(at, axis=-1)[..., :-1],
    ),
    mean=lambda n: (n * n - 1) / 3,
    fill=fill_rankwise("FOOTRULE"),
    maximum=lambda n: n * n // 2,
)

spearman = Distance(
    "spearman",
    integer=True,
    negative_type=True,
    coupling="antithetic",
    form=scaled_form("ranks", 1.0),
    mean=lambda n: n * (n * n - 1) / 6,
    fill=fill_rankwise("SPEARMAN"),
    maximum=lambda n: n * (n * n - 1) // 3,
)

hamming = Distance(
    "hamming",
    integer=True,
    metric=True,
    negative_type=True,
    form=scaled_form("positions", 0.5),
    mean=lambda n: n - 1.0,
    fill=fill_rankwise("HAMMING"),
    maximum=lambda n: n if n > 1 else 0,
)


def equal_cycle_weights(n_items: int) -> IntArray:
    """Return the weights of cycles for n minus the number of cycles: see :attr:`Distance.cycle_weights`."""
    return np.concatenate([[n_items], np.full(n_items, -1), [2**62 - 1]])


cayley = Distance(
    "cayley",
    integer=True,
    metric=True,
    cycle_weights=equal_cycle_weights,
    fill=lambda X, Y, out: fill_cycles(X, Y, equal_cycle_weights(X.shape[1]), out),
    maximum=lambda n: n - 1,
)

linf = Distance(
    "linf",
    integer=True,
    metric=True,
    negative_type_up_to=4,
    coupling="antithetic",
    fill=fill_rankwise("LINF"),
    maximum=lambda n: n - 1,
)


def lp(p: float) -> Distance:
    """Return the l_p distance ``(sum |r_a - s_a|^p)^(1/p)``, p >= 1: of negative type if p <= 2.

    Examples
    --------
    >>> lp(2)([[0, 1, 2]], [[2, 1, 0]])
    array([[2.82842712]])
    """
    check_number("p", p, 1)

    def fill(X: RankArray, Y: RankArray, out: FloatArray) -> None:
        n = X.shape[1]
        powers = np.abs(np.arange(1 - n, n)) ** float(p)
        differences = np.lib.stride_tricks.sliding_window_view(powers, n)[::-1]
        _loops.pairs.position_sums(X, Y, np.array(differences, order="C"), out)
        np.power(out, 1 / p, out=out)

    return Distance(
        f"lp({float(p)!r})" if p != int(p) else f"lp({int(p)})",
        metric=True,
        negative_type=p <= 2,
        coupling="antithetic",
        fill=fill,
        maximum=lambda n: float(np.sum(np.abs(np.arange(n) - np.arange(n)[::-1]) ** float(p)) ** (1 / p)),
    )


ALL = {distance.name: distance for distance in (kendall, footrule, spearman, hamming, cayley, linf)}


def as_distance(distance: Distance | str | Callable[[RankArray, RankArray], float]) -> Distance:
    """Return a distance given as a Distance, by its name ("kendall", "lp(3)"), or as a function of two rank vectors.

    A function is called for every pair of full rankings with two integer arrays of length n (the position of each
    item, from 0) and returns one number >= 0.

    Examples
    --------
    >>> as_distance("hamming")([[0, 1, 2]], [[0, 2, 1]])
    array([[2]])
    >>> def moved(x, y):
    ...     return abs(x[0] - y[0])
    >>> as_distance(moved)([[0, 1, 2]], [[2, 1, 0]])
    array([[2.]])
    """
    if isinstance(distance, Distance):
        return distance
    if isinstance(distance, str):
        if distance in ALL:
            return ALL[distance]
        if distance.startswith("lp(") and distance.endswith(")"):
            try:
                return lp(float(distance[3:-1]))
            except ValueError as error:
                raise ValueError(f"distance={distance!r} is not known: {error}") from None
        raise ValueError(f"distance={distance!r} is not known; there are {', '.join(ALL)} and lp(p)")
    if callable(distance):
        return function_distance(distance)
    raise TypeError(
        f"distance={short_repr(distance)} is not possible; give one of {', '.join(ALL)}, lp(p), or a function of two "
        "rank vectors"
    )


def function_distance(function: Callable[[RankArray, RankArray], float]) -> Distance:
    """Return the distance that a function of two rank vectors computes, pair by pair."""
    name = getattr(function, "__name__", type(function).__name__)

    def fill(X: RankArray, Y: RankArray, out: FloatArray) -> None:
        for i, j in np.ndindex(out.shape):
            result = function(X[i], Y[j])
            number = result.item() if isinstance(result, np.generic | np.ndarray) and np.ndim(result) == 0 else result
            if not is_number(number) or not 0 <= number < math.inf:
                shown = f"an array of shape {np.shape(result)}" if np.ndim(result) else short_repr(result)
                raise ValueError(
                    f"distance={name} returned {shown} for two rank vectors of length {X.shape[1]}; it must take two "
                    "rank vectors and return one finite number >= 0"
                )
            out[i, j] = number

    return Distance(name, function=function, fill=fill, maximum=lambda _: math.inf)
