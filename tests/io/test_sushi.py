"""The SUSHI data: small stand-ins for its files, and the real ones where they are."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankernel.errors import RankingError
from rankernel.io import load_sushi

NAMES = [
    "ebi",
    "anago",
    "maguro",
    "ika",
    "uni",
    "tako",
    "ikura",
    "tamago",
    "toro",
    *(f"other{i}" for i in range(9, 100)),
]
NAMES[26], NAMES[29] = "tekka_maki", "kappa_maki"
SET_A = ("ebi", "anago", "maguro", "ika", "uni", "ikura", "tamago", "toro", "tekka_maki", "kappa_maki")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sushi3.idata").write_text("".join(f"{i}\t{name}\t1\t0\n" for i, name in enumerate(NAMES)))
    (tmp_path / "sushi3.udata").write_text("71\t0\t2\t355\t13\t3\t0\t26\t6\t1\t1\n72\t1\t5\t9\t0\t0\t0\t0\t0\t0\t0\n")
    (tmp_path / "sushi3a.5000.10.order").write_text("10 1\n0 10 7 2 0 5 1 4 8 3 6 9\n0 10 0 1 2 3 4 5 6 7 8 9\n")
    (tmp_path / "sushi3b.5000.10.order").write_text("100 1\n0 3 58 8 26\n0 2 99 0\n")
    return tmp_path


def test_set_a_has_numbers_of_its_own(folder):
    data = load_sushi(folder)
    assert data.items == data.rankings.items == SET_A
    assert data.rankings.is_full()
    assert data.rankings.to_orders()[0][:3] == ["toro", "maguro", "ebi"]


def test_set_b_leaves_what_was_not_shown_free(folder):
    data = load_sushi(folder, which="b")
    assert data.items == tuple(NAMES)
    assert data.rankings.to_orders() == [["other58", "toro", "tekka_maki"], ["other99", "ebi"]]
    assert data.rankings.n_free.tolist() == [97, 98]
    last = load_sushi(folder, which="b", unlisted="last").rankings
    assert last.kinds().tolist() == ["top-k", "top-k"]
    assert last.top(2)[1].ranks[0, [99, 0, 1]].tolist() == [0, 1, 2]


def test_users(folder):
    users = load_sushi(folder).users
    assert {name: values.tolist() for name, values in users.items()} == {
        "id": [71, 72],
        "gender": [0, 1],
        "age": [2, 5],
        "seconds": [355, 9],
        "prefecture_until_15": [13, 0],
        "region_until_15": [3, 0],
        "east_west_until_15": [0, 0],
        "prefecture": [26, 0],
        "region": [6, 0],
        "east_west": [1, 0],
        "moved": [1, 0],
    }


def test_users_cannot_be_changed_by_chance(folder):
    with pytest.raises(ValueError, match="read-only"):
        load_sushi(folder).users["age"][0] = 1


def test_the_folder_above_will_do(folder, tmp_path):
    above = tmp_path / "data"
    above.mkdir()
    inner = above / "sushi3-2016"
    inner.mkdir()
    for file in folder.glob("sushi3*"):
        if file.is_file():
            file.rename(inner / file.name)
    assert len(load_sushi(above).rankings) == 2


def test_missing_files_and_where_to_get_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"sushi3b\.5000.*Kamishima.*https://www\.kamishima\.net/sushi/"):
        load_sushi(tmp_path, which="b")
    with pytest.raises(ValueError, match="which='c'"):
        load_sushi(tmp_path, which="c")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("sushi3a.5000.10.order", "", "line 1: the file is empty"),
        ("sushi3a.5000.10.order", "9 1\n", "line 1: expected a line that begins with the number of items, 10"),
        ("sushi3a.5000.10.order", "10 1\n0 3 1 2\n", "line 2: expected 0, the length of the order"),
        ("sushi3a.5000.10.order", "10 1\n0 0\n", "line 2: expected 0, the length of the order"),
        ("sushi3a.5000.10.order", "10 1\n\n0 2 1 1\n", "line 3: an order names items from 0 to 9"),
        ("sushi3a.5000.10.order", "10 1\n0 1 10\n", "line 2: an order names items from 0 to 9"),
        ("sushi3a.5000.10.order", "10 1\n0 1 -1\n", "line 2: an order names items from 0 to 9"),
        ("sushi3a.5000.10.order", "10 1\n0 1 x\n", "line 2: expected whole numbers; got '0 1 x'"),
        ("sushi3a.5000.10.order", "10 1\n0 1 3\n", "there are 2 users but 1 orders"),
        ("sushi3.udata", "1\t2\n", "line 1: expected 11 numbers about a user; got 2"),
        ("sushi3.idata", "0\tebi\n", "there are 1 items"),
        ("sushi3.idata", "".join(f"{i}\tsushi {i}\n" for i in range(29)), "there are 29 items"),
        ("sushi3.idata", "1\tebi\n", "line 1: expected item 0"),
        ("sushi3.idata", "".join(f"{i}\tsame\n" for i in range(100)), "both named 'same'"),
    ],
)
def test_damage_is_named(folder, name, text, problem):
    (folder / name).write_text(text)
    with pytest.raises(RankingError, match=problem):
        load_sushi(folder)


# ---------------------------------------------------------------------- the real data


@pytest.fixture
def real():
    root = os.environ.get("RANKERNEL_DATA")
    if not root or not Path(root, "sushi3-2016").exists():
        pytest.skip("RANKERNEL_DATA is not set, or holds no sushi3-2016")
    return Path(root)


def test_the_real_data(real):
    a, b = load_sushi(real), load_sushi(real / "sushi3-2016", which="b")
    assert a.items == SET_A
    assert a.rankings.is_full()
    assert (len(a.rankings), a.rankings.n_items, len(b.rankings), b.rankings.n_items) == (5000, 10, 5000, 100)
    assert (b.rankings.n_free == 90).all()
    assert (b.rankings.n_buckets == 10).all()
    moved = a.users["prefecture"] != a.users["prefecture_until_15"]
    assert (a.users["moved"] == moved).all()
    assert set(np.unique(a.users["region"])) <= set(range(12))


def test_the_items_of_set_a_are_liked_as_their_namesakes_of_set_b(real):
    a, b = load_sushi(real).rankings, load_sushi(real, which="b").rankings
    shared = b.ranks[:, [b.items.index(name) for name in a.items]]
    mean_b = np.array([column[column >= 0].mean() for column in shared.T])
    correlation = np.corrcoef(a.ranks.mean(axis=0), mean_b)[0, 1]
    # Looking the numbers of set A up in the list of all hundred would give -0.46.
    assert correlation > 0.98
