"""The data of a report: rankings or comparisons with their names and groups, first choices, approvals and contests.

Head-to-head contests count strict preferences only: a voter who ties two items, or says nothing of one of them, is
undecided between the two.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, Indices, IntArray, Mask
from rankernel._utils.checks import check_labels, printable
from rankernel.comparisons import Comparisons
from rankernel.data import Data, group_codes, pairwise_wins, with_counts
from rankernel.errors import RankingError
from rankernel.io.ballots import WRITE_IN
from rankernel.io.source import FileSource
from rankernel.preferences import Preferences
from rankernel.rankings import FREE, Rankings
from rankernel.reports.text import Wording, plural

UNNAMED = "(none)"  # shown for a group whose name is empty
ELECTION_WORDS = ("election", "mayor", "council", "ward", "precinct", "senate", "leader", "supervisor", "blt", "seats")
DOMINANT_SHARE = 0.6  # of the voters of a ballot, to colour it by their group
MAX_EXACT_CYCLE = 16  # items of a majority cycle up to which the Kemeny ranking is proven optimal
N_STARTS = 3  # of the local search for longer cycles
MANY_ITEMS = 100  # above which one start is made


@dataclass(frozen=True, eq=False)
class Source:
    """Rankings with their description and the group of each row."""

    rankings: Data  # at least one ranking
    title: str = "Rankings"
    origin: str = ""  # such as the name of a file
    description: str = ""
    group_name: str = ""  # what the groups are, such as "district"; empty without groups
    groups: NDArray[np.str_] | None = None  # group of each row
    noun: str = "item"  # what is ranked
    voter: str = "voter"  # who ranks
    sample: bool | None = None  # whether the voters are a sample; by default unless candidates are ranked
    about: FileSource | None = None  # what the file states besides the rankings
    comparisons: Comparisons | None = None  # of which the rankings are those of the judges
    comparison_groups: NDArray[np.str_] | None = None  # group of each comparison, if judges are in several groups

    @classmethod
    def of(
        cls, data: Any, groups: Any = None, group_name: str | None = None, origin: str = "", **stated: Any
    ) -> Source:
        """Return rankings or comparisons with what is known of their file, unless it is stated.

        ``groups`` are names of groups or a label column. The rankings of comparisons are those of the judges; groups of
        comparisons are groups of judges if every judge is in one of them.
        """
        about, battles = data.source, isinstance(data, Comparisons)
        rankings = rankings_of_judges(data) if battles else data
        column = groups if isinstance(groups, str) else "group"
        fields = {name: value for name, value in stated.items() if value is not None}
        fields |= {"origin": printable(origin), "group_name": "" if groups is None else group_name or column}
        fields["title"] = printable(fields.get("title") or (about.title if about else "") or origin or cls.title)
        guessed = fields.get("noun") or guess_noun(fields["title"], about, data.items, fields["group_name"])
        fields["noun"] = printable(guessed)
        if battles or (about and about.format.startswith("pairs")):
            fields = {"voter": "judge"} | fields
        if battles:
            fields |= {"comparisons": data} | ({} if groups is None else groups_of_judges(data, rankings, groups))
        elif groups is not None:
            fields["groups"] = group_labels(data, groups)
        return cls(rankings, about=about, **fields)

    def __post_init__(self) -> None:
        if not len(self.rankings):
            raise RankingError(f"{printable(self.origin or self.title)} has no rankings")
        if self.groups is not None and len(self.groups) != len(self.rankings):
            raise RankingError(f"there are {len(self.groups)} groups for {len(self.rankings)} rankings; give one each")

    @cached_property
    def named_groups(self) -> tuple[tuple[str, ...], IntArray]:
        """The names of the groups in natural order, and the group of each row, or comparison, as an index."""
        groups = self.groups if self.comparison_groups is None else self.comparison_groups
        if groups is None:
            return (), np.zeros(len(self.rankings), dtype=np.int64)
        distinct, codes = np.unique(groups, return_inverse=True)
        names, numbers = group_codes(np.array([printable(name) or UNNAMED for name in distinct.tolist()]))
        return names, numbers[codes.ravel()]

    @property
    def is_grouped(self) -> bool:
        """Whether voters, or comparisons, are in groups."""
        return self.groups is not None or self.comparison_groups is not None

    @property
    def is_sample(self) -> bool:
        """Whether the voters are a sample, such as judges or respondents, not the full count of an election."""
        return self.noun != "candidate" if self.sample is None else self.sample

    @cached_property
    def wording(self) -> Wording:
        """The nouns of the report."""
        return Wording(self.noun, self.voter, self.comparisons is None and are_approvals(self.rankings))

    @property
    def group_wording(self) -> Wording:
        """The nouns of tests between groups, which may be groups of comparisons."""
        return self.wording if self.comparison_groups is None else replace(self.wording, voter="comparison")

    @property
    def reading(self) -> str:
        """How the file was read, as a sentence fragment."""
        if self.comparisons is not None and not isinstance(self.rankings, Preferences):
            return self.wording.say("reading_judges" if len(self.rankings) > 1 else "reading_battles")
        if isinstance(self.rankings, Preferences):
            return self.wording.say("reading_pairs")
        if self.rankings.is_full():
            return self.wording.say("reading_full")
        return self.wording.say("reading_last" if self.rankings.is_exhaustive() else "reading_free")

    @property
    def provenance(self) -> list[str]:
        """The columns of the file that were ignored and the repairs, as sentences."""
        ignored, repairs = (self.about.ignored_text, self.about.repairs) if self.about else ("", None)
        n_cycles = 0 if self.comparisons else getattr(self.rankings, "n_contradicting", 0)
        who = plural(n_cycles, f"{self.voter} has", f"{self.wording.nouns['voters']} have")
        found = [f"Columns ignored: {ignored}."] * bool(ignored) + [f"Repaired: {repairs}."] * bool(repairs)
        return found + [f"{who} cyclic preferences, read as ties."] * bool(n_cycles)


def guess_noun(title: str, about: FileSource | None, items: tuple[str, ...], column: str = "") -> str:
    """Return "model" for comparisons of models, "candidate" if a file appears to be about an election, else "item"."""
    file_format = about.format if about else ""
    if "model" in file_format:  # in a name of a column of comparisons
        return "model"
    if about and about.title and "cast vote record" in file_format:  # of a contest; other tables state no title
        return "candidate"
    words = f"{title} {file_format} {column}".casefold()
    named = [item.casefold().startswith("candidate") for item in items]
    is_election = any(word in words for word in ELECTION_WORDS) or any(map(WRITE_IN.fullmatch, items))
    return "candidate" if is_election or (named and all(named)) else "item"


def group_labels(data: Data, groups: Any) -> NDArray[np.str_]:
    """Return the group of each row as text, from an array or a label column."""
    if isinstance(groups, str):
        if groups not in data.labels:
            known = ", ".join(map(printable, data.labels)) or "none"
            raise RankingError(f"groups={groups!r} is not a label column of the data; there are: {known}")
        groups = data.labels[groups]
    return np.asarray(check_labels("groups", groups, len(data)).astype(str))


# ---------------------------------------------------------------------- comparisons

MAX_PARTIAL = 10  # items up to which the partial orders of judges are shown; of more, their Bradley-Terry rankings
SCORES = {"bradley_terry": "Bradley-Terry strength", "borda": "mean win rate"}


def rankings_of_judges(data: Comparisons) -> Data:
    """Return one row per judge: a partial order if there are few items, else a Bradley-Terry ranking.

    Judges with too few comparisons for a ranking are left out. Without judges there is one row, the ranking of all.
    """
    if data.judges and data.n_items <= MAX_PARTIAL:
        preferences = data.preferences()
        if len(preferences) == 1 or not preferences.is_ranking().all():
            return preferences
        rankings, judges = preferences.to_rankings(), {"group": np.array(preferences.users)}
        return Rankings._trusted(rankings.ranks, rankings.items, rankings.counts, judges)
    if data.judges:
        with suppress(RankingError):  # no judge has enough comparisons
            return data.rankings()
    return data.rankings(np.zeros(len(data)), min_comparisons=1)


def groups_of_judges(data: Comparisons, rankings: Data, by: Any) -> dict[str, NDArray[np.str_]]:
    """Return the groups of the rankings of judges, or of comparisons if a judge is in several groups."""
    names, codes = data.groups(by)
    labels, of_judge = np.array(names, dtype=str), np.full(data.n_judges, -1)
    if len(rankings) > 1:
        of_judge[data.judge] = codes
        if (of_judge[data.judge] == codes).all():
            shown = rankings.users if isinstance(rankings, Preferences) else rankings.labels["group"].tolist()
            return {"groups": labels[of_judge[[data.judges.index(judge) for judge in shown]]]}
    return {"comparison_groups": labels[codes]}


def behind(data: Comparisons, first: str, second: str) -> dict[str, int]:
    """Return the comparisons of two items: their number, wins, losses and ties, and the number of their judges."""
    a, b = data.items.index(first), data.items.index(second)
    forward, backward = ((data.first == x) & (data.second == y) for x, y in ((a, b), (b, a)))
    rows = np.flatnonzero(forward | backward)
    won = np.where(forward, data.outcome, -data.outcome)[rows]
    n_judges = len(np.unique(data.judge[rows])) if data.judges else 0
    wins, losses = int((won > 0).sum()), int((won < 0).sum())
    return {"n": len(rows), "wins": wins, "losses": losses, "ties": len(rows) - wins - losses, "n_judges": n_judges}


def sizes_of_items(data: Comparisons) -> tuple[IntArray, IntArray]:
    """Return the number of comparisons of each item, and of the judges who made them."""
    items = np.concatenate([data.first, data.second])
    n_comparisons = np.bincount(items, minlength=data.n_items)
    if not data.judges:
        return n_comparisons, np.zeros_like(n_comparisons)
    distinct = np.unique(items * data.n_judges + np.concatenate([data.judge, data.judge]))
    return n_comparisons, np.bincount(distinct // data.n_judges, minlength=data.n_items)


# ---------------------------------------------------------------------- distinct ballots


@dataclass(frozen=True, eq=False)
class Ballots:
    """The distinct ballots of a source."""

    rankings: Data  # one row for each distinct ballot; its count is the number of voters
    groups: tuple[str, ...]  # names of the groups, empty without groups
    by_group: IntArray  # (n_ballots, n_groups): number of voters of each group who gave each ballot
    approve_all_share: float | None  # share of the approval ballots without a preference that approve of all items

    def of_group(self, group: int) -> Data:
        """Return the ballots of one group."""
        rows = np.flatnonzero(self.by_group[:, group])
        return with_counts(self.rankings[rows], self.by_group[rows, group])

    def dominant_groups(self) -> Indices:
        """Return the group of more than 60% of the voters of each ballot, -1 for none."""
        if not self.groups:
            return np.full(len(self.rankings), -1)
        dominant = self.by_group.max(axis=1) > DOMINANT_SHARE * self.by_group.sum(axis=1)
        return np.where(dominant, self.by_group.argmax(axis=1), -1)


def distinct_ballots(source: Source) -> Ballots:
    """Return the distinct ballots; approval ballots without a preference approve of no item unless the data tell."""
    rankings = source.rankings
    shown: dict[str, None] = {}
    for item in rankings.items:  # names that would be printed alike get a number
        name, number = printable(item), 1
        while (unique := name if number == 1 else f"{name} ({number})") in shown:
            number += 1
        shown[unique] = None
    distinct = rankings._replaced(items=tuple(shown)).unique()
    names, codes = source.named_groups if source.groups is not None else ((), np.zeros(0, dtype=np.int64))
    by_group = np.zeros((len(distinct), len(names)), dtype=np.int64)
    if names:
        np.add.at(by_group, (rankings.unique_indices()[1], codes), rankings.counts)
    share = None
    if source.wording.approvals:
        n_without = int(rankings.counts[~has_preference(rankings)].sum())
        n_all = (source.about.n_all_in_first if source.about else None) or 0
        share = min(n_all / max(n_without, 1), 1.0)
    return Ballots(distinct, names, by_group, share)


@dataclass(frozen=True, eq=False)
class View:
    """The ballots that pictures show: all of them, or those of a random sample of voters."""

    rows: Indices  # indices of the ballots
    counts: IntArray  # number of sampled voters who gave each
    sampled: bool

    @property
    def n_voters(self) -> int:
        """The number of voters shown."""
        return int(self.counts.sum())


def view_of(ballots: Ballots, limit: int, seed: int) -> View:
    """Return all ballots if there are at most ``limit``, else those of ``limit`` voters sampled at random."""
    counts = ballots.rankings.counts
    if len(counts) <= limit:
        return View(np.arange(len(counts)), counts, sampled=False)
    return View(*sample_voters(counts, limit, np.random.default_rng([seed, 1])), sampled=True)


def sample_voters(counts: IntArray, n_voters: int, rng: np.random.Generator) -> tuple[Indices, IntArray]:
    """Return the rows of voters sampled without replacement, and the number of sampled voters of each row."""
    if counts.sum() <= n_voters:
        return np.arange(len(counts)), counts
    voters = rng.choice(int(counts.sum()), n_voters, replace=False)  # voters as indices into the cumulated counts
    rows, sampled = np.unique(np.searchsorted(np.cumsum(counts), voters, side="right"), return_counts=True)
    return rows, np.asarray(sampled, dtype=np.int64)


# ---------------------------------------------------------------------- first choices, approvals, mean positions


def are_approvals(rankings: Data) -> bool:
    """Return whether all rows are approval ballots: two buckets at most, some row with several items in the first."""
    if isinstance(rankings, Preferences) or rankings.n_items < 3:
        return False
    ranks = rankings.ranks
    two_buckets = (ranks.max(axis=1) <= 1) & (ranks.min(axis=1) == 0)
    divided = ranks.max(axis=1) == 1
    return bool(two_buckets.all() and ((ranks == 0).sum(axis=1) > 1)[divided].any())


def standings(rankings: Data, approve_all_share: float | None) -> FloatArray:
    """Return the mean position of each item or, of approval ballots, the percentage that does not approve of it."""
    if approve_all_share is None:
        return mean_positions(rankings)
    return 100 * (1 - first_counts(rankings, approve_all_share) / rankings.n_voters)


def mean_positions(rankings: Data) -> FloatArray:
    """Return the mean position of each item, from 1; tied items share the mean of their positions."""
    from rankernel.models.consensus import overall_mean

    return overall_mean(rankings, "ranks") + (rankings.n_items + 1) / 2


def first_counts(rankings: Data, approve_all_share: float | None = None) -> FloatArray:
    """Return the number of voters who rank each item first, or who approve of it."""
    return np.asarray(rankings.counts @ count_shares(rankings, approve_all_share))


def count_shares(rankings: Data, approve_all_share: float | None) -> FloatArray:
    """Return how much each row counts for each item, (n_rankings, n_items).

    A first choice counts 1, divided equally among tied items. On approval ballots each approval counts 1; a ballot
    without a preference approves of all items or of none, and ``approve_all_share`` is the share of the former.
    """
    first = first_items(rankings)
    if approve_all_share is None:
        return np.asarray(first / np.maximum(first.sum(axis=1, keepdims=True), 1))
    return np.where(first.any(axis=1, keepdims=True), first, approve_all_share)


def has_preference(rankings: Data) -> Mask:
    """Return whether each row ranks some item above another."""
    return np.asarray(first_items(rankings).any(axis=1))


def first_items(rankings: Data) -> Mask:
    """Return whether each item is first in each row; nowhere in rows without a preference.

    In a partial order the first items are those above some item and below none.
    """
    if isinstance(rankings, Preferences):
        before = rankings.before
        return np.asarray(before.any(axis=2) & ~before.any(axis=1))
    first: Mask = np.asarray(rankings.ranks == 0)
    stated = (rankings.n_buckets > 1) | ((rankings.ranks == FREE).any(axis=1) & first.any(axis=1))
    return np.asarray(first & stated[:, None])


# ---------------------------------------------------------------------- head-to-head contests


@dataclass(frozen=True, eq=False)
class Contests:
    """The head-to-head contests of all pairs of items."""

    n_voters: int
    ahead: IntArray  # (n_items, n_items): number of voters who rank the first item above the second

    @property
    def undecided(self) -> IntArray:
        """The number of voters who rank neither of two items above the other."""
        return np.asarray(self.n_voters - self.ahead - self.ahead.T)

    @property
    def beats(self) -> Mask:
        """Whether the first item wins its contest against the second."""
        return np.asarray(self.ahead > self.ahead.T)

    @property
    def condorcet_winner(self) -> int | None:
        """The item that beats every other item, or None."""
        winners = np.flatnonzero(self.beats.sum(axis=1) == len(self.ahead) - 1)
        return int(winners[0]) if len(winners) else None

    @property
    def unbeaten(self) -> Indices:
        """The items that lose no contest (weak Condorcet winners)."""
        return np.flatnonzero(~self.beats.any(axis=0))

    def smith_set(self) -> Indices:
        """Return the smallest nonempty set of items that each beat all items outside the set.

        It contains the item with the largest Copeland score and every item that one of its members does not beat.
        """
        beats = self.beats
        inside = np.zeros(len(beats), dtype=bool)
        inside[np.argmax(beats.sum(axis=1) - beats.sum(axis=0))] = True
        while (joining := ~beats[inside].all(axis=0) & ~inside).any():
            inside |= joining
        return np.flatnonzero(inside)

    def cycle(self) -> list[int]:
        """Return a shortest Condorcet cycle in the Smith set, each item beating the next; empty for no cycle."""
        members = self.smith_set()
        beats = self.beats[np.ix_(members, members)]
        reached = [beats]  # whether there is a path of 1, 2, ... wins between two items
        while not (closing := reached[-1] & beats.T).any():
            if len(reached) == len(members):
                return []
            reached.append(reached[-1].astype(np.float32) @ beats.astype(np.float32) > 0)
        first, last = np.argwhere(closing)[0]
        path = [last]
        for earlier in reached[-2::-1]:
            path.append(np.flatnonzero(earlier[first] & beats[:, path[-1]])[0])
        return members[[first, *path[::-1]]].tolist()


def count_contests(rankings: Data) -> Contests:
    """Return the head-to-head contests of all pairs of items."""
    return Contests(rankings.n_voters, pairwise_wins(rankings))


@dataclass(frozen=True, eq=False)
class Round:
    """A round of an instant-runoff count."""

    votes: IntArray  # (n_items,): number of ballots that count for each item; 0 for eliminated ones
    n_exhausted: int  # ballots that count for none
    eliminated: tuple[int, ...] = ()  # items eliminated after this round; none after the last one
    is_tie: bool = False  # whether other items had as few votes, or in the last round the leader has no majority


def instant_runoff(rankings: Rankings) -> list[Round]:
    """Return the rounds of an instant-runoff count, until an item has more than half of the votes that count.

    A ballot counts for the remaining item that it ranks first. It is exhausted if it ranks none, or several as equals;
    items that share the last position are not ranked. The item with fewest votes is eliminated; all items without votes
    are eliminated together. Among items with equally few votes the one with fewer votes in the latest earlier round is
    eliminated or, if they were equal in all rounds, the last in the order of the data. If all remaining items have
    equally many votes, the count ends with a tie.
    """
    ranks, counts, n_items = rankings.ranks, rankings.counts, rankings.n_items
    in_last = ranks == ranks.max(axis=1, keepdims=True)
    is_ranked = (ranks != FREE) & ~(in_last & (in_last.sum(axis=1, keepdims=True) > 1))
    positions = np.where(is_ranked, ranks, n_items)
    remaining, active, rounds = np.ones(n_items, dtype=bool), np.ones(len(ranks), dtype=bool), list[Round]()
    while True:
        first = positions.min(axis=1, keepdims=True)
        chosen = (positions == first) & (first < n_items)
        active &= chosen.sum(axis=1) == 1
        votes: IntArray = counts[active] @ chosen[active]
        n_exhausted = int(counts[~active].sum())
        fewest = remaining & (votes == votes[remaining].min())
        if 2 * votes.max() > votes.sum() or fewest.sum() == remaining.sum():
            return [*rounds, Round(votes, n_exhausted, is_tie=bool(2 * votes.max() <= votes.sum()))]
        tied = np.flatnonzero(fewest).tolist()
        history = [tuple(each.votes[item] for each in reversed(rounds)) for item in tied]
        loser = min(range(len(tied)), key=lambda index: (*history[index], -index))
        eliminated = tied if not votes[tied[0]] else [tied[loser]]
        rounds.append(Round(votes, n_exhausted, tuple(eliminated), is_tie=len(tied) > len(eliminated)))
        remaining[eliminated] = False
        positions[:, eliminated] = n_items


@dataclass(frozen=True, eq=False)
class KemenyRanking:
    """The ranking that disagrees with the fewest pairwise preferences, and the second best."""

    order: Indices  # items, best first
    exact: bool  # whether it is proven optimal
    second_order: Indices | None  # None for a single item
    excess: int  # how many more preferences the second-best ranking disagrees with
    disagreement: float  # share of all pairwise preferences that the ranking disagrees with


def find_kemeny_ranking(contests: Contests, seed: int) -> KemenyRanking:
    """Return the Kemeny ranking and the second-best ranking."""
    from rankernel.models.kemeny_search import kemeny_order, next_best_order

    ahead, n_voters = contests.ahead, contests.n_voters
    shares: FloatArray = 0.5 + (ahead - ahead.T) / (2 * n_voters)
    n_starts = N_STARTS if len(shares) <= MANY_ITEMS else 1
    best = kemeny_order(shares, MAX_EXACT_CYCLE, n_starts, np.random.default_rng([seed, 3]), n_voters)
    second = next_best_order(shares, best.order, MAX_EXACT_CYCLE)
    n_against = disagreements(ahead, best.order)
    excess = 0 if second is None else disagreements(ahead, second) - n_against
    return KemenyRanking(best.order, best.exact, second, excess, n_against / max(int(ahead.sum()), 1))


def disagreements(ahead: IntArray, order: Indices) -> int:
    """Return the number of pairwise preferences that an order of the items disagrees with."""
    return int(np.tril(ahead[np.ix_(order, order)], -1).sum())
