"""Comma-separated tables: both layouts, the irregularities of real ballots, and no silent guess."""

import copy
import gzip
import pickle
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import any_ranking

from rankernel.errors import RankingError
from rankernel.io import FileRankings, Repairs, read_csv, records, write_csv
from rankernel.io.records import coded, coded_at_once, parsed
from rankernel.rankings import Rankings

FOLDER_KEPT = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(tmp_path, text, name="votes.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return read_csv(path, **options)


def orders(rankings):
    return [[b if isinstance(b, str) else "=".join(sorted(b)) for b in order] for order in rankings.to_orders()]


# ---------------------------------------------------------------------- one column an item


def test_columns_of_ranks(tmp_path):
    votes = read(tmp_path, "tea,milk,beer\n1,2,3\n2,1,2\n1,,\n")
    assert votes == Rankings([[0, 1, 2], [1, 0, 1], [0, 1, 1]], ["tea", "milk", "beer"])
    free = read(tmp_path, "tea,milk,beer\n1,2,3\n2,1,2\n1,NA,-1\n", unlisted="free")
    assert free.ranks.tolist() == [[0, 1, 2], [1, 0, 1], [0, -1, -1]]


def test_ranks_may_have_gaps_if_the_layout_is_stated(tmp_path):
    text = "tea,milk,beer\n1,7.0,3\n"
    assert read(tmp_path, text, layout="ranks").ranks.tolist() == [[0, 2, 1]]
    with pytest.raises(
        RankingError, match=r"line 2: the numbers 1, 3, 7 leave out ranks, as scores do.*layout='ranks'"
    ):
        read(tmp_path, text)


def test_items_choose_and_order_the_columns(tmp_path):
    votes = read(tmp_path, "tea,milk\n1,2\n", items=["milk", "tea"])
    assert votes == Rankings([[1, 0]], ["milk", "tea"])
    with pytest.raises(RankingError, match="'milk' is not among the items"):
        read(tmp_path, "tea,milk\n1,2\n", items=["tea"])
    with pytest.raises(RankingError, match="'beer'"):
        read(tmp_path, "tea,milk\n1,2\n", items=["tea", "milk", "beer"])


def test_counts_labels_and_ignored_columns(tmp_path):
    text = "id,tea,milk,n,town\n17,1,2,3,Ghent\n18,2,1,1,Köln\n"
    votes = read(tmp_path, text, count="n", labels=["town"], ignore=["id"])
    assert votes == Rankings([[0, 1], [1, 0]], ["tea", "milk"], [3, 1])
    assert votes.labels["town"].tolist() == ["Ghent", "Köln"]
    assert read(tmp_path, text, count="n", labels="town", ignore="id") == votes
    with pytest.raises(RankingError, match=r"line 1: labels names the column 'city'; the columns are id, tea"):
        read(tmp_path, text, labels=["city"])
    for bad in ("0", "-1", "1.5", "", "x"):
        with pytest.raises(RankingError, match=r"votes\.csv, line 2: the count .* is not a positive number"):
            read(tmp_path, f"tea,milk,n\n1,2,{bad}\n", count="n")


# ---------------------------------------------------------------------- one column a position


@pytest.mark.parametrize(
    "head",
    [
        "rank 1,rank 2,rank 3",
        "choice_1,choice_2,choice_3",
        "1st choice,2nd choice,3rd choice",
        "1,2,3",
        "Pref1,Pref2,Pref3",
        "First,Second,Third",
        "first choice,second choice,third choice",
        "Rank #1,Rank #2,Rank #3",
    ],
)
def test_columns_of_positions(tmp_path, head):
    votes = read(tmp_path, f"{head}\nAnn,Bob,Cy\nBob,,\n")
    assert orders(votes) == [["Ann", "Bob", "Cy"], ["Bob", "Ann=Cy"]]
    assert not votes.repairs


def test_positions_are_sorted_by_their_number(tmp_path):
    head = ",".join(f"rank {number}" for number in (10, 2, 1, 3, 4, 5, 6, 7, 8, 9))
    votes = read(tmp_path, f"{head}\nj,b,a,c,d,e,f,g,h,i\n")
    assert orders(votes) == [list("abcdefghij")]


def test_other_columns_are_positions_if_the_layout_is_stated(tmp_path):
    votes = read(tmp_path, "best,next\nAnn,Bob\n", layout="positions")
    assert orders(votes) == [["Ann", "Bob"]]
    assert orders(read(tmp_path, "1,2\n2,1\n", layout="positions")) == [["2", "1"]]
    assert orders(read(tmp_path, "1,2\n2,1\n", layout="ranks")) == [["2", "1"]]


def ballot(tmp_path, cells, **options):
    head = ",".join(f"rank {number}" for number in range(1, cells.count(",") + 2))
    options |= {"items": list("ABCD"), "layout": "positions", "unlisted": "free", "blank": "keep"}
    votes = read(tmp_path, f"{head}\n{cells}\n", **options)
    repairs = votes.repairs
    return ">".join(orders(votes)[0]), (repairs.skipped, repairs.repeated, repairs.overvoted, repairs.blank)


@pytest.mark.parametrize(
    ("cells", "options", "expected"),
    [
        ("A,,B,C", {}, ("A>B>C", (1, 0, 0, 0))),
        ("A,,B,C", {"skipped": "stop"}, ("A", (1, 0, 0, 0))),
        ("A,Skipped,undervote,C", {}, ("A>C", (2, 0, 0, 0))),
        ("A,B,,", {"skipped": "stop"}, ("A>B", (0, 0, 0, 0))),
        ("A,B,skipped,skipped", {}, ("A>B", (0, 0, 0, 0))),
        ("A,B,A,C", {}, ("A>B>C", (0, 1, 0, 0))),
        ("A,A,A,C", {}, ("A>C", (0, 2, 0, 0))),
        ("A,B,A,C", {"repeated": "stop"}, ("A>B", (0, 1, 0, 0))),
        ("A,overvote,C,D", {}, ("A", (0, 0, 1, 0))),
        ("A,Overvote,C,D", {"overvotes": "skip"}, ("A>C>D", (0, 0, 1, 0))),
        ("A,B|C,D,", {"separator": "|"}, ("A", (0, 0, 1, 0))),
        ("A,B|C,D,", {"separator": "|", "overvotes": "skip"}, ("A>D", (0, 0, 1, 0))),
        ("A,C | B,D,", {"separator": "|", "overvotes": "tie"}, ("A>B=C>D", (0, 0, 1, 0))),
        ("A,A|B,C,", {"separator": "|", "overvotes": "tie"}, ("A>B>C", (0, 1, 1, 0))),
        ("A,B|B,C,", {"separator": "|", "overvotes": "tie", "repeated": "stop"}, ("A", (0, 1, 1, 0))),
        ("overvote,A,,", {}, ("", (0, 0, 1, 1))),
        (",,,", {}, ("", (0, 0, 0, 1))),
    ],
)
def test_irregular_ballots(tmp_path, cells, options, expected):
    assert ballot(tmp_path, cells, **options) == expected


def test_irregular_ballots_may_be_refused(tmp_path):
    with pytest.raises(RankingError, match=r"line 2: 'A' is named twice"):
        ballot(tmp_path, "A,A", repeated="error")
    with pytest.raises(RankingError, match=r"line 2: 'overvote' is overvoted"):
        ballot(tmp_path, "A,overvote", overvotes="error")
    with pytest.raises(RankingError, match=r"line 2: 'overvote' does not say which candidates"):
        ballot(tmp_path, "A,overvote", overvotes="tie")
    with pytest.raises(RankingError, match=r"line 2: 'E' is not among the items"):
        ballot(tmp_path, "A,E")


def test_a_joined_cell_does_not_become_a_candidate(tmp_path):
    text = "rank 1,rank 2\nAnn,Bob\nAnn|Bob,\n"
    with pytest.raises(RankingError, match=r"line 3: 'Ann\|Bob' looks like an overvote, 2 names.*separator='\|'"):
        read(tmp_path, text)
    assert orders(read(tmp_path, text, items=["Ann", "Bob", "Ann|Bob"]))[1][0] == "Ann|Bob"
    assert read(tmp_path, text, separator="|", overvotes="tie").repairs.overvoted == 1
    named = read(tmp_path, 'rank 1,rank 2\n"Smith, Ann",Bob\n')
    assert named.items == ("Smith, Ann", "Bob")


def test_a_candidate_may_be_called_like_a_skipped_cell(tmp_path):
    votes = read(tmp_path, "rank 1,rank 2\nBlank,Ann\n", items=["Ann", "Blank"])
    assert orders(votes) == [["Blank", "Ann"]]
    assert orders(read(tmp_path, "rank 1,rank 2\nBlank,Ann\nAnn,Blank\n")) == [["Blank", "Ann"], ["Ann", "Blank"]]
    assert orders(read(tmp_path, "rank 1,rank 2\nBlank,Ann\n", nothing=["Blank"])) == [["Ann"]]


def test_blank_ballots_are_kept_or_dropped_and_counted(tmp_path):
    text = "town,n,rank 1,rank 2\nX,2,A,B\nY,3,,\nZ,4,B,A\n"
    options = {"labels": ["town"], "count": "n"}
    kept = read(tmp_path, text, blank="keep", **options)
    assert kept.ranks.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert read(tmp_path, text, unlisted="free", blank="keep", **options).ranks.tolist() == [[0, 1], [-1, -1], [1, 0]]
    dropped = read(tmp_path, text, **options)
    assert dropped == kept[[0, 2]]
    assert dropped.labels["town"].tolist() == ["X", "Z"]
    assert dropped.repairs == Repairs(blank=1)
    assert str(kept.repairs) == "1 blank ballot kept"
    with pytest.raises(RankingError, match="no row names an item"):
        read(tmp_path, "rank 1,rank 2\n,\n", layout="positions")


# ---------------------------------------------------------------------- no silent guess


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1,2,3\n1,2,3\n", "hold no names, only numbers or nothing"),
        ("rank 1,rank 2\n7,9\n", "hold no names, only numbers or nothing"),
        ("rank 1,rank 2\n", "hold no names, only numbers or nothing"),
        ("id,rank 1,rank 2\n1,Ann,Bob\n", "some columns look like positions but 'id' does not"),
        ("rank 1,rank 3\nAnn,Bob\n", "do not count up: 1, 3"),
        ("ward,tea,milk\nNorth,1,2\n", "column 'ward' holds 'North'"),
        ("id,tea,milk\n3,1,2\n", "column 'id' does not look like an item"),
        ("Ballot_ID,tea,milk\n3,1,2\n", "column 'Ballot_ID' does not look like an item"),
        ("tea,milk,count\n1,2,3\n", "column 'count' does not look like an item"),
        ("Unnamed: 0,tea,milk\n3,1,2\n", "does not look like an item"),
        ("tea,milk,beer\n5,3,4\n", "leave out ranks, as scores do"),
        ("tea,milk,beer\n1,1,5\n", "leave out ranks, as scores do"),
        ("tea,milk,beer\n0,1,2\n1,2,3\n", "leave out ranks, as scores do"),
        ("best,next\nAnn,Bob\n", "column 'best' holds 'Ann'"),
    ],
)
def test_doubt_about_the_layout_is_an_error_that_says_how_to_choose(tmp_path, text, problem):
    pattern = rf"^votes\.csv, line \d: .*{re.escape(problem)}.*layout='ranks'.*layout='positions'"
    with pytest.raises(RankingError, match=pattern):
        read(tmp_path, text)


@pytest.mark.parametrize("row", ["1,2,2,4", "1,2,2,3", "0,1,1,3", "1,1,1,1", "2,,1,"])
def test_usual_ways_to_number_ranks_are_not_doubted(tmp_path, row):
    assert len(read(tmp_path, f"Ann,Bob,Cy,John Ward\n{row}\n")) == 1


# ---------------------------------------------------------------------- the file


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, sign):
    text = "tea,milk,beer\n1,2,3\n2,1,3\n".replace(",", sign)
    expected = Rankings([[0, 1, 2], [1, 0, 2]], ["tea", "milk", "beer"])
    assert read(tmp_path, text) == read(tmp_path, text, delimiter=sign) == expected
    assert read(tmp_path, text.replace("\n", "\r\n").encode("utf-8-sig")) == expected
    assert read(tmp_path, gzip.compress(text.encode()), "votes.csv.gz") == expected


def test_delimiters_in_doubt(tmp_path):
    assert read(tmp_path, "Smith, Ann;Doe, Jo\n1;2\n").items == ("Smith, Ann", "Doe, Jo")
    with pytest.raises(RankingError, match="separated by ',' and ';'; choose one with delimiter="):
        read(tmp_path, "a,b;c\n1,2;3\n")
    with pytest.raises(RankingError, match="delimiter='ab'"):
        read(tmp_path, "a,b\n1,2\n", delimiter="ab")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file is empty"),
        ("\n\n", 1, "the file is empty"),
        ("tea,milk,tea\n1,2,3\n", 1, "columns 1 and 3 are both named 'tea'"),
        ("tea,milk\n1,2\n1\n", 3, "the row has 1 cells but there are 2 columns"),
        ("tea,milk\n1,2,3\n", 2, "the row has 3 cells but there are 2 columns"),
        ("tea,milk\n1,2\n2,x\n", 3, "item 'milk' holds 'x'; a rank is a whole number"),
        ("tea,milk\n1,2\n2,1.5\n", 3, "item 'milk' holds '1.5'; a rank is a whole number"),
        ("tea,milk\n1,-2\n", 2, "item 'milk' holds '-2'; a rank is a whole number"),
        (",tea\n1,2\n", 1, "column 1 has no name"),
        ('tea,milk\n1,"2\n', 2, "cannot be taken apart"),
        ('"tea\nx",milk\n1,2\n3,y\n', 4, "item 'milk' holds 'y'"),
        ("tea,milk\n1,\0\n", 2, "zero byte"),
        ("tea,milk\n1,é\n".encode("latin-1"), 2, "byte 0xe9"),
    ],
)
def test_damage_is_named_with_file_and_line(tmp_path, text, line, problem):
    with pytest.raises(RankingError, match=rf"^votes\.csv, line {line}: .*{re.escape(problem)}"):
        read(tmp_path, text, layout="ranks")


def test_options_are_checked(tmp_path):
    for option in ("layout", "skipped", "repeated", "overvotes", "blank", "unlisted"):
        with pytest.raises(ValueError, match=option):
            read(tmp_path, "a,b\n1,2\n", **{option: "sideways"})
    with pytest.raises(RankingError, match="separator=''"):
        read(tmp_path, "a,b\n1,2\n", separator="")
    with pytest.raises(RankingError, match="no column is left"):
        read(tmp_path, "a,b\n1,2\n", ignore=["a", "b"])
    with pytest.raises(RankingError, match="state one position"):
        read(tmp_path, "rank 1,choice 1\na,b\n", layout="positions")


# ---------------------------------------------------------------------- what comes back


def test_csv_rankings_are_rankings(tmp_path):
    votes = read(tmp_path, "town,rank 1,rank 2\nX,A,B\nY,,B\n", labels=["town"])
    plain = Rankings([[0, 1], [1, 0]], ["A", "B"])
    assert isinstance(votes, FileRankings)
    assert votes == plain
    assert plain == votes
    assert hash(votes) == hash(plain)
    for part in (votes[:1], votes[1], votes.top(1), votes.unique(), next(iter(votes))):
        assert type(part) is Rankings
    for twin in (pickle.loads(pickle.dumps(votes)), copy.copy(votes), copy.deepcopy(votes)):
        assert type(twin) is FileRankings
        assert twin == votes
        assert twin.labels["town"].tolist() == ["X", "Y"]
        assert twin.repairs == Repairs(skipped=1)
    assert repr(votes).startswith("FileRankings: 2 rankings of 2 items")
    assert repr(votes).endswith("read as a table with one column a position\n  mended: 1 skipped cell")
    with pytest.raises(AttributeError):
        votes.labels = {}
    with pytest.raises(ValueError, match="read-only"):
        votes.labels["town"][0] = "Z"
    bare = FileRankings([[0, 1]], ["A", "B"])
    assert (bare.labels, bare.repairs) == ({}, Repairs())


# ---------------------------------------------------------------------- writing


@pytest.mark.filterwarnings("ignore:.* is a formula to a spreadsheet")
@FOLDER_KEPT
@given(st.lists(any_ranking(4), max_size=5), st.sampled_from(["votes.csv", "votes.csv.gz"]))
def test_written_rankings_come_back(tmp_path, rows, name):
    items = ["=1+1", 'say "x"', "a;b", "Ann, Bo"]
    rankings = Rankings(np.array(rows).reshape(-1, 4), items, np.arange(1, len(rows) + 1))
    write_csv(rankings, tmp_path / name, overwrite=True)
    back = read_csv(tmp_path / name, layout="ranks", count="count", unlisted="free", blank="keep")
    assert back == rankings
    if rankings.is_exhaustive():
        assert read_csv(tmp_path / name, layout="ranks", count="count") == rankings


@FOLDER_KEPT
@pytest.mark.filterwarnings("ignore:.*is a formula to a spreadsheet", "ignore:.*differ only in case or blanks")
@given(st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True))
def test_names_come_back_or_are_refused(tmp_path, names):
    rankings = Rankings([list(range(len(names)))], names)
    try:
        write_csv(rankings, tmp_path / "votes.csv", overwrite=True, count="how many")
    except RankingError:
        return
    assert read_csv(tmp_path / "votes.csv", layout="ranks", count="how many") == rankings


def test_writing_refuses_what_would_be_lost(tmp_path):
    path = tmp_path / "votes.csv"
    with pytest.raises(RankingError, match="an item is named 'count', too"):
        write_csv(Rankings([[0, 1]], ["a", "count"]), path)
    with pytest.raises(RankingError, match="would lose how many voters"):
        write_csv(Rankings([[0, 1]], counts=[2]), path, count=None)
    with pytest.raises(RankingError, match="control character"):
        write_csv(Rankings([[0, 1]], ["a", "b\nc"]), path)
    assert list(tmp_path.iterdir()) == []
    write_csv(Rankings([[0, 1]], ["a", "b"]), path, count=None)
    assert path.read_text() == '"a","b"\n1,2\n'
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_csv(Rankings([[1, 0]], ["a", "b"]), path)


# ---------------------------------------------------------------------- fuzzing

CELLS = [
    "1",
    "2",
    "3",
    "",
    "Ann",
    "Bob",
    "overvote",
    "skipped",
    "Ann|Bob",
    '"',
    "\n",
    ",",
    ";",
    "rank 1",
    "\0",
    "-1",
    "é",
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(st.sampled_from([*CELLS, ",", ",", "\n"]), max_size=25).map(lambda cells: "".join(cells).encode()),
        st.lists(st.sampled_from(CELLS), max_size=9).map(lambda c: ("rank 1,rank 2\n" + ",".join(c)).encode()),
    ),
    st.sampled_from(["auto", "ranks", "positions"]),
    st.sampled_from(["last", "free"]),
)
def test_any_bytes_are_refused_or_read_into_sound_rankings(tmp_path, raw, layout, unlisted):
    try:
        votes = read(tmp_path, raw, layout=layout, unlisted=unlisted)
    except RankingError:
        return
    # The promises of the class, checked by building it again through its front door.
    assert Rankings(votes.ranks, votes.items, votes.counts) == votes
    assert len(votes) <= raw.count(b"\n") + raw.count(b"\r")
    assert unlisted == "free" or votes.is_exhaustive()


# ---------------------------------------------------------------------- long tables

PIECES = [
    "Ann",
    "Bob ",
    "é",
    "",
    " ",
    '"Cy"',
    '"Di, D."',
    '"Ed ""E"" Elm"',
    '"F\nG"',
    '"',
    ",",
    ",",
    ",",
    "\n",
    "\n",
    "\r\n",
    "\r",
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_the_compiled_loop_takes_tables_apart_as_the_careful_way_does(text):
    text = "one,two\n" + text
    quick = at_once(text)
    try:
        careful = coded(parsed(text, ",", "votes.csv"), "votes.csv")
    except RankingError:
        assert quick is None
        return
    if quick is None:  # only quotes, and line ends of old machines, are left to the careful way
        assert '"' in text or re.search("\r(?!\n)", text)
        return
    assert (quick.columns, quick.head, quick.lines.tolist()) == (careful.columns, careful.head, careful.lines.tolist())
    assert [quick.row(row) for row in range(len(quick))] == [careful.row(row) for row in range(len(careful))]


def at_once(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "LONG", 0)
        return coded_at_once(text, ",", "votes.csv")


def test_more_texts_than_the_loop_has_room_for_at_first():
    cells = [f"name {number % 3000}" for number in range(8000)]
    table = at_once("one,two\n" + "".join(f"{a},{b}\n" for a, b in zip(cells[::2], cells[1::2], strict=True)))
    assert [cell for row in range(len(table)) for cell in table.row(row)] == cells
    assert len(table.texts) == 3000 + 2  # and the names of the columns


def test_rows_that_occur_again_are_counted_in_what_was_mended(tmp_path):
    rng = np.random.default_rng(0)
    cells = np.array(["Ann", "Bob", "Cy", "", "skipped", "overvote"])
    rows = [cells[rng.integers(6, size=3)].tolist() for _ in range(300)]
    text = "rank 1,rank 2,rank 3\n" + "".join(",".join(row) + "\n" for row in rows)
    together = read(tmp_path, text, overvotes="skip", blank="keep")
    alone = read(
        tmp_path,
        text.replace("rank 1", "id,rank 1", 1).replace("\n", "\nx,").removesuffix("x,"),
        labels="id",
        overvotes="skip",
        blank="keep",
    )
    assert alone == together
    assert alone.repairs == together.repairs
    names = ("Ann", "Bob", "Cy")
    listed = [[cell for cell in row if cell in names] for row in rows]
    assert together.repairs.repeated == sum(len(row) - len(set(row)) for row in listed)
    assert together.repairs.overvoted == sum(row.count("overvote") for row in rows)
    assert together.repairs.blank == sum(not row for row in listed)
    assert dict(together.repairs.words)["skipped"] == sum(row.count("skipped") for row in rows)


def test_errors_name_the_line_in_long_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "LONG", 0)
    text = "rank 1,rank 2\n" + "Ann,Bob\n" * 6 + "\n"
    with pytest.raises(RankingError, match="line 9: the row has 3 cells"):
        read(tmp_path, text + "Ann,Bob,Cy\n")
    with pytest.raises(RankingError, match="line 9: 'Ann' is named twice"):
        read(tmp_path, text + "Ann,Ann\n", repeated="error")
