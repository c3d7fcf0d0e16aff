"""Gram matrices of which some blocks are computed in one way and others in another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel.errors import IndefiniteKernelWarning, SamplingWarning, warn
from rankernel.gram.evaluator import Block, BlockEstimate, Evaluator, lengths
from rankernel.gram.exact.choice import closed_form, enumerated
from rankernel.gram.methods import Exact, MonteCarlo
from rankernel.gram.montecarlo.sampled import SampledEvaluator
from rankernel.gram.poset_rows import PartialOrders, Rows
from rankernel.kernels.base import Kernel


class HybridEvaluator(Evaluator):
    """Rows and columns in groups, each pair of which has an evaluator of its own.

    ``blocks`` holds pairs of (number of a group of rows, of a group of columns) and their evaluators.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        rows: Sequence[Indices],
        columns: Sequence[Indices],
        blocks: dict[tuple[int, int], Evaluator],
    ) -> None:
        self.shape, self.blocks = shape, blocks
        self.groups = [group_places(side, n) for side, n in zip((rows, columns), shape, strict=True)]
        self.details = "; ".join(dict.fromkeys(block.details for block in blocks.values()))
        self.block_side = min((block.block_side for block in blocks.values()), default=1)
        self.sizes = {(i, j): (len(rows[i]), len(columns[j])) for i, j in blocks}

    @property
    def estimator(self) -> MonteCarlo | None:
        """What the blocks that are not exact are estimated by, if there are any."""
        return next((block.method for block in self.blocks.values() if isinstance(block, SampledEvaluator)), None)

    def patches(self, tile: Block) -> list[tuple[Evaluator, Any, Block]]:
        """Return for each block that a tile meets its evaluator, where it lies in the tile, and which part it is."""
        found: list[tuple[Evaluator, Any, Block]] = []
        chosen = [(group[part], place[part]) for (group, place), part in zip(self.groups, tile, strict=True)]
        for (i, j), block in self.blocks.items():
            inside = [np.flatnonzero(group == number) for (group, _), number in zip(chosen, (i, j), strict=True)]
            if len(inside[0]) and len(inside[1]):
                own = chosen[0][1][inside[0]], chosen[1][1][inside[1]]
                found.append((block, np.ix_(*inside), own))
        return found

    def assembled(self, tile: Block, compute: Callable[[Evaluator, Block], FloatArray]) -> FloatArray:
        """Return a tile put together from its patches: the last two axes are rows and columns."""
        out: FloatArray | None = None
        for block, place, own in self.patches(tile):
            value = compute(block, own)
            if out is None:
                out = np.zeros((*value.shape[:-2], *lengths(self.shape, tile)), dtype=value.dtype)
            out[(..., *place)] = value
        return np.zeros(lengths(self.shape, tile)) if out is None else out

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the tile, patch by patch."""
        found = self.assembled(tile, lambda block, own: block.values(kernels, own))
        return found.reshape(len(kernels), *lengths(self.shape, tile))

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives, patch by patch."""
        found = self.assembled(tile, lambda block, own: in_order(block.gradients(kernel, own), kernel))
        return dict(zip(kernel.params, found, strict=True))

    def estimate_block(self, kernel: Kernel, tile: Block) -> BlockEstimate:
        """Return the tile with its errors, patch by patch."""
        found = [(block.estimate_block(kernel, own), place) for block, place, own in self.patches(tile)]
        shape = lengths(self.shape, tile)
        whole = BlockEstimate(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool))
        for part, place in found:
            whole.value[place], whole.error[place], whole.unreliable[place] = part.value, part.error, part.unreliable
        return whole

    def gradient_estimates(self, kernel: Kernel, tile: Block) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the derivatives and their errors, patch by patch."""
        both = self.assembled(tile, lambda block, own: in_order(block.gradient_estimates(kernel, own), kernel))
        return {name: (pair[0], pair[1]) for name, pair in zip(kernel.params, both, strict=True)}

    def is_accurate(self, kernel: Kernel) -> bool:
        """Say whether all blocks are."""
        return all(block.is_accurate(kernel) for block in self.blocks.values())

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all blocks."""
        return sum(block.seconds(*self.sizes[place]) for place, block in self.blocks.items())


def in_order(found: dict[str, Any], kernel: Kernel) -> FloatArray:
    """Return what was found for each parameter of a kernel as one array."""
    return np.array([found[name] for name in kernel.params])


def group_places(groups: Sequence[Indices], length: int) -> tuple[Indices, Indices]:
    """Return for each ranking the number of its group, and its place in it."""
    group, place = np.empty(length, dtype=np.intp), np.empty(length, dtype=np.intp)
    for number, members in enumerate(groups):
        group[members], place[members] = number, np.arange(len(members))
    return group, place


# ---------------------------------------------------------------------- which block in which way


def mixed(X: Rows, Y: Rows, best: Callable[[Rows, Rows], Evaluator]) -> Evaluator:
    """Return rankings with and without free items apart, each of the four blocks by the best evaluator it has."""
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        raise ValueError("method='mixed' is for rankings; for partial orders use 'auto', 'exact' or MonteCarlo(...)")
    sides = [[np.flatnonzero(side.n_free == 0), np.flatnonzero(side.n_free > 0)] for side in (X, Y)]
    blocks = {
        (i, j): best(X[sides[0][i]], Y[sides[1][j]])
        for i, j in product(range(2), range(2))
        if len(sides[0][i]) and len(sides[1][j])
    }
    if len({isinstance(block, SampledEvaluator) for block in blocks.values()}) > 1:
        warn(
            "exact and estimated entries are mixed, so the matrix may have negative eigenvalues; "
            "method='auto' uses one estimator for all",
            IndefiniteKernelWarning,
        )
    return HybridEvaluator((len(X), len(Y)), sides[0], sides[1], blocks)


def by_row(kernel: Kernel, Z: Rows, X: Rows, method: Exact, fallback: MonteCarlo | None) -> Evaluator:
    """Return exact values for the new rows that have them, estimates for the others: each row decides for itself."""
    whole = closed_form(kernel, Z, X, certain=True)
    if isinstance(whole, Evaluator):
        return whole
    assert fallback is not None
    limit = method.limit
    known: dict[Any, int] = {}
    kind = np.array([kind_of_row(kernel, Z[row : row + 1], X, limit, known) for row in range(len(Z))])
    groups = [np.flatnonzero(kind == number) for number in range(3)]
    if len(groups[2]):
        warn(
            f"{len(groups[2])} of {len(Z)} new rankings have no exact value with the old ones, and are estimated: "
            f"{fallback}; for one method throughout, give method=MonteCarlo(...)",
            SamplingWarning,
        )
    blocks: dict[tuple[int, int], Evaluator] = {}
    for number, group in enumerate(groups):
        if len(group):
            some = Z[group]
            found = (
                closed_form(kernel, some, X, certain=True)
                if number == 0
                else enumerated(kernel, some, X, limit * len(group))
                if number == 1
                else SampledEvaluator(fallback, kernel, some, X)
            )
            assert isinstance(found, Evaluator)
            blocks[number, 0] = found
    return HybridEvaluator((len(Z), len(X)), groups, [np.arange(len(X))], blocks)


def kind_of_row(kernel: Kernel, row: Rows, X: Rows, limit: int, known: dict[Any, int]) -> int:
    """Return whether a row has a closed form (0), few completions (1) or neither (2)."""
    key = None if isinstance(row, PartialOrders) else (tuple(row.bucket_sizes()[0].tolist()), int(row.n_free[0]))
    if key is None or key not in known:
        if isinstance(closed_form(kernel, row, X, certain=True), Evaluator):
            found = 0
        else:
            found = 1 if isinstance(enumerated(kernel, row, X, limit), Evaluator) else 2
        if key is None:
            return found
        known[key] = found
    return known[key]
