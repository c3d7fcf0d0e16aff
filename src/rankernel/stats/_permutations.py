"""The permutation engine that all tests share.

A test is a :class:`PermutationStatistic`: the statistic of the data as a function of sums over the Gram matrix, a
stream of its values under random permutations, and its exact moments over all permutations where they are known.
:func:`sample_null_distribution` turns it into p-values. The module also has the permutation schemes (divide voters
into two samples, shuffle values within strata), the sums over pairs of voters, and adaptive stopping.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rankernel import _loops
from rankernel._utils import FloatArray, IntArray, RankArray
from rankernel._utils.checks import check_integer, check_number
from rankernel._utils.resources import run_interruptibly
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.errors import RankingError
from rankernel.gram.evaluator import slices
from rankernel.stats._moments import BLOCK_ROWS, Moments

if TYPE_CHECKING:
    from rankernel.stats._effects import Effect

CHUNK_ENTRIES = 2**22  # entries of an array that has one row for each permutation
VOTER_BYTES = 64  # memory for each voter of a test that shuffles voters one by one
RELATIVE_TOLERANCE = 1e-13  # of the mean absolute kernel value: statistics that are closer differ by rounding only
MAX_HYPERGEOMETRIC = 10**9  # voters in NumPy's multivariate hypergeometric sampler
VOTERS_PER_ROW = 32  # from which hypergeometric sampling is quicker than a shuffle of voters


def named_generator(seed: Seed, purpose: str) -> np.random.Generator:
    """Return a generator whose stream depends on the seed and the purpose only."""
    return np.random.default_rng(int(stream_key(as_seed(seed), purpose)))


# ---------------------------------------------------------------------- the engine


class PermutationStatistic(ABC):
    """A test statistic and its distribution under random permutations of the data.

    Attributes
    ----------
    value : float
        The statistic of the data.
    tolerance : float
        Statistics that differ by less are ties.
    min_moment_draws : int
        Least number of permutations from which moments are estimated if they are not known exactly.
    """

    value: float
    tolerance: float
    min_moment_draws: int = 1000

    @abstractmethod
    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next random permutations."""

    def moments(self) -> Moments | None:
        """Return the exact moments over all permutations; None if unknown, skewness nan if only that is unknown."""
        return None

    def min_pvalue(self) -> float:
        """Return a lower bound of the p-value: the probability of the observed arrangement of the data."""
        return 0.0

    def effect(self) -> Effect | None:
        """Return the effect size; None if it is not defined."""
        return None

    def standard_errors(self) -> tuple[float, float]:
        """Return the Monte Carlo standard errors of statistic and effect; 0 if kernel values are exact."""
        return 0.0, 0.0


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """The distribution of a statistic under the null hypothesis, and the p-values of the observed value."""

    values: FloatArray  # the statistic for random permutations
    pvalue: float  # by permutations
    moments: Moments  # exact over all permutations, or estimates of those that are not known
    n_moment_draws: int  # permutations behind estimated moments; 0 if all moments are exact
    moment_pvalue: float  # by the Pearson type III approximation


def sample_null_distribution(statistic: PermutationStatistic, n_permutations: int | Adaptive) -> NullDistribution:
    """Return the null distribution of a statistic."""
    moments = statistic.moments()
    values, pvalue = sample_permutations(statistic, n_permutations)
    n_moment_draws = 0
    if moments is None or np.isnan(moments.skewness):
        missing = statistic.min_moment_draws - len(values)
        draws = np.concatenate([values, statistic.draw(missing)]) if missing > 0 else values
        estimated = Moments.from_sample(draws)
        moments = estimated if moments is None else Moments(moments.mean, moments.variance, estimated.skewness)
        n_moment_draws = len(draws)
    moment_pvalue = max(moments.sf(statistic.value - statistic.tolerance), statistic.min_pvalue())
    return NullDistribution(values, pvalue, moments, n_moment_draws, min(moment_pvalue, 1.0))


def sample_permutations(statistic: PermutationStatistic, n_permutations: int | Adaptive) -> tuple[FloatArray, float]:
    """Return the statistic for random permutations, and the permutation p-value.

    The p-value of B permutations is (1 + #{values >= statistic}) / (1 + B), which is valid for every B.
    """
    observed, values = np.array([statistic.value]), np.empty(0)
    if isinstance(n_permutations, int):
        values = statistic.draw(n_permutations)
        n_exceedances = int(count_exceedances(values, observed, statistic.tolerance)[0])
        return values, (1 + n_exceedances) / (1 + len(values))
    rule, look, n_exceedances = n_permutations.stopping_rule(), -1, 0
    while look < 0 or not rule.stops(look, n_exceedances):
        look += 1
        values = np.concatenate([values, statistic.draw(rule.looks[look] - len(values))])
        n_exceedances = int(count_exceedances(values, observed, statistic.tolerance)[0])
    return values, rule.pvalue(look, n_exceedances)


def count_exceedances(null: FloatArray, values: FloatArray, tolerance: float) -> IntArray:
    """Return how many entries of a null distribution are at least as large as each value, ties included."""
    n_below = np.searchsorted(np.sort(null), values - tolerance, side="left")
    return np.asarray(len(null) - n_below, dtype=np.int64)


def arrangement_probability(strata: IntArray, groups: IntArray, rows: IntArray, counts: IntArray) -> float:
    """Return the probability that permutations within strata give the observed arrangement of voters.

    Cell i has ``counts[i]`` voters of stratum ``strata[i]``, group ``groups[i]`` and ranking ``rows[i]``.

    Examples
    --------
    Two voters of each group, all different: one of six divisions.

    >>> one = np.ones(4, dtype=np.int64)
    >>> round(arrangement_probability(0 * one, np.array([0, 0, 1, 1]), np.arange(4), one), 6)
    0.166667
    """
    from scipy.special import gammaln

    def log_factorials(*labels: IntArray) -> float:
        cells = np.unique(np.stack((strata, *labels)), axis=1, return_inverse=True)[1]
        return float(gammaln(np.bincount(cells.ravel(), counts) + 1).sum())

    by_cell = float(gammaln(counts + 1).sum())
    return float(np.exp(log_factorials(groups) + log_factorials(rows) - by_cell - log_factorials()))


# ---------------------------------------------------------------------- adaptive stopping


@dataclass(frozen=True)
class Adaptive:
    """Number of permutations decided while they are drawn; pass it as ``n_permutations``.

    A test stops at one of several looks, fixed in advance, once the number of exceedances would be improbable (0.001
    over all looks) if the p-value were exactly ``alpha`` (Gandy 2009). The p-value of a test that stops is that of its
    path (Fay, Kim and Hachey 2007): under the null hypothesis exceedances follow Polya's urn, so the probability of
    each stopping point is known, and the p-value is the total probability of all stopping points with at least as much
    evidence. It is exact: P(p <= a) <= a for every a.

    Parameters
    ----------
    alpha : float
        Significance level: sampling continues while the p-value may be on either side of it.
    max_permutations : int
        Largest number of permutations.

    Examples
    --------
    >>> from rankernel import datasets, mmd_test
    >>> same = mmd_test(datasets.uniform(30, 4, rng=1), datasets.uniform(30, 4, rng=2), n_permutations="adaptive")
    >>> len(same.null_distribution), same.pvalue > 0.2
    (100, True)
    """

    alpha: float = 0.05
    max_permutations: int = 100_000

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0, 1)
        check_integer("max_permutations", self.max_permutations)

    def __str__(self) -> str:
        return f"at most {self.max_permutations:,} permutations, fewer if p is clearly above or below {self.alpha:g}"

    def stopping_rule(self) -> StoppingRule:
        """Return the looks and the stopping boundaries."""
        return stopping_rule(self.alpha, self.max_permutations)


PermutationsLike = int | Literal["adaptive"] | Adaptive


def check_permutations(value: Any) -> int | Adaptive:
    """Return the number of permutations, or the rule that decides it."""
    if isinstance(value, str) and value == "adaptive":
        return Adaptive()
    return value if isinstance(value, Adaptive) else check_integer("n_permutations", value)


@lru_cache(maxsize=32)
def stopping_rule(alpha: float, max_permutations: int) -> StoppingRule:
    """Return looks at 100 permutations and then 1.5 times as many each, with binomial stopping boundaries."""
    from scipy.stats import binom

    first = min(100, max_permutations)
    n_looks = 1 + ceil(log(max_permutations / first) / log(1.5))
    looks = np.unique(np.geomspace(first, max_permutations, n_looks).round().astype(np.int64))
    risk = 1e-3 / len(looks) / 2  # the error probability is shared by looks and by the two boundaries
    # The largest number of exceedances with P(Bin <= s) <= risk, and the smallest with P(Bin >= s) <= risk.
    low = binom.ppf(risk, looks, alpha).astype(np.int64)
    low -= binom.cdf(low, looks, alpha) > risk
    high = binom.isf(risk, looks, alpha).astype(np.int64) + 1
    return StoppingRule(tuple(looks.tolist()), tuple(low.tolist()), tuple(high.tolist()))


@dataclass(frozen=True)
class StoppingRule:
    """After ``looks[k]`` permutations a test stops with at most ``low[k]`` or at least ``high[k]`` exceedances."""

    looks: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def stops(self, look: int, n_exceedances: int) -> bool:
        """Return whether a test stops at a look."""
        last = look == len(self.looks) - 1
        return last or n_exceedances <= self.low[look] or n_exceedances >= self.high[look]

    def min_pvalue(self) -> float:
        """Return the smallest p-value: no exceedance at the first look where that stops the test."""
        can_stop = [look for look, low in enumerate(self.low) if low >= 0]
        return self.pvalue(can_stop[0] if can_stop else len(self.looks) - 1, 0)

    def pvalue(self, look: int, n_exceedances: int) -> float:
        """Return the null probability of stopping here or with more evidence against the null hypothesis.

        Stopping early with few exceedances is the strongest evidence, stopping early with many the weakest.
        """
        reached = look_probabilities(self, look)
        if n_exceedances >= self.high[look]:
            weaker = sum(look_probabilities(self, k)[self.high[k] :].sum() for k in range(look))
            return float(1 - weaker - reached[n_exceedances + 1 :].sum())
        stronger = sum(look_probabilities(self, k)[: self.low[k] + 1].sum() for k in range(look))
        return float(stronger + reached[: n_exceedances + 1].sum())


@lru_cache(maxsize=256)
def look_probabilities(rule: StoppingRule, look: int) -> FloatArray:
    """Return the null probability of reaching a look with 0, 1, ... exceedances."""
    if look == 0:
        return np.full(rule.looks[0] + 1, 1 / (rule.looks[0] + 1))  # all numbers are equally likely
    reached, (last, here) = look_probabilities(rule, look - 1), rule.looks[look - 1 : look + 1]
    probabilities = np.zeros(here + 1)
    for n_exceedances in range(max(rule.low[look - 1] + 1, 0), min(rule.high[look - 1], last + 1)):
        first, pmf = polya_pmf(n_exceedances, last, here - last)
        start = n_exceedances + first
        probabilities[start : start + len(pmf)] += reached[n_exceedances] * pmf
    return probabilities


def polya_pmf(n_exceedances: int, n_before: int, n_draws: int) -> tuple[int, FloatArray]:
    """Return the distribution of exceedances in ``n_draws`` more permutations by Polya's urn.

    From the first number of non-negligible probability on; the range covers more than 12 standard deviations.
    """
    from scipy.special import betaln, gammaln

    a, b = n_exceedances + 1, n_before - n_exceedances + 1
    mean = n_draws * a / (a + b)
    reach = 12 * sqrt(mean * b / (a + b) * (1 + n_draws / (a + b))) + 40 * (1 + n_draws / n_before)
    first, last = max(int(mean - reach), 0), min(int(mean + reach) + 1, n_draws)
    k = np.arange(first, last + 1)
    log_choose = gammaln(n_draws + 1) - gammaln(k + 1) - gammaln(n_draws - k + 1)
    return first, np.asarray(np.exp(log_choose + betaln(k + a, n_draws - k + b) - betaln(a, b)))


# ---------------------------------------------------------------------- permutation schemes


class RandomDivisions:
    """A stream of random divisions of voters into two samples, as the number of voters of each row in the first.

    If voters are permuted, these numbers are multivariate hypergeometric. ``table`` has the number of voters by
    stratum, sample and row; the first sample keeps its size in each stratum.
    """

    def __init__(self, table: IntArray, seed: int) -> None:
        check_exchangeable(table)
        self.n_rows = table.shape[2]
        self.strata = [
            StratumDivisions(
                voters.sum(axis=0), int(voters[0].sum()), named_generator(seed, f"divisions of stratum {s}")
            )
            for s, voters in enumerate(table)
        ]

    def draw(self, n_divisions: int) -> Iterator[FloatArray]:
        """Yield the next divisions in chunks, each an array of shape (n, n_rows)."""
        for part in slices(n_divisions, max(CHUNK_ENTRIES // self.n_rows, 1)):
            counts = np.zeros((part.stop - part.start, self.n_rows))
            for stratum in self.strata:
                stratum.add_to(counts)
            yield counts


class StratumDivisions:
    """Random divisions of the voters of one stratum, ``size`` of them in the first sample."""

    def __init__(self, voters: IntArray, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.rows = np.flatnonzero(voters)
        self.counts = voters[self.rows]
        n_voters = int(self.counts.sum())
        self.by_row = n_voters >= VOTERS_PER_ROW * len(self.rows)
        if self.by_row and n_voters >= MAX_HYPERGEOMETRIC:
            raise RankingError(
                f"there are {n_voters:,} voters, and at most {MAX_HYPERGEOMETRIC:,} can be permuted; divide all counts "
                "by the same number: with this many voters the p-value of any difference is close to 0"
            )
        if not self.by_row:
            self.row_of_voter = np.repeat(self.rows, self.counts)
            self.state = random_state(rng)

    def add_to(self, counts: FloatArray) -> None:
        """Add a random division to each row of ``counts``."""
        if self.by_row:
            drawn = self.rng.multivariate_hypergeometric(self.counts, self.size, size=len(counts), method="marginals")
            counts[:, self.rows] += drawn.astype(np.float64)
        else:
            _loops.permutations.choose_voters(self.row_of_voter, self.size, self.state, counts)


class Shuffles:
    """A stream of random permutations, within strata, of one value for each voter."""

    def __init__(self, values: IntArray, strata: IntArray, rng: np.random.Generator) -> None:
        self.values, self.strata = values.astype(np.int32), sort_by_label(strata)
        self.state = random_state(rng)

    def draw(self, n_permutations: int, n_entries: int = 1) -> Iterator[RankArray]:
        """Yield the next permutations in chunks, each of shape (n, n_voters), valid until the next one.

        ``n_entries`` is the number of array entries that the caller needs for each permutation.
        """
        size = max(CHUNK_ENTRIES // max(n_entries, len(self.values)), 1)
        buffer = np.empty((min(size, n_permutations), len(self.values)), dtype=np.int32)
        for part in slices(n_permutations, size):
            shuffled = buffer[: part.stop - part.start]
            run_interruptibly(_loops.permutations.shuffle_within, self.values, *self.strata, self.state, shuffled)
            yield shuffled


def random_state(rng: np.random.Generator) -> Any:
    """Return a random state for compiled loops."""
    return rng.integers(2**64, size=4, dtype=np.uint64)


def sort_by_label(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return the indices of labels 0, 1, ... sorted by label, and where each label begins."""
    return np.argsort(labels, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(labels))])


def is_exchangeable(table: IntArray) -> bool:
    """Return whether any stratum has voters of two groups; ``table`` is by stratum, group and row."""
    return bool(((table.sum(axis=2) > 0).sum(axis=1) > 1).any())


def check_exchangeable(table: IntArray) -> None:
    """Raise an error if no stratum has voters of two groups."""
    if not is_exchangeable(table):
        raise RankingError("no stratum has voters of two groups, so there is nothing to permute; use coarser strata")


# ---------------------------------------------------------------------- sums over pairs of voters


def off_diagonal_forms(gram: FloatArray, vectors: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{u \ne v} c_u c_v K_{uv}` for each row c of ``vectors``.

    Matrix products over blocks of the lower triangle take half the time of one product with the full matrix, and no
    second matrix of its size. The diagonal is left out, so a large diagonal causes no rounding errors.
    """
    total = np.zeros(len(vectors))
    for rows in slices(len(gram), BLOCK_ROWS):
        block = gram[rows, rows].copy()
        np.fill_diagonal(block, 0.0)
        products = 2 * (vectors[:, : rows.start] @ gram[rows, : rows.start].T) if rows.start else 0.0
        total += np.einsum("pu,pu->p", products + vectors[:, rows] @ block, vectors[:, rows])
    return total


def pair_sums(gram: FloatArray, counts: FloatArray, biased: bool) -> FloatArray:
    """Return for each row of counts the sum of the kernel over ordered pairs of voters.

    Pairs of a voter with itself are included if ``biased``.
    """
    equal_pairs = counts * (counts - (not biased))
    return np.asarray(off_diagonal_forms(gram, counts) + equal_pairs @ np.diagonal(gram))
