"""Comparison of systems by query: overlaps by their definition, exchanges by enumeration, and planted differences."""

import csv
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import real_data

import rankernel as rk


def runs(n_queries, noises, seed, length=6, n_documents=30):
    """Return lists of systems that add noise to the relevance of documents, which queries do not share."""
    rng = np.random.default_rng(seed)
    orders, queries, systems = [], [], []
    for query in range(n_queries):
        relevance = rng.normal(size=n_documents)
        for system, noise in noises.items():
            best = np.argsort(-relevance - noise * rng.normal(size=n_documents))[:length]
            orders.append([f"q{query}d{document}" for document in best])
            queries.append(f"q{query}")
            systems.append(system)
    return orders, queries, systems


def compare(orders, queries, systems, unlisted="free", **options):
    lists = rk.Rankings.from_orders(orders, unlisted=unlisted)
    return rk.compare_systems(lists, queries=queries, systems=systems, **options)


def truncated_overlap(x, y, p=0.9):
    """Rank-biased overlap up to the length of two lists, divided by that of a list with itself."""
    weights = [p ** (d - 1) for d in range(1, len(x) + 1)]
    shares = [len(set(x[:d]) & set(y[:d])) / d for d in range(1, len(x) + 1)]
    return sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)


@pytest.mark.parametrize("unlisted", ["free", "last"])
def test_overlaps_by_definition(unlisted):
    orders, queries, systems = runs(4, {"a": 0.2, "b": 1.0, "c": 2.0}, 0)
    found = compare(orders, queries, systems, unlisted)
    assert found.systems == ("a", "b", "c")
    assert found.queries == ("q0", "q1", "q2", "q3")
    for q, (first, second) in itertools.product(range(4), itertools.combinations(range(3), 2)):
        expected = truncated_overlap(orders[3 * q + first], orders[3 * q + second])
        assert found.overlaps[q, first, second] == pytest.approx(expected, rel=1e-12)
        assert found.overlaps[q, first, first] == pytest.approx(1)
    assert found.pairs[1].overlap == pytest.approx(found.overlaps[:, 0, 2].mean())


def test_exchanges_by_enumeration():
    found = compare(*runs(6, {"a": 0.2, "b": 1.0, "c": 2.0}, 1), n_permutations=4000)
    differences = found.overlaps[:, 0, 2] - found.overlaps[:, 1, 2]
    signs = np.array(list(itertools.product([-1, 1], repeat=6)))
    every = (signs @ differences / 6) ** 2
    pair = found.pairs[0]
    assert pair.statistic == pytest.approx(differences.mean() ** 2)
    share = np.mean(every >= pair.statistic - 1e-12)
    assert abs(pair.pvalue - share) < 5 * np.sqrt(share * (1 - share) / 4000) + 1 / 4000


def test_all_systems_by_enumeration():
    found = compare(*runs(3, {"a": 0.2, "b": 1.0, "c": 2.0}, 2), n_permutations=3000)
    every = []
    for orders in itertools.product(itertools.permutations(range(3)), repeat=3):
        means = np.mean([found.overlaps[q][np.ix_(order, order)] for q, order in enumerate(orders)], axis=0)
        every.append(np.var([means[0, 1], means[0, 2], means[1, 2]]))
    share = np.mean(np.array(every) >= found.statistic - 1e-12)
    assert abs(found.pvalue - share) < 5 * np.sqrt(share * (1 - share) / 3000) + 1 / 3000


def test_systems_of_queries_without_common_documents():
    """A second run of the old system overlaps more with it than a noisier system; no mean list tells them apart."""
    orders, queries, systems = runs(40, {"old": 0.3, "again": 0.3, "new": 1.5}, 3)
    found = compare(orders, queries, systems)
    adjusted = {(pair.first, pair.second): pair.adjusted_pvalue for pair in found.pairs}
    assert adjusted["again", "new"] < 0.01
    assert adjusted["new", "old"] < 0.01
    assert adjusted["again", "old"] > 0.05
    assert found.pvalue < 0.01
    lists = rk.Rankings.from_orders(orders, unlisted="free")
    with pytest.warns(rk.NotCharacteristicWarning):
        shift = rk.paired_test(lists[::3], lists[2::3], rk.RankBiasedOverlap(0.9), n_permutations=99)
    assert shift.pvalue > 0.05


def test_judgements():
    """The system that is nearer to the judgements agrees more with them; two systems suffice."""
    orders, queries, systems = runs(30, {"a": 0.1, "b": 2.0}, 4)
    relevance = {query: order for order, query, system in zip(orders, queries, systems, strict=True) if system == "a"}
    table = [(query, document, -rank) for query, order in relevance.items() for rank, document in enumerate(order)]
    columns = dict(zip(("query", "document", "grade"), zip(*table, strict=True), strict=True))
    judgements = rk.Rankings.from_long(columns, user="query", item="document", score="grade")
    found = compare(orders, queries, systems, judgements=judgements)
    assert found.agreements[:, 0] == pytest.approx(1)
    (pair,) = found.pairs
    low, high = pair.difference_interval
    assert 0 < low < pair.difference < high
    assert pair.pvalue < 0.01
    assert pair.difference == pytest.approx(1 - found.overlaps[:, 0, 1].mean(), abs=1e-12)
    without = compare(orders, queries, systems)
    assert np.isnan([without.pvalue, without.pairs[0].pvalue, without.pairs[0].difference]).all()
    assert "give judgements" in str(without)


def test_level_for_runs_of_one_system():
    pvalues = []
    for seed in range(30):
        found = compare(*runs(8, {"a": 1.0, "b": 1.0, "c": 1.0}, seed), n_permutations=99)
        pvalues.append([found.pvalue, found.pairs[0].pvalue])
    shares = np.mean(np.array(pvalues) <= 0.2, axis=0)
    assert (shares <= 0.2 + 4 * np.sqrt(0.2 * 0.8 / 30)).all()
    assert (shares > 0).all()


def test_intervals_over_queries():
    found = compare(*runs(50, {"a": 0.5, "b": 0.5}, 5), confidence_level=0.9, n_bootstrap=4000)
    values, (low, high) = found.overlaps[:, 0, 1], found.pairs[0].overlap_interval
    normal = 1.645 * values.std() / np.sqrt(50)
    assert high - values.mean() == pytest.approx(normal, rel=0.2)
    assert values.mean() - low == pytest.approx(normal, rel=0.2)


def test_tables_and_least_overlaps():
    found = compare(*runs(12, {"a": 0.5, "b": 0.5, "c": 3.0}, 6))
    least = found.most_different("c", "a", limit=3)
    assert [value for _, value in least] == sorted(found.overlaps[:, 0, 2])[:3]
    assert found.to_frame().loc[least[0][0], "a and c"] == least[0][1]
    with pytest.raises(ValueError, match="second"):
        found.most_different("a", "z")


def test_runs_of_files(tmp_path):
    orders, queries, systems = runs(5, {"a": 0.5, "b": 1.0, "c": 2.0}, 7)
    for name in "abc":
        lines = [
            f"{query} Q0 {document} {rank + 1} {10 - rank} {system}"
            for order, query, system in zip(orders, queries, systems, strict=True)
            for rank, document in enumerate(order)
            if system == name
        ]
        (tmp_path / f"{name}.run").write_text("\n".join(lines[: -6 * (name == "c")] if name == "c" else lines) + "\n")
    lists = rk.read([tmp_path / f"{name}.run" for name in "abc"])
    found = rk.compare_systems(lists)
    assert found.n_dropped == 1  # the last query is missing in one file
    np.testing.assert_allclose(found.overlaps, compare(orders, queries, systems).overlaps[:4], rtol=1e-12)


def test_wrong_data():
    orders, queries, systems = runs(3, {"a": 0.5, "b": 1.0}, 8)
    with pytest.raises(rk.RankingError, match="'query'"):
        compare(orders, None, systems)
    with pytest.raises(rk.RankingError, match="two lists of one system"):
        compare(orders, ["q"] * 6, systems)
    with pytest.raises(rk.RankingError, match="at least two systems"):
        compare(orders, queries, ["a"] * 6)
    with pytest.raises(rk.RankingError, match="at least two"):
        compare(orders[:3], queries[:3], systems[:3])
    with pytest.raises(rk.RankingError, match="query of row 1 is missing"):
        compare(orders, ["q0", None, *queries[2:]], systems)
    with pytest.raises(rk.RankingError, match="count several times"):
        rk.compare_systems(rk.Rankings.from_orders(orders, counts=[2] * 6), queries=queries, systems=systems)


def test_wrong_judgements():
    data = runs(3, {"a": 0.5, "b": 1.0}, 8)

    def judged(queries):
        columns = {
            "query": np.repeat(queries, 2),
            "item": ["q0d1", "q0d2"] * len(queries),
            "rank": [1, 2] * len(queries),
        }
        return rk.Rankings.from_long(columns, user="query", item="item", rank="rank")

    with pytest.raises(rk.RankingError, match=r"'q0', \.\.\. in X and 'x0', \.\.\. in the judgements"):
        compare(*data, judgements=judged(["x0", "x1"]))
    with pytest.raises(rk.RankingError, match="use from_long"):
        compare(*data, judgements=rk.Rankings([[0, 1]] * 3))
    twice = judged(["q0", "q1"])
    with pytest.raises(rk.RankingError, match="'q0' has two rows of judgements"):
        compare(*data, judgements=twice[[0, 0, 1]])


# ---------------------------------------------------------------------- RBO^a of Corsi and Urbano (2024)


def bucket_orders(text):
    return [match[1].split() if match[1] else [match[2]] for match in re.finditer(r"\(([^)]*)\)|(\S+)", text)]


@real_data.needs_data
def test_rank_biased_overlap_with_ties_of_lists_of_equal_length():
    """The extrapolated value and the lower bound of lists of the same length are positional kernels."""
    with (Path(real_data.FOLDER) / "trec/rbo-ties-expected.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if len(row["x"].split()) == len(row["y"].split())][:150]
    assert len(rows) == 150
    for row in rows:
        x, y, p = bucket_orders(row["x"]), bucket_orders(row["y"]), float(row["p"])
        k = len(row["x"].split())
        lists = rk.Rankings.from_orders([[set(bucket) for bucket in order] for order in (x, y)])
        extrapolated = rk.RankBiasedOverlap(p, depth=k) + p**k * rk.DCG([k**-0.5] * k, depth=k)
        assert extrapolated.gram(lists)[0, 1] == pytest.approx(float(row["a.ext"]), abs=1e-12)
        first = np.arange(k)
        tails = -np.log1p(-p) * (1 - p) / p - np.cumsum([0, *((1 - p) * p**first / (first + 1))])[1:]
        weights = np.zeros((lists.n_items, lists.n_items))
        weights[:k, :k] = ((1 - p) * p**first / (first + 1) + tails)[np.maximum.outer(first, first)]
        assert rk.Positional(weights).gram(lists)[0, 1] == pytest.approx(float(row["a.min"]), abs=1e-12)
