"""The report page: the jinja2 templates filled with the results, as one self-contained HTML document.

Autoescaping is on, so that names in the data are shown as text and never become markup.
"""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel import __version__
from rankernel._utils import Indices
from rankernel.errors import require
from rankernel.preferences import Preferences
from rankernel.reports import cluster_drawings as clusters
from rankernel.reports import drawings as charts
from rankernel.reports import statements
from rankernel.reports.drawings import Drawing
from rankernel.reports.number_of_clusters import MAX_CLUSTERS
from rankernel.reports.summary import Summary
from rankernel.reports.text import ballot_text, percent, pvalue_text, round_numbers, sentences, short_name, short_names

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

KINDS = ("full", "top-k", "exhaustive", "incomplete", "partial")
LIMITS = {
    "bars": charts.MAX_BARS,
    "branches": clusters.PAPER_TREE.n_branches,
    "clusters": MAX_CLUSTERS,
    "colours": charts.COLOURS,
    "consensus": 8,  # items of a cluster
    "contests": charts.MAX_CONTEST_ITEMS,
    "gram": clusters.WIDE_GRAM.pixels,
    "rows": 100,  # of a table; further rows are only in its CSV file
}
KEY_LINE = 20.0  # height of a line of a key
MIN_MAP_BALLOTS = 3  # fewer are not drawn as a map
MAX_SCRIPT_ITEMS = 200  # whose contests the script knows
MAX_NUMBERS = 500_000  # in the ballots that a page contains, less than 2 MB


# ---------------------------------------------------------------------- rendering


def render_page(summary: Summary, max_numbers: int = MAX_NUMBERS) -> str:
    """Return the page about the results; ``max_numbers`` limits the ballots that it contains beyond those shown."""
    from markupsafe import Markup

    style, script = template_text("style.css"), template_text("script.js")
    clustering, ballots = summary.grouped, summary.ballots
    kinds, coloured = ballots.rankings.kinds(), clusters.coloured_groups(summary)
    by_coloured_group = ballots.by_group[:, coloured]
    if len(coloured) < len(ballots.groups):
        others = ballots.by_group.sum(axis=1) - by_coloured_group.sum(axis=1)
        by_coloured_group = np.column_stack([by_coloured_group, others])
    template = environment().get_template("page.html")
    return template.render(
        summary=summary,
        words=summary.wording,
        say=summary.wording.say,
        statements=statements,
        limits=LIMITS,
        group_name=summary.source.group_name or "group",
        kinds={kind: int(ballots.rankings.counts[kinds == kind].sum()) for kind in KINDS},
        drawings=drawings_of(summary),
        contests=charts.contest_matrix(summary),
        evidence=summary.clustering.evidence if summary.clustering else None,
        variance=percent(float(summary.embedding.variance.sum())),
        cluster_key=clusters.cluster_key(summary),
        titles=tuple(cluster.title for cluster in clustering.clusters) if clustering else (),
        group_sizes=ballots.by_group.sum(axis=0).tolist(),
        cluster_sizes=ballots.members(clustering.labels).T.tolist() if clustering else [],
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
        finalize=coordinate,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.globals["draw"] = render_drawing
    made.filters |= {"percent": percent, "pvalue": pvalue_text, "round_numbers": round_numbers}
    made.filters |= {"ballot_text": ballot_text, "short_name": short_name, "short_names": short_names}
    return made


def coordinate(value: Any) -> Any:
    """Return a float as text with at most two decimals; any other value unchanged."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


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


# ---------------------------------------------------------------------- pictures


def drawings_of(summary: Summary) -> dict[str, Any]:
    """Return the drawings of the page by section, in all sizes in which they are shown."""
    grouped, wording = summary.grouped, summary.wording
    drawings: dict[str, Any] = {
        "first_choices": {
            "wide": charts.first_choices(summary, charts.WIDE_BARS)[0],
            "narrow": charts.first_choices(summary, charts.NARROW_BARS)[0],
            "paper": charts.first_choices(summary, charts.WIDE_BARS, charts.BARS_PER_SHEET),
        },
        "map": clusters.ballot_map(summary) if len(summary.view.rows) >= MIN_MAP_BALLOTS else None,
        "contests": charts.contests_picture(summary) if summary.ballots.rankings.n_items > 1 else None,
        "comparisons": [
            (charts.pair_shares(pair, names, wording), charts.null_histogram(pair, wording))
            for pair, names in named_pairs(summary)
        ],
    }
    if grouped:
        drawings["shifts"] = [charts.cluster_shifts(summary, number) for number in range(len(grouped.clusters))]
        drawings["gram"] = {
            "wide": clusters.gram_picture(summary, grouped, clusters.WIDE_GRAM),
            "narrow": clusters.gram_picture(summary, grouped, clusters.NARROW_GRAM),
        }
        drawings["tree"] = {
            "wide": clusters.dendrogram(summary, grouped, clusters.WIDE_TREE),
            "narrow": clusters.dendrogram(summary, grouped, clusters.NARROW_TREE),
            "paper": [clusters.dendrogram(summary, grouped, clusters.PAPER_TREE)],
        }
    return drawings


def named_pairs(summary: Summary) -> list[tuple[Any, tuple[str, str]]]:
    """Return the comparisons described in detail, with the names of their groups."""
    names, details = summary.ballots.groups, summary.comparisons.details if summary.comparisons else []
    return [(pair, (names[pair.first], names[pair.second])) for pair in details]


def pictures(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG document of each picture of the page."""
    drawings, key = drawings_of(summary), clusters.cluster_key(summary)
    named = {"approvals" if summary.wording.approvals else "first choices": drawings["first_choices"]["wide"]}
    named |= {"map": drawings["map"], "contests": drawings["contests"]}
    if summary.grouped:
        named |= {"dendrogram": drawings["tree"]["wide"], "gram": drawings["gram"]["wide"]}
        shifts = zip(summary.grouped.clusters, drawings["shifts"], strict=True)
        named |= {f"cluster {cluster.name}": drawing for cluster, drawing in shifts}
    for (_, (first, second)), (shares, null) in zip(named_pairs(summary), drawings["comparisons"], strict=True):
        named |= {f"pairs: {first} and {second}": shares, f"null distribution: {first} and {second}": null}
    for name, drawing in named.items():
        if drawing is not None:
            keyed = name in ("map", "dendrogram", "gram")
            yield name, str(render_drawing(drawing, key if keyed else (), standalone=True))


# ---------------------------------------------------------------------- data of the script


def script_data(summary: Summary, max_numbers: int = MAX_NUMBERS) -> dict[str, Any]:
    """Return the data with which the script shows ballots, cuts the dendrogram and describes a selection.

    Ballots that are not shown come last, as far as the page can contain them; the script only saves them.
    """
    rows = contained_rows(summary, max_numbers)
    rankings, clustering, wording = summary.ballots.rankings[rows], summary.clustering, summary.wording
    first_items = summary.kemeny.order[:MAX_SCRIPT_ITEMS]
    rows_of_script = (
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
        **rows_of_script,
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
