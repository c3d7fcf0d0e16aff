"""Every command that is printed is a command that runs: in README, on the pages, at the end of each help."""

import json
import re
import shlex
from importlib.resources import files
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from commands import run
from example_files import DOMINION
from typer import testing

import rankernel as rk
from rankernel import write_preflib
from rankernel.cli.app import COMMANDS, SCORES, app
from rankernel.cli.options import LINKAGES
from rankernel.datasets import uniform
from rankernel.io.source import option_choices

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
BATTLES = """judge,model_a,model_b,winner,language
ann,x,y,model_a,en
ann,y,z,tie,en
ann,y,z,model_a,en
bob,x,z,model_b,en
cy,x,y,model_b,de
cy,z,y,model_a,de
dan,z,x,model_b,de
"""


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
        "nowhere_bay.csv": (files("rankernel.datasets") / "data/nowhere_bay.csv").read_text(encoding="utf-8"),
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
    found = [re.search(rf"(?:^|[\s/!$])rankernel ((?:{'|'.join(COMMANDS)})\b.*)", line) for line in lines]
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
    if "-o" in words:
        Path(words[words.index("-o") + 1]).unlink(missing_ok=True)
    result = run(*words)
    assert result.exit_code == 0, result.output
    if "-o" in words:
        assert Path(words[words.index("-o") + 1]).exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_at_80_columns_is_complete(command):
    """No text is cut, no type of Python is shown, every choice is a whole word, and there are examples."""
    result = testing.CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = re.sub(r"[\s│]+", " ", result.stdout)
    assert "…" not in text
    assert not re.search(r"<\w+", text)
    choices = {"--over": ("intersection", "union"), "--linkage": LINKAGES, "--score": SCORES}
    choices |= {f"--{name.replace('_', '-')}": values for name, values in option_choices().items()}
    for option, values in choices.items():
        if f" {option} " in text:
            assert f"One of {', '.join(values)}." in text, option
    for example in COMMANDS[command][1]:
        assert f"rankernel {command} {example}".rstrip() in text
    assert "Output" in text


def test_clean_keeps_columns_and_says_that_nothing_changed(tmp_path):
    file, out, again = (tmp_path / name for name in ("cvr.csv", "out.csv", "again.csv"))
    file.write_text("id,ward,Mayor Choice 1 of 2,Mayor Choice 2 of 2\n1,N,Ann,Bob\n2,N,Bob,undervote\n3,S,,\n")
    assert "1 blank ballot dropped" in run("clean", file, "-o", out).stdout
    assert out.read_text().splitlines() == ['"id","ward","rank of Ann","rank of Bob","count"', "1,N,1,2,1", "2,N,2,1,1"]
    printed = run("clean", out, "-o", again).stdout
    assert next(line for line in printed.splitlines() if line.startswith("repaired")).split() == [
        "repaired",
        "nothing",
        "changed",
    ]
    assert again.read_text() == out.read_text()


def test_gram_shows_standard_errors_of_estimates():
    options = ("--only", "north", "--kernel", "exponential:distance=footrule,nu=0.1", "--method", "montecarlo:draws=16")
    found = json.loads(run("gram", *options, "--json").stdout)
    north = rk.datasets.load_example()
    X = north.rankings[north.districts == "north"]
    kernel = rk.Exponential("footrule", nu=0.1)
    estimate = kernel.estimate(X[:6], method=rk.MonteCarlo(16, rng=0))
    assert np.array(found["corner_standard_errors"]) == pytest.approx(estimate.stderr, rel=1e-9)
    assert np.array(found["corner"]) == pytest.approx(estimate.value, rel=1e-9)
    assert "standard errors" in run("gram", *options).stdout
    exact = run("gram", "--only", "north")
    assert "standard errors" not in exact.stdout
