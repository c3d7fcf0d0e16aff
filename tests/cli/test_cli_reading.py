"""Reading from the command line: formats, messages about options, label columns."""

import csv
import json
import re

import pytest
from commands import run
from example_files import BLT, DOMINION, DOMINION_CSV, SCOTTISH, preflib

ARENA = """judge,model_a,model_b,winner
ann,x,y,model_a
ann,y,z,tie
bob,x,z,model_b
bob,y,x,model_a
cy,z,y,model_a
"""
CVR = """id,ward,Mayor Choice 1 of 2,Mayor Choice 2 of 2
1,N,Ann,Bob
2,N,Bob,undervote
3,S,,
4,S,Bob,Ann
5,S,Ann,Cy
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write_file(name, text):
        (tmp_path / name).write_text(text)
        return name

    return write_file


@pytest.mark.parametrize(
    ("name", "text", "options", "n_voters", "read_as"),
    [
        ("v.soi", preflib("soi", ["2: 1", "1: 3,2"]), [], 3, "PrefLib soi"),
        ("v.blt", BLT, [], 10, "BLT"),
        ("v.csv", SCOTTISH, [], 18, "a Scottish council election"),
        ("v.json", json.dumps(DOMINION), ["--contest", "contest 7"], 2, "a cast vote record"),
        ("v.csv", CVR, ["--by", "ward"], 4, "a cast vote record"),
        ("v.csv", DOMINION_CSV, ["--by", "PrecinctPortion"], 2, "a cast vote record"),
        ("v.csv", ARENA, [], 3, "pairs: user in judge"),
        ("v.csv", "who,x,y\na,3.5,9\nb,2,1\n", ["--layout", "scores", "--ignore", "who"], 2, "larger is better"),
        ("v.csv", "x,y\n3.5,9\n", ["--layout", "scores", "--ascending"], 1, "smaller is better"),
        ("v.csv", "better,worse,who\nx,y,a\nx,z,a\n", ["--layout", "pairs", "--ignore", "who"], 2, "pairs"),
        ("v.csv", "better,worse,who\nx,y,a\nx,z,a\n", ["--layout", "pairs", "--column", "user=who"], 1, "user in who"),
        (
            "v.csv",
            "rank 1;rank 2\nÅsa;Bo\n",
            ["--delimiter", ";", "--items", "Åsa,Bo,Cy"],
            1,
            "one column per position",
        ),
    ],
)
def test_formats(write, name, text, options, n_voters, read_as):
    result = run("info", write(name, text), *options, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["n_voters"] == n_voters
    assert read_as in facts["description"]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "rank 1,rank 2\nAnn,Bob\nAnn|Bob,\n",
            [],
            "give --separator '|', or if it is one name, list all items in --items",
        ),
        ("rank 1,rank 2\nAnn,Ann\n", ["--repeated", "error"], "choose another --repeated"),
        ("rank 1,rank 2\nAnn,overvote\n", ["--overvotes", "error"], "choose another --overvotes"),
        ("tea,milk\n8,3\n", [], "--layout scores"),
        ("task,x,y\none,3,9\n2,4,5\n", ["--layout", "scores"], "give --ignore task"),
        ("ward,tea\nN,1\n", [], "in --by or --labels, --ignore and --count, or give --layout ranks"),
        ("tea,milk\n1,2\n", ["--by", "ward"], "--by or --labels names the column 'ward'"),
        ("tea,milk\n1,2\n", ["--count", "n"], "--count names the column 'n'"),
        ("a,b;c\n1,2;3\n", [], "choose one with --delimiter"),
        ("id,A choice 1,A choice 2,B choice 1\n1,x,y,z\n", [], "choose one with --contest: 'A', 'B'"),
        ("winner,losers,mood\nx,y,sad\n", ["--layout", "pairs", "--ignore", "losers"], "--column"),
        ("Ann,Bob\n1,2\n", ["--layout", "positions", "--ascending"], "--ascending requires --layout scores"),
        ("3,1,2\n1,2,3\n", [], "give --no-header"),
    ],
)
def test_messages_name_options(write, text, options, words):
    result = run("info", write("v.csv", text), *options)
    assert result.exit_code == 1
    assert words in result.stderr
    assert not re.search(r"\b[a-z_]+=", result.stderr), result.stderr


def test_similar_names(write):
    file = write("v.csv", "rank 1,rank 2\nAnn,Bob\nann,Bob\n")
    assert "note: v.csv: 'Ann' and 'ann'" in run("info", file).stderr
    assert "--fold-case merges them" in run("info", file).stderr
    assert "'ann' read as 'Ann'" in run("info", file, "--fold-case").stdout


def test_clean(write):
    result = run("clean", write("v.csv", CVR), "--by", "ward", "--labels", "id", "-o", "clean.csv")
    assert result.exit_code == 0, result.output
    assert "1 blank ballot dropped" in result.stdout.replace("\n", " ")
    with open("clean.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["1", "2", "4", "5"]
    assert [row["ward"] for row in rows] == ["N", "N", "S", "S"]
    assert [row["rank of Ann"] for row in rows] == ["1", "2", "2", "1"]  # the numbers of id might be ranks
    assert run("clean", "v.csv", "-o", "clean.csv").exit_code == 1
    assert run("clean", "v.csv", "-o", "clean.blt", "--merge").exit_code == 0
    assert run("info", "clean.blt", "--json").exit_code == 0
    assert run("clean", "v.csv", "-o", "clean.pdf").exit_code == 2


def test_label_columns(write):
    file = write("v.csv", CVR)
    for command, name in (("cluster", "c.csv"), ("map", "m.csv")):
        result = run(command, file, "--by", "ward", "--labels", "id", "-o", name)
        assert result.exit_code == 0, result.output
        with open(name) as written:
            rows = list(csv.DictReader(written))
        assert [(row["ward"], row["id"]) for row in rows] == list(zip("NNSSS", "12345", strict=True))


@pytest.mark.parametrize("command", ["gram", "cluster", "test", "report"])
def test_comparisons(write, command):
    more = {"test": ["--by", "side"], "report": ["-o", "r.html"], "cluster": ["--k", "2"], "gram": []}[command]
    text = "judge,winner,loser,side\n" + "".join(
        f"{who},{x},{y},{side}\n"
        for who, x, y, side in [
            *[("a", "x", "y", "L"), ("a", "z", "w", "L"), ("b", "x", "w", "L"), ("c", "y", "x", "R")],
            *[("c", "w", "z", "R"), ("d", "y", "z", "R"), ("e", "x", "y", "L")],
        ]
    )
    result = run(command, write("p.csv", text), *more, *(["--ignore", "side"] if command != "test" else []))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", ["cluster", "map"])
def test_blank_ballots_keep_their_row(write, command):
    lines = ["N,Ann,Bob", "S,,", "N,Bob,", "S,Ann,", ",,", "N,Bob,Ann"]
    rows = [f"{number},{line}" for number, line in enumerate(lines)]
    file = write("v.csv", "\n".join(["id,ward,Mayor Choice 1 of 2,Mayor Choice 2 of 2", *rows]))
    assert run(command, file, "--labels", "id", "--k", 2, "-o", "out.csv").exit_code == 0
    with open("out.csv", newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [row["id"] for row in written] == list("012345")
    assert [row["id"] for row in written if not row["ranking"]] == ["1", "4"]
    assert not any(written[1][name] for name in written[1] if name != "id")


def test_write_ins_are_left_out(write):
    file = write("v.csv", CVR.replace("Cy", "write-in"))
    items = [
        json.loads(run("info", file, *options, "--json").stdout)["items"] for options in ((), ("--write-ins", "drop"))
    ]
    assert items == [["Ann", "Bob", "write-in"], ["Ann", "Bob"]]


def test_names_with_commas(write):
    file = write("v.csv", 'Choice 1 of 3,Choice 2 of 3,Choice 3 of 3\n"Lee, Ann","Lee, Bo","Fox, Cy"\n"Lee, Bo",,\n')
    printed = run("info", file).stdout
    assert "Lee, Ann; Lee, Bo; Fox, Cy" in printed
