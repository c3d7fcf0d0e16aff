"""Leaderboards: scores of items with confidence intervals, and intervals of ranks that hold simultaneously."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import expit
from threadpoolctl import threadpool_limits

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, IntArray, Mask
from rankernel._utils.checks import Seed, as_seed, check_choice, check_integer, check_labels, check_number, printable
from rankernel._utils.notebook import html_card
from rankernel._utils.resources import check_bytes
from rankernel.comparisons import Comparisons
from rankernel.data import Data, as_data, group_codes
from rankernel.errors import Argument, ArgumentValueError, RankingError, require
from rankernel.models.bradley_terry import (
    LAST_STEP,
    MAX_STEPS,
    PairCounts,
    check_connected,
    comparisons_of,
    maximize_likelihood,
    units_of_items,
)
from rankernel.preferences import Preferences
from rankernel.rankings import FREE, Rankings, is_frame

Score = Literal["bradley_terry", "borda", "copeland", "mean_rank"]
Resample = Literal["auto", "judges", "comparisons"]

CHUNK_NUMBERS = 2**22
FEW_UNITS = 20  # below, pairs are corrected by Bonferroni, as benchmarks.leaderboard shows to be necessary


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Scores of items, with intervals of scores and ranks.

    Attributes
    ----------
    items : tuple of str
        The items, best score first.
    scores, standard_errors : arrays of shape (n_items,)
        The scores and their standard errors.
    intervals : array of shape (n_items, 2)
        Confidence intervals of the scores, each at the confidence level.
    ranks : array of shape (n_items,)
        The rank of each item by its score: 1 is the best, and equal scores share a rank.
    rank_intervals : array of shape (n_items, 2)
        Intervals that contain the ranks of all items simultaneously, at the confidence level.
    above : Preferences
        The partial order in which an item is before another if its score is significantly better, for all pairs of
        items simultaneously: one row.
    score : str
        The score.
    confidence_level : float
        The confidence level.
    units : str
        What was resampled, with the number: ``"124 judges"``.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> board = leaderboard(Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[20, 20]))
    >>> board.items, board.rank_intervals.tolist()
    (('a', 'b', 'c'), [[1, 1], [2, 3], [2, 3]])
    """

    _repr_html_ = html_card

    items: tuple[str, ...]
    scores: FloatArray
    standard_errors: FloatArray
    intervals: FloatArray
    ranks: IntArray
    rank_intervals: IntArray
    above: Preferences
    score: str
    confidence_level: float
    units: str

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per item, best first, such as for a data frame or JSON."""
        columns = {
            "item": list(self.items),
            "rank": self.ranks.tolist(),
            "rank_low": self.rank_intervals[:, 0].tolist(),
            "rank_high": self.rank_intervals[:, 1].tolist(),
            self.score: self.scores.tolist(),
            "standard_error": self.standard_errors.tolist(),
            "low": self.intervals[:, 0].tolist(),
            "high": self.intervals[:, 1].tolist(),
        }
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per item, best first."""
        require("pandas", "frames")
        import pandas as pd

        return pd.DataFrame(self.rows())

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores with their intervals, and the intervals of ranks: see :func:`rankernel.plots.leaderboard`."""
        from rankernel import plots  # a later layer

        return plots.leaderboard(self, ax=ax)

    def __repr__(self) -> str:
        percent = f"{self.confidence_level:.0%}"
        head = ("rank", f"{percent} ranks", "item", self.score, f"{percent} interval")
        lines = [
            (
                str(row["rank"]),
                f"{row['rank_low']}-{row['rank_high']}" if row["rank_low"] < row["rank_high"] else str(row["rank_low"]),
                printable(row["item"]),
                f"{row[self.score]:.4g}",
                f"{row['low']:.4g} to {row['high']:.4g}",
            )
            for row in self.rows()
        ]
        n_characters = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        table = [
            "  ".join(cell.ljust(number) for cell, number in zip(line, n_characters, strict=True))
            for line in (head, *lines)
        ]
        n = len(self.items)
        pairs = f"{self.above.before.sum():,} of {n * (n - 1) // 2:,} pairs of items are separated"
        text = f"Leaderboard: {n:,} item{'s' * (n != 1)}, {self.units} resampled; {pairs}"
        return "\n".join([text, *(f"  {line.rstrip()}" for line in table)])


def leaderboard(
    data: Any,
    *,
    score: Score | None = None,
    confidence_level: float = 0.95,
    resample: Resample = "auto",
    by: Any = None,
    n_resamples: int = 1000,
    prior: float = 0.0,
    rng: Seed = 0,
) -> Any:
    r"""Return the scores of items with confidence intervals, and the ranks that the data supports.

    Resamples weight each voter, judge or comparison by an independent exponential variable (Bayesian bootstrap). For
    win rates and majority contests, whose pairs may have few comparisons, resamples are drawn from a normal
    distribution instead, in which each judge or comparison contributes its difference to the rate that the others
    predict. Item i is separated from item j if :math:`|s_i - s_j|` exceeds c standard errors, where c is the quantile
    of the largest deviation over all pairs of items, with the quantile of the t distribution in place of the normal
    one, and pairs that are already separated are left out of the maximum (step-down). For items with fewer than 20
    voters, judges or comparisons, c is at least the quantile by Bonferroni's inequality. The rank of an item is then at
    least one more than the number of items above it; these intervals hold for all items simultaneously.

    Parameters
    ----------
    data : Comparisons, Rankings, Preferences, array of ranks, or data frame
        The data. Items that are never compared are left out, with a warning. Rows of rankings are voters, or the tasks
        of a benchmark. A data frame is a table of scores with one
        row per task and one column per item, where larger values are better and missing ones are allowed.
    score : {"bradley_terry", "borda", "copeland", "mean_rank"}, optional
        Bradley-Terry strengths (ties are half a win; the default for comparisons); the mean number of items that an
        item is preferred to, with free items at their expected positions, or for comparisons the mean win rate against
        the other items (``"borda"``; the default otherwise); the number of majority contests won (``"copeland"``); the
        mean rank over the rows that rank the item (``"mean_rank"``).
    confidence_level : float
        The confidence level of all intervals.
    resample : {"auto", "judges", "comparisons"}
        The independent units that are resampled: by default judges if they are known, otherwise single comparisons.
        Rankings are resampled by voter.
    by : str or array, optional
        The name of a label or the group of each row: one leaderboard per group, in a dictionary.
    n_resamples : int
        The number of resamples.
    prior : float
        For Bradley-Terry strengths: the number of wins added in each direction between each two items. It makes the
        strengths of items finite that win or lose all comparisons.
    rng : int, Generator or None
        The seed of the resamples; the default 0 gives the same result in every call.

    Returns
    -------
    Leaderboard, or dict of Leaderboards

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ballots = Rankings.from_scores(rng.normal([2.0, 0.0, 0.1], 1.0, (60, 3)), items=["a", "b", "c"])
    >>> result = leaderboard(ballots)
    >>> result.items, result.rank_intervals.tolist()
    (('a', 'c', 'b'), [[1, 1], [2, 3], [2, 3]])
    """
    confidence_level = check_number("confidence_level", confidence_level, 0, 1)
    check_integer("n_resamples", n_resamples, 20)
    prior = check_number("prior", prior, 0)
    check_choice("resample", resample, get_args(Resample))
    if is_frame(data):
        data = Rankings.from_scores(data, unlisted="free")
    given = data if isinstance(data, Comparisons) else as_data(data, name="data")
    if not len(given):
        raise RankingError(Argument("data"), " is empty; give at least one ranking or comparison")
    default = "bradley_terry" if isinstance(given, Comparisons) else "borda"
    name = check_choice("score", default if score is None else score, get_args(Score))
    if by is not None:
        groups, group = given.groups(by) if isinstance(given, Comparisons) else group_rows(given, by)
        options: dict[str, Any] = {"score": score, "confidence_level": confidence_level, "resample": resample}
        options |= {"n_resamples": n_resamples, "prior": prior, "rng": as_seed(rng)}
        boards = {}
        for number, each in enumerate(groups):
            try:
                boards[each] = leaderboard(given[group == number], **options)
            except RankingError as error:
                raise RankingError(f"group {printable(each)!r}: ", *error.parts) from None
        return boards
    if name == "mean_rank" and not isinstance(given, Rankings):
        raise ArgumentValueError("score", name, "'borda' or another score: only rankings have ranks")
    by_judge = not isinstance(given, Comparisons) or (bool(given.judges) and resample != "comparisons")
    if resample == "judges" and not (isinstance(given, Comparisons) and by_judge):
        raise ArgumentValueError("resample", resample, "'comparisons': the judges are unknown")
    if not isinstance(given, Comparisons):
        n_units, unit = given.n_voters, "voter"
    else:
        given = given._of_compared_items()
        n_units, unit = (len(np.unique(given.judge)), "judge") if by_judge else (len(given), "comparison")
    units = f"{n_units:,} {unit}{'s' * (n_units != 1)}"
    resamples = resample_scores(given, name, by_judge, n_resamples, prior, np.random.default_rng(as_seed(rng)))
    return rank_items(given.items, resamples, units, name, confidence_level)


def group_rows(data: Data, by: Any) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of groups and the group of each row of rankings or preferences."""
    if isinstance(by, str):
        if by not in data.labels:
            raise ArgumentValueError("by", by, f"one of the labels {', '.join(data.labels)}, or an array")
        return group_codes(data.labels[by])
    return group_codes(check_labels("by", by, len(data)))


# ---------------------------------------------------------------------- scores of resamples


class Resamples(NamedTuple):
    """The scores of the data, and in further rows those of the resamples."""

    scores: FloatArray
    #: The number of independent units that compare or rank each item.
    n_units: FloatArray
    #: Whether the resamples are those of a Bayesian bootstrap, whose variance is too small if there are few units.
    is_bayesian: bool


class UnitWins(NamedTuple):
    """Wins and comparisons by unit (judge, voter, or comparison) and ordered pair of items; a tie is half a win."""

    unit: IntArray
    cell: IntArray  # first * n_items + second
    wins: FloatArray
    games: FloatArray
    counts: FloatArray  # how many equal units each is

    def table(self, values: FloatArray, n_cells: int) -> Any:
        """Return values as a sparse matrix with one row for each unit."""
        return csr_array((values, (self.unit, self.cell)), shape=(len(self.counts), n_cells))


def unit_wins(part: Comparisons | Data, by_judge: bool) -> UnitWins:
    """Return the wins of judges or voters, or of single comparisons, of which equal ones are counted."""
    data = part if isinstance(part, Comparisons) else comparisons_of(part)
    low, high = np.minimum(data.first, data.second), np.maximum(data.first, data.second)
    outcome = np.where(data.first < data.second, data.outcome, -data.outcome).astype(np.int64)
    n, weights = data.n_items, data.weights
    counts = np.ones(data.n_judges) if isinstance(part, Comparisons) else part.counts.astype(np.float64)
    unit = data.judge
    if not by_judge:
        unit = np.unique((low * n + high) * 3 + outcome, return_inverse=True)[1].ravel()
        counts = np.asarray(np.bincount(unit, weights), dtype=np.float64)
        weights = weights / np.maximum(counts[unit], np.finfo(float).tiny)
    unit, cell = np.tile(unit, 2), np.concatenate([low * n + high, high * n + low])
    wins, games = np.concatenate([weights * (1 + outcome) / 2, weights * (1 - outcome) / 2]), np.tile(weights, 2)
    if isinstance(part, Comparisons):  # which a unit may repeat
        codes, index = np.unique(unit * n**2 + cell, return_inverse=True)
        unit, cell = codes // n**2, codes % n**2
        wins, games = (np.bincount(index.ravel(), each).astype(np.float64) for each in (wins, games))
    return UnitWins(unit, cell, wins, games, counts)


def pairwise_resamples(
    parts: Sequence[Comparisons | Data],
    items: tuple[str, ...],
    score: str,
    by_judge: bool,
    n_resamples: int,
    prior: float,
    rng: Any,
) -> Resamples:
    """Return scores that depend on the wins of each item over each other one, from parts of the data.

    Rates of wins are normal variables around those of the data. Each unit contributes its difference to the rate that
    the other units predict by Laplace's rule of succession, so a rate of few comparisons is not taken as certain.
    """
    n, n_units = len(items), np.zeros(len(items))
    wins, games = np.zeros(n * n), np.zeros(n * n)
    totals: FloatArray = np.zeros((n_resamples + 1, n * n))
    for units in (unit_wins(part, by_judge) for part in parts):
        wins += np.bincount(units.cell, units.wins * units.counts[units.unit], n * n)
        games += np.bincount(units.cell, units.games * units.counts[units.unit], n * n)
        n_units += units_of_items(units.unit, units.cell // n, units.counts, n)
        if score == "bradley_terry":
            weights = bootstrap_weights(units.counts, n_resamples, rng)
            totals += weights @ units.table(units.wins, n * n)
    if score == "bradley_terry":
        totals[:] += prior * (1 - np.eye(n)).ravel()
        return Resamples(bradley_terry_strengths(totals.reshape(-1, n, n), items), n_units, True)
    compared = games > 0
    rates = np.divide(wins, games, out=np.zeros(n * n), where=compared)
    for units in (unit_wins(part, by_judge) for part in parts):
        cell = units.cell
        predicted = (wins[cell] - units.wins + 1) / (games[cell] - units.games + 2)
        residuals = units.table((units.wins - units.games * predicted) / games[cell], n * n)
        totals[1:] += rng.standard_normal((n_resamples, len(units.counts))) * np.sqrt(units.counts) @ residuals
    totals += rates
    if score == "copeland":
        margin = np.where(compared & ~np.isclose(totals, 0.5, rtol=1e-12), np.sign(totals - 0.5), 0.0)
        return Resamples((margin.reshape(-1, n, n).sum(axis=2) + n - 1) / 2, n_units, False)
    n_opponents = np.maximum(compared.reshape(n, n).sum(axis=1), 1)
    return Resamples(totals.reshape(-1, n, n).sum(axis=2) / n_opponents, n_units, False)


def resample_scores(
    data: Comparisons | Data, score: str, by_judge: bool, n_resamples: int, prior: float, rng: np.random.Generator
) -> Resamples:
    """Return the scores of the data and of each resample."""
    n, pairwise = data.n_items, isinstance(data, Comparisons) or score in ("bradley_terry", "copeland")
    check_bytes(8 * (n_resamples + 1) * n * (n if pairwise else 2), f"{n_resamples:,} resamples of {n:,} items")
    if isinstance(data, Comparisons):
        parts = [data[data.weights > 0]]
        return pairwise_resamples(parts, data.items, score, by_judge, n_resamples, prior, rng)
    rows, step = data.unique(), max(CHUNK_NUMBERS // max(n**2 if pairwise else 2 * n, n_resamples), 1)
    chunks = [rows[start : start + step] for start in range(0, len(rows), step)]
    if pairwise:
        return pairwise_resamples(chunks, data.items, score, True, n_resamples, prior, rng)
    totals: FloatArray = np.zeros((n_resamples + 1, 2 * n))
    for rows in chunks:
        totals += bootstrap_weights(rows.counts, n_resamples, rng) @ unit_scores(rows, score)
    sums, numbers = totals[:, :n], totals[:, n:]
    if (numbers[0] == 0).any():
        name = printable(data.items[int(np.argmin(numbers[0]))])
        raise RankingError(f"item {name!r} is ranked by no voter; remove it, or give ", Argument("score", "borda"))
    return Resamples(sums / numbers, numbers[0], True)


def bootstrap_weights(counts: Any, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the counts, and as further rows sums of as many exponential variables as the counts."""
    result = np.empty((n_resamples + 1, len(counts)))
    result[0] = counts
    rng.standard_gamma(result[0], out=result[1:])
    return result


def unit_scores(rows: Data, score: str) -> FloatArray:
    """Return the scores of items in each row, 0 for those that are not present, beside whether each is present."""
    if score == "borda":
        from rankernel.gram.exact.features import mean_statistics
        from rankernel.gram.rows import as_rows

        points = (rows.n_items - 1) / 2 - mean_statistics(as_rows(rows), "ranks")
        return np.hstack([points, np.ones_like(points)])
    assert isinstance(rows, Rankings)
    present = rows.ranks != FREE
    ranks = stats.rankdata(np.where(present, rows.ranks, rows.n_items), axis=1)
    return np.hstack([np.where(present, ranks, 0.0), present])


def bradley_terry_strengths(wins: FloatArray, items: tuple[str, ...]) -> FloatArray:
    """Return the strengths for matrices of wins, shape (n, n_items, n_items), the first one from the data."""
    games = wins + wins.transpose(0, 2, 1)
    counts = PairCounts.of_matrices(wins[0], np.zeros_like(wins[0]), "half")
    check_connected(counts, 0.0, items)
    result = np.tile(maximize_likelihood(counts)[0], (len(wins), 1))
    step = max(CHUNK_NUMBERS // wins[0].size, 1)
    for first in range(1, len(wins), step):
        part = slice(first, first + step)
        improve_strengths(wins[part], games[part], result[part])
    return result


def improve_strengths(wins: FloatArray, games: FloatArray, strengths: FloatArray) -> None:
    """Move Bradley-Terry strengths of many matrices of wins to the maxima of the likelihood.

    A Newton step by which differences of strengths change by at most d is multiplied by log(1 + d) / d. The likelihood
    then increases in every step (Bach 2010), and near the maximum the steps are Newton's.
    """
    n, running = wins.shape[1], np.arange(len(wins))
    for _ in range(MAX_STEPS):
        probability = expit(strengths[running, :, None] - strengths[running, None, :])
        gradient = wins[running].sum(axis=2) - (games[running] * probability).sum(axis=2)
        variance = games[running] * probability * (1 - probability)
        hessian = -variance + variance.mean(axis=(1, 2), keepdims=True)
        hessian[:, np.arange(n), np.arange(n)] += variance.sum(axis=2)
        with threadpool_limits(1, "blas"):  # the matrices are small
            step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        largest = np.maximum(np.ptp(step, axis=1), np.finfo(float).tiny)
        strengths[running] += (np.log1p(largest) / largest)[:, None] * (step - step.mean(axis=1, keepdims=True))
        running = running[largest > LAST_STEP]
        if not len(running):
            return


# ---------------------------------------------------------------------- simultaneous ranks


def rank_items(
    items: tuple[str, ...], resamples: Resamples, units: str, score: str, confidence_level: float
) -> Leaderboard:
    """Return the leaderboard of scores."""
    n, own = len(items), resamples.scores[0]
    sign = -1.0 if score == "mean_rank" else 1.0
    better = sign * own
    order = np.argsort(-better, kind="stable")
    above = separated(resamples._replace(scores=sign * resamples.scores), confidence_level)
    low, high = 1 + above.sum(axis=0), n - above.sum(axis=1)
    correction, quantile = small_sample(resamples.n_units, (1 - confidence_level) / 2, resamples.is_bayesian)
    errors = resamples.scores[1:].std(axis=0) * correction
    intervals = np.stack([own - quantile * errors, own + quantile * errors], axis=1)
    ranks = 1 + (better[:, None] > better + 1e-12 * (1 + np.abs(better))).sum(axis=0)
    names = tuple(items[item] for item in order)
    packed = np.packbits(above[np.ix_(order, order)][None], axis=2)
    return Leaderboard(
        names,
        own[order],
        errors[order],
        intervals[order],
        ranks[order],
        np.stack([low, high], axis=1)[order],
        Preferences._trusted(packed, names, np.ones(1, dtype=np.int64), ("0",), ((),)),
        score,
        confidence_level,
        units,
    )


def small_sample(n_units: FloatArray, probability: Any, is_bayesian: bool) -> tuple[FloatArray, FloatArray]:
    """Return the factors of standard errors, nan for a single unit, and the t quantiles with this probability."""
    freedom = np.maximum(n_units - 1, 1)
    correction = (
        np.where(n_units > 1, np.sqrt((n_units + 1) / freedom), np.nan) if is_bayesian else np.ones(len(n_units))
    )
    return correction, np.asarray(stats.t.isf(probability, freedom))


def separated(resamples: Resamples, confidence_level: float) -> Mask:
    """Return whether item i is above item j, for all pairs simultaneously, by the step-down of Romano and Wolf.

    A difference that is the same in all resamples is that of all units; it is judged by the sign test.
    """
    (scores, resampled), alpha = (resamples.scores[0], resamples.scores[1:]), 1 - confidence_level
    n, is_bayesian = len(scores), resamples.is_bayesian
    covariance = np.atleast_2d(np.cov(resampled, rowvar=False, bias=True))
    variances = np.diag(covariance)
    errors = np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0.0))
    first, second = np.triu_indices(n, 1)
    n_units = np.minimum(resamples.n_units[first], resamples.n_units[second])
    is_open = errors[first, second] > 1e-12 * (1 + np.abs(scores).max())
    used = is_open | (is_bayesian & (0.5 ** (n_units - 1) <= alpha / max(len(first), 1)))
    first, second, n_units, is_open = first[used], second[used], n_units[used], is_open[used]
    inverse = np.divide(1.0, errors[first, second], out=np.zeros(len(first)), where=is_open)
    difference = np.abs(scores[first] - scores[second]) * inverse
    sizes, size = np.unique(n_units, return_inverse=True)
    deviations = np.ascontiguousarray((resampled - scores).T)
    while is_open.any():
        largest = largest_deviations(deviations, first[is_open], second[is_open], inverse[is_open])
        exceeded = float(stats.norm.sf(np.quantile(largest, confidence_level, method="higher")))
        chance = np.where(sizes < FEW_UNITS, min(exceeded, alpha / 2 / is_open.sum()), exceeded)
        correction, quantile = small_sample(sizes, chance, is_bayesian)
        new = is_open & (difference > (quantile * correction)[size])
        if not new.any():
            break
        is_open &= ~new
    above = np.zeros((n, n), dtype=bool)
    above[first, second] = above[second, first] = ~is_open
    return above & (scores[:, None] - scores > 1e-9 * (1 + np.abs(scores).max()))


@compiled
def largest_deviations(
    deviations: FloatArray, first: IntArray, second: IntArray, inverse_errors: FloatArray
) -> FloatArray:
    """Return for each resample the largest ``|d_i - d_j|`` over its standard error, from ``deviations[item]``."""
    result = np.zeros(deviations.shape[1])
    for pair in range(len(first)):
        one, other, factor = deviations[first[pair]], deviations[second[pair]], inverse_errors[pair]
        for r in range(len(result)):
            deviation = abs(one[r] - other[r]) * factor
            result[r] = deviation if deviation > result[r] else result[r]
    return result
