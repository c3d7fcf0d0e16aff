"""The data type Rankings and its constructors."""

import pickle
from collections import Counter
from math import comb, factorial

import naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import rankernel as rk
from rankernel import RankingError, Rankings

# ---------------------------------------------------------------------- construction


def test_from_orders():
    ballots = Rankings.from_orders([["tea", "milk"], ["milk", {"tea", "coffee"}]])
    assert ballots.items == ("tea", "milk", "coffee")
    assert ballots.ranks.tolist() == [[0, 1, 2], [1, 0, 1]]
    assert ballots.counts.tolist() == [1, 1]


def test_unlisted_items():
    orders = [["a"], ["b", "a", "c"]]
    assert Rankings.from_orders(orders, items=["a", "b", "c"]).ranks.tolist() == [[0, 1, 1], [1, 0, 2]]
    free = Rankings.from_orders(orders, items=["a", "b", "c"], unlisted="free")
    assert free.ranks.tolist() == [[0, -1, -1], [1, 0, 2]]


@pytest.mark.parametrize(
    "table",
    [
        np.array([[1, 2, -1], [3, 3, 7]]),
        [[1, 2, None], [3, 3, 7]],
        np.array([[1.0, 2.0, np.nan], [3.0, 3.0, 7.0]]),
        pd.DataFrame({"a": [1, 3], "b": [2, 3], "c": [None, 7]}),
        pd.DataFrame({"a": [1, 3], "b": [2, 3], "c": [None, 7]}).astype("Int64"),
        pl.DataFrame({"a": [1, 3], "b": [2, 3], "c": [None, 7]}),
    ],
)
def test_from_ranks(table):
    assert Rankings.from_ranks(table).ranks.tolist() == [[0, 1, 2], [0, 0, 1]]
    assert Rankings.from_ranks(table, unlisted="free").ranks.tolist() == [[0, 1, -1], [0, 0, 1]]
    assert Rankings.from_ranks(table).items in (("a", "b", "c"), ("0", "1", "2"))


def test_from_scores():
    scores = pl.DataFrame({"x": [0.2, 5.0], "y": [0.9, None], "z": [0.2, -1.0]})
    assert Rankings.from_scores(scores).ranks.tolist() == [[1, 0, 1], [0, 2, 1]]
    assert Rankings.from_scores(scores, unlisted="free").ranks.tolist() == [[1, 0, 1], [0, -1, 1]]
    small = np.array([[np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max]])
    assert Rankings.from_scores(small).ranks.tolist() == [[2, 1, 0]]
    assert Rankings.from_scores(np.array([[0, 255]], dtype=np.uint8)).ranks.tolist() == [[1, 0]]
    assert Rankings.from_scores([[-np.inf, np.inf, 0.0]]).ranks.tolist() == [[2, 0, 1]]


def test_plain_array():
    assert Rankings(np.array([[5, -1, 9]])).ranks.tolist() == [[0, -1, 1]]
    free = Rankings.from_orders([["a"]], items=["a", "b"], unlisted="free")
    assert Rankings(np.asarray(free), free.items) == free


def test_counts_in_a_column():
    frame = pd.DataFrame({"a": [1, 2], "votes": [10, 3], "b": [2, 1]})
    ballots = Rankings.from_ranks(frame, counts="votes")
    assert ballots.items == ("a", "b")
    assert ballots.counts.tolist() == [10, 3]


@pytest.mark.parametrize("n", [1, 3000])
def test_numbers_of_items(n):
    ballots = Rankings.from_orders([list(range(n))], items=range(n))
    assert ballots.ranks.tolist() == [list(range(n))]
    assert ballots.kinds().tolist() == ["full"]
    assert ballots.n_completions() == [1]
    assert len(repr(ballots)) < 500


def test_no_rankings():
    empty = Rankings.from_orders([], items=["a", "b"])
    assert len(empty) == 0
    assert empty.kinds().tolist() == []
    assert empty.n_completions() == []
    assert empty.unique() == empty
    assert empty.top(1) == empty
    assert repr(empty) == "Rankings: 0 rankings of 2 items"
    assert rk.Mallows(0.1).gram(empty).shape == (0, 0)
    assert Rankings.from_ranks(np.empty((0, 2)), items=["a", "b"]) == empty


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Rankings.from_orders([["a"], ["b", "b"]]), r"row 1 lists item 'b' twice"),
        (lambda: Rankings.from_orders([["a", {"b", "a"}]]), r"row 0 lists item 'a' twice"),
        (lambda: Rankings.from_orders([["a", "x"]], items=["a", "b"]), r"row 0 lists 'x', .* items"),
        (lambda: Rankings.from_orders([[None, "a"]]), r"row 0 lists a missing value"),
        (lambda: Rankings.from_orders([["a", float("nan"), "b"]]), r"row 0 lists a missing value"),
        (lambda: Rankings.from_orders([["a", ["b", "c"]]]), r"write a tie as a set"),
        (lambda: Rankings.from_orders([["a", set()]]), r"row 0 has an empty tie"),
        (lambda: Rankings.from_orders(["ab"]), r"row 0 is 'ab'"),
        (lambda: Rankings.from_orders([{"a", "b"}]), r"row 0 is a set, which has no order"),
        (lambda: Rankings.from_orders([]), r"items"),
        (lambda: Rankings.from_orders([["a"]], items=[]), r"items"),
        (lambda: Rankings.from_orders([["a"]], items="abc"), r"items='abc'"),
        (lambda: Rankings.from_orders([["a"]], items=["a", "a"]), r"items 0 and 1 are both named 'a'"),
        (lambda: Rankings.from_orders([[1, "1"]]), r"lists item '1' twice"),
        (lambda: Rankings.from_orders([["a"]], unlisted="first"), r"unlisted='first'"),
        (lambda: Rankings.from_orders([["a"]], counts=[1, 2]), r"counts has shape \(2,\)"),
        (lambda: Rankings.from_orders([["a"], ["a"]], counts=[3, 0]), r"row 1 has count 0"),
        (lambda: Rankings.from_orders([["a"]], counts=[1.5]), r"row 0 has count 1.5"),
        (lambda: Rankings.from_orders([["a"]], counts=[np.nan]), r"row 0 has count nan"),
        (lambda: Rankings.from_orders([["a"]], counts=["x"]), r"row 0 has count x; counts are whole numbers"),
        (lambda: Rankings.from_ranks([[0, 1], [0]]), r"row 1 has 1 entries but row 0 has 2"),
        (lambda: Rankings.from_ranks(np.zeros(3, dtype=int)), r"1 dimension"),
        (lambda: Rankings.from_ranks([[0, 1.5]]), r"row 0, item '1' holds 1.5; a rank is a whole number"),
        (lambda: Rankings.from_ranks([[0, np.inf]]), r"row 0, item '1' holds inf"),
        (lambda: Rankings.from_ranks([[0, 1], [1, -2]]), r"row 1, item '1' holds -2; a rank is 0 or more"),
        (lambda: Rankings.from_ranks([["a", "b"]]), r"row 0, item '0' holds 'a'; a rank is a number"),
        (lambda: Rankings.from_ranks(np.array([[True, False]])), r"bool"),
        (lambda: Rankings.from_ranks(np.zeros((2, 0))), r"items"),
        (lambda: Rankings.from_ranks([[0, 1]], items=["a"]), r"items has 1 names"),
        (lambda: Rankings.from_ranks([[0, 1]], items=["a", None]), r"the name of item 1 is missing"),
        (lambda: Rankings.from_ranks([[0, 1]], counts="votes"), r"counts='votes'"),
        (lambda: Rankings.from_ranks(pd.DataFrame({"a": [1]}), counts="votes"), r"counts='votes'"),
        (lambda: Rankings.from_scores([["x", 1]]), r"row 0, item '0' holds 'x'; a score is a number"),
        (lambda: Rankings.from_ranks(Rankings([[0, 1]])), r"is a Rankings object already"),
        (lambda: Rankings([[0, 1]]).top(-1), r"k=-1"),
        (lambda: Rankings([[0, 1]]).with_items(["0", "2"]), r"items"),
        (lambda: rk.concat([]), r"parts"),
        (lambda: rk.concat([Rankings([[0, 1]]), Rankings([[0]])]), r"parts\[1\]"),
        (lambda: Rankings([[0]], items=["count"]).to_frame(), r"count='count'"),
    ],
)
def test_invalid_input(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_control_characters_are_escaped():
    ballots = Rankings.from_orders([["a\x1b[31m", "b\nc"]])
    assert "\x1b" not in repr(ballots)
    assert "a\\x1b[31m > b\\nc" in repr(ballots)
    with pytest.raises(RankingError, match=r"\\x1b") as caught:
        Rankings.from_orders([["\x1b", "\x1b"]])
    assert "\x1b" not in str(caught.value)


# ---------------------------------------------------------------------- immutable


def test_rankings_are_immutable():
    given_ranks, given_counts = np.array([[0, 1], [1, 0]]), np.array([1, 2])
    ballots = Rankings(given_ranks, counts=given_counts)
    given_ranks[0], given_counts[0] = 1, 9
    assert ballots.ranks.tolist() == [[0, 1], [1, 0]]
    assert ballots.counts.tolist() == [1, 2]
    for array in (ballots.ranks, ballots.counts, ballots[:1].ranks, ballots.unique().counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        ballots.items = ("x",)


def test_pickling():
    ballots = Rankings.from_orders([["a", "b"], ["b"]], counts=[2, 3])
    again = pickle.loads(pickle.dumps(ballots))
    assert again == ballots
    assert hash(again) == hash(ballots)
    assert not again.ranks.flags.writeable


def test_equality():
    ballots = Rankings([[0, 1]])
    assert ballots == Rankings([[3, 8]])
    assert ballots != Rankings([[1, 0]])
    assert ballots != Rankings([[0, 1]], items=["a", "b"])
    assert ballots != Rankings([[0, 1]], counts=[2])
    assert ballots != "rankings"


# ---------------------------------------------------------------------- slices


def test_indexing():
    ballots = Rankings.from_orders([["a", "b"], ["b", "a"], [{"a", "b"}]], counts=[5, 6, 7])
    assert ballots[1].to_orders() == [["b", "a"]]
    assert ballots[-1] == ballots[2:]
    assert ballots[[True, False, True]].counts.tolist() == [5, 7]
    assert ballots[np.array([2, 0])].counts.tolist() == [7, 5]
    assert [len(one) for one in ballots] == [1, 1, 1]
    assert np.shares_memory(ballots[1:].ranks, ballots.ranks)
    with pytest.raises(IndexError):
        ballots[3]
    with pytest.raises(TypeError, match="by row"):
        ballots[0, 1]


def test_conversion_to_arrays():
    ballots = Rankings([[0, 1]])
    assert np.asarray(ballots) is ballots.ranks
    assert np.array(ballots, dtype=float).tolist() == [[0.0, 1.0]]
    assert np.array(ballots).flags.writeable
    with pytest.raises(ValueError, match="needs a copy"):
        ballots.__array__(dtype=np.float64, copy=False)


# ---------------------------------------------------------------------- properties


def test_kinds():
    ballots = Rankings.from_ranks(
        [[0, 1, 2], [0, 1, 1], [0, 0, 0], [0, 0, 1], [0, 1, -1], [-1, -1, -1], [1, 0, 1]], unlisted="free"
    )
    expected = ["full", "top-k", "top-k", "exhaustive", "incomplete", "incomplete", "top-k"]
    assert ballots.kinds().tolist() == expected


@settings(max_examples=40)
@given(strategies.sized(strategies.any_ranking))
def test_n_completions(rows):
    assert Rankings(rows).n_completions() == [len(naive.completions(row)) for row in rows]


PAPER_SUBSETS = {
    3: [3, 1],
    4: [12, 4, 1],
    5: [60, 20, 5, 1],
    6: [360, 120, 30, 6],
    7: [2520, 840, 210, 42],
    8: [20160, 6720, 1680, 336],
    9: [181440, 60480, 15120, 3024],
    10: [1814400, 604800, 151200, 30240],
}


@pytest.mark.parametrize(
    ("n", "pairs", "size"), [(n, p + 1, size) for n, sizes in PAPER_SUBSETS.items() for p, size in enumerate(sizes)]
)
def test_subset_sizes_of_the_paper(n, pairs, size):
    """Appendix D: p overlapping pairs a > b, b > c, ... are a chain of p + 1 items; the others are free."""
    chain = Rankings.from_orders([range(pairs + 1)], items=range(n), unlisted="free")
    assert chain.n_completions() == [size]


def test_large_n_completions():
    tied = Rankings.from_orders([[0]], items=range(60))
    assert tied.n_completions() == [factorial(59)]
    free = Rankings.from_orders([[0, 1]], items=range(60), unlisted="free")
    assert free.n_completions() == [comb(60, 2) * factorial(58)]


# ---------------------------------------------------------------------- new from old


@settings(max_examples=50)
@given(strategies.sized(strategies.any_ranking), st.integers(0, 7), st.sampled_from(["last", "free"]))
def test_top(rows, k, unlisted):
    (row,) = rows
    cut = Rankings(rows).top(k, unlisted=unlisted).ranks[0].tolist()
    buckets = [[a for a, r in enumerate(row) if r == rank] for rank in range(max(row) + 1)]
    expected = [-1] * len(row)
    kept = 0
    while buckets and sum(map(len, buckets[: kept + 1])) <= k and kept < len(buckets):
        kept += 1
    for rank, bucket in enumerate(buckets):
        for a in bucket:
            expected[a] = rank if rank < kept else (kept if unlisted == "last" else -1)
    assert cut == expected


def test_unique():
    ballots = Rankings.from_orders([["b", "a"], ["a", "b"], ["b", "a"], [{"a", "b"}]], counts=[1, 2, 3, 4])
    merged = ballots.unique()
    assert merged.to_orders() == [["b", "a"], ["a", "b"], [{"a", "b"}]]
    assert merged.counts.tolist() == [4, 2, 4]


@settings(max_examples=40)
@given(strategies.sized(strategies.any_ranking, high=4, length=12))
def test_unique_keeps_all_voters(rows):
    merged = Rankings(rows).unique()
    dense = [tuple(row) for row in Rankings(rows).ranks.tolist()]
    assert Counter(dense) == dict(zip(map(tuple, merged.ranks.tolist()), merged.counts.tolist(), strict=True))


def test_with_items_and_concat():
    a = Rankings.from_orders([["x", "y"]], counts=[2])
    b = Rankings.from_orders([["y", "x"]])
    both = rk.concat([a, b])
    assert both.items == ("x", "y")
    assert both.to_orders() == [["x", "y"], ["y", "x"]]
    assert both.counts.tolist() == [2, 1]
    assert a.with_items(["z", "y", "x"]).ranks.tolist() == [[2, 1, 0]]
    assert a.with_items(["z", "y", "x"], unlisted="free").ranks.tolist() == [[-1, 1, 0]]


# ---------------------------------------------------------------------- conversion


@settings(max_examples=40)
@given(strategies.sized(strategies.any_ranking, length=3))
def test_round_trips(rows):
    ballots = Rankings(rows, counts=[1, 2, 3])
    assert Rankings.from_orders(ballots.to_orders(), ballots.items, counts=ballots.counts, unlisted="free") == ballots
    assert Rankings.from_ranks(ballots.to_frame(), counts="count", unlisted="free") == ballots


def test_repr():
    ballots = Rankings.from_orders([["a", "b", "c"], ["c"]] + [["b"]] * 10, counts=[1000] + [1] * 11)
    lines = repr(ballots).splitlines()
    assert lines[0] == "Rankings: 12 rankings from 1,011 voters of 3 items (1 full, 11 top-k)"
    assert lines[1] == "  1,000 × a > b > c"
    assert lines[2] == "  1 × c > {a, b}"
    assert lines[-1] == "  ... and 4 more"
