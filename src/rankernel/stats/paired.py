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

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel._utils.checks import check_flag
from rankernel._utils.memory import check_task
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.stats._effect_law import EXTRA_VOTER, UNKNOWN, EstimatedEffect, Influence, Interval
from rankernel.stats._effects import own_size, share_of
from rankernel.stats._groups import GroupedVoters
from rankernel.stats._moments import Moments
from rankernel.stats._permutations import (
    ENTRIES,
    TIED,
    Null,
    Permutations,
    PermutationsLike,
    as_permutations,
    generator,
    off_diagonal_forms,
)
from rankernel.stats._voters import (
    Ballots,
    Slopes,
    errors_of_draws,
    plan_for_test,
    voter_gram,
    warn_if_noisy,
)
from rankernel.stats.mmd import check_kernel
from rankernel.stats.results import PairedResult

NAMES = ("before", "after")


def paired_test(
    X: Any,
    Y: Any,
    kernel: Kernel | None = None,
    n_permutations: PermutationsLike = 1000,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
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
    rng : int or Generator
        Where the signs come from.
    biased : bool
        Which statistic.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    n_jobs : int, optional
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
    wanted, start = as_permutations(n_permutations), as_seed(rng)
    first, second = as_data(X), as_data(Y, name="Y")
    if len(first) != len(second) or not np.array_equal(first.counts, second.counts):
        raise RankingError(
            f"X has {len(first)} rows and Y has {len(second)}, and row i of both must be the same judge (or as many "
            "judges, by counts); bring them into one order, and leave out judges of whom one ranking is missing"
        )
    least = 1 if check_flag("biased", biased) else 2
    if first.n_voters < least:
        raise RankingError(f"X has {first.n_voters} judge(s); this statistic needs at least {least}")
    both = concat([first, second])
    plan = plan_for_test(check_kernel(kernel), both, method)
    check_task("a test of pairs", len(plan._X))
    ballots = Ballots.of(both, plan)
    before, after = np.split(ballots.of_row, 2)
    pairs = JudgePairs.of(voter_gram(plan, n_jobs), before, after, first.counts, biased)
    side = np.repeat([0, 1], len(first))
    voters = GroupedVoters.counted(ballots, side, NAMES, np.zeros_like(side), plan, n_jobs)
    return paired_result(pairs, voters, plan, wanted, start)


def paired_result(
    pairs: JudgePairs, voters: GroupedVoters, plan: Plan, wanted: Permutations, seed: int
) -> PairedResult:
    """Return what the judges say."""
    statistic, tolerance = pairs.statistic, TIED * pairs.scale
    null = Null.drawn(SignFlips(pairs, seed).draw, statistic, tolerance, wanted, pairs.moments(pairs.biased))
    error, effect_error = pairs.kernel_errors(plan)
    warn_if_noisy(error, float(null.values.std()))
    text = (
        f"{'biased' if pairs.biased else 'unbiased'} squared MMD of paired samples, {len(null.values):,} choices of "
        f"signs of {pairs.n_judges:,} judges, kernel values: {plan.method}"
    )
    return PairedResult(
        statistic,
        null.pvalue,
        null.values,
        null.tail(statistic, tolerance, 2.0 ** (1 - pairs.n_judges)),
        null.n_for_moments,
        pairs.effect(),
        text,
        plan,
        plan.kernel,
        voters.data,
        error,
        effect_error,
        partial(pairs.effect_interval, effect_error),
        voters,
        pairs.biased,
        pairs,
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

    def on(self, gram: FloatArray, rows: Indices) -> JudgePairs:
        """Return the same judges with another kernel, between ballots of which ``rows`` says what became of each."""
        times = self.times.astype(np.int64)
        return JudgePairs.of(gram, rows[self.before], rows[self.after], times, self.biased)

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

    @property
    def statistic(self) -> float:
        """The statistic of the judges as they are."""
        return float(self.statistics(self.times[None])[0])

    def statistics(self, signs: FloatArray) -> FloatArray:
        """Return the statistic for each row of sums of signs, over the judges of each pair."""
        total = off_diagonal_forms(self.changes, signs) + signs**2 @ np.diagonal(self.changes)
        return np.asarray((total - (0.0 if self.biased else self.own)) / self.divisor)

    @property
    def own(self) -> float:
        """The sum over judges of the kernel of a difference with itself, which no sign changes."""
        return float(self.times @ np.diagonal(self.changes))

    def moments(self, biased: bool) -> Moments:
        """Return the exact moments of a statistic under random signs: sums over two and three different judges."""
        c, H, own, n = self.times, self.changes, np.diagonal(self.changes), self.n_judges
        squares = H**2 @ c
        second = float(c @ (squares - own**2))
        weighted = np.sqrt(c)[:, None] * H * np.sqrt(c)
        cubes = float(np.einsum("uv,uv->", weighted @ weighted, weighted))
        third = cubes - float(c @ (3 * own * squares)) + 2 * float(c @ own**3)
        mean = self.own if biased else 0.0
        return Moments.of_cumulants(mean, 2 * second, 8 * third).times(1 / (n * (n - (not biased))))

    def kernel_errors(self, plan: Plan) -> tuple[float, float]:
        """Return the standard errors of statistic and effect that come from estimated kernel values."""
        if plan._estimator is None:
            return 0.0, 0.0
        between, within = self.dispersions()
        slopes = [self.slopes(self.biased, 0.0)]
        if between + within > 0:
            slopes.append(self.slopes(False, between / (between + within)))
        statistic, *effect = errors_of_draws(plan, self.gram, np.arange(len(self.gram)), slopes)
        return statistic, effect[0] / (4 * (between + within)) if effect else float("nan")

    def slopes(self, biased: bool, effect: float) -> Slopes:
        """Return by how much (1 - e) T - 4 e W changes with each kernel value: T the statistic, e the effect."""
        from scipy.sparse import csr_array

        n_rows, n_pairs, n = len(self.gram), len(self.times), float(self.n_judges)
        sides = [
            csr_array((np.ones(n_pairs), (np.arange(n_pairs), rows)), shape=(n_pairs, n_rows))
            for rows in (self.before, self.after)
        ]
        signs = sides[0] - sides[1]
        own, both = signs.T @ (self.times[:, None] * signs.toarray()), signs.T @ self.times
        less, pairs = (0.0 if biased else 1.0), n * (n - (not biased))
        counts = [side.T @ self.times for side in sides]

        def slopes_of(some: Indices) -> FloatArray:
            found = (1 - effect) * (np.outer(both[some], both) - less * own[some]) / pairs
            for count in counts if effect else ():
                found += 2 * effect * np.outer(count[some], count) / (n * (n - 1))
                found[np.arange(len(some)), some] -= 2 * effect * count[some] * (1 / (n * (n - 1)) + 1 / n)
            return np.asarray(found)

        return slopes_of

    # ------------------------------------------------------------------ the effect

    def effect(self) -> float:
        """Return the share of the dispersion that lies between before and after; nan for a single judge."""
        if self.n_judges < 2:
            return float("nan")
        return share_of(*self.dispersions(), own_size(self.gram))

    def effect_interval(self, error: float) -> Interval:
        """Return the interval of the effect: the law of the estimate is that of judges."""
        found = self.effect()
        if np.isnan(found):
            return UNKNOWN
        total = sum(self.dispersions())
        if not total > 0:
            return 0.0, 1.0
        kept, turned = self.shares(self.n_judges / (self.n_judges + EXTRA_VOTER))
        between, within = self.of_population(kept, turned)
        toward = self.changes @ (kept - turned) / (2 * total)
        spread = [
            sum(np.diagonal(self.gram)[rows] - 2 * (self.gram @ weights)[rows] for rows, weights in sides)
            for sides in (
                zip((self.before, self.after), self.by_ballot(kept, turned), strict=True),
                zip((self.after, self.before), self.by_ballot(kept, turned), strict=True),
            )
        ]
        sample = (
            np.concatenate([toward, -toward]),
            np.concatenate(spread) / (2 * total),
            np.concatenate([kept, turned]),
            float(self.n_judges),
        )
        exchanged = self.own / self.n_judges
        return EstimatedEffect(
            found,
            self.moments(biased=False).times(1 / (4 * total)),
            Influence.of(between / (between + within), [sample]),
            error,
            4 * total / exchanged if exchanged > 0 else 0.0,
        ).interval()

    def shares(self, kept: float) -> tuple[FloatArray, FloatArray]:
        """Return the shares of pairs, and of the same turned round, in a population of judges.

        A part ``kept`` is as found; the others have before and after in any order, as if nothing had changed.
        """
        own = self.times / self.n_judges
        return np.asarray((1 + kept) / 2 * own), np.asarray((1 - kept) / 2 * own)

    def by_ballot(self, kept: FloatArray, turned: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shares of the ballots before and after, from those of pairs and of pairs turned round."""
        n = len(self.gram)
        before = np.bincount(self.before, kept, n) + np.bincount(self.after, turned, n)
        after = np.bincount(self.after, kept, n) + np.bincount(self.before, turned, n)
        return before.astype(np.float64), after.astype(np.float64)

    def dispersions(self) -> tuple[float, float]:
        """Return B and W without bias: no judge is paired with itself."""
        c, n, own = self.times, float(self.n_judges), np.diagonal(self.gram)
        within = 0.0
        for rows, weights in zip((self.before, self.after), self.by_ballot(c, 0 * c), strict=True):
            alone = float(c @ own[rows])
            within += alone / n - (float(weights @ self.gram @ weights) - alone) / (n * (n - 1))
        return float(c @ self.changes @ c - self.own) / (4 * n * (n - 1)), within / 2

    def of_population(self, kept: FloatArray, turned: FloatArray) -> tuple[float, float]:
        """Return B and W of a population with these shares of pairs, and of pairs turned round."""
        apart, within = kept - turned, 0.0
        for weights in self.by_ballot(kept, turned):
            within += float(weights @ np.diagonal(self.gram) - weights @ self.gram @ weights)
        return float(apart @ self.changes @ apart) / 4, within / 2


class SignFlips:
    """The statistic for one random choice of signs of all judges after another."""

    def __init__(self, pairs: JudgePairs, seed: int) -> None:
        self.pairs, self.rng = pairs, generator(seed, "signs of judges")

    def draw(self, n_choices: int) -> FloatArray:
        """Return the statistic of the next choices; the sum of c signs is twice a binomial number less c."""
        times, parts = self.pairs.times.astype(np.int64), []
        for part in slices(n_choices, max(ENTRIES // len(times), 1)):
            up = self.rng.binomial(times, 0.5, size=(part.stop - part.start, len(times)))
            parts.append(self.pairs.statistics((2 * up - times).astype(np.float64)))
        return np.concatenate(parts)
