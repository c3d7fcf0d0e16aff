"""Gram matrices of partial orders: mean features where they are enough, all linear extensions, or draws of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from rankernel.completions.down_sets import FEW_DOWN_SETS
from rankernel.completions.draws import Draws
from rankernel.completions.models import Uniform
from rankernel.distances import by_name
from rankernel.errors import ExactnessError
from rankernel.gram.by_draws import DrawsEvaluator
from rankernel.gram.by_monte_carlo import MonteCarloEvaluator
from rankernel.gram.controls import highest_degree
from rankernel.gram.evaluator import Evaluator, Tile
from rankernel.gram.exact import LINEAR_DISTANCES, exact_evaluator
from rankernel.gram.methods import Enumeration, Exact, Method, Mixed
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.partial_orders import PartialOrders
from rankernel.kernels.base import Constant, Kernel, Scaled, Sum
from rankernel.kernels.kendall import Kendall, Polynomial
from rankernel.kernels.linear import DistanceInduced, Hamming, Spearman
from rankernel.rankings import Rankings

__all__ = ["ExtensionsMonteCarlo", "choose_by_extensions"]


def choose_by_extensions(
    kernel: Kernel, X: PartialOrders, Y: PartialOrders, method: Method | Literal["auto"]
) -> tuple[Method, Evaluator]:
    """Return the method that will be used for partial orders, nothing left open, and what carries it out.

    As for rankings, "auto" is exact where all pairs are, else Monte Carlo; but lattices of down-sets are walked for an
    exact value only up to a moderate size, and up to a large one if ``"exact"`` is asked for.
    """
    match method:
        case Exact():
            return method, exactly(kernel, X, Y, method.limit)
        case Enumeration():
            return method, enumerated(kernel, X, Y, method.limit)
        case MonteCarlo():
            settled = settle(method, kernel, X, Y)
            return settled, ExtensionsMonteCarlo(settled, kernel, X, Y)
        case Mixed():
            raise ValueError(
                "method='mixed' is for rankings; for partial orders use 'auto', 'exact' or MonteCarlo(...)"
            )
        case "auto":
            return automatic(kernel, X, Y)
    raise TypeError(f"method={method!r} is no method; use 'auto', 'exact', 'enumeration' or MonteCarlo(...)")


def automatic(kernel: Kernel, X: PartialOrders, Y: PartialOrders) -> tuple[Method, Evaluator]:
    """Return the best method there is for all pairs at a moderate cost."""
    try:
        return Exact(), exactly(kernel, X, Y, Exact().limit, FEW_DOWN_SETS)
    except ExactnessError:
        return choose_by_extensions(kernel, X, Y, MonteCarlo())


# ---------------------------------------------------------------------- exact


def exactly(
    kernel: Kernel, X: PartialOrders, Y: PartialOrders, limit: int, max_down_sets: int | None = None
) -> Evaluator:
    """Return the exact evaluator: inner products of mean features, or else enumeration."""
    if not is_linear(kernel):
        return enumerated(kernel, X, Y, limit, max_down_sets)
    try:
        X.prepare(max_down_sets)
        Y.prepare(max_down_sets)
    except ExactnessError as error:
        raise ExactnessError(
            f"the exact value of {kernel} for a partial order of {X.n_items} items is out of reach: {error}"
        ) from None
    found = exact_evaluator(kernel, like_rankings(X), like_rankings(Y))
    assert isinstance(found, Evaluator)
    return found


def is_linear(kernel: Kernel) -> bool:
    """Say whether a kernel needs to know of an order only where each item stands, or which of two comes first."""
    match kernel:
        case Sum(left, right):
            return is_linear(left) and is_linear(right)
        case Scaled(kernel=inner):
            return is_linear(inner)
        case DistanceInduced():
            return by_name(kernel.distance) in LINEAR_DISTANCES
    return isinstance(kernel, Constant | Kendall | Hamming | Spearman) or kernel == Polynomial(1)


def enumerated(
    kernel: Kernel, X: PartialOrders, Y: PartialOrders, limit: int, max_down_sets: int | None = None
) -> Evaluator:
    """Return the evaluator that averages over all linear extensions, each order's made once."""
    work = enumeration_work(X, Y, limit, max_down_sets)
    if work is None or work > limit:
        cost = "too many to count" if work is None else f"at least {float(work):.2g}"
        raise ExactnessError(
            f"enumeration of {kernel} for a partial order of {X.n_items} items would take all pairs of linear "
            f"extensions, {cost} (the limit is {limit:,}); use method=MonteCarlo(n_draws), or raise the limit: "
            "method=Exact(limit=...)"
        )
    left = X.all_completions(limit)
    right = left if Y is X else Y.all_completions(limit)
    return DrawsEvaluator(left, right, "enumeration of all linear extensions")


def enumeration_work(X: PartialOrders, Y: PartialOrders, limit: int, max_down_sets: int | None) -> int | None:
    """Return how many pairs of linear extensions there are, or a smaller number above the limit.

    None: an order has too many down-sets to count its linear extensions.
    """
    try:
        rows = X.n_completions(limit, max_down_sets)
        return rows * (rows if Y is X else Y.n_completions(limit, max_down_sets))
    except ExactnessError:
        return None


# ---------------------------------------------------------------------- estimated


def settle(method: MonteCarlo, kernel: Kernel, X: PartialOrders, Y: PartialOrders) -> MonteCarlo:
    """Return the method with every "auto" replaced, refusing what partial orders do not have."""
    if method.coupling not in ("auto", "iid"):
        raise ValueError(
            f"coupling={method.coupling!r} is for rankings: the linear extensions of a partial order have no reversal "
            "or rotation to couple draws by; use coupling='iid' or 'auto'"
        )
    if method.moments == 2:
        raise ValueError(
            "moments=2 is for rankings: of partial orders the moments of degree 1 are known; use 1, 0 or 'auto'"
        )
    moments = known_moments(method, kernel, X, Y) if method.moments == "auto" else method.moments
    return replace(method, coupling="iid", moments=moments)


def known_moments(method: MonteCarlo, kernel: Kernel, X: PartialOrders, Y: PartialOrders) -> int:
    """Return 1 where the kernel has coordinates of degree 1, and they are known at a moderate cost."""
    if not isinstance(method.completions, Uniform) or not highest_degree(kernel, X.n_items):
        return 0
    try:
        X.prepare(FEW_DOWN_SETS)
        Y.prepare(FEW_DOWN_SETS)
    except ExactnessError:
        return 0
    return 1


class ExtensionsMonteCarlo(MonteCarloEvaluator):
    """The Monte Carlo estimator for partial orders."""

    def __init__(self, method: MonteCarlo, kernel: Kernel, X: PartialOrders, Y: PartialOrders) -> None:
        self.orders = X, Y
        super().__init__(method, kernel, like_rankings(X), like_rankings(Y))

    def drawn(self, kernel: Kernel, X: Rankings) -> Draws:
        """Return the draws of each order."""
        method, orders = self.method, cast(PartialOrders, X)
        return orders.draw(method.n_draws, method.completions, int(method.seed), method.distinct_rows)  # type: ignore[arg-type]

    def same(self, tile: Tile) -> NDArray[np.bool_]:
        """Return which entries have the same draws on both sides."""
        (X, Y), (rows, columns) = self.orders, tile
        if not self.method.distinct_rows:
            return np.asarray(X.codes[rows][:, None] == Y.codes[columns][None, :])
        same_row = np.equal.outer(np.arange(len(X))[rows], np.arange(len(Y))[columns])
        return np.asarray(same_row & (X is Y))


def like_rankings(X: PartialOrders) -> Rankings:
    """Return partial orders as what they stand in for: they have lengths, rows and mean features as rankings do."""
    return cast(Rankings, X)
