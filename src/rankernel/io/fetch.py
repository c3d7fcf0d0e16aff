"""Fetch public data once and keep it: PrefLib files and the SUSHI data, each from where its authors give it out."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rankernel._utils import checks
from rankernel._utils.checks import printable
from rankernel.errors import RankingError, missing_extra
from rankernel.io.files import write_bytes
from rankernel.io.preflib import read_preflib
from rankernel.io.sushi import SUSHI_FILES, SUSHI_FOLDER

DATA_VARIABLE = "RANKERNEL_DATA"

SUSHI_URL = "https://www.kamishima.net/asset/sushi3-2016.zip"
PREFLIB_URLS = (
    "https://raw.githubusercontent.com/PrefLib/PrefLib-Data/main/datasets/{number} - {series}/{name}",
    "https://www.preflib.org/static/data/{series}/{name}",
)
PREFLIB_NAME = re.compile(r"([0-9]{5})-[0-9]{8}\.(?:soc|soi|toc|toi|cat)")
# The short names of the series, which are folders in the collection, in the order of their numbers from 00001.
SERIES_NAMES = """
irish debian nasa netflix burlington skate ers glasgow agh ski web shirt social sushi cleanweb aspen berkley minneapolis
oakland pierce sf sl takomapark dots puzzle frenchapproval frenchrate apa frenchratecombi uklabor vermont education
poster cities breakfast kidney aamas project csconf trip boardgames boxing cycling tabletennis tennis university
spotifyday spotifycountry mylaps movehub countries f1seasons f1races weeksport combinedsport seasonsport parliaments
nswla campsongs polkadot
"""
SERIES = dict(enumerate(SERIES_NAMES.split(), start=1))
PREFLIB_SHA256 = {
    "00001-00000001.soi": "2893eaa73ef003d245d7b62a6b521690b8e33e3a35fce61e6d2218c5b24236e3",
    "00001-00000001.toc": "1f0cc06bce946297d473429be66cbc36ed494221c91d290662740436bd832344",
    "00002-00000001.soi": "11cbab2047f8d7327aa5cbe67ee10dfd72f0b51f4943626072cc5336462e841c",
    "00005-00000001.toi": "4c263a9f06c453919421604bafa8c4c7d2e615f14c980ed7de2d90daad1b66ab",
    "00006-00000001.toc": "ecfbcaa7998e5f6050494ccd9d1904cc9576fed86d1ca8fb709eb0e14e36dd34",
    "00008-00000001.soi": "613c07fba5c8af5f10acb3ce073f6f25c376425280b790340960e671e3c8cb78",
    "00008-00000002.soi": "ec5679769e6edd33ce87e61a7e81a5dd6866ef2623b7c1d6f6024a39fe214e4d",
    "00011-00000001.soc": "c550c51be8b30062cb80c9bd62d352be9c1c2a8a0bd1c05cb8643af782e7b035",
    "00011-00000004.soi": "22c67c3d8fcfbc9252a61c1ae9a10832b05dd43c468e686bf3f3a04b5929f949",
    "00021-00000001.toi": "584c91d31c05625d74a8707dbb91dc86972aed60e5ba78b64d4f86160fbe73ef",
    "00026-00000001.cat": "70c2cc2c928e5f6c05ac562e0760dbee20bc0ed422600e603dbc64fcf24f34fc",
    "00026-00000001.toc": "ffa8f17d18ddd8f1ee7404538ea4845a8fc00569faffdfbf58d122e8a2a528af",
    "00028-00000001.soi": "968a8d934b90480b565b79a7f2533f449f04eff0d6b999108b7b68bcec75a3e7",
    "00034-00000001.soi": "4099eae979a1d81cad5e7b8d2a4978c221a08e0060938618ea5f1c5dffb6bb89",
}
SUSHI_SHA256 = {
    "sushi3.idata": "568d73580f82a9ffba7ee1a3750506a0517c9ce904eec41559fe4ab573911fde",
    "sushi3.udata": "592d345613b6fbc1d7d126775eb5fb5628619e855c292166250f09651716eca2",
    "sushi3a.5000.10.order": "c56da325c0f58f9a38bafc650ed699b48dd2fb9f6ad64ba61ffc288d1ae4cc24",
    "sushi3b.5000.10.order": "a241c87331e4eabea5841aae0c8a982453cccd01b0a0f3b6a4e9cfabcdab563b",
}


def fetch_preflib(name: str, sha256: str | None = None, url: str | None = None) -> Path:
    """Return the path of a PrefLib file, fetched from the public collection if it is not at hand.

    The file is looked for in the folder ``preflib`` under the environment variable ``RANKERNEL_DATA``, then in the
    cache of this package, then on the network. Read it with ``read_preflib``.

    Parameters
    ----------
    name : str
        Its name in the collection, such as "00001-00000001.soi".
    sha256 : str, optional
        The checksum that the file must have. A number of files have theirs built in; any other is taken if it is a
        sound PrefLib file.
    url : str, optional
        Where to fetch it from, if not from the public collection.

    Examples
    --------
    >>> fetch_preflib("dublin.soi")
    Traceback (most recent call last):
    rankernel.errors.RankingError: 'dublin.soi' is not the name of a PrefLib file, such as '00001-00000001.soi'
    """
    match = PREFLIB_NAME.fullmatch(checks.check_text("name", name))
    if not match:
        raise RankingError(f"{printable(name)!r} is not the name of a PrefLib file, such as '00001-00000001.soi'")
    check_texts(sha256=sha256, url=url)
    at_hand, wanted = local(Path("preflib", name)), sha256 or PREFLIB_SHA256.get(name)
    if at_hand is not None:
        check_sha256(at_hand, wanted)
        return at_hand
    path = retrieved(preflib_urls(name, match.group(1), url), wanted, Path("preflib", name))
    if wanted is None:
        check_sound(path)
    return path


def fetch_sushi(sha256: str | None = None, url: str | None = None) -> Path:
    """Return the folder of the SUSHI data, fetched from its author's page if it is not at hand.

    The folder ``sushi3-2016`` is looked for under the environment variable ``RANKERNEL_DATA``, then in the cache of
    this package, then on the network. Read it with ``load_sushi``. The data is free for research and must not be
    passed on; see https://www.kamishima.net/sushi/. The checksums of the files in the archive are built in.

    Parameters
    ----------
    sha256 : str, optional
        The checksum that the archive must have.
    url : str, optional
        Where to fetch the archive from, if not from its author.
    """
    check_texts(sha256=sha256, url=url)
    at_hand = local(Path(SUSHI_FOLDER))
    if at_hand is not None and complete(at_hand):
        check_sushi(at_hand)
        return at_hand
    folder = cache() / SUSHI_FOLDER
    if complete(folder):
        check_sushi(folder)
    else:
        archive = retrieved([url or SUSHI_URL], sha256, Path(f"{SUSHI_FOLDER}.zip"))
        unpack_sushi(archive, folder)
    return folder


def check_texts(**given: str | None) -> None:
    """Refuse what is neither left out nor a text."""
    for name, value in given.items():
        if value is not None:
            checks.check_text(name, value)


def local(path: Path) -> Path | None:
    """Return where a file or folder is under RANKERNEL_DATA, if it is."""
    root = os.environ.get(DATA_VARIABLE)
    found = Path(root, path) if root else None
    return found if found is not None and found.exists() else None


def complete(folder: Path) -> bool:
    """Say whether a folder holds all files of the SUSHI data."""
    return all((folder / name).is_file() for name in SUSHI_FILES)


def preflib_urls(name: str, number: str, url: str | None) -> list[str]:
    """Return the addresses at which a file may be had."""
    if url is not None:
        return [url]
    series = SERIES.get(int(number))
    if series is None:
        raise RankingError(
            f"series {number} of PrefLib is not known here (the last is {max(SERIES):05d}); give the address of the "
            "file: fetch_preflib(name, url=...)"
        )
    return [quote(url.format(number=number, series=series, name=name), safe=":/") for url in PREFLIB_URLS]


def pooch_module() -> Any:
    """Return pooch, or say how to install it."""
    try:
        import pooch
    except ImportError:
        raise missing_extra("pooch", "fetch") from None
    return pooch


def cache() -> Path:
    """Return the folder in which fetched files are kept."""
    return Path(pooch_module().os_cache("rankernel"))


def retrieved(urls: list[str], sha256: str | None, place: Path) -> Path:
    """Return a file of the cache, fetched from the first address that gives it."""
    pooch = pooch_module()
    target = cache() / place
    known = None if sha256 is None else f"sha256:{sha256}"
    problems = []
    for url in urls:
        try:
            return Path(pooch.retrieve(url, known, fname=target.name, path=target.parent))
        except OSError as error:  # requests raises its own kinds of it
            problems.append(f"{url}: {error}")
        except ValueError as error:
            if sha256 is None:
                raise RankingError(f"{url} cannot be fetched: {error}") from None
            raise RankingError(
                f"what {url} gives has not the checksum sha256:{sha256}; the file was changed, there or on the way"
            ) from None
    raise ConnectionError(
        f"could not fetch {place.name}, and it is not in the cache ({'; '.join(problems)}). Without a network, put it "
        f"where the environment variable {DATA_VARIABLE} points: ${DATA_VARIABLE}/{place.as_posix()}"
    )


def check_sha256(path: Path, sha256: str | None) -> None:
    """Refuse a file that has not the checksum asked for."""
    if sha256 is not None:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != sha256.lower():
            raise RankingError(f"{printable(path)} has the checksum sha256:{found}, not sha256:{sha256}")


def check_sound(path: Path) -> None:
    """Refuse, and forget, what was fetched without a known checksum and is no PrefLib file, such as an error page."""
    try:
        read_preflib(path)
    except RankingError as error:
        path.unlink()
        raise RankingError(f"what was fetched is not a PrefLib file ({error})") from None


def check_sushi(folder: Path) -> None:
    """Refuse files of the SUSHI data that are not those of 2016; some may be missing."""
    for name, known in SUSHI_SHA256.items():
        if (folder / name).is_file():
            check_sha256(folder / name, known)


def unpack_sushi(archive: Path, folder: Path) -> None:
    """Take the four files out of the archive, after checking each; a bad archive is forgotten."""
    try:
        with zipfile.ZipFile(archive) as members:
            files = {name: members.read(f"{SUSHI_FOLDER}/{name}") for name in SUSHI_FILES}
    except (zipfile.BadZipFile, KeyError) as error:
        archive.unlink()
        raise RankingError(f"what was fetched is not the archive of the SUSHI data ({error})") from None
    for name, raw in files.items():
        if hashlib.sha256(raw).hexdigest() != SUSHI_SHA256[name]:
            archive.unlink()
            raise RankingError(f"{name} in the fetched archive is not the file of 2016: its checksum differs")
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        write_bytes(folder / name, raw, overwrite=True)
