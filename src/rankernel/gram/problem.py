"""A Gram matrix to compute: what the caller gave, checked, its kernel resolved, equal rankings found."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import IndefiniteKernelWarning, RankingError
from rankernel.gram.memory import spread_into
from rankernel.gram.methods import MethodLike
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.partial_orders import Data, PartialOrders, as_data, check_same_items
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Exponential
from rankernel.rankings import Rankings, first_and_inverse

__all__ = ["Problem", "pose", "warn_if_indefinite"]

MOSTLY_DISTINCT = 0.8


@dataclass(frozen=True)
class Problem:
    """One Gram matrix to compute: distinct rankings, and where each of them stands."""

    kernel: Kernel
    X: Data
    Y: Data
    rows: NDArray[np.intp] | None
    columns: NDArray[np.intp] | None

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same rankings."""
        return self.Y is self.X

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix of all rankings."""
        return (
            len(self.X) if self.rows is None else len(self.rows),
            len(self.Y) if self.columns is None else len(self.columns),
        )

    @property
    def all_distinct(self) -> bool:
        """Whether the matrix of the distinct rankings is that of all rankings."""
        return self.rows is None and self.columns is None

    @property
    def entries_held(self) -> int:
        """How many numbers are held to get the matrix: those of the distinct rankings, too, where some are equal."""
        n_rows, n_columns = self.shape
        return n_rows * n_columns + (0 if self.all_distinct else len(self.X) * len(self.Y))

    def spread(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the matrix of all rankings from that of the distinct ones."""
        if self.all_distinct:
            return matrix
        out = np.empty(self.shape, dtype=matrix.dtype)
        spread_into(out, matrix, self.rows, self.columns)
        return out


def pose(kernel: Kernel, X: Any, Y: Any, method: MethodLike) -> Problem:
    """Return the problem with a resolved kernel and distinct rankings, having warned of what cannot be promised."""
    left = settled(as_data(X))
    right = left if Y is None or Y is X else settled(as_data(Y))
    if left.n_items != right.n_items:
        raise RankingError(
            f"X is about {left.n_items} items and Y about {right.n_items}; both must rank the same items"
        )
    check_same_items(X, Y)
    resolved = kernel.resolve(X)
    warn_if_indefinite(resolved, left.n_items)
    if isinstance(method, MonteCarlo) and method.distinct_rows:
        return Problem(resolved, left, right, None, None)
    X_distinct, rows = distinct(left)
    if right is left:
        return Problem(resolved, X_distinct, X_distinct, rows, rows)
    Y_distinct, columns = distinct(right)
    return Problem(resolved, X_distinct, Y_distinct, rows, columns)


def settled(X: Data) -> Data:
    """Return rankings with rows that say nothing (at most one bucket) written in one way: all items tied."""
    if isinstance(X, PartialOrders):
        return X
    nothing = (X.n_buckets <= 1) & (X.n_free > 0)
    if not nothing.any():
        return X
    return Rankings._trusted(np.where(nothing[:, None], 0, X.ranks).astype(np.int32), X.items, X.counts)


def distinct(X: Data) -> tuple[Data, NDArray[np.intp] | None]:
    """Return the distinct rankings, and which of them each row is; None if nearly all rows are distinct.

    Spreading a matrix of distinct rankings takes a second matrix: not worth it for a few rows less.
    """
    first, inverse = X.first_and_inverse() if isinstance(X, PartialOrders) else first_and_inverse(X.ranks)
    return (X, None) if len(first) > MOSTLY_DISTINCT * len(X) else (X[first], inverse)


def warn_if_indefinite(kernel: Kernel, n_items: int) -> None:
    """Warn where the kernel is not known to be positive semi-definite, with a way out where there is one."""
    if kernel.is_positive(n_items):
        return
    advice = ""
    if isinstance(kernel, Exponential) and kernel.argument.name == "cayley":
        advice = f"; nu={kernel.nearest_valid_nu(n_items):.6g} is the nearest for which it is"
    warnings.warn(
        f"{kernel} is not positive semi-definite on {n_items} items, so a Gram matrix may have negative "
        f"eigenvalues{advice}",
        IndefiniteKernelWarning,
        stacklevel=4,
    )
