"""Kernel principal components of rankings."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_integer, short_repr
from rankernel._utils.resources import check_task
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.learn.components import Components, components_of_features, components_of_gram
from rankernel.models.estimators import KernelTransformer
from rankernel.rankings import Unlisted


@dataclass(eq=False, repr=False)
class KernelMap(KernelTransformer):
    r"""Kernel principal component analysis of rankings.

    Component j of a ranking is :math:`\langle \phi(R) - \bar\phi, v_j \rangle`, where :math:`\phi(R)` is its mean
    embedding, :math:`\bar\phi` the mean over all voters and :math:`v_j` the direction of the j-th largest variance. A
    ranking with multiplicity c counts c times.

    Parameters
    ----------
    n_components : int
        The number of components.
    kernel, method, unlisted
        As for :class:`KernelKMeans`.
    features : transformer, optional
        For many rankings: an estimator with ``fit_transform`` and ``transform`` whose features have the kernel, or an
        approximation of it, as inner products, such as :class:`NystromFeatures`. No Gram matrix is computed then, and
        ``kernel`` and ``method`` are ignored.

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

    n_components: int = 2
    _: KW_ONLY
    kernel: Kernel | str = "mallows"
    method: MethodLike = "auto"
    features: Any = None
    unlisted: Unlisted | None = None

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
