"""There and back: rankings as other packages hold them.

Counting winners is the work of VoteKit and pref_voting, and PrefLib's own package reads and writes its files; what is
held in one can be held in the other. Each package is imported only by the function that makes its objects.
"""

from __future__ import annotations

from typing import Any

from rankernel._utils.checks import printable, short_repr
from rankernel.encoding import FREE, Unlisted
from rankernel.errors import RankingError
from rankernel.io.truncated import listed_buckets
from rankernel.rankings import Rankings, as_rankings

__all__ = [
    "from_pref_voting",
    "from_preflibtools",
    "from_votekit",
    "to_pref_voting",
    "to_preflibtools",
    "to_votekit",
]


def from_votekit(profile: Any, unlisted: Unlisted = "last") -> Rankings:
    """Return the rankings of a VoteKit profile.

    Places that a voter skipped are closed up, and ballots that rank nobody are left out. Weights are whole numbers.

    Parameters
    ----------
    profile : votekit.RankProfile
        The profile.
    unlisted : {"last", "free"}
        Candidates that a ballot does not list share one last bucket, or nothing is known of them.
    """
    check_held("profile", profile, "a RankProfile of VoteKit", "ballots", "candidates")
    orders, weights = [], []
    for ballot in profile.ballots:
        buckets = [{str(name) for name in bucket} for bucket in ballot.ranking or () if bucket]
        if buckets:
            orders.append(buckets)
            weights.append(voters_of(ballot.weight))
    return Rankings.from_orders(orders, [str(name) for name in profile.candidates], weights, unlisted)


def to_votekit(rankings: Any) -> Any:
    """Return rankings as a VoteKit ``RankProfile``; what a ballot does not list is left out of it.

    ``from_votekit`` gives them back: with ``unlisted="free"`` where some items are free.
    """
    data = as_rankings(rankings)
    from votekit.ballot import RankBallot
    from votekit.pref_profile import RankProfile

    ballots = [
        RankBallot(ranking=[{data.items[item] for item in bucket} for bucket in buckets], weight=count)
        for buckets, count in zip(listed_buckets(data, "VoteKit"), data.counts.tolist(), strict=True)
    ]
    return RankProfile(ballots=tuple(ballots), candidates=data.items, max_ranking_length=data.n_items)


def from_pref_voting(profile: Any, unlisted: Unlisted = "last") -> Rankings:
    """Return the rankings of a pref_voting ``Profile`` or ``ProfileWithTies``, named by its ``cmap``.

    Parameters
    ----------
    profile : pref_voting.profiles.Profile or pref_voting.profiles_with_ties.ProfileWithTies
        The profile.
    unlisted : {"last", "free"}
        Candidates that a ranking leaves out share one last bucket, or nothing is known of them.
    """
    check_held("profile", profile, "a profile of pref_voting", "rankings_counts", "candidates", "cmap")
    rankings, counts = profile.rankings_counts
    candidates = list(profile.candidates)
    rows = []
    for ranking in rankings:
        if hasattr(ranking, "rmap"):
            rows.append([float(ranking.rmap.get(candidate, FREE)) for candidate in candidates])
        else:
            place = {candidate: number for number, candidate in enumerate(ranking)}
            rows.append([float(place[candidate]) for candidate in candidates])
    names = [str(profile.cmap.get(candidate, candidate)) for candidate in candidates]
    return Rankings.from_ranks(rows, names, [voters_of(count) for count in counts], unlisted)


def to_pref_voting(rankings: Any) -> Any:
    """Return rankings as a pref_voting ``Profile`` if all are full, and else as a ``ProfileWithTies``.

    ``from_pref_voting`` gives them back: with ``unlisted="free"`` where some items are free.
    """
    data = as_rankings(rankings)
    names = dict(enumerate(data.items))
    if data.is_full():
        from pref_voting.profiles import Profile

        return Profile(data.ranks.argsort(axis=1).tolist(), rcounts=data.counts.tolist(), cmap=names)
    from pref_voting.profiles_with_ties import ProfileWithTies

    maps = [
        {item: place for place, bucket in enumerate(buckets, start=1) for item in bucket}
        for buckets in listed_buckets(data, "pref_voting")
    ]
    return ProfileWithTies(maps, rcounts=data.counts.tolist(), candidates=list(names), cmap=names)


def from_preflibtools(instance: Any, unlisted: Unlisted = "last") -> Rankings:
    """Return the rankings of a preflibtools ``OrdinalInstance``.

    Parameters
    ----------
    instance : preflibtools.instances.OrdinalInstance
        The instance.
    unlisted : {"last", "free"}
        Alternatives that an order does not list share one last bucket, or nothing is known of them.
    """
    wanted = ("alternatives_name", "orders", "multiplicity")
    check_held("instance", instance, "an OrdinalInstance of preflibtools", *wanted)
    numbers = list(instance.alternatives_name)
    names = [str(instance.alternatives_name[number]) for number in numbers]
    place = {number: column for column, number in enumerate(numbers)}
    rows, counts = [], []
    for order in instance.orders:
        row = [FREE] * len(numbers)
        for rank, bucket in enumerate(order):
            for number in bucket:
                row[place[number]] = rank
        rows.append(row)
        counts.append(voters_of(instance.multiplicity[order]))
    return Rankings.from_ranks(rows, names, counts, unlisted)


def to_preflibtools(rankings: Any) -> Any:
    """Return rankings as a preflibtools ``OrdinalInstance``, equal ones once with their count.

    ``from_preflibtools`` gives ``rankings.unique()`` back: with ``unlisted="free"`` where some items are free.
    """
    data = as_rankings(rankings).unique()
    from preflibtools.instances import OrdinalInstance

    instance = OrdinalInstance()
    instance.num_alternatives = data.n_items
    instance.alternatives_name = dict(enumerate(data.items, start=1))
    orders = [tuple(tuple(item + 1 for item in bucket) for bucket in b) for b in listed_buckets(data, "preflibtools")]
    instance.append_vote_map(dict(zip(orders, data.counts.tolist(), strict=True)))
    return instance


def check_held(name: str, value: object, wanted: str, *attributes: str) -> None:
    """Refuse what does not hold what an object of another package does, which need not be installed to be told."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise TypeError(f"{name}={short_repr(value)} is not possible; it must be {wanted}")


def voters_of(weight: Any) -> int:
    """Return a weight as a number of voters, refusing what is none."""
    if int(weight) != weight or weight < 1:
        raise RankingError(
            f"a ballot has the weight {printable(weight)}; counts are whole numbers of voters, 1 or more"
        )
    return int(weight)
