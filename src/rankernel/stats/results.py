"""What a test answers with: one family of named records, in the manner of ``scipy.stats``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from rankernel._utils.arrays import FloatArray, Mask
from rankernel._utils.checks import printable
from rankernel._utils.notebook import box, table
from rankernel.data import Data
from rankernel.errors import RankingError
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankernel.stats._effect_law import Interval
    from rankernel.stats._groups import GroupedVoters
    from rankernel.stats._splits import Split
    from rankernel.stats.differences import By, Differences
    from rankernel.stats.paired import JudgePairs

Facts = list[tuple[str, str]]
MOST_NAMED = 3  # items in one line


class Told:
    """A record that is told as a list of facts: printed, or as HTML."""

    def facts(self) -> Facts:
        """Return what there is to say, each with its name."""
        raise NotImplementedError

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        lines = [f"  {name:{width}}  {text}" for name, text in facts]
        return "\n".join([type(self).__name__, *map(printable, lines)])

    def _repr_html_(self) -> str:
        return box(type(self).__name__, table(self.facts()))


def error_text(error: float) -> str:
    """Return what estimated kernel values add to the error of a number, if anything.

    Examples
    --------
    >>> error_text(0.0), error_text(0.01234)
    ('', ' ± 0.012 (estimated kernel values)')
    """
    return f" ± {error:.2g} (estimated kernel values)" if error else ""


@dataclass(frozen=True, eq=False)
class KernelTestResult(Told):
    """What a test found: the fields that the results of all tests have.

    Attributes
    ----------
    statistic : float
        The statistic.
    pvalue : float
        The share of the null distribution, the statistic itself included, that is at least as large. Valid for every
        number of permutations; never below one over their number.
    null_distribution : array of shape (n_permutations,)
        The statistic for random permutations.
    tail_pvalue : float
        The probability of so large a statistic by a Pearson III curve with the moments of all permutations: what
        ``pvalue`` comes to with ever more permutations, approximately. It may be as small as it likes.
    tail_draws : int
        How many permutations the moments of the curve come from; 0 where they are exact. Above 2,000 different ballots
        this is so of the skewness alone.
    effect : float
        How large the difference is, in a unit that data sets share: at most 1, and 0 if there is none. As an estimate
        without bias it can fall below. nan where it cannot be told: of single voters, or if the errors of estimated
        kernel values are larger than all that differs.
    method : str
        What was done.
    plan : Plan or None
        How kernel values were computed; None if a Gram matrix was given.
    kernel : Kernel or None
        The kernel, its width a number; None if only a Gram matrix was given.
    rankings : Rankings or Preferences
        What was compared.
    statistic_error : float
        A bound on the standard error of the statistic that comes from estimated kernel values; 0 where they are exact.
        The p-value needs no such correction: it is valid with estimated values, too.
    effect_error : float
        The same for the effect; its interval is wider for it.
    """

    statistic: float
    pvalue: float
    null_distribution: FloatArray = field(repr=False)
    tail_pvalue: float
    tail_draws: int
    effect: float
    method: str
    plan: Plan | None = field(repr=False)
    kernel: Kernel | None
    rankings: Data = field(repr=False)
    statistic_error: float
    effect_error: float
    _interval: Callable[[], Interval] = field(repr=False)

    effect_of: ClassVar[str] = "of the dispersion of the voters"
    drawn: ClassVar[str] = "permutations"

    @cached_property
    def effect_interval(self) -> Interval:
        """The 95 % interval of :attr:`effect`, made when it is first asked for.

        It holds the effects under which neither so large an estimate nor so small a one is rarer than 2.5 %; see the
        page on tests. It begins above 0 where ``tail_pvalue`` is below 0.025.
        """
        return self._interval()

    def facts(self) -> Facts:
        """Return what there is to say, each with its name."""
        low, high = self.effect_interval
        behind = f", moments of {self.tail_draws:,} {self.drawn}" if self.tail_draws else ""
        permutations = f"{len(self.null_distribution):,} {self.drawn}"
        effect = f"{self.effect:.3g}{error_text(self.effect_error)} {self.effect_of}"
        return [
            ("statistic", f"{self.statistic:.4g}{error_text(self.statistic_error)}"),
            ("p-value", f"{self.pvalue:.3g} ({permutations}), {self.tail_pvalue:.2g} (tail{behind})"),
            ("effect", f"{effect}, 95% interval {low:.3g} to {high:.3g}"),
            *([("kernel", str(self.kernel))] if self.kernel is not None else []),
            ("method", self.method),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the null distribution, and where the statistic stands."""
        from rankernel.plots import null_distribution

        return null_distribution(self, ax=ax)


@dataclass(frozen=True, eq=False)
class GroupsResult(KernelTestResult):
    """What a test of groups found.

    Attributes
    ----------
    groups : tuple of str
        The groups.
    n_voters : tuple of int
        How many voters each of them has.
    """

    _voters: GroupedVoters = field(repr=False)
    _biased: bool = field(repr=False)

    effect_of: ClassVar[str] = "of the dispersion of the voters lies between the groups"

    @property
    def per_dispersion(self) -> float:
        """The statistic of :func:`mmd_test` or :func:`k_sample_test` over the dispersion between the groups."""
        return 1.0

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups."""
        return self._voters.names

    @property
    def n_voters(self) -> tuple[int, ...]:
        """How many voters each group has."""
        return tuple(int(size) for size in self._voters.sizes)

    def differences(self, confidence: float = 0.95, by: By = "auto") -> Differences:
        """Return in what the groups differ: which items move, and which pairs of items turn.

        With strata the groups are compared within them: shares and places are those of groups with the same part of
        their voters in every stratum.

        Parameters
        ----------
        confidence : float
            How often the interval of a share or of a mean place covers the truth.
        by : {"auto", "pairs"}
            How the parts of items are found. The Kendall kernel splits into pairs of items; of any other the part of an
            item is by how much the statistic falls without it, which takes a Gram matrix for each item. "pairs" is
            always the split of the Kendall kernel, which is quick. The parts of pairs are always that split.

        Examples
        --------
        >>> from rankernel import Kendall, Rankings, mmd_test
        >>> X = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[5, 1])
        >>> Y = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[1, 5])
        >>> first = mmd_test(X, Y).differences().pairs[0]
        >>> first.first, first.second, [round(share, 2) for share in first.shares], first.turns
        ('a', 'b', [0.83, 0.17], True)
        """
        from rankernel.stats.differences import differences_of

        return differences_of(self._split(), confidence, by)

    def _split(self) -> Split:
        """Return the groups, to be compared feature by feature."""
        from rankernel.stats._splits import GroupSplit

        return GroupSplit(self._voters, self._biased, self.per_dispersion)


@dataclass(frozen=True, eq=False)
class MMDResult(GroupsResult):
    """What :func:`mmd_test` found.

    Attributes
    ----------
    statistic : float
        The estimate of the squared maximum mean discrepancy.
    rankings : Rankings or Preferences
        The distinct ballots of both samples, with their numbers of voters.
    witness : array of shape (n_ballots,)
        The witness function at each of them: the mean kernel with the first sample less that with the second.
        Positive where the first sample has more voters nearby.
    """

    witness: FloatArray = field(repr=False)

    @property
    def per_dispersion(self) -> float:
        """The squared discrepancy over the dispersion between the groups."""
        sizes = self._voters.sizes
        return float(sizes.sum() / sizes.prod())


@dataclass(frozen=True, eq=False)
class AggregatedMMDResult(MMDResult):
    """What :func:`mmd_aggregated_test` found with several kernels at once.

    ``statistic`` is minus the decimal logarithm of the smallest p-value that a kernel has by itself, and
    ``null_distribution`` the same for random divisions of the voters; ``pvalue`` compares the two. It is the smallest
    level at which the aggregated test rejects. ``kernel``, ``effect``, ``witness`` and ``differences()`` are those of
    the kernel with the smallest p-value, and so is the interval of the effect; the smallest tail of a kernel, times
    their number, is ``tail_pvalue``. ``statistic_error`` is by how much the logarithm changes with the kernel values.

    Attributes
    ----------
    kernels : tuple of Kernel
        The kernels, their widths numbers.
    statistics : array of shape (n_kernels,)
        The statistic of each.
    pvalues : array of shape (n_kernels,)
        The p-value of each, corrected for all: the smallest level at which the aggregated test rejects because of it.
    rejected : array of shape (n_kernels,)
        Which kernels reject at ``level``; the aggregated test does if any does.
    level : float
        The level asked for.
    """

    kernels: tuple[Kernel, ...]
    statistics: FloatArray
    pvalues: FloatArray
    rejected: Mask
    level: float


@dataclass(frozen=True, eq=False)
class HSICResult(KernelTestResult):
    """What :func:`hsic_test` found.

    Attributes
    ----------
    statistic : float
        The estimate of the Hilbert-Schmidt independence criterion.
    effect : float
        The criterion divided by those of rankings and covariate with themselves: a correlation of the two kernels, 0
        for independent ones and 1 where the kernels are the same.
    rankings : Rankings or Preferences
        The rankings as given, one row for each entry of the witness.
    witness : array of shape (n_rankings,)
        The witness function at each ranking with its own covariate. Positive where they occur together more often
        than by chance; its mean over voters is the biased statistic.
    """

    witness: FloatArray = field(repr=False)

    effect_of: ClassVar[str] = "is the correlation of the kernels"


@dataclass(frozen=True, eq=False)
class PairedResult(GroupsResult):
    """What :func:`paired_test` found.

    ``effect`` is that of :func:`mmd_test`; its interval takes account of the pairs. ``differences()`` tells before and
    after as two groups; its parts and the intervals of changes are those of the judges.

    Attributes
    ----------
    statistic : float
        The estimate of the squared maximum mean discrepancy between before and after.
    null_distribution : array of shape (n_permutations,)
        The statistic for random signs of the judges.
    rankings : Rankings or Preferences
        The distinct ballots of before and after, with their numbers of judges.
    """

    _pairs: JudgePairs = field(repr=False)

    def _split(self) -> Split:
        """Return the judges, to be compared feature by feature."""
        from rankernel.stats._splits import JudgeSplit

        return JudgeSplit(self._voters, self._pairs)


@dataclass(frozen=True, eq=False)
class TrendResult(HSICResult):
    """What :func:`trend_test` found.

    Attributes
    ----------
    statistic : float
        The estimate of the Hilbert-Schmidt independence criterion with the product of times as the other kernel.
    slopes : dict of str to float
        By how many places each item falls with each step of the time, by least squares; negative if it rises.
    """

    slopes: dict[str, float] = field(repr=False)

    def facts(self) -> Facts:
        """Return what there is to say, each with its name."""
        rising = sorted(((slope, item) for item, slope in self.slopes.items() if slope < 0))
        falling = sorted(((-slope, item) for item, slope in self.slopes.items() if slope > 0))
        moves = [("rises", rising), ("falls", falling)]
        return [*super().facts(), *((name, moves_text(found)) for name, found in moves)]


def moves_text(moves: Sequence[tuple[float, str]]) -> str:
    """Return the items that move most, with how many places for each step of the time.

    Examples
    --------
    >>> moves_text([(-0.4, "c"), (-0.123, "a")]), moves_text([])
    ('c (0.4 places a step), a (0.12 places a step)', 'no item')
    """
    shown = [f"{item} ({abs(slope):.2g} places a step)" for slope, item in moves[:MOST_NAMED]]
    more = [f"{len(moves) - MOST_NAMED:,} more"] if len(moves) > MOST_NAMED else []
    return ", ".join([*shown, *more]) if moves else "no item"


def listed_rows(rows: Sequence[int]) -> str:
    """Return some rows in words.

    Examples
    --------
    >>> listed_rows([40]), listed_rows([30, 60])
    ('row 40', 'rows 30, 60')
    """
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows))}"


@dataclass(frozen=True, eq=False)
class ChangePointResult(GroupsResult):
    """What :func:`change_point_test` found; ``groups`` are the segments between changes.

    Attributes
    ----------
    statistic : float
        The largest dispersion between what comes before and after one change.
    null_distribution : array of shape (n_permutations,)
        The same with the rankings in random orders.
    changes : tuple of int
        The rows with which something new begins; empty if the test finds no change.
    costs : array of shape (n_most + 1,)
        The scatter within the best segments, for 0, 1, ... changes.
    effect : float
        As in :func:`k_sample_test`, of the segments; as these were chosen on the same data, it is too large rather than
        too small, and its interval is too high. Only the p-value knows of the choice.
    """

    changes: tuple[int, ...]
    costs: FloatArray = field(repr=False)

    drawn: ClassVar[str] = "random orders"

    def facts(self) -> Facts:
        """Return what there is to say, each with its name."""
        found = f"at {listed_rows(self.changes)}: {len(self.groups):,} segments" if self.changes else "none"
        return [("changes", found), *super().facts()]

    def differences(self, confidence: float = 0.95, by: By = "auto") -> Differences:
        """Return in what the segments differ, as those of groups; refused where no change was found."""
        if not self.changes:
            raise RankingError(
                "no change was found, so that there are no segments to differ; n_changes=1 looks for the best one"
            )
        return super().differences(confidence, by)


@dataclass(frozen=True, eq=False)
class FitResult(KernelTestResult):
    """What :func:`goodness_of_fit_test` found.

    Attributes
    ----------
    statistic : float
        The estimate of the squared maximum mean discrepancy between data and model.
    null_distribution : array of shape (n_simulations,)
        The statistic of data simulated from the model.
    rankings : Rankings
        The distinct ballots, with their numbers of voters.
    witness : array of shape (n_ballots,)
        The witness function at each of them: the mean kernel with the data less that with the model.
    """

    witness: FloatArray = field(repr=False)

    effect_of: ClassVar[str] = "of the dispersion lies between data and model"
    drawn: ClassVar[str] = "simulations"
