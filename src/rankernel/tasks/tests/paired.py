r"""The test of paired samples: whether the same judges rank otherwise the second time.

Judge i ranks :math:`X_i` before and :math:`Y_i` after. With :math:`d_i = \phi(X_i) - \phi(Y_i)` the statistic is the
squared length of the mean of all :math:`d_i`. If before and after do not differ, each :math:`d_i` may as well have the
other sign: the null distribution is that of random signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankernel.arrays import FloatArray, IntArray
from rankernel.checks import flag
from rankernel.data import as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.gram.tiles import stretches
from rankernel.kernels.base import Kernel
from rankernel.seeds import Seed, as_seed
from rankernel.tasks.tests._effects import N_BOOTSTRAP, Interval, reflected, share
from rankernel.tasks.tests._groups import GroupedVoters
from rankernel.tasks.tests._moments import Moments
from rankernel.tasks.tests._permutations import (
    ENTRIES,
    TIED,
    Null,
    Permutations,
    PermutationsLike,
    as_permutations,
    generator,
    off_diagonal_forms,
)
from rankernel.tasks.tests._voters import Ballots, error_of_draws, plan_for_test, voter_gram, warn_if_noisy
from rankernel.tasks.tests.mmd import check_kernel
from rankernel.tasks.tests.results import PairedResult

NAMES = ("before", "after")


def paired_test(
    X: Any,
    Y: Any,
    kernel: Kernel | None = None,
    n_permutations: PermutationsLike = 1000,
    seed: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    threads: int | None = None,
) -> PairedResult:
    r"""Test whether the same judges rank otherwise the second time, by flipping before and after of each at random.

    The unbiased statistic is :math:`\frac{1}{N(N-1)} \sum_{i \ne j} h_{ij}` with
    :math:`h_{ij} = K(X_i, X_j) + K(Y_i, Y_j) - K(X_i, Y_j) - K(Y_i, X_j)`, an estimate of the squared discrepancy
    between before and after; the biased one adds i = j and divides by N². What judges keep to themselves drops out, so
    that it finds much smaller changes than :func:`mmd_test` would.

    Parameters
    ----------
    X, Y : Rankings, Preferences or integer arrays
        The rankings before and after: row i of both is of the same judge, or of the same number of judges.
    kernel : Kernel, optional
        The kernel; ``Mallows("median")`` if left out, its width taken from both together.
    n_permutations : int, "adaptive" or Adaptive
        How many random choices of signs make the null distribution.
    seed : int or Generator
        Where the signs come from.
    biased : bool
        Which statistic.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    threads : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    PairedResult

    Examples
    --------
    Ten judges of whom nine move item c up:

    >>> from rankernel import Rankings
    >>> before = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]], counts=[5, 4, 1])
    >>> after = Rankings.from_orders([["a", "c", "b"], ["b", "c", "a"], ["a", "c", "b"]], before.items, [5, 4, 1])
    >>> paired_test(before, after).pvalue < 0.01
    True
    """
    wanted, start = as_permutations(n_permutations), as_seed(seed)
    first, second = as_data(X), as_data(Y, name="Y")
    if len(first) != len(second) or not np.array_equal(first.counts, second.counts):
        raise RankingError(
            f"X has {len(first)} rows and Y has {len(second)}, and row i of both must be the same judge (or as many "
            "judges, by counts); bring them into one order, and leave out judges of whom one ranking is missing"
        )
    least = 1 if flag("biased", biased) else 2
    if first.n_voters < least:
        raise RankingError(f"X has {first.n_voters} judge(s); this statistic needs at least {least}")
    both = concat([first, second])
    plan = plan_for_test(check_kernel(kernel), both, method)
    ballots = Ballots.of(both, plan)
    before, after = np.split(ballots.of_row, 2)
    pairs = JudgePairs.of(voter_gram(plan, threads), before, after, first.counts, biased)
    side = np.repeat([0, 1], len(first))
    voters = GroupedVoters.counted(ballots, side, NAMES, np.zeros_like(side), plan, threads)
    return paired_result(pairs, voters, plan, wanted, start)


def paired_result(
    pairs: JudgePairs, voters: GroupedVoters, plan: Plan, wanted: Permutations, seed: int
) -> PairedResult:
    """Return what the judges say."""
    statistic, tolerance = float(pairs.statistics(pairs.times[None])[0]), TIED * pairs.scale
    null = Null.drawn(SignFlips(pairs, seed).draw, statistic, tolerance, wanted)
    error = pairs.kernel_error(plan)
    warn_if_noisy(error, null.values)
    text = (
        f"{'biased' if pairs.biased else 'unbiased'} squared MMD of paired samples, {len(null.values):,} choices of "
        f"signs of {pairs.n_judges:,} judges, kernel values: {plan.method}"
    )
    return PairedResult(
        statistic,
        null.pvalue,
        null.values,
        null.tail(pairs.moments(), statistic, tolerance, 2.0 ** (1 - pairs.n_judges)),
        pairs.effect(),
        text,
        plan,
        plan.kernel,
        voters.data,
        error,
        partial(pairs.effect_interval, seed),
        voters,
        pairs.biased,
    )


@dataclass(frozen=True, eq=False)
class JudgePairs:
    """Judges by what they ranked before and after: the rows of each such pair, and how many judges have it."""

    gram: FloatArray
    before: IntArray
    after: IntArray
    times: FloatArray
    biased: bool
    changes: FloatArray  # the kernel between the differences of two judges

    @classmethod
    def of(cls, gram: FloatArray, before: IntArray, after: IntArray, counts: IntArray, biased: bool) -> JudgePairs:
        """Return judges by pairs, from the rows of those who are alike, and how many these are."""
        cells, place = np.unique(np.stack((before, after)), axis=1, return_inverse=True)
        times = np.bincount(place.ravel(), counts.astype(np.float64)).astype(np.float64)
        x, y = cells
        apart = gram[np.ix_(x, y)]
        changes = gram[np.ix_(x, x)] + gram[np.ix_(y, y)] - apart - apart.T
        return cls(gram, x, y, times, biased, changes)

    @property
    def n_judges(self) -> int:
        """How many judges there are."""
        return int(self.times.sum())

    @property
    def divisor(self) -> float:
        """N² or N (N - 1)."""
        n = self.n_judges
        return float(n * (n - (not self.biased)))

    @property
    def scale(self) -> float:
        """The mean size of a term."""
        return float(4 * np.abs(self.gram).mean())

    def statistics(self, signs: FloatArray) -> FloatArray:
        """Return the statistic for each row of sums of signs, over the judges of each pair."""
        total = off_diagonal_forms(self.changes, signs) + signs**2 @ np.diagonal(self.changes)
        return np.asarray((total - (0.0 if self.biased else self.own)) / self.divisor)

    @property
    def own(self) -> float:
        """The sum over judges of the kernel of a difference with itself, which no sign changes."""
        return float(self.times @ np.diagonal(self.changes))

    def moments(self) -> Moments:
        """Return the exact moments of the statistic under random signs: sums over two and three different judges."""
        c, H, own = self.times, self.changes, np.diagonal(self.changes)
        squares = H**2 @ c
        second = float(c @ (squares - own**2))
        weighted = np.sqrt(c)[:, None] * H * np.sqrt(c)
        cubes = float(np.einsum("uv,uv->", weighted @ weighted, weighted))
        third = cubes - float(c @ (3 * own * squares)) + 2 * float(c @ own**3)
        variance = 2 * second
        found = Moments(0.0, variance, 8 * third / variance**1.5 if variance > 0 else 0.0).times(1 / self.divisor)
        return Moments(self.own / self.divisor if self.biased else 0.0, found.variance, found.skewness)

    def kernel_error(self, plan: Plan) -> float:
        """Return the standard error of the statistic that comes from estimated kernel values."""
        from scipy.sparse import csr_array

        n_rows, n_pairs = len(self.gram), len(self.times)
        where = (np.tile(np.arange(n_pairs), 2), np.concatenate([self.before, self.after]))
        signs = csr_array((np.repeat([1.0, -1.0], n_pairs), where), shape=(n_pairs, n_rows))
        own, both = signs.T @ (self.times[:, None] * signs.toarray()), signs.T @ self.times
        less = 0.0 if self.biased else 1.0
        return error_of_draws(
            plan,
            self.gram,
            np.arange(n_rows),
            lambda some: np.asarray((np.outer(both[some], both) - less * own[some]) / self.divisor),
        )

    # ------------------------------------------------------------------ the effect

    def effect(self) -> float:
        """Return the share of the dispersion that lies between before and after; nan for a single judge."""
        return float(self.shares(self.times[None], sample=True)[0]) if self.n_judges > 1 else float("nan")

    def effect_interval(self, seed: int) -> Interval:
        """Return the interval of the effect: judges drawn anew, with replacement."""
        n = self.n_judges
        if n < 2:
            return float("nan"), float("nan")
        rng, parts = generator(seed, "bootstrap of the voters"), []
        for stretch in stretches(N_BOOTSTRAP, max(ENTRIES // len(self.times), 1)):
            drawn = rng.multinomial(n, self.times / n, size=stretch.stop - stretch.start).astype(np.float64)
            parts.append(self.shares(drawn, sample=True))
        population = float(self.shares(self.times[None], sample=False)[0])
        return reflected(self.effect(), population, np.concatenate(parts))

    def shares(self, weights: FloatArray, sample: bool) -> FloatArray:
        """Return the effect for each row of numbers of judges: of a sample, or of a population of its own."""
        n = float(self.n_judges)

        def mean(matrix: FloatArray) -> FloatArray:
            own = weights @ np.diagonal(matrix) if sample else 0.0
            total = off_diagonal_forms(matrix, weights) + weights**2 @ np.diagonal(matrix) - own
            return np.asarray(total / (n * (n - sample)))

        spread = np.zeros(len(weights))
        for rows in (self.before, self.after):
            own = self.gram[np.ix_(rows, rows)]
            spread += weights @ np.diagonal(own) / n - mean(own)
        return share(mean(self.changes) / 4, spread / 2)


class SignFlips:
    """The statistic for one random choice of signs of all judges after another."""

    def __init__(self, pairs: JudgePairs, seed: int) -> None:
        self.pairs, self.rng = pairs, generator(seed, "signs of judges")

    def draw(self, n_choices: int) -> FloatArray:
        """Return the statistic of the next choices; the sum of c signs is twice a binomial number less c."""
        times, parts = self.pairs.times.astype(np.int64), []
        for part in stretches(n_choices, max(ENTRIES // len(times), 1)):
            up = self.rng.binomial(times, 0.5, size=(part.stop - part.start, len(times)))
            parts.append(self.pairs.statistics((2 * up - times).astype(np.float64)))
        return np.concatenate(parts)
