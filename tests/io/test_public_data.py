"""Public data: downloads from the folder of the user, the cache and a server, and the SUSHI data."""

import functools
import hashlib
import http.server
import io
import os
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rankernel import RankingError, Rankings, fetch_preflib, fetch_sushi, load_sushi, read_preflib, write_preflib
from rankernel.errors import MissingExtraError
from rankernel.io import public_data
from rankernel.io.public_data import SUSHI_FILES

pooch = pytest.importorskip("pooch")

NAME = "00061-00000001.soi"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return an empty cache folder, without a folder of the user."""
    for name in ("RANKERNEL_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "cache"
    monkeypatch.setattr(pooch, "os_cache", lambda _: folder)
    return folder


@pytest.fixture
def site(tmp_path):
    """Return a folder, and the URL of a server of its files."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])  # seconds between checks for shutdown
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def closed_port():
    """Return a URL without a server."""
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        return f"http://127.0.0.1:{server.server_port}"


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def put_votes(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_preflib(Rankings([[0, 1, 1]], ["a", "b", "c"], counts=[5]), path)


def test_folder_of_the_user_comes_first(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKERNEL_DATA", str(tmp_path / "mine"))
    monkeypatch.setitem(sys.modules, "pooch", None)
    mine = tmp_path / "mine" / "preflib" / NAME
    put_votes(mine)
    assert fetch_preflib(NAME) == mine
    assert fetch_preflib(NAME, sha256=sha256(mine)) == mine
    with pytest.raises(RankingError, match="sha256="):
        fetch_preflib(NAME, sha256="0" * 64)


def test_checksums_in_folder_of_the_user(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKERNEL_DATA", str(tmp_path))
    name = next(iter(public_data.PREFLIB_SHA256))
    (tmp_path / "preflib").mkdir()
    (tmp_path / "preflib" / name).write_text("# changed")
    with pytest.raises(RankingError, match="sha256="):
        fetch_preflib(name)
    folder = tmp_path / public_data.SUSHI_FOLDER
    folder.mkdir()
    for each in public_data.SUSHI_FILES:
        (folder / each).write_text("changed")
    with pytest.raises(RankingError, match="sha256="):
        fetch_sushi()


def test_checksums_in_cache(cache, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    folder = public_data.cache_folder() / public_data.SUSHI_FOLDER
    folder.mkdir(parents=True)
    for each in public_data.SUSHI_FILES:
        (folder / each).write_text("changed")
    with pytest.raises(RankingError, match="sha256="):
        fetch_sushi()


def test_files_are_downloaded_once(cache, site, monkeypatch):
    folder, url = site
    put_votes(folder / NAME)
    path = fetch_preflib(NAME, url=f"{url}/{NAME}")
    assert path == cache / "preflib" / NAME
    assert read_preflib(path).n_voters == 5
    (folder / NAME).unlink()
    assert fetch_preflib(NAME, url=f"{url}/{NAME}") == path


def test_urls_are_tried_in_turn(cache, site, monkeypatch):
    folder, url = site
    name = "00002-00000009.soi"
    put_votes(folder / "00002 - debian" / name)
    addresses = (f"{closed_port()}/{{name}}", f"{url}/nowhere/{{name}}", f"{url}/{{number}} - {{series}}/{{name}}")
    monkeypatch.setattr(public_data, "PREFLIB_URLS", addresses)
    assert read_preflib(fetch_preflib(name)).n_voters == 5


def test_checksums(cache, site, monkeypatch):
    folder, url = site
    put_votes(folder / NAME)
    with pytest.raises(RankingError, match="sha256='000"):
        fetch_preflib(NAME, sha256="0" * 64, url=f"{url}/{NAME}")
    assert not (cache / "preflib" / NAME).exists()
    assert fetch_preflib(NAME, sha256=sha256(folder / NAME), url=f"{url}/{NAME}").exists()
    monkeypatch.setattr(public_data, "PREFLIB_URLS", (f"{url}/{{name}}",))
    known = "00001-00000001.soi"  # its checksum is built in, and this is not the file
    put_votes(folder / known)
    with pytest.raises(RankingError, match=f"sha256='{public_data.PREFLIB_SHA256[known]}"):
        fetch_preflib(known)


def test_error_page_is_deleted(cache, site):
    folder, url = site
    (folder / NAME).write_text("<html>Please log in</html>")
    with pytest.raises(RankingError, match="not a PrefLib file"):
        fetch_preflib(NAME, url=f"{url}/{NAME}")
    assert not (cache / "preflib" / NAME).exists()


def test_without_a_network(cache, monkeypatch):
    address = closed_port()
    monkeypatch.setattr(public_data, "PREFLIB_URLS", (address + "/{name}",))
    monkeypatch.setattr(public_data, "SUSHI_URL", f"{address}/sushi.zip")
    with pytest.raises(ConnectionError, match=r"00001-00000001\.soi.*\$RANKERNEL_DATA/preflib/00001"):
        fetch_preflib("00001-00000001.soi")
    with pytest.raises(ConnectionError, match=r"could not download sushi3-2016\.zip.*\$RANKERNEL_DATA"):
        fetch_sushi()


def test_without_pooch(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"rankernel\[fetch\]"):
        fetch_preflib("00001-00000001.soi")
    with pytest.raises(MissingExtraError, match=r"rankernel\[fetch\]"):
        fetch_sushi()


@pytest.mark.parametrize("name", ["dublin.soi", "../00001-00000001.soi", "00001-00000001.wmd", "00001-00000001.soi\n"])
def test_invalid_names(cache, name):
    with pytest.raises(RankingError, match="name="):
        fetch_preflib(name)


def test_unknown_series_needs_url(cache):
    with pytest.raises(RankingError, match=r"00061.*url"):
        fetch_preflib(NAME)
    assert [public_data.SERIES[number] for number in (1, 2, 8, 26, 34, 60)] == [
        "irish",
        "debian",
        "glasgow",
        "frenchapproval",
        "cities",
        "polkadot",
    ]


def test_invalid_url(cache):
    with pytest.raises(RankingError, match="url='nowhere://x'"):
        fetch_preflib(NAME, url="nowhere://x")


def archive(files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as members:
        for name, content in files.items():
            members.writestr(f"sushi3-2016/{name}", content)
    return raw.getvalue()


def test_sushi_archive_is_checked(cache, site, monkeypatch):
    folder, url = site
    files = {name: f"content of {name}" for name in SUSHI_FILES}
    (folder / "sushi.zip").write_bytes(archive({**files, "../../evil": "x"}))
    with pytest.raises(RankingError, match="is not the file of 2016"):
        fetch_sushi(url=f"{url}/sushi.zip")
    assert not (cache / "sushi3-2016").exists()
    sums = {name: hashlib.sha256(content.encode()).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(public_data, "SUSHI_SHA256", sums)
    with pytest.raises(RankingError, match="sha256="):
        fetch_sushi(url=f"{url}/sushi.zip", sha256="0" * 64)
    found = fetch_sushi(url=f"{url}/sushi.zip", sha256=sha256(folder / "sushi.zip"))
    assert {file.name: file.read_text() for file in found.iterdir()} == files
    (folder / "sushi.zip").unlink()
    assert fetch_sushi(url=f"{url}/sushi.zip") == found


@pytest.mark.parametrize("content", [b"<html>", archive({"sushi3.idata": "x"}), archive({})[:10]])
def test_invalid_archive_is_deleted(cache, site, content):
    folder, url = site
    (folder / "sushi.zip").write_bytes(content)
    with pytest.raises(RankingError, match="not the archive of the SUSHI data"):
        fetch_sushi(url=f"{url}/sushi.zip")
    assert [file for file in cache.rglob("*") if file.is_file()] == []


def test_checksums_of_real_files():
    root = os.environ.get("RANKERNEL_DATA")
    if not root:
        pytest.skip("RANKERNEL_DATA, the folder of the real data, is not set")
    assert {name: sha256(fetch_preflib(name)) for name in public_data.PREFLIB_SHA256} == public_data.PREFLIB_SHA256
    folder = fetch_sushi()
    assert {name: sha256(folder / name) for name in SUSHI_FILES} == public_data.SUSHI_SHA256
    assert len(load_sushi(folder).rankings) == 5000


# ---------------------------------------------------------------------- the SUSHI data

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


def test_set_a(folder):
    data = load_sushi(folder)
    assert data.items == data.rankings.items == SET_A
    assert data.rankings.is_full()
    assert data.rankings.to_orders()[0][:3] == ["toro", "maguro", "ebi"]


def test_set_b(folder):
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


def test_users_are_read_only(folder):
    with pytest.raises(ValueError, match="read-only"):
        load_sushi(folder).users["age"][0] = 1


def test_parent_folder(folder, tmp_path):
    above = tmp_path / "data"
    above.mkdir()
    inner = above / "sushi3-2016"
    inner.mkdir()
    for file in folder.glob("sushi3*"):
        if file.is_file():
            file.rename(inner / file.name)
    assert len(load_sushi(above).rankings) == 2


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"sushi3b\.5000.*https://www\.kamishima\.net/sushi/"):
        load_sushi(tmp_path, which="b")
    with pytest.raises(ValueError, match="which='c'"):
        load_sushi(tmp_path, which="c")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("sushi3a.5000.10.order", "", "line 1: the file is empty"),
        ("sushi3a.5000.10.order", "9 1\n", "line 1: expected"),
        ("sushi3a.5000.10.order", "10 1\n0 3 1 2\n", "line 2: expected 0, the length of the order"),
        ("sushi3a.5000.10.order", "10 1\n0 0\n", "line 2: expected 0, the length of the order"),
        ("sushi3a.5000.10.order", "10 1\n\n0 2 1 1\n", "line 3: an order names items from 0 to 9"),
        ("sushi3a.5000.10.order", "10 1\n0 1 10\n", "line 2: an order names items from 0 to 9"),
        ("sushi3a.5000.10.order", "10 1\n0 1 -1\n", "line 2: an order names items from 0 to 9"),
        ("sushi3a.5000.10.order", "10 1\n0 1 x\n", "line 2: expected integers; got '0 1 x'"),
        ("sushi3a.5000.10.order", "10 1\n0 1 3\n", "there are 2 users but 1 orders"),
        ("sushi3.udata", "1\t2\n", "line 1: expected 11 numbers about a user; got 2"),
        ("sushi3.idata", "0\tebi\n", "there are 1 items"),
        ("sushi3.idata", "".join(f"{i}\tsushi {i}\n" for i in range(29)), "there are 29 items"),
        ("sushi3.idata", "1\tebi\n", "line 1: expected item 0"),
        ("sushi3.idata", "".join(f"{i}\tsame\n" for i in range(100)), "both named 'same'"),
    ],
)
def test_damaged_sushi_files(folder, name, text, problem):
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


def test_real_sushi_data(real):
    a, b = load_sushi(real), load_sushi(real / "sushi3-2016", which="b")
    assert a.items == SET_A
    assert a.rankings.is_full()
    assert (len(a.rankings), a.rankings.n_items, len(b.rankings), b.rankings.n_items) == (5000, 10, 5000, 100)
    assert (b.rankings.n_free == 90).all()
    assert (b.rankings.n_buckets == 10).all()
    moved = a.users["prefecture"] != a.users["prefecture_until_15"]
    assert (a.users["moved"] == moved).all()
    assert set(np.unique(a.users["region"])) <= set(range(12))


def test_items_of_both_sets_agree(real):
    a, b = load_sushi(real).rankings, load_sushi(real, which="b").rankings
    shared = b.ranks[:, [b.items.index(name) for name in a.items]]
    mean_b = np.array([column[column >= 0].mean() for column in shared.T])
    correlation = np.corrcoef(a.ranks.mean(axis=0), mean_b)[0, 1]
    # With the numbers of set A as indices of the hundred items the correlation is -0.46.
    assert correlation > 0.98
