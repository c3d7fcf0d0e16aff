"""Comparisons: one immutable type for battles between two items, with a winner or a tie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, IntArray, Mask
from rankernel._utils.checks import (
    check_instance,
    check_labels,
    check_names,
    check_number,
    check_numbers,
    plural,
    printable,
)
from rankernel._utils.resources import check_bytes
from rankernel.columns import (
    POSSIBLE_USERS,
    TIME_WORDS,
    Column,
    Roles,
    encode_items,
    find_columns,
    frame_columns,
    normalized,
    outcomes,
)
from rankernel.data import group_codes
from rankernel.errors import (
    Argument,
    ArgumentTypeError,
    ArgumentValueError,
    MisfitWarning,
    RankingError,
    ReadingWarning,
    warn,
)
from rankernel.preferences import Preferences, user_names
from rankernel.rankings import FREE, Labels, Rankings, Rows, is_frame

MAX_SHOWN = 6
TIME_UNITS = {"year": "Y", "month": "M", "week": "W", "day": "D", "hour": "h"}


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Comparisons(Rows):
    """Battles between two items: each has an outcome, and optionally a judge, a weight, a time and labels.

    Use :meth:`from_frame` for a table and :meth:`from_arrays` for arrays. Functions for rankings take
    ``comparisons.preferences(by="judge")`` or ``comparisons.rankings(by=...)``; :func:`bradley_terry` and
    :func:`leaderboard` take the comparisons themselves.

    Examples
    --------
    >>> battles = Comparisons.from_arrays(["x", "x", "y"], ["y", "z", "z"], [1, 0, -1], judge=["ann", "ann", "bob"])
    >>> battles
    Comparisons: 3 comparisons of 3 items by 2 judges (1 tie)
      ann: x > y
      ann: x = z
      bob: z > y
    >>> battles.wins.astype(int)
    array([[0, 1, 0],
           [0, 0, 0],
           [0, 1, 0]])
    """

    #: Names of the items.
    items: tuple[str, ...]
    #: Index of the first item of each comparison.
    first: IntArray
    #: Index of the second item of each comparison.
    second: IntArray
    #: 1 if the first item won, -1 if the second one won, 0 for a tie.
    outcome: NDArray[np.int8]
    #: Weight of each comparison.
    weights: FloatArray
    #: Names of the judges; empty if they are unknown.
    judges: tuple[str, ...]
    #: Index of the judge of each comparison; empty if they are unknown.
    judge: IntArray
    #: Time of each comparison as ``datetime64`` or numbers; None if unknown.
    time: NDArray[Any] | None
    #: Labels of comparisons, such as a language: for each column one value per comparison.
    labels: Labels
    #: How the file was read from which the comparisons come; None for other comparisons.
    source: Any
    _of_rows = ("first", "second", "outcome", "weights", "judge", "time")
    _compared = ("items", "judges", *_of_rows, "labels")
    _index_error = "comparisons are indexed by row"
    _n_shown = MAX_SHOWN

    @classmethod
    def from_arrays(
        cls,
        first: Any,
        second: Any,
        outcome: Any,
        *,
        judge: Any = None,
        weights: Any = None,
        time: Any = None,
        labels: Mapping[str, Any] | None = None,
        items: Iterable[object] | None = None,
    ) -> Comparisons:
        """Build from arrays with one entry per comparison.

        Parameters
        ----------
        first, second : arrays of names
            The two items.
        outcome : array of numbers
            Positive if the first item won, negative if the second one won, 0 for a tie.
        judge : array of names, optional
            Who made the comparison.
        weights : array of positive numbers, optional
            Weight of each comparison, such as a number of equal ones; 1 by default.
        time : array of dates, texts of dates, or numbers, optional
            Time of each comparison.
        labels : mapping of names to arrays, optional
            Further properties of comparisons.
        items : iterable of names, optional
            All items; by default those that occur, in order of first appearance.
        """
        signs = np.sign(check_numbers("outcome", outcome, (None,))).astype(np.int8)
        n = len(signs)
        sides = [Column(check_labels(name, values, n)) for name, values in (("first", first), ("second", second))]
        judges = None if judge is None else Column(check_labels("judge", judge, n))
        given = np.ones(n) if weights is None else check_numbers("weights", weights, (n,), 0.0)
        columns = {} if labels is None else check_instance("labels", labels, Mapping, "a mapping to arrays")
        checked = {str(name): check_labels(f"labels[{name!r}]", each, n) for name, each in columns.items()}
        times = None if time is None else as_times(time, n)
        return cls._encoded(sides, signs, judges, given, times, checked, items, "comparison {}".format)

    @classmethod
    def _encoded(
        cls,
        sides: Sequence[Column],
        outcome: NDArray[np.int8],
        judge: Column | None,
        weights: FloatArray,
        time: NDArray[Any] | None,
        labels: Labels,
        items: Iterable[object] | None,
        where: Callable[[int], str],
        source: Any = None,
    ) -> Comparisons:
        """Build from two columns of items and checked arrays; ``where`` names a row in errors."""
        (first, second), names = encode_items(sides, items, where)
        if (first == second).any():
            row = int(np.argmax(first == second))
            raise RankingError(f"{where(row)} compares {printable(names[first[row]])!r} with itself")
        judges: tuple[str, ...] = ()
        codes = np.zeros(0, dtype=np.int64)
        if judge is not None:
            if "" in judge.texts:
                row = int(np.argmax(judge.mapped(lambda text: not text, bool)))
                raise RankingError(f"{where(row)} has no user (judge); remove incomplete comparisons")
            judges, codes = tuple(judge.texts), judge.codes.astype(np.int64)
        return cls._trusted(names, first, second, outcome, weights, judges, codes, time, labels, source)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        items: Iterable[object] | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
    ) -> Comparisons:
        """Build from a table with one row per comparison: a data frame or a mapping of names to columns.

        Columns are recognised by their names, as in :meth:`Preferences.from_pairs`: ``model_a``, ``model_b`` and
        ``winner``, or ``winner`` and ``loser``, optionally a ``judge``, a ``weight`` and a ``time``. All other columns
        become labels: numbers, and texts that occur in more than one row.

        Parameters
        ----------
        frame : data frame or mapping
            The table.
        items : iterable of names, optional
            All items; by default those that occur, in order of first appearance.
        columns : mapping, optional
            Roles of columns whose names are not recognised: ``{"user": "expert"}``. The roles are user, better, worse;
            a, b, winner; count.
        ignore : names of columns
            Columns to leave out.

        Examples
        --------
        >>> frame = {"model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["model_b", "tie"]}
        >>> battles = Comparisons.from_frame(frame | {"language": ["en", "en"]})
        >>> battles
        Comparisons: 2 comparisons of 3 items (1 tie)
          y > x
          y = z
        >>> battles.labels
        {'language': array(['en', 'en'], dtype=object)}
        """
        given = check_instance("columns", {} if columns is None else columns, Mapping, "a mapping of roles to columns")
        if not isinstance(frame, Mapping) and not is_frame(frame):
            raise ArgumentTypeError("frame", frame, "a data frame, or a mapping of names to columns")
        names = [str(name) for name in (frame if isinstance(frame, Mapping) else frame.columns)]
        ignored = check_names("ignore", ignore)
        roles = find_columns(names, dict(given), ignored)
        table = frame_columns(frame, [name for name in names if name not in ignored], "frame")
        return cls._from_columns(table, roles, items, "row {}".format)

    @classmethod
    def _from_columns(
        cls,
        table: Mapping[str, Column],
        roles: Roles,
        items: Iterable[object] | None,
        where: Callable[[int], str],
        source: Any = None,
    ) -> Comparisons:
        """Build from the columns of a table with known roles; ``where`` names a row in errors."""
        sides = [table[str(name)] for name in ((roles.better, roles.worse) if roles.better else (roles.a, roles.b))]
        n = len(sides[0])
        weights = np.ones(n)
        if roles.count is not None:
            weights, column = table[roles.count].numbers, table[roles.count]
            wrong = ~np.isfinite(weights) | (weights < 0)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise RankingError(f"{where(row)}: the count {printable(column[row])!r} is not a number >= 0")
        times: NDArray[Any] | None = None
        labels: dict[str, Any] = {}
        for name, column in table.items():
            if name in (*roles.assigned().values(), *roles.indicators) or isinstance(column.head, list | dict):
                continue
            if normalized(name) in TIME_WORDS and times is None:
                with suppress(ArgumentValueError):
                    times = column_times(column)
                    continue
            if column.is_numeric:
                is_whole = (np.abs(column.numbers) < 2**53).all() and (column.numbers == np.floor(column.numbers)).all()
                labels[name] = column.numbers.astype(np.int64) if is_whole else column.numbers
            elif column.has_repeats:
                labels[name] = np.array(column.texts, dtype=object)[column.codes]
        judge = None if roles.user is None else table[roles.user]
        outcome = outcomes(table, roles, where)
        return cls._encoded(sides, outcome, judge, weights, times, labels, items, where, source)

    # ------------------------------------------------------------------ shape

    @property
    def n_judges(self) -> int:
        """Number of judges; 0 if they are unknown."""
        return len(self.judges)

    @property
    def tied(self) -> Mask:
        """Whether each comparison is a tie."""
        return np.asarray(self.outcome == 0)

    __hash__ = None  # type: ignore[assignment]

    def _heading(self) -> str:
        n_ties = int(np.count_nonzero(self.tied))
        by = f" by {plural(self.n_judges, 'judge')}" if self.judges else ""
        ties = f" ({plural(n_ties, 'tie')})" if n_ties else ""
        return f"Comparisons: {plural(len(self), 'comparison')} of {self.n_items:,} items{by}{ties}"

    def _row_texts(self, shown: Self) -> Iterable[str]:
        for row, (first, second) in enumerate(zip(shown.first, shown.second, strict=True)):
            a, b = printable(self.items[first]), printable(self.items[second])
            text = {1: f"{a} > {b}", -1: f"{b} > {a}", 0: f"{a} = {b}"}[int(shown.outcome[row])]
            yield f"{printable(self.judges[shown.judge[row]])}: {text}" if self.judges else text

    # ------------------------------------------------------------------ counts

    @property
    def wins(self) -> FloatArray:
        """Weighted number of wins of item x over item y, shape (n_items, n_items)."""
        winner, loser = self._winner_and_loser()
        n = self.n_items
        counts = np.bincount(winner * n + loser, self.weights * ~self.tied, n * n)
        return np.asarray(counts, dtype=np.float64).reshape(n, n)

    @property
    def ties(self) -> FloatArray:
        """Weighted number of ties of items x and y, a symmetric matrix of shape (n_items, n_items)."""
        n = self.n_items
        counts = np.bincount(self.first * n + self.second, self.weights * self.tied, n * n).reshape(n, n)
        return np.asarray(counts + counts.T)

    @property
    def match_ups(self) -> IntArray:
        """Index of the unordered pair of items of each comparison, which is its stratum in tests of groups."""
        return np.asarray(
            np.minimum(self.first, self.second) * self.n_items + np.maximum(self.first, self.second), dtype=np.int64
        )

    def _winner_and_loser(self) -> tuple[IntArray, IntArray]:
        """Return the two items with the winner in front; those of ties are in the given order."""
        reverse = self.outcome < 0
        return np.where(reverse, self.second, self.first), np.where(reverse, self.first, self.second)

    def _of_compared_items(self) -> Comparisons:
        """Return the comparisons without items that are never compared; a warning names these."""
        used = np.unique(np.concatenate([self.first, self.second]))
        if len(used) == self.n_items:
            return self
        names = sorted(set(self.items) - {self.items[item] for item in used})
        more = f" and {len(names) - MAX_SHOWN:,} more" * (len(names) > MAX_SHOWN)
        shown = ", ".join(printable(name) for name in names[:MAX_SHOWN])
        warn(f"items that are never compared are left out: {shown}{more}", ReadingWarning)
        first, second = (np.searchsorted(used, side) for side in (self.first, self.second))
        items = tuple(self.items[item] for item in used)
        return self._replaced(items=items, first=first, second=second, source=self.source)

    # ------------------------------------------------------------------ groups

    def groups(self, by: Any) -> tuple[tuple[str, ...], IntArray]:
        """Return the names of groups of comparisons and the group of each comparison.

        Parameters
        ----------
        by : str or array of shape (n_comparisons,)
            ``"judge"``, the name of a label, a unit of time (``"year"``, ``"month"``, ``"week"``, ``"day"``,
            ``"hour"``), or the group of each comparison.
        """
        if not isinstance(by, str):
            return group_codes(check_labels("by", by, len(self)))
        if by == "judge" and self.judges:
            return self.judges, self.judge
        if by in self.labels:
            return group_codes(self.labels[by])
        if by in TIME_UNITS and self.time is not None and self.time.dtype.kind == "M":
            return group_codes(self.time.astype(f"datetime64[{TIME_UNITS[by]}]").astype(str))
        known = [*(["judge"] if self.judges else []), *self.labels]
        if self.time is not None and self.time.dtype.kind == "M":
            known += TIME_UNITS
        raise ArgumentValueError("by", by, f"one of {', '.join(known)}, or an array" if known else "an array of groups")

    def to_rankings(self) -> Rankings:
        """Return one ranking per comparison: the winner before the loser, and all other items free; a tie is no order.

        Functions for rankings then treat every comparison as a voter. Tests of groups also need ``match_ups`` as
        strata, because which items a group compared is not a preference; :func:`k_sample_test` and :func:`mmd_test`
        do this if they are given comparisons.
        """
        if (self.weights % 1).any() or (self.weights < 1).any():
            raise RankingError("weights that are not whole numbers cannot be numbers of voters")
        check_bytes(4 * len(self) * self.n_items, f"rankings of {len(self):,} comparisons of {self.n_items:,} items")
        winner, loser = self._winner_and_loser()
        ranks = np.full((len(self), self.n_items), FREE, dtype=np.int32)
        decided = np.flatnonzero(~self.tied)
        ranks[decided, winner[decided]], ranks[decided, loser[decided]] = 0, 1
        return Rankings._trusted(ranks, self.items, self.weights.astype(np.int64))

    def preferences(self, by: Any = "judge") -> Preferences:
        """Return one partial order per judge or other group of comparisons.

        If two items are compared repeatedly, the majority counts, and equal numbers state nothing. A tie states nothing
        about the order. Items of a preference cycle are contracted (see :class:`Preferences`); a warning states the
        share of comparisons that this discards.

        Examples
        --------
        >>> battles = Comparisons.from_arrays(list("aab"), list("bcc"), [0, 0, 1], judge=["ann"] * 3)
        >>> battles.preferences()
        Preferences: 1 user, 3 items
          ann: b > c
        """
        names, group = self.groups(by)
        result, share = self._partial_orders(names, group)
        if share:
            warn(
                f"{result.n_contradicting:,} of {len(names):,} users have preference cycles; contracting them discards "
                f"{share:.1%} of the decided comparisons. A Bradley-Terry ranking of each user uses all of them: "
                "comparisons.rankings(by=...)",
                ReadingWarning,
            )
        return result

    def _of_users(
        self, roles: Roles, users: Iterable[object] | None, counts: Any, where: Callable[[int], str]
    ) -> tuple[Preferences, IntArray]:
        """Return the preferences of the judges, or without judges of every comparison, and the user of each comparison.

        The weights are numbers of voters: those of a user must be equal.
        """
        for name, values in self.labels.items() if roles.user is None else ():
            if normalized(name) in POSSIBLE_USERS and len(np.unique(values)) < len(self):
                problem = f"the values of column {printable(name)!r} are repeated, so it may identify users; give it "
                raise RankingError(
                    *(problem, "the role of user in ", Argument("columns", ...)),
                    *(", or if every row is a different user, name it in ", Argument("ignore", ...)),
                )
        user = self.judge if self.judges else np.arange(len(self))
        names = self.judges or tuple(map(str, user.tolist()))
        if users is not None:
            index = {name: number for number, name in enumerate(user_names(users))}
            unknown = [name for name in names if name not in index]
            if unknown:
                row = int(np.argmax(user == names.index(unknown[0])))
                problem = f"{where(row)} is of user {printable(unknown[0])!r}, who is not one of the "
                raise RankingError(problem, Argument("users"))
            user, names = np.array([index[name] for name in names], dtype=np.int64)[user], tuple(index)
        if counts is None and roles.count is not None:
            counts = np.ones(len(names))
            counts[user] = self.weights
            different = np.flatnonzero(counts[user] != self.weights)
            if len(different):
                row = int(different[0])
                name = printable(names[user[row]])
                raise RankingError(
                    f"{where(row)} has another count of user {name!r} than a later row; each has one count"
                )
        return self._partial_orders(names, user, counts)[0], user

    def _partial_orders(self, users: tuple[str, ...], user: IntArray, counts: Any = None) -> tuple[Preferences, float]:
        """Return the majorities of each user as partial orders, and the share of comparisons lost in cycles."""
        winner, loser = self._winner_and_loser()
        strict = ~self.tied & (self.weights > 0)
        n, weights = self.n_items, np.where(winner < loser, self.weights, -self.weights)[strict]
        low, high = np.minimum(winner, loser)[strict], np.maximum(winner, loser)[strict]
        cells, index = np.unique((user[strict] * n + low) * n + high, return_inverse=True)
        margin = np.bincount(index.ravel(), weights, len(cells))
        cells, margin = cells[margin != 0], margin[margin != 0]
        pairs = np.stack([cells // n % n, cells % n])
        better, worse = np.where(margin > 0, pairs, pairs[::-1])
        result = Preferences._from_strict(cells // n**2, better, worse, users, self.items, counts)
        lost = result.packed[cells // n**2, better, worse >> 3] & (128 >> (worse & 7)) == 0  # their bit is not set
        return result, float(np.abs(margin[lost]).sum() / np.abs(margin).sum()) if lost.any() else 0.0

    def rankings(self, by: Any = "judge", *, min_comparisons: int | None = None, prior: float = 0.5) -> Rankings:
        """Return one Bradley-Terry ranking per judge, day, language or other group of comparisons.

        Ties are half a win for each item. Items that a group did not compare, or not with the items of its largest
        connected component, are free.

        Parameters
        ----------
        by : str or array
            The groups, as in :meth:`groups`. Their names are the label ``"group"`` of the rankings.
        min_comparisons : int, optional
            The smallest number of comparisons of a group; by default the number of items less one, which is needed to
            connect all items. Other groups are left out, with a warning.
        prior : float
            Wins added in each direction to every pair that the group compared, so that strengths are finite.
        """
        from rankernel.models.bradley_terry import rank_groups  # a later layer

        return rank_groups(self, by, min_comparisons, check_number("prior", prior, 0, above=True))


def check_judges_are_mixed(judge: IntArray, group: IntArray) -> None:
    """Warn if most pairs of comparisons of one judge are in one group, so that comparisons are not exchangeable."""
    names, codes = np.unique(group, return_inverse=True)
    table = np.bincount(judge * len(names) + codes.ravel(), minlength=(judge.max() + 1) * len(names)) * 1.0
    table = table.reshape(-1, len(names))
    totals = table.sum(axis=1)
    n_pairs, n_same, chance = (totals * (totals - 1)).sum(), (table * (table - 1)).sum(), table.sum(axis=0) / len(judge)
    if n_same > n_pairs * (1 + chance @ chance) / 2:
        warn(
            "the groups divide the judges: most judges made their comparisons in one group. Comparisons of one judge "
            "are dependent, so the p-value is too small if judges differ; test rankings of the judges instead: "
            "comparisons.rankings(by='judge')",
            MisfitWarning,
        )


def column_times(column: Column) -> NDArray[Any]:
    """Return the times in a column; numbers above 10^8 are Unix times in seconds, above 10^11 in milliseconds."""
    if not column.is_numeric:
        return as_times(np.array(column.texts, dtype=object), len(column.texts))[column.codes]
    least, most = column.numbers.min(), column.numbers.max()
    for unit, start in (("s", 1e8), ("ms", 1e11)):
        if start <= least and most < 100 * start:
            return (column.numbers * (10**6 if unit == "s" else 10**3)).astype("datetime64[us]")
    return column.numbers


def as_times(values: Any, n: int) -> NDArray[Any]:
    """Return times as ``datetime64`` or as numbers."""
    given = check_labels("time", values, n)
    if given.dtype.kind in "fiuM":
        return given
    numbers = Column(given).numbers
    if len(given) and not np.isnan(numbers).any():
        return numbers
    try:
        return np.array([str(value).replace(" ", "T").removesuffix("Z") for value in given], dtype="datetime64[us]")
    except ValueError:
        raise ArgumentValueError("time", values, "dates, ISO texts of dates, or numbers") from None
