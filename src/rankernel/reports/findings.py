"""The results of a report as plain numbers and texts, such as for JSON: every number of the page that is a finding."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rankernel.reports import summary as statements
from rankernel.reports.clusters import Cluster
from rankernel.reports.groups import NUMBERS, Comparison, GroupComparisons, pairs_in_words
from rankernel.reports.summary import Summary


def findings_of(summary: Summary) -> dict[str, Any]:
    """Return the results of a report; shares are numbers from 0 to 1, positions and ranks begin at 1."""
    source, rankings = summary.source, summary.ballots.rankings
    found: dict[str, Any] = {
        "title": source.title,
        "headline": statements.headline(summary),
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
    items, contests, kemeny = summary.ballots.rankings.items, summary.contests, summary.kemeny
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
        rules = statements.winners_of_rules(summary)
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
    joint = {name: getattr(found.joint, name) for name in (*NUMBERS, "n_moment_draws", "effect_interval")}
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
    names = ("first", "second", *NUMBERS, "adjusted_pvalue", "adjusted_moment_pvalue", "effect_interval")
    numbers: dict[str, Any] = {name: getattr(pair, name) for name in names}
    numbers |= {"n_first": pair.n_voters[0], "n_second": pair.n_voters[1]}
    if pair.differences is not None:
        numbers["items"] = [asdict(item) for item in pair.differences.items]
        numbers["pairs_of_items"] = [asdict(each) for each in pairs_in_words(pair.differences)]
        numbers["first_choices"] = {"shares": pair.shares, "intervals": pair.share_intervals}
    return numbers
