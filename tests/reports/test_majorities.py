"""Who is ahead: counts of what voters say, winners, circles, the best order and the next, against their definitions."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel import Preferences, Rankings
from rankernel.models.kemeny_search import kemeny_order, next_best_order, total_cost
from rankernel.reports.majorities import count_majorities, find_best_order
from rankernel.reports.source import Source
from rankernel.reports.story import first_text, lede, order_text
from rankernel.reports.summary import Settings, summarize


def slow_ahead(ranks, counts):
    n = len(ranks[0])
    ahead = [[0] * n for _ in range(n)]
    for row, count in zip(ranks, counts, strict=True):
        for a in range(n):
            for b in range(n):
                if row[a] >= 0 and row[b] >= 0 and row[a] < row[b]:
                    ahead[a][b] += count
    return ahead


def slow_smith_set(ahead):
    n = len(ahead)
    for size in range(1, n + 1):
        for inside in combinations(range(n), size):
            outside = set(range(n)) - set(inside)
            if all(ahead[a][b] > ahead[b][a] for a in inside for b in outside):
                return list(inside)
    raise AssertionError


margins = st.integers(2, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(-1, n - 1), min_size=n, max_size=n), min_size=1, max_size=6)
)


def as_rankings(rows):
    """Whole numbers as rankings: -1 is free, the others are dense buckets."""
    dense = [[-1 if x < 0 else sorted({y for y in row if y >= 0}).index(x) for x in row] for row in rows]
    return Rankings(dense)


@given(margins)
@settings(max_examples=60, deadline=None)
def test_counts_winner_and_smith_set(rows):
    rankings = as_rankings(rows)
    found = count_majorities(rankings)
    ahead = slow_ahead(rankings.ranks.tolist(), rankings.counts.tolist())
    assert found.ahead.tolist() == ahead
    assert (found.ahead + found.ahead.T + found.undecided == len(rows)).all()
    smith = slow_smith_set(ahead)
    assert found.smith_set().tolist() == smith
    assert found.winner == (smith[0] if len(smith) == 1 else None)
    circle = found.cycle()
    assert set(circle) <= set(smith)
    assert all(found.beats[a, b] for a, b in zip(circle, [*circle[1:], *circle[:1]], strict=True))


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_next_best_order_against_all_orders(n, seed):
    votes = np.random.default_rng(seed).integers(0, 4, (n, n))
    shares = 0.5 + (votes - votes.T) / 20
    best = kemeny_order(shares, 16, 1, np.random.default_rng(0)).order
    costs = sorted(total_cost(shares, np.array(order)) for order in permutations(range(n)))
    other = next_best_order(shares, best, 16)
    assert total_cost(shares, best) == pytest.approx(costs[0])
    assert total_cost(shares, other) == pytest.approx(costs[1])
    assert other.tolist() != best.tolist()


def test_preferences_are_counted_with_what_follows_from_them():
    data = Preferences.from_pairs([[("a", "b"), ("b", "c")], [("c", "a"), ("b", "d")]], counts=[3, 1])
    found = count_majorities(data)
    a, b, c = (data.items.index(name) for name in "abc")
    assert (found.ahead[a, c], found.ahead[c, a], found.undecided[a, b]) == (3, 1, 1)


def test_the_headline_of_the_bundled_example_is_what_was_counted():
    from rankernel.datasets import load_example

    example = load_example().rankings
    c, a = (example.items.index(name) for name in ("Cindervale", "Amberlow"))
    for_c = int(example.counts[example.ranks[:, c] < example.ranks[:, a]].sum())
    for_a = int(example.counts[example.ranks[:, a] < example.ranks[:, c]].sum())
    assert (for_c, for_a) == (923, 813)
    words = lede(summarize(Source(example, noun="candidate"), Settings(n_clusters=1)))
    assert "38.5% put Cindervale before Amberlow, 33.9% the reverse, 27.7% put neither before the other" in words
    assert "half" not in words


def test_a_circle_is_told_with_who_beats_whom():
    cycle = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    words = lede(summarize(Source(cycle)))
    assert "majorities run in a circle" in words
    for duel in ("a beats b", "b beats c", "c beats a"):
        assert f"{duel} (66.7% to 33.3%, 0.0% undecided)" in words
    assert "in percent of all voters" in words
    assert "Each of" not in words  # the circle is all there is


def test_more_in_circles_than_the_shortest_one_is_told():
    words = lede(summarize(Source(Rankings.from_orders([list("abcd"), list("bcda"), list("cdab")]))))
    assert "Each of the 4 items loses to another one of them." in words


def test_level_items_are_told():
    words = lede(summarize(Source(Rankings.from_orders([["a", "b"], ["b", "a"]]))))
    assert "but a and b lose to none and are level with each other. 50.0% put a before b, 50.0% the reverse" in words


def test_only_items_that_are_level_are_said_to_be():
    """Both voters put Ann before Bob."""
    orders = [["Ann", "Bob", "Cy"], ["Cy", "Ann", "Bob"]]
    words = lede(summarize(Source(Rankings.from_orders(orders, items=["Ann", "Bob", "Cy"]))))
    assert "but Ann and Cy lose to none and are level with each other" in words
    assert "Bob" not in words


def test_an_item_that_alone_loses_to_none_is_told_with_whom_it_is_level():
    orders = [["a", "b", "c"], ["b", "a", "c"], ["b", "c", "a"], ["a", "c", "b"], ["c", "a", "b"], ["b", "a", "c"]]
    rankings = Rankings.from_orders(orders, items=list("abc"))
    found = count_majorities(rankings)
    assert found.unbeaten.tolist() == [0, 1]
    assert found.level_with(0).tolist() == [1]


def test_equal_first_choices_are_told_together():
    rankings = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]], counts=[2, 2, 1])
    study = summarize(Source(rankings))
    assert first_text(study) == "Most first choices: a and b with 40% each of those who have one, then c with 20%."


def test_nothing_said_is_told():
    assert "No voter puts one item before another" in lede(summarize(Source(Rankings([[0, 0], [0, 0]]))))


def test_how_close_the_next_best_order_comes():
    rankings = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[6, 4])
    study = summarize(Source(rankings))
    assert study.best_order.excess == 2
    assert study.best_order.contradicted == pytest.approx(4 / 30)
    assert "The next best, with b and c swapped, contradicts 2 more statements of voters" in order_text(study)


def test_long_circles_are_searched_and_said_to_be():
    n = 18
    votes = np.zeros((n, n), dtype=np.int64)
    for a in range(n):
        for step in range(1, n // 2):
            votes[a, (a + step) % n] = 2
            votes[(a + step) % n, a] = 1
    from rankernel.reports.majorities import Majorities

    found = find_best_order(Majorities(3, votes), seed=0)
    assert not found.exact
    assert sorted(found.order.tolist()) == list(range(n))
    assert found.excess >= 0
