"""The seven semimetrics of the paper, on full rankings: all pairs of rows, compiled.

A distance is a value that can be called: ``distances.kendall(X, Y)`` gives the matrix of distances between the rows of
``X`` and those of ``Y``. All compare rank vectors (item -> position), so renaming the items changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray, RankArray
from rankernel._utils.checks import check_instance, check_number
from rankernel._utils.interrupts import run_interruptibly
from rankernel.errors import RankingError
from rankernel.linear_forms import SquareForm
from rankernel.rankings import as_rankings

MOST_BITS_ITEMS = 1024  # whose pairs are compared as bits
BITS_AT_ONCE = 512  # rankings, so that their words stay in the cache


@dataclass(frozen=True)
class Distance:
    """A semimetric on full rankings, with what is known of it.

    Attributes
    ----------
    name : str
        What to call it.
    formula : str
        Its definition, r and s the rank vectors of two rankings.
    integer : bool
        Whether its values are whole numbers.
    metric : bool
        Whether it satisfies the triangle inequality.
    negative_type : bool
        Whether ``exp(-nu d)`` is positive semi-definite for every nu > 0, for every number of items. Where this is
        False there is a number of items and a nu for which it is not.
    marked_in_paper : bool
        Whether the paper prints it in bold, as a semimetric of negative type. It leaves out the footrule and the
        l_p distances with p <= 2, which are of negative type, too.
    left_invariant : bool
        Whether renaming the positions changes nothing; renaming the items never does (right-invariance).
    negative_up_to : int
        Up to how many items it is of negative type, where it is not for all numbers of items.
    best_coupling : str
        The coupling of draws that serves functions of it best, as measured in ``benchmarks/``. Reversal doubles the
        draws of distances that only ask which items keep their places (Hamming), or how places are permuted (Cayley).
    square : SquareForm, optional
        Features by which it is a squared length; then its mean between partial rankings is exact.
    cycles : callable, optional
        For n items the numbers that cycles of length 1 to n add to it, where it depends on the cycles between the
        places alone: what it starts from, then the numbers, then a mask for their sum.
    """

    name: str
    formula: str
    integer: bool
    metric: bool
    negative_type: bool
    marked_in_paper: bool
    left_invariant: bool = False
    right_invariant: bool = True
    negative_up_to: int = 2
    best_coupling: str = "iid"
    p: float | None = None
    square: SquareForm | None = field(default=None, repr=False, compare=False)
    cycles: Callable[[int], IntArray] | None = field(default=None, repr=False, compare=False)
    fill: Callable[[RankArray, RankArray, NDArray[Any]], None] = field(repr=False, compare=False, kw_only=True)
    largest: Callable[[int], float] = field(repr=False, compare=False, kw_only=True)

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return the matrix of distances between full rankings, ``Y`` the same as ``X`` if left out.

        Examples
        --------
        >>> kendall([[0, 1, 2], [2, 1, 0]], [[0, 2, 1]])
        array([[1],
               [2]])
        """
        left = full_ranks(X)
        right = left if Y is None else full_ranks(Y, "Y")
        if left.shape[1] != right.shape[1]:
            raise RankingError(f"X ranks {left.shape[1]} items and Y ranks {right.shape[1]}; both must rank the same")
        return run_interruptibly(self.between, left, right)

    def between(self, X: RankArray, Y: RankArray) -> NDArray[Any]:
        """Return the distances between rows that are known to be full rankings, as positions 0..n-1."""
        out = np.empty((len(X), len(Y)), dtype=np.int64 if self.integer else np.float64)
        self.fill(X, Y, out)
        return out

    def maximum(self, n_items: int) -> float:
        """Return the largest distance between two rankings of n items."""
        return self.largest(n_items)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Distance], tuple[str]]:
        """Pickle and copy a distance by its name."""
        return by_name, (self.name,)


def full_ranks(data: Any, name: str = "X") -> RankArray:
    """Return the rows of full rankings as positions 0..n-1, refusing ties and free items."""
    rankings = as_rankings(data, name)
    full = rankings.n_buckets == rankings.n_items
    if not full.all():
        row = int(np.argmin(full))
        raise RankingError(
            f"row {row} is not a full ranking: {rankings[row].kinds()[0]}; distances compare full rankings "
            "(for partial ones, kernel.gram averages over their completions)"
        )
    return rankings.ranks


def rankwise(name: str) -> Callable[[RankArray, RankArray, NDArray[Any]], None]:
    """Return a call of a compiled loop, which is loaded on first use."""

    def fill(X: RankArray, Y: RankArray, out: NDArray[Any]) -> None:
        _loops.rank_distances.rankwise(X, Y, getattr(_loops.rank_distances, name), out)

    return fill


def fill_kendall(X: RankArray, Y: RankArray, out: NDArray[Any]) -> None:
    """Count the pairs that two rankings order differently: as bits, unless they are very many."""
    if X.shape[1] > MOST_BITS_ITEMS:
        _loops.rank_distances.kendall(X, Y, out)
        return
    for columns in (slice(start, start + BITS_AT_ONCE) for start in range(0, len(Y), BITS_AT_ONCE)):
        right = np.ascontiguousarray(_loops.bits.pairs_in_order(Y[columns]).T)
        for rows in (slice(start, start + BITS_AT_ONCE) for start in range(0, len(X), BITS_AT_ONCE)):
            left = _loops.bits.pairs_in_order(X[rows])
            _loops.rank_distances.differing_bits(left, right, out[rows, columns])


def reached_places(at: FloatArray) -> FloatArray:
    """Return for each item and each place but the last whether (or how probably) it stands there or before."""
    return np.asarray(np.cumsum(at, axis=2)[:, :, :-1].reshape(len(at), -1))


kendall = Distance(
    "kendall",
    "number of pairs (a, b) with (r_a - r_b)(s_a - s_b) < 0",
    integer=True,
    metric=True,
    negative_type=True,
    marked_in_paper=True,
    best_coupling="antithetic",
    square=SquareForm("pairs", lambda signs: signs / 2, scale=0.5),
    fill=fill_kendall,
    largest=lambda n: n * (n - 1) // 2,
)

footrule = Distance(
    "footrule",
    "sum |r_a - s_a|",
    integer=True,
    metric=True,
    negative_type=True,  # an l1 metric embeds isometrically into L1
    marked_in_paper=False,
    best_coupling="antithetic",
    square=SquareForm("positions", reached_places, indicators=True),
    fill=rankwise("FOOTRULE"),
    largest=lambda n: n * n // 2,
)

spearman = Distance(
    "spearman",
    "sum (r_a - s_a)^2",
    integer=True,
    metric=False,
    negative_type=True,
    marked_in_paper=True,
    best_coupling="antithetic",
    square=SquareForm("ranks", lambda ranks: ranks, scale=1.0),
    fill=rankwise("SPEARMAN"),
    largest=lambda n: n * (n * n - 1) // 3,
)

hamming = Distance(
    "hamming",
    "number of items a with r_a != s_a",
    integer=True,
    metric=True,
    negative_type=True,
    marked_in_paper=True,
    left_invariant=True,
    best_coupling="latin",
    square=SquareForm("positions", lambda at: at.reshape(len(at), -1) / math.sqrt(2)),
    fill=rankwise("HAMMING"),
    largest=lambda n: n if n > 1 else 0,
)


def cycles_alike(n_items: int) -> IntArray:
    """Return n, and -1 for each cycle whatever its length."""
    return np.concatenate([[n_items], np.full(n_items, -1), [2**62 - 1]])


cayley = Distance(
    "cayley",
    "fewest transpositions from r to s",
    integer=True,
    metric=True,
    negative_type=False,
    marked_in_paper=False,
    left_invariant=True,
    cycles=cycles_alike,
    fill=lambda X, Y, out: _loops.cycles.pair_codes(X, Y, cycles_alike(X.shape[1]), out),
    largest=lambda n: n - 1,
)

linf = Distance(
    "linf",
    "max |r_a - s_a|",
    integer=True,
    metric=True,
    negative_type=False,
    marked_in_paper=False,
    negative_up_to=4,
    best_coupling="antithetic",
    fill=rankwise("LINF"),
    largest=lambda n: n - 1,
)


def lp(p: float) -> Distance:
    """Return the l_p distance ``(sum |r_a - s_a|^p)^(1/p)``, p >= 1: of negative type if p <= 2.

    Examples
    --------
    >>> lp(2)([[0, 1, 2]], [[2, 1, 0]])
    array([[2.82842712]])
    """
    check_number("p", p, 1)  # the maximum is linf

    def fill(X: RankArray, Y: RankArray, out: FloatArray) -> None:
        powers = np.arange(X.shape[1] + 1, dtype=np.float64) ** p
        _loops.rank_distances.power_sum(X, Y, powers, out)
        np.power(out, 1 / p, out=out)

    return Distance(
        f"lp({float(p)!r})" if p != int(p) else f"lp({int(p)})",
        f"(sum |r_a - s_a|^{p:g})^(1/{p:g})",
        integer=False,
        metric=True,
        negative_type=p <= 2,
        marked_in_paper=False,
        best_coupling="antithetic",
        p=p,
        fill=fill,
        largest=lambda n: float(np.sum(np.abs(np.arange(n) - np.arange(n)[::-1]) ** float(p)) ** (1 / p)),
    )


ALL = {distance.name: distance for distance in (kendall, footrule, spearman, hamming, cayley, linf)}


def by_name(distance: Distance | str) -> Distance:
    """Return a distance given by name ("kendall", "lp(3)", ...), or as it is."""
    if isinstance(distance, Distance):
        return distance
    check_instance("distance", distance, str, f"a distance, or the name of one: {', '.join(ALL)}, lp(p)")
    if distance in ALL:
        return ALL[distance]
    if distance.startswith("lp(") and distance.endswith(")"):
        try:
            return lp(float(distance[3:-1]))
        except ValueError as error:
            raise ValueError(f"distance={distance!r} is not known: {error}") from None
    raise ValueError(f"distance={distance!r} is not known; there are {', '.join(ALL)} and lp(p)")
