"""Results of tests: frozen records with ``statistic``, ``pvalue``, ``effect``, ... as in ``scipy.stats``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from rankernel._utils import FloatArray
from rankernel._utils.checks import printable
from rankernel._utils.notebook import box, table
from rankernel.data import Data
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.stats._effects import Effect, Interval
from rankernel.stats._permutations import Adaptive, NullDistribution, PermutationStatistic, sample_null_distribution
from rankernel.stats._sample import Sample, warn_if_noisy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankernel.stats._groups import GroupedVoters
    from rankernel.stats.differences import Contributions, Differences, GroupFeatures

SummaryLines = list[tuple[str, str]]


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
        of ``pvalue`` for many permutations, not bounded below by 1 / (1 + B).
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
    _interval: Callable[[], Interval] = field(repr=False)

    _effect_noun: ClassVar[str] = "of the dispersion of the voters"
    _draws_noun: ClassVar[str] = "permutations"

    @cached_property
    def effect_interval(self) -> Interval:
        """The 95 % confidence interval of :attr:`effect`, by inversion of the test; computed on first access.

        It inverts two one-sided 2.5 % tests, so it excludes 0 if ``moment_pvalue`` is below 0.025.
        """
        return self._interval()

    def _summary(self) -> SummaryLines:
        low, high = self.effect_interval
        estimated = f" of {self.n_moment_draws:,} {self._draws_noun}" if self.n_moment_draws else ""
        permutations = f"{len(self.null_distribution):,} {self._draws_noun}"
        effect = f"{self.effect:.3g}{mcse_text(self.effect_mcse)} {self._effect_noun}"
        return [
            ("statistic", f"{self.statistic:.4g}{mcse_text(self.statistic_mcse)}"),
            ("p-value", f"{self.pvalue:.3g} ({permutations}), {self.moment_pvalue:.2g} (moments{estimated})"),
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
    n_permutations: int | Adaptive,
    sample: Sample,
    name: str,
    scheme: str,
    *,
    warn: bool = True,
) -> dict[str, Any]:
    """Return the attributes that all results have, and warn of large Monte Carlo errors.

    ``name`` and ``scheme`` describe the statistic and its null distribution, such as "permutations of the voters".
    """
    null, errors = sample_null_distribution(statistic, n_permutations), statistic.standard_errors()
    if warn:
        warn_if_noisy(errors[0], float(null.values.std()))
    method = describe_test(name, len(null.values), scheme, sample)
    return result_fields(statistic.value, null, statistic.effect(), errors, sample, method)


def describe_test(name: str, n_draws: int, scheme: str, sample: Sample) -> str:
    """Return the description of a test."""
    return f"{name}, {n_draws:,} {scheme}, kernel values: {sample.method}"


def result_fields(
    value: float,
    null: NullDistribution,
    effect: Effect | None,
    errors: tuple[float, float],
    sample: Sample,
    method: str,
) -> dict[str, Any]:
    """Return the attributes that all results have."""
    interval = partial(tuple, (0.0, 0.0)) if effect is None else partial(effect.interval, null.moments, errors[1])
    return {
        "statistic": value,
        "pvalue": null.pvalue,
        "null_distribution": null.values,
        "moment_pvalue": null.moment_pvalue,
        "n_moment_draws": null.n_moment_draws,
        "effect": 0.0 if effect is None else effect.value,
        "statistic_mcse": errors[0],
        "effect_mcse": errors[1],
        "method": method,
        "kernel": sample.kernel,
        "plan": sample.plan,
        "rankings": sample.data,
        "_interval": interval,
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupTestResult(KernelTestResult):
    """Result of a test that compares groups.

    Attributes
    ----------
    groups : tuple of str
        The names of the groups.
    n_voters : tuple of int
        The number of voters of each group.
    """

    _voters: GroupedVoters = field(repr=False)
    _biased: bool = field(repr=False)

    _effect_noun: ClassVar[str] = "of the dispersion of the voters lies between the groups"

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self._voters.names

    @property
    def n_voters(self) -> tuple[int, ...]:
        """The number of voters of each group."""
        return tuple(int(size) for size in self._voters.sizes)

    def differences(self, confidence_level: float = 0.95, *, contributions: Contributions = "auto") -> Differences:
        """Return in which items and pairs of items the groups differ.

        With strata, groups are compared within strata: shares and mean ranks are those of groups with the same
        distribution of voters over strata.

        Parameters
        ----------
        confidence_level : float
            The confidence level of the interval of each share and mean rank.
        contributions : {"auto", "pairs"}
            How the contribution of an item to the statistic is computed. The statistic with the Kendall kernel is a sum
            over pairs of items; with any other kernel the contribution of an item is the decrease of the statistic
            without it, which takes a Gram matrix for each item. "pairs" always uses the decomposition of the Kendall
            kernel, which is quick. Contributions of pairs always use it.

        Examples
        --------
        >>> from rankernel import Rankings, mmd_test
        >>> X = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[5, 1])
        >>> Y = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[1, 5])
        >>> first = mmd_test(X, Y).differences().pairs[0]
        >>> first.first, first.second, [round(share, 2) for share in first.shares], first.majorities_differ
        ('a', 'b', [0.83, 0.17], True)
        """
        from rankernel.stats.differences import compare_groups

        return compare_groups(self._features(), confidence_level, contributions)

    def _features(self) -> GroupFeatures:
        """Return the groups, to be compared feature by feature."""
        from rankernel.stats.differences import GroupFeatures

        return GroupFeatures(self._voters, self._biased, self._dispersion_factor)

    @property
    def _dispersion_factor(self) -> float:
        """The statistic over the dispersion between the groups."""
        return 1.0
