"""The command ``rankernel leaderboard``."""

import csv
import json

import numpy as np
import pytest
from commands import run

import rankernel as rk


@pytest.fixture
def battles(tmp_path):
    rng = np.random.default_rng(0)
    names, strengths = ["a", "b<i>", "c"], np.array([2.0, 0.0, -2.0])
    rows = []
    for _ in range(300):
        x, y = rng.choice(3, 2, replace=False)
        wins = rng.random() < 1 / (1 + np.exp(strengths[y] - strengths[x]))
        rows.append([names[x], names[y], "model_a" if wins else "model_b", rng.choice(["en", "de"])])
    file = tmp_path / "battles.csv"
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([["model_a", "model_b", "winner", "language"], *rows])
    return file


def test_comparisons(battles):
    content = json.loads(run("leaderboard", battles, "--json").stdout)
    expected = rk.leaderboard(rk.read_comparisons(battles))
    assert content["leaderboard"] == expected.rows()
    printed = run("leaderboard", battles).stdout
    assert "300 comparisons resampled" in printed
    assert "b<i>" in printed


def test_groups(battles, tmp_path):
    out = tmp_path / "out.csv"
    content = json.loads(run("leaderboard", battles, "--by", "language", "--json", "-o", out).stdout)
    assert list(content["leaderboards"]) == ["de", "en"]
    with out.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["language"] for row in rows] == ["de"] * 3 + ["en"] * 3
    assert float(rows[0]["bradley_terry"]) == content["leaderboards"]["de"][0]["bradley_terry"]


def test_rankings_and_picture(tmp_path):
    picture = tmp_path / "ranks.svg"
    content = json.loads(run("leaderboard", "--score", "copeland", "--json", "-o", picture).stdout)
    assert content["leaderboard"] == rk.leaderboard(rk.datasets.load_example().rankings, score="copeland").rows()
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "elo"], "--score"),
        (["--score", "mean_rank"], "--score"),
        (["--by", "country"], "--by"),
        (["--by", "language", "-o", "ranks.png"], "--by"),
        (["-o", "ranks.txt"], "ranks.txt"),
    ],
)
def test_wrong_options(battles, options, message):
    result = run("leaderboard", battles, *options)
    assert result.exit_code != 0
    assert message in result.stderr


def test_item_that_always_wins(tmp_path):
    """The message names an option that the command has."""
    file = tmp_path / "battles.csv"
    file.write_text("model_a,model_b,winner\na,b,model_a\nb,c,model_a\nc,b,model_a\na,c,model_a\n")
    refused = run("leaderboard", file)
    assert "give --prior 0.1" in " ".join(refused.stderr.split())
    content = json.loads(run("leaderboard", file, "--prior", "0.1", "--json").stdout)
    assert content["leaderboard"] == rk.leaderboard(rk.read_comparisons(file), prior=0.1).rows()
