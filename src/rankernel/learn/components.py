"""Principal components of rankings from their Gram matrix or from features; imported without scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils import FloatArray
from rankernel._utils.resources import run_interruptibly, slices

ROWS = 64  # rows processed at once, so that temporary arrays stay small
DENSE = 200  # up to this size the dense eigensolver is used, as in scikit-learn's KernelPCA
ROUNDING = 1e-13  # eigenvalues below this fraction of the trace are rounding errors
TIED = 1 - 1e-6  # coordinates within this factor of the largest one count as equally large


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


@np.errstate(under="ignore")
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
