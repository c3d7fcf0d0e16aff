"""What k-means and k-medoids share: parameters, and the distance of new rankings from the centers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.rng import Seed
from rankernel.encoding import Unlisted
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.learn.transformers import KernelTransformer


class KernelPartition(ClusterMixin, KernelTransformer):  # type: ignore[misc]
    """Clusters of rankings around centers in the space of a kernel."""

    plan_: Plan

    def __init__(
        self,
        kernel: Kernel,
        n_clusters: int = 8,
        method: MethodLike = "auto",
        n_init: int = 10,
        max_iter: int = 300,
        random_state: Seed = 0,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_clusters = n_clusters
        self.method = method
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.unlisted = unlisted

    def predict(self, X: Any) -> Indices:
        """Return the cluster whose center is nearest to each ranking."""
        check_is_fitted(self)
        nearest: Indices = np.argmin(self._squares(self._new(X)), axis=1)
        return nearest

    def transform(self, X: Any) -> FloatArray:
        """Return the distance of each ranking from the center of each cluster."""
        check_is_fitted(self)
        new = self._new(X)
        squares = new.diagonal()[:, None] + self._squares(new)
        return np.sqrt(np.maximum(squares, 0))

    def _new(self, X: Any) -> Plan:
        """Return the plan of new rankings against those that the centers are made of."""
        return self.plan_.against(self._same_items(X))

    @abstractmethod
    def _squares(self, new: Plan) -> FloatArray:
        """Return the squared distance of new rankings from each center, less their own squared length."""
