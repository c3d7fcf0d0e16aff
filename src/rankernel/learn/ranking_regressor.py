"""Rankings as answers: least squares in the space of a kernel on rankings, and the way back to a ranking."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import (
    check_choice,
    check_instance,
    check_integer,
    check_number,
    check_unmasked,
    is_number,
    short_repr,
)
from rankernel._utils.memory import check_task
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data
from rankernel.encoding import Unlisted
from rankernel.errors import RankingError
from rankernel.gram.exact.features import means_of_seen
from rankernel.gram.methods import MethodLike
from rankernel.gram.poset_rows import as_rows
from rankernel.kernels.base import Kernel
from rankernel.kernels.kendall import Kendall
from rankernel.kernels.named import NAMED, as_kernel
from rankernel.learn._ridge import Fit, Ridge
from rankernel.learn.transformers import KernelParameters, checked_table, has_names, naming
from rankernel.linear_forms import SEEN, Sight, seen_of_nothing
from rankernel.models.consensus import MAX_EXACT_ITEMS
from rankernel.models.decoding import LIMIT, Decoded, Decoder
from rankernel.rankings import Rankings

BLOCK = 2**24  # numbers that are predicted at once
ON_NUMBERS = (*PAIRWISE_KERNEL_FUNCTIONS, "precomputed")  # kernels that scikit-learn knows by name


class KernelRankingRegressor(KernelParameters, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Predict rankings from covariates or from other rankings: label ranking by kernel ridge regression.

    Every training label, full or partial, stands for its mean embedding :math:`\phi(R)`. Ridge regression in the space
    of the output kernel (Korba, Garcia and d'Alché-Buc 2018) predicts :math:`g(x) = \bar\phi + \sum_j \alpha_j(x)
    (\phi(R_j) - \bar\phi)` with :math:`\alpha(x) = (K + \alpha I)^{-1} k(x)`, and the answer is the full ranking
    nearest to it: exactly, but for long cycles of pairs. Of equally near ones it is that in the order of mean places.

    A label that leaves two items open says little of them. So :class:`Kendall` learns each pair of items also from the
    rows that put it in order, alone, and the more rows these are, the more that counts: see ``prior``.

    Parameters
    ----------
    output_kernel : Kernel or str
        On the labels: a multiple of :class:`Kendall` (the default; decoded by a Kemeny search), :class:`Spearman` (a
        sort), :class:`Hamming` or another positional kernel (an assignment), or a sum of positional kernels.
    kernel : str, callable or Kernel
        On the covariates: a name that scikit-learn knows, a callable on two rows, "precomputed", or a kernel on
        rankings, or its name, where the covariates are rankings ("polynomial" is scikit-learn's). With "linear" and
        fewer features than rows the cost is linear in the rows, so that a pipeline of ``Nystroem`` or
        :class:`NystromFeatures` goes far.
    alpha : float
        The penalty, as in ``KernelRidge``.
    gamma, degree, coef0 : float
        Of scikit-learn's kernels, as in ``KernelRidge``.
    kernel_params : dict, optional
        Further arguments of a callable.
    method : "auto" or a method object
        How Gram matrices of rankings as covariates are computed.
    prior : float
        With Kendall and labels that leave items open: how many rows their mean embeddings are worth. A pair that n rows
        put in order is predicted from these, by n / (n + prior), with as much penalty a row, and for the rest from the
        mean embeddings of all rows, in which items that a label leaves open are equally likely either way. With 0 a
        pair is learnt from the rows that put it in order, if there are any; with ``inf`` all from mean embeddings, in
        one system of equations.
    limit : int
        With Kendall: the most items of a cycle of pairs to be solved exactly, up to 26. Longer ones are searched, with
        the gap that :meth:`decode` states.
    n_starts : int
        How many local searches on longer ones.
    random_state : int, Generator or None
        Decides where these start.
    unlisted : {"last", "free"}, optional
        What NaN or None in a plain array or frame of rankings means: the item is last, or free. Refused if left out.

    Attributes
    ----------
    items_ : tuple of str
        The items of the labels.
    n_features_in_ : int
        The number of covariates.
    mean_ : array
        The means of what the output kernel sees of the labels, flat.
    coef_ : array
        One row a feature: the coefficients, where the kernel is linear and features are fewer than rows.
    dual_coef_ : array
        One row a training row: the coefficients otherwise.

    Notes
    -----
    Multiplicities of the labels (``y.counts``) are weights, times ``sample_weight``. Labels that leave items open
    (``-1``) say what they say: no row and no item is dropped.

    Examples
    --------
    Young voters want tea first, old ones coffee; most name only their favourite:

    >>> age = np.array([[18], [22], [25], [60], [71], [80]])
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["tea"], ["tea"], ["coffee"], ["coffee"], ["coffee", "milk"]])
    >>> model = KernelRankingRegressor(kernel="rbf", gamma=0.01, alpha=0.1).fit(age, ballots)
    >>> model.predict([[20], [75]]).to_orders()
    [['tea', 'milk', 'coffee'], ['coffee', 'milk', 'tea']]
    >>> tea, milk = ballots.items.index("tea"), ballots.items.index("milk")
    >>> round(float(model.predict_scores([[30]])[0, tea, milk]), 2)  # the share of tea before milk
    0.87
    """

    _kernel_parameters: ClassVar = ("output_kernel", "kernel")

    def __init__(
        self,
        output_kernel: Kernel | str = Kendall(),  # noqa: B008
        kernel: str | Callable[..., Any] | Kernel = "rbf",
        alpha: float = 1.0,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        method: MethodLike = "auto",
        prior: float = 30.0,
        limit: int = LIMIT,
        n_starts: int = 10,
        random_state: Seed = 0,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.output_kernel = output_kernel
        self.kernel = kernel
        self.alpha = alpha
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.method = method
        self.prior = prior
        self.limit = limit
        self.n_starts = n_starts
        self.random_state = random_state
        self.unlisted = unlisted

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from covariates and rankings.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), sparse matrix, or rankings
            The covariates.
        y : Rankings, Preferences or array of ranks of shape (n_rows, n_items)
            The labels; -1 in an array is an item of which nothing is known.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        self._check_parameters()
        covariates = self._read(X, reset=True)
        labels = self._labels(y, covariates)
        weights = self._weights(sample_weight, covariates, labels)
        self.items_, self._named = labels.items, has_names(y)
        seed = int(np.random.default_rng(as_seed(self.random_state, "random_state")).integers(2**32))
        self.decoder_ = Decoder(
            as_kernel(self.output_kernel, "output_kernel"), labels.n_items, self.limit, self.n_starts, seed
        )
        on_rankings = self._on_rankings
        self._primal = self._linear and covariates.shape[1] < covariates.shape[0]
        if on_rankings is not None:
            self.plan_ = on_rankings.plan(covariates, method=self.method)
        elif not self._primal:
            self.X_fit_ = covariates
        fit = self._learn(self.decoder_.sees, covariates, labels, weights)
        self.mean_ = fit.means
        name, other = ("coef_", "dual_coef_") if self._primal else ("dual_coef_", "coef_")
        setattr(self, name, fit.coefficients)
        self.__dict__.pop(other, None)  # of another fit
        sees_pairs = self.decoder_.sees == "pairs"
        self._pair_fit: Fit | None = fit if sees_pairs else None
        self._training = None if sees_pairs else (covariates, labels, weights)
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""
        if isinstance(self.kernel, str):
            check_choice("kernel", self.kernel, tuple(dict.fromkeys((*ON_NUMBERS, *NAMED))))
        elif not (isinstance(self.kernel, Kernel) or callable(self.kernel)):
            raise TypeError(
                f"kernel={short_repr(self.kernel)} is no kernel; give a name, a callable or a kernel on rankings"
            )
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
    def _on_rankings(self) -> Kernel | None:
        """The kernel on rankings as covariates, if that is what they are."""
        if isinstance(self.kernel, str):
            return None if self.kernel in ON_NUMBERS else NAMED.get(self.kernel)
        return self.kernel if isinstance(self.kernel, Kernel) else None

    @property
    def _linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _learn(self, sees: Sight, covariates: Any, labels: Data, weights: FloatArray) -> Fit:
        """Return the regressions of what is seen of the labels."""
        rows = as_rows(labels)
        targets = means_of_seen(rows, sees).reshape(len(rows), -1)
        ridge = Ridge(covariates, self._training_gram(), weights, float(self.alpha))
        if sees != "pairs":
            return ridge.fit(targets)
        return ridge.fit_known(targets, np.abs(targets) == 1, float(self.prior))

    def _training_gram(self) -> FloatArray | None:
        if self._primal:
            return None
        check_task("a label ranking", n_rows(self.X_fit_) if self._on_rankings is None else self.plan_.shape[0])
        return np.array(self._gram(self.X_fit_)) if self._on_rankings is None else self.plan_.gram()

    def _gram(self, X: Any) -> FloatArray:
        """Return the kernel between covariates and those of the training data."""
        if self._on_rankings is not None:
            return self.plan_.against(X).gram()
        named = isinstance(self.kernel, str)
        params: dict[str, Any] = {"degree": self.degree, "coef0": self.coef0} if named else self.kernel_params or {}
        if named and self.gamma is not None:  # each kernel has a default of its own
            params["gamma"] = float(self.gamma)
        found = pairwise_kernels(X, self.X_fit_, metric=self.kernel, filter_params=named, **params)
        return np.asarray(found, dtype=np.float64)

    # ------------------------------------------------------------------ predict

    def predict(self, X: Any) -> Rankings:
        """Return the predicted rankings, full ones; ``np.asarray`` of them is their ranks."""
        return Rankings._trusted(self.decode(X).ranks, self.items_)

    def decode(self, X: Any) -> Decoded:
        """Return the predicted rankings as ranks, with the gap to the best that could be.

        ``gaps`` is 0 where the ranking is proven to be the nearest one.
        """
        check_is_fitted(self)
        fit = Fit(self.mean_, self.coef_ if self._primal else self.dual_coef_)
        shape = seen_of_nothing(self.decoder_.sees, len(self.items_)).shape[1:]
        parts = [self.decoder_.decode(block.reshape(-1, *shape)) for block in self._predict(X, fit)]
        return Decoded(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("ranks", "values", "gaps"))
        )

    def predict_scores(self, X: Any) -> FloatArray:
        """Return how likely each item comes before each other: shape (n_rows, n_items, n_items).

        Predicted from the same labels as rankings are, as :class:`Kendall` learns pairs of items whatever the output
        kernel, and cut to 0 and 1. The diagonal is 1/2.
        """
        check_is_fitted(self)
        training = self._training
        if training is not None:  # made when it is first asked for: items are few, pairs of them are many
            self._pair_fit, self._training = self._learn("pairs", *training), None
        assert self._pair_fit is not None
        n_items = len(self.items_)
        first, second = np.triu_indices(n_items, 1)
        leads = np.concatenate(list(self._predict(X, self._pair_fit)))
        shares = np.full((len(leads), n_items, n_items), 0.5)
        shares[:, first, second] = np.clip((1 + leads) / 2, 0, 1)
        shares[:, second, first] = 1 - shares[:, first, second]
        return shares

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean of Kendall's tau between predicted and given rankings.

        Of partial rankings the pairs count that they put in order: concordant less discordant over all of these. Rows
        that put none in order do not count.
        """
        check_is_fitted(self)
        covariates = self._read(X, reset=False)
        labels = self._as_fitted(self._labels(y, covariates), has_names(y))
        weights = self._weights(sample_weight, covariates, labels)
        told = np.trunc(means_of_seen(as_rows(labels), "pairs"))  # -1 and 1 are certain
        signs = SEEN["pairs"](self.decode(X).ranks)
        said = np.abs(told).sum(axis=1)
        if labels.n_items == 1:
            return 1.0  # all rankings are alike
        if not (said > 0).any():
            raise RankingError("no label puts any two items in order, so there is nothing to score; give others")
        taus = (told * signs).sum(axis=1)[said > 0] / said[said > 0]
        return float(np.average(taus, weights=weights[said > 0]))

    def _predict(self, X: Any, fit: Fit) -> Iterator[FloatArray]:
        """Yield what is predicted, some rows at a time."""
        covariates = self._read(X, reset=False)
        step = max(BLOCK // max(*fit.coefficients.shape, 1), 1)
        for start in range(0, max(n_rows(covariates), 1), step):
            some = covariates[start : start + step]
            yield fit.means + (some if self._primal else self._gram(some)) @ fit.coefficients

    # ------------------------------------------------------------------ what comes in

    def _read(self, X: Any, reset: bool) -> Any:
        """Return covariates: numbers, or rankings where the kernel is one on rankings."""
        if self._on_rankings is None:
            check_unmasked("X", X)
            with naming("X"):
                return validate_data(self, X, accept_sparse="csr", reset=reset)
        data = as_data(X, self.unlisted)
        validate_data(self, np.empty((len(data), data.n_items)), reset=reset, skip_check_array=True)
        return data

    def _labels(self, y: Any, covariates: Any) -> Data:
        """Return the labels, over the items of the training data in their order."""
        if y is None:
            raise ValueError("this estimator requires y to be passed, but the target y is None; give rankings")
        if not has_names(y):
            y = checked_table(y, self, "y")
        labels = as_data(y, self.unlisted, "y")
        n_given = n_rows(covariates)
        if len(labels) != n_given:
            raise RankingError(f"there are {n_given} rows of covariates but {len(labels)} labels; give one for each")
        return labels

    def _as_fitted(self, labels: Data, named: bool) -> Data:
        """Return labels over the items of the training data, in their order."""
        if labels.n_items != len(self.items_) or (named and self._named and set(labels.items) != set(self.items_)):
            raise RankingError(
                f"the labels rank {labels.n_items} items, but not the {len(self.items_)} of fit; give the same items"
            )
        return labels.with_items(self.items_) if named and self._named else labels

    def _weights(self, sample_weight: Any, covariates: Any, labels: Data) -> FloatArray:
        given = np.empty((n_rows(covariates), 1))
        check_unmasked("sample_weight", sample_weight)
        if sample_weight is not None and is_number(sample_weight):
            check_number("sample_weight", sample_weight, 0)
        with naming("sample_weight"):
            weights = _check_sample_weight(sample_weight, given, dtype=np.float64, ensure_non_negative=True)
        weights = weights * labels.counts
        if not np.isfinite(weights).all() or not weights.any():
            raise ValueError("sample_weight: weights must be finite numbers, one of them above 0")
        return np.asarray(weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._on_rankings is None
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True  # the checks give numbers that are no rankings
        return tags


def n_rows(covariates: Any) -> int:
    """Return how many rows there are: of a sparse matrix, too."""
    return int(covariates.shape[0]) if hasattr(covariates, "shape") else len(covariates)
