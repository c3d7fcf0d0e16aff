"""Round trips through other packages, if they are installed."""

import numpy as np
import pytest

import rankernel as rk
from rankernel import RankingError, Rankings

ITEMS = ["Ann", "Bob", "Cy", "Dee"]
FULL = Rankings([[0, 1, 2, 3], [3, 1, 0, 2]], ITEMS, counts=[3, 1])
CUT = Rankings.from_orders([["Ann"], ["Bob", {"Cy", "Dee"}, "Ann"], ["Dee", "Cy"]], ITEMS, counts=[3, 1, 2])
FREE = Rankings.from_orders([["Ann"], ["Bob", {"Cy", "Dee"}]], ITEMS, counts=[3, 1], unlisted="free")
PACKAGES = {"votekit": "votekit", "pref_voting": "pref_voting", "preflibtools": "preflibtools"}


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(("rankings", "unlisted"), [(FULL, "last"), (CUT, "last"), (FREE, "free")])
def test_round_trip(package, rankings, unlisted):
    pytest.importorskip(PACKAGES[package])
    there = getattr(rk.interop, f"to_{package}")(rankings)
    assert getattr(rk.interop, f"from_{package}")(there, unlisted=unlisted) == rankings


def test_votekit_agrees():
    pytest.importorskip("votekit")
    from votekit.elections import IRV
    from votekit.utils import first_place_votes

    profile = rk.interop.to_votekit(CUT)
    assert first_place_votes(profile) == {"Ann": 3, "Bob": 1, "Dee": 2, "Cy": 0}
    assert IRV(rk.interop.to_votekit(FULL)).get_elected() == (frozenset({"Ann"}),)


def test_irregular_votekit_ballots():
    pytest.importorskip("votekit")
    from votekit.ballot import RankBallot
    from votekit.pref_profile import RankProfile

    ballots = (RankBallot(ranking=[{"a"}, set(), {"b"}], weight=2), RankBallot(ranking=[set()], weight=1))
    profile = RankProfile(ballots=ballots, candidates=("a", "b", "c"), max_ranking_length=3)
    assert rk.interop.from_votekit(profile) == Rankings([[0, 1, 2]], ["a", "b", "c"], counts=[2])
    halves = RankProfile(ballots=(RankBallot(ranking=[{"a"}], weight=1.5),), candidates=("a", "b"))
    with pytest.raises(RankingError, match=r"weight 1\.5"):
        rk.interop.from_votekit(halves)


def test_pref_voting_margins_agree():
    pytest.importorskip("pref_voting")
    profile = rk.interop.to_pref_voting(FULL)
    shares = rk.pairwise_preferences(FULL)
    margins = [[profile.margin(x, y) if x != y else 0 for y in range(4)] for x in range(4)]
    np.testing.assert_allclose(margins, FULL.n_voters * (2 * shares - 1))


def test_preflibtools_reads_the_same_file(tmp_path):
    pytest.importorskip("preflibtools")
    from preflibtools.instances import OrdinalInstance

    rk.write_preflib(CUT, tmp_path / "votes.toi")
    theirs = rk.interop.from_preflibtools(OrdinalInstance(str(tmp_path / "votes.toi")))
    assert theirs == rk.read_preflib(tmp_path / "votes.toi") == CUT


def test_empty_ranking():
    pytest.importorskip("preflibtools")
    with pytest.raises(RankingError, match="row 0"):
        rk.interop.to_preflibtools(Rankings([[0, 0, 0]]))
