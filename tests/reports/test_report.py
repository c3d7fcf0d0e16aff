"""Reports: the numbers are right, the page needs nothing else, and nothing in the data can become code."""

import base64
import hashlib
import html
import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from rankernel import Kendall, Mallows, Rankings, read
from rankernel.datasets import load_example, mallows
from rankernel.errors import RankingError
from rankernel.reports import report
from rankernel.reports.clustering import letter
from rankernel.reports.comparisons import pair_share
from rankernel.reports.distinct_ballots import MOST_SHOWN, distinct_ballots, some_voters, view_of
from rankernel.reports.draw_map import map_data
from rankernel.reports.majorities import count_majorities
from rankernel.reports.marks import marks_of
from rankernel.reports.markup import embedded_json, tag, text
from rankernel.reports.page import page, policy
from rankernel.reports.phrases import ballot_text, percent, pvalue_text
from rankernel.reports.png import palette, png
from rankernel.reports.source import Source
from rankernel.reports.standing import first_shares, mean_places
from rankernel.reports.summary import Settings, n_steps, summarize
from rankernel.stats.k_sample import adjust_pvalues, k_sample_test

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
    return Source(election.rankings, "Nowhere Bay", by="district", groups=election.districts, noun="candidate")


def page_about(source, settings=None):
    return page(summarize(source, settings))


def words_of(written):
    """Return what a page says, without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", " ", written))


@pytest.fixture(scope="module")
def study():
    return summarize(example(), Settings(n_permutations=99))


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the text in each kind."""

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


# ---------------------------------------------------------------------- what is counted


def test_ballots_are_counted_by_group():
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]], counts=[2, 3, 5])
    ballots = distinct_ballots(Source(rankings, groups=np.array(["x", "x", "y"])))
    assert ballots.groups == ("x", "y")
    assert ballots.by_group.tolist() == [[2, 5], [3, 0]]
    assert ballots.rankings.counts.tolist() == [7, 3]
    assert ballots.of_group(1).counts.tolist() == [5]


def test_names_that_would_look_the_same_are_told_apart():
    rankings = Rankings([[0, 1]], items=["a\n", "a\\n"])
    assert distinct_ballots(Source(rankings)).rankings.items == ("a\\n", "a\\n (2)")


def test_voters_taken_at_random_are_taken_once_each_and_evenly():
    counts = np.array([5, 1, 94])
    rows, taken = some_voters(counts, 60, seed=0)
    assert taken.sum() == 60
    assert (taken <= counts[rows]).all()
    many = np.zeros(3)
    for seed in range(300):
        rows, taken = some_voters(counts, 20, seed)
        many[rows] += taken
    # Hypergeometric: 20 of 100, so each voter is taken with probability 1/5.
    spread = np.sqrt(300 * 20 * (counts / 100) * (1 - counts / 100) * 80 / 99)
    assert (np.abs(many - 300 * counts / 5) < 5 * spread).all()


def test_few_voters_are_all_shown():
    source = example()
    view = view_of(distinct_ballots(source), seed=0)
    assert not view.sampled
    assert view.n_voters == 2400


def test_places_and_first_choices():
    rankings = Rankings.from_orders([["a", "b", "c"], [{"b", "c"}, "a"]], counts=[3, 1])
    assert mean_places(rankings) == pytest.approx([(3 * 1 + 3) / 4, (3 * 2 + 1.5) / 4, (3 * 3 + 1.5) / 4])
    assert first_shares(rankings) == pytest.approx([0.75, 0.125, 0.125])


def test_those_who_say_nothing_have_no_first_choice():
    rankings = Rankings([[0, 0], [0, 1], [-1, -1], [-1, 0]], counts=[7, 1, 5, 3])
    assert first_shares(rankings) == pytest.approx([0.25, 0.75])
    assert first_shares(rankings[:1]).tolist() == [0, 0]


def test_letters():
    assert [letter(number) for number in (0, 25, 26, 53)] == ["A", "Z", "A2", "B3"]


def test_holm_against_its_definition():
    p = np.array([0.01, 0.04, 0.03, 0.2, 0.01])
    m = len(p)
    slow = []
    for each in p:
        order = sorted(range(m), key=lambda i: (p[i], i))
        reached = [min((m - place) * p[i], 1) for place, i in enumerate(order) if p[i] <= each]
        slow.append(max(reached))
    assert adjust_pvalues(p, "holm") == pytest.approx(slow)
    assert adjust_pvalues(np.array([]), "holm").tolist() == []


def test_clusters_of_the_example_are_its_blocs(study):
    election = load_example()
    names = [cluster.name for cluster in study.clustering.clusters]
    assert names == ["A", "B", "C"]
    index = {
        row.tobytes(): label for row, label in zip(study.ballots.rankings.ranks, study.clustering.labels, strict=True)
    }
    labels = [index[row.tobytes()] for row in election.rankings.ranks]
    blocs = {"harbour": "Amberlow", "foundry": "Glimmerby", "orchard": "Eldermist"}
    agree = 0
    for bloc, label, count in zip(election.groups, labels, election.rankings.counts, strict=True):
        cluster = study.clustering.clusters[label]
        agree += count * (cluster.consensus.items[int(np.argmin(cluster.consensus.ranks[0]))] == blocs[bloc])
    assert agree / 2400 > 0.9


def test_cluster_numbers_add_up(study):
    clusters, rankings = study.clustering.clusters, study.ballots.rankings
    assert sum(cluster.n_voters for cluster in clusters) == rankings.n_voters
    sizes = [cluster.n_voters for cluster in clusters]
    assert sizes == sorted(sizes, reverse=True)
    mean_shift = sum(cluster.n_voters * cluster.shift for cluster in clusters) / rankings.n_voters
    assert mean_shift == pytest.approx(np.zeros(rankings.n_items), abs=1e-12)
    assert study.clustering.shown.tolist() == study.clustering.labels.tolist()


def test_marks_of_clusters_are_true_and_no_two_alike(study):
    marks = [cluster.mark for cluster in study.clustering.clusters]
    assert len(set(map(str, marks))) == len(marks)
    rankings, labels = study.ballots.rankings, study.clustering.labels
    for number, mark in enumerate(marks):
        ranks = rankings.ranks[:, rankings.items.index(mark.first)]
        if mark.second is None:
            first, alone = ranks == 0, (rankings.ranks == 0).sum(axis=1)
        else:
            first, alone = ranks < rankings.ranks[:, rankings.items.index(mark.second)], np.ones(len(rankings))
        for own, share in ((labels == number, mark.share), (labels != number, mark.others)):
            counts = rankings.counts[own]
            assert share == pytest.approx((counts * first[own] / alone[own]).sum() / counts.sum())
        assert mark.share > mark.others + 0.3


def test_marks_are_pairs_where_first_choices_do_not_tell():
    parts = [
        Rankings.from_orders([["a", "b", "c"]], items=["a", "b", "c"]),
        Rankings.from_orders([["a", "c", "b"]], items=["a", "b", "c"]),
    ]
    assert {str(mark) for mark in marks_of(parts)} == {"b over c", "c over b"}
    assert all((mark.share, mark.others) == (1, 0) for mark in marks_of(parts))


def test_more_clusters_than_items_and_pairs_are_named_after_ballots():
    orders = [*itertools.permutations("abc"), [{"a", "b"}], [{"a", "c"}], [{"b", "c"}], ["a"]]
    ballots = Rankings.from_orders(orders, items=list("abc"), counts=np.arange(1, 11))
    marks = marks_of([ballots[row] for row in range(10)])
    assert len(set(map(str, marks))) == 10  # of three items and six pairs
    (whole,) = [mark for mark in marks if mark.whole]
    assert (whole.share, whole.others) == (1, 0)
    written = page_about(Source(ballots), Settings(n_clusters=10))
    assert "gave this ballot, nobody else did" in written


def test_districts_are_found_to_differ(study):
    found = study.comparisons
    (comparison,) = found.pairs
    assert found.pvalue == comparison.pvalue == 0.01
    assert found.n_compared == (1100, 1300)
    north, south = (study.ballots.of_group(group) for group in (0, 1))
    assert comparison.shift == pytest.approx(mean_places(north) - mean_places(south))


# ---------------------------------------------------------------------- groups, nouns, approvals


def wards(n_wards, n_rankings=240, seed=0):
    """Wards with odd numbers rank one way, those with even numbers the other."""
    up, down = (mallows(n_rankings, center, 1.0, rng=seed + n) for n, center in enumerate(([0, 1, 2, 3], [3, 2, 1, 0])))
    numbers = np.arange(n_rankings) % n_wards + 1
    ranks = np.where((numbers % 2)[:, None], up.ranks, down.ranks)
    return Source(Rankings(ranks), by="ward", groups=np.array([f"ward {number}" for number in numbers]))


def test_many_groups_are_compared_together_then_two_by_two():
    source = wards(11)
    study = summarize(source, Settings(n_permutations=99))
    assert study.ballots.groups[:3] == ("ward 1", "ward 2", "ward 3")
    assert study.ballots.groups[-2:] == ("ward 10", "ward 11")
    found = study.comparisons
    assert found.pvalue == 0.01
    assert len(found.pairs) == 55
    assert found.by_tail  # 99 permutations are too few for 55 pairs
    opposed = {(pair.first % 2 != pair.second % 2) for pair in found.pairs if pair.differs}
    assert opposed == {True}
    assert sum(pair.differs for pair in found.pairs) >= 25
    assert len(found.details) == 3
    written = page(study)
    assert "The 11 groups do not all see the items alike" in written
    assert "of 55 pairs differ by more than chance explains" in written
    assert "-log10" not in written


def test_all_of_many_groups_are_compared_and_all_pairs_are_in_the_table():
    study = summarize(wards(30, 900), Settings(n_permutations=99))
    found = study.comparisons
    assert (found.n_groups, len(found.groups), len(found.pairs)) == (30, 30, 435)
    opposed = [pair for pair in found.pairs if pair.first % 2 != pair.second % 2]
    assert all(pair in opposed for pair in found.pairs if pair.differs)
    assert sum(pair.differs for pair in found.pairs) > 200
    written = page(study)
    assert "100 of 435 pairs are shown; all are in the CSV." in written
    rows = re.findall(r"<tr( hidden=\"hidden\")?><th scope=\"row\">ward \d+ – ward \d+</th>", written)
    assert (len(rows), sum(map(bool, rows))) == (435, 335)


def test_more_groups_than_can_be_paired_are_all_in_the_first_test(monkeypatch):
    monkeypatch.setattr("rankernel.reports.comparisons.MOST_GROUPS", 4)
    source = wards(6, 120)
    some = np.flatnonzero(~((source.groups == "ward 3") & (np.arange(120) < 60)))  # half of one group
    some = some[(source.groups[some] != "ward 6") | (some < 6)]  # and all but one voter of another
    source = Source(source.rankings[some], by="ward", groups=source.groups[some])
    study = summarize(source, Settings(n_permutations=99))
    found, names = study.comparisons, study.ballots.groups
    assert found.n_groups == 5
    assert [names[group] for group in found.groups] == ["ward 1", "ward 2", "ward 4", "ward 5"]
    expected = k_sample_test(
        *both(source, [f"ward {number}" for number in (1, 2, 3, 4, 5)]), study.placement.kernel, n_permutations=99
    )
    assert found.effect == pytest.approx(expected.effect)
    written = page(study)
    assert "The 5 groups do not all see the items alike" in written
    assert "pairs of the 4 largest groups differ" in written
    assert (
        "of 5 groups, all in the first test, the 4 largest two by two; 1 group of a single voter left out." in written
    )


def both(source, names):
    rows = np.isin(source.groups, names)
    return source.rankings[rows], source.groups[rows]


def test_the_table_of_ballots_adds_up_over_groups():
    study = summarize(wards(11), Settings(n_permutations=9, compare=False))
    written = page(study)
    heads, *rows = re.findall(r"<tr>(.*?)</tr>", written[written.index('data-name="common-ballots"') :], re.DOTALL)
    names = re.findall(r'<th scope="col">(.*?)</th>', heads)
    assert names[-1] == "other groups"
    first = next(place for place, name in enumerate(names) if name.startswith("ward"))
    for row in rows:
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        if len(cells) == len(names):
            assert sum(map(int, cells[first:])) == int(cells[0])


def test_groups_can_be_chosen():
    study = summarize(wards(6), Settings(n_permutations=99, groups=("ward 2", "ward 5")))
    assert study.comparisons.groups == (1, 4)
    assert len(study.comparisons.pairs) == 1
    seen = []
    with pytest.raises(RankingError, match="there is no group 'ward 9'; the groups are ward 1, ward 2"):
        summarize(wards(6), Settings(groups=("ward 9",)), seen.append)
    with pytest.raises(RankingError, match="'ward 2' is the only group named; name two or more"):
        summarize(wards(6), Settings(groups=("ward 2",)), seen.append)
    assert not seen  # before anything is computed


def test_groups_are_compared_by_all_their_voters_as_the_command_does():
    source = wards(3, 240)
    study = summarize(source, Settings(n_permutations=99, n_clusters=1))
    assert study.comparisons.n_compared == (80, 80, 80)
    expected = k_sample_test(source.rankings, source.groups, study.placement.kernel, n_permutations=99).pairwise()
    names, found = study.ballots.groups, {}
    for pair in study.comparisons.pairs:
        found[names[pair.first], names[pair.second]] = (pair.statistic, pair.effect, pair.pvalue)
    pairs = zip(expected.first, expected.second, strict=True)
    numbers = np.stack([expected.statistics, expected.effects, expected.adjusted_pvalues], axis=1).tolist()
    for pair, wanted in zip(pairs, numbers, strict=True):
        assert found[pair] == pytest.approx(wanted)


def test_a_sample_of_the_voters_is_in_proportion_and_told_in_the_verdict(monkeypatch):
    monkeypatch.setattr("rankernel.reports.comparisons.MOST_DISTINCT", 20)
    rankings = Rankings(np.argsort(np.random.default_rng(0).random((120, 7)), axis=1))
    groups = np.repeat(["small", "large"], [20, 100])
    study = summarize(Source(rankings, groups=groups), Settings(n_permutations=9, n_clusters=1))
    assert study.ballots.groups == ("large", "small")
    assert study.comparisons.n_compared == (16, 3)
    assert "(judged on 19 of 120 voters, taken at random: all of them may tell more)" in page(study)


def test_groups_that_do_not_differ_get_no_list_of_differences():
    rankings = Rankings(np.tile(mallows(60, 5, 0.5, rng=3).ranks, (2, 1)))
    study = summarize(Source(rankings, groups=np.repeat(["x", "y"], 60)), Settings(n_permutations=99, n_clusters=1))
    (pair,) = study.comparisons.pairs
    assert pair.pvalue > 0.05
    assert (pair.shift, pair.pairs) == (None, ())
    written = page(study)
    assert 'data-name="chance"' in written
    assert 'data-name="pairs"' not in written
    assert "higher in" not in written


def test_shares_of_pairs_count_nobody_by_half():
    rankings = Rankings.from_orders([["a", "b", "c"], ["b"], [{"a", "b"}, "c"]], items=list("abc"), counts=[6, 3, 1])
    study = summarize(Source(rankings, by="g", groups=np.array(["x", "x", "y"])), Settings(n_permutations=9))
    x = count_majorities(study.ballots.of_group(0))
    share = pair_share("a", "b", ("a", "b", "c"), (x, count_majorities(study.ballots.of_group(0))))
    assert share.shares == pytest.approx((6 / 9, 6 / 9))
    assert share.against == pytest.approx((3 / 9, 3 / 9))
    low, high = share.intervals[0]
    assert low < 6 / 9 < high


def test_clusters_by_groups_add_up(study):
    written = html.unescape(page(study))
    rows = re.findall(r'<tr><th scope="row">(north|south)</th><td class="figure">([\d,]+)</td>(.*?)</tr>', written)
    assert [(name, size) for name, size, _ in rows] == [("north", "1,100"), ("south", "1,300")]
    for _, _, cells in rows:
        shares = [int(share) for share in re.findall(r">(\d+)%<", cells)]
        assert sum(shares) == pytest.approx(100, abs=2)


def test_approvals_are_told_as_approvals():
    rankings = Rankings([[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]], list("abcd"), counts=[6, 3, 5, 2])
    written = page_about(Source(rankings, noun="film"), Settings(n_clusters=2))
    words = words_of(written)
    assert "16 voters approved of some of 4 films" in words
    assert "18.8% approve of a and not of b" in words
    assert "Most approved of: a by 56% of the voters, then b by 38%" in words  # 9 and 6 of all 16
    assert "5 voters (31%) approve of all films or of none" in words
    assert "approves a and b" in words
    told = words.split("How this was made")[0]
    assert not re.search(r"mean place|in places|put .* before", told)
    assert not Source(Rankings([[0, 1, 2], [0, 0, 1]])).words.approvals
    assert not Source(Rankings([[0, 1, 1], [1, 0, 1]])).words.approvals  # one choice each


def test_who_approves_of_all_is_counted(tmp_path):
    """Of 40 voters 20 approve of all three, 10 of X and Y, 6 of Z, 4 of none."""
    path = tmp_path / "a.cat"
    names = "".join(f"# ALTERNATIVE NAME {number}: {name}\n" for number, name in enumerate("XYZ", start=1))
    path.write_text(
        "# TITLE: A\n# DATA TYPE: cat\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 40\n"
        "# NUMBER UNIQUE PREFERENCES: 4\n# NUMBER CATEGORIES: 2\n# CATEGORY NAME 1: Yes\n# CATEGORY NAME 2: No\n"
        f"{names}20: {{1,2,3}},{{}}\n10: {{1,2}},{{3}}\n6: 3,{{1,2}}\n4: {{}},{{1,2,3}}\n"
    )
    made = report(read(path))
    words = words_of(made.html)
    assert "Most approved of: X and Y by 75% each of the voters, then Z by 65%." in words
    assert "4 voters (10%) approve of none, 20 voters (50%) approve of all." in words
    known = json.loads(Elements(made.html).texts["script"][0])
    assert (known["shares"], known["approving"]) == ([0.75, 0.75, 0.65], 20 / 24)


def test_a_single_first_choice_has_no_second():
    source = Source(Rankings([[0, 1, 2], [0, 2, 1]], list("abc"), counts=[3, 2]))
    assert "Nobody puts first any other than a." in html.unescape(page_about(source))


def test_the_noun_is_everywhere():
    source = Source(mallows(40, 5, 0.5, rng=0, items=list("abcde")), "Films", noun="film")
    words = words_of(page_about(source, Settings(n_clusters=2)))
    assert not re.search(r"\bitems?\b", words.split("How this was made")[0].split("aria")[0])
    assert "ranked 5 films" in words


def test_a_most_common_ballot_that_says_nothing_is_told():
    rankings = Rankings([[0, 0, 0], [0, 1, 2], [2, 1, 0]], list("abc"), counts=[9, 3, 3])
    assert "one that puts no item before another (9 voters)" in page_about(Source(rankings), Settings(n_clusters=2))


def test_estimates_say_how_sure_they_are():
    from rankernel import Exponential, MonteCarlo

    rankings = Rankings(np.where(np.arange(9) < 3, np.argsort(np.random.default_rng(0).random((30, 9))), -1))
    settings = Settings(kernel=Exponential("footrule", 0.1), method=MonteCarlo(32), n_clusters=1)
    study = summarize(Source(rankings), settings)
    assert 0 < study.placement.error < 3
    assert "the standard error of one is" in page(study)
    more = summarize(Source(rankings), Settings(kernel=settings.kernel, method=MonteCarlo(512), n_clusters=1))
    assert more.placement.error < study.placement.error / 2  # 16 times the draws: about a quarter


# ---------------------------------------------------------------------- many rankings


@pytest.fixture(scope="module")
def many():
    """More different ballots than pictures can show: all orders of seven items, those with item 0 first given twice."""
    ranks = np.argsort(np.array(list(itertools.permutations(range(7)))), axis=1)
    counts = np.where(ranks[:, 0] == 0, 2, 1)
    return summarize(Source(Rankings(ranks, counts=counts), "All orders"), Settings(kernel=Kendall(), n_clusters=4))


def test_many_rankings_are_sampled_and_the_page_says_so(many):
    assert many.view.sampled
    assert many.view.n_voters == MOST_SHOWN
    written = page(many)
    assert "taken at random" in written
    assert "Nyström" in written
    assert len(Elements(written).named("circle")) < MOST_SHOWN + 10


def test_the_page_carries_ballots_that_are_not_on_the_map(many, monkeypatch):
    rankings, n_shown = many.ballots.rankings, len(many.view.rows)
    data = map_data(many)
    assert (len(data["weights"]), len(data["voters"]), data["ballots"]) == (n_shown, 5040, 5040)
    assert sum(data["voters"]) == rankings.n_voters
    assert sorted(map(tuple, data["ranks"])) == sorted(map(tuple, rankings.ranks.tolist()))
    monkeypatch.setattr("rankernel.reports.draw_map.CARRIED", 11 * 2000)  # seven ranks, and four more
    data = map_data(many)
    assert len(data["voters"]) == 2000
    assert data["ranks"][:n_shown] == rankings.ranks[many.view.rows].tolist()
    assert min(data["voters"][n_shown : n_shown + 200]) == 2  # the common ones first


def test_features_reproduce_the_kernel_where_they_can(many):
    # The Kendall kernel of 7 items has 21 coordinates, so that 200 features are exact.
    Z = many.placement.features[many.view.rows]
    assert np.allclose(Z @ Z.T, many.placement.gram, rtol=0, atol=1e-9)
    assert many.placement.missing == pytest.approx(0, abs=1e-9)


def test_every_ballot_out_of_view_is_in_the_cluster_with_the_nearest_mean(many):
    features, view, clustering = many.placement.features, many.view, many.clustering
    means = np.stack(
        [
            np.average(features[view.rows][clustering.shown == c], axis=0, weights=view.counts[clustering.shown == c])
            for c in range(4)
        ]
    )
    hidden = np.setdiff1d(np.arange(len(features)), view.rows)
    distances = ((features[hidden, None, :] - means) ** 2).sum(axis=2)
    own = distances[np.arange(len(hidden)), clustering.labels[hidden]]
    assert (own <= distances.min(axis=1) + 1e-9).all()


# ---------------------------------------------------------------------- small and odd data


ODD = {
    "one ballot": Rankings.from_orders([["a", "b"]]),
    "two ballots": Rankings.from_orders([["a", "b"], ["b", "a"]]),
    "one item": Rankings([[0], [0]], items=["a"]),
    "nothing said": Rankings([[0, 0, 0], [-1, -1, -1]]),
    "free items": Rankings([[0, -1, 1, -1], [1, 0, -1, 2]]),
    "many items": Rankings(np.argsort(np.random.default_rng(0).random((6, 40)), axis=1)),
    "equal distances": Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_data_makes_a_page(name):
    rankings = ODD[name]
    written = page_about(Source(rankings, name))
    elements = Elements(written)
    assert elements.stack == []
    assert name in elements.texts["h1"]
    assert "nan" not in re.sub("<script.*?</script>", "", written.lower(), flags=re.DOTALL).split()
    n_ballots = len(rankings.unique())
    shown = [each for each in elements.named("circle") if "data-row" in each]
    assert len(shown) == (n_ballots if n_ballots > 2 else 0)  # a map of two says nothing


def test_no_rankings_are_refused():
    with pytest.raises(RankingError, match="holds no rankings"):
        Source(Rankings(np.empty((0, 2))), origin="empty.soi")
    with pytest.raises(RankingError, match="2 groups for 1 rankings"):
        Source(Rankings([[0, 1]]), groups=np.array(["a", "b"]))


def test_groups_of_one_voter_are_not_tested():
    rankings = Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]], counts=[5, 1, 5])
    study = summarize(Source(rankings, by="g", groups=np.array(["x", "alone", "y"])), Settings(n_permutations=9))
    assert [(each.first, each.second) for each in study.comparisons.pairs] == [(1, 2)]


def test_more_clusters_than_ballots_are_refused_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr("rankernel.reports.summary.place_ballots", None)
    with pytest.raises(RankingError, match=r"n_clusters=9 is more than there are different rankings \(2\)"):
        summarize(Source(ODD["two ballots"]), Settings(n_clusters=9))
    monkeypatch.setattr(view_of, "__defaults__", (3,))
    with pytest.raises(RankingError, match=r"in the tree \(\d\), which is that of 3 voters taken at random"):
        summarize(Source(mallows(40, 4, 0.0, rng=0)), Settings(n_clusters=5))


def test_estimated_values_are_said_to_be(study):
    rankings = Rankings(np.where(np.arange(12) < 2, np.arange(12), -1)[None, :].repeat(2, axis=0))
    from rankernel import Exponential, MonteCarlo

    written = page_about(Source(rankings), Settings(kernel=Exponential("footrule", 0.1), method=MonteCarlo(8)))
    assert "Monte Carlo, 8 draws" in written


def test_warnings_are_on_the_page():
    from rankernel import Exponential

    rankings = Rankings.from_orders([["a", "b", "c", "d"], ["b", "a", "d", "c"], ["d", "c", "b", "a"]])
    study = summarize(Source(rankings), Settings(kernel=Exponential("cayley", 0.1)))
    assert any("not positive semi-definite" in note for note in study.notes)
    assert "not positive semi-definite" in page(study)


def test_steps_are_as_many_as_foretold():
    source, seen = wards(2, 60), []
    settings = Settings(n_permutations=9)
    summarize(source, settings, seen.append)
    assert len(seen) == n_steps(source, settings)


# ---------------------------------------------------------------------- the page


def test_page_is_whole_and_needs_no_network(study):
    written = page(study)
    elements = Elements(written)
    assert elements.stack == []
    for name, attributes in elements.found:
        for attribute in ("src", "href", "xlink:href", "action", "data", "poster"):
            if attribute in attributes:
                assert attributes[attribute].startswith(("data:image/png;base64,", "#")), (name, attributes)
        assert "style" not in attributes
        assert not any(attribute.startswith("on") for attribute in attributes)
    assert not elements.named("link")
    assert not elements.named("iframe")
    assert "url(" not in written
    assert "@import" not in written


def test_page_is_the_same_every_time():
    first, second = (page_about(wards(3, 60), Settings(n_permutations=9)) for _ in range(2))
    assert first == second


def test_policy_allows_this_script_and_this_style_only(study):
    elements = Elements(page(study))
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
    assert policy(style, scripts[1]) == content


def test_page_tells_the_numbers(study):
    written = page(study)
    words = words_of(written)
    for expected in (
        "2,400 voters ranked 8 candidates",
        "38.5% put Cindervale before Amberlow, 33.9% the reverse, 27.7% put neither before the other",
        "north and south see the candidates differently",
        "p ≤ 0.01",
        "10.1007/s11222-019-09859-z",
    ):
        assert expected in words
    for attributes in Elements(written).named("svg"):
        assert attributes["role"] in ("img", "group")
        assert len(attributes["aria-label"]) > 10


def test_every_point_says_its_ballot(study):
    points = [each for each in Elements(page(study)).named("circle") if "data-row" in each]
    by_row = {int(each["data-row"]): each for each in points}
    assert len(by_row) == len(study.view.rows)
    row = int(np.argmax(study.view.counts))
    assert by_row[row]["aria-label"] == "121 voters: Eldermist; cluster C"
    assert all(each["tabindex"] == "-1" for each in points)


def test_hostile_names_are_only_text():
    n = len(HOSTILE)
    ranks = np.argsort(np.random.default_rng(0).random((12, n)), axis=1)
    groups = np.array([HOSTILE[row % 3] for row in range(12)])
    source = Source(Rankings(ranks, HOSTILE), HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[3], groups)
    written = page_about(source, Settings(n_permutations=9))
    elements = Elements(written)
    assert elements.stack == []
    assert len(elements.named("script")) == 2
    assert not elements.named("img")
    for _, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes)
    assert elements.texts["h1"] == [HOSTILE[0]]
    assert json.loads(elements.texts["script"][0])["items"][:7] == HOSTILE[:7]
    for raw in HOSTILE[:3]:
        assert raw not in written
    assert "\u202e" not in written
    assert "{{script}}" in written  # as a name, never replaced


def test_markup_escapes_whatever_is_no_markup():
    assert tag("a", "<b>", title='"x"') == '<a title="&quot;x&quot;">&lt;b&gt;</a>'
    assert tag("a", tag("b")) == "<a><b></b></a>"
    assert text(tag("b")) == tag("b")
    assert tag("path", d=None, x=-0.001, y=12.5) == '<path x="-0" y="12.5"/>'


@pytest.mark.parametrize("content", [HOSTILE, {"</script>": "<!--"}, ["\u2028\u2029"]])
def test_embedded_json_is_the_same_json_without_signs_of_markup(content):
    written = embedded_json(content)
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == content


def test_png_is_read_back_by_matplotlib():
    pytest.importorskip("matplotlib")
    import io

    from matplotlib.image import imread

    levels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    pixels = imread(io.BytesIO(png(levels)), format="png")
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
def test_ballots_in_words(order, expected):
    assert ballot_text(Rankings.from_orders([order], items=list("abcd"))) == expected


def test_numbers_in_words():
    assert [percent(share) for share in (0, 0.004, 0.5, 0.996, 1)] == ["0%", "<1%", "50%", ">99%", "100%"]
    assert pvalue_text(1 / 100, 99) == "p ≤ 0.01"
    assert pvalue_text(2 / 100, 99) == "p = 0.02"


def test_a_report_of_rankings_in_one_call(tmp_path):
    source, settings, path = wards(2, 60), Settings(n_permutations=9), tmp_path / "page.html"
    written = report(source.rankings, path, source.groups, "Wards", "ward", settings, "film", "judge")
    same = Source(source.rankings, "Wards", by="ward", groups=source.groups, noun="film", voter="judge")
    assert path.read_text(encoding="utf-8") == written.html == page_about(same, settings)
    assert "60 judges ranked 4 films" in str(written)
    with pytest.raises(RankingError, match=r"page.txt does not end in .html"):
        report(source.rankings, tmp_path / "page.txt")
    two = report(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 2]))
    assert "5 voters ranked 2 items" in two.html
    assert list(two.pictures) == ["first choices", "duels"]
    assert "4 voters ranked 3 items" in str(report([[0, 1, 2]] * 4))
    with pytest.raises(RankingError, match="holds no rankings"):
        report(Rankings(np.empty((0, 2))))


def test_settings_reach_the_page():
    source = Source(ODD["equal distances"])
    written = page_about(source, Settings(kernel=Mallows(0.125), n_clusters=2, linkage="average", seed=7))
    for expected in ("Mallows(nu=0.125)", "average linkage", "<dd>7</dd>", "as asked for"):
        assert expected in written
