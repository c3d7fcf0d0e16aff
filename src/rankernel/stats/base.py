r"""The common parts of kernel tests: the sample, the effect size with its confidence interval, and the result.

**Sample.** A row of count c is c voters. Equal rankings share one row of the Gram matrix, which is never expanded.
Monte Carlo draws depend on the ranking only, so an estimated kernel is one fixed symmetric function of two rankings,
and a permutation test with it has its exact level. The entry of two voters with the same ranking is the mean over pairs
of different draws, which is unbiased.

**Effect.** An effect is a share :math:`e = B / (B + W)` of the dispersion. The distribution of its estimate is
approximated for every true effect. If e = 0, the estimate follows the null distribution of the test, whose moments are
known. If e > 0, the dispersion within is smaller, which scales the null distribution by :math:`1 - e` for the smaller
dispersion and by :math:`1 - e` again because the estimate is a share; and the sampled voters shift the estimate, to
first order by their influences a on B and b on W,

.. math:: \hat e - e \approx (1 - e) \, \sum_i a_i / n - e \, \sum_i b_i / n .

Influences are computed in a population with the observed effect; a is proportional to the root of :math:`e (1 - e)`, b
to :math:`1 - e`. Variances and third cumulants of the two parts add, and a Pearson type III distribution has them.

The 95 % interval inverts two one-sided 2.5 % tests. At e = 0 the distribution is the null distribution. The p-value
from moments is at least the probability of the observed arrangement, which the approximation ignores: 1/10 for three
voters against three. So the lower limit is 0 unless the p-value is below 0.025.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rankernel._utils import FloatArray, Indices, IntArray
from rankernel._utils.checks import SMALLEST_PVALUE, check_labels, check_numbers, printable
from rankernel._utils.notebook import box, table
from rankernel._utils.resources import check_task
from rankernel.data import Data, with_counts
from rankernel.errors import NotCharacteristicWarning, RankingError, SamplingWarning, warn
from rankernel.gram.montecarlo import MonteCarlo
from rankernel.gram.plan import MethodLike, Plan
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.kernels.exponential import Mallows
from rankernel.rankings import FREE, Rankings
from rankernel.stats._permutations import (
    MIN_SPLITTING_PVALUE,
    CentredKernel,
    Moments,
    NullDistribution,
    PermutationStatistic,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REDRAWN_ROWS = 64  # rows that are drawn again to estimate Monte Carlo errors
MAX_RELATIVE_ERROR = 0.5  # Monte Carlo error over the standard deviation of the null distribution, without a warning
ROUNDING = 1e-12  # dispersions below this part of the mean diagonal of the Gram matrix are rounding errors
MAX_SCALE = 1e90  # largest kernel value; the third moment of a statistic takes cubes of values
PRIOR_VOTERS = 0.5  # pooled voters added to each group, so that a group of identical rankings has some variance

CACHED = ("gram", "centred", "redrawn")  # attributes of a sample that can be computed again

Interval = tuple[float, float]
SummaryLines = list[tuple[str, str]]


# ---------------------------------------------------------------------- the sample


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct rankings with their numbers of voters, and the kernel between them."""

    data: Data  # one row for each row of the Gram matrix; its counts are the numbers of voters
    kernel: Kernel | None  # with all parameters resolved; None if a Gram matrix was given without one
    plan: Plan | None  # of the kernel values; None if a Gram matrix was given
    given_gram: FloatArray | None = None
    rows: Indices | None = None  # the rows of the plan; None for all
    n_jobs: int | None = None

    @classmethod
    def planned(
        cls, data: Data, kernel: Any, method: MethodLike, n_jobs: int | None = None, task: str | None = None
    ) -> Sample:
        """Return the sample of the data with the plan of a kernel; ``task`` names its memory requirement."""
        plan = check_kernel(kernel).plan(data, method=method)
        warn_if_not_characteristic(plan.kernel, data)
        if task is not None:
            check_task(task, len(plan._X))
        return cls.from_plan(data, plan, n_jobs)

    @classmethod
    def from_plan(cls, data: Data, plan: Plan, n_jobs: int | None = None) -> Sample:
        """Return the sample of the data that a plan was made for."""
        index = np.arange(len(plan._X))[plan._rows]
        _, first = np.unique(index, return_index=True)
        distinct = with_counts(data[first], np.bincount(index, data.counts))
        return cls(distinct, plan.kernel, plan, n_jobs=n_jobs)

    @classmethod
    def from_gram(cls, data: Data, gram: Any, kernel: Any) -> Sample:
        """Return the sample of data whose Gram matrix the caller gave, one row for each row of the data."""
        values = check_numbers("precomputed", gram, (len(data), len(data)))
        if not np.allclose(values, values.T):
            raise ValueError("precomputed is not symmetric; give a symmetric Gram matrix")
        check_scale(values)
        return cls(data, None if kernel is None else as_kernel(kernel), None, values)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out a Gram matrix that can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name not in CACHED}

    def release(self) -> None:
        """Free the Gram matrix, which is computed again on the next access."""
        for name in CACHED:
            self.__dict__.pop(name, None)

    @cached_property
    def gram(self) -> FloatArray:
        """The Gram matrix, with the kernel of two different voters with the same ranking on its diagonal."""
        if self.given_gram is not None:
            return self.given_gram
        assert self.plan is not None
        return voter_gram(self.plan, self.n_jobs, bool((self.data.counts > 1).any()))

    @cached_property
    def centred(self) -> CentredKernel:
        """The kernel between different voters, centred over voters."""
        return CentredKernel.from_gram(self.gram, self.data.counts.astype(np.float64), biased=False)

    @property
    def index(self) -> Indices:
        """The row of the Gram matrix of each row of the original data."""
        rows = slice(None) if self.plan is None else self.plan._rows
        return np.arange(len(self.data))[rows]

    @property
    def method(self) -> str:
        """How kernel values were computed."""
        return "given" if self.plan is None else str(self.plan.method)

    @property
    def is_estimated(self) -> bool:
        """Whether kernel values are Monte Carlo estimates."""
        return self.plan is not None and self.plan._estimator is not None

    def subset(self, rows: Indices, counts: IntArray) -> Sample:
        """Return the sample of the given rows with other numbers of voters."""
        plan_rows = rows if self.rows is None else self.rows[rows]
        gram = self.gram[np.ix_(rows, rows)]
        return Sample(with_counts(self.data[rows], counts), self.kernel, self.plan, gram, plan_rows)

    def standard_error(self, left: FloatArray, right: FloatArray, own: FloatArray) -> float:
        r"""Return the Monte Carlo standard error of a sum of the kernel over pairs of voters; 0 if values are exact.

        The weights of pairs of voters of two rows are the products of ``left`` and ``right``, less ``own`` for voters
        of the same row. An estimated matrix has the inner products of embeddings with independent errors :math:`e_u`,
        which change a sum with the weights :math:`\Lambda`, to first order, by
        :math:`2 \sum_u \langle e_u, \sum_v \Lambda_{uv} \phi_v \rangle`. Drawing some rows again estimates the
        variance of these terms. It includes the error of the other factor, so it is too large, by at most a factor 2.
        """
        if not self.redrawn:
            return 0.0
        parts = []
        for rows, change in self.redrawn:
            pair_weights = left[rows] @ right.T
            pair_weights[np.arange(len(rows)), rows] -= own[rows]
            parts.append(np.einsum("uv,uv->u", pair_weights, change) ** 2 / 2)
        squares = np.concatenate(parts)
        return float(np.sqrt(4 * len(self.gram) * squares.mean()))

    @cached_property
    def redrawn(self) -> list[tuple[Indices, FloatArray]]:
        """The changes of at least 64 rows with new draws, several times the same rows if necessary; empty if exact."""
        changes: list[tuple[Indices, FloatArray]] = []
        while sum(len(rows) for rows, _ in changes) < REDRAWN_ROWS:
            change = self.redraw(len(changes) + 1)
            if change is None:
                return []
            changes.append(change)
        return changes

    def redraw(self, times: int) -> tuple[Indices, FloatArray] | None:
        """Return up to 64 rows, and the change of the Gram matrix there with new draws; None if values are exact."""
        other = None if self.plan is None else self.plan._distinct._redrawn(times)
        if other is None:
            return None
        all_rows = np.arange(len(self.data)) if self.rows is None else self.rows
        rows = np.sort(np.random.default_rng(times).permutation(len(all_rows))[:REDRAWN_ROWS])
        again = other.block(all_rows[rows], all_rows)
        again[np.arange(len(rows)), rows] = voter_diagonal(other, bool((self.data.counts > 1).any()))[all_rows[rows]]
        return rows, again - self.gram[rows]


def check_kernel(kernel: Any) -> Kernel:
    """Return a kernel: the Mallows kernel at the median heuristic for None."""
    return Mallows(nu="median") if kernel is None else as_kernel(kernel)


def voter_gram(plan: Plan, n_jobs: int | None = None, has_equal_voters: bool = True) -> FloatArray:
    """Return the Gram matrix of distinct rankings, with the kernel of two different voters on its diagonal."""
    distinct = plan._distinct
    matrix = np.asarray(distinct.gram(n_jobs=n_jobs), dtype=np.float64)
    if isinstance(plan.method, MonteCarlo):
        np.fill_diagonal(matrix, voter_diagonal(distinct, has_equal_voters))
    check_scale(matrix)
    return matrix


def check_scale(gram: FloatArray) -> None:
    """Raise an error if squares and cubes of kernel values would overflow, or underflow to 0."""
    largest = max(float(gram.max(initial=0.0)), -float(gram.min(initial=0.0)))
    if largest and not 1 / MAX_SCALE < largest < MAX_SCALE:
        raise ValueError(
            f"the kernel has values up to {largest:.3g}, and tests need values between {1 / MAX_SCALE:g} and "
            f"{MAX_SCALE:g}; multiply the kernel, or the precomputed matrix, by a constant"
        )


def voter_diagonal(plan: Plan, has_equal_voters: bool) -> FloatArray:
    """Return the kernel of two different voters with the same ranking.

    Its unbiased estimate needs two independent blocks of draws. With a single block and no two voters with the same
    ranking, the estimate is the biased one of :meth:`Plan.gram`, which unbiased statistics do not use.
    """
    return plan.diagonal(unbiased=has_equal_voters or plan._evaluator.n_blocks > 1)


def stratum_codes(strata: Any, n_rows: int) -> IntArray:
    """Return the number of the stratum of each row; all 0 for None."""
    if strata is None:
        return np.zeros(n_rows, dtype=np.int64)
    codes = np.unique(check_labels("strata", strata, n_rows), return_inverse=True)[1]
    return np.asarray(codes.ravel(), dtype=np.int64)


def check_voters_needed(data: Data, least: int, name: str = "X", noun: str = "voter(s)") -> None:
    """Raise an error if data have too few voters for a statistic."""
    if data.n_voters < least:
        raise RankingError(f"{name} has {data.n_voters} {noun}; this statistic needs at least {least}")


def warn_if_not_characteristic(kernel: Kernel, data: Data) -> None:
    """Warn if the embedding has too few dimensions to distinguish all distributions of full rankings.

    If no row compares more than two items, no kernel identifies more than the mean sign of each pair, which the Kendall
    kernel identifies: a row that states nothing is embedded half-way between the two orders.
    """
    n_items = data.n_items
    facts = kernel.facts(n_items)
    of_pairs = facts.form is not None and facts.form.statistic == "pairs"
    if of_pairs and isinstance(data, Rankings) and ((data.ranks != FREE).sum(axis=1) <= 2).all():
        return
    if facts.max_dimension < math.factorial(n_items):
        warn(
            f"{kernel} is not characteristic on {n_items} items: different distributions can have the same mean "
            "embedding, which no sample size detects; Mallows(nu) is characteristic",
            NotCharacteristicWarning,
        )


def moment_pvalue_text(moment_pvalue: float) -> str:
    """Return a p-value from moments; one that may have underflowed, and one at which splitting stops, as bounds."""
    if moment_pvalue < SMALLEST_PVALUE:
        return f"< {SMALLEST_PVALUE:g}"
    return f"{'≤ ' if is_splitting_bound(moment_pvalue) else ''}{moment_pvalue:.2g}"


def is_splitting_bound(moment_pvalue: float) -> bool:
    """Return whether a p-value is an upper bound: the one at which multilevel splitting stops."""
    return math.isclose(moment_pvalue, MIN_SPLITTING_PVALUE)


def warn_if_noisy(mcse: float, std: float, of: str = "the statistic", std_of: str = "its null distribution") -> None:
    """Warn if the Monte Carlo error of a statistic is large relative to its null distribution."""
    if mcse > MAX_RELATIVE_ERROR * std > 0:
        warn(
            f"kernel values are estimated, and the Monte Carlo standard error of {of}, {mcse:.2g}, is large relative "
            f"to the standard deviation of {std_of}, {std:.2g}: the test has its level but loses power; increase "
            "n_draws",
            SamplingWarning,
        )


# ---------------------------------------------------------------------- the effect


class InfluenceSample(NamedTuple):
    """First-order influences of the voters of one independent sample, as shares of B + W."""

    between: FloatArray  # a: the influence on B of a voter with each ranking
    within: FloatArray  # b: the influence on W
    shares: FloatArray  # the share of each ranking in the population
    n_voters: float


class Effect(ABC):
    """An effect size B / (B + W), estimated without bias from pairs of different voters."""

    @abstractmethod
    def parts(self) -> tuple[float, float]:
        """Return unbiased estimates of B and W."""

    @abstractmethod
    def population_parts(self) -> tuple[float, float]:
        """Return B and W of the population in which influences are computed."""

    @abstractmethod
    def influences(self, total: float) -> Iterable[InfluenceSample]:
        """Return the influences of voters, as shares of ``total``, the estimate of B + W."""

    @abstractmethod
    def null_moments(self, null: Moments) -> Moments:
        """Return the moments of the estimate of B under the null hypothesis.

        ``null`` has the moments of the test statistic, for use where those of B are not known exactly.
        """

    def explained(self, total: float) -> float:
        """Return how much of the permuted dispersion one unit of the effect explains: 1 if voters are permuted."""
        return 1.0

    @property
    def scale(self) -> float:
        """The scale of rounding errors of B + W: the mean absolute kernel value of a ranking with itself."""
        return 0.0

    @cached_property
    def value(self) -> float:
        """The estimate: 0 if nothing differs at all, nan if it is undefined."""
        return share(*self.parts(), self.scale)

    def mcse(self, error: float) -> float:
        """Return an upper bound of the Monte Carlo standard error, from that of the estimate of B; nan if undefined.

        Errors of W change an effect e by e times a smaller relative error; without the factor 1 - e of the errors of
        B, the bound covers both.
        """
        if not error:
            return 0.0
        total = sum(self.parts()) if np.isfinite(self.value) else 0.0
        return error / total if total > 0 else float("nan")

    def interval(self, null: Moments, mcse: float, confidence_level: float = 0.95) -> Interval:
        """Return the confidence interval, between 0 and 1; ``mcse`` is the Monte Carlo standard error of the effect."""
        if np.isnan(self.value):
            return float("nan"), float("nan")
        total = sum(self.parts())
        null = self.null_moments(null).scaled(1 / total) if total > 0 else Moments()
        if not (null.variance > 0 or mcse > 0) or not total > 0:
            return 0.0, 1.0  # the effect is a share of the dispersion, which is 0, or does not vary
        moments = self.moments_at(null, mcse, total)
        value, alpha = self.value, (1 - confidence_level) / 2
        low = first_true(lambda effect: moments(effect).sf(value) >= alpha, 0.0, min(value, 1.0))
        high = first_true(lambda effect: 1 - moments(effect).sf(value) < alpha, max(value, 0.0), 1.0)
        return low, high

    def moments_at(self, null: Moments, mcse: float, total: float) -> Callable[[float], Moments]:
        """Return the moments of the estimate as a function of the true effect; ``null`` are those for no effect."""
        base, explained = share(*self.population_parts(), 0.0), self.explained(total)
        cumulants = influence_cumulants(self.influences(total))

        def unexplained(effect: float) -> float:
            """Return the part of the permuted dispersion that is left at an effect."""
            return max(1 - explained * effect, 0.0)

        # The observed difference is partly chance, which adds twice the variance of the null distribution. Without it
        # the variance of B along the true difference is larger, as true differences lie where voters differ most.
        inflation, variance = 1.0, float(cumulants[0][0])
        if variance > 0 and self.value > 0 and null.variance > 0:
            by_chance = 2 * null.variance * unexplained(base) ** 2
            difference = max(self.value, float(null.variance**0.5))
            inflation = max((variance - by_chance) / difference * base / variance, 1.0)

        def moments(effect: float) -> Moments:
            rest = 1 - effect
            result = null.scaled(rest * unexplained(effect)) + Moments(effect, mcse**2)
            if 0 < base < 1 and unexplained(base) > 0:
                ratio = effect * unexplained(effect) / (base * unexplained(base)) * inflation
                a, b = rest * np.sqrt(ratio), -effect * rest / (1 - base)
                second = np.array([a**2, 2 * a * b, b**2]) @ cumulants[0]
                third = np.array([a**3, 3 * a**2 * b, 3 * a * b**2, b**3]) @ cumulants[1]
                result += Moments(0.0, float(second), float(third))
            return result

        return moments


def share(between: float, within: float, scale: float) -> float:
    """Return B / (B + W): 0 if nothing differs, nan if Monte Carlo errors make the sum negative.

    Examples
    --------
    >>> share(1.0, 3.0, 1.0), share(0.0, 1e-16, 1.0), share(0.1, -0.2, 1.0)
    (0.25, 0.0, nan)
    """
    total = between + within
    if abs(total) <= ROUNDING * scale:
        return 0.0
    return between / total if total > 0 else float("nan")


def diagonal_scale(gram: FloatArray) -> float:
    """Return the mean absolute value of the diagonal."""
    return float(np.abs(np.diagonal(gram)).mean())


def influence_cumulants(samples: Iterable[InfluenceSample]) -> tuple[FloatArray, FloatArray]:
    """Return the second (aa, ab, bb) and third (aaa, aab, abb, bbb) cumulants of the mean influences of all samples."""
    second, third = np.zeros(3), np.zeros(4)
    for sample in samples:
        p, n = sample.shares, sample.n_voters
        a, b = sample.between - p @ sample.between, sample.within - p @ sample.within
        second += np.array([p @ a**2, p @ (a * b), p @ b**2]) / (n - 1)
        third += np.array([p @ (a ** (3 - k) * b**k) for k in range(4)]) / n**2
    return second, third


def first_true(predicate: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a monotone predicate becomes true, by bisection; ``high`` if it is false before.

    Examples
    --------
    >>> round(first_true(lambda x: x**2 >= 0.25, 0.0, 1.0), 6)
    0.5
    """
    if high <= low or predicate(low):
        return max(low, 0.0)
    for _ in range(50):
        middle = (low + high) / 2
        if predicate(middle):
            high = middle
        else:
            low = middle
    return high


# ---------------------------------------------------------------------- the result


class PrintedResult:
    """A result that prints as a heading and a list of named lines, also as HTML."""

    _max_lines: ClassVar[int] = 12

    def _heading(self) -> str:
        return type(self).__name__

    def _summary(self) -> SummaryLines:
        """Return the lines, each with its name."""
        raise NotImplementedError

    def __str__(self) -> str:
        lines = self._summary()
        shown, n_more = lines[: self._max_lines], len(lines) - self._max_lines
        width = max(len(name) for name, _ in shown)
        texts = [printable(f"  {name:{width}}  {text}") for name, text in shown]
        return "\n".join([self._heading(), *texts, *([f"  and {n_more:,} more"] if n_more > 0 else [])])

    def _repr_html_(self) -> str:
        return box(self._heading(), table(self._summary()))


def mcse_text(mcse: float) -> str:
    """Return the text for a Monte Carlo standard error; empty if kernel values are exact."""
    return f" ± {mcse:.2g} (estimated kernel values)" if mcse else ""


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelTestResult(PrintedResult):
    """Result of a kernel test: the attributes that all tests have.

    Attributes
    ----------
    statistic : float
        The test statistic.
    pvalue : float
        The permutation p-value (1 + #{null >= statistic}) / (1 + B) of B permutations. It is valid for every B, and not
        below 1 / (1 + B).
    null_distribution : array of shape (n_permutations,)
        The statistic for random permutations.
    moment_pvalue : float
        The p-value by the Pearson type III approximation with the moments of all permutations: approximately the limit
        of ``pvalue`` for many permutations, not bounded below by 1 / (1 + B). For groups, covariates and trends of up
        to 50,000 voters a value below 0.01 is at least the estimate by multilevel splitting (random exchanges of
        voters), which stops at 1e-6.
    n_moment_draws : int
        The number of permutations from which moments were estimated; 0 if they are exact. Above 2,000 distinct
        rankings only the skewness is estimated.
    effect : float
        The effect size: at most 1, and 0 if there is no effect. Unbiased, so it can be negative. nan if it is
        undefined: with a single voter, or if Monte Carlo errors exceed the dispersion of the voters.
    statistic_mcse : float
        Monte Carlo standard error of the statistic that comes from estimated kernel values (an upper bound); 0 if they
        are exact. The p-value needs no correction for it: it is valid with estimated values.
    effect_mcse : float
        Monte Carlo standard error of the effect; its interval takes it into account.
    method : str
        Description of the test.
    kernel : Kernel or None
        The kernel with all parameters resolved; None if only a Gram matrix was given.
    plan : Plan or None
        The plan of the kernel values; None if a Gram matrix was given.
    rankings : Rankings or Preferences
        The distinct rankings, with their numbers of voters.
    """

    statistic: float
    pvalue: float
    null_distribution: FloatArray = field(repr=False)
    moment_pvalue: float
    n_moment_draws: int
    effect: float
    statistic_mcse: float
    effect_mcse: float
    method: str
    kernel: Kernel | None
    plan: Plan | None = field(repr=False)
    rankings: Data = field(repr=False)
    _interval: Callable[[], Interval] | None = field(repr=False)

    _effect_noun: ClassVar[str] = "of the dispersion of the voters"
    _draws_noun: ClassVar[str] = "permutations"

    @cached_property
    @np.errstate(under="ignore")
    def effect_interval(self) -> Interval:
        """The 95 % confidence interval of ``effect``, by inversion of the test; computed on first access.

        It inverts two one-sided 2.5 % tests, and excludes 0 only if ``moment_pvalue`` is below 0.025.
        """
        if self._interval is None:
            return 0.0, 0.0
        low, high = self._interval()
        return (0.0 if low > 0 and not self.moment_pvalue < 0.025 else low), high

    def _summary(self) -> SummaryLines:
        low, high = self.effect_interval
        estimated = f" of {self.n_moment_draws:,} {self._draws_noun}" if self.n_moment_draws else ""
        permutations = f"{len(self.null_distribution):,} {self._draws_noun}"
        effect = f"{self.effect:.3g}{mcse_text(self.effect_mcse)} {self._effect_noun}"
        from_moments = moment_pvalue_text(self.moment_pvalue)
        return [
            ("statistic", f"{self.statistic:.4g}{mcse_text(self.statistic_mcse)}"),
            ("p-value", f"{self.pvalue:.3g} ({permutations}), {from_moments} (moments{estimated})"),
            ("effect", f"{effect}, 95% interval {low:.3g} to {high:.3g}"),
            *([("kernel", str(self.kernel))] if self.kernel is not None else []),
            ("method", self.method),
        ]

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the null distribution and the statistic."""
        from rankernel.plots import null_distribution

        return null_distribution(self, ax=ax)


def evaluate(
    statistic: PermutationStatistic,
    effect: Effect | None,
    null: NullDistribution,
    sample: Sample,
    name: str,
    scheme: str,
    *,
    warn: bool = True,
) -> dict[str, Any]:
    """Return the attributes that all results have, and warn of large Monte Carlo errors; without an effect it is 0.

    ``name`` and ``scheme`` describe the statistic and its null distribution, such as "permutations of the voters".
    """
    error = statistic.standard_error()
    if warn:
        warn_if_noisy(error, float(null.values.std()))
    effect_error = 0.0 if effect is None else effect.mcse(error)
    return {
        "statistic": statistic.value,
        "pvalue": null.pvalue,
        "null_distribution": null.values,
        "moment_pvalue": null.moment_pvalue,
        "n_moment_draws": null.n_moment_draws,
        "effect": 0.0 if effect is None else effect.value,
        "statistic_mcse": error,
        "effect_mcse": effect_error,
        "method": f"{name}, {len(null.values):,} {scheme}, kernel values: {sample.method}",
        "kernel": sample.kernel,
        "plan": sample.plan,
        "rankings": sample.data,
        "_interval": None if effect is None else partial(effect.interval, null.moments, effect_error),
    }
