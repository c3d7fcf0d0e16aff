"""Base classes of the estimators: rankings as input, and kernel parameters as parameters of the estimator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from rankernel.data import Data, as_data
from rankernel.errors import RankingError
from rankernel.kernels import KERNELS_BY_NAME, as_kernel
from rankernel.kernels.base import prefixed
from rankernel.rankings import Unlisted, check_no_missing


class RankingEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator for rankings: Rankings, Preferences, a data frame, or an array of ranks."""

    items_: tuple[str, ...]
    unlisted: Unlisted | None

    def _fit_items(self, X: Any) -> Data:
        """Return the training rankings and store their items."""
        data = self._as_data(X, reset=True)
        if not len(data):
            raise RankingError("X: there are no rankings to fit; give at least one")
        self.items_ = data.items
        self._has_names = has_names(X)
        return data

    def _match_items(self, X: Any) -> Data:
        """Return new rankings with the items in the order of the training data."""
        check_is_fitted(self)
        data = self._as_data(X, reset=False)
        if self._has_names and has_names(X) and data.items != self.items_:
            if set(data.items) != set(self.items_):
                raise RankingError("X has other items than the training data; rename or align the items first")
            return data.with_items(self.items_)
        return data._replaced(items=self.items_)

    def _as_data(self, X: Any, reset: bool) -> Data:
        """Return validated rankings; errors about tables that are not numeric are scikit-learn's."""
        if not isinstance(X, Data) and not hasattr(X, "columns") and not hasattr(X, "match_ups"):
            X = check_table(X, self)
            if self.unlisted is None:
                check_no_missing(np.isnan(X), range(X.shape[1]))
        data = as_data(X, self.unlisted)
        if not reset and data.n_items != self.n_features_in_:
            raise RankingError(
                f"X has {data.n_items} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input: new rankings must rank the same items as the training data"
            )
        table = X if hasattr(X, "columns") else np.empty((len(data), data.n_items))
        validate_data(self, table, reset=reset, skip_check_array=True)
        return data

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # integers
        tags.input_tags.allow_nan = self.unlisted is not None
        return tags


def check_table(X: Any, estimator: Any, name: str = "X") -> Any:
    """Return a numeric table, or raise scikit-learn's error with the name of the argument in front."""
    if np.ma.is_masked(X):  # scikit-learn would read the values under the mask
        X = np.ma.filled(X.astype(np.float64), np.nan)
    with error_prefix(name):
        return check_array(X, ensure_all_finite="allow-nan", input_name=name, estimator=estimator)


@contextmanager
def error_prefix(argument: str) -> Iterator[None]:
    """Put the name of an argument in front of error messages."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{argument}: {error}") from None


def has_names(X: Any) -> bool:
    """Return whether rankings have named items."""
    return isinstance(X, Data) or hasattr(X, "columns")


class KernelParameters(BaseEstimator):  # type: ignore[misc]
    """An estimator with kernels on rankings whose parameters are accessible as ``kernel__nu``."""

    _kernel_arguments: ClassVar[tuple[str, ...]] = ("kernel",)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if ``deep``, including those of the kernels."""
        params: dict[str, Any] = super().get_params(deep)
        for name in self._kernel_arguments if deep else ():
            if params[name] in KERNELS_BY_NAME if isinstance(params[name], str) else hasattr(params[name], "matrix"):
                params |= prefixed(name, as_kernel(params[name]).params)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__nu=0.1`` replaces the kernel by one with this parameter."""
        of_kernels: dict[str, dict[str, Any]] = {}
        for argument in self._kernel_arguments:
            kernel = params.get(argument, getattr(self, argument))
            if isinstance(kernel, str) or hasattr(kernel, "matrix"):  # not a kernel of scikit-learn
                names = [name for name in params if name.startswith(f"{argument}__")]
                of_kernels[argument] = {name.removeprefix(f"{argument}__"): params.pop(name) for name in names}
        super().set_params(**params)
        for argument, changes in of_kernels.items():
            if changes:
                setattr(self, argument, as_kernel(getattr(self, argument), argument).replace(**changes))
        return self


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelParameters, RankingEstimator):  # type: ignore[misc]
    """A transformer of rankings with a kernel."""

    kernel: Any
