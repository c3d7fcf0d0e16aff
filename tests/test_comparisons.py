"""The data type Comparisons, and its conversions to preferences and rankings."""

import pickle
import warnings
from collections import Counter

import numpy as np
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
        ({"judge": ["ann", ""]}, "comparison 1 has no judge"),
        ({"items": ["a"]}, "items"),
        ({"time": ["monday", "tuesday"]}, "time"),
        ({"labels": {"language": ["en"]}}, "language"),
    ],
)
def test_invalid_input(options, message):
    given = {"first": ["a", "a"], "second": ["b", "c"], "outcome": [1, 0]} | options
    with pytest.raises((ValueError, TypeError), match=message):
        Comparisons.from_arrays(given.pop("first"), given.pop("second"), given.pop("outcome"), **given)
