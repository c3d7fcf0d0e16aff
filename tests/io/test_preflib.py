"""PrefLib files: reading, round trips, and errors for damaged files."""

import gzip
import os
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from preflibtools.instances import CategoricalInstance, OrdinalInstance
from strategies import any_ranking, bucket_orders, incomplete, permutations, sized, top_k

from rankernel.errors import RankingError
from rankernel.io import read_preflib, write_preflib
from rankernel.rankings import Rankings

FOLDER_KEPT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = (
    "00001-00000001.soi 00001-00000001.toc 00002-00000001.soi 00005-00000001.toi 00006-00000001.toc 00008-00000001.soi "
    "00008-00000002.soi 00011-00000001.soc 00011-00000004.soi 00021-00000001.toi 00026-00000001.cat 00026-00000001.toc "
    "00028-00000001.soi 00034-00000001.soi"
)


def preflib_file(name):
    root = os.environ.get("RANKERNEL_DATA")
    if not root:
        pytest.skip("RANKERNEL_DATA is not set: it is the folder of the real data")
    path = Path(root, "preflib", name)
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


def header(kind, n_items, voters, rows, names=None, categories=0):
    unique = "PREFERENCES" if kind == "cat" else "ORDERS"
    names = names or [f"item {number}" for number in range(1, n_items + 1)]
    lines = [f"# DATA TYPE: {kind}", f"# NUMBER ALTERNATIVES: {n_items}", f"# NUMBER VOTERS: {voters}"]
    lines += [f"# NUMBER UNIQUE {unique}: {rows}"] + [f"# NUMBER CATEGORIES: {categories}"] * bool(categories)
    return "\n".join(lines + [f"# ALTERNATIVE NAME {i}: {name}" for i, name in enumerate(names, 1)]) + "\n"


def naive_buckets(order):
    buckets, inside = [], None
    for sign in re.findall(r"\d+|[{}]", order):
        if sign == "{":
            inside = []
        elif sign == "}":
            buckets += [inside] if inside else []
            inside = None
        elif inside is None:
            buckets.append([int(sign)])
        else:
            inside.append(int(sign))
    return buckets


def naive_read(text, unlisted):
    """An oracle: one line after the other, split by hand."""
    lines = text.split("\n")
    stated = dict(re.match(r"# ([^:]*): ?(.*)", line).groups() for line in lines if line.startswith("#"))
    n_items = int(stated["NUMBER ALTERNATIVES"])
    ranks, counts = [], []
    for line in lines:
        if line and not line.startswith("#"):
            count, order = line.split(":")
            buckets = naive_buckets(order)
            row = [len(buckets) if unlisted == "last" else -1] * n_items
            for rank, bucket in enumerate(buckets):
                for alternative in bucket:
                    row[alternative - 1] = rank
            ranks.append(row)
            counts.append(int(count))
    return ranks, counts, [stated[f"ALTERNATIVE NAME {i + 1}"].strip() for i in range(n_items)], stated


# ---------------------------------------------------------------------- real files


@pytest.mark.parametrize("unlisted", ["last", "free"])
@pytest.mark.parametrize("name", NAMES.split())
def test_real_files(name, unlisted):
    path = preflib_file(name)
    ranks, counts, names, stated = naive_read(path.read_text("utf-8"), unlisted)
    rankings = read_preflib(path, unlisted=unlisted)
    assert rankings.ranks.tolist() == ranks
    assert rankings.counts.tolist() == counts
    assert list(rankings.items) == names
    assert rankings.n_voters == int(stated["NUMBER VOTERS"])
    unique = stated.get("NUMBER UNIQUE ORDERS") or stated["NUMBER UNIQUE PREFERENCES"]
    assert len(rankings) == int(unique)


@pytest.mark.parametrize("name", NAMES.split())
def test_round_trip_of_real_files(name, tmp_path):
    kind = name[-3:]
    unlisted = "last" if kind in ("soc", "soi", "toc") else "free"
    rankings = read_preflib(preflib_file(name), unlisted=unlisted)
    write_preflib(rankings, tmp_path / name, title="again")
    assert read_preflib(tmp_path / name, unlisted=unlisted) == rankings.unique()


def test_toc_equals_soi_with_last():
    short = read_preflib(preflib_file("00001-00000001.soi"), unlisted="last")
    complete = read_preflib(preflib_file("00001-00000001.toc"), unlisted="free")

    def profile(rankings):
        return Counter({row.tobytes(): int(c) for row, c in zip(rankings.ranks, rankings.counts, strict=True)})

    assert profile(short.unique()) == profile(complete)
    assert (len(short), len(short.unique()), len(complete)) == (19299, 19297, 19297)


# ---------------------------------------------------------------------- writing and reading back


def rankings_of(rows, seed=0):
    counts = random.Random(seed).choices(range(1, 9), k=len(rows))
    return Rankings(rows, [f"item {chr(97 + i)}: #{i}" for i in range(len(rows[0]))], counts=counts)


def unlisted_for(rankings):
    return "last" if rankings.is_exhaustive() else "free"


LISTING = any_ranking(4).filter(lambda row: max(row) >= 0)


@FOLDER_KEPT
@given(st.lists(LISTING, min_size=1, max_size=5), st.sampled_from(["", ".gz"]))
def test_round_trip_with_detected_kind(tmp_path, rows, gz):
    rankings = rankings_of(rows)
    path = tmp_path / f"votes.txt{gz}"
    write_preflib(rankings, path, overwrite=True)
    assert read_preflib(path, unlisted=unlisted_for(rankings)) == rankings.unique()


@FOLDER_KEPT
@given(st.data(), st.sampled_from(["soc", "soi", "toc", "toi", "cat"]))
def test_round_trip_of_each_kind(tmp_path, data, kind):
    makers = {"soc": permutations, "soi": top_k, "toc": bucket_orders, "toi": incomplete, "cat": any_ranking}
    rows = data.draw(sized(makers[kind], low=1, high=5, length=4))
    rankings = rankings_of(rows)
    path = tmp_path / f"votes.{kind}"
    # An order that lists no alternative cannot be represented.
    longest = [max(row) for row in rows]
    if (kind == "soi" and len(rows[0]) > 1 and min(longest) == 0) or (kind == "toi" and min(longest) < 0):
        with pytest.raises(RankingError, match="row"):
            write_preflib(rankings, path, overwrite=True)
        return
    write_preflib(rankings, path, overwrite=True)
    assert read_preflib(path, unlisted=unlisted_for(rankings)) == rankings.unique()
    if kind in ("soc", "toc", "cat") and rankings.is_exhaustive():
        assert read_preflib(path, unlisted="last") == read_preflib(path, unlisted="free")


@FOLDER_KEPT
@given(st.lists(incomplete(4, ties=False).filter(lambda row: max(row) >= 0), min_size=1, max_size=5))
def test_round_trip_of_incomplete_soi(tmp_path, rows):
    rankings = rankings_of(rows)
    write_preflib(rankings, tmp_path / "votes.soi", overwrite=True)
    assert read_preflib(tmp_path / "votes.soi", unlisted=unlisted_for(rankings)) == rankings.unique()


@FOLDER_KEPT
@given(st.lists(LISTING, min_size=1, max_size=5))
def test_preflibtools_agrees(tmp_path, rows):
    rankings = rankings_of(rows)
    plain = tmp_path / "votes.txt"
    write_preflib(rankings, plain, overwrite=True)
    kind = re.search("DATA TYPE: (...)", plain.read_text()).group(1)
    path = tmp_path / f"votes.{kind}"
    write_preflib(rankings, path, overwrite=True)
    instance = OrdinalInstance()
    instance.parse_file(str(path))
    read = read_preflib(path, unlisted="free")
    assert instance.num_voters == rankings.n_voters
    assert [name for _, name in sorted(instance.alternatives_name.items())] == list(rankings.items)
    places = {name: number for number, name in enumerate(rankings.items, 1)}
    ours = [
        tuple(tuple(sorted(places[n] for n in ({b} if isinstance(b, str) else b))) for b in order)
        for order in read.to_orders()
    ]
    assert [tuple(tuple(sorted(tie)) for tie in order) for order in instance.orders] == ours
    assert [instance.multiplicity[order] for order in instance.orders] == read.counts.tolist()


def test_preflibtools_agrees_on_categories(tmp_path):
    rankings = Rankings([[0, 1, 1], [0, 0, -1], [2, 1, 0], [-1, -1, -1]], ["a", "b", "c"], counts=[4, 3, 2, 1])
    write_preflib(rankings, tmp_path / "votes.cat")
    instance = CategoricalInstance()
    instance.parse_file(str(tmp_path / "votes.cat"))
    assert (instance.num_voters, instance.num_categories, instance.num_unique_preferences) == (10, 3, 4)
    assert read_preflib(tmp_path / "votes.cat", unlisted="free") == rankings


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[0, 1, 2], [2, 1, 0]], "soc"),
        ([[0, 1, 2], [0, 1, 1]], "soi"),
        ([[0, 1, -1]], "soi"),
        ([[0, 0, 1]], "toc"),
        ([[0, 0, 0]], "toc"),
        ([[0, 0, -1]], "toi"),
        ([[0, 1, 1], [0, 1, -1]], "toi"),
    ],
)
def test_detected_kind(tmp_path, rows, kind):
    write_preflib(Rankings(rows), tmp_path / "votes", title="A title")
    text = (tmp_path / "votes").read_text()
    assert f"# DATA TYPE: {kind}\n" in text
    assert "# TITLE: A title\n" in text
    assert read_preflib(tmp_path / "votes", unlisted=unlisted_for(Rankings(rows))) == Rankings(rows)


@pytest.mark.parametrize(
    ("rows", "kind", "advice"),
    [
        ([[0, 1, 1]], "soc", "write toc"),
        ([[0, 0, 1]], "soi", "write toc"),
        ([[0, 0, 0]], "soi", "write toc"),
        ([[0, 1, -1]], "toc", "write toi"),
        ([[0, 1, 1], [0, 1, -1]], "soi", "write toi"),
        ([[-1, -1, -1]], "toi", "write cat"),
        ([[0, 1, 2], [-1, -1, -1]], "soi", "write cat"),
    ],
)
def test_kind_that_does_not_fit(tmp_path, rows, kind, advice):
    with pytest.raises(RankingError, match=re.escape(advice)):
        write_preflib(Rankings(rows), tmp_path / "votes", kind=kind)
    assert list(tmp_path.iterdir()) == []


def test_equal_rows_are_merged(tmp_path):
    write_preflib(Rankings([[0, 1], [1, 0], [0, 1]], counts=[2, 1, 5]), tmp_path / "votes.soc")
    assert (tmp_path / "votes.soc").read_text().endswith("\n7: 1,2\n1: 2,1\n")


def test_no_rankings(tmp_path):
    none = Rankings(np.empty((0, 2)), ["a", "b"])
    write_preflib(none, tmp_path / "votes.soc")
    assert read_preflib(tmp_path / "votes.soc") == none


@pytest.mark.parametrize("name", ["two\nlines", "a\rb", "bell\a", "\u2028", "a\x85b", "", " x", "x\u00a0", "\ud800"])
def test_unwritable_names(tmp_path, name):
    with pytest.raises(RankingError):
        write_preflib(Rankings([[0, 1]], ["a", name]), tmp_path / "votes.soc")
    with pytest.raises(RankingError, match="title"):
        write_preflib(Rankings([[0, 1]]), tmp_path / "votes.soc", title=name)
    assert list(tmp_path.iterdir()) == []


@FOLDER_KEPT
@given(st.lists(st.text(max_size=6), min_size=2, max_size=4, unique=True))
def test_names_round_trip(tmp_path, names):
    rankings = Rankings([list(range(len(names)))], names)
    try:
        write_preflib(rankings, tmp_path / "votes.soc", overwrite=True)
    except RankingError:
        return
    assert read_preflib(tmp_path / "votes.soc") == rankings


def test_kind_contradicts_suffix(tmp_path):
    with pytest.raises(RankingError, match="kind='soc'"):
        write_preflib(Rankings([[0, 1]]), tmp_path / "votes.soi", kind="soc")
    with pytest.raises(ValueError, match="kind='sox'"):
        write_preflib(Rankings([[0, 1]]), tmp_path / "votes", kind="sox")


def test_existing_file_is_kept(tmp_path):
    path = tmp_path / "votes.soc"
    path.write_text("mine")
    path.chmod(0o640)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_preflib(Rankings([[0, 1]]), path)
    assert path.read_text() == "mine"
    write_preflib(Rankings([[0, 1]]), path, overwrite=True)
    assert read_preflib(path) == Rankings([[0, 1]], ["0", "1"])
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["votes.soc"]


def test_failed_write_leaves_no_file(tmp_path, monkeypatch):
    path = tmp_path / "votes.soc"
    path.write_text("mine")

    def full_disk(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="disk full"):
        write_preflib(Rankings([[0, 1]]), path, overwrite=True)
    assert path.read_text() == "mine"
    assert [file.name for file in tmp_path.iterdir()] == ["votes.soc"]


def test_gzip_has_no_time_stamp(tmp_path):
    rankings = Rankings([[0, 1]])
    write_preflib(rankings, tmp_path / "votes.soc.gz", title="t")
    raw = (tmp_path / "votes.soc.gz").read_bytes()
    assert gzip.decompress(raw).endswith(b"1: 1,2\n")
    assert raw[4:8] == b"\0\0\0\0"


# ---------------------------------------------------------------------- reading by hand


def read(tmp_path, text, name="votes.txt", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return read_preflib(path, **options)


def test_categories(tmp_path):
    text = header("cat", 4, 10, 4, categories=3) + "4: 1,{},{2,3,4}\n3: {},{},{}\n2: {1,2},{},3\n1: {},{1,2},3\n"
    assert read(tmp_path, text).ranks.tolist() == [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 2], [0, 0, 1, 2]]
    free = read(tmp_path, text, unlisted="free").ranks.tolist()
    assert free == [[0, 1, 1, 1], [-1, -1, -1, -1], [0, 0, 1, -1], [0, 0, 1, -1]]


def test_spaces_line_ends_and_byte_order_marks(tmp_path):
    text = header("toi", 3, 6, 3) + "\n3 : 1 , { 3,2 } \n\n2: 2\n1:{3}\n\n"
    expected = Rankings([[0, 1, 1], [1, 0, 1], [1, 1, 0]], ["item 1", "item 2", "item 3"], counts=[3, 2, 1])
    assert read(tmp_path, text) == expected
    assert read(tmp_path, text.replace("\n", "\r\n")) == expected
    assert read(tmp_path, "\ufeff" + text) == expected
    assert read(tmp_path, gzip.compress(text.encode()), "votes.gz") == expected
    assert read(tmp_path, gzip.compress(text.encode()), "no-suffix") == expected
    assert read(tmp_path, text.rstrip()) == expected


def test_kind_by_suffix(tmp_path):
    text = header("soi", 2, 1, 1).replace("# DATA TYPE: soi\n", "") + "1: 2\n"
    assert read(tmp_path, text, "votes.soi").ranks.tolist() == [[1, 0]]
    assert read(tmp_path, gzip.compress(text.encode()), "votes.SOI.gz").ranks.tolist() == [[1, 0]]
    with pytest.raises(RankingError, match=r"votes\.txt: neither"):
        read(tmp_path, text)


def test_encodings(tmp_path):
    text = header("soc", 2, 1, 1, ["Zoë", "Jo"]) + "1: 2,1\n"
    assert read(tmp_path, text.encode("latin-1"), encoding="latin-1").items == ("Zoë", "Jo")
    with pytest.raises(RankingError, match=r"votes\.txt, line 5: byte 0xeb \(number \d+ .*encoding='latin-1'"):
        read(tmp_path, text.encode("latin-1"))
    for encoding in ("no-such-thing", "hex"):
        with pytest.raises(ValueError, match="encoding="):
            read(tmp_path, text, encoding=encoding)


GOOD = header("toi", 3, 6, 3) + "3: 1,{3,2}\n2: 2\n1: 3,1\n"
BROKEN = {
    "empty": ("", 1, "no PrefLib header"),
    "brace left open": (GOOD.replace("3,2}", "3,2"), 8, "brace"),
    "brace never opened": (GOOD.replace("{3,2}", "3,2}"), 8, "brace"),
    "brace in brace": (GOOD.replace("{3,2}", "{3,{2}}"), 8, "not a comma-separated list"),
    "brace across lines": (GOOD.replace("3,2}\n2: 2", "3\n2: 2}"), 8, "brace"),
    "crossed braces": (GOOD.replace("{3,2}", "}3,2{"), 8, "not a comma-separated list"),
    "unknown alternative": (GOOD.replace("2: 2", "2: 4"), 9, "alternative 4 is unknown"),
    "alternative zero": (GOOD.replace("2: 2", "2: 0"), 9, "alternative 0 is unknown"),
    "repeated alternative": (GOOD.replace("1: 3,1", "1: 3,3"), 10, "alternative 3 is listed twice"),
    "repeated in tie": (GOOD.replace("{3,2}", "{3,3}"), 8, "alternative 3 is listed twice"),
    "count negative": (GOOD.replace("2: 2", "-2: 2"), 9, "expected a count"),
    "count missing": (GOOD.replace("2: 2", ": 2"), 9, "expected a count"),
    "count not whole": (GOOD.replace("2: 2", "2.0: 2"), 9, "expected a count"),
    "count huge": (GOOD.replace("2: 2", "2" * 30 + ": 2"), 9, "more than 18 digits"),
    "digits of another script": (GOOD.replace("2: 2", "٢: 2"), 9, "expected a count"),
    "underscore": (GOOD.replace("2: 2", "2: 0_2"), 9, "not a comma-separated list"),
    "no colon": (GOOD.replace("2: 2", "2 2"), 9, "expected a count"),
    "two colons": (GOOD.replace("2: 2", "2: 2: 1"), 9, "not a comma-separated list"),
    "blank inside a number": (GOOD.replace("1: 3,1", "1: 3 1"), 10, "not a comma-separated list"),
    "comma at the end": (GOOD.replace("2: 2", "2: 2,"), 9, "not a comma-separated list"),
    "nothing listed": (GOOD.replace("2: 2", "2: "), 9, "lists no alternative"),
    "empty tie": (GOOD.replace("2: 2", "2: 2,{}"), 9, "empty tie"),
    "zero byte": (GOOD.replace("2: 2", "2: \0"), 9, "not a comma-separated list"),
    "late header": (GOOD.replace("2: 2", "# 2: 2"), 9, "header line"),
    "order given twice": (GOOD.replace("1: 3,1", "1: 1,{2,3}"), 10, "line 8"),
    "too few voters": (GOOD.replace("VOTERS: 6", "VOTERS: 7"), 3, "NUMBER VOTERS is 7"),
    "too few rows": (GOOD.replace("1: 3,1\n", ""), 4, "NUMBER UNIQUE ORDERS is 3"),
    "too few names": (GOOD.replace("VES: 3", "VES: 4"), 2, "4 alternatives"),
    "no alternatives": (header("soc", 0, 0, 0, ["a"]).replace("# ALTERNATIVE NAME 1: a", "#"), None, "no items"),
    "names skip a number": (GOOD.replace("NAME 3", "NAME 4"), None, "ALTERNATIVE NAME 3"),
    "two equal names": (GOOD.replace("item 3", "item 2"), None, "both named 'item 2'"),
    "key given twice": (GOOD.replace("# DATA", "# NUMBER VOTERS: 6\n# DATA"), 4, "line 1"),
    "voters not a number": (GOOD.replace("VOTERS: 6", "VOTERS: six"), 3, "NUMBER VOTERS is 'six'"),
    "voters missing": (GOOD.replace("# NUMBER VOTERS: 6\n", ""), None, "no line '# NUMBER VOTERS"),
    "unknown kind": (GOOD.replace("toi", "wmd"), 1, "'wmd'"),
    "a tie in soi": (GOOD.replace("toi", "soi"), 8, "has a tie"),
    "short in toc": (GOOD.replace("toi", "toc"), 9, "lacks alternatives"),
    "short in soc": (GOOD.replace("toi", "soc").replace("{3,2}", "3,2"), 9, "lacks alternatives"),
    "too few categories": (header("cat", 2, 1, 1, categories=2) + "1: {1,2}\n", 8, "2 categories"),
    "too many categories": (header("cat", 2, 1, 1, categories=1) + "1: 1,2\n", 8, "1 categories"),
    "categories missing": (header("cat", 2, 1, 1) + "1: 1,2\n", None, "no line '# NUMBER CATEGORIES"),
    "binary": (bytes(range(1, 128)) * 3, 1, "no PrefLib header"),
    "cut gzip": (gzip.compress(GOOD.encode())[:-12], None, "gzip data"),
    "damaged gzip": (b"\x1f\x8b" + b"junk" * 9, None, "gzip data"),
    "gzip in name only": (GOOD, None, "gzip data"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_damaged_files(tmp_path, case):
    text, line, problem = BROKEN[case]
    name = "votes.soi.gz" if case == "gzip in name only" else "votes.soi"
    where = re.escape(f"{name}, line {line}: " if line else f"{name}: ")
    with pytest.raises(RankingError, match=f"^{where}.*{re.escape(problem)}"):
        read(tmp_path, text, name)


def test_undamaged_file(tmp_path):
    assert read(tmp_path, GOOD).ranks.tolist() == [[0, 1, 1], [1, 0, 1], [1, 2, 0]]


def test_options_are_checked_first():
    with pytest.raises(ValueError, match="unlisted="):
        read_preflib("no-such-file.soi", unlisted="first")


# ---------------------------------------------------------------------- fuzzing

VALID = [
    GOOD.encode(),
    (header("cat", 3, 6, 3, categories=2) + "3: {},{1,2,3}\n2: 1,{2,3}\n1: {1,2},3\n").encode(),
    (header("soi", 12, 30, 3) + "20: 12,6,4\n7: 10\n3: 1,2,3,4,5,6,7,8,9,10,11,12\n").encode(),
]
PIECES = [bytes([byte]) for byte in b"0123456789:,{}#\n\r \t-_"] + ["é".encode(), b"\xff", b"\0", b"12: ", b"{}"]


@st.composite
def mutated(draw):
    raw = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        stop = min(len(raw), start + draw(st.integers(0, 3)))
        raw = raw[:start] + draw(st.sampled_from([b"", *PIECES])) + raw[stop:]
    return raw


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutated() | st.binary(max_size=80) | st.binary(max_size=40).map(lambda tail: VALID[0] + tail))
def test_mutated_files(tmp_path, raw):
    try:
        rankings = read(tmp_path, raw, "votes.toi", unlisted="free")
    except RankingError:
        return
    # Files that pass must agree with a slower reading and with their header.
    text = raw.decode().removeprefix("\ufeff").replace("\r", "").replace(" ", "").replace("\t", "")
    body = [line for line in text.split("\n") if line and not line.startswith("#")]
    stated = {key: int(n) for key, n in re.findall(r"#(NUMBER\w+):(\d+)(?=\n|$)", text)}
    assert sum(int(line.split(":")[0]) for line in body) == rankings.n_voters == stated["NUMBERVOTERS"]
    unique = stated.get("NUMBERUNIQUEORDERS", stated.get("NUMBERUNIQUEPREFERENCES"))
    assert len(body) == len(rankings) == unique
    assert rankings.n_items == stated["NUMBERALTERNATIVES"]
    for line, row in zip(body, rankings.ranks, strict=True):
        found = [sorted(np.flatnonzero(row == rank) + 1) for rank in range(row.max() + 1)]
        assert found == [sorted(bucket) for bucket in naive_buckets(line.split(":")[1])]
