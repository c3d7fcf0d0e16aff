"""Choosing the width of a kernel for a supervised task, from training data alone."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_choice, check_integer, check_labels, check_numbers, short_repr
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.kernels.named import as_kernel
from rankernel.learn.sklearn import SklearnKernel

STEPS = 2.0 ** np.arange(-4, 5)
SCALES = (1e-3, 1e3)


@dataclass(frozen=True, eq=False)
class NuSelection:
    """The kernel that was chosen, and why.

    Attributes
    ----------
    kernel : Kernel
        The kernel with the chosen width; the marginal likelihood chooses its other parameters, too.
    value : float
        The chosen width.
    values, scores : array
        The widths that were tried and the score of each, larger is better: the mean over the folds, or the logarithm
        of the marginal likelihood with everything else as chosen.
    parameter : str
        The name of the width in ``kernel.params``.
    criterion : {"cv", "marginal_likelihood"}
        What it was chosen by.
    """

    _repr_html_ = html_card

    kernel: Kernel
    value: float
    values: FloatArray
    scores: FloatArray
    parameter: str
    criterion: str


def select_nu(
    X: Any,
    y: Any,
    kernel: Kernel,
    criterion: Literal["cv", "marginal_likelihood"] = "cv",
    values: Any = None,
    parameter: str | None = None,
    cv: Any = 5,
    estimator: Any = None,
    scoring: Any = None,
    method: MethodLike = "auto",
    rng: Seed = 0,
) -> NuSelection:
    """Choose the width of a kernel by cross-validation or by the marginal likelihood of a Gaussian process.

    Give training data only: the data that a method is judged by must not choose its parameters.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        The training data, one label for each row.
    y : array
        Labels of classes, or real numbers.
    kernel : Kernel
        The kernel; a width "median" is where the search starts.
    criterion : {"cv", "marginal_likelihood"}
        Cross-validation tries each of ``values``. The marginal likelihood is climbed by its exact gradient.
    values : array, optional
        Widths to try: 1/16 to 16 times that of the kernel if left out.
    parameter : str, optional
        The name of the width in ``kernel.params``; needed if there is more than one nu.
    cv : int or splitter of scikit-learn
        The folds; a number means shuffled folds, stratified for classes.
    estimator : estimator with ``kernel="precomputed"``, optional
        What is cross-validated: SVC for classes, KernelRidge for numbers if left out.
    scoring : str or callable, optional
        The score of a fold, as in scikit-learn.
    method : as in :meth:`Kernel.gram`
        How Gram matrices are computed.
    rng : int
        The shuffling of the folds.

    Examples
    --------
    >>> from itertools import permutations
    >>> from rankernel import Mallows
    >>> X = np.array(list(permutations(range(4))))
    >>> chosen = select_nu(X, X[:, 0] < X[:, 1], Mallows())
    >>> chosen.value == chosen.values[np.argmax(chosen.scores)], chosen.kernel.nu == chosen.value
    (np.True_, True)
    """
    check_choice("criterion", criterion, ("cv", "marginal_likelihood"))
    data = as_data(X)
    labels = check_labels("y", y, len(data))
    if not hasattr(cv, "get_n_splits"):  # no splitter of scikit-learn
        check_integer("cv", cv, 2, max(len(data), 2))
    plan = as_kernel(kernel).plan(data, method=method)
    name = width_name(plan.kernel, parameter)
    grid = plan.kernel.params[name] * STEPS if values is None else check_numbers("values", values, (None,), 0)
    if not len(grid):
        raise ValueError("values is empty; give at least one width to try")
    if criterion == "cv":
        scores = cross_validated(plan, labels, name, grid, cv, estimator, scoring, as_seed(rng) % 2**32)
        best = float(grid[np.argmax(scores)])
        return NuSelection(plan.kernel.replace(**{name: best}), best, grid, scores, name, criterion)
    chosen, scores = most_likely(plan, data, labels, name, grid)
    return NuSelection(chosen, float(chosen.params[name]), grid, scores, name, criterion)


def width_name(kernel: Kernel, parameter: str | None) -> str:
    """Return the parameter to choose: as told, or the only width there is."""
    widths = [name for name in kernel.params if name.rpartition("__")[2] in ("nu", "beta")]
    if parameter is None and len(widths) == 1:
        return widths[0]
    if isinstance(parameter, str) and parameter in kernel.params:
        return str(parameter)
    known = ", ".join(kernel.params) or "none"
    raise ValueError(f"parameter={short_repr(parameter)} does not name one parameter of {kernel}; there are: {known}")


def is_classes(labels: NDArray[Any]) -> bool:
    """Say whether labels are classes rather than real numbers."""
    from sklearn.utils.multiclass import type_of_target

    return type_of_target(labels) in ("binary", "multiclass")


def cross_validated(
    plan: Plan,
    y: NDArray[Any],
    name: str,
    grid: FloatArray,
    cv: Any,
    estimator: Any,
    scoring: Any,
    seed: int,
) -> FloatArray:
    """Return the mean score of each width, on the same folds."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    classes = is_classes(y)
    if isinstance(cv, Integral):
        cv = (StratifiedKFold if classes else KFold)(int(cv), shuffle=True, random_state=seed)
    if estimator is None:
        estimator = SVC(kernel="precomputed") if classes else KernelRidge(alpha=0.1, kernel="precomputed")
    along: dict[str, Any] = {name: grid}
    matrices = plan.path(**along)
    return np.array([cross_val_score(estimator, matrix, y, cv=cv, scoring=scoring).mean() for matrix in matrices])


def most_likely(plan: Plan, X: Data, y: NDArray[Any], name: str, grid: FloatArray) -> tuple[Kernel, FloatArray]:
    """Return the kernel of the largest marginal likelihood, and its logarithm along the grid."""
    from scipy.optimize import minimize

    processes, prior, part = gaussian_processes(SklearnKernel(plan.kernel, plan.requested), X, y)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        parts = [process.log_marginal_likelihood(theta, eval_gradient=True) for process in processes]
        return -float(sum(value for value, _ in parts)), -np.sum([slope for _, slope in parts], axis=0)

    best = prior.clone_with_theta(minimize(loss, prior.theta, jac=True, bounds=prior.bounds, method="L-BFGS-B").x)
    chosen = best.get_params()[part].kernel
    along = [best.set_params(**{f"{part}__{name}": float(value)}).theta for value in grid]
    return chosen, np.array([-loss(theta)[0] for theta in along])


def gaussian_processes(ranking: SklearnKernel, X: Data, y: NDArray[Any]) -> tuple[list[Any], Any, str]:
    """Return Gaussian processes for labels (one for each class against the others), their kernel, and where it is."""
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

    scaled = ConstantKernel(1.0, SCALES) * ranking
    if not is_classes(y):
        noisy = scaled + WhiteKernel(0.1, SCALES)
        process = GaussianProcessRegressor(noisy, optimizer=None, normalize_y=True)
        return [process.fit(np.asarray(X), y)], noisy, "k1__k2"
    classes = np.unique(y)
    sides = [y == one for one in (classes[1:] if len(classes) == 2 else classes)]
    return [GaussianProcessClassifier(scaled, optimizer=None).fit(np.asarray(X), side) for side in sides], scaled, "k2"
