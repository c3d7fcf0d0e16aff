"""Distributions of completions p(.|R), and draws from them.

The marginalised kernel averages over p(.|R), a distribution on the completions of a ranking R. :class:`Uniform` gives
all completions the same probability; :class:`LogDensity` takes any density, by importance weights on uniform draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled_strictly
from rankernel._loops.random_streams import Streams, normal, seed_state, substream, uniform
from rankernel._utils import FloatArray, FullRanks, Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import Seed, as_seed, check_array, check_choice, check_instance, check_integer, stream_key
from rankernel._utils.resources import run_interruptibly, slices
from rankernel.completions.linear_extensions import draw_extensions
from rankernel.errors import Argument, ArgumentTypeError, ArgumentValueError, RankingError, SamplingWarning, warn
from rankernel.rankings import FREE, as_rankings, check_positions, ranks_for_loops, unique_rows

Weighted = tuple[FullRanks, FloatArray | None]  # draws, and the logarithms of their importance weights if they have any

PURPOSE = "completions"
NO_ROW = np.uint64(2**64 - 1)  # row number of streams that do not depend on the row
# A warning is given if the effective sample size is below this share of the draws, or below this number.
LOW_SHARE, LOW_NUMBER = 0.1, 3.0
MAX_COUNTED = 512  # items that are ranked faster by counting than by sorting
CHUNK_KEYS = 2**18
WITHIN_BUCKETS, AMONG_ALL = 0, 1  # layers of keys: the order inside buckets, and that of free items among all
LAYER, ROW, NUMBER, START, SIZE = range(5)  # columns of Parts.table


class CompletionModel(ABC):
    """A distribution p(.|R) on the completions of each ranking R.

    A subclass defines :meth:`draw`, and :meth:`draw_relation` if it can be used with preferences.

    Examples
    --------
    >>> from rankernel import PlackettLuce
    >>> isinstance(PlackettLuce([3, 2, 1]), CompletionModel)  # MonteCarlo(completions=PlackettLuce([3, 2, 1]))
    True
    """

    @abstractmethod
    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return draws of each ranking, and the logarithms of their importance weights.

        Parameters
        ----------
        ranks : array of shape (n_rankings, n_items)
            The rankings.
        n_draws : int
            Number of draws of each ranking.
        streams : array of shape (n_rankings,)
            64 random bits per ranking: the draws of ranking i may depend on ``ranks[i]`` and ``streams[i]`` only.
        coupling : Coupling
            The joint distribution of the draws of one ranking.

        Returns
        -------
        draws : array of shape (n_rankings, n_draws, n_items)
            The position of each item.
        log_weights : array of shape (n_rankings, n_draws), or None
            Log-weights up to a constant for each ranking; None if the draws follow the model exactly.
        """

    def draw_relation(self, before: Mask, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return draws of the linear extensions of a partial order, and the logarithms of their weights.

        Parameters
        ----------
        before : array of shape (n_items, n_items)
            The transitively closed relation: whether item x is before item y.
        n_draws : int
            Number of draws.
        rng : Generator
            The source of randomness.

        Returns
        -------
        draws : array of shape (n_draws, n_items)
            The position of each item.
        log_weights : array of shape (n_draws,), or None
            Log-weights up to a common constant; None if the draws follow the model exactly.
        """
        raise RankingError(
            Argument("completions", self),
            " cannot be drawn given a partial order; use Uniform(), MallowsModel(center, theta) or "
            "LogDensity(function)",
        )

    def check_independent(self, coupling: Coupling) -> None:
        """Raise an error unless the coupling is "iid", because all other couplings are for uniform completions."""
        if coupling.name != "iid":
            raise RankingError(
                Argument("coupling", coupling.name),
                f" is for uniform completions, but these follow {type(self).__name__}; use ",
                Argument("coupling", "iid"),
            )


@dataclass(frozen=True)
class Uniform(CompletionModel):
    r"""The uniform distribution on the completions: :math:`p(\sigma | R) = 1 / |R|`.

    Examples
    --------
    >>> from rankernel.completions import draw
    >>> draws = draw([[0, 1, 1, 1]], n_draws=6000, completions=Uniform())
    >>> bool((draws.ranks[:, :, 0] == 0).all()), draws.ranks[0, :, 1:].mean(axis=0).round(1).tolist()
    (True, [2.0, 2.0, 2.0])
    """

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return coupled uniform completions, all of weight 1."""
        return coupling.draw(ranks, n_draws, streams), None

    def draw_relation(self, before: Mask, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return uniform linear extensions."""
        return draw_extensions(before, n_draws, rng=rng), None


@dataclass(frozen=True)
class LogDensity(CompletionModel):
    r"""A density on full rankings, known up to a factor: :math:`p(\sigma | R) \propto e^{f(\sigma)}` on R.

    Draws are uniform on R (with any coupling) and have self-normalised importance weights: weights of mean 1 over the
    draws of each ranking, which need no normalising constant and have a bias of order 1/n_draws.

    Parameters
    ----------
    function : callable
        Takes full rankings as positions of the items, an integer array of shape (k, n_items), and returns k
        log-densities.

    Examples
    --------
    A density proportional to 3 if item 0 is first, else 1; here it is first in one completion of two:

    >>> import numpy as np
    >>> from rankernel.completions import draw
    >>> model = LogDensity(lambda ranks: np.log(np.where(ranks[:, 0] == 0, 3.0, 1.0)))
    >>> draws = draw([[0, 0]], n_draws=2, coupling="antithetic", completions=model)
    >>> draws.weights[draws.ranks[:, :, 0] == 0], draws.weights[draws.ranks[:, :, 0] == 1]
    (array([1.5]), array([0.5]))
    """

    function: Callable[[RankArray], Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ArgumentTypeError("function", self.function, "a function of full rankings")

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams, coupling: Coupling) -> Weighted:
        """Return coupled uniform completions and their log-densities."""
        draws = coupling.draw(ranks, n_draws, streams)
        return draws, self.evaluate(draws.reshape(-1, draws.shape[2])).reshape(draws.shape[:2])

    def draw_relation(self, before: Mask, n_draws: int, rng: np.random.Generator) -> Weighted:
        """Return uniform linear extensions and their log-densities."""
        draws = draw_extensions(before, n_draws, rng=rng)
        return draws, self.evaluate(draws)

    def evaluate(self, full: FullRanks) -> FloatArray:
        """Return the log-densities of full rankings, and raise an error if they are invalid."""
        logs = np.asarray(self.function(full.astype(np.int32)), dtype=np.float64)
        if logs.shape != (len(full),):
            raise RankingError(
                f"function returned shape {logs.shape} for {len(full)} full rankings; it must return one number each"
            )
        if np.isnan(logs).any() or (logs == np.inf).any():
            raise RankingError("function returned nan or +inf; it must return finite numbers, or -inf for density 0")
        return logs


@np.errstate(under="ignore")
def self_normalized_weights(logs: FloatArray) -> FloatArray:
    """Return weights proportional to exp(logs) with mean 1 in each row."""
    largest = logs.max(axis=1, keepdims=True)
    if np.isneginf(largest).any():
        raise RankingError(
            f"function: all completions evaluated of ranking {int(np.argmin(largest))} have density 0; the density "
            "must be positive"
        )
    weights = np.exp(logs - largest)
    return np.asarray(weights / weights.mean(axis=1, keepdims=True))


# ---------------------------------------------------------------------- draws


@dataclass(frozen=True, eq=False)
class Draws:
    """Completions drawn for each of several rankings.

    Attributes
    ----------
    ranks : array of shape (n_rankings, n_draws, n_items)
        The position of each item in each draw.
    weights : array of shape (n_rankings, n_draws), or None
        Importance weights: the mean of ``weights * f(draws)`` estimates the expectation of f. None if all are 1.
    block : int
        Size of the blocks of consecutive draws that are coupled; the last one may be incomplete. Blocks are
        independent.
    """

    ranks: FullRanks
    weights: FloatArray | None
    block: int

    @property
    def n_draws(self) -> int:
        """Number of draws of each ranking."""
        return int(self.ranks.shape[1])

    @property
    def effective_size(self) -> FloatArray:
        """Effective sample size of each ranking: the squared sum of the weights over the sum of their squares."""
        if self.weights is None:
            return np.full(len(self.ranks), float(self.n_draws))
        squares = (self.weights**2).sum(axis=1)
        return np.asarray(self.weights.sum(axis=1) ** 2 / np.where(squares == 0, 1.0, squares))

    def warn_if_low(self) -> None:
        """Warn if the effective sample size of a ranking is low."""
        effective = self.effective_size
        low = effective < max(LOW_SHARE * self.n_draws, min(LOW_NUMBER, self.n_draws / 2))
        if low.any():
            warn(
                f"the effective sample size is low for {int(low.sum())} of {len(low)} rankings (smallest: "
                f"{effective.min():.1f} of {self.n_draws} draws), because a few importance weights dominate; use more "
                "draws, or a model that is sampled without weights",
                SamplingWarning,
            )


def draw(
    X: Any,
    n_draws: int,
    *,
    coupling: str = "iid",
    completions: CompletionModel | None = None,
    rng: Seed = 0,
    rows: Any = None,
    kernel: FullKernel | None = None,
) -> Draws:
    """Draw completions of rankings.

    The draws of a ranking depend only on the seed and the ranking. The first draws of many are those of few, except for
    herding.

    Parameters
    ----------
    X : Rankings
        The rankings, or an array of their ranks.
    n_draws : int
        Number of draws of each ranking; an antithetic pair counts as two.
    coupling : str
        The joint distribution of the draws of one ranking, by its name: see :class:`rankernel.MonteCarlo`.
    completions : CompletionModel, optional
        The distribution of the completions; uniform by default.
    rng : int, Generator or None
        The seed; a Generator is drawn from once. The default 0 gives the same draws in every call.
    rows : array of shape (n_rankings,), optional
        Row numbers on which the draws depend in addition, so that equal rankings have independent draws.
    kernel : kernel on full rankings, optional
        The kernel for coupling="herding".

    Returns
    -------
    Draws

    Examples
    --------
    >>> from rankernel.rankings import Rankings
    >>> ballots = Rankings.from_orders([["a"], ["b", "a"]], items=["a", "b", "c", "d"])
    >>> pairs = draw(ballots, n_draws=2, coupling="antithetic").ranks
    >>> pairs.sum(axis=1)
    array([[0, 4, 4, 4],
           [2, 0, 5, 5]])
    """
    ranks = as_rankings(X, "X").ranks
    check_integer("n_draws", n_draws)
    model = Uniform() if completions is None else completions
    check_instance("completions", model, CompletionModel, "a completion model such as Uniform()")
    joint = coupling_named(coupling, kernel)
    if rows is not None:
        rows = check_array("rows", rows, f"an array of {len(ranks)} row numbers >= 0")
        if rows.shape != (len(ranks),) or rows.dtype.kind not in "iu" or (rows < 0).any():
            raise ArgumentValueError("rows", rows, f"an array of {len(ranks)} row numbers >= 0")
    streams = row_streams(ranks, as_seed(rng), rows=rows)
    full, logs = run_interruptibly(model.draw, ranks, n_draws, streams, joint)
    weights = None if logs is None else self_normalized_weights(logs)
    draws = Draws(full, weights, joint.block_size(ranks.shape[1], n_draws))
    draws.warn_if_low()
    return draws


# ---------------------------------------------------------------------- draws row by row


def row_streams(ranks: RankArray, seed: int, purpose: str = PURPOSE, rows: Any = None) -> Streams:
    """Return one random stream per ranking: 64 bits that depend on the seed, on a purpose and on the ranking.

    They do not depend on the other rankings, so blocks computed separately, in any order and on any number of threads,
    use the same draws. With row numbers ``rows``, equal rankings have independent streams.
    """
    numbers = np.full(len(ranks), NO_ROW) if rows is None else np.asarray(rows, dtype=np.uint64)
    return fill_streams(ranks_for_loops(ranks), stream_key(seed, purpose), numbers)


@compiled_strictly
def fill_streams(ranks: RankArray, key: np.uint64, rows: Streams) -> Streams:
    """Return the stream of each ranking, given a row number for each."""
    streams = np.empty(len(ranks), dtype=np.uint64)
    for i in range(len(ranks)):
        stream = substream(key, ranks.shape[1])
        for a in range(ranks.shape[1]):
            stream = substream(stream, ranks[i, a] + 1)
        streams[i] = substream(stream, rows[i])
    return streams


def draw_each(
    draw_row: Callable[[Any, int, np.random.Generator], Weighted],
    rows: Iterable[Any],
    n_draws: int,
    n_items: int,
    streams: Streams,
) -> Weighted:
    """Return draws of rows made one by one, and log-weights if a row has any."""
    check_positions(n_items)
    full = np.empty((len(streams), n_draws, n_items), dtype=np.int16)
    log_weights, weighted = np.zeros((len(streams), n_draws)), False
    for number, (row, stream) in enumerate(zip(rows, streams, strict=True)):
        full[number], logs = draw_row(row, n_draws, np.random.Generator(np.random.PCG64(int(stream))))
        if logs is not None:
            log_weights[number], weighted = logs, True
    return full, log_weights if weighted else None


def relation_streams(packed: NDArray[np.uint8], seed: int) -> Streams:
    """Return one stream per partial order, which depends on its relation."""
    key, no_row = stream_key(seed, PURPOSE).tobytes(), NO_ROW.tobytes()
    digests = (blake2b(relation.tobytes() + no_row, digest_size=8, key=key).digest() for relation in packed)
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


# ---------------------------------------------------------------------- couplings


class FullKernel(Protocol):
    """An object with a matrix of kernel values between full rankings, given as positions of items."""

    def matrix(self, X: Any, Y: Any) -> Any:
        """Return the kernel of each row of X with each row of Y."""


class Coupling(ABC):
    """A joint distribution of several uniform completions of one ranking."""

    #: The value of ``coupling`` in :class:`MonteCarlo`.
    name: ClassVar[str]

    @abstractmethod
    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return the number of draws that depend on each other."""

    @abstractmethod
    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return draws of shape (n_rankings, n_draws, n_items); the last block may be incomplete."""


# ---------------------------------------------------------------------- from keys to completions


@dataclass(frozen=True, eq=False)
class Parts:
    """The random parts of rankings: buckets of several items, and all items of rankings with free items.

    Each row of ``table`` is one part: its layer of keys, its ranking, the number of its stream, and start and size in
    ``members``.
    """

    table: IntArray
    members: Indices  # the items of each part in ascending order
    positions: FullRanks  # one completion of each ranking: buckets in item order, free items after the listed ones
    n_listed: Indices  # the number of listed items of each ranking

    @classmethod
    def of(cls, ranks: RankArray) -> Parts:
        """Return the parts of rankings, those of free items last."""
        n_rankings, n_items = ranks.shape
        order = np.argsort(np.where(ranks < 0, n_items, ranks), axis=1, kind="stable")
        positions = np.empty((n_rankings, n_items), dtype=np.int16)
        np.put_along_axis(positions, order, np.arange(n_items, dtype=np.int16)[None], axis=1)
        in_order = np.take_along_axis(ranks, order, axis=1)
        is_start = np.ones((n_rankings, n_items), dtype=bool)
        is_start[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
        start = np.flatnonzero(is_start)
        size = np.diff(np.append(start, ranks.size))
        rank = in_order.ravel()[start]
        tied = (size > 1) & (rank >= 0)
        start, size, rank = start[tied], size[tied], rank[tied]
        with_free = np.flatnonzero((ranks < 0).any(axis=1)) if n_items > 1 else np.empty(0, dtype=np.int64)
        n_buckets = len(start)
        table = np.zeros((n_buckets + len(with_free), 5), dtype=np.int64)
        table[:n_buckets, LAYER] = WITHIN_BUCKETS
        table[:n_buckets, ROW:] = np.column_stack([start // max(n_items, 1), rank + 1, start, size])
        table[n_buckets:] = [AMONG_ALL, 0, 0, ranks.size, n_items]
        table[n_buckets:, ROW] = with_free
        n_listed = np.count_nonzero(ranks >= 0, axis=1)
        return cls(table, np.append(order.ravel(), np.arange(n_items)), positions, n_listed)

    def completions(self, keys: FloatArray) -> FullRanks:
        """Return the completions given by ``keys[layer, ranking, draw, item]``."""
        out = np.empty(keys.shape[1:], dtype=np.int16)
        out[...] = self.positions[:, None]
        free = self.table[:, LAYER] == AMONG_ALL
        rank_by_keys(self.table[~free], self.members, keys[WITHIN_BUCKETS], out)
        if free.any():
            among_all = np.empty_like(out)
            rank_by_keys(self.table[free], self.members, keys[AMONG_ALL], among_all)
            insert_free_items(self.table[free, ROW], self.n_listed, among_all, out)
        return out


def complete(ranks: RankArray, keys: FloatArray) -> FullRanks:
    """Return the completions given by keys: positions of shape (n_rankings, n_draws, n_items)."""
    keys = np.ascontiguousarray(keys, dtype=np.float64)
    return Parts.of(np.ascontiguousarray(ranks, dtype=np.int32)).completions(np.broadcast_to(keys, (2, *keys.shape)))


def rank_by_keys(table: IntArray, members: Indices, keys: FloatArray, out: FullRanks) -> None:
    """Write the positions of the members of parts, by key; equal keys are ordered by item."""
    n_items, counted = keys.shape[2], table[:, SIZE] <= MAX_COUNTED
    rank_by_counting(table[counted], members, keys, out)
    for _, row, _, start, size in table[~counted].tolist():
        part = members[start : start + size]
        order = np.argsort(keys[row][:, part], axis=1, kind="stable")
        np.put_along_axis(out[row], part[order], start % n_items + np.arange(size, dtype=np.int16)[None], axis=1)


@compiled_strictly
def rank_by_counting(table: IntArray, members: Indices, keys: FloatArray, out: FullRanks) -> None:
    """Write the positions of the members of parts by counting smaller keys, without branches."""
    n_items = keys.shape[2]
    values, smaller = np.empty(n_items), np.empty(n_items, dtype=np.int64)
    for p in range(len(table)):
        row, start, size = table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[1]):
            for j in range(size):
                values[j] = keys[row, d, members[start + j]]
            for j in range(size):
                before = np.int64(0)
                for i in range(j):
                    earlier = np.int64(values[i] <= values[j])
                    before += earlier
                    smaller[i] += 1 - earlier
                smaller[j] = before
            for j in range(size):
                out[row, d, members[start + j]] = start % n_items + smaller[j]


@compiled_strictly
def insert_free_items(rows: IntArray, n_listed: Indices, among_all: FullRanks, out: FullRanks) -> None:
    """Move free items to their positions among all items, and listed items to the other positions in order."""
    n_items = out.shape[2]
    item_at, position_of = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    for k in range(len(rows)):
        row = rows[k]
        for d in range(out.shape[1]):
            for a in range(n_items):
                item_at[among_all[row, d, a]] = a
            listed = 0
            for position in range(n_items):
                if out[row, d, item_at[position]] < n_listed[row]:
                    position_of[listed] = position
                    listed += 1
            for a in range(n_items):
                rank = out[row, d, a]
                out[row, d, a] = position_of[rank] if rank < n_listed[row] else among_all[row, d, a]


# ---------------------------------------------------------------------- couplings of keys


class KeyCoupling(Coupling):
    """A coupling defined by a joint distribution of keys.

    Each part and each block of draws has a separate random stream, so that draws do not depend on how they are chunked.
    """

    @abstractmethod
    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill ``keys[layer, ranking, draw, item]`` of consecutive blocks of draws, the first of number ``first``.

        In every single draw all orders of the members of a part must have equal probability.
        """

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return coupled draws, in chunks of rankings and blocks."""
        ranks = np.ascontiguousarray(ranks, dtype=np.int32)
        n_rankings, n_items = ranks.shape
        check_positions(n_items)
        block = self.block_size(n_items, n_draws)
        out = np.empty((n_rankings, n_draws, n_items), dtype=np.int16)
        all_blocks = -(-n_draws // block)
        n_blocks = max(min(CHUNK_KEYS // max(block * n_items, 1), all_blocks), 1)
        for rows in slices(n_rankings, CHUNK_KEYS // max(n_blocks * block * n_items, 1)):
            parts = Parts.of(ranks[rows])
            for first in range(0, all_blocks, n_blocks):
                drawn = out[rows, first * block : (first + n_blocks) * block]
                keys = np.empty((2, *drawn.shape))
                self.fill_keys(parts, streams[rows], first, block, keys)
                drawn[...] = parts.completions(keys)
        return out


@dataclass(frozen=True)
class Iid(KeyCoupling):
    """Independent draws."""

    name = "iid"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 1: the draws are independent."""
        return 1

    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill with independent uniform keys."""
        uniform_keys(parts.table, parts.members, streams, first, block, False, keys)


@dataclass(frozen=True)
class Antithetic(KeyCoupling):
    """Pairs of draws with the keys u and 1 - u.

    Without free items the second draw reverses every bucket of the first: for top-k lists this is Algorithm 1 of the
    paper, and the second draw is the completion farthest from the first. With free items the map is an involution of
    the completions, but not always to the farthest.
    """

    name = "antithetic"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 2."""
        return 2

    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill with antithetic pairs of uniform keys."""
        uniform_keys(parts.table, parts.members, streams, first, block, True, keys)


@compiled_strictly
def uniform_keys(
    table: IntArray, members: Indices, streams: Streams, first: int, block: int, antithetic: bool, keys: FloatArray
) -> None:
    """Fill with uniform keys u; if ``antithetic``, every second draw has the keys 1 - u."""
    state = np.empty(4, dtype=np.uint64)
    for p in range(len(table)):
        layer, row, start = table[p, LAYER], table[p, ROW], table[p, START]
        for d in range(keys.shape[2]):
            if d % block == 0:
                seed_state(state, substream(substream(streams[row], first + d // block), table[p, NUMBER]))
            for j in range(start, start + table[p, SIZE]):
                a = members[j]
                keys[layer, row, d, a] = 1.0 - keys[layer, row, d - 1, a] if antithetic and d % 2 else uniform(state)


@dataclass(frozen=True)
class Orthogonal(KeyCoupling):
    """Keys along plus and minus random orthogonal directions.

    The order of t items is that of the entries of a random vector with sum zero; t - 1 such vectors, orthogonal to each
    other, and their negatives form a block.
    """

    name = "orthogonal"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 2 (n_items - 1), and at least 2."""
        return max(2, 2 * (n_items - 1))

    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill with orthogonal directions and their negatives."""
        orthogonal_keys(parts.table, parts.members, streams, first, block, keys)


@compiled_strictly
def orthogonal_keys(
    table: IntArray, members: Indices, streams: Streams, first: int, block: int, keys: FloatArray
) -> None:
    """Fill with plus and minus orthogonal directions, uniform on the sphere of the vectors with sum zero."""
    state = np.empty(4, dtype=np.uint64)
    n_items = keys.shape[3]
    basis = np.empty((max(min(n_items - 1, (block + 1) // 2), 1), n_items))
    for p in range(len(table)):
        layer, row, start, size = table[p, LAYER], table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[2]):
            if d % block == 0:
                seed_state(state, substream(substream(streams[row], first + d // block), table[p, NUMBER]))
            new = (d % block // 2) % (size - 1)
            if d % block % 2 == 0:
                for j in range(size):
                    basis[new, j] = normal(state)
                # Gram-Schmidt, twice: the second pass removes the rounding error of the first.
                for _ in range(2):
                    mean, norm2 = 0.0, 0.0
                    for j in range(size):
                        mean += basis[new, j] / size
                    for j in range(size):
                        basis[new, j] -= mean
                    for i in range(new):
                        product = 0.0
                        for j in range(size):
                            product += basis[i, j] * basis[new, j]
                        for j in range(size):
                            basis[new, j] -= product * basis[i, j]
                    for j in range(size):
                        norm2 += basis[new, j] ** 2
                    for j in range(size):
                        basis[new, j] /= np.sqrt(norm2)
            sign = -1.0 if d % block % 2 else 1.0
            for j in range(size):
                keys[layer, row, d, members[start + j]] = sign * basis[new, j]


# ---------------------------------------------------------------------- herding


@dataclass(frozen=True)
class Herding(Coupling):
    """A herded design for the bucket sizes, with the items of each bucket relabelled at random.

    All draws of a ranking form one block. Relabelling makes every draw exactly uniform and does not change the quality
    of the design for kernels invariant under relabelling. Only for rankings without free items.
    """

    kernel: FullKernel
    name = "herding"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return the number of draws."""
        return max(1, n_draws)

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return coupled draws."""
        from rankernel.completions.herding import herd_ranks  # its pool of candidates is drawn by a coupling

        if (ranks == FREE).any():
            row = int(np.argmax((ranks == FREE).any(axis=1)))
            raise RankingError(
                f"ranking {row} has free items, for which herded draws are not uniform; use ",
                Argument("coupling", "orthogonal"),
            )
        # A random completion maps each item to a position of its bucket; the design ranks these positions.
        position = Iid().draw(ranks, 1, streams)[:, 0]
        draws = np.empty((len(ranks), n_draws, ranks.shape[1]), dtype=np.int16)
        first, shape_of = unique_rows(np.sort(ranks, axis=1))
        for shape, row in enumerate(first):
            design = herd_ranks(np.sort(ranks[row]), self.kernel, n_draws)
            for i in np.flatnonzero(shape_of == shape):
                draws[i] = design[:, position[i]]
        return draws


# ---------------------------------------------------------------------- registry

#: The couplings by name.
COUPLING_TYPES: tuple[type[Coupling], ...] = (Iid, Antithetic, Orthogonal, Herding)
COUPLINGS = {coupling.name: coupling for coupling in COUPLING_TYPES}


def coupling_named(name: str, kernel: FullKernel | None = None) -> Coupling:
    """Return the coupling of a name; herding needs a kernel."""
    check_choice("coupling", name, COUPLINGS)
    if name != Herding.name:
        return COUPLINGS[name]()
    if kernel is None:
        raise RankingError(Argument("coupling", name), " chooses draws for a kernel; give ", Argument("kernel", ...))
    return Herding(kernel)
