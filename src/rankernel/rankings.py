"""Rankings: one immutable type for full, tied, top-k and incomplete rankings of one set of items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import factorial, prod
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils.arrays import Indices, IntArray, RankArray
from rankernel._utils.checks import check_instance, check_integer, check_list, check_numbers, printable, short_repr
from rankernel._utils.notebook import html_card
from rankernel.encoding import (
    FREE,
    Unlisted,
    check_counts,
    check_items,
    check_unlisted,
    is_frame,
    is_list,
    number_table,
    sum_counts,
)
from rankernel.errors import Argument, RankingError, missing_extra
from rankernel.order_tables import long_ranks, orders_to_ranks

if TYPE_CHECKING:
    import pandas as pd

Labels = dict[str, NDArray[np.str_]]

FULL, TOP_K, EXHAUSTIVE, INCOMPLETE = "full", "top-k", "exhaustive", "incomplete"
PARTIAL = "partial"  # preferences that are not rankings
MAX_SHOWN = 8
CHUNK_CELLS = 2**17


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Rankings:
    """Rankings of one set of items: ``ranks[i, a]`` is the bucket index of item ``a``, 0 is the best, -1 is free.

    A ranking puts items into ordered buckets; items in one bucket are tied. Nothing is known of a *free* item: it may
    have any position. Use :meth:`from_orders`, :meth:`from_ranks`, :meth:`from_scores` or a reader; the constructor
    takes the encoding above.

    Parameters
    ----------
    ranks : array of shape (n_rankings, n_items)
        Integers, smaller is better, equal is tied, -1 is free. Gaps are closed. Missing values (NaN, None, masked
        cells) are an error, because their meaning is ambiguous: see :meth:`from_ranks`.
    items : iterable of names, optional
        Names of the items, in the order of the columns; numbers from 0 by default.
    counts : array of shape (n_rankings,), optional
        Number of voters with each ranking; 1 by default.

    Examples
    --------
    >>> ballots = Rankings.from_orders([["tea", "milk"], ["milk", {"tea", "coffee"}]])
    >>> ballots
    Rankings: 2 rankings of 3 items (1 full, 1 top-k)
      tea > milk > coffee
      milk > {tea, coffee}
    >>> ballots.ranks
    array([[0, 1, 2],
           [1, 0, 1]], dtype=int32)
    """

    ranks: RankArray
    items: tuple[str, ...]
    counts: IntArray
    #: Label columns of a file: for each, one string per ranking.
    labels: Labels
    #: How the file was read from which the rankings come, with its repairs; None for other rankings and for slices.
    source: Any

    def __init__(self, ranks: Any, items: Iterable[object] | None = None, *, counts: Any = None) -> None:
        check_not_rankings(ranks)
        table = number_table(ranks, items, scores=False)
        encoded = table.plain_ranks(None)
        self._set(encoded, table.items, check_counts(counts, len(encoded)))

    def _set(
        self,
        ranks: RankArray,
        items: tuple[str, ...],
        counts: IntArray,
        labels: Labels | None = None,
        source: Any = None,
    ) -> None:
        columns = dict(labels or {})
        ranks.flags.writeable = False
        for array in (counts, *columns.values()):
            array.flags.writeable = False
        for name, value in zip(Rankings.__dataclass_fields__, (ranks, items, counts, columns, source), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def _trusted(
        cls,
        ranks: RankArray,
        items: tuple[str, ...],
        counts: IntArray | None = None,
        labels: Labels | None = None,
        source: Any = None,
    ) -> Rankings:
        """Build from valid arrays, without checks."""
        new = object.__new__(Rankings)
        new._set(ranks, items, np.ones(len(ranks), dtype=np.int64) if counts is None else counts, labels, source)
        return new

    @classmethod
    def from_orders(
        cls,
        orders: Any,
        items: Iterable[object] | None = None,
        *,
        counts: Any = None,
        unlisted: Unlisted = "last",
    ) -> Rankings:
        """Build from lists of item names, best first; a set inside a list is a tie.

        Parameters
        ----------
        orders : iterable of lists, array or frame
            One list per ranking; or a table with one column per position, cells empty or missing after the end of a
            ranking. Columns of a frame that name positions ("choice 2", "choice 1") are sorted by these. A list of
            tuples consists of ties, as in preflibtools: ``((1,), (2, 3))`` is 1 > {2, 3}.
        items : iterable of names, optional
            All items; by default those that occur, in order of first appearance.
        counts : array or name of a column, optional
            Number of voters with each ranking.
        unlisted : {"last", "free"}
            Items that a list does not name share one last bucket ("last": a truncated ballot, a top-k list), or nothing
            is known of them ("free").

        Examples
        --------
        >>> Rankings.from_orders([["a", "b"], ["c"]], unlisted="free").ranks
        array([[ 0,  1, -1],
               [-1, -1,  0]], dtype=int32)
        >>> import pandas as pd
        >>> Rankings.from_orders(pd.DataFrame({"1st": ["a", "c"], "2nd": ["b", None]}))
        Rankings: 2 rankings of 3 items (1 full, 1 top-k)
          a > b > c
          c > {a, b}
        """
        orders, counts = split_counts(orders, counts)
        ranks, names = orders_to_ranks(orders, items, unlisted)
        return cls._trusted(ranks, names, check_counts(counts, len(ranks)))

    @classmethod
    def from_ranks(
        cls, ranks: Any, items: Iterable[object] | None = None, *, counts: Any = None, unlisted: Unlisted = "last"
    ) -> Rankings:
        """Build from a table of ranks: smaller is better, equal is tied, -1 or a missing cell is unlisted.

        Parameters
        ----------
        ranks : array, list of rows, or pandas or polars frame
            Integers, or average ranks of ties such as 3.5, as given by ``df.rank()`` and ``scipy.stats.rankdata``. The
            columns of a frame name the items.
        items : iterable of names, optional
            Names of the items; by default the columns of the frame, or numbers from 0.
        counts : array or name of a column of the frame, optional
            Number of voters with each ranking.
        unlisted : {"last", "free"}
            Items without a rank share one last bucket, or nothing is known of them.

        Examples
        --------
        >>> Rankings.from_ranks([[1, 2, -1], [2, 1, 2]], items=["a", "b", "c"])
        Rankings: 2 rankings of 3 items (1 full, 1 top-k)
          a > b > c
          b > {a, c}
        """
        return cls._from_numbers(ranks, items, counts, unlisted, scores=False)

    @classmethod
    def from_scores(
        cls, scores: Any, items: Iterable[object] | None = None, *, counts: Any = None, unlisted: Unlisted = "last"
    ) -> Rankings:
        """Build from a table of scores: larger is better, equal is tied, a missing cell is unlisted.

        The parameters are those of :meth:`from_ranks`, with arbitrary numbers.

        Examples
        --------
        >>> Rankings.from_scores([[0.9, 0.1, 0.5]], items=["a", "b", "c"])
        Rankings: 1 ranking of 3 items (1 full)
          a > c > b
        """
        return cls._from_numbers(scores, items, counts, unlisted, scores=True)

    @classmethod
    def from_long(
        cls,
        frame: Any,
        items: Iterable[object] | None = None,
        *,
        user: str,
        item: str,
        rank: str | None = None,
        score: str | None = None,
        unlisted: Unlisted = "free",
    ) -> Rankings:
        """Build from a long table with one row per user and item.

        Parameters
        ----------
        frame : pandas or polars frame, or mapping of columns
            The table.
        items : iterable of names, optional
            All items; by default those that occur, in order of first appearance. New users with few items are encoded
            over the items of the others by ``items=rankings.items``.
        user, item : str
            Columns of the user and of the item.
        rank, score : str
            Column of ranks (smaller is better) or of scores (larger is better); give one of them.
        unlisted : {"last", "free"}
            Items that a user does not have are free, or share one last bucket.

        Returns
        -------
        Rankings
            One row per user, in order of first appearance; ``labels`` has the column of users.

        Examples
        --------
        >>> ratings = {"user": ["ann", "ann", "bob"], "film": ["Up", "Her", "Up"], "stars": [4.5, 3, 5]}
        >>> Rankings.from_long(ratings, user="user", item="film", score="stars")
        Rankings: 2 rankings of 2 items (1 full, 1 incomplete)
          Up > Her
          Up, free: {Her}
        """
        if (rank is None) == (score is None):
            raise RankingError("give either ", Argument("rank"), " or ", Argument("score"), ", the name of a column")
        names = [str(name) for name in (frame.columns if is_frame(frame) else frame)]
        value = score if rank is None else rank
        for argument, name in (("user", user), ("item", item), ("rank" if score is None else "score", value)):
            if name not in names:
                raise RankingError(Argument(argument, name), f" is not a column; the columns are {', '.join(names)}")
        numbers = check_numbers("rank" if score is None else "score", list(frame[value]), (None,))
        users, things = list(frame[user]), list(frame[item])
        if not len(users) == len(things) == len(numbers):
            raise RankingError("the columns of ", Argument("frame"), " have different lengths")
        ranks, rows, known, _ = long_ranks(users, things, numbers if score is None else -numbers, items, unlisted)
        return cls._trusted(ranks, known, None, {user: np.array(rows, dtype=np.str_)})

    @classmethod
    def _from_numbers(
        cls, data: Any, items: Iterable[object] | None, counts: Any, unlisted: Unlisted, scores: bool
    ) -> Rankings:
        check_unlisted(unlisted)
        check_not_rankings(data)
        data, counts = split_counts(data, counts)
        table = number_table(data, items, scores)
        encoded = table.ranks(unlisted)
        return cls._trusted(encoded, table.items, check_counts(counts, len(encoded)))

    # ------------------------------------------------------------------ shape

    @property
    def n_rankings(self) -> int:
        """Number of rows."""
        return len(self.ranks)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.ranks.shape[1])

    @property
    def n_voters(self) -> int:
        """Number of voters: the sum of the counts."""
        return int(self.counts.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of ``ranks``, (n_rankings, n_items), which scikit-learn uses to split data."""
        return self.n_rankings, self.n_items

    def __len__(self) -> int:
        return self.n_rankings

    def __iter__(self) -> Iterator[Rankings]:
        return (self[row] for row in range(len(self)))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and dtype is not None and np.dtype(dtype) != self.ranks.dtype:
            raise ValueError(f"ranks are {self.ranks.dtype}; an array of {np.dtype(dtype)} needs a copy")
        return np.array(self.ranks, dtype=dtype) if copy else np.asarray(self.ranks, dtype=dtype)

    def __getitem__(self, rows: Any) -> Rankings:
        """Return rankings by row: an index, a slice, an index array or a mask."""
        rows = row_index(rows, len(self), "rankings are indexed by row; use .ranks[rows, items] for single entries")
        labels = {name: values[rows] for name, values in self.labels.items()}
        return self._trusted(self.ranks[rows], self.items, self.counts[rows], labels)

    # ------------------------------------------------------------------ equality, pickling, text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rankings):
            return NotImplemented
        return (
            self.items == other.items
            and np.array_equal(self.ranks, other.ranks)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self.ranks.shape, self.ranks.tobytes(), self.items, self.counts.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Rankings._trusted, (self.ranks, self.items, self.counts, self.labels, self.source)

    _repr_html_ = html_card

    def __repr__(self) -> str:
        n_rankings, n_items = self.ranks.shape
        voters = "" if self.n_voters == n_rankings else f" from {self.n_voters:,} voters"
        head = f"{type(self).__name__}: {n_rankings:,} ranking{'s' * (n_rankings != 1)}{voters}"
        head += f" of {n_items:,} item{'s' * (n_items != 1)}"
        if n_rankings:
            kinds = Counter(self.kinds().tolist())
            parts = [f"{kinds[kind]:,} {kind}" for kind in (FULL, TOP_K, EXHAUSTIVE, INCOMPLETE) if kinds[kind]]
            head += f" ({', '.join(parts)})"
        lines = [head]
        shown = self[:MAX_SHOWN]
        for order, count in zip(shown.to_orders(), shown.counts.tolist(), strict=True):
            times = f"{count:,} × " if voters else ""
            lines.append(f"  {times}{order_text(order, self.items)}")
        if n_rankings > MAX_SHOWN:
            lines.append(f"  ... and {n_rankings - MAX_SHOWN:,} more")
        lines += [f"  {line}" for line in str(self.source or "").splitlines()]
        return "\n".join(lines)

    # ------------------------------------------------------------------ properties of the rankings

    @property
    def n_buckets(self) -> IntArray:
        """Number of buckets of each ranking, without free items."""
        return np.asarray(self.ranks.max(axis=1, initial=FREE), dtype=np.int64) + 1

    @property
    def n_free(self) -> IntArray:
        """Number of free items of each ranking."""
        return np.asarray(np.count_nonzero(self.ranks == FREE, axis=1), dtype=np.int64)

    def bucket_sizes(self) -> IntArray:
        """Return the bucket sizes, shape (n_rankings, largest number of buckets), padded with zeros."""
        n_columns = int(self.n_buckets.max(initial=0)) + 1  # free items, of rank -1, are counted in the first column
        cells = self.ranks + (np.arange(len(self)) * n_columns + 1)[:, None]
        sizes = np.bincount(cells.ravel(), minlength=len(self) * n_columns).reshape(len(self), n_columns)
        return sizes[:, 1:]

    def kinds(self) -> NDArray[np.str_]:
        """Return the kind of each ranking: "full", "top-k", "exhaustive" (other ties) or "incomplete" (free items).

        Examples
        --------
        >>> Rankings.from_orders([["a", "b", "c"], ["a"], [{"a", "b"}, "c"]]).kinds().tolist()
        ['full', 'top-k', 'exhaustive']
        """
        n_buckets = self.n_buckets
        # All other buckets are single exactly if the last one holds all other items.
        in_last = np.count_nonzero(self.ranks == (n_buckets - 1)[:, None], axis=1)
        top_k = in_last == self.n_items - n_buckets + 1
        kinds = np.where(n_buckets == self.n_items, FULL, np.where(top_k, TOP_K, EXHAUSTIVE))
        return np.where(self.n_free > 0, INCOMPLETE, kinds)

    def is_full(self) -> bool:
        """Return whether all rankings are full."""
        return bool((self.n_buckets == self.n_items).all())

    def is_exhaustive(self) -> bool:
        """Return whether no ranking has free items."""
        return not (self.ranks == FREE).any()

    def n_completions(self) -> list[int]:
        r"""Return the exact number of completions of each ranking.

        :math:`|R| = \binom{n}{m} f! \prod_i n_i! = (n! / m!) \prod_i n_i!` for m listed and f free items.

        Examples
        --------
        >>> Rankings.from_orders([["a", "b"]], items=["a", "b", "c", "d"], unlisted="free").n_completions()
        [12]
        """
        return [count_completions(sizes, self.n_items) for sizes in self.bucket_sizes().tolist()]

    # ------------------------------------------------------------------ new rankings from old

    def top(self, k: int, *, unlisted: Unlisted = "last") -> Rankings:
        """Return the rankings truncated after the first k positions.

        The leading buckets with at most k items in total are unchanged. The other listed items share one bucket
        (``unlisted="last"``) or become free (``unlisted="free"``). Free items stay free.

        Examples
        --------
        >>> full = Rankings.from_orders([["a", "b", "c", "d"]])
        >>> full.top(2)
        Rankings: 1 ranking of 4 items (1 top-k)
          a > b > {c, d}
        >>> full.top(2, unlisted="free")
        Rankings: 1 ranking of 4 items (1 incomplete)
          a > b, free: {c, d}
        """
        check_integer("k", k, 0)
        check_unlisted(unlisted)
        n_top = np.count_nonzero(np.cumsum(self.bucket_sizes(), axis=1) <= k, axis=1)
        n_top = np.minimum(n_top, self.n_buckets)[:, None]
        rest = FREE if unlisted == "free" else n_top
        ranks = np.where(self.ranks >= n_top, rest, self.ranks).astype(np.int32)
        return self._trusted(ranks, self.items, self.counts, self.labels)

    def unique_indices(self) -> tuple[Indices, Indices]:
        """Return the index of the first row of each distinct ranking, and for each row the number of its ranking.

        Examples
        --------
        >>> first, inverse = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]]).unique_indices()
        >>> first.tolist(), inverse.tolist()
        ([0, 1], [0, 1, 0])
        """
        return unique_rows(self.ranks)

    def unique(self) -> Rankings:
        """Return the distinct rankings in order of first appearance, with the sums of their counts.

        Examples
        --------
        >>> Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]]).unique().counts
        array([2, 1])
        """
        first, inverse = self.unique_indices()
        return self._trusted(self.ranks[first], self.items, sum_counts(self.counts, inverse, len(first)))

    def canonical(self) -> Rankings:
        """Return the rankings with those that order no pair (at most one bucket) encoded as one bucket of all items.

        Examples
        --------
        >>> Rankings([[0, -1, 0], [1, 0, -1]]).canonical().ranks
        array([[ 0,  0,  0],
               [ 1,  0, -1]], dtype=int32)
        """
        unordered = (self.ranks == FREE).any(axis=1) & (self.ranks.max(axis=1, initial=FREE) <= 0)
        if not unordered.any():
            return self
        ranks = np.where(unordered[:, None], 0, self.ranks).astype(np.int32)
        return self._trusted(ranks, self.items, self.counts, self.labels)

    def with_items(self, items: Iterable[object], *, unlisted: Unlisted = "last") -> Rankings:
        """Return the rankings with reordered or additional items; additional items are unlisted in every row.

        Examples
        --------
        >>> Rankings.from_orders([["a", "b"]]).with_items(["b", "c", "a"])
        Rankings: 1 ranking of 3 items (1 full)
          a > b > c
        """
        check_unlisted(unlisted)
        names = check_items(items)
        index = {name: column for column, name in enumerate(names)}
        for name in self.items:
            if name not in index:
                raise RankingError(f"items does not contain {printable(name)!r}; no item can be dropped")
        columns = [index[name] for name in self.items]
        ranks = np.full((len(self), len(names)), FREE, dtype=np.int32)
        if unlisted == "last":
            ranks[:] = self.n_buckets[:, None]
        ranks[:, columns] = self.ranks
        return self._trusted(ranks, names, self.counts, self.labels)

    # ------------------------------------------------------------------ conversion

    def to_orders(self) -> list[list[str | set[str]]]:
        """Return each ranking as a list of names, best first, with ties as sets and without free items.

        ``Rankings.from_orders(r.to_orders(), r.items, counts=r.counts, unlisted="free")`` equals ``r``.
        """
        orders: list[list[str | set[str]]] = []
        for row, n_buckets in zip(self.ranks.tolist(), self.n_buckets.tolist(), strict=True):
            buckets: list[list[str]] = [[] for _ in range(n_buckets)]
            for item, rank in enumerate(row):
                if rank != FREE:
                    buckets[rank].append(self.items[item])
            orders.append([bucket[0] if len(bucket) == 1 else set(bucket) for bucket in buckets])
        return orders

    def to_frame(self, *, count: str | None = "count") -> pd.DataFrame:
        """Return a pandas frame with one column of ranks per item (missing if free), and a column of counts.

        ``Rankings.from_ranks(r.to_frame(), counts="count", unlisted="free")`` equals ``r``. With ``count=None`` there
        is no column of counts.
        """
        try:
            import pandas as pd
        except ImportError:
            raise missing_extra("pandas", "frames") from None
        if count is not None:
            check_instance("count", count, str, "the name of a column, or None")
        if count in self.items:
            raise RankingError(Argument("count", count), " is the name of an item, too; choose another name")
        frame = pd.DataFrame(self.ranks, columns=list(self.items)).astype("Int32")
        frame = frame.mask(frame == FREE)
        if count is not None:
            frame[count] = self.counts
        return frame


def count_completions(sizes: Iterable[int], n_items: int) -> int:
    r"""Return the number of completions of a ranking with buckets of these sizes: :math:`(n! / m!) \prod_i n_i!`."""
    given = list(sizes)
    return factorial(n_items) // factorial(sum(given)) * prod(map(factorial, given))


def order_text(order: list[str | set[str]], items: tuple[str, ...]) -> str:
    """Return one order as text, ``a > {b, c}, free: {d}``, shortened if long; ties are in the order of the items."""
    index = {name: number for number, name in enumerate(items)}

    def bucket_text(bucket: Iterable[str]) -> str:
        names = sorted(bucket, key=index.__getitem__)
        more = [f"... {len(names) - MAX_SHOWN} more"] * (len(names) > MAX_SHOWN)
        return f"{{{', '.join([*map(printable, names[:MAX_SHOWN]), *more])}}}"

    buckets = [printable(bucket) if isinstance(bucket, str) else bucket_text(bucket) for bucket in order]
    if len(buckets) > 2 * MAX_SHOWN:
        buckets = [*buckets[:MAX_SHOWN], f"... {len(buckets) - MAX_SHOWN} more"]
    listed = {name for bucket in order for name in ([bucket] if isinstance(bucket, str) else bucket)}
    free = [name for name in items if name not in listed]
    return ", ".join([" > ".join(buckets)] * bool(buckets) + [f"free: {bucket_text(free)}"] * bool(free))


# ---------------------------------------------------------------------- arguments


def split_counts(data: Any, counts: Any) -> tuple[Any, Any]:
    """Return data and counts, where ``counts`` may name a column of a frame."""
    if not isinstance(counts, str):
        return data, counts
    if not is_frame(data):
        raise RankingError(Argument("counts", counts), " names a column, but the data is not a frame; give an array")
    if counts not in data.columns:
        raise RankingError(Argument("counts", counts), " is not a column of the frame")
    return data[[name for name in data.columns if name != counts]], data[counts].to_numpy()


def check_not_rankings(data: Any) -> None:
    """Raise an error if a table is a Rankings object."""
    if isinstance(data, Rankings):
        raise RankingError("the data is a Rankings object already; use it unchanged, or its .ranks")


def row_index(rows: Any, n_rows: int, message: str) -> Any:
    """Return a slice, index array or mask over rows; ``[rows, ...]`` is accepted, because scikit-learn uses it."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]
    if rows is None or isinstance(rows, tuple) or np.ndim(rows) > 1:
        raise TypeError(message)
    if isinstance(rows, SupportsIndex) and not isinstance(rows, np.ndarray):
        row = range(n_rows)[rows]
        return slice(row, row + 1)
    return rows


def as_rankings(data: Any, name: str = "rankings") -> Rankings:
    """Return data as Rankings: rankings, preferences that are rankings, or a table of ranks.

    Examples
    --------
    >>> as_rankings(3, "X")
    Traceback (most recent call last):
    rankernel.errors.RankingError: X: 3 is not a table of ranks; give Rankings, or an array with one row per ranking
    """
    if isinstance(data, Rankings):
        return data
    try:
        return data.to_rankings() if hasattr(data, "to_rankings") else Rankings(data)
    except RankingError as error:
        problem = "only rankings are supported: " if hasattr(data, "to_rankings") else ""
        raise RankingError(f"{name}: {problem}", *error.parts) from None


def as_full_ranking(center: Any, name: str = "center") -> Rankings:
    """Return one full ranking, given as Rankings or as the rank of each item.

    Examples
    --------
    >>> as_full_ranking([0, 0])
    Traceback (most recent call last):
    rankernel.errors.RankingError: center=[0, 0] is not one full ranking; give the rank of each item, without ties
    """
    given = center
    if not isinstance(center, Rankings):
        rows = check_list(name, center, "one full ranking, the rank of each item")
        given = as_rankings(rows if rows and is_list(rows[0]) else [rows], name)
    if len(given) != 1 or not given.is_full():
        raise RankingError(
            f"{name}={short_repr(center)} is not one full ranking; give the rank of each item, without ties"
        )
    return given


# ---------------------------------------------------------------------- rows of tables


def row_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices over the rows of a table, each of at most 131,072 cells, to bound the size of temporary arrays."""
    step = max(CHUNK_CELLS // max(shape[1], 1), 1)
    return (slice(start, start + step) for start in range(0, shape[0], step))


def unique_rows(table: NDArray[Any]) -> tuple[Indices, Indices]:
    """Return the index of the first occurrence of each distinct row, and for each row the number of its distinct row.

    Distinct rows are numbered in order of first appearance.

    Examples
    --------
    >>> first, inverse = unique_rows(np.array([[1, 0], [0, 1], [1, 0]]))
    >>> first.tolist(), inverse.tolist()
    ([0, 1], [0, 1, 0])
    """
    # Rows are compared by 64-bit hashes, which sort faster than bytes; on a collision the bytes are compared instead.
    salt = np.random.default_rng(0).integers(2**64, size=table.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(len(table), dtype=np.uint64)
    for rows in row_slices(table.shape):
        hashes[rows] = table[rows].astype(np.uint64) @ salt
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if not all(np.array_equal(table[first[inverse[rows]]], table[rows]) for rows in row_slices(table.shape)):
        cells = np.ascontiguousarray(table)
        keys = cells.view(np.dtype((np.void, cells.dtype.itemsize * cells.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[inverse.ravel()]
