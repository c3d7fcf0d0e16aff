"""What all transformers of rankings share: what goes in is rankings, what comes out is a table of numbers."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from rankernel.errors import RankingError
from rankernel.rankings import Rankings, as_rankings

__all__ = ["KernelTransformer", "RankingTransformer"]


class RankingTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer whose rows are rankings: a Rankings object, a frame, or an array of ranks."""

    items_: tuple[str, ...]

    def _learn_items(self, X: Any) -> Rankings:
        """Return the rankings of the training data, and remember over which items they are."""
        rankings = self._read(X, reset=True)
        if not len(rankings):
            raise RankingError("there are no rankings to fit; give at least one")
        self.items_ = rankings.items
        self._named = isinstance(X, Rankings)
        return rankings

    def _same_items(self, X: Any) -> Rankings:
        """Return new rankings, which must be over the items of the training data."""
        check_is_fitted(self)
        rankings = self._read(X, reset=False)
        if self._named and isinstance(X, Rankings) and rankings.items != self.items_:
            raise RankingError("X names its items differently from the training data; align them: X.with_items(items)")
        return Rankings._trusted(rankings.ranks, self.items_, rankings.counts)

    def _read(self, X: Any, reset: bool) -> Rankings:
        """Return the rankings, having refused in scikit-learn's own words what is no table of numbers."""
        is_frame = hasattr(X, "columns")
        if not isinstance(X, Rankings) and not is_frame:
            X = check_array(X, ensure_all_finite="allow-nan", estimator=self)
        rankings = as_rankings(X)
        validate_data(self, X if is_frame else rankings.ranks, reset=reset, skip_check_array=True)
        return rankings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # whole numbers
        tags.input_tags.allow_nan = True  # an item that is not ranked
        return tags


class KernelTransformer(RankingTransformer):
    """A transformer with a kernel, whose parameters can be reached as ``kernel__nu``."""

    kernel: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if ``deep``, those of the kernel, too."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            params |= {f"kernel__{name}": value for name, value in getattr(self.kernel, "params", {}).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__nu`` replaces the kernel by one with another nu."""
        inside = {name: params.pop(name) for name in list(params) if name.startswith("kernel__")}
        super().set_params(**params)
        if inside:
            changes = {name.removeprefix("kernel__"): value for name, value in inside.items()}
            self.kernel = self.kernel.replace(**changes)
        return self
