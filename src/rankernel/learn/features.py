"""Features of kernels: exact means over the completions, and random features of the Mallows kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled
from rankernel._loops.pairs import pairs_in_order, popcount
from rankernel._utils import FloatArray, FullRanks, IntArray, Mask
from rankernel._utils.checks import check_flag, check_integer
from rankernel._utils.resources import run_in_threads
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.completions.draws import Antithetic, Uniform
from rankernel.completions.marginals import position_distributions
from rankernel.errors import RankingError
from rankernel.gram.evaluator import slices
from rankernel.gram.exact.features import mean_features, mean_statistics
from rankernel.gram.rows import PartialOrders, Rows, as_rows, count_rows, draw_rows, enumerate_rows
from rankernel.kernels import as_kernel
from rankernel.kernels.algebra import terms
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.learn.estimators import KernelTransformer, RankingTransformer
from rankernel.rankings import Rankings, Unlisted

Words = NDArray[np.uint64]

ENTRIES = 2**24  # of the rank array, or bits, processed at once, so that temporary arrays stay small
ROUNDING = 1e-12  # probabilities that differ by less are equal


# ---------------------------------------------------------------------- exact features


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
        mostly 0 if all lists have the same length.
    depth : int, optional
        For positional kernels: the number of positions with their own features, all later positions sharing one; longer
        lists are refused. By default the depth of the training rankings if ``sparse_output``, else all positions. Lists
        of k items have k + 1 features for each item.
    unlisted : {"last", "free"}, optional
        Meaning of NaN or None in a plain array or data frame: the item is last, or free. By default an error.

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

    def __init__(
        self,
        kernel: Kernel | str = "kendall",
        *,
        sparse_output: bool = False,
        depth: int | None = None,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.kernel = kernel
        self.sparse_output = sparse_output
        self.depth = depth
        self.unlisted = unlisted

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the items and the depth of the training rankings; ``y`` is ignored."""
        rankings = self._fit_items(X)
        n_items = rankings.n_items
        if n_items < 2:
            raise RankingError("X has 1 feature(s), but rankings of one item are all equal; give at least two items")
        check_flag("sparse_output", self.sparse_output)
        if self.depth is not None:
            self.depth_ = min(check_integer("depth", self.depth, 0), n_items - 1)
        else:
            self.depth_ = depth_of(as_rows(rankings)) if self.sparse_output else n_items - 1
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
        if facts.form is not None and facts.form.is_positional and self.depth_ < X.n_items - 1:
            return self._position_features(kernel, X.n_items).dense(X)
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

    def dense(self, X: Rows) -> FloatArray:
        """Return the features of all items side by side: shape (n_rankings, n_items * n_features)."""
        if isinstance(X, PartialOrders):
            probabilities = mean_statistics(X, "positions")
            features = self.mean_features(probabilities.reshape(-1, self.n_items)).reshape(*probabilities.shape[:2], -1)
        else:
            known = position_distributions(X)
            features = self.mean_features(known.pmfs)[known.of_items(X)]
        return features.reshape(len(X), -1)

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
                f"X has rankings that distinguish positions after the first {self.depth}, the depth of these features; "
                f"fit them with a larger depth, up to {self.n_items - 1}, or truncate the rankings: X.top({self.depth})"
            )
        return np.asarray(np.hstack([shared.sum(axis=1, keepdims=True), probabilities[:, : self.depth]]) @ self.factor)


def depth_of(X: Rows) -> int:
    """Return the number of positions after which all positions have the same probability in all rankings."""
    if isinstance(X, PartialOrders):
        return X.n_items - 1
    changes = np.abs(np.diff(position_distributions(X).pmfs, axis=1)).max(axis=0, initial=0) > ROUNDING
    return int(np.flatnonzero(changes)[-1]) + 1 if changes.any() else 0


# ---------------------------------------------------------------------- random features


class MallowsSignFeatures(RankingTransformer):
    r"""Random features of the Mallows kernel that do not depend on the data.

    With q = exp(-nu), a random set S that contains each pair of items independently with probability (1 - q)/2, and
    :math:`s_e(\sigma) = \pm 1` the order of pair e, :math:`q^{n_d(\sigma, \sigma')} = E_S \prod_{e \in S} s_e(\sigma)
    s_e(\sigma')` (Mania et al. 2018). So :math:`z_j(\sigma) = D^{-1/2} \prod_{e \in S_j} s_e(\sigma)` for D random sets
    give an unbiased estimate :math:`\langle z, z' \rangle` of the kernel, with a standard error of at most
    :math:`D^{-1/2}` between full rankings.

    For a partial ranking each feature is averaged over its completions: over all of them if there are at most
    ``n_draws``, else over antithetic draws. Estimates between different rankings remain unbiased; with draws, those
    between a ranking and itself are biased upwards by the variance of the mean.

    Parameters
    ----------
    nu : float or "median"
        The decay rate of the kernel; "median" is resolved from the training data.
    n_features : int
        The number D of random sets.
    n_draws : int
        The number of completions drawn for each partial ranking.
    random_state : int, Generator or None
        Seed of the sets and of the draws. The draws of a ranking depend on nothing else.
    unlisted : {"last", "free"}, optional
        Meaning of NaN or None in a plain array or data frame: the item is last, or free. By default an error.

    Attributes
    ----------
    kernel_ : Mallows
        The approximated kernel.
    pair_sets_ : array of shape (n_features, n_words)
        The sets, one bit for each pair of items a < b, in the order of ``np.triu_indices``.

    Examples
    --------
    >>> features = MallowsSignFeatures(nu=0.1, n_features=4000)
    >>> Z = features.fit_transform([[0, 1, 2, 3], [1, 0, 2, 3], [3, 2, 1, 0]])
    >>> np.round(Z @ Z[0], 1), np.round(np.exp([0, -0.1, -0.6]), 1)
    (array([1. , 0.9, 0.5]), array([1. , 0.9, 0.5]))
    """

    def __init__(
        self,
        nu: float | str = "median",
        *,
        n_features: int = 1000,
        n_draws: int = 64,
        random_state: Seed = 0,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.nu = nu
        self.n_features = n_features
        self.n_draws = n_draws
        self.random_state = random_state
        self.unlisted = unlisted

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the sets of pairs; ``y`` is ignored."""
        check_integer("n_features", self.n_features)
        check_integer("n_draws", self.n_draws)
        rankings = self._fit_items(X)
        self.kernel_ = Mallows(self.nu).resolve(rankings)
        self.seed_ = as_seed(self.random_state, "random_state")
        q = np.exp(-float(self.kernel_.nu))
        rng = np.random.default_rng(int(stream_key(self.seed_, "sets of pairs")))
        self.pair_sets_ = random_pair_sets(self.n_features, rankings.n_items, float(1 - q) / 2, rng)
        self._n_features_out = self.n_features
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the features of rankings: shape (n_rankings, n_features)."""
        data = self._match_items(X)
        first, inverse = data.unique_indices()
        rows = as_rows(data[first])
        means = np.empty((len(rows), self.n_features))

        def fill(block: slice) -> None:
            full, offsets = sample_completions(rows[block], self.n_draws, self.seed_)
            reversed_pairs = pairs_in_order(-full)
            mean_parities(reversed_pairs, offsets, self.pair_sets_, means[block])

        run_in_threads(fill, slices(len(rows), max(ENTRIES // (64 * self.pair_sets_.shape[1] * self.n_draws), 1)))
        return np.asarray(means[inverse] / np.sqrt(self.n_features))


def random_pair_sets(n_sets: int, n_items: int, probability: float, rng: np.random.Generator) -> Words:
    """Return random sets of pairs of items as rows of bits; each pair is in a set with the same probability."""
    n_pairs = n_items * (n_items - 1) // 2
    steps = slices(n_sets, max(ENTRIES // max(n_pairs, 1), 1))
    return np.concatenate([pack(rng.random((step.stop - step.start, n_pairs)) < probability) for step in steps])


def pack(bits: Mask) -> Words:
    """Return rows of bits as rows of 64-bit words."""
    n_words = max(-(-bits.shape[1] // 64), 1)
    padded = np.zeros((len(bits), 64 * n_words), dtype=np.bool_)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def sample_completions(X: Rows, n_draws: int, seed: int) -> tuple[FullRanks, IntArray]:
    """Return completions of each ranking, all if there are at most ``n_draws``, and the offsets of the rankings."""
    samples = list(draw_rows(X, n_draws, Uniform(), seed, Antithetic())[0])
    for row in range(len(X)):
        number = count_rows(X[row : row + 1], n_draws)
        if number is not None and number <= n_draws:
            (samples[row],) = enumerate_rows(X[row : row + 1], n_draws)
    sizes = [len(full) for full in samples]
    return np.concatenate(samples), np.cumsum([0, *sizes])


@compiled
def mean_parities(signs: Words, offsets: IntArray, pair_sets: Words, out: FloatArray) -> None:
    """Fill ``out[i, j]`` with the mean over rankings ``offsets[i]:offsets[i + 1]`` of the product of signs in set j.

    Rows of ``signs`` have a bit for each pair in reversed order, rows of ``pair_sets`` for each pair in the set.
    """
    n_words = signs.shape[1]
    for i in range(out.shape[0]):
        start, stop = offsets[i], offsets[i + 1]
        for j in range(out.shape[1]):
            odd = np.int64(0)
            for k in range(start, stop):
                word = np.uint64(0)
                for w in range(n_words):
                    word ^= signs[k, w] & pair_sets[j, w]
                odd += np.int64(popcount(word) & np.uint64(1))
            out[i, j] = 1.0 - 2.0 * odd / (stop - start)
