"""Kernels on rankings for GPy: regression, classification and whatever else it does with a kernel.

A ranking is a row of floats, as GPy wants it: the ranks of the items, smaller is better, equal is tied, -1 is free.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankernel._utils import checks
from rankernel._utils.arrays import FloatArray, RankArray
from rankernel.completions.draws import draw
from rankernel.data import Data, as_data
from rankernel.errors import RankingError, missing_extra
from rankernel.gram.methods import MethodLike, MonteCarlo
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Exponential
from rankernel.kernels.exponential import Mallows as MallowsKernel
from rankernel.kernels.kendall import Kendall as KendallKernel
from rankernel.learn._training_plans import Block, GramBlocks
from rankernel.rankings import Rankings

try:
    import GPy
    from paramz.transformations import Logexp, Logistic
except ModuleNotFoundError as error:
    if error.name not in ("GPy", "paramz"):
        raise
    raise missing_extra("GPy", "gpy") from None


FULL = "full"
COUPLINGS = {"monte_carlo": "iid", "antithetic": "antithetic"}


class RankingKern(GPy.kern.Kern):  # type: ignore[misc]
    r"""A kernel on rankings, averaged over their completions, times a variance.

    :math:`\sigma^2 \frac{1}{|R||R'|} \sum_{\sigma \in R} \sum_{\sigma' \in R'} k(\sigma, \sigma')`. The variance and
    the parameters of the kernel are parameters of the model, positive or within their limits; it is fitted by their
    exact derivatives.

    Parameters
    ----------
    input_dim : int
        Number of items.
    kernel : Kernel
        The kernel k on full rankings.
    variance : float
        What the kernel is multiplied by.
    method : str or method object
        How to average over completions: "full" (there are no partial rankings), "exact", the estimators of the paper
        "monte_carlo" and "antithetic", "auto", or what :meth:`Kernel.gram` takes.
    n_draws, rng : int
        Completions drawn for each ranking, and the seed, for "monte_carlo" and "antithetic".
    data : Rankings or array of ranks, optional
        Training data: settles the width "median" and the method "auto".
    active_dims : list of int, optional
        The columns of the data that hold the ranks.
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
        kernel: Kernel,
        variance: float = 1.0,
        method: str | MethodLike = "auto",
        n_draws: int = 64,
        rng: int = 0,
        data: Any = None,
        active_dims: Any = None,
        name: str = "ranking",
    ) -> None:
        columns = (
            None if active_dims is None else check_columns(active_dims, checks.check_integer("input_dim", input_dim))
        )
        super().__init__(checks.check_integer("input_dim", input_dim), columns, checks.check_text("name", name))
        self.only_full = isinstance(method, str) and method == FULL
        self.blocks = GramBlocks(kernel, named_method(method, n_draws, rng), data)
        self.kernel = self.blocks.kernel
        self.variance = GPy.Param("variance", checks.check_number("variance", variance, 0, above=True), Logexp())
        self.link_parameter(self.variance)
        limits = self.kernel.limits
        for parameter, value in self.kernel.params.items():
            low, high = limits[parameter]
            inside = Logistic(low, high) if math.isfinite(high) else Logexp()
            setattr(self, parameter, GPy.Param(parameter, value, inside))
            self.link_parameter(getattr(self, parameter))

    # ------------------------------------------------------------------ values

    def K(self, X: Any, X2: Any = None) -> FloatArray:  # noqa: N802
        """Return the Gram matrix."""
        return np.asarray(self.variance.item() * self._block(X, X2)[0])

    def Kdiag(self, X: Any) -> FloatArray:  # noqa: N802
        """Return the diagonal of the Gram matrix; it is below the variance for partial rankings."""
        return np.asarray(self.variance.item() * self._diagonal(X)[0])

    def draws(self, X: Any) -> RankArray:
        """Return the completions that are drawn of each ranking, as one tensor: shape (n_rankings, n_draws, n_items).

        The Gram matrix is the mean of the kernel over all pairs of them (with ``moments=0``, as in the paper).

        Parameters
        ----------
        X : array
            The rankings.
        """
        rankings = self._rankings(X)
        method = self.blocks.new_rows(self._current(), rankings).estimator
        if method is None:
            raise ValueError("nothing is drawn: values are exact; use method='monte_carlo' or 'antithetic'")
        drawn = draw(
            rankings,
            method.n_draws,
            coupling=method.coupling,
            completions=method.completions,
            rng=method.rng,
            kernel=self.kernel,
        )
        return drawn.ranks.astype(np.int32)

    # ------------------------------------------------------------------ derivatives

    def update_gradients_full(self, dL_dK: Any, X: Any, X2: Any = None) -> None:
        """Set the derivative of the objective in each parameter, from that in the Gram matrix."""
        self._update(dL_dK, self._block(X, X2, gradient=True))

    def update_gradients_diag(self, dL_dKdiag: Any, X: Any) -> None:
        """Set the derivative of the objective in each parameter, from that in the diagonal."""
        self._update(dL_dKdiag, self._diagonal(X, gradient=True))

    def _update(self, outer: Any, block: Block) -> None:
        value, slopes = block
        self.variance.gradient = np.sum(outer * value)
        for parameter, slope in slopes.items():
            getattr(self, parameter).gradient = self.variance.item() * np.sum(outer * slope)

    # ------------------------------------------------------------------ steps

    def _block(self, X: Any, X2: Any, gradient: bool = False) -> Block:
        others = None if X2 is None or X2 is X else self._rankings(X2)
        return self.blocks.gram(self._current(), self._rankings(X), others, gradient)

    def _diagonal(self, X: Any, gradient: bool = False) -> Block:
        return self.blocks.diagonal(self._current(), self._rankings(X), gradient)

    def _current(self) -> Kernel:
        return self.kernel.replace(**{name: getattr(self, name).item() for name in self.kernel.params})

    def _rankings(self, X: Any) -> Data:
        rankings = as_data(checks.check_array("X", X, "an array of ranks, one row a ranking"))
        if self.only_full and not (isinstance(rankings, Rankings) and rankings.is_full()):
            row = int(np.argmax(rankings.n_buckets < rankings.n_items)) if isinstance(rankings, Rankings) else 0
            raise RankingError(
                f"row {row} is not a full ranking, and method='full' averages over nothing; use method='exact', "
                "'monte_carlo' or 'antithetic'"
            )
        return rankings


def check_columns(active_dims: Any, n_items: int) -> list[int]:
    """Return the columns of the data that hold the ranks."""
    wanted = f"a list of {n_items} columns, one for each item"
    columns = checks.check_list("active_dims", active_dims, wanted)
    if len(columns) != n_items:
        raise ValueError(f"active_dims={checks.short_repr(active_dims)} is not possible; it must be {wanted}")
    return [checks.check_integer("active_dims", column, least=0) for column in columns]


def named_method(method: str | MethodLike, n_draws: int, seed: int) -> MethodLike:
    """Return the method that a name of this module stands for."""
    if isinstance(method, str) and method == FULL:
        return "exact"
    if isinstance(method, str) and method in COUPLINGS:
        return MonteCarlo(n_draws, coupling=COUPLINGS[method], control_variates=0, rng=seed)
    return method  # type: ignore[return-value]


class Mallows(RankingKern):
    r"""Mallows kernel :math:`\sigma^2 \exp(-\nu n_d)`, n_d the number of discordant pairs: see :class:`RankingKern`.

    ``nu="median"`` is one over the median distance within ``data``.

    Examples
    --------
    >>> Mallows(3, nu=0.5).K(np.array([[0.0, 1.0, 2.0]]), np.array([[1.0, 0.0, 2.0]]))
    array([[0.60653066]])
    """

    def __init__(
        self, input_dim: int, nu: float | str = "median", variance: float = 1.0, name: str = "mallows", **options: Any
    ) -> None:
        super().__init__(input_dim, MallowsKernel(nu), variance, name=name, **options)


class Gaussian(RankingKern):
    r"""Gaussian kernel on ranks :math:`\sigma^2 \exp(-\nu \sum_a (\sigma_a - \sigma'_a)^2)`: see :class:`RankingKern`.

    Examples
    --------
    >>> Gaussian(3, nu=0.5).K(np.array([[0.0, 1.0, 2.0]]), np.array([[1.0, 0.0, 2.0]]))
    array([[0.36787944]])
    """

    def __init__(
        self, input_dim: int, nu: float | str = "median", variance: float = 1.0, name: str = "gaussian", **options: Any
    ) -> None:
        super().__init__(input_dim, Exponential("spearman", nu), variance, name=name, **options)


class Kendall(RankingKern):
    r"""Kendall kernel :math:`\sigma^2 (n_c - n_d) / \binom{n}{2}`, concordant less discordant pairs.

    Examples
    --------
    >>> Kendall(3).K(np.array([[0.0, 1.0, 2.0]]), np.array([[1.0, 0.0, 2.0]]))
    array([[0.33333333]])
    """

    def __init__(self, input_dim: int, variance: float = 1.0, name: str = "kendall", **options: Any) -> None:
        super().__init__(input_dim, KendallKernel(), variance, name=name, **options)
