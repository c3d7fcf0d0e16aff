"""The law of a distance between random completions: with it, the mean of any function of the distance is exact."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from rankernel.gram.overlap import Overlap, Shape

__all__ = ["DistanceLaw"]


class DistanceLaw(ABC):
    """The exact distribution of an integer distance between independent uniform completions of two rankings."""

    name: str
    distance: str

    @abstractmethod
    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether two rankings of these shapes have an exact law here, at a cost worth paying."""

    @abstractmethod
    def pmf(self, overlap: Overlap) -> NDArray[np.float64]:
        """Return the probability of each distance 0, 1, ..., up to the largest that n items can have."""
