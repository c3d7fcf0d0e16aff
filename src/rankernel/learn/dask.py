"""Gram matrices, features and discrepancies as dask arrays, for many processes or machines.

"median", "auto" and the seed are resolved when a graph is built, from all the data. Each worker receives the rankings
and the plan once, and computes blocks as :meth:`Kernel.gram` does, so results are equal to the bit. Exceptions are sums
in the linear algebra library, whose rounding may depend on the processor and the number of threads (dask workers use
one).
"""

from __future__ import annotations

import pickle
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_instance, check_integer
from rankernel._utils.resources import slices
from rankernel.data import Data, as_data
from rankernel.errors import missing_extra
from rankernel.gram.plan import MethodLike, Plan, sum_by_index
from rankernel.kernels.base import Kernel
from rankernel.stats.mmd import pooled_plan, unbiased_mmd2

try:
    import cloudpickle
    import dask.array as da
except ImportError:
    raise missing_extra("dask", "dask") from None

if TYPE_CHECKING:
    from rankernel.learn.nystrom import NystromFeatures

Graph = dict[Any, Any]


# ---------------------------------------------------------------------- Gram matrices


def gram(plan: Plan, *, chunks: int | None = None) -> Any:
    """Return the Gram matrix of a plan as a lazy dask array.

    Parameters
    ----------
    plan : Plan
        The plan of the matrix: see :meth:`Kernel.plan`. In a symmetric matrix each pair of chunks is computed once.
    chunks : int, optional
        The number of rows and columns of a chunk, rounded up to a multiple of the block side of the plan.

    Returns
    -------
    dask.array.Array
        Equal to :meth:`Plan.gram` to the bit.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> gram(Kendall().plan([[0, 1, 2], [2, 1, 0], [0, 2, 1]])).sum(axis=1).compute()
    array([ 0.33333333, -0.33333333,  1.        ])
    """
    side = chunk_side(check_instance("plan", plan, Plan, "a Plan, such as kernel.plan(X)"), chunks)
    if plan._evaluator.direct:
        return blockwise_gram(plan, side)
    array = blockwise_gram(plan._distinct, side)
    return array if plan._distinct is plan else array[plan._rows][:, plan._columns].rechunk(side)


def chunk_side(plan: Plan, chunks: int | None) -> int:
    """Return the number of rows and columns of a chunk, a multiple of the block side of the plan."""
    if chunks is None:
        return plan._side(None)
    side = plan._evaluator.block_side
    return side * -(-check_integer("chunks", chunks) // side)


def blockwise_gram(plan: Plan, side: int) -> Any:
    """Return a matrix in chunks; below the diagonal of a symmetric matrix they are transposes."""
    key, name, graph = shared_value(plan, f"rankernel-gram-{side}")
    rows, columns = (chunk_slices(length, side) for length in plan.shape)
    block = partial(Plan.block, n_jobs=1)  # a worker runs as many tasks at once as it has threads
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            mirrored = plan._symmetric and i > j
            graph[name, i, j] = (np.transpose, (name, j, i)) if mirrored else (block, key, row, column)
    return as_dask(graph, name, rows, columns)


# ---------------------------------------------------------------------- features


def transform(X: Any, features: NystromFeatures, *, chunks: int = 4096) -> da.Array:
    """Return the features of rankings by a fitted transformer as a lazy dask array.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings.
    features : NystromFeatures
        The fitted transformer; for very many rankings it may be fitted to a sample of them.
    chunks : int
        The number of rows of a chunk.

    Returns
    -------
    dask.array.Array of shape (n_rankings, n_components)
        In each chunk the result of :meth:`NystromFeatures.transform` for its rows.

    Examples
    --------
    The Kendall kernel of two items has one feature:

    >>> from rankernel import Kendall, NystromFeatures
    >>> X = [[0, 1], [1, 0], [0, 1]]
    >>> Z = transform(X, NystromFeatures(kernel=Kendall()).fit(X)).compute()
    >>> Z @ Z.T
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """
    from rankernel.learn.nystrom import NystromFeatures

    check_is_fitted(check_instance("features", features, NystromFeatures, "a fitted NystromFeatures"))
    check_integer("chunks", chunks)
    rankings = as_data(X)
    key, name, graph = shared_value((features, rankings), f"rankernel-features-{chunks}")
    rows = chunk_slices(len(rankings), chunks)
    for i, row in enumerate(rows):
        graph[name, i, 0] = (feature_block, key, row)
    return cast("da.Array", as_dask(graph, name, rows, [slice(0, features.n_components_)]))


def feature_block(shared: tuple[NystromFeatures, Data], rows: slice) -> FloatArray:
    """Return the features of a slice of rows."""
    features, rankings = shared
    return features.transform(rankings[rows])


# ---------------------------------------------------------------------- discrepancy


def mmd2(X: Any, Y: Any, kernel: Kernel | str, *, method: MethodLike = "auto", chunks: int | None = None) -> float:
    r"""Return the unbiased estimate of the squared maximum mean discrepancy, from sums over chunks.

    The same statistic on one machine is :func:`rankernel.stats.mmd.mmd2_streamed`.

    Parameters
    ----------
    X, Y, kernel, method
        As in :func:`rankernel.mmd_test`.
    chunks : int, optional
        As in :func:`gram`.

    Returns
    -------
    float

    Examples
    --------
    >>> from rankernel import Kendall
    >>> mmd2([[0, 1], [0, 1]], [[1, 0], [1, 0]], Kendall())
    4.0
    """
    plan, weights = pooled_plan(X, Y, kernel, method)
    side, distinct = chunk_side(plan, chunks), plan._distinct
    voters = sum_by_index(weights, plan._rows, len(plan._X))
    lazy, arrays = blockwise_gram(distinct, side), cast("Any", da)
    products, diagonal = arrays.compute(lazy @ arrays.from_array(voters, chunks=(side, 2)), arrays.diagonal(lazy))
    return unbiased_mmd2(voters.T @ products, diagonal @ voters, weights.sum(axis=0))


# ---------------------------------------------------------------------- graphs


def shared_value(value: Any, purpose: str) -> tuple[str, str, Graph]:
    """Return the key of a value in the graph, a name for arrays computed from it, and a graph with the value.

    The value is a task of its own, so a worker unpickles it once and shares it between all blocks.
    """
    pickled = cloudpickle.dumps(value)
    token = sha256(pickled).hexdigest()[:32]
    key = f"rankernel-shared-{token}"
    return key, f"{purpose}-{token}", {key: (pickle.loads, pickled)}


def as_dask(graph: Graph, name: str, *slices_by_axis: list[slice]) -> Any:
    """Return a graph of blocks of floats as a dask array."""
    make: Any = da.Array
    chunks = tuple(tuple(int(part.stop - part.start) for part in parts) for parts in slices_by_axis)
    return make(graph, name, chunks, dtype=np.float64)


def chunk_slices(length: int, side: int) -> list[slice]:
    """Return the slices of one axis; an empty axis has one empty slice."""
    return list(slices(length, side)) or [slice(0, 0)]
