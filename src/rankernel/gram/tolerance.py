"""As many draws as it takes: no error above a tolerance, in the least time.

On a few of the rankings it is tried which of the open choices (couplings, degrees of exact moments, numbers of draws)
gets there soonest. Errors are measured there rather than computed beforehand: the exact variances that are known
(:func:`rankernel.monte_carlo_variance`) are those of independent and antithetic draws without exact moments, off the
diagonal, and quick only for the Mallows kernel of rankings without free items, which is exact itself. What takes most
draws, the bias on the diagonal and what exact moments leave, they do not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.completions.draws import Uniform
from rankernel.errors import ExactnessError
from rankernel.gram.evaluator import BlockEstimate
from rankernel.gram.methods import Auto, MonteCarlo
from rankernel.gram.montecarlo.sampled import estimate_seconds
from rankernel.gram.normalize import Lengths, cosine_bars, lengths, own_numbers
from rankernel.gram.poset_rows import PartialOrders

if TYPE_CHECKING:
    from rankernel.gram.plan import Plan

MOST_DRAWS = 4096  # of one replicate: their cost grows with the square of their number
MOST_REPLICATES = 4096
STEP = 8.0  # times as many at once: an error is known the worse, the larger it is
SPARE = 1.2  # for the error of the error
OUT_OF_REACH = 1e-6  # of an error: how many draws a smaller part would take is of no interest
PILOT_ROWS = 8
PILOT_TIMES = (1, 4)  # as many draws as were asked for
A_PILOT = 0.02  # seconds that a try takes at least
WORTH_TRYING = 0.5  # of the time that was found so far: what further tries may take
# What may serve a kernel better than what serves it best without exact moments, or with fewer draws.
RIVALS = {"antithetic": ("antithetic", "orthogonal", "iid"), "latin": ("latin", "iid")}


@dataclass(frozen=True, eq=False)
class Measured:
    """The matrix of a plan with its errors, and the lengths it was divided by, if it was."""

    plan: Plan
    bars: BlockEstimate
    sides: tuple[Lengths, Lengths] | None

    @property
    def estimator(self) -> MonteCarlo | None:
        """What is estimated by draws; None if nothing is."""
        estimated = self.sides is not None and any((side.error > 0).any() for side in self.sides)
        return self.plan.estimator or (self.plan.rest_by if estimated else None)

    @property
    def worst(self) -> float:
        """The largest error of all."""
        return float(self.bars.error.max(initial=0.0))

    @property
    def biased(self) -> float:
        """The largest error of a ranking with itself, or an equal one, if there is a bias in it."""
        estimator = self.plan.estimator
        if self.sides is not None or estimator is None or estimator.diagonal == "unbiased":
            return 0.0
        own = np.equal.outer(*own_numbers(self.plan))
        return float(self.bars.error[own].max(initial=0.0))


def measured(plan: Plan, normalize: bool, n_jobs: int | None) -> Measured:
    """Return the matrix of a plan with its errors."""
    found = plan.filled(lambda tile: estimate_matrices(plan, tile), 3, n_jobs)
    value, error, unreliable = (plan.spread(matrix) for matrix in found)
    bars = BlockEstimate(value, error, unreliable > 0)
    if not normalize:
        return Measured(plan, bars, None)
    sides = lengths(plan, np.diagonal(value).copy() if plan.symmetric else None)
    return Measured(plan, cosine_bars(plan, bars, sides, n_jobs), sides)


def estimate_matrices(plan: Plan, tile: Any) -> list[FloatArray]:
    """Return values, errors and doubts of a tile as matrices."""
    bars = plan.evaluator.estimate_block(plan.kernel, tile)
    return [bars.value, bars.error, bars.unreliable.astype(np.float64)]


def within(plan: Plan, tol: float, normalize: bool, n_jobs: int | None) -> Measured:
    """Return the matrix with no error above a tolerance, by as many draws as that takes."""
    plan = soonest(plan, tol, normalize)
    while True:
        found = measured(plan, normalize, n_jobs)
        if found.estimator is None or found.worst <= tol:
            return found
        plan = plan.with_estimator(one_step(found, found.estimator, tol))


def one_step(found: Measured, method: MonteCarlo, tol: float) -> MonteCarlo:
    """Return the method with more draws, or refuse a tolerance that is out of reach."""
    wanted = needed(found, method, tol)
    if found.biased > tol and method.n_draws >= MOST_DRAWS:
        raise ExactnessError(
            f"{method} leaves an error of {found.biased:.2g} where a ranking meets itself, above tol={tol:g}: the bias "
            "that keeps the matrix positive semi-definite; accept a larger tol, leave the bias out by "
            "MonteCarlo(diagonal='unbiased'), or use method='exact'"
        )
    if method.replicates >= MOST_REPLICATES:
        raise ExactnessError(
            f"{method} leaves a standard error of {found.worst:.2g}, above tol={tol:g}; accept a larger tol, or use "
            "method='exact'"
        )
    n_draws = min(wanted.n_draws, int(STEP * method.n_draws), MOST_DRAWS)
    n_replicates = min(wanted.replicates, int(STEP * method.replicates), MOST_REPLICATES)
    if n_draws > method.n_draws:  # what they leave is seen then
        return replace(method, n_draws=n_draws)
    return replace(method, replicates=max(n_replicates, method.replicates + 1))


def needed(found: Measured, method: MonteCarlo, tol: float) -> MonteCarlo:
    """Return the method with so many draws that no error should be above a tolerance, however many they are.

    The bias of a ranking with itself falls with the number of draws, the variance also with that of replicates, which
    cost less.
    """
    tol = max(tol, OUT_OF_REACH * found.worst)
    more = max(SPARE * found.biased / tol, 1.0) if found.biased > tol else 1.0
    n_draws = 2 * -(-int(method.n_draws * more) // 2) if more > 1 else method.n_draws
    left = found.worst / tol / more**0.5
    replicates = int(np.ceil(SPARE * method.replicates * left**2)) if left > 1 and found.worst > tol else 1
    return replace(method, n_draws=n_draws, replicates=max(replicates, method.replicates))


def soonest(plan: Plan, tol: float, normalize: bool) -> Plan:
    """Return the plan with the choices that reach a tolerance the soonest, as far as they were left open.

    What would take too large a part of what was found so far is not tried.
    """
    if not (isinstance(plan.method, MonteCarlo) and len(plan.X) and len(plan.Y)):
        return plan
    some = [side[np.unique(np.linspace(0, len(side) - 1, PILOT_ROWS).astype(int))] for side in (plan.X, plan.Y)]
    few = replace(plan, X=some[0], Y=some[0] if plan.symmetric else some[1], rows=None, columns=None)
    best, least, spent = plan, np.inf, 0.0
    for method in open_choices(plan, plan.method):
        trying = A_PILOT + seconds(few, method)
        if spent + trying > WORTH_TRYING * least:
            continue
        spent += trying
        pilot = measured(replace(few, method=method), normalize, None)
        wanted = needed(pilot, method, tol) if pilot.worst > tol else method
        time = seconds(plan, wanted)
        if time < least:
            best, least = plan.with_estimator(starting(method, wanted)), time
    return best


def open_choices(plan: Plan, method: MonteCarlo) -> Iterator[MonteCarlo]:
    """Return the methods that are possible, what was settled first."""
    asked = plan.requested.estimate if isinstance(plan.requested, Auto) else plan.requested
    assert isinstance(asked, MonteCarlo)
    rankings = not isinstance(plan.X, PartialOrders) and not isinstance(plan.Y, PartialOrders)
    free = asked.coupling == "auto" and rankings and isinstance(method.completions, Uniform)
    couplings = RIVALS.get(method.coupling, (method.coupling,)) if free else (method.coupling,)
    degrees = (
        range(int(method.control_variates), -1, -1)
        if asked.control_variates == "auto"
        else (int(method.control_variates),)
    )
    for times, degree, coupling in product(PILOT_TIMES, degrees, couplings):
        yield replace(method, n_draws=times * method.n_draws, coupling=coupling, control_variates=degree)


def seconds(plan: Plan, method: MonteCarlo) -> float:
    """Return about how long a plan takes with a method, errors and all; forever if that is beyond what is done."""
    if method.n_draws > MOST_DRAWS or method.replicates > MOST_REPLICATES:
        return np.inf
    n_own = len(plan.X) if plan.symmetric else 0
    return estimate_seconds(method, plan.kernel, plan.X.n_items, len(plan.X), len(plan.Y), n_own)


def starting(method: MonteCarlo, wanted: MonteCarlo) -> MonteCarlo:
    """Return what to begin with: as many draws as are wanted; replicates are added to what is there."""
    return replace(method, n_draws=wanted.n_draws)
