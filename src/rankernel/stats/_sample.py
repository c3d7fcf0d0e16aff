"""The data of a test: distinct rankings, the number of voters of each, and the kernel matrix between them.

A row of count c is c voters. Equal rankings share one row of the Gram matrix, which is never expanded. Monte Carlo
draws depend on the ranking only, so an estimated kernel is one fixed symmetric function of two rankings, and a
permutation test with it has its exact level. The entry of two voters with the same ranking is the mean over pairs of
different draws, which is unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, Indices, IntArray
from rankernel._utils.checks import check_labels, check_numbers
from rankernel._utils.resources import check_task
from rankernel.data import Data, with_counts
from rankernel.errors import NotCharacteristicWarning, RankingError, SamplingWarning, warn
from rankernel.gram.methods import MethodLike, Mixed, MonteCarlo, as_method
from rankernel.gram.plan import Plan
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.stats._effects import Gradient

REDRAWN_ROWS = 64  # rows that are drawn again to estimate Monte Carlo errors
MAX_RELATIVE_ERROR = 0.5  # Monte Carlo error over the standard deviation of the null distribution, without a warning


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
        if isinstance(as_method(method), Mixed):
            raise ValueError("a test needs one estimator for all pairs; use method='auto' instead of 'mixed'")
        plan = check_kernel(kernel).plan(data, method=method)
        warn_if_not_characteristic(plan.kernel, data.n_items)
        if task is not None:
            check_task(task, len(plan._X))
        return cls.from_plan(data, plan, n_jobs)

    @classmethod
    def from_plan(cls, data: Data, plan: Plan, n_jobs: int | None = None) -> Sample:
        """Return the sample of the data that a plan was made for."""
        index = np.arange(len(data)) if plan._rows is None else plan._rows
        _, first = np.unique(index, return_index=True)
        distinct = with_counts(data[first], np.bincount(index, data.counts))
        return cls(distinct, plan.kernel, plan, n_jobs=n_jobs)

    @classmethod
    def from_gram(cls, data: Data, gram: Any, kernel: Any) -> Sample:
        """Return the sample of data whose Gram matrix the caller gave, one row for each row of the data."""
        values = check_numbers("precomputed", gram, (len(data), len(data)))
        if not np.allclose(values, values.T):
            raise ValueError("precomputed is not symmetric; give a symmetric Gram matrix")
        return cls(data, None if kernel is None else as_kernel(kernel), None, values)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out a Gram matrix that can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name != "gram"}

    def release(self) -> None:
        """Free the Gram matrix, which is computed again on the next access."""
        self.__dict__.pop("gram", None)

    @cached_property
    def gram(self) -> FloatArray:
        """The Gram matrix, with the kernel of two different voters with the same ranking on its diagonal."""
        if self.given_gram is not None:
            return self.given_gram
        assert self.plan is not None
        return voter_gram(self.plan, self.n_jobs, bool((self.data.counts > 1).any()))

    @property
    def index(self) -> Indices:
        """The row of the Gram matrix of each row of the original data."""
        return np.arange(len(self.data)) if self.plan is None or self.plan._rows is None else self.plan._rows

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

    def standard_errors(self, gradients: Sequence[Gradient | None]) -> tuple[float, ...]:
        r"""Return the Monte Carlo standard errors of functions of the Gram matrix; nan for None.

        An estimated matrix has the inner products of embeddings with independent errors :math:`e_u`, which change a
        function with derivative :math:`\Lambda`, to first order, by
        :math:`2 \sum_u \langle e_u, \sum_v \Lambda_{uv} \phi_v \rangle`. Drawing some rows again estimates the variance
        of these terms. It includes the error of the other factor, so it is too large, by a factor of at most 2.
        """
        if not self.is_estimated:
            return (0.0,) * len(gradients)
        known = [gradient for gradient in gradients if gradient is not None]
        variances: list[FloatArray] = []
        while sum(part.shape[1] for part in variances) < REDRAWN_ROWS:
            redrawn = self.redraw(len(variances) + 1)
            if redrawn is None:
                return (0.0,) * len(gradients)
            drawn, change = redrawn
            variances.append(np.stack([np.einsum("uv,uv->u", each(drawn), change) ** 2 / 2 for each in known]))
        errors = iter(np.sqrt(4 * len(self.gram) * np.concatenate(variances, axis=1).mean(axis=1)).tolist())
        return tuple(float("nan") if gradient is None else next(errors) for gradient in gradients)

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
    return matrix


def voter_diagonal(plan: Plan, has_equal_voters: bool) -> FloatArray:
    """Return the kernel of two different voters with the same ranking.

    Its unbiased estimate needs two independent blocks of draws. With a single block and no two voters with the same
    ranking, the estimate is the biased one of :meth:`Plan.gram`, which unbiased statistics do not use.
    """
    n_blocks = getattr(plan._evaluator, "n_blocks", 2)
    return plan.diagonal(unbiased=has_equal_voters or n_blocks > 1)


def stratum_codes(strata: Any, n_rows: int) -> IntArray:
    """Return the number of the stratum of each row; all 0 for None."""
    if strata is None:
        return np.zeros(n_rows, dtype=np.int64)
    codes = np.unique(check_labels("strata", strata, n_rows), return_inverse=True)[1]
    return np.asarray(codes.ravel(), dtype=np.int64)


def check_voters_needed(data: Data, least: int, name: str = "X", noun: str = "voter") -> None:
    """Raise an error if data have too few voters for a statistic."""
    if data.n_voters < least:
        raise RankingError(f"{name} has {data.n_voters} {noun}(s); this statistic needs at least {least}")


def warn_if_not_characteristic(kernel: Kernel, n_items: int) -> None:
    """Warn if the embedding has too few dimensions to distinguish all distributions of full rankings."""
    if kernel.facts(n_items).max_dimension < math.factorial(n_items):
        warn(
            f"{kernel} is not characteristic on {n_items} items: different distributions can have the same mean "
            "embedding, which no sample size detects; Mallows(nu) is characteristic",
            NotCharacteristicWarning,
        )


def warn_if_noisy(mcse: float, null_std: float) -> None:
    """Warn if the Monte Carlo error of a statistic is large relative to its null distribution."""
    if mcse > MAX_RELATIVE_ERROR * null_std > 0:
        warn(
            f"kernel values are estimated, and the Monte Carlo standard error of the statistic, {mcse:.2g}, is large "
            f"relative to the standard deviation of its null distribution, {null_std:.2g}: the test has its level but "
            "loses power; increase n_draws",
            SamplingWarning,
        )
