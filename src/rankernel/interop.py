"""Conversion of rankings to and from VoteKit, pref_voting and preflibtools.

VoteKit and pref_voting compute winners of elections; preflibtools is the package of PrefLib. Each package is imported
only by the function that creates its objects.
"""

from __future__ import annotations

from typing import Any

from rankernel._utils.checks import printable
from rankernel.errors import ArgumentTypeError, RankingError
from rankernel.io.blt import listed_buckets
from rankernel.rankings import FREE, Rankings, Unlisted, as_rankings

__all__ = [
    "from_pref_voting",
    "from_preflibtools",
    "from_votekit",
    "to_pref_voting",
    "to_preflibtools",
    "to_votekit",
]


def from_votekit(profile: Any, *, unlisted: Unlisted = "last") -> Rankings:
    """Return the rankings of a VoteKit profile.

    Skipped positions are closed, and ballots that rank no candidate are dropped. Weights must be integers.

    Parameters
    ----------
    profile : votekit.RankProfile
        The profile.
    unlisted : {"last", "free"}
        Whether candidates that a ballot does not list share the last bucket or are free.

    Returns
    -------
    Rankings
    """
    check_attributes("profile", profile, "a RankProfile of VoteKit", "ballots", "candidates")
    orders, weights = [], []
    for ballot in profile.ballots:
        buckets = [{str(name) for name in bucket} for bucket in ballot.ranking or () if bucket]
        if buckets:
            orders.append(buckets)
            weights.append(integer_weight(ballot.weight))
    return Rankings.from_orders(orders, [str(name) for name in profile.candidates], counts=weights, unlisted=unlisted)


def to_votekit(rankings: Any) -> Any:
    """Return rankings as a VoteKit ``RankProfile``, whose ballots contain the listed candidates.

    ``from_votekit`` inverts the conversion, with ``unlisted="free"`` if some items are free.

    Parameters
    ----------
    rankings : Rankings or integer array
        The rankings.

    Returns
    -------
    votekit.RankProfile
    """
    data = as_rankings(rankings)
    from votekit.ballot import RankBallot
    from votekit.pref_profile import RankProfile

    ballots = [
        RankBallot(ranking=[{data.items[item] for item in bucket} for bucket in buckets], weight=count)
        for buckets, count in zip(listed_buckets(data, "VoteKit"), data.counts.tolist(), strict=True)
    ]
    return RankProfile(ballots=tuple(ballots), candidates=data.items, max_ranking_length=data.n_items)


def from_pref_voting(profile: Any, *, unlisted: Unlisted = "last") -> Rankings:
    """Return the rankings of a pref_voting ``Profile`` or ``ProfileWithTies``, with the names of its ``cmap``.

    Parameters
    ----------
    profile : pref_voting.profiles.Profile or pref_voting.profiles_with_ties.ProfileWithTies
        The profile.
    unlisted : {"last", "free"}
        Whether candidates that a ranking does not list share the last bucket or are free.

    Returns
    -------
    Rankings
    """
    check_attributes("profile", profile, "a profile of pref_voting", "rankings_counts", "candidates", "cmap")
    rankings, counts = profile.rankings_counts
    candidates = list(profile.candidates)
    rows = []
    for ranking in rankings:
        if hasattr(ranking, "rmap"):
            rows.append([float(ranking.rmap.get(candidate, FREE)) for candidate in candidates])
        else:
            position = {candidate: number for number, candidate in enumerate(ranking)}
            rows.append([float(position[candidate]) for candidate in candidates])
    names = [str(profile.cmap.get(candidate, candidate)) for candidate in candidates]
    return Rankings.from_ranks(rows, names, counts=[integer_weight(count) for count in counts], unlisted=unlisted)


def to_pref_voting(rankings: Any) -> Any:
    """Return rankings as a pref_voting ``Profile`` if all are full, and else as a ``ProfileWithTies``.

    ``from_pref_voting`` inverts the conversion, with ``unlisted="free"`` if some items are free.

    Parameters
    ----------
    rankings : Rankings or integer array
        The rankings.

    Returns
    -------
    Profile or ProfileWithTies
    """
    data = as_rankings(rankings)
    names = dict(enumerate(data.items))
    if data.is_full():
        from pref_voting.profiles import Profile

        return Profile(data.ranks.argsort(axis=1).tolist(), rcounts=data.counts.tolist(), cmap=names)
    from pref_voting.profiles_with_ties import ProfileWithTies

    maps = [
        {item: rank for rank, bucket in enumerate(buckets, start=1) for item in bucket}
        for buckets in listed_buckets(data, "pref_voting")
    ]
    return ProfileWithTies(maps, rcounts=data.counts.tolist(), candidates=list(names), cmap=names)


def from_preflibtools(instance: Any, *, unlisted: Unlisted = "last") -> Rankings:
    """Return the rankings of a preflibtools ``OrdinalInstance``.

    Parameters
    ----------
    instance : preflibtools.instances.OrdinalInstance
        The instance.
    unlisted : {"last", "free"}
        Whether alternatives that an order does not list share the last bucket or are free.

    Returns
    -------
    Rankings
    """
    attributes = ("alternatives_name", "orders", "multiplicity")
    check_attributes("instance", instance, "an OrdinalInstance of preflibtools", *attributes)
    names = {number: str(name) for number, name in instance.alternatives_name.items()}
    orders = [[{names[number] for number in bucket} for bucket in order] for order in instance.orders]
    counts = [integer_weight(instance.multiplicity[order]) for order in instance.orders]
    return Rankings.from_orders(orders, names.values(), counts=counts, unlisted=unlisted)


def to_preflibtools(rankings: Any) -> Any:
    """Return rankings as a preflibtools ``OrdinalInstance``, equal rankings merged.

    ``from_preflibtools`` returns ``rankings.unique()``, with ``unlisted="free"`` if some items are free.

    Parameters
    ----------
    rankings : Rankings or integer array
        The rankings.

    Returns
    -------
    OrdinalInstance
    """
    data = as_rankings(rankings).unique()
    from preflibtools.instances import OrdinalInstance

    instance = OrdinalInstance()
    instance.num_alternatives = data.n_items
    instance.alternatives_name = dict(enumerate(data.items, start=1))
    orders = [tuple(tuple(item + 1 for item in bucket) for bucket in b) for b in listed_buckets(data, "preflibtools")]
    instance.append_vote_map(dict(zip(orders, data.counts.tolist(), strict=True)))
    return instance


def check_attributes(name: str, value: object, expected: str, *attributes: str) -> None:
    """Raise an error if an object lacks attributes of a class of another package, which is not imported."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise ArgumentTypeError(name, value, expected)


def integer_weight(weight: Any) -> int:
    """Return a weight as a positive integer."""
    if int(weight) != weight or weight < 1:
        raise RankingError(f"profile: a ballot has the weight {printable(weight)}; weights must be positive integers")
    return int(weight)
