"""One kernel object for all of scikit-learn, and exact features for its linear models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Hyperparameter
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.choose import choose
from rankernel.gram.compute import computed, gradients
from rankernel.gram.estimate import diagonal
from rankernel.gram.exact import linear_evaluator
from rankernel.gram.mean_features import FeatureEvaluator
from rankernel.gram.methods import Exact, MethodLike
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.problem import pose
from rankernel.kernels.base import MEDIAN, Constant, Kernel, Scaled, Sum
from rankernel.rankings import Rankings, as_rankings
from rankernel.tasks.ranking_transformer import KernelTransformer
from rankernel.tasks.streaming import settled_method

__all__ = ["MeanFeatures", "SklearnKernel"]

FloatArray = NDArray[np.float64]
Bounds = tuple[float, float] | str

WIDEST: tuple[float, float] = (1e-5, 1e5)
CLOSED_FORM = Exact(limit=0)  # nothing is enumerated


class SklearnKernel(GaussianProcessKernel):  # type: ignore[misc]
    """A kernel on rankings as scikit-learn wants it: for Gaussian processes, SVC, KernelRidge, KernelPCA.

    Rows are rankings: ranks of the items as whole numbers (floats are fine), smaller is better, equal is tied, -1 is
    free. The parameters of the kernel are parameters of this object, by the names of ``kernel.params``: grids go over
    ``kernel__nu``, and Gaussian processes fit their logarithms by the exact derivative.

    Parameters
    ----------
    kernel : Kernel
        The kernel. Its width must be a number, because training and test data are seen apart: take
        :meth:`from_data` for the median heuristic.
    method : as in :meth:`Kernel.gram`
        How to average over completions. "auto" is the closed form where all pairs of a block have one, else Monte
        Carlo; which moments it corrects depends on the number of items alone, and the draws of a ranking on the seed
        and the ranking, so that blocks of training and test data fit together. Where some blocks have a closed form
        and others do not (training data without, test data with free items), give a MonteCarlo, or use
        :meth:`from_data`, which settles it by the training data.
    limits : pair, "fixed", or a dictionary of them by parameter
        Between which values a Gaussian process looks for a parameter; "fixed" leaves it as it is.

    Examples
    --------
    >>> from rankernel import Mallows
    >>> from sklearn.svm import SVC
    >>> X = np.array([[0, 1, 2], [0, 2, 1], [2, 1, 0], [2, 0, 1]])
    >>> SVC(kernel=SklearnKernel(Mallows(0.1))).fit(X, [0, 0, 1, 1]).predict([[1, 0, 2]])
    array([0])
    >>> kernel = SklearnKernel(2.0 * Mallows(0.5), limits={"scale": "fixed"})
    >>> np.exp(kernel.theta)
    array([0.5])
    """

    def __init__(
        self, kernel: Kernel, method: MethodLike = "auto", limits: Bounds | Mapping[str, Bounds] = WIDEST
    ) -> None:
        self.kernel = kernel
        self.method = method
        self.limits = limits

    @classmethod
    def from_data(
        cls, kernel: Kernel, X: Any, method: MethodLike = "auto", limits: Bounds | Mapping[str, Bounds] = WIDEST
    ) -> SklearnKernel:
        """Return the kernel with what is left open settled by the training data: width "median", method "auto"."""
        rankings = as_rankings(X)
        resolved = kernel.resolve(rankings)
        return cls(resolved, settled_method(resolved, rankings, rankings, method), limits)

    # ------------------------------------------------------------------ values

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the Gram matrix and, if asked for, its derivative in each free parameter's logarithm.

        Parameters
        ----------
        X, Y : array of ranks
            Rows and columns; ``Y`` is ``X`` if left out.
        eval_gradient : bool
            Whether to return ``(K, dK)``, with dK of shape (n_rankings, n_rankings, n_dims).
        """
        if eval_gradient and Y is not None:
            raise ValueError("the gradient can be evaluated only where Y is None")
        return self._by_method(X, lambda method: self._evaluated(X, Y, method, eval_gradient))

    def _evaluated(self, X: Any, Y: Any, method: MethodLike, eval_gradient: bool) -> Any:
        problem = pose(self._numeric(), X, Y, method)
        _, evaluator = choose(problem.kernel, problem.X, problem.Y, method)
        value = computed(problem, evaluator, None, np.float64, None)
        if not eval_gradient:
            return value
        slopes = gradients(problem, evaluator, None)
        params = self.kernel.params
        free = [slopes[one.name] * params[one.name] for one in self.hyperparameters if not one.fixed]
        return value, np.stack(free, axis=2) if free else np.empty((*value.shape, 0))

    def diag(self, X: Any) -> FloatArray:
        """Return the diagonal of the Gram matrix; it is below the kernel's own for partial rankings."""
        values: FloatArray = self._by_method(X, lambda method: diagonal(self._numeric(), X, method))
        return values

    def is_stationary(self) -> bool:
        """Return False: the diagonal is not constant on partial rankings."""
        return False

    def _by_method(self, X: Any, run: Callable[[MethodLike], Any]) -> Any:
        """Return what comes out with a method that does not depend on how many rankings there are."""
        n_items = as_rankings(X).n_items
        if isinstance(self.method, MonteCarlo):
            return run(self._drawn(self.method, n_items))
        if self.method != "auto":
            return run(self.method)
        try:
            return run(CLOSED_FORM)
        except ExactnessError:
            return run(self._drawn(MonteCarlo(), n_items))

    def _drawn(self, method: MonteCarlo, n_items: int) -> MonteCarlo:
        one = Rankings(np.zeros((1, n_items), dtype=np.int32))
        if method.distinct_rows:
            raise ValueError(
                "training and test data are seen apart, so draws cannot depend on the row; "
                "use MonteCarlo(distinct_rows=False)"
            )
        return method.settled(self._numeric(), one, one)

    def _numeric(self) -> Kernel:
        if MEDIAN in self.kernel.params.values():
            raise ValueError(
                f"the width of {self.kernel} depends on the data, and scikit-learn shows a kernel training and test "
                "data apart; use SklearnKernel.from_data(kernel, X_train)"
            )
        return self.kernel

    # ------------------------------------------------------------------ parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor; if ``deep``, the parameters of the kernel, too."""
        own = {"kernel": self.kernel, "method": self.method, "limits": self.limits}
        return own | self.kernel.params if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor or parameters of the kernel."""
        for name in ("kernel", "method", "limits"):
            if name in params:
                setattr(self, name, params.pop(name))
        if params:
            self.kernel = self.kernel.replace(**{name: plain(value) for name, value in params.items()})
        return self

    @property
    def hyperparameters(self) -> list[Any]:
        """The parameters of the kernel as scikit-learn specifies them, in the order of ``kernel.params``."""
        params = self._numeric().params
        limits = self.limits if isinstance(self.limits, Mapping) else dict.fromkeys(params, self.limits)
        unknown = sorted(limits.keys() - params.keys())
        if unknown:
            known = ", ".join(params) or "none"
            raise ValueError(f"limits name {unknown[0]!r}, but {self.kernel} has the parameters: {known}")
        return [Hyperparameter(name, "numeric", limits.get(name, WIDEST)) for name in params]

    def __repr__(self) -> str:
        method = "" if self.method == "auto" else f", {self.method!r}"
        return f"SklearnKernel({self.kernel}{method})"


def plain(value: Any) -> Any:
    """Return a NumPy number as a Python one, so that kernels print well."""
    return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------------- features


class MeanFeatures(KernelTransformer):
    """Exact features of kernels that are inner products: the mean of the features over the completions.

    For Kendall, Spearman, Hamming, :class:`DistanceInduced` (by any of these distances or footrule), polynomial kernels
    of degree 1 and 2, and sums and multiples of them. Inner products of the features are the marginalised kernel, for
    any partial rankings, so linear models on them are kernel methods at linear cost.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

    Examples
    --------
    Over two items the Kendall kernel has one coordinate, the order of the pair, which a tie leaves at 0:

    >>> from rankernel import Kendall
    >>> MeanFeatures(Kendall()).fit_transform([[0, 1], [1, 0], [0, 0]])
    array([[ 1.],
           [-1.],
           [ 0.]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of items.

        Parameters
        ----------
        X : Rankings or array of ranks
            The training data.
        y : ignored
            For pipelines.
        """
        rankings = self._learn_items(X)
        if rankings.n_items < 2:
            raise RankingError("the data has 1 feature(s): rankings of one item are all alike; give at least two items")
        self._n_features_out = mean_features(self.kernel, rankings[:1]).shape[1]
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the mean features of rankings: shape (n_rankings, n_features)."""
        return mean_features(self.kernel, self._same_items(X))


def mean_features(kernel: Kernel, X: Rankings) -> FloatArray:
    """Return vectors whose inner products are the marginalised kernel, for kernels that have them."""
    match kernel:
        case Constant(value):
            return np.full((len(X), 1), np.sqrt(value))
        case Sum(left, right):
            return np.hstack([mean_features(left, X), mean_features(right, X)])
        case Scaled(scale, inner):
            return np.asarray(np.sqrt(scale) * mean_features(inner, X))
    one = Rankings(np.zeros((1, X.n_items), dtype=np.int32))
    found = linear_evaluator(kernel, one, one, exhaustive=False)
    if not isinstance(found, FeatureEvaluator):
        raise ValueError(f"{kernel} is not an inner product of features that have a known mean; use NystromFeatures")
    return found.features(X)
