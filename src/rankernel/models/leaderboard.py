"""Leaderboards: scores of items with confidence intervals, and intervals of ranks that hold simultaneously."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import stats
from scipy.special import expit
from threadpoolctl import threadpool_limits

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, IntArray, Mask
from rankernel._utils.checks import check_choice, check_integer, check_labels, check_number, printable
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import Seed, as_seed
from rankernel.comparisons import Comparisons
from rankernel.data import Data, as_data, group_codes
from rankernel.errors import Argument, ArgumentValueError, RankingError, require
from rankernel.models.bradley_terry import LAST_STEP, PairCounts, check_connected, maximize_likelihood
from rankernel.preferences import Preferences, relations_of_ranks
from rankernel.rankings import FREE, Rankings, is_frame

Score = Literal["bradley_terry", "borda", "copeland", "mean_rank"]
Resample = Literal["auto", "judges", "comparisons"]

CHUNK_NUMBERS = 2**22
MAX_STEPS = 20  # of Newton's method without step halving
SMALLER_IS_BETTER = ("mean_rank",)


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
    that are already separated are left out of the maximum (step-down). The rank of an item is then at least one more
    than the number of items above it; these intervals hold for all items simultaneously.

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
    generator = np.random.default_rng(as_seed(rng))
    if isinstance(given, Comparisons):
        sample = resample_comparisons(given, name, resample, n_resamples, generator)
    else:
        sample = resample_rankings(given, name, n_resamples, generator)
    return rank_items(given.items, sample, name, confidence_level)


def group_rows(data: Data, by: Any) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of groups and the group of each row of rankings or preferences."""
    if isinstance(by, str):
        if by not in data.labels:
            raise ArgumentValueError("by", by, f"one of the labels {', '.join(data.labels)}, or an array")
        return group_codes(data.labels[by])
    return group_codes(check_labels("by", by, len(data)))


# ---------------------------------------------------------------------- scores of resamples


@dataclass(frozen=True, eq=False)
class Resamples:
    """Scores of the data, scores of each resample, and the number and kind of the units."""

    scores: FloatArray  # (n_items,)
    resampled: FloatArray  # (n_resamples, n_items)
    n_units: int
    unit: str


def gamma_weights(counts: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the sums of as many exponential variables as the counts, shape (n_resamples, n_units)."""
    if (counts == 1).all():
        return rng.standard_exponential((n_resamples, len(counts)))
    return rng.standard_gamma(counts, (n_resamples, len(counts)))


def resample_rankings(data: Data, score: str, n_resamples: int, rng: np.random.Generator) -> Resamples:
    """Return the scores of rankings with resampled voters."""
    rows = data.unique()
    n, n_voters, unit = data.n_items, data.n_voters, "voters"
    if score in ("bradley_terry", "copeland"):
        totals = np.zeros((n_resamples + 1, n, n))
        for part, weights in weighted_chunks(rows, n * n, n_resamples, rng):
            won = part.before if isinstance(part, Preferences) else relations_of_ranks(part.ranks)
            won = won.astype(np.float64)
            if isinstance(part, Rankings):
                won += ((part.ranks[:, :, None] == part.ranks[:, None, :]) & (part.ranks != FREE)[:, :, None]) / 2
            totals += np.tensordot(weights, won, axes=1)
        totals *= 1 - np.eye(n)
        scores = pairwise_scores(totals, score, data.items)
        return Resamples(scores[0], scores[1:], n_voters, unit)
    if isinstance(rows, Preferences) and score == "mean_rank":
        raise ArgumentValueError("score", score, "'borda' for preferences, which have no ranks")
    sums, totals = np.zeros((n_resamples + 1, n)), np.zeros((n_resamples + 1, n))
    for part, weights in weighted_chunks(rows, n, n_resamples, rng):
        points, present = unit_scores(part, score)
        sums += weights @ np.where(present, points, 0.0)
        totals += weights @ present
    if (totals[0] == 0).any():
        name = printable(data.items[int(np.argmin(totals[0]))])
        raise RankingError(f"item {name!r} is ranked by no voter; remove it, or give ", Argument("score", "borda"))
    scores = sums / totals
    return Resamples(scores[0], scores[1:], n_voters, unit)


def weighted_chunks(
    rows: Data, n_numbers: int, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Any, FloatArray]]:
    """Yield parts of the rows, with the counts and the weights of all resamples, shape (1 + n_resamples, n_rows)."""
    step = max(CHUNK_NUMBERS // max(n_numbers, n_resamples), 1)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        counts = part.counts.astype(np.float64)
        yield part, np.concatenate([counts[None], gamma_weights(counts, n_resamples, rng)])


def unit_scores(rows: Data, score: str) -> tuple[FloatArray, Mask]:
    """Return the scores of items in each row, and whether each is present."""
    if score == "borda":
        from rankernel.gram.exact.features import mean_statistics
        from rankernel.gram.rows import as_rows

        points = (rows.n_items - 1) / 2 - mean_statistics(as_rows(rows), "ranks")
        return points, np.ones_like(points, dtype=bool)
    assert isinstance(rows, Rankings)
    present = rows.ranks != FREE
    return np.where(present, stats.rankdata(np.where(present, rows.ranks, rows.n_items), axis=1), 0.0), present


def resample_comparisons(
    data: Comparisons, score: str, resample: Resample, n_resamples: int, rng: np.random.Generator
) -> Resamples:
    """Return the scores of comparisons with resampled judges or comparisons."""
    if score == "mean_rank":
        raise ArgumentValueError("score", score, "'bradley_terry', 'borda' or 'copeland' for comparisons")
    if resample == "judges" and not data.judges:
        raise ArgumentValueError("resample", resample, "'comparisons': the judges are unknown")
    by_judge = bool(data.judges) and resample != "comparisons"
    n = data.n_items
    reverse, half = data.outcome < 0, data.tied / 2
    forward = (data.first * n + data.second, data.weights * np.where(data.tied, half, ~reverse))
    backward = (data.second * n + data.first, data.weights * np.where(data.tied, half, reverse))
    if by_judge:
        from scipy.sparse import csr_array

        rows = np.concatenate([data.judge, data.judge])
        cells, won = (np.concatenate(parts) for parts in zip(forward, backward, strict=True))
        table = csr_array((won, (rows, cells)), shape=(data.n_judges, n * n))
        active = np.flatnonzero(np.bincount(data.judge, minlength=data.n_judges))
        weights = np.concatenate([np.ones((1, len(active))), gamma_weights(np.ones(len(active)), n_resamples, rng)])
        totals = np.asarray((table[active].T @ weights.T).T).reshape(-1, n, n)
        n_units, unit = len(active), "judges"
    else:
        wins, ties = data.wins, np.triu(data.ties)
        draws_won, draws_tied = (
            gamma_weights(counts.ravel(), n_resamples, rng).reshape(-1, n, n) for counts in (wins, ties)
        )
        ties_all = np.concatenate([ties[None], draws_tied])
        totals = np.concatenate([wins[None], draws_won]) + (ties_all + ties_all.transpose(0, 2, 1)) / 2
        n_units, unit = len(data), "comparisons"
    scores = pairwise_scores(totals, score, data.items)
    return Resamples(scores[0], scores[1:], n_units, unit)


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
    none = np.zeros_like(wins[0])
    counts = PairCounts.of_matrices(wins[0], none, "half")
    check_connected(counts, 0.0, items)
    start = maximize_likelihood(counts, "half").parameters
    result = np.tile(start, (len(wins), 1))
    step = max(CHUNK_NUMBERS // none.size, 1)
    for first in range(1, len(wins), step):
        part = slice(first, first + step)
        for row in first + newton_steps(wins[part], games[part], result[part]):
            counts = PairCounts.of_matrices(wins[row], none, "half")
            result[row] = maximize_likelihood(counts, "half", start=start).parameters
    return result


def newton_steps(wins: FloatArray, games: FloatArray, strengths: FloatArray) -> IntArray:
    """Update Bradley-Terry strengths of many matrices of wins at once, and return those that did not converge."""
    n = wins.shape[1]
    running = np.arange(len(wins))
    for _ in range(MAX_STEPS):
        probability = expit(strengths[running, :, None] - strengths[running, None, :])
        gradient = wins[running].sum(axis=2) - (games[running] * probability).sum(axis=2)
        variance = games[running] * probability * (1 - probability)
        hessian = -variance + variance.mean(axis=(1, 2), keepdims=True)
        hessian[:, np.arange(n), np.arange(n)] += variance.sum(axis=2)
        with threadpool_limits(1, "blas"):  # the matrices are small
            step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        size = np.abs(step).max(axis=1)
        step /= np.maximum(size, 1.0)[:, None]
        strengths[running] += step - step.mean(axis=1, keepdims=True)
        running = running[~(size <= LAST_STEP)]
        if not len(running) or not np.isfinite(size).all():
            break
    return running


# ---------------------------------------------------------------------- simultaneous ranks


def rank_items(items: tuple[str, ...], sample: Resamples, score: str, confidence_level: float) -> Leaderboard:
    """Return the leaderboard of resampled scores."""
    sign = -1.0 if score in SMALLER_IS_BETTER else 1.0
    better = sign * sample.scores
    order = np.argsort(-better, kind="stable")
    above = separated(better, sign * sample.resampled, sample.n_units, confidence_level)
    n = len(items)
    low, high = 1 + above.sum(axis=0), n - above.sum(axis=1)
    scale, quantile = small_sample(sample.n_units, float(stats.norm.isf((1 - confidence_level) / 2)))
    errors = sample.resampled.std(axis=0) * scale
    intervals = np.stack([sample.scores - quantile * errors, sample.scores + quantile * errors], axis=1)
    ranks = 1 + (better[:, None] > better + 1e-12 * (1 + np.abs(better))).sum(axis=0)
    names = tuple(items[item] for item in order)
    packed = np.packbits(above[np.ix_(order, order)][None], axis=2)
    partial_order = Preferences._trusted(packed, names, np.ones(1, dtype=np.int64), ("0",), ((),))
    return Leaderboard(
        names,
        sample.scores[order],
        errors[order],
        intervals[order],
        ranks[order],
        np.stack([low, high], axis=1)[order],
        partial_order,
        score,
        confidence_level,
        f"{sample.n_units:,} {sample.unit}",
    )


def small_sample(n_units: int, quantile: float) -> tuple[float, float]:
    """Return the factor of standard errors and the quantile of the t distribution in place of a normal quantile."""
    freedom = max(n_units - 1, 1)
    t = float(stats.t.isf(stats.norm.sf(quantile), freedom)) if quantile < 30 else quantile
    return float(np.sqrt((n_units + 1) / freedom)), t


def separated(scores: FloatArray, resampled: FloatArray, n_units: int, confidence_level: float) -> Mask:
    """Return whether item i is above item j, for all pairs simultaneously, by the step-down of Romano and Wolf."""
    n = len(scores)
    covariance = np.atleast_2d(np.cov(resampled, rowvar=False, bias=True))
    variances = np.diag(covariance)
    errors = np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0.0))
    inverse = np.divide(1.0, errors, out=np.zeros((n, n)), where=errors > 1e-12 * (1 + np.abs(scores).max()))
    difference = scores[:, None] - scores
    deviations = np.ascontiguousarray(resampled - scores)
    above = np.zeros((n, n), dtype=bool)
    while True:
        is_open = np.triu(~(above | above.T), 1) & (inverse > 0)
        if not is_open.any():
            break
        largest = largest_deviations(deviations, np.where(is_open, inverse, 0.0))
        scale, quantile = small_sample(n_units, float(np.quantile(largest, confidence_level, method="higher")))
        new = (difference * inverse > quantile * scale) & ~above
        if not new.any():
            break
        above |= new
    # Without variation over the resamples a difference is certain.
    return above | ((inverse == 0) & (difference > 1e-9 * (1 + np.abs(scores).max())))


@compiled
def largest_deviations(deviations: FloatArray, inverse_errors: FloatArray) -> FloatArray:
    """Return for each resample the largest ``|d_i - d_j| * inverse_errors[i, j]`` over i < j."""
    n_resamples, n = deviations.shape
    result = np.zeros(n_resamples)
    for r in range(n_resamples):
        largest = 0.0
        for i in range(n - 1):
            for j in range(i + 1, n):
                deviation = abs(deviations[r, i] - deviations[r, j]) * inverse_errors[i, j]
                largest = max(largest, deviation)
        result[r] = largest
    return result
