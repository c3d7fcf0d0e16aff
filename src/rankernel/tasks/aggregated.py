"""One test from several kernels, with the right level (MMDAgg: Schrab, Kim, Albert, Laurent, Guedj and Gretton 2023).

Each kernel ranks a statistic among B1 permutations; the aggregated test looks at the best of these ranks, and B2 other
permutations say how good the best rank is by chance. The paper fixes a level and finds by bisection how far each
kernel's own level must be lowered. All of its rules for all levels at once are told by the corrected p-values here: a
kernel rejects at a level exactly if its corrected p-value is not above it. Under the null hypothesis the data and the
B2 permutations are exchangeable, also given the B1 others, so the level holds for any number of permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import numpy as np

from rankernel.kernels import Kernel, Mallows
from rankernel.rankings import Rankings
from rankernel.tasks.permutations import count_at_least, pvalue
from rankernel.tasks.records import AggregatedMMDResult, MMDResult
from rankernel.tasks.voters import FloatArray, IntArray, Rows

__all__ = ["Evidence", "concluded", "corrected_pvalues", "kernels_of"]

AUTO_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one kernel says: its statistic, a null distribution, and how close a tie may be by rounding."""

    kernel: Kernel | None
    statistic: float
    null: FloatArray
    tolerance: float
    witness: FloatArray


def kernels_of(kernel: Any, data: Rankings) -> list[Kernel]:
    """Return the kernels that are asked for, their widths resolved on the data."""
    if isinstance(kernel, Kernel):
        return [kernel.resolve(data)]
    if isinstance(kernel, str) and kernel == "auto":
        width = cast(float, cast(Mallows, Mallows(nu="median").resolve(data)).nu)
        return [Mallows(nu=scale * width) for scale in AUTO_SCALES]
    if isinstance(kernel, str | Real) or not isinstance(kernel, Sequence | np.ndarray) or not len(kernel):
        raise TypeError(f"kernel={kernel!r} is no kernel; give one such as Mallows(0.1), 'auto', or a list of them")
    given = [Mallows(nu=float(each)) if isinstance(each, Real) else each for each in kernel]
    for each in given:
        if not isinstance(each, Kernel):
            raise TypeError(f"the list of kernels holds {each!r}; it holds kernels, or widths nu of Mallows kernels")
    return [each.resolve(data) for each in given]


def concluded(
    evidence: list[Evidence], several: bool, level: float, method: str, rows: Rows
) -> MMDResult | AggregatedMMDResult:
    """Return the record of a test with one kernel, or with several."""
    if several:
        return aggregated(evidence, level, method, rows)
    (only,) = evidence
    p = pvalue(only.null, only.statistic, only.tolerance)
    return MMDResult(only.statistic, p, only.null, method, only.kernel, *rows.by_ballot(only.witness))


def aggregated(evidence: list[Evidence], level: float, method: str, rows: Rows) -> AggregatedMMDResult:
    """Return the record of the aggregated test; the first half of each null distribution is B1, the rest B2."""
    half = len(evidence[0].null) // 2
    own, best = ranks_among(evidence, half)
    corrected = corrected_pvalues(own, best)
    winner = int(np.argmin(own))
    return AggregatedMMDResult(
        float(-np.log10(own[winner] / (1 + half))),
        float(corrected.min()),
        -np.log10(best / (1 + half)),
        f"{method}; {len(evidence)} kernels aggregated",
        evidence[winner].kernel,
        *rows.by_ballot(evidence[winner].witness),
        kernels=tuple(cast(Kernel, each.kernel) for each in evidence),
        statistics=np.array([each.statistic for each in evidence]),
        pvalues=corrected,
        rejected=corrected <= level,
        level=level,
    )


def ranks_among(evidence: list[Evidence], half: int) -> tuple[IntArray, IntArray]:
    """Return the rank of the data for each kernel, and of each permutation of the second half for its best kernel.

    A rank is one more than the number of permutations of the first half with a statistic at least as large.
    """
    ranks = np.array(
        [
            1 + count_at_least(each.null[:half], np.append(each.statistic, each.null[half:]), each.tolerance)
            for each in evidence
        ]
    )
    return ranks[:, 0], ranks[:, 1:].min(axis=0)


def corrected_pvalues(own: IntArray, best: IntArray) -> FloatArray:
    """Return for each rank of the data how probable it is that the best of all kernels has such a rank by chance.

    Examples
    --------
    >>> corrected_pvalues(np.array([1, 4]), best=np.array([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    array([0.2, 0.5])
    """
    return np.asarray((1 + np.searchsorted(np.sort(best), own, side="right")) / (1 + len(best)))
