"""The report page: records for its sections, rendered by the jinja2 templates into one self-contained HTML file.

Autoescaping is on, so that names in the data are shown as text and never become markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel import __version__
from rankernel._utils.arrays import Indices
from rankernel.errors import require
from rankernel.preferences import Preferences
from rankernel.reports import statements
from rankernel.reports.cluster_drawings import (
    MIN_MAP_BALLOTS,
    NARROW_GRAM,
    NARROW_TREE,
    PAPER_TREE,
    WIDE_GRAM,
    WIDE_TREE,
    ballot_map,
    cluster_key,
    coloured_groups,
    dendrogram,
    gram_picture,
)
from rankernel.reports.clustering import Clustering
from rankernel.reports.drawings import (
    BARS_PER_SHEET,
    COLOURS,
    NARROW_BARS,
    WIDE_BARS,
    Drawing,
    cluster_shifts,
    colour_index,
    contest_matrix,
    contests_picture,
    first_choices,
    null_histogram,
    pair_shares,
)
from rankernel.reports.groups import Comparisons
from rankernel.reports.number_of_clusters import MAX_CLUSTERS
from rankernel.reports.summary import Summary
from rankernel.reports.text import ballot_text, percent, pvalue_text, short_name, short_names
from rankernel.reports.wording import sentences

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

KINDS = ("full", "top-k", "exhaustive", "incomplete", "partial")
MAX_LISTED = 8  # items of a consensus
MAX_ROWS = 100  # of a table; further rows are only in its CSV file
KEY_LINE = 20.0  # height of a line of a key
MAX_CONTESTS = 200  # items whose contests the script knows
MAX_NUMBERS = 500_000  # in the ballots that a page contains, less than 2 MB

Record = dict[str, Any]


# ---------------------------------------------------------------------- rendering


def render_page(summary: Summary, max_numbers: int = MAX_NUMBERS) -> str:
    """Return the page about the results; ``max_numbers`` limits the ballots that it contains beyond those shown."""
    from markupsafe import Markup

    style, script = template_text("style.css"), template_text("script.js")
    return environment().get_template("page.html").render(
        **page_record(summary),
        say=summary.wording.say,
        style=Markup(style),
        script=Markup(script),
        policy=content_policy(style, script),
        script_data=script_data(summary, max_numbers),
    )


def render_drawing(drawing: Drawing, key: Sequence[str] = (), standalone: bool = False) -> Markup:
    """Return a picture as SVG; a standalone one contains the style of the page, and may have a key of the clusters."""
    from markupsafe import Markup

    # Light wherever it is shown, as the background is not known.
    style = template_text("style.css").replace("screen and (prefers-color-scheme: dark)", "not all")
    fields = {"key": key, "key_height": KEY_LINE * (len(key) + 0.5) if key else 0, "style": style}
    size = {"width": drawing.width, "height": drawing.height, "label": drawing.label, "template": drawing.template}
    template = environment().get_template(f"{drawing.template}.svg")
    return Markup(template.render(**drawing.parts, **size, **fields, standalone=standalone))


@cache
def environment() -> Environment:
    """Return the jinja2 environment of the templates."""
    require("jinja2", "report")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("rankernel.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=short_number,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.globals["draw"] = render_drawing
    return made


def short_number(value: Any) -> Any:
    """Return a float with at most two decimals, as coordinates need them; any other value unchanged."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


@cache
def template_text(name: str) -> str:
    """Return a file of the templates."""
    return files("rankernel.reports").joinpath("templates", name).read_text(encoding="utf-8")


def content_policy(style: str, script: str) -> str:
    """Return the content security policy: this script and this style, identified by their hashes, and nothing else."""

    def source(content: str) -> str:
        digest = hashlib.sha256(content.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def pictures(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture of the page."""
    wording, grouped, key = summary.wording, summary.grouped, cluster_key(summary)

    def svg(drawing: Drawing, key: Sequence[str] = ()) -> str:
        return str(render_drawing(drawing, key, standalone=True))

    yield "approvals" if wording.approvals else "first choices", svg(first_choices(summary, WIDE_BARS)[0])
    if len(summary.view.rows) >= MIN_MAP_BALLOTS:
        yield "map", svg(ballot_map(summary), key)
    if summary.ballots.rankings.n_items > 1:
        yield "contests", svg(contests_picture(summary, contest_matrix(summary)))
    if grouped:
        yield "dendrogram", svg(dendrogram(summary, grouped, WIDE_TREE), key)
        yield "gram", svg(gram_picture(summary, grouped, WIDE_GRAM), key)
        for number, cluster in enumerate(grouped.clusters):
            if shifts := cluster_shifts(summary, number):
                yield f"cluster {cluster.name}", svg(shifts)
    for pair in summary.comparisons.details if summary.comparisons else ():
        names = summary.ballots.groups[pair.first], summary.ballots.groups[pair.second]
        if shares := pair_shares(pair, names, wording):
            yield f"pairs: {names[0]} and {names[1]}", svg(shares)
        yield f"null distribution: {names[0]} and {names[1]}", svg(null_histogram(pair, wording))


# ---------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Cell:
    """A cell of a table; ``whole`` is the text for its CSV file if the cell shows a shortened one."""

    text: str
    kind: str = ""  # "number" or "heading"
    whole: str = ""


@dataclass(frozen=True)
class Table:
    """A table of which the first rows are shown and all are in its CSV file."""

    name: str
    label: str
    heads: list[Cell]
    rows: list[list[Cell]]
    limit: int = MAX_ROWS


def headings(names: tuple[str, ...], length: int) -> list[Cell]:
    """Return shortened names as headings."""
    shown = short_names(names, length)
    return [Cell(text, "heading", name if name != text else "") for text, name in zip(shown, names, strict=True)]


def rows_shown(summary: Summary, number: int, what: str) -> str:
    """Return how many rows of a table are shown, if not all are."""
    return summary.wording.say("rows_shown", limit=MAX_ROWS, n=number, what=what) if number > MAX_ROWS else ""


# ---------------------------------------------------------------------- sections


def page_record(summary: Summary) -> Record:
    """Return the records of all sections; those that do not apply are None."""
    rankings, wording = summary.ballots.rankings, summary.wording
    counts = [
        wording.count_voters(rankings.n_voters),
        wording.count_items(rankings.n_items),
        wording.count_ballots(len(rankings), "different"),
    ]
    if summary.grouped:
        counts.append(f"{len(summary.grouped.clusters)} clusters")
    facts, notes = statements.facts(summary), summary.notes
    return {
        "title": summary.source.title,
        "group_name": summary.source.group_name or "group",
        "headline": statements.headline(summary),
        "numbers": [count.split(" ", 1) for count in counts],
        "description": summary.source.description,
        "ahead": standing_record(summary),
        "clusters": clusters_record(summary),
        "groups": groups_record(summary, summary.comparisons) if summary.comparisons else None,
        "uncertainty": statements.uncertainty(summary),
        "map": map_record(summary) if len(summary.view.rows) >= MIN_MAP_BALLOTS else None,
        "gram": gram_record(summary, summary.grouped) if summary.grouped else None,
        "contests": contests_record(summary) if rankings.n_items > 1 else None,
        "tree": tree_record(summary, summary.grouped) if summary.grouped else None,
        "methods": {"facts": facts, "notes": notes, "version": __version__},
    }


def standing_record(summary: Summary) -> Record:
    """Return the record of first choices or approvals, the Kemeny ranking and the kinds of ballots."""
    rankings, wording = summary.ballots.rankings, summary.wording
    shares, note = [], wording.say("reading", reading=summary.source.reading)
    if wording.approvals:
        note = wording.say("kinds")
    else:
        kinds = rankings.kinds()
        voters = {kind: int(rankings.counts[kinds == kind].sum()) for kind in KINDS}
        shares = [
            (percent(number / rankings.n_voters), wording.say(f"kind_{kind}", n_voters=wording.count_voters(number)))
            for kind, number in voters.items()
            if number
        ]
    texts = [statements.first_choices(summary), statements.kemeny_ranking(summary)]
    return {
        "statements": [text for text in texts if text],
        "name": "approvals" if wording.approvals else "first-choices",
        "caption": statements.caption_of_bars(summary),
        "wide": first_choices(summary, WIDE_BARS)[0],
        "narrow": first_choices(summary, NARROW_BARS)[0],
        "paper": first_choices(summary, WIDE_BARS, BARS_PER_SHEET),
        "kinds": shares,
        "note": note,
    }


def clusters_record(summary: Summary) -> Record:
    """Return the record of the clusters, or the statement that there are none."""
    if summary.grouped is None:
        return {"text": statements.no_clusters(summary), "cards": []}
    cards, items = [], summary.ballots.rankings.items
    for number, cluster in enumerate(summary.grouped.clusters):
        ranks = cluster.consensus.ranks[0]
        order = np.argsort(ranks, kind="stable")
        n_more = len(order) - MAX_LISTED
        cards.append(
            {
                "name": cluster.name,
                "colour": colour_index(number),
                "label": short_name(cluster.distinction.label, 60),
                "size": statements.cluster_size(summary, cluster),
                # Tied items have the first of their positions.
                "consensus": [(1 + int((ranks < ranks[i]).sum()), items[i]) for i in order[:MAX_LISTED].tolist()],
                "more": summary.wording.say("more_listed", n=n_more) if n_more > 0 else "",
                "shifts": cluster_shifts(summary, number),
                "common": statements.most_common_ballot(summary, cluster),
            }
        )
    text, evidence = statements.clusters_intro(summary), statements.evidence_for_clusters(summary)
    return {"text": text, "cards": cards, "evidence": evidence}


def groups_record(summary: Summary, found: Comparisons) -> Record:
    """Return the record of the comparison of groups."""
    names, wording = summary.ballots.groups, summary.wording
    details = []
    for pair in found.details:
        first, second = names[pair.first], names[pair.second]
        details.append(
            {
                "title": f"{first} and {second}",
                "size": statements.comparison_size(summary, found, pair),
                "shifts": statements.item_shifts(summary, pair),
                "pairs": pair_shares(pair, (first, second), wording),
                "null": null_histogram(pair, wording),
            }
        )
    return {
        "verdict": statements.groups_verdict(summary, found),
        "clusters": cluster_table(summary, summary.grouped) if summary.grouped else None,
        "details": details,
        "pairs": pair_table(summary, found) if len(found.pairs) > 1 else None,
        "limit": rows_shown(summary, len(found.pairs), "pairs").strip(),
        "method": statements.how_groups_were_tested(summary, found),
    }


def cluster_table(summary: Summary, clustering: Clustering) -> Table:
    """Return the share of each group in each cluster."""
    by_group, names, wording = summary.ballots.by_group, summary.ballots.groups, summary.wording
    titles = tuple(cluster.title for cluster in clustering.clusters)
    sizes = by_group.sum(axis=0)
    members = np.stack([by_group[clustering.labels == n].sum(axis=0) for n in range(len(titles))], axis=1)
    shares = members / np.maximum(sizes, 1)[:, None]
    rows = [
        [heading, Cell(f"{int(sizes[g]):,}", "number"), *[Cell(percent(float(x)), "number") for x in shares[g]]]
        for g, heading in enumerate(headings(names, 40))
    ]
    heads = [Cell(summary.source.group_name or "group"), Cell(wording.voters), *headings(titles, 34)]
    label = wording.say("caption_cluster_table", limit=rows_shown(summary, len(names), "groups"))
    return Table("clusters-by-group", label, heads, rows)


def pair_table(summary: Summary, found: Comparisons) -> Table:
    """Return all pairs of groups, the most significant differences first."""
    names, say, n = summary.ballots.groups, summary.wording.say, summary.settings.n_permutations
    rows = [
        [
            Cell(f"{names[pair.first]} – {names[pair.second]}", "heading"),
            Cell(pvalue_text(pair.pvalue, n, found.from_moments), "number"),
            Cell(f"{100 * max(pair.effect, 0.0):.1f}%", "number"),
            Cell(say("differ" if pair.differs else "do_not_differ")),
        ]
        for pair in found.pairs
    ]
    heads = [Cell(say(f"head_{name}")) for name in ("groups", "pvalue", "effect", "verdict")]
    return Table("pairs-of-groups", say("all_pairs_table"), heads, rows)


def map_record(summary: Summary) -> Record:
    """Return the record of the map, its controls and its key."""
    clustering, groups, wording = summary.clustering, summary.ballots.groups, summary.wording
    n_leaves, n_clusters = len(summary.view.rows), len(clustering.clusters) if clustering else 1
    key, coloured = [], coloured_groups(summary)
    if groups:
        names = short_names(groups, 40)
        key = [(str(colour), names[group]) for colour, group in enumerate(coloured)]
        if len(coloured) < len(groups):
            key.append((str(COLOURS), wording.say("other_groups", n=len(groups) - len(coloured))))
        if (summary.ballots.dominant_groups()[summary.view.rows] < 0).any():
            key.append(("x", wording.say("no_clear_group")))
    return {
        "caption": statements.caption_of_map(summary),
        "drawing": ballot_map(summary),
        "item_names": summary.ballots.rankings.items,
        "n_clusters": n_clusters,
        "max_clusters": min(max(MAX_CLUSTERS, n_clusters), n_leaves) if clustering and n_leaves > 2 else None,
        "clusters": cluster_key(summary),
        "groups": key,
        "ballots": ballot_table(summary, coloured),
    }


def ballot_table(summary: Summary, coloured: list[int]) -> Table:
    """Return the most common ballots with their clusters and groups; groups without a colour are added up."""
    rankings, grouped, wording = summary.ballots.rankings, summary.grouped, summary.wording
    groups, by_group = summary.ballots.groups, summary.ballots.by_group
    common = np.argsort(-rankings.counts, kind="stable")[:MAX_ROWS].tolist()
    heads = [wording.voters.capitalize(), wording.ballot.capitalize()]
    heads += [wording.say("head_cluster")] * bool(grouped) + [groups[group] for group in coloured]
    heads += [wording.say("head_other_groups")] * (len(coloured) < len(groups))
    rows = []
    for row in common:
        text = ballot_text(rankings[row], limit=12, length=40, approvals=wording.approvals)
        cells = [Cell(f"{int(rankings.counts[row]):,}", "number"), Cell(text)]
        if grouped:
            cells.append(Cell(grouped.clusters[int(grouped.labels[row])].name))
        counts = by_group[row, coloured].tolist()
        counts += [int(by_group[row].sum()) - sum(counts)] * (len(coloured) < len(groups))
        rows.append(cells + [Cell(f"{n:,}", "number") for n in counts])
    label = wording.say("ballot_table" if len(common) > 1 else "ballot_table_one", n=len(common))
    return Table("common-ballots", label, list(map(Cell, heads)), rows)


def gram_record(summary: Summary, clustering: Clustering) -> Record:
    """Return the record of the Gram matrix."""
    sampled = min(summary.view.n_voters, WIDE_GRAM.pixels) < summary.ballots.rankings.n_voters
    wide, narrow = (gram_picture(summary, clustering, layout) for layout in (WIDE_GRAM, NARROW_GRAM))
    caption = summary.wording.say("caption_gram_sample" if sampled else "caption_gram")
    return {"caption": caption, "wide": wide, "narrow": narrow}


def contests_record(summary: Summary) -> Record:
    """Return the record of the head-to-head contests, as a table and as a picture to save."""
    matrix = contest_matrix(summary)
    drawing = contests_picture(summary, matrix)
    return {"caption": statements.caption_of_contests(summary), "matrix": matrix, "drawing": drawing}


def tree_record(summary: Summary, clustering: Clustering) -> Record:
    """Return the record of the dendrogram."""
    wide, narrow, paper = (dendrogram(summary, clustering, each) for each in (WIDE_TREE, NARROW_TREE, PAPER_TREE))
    caption = statements.caption_of_tree(summary, PAPER_TREE.n_branches)
    return {"caption": caption, "wide": wide, "narrow": narrow, "paper": [paper]}


# ---------------------------------------------------------------------- data of the script


def script_data(summary: Summary, max_numbers: int = MAX_NUMBERS) -> Record:
    """Return what the script needs to show ballots, to cut the dendrogram elsewhere and to describe a selection.

    Ballots that are not shown come last, as far as the page can contain them; the script only saves them.
    """
    rows = contained_rows(summary, max_numbers)
    rankings, clustering, wording = summary.ballots.rankings[rows], summary.clustering, summary.wording
    first_items = summary.kemeny.order[:MAX_CONTESTS]
    statements = (
        {"pairs": rankings.to_pairs()} if isinstance(rankings, Preferences) else {"ranks": rankings.ranks.tolist()}
    )
    return {
        "nouns": wording.nouns,
        "sentences": sentences()["script"],
        "approvals": wording.approvals,
        "approveAllShare": summary.ballots.approve_all_share,
        "minShift": wording.min_shift,
        "items": list(rankings.items),
        "groups": list(summary.ballots.groups),
        "clusters": [cluster.title for cluster in summary.grouped.clusters] if summary.grouped else [],
        **statements,
        "voters": rankings.counts.tolist(),
        "weights": summary.view.counts.tolist(),
        "labels": summary.labels[rows].tolist(),
        "byGroup": summary.ballots.by_group[rows].tolist(),
        "points": summary.embedding.points[rows].round(5).tolist(),
        "nBallots": len(summary.ballots.rankings),
        "mergers": clustering.tree[:, :2].astype(int).tolist() if clustering else [],
        "contestItems": first_items.tolist(),
        "ahead": summary.contests.ahead[np.ix_(first_items, first_items)].tolist(),
        "nVoters": summary.contests.n_voters,
        "shares": summary.shares.round(6).tolist(),
        "positions": summary.positions.round(4).tolist(),
        "order": summary.kemeny.order.tolist(),
    }


def contained_rows(summary: Summary, max_numbers: int) -> Indices:
    """Return the ballots that the page contains: those shown, then the most common others up to a limit."""
    rankings, n_items, shown = summary.ballots.rankings, summary.ballots.rankings.n_items, summary.view.rows
    per_ballot = n_items * (n_items - 1) // 2 if isinstance(rankings, Preferences) else n_items
    limit = max_numbers // (per_ballot + len(summary.ballots.groups) + 4)  # and voters, cluster, two coordinates
    others = np.setdiff1d(np.argsort(-rankings.counts, kind="stable"), shown, assume_unique=True)
    return np.concatenate([shown, others[: max(limit - len(shown), 0)]])
