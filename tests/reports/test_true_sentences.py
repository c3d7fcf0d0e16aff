"""Sentences of the page are true: their numbers are computed here from the data, without the code of the report."""

import html
import itertools
import re

import numpy as np
import pytest

import rankernel as rk
from rankernel import Kendall, Rankings, report
from rankernel.datasets import load_example, mallows
from rankernel.reports.ballots import Source
from rankernel.reports.clusters import Settings
from rankernel.reports.page import render_page
from rankernel.reports.summary import summarize


def text_of(page):
    return " ".join(html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)).split())


def labels_of(page):
    """Return what is read aloud for pictures and tables."""
    return [html.unescape(label) for label in re.findall(r'aria-label="(.*?)"', page)]


def cyclic(counts, indifferent=0):
    orders = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], [{"a", "b", "c"}]]
    counts = [*counts, indifferent]
    used = [number for number, count in enumerate(counts) if count]
    return Rankings.from_orders([orders[n] for n in used], items=list("abc"), counts=[counts[n] for n in used])


def disagreement(rankings, order):
    """Return how many pairwise preferences of voters an order contradicts."""
    total = 0
    for better, worse in itertools.combinations([rankings.items.index(name) for name in order], 2):
        total += rankings.counts[rankings.ranks[:, worse] < rankings.ranks[:, better]].sum()
    return total


# ---------------------------------------------------------------------- headline and standing


def test_contest_of_two_items():
    made = report(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 1]))
    expected = f"a wins the head-to-head contest: {3 / 4:.1%} of the voters rank a above b, {1 / 4:.1%} the reverse"
    assert expected in made.headline


def test_contests_of_a_cycle_with_undecided_voters():
    headline = report(cyclic([3, 2, 2], indifferent=1)).headline
    for first, second, ahead in (("a", "b", 5), ("b", "c", 5), ("c", "a", 4)):
        behind = 7 - ahead
        expected = f"{first} beats {second} by {ahead / 8:.1%} to {behind / 8:.1%}, with {1 / 8:.1%} undecided"
        assert expected in headline


def test_second_kemeny_ranking_disagrees_with_as_many():
    data = cyclic([1, 1, 1])
    text = text_of(report(data, n_clusters=1).html)
    best = re.search(r"The Kemeny ranking is (\w) > (\w) > (\w)\.", text).groups()
    pattern = r"Another ranking disagrees with equally many: the same with (\w) > (\w) > (\w) at positions 1 to 3"
    other = re.search(pattern, text).groups()
    costs = [disagreement(data, order) for order in itertools.permutations("abc")]
    assert best != other
    assert disagreement(data, best) == disagreement(data, other) == min(costs)
    data = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]])
    text = text_of(report(data, n_clusters=1).html)
    assert re.search("disagrees with equally many: the same with [bc] and [bc] swapped", text)
    assert disagreement(data, "abc") == disagreement(data, "acb") == 1


def test_limits_of_pictures():
    """Of 40 items 25 have bars and 20 are in the table of contests; a cluster lists 8."""
    names = [f"name{number:02}" for number in range(40)]
    data = Rankings(np.argsort(np.random.default_rng(0).random((6, 40)), axis=1), names)
    made = report(data, n_clusters=2)
    text = text_of(made.html)
    assert len(set(re.findall(r"name\d\d", made.pictures["first choices"].svg))) == 25
    assert "Shown are 25 of 40 items." in text
    contests = made.html.split('<section id="contests"')[1].split("</table>")[0]
    assert len(set(re.findall(r'scope="row">(name\d\d)', contests))) == 20
    assert "Shown are 20 of 40 items." in text
    for card in re.findall(r"<article class=\"k\d.*?</article>", made.html, re.DOTALL):
        assert card.count("<li value=") == 8
        assert "… and 32 more" in card


def test_kinds_of_rankings_and_readings():
    data = Rankings([[0, 1, 2], [0, 0, 1], [0, -1, 1], [0, 1, 1]], list("abc"), counts=[5, 2, 2, 1])
    text = text_of(report(data, n_clusters=1).html)
    assert "50% full: every item has its own position (5 voters)" in text
    assert "20% with ties at other positions than the last (2 voters)" in text
    assert "20% incomplete: the positions of some items are unknown (2 voters)" in text
    assert "10% top-k: the first positions are ranked, all other items share the last position (1 voter)" in text
    assert "Reading of the data: unlisted items may have any position." in text
    assert "Reading of the data: unlisted items share the last position." in text_of(report(data[[0, 1, 3]]).html)
    assert "Reading of the data: every ranking is full." in text_of(report(data[[0]]).html)
    no_preference = text_of(report(Rankings([[0, 0], [0, 1]], counts=[1, 3])).html)
    assert "1 voter (25%) rank no item above another." in no_preference
    assert "All first choices go to 0." in no_preference


def test_equal_items_have_equal_shares():
    data = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[4, 4])
    assert "Most first choices: a and b with 50% each." in text_of(report(data).html)


def test_one_voter_and_equal_voters():
    page = report([[1, 0, 2]])
    assert page.headline == "1 voter ranked 3 items: 1 > 0 > 2."
    assert "There is only one voter." in text_of(page.html)
    assert "All voters gave the same ballot." in text_of(report([[1, 0, 2]] * 3).html)
    assert "One cluster, as requested." in text_of(report([[1, 0, 2], [0, 1, 2]], n_clusters=1).html)


def test_unproven_rankings_are_called_so():
    """A search without proof does not say that its ranking is the Kemeny ranking."""
    data = Rankings(np.argsort(np.random.default_rng(0).random((6, 40)), axis=1))
    text = text_of(report(data, n_clusters=1).html)
    pattern = (
        r"The best ranking found by a local search for the Kemeny ranking is (.*?) > 34 more \(not proven optimal\)"
    )
    assert re.search(pattern, text)
    assert "The ranking shown for the Kemeny ranking comes from a local search and is not proven optimal." in text
    assert "The Kemeny ranking is" not in text
    summary = summarize(Source(data), Settings(n_clusters=1))
    share = disagreement(data, [data.items[item] for item in summary.kemeny.order]) / (6 * 40 * 39 / 2)
    assert f"It disagrees with {share:.0%} of the voters’ pairwise preferences" in text


def test_rules_of_an_election():
    """a has most first choices, b the others; the third candidate is eliminated first."""
    orders = [["a", "b", "c"], ["b", "c", "a"], ["c", "b", "a"]]
    data = Rankings.from_orders(orders, items=list("abc"), counts=[4, 3, 2])
    text = text_of(report(data, noun="candidate").html)
    sentence = (
        "The voting rules disagree: a wins by plurality; b wins by instant runoff, Borda count, Condorcet and Kemeny."
    )
    assert sentence in text
    assert "Winners by voting rule voting rule winner result" in text
    assert f"plurality a {4 / 9:.0%} of the first choices" in text
    means = data.counts @ (data.ranks + 1) / 9
    assert means.argmin() == 1
    assert f"Borda count b best mean position, {means[1]:.2f}" in text
    assert f"instant runoff b 5 of 9 votes ({5 / 9:.0%}) in round 2; 0% of all ballots are exhausted" in text
    assert min(itertools.permutations("abc"), key=lambda order: disagreement(data, order))[0] == "b"
    assert "Kemeny b first in the ranking that disagrees with the fewest pairwise preferences" in text
    assert "Rounds of the instant runoff" in text
    assert "Votes in each round of the instant runoff. The candidate with the fewest votes is eliminated" in text
    rows = re.findall(r"\b([abc]) (\d) (\d?) ?", text.split("Rounds of the instant runoff")[-1].split("exhausted")[0])
    votes = {name: first for name, first, _ in rows}
    assert votes == {"a": "4", "b": "3", "c": "2"}


def test_first_choices_of_tied_items():
    """Four voters rank a and b first, two a, and three have no preference."""
    data = Rankings([[0, 0, 1], [0, 1, 2], [0, 0, 0]], list("abc"), counts=[4, 2, 3])
    made = report(data, n_clusters=1)
    text, a, b = text_of(made.html), (4 / 2 + 2) / 6, 4 / 2 / 6
    assert f"Most first choices: a with {a:.0%}; next: b with {b:.0%}." in text
    caption = "Share of the voters that rank each item first, among those that rank some item above another."
    assert f"{caption} Ties for the first position are divided equally." in text
    assert "Right: mean position; tied items share the mean of their positions." in text
    means = [(4 * 1.5 + 2 * 1 + 3 * 2) / 9, (4 * 1.5 + 2 * 2 + 3 * 2) / 9, (4 * 3 + 2 * 3 + 3 * 2) / 9]
    svg = made.pictures["first choices"].svg
    assert all(f">{mean:.1f}<" in svg for mean in means)
    costs = sorted(disagreement(data, order) for order in itertools.permutations("abc"))
    second = "The second-best ranking, the same with a and b swapped, disagrees with"
    assert f"{second} {costs[1] - costs[0]} more preferences." in text


def test_equal_items_are_unbeaten():
    data = Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], counts=[50, 50])
    headline = report(data).headline
    start = "There is no Condorcet winner: a, b and c lose no head-to-head contest and tie with each other."
    assert f"{start} In the contest of the first two, {1 / 2:.1%} of the voters rank a above b" in headline
    pattern = (
        r"95% interval of the difference: −([\d.]+) to ([\d.]+) percentage points, "
        "so that the sample does not show which of the two is ahead"
    )
    ends = [float(end) for end in re.search(pattern, headline).groups()]
    assert ends == pytest.approx([196 * np.sqrt(1 / 100)] * 2, rel=0.15)


def test_axes_and_tables():
    """The variance of the map, and the cells of tables."""
    data = Rankings(np.tile(mallows(60, 5, 0.5, rng=2).ranks, (2, 1)), list("abcde"))
    groups = np.repeat(["x", "y"], 60)
    source = Source(data, group_name="ward", groups=groups)
    summary = summarize(source, Settings(kernel=Kendall(), n_clusters=2, n_permutations=19))
    page = render_page(summary)
    text = text_of(page)
    fitted = rk.KernelMap(kernel=Kendall())
    fitted.fit(data)
    first, second = fitted.explained_variance_ratio_[:2]
    axes = f"The horizontal axis accounts for {first:.0%} of the variance, the vertical axis for {second:.0%}."
    assert axes in text
    assert f"first component, {first:.0%} of the variance →" in text
    assert f"↑ second, {second:.0%}" in text
    total = f"kernel principal components of all voters; the two axes account for {first + second:.0%} of the variance"
    assert total in text
    n_ballots = len(data.unique())
    assert f"The {n_ballots} most common ballots" in text
    label = f"Map of {n_ballots} ballots: ballots that are similar according to the kernel are close"
    assert any(each.startswith(label) for each in labels_of(page))
    assert "Percentage of voters that rank the row above the column, and of undecided voters" in text
    cells = page.split('<section id="contests"')[1].split("</table>")[0]
    names = re.findall(r'scope="row">(\w)</th>', cells)
    for name, row in re.findall(r'scope="row">(\w)</th>(.*?)</tr>', cells, re.DOTALL):
        others = [other for other in names if other != name]
        for other, shown in zip(others, re.findall(r"<td[^>]*>(\d+)", row), strict=True):
            a, b = (data.ranks[:, data.items.index(each)] for each in (name, other))
            assert int(shown) == pytest.approx(100 * (a < b).mean(), abs=0.5)
    assert "Percentage of the voters of each group that are in each cluster." in text
    sizes = [cluster.n_voters / 120 for cluster in summary.clustering.clusters]
    for group in "xy":  # which have the same ballots
        row = re.search(rf'scope="row">{group}</th>(.*?)</tr>', page, re.DOTALL)[1]
        assert re.findall(r">(\d+)%<", row) == [f"{100 * size:.0f}" for size in sizes]


def test_readings_of_comparisons():
    pairs = rk.Preferences.from_pairs([[("a", "b"), ("c", "d")], [("b", "a"), ("c", "d")]])
    text = text_of(report(pairs, n_clusters=1).html)
    assert "pairs of items that no comparison relates, directly or through others, are unknown" in text


# ---------------------------------------------------------------------- approvals


def test_approvals_of_all_voters():
    text = text_of(report(Rankings([[0, 0, 1]], list("abc"), counts=[4])).html)
    assert "Most approvals: a and b with 100% each." in text


def test_contest_of_approvals_without_undecided_voters():
    headline = report(Rankings([[0, 1, 1], [1, 0, 0]], list("abc"), counts=[5, 4])).headline
    assert f"{5 / 9:.1%} of the voters approve of a and not of b, {4 / 9:.1%} the reverse" in headline
    assert "neither" not in headline


def test_pictures_of_approvals():
    """The bars, and the words about them, are those of approvals."""
    made = report(APPROVALS, n_clusters=2)
    approved = APPROVALS.counts @ (APPROVALS.ranks == 0) / APPROVALS.n_voters
    spoken = next(label for label in labels_of(made.html) if label.startswith("Approvals. "))
    for item, share in zip("abc", approved, strict=True):
        assert f"{item} {share:.0%}" in spoken or f"{item}: {share:.0%}" in spoken
    assert "Share of all voters that approve of each item." in text_of(made.html)
    assert "approved by" in made.pictures["approvals"].svg
    text = text_of(made.html)
    assert "Approval ballots: each voter names the approved items, without an order." in text
    assert "The ballots form 2 clusters, found from the approvals alone." in text
    assert "It is shown with its items in the order of their approvals." in text
    first = summarize(Source(APPROVALS), Settings(n_clusters=2)).clustering.clusters[0]
    order = [item for _, item in first.consensus_order]
    members = summarize(Source(APPROVALS), Settings(n_clusters=2))
    inside, shown = members.labels == 0, members.ballots.rankings
    shares = shown.counts[inside] @ (shown.ranks[inside] == 0)
    assert [shares[shown.items.index(item)] for item in order] == sorted(shares, reverse=True)


APPROVALS = Rankings(
    [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0]], list("abc"), counts=[17, 13, 10, 6, 6, 1]
)
ORDERS = Rankings.from_orders(itertools.permutations("abc"), counts=[9, 7, 6, 5, 4, 3])


@pytest.mark.parametrize(("data", "n_clusters"), [(APPROVALS, 3), (ORDERS, 6)], ids=["approvals", "rankings"])
def test_clusters_are_described_by_their_voters(data, n_clusters):
    summary = summarize(Source(data), Settings(n_clusters=n_clusters))
    page, shown, kinds, n_shifts = render_page(summary), summary.ballots.rankings, set(), 0
    text = text_of(page)
    assert text.count(", as requested; their number was not tested.") == 1
    kind = "approvals" if data is APPROVALS else "rankings"
    assert f"The ballots form {n_clusters} clusters, found from the {kind} alone." in text
    if data is ORDERS:  # each cluster is one ballot, which is its own consensus
        assert "It is shown with its Borda ranking." in text
        for cluster in summary.clustering.clusters:
            assert cluster.consensus.ranks.tolist() == cluster.ballot.ranks.tolist()
    for number, cluster in enumerate(summary.clustering.clusters):
        inside, each = summary.labels == number, cluster.distinction
        size, total = shown.counts[inside].sum(), shown.n_voters
        a, b = (shown.ranks[:, shown.items.index(name)] if name else None for name in (each.first, each.second))
        holds = a == 0 if each.kind == "first" else a < b
        share, others, overall = (
            shown.counts[holds & who].sum() / shown.counts[who].sum() for who in (inside, ~inside, inside | True)
        )
        lift, first, second = share / overall, each.first, each.second
        kinds.add(each.kind)
        expected = {
            (True, "first"): f"{share:.0%} approve of {first}; {others:.0%} of all other voters do (lift {lift:.1f}).",
            (True, "pair"): f"{share:.0%} approve of {first} and not of {second}; {others:.0%} of all other voters do"
            f" (lift {lift:.1f}).",
            (False, "first"): f"{share:.0%} rank {first} first; {others:.0%} of all other voters do (lift {lift:.1f}).",
            (False, "pair"): f"{share:.0%} rank {first} above {second}; {others:.0%} of all other voters do"
            f" (lift {lift:.1f}).",
        }
        name = {
            (True, "first"): f"approves {first}",
            (True, "pair"): f"{first}, not {second}",
            (False, "first"): f"{first} first",
            (False, "pair"): f"{first} over {second}",
        }
        assert expected[data is APPROVALS, each.kind] in text
        assert f"{cluster.name} {name[data is APPROVALS, each.kind]} {size} voter" in text
        assert re.search(rf"{size} voters?, {size / total:.0%}\.", text)
        unit = "percentage points" if data is APPROVALS else "positions"
        heads = f"Cluster {cluster.name} compared with all voters, in {unit}: "
        (label,) = [each for each in labels_of(page) if each.startswith(heads)]
        scale = 100 if data is APPROVALS else 1
        means = [np.average(shown.ranks[who], axis=0, weights=shown.counts[who]) for who in (inside, inside | True)]
        for item, shift in re.findall(r"(\w) ([+−]\d+(?:\.\d)?)", label.removeprefix(heads)):
            n_shifts += 1
            exact = scale * (means[1] - means[0])[shown.items.index(item)]
            assert float(shift.replace("−", "-")) == pytest.approx(exact, abs=0.5 if data is APPROVALS else 0.05)
    assert kinds == {"first", "pair"}
    assert n_shifts > n_clusters


def test_most_common_ballot_of_no_approval(tmp_path):
    """A file with categories says whether ballots without a preference approve of all items or of none."""
    path = tmp_path / "a.cat"
    names = "".join(f"# ALTERNATIVE NAME {number}: {name}\n" for number, name in enumerate("XYZ", start=1))
    path.write_text(
        "# TITLE: A\n# DATA TYPE: cat\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 40\n"
        "# NUMBER UNIQUE PREFERENCES: 3\n# NUMBER CATEGORIES: 2\n# CATEGORY NAME 1: Yes\n# CATEGORY NAME 2: No\n"
        f"{names}24: {{}},{{1,2,3}}\n10: {{1,2}},3\n6: 3,{{1,2}}\n"
    )
    text = text_of(report(rk.read(path), n_clusters=3).html)
    assert "Most common ballot: approves none (24 voters)." in text
    assert "24 voters (60%) approve of none of the items." in text
    unknown = Rankings([[0, 0, 0], [0, 0, 1], [1, 1, 0]], list("XYZ"), counts=[24, 10, 6])
    assert "Most common ballot: approves all or none (24 voters)." in text_of(report(unknown, n_clusters=3).html)


# ---------------------------------------------------------------------- groups


def holm(pvalues):
    order, adjusted, largest = np.argsort(pvalues), np.empty(len(pvalues)), 0.0
    for step, index in enumerate(order):
        largest = max(largest, min(1.0, pvalues[index] * (len(pvalues) - step)))
        adjusted[index] = largest
    return adjusted


def test_verdicts_of_pairs_of_groups():
    up, down = (mallows(60, center, 1.0, rng=n) for n, center in enumerate(([0, 1, 2, 3], [3, 2, 1, 0])))
    data = Rankings(np.concatenate([up.ranks, up.ranks, down.ranks]))
    groups = np.repeat(["x", "y", "z"], 60)
    text = text_of(report(data, groups=groups, n_permutations=199, n_clusters=1).html)
    assert "All 3 pairs of groups" in text
    assert "p-values corrected by Holm’s method" in text
    assert ", corrected for the number of pairs. The difference between the two groups accounts for" in text
    assert "The family-wise error rate over all pairs of groups is at most 5%." in text
    kernel = summarize(Source(data), Settings(n_clusters=1)).settings.kernel
    tests = rk.k_sample_test(data, groups, kernel, n_permutations=199).pairwise()
    head = "groups p-value, corrected share of the dispersion (95% interval) result"
    rows = text.split(head)[1]
    assert "Pearson type III" in rows  # the smallest p-value of 199 permutations, 0.005, is coarse for three pairs
    assert tests.moment_pvalues.min() == 1e-6  # where splitting stops, so that the p-value is at most this
    of_pairs = tests.first, tests.second, tests.moment_pvalues, holm(tests.moment_pvalues)
    for first, second, pvalue, adjusted in zip(*of_pairs, strict=True):
        row = re.search(rf"{first} – {second} p ([=≤]) ([\d.e-]+) .*?(not significant|significant)", rows)
        assert row[1] == ("≤" if pvalue == 1e-6 else "=")
        assert float(row[2]) == pytest.approx(adjusted, rel=0.05)
        assert row[3] == ("significant" if adjusted <= 0.05 else "not significant")


def test_equal_groups_do_not_differ():
    data, groups = Rankings(np.tile(mallows(40, 4, 0.5, rng=3).ranks, (3, 1))), np.repeat(["x", "y", "z"], 40)
    text = text_of(report(data, groups=groups, n_permutations=99, n_clusters=1).html)
    kernel = summarize(Source(data), Settings(n_clusters=1)).settings.kernel
    pvalue = rk.k_sample_test(data, groups, kernel, n_permutations=99).pvalue
    start = "No significant difference between the 3 groups together was found: "
    assert pvalue > 0.9  # the groups are the same
    assert re.search(rf"{start}(>99|100)% of random divisions of the voters give as large a difference", text)
    two = report(data[:80], groups=groups[:80], n_permutations=99, n_clusters=1).html
    assert "Groups are tested at a significance level of 5%." in text_of(two)


def test_groups_beyond_the_rows_of_a_table():
    groups = np.repeat([f"g{number:03}" for number in range(101)], 2)
    data = Rankings(np.tile([[0, 1, 2], [2, 1, 0]], (101, 1)))
    page = report(data, groups=groups, n_clusters=2, n_permutations=19, compare=["g000", "g001"]).html
    assert "100 of 101 groups are shown; all are in the CSV file." in page
    assert "; 2 of 101 groups, as requested" in page
    table = page.split('data-name="clusters-by-group"')[2].split("</table>")[0]
    rows = re.findall(r'<tr( hidden)?><th scope="row">g\d+</th>', table)
    assert (len(rows), sum(map(bool, rows))) == (101, 1)


def test_shares_of_pairs_are_read_aloud():
    data = Rankings([[0, 1, 2], [1, 0, 2]] * 2, list("abc"), counts=[150, 50, 80, 120])
    page = report(data, groups=["x", "x", "y", "y"], n_clusters=1, n_permutations=99).html
    x, y = 150 / 200, 80 / 200
    pair = f"a above b: {x:.0%} and {y:.0%}; the reverse: {1 - x:.0%} and {1 - y:.0%}"
    assert f"Shares of x and y. {pair}." in labels_of(page)
    assert "Share of each group that ranks the first item above the second, with 95% intervals" in page
    note = "Differences whose interval contains 0 are not listed."
    assert note in page
    assert "c ranks" not in page  # it is last everywhere


def test_error_of_estimated_statistics():
    ranks = np.where(np.arange(9) < 3, np.argsort(np.random.default_rng(0).random((40, 9))), -1)
    data, kernel, method = Rankings(ranks), rk.Exponential("footrule", 0.1), rk.MonteCarlo(32)
    groups = np.repeat(["x", "y"], 20)
    page = report(data, groups=groups, kernel=kernel, method=method, n_clusters=1, n_permutations=99).html
    result = rk.mmd_test(data[:20], data[20:], kernel, method=method, n_permutations=99)
    error = result.statistic_mcse / result.null_distribution.std()
    shown = re.search(r"Estimated kernel values add a standard error of (\d+)% of the standard deviation under", page)
    assert int(shown[1]) == pytest.approx(100 * error, abs=0.5)
    assert error > 0.01


# ---------------------------------------------------------------------- comparisons


def test_judges_with_few_comparisons_are_left_out():
    """Of twelve items, a ranking needs eleven comparisons: three judges made 22, five made 4."""
    pairs = list(itertools.combinations([f"m{number:02}" for number in range(12)], 2))
    chain = [(pairs[0][0].replace("00", f"{n:02}"), f"m{n + 1:02}") for n in range(11)]
    rows = [
        (a, b, 1 if (n + judge) % 3 else -1, f"j{judge}") for judge in range(3) for n, (a, b) in enumerate(chain * 2)
    ]
    rows += [(a, b, 1 if n % 2 else -1, f"j{judge}") for judge in range(3, 8) for n, (a, b) in enumerate(pairs[:4])]
    first, second, outcome, judge = zip(*rows, strict=True)
    data = rk.Comparisons.from_arrays(first, second, outcome, judge=judge)
    with pytest.warns(rk.errors.ReadingWarning, match="5 of 8"):
        text = text_of(report(data).html)
    assert "3 of 8 judges are shown in the sections below" in text
    reading = "one Bradley-Terry ranking per judge; items that a judge did not compare may have any position"
    assert reading in text


@pytest.mark.parametrize("advantage", [0.0, 3.0])
def test_rank_of_the_leader(advantage):
    rng, names = np.random.default_rng(1), ["Aster", "Birch", "Cedar"]
    rows = [rng.choice(3, 2, replace=False) for _ in range(150)]
    strengths = np.array([advantage, 0.0, -0.2])
    won = [1 if rng.random() < 1 / (1 + np.exp(strengths[b] - strengths[a])) else -1 for a, b in rows]
    data = rk.Comparisons.from_arrays(*([names[index] for index in side] for side in zip(*rows, strict=True)), won)
    board = rk.leaderboard(data)
    low, high = board.rank_intervals[0]
    headline = report(data).headline
    assert (low == high) == (advantage > 0)
    if low == high:
        start = "Aster is first: its Bradley-Terry strength is significantly above that of every other item"
        assert f"{start}, with 95% confidence for all pairs at once." in headline
        assert board.above.before[0][0].tolist() == [False, True, True]
    else:
        start = f"{board.items[0]} has the highest Bradley-Terry strength, but its rank is uncertain"
        assert f"{start}: from {low} to {high}, with 95% confidence for all ranks at once." in headline


def test_items_that_were_not_compared():
    """Only a and b, and b and c, were compared; every comparison is a ranking where judges are unknown."""
    rows = [("a", "b", 1)] * 9 + [("b", "a", 1)] + [("c", "b", 1)] * 3 + [("b", "c", 1)]
    first, second, outcome = zip(*rows, strict=True)
    made = report(rk.Comparisons.from_arrays(first, second, outcome))
    text = text_of(made.html)
    rest = "They were not compared with each other: their difference follows from comparisons with other items."
    assert re.search(rf"a and c are (not )?separated\. {rest}", text)
    assert "every comparison by itself" in text
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", made.html)
    assert headings[0] == "Leaderboard"
    table = made.html.split("<table")[1].split("</thead>")[0]
    heads = re.findall(r'scope="col">(.*?)</th>', table)
    assert heads == ["item", "rank", "ranks that are possible", "Bradley-Terry strength", "95% interval", "comparisons"]
    assert "All 3 items with their numbers of comparisons" in text
    rows = dict(re.findall(r'<th scope="row">(\w)</th>.*?(\d+)</td></tr>', made.html.split("<table")[1]))
    assert rows == {"a": "10", "b": "14", "c": "4"}
    assert "Scores and shares are computed from all comparisons." in text
    assert "resamples of the 14 comparisons, which are taken as independent." in text
    assert (
        "Bradley-Terry strength, a tie counting half a win; intervals by the Bayesian bootstrap of 14 comparisons"
        in text
    )
    assert "Percentage of comparisons that the row won against the column, and of ties" in text


# ---------------------------------------------------------------------- headings and methods


def test_headings_and_methods():
    example = load_example()
    source = Source(example.rankings, "Nowhere Bay", "votes.csv", "", "district", example.districts, noun="candidate")
    settings = Settings(kernel=Kendall(), n_clusters=2, n_permutations=19, linkage="average", rng=7)
    page = render_page(summarize(source, settings))
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert headings == [
        "Who is ahead",
        "Clusters of voters",
        "Comparison by district",
        "Uncertainty",
        "Map of the ballots",
        "Gram matrix",
        "Head-to-head contests",
        "Dendrogram",
        "Methods",
    ]
    assert "A report on rankings" in page
    facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>(.*?)</dd>", page.split('class="facts"')[1], re.DOTALL))
    assert facts["Data"] == "votes.csv"
    assert facts["Reading"].startswith("unlisted candidates share the last position")
    assert facts["Kernel"] == "Kendall(), averaged over the completions of partial rankings"
    assert facts["Kernel values"] == "closed form"
    assert facts["Clusters"].startswith("average linkage of kernel distances, weighted by voters; 2 clusters")
    assert "as requested" in facts["Clusters"]
    assert facts["Tests"] == "unbiased squared MMD with the kernel Kendall(), 19 permutations"
    assert facts["Seed"] == "7"
    assert "rankernel" in facts["Software"]
    assert "Branches merge at their linkage distance (average linkage of kernel distances)." in text_of(page)
    assert "Kernel values are exact." in page
    points = re.findall(r'<circle[^>]*data-row="\d+"[^>]*aria-label="(\d[\d,]*) voters?: ', page)
    points = points or re.findall(r'aria-label="(\d[\d,]*) voters?: [^"]*; cluster [AB]"', page)
    assert sum(int(number.replace(",", "")) for number in points) == 2400
