"""Kernels that add up over items, by the laws of their places: one table for what two buckets have in common.

With u(i) the mean over completions of what a kernel sees of the place of item i, K(R, R') is the sum of <u(i), u'(i)>.
Most items of a short list share one bucket, the largest, and one u. Taking it from all items leaves few that count, and
what it adds is known without looking at any item: every place is taken once, so the u(i) of a ranking add up to the
sum t over all places, and K(R, R') = <u, t> + <u', t> - n <u, u'> + the sum over items listed by both of what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel.completions.marginals import position_distributions
from rankernel.gram.cost import STEP
from rankernel.gram.evaluator import Block, Evaluator, Part
from rankernel.gram.exact.features import FeatureEvaluator, Weigh, mean_statistics
from rankernel.gram.rows import PartialOrders, Rows
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings

MOST_CODES = 2**10  # kinds of listed items: beyond, the table is larger than what it replaces
TABLES = 8  # kept at once: a kernel and its derivatives


@dataclass(frozen=True, eq=False)
class ListedItems:
    """The items outside of the largest bucket of each ranking, in ascending order, ranking by ranking.

    Attributes
    ----------
    starts : array of shape (n_rankings + 1,)
        Where the items of each ranking begin.
    items : array of shape (n_listed,)
        The items.
    codes : array of shape (n_listed,)
        What kind each is: its bucket, and the largest one.
    left : array of shape (n_codes, n_items)
        The law of the places of each kind, less that of the largest bucket.
    base : array of shape (n_rankings,)
        Which law the largest bucket has.
    base_laws : array of shape (n_bases, n_items)
        These laws.
    """

    starts: IntArray
    items: IntArray
    codes: IntArray
    left: FloatArray
    base: Indices
    base_laws: FloatArray

    def part(self, rows: Part) -> ListedItems:
        """Return some of the rankings."""
        chosen = np.arange(len(self.base))[rows]
        sizes = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(self.starts[chosen] - starts[:-1], sizes) + np.arange(starts[-1])
        return ListedItems(
            starts, self.items[entries], self.codes[entries], self.left, self.base[chosen], self.base_laws
        )

    def frequencies(self, n_items: int) -> IntArray:
        """Return how many rankings list each item."""
        return np.bincount(self.items, minlength=n_items)


def listed_items(X: Rankings) -> ListedItems:
    """Return the items of each ranking that are not in its largest bucket, the last of several."""
    found = position_distributions(X)
    n_shapes, width = found.sizes.shape
    largest = width - 1 - np.argmax(found.sizes[:, ::-1], axis=1)
    bases, base_of_shape = np.unique(found.pmf_of[np.arange(n_shapes), largest], return_inverse=True)
    pairs = found.pmf_of * len(bases) + base_of_shape.reshape(-1, 1)
    some = (found.sizes > 0) & (np.arange(width) != largest[:, None])
    kinds, inverse = np.unique(pairs[some], return_inverse=True)
    code_of = np.full(found.sizes.shape, -1, dtype=np.intp)
    code_of[some] = inverse.ravel()
    return ListedItems(
        *found.items_with(X, code_of),
        found.pmfs[kinds // len(bases)] - found.pmfs[bases[kinds % len(bases)]],
        base_of_shape.ravel()[found.shape_of],
        found.pmfs[bases],
    )


class PlaceEvaluator(Evaluator):
    """Sums over the items that two rankings both list."""

    details = "closed form (laws of places)"
    block_side = 1024

    def __init__(self, X: Rankings, Y: Rankings, left: ListedItems, right: ListedItems) -> None:
        self.n_items, self.left, self.right = X.n_items, left, right
        self.tables: dict[tuple[Kernel, str], tuple[FloatArray, FloatArray]] = {}
        shared = self.left.frequencies(self.n_items) @ self.right.frequencies(self.n_items)
        self.shared = float(shared) / max(len(X) * len(Y), 1)

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the kernels."""
        found = [self.sums(kernel, "", tile) for kernel in kernels]
        return found[0][None] if len(found) == 1 else np.stack(found)

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives."""
        return {name: self.sums(kernel, name, tile) for name in kernel.params}

    def sums(self, kernel: Kernel, parameter: str, tile: Block) -> FloatArray:
        """Return the sums of a tile: of the kernel, or of its derivative in a parameter."""
        bases, table = self.table(kernel, parameter)
        left, right = self.left.part(tile[0]), self.right.part(tile[1])
        out = np.empty((len(left.base), len(right.base)))
        sides = [side for each in (left, right) for side in (each.base, each.starts, each.items, each.codes)]
        _loops.position_sums.of_listed(*sides, self.n_items, bases, table, out)
        return out

    def table(self, kernel: Kernel, parameter: str) -> tuple[FloatArray, FloatArray]:
        """Return what the largest buckets of two rankings add, and what two kinds of listed items do."""
        key = kernel, parameter
        if key not in self.tables:
            if len(self.tables) >= TABLES:
                self.tables.clear()
            matrix = matrix_of(kernel, self.n_items, parameter)
            own, other = self.left.base_laws @ matrix.sum(axis=1), self.right.base_laws @ matrix.sum(axis=1)
            both = weighed_products(self.left.base_laws, matrix, self.right.base_laws)
            bases = own[:, None] + other[None, :] - self.n_items * both
            self.tables[key] = bases, weighed_products(self.left.left, matrix, self.right.left)
        return self.tables[key]

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time to find the listed items, to make the table, and to look up what is shared."""
        n_codes = len(self.left.left) + len(self.right.left)
        listed = len(self.left.items) + len(self.right.items)
        made = STEP["feature"] * (listed + self.n_items * (n_rows + n_columns) / 8)
        table = STEP["product"] * self.n_items * n_codes * (self.n_items + n_codes)
        return made + table + n_rows * n_columns * (STEP["entry"] + STEP["listed"] * self.shared)


class MarginalEvaluator(FeatureEvaluator):
    """Inner products of the laws of the places of all items, weighed by what two places have in common.

    For partial orders, where every item has a law of its own, and for rankings of very many kinds.
    """

    details = "closed form (laws of places, item by item)"

    def __init__(self, X: Rows, Y: Rows) -> None:
        super().__init__(X, Y, lambda rows: mean_statistics(rows, "positions").reshape(len(rows), -1))

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the kernels."""
        return np.stack([self.products(tile, self.weigh(kernel)) for kernel in kernels])

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives."""
        return {name: self.products(tile, self.weigh(kernel, name)) for name in kernel.params}

    def weigh(self, kernel: Kernel, parameter: str = "") -> Weigh:
        """Return what puts the matrix on places between two laws."""
        n_items = self.X.n_items
        matrix = matrix_of(kernel, n_items, parameter)
        return lambda laws: weighed(laws.reshape(-1, n_items), matrix).reshape(laws.shape)


def place_evaluator(X: Rows, Y: Rows) -> PlaceEvaluator | MarginalEvaluator:
    """Return what computes kernels that add up over items by their places."""
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        return MarginalEvaluator(X, Y)
    left = listed_items(X)
    right = left if Y is X else listed_items(Y)
    if max(len(left.left), len(right.left)) > MOST_CODES:
        return MarginalEvaluator(X, Y)
    return PlaceEvaluator(X, Y, left, right)


def matrix_of(kernel: Kernel, n_items: int, parameter: str) -> FloatArray:
    """Return what two places have in common to a kernel, or its derivative in a parameter."""
    positions = kernel.facts(n_items).positions
    assert positions is not None
    return positions.derivatives[parameter] if parameter else positions.matrix


def weighed(laws: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``laws @ matrix``, each entry summed in one order whatever the other laws are."""
    out = np.empty((len(laws), matrix.shape[1]))
    _loops.products.inner_products(np.ascontiguousarray(laws), np.ascontiguousarray(matrix), out)
    return out


def weighed_products(left: FloatArray, matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``left @ matrix @ right.T``, the same from both sides."""
    one, other = weighed(weighed(left, matrix), right.T), weighed(weighed(right, matrix), left.T)
    return (one + other.T) / 2
