"""Reports: counts, clusters, groups and sentences are right, the page is self-contained, and names stay text."""

import base64
import hashlib
import html
import io
import itertools
import json
import math
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from html.parser import HTMLParser

import jinja2
import numpy as np
import pytest
from scipy.stats import binomtest

import rankernel as rk
from rankernel import Kendall, Mallows, Rankings, read, report
from rankernel.datasets import load_example, mallows
from rankernel.errors import MissingExtraError, RankingError
from rankernel.reports.ballots import Source, distinct_ballots, mean_positions, sample_voters, view_of
from rankernel.reports.clusters import Settings, distinctions, letter
from rankernel.reports.groups import (
    QUANTILE,
    bootstrap_intervals,
    compare_groups,
    excludes_zero,
    groups_in_pairs,
    groups_to_compare,
    pairs_in_words,
)
from rankernel.reports.page import content_policy, environment, palette, png_address, render_page, script_data
from rankernel.reports.summary import summarize
from rankernel.reports.text import ballot_text, percent, pvalue_text
from rankernel.stats.differences import share_intervals
from rankernel.stats.groups import k_sample_test

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><script>alert(3)</script>",
    "' onmouseover='alert(4)",
    "{{script}}",
    "&lt;b&gt;",
    "<!--",
    "\u202eevil\u2028",
    "$&\\1",
]


def example():
    election = load_example()
    return Source(election.rankings, "Nowhere Bay", group_name="district", groups=election.districts, noun="candidate")


def page_about(source, **settings):
    return render_page(summarize(source, Settings(**settings)))


def text_of(page):
    """Return the text of a page without its markup, script and style."""
    return " ".join(html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)).split())


@pytest.fixture(scope="module")
def summary():
    return summarize(example(), Settings(n_permutations=99))


@pytest.fixture(scope="module")
def page(summary):
    return render_page(summary)


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text in elements of each name."""

    def __init__(self, written):
        super().__init__(convert_charrefs=True)
        self.found, self.texts, self.stack = [], {}, []
        self.feed(written)

    def handle_starttag(self, name, attributes):
        self.found.append((name, dict(attributes)))
        self.stack.append(name)

    def handle_startendtag(self, name, attributes):
        self.found.append((name, dict(attributes)))

    def handle_endtag(self, name):
        if name in self.stack:
            while self.stack.pop() != name:
                pass

    def handle_data(self, data):
        if self.stack:
            self.texts.setdefault(self.stack[-1], []).append(data)

    def named(self, name):
        return [attributes for kind, attributes in self.found if kind == name]


# ---------------------------------------------------------------------- ballots and clusters


@pytest.mark.parametrize("folder", ["writable", "missing"])
def test_templates_are_compiled_once_where_they_can_be_stored(folder, tmp_path, monkeypatch):
    stored = tmp_path / "writable"
    stored.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
    environment.cache_clear()
    try:
        page = environment().get_template("page.html")
        files = list(stored.rglob("*.cache"))
        environment.cache_clear()
        monkeypatch.setattr(jinja2.Environment, "_compile", None)  # an error unless nothing is compiled
        assert bool(files) == (folder == "writable")
        if files:
            assert environment().get_template("page.html").root_render_func is not page.root_render_func
    finally:
        environment.cache_clear()


def test_ballots_are_counted_by_group():
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]], counts=[2, 3, 5])
    ballots = distinct_ballots(Source(rankings, groups=np.array(["x", "x", "y"])))
    assert ballots.groups == ("x", "y")
    assert ballots.by_group.tolist() == [[2, 5], [3, 0]]
    assert ballots.rankings.counts.tolist() == [7, 3]
    assert ballots.of_group(1).counts.tolist() == [5]


def test_names_that_print_alike_are_numbered():
    rankings = Rankings([[0, 1]], items=["a\n", "a\\n"])
    assert distinct_ballots(Source(rankings)).rankings.items == ("a\\n", "a\\n (2)")


def test_voters_are_sampled_without_replacement():
    counts = np.array([5, 1, 94])
    rows, sampled = sample_voters(counts, 60, np.random.default_rng(0))
    assert sampled.sum() == 60
    assert (sampled <= counts[rows]).all()
    total = np.zeros(3)
    for seed in range(300):
        rows, sampled = sample_voters(counts, 20, np.random.default_rng(seed))
        total[rows] += sampled
    # Hypergeometric: 20 of 100, so each voter is sampled with probability 1/5.
    deviation = np.sqrt(300 * 20 * (counts / 100) * (1 - counts / 100) * 80 / 99)
    assert (np.abs(total - 300 * counts / 5) < 5 * deviation).all()


def test_few_ballots_are_all_shown():
    view = view_of(distinct_ballots(example()), limit=656, seed=0)
    assert not view.sampled
    assert view.n_voters == 2400


def test_letters():
    assert [letter(number) for number in (0, 25, 26, 53)] == ["A", "Z", "A2", "B3"]


def test_clusters_of_the_example_are_its_blocs(summary):
    election = load_example()
    clusters = summary.clustering.clusters
    assert [cluster.name for cluster in clusters] == ["A", "B", "C"]
    label_of = dict(zip(map(bytes, summary.ballots.rankings.ranks), summary.labels, strict=True))
    leaders = {"harbour": "Amberlow", "foundry": "Glimmerby", "orchard": "Eldermist"}
    agree = 0
    for bloc, ranks, count in zip(election.groups, election.rankings.ranks, election.rankings.counts, strict=True):
        agree += count * (clusters[label_of[bytes(ranks)]].consensus_order[0][1] == leaders[bloc])
    assert agree / 2400 > 0.9


def test_cluster_sizes_and_shifts_add_up(summary):
    clusters, rankings = summary.clustering.clusters, summary.ballots.rankings
    assert sum(cluster.n_voters for cluster in clusters) == rankings.n_voters
    sizes = [cluster.n_voters for cluster in clusters]
    assert sizes == sorted(sizes, reverse=True)
    mean_shift = sum(cluster.n_voters * cluster.shift for cluster in clusters) / rankings.n_voters
    assert mean_shift == pytest.approx(np.zeros(rankings.n_items), abs=1e-12)
    assert summary.clustering.shown.tolist() == summary.clustering.labels.tolist()


def test_distinctions_are_true_and_unique(summary):
    found = [cluster.distinction for cluster in summary.clustering.clusters]
    assert len({each.label for each in found}) == len(found)
    rankings = summary.ballots.rankings
    for number, each in enumerate(found):
        ranks = rankings.ranks[:, rankings.items.index(each.first)]
        if each.kind == "first":
            holds = (ranks == 0) / (rankings.ranks == 0).sum(axis=1)
        else:
            holds = ranks < rankings.ranks[:, rankings.items.index(each.second)]
        for members, share in ((summary.labels == number, each.share), (summary.labels != number, each.others)):
            assert share == pytest.approx(np.average(holds[members], weights=rankings.counts[members]))
        assert each.share > each.others + 0.3
        assert each.lift == pytest.approx(each.share / np.average(holds, weights=rankings.counts))


def test_clusters_are_named_by_lift():
    """Most members rank a above d, as nearly all voters do; what distinguishes them is c first."""
    orders = [["a", "b", "c", "d"], ["c", "a", "b", "d"], ["a", "c", "b", "d"]]
    ballots = [Rankings.from_orders(orders, counts=counts) for counts in ([60, 10, 30], [5, 70, 25])]
    found = distinctions(ballots)
    assert [each.label for each in found][1] == "c first"
    assert (found[1].share, found[1].others, found[1].lift) == pytest.approx((0.7, 0.1, 0.7 / 0.4))


def test_first_choices_of_groups():
    ballots = Rankings([[0, 1, 2], [1, 0, 2], [0, 1, 2], [1, 0, 2]], ["a", "b", "c"], counts=[150, 50, 80, 120])
    source = Source(ballots, group_name="ward", groups=np.array(["x", "x", "y", "y"]))
    page = page_about(source, n_clusters=1, n_permutations=99)
    low, high = re.search(
        r"a is the first choice of 75% in x and of 40% in y \(difference (\d+) to (\d+) perc", page
    ).groups()
    error = 100 * math.sqrt(0.75 * 0.25 / 200 + 0.4 * 0.6 / 200)  # of a normal approximation
    assert int(low) == pytest.approx(35 - 1.96 * error, abs=2)
    assert int(high) == pytest.approx(35 + 1.96 * error, abs=2)


def test_distinctions_by_pairs():
    parts = [
        Rankings.from_orders([["a", "b", "c"]], items=["a", "b", "c"]),
        Rankings.from_orders([["a", "c", "b"]], items=["a", "b", "c"]),
    ]
    assert {each.label for each in distinctions(parts)} == {"b over c", "c over b"}
    assert all((each.share, each.others) == (1, 0) for each in distinctions(parts))


def test_distinctions_by_ballots():
    """There are ten clusters, but only three items and six pairs."""
    orders = [*itertools.permutations("abc"), [{"a", "b"}], [{"a", "c"}], [{"b", "c"}], ["a"]]
    ballots = Rankings.from_orders(orders, items=list("abc"), counts=np.arange(1, 11))
    found = distinctions([ballots[row] for row in range(10)])
    assert len({each.label for each in found}) == 10
    (by_ballot,) = [each for each in found if each.kind == "ballot"]
    assert (by_ballot.share, by_ballot.others) == (1, 0)
    assert "gave this ballot; no other voters did" in page_about(Source(ballots), n_clusters=10)


# ---------------------------------------------------------------------- groups


def wards(n_wards, n_rankings=240, seed=0):
    """Return wards of which those with odd numbers rank one way and those with even numbers the other."""
    up, down = (mallows(n_rankings, center, 1.0, rng=seed + n) for n, center in enumerate(([0, 1, 2, 3], [3, 2, 1, 0])))
    numbers = np.arange(n_rankings) % n_wards + 1
    ranks = np.where((numbers % 2)[:, None], up.ranks, down.ranks)
    return Source(Rankings(ranks), group_name="ward", groups=np.array([f"ward {number}" for number in numbers]))


def is_odd(ward):
    return int(ward.split()[1]) % 2 == 1


def test_districts_of_the_example_differ(summary, page):
    found = summary.comparisons
    (comparison,) = found.pairs
    assert found.joint.pvalue == comparison.adjusted_pvalue == 0.01
    assert comparison.n_voters == (1100, 1300)
    north, south = (summary.ballots.of_group(group) for group in (0, 1))
    changes = {each.item: each.change for each in comparison.differences.items}
    assert [changes[item] for item in north.items] == pytest.approx(mean_positions(south) - mean_positions(north))
    tied = [(group.ranks == 0) / (group.ranks == 0).sum(axis=1, keepdims=True) for group in (north, south)]
    firsts = [group.counts @ first / group.n_voters for group, first in zip((north, south), tied, strict=True)]
    assert comparison.shares == pytest.approx(np.array(firsts))
    text = text_of(page)
    assert "north and south rank the candidates differently" in text
    assert "none of 99 random divisions of the voters gives as large a difference (p ≤ 0.01)" in text


def test_many_groups_are_tested_jointly_and_in_pairs():
    summary = summarize(wards(11), Settings(n_permutations=99, n_clusters=1))
    assert summary.ballots.groups[:3] == ("ward 1", "ward 2", "ward 3")
    assert summary.ballots.groups[-2:] == ("ward 10", "ward 11")
    found = summary.comparisons
    assert found.joint.pvalue == 0.01
    assert len(found.pairs) == 55
    assert found.from_moments  # 99 permutations are too few for 55 pairs
    assert {is_odd(pair.first) != is_odd(pair.second) for pair in found.pairs if pair.differs} == {True}
    n_different = sum(pair.differs for pair in found.pairs)
    assert n_different >= 25
    assert len(found.details) == 3
    text = text_of(render_page(summary))
    assert "The 11 groups do not all rank the items alike" in text
    assert f"Pairs that differ significantly: {n_different} of 55." in text
    assert "Pearson type III" in text


def test_pairs_beyond_the_limit_are_hidden_rows():
    summary = summarize(wards(16, 480), Settings(n_permutations=99, n_clusters=1))
    found = summary.comparisons
    assert (found.n_groups, len(found.sizes), len(found.pairs)) == (16, 16, 120)
    different = [pair for pair in found.pairs if pair.differs]
    assert all(is_odd(pair.first) != is_odd(pair.second) for pair in different)
    assert len(different) > 50
    page = render_page(summary)
    assert "100 of 120 pairs are shown; all are in the CSV file." in page
    rows = re.findall(r"<tr( hidden)?><th scope=\"row\">ward \d+ – ward \d+</th>", page)
    assert (len(rows), sum(map(bool, rows))) == (120, 20)


def test_only_the_largest_groups_are_compared_in_pairs():
    source = wards(6, 120)
    kept = np.flatnonzero(~((source.groups == "ward 3") & (np.arange(120) < 60)))  # half of one group
    kept = kept[(source.groups[kept] != "ward 6") | (kept < 6)]  # and one voter of another
    source = Source(source.rankings[kept], group_name="ward", groups=source.groups[kept])
    settings = Settings(n_permutations=99, n_clusters=1)
    summary = summarize(source, settings)
    kernel, groups = summary.settings.kernel, groups_to_compare(source, None)
    assert [groups_in_pairs(n_voters) for n_voters in (100, 10_000, 1_000_000)] == [100, 50, 20]
    found = compare_groups(summary.ballots, groups, summary.settings, max_groups=4)
    assert found.n_groups == 5
    names = [f"ward {number}" for number in (1, 2, 3, 4, 5)]
    assert list(found.sizes) == ["ward 1", "ward 2", "ward 4", "ward 5"]
    rows = np.isin(source.groups, names)
    joint = k_sample_test(source.rankings[rows], source.groups[rows], kernel, n_permutations=99)
    assert found.joint.effect == pytest.approx(joint.effect)
    text = text_of(render_page(replace(summary, comparisons=found)))
    assert "Pairs of the 4 largest groups that differ significantly: " in text
    assert "5 groups in the joint test, the 4 largest of them compared in pairs" in text
    assert "1 group of a single voter left out" in text
    assert "Shown are the 4 largest of 5 groups." in text


def test_table_of_ballots_adds_up_over_groups():
    page = page_about(wards(11), n_clusters=2, compare=())
    table = page[page.index('data-name="common-ballots"') :].split("</table>")[0]
    heads, *rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    names = re.findall(r'<th scope="col">(.*?)</th>', heads)
    assert names[-1] == "other groups"
    first = next(index for index, name in enumerate(names) if name.startswith("ward"))
    assert len(rows) >= 20
    for row in rows:
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert sum(map(int, cells[first:])) == int(cells[0])


def test_chosen_groups_are_compared():
    summary = summarize(wards(6), Settings(n_permutations=99, n_clusters=1, compare=("ward 2", "ward 5")))
    assert list(summary.comparisons.sizes) == ["ward 2", "ward 5"]
    assert len(summary.comparisons.pairs) == 1
    steps = []
    with pytest.raises(RankingError, match=r"ward 9.*ward 1, ward 2"):
        summarize(wards(6), Settings(compare=("ward 9",)), steps.append)
    with pytest.raises(RankingError, match="ward 2"):
        summarize(wards(6), Settings(compare=("ward 2",)), steps.append)
    assert not steps  # raised before anything is computed


def test_comparisons_match_the_pairwise_test():
    source = wards(3, 240)
    summary = summarize(source, Settings(n_permutations=99, n_clusters=1))
    assert summary.comparisons.sizes == {f"ward {number}": 80 for number in (1, 2, 3)}
    kernel = summary.settings.kernel
    expected = k_sample_test(source.rankings, source.groups, kernel, n_permutations=99).pairwise()
    pairs = summary.comparisons.pairs
    found = {(pair.first, pair.second): (pair.statistic, pair.effect, pair.adjusted_pvalue) for pair in pairs}
    numbers = np.stack([expected.statistics, expected.effects, expected.adjusted_pvalues], axis=1).tolist()
    for first, second, row in zip(expected.first, expected.second, numbers, strict=True):
        assert found[first, second] == pytest.approx(row)


def test_voters_of_large_groups_are_sampled_in_proportion():
    rankings = Rankings(np.argsort(np.random.default_rng(0).random((120, 7)), axis=1))
    source = Source(rankings, groups=np.repeat(["small", "large"], [20, 100]))
    settings = Settings(n_permutations=9, n_clusters=1)
    summary = summarize(source, settings)
    assert summary.ballots.groups == ("large", "small")
    found = compare_groups(summary.ballots, [0, 1], summary.settings, max_distinct=20)
    assert found.pairs[0].n_voters == (16, 3)
    text = text_of(render_page(replace(summary, comparisons=found)))
    assert "tested on a random sample of 19 of 120 voters" in text
    assert "100 and 20 voters; random samples of 16 and 3 were tested" in text


def test_groups_without_a_difference():
    rankings = Rankings(np.tile(mallows(60, 5, 0.5, rng=3).ranks, (2, 1)))
    source = Source(rankings, groups=np.repeat(["x", "y"], 60))
    summary = summarize(source, Settings(n_permutations=99, n_clusters=1))
    (pair,) = summary.comparisons.pairs
    assert pair.pvalue > 0.05
    assert pair.differences is None
    page = render_page(summary)
    assert "No significant difference between x and y" in page
    assert 'data-name="null-distribution"' in page
    assert 'data-name="pairs"' not in page
    assert "higher in" not in page


def test_undecided_voters_count_for_neither_side_of_a_pair():
    orders = [["a", "b", "c"], ["b"], [{"a", "b"}, "c"]]
    rankings = Rankings.from_orders(orders * 2, items=list("abc"), counts=[60, 30, 10, 20, 70, 10])
    source = Source(rankings, groups=np.repeat(["x", "y"], 3))
    (pair,) = summarize(source, Settings(n_permutations=99, n_clusters=1)).comparisons.pairs
    share = next(each for each in pairs_in_words(pair.differences) if {each.first, each.second} == {"a", "b"})
    assert (share.shares, share.against) == (pytest.approx((0.6, 0.2)), pytest.approx((0.3, 0.7)))
    assert all(low < each < high for each, (low, high) in zip(share.shares, share.intervals, strict=True))


@pytest.mark.parametrize(("successes", "trials"), [(0, 7), (3, 8), (9, 9), (480, 1000)])
def test_wilson_interval_matches_scipy(successes, trials):
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    share = np.array([successes / trials])
    low, high = share_intervals(share, share * (1 - share), np.array([trials]), QUANTILE)
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_bootstrap_intervals_match_the_normal_ones():
    """The standard error of a difference of means is known."""
    rng = np.random.default_rng(0)
    groups = [Rankings([[0, 1], [1, 0]], counts=counts) for counts in ([300, 100], [450, 350])]
    values = [np.array([[1.0, 0.0], [3.0, 0.0]])] * 2
    intervals = bootstrap_intervals(groups, values, rng)
    means = [values[0][:, 0] @ group.counts / group.n_voters for group in groups]
    shares = [group.counts[1] / group.n_voters for group in groups]
    error = 2 * np.sqrt(sum(p * (1 - p) / group.n_voters for p, group in zip(shares, groups, strict=True)))
    assert intervals[0] == pytest.approx(means[0] - means[1] + np.array([-1.96, 1.96]) * error, abs=0.1 * error * 1.96)
    assert intervals[1].tolist() == [0, 0]


def test_only_differences_whose_interval_excludes_zero_are_listed():
    """The second group has a and b swapped, which does not change the mean position of c."""
    orders = [[*order] for order in ("abc", "acb", "cab", "bac", "bca", "cba")]
    rankings = Rankings.from_orders(orders * 2, counts=[50, 40, 50, 15, 10, 15, 15, 10, 15, 50, 40, 50])
    source = Source(rankings, groups=np.repeat(["x", "y"], 6))
    summary = summarize(source, Settings(n_permutations=99, n_clusters=1))
    (pair,) = summary.comparisons.pairs
    low, high = next(each for each in pair.differences.items if each.item == "c").change_interval
    assert low < 0 < high
    text = text_of(render_page(summary))
    assert re.search(r"a ranks [\d.]+ positions \([\d.]+ to [\d.]+\) higher on average in x than in y", text)
    assert "c ranks" not in text
    assert {(each.first, each.second) for each in pairs_in_words(pair.differences)} >= {("a", "b")}
    assert excludes_zero((0.006, 0.2))
    assert not excludes_zero((0.004, 0.2))  # which is shown as 0.00 to 0.20
    assert not excludes_zero((-7.0, -0.4), digits=0)


def test_several_groups_have_effects_with_intervals_and_one_picture():
    made = report(wards(4).rankings, groups=wards(4).groups, group_name="ward", n_permutations=999, n_clusters=1)
    text = text_of(made.html)
    assert re.search(
        r"ward 1 – ward 2 p ≤ [\d.]+ \(999 permutations\) [\d.]+% \([\d.]+% to [\d.]+%\) significant", text
    )
    assert "50%" in made.pictures["groups"].svg
    assert all(f"ward {number}" in made.pictures["groups"].svg for number in (1, 2, 3, 4))
    assert "in the feature space of the kernel Mallows" in text


def test_shares_of_clusters_add_up_over_groups(page):
    rows = re.findall(r'<tr><th scope="row">(north|south)</th><td class="figure">([\d,]+)</td>(.*?)</tr>', page)
    assert [(name, size) for name, size, _ in rows] == [("north", "1,100"), ("south", "1,300")]
    for _, _, cells in rows:
        assert sum(int(share) for share in re.findall(r">(\d+)%<", cells)) == pytest.approx(100, abs=2)


def test_groups_of_one_voter_are_not_tested():
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]], counts=[5, 1, 5])
    source = Source(rankings, groups=np.array(["x", "single", "y"]))
    summary = summarize(source, Settings(n_permutations=9))
    assert [(each.first, each.second) for each in summary.comparisons.pairs] == [("x", "y")]


# ---------------------------------------------------------------------- approvals, nouns, estimates


def test_approval_ballots_have_their_own_sentences():
    rankings = Rankings([[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]], list("abcd"), counts=[6, 3, 5, 2])
    text = text_of(page_about(Source(rankings, noun="film"), n_clusters=2))
    assert "16 voters gave approval ballots on 4 films" in text
    assert "18.8% of the voters approve of a and not of b" in text
    assert "Most approvals: a with 56%; next: b with 38%" in text  # 9 and 6 of 16
    assert "5 voters (31%) approve of all films or of none" in text
    assert "approves a and b" in text
    assert not re.search(r"mean position|in positions|rank \w+ (above|first)", text.split("Methods")[0])
    assert not Source(Rankings([[0, 1, 2], [0, 0, 1]])).wording.approvals
    assert not Source(Rankings([[0, 1, 1], [1, 0, 1]])).wording.approvals  # one choice each


def test_groups_of_approval_ballots():
    """Of x, 30 voters approve of a and b and 20 of a; of y, 30 of c and d, 10 of a and c, 10 of c; z is as x."""
    rankings = Rankings(
        [[0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1], [1, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]],
        list("abcd"),
        counts=[30, 20, 30, 10, 10, 30, 20],
    )
    two = Source(rankings[:5], groups=np.repeat(["x", "y"], [2, 3]))
    text = text_of(page_about(two, n_clusters=1, n_permutations=99))
    assert "x and y approve of the items differently: none of 99 random divisions" in text
    shift = r"a is approved of by 100% in x and by 20% in y \(difference (\d+) to (\d+) percentage points\)"
    low, high = map(int, re.search(shift, text).groups())
    assert low < 80 < high
    assert "Share of each group that approves of the first item and not of the second" in text
    assert "a but not c" in text  # of x all voters, of y none
    three = Source(rankings, groups=np.repeat(["x", "y", "z"], [2, 3, 2]))
    text = text_of(page_about(three, n_clusters=1, n_permutations=99))
    assert "The 3 groups do not all approve of the items alike: none of 99 random divisions" in text
    assert "Pairs that differ significantly: 2 of 3." in text


def test_ballots_that_approve_all_are_counted(tmp_path):
    """Of 40 voters 20 approve of all three, 10 of X and Y, 6 of Z, 4 of none."""
    path = tmp_path / "a.cat"
    names = "".join(f"# ALTERNATIVE NAME {number}: {name}\n" for number, name in enumerate("XYZ", start=1))
    path.write_text(
        "# TITLE: A\n# DATA TYPE: cat\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 40\n"
        "# NUMBER UNIQUE PREFERENCES: 4\n# NUMBER CATEGORIES: 2\n# CATEGORY NAME 1: Yes\n# CATEGORY NAME 2: No\n"
        f"{names}20: {{1,2,3}},{{}}\n10: {{1,2}},{{3}}\n6: 3,{{1,2}}\n4: {{}},{{1,2,3}}\n"
    )
    made = report(read(path), n_clusters=1)
    text = text_of(made.html)
    assert "Most approvals: X and Y with 75% each; next: Z with 65%." in text
    assert "4 voters (10%) approve of none of the items. 20 voters (50%) approve of all items." in text
    data = json.loads(Elements(made.html).texts["script"][0])
    assert (data["shares"], data["approveAllShare"]) == ([0.75, 0.75, 0.65], 20 / 24)


def test_sentences_of_rare_data():
    partial = rk.Preferences.from_pairs(
        [[("a", "b"), ("c", "d")], [("a", "c"), ("d", "b")], [("b", "c"), ("d", "a")]] * 2
    )
    text = text_of(page_about(Source(partial), n_clusters=1))
    assert "6 voters compared 4 items." in text
    assert "partial orders: some pairs of items are compared, nothing is known of the others (6 voters)" in text
    rankings = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]], counts=[5, 4, 1])
    text = text_of(page_about(Source(rankings, groups=np.array(["x", "x", "y"])), n_clusters=1))
    assert "There are no two groups with at least two voters each, so that no groups are compared." in text
    even = rk.Comparisons.from_arrays(["x", "y", "x", "y"], ["y", "x", "z", "z"], [1, 1, 1, 1])
    assert "x and y have the same highest" in report(even).headline


def test_noun_replaces_item():
    source = Source(mallows(40, 5, 0.5, rng=0, items=list("abcde")), "Films", noun="film")
    text = text_of(page_about(source, n_clusters=2))
    assert not re.search(r"\bitems?\b", text.split("Methods")[0])
    assert "ranked 5 films" in text


def test_most_common_ballot_without_preference():
    rankings = Rankings([[0, 0, 0], [0, 1, 2], [2, 1, 0]], list("abc"), counts=[9, 3, 3])
    assert "Most common ballot: no preference (9 voters)" in page_about(Source(rankings), n_clusters=2)


def test_standard_error_of_estimated_values():
    rankings = Rankings(np.where(np.arange(9) < 3, np.argsort(np.random.default_rng(0).random((30, 9))), -1))
    kernel = rk.Exponential("footrule", 0.1)
    few, many = (
        summarize(Source(rankings), Settings(kernel=kernel, method=rk.MonteCarlo(n), n_clusters=1)) for n in (32, 512)
    )
    assert 0 < few.embedding.error < 3
    assert many.embedding.error < few.embedding.error / 2  # 16 times the draws: about a quarter
    page = render_page(few)
    assert "Monte Carlo, 32 draws" in page
    assert "The standard error of one value is" in page


def test_warnings_are_notes():
    rankings = Rankings.from_orders([["a", "b", "c", "d"], ["b", "a", "d", "c"], ["d", "c", "b", "a"]])
    summary = summarize(Source(rankings), Settings(kernel=rk.Exponential("cayley", 0.1)))
    assert any("not positive semi-definite" in note for note in summary.notes)
    assert "not positive semi-definite" in render_page(summary)


# ---------------------------------------------------------------------- many rankings


@pytest.fixture(scope="module")
def many():
    """More ballots than pictures show: all orders of seven items, those with item 0 first given twice."""
    ranks = np.argsort(np.array(list(itertools.permutations(range(7)))), axis=1)
    counts = np.where(ranks[:, 0] == 0, 2, 1)
    settings = Settings(kernel=Kendall(), n_clusters=4, max_ballots=400)
    return summarize(Source(Rankings(ranks, counts=counts), "All orders"), settings)


def test_many_ballots_are_sampled(many):
    assert many.view.sampled
    assert many.view.n_voters == 400
    page = render_page(many)
    assert "sampled at random" in page
    assert "Nyström" in page
    assert len(Elements(page).named("circle")) < 410


def test_page_contains_ballots_that_are_not_shown(many):
    rankings, n_shown = many.ballots.rankings, len(many.view.rows)
    data = script_data(many)
    assert (len(data["weights"]), len(data["voters"]), data["nBallots"]) == (n_shown, 5040, 5040)
    assert sum(data["voters"]) == rankings.n_voters
    assert sorted(map(tuple, data["ranks"])) == sorted(map(tuple, rankings.ranks.tolist()))
    data = script_data(many, max_numbers=11 * 2000)  # seven ranks and four more numbers a ballot
    assert len(data["voters"]) == 2000
    assert data["ranks"][:n_shown] == rankings.ranks[many.view.rows].tolist()
    assert min(data["voters"][n_shown : n_shown + 200]) == 2  # the most common first


def test_features_reproduce_the_gram_matrix(many):
    # The Kendall kernel of 7 items has 21 linear features, so that 200 Nyström features are exact.
    features = many.embedding.features[many.view.rows]
    assert np.allclose(features @ features.T, many.embedding.gram, rtol=0, atol=1e-9)
    assert many.embedding.omitted == pytest.approx(0, abs=1e-9)


def test_ballots_not_shown_join_the_nearest_cluster(many):
    features, view, clustering = many.embedding.features, many.view, many.clustering
    means = np.stack(
        [
            np.average(features[view.rows][clustering.shown == c], axis=0, weights=view.counts[clustering.shown == c])
            for c in range(4)
        ]
    )
    others = np.setdiff1d(np.arange(len(features)), view.rows)
    distances = ((features[others, None, :] - means) ** 2).sum(axis=2)
    assigned = distances[np.arange(len(others)), clustering.labels[others]]
    assert (assigned <= distances.min(axis=1) + 1e-9).all()


@pytest.mark.parametrize("max_ballots", [1000, 100])
def test_map_matches_kernel_map(max_ballots):
    """The map of all ballots, and that of Nyström features, which are exact for the Kendall kernel."""
    rankings = mallows(300, 5, 0.3, rng=0)
    summary = summarize(Source(rankings), Settings(kernel=Kendall(), n_clusters=1, max_ballots=max_ballots))
    assert summary.view.sampled == (max_ballots == 100)
    expected = rk.KernelMap(kernel=Kendall())
    points = expected.fit_transform(summary.ballots.rankings)
    signs = np.sign((points * summary.embedding.points).sum(axis=0))
    assert summary.embedding.points * signs == pytest.approx(points, abs=1e-7)
    assert summary.embedding.variance == pytest.approx(expected.explained_variance_ratio_, abs=1e-9)


# ---------------------------------------------------------------------- small and unusual data


UNUSUAL = {
    "one ballot": Rankings.from_orders([["a", "b"]]),
    "two ballots": Rankings.from_orders([["a", "b"], ["b", "a"]]),
    "one item": Rankings([[0], [0]], items=["a"]),
    "no preference": Rankings([[0, 0, 0], [-1, -1, -1]]),
    "free items": Rankings([[0, -1, 1, -1], [1, 0, -1, 2]]),
    "many items": Rankings(np.argsort(np.random.default_rng(0).random((6, 40)), axis=1)),
    "equal distances": Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_data_make_a_page(name):
    rankings = UNUSUAL[name]
    page = page_about(Source(rankings, name))
    elements = Elements(page)
    assert elements.stack == []
    assert name in elements.texts["h1"]
    assert "nan" not in text_of(page).lower().split()
    n_ballots = len(rankings.unique())
    points = [each for each in elements.named("circle") if "data-row" in each]
    assert len(points) == (n_ballots if n_ballots > 2 else 0)


def test_data_without_rankings_are_refused():
    with pytest.raises(RankingError, match=r"empty\.soi"):
        Source(Rankings(np.empty((0, 2))), origin="empty.soi")
    with pytest.raises(RankingError, match="groups"):
        Source(Rankings([[0, 1]]), groups=np.array(["a", "b"]))


def test_too_many_clusters_are_refused():
    steps = []
    with pytest.raises(RankingError, match=r"n_clusters=9 .* 2;"):
        summarize(Source(UNUSUAL["two ballots"]), Settings(n_clusters=9), steps.append)
    with pytest.raises(RankingError, match=r"n_clusters=5 .* 3 voters"):
        summarize(Source(mallows(40, 4, 0.0, rng=0)), Settings(n_clusters=5, max_ballots=3), steps.append)
    assert "Clusters" not in steps


def test_steps_are_named_as_they_begin():
    steps = []
    summarize(wards(2, 60), Settings(n_permutations=9, n_clusters=1), steps.append)
    assert steps == ["Ballots", "Kernel values and map", "Clusters", "Comparing groups", "Drawing"]


# ---------------------------------------------------------------------- the page


def test_page_is_self_contained(page):
    elements = Elements(page)
    assert elements.stack == []
    for name, attributes in elements.found:
        for attribute in ("src", "href", "xlink:href", "action", "data", "poster"):
            if attribute in attributes:
                assert attributes[attribute].startswith(("data:image/png;base64,", "#")), (name, attributes)
        assert "style" not in attributes
        assert not any(attribute.startswith("on") for attribute in attributes)
    assert not elements.named("link")
    assert not elements.named("iframe")
    assert "url(" not in page
    assert "@import" not in page


def test_page_is_deterministic():
    first, second = (page_about(wards(3, 60), n_permutations=9) for _ in range(2))
    assert first == second


def test_content_policy_has_the_hashes_of_script_and_style(page):
    elements = Elements(page)
    content = next(each["content"] for each in elements.named("meta") if each.get("http-equiv"))
    assert content.startswith("default-src 'none';")
    assert "unsafe" not in content
    (style,) = elements.texts["style"]
    scripts = elements.texts["script"]
    assert len(scripts) == 2
    json.loads(scripts[0])
    for kind, written in (("style-src", style), ("script-src", scripts[1])):
        digest = base64.b64encode(hashlib.sha256(written.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in content
    assert content_policy(style, scripts[1]) == content


def test_page_of_the_example(page):
    text = text_of(page)
    for expected in (
        "2,400 voters ranked 8 candidates. Cindervale is the Condorcet winner",
        "It disagrees with 41% of the voters’ pairwise preferences",
        "The ballots form 3 clusters",
        "10.1007/s11222-019-09859-z",
    ):
        assert expected in text
    for attributes in Elements(page).named("svg"):
        assert attributes["role"] in ("img", "group")
        assert len(attributes["aria-label"]) > 10


def test_points_are_labelled_with_their_ballots(summary, page):
    points = [each for each in Elements(page).named("circle") if "data-row" in each]
    by_row = {int(each["data-row"]): each for each in points}
    assert len(by_row) == len(summary.view.rows)
    row = int(np.argmax(summary.view.counts))
    assert by_row[row]["aria-label"] == "121 voters: Eldermist; cluster C"
    assert all(each["tabindex"] == "-1" for each in points)


def test_hostile_names_stay_text():
    n = len(HOSTILE)
    ranks = np.argsort(np.random.default_rng(0).random((12, n)), axis=1)
    groups = np.array([HOSTILE[row % 3] for row in range(12)])
    source = Source(
        Rankings(ranks, HOSTILE),
        *HOSTILE[:4],
        groups=groups,
        noun="<i>noun</i>",
        voter="{item}{{say}}",
    )
    page = page_about(source, n_permutations=9, n_clusters=2)
    elements = Elements(page)
    assert elements.stack == []
    assert len(elements.named("script")) == 2
    assert not elements.named("img")
    assert not elements.named("i")
    for _, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes)
    assert elements.texts["h1"] == [HOSTILE[0]]
    assert json.loads(elements.texts["script"][0])["items"][:7] == HOSTILE[:7]
    for raw in HOSTILE[:3]:
        assert raw not in page
    assert "\u202e" not in page
    assert "{{script}}" in page  # a name, not a placeholder
    assert "{item}{{say}}" in page


def test_png_is_read_back_by_matplotlib():
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    levels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    image = base64.b64decode(png_address(levels).removeprefix("data:image/png;base64,"))
    pixels = imread(io.BytesIO(image), format="png")
    assert np.array_equal((pixels[:, :, :3] * 255).round().astype(np.uint8), palette()[levels])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["a", "b", "c", "d"], "a > b > c > d"),
        (["a"], "a"),
        ([{"a", "b"}, "c"], "a = b > c > d"),
        ([{"a", "b", "c", "d"}], "no preference"),
        (["a", {"b", "c", "d"}], "a"),
    ],
)
def test_ballot_text(order, expected):
    assert ballot_text(Rankings.from_orders([order], items=list("abcd"))) == expected


def test_number_texts():
    assert [percent(share) for share in (0, 0.004, 0.5, 0.996, 1)] == ["0%", "<1%", "50%", ">99%", "100%"]
    assert pvalue_text(1 / 100, 99) == "p ≤ 0.01 (99 permutations)"
    assert pvalue_text(2 / 100, 99) == "p = 0.02"


# ---------------------------------------------------------------------- rk.report


def test_report_writes_and_returns_the_page(tmp_path):
    source, path = wards(2, 60), tmp_path / "page.html"
    options = {"title": "Wards", "noun": "film", "voter": "judge"}
    made = report(source.rankings, path, groups=source.groups, group_name="ward", n_permutations=9, **options)
    same = Source(source.rankings, group_name="ward", groups=source.groups, **options)
    assert path.read_text(encoding="utf-8") == made.html == page_about(same, n_permutations=9)
    assert "60 judges ranked 4 films" in str(made)
    with pytest.raises(RankingError, match=r"path page.txt"):
        report(source.rankings, tmp_path / "page.txt")
    two = report(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 2]))
    assert list(two.pictures) == ["first choices", "contests"]
    assert "4 voters ranked 3 items" in str(report([[0, 1, 2]] * 4))
    with pytest.raises(RankingError, match="no rankings"):
        report(Rankings(np.empty((0, 2))))


def test_report_groups_by_column(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("side,1,2\nx,a,b\nx,b,a\ny,a,b\ny,a,b\n")
    votes = read(path, label_columns="side")
    made = report(votes, groups="side", n_permutations=9)
    assert "Comparison by side" in made.html
    assert made.html == report(votes, groups=votes.labels["side"], group_name="side", n_permutations=9).html
    with pytest.raises(RankingError, match=r"groups='age'.*side"):
        report(votes, groups="age")


def test_report_options_reach_the_page():
    made = report(UNUSUAL["equal distances"], kernel=Mallows(0.125), n_clusters=2, linkage="average", rng=7)
    for expected in ("Mallows(nu=0.125)", "average linkage", "<dd>7</dd>", "as requested"):
        assert expected in made.html
    assert "<dd>Kendall" in report(UNUSUAL["equal distances"], kernel="kendall").html.replace("Kendall(), ", "Kendall")


def test_page_needs_neither_scikit_learn_nor_scipy_stats():
    """They take a second to import."""
    code = (
        "import sys; from rankernel import datasets, report; found = datasets.load_example(); "
        "report(found.rankings, groups=found.districts, n_permutations=99); "
        "print([name for name in ('sklearn', 'scipy.stats', 'pandas', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_report_without_jinja2(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2.*rankernel\[report\]"):
        report([[0, 1]])
