r"""The test of paired samples: whether the same judges rank differently the second time.

Judge i ranks :math:`X_i` before and :math:`Y_i` after. With :math:`d_i = \phi(X_i) - \phi(Y_i)` the statistic is the
squared norm of the mean of all :math:`d_i`. Under the null hypothesis each :math:`d_i` may have either sign, so the
null distribution is that of random signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, IntArray
from rankernel._utils.checks import Seed, as_seed, check_flag, check_integer
from rankernel._utils.resources import slices
from rankernel.data import as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.stats._permutations import (
    CHUNK_ENTRIES,
    RELATIVE_TOLERANCE,
    Moments,
    PermutationStatistic,
    named_generator,
    off_diagonal_forms,
)
from rankernel.stats.base import (
    PRIOR_VOTERS,
    Effect,
    InfluenceSample,
    Sample,
    check_voters_needed,
    diagonal_scale,
    evaluate,
)
from rankernel.stats.groups import GroupedVoters, GroupTestResult, dispersion_parts, equal_weights


@dataclass(frozen=True, eq=False, kw_only=True)
class PairedResult(GroupTestResult):
    """Result of :func:`paired_test`.

    ``effect`` is that of :func:`mmd_test`; its interval takes the pairing into account. ``differences()`` compares
    before and after as two groups, with intervals of changes that take the pairing into account.

    Attributes
    ----------
    statistic : float
        The estimate of the squared maximum mean discrepancy between before and after.
    null_distribution : array of shape (n_permutations,)
        The statistic for random signs of the judges.
    rankings : Rankings or Preferences
        The distinct rankings of before and after, with their numbers of judges.
    """


@np.errstate(under="ignore")
def paired_test(
    X: Any,
    Y: Any,
    kernel: Kernel | str | None = None,
    *,
    n_permutations: int = 999,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
) -> PairedResult:
    r"""Test whether the same judges rank differently the second time, by random exchange of before and after.

    The test looks for one shift of the mean ranking that the judges have in common. If rows are search queries that
    share few documents, there is no common shift even for very different systems: use :func:`compare_systems`.

    The unbiased statistic is :math:`\frac{1}{N(N-1)} \sum_{i \ne j} h_{ij}` with
    :math:`h_{ij} = K(X_i, X_j) + K(Y_i, Y_j) - K(X_i, Y_j) - K(Y_i, X_j)`, an estimate of the squared discrepancy
    between before and after; the biased one adds i = j and divides by N². Differences between judges cancel, so the
    test detects much smaller changes than :func:`mmd_test`.

    Parameters
    ----------
    X, Y : Rankings, Preferences or integer arrays
        The rankings before and after: row i of X and row i of Y are of the same judge; with counts, of the same number
        of judges.
    n_permutations : int
        The number of random sign vectors.
    kernel, rng, biased, method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    PairedResult

    Examples
    --------
    Ten judges, nine of whom move item c up:

    >>> from rankernel import Rankings
    >>> before = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]], counts=[5, 4, 1])
    >>> orders = [["a", "c", "b"], ["b", "c", "a"], ["a", "c", "b"]]
    >>> after = Rankings.from_orders(orders, before.items, counts=[5, 4, 1])
    >>> paired_test(before, after).pvalue < 0.01
    True
    """
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    first, second = as_data(X), as_data(Y, name="Y")
    if len(first) != len(second) or not np.array_equal(first.counts, second.counts):
        raise RankingError(
            f"X has {len(first)} rows and Y has {len(second)}, and row i of both must be the same judge (or the same "
            "number of judges, by counts); sort both by judge, and leave out judges with one ranking"
        )
    check_voters_needed(first, 1 if check_flag("biased", biased) else 2, noun="judge(s)")
    both = concat([first, second])
    sample = Sample.planned(both, kernel, method, n_jobs, "a test of pairs")
    before, after = np.split(sample.index, 2)
    judges = Judges.from_rows(sample.gram, before, after, first.counts, biased)
    side = np.repeat([0, 1], len(first))
    voters = GroupedVoters.count(sample, ("before", "after"), side, np.zeros_like(side), both.counts)
    name, scheme = "squared MMD of paired samples", f"random signs of {judges.n_judges:,} judges"
    name = f"{'biased' if biased else 'unbiased'} {name}"
    statistic = SignFlips(judges, judges.counts, seed, sample)
    fields = evaluate(
        statistic, PairedEffect(judges), statistic.null_distribution(n_permutations), sample, name, scheme
    )
    return PairedResult(**fields, _voters=voters, _biased=biased, _judges=judges)


@dataclass(frozen=True, eq=False)
class Judges:
    """Judges by their rankings before and after: the rows of each pair of rankings, and the number of its judges."""

    gram: FloatArray
    before: IntArray
    after: IntArray
    counts: FloatArray
    biased: bool
    change_gram: FloatArray  # inner products of the differences d of two pairs

    @classmethod
    def from_rows(cls, gram: FloatArray, before: IntArray, after: IntArray, counts: IntArray, biased: bool) -> Judges:
        """Return the judges by distinct pairs of rankings, from the rows and the counts of pairs."""
        (x, y), pair = np.unique(np.stack((before, after)), axis=1, return_inverse=True)
        totals = np.bincount(pair.ravel(), counts.astype(np.float64)).astype(np.float64)
        cross = gram[np.ix_(x, y)]
        change_gram = gram[np.ix_(x, x)] + gram[np.ix_(y, y)] - cross - cross.T
        return cls(gram, x, y, totals, biased, change_gram)

    @property
    def n_judges(self) -> int:
        """The number of judges."""
        return int(self.counts.sum())

    @property
    def n_pairs(self) -> float:
        """The number of ordered pairs of judges: N² or N (N - 1)."""
        return float(self.n_judges * (self.n_judges - (not self.biased)))

    @property
    def self_pairs(self) -> float:
        """The sum over judges of the squared norm of their differences, which signs do not change."""
        return float(self.counts @ np.diagonal(self.change_gram))

    def statistics(self, sign_sums: FloatArray) -> FloatArray:
        """Return the statistic for each row of sums of signs over the judges of each pair of rankings."""
        total = off_diagonal_forms(self.change_gram, sign_sums) + sign_sums**2 @ np.diagonal(self.change_gram)
        return np.asarray((total - (0.0 if self.biased else self.self_pairs)) / self.n_pairs)

    def moments(self, biased: bool) -> Moments:
        """Return the exact moments of the statistic under random signs: sums over two and three different judges."""
        c, H, diagonal, n = self.counts, self.change_gram, np.diagonal(self.change_gram), self.n_judges
        squares = H**2 @ c
        second = float(c @ (squares - diagonal**2))
        weighted = np.sqrt(c)[:, None] * H * np.sqrt(c)
        cubes = float(np.einsum("uv,uv->", weighted @ weighted, weighted))
        third = cubes - float(c @ (3 * diagonal * squares)) + 2 * float(c @ diagonal**3)
        mean = self.self_pairs if biased else 0.0
        return Moments(mean, 2 * second, 8 * third).scaled(1 / (n * (n - (not biased))))

    @property
    def prior_weight(self) -> float:
        """The part of the judges that is as observed after adding judges without change: see ``PRIOR_VOTERS``."""
        return self.n_judges / (self.n_judges + PRIOR_VOTERS)

    def mixture(self, weight: float) -> tuple[FloatArray, FloatArray]:
        """Return the shares of pairs, and of pairs with before and after exchanged, in a population of judges.

        A part ``weight`` of the judges is as observed; the others have before and after in random order.
        """
        shares = self.counts / self.n_judges
        return np.asarray((1 + weight) / 2 * shares), np.asarray((1 - weight) / 2 * shares)

    def ranking_shares(self, pairs: FloatArray, exchanged: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shares of the rankings before and after, from those of pairs and of exchanged pairs."""
        n = len(self.gram)
        before = np.bincount(self.before, pairs, n) + np.bincount(self.after, exchanged, n)
        after = np.bincount(self.after, pairs, n) + np.bincount(self.before, exchanged, n)
        return before.astype(np.float64), after.astype(np.float64)

    def population_parts(self, pairs: FloatArray, exchanged: FloatArray) -> tuple[float, float]:
        """Return B and W of a population with these shares of pairs and of exchanged pairs."""
        shares = np.stack(self.ranking_shares(pairs, exchanged))
        return dispersion_parts(self.gram, shares, *equal_weights(2))


class SignFlips(PermutationStatistic):
    """The statistic of paired samples under random signs; ``sign_sums`` are the sums of the observed signs."""

    def __init__(self, judges: Judges, sign_sums: FloatArray, seed: int, sample: Sample | None = None) -> None:
        self.judges, self.sample = judges, sample
        self.rng = named_generator(seed, "signs of judges", judges.before, judges.after, judges.counts, sign_sums)
        self.value = float(judges.statistics(sign_sums[None])[0])
        self.tolerance = RELATIVE_TOLERANCE * float(4 * np.abs(judges.gram).mean())

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next random signs; the sum of c signs is 2 Binomial(c, 1/2) - c."""
        counts, parts = self.judges.counts.astype(np.int64), []
        for part in slices(n_permutations, max(CHUNK_ENTRIES // len(counts), 1)):
            n_positive = self.rng.binomial(counts, 0.5, size=(part.stop - part.start, len(counts)))
            parts.append(self.judges.statistics((2 * n_positive - counts).astype(np.float64)))
        return np.concatenate(parts)

    def moments(self) -> Moments:
        """Return the exact moments over all signs."""
        return self.judges.moments(self.judges.biased)

    def min_pvalue(self) -> float:
        """Return the probability of the observed signs, or of all opposite ones."""
        return float(2.0 ** (1 - self.judges.n_judges))

    def standard_error(self) -> float:
        """Return the Monte Carlo standard error of the statistic."""
        if self.sample is None or not self.sample.is_estimated:
            return 0.0
        judges = self.judges
        before, after = judges.ranking_shares(judges.counts, 0 * judges.counts)
        change = (before - after)[:, None]
        return self.sample.standard_error(change / judges.n_pairs, change, np.zeros(len(change)))


@dataclass(frozen=True, eq=False)
class PairedEffect(Effect):
    """The share of the dispersion of rankings that lies between before and after, estimated from pairs of judges."""

    judges: Judges

    @property
    def scale(self) -> float:
        """The mean absolute kernel value of a ranking with itself."""
        return diagonal_scale(self.judges.gram)

    def parts(self) -> tuple[float, float]:
        """Return unbiased estimates of B and W; nan for a single judge."""
        judges, c, n = self.judges, self.judges.counts, float(self.judges.n_judges)
        if n < 2:
            return float("nan"), float("nan")
        diagonal, within = np.diagonal(judges.gram), 0.0
        for rows, counts in zip((judges.before, judges.after), judges.ranking_shares(c, 0 * c), strict=True):
            self_pairs = float(c @ diagonal[rows])
            within += self_pairs / n - (float(counts @ judges.gram @ counts) - self_pairs) / (n * (n - 1))
        return float(c @ judges.change_gram @ c - judges.self_pairs) / (4 * n * (n - 1)), within / 2

    def mcse(self, error: float) -> float:
        """Return the Monte Carlo standard error; B is a quarter of the statistic."""
        return super().mcse(error / 4)

    def population_parts(self) -> tuple[float, float]:
        """Return B and W of the population in which influences are computed."""
        return self.judges.population_parts(*self.judges.mixture(self.judges.prior_weight))

    def influences(self, total: float) -> list[InfluenceSample]:
        """Return the influences of judges, as observed and with before and after exchanged."""
        judges = self.judges
        pairs, exchanged = judges.mixture(judges.prior_weight)
        between = judges.change_gram @ (pairs - exchanged) / (2 * total)
        shares, diagonal = judges.ranking_shares(pairs, exchanged), np.diagonal(judges.gram)
        at_rows = [diagonal - 2 * (judges.gram @ side) for side in shares]
        within = [
            at_rows[0][first] + at_rows[1][second]
            for first, second in ((judges.before, judges.after), (judges.after, judges.before))
        ]
        return [
            InfluenceSample(
                np.concatenate([between, -between]),
                np.concatenate(within) / (2 * total),
                np.concatenate([pairs, exchanged]),
                float(judges.n_judges),
            )
        ]

    def null_moments(self, null: Moments) -> Moments:
        """Return the moments of B under random signs."""
        return self.judges.moments(biased=False).scaled(1 / 4)

    def explained(self, total: float) -> float:
        """Return how much of the permuted dispersion one unit of the effect explains: judges agree with themselves."""
        permuted = self.judges.self_pairs / self.judges.n_judges
        return 4 * total / permuted if permuted > 0 else 0.0
