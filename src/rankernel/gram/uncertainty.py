"""How sure an estimate is: standard errors, and how many draws a wanted one takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankernel.completions.streams import stream_key
from rankernel.errors import ExactnessError
from rankernel.gram.blocks import fill
from rankernel.gram.by_monte_carlo import MonteCarloEvaluator
from rankernel.gram.choose import Choice, choose
from rankernel.gram.evaluator import Evaluator, FloatArray, Tile
from rankernel.gram.methods import Exact, Method
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.problem import Problem

__all__ = ["enough_draws", "errors"]

FEWEST_BLOCKS = 8  # below, the spread between blocks of draws says too little about the error
REPLICATES = 8
PILOT = 32
MOST_DRAWS = 2**16


def errors(problem: Problem, choice: Choice, threads: int | None) -> FloatArray:
    """Return the standard error of each entry of the matrix of distinct rankings."""
    method, evaluator = choice
    out = np.zeros((len(problem.X), len(problem.Y)))
    if not isinstance(evaluator, MonteCarloEvaluator):
        if not isinstance(method, Exact) and "Monte Carlo" in evaluator.description:
            out[:] = np.nan  # a mixture does not say which of its entries are estimates
        return out
    if evaluator.n_groups() >= FEWEST_BLOCKS:
        fill(
            [out],
            lambda tile: [evaluator.errors(problem.kernel, tile)],
            evaluator.tile_side,
            problem.symmetric,
            threads,
        )
        return out
    return spread_of_replicates(problem, evaluator.method, threads)


def spread_of_replicates(problem: Problem, method: MonteCarlo, threads: int | None) -> FloatArray:
    """Return the standard deviation of the estimator over independent repetitions of all draws."""
    runs = []
    for number in range(REPLICATES):
        again = replace(method, seed=int(stream_key(int(method.seed), f"replicate {number}")))  # type: ignore[arg-type]
        _, evaluator = choose(problem.kernel, problem.X, problem.Y, again)
        value = np.empty((len(problem.X), len(problem.Y)))

        def compute(tile: Tile, evaluator: Evaluator = evaluator) -> list[FloatArray]:
            return [evaluator.values([problem.kernel], tile)[0]]

        fill([value], compute, evaluator.tile_side, problem.symmetric, threads)
        runs.append(value)
    return np.asarray(np.std(runs, axis=0, ddof=1))


def enough_draws(problem: Problem, method: MonteCarlo, tol: float, threads: int | None) -> tuple[Method, Evaluator]:
    """Return the method with so many draws that no standard error is above ``tol``."""
    if not tol > 0:
        raise ValueError(f"tol={tol} is not possible; it is the largest standard error, above 0")
    n_draws = PILOT
    while True:
        trial = replace(method, n_draws=n_draws)
        choice = choose(problem.kernel, problem.X, problem.Y, trial)
        worst = float(errors(problem, choice, threads).max(initial=0.0))
        if worst <= tol:
            return choice
        if n_draws >= MOST_DRAWS:
            raise ExactnessError(
                f"{n_draws} draws of each ranking leave a standard error of {worst:.2g}, above tol={tol:g}; "
                "accept a larger tol, or give n_draws"
            )
        # The variance goes down as one over the number of draws; the factor covers the error of the error.
        wanted = 1.2 * n_draws * (worst / tol) ** 2
        n_draws = int(min(max(2 * -(-wanted // 2), 2 * n_draws), MOST_DRAWS))
