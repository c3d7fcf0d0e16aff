"""Delimited tables: layouts, irregular ballots, and errors for ambiguous tables."""

import copy
import gzip
import io
import pickle
import re
from contextlib import suppress
from time import process_time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import any_ranking

from rankernel import RankingError, Rankings, read_csv, write_csv
from rankernel.errors import MissingExtraError
from rankernel.io import Repairs
from rankernel.io.source import SourceFile
from rankernel.io.table import LARGE, split_by_pandas, split_rows, table_of_rows

SAME_FOLDER = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(tmp_path, text, name="votes.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return read_csv(path, **options)


def orders(rankings):
    return [[b if isinstance(b, str) else "=".join(sorted(b)) for b in order] for order in rankings.to_orders()]


# ---------------------------------------------------------------------- one column per item


def test_ranks(tmp_path):
    votes = read(tmp_path, "tea,milk,beer\n1,2,3\n2,1,2\n1,,\n")
    assert votes == Rankings([[0, 1, 2], [1, 0, 1], [0, 1, 1]], ["tea", "milk", "beer"])
    free = read(tmp_path, "tea,milk,beer\n1,2,3\n2,1,2\n1,NA,-1\n", unlisted="free")
    assert free.ranks.tolist() == [[0, 1, 2], [1, 0, 1], [0, -1, -1]]


def test_ranks_with_gaps(tmp_path):
    text = "tea,milk,beer\n1,7.0,3\n"
    assert read(tmp_path, text, layout="ranks").ranks.tolist() == [[0, 2, 1]]
    with pytest.raises(RankingError, match=r"line 2: .*layout='ranks'"):
        read(tmp_path, text)


def test_items_select_columns(tmp_path):
    votes = read(tmp_path, "tea,milk\n1,2\n", items=["milk", "tea"])
    assert votes == Rankings([[1, 0]], ["milk", "tea"])
    with pytest.raises(RankingError, match=r"'milk'.*items"):
        read(tmp_path, "tea,milk\n1,2\n", items=["tea"])
    with pytest.raises(RankingError, match="'beer'"):
        read(tmp_path, "tea,milk\n1,2\n", items=["tea", "milk", "beer"])


def test_counts_labels_and_ignored_columns(tmp_path):
    text = "id,tea,milk,n,town\n17,1,2,3,Ghent\n18,2,1,1,Köln\n"
    votes = read(tmp_path, text, count="n", label_columns=["town"], ignore=["id"])
    assert votes == Rankings([[0, 1], [1, 0]], ["tea", "milk"], counts=[3, 1])
    assert votes.labels["town"].tolist() == ["Ghent", "Köln"]
    assert read(tmp_path, text, count="n", label_columns="town", ignore="id") == votes
    with pytest.raises(RankingError, match=r"line 1: label_columns.*'city'"):
        read(tmp_path, text, label_columns=["city"])
    for bad in ("0", "-1", "1.5", "", "x"):
        with pytest.raises(RankingError, match=r"votes\.csv, line 2: the count"):
            read(tmp_path, f"tea,milk,n\n1,2,{bad}\n", count="n")


# ---------------------------------------------------------------------- one column per position


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
def test_positions(tmp_path, head):
    votes = read(tmp_path, f"{head}\nAnn,Bob,Cy\nBob,,\n")
    assert orders(votes) == [["Ann", "Bob", "Cy"], ["Bob", "Ann=Cy"]]
    assert not votes.source.repairs


def test_positions_are_sorted(tmp_path):
    head = ",".join(f"rank {number}" for number in (10, 2, 1, 3, 4, 5, 6, 7, 8, 9))
    votes = read(tmp_path, f"{head}\nj,b,a,c,d,e,f,g,h,i\n")
    assert orders(votes) == [list("abcdefghij")]


def test_stated_layout(tmp_path):
    votes = read(tmp_path, "best,next\nAnn,Bob\n", layout="positions")
    assert orders(votes) == [["Ann", "Bob"]]
    assert orders(read(tmp_path, "1,2\n2,1\n", layout="positions")) == [["2", "1"]]
    assert orders(read(tmp_path, "1,2\n2,1\n", layout="ranks")) == [["2", "1"]]


def ballot(tmp_path, cells, **options):
    head = ",".join(f"rank {number}" for number in range(1, cells.count(",") + 2))
    options |= {"items": list("ABCD"), "layout": "positions", "unlisted": "free", "blank": "keep"}
    votes = read(tmp_path, f"{head}\n{cells}\n", **options)
    repairs = votes.source.repairs
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


def test_errors_of_irregular_ballots(tmp_path):
    with pytest.raises(RankingError, match=r"line 2: 'A'.*repeated"):
        ballot(tmp_path, "A,A", repeated="error")
    with pytest.raises(RankingError, match=r"line 2: 'overvote'.*overvotes"):
        ballot(tmp_path, "A,overvote", overvotes="error")
    with pytest.raises(RankingError, match=r"line 2: 'overvote'.*overvotes='tie'"):
        ballot(tmp_path, "A,overvote", overvotes="tie")
    with pytest.raises(RankingError, match=r"line 2: 'E'.*items"):
        ballot(tmp_path, "A,E")


def test_joined_names(tmp_path):
    text = "rank 1,rank 2\nAnn,Bob\nAnn|Bob,\n"
    with pytest.raises(RankingError, match=r"line 3: 'Ann\|Bob'.*separator='\|'"):
        read(tmp_path, text)
    assert orders(read(tmp_path, text, items=["Ann", "Bob", "Ann|Bob"]))[1][0] == "Ann|Bob"
    assert read(tmp_path, text, separator="|", overvotes="tie").source.repairs.overvoted == 1
    named = read(tmp_path, 'rank 1,rank 2\n"Smith, Ann",Bob\n')
    assert named.items == ("Smith, Ann", "Bob")


def test_ambiguous_markers(tmp_path):
    votes = read(tmp_path, "rank 1,rank 2\nBlank,Ann\n", items=["Ann", "Blank"])
    assert orders(votes) == [["Blank", "Ann"]]
    votes = read(tmp_path, "rank 1,rank 2\nBlank,Ann\nNull,Ann\n")
    assert orders(votes) == [["Ann", "Null"], ["Null", "Ann"]]
    assert votes.source.repairs.na_values == (("Blank", 1),)
    assert orders(read(tmp_path, "rank 1,rank 2\nNull,Ann\n", na_values=["Null"])) == [["Ann"]]


def test_blank_ballots(tmp_path):
    text = "town,n,rank 1,rank 2\nX,2,A,B\nY,3,,\nZ,4,B,A\n"
    options = {"label_columns": ["town"], "count": "n"}
    kept = read(tmp_path, text, blank="keep", **options)
    assert kept.ranks.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert read(tmp_path, text, unlisted="free", blank="keep", **options).ranks.tolist() == [[0, 1], [-1, -1], [1, 0]]
    dropped = read(tmp_path, text, **options)
    assert dropped == kept[[0, 2]]
    assert dropped.labels["town"].tolist() == ["X", "Z"]
    assert dropped.source.repairs == Repairs(blank=1)
    assert str(kept.source.repairs) == "1 blank ballot retained"
    with pytest.raises(RankingError, match=r"items=.*blank="):
        read(tmp_path, "rank 1,rank 2\n,\n", layout="positions")


# ---------------------------------------------------------------------- detection of the layout


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1,2,3\n1,2,3\n", "first row looks like data"),
        ("rank 1,rank 2\n7,9\n", "only numbers or nothing"),
        ("id,rank 1,rank 2\n1,1,2\n", "only numbers or nothing"),
        ("ward,town,tea\nNorth,Ghent,1\n", "column 'ward' holds 'North'"),
        ("id,tea\n3,1\n", "column 'id' does not look like an item"),
        ("tea,milk,beer\n5,3,4\n", "leave out ranks"),
        ("tea,milk,beer\n1,1,5\n", "leave out ranks"),
        ("tea,milk,beer\n0,1,2\n1,2,3\n", "leave out ranks"),
    ],
)
def test_ambiguous_layouts(tmp_path, text, problem):
    pattern = rf"^votes\.csv, line \d: .*{re.escape(problem)}.*layout='ranks'.*layout='positions'"
    with pytest.raises(RankingError, match=pattern):
        read(tmp_path, text)


def test_layouts_that_cannot_be_read_are_not_offered(tmp_path):
    for text, problem, offered in (
        ("rank 1,rank 3\nAnn,Bob\n", "consecutive: 1, 3", []),
        ("best,next\nAnn,Bob\n", "column 'best' holds 'Ann'", ["positions"]),
    ):
        with pytest.raises(RankingError, match=re.escape(problem)) as caught:
            read(tmp_path, text)
        assert re.findall("layout='([a-z]+)'", str(caught.value)) == offered


@pytest.mark.parametrize("row", ["1,2,2,4", "1,2,2,3", "0,1,1,3", "1,1,1,1", "2,,1,"])
def test_common_rank_numberings(tmp_path, row):
    assert len(read(tmp_path, f"Ann,Bob,Cy,John Ward\n{row}\n")) == 1


# ---------------------------------------------------------------------- the file


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_delimiters(tmp_path, sign):
    text = "tea,milk,beer\n1,2,3\n2,1,3\n".replace(",", sign)
    expected = Rankings([[0, 1, 2], [1, 0, 2]], ["tea", "milk", "beer"])
    assert read(tmp_path, text) == read(tmp_path, text, delimiter=sign) == expected
    assert read(tmp_path, text.replace("\n", "\r\n").encode("utf-8-sig")) == expected
    assert read(tmp_path, gzip.compress(text.encode()), "votes.csv.gz") == expected


def test_ambiguous_delimiters(tmp_path):
    assert read(tmp_path, "Smith, Ann;Doe, Jo\n1;2\n").items == ("Smith, Ann", "Doe, Jo")
    with pytest.raises(RankingError, match="delimiter="):
        read(tmp_path, "a,b;c\n1,2;3\n")
    with pytest.raises(ValueError, match="delimiter='ab'"):
        read(tmp_path, "a,b\n1,2\n", delimiter="ab")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file is empty"),
        ("\n\n", 1, "the file is empty"),
        ("tea,milk,tea\n1,2,3\n", 1, "columns 1 and 3 are both named 'tea'"),
        ("tea,milk\n1,2\n1\n", 3, "1 cells"),
        ("tea,milk\n1,2,3\n", 2, "3 cells"),
        ("tea,milk\n1,2\n2,x\n", 3, "item 'milk' holds 'x'"),
        ("tea,milk\n1,2\n2,1.5\n", 3, "item 'milk' holds '1.5'"),
        ("tea,milk\n1,-2\n", 2, "item 'milk' holds '-2'"),
        (",tea\n1,2\n", 1, "column 1 has no name"),
        ('tea,milk\n1,"2\n', 2, "split into cells"),
        ('"tea\nx",milk\n1,2\n3,y\n', 4, "item 'milk' holds 'y'"),
        ("tea,milk\n1,\0\n", 2, "null byte"),
        ("tea,milk\n1,é\n".encode("latin-1"), 2, "byte 0xe9"),
    ],
)
def test_damaged_tables(tmp_path, text, line, problem):
    with pytest.raises(RankingError, match=rf"^votes\.csv, line {line}: .*{re.escape(problem)}"):
        read(tmp_path, text, layout="ranks")


def test_invalid_options(tmp_path):
    for option in ("layout", "skipped", "repeated", "overvotes", "blank", "unlisted"):
        with pytest.raises(ValueError, match=option):
            read(tmp_path, "a,b\n1,2\n", **{option: "sideways"})
    with pytest.raises(ValueError, match="separator=''"):
        read(tmp_path, "a,b\n1,2\n", separator="")
    with pytest.raises(RankingError, match="ignore"):
        read(tmp_path, "a,b\n1,2\n", ignore=["a", "b"])
    with pytest.raises(RankingError, match="rank 1, choice 1"):
        read(tmp_path, "rank 1,choice 1\na,b\n", layout="positions")


# ---------------------------------------------------------------------- labels and source


def test_labels_and_source(tmp_path):
    votes = read(tmp_path, "town,rank 1,rank 2\nX,A,B\nY,,B\n", label_columns=["town"])
    plain = Rankings([[0, 1], [1, 0]], ["A", "B"])
    assert votes == plain
    assert hash(votes) == hash(plain)
    assert (plain.labels, plain.source) == ({}, None)
    assert votes[1].labels["town"].tolist() == ["Y"]
    assert votes.top(1).labels["town"].tolist() == ["X", "Y"]
    assert (votes.unique().labels, votes[:1].source) == ({}, None)
    for twin in (pickle.loads(pickle.dumps(votes)), copy.copy(votes), copy.deepcopy(votes)):
        assert twin == votes
        assert twin.labels["town"].tolist() == ["X", "Y"]
        assert twin.source.repairs == Repairs(skipped=1)
    assert repr(votes).endswith("read as a table with one column per position\n  repaired: 1 skipped cell")
    with pytest.raises(AttributeError):
        votes.labels = {}
    with pytest.raises(ValueError, match="read-only"):
        votes.labels["town"][0] = "Z"


# ---------------------------------------------------------------------- writing


@pytest.mark.filterwarnings("ignore:.* is a formula")
@SAME_FOLDER
@given(st.lists(any_ranking(4), max_size=5), st.sampled_from(["votes.csv", "votes.csv.gz"]))
def test_round_trip(tmp_path, rows, name):
    items = ["=1+1", 'say "x"', "a;b", "Ann, Bo"]
    rankings = Rankings(np.array(rows).reshape(-1, 4), items, counts=np.arange(1, len(rows) + 1))
    write_csv(rankings, tmp_path / name, overwrite=True)
    back = read_csv(tmp_path / name, layout="ranks", count="count", unlisted="free", blank="keep")
    assert back == rankings
    if rankings.is_exhaustive():
        assert read_csv(tmp_path / name, layout="ranks", count="count") == rankings


@SAME_FOLDER
@pytest.mark.filterwarnings("ignore:.* is a formula", "ignore:.*differ only in case")
@given(st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True))
def test_names_round_trip(tmp_path, names):
    rankings = Rankings([list(range(len(names)))], names)
    try:
        write_csv(rankings, tmp_path / "votes.csv", overwrite=True, count="how many")
    except RankingError:
        return
    assert read_csv(tmp_path / "votes.csv", layout="ranks", count="how many") == rankings


def test_unwritable_tables(tmp_path):
    path = tmp_path / "votes.csv"
    with pytest.raises(RankingError, match="count"):
        write_csv(Rankings([[0, 1]], ["a", "count"]), path)
    with pytest.raises(RankingError, match="count=None"):
        write_csv(Rankings([[0, 1]], counts=[2]), path, count=None)
    with pytest.raises(RankingError, match="items: "):
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
def test_any_bytes(tmp_path, raw, layout, unlisted):
    try:
        votes = read(tmp_path, raw, layout=layout, unlisted=unlisted)
    except (RankingError, MissingExtraError):  # some bytes begin like a file of Arrow
        return
    # The invariants of the class, checked by its constructor.
    assert Rankings(votes.ranks, votes.items, counts=votes.counts) == votes
    assert len(votes) <= raw.count(b"\n") + raw.count(b"\r")
    assert unlisted == "free" or votes.is_exhaustive()


# ---------------------------------------------------------------------- large tables

PIECES = [
    *("Ann", "Bob ", "é", "", " ", "NA", "1.0", "\ufeff", "#", "'"),
    *('"Cy"', '"Di, D."', '"Ed ""E"" Elm"', '"F\nG"', '"'),
    *(",", ",", ",", "\n", "\n", "\r\n", "\r", "\t"),
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.sampled_from(["one,two\n", "one\n", ""]))
def test_pandas_and_csv_split_alike(text, header):
    source = SourceFile(io.BytesIO((header + text).encode()))
    try:
        by_csv = table_of_rows(split_rows(source, ","), source)
    except RankingError:
        with suppress(RankingError):
            assert split_by_pandas(source, ",") is None
        return
    by_pandas = split_by_pandas(source, ",")
    if by_pandas is None:
        return
    assert by_pandas.header_line == by_csv.header_line
    assert by_pandas.lines.tolist() == by_csv.lines.tolist()
    assert cells(by_pandas) == cells(by_csv)


def cells(table):
    return {name: [column[row] for row in range(len(table))] for name, column in table.columns.items()}


def test_many_distinct_cells():
    texts = [f"name {number % 3000}" for number in range(80_000)]
    text = "one,two\n" + "".join(f"{a},{b}\n" for a, b in zip(texts[::2], texts[1::2], strict=True))
    table = split_by_pandas(SourceFile(io.StringIO(text)), ",")
    assert cells(table) == {"one": texts[::2], "two": texts[1::2]}
    assert [len(column.texts) for column in table.columns.values()] == [1500, 1500]


def test_identifiers_are_not_numbers(tmp_path):
    """Matching takes a time linear in the length of a cell."""
    rows = "".join(f"{number:0300d}x,1,2\n" for number in range(20_000))
    start = process_time()
    assert read(tmp_path, f"id,tea,milk\n{rows}", ignore="id").n_rankings == 20_000
    assert read(tmp_path, f"id,tea,milk\n{rows}", label_columns="id").n_rankings == 20_000
    assert process_time() - start < 3


def test_numbers_and_names_in_one_column(tmp_path):
    """Pandas reads the beginning of this column as numbers, which have other texts."""
    n = 900_000
    rows = ["007,8\n"] * n + ["Ann,007\n"]
    votes = read(tmp_path, "choice 1,choice 2\n" + "".join(rows))
    assert votes.items == ("007", "8", "Ann")
    assert (votes.n_rankings, votes.ranks[-1].tolist()) == (n + 1, [1, 2, 0])


def test_large_table(tmp_path):
    """Large enough for pandas; the same rankings and the same error as by csv."""
    names = [f"a long name of candidate number {number}" for number in range(4)]
    rows = "".join(f"{names[n % 4]},{names[(n + 1) % 4]}\n" for n in range(130_000))
    assert len(rows) > LARGE
    votes = read(tmp_path, f"rank 1,rank 2\n{rows}")
    assert votes.items == tuple(names)
    assert votes.unique().counts.tolist() == [32_500] * 4
    with pytest.raises(RankingError, match="line 130003: the row has 3 cells"):
        read(tmp_path, f"rank 1,rank 2\n{rows}\na,b,c\n")


def test_repairs_of_repeated_rows(tmp_path):
    rng = np.random.default_rng(0)
    cells = np.array(["Ann", "Bob", "Cy", "", "skipped", "overvote"])
    rows = [cells[rng.integers(6, size=3)].tolist() for _ in range(300)]
    text = "rank 1,rank 2,rank 3\n" + "".join(",".join(row) + "\n" for row in rows)
    together = read(tmp_path, text, overvotes="skip", blank="keep")
    alone = read(
        tmp_path,
        text.replace("rank 1", "id,rank 1", 1).replace("\n", "\nx,").removesuffix("x,"),
        label_columns="id",
        overvotes="skip",
        blank="keep",
    )
    assert alone == together
    assert alone.source.repairs == together.source.repairs
    names = ("Ann", "Bob", "Cy")
    listed = [[cell for cell in row if cell in names] for row in rows]
    assert together.source.repairs.repeated == sum(len(row) - len(set(row)) for row in listed)
    assert together.source.repairs.overvoted == sum(row.count("overvote") for row in rows)
    assert together.source.repairs.blank == sum(not row for row in listed)
    assert dict(together.source.repairs.na_values)["skipped"] == sum(row.count("skipped") for row in rows)
