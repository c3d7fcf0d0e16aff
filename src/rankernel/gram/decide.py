"""The decisions of a plan: which method is used for which rankings, all in one module.

The choice for one row never depends on the other rows of a batch, so that predictions for single rows and for many rows
agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from rankernel._utils.arrays import Indices
from rankernel.completions.couplings import coupling_named
from rankernel.completions.draws import Uniform
from rankernel.completions.partial_orders import FEW_DOWN_SETS
from rankernel.errors import (
    Argument,
    ArgumentValueError,
    ExactnessError,
    IndefiniteKernelWarning,
    SamplingWarning,
    warn,
)
from rankernel.gram.blocks import slices
from rankernel.gram.evaluator import Evaluator, MixedEvaluator
from rankernel.gram.exact.choice import NoExactValue, closed_form, enumerated, exact_evaluator
from rankernel.gram.methods import DEFAULT, Auto, Enumeration, Exact, Method, Mixed, MonteCarlo
from rankernel.gram.montecarlo.draws import highest_degree
from rankernel.gram.montecarlo.evaluator import MonteCarloEvaluator, estimate_seconds
from rankernel.gram.rows import PartialOrders, Rows, rows_by_shape
from rankernel.kernels.base import Kernel

EXACT = Exact()
MIN_BLOCKS = 8  # independent blocks of draws for a standard error; set by benchmarks/coverage.py
OWN_EVALUATIONS = 2**20  # affordable kernel evaluations for the exact value of one ranking with itself: about 10 ms
COMPLETIONS_HELD = 2**20  # completions that are enumerated at once


def decide(
    kernel: Kernel, X: Rows, Y: Rows, requested: Method | Auto, paired: bool = False
) -> tuple[Method, MonteCarlo | None, Evaluator, str]:
    """Return the resolved method, the fallback for rankings without an exact value, the evaluator and the reason.

    Parameters
    ----------
    kernel : Kernel
        The kernel, its parameters numbers.
    X, Y : Rows
        The distinct rows and columns.
    requested : method
        The requested method.
    paired : bool
        Whether only the entries of row i with column i are needed, which is cheaper than the matrix.

    Returns
    -------
    method : Exact, Enumeration, Mixed or MonteCarlo
        The method that is used.
    fallback : MonteCarlo or None
        The estimator where there is no exact value; None if exact values were requested.
    evaluator : Evaluator
        What computes the matrix.
    reason : str
        The reason for not using exact values, if "auto" decided so.
    """
    if isinstance(requested, MonteCarlo):
        method = resolve(requested, kernel, X, Y)
        return method, None, MonteCarloEvaluator(method, kernel, X, Y), ""
    if isinstance(requested, Mixed):
        fallback = resolve(requested.fallback, kernel, X, Y)
        mixed = Mixed(fallback)
        return mixed, fallback, build(kernel, X, Y, mixed, fallback), ""
    if not isinstance(requested, Auto):
        return requested, None, build(kernel, X, Y, requested, None), ""
    fallback = resolve(requested.fallback, kernel, X, Y)
    found = exact_evaluator(kernel, X, Y, EXACT.limit, certain=True)
    if isinstance(found, Evaluator):
        share = 1 / max(len(Y), 1) if paired else 1.0
        seconds = share * found.seconds(len(X), len(Y))
        if seconds <= requested.max_seconds:
            return EXACT, fallback, found, ""
        estimate = share * estimate_seconds(fallback, kernel, X.n_items, len(X), len(Y))
        if seconds <= requested.max_ratio * estimate:
            return EXACT, fallback, found, ""
        reason = f"exact values would take approximately {seconds:.2g} s on one core, the estimate {estimate:.2g} s"
    else:
        reason = str(found)
    return fallback, fallback, MonteCarloEvaluator(fallback, kernel, X, Y), reason


def resolve(method: MonteCarlo, kernel: Kernel, X: Rows, Y: Rows) -> MonteCarlo:
    """Return a method with every "auto" replaced; the choice depends on the kernel and the number of items only."""
    coupling, degree = method.coupling, method.control_variates
    uniform = isinstance(method.completions, Uniform)
    orders = isinstance(X, PartialOrders) or isinstance(Y, PartialOrders)
    if orders and coupling not in ("auto", "iid"):
        raise ArgumentValueError("coupling", coupling, "'iid' or 'auto' for partial orders")
    if orders and degree == 2:
        raise ArgumentValueError("control_variates", degree, "1, 0 or 'auto' for partial orders")
    if coupling == "auto":
        coupling = kernel.facts(X.n_items).coupling if uniform and not orders else "iid"
        if coupling_named(coupling, kernel).block_size(X.n_items, method.n_draws) * MIN_BLOCKS > method.n_draws:
            coupling = "iid"
    if degree == "auto":
        degree = highest_degree(kernel, X.n_items) if uniform else 0
        degree = min(degree, order_degree(X.n_items)) if orders else degree
    return replace(method, coupling=coupling, control_variates=degree)


def resolve_for_orders(method: MonteCarlo, n_items: int) -> MonteCarlo:
    """Return a method that was resolved for rankings adapted to partial orders."""
    return replace(method, coupling="iid", control_variates=min(int(method.control_variates), order_degree(n_items)))


def order_degree(n_items: int) -> int:
    """Return the degree of the control variates whose means are affordable for every partial order of n items."""
    return 1 if 2**n_items <= FEW_DOWN_SETS else 0  # at most 2^n down-sets


# ---------------------------------------------------------------------- evaluators


def build(kernel: Kernel, X: Rows, Y: Rows, method: Method, fallback: MonteCarlo | None) -> Evaluator:
    """Return the evaluator of a resolved method."""
    match method:
        case MonteCarlo():
            return MonteCarloEvaluator(method, kernel, X, Y)
        case Mixed():
            return mixed_evaluator(kernel, X, Y, method.fallback)
        case Enumeration():
            listed = enumerated(kernel, X, Y, method.limit)
            if isinstance(listed, NoExactValue):
                raise ExactnessError(
                    f"{kernel}: {listed.what}; use ", Argument("method", DEFAULT), ", or a higher limit"
                )
            return listed
    if fallback is not None and X is not Y:
        return row_evaluator(kernel, X, Y, method.limit, fallback)
    found = exact_evaluator(kernel, X, Y, method.limit, certain=fallback is not None)
    if isinstance(found, NoExactValue):
        raise ExactnessError(f"{found}; use ", Argument("method", DEFAULT), ", or a higher limit")
    return found


def mixed_evaluator(kernel: Kernel, X: Rows, Y: Rows, fallback: MonteCarlo) -> Evaluator:
    """Return exact values for pairs of kinds that have them: rankings with and without free items are two kinds."""
    if isinstance(X, PartialOrders) or isinstance(Y, PartialOrders):
        raise ArgumentValueError("method", "mixed", "'auto', 'exact' or MonteCarlo(n_draws) for partial orders")
    sides = [[np.flatnonzero(side.n_free == 0), np.flatnonzero(side.n_free > 0)] for side in (X, Y)]
    evaluators = {
        (i, j): decide(kernel, X[sides[0][i]], Y[sides[1][j]], Auto(fallback=fallback))[2]
        for i, j in product(range(2), range(2))
        if len(sides[0][i]) and len(sides[1][j])
    }
    if len({isinstance(each, MonteCarloEvaluator) for each in evaluators.values()}) > 1:
        problem = "exact and estimated entries are mixed, so the matrix may have negative eigenvalues; "
        warn((problem, Argument("method", "auto"), " uses one method for all entries"), IndefiniteKernelWarning)
    return MixedEvaluator((len(X), len(Y)), sides[0], sides[1], evaluators)


def row_evaluator(kernel: Kernel, Z: Rows, X: Rows, limit: int, fallback: MonteCarlo) -> Evaluator:
    """Return exact values for new rows that have them with all columns, and estimates for the other rows."""
    closed = closed_form(kernel, Z, X, certain=True)
    if isinstance(closed, Evaluator):
        return closed
    kinds: list[list[Indices]] = [[], [], []]
    for rows in rows_by_shape(Z):
        if isinstance(closed_form(kernel, Z[rows[:1]], X, certain=True), Evaluator):
            kinds[0].append(rows)
        else:
            few = isinstance(enumerated(kernel, Z[rows[:1]], X, limit), Evaluator)
            kinds[1 if few else 2].append(rows)
    groups = [np.sort(np.concatenate([np.empty(0, dtype=np.intp), *kind])) for kind in kinds]
    if len(groups[2]):
        problem = f"{len(groups[2])} of {len(Z)} new rankings have no exact value with the old ones"
        advice = (f" and are estimated: {fallback}; for one method throughout, use ", Argument("method", fallback))
        warn((problem, *advice), SamplingWarning)
    evaluators: dict[tuple[int, int], Evaluator] = {}
    for number, rows in enumerate(groups):
        if len(rows):
            some = Z[rows]
            found = (
                closed_form(kernel, some, X, certain=True)
                if number == 0
                else enumerated(kernel, some, X, limit * len(rows))
                if number == 1
                else MonteCarloEvaluator(fallback, kernel, some, X)
            )
            assert isinstance(found, Evaluator)
            evaluators[number, 0] = found
    return MixedEvaluator((len(Z), len(X)), groups, [np.arange(len(X))], evaluators)


def own_evaluators(
    kernel: Kernel, X: Rows, method: Exact | Enumeration | Mixed, fallback: MonteCarlo | None
) -> Iterator[tuple[Indices, Evaluator]]:
    """Yield groups of rankings, and evaluators whose diagonals are the kernel of each ranking with itself.

    Rankings of one shape are treated alike. Those without an exact value form the last group, which is estimated.
    """
    limit = method.limit if fallback is None and not isinstance(method, Mixed) else OWN_EVALUATIONS
    estimated = []
    for rows in rows_by_shape(X):
        closed = closed_form(kernel, X[rows], X[rows], certain=fallback is not None)
        if isinstance(closed, Evaluator):
            yield rows, closed
            continue
        one = enumerated(kernel, X[rows[:1]], X[rows[:1]], limit)
        if isinstance(one, NoExactValue):
            estimated.append(rows)
            continue
        step = max(COMPLETIONS_HELD // len(one.left.ranks), 1)
        for part in slices(len(rows), step):
            some = X[rows[part]]
            listed = enumerated(kernel, some, some, limit * len(some) ** 2)
            assert isinstance(listed, Evaluator)
            yield rows[part], listed
    if estimated:
        rest = np.sort(np.concatenate(estimated))
        if fallback is None:
            raise ExactnessError(
                f"{len(rest)} of {len(X)} rankings have no exact value of {kernel} with themselves; use ",
                Argument("method", "auto"),
                " or ",
                Argument("method", DEFAULT),
            )
        yield rest, MonteCarloEvaluator(fallback, kernel, X[rest], X[rest])
