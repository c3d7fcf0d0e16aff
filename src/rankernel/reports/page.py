"""The report page: the pictures and the jinja2 templates, as one self-contained HTML document.

A :class:`Drawing` holds the coordinates and texts of one picture, which ``templates/pictures.svg`` draws. Autoescaping
is on, so that names in the data are shown as text and never become markup.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankernel import __version__
from rankernel._utils import FloatArray, Indices, IntArray
from rankernel.learn.hierarchy import node_clusters, node_summaries
from rankernel.preferences import Preferences
from rankernel.reports import summary as statements
from rankernel.reports import text
from rankernel.reports.ballots import SCORES, sizes_of_items
from rankernel.reports.clusters import MAX_CLUSTERS, Clustering, largest_shifts, members
from rankernel.reports.groups import Comparison, pairs_in_words, relative_error
from rankernel.reports.summary import Summary
from rankernel.reports.text import percent, plural, text_width

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from rankernel.models.leaderboard import Leaderboard
    from rankernel.stats.differences import Differences

KINDS = ("full", "top-k", "exhaustive", "incomplete", "partial")
COLOURS = 7  # of clusters and groups; all others share a grey, with this number
LIMITS = {
    "bars": 25,
    "branches": 30,  # of the dendrogram
    "clusters": MAX_CLUSTERS,
    "colours": COLOURS,
    "consensus": 8,  # items of a cluster
    "contests": 20,  # items
    "gram": 360,  # rows
    "open": 10,  # rows of a table of pairs of groups that is shown at once
    "rows": 100,  # of a table; further rows are only in its CSV file
}
BAR_HEIGHT, BAR_TEXT = 26.0, 14.0
CONTEST_SHADES, CONTEST_CELL = 6, 38.0
MAP_WIDTH, MAP_HEIGHT, MAP_MARGIN, MAP_KEY = 960.0, 670.0, 34.0, 78.0
MIN_RADIUS, VOTER_RADIUS, MAX_RADIUS = 2.8, 4.0, 20.0  # a single voter has at most the second
MIN_MAP_BALLOTS = 3  # fewer are not drawn as a map
TREE_TOP, TREE_LEFT, LINE = 30.0, 14.0, 17.0
GRAM_TOP = 44.0
KEY_LINE = 20.0  # height of a line of a key
MAX_SCRIPT_ITEMS = 200  # whose contests the script knows
MAX_NUMBERS = 500_000  # in the ballots that a page contains, less than 2 MB


# ---------------------------------------------------------------------- rendering


def render_page(summary: Summary, max_numbers: int = MAX_NUMBERS) -> str:
    """Return the page about the results; ``max_numbers`` limits the ballots that it contains beyond those shown."""
    from markupsafe import Markup

    style, script = template_text("style.css"), template_text("script.js")
    clustering, ballots = summary.grouped, summary.ballots
    kinds, coloured = ballots.rankings.kinds(), coloured_groups(summary)
    by_coloured_group = ballots.by_group[:, coloured]
    if len(coloured) < len(ballots.groups):
        others = ballots.by_group.sum(axis=1) - by_coloured_group.sum(axis=1)
        by_coloured_group = np.column_stack([by_coloured_group, others])
    template = environment().get_template("page.html")
    page = template.render(
        summary=summary,
        words=summary.wording,
        say=summary.say,
        group_say=summary.source.group_wording.say,
        statements=statements,
        limits=LIMITS,
        group_name=summary.source.group_name or "group",
        kinds={kind: int(ballots.rankings.counts[kinds == kind].sum()) for kind in KINDS},
        drawings=drawings_of(summary),
        board=board_table(summary),
        score=SCORES[summary.board.score] if summary.board else "",
        contests=contest_matrix(summary),
        runoff_order=np.lexsort([-each.votes for each in summary.rounds]).tolist() if summary.rounds else [],
        evidence=summary.clustering.evidence if summary.clustering else None,
        variance=percent(float(summary.embedding.variance.sum())),
        cluster_key=cluster_key(summary),
        titles=tuple(cluster.title for cluster in clustering.clusters) if clustering else (),
        group_sizes=ballots.by_group.sum(axis=0).tolist(),
        cluster_sizes=[members(summary.labels, group).sum(axis=1) for group in ballots.by_group.T],
        coloured=coloured,
        by_coloured_group=by_coloured_group.tolist(),
        undominated=bool((ballots.dominant_groups()[summary.view.rows] < 0).any()),
        common=np.argsort(-ballots.rankings.counts, kind="stable")[: LIMITS["rows"]].tolist(),
        software=f"rankernel {__version__}, NumPy {np.__version__}, Python {platform.python_version()}",
        policy=content_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        script_data=script_data(summary, max_numbers),
    )
    return page.lstrip()


def render_drawing(drawing: Drawing, key: Sequence[str] = (), standalone: bool = False) -> Markup:
    """Return a picture as SVG; a standalone one contains the style of the page, and may have a key of the clusters."""
    from markupsafe import Markup

    # Light wherever it is shown, as the background is not known.
    style = template_text("style.css").replace("screen and (prefers-color-scheme: dark)", "not all")
    key_height = KEY_LINE * (len(key) + 0.5) if key else 0
    fields = {name: value for name, value in vars(drawing).items() if name != "parts"} | drawing.parts
    template = environment().get_template("pictures.svg")
    svg = template.render(**fields, key=key, key_height=key_height, style=style, standalone=standalone)
    return Markup(svg.lstrip())


@cache
def environment() -> Environment:
    """Return the jinja2 environment of the templates."""
    from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

    class CompiledTemplates(FileSystemBytecodeCache):
        """Templates as bytecode in the user's folder of temporary files, where these can be written."""

        def dump_bytecode(self, bucket: Any) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    made = Environment(
        loader=PackageLoader("rankernel.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    with suppress(OSError, RuntimeError):  # raised if there is no such folder, or not one of this user
        made.bytecode_cache = CompiledTemplates()
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.globals["draw"] = render_drawing
    filters = (percent, relative_error, text.ballot_text, text.effect_text, text.round_numbers, text.short_name)
    made.filters |= {function.__name__: function for function in (*filters, text.short_names)}
    return made


@cache
def template_text(name: str) -> str:
    """Return a file of the templates."""
    return files("rankernel.reports").joinpath("templates", name).read_text(encoding="utf-8")


def content_policy(style: str, script: str) -> str:
    """Return the content security policy: this script and this style, identified by their hashes, and nothing else."""
    digests = (hashlib.sha256(content.encode("utf-8")).digest() for content in (style, script))
    style_hash, script_hash = (f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    sources = f"style-src {style_hash}; script-src {script_hash}; img-src data:"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


# ---------------------------------------------------------------------- all pictures


@dataclass(frozen=True)
class Drawing:
    """One picture: its kind in ``pictures.svg``, its size, its description and what is drawn."""

    kind: str
    width: float
    height: float
    label: str
    parts: dict[str, Any]


def drawings_of(summary: Summary) -> dict[str, Drawing]:
    """Return the drawings of the page by name; those of narrow screens have a further name."""
    grouped, compared = summary.grouped, summary.comparisons
    found: dict[str, Drawing | None] = {}
    if summary.board is not None:
        found["leaderboard"] = leaderboard_picture(summary, summary.board, 780.0, 260.0, 110.0)
        found["leaderboard, narrow"] = leaderboard_picture(summary, summary.board, 342.0, 130.0, 60.0)
    else:
        name = "approvals" if summary.wording.approvals else "first choices"
        found[name] = first_choices(summary, 780.0, 260.0, positions=not summary.wording.approvals)
        found[f"{name}, narrow"] = first_choices(summary, 342.0, 150.0, positions=False)
    if len(summary.view.rows) >= MIN_MAP_BALLOTS and summary.shows_voters:
        found["map"] = ballot_map(summary)
    if summary.ballots.rankings.n_items > 1:
        found["contests"] = contests_picture(summary)
    if compared is not None:
        found["groups"] = pair_shares(summary, compared.drawn, compared.differences)
        for pair in compared.details:
            found[f"pairs: {pair.title}"] = pair_shares(summary, (pair.first, pair.second), pair.differences)
            found[f"null distribution: {pair.title}"] = null_histogram(summary, pair)
    if grouped is not None:
        found["dendrogram"] = dendrogram(summary, grouped, 960.0, 480.0, "tree_head", LIMITS["branches"], 1)
        found["dendrogram, narrow"] = dendrogram(summary, grouped, 342.0, 100.0, "tree_head_short", 16, 2)
        found["gram"] = gram_picture(summary, grouped, 956.0, 560.0, LIMITS["gram"], 262.0, 110.0)
        found["gram, narrow"] = gram_picture(summary, grouped, 342.0, 238.0, 200, 20.0, 62.0)
        shifts = [cluster_shifts(summary, grouped, number) for number in range(len(grouped.clusters))]
        found |= {f"cluster {each.name}": drawing for each, drawing in zip(grouped.clusters, shifts, strict=True)}
    return {name: drawing for name, drawing in found.items() if drawing is not None}


def pictures(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG document of each picture of the page."""
    key = cluster_key(summary)
    for name, drawing in drawings_of(summary).items():
        if not name.endswith(", narrow"):
            keyed = name in ("map", "dendrogram", "gram")
            yield name, str(render_drawing(drawing, key if keyed else (), standalone=True))


def coloured_groups(summary: Summary) -> list[int]:
    """Return the groups with a colour of their own, the largest ones; all others share one colour."""
    largest = np.argsort(-summary.ballots.by_group.sum(axis=0), kind="stable")
    return sorted(largest[: COLOURS + (len(largest) == COLOURS + 1)].tolist())


def cluster_key(summary: Summary) -> list[str]:
    """Return the meaning of each cluster colour: one cluster, the last colour all remaining ones."""
    clusters = summary.grouped.clusters if summary.grouped else []
    names = list(text.short_names(tuple(cluster.title for cluster in clusters), 60))
    if len(clusters) <= COLOURS:
        return names
    others = ", ".join(cluster.name for cluster in clusters[COLOURS:])
    return [*names[:COLOURS], summary.say("other_clusters", names=others)]


# ---------------------------------------------------------------------- items


def first_choices(summary: Summary, width: float, name_width: float, positions: bool) -> Drawing:
    """Return the bar chart of first choices or approvals, the largest first, with mean positions if they fit."""
    shares, say, items = summary.shares, summary.say, summary.items
    shown = np.lexsort((summary.positions, -shares))[: LIMITS["bars"]].tolist()
    names = text.fit_names([items[item] for item in shown], name_width, BAR_TEXT)
    left = 12 + max(text_width(name, BAR_TEXT) for name in names)
    scale = (width - left - (130 if positions else 50)) / max(float(shares[shown].max()), 1e-9)
    rows = [
        {
            "name": name,
            "length": scale * float(shares[item]),
            "share": percent(float(shares[item])),
            "position": f"{summary.positions[item]:.1f}" if positions else "",
        }
        for item, name in zip(shown, names, strict=True)
    ]
    spoken = "; ".join(f"{items[item]}: {percent(float(shares[item]))}" for item in shown)
    heads = {"bars": say("axis_bars"), "positions": say("axis_positions") if positions else ""}
    parts = {"rows": rows, "left": left, "step": BAR_HEIGHT, "heads": heads}
    return Drawing("bars", width, 22 + len(rows) * BAR_HEIGHT, f"{say('bars_title')}. {spoken}.", parts)


def leaderboard_picture(summary: Summary, board: Leaderboard, width: float, name_width: float, right: float) -> Drawing:
    """Return the scores of a leaderboard with their intervals and intervals of ranks."""
    shown, say = slice(LIMITS["bars"]), summary.say
    names = text.fit_names(board.items[shown], name_width, BAR_TEXT)
    left = 18 + max(text_width(each, BAR_TEXT) for each in names)
    intervals = board.intervals[shown]
    low, high = intervals.min(), intervals.max()
    scale = (width - right - left) / max(high - low, 1e-12)
    ranks = [f"{a}" if a == b else f"{a} to {b}" for a, b in board.rank_intervals[shown].tolist()]
    values = (left + scale * (np.column_stack([board.scores[shown], intervals]) - low)).tolist()
    rows = [
        {"name": name, "x": x, "low": start, "high": end, "rank": rank}
        for name, (x, start, end), rank in zip(names, values, ranks, strict=True)
    ]
    spoken = "; ".join(f"{item}: {rank}" for item, rank in zip(board.items, ranks, strict=False))
    parts = {
        "rows": rows,
        "left": left,
        "step": BAR_HEIGHT,
        "heads": {"score": SCORES[board.score], "ranks": say("axis_ranks")},
        "zero": float(left - scale * low) if low < 0 < high else None,
        "ends": [(left, f"{low:.2g}"), (width - right, f"{high:.2g}")],
    }
    return Drawing("board", width, 44 + len(rows) * BAR_HEIGHT, f"{say('board_label')}: {spoken}.", parts)


def board_table(summary: Summary) -> list[list[str]]:
    """Return the rows of a leaderboard as text: ranks, item, score and interval, comparisons, and judges if known."""
    board, data = summary.board, summary.source.comparisons
    if board is None or data is None:
        return []
    n_comparisons, n_judges = sizes_of_items(data)
    table = []
    for row in board.rows():
        item = data.items.index(row["item"])
        ranks = (f"{row['rank']:,}", f"{row['rank_low']:,} to {row['rank_high']:,}")
        scores = (f"{row[board.score]:.3f}", f"{row['low']:.3f} to {row['high']:.3f}")
        judges = [f"{n_judges[item]:,}"] if data.judges else []
        table.append([row["item"], *ranks, *scores, f"{n_comparisons[item]:,}", *judges])
    return table


def contest_matrix(summary: Summary) -> dict[str, Any]:
    """Return the contests of the first items: names of rows and columns, and cells."""
    order, ahead, undecided = summary.contest_shares
    shown, any_undecided = order[: LIMITS["contests"]].tolist(), bool(np.nansum(np.triu(undecided, 1)))

    def cell(row: int, column: int) -> dict[str, Any] | None:
        if row == column or np.isnan(ahead[row, column]):
            return None
        wins, losses = float(ahead[row, column]), float(ahead[column, row])
        margin = (wins - losses) / max(wins + losses, 1e-12)
        shade = round(abs(margin) ** 0.6 * CONTEST_SHADES)  # small margins are emphasised
        colour = f"{'win' if margin > 0 else 'lose'}{shade}" if shade else "even"
        neither = float(undecided[row, column]) if any_undecided else None
        return {"ahead": wins, "undecided": neither, "colour": colour}

    names = tuple(summary.items[item] for item in shown)
    cells = [[cell(row, column) for column in shown] for row in shown]
    return {"shown": shown, "rows": text.short_names(names, 30), "columns": text.short_names(names, 22), "cells": cells}


def contests_picture(summary: Summary) -> Drawing:
    """Return the matrix of contests as a picture."""
    matrix = contest_matrix(summary)
    left, top = (14 + max(map(text_width, matrix[names])) for names in ("rows", "columns"))
    side = CONTEST_CELL * len(matrix["shown"])
    label = summary.say("contests_label", n_items=summary.wording.count_items(len(matrix["shown"])))
    parts = matrix | {"left": left, "top": top, "cell": CONTEST_CELL}
    return Drawing("contests", left + side, top + side, label, parts)


def cluster_shifts(summary: Summary, clustering: Clustering, number: int) -> Drawing | None:
    """Return the largest shifts of a cluster, on a scale common to all clusters; None if all are small."""
    cluster, items, wording = clustering.clusters[number], summary.items, summary.wording
    shown = largest_shifts(cluster.shift, wording.min_shift)
    if not shown:
        return None
    scale, middle = 108.0 / max(float(np.abs(each.shift).max()) for each in clustering.clusters), 152.0
    rows = [
        {
            "name": name,
            "better": cluster.shift[item] < 0,
            "length": scale * abs(float(cluster.shift[item])),
            "shift": wording.signed_shift(float(cluster.shift[item])),
        }
        for item, name in zip(shown, text.fit_names([items[item] for item in shown], middle - 10), strict=True)
    ]
    shifts = "; ".join(f"{items[item]} {row['shift']}" for item, row in zip(shown, rows, strict=True))
    label = wording.say("shift_label", name=cluster.name, shifts=shifts)
    parts = {"rows": rows, "middle": middle, "colour": min(number, COLOURS)}
    return Drawing("shift", 300.0, 4 + 22.0 * len(rows), label, parts)


# ---------------------------------------------------------------------- two groups


def pair_shares(summary: Summary, names: Sequence[str], differences: Differences | None) -> Drawing | None:
    """Return the shares of groups with a preference between pairs of items; None without such pairs."""
    wording, pairs = summary.source.group_wording, pairs_in_words(differences)
    if differences is None or not pairs:
        return None
    columns = [differences.groups.index(name) for name in names]
    items = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    short = dict(zip(items, text.fit_names(items, 125), strict=True))
    rows, spoken = [], []
    for pair in pairs:
        title = wording.say("pair_row", first=short[pair.first], second=short[pair.second])
        marks = [(pair.shares[group], *pair.intervals[group], percent(pair.shares[group])) for group in columns]
        rows.append({"name": title, "marks": marks})
        whole = wording.say("pair_row", first=pair.first, second=pair.second)
        both = ([percent(each[group]) for group in columns] for each in (pair.shares, pair.against))
        shares, against = (text.join_names(each, len(names)) for each in both)
        spoken.append(wording.say("pair_shares", pair=whole, shares=shares, against=against))
    label = wording.say("pairs_label", groups=text.join_names(names, len(names)), shares="; ".join(spoken))
    step, top = 24.0 + 13 * len(names), 6.0 + 16 * len(names)
    parts = {"rows": rows, "groups": text.fit_names(names, 300), "step": step, "top": top}
    return Drawing("pairs", 340.0, top + step * len(pairs) + 22, label, parts)


def null_histogram(summary: Summary, comparison: Comparison) -> Drawing:
    """Return the null distribution of the test of two groups with the observed statistic."""
    width, statistic, say = 260.0, comparison.statistic, summary.say
    null = np.zeros(1) if comparison.null is None else comparison.null
    low, high = min(float(null.min()), statistic, 0.0), max(float(null.max()), statistic)
    scale = (width - 20) / max(high - low, 1e-12)
    counts, edges = np.histogram(null, bins=40, range=(low, low + max(high - low, 1e-12)))
    steps = [
        (10 + scale * (edge - low), 38 * count / counts.max())
        for edge, count in zip(edges.tolist(), counts.tolist(), strict=False)
        if count
    ]
    x, half = 10 + scale * (statistic - low), text_width(say("observed"), 12.0) / 2
    label = say("null_label", statistic=statistic, low=null.min(), high=null.max())
    parts = {
        "steps": steps,
        "bar_width": (width - 20) / len(counts) - 0.8,
        "x": x,
        "observed": (min(max(x, half), width - half), say("observed")),
        "random": (10 - scale * low, say("random")) if x > 90 else None,
    }
    return Drawing("null", width, 64.0, label, parts)


# ---------------------------------------------------------------------- map


def ballot_map(summary: Summary) -> Drawing:
    """Return the map of the ballots, with equal scales on both axes."""
    view, wording = summary.view, summary.wording
    points = summary.embedding.points[view.rows] * [1, -1]
    low, high = points.min(axis=0), points.max(axis=0)
    area = np.array([MAP_WIDTH, MAP_HEIGHT - MAP_KEY])
    scale: float = ((area - 2 * MAP_MARGIN) / np.maximum(high - low, 1e-9)).min()
    coordinates: FloatArray = (points - (low + high) / 2) * scale + area / 2
    sizes, labels = radii(view.counts), summary.labels[view.rows].tolist()
    coloured = coloured_groups(summary)
    colours = np.full(len(summary.ballots.groups) + 1, COLOURS)
    colours[coloured] = np.arange(len(coloured))
    groups = summary.ballots.dominant_groups()[view.rows]
    circles = []
    for row in np.argsort(-sizes, kind="stable").tolist():  # small points over large ones
        ballot = summary.ballots.rankings[view.rows[row]]
        shown = text.ballot_text(ballot, limit=8, approvals=wording.approvals)
        fields = {"n_voters": wording.count_voters(int(ballot.counts[0])), "text": shown}
        if summary.grouped:
            label = wording.say("point_label_cluster", name=summary.grouped.clusters[labels[row]].name, **fields)
        else:
            label = wording.say("point_label", **fields)
        x, y = coordinates[row].tolist()
        colour = f"k{min(labels[row], COLOURS)} {f'g{colours[groups[row]]}' if groups[row] >= 0 else 'gx'}"
        circles.append({"x": x, "y": y, "r": float(sizes[row]), "row": row, "colours": colour, "label": label})
    # The map is drawn once and shown on large and on small screens, where titles are replaced by their letters.
    texts = [
        map_texts(summary, coordinates, "large", 16.0, 12.0, 380.0, 1.0, ""),
        map_texts(summary, coordinates, "small", 40.0, 36.0, 0.0, 1.8, "_short"),
    ]
    label = wording.say("map_label", n_ballots=wording.count_ballots(len(circles)))
    return Drawing("map", MAP_WIDTH, MAP_HEIGHT, label, {"points": circles, "texts": texts})


def radii(counts: IntArray) -> FloatArray:
    """Return radii of circles with areas proportional to the counts, small ones enlarged to be visible."""
    if counts.max() < 2:
        return np.full(len(counts), VOTER_RADIUS)
    largest = min(MAX_RADIUS, VOTER_RADIUS * float(np.sqrt(counts.max())))
    return np.asarray(np.maximum(np.sqrt(counts / counts.max()) * largest, MIN_RADIUS))


def map_texts(
    summary: Summary,
    coordinates: FloatArray,
    name: str,
    letters: float,
    axis: float,
    label_width: float,
    enlarged: float,
    suffix: str,
) -> dict[str, Any]:
    """Return the cluster titles, the names of the axes and the key of the sizes, in letters of the given sizes."""
    say, counts = summary.say, summary.view.counts
    first, second = (percent(share) for share in summary.embedding.variance.tolist())
    axes = [
        {"x": MAP_WIDTH, "y": MAP_HEIGHT - 6, "end": True, "text": say(f"map_right{suffix}", share=first)},
        {"x": 0.0, "y": letters, "end": False, "text": say(f"map_up{suffix}", share=second)},
    ]
    titles = cluster_titles(summary, coordinates, letters, label_width)
    sizes: list[dict[str, Any]] = []
    largest, x = int(counts.max()), 14.0
    steps = sorted({1, max(round(largest / 4), 1), largest})
    for step, r in zip(steps, (enlarged * radii(np.array(steps))).tolist(), strict=True) if largest > 1 else ():
        shown = summary.wording.count_voters(step) if step == largest else f"{step:,}"
        sizes.append({"x": x + r, "y": MAP_HEIGHT - 6 - r, "r": r, "text_x": x + 2 * r + 5, "text": shown})
        x += 2 * r + 14 + text_width(shown, axis)
    return {"name": name, "titles": titles, "axes": axes, "sizes": sizes}


def cluster_titles(
    summary: Summary, coordinates: FloatArray, letters: float, label_width: float
) -> list[dict[str, Any]]:
    """Return the titles of the clusters at the means of their voters, moved down where they would overlap."""
    labels, counts, wanted = summary.labels[summary.view.rows], summary.view.counts, []
    for number, cluster in enumerate(summary.grouped.clusters if summary.grouped else []):
        inside = labels == number
        if inside.any():
            x, y = np.average(coordinates[inside], axis=0, weights=counts[inside]).tolist()
            fits = text_width(cluster.title, letters) <= label_width
            wanted.append((y, x, number, cluster.title if fits else cluster.name))
    titles: list[dict[str, Any]] = []
    gap = 1.375 * letters
    for y, x, number, title in sorted(wanted):
        half = text_width(title, letters) / 2
        x = min(max(x, half), MAP_WIDTH - half)
        y = max(y, 2.5 * letters)  # below the name of the axis
        while any(abs(y - other["y"]) < gap and abs(x - other["x"]) < half + other["half"] for other in titles):
            y += gap / 2
        titles.append({"x": x, "y": y, "half": half, "text": title, "colour": min(number, COLOURS)})
    return titles


# ---------------------------------------------------------------------- dendrogram


def dendrogram(
    summary: Summary, clustering: Clustering, width: float, right: float, head: str, limit: int, n_lines: int
) -> Drawing:
    """Return at most ``limit`` branches of the dendrogram of the ballots shown, with their most common ballots.

    The leaves are at ``right``; ``head`` is the sentence above the ballots, which have at most ``n_lines`` lines.
    """
    from scipy.cluster.hierarchy import dendrogram as scipy_dendrogram

    tree, wording, view, k = clustering.tree, summary.wording, summary.view, len(clustering.clusters)
    n_leaves = len(tree) + 1
    n_branches = min(max(limit, k), n_leaves)
    clusters = node_clusters(tree, clustering.shown)
    heights = np.concatenate([np.zeros(n_leaves), tree[:, 2]])
    x_of = (right - (right - TREE_LEFT) / max(float(tree[-1, 2]), 1e-12) * heights).tolist()
    row_height = 21.0 + LINE * (n_lines - 1)
    nodes: list[int] = []  # of the links, in the order of their coordinates

    def record(node: int) -> str:
        nodes.append(node)
        return ""

    drawn = scipy_dendrogram(tree, p=n_branches, truncate_mode="lastp", no_plot=True, link_color_func=record)

    def colour_of(node: int) -> str:  # links between clusters have no colour
        return f"branch k{min(clusters[node], COLOURS)}" if clusters[node] >= 0 else "branch"

    lines = []
    for node, positions in zip(nodes, drawn["icoord"], strict=True):
        top, bottom = (TREE_TOP + positions[end] / 10 * row_height for end in (0, 3))  # SciPy's leaves: 5, 15, 25, ...
        for child, y in zip(tree[node - n_leaves, :2].astype(int).tolist(), (top, bottom), strict=True):
            path = f"M{x_of[node]:.1f} {y:.1f}H{x_of[child]:.1f}"
            lines.append({"path": path, "colour": colour_of(child if clusters[node] < 0 else node)})
        lines.append({"path": f"M{x_of[node]:.1f} {top:.1f}V{bottom:.1f}", "colour": colour_of(node)})
    common, _, voters = node_summaries(tree, view.counts)
    ballots = (summary.ballots.rankings[int(view.rows[common[node]])] for node in drawn["leaves"])
    texts = [text.ballot_text(ballot, ballot.n_items, 18, wording.approvals) for ballot in ballots]
    branches = []
    for index, (node, shown) in enumerate(
        zip(drawn["leaves"], text.wrap_names(texts, width - right - 62, n_lines), strict=True)
    ):
        y, half = TREE_TOP + (index + 0.5) * row_height, 5.0 if node >= n_leaves else 0.0
        first_line = y + 4.5 - LINE * (len(shown) - 1) / 2
        branches.append(
            {
                "y": y + 4.5,
                "wedge": f"M{x_of[node]:.1f} {y:.1f}L{right:g} {y - half:.1f}V{y + half:.1f}Z",
                "colour": min(int(clustering.shown[common[node]]), COLOURS),
                "voters": f"{int(voters[node]):,}",
                "lines": [{"y": first_line + LINE * number, "text": line} for number, line in enumerate(shown)],
            }
        )
    ends = (x_of[-(k - 1)], x_of[-k] if k < n_leaves else right)
    cut, title = sum(ends) / 2, wording.say("tree_cut", k=k)
    parts = {
        "lines": lines,
        "branches": branches,
        "right": right,
        "top": TREE_TOP,
        "left": TREE_LEFT,
        "cut": {"x": cut, "text": title, "text_x": max(cut, text_width(title, 12.5) / 2)},
        "head": wording.say(head),
        "voters": wording.nouns["voters"],
        "far": wording.say("tree_far"),
        "near": wording.say("tree_near"),
    }
    label = wording.say("tree_label", n_ballots=wording.count_ballots(n_leaves), n_clusters=plural(k, "cluster"))
    return Drawing("tree", width, TREE_TOP + n_branches * row_height + 34, label, parts)


# ---------------------------------------------------------------------- Gram matrix


def gram_picture(
    summary: Summary,
    clustering: Clustering,
    width: float,
    side: float,
    n_rows: int,
    name_width: float,
    key_width: float,
) -> Drawing:
    """Return the Gram matrix of at most ``n_rows`` voters in the order of the dendrogram, with the clusters beside it.

    Titles of clusters are replaced by their letters if one is wider than ``name_width``.
    """
    voters, wording = voters_in_tree_order(summary, clustering, n_rows), summary.wording
    values = summary.embedding.gram[np.ix_(voters, voters)]
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    levels = (np.clip((values - low) / max(high - low, 1e-12), 0, 1) * 255).round().astype(np.uint8)
    labels = clustering.labels[summary.view.rows[voters]]
    names = [cluster.title for cluster in clustering.clusters]
    if max(map(text_width, names)) > name_width:
        names = [cluster.name for cluster in clustering.clusters]
    left, next_y, strips = 24 + max(map(text_width, names)), 0.0, []
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]):
        a, b = (side * edge / len(labels) for edge in (start, end))
        number, y = int(labels[start]), max(GRAM_TOP + (a + b) / 2 + 4, next_y)
        next_y, name, colour = y + 15, names[number], min(number, COLOURS)
        strips.append({"start": a + 1, "length": max(b - a - 2, 1.0), "y": y, "name": name, "colour": colour})
    right = left + side + key_width
    parts = {
        "left": left,
        "top": GRAM_TOP,
        "side": side,
        "image": png_address(levels),
        "strips": strips,
        "scale": png_address(np.arange(255, -1, -1, dtype=np.uint8)[:, None]),
        "scale_x": left + side + 20,
        "right": right,
        "head": wording.say("kernel_value"),
        "low": f"{low:.2g}",
        "high": f"≥ {high:.2g}",
    }
    label = wording.say("gram_label", n_voters=wording.count_voters(len(voters)), low=low, high=high)
    return Drawing("gram", max(width, right), GRAM_TOP + side + 6, label, parts)


def voters_in_tree_order(summary: Summary, clustering: Clustering, limit: int) -> Indices:
    """Return the ballots of at most ``limit`` voters at regular intervals in the order of the leaves."""
    from scipy.cluster.hierarchy import leaves_list

    leaves = leaves_list(clustering.tree)
    ends = np.cumsum(summary.view.counts[leaves])
    n_shown = min(int(ends[-1]), limit)
    voters = ((np.arange(n_shown) + 0.5) * int(ends[-1]) / n_shown).astype(np.intp)
    return np.asarray(leaves[np.searchsorted(ends, voters, side="right")])


# Stops of cividis (Nuñez, Anderton and Renslow 2018), which is perceived alike with and without colour blindness.
STOPS = np.array(
    [
        *[(0, 34, 78), (18, 53, 112), (59, 73, 108), (87, 93, 109), (112, 113, 115)],
        *[(138, 134, 120), (165, 156, 116), (195, 179, 105), (225, 204, 85), (254, 232, 56)],
    ],
    dtype=np.float64,
)


def palette() -> NDArray[np.uint8]:
    """Return 256 colours from dark blue to yellow, one in a row."""
    positions = np.linspace(0, len(STOPS) - 1, 256)
    channels = [np.interp(positions, np.arange(len(STOPS)), channel) for channel in STOPS.T]
    return np.stack(channels, axis=1).round().astype(np.uint8)


def png_address(levels: NDArray[np.uint8]) -> str:
    """Return a matrix of palette entries as a PNG image in a data address."""
    height, width = levels.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row begins with its filter type, 0
    rows[:, 1:] = levels
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette().tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    image = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")


# ---------------------------------------------------------------------- data of the script


def script_data(summary: Summary, max_numbers: int = MAX_NUMBERS) -> dict[str, Any]:
    """Return the data with which the script shows ballots, cuts the dendrogram and describes a selection.

    Ballots that are not shown come last, as far as the page can contain them; the script only saves them.
    """
    rows = contained_rows(summary, max_numbers)
    rankings, clustering, wording = summary.ballots.rankings[rows], summary.clustering, summary.wording
    order, data = summary.contest_shares[0], summary.source.comparisons
    first_items = order[:MAX_SCRIPT_ITEMS]
    both = np.ix_(first_items, first_items)
    ahead = summary.contests.ahead if data is None else data.wins
    if isinstance(rankings, Preferences):
        stated: dict[str, Any] = {"pairs": rankings.to_pairs()}
    else:
        stated = {"ranks": rankings.ranks.tolist()}
    return {
        "nouns": wording.nouns,
        "sentences": text.sentences()["script"],
        "approvals": wording.approvals,
        "approveAllShare": summary.ballots.approve_all_share,
        "minShift": wording.min_shift,
        "items": list(rankings.items),
        "groups": list(summary.ballots.groups),
        "clusters": [cluster.title for cluster in summary.grouped.clusters] if summary.grouped else [],
        **stated,
        "voters": rankings.counts.tolist(),
        "weights": summary.view.counts.tolist(),
        "labels": summary.labels[rows].tolist(),
        "byGroup": summary.ballots.by_group[rows].tolist(),
        "points": summary.embedding.points[rows].round(5).tolist(),
        "nBallots": len(summary.ballots.rankings),
        "mergers": clustering.tree[:, :2].astype(int).tolist() if clustering else [],
        "contestItems": first_items.tolist(),
        "ahead": ahead[both].tolist(),
        "ties": None if data is None else data.ties[both].tolist(),
        "nVoters": summary.contests.n_voters,
        "shares": summary.shares.round(6).tolist(),
        "positions": summary.positions.round(4).tolist(),
        "order": order.tolist(),
    }


def contained_rows(summary: Summary, max_numbers: int) -> Indices:
    """Return the ballots that the page contains: those shown, then the most common others up to a limit."""
    rankings, n_items, shown = summary.ballots.rankings, summary.ballots.rankings.n_items, summary.view.rows
    per_ballot = n_items * (n_items - 1) // 2 if isinstance(rankings, Preferences) else n_items
    limit = max_numbers // (per_ballot + len(summary.ballots.groups) + 4)  # and voters, cluster, two coordinates
    others = np.setdiff1d(np.argsort(-rankings.counts, kind="stable"), shown, assume_unique=True)
    return np.concatenate([shown, others[: max(limit - len(shown), 0)]])
