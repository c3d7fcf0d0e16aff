"""Winners of elections: the instant-runoff count against brute force and RCTab, and the sentences about the rules."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import real_data
from real_data import needs_data

from rankernel import Rankings
from rankernel.io.source import FileSource
from rankernel.reports.ballots import Source, instant_runoff
from rankernel.reports.clusters import Settings
from rankernel.reports.page import render_page
from rankernel.reports.summary import summarize


def runoff_of_voters(lists, items):
    """The votes in each round, for ballots that are lists of names without ties, one for each voter."""
    remaining, rounds = list(items), []
    while True:
        votes = dict.fromkeys(remaining, 0)
        for names in lists:
            left = [name for name in names if name in remaining]
            if left:
                votes[left[0]] += 1
        rounds.append(votes)
        if 2 * max(votes.values()) > sum(votes.values()) or len(set(votes.values())) == 1:
            return rounds
        fewest = [name for name in remaining if votes[name] == min(votes.values())]
        if votes[fewest[0]]:
            for earlier in rounds[-2::-1]:
                fewest = [name for name in fewest if earlier[name] == min(earlier[each] for each in fewest)]
            fewest = fewest[-1:]
        remaining = [name for name in remaining if name not in fewest]


def named_votes(rankings, rounds):
    eliminated, found = set(), []
    for each in rounds:
        votes = zip(rankings.items, each.votes.tolist(), strict=True)
        found.append({name: number for name, number in votes if name not in eliminated})
        eliminated |= {rankings.items[item] for item in each.eliminated}
    return found


@pytest.mark.parametrize("seed", range(20))
def test_runoff_matches_brute_force(seed):
    rng = np.random.default_rng(seed)
    items = list("abcdefg")
    lists = [rng.permutation(items)[: rng.integers(1, 6)].tolist() for _ in range(rng.integers(1, 40))]
    rankings = Rankings.from_orders(lists, items=items)
    expected = runoff_of_voters(lists, items)
    assert named_votes(rankings, instant_runoff(rankings)) == expected
    assert named_votes(rankings, instant_runoff(rankings.unique())) == expected
    rounds = instant_runoff(rankings)
    assert [each.votes.sum() + each.n_exhausted for each in rounds] == [len(lists)] * len(rounds)


def test_runoff_of_free_items_and_equals():
    """Free items are not ranked, and a ballot that ranks two remaining items as equals is exhausted for good."""
    rankings = Rankings(
        [[0, -1, -1, -1], [-1, 0, 1, -1], [1, 0, 0, 2], [2, 2, 0, 1]], list("abcd"), counts=[5, 4, 1, 3]
    )
    rounds = instant_runoff(rankings)
    assert [each.votes.tolist() for each in rounds] == [[5, 4, 3, 0], [5, 4, 3, 0], [5, 4, 0, 0]]
    assert [each.n_exhausted for each in rounds] == [1, 1, 4]
    assert [each.eliminated for each in rounds] == [(3,), (2,), ()]


def test_runoff_ties():
    rankings = Rankings.from_orders([["a"], ["b"], ["c", "a"], ["d", "b"]], items=list("abcd"), counts=[3, 3, 1, 1])
    first, second, third = instant_runoff(rankings)
    assert (first.is_tie, first.eliminated) == (True, (3,))  # the last in the order of the data
    assert (second.is_tie, second.votes.tolist()) == (False, [3, 4, 1, 0])
    assert (third.is_tie, third.votes.tolist(), third.eliminated) == (True, [4, 4, 0, 0], ())
    (only,) = instant_runoff(Rankings([[0, 0, 0]]))
    assert (only.is_tie, only.n_exhausted) == (True, 1)


# ---------------------------------------------------------------------- RCTab


def rctab_rounds(path):
    """The votes of each candidate in each round of a detailed report."""
    rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    start = next(number for number, row in enumerate(rows) if row[:1] == ["Rounds"]) + 3
    end = next(number for number, row in enumerate(rows) if row[:1] == ["Active Ballots"])
    votes = {row[0]: [int(float(cell)) for cell in row[1::3] if cell] for row in rows[start:end]}
    return [{name: numbers[k] for name, numbers in votes.items() if numbers[k]} for k in range(len(rows[end][1::3]))]


def rctab_ballots(folder, config, skipped=("undervote",), overvotes=("overvote",)):
    """The lists of candidates, ended by an overvote and by more skipped ranks than the rules allow."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    (source,) = config["cvrFileSources"]
    table = pandas.read_excel(folder / source["filePath"], header=None, dtype=str).fillna("")
    names = {alias: each["name"] for each in config["candidates"] for alias in (each["name"], *each["aliases"])}
    limit, lists = int(config["rules"]["maxSkippedRanksAllowed"]), []
    for row in table.to_numpy()[int(source["firstVoteRowIndex"]) - 1 :, int(source["firstVoteColumnIndex"]) - 1 :]:
        ballot, n_skipped = [], 0
        for cell in map(str.strip, row):
            n_skipped = n_skipped + 1 if cell in ("", *skipped) else 0
            if n_skipped > limit or cell in overvotes or "|" in cell:
                break
            if not n_skipped and names.get(cell, "Undeclared Write-ins") not in ballot:
                ballot.append(names.get(cell, "Undeclared Write-ins"))
        lists.append(ballot)
    return lists


@needs_data
@pytest.mark.parametrize("name", ["2015_portland_mayor", "aliases_ess_xlsx"])
def test_rounds_match_rctab(name):
    folder = Path(real_data.FOLDER) / "cvr" / name
    config = json.loads((folder / f"{name}_config.json").read_text(encoding="utf-8"))
    lists = rctab_ballots(folder, config)
    items = [*(each["name"] for each in config["candidates"]), "Undeclared Write-ins"]
    rankings = Rankings.from_orders([ballot for ballot in lists if ballot], items=items)
    found = [{name: n for name, n in votes.items() if n} for votes in named_votes(rankings, instant_runoff(rankings))]
    expected = rctab_rounds(folder / f"{name}_expected_detailed_report.csv")
    assert found[0] == expected[0]
    assert found[-1] == expected[-1]
    # RCTab eliminates several candidates at once; its rounds are among those of single eliminations.
    assert all(votes in found for votes in expected)


# ---------------------------------------------------------------------- the page


def text_of(rankings, **options):
    summary = summarize(Source(rankings, **{"noun": "candidate"} | options), Settings(n_clusters=1))
    return " ".join(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", render_page(summary), flags=re.DOTALL).split())


def test_rules_that_agree():
    text = text_of(Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[7, 4]))
    assert "a wins by all five rules." in text
    assert "instant runoff a 7 of 11 votes (64%) in round 1; 0% of all ballots are exhausted" in text


def test_rules_that_disagree():
    """A center candidate who beats everyone is eliminated first."""
    orders = [["left", "center", "right"], ["right", "center", "left"], ["center", "left", "right"]]
    text = text_of(Rankings.from_orders(orders, counts=[40, 39, 21]))
    assert "left wins by plurality and instant runoff; center wins by Borda count, Condorcet and Kemeny" in text
    assert "instant runoff left 61 of 100 votes (61%) in round 2" in text
    assert "Condorcet center wins all 2 head-to-head contests" in text


def test_cycle_has_no_winner_by_condorcet():
    text = text_of(Rankings.from_orders([[*"abc"], [*"bca"], [*"cab"]], counts=[4, 3, 2]))
    assert "there is no winner by Condorcet" in text
    assert "Condorcet none no candidate wins all 2 head-to-head contests" in text


def test_tie_in_the_last_round():
    text = text_of(Rankings.from_orders([["a"], ["b"]], items=list("abc"), counts=[5, 5]))
    assert "5 of 10 votes each in round 2" in text
    assert "Tie: the candidate with fewer votes" in text


def test_several_seats_are_not_counted():
    rankings = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[7, 4])
    assert "The election fills 3 seats. This page does not count seats" in text_of(rankings, about=FileSource(seats=3))
    assert "seats" not in text_of(rankings, about=FileSource(seats=1))


def test_names_with_commas_are_distinguished():
    names = ["Brown, Ann", "Lee, Bo", "Fox, Cy"]
    text = text_of(Rankings.from_orders([[name] for name in names[:2]], items=names, counts=[5, 5]))
    assert "Brown, Ann; and Lee, Bo lose no head-to-head contest" in text
    assert "Brown, Ann; and Lee, Bo tie by plurality" in text


def test_rules_are_for_elections():
    rankings = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[7, 4])
    assert "instant runoff" not in text_of(rankings, noun="film")
    assert "instant runoff" not in text_of(Rankings([[0, 0, 1], [0, 1, 1]]))  # approval ballots
