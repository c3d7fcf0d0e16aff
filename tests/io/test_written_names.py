"""Names that spreadsheets would evaluate as formulas, and names in titles of pictures."""

import csv
import re

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


def test_clean_warns_of_formulas(tmp_path):
    source, out = tmp_path / "votes.csv", tmp_path / "clean.csv"
    source.write_text("id,rank 1,rank 2\n@1,=1+1,Ann\n2,Ann,=1+1\n")
    done = run("clean", source, "--labels", "id", "-o", out)
    assert done.exit_code == 0, done.output
    assert re.fullmatch(r"note: '=1\+1' .*formula.*clean\.csv\n", done.stderr)
    back = rk.read_csv(out, layout="ranks", count="count", label_columns="id")
    assert (back.items, back.labels["id"].tolist()) == (("=1+1", "Ann"), ["@1", "2"])
    for more in (["-o", str(tmp_path / "clean.blt")], ["-o", str(tmp_path / "merged.csv"), "--merge"]):
        done = run("clean", source, "--ignore", "id", *more)
        assert (done.exit_code, "formula" in done.stderr) == (0, more[-1] == "--merge"), done.output


def test_write_csv_warns_of_formulas(tmp_path):
    with pytest.warns(UserWarning, match=r"'=1\+1' is a formula .* votes\.csv"):
        rk.write_csv(rk.Rankings([[0, 1]], ["=1+1", "Ann"]), tmp_path / "votes.csv")


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
