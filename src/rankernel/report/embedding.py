"""Ballots as points in the space of a kernel: the exact Gram matrix of few, Nyström features of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel.gram.choose import choose
from rankernel.gram.methods import MethodLike
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.kernels import Kernel
from rankernel.report.ballots import Ballots, View, view_of

__all__ = ["Embedding", "bearable_view", "embedded"]

FloatArray = NDArray[np.float64]

FEATURES = 200
COMPONENTS = 2
MOST_DRAWN = 400  # ballots, where each has dozens of draws


@dataclass(frozen=True, eq=False)
class Embedding:
    """What a kernel says of the ballots.

    Attributes
    ----------
    kernel : Kernel
        The kernel, its width a number.
    gram : array of shape (n_shown, n_shown)
        The Gram matrix of the ballots in view.
    features : array of shape (n_ballots, n_features), or None
        Features of all ballots, where not all are in view.
    points : array of shape (n_shown, 2)
        Where the ballots in view stand on the map; the map itself is made of all voters.
    variance : array of shape (2,)
        The share of the variance along each axis.
    values : str
        How kernel values were computed, in words.
    missing : float
        The share of the trace that the features leave out.
    """

    kernel: Kernel
    gram: FloatArray
    features: FloatArray | None
    points: FloatArray
    variance: FloatArray
    values: str
    missing: float = 0.0


@dataclass
class Known:
    """Features that are known already, as a transformer."""

    features: FloatArray

    def fit_transform(self, X: Any) -> FloatArray:
        """Return the features."""
        return self.features


def bearable_view(ballots: Ballots, kernel: Kernel, method: MethodLike, seed: int) -> View:
    """Return the ballots to show: fewer where every kernel value is the mean over many draws."""
    view = view_of(ballots, seed)
    shown = ballots.rankings[view.rows]
    if len(shown) > MOST_DRAWN and isinstance(choose(kernel, shown, shown, method)[0], MonteCarlo):
        return view_of(ballots, seed, MOST_DRAWN)
    return view


def embedded(ballots: Ballots, view: View, kernel: Kernel, method: MethodLike, seed: int) -> Embedding:
    """Return the ballots as a kernel, its width a number, sees them."""
    from rankernel.tasks.maps import KernelMap
    from rankernel.tasks.nystrom import NystromFeatures

    rankings = ballots.rankings
    shown = rankings[view.rows]
    values = choose(kernel, shown, shown, method)[1].description
    gram = np.asarray(kernel.gram(shown, method=method), dtype=np.float64)
    left_out, missing = 0.0, 0.0
    if view.sampled:
        nystrom = NystromFeatures(kernel, FEATURES, method, seed)
        features = nystrom.fit_transform(rankings)
        left_out, missing = nystrom.trace_error_, nystrom.trace_error_ / max(nystrom.trace_, 1e-300)
    else:
        features = gram_features(gram)
    kernel_map = KernelMap(n_components=min(COMPONENTS, *features.shape), features=Known(features))
    points = flat(kernel_map.fit_transform(rankings)[view.rows])
    variance = flat(shares(kernel_map, left_out))
    return Embedding(kernel, gram, features if view.sampled else None, points, variance, values, missing)


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
