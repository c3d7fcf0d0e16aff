"""The results of a report (ballots, standing of the items, map, clusters, groups), as sentences and as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils import FloatArray, Indices, Mask
from rankernel.errors import RankingError
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings
from rankernel.reports import ballots, clusters, groups, text
from rankernel.reports.ballots import SCORES, Ballots, Contests, KemenyRanking, Round, Source, View
from rankernel.reports.clusters import Cluster, Clustering, Embedding, Evidence, Settings
from rankernel.reports.groups import Comparison, GroupComparisons
from rankernel.reports.text import Wording, join_names, percent, plural

if TYPE_CHECKING:
    from rankernel.models.leaderboard import Leaderboard

MAX_ITEMS = 3000  # above, pairs of items are not compared
MAX_SHIFTS = 4  # items in the description of the difference between two groups
MIN_JUDGES = 3  # on a map
MAX_NAMES = 6  # items in a sentence
HIGH_AGREEMENT = 0.8  # adjusted Rand index from which clusters are called nearly the same


@dataclass(frozen=True, eq=False)
class Summary:
    """The results that a report shows."""

    source: Source
    settings: Settings  # with the bandwidth of the kernel resolved
    ballots: Ballots
    view: View
    embedding: Embedding
    clustering: Clustering | None  # None if there is only one distinct ballot
    comparisons: GroupComparisons | None  # None without groups to compare
    notes: list[str]  # messages of warnings

    @cached_property
    def contests(self) -> Contests:
        """The head-to-head contests; computed on access, as many items take long."""
        return ballots.count_contests(self.ballots.rankings)

    @cached_property
    def board(self) -> Leaderboard | None:
        """The leaderboard of comparisons: by Bradley-Terry strengths, else by mean win rates; None for rankings."""
        if self.source.comparisons is None:
            return None
        from rankernel.models.leaderboard import leaderboard

        try:
            return leaderboard(self.source.comparisons, rng=self.settings.rng)
        except RankingError:  # not all items are connected by wins in both directions
            return leaderboard(self.source.comparisons, score="borda", rng=self.settings.rng)

    @property
    def shows_voters(self) -> bool:
        """Whether voters are shown: always, except for comparisons of few judges or of unknown ones."""
        return self.source.comparisons is None or len(self.ballots.rankings) >= MIN_JUDGES

    @cached_property
    def contest_shares(self) -> tuple[Indices, FloatArray, FloatArray]:
        """The items in order, the percentage of each contest for the first item, and the percentage that is undecided.

        The percentages are those of all voters; of comparisons, those of the comparisons of both items, which are nan
        if there are none.
        """
        data = self.source.comparisons
        if data is None or self.board is None:
            contests, n_voters = self.contests, self.contests.n_voters
            return self.kemeny.order, 100 * contests.ahead / n_voters, 100 * contests.undecided / n_voters
        order = np.array([data.items.index(item) for item in self.board.items])
        games = data.wins + data.wins.T + data.ties
        games[games == 0] = np.nan
        return order, 100 * data.wins / games, 100 * data.ties / games

    @cached_property
    def kemeny(self) -> KemenyRanking:
        """The Kemeny ranking; computed on access."""
        return ballots.find_kemeny_ranking(self.contests, self.settings.rng)

    @cached_property
    def rounds(self) -> list[Round]:
        """The rounds of an instant-runoff count; empty for data that are not an election."""
        rankings = self.ballots.rankings
        is_election = self.source.noun == "candidate" and not self.wording.approvals and rankings.n_items > 2
        if not is_election or not isinstance(rankings, Rankings) or not self.has_preference.any():
            return []
        return ballots.instant_runoff(rankings)

    @cached_property
    def positions(self) -> FloatArray:
        """The mean position of each item, from 1."""
        return ballots.mean_positions(self.ballots.rankings)

    @cached_property
    def shares(self) -> FloatArray:
        """The share of voters with each item first, or of all voters who approve of it."""
        rankings, share = self.ballots.rankings, self.ballots.approve_all_share
        voters = self.has_preference if share is None else slice(None)
        return ballots.first_counts(rankings, share) / max(int(rankings.counts[voters].sum()), 1)

    @property
    def has_preference(self) -> Mask:
        """Whether each ballot ranks some item above another."""
        return ballots.has_preference(self.ballots.rankings)

    @property
    def wording(self) -> Wording:
        """The nouns of the report."""
        return self.source.wording

    @property
    def say(self) -> Callable[..., str]:
        """The function that fills in the fields of a sentence."""
        return self.source.wording.say

    @property
    def items(self) -> tuple[str, ...]:
        """The names of the items."""
        return self.ballots.rankings.items

    @property
    def labels(self) -> Indices:
        """The cluster of each ballot."""
        if self.clustering is None:
            return np.zeros(len(self.ballots.rankings), dtype=np.intp)
        return self.clustering.labels

    @property
    def grouped(self) -> Clustering | None:
        """The clustering if it has several clusters."""
        return self.clustering if self.clustering and len(self.clustering.clusters) > 1 else None


def summarize(source: Source, settings: Settings | None = None, step: Callable[[str], Any] | None = None) -> Summary:
    """Return the results for a report; ``step`` is called with the name of each step as it begins."""
    settings, step, n_items = settings or Settings(), step or (lambda _: None), source.rankings.n_items
    if n_items > MAX_ITEMS:
        raise RankingError(
            f"{source.origin or source.title} has {n_items:,} items, and all pairs are compared, of at most "
            f"{MAX_ITEMS:,} items; leave out rarely ranked items"
        )
    compared = groups.groups_to_compare(source, settings.compare)  # raises before anything is computed
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        step("Ballots")
        distinct = ballots.distinct_ballots(source)
        step("Kernel values and map")
        settings = replace(settings, kernel=settings.kernel.resolve(distinct.rankings))
        view = clusters.choose_view(distinct, settings)
        clusters.check_n_clusters(settings.n_clusters, distinct, view)
        embedding = clusters.embed_ballots(distinct, view, settings)
        step("Clusters")
        clustering, comparisons = clusters.cluster_ballots(distinct, view, embedding, settings), None
        if source.is_grouped and settings.compare != ():
            step("Comparing groups")
            if source.comparison_groups is None:
                comparisons = groups.compare_groups(distinct, compared, settings)
            else:
                comparisons = groups.compare_battles(source, compared, settings)
        step("Drawing")
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    return Summary(source, settings, distinct, view, embedding, clustering, comparisons, notes)


# ---------------------------------------------------------------------- headline and standing


def headline(summary: Summary) -> str:
    """Return the size of the data and the winner of the head-to-head contests, or the first of a leaderboard."""
    rankings, wording, battles = summary.ballots.rankings, summary.wording, summary.source.comparisons
    n_items = wording.count_items(rankings.n_items)
    if summary.board is not None and battles is not None:
        judges = battle_judges(summary, battles.n_judges)
        sizes = wording.say("battles", n=plural(len(battles), "comparison"), n_items=n_items, by=judges)
        return f"{sizes} {leader(summary, summary.board)}"
    fields = {"n_voters": wording.count_voters(rankings.n_voters), "n_items": n_items}
    if rankings.n_voters == 1 and rankings.n_items > 1:
        ballot = text.ballot_text(rankings, limit=MAX_NAMES, length=60, approvals=wording.approvals)
        return wording.say("one_ballot", text=ballot, **fields)
    data = wording.say("data_of_pairs" if isinstance(rankings, Preferences) else "data", **fields)
    return data if rankings.n_items < 2 else f"{data} {winner(summary)}"


def battle_judges(summary: Summary, number: int) -> str:
    """Return a number of judges, if they are known."""
    return summary.say("by_judges", n_voters=summary.wording.count_voters(number)) if number else ""


def leader(summary: Summary, board: Leaderboard) -> str:
    """Return the first item of a leaderboard, and the ranks that are possible."""
    say, first = summary.say, np.flatnonzero(board.ranks == 1)
    fields = {"score": SCORES[board.score], "confidence": percent(board.confidence_level)}
    if len(first) > 1:
        return say("leaders", names=join_names([board.items[item] for item in first], MAX_NAMES), **fields)
    low, high = board.rank_intervals[0].tolist()
    return say("leader" if low < high else "leader_alone", first=board.items[0], low=low, high=high, **fields)


def judges_behind(summary: Summary) -> list[str]:
    """Return how many comparisons and judges are behind differences of the first item, and behind half of the data."""
    data, board, say = summary.source.comparisons, summary.board, summary.say
    assert data is not None
    assert board is not None
    above, n_items = board.above.before[0], len(board.items)
    separated = np.flatnonzero(above[0])[:1].tolist()
    numbers = {"n": int(above.sum()), "n_pairs": n_items * (n_items - 1) // 2, "units": board.units}
    found = [say("separated", **numbers, confidence=percent(board.confidence_level))]
    for other in dict.fromkeys([1, *separated]) if n_items > 1 else ():
        first, second = board.items[0], board.items[other]
        counts = ballots.behind(data, first, second)
        names = {"first": first, "second": second, "by": battle_judges(summary, counts.pop("n_judges"))}
        n_text = plural(counts.pop("n"), "comparison")
        result = say("is_separated" if above[0, other] else "is_not_separated")
        name = "behind" if any(counts.values()) else "behind_none"
        found.append(say(name, n=n_text, result=result, **names, **counts))
    if data.n_judges > 1:
        largest = np.sort(np.bincount(data.judge))[::-1]
        n_judges = int(np.searchsorted(np.cumsum(largest), len(data) / 2) + 1)
        found.append(say("half_of_comparisons", n=n_judges, n_voters=summary.wording.count_voters(data.n_judges)))
    return found


def winner(summary: Summary) -> str:
    """Return the Condorcet winner, the unbeaten items, or a Condorcet cycle."""
    items, contests, say = summary.items, summary.contests, summary.say
    first = contests.condorcet_winner
    if not contests.ahead.any():
        return say("no_preferences")
    if first is not None:
        rivals = np.delete(np.arange(len(items)), first)
        margins = contests.ahead[first, rivals] - contests.ahead[rivals, first]
        second = int(rivals[np.argmin(margins)])
        name = "winner_of_two" if len(items) == 2 else "condorcet_winner"
        return say(name, first=items[first], second=items[second], contest=contest(summary, first, second))
    if not len(contests.unbeaten):
        return condorcet_cycle(summary)
    first, *others = contests.unbeaten.tolist()
    tied = [item for item in range(len(items)) if item != first and not contests.beats[first, item]]
    fields = {"first": items[first], "contest": contest(summary, first, (others or tied)[0])}
    if not others:
        return say("unbeaten_one", tied=join_names([items[item] for item in tied], MAX_NAMES), **fields)
    names = join_names([items[item] for item in (first, *others)], MAX_NAMES)
    return say("unbeaten_several" if len(others) > 1 else "unbeaten", names=names, **fields)


def condorcet_cycle(summary: Summary) -> str:
    """Return a shortest Condorcet cycle with its contests, and the size of the Smith set if it is larger."""
    cycle, say = summary.contests.cycle(), summary.say
    pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    steps = [say("cycle_contest", **contest_fields(summary, a, b)) for a, b in pairs]
    found = [say("condorcet_cycle", contests=join_names(steps, MAX_NAMES))]
    n_smith = len(summary.contests.smith_set())
    if n_smith > len(cycle):
        found.append(say("smith_set", n_items=summary.wording.count_items(n_smith)))
    return " ".join(found)


def contest(summary: Summary, first: int, second: int) -> str:
    """Return the shares of a head-to-head contest."""
    contests, say = summary.contests, summary.say
    undecided, n_voters = contests.undecided[first, second], contests.n_voters
    shown = say("contest_undecided" if undecided else "contest", **contest_fields(summary, first, second))
    if not summary.source.is_sample or n_voters < 2:
        return shown
    shares = np.array([contests.ahead[first, second], contests.ahead[second, first], undecided]) / n_voters
    drawn = np.random.default_rng([summary.settings.rng, 5]).multinomial(n_voters, shares, size=groups.N_BOOTSTRAP)
    low, high = (100 * np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975]) / n_voters).tolist()
    name = "contest_open" if low <= 0 <= high else "contest_interval"
    return say(name, contest=shown, low=text.signed(low, 1), high=text.signed(high, 1))


def contest_fields(summary: Summary, first: int, second: int) -> dict[str, str]:
    """Return the names of two items and the shares of all voters who prefer the first, the second, and neither."""
    ahead, items = summary.contests.ahead, summary.items
    counts = {"ahead": ahead[first, second], "behind": ahead[second, first]}
    counts["undecided"] = summary.contests.undecided[first, second]
    shares = {name: f"{100 * int(count) / summary.contests.n_voters:.1f}%" for name, count in counts.items()}
    return {"first": items[first], "second": items[second], **shares}


def first_choices(summary: Summary) -> str:
    """Return the items with most first choices or approvals, and the next ones; empty without any."""
    shares, say = summary.shares, summary.say
    if not shares.any() or len(shares) < 2:
        return ""
    best = np.isclose(shares, shares.max())
    rest = np.where(best, 0.0, shares)
    if best.sum() == 1 and not rest.any():
        return say("only_first_choice", names=summary.items[int(np.argmax(best))])
    if not rest.any():
        return say("first_choices", best=items_with_share(summary, best))
    following = items_with_share(summary, np.isclose(rest, rest.max()))
    return say("first_choices_next", best=items_with_share(summary, best), next=following)


def items_with_share(summary: Summary, chosen: Mask) -> str:
    """Return the names of items with the same share."""
    indices = np.flatnonzero(chosen)
    names = join_names([summary.items[item] for item in indices], MAX_NAMES)
    name = "share_of_each" if len(indices) > 1 else "share_of_one"
    return summary.say(name, names=names, share=percent(float(summary.shares[indices[0]])))


def kemeny_ranking(summary: Summary) -> str:
    """Return the Kemeny ranking, its disagreement and the second-best ranking; empty for two items."""
    kemeny, say = summary.kemeny, summary.say
    if kemeny.second_order is None or len(kemeny.order) == 2 or not summary.contests.ahead.any():
        return ""
    change = change_of_order(summary, kemeny.second_order)
    more = plural(kemeny.excess, "more preference")
    second_best = say("kemeny_second", change=change, more=more) if kemeny.excess else say("kemeny_tie", change=change)
    order, share = order_text(summary, kemeny.order), percent(kemeny.disagreement)
    return say("kemeny" if kemeny.exact else "kemeny_unproven", order=order, share=share, second_best=second_best)


def order_text(summary: Summary, order: Indices) -> str:
    """Return items in an order, at most :data:`MAX_NAMES` of them."""
    names = [summary.items[item] for item in order[:MAX_NAMES].tolist()]
    return " > ".join([*names, *([f"{len(order) - MAX_NAMES:,} more"] if len(order) > MAX_NAMES else [])])


def change_of_order(summary: Summary, other: Indices) -> str:
    """Return how another order differs from the Kemeny ranking."""
    order, items = summary.kemeny.order, summary.items
    changed = np.flatnonzero(order != other)
    if len(changed) == 2:
        return summary.say("swapped", first=items[order[changed[0]]], second=items[order[changed[1]]])
    start, end = int(changed[0]), int(changed[-1]) + 1
    return summary.say("reordered", order=order_text(summary, other[start:end]), start=start + 1, end=end)


def winners_of_rules(summary: Summary) -> dict[str, tuple[list[int], dict[str, Any]]]:
    """Return the winners (several if they tie) by each voting rule, and the fields of the sentence about the result."""
    contests, kemeny, last = summary.contests, summary.kemeny, summary.rounds[-1]
    n_votes, most = int(last.votes.sum()), int(last.votes.max())
    share = {"votes": most, "n_votes": n_votes, "share": percent(most / max(n_votes, 1))}
    exhausted = {"exhausted": percent(last.n_exhausted / contests.n_voters), "n_rounds": len(summary.rounds)}
    first_best = {int(order[0]) for order in (kemeny.order, kemeny.second_order) if order is not None}
    winner = contests.condorcet_winner
    return {
        "plurality": (winners_by(-summary.shares), {"share": percent(float(summary.shares.max()))}),
        "runoff": (winners_by(-last.votes.astype(np.float64)), share | exhausted),
        "borda": (winners_by(summary.positions), {"mean": float(summary.positions.min())}),
        "condorcet": ([] if winner is None else [winner], {"n": len(contests.ahead) - 1}),
        "kemeny": (sorted(first_best) if not kemeny.excess else [int(kemeny.order[0])], {}),
    }


def rule_results(summary: Summary) -> list[tuple[str, str, str]]:
    """Return the name, the winners and the result of each voting rule for a single winner."""
    items, say, found = summary.items, summary.say, []
    for rule, (winners, fields) in winners_of_rules(summary).items():
        name = f"result_{rule}" + ("_none" if not winners else "_tie" if len(winners) > 1 and rule == "runoff" else "")
        winners_text = join_names([items[item] for item in winners], MAX_NAMES)
        found.append((say(f"rule_{rule}"), winners_text, say(name, **fields)))
    return found


def winners_by(values: FloatArray) -> list[int]:
    """Return the items with the smallest value."""
    return np.flatnonzero(np.isclose(values, values.min())).tolist()


def agreement_of_rules(summary: Summary) -> str:
    """Return which voting rules have the same winner."""
    say, items, rules = summary.say, summary.items, dict[str, list[str]]()
    for name, winners, _ in rule_results(summary):
        rules.setdefault(winners, []).append(name)
    if len(rules) == 1:  # that of Condorcet has one winner or none
        return say("all_rule_wins", names=next(iter(rules)))
    results = []
    for winners, names in rules.items():
        sentence = "rule_wins" if winners in items else "rule_ties" if winners else "rule_none"
        results.append(say(sentence, names=winners, rules=join_names(names, MAX_NAMES)))
    return say("rules_differ", results="; ".join(results))


def voters_without_preference(summary: Summary) -> str:
    """Return how many voters rank no item above another or, of approval ballots, approve of all or of none."""
    rankings, wording = summary.ballots.rankings, summary.wording
    number = int(rankings.counts[~summary.has_preference].sum())
    if not number:
        return ""

    def sentence(name: str, n_voters: int) -> str:
        share = {"n_voters": wording.count_voters(n_voters), "share": percent(n_voters / rankings.n_voters)}
        return wording.say(name, voters_share=wording.say("voters_share", **share)) if n_voters else ""

    n_all = summary.source.about.n_all_in_first if summary.source.about else None
    if n_all is None or not wording.approvals:
        return sentence("no_preference", number)
    return sentence("approve_none", number - n_all) + sentence("approve_all", n_all)


def caption_of_contests(summary: Summary) -> str:
    """Return the caption of the matrix of contests, with one cell as an example."""
    if summary.board is not None:
        return summary.say("caption_battles", score=SCORES[summary.board.score])
    order, ahead, undecided = summary.contest_shares
    a, b = order[:2].tolist()
    shares = {"ahead": ahead[a, b], "undecided": undecided[a, b], "behind": ahead[b, a]}
    first, second = (text.short_name(summary.items[item], 40) for item in (a, b))
    example = summary.say("contest_example", first=first, second=second, **shares)
    any_undecided = np.triu(undecided, 1).any()
    return summary.say("caption_contests_undecided" if any_undecided else "caption_contests", example=example)


# ---------------------------------------------------------------------- clusters


def no_clusters(summary: Summary) -> str:
    """Return that there are no clusters, and the reason."""
    clustering, wording = summary.clustering, summary.wording
    if clustering is None:
        return wording.say("one_voter" if summary.ballots.rankings.n_voters == 1 else "identical")
    evidence = clustering.evidence
    if evidence is None:
        return wording.say("one_requested")
    if not evidence.steps:
        n_voters, n_ballots = summary.ballots.rankings.n_voters, len(summary.ballots.rankings)
        if n_voters < clusters.MIN_VOTERS:
            return wording.say("too_few_voters", minimum=clusters.MIN_VOTERS, n_voters=f"{n_voters:,}")
        return wording.say("too_few_ballots", minimum=clusters.MIN_BALLOTS, n_ballots=f"{n_ballots:,}")
    if evidence.agreement:
        reason = wording.say("unstable", agreement=text.signed(max(evidence.agreement), 2))
    else:
        reason = wording.say("no_clusters", **step_fields(summary, evidence, 2))
    return reason + uncertain_number(summary, evidence)


def step_fields(summary: Summary, evidence: Evidence, k: int) -> dict[str, object]:
    """Return the fields of the sentence about the test of the k-th cluster."""
    step, sampled = evidence.steps[k - 2], evidence.sample_size < summary.ballots.rankings.n_voters
    sample = summary.say("in_sample", sample_size=evidence.sample_size) if sampled else ""
    return {
        "k": k,
        "fewer": k - 1,
        "n_sets": clusters.N_REPLICATES,
        "pvalue": f"p = {step.pvalue:.2g}" if step.pvalue >= 0.001 else "p < 0.001",
        "gain": percent(step.gain),
        "null_gain": percent(step.null_gain),
        "model": step.model,
        "sample": sample,
    }


def uncertain_number(summary: Summary, evidence: Evidence) -> str:
    """Return the range of the number of clusters if samples disagree, else nothing."""
    low, high = min(evidence.numbers), max(evidence.numbers)
    if low == high:
        return ""
    fields = {"low": low, "high": high, "shown": evidence.n_clusters, "sample_size": evidence.sample_size}
    return summary.say("uncertain_number", **fields)


def evidence_for_clusters(summary: Summary) -> str:
    """Return the evidence for the number of clusters, or that there are none."""
    if summary.grouped is None:
        return no_clusters(summary)
    evidence, k = summary.grouped.evidence, len(summary.grouped.clusters)
    if evidence is None:
        return summary.say("requested", n_clusters=plural(k, "cluster"))
    agreement = evidence.agreement[k - 2]
    similarity = summary.say("nearly_same" if agreement >= HIGH_AGREEMENT else "moderately_similar")
    reason = summary.say("evidence", agreement=agreement, similarity=similarity, **step_fields(summary, evidence, k))
    return reason + uncertain_number(summary, evidence)


def most_common_ballot(summary: Summary, cluster: Cluster) -> str:
    """Return the most common ballot of a cluster."""
    wording = summary.wording
    ballot = text.ballot_text(cluster.ballot, limit=5, length=24, approvals=wording.approvals)
    if ballot == "no preference":
        n_all = summary.source.about.n_all_in_first if summary.source.about else None
        ballot = wording.say("most_common_none" if wording.approvals and n_all == 0 else "most_common_empty")
    return wording.say("most_common", text=ballot, n_voters=wording.count_voters(int(cluster.ballot.counts[0])))


# ---------------------------------------------------------------------- groups


def groups_verdict(summary: Summary, found: GroupComparisons) -> str:
    """Return whether the groups differ, jointly and in pairs."""
    say, pvalue, sample = summary.source.group_wording.say, found.joint.pvalue, sample_note(summary, found)
    if found.at_bound(pvalue):
        chance = say("never_as_large", n=found.n_permutations, pvalue=pvalue)
    else:
        chance = say("share_as_large", share=percent(pvalue), pvalue=pvalue)
    if found.n_groups == 2:
        pair = found.pairs[0]
        name = "two_differ" if pair.differs else "two_alike"
        return say(name, first=pair.first, second=pair.second, sample=sample, chance=chance)
    n_different, differ = sum(pair.differs for pair in found.pairs), pvalue <= groups.ALPHA
    largest = say("of_the_largest", n=len(found.sizes)) if len(found.sizes) < found.n_groups else ""
    fields = {"n_different": n_different, "n_pairs": len(found.pairs), "largest": largest, "sample": sample}
    pairs = say("pairs_differ", **fields) if differ or n_different else ""
    return say("all_differ" if differ else "all_alike", n_groups=found.n_groups, chance=chance, pairs=pairs).rstrip()


def effect_of_groups(summary: Summary, found: GroupComparisons) -> str:
    """Return the share of the dispersion between all groups, with its interval."""
    share = text.effect_text(found.joint.effect, found.joint.effect_interval)
    return summary.source.group_wording.say("groups_effect", share=share)


def sample_note(summary: Summary, found: GroupComparisons) -> str:
    """Return the size of the sample that was tested, if not all voters were."""
    total, n_tested = sum(found.sizes.values()), found.n_tested
    n_voters = summary.source.group_wording.count_voters(total)
    return "" if n_tested == total else summary.say("sample_of_voters", n=n_tested, n_voters=n_voters)


def comparison_size(summary: Summary, found: GroupComparisons, pair: Comparison) -> str:
    """Return the sizes of two groups, the p-value and the effect."""
    wording, sizes = summary.source.group_wording, (found.sizes[pair.first], found.sizes[pair.second])
    tested = dict(zip(("sample_first", "sample_second"), pair.n_voters, strict=True))
    name, n_second = "group_sizes" if pair.n_voters == sizes else "group_samples", wording.count_voters(sizes[1])
    shown = wording.say(name, n_first=sizes[0], n_second=n_second, **tested)
    share = text.effect_text(pair.effect, pair.effect_interval)
    corrected = wording.say("corrected") if len(found.pairs) > 1 else ""
    return wording.say("group_effect", sizes=shown, pvalue=pair_pvalue(found, pair), corrected=corrected, share=share)


def pair_pvalue(found: GroupComparisons, pair: Comparison) -> str:
    """Return the corrected p-value of two groups, with its source."""
    from rankernel.stats.base import is_splitting_bound

    at_bound = is_splitting_bound(pair.moment_pvalue) if found.from_moments else found.at_bound(pair.pvalue)
    return text.pvalue_text(pair.adjusted_pvalue, found.n_permutations, found.from_moments, at_bound)


def group_differences(summary: Summary, pair: Comparison) -> list[str]:
    """Return the items whose mean positions, first choices or approvals differ most, if their intervals exclude 0."""
    wording, items = summary.wording, summary.items
    if pair.differences is None or pair.shares is None or pair.share_intervals is None:
        return []
    both, found = {"first": pair.first, "second": pair.second}, []
    limit = 1 if len(items) == 2 else MAX_SHIFTS  # of two items, the second differs by as much
    changes = {each.item: (each.change or 0.0, each.change_interval) for each in pair.differences.items}
    if not wording.approvals:
        for item, change, low, high, direction in largest_changes(changes, limit, 2):
            numbers = {"shift": abs(change), "low": low, "high": high, "direction": direction}
            found.append(wording.say("item_shift", item_name=item, **numbers, **both))
    shares = dict(zip(items, pair.shares.T.tolist(), strict=True))
    intervals = (100 * pair.share_intervals).tolist()
    changes = {item: (100 * (a - b), each) for (item, (a, b)), each in zip(shares.items(), intervals, strict=True)}
    for item, _, low, high, _ in largest_changes(changes, min(limit, MAX_SHIFTS if wording.approvals else 2), 0):
        texts = dict(zip(("share_first", "share_second"), map(percent, shares[item]), strict=True))
        found.append(wording.say("first_choice_shift", item_name=item, low=low, high=high, **texts, **both))
    return found


def largest_changes(changes: dict[str, Any], limit: int, digits: int) -> Iterator[tuple[str, float, float, float, str]]:
    """Yield the largest changes whose intervals exclude 0, with the ends of the intervals of their sizes."""
    certain = [(item, change, ends) for item, (change, ends) in changes.items() if groups.excludes_zero(ends, digits)]
    for item, change, ends in sorted(certain, key=lambda each: -abs(each[1]))[:limit]:
        low, high = sorted(map(abs, ends))
        yield item, change, low, high, "higher" if change > 0 else "lower"


def how_groups_were_tested(summary: Summary, found: GroupComparisons) -> str:
    """Return the method of the tests."""
    say, n_groups = summary.source.group_wording.say, len(summary.source.named_groups[0])
    details = say("tests_matchups") if summary.source.comparison_groups is not None else ""
    details += say("tests_holm") if len(found.pairs) > 1 else ""
    details += say("tests_moments") if found.from_moments else ""
    details += say("tests_sample", n=found.n_tested) if sample_note(summary, found) else ""
    if len(found.sizes) < found.n_groups:
        details += say("tests_largest", n_groups=found.n_groups, n=len(found.sizes))
    if found.n_groups < n_groups and summary.settings.compare:
        details += say("tests_requested", n=found.n_groups, n_groups=n_groups)
    elif found.n_groups < n_groups:
        details += say("tests_left_out", groups=plural(n_groups - found.n_groups, "group"))
    return say("tests", n=found.n_permutations, details=details, kernel=text.round_numbers(str(found.joint.kernel)))


# ---------------------------------------------------------------------- the results as plain numbers, such as for JSON


def findings_of(summary: Summary) -> dict[str, Any]:
    """Return the results of a report; shares are numbers from 0 to 1, positions and ranks begin at 1."""
    source, rankings = summary.source, summary.ballots.rankings
    found: dict[str, Any] = {
        "title": source.title,
        "headline": headline(summary),
        "n_voters": rankings.n_voters,
        "n_items": rankings.n_items,
        "n_distinct": len(rankings),
        "kernel": str(summary.settings.kernel),
    }
    if source.comparisons is not None and summary.board is not None:
        found |= {"n_comparisons": len(source.comparisons), "n_judges": source.comparisons.n_judges}
        found["leaderboard"] = summary.board.rows()
        found["separated"] = summary.board.above.to_pairs()[0]
    else:
        found |= standing(summary)
    if summary.shows_voters and summary.clustering is not None:
        evidence = summary.clustering.evidence
        found["clusters"] = [cluster_numbers(each) for each in summary.clustering.clusters]
        found["evidence_for_clusters"] = None if evidence is None else asdict(evidence)
    if summary.comparisons is not None:
        found["groups"] = {"by": summary.source.group_name} | group_numbers(summary.comparisons)
    return found | {"notes": summary.notes}


def standing(summary: Summary) -> dict[str, Any]:
    """Return first choices or approvals, mean positions, contests and winners of rankings."""
    items, contests, kemeny = summary.items, summary.contests, summary.kemeny
    share = "approval_share" if summary.wording.approvals else "first_choice_share"
    winner = contests.condorcet_winner
    found: dict[str, Any] = {
        "items": [
            {"item": item, share: float(summary.shares[number]), "mean_position": float(summary.positions[number])}
            for number, item in enumerate(items)
        ],
        "condorcet_winner": None if winner is None else items[winner],
        "contests": {"items": list(items), "ahead": contests.ahead.tolist(), "n_voters": contests.n_voters},
        "kemeny": {
            "order": [items[item] for item in kemeny.order.tolist()],
            "is_proven_optimal": kemeny.exact,
            "disagreement": kemeny.disagreement,
        },
    }
    if summary.rounds:
        rules = winners_of_rules(summary)
        found["winners"] = {rule: [items[item] for item in winners] for rule, (winners, _) in rules.items()}
        found["rounds"] = [
            {
                "votes": dict(zip(items, each.votes.tolist(), strict=True)),
                "n_exhausted": each.n_exhausted,
                "eliminated": [items[item] for item in each.eliminated],
                "is_tie": each.is_tie,
            }
            for each in summary.rounds
        ]
    return found


def cluster_numbers(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster; a positive shift is a higher mean position, or more approvals, than among all voters."""
    order, items = cluster.consensus.to_orders()[0], cluster.consensus.items
    return {
        "name": cluster.name,
        "distinction": asdict(cluster.distinction),
        "n_voters": cluster.n_voters,
        "share": cluster.share,
        "consensus": [sorted(bucket) if isinstance(bucket, set) else bucket for bucket in order],
        "shift": dict(zip(items, (-cluster.shift).tolist(), strict=True)),
    }


def group_numbers(found: GroupComparisons) -> dict[str, Any]:
    """Return the tests of all groups and of pairs, and in what the groups differ; effects are shares of dispersion."""
    joint = {name: getattr(found.joint, name) for name in (*groups.NUMBERS, "n_moment_draws", "effect_interval")}
    between = found.differences or found.pairs[0].differences
    differences: dict[str, Any] = {"groups": list(found.sizes), "items": [], "pairs": []}
    if between is not None:
        names = ("undecided", "majorities_differ", "reverses")
        pairs = [asdict(pair) | {name: getattr(pair, name) for name in names} for pair in between.pairs]
        differences = {"groups": between.groups, "items": [asdict(item) for item in between.items], "pairs": pairs}
    return {
        "kernel": str(found.joint.kernel),
        "n_permutations": found.n_permutations,
        "n_voters": found.sizes,
        "all": {"n_groups": found.n_groups} | joint,
        "comparisons": [pair_numbers(pair) for pair in found.pairs],
        "differences": differences,
    }


def pair_numbers(pair: Comparison) -> dict[str, Any]:
    """Return the test of two groups and, if it is described in detail, the differences that the page shows."""
    names = ("first", "second", *groups.NUMBERS, "adjusted_pvalue", "adjusted_moment_pvalue", "effect_interval")
    numbers: dict[str, Any] = {name: getattr(pair, name) for name in names}
    numbers |= {"n_first": pair.n_voters[0], "n_second": pair.n_voters[1]}
    if pair.differences is not None:
        numbers["items"] = [asdict(item) for item in pair.differences.items]
        numbers["pairs_of_items"] = [asdict(each) for each in groups.pairs_in_words(pair.differences)]
        numbers["first_choices"] = {"shares": pair.shares, "intervals": pair.share_intervals}
    return numbers
