"""Kernels on rankings for GPy.

A ranking is a row of floats: the ranks of the items, smaller is better, equal is tied, -1 is free.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, checks
from rankernel.data import Data, as_data
from rankernel.errors import missing_extra
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.learn.plan_cache import Block, GramBlocks

try:
    import GPy
    from paramz.transformations import Logexp, Logistic
except ModuleNotFoundError as error:
    if error.name not in ("GPy", "paramz"):
        raise
    raise missing_extra("GPy", "gpy") from None


class RankingKern(GPy.kern.Kern):  # type: ignore[misc]
    r"""A kernel on rankings, averaged over their completions, times a variance.

    :math:`\sigma^2 \frac{1}{|R||R'|} \sum_{\sigma \in R} \sum_{\sigma' \in R'} k(\sigma, \sigma')`. The variance and
    the parameters of the kernel, within their bounds, are parameters of the model, fitted with exact gradients. Their
    names are those of ``kernel.params``, with the prefix ``kernel_`` if GPy uses the name for something else.

    Parameters
    ----------
    input_dim : int
        The number of items.
    kernel : Kernel or str
        The kernel k on full rankings.
    variance : float
        The factor of the kernel.
    method : as in :meth:`Kernel.gram`
        How to average over completions. The estimators of the paper are ``MonteCarlo(n_draws, coupling="iid",
        control_variates=0)`` and the same with ``coupling="antithetic"``.
    data : Rankings or array of ranks, optional
        The training data, which resolves "median" and "auto".
    active_dims : list of int, optional
        The columns of the data that contain the ranks.
    name : str
        The name of this part of a model.

    Examples
    --------
    >>> import rankernel as rk
    >>> kern = RankingKern(2, rk.Mallows(nu=1.0), variance=2.0)
    >>> kern.K(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([[2.        , 0.73575888],
           [0.73575888, 2.        ]])
    """

    def __init__(
        self,
        input_dim: int,
        kernel: Kernel | str,
        *,
        variance: float = 1.0,
        method: MethodLike = "auto",
        data: Any = None,
        active_dims: Any = None,
        name: str = "ranking",
    ) -> None:
        checks.check_integer("input_dim", input_dim)
        columns = None if active_dims is None else check_columns(active_dims, input_dim)
        super().__init__(input_dim, columns, checks.check_text("name", name))
        self.blocks = GramBlocks(kernel, method, data)
        self.kernel = self.blocks.kernel
        self.variance = GPy.Param("variance", checks.check_number("variance", variance, 0, above=True), Logexp())
        self.link_parameter(self.variance)
        bounds = self.kernel.bounds
        self.attributes = {each: f"kernel_{each}" if hasattr(self, each) else each for each in self.kernel.params}
        for parameter, value in self.kernel.params.items():
            low, high = bounds[parameter]
            constraint = Logistic(low, high) if math.isfinite(high) else Logexp()
            attribute = self.attributes[parameter]
            setattr(self, attribute, GPy.Param(attribute, value, constraint))
            self.link_parameter(getattr(self, attribute))

    # ------------------------------------------------------------------ values

    def K(self, X: Any, X2: Any = None) -> FloatArray:  # noqa: N802
        """Return the Gram matrix."""
        return np.asarray(self.variance.item() * self._gram(X, X2)[0])

    def Kdiag(self, X: Any) -> FloatArray:  # noqa: N802
        """Return the diagonal of the Gram matrix, which is below the variance for partial rankings."""
        return np.asarray(self.variance.item() * self._diagonal(X)[0])

    # ------------------------------------------------------------------ gradients

    def update_gradients_full(self, dL_dK: Any, X: Any, X2: Any = None) -> None:
        """Set the gradient of the objective, given its derivatives in the Gram matrix."""
        self._set_gradients(dL_dK, self._gram(X, X2, gradient=True))

    def update_gradients_diag(self, dL_dKdiag: Any, X: Any) -> None:
        """Set the gradient of the objective, given its derivatives in the diagonal."""
        self._set_gradients(dL_dKdiag, self._diagonal(X, gradient=True))

    def _set_gradients(self, outer: Any, block: Block) -> None:
        value, gradients = block
        self.variance.gradient = np.sum(outer * value)
        for parameter, gradient in gradients.items():
            getattr(self, self.attributes[parameter]).gradient = self.variance.item() * np.sum(outer * gradient)

    def _gram(self, X: Any, X2: Any, gradient: bool = False) -> Block:
        others = None if X2 is None or X2 is X else to_rankings(X2)
        return self.blocks.gram(self._current_kernel(), to_rankings(X), others, gradient)

    def _diagonal(self, X: Any, gradient: bool = False) -> Block:
        return self.blocks.diagonal(self._current_kernel(), to_rankings(X), gradient)

    def _current_kernel(self) -> Kernel:
        return self.kernel.replace(**{name: getattr(self, each).item() for name, each in self.attributes.items()})


def to_rankings(X: Any) -> Data:
    """Return the rankings in an array of ranks."""
    return as_data(checks.check_array("X", X, "an array of ranks, one ranking in each row"))


def check_columns(active_dims: Any, n_items: int) -> list[int]:
    """Return the columns of the data that contain the ranks."""
    wanted = f"a list of {n_items} columns, one for each item"
    columns = checks.check_list("active_dims", active_dims, wanted)
    if len(columns) != n_items:
        raise ValueError(f"active_dims={checks.short_repr(active_dims)} is not possible; it must be {wanted}")
    return [checks.check_integer("active_dims", column, least=0) for column in columns]
