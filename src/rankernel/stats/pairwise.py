"""Which groups differ: all pairs of groups compared on one Gram matrix, corrected for their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Mask
from rankernel._utils.checks import check_number, printable, short_repr
from rankernel._utils.notebook import box, table
from rankernel.errors import RankingError, missing_extra
from rankernel.stats._effects import group_effect, group_effect_interval, kernel_errors
from rankernel.stats._groups import GroupedVoters, TwoGroups
from rankernel.stats._permutations import (
    ENOUGH,
    Permutations,
    PermutationsLike,
    as_permutations,
    is_divisible,
    least_pvalue,
    sure_for_many,
)
from rankernel.stats._voters import warn_if_noisy
from rankernel.stats.corrections import Correction, corrected_for_number
from rankernel.stats.mmd import two_sample_result
from rankernel.stats.results import GroupsResult, MMDResult, error_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_DRAWN = 20  # pairs in a picture
MOST_LINES = 12  # of a table that is printed


@dataclass(frozen=True, eq=False)
class KSampleResult(GroupsResult):
    """What :func:`k_sample_test` found; ``groups`` are the names of the groups.

    Attributes
    ----------
    statistic : float
        The dispersion between the groups.
    rankings : Rankings or Preferences
        The distinct ballots, with their numbers of voters.
    """

    _wanted: Permutations = field(repr=False, kw_only=True)
    _seed: int = field(repr=False, kw_only=True)

    def pairwise(
        self,
        correction: Correction = "holm",
        level: float = 0.05,
        n_permutations: PermutationsLike | None = None,
    ) -> PairwiseResult:
        """Return which pairs of groups differ, from the kernel values that are there already.

        Parameters
        ----------
        correction : {"holm", "benjamini-hochberg"}
            Holm: with probability 1 - level no pair is wrongly said to differ. Benjamini and Hochberg: at most a share
            of about ``level`` of those that are said to differ do not.
        level : float
            The level.
        n_permutations : int, "adaptive" or Adaptive, optional
            How many divisions of the voters of two groups; as in the test of all groups if left out. With "adaptive"
            many are drawn only where a p-value is near ``level`` over the number of pairs.

        Notes
        -----
        With many pairs no p-value of few permutations survives the correction: 1,000 permutations of 1,770 pairs give
        nothing below 1.77. Where the smallest p-value, corrected, is not well below the level, the tails are corrected
        instead, and ``corrected_from`` says so. With strata their moments come from permutations, 1,000 of each pair or
        more, else they are exact.

        Examples
        --------
        >>> from rankernel import datasets, k_sample_test
        >>> election = datasets.load_example()
        >>> found = k_sample_test(election.rankings, election.groups).pairwise()
        >>> len(found.groups), len(found), int(found.rejected.sum())
        (3, 3, 3)
        """
        level = check_number("level", level, 0, 1)
        first, second = np.triu_indices(len(self.groups), 1)
        wanted = self._wanted if n_permutations is None else as_permutations(n_permutations)
        wanted = sure_for_many(wanted, level, len(first))
        found = [
            pair_evidence(self._voters.pair(a, b), wanted, self._seed, self._biased)
            for a, b in zip(first.tolist(), second.tolist(), strict=True)
        ]
        warn_if_any_is_noisy(found)
        pvalues, tails = np.array([each.pvalue for each in found]), np.array([each.tail for each in found])
        tested = np.isfinite(pvalues)
        coarse = ENOUGH * least_pvalue(wanted) * int(tested.sum()) > level
        corrected = np.full(len(found), np.nan)
        corrected[tested] = corrected_for_number((tails if coarse else pvalues)[tested], correction)
        return PairwiseResult(
            self.groups,
            tuple(self.groups[a] for a in first),
            tuple(self.groups[b] for b in second),
            np.array([each.statistic for each in found]),
            pvalues,
            tails,
            corrected,
            "tail" if coarse else "permutations",
            correction,
            level,
            np.array([each.effect for each in found]),
            np.array([each.error for each in found]),
            np.array([each.effect_error for each in found]),
            self._voters,
            wanted,
            self._seed,
            self._biased,
        )


@dataclass(frozen=True)
class PairEvidence:
    """What two groups say."""

    statistic: float
    pvalue: float
    tail: float
    effect: float
    error: float
    effect_error: float
    noise: float  # the standard deviation of the statistic between permutations


def pair_evidence(voters: GroupedVoters, wanted: Permutations, seed: int, biased: bool) -> PairEvidence:
    """Return what two groups say; without p-values where no stratum has voters of both."""
    error, effect_error = kernel_errors(voters, biased)
    if not is_divisible(voters.table):
        statistic = voters.dispersion(biased) * float(voters.sizes.sum() / voters.sizes.prod())
        return PairEvidence(statistic, *(float("nan"),) * 6)
    form = TwoGroups(voters, biased, seed)
    null = form.null(wanted)
    return PairEvidence(
        form.statistic,
        null.pvalue,
        null.tail(form.statistic, form.tolerance, voters.least()),
        group_effect(voters),
        error * form.per_dispersion,
        effect_error,
        float(null.values.std()),
    )


def warn_if_any_is_noisy(found: list[PairEvidence]) -> None:
    """Warn of the pair whose statistic is least sure because of estimated kernel values."""
    worst = max(found, key=lambda each: each.error / each.noise if each.noise > 0 else 0.0)
    warn_if_noisy(worst.error, worst.noise)


@dataclass(frozen=True, eq=False)
class PairwiseResult:
    """Which groups differ: one entry for each pair of groups.

    Attributes
    ----------
    groups : tuple of str
        The groups.
    first, second : tuple of str
        The groups of each pair.
    statistics : array of shape (n_pairs,)
        Their squared discrepancies.
    pvalues : array of shape (n_pairs,)
        The p-value of each pair by permutations, not corrected.
    tail_pvalues : array of shape (n_pairs,)
        The same by the Pearson III curve.
    corrected : array of shape (n_pairs,)
        P-values corrected for the number of pairs. nan, as the others, of two groups that share no stratum: nothing can
        be permuted between them, they are not tested, and do not count for the correction.
    corrected_from : {"permutations", "tail"}
        Which p-values were corrected: those by permutations, where they can be small enough.
    correction : {"holm", "benjamini-hochberg"}
        How.
    level : float
        The level.
    effects : array of shape (n_pairs,)
        The effect of each pair, as in :class:`MMDResult`.
    statistic_errors, effect_errors : arrays of shape (n_pairs,)
        Their standard errors that come from estimated kernel values; 0 where these are exact.
    """

    groups: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    statistics: FloatArray = field(repr=False)
    pvalues: FloatArray = field(repr=False)
    tail_pvalues: FloatArray = field(repr=False)
    corrected: FloatArray = field(repr=False)
    corrected_from: str
    correction: Correction
    level: float
    effects: FloatArray = field(repr=False)
    statistic_errors: FloatArray = field(repr=False)
    effect_errors: FloatArray = field(repr=False)
    _voters: GroupedVoters = field(repr=False)
    _wanted: Permutations = field(repr=False)
    _seed: int = field(repr=False)
    _biased: bool = field(repr=False)

    def __len__(self) -> int:
        return len(self.pvalues)

    @property
    def rejected(self) -> Mask:
        """Which pairs differ at the level."""
        return np.asarray(self.corrected <= self.level)

    @cached_property
    def effect_intervals(self) -> FloatArray:
        """The 95 % interval of the effect of each pair, of shape (n_pairs, 2); made when first asked for."""
        first, second = np.triu_indices(len(self.groups), 1)
        pairs = zip(first.tolist(), second.tolist(), self.effect_errors.tolist(), strict=True)
        return np.array([group_effect_interval(self._voters.pair(a, b), 0.0, error) for a, b, error in pairs])

    @property
    def tested(self) -> Mask:
        """Which pairs could be tested: those that share a stratum."""
        return np.isfinite(self.pvalues)

    def pair(self, first: Any, second: Any) -> MMDResult:
        """Return all that there is to say of two groups, with the same permutations."""
        places = []
        for argument, name in (("first", str(first)), ("second", str(second))):
            if name not in self.groups:
                raise RankingError(
                    f"{argument}={short_repr(name)} is no group; the groups are {', '.join(self.groups)}"
                )
            places.append(self.groups.index(name))
        if places[0] == places[1]:
            raise RankingError(f"first and second are both {printable(first)!r}; name two groups")
        return two_sample_result(self._voters.pair(*places), self._wanted, self._seed, self._biased)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each pair, those that differ most clearly first."""
        try:
            import pandas as pd
        except ImportError:
            raise missing_extra("pandas", "frames") from None
        table = pd.DataFrame(
            {
                "first": self.first,
                "second": self.second,
                "statistic": self.statistics,
                "effect": self.effects,
                "pvalue": self.pvalues,
                "tail_pvalue": self.tail_pvalues,
                "corrected": self.corrected,
            }
        )
        return table.iloc[self.order()].reset_index(drop=True)

    def order(self) -> list[int]:
        """Return the pairs, those that differ most clearly first."""
        return list(np.lexsort((-self.effects, self.tail_pvalues, self.corrected)))

    def heading(self) -> str:
        """Return what was found, in words."""
        by = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg"}[self.correction]
        untested = len(self) - int(self.tested.sum())
        more = f"; {untested:,} more share no stratum, and are not tested" if untested else ""
        return (
            f"{int(self.rejected.sum()):,} of {len(self) - untested:,} pairs of groups differ at {self.level:g} "
            f"({by}, {self.corrected_from}){more}"
        )

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what there is to say of each pair."""
        for place in self.order():
            effect = f"effect {self.effects[place]:.2g}{error_text(float(self.effect_errors[place]))}"
            yield (
                printable(f"{self.first[place]} and {self.second[place]}"),
                f"p = {self.corrected[place]:.2g} (corrected), {effect}" if self.tested[place] else "share no stratum",
            )

    def plot(self, most: int = MOST_DRAWN, ax: Axes | None = None) -> Axes:
        """Draw the effects of the pairs that differ most clearly, with their intervals."""
        from rankernel.plots import pairwise_effects

        return pairwise_effects(self, limit=most, ax=ax)

    def __str__(self) -> str:
        lines = list(self.lines())
        width = max(len(name) for name, _ in lines[:MOST_LINES])
        shown = [f"  {name:{width}}  {text}" for name, text in lines[:MOST_LINES]]
        more = [f"  and {len(lines) - MOST_LINES:,} more"] if len(lines) > MOST_LINES else []
        return "\n".join([f"{type(self).__name__}: {self.heading()}", *shown, *more])

    def _repr_html_(self) -> str:
        return box(self.heading(), table(self.lines()))
