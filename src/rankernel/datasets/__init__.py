"""Simulated rankings: models to sample from, and a bundled synthetic election."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from numbers import Integral
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.checks import (
    Seed,
    as_generator,
    check_array,
    check_choice,
    check_integer,
    check_list,
    check_number,
    check_numbers,
    short_repr,
)
from rankernel._utils.notebook import html_card
from rankernel._utils.resources import check_bytes, run_interruptibly
from rankernel.data import concat
from rankernel.errors import RankingError
from rankernel.rankings import Rankings, Unlisted, as_full_ranking, as_rankings, check_items, row_slices

__all__ = [
    "Example",
    "Mixture",
    "load_example",
    "mallows",
    "mixture",
    "plackett_luce",
    "truncate",
    "uniform",
]

NAME_BYTES = 80  # memory of an item name


# ---------------------------------------------------------------------- models


def uniform(n_rankings: int, n_items: int, *, rng: Seed = 0, items: Iterable[object] | None = None) -> Rankings:
    r"""Draw full rankings from the uniform distribution, :math:`P(r) = 1 / n!`.

    Parameters
    ----------
    n_rankings, n_items : int
        Number of rankings and number of items.
    rng : int, numpy.random.Generator or None
        Random generator or its seed; the same seed gives the same rankings.
    items : iterable of names, optional
        Names of the items; by default the numbers from 0.

    Returns
    -------
    Rankings
        ``n_rankings`` full rankings.

    Examples
    --------
    >>> rankings = uniform(60_000, 3, rng=0)
    >>> sorted(round(count / 10_000, 1) for count in rankings.unique().counts.tolist())
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    names = item_names(items, check_integer("n_items", n_items))
    ranks = draw_permutations(check_integer("n_rankings", n_rankings, 0), n_items, as_generator(rng))
    return Rankings._trusted(ranks, names)


def mallows(
    n_rankings: int,
    center: Any,
    theta: float,
    *,
    distance: Literal["kendall", "hamming", "cayley"] = "kendall",
    rng: Seed = 0,
    items: Iterable[object] | None = None,
) -> Rankings:
    r"""Draw full rankings from a Mallows model, :math:`P(r) \propto \exp(-\theta\, d(r, c))`, exactly.

    All three distances are invariant under relabelling of the items. The model is therefore sampled around the identity
    and the items are then relabelled by the center.

    Parameters
    ----------
    n_rankings : int
        Number of rankings.
    center : array of shape (n_items,), Rankings of one row, or int
        Ranks of the modal ranking, item by item; an integer n stands for the identity of n items, 0 > 1 > 2 > ...
    theta : float
        Dispersion parameter; 0 gives the uniform distribution.
    distance : {"kendall", "hamming", "cayley"}
        Number of discordant pairs, number of items of different rank, or minimal number of transpositions.
    rng : int, numpy.random.Generator or None
        Random generator or its seed; the same seed gives the same rankings.
    items : iterable of names, optional
        Names of the items; by default the numbers from 0.

    Returns
    -------
    Rankings
        ``n_rankings`` full rankings.

    Examples
    --------
    With Kendall's distance, the center of three items has the probability 1 / ((1 + q)(1 + q + q²)), q = exp(-theta):

    >>> rankings = mallows(100_000, [2, 0, 1], theta=np.log(2), rng=0)
    >>> bool(abs((rankings.ranks == [2, 0, 1]).all(axis=1).mean() - 1 / (1.5 * 1.75)) < 0.005)
    True
    """
    draw = AROUND_IDENTITY[check_choice("distance", distance, AROUND_IDENTITY)]
    if isinstance(center, Integral):
        ranks = np.arange(check_integer("center", center, 1), dtype=np.int32)
        names = item_names(items, len(ranks))
    else:
        modal = as_full_ranking(center)
        ranks, names = modal.ranks[0], modal.items if items is None else item_names(items, modal.n_items)
    n_rows, rate = check_integer("n_rankings", n_rankings, 0), check_number("theta", theta, 0)
    check_table(n_rows, len(ranks), n_tables=2)
    around = run_interruptibly(draw, n_rows, len(ranks), rate, as_generator(rng))
    return Rankings._trusted(run_interruptibly(np.take, around, ranks, 1), names)


@np.errstate(under="ignore")
def kendall_around_identity(n_rankings: int, n_items: int, theta: float, rng: np.random.Generator) -> RankArray:
    """Draw by repeated insertion: an item overtakes j earlier ones with probability proportional to exp(-theta j)."""
    ranks = np.zeros((n_rankings, n_items), dtype=np.int32)
    weights = np.exp(-theta * np.arange(n_items))
    for item in range(1, n_items):
        rank = item - draw_by_weight(weights[: item + 1], n_rankings, rng)[:, None]
        ranks[:, :item] += ranks[:, :item] >= rank
        ranks[:, item] = rank[:, 0]
    return ranks


def cayley_around_identity(n_rankings: int, n_items: int, theta: float, rng: np.random.Generator) -> RankArray:
    """Draw by cycles: each item opens a cycle, or joins that of an earlier item by a swap of weight exp(-theta)."""
    ranks = np.tile(np.arange(n_items, dtype=np.int32), (n_rankings, 1))
    rows = np.arange(n_rankings)
    weights = np.full(n_items, np.exp(-theta))
    weights[0] = 1
    for item in range(1, n_items):
        partner = item - draw_by_weight(weights[: item + 1], n_rankings, rng)
        ranks[rows, item] = ranks[rows, partner]
        ranks[rows, partner] = item
    return ranks


def hamming_around_identity(n_rankings: int, n_items: int, theta: float, rng: np.random.Generator) -> RankArray:
    """Draw the number of items that move, then these items, then a derangement of them."""
    n_moved = draw_by_weight(n_moved_weights(n_items, theta), n_rankings, rng)
    moved_first = draw_permutations(n_rankings, n_items, rng)
    shifted = draw_derangements(n_moved, n_items, rng)
    ranks = np.empty((n_rankings, n_items), dtype=np.int32)
    np.put_along_axis(ranks, moved_first, np.take_along_axis(moved_first, shifted, axis=1), axis=1)
    return ranks


def n_moved_weights(n_items: int, theta: float) -> FloatArray:
    r"""Return weights proportional to :math:`\binom{n}{m} D_m e^{-\theta m}` for m = 0..n, D_m the derangements of m.

    The first two factors are n! times :math:`\frac{1}{(n-m)!} \sum_{i \le m} \frac{(-1)^i}{i!}`. The weights are scaled
    by their largest exponential factor, so that nothing overflows.
    """
    numbers = np.arange(1, n_items + 1)
    deranged_share = np.cumsum(np.cumprod(np.concatenate(([1.0], -1 / numbers))))
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(numbers))))
    log_weights = -log_factorial[::-1] - theta * np.arange(n_items + 1)
    return np.asarray(deranged_share * np.exp(log_weights - log_weights.max()))


def draw_derangements(sizes: Indices, n_items: int, rng: np.random.Generator) -> Indices:
    """Return uniform derangements of the first ``sizes[i]`` positions of row i; the later positions stay fixed.

    By rejection, which takes e = 2.718... rounds on average.
    """
    positions = np.arange(n_items)
    result = np.tile(positions, (len(sizes), 1))
    pending = np.flatnonzero(sizes)
    while len(pending):
        fixed = positions >= sizes[pending, None]
        # Keys above 1 sort the fixed positions behind all others.
        order = np.argsort(rng.random(fixed.shape) + fixed, axis=1)
        order = np.where(fixed, positions, order)
        deranged = ((order == positions) == fixed).all(axis=1)
        result[pending[deranged]] = order[deranged]
        pending = pending[~deranged]
    return result


AROUND_IDENTITY = {
    "kendall": kendall_around_identity,
    "hamming": hamming_around_identity,
    "cayley": cayley_around_identity,
}


def plackett_luce(
    n_rankings: int, weights: ArrayLike, *, rng: Seed = 0, items: Iterable[object] | None = None
) -> Rankings:
    r"""Draw full rankings from the Plackett-Luce model, exactly.

    The order :math:`a_1 \succ a_2 \succ \dots \succ a_n` has the probability
    :math:`\prod_i w_{a_i} / (w_{a_i} + w_{a_{i+1}} + \dots + w_{a_n})`.

    Parameters
    ----------
    n_rankings : int
        Number of rankings.
    weights : array of shape (n_items,)
        A positive weight for each item; only their ratios matter.
    rng : int, numpy.random.Generator or None
        Random generator or its seed; the same seed gives the same rankings.
    items : iterable of names, optional
        Names of the items; by default the numbers from 0.

    Returns
    -------
    Rankings
        ``n_rankings`` full rankings.

    Examples
    --------
    Each item comes first with its share of the total weight:

    >>> rankings = plackett_luce(100_000, [1, 3, 6], rng=0)
    >>> (rankings.ranks == 0).mean(axis=0).round(2)
    array([0.1, 0.3, 0.6])
    """
    given = positive_weights(weights)
    names = item_names(items, len(given))
    rng = as_generator(rng)
    check_table(check_integer("n_rankings", n_rankings, 0), len(given))
    ranks = np.empty((n_rankings, len(given)), dtype=np.int32)
    # Sorting by log(w) plus Gumbel noise is sorting by exponential arrival times of rates w.
    for rows in row_slices(ranks.shape):  # in blocks, so that interrupts are handled
        keys = np.log(given) + rng.gumbel(size=ranks[rows].shape)
        ranks[rows] = np.argsort(np.argsort(-keys, axis=1), axis=1)
    return Rankings._trusted(ranks, names)


# ---------------------------------------------------------------------- mixtures and truncation


class Component(Protocol):
    """A sampler of rankings, such as ``functools.partial(mallows, center=10, theta=1)``."""

    def __call__(self, n_rankings: int, /, *, rng: np.random.Generator) -> Rankings:
        """Return the given number of rankings."""
        ...


class Mixture(NamedTuple):
    """A sample from a mixture.

    Attributes
    ----------
    rankings : Rankings
        The rankings.
    components : array of shape (n_rankings,)
        The index of the component of each ranking.
    """

    rankings: Rankings
    components: Indices

    def __repr__(self) -> str:
        return f"from {len(np.unique(self.components))} components: {self.rankings}"

    def _repr_html_(self) -> str:
        """Return the representation in a notebook."""
        return html_card(self)


def mixture(
    n_rankings: int, components: Sequence[Component], weights: ArrayLike | None = None, *, rng: Seed = 0
) -> Mixture:
    r"""Draw rankings from a mixture, :math:`P(r) = \sum_j w_j P_j(r)`.

    Parameters
    ----------
    n_rankings : int
        Number of rankings.
    components : sequence of callables
        Each is called as ``component(n_rankings, rng=generator)`` and returns rankings of the same items.
    weights : array of shape (n_components,), optional
        Mixture weights, which are normalised; equal by default.
    rng : int, numpy.random.Generator or None
        Random generator or its seed. Each component has its own stream.

    Returns
    -------
    Mixture
        ``rankings``, and ``components``: the index of the component of each ranking.

    Examples
    --------
    >>> from functools import partial
    >>> up, down = (partial(mallows, center=center, theta=50) for center in ([0, 1, 2], [2, 1, 0]))
    >>> rankings, components = mixture(4, [up, down], weights=[1, 1], rng=3)
    >>> components
    array([0, 0, 1, 1])
    >>> rankings.ranks
    array([[0, 1, 2],
           [0, 1, 2],
           [2, 1, 0],
           [2, 1, 0]], dtype=int32)
    """
    samplers = check_list("components", components, "a list of functions that draw rankings")
    if not samplers or not all(map(callable, samplers)):
        raise TypeError(
            f"components={short_repr(components)} is not possible; it must be a list of functions that draw rankings"
        )
    probabilities = normalised_weights(np.ones(len(samplers)) if weights is None else weights, "weights")
    if len(probabilities) != len(samplers):
        raise RankingError(
            f"weights has {len(probabilities)} entries for {len(samplers)} components; give one for each"
        )
    rng = as_generator(rng)
    chosen = draw_by_weight(probabilities, check_integer("n_rankings", n_rankings, 0), rng)
    sizes = np.bincount(chosen, minlength=len(samplers)).tolist()
    parts = [
        sampler(size, rng=own) for sampler, size, own in zip(samplers, sizes, rng.spawn(len(samplers)), strict=True)
    ]
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if len(part) != size:
            raise RankingError(f"components[{number}] returned {len(part)} rankings instead of {size}")
    position = np.argsort(np.argsort(chosen, kind="stable"))  # of each row in the concatenated parts
    return Mixture(concat(parts)[position], chosen)


def truncate(
    rankings: Any, lengths: int | ArrayLike | Mapping[int, float], *, rng: Seed = 0, unlisted: Unlisted = "last"
) -> Rankings:
    """Truncate each ranking to its first k positions, as :meth:`Rankings.top` does for one k.

    Parameters
    ----------
    rankings : Rankings or array of ranks
        Rankings to truncate. A row that counts for several voters is truncated once, for all of them.
    lengths : int, array of shape (n_rankings,), or mapping
        One length for all rows, one for each row, or the probability of each length, such as ``{1: 0.2, 3: 0.8}``,
        from which the length of every row is drawn.
    rng : int, numpy.random.Generator or None
        Random generator or its seed, used if lengths are drawn.
    unlisted : {"last", "free"}
        Whether the truncated items share the last bucket or become free.

    Returns
    -------
    Rankings
        The truncated rankings, with the same counts.

    Examples
    --------
    >>> truncate([[0, 1, 2, 3], [3, 2, 1, 0]], lengths=[1, 2])
    Rankings: 2 rankings of 4 items (2 top-k)
      0 > {1, 2, 3}
      3 > 2 > {0, 1}
    """
    given = as_rankings(rankings)
    of_row = row_lengths(lengths, len(given), as_generator(rng))
    ranks = np.array(given.ranks)
    for k in np.unique(of_row).tolist():
        rows = of_row == k
        ranks[rows] = given[rows].top(k, unlisted=unlisted).ranks
    return Rankings._trusted(ranks, given.items, given.counts)


def row_lengths(lengths: Any, n_rankings: int, rng: np.random.Generator) -> IntArray:
    """Return one length for each ranking."""
    if isinstance(lengths, Mapping):
        choices = np.array([check_integer("lengths", k, 0) for k in lengths], dtype=np.int64)
        return choices[draw_by_weight(normalised_weights(list(lengths.values()), "lengths"), n_rankings, rng)]
    given = check_array("lengths", lengths, "one length for all rankings, or one for each")
    if given.ndim == 0:
        return np.full(n_rankings, check_integer("lengths", given.item(), 0), dtype=np.int64)
    if given.shape != (n_rankings,):
        raise RankingError(
            f"lengths has shape {given.shape} for {n_rankings} rankings; give one length for each, one for all, or a "
            "mapping from lengths to probabilities"
        )
    numbers = check_numbers("lengths", given, (n_rankings,), 0)
    if (numbers != np.floor(numbers)).any():
        raise RankingError(f"lengths={short_repr(lengths)} is not possible; a length is an integer")
    return numbers.astype(np.int64)


# ---------------------------------------------------------------------- the bundled example

TIE = "|"  # between tied candidates in a cell of the file

CANDIDATES = ("Amberlow", "Brackmoor", "Cindervale", "Driftwell", "Eldermist", "Foxhollow", "Glimmerby", "Hazelmere")

DESCRIPTION = """\
The council election of Nowhere Bay: a synthetic example; the town, its voters and its candidates are invented.
2,400 voters of two districts rank eight candidates and leave out those they do not care about; some rank two
candidates equally. Each voter belongs to one of three blocs, which a real election would not tell: the harbour
(long ballots, Amberlow first), the orchard (short ballots, Eldermist first) and the foundry (ballots of middle length
with ties, Glimmerby first). The north has more harbour voters, the south more foundry voters. Cindervale is the first
choice of few but the second or third of many, and wins every head-to-head contest."""


class Example(NamedTuple):
    """The synthetic election: one row for each distinct ballot of a bloc in a district, with its number of voters.

    Attributes
    ----------
    rankings : Rankings
        The ballots; candidates that a voter does not list share the last bucket.
    groups : array of str
        The bloc from which the ballots of each row were drawn: "foundry", "harbour" or "orchard".
    districts : array of str
        The district of each row: "north" or "south".
    description : str
        A description in a few sentences.
    """

    rankings: Rankings
    groups: NDArray[np.str_]
    districts: NDArray[np.str_]
    description: str

    def __repr__(self) -> str:
        return f"{self.description}\n{self.rankings}"

    def _repr_html_(self) -> str:
        """Return the representation in a notebook."""
        return html_card(self)


def load_example() -> Example:
    """Load the bundled example, a synthetic election of 2,400 voters and eight candidates.

    Returns
    -------
    Example
        ``rankings``, ``groups``, ``districts`` and ``description``; groups and districts have one entry for each row.

    Examples
    --------
    >>> election = load_example()
    >>> election.rankings[:2]
    Rankings: 2 rankings from 31 voters of 8 items (2 top-k)
      17 × Glimmerby > Hazelmere > {Amberlow, Brackmoor, Cindervale, Driftwell, Eldermist, Foxhollow}
      14 × Glimmerby > Hazelmere > Cindervale > {Amberlow, Brackmoor, Driftwell, Eldermist, Foxhollow}
    >>> voters = election.rankings.counts
    >>> {bloc: int(voters[election.groups == bloc].sum()) for bloc in ("foundry", "harbour", "orchard")}
    {'foundry': 869, 'harbour': 886, 'orchard': 645}
    """
    lines = files("rankernel.datasets").joinpath("data", "nowhere_bay.csv").read_text(encoding="utf-8").splitlines()
    _, *rows = csv.reader(lines)
    districts, groups, counts = (np.array([row[column] for row in rows]) for column in range(3))
    orders = [[set(cell.split(TIE)) for cell in row[3:] if cell] for row in rows]
    ballots = Rankings.from_orders(orders, CANDIDATES, counts=counts.astype(np.int64))
    labels = {"district": districts, "group": groups}
    rankings = Rankings._trusted(ballots.ranks, ballots.items, ballots.counts, labels)
    return Example(rankings, groups, districts, DESCRIPTION)


# ---------------------------------------------------------------------- arguments and draws


def positive_weights(weights: ArrayLike) -> FloatArray:
    """Return one positive weight for each item."""
    given = check_numbers("weights", weights, (None,))
    if not given.size or given.min() <= 0:
        raise RankingError(
            f"weights={short_repr(weights)} is not possible; give one positive finite weight for each item"
        )
    return given


def normalised_weights(weights: ArrayLike, name: str) -> FloatArray:
    """Return nonnegative weights divided by their sum."""
    given = check_numbers(name, weights, (None,), 0)
    if not given.any():
        raise RankingError(
            f"{name}={short_repr(weights)} is not possible; give nonnegative weights, at least one above 0"
        )
    return np.asarray(given / given.sum())


def item_names(items: Iterable[object] | None, n_items: int) -> tuple[str, ...]:
    """Return the item names, by default the numbers from 0."""
    check_bytes(NAME_BYTES * n_items, f"n_items={n_items:,}", "take fewer")
    names = check_items(range(n_items) if items is None else items)
    if len(names) != n_items:
        raise RankingError(f"items: there are {len(names)} names for {n_items} items; give one name for each item")
    return names


def draw_by_weight(weights: FloatArray, n_draws: int, rng: np.random.Generator) -> Indices:
    """Return indices into ``weights``, drawn with probabilities proportional to the weights."""
    cumulative = np.cumsum(weights)
    # Without the last boundary, rounding cannot give an index beyond the end.
    return np.asarray(np.searchsorted(cumulative[:-1], rng.random(n_draws) * cumulative[-1], side="right"))


def draw_permutations(n_rankings: int, n_items: int, rng: np.random.Generator) -> RankArray:
    """Return uniform permutations, one per row, by sorting independent keys."""
    check_table(n_rankings, n_items)
    ranks = np.empty((n_rankings, n_items), dtype=np.int32)
    for rows in row_slices(ranks.shape):  # in blocks, so that interrupts are handled
        ranks[rows] = np.argsort(rng.random(ranks[rows].shape), axis=1)
    return ranks


def check_table(n_rankings: int, n_items: int, n_tables: int = 1) -> None:
    """Raise an error if tables of ranks do not fit into memory."""
    check_bytes(4 * n_tables * n_rankings * n_items, f"n_rankings={n_rankings:,} of {n_items:,} items", "take fewer")
