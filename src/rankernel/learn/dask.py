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
from sklearn.utils.validation import check_is_fitted

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_instance, check_integer
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.data import Data, as_data
from rankernel.errors import missing_extra
from rankernel.gram.blocks import slices, tiles
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.gram.sums import gathered
from rankernel.kernels.base import Kernel
from rankernel.kernels.named import as_kernel
from rankernel.learn.mmd_streamed import pooled_plan, unbiased_mmd2

try:
    import cloudpickle
    import dask.array as da
except ImportError:
    raise missing_extra("dask", "dask") from None

if TYPE_CHECKING:
    from rankernel.learn.nystrom import NystromFeatures

Graph = dict[Any, Any]


# ---------------------------------------------------------------------- Gram matrices


def gram(plan: Plan, chunks: int | None = None) -> Any:
    """Return the Gram matrix of a plan as a dask array, nothing of it computed yet.

    Parameters
    ----------
    plan : Plan
        The matrix: see :meth:`Kernel.plan`. Where rows and columns are the same, each pair is computed once.
    chunks : int, optional
        Rows and columns of a chunk, rounded up to whole tiles.

    Returns
    -------
    dask.array.Array
        What :meth:`Plan.gram` gives, to the bit.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> gram(Kendall().plan([[0, 1, 2], [2, 1, 0], [0, 2, 1]])).sum(axis=1).compute()
    array([ 0.33333333, -0.33333333,  1.        ])
    """
    side = side_of(check_instance("plan", plan, Plan, "a Plan, as kernel.plan(X) makes it"), chunks)
    if plan.evaluator.direct:
        return blockwise_gram(plan, side)
    array = blockwise_gram(plan.distinct, side)
    array = array if plan.rows is None else array[plan.rows]
    array = array if plan.columns is None else array[:, plan.columns]
    return array if plan.rows is None and plan.columns is None else array.rechunk(side)


def side_of(plan: Plan, chunks: int | None) -> int:
    """Return the side of blocks that is wanted, in whole tiles."""
    return plan.side(None if chunks is None else check_integer("chunks", chunks))


def blockwise_gram(plan: Plan, side: int) -> Any:
    """Return a matrix in blocks: of a symmetric one those below the diagonal are transposes."""
    recipe, name, graph = shipped(plan, f"rankernel-gram-{side}")
    rows, columns = (parts(length, side) for length in plan.shape)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            mirrored = plan.symmetric and i > j
            graph[name, i, j] = (np.transpose, (name, j, i)) if mirrored else (block_of, recipe, row, column)
    return as_dask(graph, name, tuple(tuple(map(length_of, side_parts)) for side_parts in (rows, columns)))


def block_of(plan: Plan, rows: slice, columns: slice) -> FloatArray:
    """Return a block; a worker has as many of these tasks at once as it has threads, so one thread does for each."""
    return plan.block(rows, columns, n_jobs=1)


# ---------------------------------------------------------------------- features


def nystrom(
    X: Any,
    kernel: Kernel,
    n_components: int = 200,
    method: MethodLike = "auto",
    rng: Seed = 0,
    tol: float | None = None,
    n_fit: int | None = None,
    chunks: int = 4096,
) -> da.Array:
    """Return Nyström features as a dask array: pivots are chosen here and now, the features of all rankings later.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings.
    kernel, n_components, method, tol
        As in :class:`rankernel.NystromFeatures`.
    rng : int or Generator
        The choice of the pivots.
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
    >>> Z = nystrom([[0, 1], [1, 0], [0, 1]], Kendall()).compute()
    >>> Z @ Z.T
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """
    from rankernel.learn.nystrom import NystromFeatures

    rankings, number = as_data(X), as_seed(rng)
    train = rankings
    if n_fit is not None and check_integer("n_fit", n_fit) < len(rankings):
        rng = np.random.default_rng(int(stream_key(number, "rows to choose pivots from")))
        train = rankings[np.sort(rng.choice(len(rankings), n_fit, replace=False))]
    resolved = as_kernel(kernel).resolve(rankings)
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
    from rankernel.learn.nystrom import NystromFeatures

    check_is_fitted(check_instance("features", features, NystromFeatures, "NystromFeatures that are fitted"))
    check_integer("chunks", chunks)
    rankings = as_data(X)
    recipe, name, graph = shipped((features, rankings), f"rankernel-features-{chunks}")
    rows = parts(len(rankings), chunks)
    for i, row in enumerate(rows):
        graph[name, i, 0] = (features_of, recipe, row)
    return cast("da.Array", as_dask(graph, name, (tuple(map(length_of, rows)), (features.n_components_,))))


def features_of(fitted: tuple[NystromFeatures, Data], rows: slice) -> FloatArray:
    """Return the features of some rows."""
    features, rankings = fitted
    return features.transform(rankings[rows])


# ---------------------------------------------------------------------- discrepancy


def mmd2(X: Any, Y: Any, kernel: Kernel, method: MethodLike = "auto", chunks: int | None = None) -> float:
    r"""Return the unbiased estimate of the squared maximum mean discrepancy, from sums over blocks.

    See :func:`rankernel.mmd2_streamed`, which is the same on one machine.

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
    plan, weights = pooled_plan(X, Y, kernel, method)
    sums, traces = voter_sums(plan, weights, chunks)
    return unbiased_mmd2(sums, traces, weights.sum(axis=0))


def voter_sums(plan: Plan, weights: FloatArray, chunks: int | None) -> tuple[FloatArray, FloatArray]:
    """Return the sums over all pairs of voters of two sets, and those of each voter with itself.

    The sums of the blocks are added up here, in one order whoever made them.
    """
    side, distinct = side_of(plan, chunks), plan.distinct
    recipe, name, graph = shipped((distinct, gathered(weights, plan.rows, len(plan.X))), f"rankernel-sums-{side}")
    pairs = list(tiles(*distinct.shape, side, symmetric=True))
    for number, (rows, columns) in enumerate(pairs):
        graph[name, number, 0] = (sums_of, recipe, rows, columns)
    total = np.asarray(as_dask(graph, name, ((1,) * len(pairs), (6,))).compute().sum(axis=0))
    return total[:4].reshape(2, 2), total[4:]


def sums_of(given: tuple[Plan, FloatArray], rows: slice, columns: slice) -> FloatArray:
    """Return what a block, and its mirror image where there is one, adds to the sums."""
    plan, voters = given
    block = plan.block(rows, columns, n_jobs=1)
    by_row = np.stack([(block * weights).sum(axis=1) for weights in voters[columns].T], axis=1)
    sums = np.array([[(weights * column).sum() for column in by_row.T] for weights in voters[rows].T])
    traces = np.zeros(2)
    if rows == columns:
        traces = (voters[rows] * np.diagonal(block)[:, None]).sum(axis=0)
    else:
        sums = sums + sums.T
    return np.array([[*sums.ravel(), *traces]])


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
    return list(slices(length, side)) or [slice(0, 0)]


def length_of(part: slice) -> int:
    """Return the length of a part."""
    return int(part.stop - part.start)
