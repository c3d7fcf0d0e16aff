"""Ridge regressions of many targets on the same covariates: of all rows, or of those that know the target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from threadpoolctl import threadpool_limits

from rankernel._utils.arrays import FloatArray, Indices, Mask


@dataclass(frozen=True, eq=False)
class Fit:
    """The means of targets, and the coefficients of their regressions: one row a feature, or a training row."""

    means: FloatArray
    coefficients: FloatArray


@dataclass(frozen=True, eq=False)
class Ridge:
    """Ridge regression of any targets on some covariates.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        The covariates; looked at where there is no Gram matrix.
    gram : array of shape (n_rows, n_rows), optional
        Their kernel. Coefficients are those of rows if there is one, else of features.
    weights : array of shape (n_rows,)
        How much each row counts.
    alpha : float
        The penalty for all rows; for some of them it is as much less as these weigh.
    """

    X: Any
    gram: FloatArray | None
    weights: FloatArray
    alpha: float

    def fit(self, targets: FloatArray) -> Fit:
        """Return the regressions of all rows."""
        return self._fit(targets, np.arange(len(targets)))

    def fit_known(self, targets: FloatArray, known: Mask, prior: float) -> Fit:
        """Return the regressions of the rows that know a target, drawn towards those of all rows.

        With n rows that know it, the regression of these counts n and that of all rows ``prior``.

        Parameters
        ----------
        targets : array of shape (n_rows, n_targets)
            What is known, or else expected.
        known : array of the same shape
            Which is known.
        prior : float
            How many rows what is expected is worth; infinite: only that counts.
        """
        whole = self.fit(targets)
        if not np.isinf(prior):
            with threadpool_limits(1, user_api="blas"):  # many small systems: threads would mostly wait for each other
                self._draw_towards_known(whole, targets, known, prior)
        return whole

    def _draw_towards_known(self, whole: Fit, targets: FloatArray, known: Mask, prior: float) -> None:
        """Mix into the regressions of all rows those of the rows that know a target, one set of rows after another."""
        masks, group = np.unique(known.T, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        for mask, columns in zip(masks, np.split(order, np.cumsum(np.bincount(group.ravel()))[:-1]), strict=True):
            rows = np.flatnonzero(mask & (self.weights > 0))
            if 0 < len(rows) < len(targets):
                n_rows, own = float(self.weights[rows].sum()), self._fit(targets[:, columns], rows)
                share = n_rows / (n_rows + prior)
                whole.means[columns] += share * (own.means - whole.means[columns])
                whole.coefficients[:, columns] += share * (own.coefficients - whole.coefficients[:, columns])

    def _fit(self, targets: FloatArray, rows: Indices) -> Fit:
        """Return the regressions of some rows."""
        weights = self.weights[rows]
        alpha = self.alpha * float(weights.sum() / self.weights.sum())  # as much a row
        means = weights @ targets[rows] / weights.sum()
        roots = np.sqrt(weights)[:, None]
        right = roots * (targets[rows] - means)
        if self.gram is None:
            everywhere = np.zeros(targets.shape)
            everywhere[rows] = right
            return Fit(means, solved(self._square(rows), self._scaled.T @ everywhere, alpha))
        square = self.gram[np.ix_(rows, rows)] * roots * roots.T
        coefficients = np.zeros(targets.shape)
        coefficients[rows] = roots * solved(square, right, alpha)
        return Fit(means, coefficients)

    @cached_property
    def _scaled(self) -> Any:
        """The covariates times the roots of the weights."""
        roots = np.sqrt(self.weights)[:, None]
        return self.X.multiply(roots).tocsr() if hasattr(self.X, "multiply") else self.X * roots

    @cached_property
    def _whole_square(self) -> FloatArray:
        return squared(self._scaled)

    def _square(self, rows: Indices) -> FloatArray:
        """Return the products of features over some rows: of these, or of all less those of the others, if fewer."""
        others = np.setdiff1d(np.arange(len(self.weights)), rows, assume_unique=True)
        if len(rows) <= len(others):
            return squared(self._scaled[rows])
        return self._whole_square - squared(self._scaled[others]) if len(others) else self._whole_square.copy()


def squared(X: Any) -> FloatArray:
    """Return the products of all columns with each other."""
    square = X.T @ X
    return np.asarray(square.toarray() if hasattr(square, "toarray") else square)


def solved(square: FloatArray, right: FloatArray, alpha: float) -> FloatArray:
    """Return the solution of a positive definite system with a penalty, the shortest one where it is singular."""
    from scipy.linalg import LinAlgError, LinAlgWarning, lstsq, solve

    square[np.diag_indices_from(square)] += alpha
    with catch_warnings():
        simplefilter("error", LinAlgWarning)
        try:
            return np.asarray(solve(square, right, assume_a="pos"))
        except (LinAlgError, LinAlgWarning):
            return np.asarray(lstsq(square, right)[0])
