"""Tests of all pairs of groups, adjusted for multiple comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from rankernel._utils import FloatArray, Mask
from rankernel._utils.checks import check_choice, check_integer, check_number, printable, short_repr
from rankernel.errors import RankingError, require
from rankernel.stats._permutations import Moments
from rankernel.stats.base import PrintedResult, SummaryLines, mcse_text, warn_if_noisy
from rankernel.stats.groups import GroupedVoters, GroupEffect, KSampleResult, MMDResult, mmd_result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Correction = Literal["holm", "benjamini-hochberg"]
RESOLUTION = 4  # the smallest adjusted permutation p-value must be this many times below alpha


@np.errstate(under="ignore")
def compare_pairs(
    test: KSampleResult, correction: Correction, alpha: float, n_permutations: int | None
) -> PairwiseResult:
    """Return the tests of all pairs of groups: see :meth:`KSampleResult.pairwise`."""
    alpha = check_number("alpha", alpha, 0, 1)
    check_choice("correction", correction, get_args(Correction))
    first, second = np.triu_indices(len(test.groups), 1)
    n = test._n_permutations if n_permutations is None else check_integer("n_permutations", n_permutations)
    rows = [
        compare_pair(test._voters.pair(a, b), n, test._seed, test._biased)
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
        groups=test.groups,
        first=tuple(test.groups[a] for a in first),
        second=tuple(test.groups[b] for b in second),
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
        _test=test,
        _n_permutations=n,
    )


def compare_pair(voters: GroupedVoters, n_permutations: int, seed: int, biased: bool) -> tuple[float, ...]:
    """Return statistic, p-values by permutations and from moments, effect, both errors and null standard deviation.

    All but the statistic are nan if no stratum has voters of both groups.
    """
    statistic, effect = voters.squared_mmd(biased, seed), GroupEffect(voters)
    if not voters.is_exchangeable():
        return statistic.value, *(float("nan"),) * 6
    null, error = statistic.null_distribution(n_permutations), statistic.standard_error()
    errors = error, effect.mcse(error)
    return statistic.value, null.pvalue, null.moment_pvalue, effect.value, *errors, float(null.values.std())


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
        return np.array([GroupEffect(voters.pair(a, b)).interval(Moments(), mcse) for a, b, mcse in pairs])

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
        return mmd_result(voters, voters.squared_mmd(self._test._biased, self._test._seed), self._n_permutations)

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
