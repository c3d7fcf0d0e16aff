"""Diffusion kernels: the heat kernel of a graph whose nodes are the full rankings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_choice
from rankernel.distances import Distance
from rankernel.kernels.base import TUNABLE, Kernel, check_width, number
from rankernel.kernels.heat import (
    CYCLE_TYPES,
    Graph,
    check_n_items,
    heat_matrix,
    heat_matrix_derivative,
    transposition_heat,
    types_at,
)


@dataclass(frozen=True)
class Diffusion(Kernel):
    r"""Diffusion kernel :math:`\exp(-\beta L)` on a graph of rankings, L its Laplacian (Kondor and Barbosa 2010).

    In the graph of all ``"transpositions"`` two rankings are neighbours if swapping two items takes one to the other
    (up to 36 items); in that of ``"adjacent"`` ones the two items must stand next to each other (up to 9 items). The
    value is the probability that a random walk that swaps along each edge at rate 1 goes from one ranking to the other
    in time beta, so the kernel sums to one over all rankings. In no time at all only equal rankings are reached,
    whatever the number of items.

    Parameters
    ----------
    beta : float
        The time of the walk: large beta, a wide kernel.
    graph : {"transpositions", "adjacent"}
        Which swaps are edges.

    Examples
    --------
    >>> import numpy as np
    >>> Diffusion(beta=0.5).matrix(np.array([[0, 1]]), np.array([[0, 1], [1, 0]]))
    array([[0.68393972, 0.31606028]])
    """

    beta: float = field(default=0.1, metadata=TUNABLE)
    graph: Graph = "transpositions"

    def __post_init__(self) -> None:
        check_width("beta", self.beta)
        number("beta", self.beta)  # there is no distance to take the median of
        check_choice("graph", self.graph, ("transpositions", "adjacent"))

    @property
    def width(self) -> float:
        """Beta as a number."""
        return number("beta", self.beta)

    def check_n_items(self, n_items: int) -> None:
        """Refuse more items than the table of a walk can hold."""
        if self.width > 0:
            check_n_items(n_items, self.graph)

    @property
    def argument(self) -> Distance | None:
        """The lengths of cycles, in the graph of all transpositions."""
        return CYCLE_TYPES if self.graph == "transpositions" and self.width > 0 else None

    def at_distance(self, d: NDArray[Any], n_items: int) -> FloatArray:
        """Return the value for each cycle type."""
        return transposition_heat(n_items, self.width).values[types_at(d, n_items)]

    def slopes_at_distance(self, d: NDArray[Any], n_items: int) -> dict[str, FloatArray]:
        """Return the derivative for each cycle type."""
        return {"beta": transposition_heat(n_items, self.width).slopes[types_at(d, n_items)]}

    @property
    def formula(self) -> str:
        """The walk on its graph."""
        return f"diffusion-{self.graph}"

    positive = True

    @property
    def best_coupling(self) -> str:
        """Reversal helps where neighbours are adjacent swaps, as for Kendall; not for all swaps, as for Cayley."""
        return "antithetic" if self.graph == "adjacent" else "iid"

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the heat kernel between the rows of two arrays of full rankings."""
        return heat_matrix(X, Y, self.width, self.graph)

    def gradient(self, X: RankArray, Y: RankArray) -> dict[str, FloatArray]:
        """Return the derivative in beta."""
        return {"beta": heat_matrix_derivative(X, Y, self.width, self.graph)}
