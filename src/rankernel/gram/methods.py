"""How to compute a Gram matrix is an object, which can be printed, compared and passed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rankernel._utils.checks import check_choice, check_flag, check_instance, check_integer, check_number, short_repr
from rankernel._utils.rng import Seed, as_seed
from rankernel.completions.couplings import COUPLINGS
from rankernel.completions.draws import CompletionModel, Uniform


@dataclass(frozen=True)
class Limited:
    """What may enumerate completions, up to a limit."""

    limit: int = 2**24

    def __post_init__(self) -> None:
        check_integer("limit", self.limit, 0, 2**63 - 1)


@dataclass(frozen=True)
class Exact(Limited):
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

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True)
class Enumeration(Limited):
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

    def __str__(self) -> str:
        return "enumeration of all completions"


@dataclass(frozen=True)
class Mixed:
    """Exact where a pair has an exact value, estimated elsewhere.

    More precise than one estimator for all, but no longer the Gram matrix of anything: it may have negative
    eigenvalues.

    Parameters
    ----------
    estimate : MonteCarlo, optional
        The estimate; ``MonteCarlo()`` if left out.

    Examples
    --------
    >>> from rankernel import Mallows, Mixed, Rankings
    >>> Mallows(nu=0.0).gram(Rankings([[0, 1, 1], [0, 1, -1]]), method=Mixed())  # here all entries are exact
    array([[1., 1.],
           [1., 1.]])
    """

    estimate: MonteCarlo | None = None

    def __post_init__(self) -> None:
        if self.estimate is not None:
            check_instance("estimate", self.estimate, MonteCarlo, "a MonteCarlo(...), or None")

    def __str__(self) -> str:
        return "exact where possible, estimated elsewhere" + (f": {self.estimate}" if self.estimate else "")


@dataclass(frozen=True)
class MonteCarlo:
    """Estimation from draws of the completions of each ranking.

    The paper's two estimators are ``MonteCarlo(m, coupling="iid", control_variates=0)`` and
    ``MonteCarlo(m, coupling="antithetic", control_variates=0)``. The draws belong to the ranking: they depend on it and on the
    seed alone, so that equal rankings share them, and the Gram matrix is positive semi-definite whatever they are.
    Between different rankings the estimate is unbiased. That of a ranking with itself, or with an equal one, is the
    squared length of a sampled embedding: biased upwards, by the variance of the embedding (for independent draws by
    (1 - K)/m, appendix B of the paper).

    Parameters
    ----------
    n_draws : int
        Full rankings for each partial one; an antithetic pair counts two.
    coupling : {"auto", "iid", "antithetic", "orthogonal", "latin", "herding"}
        How the draws of one ranking depend on each other; "auto" is what serves the kernel best.
    control_variates : {"auto", 0, 1, 2}
        Up to which degree the coordinates of the embedding are replaced by their exact values, where the kernel has
        such coordinates; "auto" is the highest degree that is not too large for the number of items.
    completions : CompletionModel
        The distribution p(.|R) of the completions of a ranking.
    rng : int or Generator
        Where the draws come from.
    distinct_rows : bool
        Whether equal rankings in different rows get draws of their own: then they depend on the row, too.
    diagonal : {"embedding", "unbiased"}
        The entry of a ranking with itself: the squared length of its embedding, which keeps the matrix positive
        semi-definite, or from pairs of independent draws only, which makes it unbiased.
    replicates : int
        How many independent estimates of so many draws are averaged: their cost grows with their number, that of
        draws with its square.

    Examples
    --------
    The mean of two antithetic draws of two tied items is exact: one draw has them one way round, the other the other.

    >>> from rankernel import Mallows, MonteCarlo, Rankings
    >>> method = MonteCarlo(n_draws=2, coupling="antithetic", control_variates=0)
    >>> Mallows(nu=1.0).gram(Rankings([[0, 0], [0, 1]]), method=method).round(4)
    array([[0.6839, 0.6839],
           [0.6839, 1.    ]])
    """

    n_draws: int = 64
    coupling: str = "auto"
    control_variates: int | Literal["auto"] = "auto"
    completions: CompletionModel = field(default_factory=Uniform)
    rng: Seed = 0
    distinct_rows: bool = False
    diagonal: Literal["embedding", "unbiased"] = "embedding"
    replicates: int = 1

    def __post_init__(self) -> None:
        check_integer("n_draws", self.n_draws)
        check_integer("replicates", self.replicates)
        check_choice("coupling", self.coupling, ("auto", *COUPLINGS))
        check_choice("diagonal", self.diagonal, ("embedding", "unbiased"))
        check_flag("distinct_rows", self.distinct_rows)
        if (
            not isinstance(self.control_variates, int | str)
            or self.control_variates not in ("auto", 0, 1, 2)
            or self.control_variates is True
        ):
            raise ValueError(
                f"control_variates={short_repr(self.control_variates)} is not possible; it is 0, 1, 2 or 'auto'"
            )
        if not isinstance(self.completions, CompletionModel):
            raise TypeError(f"completions={self.completions!r} is no completion model; give one such as Uniform()")
        if self.control_variates not in ("auto", 0) and not isinstance(self.completions, Uniform):
            raise ValueError("exact moments are known for uniform completions only; use control_variates=0")
        object.__setattr__(self, "rng", as_seed(self.rng))

    def __str__(self) -> str:
        text = f"Monte Carlo, {self.n_draws} draws of each ranking, {self.coupling}"
        if self.replicates > 1:
            text = f"Monte Carlo, {self.replicates} times {self.n_draws} draws of each ranking, {self.coupling}"
        if self.control_variates:
            text += f", exact moments up to degree {self.control_variates}"
        if not isinstance(self.completions, Uniform):
            text += f", completions by {self.completions}"
        return f"{text}, seed {self.rng}"


@dataclass(frozen=True)
class Auto:
    """What ``method="auto"`` is: exact, unless that takes both some seconds and many times what the estimate takes.

    Both times are predicted from the same small model on every machine, so that a decision can be repeated anywhere.

    Parameters
    ----------
    patience : float
        Seconds on one core that exact values may take whatever the estimate would take.
    ratio : float
        How many times as long as the estimate they may take.
    estimate : MonteCarlo
        The estimate.

    Examples
    --------
    >>> from rankernel import Auto, Mallows, MonteCarlo, Rankings
    >>> ballots = Rankings([[0, 1, 1], [0, 1, -1]])
    >>> print(Mallows(0.5).plan(ballots, method=Auto(patience=0, ratio=0, estimate=MonteCarlo(8))).method)
    Monte Carlo, 8 draws of each ranking, antithetic, exact moments up to degree 2, seed 0
    """

    patience: float = 10.0
    ratio: float = 20.0
    estimate: MonteCarlo = field(default_factory=MonteCarlo)

    def __post_init__(self) -> None:
        check_number("patience", self.patience, 0)
        check_number("ratio", self.ratio, 0)
        check_instance("estimate", self.estimate, MonteCarlo, "a MonteCarlo(...)")

    def __str__(self) -> str:
        return "auto"


Method: TypeAlias = Exact | Enumeration | Mixed | MonteCarlo
MethodLike: TypeAlias = Literal["auto", "exact", "enumeration", "mixed"] | Method | Auto

NAMED: dict[str, Method | Auto] = {"auto": Auto(), "exact": Exact(), "enumeration": Enumeration(), "mixed": Mixed()}


def as_method(method: MethodLike) -> Method | Auto:
    """Return the object that a method is, by its name or as it is."""
    if isinstance(method, str):
        if method not in NAMED:
            raise ValueError(
                f"method={short_repr(method)} is not known; there are {', '.join(map(repr, NAMED))} and MonteCarlo(...)"
            )
        return NAMED[method]
    if not isinstance(method, Method | Auto):
        raise TypeError(
            f"method={short_repr(method)} is no method; use one of {', '.join(map(repr, NAMED))} or MonteCarlo(...)"
        )
    return method
