r"""Outlying ballots: those far from the mean embedding of the rest, with a bound on how many are named wrongly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, Mask
from rankernel._utils.checks import check_number
from rankernel._utils.memory import check_task
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data, concat
from rankernel.errors import MisfitWarning, RankingError, SamplingWarning, missing_extra, warn
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.models.null_models import Model, inlier_models
from rankernel.stats._permutations import generator
from rankernel.stats._usual import UsualDistances
from rankernel.stats._voters import NOISY, REDRAWN, voter_gram
from rankernel.stats.corrections import benjamini_hochberg
from rankernel.stats.mmd import check_kernel
from rankernel.stats.results import Facts, Told, error_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LEAST_VOTERS = 20  # that say what is usual
MOST_OUTLYING = 0.2  # of all ballots: more are no outliers, but another kind
QUARTER, SLACK, ERRORS = 0.25, 0.02, 4  # how many p-values may be below a quarter: so much more, and standard errors


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
    models : tuple of models
        What usual ballots are like, where no reference says it.
    distance_error : float
        The typical standard error of a distance that comes from estimated kernel values; 0 where they are exact.
    """

    distances: FloatArray = field(repr=False)
    pvalues: FloatArray = field(repr=False)
    corrected: FloatArray = field(repr=False)
    level: float
    method: str
    plan: Plan = field(repr=False)
    kernel: Kernel
    rankings: Data = field(repr=False)
    models: tuple[Model, ...]
    distance_error: float

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
            ("farthest", f"{self.distances.max():.3g}{error_text(self.distance_error)}, squared distance"),
            ("kernel", str(self.kernel)),
            ("method", self.method),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the distances of all ballots, the farthest first, and which are outlying."""
        from rankernel.plots import outliers

        return outliers(self, ax=ax)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each ballot, the farthest first; its index is the row in the data."""
        try:
            import pandas as pd
        except ImportError:
            raise missing_extra("pandas", "frames") from None
        columns = {
            "distance": self.distances,
            "pvalue": self.pvalues,
            "corrected": self.corrected,
            "outlying": self.outlying,
            "voters": self.rankings.counts,
        }
        return pd.DataFrame(columns).iloc[self.order]


def outlier_test(
    X: Any,
    reference: Any = None,
    kernel: Kernel | None = None,
    level: float = 0.05,
    rng: Seed = 0,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
) -> OutlierResult:
    r"""Name ballots that are unlike the rest, so that a share of about ``level`` of those named is wrong.

    The distance of a ballot is :math:`\|\phi(R) - \mu\|^2`. With a ``reference`` of ballots known to be usual,
    :math:`\mu` is the mean embedding of one half of them, and the p-value of a ballot is the share of the other half
    that is at least as far away (conformal p-values: Bates, Candès, Lei, Romano and Sesia 2023). If usual ballots are
    drawn like the reference, the false discovery rate is at most ``level``, whatever their distribution.

    Without one, :math:`\mu` is the mean of the rest, and what is usual is taken from models of one kind of voter: a
    Plackett-Luce model, and a Mallows model if no item is free, both fitted so that ballots which they do not explain
    do not count, their voters more or less sure. The p-value of a ballot is the larger of the two probabilities that a
    ballot with as many items, ties and free items is at least as far away, by simulation; draws from flatter models
    reach far into the tail. So ``level`` holds if usual ballots come from either model, approximately. A
    :class:`MisfitWarning` tells where the ballots disagree with both, or where so many are outlying that they are
    another kind of voter: groups are no outliers, see :func:`linkage`.

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
    rng : int or Generator
        How a reference is divided, and where simulated ballots come from.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    n_jobs : int, optional
        How many tiles of the Gram matrix to compute at once.

    Examples
    --------
    >>> from rankernel import Rankings, concat, datasets
    >>> usual = datasets.mallows(200, [0, 1, 2, 3, 4, 5, 6, 7], 1.0, rng=1)
    >>> odd = Rankings([[7, 6, 5, 4, 3, 2, 1, 0]], usual.items)
    >>> outlier_test(concat([odd, usual[:100]]), usual[100:], level=0.1).order[0]
    np.int64(0)
    """
    data, start = as_data(X), as_seed(rng)
    level = check_number("level", level, 0, 1)
    models: tuple[Model, ...] = ()
    if reference is None:
        check_enough(data, "X")
        plan = check_kernel(kernel).plan(data, method=method)
        check_task("a search for outliers", len(plan.X))
        gram = voter_gram(plan, n_jobs)
        fitted = inlier_models(data)
        models = tuple(model.fitted for model in fitted)
        usual = UsualDistances.of(plan, gram, data)
        distances, pvalues = usual.distances, usual.pvalues(fitted, generator(start, "usual ballots"))
        weights = usual.weights
        text = "the rest, beside simulations from " + " and ".join(type(model).__name__ for model in models)
    else:
        known = as_data(reference, name="reference")
        check_enough(known, "reference")
        if set(data.items) != set(known.items):
            raise RankingError("X and reference are not over the same items; use .with_items(items)")
        both = concat([data, known])
        plan = check_kernel(kernel).plan(both, method=method)
        check_task("a search for outliers", len(plan.X))
        gram = voter_gram(plan, n_jobs)
        halves = divided(known.counts, start)
        row_of = np.arange(len(both)) if plan.rows is None else plan.rows
        weights = np.bincount(row_of[len(data) :], halves[0] / halves[0].sum(), len(gram)).astype(np.float64)
        all_distances = np.asarray(np.diagonal(gram) - 2 * gram @ weights + weights @ gram @ weights)[row_of]
        distances, others = np.split(all_distances, [len(data)])
        pvalues = conformal_pvalues(distances, others, halves[1])
        text = f"one half of {known.n_voters:,} ballots of reference, beside the other half"
    corrected = benjamini_hochberg(pvalues, data.counts)
    error = distance_error(plan, gram, weights)
    warn_if_unclear(error, distances)
    if models:
        warn_if_misfit(pvalues, corrected <= level, data.counts.astype(np.float64))
    text = f"squared distance from {text}, kernel values: {plan.method}"
    return OutlierResult(distances, pvalues, corrected, level, text, plan, plan.kernel, data, models, error)


def check_enough(data: Data, name: str) -> None:
    """Refuse too few ballots to say what is usual."""
    if data.n_voters < LEAST_VOTERS:
        raise RankingError(f"{name} has {data.n_voters} ballots; to say what is usual takes at least {LEAST_VOTERS}")


def distance_error(plan: Plan, gram: FloatArray, weights: FloatArray) -> float:
    """Return the typical standard error of a distance from estimated kernel values, by drawing some rows again.

    ``weights`` are the shares of the rows in the mean. What the mean itself errs by is the same for all ballots.
    """
    other = plan.distinct.redrawn(1)
    if other is None:
        return 0.0
    some = np.sort(np.random.default_rng(1).permutation(len(gram))[:REDRAWN])
    again = other.block(some, np.arange(len(gram)))
    again[np.arange(len(some)), some] = own = other.diagonal(unbiased=True)[some]
    change = (own - 2 * again @ weights) - (np.diagonal(gram)[some] - 2 * gram[some] @ weights)
    return float(np.sqrt((change**2).mean() / 2))


def warn_if_unclear(error: float, distances: FloatArray) -> None:
    """Warn where ballots may be far away by the errors of estimated kernel values alone."""
    spread = float(distances.std())
    if error > NOISY * spread > 0:
        warn(
            f"kernel values are estimated, and their errors change distances by {error:.2g}, beside a standard "
            f"deviation of {spread:.2g} between ballots: few outlying ballots can be told; take more draws",
            SamplingWarning,
        )


def warn_if_misfit(pvalues: FloatArray, named: Mask, counts: FloatArray) -> None:
    """Warn where ballots are not as the models say: too many outlying, or too many others in the outer quarter."""
    share = float(counts[named].sum() / counts.sum())
    usual = float(counts[~named].sum())
    outer = float(counts[~named & (pvalues <= QUARTER)].sum()) / usual if usual else 0.0
    if share > MOST_OUTLYING:
        problem = f"{share:.0%} of the ballots are outlying, which makes them another kind of voter, see linkage"
    elif usual and outer > QUARTER + SLACK + ERRORS * (QUARTER * (1 - QUARTER) / usual) ** 0.5:
        problem = f"{outer:.0%} of the usual ballots are as far away as {QUARTER:.0%} should be"
    else:
        return
    warn(
        f"the ballots do not look like those of one kind of voter: {problem}; more of those that are named may be "
        "usual than level says, give a reference of usual ballots",
        MisfitWarning,
    )


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
