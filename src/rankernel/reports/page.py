"""The page: what was found, section by section, in one file that needs no other and asks no network."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from rankernel.reports.draw_map import LEAST_BALLOTS, map_data
from rankernel.reports.markup import Markup, embedded_json, join, tag, text
from rankernel.reports.section_ahead import ahead_section, preference_section
from rankernel.reports.section_clusters import cluster_section, tree_section
from rankernel.reports.section_groups import group_section
from rankernel.reports.section_methods import methods_section, sure_section
from rankernel.reports.section_pictures import gram_section, map_section
from rankernel.reports.story import lede
from rankernel.reports.summary import Summary


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
    return files("rankernel.reports").joinpath("templates", name).read_text(encoding="utf-8")


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
    """Return all sections: the story, how sure it is, the pictures, the methods."""
    sections = [ahead_section(study), cluster_section(study)]
    if study.comparisons:
        sections.append(group_section(study, study.comparisons))
    sections.append(sure_section(study))
    pictures = [map_section(study)] if len(study.view.rows) >= LEAST_BALLOTS else []
    if study.grouped:
        pictures.append(gram_section(study, study.grouped))
    if pictures:
        sections.append(tag("div", *pictures, class_="beside" if len(pictures) > 1 else None))
    if study.ballots.rankings.n_items > 1:
        sections.append(preference_section(study))
    if study.grouped:
        sections.append(tree_section(study, study.grouped))
    return join([head(study), tag("main", *sections, methods_section(study), id="main")])


def head(study: Summary) -> Markup:
    """Return title, who is ahead, and key numbers."""
    rankings, source, words = study.ballots.rankings, study.source, study.words
    numbers = [words.count_voters(rankings.n_voters), words.count_items(rankings.n_items)]
    numbers.append(words.count_ballots(len(rankings), "different"))
    if study.grouped:
        numbers.append(f"{len(study.grouped.clusters)} clusters")
    counted = [number.split(" ", 1) for number in numbers]
    return tag(
        "header",
        tag("p", "A report on rankings", class_="kicker"),
        tag("h1", source.title),
        tag("p", lede(study), class_="lede"),
        tag("dl", *[tag("div", tag("dt", name), tag("dd", number)) for number, name in counted], class_="numbers"),
        tag("p", source.description, class_="description") if source.description else None,
    )
