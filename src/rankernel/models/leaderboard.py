"""Leaderboards: scores of items with confidence intervals, and intervals of ranks that hold simultaneously."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import stats
from scipy.sparse import csr_array, diags_array
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
        text = f"Leaderboard: {n:,} items, {self.units} resampled; {pairs}"
        return "\n".join([text, *(f"  {line.rstrip()}" for line in table)])


def leaderboard(
    data: Any,
    *,
    score: Score | None = None,
    confidence_level: float = 0.95,
    resample: Resample = "auto",
    by: Any = None,
    n_resamples: int = 1000,
    rng: Seed = 0,
) -> Any:
    r"""Return the scores of items with confidence intervals, and the ranks that the data supports.

    Resamples weight each voter, judge or comparison by an independent exponential variable (Bayesian bootstrap). Item i
    is separated from item j if :math:`|s_i - s_j|` exceeds c standard errors, where c is the quantile of the largest
    deviation over all pairs of items, with the quantile of the t distribution in place of the normal one, and pairs
    that are already separated are left out of the maximum (step-down). With fewer than 20 voters or judges, c is at
    least the quantile by Bonferroni's inequality. The rank of an item is then at least one more than the number of
    items above it; these intervals hold for all items simultaneously.

    Parameters
    ----------
    data : Comparisons, Rankings, Preferences, array of ranks, or data frame
        The data. Rows of rankings are voters, or the tasks of a benchmark. A data frame is a table of scores with one
        row per task and one column per item, where larger values are better and missing ones are allowed.
    score : {"bradley_terry", "borda", "copeland", "mean_rank"}, optional
        Bradley-Terry strengths (ties are half a win; the default for comparisons); the mean number of items that an
        item is preferred to, with free items at their expected positions, or for comparisons the mean win rate against
        the other items (``"borda"``; the default otherwise); the number of majority contests won (``"copeland"``); the
        mean rank over the rows that rank the item (``"mean_rank"``).
    confidence_level : float
        The confidence level of all intervals.
    resample : {"auto", "judges", "comparisons"}
        What is independent: judges if they are known, otherwise single comparisons. Rankings are resampled by voter.
    by : str or array, optional
        The name of a label or the group of each row: one leaderboard per group, in a dictionary.
    n_resamples : int
        The number of resamples.
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
        options |= {"n_resamples": n_resamples, "rng": as_seed(rng)}
        return {each: leaderboard(given[group == number], **options) for number, each in enumerate(groups)}
    scores, n_units, unit = resample_scores(given, name, resample, n_resamples, np.random.default_rng(as_seed(rng)))
    return rank_items(given.items, scores, n_units, unit, name, confidence_level)


def group_rows(data: Data, by: Any) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of groups and the group of each row of rankings or preferences."""
    if isinstance(by, str):
        if by not in data.labels:
            raise ArgumentValueError("by", by, f"one of the labels {', '.join(data.labels)}, or an array")
        return group_codes(data.labels[by])
    return group_codes(check_labels("by", by, len(data)))


# ---------------------------------------------------------------------- scores of resamples


def resample_scores(
    data: Comparisons | Data, score: str, resample: Resample, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, int, str]:
    """Return the scores of the data and of each resample, and the number and kind of the independent units."""
    if score == "mean_rank" and not isinstance(data, Rankings):
        raise ArgumentValueError("score", score, "'borda' or another score: only rankings have ranks")
    n, judges = data.n_items, isinstance(data, Comparisons) and data.judges and resample != "comparisons"
    pairwise = isinstance(data, Comparisons) or score in ("bradley_terry", "copeland")
    check_bytes(8 * (n_resamples + 1) * n * (n if pairwise else 2), f"{n_resamples:,} resamples of {n:,} items")
    if isinstance(data, Comparisons):
        if resample == "judges" and not data.judges:
            raise ArgumentValueError("resample", resample, "'comparisons': the judges are unknown")
        tables = iter([wins_by_unit(data, bool(judges))])
        n_units, unit = (len(np.unique(data.judge)), "judges") if judges else (len(data), "comparisons")
    else:
        tables = tables_of_rows(data.unique(), score, n_resamples)
        n_units, unit = data.n_voters, "voters"
    totals: FloatArray = np.zeros((n_resamples + 1, n * n if pairwise else 2 * n))
    for table, counts in tables:
        totals += bootstrap_weights(counts, n_resamples, rng) @ table
    if pairwise:
        return pairwise_scores(totals.reshape(-1, n, n), score, data.items), n_units, unit
    sums, numbers = totals[:, :n], totals[:, n:]
    if (numbers[0] == 0).any():
        name = printable(data.items[int(np.argmin(numbers[0]))])
        raise RankingError(f"item {name!r} is ranked by no voter; remove it, or give ", Argument("score", "borda"))
    return sums / numbers, n_units, unit


def tables_of_rows(rows: Data, score: str, n_resamples: int) -> Iterator[tuple[Any, Any]]:
    """Yield for chunks of rankings the numbers of each row whose sums determine the scores, and the counts."""
    pairwise = score in ("bradley_terry", "copeland")
    step = max(CHUNK_NUMBERS // max(rows.n_items**2 if pairwise else 2 * rows.n_items, n_resamples), 1)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        table = wins_by_unit(comparisons_of(part), True)[0].toarray() if pairwise else unit_scores(part, score)
        yield table, part.counts


def wins_by_unit(data: Comparisons, by_judge: bool) -> tuple[Any, Any]:
    """Return the wins of each item over each other one, where a tie is half a win, by unit; and the sizes of units.

    The comparisons of one judge are one unit; equal comparisons without judges are units that are counted.
    """
    n, low, high = data.n_items, np.minimum(data.first, data.second), np.maximum(data.first, data.second)
    outcome = np.where(data.first < data.second, data.outcome, -data.outcome).astype(np.int64)
    units = np.unique(data.judge if by_judge else (low * n + high) * 3 + outcome, return_inverse=True)[1].ravel()
    cells = np.concatenate([low * n + high, high * n + low])
    wins = np.concatenate([data.weights * (1 + outcome) / 2, data.weights * (1 - outcome) / 2])
    table = csr_array((wins, (np.tile(units, 2), cells)), shape=(units.max() + 1, n * n))
    counts = np.ones(table.shape[0]) if by_judge else np.bincount(units, data.weights)
    return table if by_judge else diags_array(1 / counts) @ table, counts


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


def pairwise_scores(wins: FloatArray, score: str, items: tuple[str, ...]) -> FloatArray:
    """Return the scores of items from matrices of wins, shape (n, n_items, n_items), the first one from the data."""
    games = wins + wins.transpose(0, 2, 1)
    if score == "copeland":
        margin = np.sign(np.where(np.isclose(wins, games / 2, rtol=1e-12), 0.0, wins - games / 2))
        return np.asarray((margin + 1).sum(axis=2) / 2 - 0.5)
    if score == "borda":
        compared = games[0] > 0
        rates = np.divide(wins, games, out=np.zeros_like(wins), where=compared[None])
        return np.asarray(rates.sum(axis=2) / np.maximum(compared.sum(axis=1), 1))
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
    items: tuple[str, ...], scores: FloatArray, n_units: int, unit: str, score: str, confidence_level: float
) -> Leaderboard:
    """Return the leaderboard, where the first scores are those of the data and the others those of resamples."""
    n, (own, resampled) = len(items), (scores[0], scores[1:])
    sign = -1.0 if score == "mean_rank" else 1.0
    better = sign * own
    order = np.argsort(-better, kind="stable")
    above = separated(better, sign * resampled, n_units, confidence_level)
    low, high = 1 + above.sum(axis=0), n - above.sum(axis=1)
    scale, quantile = small_sample(n_units, (1 - confidence_level) / 2)
    errors = resampled.std(axis=0) * scale
    intervals = np.stack([own - quantile * errors, own + quantile * errors], axis=1)
    ranks = 1 + (better[:, None] > better + 1e-12 * (1 + np.abs(better))).sum(axis=0)
    names = tuple(items[item] for item in order)
    packed = np.packbits(above[np.ix_(order, order)][None], axis=2)
    partial_order = Preferences._trusted(packed, names, np.ones(1, dtype=np.int64), ("0",), ((),))
    return Leaderboard(
        names,
        own[order],
        errors[order],
        intervals[order],
        ranks[order],
        np.stack([low, high], axis=1)[order],
        partial_order,
        score,
        confidence_level,
        f"{n_units:,} {unit}",
    )


def small_sample(n_units: int, probability: float) -> tuple[float, float]:
    """Return the factor of standard errors, and the t quantile that is exceeded with this probability."""
    freedom = max(n_units - 1, 1)
    return float(np.sqrt((n_units + 1) / freedom)), float(stats.t.isf(probability, freedom))


def separated(scores: FloatArray, resampled: FloatArray, n_units: int, confidence_level: float) -> Mask:
    """Return whether item i is above item j, for all pairs simultaneously, by the step-down of Romano and Wolf.

    A difference that is the same in all resamples is that of all units; it is judged by the sign test.
    """
    n, alpha = len(scores), 1 - confidence_level
    covariance = np.atleast_2d(np.cov(resampled, rowvar=False, bias=True))
    variances = np.diag(covariance)
    errors = np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0.0))
    first, second = np.triu_indices(n, 1)
    is_open = errors[first, second] > 1e-12 * (1 + np.abs(scores).max())
    if 0.5 ** (n_units - 1) > alpha / max(len(first), 1):
        first, second, is_open = first[is_open], second[is_open], is_open[is_open]
    inverse = np.divide(1.0, errors[first, second], out=np.zeros(len(first)), where=is_open)
    difference = np.abs(scores[first] - scores[second]) * inverse
    deviations = np.ascontiguousarray((resampled - scores).T)
    while is_open.any():
        largest = largest_deviations(deviations, first[is_open], second[is_open], inverse[is_open])
        exceeded = float(stats.norm.sf(np.quantile(largest, confidence_level, method="higher")))
        if n_units < FEW_UNITS:
            exceeded = min(exceeded, alpha / 2 / is_open.sum())
        scale, quantile = small_sample(n_units, exceeded)
        new = is_open & (difference > quantile * scale)
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
