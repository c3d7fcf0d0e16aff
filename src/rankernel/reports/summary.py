"""The results of a report (ballots, standing of the items, map, clusters, groups) and the sentences about them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils import FloatArray, Indices, Mask
from rankernel.errors import RankingError
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings
from rankernel.reports.ballots import (
    SCORES,
    Ballots,
    Contests,
    KemenyRanking,
    Round,
    Source,
    View,
    behind,
    count_contests,
    distinct_ballots,
    find_kemeny_ranking,
    find_leaderboard,
    first_counts,
    has_preference,
    instant_runoff,
    judges_of_half,
    mean_positions,
)
from rankernel.reports.clusters import (
    MIN_BALLOTS,
    MIN_VOTERS,
    N_REPLICATES,
    Cluster,
    Clustering,
    Embedding,
    Evidence,
    Settings,
    check_n_clusters,
    choose_view,
    cluster_ballots,
    embed_ballots,
)
from rankernel.reports.groups import (
    ALPHA,
    N_BOOTSTRAP,
    Comparison,
    GroupComparisons,
    compare_battles,
    compare_groups,
    excludes_zero,
    groups_to_compare,
)
from rankernel.reports.text import (
    Wording,
    ballot_text,
    effect_text,
    join_names,
    percent,
    plural,
    pvalue_text,
    round_numbers,
    short_name,
    signed,
)

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
        return count_contests(self.ballots.rankings)

    @cached_property
    def board(self) -> Leaderboard | None:
        """The leaderboard of comparisons; None for rankings."""
        data = self.source.comparisons
        return None if data is None else find_leaderboard(data, self.settings.rng)

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
            ahead, undecided = (
                100 * each / self.contests.n_voters for each in (self.contests.ahead, self.contests.undecided)
            )
            return self.kemeny.order, ahead, undecided
        order = np.array([data.items.index(item) for item in self.board.items])
        games = data.wins + data.wins.T + data.ties
        games[games == 0] = np.nan
        return order, 100 * data.wins / games, 100 * data.ties / games

    @cached_property
    def kemeny(self) -> KemenyRanking:
        """The Kemeny ranking; computed on access."""
        return find_kemeny_ranking(self.contests, self.settings.rng)

    @cached_property
    def rounds(self) -> list[Round]:
        """The rounds of an instant-runoff count; empty for data that are not an election."""
        rankings = self.ballots.rankings
        is_election = self.source.noun == "candidate" and not self.wording.approvals and rankings.n_items > 2
        if not is_election or not isinstance(rankings, Rankings) or not self.has_preference.any():
            return []
        return instant_runoff(rankings)

    @cached_property
    def positions(self) -> FloatArray:
        """The mean position of each item, from 1."""
        return mean_positions(self.ballots.rankings)

    @cached_property
    def shares(self) -> FloatArray:
        """The share of voters with each item first, or of all voters who approve of it."""
        rankings, share = self.ballots.rankings, self.ballots.approve_all_share
        voters = self.has_preference if share is None else slice(None)
        return first_counts(rankings, share) / max(int(rankings.counts[voters].sum()), 1)

    @property
    def has_preference(self) -> Mask:
        """Whether each ballot ranks some item above another."""
        return has_preference(self.ballots.rankings)

    @property
    def wording(self) -> Wording:
        """The nouns of the report."""
        return self.source.wording

    @property
    def group_wording(self) -> Wording:
        """The nouns of tests between groups, which may be groups of comparisons."""
        return self.source.group_wording

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
    groups = groups_to_compare(source, settings.compare)  # raises before anything is computed
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        step("Ballots")
        ballots = distinct_ballots(source)
        step("Kernel values and map")
        settings = replace(settings, kernel=settings.kernel.resolve(ballots.rankings))
        view = choose_view(ballots, settings)
        check_n_clusters(settings.n_clusters, ballots, view)
        embedding = embed_ballots(ballots, view, settings)
        step("Clusters")
        clustering, comparisons = cluster_ballots(ballots, view, embedding, settings), None
        if source.is_grouped and settings.compare != ():
            step("Comparing groups")
            if source.comparison_groups is None:
                comparisons = compare_groups(ballots, groups, settings)
            else:
                comparisons = compare_battles(source, groups, settings)
        step("Drawing")
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    return Summary(source, settings, ballots, view, embedding, clustering, comparisons, notes)


# ---------------------------------------------------------------------- headline and standing


def headline(summary: Summary) -> str:
    """Return the size of the data and the winner of the head-to-head contests, or the first of a leaderboard."""
    if summary.board is not None:
        return f"{comparison_sizes(summary)} {leader(summary, summary.board)}"
    rankings, say = summary.ballots.rankings, summary.wording.say
    fields = {
        "n_voters": summary.wording.count_voters(rankings.n_voters),
        "n_items": summary.wording.count_items(rankings.n_items),
    }
    if rankings.n_voters == 1 and rankings.n_items > 1:
        text = ballot_text(rankings, limit=MAX_NAMES, length=60, approvals=summary.wording.approvals)
        return say("one_ballot", text=text, **fields)
    data = say("data_of_pairs" if isinstance(rankings, Preferences) else "data", **fields)
    return data if rankings.n_items < 2 else f"{data} {winner(summary)}"


def comparison_sizes(summary: Summary) -> str:
    """Return the number of comparisons, items and judges."""
    data, wording = summary.source.comparisons, summary.wording
    assert data is not None
    sizes = {"n": plural(len(data), "comparison"), "n_items": wording.count_items(data.n_items)}
    return wording.say("battles", **sizes, by=battle_judges(summary, data.n_judges))


def battle_judges(summary: Summary, number: int) -> str:
    """Return a number of judges, if they are known."""
    return summary.wording.say("by_judges", n_voters=summary.wording.count_voters(number)) if number else ""


def leader(summary: Summary, board: Leaderboard) -> str:
    """Return the first item of a leaderboard, and the ranks that are possible."""
    say, first = summary.wording.say, np.flatnonzero(board.ranks == 1)
    fields = {"score": SCORES[board.score], "confidence": percent(board.confidence_level)}
    if len(first) > 1:
        return say("leaders", names=join_names([board.items[item] for item in first], MAX_NAMES), **fields)
    low, high = board.rank_intervals[0].tolist()
    return say("leader" if low < high else "leader_alone", first=board.items[0], low=low, high=high, **fields)


def judges_behind(summary: Summary) -> list[str]:
    """Return how many comparisons and judges are behind differences of the first item, and behind half of the data."""
    data, board, say = summary.source.comparisons, summary.board, summary.wording.say
    assert data is not None
    assert board is not None
    above = board.above.before[0]
    separated = np.flatnonzero(above[0])[:1].tolist()
    n_items = len(board.items)
    numbers = {"n": int(above.sum()), "n_pairs": n_items * (n_items - 1) // 2, "units": board.units}
    found = [say("separated", **numbers, confidence=percent(board.confidence_level))]
    for other in dict.fromkeys([1, *separated]) if n_items > 1 else ():
        first, second = board.items[0], board.items[other]
        counts = behind(data, first, second)
        names = {"first": first, "second": second, "by": battle_judges(summary, counts.pop("n_judges"))}
        n_text = plural(counts.pop("n"), "comparison")
        result = say("is_separated" if above[0, other] else "is_not_separated")
        name = "behind" if any(counts.values()) else "behind_none"
        found.append(say(name, n=n_text, result=result, **names, **counts))
    if data.n_judges > 1:
        found.append(
            say("half_of_comparisons", n=judges_of_half(data), n_voters=summary.wording.count_voters(data.n_judges))
        )
    return found


def winner(summary: Summary) -> str:
    """Return the Condorcet winner, the unbeaten items, or a Condorcet cycle."""
    items, contests, say = summary.ballots.rankings.items, summary.contests, summary.wording.say
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
    cycle, say = summary.contests.cycle(), summary.wording.say
    pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    steps = [say("cycle_contest", **contest_fields(summary, a, b)) for a, b in pairs]
    text = say("condorcet_cycle", contests=join_names(steps, MAX_NAMES))
    n_smith = len(summary.contests.smith_set())
    return f"{text} {say('smith_set', n_items=summary.wording.count_items(n_smith))}" if n_smith > len(cycle) else text


def contest(summary: Summary, first: int, second: int) -> str:
    """Return the shares of a head-to-head contest."""
    contests, say = summary.contests, summary.wording.say
    undecided, n_voters = contests.undecided[first, second], contests.n_voters
    text = say("contest_undecided" if undecided else "contest", **contest_fields(summary, first, second))
    if not summary.source.is_sample or n_voters < 2:
        return text
    shares = np.array([contests.ahead[first, second], contests.ahead[second, first], undecided]) / n_voters
    drawn = np.random.default_rng([summary.settings.rng, 5]).multinomial(n_voters, shares, size=N_BOOTSTRAP)
    low, high = (100 * np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975]) / n_voters).tolist()
    name = "contest_open" if low <= 0 <= high else "contest_interval"
    return say(name, contest=text, low=signed(low, 1), high=signed(high, 1))


def contest_fields(summary: Summary, first: int, second: int) -> dict[str, str]:
    """Return the names of two items and the shares of all voters who prefer the first, the second, and neither."""
    ahead, items = summary.contests.ahead, summary.ballots.rankings.items
    counts = {"ahead": ahead[first, second], "behind": ahead[second, first]}
    counts["undecided"] = summary.contests.undecided[first, second]
    shares = {name: f"{100 * int(count) / summary.contests.n_voters:.1f}%" for name, count in counts.items()}
    return {"first": items[first], "second": items[second], **shares}


def first_choices(summary: Summary) -> str:
    """Return the items with most first choices or approvals, and the next ones; empty without any."""
    shares, say = summary.shares, summary.wording.say
    if not shares.any() or len(shares) < 2:
        return ""
    best = np.isclose(shares, shares.max())
    rest = np.where(best, 0.0, shares)
    if best.sum() == 1 and not rest.any():
        return say("only_first_choice", names=summary.ballots.rankings.items[int(np.argmax(best))])
    if not rest.any():
        return say("first_choices", best=items_with_share(summary, best))
    following = items_with_share(summary, np.isclose(rest, rest.max()))
    return say("first_choices_next", best=items_with_share(summary, best), next=following)


def items_with_share(summary: Summary, chosen: Mask) -> str:
    """Return the names of items with the same share."""
    indices = np.flatnonzero(chosen)
    names = join_names([summary.ballots.rankings.items[item] for item in indices], MAX_NAMES)
    name = "share_of_each" if len(indices) > 1 else "share_of_one"
    return summary.wording.say(name, names=names, share=percent(float(summary.shares[indices[0]])))


def kemeny_ranking(summary: Summary) -> str:
    """Return the Kemeny ranking, its disagreement and the second-best ranking; empty for two items."""
    kemeny, say = summary.kemeny, summary.wording.say
    if kemeny.second_order is None or len(kemeny.order) == 2 or not summary.contests.ahead.any():
        return ""
    change = change_of_order(summary, kemeny.second_order)
    more = plural(kemeny.excess, "more preference")
    second_best = say("kemeny_second", change=change, more=more) if kemeny.excess else say("kemeny_tie", change=change)
    order, share = order_text(summary, kemeny.order), percent(kemeny.disagreement)
    return say("kemeny" if kemeny.exact else "kemeny_unproven", order=order, share=share, second_best=second_best)


def order_text(summary: Summary, order: Indices) -> str:
    """Return items in an order, at most :data:`MAX_NAMES` of them."""
    names = [summary.ballots.rankings.items[item] for item in order[:MAX_NAMES].tolist()]
    return " > ".join([*names, *([f"{len(order) - MAX_NAMES:,} more"] if len(order) > MAX_NAMES else [])])


def change_of_order(summary: Summary, other: Indices) -> str:
    """Return how another order differs from the Kemeny ranking."""
    order, items = summary.kemeny.order, summary.ballots.rankings.items
    changed = np.flatnonzero(order != other)
    if len(changed) == 2:
        return summary.wording.say("swapped", first=items[order[changed[0]]], second=items[order[changed[1]]])
    start, end = int(changed[0]), int(changed[-1]) + 1
    return summary.wording.say("reordered", order=order_text(summary, other[start:end]), start=start + 1, end=end)


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
    items, say, found = summary.ballots.rankings.items, summary.wording.say, []
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
    say, items, rules = summary.wording.say, summary.ballots.rankings.items, dict[str, list[str]]()
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
        return summary.wording.say("caption_battles", score=SCORES[summary.board.score])
    wording, contests = summary.wording, summary.contests
    a, b = summary.kemeny.order[:2].tolist()
    names = {name: short_name(summary.ballots.rankings.items[item], 40) for name, item in (("first", a), ("second", b))}
    counts = {"ahead": contests.ahead[a, b], "undecided": contests.undecided[a, b], "behind": contests.ahead[b, a]}
    shares = {name: 100 * int(count) / contests.n_voters for name, count in counts.items()}
    example = wording.say("contest_example", **names, **shares)
    return wording.say("caption_contests_undecided" if contests.any_undecided else "caption_contests", example=example)


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
        if n_voters < MIN_VOTERS:
            return wording.say("too_few_voters", minimum=MIN_VOTERS, n_voters=f"{n_voters:,}")
        return wording.say("too_few_ballots", minimum=MIN_BALLOTS, n_ballots=f"{n_ballots:,}")
    if evidence.agreement:
        text = wording.say("unstable", agreement=signed(max(evidence.agreement), 2))
    else:
        text = wording.say("no_clusters", **step_fields(summary, evidence, 2))
    return text + uncertain_number(summary, evidence)


def step_fields(summary: Summary, evidence: Evidence, k: int) -> dict[str, object]:
    """Return the fields of the sentence about the test of the k-th cluster."""
    step, sampled = evidence.steps[k - 2], evidence.sample_size < summary.ballots.rankings.n_voters
    sample = summary.wording.say("in_sample", sample_size=evidence.sample_size) if sampled else ""
    numbers = {"k": k, "fewer": k - 1, "n_sets": N_REPLICATES}
    pvalue = f"p = {step.pvalue:.2g}" if step.pvalue >= 0.001 else "p < 0.001"
    return {
        **numbers,
        "pvalue": pvalue,
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
    return summary.wording.say("uncertain_number", **fields)


def evidence_for_clusters(summary: Summary) -> str:
    """Return the evidence for the number of clusters."""
    evidence, k = (
        summary.clustering.evidence if summary.clustering else None,
        len(summary.grouped.clusters) if summary.grouped else 1,
    )
    if evidence is None:
        return summary.wording.say("requested", n_clusters=plural(k, "cluster"))
    agreement = evidence.agreement[k - 2]
    similarity = summary.wording.say("nearly_same" if agreement >= HIGH_AGREEMENT else "moderately_similar")
    fields = step_fields(summary, evidence, k)
    text = summary.wording.say("evidence", agreement=agreement, similarity=similarity, **fields)
    return text + uncertain_number(summary, evidence)


def reason_for_clusters(summary: Summary) -> str:
    """Return the evidence for the number of clusters, or that there are none."""
    return evidence_for_clusters(summary) if summary.grouped else no_clusters(summary)


def most_common_ballot(summary: Summary, cluster: Cluster) -> str:
    """Return the most common ballot of a cluster."""
    wording = summary.wording
    text = ballot_text(cluster.ballot, limit=5, length=24, approvals=wording.approvals)
    if text == "no preference":
        n_all = summary.source.about.n_all_in_first if summary.source.about else None
        text = wording.say("most_common_none" if wording.approvals and n_all == 0 else "most_common_empty")
    return wording.say("most_common", text=text, n_voters=wording.count_voters(int(cluster.ballot.counts[0])))


# ---------------------------------------------------------------------- groups


def groups_verdict(summary: Summary, found: GroupComparisons) -> str:
    """Return whether the groups differ, jointly and in pairs."""
    say, chance, sample = summary.group_wording.say, random_divisions(summary, found), sample_note(summary, found)
    if found.n_groups == 2:
        pair = found.pairs[0]
        name = "two_differ" if pair.differs else "two_alike"
        return say(name, first=pair.first, second=pair.second, sample=sample, chance=chance)
    n_different, differ = sum(pair.differs for pair in found.pairs), found.joint.pvalue <= ALPHA
    largest = say("of_the_largest", n=len(found.sizes)) if len(found.sizes) < found.n_groups else ""
    fields = {"n_different": n_different, "n_pairs": len(found.pairs), "largest": largest, "sample": sample}
    pairs = say("pairs_differ", **fields) if differ or n_different else ""
    return say("all_differ" if differ else "all_alike", n_groups=found.n_groups, chance=chance, pairs=pairs).rstrip()


def random_divisions(summary: Summary, found: GroupComparisons) -> str:
    """Return the meaning of a permutation p-value."""
    pvalue, say = found.joint.pvalue, summary.group_wording.say
    if found.at_bound(pvalue):
        return say("never_as_large", n=found.n_permutations, pvalue=pvalue)
    return say("share_as_large", share=percent(pvalue), pvalue=pvalue)


def effect_of_groups(summary: Summary, found: GroupComparisons) -> str:
    """Return the share of the dispersion between all groups, with its interval."""
    share = effect_text(found.joint.effect, found.joint.effect_interval)
    return summary.group_wording.say("groups_effect", share=share)


def sample_note(summary: Summary, found: GroupComparisons) -> str:
    """Return the size of the sample that was tested, if not all voters were."""
    total, n_tested = sum(found.sizes.values()), found.n_tested
    n_voters = summary.group_wording.count_voters(total)
    return "" if n_tested == total else summary.wording.say("sample_of_voters", n=n_tested, n_voters=n_voters)


def comparison_size(summary: Summary, found: GroupComparisons, pair: Comparison) -> str:
    """Return the sizes of two groups, the p-value and the effect."""
    wording, sizes = summary.group_wording, (found.sizes[pair.first], found.sizes[pair.second])
    fields: dict[str, object] = {"n_first": sizes[0], "n_second": wording.count_voters(sizes[1])}
    if pair.n_voters == sizes:
        text = wording.say("group_sizes", **fields)
    else:
        text = wording.say("group_samples", sample_first=pair.n_voters[0], sample_second=pair.n_voters[1], **fields)
    share = effect_text(pair.effect, pair.effect_interval)
    corrected = wording.say("corrected") if len(found.pairs) > 1 else ""
    return wording.say("group_effect", sizes=text, pvalue=pair_pvalue(found, pair), corrected=corrected, share=share)


def pair_pvalue(found: GroupComparisons, pair: Comparison) -> str:
    """Return the corrected p-value of two groups, with its source."""
    from rankernel.stats.base import is_splitting_bound

    at_bound = is_splitting_bound(pair.moment_pvalue) if found.from_moments else found.at_bound(pair.pvalue)
    return pvalue_text(pair.adjusted_pvalue, found.n_permutations, found.from_moments, at_bound)


def group_differences(summary: Summary, pair: Comparison) -> list[str]:
    """Return the items whose mean positions, first choices or approvals differ most, if their intervals exclude 0."""
    wording, items = summary.wording, summary.ballots.rankings.items
    if pair.differences is None or pair.shares is None or pair.share_intervals is None:
        return []
    groups, found = {"first": pair.first, "second": pair.second}, []
    limit = 1 if len(items) == 2 else MAX_SHIFTS  # of two items, the second differs by as much
    changes = {each.item: (each.change or 0.0, each.change_interval) for each in pair.differences.items}
    if not wording.approvals:
        for item, change, low, high, direction in largest_changes(changes, limit, 2):
            numbers = {"shift": abs(change), "low": low, "high": high, "direction": direction}
            found.append(wording.say("item_shift", item_name=item, **numbers, **groups))
    first, second = pair.shares
    shares = dict(zip(items, zip(first.tolist(), second.tolist(), strict=True), strict=True))
    intervals = (100 * pair.share_intervals).tolist()
    changes = {item: (100 * (a - b), each) for (item, (a, b)), each in zip(shares.items(), intervals, strict=True)}
    for item, _, low, high, _ in largest_changes(changes, min(limit, MAX_SHIFTS if wording.approvals else 2), 0):
        texts = dict(zip(("share_first", "share_second"), map(percent, shares[item]), strict=True))
        found.append(wording.say("first_choice_shift", item_name=item, low=low, high=high, **texts, **groups))
    return found


def largest_changes(changes: dict[str, Any], limit: int, digits: int) -> Iterator[tuple[str, float, float, float, str]]:
    """Yield the largest changes whose intervals exclude 0, with the ends of the intervals of their sizes."""
    certain = [(item, change, ends) for item, (change, ends) in changes.items() if excludes_zero(ends, digits)]
    for item, change, ends in sorted(certain, key=lambda each: -abs(each[1]))[:limit]:
        low, high = sorted(map(abs, ends))
        yield item, change, low, high, "higher" if change > 0 else "lower"


def how_groups_were_tested(summary: Summary, found: GroupComparisons) -> str:
    """Return the method of the tests."""
    say, n_groups = summary.group_wording.say, len(summary.source.named_groups[0])
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
    return say("tests", n=found.n_permutations, details=details, kernel=round_numbers(str(found.joint.kernel)))
