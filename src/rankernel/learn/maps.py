"""Kernel principal components of rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_integer, short_repr
from rankernel._utils.resources import check_task, run_interruptibly
from rankernel.gram.evaluator import slices
from rankernel.gram.methods import MethodLike
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.learn.estimators import KernelTransformer
from rankernel.rankings import Unlisted

ROWS = 64  # rows processed at once, so that temporary arrays stay small
DENSE = 200  # up to this size the dense eigensolver is used, as in scikit-learn's KernelPCA
ROUNDING = 1e-13  # eigenvalues below this fraction of the trace are rounding errors
TIED = 1 - 1e-6  # coordinates within this factor of the largest one count as equally large


class KernelMap(KernelTransformer):
    r"""Kernel principal component analysis of rankings.

    Component j of a ranking is :math:`\langle \phi(R) - \bar\phi, v_j \rangle`, where :math:`\phi(R)` is its mean
    embedding, :math:`\bar\phi` the mean over all voters and :math:`v_j` the direction of the j-th largest variance. A
    ranking with multiplicity c counts c times.

    Parameters
    ----------
    n_components : int
        The number of components.
    kernel : Kernel or str
        The kernel.
    method : as in :meth:`Kernel.gram`
        How to compute Gram matrices.
    features : transformer, optional
        For many rankings: an estimator with ``fit_transform`` and ``transform`` whose features have the kernel, or an
        approximation of it, as inner products, such as :class:`NystromFeatures`. No Gram matrix is computed then, and
        ``kernel`` and ``method`` are ignored.
    unlisted : {"last", "free"}, optional
        Meaning of NaN or None in a plain array or data frame: the item is last, or free. By default an error.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        The largest eigenvalues of the centred Gram matrix of all voters.
    explained_variance_ : array of shape (n_components,)
        The variance of each component over all voters: eigenvalues divided by the number of voters less one.
    explained_variance_ratio_ : array of shape (n_components,)
        The fraction of the total variance explained by each component.
    plan_ : Plan
        How kernel values are computed, for training data and new rankings (without ``features``).
    kernel_ : Kernel
        The kernel with numeric parameters (without ``features``).
    rankings_ : Rankings or Preferences
        The training data (without ``features``).
    features_ : transformer
        The fitted ``features``.

    Notes
    -----
    Signs are chosen so that the coordinate of largest absolute value is positive in each component. Components without
    variance have coordinates 0.

    Examples
    --------
    Three voters on a line: two at one end, one at the other, at distance 2.

    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[2, 1])
    >>> KernelMap(1, kernel=Kendall()).fit_transform(ballots).round(3)
    array([[-0.667],
           [ 1.333]])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Kernel | str = "mallows",
        method: MethodLike = "auto",
        features: Any = None,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.method = method
        self.features = features
        self.unlisted = unlisted

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the components of rankings; ``y`` is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Compute the components and return the coordinates of the rankings."""
        rankings = self._fit_items(X)
        weights = rankings.counts.astype(np.float64)
        if self.features is not None:
            if not callable(getattr(self.features, "fit_transform", None)):
                raise TypeError(f"features={short_repr(self.features)} must be a transformer, such as NystromFeatures")
            self.features_ = clone(self.features, safe=False)
            features = np.asarray(self.features_.fit_transform(X), dtype=np.float64)
            check_components(self.n_components, min(features.shape), "rankings or features")
            return self._fitted(components_of_features(features, weights, self.n_components), weights.sum())
        check_components(self.n_components, len(rankings), "rankings")
        check_task("a map", len(rankings))
        self.rankings_, self.plan_ = rankings, as_kernel(self.kernel).plan(rankings, method=self.method)
        self.kernel_ = self.plan_.kernel
        return self._fitted(components_of_gram(self.plan_.gram(), weights, self.n_components), weights.sum())

    def transform(self, X: Any) -> FloatArray:
        """Return the coordinates of rankings."""
        check_is_fitted(self)
        if self.features is not None:
            values = np.asarray(self.features_.transform(X), dtype=np.float64)
        else:
            values = self.plan_.against(self._match_items(X)).gram()
        coordinates: FloatArray = values @ self._directions - self._origin
        return coordinates

    def _fitted(self, components: Components, n_voters: float) -> FloatArray:
        """Set the fitted attributes and return the coordinates of the training rankings."""
        self.eigenvalues_ = components.eigenvalues
        self.explained_variance_ = components.eigenvalues / max(n_voters - 1, 1)
        self.explained_variance_ratio_ = components.variance_ratio()
        self._directions, self._origin = components.directions, components.origin
        return components.coordinates

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)


def check_components(n_components: int, most: int, what: str) -> None:
    """Raise if there are fewer rankings or features than components."""
    check_integer("n_components", n_components)
    if n_components > most:
        raise ValueError(f"n_components={n_components} but X has only {most} {what}; use fewer components")


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components of rankings with multiplicities; signs are fixed as described for :class:`KernelMap`."""

    coordinates: FloatArray  # (n_rankings, n_components)
    directions: FloatArray  # coordinates are kernel values or features times the directions, less the origin
    origin: FloatArray
    eigenvalues: FloatArray  # of the centred Gram matrix of all voters
    trace: float  # of this matrix

    @classmethod
    def of(
        cls, coordinates: FloatArray, directions: FloatArray, mean: FloatArray, eigenvalues: FloatArray, trace: float
    ) -> Components:
        """Return the components with their signs fixed; ``mean`` is that of the kernel values or features."""
        signs = fixed_signs(coordinates)
        directions = signs * directions
        return cls(coordinates * signs, directions, mean @ directions, eigenvalues, trace)

    def variance_ratio(self, omitted: float = 0.0) -> FloatArray:
        """Return the fraction of the variance of each component; ``omitted`` is the trace that features omit."""
        total = self.trace + omitted
        return self.eigenvalues / total if total > 0 else np.zeros(len(self.eigenvalues))


def components_of_gram(gram: FloatArray, weights: FloatArray, n_components: int) -> Components:
    """Return the principal components from a Gram matrix, which is overwritten, and multiplicities."""
    scale = float(weights @ np.abs(np.diagonal(gram)))
    means = gram @ weights / weights.sum()
    roots = np.sqrt(weights)
    for rows in slices(len(gram), ROWS):
        # Scaled by the roots of the multiplicities it has the nonzero eigenvalues of the matrix of all voters.
        block = gram[rows] - means[rows, None] - means[None, :] + means @ weights / weights.sum()
        gram[rows] = block * np.outer(roots[rows], roots)
    values, vectors = largest_eigenpairs(gram, n_components, scale)
    inverse_roots = np.divide(1, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    directions = vectors * roots[:, None] * inverse_roots
    return Components.of(vectors / roots[:, None] * np.sqrt(values), directions, means, values, float(np.trace(gram)))


def components_of_features(features: FloatArray, weights: FloatArray, n_components: int) -> Components:
    """Return the principal components from features, by the eigenvectors of their scatter matrix."""
    mean = weights @ features / weights.sum()
    scatter, scale = np.zeros((features.shape[1],) * 2), 0.0
    for rows in slices(len(features), ROWS):
        centred = (features[rows] - mean) * np.sqrt(weights[rows])[:, None]
        scatter += centred.T @ centred
        scale += float(weights[rows] @ np.einsum("ij,ij->i", features[rows], features[rows]))
    values, vectors = largest_eigenpairs(scatter, n_components, scale)
    vectors *= values > 0
    return Components.of(features @ vectors - mean @ vectors, vectors, mean, values, float(np.trace(scatter)))


def largest_eigenpairs(matrix: FloatArray, n_pairs: int, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of a symmetric matrix, with rounding errors set to 0, and their eigenvectors."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import ArpackError, eigsh

    n, pairs = len(matrix), None
    if n > DENSE and n_pairs <= n // 10:
        start = np.random.default_rng(0).uniform(-1, 1, n)  # fixed, for reproducible results
        try:
            pairs = eigsh(matrix, n_pairs, which="LA", v0=start)
        except ArpackError:
            pairs = None  # not converged
    if pairs is None:
        pairs = run_interruptibly(lambda: eigh(matrix, subset_by_index=(n - n_pairs, n - 1)))
    values, vectors = pairs
    order = np.argsort(-values, kind="stable")
    values = values[order]
    return np.where(values > ROUNDING * scale, values, 0.0), vectors[:, order]


def fixed_signs(coordinates: FloatArray) -> FloatArray:
    """Return the sign of the entry of largest absolute value in each column, the first of equally large ones."""
    sizes = np.abs(coordinates)
    first = np.argmax(sizes >= TIED * sizes.max(axis=0), axis=0)
    return np.where(coordinates[first, np.arange(coordinates.shape[1])] < 0, -1.0, 1.0)
