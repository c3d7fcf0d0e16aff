"""Fetching public data: from the folder of the user, from the cache, from a server, and without any of them."""

import functools
import hashlib
import http.server
import io
import os
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from rankernel.errors import MissingExtraError, RankingError
from rankernel.io import fetch, fetch_preflib, fetch_sushi, load_sushi, read_preflib, write_preflib
from rankernel.io.sushi import SUSHI_FILES
from rankernel.rankings import Rankings

pooch = pytest.importorskip("pooch")

NAME = "00061-00000001.soi"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no data of the user."""
    for name in ("RANKERNEL_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "cache"
    monkeypatch.setattr(pooch, "os_cache", lambda _: folder)
    return folder


@pytest.fixture
def site(tmp_path):
    """A folder, and the address at which a server gives out its files."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])  # seconds until it sees that it is to end
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def closed_port():
    """An address at which nobody answers."""
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        return f"http://127.0.0.1:{server.server_port}"


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def put_votes(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_preflib(Rankings([[0, 1, 1]], ["a", "b", "c"], [5]), path)


def test_the_folder_of_the_user_comes_first(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKERNEL_DATA", str(tmp_path / "mine"))
    monkeypatch.setitem(sys.modules, "pooch", None)
    mine = tmp_path / "mine" / "preflib" / NAME
    put_votes(mine)
    assert fetch_preflib(NAME) == mine
    assert fetch_preflib(NAME, sha256=sha256(mine)) == mine
    with pytest.raises(RankingError, match="has the checksum sha256:"):
        fetch_preflib(NAME, sha256="0" * 64)


def test_built_in_checksums_hold_in_the_folder_of_the_user(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKERNEL_DATA", str(tmp_path))
    name = next(iter(fetch.PREFLIB_SHA256))
    (tmp_path / "preflib").mkdir()
    (tmp_path / "preflib" / name).write_text("# changed")
    with pytest.raises(RankingError, match="has the checksum sha256:"):
        fetch_preflib(name)
    folder = tmp_path / fetch.SUSHI_FOLDER
    folder.mkdir()
    for each in fetch.SUSHI_FILES:
        (folder / each).write_text("changed")
    with pytest.raises(RankingError, match="has the checksum sha256:"):
        fetch_sushi()


def test_built_in_checksums_hold_in_the_cache(cache, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    folder = fetch.cache() / fetch.SUSHI_FOLDER
    folder.mkdir(parents=True)
    for each in fetch.SUSHI_FILES:
        (folder / each).write_text("changed")
    with pytest.raises(RankingError, match="has the checksum sha256:"):
        fetch_sushi()


def test_a_file_is_fetched_once(cache, site, monkeypatch):
    folder, url = site
    put_votes(folder / NAME)
    path = fetch_preflib(NAME, url=f"{url}/{NAME}")
    assert path == cache / "preflib" / NAME
    assert read_preflib(path).n_voters == 5
    (folder / NAME).unlink()
    assert fetch_preflib(NAME, url=f"{url}/{NAME}") == path


def test_addresses_are_tried_in_turn(cache, site, monkeypatch):
    folder, url = site
    name = "00002-00000009.soi"
    put_votes(folder / "00002 - debian" / name)
    addresses = (f"{closed_port()}/{{name}}", f"{url}/nowhere/{{name}}", f"{url}/{{number}} - {{series}}/{{name}}")
    monkeypatch.setattr(fetch, "PREFLIB_URLS", addresses)
    assert read_preflib(fetch_preflib(name)).n_voters == 5


def test_checksums(cache, site, monkeypatch):
    folder, url = site
    put_votes(folder / NAME)
    with pytest.raises(RankingError, match="has not the checksum sha256:000"):
        fetch_preflib(NAME, sha256="0" * 64, url=f"{url}/{NAME}")
    assert not (cache / "preflib" / NAME).exists()
    assert fetch_preflib(NAME, sha256=sha256(folder / NAME), url=f"{url}/{NAME}").exists()
    monkeypatch.setattr(fetch, "PREFLIB_URLS", (f"{url}/{{name}}",))
    known = "00001-00000001.soi"  # its checksum is built in, and this is not the file
    put_votes(folder / known)
    with pytest.raises(RankingError, match=f"has not the checksum sha256:{fetch.PREFLIB_SHA256[known]}"):
        fetch_preflib(known)


def test_an_error_page_is_not_kept(cache, site):
    folder, url = site
    (folder / NAME).write_text("<html>Please log in</html>")
    with pytest.raises(RankingError, match="not a PrefLib file"):
        fetch_preflib(NAME, url=f"{url}/{NAME}")
    assert not (cache / "preflib" / NAME).exists()


def test_without_a_network(cache, monkeypatch):
    address = closed_port()
    monkeypatch.setattr(fetch, "PREFLIB_URLS", (address + "/{name}",))
    monkeypatch.setattr(fetch, "SUSHI_URL", f"{address}/sushi.zip")
    with pytest.raises(ConnectionError, match=r"could not fetch 00001-00000001\.soi.*\$RANKERNEL_DATA/preflib/00001"):
        fetch_preflib("00001-00000001.soi")
    with pytest.raises(ConnectionError, match=r"could not fetch sushi3-2016\.zip.*\$RANKERNEL_DATA"):
        fetch_sushi()


def test_without_pooch(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"rankernel\[fetch\]"):
        fetch_preflib("00001-00000001.soi")
    with pytest.raises(MissingExtraError, match=r"rankernel\[fetch\]"):
        fetch_sushi()


@pytest.mark.parametrize("name", ["dublin.soi", "../00001-00000001.soi", "00001-00000001.wmd", "00001-00000001.soi\n"])
def test_names_are_checked(cache, name):
    with pytest.raises(RankingError, match="is not the name of a PrefLib file"):
        fetch_preflib(name)


def test_series_that_are_not_known_need_an_address(cache):
    with pytest.raises(RankingError, match="series 00061 of PrefLib is not known here"):
        fetch_preflib(NAME)
    assert [fetch.SERIES[number] for number in (1, 2, 8, 26, 34, 60)] == [
        "irish",
        "debian",
        "glasgow",
        "frenchapproval",
        "cities",
        "polkadot",
    ]


def test_an_address_of_no_kind(cache):
    with pytest.raises(RankingError, match="nowhere://x cannot be fetched"):
        fetch_preflib(NAME, url="nowhere://x")


def archive(files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as members:
        for name, content in files.items():
            members.writestr(f"sushi3-2016/{name}", content)
    return raw.getvalue()


def test_sushi_is_unpacked_and_checked(cache, site, monkeypatch):
    folder, url = site
    files = {name: f"content of {name}" for name in SUSHI_FILES}
    (folder / "sushi.zip").write_bytes(archive({**files, "../../evil": "x"}))
    with pytest.raises(RankingError, match="is not the file of 2016"):
        fetch_sushi(url=f"{url}/sushi.zip")
    assert not (cache / "sushi3-2016").exists()
    sums = {name: hashlib.sha256(content.encode()).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(fetch, "SUSHI_SHA256", sums)
    with pytest.raises(RankingError, match="has not the checksum"):
        fetch_sushi(url=f"{url}/sushi.zip", sha256="0" * 64)
    found = fetch_sushi(url=f"{url}/sushi.zip", sha256=sha256(folder / "sushi.zip"))
    assert {file.name: file.read_text() for file in found.iterdir()} == files
    (folder / "sushi.zip").unlink()
    assert fetch_sushi(url=f"{url}/sushi.zip") == found


@pytest.mark.parametrize("content", [b"<html>", archive({"sushi3.idata": "x"}), archive({})[:10]])
def test_an_archive_that_is_none_is_not_kept(cache, site, content):
    folder, url = site
    (folder / "sushi.zip").write_bytes(content)
    with pytest.raises(RankingError, match="not the archive of the SUSHI data"):
        fetch_sushi(url=f"{url}/sushi.zip")
    assert [file for file in cache.rglob("*") if file.is_file()] == []


def test_the_real_files_have_the_checksums_that_are_built_in():
    root = os.environ.get("RANKERNEL_DATA")
    if not root:
        pytest.skip("RANKERNEL_DATA is not set: it is the folder of the real data")
    assert {name: sha256(fetch_preflib(name)) for name in fetch.PREFLIB_SHA256} == fetch.PREFLIB_SHA256
    folder = fetch_sushi()
    assert {name: sha256(folder / name) for name in SUSHI_FILES} == fetch.SUSHI_SHA256
    assert len(load_sushi(folder).rankings) == 5000
