"""Hostile and damaged files: an error with the name of the file, in little time and memory."""

import gzip
import io
import json
import lzma
import os
import tracemalloc
import zipfile

import pytest

import rankernel as rk
from rankernel import RankingError


class Endless:
    """A file that never ends."""

    name = "endless.csv"

    def read(self, size):
        return b"1,2\n" * (size // 4)


def peak_of_refusal(path, **options):
    """Return the peak memory in bytes of reading a file that is refused."""
    with pytest.raises(RankingError):  # imports
        rk.read(path, **options)
    tracemalloc.start()
    try:
        with pytest.raises(RankingError, match=getattr(path, "name", "")):
            rk.read(path, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_endless_files():
    with pytest.raises(RankingError, match=r"endless\.csv.*max_bytes"):
        rk.read(Endless(), max_bytes=10**6)
    if os.path.exists("/dev/zero"):
        with pytest.raises(RankingError, match=r"zero: .*device"):
            rk.read("/dev/zero", format="table")


def test_many_rows_in_few_bytes(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"tea,milk\n" + b"1,2\n" * 15_000_000))
    assert path.stat().st_size < 70_000
    assert peak_of_refusal(path) < 2**26


def test_false_size_in_archive(tmp_path):
    path = tmp_path / "cvr.zip"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("CvrExport.json", b" " * 200_000_000)
    raw = content.getvalue().replace((200_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(raw)
    assert peak_of_refusal(path) < 2**27


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.zip", b"PK\x03\x04 broken"),
        ("b.xlsx", b"PK\x03\x04 broken"),
        ("c.csv.gz", b"\x1f\x8b broken"),
        ("d.json", b"[" * 100_000),
        ("e.json", b'{"Sessions": ' + b"9" * 5000 + b"}"),
        ("f.xml", b"<Cvr><Contests>"),
        ("g.xml", b'<!DOCTYPE x [<!ENTITY a "b">]><Cvr>&a;</Cvr>'),
        ("h.xml", b"<a>" * 100_000 + b"</a>" * 100_000),
        ("i.parquet", b"PAR1" + bytes(100)),
        ("j.csv", b"choice 1,count\nAnn," + b"9" * 5000 + b"\n"),
        ("k.csv", b"tea,milk\n" + b"9" * 5000 + b",1\n"),
        ("l.blt", b"2 1\n" + b"9" * 5000 + b" 1 0\n0\nAnn\nBob\n"),
        ("m.soi", b"# NUMBER ALTERNATIVES: " + b"9" * 5000 + b"\n1: 1\n"),
        ("n.csv", b"x" * 5000 + b",milk\n1,2\n9,9\n"),
        ("o.csv", b"user,item,rank\na,b," + b"9" * 5000 + b"\n"),
    ],
)
def test_damaged_content(tmp_path, name, content):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RankingError, match=name) as caught:
        rk.read(path)
    assert len(str(caught.value)) < 1000


def test_lzma_in_archive(tmp_path):
    path = tmp_path / "cvr.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("CvrExport.json", json.dumps({"Sessions": []}) * 50)
    raw = bytearray(path.read_bytes())
    raw[60:80] = bytes(20)
    path.write_bytes(raw)
    with pytest.raises(RankingError, match=r"cvr\.zip"):
        rk.read(path)
    assert lzma  # the exception of this module is the cause


def test_high_ranks_and_many_names(tmp_path):
    mark = {"CandidateId": 1, "Rank": 10_000}
    session = {"Original": {"Contests": [{"Id": 7, "Marks": [mark]}]}}
    (tmp_path / "CvrExport.json").write_text(json.dumps({"Sessions": [session] * 2000}))
    assert len(rk.read(tmp_path / "CvrExport.json")) == 2000
    second = {"CandidateId": 2, "Rank": 10**40}
    session["Original"]["Contests"][0]["Marks"] = [second, mark]
    (tmp_path / "CvrExport.json").write_text(json.dumps({"Sessions": [session] * 3}))
    assert rk.read(tmp_path / "CvrExport.json").ranks.tolist() == [[1, 0]] * 3
    session["Original"]["Contests"][0]["Marks"] = [mark]
    entries = [{"Id": number, "Description": "same"} for number in range(20_000)]
    (tmp_path / "ContestManifest.json").write_text(json.dumps({"List": entries}))
    mark["Rank"] = 2
    (tmp_path / "CvrExport.json").write_text(json.dumps({"Sessions": [session]}))
    assert len(rk.read(tmp_path / "CvrExport.json")) == 1
