"""Ballots in the feature space of a kernel: the Gram matrix of those shown, and the map of all by kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankernel._utils import FloatArray
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.reports.source import Ballots, View, view_of

if TYPE_CHECKING:
    from rankernel.learn.maps import Components

N_COMPONENTS = 2
N_FEATURES = 200
MAX_NUMBERS = 2**25  # in the Nyström features of all ballots; very many ballots get fewer features
N_CHECKED = 64  # ballots whose kernel values are estimated again for their standard error
MAX_SECONDS = 20.0  # for the Gram matrix of the ballots shown


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
    from rankernel.learn.maps import components_of_features, components_of_gram
    from rankernel.learn.nystrom import NystromFeatures

    rankings = ballots.rankings
    plan = kernel.plan(rankings[view.rows], method=method)
    gram = np.asarray(plan.gram(), dtype=np.float64)
    error = relative_error(plan)
    if not view.sampled:
        weights = view.counts.astype(np.float64)
        points, variance = padded(components_of_gram(gram.copy(), weights, min(N_COMPONENTS, len(gram))))
        return Embedding(kernel, gram, None, points, variance, plan.details, error=error)
    n_features = min(N_FEATURES, max(MAX_NUMBERS // len(rankings), N_COMPONENTS))
    nystrom = NystromFeatures(n_features, kernel=kernel, method=plan.method, random_state=seed)
    features, weights = nystrom.fit_transform(rankings), rankings.counts.astype(np.float64)
    components = components_of_features(features, weights, min(N_COMPONENTS, *features.shape))
    points, variance = padded(components, nystrom.trace_error_)
    omitted = nystrom.trace_error_ / max(nystrom.trace_, 1e-300)
    return Embedding(kernel, gram, features, points, variance, plan.details, omitted, error)


def relative_error(plan: Plan) -> float:
    """Return the standard error of kernel values, relative to their standard deviation between ballots."""
    estimate = plan.part(slice(0, N_CHECKED)).estimate()
    off_diagonal = ~np.eye(len(estimate.value), dtype=bool)
    deviation = float(estimate.value[off_diagonal].std()) if off_diagonal.any() else 0.0
    return float(np.sqrt((estimate.stderr[off_diagonal] ** 2).mean())) / deviation if deviation > 0 else 0.0


def padded(components: Components, omitted: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return the coordinates and the shares of the variance, padded with zeros to two components."""
    missing = N_COMPONENTS - len(components.eigenvalues)
    points = np.pad(components.coordinates, ((0, 0), (0, missing)))
    return points, np.pad(components.variance_ratio(omitted), (0, missing))
