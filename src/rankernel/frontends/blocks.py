"""What a Gaussian process library asks of a kernel: blocks of one Gram matrix, one at a time, with derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import ExactnessError, SamplingWarning
from rankernel.gram.choose import BUDGET, choose
from rankernel.gram.compute import computed, gradients
from rankernel.gram.estimate import diagonal_tiles
from rankernel.gram.evaluator import Evaluator
from rankernel.gram.methods import Exact, MethodLike
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.gram.problem import Problem, pose, warn_if_indefinite
from rankernel.kernels.base import MEDIAN, Kernel
from rankernel.rankings import Rankings, as_rankings

__all__ = ["Block", "GramBlocks"]

FloatArray = NDArray[np.float64]
Block = tuple[FloatArray, dict[str, FloatArray]]  # values, and their derivative in each parameter
Answer = TypeVar("Answer")

CLOSED_FORM = Exact(limit=0)  # nothing is enumerated
KEPT = 2  # evaluators at hand: while a model is trained, it is always the same block, with other parameters


class GramBlocks:
    """A kernel whose parameters move, on training and test rankings that are seen apart.

    "auto" is the closed form where the first block has one, else draws; which moments the draws correct depends on the
    number of items alone, and the draws of a ranking on the seed and the ranking, so that all blocks fit together.
    Where a later block has no closed form, there is a warning, and draws serve from then on.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    method : as in :meth:`Kernel.gram`
        How to average over completions.
    data : Rankings or array of ranks, optional
        Training data: settles the width "median" and the method "auto".

    Examples
    --------
    >>> from rankernel import Mallows
    >>> blocks = GramBlocks(Mallows(1.0))
    >>> value, slopes = blocks.gram(Mallows(2.0), Rankings([[0, 1]]), Rankings([[1, 0]]), gradient=True)
    >>> value, slopes["nu"]  # exp(-nu) and its derivative
    (array([[0.13533528]]), array([[-0.13533528]]))
    """

    def __init__(self, kernel: Kernel, method: MethodLike = "auto", data: Any = None) -> None:
        self.kernel = numeric(kernel if data is None else kernel.resolve(data))
        self.asked = method
        self.method: MethodLike = CLOSED_FORM if method == "auto" else method
        self.n_used = 0
        self._recent: dict[tuple[Rankings, Rankings | None], tuple[Problem, Evaluator]] = {}
        if data is not None:
            self._attempt(as_rankings(data), None, lambda *_: None)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_recent": {}}  # evaluators hold functions, which do not pickle

    def gram(self, kernel: Kernel, X: Rankings, Y: Rankings | None = None, gradient: bool = False) -> Block:
        """Return a block for a kernel with these parameters, and its derivatives if asked for."""

        def run(problem: Problem, evaluator: Evaluator) -> Block:
            now = replace(problem, kernel=kernel)
            value = computed(now, evaluator, None, np.float64, None)
            return value, gradients(now, evaluator, None) if gradient else {}

        warn_if_indefinite(kernel, X.n_items)
        return self._attempt(X, Y, run)

    def diagonal(self, kernel: Kernel, X: Rankings, gradient: bool = False) -> Block:
        """Return the kernel of each ranking with itself, and the derivatives if asked for."""

        def run(problem: Problem, evaluator: Evaluator) -> Block:
            parts = [
                diagonal_tile(kernel, evaluator, tile, gradient) for tile in diagonal_tiles(len(problem.X), evaluator)
            ]
            names = list(kernel.params) if gradient else []
            rows = slice(None) if problem.rows is None else problem.rows
            value = np.concatenate([np.empty(0), *(part[0] for part in parts)])[rows]
            return value, {name: np.concatenate([part[1][name] for part in parts])[rows] for name in names}

        return self._attempt(X, None, run)

    def drawing(self, n_items: int) -> MonteCarlo | None:
        """Return the method by which completions are drawn, nothing left open, or None if nothing is drawn."""
        method = self.method
        if not isinstance(method, MonteCarlo):
            return None
        if method.distinct_rows:
            raise ValueError(
                "training and test data are seen apart, so draws cannot depend on the row; "
                "use MonteCarlo(distinct_rows=False)"
            )
        one = Rankings(np.zeros((1, n_items), dtype=np.int32))
        return method.settled(self.kernel, one, one)

    # ------------------------------------------------------------------ steps

    def _attempt(self, X: Rankings, Y: Rankings | None, run: Callable[[Problem, Evaluator], Answer]) -> Answer:
        """Return what comes out, by draws where "auto" finds no closed form or one that gives up at some width."""
        try:
            answer = run(*self._posed(X, Y))
        except ExactnessError as error:
            if self.asked != "auto" or isinstance(self.method, MonteCarlo):
                raise
            if self.n_used:
                warnings.warn(
                    f"earlier blocks are exact, but here {error}; draws are used from now on. For one method "
                    "throughout, give method=MonteCarlo(...)",
                    SamplingWarning,
                    stacklevel=2,
                )
            self.method = MonteCarlo()
            self._recent.clear()
            answer = run(*self._posed(X, Y))
        self.n_used += 1
        return answer

    def _posed(self, X: Rankings, Y: Rankings | None) -> tuple[Problem, Evaluator]:
        """Return the problem of a block and its evaluator, which serves all parameters."""
        key = (X, Y)
        if key not in self._recent:
            method = self.drawing(X.n_items) or self.method
            problem = pose(self.kernel, X, Y, method)
            _, evaluator = choose(problem.kernel, problem.X, problem.Y, method)
            if self.asked == "auto" and evaluator.work(BUDGET) > BUDGET:
                raise ExactnessError(f"the closed form of {self.kernel} takes very long")
            while len(self._recent) >= KEPT:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = problem, evaluator
        return self._recent[key]


def numeric(kernel: Kernel) -> Kernel:
    """Return a kernel whose width is a number, refusing one that depends on the data."""
    if MEDIAN in kernel.params.values():
        raise ValueError(
            f"the width of {kernel} depends on the data, and training and test data are seen apart; "
            "give the training rankings: data=X"
        )
    return kernel


def diagonal_tile(kernel: Kernel, evaluator: Evaluator, rows: slice, gradient: bool) -> Block:
    """Return one part of the diagonal and its derivatives."""
    value = np.diagonal(evaluator.values([kernel], (rows, rows))[0])
    slopes = evaluator.gradients(kernel, (rows, rows)) if gradient else {}
    return value, {name: np.diagonal(slope) for name, slope in slopes.items()}
