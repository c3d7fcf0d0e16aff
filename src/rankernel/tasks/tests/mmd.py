"""The two-sample test: whether two sets of rankings come from one distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel.arrays import FloatArray, IntArray, Mask
from rankernel.checks import flag, labels, listed, numbers, whole
from rankernel.completions.models import CompletionModel
from rankernel.data import Data, as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.kernels.named import as_kernel
from rankernel.seeds import Seed, as_seed
from rankernel.tasks.tests._permutations import TIED, check_divisible, divisions, off_diagonal_forms, pvalue
from rankernel.tasks.tests._voters import Ballots, group_codes, plan_for_test, voter_gram
from rankernel.tasks.tests.results import MMDResult

FEW_ROWS = 64  # of a Gram matrix, so that they stay in the cache


def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | None = None,
    n_permutations: int = 1000,
    seed: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: tuple[Any, Any] | None = None,
    precomputed: Any = None,
    threads: int | None = None,
) -> MMDResult:
    r"""Test whether two sets of rankings come from one distribution, by their maximum mean discrepancy.

    The statistic is the unbiased estimate of the squared discrepancy (Gretton et al. 2012),
    :math:`\frac{1}{m(m-1)} \sum_{i \ne j} K(X_i, X_j) + \frac{1}{n(n-1)} \sum_{i \ne j} K(Y_i, Y_j)
    - \frac{2}{mn} \sum_{i,j} K(X_i, Y_j)`, where the last sum goes over all pairs. Its null distribution is that of
    random divisions of all voters into two samples of these sizes. A row of count c is c voters, exactly as if it
    were written c times.

    Parameters
    ----------
    X, Y : Rankings, Preferences or integer arrays
        The two samples, over the same items.
    kernel : Kernel, optional
        The kernel; ``Mallows("median")`` if left out, its width taken from both samples together.
    n_permutations : int
        How many divisions make the null distribution.
    seed : int or Generator
        Where the divisions come from. The draws of a Monte Carlo method have a seed of their own.
    biased : bool
        Whether to add the pairs of each voter with itself, and divide by m² and n².
    method : as in :meth:`Kernel.gram`
        How to compute kernel values. Estimated ones belong to the ballots, so that the level of the test is exact
        with them, too; two voters with the same ballot are compared by different draws.
    strata : pair of arrays, optional
        A label for each row of X and for each row of Y: voters change sides only within their stratum.
    precomputed : array, optional
        The Gram matrix of the rows of X and then those of Y, if it is known already.
    threads : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    MMDResult
        ``statistic``, ``pvalue``, ``null_distribution``, ``method``, ``kernel``, ``rankings``, ``witness``.

    Notes
    -----
    The p-value is (1 + #{null >= statistic}) / (1 + n_permutations): it is valid for every number of permutations.

    A partial ranking acts as the uniform distribution on its completions. So of two distributions of partial
    rankings only the distributions of their completions are compared.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> X = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[5, 3])
    >>> Y = Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], items=X.items, counts=[2, 6])
    >>> result = mmd_test(X, Y, Mallows(nu=np.log(2)))
    >>> expected = (41 + 35) / 56 - 2 * 21.25 / 64
    >>> round(expected, 6), round(result.statistic, 6)
    (0.69308, 0.69308)
    >>> result.pvalue < 0.05
    True
    """
    number_of = whole("n_permutations", n_permutations), as_seed(seed)
    samples = Samples.checked(X, Y, strata, biased)
    if precomputed is not None:
        ballots, values, label = Ballots.of(samples.data), "given", kernel
        matrix = given_gram(samples.data, precomputed)
    else:
        plan = plan_for_test(check_kernel(kernel), samples.data, method)
        ballots, matrix = Ballots.of(samples.data, plan), voter_gram(plan, threads)
        label, values = plan.kernel, str(plan.method)
    found = samples.divided(ballots).evidence(label, matrix, *number_of, biased)
    p = pvalue(found.null, found.statistic, found.tolerance)
    text = description(n_permutations, biased, strata, values)
    return MMDResult(found.statistic, p, found.null, text, found.kernel, ballots.data, found.witness)


def check_kernel(kernel: Kernel | None) -> Kernel:
    """Return a kernel, the Mallows kernel if there is none, refusing anything else."""
    return Mallows(nu="median") if kernel is None else as_kernel(kernel)


def given_gram(X: Data, matrix: Any) -> FloatArray:
    """Return a Gram matrix that the caller has, one row for each row of the data."""
    values = numbers("precomputed", matrix, (len(X), len(X)))  # the rows of X, then those of Y
    if not np.allclose(values, values.T):
        raise ValueError("precomputed is not symmetric; a Gram matrix is")
    return values


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one kernel says: its statistic, a null distribution, and how close a tie may be by rounding."""

    kernel: Kernel | None
    statistic: float
    null: FloatArray
    tolerance: float
    witness: FloatArray


@dataclass(frozen=True, eq=False)
class Samples:
    """Two samples: the rows of both, and for each row whether it is of the first one, and its stratum."""

    data: Data
    in_first: Mask
    stratum: IntArray

    @classmethod
    def checked(cls, X: Any, Y: Any, strata: tuple[Any, Any] | None, biased: bool) -> Samples:
        """Return the two samples, having refused those that are too small for the statistic."""
        if isinstance(Y, CompletionModel) or callable(Y):
            raise TypeError("Y is a model, not a sample of rankings; use goodness_of_fit_test(X, model)")
        first, second = as_data(X, "X"), as_data(Y, "Y")
        flag("biased", biased)
        least = 1 if biased else 2
        for name, sample in (("X", first), ("Y", second)):
            if sample.n_voters < least:
                raise RankingError(f"{name} has {sample.n_voters} voter(s); this statistic needs at least {least}")
        both = concat([first, second])
        return cls(both, np.arange(len(both)) < len(first), strata_of(strata, both, len(first)))

    def divided(self, ballots: Ballots) -> Divided:
        """Count the voters by stratum and ballot."""
        shape = (int(self.stratum.max()) + 1, len(ballots.data))
        first, both = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        np.add.at(both, (self.stratum, ballots.of_row), self.data.counts)
        np.add.at(first, (self.stratum, ballots.of_row), np.where(self.in_first, self.data.counts, 0))
        check_divisible(first, both)
        return Divided(first, both)


def strata_of(strata: tuple[Any, Any] | None, both: Data, n_first: int) -> IntArray:
    """Return the number of the stratum of each row."""
    if strata is None:
        return np.zeros(len(both), dtype=np.int64)
    pair = listed("strata", strata, "a pair of arrays: a label for each row of X, and one for each row of Y")
    if len(pair) != 2:
        raise RankingError(f"strata is a pair of arrays, one for the rows of X and one for those of Y; got {len(pair)}")
    given = [labels("strata", part, length) for part, length in zip(pair, (n_first, len(both) - n_first), strict=True)]
    return group_codes(np.concatenate(given), both, "strata")


def description(n_permutations: int, biased: bool, strata: Any, values: Any) -> str:
    """Return what was done, in words."""
    within = " within strata" if strata is not None else ""
    return (
        f"{'biased' if biased else 'unbiased'} squared MMD, {n_permutations:,} permutations of the voters{within}, "
        f"kernel values: {values}"
    )


@dataclass(frozen=True, eq=False)
class Divided:
    """How many voters of the first sample, and of both, stand behind each row: shape (n_strata, n_rows)."""

    first: IntArray
    both: IntArray

    def evidence(self, kernel: Kernel | None, gram: FloatArray, n_divisions: int, seed: int, biased: bool) -> Evidence:
        """Return the statistic for the two samples and for random divisions of their voters."""
        first, both = self.first.sum(axis=0).astype(np.float64), self.both.sum(axis=0).astype(np.float64)
        forms = Discrepancy(gram, both, int(first.sum()), biased)
        null = [forms.of(counts) for counts in divisions(self.first, self.both, n_divisions, seed)]
        witness = gram @ (first / first.sum() - (both - first) / (both - first).sum())
        return Evidence(kernel, float(forms.of(first[None])[0]), np.concatenate(null), TIED * forms.scale, witness)


class Discrepancy:
    """The squared discrepancy as a function of the first sample alone, for fixed voters in all."""

    def __init__(self, gram: FloatArray, both: FloatArray, n_first: int, biased: bool) -> None:
        self.gram, self.both, self.biased = gram, both, biased
        self.m, self.n = n_first, int(both.sum()) - n_first
        self.diagonal = np.diagonal(gram).copy()
        self.sums, absolute = off_diagonal_sums(gram, both)
        self.total = float(both @ self.sums)
        own_pairs = both * both if biased else both * (both - 1)
        self.scale = (absolute + float(own_pairs @ np.abs(self.diagonal))) / both.sum() ** 2
        self.shared = np.flatnonzero(both > 1)

    def of(self, first: FloatArray) -> FloatArray:
        """Return the statistic for each row of numbers of voters of the first sample."""
        within, reach = off_diagonal_forms(self.gram, first), first @ self.sums
        XX, YY, XY = within, self.total - 2 * reach + within, reach - within
        if len(self.shared):  # different voters behind the same row
            x, diagonal = first[:, self.shared], self.diagonal[self.shared]
            y = self.both[self.shared] - x
            XX, YY, XY = XX + (x * (x - 1)) @ diagonal, YY + (y * (y - 1)) @ diagonal, XY + (x * y) @ diagonal
        m, n = self.m, self.n
        if not self.biased:
            return np.asarray(XX / (m * (m - 1)) + YY / (n * (n - 1)) - 2 * XY / (m * n))
        own = first @ self.diagonal
        return np.asarray((XX + own) / m**2 + (YY + self.both @ self.diagonal - own) / n**2 - 2 * XY / (m * n))


def off_diagonal_sums(gram: FloatArray, counts: FloatArray) -> tuple[FloatArray, float]:
    """Return the sum of each row over the voters of other rows, and the sum of the sizes of all entries."""
    sums, absolute = np.empty(len(gram)), 0.0
    for start in range(0, len(gram), FEW_ROWS):
        tile = gram[start : start + FEW_ROWS].copy()
        np.fill_diagonal(tile[:, start:], 0.0)
        sums[start : start + FEW_ROWS] = tile @ counts
        absolute += float(counts[start : start + FEW_ROWS] @ np.abs(tile, out=tile) @ counts)
    return sums, absolute
