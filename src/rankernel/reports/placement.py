"""Ballots as points in the space of a kernel: the exact Gram matrix of few, Nyström features of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.reports.distinct_ballots import MOST_SHOWN, Ballots, View, view_of

FEATURES = 200
NUMBERS = 2**25  # in the features of all ballots: of very many ballots there are fewer features
COMPONENTS = 2
ASKED = 64  # ballots whose kernel values are asked how sure they are
PATIENCE = 20.0  # seconds for the matrix of all ballots that are shown


@dataclass(frozen=True, eq=False)
class Placement:
    """What a kernel says of the ballots."""

    kernel: Kernel  # the kernel, its width a number
    gram: FloatArray  # (n_shown, n_shown): the Gram matrix of the ballots in view
    features: FloatArray | None  # (n_ballots, n_features): features of all ballots, where not all are in view
    points: FloatArray  # (n_ballots, 2): where every ballot stands on the map, in view or not
    variance: FloatArray  # (2,): the share of the variance along each axis
    values: str  # how kernel values were computed, in words
    missing: float = 0.0  # the share of the trace that the features leave out
    error: float = 0.0  # the standard error of a kernel value, where they are estimates, in parts of their spread


@dataclass
class Known:
    """Features that are known already, as a transformer."""

    features: FloatArray

    def __sklearn_clone__(self) -> Known:
        """Return this: there is nothing to fit, and the features may be large."""
        return self

    def fit_transform(self, X: Any) -> FloatArray:
        """Return the features."""
        return self.features


def view_within(ballots: Ballots, kernel: Kernel, method: MethodLike, seed: int) -> View:
    """Return the ballots to show: fewer where the matrix of many would take too long."""
    view = view_of(ballots, seed)
    seconds = kernel.plan(ballots.rankings[view.rows], method=method).seconds
    if seconds <= PATIENCE:
        return view
    return view_of(ballots, seed, max(int(min(len(view.rows), MOST_SHOWN) * (PATIENCE / seconds) ** 0.5), 2))


def place_ballots(ballots: Ballots, view: View, kernel: Kernel, method: MethodLike, seed: int) -> Placement:
    """Return the ballots as a kernel, its width a number, sees them."""
    from rankernel.learn.maps import KernelMap
    from rankernel.learn.nystrom import NystromFeatures

    rankings = ballots.rankings
    plan = kernel.plan(rankings[view.rows], method=method)
    gram = np.asarray(plan.gram(), dtype=np.float64)
    left_out, missing = 0.0, 0.0
    if view.sampled:
        n_features = min(FEATURES, max(NUMBERS // len(rankings), COMPONENTS))
        nystrom = NystromFeatures(n_features, kernel=kernel, method=plan.method, random_state=seed)
        features = nystrom.fit_transform(rankings)
        left_out, missing = nystrom.trace_error_, nystrom.trace_error_ / max(nystrom.trace_, 1e-300)
    else:
        features = gram_features(gram)
    kernel_map = KernelMap(n_components=min(COMPONENTS, *features.shape), features=Known(features))
    points = flat(kernel_map.fit_transform(rankings))
    variance = flat(shares(kernel_map, left_out))
    kept = features if view.sampled else None
    return Placement(kernel, gram, kept, points, variance, plan.details, missing, relative_error(plan))


def relative_error(plan: Plan) -> float:
    """Return how sure kernel values are: the standard error between different ballots, in parts of their spread."""
    some = plan.part(slice(0, ASKED)).estimate()
    off = ~np.eye(len(some.value), dtype=bool)
    spread = float(some.value[off].std()) if off.any() else 0.0
    return float(np.sqrt((some.stderr[off] ** 2).mean())) / spread if spread > 0 else 0.0


def gram_features(gram: FloatArray) -> FloatArray:
    """Return features whose inner products are a Gram matrix, so that it need not be computed again for the map."""
    from scipy.linalg import eigh

    values, vectors = eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def shares(kernel_map: Any, left_out: float) -> FloatArray:
    """Return the shares of the components in the whole variance, what the features leave out included."""
    values, ratios = kernel_map.eigenvalues_, kernel_map.explained_variance_ratio_
    if not ratios[0]:
        return np.zeros(len(ratios))
    return np.asarray(values / (values[0] / ratios[0] + left_out))


def flat(values: FloatArray) -> FloatArray:
    """Return the values with as many columns as a map has axes, zeros behind."""
    missing = COMPONENTS - values.shape[-1]
    return np.concatenate([values, np.zeros((*values.shape[:-1], missing))], axis=-1)
