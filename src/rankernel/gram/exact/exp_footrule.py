"""The exponential footrule kernel of rankings without free items, by a sweep over positions.

The displacement of a matching is the sum, over the gaps between neighbouring positions, of the number of matched pairs
that straddle the gap. So a sweep that remembers how many positions wait for a partner sums over all matchings in
polynomial time.
"""

from __future__ import annotations

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray
from rankernel.gram.exact.matchings import Block, always_in_blocks, matching_of
from rankernel.gram.exact.overlap import Formula, Overlap, Shape

# About half a second.
MAX_STEPS = 60_000_000

# Where no sum of the sweep comes near the limits of a float.
FAR_FROM_UNDERFLOW = 400.0
FEW_ITEMS = 60


class ExponentialFootrule(Formula):
    r"""Exact :math:`E \exp(-\nu \sum_a |r_a - s_a|)` over the completions of two rankings.

    Covers a full ranking against any ranking without free items, and two rankings with at most one tie each (so two
    top-k lists). All terms are positive and scaled: neither many items nor a large ``nu`` costs digits.

    Examples
    --------
    Three tied items: distances 0, 2, 2, 4, 4, 4 over the six permutations.

    >>> import numpy as np
    >>> tied = Overlap.of(np.zeros(3, np.int32), np.zeros(3, np.int32))
    >>> log_value, slope = ExponentialFootrule().log_value(tied, np.log(2))
    >>> print(round(float(np.exp(log_value)) * 6, 12))  # 1 + 2/4 + 3/16
    1.6875
    """

    name = "footrule sweep"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact value here, at a cost worth paying."""
        return always_in_blocks(left, right) and n_steps(left, right) <= MAX_STEPS

    def seconds(self, left: Shape, right: Shape, width: float) -> float:
        """Return the time of the sweep, about a third of whose states can be reached."""
        return 1e-5 + 6e-9 * n_steps(left, right)

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the logarithm of the kernel and its derivative in nu."""
        matching = matching_of(overlap)
        distance = float(np.abs(matching.left - matching.right).sum())
        value, slope = self.log_rest(overlap, nu)
        return value - nu * distance, slope - distance

    def log_rest(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return the same for the items that are tied on some side."""
        value, slope = 0.0, 0.0
        for block in matching_of(overlap).blocks:
            log_permanent, log_slope = sweep(block, nu)
            value += log_permanent + block.log_share
            slope += log_slope
        return value, slope


def sweep(block: Block, nu: float) -> tuple[float, float]:
    """Return the logarithm of the permanent of a block and its derivative in nu."""
    parts = (block.left_outer, block.right_outer, block.left, block.right)
    positions = np.concatenate(parts)
    kinds = np.repeat(np.arange(4), [len(part) for part in parts])
    order = np.argsort(positions, kind="stable")
    value, slope = _loops.footrule_sweep.log_permanent(positions[order], kinds[order], float(nu))
    return float(value), float(slope)


def one_tie_each(X: IntArray, Y: IntArray, tie: IntArray, tie_Y: IntArray, nu: float) -> FloatArray:
    """Return the logarithm of the mean over all ways to break one tie on each side, and its derivative, pair by pair.

    ``X[k, a]`` is the place of item a, -1 if it is tied; ``tie[k]`` is where the tie begins and ends.
    """
    from scipy.special import gammaln

    n_pairs, n = X.shape
    here = np.zeros((n_pairs, n, 4), dtype=np.bool_)  # is there a position of this kind at this place?
    place = np.arange(n)
    for kind, (own, other, begins_and_ends) in enumerate([(X, Y, tie), (Y, X, tie_Y)]):
        pair, item = np.nonzero((own >= 0) & (other < 0))
        here[pair, own[pair, item], kind] = True  # outer positions
        here[:, :, 2 + kind] = (begins_and_ends[:, :1] <= place) & (place < begins_and_ends[:, 1:])
    totals = here.sum(axis=1)
    starts = np.concatenate([[0], np.cumsum(totals.sum(axis=1))])
    _, positions, kinds = np.nonzero(here)
    found = np.zeros((n_pairs, 2))
    if nu * n * n < FAR_FROM_UNDERFLOW and n <= FEW_ITEMS:
        left_outer, right_outer, left, _ = totals.max(axis=0, initial=0)
        states = np.empty((4, left_outer + 2, right_outer + 2, left + 2))
        _loops.footrule_sweep.log_permanents_of_few(
            positions, kinds, starts, totals, nu, *states, np.empty(2 * n + 1), found
        )
    else:
        for k in np.flatnonzero(np.diff(starts)).tolist():
            part = slice(starts[k], starts[k + 1])
            found[k] = _loops.footrule_sweep.log_permanent(positions[part], kinds[part], nu)
    _, right_outer, left, right = totals.T
    found[:, 0] += gammaln(left - right_outer + 1) - gammaln(left + 1) - gammaln(right + 1)  # shared items are alike
    return found


def n_steps(left: Shape, right: Shape) -> int:
    """Return a bound on the number of states that the sweep visits."""
    tied, tied_too = max(left.sizes, default=0), max(right.sizes, default=0)
    n_items = left.n_items
    if left.is_full or right.is_full:
        return 2 * n_items * max(tied, tied_too)
    outer, outer_too = min(n_items - tied, tied_too), min(n_items - tied_too, tied)
    return 2 * n_items * (outer + 1) * (outer_too + 1) * min(tied, tied_too)
