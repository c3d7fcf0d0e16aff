"""Covariates: labels, numbers or rankings, as a Gram matrix of their distinct values and the value of each voter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.checks import check_choice, check_unmasked, short_repr
from rankernel.data import Data, as_data, with_counts
from rankernel.encoding import is_missing
from rankernel.errors import RankingError
from rankernel.gram.bandwidth import MAX_RANKINGS, median_of_pairs
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.stats._voters import Ballots, voter_gram

CovariateKernel = Literal["auto", "delta", "gaussian"] | Kernel


@dataclass(frozen=True, eq=False)
class Covariate:
    """A covariate of voters.

    Attributes
    ----------
    of_voter : array of shape (n_voters,)
        The number of the value of each voter.
    gram : array of shape (n_values, n_values)
        The kernel between values.
    text : str
        What the kernel is.
    plan : Plan or None
        How the kernel between values is computed, where they are rankings.
    """

    of_voter: Indices
    gram: FloatArray
    text: str
    plan: Plan | None = None


def covariate_of(values: Any, X: Data, kernel: CovariateKernel, method: MethodLike) -> Covariate:
    """Return the covariate of the voters of X, one value for each row of X."""
    if isinstance(values, Data):
        return of_rankings(values, X, kernel, method)
    check_unmasked("covariate", values)
    given = np.asarray(values)
    if given.ndim not in (1, 2) or len(given) != len(X):
        raise RankingError(
            f"the covariate has shape {given.shape}, but there are {len(X)} rankings; give one value for each row"
        )
    if isinstance(kernel, Kernel):
        raise ValueError(f"covariate_kernel={kernel!r} is for rankings; for other values use 'delta' or 'gaussian'")
    check_choice("covariate_kernel", kernel, ("auto", "delta", "gaussian"))
    numbers = given.dtype.kind == "f" or given.ndim == 2
    if kernel == "gaussian" or (kernel == "auto" and numbers):
        return of_numbers(given, X)
    return of_labels(given, X)


def of_labels(labels: NDArray[Any], X: Data) -> Covariate:
    """Return labels with the delta kernel: 1 for equal ones, else 0."""
    if labels.ndim != 1:
        raise RankingError(f"labels have shape {labels.shape}; the delta kernel takes one label for each row")
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise RankingError(f"the covariate of row {row} is missing; leave out rows without one")
    names, codes = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    text = f"labels ({len(names)} different, delta kernel)"
    return Covariate(np.repeat(codes.ravel(), X.counts), np.eye(len(names)), text)


def of_numbers(values: NDArray[Any], X: Data) -> Covariate:
    r"""Return numbers with the Gaussian kernel :math:`\exp(-|x - y|^2 / 2 s^2)`, s the median of ``|x - y|``."""
    from scipy.spatial.distance import cdist

    try:
        table = values.astype(np.float64).reshape(len(X), -1)
    except (TypeError, ValueError):
        raise RankingError(
            f"the covariate of row 0 is {short_repr(values[0])}, and the Gaussian kernel takes numbers; give numbers, or "
            "covariate_kernel='delta' for labels"
        ) from None
    if not np.isfinite(table).all():
        row = int(np.argmax(~np.isfinite(table).all(axis=1)))
        raise RankingError(f"the covariate of row {row} is {values[row]}; it must be finite (leave out missing ones)")
    points, codes = np.unique(table, axis=0, return_inverse=True)
    counts = np.bincount(codes.ravel(), weights=X.counts).astype(np.float64)
    squares = cdist(points, points, "sqeuclidean")
    some: Any = slice(None)
    if len(points) > MAX_RANKINGS:
        some = np.sort(np.random.default_rng(0).choice(len(points), MAX_RANKINGS, replace=False))
    width = median_of_pairs(np.sqrt(squares[some][:, some]), counts[some])
    text = f"numbers (Gaussian kernel, width {width:.6g})"
    squares /= -2 * width**2  # in its place, as the exponential
    return Covariate(np.repeat(codes.ravel(), X.counts), np.exp(squares, out=squares), text)


def of_rankings(values: Data, X: Data, kernel: CovariateKernel, method: MethodLike) -> Covariate:
    """Return other rankings of the same voters."""
    if len(values) != len(X):
        raise RankingError(f"the covariate has {len(values)} rankings and X has {len(X)}; give one for each row of X")
    if not (np.array_equal(values.counts, X.counts) or (values.counts == 1).all()):
        raise RankingError("the covariate has other counts than X; a row of X and its covariate are the same voters")
    if isinstance(kernel, str) and kernel != "auto":
        raise ValueError(f"covariate_kernel={kernel!r} is not for rankings; give a kernel such as Mallows(0.1)")
    voters = with_counts(as_data(values), X.counts)
    plan = (kernel if isinstance(kernel, Kernel) else Mallows(nu="median")).plan(voters, method=method)
    return Covariate(Ballots.of(voters, plan).of_voter, voter_gram(plan), f"rankings ({plan.kernel})", plan)
