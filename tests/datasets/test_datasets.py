"""Simulators against exact distributions (enumeration, chi-square tests with fixed seeds), and the bundled example."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import partial
from importlib.resources import files

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from nowhere_bay import example_csv, make_example
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.stats import chisquare
from sklearn.metrics import adjusted_rand_score

from rankernel.datasets import (
    draw_by_weight,
    draw_derangements,
    load_example,
    mallows,
    mixture,
    n_moved_weights,
    plackett_luce,
    truncate,
    uniform,
)
from rankernel.errors import RankingError
from rankernel.rankings import Rankings
from reproduction.mmd_table import two_samples

S4 = list(itertools.permutations(range(4)))
DISTANCES = {"kendall": naive.kendall, "hamming": naive.hamming, "cayley": naive.cayley}
EXACT = 1e-12

# ---------------------------------------------------------------------- oracles


def normalised(weights):
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def mallows_pmf(distance, center, theta):
    return dict(zip(S4, normalised([math.exp(-theta * DISTANCES[distance](r, center)) for r in S4]), strict=True))


def plackett_luce_pmf(weights):
    pmf = {}
    for ranks in itertools.permutations(range(len(weights))):
        order = sorted(range(len(weights)), key=ranks.__getitem__)
        left = [math.fsum(weights[a] for a in order[place:]) for place in range(len(order))]
        pmf[ranks] = math.prod(weights[a] / rest for a, rest in zip(order, left, strict=True))
    return pmf


def truncated(ranks, k, unlisted):
    """Truncate a ranking to its first k positions: buckets are kept as long as they fit."""
    kept = 0
    while 0 < sum(0 <= r <= kept for r in ranks) <= k and kept in ranks:
        kept += 1
    return tuple(r if r < kept else kept if unlisted == "last" else -1 for r in ranks)


def truncated_pmf(pmf, k):
    shorter = Counter()
    for ranks, probability in pmf.items():
        shorter[truncated(ranks, k, "last")] += probability
    return shorter


def rencontres(n):
    """Number of derangements of n, by inclusion and exclusion."""
    return sum((-1) ** i * math.factorial(n) // math.factorial(i) for i in range(n + 1))


def sphere_sizes(distance, n):
    """Number of permutations of n at each distance: Mahonian, Stirling and rencontres numbers."""
    if distance == "hamming":
        return [math.comb(n, m) * rencontres(m) for m in range(n + 1)]
    sizes = [1]
    for i in range(1, n):
        factor = [1] * (i + 1) if distance == "kendall" else [1, i]
        longer = [0] * (len(sizes) + len(factor) - 1)
        for (s, size), (f, ways) in itertools.product(enumerate(sizes), enumerate(factor)):
            longer[s + f] += size * ways
        sizes = longer
    return sizes


def distance_pmf(distance, n, theta):
    return normalised([size * math.exp(-theta * d) for d, size in enumerate(sphere_sizes(distance, n))])


def p_value(observed, pmf):
    """Chi-square p-value of observed values; values with an expected count below 5 are pooled."""
    n_draws = sum(observed.values())
    assert all(pmf.get(value, 0) > 0 for value in observed), "a value of probability zero was drawn"
    cells = [(observed[value], n_draws * probability) for value, probability in pmf.items() if probability > 0]
    rare = [cell for cell in cells if cell[1] < 5]
    cells = [cell for cell in cells if cell[1] >= 5]
    if sum(expected for _, expected in rare) >= 5:
        cells.append(tuple(map(sum, zip(*rare, strict=True))))
    seen, expected = (np.array(column, dtype=float) for column in zip(*cells, strict=True))
    return chisquare(seen, expected * seen.sum() / expected.sum()).pvalue


def counted(rankings):
    return Counter(map(tuple, rankings.ranks.tolist()))


# ---------------------------------------------------------------------- Mallows by enumeration


@pytest.mark.parametrize("distance", ["kendall", "cayley"])
@pytest.mark.parametrize("theta", [0.0, 0.7, 2.0])
def test_sampler_paths_have_mallows_weights(distance, theta, monkeypatch):
    n = 6
    paths = np.array(list(itertools.product(*(range(i + 1) for i in range(1, n)))))
    weight = np.ones(len(paths))

    def every_path(weights, n_draws, rng):
        steps = paths[:, len(weights) - 2]
        np.multiply(weight, weights[steps], out=weight)
        return steps

    monkeypatch.setattr("rankernel.datasets.draw_by_weight", every_path)
    rankings = mallows(len(paths), n, theta, distance=distance)
    assert len(set(map(tuple, rankings.ranks.tolist()))) == math.factorial(n)
    wanted = [math.exp(-theta * DISTANCES[distance](range(n), r)) for r in rankings.ranks.tolist()]
    np.testing.assert_allclose(weight, wanted, rtol=EXACT)


@pytest.mark.parametrize("theta", [0.0, 0.4, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 100])
def test_weights_of_moved_items(n, theta):
    weights = n_moved_weights(n, theta)
    q = Fraction(math.exp(-theta))
    wanted = [count * q**m for m, count in enumerate(sphere_sizes("hamming", n))]
    total = sum(wanted)
    wanted = [float(weight / total) for weight in wanted]
    # Logarithms of n! = 100! near 360 leave 1e-13 of relative precision; below 1e-300 numbers are denormal.
    np.testing.assert_allclose(weights / weights.sum(), wanted, rtol=EXACT, atol=1e-300)


def test_hamming_sphere_sizes():
    for n in range(1, 7):
        seen = Counter(naive.hamming(range(n), r) for r in itertools.permutations(range(n)))
        assert sphere_sizes("hamming", n) == [seen[m] for m in range(n + 1)]


def test_derangements_are_uniform():
    sizes = np.array([4, 0, 2, 3, 5] * 2000)
    orders = draw_derangements(sizes, 5, np.random.default_rng(1))
    moved = orders != np.arange(5)
    assert np.array_equal(moved, np.arange(5) < sizes[:, None])
    for size in (3, 4, 5):
        drawn = Counter(map(tuple, orders[sizes == size][:, :size].tolist()))
        every = [r for r in itertools.permutations(range(size)) if naive.hamming(range(size), r) == size]
        assert p_value(drawn, dict.fromkeys(every, 1 / len(every))) > 1e-3


class Grid:
    """A generator whose numbers are the midpoints of equal intervals."""

    def random(self, n):
        return (np.arange(n) + 0.5) / n


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
def test_draws_are_proportional_to_weights(weights):
    drawn = draw_by_weight(np.array(weights, dtype=float), 10 * sum(weights), Grid())
    assert np.bincount(drawn, minlength=len(weights)).tolist() == [10 * weight for weight in weights]


class Ends:
    """A generator whose numbers are the smallest and largest possible ones."""

    def random(self, n):
        return np.resize([0, 1 - 2.0**-53], n)


def test_zero_weights_are_never_drawn():
    assert draw_by_weight(np.array([0.0, 3.0, 0.1, 0.0]), 2, Ends()).tolist() == [1, 2]


# ---------------------------------------------------------------------- Mallows by chi-square tests


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("theta", [0.0, 0.5, 1.5])
@pytest.mark.parametrize("center", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_mallows_distribution(distance, theta, center):
    rankings = mallows(30_000, center, theta, distance=distance, rng=7)
    assert p_value(counted(rankings), mallows_pmf(distance, center, theta)) > 1e-3


def test_chi_square_test_has_power():
    """A slightly different theta is rejected."""
    rankings = mallows(30_000, 4, 0.5, rng=7)
    assert p_value(counted(rankings), mallows_pmf("kendall", (0, 1, 2, 3), 0.55)) < 1e-6


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(("n", "theta"), [(12, 0.3), (20, 1.0)])
def test_mallows_distances_to_center(distance, n, theta):
    center = np.random.default_rng(5).permutation(n)
    ranks = mallows(6000, center, theta, distance=distance, rng=11).ranks
    distances = np.array([DISTANCES[distance](center.tolist(), r) for r in ranks.tolist()])
    pmf = distance_pmf(distance, n, theta)
    assert p_value(Counter(distances.tolist()), dict(enumerate(pmf))) > 1e-3
    mean = math.fsum(d * p for d, p in enumerate(pmf))
    variance = math.fsum((d - mean) ** 2 * p for d, p in enumerate(pmf))
    assert abs(distances.mean() - mean) < 4 * math.sqrt(variance / len(distances))


@pytest.mark.parametrize("distance", DISTANCES)
def test_center_relabels_items(distance):
    center = [3, 1, 4, 0, 2]
    around = mallows(50, center, 0.8, distance=distance, rng=2).ranks
    assert np.array_equal(around, mallows(50, 5, 0.8, distance=distance, rng=2).ranks[:, center])


@pytest.mark.parametrize("distance", DISTANCES)
def test_large_theta_gives_center(distance):
    assert (mallows(100, [2, 0, 1], 1e4, distance=distance).ranks == [2, 0, 1]).all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_one_item_or_no_rankings(distance):
    assert mallows(3, 1, 1.0, distance=distance).ranks.tolist() == [[0], [0], [0]]
    assert mallows(0, 4, 1.0, distance=distance).ranks.shape == (0, 4)


def test_center_as_rankings():
    center = Rankings.from_orders([["tea", "milk", "coffee"]])
    assert mallows(2, center, 100.0).to_orders() == [["tea", "milk", "coffee"]] * 2
    assert mallows(2, center, 100.0, items=["a", "b", "c"]).items == ("a", "b", "c")


# ---------------------------------------------------------------------- uniform, Plackett-Luce


def test_uniform_distribution():
    assert p_value(counted(uniform(30_000, 4, rng=3)), dict.fromkeys(S4, 1 / 24)) > 1e-3


def test_uniform_marginals_of_many_items():
    ranks = uniform(5000, 30, rng=4).ranks
    for item in (0, 13, 29):
        assert p_value(Counter(ranks[:, item].tolist()), dict.fromkeys(range(30), 1 / 30)) > 1e-3


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [5, 1, 2, 0.3], [1e-3, 1, 1e3, 1]])
def test_plackett_luce_distribution(weights):
    assert p_value(counted(plackett_luce(30_000, weights, rng=5)), plackett_luce_pmf(weights)) > 1e-3


def test_plackett_luce_pairwise_probabilities():
    weights = np.linspace(1, 9, 25)
    ranks = plackett_luce(20_000, weights, rng=6).ranks
    for a, b in [(0, 24), (3, 4), (20, 7)]:
        wins = (ranks[:, a] < ranks[:, b]).mean()
        wanted = weights[a] / (weights[a] + weights[b])
        assert abs(wins - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / len(ranks))


def test_extreme_plackett_luce_weights():
    rankings = plackett_luce(100, [1e-300, 1e300, 1])
    assert (rankings.ranks == [2, 0, 1]).all()


# ---------------------------------------------------------------------- seeds and names

GENERATORS = {
    "uniform": partial(uniform, n_items=6),
    "mallows": partial(mallows, center=6, theta=0.3),
    "plackett_luce": partial(plackett_luce, weights=range(1, 7)),
}


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))
def test_seeds_and_generators(generator):
    assert generator(20, rng=1) == generator(20, rng=1)
    assert generator(20, rng=1) == generator(20, rng=np.random.default_rng(1))
    assert generator(20, rng=1) != generator(20, rng=2)
    rng = np.random.default_rng(1)
    assert generator(20, rng=rng) != generator(20, rng=rng)


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))
def test_item_names(generator):
    assert generator(2).items == tuple("012345")
    assert generator(2, items=list("abcdef")).items == tuple("abcdef")
    with pytest.raises(RankingError, match="2 names for 6 items"):
        generator(2, items=["a", "b"])


# ---------------------------------------------------------------------- mixtures


def always(*ranks):
    return lambda n_rankings, *, rng: Rankings(np.tile(ranks, (n_rankings, 1)))


def test_mixture_components():
    made = mixture(6000, [always(0, 1, 2), always(2, 1, 0), always(1, 0, 2)], [1, 0, 3], rng=1)
    assert np.array_equal(made.rankings.ranks, np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]])[made.components])
    assert p_value(Counter(made.components.tolist()), {0: 0.25, 1: 0, 2: 0.75}) > 1e-3


def test_mixture_weights_default_to_equal():
    labels = mixture(6000, [always(0, 1), always(1, 0)], rng=2).components
    assert p_value(Counter(labels.tolist()), {0: 0.5, 1: 0.5}) > 1e-3


def test_components_have_independent_streams():
    """Replacing the first component changes neither the assignments nor the draws of the second."""
    second = partial(mallows, center=6, theta=0.5)
    made = mixture(100, [partial(uniform, n_items=6), second], rng=3)
    other = mixture(100, [partial(plackett_luce, weights=np.ones(6)), second], rng=3)
    assert np.array_equal(made.components, other.components)
    assert made.rankings[made.components == 1] == other.rankings[made.components == 1]
    assert made.rankings[made.components == 0] != other.rankings[made.components == 0]


def test_mixture_keeps_order_of_draws():
    made = mixture(40, [lambda n_rankings, *, rng: uniform(n_rankings, 5, rng=9)], rng=0)
    assert made.rankings == uniform(40, 5, rng=9)


def test_mixture_aligns_items_by_name():
    one = lambda n_rankings, *, rng: Rankings(np.tile([0, 1], (n_rankings, 1)), ["a", "b"])  # noqa: E731
    two = lambda n_rankings, *, rng: Rankings(np.tile([0, 1], (n_rankings, 1)), ["b", "a"])  # noqa: E731
    made = mixture(20, [one, two], rng=1)
    assert made.rankings.items == ("a", "b")
    assert np.array_equal(made.rankings.ranks[:, 0], made.components)


# ---------------------------------------------------------------------- truncation


@given(st.data())
def test_truncation_matches_oracle(data):
    n = data.draw(st.integers(1, 6))
    rows = data.draw(st.lists(strategies.any_ranking(n), min_size=1, max_size=5))
    lengths = data.draw(st.lists(st.integers(0, n + 1), min_size=len(rows), max_size=len(rows)))
    counts = list(range(1, len(rows) + 1))
    for unlisted in ("last", "free"):
        wanted = [
            tuple(-1 if r == -1 else c for r, c in zip(ranks, truncated(ranks, k, unlisted), strict=True))
            for ranks, k in zip(rows, lengths, strict=True)
        ]
        made = truncate(Rankings(rows, counts=counts), lengths, unlisted=unlisted)
        assert list(map(tuple, made.ranks.tolist())) == wanted
        assert made.counts.tolist() == counts


def test_single_length_equals_top():
    rankings = uniform(30, 6)
    assert truncate(rankings, 2) == rankings.top(2)
    assert truncate(rankings, np.int64(4), unlisted="free") == rankings.top(4, unlisted="free")


def test_random_lengths():
    rankings = uniform(6000, 8, rng=1)
    lengths = truncate(rankings, {1: 0.2, 5: 0.7, 0: 0.1, 3: 0}, rng=2).n_buckets - 1
    assert p_value(Counter(lengths.tolist()), {0: 0.1, 1: 0.2, 3: 0, 5: 0.7}) > 1e-3


# ---------------------------------------------------------------------- the paper's data


@pytest.mark.parametrize("k", [1, 2, 4])
def test_paper_samples_distribution(k):
    P, Q = two_samples(30_000, 4, k, np.random.default_rng(8))
    forwards, backwards = mallows_pmf("kendall", (0, 1, 2, 3), 1), mallows_pmf("hamming", (3, 2, 1, 0), 1)
    assert p_value(counted(P), truncated_pmf({r: (forwards[r] + backwards[r]) / 2 for r in S4}, k)) > 1e-3
    assert p_value(counted(Q), truncated_pmf(dict.fromkeys(S4, 1 / 24), k)) > 1e-3


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uniform(-1, 3), "n_rankings=-1"),
        (lambda: uniform(2.5, 3), "n_rankings=2.5"),
        (lambda: uniform(2, 0), "n_items=0"),
        (lambda: mallows(2, 3, -0.1), "theta=-0.1"),
        (lambda: mallows(2, 3, math.inf), "theta=inf"),
        (lambda: mallows(2, 3, 1, distance="footrule"), "distance="),
        (lambda: mallows(2, [0, 0, 1], 1), "center"),
        (lambda: mallows(2, [[0, 1], [1, 0]], 1), "center"),
        (lambda: plackett_luce(2, [1, 0]), "weights="),
        (lambda: plackett_luce(2, []), "weights="),
        (lambda: mixture(2, []), "components="),
        (lambda: mixture(2, [always(0, 1)], [1, 2]), "weights"),
        (lambda: mixture(2, [always(0, 1)], [-1]), "weights holds -1.0"),
        (lambda: mixture(2, [lambda n_rankings, *, rng: uniform(1, 2)]), "components"),
        (lambda: truncate(uniform(2, 3), [1]), "lengths"),
        (lambda: truncate(uniform(2, 3), -1), "lengths=-1"),
        (lambda: truncate(uniform(2, 3), [1, -2]), "lengths holds -2.0"),
        (lambda: truncate(uniform(2, 3), 1.5), "lengths=1.5"),
        (lambda: truncate(uniform(2, 3), {1: 0}), "lengths="),
        (lambda: truncate(uniform(2, 3), 1, unlisted="maybe"), "unlisted="),
    ],
)
def test_invalid_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


# ---------------------------------------------------------------------- the bundled example


def pair_signs(rankings):
    """Pairwise preferences of each voter: 1, 0 (tied) or -1."""
    first, second = np.triu_indices(rankings.n_items, 1)
    ranks = rankings.ranks
    return np.repeat(np.sign(ranks[:, second] - ranks[:, first]).astype(float), rankings.counts, axis=0)


def test_bundled_file_matches_simulation():
    bundled, drawn = load_example(), make_example()
    assert bundled.rankings == drawn.rankings
    assert bundled.groups.tolist() == drawn.groups.tolist()
    assert bundled.districts.tolist() == drawn.districts.tolist()
    assert bundled.description == drawn.description


def test_bundled_file_content():
    path = files("rankernel.datasets") / "data" / "nowhere_bay.csv"
    assert path.read_text(encoding="utf-8") == example_csv(make_example())


def test_example_rows_are_distinct():
    example = load_example()
    rows = list(zip(example.districts, example.groups, map(tuple, example.rankings.ranks.tolist()), strict=True))
    assert len(rows) == len(set(rows)) == len(example.rankings)
    assert set(example.districts) == {"north", "south"}
    assert set(example.groups) == {"foundry", "harbour", "orchard"}
    assert example.rankings.n_voters == 2400
    assert "synthetic" in example.description


def test_example_has_all_kinds_of_ballots():
    kinds = Counter(load_example().rankings.kinds().tolist())
    assert kinds["full"] > 100
    assert kinds["top-k"] > 300
    assert kinds["exhaustive"] > 100
    assert kinds["incomplete"] == 0


def test_ballot_lengths_of_blocs():
    rankings, groups, _, _ = load_example()
    lengths = {
        bloc: np.average((rankings.n_buckets - 1)[groups == bloc], weights=rankings.counts[groups == bloc])
        for bloc in set(groups)
    }
    assert lengths["orchard"] < lengths["foundry"] < lengths["harbour"]


def test_example_has_a_condorcet_winner():
    rankings = load_example().rankings
    first_choices = (rankings.ranks == 0).T @ rankings.counts
    winner = rankings.items.index("Cindervale")
    for other in set(range(8)) - {winner}:
        margin = np.sign(rankings.ranks[:, other] - rankings.ranks[:, winner]) @ rankings.counts
        assert margin > 0
    assert first_choices[winner] < first_choices.max() / 2


def test_linkage_recovers_blocs():
    rankings, groups, _, _ = load_example()
    clusters = fcluster(linkage(pair_signs(rankings), "average"), 3, "maxclust")
    assert adjusted_rand_score(np.repeat(groups, rankings.counts), clusters) > 0.85


def test_districts_differ_only_between_blocs():
    """By a permutation test of the distance between mean pairwise preferences."""
    rankings, groups, districts, _ = load_example()
    signs, blocs, north = (
        pair_signs(rankings),
        *(np.repeat(of, rankings.counts) for of in (groups, districts == "north")),
    )
    assert permutation_p_value(signs, north) == 1 / 200
    for bloc in ("foundry", "harbour", "orchard"):
        assert permutation_p_value(signs[blocs == bloc], north[blocs == bloc]) > 0.01


def permutation_p_value(features, mask, n_permutations=199):
    rng = np.random.default_rng(1)

    def statistic(mask):
        return np.sum((features[mask].mean(axis=0) - features[~mask].mean(axis=0)) ** 2)

    seen = statistic(mask)
    as_large = sum(statistic(rng.permutation(mask)) >= seen for _ in range(n_permutations))
    return (1 + as_large) / (1 + n_permutations)


def test_example_depends_on_seed():
    assert make_example(5).rankings == make_example(5).rankings
    assert make_example(5).rankings != make_example(6).rankings


def test_representations_show_no_arrays():
    found = load_example()
    assert str(found).splitlines()[0].startswith("The council election of Nowhere Bay")
    assert "array(" not in str(found)
    assert "2,400 voters" in found._repr_html_()
    mixed = mixture(30, [lambda n, rng: uniform(n, 3, rng=rng)] * 2)
    assert str(mixed).startswith("from 2 components: Rankings: ")
    assert "array(" not in mixed._repr_html_()
