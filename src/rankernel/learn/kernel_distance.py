"""The distance between two rankings as a kernel sees them: the length of the difference of their embeddings."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_choice, check_flag
from rankernel.errors import IndefiniteKernelWarning, warn
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel

Negative = Literal["clip", "error"]

STRIP = 256  # rows at once
ROUNDING = 1e-12  # relative to the largest diagonal entry


def kernel_distances(
    X: Any, kernel: Kernel, squared: bool = False, method: MethodLike = "auto", negative: Negative = "clip"
) -> FloatArray:
    r"""Return the distances between all rankings in the space of a kernel.

    :math:`D(R, R')^2 = K(R, R) + K(R', R') - 2 K(R, R')`. It is a metric on the mean embeddings of the rankings: two
    rankings that mean the same have distance 0.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind. One row and column for each row; multiplicities change nothing.
    kernel : Kernel
        The kernel.
    squared : bool
        Whether to return :math:`D^2`, which needs no square root.
    method : "auto" or a method object
        How to compute the Gram matrix.
    negative : {"clip", "error"}
        What to do with negative squares. A positive semi-definite Gram matrix has none beyond rounding, but one that
        mixes exact with estimated entries, that has an unbiased diagonal, or whose kernel is indefinite, may. "clip"
        sets them to 0, and says in a warning how many there were if that is more than rounding; "error" refuses.

    Returns
    -------
    array of shape (n_rankings, n_rankings)

    Notes
    -----
    Where the Gram matrix is estimated, its diagonal is too large on average, and so are these distances; equal
    rankings have the same draws, and distance 0 all the same.

    Examples
    --------
    Two opposite rankings of two items have Kendall kernel -1:

    >>> from rankernel import Kendall, Rankings
    >>> kernel_distances(Rankings.from_orders([["a", "b"], ["b", "a"]]), Kendall())
    array([[0., 2.],
           [2., 0.]])
    """
    check_flag("squared", squared)
    gram = as_kernel(kernel).gram(X, method=method)
    return gram_distances(gram, squared, negative, out=gram)


def gram_distances(
    gram: NDArray[Any], squared: bool = False, negative: Negative = "clip", out: FloatArray | None = None
) -> FloatArray:
    """Return the distances that a Gram matrix says, if need be in its own place: see :func:`kernel_distances`."""
    check_choice("negative", negative, get_args(Negative))
    lengths = np.diagonal(gram).astype(np.float64)
    squares = np.empty(gram.shape) if out is None else out
    for strip in slices(len(gram), STRIP):
        # Both lengths in one sum, so that the matrix is symmetric to the bit and equal rankings have distance 0.
        squares[strip] = np.add.outer(lengths[strip], lengths) - 2 * gram[strip]
    report_negative(squares, ROUNDING * float(np.abs(lengths).max(initial=0.0)), negative)
    np.maximum(squares, 0, out=squares)
    return squares if squared else np.sqrt(squares, out=squares)


def report_negative(squares: FloatArray, rounding: float, negative: Negative) -> None:
    """Count the pairs whose squared distance is negative by more than rounding, and warn of them or refuse."""
    n_pairs = len(squares) * (len(squares) - 1) // 2
    n_negative = np.count_nonzero(squares < -rounding) // 2
    if not n_negative:
        return
    found = f"{n_negative:,} of {n_pairs:,} pairs of rankings have a negative squared distance, down to "
    found += f"{squares.min():.3g}, because the Gram matrix is not positive semi-definite"
    if negative == "error":
        raise ValueError(f"{found}; use a positive semi-definite kernel and one method for all entries, or 'clip'")
    warn(f"{found}; these were set to 0", IndefiniteKernelWarning)
