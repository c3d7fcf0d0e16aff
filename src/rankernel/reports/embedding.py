"""Ballots in the feature space of a kernel: the Gram matrix of those shown, and the map of all by kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.reports.source import Ballots, View, view_of

N_COMPONENTS = 2
N_FEATURES = 200
MAX_NUMBERS = 2**25  # in the Nyström features of all ballots; very many ballots get fewer features
N_CHECKED = 64  # ballots whose kernel values are estimated again for their standard error
MAX_SECONDS = 20.0  # for the Gram matrix of the ballots shown
STRIP = 2**14  # rows at once


@dataclass(frozen=True, eq=False)
class Embedding:
    """Kernel values and map coordinates of the ballots."""

    kernel: Kernel  # with its bandwidth resolved
    gram: FloatArray  # (n_shown, n_shown): Gram matrix of the ballots shown
    features: FloatArray | None  # (n_ballots, n_features): Nyström features if the ballots shown are a sample
    points: FloatArray  # (n_ballots, 2): coordinates on the map
    variance: FloatArray  # (2,): share of the variance along each axis
    values: str  # how kernel values were computed, in words
    omitted: float = 0.0  # share of the trace that the features omit
    error: float = 0.0  # standard error of a kernel value, relative to the standard deviation between ballots


def choose_view(ballots: Ballots, kernel: Kernel, method: MethodLike, limit: int, seed: int) -> View:
    """Return the ballots to show: at most ``limit``, fewer if their Gram matrix would take too long."""
    view = view_of(ballots, limit, seed)
    seconds = kernel.plan(ballots.rankings[view.rows], method=method).seconds
    if seconds <= MAX_SECONDS:
        return view
    return view_of(ballots, max(int(len(view.rows) * (MAX_SECONDS / seconds) ** 0.5), 2), seed)


def embed_ballots(ballots: Ballots, view: View, kernel: Kernel, method: MethodLike, seed: int) -> Embedding:
    """Return the Gram matrix of the ballots shown and the map of all ballots."""
    from rankernel.learn.nystrom import NystromFeatures

    rankings = ballots.rankings
    plan = kernel.plan(rankings[view.rows], method=method)
    gram = np.asarray(plan.gram(), dtype=np.float64)
    error = relative_error(plan)
    if not view.sampled:
        points, variance = components_of_gram(gram, view.counts)
        return Embedding(kernel, gram, None, points, variance, plan.details, error=error)
    n_features = min(N_FEATURES, max(MAX_NUMBERS // len(rankings), N_COMPONENTS))
    nystrom = NystromFeatures(n_features, kernel=kernel, method=plan.method, random_state=seed)
    features = nystrom.fit_transform(rankings)
    points, variance = components_of_features(features, rankings.counts, nystrom.trace_error_)
    omitted = nystrom.trace_error_ / max(nystrom.trace_, 1e-300)
    return Embedding(kernel, gram, features, points, variance, plan.details, omitted, error)


def relative_error(plan: Plan) -> float:
    """Return the standard error of kernel values, relative to their standard deviation between ballots."""
    estimate = plan.part(slice(0, N_CHECKED)).estimate()
    off_diagonal = ~np.eye(len(estimate.value), dtype=bool)
    deviation = float(estimate.value[off_diagonal].std()) if off_diagonal.any() else 0.0
    return float(np.sqrt((estimate.stderr[off_diagonal] ** 2).mean())) / deviation if deviation > 0 else 0.0


def components_of_gram(gram: FloatArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the coordinates on the first kernel principal components and their shares of the variance."""
    from rankernel.learn.maps import largest_eigenpairs

    weights = counts / counts.sum()
    means, roots = gram @ weights, np.sqrt(weights)
    centred = (gram - means[:, None] - means + weights @ means) * np.outer(roots, roots)
    n_components = min(N_COMPONENTS, len(gram))
    values, vectors = largest_eigenpairs(centred, n_components, float(weights @ np.abs(np.diagonal(gram))))
    return oriented(vectors / roots[:, None] * np.sqrt(values), values, float(np.trace(centred)))


def components_of_features(features: FloatArray, counts: IntArray, omitted: float) -> tuple[FloatArray, FloatArray]:
    """Return the same from features, whose Gram matrix omits a part of the trace."""
    from rankernel.learn.maps import largest_eigenpairs

    n_voters = counts.sum()
    mean = counts @ features / n_voters
    covariance = np.zeros((features.shape[1],) * 2)
    for start in range(0, len(features), STRIP):
        centred = features[start : start + STRIP] - mean
        covariance += centred.T @ (centred * (counts[start : start + STRIP, None] / n_voters))
    total = float(np.trace(covariance)) + omitted / n_voters
    values, vectors = largest_eigenpairs(covariance, min(N_COMPONENTS, *features.shape), total)
    vectors = vectors * (values > 0)
    return oriented(features @ vectors - mean @ vectors, values, total)


def oriented(points: FloatArray, values: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Return coordinates with reproducible signs and shares of the variance, padded with zeros to two components."""
    from rankernel.learn.maps import fixed_signs

    missing = N_COMPONENTS - len(values)
    points = np.pad(points * fixed_signs(points), ((0, 0), (0, missing)))
    return points, np.pad(values / total if total > 0 else np.zeros(len(values)), (0, missing))
