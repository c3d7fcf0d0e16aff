"""How sure an estimate is: from the spread of its draws to an error bar that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from rankernel._utils.arrays import FloatArray, Mask

TINY = 1e-200  # what is divided by where one block has all the weight: the deviations are 0 then
FEWEST_BLOCKS = 32  # below, the spread between blocks of draws says too little: independent repetitions are added
FEWEST_OWN_BLOCKS = 128  # where both sides have the same draws: value and variance of one set are small together
BLOCKS_FOR_EACH = 4  # that an error bar may be as narrow as if there were, for each block of one set of draws
FEWEST_OF_ONE = 4  # blocks of one set of draws; below, only whole repetitions tell how it varies
REPETITIONS = 16  # of these
OWN_REPETITIONS = 32  # where pairs of them are those of a ranking with itself
OF_FEW_DRAWS = 64  # the same of so few draws that it costs little
FEW_DRAWS = 8
# A variance that is found as a difference counts at least this part of what it would be if all pairs were independent:
# the full part would make bars too wide where the difference is often small, as that of products of two means is.
LEAST = 0.4
LEAST_OF_OWN = 0.7  # of pairs of one set of draws, whose mean and variance are small together
LEAST_BETWEEN = 0.9  # of pairs of repetitions, which are more: that part is known well
COVERED = 0.96  # of all intervals of two error bars, however few blocks the spread was measured from
# How many numbers have to carry the spread of so many: an estimate that rests on fewer may miss what was not drawn. Of
# normal ones a third does; but pairs of blocks of draws hang together, so that fewer of them may be expected.
FEWEST_CARRYING = {1: 3.0, 64: 4.0, 256: 8.0, 1024: 16.0}


# Values are uneven if fewer than this part of the pairs would do to make their sum, all of them as large as they come.
EVEN = 0.25
FEWEST_HITS = 16.0  # independent pairs that make the sum of uneven values; fewer may be chance
# A value that none of n independent pairs has is one of fewer than 3/n of all pairs, in 95 cases of 100 (the rule of
# three); two error bars have to reach it.
MISSED = 1.5
PSEUDO = MISSED**2


def n_repetitions(n_blocks: int, n_replicates: int) -> int:
    """Return how many repetitions of all draws tell how an estimate varies, which is of so many blocks."""
    if n_blocks < FEWEST_OF_ONE:
        return REPETITIONS
    return 0 if n_blocks * n_replicates >= FEWEST_BLOCKS else -(-FEWEST_BLOCKS // n_blocks)


def n_own_repetitions(n_blocks: int, n_replicates: int, n_draws: int) -> int:
    """Return the same for a ranking with itself, without the bias."""
    if n_blocks < FEWEST_OF_ONE:
        return OF_FEW_DRAWS if n_draws <= FEW_DRAWS else OWN_REPETITIONS
    return max(-(-FEWEST_OWN_BLOCKS // n_blocks) - n_replicates, n_repetitions(n_blocks, n_replicates))


def error_bars(found: Spread, least: FloatArray, factor: FloatArray, missed: FloatArray) -> FloatArray:
    """Return the root mean square distance from the truth, its random part widened by a factor."""
    variance = np.maximum(found.variance, least * found.least_variance)
    return np.asarray(np.sqrt(variance * factor**2 + found.bias**2 + missed**2))


def unseen(found: Spread, few: Mask, n_pairs: FloatArray, n_different: FloatArray, new: FloatArray) -> FloatArray:
    """Return what part of the largest value an estimate may have missed: more than nothing where few pairs carry it.

    Where values are even, what was not drawn is like what was, and where many pairs make their sum, what is rare was
    seen. Elsewhere, and where ``few`` carry the spread, the largest values may not be among the pairs of draws: of
    ``n_different`` pairs, or of pairs of which a draw would be ``new``.
    """
    even = np.zeros(found.sizes.shape)
    np.divide(found.sizes**2, found.size_squares * n_pairs, out=even, where=found.size_squares > 0)
    few = few | (even * n_different < FEWEST_HITS * new)
    return np.where(few & (even < EVEN), MISSED * new / n_different, 0.0)


def of_few_hits(found: Spread, n_pairs: FloatArray, n_runs: FloatArray, n_replicates: int) -> FloatArray:
    """Return by how much an error bar is widened because values are rare, so that sum and spread are small together.

    If h values of about the same size come by chance, and all others are nothing, their sum has a variance of 1/h times
    its square, and where fewer came than should have, both are too small: the variance is taken for that of one more.
    Such values may come from few draws on each side, 1/h being 2 over the root of how many pairs there are; it is not
    more where the spread is that of parts with a known mean. Where most of the spread was seen in other draws than
    those of the sum, it is not small with it.
    """
    mean = found.sizes / n_pairs
    relative = np.divide(np.sqrt(np.maximum(found.variance, 0.0)), mean, out=np.zeros(mean.shape), where=mean > 0) ** 2
    few = np.zeros(mean.shape)
    np.divide(2 * np.sqrt(found.size_squares * n_runs), found.sizes * n_replicates, out=few, where=found.sizes > 0)
    return np.asarray(np.sqrt(1 + np.minimum(relative, few) * n_replicates / n_runs))


def widening(n_blocks: FloatArray) -> FloatArray:
    """Return by how much a standard error from few blocks is widened so that two of it cover what they should."""
    from scipy.special import stdtrit

    return np.asarray(np.maximum(stdtrit(np.maximum(n_blocks - 1, 1.0), (1 + COVERED) / 2) / 2, 1.0))


@dataclass(frozen=True, eq=False)
class Spread:
    """How the draws of a tile spread: the variance of each entry, its bias, and sums of powers of the deviations."""

    value: FloatArray
    variance: FloatArray
    bias: FloatArray
    unbiased_variance: FloatArray  # that of the value less its bias
    least_variance: FloatArray  # what either is at least, whatever the differences are that they were found by
    squares: FloatArray
    fourths: FloatArray
    sizes: FloatArray  # of single values: the sum of their absolute values
    size_squares: FloatArray  # and of the squares of these

    @property
    def numbers(self) -> FloatArray:
        """All of it in one array."""
        return np.array([getattr(self, field.name) for field in fields(self)])

    def without_bias(self) -> Spread:
        """Return the spread of the values less their bias."""
        value, variance = self.value - self.bias, self.unbiased_variance
        return replace(self, value=value, variance=variance, bias=np.zeros_like(self.bias))


def together(spreads: Sequence[Spread]) -> Spread:
    """Return the spread of the mean of independent estimates."""
    n = len(spreads)
    if n == 1:
        return spreads[0]
    value, variance, bias, unbiased, least, *sums = np.sum([spread.numbers for spread in spreads], axis=0)
    return Spread(value / n, variance / n**2, bias / n, unbiased / n**2, least / n**2, *sums)


def own_spread(blocks: FloatArray, shares: FloatArray, n_alike: int, sizes: FloatArray) -> Spread:
    """Return how the mean over pairs of blocks of draws spreads where both sides have the same draws.

    ``blocks[p, g, h]`` is what blocks g and h, at least two, add to mean p, and ``shares[p]`` are their shares in the
    draws. The blocks with themselves make the bias. What is left of the others has no rows and columns, but pairs,
    each h = m + a_g + a_h + e: the variance of their mean is that of the a, and that of the e, which the means of rows
    contain twice.
    """
    n = blocks.shape[1]
    own, total = np.einsum("pgg->pg", blocks), blocks.sum(axis=(1, 2))
    alone, pairs = np.maximum(1 - shares, TINY), (shares**2).sum(axis=1)
    others = np.maximum(1 - pairs, TINY)
    middle, effects = own_effects(blocks, shares)
    alike = own - shares**2 * (own.sum(axis=1) / pairs)[:, None]
    variance = ((2 * effects) ** 2 / alone).sum(axis=1)
    whole = ((2 * others[:, None] * effects + alike) ** 2 / alone).sum(axis=1)
    parts = shares[:, :, None] * shares[:, None, :]
    different = ~np.eye(n, dtype=bool)
    away = (blocks - parts * middle[:, None, None]) * different
    if n > 3:
        by_rows = effects[:, :, None] * shares[:, None, :]
        left = (away - (by_rows + by_rows.transpose(0, 2, 1))) * different
        rest = 2 * (n - 1) / (n - 3) * n / (n - 2) * (left**2).sum(axis=(1, 2))
        whole -= rest
        variance -= rest / others**2
    single = np.divide(away, parts, out=np.zeros_like(away), where=parts > 0)[:, :n_alike, :n_alike]
    return Spread(
        total,
        whole,
        total - middle,
        variance,
        2 * (away**2).sum(axis=(1, 2)),  # every pair of blocks counts twice
        (single**2).sum(axis=(1, 2)),
        2 * (single**4).sum(axis=(1, 2)),
        *sizes,
    )


def own_effects(blocks: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means over pairs of different blocks of :func:`own_spread`, and its a: the effect of each block."""
    n = blocks.shape[1]
    own = np.einsum("pgg->pg", blocks)
    alone, others = np.maximum(1 - shares, TINY), np.maximum(1 - (shares**2).sum(axis=1), TINY)
    middle = (blocks.sum(axis=(1, 2)) - own.sum(axis=1)) / others
    rows = (blocks.sum(axis=1) + blocks.sum(axis=2) - 2 * own) / 2 / alone - shares * middle[:, None]
    return middle, rows * ((n - 1) / (n - 2) if n > 3 else 1.0)


def between_variance(found: Spread, n_repetitions: float) -> FloatArray:
    """Return the variance of a mean over pairs of repetitions, widened as far as they are few.

    As much as there would be if all pairs were independent is known from all pairs. Only what is above it is known from
    so many repetitions, and counts as more.
    """
    variance = np.maximum(found.variance, LEAST_BETWEEN * found.least_variance)
    above = np.maximum(variance - found.least_variance, 0.0)
    return np.asarray(variance + above * (widening(np.array(n_repetitions)) ** 2 - 1))


def n_carrying(squares: FloatArray, fourths: FloatArray) -> FloatArray:
    """Return how many numbers carry the spread, from the sums of the second and fourth powers of their deviations.

    If all were normal it would be a third of them; if one is much larger than all others it is 1.
    """
    return np.asarray(np.divide(squares**2, fourths, out=np.full(squares.shape, np.inf), where=fourths > 0))


def widened(carrying: FloatArray, n_numbers: FloatArray) -> FloatArray:
    """Return by how much an error bar is widened because few numbers carry the spread."""
    return np.asarray(np.sqrt(1 + PSEUDO * np.maximum(1 / carrying - 3 / n_numbers, 0.0)))


def few_carry(carrying: FloatArray, n_numbers: FloatArray) -> Mask:
    """Say where so few numbers carry the spread that it is itself uncertain."""
    least = np.zeros(np.shape(n_numbers))
    for n, fewest in FEWEST_CARRYING.items():
        least = np.where(n_numbers >= n, fewest, least)
    return np.asarray(carrying < least)
