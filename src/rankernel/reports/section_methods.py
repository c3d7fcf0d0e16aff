"""How sure all this is, how it was computed, and what to cite."""

from __future__ import annotations

import platform

import numpy as np

from rankernel import __version__
from rankernel.reports.layout import section
from rankernel.reports.markup import Markup, tag
from rankernel.reports.number_of_clusters import Evidence
from rankernel.reports.phrases import percent, short_numbers
from rankernel.reports.summary import Summary

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


def sure_section(study: Summary) -> Markup:
    """Return how sure all this is."""
    lines = [tag("li", line) for line in sure_lines(study)]
    return section("sure", "How sure this is", tag("ul", *lines))


def sure_lines(study: Summary) -> list[str]:
    """Return what rests on chance, sentence by sentence."""
    placement, words = study.placement, study.words
    lines = [f"Shares, duels and orders are counts of all {words.ballot}s; nothing in them is estimated."]
    if not study.best_order.exact:
        lines[0] = (
            f"Shares and duels are counts of all {words.ballot}s. The order that contradicts {words.voters} least was "
            "searched for."
        )
    if placement.error:
        lines.append(
            f"Kernel values are estimates ({placement.values}): the standard error of one is "
            f"{percent(placement.error)} of how much values differ between {words.ballot}s. Map, clusters and tests "
            "rest on many of them together."
        )
    else:
        lines.append("Kernel values are exact.")
    if study.clustering and study.clustering.evidence and study.clustering.evidence.steps:
        lines.append(clusters_line(study, study.clustering.evidence))
    if study.view.sampled:
        lines.append(
            f"The map shows {study.view.n_voters:,} {words.voters} taken at random, and "
            f"{percent(float(placement.variance.sum()))} of how much {words.ballot}s differ; the features that it is "
            f"made from leave out {placement.missing:.1%} of that."
        )
    if study.comparisons:
        found = study.comparisons
        noise = (
            f" Estimated kernel values add an error of {percent(found.error)} of what chance makes; p-values hold all "
            "the same."
            if found.error
            else ""
        )
        lines.append(
            "Of groups that are alike, a pair is said to differ about once in twenty reports at most, however many "
            f"pairs there are.{noise}"
        )
    return lines


def clusters_line(study: Summary, evidence: Evidence) -> str:
    """Return on what the number of clusters rests."""
    words, n_panels = study.words, evidence.n_panels
    looked = words.count_voters(evidence.n_voters)
    if n_panels > 1:
        looked += f", {evidence.n_voters // n_panels:,} at a time"
    return (
        f"Whether there are clusters, and how many, was judged on {looked}. Among {words.ballot}s drawn from one "
        "Plackett-Luce or Mallows model, without groups, clusters are found less often than once in twenty times. "
        f"Between clusters there need not be a gap: {words.voters} near a border could be in either."
    )


def methods_section(study: Summary) -> Markup:
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
    rankings, words = study.ballots.rankings, study.words
    facts = {
        "Data": study.source.origin or study.source.title,
        "Reading": study.source.reading,
        "Kernel": f"{short_numbers(str(placement.kernel))}, averaged over the completions of partial rankings",
        "Kernel values": placement.values,
        "Map": f"kernel principal components of all {words.voters}; {percent(float(placement.variance.sum()))} of the "
        "variance",
    }
    if placement.features is not None:
        facts["Approximation"] = (
            f"the map of {words.count_ballots(len(rankings))} from {placement.features.shape[1]} Nyström features "
            f"(randomly pivoted Cholesky), which leave out {placement.missing:.1%} of the trace; tree, matrix and "
            f"points from {view.n_voters:,} {words.voters} taken at random"
        )
    if study.grouped:
        chosen = "as asked for" if study.grouped.evidence is None else "as many as are more than chance and stable"
        facts["Clusters"] = (
            f"{settings.linkage} linkage of kernel distances, {words.voters} counted; {len(study.grouped.clusters)} "
            f"clusters, {chosen}; a cluster is shown by {study.grouped.rule}"
        )
    if study.comparisons:
        facts["Tests"] = f"unbiased squared MMD with the kernel above, {settings.n_permutations:,} permutations"
    facts["Seed"] = str(settings.seed)
    facts["Software"] = f"rankernel {__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    return facts
