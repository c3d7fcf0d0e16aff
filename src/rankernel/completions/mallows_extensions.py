"""The Mallows model on linear extensions: those near a center weigh more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel import _loops
from rankernel._utils.arrays import Indices, Mask
from rankernel._utils.q_factorials import log_q_factorial, mean_inversions
from rankernel.completions.decomposition import in_series
from rankernel.completions.down_sets import MAX_DOWN_SETS, DownSets
from rankernel.completions.keys import FullRanks
from rankernel.completions.relations import check_relation
from rankernel.errors import ExactnessError, RankingError


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
