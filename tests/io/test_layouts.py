"""Tables that were misread or refused before: counts, headers, identifiers, surveys, long tables, battles."""

import ast
import io
import json
import re
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_formats import shown

import rankernel as rk
from rankernel import Rankings

NUMBERS = Rankings([[2, 0, 1, 3]], counts=[7])


def read(tmp_path, text, name="votes.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return rk.read(path, **options)


# ---------------------------------------------------------------------- written files are read back


@pytest.mark.filterwarnings("ignore:.* is a formula")
@pytest.mark.parametrize("name", ["votes.csv", "votes.csv.gz", "votes.blt", "votes.toi", "votes.cat"])
@pytest.mark.parametrize(
    "rankings",
    [
        NUMBERS,
        Rankings([[0, 1], [1, 0]], ["winner", "loser"], counts=[2, 1]),
        Rankings([[0, 1, 2]], ["rank 1", "rank 2", "id"]),
        Rankings([[0, 1, 2]], ["user", "item", "score"]),
        Rankings([[0, -1, 1], [-1, 0, -1]], ["a", "b", "c"], counts=[3, 4]),
        Rankings([[0, 1, 1, 0]], ["n", "votes", "NA", "free"]),
        Rankings([[0, 1, 1]], ["rank of a", "b > c", "d;"]),
        Rankings([[0]], ["only"]),
    ],
)
def test_written_files_are_read_back(tmp_path, rankings, name):
    write = {"csv": rk.write_csv, "blt": rk.write_blt}.get(name.split(".")[1], rk.write_preflib)
    write(rankings, tmp_path / name)
    assert rk.read(tmp_path / name) == rankings


def test_written_labels(tmp_path):
    rankings = Rankings([[0, 1], [1, 0]], ["a", "b"], counts=[2, 1])
    rk.write_csv(rankings, tmp_path / "v.csv", labels={"town": ["Ghent", "Bonn"], "group": ["1", "2"]})
    back = rk.read(tmp_path / "v.csv")
    assert back == rankings
    assert back.labels["town"].tolist() == ["Ghent", "Bonn"]
    assert back.labels["group"].tolist() == ["1", "2"]


# ---------------------------------------------------------------------- refused instead of misread


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("userId,1,2,3,4\n17,5,3,4,2\n18,1,1,5,4\n", "layout='ranks'.*layout='positions'"),
        ("respondent,1,2,3\n1,2,1,3\n2,3,1,2\n", "layout='ranks'"),
        ("name,Choice 1,Choice 2\nAnn,1,2\nBob,2,1\n", "layout='ranks'"),
        ("candidate,rank 1,rank 2\nAnn,120,80\nBob,80,120\n", "only numbers"),
        ("tea,milk,weight\n1,2,0.5\n2,1,1.5\n", "weight.*ignore="),
        ("choice 1,choice 2,votes\nAnn,Bob,-3\n", "'votes' may hold counts, but '-3' is not one.*ignore="),
        ("choice 1,choice 2,total\nAnn,Bob,9\nBob,Ann,3\n", "count='total' or ignore="),
        ("tea,milk,total\n1,2,9\n2,1,3\n", "count='total' or ignore="),
        ("3,1,2\n1,2,3\n", "header=False"),
        ("Ann,Bob,Cy\nBob,Ann,Cy\nCy,Bob,Ann\n", "header=False"),
        ("tea,milk,beer\n", "header=False"),
        ("a choice 1,a choice 2\nB|A,\nB,\n", r"'B\|A'.*separator="),
        ("user,item\na,x\n", "user"),
    ],
)
def test_refused(tmp_path, text, match):
    with pytest.raises(rk.RankingError, match=match):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("userId,1,2,3\n17,5,3,4\n", {"layout": "scores", "ignore": ["userId"]}, ["1>3>2"]),
        ("name,Choice 1,Choice 2\nx,1,2\n", {"layout": "ranks", "ignore": ["name"]}, ["Choice 1>Choice 2"]),
        ("tea,milk,weight\n1,2,0.5\n", {"ignore": ["weight"]}, ["tea>milk"]),
        ("3,1,2\n1,2,3\n", {"header": False, "layout": "ranks"}, ["2>3>1", "1>2>3"]),
        ("3,1,2\n1,2,3\n", {"header": False, "layout": "positions"}, ["3>1>2", "1>2>3"]),
        ("Ann,Bob\nBob,Ann\n", {"header": False}, ["Ann>Bob", "Bob>Ann"]),
        ("Ann,Bob\n1,2\n", {"header": True}, ["Ann>Bob"]),
        ("tea,milk,Count\n1,2,3\n2,1,1\n", {}, ["3*tea>milk", "milk>tea"]),
        ("n,choice 1,choice 2\n4,Ann,Bob\n", {}, ["4*Ann>Bob"]),
        ("l,m,n\n1,2,3\n", {}, ["l>m>n"]),
        ('choice 1,choice 2,number of voters\nAnn,Bob,"1,200"\n', {}, ["1200*Ann>Bob"]),
        ("number,choice 1,choice 2\n7,Ann,Bob\n8,Bob,Ann\n", {}, ["Ann>Bob", "Bob>Ann"]),
        (",tea,milk\n0,1,2\n1,2,1\n", {}, ["tea>milk", "milk>tea"]),
        ("user;item;rating\n1;tea;3,5\n1;milk;4,0\n", {}, ["milk>tea"]),
        ("choice 1,choice 2\nAnn|Bob,Cy\n", {"separator": "|", "items": ["Ann", "Bob", "Cy"]}, "blank"),
    ],
)
def test_options_of_refusals(tmp_path, text, options, expected):
    if isinstance(expected, str):
        with pytest.raises(rk.RankingError, match=expected):
            read(tmp_path, text, **options)
    else:
        assert shown(read(tmp_path, text, **options)) == expected


def test_manifest_of_a_cast_vote_record(tmp_path):
    manifest = {"Version": "5.10", "List": [{"Id": 1, "ContestId": 2}, {"Id": 2, "ContestId": 1}]}
    with pytest.raises(rk.RankingError, match=r"CvrExport\.json"):
        read(tmp_path, json.dumps(manifest), "CandidateManifest.json")


def test_names_after_overvotes_are_items(tmp_path):
    votes = read(tmp_path, "choice 1,choice 2,choice 3\nAnn,overvote,Bob\nAnn,Cy|Dee,\nDee,,\n", separator="|")
    assert votes.items == ("Ann", "Bob", "Cy", "Dee")


# ---------------------------------------------------------------------- one path for all tables

ROWS = [{"choice 1": "Ann", "choice 2": "Bob", "n": 2}, {"choice 1": "Bob", "choice 2": None, "n": 1}]
EXPECTED = ["2*Ann>Bob", "Bob>Ann"]


def test_tables_of_every_kind(tmp_path):
    frame = pd.DataFrame(ROWS)
    assert shown(rk.read(frame)) == shown(rk.read(pl.DataFrame(ROWS))) == shown(rk.read(ROWS)) == EXPECTED
    assert shown(read(tmp_path, json.dumps(ROWS), "v.json")) == EXPECTED
    assert shown(read(tmp_path, "\n".join(map(json.dumps, ROWS)), "v.jsonl")) == EXPECTED
    assert shown(read(tmp_path, json.dumps({"rows": ROWS, "year": 3}), "v.json")) == EXPECTED
    assert shown(rk.read(io.StringIO(frame.to_csv(index=False)))) == EXPECTED
    assert shown(rk.read(io.BytesIO(frame.to_csv(index=False).encode()))) == EXPECTED
    lists = [{"voter": 1, "ranking": ["a", "b"]}, {"voter": 2, "ranking": ["b"]}]
    assert shown(read(tmp_path, json.dumps(lists), "v.json")) == ["a>b", "b>a"]
    ranks = pd.DataFrame({"tea": [1, 2], "milk": [2.0, 1.0]})
    assert shown(rk.read(ranks)) == ["tea>milk", "milk>tea"]


def test_movielens_without_names_of_columns(tmp_path):
    rows = [(user, item, (user * item) % 5 + 1, 881250949 + user) for user in (3, 4, 5) for item in (7, 8)]
    stated = {"header": False, "columns": {"user": "1", "item": "2", "score": "3"}}
    for sign, name in (("\t", "u.data"), ("::", "ratings.dat")):
        text = "".join(sign.join(map(str, row)) + "\n" for row in rows)
        with pytest.raises(rk.RankingError, match=r"header=False and columns=\{'user': '1'"):
            read(tmp_path, text, name)
        assert shown(read(tmp_path, text, name, **stated)) == ["8>7", "7>8", "7=8"]


@pytest.mark.parametrize("text", ["3,1,2\n1,2,3\n", "1,7,3,5,5\n1,8,5,5,5\n2,7,4,5,5\n2,8,1,5,5\n2,8,1,5,5\n"])
def test_tables_that_are_not_long_are_not_offered_as_such(tmp_path, text):
    """A rating has a user and an item that occur again, and at most a time besides."""
    with pytest.raises(rk.RankingError, match="header=False") as caught:
        read(tmp_path, text)
    assert "columns=" not in str(caught.value)


def test_objects_of_json(tmp_path):
    frame = pd.DataFrame(ROWS)
    for orient in ("split", "index", "columns", "records"):
        assert shown(read(tmp_path, frame.to_json(orient=orient), "v.json")) == EXPECTED
    assert shown(read(tmp_path, '{"winner": "x", "loser": "y"}', "v.jsonl")) == ["x>y"]
    with pytest.raises(rk.RankingError, match="layout='ranks'"):
        read(tmp_path, "[[1, 2], [2, 1]]", "v.json")
    assert shown(read(tmp_path, "[[1, 2], [2, 1]]", "v.json", layout="ranks")) == ["1>2", "2>1"]
    assert shown(rk.read(pl.DataFrame({"ranking": [["a", "b"], ["b"]]}))) == ["a>b", "b>a"]


def test_archives_of_one_file(tmp_path):
    """A table and a BLT file in an archive are read like the files themselves; of several files one must be named."""
    for name, text in (("votes.csv", "tea,milk\n1,2\n2,1\n"), ("ward.blt", '2 1\n3 1 2 0\n0\n"Ann"\n"Bob"\n"x"\n')):
        path = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.mkdir("folder")
            archive.writestr(f"folder/{name}", text)
        alone = read(tmp_path, text, name)
        assert rk.read(path) == alone
        assert rk.read(io.BytesIO(path.read_bytes())) == alone
    assert rk.read_csv(tmp_path / "votes.csv.zip") == read(tmp_path, "tea,milk\n1,2\n2,1\n")
    with zipfile.ZipFile(tmp_path / "votes.csv.zip", "a") as archive:
        archive.writestr("other.csv", "tea,milk\n1,2\n")
    with pytest.raises(rk.RankingError, match=r"no \.json or \.xml file; name the file"):
        rk.read(tmp_path / "votes.csv.zip")


def test_file_objects_without_a_name(tmp_path):
    """Their format is that of their content."""
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(ROWS)
    for write in (frame.to_parquet, frame.to_feather, lambda file: frame.to_excel(file, index=False)):
        file = io.BytesIO()
        write(file)
        assert shown(rk.read(io.BytesIO(file.getvalue()))) == EXPECTED
    for lines in (False, True):
        text = frame.to_json(orient="records", lines=lines)
        assert shown(rk.read(io.StringIO(text))) == shown(rk.read(io.BytesIO(text.encode()))) == EXPECTED


def test_arrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.Table.from_pylist(ROWS)
    parquet.write_table(table, tmp_path / "v.parquet")
    feather.write_feather(table, tmp_path / "v.feather")
    for source in (table, tmp_path / "v.parquet", tmp_path / "v.feather"):
        assert shown(rk.read(source)) == EXPECTED
    with (tmp_path / "v.parquet").open("rb") as file:
        assert shown(rk.read(file)) == EXPECTED
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(rk.RankingError, match=r"bad\.parquet"):
        rk.read(tmp_path / "bad.parquet")


def test_excel_tables(tmp_path):
    pytest.importorskip("openpyxl")
    pd.DataFrame({"winner": ["x", "y"], "loser": ["y", "z"]}).to_excel(tmp_path / "pairs.xlsx", index=False)
    assert shown(rk.read(tmp_path / "pairs.xlsx")) == ["x>y", "y>z"]


# ---------------------------------------------------------------------- long tables, orders, surveys

LONG = "userId,movieId,rating,timestamp\n1,a,5,9\n1,b,3,9\n2,b,4.5,9\n2,a,4.5,9\n3,c,1,9\n"


def test_long_tables(tmp_path):
    votes = read(tmp_path, LONG)
    assert shown(votes) == ["a>b", "a=b", "c"]
    assert votes.labels["userId"].tolist() == ["1", "2", "3"]
    assert votes.source.ignored == ("timestamp",)
    frame = pd.read_csv(io.StringIO(LONG))
    assert Rankings.from_long(frame, user="userId", item="movieId", score="rating") == votes
    new = Rankings.from_long(frame[:2], votes.items, user="userId", item="movieId", score="rating")
    assert (new.items, new.ranks.tolist()) == (votes.items, [[0, 1, -1]])
    ranked = read(tmp_path, "voter,item,rank\nv,x,2\nv,y,1\n")
    assert shown(ranked) == ["y>x"]
    stated = read(tmp_path, "who,what,how\nv,x,2\nv,y,1\n", columns={"user": "who", "item": "what", "score": "how"})
    assert shown(stated) == ["x>y"]
    text = "benchmark,item,score\nv,x,2\nv,y,1\n"  # a name of the user that is not known
    assert shown(read(tmp_path, text, layout="long", columns={"user": "benchmark"})) == ["x>y"]
    with pytest.raises(rk.RankingError, match=r"layout='long' and columns={'user': 'benchmark'}"):
        read(tmp_path, text)
    books = '"User-ID";"ISBN";"Book-Rating"\n"7";"034X";"0"\n"7";"015X";"5"\n"8";"034X";"3"\n'
    assert shown(read(tmp_path, books)) == ["015X>034X", "034X"]
    for wrong in (LONG + "1,a,2,9\n", LONG + "4,a,x,9\n", LONG + ",a,2,9\n"):
        with pytest.raises(rk.RankingError, match=r"votes\.csv"):
            read(tmp_path, wrong)
    with pytest.raises(rk.RankingError, match="rank"):
        Rankings.from_long(frame, user="userId", item="movieId")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("v.csv", "A1,A2,ranking\n-0.5,1,a>b>c\n0.1,2,c>b>a\n", ["a>b>c", "c>b>a"]),
        ("v.txt", "tea > milk = juice\nmilk>tea\n", ["tea>juice=milk", "milk>tea>juice"]),
        ("v.txt", "tea > milk\n", ["tea>milk"]),
        ("v.abif", "# votes\n3: A>B>C\n2:C>A=B\n", ["3*A>B>C", "2*C>A=B"]),
        (
            "v.abif",
            "3: A > B # first\n2:[Ash, Ann]>A,B\n1:A/2,B/5\n",
            ["3*A>B>Ash, Ann", "2*Ash, Ann>A=B", "B>A>Ash, Ann"],
        ),
        (
            "v.txt",
            "Option #2 > Option #1 * 3\nOption #1 > Option #2 # one\n",
            ["3*Option #2>Option #1", "Option #1>Option #2"],
        ),
        (
            "v.csv",
            "Timestamp,Rank [Tea],Rank [Milk]\n1/2/2024,1st (best),2nd\n1/3/2024,2nd,1st (best)\n",
            ["Tea>Milk", "Milk>Tea"],
        ),
        (
            "v.csv",
            "ID,Rank your drinks\n1,Tea;Coffee;Milk;\n2,Milk;Tea;Coffee;\n",
            ["Tea>Coffee>Milk", "Milk>Tea>Coffee"],
        ),
        (
            "v.csv",
            "Timestamp,Rank [Tea],Rank [Milk]\n1/2/2024 9:00,1st choice,2nd choice\n1/3/2024,2nd choice,1st choice\n",
            ["Tea>Milk", "Milk>Tea"],
        ),
        (
            "qualtrics.csv",
            (
                "StartDate,ResponseId,Q1_1,Q1_2,Q1_3\n"
                "Start Date,Response ID,Rank these - Tea,Rank these - Milk,Rank these - Beer\n"
                '"{""ImportId"":""startDate""}","{""ImportId"":""_recordId""}","{""ImportId"":""QID1_1""}",'
                '"{""ImportId"":""QID1_2""}","{""ImportId"":""QID1_3""}"\n'
                "2024-01-01,R_1,2,1,3\n2024-01-02,R_2,1,2,3\n"
            ),
            ["Milk>Tea>Beer", "Tea>Milk>Beer"],
        ),
        (
            "monkey.csv",
            "Respondent ID,Collector ID,Rank these drinks,,\n,,Tea,Milk,Beer\n101,7,1,2,3\n102,7,3,1,2\n",
            ["Tea>Milk>Beer", "Milk>Beer>Tea"],
        ),
        (
            "votekit.csv",
            (
                "VoteKit RankProfile,v2\nCandidates\n(Ann:str:0),(Bob:str:1),(Cy:str:2)\nMax Ranking Length\n2\n"
                "Includes Voter Set\nFalse\n=,=,=,=,=,=,=,=,=,=\nRanking_1,Ranking_2,&,Weight,&\n"
                "{'0'},\"{'1', '2'}\",&,3.0,&\n{'2'},,&,1.0,&\n"
            ),
            ["3*Ann>Bob=Cy", "Cy>Ann=Bob"],
        ),
        (
            "scores.csv",
            (
                "VoteKit ScoreProfile\nCandidates\n(Ann:A),(Bob:B),(Cy:C)\nIncludes Voter Set\nFalse\n"
                "=,=,=,=,=,=,=,=,=,=\nA,B,C,&,Weight,&\n1.0,5.0,0.0,&,1.5,&\n0.0,2.0,2.0,&,0.5,&\n"
            ),
            ["3*Bob>Ann>Cy", "Bob=Cy>Ann"],
        ),
        (
            "old.csv",
            (
                'Candidates\nAnn,"Ash, Bob",Cy\nBallot Index,Ann,"Ash, Bob",Cy,Ranking_1,Ranking_2,Weight,Voter Set\n'
                "0,,,,\"frozenset({'Ann', 'Ash, Bob'})\",frozenset(),3/2,\"{'x', 'y'}\"\n1,2,4,,,,1/2,set()\n"
            ),
            ["3*Ann=Ash, Bob>Cy", "Ash, Bob>Ann>Cy"],
        ),
        (
            "votekit.csv",
            (
                'VoteKit RankProfile\nCandidates\n"(Mills, J.: T.:MIL)",(O\'Hara:OHA)\nMax Ranking Length\n2\n=,=\n'
                'Ranking_1,Ranking_2,&,Weight,&\n{\'MIL\'},"{""OHA""}",&,1.0,&\n'
            ),
            ["Mills, J.: T.>O'Hara"],
        ),
        ("numbered.csv", "choice 1,choice 2\n3,1\n1,2\n2,\n", ["3>1>2", "1>2>3", "2>1=3"]),
        ("four.csv", "rank 1,rank 2,rank 3,rank 4\n4,1,,\n1,2,3,\n2,,,\n", ["4>1>2=3", "1>2>3>4", "2>1=3=4"]),
        ("votes.toi", "3\n1,tea\n2,milk\n3,beer\n5,5,2\n3,1,2\n2,3,{1,2}\n", ["3*tea>milk>beer", "2*beer>milk=tea"]),
        ("v.order", "3 1\n0 3 2 0 1\n0 2 1 0\n", ["2>0>1", "1>0"]),
        ("v.run", "1 Q0 d1 1 6.8 x\n1 Q0 d2 2 6.1 x\n1 Q0 d3 3 6.1 y\n", ["d1>d2", "d3"]),
        ("v.qrels", "1 0 d1 1\n1 0 d2 0\n2 0 d2 2\n", ["d1>d2", "d2"]),
    ],
)
@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
def test_orders_and_surveys(tmp_path, name, text, expected):
    assert shown(read(tmp_path, text, name)) == expected


def test_weights_of_votekit_are_announced(tmp_path):
    text = (
        "VoteKit RankProfile\nCandidates\n(Ann:A),(Bob:B)\nMax Ranking Length\n2\nIncludes Voter Set\nFalse\n=,=\n"
        "Ranking_1,Ranking_2,&,Weight,&\n{'A'},{'B'},&,2.25,&\n{'B'},,&,1.0,&\n"
    )
    with pytest.warns(rk.ReadingWarning, match="multiplied by 4"):
        assert shown(read(tmp_path, text, "v.csv")) == ["9*Ann>Bob", "4*Bob>Ann"]
    with pytest.raises(rk.RankingError, match="no weight"):
        read(tmp_path, text.replace("2.25", "many"), "v.csv")


@pytest.mark.parametrize(
    ("text", "options", "others"),
    [
        ("id,tea,milk\n3,1,2\n", ["ignore=['id']", "layout='scores'"], []),
        ("tea,milk,beer\n5,3,4\n", ["layout='ranks'", "layout='scores'"], ["ignore=["]),
        ("choice 1,choice 2\n1,2\n2,1\n", ["layout='ranks'", "layout='positions'"], []),
        ("tea,milk,beer\n5,-3,4\n", ["layout='scores'"], ["layout='ranks'"]),
        ("name,choice 1,choice 2\na,1,2\nb,2,1\n", ["layout='ranks'", "layout='positions'"], []),
    ],
)
def test_refusals_name_options_that_work(tmp_path, text, options, others):
    with pytest.raises(rk.RankingError) as caught:
        read(tmp_path, text)
    for option in options:
        assert option in str(caught.value)
    tried = str(caught.value).partition("give ")[2].split(" or ")
    for option in tried:
        found = re.findall(r"(\w+)=('\w+'|\[[^]]*\])", option)
        read(tmp_path, text, **{name: ast.literal_eval(value) for name, value in found})
    assert not [option for option in others if option in str(caught.value)]


def test_numbers_in_columns_of_positions_that_may_be_something_else(tmp_path):
    for text in (
        "user,1,2,3\na,5,3,4\nb,1,2,5\n",  # ratings
        "item,rank 1,rank 2\na,20,13\nb,7,30\n",  # histogram
        "name,choice 1,choice 2\na,1,2\nb,2,1\n",  # ranks
        "choice 1,choice 2\n3,3\n1,2\n",  # repeated
        "rank 1,rank 2,rank 3,rank 4\n4,1,,2\n1,2,3,\n",  # with a gap
    ):
        with pytest.raises(rk.RankingError):
            read(tmp_path, text)


def test_trec_labels_and_files(tmp_path):
    for system in ("x", "y"):
        (tmp_path / f"{system}.run").write_text(f"1 Q0 d1 1 6.8 {system}\n2 Q0 d2 2 6.1 {system}\n")
    votes = rk.read([tmp_path / "x.run", tmp_path / "y.run"])
    assert votes.labels["query"].tolist() == ["1", "2", "1", "2"]
    assert votes.labels["system"].tolist() == ["x", "x", "y", "y"]


# ---------------------------------------------------------------------- battles


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,model_a,model_b,winner,lang\n7,x,y,model_a,en\n8,y,z,tie (bothbad),de\n", ["x>y", ""]),
        ("left,right,winner,worker\nx,y,left,w1\ny,z,right,w2\n", ["x>y", "z>y"]),
        (
            (
                "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
                "1,x,y,p,r,s,0,1,0\n2,x,z,p,r,s,0,0,1\n"
            ),
            ["y>x", ""],
        ),
        ("generator_1,generator_2,preference\nx,y,1\ny,z,2.0\nx,z,1.5\n", ["x>y", "z>y", ""]),
    ],
)
def test_battles(tmp_path, text, expected):
    assert shown(read(tmp_path, text)) == expected


def test_win_matrix(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 5, 3000)
    b = (a + rng.integers(1, 5, 3000)) % 5
    winner = rng.choice(["model_a", "model_b", "tie"], 3000)
    names = np.array([f"m{number}" for number in range(5)])
    frame = pd.DataFrame({"model_a": names[a], "model_b": names[b], "winner": winner})
    frame.to_csv(tmp_path / "battles.csv", index=False)
    found = rk.io.read_comparisons(tmp_path / "battles.csv")
    expected = np.zeros((5, 5), dtype=int)
    index = {name: number for number, name in enumerate(found.items)}
    for row in frame.itertuples():
        if row.winner != "tie":
            pair = (row.model_a, row.model_b) if row.winner == "model_a" else (row.model_b, row.model_a)
            expected[index[pair[0]], index[pair[1]]] += 1
    assert found.wins.tolist() == expected.tolist()


# ---------------------------------------------------------------------- options of ballots

POSITIONS = "choice 1,choice 2,choice 3,choice 4\n"


@pytest.mark.parametrize(
    ("row", "options", "expected"),
    [
        ("Ann,,Bob,", {"skipped": 1}, "Ann>Bob"),
        ("Ann,,,Bob", {"skipped": 1}, "Ann"),
        ("Ann,,,Bob", {"skipped": 2}, "Ann>Bob"),
        ("Ann,,Bob,", {"skipped": 0}, "Ann"),
        ("Write-in,Ann,UWI,Bob", {"write_ins": "merge"}, "write-in>Ann>Bob"),
        ("Write-in,Ann,Write-In 2,Bob", {"write_ins": "drop"}, "Ann>Bob"),
        ("Write-in,Ann,UWI,Bob", {}, "Write-in>Ann>UWI>Bob"),
        ("A. Ash,Bob,,", {"aliases": {"A. Ash": "Ann"}}, "Ann>Bob"),
    ],
)
def test_options_of_ballots(tmp_path, row, options, expected):
    assert shown(read(tmp_path, POSITIONS + row + "\n", unlisted="free", **options)) == [expected]
