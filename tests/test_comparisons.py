"""The data type Comparisons, and its conversions to preferences and rankings."""

import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankernel as rk
from rankernel import Comparisons, RankingError, ReadingWarning

BATTLES = [("x", "y", 1, "ann"), ("y", "z", -1, "bob"), ("x", "z", 0, "ann"), ("y", "x", -1, "bob")]


def battles(rows=BATTLES, **more):
    first, second, outcome, judge = zip(*rows, strict=True)
    return Comparisons.from_arrays(first, second, outcome, judge=judge, **more)


@st.composite
def random_rows(draw):
    n = draw(st.integers(2, 5))
    sides = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    row = st.tuples(sides, st.sampled_from([-1, 0, 1]), st.sampled_from("abc"))
    return [(str(a), str(b), outcome, judge) for (a, b), outcome, judge in draw(st.lists(row, min_size=1, max_size=20))]


@settings(max_examples=40, deadline=None)
@given(random_rows(), st.integers(1, 3))
def test_counts_of_wins_and_ties(rows, weight):
    data = battles(rows, weights=np.full(len(rows), weight))
    wins, ties = Counter(), Counter()
    for a, b, outcome, _ in rows:
        if outcome:
            wins[(a, b) if outcome > 0 else (b, a)] += weight
        else:
            ties[frozenset([a, b])] += weight
    for i, a in enumerate(data.items):
        for j, b in enumerate(data.items):
            assert data.wins[i, j] == wins[a, b]
            assert data.ties[i, j] == (ties[frozenset([a, b])] if a != b else 0)
    pairs = [frozenset(row[:2]) for row in rows]
    codes = data.match_ups.tolist()
    for one in range(len(rows)):
        for other in range(one):
            assert (pairs[one] == pairs[other]) == (codes[one] == codes[other])


@settings(max_examples=40, deadline=None)
@given(random_rows())
def test_preferences_are_those_of_decided_majorities(rows):
    data = battles(rows)
    decided = [[(a, b) if r > 0 else (b, a) for a, b, r, who in rows if who == judge and r] for judge in data.judges]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        found = data.preferences()
    assert found == rk.Preferences.from_pairs(decided, items=data.items, users=data.judges)


def test_a_tie_is_not_contracted():
    data = battles([("a", "b", 0, "ann"), ("a", "c", 0, "ann"), ("b", "c", 1, "ann")])
    assert data.preferences().to_pairs() == [[("b", "c")]]


def test_cycles_are_reported_with_their_share():
    cycle = [("a", "b", 1, "ann"), ("b", "c", 1, "ann"), ("c", "a", 1, "ann")]
    data = battles([*cycle, ("a", "d", 1, "ann"), ("d", "b", 1, "bob"), ("a", "d", 1, "bob")])
    with pytest.warns(ReadingWarning, match=r"1 of 2 users .* 50\.0%"):
        found = data.preferences()
    assert found.n_contradicting == 1


def test_rankings_of_groups():
    rng = np.random.default_rng(0)
    strengths = {"en": np.array([3.0, 1.0, 0.0, -2.0]), "de": np.array([-2.0, 0.0, 1.0, 3.0])}
    language = rng.choice(["en", "de"], 2000)
    first = rng.integers(0, 4, 2000)
    second = (first + rng.integers(1, 4, 2000)) % 4
    gap = np.array(
        [strengths[each][a] - strengths[each][b] for each, a, b in zip(language, first, second, strict=True)]
    )
    outcome = np.where(rng.random(2000) < 1 / (1 + np.exp(-gap)), 1, -1)
    data = Comparisons.from_arrays(first, second, outcome, labels={"language": language}, items=range(4))
    found = data.rankings("language")
    assert found.labels["group"].tolist() == ["de", "en"]
    assert found.ranks.tolist() == [[3, 2, 1, 0], [0, 1, 2, 3]]


def test_uncompared_items_are_free_and_small_groups_left_out():
    rows = [("a", "b", 1, "ann"), ("b", "c", 1, "ann"), ("d", "e", 1, "ann"), ("a", "b", 1, "bob")]
    with pytest.warns(ReadingWarning, match="1 of 2 groups"):
        found = battles(rows).rankings(min_comparisons=2)
    assert found.labels["group"].tolist() == ["ann"]
    assert found.ranks.tolist() == [[0, 1, 2, -1, -1]]
    with pytest.raises(RankingError, match="min_comparisons"):
        battles(rows).rankings()


def test_groups_by_time():
    data = battles(time=["2024-05-01T10:00:00", "2024-05-01T23:59:59Z", "2024-05-02 00:00:00", "2025-01-01"])
    assert data.groups("day")[0] == ("2024-05-01", "2024-05-02", "2025-01-01")
    assert data.groups("day")[1].tolist() == [0, 0, 1, 2]
    assert data.groups("year")[1].tolist() == [0, 0, 0, 1]
    assert data.groups(["p", "q", "p", "q"])[1].tolist() == [0, 1, 0, 1]
    with pytest.raises(ValueError, match=r"by='language'.*judge.*day"):
        data.groups("language")


def test_slices_equality_and_pickle():
    data = battles(labels={"language": ["en", "de", "en", "fr"]}, time=[1, 2, 3, 4])
    part = data[data.outcome != 0]
    assert len(part) == 3
    assert part.judges == data.judges
    assert part.labels["language"].tolist() == ["en", "de", "fr"]
    assert data[[0, 1]] == data[:2]
    assert data[0] != data[1]
    assert pickle.loads(pickle.dumps(data)) == data
    with pytest.raises(ValueError, match="read-only"):
        data.first[0] = 1


def test_repr_escapes_names():
    text = repr(battles([("a\n", "b", 1, "an\tn"), ("b", "c", 0, "bob")]))
    assert text.splitlines() == [
        "Comparisons: 2 comparisons of 3 items by 2 judges (1 tie)",
        "  an\\tn: a\\n > b",
        "  bob: b = c",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": ["a", "a"], "second": ["b", "a"]}, "comparison 1 compares 'a' with itself"),
        ({"first": ["a", None]}, "comparison 1 has no item"),
        ({"second": ["b"]}, "second"),
        ({"outcome": ["x", "y"]}, "outcome"),
        ({"weights": [1, -1]}, "weights"),
        ({"judge": ["ann", ""]}, "comparison 1 has no .*judge"),
        ({"items": ["a"]}, "items"),
        ({"time": ["monday", "tuesday"]}, "time"),
        ({"labels": {"language": ["en"]}}, "language"),
    ],
)
def test_invalid_input(options, message):
    given = {"first": ["a", "a"], "second": ["b", "c"], "outcome": [1, 0]} | options
    with pytest.raises((ValueError, TypeError), match=message):
        Comparisons.from_arrays(given.pop("first"), given.pop("second"), given.pop("outcome"), **given)


# ---------------------------------------------------------------------- tables and files


TABLE = {
    "question": ["q1", "q2", "q1"],
    "model_a": ["x", "y", "x"],
    "model_b": ["y", "z", "z"],
    "winner": ["model_b", "tie", "model_a"],
    "judge": ["ann", "bob", "ann"],
    "weight": [1, 2, 3],
    "tstamp": ["2024-05-01", "2024-05-02", "2024-05-02"],
    "length": [0.5, -1.0, 2.0],
}


@pytest.mark.parametrize("frame", [lambda table: table, pd.DataFrame, pl.DataFrame])
def test_tables(frame):
    data = Comparisons.from_frame(frame(TABLE))
    assert data.items == ("x", "y", "z")
    assert data.first.tolist() == [0, 1, 0]
    assert data.second.tolist() == [1, 2, 2]
    assert data.outcome.tolist() == [-1, 0, 1]
    assert data.judges == ("ann", "bob")
    assert data.weights.tolist() == [1, 2, 3]
    assert data.groups("day")[0] == ("2024-05-01", "2024-05-02")
    assert data.labels["question"].tolist() == ["q1", "q2", "q1"]
    assert data.labels["length"].tolist() == [0.5, -1.0, 2.0]


def test_table_without_ignored_columns():
    data = Comparisons.from_frame(TABLE, ignore=["length", "judge"], columns={"user": "question"})
    assert data.judges == ("q1", "q2")
    assert list(data.labels) == []


def test_files(tmp_path):
    file = tmp_path / "battles.csv"
    pd.DataFrame(TABLE).to_csv(file, index=False)
    data = rk.read_comparisons(file)
    assert data == Comparisons.from_frame(TABLE)
    assert data == rk.read(file, format="comparisons")
    assert "a in model_a" in repr(data)
    file.write_text("model_a,model_b,winner\nx,y,model_a\nx,x,tie\n")
    with pytest.raises(RankingError, match=r"battles\.csv: line 3.*itself"):
        rk.read_comparisons(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"winner": ["model_b", "tie", "nobody"]}, "row 2.*nobody"),
        ({"judge": ["ann", None, "bob"]}, "row 1 has no user"),
        ({"weight": [1, 2, -3]}, "row 2: .*'-3'"),
        ({"winner": ["tie"]}, "lengths"),
    ],
)
def test_invalid_tables(change, message):
    with pytest.raises((RankingError, ValueError), match=message):
        Comparisons.from_frame(TABLE | change)


def test_table_of_another_kind():
    with pytest.raises(TypeError, match="frame"):
        Comparisons.from_frame([1, 2])


# ---------------------------------------------------------------------- tests of groups


def scheduled(seed, strengths=(0.0, 1.0, 2.0, 3.0), changed=()):
    """Battles of two languages with equal strengths but different schedules; ``changed`` holds those of the second."""
    rng = np.random.default_rng(seed)
    rows = []
    for language, favourites in (("en", (0, 1)), ("de", (2, 3))):
        truth = np.array(changed if changed and language == "de" else strengths)
        for _ in range(400):
            a = rng.choice(favourites) if rng.random() < 0.8 else rng.integers(4)
            b = rng.choice([item for item in range(4) if item != a])
            wins = rng.random() < 1 / (1 + np.exp(truth[b] - truth[a]))
            rows.append((a, b, 1 if wins else -1, language))
    first, second, outcome, language = zip(*rows, strict=True)
    return Comparisons.from_arrays(first, second, outcome, labels={"language": language}, items=range(4))


def test_schedules_are_not_preferences():
    data = scheduled(0)
    assert rk.k_sample_test(data, "language", rk.Kendall()).pvalue > 0.01
    assert rk.k_sample_test(data.to_rankings(), data.labels["language"], rk.Kendall()).pvalue < 0.01
    changed = scheduled(0, changed=(3.0, 2.0, 1.0, 0.0))
    assert rk.k_sample_test(changed, "language", rk.Kendall()).pvalue < 0.002
    english = changed.labels["language"] == "en"
    assert rk.mmd_test(changed[english], changed[~english], rk.Kendall()).pvalue < 0.002
    assert rk.mmd_test(data[english], data[~english], rk.Kendall()).pvalue > 0.01


def test_level_within_match_ups():
    pvalues = [
        rk.k_sample_test(scheduled(seed), "language", rk.Kendall(), n_permutations=99).pvalue for seed in range(40)
    ]
    assert sum(p <= 0.1 for p in pvalues) <= 10  # binomial(40, 0.1) exceeds 10 with probability 0.1 %


def opinions(seed, nested):
    """Battles of judges who differ, in two groups of judges, or in two groups that all judges are in."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(size=(30, 6))
    judge, first = rng.integers(0, 30, 2000), rng.integers(0, 6, 2000)
    second = (first + rng.integers(1, 6, 2000)) % 6
    chance = 1 / (1 + np.exp(strengths[judge, second] - strengths[judge, first]))
    outcome = np.where(rng.random(2000) < chance, 1, -1)
    group = np.where(judge < 15 if nested else rng.random(2000) < 0.5, "young", "old")
    return Comparisons.from_arrays(first, second, outcome, judge=judge, labels={"age": group}, items=range(6))


def test_groups_of_judges_are_not_groups_of_battles():
    """Permuting battles takes differences of judges for those of groups; rankings of the judges have the level."""
    kernel, of_battles, of_judges = rk.Mallows(0.5), [], []
    for seed in range(20):
        data = opinions(seed, True)
        with pytest.warns(rk.MisfitWarning, match="the groups divide the judges"):
            of_battles.append(rk.k_sample_test(data, "age", kernel, n_permutations=99).pvalue)
        judges = data.rankings()
        ages = np.where(judges.labels["group"].astype(int) < 15, "young", "old")
        of_judges.append(rk.k_sample_test(judges, ages, kernel, n_permutations=99).pvalue)
    assert sum(p <= 0.05 for p in of_battles) > 5
    assert sum(p <= 0.05 for p in of_judges) <= 5  # binomial(20, 0.05) exceeds 5 with probability 0.03 %
    young = data.labels["age"] == "young"
    with pytest.warns(rk.MisfitWarning, match="the groups divide the judges"):
        rk.mmd_test(data[young], data[~young], kernel)


def test_judges_in_both_groups():
    """Without a warning the level holds, also if judges differ."""
    pvalues = [
        rk.k_sample_test(opinions(seed, False), "age", rk.Mallows(0.5), n_permutations=99).pvalue for seed in range(40)
    ]
    assert sum(p <= 0.1 for p in pvalues) <= 10  # binomial(40, 0.1) exceeds 10 with probability 0.1 %


def test_single_rankings():
    data = battles(weights=[1, 2, 1, 3])
    found = data.to_rankings()
    assert found.ranks.tolist() == [[0, 1, -1], [-1, 1, 0], [-1, -1, -1], [0, 1, -1]]
    assert found.counts.tolist() == [1, 2, 1, 3]
    with pytest.raises(RankingError, match="weights"):
        battles(weights=[1, 0.5, 1, 1]).to_rankings()


@pytest.mark.parametrize(
    "call",
    [
        lambda data: rk.Kendall().gram(data),
        lambda data: rk.trend_test(data, [1, 2, 3, 4], rk.Kendall()),
        lambda data: rk.kemeny(data),
        lambda data: rk.KernelKMeans(2).fit(data),
        lambda data: rk.MallowsMixture(1).fit(data),
        lambda data: rk.PlackettLuce.fit(data),
        lambda data: rk.distances.kendall(data),
    ],
)
def test_tasks_for_rankings_name_the_conversions(call):
    with pytest.raises(RankingError, match=r"preferences\(by.*rankings\(by"):
        call(battles())


@pytest.mark.parametrize("factor", [1, 1000])
def test_unix_times(factor):
    """Releases of arenas have Unix times in seconds; some programs write milliseconds."""
    days = np.array(["2024-05-01T10", "2024-05-01T23", "2024-05-02T01"], dtype="datetime64[s]").astype(np.int64)
    frame = {"model_a": list("xyx"), "model_b": list("yzz"), "winner": ["model_a"] * 3, "tstamp": days * factor + 0.5}
    data = Comparisons.from_frame(frame)
    assert data.groups("day")[0] == ("2024-05-01", "2024-05-02")
    small = Comparisons.from_frame(frame | {"tstamp": [1.0, 2.0, 3.0]})
    assert small.time.tolist() == [1, 2, 3]


def test_numeric_labels():
    frame = {"winner": list("xyx"), "loser": list("yzz"), "turn": [1, 2, 1], "length": [0.5, 2, 1]}
    data = Comparisons.from_frame(pd.DataFrame(frame))
    assert data.groups("turn")[0] == ("1", "2")
    assert data.labels["length"].tolist() == [0.5, 2, 1]
    assert data == Comparisons.from_frame(pl.DataFrame(frame)) == Comparisons.from_frame(frame)
