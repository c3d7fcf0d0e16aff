"""One test from several kernels, with the right level (MMDAgg: Schrab, Kim, Albert, Laurent, Guedj and Gretton 2023).

Each kernel ranks a statistic among B1 permutations; the aggregated test looks at the best of these ranks, and B2 other
permutations say how good the best rank is by chance. The paper fixes a level and finds by bisection how far each
kernel's own level must be lowered. All of its rules for all levels at once are told by the corrected p-values here: a
kernel rejects at a level exactly if its corrected p-value is not above it. Under the null hypothesis the data and the
B2 permutations are exchangeable, also given the B1 others, so the level holds for any number of permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_integer, check_number, is_number, short_repr
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data
from rankernel.gram.bandwidth import median_rate
from rankernel.gram.methods import MethodLike
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.stats._permutations import count_at_least
from rankernel.stats._voters import warn_if_noisy
from rankernel.stats.mmd import Evidence, Samples, description, evidence_of
from rankernel.stats.results import AggregatedMMDResult

AUTO_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


def mmd_aggregated_test(
    X: Any,
    Y: Any,
    kernels: Any = "auto",
    n_permutations: int = 1000,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: tuple[Any, Any] | None = None,
    level: float = 0.05,
    n_jobs: int | None = None,
) -> AggregatedMMDResult:
    """Test whether two sets of rankings come from one distribution, with several kernels at one level.

    Parameters
    ----------
    X, Y, rng, biased, method, strata, n_jobs
        As in :func:`mmd_test`.
    n_permutations : int
        How many divisions make the null distribution of each kernel; there are as many again to say how good the best
        kernel is by chance. A number: the same permutations serve all kernels, so that none can stop before the others.
    kernels : "auto", or a list of kernels or of widths nu
        Widths are those of Mallows kernels, and "auto" is five of them around the median heuristic, which is taken
        from both samples together.
    level : float
        The level at which kernels are said to reject.

    Returns
    -------
    AggregatedMMDResult

    Examples
    --------
    >>> from rankernel import Rankings
    >>> X = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[9, 7])
    >>> Y = Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], items=X.items, counts=[4, 12])
    >>> result = mmd_aggregated_test(X, Y)
    >>> len(result.kernels), bool(result.rejected.any())
    (5, True)
    """
    n_divisions, start = 2 * check_integer("n_permutations", n_permutations), as_seed(rng)
    level = check_number("level", level, 0, 1)
    samples = Samples.checked(X, Y, strata, biased)
    voters = [samples.planned(one, method, n_jobs) for one in kernels_of(kernels, samples.data)]
    evidence = []
    for each in voters:
        evidence.append(evidence_of(each, n_divisions, start, biased))
        each.forget()  # one matrix at a time
    half = len(evidence[0].null.values) // 2
    own, best = ranks_among(evidence, half)
    corrected = corrected_pvalues(own, best)
    winner = int(np.argmin(own))
    chosen, found = voters[winner], evidence[winner]
    warn_if_noisy(found.error, float(found.null.values.std()))
    return AggregatedMMDResult(
        float(-np.log10(own[winner] / (1 + half))),
        float(corrected.min()),
        -np.log10(best / (1 + half)),
        min(len(evidence) * min(each.tail for each in evidence), 1.0),
        max(each.null.n_for_moments for each in evidence),
        found.effect,
        f"{description(n_permutations, biased, chosen)}; {len(evidence)} kernels aggregated",
        chosen.plan,
        chosen.kernel,
        chosen.data,
        rank_error(found, half),
        found.effect_error,
        found.interval(chosen),
        chosen,
        biased,
        found.witness,
        kernels=tuple(each.kernel for each in voters if each.kernel is not None),
        statistics=np.array([each.statistic for each in evidence]),
        pvalues=corrected,
        rejected=corrected <= level,
        level=level,
    )


def kernels_of(kernels: Any, data: Data) -> list[Kernel]:
    """Return the kernels that are asked for, their widths resolved on the data."""
    if isinstance(kernels, str) and kernels == "auto":
        width = median_rate(Mallows(nu="median"), data)
        return [Mallows(nu=scale * width) for scale in AUTO_SCALES]
    is_list = isinstance(kernels, Sequence | np.ndarray) and not isinstance(kernels, str | bytes)
    if not is_list or getattr(kernels, "ndim", 1) == 0 or not len(kernels):
        raise TypeError(
            f"kernels={short_repr(kernels)} is no list of kernels; give such as [Mallows(0.1), Kendall()], or 'auto'"
        )
    given = [
        Mallows(nu=check_number("one of kernels", each, 0)) if is_number(each) else as_kernel(each, "one of kernels")
        for each in kernels
    ]
    return [each.resolve(data) for each in given]


def ranks_among(evidence: list[Evidence], half: int) -> tuple[IntArray, IntArray]:
    """Return the rank of the data for each kernel, and of each permutation of the second half for its best kernel.

    A rank is one more than the number of permutations of the first half with a statistic at least as large.
    """
    ranks = np.array(
        [
            1
            + count_at_least(
                each.null.values[:half], np.append(each.statistic, each.null.values[half:]), each.tolerance
            )
            for each in evidence
        ]
    )
    return ranks[:, 0], ranks[:, 1:].min(axis=0)


def rank_error(found: Evidence, half: int) -> float:
    """Return by how much the logarithm of a rank changes where the statistic errs by its standard error."""
    ends = found.statistic + np.array([-found.error, found.error])
    ranks = 1 + count_at_least(found.null.values[:half], ends, found.tolerance)
    return float(np.log10(ranks[0] / ranks[1])) / 2


def corrected_pvalues(own: IntArray, best: IntArray) -> FloatArray:
    """Return for each rank of the data how probable it is that the best of all kernels has such a rank by chance.

    Examples
    --------
    >>> corrected_pvalues(np.array([1, 4]), best=np.array([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    array([0.2, 0.5])
    """
    return np.asarray((1 + np.searchsorted(np.sort(best), own, side="right")) / (1 + len(best)))
