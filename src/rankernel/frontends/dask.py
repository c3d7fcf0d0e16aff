"""Gram matrices, features and discrepancies as dask arrays: the same blocks on many processes or machines.

What is open is settled here, from all the data: the width "median", the method "auto", the seed. A worker gets the
rankings and the recipe once, and makes blocks as :meth:`Kernel.gram` does. So the results agree with it to the bit.
What this leaves out are sums whose order is up to the linear algebra library: it may round large matrix products in
another way on another kind of processor or number of threads (dask gives the library one thread in each worker).
"""

from __future__ import annotations

import pickle
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from rankernel.completions.streams import Seed, as_seed, stream_key
from rankernel.errors import RankingError, missing_extra
from rankernel.gram.blocks import stretches, tiles
from rankernel.gram.methods import MethodLike
from rankernel.gram.tiled import TiledGram
from rankernel.kernels.base import Kernel, check_whole
from rankernel.rankings import Rankings, as_rankings, concat

try:
    import cloudpickle
    import dask.array as da
except ImportError:
    raise missing_extra("dask", "dask") from None

if TYPE_CHECKING:
    from rankernel.tasks.nystrom import NystromFeatures

__all__ = ["gram", "mmd2", "nystrom", "transform"]

FloatArray = NDArray[np.float64]
Graph = dict[Any, Any]


# ---------------------------------------------------------------------- Gram matrices


def gram(kernel: Kernel, X: Any, Y: Any = None, method: MethodLike = "auto", chunks: int | None = None) -> da.Array:
    """Return the Gram matrix as a dask array, nothing of it computed yet.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X, Y : Rankings or integer array
        Rows and columns; ``Y`` is ``X`` if left out, and then each pair is computed once.
    method : as in :meth:`Kernel.gram`
        How to compute it. What "auto" means is settled at once; a formula that gives up later raises an
        :class:`ExactnessError`, and ``MonteCarlo()`` is the way out.
    chunks : int, optional
        Rows and columns of a chunk, rounded up to whole tiles.

    Returns
    -------
    dask.array.Array
        What :meth:`Kernel.gram` gives, to the bit.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> gram(Kendall(), [[0, 1, 2], [2, 1, 0], [0, 2, 1]]).sum(axis=1).compute()
    array([ 0.33333333, -0.33333333,  1.        ])
    """
    tiled = TiledGram.of(kernel, X, Y, method)
    side = tiled.side(chunks)
    array = blockwise_gram(tiled.distinct, side)
    rows, columns = tiled.problem.rows, tiled.problem.columns
    array = array if rows is None else array[rows]
    array = array if columns is None else array[:, columns]
    return cast("da.Array", array if tiled.problem.all_distinct else array.rechunk(side))


def blockwise_gram(tiled: TiledGram, side: int) -> Any:
    """Return the matrix of distinct rankings: of a symmetric one the blocks below the diagonal are transposes."""
    recipe, name, graph = shipped(tiled, f"rankernel-gram-{side}")
    rows, columns = (parts(length, side) for length in tiled.shape)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            mirrored = tiled.symmetric and i > j
            graph[name, i, j] = (np.transpose, (name, j, i)) if mirrored else (block_of, recipe, row, column)
    return as_dask(graph, name, tuple(tuple(map(length_of, side_parts)) for side_parts in (rows, columns)))


def block_of(tiled: TiledGram, rows: slice, columns: slice) -> FloatArray:
    """Return a block; a worker has as many of these tasks at once as it has threads, so one thread does for each."""
    return tiled.block(rows, columns, threads=1)


# ---------------------------------------------------------------------- features


def nystrom(
    kernel: Kernel,
    X: Any,
    n_components: int = 200,
    method: MethodLike = "auto",
    seed: Seed = 0,
    tol: float | None = None,
    n_fit: int | None = None,
    chunks: int = 4096,
) -> da.Array:
    """Return Nyström features as a dask array: pivots are chosen here and now, the features of all rankings later.

    Parameters
    ----------
    kernel, n_components, method, seed, tol
        As in :class:`rankernel.NystromFeatures`.
    X : Rankings or integer array
        The rankings.
    n_fit : int, optional
        Choose the pivots among so many rows, taken at random; among all if left out.
    chunks : int
        Rows of a chunk.

    Returns
    -------
    dask.array.Array of shape (n_rankings, n_components)
        In each chunk what :meth:`NystromFeatures.transform` gives for its rows.

    Examples
    --------
    One coordinate is all there is to two items:

    >>> from rankernel import Kendall
    >>> Z = nystrom(Kendall(), [[0, 1], [1, 0], [0, 1]]).compute()
    >>> Z @ Z.T
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """
    from rankernel.tasks.nystrom import NystromFeatures

    rankings, number = as_rankings(X), as_seed(seed)
    train = rankings
    if n_fit is not None and n_fit < len(rankings):
        check_whole("n_fit", n_fit)
        rng = np.random.default_rng(int(stream_key(number, "rows to choose pivots from")))
        train = rankings[np.sort(rng.choice(len(rankings), n_fit, replace=False))]
    resolved = kernel.resolve(rankings)
    return transform(NystromFeatures(resolved, n_components, method, number, tol).fit(train), rankings, chunks)


def transform(features: NystromFeatures, X: Any, chunks: int = 4096) -> da.Array:
    """Return the features of rankings by a fitted transformer, as a dask array.

    Parameters
    ----------
    features : NystromFeatures
        A transformer that is fitted.
    X : Rankings or integer array
        The rankings.
    chunks : int
        Rows of a chunk.

    Examples
    --------
    >>> from rankernel import Kendall, NystromFeatures
    >>> features = NystromFeatures(Kendall(), n_components=1).fit([[0, 1], [1, 0]])
    >>> transform(features, [[0, 1]]).compute() ** 2
    array([[1.]])
    """
    check_whole("chunks", chunks)
    rankings = as_rankings(X)
    recipe, name, graph = shipped((features, rankings), f"rankernel-features-{chunks}")
    rows = parts(len(rankings), chunks)
    for i, row in enumerate(rows):
        graph[name, i, 0] = (features_of, recipe, row)
    return cast("da.Array", as_dask(graph, name, (tuple(map(length_of, rows)), (features.n_components_,))))


def features_of(fitted: tuple[NystromFeatures, Rankings], rows: slice) -> FloatArray:
    """Return the features of some rows."""
    features, rankings = fitted
    return features.transform(rankings[rows])


# ---------------------------------------------------------------------- discrepancy


def mmd2(X: Any, Y: Any, kernel: Kernel, method: MethodLike = "auto", chunks: int | None = None) -> float:
    r"""Return the unbiased estimate of the squared maximum mean discrepancy, from sums over blocks.

    See :func:`rankernel.tasks.streaming.mmd2_streamed`, which is the same on one machine.

    Parameters
    ----------
    X, Y : Rankings or integer array
        The two sets of voters; counts are multiplicities.
    kernel : Kernel
        The kernel; a width "median" is taken from both sets together.
    method : as in :meth:`Kernel.gram`
        How to compute it.
    chunks : int, optional
        Rows and columns of a block, rounded up to whole tiles.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> mmd2([[0, 1], [0, 1]], [[1, 0], [1, 0]], Kendall())
    4.0
    """
    left, right = as_rankings(X), as_rankings(Y)
    if not (isinstance(X, Rankings) and isinstance(Y, Rankings)) and left.n_items == right.n_items:
        right = Rankings._trusted(right.ranks, left.items, right.counts)
    for name, side in (("X", left), ("Y", right)):
        if side.n_voters < 2:
            raise RankingError(f"{name} holds {side.n_voters} voter(s); the unbiased statistic needs at least two")
    pooled = concat([left, right])
    weights = np.zeros((len(pooled), 2))
    weights[: len(left), 0], weights[len(left) :, 1] = left.counts, right.counts
    sums = voter_sums(TiledGram.of(kernel, pooled, None, method), weights, chunks)
    m, n = left.n_voters, right.n_voters
    within = (sums[0] - sums[1]) / (m * (m - 1)) + (sums[2] - sums[3]) / (n * (n - 1))
    return float(within - 2 * sums[4] / (m * n))


def voter_sums(tiled: TiledGram, weights: FloatArray, chunks: int | None) -> FloatArray:
    """Return the sum over all pairs of voters of X and its trace, the same of Y, and the sum over pairs of X and Y.

    The sums of the blocks are added up here, in one order whoever made them.
    """
    side, place, distinct = tiled.side(chunks), tiled.problem.rows, tiled.distinct
    voters = weights
    if place is not None:
        voters = np.zeros((distinct.shape[0], 2))
        np.add.at(voters, place, weights)
    recipe, name, graph = shipped((distinct, voters), f"rankernel-sums-{side}")
    pairs = list(tiles(*distinct.shape, side, symmetric=True))
    for number, (rows, columns) in enumerate(pairs):
        graph[name, number, 0] = (sums_of, recipe, rows, columns)
    table = as_dask(graph, name, ((1,) * len(pairs), (5,)))
    return np.asarray(table.compute().sum(axis=0))


def sums_of(given: tuple[TiledGram, FloatArray], rows: slice, columns: slice) -> FloatArray:
    """Return what a block, and its mirror image where there is one, adds to the sums."""
    tiled, voters = given
    block = tiled.block(rows, columns, threads=1)
    by_row = np.stack([(block * weights).sum(axis=1) for weights in voters[columns].T], axis=1)
    sums = np.array([[(weights * column).sum() for column in by_row.T] for weights in voters[rows].T])
    traces = np.zeros(2)
    if rows == columns:
        traces = (voters[rows] * np.diagonal(block)[:, None]).sum(axis=0)
    else:
        sums = sums + sums.T
    return np.array([[sums[0, 0], traces[0], sums[1, 1], traces[1], sums[0, 1]]])


# ---------------------------------------------------------------------- graphs


def shipped(value: Any, purpose: str) -> tuple[str, str, Graph]:
    """Return the key under which every worker finds a value, a name for what is made of it, and a graph with both.

    The value is a task of its own: a worker unpacks it once, and keeps what it makes of it for all its blocks.
    """
    packed = cloudpickle.dumps(value)
    token = sha256(packed).hexdigest()[:32]
    recipe = f"rankernel-recipe-{token}"
    return recipe, f"{purpose}-{token}", {recipe: (pickle.loads, packed)}


def as_dask(graph: Graph, name: str, chunks: tuple[tuple[int, ...], ...]) -> Any:
    """Return a graph of blocks of floats as an array."""
    make: Any = da.Array
    return make(graph, name, chunks, dtype=np.float64)


def parts(length: int, side: int) -> list[slice]:
    """Return the parts of a side of a matrix; an empty side has one empty part."""
    return list(stretches(length, side)) or [slice(0, 0)]


def length_of(part: slice) -> int:
    """Return the length of a part."""
    return int(part.stop - part.start)
