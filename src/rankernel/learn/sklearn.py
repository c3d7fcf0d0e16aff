"""Kernels on rankings as kernels of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from rankernel._utils import FloatArray
from rankernel._utils.resources import check_memory
from rankernel.data import as_data
from rankernel.gram.estimate import gradient_of
from rankernel.gram.plan import MethodLike, Plan, as_method
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.learn.plan_cache import PlanCache, require_numeric
from rankernel.rankings import Unlisted

Bounds = tuple[float, float] | str

ADVICE = "kernel.resolve(X_train)"
DEFAULT_BOUNDS: tuple[float, float] = (1e-5, 1e5)  # those of scikit-learn's kernels


class SklearnKernel(GaussianProcessKernel):  # type: ignore[misc]
    """A kernel on rankings as a kernel of scikit-learn: for Gaussian processes, SVC, KernelRidge and KernelPCA.

    Rows are rankings: integer ranks of the items (floats are accepted), smaller is better, equal is tied, -1 is free;
    or preferences, which scikit-learn passes on as the array of their relations. The parameters of the kernel are
    parameters of this object, so ``GridSearchCV`` selects ``kernel__nu``, and Gaussian processes maximize the marginal
    likelihood over their logarithms with exact gradients.

    Parameters
    ----------
    kernel : Kernel or str
        The kernel, with numeric parameters; ``kernel.resolve(X_train)`` applies the median heuristic.
    method : as in :meth:`Kernel.gram`
        How to average over completions. "auto" is resolved by the training rankings, which are the columns of every
        block that an estimator evaluates.
    parameter_bounds : pair, "fixed", or a dictionary of them by parameter
        The bounds of the parameters in a Gaussian process, within those of the kernel.
    unlisted
        As for :class:`KernelKMeans`.

    Examples
    --------
    >>> from rankernel import Mallows
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> X = np.array([[0, 1, 2], [0, 2, 1], [2, 1, 0], [2, 0, 1]])
    >>> svc = SVC(kernel=SklearnKernel(Mallows(0.1)))
    >>> svc.fit(X, [0, 0, 1, 1]).predict([[1, 0, 2]])
    array([0])
    >>> search = GridSearchCV(svc, {"kernel__nu": [0.1, 1.0]}, cv=2).fit(X, [0, 0, 1, 1])
    >>> search.best_estimator_.kernel
    SklearnKernel(Mallows(nu=0.1))
    >>> kernel = SklearnKernel(2.0 * Mallows(0.5), parameter_bounds={"scale": "fixed"})
    >>> np.exp(kernel.theta)
    array([0.5])
    """

    def __init__(
        self,
        kernel: Kernel | str,
        *,
        method: MethodLike = "auto",
        parameter_bounds: Bounds | Mapping[str, Bounds] = DEFAULT_BOUNDS,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.kernel = as_kernel(kernel)
        self.method = method
        self.parameter_bounds = parameter_bounds
        self.unlisted = unlisted
        self._cache = PlanCache()

    # ------------------------------------------------------------------ values

    @np.errstate(under="ignore")
    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the Gram matrix and, if ``eval_gradient``, its derivatives in the logarithms of the free parameters.

        Parameters
        ----------
        X, Y : array of ranks
            Rows and columns; ``Y`` is ``X`` by default.
        eval_gradient : bool
            Whether to return ``(K, dK)``, with dK of shape (n_rankings, n_rankings, n_dims).
        """
        if eval_gradient and Y is not None:
            raise ValueError("Y must be None if eval_gradient=True")
        plan = self._plan(X, Y)
        if not eval_gradient:
            return plan.gram()
        params = self.kernel.params
        check_memory(plan.shape, np.float64, 1 + 2 * len(params), "a kernel with its derivatives")
        value, gradients = plan.gram(), gradient_of(plan)
        for name, gradient in gradients.items():
            gradient *= params[name]
        free = [gradients[each.name] for each in self.hyperparameters if not each.fixed]
        return value, np.stack(free, axis=2) if free else np.empty((*value.shape, 0))

    def diag(self, X: Any) -> FloatArray:
        """Return the diagonal of the Gram matrix; for partial rankings it is smaller than for full rankings.

        Exact for every row that has an exact value, unless ``method`` is Monte Carlo.
        """
        data = as_data(X, self.unlisted)
        return self._plan(data[:0], None).against(data).diagonal()

    def is_stationary(self) -> bool:
        """Return False: the diagonal is not constant on partial rankings."""
        return False

    def _plan(self, X: Any, Y: Any) -> Plan:
        """Return the plan of a block whose columns are the training data."""
        as_method(self.method)
        kernel, rows = require_numeric(self.kernel, ADVICE), as_data(X, self.unlisted)
        train = rows if Y is None or Y is X else as_data(Y, self.unlisted, "Y")
        base = self._cache.plan((train,), kernel, lambda: kernel.plan(train, method=self.method))
        return base if train is rows else self._cache.plan((rows, train), kernel, lambda: base.against(rows))

    # ------------------------------------------------------------------ parameters

    def __sklearn_clone__(self) -> SklearnKernel:
        """Return a copy that shares the cached plans: estimators clone a kernel for each value of a parameter."""
        cloned = copy(self)
        cloned.parameter_bounds = copy(self.parameter_bounds)
        return cloned

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor; if ``deep``, including the parameters of the kernel."""
        own = {name: getattr(self, name) for name in ("kernel", "method", "parameter_bounds", "unlisted")}
        return own | self.kernel.params if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor or parameters of the kernel."""
        for name in ("kernel", "method", "parameter_bounds", "unlisted"):
            value = params.pop(name, getattr(self, name))
            if value != getattr(self, name):
                setattr(self, name, value)
                self._cache = PlanCache()
        if params:
            values = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
            self.kernel = self.kernel.replace(**values)
        return self

    @property
    def hyperparameters(self) -> list[Any]:
        """The parameters of the kernel as specifications of scikit-learn, in the order of ``kernel.params``."""
        params, bounds = require_numeric(self.kernel, ADVICE).params, self.parameter_bounds
        by_name = bounds if isinstance(bounds, Mapping) else dict.fromkeys(params, bounds)
        unknown = sorted(by_name.keys() - params.keys())
        if unknown:
            known = ", ".join(params) or "none"
            raise ValueError(f"parameter_bounds has {unknown[0]!r}, but {self.kernel} has the parameters: {known}")
        specifications = []
        for name, (low, high) in self.kernel.bounds.items():
            given = by_name.get(name, DEFAULT_BOUNDS)
            within = given if isinstance(given, str) else (max(given[0], low), min(given[1], high))
            specifications.append(Hyperparameter(name, "numeric", within))
        return specifications

    def __repr__(self) -> str:
        method = "" if self.method == "auto" else f", method={self.method!r}"
        return f"SklearnKernel({self.kernel}{method})"
