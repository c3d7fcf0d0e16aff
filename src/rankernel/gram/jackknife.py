r"""Standard errors of Monte Carlo estimates by the delete-one-block jackknife (Efron and Stein 1981).

The draws of a ranking form B independent blocks: one coupled set each, a single draw if draws are independent. Every
estimate T, an entry, a squared norm, a cosine or a derivative, is a smooth function of block averages. With
:math:`T_{(-b)}` the estimate without block b,

.. math:: \mathrm{se}^2 = \sum_{\text{rankings involved}} \frac{B - 1}{B} \sum_b (T_{(-b)} - \overline{T}_{(-\cdot)})^2,

times :math:`(t_{B-1, 0.977} / 2)^2`, so that two standard errors cover about 95 % also with few blocks.

Arrays have the shape (n_pairs, n_replicates, n_blocks): independent replicates are strata; one block of one
stratum at a time is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils import FloatArray, Indices, Mask

FEW_BLOCKS = 5.0  # effective blocks below which an estimate is unreliable; set by benchmarks/coverage.py


def leave_one_out(parts: FloatArray, shares: FloatArray) -> FloatArray:
    """Return means over pairs of draws with one block left out.

    ``parts`` are the terms that each block of draws adds to the mean of its replicate, ``shares`` the shares of the
    blocks in the draws, by weight.
    """
    totals = parts.sum(axis=2)
    n_replicates, n_blocks = parts.shape[1:]
    mean = totals.mean(axis=1)[:, None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        if n_blocks == 1:  # whole replicates are the blocks
            return np.asarray((n_replicates * mean - totals[:, None, :]) / (n_replicates - 1))
        left_out = (totals[:, :, None] - parts) / (1 - shares)
    return np.asarray(mean + (left_out - totals[:, :, None]) / n_replicates)


def variance(left_out: FloatArray) -> FloatArray:
    """Return the jackknife variance from leave-one-out values of shape (..., n_replicates, n_blocks)."""
    n_blocks = left_out.shape[-1]
    deviations = left_out - left_out.mean(axis=-1, keepdims=True)
    return np.asarray((n_blocks - 1) / n_blocks * (deviations**2).sum(axis=(-2, -1)))


def student_factor(n_replicates: int, n_blocks: int) -> float:
    """Return the factor by which standard errors are widened because they come from few blocks."""
    from scipy.special import stdtrit

    degrees = n_replicates * (n_blocks - 1) if n_blocks > 1 else n_replicates - 1
    return float(stdtrit(degrees, 0.977) / 2) if degrees else float("nan")


def effective_blocks(parts: FloatArray) -> FloatArray:
    r"""Return the participation ratio of blocks, :math:`(\sum_b |v_b|)^2 / \sum_b v_b^2`; 0 where all v are 0."""
    sizes = np.abs(parts)
    largest = sizes.max(axis=(1, 2), initial=0.0)
    sizes = sizes / np.where(largest > 0, largest, 1.0)[:, None, None]  # squares of tiny values would underflow
    squares = (sizes**2).sum(axis=(1, 2))
    return np.asarray(sizes.sum(axis=(1, 2)) ** 2 / np.where(squares > 0, squares, 1.0))


# ---------------------------------------------------------------------- squared norms and cosines


@dataclass(frozen=True, eq=False)
class Norms:
    """Squared norms of the embeddings of rankings, exact or estimated.

    Leave-one-out values, of shape (n_rankings, n_replicates, n_blocks), are all equal for exact norms; unreliable are
    estimates that rest on few draws.
    """

    value: FloatArray
    left_out: FloatArray
    unreliable: Mask

    @classmethod
    def exact(cls, value: FloatArray) -> Norms:
        """Return exactly known norms."""
        return cls(value, value[:, None, None], np.zeros(len(value), dtype=bool))

    @classmethod
    def concatenate(cls, parts: list[Norms]) -> Norms:
        """Return norms of several groups; leave-one-out values of exact norms are repeated."""
        shape = max((part.left_out.shape[1:] for part in parts), key=np.prod)
        left_out = [np.broadcast_to(part.left_out, (len(part.value), *shape)) for part in parts]
        values, few = [part.value for part in parts], [part.unreliable for part in parts]
        return cls(np.concatenate(values), np.concatenate(left_out), np.concatenate(few))

    @property
    def estimated(self) -> Mask:
        """Which norms are estimates."""
        return np.asarray((self.left_out != self.value[:, None, None]).any(axis=(1, 2)))

    @property
    def inverse_roots(self) -> FloatArray:
        """The factors that turn entries into cosines; 0 for rankings of norm 0."""
        return np.asarray(1 / np.sqrt(np.where(self.value > 0, self.value, np.inf)))

    def __getitem__(self, rows: slice | Indices) -> Norms:
        return Norms(self.value[rows], self.left_out[rows], self.unreliable[rows])


def squared_norms(parts: FloatArray, within: FloatArray, shares: FloatArray, few: Mask) -> tuple[Norms, Norms]:
    """Return the biased and the unbiased estimates of the kernel of rankings with themselves.

    They are the means over all pairs of draws (V-statistic) and over pairs in different blocks (U-statistic), from
    the terms that each block adds to the mean over all pairs, and adds with itself.
    """
    total, own, squares = (array.sum(axis=2)[:, :, None] for array in (parts, within, shares**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        unbiased = (total - own) / (1 - squares)
        unbiased_without = (total - own - 2 * (parts - within)) / ((1 - shares) ** 2 - (squares - shares**2))
        biased_without = (total - 2 * parts + within) / (1 - shares) ** 2
    both = []
    for estimate, without in ((total, biased_without), (unbiased, unbiased_without)):
        mean = estimate.mean(axis=1)
        both.append(Norms(mean[:, 0], mean[:, :, None] + (without - estimate) / parts.shape[1], few))
    return both[0], both[1]


def cosines(
    value: FloatArray, left_out: tuple[FloatArray, FloatArray], norms: tuple[Norms, Norms]
) -> tuple[FloatArray, FloatArray]:
    """Return entries divided by the norms of both sides, and their variance.

    The leave-one-out values of entries and norms belong to the same blocks of draws, so they contain the covariance of
    numerator and denominator. A cosine lies in [-1, 1]: no variance is larger than 1.
    """
    roots = [side.inverse_roots for side in norms]
    total = np.zeros(value.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for without, side, other in zip(left_out, norms, reversed(roots), strict=True):
            total += variance(without / np.sqrt(side.left_out) * other[:, None, None])
    scale = roots[0] * roots[1]
    return value * scale, np.where(scale > 0, np.fmin(total, 1.0), 0.0)
