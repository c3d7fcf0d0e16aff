"""The data type Preferences and its constructors."""

import itertools
import pickle

import naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_ranking, sized

from rankernel.errors import ExactnessError, RankingError
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings

# ---------------------------------------------------------------------- oracles


def reachable(pairs, start):
    """The items reachable from an item along the pairs."""
    found, front = set(), {start}
    while front:
        front = {b for a, b in pairs if a in front} - found
        found |= front
    return found


def contracted_order(n, pairs):
    """The pairs (x, y) with a path from x to y and none back, and the groups of items with paths both ways.

    Of repeated pairs the majority counts, and pairs in both directions equally often state nothing.
    """
    pairs = {(x, y) for x, y in pairs if pairs.count((x, y)) > pairs.count((y, x))}
    reach = [reachable(pairs, x) for x in range(n)]
    before = {(x, y) for x in range(n) for y in reach[x] if x not in reach[y]}
    groups = {tuple(y for y in range(n) if x in reach[y] and y in reach[x]) for x in range(n) if x in reach[x]}
    return before, groups


def is_weak_order(n, before):
    """Whether being unrelated is transitive among the items with relations."""
    related = [x for x in range(n) if any(x in pair for pair in before)]
    apart = {(x, y) for x in related for y in related if (x, y) not in before and (y, x) not in before}
    return all((x, z) in apart for x, y in apart for w, z in apart if w == y)


@st.composite
def users_pairs(draw, high=6):
    n = draw(st.integers(2, high))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    return n, draw(st.lists(st.lists(pair, max_size=8), min_size=1, max_size=4))


# ---------------------------------------------------------------------- closure and contraction


@settings(max_examples=40, deadline=None)
@given(users_pairs())
def test_closure_and_contraction(data):
    n, users = data
    prefs = Preferences.from_pairs(users, items=range(n))
    assert prefs.before.shape == (len(users), n, n)
    for pairs, before, groups in zip(users, prefs.before, prefs.contracted, strict=True):
        expected, circles = contracted_order(n, pairs)
        assert {tuple(pair) for pair in np.argwhere(before).tolist()} == expected
        assert {tuple(map(int, group)) for group in groups} == circles


def test_contracted_cycle():
    """An item above one item of a cycle is above all; other items may be between them."""
    prefs = Preferences.from_pairs([[("a", "b"), ("b", "c"), ("c", "f"), ("f", "b"), ("b", "d"), ("e", "c")]])
    assert prefs.contracted == ((("b", "c", "f"),),)
    index = {name: number for number, name in enumerate(prefs.items)}
    known = {(prefs.items[x], prefs.items[y]) for x, y in np.argwhere(prefs.before[0])}
    assert known == {(x, y) for x in "ae" for y in "bcfd"} | {(x, "d") for x in "bcf"}
    assert not prefs.before[0, index["b"], index["c"]]
    assert prefs.to_rankings() == Rankings.from_orders([[{"a", "e"}, {"b", "c", "f"}, "d"]], items=prefs.items)
    between = Preferences.from_pairs([[("b", "c"), ("c", "d"), ("d", "b")]], items=["b", "x", "c", "d"])
    assert between.n_extensions() == [24]


def test_seventy_items():
    n = 70
    chain = [(x, x + 1) for x in range(n - 1)]
    prefs = Preferences.from_pairs([chain, chain[::-1], [*chain[:-1], (n - 2, 0)]], items=range(n))
    upper = np.triu(np.ones((n, n), dtype=bool), 1)
    assert np.array_equal(prefs.before[0], upper)
    assert np.array_equal(prefs.before[1], upper)
    assert not prefs.before[2].any()
    assert prefs.contracted[2] == (tuple(str(x) for x in range(n - 1)),)
    assert prefs.n_extensions()[:2] == [1, 1]


@settings(max_examples=40, deadline=None)
@given(users_pairs(high=5))
def test_number_of_extensions(data):
    n, users = data
    prefs = Preferences.from_pairs(users, items=range(n))
    expected = [naive.n_linear_extensions(n, contracted_order(n, pairs)[0]) for pairs in users]
    assert prefs.n_extensions() == expected


def test_too_many_extensions():
    prefs = Preferences.from_pairs([[("a", "b")], [("a", "b"), ("c", "d"), ("c", "b")]], users=["ann", "bob"])
    assert prefs.n_extensions(max_down_sets=8) == [12, 5]
    with pytest.raises(ExactnessError, match="user 'bob'"):
        prefs.n_extensions(max_down_sets=7)


# ---------------------------------------------------------------------- rankings


@settings(max_examples=50, deadline=None)
@given(sized(any_ranking, length=3))
def test_from_rankings(rows):
    rankings = Rankings(np.array(rows), counts=[2, 1, 3])
    prefs = Preferences.from_rankings(rankings)
    n = rankings.n_items
    for row, before in zip(rows, prefs.before, strict=True):
        expected = {(x, y) for x in range(n) for y in range(n) if 0 <= row[x] < row[y]}
        assert {tuple(pair) for pair in np.argwhere(before).tolist()} == expected
    assert prefs.n_extensions() == rankings.n_completions()
    assert prefs.is_ranking().all()
    back = prefs.to_rankings()
    assert back.items == rankings.items
    assert back.counts.tolist() == [2, 1, 3]
    for row, again in zip(rows, back.ranks.tolist(), strict=True):
        assert set(naive.completions(row)) == set(naive.completions(tuple(again)))


@settings(max_examples=40, deadline=None)
@given(users_pairs())
def test_is_ranking(data):
    n, users = data
    prefs = Preferences.from_pairs(users, items=range(n))
    expected = [is_weak_order(n, contracted_order(n, pairs)[0]) for pairs in users]
    assert prefs.is_ranking().tolist() == expected
    assert prefs.is_ranking().dtype == bool
    if all(expected):
        assert np.array_equal(Preferences.from_rankings(prefs.to_rankings()).before, prefs.before)


def test_partial_orders_that_are_not_rankings():
    prefs = Preferences.from_pairs([[("a", "b")], [("a", "b"), ("c", "d")]], users=["ann", "bob"])
    with pytest.raises(RankingError, match=r"user 'bob' \(row 1\) .* 'a' and 'd'"):
        prefs.to_rankings()


def test_empty_order_is_one_bucket():
    assert Preferences.from_pairs([[]], items=["a", "b"]).to_rankings().ranks.tolist() == [[0, 0]]


# ---------------------------------------------------------------------- input

TRIPLES = [("ann", "tea", "milk"), ("bob", "milk", "tea"), ("ann", "milk", "beer")]
LONG = Preferences.from_pairs(
    [[("tea", "milk"), ("milk", "beer")], [("milk", "tea")]], items=["tea", "milk", "beer"], users=["ann", "bob"]
)
COLUMNS = [list(column) for column in zip(*TRIPLES, strict=True)]
NAMED = dict(zip(["user", "better", "worse"], COLUMNS, strict=True))
SHUFFLED = {"worse": NAMED["worse"], "timestamp": [1, 2, 3], "user": NAMED["user"], "better": NAMED["better"]}


@pytest.mark.parametrize(
    "table",
    [
        TRIPLES,
        [list(row) for row in TRIPLES],
        tuple(TRIPLES),
        np.array(TRIPLES),
        np.array(TRIPLES, dtype=object),
        tuple(np.array(column) for column in COLUMNS),
        tuple(pd.Series(column) for column in COLUMNS),
        NAMED,
        SHUFFLED,
        pd.DataFrame(NAMED),
        pd.DataFrame(SHUFFLED),
        pd.DataFrame(TRIPLES, columns=["judge_id", "winner", "loser"]),
        pl.DataFrame(NAMED),
        pl.DataFrame(SHUFFLED),
    ],
)
def test_long_tables(table):
    assert Preferences.from_pairs(table) == LONG


@pytest.mark.parametrize(
    "lists",
    [
        [[("tea", "milk"), ("milk", "beer")], [("milk", "tea")]],
        ([["tea", "milk"], ["milk", "beer"]], [["milk", "tea"]]),
        (pairs for pairs in ([("tea", "milk"), ("milk", "beer")], [("milk", "tea")])),
        [np.array([["tea", "milk"], ["milk", "beer"]]), {("milk", "tea")}],
    ],
)
def test_lists_of_pairs(lists):
    assert Preferences.from_pairs(lists, users=["ann", "bob"]) == LONG


def test_three_pairs_of_one_user():
    prefs = Preferences.from_pairs([[("a", "b"), ("b", "c"), ("c", "d")]])
    assert len(prefs) == 1
    assert prefs.n_extensions() == [1]


def test_array_of_lists_of_pairs():
    prefs = Preferences.from_pairs(np.array([[[0, 1], [1, 2]], [[2, 1], [1, 0]]]))
    assert prefs.items == ("0", "1", "2")
    assert prefs.to_rankings().ranks.tolist() == [[0, 1, 2], [2, 1, 0]]


def test_items_users_and_counts():
    prefs = Preferences.from_pairs(
        TRIPLES, items=["beer", "tea", "milk", "gin"], users=["bob", "cem", "ann"], counts=[1, 2, 3]
    )
    assert prefs.items == ("beer", "tea", "milk", "gin")
    assert prefs.users == ("bob", "cem", "ann")
    assert prefs.counts.tolist() == [1, 2, 3]
    assert prefs.n_voters == 6
    assert prefs.n_extensions() == [12, 24, 4]


def test_repeated_pairs():
    assert Preferences.from_pairs([[("a", "b"), ("a", "b"), ("b", "a")]]) == Preferences.from_pairs([[("a", "b")]])
    undecided = Preferences.from_pairs([[("a", "b"), ("b", "a"), ("b", "c")]])
    assert undecided.to_pairs() == [[("b", "c")]]
    assert undecided.contracted == ((),)


def test_ties_state_nothing():
    table = {"user": ["ann"] * 3, "a": list("xxy"), "b": list("yzz"), "winner": ["tie", "tie", "a"]}
    prefs = Preferences.from_pairs(table)
    assert prefs.to_pairs() == [[("y", "z")]]
    assert prefs.contracted == ((),)


def test_no_users():
    prefs = Preferences.from_pairs([], items=["a", "b"])
    assert len(prefs) == 0
    assert prefs.before.shape == (0, 2, 2)
    assert prefs.n_extensions() == []
    assert prefs.is_ranking().shape == (0,)
    assert prefs.to_rankings().ranks.shape == (0, 2)


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        ([[("a", "a")]], {}, "user '0', pair 0, compares 'a' with itself"),
        ([("ann", "a", "b"), ("bob", "c", "c")], {}, "row 1 compares 'c' with itself"),
        (
            [[("a", "b"), ("a", "x")]],
            {"items": ["a", "b"]},
            "user '0', pair 1, .*items",
        ),
        ([("ann", "a", "x")], {"items": ["a", "b"]}, "row 0 names 'x'"),
        ([[("a", None)]], {}, "user '0', pair 0, has no item"),
        ([("ann", float("nan"), "b")], {}, "row 0 has no item"),
        ([(None, "a", "b")], {}, "row 0 has no user"),
        ([[("a", "b", "c")]], {}, "user '0', pair 0"),
        ([["ab"]], {}, "user '0', pair 0"),
        ([[("a", {"b", "c"})]], {}, "an item is one name"),
        (["ab"], {}, "user '0' has 'ab'"),
        ("ab", {}, "pairs='ab'"),
        (7, {}, "pairs=7"),
        (np.zeros((3, 2)), {}, r"shape \(3, 2\)"),
        ({"user": ["a"], "better": ["b"]}, {}, "columns="),
        ({"user": ["a"], "better": ["b"], "worse": []}, {}, r"lengths \[1, 1, 0\]"),
        ([[("a", "b")]], {"users": ["x", "y"]}, "users"),
        ([[], []], {"users": ["x", "x"], "items": ["a"]}, "two users are named 'x'"),
        ([[]], {"users": [None], "items": ["a"]}, "user 0 is missing"),
        ([("ann", "a", "b")], {"users": ["bob"]}, "row 0 .*users"),
        ([[("a", "b")]], {"counts": [1, 2]}, "counts has shape"),
        ([[]], {}, "no items"),
    ],
)
def test_invalid_input(pairs, options, message):
    with pytest.raises(RankingError, match=message):
        Preferences.from_pairs(pairs, **options)


def test_one_string_as_users():
    with pytest.raises(TypeError, match="users='x'"):
        Preferences.from_pairs([[("a", "b")]], users="x")


# ---------------------------------------------------------------------- indexing, equality, text


def test_indexing():
    prefs = Preferences.from_pairs([[("a", "b")], [("b", "c"), ("c", "a"), ("a", "b")], [("c", "a")]], counts=[1, 2, 3])
    assert prefs[1].users == ("1",)
    assert prefs[-1].counts.tolist() == [3]
    assert prefs[1:].contracted == ((("a", "b", "c"),), ())
    assert prefs[[2, 0]].users == ("2", "0")
    assert prefs[np.array([True, False, True])] == prefs[[0, 2]]
    assert prefs[::2] == prefs[[0, 2]]
    assert np.array_equal(prefs[2].before[0], prefs.before[2])
    assert [part.users for part in prefs] == [("0",), ("1",), ("2",)]
    with pytest.raises(IndexError):
        prefs[3]
    with pytest.raises(TypeError, match="by user"):
        prefs[0, 1]


def test_equality_hash_and_pickle():
    prefs = Preferences.from_pairs(TRIPLES)
    assert prefs == LONG
    assert hash(prefs) == hash(LONG)
    again = pickle.loads(pickle.dumps(prefs))
    assert again == prefs
    assert again.contracted == prefs.contracted
    assert not again.packed.flags.writeable
    assert prefs != Preferences.from_pairs(TRIPLES, counts=[1, 2])
    assert prefs != Preferences.from_pairs(TRIPLES, users=["bob", "ann"])
    assert prefs != Preferences.from_pairs(TRIPLES, items=["milk", "tea", "beer"])
    assert prefs != Preferences.from_pairs(TRIPLES[:2], items=prefs.items)
    assert prefs != "preferences"


def test_preferences_are_immutable():
    prefs = Preferences.from_pairs(TRIPLES)
    with pytest.raises(AttributeError):
        prefs.items = ()
    for array in (prefs.packed, prefs.before, prefs.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@settings(max_examples=40, deadline=None)
@given(users_pairs())
def test_to_pairs_is_minimal(data):
    n, users = data
    prefs = Preferences.from_pairs(users, items=range(n), counts=range(1, len(users) + 1))
    fewest = prefs.to_pairs()
    assert Preferences.from_pairs(fewest, prefs.items, counts=prefs.counts, users=prefs.users) == prefs
    for row, pairs in enumerate(fewest):
        for left_out in range(len(pairs)):
            fewer = Preferences.from_pairs([pairs[:left_out] + pairs[left_out + 1 :]], prefs.items)
            assert not np.array_equal(fewer.before[0], prefs.before[row])


def test_repr():
    prefs = Preferences.from_pairs(
        [[("a", "b"), ("b", "c"), ("a", "c")], [("a\n", "b"), ("b", "c"), ("c", "a\n")]], counts=[1, 2]
    )
    assert repr(prefs).splitlines() == [
        "Preferences: 2 users from 3 voters, 4 items (1 user with cycles)",
        "  0: 1 × a > b, b > c",
        "  1: 2 × no order (contracted: {b, c, a\\n})",
    ]
    many = Preferences.from_pairs([list(itertools.product("abc", "xyz"))] * 10)
    assert repr(many).splitlines()[1] == "  0: a > x, a > y, a > z, b > x, b > y, b > z, ... 3 more"
    assert repr(many).splitlines()[-1] == "  ... and 2 more"
