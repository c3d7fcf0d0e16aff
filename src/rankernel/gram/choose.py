"""From what the caller asked for to an evaluator: one pure function, so that "auto" can be printed and tested."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rankernel.completions.enumerate import enumerate_completions
from rankernel.errors import ExactnessError, IndefiniteKernelWarning
from rankernel.gram.by_draws import DrawsEvaluator, Embeddings
from rankernel.gram.by_extensions import choose_by_extensions
from rankernel.gram.by_monte_carlo import MonteCarloEvaluator
from rankernel.gram.evaluator import Evaluator, FloatArray, Part, Tile
from rankernel.gram.exact import Obstacle, exact_evaluator
from rankernel.gram.methods import Enumeration, Exact, Method, MethodLike, Mixed
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.partial_orders import Data, PartialOrders, as_partial_orders
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings

__all__ = ["Choice", "choose"]

Choice = tuple[Method, Evaluator]

BUDGET = 2e10  # elementary steps that "auto" spends on exact values before it estimates: some tens of seconds

NAMED: dict[str, Method] = {"exact": Exact(), "enumeration": Enumeration(), "mixed": Mixed()}


def choose(kernel: Kernel, X: Data, Y: Data, method: MethodLike = "auto") -> Choice:
    """Return the method that will be used, nothing left open, and the evaluator that carries it out.

    "auto" is the closed form where every pair has one at a bearable cost, enumeration where the completions are few,
    else Monte Carlo.
    All entries are computed the same way, so that the matrix stays positive semi-definite; ``"mixed"`` is the
    exception.
    """
    if isinstance(method, str) and method != "auto":
        if method not in NAMED:
            known = ", ".join(repr(name) for name in ("auto", *NAMED))
            raise ValueError(f"method={method!r} is not known; there are {known} and MonteCarlo(...)")
        method = NAMED[method]
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return choose_by_extensions(kernel, as_partial_orders(X), as_partial_orders(Y), method)
    match method:
        case Exact():
            return method, exactly(kernel, X, Y, method.limit)
        case Enumeration():
            return method, enumerated(kernel, X, Y, method.limit)
        case MonteCarlo():
            settled = method.settled(kernel, X, Y)
            return settled, MonteCarloEvaluator(settled, kernel, X, Y)
        case Mixed():
            return method, MixedEvaluator(kernel, X, Y)
        case "auto":
            return automatic(kernel, X, Y)
    raise TypeError(f"method={method!r} is no method; use 'auto', 'exact', 'enumeration', 'mixed' or MonteCarlo(...)")


def automatic(kernel: Kernel, X: Rankings, Y: Rankings) -> Choice:
    """Return the best method there is for all pairs."""
    try:
        evaluator = exactly(kernel, X, Y, Exact().limit)
    except ExactnessError:
        return choose(kernel, X, Y, MonteCarlo())
    if evaluator.work(BUDGET) > BUDGET:
        return choose(kernel, X, Y, MonteCarlo())
    return Exact(), evaluator


def exactly(kernel: Kernel, X: Rankings, Y: Rankings, limit: int) -> Evaluator:
    """Return the exact evaluator, by closed form or else by enumeration."""
    found = exact_evaluator(kernel, X, Y)
    if not isinstance(found, Obstacle):
        return found
    work = total_completions(X) * total_completions(Y)
    if work > limit:
        raise ExactnessError(
            f"{found}, and enumeration would take {about(work)} kernel evaluations (the limit is {limit:,}); "
            "use method=MonteCarlo(n_draws), or raise the limit: method=Exact(limit=...)"
        )
    return enumerated(kernel, X, Y, limit)


def about(number: int) -> str:
    """Return a whole number of any size in few characters."""
    return f"{number:,}" if number < 10**9 else f"about 10^{math.floor(math.log10(number))}"


def total_completions(X: Rankings) -> int:
    """Return how many full rankings agree with any of the rankings, each ranking counted apart."""
    return sum(X.n_completions())


def enumerated(kernel: Kernel, X: Rankings, Y: Rankings, limit: int) -> Evaluator:
    """Return the evaluator that averages over all completions, each ranking's made once."""
    work = total_completions(X) * total_completions(Y)
    if work > limit:
        kinds = " and ".join(dict.fromkeys(np.concatenate([X.kinds(), Y.kinds()]).tolist()))
        raise ExactnessError(
            f"enumerating the completions of these {kinds} rankings takes {about(work)} evaluations of {kernel} "
            f"(the limit is {limit:,}); use method=MonteCarlo(n_draws), or raise the limit: Enumeration(limit=...)"
        )
    left = all_completions(X)
    right = left if Y is X else all_completions(Y)
    return DrawsEvaluator(left, right, "enumeration of all completions")


def all_completions(X: Rankings) -> Embeddings:
    """Return all completions of each ranking, equally weighted."""
    sets = [enumerate_completions(row).astype(np.int32) for row in X.ranks]
    sizes = np.array([len(full) for full in sets], dtype=np.int64)
    ranks = np.concatenate(sets) if sets else np.empty((0, X.n_items), dtype=np.int32)
    return Embeddings(ranks, np.repeat(1 / sizes, sizes), np.concatenate([[0], np.cumsum(sizes)]))


class MixedEvaluator(Evaluator):
    """Rankings with and without free items apart: each of the four blocks by the best method it has."""

    def __init__(self, kernel: Kernel, X: Rankings, Y: Rankings) -> None:
        self.left, self.right = by_exhaustive(X), by_exhaustive(Y)
        self.parts = {
            (i, j): automatic(kernel, X[rows], Y[columns])
            for (i, rows), (j, columns) in product(enumerate(self.left), enumerate(self.right))
            if len(rows) and len(columns)
        }
        self.description = "; ".join(dict.fromkeys(evaluator.description for _, evaluator in self.parts.values()))
        self.tile_side = min((evaluator.tile_side for _, evaluator in self.parts.values()), default=1)
        if len({type(method) for method, _ in self.parts.values()}) > 1:
            warnings.warn(
                "exact and estimated entries are mixed, so the matrix may have negative eigenvalues; "
                "method='auto' uses one estimator for all",
                IndefiniteKernelWarning,
                stacklevel=4,
            )

    def blocks(self, tile: Tile) -> list[tuple[Evaluator, tuple[NDArray[np.intp], ...], Tile]]:
        """Return for each block its evaluator, where it lies in the tile, and which of its own entries it gives."""
        found: list[tuple[Evaluator, tuple[NDArray[np.intp], ...], Tile]] = []
        for (i, j), (_, evaluator) in self.parts.items():
            rows, own_rows = inside(self.left[i], tile[0], sum(map(len, self.left)))
            columns, own_columns = inside(self.right[j], tile[1], sum(map(len, self.right)))
            if len(rows) and len(columns):
                found.append((evaluator, np.ix_(rows, columns), (own_rows, own_columns)))
        return found

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the tile, block by block."""
        sides = zip((self.left, self.right), tile, strict=True)
        out = np.empty((len(kernels), *(len(np.arange(sum(map(len, side)))[part]) for side, part in sides)))
        for evaluator, place, own in self.blocks(tile):
            for matrix, value in zip(out, evaluator.values(kernels, own), strict=True):
                matrix[place] = value
        return out

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives, block by block."""
        value = self.values([kernel], tile)[0]
        out = {name: np.empty_like(value) for name in kernel.params}
        for evaluator, place, own in self.blocks(tile):
            for name, slope in evaluator.gradients(kernel, own).items():
                out[name][place] = slope
        return out


def by_exhaustive(X: Rankings) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows without and those with free items."""
    free = X.n_free > 0
    return np.flatnonzero(~free), np.flatnonzero(free)


def inside(group: NDArray[np.intp], part: Part, length: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which rows of a part belong to a group: their places in the part, and in the group."""
    rows = np.arange(length)[part]
    place = np.full(length, -1, dtype=np.intp)
    place[group] = np.arange(len(group))
    own = place[rows]
    return np.flatnonzero(own >= 0), own[own >= 0]
