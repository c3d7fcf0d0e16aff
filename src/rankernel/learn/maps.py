"""Rankings to points in the plane: principal components in the space of a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_integer, short_repr
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.memory import check_task
from rankernel.encoding import Unlisted
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.learn.transformers import KernelTransformer

DENSE = 200  # from here on, a few leading eigenvectors are found without all others
STRIP = 256  # rows of a matrix at once
ROUNDING = 1e-13  # of the squared lengths of all embeddings together: smaller eigenvalues are zero
AS_LARGE = 1 - 1e-6


class KernelMap(KernelTransformer):
    r"""Kernel principal components of rankings, for pictures of who is near whom.

    Component j of a ranking is :math:`\langle \phi(R) - \bar\phi, v_j \rangle`: its mean embedding, less the mean of
    all voters, along the direction of the j-th largest variance. A ranking that c voters gave counts c times, so that
    the map is that of the expanded data.

    Parameters
    ----------
    kernel : Kernel, optional
        The kernel; may be left out if there are features.
    n_components : int
        How many components.
    method : "auto" or a method object
        How to compute Gram matrices.
    features : transformer, optional
        For many rankings: an object with ``fit_transform`` and ``transform`` that gives features whose inner products
        are the kernel, or near it, such as ``NystromFeatures(kernel)``. Then no Gram matrix is made, and ``kernel``
        and ``method`` are not used.
    unlisted : {"last", "free"}, optional
        What NaN or None in a plain array or frame means: the item is last, or free. Refused if left out.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        The largest eigenvalues of the centred Gram matrix of all voters.
    explained_variance_ : array of shape (n_components,)
        The variance of all voters along each component: eigenvalues over the number of voters less one.
    explained_variance_ratio_ : array of shape (n_components,)
        Their shares in the whole variance.
    plan_ : Plan
        How kernel values are computed, here and for new rankings (without features).
    kernel_ : Kernel
        The kernel, its width a number (without features).
    rankings_ : Rankings or Preferences
        The rankings that the map was made of (without features).
    features_ : transformer
        The fitted features, if there are any.

    Notes
    -----
    The sign of a component is chosen so that the largest coordinate in size is positive. A component without variance
    has coordinates 0.

    Examples
    --------
    Three voters on a line: two at one end, one at the other, at distance 2.

    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[2, 1])
    >>> KernelMap(Kendall(), n_components=1).fit_transform(ballots).round(3)
    array([[-0.667],
           [ 1.333]])
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_components: int = 2,
        method: MethodLike = "auto",
        features: Any = None,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.method = method
        self.features = features
        self.unlisted = unlisted

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if ``deep``, those of the kernel, too."""
        return super().get_params(deep and self.kernel is not None)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of rankings; ``y`` is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Find the components and return the coordinates of each ranking."""
        rankings = self._learn_items(X)
        weights = rankings.counts.astype(np.float64)
        if self.features is not None:
            if not callable(getattr(self.features, "fit_transform", None)):
                raise TypeError(
                    f"features={short_repr(self.features)} is no transformer; give one such as NystromFeatures"
                )
            return self._fit_features(X, weights)
        if self.kernel is None:
            raise ValueError("there is neither a kernel nor features; give one of them: KernelMap(kernel)")
        self.rankings_, self.plan_ = rankings, as_kernel(self.kernel).plan(rankings, method=self.method)
        self.kernel_ = self.plan_.kernel
        return self._fit_gram(self.plan_, weights)

    def transform(self, X: Any) -> FloatArray:
        """Return the coordinates of rankings, those that the map was made of or others."""
        check_is_fitted(self)
        if self.features is not None:
            seen = np.asarray(self.features_.transform(X), dtype=np.float64)
        else:
            seen = self.plan_.against(self._same_items(X)).gram()
        coordinates: FloatArray = seen @ self._directions - self._origin
        return coordinates

    def _fit_gram(self, plan: Plan, weights: FloatArray) -> FloatArray:
        """Solve for weights of the rankings, from their Gram matrix."""
        check_components(self.n_components, len(weights), "rankings")
        check_task("a map", len(weights))
        centred = plan.gram()
        scale = float(weights @ np.abs(np.diagonal(centred)))
        means = centred @ weights / weights.sum()
        roots = np.sqrt(weights)
        for rows in slices(len(centred), STRIP):
            # Its eigenvectors are those of the expanded matrix, equal entries added up in squares.
            part = centred[rows] - means[rows, None] - means[None, :] + means @ weights / weights.sum()
            centred[rows] = part * np.outer(roots[rows], roots)
        values, vectors = largest_eigenpairs(centred, self.n_components, scale)
        self._explain(values, float(np.trace(centred)), weights.sum())
        coordinates = vectors / roots[:, None] * np.sqrt(values)
        signs = fixed_signs(coordinates)
        self._directions = signs * vectors * roots[:, None] * reciprocal(np.sqrt(values))
        self._origin = means @ self._directions
        coordinates *= signs
        return coordinates

    def _fit_features(self, X: Any, weights: FloatArray) -> FloatArray:
        """Solve for weights of the features, from their covariance."""
        self.features_ = clone(self.features, safe=False)
        features = np.asarray(self.features_.fit_transform(X), dtype=np.float64)
        check_components(self.n_components, min(features.shape), "rankings or features")
        mean = weights @ features / weights.sum()
        scatter, scale = np.zeros((features.shape[1],) * 2), 0.0
        for rows in slices(len(features), STRIP):
            centred = (features[rows] - mean) * np.sqrt(weights[rows])[:, None]
            scatter += centred.T @ centred
            scale += float(weights[rows] @ np.einsum("ij,ij->i", features[rows], features[rows]))
        values, vectors = largest_eigenpairs(scatter, self.n_components, scale)
        self._explain(values, float(np.trace(scatter)), weights.sum())
        vectors *= values > 0
        coordinates: FloatArray = features @ vectors - mean @ vectors
        signs = fixed_signs(coordinates)
        self._directions = signs * vectors
        self._origin = mean @ self._directions
        return coordinates * signs

    def _explain(self, values: FloatArray, total: float, n_voters: float) -> None:
        """Set how much of the variance each component has."""
        self.eigenvalues_ = values
        self.explained_variance_ = values / max(n_voters - 1, 1)
        self.explained_variance_ratio_ = values / total if total > 0 else np.zeros(len(values))

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)


def check_components(n_components: int, most: int, what: str) -> None:
    """Refuse a number of components that there cannot be."""
    check_integer("n_components", n_components)
    if n_components > most:
        raise ValueError(f"n_components={n_components} but X has only {most} {what}; ask for fewer components")


def largest_eigenpairs(matrix: FloatArray, n_pairs: int, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of a symmetric matrix, 0 if rounding on that scale, and its eigenvectors."""
    values, vectors = few_eigenpairs(matrix, n_pairs) if len(matrix) > DENSE else all_eigenpairs(matrix, n_pairs)
    order = np.argsort(-values, kind="stable")
    values = values[order]
    return np.where(values > ROUNDING * scale, values, 0.0), vectors[:, order]


def all_eigenpairs(matrix: FloatArray, n_pairs: int) -> tuple[FloatArray, FloatArray]:
    """Return eigenpairs by the dense solver."""
    from scipy.linalg import eigh

    n = len(matrix)
    values, vectors = run_interruptibly(lambda: eigh(matrix, subset_by_index=(n - n_pairs, n - 1)))
    return values, vectors


def few_eigenpairs(matrix: FloatArray, n_pairs: int) -> tuple[FloatArray, FloatArray]:
    """Return eigenpairs by Lanczos iteration, or by the dense solver where they are many or it does not converge."""
    from scipy.sparse.linalg import ArpackError, eigsh

    n = len(matrix)
    if n_pairs > n // 10:
        return all_eigenpairs(matrix, n_pairs)
    try:
        # A fixed start makes the result the same every time.
        values, vectors = eigsh(matrix, n_pairs, which="LA", v0=np.random.default_rng(0).uniform(-1, 1, n))
    except ArpackError:
        return all_eigenpairs(matrix, n_pairs)
    return values, vectors


def fixed_signs(coordinates: FloatArray) -> FloatArray:
    """Return for each column the sign of its largest entry in size; of equally large ones the first decides."""
    sizes = np.abs(coordinates)
    first = np.argmax(sizes >= AS_LARGE * sizes.max(axis=0), axis=0)
    return np.where(coordinates[first, np.arange(coordinates.shape[1])] < 0, -1.0, 1.0)


def reciprocal(values: FloatArray) -> FloatArray:
    """Return one over each value, and 0 for 0."""
    return np.divide(1, values, out=np.zeros_like(values), where=values > 0)
