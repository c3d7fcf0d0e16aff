"""How to compute a Gram matrix is an object, which can be printed, compared and passed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from rankernel.gram.monte_carlo import MonteCarlo

__all__ = ["Enumeration", "Exact", "MethodLike", "Mixed"]


@dataclass(frozen=True)
class Exact:
    """The exact value: in closed form, or by enumeration where the completions are few.

    Parameters
    ----------
    limit : int
        The most kernel evaluations that enumeration may take for the whole matrix.

    Examples
    --------
    >>> from rankernel import Exact, Kendall, Rankings
    >>> Kendall().gram(Rankings([[0, 1, 1], [1, 0, 1]]), method=Exact()).round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]])
    """

    limit: int = 2**24

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True)
class Enumeration:
    """The exact value by listing all completions of every ranking once, and averaging over all pairs of them.

    Parameters
    ----------
    limit : int
        The most kernel evaluations it may take for the whole matrix: the completions of all rows times those of all
        columns.

    Examples
    --------
    >>> from rankernel import Enumeration, Kendall, Rankings
    >>> Kendall().gram(Rankings([[0, 1, 1], [1, 0, 1]]), method=Enumeration()).round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]])
    """

    limit: int = 2**24

    def __str__(self) -> str:
        return "enumeration of all completions"


@dataclass(frozen=True)
class Mixed:
    """Exact where a pair has an exact value, estimated elsewhere.

    More precise than one estimator for all, but no longer the Gram matrix of anything: it may have negative
    eigenvalues.

    Examples
    --------
    >>> from rankernel import Mallows, Mixed, Rankings
    >>> Mallows(nu=0.0).gram(Rankings([[0, 1, 1], [0, 1, -1]]), method=Mixed())  # here all entries are exact
    array([[1., 1.],
           [1., 1.]])
    """

    def __str__(self) -> str:
        return "exact where possible, estimated elsewhere"


Method: TypeAlias = "Exact | Enumeration | Mixed | MonteCarlo"
MethodLike: TypeAlias = 'Literal["auto", "exact", "enumeration", "mixed"] | Method'
