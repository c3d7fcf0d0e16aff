"""Standing of items: head-to-head contests, Condorcet winners and cycles, Kemeny rankings and their sentences."""

import re
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankernel import Preferences, Rankings, report
from rankernel.datasets import load_example
from rankernel.models.kemeny_search import kemeny_order, next_best_order, total_cost
from rankernel.reports.ballots import (
    Contests,
    Source,
    count_contests,
    find_kemeny_ranking,
    first_counts,
    mean_positions,
)
from rankernel.reports.clusters import Settings
from rankernel.reports.summary import first_choices, headline, kemeny_ranking, summarize


def brute_force_ahead(ranks, counts):
    n = len(ranks[0])
    ahead = [[0] * n for _ in range(n)]
    for row, count in zip(ranks, counts, strict=True):
        for a in range(n):
            for b in range(n):
                if row[a] >= 0 and row[b] >= 0 and row[a] < row[b]:
                    ahead[a][b] += count
    return ahead


def brute_force_smith_set(ahead):
    n = len(ahead)
    for size in range(1, n + 1):
        for inside in combinations(range(n), size):
            outside = set(range(n)) - set(inside)
            if all(ahead[a][b] > ahead[b][a] for a in inside for b in outside):
                return list(inside)
    raise AssertionError


rank_tables = st.integers(2, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(-1, n - 1), min_size=n, max_size=n), min_size=1, max_size=6)
)


def as_rankings(rows):
    """Return integers as rankings: -1 is free, the others become consecutive buckets."""
    return Rankings([[-1 if x < 0 else sorted({y for y in row if y >= 0}).index(x) for x in row] for row in rows])


@given(rank_tables)
@settings(max_examples=60, deadline=None)
def test_contests_match_brute_force(rows):
    rankings = as_rankings(rows)
    contests = count_contests(rankings)
    ahead = brute_force_ahead(rankings.ranks.tolist(), rankings.counts.tolist())
    assert contests.ahead.tolist() == ahead
    assert (contests.ahead + contests.ahead.T + contests.undecided == len(rows)).all()
    smith = brute_force_smith_set(ahead)
    assert contests.smith_set().tolist() == smith
    assert contests.condorcet_winner == (smith[0] if len(smith) == 1 else None)
    cycle = contests.cycle()
    assert set(cycle) <= set(smith)
    assert all(contests.beats[a, b] for a, b in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_second_best_order_matches_brute_force(n, seed):
    votes = np.random.default_rng(seed).integers(0, 4, (n, n))
    shares = 0.5 + (votes - votes.T) / 20
    best = kemeny_order(shares, 16, 1, np.random.default_rng(0)).order
    costs = sorted(total_cost(shares, np.array(order)) for order in permutations(range(n)))
    other = next_best_order(shares, best, 16)
    assert total_cost(shares, best) == pytest.approx(costs[0])
    assert total_cost(shares, other) == pytest.approx(costs[1])
    assert other.tolist() != best.tolist()


def test_contests_of_preferences_include_implied_pairs():
    data = Preferences.from_pairs([[("a", "b"), ("b", "c")], [("c", "a"), ("b", "d")]], counts=[3, 1])
    contests = count_contests(data)
    a, b, c = (data.items.index(name) for name in "abc")
    assert (contests.ahead[a, c], contests.ahead[c, a], contests.undecided[a, b]) == (3, 1, 1)


def test_positions_and_first_choices():
    rankings = Rankings.from_orders([["a", "b", "c"], [{"b", "c"}, "a"]], counts=[3, 1])
    assert mean_positions(rankings) == pytest.approx([(3 * 1 + 3) / 4, (3 * 2 + 1.5) / 4, (3 * 3 + 1.5) / 4])
    assert first_counts(rankings) == pytest.approx([3, 0.5, 0.5])


def test_ballots_without_preference_have_no_first_choice():
    rankings = Rankings([[0, 0], [0, 1], [-1, -1], [-1, 0]], counts=[7, 1, 5, 3])
    assert first_counts(rankings) == pytest.approx([1, 3])
    assert first_counts(rankings[:1]).tolist() == [0, 0]


def test_headline_of_the_example_matches_counts():
    example = load_example().rankings
    c, a = (example.items.index(name) for name in ("Cindervale", "Amberlow"))
    for_c = int(example.counts[example.ranks[:, c] < example.ranks[:, a]].sum())
    for_a = int(example.counts[example.ranks[:, a] < example.ranks[:, c]].sum())
    assert (for_c, for_a) == (923, 813)
    text = headline(summarize(Source(example, noun="candidate"), Settings(n_clusters=1)))
    assert "Cindervale is the Condorcet winner" in text
    assert "38.5% of the voters rank Cindervale above Amberlow, 33.9% the reverse, 27.7% neither" in text


def test_headline_of_a_condorcet_cycle():
    text = report([[0, 1, 2], [2, 0, 1], [1, 2, 0]]).headline
    assert "no Condorcet winner" in text
    assert "Condorcet cycle" in text
    for first, second in ("01", "12", "20"):
        assert f"{first} beats {second} by 66.7% to 33.3%" in text
    assert "Smith" not in text  # the cycle has all items


def test_headline_names_a_larger_smith_set():
    text = report(Rankings.from_orders([list("abcd"), list("bcda"), list("cdab")])).headline
    assert "Smith set has 4 items" in text


def test_headline_of_tied_items():
    text = report(Rankings.from_orders([["a", "b"], ["b", "a"]])).headline
    assert "a and b lose no head-to-head contest and tie with each other" in text
    assert "50.0% of the voters rank a above b, 50.0% the reverse" in text


def test_headline_names_only_unbeaten_items():
    """Both voters rank Ann above Bob."""
    orders = [["Ann", "Bob", "Cy"], ["Cy", "Ann", "Bob"]]
    text = report(Rankings.from_orders(orders, items=["Ann", "Bob", "Cy"])).headline
    assert "Ann and Cy lose no head-to-head contest" in text
    assert "Bob" not in text


def test_headline_of_one_unbeaten_item():
    orders = [["c", "b", "a"], ["a", "c", "b"], ["b", "a", "c"]]
    text = report(Rankings.from_orders(orders, items=list("abc"), counts=[2, 1, 1])).headline
    assert "There is no Condorcet winner: c loses no head-to-head contest, but ties with a." in text
    assert "50.0% of the voters rank c above a, 50.0% the reverse" in text


def test_equal_first_choices_are_listed_together():
    rankings = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]], counts=[2, 2, 1])
    text = first_choices(summarize(Source(rankings), Settings(n_clusters=1)))
    assert "a and b with 40% each" in text
    assert "c with 20%" in text


def test_only_first_choice():
    rankings = Rankings([[0, 1, 2], [0, 2, 1]], list("abc"), counts=[3, 2])
    assert first_choices(summarize(Source(rankings))) == "All first choices go to a."


def test_headline_without_preferences():
    assert "No voter ranks one item above another" in report(Rankings([[0, 0], [0, 0]])).headline


def test_kemeny_disagreement_and_second_best():
    rankings = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[6, 4])
    summary = summarize(Source(rankings))
    assert summary.kemeny.excess == 2
    assert summary.kemeny.disagreement == pytest.approx(4 / 30)
    text = kemeny_ranking(summary)
    assert "The Kemeny ranking is a > b > c. It disagrees with 13% of the voters’ pairwise preferences." in text
    assert "b and c swapped" in text
    assert "2 more preferences" in text


def test_long_cycles_are_searched_without_proof():
    n = 18
    votes = np.zeros((n, n), dtype=np.int64)
    for a in range(n):
        for step in range(1, n // 2):
            votes[a, (a + step) % n] = 2
            votes[(a + step) % n, a] = 1
    kemeny = find_kemeny_ranking(Contests(3, votes), seed=0)
    assert not kemeny.exact
    assert sorted(kemeny.order.tolist()) == list(range(n))
    assert kemeny.excess >= 0


# ---------------------------------------------------------------------- samples and full counts


def headline_of(counts, **options):
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=counts)
    return headline(summarize(Source(rankings, **options), Settings(n_clusters=1)))


def test_closest_contest_of_a_sample_has_an_interval():
    found = re.search(
        r"interval of the difference: (-?[\d.]+) to (-?[\d.]+) percentage points", headline_of([240, 160])
    )
    error = 100 * 2 * np.sqrt(0.6 * 0.4 / 400)  # of the difference between two shares that add up to 1
    expected = 20 - 1.96 * error, 20 + 1.96 * error
    assert tuple(map(float, found.groups())) == pytest.approx(expected, abs=0.2 * error)


def test_full_count_has_no_interval():
    assert "interval" not in headline_of([240, 160], noun="candidate")
    assert "interval" not in headline_of([240, 160], sample=False)
    assert "interval" in headline_of([240, 160], noun="candidate", sample=True)


def test_page_says_whether_voters_are_a_sample():
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 2])
    assert "The voters are taken as a sample" in report(rankings).html
    assert "The ballots are taken as a full count" in report(rankings, noun="candidate").html
    assert "The voters are taken as a sample" in report(rankings, noun="candidate", sample=True).html
