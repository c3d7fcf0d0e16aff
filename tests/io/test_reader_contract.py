"""The contract of all readers: detection, round trips, and errors or valid data for damaged files."""

import gzip
import json
import random

import numpy as np
import pytest
from example_files import BLT, DOMINION, DOMINION_CSV, NIST, SCOTTISH, preflib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import any_ranking

import rankernel as rk
from rankernel import Comparisons, Preferences, RankingError, Rankings
from rankernel.io.registry import FORMATS

ITEMS = ("Ann", 'Bo "B" Birch', "Cy, C.", "=1+1")
ROUND_TRIP = {  # file name, and options to read back any rankings
    "PrefLib": ("votes.toi", {}),
    "BLT": ("votes.blt", {}),
    "table": ("votes.csv", {}),
}
SEEDS = {
    "PrefLib": ("votes.soi", preflib("soi", ["2: 1", "1: 3,2", "4: 2,1,3"]), {}),
    "BLT": ("ward.blt", BLT, {}),
    "table": (
        "votes.csv",
        "n,choice 1,choice 2,choice 3\n2,Ann,Bob,\n1,Bob,skipped,Ann\n1,Cy|Ann,Bob,\n",
        {"count": "n", "separator": "|"},
    ),
    "TREC": ("sample.run", "1 Q0 d1 1 6.8 x\n1 Q0 d2 2 6.1 x\n2 Q0 d1 1 3.5 x\n", {}),
    "orders": ("votes.abif", "3: tea > milk = beer\nmilk>tea\n", {}),
    "pairs": ("pairs.csv", "judge,model_a,model_b,winner,n\na,x,y,model_a,1\na,y,z,tie,1\nb,x,z,z,2\n", {}),
    "comparisons": ("pairs.csv", "judge,winner,loser\na,x,y\nb,y,z\n", {"format": "comparisons"}),
    "cast vote record": ("cvr.json", json.dumps(DOMINION), {"contest": "contest 7"}),
}
MORE_SEEDS = [
    ("ward.csv", SCOTTISH, {}),
    ("cvr.json", json.dumps(NIST), {}),
    ("cvr.csv", DOMINION_CSV, {}),
    ("cvr.csv", "id,Mayor Choice 1 of 2,Mayor Choice 2 of 2\n1,Ann,overvote\n2,Bob,\n", {}),
    ("ranks.csv", "tea,milk,beer\n1,2,3\n2,1,\n1,2.5,2.5\n", {}),
    ("scores.csv", "tea,milk,beer\n8.5,3,9\n1,,-4\n", {"layout": "scores"}),
]
ALL_SEEDS = [*SEEDS.values(), *MORE_SEEDS]


def test_all_formats_are_covered():
    assert set(SEEDS) == set(FORMATS)
    assert set(ROUND_TRIP) == {name for name, known in FORMATS.items() if known.write}


@pytest.mark.parametrize("name", FORMATS)
def test_detection(tmp_path, name):
    file, text, options = SEEDS[name]
    (tmp_path / file).write_text(text)
    assert name in rk.read(tmp_path / file, **options).source.format
    packed = tmp_path / f"{file}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    if name != "cast vote record":
        assert rk.read(packed, **options) == rk.read(tmp_path / file, **options)


@pytest.mark.filterwarnings("ignore:.* is a formula")
@pytest.mark.parametrize("name", ROUND_TRIP)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(any_ranking(4), min_size=1, max_size=5), counts=st.data())
def test_round_trip(tmp_path, name, rows, counts):
    numbers = counts.draw(st.lists(st.integers(1, 10**12), min_size=len(rows), max_size=len(rows)))
    rankings = Rankings(np.array(rows), ITEMS, counts=numbers)
    file, options = ROUND_TRIP[name]
    # Without free items, a ranking with one bucket is an empty ballot; otherwise its ties can be written.
    empty = rankings.n_buckets < (2 if rankings.is_exhaustive() else 1)
    if (empty.any() and name == "BLT") or ((rankings.n_buckets == 0).any() and name == "PrefLib"):
        with pytest.raises(RankingError, match=r"row \d+"):
            FORMATS[name].write(rankings, tmp_path / file, overwrite=True)
        return
    FORMATS[name].write(rankings, tmp_path / file, overwrite=True)
    back = rk.read(tmp_path / file, **options)
    assert back == (rankings.unique() if name == "PrefLib" else rankings)


# ---------------------------------------------------------------------- damage

PIECES = [
    *(
        "0",
        "1",
        "-1",
        "2",
        "9" * 25,
        "1e9",
        "nan",
        "",
        " ",
        ",",
        ";",
        "\n",
        "\r",
        "\t",
        '"',
        "'",
        "=",
        "#",
        "/*",
        "{",
        "}",
    ),
    *(
        "[",
        "]",
        ":",
        "null",
        "true",
        "overvote",
        "skipped",
        "Blank",
        "tie",
        "model_b",
        "winner",
        "rank 1",
        "\0",
        "é",
        "\ufeff",
    ),
]


def damaged(text, rng):
    """Return a text with some pieces removed, doubled, replaced or inserted."""
    for _ in range(rng.randint(1, 4)):
        start, length = rng.randrange(len(text) + 1), rng.choice([0, 1, 1, 2, 5, 20])
        piece = rng.choice([rng.choice(PIECES), text[start : start + length] * 2, ""])
        text = text[:start] + piece + text[start + length :]
        if rng.random() < 0.05:
            text = text[: rng.randrange(len(text) + 1)]
    return text


def is_valid(data):
    """Whether the invariants of the classes hold, checked by their constructors."""
    if isinstance(data, Preferences):
        again = Preferences.from_pairs(data.to_pairs(), data.items, counts=data.counts, users=data.users)
        return (again.packed == data.packed).all() and (data.counts > 0).all()
    if isinstance(data, Comparisons):
        names = np.array(data.items)
        again = Comparisons.from_arrays(names[data.first], names[data.second], data.outcome, items=data.items)
        return (again.first == data.first).all() and data.weights.min() >= 0
    assert Rankings(data.ranks, data.items, counts=data.counts) == Rankings(
        data.ranks.copy(), data.items, counts=data.counts
    )
    return data.n_voters > 0 or not len(data)


def attack(folder, n_files, seed):
    rng = random.Random(seed)
    read, refusals = 0, []
    for number in range(n_files):
        name, text, options = ALL_SEEDS[number % len(ALL_SEEDS)]
        raw = damaged(text, rng).encode("utf-8")
        if rng.random() < 0.1:
            place = rng.randrange(len(raw) + 1)
            raw = raw[:place] + bytes([rng.randrange(256)]) + raw[place:]
        path = folder / name
        path.write_bytes(raw)
        try:
            data = rk.read(path, **options, max_bytes=10**7)
        except RankingError as error:
            refusals.append(str(error))
            continue
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} from {name}: {raw!r}") from error
        assert is_valid(data), raw
        read += 1
    assert all(text and "\n" not in text for text in refusals)
    return read


@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
def test_damaged_files(tmp_path):
    assert attack(tmp_path, 1500, seed=0) > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
def test_many_damaged_files(tmp_path):
    for seed in range(1, 101):
        attack(tmp_path, 2000, seed)
