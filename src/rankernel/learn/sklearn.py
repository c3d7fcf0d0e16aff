"""One kernel object for all of scikit-learn, and exact features for its linear models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_flag, check_integer
from rankernel._utils.memory import check_memory
from rankernel.data import as_data
from rankernel.encoding import Unlisted
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.gram.estimate import slopes
from rankernel.gram.exact.features import mean_features
from rankernel.gram.methods import MethodLike, MonteCarlo, as_method
from rankernel.gram.plan import Plan
from rankernel.gram.poset_rows import PartialOrders, Rows, as_rows
from rankernel.kernels import as_kernel
from rankernel.kernels.algebra import terms
from rankernel.kernels.base import MEDIAN, Kernel
from rankernel.learn._training_plans import RecentPlans, training_plan
from rankernel.learn.place_features import PlaceFeatures, deepest_place
from rankernel.learn.transformers import KernelTransformer
from rankernel.rankings import Rankings

Bounds = tuple[float, float] | str

WIDEST: tuple[float, float] = (1e-5, 1e5)
KEPT_FORMS = 4
CHUNK = 2**24  # cells of rankings at once: what is made on the way stays small


class SklearnKernel(GaussianProcessKernel):  # type: ignore[misc]
    """A kernel on rankings as scikit-learn wants it: for Gaussian processes, SVC, KernelRidge, KernelPCA.

    Rows are rankings: ranks of the items as whole numbers (floats are fine), smaller is better, equal is tied, -1 is
    free; or preferences, which pass through scikit-learn as the array of their relations. The parameters of the kernel
    are parameters of this object, by the names of ``kernel.params``: grids go over ``kernel__nu``, and Gaussian
    processes fit their logarithms by the exact derivative.

    Parameters
    ----------
    kernel : Kernel
        The kernel. Its width must be a number, because training and test data are seen apart: take
        :meth:`from_data` for the median heuristic.
    method : as in :meth:`Kernel.gram`
        How to average over completions. What "auto" means is decided by the training rankings, which are the columns
        of every block that an estimator asks for, so that all blocks fit together, whatever their size.
    limits : pair, "fixed", or a dictionary of them by parameter
        Between which values a Gaussian process looks for a parameter; "fixed" leaves it as it is.
    unlisted : {"last", "free"}, optional
        What NaN or None in a plain array or frame means: the item is last, or free. Refused if left out.

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
        self,
        kernel: Kernel,
        method: MethodLike = "auto",
        limits: Bounds | Mapping[str, Bounds] = WIDEST,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.kernel = as_kernel(kernel)
        self.method = method
        self.limits = limits
        self.unlisted = unlisted

    @classmethod
    def from_data(
        cls,
        kernel: Kernel,
        X: Any,
        method: MethodLike = "auto",
        limits: Bounds | Mapping[str, Bounds] = WIDEST,
        unlisted: Unlisted | None = None,
    ) -> SklearnKernel:
        """Return the kernel with all that is open taken from the training data: its width, and whether to estimate."""
        plan = as_kernel(kernel).plan(as_data(X, unlisted), method=method)
        return cls(plan.kernel, plan.method if isinstance(plan.method, MonteCarlo) else method, limits, unlisted)

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
        plan = self._plan(X, Y)
        if not eval_gradient:
            return plan.gram()
        params = self.kernel.params
        check_memory(plan.shape, np.float64, 1 + 2 * len(params), "a kernel with its derivatives")
        value, found = plan.gram(), slopes(plan, None)
        free = [found[one.name] for one in self.hyperparameters if not one.fixed]
        for name, slope in found.items():
            slope *= params[name]
        return value, np.stack(free, axis=2) if free else np.empty((*value.shape, 0))

    def diag(self, X: Any) -> FloatArray:
        """Return the diagonal of the Gram matrix; it is below the kernel's own for partial rankings.

        Exact for every row that has an exact value, however many rows there are, unless ``method`` says otherwise.
        """
        data = as_data(X, self.unlisted)
        return self._plan(data[:0], None).against(data).diagonal()

    def is_stationary(self) -> bool:
        """Return False: the diagonal is not constant on partial rankings."""
        return False

    def _plan(self, X: Any, Y: Any) -> Plan:
        if isinstance(self.method, MonteCarlo) and self.method.distinct_rows:
            raise ValueError(
                "training and test data are seen apart, so draws cannot depend on the row; "
                "use MonteCarlo(distinct_rows=False)"
            )
        others = None if Y is None or Y is X else as_data(Y, self.unlisted, "Y")
        as_method(self.method)
        return training_plan(self._numeric(), as_data(X, self.unlisted), others, self.method, recent_plans(self))

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
        own = {"kernel": self.kernel, "method": self.method, "limits": self.limits, "unlisted": self.unlisted}
        return own | self.kernel.params if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor or parameters of the kernel."""
        for name in ("kernel", "method", "limits", "unlisted"):
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
        within = {name: within_limits(limits.get(name, WIDEST), *of) for name, of in self.kernel.bounds.items()}
        return [Hyperparameter(name, "numeric", bounds) for name, bounds in within.items()]

    def __repr__(self) -> str:
        method = "" if self.method == "auto" else f", {self.method!r}"
        return f"SklearnKernel({self.kernel}{method})"


def within_limits(bounds: Bounds, low: float, high: float) -> Bounds:
    """Return bounds as far as the parameter of a kernel can go; "fixed" stays as it is."""
    return bounds if isinstance(bounds, str) else (max(bounds[0], low), min(bounds[1], high))


RECENT: dict[Any, RecentPlans] = {}


def recent_plans(kernel: SklearnKernel) -> RecentPlans:
    """Return the plans that kernels of one form share: scikit-learn copies a kernel for each value of a parameter."""
    form = kernel.kernel.replace(**dict.fromkeys(kernel.kernel.params, 1.0)), kernel.method
    if form not in RECENT:
        if len(RECENT) >= KEPT_FORMS:
            RECENT.clear()
        RECENT[form] = RecentPlans()
    return RECENT[form]


def plain(value: Any) -> Any:
    """Return a NumPy number as a Python one, so that kernels print well."""
    return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------------- features


class MeanFeatures(KernelTransformer):
    """Exact features of kernels that are inner products: the mean of the features over the completions.

    For Kendall, Spearman, Hamming, all positional kernels (rank-biased and average overlap among them),
    :class:`DistanceInduced` (by Kendall, Spearman, Hamming or footrule), polynomial kernels of degree 1 and 2, and sums
    and multiples of them. Inner products of the features are the marginalised kernel, for any partial rankings, so
    linear models on them are kernel methods at linear cost.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    sparse_output : bool
        Whether to return a sparse array: for positional kernels and short lists of many items, which have few numbers
        that are not 0 if all lists are of the same length.
    depth : int, optional
        How many places positional kernels tell apart; longer lists are refused. If left out, as many as the training
        rankings do where the output is sparse, else all. Lists of k items have k + 1 features for each item.
    unlisted : {"last", "free"}, optional
        What NaN or None in a plain array or frame means: the item is last, or free. Refused if left out.

    Examples
    --------
    Over two items the Kendall kernel has one coordinate, the order of the pair, which a tie leaves at 0:

    >>> from rankernel import Kendall, RankBiasedOverlap
    >>> MeanFeatures(Kendall()).fit_transform([[0, 1], [1, 0], [0, 0]])
    array([[ 1.],
           [-1.],
           [ 0.]])

    Lists of the best two of a thousand:

    >>> ranks = np.full((3, 1000), 2)
    >>> ranks[[0, 1, 2], [7, 7, 8]], ranks[[0, 1, 2], [8, 9, 7]] = 0, 1
    >>> Z = MeanFeatures(RankBiasedOverlap(0.9), sparse_output=True).fit_transform(ranks)
    >>> Z.shape, Z.nnz, bool(np.allclose((Z @ Z.T).toarray(), RankBiasedOverlap(0.9).gram(ranks)))
    ((3, 3001), 18, True)
    """

    def __init__(
        self,
        kernel: Kernel,
        sparse_output: bool = False,
        depth: int | None = None,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.kernel = kernel
        self.sparse_output = sparse_output
        self.depth = depth
        self.unlisted = unlisted

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of items, and how many places they tell apart."""
        rankings = self._learn_items(X)
        n_items = rankings.n_items
        if n_items < 2:
            raise RankingError("the data has 1 feature(s): rankings of one item are all alike; give at least two items")
        check_flag("sparse_output", self.sparse_output)
        if self.depth is not None:
            self.depth_ = min(check_integer("depth", self.depth, 0), n_items - 1)
        else:
            self.depth_ = deepest_place(as_rows(rankings)) if self.sparse_output else n_items - 1
        self._n_features_out = self.transform(rankings[:1]).shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Return the mean features of rankings, sparse if so wanted: shape (n_rankings, n_features)."""
        rows, found = as_rows(self._same_items(X)), terms(as_kernel(self.kernel))
        if not self.sparse_output:
            return np.hstack([np.sqrt(term.weight) * self._dense(term.kernel, rows) for term in found])
        from scipy.sparse import hstack, vstack

        if isinstance(rows, PartialOrders):
            raise RankingError("partial orders have no sparse features: every item has a law of its own")
        parts = [(np.sqrt(term.weight), self._place_features(term.kernel, rows.n_items)) for term in found]
        side = max(CHUNK // rows.n_items, 1)
        blocks = [
            hstack([scale * features.sparse(rows[some]) for scale, features in parts], format="csr")
            for some in slices(len(rows), side)
        ]
        return blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")

    def _place_features(self, kernel: Kernel, n_items: int) -> PlaceFeatures:
        positions = kernel.facts(n_items).positions
        if positions is None:
            raise ValueError(f"{kernel} has no sparse features: it does not add up over items; use sparse_output=False")
        return PlaceFeatures.of(kernel, positions, self.depth_)

    def _dense(self, kernel: Kernel, X: Rows) -> FloatArray:
        """Return vectors whose inner products are the marginalised kernel, for kernels that have them."""
        facts = kernel.facts(X.n_items)
        if facts.max_dimension == 1 and facts.function is not None:  # a constant
            return np.full((len(X), 1), np.sqrt(float(facts.function.value(np.zeros(1))[0])))
        if facts.positions is not None and self.depth_ < X.n_items - 1:
            return self._place_features(kernel, X.n_items).dense(X)
        found = mean_features(kernel, X.n_items, isinstance(X, Rankings))
        if found is None:
            raise ValueError(
                f"{self.kernel} is not an inner product of features that have a known mean; use NystromFeatures"
            )
        features, constant = found
        values = features(X)
        return np.hstack([values, np.full((len(X), 1), np.sqrt(constant))]) if constant else values
