"""Names that spreadsheets would evaluate as formulas, and names in titles of pictures."""

import csv

import pytest
from commands import run

import rankernel as rk


@pytest.mark.parametrize(("command", "name"), [("cluster", "labels.csv"), ("map", "map.csv")])
def test_no_cell_is_a_formula(tmp_path, command, name):
    names = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)"]
    orders = [[names[i], names[(i + 1) % 4]] for i in range(4)] * 2
    source, out = tmp_path / "votes.soi", tmp_path / name
    rk.write_preflib(rk.Rankings.from_orders(orders).unique(), source)
    done = run(command, source, "-o", out)
    assert done.exit_code == 0, done.output
    rows = list(csv.reader(out.read_text(encoding="utf-8").splitlines()))
    texts = [cell for row in rows[1:] for cell in row if not is_number(cell)]
    assert any(cell.startswith("'=cmd") for cell in texts)
    assert not any(cell[:1] in "=+-@" for cell in texts if cell)


@pytest.mark.parametrize("raw", [False, True])
def test_clean_writes_formulas_as_text(tmp_path, raw):
    source, out = tmp_path / "votes.csv", tmp_path / "clean.csv"
    source.write_text("id,rank 1,rank 2\n@1,=1+1,Ann\n2,Ann,=1+1\n")
    done = run("clean", source, "--labels", "id", "-o", out, *(["--raw"] if raw else []))
    assert done.exit_code == 0, done.output
    cells = [cell for row in csv.reader(out.read_text(encoding="utf-8").splitlines()) for cell in row]
    assert any(cell[:1] in ("=", "@") for cell in cells) == raw
    back = rk.read_csv(out, label_columns="id")
    assert (back.items, back.labels["id"].tolist()) == (("=1+1", "Ann"), ["@1", "2"])


def test_written_formulas_are_read_back(tmp_path):
    names, labels = ["=1+1", "-a", "@b", "+3"], {"ward": ["=x", "-4", "'tis", "+z"]}
    ballots = rk.Rankings([[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 3, 2]], names)
    rk.write_csv(ballots, tmp_path / "votes.csv", labels=labels)
    cells = [cell for row in csv.reader((tmp_path / "votes.csv").read_text().splitlines()) for cell in row]
    assert not any(cell[:1] in ("=", "+", "-", "@") and not is_number(cell) for cell in cells)
    back = rk.read(tmp_path / "votes.csv", label_columns="ward")
    assert back == ballots
    assert back.labels["ward"].tolist() == labels["ward"]
    with pytest.raises(rk.RankingError, match="labels"):
        rk.write_csv(ballots, tmp_path / "names.csv", labels={"=w": ["a"] * 4})


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_dollar_in_title(tmp_path):
    source, out = tmp_path / r"$\frac$.soi", tmp_path / "map.svg"
    rk.write_preflib(rk.Rankings.from_orders([["a", "b"], ["b", "a"]]), source)
    done = run("map", source, "-o", out)
    assert done.exit_code == 0, done.output
