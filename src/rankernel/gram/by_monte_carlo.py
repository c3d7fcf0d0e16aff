"""The Monte Carlo estimator of the paper, for any kernel and any rankings, with its standard error.

Every ranking gets draws of its completions, once; all draws of one are compared with all draws of the other. So the
matrix is that of inner products of empirical embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankernel.completions.draws import Draws, draw
from rankernel.distances import Distance
from rankernel.gram.by_draws import TILE_ENTRIES, Embeddings, block_means
from rankernel.gram.controls import controls
from rankernel.gram.draw_means import DrawMeans
from rankernel.gram.evaluator import Evaluator, FloatArray, Tile
from rankernel.gram.mean_features import FeatureEvaluator
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings, first_and_inverse

__all__ = ["MonteCarloEvaluator"]

COUNTED_TILE = 96
MOST_GROUPS = 64  # enough to tell the spread between them


class MonteCarloEvaluator(Evaluator):
    """The estimator for two sets of rankings; its method has no "auto" left."""

    def __init__(self, method: MonteCarlo, kernel: Kernel, X: Rankings, Y: Rankings) -> None:
        self.method, self.X, self.Y = method, X, Y
        self.description = str(method)
        self.left_draws = self.drawn(kernel, X)
        self.right_draws = self.left_draws if Y is X else self.drawn(kernel, Y)
        self.controls = controls(kernel, X.n_items, int(method.moments)) if method.moments else []
        self.exact_parts = [FeatureEvaluator(X, Y, control.features) for control in self.controls]
        self.counted = self.counts_distances(kernel)
        self.tile_side = COUNTED_TILE if self.counted else max(int(TILE_ENTRIES**0.5) // method.n_draws, 1)

    def drawn(self, kernel: Kernel, X: Rankings) -> Draws:
        """Return the draws of each ranking."""
        method = self.method
        return draw(
            X,
            method.n_draws,
            coupling=method.coupling,
            completions=method.completions,
            seed=method.seed,
            distinct_rows=method.distinct_rows,
            kernel=kernel,
        )

    def counts_distances(self, kernel: Kernel) -> bool:
        """Say whether everything is a function of one distance with few values, and all draws weigh the same."""
        weighted = self.left_draws.weights is not None or self.right_draws.weights is not None
        one = all(control.distance == kernel.argument for control in self.controls)
        return one and not weighted and DrawMeans.serves(kernel.argument, self.X.n_items)

    @cached_property
    def embedded(self) -> tuple[Embeddings, Embeddings]:
        """The draws of both sides as weighted sets of full rankings."""
        left = embeddings(self.left_draws)
        return left, left if self.right_draws is self.left_draws else embeddings(self.right_draws)

    @cached_property
    def packed(self) -> dict[Distance, DrawMeans]:
        """The draws packed for a distance, once it is asked for."""
        return {}

    # ------------------------------------------------------------------ values

    def values(self, kernels: Sequence[Kernel], tile: Tile) -> FloatArray:
        """Return the estimate for each kernel."""
        coefficients = [[control.coefficient(kernel)[0] for control in self.controls] for kernel in kernels]
        if self.counted:
            tables = np.stack([kernel.at_distance(self.distances(kernel), self.X.n_items) for kernel in kernels])
            return self.from_tables(kernels[0], tables, coefficients, tile)
        between = self.between(tile)
        return self.from_matrices([between.kernel(kernel) for kernel in kernels], coefficients, between, tile)

    def gradients(self, kernel: Kernel, tile: Tile) -> dict[str, FloatArray]:
        """Return the derivatives of the estimate, with the same draws."""
        names = list(kernel.params)
        if not names:
            return {}
        coefficients = [[control.coefficient(kernel)[1].get(name, 0.0) for control in self.controls] for name in names]
        if self.counted:
            slopes = kernel.slopes_at_distance(self.distances(kernel), self.X.n_items)
            found = self.from_tables(kernel, np.stack([slopes[name] for name in names]), coefficients, tile)
        else:
            between = self.between(tile)
            matrices = kernel.gradient(between.left.ranks, between.right.ranks)
            found = self.from_matrices([matrices[name] for name in names], coefficients, between, tile)
        return dict(zip(names, found, strict=True))

    def distances(self, kernel: Kernel) -> NDArray[np.int64]:
        """Return all values that the distance of a kernel can have."""
        assert kernel.argument is not None
        return np.arange(int(kernel.argument.maximum(self.X.n_items)) + 1)

    def from_tables(
        self, kernel: Kernel, tables: FloatArray, coefficients: Sequence[Sequence[float]], tile: Tile
    ) -> FloatArray:
        """Return estimates of functions of a distance, given at each of its values."""
        tables = self.less_controls(kernel, tables, coefficients)
        values = self.draw_means(kernel).means(tables, tile)
        if self.method.diagonal == "unbiased":
            groups = self.draw_means(kernel).group_means(tables, tile, self.group_size())
            values = np.stack([self.without_self(v, g, tile) for v, g in zip(values, groups, strict=True)])
        return values + np.stack([self.exact(c, tile) for c in coefficients]) if self.controls else values

    def less_controls(self, kernel: Kernel, tables: FloatArray, coefficients: Sequence[Sequence[float]]) -> FloatArray:
        """Return functions of a distance without the part that has a known mean."""
        d = self.distances(kernel).astype(np.float64)
        if not self.controls:
            return tables
        known = np.stack([control.at_distance(d) for control in self.controls])
        return tables - np.asarray(coefficients) @ known

    def draw_means(self, kernel: Kernel) -> DrawMeans:
        """Return the draws packed for the distance of a kernel."""
        assert kernel.argument is not None
        if kernel.argument not in self.packed:
            self.packed[kernel.argument] = DrawMeans(kernel.argument, self.left_draws.ranks, self.right_draws.ranks)
        return self.packed[kernel.argument]

    def between(self, tile: Tile) -> Between:
        """Return the draws of a tile, to be compared all with all."""
        left, right = self.embedded
        return Between(left.part(tile[0]), right.part(tile[1]))

    def from_matrices(
        self, matrices: list[FloatArray], coefficients: Sequence[Sequence[float]], between: Between, tile: Tile
    ) -> FloatArray:
        """Return estimates from matrices of all draws against all draws."""
        stack = []
        for matrix, own in zip(matrices, coefficients, strict=True):
            rest = matrix - self.controlled(between, own)
            value = block_means(rest, between.left, between.right)
            if self.method.diagonal == "unbiased":
                value = self.without_self(value, self.group_matrix(rest, between, value.shape), tile)
            stack.append(value + self.exact(own, tile))
        return np.stack(stack)

    def controlled(self, between: Between, coefficients: Sequence[float]) -> FloatArray | float:
        """Return the part of the kernel between draws that has a known mean."""
        parts = zip(coefficients, self.controls, strict=True)
        return sum(
            (coefficient * control.at_distance(between.distance(control.distance)) for coefficient, control in parts),
            start=0.0,
        )

    def exact(self, coefficients: Sequence[float], tile: Tile) -> FloatArray:
        """Return the known mean of that part."""
        total = np.zeros((1, 1))
        for coefficient, control, part in zip(coefficients, self.controls, self.exact_parts, strict=True):
            total = total + coefficient * (part.products(tile) + control.offset)
        return total

    # ------------------------------------------------------------------ same draws on both sides

    def same(self, tile: Tile) -> NDArray[np.bool_]:
        """Return which entries have the same draws on both sides."""
        if self.method.distinct_rows:
            rows, columns = np.arange(len(self.X))[tile[0]], np.arange(len(self.Y))[tile[1]]
            return np.asarray(np.equal.outer(rows, columns) & (self.X is self.Y))
        codes = self.identities
        return np.asarray(np.equal.outer(codes[0][tile[0]], codes[1][tile[1]]))

    @cached_property
    def identities(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """A number for each ranking of both sides: equal rankings, which have the same draws, equal numbers."""
        _, codes = first_and_inverse(np.concatenate([self.X.ranks, self.Y.ranks]))
        return codes[: len(self.X)], codes[len(self.X) :]

    def without_self(self, value: FloatArray, groups: FloatArray, tile: Tile) -> FloatArray:
        """Return entries of a ranking with itself from pairs of independent blocks of draws only."""
        n_groups = groups.shape[1]
        if n_groups < 2:
            raise ValueError(
                f"{self.method.n_draws} draws are one block of the coupling {self.method.coupling!r}; an unbiased "
                "diagonal needs at least two independent blocks: use more draws"
            )
        own = np.einsum("igjg->ij", groups)
        unbiased = (groups.sum(axis=(1, 3)) - own) / (n_groups * (n_groups - 1))
        return np.where(self.same(tile), unbiased, value)

    # ------------------------------------------------------------------ error

    def group_size(self) -> int:
        """Return how many draws make a group: a block of coupled draws, or several if there are very many."""
        n_draws, block = self.method.n_draws, min(self.left_draws.block, self.method.n_draws)
        return block * -(-(n_draws // block) // MOST_GROUPS)

    def n_groups(self) -> int:
        """Return into how many independent groups the draws fall."""
        return self.method.n_draws // self.group_size()

    def group_matrix(self, matrix: FloatArray, between: Between, shape: tuple[int, ...]) -> FloatArray:
        """Return the weighted means over pairs of blocks of draws: shape (rows, groups, columns, groups)."""
        n_draws, n_groups, block = self.method.n_draws, self.n_groups(), self.group_size()
        weighted = between.left.weights[:, None] * matrix * between.right.weights
        by_draw = weighted.reshape(shape[0], n_draws, shape[1], n_draws) * n_draws**2
        whole = by_draw[:, : n_groups * block, :, : n_groups * block]
        return np.asarray(whole.reshape(shape[0], n_groups, block, shape[1], n_groups, block).mean(axis=(2, 5)))

    def groups(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the estimate from each pair of blocks of draws, less what is exact."""
        coefficients = [control.coefficient(kernel)[0] for control in self.controls]
        if self.counted:
            table = kernel.at_distance(self.distances(kernel), self.X.n_items)[None]
            table = self.less_controls(kernel, table, [coefficients])
            return np.asarray(self.draw_means(kernel).group_means(table, tile, self.group_size())[0])
        between = self.between(tile)
        matrix = between.kernel(kernel) - self.controlled(between, coefficients)
        value = block_means(matrix, between.left, between.right)
        if self.method.completions.self_normalized:
            # A ratio of means: its error is that of the deviations from the ratio.
            matrix = matrix - np.repeat(np.repeat(value, self.method.n_draws, 0), self.method.n_draws, 1)
        return self.group_matrix(matrix, between, value.shape)

    def errors(self, kernel: Kernel, tile: Tile) -> FloatArray:
        """Return the standard error of each entry, from the spread between independent blocks of draws.

        With G and G' blocks the estimate is a mean over a table of G x G' block means whose rows share draws, and
        whose columns do. Its variance is estimated by that of the row means, of the column means, and of what is left
        (the random effects of a two-way table).
        """
        groups = self.groups(kernel, tile)
        g = groups.shape[1]
        rows, columns = groups.mean(axis=3), groups.mean(axis=1)
        by_row, by_column = rows.var(axis=1, ddof=1), columns.var(axis=2, ddof=1)
        rest = groups - rows[..., None] - columns[:, None] + groups.mean(axis=(1, 3))[:, None, :, None]
        interaction = (rest**2).sum(axis=(1, 3)) / (g - 1) ** 2
        variance = (by_row + by_column) / g - interaction / g**2
        return np.sqrt(np.maximum(np.where(self.same(tile), jackknife(groups), variance), 0.0))


def jackknife(groups: FloatArray) -> FloatArray:
    """Return the variance of the squared length of an embedding, by leaving out one block of its draws at a time.

    Where both sides have the same draws, rows and columns of the table vary together, and its diagonal is special.
    """
    g = groups.shape[1]
    own = np.einsum("igjg->igj", groups)
    without = (groups.sum(axis=(1, 3))[:, None, :] - 2 * groups.sum(axis=3) + own) / (g - 1) ** 2
    return np.asarray((g - 1) * without.var(axis=1))


def embeddings(draws: Draws) -> Embeddings:
    """Return draws as weighted sets of full rankings."""
    n_rankings, n_draws, n_items = draws.ranks.shape
    weights = np.ones((n_rankings, n_draws)) if draws.weights is None else draws.weights
    offsets = np.arange(n_rankings + 1, dtype=np.int64) * n_draws
    return Embeddings(draws.ranks.reshape(-1, n_items).astype(np.int32), weights.ravel() / n_draws, offsets)


class Between:
    """Distances and kernels between two sets of draws, each distance computed once."""

    def __init__(self, left: Embeddings, right: Embeddings) -> None:
        self.left, self.right = left, right
        self.known: dict[Distance, NDArray[np.float64]] = {}

    def distance(self, distance: Distance) -> FloatArray:
        """Return the distances between all draws."""
        if distance not in self.known:
            self.known[distance] = distance.between(self.left.ranks, self.right.ranks).astype(np.float64)
        return self.known[distance]

    def kernel(self, kernel: Kernel) -> FloatArray:
        """Return the kernel between all draws."""
        if kernel.argument is None:
            return kernel.matrix(self.left.ranks, self.right.ranks)
        return kernel.at_distance(self.distance(kernel.argument), self.left.ranks.shape[1])
