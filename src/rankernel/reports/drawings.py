"""Geometry of the SVG pictures of first choices, shifts, pairs of groups and head-to-head contests.

A :class:`Drawing` holds the coordinates and texts of one picture; the template of its name in ``templates`` draws it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel.reports.clustering import largest_shifts
from rankernel.reports.groups import Comparison
from rankernel.reports.summary import Summary
from rankernel.reports.text import Wording, fit_names, percent, short_names, text_width

COLOURS = 7  # of clusters and groups; a grey is shared by all others

BAR_HEIGHT = 26.0
BAR_TEXT = 14.0
MAX_BARS = 25
BARS_PER_SHEET = 9  # stay on one page of paper

MAX_CONTEST_ITEMS = 20
CONTEST_SHADES = 6
ROW_NAME, COLUMN_NAME = 30, 22  # characters
CELL = 38.0


@dataclass(frozen=True)
class Drawing:
    """One picture: the name of its template, its size, its description and what the template draws."""

    template: str
    width: float
    height: float
    label: str
    parts: dict[str, Any]


def colour_index(number: int) -> int:
    """Return the colour of a cluster or group; those beyond the number of colours share the last one."""
    return min(number, COLOURS)


# ---------------------------------------------------------------------- first choices


@dataclass(frozen=True)
class BarLayout:
    """The size of a bar chart."""

    width: float
    name_width: float
    positions: bool  # whether mean positions fit


WIDE_BARS = BarLayout(780.0, 260.0, positions=True)
NARROW_BARS = BarLayout(342.0, 150.0, positions=False)


def first_choices(summary: Summary, layout: BarLayout, per_picture: int = MAX_BARS) -> list[Drawing]:
    """Return bar charts of first choices or approvals, largest first, divided into pictures of ``per_picture`` bars."""
    shares, wording, items = summary.shares, summary.wording, summary.ballots.rankings.items
    shown = np.lexsort((summary.positions, -shares))[:MAX_BARS].tolist()
    names = fit_names([items[item] for item in shown], layout.name_width, BAR_TEXT)
    left = 12 + max(text_width(name, BAR_TEXT) for name in names)
    positions = layout.positions and not wording.approvals
    scale = (layout.width - left - (130 if positions else 50)) / max(float(shares[shown].max()), 1e-9)
    rows = [
        {
            "name": name,
            "length": scale * float(shares[item]),
            "share": percent(float(shares[item])),
            "position": f"{summary.positions[item]:.1f}" if positions else "",
        }
        for item, name in zip(shown, names, strict=True)
    ]
    drawings = []
    for start in range(0, len(rows), per_picture):
        part, top = rows[start : start + per_picture], 0.0 if start else 22.0
        spoken = [f"{items[item]}: {percent(float(shares[item]))}" for item in shown[start : start + per_picture]]
        label = f"{wording.say('bars_title')}. {'; '.join(spoken)}."
        heads = {"bars": "" if start else wording.say("axis_bars"), "positions": ""}
        if positions and not start:
            heads["positions"] = wording.say("axis_positions")
        parts = {"rows": part, "left": left, "top": top, "step": BAR_HEIGHT, "heads": heads}
        drawings.append(Drawing("bars", layout.width, top + len(part) * BAR_HEIGHT, label, parts))
    return drawings


# ---------------------------------------------------------------------- differences in position


def cluster_shifts(summary: Summary, number: int) -> Drawing | None:
    """Return the largest shifts of a cluster, on a scale common to all clusters; None if all are small."""
    clusters = summary.grouped.clusters if summary.grouped else []
    cluster, items, wording = clusters[number], summary.ballots.rankings.items, summary.wording
    shown = largest_shifts(cluster.shift, wording.min_shift)
    if not shown:
        return None
    scale = 108.0 / max(float(np.abs(each.shift).max()) for each in clusters)
    middle = 152.0
    rows = [
        {
            "name": name,
            "better": cluster.shift[item] < 0,
            "length": scale * abs(float(cluster.shift[item])),
            "shift": wording.signed_shift(float(cluster.shift[item])),
        }
        for item, name in zip(shown, fit_names([items[item] for item in shown], middle - 10), strict=True)
    ]
    shifts = "; ".join(f"{items[item]} {wording.signed_shift(float(cluster.shift[item]))}" for item in shown)
    label = wording.say("shift_label", name=cluster.name, shifts=shifts)
    parts = {"rows": rows, "middle": middle, "colour": colour_index(number)}
    return Drawing("shift", 300.0, 4 + 22.0 * len(rows), label, parts)


# ---------------------------------------------------------------------- two groups


def pair_shares(comparison: Comparison, names: tuple[str, str], wording: Wording) -> Drawing | None:
    """Return the shares of two groups with a preference between pairs of items; None without such pairs."""
    pairs = comparison.pairs
    if not pairs:
        return None
    left, reach, step, top = 6.0, 308.0, 46.0, 26.0
    items = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    short = dict(zip(items, fit_names(items, 125), strict=True))
    rows, spoken = [], []
    for number, pair in enumerate(pairs):
        y = top + 4 + number * step
        marks = [
            {
                "y": y + 21 + 11 * group,
                "x": left + reach * share,
                "low": left + reach * low,
                "high": left + reach * high,
            }
            for group, (share, (low, high)) in enumerate(zip(pair.shares, pair.intervals, strict=True))
        ]
        title = wording.say("pair_row", first=short[pair.first], second=short[pair.second])
        rows.append({"y": y + 11, "name": title, "marks": marks})
        fields = dict(zip(("share_first", "share_second"), map(percent, pair.shares), strict=True))
        fields |= zip(("against_first", "against_second"), map(percent, pair.against), strict=True)
        whole = wording.say("pair_row", first=pair.first, second=pair.second)
        spoken.append(wording.say("pair_shares", pair=whole, **fields))
    first, second = fit_names(names, 130)
    key = [{"x": left, "name": first}, {"x": left + 30 + text_width(first, 12.0), "name": second}]
    label = wording.say("pairs_label", first=names[0], second=names[1], shares="; ".join(spoken))
    parts = {"rows": rows, "key_of_groups": key, "left": left, "right": left + reach, "top": top}
    return Drawing("pairs", 320.0, top + step * len(pairs) + 20, label, parts)


def null_histogram(comparison: Comparison, wording: Wording) -> Drawing:
    """Return the null distribution of the test of two groups with the observed statistic."""
    width, base, statistic = 260.0, 46.0, comparison.statistic
    null = comparison.null if comparison.null is not None else np.zeros(1)
    low, high = min(float(null.min()), statistic, 0.0), max(float(null.max()), statistic)
    scale = (width - 20) / max(high - low, 1e-12)
    counts, edges = np.histogram(null, bins=40, range=(low, low + max(high - low, 1e-12)))
    step = (width - 20) / len(counts)
    bars = [
        {"x": 10 + scale * (edge - low), "width": max(step - 0.8, 0.5), "height": 38 * count / counts.max()}
        for edge, count in zip(edges.tolist(), counts.tolist(), strict=False)
        if count
    ]
    x, observed = 10 + scale * (statistic - low), wording.say("observed")
    half = text_width(observed, 12.0) / 2
    label = wording.say("null_label", statistic=statistic, low=null.min(), high=null.max())
    parts = {
        "bars": bars,
        "base": base,
        "x": x,
        "observed": {"x": min(max(x, half), width - half), "text": observed},
        "random": {"x": 10 - scale * low, "text": wording.say("random")} if x > 90 else None,
    }
    return Drawing("null", width, 64.0, label, parts)


# ---------------------------------------------------------------------- head-to-head contests


def contest_matrix(summary: Summary) -> dict[str, Any]:
    """Return the contests of the first items of the Kemeny ranking: names of rows and columns, and cells."""
    contests, shown = summary.contests, summary.kemeny.order[:MAX_CONTEST_ITEMS].tolist()
    ahead, undecided = (100 * counts / contests.n_voters for counts in (contests.ahead, contests.undecided))

    def cell(row: int, column: int) -> dict[str, Any] | None:
        if row == column:
            return None
        neither = float(undecided[row, column]) if contests.any_undecided else None
        colour = contest_colour(float(ahead[row, column]), float(ahead[column, row]))
        return {"ahead": float(ahead[row, column]), "undecided": neither, "colour": colour}

    names = tuple(summary.ballots.rankings.items[item] for item in shown)
    cells = [[cell(row, column) for column in shown] for row in shown]
    rows, columns = short_names(names, ROW_NAME), short_names(names, COLUMN_NAME)
    return {"shown": shown, "rows": rows, "columns": columns, "cells": cells}


def contest_colour(ahead: float, behind: float) -> str:
    """Return the class of a cell: blue if the row wins, orange if the column wins; small margins are emphasised."""
    margin = (ahead - behind) / max(ahead + behind, 1e-12)
    shade = round(abs(margin) ** 0.6 * CONTEST_SHADES)
    return f"{'win' if margin > 0 else 'lose'}{shade}" if shade else "even"


def contests_picture(summary: Summary) -> Drawing:
    """Return the matrix of contests as a picture."""
    matrix = contest_matrix(summary)
    left, top = (14 + max(map(text_width, matrix[names])) for names in ("rows", "columns"))
    side = CELL * len(matrix["shown"])
    label = summary.wording.say("contests_label", n_items=summary.wording.count_items(len(matrix["shown"])))
    return Drawing("contests", left + side, top + side, label, {**matrix, "left": left, "top": top, "cell": CELL})
