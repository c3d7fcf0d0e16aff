r"""Change points: where a stream of rankings begins to speak differently.

A segment costs the scatter of its voters around their mean embedding. The best segments for every number of changes are
found by dynamic programming on the Gram matrix (Harchaoui and Cappé 2007); the number of changes by a penalty whose
constants are the slopes of the costs where there are more changes than needed (Arlot, Celisse and Harchaoui 2019). A
permutation test of the best single change says whether there is any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_integer, check_number
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.memory import check_task
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import as_data
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.stats._effects import group_effect, group_effect_interval, kernel_errors
from rankernel.stats._groups import GroupedVoters
from rankernel.stats._permutations import ENTRIES, TIED, Null, PermutationsLike, as_permutations, generator
from rankernel.stats._voters import Ballots, plan_for_test, voter_gram, warn_if_noisy
from rankernel.stats.mmd import check_kernel
from rankernel.stats.results import ChangePointResult

MOST_ROWS = 10_000


def change_point_test(
    X: Any,
    kernel: Kernel | None = None,
    n_changes: int | Literal["auto"] = "auto",
    n_permutations: PermutationsLike = 1000,
    rng: Seed = 0,
    level: float = 0.05,
    most_changes: int = 10,
    least_rows: int = 5,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
) -> ChangePointResult:
    r"""Find where a stream of rankings changes, and test whether it changes at all.

    The statistic is the largest dispersion :math:`\frac{m n}{m + n} \|\mu_1 - \mu_2\|^2` between the m voters before
    and the n voters after one change. Its null distribution is that of the rows in random orders: the test has its
    level exactly, however rankings are distributed, if they are independent of each other.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings in the order of time; a row of count c is c voters at the same time.
    kernel : Kernel, optional
        The kernel; ``Mallows("median")`` if left out.
    n_changes : int or "auto"
        How many changes to find. "auto": none if the p-value is above ``level``, else as many as the penalty says, and
        at least one.
    n_permutations : int, "adaptive" or Adaptive
        How many random orders make the null distribution.
    rng : int or Generator
        Where they come from.
    level : float
        The level of the test.
    most_changes : int
        The most changes that are looked for.
    least_rows : int
        The least number of rows between two changes.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    n_jobs : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    ChangePointResult
        ``changes`` are the rows with which something new begins.

    Examples
    --------
    >>> from rankernel import concat, datasets
    >>> before = datasets.mallows(40, [0, 1, 2, 3, 4], 1.0, rng=1)
    >>> after = datasets.mallows(30, [4, 1, 2, 3, 0], 1.0, rng=2)
    >>> result = change_point_test(concat([before, after]))
    >>> result.changes, result.pvalue < 0.01
    ((40,), True)
    """
    wanted, start = as_permutations(n_permutations), as_seed(rng)
    data = as_data(X)
    level = check_number("level", level, 0, 1)
    least = check_integer("least_rows", least_rows)
    if len(data) < 2 * least:
        raise RankingError(
            f"X has {len(data)} rows; a change with at least {least} rows on either side needs {2 * least}"
        )
    if len(data) > MOST_ROWS:
        raise RankingError(
            f"X has {len(data):,} rows, and finding changes takes the square of their number; join rows of one "
            f"time to at most {MOST_ROWS:,}, or look at a part"
        )
    most = min(check_integer("most_changes", most_changes), len(data) // least - 1)
    plan = plan_for_test(check_kernel(kernel), data, method)
    check_task("a search for changes", len(data))
    ballots = Ballots.of(data, plan)
    stream = Stream.of(plan, data.counts.astype(np.float64), least, n_jobs)
    gains = stream.gains(np.arange(len(data))[None])
    statistic = float(gains[0])
    null = Null.drawn(RandomOrders(stream, start).draw, statistic, TIED * stream.scale, wanted, None)
    error = stream.kernel_error(plan, statistic)
    warn_if_noisy(error, float(null.values.std()))
    if isinstance(n_changes, str) and n_changes == "auto":
        costs, starts = stream.segments(most)
        chosen = max(penalised(costs, len(data)), 1) if null.pvalue <= level else 0
    else:
        chosen = check_integer("n_changes", n_changes, 0, len(data) // least - 1)
        costs, starts = stream.segments(max(chosen, most))
    changes = tuple(traced(starts, chosen, len(data)))
    segments = np.searchsorted(np.array(changes), np.arange(len(data)), side="right")
    names = tuple(f"rows {a} to {b - 1}" for a, b in zip((0, *changes), (*changes, len(data)), strict=True))
    voters = GroupedVoters.counted(ballots, segments, names, np.zeros_like(segments), plan, n_jobs)
    text = (
        f"kernel change points, {len(null.values):,} random orders of {len(data):,} rows, at least {least} rows "
        f"between changes, kernel values: {plan.method}"
    )
    single = len(names) == 1
    effect_error = 0.0 if single else kernel_errors(voters, biased=True)[1]
    return ChangePointResult(
        statistic,
        null.pvalue,
        null.values,
        null.tail(statistic, TIED * stream.scale, 0.0),
        null.n_for_moments,
        0.0 if single else group_effect(voters),
        text,
        plan,
        plan.kernel,
        data,
        error,
        effect_error,
        (lambda: (0.0, 0.0)) if single else partial(group_effect_interval, voters, 0.0, effect_error),
        voters,
        True,
        changes,
        costs,
    )


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order of time: the kernel between their voters, and how many there are of each."""

    gram: FloatArray
    weights: FloatArray
    least: int

    @classmethod
    def of(cls, plan: Plan, weights: FloatArray, least: int, n_jobs: int | None = None) -> Stream:
        """Return the rows of a plan."""
        matrix = voter_gram(plan, n_jobs)
        return cls(matrix if plan._rows is None else matrix[np.ix_(plan._rows, plan._rows)], weights, least)

    @property
    def scale(self) -> float:
        """The size of the statistic were all voters alike."""
        return float(np.abs(self.gram).mean() * self.weights.sum())

    def gains(self, orders: IntArray) -> FloatArray:
        """Return the largest dispersion between two sides of one change, for each order of the rows."""
        found = np.empty(len(orders))
        run_interruptibly(_loops.segments.best_splits, self.gram, self.weights, orders, self.least, found)
        return found

    def segments(self, most: int) -> tuple[FloatArray, IntArray]:
        """Return the least scatter for 0, 1, ... changes, and where the last segment begins, for every end."""
        costs, starts = run_interruptibly(_loops.segments.best_segments, self.gram, self.weights, most, self.least)
        return costs, starts

    def kernel_error(self, plan: Plan, statistic: float) -> float:
        """Return how much the statistic differs where kernel values are drawn again; 0 where they are exact."""
        other = plan._redrawn(1)
        if other is None:
            return 0.0
        again = Stream.of(other, self.weights, self.least).gains(np.arange(len(self.weights))[None])
        return abs(float(again[0]) - statistic) / float(np.sqrt(2))


class RandomOrders:
    """The statistic for one random order of the rows after another."""

    def __init__(self, stream: Stream, seed: int) -> None:
        self.stream, self.rng = stream, generator(seed, "orders of rows")

    def draw(self, n_orders: int) -> FloatArray:
        """Return the statistic of the next orders."""
        rows, found = np.arange(len(self.stream.weights)), np.empty(n_orders)
        for part in slices(n_orders, max(ENTRIES // len(rows), 1)):
            found[part] = self.stream.gains(np.stack([self.rng.permutation(rows) for _ in range(n_orders)[part]]))
        return found


def penalised(costs: FloatArray, n_rows: int) -> int:
    r"""Return how many changes are worth their penalty.

    The penalty of D segments of N rows is :math:`c_1 \log \binom{N - 1}{D - 1} + c_2 D`, its constants minus twice the
    slopes of the costs of the larger numbers of segments.
    """
    from scipy.special import gammaln

    n_segments = np.arange(1, len(costs) + 1)
    ways = gammaln(n_rows) - gammaln(n_segments) - gammaln(n_rows - n_segments + 1)
    late = slice(int(np.ceil(0.6 * len(costs))), None)
    terms = np.stack([ways, n_segments, np.ones(len(costs))], axis=1)
    if len(costs[late]) < 3:
        terms = terms[:, 1:]
    slopes = np.linalg.lstsq(terms[late], costs[late], rcond=None)[0][:-1]
    totals = costs - 2 * terms[:, :-1] @ np.minimum(slopes, 0.0)
    return int(np.argmax(totals <= totals.min() + TIED * costs[0]))  # more changes must gain more than a rounding


def traced(starts: IntArray, n_changes: int, n_rows: int) -> list[int]:
    """Return the changes of the best segments, from where the last segment of every end begins."""
    changes, end = [], n_rows
    for left in range(n_changes, 0, -1):
        end = int(starts[left, end])
        changes.append(end)
    return changes[::-1]
