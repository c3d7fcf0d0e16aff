"""Real files: all are read, and agree with RCTab's tallies, other loaders, and a simple parser of BLT files."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from real_data import FOLDER, needs_data

import rankernel as rk

DATA = Path(FOLDER)
BLT = sorted(DATA.glob("scottish/*.blt")) + sorted(DATA.glob("blt/*.blt")) if FOLDER else []
WARDS = sorted(DATA.glob("scottish/*.csv")) if FOLDER else []
OTHERS = (
    "preflib/*.*",
    "label-ranking/*.txt",
    "sushi3-2016/*.order",
    "trec/*.trec",
    "trec/*.qrels",
    "arena/llmfao.csv",
)
FILES = [path for pattern in OTHERS for path in sorted(DATA.glob(pattern))] if FOLDER else []

RCTAB = {  # folder: the file in it, the options that state its rules
    "2013_minneapolis_park": ("2013_minneapolis_park_cvr.xlsx", {"skipped": 2, "overvotes": "skip"}),
    "2015_portland_mayor": ("2015_portland_mayor_cvr.xlsx", {"skipped": 1}),
    "aliases_ess_xlsx": (
        "aliases_ess_xlsx_cvr.xlsx",
        {"aliases": {"A-2": "A", "A-3": "A", "A-4": "A", "B": "B-2"}, "overvotes": "skip"},
    ),
    "clear_ballot_kansas_primary": ("clear_ballot_kansas_primary.cvr.csv", {}),
    "dominion_wyoming": ("wyoming_input_data", {"skipped": 1}),
    "hart_cedar_park_school_board": ("", {"contest": "CEDAR PARK SCHOOL BOARD"}),
}


def ballots(rankings):
    """Listed orders of names with their numbers of voters; the order of equal rows does not matter."""
    found = Counter()
    for order, count in zip(rankings.to_orders(), rankings.counts.tolist(), strict=True):
        found[tuple(frozenset([b]) if isinstance(b, str) else frozenset(b) for b in order)] += count
    return found


# ---------------------------------------------------------------------- elections


def simple_blt(path):
    """Names and ballots of a BLT file with one ballot and one name per line, without ties; written for this test."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    n_items = int(lines[0].split()[0])
    rows, at = [], 1
    while lines[at] != "0":
        if not lines[at].startswith(("[", "-")):
            count, *order, end = map(int, lines[at].split())
            assert end == 0
            rows.append((count, order))
        at += 1
    names = []
    for line in lines[at + 1 : at + 1 + n_items]:
        text = re.sub(r"^# ALTERNATIVE NAME \d+: ", "", line)
        if text.startswith('"'):
            text = next(csv.reader([text], delimiter=" "))[0]
        names.append(text.strip())
    found = Counter()
    for count, order in rows:
        if order:
            found[tuple(frozenset([names[number - 1]]) for number in order)] += count
    return names, found


@needs_data
@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
@pytest.mark.parametrize("path", BLT, ids=[path.name for path in BLT])
def test_blt_files(path):
    names, expected = simple_blt(path)
    votes = rk.read(path, unlisted="free")
    assert votes.items == tuple(names)
    assert ballots(votes) == expected
    assert votes.source.title
    assert "ALTERNATIVE" not in "".join(votes.items)


@needs_data
@pytest.mark.parametrize("path", WARDS, ids=[path.name for path in WARDS])
def test_scottish_tables(path):
    votes = rk.read(path, unlisted="free")
    rows = [[cell for cell in line.split(",") if cell.strip()] for line in path.read_text("utf-8").splitlines()]
    counted = [list(map(int, row)) for row in rows[1:] if row and all(cell.strip().isdecimal() for cell in row)]
    assert votes.n_voters == sum(row[0] for row in counted)
    assert len(votes.items) == int(rows[0][0])
    expected = Counter()
    for count, *order in counted:
        expected[tuple(frozenset([votes.items[number - 1]]) for number in order)] += count
    assert ballots(votes) == expected
    twin = path.with_suffix(".blt")
    if twin.exists():
        other = rk.read(twin, unlisted="free")
        assert (other.ranks.shape, other.n_voters) == (votes.ranks.shape, votes.n_voters)
        assert Counter(map(tuple, other.ranks.tolist())) == Counter(map(tuple, votes.ranks.tolist()))


@needs_data
@pytest.mark.parametrize("path", WARDS[:10], ids=[path.name for path in WARDS[:10]])
def test_votekit_loader(path):
    loaders = pytest.importorskip("votekit.cvr_loaders", reason="votekit is not installed")
    votes = rk.read(path, unlisted="free")
    profile = loaders.load_scottish(path)[0]
    assert ballots(rk.interop.from_votekit(profile, unlisted="free")) == ballots(votes)


# ---------------------------------------------------------------------- cast vote records


def rctab_tallies(folder):
    """First-round tallies of RCTab's report."""
    (report,) = folder.glob("*_expected_detailed_report.csv")
    rows = list(csv.reader(report.read_text(encoding="utf-8").splitlines()))
    start = next(number for number, row in enumerate(rows) if row and row[0] == "Rounds") + 3
    end = next(number for number, row in enumerate(rows) if row and row[0] == "Active Ballots")
    return {row[0]: int(row[1]) for row in rows[start:end]}


@needs_data
@pytest.mark.parametrize("case", RCTAB)
def test_first_round_tallies_of_rctab(case):
    if case.startswith("20") or "xlsx" in case:
        pytest.importorskip("openpyxl")
    name, options = RCTAB[case]
    votes = rk.read(DATA / "cvr" / case / name, write_ins="merge", unlisted="free", **options)
    first = dict.fromkeys(votes.items, 0)
    for order, count in zip(votes.to_orders(), votes.counts.tolist(), strict=True):
        first[order[0]] += count
    expected = rctab_tallies(DATA / "cvr" / case)
    expected["write-in"] = expected.pop("Undeclared Write-ins", 0)
    assert {name: first.get(name, 0) for name in expected} == expected
    assert sum(first.values()) == sum(expected.values())


@needs_data
def test_dominion_labels():
    votes = rk.read(DATA / "cvr/dominion_wyoming/wyoming_input_data")
    assert set(votes.labels) == {"Precinct", "Batch", "CountingGroup", "Tabulator"}
    assert "Albany County" in votes.labels["Precinct"]
    assert set(votes.labels["CountingGroup"]) <= {"Election Day", "Vote by Mail"}
    assert votes.ranks.max() > 1  # lower choices are read


@needs_data
def test_nist_undervote():
    path = DATA / "cvr/nist_xml_cdf_2/nist_xml_cdf_2.xml"
    with pytest.raises(rk.RankingError, match="blank='keep'"):
        rk.read(path, contest="Governor")
    votes = rk.read(path, contest="Governor", blank="keep")
    assert (len(votes), "Anita Rios and Bob Fitrakis" in votes.items, votes.source.repairs.blank) == (1, True, 1)


# ---------------------------------------------------------------------- others


@needs_data
@pytest.mark.filterwarnings("ignore::rankernel.ReadingWarning")
@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_other_files(path):
    data = rk.read(path)
    assert len(data) > 0
    assert data.n_items > 1


@needs_data
def test_battles():
    found = rk.io.read_comparisons(DATA / "arena/llmfao.csv")
    rows = list(csv.DictReader((DATA / "arena/llmfao.csv").read_text(encoding="utf-8").splitlines()))
    assert (len(found), len(found.items), len(found.judges)) == (8931, 59, 124)
    assert found.tied.sum() == sum(row["winner"] == "tie" for row in rows)
    wins = Counter(row[row["winner"]] for row in rows if row["winner"] != "tie")
    assert dict(zip(found.items, found.wins.sum(axis=1).tolist(), strict=True)) == {n: wins[n] for n in found.items}


@needs_data
@pytest.mark.parametrize("which", "ab")
def test_sushi_orders(which):
    path = DATA / f"sushi3-2016/sushi3{which}.5000.10.order"
    votes = rk.read(path)
    orders = [[int(word) for word in line.split()[2:]] for line in path.read_text().splitlines()[1:]]
    assert votes.to_orders() == [[str(item) for item in order] for order in orders]
    assert rk.read(path, unlisted="last").is_exhaustive()


@needs_data
def test_trec_run():
    votes = rk.read(DATA / "trec/test-one.trec")
    assert votes.labels["query"].tolist() == [str(number) for number in range(1, 10)]
    assert set(votes.labels["system"]) == {"System-X"}
    assert votes.to_orders()[0][:2] == ["docid-14396", "docid-5535"]
