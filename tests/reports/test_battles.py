"""The report of comparisons: leaderboard first, the judges behind a difference, groups of comparisons and of judges."""

import csv
import json
import re
from collections import Counter

import numpy as np
import pytest
from commands import run

import rankernel as rk

pytestmark = [
    pytest.mark.filterwarnings("ignore::rankernel.errors.NotCharacteristicWarning"),
    pytest.mark.filterwarnings("ignore::rankernel.errors.ReadingWarning"),  # cycles of single judges
]
NAMES = ["Aster", "Birch", "Cedar", "Dahlia"]


def battles(n=400, *, by_language=0.0, judges=12, schedules=False, rng=0):
    """Battles of four models; ``by_language`` raises the first one in German only."""
    rng, rows = np.random.default_rng(rng), []
    strengths = np.array([1.5, 0.5, 0.0, -1.5])
    for _ in range(n):
        language = rng.choice(["de", "en"])
        # The schedules of languages differ: German compares mostly the first two models.
        items = [0, 1] if schedules and language == "de" and rng.random() < 0.8 else rng.choice(4, 2, replace=False)
        x, y = items[0], items[1]
        s = strengths + by_language * (language == "de") * np.array([-1.0, 1.0, 0.0, 0.0])
        outcome = 0 if rng.random() < 0.1 else 1 if rng.random() < 1 / (1 + np.exp(s[y] - s[x])) else -1
        rows.append((NAMES[x], NAMES[y], outcome, language, f"j{rng.integers(judges)}"))
    return rows


def comparisons(rows, known=True):
    first, second, outcome, language, judge = zip(*rows, strict=True)
    return rk.Comparisons.from_arrays(
        first, second, outcome, judge=judge if known else None, labels={"language": language}
    )


def text_of(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("<main", 1)[1].split("<script", 1)[0]))


@pytest.fixture
def file(tmp_path):
    def write(rows, columns=("model_a", "model_b", "winner", "language", "judge")):
        path = tmp_path / "battles.csv"
        sides = {1: "model_a", -1: "model_b", 0: "tie"}
        with path.open("w", newline="") as stream:
            cells = [[a, b, sides[outcome], *rest] for a, b, outcome, *rest in rows]
            csv.writer(stream).writerows([columns, *(row[: len(columns)] for row in cells)])
        return path

    return write


def test_page_begins_with_the_leaderboard():
    rows = battles()
    data = comparisons(rows)
    made = rk.report(data)
    board = rk.leaderboard(data)
    assert made.headline.startswith("400 comparisons of 4 items by 12 judges.")
    assert board.items[0] in made.headline
    assert re.findall(r'<section id="(\w+)"', made.html)[0] == "leaderboard"
    assert "First choices" not in made.html
    assert next(iter(made.pictures)) == "leaderboard"
    text = text_of(made.html)
    first, second = board.items[:2]
    between = [row for row in rows if {row[0], row[1]} == {first, second}]  # by hand
    n_judges = len({row[4] for row in between})
    won = Counter((row[0] if row[2] > 0 else row[1]) if row[2] else "tie" for row in between)
    assert f"{len(between)} comparisons of the two by {n_judges} judges: {first} won {won[first]}" in text
    assert f"{second} won {won[second]}, and {won['tie']} are ties" in text
    n_separated = int(board.above.before.sum())
    assert f"{n_separated} of 6 pairs of items are separated" in text
    largest = sorted(Counter(row[4] for row in rows).values(), reverse=True)
    assert (
        f"Half of the comparisons were made by {next(k for k in range(13) if sum(largest[:k]) >= 200)} of the" in text
    )


def test_contests_are_shares_of_the_comparisons_of_both():
    rows = (
        [("a", "b", 1, "x", "p")] * 3 + [("b", "a", 0, "x", "p")] + [("b", "c", 1, "x", "q"), ("c", "b", 1, "x", "q")]
    )
    html = rk.report(comparisons(rows)).html
    table = html.split('class="heat"', 1)[1].split("</table>", 1)[0]
    cells = {
        name: re.findall(r"<td class=\"([\w ]+)\">(.*?)</td>", row)
        for name, row in re.findall(r'<th scope="row">(\w)</th>(.*?)</tr>', table, re.DOTALL)
    }
    shown = {
        name: [re.sub("<small>", " ", text).removesuffix("</small>") for _, text in row] for name, row in cells.items()
    }
    assert sorted(shown["a"]) == ["", "", "75 25"]  # a and c were never compared
    assert sorted(shown["b"]) == ["", "0 25", "50 0"]


def test_unknown_judges_are_not_shown():
    html = rk.report(comparisons(battles(200), known=False)).html
    sections = re.findall(r'<section id="(\w+)"', html)
    assert sections == ["leaderboard", "uncertainty", "contests", "methods"]
    assert "judge" not in text_of(html)


def test_items_that_always_win_are_ranked_by_win_rates():
    html = rk.report(comparisons([("a", "b", 1, "x", f"j{n}") for n in range(5)])).html
    assert "mean win rate" in html
    assert "Bradley-Terry strength" not in html


@pytest.mark.parametrize(("by_language", "differs"), [(0.0, False), (1.2, True)])
def test_groups_of_comparisons(by_language, differs):
    """Different schedules are no difference; the same judges are in both groups."""
    data = comparisons(battles(600, by_language=by_language, schedules=True))
    made = rk.report(data, groups="language", n_permutations=199)
    text = text_of(made.html)
    assert ("de and en rank the items differently" in text) == differs
    assert ("Birch above Aster" in text) == differs
    assert "each among the comparisons of the same two items" in text
    result = rk.k_sample_test(data, "language", rk.Kendall(), n_permutations=199)
    assert f"account for {100 * max(result.effect, 0):.1f}%" in text
    assert "of the kernel Kendall()" in text


def test_shares_of_groups_by_hand():
    rows = battles(600, by_language=1.2)
    page = rk.report(comparisons(rows), groups="language", n_permutations=99).html
    shares = []
    for language in ("de", "en"):
        between = [row for row in rows if {row[0], row[1]} == {"Aster", "Birch"} and row[3] == language]
        shares.append(sum(row[2] == (1 if row[0] == "Birch" else -1) for row in between) / len(between))
    assert "Birch above Aster: {:.0%} and {:.0%}".format(*shares) in page


def test_contributions_of_pairs_by_hand(file):
    rows = battles(600, by_language=1.2)
    found = json.loads(run("test", file(rows), "--by", "language", "--permutations", 99, "--json").stdout)
    first = found["differences"]["pairs"][0]
    pair = [(row[2] if row[0] == first["first"] else -row[2], row[3]) for row in rows if set(row[:2]) == set(NAMES[:2])]
    scores = {language: [(1 + won) / 2 for won, of in pair if of == language] for language in ("de", "en")}
    every = scores["de"] + scores["en"]
    between = sum(len(each) * (np.mean(each) - np.mean(every)) ** 2 for each in scores.values())
    assert first["contribution"] == pytest.approx(between - np.var(every))


def test_groups_of_judges():
    """A column with one value for each judge divides the judges, who are the independent units."""
    rows = [(*row[:3], "old" if int(row[4][1:]) < 6 else "young", row[4]) for row in battles(500)]
    made = rk.report(comparisons(rows), groups="language", n_permutations=99)
    assert "random divisions of the judges" in made.html


def test_commands(file):
    path = file(battles(600, by_language=1.2))
    made = run("report", path, "--by", "language", "-o", path.with_suffix(".html"), "--permutations", 99)
    assert "600 comparisons, 12 judges, 4 models" in made.stdout
    found = json.loads(run("test", path, "--by", "language", "--permutations", 99, "--json").stdout)
    expected = rk.k_sample_test(rk.read_comparisons(path), "language", rk.Kendall(), n_permutations=99)
    assert found["kernel"] == "Kendall()"
    assert found["all"]["effect"] == expected.effect
    assert found["all"]["pvalue"] == expected.pvalue == 0.01
    assert found["differences"]["pairs"][0]["first"] == "Birch"
    printed = run("test", path, "--by", "language", "--permutations", 99).stdout
    assert "p ≤ 0.01 (99 permutations)" in printed
    assert "Birch to Aster" in printed
    refused = run("test", path, "--by", "language", "--kernel", "hamming")
    assert refused.exit_code == 2
    assert "Kendall" in refused.stderr


def test_two_files_of_comparisons(tmp_path, file):
    rows = battles(600, by_language=1.2)
    names = []
    for language in ("de", "en"):
        path = file([row for row in rows if row[3] == language], ("model_a", "model_b", "winner"))
        names.append(path.rename(tmp_path / f"{language}.csv"))
    found = json.loads(run("test", *names, "--permutations", 99, "--json").stdout)
    whole = comparisons(rows)
    assert found["all"]["pvalue"] == 0.01
    assert found["all"]["effect"] == pytest.approx(
        rk.k_sample_test(whole, "language", rk.Kendall(), n_permutations=1).effect, abs=1e-12
    )
