"""Label ranking: kernel ridge regression of the mean embeddings of rankings, and decoding to full rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_distances, pairwise_kernels
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from rankernel._utils import FloatArray, Indices, Mask, RankArray
from rankernel._utils.checks import Seed, as_seed, check_choice, check_number, check_unmasked, is_number, short_repr
from rankernel._utils.resources import check_task
from rankernel.data import Data, as_data
from rankernel.distances import STATISTICS, Statistic, uniform_mean
from rankernel.errors import RankingError
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.plan import MethodLike
from rankernel.gram.rows import as_rows
from rankernel.kernels import KERNELS_BY_NAME, as_kernel
from rankernel.kernels.base import Kernel
from rankernel.models.consensus import Decoded, Decoder, pair_margins
from rankernel.models.estimators import KernelParameters, check_table, error_prefix, has_names
from rankernel.preferences import Preferences, closure
from rankernel.rankings import Rankings, Unlisted

InputKernel = str | Callable[..., Any] | Kernel
RidgeFit = tuple[FloatArray, FloatArray]  # means of the targets; a row of coefficients for each feature or training row

ENTRIES = 2**24  # predicted at once, so that temporary arrays stay small
GAMMAS = 4.0 ** np.arange(-3, 3)  # candidates, over the mean distance
ALPHAS = 10.0 ** np.arange(2, -5.1, -0.5)  # candidates, times the mean of the diagonal of the Gram matrix
SELECTION_ROWS, SELECTION_ENTRIES = (100, 500), 100_000  # least and most rows for the choice, and their targets
MAX_ADDITIVE = 100  # covariates up to which the additive kernel is a candidate by default, as it takes time for each
CALIBRATION_SHARE = 1 / 3  # of the rows, for prediction sets


@dataclass(eq=False, repr=False)
class KernelRankingRegressor(KernelParameters, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Label ranking by kernel ridge regression: predict rankings from covariates or from other rankings.

    Every training label, full or partial, is represented by its mean embedding :math:`\phi(R)` under the output kernel.
    Ridge regression in that space (Korba, Garcia and d'Alché-Buc 2018) gives :math:`g(x) = \bar\phi + \sum_j
    \alpha_j(x) (\phi(R_j) - \bar\phi)` with :math:`\alpha(x) = (K + \alpha I)^{-1} k(x)`, and the prediction is the
    full ranking nearest to g(x). The search is exact except for cycles of pairwise majorities of more than 16 items;
    ties are broken by mean rank.

    With :class:`Kendall` and :class:`Spearman` the targets are the signs of pairs, of which mean ranks are sums. A
    label that does not order two items has little information about their order. Each pair of items is therefore also
    learnt from only those labels that order the pair; see ``prior``.

    By default the input kernel, ``gamma`` and ``alpha`` are those with the smallest leave-one-out error in the
    embedding. This error has a closed form: one eigendecomposition gives it for all values of ``alpha``. At most 500
    random rows are used.

    Parameters
    ----------
    alpha : float, optional
        The ridge penalty, as in ``KernelRidge``; chosen by default.
    kernel : str, callable or Kernel, or a sequence of these
        On the covariates: "matern" (of order 3/2, with ``gamma`` times the Euclidean distance), "additive_rbf" (the
        mean of the Gaussian kernels of the single covariates), a kernel of scikit-learn by name, a function of two
        matrices as in ``SVC``, "precomputed", or a kernel on rankings (object or name) if the covariates are rankings;
        "polynomial" is scikit-learn's. From a sequence the best kernel is chosen; "additive_rbf" is considered only
        with at most 100 covariates. With "linear" and fewer features than rows the cost is linear in the number of
        rows, for instance after ``Nystroem`` or :class:`NystromFeatures` in a pipeline.
    gamma : float, optional
        The inverse bandwidth; chosen by default for "rbf", "laplacian", "matern" and "additive_rbf", and
        scikit-learn's default for other kernels.
    output_kernel : Kernel or str, or a sequence of these
        On the labels: a multiple of :class:`Kendall` (decoded by a Kemeny search), :class:`Spearman` (sorting),
        :class:`Hamming` or another positional kernel (linear assignment), or a sum of positional kernels. In a
        sequence, the one with the largest tau of the decoded leave-one-out predictions is chosen.
    method : as in :meth:`Kernel.gram`
        How to compute Gram matrices of rankings as covariates.
    prior : float
        With Kendall or Spearman and partial labels: the weight, in rows, of the regression on mean embeddings. A pair
        of items that n labels order is predicted with weight n / (n + prior) by a ridge regression on these labels,
        with the same penalty for each row, and otherwise by the regression of all mean embeddings, in which unordered
        items are equally likely to come first. 0 uses only the labels that order a pair, if there are any; ``inf``
        uses only mean embeddings, in one system of equations.
    random_state : int, Generator or None
        Seed of local searches, of the rows for the choice of parameters, and of the split for prediction sets.
    unlisted
        As for :class:`KernelKMeans`.

    Attributes
    ----------
    items_ : tuple of str
        The items of the labels.
    n_features_in_ : int
        The number of covariates.
    kernel_, output_kernel_, gamma_, alpha_
        The kernels and parameters in use; ``gamma_`` is None if scikit-learn's default is used.
    loo_error_ : float
        The mean squared leave-one-out error in the embedding, nan if there was nothing to choose. With Kendall and
        Spearman it is the mean over the pairs that the labels order.
    mean_ : array
        The weighted mean of the flattened targets: pair signs or position probabilities of the labels.
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
    >>> chosen = KernelRankingRegressor().fit(age, ballots)
    >>> model.predict([[20], [75]]).to_orders() == chosen.predict([[20], [75]]).to_orders()
    True
    >>> model.predict([[20], [75]]).to_orders()
    [['tea', 'milk', 'coffee'], ['coffee', 'milk', 'tea']]
    >>> tea, milk = ballots.items.index("tea"), ballots.items.index("milk")
    >>> round(float(model.predict_scores([[30]])[0, tea, milk]), 2)  # probability of tea before milk
    0.87
    """

    _kernel_arguments: ClassVar = ("output_kernel", "kernel")

    alpha: float | None = None
    _: KW_ONLY
    kernel: InputKernel | Sequence[InputKernel] = ("rbf", "laplacian", "matern", "additive_rbf")
    gamma: float | None = None
    output_kernel: Kernel | str | Sequence[Kernel | str] = ("kendall", "spearman")
    method: MethodLike = "auto"
    prior: float = 30.0
    random_state: Seed = 0
    unlisted: Unlisted | None = None

    # ------------------------------------------------------------------ fit

    @np.errstate(under="ignore")
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
        kernels = self._check_parameters()
        covariates = self._check_covariates(X, reset=True)
        labels = self._check_labels(y, covariates)
        weights = self._check_weights(sample_weight, covariates, labels)
        self.items_, self._has_names = labels.items, has_names(y)
        if self._on_rankings:
            check_task("a label ranking", len(covariates))  # before the matrices of the selection
        self._select(kernels, covariates, labels, weights)
        self._primal = self.kernel_ == "linear" and covariates.shape[1] < covariates.shape[0]
        if isinstance(self.kernel_, Kernel):
            self.plan_ = self.kernel_.plan(covariates, method=self.method)
        self._training = covariates, labels, weights
        self._fits: dict[Statistic, RidgeFit] = {}
        self._calibration: tuple[Self, Indices, FloatArray, FloatArray] | None = None
        self.mean_, coefficients = self._fit_of(targets_of(self.decoder_))
        name, other = ("coef_", "dual_coef_") if self._primal else ("dual_coef_", "coef_")
        setattr(self, name, coefficients)
        self.__dict__.pop(other, None)  # from an earlier fit
        return self

    def _check_parameters(self) -> list[InputKernel]:
        """Return the candidates for the input kernel, or raise if a parameter is not valid."""
        kernels = candidates("kernel", self.kernel)
        numeric = (*PROFILES, *PAIRWISE_KERNEL_FUNCTIONS, "precomputed")
        for number, kernel in enumerate(kernels):
            if isinstance(kernel, str):
                check_choice("kernel", kernel, tuple(dict.fromkeys((*numeric, *KERNELS_BY_NAME))))
                kernels[number] = kernel if kernel in numeric else KERNELS_BY_NAME[kernel]
            elif not (isinstance(kernel, Kernel) or callable(kernel)):
                raise TypeError(f"kernel={short_repr(kernel)} must be a name, a function or a kernel on rankings")
        if len({isinstance(kernel, Kernel) for kernel in kernels}) > 1:
            raise ValueError(f"kernel={short_repr(self.kernel)} mixes kernels on rankings and on numbers; use one kind")
        for name in ("alpha", "gamma"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), 0)
        if not (is_number(self.prior) and self.prior == math.inf):
            check_number("prior", self.prior, 0)
        return kernels

    @property
    def _on_rankings(self) -> bool:
        """Whether the covariates are rankings."""
        first = self.kernel[0] if isinstance(self.kernel, list | tuple) else self.kernel
        return isinstance(first, Kernel) or (
            isinstance(first, str) and first in KERNELS_BY_NAME and first not in PAIRWISE_KERNEL_FUNCTIONS
        )

    def _select(self, kernels: list[InputKernel], covariates: Any, labels: Data, weights: FloatArray) -> None:
        """Set the kernels and the parameters, by the smallest leave-one-out error where there is a choice."""
        rng = np.random.default_rng(as_seed(self.random_state, "random_state"))
        outputs = [as_kernel(kernel, "output_kernel") for kernel in candidates("output_kernel", self.output_kernel)]
        seed = int(rng.integers(2**32))
        decoders = [Decoder(kernel, labels.n_items, seed=seed) for kernel in outputs]
        n_targets = max(uniform_mean(targets_of(decoder), labels.n_items).size for decoder in decoders)
        rows, n_most = np.flatnonzero(weights), int(np.clip(SELECTION_ENTRIES // max(n_targets, 1), *SELECTION_ROWS))
        if len(rows) > n_most:
            rows = np.sort(rng.choice(rows, n_most, replace=False))
        X, y, own = covariates[rows], labels[rows], weights[rows]
        inputs = [pair for kernel in kernels for pair in self._gammas(kernel, X, own)]
        keys = [targets_of(decoder) if targets_of(decoder) == "pairs" else decoder for decoder in decoders]
        best = dict.fromkeys(keys, Choice())  # Kendall and Spearman have the same targets and errors
        winner = 0
        if len(inputs) == len(decoders) == 1 and self.alpha is not None:
            best[keys[0]] = Choice(math.nan, *inputs[0], float(self.alpha))
        else:
            targets = {
                key: mean_statistics(as_rows(y), targets_of(each)) for key, each in zip(keys, decoders, strict=True)
            }
            with threadpool_limits(1, user_api="blas"):  # small matrices, for which threads are slower
                for kernel, gamma in inputs:
                    loo = LeaveOneOut(self._gram(kernel, gamma, X), own)
                    scale = np.average(np.diag(loo.gram), weights=own) or 1.0
                    alphas = scale * ALPHAS if self.alpha is None else [float(self.alpha)]
                    for key, target in targets.items():
                        for alpha, residuals in zip(alphas, loo.residuals(target, alphas), strict=True):
                            error = loo.error(key, target, residuals)
                            if error < best[key].error:
                                best[key] = Choice(error, kernel, gamma, float(alpha), target - residuals)
            if len(decoders) > 1:
                predicted = [decode(each, best[key].predictions) for key, each in zip(keys, decoders, strict=True)]
                winner = int(np.argmax([mean_tau(found.ranks, y, own) for found in predicted]))
        choice, self.output_kernel_, self.decoder_ = best[keys[winner]], outputs[winner], decoders[winner]
        self.loo_error_, self.alpha_ = choice.error, choice.alpha
        self.kernel_, self.gamma_ = choice.kernel, choice.gamma

    def _gammas(self, kernel: InputKernel, X: Any, weights: FloatArray) -> Iterator[tuple[InputKernel, float | None]]:
        """Yield an input kernel with the candidates for its inverse bandwidth."""
        if self.gamma is not None or not (isinstance(kernel, str) and kernel in PROFILES):
            yield kernel, None if self.gamma is None else float(self.gamma)
            return
        n_terms = X.shape[1] if kernel == "additive_rbf" else 1
        if n_terms <= MAX_ADDITIVE or isinstance(self.kernel, str):
            mean = weights @ pairwise_distances(X, **PROFILES[kernel][0]) @ weights / weights.sum() ** 2
            for factor in GAMMAS:
                yield kernel, float(n_terms * factor / mean) if mean > 0 else 1.0

    @np.errstate(over="ignore", under="ignore")  # the kernel is 0 at distances that overflow
    def _gram(self, kernel: InputKernel, gamma: float | None, X: Any, Y: Any = None) -> FloatArray:
        """Return a kernel between covariates."""
        if isinstance(kernel, Kernel):
            return kernel.plan(X, method=self.method).gram()
        if not isinstance(kernel, str):
            return np.array(kernel(X, X if Y is None else Y), dtype=np.float64)
        if kernel == "additive_rbf" and gamma is not None:
            left, right = (Z.toarray() if issparse(Z) else Z for Z in (X, X if Y is None else Y))
            columns = zip(left.T, right.T, strict=True)
            return np.asarray(sum(np.exp(-gamma * np.subtract.outer(x, y) ** 2) for x, y in columns) / left.shape[1])
        if kernel in PROFILES and gamma is not None:
            distance, profile = PROFILES[kernel]
            return np.asarray(profile(np.minimum(gamma * pairwise_distances(X, Y, **distance), FAR)))
        options = {} if gamma is None else {"gamma": gamma}  # whose default depends on the kernel
        return np.array(pairwise_kernels(X, Y, metric=kernel, filter_params=True, **options), dtype=np.float64)

    def _fit_of(self, statistic: Statistic) -> RidgeFit:
        """Return the regression of the mean pair signs or position probabilities of the labels, computed once."""
        if statistic not in self._fits:
            covariates, labels, weights = self._training
            rows, gram = as_rows(labels), None
            targets = mean_statistics(rows, statistic).reshape(len(rows), -1)
            if not self._primal:
                check_task("a label ranking", len(rows))
                on_rankings = isinstance(self.kernel_, Kernel)
                gram = self.plan_.gram() if on_rankings else self._gram(self.kernel_, self.gamma_, covariates)
            ridge = Ridge(covariates, gram, weights, self.alpha_)
            if statistic == "pairs":
                self._fits[statistic] = ridge.fit_known(targets, np.abs(targets) == 1, float(self.prior))
            else:
                self._fits[statistic] = ridge.fit(targets, np.arange(len(targets)))
        return self._fits[statistic]

    # ------------------------------------------------------------------ predict

    def predict(self, X: Any) -> Rankings:
        """Return the predicted full rankings; ``np.asarray`` of them is the array of ranks."""
        return Rankings._trusted(self.decode(X).ranks, self.items_)

    def decode(self, X: Any) -> Decoded:
        """Return the ranks of the predicted rankings with bounds on their gap to the nearest ranking.

        ``gaps`` is 0 where the ranking is proven to be the nearest one.
        """
        check_is_fitted(self)
        statistic = targets_of(self.decoder_)
        shape = uniform_mean(statistic, len(self.items_)).shape[1:]
        parts = [
            decode(self.decoder_, block.reshape(len(block), *shape)) for block in self._predict_targets(X, statistic)
        ]
        return Decoded(*map(np.concatenate, zip(*parts, strict=True)))

    def predict_scores(self, X: Any) -> FloatArray:
        """Return the estimated probability that item a comes before item b: shape (n_rows, n_items, n_items).

        Whatever the output kernel, pairs of items are learnt as with :class:`Kendall`; estimates are clipped to [0, 1].
        The diagonal is 1/2.
        """
        margins = pair_margins(self._predict_signs(X), len(self.items_))
        return np.clip((1 + margins) / 2, 0, 1)

    def _predict_signs(self, X: Any) -> FloatArray:
        """Return the estimated mean sign of each pair of items, 1 if the first one certainly comes first."""
        check_is_fitted(self)
        return np.concatenate(list(self._predict_targets(X, "pairs")))

    def predict_set(self, X: Any, *, confidence_level: float = 0.9) -> Preferences:
        """Return the pairs of items whose order is certain, as a partial order for each row (split conformal).

        For a new row from the same distribution, the probability that its label contradicts none of the pairs is at
        least ``confidence_level``, whatever the distribution. The model is fitted again on two thirds of the training
        rows, at the first call. The score of a label of the other third is the largest estimated sign of a pair that
        the label orders in the opposite way. A pair is stated if its estimated sign exceeds a quantile of these scores,
        and if the ranking predicted by the model of the two thirds has the same order.

        Parameters
        ----------
        X : as in :meth:`predict`
            The covariates.
        confidence_level : float
            The probability that all stated pairs of a row are right, between 0 and 1.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(0, 3, size=(300, 1))
        >>> y = Rankings.from_scores(-abs(x - [0, 1, 2, 3]) + rng.normal(scale=0.3, size=(300, 4)))
        >>> certain = KernelRankingRegressor().fit(x, y).predict_set([[0.0], [1.5]])
        >>> [int(before.sum()) for before in certain.before]
        [6, 4]
        """
        check_is_fitted(self)
        check_number("confidence_level", confidence_level, 0, 1)
        model, part, scores, weights = self._calibrate()
        if self.kernel_ == "precomputed":
            X = self._check_covariates(X, reset=False)[:, part]
        reached = np.cumsum(weights) >= confidence_level * (weights.sum() + 1)
        threshold = scores[int(np.argmax(reached))] if reached.any() else math.inf
        margins, ranks = pair_margins(model._predict_signs(X), len(self.items_)), model.decode(X).ranks
        before = (margins > threshold) & (ranks[:, :, None] < ranks[:, None, :])
        packed = closure(np.packbits(before, axis=2))
        return Preferences._trusted(packed, self.items_, users=(), contracted=((),) * len(packed))

    def _calibrate(self) -> tuple[Self, Indices, FloatArray, FloatArray]:
        """Return the model of a part of the rows, these rows, and the sorted scores of the others with weights.

        The weights are divided by that of a voter on average, which is the weight of a new row.
        """
        if self._calibration is None:
            covariates, labels, weights = self._training
            order = np.random.default_rng(as_seed(self.random_state, "random_state")).permutation(len(labels))
            rest, part = np.split(order, [int(CALIBRATION_SHARE * len(order))])
            columns = covariates[:, part] if self.kernel_ == "precomputed" else covariates
            model = clone(self).fit(columns[part], labels[part], weights[part] / labels.counts[part])
            stated = np.trunc(mean_statistics(as_rows(labels[rest]), "pairs"))
            wrong = np.where(stated != 0, -stated * model._predict_signs(columns[rest]), -math.inf)
            known = stated.any(axis=1)
            mass = weights[rest][known] * labels.counts.sum() / weights.sum()
            scores = wrong.max(axis=1, initial=-math.inf)[known]
            by_score = np.argsort(scores, kind="stable")
            self._calibration = model, part, scores[by_score], mass[by_score]
        return self._calibration

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean of Kendall's tau between predicted and given rankings.

        For a partial ranking tau is computed over the pairs that it orders (Goodman and Kruskal's gamma). Rows that
        order no pair are ignored.
        """
        check_is_fitted(self)
        covariates = self._check_covariates(X, reset=False)
        labels = self._match_labels(self._check_labels(y, covariates), has_names(y))
        tau = mean_tau(self.decode(X).ranks, labels, self._check_weights(sample_weight, covariates, labels))
        if math.isnan(tau):
            raise RankingError("y: no label orders any two items, so the score is undefined")
        return tau

    def _predict_targets(self, X: Any, statistic: Statistic) -> Iterator[FloatArray]:
        """Yield the predicted targets in blocks of rows."""
        covariates = self._check_covariates(X, reset=False)
        means, coefficients = self._fit_of(statistic)
        step = max(ENTRIES // max(*coefficients.shape, 1), 1)
        for start in range(0, max(_num_samples(covariates), 1), step):
            block = covariates[start : start + step]
            if isinstance(self.kernel_, Kernel):
                block = self.plan_.against(block).gram()
            elif not self._primal:
                block = self._gram(self.kernel_, self.gamma_, block, self._training[0])
            yield means + block @ coefficients

    # ------------------------------------------------------------------ validation

    def _check_covariates(self, X: Any, reset: bool) -> Any:
        """Return validated covariates: numbers, or rankings if the kernel is one on rankings."""
        if not self._on_rankings:
            check_unmasked("X", X)
            with error_prefix("X"):
                options = {"dtype": np.float64, "accept_sparse": "csr", "accept_large_sparse": False}
                numbers = validate_data(self, X, **options, reset=reset)
            largest = float(abs(numbers).max())
            if reset and largest and not 1 / MAX_SCALE < largest < MAX_SCALE:
                raise ValueError(
                    f"X has values up to {largest:.3g}, whose squares are not representable; divide them by a constant"
                )
            return numbers
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
        n_rows = _num_samples(covariates)
        if len(labels) != n_rows:
            raise RankingError(
                f"X has {_num_samples(covariates)} rows but y has {len(labels)} labels; give one for each row"
            )
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
        table = np.empty((_num_samples(covariates), 1))
        with error_prefix("sample_weight"):
            weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
        weights = weights * labels.counts
        if not np.isfinite(weights).all() or not weights.any():
            raise ValueError("sample_weight must be finite and positive for at least one row")
        return np.asarray(weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._on_rankings
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True  # the checks pass numbers that are not rankings
        return tags


MAX_SCALE = 1e140  # largest covariate: squared distances do not overflow
FAR = 1e4  # scaled distances from here on have a kernel of 0; they may be infinite
SQUARED = {"metric": "euclidean", "squared": True}
# Kernels with a chosen gamma: the distance of ``pairwise_distances``, and the function of gamma times the distance.
PROFILES: dict[str, tuple[dict[str, Any], Callable[[FloatArray], FloatArray]]] = {
    "rbf": (SQUARED, lambda d: np.exp(-d)),
    "laplacian": ({"metric": "manhattan"}, lambda d: np.exp(-d)),
    "matern": ({"metric": "euclidean"}, lambda d: (1 + math.sqrt(3) * d) * np.exp(-math.sqrt(3) * d)),
    "additive_rbf": (SQUARED, lambda d: np.exp(-d)),
}


def candidates(name: str, kernel: Any) -> list[Any]:
    """Return the kernels of a sequence, or a single kernel as a list."""
    if not isinstance(kernel, list | tuple):
        return [kernel]
    if not kernel:
        raise ValueError(f"{name} is empty; give at least one kernel")
    return list(kernel)


def targets_of(decoder: Decoder) -> Statistic:
    """Return the statistic that is learnt: signs of pairs also for mean ranks, which are sums of them."""
    return "positions" if decoder.statistic == "positions" else "pairs"


def decode(decoder: Decoder, targets: FloatArray) -> Decoded:
    """Return the nearest rankings of predicted targets."""
    if decoder.statistic == "ranks":
        targets = -pair_margins(targets, decoder.n_items).sum(axis=2) / 2
    return decoder.decode(targets)


def mean_tau(ranks: RankArray, labels: Data, weights: FloatArray) -> float:
    """Return the weighted mean of Kendall's tau over the pairs that the labels order, nan if there are none."""
    if labels.n_items == 1:
        return 1.0  # all rankings are equal
    ordered = np.trunc(mean_statistics(as_rows(labels), "pairs"))  # -1 and 1 are certain
    n_ordered = np.abs(ordered).sum(axis=1)
    known = n_ordered > 0
    taus = (ordered * STATISTICS["pairs"](ranks)).sum(axis=1)[known] / n_ordered[known]
    return float(np.average(taus, weights=weights[known])) if weights[known].any() else math.nan


# ---------------------------------------------------------------------- choice of the parameters


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out errors of kernel ridge regression around the mean of the targets, in closed form.

    One unit of weight is left out at a time, or the row if its weight is smaller, so that weights are repeated rows.
    The mean is that of the other rows, and the penalty is not changed.
    """

    gram: FloatArray
    weights: FloatArray

    @cached_property
    def _eigen(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The eigenvalues and eigenvectors of the weighted Gram matrix, and the squares of the latter."""
        roots = np.sqrt(self.weights)
        values, vectors = np.linalg.eigh(self.gram * np.outer(roots, roots))
        return np.maximum(values, 0.0), vectors, vectors**2

    def residuals(self, targets: FloatArray, alphas: Sequence[float] | FloatArray) -> Iterator[FloatArray]:
        """Yield for each penalty the targets minus their leave-one-out predictions."""
        values, vectors, squares = self._eigen
        weights, flat = self.weights[:, None], targets.reshape(len(targets), -1)
        unit, roots = np.minimum(weights, 1.0), np.sqrt(weights)
        others = np.maximum(weights.sum() - unit, np.finfo(float).tiny)
        means = ((weights * flat).sum(axis=0) - unit * flat) / others if len(flat) > 1 else 0 * flat
        projected = vectors.T @ (roots * np.column_stack([flat, np.ones(len(flat))]))
        for alpha in alphas:
            penalty = max(alpha, 1e-12 * values[-1], np.finfo(float).tiny)
            shrinkage = penalty / (values + penalty)
            left = vectors @ (shrinkage[:, None] * projected)
            leverages = (1 - squares @ shrinkage)[:, None] * unit / weights
            yield ((left[:, :-1] - means * left[:, -1:]) / roots / (1 - leverages)).reshape(targets.shape)

    def error(self, embedding: Statistic | Decoder, targets: FloatArray, residuals: FloatArray) -> float:
        """Return the weighted mean squared error: over the pairs that labels order, or in the space of a kernel."""
        if isinstance(embedding, Decoder):
            squares = embedding.products(residuals, residuals) - embedding.constant
            return float(np.average(squares, weights=self.weights))
        stated = np.abs(targets) == 1
        stated = stated if stated.any() else np.ones_like(stated)
        return float(
            self.weights @ (residuals**2 * stated).sum(axis=1) / max(self.weights @ stated.sum(axis=1), 1e-300)
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """An input kernel with its parameters, the leave-one-out error and the leave-one-out predictions."""

    error: float = math.inf
    kernel: InputKernel = ""
    gamma: float | None = None
    alpha: float = 1.0
    predictions: Any = None


# ---------------------------------------------------------------------- ridge regression


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
        masks, group = np.unique(known.T, axis=0, return_inverse=True)  # targets known in the same rows
        with threadpool_limits(1, user_api="blas"):  # many small systems, for which threads are slower
            for number, mask in enumerate(masks):
                rows, columns = np.flatnonzero(mask & (self.weights > 0)), np.flatnonzero(group.ravel() == number)
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
            X = self.X[rows].multiply(roots) if issparse(self.X) else self.X[rows] * roots
            scatter = X.T @ X
            return means, solve_ridge(scatter.toarray() if issparse(scatter) else scatter, X.T @ residuals, alpha)
        coefficients = np.zeros(targets.shape)
        coefficients[rows] = roots * solve_ridge(self.gram[np.ix_(rows, rows)] * roots * roots.T, residuals, alpha)
        return means, coefficients


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
