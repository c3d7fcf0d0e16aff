"""Bayesian optimization over permutations with BoTorch and a kernel on rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import erfcx, ndtr
from threadpoolctl import threadpool_limits

from rankernel._utils import FloatArray, IntArray
from rankernel._utils.checks import Seed, as_seed, check_instance, check_integer
from rankernel.errors import missing_extra
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.learn.gpytorch import RankingKernel

try:
    import botorch
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import Interval
    from gpytorch.kernels import ScaleKernel
    from gpytorch.mlls import ExactMarginalLogLikelihood
    from gpytorch.priors import LogNormalPrior
except ModuleNotFoundError as error:
    if error.name not in ("botorch", "torch", "gpytorch"):
        raise
    raise missing_extra("BoTorch", "gpytorch") from None

Score = Callable[[IntArray], FloatArray]

PRIOR_SD = 1.0  # of the logarithm of a kernel parameter around its initial value
BOUND = 1000.0  # largest factor between a kernel parameter and its initial value


@dataclass(frozen=True, eq=False)
class PermutationSearch:
    """The result of :func:`optimize_permutations`.

    Attributes
    ----------
    best : array of shape (n_items,)
        The permutation with the smallest value: the position of each item.
    value : float
        The smallest value.
    ranks : array of shape (n_evaluations, n_items)
        All evaluated permutations, in order.
    values : array of shape (n_evaluations,)
        Their values.
    kernel : Kernel
        The kernel with the parameters of the last fit.
    """

    best: IntArray
    value: float
    ranks: IntArray
    values: FloatArray
    kernel: Kernel


def optimize_permutations(
    objective: Callable[[IntArray], float],
    n_items: int,
    n_evaluations: int,
    *,
    kernel: Kernel | str = "mallows",
    n_initial: int | None = None,
    n_starts: int = 8,
    rng: Seed = 0,
) -> PermutationSearch:
    """Minimize an expensive function of permutations by Bayesian optimization.

    A Gaussian process with a kernel on rankings is fitted to the evaluations by maximum a posteriori, with a weak prior
    around the initial kernel parameters. The next permutation maximizes the expected improvement, by local search over
    swaps of two positions from the best permutations so far and from random ones. No permutation is evaluated twice.

    Parameters
    ----------
    objective : callable
        Maps a permutation (the position 0, ..., n_items - 1 of each item) to a number to minimize.
    n_items : int
        The number of items.
    n_evaluations : int
        The number of calls of the objective, at most n_items!.
    kernel : Kernel or str
        The kernel. Mallows, the default, suits costs that depend on the order of pairs of items, such as schedules. For
        tours and assignments use ``Exponential("hamming")``, which compares positions.
    n_initial : int, optional
        The number of random permutations evaluated first; ``n_items`` by default.
    n_starts : int
        The number of local searches for each new permutation, half of them from the best permutations so far.
    rng : int, Generator or None
        Seed of the random permutations. The default 0 gives the same result in every call.

    Returns
    -------
    PermutationSearch

    Examples
    --------
    >>> result = optimize_permutations(lambda ranks: abs(ranks - [2, 0, 1]).sum(), n_items=3, n_evaluations=6)
    >>> result.best, result.value
    (array([2, 0, 1]), 0.0)
    """
    check_instance("objective", objective, Callable, "a function of a permutation")
    check_integer("n_items", n_items, least=2)
    check_integer("n_evaluations", n_evaluations)
    if n_items < 13 and n_evaluations > math.factorial(n_items):  # 13! is above the largest accepted integer
        raise ValueError(
            f"n_evaluations={n_evaluations} is not possible: there are {math.factorial(n_items)} permutations of "
            f"{n_items} items"
        )
    n_first = n_items if n_initial is None else check_integer("n_initial", n_initial)
    check_integer("n_starts", n_starts)
    given = as_kernel(kernel)
    generator = np.random.default_rng(as_seed(rng))
    ranks = initial_permutations(n_items, min(n_first, n_evaluations), generator)
    values = np.array([evaluate(objective, row) for row in ranks])
    start = fitted = given.resolve(ranks)
    while len(values) < n_evaluations:
        with one_thread():
            improvement, fitted = fit_improvement(ranks, values, start)
            new = maximize(improvement, ranks, values, n_starts, generator)
        ranks = np.vstack([ranks, new])
        values = np.append(values, evaluate(objective, new))
    best = int(np.argmin(values))
    return PermutationSearch(ranks[best], float(values[best]), ranks, values, fitted)


def evaluate(objective: Callable[[IntArray], float], ranks: IntArray) -> float:
    """Return the value of a permutation, or raise if it is not finite."""
    value = float(objective(ranks))
    if not math.isfinite(value):
        raise ValueError(f"objective is {value} at {ranks.tolist()}; it must be a finite number")
    return value


def initial_permutations(n_items: int, number: int, rng: np.random.Generator) -> IntArray:
    """Return distinct random permutations."""
    drawn: dict[bytes, IntArray] = {}
    while len(drawn) < number:
        row = rng.permutation(n_items)
        drawn.setdefault(row.tobytes(), row)
    return np.stack(list(drawn.values()))


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for linear algebra: waiting for others takes longer than these small matrices."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(n_threads)


# ---------------------------------------------------------------------- model


def ranking_process(ranks: IntArray, values: FloatArray, kernel: Kernel) -> tuple[SingleTaskGP, RankingKernel]:
    """Return a Gaussian process of the negative objective, before it is fitted, and its kernel."""
    X = torch.as_tensor(ranks, dtype=torch.float64)
    y = torch.as_tensor(-values)[:, None]  # BoTorch maximizes
    constraints = {
        name: Interval(value / BOUND, min(value * BOUND, kernel.bounds[name][1]), transform=None)
        for name, value in kernel.params.items()
    }
    module = RankingKernel(kernel, constraints=constraints).double()
    for name, value in kernel.params.items():
        prior = LogNormalPrior(math.log(value), PRIOR_SD)
        module.register_prior(f"{name}_prior", prior, partial(RankingKernel.value_of, name=name))
    with botorch.settings.validate_input_scaling(False):  # ranks are not scaled to the unit cube
        return SingleTaskGP(X, y, covar_module=ScaleKernel(module)), module


def fit_improvement(ranks: IntArray, values: FloatArray, kernel: Kernel) -> tuple[Score, Kernel]:
    """Return the logarithm of the expected improvement as a function of permutations, and the fitted kernel.

    The improvement is in units of the standard deviation of the values. BoTorch's acquisition function computes the
    covariances of all candidates with each other; only the variances are needed here.
    """
    model, module = ranking_process(ranks, values, kernel)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    fitted, targets = module.current(), model.train_targets.numpy()
    mean, scale = float(model.mean_module.constant.detach()), float(model.covar_module.outputscale.detach())
    noise = float(model.likelihood.noise.detach())
    factor = cho_factor(scale * fitted.gram(ranks) + noise * np.eye(len(ranks)), lower=True)
    weights = cho_solve(factor, targets - mean)

    def score(candidates: IntArray) -> FloatArray:
        cross = scale * fitted.gram(ranks, candidates)
        explained = (cross * cho_solve(factor, cross)).sum(axis=0)
        variances = scale * fitted.plan(candidates).diagonal() - explained
        deviations = np.sqrt(np.maximum(variances, 1e-12 * scale))
        return log_improvement((mean + weights @ cross - targets.max()) / deviations) + np.log(deviations)

    return score, fitted


def log_improvement(z: FloatArray) -> FloatArray:
    """Return log E max(Z, 0) for Z normal with mean z and variance 1: log(phi(z) + z Phi(z))."""
    density = -(z**2) / 2 - math.log(2 * math.pi) / 2
    low = np.minimum(z, -1.0)
    mills = math.sqrt(math.pi / 2) * erfcx(-low / math.sqrt(2))
    # 1 - |z| mills(|z|) cancels for large |z|, where it is 1 / z^2 - 3 / z^4 + ...
    rest = np.where(low < -1e3, 1 / low**2, 1 + low * mills)
    direct = np.exp(-(np.maximum(z, -1.0) ** 2) / 2) / math.sqrt(2 * math.pi) + np.maximum(z, -1.0) * ndtr(z)
    return np.asarray(np.where(z < -1, density + np.log(rest), np.log(direct)))


# ---------------------------------------------------------------------- local search


def maximize(score: Score, ranks: IntArray, values: FloatArray, n_starts: int, rng: np.random.Generator) -> IntArray:
    """Return the permutation of highest score found by local searches, other than those evaluated before."""
    n_items, known = ranks.shape[1], {row.tobytes() for row in ranks}
    best = ranks[np.argsort(values, kind="stable")[: (n_starts + 1) // 2]]
    random = np.stack([rng.permutation(n_items) for _ in range(max(n_starts - len(best), 1))])
    current = np.vstack([best, random])
    heights = new_scores(score, current, known)
    active = np.arange(len(current))
    while len(active):
        around = np.stack([swaps(row) for row in current[active]])
        scores = new_scores(score, around.reshape(-1, n_items), known).reshape(around.shape[:2])
        steps, reached = scores.argmax(axis=1), scores.max(axis=1)
        higher = reached > heights[active]
        moved = active[higher]
        current[moved], heights[moved] = around[higher, steps[higher]], reached[higher]
        active = moved
    result: IntArray = current[int(np.argmax(heights))]
    while result.tobytes() in known:
        result = rng.permutation(n_items)
    return result


def new_scores(score: Score, candidates: IntArray, known: set[bytes]) -> FloatArray:
    """Return the scores of candidates, minus infinity for those evaluated before."""
    distinct, inverse = np.unique(candidates, axis=0, return_inverse=True)
    scores = np.where([row.tobytes() in known for row in distinct], -np.inf, score(distinct))
    return np.asarray(scores[inverse.ravel()])


def swaps(ranks: IntArray) -> IntArray:
    """Return all permutations that differ by a swap of two positions."""
    pairs = list(combinations(range(len(ranks)), 2))
    neighbours = np.repeat(ranks[None], len(pairs), axis=0)
    for row, (a, b) in zip(neighbours, pairs, strict=True):
        row[a], row[b] = ranks[b], ranks[a]
    return neighbours
