"""Files and frames as people have them, each with what it must give, or with the words in which it is refused."""

import gzip
import json
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rankernel as rk
from rankernel import Preferences, RankingError, Rankings
from rankernel.io import files

PREFLIB = """# FILE NAME: {name}
# TITLE: Drinks
# DATA TYPE: {kind}
# NUMBER ALTERNATIVES: {items}
# NUMBER VOTERS: {voters}
# NUMBER UNIQUE ORDERS: {rows}
{more}{names}
{body}
"""


def preflib(kind, rows, items=("tea", "milk", "beer"), first=1, more=""):
    names = "\n".join(f"# ALTERNATIVE NAME {number}: {item}" for number, item in enumerate(items, start=first))
    voters = sum(int(row.split(":")[0]) for row in rows)
    body = "\n".join(rows)
    text = PREFLIB.format(
        name=f"votes.{kind}",
        kind=kind,
        items=len(items),
        voters=voters,
        rows=len(rows),
        names=names,
        body=body,
        more=more,
    )
    return text.replace("UNIQUE ORDERS", "UNIQUE PREFERENCES") if kind == "cat" else text


def shown(data):
    """Rows as text, counts in front where they are not 1: 'a>b=c', pairs as 'a>b, c>d'."""
    if isinstance(data, Preferences):
        rows = [", ".join(f"{x}>{y}" for x, y in pairs) for pairs in data.to_pairs()]
    else:
        orders = data.to_orders()
        rows = [">".join(b if isinstance(b, str) else "=".join(sorted(b)) for b in order) for order in orders]
    return [row if count == 1 else f"{count}*{row}" for row, count in zip(rows, data.counts.tolist(), strict=True)]


DOMINION = {
    "Version": "5.10",
    "Sessions": [
        {
            "RecordId": 1,
            "Original": {
                "IsCurrent": False,
                "Cards": [{"Contests": [{"Id": 7, "Marks": [{"CandidateId": 2, "Rank": 1, "IsVote": True}]}]}],
            },
            "Modified": {
                "IsCurrent": True,
                "Cards": [
                    {
                        "Contests": [
                            {
                                "Id": 7,
                                "Marks": [
                                    {"CandidateId": 1, "Rank": 1, "IsVote": True},
                                    {"CandidateId": 2, "Rank": 2, "IsVote": True, "IsAmbiguous": False},
                                    {"CandidateId": 3, "Rank": 3, "IsVote": False},
                                ],
                            },
                            {"Id": 8, "Marks": [{"CandidateId": 9, "Rank": 1, "IsVote": True}]},
                        ]
                    }
                ],
            },
        },
        {
            "RecordId": 2,
            "Original": {
                "IsCurrent": True,
                "Contests": [
                    {
                        "Id": 7,
                        "Marks": [
                            {"CandidateId": 3, "Rank": 1, "IsVote": True},
                            {"CandidateId": 1, "Rank": 2, "IsVote": True},
                            {"CandidateId": 2, "Rank": 2, "IsVote": True},
                        ],
                    }
                ],
            },
        },
    ],
}
CONTESTS = {"List": [{"Id": 7, "Description": "Mayor"}, {"Id": 8, "Description": "Clerk"}]}
CANDIDATES = {
    "List": [{"Id": number, "Description": name} for number, name in ((1, "Ann"), (2, "Bob"), (3, "Cy"), (9, "Dee"))]
}


def nist_mark(selection, rank, **more):
    return {"ContestSelectionId": selection, "SelectionPosition": [{"HasIndication": "yes", "Rank": rank, **more}]}


NIST = {
    "@type": "CVR.CastVoteRecordReport",
    "Election": [
        {
            "Candidate": [{"@id": "c1", "Name": "Ann"}, {"@id": "c2", "Name": "Bob"}],
            "Contest": [
                {
                    "@id": "k1",
                    "Name": "Mayor",
                    "ContestSelection": [
                        {"@id": "s1", "CandidateIds": ["c1"]},
                        {"@id": "s2", "CandidateIds": ["c2"]},
                        {"@id": "s3", "IsWriteIn": True},
                    ],
                }
            ],
        }
    ],
    "CVR": [
        {
            "CurrentSnapshotId": "new",
            "CVRSnapshot": [
                {"@id": "old", "CVRContest": [{"ContestId": "k1", "CVRContestSelection": [nist_mark("s1", 1)]}]},
                {
                    "@id": "new",
                    "CVRContest": [
                        {"ContestId": "k1", "CVRContestSelection": [nist_mark("s2", 1), nist_mark("s1", 2)]}
                    ],
                },
            ],
        },
        {
            "CurrentSnapshotId": "a",
            "CVRSnapshot": [
                {
                    "@id": "a",
                    "CVRContest": [
                        {
                            "ContestId": "k1",
                            "CVRContestSelection": [nist_mark("s3", 1), nist_mark("s1", 2, IsAllocable="no")],
                        }
                    ],
                }
            ],
        },
    ],
}
SCOTTISH = """4,3
12,1,2,3,
5,4,
1,2,1,,
"Candidate 1","Ann Ash","Labour (Lab)",
"Candidate 2","Bob Birch","Green (Grn)",
"Candidate 3","Cy Cedar","SNP (SNP)",
"Candidate 4","Dee Dogwood","Independent (Ind)",
"Ward 4 - Hill",
"""
BLT = """# council
4 2
-2
3 1 3 4 0
4 1 3 2 0   # a comment
2 4 1=3 0
1 2 0
5 0
0
"Adam A."
"Basil"
"Charlotte"
"Donald"
"By-election"
"""
DOMINION_CSV = """City Election 2023,5.10.50.85,,,,,,,,,,,
,,,,"Mayor (Number of positions=1, Number of ranks=2)","Mayor (Number of positions=1, Number of ranks=2)",\
"Mayor (Number of positions=1, Number of ranks=2)","Mayor (Number of positions=1, Number of ranks=2)",\
"Mayor (Number of positions=1, Number of ranks=2)","Mayor (Number of positions=1, Number of ranks=2)",\
Clerk (Vote For=1),Clerk (Vote For=1),Bonds (Vote For=1)
,,,,Ann Ash(1),Bob(1),Write-in(1),Ann Ash(2),Bob(2),Write-in(2),Cy,Dee,Yes
CvrNumber,TabulatorNum,ImprintedId,PrecinctPortion,DEM,REP,,DEM,REP,,,,
1,3,="3-1-1",North,1,0,0,0,1,0,1,0,1
2,3,="3-1-2",North,0,1,0,0,0,0,0,1,0
3,3,="3-1-3",South,1,1,0,0,0,1,1,0,0
4,3,="3-1-4",South,,,,,,,1,0,0
5,3,="3-1-5",South,0,0,0,0,0,0,0,1,0
"""
POSITIONS = "choice 1,choice 2,choice 3\n"

# What a file is called, what is in it, how it is read, what it gives; a string is what the refusal says.
FILES = [
    # PrefLib
    ("votes.soc", preflib("soc", ["2: 1,2,3", "1: 3,2,1"]), {}, ["2*tea>milk>beer", "beer>milk>tea"]),
    ("votes.soi", preflib("soi", ["2: 1", "1: 3,2"]), {}, ["2*tea>beer=milk", "beer>milk>tea"]),
    ("votes.soi", preflib("soi", ["2: 1", "1: 3,2"]), {"unlisted": "free"}, ["2*tea", "beer>milk"]),
    ("votes.toc", preflib("toc", ["1: {1,2},3"]), {}, ["milk=tea>beer"]),
    ("votes.toi", preflib("toi", ["1: {1,2}"]), {}, ["milk=tea>beer"]),
    (
        "votes.cat",
        preflib("cat", ["1: {1,2},{},3"], more="# NUMBER CATEGORIES: 3\n"),
        {},
        ["milk=tea>beer"],
    ),
    ("votes.dat", preflib("soc", ["2: 1,2,3"]), {}, ["2*tea>milk>beer"]),
    ("votes.soi", preflib("soi", ["0: 1", "1: 3,2"]), {}, "no voters.*lenient=True"),
    ("votes.soi", preflib("soi", ["0: 1", "1: 3,2"]), {"lenient": True}, ["beer>milk>tea"]),
    ("votes.soi", preflib("soi", ["2: 0", "1: 2,1"], first=0), {}, "numbered from 1; lenient=True"),
    ("votes.soi", preflib("soi", ["2: 0", "1: 2,1"], first=0), {"lenient": True}, ["2*tea>beer=milk", "beer>milk>tea"]),
    ("votes.soi", preflib("soi", ["2: 1,1"]), {}, "line 10: alternative 1 is listed twice"),
    ("votes.soi", preflib("soi", [f"{2**62}: 1", f"{2**62}: 2"]), {}, "more than 18 digits|voters"),
    # BLT
    (
        "ward.blt",
        BLT,
        {"unlisted": "free"},
        ["3*Adam A.>Charlotte>Donald", "4*Adam A.>Charlotte>Basil", "2*Donald>Adam A.=Charlotte", "Basil"],
    ),
    (
        "ward.blt",
        BLT,
        {"unlisted": "free", "withdrawn": "drop"},
        ["3*Adam A.>Charlotte>Donald", "4*Adam A.>Charlotte", "2*Donald>Adam A.=Charlotte"],
    ),
    ("ward.blt", '2 1 3 1 2 0 1 2 0 0 "Ann" "Bob" "Title"', {}, ["3*Ann>Bob", "Bob>Ann"]),
    ("ward.blt", "2 1\n3 1 2\n1 2\n0\nAnn\nBob\n", {}, ["3*Ann>Bob", "Bob>Ann"]),
    ("ward.blt", '3 1\n1 2\n 3 1 0\n0\n"A" "B" "C"', {}, ["B>C>A"]),
    ("ward.blt", '2 1\n1 - 2 0\n0\n"Ann \\"A\\" Ash"\n"Bob"\n"x"', {}, ['Bob>Ann "A" Ash']),
    ("ward.blt", '2 1\n(id 4) 1 2 1 0\n0\n"Ann"\n"Bob"\n"x"', {}, ["Bob>Ann"]),
    ("election.dat", '2 1\n3 1 2 0\n0\n"Ann"\n"Bob"\n"x"', {}, ["3*Ann>Bob"]),
    ("ward.blt", '2 1\n3 1 5 0\n0\n"Ann"\n"Bob"\n"x"', {}, "line 2: candidate 5 is unknown"),
    ("ward.blt", '2 1\n3 1=1 0\n0\n"Ann"\n"Bob"\n"x"', {}, "line 2: candidate 1 is listed twice"),
    ("ward.blt", '2 1\n3 1 1 0\n0\n"Ann"\n"Bob"\n"x"', {}, "line 2: candidate 1 is listed twice"),
    ("ward.blt", "2 1\n3 1 2 0\n", {}, "line 2: the file ends where"),
    ("ward.blt", "", {}, "line 1: the file ends where"),
    ("ward.blt", f'2 1\n{2**53} 1 0\n0\n"Ann"\n"Bob"', {}, [f"{2**53}*Ann>Bob"]),
    ("ward.blt", f'2 1\n{2**53 + 1} 1 0\n0\n"Ann"\n"Bob"', {}, "line 2: 9007199254740993 is not a number of voters"),
    ("ward.blt", '2 1\n3 1 2 0\n0\n"Ann"\n"Bob', {}, "line 5: .*quotation mark"),
    ("ward.blt", '2 1\n3 1 2 0\n0\n"Ann"\n"Ann"', {}, "both named 'Ann'"),
    # tables of positions
    ("v.csv", POSITIONS + "Ann,Bob,Cy\nBob,,\n", {}, ["Ann>Bob>Cy", "Bob>Ann=Cy"]),
    ("v.csv", "choice 2,choice 1\nBob,Ann\n,Bob\n", {}, ["Ann>Bob", "Bob>Ann"]),
    ("v.tsv", POSITIONS.replace(",", "\t") + "Ann\tBob\t\n", {}, ["Ann>Bob"]),
    ("v.csv", POSITIONS.replace(",", ";") + "Ash, Ann;Birch, Bob;\n", {}, ["Ash, Ann>Birch, Bob"]),
    ("v.csv", "1st choice,2nd choice\nAnn,Bob\n", {}, ["Ann>Bob"]),
    ("v.csv", "candidate_rank1,candidate_rank2\nAnn,Bob\n", {}, ["Ann>Bob"]),
    ("v.csv", "First,Second\nAnn,Bob\n", {}, ["Ann>Bob"]),
    ("v.csv", POSITIONS + "Ann,,Cy\n", {"skipped": "stop", "items": ["Ann", "Cy"]}, ["Ann>Cy"]),
    ("v.csv", POSITIONS + "Ann,undervote,Cy\nAnn,(blank),exhausted\n", {}, ["Ann>Cy", "Ann>Cy"]),
    (
        "v.csv",
        POSITIONS + "Na,Ann,Null\nSkip,Na,Blank\nBlank,Null,Ann\nNull,Skip,Ann\n",
        {"unlisted": "free"},
        ["Na>Ann>Null", "Skip>Na>Blank", "Blank>Null>Ann", "Null>Skip>Ann"],
    ),
    ("v.csv", POSITIONS + "Ann,Blank,Blank\nBob,Ann,Blank\n", {}, ["Ann>Bob", "Bob>Ann"]),
    ("v.csv", POSITIONS + "Ann,Blank,Blank\nBlank,Ann,Bob\n", {}, "line 2: 'Blank' may be a name"),
    ("v.csv", POSITIONS + "Ann,Blank,Blank\nBlank,Ann,Bob\n", {"nothing": ["Blank"]}, ["Ann>Bob", "Ann>Bob"]),
    ("v.csv", POSITIONS + "Ann,NA,NA\nBob,NA,Ann\n", {}, ["Ann>Bob", "Bob>Ann"]),
    ("v.csv", POSITIONS + "Ann,nobody,\nBob,Ann,nobody\n", {"nothing": ["nobody"]}, ["Ann>Bob", "Bob>Ann"]),
    ("v.csv", POSITIONS + "ann,BOB,\nBob,Ann ,\n", {"fold_case": True}, ["ann>BOB", "BOB>ann"]),
    ("v.csv", POSITIONS + ",,\nAnn,Bob,\n", {"layout": "positions"}, ["Ann>Bob"]),
    ("v.csv", POSITIONS + ",,\nAnn,Bob,\n", {"blank": "keep"}, ["Ann=Bob", "Ann>Bob"]),
    ("v.csv", POSITIONS + "Ann|Bob,Cy,\nAnn,Bob,Cy\n", {}, r"line 2: 'Ann\|Bob' looks like an overvote"),
    ("v.csv", POSITIONS + "Ann|Bob,Cy,\n", {"separator": "|", "overvotes": "tie"}, ["Ann=Bob>Cy"]),
    ("v.csv", "n,choice 1,choice 2\n1000000000,Ann,Bob\n", {"count": "n"}, ["1000000000*Ann>Bob"]),
    ("v.csv", f"n,choice 1,choice 2\n{2**62},Ann,Bob\n{2**62},Bob,Ann\n", {"count": "n"}, "counts add up to"),
    ("v.csv", "n,choice 1,choice 2\n0,Ann,Bob\n", {"count": "n"}, "line 2: the count '0'"),
    ("v.csv", "rank 1,rank 3\nAnn,Bob\n", {}, "do not count up: 1, 3"),
    ("v.csv", "rank 1,rank 2\n7,9\n", {}, "only numbers or nothing"),
    ("v.csv", POSITIONS.encode() + "Åsa,Bö,\n".encode("latin-1"), {}, "line 2: byte 0xc5"),
    ("v.csv", POSITIONS.encode() + "Åsa,Bö,\n".encode("latin-1"), {"encoding": "latin-1"}, ["Åsa>Bö"]),
    # tables of ranks and scores
    ("v.csv", "tea,milk,beer\n1,2,3\n2,1,\n", {}, ["tea>milk>beer", "milk>tea>beer"]),
    ("v.csv", "tea,milk,beer\n1,2.5,2.5\n", {}, ["tea>beer=milk"]),
    ("v.csv", "tea,milk,beer\n1,2.5,3\n", {"layout": "ranks"}, "a rank is a whole number"),
    ("v.csv", "tea,milk,beer\n8.5,3,9\n", {"layout": "scores"}, ["beer>tea>milk"]),
    ("v.csv", "tea,milk,beer\n8.5,-3,\n", {"layout": "scores", "ascending": True}, ["milk>tea>beer"]),
    ("v.csv", "tea,milk,beer\n85,30,92\n", {}, "leave out ranks, as scores do.*layout='scores'"),
    ("v.csv", "tea,milk\nNone,1\n2,1\n", {}, ["milk>tea", "milk>tea"]),
    ("v.csv", "id,tea,milk\n7,1,2\n", {}, "'id' does not look like an item"),
    # cast vote records
    (
        "cvr.csv",
        "Cast Vote Record,Precinct,City Council Choice 1 of 2,City Council Choice 2 of 2\n1,P,Ann,Bob\n2,P,Bob,\n",
        {},
        ["Ann>Bob", "Bob>Ann"],
    ),
    (
        "cvr.csv",
        "id,Mayor Choice 1 of 2,Mayor Choice 2 of 2,Clerk Choice 1 of 1\n1,Ann,Bob,Cy\n",
        {},
        "several contests; choose one with contest=: 'Mayor', 'Clerk'",
    ),
    (
        "cvr.csv",
        "id,Mayor Choice 1 of 2,Mayor Choice 2 of 2,Clerk Choice 1 of 1\n1,Ann,overvote,Cy\n",
        {"contest": "mayor"},
        ["Ann"],
    ),
    (
        "cvr.json",
        json.dumps(DOMINION),
        {"contest": "contest 7", "unlisted": "free"},
        ["candidate 1>candidate 2", "candidate 3"],
    ),
    ("cvr.json", json.dumps(NIST), {}, ["Bob>Ann>write-in", "write-in>Ann=Bob"]),
    ("cvr.json", '{"Sessions": [{"Original": 3}]}', {}, "the structure is not that of a cast vote record"),
    ("cvr.json", "{", {}, "line 1: this is not JSON"),
    ("cvr.json", "[]", {}, "a cast vote record is a JSON object"),
    ("cvr.csv", DOMINION_CSV, {}, ["Ann Ash>Bob>Write-in", "Bob>Ann Ash=Write-in"]),
    (
        "cvr.csv",
        DOMINION_CSV,
        {"contest": "mayor", "overvotes": "tie", "blank": "keep", "unlisted": "free"},
        ["Ann Ash>Bob", "Bob", "Ann Ash=Bob>Write-in", ""],
    ),
    ("cvr.csv", DOMINION_CSV, {"contest": "clerk"}, "'clerk' is in the name of no contest; there are 'Mayor'"),
    ("cvr.csv", DOMINION_CSV.replace("North,0,1", "North,x,1"), {}, "line 6: 'Ann Ash' at rank 1 holds 'x'"),
    ("cvr.csv", DOMINION_CSV.replace(",Write-in(1)", ""), {}, "line 4: the lines of contests, choices and columns"),
    ("cvr.csv", DOMINION_CSV.replace("(2)", ""), {}, "no contest with ranked choices"),
    (
        "ward.csv",
        SCOTTISH,
        {"unlisted": "free"},
        ["12*Ann Ash>Bob Birch>Cy Cedar", "5*Dee Dogwood", "Bob Birch>Ann Ash"],
    ),
    ("ward.csv", SCOTTISH.replace("12,1,2,3", "12,1,2,9"), {}, "line 2: candidate 9 is unknown"),
    ("ward.csv", SCOTTISH.replace("4,3", '4",3', 1), {}, "line 2: the row has 5 cells"),
    ("ward.csv", "2,1\n3,1,2,\nCandidate 1 or so,Ann,\n", {}, "promises 2 candidates, but 0 are named"),
    # pairs
    ("p.csv", "winner,loser\ntea,milk\nmilk,beer\n", {}, ["tea>milk", "milk>beer"]),
    ("p.csv", "loser,winner,annotator\nmilk,tea,ann\nbeer,milk,ann\n", {}, ["tea>milk, milk>beer"]),
    (
        "p.csv",
        "judge,model_a,model_b,winner\na,x,y,model_b\na,y,z,tie\nb,x,z,tie (bothbad)\nb,z,y,z\n",
        {},
        ["y>x, z>x", "x>y, z>y"],
    ),
    ("p.csv", "chosen,rejected,weight\nx,y,3\n", {}, ["3*x>y"]),
    ("p.csv", "winner,loser,times\nx,y,3\n", {"format": "pairs", "count": "times"}, ["3*x>y"]),
    (
        "p.csv",
        "winner,loser,user\nx,y,ann\n",
        {"format": "pairs", "columns": {"user": "user"}, "labels": ["user"]},
        ["x>y"],
    ),
    ("p.csv", "user,better,worse\nann,x,y\nann,y,x\nbob,x,y\n", {}, ["", "x>y"]),
    ("p.csv", "winner,loser,mood\nx,y,good\n", {"format": "pairs"}, "column 'mood' is not known"),
    ("p.csv", "winner,loser,mood\nx,y,good\n", {"format": "pairs", "ignore": ["mood"]}, ["x>y"]),
    ("p.csv", "model_a,model_b,winner\nx,y,maybe\n", {}, "line 2: the winner 'maybe' is neither"),
    ("p.csv", "winner,loser\nx,x\n", {}, "line 2 compares 'x' with itself"),
    # what is none of them
    ("v.pdf", "%PDF", {}, "no kind of file that is known"),
    ("v.csv", "", {}, "the file is empty"),
    ("v.csv", "tea,milk\n1,2\n1\n", {}, "line 3: the row has 1 cells"),
    ("v.csv", "tea,milk\n1,2\n", {"contest": "Mayor"}, "no column states a place"),
    ("v.blt", "2 1", {"layout": "ranks"}, "read as BLT, which has no option layout"),
]


@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
@pytest.mark.parametrize(("name", "text", "options", "expected"), FILES, ids=[str(n) for n in range(len(FILES))])
def test_files(tmp_path, name, text, options, expected):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    if isinstance(expected, str):
        with pytest.raises(RankingError, match=expected):
            rk.read(path, **options)
    else:
        data = rk.read(path, **options)
        assert shown(data) == expected
        assert data.about.format in repr(data)


def test_enough_of_them():
    assert len(FILES) + len(FRAMES) >= 60


def test_dominion_with_its_manifests(tmp_path):
    for name, content in (("CvrExport", DOMINION), ("ContestManifest", CONTESTS), ("CandidateManifest", CANDIDATES)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    for place in (tmp_path, tmp_path / "CvrExport.json"):
        votes = rk.read_cvr(place)  # only the mayor was ranked
        assert (shown(votes), votes.about.title) == (["Ann>Bob>Cy", "Cy>Ann=Bob"], "Mayor")
    assert shown(rk.read_cvr(tmp_path, overvotes="tie"))[1] == "Cy>Ann=Bob"
    assert rk.read_cvr(tmp_path).repairs.overvoted == 1


@pytest.mark.parametrize("n_lines", [4, 3, 2])
def test_dominion_table(tmp_path, n_lines):
    lines = DOMINION_CSV.splitlines(keepends=True)
    if n_lines < 4:  # without the line of the election
        lines = lines[1:]
    path = tmp_path / "cvr.csv"
    path.write_text("".join(lines))
    if n_lines == 2:  # and the names of the columns among the choices
        path.write_text(lines[0] + lines[1].replace(",,,,", "CvrNumber,a,b,c,", 1) + "".join(lines[3:]))
        with pytest.raises(RankingError, match="one names contests and one their choices"):
            rk.read_cvr(path)
        return
    votes = rk.read(path, labels=["PrecinctPortion", "ImprintedId"])
    assert votes.about.title == "Mayor"
    assert votes.about.passed_over == ("CvrNumber", "TabulatorNum")
    assert votes.items == ("Ann Ash", "Bob", "Write-in")
    assert votes.labels["PrecinctPortion"].tolist() == ["North", "North"]
    assert votes.labels["ImprintedId"].tolist() == ["3-1-1", "3-1-2"]
    assert (votes.repairs.overvoted, votes.repairs.blank) == (1, 2)  # the contest is not on ballot 4


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "Mayor Choice 1 of 2", "Mayor Choice 2 of 2"], [1, "Ann", "Bob"], [2, "Bob", None]):
        book.active.append(row)
    book.save(tmp_path / "cvr.xlsx")
    votes = rk.read(tmp_path / "cvr.xlsx")
    assert shown(votes) == ["Ann>Bob", "Bob>Ann"]
    assert votes.about.passed_over == ("id",)
    book.active.append([3, "Ann|Bob", None])
    book.save(tmp_path / "cvr.xlsx")
    with pytest.raises(RankingError, match=r"line 4: 'Ann\|Bob' looks like an overvote"):
        rk.read(tmp_path / "cvr.xlsx")
    (tmp_path / "bad.xlsx").write_bytes(b"PK nothing")
    with pytest.raises(RankingError, match="not a workbook"):
        rk.read(tmp_path / "bad.xlsx")


# ---------------------------------------------------------------------- frames and arrays

PLACES = {"choice 2": ["b", None, "a"], "choice 1": ["a", "b", "c"]}
HALVES = pd.DataFrame({"a": [9, 4], "b": [7, 4], "c": [7, 9]})
ARENA = {"judge": ["j", "j"], "model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["model_a", "model_b"]}
ORDERS, RANKS, SCORES, PAIRS = (
    Rankings.from_orders,
    Rankings.from_ranks,
    Rankings.from_scores,
    Preferences.from_pairs,
)
FRAMES = [
    (ORDERS, pd.DataFrame(PLACES), {}, ["a>b>c", "b>a=c", "c>a>b"]),
    (ORDERS, pl.DataFrame(PLACES), {}, ["a>b>c", "b>a=c", "c>a>b"]),
    (ORDERS, pd.DataFrame(PLACES | {"n": [1, 2, 3]}), {"counts": "n"}, ["a>b>c", "2*b>a=c", "3*c>a>b"]),
    (ORDERS, pd.DataFrame(PLACES | {"n": [1, 2, 3]}), {}, "'n' does not"),
    (ORDERS, np.array([["a", "b"], ["b", ""]]), {}, ["a>b", "b>a"]),
    (ORDERS, np.array([[1.0, 2.0], [2.0, np.nan]]), {}, ["1>2", "2>1"]),
    (ORDERS, [((1,), (2, 3))], {}, ["1>2=3"]),
    (ORDERS, [["a", None], ["b", "a"]], {}, ["a>b", "b>a"]),
    (ORDERS, [[None, "a"]], {}, "missing value"),
    (RANKS, HALVES.rank(axis=1, ascending=False), {}, ["a>b=c", "c>a=b"]),
    (RANKS, np.array([[1.0, 2.5, 2.5]]), {}, ["0>1=2"]),
    (RANKS, np.array([[1.0, 2.5, 3.0]]), {}, "mean of the places"),
    (RANKS, pd.DataFrame({"a": [1, 2], "b": [None, 1]}), {}, ["a>b", "b>a"]),
    (RANKS, pl.DataFrame({"a": [1, 2], "b": [None, 1]}), {"unlisted": "free"}, ["a", "b>a"]),
    (RANKS, np.ma.masked_array([[1, 2]], mask=[[False, True]]), {"unlisted": "free"}, ["0"]),
    (SCORES, pd.DataFrame({"a": [0.3], "b": [None]}), {}, ["a>b"]),
    (Rankings, np.array([[0, np.nan]]), {}, "unlisted='last'.*unlisted='free'"),
    (Rankings, np.array([[0, -1, 1]]), {}, ["0>2"]),
    (PAIRS, pd.DataFrame(ARENA), {}, ["x>y, z>y"]),
    (PAIRS, pl.DataFrame(ARENA), {}, ["x>y, z>y"]),
    (PAIRS, pd.DataFrame({"judge": ["j"], "a": ["x"], "b": ["y"]}), {}, "a table of pairs has the columns"),
]


@pytest.mark.parametrize(("build", "data", "options", "expected"), FRAMES, ids=[str(n) for n in range(len(FRAMES))])
def test_frames(build, data, options, expected):
    if isinstance(expected, str):
        with pytest.raises(RankingError, match=expected):
            build(data, **options)
    else:
        assert shown(build(data, **options)) == expected


@pytest.mark.parametrize("take", [rk.Kendall().gram, rk.Mallows(0.1), rk.borda, rk.KernelMap(kernel=rk.Kendall()).fit])
def test_what_is_missing_in_an_array_has_one_meaning_everywhere(take):
    with pytest.raises(RankingError, match=r"is missing \(NaN\).*unlisted='last'.*unlisted='free'"):
        take(np.array([[0, 1, np.nan], [0, 1, 2], [2, 1, 0]]))


def test_names_that_differ_in_case_are_pointed_out(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(POSITIONS + "Ann,Bob,\nann,Bob,\n")
    with pytest.warns(rk.ReadingWarning, match="'Ann' and 'ann' differ only in case or blanks"):
        rk.read_csv(path)
    assert rk.read_csv(path, fold_case=True).repairs.merged == (("ann", "Ann"),)


def test_a_name_that_could_be_nothing_is_a_name_in_all_its_spellings(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(POSITIONS + "Na,Ann,\nAnn,na,\n")
    folded = rk.read_csv(path, fold_case=True, unlisted="free")
    assert (folded.items, folded.ranks.tolist()) == (("Na", "Ann"), [[0, 1], [1, 0]])
    assert rk.read_csv(path, unlisted="free").repairs.words == (("na", 1),)  # shown, at least


def test_words_that_were_read_as_nothing_are_shown(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(POSITIONS + "Ann,undervote,undervote\nBob,Ann,(blank)\n")
    assert rk.read_csv(path).repairs.words == (("undervote", 2), ("(blank)", 1))


# ---------------------------------------------------------------------- small files that grow


def test_packed_files_are_refused_before_they_grow(tmp_path):
    path = tmp_path / "v.csv.gz"
    path.write_bytes(gzip.compress(b"tea,milk\n" + b"1,2\n" * 500_000))
    with pytest.raises(RankingError, match=r"its [\d,]+ bytes unpack to more than 1,000,000; .* with max_bytes="):
        rk.read(path, max_bytes=1_000_000)
    with pytest.raises(RankingError, match=r"1,000,002 cells make a table of 4,000,008 bytes"):
        rk.read(path, max_bytes=3_000_000)


@pytest.mark.parametrize("name", ["v.csv.gz", "v.xlsx", "v.zip"])
def test_packed_files_may_grow_to_a_hundred_times_their_size(tmp_path, monkeypatch, name):
    if name == "v.xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install 'rankernel[excel]'")
    path, text = tmp_path / name, b"tea,milk\n" + b"1,2\n" * 50_000
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.json", text)
    monkeypatch.setattr(files, "ALWAYS_UNPACKED", 1000)
    packed = path.stat().st_size
    assert len(text) > 100 * packed
    with pytest.raises(RankingError, match=f"its {packed:,} bytes unpack to more than {100 * packed:,}; "):
        rk.read(path)
    if name.endswith(".gz"):
        assert rk.read(path, max_bytes=2**20).n_voters == 50_000
        monkeypatch.setattr(files, "ALWAYS_UNPACKED", len(text))
        assert rk.read(path).n_voters == 50_000


def test_pairs_of_many_users_and_items(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("judge,winner,loser\n" + "".join(f"u{n},i{2 * n},i{2 * n + 1}\n" for n in range(1500)))
    tracemalloc.start()
    try:
        with pytest.raises(RankingError, match=r"all pairs of 3,000 items by 1,500 users make a table"):
            rk.read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_many_alternatives_take_one_table_of_ranks(tmp_path):
    wide = tmp_path / "votes.soi"
    wide.write_text(preflib("soi", [f"1: {n}" for n in range(1, 1001)], [f"i{n}" for n in range(1000)]))
    with pytest.raises(RankingError, match=r"1,000 rankings of 1,000 items make a table of 4,000,000 bytes"):
        rk.read(wide, max_bytes=1_000_000)
    rk.read(wide)  # what is loaded once
    tracemalloc.start()
    try:
        assert len(rk.read(wide)) == 1000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * 4_000_000  # the table, and less than it beside


@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
@pytest.mark.parametrize("named", [False, True])
def test_many_columns(tmp_path, named):
    names = [f"item {number}" for number in range(20_000)]
    path = tmp_path / "v.csv"
    path.write_text(",".join(names) + "\n" + ",".join(str(n + 1) for n in range(20_000)) + "\n")
    votes = rk.read(path, items=names[::-1]) if named else rk.read(path)
    assert votes.items == tuple(names[::-1] if named else names)
    assert votes.ranks[0, -1 if named else 0] == 0


def test_large_counts_are_no_rows(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("n,rank 1,rank 2\n" + "".join(f"{10**9},{a},{b}\n" for a, b in ("xy", "yx", "xz", "zx", "yz")))
    tracemalloc.start()
    try:
        votes = rk.read(path, count="n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(votes), votes.n_voters) == (5, 5 * 10**9)
    assert peak < 10**6


def test_a_judge_that_is_a_label_is_no_judge_unless_stated(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("judge,winner,loser\n1,a,b\n1,b,c\n2,c,a\n", encoding="utf-8")
    alone = rk.read_pairs(path, labels=["judge"])
    assert (len(alone), alone.labels["judge"].tolist()) == (3, ["1", "1", "2"])
    stated = rk.read_pairs(path, labels=["judge"], columns={"user": "judge"})
    assert (len(stated), stated.labels["judge"].tolist()) == (2, ["1", "2"])
