"""Rankings: one immutable type for full, tied, top-k and incomplete rankings of one set of items."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import factorial, prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, SupportsIndex, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankernel._utils import Indices, IntArray, Mask, RankArray
from rankernel._utils.checks import (
    check_array,
    check_instance,
    check_integer,
    check_list,
    check_numbers,
    check_text,
    plural,
    printable,
    short_repr,
)
from rankernel._utils.notebook import html_card
from rankernel._utils.resources import slices
from rankernel.errors import Argument, RankingError, require

if TYPE_CHECKING:
    import pandas as pd

Labels = dict[str, NDArray[np.str_]]
Unlisted = Literal["last", "free"]

FREE = -1
FULL, TOP_K, EXHAUSTIVE, INCOMPLETE = "full", "top-k", "exhaustive", "incomplete"
PARTIAL = "partial"  # preferences that are not rankings
MAX_SHOWN = 8
CHUNK_CELLS = 2**17
MAX_VOTERS = 2**53  # integers up to this number are exact as floats
MAX_ITEMS = 2**15  # of completions, whose positions are 16-bit integers
MAX_BITS = 63  # distinct integers of a row that fit into one word


class Rows:
    """Base of the three data types: frozen dataclasses of read-only arrays with one entry per row, over some items."""

    __slots__ = ()
    items: tuple[str, ...]
    labels: Labels
    source: Any
    __dataclass_fields__: ClassVar[dict[str, Any]]
    #: Fields with one entry per row, besides the labels; fields that are compared; and those of the first rows.
    _of_rows: ClassVar[tuple[str, ...]]
    _compared: ClassVar[tuple[str, ...]]
    _index_error: ClassVar[str]
    _n_shown: ClassVar[int] = MAX_SHOWN

    @classmethod
    def _trusted(cls, *values: Any, **named: Any) -> Self:
        """Build from valid fields, without checks; by default counts are 1, and there are no labels and no source."""
        new = object.__new__(cls)
        new._set(*values, **named)
        return new

    def _set(self, *values: Any, **named: Any) -> None:
        fields = self.__dataclass_fields__
        given = {"counts": None, "labels": None, "source": None, **dict(zip(fields, values, strict=False)), **named}
        given["labels"] = dict(given["labels"] or {})
        if given["counts"] is None and "counts" in fields:
            given["counts"] = np.ones(len(values[0]), dtype=np.int64)
        for array in (*given.values(), *given["labels"].values()):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        for name in fields:
            object.__setattr__(self, name, given[name])

    def _replaced(self, **changes: Any) -> Self:
        """Return the same with other fields, and without the source."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return self._trusted(**fields | {"source": None} | changes)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    def __len__(self) -> int:
        return len(getattr(self, self._of_rows[0]))

    def __iter__(self) -> Iterator[Self]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Any) -> Self:
        """Return some rows: an index, a slice, an index array or a mask."""
        rows = row_index(rows, len(self), self._index_error)
        changes: dict[str, Any] = {"labels": {name: values[rows] for name, values in self.labels.items()}}
        for name in self._of_rows:
            value = getattr(self, name)
            if isinstance(value, tuple):
                changes[name] = tuple(value[row] for row in np.arange(len(value))[rows].tolist())
            elif value is not None and len(value) == len(self):  # otherwise unknown
                changes[name] = value[rows]
        return self._replaced(**changes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(is_same(getattr(self, name), getattr(other, name)) for name in self._compared)

    def __hash__(self) -> int:
        values = (getattr(self, name) for name in self._compared)
        return hash(tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._trusted, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    _repr_html_ = html_card

    def __repr__(self) -> str:
        lines = [self._heading(), *(f"  {text}" for text in self._row_texts(self[: self._n_shown]))]
        if len(self) > self._n_shown:
            lines.append(f"  ... and {len(self) - self._n_shown:,} more")
        lines += [f"  {line}" for line in str(self.source or "").splitlines()]
        return "\n".join(lines)

    def _heading(self) -> str:
        raise NotImplementedError

    def _row_texts(self, shown: Self) -> Iterable[str]:
        raise NotImplementedError


def is_same(one: Any, other: Any) -> bool:
    """Whether two fields are equal: names, arrays or labels."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(np.array_equal(values, other[name]) for name, values in one.items())
    return one == other if isinstance(one, tuple) else np.array_equal(one, other)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Rankings(Rows):
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
    _of_rows = ("ranks", "counts")
    _compared = ("items", "ranks", "counts")
    _index_error = "rankings are indexed by row; use .ranks[rows, items] for single entries"

    def __init__(self, ranks: Any, items: Iterable[object] | None = None, *, counts: Any = None) -> None:
        check_not_rankings(ranks)
        encoded, names = table_ranks(ranks, items, None, plain=True)
        self._set(encoded, names, check_counts(counts, len(encoded)))

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
        from rankernel.columns import orders_to_ranks

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
        if not is_frame(frame):
            check_instance("frame", frame, Mapping, "a data frame, or a mapping of names to columns")
        names = [str(name) for name in (frame.columns if is_frame(frame) else frame)]
        value = score if rank is None else rank
        for argument, name in (("user", user), ("item", item), ("rank" if score is None else "score", value)):
            if check_instance(argument, name, str, "the name of a column") not in names:
                raise RankingError(Argument(argument, name), f" is not a column; the columns are {', '.join(names)}")
        numbers = check_numbers("rank" if score is None else "score", list(frame[value]), (None,))
        from rankernel.columns import frame_columns, long_ranks

        table = frame_columns(frame, (user, item, str(value)), "frame")
        values = numbers if score is None else -numbers
        ranks, rows, known, _ = long_ranks(table[user], table[item], values, items, unlisted)
        return cls._trusted(ranks, known, None, {user: np.array(rows, dtype=np.str_)})

    @classmethod
    def _from_numbers(
        cls, data: Any, items: Iterable[object] | None, counts: Any, unlisted: Unlisted, scores: bool
    ) -> Rankings:
        check_unlisted(unlisted)
        check_not_rankings(data)
        data, counts = split_counts(data, counts)
        encoded, names = table_ranks(data, items, unlisted, scores=scores)
        return cls._trusted(encoded, names, check_counts(counts, len(encoded)))

    # ------------------------------------------------------------------ shape

    @property
    def n_rankings(self) -> int:
        """Number of rows."""
        return len(self.ranks)

    @property
    def n_voters(self) -> int:
        """Number of voters: the sum of the counts."""
        return int(self.counts.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of ``ranks``, (n_rankings, n_items), which scikit-learn uses to split data."""
        return self.n_rankings, self.n_items

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and dtype is not None and np.dtype(dtype) != self.ranks.dtype:
            raise ValueError(f"ranks are {self.ranks.dtype}; an array of {np.dtype(dtype)} needs a copy")
        return np.array(self.ranks, dtype=dtype) if copy else np.asarray(self.ranks, dtype=dtype)

    def _heading(self) -> str:
        voters = "" if self.n_voters == len(self) else f" from {self.n_voters:,} voters"
        head = f"{type(self).__name__}: {plural(len(self), 'ranking')}{voters} of {plural(self.n_items, 'item')}"
        kinds = Counter(self.kinds().tolist())
        parts = [f"{kinds[kind]:,} {kind}" for kind in (FULL, TOP_K, EXHAUSTIVE, INCOMPLETE) if kinds[kind]]
        return f"{head} ({', '.join(parts)})" if parts else head

    def _row_texts(self, shown: Self) -> Iterable[str]:
        for order, count in zip(shown.to_orders(), shown.counts.tolist(), strict=True):
            times = "" if self.n_voters == len(self) else f"{count:,} × "
            yield f"{times}{order_text(order, self.items)}"

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
        kinds = np.empty(len(self), dtype="<U10")
        for rows in row_slices(self.ranks.shape):
            block = self.ranks[rows]
            last = block.max(axis=1, initial=FREE)
            # All other buckets are single exactly if the last one holds all other items.
            top_k = (block == last[:, None]).sum(axis=1) == self.n_items - last
            exhaustive = np.where(last == self.n_items - 1, FULL, np.where(top_k, TOP_K, EXHAUSTIVE))
            kinds[rows] = np.where((block == FREE).any(axis=1), INCOMPLETE, exhaustive)
        return kinds

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
        return self._replaced(ranks=ranks)

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
        return self._merged(*self.unique_indices())

    def _merged(self, first: Indices, inverse: Indices) -> Rankings:
        """Return the rows numbered ``first`` with the total counts of the rows that equal them."""
        return self[first]._replaced(counts=sum_counts(self.counts, inverse, len(first)), labels={})

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
        return self._replaced(ranks=ranks)

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
        return self._replaced(ranks=ranks, items=names)

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
        require("pandas", "frames")
        import pandas as pd

        if count is not None:
            check_text("count", count)
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


def check_positions(n_items: int) -> None:
    """Raise an error if the positions of completions do not fit into 16 bits."""
    if n_items > MAX_ITEMS:
        raise RankingError(f"there are {n_items:,} items; completions have at most {MAX_ITEMS:,}")


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
    if getattr(rows, "dtype", None) == np.uint64 and len(rows) and rows.max() >= n_rows:
        raise IndexError(f"row {rows.max()} is out of bounds for {n_rows:,} rows")  # NumPy would wrap it around
    return rows


def as_rankings(data: Any, name: str = "rankings") -> Rankings:
    """Return data as Rankings: rankings, preferences that are rankings, or a table of ranks."""
    if isinstance(data, Rankings):
        return data
    check_no_comparisons(data, name)
    try:
        return data.to_rankings() if hasattr(data, "to_rankings") else Rankings(data)
    except RankingError as error:
        problem = "only rankings are supported, not other partial orders: " if hasattr(data, "to_rankings") else ""
        raise RankingError(f"{name}: {problem}", *error.parts) from None


def check_no_comparisons(data: Any, name: str) -> None:
    """Raise an error for Comparisons, whose conversion to rankings is a choice of the caller."""
    if hasattr(data, "match_ups"):
        raise RankingError(
            f"{name}: comparisons are not rankings; give {name}.preferences(by=...), one partial order per judge or "
            f"other group, or {name}.rankings(by=...), one Bradley-Terry ranking per group"
        )


def as_full_ranking(center: Any, name: str = "center") -> Rankings:
    """Return one full ranking, given as Rankings or as the rank of each item."""
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
    return slices(shape[0], CHUNK_CELLS // max(shape[1], 1))


def relations_of_ranks(ranks: RankArray) -> Mask:
    """Return the strict relations of rankings, shape (n_rankings, n_items, n_items)."""
    return np.asarray((ranks[:, :, None] < ranks[:, None, :]) & (ranks != FREE)[:, :, None])


def unique_rows(table: NDArray[Any]) -> tuple[Indices, Indices]:
    """Return the index of the first occurrence of each distinct row, and for each row the number of its distinct row.

    Distinct rows are numbered in order of first appearance.
    """
    # Rows are compared by 64-bit hashes, which sort faster than bytes; on a collision the bytes are compared instead.
    salt = np.random.default_rng(0).integers(2**64, size=table.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(len(table), dtype=np.uint64)
    for rows in row_slices(table.shape):
        hashes[rows] = table[rows].astype(np.uint64) @ salt
    first, inverse = first_and_inverse(hashes)
    if not all(np.array_equal(table[first[inverse[rows]]], table[rows]) for rows in row_slices(table.shape)):
        cells = np.ascontiguousarray(table)
        first, inverse = first_and_inverse(cells.view((np.void, cells.dtype.itemsize * cells.shape[1])).ravel())
    return first, inverse


def first_and_inverse(keys: NDArray[Any]) -> tuple[Indices, Indices]:
    """Return the results of :func:`unique_rows` for keys that can be sorted."""
    order = np.argsort(keys)  # not stable: np.unique takes twice the time
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[order[1:]] != keys[order[:-1]]
    first = np.minimum.reduceat(order, np.flatnonzero(is_new)) if len(keys) else order
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[first] = True
    inverse = np.empty(len(keys), dtype=np.intp)
    inverse[order] = (np.cumsum(is_first) - 1)[first][np.cumsum(is_new) - 1]
    return np.flatnonzero(is_first), inverse


# ---------------------------------------------------------------------- names, missing values


def check_unlisted(unlisted: str) -> None:
    """Raise an error unless ``unlisted`` is "last" or "free"."""
    if not isinstance(unlisted, str) or unlisted not in get_args(Unlisted):
        raise RankingError(Argument("unlisted", unlisted), " is not possible; it must be 'last' or 'free'")


def check_items(items: Iterable[object]) -> tuple[str, ...]:
    """Return item names as strings; raise an error if there are none, or if names are missing or repeated."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) == 0:
        raise RankingError(f"items={short_repr(items)} is not possible; it must be a list of item names")
    first: dict[str, int] = {}
    for index, given in enumerate(items):
        if is_missing(given):
            raise RankingError(f"items: the name of item {index} is missing ({given!r}); every item needs a name")
        if isinstance(given, list | dict | set | np.ndarray):
            raise RankingError(f"items: the name of item {index} is {short_repr(given)}; give a string or a number")
        name = str(given)
        if name in first:
            both = f"items {first[name]} and {index} are both named {printable(name)!r}"
            raise RankingError(f"{both}; item names must be unique")
        first[name] = index
    if not first:
        raise RankingError("items: there are no items; give at least one")
    return tuple(first)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, a masked cell, or the missing value of a frame library."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, numbers.Real):
        interval: type = np.timedelta64  # registered as a number, but without a float value
        return not isinstance(value, interval) and math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def is_list(data: Any) -> bool:
    """Return whether data is iterable, but neither a string nor a scalar."""
    return isinstance(data, Iterable) and not isinstance(data, str | bytes) and getattr(data, "ndim", 1) > 0


def is_frame(data: Any) -> bool:
    """Return whether data is a pandas or polars frame."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


# ---------------------------------------------------------------------- tables of numbers


def table_ranks(
    data: Any,
    items: Iterable[object] | None,
    unlisted: Unlisted | None,
    *,
    scores: bool = False,
    plain: bool = False,
) -> tuple[RankArray, tuple[str, ...]]:
    """Return bucket indices and item names from an array, a list of rows, or a frame of ranks or scores.

    Missing cells, and -1 in a table of ranks, are unlisted. In a ``plain`` array -1 is free, and missing cells are an
    error unless ``unlisted`` is given.
    """
    what = "score" if scores else "rank"
    values, masked, columns = read_table(data, what)
    names = columns if items is None else check_items(items)
    if values.shape == (0, 0) and names is not None:
        values = masked = np.empty((0, len(names)), dtype=bool)
    if names is None:
        names = check_items(range(values.shape[1]))
    if len(names) != values.shape[1]:
        raise RankingError(f"items has {len(names)} names, but the table has {values.shape[1]} columns")
    if not values.size:
        return np.zeros(values.shape, dtype=np.int32), names
    numbers, missing = as_numbers(values, masked, names, what)
    free = np.zeros(values.shape, dtype=bool) if scores else check_ranks(numbers, missing, names)
    if plain and unlisted is None:
        check_no_missing(missing, names)
    if scores and numbers.dtype.kind == "f":
        numbers = -numbers
    elif scores:  # the smallest signed integer and unsigned integers have no negative: their order is negated
        numbers = -np.unique(numbers, return_inverse=True)[1].reshape(numbers.shape)
    ranks = dense_ranks(numbers, ~(missing | free), unlisted or "free")
    if plain:
        ranks[free] = FREE
    return ranks, names


def check_no_missing(missing: Mask, items: Sequence[object]) -> None:
    """Raise an error for the first missing cell."""
    if missing.any():
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise RankingError(
            f"row {row}, item {printable(items[column])!r} is missing (NaN), which is ambiguous in a plain array: use "
            "Rankings.from_ranks(data, unlisted='last') if missing items are ranked after the others, or "
            "unlisted='free' if nothing is known of them"
        )


def read_table(data: Any, what: str) -> tuple[NDArray[Any], Mask, tuple[str, ...] | None]:
    """Return the values of an array, list of rows or frame, the mask, and the names of the columns of a frame."""
    if is_frame(data):
        values = np.asarray(data.to_numpy())
        return values, np.zeros(values.shape, dtype=bool), check_items(data.columns)
    if isinstance(data, np.ndarray):
        values = data
    elif is_list(data):
        values = rows_to_array(data, what)
    else:
        raise RankingError(
            f"{short_repr(data)} is not a table of {what}s; give Rankings, or an array with one row per ranking"
        )
    if values.ndim != 2:
        raise RankingError(
            f"the table of {what}s has {values.ndim} dimension(s); it must have one row per ranking and one column per "
            "item"
        )
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(values.shape, dtype=bool)
    return np.asarray(values), masked, None


def rows_to_array(rows: Iterable[Any], what: str) -> NDArray[Any]:
    """Return a list of rows of equal lengths as an array, of objects if cells are not scalars."""
    lists: list[list[Any]] = []
    for number, row in enumerate(rows):
        if not is_list(row):
            raise RankingError(f"row {number} is {short_repr(row)}; a row of a table of {what}s is a list of numbers")
        lists.append(list(row))
        if len(lists[-1]) != len(lists[0]):
            raise RankingError(
                f"row {number} has {len(lists[-1])} entries but row 0 has {len(lists[0])}; all rows of a table need "
                "the same length (for lists of item names use Rankings.from_orders)"
            )
    if not lists:
        return np.empty((0, 0))
    try:
        return np.array(lists)
    except ValueError:  # lists of different lengths inside cells
        cells = np.fromiter(chain.from_iterable(lists), dtype=object, count=len(lists) * len(lists[0]))
        return cells.reshape(len(lists), len(lists[0]))


def as_numbers(values: NDArray[Any], masked: Mask, items: Sequence[str], what: str) -> tuple[NDArray[Any], Mask]:
    """Return a table as numbers, and the missing cells; raise an error for the first cell that is not a number."""
    if values.dtype.kind in "bmMc":
        raise RankingError(f"the table of {what}s holds {values.dtype} values; {what}s are numbers")
    if values.dtype.kind not in "iuf":
        out = np.empty(values.shape, dtype=np.float64)
        for (row, column), value in np.ndenumerate(values):
            try:
                out[row, column] = np.nan if masked[row, column] or is_missing(value) else float(value)
            except (TypeError, ValueError):
                raise RankingError(
                    f"row {row}, item {printable(items[column])!r} holds {printable(value)!r}; a {what} is a number"
                ) from None
        values = out
    return values, (masked | np.isnan(values)) if values.dtype.kind == "f" else masked


def check_ranks(values: NDArray[Any], missing: Mask, items: Sequence[str]) -> Mask:
    """Return the cells of a table of ranks that contain -1; raise an error for numbers that are not ranks."""
    free = np.asarray((values == FREE) & ~missing)

    def check(wrong: Mask, expected: str) -> None:
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            raise RankingError(f"row {row}, item {printable(items[column])!r} holds {values[row, column]}; {expected}")

    if values.dtype.kind == "f":
        listed = np.asarray(~(missing | free))
        check(listed & ~np.isfinite(values), "a rank is a finite number")
        check(
            fractional_ranks(values, listed),
            "a rank is a whole number, or the average rank of tied items as given by df.rank() and rankdata (for other "
            "numbers use Rankings.from_scores, where larger is better)",
        )
    if values.dtype.kind != "u":
        check(~missing & (values < FREE), "a rank is 0 or more, and -1 means not ranked")
    return free


def fractional_ranks(values: NDArray[Any], listed: Mask) -> Mask:
    """Return the listed cells that hold no whole number, but for average ranks of ties, counted from 1 or from 0."""
    fractional = np.asarray(listed & (np.floor(values) != values))
    rows = np.flatnonzero(fractional.any(axis=1))
    if len(rows):
        from scipy.stats import rankdata  # which is slow to import

        average = rankdata(np.where(listed, values, np.inf)[rows], axis=1)
        from_one, from_zero = ((values[rows] == average - first) | ~listed[rows] for first in (0, 1))
        fractional[rows[from_one.all(axis=1) | from_zero.all(axis=1)]] = False
    return fractional


# ---------------------------------------------------------------------- ranks without gaps


def ranks_for_loops(ranks: NDArray[np.integer]) -> RankArray:
    """Return a copy of ranks for compiled loops, which are compiled again for each layout and each type of arrays."""
    return np.array(ranks, dtype=np.int32, order="C")


def dense_ranks(values: NDArray[Any], listed: Mask, unlisted: Unlisted) -> RankArray:
    """Return bucket indices without gaps, row by row: smaller values are better, equal values share a bucket."""
    check_unlisted(unlisted)
    ranks = np.empty(values.shape, dtype=np.int32)
    encode = ranks_by_sorting
    if values.dtype.kind in "iu" and values.size and hasattr(np, "bitwise_count"):
        few = values.min(where=listed, initial=0) >= 0 and values.max(where=listed, initial=0) < MAX_BITS
        encode = ranks_by_bits if few else ranks_by_sorting
    for rows in row_slices(values.shape):
        ranks[rows] = encode(values[rows], listed[rows])
        if unlisted == "free":
            ranks[rows][~listed[rows]] = FREE
    return ranks


def ranks_by_bits(values: NDArray[Any], listed: Mask) -> RankArray:
    """Return the number of distinct smaller listed values of the row; for unlisted items that of all listed values."""
    bits = np.left_shift(np.uint64(1), np.where(listed, values, 0).astype(np.uint64))
    present = np.bitwise_or.reduce(np.where(listed, bits, np.uint64(0)), axis=1, keepdims=True)
    below = np.where(listed, bits - np.uint64(1), ~np.uint64(0))
    return np.bitwise_count(present & below).astype(np.int32)


def ranks_by_sorting(values: NDArray[Any], listed: Mask) -> RankArray:
    """Return the ranks as :func:`ranks_by_bits`, for arbitrary numbers."""
    order = np.lexsort((values, ~listed), axis=-1)  # unlisted items after the listed items of each row
    in_order = np.take_along_axis(values, order, axis=1)
    is_listed = np.take_along_axis(listed, order, axis=1)
    step = np.zeros(values.shape, dtype=np.int32)
    step[:, 1:] = (in_order[:, 1:] != in_order[:, :-1]) | (is_listed[:, 1:] != is_listed[:, :-1])
    step[:, 1:] &= is_listed[:, 1:] | is_listed[:, :-1]
    ranks = np.empty(values.shape, dtype=np.int32)
    np.put_along_axis(ranks, order, np.cumsum(step, axis=1, dtype=np.int32), axis=1)
    return ranks


# ---------------------------------------------------------------------- counts


def check_counts(counts: Any, n_rankings: int) -> IntArray:
    """Return counts as an integer array, one positive integer per ranking."""
    if counts is None:
        checked = np.ones(n_rankings, dtype=np.int64)
    else:
        given = check_array("counts", counts, f"one whole number for each of {n_rankings} rankings")
        if given.shape != (n_rankings,):
            raise RankingError(f"counts has shape {given.shape}; it must have one count for each of {n_rankings} rows")
        checked = as_integers(given, "count")
        if checked.size and checked.min() < 1:
            row = int(np.argmax(checked < 1))
            raise RankingError(f"row {row} has count {checked[row]}; a count is a positive number of voters")
        check_total_count(checked)
    return checked


def check_total_count(counts: IntArray) -> None:
    """Raise an error if the sum of the counts is not exact as a float."""
    total = float(counts.sum(dtype=np.float64))
    if total > 2 * MAX_VOTERS or int(counts.sum()) > MAX_VOTERS:  # the second sum is exact if the first is small
        raise RankingError(f"counts: the sum is {total:.4g} voters; it must be at most 2^53, about 9e15")


def sum_counts(counts: IntArray, groups: NDArray[Any], n_groups: int) -> IntArray:
    """Return the exact sum of the counts of each group."""
    sums = np.zeros(n_groups, dtype=np.int64)
    np.add.at(sums, groups, counts)
    return sums


def as_integers(values: NDArray[Any], what: str) -> IntArray:
    """Return a one-dimensional array as 64-bit integers; raise an error for the first value that is not an integer."""
    masked: Mask = np.asarray(np.ma.getmaskarray(values))
    values = np.asarray(values)
    if values.dtype.kind not in "iufOU" and values.size:
        raise RankingError(f"{what}s must be whole numbers; got an array of {values.dtype}")
    if values.dtype.kind in "iu" and not masked.any() and (not values.size or int(values.max()) <= MAX_VOTERS):
        return values.astype(np.int64)
    integers = [
        None if hidden else as_integer(value) for value, hidden in zip(values.tolist(), masked.tolist(), strict=True)
    ]
    for row, number in enumerate(integers):
        if number is None:
            raise RankingError(
                f"row {row} has {what} {'masked' if masked[row] else values[row]}; {what}s are whole numbers"
            )
        if abs(number) > MAX_VOTERS:
            raise RankingError(f"row {row} has {what} {number}; a {what} is at most 2^53, about 9e15")
    return np.array(integers, dtype=np.int64)


def as_integer(value: object) -> int | None:
    """Return an integer, or None for a value that is not one."""
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    return int(number) if number.is_integer() else None
