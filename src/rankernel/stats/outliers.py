"""Outlier detection: ballots far from the mean embedding of the others, at a given false discovery rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils import FloatArray, Indices, IntArray, Mask
from rankernel._utils.checks import Seed, as_seed, check_number
from rankernel._utils.resources import announce_cost, check_task, n_threads, slices
from rankernel.data import Data, as_data, concat
from rankernel.errors import MisfitWarning, RankingError, SamplingWarning, require, warn
from rankernel.gram.montecarlo import MonteCarlo, unbiased_method
from rankernel.gram.plan import MethodLike, Plan
from rankernel.kernels.base import Kernel
from rankernel.models.mallows import MallowsModel
from rankernel.models.null_models import Model, coarsen, fit_plackett_luce, shape_codes
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings
from rankernel.stats._permutations import named_generator
from rankernel.stats.base import (
    PrintedResult,
    Sample,
    SummaryLines,
    check_kernel,
    check_voters_needed,
    mcse_text,
    warn_if_noisy,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MIN_VOTERS = 20  # to fit a null model
MAX_OUTLIER_SHARE = 0.15  # a larger share is another group of voters rather than outliers
N_SIMULATED = 4000  # ballots of each null model, divided among the shapes of ballots (benchmarks/outliers.py)
MIN_SIMULATED = 800  # for each shape
SIMULATED_AT_ONCE = 512  # simulated ballots whose kernel values are held at once
MAX_SHAPES = 20  # shapes that are simulated separately; rarer ones are pooled
CONCENTRATIONS = (0.0, 0.06, 0.12, 0.2, 0.3, 0.42, 0.56, 0.75, 1.0, 1.33, 1.8, 2.4, 3.2, 4.5)  # over the fitted one
MAX_UNIFORM_SHARE = 0.05  # a larger share of uniform ballots is a group of inliers (benchmarks/outliers.py)
MISFIT_GAIN = 5.0  # of the log-likelihood over a mixture with at most 5 % of either kind of outliers
MISFIT = (
    f"the ballots do not fit the null models: more than {MAX_OUTLIER_SHARE:.0%} are random or opposite to the others; "
    "the false discovery rate may exceed alpha, give a reference of inliers, or see with linkage whether there is "
    "another group of voters"
)
TIE_TOLERANCE = 1e-10  # of the kernel of a ballot with itself: distances that are closer differ by rounding only


@dataclass(frozen=True, eq=False, kw_only=True)
class OutlierResult(PrintedResult):
    """Result of :func:`outlier_test`.

    Attributes
    ----------
    distances : array of shape (n_rankings,)
        The squared distance of each ballot from the mean embedding of the others, or of the reference.
    pvalues : array of shape (n_rankings,)
        The probability of at least this distance for an inlier.
    adjusted_pvalues : array of shape (n_rankings,)
        P-values adjusted by the method of Benjamini and Hochberg, each voter counted.
    alpha : float
        The false discovery rate.
    method : str
        Description of the test.
    plan : Plan
        The plan of the kernel values.
    kernel : Kernel
        The kernel with all parameters resolved.
    rankings : Rankings or Preferences
        The rankings as given.
    models : tuple of models
        The fitted null models; empty with a reference.
    distance_mcse : float
        The typical Monte Carlo standard error of a distance that comes from estimated kernel values; 0 if they are
        exact.
    """

    distances: FloatArray = field(repr=False)
    pvalues: FloatArray = field(repr=False)
    adjusted_pvalues: FloatArray = field(repr=False)
    alpha: float
    method: str
    plan: Plan | None = field(repr=False)
    kernel: Kernel | None
    rankings: Data = field(repr=False)
    models: tuple[Model, ...]
    distance_mcse: float

    @property
    def is_outlier(self) -> Mask:
        """Whether each ballot is an outlier at false discovery rate ``alpha``."""
        return np.asarray(self.adjusted_pvalues <= self.alpha)

    def order(self) -> Indices:
        """Return the rows sorted by distance, the largest first."""
        return np.argsort(-self.distances, kind="stable")

    def _summary(self) -> SummaryLines:
        n = int(self.rankings.counts[self.is_outlier].sum())
        return [
            ("outliers", f"{n:,} of {self.rankings.n_voters:,} ballots, at a false discovery rate of {self.alpha:g}"),
            ("farthest", f"{self.distances.max():.3g}{mcse_text(self.distance_mcse)}, squared distance"),
            ("kernel", str(self.kernel)),
            ("method", self.method),
        ]

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the distances of all ballots, the largest first, with outliers in colour."""
        from rankernel.plots import outliers

        return outliers(self, ax=ax)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each ballot, the largest distance first; its index is the row of the data."""
        require("pandas", "frames")
        import pandas as pd

        columns = {
            "distance": self.distances,
            "pvalue": self.pvalues,
            "adjusted_pvalue": self.adjusted_pvalues,
            "is_outlier": self.is_outlier,
            "voters": self.rankings.counts,
        }
        return pd.DataFrame(columns).iloc[self.order()]


@np.errstate(under="ignore")
def outlier_test(
    X: Any,
    kernel: Kernel | str | None = None,
    *,
    reference: Any = None,
    alpha: float = 0.05,
    rng: Seed = 0,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
) -> OutlierResult:
    r"""Find outlying ballots at a given false discovery rate.

    The distance of a ballot is :math:`\|\phi(R) - \mu\|^2`. With a ``reference`` of inliers, :math:`\mu` is the mean
    embedding of one half of them, and the p-value of a ballot is the share of the other half that is at least as far
    away (conformal p-values: Bates, Candès, Lei, Romano and Sesia 2023). If inliers have the distribution of the
    reference, the false discovery rate is at most ``alpha``, whatever that distribution.

    Without a reference, :math:`\mu` is the mean embedding of the other ballots, and inliers follow a null model: a
    Plackett-Luce model, and a Mallows model if no item is free, with a gamma distribution of concentrations. Voters who
    rank at random count as outliers up to a share of 5 %, and as inliers beyond. The model is fitted twice, the second
    time without the outliers of the first. The p-value of a ballot is the larger of the two probabilities that a ballot
    with the same numbers of items, ties and free items is at least as far away, by importance sampling. So ``alpha``
    holds approximately if inliers follow either model. A :class:`MisfitWarning` is issued if, under both models, more
    than 15 % of the ballots are random or opposite to the others. These may be another group of voters: see
    :func:`linkage`.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The ballots.
    reference : Rankings, Preferences or integer array, optional
        Ballots known to be inliers.
    alpha : float
        The false discovery rate.
    rng : int, Generator or None
        The source of the division of the reference and of simulated ballots.
    kernel, method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    OutlierResult

    Examples
    --------
    >>> from rankernel import Rankings, concat, datasets
    >>> inliers = datasets.mallows(200, [0, 1, 2, 3, 4, 5, 6, 7], 1.0, rng=1)
    >>> reversed_ballot = Rankings([[7, 6, 5, 4, 3, 2, 1, 0]], inliers.items)
    >>> outlier_test(concat([reversed_ballot, inliers[:5]]), reference=inliers[5:], alpha=0.1).order()[0]
    np.int64(0)
    """
    data, seed = as_data(X), as_seed(rng)
    alpha = check_number("alpha", alpha, 0, 1)
    models: tuple[Model, ...] = ()
    inliers = data if reference is None else as_data(reference, name="reference")
    check_voters_needed(inliers, MIN_VOTERS, "X" if reference is None else "reference", "ballots")
    if set(data.items) != set(inliers.items):
        raise RankingError("X and reference are not over the same items; use .with_items(items)")
    rows = data if reference is None else concat([data, inliers])
    plan = check_kernel(kernel).plan(rows, method=method)
    check_task("a search for outliers", len(plan._X))
    sample = Sample.from_plan(rows, plan, n_jobs)
    if reference is None:
        fitted = inlier_models(data)
        models = tuple(model.fitted for model in fitted)
        null = SimulatedDistances(sample, data)
        distances, weights = null.distances, null.weights
        pvalues = null.pvalues(fitted, named_generator(seed, "inliers"))
        if all(model.is_misfit for model in fitted):
            warn(MISFIT, MisfitWarning)
        others = np.flatnonzero(adjust_weighted_pvalues(pvalues, data.counts) > alpha)
        if len(others) < len(data) and isinstance(data, Rankings) and data[others].n_voters >= MIN_VOTERS:
            fitted = inlier_models(data[others])
            pvalues = null.pvalues(fitted, named_generator(seed, "inliers"))
        text = "the other ballots, null distribution simulated from " + " and ".join(type(m).__name__ for m in models)
    else:
        rng = named_generator(seed, "halves of a reference")
        n_half = int(inliers.counts.sum()) // 2
        half = rng.multivariate_hypergeometric(inliers.counts, n_half, method="marginals").astype(np.float64)
        gram, index = sample.gram, sample.index
        weights = np.bincount(index[len(data) :], half / half.sum(), len(gram)).astype(np.float64)
        all_distances = np.asarray(np.diagonal(gram) - 2 * gram @ weights + weights @ gram @ weights)[index]
        distances, reference_distances = np.split(all_distances, [len(data)])
        pvalues = conformal_pvalues(distances, reference_distances, inliers.counts - half)
        warn_if_small_reference(data.n_voters, inliers.n_voters - n_half, alpha)
        text = f"one half of {inliers.n_voters:,} reference ballots, null distribution from the other half"
    adjusted = adjust_weighted_pvalues(pvalues, data.counts)
    mcse = distance_mcse(sample, weights)
    warn_if_noisy(mcse, float(distances.std()), "distances", "the distances")
    return OutlierResult(
        distances=distances,
        pvalues=pvalues,
        adjusted_pvalues=adjusted,
        alpha=alpha,
        method=f"squared distance from {text}, kernel values: {sample.method}",
        plan=sample.plan,
        kernel=sample.kernel,
        rankings=data,
        models=models,
        distance_mcse=mcse,
    )


def adjust_weighted_pvalues(pvalues: FloatArray, counts: IntArray) -> FloatArray:
    """Return Benjamini-Hochberg adjusted p-values, each repeated as often as its count says.

    Examples
    --------
    >>> adjust_weighted_pvalues(np.array([0.01, 0.04, 0.03]), np.array([1, 1, 1]))
    array([0.03, 0.04, 0.04])
    """
    order = np.argsort(-pvalues, kind="stable")
    weights = counts[order].astype(np.float64)
    n_larger = np.cumsum(weights) - weights
    adjusted = np.empty(len(pvalues))
    adjusted[order] = np.minimum.accumulate(pvalues[order] * weights.sum() / (weights.sum() - n_larger))
    return adjusted


# ---------------------------------------------------------------------- Monte Carlo errors and warnings


def distance_mcse(sample: Sample, weights: FloatArray) -> float:
    """Return the typical Monte Carlo standard error of a distance, by drawing some rows again.

    ``weights`` are the shares of the rows in the mean embedding, whose error is common to all ballots and left out.
    """
    change = sample.redraw(1)
    if change is None:
        return 0.0
    rows, difference = change
    distance_changes = difference[np.arange(len(rows)), rows] - 2 * difference @ weights
    return float(np.sqrt((distance_changes**2).mean() / 2))


def warn_if_small_reference(n_ballots: int, n_reference: int, alpha: float) -> None:
    """Warn if a single ballot cannot be an outlier, because the smallest p-value is too large."""
    n_needed = int(np.ceil(n_ballots / alpha)) if alpha > 0 else 0
    if n_ballots > alpha * (1 + n_reference):
        n_far = int(np.ceil(n_ballots / max(alpha * (1 + n_reference), 1e-12)))
        warn(
            f"with {n_reference} of the reference ballots as null distribution, p-values are at least "
            f"1/{n_reference + 1}: of {n_ballots:,} ballots none is an outlier unless at least {n_far:,} are "
            f"farther than all of them; give a reference of {2 * n_needed:,} ballots, or test fewer ballots",
            SamplingWarning,
        )


# ---------------------------------------------------------------------- null distributions


def conformal_pvalues(distances: FloatArray, reference: FloatArray, counts: FloatArray) -> FloatArray:
    """Return (1 + number of reference voters that are at least as far) / (1 + number of reference voters).

    Examples
    --------
    >>> conformal_pvalues(np.array([0.5, 2.0]), np.array([0.0, 1.0]), np.array([2.0, 1.0]))
    array([0.5 , 0.25])
    """
    return np.asarray((1 + weight_above(reference, counts, distances - 1e-12)) / (1 + counts.sum()))


def weight_above(values: FloatArray, weights: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Return the total weight of the values that are at least as large as each threshold."""
    order = np.argsort(values)
    above = np.concatenate([np.cumsum(weights[order][::-1])[::-1], [0.0]])
    return np.asarray(above[np.searchsorted(values[order], thresholds, side="left")])


@dataclass(frozen=True, eq=False)
class InlierModel:
    """A mixture of one model over the concentrations of voters, who differ in how closely they follow it.

    ``shares`` are the probabilities of :data:`CONCENTRATIONS`; the concentration 0 is the uniform distribution. They
    follow a gamma distribution, fitted by maximum likelihood together with two kinds of outliers: uniform ballots, and
    ballots of the opposite model. So the share of voters of low concentration follows from how much the others differ,
    and not from the outliers. Uniform ballots are inliers if there are more than :data:`MAX_UNIFORM_SHARE`.
    """

    fitted: Model
    shares: FloatArray
    is_misfit: bool = False  # significantly more outliers than MAX_OUTLIER_SHARE

    @classmethod
    def fit(cls, fitted: Model, ballots: Rankings) -> InlierModel:
        """Return the mixture of a fitted model."""
        from scipy.optimize import minimize
        from scipy.special import softmax

        logs = np.stack([model.log_prob(ballots) for model in (*components(fitted), opposite(fitted))])
        likelihood, frequencies = np.exp(logs - logs.max(axis=0)), ballots.counts / ballots.n_voters

        def loss(parameters: FloatArray) -> float:
            inliers = gamma_shares(*parameters[:2]) @ likelihood[:-1]
            total = softmax([0.0, *parameters[2:]]) @ np.stack([inliers, likelihood[0], likelihood[-1]])
            return -float(frequencies @ np.log(np.maximum(total, 1e-300)))

        def minimise(max_log_share: float) -> Any:
            limits = [(float(np.log(1 / 3)), 5.0), (-3.0, 1.5), (-12.0, max_log_share), (-12.0, max_log_share)]
            return minimize(loss, [1.5, 0.0, -3.5, -3.5], method="L-BFGS-B", bounds=limits)

        best = minimise(1.0)
        inliers, uniform, opposed = softmax([0.0, *best.x[2:]])
        shares = inliers * gamma_shares(*best.x[:2])
        shares[0] += uniform * (uniform > MAX_UNIFORM_SHARE)
        is_misfit = uniform + opposed > MAX_OUTLIER_SHARE and (
            ballots.n_voters * (minimise(-3.0).fun - best.fun) > MISFIT_GAIN
        )
        return cls(fitted, shares / shares.sum(), bool(is_misfit))

    def log_prob(self, ballots: Rankings) -> FloatArray:
        """Return the log-probability of each ranking."""
        from scipy.special import logsumexp

        logs = np.stack([model.log_prob(ballots) for model in components(self.fitted)])
        return np.asarray(logsumexp(logs, axis=0, b=self.shares[:, None]))

    def sample(self, like: Data, rows: Indices, rng: np.random.Generator) -> tuple[Data, FloatArray]:
        """Return a sample with the shapes of the given rows of some data, and its importance weights.

        All concentrations are drawn equally often, so that small probabilities are estimated well.
        """
        from scipy.special import logsumexp

        proposals = components(self.fitted)
        parts = np.array_split(np.arange(len(rows)), len(proposals))
        full = np.empty((len(rows), like.n_items), dtype=np.int32)
        for part, proposal in zip(parts, proposals, strict=True):
            full[part] = proposal.sample(len(part), rng=rng).ranks
        logs = np.stack([proposal.log_prob(Rankings._trusted(full, like.items)) for proposal in proposals])
        drawn_shares = np.array([len(part) for part in parts]) / len(rows)
        density, drawn = (logsumexp(logs, axis=0, b=shares[:, None]) for shares in (self.shares, drawn_shares))
        return coarsen(full, like[rows]), np.exp(density - drawn)


def gamma_shares(log_shape: float, log_mean: float) -> FloatArray:
    """Return the probabilities of :data:`CONCENTRATIONS` under a gamma distribution, each with the values around it."""
    from scipy.special import gammainc

    edges = (np.array(CONCENTRATIONS[1:]) + np.array(CONCENTRATIONS[:-1])) / 2
    shape = np.exp(log_shape)
    return np.diff(gammainc(shape, shape * np.exp(-log_mean) * edges), prepend=0.0, append=1.0)


def components(model: Model) -> list[Model]:
    """Return the model at each of :data:`CONCENTRATIONS`."""
    if isinstance(model, MallowsModel):
        return [MallowsModel(model.center, model.theta * factor) for factor in CONCENTRATIONS]
    return [PlackettLuce((model.weights / model.weights.max()) ** factor) for factor in CONCENTRATIONS]


def opposite(model: Model) -> Model:
    """Return the model of voters with the opposite preferences."""
    if isinstance(model, MallowsModel):
        return MallowsModel(tuple(len(model.center) - 1 - position for position in model.center), model.theta)
    return PlackettLuce(model.weights.min() / model.weights)


def inlier_models(data: Data) -> list[InlierModel]:
    """Return the inlier models: Plackett-Luce, and Mallows if no item is free (otherwise it is slow).

    Probabilities of preferences are slow to compute, so their model is one fit to all rows.
    """
    if isinstance(data, Preferences):
        return [InlierModel(fit_plackett_luce(data), np.equal(CONCENTRATIONS, 1.0).astype(np.float64))]
    ballots = data.unique()
    fits: list[Model] = [PlackettLuce.fit(ballots)]
    if ballots.is_exhaustive():
        fits.append(MallowsModel.fit(ballots))
    return [InlierModel.fit(fitted, ballots) for fitted in fits]


class SimulatedDistances:
    """Squared distances of ballots from the mean embedding of the others, and of simulated ballots.

    A ballot is part of the mean embedding of all n, so its distance from that of the others is larger by the factor
    :math:`(n / (n - 1))^2`. Distances of simulated ballots have the same factor, so equal ballots have equal distances.
    """

    def __init__(self, sample: Sample, data: Data) -> None:
        gram, n = sample.gram, float(data.n_voters)
        self.data, self.sample, self.weights = data, sample, sample.data.counts / n
        self.factor, self.squared_norm = (n / (n - 1)) ** 2, float(self.weights @ gram @ self.weights)
        distances = self.factor * (np.diagonal(gram) - 2 * gram @ self.weights + self.squared_norm)
        self.distances = np.asarray(distances[sample.index])

    def pvalues(self, models: Sequence[InlierModel], rng: np.random.Generator) -> FloatArray:
        """Return the largest p-value of each row over the null models, compared with ballots of the same shape."""
        pvalues, plan = np.zeros(len(self.data)), self.sample.plan
        assert plan is not None
        sizes = []  # of the simulated samples
        for rows in (classes := self.shape_classes()):
            share = float(self.data.counts[rows].sum() / self.data.n_voters)
            sizes.append(max(round(N_SIMULATED * share), MIN_SIMULATED))
        n_ballots = len(models) * sum(sizes)
        seconds = plan._evaluator.seconds(n_ballots, len(self.sample.data) + 1) / n_threads(None)
        announce_cost(f"comparing the ballots with {n_ballots:,} simulated ones", seconds)
        for rows, n_simulated in zip(classes, sizes, strict=True):
            counts = self.data.counts[rows]
            for model in models:
                chosen = rng.choice(rows, n_simulated, p=counts / counts.sum())
                exceedance = self.exceedance(*model.sample(self.data, chosen, rng), self.distances[rows])
                bounded = np.maximum(exceedance, self.min_pvalues(model, rows, n_simulated))
                pvalues[rows] = np.maximum(pvalues[rows], np.minimum(bounded, 1.0))
        return pvalues

    def shape_classes(self) -> list[Indices]:
        """Return the rows of each shape, with rare shapes pooled."""
        codes = shape_codes(self.data)
        counts = np.bincount(codes, self.data.counts)
        rank = np.empty(len(counts), dtype=np.intp)
        rank[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(len(counts)), MAX_SHAPES - 1)
        classes = rank[codes]
        return [np.flatnonzero(classes == number) for number in range(int(classes.max()) + 1)]

    def exceedance(self, drawn: Data, weights: FloatArray, distances: FloatArray) -> FloatArray:
        """Return the weighted share of drawn ballots that are at least as far away as each distance."""
        first, inverse = drawn.unique_indices()
        plan, distinct = self.sample.plan, drawn[first]
        assert plan is not None
        method = unbiased_method(plan.method)
        means, diagonal = np.empty(len(distinct)), np.empty(len(distinct))
        for part in slices(len(distinct), SIMULATED_AT_ONCE):  # which bounds the memory of draws
            against = plan.kernel.plan(distinct[part], self.sample.data, method=method)
            means[part] = against.gram() @ self.weights
            own = against if isinstance(method, MonteCarlo) else plan.kernel.plan(distinct[part], method=method)
            diagonal[part] = own.diagonal(unbiased=True)
        simulated = self.factor * (diagonal - 2 * means + self.squared_norm)[inverse]
        tolerance = TIE_TOLERANCE * float(np.abs(diagonal).mean())
        return weight_above(simulated, weights, distances - tolerance) / len(simulated)

    def min_pvalues(self, model: InlierModel, rows: Indices, n_simulated: int) -> FloatArray:
        """Return lower bounds of p-values: the probability of the ballot, or one over the number of simulations."""
        if isinstance(self.data, Preferences):
            return np.full(len(rows), 1 / (1 + n_simulated))
        return np.exp(model.log_prob(self.data[rows]))
