"""The results of a report as plain numbers and texts, such as for JSON: every number of the page that is a finding."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rankernel.reports import summary as statements
from rankernel.reports.clusters import Cluster
from rankernel.reports.groups import GroupComparisons
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
        "kernel": str(summary.embedding.kernel),
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
        found["groups"] = group_numbers(summary, summary.comparisons)
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


def group_numbers(summary: Summary, found: GroupComparisons) -> dict[str, Any]:
    """Return the tests of groups; effects are shares of the dispersion."""
    names = summary.source.named_groups[0]
    pairs = []
    for pair in found.pairs:
        numbers: dict[str, Any] = {"first": names[pair.first], "second": names[pair.second]}
        numbers |= {"adjusted_pvalue": pair.pvalue, "effect": pair.effect, "effect_interval": pair.interval}
        if pair.pairs:
            numbers["pairs_of_items"] = [asdict(each) for each in pair.pairs]
        pairs.append(numbers)
    return {
        "by": summary.source.group_name,
        "names": list(names),
        "pvalue": found.pvalue,
        "n_permutations": summary.settings.n_permutations,
        "effect": found.effect,
        "effect_interval": found.interval,
        "kernel": found.kernel,
        "comparisons": pairs,
    }
