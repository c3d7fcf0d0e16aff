"""Methods: objects that specify how a Gram matrix is computed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeAlias

from rankernel._utils.checks import Seed, as_seed, check_choice, check_instance, check_integer, check_number
from rankernel.completions.draws import COUPLINGS, CompletionModel, Uniform
from rankernel.errors import ArgumentTypeError, ArgumentValueError

MAX_EVALUATIONS = 2**24


@dataclass(frozen=True)
class Exact:
    """The exact value: in closed form, or by enumeration where there are few completions.

    Parameters
    ----------
    limit : int
        The largest number of kernel evaluations that enumeration may take for the whole matrix.

    Examples
    --------
    >>> from rankernel import Exact, Kendall, Rankings
    >>> Kendall().gram(Rankings([[0, 1, 1], [1, 0, 1]]), method=Exact()).round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]])
    """

    limit: int = MAX_EVALUATIONS

    def __post_init__(self) -> None:
        check_integer("limit", self.limit, 0, 2**63 - 1)

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True)
class Enumeration:
    """The exact value as the mean over all pairs of completions, which are enumerated once for each ranking.

    Parameters
    ----------
    limit : int
        The largest number of kernel evaluations for the whole matrix: the number of completions of all rows times that
        of all columns.

    Examples
    --------
    >>> from rankernel import Enumeration, Kendall, Rankings
    >>> Kendall().gram(Rankings([[0, 1, 1], [1, 0, 1]]), method=Enumeration()).round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]])
    """

    limit: int = MAX_EVALUATIONS

    def __post_init__(self) -> None:
        check_integer("limit", self.limit, 0, 2**63 - 1)

    def __str__(self) -> str:
        return "enumeration of all completions"


@dataclass(frozen=True, repr=False)
class MonteCarlo:
    """Monte Carlo estimation from draws of the completions of each ranking.

    The paper's two estimators are ``MonteCarlo(m, coupling="iid", control_variates=0)`` and
    ``MonteCarlo(m, coupling="antithetic", control_variates=0)``. Draws depend on the ranking and the seed only, so that
    equal rankings share them and the Gram matrix remains positive semi-definite. Entries between different rankings are
    unbiased. The entry of a ranking with itself, or with an equal one, is the squared norm of a sampled embedding; its
    bias is the variance of the embedding ((1 - K)/m for independent draws, appendix B of the paper).

    Parameters
    ----------
    n_draws : int
        Number of draws per ranking; an antithetic pair counts two. The cost grows with its square.
    coupling : str
        Joint distribution of the draws of one ranking. "auto" is the coupling with the smallest variance for the kernel
        if it gives at least 8 independent blocks of draws, else "iid".

        {couplings}
    control_variates : {"auto", 0, 1, 2}
        Degree up to which coordinates of the embedding are replaced by their exact values, where the kernel has such
        coordinates; "auto" is the highest affordable degree.
    completions : CompletionModel
        The distribution p(.|R) of the completions of a ranking.
    rng : int, Generator or None
        Seed of the draws; a generator is drawn from once, None is random.
    diagonal : {"embedding", "unbiased"}
        The entry of a ranking with itself: the squared norm of the sampled embedding, which keeps the matrix positive
        semi-definite, or the mean over pairs of independent draws, which is unbiased.
    replicates : int
        Number of independent estimates that are averaged. The cost grows linearly.

    Examples
    --------
    The mean over two antithetic draws of two tied items is exact, because the draws are the two orders.

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
    diagonal: Literal["embedding", "unbiased"] = "embedding"
    replicates: int = 1

    def __post_init__(self) -> None:
        check_integer("n_draws", self.n_draws)
        check_integer("replicates", self.replicates)
        check_choice("coupling", self.coupling, ("auto", *COUPLINGS))
        check_choice("diagonal", self.diagonal, ("embedding", "unbiased"))
        degree = self.control_variates
        if not isinstance(degree, int | str) or degree not in ("auto", 0, 1, 2) or isinstance(degree, bool):
            raise ArgumentValueError("control_variates", degree, "0, 1, 2 or 'auto'")
        if not isinstance(self.completions, CompletionModel):
            raise ArgumentTypeError("completions", self.completions, "a completion model such as Uniform()")
        if degree not in ("auto", 0) and not isinstance(self.completions, Uniform):
            raise ArgumentValueError("control_variates", degree, "0 or 'auto', unless completions are uniform")
        object.__setattr__(self, "rng", as_seed(self.rng))

    def __repr__(self) -> str:
        changed = {one.name: getattr(self, one.name) for one in fields(self)}
        changed = {name: value for name, value in changed.items() if value != getattr(DEFAULT, name, None)}
        return f"MonteCarlo({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __str__(self) -> str:
        text = f"Monte Carlo, {self.n_draws} draw{'s' * (self.n_draws > 1)} per ranking"
        if self.replicates > 1:
            text += f" in each of {self.replicates} replicates"
        text += f", {self.coupling} coupling" if self.coupling != "iid" else ", independent draws"
        if self.control_variates:
            text += f", control variates of degree {self.control_variates}"
        if not isinstance(self.completions, Uniform):
            text += f", completions from {self.completions}"
        return f"{text}, seed {self.rng}"


if MonteCarlo.__doc__:  # absent with python -OO
    summaries = (f'- ``"{name}"``: {(kind.__doc__ or "").splitlines()[0]}' for name, kind in COUPLINGS.items())
    MonteCarlo.__doc__ = MonteCarlo.__doc__.replace("{couplings}", ("\n" + 8 * " ").join(summaries))


DEFAULT = MonteCarlo()


@dataclass(frozen=True)
class Auto:
    """The method "auto": exact values if these are affordable, else a Monte Carlo estimate.

    Exact values are affordable if they take at most ``max_seconds`` on one core, or at most ``max_ratio`` times as long
    as the estimate. Both times come from a fixed cost model, so that the decision is the same on every machine.

    Parameters
    ----------
    max_seconds : float
        Affordable time of exact values, in seconds on one core.
    max_ratio : float
        Affordable time of exact values, as a multiple of the time of the estimate.
    fallback : MonteCarlo
        The estimator.

    Examples
    --------
    >>> from rankernel import Auto, Mallows, MonteCarlo, Rankings
    >>> ballots = Rankings([[0, 1, 1], [0, 1, -1]])
    >>> method = Auto(max_seconds=0, max_ratio=0, fallback=MonteCarlo(16))
    >>> print(Mallows(0.5).plan(ballots, method=method).method)
    Monte Carlo, 16 draws per ranking, antithetic coupling, control variates of degree 2, seed 0
    """

    max_seconds: float = 10.0
    max_ratio: float = 20.0
    fallback: MonteCarlo = DEFAULT

    def __post_init__(self) -> None:
        check_number("max_seconds", self.max_seconds, 0)
        check_number("max_ratio", self.max_ratio, 0)
        check_instance("fallback", self.fallback, MonteCarlo, "a MonteCarlo(...)")

    def __str__(self) -> str:
        return "auto"


Method: TypeAlias = Exact | Enumeration | MonteCarlo
MethodLike: TypeAlias = Literal["auto", "exact", "enumeration"] | Method | Auto

NAMED: dict[str, Method | Auto] = {"auto": Auto(), "exact": Exact(), "enumeration": Enumeration()}


def as_method(method: MethodLike) -> Method | Auto:
    """Return the method object for a name or a method object."""
    if isinstance(method, str) and method in NAMED:
        return NAMED[method]
    if isinstance(method, Method | Auto):
        return method
    error = ArgumentValueError if isinstance(method, str) else ArgumentTypeError
    raise error("method", method, f"{', '.join(map(repr, NAMED))} or a method object such as MonteCarlo(n_draws)")


def unbiased_method(method: Method) -> Method:
    """Return a method whose estimates on the diagonal are unbiased."""
    return replace(method, diagonal="unbiased") if isinstance(method, MonteCarlo) else method
