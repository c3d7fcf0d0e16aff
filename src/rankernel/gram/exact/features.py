"""Linear and positional kernels: averaging over completions averages the statistics that they are linear in.

Exact for any two rankings, free items included, and for partial orders. A positional kernel is ``K(R, R') = sum_i
<u(i), u'(i)>`` with u(i) the mean over completions of the root of its position matrix at the position of item i. Most
items of a short list share one bucket, the largest, and one u. Subtracting it from all items leaves few items to sum
over, and its own contribution needs no sum: every position is taken once, so the u(i) of a ranking add up to the sum
t over all positions, and ``K(R, R') = <u, t> + <u', t> - n <u, u'>`` plus the sum over the items listed by both of
the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, sqrt
from typing import Any, cast

import numpy as np

from rankernel import _loops
from rankernel._loops.compiled import compiled_strictly
from rankernel._utils import FloatArray, Indices, IntArray
from rankernel._utils.resources import slices
from rankernel.completions.marginals import (
    pair_product_features,
    position_distributions,
    rank_products,
    statistic_means,
    statistic_parts,
)
from rankernel.distances import Distance, LinearForm, Statistic, uniform_mean
from rankernel.gram.evaluator import (
    BLOCK_NUMBERS,
    CACHED_NUMBERS,
    STEP,
    Block,
    Evaluator,
    Names,
    Part,
    block_shape,
    range_indices,
)
from rankernel.gram.rows import PartialOrders, Rows
from rankernel.kernels.base import Kernel, inner_products
from rankernel.kernels.kendall import WeightedKendall
from rankernel.rankings import Rankings, ranks_for_loops

MAX_DEGREE = {"pairs": 2, "ranks": 2, "positions": 1}  # of the known moments of each statistic

Features = Callable[[Rows], FloatArray]
Transform = Callable[[FloatArray], FloatArray]


def same(statistics: FloatArray) -> FloatArray:
    """Return statistics unchanged."""
    return statistics


def linear_evaluator(kernel: Kernel, X: Rows, Y: Rows, max_down_sets: int | None = None) -> Evaluator | None:
    """Return the evaluator of a kernel that is linear in a statistic with known means; None if it is not.

    An :class:`ExactnessError` is raised for partial orders with too many down-sets.
    """
    form = kernel.facts(X.n_items).form
    if isinstance(X, Rankings) and isinstance(Y, Rankings):
        if isinstance(kernel, WeightedKendall) and X.is_exhaustive() and Y.is_exhaustive():
            return WeightedKendallEvaluator(kernel, X, Y)
        if form is not None and form.statistic == "positions" and not form.mixes_items:
            left = listed_items(X)
            right = left if Y is X else listed_items(Y)
            if left is not None and right is not None:
                return PositionalEvaluator(X, Y, left, right)
    features = mean_features(kernel, X.n_items, isinstance(X, Rankings) and isinstance(Y, Rankings))
    if features is None:
        return None
    for side in (X, Y):
        if isinstance(side, PartialOrders):
            side.prepare(max_down_sets)
    if form is None:
        return LinearEvaluator(X, Y, features[0], constant=features[1])
    return LinearEvaluator(X, Y, lambda rows: mean_statistics(rows, form.statistic), form)


# ---------------------------------------------------------------------- linear kernels


class LinearEvaluator(Evaluator):
    """The form of a kernel in the mean statistics of two sets of rankings.

    Without a form, the statistics are features, and the kernel is their inner product plus a constant.
    """

    details = "closed form"

    def __init__(
        self, X: Rows, Y: Rows, statistics: Features, form: LinearForm | None = None, constant: float = 0.0
    ) -> None:
        self.X, self.Y, self.statistics, self.form, self.constant = X, Y, statistics, form, constant
        one = statistics(X[:1])
        self.n_numbers = max(int(np.prod(one.shape[1:])), 1)
        self.is_cached = max(len(X), len(Y)) * self.n_numbers <= CACHED_NUMBERS
        self.in_parts = (
            not self.is_cached
            and form is not None
            and not form.mixes_items
            and form.statistic != "ranks"
            and isinstance(X, Rankings)
            and isinstance(Y, Rankings)
        )
        if self.in_parts and one.ndim == 3:
            n_buckets = max(int(side.n_buckets.max(initial=0)) for side in (X, Y) if isinstance(side, Rankings))
            self.block_side = min(max(CACHED_NUMBERS // 2 // ((n_buckets + 1) * X.n_items), 16), self.block_side)
        elif not self.is_cached and not self.in_parts:
            self.block_side = min(max(CACHED_NUMBERS // 2 // self.n_numbers, 1), self.block_side)

    @cached_property
    def all_statistics(self) -> tuple[FloatArray, FloatArray]:
        """The statistics of rows and columns, computed for some rankings at a time."""
        result = []
        for side in (self.X,) if self.Y is self.X else (self.X, self.Y):
            parts = slices(len(side), max(BLOCK_NUMBERS // self.n_numbers, 1))
            result.append(np.concatenate([self.statistics(side[rows]) for rows in parts]))
        return result[0], result[-1]

    def parts(self, block: Block) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the statistics of the rows and of the columns of a block, all at once or some pairs or items a time."""
        center = None if self.form is None else self.form.center
        if self.in_parts:
            assert self.form is not None
            of_one = self.X.n_items if self.form.statistic == "positions" else 1
            step = max(BLOCK_NUMBERS // (of_one * self.block_side), 1)
            sides = cast("tuple[Rankings, Rankings]", (self.X[block[0]], self.Y[block[1]]))
            parts = (statistic_parts(side, self.form.statistic, step) for side in sides)
            for (part, left), (_, right) in zip(*parts, strict=True):
                yield (left, right) if center is None else (left - center[part], right - center[part])
            return
        if self.is_cached:
            left, right = (every[rows] for every, rows in zip(self.all_statistics, block, strict=True))
        else:
            left, right = self.statistics(self.X[block[0]]), self.statistics(self.Y[block[1]])
        yield (left, right) if center is None else (left - center, right - center)

    def products(self, block: Block, transforms: Sequence[tuple[Transform, Transform]]) -> FloatArray:
        """Return the inner products of a block, after transformations of the statistics of rows and columns."""
        out = np.zeros((len(transforms), *block_shape((len(self.X), len(self.Y)), block)))
        for left, right in self.parts(block):
            for matrix, (of_rows, of_columns) in zip(out, transforms, strict=True):
                rows, columns = of_rows(left).reshape(len(left), -1), of_columns(right).reshape(len(right), -1)
                inner_products(rows, columns.T, matrix)
        return out

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the kernel, or its derivatives; a kernel without a form has no parameters."""
        form = kernel.facts(self.X.n_items).form
        if form is None:
            return list(self.products(block, [(same, same)]) + self.constant)
        # The root may be a large matrix.
        factors = (same, form.multiply) if form.statistic == "positions" and not form.mixes_items else (form.root,) * 2
        return list(self.products(block, [(same, form.derivatives[name]) if name else factors for name in names]))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time to compute the statistics, to transform them, and to multiply them."""
        n_rankings = n_rows + n_columns
        if not self.is_cached:
            n_rankings = n_rows * -(-n_columns // self.block_side) + n_columns * -(-n_rows // self.block_side)
        statistics = STEP[self.form.statistic if self.form else "pair products"] * n_rankings * self.n_numbers
        if self.form is not None and self.form.mixes_items:
            n_transformed = n_columns * -(-n_rows // self.block_side)
            statistics += 2 * STEP["product"] * n_transformed * self.n_numbers * self.X.n_items
        return statistics + n_rows * n_columns * (STEP["entry"] + STEP["product"] * self.n_numbers)


def mean_statistics(X: Rows, statistic: Statistic, n_draws: int = 0) -> FloatArray:
    """Return the mean of a statistic over the completions of each row.

    For partial orders that are too large for exact means it is the mean over ``n_draws`` draws, or an error if that is
    0.
    """
    return X.seen_means(statistic, n_draws) if isinstance(X, PartialOrders) else statistic_means(X, statistic)


def mean_features(kernel: Kernel, n_items: int, rankings_only: bool) -> tuple[Features, float] | None:
    """Return the mean features of a kernel that is their inner product plus a constant; None if it is not.

    Products of pairs of items have known means for rankings only, and are used for few items only.
    """
    facts = kernel.facts(n_items)
    form = facts.form
    if form is not None:
        return lambda X: form.features(mean_statistics(X, form.statistic)), 0.0
    series, distance = facts.series(n_items), facts.distance
    if series is None or series.constant is None or distance is None or distance.form is None:
        return None
    if len(series.coefficients) > MAX_DEGREE[distance.form.statistic]:
        return None
    if len(series.coefficients) > 1 and (not rankings_only or comb(n_items, 2) ** 2 > BLOCK_NUMBERS):
        return None

    def features(X: Rows) -> FloatArray:
        columns = [
            sqrt(coefficient) * centred_products(distance, X, degree)
            for degree, coefficient in enumerate(series.coefficients, 1)
            if coefficient
        ]
        return np.hstack(columns)

    return features, series.constant


def centred_products(distance: Distance, X: Rows, degree: int) -> FloatArray:
    """Return vectors whose inner product is the mean of ``z^degree``, z the centred form of a distance."""
    form = distance.form
    assert form is not None
    if degree == 1:
        mean = uniform_mean(form.statistic, X.n_items) if form.statistic == "positions" else 0.0
        return form.root(mean_statistics(X, form.statistic) - mean).reshape(len(X), -1)
    assert not isinstance(X, PartialOrders)
    products = pair_product_features(X) if form.statistic == "pairs" else rank_products(X).reshape(len(X), -1)
    return form.multiply(products)


class WeightedKendallEvaluator(Evaluator):
    """The weighted Kendall kernel of rankings without free items: inner products of the mean weights of two items.

    The mean weight of an item before another one is the sum or the product of the mean weights u of their buckets. Two
    tied items have a mean weight in either order, half the mean over all two positions in the bucket.
    """

    details = "closed form"

    def __init__(self, kernel: WeightedKendall, X: Rankings, Y: Rankings) -> None:
        self.kernel, self.X, self.Y = kernel, X, Y
        self.order, self.sizes = np.argsort(X.ranks, axis=1, kind="stable"), Y.bucket_sizes()
        self.left = self.mean_weights(X)
        self.right = self.left if Y is X else self.mean_weights(Y)

    def mean_weights(self, X: Rankings) -> tuple[FloatArray, FloatArray]:
        """Return the mean weight of the positions of each bucket, and the mean weight of two tied items."""
        sizes, weights = X.bucket_sizes(), self.kernel.position_weights(X.n_items)
        row, bucket = np.nonzero(sizes)
        size = sizes[row, bucket]
        starts = row * X.n_items + (np.cumsum(sizes, axis=1) - sizes)[row, bucket]
        sums, squares = (np.add.reduceat(np.tile(values, len(X)), starts) for values in (weights, weights**2))
        is_sum = self.kernel.combine == "additive"
        tied = sums / size if is_sum else (sums**2 - squares) / np.maximum(2 * size * (size - 1), 1)
        result = np.zeros((2, *sizes.shape))
        result[:, row, bucket] = sums / size, np.where(size > 1, tied, 0.0)
        return result[0], result[1]

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the kernel, which has no parameters."""
        rows, columns = block
        out = np.empty(block_shape((len(self.X), len(self.Y)), block))
        ranks = ranks_for_loops(self.X.ranks[rows]), ranks_for_loops(self.Y.ranks[columns])
        sides = self.order[rows], *ranks, np.ascontiguousarray(self.sizes[columns])
        weights = self.left[0][rows], self.left[1][rows], self.right[0][columns], self.right[1][columns]
        _loops.pairs.weighted_concordance(*sides, *weights, self.kernel.combine == "additive", out)
        return [out for _ in names]

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time to count items by their buckets, and for all pairs of buckets that share items."""
        n_rows_buckets, n_columns_buckets = (float(side.n_buckets.mean()) for side in (self.X, self.Y))
        outside = float((self.X.n_items - self.X.bucket_sizes().max(axis=1)).mean())  # of the largest bucket
        n_shared = min(n_rows_buckets * n_columns_buckets, outside + n_columns_buckets, self.X.n_items)
        step = STEP["listed"] * (outside + n_columns_buckets) + STEP["concordance"] * n_shared**2 / 2
        return n_rows * n_columns * (STEP["entry"] + step)


# ---------------------------------------------------------------------- positional kernels


@dataclass(frozen=True, eq=False)
class ListedItems:
    """The items outside the largest bucket of each ranking, in ascending order, ranking by ranking."""

    starts: IntArray  # index of the first item of each ranking
    items: IntArray
    codes: IntArray  # the kind of each item: its bucket and the largest bucket
    differences: FloatArray  # by kind: the distribution of the position minus that of the largest bucket
    base: Indices  # by ranking: index of the distribution of the largest bucket
    base_pmfs: FloatArray  # these distributions

    def part(self, rows: Part) -> ListedItems:
        """Return some of the rankings."""
        sizes = np.diff(self.starts)[rows]
        entries = range_indices(self.starts[:-1][rows], sizes)
        return replace(
            self,
            starts=np.append(0, np.cumsum(sizes)),
            items=self.items[entries],
            codes=self.codes[entries],
            base=self.base[rows],
        )


def listed_items(X: Rankings) -> ListedItems | None:
    """Return the items of each ranking that are not in its largest bucket; None if they are of very many kinds."""
    result = position_distributions(X)
    n_shapes, n_buckets = result.sizes.shape
    largest = n_buckets - 1 - np.argmax(result.sizes[:, ::-1], axis=1)
    bases, base_of_shape = np.unique(result.pmf_of[np.arange(n_shapes), largest], return_inverse=True)
    pairs = result.pmf_of * len(bases) + base_of_shape.reshape(-1, 1)
    others = (result.sizes > 0) & (np.arange(n_buckets) != largest[:, None])
    kinds, inverse = np.unique(pairs[others], return_inverse=True)
    if len(kinds) ** 2 > BLOCK_NUMBERS:
        return None
    code_of = np.full(result.sizes.shape, -1, dtype=np.intp)
    code_of[others] = inverse.ravel()
    return ListedItems(
        *result.items_with(X, code_of),
        result.pmfs[kinds // len(bases)] - result.pmfs[bases[kinds % len(bases)]],
        base_of_shape.ravel()[result.shape_of],
        result.pmfs[bases],
    )


class PositionalEvaluator(Evaluator):
    """Positional kernels as sums over the items that two rankings both list."""

    details = "closed form"

    def __init__(self, X: Rankings, Y: Rankings, left: ListedItems, right: ListedItems) -> None:
        self.n_items, self.left, self.right = X.n_items, left, right
        self.cached_tables: dict[tuple[Kernel, str], tuple[FloatArray, FloatArray, Any]] = {}
        frequencies = (np.bincount(side.items, minlength=X.n_items) for side in (left, right))
        self.mean_shared = float(np.multiply(*frequencies).sum()) / max(len(X) * len(Y), 1)

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the kernel, or its derivatives."""
        left, right = (
            (part.base, part.starts, part.items, part.codes)
            for part in (self.left.part(block[0]), self.right.part(block[1]))
        )
        out = np.empty((len(names), len(left[0]), len(right[0])))
        for name, matrix in zip(names, out, strict=True):
            bases, table, (row_terms, column_terms) = self.tables(kernel, name)
            sum_listed(*left, *right, self.n_items, bases, table, matrix)
            if row_terms is not None:
                matrix -= row_terms[block[0]][:, None]
                matrix -= column_terms[block[1]]
        return list(out)

    def tables(self, kernel: Kernel, parameter: str) -> tuple[FloatArray, FloatArray, Any]:
        """Return the contributions of the largest buckets of two rankings, of two kinds of listed items, and of rows.

        The last are, for a form around a center c, ``f(R, c) - f(c, c) / 2`` for rows and columns.
        """
        key = kernel, parameter
        found = self.cached_tables.get(key)
        if found is None:
            form = kernel.facts(self.n_items).form
            assert form is not None
            multiply = form.derivatives[parameter] if parameter else form.multiply
            row_sums = multiply(np.ones((1, self.n_items)))[0]
            left, right = self.left.base_pmfs @ row_sums, self.right.base_pmfs @ row_sums
            both = bilinear(self.left.base_pmfs, multiply, self.right.base_pmfs)
            bases = left[:, None] + right[None, :] - self.n_items * both
            terms = [None, None] if form.center is None else self.center_terms(form.center, multiply, row_sums)
            found = bases, bilinear(self.left.differences, multiply, self.right.differences), terms
            if any(kernel != cached for cached, _ in list(self.cached_tables)):  # threads may add to it meanwhile
                self.cached_tables.clear()
            self.cached_tables[key] = found
        return found

    def center_terms(self, center: FloatArray, multiply: Transform, row_sums: FloatArray) -> list[FloatArray]:
        """Return ``f(R, c) - f(c, c) / 2`` for all rows and columns R, from the permutation matrix of c."""
        parts = slices(self.n_items, max(BLOCK_NUMBERS // self.n_items, 1))
        norm = sum(float((center[part] * multiply(center[part])).sum()) for part in parts)
        position, result = center.argmax(axis=1), []
        for side in (self.left, self.right):
            rows = np.repeat(np.arange(len(side.base)), np.diff(side.starts))
            listed = multiply(side.differences)[side.codes, position[side.items]]
            of_base = (side.base_pmfs @ row_sums)[side.base]
            result.append(of_base + np.bincount(rows, listed, len(side.base)) - norm / 2)
        return result

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time to find the listed items, to compute the table, and to look up shared items."""
        n_codes = len(self.left.differences) + len(self.right.differences)
        n_listed = len(self.left.items) + len(self.right.items)
        features = STEP["feature"] * (n_listed + self.n_items * (n_rows + n_columns) / 8)
        table = STEP["product"] * self.n_items * n_codes * (self.n_items + n_codes)
        return features + table + n_rows * n_columns * (STEP["entry"] + STEP["listed"] * self.mean_shared)


def bilinear(left: FloatArray, multiply: Transform, right: FloatArray) -> FloatArray:
    """Return ``left @ matrix @ right.T``, with the same rounding if left and right are exchanged."""
    one, other = inner_products(multiply(left), right.T), inner_products(multiply(right), left.T)
    return (one + other.T) / 2


@compiled_strictly
def sum_listed(
    base, starts, items, codes, other_base, other_starts, other_items, other_codes, n_items, bases, table, out
):
    """Write ``bases[base, other base]`` plus ``table[code, other code]`` for every item that both rankings list.

    Row i lists ``items[starts[i]:starts[i + 1]]``, in ascending order, each with a code; columns likewise.
    """
    first = np.zeros(n_items + 2, np.int64)  # of the columns that list an item
    for e in range(len(other_items)):
        first[other_items[e] + 2] += 1
    for a in range(n_items):
        first[a + 2] += first[a + 1]
    columns = np.empty(len(other_items), np.int64)
    column_codes = np.empty(len(other_items), np.int64)
    for j in range(len(other_starts) - 1):
        for e in range(other_starts[j], other_starts[j + 1]):
            index = first[other_items[e] + 1]
            columns[index] = j
            column_codes[index] = other_codes[e]
            first[other_items[e] + 1] += 1
    for i in range(len(starts) - 1):
        for j in range(len(other_base)):
            out[i, j] = bases[base[i], other_base[j]]
        for e in range(starts[i], starts[i + 1]):
            for f in range(first[items[e]], first[items[e] + 1]):
                out[i, columns[f]] += table[codes[e], column_codes[f]]
