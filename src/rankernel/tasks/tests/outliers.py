r"""Outlying ballots: those far from the mean embedding of the rest, with a bound on how many are named wrongly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel.arrays import FloatArray, Indices, IntArray, Mask
from rankernel.checks import number
from rankernel.data import Data, as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.seeds import Seed, as_seed
from rankernel.tasks.tests._permutations import generator
from rankernel.tasks.tests._voters import voter_gram
from rankernel.tasks.tests.corrections import benjamini_hochberg
from rankernel.tasks.tests.mmd import check_kernel
from rankernel.tasks.tests.results import Facts, Told

LEAST_VOTERS = 20  # that say what is usual
UPPER_QUARTILE = 0.6744897501960817  # of a normal distribution


@dataclass(frozen=True, eq=False)
class OutlierResult(Told):
    """What :func:`outlier_test` found.

    Attributes
    ----------
    distances : array of shape (n_rankings,)
        The squared distance of each ballot from the mean embedding of the rest, or of the reference.
    pvalues : array of shape (n_rankings,)
        How often a usual ballot is so far away.
    corrected : array of shape (n_rankings,)
        P-values corrected by the method of Benjamini and Hochberg, each voter counted.
    level : float
        The share of ballots named wrongly that is allowed.
    method : str
        What was done.
    plan : Plan
        How kernel values were computed.
    kernel : Kernel
        The kernel, its width a number.
    rankings : Rankings or Preferences
        The rankings as given.
    """

    distances: FloatArray = field(repr=False)
    pvalues: FloatArray = field(repr=False)
    corrected: FloatArray = field(repr=False)
    level: float
    method: str
    plan: Plan = field(repr=False)
    kernel: Kernel
    rankings: Data = field(repr=False)

    @property
    def outlying(self) -> Mask:
        """Which ballots are outlying."""
        return np.asarray(self.corrected <= self.level)

    @property
    def order(self) -> Indices:
        """The rows, the farthest first."""
        return np.argsort(-self.distances, kind="stable")

    def facts(self) -> Facts:
        """Return what there is to say, each with its name."""
        n = int(self.rankings.counts[self.outlying].sum())
        return [
            ("outlying", f"{n:,} of {self.rankings.n_voters:,} ballots, at a false discovery rate of {self.level:g}"),
            ("kernel", str(self.kernel)),
            ("method", self.method),
        ]


def outlier_test(
    X: Any,
    reference: Any = None,
    kernel: Kernel | None = None,
    level: float = 0.05,
    seed: Seed = 0,
    method: MethodLike = "auto",
    threads: int | None = None,
) -> OutlierResult:
    r"""Name ballots that are unlike the rest, so that a share of about ``level`` of those named is wrong.

    The distance of a ballot is :math:`\|\phi(R) - \mu\|^2`. With a ``reference`` of ballots known to be usual,
    :math:`\mu` is the mean embedding of one half of them, and the p-value of a ballot is the share of the other half
    that is at least as far away (conformal p-values: Bates, Candès, Lei, Romano and Sesia 2023). If usual ballots are
    drawn like the reference, the false discovery rate is at most ``level``, whatever their distribution.

    Without one, :math:`\mu` is the mean of the rest, and what is usual is read off the middle of all distances: their
    cube roots are taken to be normal above the median, with the scale of their upper quartile. This is approximate: it
    needs that most ballots are usual and of one kind. Groups of voters are no outliers: see :func:`linkage`.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The ballots.
    reference : Rankings, Preferences or integer array, optional
        Ballots known to be usual.
    kernel : Kernel, optional
        The kernel; ``Mallows("median")`` if left out.
    level : float
        The false discovery rate.
    seed : int or Generator
        How a reference is divided.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    threads : int, optional
        How many tiles of the Gram matrix to compute at once.

    Examples
    --------
    >>> from rankernel import Rankings, concat, datasets
    >>> usual = datasets.mallows(200, [0, 1, 2, 3, 4, 5, 6, 7], 1.0, seed=1)
    >>> odd = Rankings([[7, 6, 5, 4, 3, 2, 1, 0]], usual.items)
    >>> outlier_test(concat([odd, usual[:100]]), usual[100:], level=0.1).order[0]
    np.int64(0)
    """
    data, start = as_data(X), as_seed(seed)
    number("level", level, 0, 1)
    if reference is None:
        check_enough(data, "X")
        plan = check_kernel(kernel).plan(data, method=method)
        distances = distances_from_rest(square(plan, threads), data.counts.astype(np.float64))
        pvalues, text = empirical_pvalues(distances, data.counts), "the rest, with an empirical null distribution"
    else:
        usual = as_data(reference, name="reference")
        check_enough(usual, "reference")
        if set(data.items) != set(usual.items):
            raise RankingError("X and reference are not over the same items; use .with_items(items)")
        both = concat([data, usual])
        plan = check_kernel(kernel).plan(both, method=method)
        halves = divided(usual.counts, start)
        weights = np.concatenate([np.zeros(len(data)), halves[0] / halves[0].sum()])
        gram = square(plan, threads)
        all_distances = np.diagonal(gram) - 2 * gram @ weights + weights @ gram @ weights
        distances, others = np.split(all_distances, [len(data)])
        pvalues = conformal_pvalues(distances, others, halves[1])
        text = f"one half of {usual.n_voters:,} ballots of reference, beside the other half"
    corrected = benjamini_hochberg(pvalues, data.counts)
    text = f"squared distance from {text}, kernel values: {plan.method}"
    return OutlierResult(distances, pvalues, corrected, level, text, plan, plan.kernel, data)


def check_enough(data: Data, name: str) -> None:
    """Refuse too few ballots to say what is usual."""
    if data.n_voters < LEAST_VOTERS:
        raise RankingError(f"{name} has {data.n_voters} ballots; to say what is usual takes at least {LEAST_VOTERS}")


def square(plan: Plan, threads: int | None) -> FloatArray:
    """Return the kernel between all rows of a plan."""
    gram = voter_gram(plan, threads)
    return gram if plan.rows is None else gram[np.ix_(plan.rows, plan.rows)]


def distances_from_rest(gram: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the squared distance of a voter of each row from the mean embedding of all other voters."""
    n, own = float(counts.sum()), np.diagonal(gram)
    reach = gram @ counts
    total = float(counts @ reach)
    return np.asarray(own - 2 * (reach - own) / (n - 1) + (total - 2 * reach + own) / (n - 1) ** 2)


def empirical_pvalues(distances: FloatArray, counts: IntArray) -> FloatArray:
    """Return the probability of so large a distance, by a normal curve of cube roots through the middle of all."""
    from scipy.special import ndtr

    roots = np.cbrt(np.maximum(distances, 0.0))
    middle, upper = quantiles(roots, counts, (0.5, 0.75))
    if not upper > middle:
        return np.where(roots > middle, 1 / (1 + float(np.sum(counts))), 1.0)
    return np.asarray(ndtr(-(roots - middle) * UPPER_QUARTILE / (upper - middle)))


def quantiles(values: FloatArray, counts: IntArray, shares: tuple[float, ...]) -> list[float]:
    """Return quantiles of values that occur as often as their counts say, as NumPy takes them of a long list.

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0]), np.array([1, 3]), (0.5, 0.75))  # of 1, 1, 1, 3
    [1.0, 1.5]
    """
    order = np.argsort(values)
    ends = np.cumsum(counts[order])
    found = []
    for share in shares:
        place = share * (int(ends[-1]) - 1)
        below, above = values[order][np.searchsorted(ends, [math.floor(place), math.ceil(place)], side="right")]
        found.append(float(below + (above - below) * (place - math.floor(place))))
    return found


def divided(counts: Any, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return how many voters of each row are in each half."""
    rng = generator(seed, "halves of a reference")
    first = rng.multivariate_hypergeometric(counts, int(counts.sum()) // 2, method="marginals")
    return first.astype(np.float64), (counts - first).astype(np.float64)


def conformal_pvalues(distances: FloatArray, others: FloatArray, counts: FloatArray) -> FloatArray:
    """Return (1 + how many usual voters are at least as far) / (1 + how many there are).

    Examples
    --------
    >>> conformal_pvalues(np.array([0.5, 2.0]), np.array([0.0, 1.0]), np.array([2.0, 1.0]))
    array([0.5 , 0.25])
    """
    order = np.argsort(others)
    below = np.concatenate([[0.0], np.cumsum(counts[order])])
    reached = below[np.searchsorted(others[order], distances - 1e-12, side="left")]
    return np.asarray((1 + counts.sum() - reached) / (1 + counts.sum()))
