"""Every command that is printed is a command that runs: in README, on the pages, at the end of each help."""

import json
import re
import shlex
from pathlib import Path
from zipfile import ZipFile

import pytest
from commands import run
from example_files import DOMINION

from rankernel import write_preflib
from rankernel.cli.app import app
from rankernel.datasets import load_example, uniform
from rankernel.datasets.example import example_csv

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [path for path in DOCS.rglob("*.md") if not {"_build", "generated", "reproduction"} & set(path.parts)]
README = DOCS.parent / "README.md"
BALLOTS = uniform(40, 5, rng=0)
PLACES = "choice 1,choice 2,choice 3\n"
CVR = """Cast Vote Record,Precinct,Mayor Choice 1 of 2,Mayor Choice 2 of 2
1,N,Ann,Bob
2,N,Bob,undervote
4,S,Bob,Ann
"""
BATTLES = "judge,model_a,model_b,winner\nann,x,y,model_a\nann,y,z,tie\nbob,x,z,model_b\n"


def write_files(folder):
    """Write the files that printed commands speak of."""
    for name in ("votes.soi", "north.soi", "south.soi"):
        write_preflib(BALLOTS, folder / name)
    rows = ["north,4,Ann,Bob,", "north,2,Bob,,", "south,3,Cy,Ann,Bob", "south,1,Ann,,"]
    texts = {
        "votes.csv": f"district,n,{PLACES}" + "\n".join(rows) + "\n",
        "your.csv": PLACES + "Ann,Bob,\nCy,,\nBob,Cy,Ann\n",
        "cvr.csv": CVR,
        "battles.csv": BATTLES,
        "leaderboard.csv": "model_id,task 1,task 2\n17,0.3,0.9\n18,0.4,0.2\n19,0.5,0.1\n",
        "nowhere_bay.csv": example_csv(load_example()),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    with ZipFile(folder / "cvr.zip", "w") as record:
        record.writestr("CvrExport.json", json.dumps(DOMINION))
        record.writestr("ContestManifest.json", json.dumps({"List": [{"Id": 7, "Description": "Mayor"}]}))


def commands_in(text):
    """The commands of a page: lines of its blocks, and what stands between backticks."""
    lines = [
        line
        for block in re.findall(r"^```(?:sh|console|text)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    lines += re.findall(r"`(rankernel [^`]+)`", text)
    found = [
        re.search(r"(?:^|[\s/!$])rankernel ((?:info|clean|gram|test|cluster|map|report)\b.*)", line) for line in lines
    ]
    lines = [match[1] for match in found if match]
    lines += re.findall(r"^!rankernel (.*)$", text, re.MULTILINE)
    return [line for line in lines if "FILE" not in line]


PRINTED = sorted(
    {command for path in (README, *PAGES) if path.exists() for command in commands_in(path.read_text(encoding="utf-8"))}
    | {command for each in app.registered_commands for command in commands_in(each.epilog or "")}
)


def test_commands_are_found_where_they_are_printed():
    assert "report -o report.html --force" in PRINTED  # README
    assert "info" in PRINTED  # a cell
    assert "info   cvr.csv --contest Mayor" in PRINTED  # a block
    assert "test votes.csv --by district --permutations 9999" in PRINTED  # a help page


@pytest.mark.parametrize("command", PRINTED)
def test_every_printed_command_runs(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    words = shlex.split(command, comments=True)
    result = run(*words)
    assert result.exit_code == 0, result.output
    if "-o" in words:
        assert Path(words[words.index("-o") + 1]).exists()
