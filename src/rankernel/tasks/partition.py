"""What k-means and k-medoids share: parameters, and the distance of new rankings from the centers."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from rankernel.completions.streams import Seed
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings
from rankernel.tasks.ranking_transformer import KernelTransformer
from rankernel.tasks.trained_kernel import TrainedKernel

if TYPE_CHECKING:
    from rankernel.gram.methods import MethodLike

__all__ = ["KernelPartition"]

FloatArray = NDArray[np.float64]
Labels = NDArray[np.intp]


class KernelPartition(ClusterMixin, KernelTransformer):  # type: ignore[misc]
    """Clusters of rankings around centers in the space of a kernel."""

    _trained: TrainedKernel

    def __init__(
        self,
        kernel: Kernel,
        n_clusters: int = 8,
        method: MethodLike = "auto",
        n_init: int = 10,
        max_iter: int = 300,
        seed: Seed = 0,
    ) -> None:
        self.kernel = kernel
        self.n_clusters = n_clusters
        self.method = method
        self.n_init = n_init
        self.max_iter = max_iter
        self.seed = seed

    def predict(self, X: Any) -> Labels:
        """Return the cluster whose center is nearest to each ranking."""
        check_is_fitted(self)
        nearest: Labels = np.argmin(self._squares(self._trained.aligned(X)), axis=1)
        return nearest

    def transform(self, X: Any) -> FloatArray:
        """Return the distance of each ranking from the center of each cluster."""
        check_is_fitted(self)
        rankings = self._trained.aligned(X)
        squares = self._trained.diagonal(rankings)[:, None] + self._squares(rankings)
        return np.sqrt(np.maximum(squares, 0))

    @abstractmethod
    def _squares(self, X: Rankings) -> FloatArray:
        """Return the squared distance from each center, less the squared length of the ranking itself."""
