"""Numbers, lists, ballots and names as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankernel import Rankings
from rankernel.reports.ballots import guess_noun
from rankernel.reports.page import png_address
from rankernel.reports.text import (
    Wording,
    ballot_text,
    distinct_names,
    effect_text,
    join_names,
    percent,
    plural,
    pluralized,
    pvalue_text,
    round_numbers,
    short_name,
    short_names,
    signed,
    text_width,
    with_article,
)


def test_numbers():
    assert [percent(share) for share in (0.256, 0.004, 0.9996, 0.0)] == ["26%", "<1%", ">99%", "0%"]
    assert (signed(-1.25, 1), signed(3, 0)) == ("−1.2", "3")
    assert (plural(1, "voter"), plural(1234, "voter")) == ("1 voter", "1,234 voters")
    assert round_numbers("Mallows(nu=0.06666666666666667)") == "Mallows(nu=0.06667)"


def test_pvalues():
    assert pvalue_text(0.001, 999) == "p ≤ 0.001 (999 permutations)"
    assert pvalue_text(0.0432, 9999) == "p = 0.043"
    assert pvalue_text(0.00002, 999, from_moments=True) == "p = 2e-05 (Pearson type III)"
    assert pvalue_text(0.00002, 999, from_moments=True, at_bound=True) == "p ≤ 2e-05 (Pearson type III)"
    assert pvalue_text(0.0, 999, from_moments=True) == "p < 1e-300 (Pearson type III)"
    assert pvalue_text(0.003, 999, at_bound=True) == "p ≤ 0.003 (999 permutations)"  # corrected


def test_effects():
    assert effect_text(0.028, (0.021, 0.036)) == "2.8% (95% interval 2.1% to 3.6%)"
    assert effect_text(-0.001, None) == "0.0%"
    assert effect_text(0.1, (0.0, float("inf"))) == "10.0%"


def test_lists():
    assert join_names(["a", "b", "c"], 6) == "a, b and c"
    assert join_names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert join_names(["a"], 2) == "a"
    assert join_names(["Brown, Ann", "Lee, Bo", "Fox, Cy"], 6) == "Brown, Ann; Lee, Bo; and Fox, Cy"


def test_ballots():
    assert ballot_text(Rankings.from_orders([["a", {"b", "c"}, "d"]], items=list("abcdef"))) == "a > b = c > d"
    approved = Rankings.from_orders([[{"b", "c"}]], items=list("abcdef"))
    assert ballot_text(approved, approvals=True) == "approves b and c"


def test_nouns():
    assert (with_article("item"), with_article("candidate")) == ("an item", "a candidate")
    assert [pluralized(noun) for noun in ("candidate", "city", "dish")] == ["candidates", "cities", "dishes"]
    assert Wording("film", "judge").say("data", n_voters="3 judges", n_items="2 films") == "3 judges ranked 2 films."
    assert (Wording().signed_shift(-1.0), Wording(approvals=True).signed_shift(34.2)) == ("+1.0", "−34")


@pytest.mark.parametrize(
    ("title", "items", "column", "noun"),
    [
        ("2006 Burlington Mayoral Election", (), "", "candidate"),
        ("Sushi", ("toro",), "", "item"),
        ("APA", ("Candidate 1", "Candidate 2"), "", "candidate"),
        ("votes.csv", (), "precinct", "candidate"),
        ("votes.csv", ("Ann", "Write-in 2"), "", "candidate"),
    ],
)
def test_guessed_nouns(title, items, column, noun):
    assert guess_noun(title, None, items, column) == noun


def test_short_names():
    assert short_names(("Candidate number 1 Beta", "Candidate number 2 Beta"), 12) == ("… 1 Beta", "… 2 Beta")
    assert (short_name("Featherstonehaugh", 8), short_name("Featherstonehaugh 12", 12)) == ("Feather…", "Feathers… 12")
    equal_ends = ("Ann of the north of the river", "Bob of the north of the river", "Ann of the south of the river")
    assert len(set(short_names(equal_ends, 10))) == 3


@given(st.lists(st.text("ab ", min_size=1, max_size=30), max_size=8), st.integers(8, 20))
def test_names_that_differ_stay_different(names, length):
    shown = distinct_names(names, lambda text: len(text) <= length)
    assert all(len(text) <= length for text in shown)
    assert len(set(shown)) == len(set(names))


def test_widths():
    assert text_width("ill", 10.0) < text_width("amp", 10.0) < text_width("WWW", 10.0)


def test_png_addresses():
    assert png_address(np.array([[0, 255]], dtype=np.uint8))[:34] == "data:image/png;base64,iVBORw0KGgoA"
