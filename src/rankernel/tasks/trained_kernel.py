"""What an estimator learns about its kernel in ``fit``: training rankings, width, and how values are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import ExactnessError, RankingError
from rankernel.gram import MonteCarlo, diagonal
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings, as_rankings
from rankernel.tasks.streaming import settle, settled_method

__all__ = ["TrainedKernel"]

FloatArray = NDArray[np.float64]


class TrainedKernel:
    """A kernel on the training rankings and on new ones, all values computed in the same way.

    What "auto" means for the training rankings stands for new ones, too, so that the same ranking has the same values
    in ``fit`` and in ``predict``; only where new rankings have no exact value are these estimated.
    """

    def __init__(self, kernel: Kernel, X: Any, method: MethodLike) -> None:
        self.rankings = as_rankings(X)
        self.named = has_names(X)
        self.kernel = kernel.resolve(self.rankings)
        self.asked = self.method = method

    def training_gram(self) -> FloatArray:
        """Return the Gram matrix of the training rankings, and settle the method."""

        def run(method: MethodLike) -> FloatArray:
            self.method = method
            return self.kernel.gram(self.rankings, method=method)

        return settle(self.kernel, self.rankings, self.rankings, self.asked, run)

    def gram(self, X: Rankings, training: Rankings) -> FloatArray:
        """Return the Gram matrix between new rankings and some of the training ones."""
        try:
            return self.kernel.gram(X, training, method=self.method)
        except ExactnessError:
            if self.asked != "auto":
                raise
        return self.kernel.gram(X, training, method=settled_method(self.kernel, X, training, MonteCarlo()))

    def diagonal(self, X: Rankings) -> FloatArray:
        """Return the kernel of each new ranking with itself."""
        try:
            return diagonal(self.kernel, X, self.method)
        except ExactnessError:
            if self.asked != "auto":
                raise
        return diagonal(self.kernel, X, MonteCarlo())

    def aligned(self, X: Any) -> Rankings:
        """Return new rankings over the training items, in their order."""
        new, items = as_rankings(X), self.rankings.items
        if new.n_items != len(items):
            raise RankingError(
                f"X has {new.n_items} features, but it is expecting {len(items)} features as input: new rankings must "
                "rank the same items as those of fit"
            )
        if not (self.named and has_names(X)):
            return Rankings._trusted(new.ranks, items, new.counts)  # columns in the same order is all that is known
        if set(new.items) != set(items):
            raise RankingError("X is not about the items of fit: some names differ; bring them to the same names first")
        return new if new.items == items else new.with_items(items)


def has_names(X: Any) -> bool:
    """Say whether rankings come with names of their items."""
    return isinstance(X, Rankings) or hasattr(X, "columns")
