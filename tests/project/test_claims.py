"""Every claim of the tables of the guide and the theory, each with a check: a claim that changes needs a check, too."""

import itertools
import json
import math
import re
from functools import cache, lru_cache, partial
from pathlib import Path

import naive
import numpy as np
import pytest
from scipy.stats import chisquare

import rankernel as rk
from benchmarks import pages
from rankernel._utils.resources import MATRICES_HELD
from rankernel.completions.linear_extensions import draw_extensions
from rankernel.distances import lp
from rankernel.io.registry import FORMATS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the documentation is not part of a package")


def table(path, first_header):
    """The rows of the table whose first header is this, as lists of cells without markup."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"| {first_header} |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in row.replace("\\|", "/").split("|")[1:-1]] for row in rows]


def committed(name):
    """The rows of a committed study."""
    return json.loads((ROOT / f"docs/benchmarks/{name}.json").read_text(encoding="utf-8"))["rows"]


def test_matrices_in_memory():
    """The page on scaling lists the numbers by which tasks are refused, smallest first."""
    listed = [float(number) for _, number in table("docs/guide/scaling.md", "task")]
    assert listed == sorted({1.0, *MATRICES_HELD.values()})


# ---------------------------------------------------------------------- what is exact


def full(n):
    return rk.datasets.uniform(4, n, rng=1)


def top(n, k=None):
    return full(n).top(k or n // 3)


def one_tie(n):
    return rk.Rankings(np.where(full(n).ranks < 2, full(n).ranks, np.clip(full(n).ranks, 2, n - 3)))


def ties(n):
    return rk.Rankings(full(n).ranks // 3)


def free(n, k=None):
    return full(n).top(k or n // 3, unlisted="free")


def free_ties(n, k=None):
    rows = free(n, k)
    return rk.Rankings(np.where(rows.ranks >= 0, rows.ranks // 2, rows.ranks))


def exact(kernel, X, Y=None):
    return lambda: isinstance(kernel.plan(X, Y).method, rk.Exact)


def estimated(kernel, X, Y=None):
    def check():
        with pytest.raises(rk.ExactnessError):
            kernel.gram(X, Y, method="exact")
        rows = kernel.gram(X[:2], None if Y is None else Y[:2], method=rk.MonteCarlo(4))
        return isinstance(kernel.plan(X, Y).method, rk.MonteCarlo) and np.isfinite(rows).all()

    return check


def refused(kernel, X):
    def check():
        for method in ("auto", "exact", rk.MonteCarlo(4)):
            with pytest.raises(rk.ExactnessError):
                kernel.gram(X, method=method)
        return True

    return check


def induced(n):
    return [rk.DistanceInduced(name, range(n)) for name in ("kendall", "hamming", "spearman", "footrule")]


POSITIONAL = [rk.RankBiasedOverlap(0.9), rk.AverageOverlap(10), rk.DCG()]
LINEAR = [rk.Kendall(), rk.Hamming(), rk.Spearman(), *POSITIONAL, *induced(100)]
MALLOWS, CUBIC = rk.Mallows(0.05), rk.Polynomial(3)
KENDALL_FUNCTIONS = [CUBIC, MALLOWS * MALLOWS, rk.Kendall().exp(), rk.Mallows(0.1) ** 2 + rk.Polynomial(4)]
HAMMING, CAYLEY = rk.Exponential("hamming", 0.1), rk.Exponential("cayley", math.log(3))
FOOTRULE, SPEARMAN = rk.Exponential("footrule", 0.01), rk.Exponential("spearman", 1e-5)
SHARP_SPEARMAN = rk.Exponential("spearman", 0.1)
ALL_SWAPS, NEIGHBOURS = rk.Diffusion(0.1), rk.Diffusion(0.1, "adjacent")

# kernel: column by column, what is claimed, and checks of it.
EXACT = {
    "Kendall, Hamming, Spearman, rank-biased overlap and all positional kernels, "
    "induced by Kendall / Hamming / Spearman / footrule distance": [
        ("closed form", [exact(k, X(100)) for k in LINEAR for X in (full, top)]),
        ("closed form", [exact(k, ties(100)) for k in LINEAR]),
        ("closed form", [exact(k, X(100)) for k in LINEAR for X in (free, free_ties)]),
    ],
    "Mallows": [
        ("closed form", [exact(MALLOWS, X(100)) for X in (full, top)]),
        ("closed form", [exact(MALLOWS, ties(100))]),
        (
            "closed form for short lists (4 of 20 items, 3 of 30, 2 of 100), else estimated",
            [exact(MALLOWS, free(n, k)) for n, k in ((20, 4), (30, 3), (100, 2))]
            + [estimated(MALLOWS, free(n, k)) for n, k in ((20, 5), (30, 4), (100, 3))]
            + [exact(MALLOWS, free_ties(20, 3))],
        ),
    ],
    "polynomial in Kendall": [
        ("closed form", [exact(CUBIC, X(100)) for X in (full, top)]),
        ("closed form", [exact(CUBIC, ties(100))]),
        (
            "closed form for degree 2 up to 54 items, else estimated",
            [exact(rk.Polynomial(2), free(54)), estimated(rk.Polynomial(2), free(55)), estimated(CUBIC, free(20))],
        ),
    ],
    "any function of the Kendall distance": [
        (
            "closed form up to 200 items, else estimated",
            [exact(k, X(200)) for k in KENDALL_FUNCTIONS for X in (full, top)]
            + [estimated(rk.Kendall().exp(), top(201))],
        ),
        (
            "closed form up to 200 items, else estimated",
            [*(exact(k, ties(198)) for k in KENDALL_FUNCTIONS), estimated(rk.Kendall().exp(), ties(201))],
        ),
        ("estimated", [estimated(rk.Kendall().exp(), free(20))]),
    ],
    "exponential Hamming": [
        ("closed form", [exact(HAMMING, X(100)) for X in (full, top)]),
        ("closed form", [exact(HAMMING, ties(100))]),
        (
            "closed form without ties up to about 40 items, else estimated",
            [exact(HAMMING, free(40)), estimated(HAMMING, free_ties(40)), estimated(HAMMING, free(100))],
        ),
    ],
    "exponential Cayley": [
        ("closed form", [exact(CAYLEY, X(100)) for X in (full, top)]),
        (
            "closed form for one tie per ranking; #P-hard in general, estimated",
            [exact(CAYLEY, one_tie(100)), estimated(CAYLEY, ties(21))],
        ),
        ("estimated", [estimated(CAYLEY, free(20))]),
    ],
    "exponential footrule": [
        (
            "closed form up to about 100 items, for short lists beyond",
            [exact(FOOTRULE, X(100)) for X in (full, top)]
            + [exact(FOOTRULE, top(500, 5)), estimated(FOOTRULE, top(300))],
        ),
        (
            "closed form against full rankings, else estimated",
            [exact(FOOTRULE, ties(21), full(21)), estimated(FOOTRULE, ties(21))],
        ),
        ("estimated", [estimated(FOOTRULE, free(20))]),
    ],
    "exponential Spearman": [
        (
            "closed form up to 22 unlisted items, for small nu beyond",
            [exact(SPEARMAN, X(100)) for X in (full, top)]
            + [cache(lambda: np.isfinite(SHARP_SPEARMAN.gram(top(22, 2), method="exact")).all())]
            + [estimated(SHARP_SPEARMAN, top(25, 2))],
        ),
        (
            "closed form against full rankings, else estimated",
            [exact(SPEARMAN, ties(21), full(21)), estimated(SPEARMAN, ties(21))],
        ),
        ("estimated", [estimated(SPEARMAN, free(20))]),
    ],
    "diffusion, all transpositions": [
        (
            "closed form: full up to 36 items, top-k up to 24",
            [
                exact(ALL_SWAPS, full(36)),
                exact(ALL_SWAPS, top(24)),
                estimated(ALL_SWAPS, top(25)),
                refused(ALL_SWAPS, full(37)),
            ],
        ),
        ("enumeration of few completions, else estimated", [exact(ALL_SWAPS, ties(9)), estimated(ALL_SWAPS, ties(21))]),
        ("estimated up to 36 items", [estimated(ALL_SWAPS, free(36)), refused(ALL_SWAPS, free(37))]),
    ],
    "diffusion, adjacent transpositions": [
        (
            "closed form: full up to 9 items, top-k with few completions",
            [
                exact(NEIGHBOURS, full(9)),
                refused(NEIGHBOURS, full(10)),
                exact(NEIGHBOURS, top(20, 3)),
                refused(NEIGHBOURS, top(20)),
            ],
        ),
        ("enumeration of few completions, else refused", [exact(NEIGHBOURS, ties(9)), refused(NEIGHBOURS, ties(18))]),
        ("estimated up to 9 items", [estimated(NEIGHBOURS, free(9)), refused(NEIGHBOURS, free(10))]),
    ],
}


def test_what_is_exact_is_what_the_table_says():
    rows = [[name, *(claim for claim, _ in cells)] for name, cells in EXACT.items()]
    assert table("docs/guide/methods.md", "kernel") == rows


@pytest.mark.parametrize("name", EXACT)
def test_what_is_exact(name):
    for claim, checks in EXACT[name]:
        for k, check in enumerate(checks):
            assert check(), (claim, k)


# ---------------------------------------------------------------------- distances and kernels between full rankings


def everything(n):
    return np.array(list(itertools.permutations(range(n))))


def lowest_eigenvalue(distance, n):
    """The least eigenvalue of -d between all rankings, centred: not below 0 if d is of negative type."""
    rows = everything(n).tolist()
    d = np.array([[distance(x, y) for y in rows] for x in rows], dtype=float)
    centred = d - d.mean(axis=0) - d.mean(axis=1)[:, None] + d.mean()
    return np.linalg.eigvalsh(-centred)[0]


def is_metric(distance, n=4):
    rows = everything(n).tolist()
    d = np.array([[distance(x, y) for y in rows] for x in rows], dtype=float)
    return bool((d[:, None] <= d[:, :, None] + d[None] + 1e-12).all())


DISTANCES = {
    "Kendall": [naive.kendall],
    "Spearman": [naive.spearman],
    "footrule": [naive.footrule],
    "Hamming": [naive.hamming],
    "Cayley": [naive.cayley],
    "$l_p$": [naive.lp(1), naive.lp(1.5), naive.lp(2), naive.lp(10)],
    "$l_\\infty$": [naive.linf],
}


def test_distances_are_what_their_table_says():
    rows = {row[0]: row for row in table("docs/theory/kernels.md", "name")}
    assert len(rows) == len(DISTANCES)
    for start, distances in DISTANCES.items():
        (row,) = [row for name, row in rows.items() if name.startswith(start)]
        negative_type = [min(lowest_eigenvalue(distance, n) for n in (3, 4, 5)) > -1e-9 for distance in distances]
        wanted = [True, True, True, False] if row[2] == "for $p \\le 2$" else [row[2] == "yes"]
        assert negative_type == wanted, start
        assert all(is_metric(distance) for distance in distances) == (row[3] == "yes"), start


CHARACTERISTIC = {
    "yes": [rk.Mallows(0.4), rk.Diffusion(0.2), rk.Kendall() + rk.Mallows(0.4)],
    "no": [rk.Kendall(), rk.Hamming(), rk.Spearman(), rk.Polynomial(2), *induced(4)],
}
CHARACTERISTIC["yes"] += [rk.Exponential(name, 0.2) for name in ("hamming", "footrule", "spearman")]
CHARACTERISTIC["no"] += [rk.WeightedKendall.additive("hyperbolic"), rk.WeightedKendall.top_k(2)]


@pytest.mark.parametrize("answer", CHARACTERISTIC)
def test_which_kernels_are_characteristic(answer):
    """Differences of distributions sum to zero: there is none that a characteristic kernel does not see."""
    rows = everything(4)
    for kernel in CHARACTERISTIC[answer]:
        K = kernel.matrix(rows, rows)
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        sees_all = np.linalg.matrix_rank(centred, tol=1e-9) == len(rows) - 1
        assert sees_all == (answer == "yes"), kernel
        assert sees_all == (kernel.facts(4).max_dimension >= len(rows)), kernel


def weighted_kendall_sees_everything_on_three_items_only():
    kernel = rk.WeightedKendall.additive("hyperbolic")
    return [np.linalg.matrix_rank(kernel.matrix(everything(n), everything(n))) for n in (3, 4)] == [6, 10]


def overlap_table(depths, weights):
    """Sums of weights / depth over the depths that hold both places."""
    return lambda p, q, n: sum(w / d for d, w in zip(depths(n), weights(n), strict=True) if d > max(p, q))


# kernel: one of the library, and its table of two places.
PLACES = {
    "Hamming": (rk.Hamming().matrix, lambda p, q, n: p == q),
    "Spearman": (rk.Spearman().matrix, lambda p, q, n: (p - (n - 1) / 2) * (q - (n - 1) / 2) * 12 / (n**3 - n)),
    "$\\frac{n(n-1)}2$ minus half the footrule distance": (
        lambda X, Y: 10 - rk.distances.footrule(X, Y) / 2,
        lambda p, q, n: min(p, q),
    ),
    "discounted gain": (rk.DCG().matrix, lambda p, q, n: 1 / math.log2(p + 2) / math.log2(q + 2)),
    "average overlap up to depth $D$": (
        rk.AverageOverlap(3).matrix,
        overlap_table(lambda n: range(1, 4), lambda n: [1 / 3] * 3),
    ),
    "rank-biased overlap": (
        rk.RankBiasedOverlap(0.7).matrix,
        lambda p, q, n: sum(0.3 * 0.7 ** (d - 1) / d for d in range(max(p, q) + 1, n + 1)) + 0.7**n / n,
    ),
}


def test_positional_kernels_have_the_tables_of_their_places():
    names = [re.sub(r" \(\[.*?\]\(.*?\)\)", "", row[0]) for row in table("docs/theory/kernels.md", "kernel")]
    assert names == list(PLACES)
    rows = everything(5)[::17]
    for name, (matrix, of_places) in PLACES.items():
        G = np.array([[of_places(p, q, 5) for q in range(5)] for p in range(5)], dtype=float)
        expected = G[rows[:, None], rows[None]].sum(axis=2)
        np.testing.assert_allclose(matrix(rows, rows), expected, rtol=1e-12, atol=1e-12, err_msg=name)


WAYS_BACK = {
    "Kendall": [rk.Kendall()],
    "Spearman": [rk.Spearman()],
    "Hamming, rank-biased overlap, all positional kernels, sums of these and Spearman": [
        rk.Hamming(),
        rk.RankBiasedOverlap(0.8),
        rk.Hamming() + rk.Spearman(),
    ],
}


def test_the_way_back_from_a_mean_embedding_is_the_nearest_ranking():
    assert [row[0] for row in table("docs/theory/tasks.md", "kernel")] == list(WAYS_BACK)
    voters, every = rk.datasets.uniform(5, 4, rng=3).top(2, unlisted="free"), rk.Rankings(everything(4))
    for kernel in itertools.chain(*WAYS_BACK.values()):
        nearness = kernel.gram(every, voters).mean(axis=1)
        found = rk.kernel_consensus(voters, kernel).ranking
        assert kernel.gram(found, voters).mean() == pytest.approx(nearness.max(), rel=1e-12), kernel


def gains(coupling, kernels, but=()):
    """How many times as many independent draws would do: the committed study, draws without exact moments."""
    rows = committed("couplings")
    found = {
        (row["case"], row["kernel"], row["nu times median"]): row["gain"]
        for row in rows
        if row["coupling"] == coupling
        and row["kernel"] in kernels
        and row["control variates"] == 0
        and row["case"] not in but
    }
    assert found
    return found


SMOOTH = ("Mallows", "exp. Spearman", "exp. footrule")
OTHERS = ("antithetic", "orthogonal", "herding")
GOOD_FOR = {
    '`"iid"`': (
        "Cayley: no other coupling always has a smaller variance",
        lambda: all(min(gains(name, ["exp. Cayley"]).values()) <= 1.02 for name in OTHERS),
    ),
    '`"antithetic"`': ("Mallows, Spearman, footrule", lambda: min(gains("antithetic", SMOOTH).values()) > 5),
    '`"orthogonal"`': (
        "Mallows, Spearman, footrule: a smaller variance than antithetic draws, from 16 draws on",
        lambda: all(gain > gains("antithetic", SMOOTH)[cell] for cell, gain in gains("orthogonal", SMOOTH).items()),
    ),
    '`"herding"`': (
        "rankings without free items, only if kernel evaluations are expensive, because selecting the draws is slow",
        lambda: all(gain > gains("orthogonal", SMOOTH)[cell] for cell, gain in gains("herding", SMOOTH).items()),
    ),
}


def test_couplings_are_good_for_what_their_table_says():
    rows = {row[0]: row[-1] for row in table("docs/theory/estimation.md", "`coupling`")}
    assert rows == {name: claim for name, (claim, _) in GOOD_FOR.items()}
    assert [name for name, (_, check) in GOOD_FOR.items() if not check()] == []


def predicts_from_partial_labels():
    covariates, labels = np.arange(40.0)[:, None], np.tile([0, 1, 2], (40, 1))
    labels[1], labels[2], labels[3] = (0, 1, 1), (0, 1, -1), (0, -1, -1)
    predicted = rk.KernelRankingRegressor().fit(covariates, labels).predict(covariates)
    return (np.asarray(predicted) == [0, 1, 2]).all()


def draws_voters():
    models = [
        partial(rk.datasets.mallows, center=range(3), theta=0.5),
        partial(rk.datasets.plackett_luce, weights=[1.0, 2.0, 3.0]),
    ]
    return [len(model(5)) for model in models] + [len(rk.datasets.mixture(5, models).rankings)] == [5, 5, 5]


BESIDE_OTHERS = {
    "kernels of partial rankings": (
        "all kernels of this package",
        lambda: len(table("docs/guide/methods.md", "kernel")) == len(EXACT),
    ),
    "estimates with a standard error": (
        "yes",
        lambda: (MALLOWS.estimate(top(6), method=rk.MonteCarlo(8)).stderr > 0).all(),
    ),
    "two-sample, independence and trend tests": (
        "on rankings",
        lambda: all(map(callable, (rk.mmd_test, rk.k_sample_test, rk.hsic_test, rk.trend_test))),
    ),
    "clustering, kernel PCA, classification": (
        "on rankings, through scikit-learn",
        lambda: all(map(callable, (rk.linkage, rk.KernelKMeans, rk.KernelMap, rk.SklearnKernel))),
    ),
    "prediction of rankings from covariates": (
        "trained on full, top-k, tied and incomplete rankings",
        predicts_from_partial_labels,
    ),
    "voting rules, proportional representation": ("Borda, Kemeny", lambda: callable(rk.borda) and callable(rk.kemeny)),
    "models to simulate from": ("Mallows, Plackett-Luce, mixtures", draws_voters),
    "file formats": (
        "PrefLib, BLT, cast vote records, tables",
        lambda: {"PrefLib", "BLT", "cast vote record", "table"} <= set(FORMATS),
    ),
    "preference domains (single-peaked ...)": ("", lambda: not any("peaked" in name for name in rk.__all__)),
}


def test_what_is_said_of_this_package_beside_others():
    """What others can do is theirs to change; what is said of this one is checked."""
    rows = {row[0]: row[1] for row in table("docs/guide/comparison.md", "| rankernel")}
    assert rows == {name: claim for name, (claim, _) in BESIDE_OTHERS.items()}
    assert [name for name, (_, check) in BESIDE_OTHERS.items() if not check()] == []


# ---------------------------------------------------------------------- sentences


@lru_cache(maxsize=1)
def gaps_of_equal_ballots():
    """Two equal ballots share their draws: biased like a ballot with itself; two different ones are not."""
    rows = rk.Rankings([(0, 1, 1, 1), (0, 1, 1, 1), (1, 1, 1, 0)])
    runs = [rk.Mallows(0.5).gram(rows, method=rk.MonteCarlo(8, "iid", 0, rng=seed))[0, 1:] for seed in range(100)]
    return (np.mean(runs, axis=0) - rk.Mallows(0.5).gram(rows)[0, 1:]) / (np.std(runs, axis=0) / np.sqrt(len(runs)))


def unbiased_between_different_ballots():
    equal, other = gaps_of_equal_ballots()
    return abs(other) < 4 < equal


def linear_extensions_are_uniform_either_way():
    """Of 0 > 1, 2 > 1, 2 > 3: five linear extensions, which a chi-squared test tells from other chances."""
    before = np.zeros((4, 4), dtype=bool)
    before[[0, 2, 2], [1, 1, 3]] = True
    for max_down_sets in (1000, 0):  # on the lattice, and by coupling from the past
        draws = draw_extensions(before, 4000, rng=1, max_down_sets=max_down_sets)
        seen = np.unique(draws, axis=0, return_counts=True)[1]
        if len(seen) != 5 or chisquare(seen).pvalue < 1e-3:
            return False
    return True


def behind(share, method):
    """The files on which a method has a larger tau than the regression."""
    rows = [row for row in committed("label_ranking") if row["missing"] == share]
    return [row["file"] for row in rows if row[method] > row["regression"]]


def the_default_prior_is_ahead():
    rows = committed("prior")
    noisy = [row["noise"] for row in rows if row["prior 30"] <= row["prior inf"]]
    return all(row["prior 30"] > row["items dropped"] for row in rows) and len(rows) == 9 and noisy == [2.0, 2.0]


def tolerances(tol, number):
    """What each estimator took to reach a tolerance: by kernel and estimator."""
    rows = [row for row in committed("tolerance") if row["error at most"] == tol]
    return {(row["case"].split(",")[0], row["estimator"].split(", ")[-1]): row[number] for row in rows}


def moments_save_evaluations():
    found = tolerances(0.003, "evaluations of a pair")
    saved = [min(found[name, way] for way in ("independent", "antithetic")) for name in ("exp. footrule", "Mallows")]
    parts = [found["exp. footrule", "rankernel"] / saved[0], found["Mallows", "rankernel"] / saved[1]]
    seconds = tolerances(0.003, "seconds")
    quicker = [
        seconds[name, "rankernel"] < min(seconds[name, way] for way in ("independent", "antithetic")) / 2
        for name in ("exp. footrule", "Mallows")
    ]
    return 0.08 < parts[0] < 0.12 and parts[1] < 0.05 and all(quicker)


def the_first_draws_are_enough():
    draws = tolerances(0.01, "draws")
    more = {cell for cell, number in draws.items() if number > 64}
    return more == {("Mallows", "independent"), ("exp. footrule", "independent")} | {
        cell for cell in draws if cell[0] == "exp. Cayley"
    }


@pytest.mark.parametrize("page", pages.PAGES)
def test_numbers_of_the_pages_are_those_of_the_files(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text == pages.updated(page), "python -m benchmarks.pages writes the numbers"


def test_other_numbers_are_replaced_and_missing_sentences_are_errors():
    text = "It takes 0.6 s, on\n1,024 machines, in 5% of cases."
    assert pages.with_numbers(text, "takes {} s, on {} machines, in {} of", ["12", "2", "7.5%"]) == (
        "It takes 12 s, on\n2 machines, in 7.5% of cases."
    )
    assert pages.with_table("a\n| h |\n|---|\n| 1 |\n| 2 |\n\nb\n", "| h |", [["3"]]) == "a\n| h |\n|---|\n| 3 |\n\nb\n"
    with pytest.raises(ValueError, match="0 sentences"):
        pages.with_numbers(text, "takes {} minutes", ["1"])


def test_numbers_of_the_reproduction():
    """The summary repeats numbers of the tables that the experiments wrote."""
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    details = (ROOT / "docs/reproduction/README.md").read_text(encoding="utf-8")
    summary = page[page.index("| experiment") : page.index("The [results]")]
    numbers = {
        *("0.83", "0.14", "0.59", "0.42", "2.11 [1.81, 2.52]", "1.03 [0.95, 1.11]", "1.23", "5.10", "15.1", "0.55"),
        *("0.68", "0.69", "0.10", "-0.207", "-0.249", "-0.262", "-0.222", "-0.256", "-0.269", "410", "0.365", "0.391"),
    }
    assert [text for text in numbers if text.rstrip("0") not in summary or text not in details] == []


SENTENCES = [
    (
        "docs/benchmarks/appendix.md",
        "about a tenth (footrule) and less than a twentieth (Mallows)",
        moments_save_evaluations,
    ),
    (
        "docs/benchmarks/appendix.md",
        "For an error of 0.01 the initial 64 draws are sufficient except for",
        the_first_draws_are_enough,
    ),
    (
        "docs/benchmarks/appendix.md",
        "It is ahead of neighbours, of the tree and of the three regressions of Korba et al. on every file",
        lambda: (
            not any(
                [behind(share, method) for share in (0.0, 0.3, 0.6) for method in ("neighbours", "tree")]
                + [behind(0.0, f"Korba, {name}") for name in ("Kemeny", "Hamming", "Lehmer")]
            )
        ),
    ),
    ("docs/benchmarks/appendix.md", "There it is ahead of dropped items in all nine cells", the_default_prior_is_ahead),
    ("docs/guide/methods.md", "Between different rankings estimates are unbiased", unbiased_between_different_ballots),
    ("docs/theory/estimation.md", "unbiased between different rankings", unbiased_between_different_ballots),
    (
        "docs/theory/rankings.md",
        "otherwise by coupling from the past",
        linear_extensions_are_uniform_either_way,
    ),
    ("docs/theory/closed_forms.md", "exact up to 22 unlisted items", EXACT["exponential Spearman"][0][1][2]),
    (
        "docs/theory/kernels.md",
        "weighted Kendall from four items on",
        weighted_kendall_sees_everything_on_three_items_only,
    ),
]


@pytest.mark.parametrize(("path", "sentence", "check"), SENTENCES, ids=[sentence for _, sentence, _ in SENTENCES])
def test_sentences(path, sentence, check):
    text = re.sub(r"\s+", " ", (ROOT / path).read_text(encoding="utf-8"))
    assert sentence in text
    assert check()


def test_no_sampler_is_named_that_is_not_there():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        if page.name != "bibliography.md":
            assert "Bubley" not in page.read_text(encoding="utf-8"), page


def test_kernels_not_known_to_be_positive_are_called_so():
    with pytest.warns(rk.IndefiniteKernelWarning, match="is not known to be positive semi-definite"):
        rk.Exponential(lp(3), 0.1).gram(everything(3))


# ---------------------------------------------------------------------- groups where there are any


def test_false_positive_rate_of_clusters():
    rows = json.loads((ROOT / "docs/benchmarks/groups/groups.json").read_text(encoding="utf-8"))["rows"]
    without = [row for row in rows if row["groups"] == "none"]
    assert {row["items"] for row in without if "theta 2" in row["ballots"]} >= {5, 6, 8}
    assert {row["items"] for row in without if "theta 1.5" in row["ballots"]} >= {5, 6, 8}
    totals = [sum(number for name, number in row.items() if name.startswith("found")) for row in without]
    wrong = [number - row["found none"] for number, row in zip(totals, without, strict=True)]
    assert max(errors / number for errors, number in zip(wrong, totals, strict=True)) <= 1 / 20
