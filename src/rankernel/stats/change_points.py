r"""Change points of a sequence of rankings.

A segment costs the scatter of its voters around their mean embedding. The best segments for every number of changes are
computed by dynamic programming on the Gram matrix (Harchaoui and Cappé 2007). The number of changes is chosen by a
penalty whose constants are estimated from the decrease of the costs at large numbers of changes (slope heuristic:
Arlot, Celisse and Harchaoui 2019). A permutation test of the best single change decides whether there is any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, Indices, IntArray, Mask
from rankernel._utils.checks import Seed, as_seed, check_integer, check_number
from rankernel._utils.resources import announce_cost, check_task, run_interruptibly, slices
from rankernel.data import as_data
from rankernel.errors import RankingError
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.stats._permutations import (
    CHUNK_ENTRIES,
    PAIR_COST,
    RELATIVE_TOLERANCE,
    Moments,
    PermutationStatistic,
    named_generator,
    pair_sums,
)
from rankernel.stats.base import Sample, SummaryLines, evaluate, voter_gram
from rankernel.stats.groups import GroupedVoters, GroupEffect, GroupTestResult
from rankernel.stats.hsic import check_times, time_array

if TYPE_CHECKING:
    from rankernel.stats.differences import Differences

MAX_TIMES = 10_000  # whose segments are all compared, which takes the square of the number of times
N_BLOCKS = 2000  # blocks of neighbouring times, of more times
PRODUCTS_PER_SECOND = 1e9  # in sums over rows and distinct rankings, for the announced time


@dataclass(frozen=True, eq=False, kw_only=True)
class ChangePointResult(GroupTestResult):
    """Result of :func:`change_point_test`; ``groups`` are the segments between changes.

    Attributes
    ----------
    statistic : float
        The largest dispersion between the rows before and after a single change.
    null_distribution : array of shape (n_permutations,)
        The statistic for random orders of the rows.
    changes : tuple of int
        The first row of each segment but the first, of the rows in the order of time; empty if the test does not
        reject.
    change_times : tuple
        The time of the first row of each segment but the first; empty if no ``time`` was given.
    costs : array of shape (max_changes + 1,)
        The scatter within the best segments for 0, 1, ... changes.
    effect : float
        The effect of :func:`k_sample_test` between the segments. Segments are chosen on the same data, so it is biased
        upwards, and its interval does not account for the selection; the p-value does.
    """

    changes: tuple[int, ...]
    change_times: tuple[Any, ...]
    costs: FloatArray = field(repr=False)

    _draws_noun: ClassVar[str] = "random orders"

    def _summary(self) -> SummaryLines:
        noun, positions = ("time", self.change_times) if self.change_times else ("row", self.changes)
        where = f"{noun}{'s' * (len(positions) > 1)} {', '.join(map(str, positions))}"
        text = f"at {where}: {len(self.groups):,} segments" if self.changes else "none"
        return [("changes", text), *super()._summary()]

    def differences(self, confidence_level: float = 0.95) -> Differences:
        """Return in which items and pairs of items the segments differ: see :meth:`MMDResult.differences`."""
        if not self.changes:
            raise RankingError("changes is empty, so there are no segments to compare; n_changes=1 finds the best one")
        return super().differences(confidence_level)


@np.errstate(under="ignore")
def change_point_test(
    X: Any,
    kernel: Kernel | str | None = None,
    *,
    time: Any = None,
    n_changes: int | Literal["auto"] = "auto",
    max_changes: int = 10,
    min_rows: int = 5,
    n_permutations: int = 999,
    rng: Seed = 0,
    alpha: float = 0.05,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
) -> ChangePointResult:
    r"""Find the changes of a sequence of rankings, and test whether there is any.

    The statistic is the largest dispersion :math:`\frac{m n}{m + n} \|\mu_1 - \mu_2\|^2` between the m voters before
    and the n voters after a single change. Its null distribution is that of random orders of the rows: the test has its
    exact level for independent rows with any distribution.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings, in the order of time if ``time`` is not given; a row of count c is c voters at the same time.
    time : array of shape (n_rankings,), optional
        The time of each row, as in :func:`trend_test`. Rows of equal time are joined: changes are between times. If
        there are few different times this is faster.
    n_changes : int or "auto"
        The number of changes. "auto": none if the p-value is above ``alpha``, otherwise at least one, chosen by the
        slope heuristic.
    max_changes : int
        The largest number of changes considered.
    min_rows : int
        The smallest number of rows between two changes.
    n_permutations : int
        The number of random orders.
    alpha : float
        The significance level.
    kernel, rng, method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    ChangePointResult
        ``changes`` are the first rows of the segments after a change.

    Notes
    -----
    Up to 10,000 times, segments are the best of all. Of more times, changes are searched between 2,000 blocks of
    neighbouring times, and then each in turn is moved to the best of all times between its neighbours. The statistic,
    its null distribution and a single change use all times in any case. The Gram matrix of the distinct rankings is
    held in memory.

    Examples
    --------
    >>> from rankernel import concat, datasets
    >>> before = datasets.mallows(40, [0, 1, 2, 3, 4], 1.0, rng=1)
    >>> after = datasets.mallows(30, [4, 1, 2, 3, 0], 1.0, rng=2)
    >>> result = change_point_test(concat([before, after]))
    >>> result.changes, result.pvalue < 0.01
    ((40,), True)
    """
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    data = as_data(X)
    n_rows = len(data)
    alpha, least = check_number("alpha", alpha, 0, 1), check_integer("min_rows", min_rows)
    if n_rows < 2 * least:
        raise RankingError(
            f"X has {n_rows} rows; a change with at least min_rows={least} rows on either side needs {2 * least}"
        )
    times = np.arange(n_rows) if time is None else check_times(time, n_rows)
    order = np.argsort(times, kind="stable")
    starts = np.flatnonzero(np.diff(times[order], prepend=-np.inf))
    n_blocks = len(starts) if len(starts) <= MAX_TIMES else N_BLOCKS
    check_task("a search for changes", max(len(data.unique()), n_blocks))
    sample = Sample.planned(data, kernel, method, n_jobs)
    statistic = BestSplit(sample, data.counts.astype(np.float64), order, starts, least, n_permutations, seed)
    most = min(check_integer("max_changes", max_changes), statistic.max_changes)
    if isinstance(n_changes, str) and n_changes == "auto":
        n_wanted = most
    else:
        n_wanted = check_integer("n_changes", n_changes, 0, statistic.max_changes)
    null = statistic.null_distribution(n_permutations)
    costs, segments = statistic.segments(max(n_wanted, most))
    chosen = n_wanted
    if isinstance(n_changes, str):
        chosen = max(penalised_changes(costs, len(starts)), 1) if null.pvalue <= alpha else 0
    changes = tuple(segments[chosen])
    labels = None if time is None else time_array(time)[order]
    ends = list(zip((0, *changes), (*changes, n_rows), strict=True))
    segment = np.empty(n_rows, dtype=np.int64)
    segment[order] = np.searchsorted(np.array(changes), np.arange(n_rows), side="right")
    names = tuple(
        f"rows {a} to {b - 1}" if labels is None else f"times {labels[a]} to {labels[b - 1]}" for a, b in ends
    )
    voters = GroupedVoters.count(sample, names, segment, np.zeros_like(segment), data.counts)
    scheme = f"random orders of {n_rows:,} rows, at least {least} rows between changes"
    effect = GroupEffect(voters) if changes else None
    fields = evaluate(statistic, effect, null, sample, "kernel change points", scheme)
    fields["rankings"] = data
    if effect is not None:  # the skewness of the largest dispersion is not that of the dispersion of fixed segments
        fields["_interval"] = partial(effect.interval, Moments(), fields["effect_mcse"])
    change_times = () if labels is None else tuple(labels[list(changes)].tolist())
    return ChangePointResult(
        **fields, changes=changes, change_times=change_times, costs=costs, _voters=voters, _biased=True
    )


class BestSplit(PermutationStatistic):
    """The largest dispersion between the rows before and after a single change, with rows in random order.

    ``order`` are the rows in the order of time, ``starts`` the positions where a time begins.
    """

    def __init__(
        self,
        sample: Sample,
        weights: FloatArray,
        order: IntArray,
        starts: IntArray,
        min_rows: int,
        n_permutations: int,
        seed: int,
    ) -> None:
        n_rows, n_times, n_distinct = len(order), len(starts), len(sample.data)
        self.sample, self.weights, self.order, self.starts, self.min_rows = sample, weights, order, starts, min_rows
        self.splits = starts[(starts >= min_rows) & (starts <= n_rows - min_rows)]
        if len(self.splits) == 0:
            raise RankingError(
                f"no change between two of the {n_times:,} times has at least min_rows={min_rows} rows on either side; "
                "give a smaller min_rows or finer times"
            )
        self.by_products = len(self.splits) * n_distinct < PAIR_COST * n_rows
        n_operations = n_distinct * min(len(self.splits) * n_distinct / PAIR_COST, n_rows)
        announce_cost("a search for changes", n_permutations * n_operations / PRODUCTS_PER_SECOND)
        self.rng = named_generator(seed, "orders of rows", sample.index, weights)
        self.value = float(self.of_orders(order[None], sample.gram)[0])
        self.tolerance = RELATIVE_TOLERANCE * float(np.abs(sample.gram).mean() * weights.sum())

    @property
    def max_changes(self) -> int:
        """The largest number of changes with enough rows between them."""
        n_changes, last = 0, 0
        for start in self.blocks[self.blocks <= len(self.order) - self.min_rows].tolist():
            if start - last >= self.min_rows:
                n_changes, last = n_changes + 1, start
        return n_changes

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next random orders."""
        rows, values = np.arange(len(self.weights)), np.empty(n_permutations)
        n_entries = len(self.splits) * len(self.sample.gram) if self.by_products else len(rows)
        for part in slices(n_permutations, max(CHUNK_ENTRIES // max(n_entries, len(rows)), 1)):
            orders = np.stack([self.rng.permutation(rows) for _ in range(n_permutations)[part]])
            values[part] = self.of_orders(orders, self.sample.gram)
        return values

    def of_orders(self, orders: IntArray, gram: FloatArray) -> FloatArray:
        """Return the statistic for each order of the rows."""
        if self.by_products:
            return self.of_counts(orders, gram)
        return self.best_splits(orders, self.splits, gram)[0]

    def best_splits(self, orders: IntArray, splits: IntArray, gram: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the largest dispersion between the rows before and after a split, and this split, for each order."""
        values, best, is_split = np.empty(len(orders)), np.zeros(len(orders), np.int64), np.zeros(orders.shape[1], bool)
        is_split[splits - 1] = True
        run_interruptibly(best_splits, gram, self.sample.index, self.weights, orders, is_split, values, best)
        return values, best

    def of_counts(self, orders: IntArray, gram: FloatArray) -> FloatArray:
        """Return the statistic for each order, from the number of voters of each ranking before each split."""
        n_orders, n_parts = len(orders), len(self.splits) + 1
        part = np.searchsorted(self.splits, np.arange(orders.shape[1]), side="right")
        parts = self.count_by_part(np.arange(n_orders)[:, None] * n_parts + part, orders, n_orders * n_parts)
        counts = np.cumsum(parts.reshape(n_orders, n_parts, -1)[:, :-1], axis=1)
        voters = self.sample.data.counts.astype(np.float64)
        sums, n_voters = gram @ voters, float(voters.sum())
        before = pair_sums(gram, counts.reshape(-1, len(gram)), biased=True).reshape(counts.shape[:2])
        sizes, total = counts.sum(axis=2), float(voters @ sums)
        after = total - 2 * counts @ sums + before
        return np.asarray((before / sizes + after / (n_voters - sizes)).max(axis=1) - total / n_voters)

    def count_by_part(self, parts: IntArray, rows: IntArray, n_parts: int) -> FloatArray:
        """Return the number of voters of each ranking in each part, from the parts of rows."""
        n_distinct = len(self.sample.gram)
        cells = parts * n_distinct + self.sample.index[rows]
        counts = np.bincount(cells.ravel(), self.weights[rows].ravel(), n_parts * n_distinct)
        return counts.astype(np.float64).reshape(n_parts, n_distinct)

    @cached_property
    def blocks(self) -> IntArray:
        """The starts of times, or of blocks of neighbouring times if there are too many times."""
        if len(self.starts) <= MAX_TIMES:
            return self.starts
        return self.starts[np.arange(N_BLOCKS) * len(self.starts) // N_BLOCKS]

    def segments(self, max_changes: int) -> tuple[FloatArray, list[list[int]]]:
        """Return the smallest scatter for 0, 1, ... changes, and these changes."""
        costs, starts = self.segments_of_blocks(max_changes)
        changes = []
        for n_changes in range(max_changes + 1):
            ends = [starts.shape[1] - 1]
            for remaining in range(n_changes, 0, -1):
                ends.append(int(starts[remaining, ends[-1]]))
            changes.append(self.blocks[ends[:0:-1]].tolist())
        if len(self.blocks) < len(self.starts):
            changes = [self.moved(each) for each in changes]
            costs = np.array([self.scatter(each) for each in changes])
        return costs, changes

    def moved(self, changes: list[int]) -> list[int]:
        """Return the changes after moving each in turn to the best of all times between its neighbours."""
        bounds = [0, *changes, len(self.order)]
        for _ in changes:
            before = list(bounds)
            for number in range(1, len(bounds) - 1):
                low, high = bounds[number - 1], bounds[number + 1]
                splits = self.starts[(self.starts >= low + self.min_rows) & (self.starts <= high - self.min_rows)] - low
                bounds[number] = low + int(self.best_splits(self.order[None, low:high], splits, self.sample.gram)[1][0])
            if bounds == before:
                break
        return bounds[1:-1]

    def scatter(self, changes: list[int]) -> float:
        """Return the scatter of the voters within the segments between changes."""
        segment = np.searchsorted(np.array(changes), np.arange(len(self.order)), side="right")
        counts = self.count_by_part(segment, self.order, len(changes) + 1)
        own = float((counts @ np.diagonal(self.sample.gram)).sum())
        return own - float((pair_sums(self.sample.gram, counts, biased=True) / counts.sum(axis=1)).sum())

    def segments_of_blocks(self, max_changes: int) -> tuple[FloatArray, IntArray]:
        """Return the smallest scatter for 0, 1, ... changes, and where the last segment starts, for every end.

        Blocks are numbered from 0.
        """
        gram, index, weights = self.sample.gram, self.sample.index[self.order], self.weights[self.order]
        n_blocks, n_rows = len(self.blocks), np.diff(self.blocks, append=len(index))
        if n_blocks == len(index):
            sums = gram[np.ix_(index, index)]
            sums *= weights[:, None]
            sums *= weights
        else:
            counts = self.count_by_part(np.repeat(np.arange(n_blocks), n_rows), self.order, n_blocks)
            sums = counts @ gram @ counts.T
        traces, sizes = (np.add.reduceat(each, self.blocks) for each in (weights * np.diagonal(gram)[index], weights))
        return run_interruptibly(best_segments, sums, traces, sizes, n_rows, max_changes, self.min_rows)

    def standard_error(self) -> float:
        """Return the Monte Carlo standard error of the statistic, by drawing all kernel values again."""
        other = None if self.sample.plan is None else self.sample.plan._redrawn(1)
        if other is None:
            return 0.0
        again = self.of_orders(self.order[None], voter_gram(other))
        return abs(float(again[0]) - self.value) / float(np.sqrt(2))


def penalised_changes(costs: FloatArray, n_rows: int) -> int:
    r"""Return the number of changes with the smallest penalised cost.

    The penalty of D segments of N rows is :math:`c_1 \log \binom{N - 1}{D - 1} + c_2 D`, its constants minus twice the
    regression coefficients of the costs of the larger numbers of segments.
    """
    from scipy.special import gammaln

    n_segments = np.arange(1, len(costs) + 1)
    log_choose = gammaln(n_rows) - gammaln(n_segments) - gammaln(n_rows - n_segments + 1)
    large = slice(int(np.ceil(0.6 * len(costs))), None)
    terms = np.stack([log_choose, n_segments, np.ones(len(costs))], axis=1)
    if len(costs[large]) < 3:
        terms = terms[:, 1:]
    coefficients = np.linalg.lstsq(terms[large], costs[large], rcond=None)[0][:-1]
    totals = costs - 2 * terms[:, :-1] @ np.minimum(coefficients, 0.0)
    return int(np.argmax(totals <= totals.min() + RELATIVE_TOLERANCE * costs[0]))  # ties go to fewer changes


# ---------------------------------------------------------------------- compiled loops


@compiled
def best_splits(
    gram: FloatArray,
    index: Indices,
    weights: FloatArray,
    orders: IntArray,
    is_split: Mask,
    values: FloatArray,
    best: IntArray,
) -> None:
    """Write for each order of the rows the largest dispersion between the rows before and after a single change.

    Changes are after the positions of ``is_split``; ``best`` is the first row after the change.
    """
    counts = np.zeros(len(gram))
    for row in orders[0]:
        counts[index[row]] += weights[row]
    row_sums, n_voters = gram @ counts, counts.sum()
    total = counts @ row_sums
    for p in range(len(orders)):
        before, across, size, values[p] = 0.0, 0.0, 0.0, -np.inf
        sums = np.zeros(len(gram))  # of the kernel between each ranking and the voters before
        for t in range(orders.shape[1] - 1):
            row = orders[p, t]
            ranking, w = index[row], weights[row]
            kernel = gram[ranking]
            before += w * (2 * sums[ranking] + w * kernel[ranking])
            across += w * row_sums[ranking]
            size += w
            for u in range(len(gram)):
                sums[u] += w * kernel[u]
            if is_split[t]:
                after = total - 2 * across + before
                value = before / size + after / (n_voters - size) - total / n_voters
                if value > values[p]:
                    values[p], best[p] = value, t + 1


@compiled
def best_segments(
    pair_sums: FloatArray, traces: FloatArray, sizes: FloatArray, n_rows: IntArray, max_changes: int, min_rows: int
) -> tuple[FloatArray, IntArray]:
    """Return the smallest scatter within segments for 0 to ``max_changes`` changes, and where the last segment starts.

    The cost of blocks s to t is the sum of the diagonal minus the sum of all pairs over the number of voters.
    ``pair_sums`` has the sums of the kernel between the voters of two blocks, ``traces`` those of the diagonal.
    """
    n = len(sizes)
    cost = np.full((max_changes + 1, n + 1), np.inf)
    starts = np.zeros((max_changes + 1, n + 1), dtype=np.int64)
    # of the blocks from s to the current end
    sums, diagonals, voters, rows = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    for t in range(n):
        earlier = 0.0
        for s in range(t, -1, -1):
            if s < t:
                earlier += pair_sums[t, s]
            sums[s] += 2 * earlier + pair_sums[t, t]
            diagonals[s] += traces[t]
            voters[s] += sizes[t]
            rows[s] += n_rows[t]
        end = t + 1
        if rows[0] < min_rows:
            continue
        cost[0, end] = diagonals[0] - sums[0] / voters[0]
        for changes in range(1, max_changes + 1):
            for s in range(changes, end):
                if rows[s] < min_rows:
                    break
                value = cost[changes - 1, s] + diagonals[s] - sums[s] / voters[s]
                if value < cost[changes, end]:
                    cost[changes, end] = value
                    starts[changes, end] = s
    return cost[:, n].copy(), starts
