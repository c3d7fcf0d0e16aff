"""All public functions with preferences: their results, or the error they raise."""

import itertools

import all_tests
import naive
import numpy as np
import pytest
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import rankernel as rk
from rankernel import Preferences, RankingError, Rankings
from rankernel.stats.mmd import mmd2_streamed as streamed

ITEMS = ("a", "b", "c", "d")
PAIRS = [
    [("a", "b"), ("c", "d")],
    [("b", "a"), ("c", "d")],
    [("d", "a"), ("b", "c")],
    [("a", "b"), ("a", "c")],  # a ranking
    [("a", "d"), ("c", "b")],
    [("d", "c"), ("b", "a")],
    [("a", "c"), ("b", "d"), ("c", "a")],  # a cycle
]
COUNTS = [2, 1, 1, 3, 1, 2, 1]
PREFS = Preferences.from_pairs(PAIRS, ITEMS, counts=COUNTS)
X, Y = PREFS[:4], PREFS[3:]
SINGLE = Preferences.from_pairs(PAIRS * 2, ITEMS)  # one voter each, for estimators, which see no counts
LABELS = np.array([0, 1] * len(PAIRS))
GROUPS = list("xyzyxxz") + list("zzyxyxz")
KERNEL = rk.Mallows(0.2)


def extensions(pairs):
    """All linear extensions of a user's pairs as rank vectors; contradicting pairs are ignored."""
    contradicting = {frozenset(pair) for pair in pairs if pair[::-1] in pairs}
    sane = [(ITEMS.index(x), ITEMS.index(y)) for x, y in pairs if frozenset((x, y)) not in contradicting]
    orders = itertools.permutations(range(len(ITEMS)))
    return [ranks for ranks in orders if all(ranks[x] < ranks[y] for x, y in sane)]


EXTENSIONS = [extensions(pairs) for pairs in PAIRS]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def naive_gram(kernel):
    return np.array([[mean(kernel(x, y) for x in left for y in right) for right in EXTENSIONS] for left in EXTENSIONS])


GRAM = naive_gram(naive.mallows(0.2))
TWICE = np.tile(GRAM, (2, 2))
SHARES = np.array(
    [
        [
            sum(
                count * mean((r[x] < r[y]) + (x == y) / 2 for r in rankings)
                for count, rankings in zip(COUNTS, EXTENSIONS, strict=True)
            )
            / sum(COUNTS)
            for y in range(4)
        ]
        for x in range(4)
    ]
)


def unbiased_mmd2(gram, m, n):
    a, b = slice(0, m), slice(m, m + n)
    within = [(gram[s, s].sum() - gram[s, s].trace()) / (k * (k - 1)) for s, k in ((a, m), (b, n))]
    return sum(within) - 2 * gram[a, b].mean()


def mmd2_of_voters():
    rows = [*range(4), *range(3, 7)]
    sizes = [COUNTS[row] for row in rows]
    voters = np.repeat(rows, sizes)
    return unbiased_mmd2(GRAM[np.ix_(voters, voters)], sum(sizes[:4]), sum(sizes[4:]))


def costs(shares):
    """The cost of every full ranking, from the shares."""
    return {
        order: sum(COUNTS) * sum(shares[y, x] for x, y in itertools.combinations(order, 2))
        for order in itertools.permutations(range(4))
    }


def close(value, wanted):
    np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------- results


def gram():
    close(KERNEL.gram(PREFS), GRAM)
    close(KERNEL.plan(PREFS).gram(), GRAM)


def sums():
    voters = np.repeat(range(7), COUNTS)
    close(PREFS.counts @ KERNEL.plan(PREFS).times(PREFS.counts), GRAM[np.ix_(voters, voters)].sum())


def shares():
    close(rk.pairwise_preferences(PREFS), SHARES)


def borda():
    found = rk.borda(PREFS)
    places = SHARES.sum(axis=0)  # how many items stand before each, and itself one half
    assert np.argsort(places).tolist() == np.argsort(found.ranking.ranks[0], kind="stable").tolist()


def kemeny():
    found = rk.kemeny(PREFS)
    assert found.exact
    close(found.cost, min(costs(SHARES).values()))


def bradley_terry():
    found = rk.bradley_terry(PREFS, prior=0.25)
    wins = (
        sum(count * np.array(before) for count, before in zip(COUNTS, PREFS.before.astype(float), strict=True)) + 0.25
    )
    games = wins + wins.T
    np.fill_diagonal(wins, 0)
    np.fill_diagonal(games, 0)
    close((games * found.probabilities()).sum(axis=1), wins.sum(axis=1))  # as many wins as the model expects


def leaderboard():
    found = rk.leaderboard(PREFS, n_resamples=20)
    expected = rk.pairwise_preferences(PREFS).sum(axis=1) - 0.5
    close(np.sort(found.scores), np.sort(expected))


def cluster_consensus():
    found = rk.cluster_consensus(PREFS, [0, 0, 0, 0, 1, 1, 1])
    close(found[0].cost, rk.borda(PREFS[:4]).cost)


def nearest_rankings(kernel):
    """Return the full rankings nearest to the mean of all voters, and the square of their distance."""
    among = naive_gram(kernel)
    weights = np.array(COUNTS) / sum(COUNTS)
    distances = {
        full: kernel(full, full)
        - 2 * sum(w * mean(kernel(full, r) for r in rows) for w, rows in zip(weights, EXTENSIONS, strict=True))
        + weights @ among @ weights
        for full in itertools.permutations(range(len(ITEMS)))
    }
    least = min(distances.values())
    return [full for full, value in distances.items() if value <= least + 1e-12], least


def kernel_consensus():
    for kernel, oracle in (
        (rk.Kendall(), naive.kendall_kernel),
        (rk.Spearman(), lambda x, y: naive.spearman_kernel(x, y) / naive.spearman_kernel(x, x)),
        (rk.RankBiasedOverlap(0.6), naive.rank_biased_overlap(0.6)),
    ):
        found, (nearest, distance2) = rk.kernel_consensus(PREFS, kernel), nearest_rankings(oracle)
        assert tuple(found.ranking.ranks[0].tolist()) in nearest
        close(found.cost, distance2)


def regressor():
    """Preferences as labels: kernel ridge regression of the shares of pairs; and as covariates."""
    numbers = np.arange(7.0)[:, None]
    labels = Preferences.from_pairs(PAIRS, ITEMS)
    model = rk.KernelRankingRegressor(kernel="linear", alpha=0.5, prior=np.inf).fit(numbers, labels)
    shares = np.array([[[mean(r[x] < r[y] for r in rows) for y in range(4)] for x in range(4)] for rows in EXTENSIONS])
    centred = shares - shares.mean(axis=0)
    wanted = shares.mean(axis=0) + np.einsum("i,ixy->xy", numbers[:, 0], centred) / ((numbers**2).sum() + 0.5) * 2.0
    off = ~np.eye(4, dtype=bool)
    close(model.predict_scores([[2.0]])[0][off], wanted[off])
    assert model.predict(numbers).is_full()
    from_preferences = rk.KernelRankingRegressor(kernel=KERNEL).fit(SINGLE, rk.concat([labels, labels]))
    assert len(from_preferences.predict(SINGLE)) == len(SINGLE)


def positional():
    for kernel, oracle in (
        (rk.RankBiasedOverlap(0.6), naive.rank_biased_overlap(0.6)),
        (rk.AverageOverlap(3), naive.average_overlap(3)),
        (rk.Positional(np.diag([3.0, 2.0, 1.0, 0.0])), naive.positional(lambda p, q: (3 - p) * (p == q))),
    ):
        close(kernel.gram(PREFS), naive_gram(oracle))
        features = rk.MeanFeatures(kernel).fit_transform(PREFS)
        close(features @ features.T, naive_gram(oracle))


def mmd_test():
    close(rk.mmd_test(X, Y, KERNEL, n_permutations=20).statistic, mmd2_of_voters())


def mmd_aggregated_test():
    result = rk.mmd_aggregated_test(X, Y, [KERNEL, rk.Mallows(0.7)], n_permutations=20)
    assert 0 < result.pvalue <= 1


def mmd2_streamed():
    close(streamed(X, Y, KERNEL), mmd2_of_voters())


def hsic_test():
    by_label = rk.hsic_test(SINGLE, LABELS, KERNEL, n_permutations=20)
    both = rk.hsic_test(SINGLE, SINGLE, KERNEL, n_permutations=20)
    assert both.statistic > by_label.statistic


def k_sample_test():
    result = rk.k_sample_test(SINGLE, GROUPS, KERNEL, n_permutations=20)
    close(result.statistic, rk.k_sample_test(SINGLE, GROUPS, precomputed=TWICE, n_permutations=20).statistic)
    pairs = result.pairwise()
    assert list(zip(pairs.first, pairs.second, strict=True)) == [("x", "y"), ("x", "z"), ("y", "z")]


def differences():
    found = rk.k_sample_test(SINGLE, GROUPS, KERNEL, n_permutations=20).differences()
    users = EXTENSIONS * 2
    for pair in found.pairs:
        x, y = ITEMS.index(pair.first), ITEMS.index(pair.second)
        rows = [[all(r[x] < r[y] for r in users[i]) for i in range(14) if GROUPS[i] == g] for g in "xyz"]
        close(pair.shares, [mean(row) for row in rows])
    for item in found.items:
        x = ITEMS.index(item.item)
        rows = [[1 + mean(r[x] for r in users[i]) for i in range(14) if GROUPS[i] == g] for g in "xyz"]
        close(item.mean_ranks, [mean(row) for row in rows])


def paired_test():
    among = TWICE[:12, :12]
    change = among[:6, :6] - among[:6, 6:] - among[6:, :6] + among[6:, 6:]
    wanted = (change.sum() - change.trace()) / (6 * 5)
    close(rk.paired_test(SINGLE[:6], SINGLE[6:12], KERNEL, n_permutations=20).statistic, wanted)


def trend_test():
    time = np.arange(14.0)
    units = (time - time.mean()) / time.std()
    close(
        rk.trend_test(SINGLE, time, KERNEL, n_permutations=20).statistic, unbiased_hsic(TWICE, np.outer(units, units))
    )


def unbiased_hsic(left, right):
    """By its definition: over all four different rows."""
    m, total = len(left), 0.0
    for i, j, q, r in itertools.permutations(range(m), 4):
        total += left[i, j] * (right[i, j] + right[q, r] - 2 * right[i, q])
    return total / (m * (m - 1) * (m - 2) * (m - 3))


def change_point_test():
    stream = Preferences.from_pairs([PAIRS[0]] * 12 + [PAIRS[5]] * 9, ITEMS)
    assert rk.change_point_test(stream, KERNEL, n_permutations=20).changes == (12,)


def agreement():
    rows = Preferences.from_pairs(PAIRS, ITEMS)
    K, n = KERNEL.gram(rows), len(rows)
    nothing = KERNEL.gram(Preferences.from_pairs([[]], ITEMS), rows)[0]
    pairs = (K.sum() - np.trace(K)) / (n * (n - 1))
    expected = (pairs - nothing.mean()) / (np.trace(K) / n - nothing.mean())
    assert rk.agreement(rows, KERNEL).agreement == pytest.approx(expected, abs=1e-12)


def outlier_test():
    many = Preferences.from_pairs([PAIRS[0]] * 120 + [PAIRS[5]], ITEMS)
    found = rk.outlier_test(many, kernel=KERNEL)
    assert found.pvalues[-1] == found.pvalues.min() < found.pvalues[0]


def power():
    pilot = rk.k_sample_test(
        Preferences.from_pairs([PAIRS[0], PAIRS[5]] * 10, ITEMS), [0, 1] * 10, KERNEL, n_permutations=20
    )
    assert rk.power(pilot, 20, n_simulations=20).power == 1
    assert max(rk.sample_size(pilot, n_simulations=20).n_voters) <= 10


def distances():
    squares = np.add.outer(np.diag(GRAM), np.diag(GRAM)) - 2 * GRAM
    close(rk.kernel_distances(PREFS, KERNEL) ** 2, squares - np.diag(np.diag(squares)))


def linkage():
    from scipy.cluster.hierarchy import linkage as scipy_linkage
    from scipy.spatial.distance import squareform

    wanted = scipy_linkage(squareform(rk.kernel_distances(SINGLE, KERNEL), checks=False), "average")
    close(np.sort(rk.linkage(SINGLE, KERNEL)[:, 2]), np.sort(wanted[:, 2]))


def partitions():
    for estimator in (rk.KernelKMeans(2, kernel=KERNEL), rk.KernelKMedoids(2, kernel=KERNEL)):
        labels = estimator.fit_predict(SINGLE)
        assert (labels[:7] == labels[7:]).all()
        assert (estimator.predict(np.asarray(SINGLE)) == labels).all()


def kernel_map():
    wanted = KernelPCA(2, kernel="precomputed").fit_transform(TWICE)
    close(np.abs(rk.KernelMap(kernel=KERNEL).fit_transform(SINGLE)), np.abs(wanted))


def nystrom():
    features = rk.NystromFeatures(7, kernel=KERNEL).fit_transform(SINGLE)
    np.testing.assert_allclose(features @ features.T, TWICE, atol=1e-8)


def mean_features():
    features = rk.MeanFeatures(rk.Kendall()).fit_transform(PREFS)
    close(features @ features.T, naive_gram(naive.kendall_kernel))


def sklearn_kernel():
    wanted = SVC(kernel="precomputed").fit(TWICE, LABELS).decision_function(TWICE)
    for kernel in (rk.SklearnKernel(KERNEL), KERNEL):
        close(SVC(kernel=kernel).fit(SINGLE, LABELS).decision_function(SINGLE), wanted)
    process = GaussianProcessClassifier(rk.SklearnKernel(KERNEL)).fit(SINGLE, LABELS)
    assert process.predict_proba(SINGLE).shape == (14, 2)
    pipe = make_pipeline(rk.NystromFeatures(5, kernel=KERNEL), LinearSVC())
    assert cross_val_predict(pipe, SINGLE, LABELS, cv=2).shape == (14,)


def grid_search():
    svc = SVC(kernel=rk.SklearnKernel(KERNEL))
    assert GridSearchCV(svc, {"kernel__nu": [0.1, 1.0]}, cv=2).fit(SINGLE, LABELS).best_score_ > 0


def median_distance():
    assert 0 < rk.median_distance(SINGLE, rk.distances.kendall) < 6


def monte_carlo():
    estimates = [KERNEL.gram(PREFS[:2], method=rk.MonteCarlo(4, rng=seed))[0, 1] for seed in range(100)]
    assert abs(np.mean(estimates) - GRAM[0, 1]) < 5 * np.std(estimates) / np.sqrt(100)


def herd():
    allowed = set(EXTENSIONS[0])
    for chosen in (rk.herd(PREFS[0], KERNEL, 6),):
        assert {tuple(row) for row in chosen.ranks.tolist()} <= allowed


def concat():
    both = rk.concat([PREFS, Rankings.from_orders([ITEMS])])
    assert both.n_users == 8
    assert both[7].to_rankings().is_full()


def report():
    page = rk.report(SINGLE, groups=LABELS.astype(str), n_clusters=2).html
    assert "a &gt; b, c &gt; d" in page
    assert '"pairs":' in page


def picture():
    assert rk.plots.pairwise_preferences(PREFS).get_title() is not None


def pairs_of_preferences():
    assert Preferences.from_pairs(PREFS.to_pairs(), ITEMS, counts=PREFS.counts, users=PREFS.users) == PREFS


def gpy():
    from rankernel.learn.gpy import RankingKern

    array = np.asarray(SINGLE).astype(float)
    close(RankingKern(array.shape[1], KERNEL, method="exact").K(array), TWICE)


def gpytorch():
    import torch

    from rankernel.learn.gpytorch import RankingKernel

    array = torch.tensor(np.asarray(SINGLE)).double()
    gram = RankingKernel(KERNEL)(array).to_dense().detach().numpy()
    np.testing.assert_allclose(gram, TWICE, rtol=1e-6)  # nu is stored in single precision


def dask():
    from rankernel.learn import dask

    close(dask.gram(KERNEL.plan(PREFS), chunks=3).compute(), GRAM)
    close(dask.mmd2(X, Y, KERNEL), mmd2_of_voters())


def mixture():
    """Preferences that leave much open have a likelihood, as rankings have."""
    model = rk.MallowsMixture(2, n_init=2).fit(PREFS)
    assert model.predict_proba(PREFS).shape == (len(PREFS), 2)
    assert np.isfinite(model.score(PREFS))


GIVES = {
    "MallowsMixture": mixture,
    "Plan": gram,
    "Estimate": gram,
    "MonteCarlo": monte_carlo,
    "pairwise_preferences": shares,
    "borda": borda,
    "kemeny": kemeny,
    "bradley_terry": bradley_terry,
    "BradleyTerryResult": bradley_terry,
    "Consensus": kemeny,
    "leaderboard": leaderboard,
    "Leaderboard": leaderboard,
    "Report": report,
    "Picture": report,
    "cluster_consensus": cluster_consensus,
    "kernel_consensus": kernel_consensus,
    "KernelRankingRegressor": regressor,
    "Positional": positional,
    "mmd_test": mmd_test,
    "mmd_aggregated_test": mmd_aggregated_test,
    "mmd2_streamed": mmd2_streamed,
    "hsic_test": hsic_test,
    "k_sample_test": k_sample_test,
    "stats.Differences": differences,
    "paired_test": paired_test,
    "trend_test": trend_test,
    "change_point_test": change_point_test,
    "agreement": agreement,
    "outlier_test": outlier_test,
    "power": power,
    "sample_size": power,
    "kernel_distances": distances,
    "linkage": linkage,
    "KernelKMeans": partitions,
    "KernelKMedoids": partitions,
    "KernelMap": kernel_map,
    "NystromFeatures": nystrom,
    "MeanFeatures": mean_features,
    "SklearnKernel": sklearn_kernel,
    "GridSearchCV": grid_search,
    "median_distance": median_distance,
    "herd": herd,
    "concat": concat,
    "report": report,
    "plots": picture,
    "Preferences": pairs_of_preferences,
    "frontends.gpy": gpy,
    "frontends.gpytorch": gpytorch,
    "frontends.dask": dask,
}
REFUSES = {
    "goodness_of_fit_test": (
        lambda: rk.goodness_of_fit_test(PREFS, rk.Uniform(), KERNEL),
        "compare with a sample",
    ),
    "compare_systems": (
        lambda: rk.compare_systems(PREFS, queries=["q"] * len(PREFS), systems=range(len(PREFS))),
        "partial orders",
    ),
    "SequentialMMDTest": (lambda: rk.SequentialMMDTest(KERNEL).update(PREFS, PREFS), "partial orders"),
    "antithetic": (lambda: rk.antithetic([[0, 1, 2, 3]], PREFS[0]), "only rankings are supported"),
    "project": (lambda: rk.project([[0, 1, 2, 3]], PREFS[0]), "only rankings are supported"),
    "distances": (lambda: rk.distances.kendall(PREFS, PREFS), "only rankings are supported"),
    "datasets": (lambda: rk.datasets.truncate(PREFS, 2), "only rankings are supported"),
    "write_csv": (lambda: rk.write_csv(PREFS, "never.csv"), "only rankings are supported"),
    "write_blt": (lambda: rk.write_blt(PREFS, "never.blt"), "only rankings are supported"),
    "interop": (lambda: rk.interop.to_votekit(PREFS), "only rankings are supported"),
    "write_preflib": (lambda: rk.write_preflib(PREFS, "never.soi"), "only rankings are supported"),
}


@pytest.mark.parametrize("name", GIVES)
def test_takes_preferences(name):
    if name.startswith("frontends."):
        module = name.removeprefix("frontends.")
        pytest.importorskip({"gpy": "GPy"}.get(module, module))
    GIVES[name]()


@pytest.mark.parametrize("name", REFUSES)
def test_preferences_that_are_not_rankings(name):
    call, words = REFUSES[name]
    with pytest.raises(RankingError, match=words):
        call()


NO_DATA = """
__version__ CompletionModel LogDensity MallowsModel PlackettLuce Uniform ExactnessError IndefiniteKernelWarning
MisfitWarning NotCharacteristicWarning RankingError ReadingWarning SamplingWarning InsufficientMemoryError Auto
Exact Comparisons CostWarning as_kernel Similarity similarity_from_groups
read read_blt read_comparisons read_csv read_cvr read_pairs
read_preflib Rankings
flat_clusters
"""


@pytest.mark.parametrize("name", sorted(set(all_tests.TESTS) - set(REFUSES)))
def test_hypothesis_tests_agree_on_rankings_and_preferences(name):
    rankings = rk.datasets.uniform(16, 4, rng=0).top(2)
    results = [all_tests.run(name, X, KERNEL) for X in (rankings, Preferences.from_rankings(rankings))]
    pvalues = [result.pvalues if name == "outlier_test" else result.pvalue for result in results]
    np.testing.assert_allclose(pvalues[0], pvalues[1], rtol=1e-9)


def test_all_public_names_are_tested():
    classes = {name: value for name in rk.__all__ if isinstance(value := getattr(rk, name), type)}
    kernels = {name for name, value in classes.items() if issubclass(value, rk.Kernel)}
    known = {*GIVES, *REFUSES, *NO_DATA.split(), *kernels, *all_tests.TESTS}
    assert [name for name in rk.__all__ if name not in known] == []


def test_estimated_consensus():
    """A partial order with more than 2,000,000 down-sets."""
    minimal = range(21)
    pairs = [(f"i{x}", f"top{top}") for top in range(3) for x in minimal if 5 * top <= x <= 5 * top + 10]
    large = Preferences.from_pairs([pairs, pairs[:3]])
    found = rk.borda(large)
    assert not found.exact
    assert "shares of 1 of 2 users estimated by 1,000 draws" in found.details
    nearest = rk.kernel_consensus(large, rk.Hamming())
    assert not nearest.exact
    assert np.isnan(nearest.gap)
    assert "embeddings of 1 of 2 users estimated by 1,000 draws" in nearest.details
    known = rk.pairwise_preferences(large[:1])
    better, worse = ([large.items.index(pair[side]) for pair in pairs] for side in (0, 1))
    assert (known[better, worse] == 1).all()
