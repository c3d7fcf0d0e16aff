"""From rows with counts to voters: which row of a Gram matrix each voter stands behind.

A row of count c is c voters. Where kernel values are exact, equal ballots share one row of the matrix, which is never
expanded. Estimated values differ between voters of the same ballot, as each must have draws of its own: there every
voter has a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import ExactnessError, RankingError
from rankernel.gram import Exact, Mixed, MonteCarlo, gram
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings, first_and_inverse

__all__ = ["FloatArray", "IntArray", "Rows", "exact_or_estimated", "given_gram", "group_codes", "rows_for"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Answer = TypeVar("Answer")

MOST_VOTERS = 10_000  # a matrix of 800 MB


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a Gram matrix, and the voters behind them.

    Attributes
    ----------
    rankings : Rankings
        One ranking for each row of the matrix; its counts are the numbers of voters.
    of_voter : array of shape (n_voters,)
        The row of each voter, voters in the order of the data.
    method : method
        How kernel values are computed.
    """

    rankings: Rankings
    of_voter: IntArray
    method: MethodLike

    @property
    def n_voters(self) -> int:
        """Number of voters."""
        return len(self.of_voter)

    def gram(self, kernel: Kernel, threads: int | None) -> FloatArray:
        """Return the Gram matrix of the rows."""
        return np.asarray(gram(kernel, self.rankings, method=self.method, threads=threads))

    def by_ballot(self, values: FloatArray) -> tuple[Rankings, FloatArray]:
        """Return the distinct ballots, and the mean over voters of values that belong to rows."""
        ballots = self.rankings.unique()
        _, ballot_of_row = first_and_inverse(self.rankings.ranks)
        total = np.bincount(ballot_of_row, weights=values * self.rankings.counts, minlength=len(ballots))
        return ballots, total / ballots.counts


def rows_for(X: Rankings, method: MethodLike) -> Rows:
    """Return the rows that a method needs: distinct ballots, or voters where values are estimated."""
    if isinstance(method, Mixed) or method == "mixed":
        raise ValueError("a test needs one estimator for all pairs; use method='auto' instead of 'mixed'")
    if not isinstance(method, MonteCarlo):
        _, inverse = first_and_inverse(X.ranks)
        return Rows(X.unique(), np.repeat(inverse, X.counts), method)
    if X.n_voters > MOST_VOTERS:
        raise ExactnessError(
            f"kernel values are estimated, so that each of the {X.n_voters:,} voters needs a row of its own (at most "
            f"{MOST_VOTERS:,} are possible); use a kernel with exact values for these rankings, or fewer voters"
        )
    voters = X[np.repeat(np.arange(len(X)), X.counts)]
    rankings = Rankings(voters.ranks, X.items)
    return Rows(rankings, np.arange(X.n_voters), replace(method, distinct_rows=True))


def given_gram(X: Rankings, matrix: Any) -> tuple[Rows, FloatArray]:
    """Return rows for a Gram matrix that the caller has, one row for each row of the data."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.shape != (len(X), len(X)):
        raise ValueError(
            f"precomputed has shape {values.shape}, but there are {len(X)} rows of data in all; it holds one row for "
            "each row of X, then for each row of Y"
        )
    return Rows(X, np.repeat(np.arange(len(X)), X.counts), Exact()), values


def exact_or_estimated(run: Callable[[MethodLike], Answer], method: MethodLike) -> Answer:
    """Return what ``run`` gives for a method; "auto" is exact where that is possible, else estimated."""
    if method != "auto":
        return run(method)
    try:
        return run(Exact())
    except ExactnessError:
        return run(MonteCarlo())


def group_codes(labels: Any, X: Rankings, name: str) -> IntArray:
    """Return for each voter a number from 0 that stands for the label of its row."""
    given = np.asarray(labels)
    if given.shape != (len(X),):
        raise RankingError(f"{name} has shape {given.shape}, but there are {len(X)} rows; give one label for each row")
    codes = np.unique(given, return_inverse=True)[1].ravel()
    return np.asarray(np.repeat(codes, X.counts), dtype=np.int64)
