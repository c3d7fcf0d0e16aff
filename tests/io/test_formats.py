"""Files and frames of every format: each with the rankings that it gives, or with a part of the error message."""

import copy
import gzip
import json
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from example_files import BLT, CANDIDATES, CONTESTS, DOMINION, DOMINION_CSV, NIST, SCOTTISH, nist_mark, preflib

import rankernel as rk
from rankernel import Preferences, RankingError, Rankings


def shown(data):
    """Rows as text, with counts other than 1: '2*a>b=c'; pairs as 'a>b, c>d'."""
    if isinstance(data, Preferences):
        rows = [", ".join(f"{x}>{y}" for x, y in pairs) for pairs in data.to_pairs()]
    else:
        orders = data.to_orders()
        rows = [">".join(b if isinstance(b, str) else "=".join(sorted(b)) for b in order) for order in orders]
    return [row if count == 1 else f"{count}*{row}" for row, count in zip(rows, data.counts.tolist(), strict=True)]


POSITIONS = "choice 1,choice 2,choice 3\n"

# Name, content, options, and rankings; a string is a part of the error message.
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
    ("votes.soi", preflib("soi", ["0: 1", "1: 3,2"]), {}, ["beer>milk>tea"]),
    ("votes.soi", preflib("soi", ["2: 0", "1: 2,1"], first=0), {}, ["2*tea>beer=milk", "beer>milk>tea"]),
    ("votes.soi", preflib("soi", ["2: 1,1"]), {}, "line 10: alternative 1"),
    ("votes.soi", preflib("soi", [f"{2**62}: 1", f"{2**62}: 2"]), {}, "18 digits|voters"),
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
    ("ward.blt", "2 1\n3 1 2 0\n0\nAnn Ash (Ind)\nBob Bow (Lab)\nWard 4\n", {}, ["3*Ann Ash (Ind)>Bob Bow (Lab)"]),
    ("ward.blt", '2 1\n3 1 2 0\n0\n"Ann" "Ind"\n"Bob" "Lab"\n"Ward 4"', {}, ["3*Ann>Bob"]),
    ("ward.blt", '3 1\n3 1 2 0\n0\n"Ann" "Ind"\n"Bob"\n"Cy"\n"Ward 4"', {}, ["3*Ann>Bob>Cy"]),
    ("ward.blt", '2 1\n3 1 2 0\n0\n"Ann","Ind"\n"Bob","Lab"\n"Ward 4, Leith"', {}, ["3*Ann>Bob"]),
    ("ward.blt", '2 1\n3 1 2 0\n0\n"Ann" "Bob"\n"Ward 4"', {}, ["3*Ann>Bob"]),
    ("ward.blt", '2 1 # two\n3 1 2 0 # x\n0\n"Ann #1" # first\nBob // second\n"Ward # 4"', {}, ["3*Ann #1>Bob"]),
    ("ward.blt", "2 1\n3 1 2 0\n0\nAnn Ash Bob Bow\n", {}, "line 4: 'Ann Ash Bob Bow'"),
    ("ward.blt", '3 1\n1 2\n 3 1 0\n0\n"A" "B" "C"', {}, ["B>C>A"]),
    ("ward.blt", '2 1\n1 - 2 0\n0\n"Ann \\"A\\" Ash"\n"Bob"\n"x"', {}, ['Bob>Ann "A" Ash']),
    ("ward.blt", '2 1\n1 - 2 0\n0\n"Ann \\\\"\n"Bob"\n"x"', {}, ["Bob>Ann \\"]),
    ("ward.blt", '1 1\n3 1 0\n0\n"Ann"\n"x"', {}, ["3*Ann"]),
    ("ward.blt", '2 1\n(id 4) 1 2 1 0\n0\n"Ann"\n"Bob"\n"x"', {}, ["Bob>Ann"]),
    ("election.dat", '2 1\n3 1 2 0\n0\n"Ann"\n"Bob"\n"x"', {}, ["3*Ann>Bob"]),
    ("ward.blt", '2 1\n3 1 5 0\n0\n"Ann"\n"Bob"\n"x"', {}, "line 2: candidate 5"),
    ("ward.blt", '2 1\n3 1=1 0\n0\n"Ann"\n"Bob"\n"x"', {}, "line 2: candidate 1"),
    ("ward.blt", '2 1\n3 1 1 0\n0\n"Ann"\n"Bob"\n"x"', {}, "line 2: candidate 1"),
    ("ward.blt", "2 1\n3 1 2 0\n", {}, "line 2: the file ends"),
    ("ward.blt", "", {}, "line 1: the file ends"),
    ("ward.blt", f'2 1\n{2**53} 1 0\n0\n"Ann"\n"Bob"', {}, [f"{2**53}*Ann>Bob"]),
    ("ward.blt", f'2 1\n{2**53 + 1} 1 0\n0\n"Ann"\n"Bob"', {}, "line 2: 9007199254740993"),
    ("ward.blt", '2 1\n3 1 2 0\n0\n"Ann"\n"Bob', {}, "line 5: .*quotation"),
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
        ["Na>Ann>Null", "Na", "Null>Ann", "Null>Ann"],
    ),
    ("v.csv", POSITIONS + "Ann,Blank,Blank\nBob,Ann,Blank\n", {}, ["Ann>Bob", "Bob>Ann"]),
    ("v.csv", POSITIONS + "Ann,Blank,Blank\nBlank,Ann,Bob\n", {}, ["Ann>Bob", "Ann>Bob"]),
    ("v.csv", POSITIONS + "Ann,Blank,Blank\nBlank,Ann,Bob\n", {"na_values": ["Blank"]}, ["Ann>Bob", "Ann>Bob"]),
    ("v.csv", POSITIONS + "Ann,NA,NA\nBob,NA,Ann\n", {}, ["Ann>Bob", "Bob>Ann"]),
    ("v.csv", POSITIONS + "Ann,nobody,\nBob,Ann,nobody\n", {"na_values": ["nobody"]}, ["Ann>Bob", "Bob>Ann"]),
    ("v.csv", POSITIONS + "ann,BOB,\nBob,Ann ,\n", {"fold_case": True}, ["ann>BOB", "BOB>ann"]),
    ("v.csv", POSITIONS + ",,\nAnn,Bob,\n", {"layout": "positions"}, ["Ann>Bob"]),
    ("v.csv", POSITIONS + ",,\nAnn,Bob,\n", {"blank": "keep"}, ["Ann=Bob", "Ann>Bob"]),
    ("v.csv", POSITIONS + "Ann|Bob,Cy,\nAnn,Bob,Cy\n", {}, r"line 2: 'Ann\|Bob'.*separator="),
    ("v.csv", POSITIONS + "Ann|Bob,Cy,\n", {"separator": "|", "overvotes": "tie"}, ["Ann=Bob>Cy"]),
    ("v.csv", "n,choice 1,choice 2\n1000000000,Ann,Bob\n", {"count": "n"}, ["1000000000*Ann>Bob"]),
    ("v.csv", f"n,choice 1,choice 2\n{2**62},Ann,Bob\n{2**62},Bob,Ann\n", {"count": "n"}, "counts"),
    ("v.csv", "n,choice 1,choice 2\n0,Ann,Bob\n", {"count": "n"}, "line 2: the count '0'"),
    ("v.csv", "rank 1,rank 3\nAnn,Bob\n", {}, "consecutive: 1, 3"),
    ("v.csv", "rank 1,rank 2\n7,9\n", {}, "only numbers or nothing"),
    ("v.csv", POSITIONS.encode() + "Åsa,Bö,\n".encode("latin-1"), {}, "line 2: byte 0xc5"),
    ("v.csv", POSITIONS.encode() + "Åsa,Bö,\n".encode("latin-1"), {"encoding": "latin-1"}, ["Åsa>Bö"]),
    # tables of ranks and scores
    ("v.csv", "tea,milk,beer\n1,2,3\n2,1,\n", {}, ["tea>milk>beer", "milk>tea>beer"]),
    ("v.csv", "tea,milk,beer\n0,1,free\nfree,0,1\n", {"layout": "ranks"}, ["tea>milk", "milk>beer"]),
    ("v.csv", "tea,milk,beer\n1,2.5,2.5\n", {}, ["tea>beer=milk"]),
    ("v.csv", "tea,milk,beer\n1,2.5,3\n", {"layout": "ranks"}, "line 2: item 'milk'"),
    ("v.csv", "tea,milk,beer\n8.5,3,9\n", {"layout": "scores"}, ["beer>tea>milk"]),
    ("v.csv", "tea,milk,beer\n8.5,-3,\n", {"layout": "scores", "ascending": True}, ["milk>tea>beer"]),
    ("v.csv", "tea,milk,beer\n85,30,92\n", {}, "line 2: .*layout='scores'"),
    ("v.csv", "tea,milk\nNone,1\n2,1\n", {}, ["milk>tea", "milk>tea"]),
    ("v.csv", "voter,tea,milk,beer\na,1,0,1\nb,0,1,1\n", {}, "zeros and ones.*layout='ranks'.*layout='scores'"),
    ("v.csv", "voter,tea,milk\na,1,0\nb,0,1\n", {}, "zeros and ones"),
    ("v.csv", "voter,tea,milk,beer\na,1,0,1\nb,0,1,1\n", {"layout": "scores"}, ["beer=tea>milk", "beer=milk>tea"]),
    ("v.csv", "tea,milk,beer\n1,2,0\n2,1,3\n", {}, r"leave out ranks.*na_values=\['0'\]"),
    ("v.csv", "tea,milk,beer\n1,2,0\n2,1,3\n", {"na_values": ["0"]}, ["tea>milk>beer", "milk>tea>beer"]),
    ("v.csv", "tea,milk\n8,99\n3,7\n", {"layout": "scores", "na_values": ["99"]}, ["tea>milk", "milk>tea"]),
    ("v.csv", "A1,A2,tea,milk\n0.1,-0.2,1,2\n0.3,0.4,2,1\n", {}, r"'A2' holds '-0.2'.*ignore=\['A1', 'A2'\]"),
    ("v.csv", "id,tea,milk\n7,1,2\n", {}, ["tea>milk"]),
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
        "contest=...: 'Mayor', 'Clerk'",
    ),
    (
        "cvr.csv",
        "id,Mayor Choice 1 of 2,Mayor Choice 2 of 2,Clerk Choice 1 of 1\n1,Ann,overvote,Cy\n",
        {"contest": "mayor"},
        ["Ann"],
    ),
    (
        "cvr.csv",
        'Cast Vote Record,DEM Governor 1st Choice (5715),DEM Governor 2nd Choice (5718)\n1,"Ash, Ann (3)",Bob (4)\n',
        {},
        ["Ash, Ann (3)>Bob (4)"],
    ),
    (
        "cvr.csv",
        "Precinct,Mayor Choice 1 of 2 Citywide (026916),Mayor Choice 2 of 2 Citywide (226916)\nP,17,Write-in\n",
        {},
        ["17>Write-in"],
    ),
    (
        "cvr.csv",
        (
            "RowNumber,Choice_3_1:Ward 1:1:Number of Winners 3:Ann:NON,Choice_3_1:Ward 1:2:Number of Winners 3:Ann:NON,"
            "Choice_4_1:Ward 1:1:Number of Winners 3:Uncertified Write In:NON\n1,0,1,1\n"
        ),
        {"write_ins": "merge"},
        ["write-in>Ann"],
    ),
    (
        "cvr.json",
        json.dumps(DOMINION),
        {"contest": "contest 7", "unlisted": "free"},
        ["candidate 1>candidate 2>candidate 3", "candidate 3"],
    ),
    ("cvr.json", json.dumps(NIST), {}, ["Bob>Ann>write-in", "write-in>Ann=Bob"]),
    ("cvr.json", '{"Sessions": [{"Original": 3}]}', {}, "structure"),
    ("cvr.json", "{", {}, "line 1: "),
    ("cvr.json", "[]", {}, "list of objects"),
    ("cvr.csv", DOMINION_CSV, {}, ["Ann Ash>Bob>Write-in", "Bob>Ann Ash=Write-in"]),
    (
        "cvr.csv",
        DOMINION_CSV,
        {"contest": "mayor", "overvotes": "tie", "blank": "keep", "unlisted": "free"},
        ["Ann Ash>Bob", "Bob", "Ann Ash=Bob>Write-in", ""],
    ),
    ("cvr.csv", DOMINION_CSV, {"contest": "clerk"}, "contest='clerk'.*'Mayor'"),
    ("cvr.csv", DOMINION_CSV.replace("North,0,1", "North,x,1"), {}, "line 6: 'Ann Ash' at rank 1"),
    ("cvr.csv", DOMINION_CSV.replace(",Write-in(1)", ""), {}, "line 4: "),
    ("cvr.csv", DOMINION_CSV.replace("(2)", ""), {}, "ranked choices"),
    (
        "ward.csv",
        SCOTTISH,
        {"unlisted": "free"},
        ["12*Ann Ash>Bob Birch>Cy Cedar", "5*Dee Dogwood", "Bob Birch>Ann Ash"],
    ),
    ("ward.csv", SCOTTISH.replace("12,1,2,3", "12,1,2,9"), {}, "line 2: candidate 9"),
    ("ward.csv", SCOTTISH.replace("4,3", '4",3', 1), {}, "line 2: "),
    ("ward.csv", '2,1\n3,1,2,\nCandidate 1,Ann,\nCandidate 2,Bob,\n""""Ward 4"""",', {}, ["3*Ann>Bob"]),
    (
        "ward.csv",
        '2,1\n3,1,2,\n"Candidate 1",""Ann"",\n"Candidate 2","Bob ""B""",\n""Ward, 4"",',
        {},
        ['3*Ann>Bob "B"'],
    ),
    ("ward.csv", "2,1\n3,1,2,\nCandidate 1 or so,Ann,\n", {}, "2 candidates"),
    # orders in lines of text, and lists of JSON
    ("v.txt", "12 x tea > milk\n3 × milk > tea\n", {}, ["12*tea>milk", "3*milk>tea"]),
    (
        "v.json",
        json.dumps({"candidates": ["tea", "milk"], "ballots": [{"count": 3, "ranking": ["tea", "milk"]}]}),
        {},
        ["3*tea>milk"],
    ),
    # orders of the SUSHI data
    ("s.order", "4 1\n0 2 3 0\n0 4 0 1 2 3\n", {"items": list("abcd")}, ["d>a", "a>b>c>d"]),
    ("s.order", "4 1\n0 2 3 0\n", {"unlisted": "last"}, ["3>0>1=2"]),
    ("s.order", "", {}, "s.order.*(empty|no row)"),
    ("s.order", "4 1\n0 3 1 2\n", {}, "line 2: expected 0, the length of the order"),
    ("s.order", "4 1\n\n0 2 1 1\n", {}, "line 3: .*different items from 0 to 3; got '0 2 1 1'"),
    ("s.order", "4 1\n0 1 4\n", {}, "line 2: .*different items from 0 to 3"),
    ("s.order", "4 1\n0 1 3\n0 1 x\n", {}, "line 3: .*; got '0 1 x'"),
    ("s.order", f"{'9' * 6000} 1\n0 2 1 2\n", {"items": list("abcd")}, "line 1: the file states 999999999 items"),
    # pairs
    ("p.csv", "winner,loser\ntea,milk\nmilk,beer\n", {}, ["tea>milk", "milk>beer"]),
    ("p.csv", "loser,winner,annotator\nmilk,tea,ann\nbeer,milk,ann\n", {}, ["tea>milk, milk>beer"]),
    (
        "p.csv",
        "judge,model_a,model_b,winner\na,x,y,model_b\na,y,z,tie\nb,x,z,tie (bothbad)\nb,z,y,z\n",
        {},
        ["y>x", "z>y"],
    ),
    ("p.csv", "chosen,rejected,weight\nx,y,3\n", {}, ["3*x>y"]),
    ("p.csv", "winner,loser,times\nx,y,3\n", {"format": "pairs", "count": "times"}, ["3*x>y"]),
    (
        "p.csv",
        "winner,loser,user\nx,y,ann\n",
        {"format": "pairs", "columns": {"user": "user"}, "label_columns": ["user"]},
        ["x>y"],
    ),
    ("p.csv", "user,better,worse\nann,x,y\nann,y,x\nbob,x,y\n", {}, ["", "x>y"]),
    ("p.csv", "winner,loser,mood\nx,y,good\n", {}, ["x>y"]),
    ("p.csv", "winner,loser,mood\nx,y,good\n", {"format": "pairs", "ignore": ["mood"]}, ["x>y"]),
    ("p.csv", "model_a,model_b,winner\nx,y,maybe\n", {}, "line 2: the winner 'maybe'"),
    ("p.csv", "winner,loser\nx,x\n", {}, "line 2 "),
    # what is none of them
    ("v.pdf", "%PDF", {}, "no rows.*the suffix is none of .soc"),
    ("v.dat", "choice 1,choice 2\nAnn,Bob\n", {}, ["Ann>Bob"]),
    ("votes", '{"Ann": [1, 2], "Bob": [2, 1]}', {}, ["Ann>Bob", "Bob>Ann"]),
    ("v.csv", "", {}, "empty"),
    ("v.csv", "tea,milk\n1,2\n1\n", {}, "line 3: "),
    ("v.csv", "tea,milk\n1,2\n", {"contest": "Mayor"}, "position"),
    ("v.blt", "2 1", {"layout": "ranks"}, "BLT.*option layout"),
]


@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
@pytest.mark.parametrize(("name", "text", "options", "expected"), FILES, ids=[str(n) for n in range(len(FILES))])
def test_files(tmp_path, name, text, options, expected):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            rk.read(path, **options)
    else:
        data = rk.read(path, **options)
        assert shown(data) == expected
        assert data.source.format in repr(data)


def test_number_of_examples():
    assert len(FILES) + len(FRAMES) >= 60


def test_dominion_manifests(tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    for name, content in (("CvrExport", DOMINION), ("ContestManifest", CONTESTS), ("CandidateManifest", CANDIDATES)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    (tmp_path / "config.json").write_text('{"contest": "Mayor"}')
    for place in (tmp_path, folder, folder / "CvrExport.json"):
        votes = rk.read_cvr(place)  # only the mayor was ranked
        assert (shown(votes), votes.source.title) == (["Ann>Bob>Cy", "Cy>Ann=Bob"], "Mayor")
    assert shown(rk.read_cvr(tmp_path, overvotes="tie"))[1] == "Cy>Ann=Bob"
    assert rk.read_cvr(tmp_path).source.repairs.overvoted == 1


def test_dominion_archive_of_several_files(tmp_path):
    """Contests are found by the whole name of the manifest, and a contest with ranks needs no mark at rank 2."""
    mark = {"CandidateId": 1, "Rank": 1, "IsVote": True}
    voided = {"Id": 7, "Marks": [{"CandidateId": 2, "Rank": 1}], "OutstackConditionIds": [7]}
    sessions = [{"Original": {"PrecinctPortionId": 5, "Contests": [{"Id": 7, "Marks": [mark]}]}}]
    ambiguous = [
        {"Original": {"Contests": [{"Id": 7, "Marks": [mark, mark | {"CandidateId": 2, "IsAmbiguous": True}]}]}}
    ]
    contests = {"List": [{"Id": 7, "Description": "Mayor", "NumOfRanks": 3}, {"Id": 8, "Description": "Clerk"}]}
    files = {
        "CvrExport_1.json": {"Sessions": sessions},
        "CvrExport_2.json": {"Sessions": [*ambiguous, {"Original": {"Contests": [voided]}}]},
        "ContestManifest.json": contests,
        "BallotTypeContestManifest.json": {"List": [{"BallotTypeId": 1, "ContestId": 7}]},
        "CandidateManifest.json": CANDIDATES,
        "PrecinctPortionManifest.json": {"List": [{"Id": 5, "Description": "North"}]},
    }
    with zipfile.ZipFile(tmp_path / "cvr.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(f"export/{name}", json.dumps(content))
    votes = rk.read(tmp_path / "cvr.zip", unlisted="free")
    assert (shown(votes), votes.source.title) == (["Ann", "Ann"], "Mayor")
    assert votes.labels["Precinct"].tolist() == ["North", ""]


def test_dominion_sessions_without_a_ballot(tmp_path):
    session = {"RecordId": 9, "Original": None}
    content = DOMINION | {"Sessions": [session, *DOMINION["Sessions"], {"RecordId": 10}]}
    (tmp_path / "cvr.json").write_text(json.dumps(content))
    assert shown(rk.read(tmp_path / "cvr.json", contest="contest 7")) == [
        "candidate 1>candidate 2>candidate 3",
        "candidate 3>candidate 1=candidate 2",
    ]


def test_nist_marks_without_a_selection(tmp_path):
    """A mark that names no selection is that of a name written in, if it can be counted."""
    content = copy.deepcopy(NIST)
    for ballot, allocable in zip(content["CVR"], ({"IsAllocable": "yes"}, {"IsAllocable": "unknown"}), strict=True):
        marks = ballot["CVRSnapshot"][-1]["CVRContest"][0]["CVRContestSelection"]
        marks[:] = [nist_mark("s1", 1), nist_mark(None, 2, **allocable)]
    (tmp_path / "cvr.json").write_text(json.dumps(content))
    assert shown(rk.read(tmp_path / "cvr.json", unlisted="free")) == ["Ann>write-in", "Ann"]


def test_refused_marks_are_named_with_the_number_of_the_ballot(tmp_path):
    content = copy.deepcopy(NIST)
    contest = content["CVR"][1]["CVRSnapshot"][0]["CVRContest"][0]
    contest["CVRContestSelection"] = [nist_mark("s1", 1), nist_mark("s1", 2)]
    (tmp_path / "nist.json").write_text(json.dumps(content))
    with pytest.raises(RankingError, match=" 2: 'Ann' is repeated; choose another repeated"):
        rk.read(tmp_path / "nist.json", repeated="error")
    (tmp_path / "dominion.json").write_text(json.dumps(DOMINION))
    with pytest.raises(RankingError, match=" 2: 'candidate 1 and candidate 2' is an overvote"):
        rk.read(tmp_path / "dominion.json", contest="contest 7", overvotes="error")


def test_hart_ballots(tmp_path):
    """One document for each ballot: the digits of an option are its marks at each rank."""
    ballots = {"North": {"Ann": "010", "Bob": "100", "": "001"}, "South": {"Ann": "100", "Bob": "000", "": "000"}}
    with zipfile.ZipFile(tmp_path / "cvr.zip", "w") as archive:
        for precinct, marks in ballots.items():
            names = [(f"<Name>{name}</Name>" if name else "", value) for name, value in marks.items()]
            options = "".join(f"<Option>{name}<Value>{value}</Value></Option>" for name, value in names)
            contest = f"<Contest><Name>Mayor</Name><Options>{options}</Options></Contest>"
            split = f"<PrecinctSplit><Name>{precinct}</Name></PrecinctSplit>"
            archive.writestr(f"{precinct}.xml", f"<Cvr><Contests>{contest}</Contests>{split}</Cvr>")
    votes = rk.read(tmp_path / "cvr.zip", unlisted="free")
    assert (shown(votes), votes.source.title) == (["Bob>Ann>write-in", "Ann"], "Mayor")
    assert votes.labels["Precinct"].tolist() == ["North", "South"]


UNISYN = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<CastVoteRecordReport xmlns="NIST_V0_cast_vote_records.xsd">{ballots}<Election ObjectId="Election_1">
<Candidate ObjectId="Candidate_35"><Name>Ann</Name></Candidate>
<Candidate ObjectId="Candidate_28"><Name>Bob</Name></Candidate>
<Candidate ObjectId="Candidate_14"><Name>Cy</Name></Candidate>
<Contest ObjectId="Contest_117"><ContestSelection ObjectId="Contest_117_R1"/></Contest>
<Contest ObjectId="Contest_115"><ContestSelection ObjectId="Contest_115_R1"/></Contest></Election>
<GpUnit ObjectId="P_1"><Name>North</Name></GpUnit></CastVoteRecordReport>"""


def unisyn_ballot(number, contests):
    """One ballot with a snapshot per contest; the positions of the marks by rank, 0 where there is none."""
    text = f"<CurrentSnapshotId>S_{number}_117</CurrentSnapshotId><BallotStyleUnitId>P_1</BallotStyleUnitId>"
    for contest, positions in contests.items():
        marks = ""
        for rank, position in enumerate(positions, start=1):
            mark = f"yes</HasIndication><Position>{position}</Position>" if position else "unknown</HasIndication>"
            marks += f"<CVRContestSelection><ContestSelectionId>Contest_{contest}_R{rank}</ContestSelectionId>"
            marks += f"<Rank>{rank}</Rank><SelectionPosition><HasIndication>{mark}</SelectionPosition>"
            marks += "</CVRContestSelection>"
        text += f'<CVRSnapshot ObjectId="S_{number}_{contest}"><CVRContest><ContestId>Contest_{contest}</ContestId>'
        text += f"{marks}</CVRContest><Type>original</Type></CVRSnapshot>"
    return f"<CVR>{text}</CVR>"


def test_unisyn_names_candidates_by_position(tmp_path):
    path = tmp_path / "cvr.xml"
    ballots = [{117: [35, 28], 115: [28, 14, 0]}, {117: [28, 0], 115: [14, 28, 35]}]
    path.write_text(UNISYN.format(ballots="".join(unisyn_ballot(n, each) for n, each in enumerate(ballots))))
    votes = rk.read(path, contest="117")
    assert (shown(votes), votes.labels["Precinct"].tolist()) == (["Ann>Bob", "Bob>Ann"], ["North", "North"])
    assert shown(rk.read(path, contest="115", unlisted="free")) == ["Bob>Cy", "Cy>Bob>Ann"]


@pytest.mark.parametrize("n_lines", [4, 3, 2])
def test_dominion_table(tmp_path, n_lines):
    lines = DOMINION_CSV.splitlines(keepends=True)
    if n_lines < 4:  # without the line of the election
        lines = lines[1:]
    path = tmp_path / "cvr.csv"
    path.write_text("".join(lines))
    if n_lines == 2:  # and the names of the columns among the choices
        path.write_text(lines[0] + lines[1].replace(",,,,", "CvrNumber,a,b,c,", 1) + "".join(lines[3:]))
        with pytest.raises(RankingError, match="line 1: "):
            rk.read_cvr(path)
        return
    votes = rk.read(path, label_columns=["PrecinctPortion", "ImprintedId"])
    assert votes.source.title == "Mayor"
    assert votes.source.ignored == ("CvrNumber", "TabulatorNum")
    assert votes.items == ("Ann Ash", "Bob", "Write-in")
    assert votes.labels["PrecinctPortion"].tolist() == ["North", "North"]
    assert votes.labels["ImprintedId"].tolist() == ["3-1-1", "3-1-2"]
    assert (votes.source.repairs.overvoted, votes.source.repairs.blank) == (1, 2)  # the contest is not on ballot 4


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "Mayor Choice 1 of 2", "Mayor Choice 2 of 2"], [1, "Ann", "Bob"], [2, "Bob", None]):
        book.active.append(row)
    book.save(tmp_path / "cvr.xlsx")
    votes = rk.read(tmp_path / "cvr.xlsx")
    assert shown(votes) == ["Ann>Bob", "Bob>Ann"]
    assert votes.source.ignored == ("id",)
    book.active.append([3, "Ann|Bob", None])
    book.save(tmp_path / "cvr.xlsx")
    with pytest.raises(RankingError, match=r"line 4: 'Ann\|Bob'"):
        rk.read(tmp_path / "cvr.xlsx")
    (tmp_path / "bad.xlsx").write_bytes(b"PK nothing")
    with pytest.raises(RankingError, match="workbook"):
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
    (RANKS, np.array([[1.0, 2.5, 3.0]]), {}, "average rank"),
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
def test_missing_entries_of_arrays(take):
    with pytest.raises(RankingError, match=r"is missing \(NaN\).*unlisted='last'.*unlisted='free'"):
        take(np.array([[0, 1, np.nan], [0, 1, 2], [2, 1, 0]]))


def test_similar_names(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(POSITIONS + "Ann,Bob,\nann,Bob,\n")
    with pytest.warns(rk.ReadingWarning, match="'Ann' and 'ann'.*fold_case=True"):
        rk.read_csv(path)
    assert rk.read_csv(path, fold_case=True).source.repairs.merged == (("ann", "Ann"),)


def test_name_in_two_cases(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(POSITIONS + "Na,Ann,\nAnn,na,\n")
    folded = rk.read_csv(path, fold_case=True, unlisted="free")
    assert (folded.items, folded.ranks.tolist()) == (("Na", "Ann"), [[0, 1], [1, 0]])


def test_missing_value_markers_are_counted(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(POSITIONS + "Ann,undervote,undervote\nBob,Ann,(blank)\n")
    assert rk.read_csv(path).source.repairs.na_values == (("undervote", 2), ("(blank)", 1))


# ---------------------------------------------------------------------- limits


def test_stated_limit_of_expansion(tmp_path):
    path = tmp_path / "v.csv.gz"
    path.write_bytes(gzip.compress(b"tea,milk\n" + b"1,2\n" * 500_000))
    with pytest.raises(RankingError, match=r"1,000,000.*max_bytes"):
        rk.read(path, max_bytes=1_000_000)
    with pytest.raises(RankingError, match=r"1,000,002 cells.*max_bytes=4000008"):
        rk.read(path, max_bytes=3_000_000)


@pytest.mark.parametrize("name", ["v.csv.gz", "v.xlsx", "v.zip"])
def test_default_limit_of_expansion(tmp_path, name):
    """A file may expand to 100 times its size, or to 64 MiB."""
    if name == "v.xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install 'rankernel[excel]'")
    path, text = tmp_path / name, b"tea,milk\n" + b"1,2\n" * 17_000_000
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text, 1))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("a.json", text)
    assert len(text) > max(100 * path.stat().st_size, 2**26)
    with pytest.raises(RankingError, match="max_bytes"):
        rk.read(path)


def test_expansion_within_the_limit(tmp_path):
    path, text = tmp_path / "v.csv.gz", b"tea,milk\n" + b"1,2\n" * 50_000
    path.write_bytes(gzip.compress(text))
    assert len(text) > 100 * path.stat().st_size
    assert rk.read(path).n_voters == 50_000
    assert rk.read(path, max_bytes=2**20).n_voters == 50_000


def test_limit_of_comparisons(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("judge,winner,loser\n" + "".join(f"u{n},i{2 * n},i{2 * n + 1}\n" for n in range(1500)))
    tracemalloc.start()
    try:
        with pytest.raises(RankingError, match=r"3,000 items by 1,500 users.*max_bytes="):
            rk.read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_memory_of_many_alternatives(tmp_path):
    wide = tmp_path / "votes.soi"
    wide.write_text(preflib("soi", [f"1: {n}" for n in range(1, 1001)], [f"i{n}" for n in range(1000)]))
    with pytest.raises(RankingError, match=r"1,000 rankings of 1,000 items.*max_bytes="):
        rk.read(wide, max_bytes=1_000_000)
    rk.read(wide)  # imports
    tracemalloc.start()
    try:
        assert len(rk.read(wide)) == 1000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * 4_000_000


@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
@pytest.mark.parametrize("named", [False, True])
def test_many_columns(tmp_path, named):
    names = [f"item {number}" for number in range(20_000)]
    path = tmp_path / "v.csv"
    path.write_text(",".join(names) + "\n" + ",".join(str(n + 1) for n in range(20_000)) + "\n")
    votes = rk.read(path, items=names[::-1]) if named else rk.read(path)
    assert votes.items == tuple(names[::-1] if named else names)
    assert votes.ranks[0, -1 if named else 0] == 0


def test_memory_of_large_counts(tmp_path):
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


def test_judge_as_label(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("judge,winner,loser\n1,a,b\n1,b,c\n2,c,a\n", encoding="utf-8")
    alone = rk.read_pairs(path, label_columns=["judge"])
    assert (len(alone), alone.labels["judge"].tolist()) == (3, ["1", "1", "2"])
    stated = rk.read_pairs(path, label_columns=["judge"], columns={"user": "judge"})
    assert (len(stated), stated.labels["judge"].tolist()) == (2, ["1", "2"])


@pytest.mark.parametrize("reader", [rk.read_pairs, rk.read_comparisons])
def test_comparisons_without_rows(tmp_path, reader):
    path = tmp_path / "pairs.csv"
    path.write_text("judge,winner,loser\n")
    with pytest.raises(rk.RankingError, match="the table has no rows; each row compares two items"):
        reader(path)
