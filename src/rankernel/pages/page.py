"""The page: what was found, section by section, in one file that needs no other and asks no network."""

from __future__ import annotations

import base64
import hashlib
import platform
import re
from importlib.resources import files
from typing import Any

import numpy as np

from rankernel import __version__
from rankernel.analysis.clustering import Cluster, Clustering
from rankernel.analysis.comparisons import MOST_GROUPS, Comparison
from rankernel.analysis.phrases import ballot_text, cut, percent, plural, pvalue_text, shift_text, short_numbers
from rankernel.analysis.placement import FEATURES
from rankernel.analysis.summary import Summary
from rankernel.pages.draw_bars import MOST_ITEMS as MOST_BARS
from rankernel.pages.draw_bars import first_choices, null_picture, pairs_picture, shift_bars, striking
from rankernel.pages.draw_heat import MOST_ITEMS, MOST_PIXELS, gram_picture, preference_table
from rankernel.pages.draw_map import map_data, map_picture, strongest_group
from rankernel.pages.draw_tree import MOST_BRANCHES, tree_picture
from rankernel.pages.markup import Markup, embedded_json, join, tag, text

TABLE_ROWS = 100
LISTED = 8
SIGNIFICANT = 0.05
KINDS = {
    "full": "full: every item has its place",
    "top-k": "top-k: the first places, the rest tied last",
    "exhaustive": "with ties elsewhere",
    "incomplete": "incomplete: some items may stand anywhere",
    "partial": "pairs: some items are compared, of others nothing is known",
}
PAPER = (
    "María Lomelí, Mark Rowland, Arthur Gretton and Zoubin Ghahramani (2019). Antithetic and Monte Carlo kernel "
    "estimators for partial rankings. Statistics and Computing 29, 1127–1147."
)
BIBTEX = """@article{lomeli2019antithetic,
  title   = {Antithetic and {Monte Carlo} kernel estimators for partial rankings},
  author  = {Lomeli, Maria and Rowland, Mark and Gretton, Arthur and Ghahramani, Zoubin},
  journal = {Statistics and Computing},
  volume  = {29},
  pages   = {1127--1147},
  year    = {2019},
  doi     = {10.1007/s11222-019-09859-z}
}"""


def page(study: Summary) -> str:
    """Return the page about a study."""
    style, script = template("style.css"), template("script.js")
    slots = {
        "title": text(study.source.title),
        "policy": Markup(policy(style, script)),
        "style": Markup(style),
        "body": body(study),
        "data": embedded_json(map_data(study)),
        "script": Markup(script),
    }
    # In one pass, so that what stands in for one slot is never searched for another.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: slots[slot[1]], template("page.html"))


def template(name: str) -> str:
    """Return a file of the package."""
    return files("rankernel.pages").joinpath("templates", name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Return what the page may do: run this script and use this style, known by their hashes, and nothing else."""

    def known(content: str) -> str:
        digest = hashlib.sha256(content.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; style-src {known(style)}; script-src {known(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def body(study: Summary) -> Markup:
    """Return all sections."""
    sections = [overview(study), map_section(study)]
    if study.clustering:
        sections += [cluster_section(study, study.clustering), tree_section(study, study.clustering)]
    sections.append(preference_section(study))
    if study.clustering:
        sections.append(gram_section(study, study.clustering))
    if study.comparisons:
        sections.append(test_section(study))
    return join([head(study), tag("main", *sections, methods(study), id="main")])


def section(name: str, title: str, *content: Any) -> Markup:
    """Return a section with its title."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *content, id=name, aria_labelledby=f"{name}-title")


def figure(picture: Any, *caption: Any, wide: bool = False) -> Markup:
    """Return a picture with its caption."""
    return tag("figure", picture, tag("figcaption", *caption), class_="wide" if wide else None)


# ---------------------------------------------------------------------- head


def head(study: Summary) -> Markup:
    """Return title, summary and key numbers."""
    rankings, source = study.ballots.rankings, study.source
    numbers = [
        (f"{rankings.n_voters:,}", "voters"),
        (f"{rankings.n_items:,}", "items"),
        (f"{len(rankings):,}", "different ballots"),
    ]
    if study.clustering:
        numbers.append((f"{len(study.clustering.clusters)}", "clusters"))
    return tag(
        "header",
        tag("p", "A report on rankings", class_="kicker"),
        tag("h1", source.title),
        tag("p", lede(study), class_="lede"),
        tag("dl", *[tag("div", tag("dt", name), tag("dd", number)) for number, name in numbers], class_="numbers"),
        tag("p", source.description, class_="description") if source.description else None,
    )


def lede(study: Summary) -> str:
    """Return the summary."""
    rankings = study.ballots.rankings
    items = rankings.items
    words = f"{plural(rankings.n_voters, 'voter')} ranked {plural(rankings.n_items, 'item')}. "
    if rankings.n_items < 2:
        return words
    best = int(study.order[0])
    words += f"{items[best]} has the best mean place. "
    if study.winner is None:
        words += "No item is preferred to every other one by more than half of the voters."
    elif study.winner == best:
        words += "More than half of the voters prefer it to each other item."
    else:
        words += f"But more than half of the voters prefer {items[study.winner]} to each other item."
    return words


def overview(study: Summary) -> Markup:
    """Return what the data is."""
    rankings = study.ballots.rankings
    kinds = rankings.kinds()
    voters = {kind: int(rankings.counts[kinds == kind].sum()) for kind in KINDS}
    present = [(kind, number) for kind, number in voters.items() if number]
    total = rankings.n_voters
    rows = [
        tag("li", tag("strong", percent(number / total)), f" {KINDS[kind]} ({plural(number, 'voter')})")
        for kind, number in present
    ]
    caption = [
        "The share of voters who put each item first, ties divided; and the mean place of each item, where tied "
    ]
    caption.append("items share the mean of their places.")
    if rankings.n_items > MOST_BARS:
        caption.append(f" The {MOST_BARS} items with the best mean places, of {rankings.n_items:,}.")
    reading = study.source.reading
    return section(
        "data",
        "What the ballots say",
        figure(first_choices(study), *caption),
        tag("ul", *rows, class_="kinds"),
        tag("p", f"How the file was read: {reading}.", class_="note"),
    )


# ---------------------------------------------------------------------- map


def map_section(study: Summary) -> Markup:
    """Return the map with its switch, its key and its table."""
    view = study.view
    caption = [
        "Each point is a ballot, its area the number of voters who gave it. Near each other are ballots that the "
    ]
    caption.append("kernel sees as similar. Point at one, or move with Tab and the arrow keys, to read it.")
    if view.sampled:
        caption.append(
            f" Shown are {plural(len(view.rows), 'ballot')} of {plural(view.n_voters, 'voter')} taken at random from "
            f"{study.ballots.rankings.n_voters:,}; the axes come from all of them."
        )
    tip = tag("div", class_="tip", hidden="hidden", aria_hidden="true")
    picture = tag("div", switch(study), tag("div", map_picture(study), tip, class_="stage"), group_key(study))
    return section("map", "A map of the ballots", figure(picture, *caption, wide=True), ballot_table(study))


def switch(study: Summary) -> Markup | None:
    """Return the choice of what colours stand for, if there is one."""
    if not study.ballots.groups or not study.clustering:
        return None

    def choice(value: str, label: str, checked: bool) -> Markup:
        box = tag("input", type="radio", name="colour", value=value, checked="checked" if checked else None)
        return tag("label", box, f" {label}")

    return tag(
        "fieldset",
        tag("legend", "Colour by"),
        choice("cluster", "cluster", True),
        choice("group", study.source.by or "group", False),
        class_="switch",
    )


def group_key(study: Summary) -> Markup | None:
    """Return what the colours of groups stand for."""
    if not study.ballots.groups:
        return None
    entries = [
        tag("li", tag("span", class_=f"dot g{number % 8}"), cut(name, 40))
        for number, name in enumerate(study.ballots.groups[:12])
    ]
    if (strongest_group(study) < 0).any():
        entries.append(tag("li", tag("span", class_="dot gx"), "no group has more than 60% of the voters"))
    hidden = "hidden" if study.clustering else None
    return tag("ul", *entries, class_="key by-group-only", hidden=hidden, aria_label="Colours of the groups")


def ballot_table(study: Summary) -> Markup:
    """Return the most common ballots as a table, which says what the map shows."""
    rankings = study.ballots.rankings
    common = np.argsort(-rankings.counts, kind="stable")[:TABLE_ROWS]
    heads = ["Voters", "Ballot", *(["Cluster"] if study.clustering else []), *study.ballots.groups[:MOST_GROUPS]]
    rows = []
    for row in common.tolist():
        cells = [tag("td", f"{int(rankings.counts[row]):,}", class_="figure")]
        cells.append(tag("td", ballot_text(rankings[row], most=12, length=40)))
        if study.clustering:
            cells.append(tag("td", study.clustering.clusters[int(study.clustering.labels[row])].name))
        cells += [tag("td", f"{int(n):,}", class_="figure") for n in study.ballots.by_group[row][:MOST_GROUPS]]
        rows.append(tag("tr", *cells))
    head = tag("thead", tag("tr", *[tag("th", name, scope="col") for name in heads]))
    return tag(
        "details",
        tag("summary", f"The most common {plural(len(common), 'ballot')} as a table"),
        tag("div", tag("table", head, tag("tbody", *rows)), class_="scroll"),
    )


# ---------------------------------------------------------------------- clusters


def cluster_section(study: Summary, clustering: Clustering) -> Markup:
    """Return a card for each cluster."""
    how = "The number of clusters is where the tree below makes its largest jump." if clustering.chosen else ""
    intro = (
        "Ballots that are alike, found without knowing anything of the voters but their rankings. Each cluster is "
        f"shown with {clustering.rule}, and with the items that it ranks higher (+) or lower (−) than all voters do, "
        "in places."
    )
    largest = max(float(np.abs(cluster.shift).max()) for cluster in clustering.clusters)
    cards = [card(study, number, cluster, largest) for number, cluster in enumerate(clustering.clusters)]
    return section("clusters", "Clusters", tag("p", f"{intro} {how}"), tag("div", *cards, class_="cards"))


def card(study: Summary, number: int, cluster: Cluster, largest: float) -> Markup:
    """Return what there is to say of one cluster."""
    shade = f"k{number % 8}"
    ranks, items = cluster.consensus.ranks[0], study.ballots.rankings.items
    order = np.argsort(ranks, kind="stable")
    # Tied items share the first of their places.
    listed = [tag("li", items[item], value=1 + int((ranks < ranks[item]).sum())) for item in order[:LISTED].tolist()]
    more = len(order) - LISTED
    first = int(np.argmax(cluster.firsts))
    title = f"Ranked higher or lower by cluster {cluster.name} than by all voters"
    common = ballot_text(cluster.ballot, most=5, length=24)
    return tag(
        "article",
        tag("h3", tag("span", cluster.name, class_=f"badge {shade}"), f" {percent(cluster.share)} of the voters"),
        tag(
            "p",
            f"{plural(cluster.n_voters, 'voter')}; {percent(float(cluster.firsts[first]))} put {items[first]} first.",
            class_="size",
        ),
        tag("ol", *listed),
        tag("p", f"… and {more:,} more", class_="more") if more > 0 else None,
        shift_bars(items, cluster.shift, largest, shade, title),
        tag("p", f"Most common ballot: {common} ({plural(int(cluster.ballot.counts[0]), 'voter')})", class_="note"),
        class_=shade,
    )


def tree_section(study: Summary, clustering: Clustering) -> Markup:
    """Return the dendrogram."""
    n_leaves = len(clustering.tree) + 1
    caption = [f"Branches join where their ballots are alike ({study.settings.linkage} linkage of kernel distances). "]
    if n_leaves > MOST_BRANCHES:
        caption.append(
            f"The upper part of the tree of {plural(n_leaves, 'ballot')}: a wedge stands for a whole branch. "
        )
    if study.view.sampled:
        caption.append(
            "The tree is that of the ballots on the map; all others belong to the cluster with the nearest mean."
        )
    return section("tree", "How the clusters join", figure(tree_picture(study, clustering), *caption, wide=True))


def preference_section(study: Summary) -> Markup:
    """Return the pairwise preferences."""
    caption = [
        "Percent of the voters who prefer the item of the row to that of the column. Blue: most prefer the row; "
    ]
    caption.append("orange: most prefer the column. A tie counts one half for each.")
    n_items = study.ballots.rankings.n_items
    if n_items > MOST_ITEMS:
        caption.append(f" The {MOST_ITEMS} items with the best mean places, of {n_items:,}.")
    return section("preferences", "Who is preferred to whom", figure(preference_table(study), *caption))


def gram_section(study: Summary, clustering: Clustering) -> Markup:
    """Return the Gram matrix."""
    n_shown = min(study.view.n_voters, MOST_PIXELS)
    caption = [f"Kernel values between {plural(n_shown, 'voter')} "]
    if n_shown < study.ballots.rankings.n_voters:
        caption.append("evenly spaced along the tree, ")
    caption.append("in the order of the dendrogram. Bright blocks are clusters of like ballots.")
    return section("gram", "Every ballot against every other", figure(gram_picture(study, clustering), *caption))


# ---------------------------------------------------------------------- tests


def test_section(study: Summary) -> Markup:
    """Return the two-sample tests."""
    n = study.settings.n_permutations
    names = study.ballots.groups
    different = [c for c in study.comparisons if c.corrected <= SIGNIFICANT]
    if len(study.comparisons) == 1:
        only = study.comparisons[0]
        verdict = f"{names[only.first]} and {names[only.second]} rank the items "
        verdict += "differently, more so than chance explains." if different else "so alike that chance may explain it."
    else:
        verdict = f"{len(different)} of {len(study.comparisons)} pairs of groups differ by more than chance explains."
    rows = [comparison_row(study, comparison) for comparison in study.comparisons]
    head = ["Groups", "MMD², effect", "p-value", "Against chance", "Largest differences of mean places, and of pairs"]
    table = tag(
        "table",
        tag("thead", tag("tr", *[tag("th", name, scope="col") for name in head])),
        tag("tbody", *rows),
        class_="tests",
    )
    sizes = [c.n_first + c.n_second for c in study.comparisons]
    whole = study.ballots.by_group.sum(axis=0)
    caption = [f"Two-sample tests by maximum mean discrepancy, {n:,} permutations of the voters"]
    caption.append(", p-values corrected for the number of tests by Holm’s method" if len(rows) > 1 else "")
    if any(c.n_first < whole[c.first] or c.n_second < whole[c.second] for c in study.comparisons):
        caption.append(f", on {min(sizes):,} to {max(sizes):,} voters of each two groups taken at random")
    caption.append(f". The {MOST_GROUPS} largest groups." if len(names) > MOST_GROUPS else ".")
    caption.append(
        " The effect, below MMD², is the share of the dispersion of voters that lies between the two groups. Pairs of "
        "items: the share that prefers the first, dark in the first group and light in the second, with 95% intervals."
    )
    return section(
        "tests",
        f"Do the groups differ by {study.source.by or 'group'}?",
        tag("p", verdict, class_="verdict"),
        figure(tag("div", table, class_="scroll"), *caption, wide=True),
    )


def comparison_row(study: Summary, comparison: Comparison) -> Markup:
    """Return one test."""
    names, items = study.ballots.groups, study.ballots.rankings.items
    differences = [
        tag("li", f"{items[item]}: {shift_text(float(comparison.shift[item]))} in {names[comparison.first]}")
        for item in striking(comparison.shift, most=4)
    ]
    sizes = f"{comparison.n_first:,} and {plural(comparison.n_second, 'voter')}"
    return tag(
        "tr",
        tag("th", f"{names[comparison.first]} – {names[comparison.second]}", tag("small", sizes), scope="row"),
        tag(
            "td",
            f"{comparison.statistic:.3g}".replace("-", "−"),
            tag("small", f"{comparison.effect:.2g}".replace("-", "−")),
            class_="figure",
        ),
        tag("td", pvalue_text(comparison.corrected, study.settings.n_permutations), class_="figure"),
        tag("td", null_picture(comparison)),
        tag(
            "td",
            tag("ul", *differences),
            pairs_picture(comparison, (names[comparison.first], names[comparison.second])),
        ),
    )


# ---------------------------------------------------------------------- how


def methods(study: Summary) -> Markup:
    """Return how everything was computed, and what to cite."""
    facts = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts_of(study).items()]
    notes = [tag("li", note) for note in study.notes]
    return section(
        "methods",
        "How this was made",
        tag("dl", *facts, class_="facts"),
        tag("h3", "Notes") if notes else None,
        tag("ul", *notes) if notes else None,
        tag("h3", "How to cite"),
        tag("p", "Kernels and estimators for partial rankings: ", PAPER),
        tag("pre", BIBTEX, tabindex=0, aria_label="BibTeX entry"),
        tag("p", f"Software: rankernel {__version__}."),
    )


def facts_of(study: Summary) -> dict[str, str]:
    """Return the parameters of all that was done."""
    settings, placement, view = study.settings, study.placement, study.view
    rankings = study.ballots.rankings
    facts = {
        "Data": study.source.origin or study.source.title,
        "Reading": study.source.reading,
        "Kernel": f"{short_numbers(str(placement.kernel))}, averaged over the completions of partial rankings",
        "Kernel values": placement.values,
        "Map": f"kernel principal components of all voters; {percent(float(placement.variance.sum()))} of the variance",
    }
    if placement.features is not None:
        facts["Approximation"] = (
            f"the map of {len(rankings):,} ballots from {min(FEATURES, placement.features.shape[1])} Nyström features "
            f"(randomly pivoted Cholesky), which leave out {placement.missing:.1%} of the trace; tree, matrix and "
            f"points from {view.n_voters:,} voters taken at random"
        )
    if study.clustering:
        chosen = "found from the tree" if study.clustering.chosen else "as asked for"
        facts["Clusters"] = (
            f"{settings.linkage} linkage of kernel distances, voters counted; {len(study.clustering.clusters)} "
            f"clusters, {chosen}; a cluster is shown by {study.clustering.rule}"
        )
    if study.comparisons:
        facts["Tests"] = f"unbiased squared MMD with the kernel above, {settings.n_permutations:,} permutations"
    facts["Seed"] = str(settings.seed)
    facts["Software"] = f"rankernel {__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    return facts
