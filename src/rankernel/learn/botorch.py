"""Bayesian optimisation over permutations: a BoTorch model with a kernel on rankings, and local search by swaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_instance, check_integer
from rankernel._utils.rng import Seed, as_seed
from rankernel.errors import missing_extra
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.learn.gpytorch import RankingKernel

try:
    import botorch
    import torch
    from botorch.acquisition import LogExpectedImprovement
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

# Few values fit any width, and a very large one makes all permutations alike: it should stay within a factor of about
# ten of where it starts.
SPREAD = 1.0
WIDEST = 1000.0


@dataclass(frozen=True, eq=False)
class PermutationSearch:
    """What a search over permutations found.

    Attributes
    ----------
    best : array of shape (n_items,)
        The permutation of the smallest value: the position of each item.
    value : float
        The smallest value.
    ranks : array of shape (n_evaluations, n_items)
        All permutations that were evaluated, in order.
    values : array of shape (n_evaluations,)
        Their values.
    kernel : Kernel
        The kernel as it was last fitted.
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
    kernel: Kernel | None = None,
    n_initial: int | None = None,
    n_starts: int = 8,
    rng: Seed = 0,
) -> PermutationSearch:
    """Minimise a costly function of permutations by Bayesian optimisation.

    A Gaussian process with a kernel on rankings is fitted to what is known, its parameters by marginal likelihood and a
    broad prior around their start; the next permutation is one of largest expected improvement, found by local search
    over swaps of two positions from the best permutations so far and from random ones. No permutation is evaluated
    twice.

    Parameters
    ----------
    objective : callable
        Takes a permutation (the position 0, ..., n_items - 1 of each item) and returns a number; small is good.
    n_items : int
        Number of items.
    n_evaluations : int
        How often the objective is called; at most n_items! times.
    kernel : Kernel, optional
        The kernel; Mallows if left out, which suits costs that depend on which of two items comes first. On small
        tours and assignments it did no better than chance: there use ``Exponential("hamming")``.
    n_initial : int, optional
        Random permutations to begin with; ``n_items`` if left out.
    n_starts : int
        Local searches for each new permutation; half of them start from the best ones so far.
    rng : int, Generator or None
        Seed of the random permutations.

    Examples
    --------
    >>> found = optimize_permutations(lambda ranks: abs(ranks - [2, 0, 1]).sum(), n_items=3, n_evaluations=6)
    >>> found.best, found.value
    (array([2, 0, 1]), 0.0)
    """
    check_instance("objective", objective, Callable, "a function of a permutation")
    check_sizes(n_items, n_evaluations)
    n_first = n_items if n_initial is None else check_integer("n_initial", n_initial)
    check_integer("n_starts", n_starts)
    given = as_kernel(Mallows() if kernel is None else kernel)
    generator = np.random.default_rng(as_seed(rng))
    ranks = initial_permutations(n_items, min(n_first, n_evaluations), generator)
    values = np.array([value_of(objective, row) for row in ranks])
    start = now = given.resolve(ranks)
    while len(values) < n_evaluations:
        improvement, now = fitted_improvement(ranks, values, start)
        new = most_promising(improvement, ranks, values, n_starts, generator)
        ranks = np.vstack([ranks, new])
        values = np.append(values, value_of(objective, new))
    best = int(np.argmin(values))
    return PermutationSearch(ranks[best], float(values[best]), ranks, values, now)


def check_sizes(n_items: int, n_evaluations: int) -> None:
    """Refuse more evaluations than there are permutations."""
    check_integer("n_items", n_items, least=2)
    check_integer("n_evaluations", n_evaluations)
    n_permutations = 1
    for factor in range(2, n_items + 1):
        n_permutations *= factor
        if n_permutations >= n_evaluations:
            break
    if n_evaluations > n_permutations:
        raise ValueError(
            f"n_evaluations={n_evaluations} is not possible: there are {n_permutations} permutations of {n_items} items"
        )


def value_of(objective: Callable[[IntArray], float], ranks: IntArray) -> float:
    """Return the value of a permutation, refusing what cannot be compared."""
    value = float(objective(ranks))
    if not math.isfinite(value):
        raise ValueError(f"objective is {value} at {ranks.tolist()}; it must be a finite number")
    return value


def initial_permutations(n_items: int, number: int, rng: np.random.Generator) -> IntArray:
    """Return distinct random permutations."""
    found: dict[bytes, IntArray] = {}
    while len(found) < number:
        row = rng.permutation(n_items)
        found.setdefault(row.tobytes(), row)
    return np.stack(list(found.values()))


# ---------------------------------------------------------------------- model


def ranking_process(ranks: IntArray, values: FloatArray, kernel: Kernel) -> tuple[SingleTaskGP, RankingKernel]:
    """Return a Gaussian process of what is to be minimised, before it is fitted, and the kernel inside it."""
    X = torch.as_tensor(ranks, dtype=torch.float64)
    y = torch.as_tensor(-values)[:, None]  # BoTorch maximises
    limits = {
        name: Interval(value / WIDEST, min(value * WIDEST, kernel.bounds[name][1]), transform=None)
        for name, value in kernel.params.items()
    }
    module = RankingKernel(kernel, constraints=limits).double()
    for name, value in kernel.params.items():
        module.register_prior(f"{name}_prior", LogNormalPrior(math.log(value), SPREAD), name)
    with botorch.settings.validate_input_scaling(False):  # ranks are no points of the unit cube
        return SingleTaskGP(X, y, covar_module=ScaleKernel(module)), module


def fitted_improvement(ranks: IntArray, values: FloatArray, kernel: Kernel) -> tuple[Score, Kernel]:
    """Return the logarithm of the expected improvement of permutations, and the fitted kernel."""
    model, module = ranking_process(ranks, values, kernel)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acquisition = LogExpectedImprovement(model, best_f=-values.min())

    def score(candidates: IntArray) -> FloatArray:
        with torch.no_grad():
            found = acquisition(torch.as_tensor(candidates, dtype=torch.float64)[:, None, :])
        return np.asarray(found.numpy())

    return score, module.current()


# ---------------------------------------------------------------------- search


def most_promising(
    score: Score, ranks: IntArray, values: FloatArray, n_starts: int, rng: np.random.Generator
) -> IntArray:
    """Return the best permutation that local searches find and that has not been evaluated."""
    known = {row.tobytes() for row in ranks}
    best = ranks[np.argsort(values, kind="stable")[: (n_starts + 1) // 2]]
    random = np.stack([rng.permutation(ranks.shape[1]) for _ in range(max(n_starts - len(best), 1))])
    places = np.vstack([best, random])
    heights = masked(score, places, known)
    climbing = np.arange(len(places))
    while len(climbing):
        around = np.stack([swapped(place) for place in places[climbing]])
        scores = masked(score, around.reshape(-1, around.shape[2]), known).reshape(around.shape[:2])
        steps = scores.argmax(axis=1)
        reached = scores.max(axis=1)
        higher = reached > heights[climbing]
        moved = climbing[higher]
        places[moved], heights[moved] = around[higher, steps[higher]], reached[higher]
        climbing = moved
    found = places[int(np.argmax(heights))]
    return found if found.tobytes() not in known else unknown_permutation(ranks.shape[1], known, rng)


def masked(score: Score, candidates: IntArray, known: set[bytes]) -> FloatArray:
    """Return the scores of candidates, minus infinity for those that have been evaluated."""
    distinct, inverse = np.unique(candidates, axis=0, return_inverse=True)
    scores = np.where([row.tobytes() in known for row in distinct], -np.inf, score(distinct))
    return np.asarray(scores[inverse.ravel()])


def swapped(place: IntArray) -> IntArray:
    """Return all permutations that differ by a swap of two positions."""
    pairs = list(combinations(range(len(place)), 2))
    around = np.repeat(place[None], len(pairs), axis=0)
    for row, (a, b) in zip(around, pairs, strict=True):
        row[a], row[b] = place[b], place[a]
    return around


def unknown_permutation(n_items: int, known: set[bytes], rng: np.random.Generator) -> IntArray:
    """Return a random permutation that has not been evaluated."""
    while True:
        row = rng.permutation(n_items)
        if row.tobytes() not in known:
            return row
