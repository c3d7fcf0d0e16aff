"""The k-sample test: whether any of several groups of rankings differ, and which pairs of groups do."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from rankernel._utils import FloatArray, IntArray, Mask
from rankernel._utils.checks import (
    Seed,
    as_seed,
    check_choice,
    check_flag,
    check_integer,
    check_labels,
    check_number,
    printable,
    short_repr,
)
from rankernel.comparisons import Comparisons
from rankernel.data import as_data, group_codes
from rankernel.errors import RankingError, require
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import is_missing
from rankernel.stats._permutations import ZERO_MOMENTS, is_exchangeable, sample_null_distribution
from rankernel.stats.base import (
    PrintedResult,
    Sample,
    SummaryLines,
    evaluate,
    mcse_text,
    stratum_codes,
    warn_if_noisy,
)
from rankernel.stats.groups import GroupedVoters, GroupEffect, GroupStatistic, GroupTestResult, squared_mmd
from rankernel.stats.mmd import TASK, MMDResult, mmd_result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Correction = Literal["holm", "benjamini-hochberg"]
RESOLUTION = 4  # the smallest adjusted permutation p-value must be this many times below alpha


@dataclass(frozen=True, eq=False, kw_only=True)
class KSampleResult(GroupTestResult):
    """Result of :func:`k_sample_test`.

    Attributes
    ----------
    statistic : float
        The dispersion between the groups.
    rankings : Rankings or Preferences
        The distinct rankings, with their numbers of voters.
    """

    _n_permutations: int = field(repr=False)
    _seed: int = field(repr=False)

    @np.errstate(under="ignore")
    def pairwise(
        self,
        *,
        correction: Correction = "holm",
        alpha: float = 0.05,
        n_permutations: int | None = None,
    ) -> PairwiseResult:
        """Return two-sample tests of all pairs of groups, adjusted for multiple comparisons.

        Parameters
        ----------
        correction : {"holm", "benjamini-hochberg"}
            Holm controls the family-wise error rate, Benjamini and Hochberg the false discovery rate.
        alpha : float
            The significance level.
        n_permutations : int, optional
            The number of permutations for each pair; as in the test of all groups by default.

        Notes
        -----
        The Gram matrix of the test is used again. With many pairs no permutation p-value of few permutations survives
        the correction: 999 permutations of 1,770 pairs give nothing below 1.77. If the smallest adjusted permutation
        p-value is not well below ``alpha``, p-values from moments are adjusted instead, and ``adjusted_from`` says so.

        Examples
        --------
        >>> from rankernel import datasets, k_sample_test
        >>> election = datasets.load_example()
        >>> pairs = k_sample_test(election.rankings, election.groups).pairwise()
        >>> len(pairs.groups), len(pairs), int(pairs.rejected.sum())
        (3, 3, 3)
        """
        alpha = check_number("alpha", alpha, 0, 1)
        check_choice("correction", correction, get_args(Correction))
        first, second = np.triu_indices(len(self.groups), 1)
        n = self._n_permutations if n_permutations is None else check_integer("n_permutations", n_permutations)
        rows = [
            compare_pair(self._voters.pair(a, b), n, self._seed, self._biased)
            for a, b in zip(first.tolist(), second.tolist(), strict=True)
        ]
        noisiest = max(rows, key=lambda row: row[4] / row[6] if row[6] > 0 else 0.0)
        warn_if_noisy(noisiest[4], noisiest[6])
        statistics, pvalues, moment_pvalues, effects, statistic_mcse, effect_mcse, _ = np.array(rows).T
        tested = np.isfinite(pvalues)
        coarse = RESOLUTION * int(tested.sum()) / (1 + n) > alpha
        adjusted = np.full(len(rows), np.nan)
        adjusted[tested] = adjust_pvalues((moment_pvalues if coarse else pvalues)[tested], correction)
        return PairwiseResult(
            groups=self.groups,
            first=tuple(self.groups[a] for a in first),
            second=tuple(self.groups[b] for b in second),
            statistics=statistics,
            pvalues=pvalues,
            moment_pvalues=moment_pvalues,
            adjusted_pvalues=adjusted,
            adjusted_from="moments" if coarse else "permutations",
            correction=correction,
            alpha=alpha,
            effects=effects,
            statistic_mcse=statistic_mcse,
            effect_mcse=effect_mcse,
            _test=self,
            _n_permutations=n,
        )


@np.errstate(under="ignore")
def k_sample_test(
    X: Any,
    groups: Any,
    kernel: Kernel | str | None = None,
    *,
    n_permutations: int = 999,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: Any = None,
    precomputed: Any = None,
    n_jobs: int | None = None,
) -> KSampleResult:
    r"""Test whether several groups of rankings have the same distribution, by the dispersion of their mean embeddings.

    The biased statistic is :math:`\sum_g n_g \|\mu_g - \mu\|^2`, with :math:`\mu_g` the mean embedding of the
    :math:`n_g` voters of a group and :math:`\mu` that of all N. The unbiased one leaves out the pairs of each voter
    with itself: :math:`\frac{N-1}{N} \sum_g \frac{1}{n_g - 1} S_g - \frac{1}{N} S`, with S the sum of the kernel over
    ordered pairs of different voters, of a group or of all. For two groups it is :math:`n_1 n_2 / N` times the squared
    discrepancy of :func:`mmd_test`. The null distribution is that of voters permuted between groups.

    Parameters
    ----------
    X : Rankings, Preferences, Comparisons or integer array
        The rankings of all groups. Each of comparisons is a voter.
    groups : array of shape (n_rankings,)
        The group of each row: labels of any type; of comparisons also the name of a label.
    strata : array of shape (n_rankings,), optional
        A label for each row: voters are permuted within strata only. The test looks for one shift of the mean ranking
        that all strata have in common; for search queries with different documents see :func:`compare_systems`. Of
        comparisons, the two items that are compared by default, because which items a group compared is not a
        preference.
    precomputed : array of shape (n_rankings, n_rankings), optional
        The Gram matrix of X.
    kernel, n_permutations, rng, biased, method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    KSampleResult
        ``statistic``, ``pvalue``, ``moment_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``,
        ``groups``, ...; ``pairwise()`` tests all pairs of groups, ``differences()`` compares groups by items and pairs
        of items.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "c", "b"], ["a", "b", "c"], ["c", "b", "a"], ["c", "b", "a"], ["c", "a", "b"]],
    ...     counts=[6, 4, 10, 1, 9, 3],
    ... )
    >>> result = k_sample_test(ballots, ["north", "north", "east", "east", "south", "south"])
    >>> result.pvalue
    0.001
    >>> print(result.pairwise())
    PairwiseResult: 2 of 3 pairs of groups differ at 0.05 (Holm, permutations)
      north and south  adjusted p = 0.003, effect 0.49
      east and south   adjusted p = 0.003, effect 0.6
      east and north   adjusted p = 0.063, effect 0.1
    """
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    if isinstance(X, Comparisons):
        groups = np.array(X.groups(groups)[0])[X.groups(groups)[1]] if isinstance(groups, str) else groups
        X, strata = X.to_rankings(), X.match_ups if strata is None else strata
    data, least = as_data(X), 1 if check_flag("biased", biased) else 2
    codes, names = check_groups(groups, len(data))
    stratum = stratum_codes(strata, len(data))
    if precomputed is None:
        sample = Sample.planned(data, kernel, method, n_jobs, TASK)
    else:
        sample = Sample.from_gram(data, precomputed, kernel)
    voters = GroupedVoters.count(sample, names, codes, stratum, data.counts)
    small = np.flatnonzero(voters.sizes < least)
    if len(small):
        raise RankingError(
            f"group {printable(names[small[0]])!r} has {int(voters.sizes[small[0]])} voter(s); this statistic needs at "
            f"least {least}: leave out the group, or merge it with another"
        )
    name = f"{'biased' if biased else 'unbiased'} dispersion between {len(names)} groups"
    fields = evaluate(GroupStatistic(voters, biased, seed), n_permutations, sample, name, voters.scheme)
    return KSampleResult(**fields, _voters=voters, _biased=biased, _n_permutations=n_permutations, _seed=seed)


def check_groups(groups: Any, n_rows: int) -> tuple[IntArray, tuple[str, ...]]:
    """Return the number of the group of each row, and the names of the groups."""
    labels = check_labels("groups", groups, n_rows)
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise RankingError(f"the group of row {row} is missing; leave out rows without one")
    names, codes = group_codes(labels)
    if len(names) < 2:
        problem = f"all rows are of the group {names[0]!r}" if names else "there are no rankings"
        raise RankingError(f"{problem}; groups must name at least two groups")
    return codes, names


# ---------------------------------------------------------------------- pairs of groups


def compare_pair(voters: GroupedVoters, n_permutations: int, seed: int, biased: bool) -> tuple[float, ...]:
    """Return statistic, p-values by permutations and from moments, effect, both errors and null standard deviation.

    All but the statistic are nan if no stratum has voters of both groups.
    """
    if not is_exchangeable(voters.table):
        return voters.dispersion(biased) * voters.mmd_factor, *(float("nan"),) * 6
    statistic = squared_mmd(voters, biased, seed)
    null, errors = sample_null_distribution(statistic, n_permutations), statistic.standard_errors()
    pvalues = null.pvalue, null.moment_pvalue
    return statistic.value, *pvalues, statistic.effect().value, *errors, float(null.values.std())


def adjust_pvalues(pvalues: FloatArray, correction: Correction) -> FloatArray:
    """Return p-values adjusted for multiple comparisons.

    Examples
    --------
    >>> adjust_pvalues(np.array([0.01, 0.04, 0.03]), "holm")
    array([0.03, 0.06, 0.06])
    """
    if correction == "benjamini-hochberg":
        from scipy.stats import false_discovery_control

        return np.asarray(false_discovery_control(pvalues))
    order = np.argsort(pvalues, kind="stable")
    raised = pvalues[order] * np.arange(len(pvalues), 0, -1)
    adjusted = np.empty(len(pvalues))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


@dataclass(frozen=True, eq=False, kw_only=True)
class PairwiseResult(PrintedResult):
    """Result of :meth:`KSampleResult.pairwise`: one entry for each pair of groups.

    Attributes
    ----------
    groups : tuple of str
        The groups.
    first, second : tuple of str
        The groups of each pair.
    statistics : array of shape (n_pairs,)
        The squared discrepancy of each pair.
    pvalues, moment_pvalues : arrays of shape (n_pairs,)
        The unadjusted p-values by permutations and from moments; nan for two groups that share no stratum, which cannot
        be tested.
    adjusted_pvalues : array of shape (n_pairs,)
        P-values adjusted for the number of pairs that were tested.
    adjusted_from : {"permutations", "moments"}
        Which p-values were adjusted: those by permutations if these can be small enough.
    correction : {"holm", "benjamini-hochberg"}
        The correction for multiple comparisons.
    alpha : float
        The significance level.
    effects : array of shape (n_pairs,)
        The effect of each pair, as in :class:`MMDResult`.
    statistic_mcse, effect_mcse : arrays of shape (n_pairs,)
        Monte Carlo standard errors that come from estimated kernel values; 0 if these are exact.
    """

    groups: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    statistics: FloatArray = field(repr=False)
    pvalues: FloatArray = field(repr=False)
    moment_pvalues: FloatArray = field(repr=False)
    adjusted_pvalues: FloatArray = field(repr=False)
    adjusted_from: Literal["permutations", "moments"]
    correction: Correction
    alpha: float
    effects: FloatArray = field(repr=False)
    statistic_mcse: FloatArray = field(repr=False)
    effect_mcse: FloatArray = field(repr=False)
    _test: KSampleResult = field(repr=False)
    _n_permutations: int = field(repr=False)

    def __len__(self) -> int:
        return len(self.pvalues)

    @property
    def rejected(self) -> Mask:
        """Whether each pair differs at level ``alpha``."""
        return np.asarray(self.adjusted_pvalues <= self.alpha)

    @property
    def tested(self) -> Mask:
        """Whether each pair could be tested: whether it shares a stratum."""
        return np.isfinite(self.pvalues)

    @cached_property
    @np.errstate(under="ignore")
    def effect_intervals(self) -> FloatArray:
        """The 95 % confidence interval of each effect, of shape (n_pairs, 2); computed on first access."""
        first, second = np.triu_indices(len(self.groups), 1)
        pairs = zip(first.tolist(), second.tolist(), self.effect_mcse.tolist(), strict=True)
        voters = self._test._voters
        return np.array([GroupEffect(voters.pair(a, b)).interval(ZERO_MOMENTS, mcse) for a, b, mcse in pairs])

    @np.errstate(under="ignore")
    def pair(self, first: Any, second: Any) -> MMDResult:
        """Return the full result of the test of two groups, with the same permutations."""
        numbers = []
        for argument, name in (("first", str(first)), ("second", str(second))):
            if name not in self.groups:
                raise RankingError(
                    f"{argument}={short_repr(name)} is not a group; the groups are {', '.join(self.groups)}"
                )
            numbers.append(self.groups.index(name))
        if numbers[0] == numbers[1]:
            raise RankingError(f"first and second are both {printable(first)!r}; name two groups")
        voters = self._test._voters.pair(*numbers)
        return mmd_result(squared_mmd(voters, self._test._biased, self._test._seed), self._n_permutations)

    def order(self) -> list[int]:
        """Return the indices of the pairs, sorted by adjusted p-value."""
        return list(np.lexsort((-self.effects, self.moment_pvalues, self.adjusted_pvalues)))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each pair, sorted by adjusted p-value."""
        require("pandas", "frames")
        import pandas as pd

        columns = {
            "first": self.first,
            "second": self.second,
            "statistic": self.statistics,
            "effect": self.effects,
            "pvalue": self.pvalues,
            "moment_pvalue": self.moment_pvalues,
            "adjusted_pvalue": self.adjusted_pvalues,
        }
        return pd.DataFrame(columns).iloc[self.order()].reset_index(drop=True)

    def plot(self, *, limit: int = 20, ax: Axes | None = None) -> Axes:
        """Draw the effects of the first pairs with their intervals."""
        from rankernel.plots import pairwise_effects

        return pairwise_effects(self, limit=limit, ax=ax)

    def _heading(self) -> str:
        name = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg"}[self.correction]
        n_tested, n_different = int(self.tested.sum()), int(self.rejected.sum())
        untested = (
            f"; {len(self) - n_tested:,} more share no stratum and are not tested" if n_tested < len(self) else ""
        )
        return (
            f"PairwiseResult: {n_different:,} of {n_tested:,} pairs of groups differ at {self.alpha:g} "
            f"({name}, {self.adjusted_from}){untested}"
        )

    def _summary(self) -> SummaryLines:
        lines = []
        for index in self.order():
            effect = f"effect {self.effects[index]:.2g}{mcse_text(float(self.effect_mcse[index]))}"
            text = f"adjusted p = {self.adjusted_pvalues[index]:.2g}, {effect}"
            pair = f"{self.first[index]} and {self.second[index]}"
            lines.append((printable(pair), text if self.tested[index] else "share no stratum"))
        return lines
