"""Label ranking: kernel ridge regression of the mean embeddings of rankings, and decoding to full rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from rankernel._utils import FloatArray, Indices, Mask
from rankernel._utils.checks import (
    check_choice,
    check_instance,
    check_integer,
    check_number,
    check_unmasked,
    is_number,
    short_repr,
)
from rankernel._utils.resources import check_task
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data
from rankernel.distances import STATISTICS, Statistic, uniform_mean
from rankernel.errors import RankingError
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.methods import MethodLike
from rankernel.gram.rows import as_rows
from rankernel.kernels import KERNELS_BY_NAME, as_kernel
from rankernel.kernels.base import Kernel
from rankernel.learn.estimators import KernelParameters, check_table, error_prefix, has_names
from rankernel.models.consensus import LIMIT, MAX_EXACT_ITEMS, Decoded, Decoder
from rankernel.rankings import Rankings, Unlisted

ENTRIES = 2**24  # predicted at once, so that temporary arrays stay small
SKLEARN_KERNELS = (*PAIRWISE_KERNEL_FUNCTIONS, "precomputed")


class KernelRankingRegressor(KernelParameters, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Label ranking by kernel ridge regression: predict rankings from covariates or from other rankings.

    Every training label, full or partial, is represented by its mean embedding :math:`\phi(R)` under the output kernel.
    Ridge regression in that space (Korba, Garcia and d'Alché-Buc 2018) gives :math:`g(x) = \bar\phi + \sum_j
    \alpha_j(x) (\phi(R_j) - \bar\phi)` with :math:`\alpha(x) = (K + \alpha I)^{-1} k(x)`, and the prediction is the
    full ranking nearest to g(x). The search is exact except for long cycles of pairwise majorities; ties are broken by
    mean rank.

    Labels that leave the order of two items open carry little information about it. With :class:`Kendall` each pair of
    items is therefore also learnt from the labels that order it; see ``prior``.

    Parameters
    ----------
    alpha : float
        The ridge penalty, as in ``KernelRidge``.
    kernel : str, callable or Kernel
        On the covariates: a kernel of scikit-learn by name, a callable on two rows, "precomputed", or a kernel on
        rankings (object or name) if the covariates are rankings; "polynomial" is scikit-learn's. With "linear" and
        fewer features than rows the cost is linear in the number of rows, for instance after ``Nystroem`` or
        :class:`NystromFeatures` in a pipeline.
    gamma, degree, coef0 : float
        Parameters of scikit-learn's kernels, as in ``KernelRidge``.
    kernel_params : dict, optional
        Further arguments of a callable kernel.
    output_kernel : Kernel or str
        On the labels: a multiple of :class:`Kendall` (decoded by a Kemeny search), :class:`Spearman` (sorting),
        :class:`Hamming` or another positional kernel (linear assignment), or a sum of positional kernels.
    method : as in :meth:`Kernel.gram`
        How to compute Gram matrices of rankings as covariates.
    prior : float
        With Kendall and partial labels: the weight, in rows, of the regression on mean embeddings. A pair of items that
        n labels order is predicted with weight n / (n + prior) by a ridge regression on these labels, with the same
        penalty for each row, and otherwise by the regression of all mean embeddings, in which unordered items are
        equally likely to come first. 0 uses only the labels that order a pair, if there are any; ``inf`` uses only mean
        embeddings, in one system of equations.
    limit : int
        With Kendall: the largest cycle of pairwise majorities, in items, that is solved exactly, at most 26. Longer
        cycles are solved by local search, with a bound on the gap: see :meth:`decode`.
    n_starts : int
        The number of local searches.
    random_state : int, Generator or None
        Seed of the local searches.
    unlisted : {"last", "free"}, optional
        Meaning of NaN or None in a plain array or data frame of rankings: the item is last, or free. By default an
        error.

    Attributes
    ----------
    items_ : tuple of str
        The items of the labels.
    n_features_in_ : int
        The number of covariates.
    mean_ : array
        The weighted mean of the flattened targets: pair signs, mean ranks or position probabilities of the labels.
    coef_ : array
        The coefficients, one row for each feature (linear kernel and fewer features than rows).
    dual_coef_ : array
        The coefficients, one row for each training row (otherwise).

    Notes
    -----
    Multiplicities of the labels (``y.counts``) are multiplied with ``sample_weight``. Partial labels are used as they
    are; no row and no item is dropped.

    Examples
    --------
    Young voters rank tea first, old voters coffee; most rank only their favourite:

    >>> age = np.array([[18], [22], [25], [60], [71], [80]])
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["tea"], ["tea"], ["coffee"], ["coffee"], ["coffee", "milk"]])
    >>> model = KernelRankingRegressor(0.1, kernel="rbf", gamma=0.01).fit(age, ballots)
    >>> model.predict([[20], [75]]).to_orders()
    [['tea', 'milk', 'coffee'], ['coffee', 'milk', 'tea']]
    >>> tea, milk = ballots.items.index("tea"), ballots.items.index("milk")
    >>> round(float(model.predict_scores([[30]])[0, tea, milk]), 2)  # probability of tea before milk
    0.87
    """

    _kernel_arguments: ClassVar = ("output_kernel", "kernel")

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: str | Callable[..., Any] | Kernel = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        output_kernel: Kernel | str = "kendall",
        method: MethodLike = "auto",
        prior: float = 30.0,
        limit: int = LIMIT,
        n_starts: int = 10,
        random_state: Seed = 0,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.output_kernel = output_kernel
        self.method = method
        self.prior = prior
        self.limit = limit
        self.n_starts = n_starts
        self.random_state = random_state
        self.unlisted = unlisted

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regression of rankings on covariates.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), sparse matrix, or rankings
            The covariates.
        y : Rankings, Preferences or array of ranks of shape (n_rows, n_items)
            The labels; -1 in an array is a free item.
        sample_weight : array of shape (n_rows,), optional
            The weight of each row.
        """
        self._check_parameters()
        covariates = self._check_covariates(X, reset=True)
        labels = self._check_labels(y, covariates)
        weights = self._check_weights(sample_weight, covariates, labels)
        self.items_, self._has_names = labels.items, has_names(y)
        seed = int(np.random.default_rng(as_seed(self.random_state, "random_state")).integers(2**32))
        self.decoder_ = Decoder(
            as_kernel(self.output_kernel, "output_kernel"), labels.n_items, self.limit, self.n_starts, seed
        )
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        self._primal = linear and covariates.shape[1] < covariates.shape[0]
        if (kernel := self._ranking_kernel) is not None:
            self.plan_ = kernel.plan(covariates, method=self.method)
        elif not self._primal:
            self.X_fit_ = covariates
        fit = self._fit_targets(self.decoder_.statistic, covariates, labels, weights)
        self.mean_, coefficients = fit
        name, other = ("coef_", "dual_coef_") if self._primal else ("dual_coef_", "coef_")
        setattr(self, name, coefficients)
        self.__dict__.pop(other, None)  # from an earlier fit
        on_pairs = self.decoder_.statistic == "pairs"
        self._pair_fit: RidgeFit | None = fit if on_pairs else None
        self._training = None if on_pairs else (covariates, labels, weights)
        return self

    def _check_parameters(self) -> None:
        """Raise if a parameter is not valid."""
        if isinstance(self.kernel, str):
            check_choice("kernel", self.kernel, tuple(dict.fromkeys((*SKLEARN_KERNELS, *KERNELS_BY_NAME))))
        elif not (isinstance(self.kernel, Kernel) or callable(self.kernel)):
            raise TypeError(f"kernel={short_repr(self.kernel)} must be a name, a callable or a kernel on rankings")
        check_number("alpha", self.alpha, 0)
        if self.gamma is not None:
            check_number("gamma", self.gamma, 0)
        check_number("degree", self.degree, 0)
        check_number("coef0", self.coef0)
        check_instance("kernel_params", self.kernel_params, dict | None, "a dict, or None")
        if not (is_number(self.prior) and self.prior == math.inf):
            check_number("prior", self.prior, 0)
        check_integer("limit", self.limit, 1, MAX_EXACT_ITEMS)
        check_integer("n_starts", self.n_starts)

    @property
    def _ranking_kernel(self) -> Kernel | None:
        """The kernel on rankings as covariates; None for numeric covariates."""
        if isinstance(self.kernel, str):
            return None if self.kernel in SKLEARN_KERNELS else KERNELS_BY_NAME.get(self.kernel)
        return self.kernel if isinstance(self.kernel, Kernel) else None

    def _fit_targets(self, statistic: Statistic, covariates: Any, labels: Data, weights: FloatArray) -> RidgeFit:
        """Return the regression of the mean pair signs, ranks or positions of the labels."""
        rows = as_rows(labels)
        targets = mean_statistics(rows, statistic).reshape(len(rows), -1)
        gram = None
        if not self._primal:
            numeric = self._ranking_kernel is None
            check_task("a label ranking", n_rows(self.X_fit_) if numeric else self.plan_.shape[0])
            gram = np.array(self._gram(self.X_fit_)) if numeric else self.plan_.gram()
        ridge = Ridge(covariates, gram, weights, float(self.alpha))
        if statistic != "pairs":
            return ridge.fit(targets, np.arange(len(targets)))
        return ridge.fit_known(targets, np.abs(targets) == 1, float(self.prior))

    def _gram(self, X: Any) -> FloatArray:
        """Return the kernel between covariates and the training covariates."""
        if self._ranking_kernel is not None:
            return self.plan_.against(X).gram()
        named = isinstance(self.kernel, str)
        params: dict[str, Any] = {"degree": self.degree, "coef0": self.coef0} if named else self.kernel_params or {}
        if named and self.gamma is not None:  # the default of gamma depends on the kernel
            params["gamma"] = float(self.gamma)
        gram = pairwise_kernels(X, self.X_fit_, metric=self.kernel, filter_params=named, **params)
        return np.asarray(gram, dtype=np.float64)

    # ------------------------------------------------------------------ predict

    def predict(self, X: Any) -> Rankings:
        """Return the predicted full rankings; ``np.asarray`` of them is the array of ranks."""
        return Rankings._trusted(self.decode(X).ranks, self.items_)

    def decode(self, X: Any) -> Decoded:
        """Return the ranks of the predicted rankings with bounds on their gap to the nearest ranking.

        ``gaps`` is 0 where the ranking is proven to be the nearest one.
        """
        check_is_fitted(self)
        fit = self.mean_, self.coef_ if self._primal else self.dual_coef_
        shape = uniform_mean(self.decoder_.statistic, len(self.items_)).shape[1:]
        parts = [self.decoder_.decode(block.reshape(-1, *shape)) for block in self._predict_targets(X, fit)]
        return Decoded(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("ranks", "values", "gaps"))
        )

    def predict_scores(self, X: Any) -> FloatArray:
        """Return the estimated probability that item a comes before item b: shape (n_rows, n_items, n_items).

        Whatever the output kernel, pairs of items are learnt as with :class:`Kendall`; estimates are clipped to [0, 1].
        The diagonal is 1/2.
        """
        check_is_fitted(self)
        if self._training is not None:  # fitted on first use: there are many more pairs than items
            self._pair_fit, self._training = self._fit_targets("pairs", *self._training), None
        assert self._pair_fit is not None
        n_items = len(self.items_)
        first, second = np.triu_indices(n_items, 1)
        signs = np.concatenate(list(self._predict_targets(X, self._pair_fit)))
        scores = np.full((len(signs), n_items, n_items), 0.5)
        scores[:, first, second] = np.clip((1 + signs) / 2, 0, 1)
        scores[:, second, first] = 1 - scores[:, first, second]
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean of Kendall's tau between predicted and given rankings.

        For a partial ranking tau is computed over the pairs that it orders (Goodman and Kruskal's gamma). Rows that
        order no pair are ignored.
        """
        check_is_fitted(self)
        covariates = self._check_covariates(X, reset=False)
        labels = self._match_labels(self._check_labels(y, covariates), has_names(y))
        weights = self._check_weights(sample_weight, covariates, labels)
        ordered = np.trunc(mean_statistics(as_rows(labels), "pairs"))  # -1 and 1 are certain
        signs = STATISTICS["pairs"](self.decode(X).ranks)
        n_ordered = np.abs(ordered).sum(axis=1)
        if labels.n_items == 1:
            return 1.0  # all rankings are equal
        if not (n_ordered > 0).any():
            raise RankingError("y: no label orders any two items, so the score is undefined")
        taus = (ordered * signs).sum(axis=1)[n_ordered > 0] / n_ordered[n_ordered > 0]
        return float(np.average(taus, weights=weights[n_ordered > 0]))

    def _predict_targets(self, X: Any, fit: RidgeFit) -> Iterator[FloatArray]:
        """Yield the predicted targets in blocks of rows."""
        covariates = self._check_covariates(X, reset=False)
        means, coefficients = fit
        step = max(ENTRIES // max(*coefficients.shape, 1), 1)
        for start in range(0, max(n_rows(covariates), 1), step):
            block = covariates[start : start + step]
            yield means + (block if self._primal else self._gram(block)) @ coefficients

    # ------------------------------------------------------------------ validation

    def _check_covariates(self, X: Any, reset: bool) -> Any:
        """Return validated covariates: numbers, or rankings if the kernel is one on rankings."""
        if self._ranking_kernel is None:
            check_unmasked("X", X)
            with error_prefix("X"):
                return validate_data(self, X, accept_sparse="csr", reset=reset)
        data = as_data(X, self.unlisted)
        validate_data(self, np.empty((len(data), data.n_items)), reset=reset, skip_check_array=True)
        return data

    def _check_labels(self, y: Any, covariates: Any) -> Data:
        """Return validated labels, one for each row."""
        if y is None:
            raise ValueError("this estimator requires y to be passed, but the target y is None; give rankings")
        if not has_names(y):
            y = check_table(y, self, "y")
        labels = as_data(y, self.unlisted, "y")
        if len(labels) != n_rows(covariates):
            raise RankingError(f"X has {n_rows(covariates)} rows but y has {len(labels)} labels; give one for each row")
        return labels

    def _match_labels(self, labels: Data, named: bool) -> Data:
        """Return labels with the items in the order of the training data."""
        if labels.n_items != len(self.items_) or (named and self._has_names and set(labels.items) != set(self.items_)):
            raise RankingError(
                f"y ranks {labels.n_items} items that are not the {len(self.items_)} items of the training data; give "
                "the same items"
            )
        return labels.with_items(self.items_) if named and self._has_names else labels

    def _check_weights(self, sample_weight: Any, covariates: Any, labels: Data) -> FloatArray:
        """Return the weights of the rows: sample weights times multiplicities."""
        check_unmasked("sample_weight", sample_weight)
        if sample_weight is not None and is_number(sample_weight):
            check_number("sample_weight", sample_weight, 0)
        table = np.empty((n_rows(covariates), 1))
        with error_prefix("sample_weight"):
            weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
        weights = weights * labels.counts
        if not np.isfinite(weights).all() or not weights.any():
            raise ValueError("sample_weight must be finite and positive for at least one row")
        return np.asarray(weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._ranking_kernel is None
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True  # the checks pass numbers that are not rankings
        return tags


def n_rows(covariates: Any) -> int:
    """Return the number of rows, also of a sparse matrix."""
    return int(covariates.shape[0]) if hasattr(covariates, "shape") else len(covariates)


# ---------------------------------------------------------------------- ridge regression


RidgeFit = tuple[FloatArray, FloatArray]  # means of the targets; a row of coefficients for each feature or training row


@dataclass(frozen=True, eq=False)
class Ridge:
    """Ridge regression of many targets on the same covariates."""

    X: Any  # array or sparse matrix of shape (n_rows, n_features), used only without a Gram matrix
    gram: FloatArray | None  # of the covariates; if given, there is a coefficient for each row, else for each feature
    weights: FloatArray  # of the rows
    alpha: float  # penalty of a regression on all rows; on a subset it is proportional to the total weight

    def fit_known(self, targets: FloatArray, known: Mask, prior: float) -> RidgeFit:
        """Return weighted means of the regressions on the rows with a known target and on all rows.

        The weights are the total weight of the rows with a known target, and ``prior``, which may be infinite. Targets
        that are not known are replaced by their expectations.
        """
        fit = means, coefficients = self.fit(targets, np.arange(len(targets)))
        if np.isinf(prior):
            return fit
        masks, group = np.unique(known.T, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(group.ravel()))[:-1])  # targets known in the same rows
        with threadpool_limits(1, user_api="blas"):  # many small systems, for which threads are slower
            for mask, columns in zip(masks, groups, strict=True):
                rows = np.flatnonzero(mask & (self.weights > 0))
                if 0 < len(rows) < len(targets):
                    weight = float(self.weights[rows].sum())
                    share, subset = weight / (weight + prior), self.fit(targets[:, columns], rows)
                    means[columns] += share * (subset[0] - means[columns])
                    coefficients[:, columns] += share * (subset[1] - coefficients[:, columns])
        return fit

    def fit(self, targets: FloatArray, rows: Indices) -> RidgeFit:
        """Return the regressions on a subset of the rows."""
        weights = self.weights[rows]
        alpha = self.alpha * float(weights.sum() / self.weights.sum())
        means = weights @ targets[rows] / weights.sum()
        roots = np.sqrt(weights)[:, None]
        residuals = roots * (targets[rows] - means)
        if self.gram is None:
            right = np.zeros(targets.shape)
            right[rows] = residuals
            return means, solve_ridge(self._scatter(rows), self._weighted.T @ right, alpha)
        coefficients = np.zeros(targets.shape)
        coefficients[rows] = roots * solve_ridge(self.gram[np.ix_(rows, rows)] * roots * roots.T, residuals, alpha)
        return means, coefficients

    @cached_property
    def _weighted(self) -> Any:
        roots = np.sqrt(self.weights)[:, None]
        return self.X.multiply(roots).tocsr() if hasattr(self.X, "multiply") else self.X * roots

    def _scatter(self, rows: Indices) -> FloatArray:
        """Return the scatter matrix of a subset of rows, by subtraction if the other rows are fewer."""
        others = np.setdiff1d(np.arange(len(self.weights)), rows, assume_unique=True)
        if len(rows) <= len(others):
            return scatter_matrix(self._weighted[rows])
        return self._full_scatter - (scatter_matrix(self._weighted[others]) if len(others) else 0.0)

    @cached_property
    def _full_scatter(self) -> FloatArray:
        return scatter_matrix(self._weighted)


def scatter_matrix(X: Any) -> FloatArray:
    """Return ``X.T @ X`` as a dense array."""
    product = X.T @ X
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)


def solve_ridge(matrix: FloatArray, right: FloatArray, alpha: float) -> FloatArray:
    """Return the solution of a positive definite system plus a penalty, of minimal norm if it is singular."""
    from scipy.linalg import LinAlgError, LinAlgWarning, lstsq, solve

    matrix[np.diag_indices_from(matrix)] += alpha
    with catch_warnings():
        simplefilter("error", LinAlgWarning)
        try:
            return np.asarray(solve(matrix, right, assume_a="pos"))
        except (LinAlgError, LinAlgWarning):
            return np.asarray(lstsq(matrix, right)[0])
