"""Write the measured numbers into the pages of the documentation: ``python -m benchmarks.pages``.

The numbers come from the files in ``docs/benchmarks``. ``SENTENCES`` lists the sentences of the pages that contain
numbers, ``TABLES`` the tables; ``tests/project/test_claims.py`` checks that pages and files agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.cost import beyond

DOCS = Path(__file__).parents[1] / "docs"
NUMBER = r"(-?\d[\d,]*(?:\.\d+)?%?)"  # replaces {} in a sentence

Numbers = Callable[[], Iterable[str]]
Cells = list[list[str]]


@cache
def content(name: str) -> dict[str, Any]:
    """Return a committed file."""
    loaded: dict[str, Any] = json.loads((DOCS / f"benchmarks/{name}.json").read_text(encoding="utf-8"))
    return loaded


def rows(name: str, **wanted: Any) -> list[dict[str, Any]]:
    """Return the rows of a committed file with the given values."""
    return [row for row in content(name)["rows"] if all(row[key] == value for key, value in wanted.items())]


def value(name: str, key: str, **wanted: Any) -> float:
    """Return one value of the only row with the given values."""
    (row,) = rows(name, **wanted)
    return float(row[key])


def short(number: float) -> str:
    """Return a number with two digits; those of large numbers are rounded."""
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def share(number: float, digits: int = 0) -> str:
    """Return a proportion in percent."""
    return f"{number:.{digits}%}"


# ---------------------------------------------------------------------- what the files say


def costs_beyond_bounds() -> Cells:
    """Return the rows of the cost sweep that exceed a bound."""
    columns = ("predicted", "measured", "peak MB", "regret")
    return [
        [row["kernel"], row["rankings"], str(row["n"]), row["method"]]
        + [short(row[column]) if column in row else "" for column in columns]
        + [row.get("error") or beyond(row)]
        for row in rows("cost")
        if beyond(row)
    ]


def seconds(task: str, n_rankings: int) -> float:
    """Return the time of a task of the scaling study."""
    return value("scaling", "seconds", task=task, kernel="Mallows", n_rankings=n_rankings)


def rates() -> tuple[float, float, float]:
    """Return entries computed and summed per core and second, and features of a ranking in core seconds."""
    cores = content("scaling")["machine"]["cores"]
    gram, sums = (n**2 / seconds(task, n) / cores for task, n in (("gram", 20_000), ("sums", 100_000)))
    return gram, sums, seconds("nystrom", 1_000_000) * cores / 1_000_000


def tolerance(error: float, key: str) -> dict[tuple[str, str], float]:
    """Return what estimates with a given error took, by kernel and estimator."""
    found = rows("tolerance") if error == 0 else rows("tolerance", **{"error at most": error})
    return {(row["case"].split(",")[0], row["estimator"].split(", ")[-1]): row[key] for row in found}


def evaluations_saved() -> str:
    """Return the evaluations of the Mallows kernel over those of the better estimator of the paper."""
    found = tolerance(0.003, "evaluations of a pair")
    paper = min(found["Mallows", name] for name in ("independent", "antithetic"))
    return share(found["Mallows", "rankernel"] / paper)


def false_clusters() -> tuple[str, str]:
    """Return the number of data sets without clusters in which clusters were found, and the number of all."""
    without = rows("groups/groups", groups="none")
    totals = [sum(number for name, number in row.items() if name.startswith("found")) for row in without]
    return str(sum(totals) - sum(row["found none"] for row in without)), str(sum(totals))


@cache
def coverage() -> dict[str, Any]:
    """Return the numbers of the coverage study."""
    from benchmarks.coverage import MIN_COVERAGE, QUANTITIES, has_warning, low_coverage

    cells = rows("coverage/full/cells")
    scored = [(cell, name) for cell in cells for name in QUANTITIES if cell[f"{name}: coverage"] is not None]
    warned = [(cell, name) for cell, name in scored if has_warning(cell, name)]
    quiet = [(cell, name) for cell, name in scored if not has_warning(cell, name)]
    low = low_coverage(cells)
    ratios = [median(cell[f"{name}: ratio"] for cell, name in quiet if name == each) for each in QUANTITIES]
    without = sum(all(cell[f"{name}: coverage"] is None for name in QUANTITIES) for cell in cells)
    return {
        "cells": len(cells),
        "without": without,
        "scored cells": len(cells) - without,
        "scored": len(scored),
        "warned": len(warned),
        "narrow": sum(cell["factor"] >= 10 for cell, _ in warned),
        "warned, covered": sum(cell[f"{name}: coverage"] >= MIN_COVERAGE for cell, name in warned),
        "quiet": len(quiet),
        "quiet, covered": len(quiet) - len(low),
        "low": len(low),
        "lowest": min(row["coverage"] for row in low),
        "medians": [median(cell[f"{name}: coverage"] for cell, name in quiet if name == each) for each in QUANTITIES],
        "ratios": (min(ratios), max(ratios)),
    }


def numbers_of_coverage(*names: str) -> list[str]:
    """Return counts of the coverage study."""
    return [f"{coverage()[name]:,}" for name in names]


RANKERS = {
    "regression": "regression",
    "neighbours": "neighbours",
    "logistic": "pairwise logistic",
    "tree": "tree",
    "forest": "forest",
    "Kemeny": "Korba, Kemeny",
    "Hamming": "Korba, Hamming",
    "Lehmer": "Korba, Lehmer",
}


def label_ranking() -> Cells:
    """Return the table of label ranking, the largest tau of each row in bold."""
    table, last = [], None
    for row in rows("label_ranking"):
        taus = [f"{row[key]:.3f}" if key in row else "" for key in RANKERS.values()]
        best = max(taus)
        sets = [f"{row[key]:.3f}" if key in row else "" for key in ("coverage", "pairs stated")]
        first = "" if row["file"] == last else row["file"]
        table.append([first, share(row["missing"]), *(f"**{t}**" if t == best else t for t in taus), *sets])
        last = row["file"]
    return table


def regression_wins(missing: float) -> tuple[str, str]:
    """Return the number of files on which the regression has the largest tau to three digits, and of all files."""
    found = rows("label_ranking", missing=missing)
    best = [max(row[key] for key in RANKERS.values() if key in row) for row in found]
    return str(sum(f"{r['regression']:.3f}" == f"{b:.3f}" for r, b in zip(found, best, strict=True))), str(len(found))


PRINTED = ("RPC", "native PI", "native RR", "chain PI", "chain RR", "single PI", "single RR")


def printed_label_ranking() -> Cells:
    """Return the table of the regression beside printed results, the largest tau of each row in bold."""
    table = []
    for row in rows("label_ranking_published"):
        own = value("label_ranking", "regression", file=row["file"], missing=0.0)
        taus = [f"{tau:.3f}" for tau in (own, *(row[name] for name in PRINTED))]
        table.append([row["file"], *(f"**{tau}**" if tau == max(taus) else tau for tau in taus)])
    return table


def regression_wins_of_all() -> tuple[str, ...]:
    """Return the number of files with a larger tau than printed, of these files, and with the largest tau of all."""
    printed = {row["file"]: max(row[name] for name in PRINTED) for row in rows("label_ranking_published")}
    found = rows("label_ranking", missing=0.0)
    ahead = [row["file"] for row in found if row["file"] in printed and row["regression"] > printed[row["file"]]]
    best = [max([printed.get(row["file"], -1.0), *(row[k] for k in RANKERS.values())]) for row in found]
    largest = sum(f"{row['regression']:.3f}" == f"{tau:.3f}" for row, tau in zip(found, best, strict=True))
    return str(len(ahead)), str(len(printed)), str(largest), str(len(found))


def prediction_sets() -> tuple[str, ...]:
    """Return the smallest, largest and mean coverage of prediction sets."""
    found = [row["coverage"] for row in rows("label_ranking") if "coverage" in row]
    return f"{min(found):.3f}", f"{max(found):.3f}", f"{mean(found):.3f}"


def optimisation() -> Cells:
    """Return the table of the smallest values, one row for each problem."""
    methods = list(dict.fromkeys(row["method"] for row in rows("optimisation")))
    table = []
    for problem in dict.fromkeys(row["problem"] for row in rows("optimisation")):
        means = [value("optimisation", "mean", problem=problem, method=method) for method in methods]
        table.append([problem, *(f"{number:.0f}" if number >= 100 else f"{number:.2f}" for number in means)])
    return table


SUSHI = {
    "ebi": "shrimp",
    "anago": "sea eel",
    "maguro": "tuna",
    "ika": "squid",
    "uni": "sea urchin",
    "ikura": "salmon roe",
    "tamago": "egg",
    "toro": "fatty tuna",
    "tekka_maki": "tuna roll",
    "kappa_maki": "cucumber roll",
}


def mixture_bic() -> Cells:
    """Return the row of the criterion for each number of components."""
    return [["BIC", *(f"{row['bic']:,.0f}" for row in rows("mixtures"))]]


def mixture_components() -> Cells:
    """Return the table of the components of the model with five components."""
    (row,) = rows("mixtures", components=5)
    parameters = zip(row["weights"], row["thetas"], row["centers"], strict=True)
    return [[f"{w:.3f}", f"{theta:.3f}", ", ".join(map(SUSHI.__getitem__, center))] for w, theta, center in parameters]


# Consensus rankings of the five clusters that the vignette of BayesMallows prints for these data.
BAYES_MALLOWS = [
    "shrimp, sea eel, squid, egg, fatty tuna, tuna, tuna roll, cucumber roll, salmon roe, sea urchin",
    "fatty tuna, tuna, sea eel, shrimp, tuna roll, squid, egg, cucumber roll, salmon roe, sea urchin",
    "fatty tuna, salmon roe, sea urchin, tuna, shrimp, tuna roll, squid, sea eel, egg, cucumber roll",
    "sea urchin, fatty tuna, salmon roe, sea eel, shrimp, tuna, squid, tuna roll, egg, cucumber roll",
    "fatty tuna, sea urchin, tuna, salmon roe, sea eel, tuna roll, shrimp, squid, egg, cucumber roll",
]


def discordant(first: str, second: str) -> int:
    """Return the number of pairs that two orders rank differently."""
    orders = [order.split(", ") for order in (first, second)]
    return sum(
        (orders[0].index(a) < orders[0].index(b)) != (orders[1].index(a) < orders[1].index(b))
        for a, b in combinations(orders[0], 2)
    )


def mixture_matches() -> Cells:
    """Return the distances of the printed rankings to the nearest center of the model with five components."""
    centers = [cells[2] for cells in mixture_components()]
    table = []
    for printed in BAYES_MALLOWS:
        distances = [discordant(printed, center) for center in centers]
        nearest = distances.index(min(distances))
        table.append([printed, str(nearest + 1), str(distances[nearest])])
    return table


def trec() -> Cells:
    """Return the table of pairs of versions of a TREC run."""
    return [
        [
            f"{row['first']} and {row['second']}",
            f"{row['overlap']:.3f}",
            f"{row['difference']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
            short(row["adjusted p"]),
        ]
        for row in rows("trec")
    ]


def arena() -> Cells:
    """Return the table of the first and the last models of LLMFAO."""
    return [
        [
            row["item"],
            str(row["rank"]),
            f"{row['rank_low']} to {row['rank_high']}",
            f"{row['bradley_terry']:.2f}",
            f"{row['low']:.2f} to {row['high']:.2f}",
        ]
        for row in rows("arena")
    ]


def of_arena(*names: str) -> list[str]:
    """Return counts of the analysis of LLMFAO."""
    return [f"{content('arena')[name]:,}" for name in names]


def cluster() -> Cells:
    """Return the table of times on a cluster, one row for each task."""
    names = {
        "sum of a Gram matrix, N=20,000": "sum of the Gram matrix of 20,000 rankings, blocks of 2,048",
        "100 Nyström features, N=200,000": "100 Nyström features of 200,000 rankings",
    }
    found = {(row["work"], row["where"].split(",")[0], row["processes"]): row["seconds"] for row in rows("cluster")}
    columns = (("one process", 1), ("cluster", 1), ("cluster", 2))
    return [[name, *(short(found[(work, *column)]) for column in columns)] for work, name in names.items()]


def leaderboard() -> Cells:
    """Return the table of simulated leaderboards."""
    table = []
    for row in rows("leaderboard"):
        p, runs = row["coverage"], row["runs"]
        error = (max(p * (1 - p), 1 / runs) / runs) ** 0.5
        table.append([row["design"], row["items"], f"{p:.3f} ± {error:.3f}", f"{row['ranks']:.1f}"])
    return table


def size() -> Cells:
    """Return the table of files and lines, one column for each version."""
    versions = content("size")["versions"].values()
    table = [[name, *(f"{version[name]:,}" for version in versions)] for name in ("files", "lines", "public names")]
    for walk in ("exact Gram matrix", "Monte Carlo Gram matrix", "mmd_test", "rankernel report"):
        found = [version[walk] for version in versions]
        cells = [f"{w['median']:g} / {w['max']} of {w['cases']} cases" for w in found]
        table.append([f"files passed by {walk}: median / maximum", *cells])
    return table


def similar_items() -> tuple[str, ...]:
    """Return the numbers of the sentence about maps of Scottish wards."""
    found = content("similar_items")
    low, middle, high = found["min_median_max"]["disparity"]
    shares = [found["min_median_max"][name][1] for name in ("share_similar", "share_distinct")]
    larger, wards = found["min_median_max"]["larger_share"], found["n_wards"]
    return f"{middle:.3f}", f"{low:.3f}", f"{high:.3f}", str(larger), str(wards), *(f"{s:.3f}" for s in shares)


def extrapolated() -> list[str]:
    """Return the rates, and the times of large tasks that follow from them."""
    gram, sums, feature = rates()
    minutes, hours, long = 1e12 / gram / 60, 1e12 / sums / 3600, feature * 1e9 / 3600
    found = [gram / 1e6, sums / 1e6, feature * 1e6]
    found += [minutes, minutes * 60 / 100, hours, hours * 3600 / 100, long, long * 60 / 100]
    return [short(number) for number in found]


# ---------------------------------------------------------------------- where they are written

SENTENCES: list[tuple[str, str, Numbers]] = [
    (
        "benchmarks/index.md",
        "of 20,000 top-8 lists of 20 items takes **{} s**",
        lambda: [short(seconds("gram", 20_000))],
    ),
    (
        "benchmarks/index.md",
        "of 2,000 top-4 lists takes {} s; kernrank (R) takes **{} s**",
        lambda: [
            short(value("peers", key, claim="Kendall Gram of partial rankings", size="N=2000, top-4 of 10"))
            for key in ("seconds", "peer_seconds")
        ],
    ),
    (
        "benchmarks/index.md",
        "**{}** of the kernel evaluations of the paper's estimators",
        lambda: [evaluations_saved()],
    ),
    (
        "benchmarks/index.md",
        "intervals without a warning, **{}** have a coverage",
        lambda: [share(1 - coverage()["low"] / coverage()["quiet"], 1)],
    ),
    (
        "benchmarks/index.md",
        "the mean type I error over {} designs is **{}**",
        lambda: [
            str(len(rows("tests/levels"))),
            share(mean(row["level at 0.05"] for row in rows("tests/levels")), 1),
        ],
    ),
    ("benchmarks/index.md", "Clusters were found in **{} of {}** data sets", false_clusters),
    (
        "benchmarks/appendix.md",
        "An exact Gram matrix takes {} to {} times as long as filling a matrix",
        lambda: [
            f"{extreme(row['times_fill'] for row in rows('ordinary') if 'times_fill' in row):.1f}"
            for extreme in (min, max)
        ],
    ),
    (
        "benchmarks/appendix.md",
        "the tests of all 1,770 pairs of sixty groups take {} s",
        lambda: [short(row["seconds"]) for row in rows("ordinary") if "1,770 pairs" in row["what"]],
    ),
    ("benchmarks/appendix.md", "clusters were found in {} of {} data sets", false_clusters),
    (
        "benchmarks/appendix.md",
        "for {} cells, and the measured seconds of {} other jobs; {} rows are beyond their bounds",
        lambda: (
            [str(sum(("ratio" in row) == priced for row in rows("cost"))) for priced in (True, False)]
            + [str(len(costs_beyond_bounds()))]
        ),
    ),
    (
        "benchmarks/appendix.md",
        "largest tau on {} of {} files with complete labels, on {} of {} with 30% missing items, and on {} of {} with",
        lambda: [number for missing in (0.0, 0.3, 0.6) for number in regression_wins(missing)],
    ),
    (
        "benchmarks/appendix.md",
        "a larger tau than all of these methods on {} of {} files. Over both tables it has the largest tau on {} of {}",
        regression_wins_of_all,
    ),
    ("benchmarks/appendix.md", "is {} to {} on single files, and {} in the mean over files", prediction_sets),
    (
        "benchmarks/appendix.md",
        "a fit takes {} s of processor time with given kernels and parameters, and {} s",
        lambda: [short(content("label_ranking")["selection"][f"seconds, {name}"]) for name in ("given", "chosen")],
    ),
    (
        "benchmarks/appendix.md",
        "A run of Bayesian optimisation takes at most {} s of processor time",
        lambda: [short(max(row["processor seconds a run"] for row in rows("optimisation")))],
    ),
    (
        "benchmarks/appendix.md",
        "{} times. A test failed or did not finish in {} cases; the other {} mutants",
        lambda: [
            str(len(rows("mutation"))),
            str(len(rows("mutation")) - len(rows("mutation", result="survived"))),
            str(sum("explained" in row for row in rows("mutation"))),
        ],
    ),
    (
        "benchmarks/coverage.md",
        "for each of {} cells. In {} cells the draws form too few blocks",
        lambda: numbers_of_coverage("cells", "without"),
    ),
    (
        "benchmarks/coverage.md",
        "In the other {} cells {} quantities are scored",
        lambda: numbers_of_coverage("scored cells", "scored"),
    ),
    (
        "benchmarks/coverage.md",
        "{} quantities have a warning, {} of them at a decay rate of 10 or 30",
        lambda: numbers_of_coverage("warned", "narrow"),
    ),
    (
        "benchmarks/coverage.md",
        "{} of the {} have a coverage of at least 90%",
        lambda: numbers_of_coverage("warned, covered", "warned"),
    ),
    (
        "benchmarks/coverage.md",
        "Of the {} quantities without a warning, {} have a coverage of at least 90%",
        lambda: numbers_of_coverage("quiet", "quiet, covered"),
    ),
    (
        "benchmarks/coverage.md",
        "{} off the diagonal, {} on the biased diagonal, {} on the unbiased diagonal and {} for normalised entries",
        lambda: [share(number) for number in coverage()["medians"]],
    ),
    (
        "benchmarks/coverage.md",
        "standard errors to true errors is {} to {}",
        lambda: [f"{number:.1f}" for number in coverage()["ratios"]],
    ),
    (
        "benchmarks/coverage.md",
        "The {} quantities with a coverage below 90% and no warning",
        lambda: numbers_of_coverage("low"),
    ),
    ("benchmarks/coverage.md", "The lowest coverage is {}", lambda: [share(coverage()["lowest"])]),
    (
        "guide/scaling.md",
        "of 20,000 rankings takes {} s, sums over the matrix of 100,000 rankings take {} s",
        lambda: [short(seconds(*task)) for task in (("gram", 20_000), ("sums", 100_000))],
    ),
    (
        "guide/scaling.md",
        "100 Nyström features of a million rankings take {} s",
        lambda: [short(seconds("nystrom", 1_000_000))],
    ),
    (
        "guide/scaling.md",
        "{} million entries of a symmetric Gram matrix per second, {} million entries summed per second, {} µs",
        lambda: extrapolated()[:3],
    ),
    ("guide/scaling.md", "10¹² entries | {} core minutes; {} s on 100 cores", lambda: extrapolated()[3:5]),
    ("guide/scaling.md", "for a test | {} core hours; {} s on 100 cores", lambda: extrapolated()[5:7]),
    ("guide/scaling.md", "a billion rankings | {} core hours; {} minutes on 100 cores", lambda: extrapolated()[7:9]),
    (
        "tutorials/similar_items.md",
        "disparity of the two maps is {} ({} to {}; equal maps have 0)",
        lambda: similar_items()[:3],
    ),
    (
        "tutorials/similar_items.md",
        "is larger in {} of the {} wards, with a median of {} instead of {}",
        lambda: similar_items()[3:],
    ),
    (
        "tutorials/search.md",
        "Features of a million lists of a thousand documents take {} s, the Gram matrix of ten thousand lists {} s",
        lambda: [
            short(value("overlap", "seconds", claim=f"rank-biased overlap, {what}"))
            for what in ("sparse features", "Gram matrix")
        ],
    ),
    (
        "tutorials/arenas.md",
        "The {} battles of {} models by {} judges that come",
        lambda: of_arena("battles", "models", "judges"),
    ),
    ("tutorials/arenas.md", "{} of the battles are ties", lambda: [share(content("arena")["ties"])]),
    (
        "tutorials/arenas.md",
        "the first model is 1 to {}: of the 1,711 pairs of models {} are separated",
        lambda: [str(rows("arena")[0]["rank_high"]), *of_arena("separated")],
    ),
    (
        "tutorials/arenas.md",
        "belong to {} prompts. The preferences differ between prompts (p = {},",
        lambda: [*of_arena("prompts"), short(content("arena")["p of prompts"])],
    ),
    (
        "tutorials/arenas.md",
        "{} contradict themselves in a cycle; {} have enough battles for a ranking of their own, and {} of these",
        lambda: of_arena("judges with cycles", "judges with rankings", "outliers"),
    ),
    (
        "tutorials/arenas.md",
        "support any of the ranks 1 to {} for it",
        lambda: [str(rows("arena")[0]["rank_high"])],
    ),
    (
        "tutorials/arenas.md",
        "median number of > battles of a model is {}.",
        lambda: of_arena("median battles of a model"),
    ),
    (
        "tutorials/systems.md",
        "is {} for the original run, {} with the first 20 documents reversed and {} with",
        lambda: [f"{content('trec')['agreements'][name]:.3f}" for name in ("original", "reversed", "exchanged")],
    ),
]

# Page, header of the table, and its rows.
TABLES: list[tuple[str, str, Callable[[], Cells]]] = [
    (
        "benchmarks/appendix.md",
        "| job | rankings | items | method | predicted (s) | measured (s) | peak memory (MB) | regret | beyond |",
        costs_beyond_bounds,
    ),
    ("benchmarks/appendix.md", "| data | items | correct | mean number of ranks |", leaderboard),
    ("benchmarks/appendix.md", f"| file | missing | {' | '.join(RANKERS)} | coverage | pairs stated |", label_ranking),
    ("benchmarks/appendix.md", f"| file | regression | {' | '.join(PRINTED)} |", printed_label_ranking),
    (
        "benchmarks/appendix.md",
        "| | random search | hill climbing | Mallows | exponential Hamming | exponential Spearman |",
        optimisation,
    ),
    ("benchmarks/appendix.md", "| components | 1 | 2 | 3 | 4 | 5 | 6 |", mixture_bic),
    ("benchmarks/appendix.md", "| weight | theta | center |", mixture_components),
    ("benchmarks/appendix.md", "| cluster of BayesMallows | nearest component | discordant pairs |", mixture_matches),
    ("guide/scaling.md", "| task | one process, two threads | 1 worker | 2 workers |", cluster),
    ("tutorials/arenas.md", "| model | rank | possible ranks | strength | interval |", arena),
    ("tutorials/systems.md", "| versions | overlap | difference of agreements | adjusted p |", trec),
    ("contributing.md", "| | before | after |", size),
]


def with_numbers(text: str, sentence: str, numbers: Iterable[str]) -> str:
    """Return a text in which the numbers of one sentence are replaced; line breaks are preserved."""
    pattern = NUMBER.join(r"\s+".join(map(re.escape, part.split(" "))) for part in sentence.split("{}"))
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise ValueError(f"{len(found)} sentences of the page are: {sentence}")
    for group, number in reversed(list(enumerate(numbers, start=1))):
        start, end = found[0].span(group)
        text = text[:start] + number + text[end:]
    return text


def with_table(text: str, header: str, cells: Cells) -> str:
    """Return a text in which the rows of a table are replaced."""
    before, found, after = text.partition(header + "\n")
    if not found:
        raise ValueError(f"the page has no table {header}")
    ruler, _, rest = after.partition("\n")
    while rest.startswith("|"):
        rest = rest.partition("\n")[2]
    lines = [f"| {' | '.join(row)} |\n" for row in cells]
    return "".join([before, found, ruler, "\n", *lines, rest])


def updated(page: str) -> str:
    """Return the text of a page with the numbers of the committed files."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, sentence, numbers in SENTENCES:
        if name == page:
            text = with_numbers(text, sentence, numbers())
    for name, header, cells in TABLES:
        if name == page:
            text = with_table(text, header, cells())
    return text


PAGES = sorted({page for page, *_ in (*SENTENCES, *TABLES)})


def main() -> None:
    """Write all pages."""
    for page in PAGES:
        text = updated(page)
        if text != (DOCS / page).read_text(encoding="utf-8"):
            (DOCS / page).write_text(text, encoding="utf-8")
            print("changed:", page)


if __name__ == "__main__":
    main()
