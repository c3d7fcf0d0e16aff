"""What all transformers of rankings share: what goes in is rankings, what comes out is a table of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from rankernel.data import Data, as_data, rename_items
from rankernel.encoding import Unlisted, check_no_missing
from rankernel.errors import RankingError
from rankernel.kernels.base import Kernel, prefixed
from rankernel.kernels.named import as_kernel


class RankingTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer whose rows are rankings: Rankings, Preferences, a frame, or an array of ranks."""

    items_: tuple[str, ...]
    unlisted: Unlisted | None

    def _learn_items(self, X: Any) -> Data:
        """Return the rankings of the training data, and remember over which items they are."""
        data = self._read(X, reset=True)
        if not len(data):
            raise RankingError("X: there are no rankings to fit; give at least one")
        self.items_ = data.items
        self._named = has_names(X)
        return data

    def _same_items(self, X: Any) -> Data:
        """Return new rankings over the items of the training data, in their order."""
        check_is_fitted(self)
        data = self._read(X, reset=False)
        if self._named and has_names(X) and data.items != self.items_:
            if set(data.items) != set(self.items_):
                raise RankingError(
                    "X is not about the items of fit: some names differ; bring them to the same names first"
                )
            return data.with_items(self.items_)
        return rename_items(data, self.items_)

    def _read(self, X: Any, reset: bool) -> Data:
        """Return the rankings, having refused in scikit-learn's own words what is no table of numbers."""
        if not isinstance(X, Data) and not hasattr(X, "columns"):
            X = checked_table(X, self)
            if self.unlisted is None:
                check_no_missing(np.isnan(X), range(X.shape[1]))
        data = as_data(X, self.unlisted)
        if not reset and data.n_items != self.n_features_in_:
            raise RankingError(
                f"X has {data.n_items} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input: new rankings must rank the same items as those of fit"
            )
        seen = X if hasattr(X, "columns") else np.empty((len(data), data.n_items))
        validate_data(self, seen, reset=reset, skip_check_array=True)
        return data

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # whole numbers
        tags.input_tags.allow_nan = self.unlisted is not None  # an item that is not ranked
        return tags


def checked_table(X: Any, estimator: Any, name: str = "X") -> Any:
    """Return a table of numbers, refusing anything else in scikit-learn's own words."""
    if np.ma.is_masked(X):  # which scikit-learn would look behind
        X = np.ma.filled(X.astype(np.float64), np.nan)
    with naming(name):
        return check_array(X, ensure_all_finite="allow-nan", input_name=name, estimator=estimator)


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Put the name of an argument before what scikit-learn says of it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{argument}: {error}") from None


def has_names(X: Any) -> bool:
    """Say whether rankings come with names of their items."""
    return isinstance(X, Data) or hasattr(X, "columns")


class KernelParameters(BaseEstimator):  # type: ignore[misc]
    """An estimator with kernels on rankings, whose parameters can be reached as ``kernel__nu``."""

    _kernel_parameters: ClassVar[tuple[str, ...]] = ("kernel",)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if ``deep``, those of kernels, too."""
        params: dict[str, Any] = super().get_params(deep)
        for name in self._kernel_parameters if deep else ():
            if isinstance(params[name], Kernel):
                params |= prefixed(name, params[name].params)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__nu`` replaces the kernel by one with another nu."""
        inside: dict[str, dict[str, Any]] = {}
        for name in self._kernel_parameters:
            if isinstance(params.get(name, getattr(self, name)), Kernel | str):  # others know what to do themselves
                own = [each for each in params if each.startswith(f"{name}__")]
                inside[name] = {each.removeprefix(f"{name}__"): params.pop(each) for each in own}
        super().set_params(**params)
        for name, changes in inside.items():
            if changes:
                setattr(self, name, as_kernel(getattr(self, name), name).replace(**changes))
        return self


class KernelTransformer(KernelParameters, RankingTransformer):
    """A transformer with a kernel, whose parameters can be reached as ``kernel__nu``."""

    kernel: Any
