"""What a test answers with: one named record, in the manner of ``scipy.stats``."""

from __future__ import annotations

from dataclasses import dataclass, field

from rankernel.arrays import FloatArray, Mask
from rankernel.data import Data
from rankernel.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class MMDResult:
    """What :func:`mmd_test` found.

    Attributes
    ----------
    statistic : float
        The estimate of the squared maximum mean discrepancy.
    pvalue : float
        The share of the null distribution, the statistic itself included, that is at least as large.
    null_distribution : array of shape (n_permutations,)
        The statistic for random divisions of the voters (or for data simulated from a model).
    method : str
        What was done.
    kernel : Kernel or None
        The kernel, its width a number; None if only a Gram matrix was given.
    rankings : Rankings or Preferences
        The distinct ballots of both samples, with their numbers of voters.
    witness : array of shape (n_ballots,)
        The witness function at each of them: the mean kernel with the first sample less that with the second.
        Positive where the first sample has more voters nearby.
    """

    statistic: float
    pvalue: float
    null_distribution: FloatArray = field(repr=False)
    method: str
    kernel: Kernel | None
    rankings: Data = field(repr=False)
    witness: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class AggregatedMMDResult(MMDResult):
    """What :func:`mmd_aggregated_test` found with several kernels at once.

    ``statistic`` is minus the decimal logarithm of the smallest p-value that a kernel has by itself, and
    ``null_distribution`` the same for random divisions of the voters; ``pvalue`` compares the two. It is the smallest
    level at which the aggregated test rejects. ``kernel`` and ``witness`` are those of the kernel with the smallest
    p-value.

    Attributes
    ----------
    kernels : tuple of Kernel
        The kernels, their widths numbers.
    statistics : array of shape (n_kernels,)
        The statistic of each.
    pvalues : array of shape (n_kernels,)
        The p-value of each, corrected for all: the smallest level at which the aggregated test rejects because of it.
    rejected : array of shape (n_kernels,)
        Which kernels reject at ``level``; the aggregated test does if any does.
    level : float
        The level asked for.
    """

    kernels: tuple[Kernel, ...]
    statistics: FloatArray
    pvalues: FloatArray
    rejected: Mask
    level: float


@dataclass(frozen=True, eq=False)
class HSICResult:
    """What :func:`hsic_test` found.

    Attributes
    ----------
    statistic : float
        The estimate of the Hilbert-Schmidt independence criterion.
    pvalue : float
        The share of the null distribution, the statistic itself included, that is at least as large.
    null_distribution : array of shape (n_permutations,)
        The statistic with the covariate permuted between voters.
    method : str
        What was done.
    kernel : Kernel
        The kernel of the rankings, its width a number.
    rankings : Rankings or Preferences
        The rankings as given, one row for each entry of the witness.
    witness : array of shape (n_rankings,)
        The witness function at each ranking with its own covariate. Positive where they occur together more often
        than by chance; its mean over voters is the biased statistic.
    """

    statistic: float
    pvalue: float
    null_distribution: FloatArray = field(repr=False)
    method: str
    kernel: Kernel
    rankings: Data = field(repr=False)
    witness: FloatArray = field(repr=False)
