"""The generated paragraphs of the tutorial contain the numbers of the test results."""

import json
import re
from pathlib import Path

import pytest
from real_data import FOLDER, needs_data

import rankernel as rk
from benchmarks import newspaper

COMMITTED = Path(__file__).parents[2] / "docs" / "benchmarks" / "newspaper" / "newspaper.json"
ROWS = json.loads(COMMITTED.read_text(encoding="utf-8"))["rows"]


def two_groups():
    return rk.mmd_test(
        rk.datasets.mallows(400, [0, 1, 2, 3], 1.0, rng=1),
        rk.datasets.mallows(300, [1, 3, 0, 2], 1.0, rng=2),
        None,
        n_permutations=99,
    )


@pytest.mark.parametrize("words", [newspaper.sushi_words, newspaper.dublin_words])
def test_paragraph_matches_the_result(words):
    result = two_groups()
    text, found = words(result), result.differences()
    moves = {item.item: max(item.mean_ranks) - min(item.mean_ranks) for item in found.items}
    assert re.search(r"The mean rank of (\S+) changes most", text)[1] == max(moves, key=moves.get)
    widest = max(found.pairs, key=lambda pair: abs(pair.shares[0] - pair.shares[1]))
    assert f"{widest.first}" in text
    assert f"{widest.second}" in text
    assert f"{widest.shares[0]:.0%}" in text
    assert "p ≤ 0.01)" in text  # the smallest that 99 permutations can give is a bound
    assert "400" in text
    assert "300" in text
    assert f"{result.effect:.2%}" in text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["data"])
def test_committed_paragraphs_have_the_numbers_of_their_records(row):
    text = row["paragraph"]
    assert f"p ≤ {row['p-value']:.2g}" in text
    assert row["from moments"] < row["p-value"]  # so it is a bound indeed
    shown = [f"{100 * value:.2f}%" for value in (row["effect"], *row["interval"])]
    assert all(value in text for value in shown)
    groups = [int(number.replace(",", "")) for number in re.findall(r"\d{1,3}(?:,\d{3})+", text)]
    assert sum(groups) == row["voters"]


@needs_data
@pytest.mark.parametrize("name", newspaper.PARAGRAPHS)
def test_committed_paragraphs_are_those_of_the_data(name):
    committed = next(row for row in ROWS if row["data"] == name)
    again = newspaper.row(name, FOLDER)
    assert again["paragraph"] == committed["paragraph"]
    assert again["distinct ballots"] == committed["distinct ballots"]
