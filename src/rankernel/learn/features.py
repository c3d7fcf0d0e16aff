"""Exact features of kernels: means over the completions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_flag
from rankernel._utils.resources import slices
from rankernel.completions.marginals import position_distributions
from rankernel.errors import RankingError
from rankernel.gram.evaluator import terms
from rankernel.gram.exact.features import mean_features
from rankernel.gram.rows import PartialOrders, Rows, as_rows
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.models.estimators import KernelTransformer
from rankernel.rankings import Rankings, Unlisted

ENTRIES = 2**24  # of the rank array, or bits, processed at once, so that temporary arrays stay small
ROUNDING = 1e-12  # probabilities that differ by less are equal


# ---------------------------------------------------------------------- exact features


@dataclass(eq=False, repr=False)
class MeanFeatures(KernelTransformer):
    """Exact features of kernels that are inner products: the mean of the features over the completions.

    Available for Kendall, Spearman, Hamming, all positional kernels (including rank-biased and average overlap),
    :class:`DistanceInduced` (with Kendall, Spearman, Hamming or footrule distance), polynomial kernels of degree 1 and
    2, and their sums and multiples. Inner products of the features are the marginalised kernel for all partial
    rankings, so linear models on them are kernel methods at linear cost.

    Parameters
    ----------
    kernel : Kernel or str
        The kernel.
    sparse_output : bool
        Whether to return a sparse array: for positional kernels and top-k lists of many items, whose features are
        mostly 0 if all lists have the same length. Lists of at most k items have k + 1 features for each item; lists
        that are longer than those of the training data are refused.
    unlisted
        As for :class:`KernelKMeans`.

    Examples
    --------
    The Kendall kernel of two items has one feature, the order of the pair, which is 0 for a tie:

    >>> from rankernel import Kendall, RankBiasedOverlap
    >>> MeanFeatures(Kendall()).fit_transform([[0, 1], [1, 0], [0, 0]])
    array([[ 1.],
           [-1.],
           [ 0.]])

    Top-2 lists of a thousand items:

    >>> ranks = np.full((3, 1000), 2)
    >>> ranks[[0, 1, 2], [7, 7, 8]], ranks[[0, 1, 2], [8, 9, 7]] = 0, 1
    >>> Z = MeanFeatures(RankBiasedOverlap(0.9), sparse_output=True).fit_transform(ranks)
    >>> Z.shape, Z.nnz, bool(np.allclose((Z @ Z.T).toarray(), RankBiasedOverlap(0.9).gram(ranks)))
    ((3, 3001), 18, True)
    """

    kernel: Kernel | str = "kendall"
    _: KW_ONLY
    sparse_output: bool = False
    unlisted: Unlisted | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the items and the length of the training rankings; ``y`` is ignored."""
        rankings = self._fit_items(X)
        if rankings.n_items < 2:
            raise RankingError("X has 1 feature(s), but rankings of one item are all equal; give at least two items")
        if check_flag("sparse_output", self.sparse_output):
            self.depth_ = depth_of(as_rows(rankings))
        self._n_features_out = self.transform(rankings[:1]).shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Return the mean features of rankings, dense or sparse: shape (n_rankings, n_features)."""
        rows, summands = as_rows(self._match_items(X)), terms(as_kernel(self.kernel))
        if not self.sparse_output:
            return np.hstack([np.sqrt(term.weight) * self._dense(term.kernel, rows) for term in summands])
        from scipy.sparse import hstack, vstack

        if isinstance(rows, PartialOrders):
            raise RankingError("sparse_output=True is for rankings; the features of partial orders are dense")
        parts = [(np.sqrt(term.weight), self._position_features(term.kernel, rows.n_items)) for term in summands]
        blocks = [
            hstack([scale * features.sparse(rows[block]) for scale, features in parts], format="csr")
            for block in slices(len(rows), max(ENTRIES // rows.n_items, 1))
        ]
        return blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")

    def _position_features(self, kernel: Kernel, n_items: int) -> PositionFeatures:
        form = kernel.facts(n_items).form
        if form is None or not form.is_positional:
            raise ValueError(f"{kernel} is not positional, so it has no sparse features; use sparse_output=False")
        return PositionFeatures.of(form.root(np.eye(n_items)), self.depth_)

    def _dense(self, kernel: Kernel, X: Rows) -> FloatArray:
        """Return features of one term of the kernel."""
        facts = kernel.facts(X.n_items)
        if facts.max_dimension == 1 and facts.function is not None:  # a constant
            return np.full((len(X), 1), np.sqrt(float(facts.function.value(np.zeros(1))[0])))
        known = mean_features(kernel, X.n_items, isinstance(X, Rankings))
        if known is None:
            raise ValueError(
                f"{self.kernel} is not an inner product of features with known means; use NystromFeatures instead"
            )
        features, constant = known
        values = features(X)
        return np.hstack([values, np.full((len(X), 1), np.sqrt(constant))]) if constant else values


@dataclass(frozen=True, eq=False)
class PositionFeatures:
    """Features of a positional kernel in which all positions from ``depth`` on share one feature vector.

    A top-k list determines only the positions up to k, so an item has k + 1 features, equal for all unlisted items.
    The features of all items add up to a constant vector. Subtracting the features of an unlisted item from every item
    therefore changes the kernel by a constant only, and makes the features sparse.
    """

    n_items: int
    depth: int  # number of positions with their own features
    factor: FloatArray  # (depth + 1, n_features): the shared positions, then each position before; lower triangular

    @classmethod
    def of(cls, root: FloatArray, depth: int) -> PositionFeatures:
        """Return the features of a positional kernel, given those of an item at each position."""
        vectors = np.vstack([root[depth:].mean(axis=0), root[:depth]])
        triangle: FloatArray = np.asarray(np.linalg.qr(vectors.T, mode="r"))
        return cls(len(root), depth, np.ascontiguousarray(triangle.T))

    def sparse(self, X: Rankings) -> Any:
        """Return sparse features, with one more column for the constant."""
        from scipy.sparse import csr_array, hstack

        known, constant = position_distributions(X), self.constant
        nonzero, features = known.pmf_of >= 0, self.mean_features(known.pmfs)
        if constant > 0:
            features -= self.factor[0]
            nonzero &= np.asarray(known.pmfs[:, : self.depth].any(axis=1))[known.pmf_of]
        starts, items, chosen = known.items_with(X, np.where(nonzero, known.pmf_of, -1))
        entries, n_features = csr_array(features)[chosen], self.factor.shape[1]  # one row for each listed item
        columns = entries.indices + np.repeat(items.astype(np.int64) * n_features, np.diff(entries.indptr))
        shape = len(X), self.n_items * n_features
        listed = csr_array((entries.data, columns, entries.indptr[starts]), shape=shape)
        return hstack([listed, np.full((len(X), 1), np.sqrt(max(constant, 0.0)))], format="csr")

    @property
    def constant(self) -> float:
        """The kernel less the inner product of the sparse features.

        If it is negative, as for the Hamming kernel and lists of most items, no real column can represent it: the
        features of an unlisted item are not subtracted then, and the output is hardly sparse.
        """
        shared, first = self.factor[0], self.factor[1:]
        total = first.sum(axis=0) + (self.n_items - self.depth) * shared
        return float(shared @ (2 * total - self.n_items * shared))

    def mean_features(self, probabilities: FloatArray) -> FloatArray:
        """Return the mean features of items from the probabilities of their positions."""
        shared = probabilities[:, self.depth :]
        if np.ptp(shared, axis=1).max(initial=0) > ROUNDING:
            raise RankingError(
                f"X has rankings that distinguish positions after the first {self.depth}, unlike the training data; "
                f"fit the features to longer rankings, or truncate these: X.top({self.depth})"
            )
        return np.asarray(np.hstack([shared.sum(axis=1, keepdims=True), probabilities[:, : self.depth]]) @ self.factor)


def depth_of(X: Rows) -> int:
    """Return the number of positions after which all positions have the same probability in all rankings."""
    if isinstance(X, PartialOrders):
        raise RankingError("sparse_output=True is for rankings; the features of partial orders are dense")
    changes = np.abs(np.diff(position_distributions(X).pmfs, axis=1)).max(axis=0, initial=0) > ROUNDING
    return int(np.flatnonzero(changes)[-1]) + 1 if changes.any() else 0
