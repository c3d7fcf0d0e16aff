"""Public data: download of PrefLib files and of the SUSHI data from their publishers, and the SUSHI data itself."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import quote

import numpy as np

from rankernel._utils import IntArray
from rankernel._utils.checks import check_choice, check_path, check_text, printable
from rankernel.errors import RankingError, missing_extra
from rankernel.io.preflib import read_preflib
from rankernel.io.source import AnyPath, SourceFile, write_bytes
from rankernel.io.text_orders import read_numbers, read_sushi_ranks
from rankernel.rankings import FREE, Rankings, Unlisted, check_unlisted, dense_ranks

Which = Literal["a", "b"]

SUSHI_FOLDER = "sushi3-2016"
SUSHI_PAGE = "https://www.kamishima.net/sushi/"
ORDERS = {"a": "sushi3a.5000.10.order", "b": "sushi3b.5000.10.order"}
USERS, ITEMS = "sushi3.udata", "sushi3.idata"
SUSHI_FILES = (*ORDERS.values(), USERS, ITEMS)

# Numbers of the ten items of set A in the list of all hundred items.
SET_A = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)
USER_COLUMNS = (
    "id",
    "gender",
    "age",
    "seconds",
    "prefecture_until_15",
    "region_until_15",
    "east_west_until_15",
    "prefecture",
    "region",
    "east_west",
    "moved",
)

DATA_VARIABLE = "RANKERNEL_DATA"

SUSHI_URL = "https://www.kamishima.net/asset/sushi3-2016.zip"
PREFLIB_URLS = (
    "https://raw.githubusercontent.com/PrefLib/PrefLib-Data/main/datasets/{number} - {series}/{name}",
    "https://www.preflib.org/static/data/{series}/{name}",
)
PREFLIB_NAME = re.compile(r"([0-9]{5})-[0-9]{8}\.(?:soc|soi|toc|toi|cat)")
# Short names of the series, which are folders of the collection, in the order of their numbers from 00001.
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


# ---------------------------------------------------------------------- download


def fetch_preflib(name: str, *, sha256: str | None = None, url: str | None = None) -> Path:
    """Return the path of a PrefLib file, downloaded from the public collection if necessary.

    The file is searched in the folder ``preflib`` under the environment variable ``RANKERNEL_DATA``, then in the cache
    of this package, and then downloaded. Read it with ``read_preflib``.

    Parameters
    ----------
    name : str
        Its name in the collection, such as "00001-00000001.soi".
    sha256 : str, optional
        Expected checksum of the file. The checksums of some files are built in; any other file must be a valid PrefLib
        file.
    url : str, optional
        URL to download it from instead of the public collection.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> fetch_preflib("dublin.soi")
    Traceback (most recent call last):
    rankernel.errors.RankingError: name='dublin.soi' is not the name of a PrefLib file, such as '00001-00000001.soi'
    """
    match = PREFLIB_NAME.fullmatch(check_text("name", name))
    if not match:
        raise RankingError(f"name={printable(name)!r} is not the name of a PrefLib file, such as '00001-00000001.soi'")
    check_optional_texts(sha256=sha256, url=url)
    local, expected = local_path(Path("preflib", name)), sha256 or PREFLIB_SHA256.get(name)
    if local is not None:
        check_sha256(local, expected)
        return local
    number = match.group(1)
    series = SERIES.get(int(number))
    if url is None and series is None:
        raise RankingError(
            f"name={name!r}: series {number} of PrefLib is unknown (the last known one is {max(SERIES):05d}); give the "
            "url of the file"
        )
    known = [quote(each.format(number=number, series=series, name=name), safe=":/") for each in PREFLIB_URLS]
    path = download(known if url is None else [url], expected, Path("preflib", name))
    if expected is None:
        try:
            read_preflib(path)
        except RankingError as error:  # it is, for example, an error page
            path.unlink()
            raise RankingError(f"the downloaded file is not a PrefLib file ({error})") from None
    return path


def fetch_sushi(*, sha256: str | None = None, url: str | None = None) -> Path:
    """Return the folder of the SUSHI data, downloaded from its author's page if necessary.

    The folder ``sushi3-2016`` is searched under the environment variable ``RANKERNEL_DATA``, then in the cache of this
    package, and then downloaded. Read it with ``load_sushi``. The data is free for research and must not be
    redistributed; see https://www.kamishima.net/sushi/. The checksums of its files are built in.

    Parameters
    ----------
    sha256 : str, optional
        Expected checksum of the archive.
    url : str, optional
        URL to download the archive from instead of its author's page.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> sushi = load_sushi(fetch_sushi())  # doctest: +SKIP
    """
    check_optional_texts(sha256=sha256, url=url)
    local = local_path(Path(SUSHI_FOLDER))
    if local is not None and is_complete(local):
        check_sushi(local)
        return local
    folder = cache_folder() / SUSHI_FOLDER
    if is_complete(folder):
        check_sushi(folder)
    else:
        archive = download([url or SUSHI_URL], sha256, Path(f"{SUSHI_FOLDER}.zip"))
        unpack_sushi(archive, folder)
    return folder


def check_optional_texts(**given: str | None) -> None:
    """Raise an error for values that are neither None nor a string."""
    for name, value in given.items():
        if value is not None:
            check_text(name, value)


def local_path(path: Path) -> Path | None:
    """Return the path of a file or folder under RANKERNEL_DATA, None if it does not exist."""
    root = os.environ.get(DATA_VARIABLE)
    found = Path(root, path) if root else None
    return found if found is not None and found.exists() else None


def is_complete(folder: Path) -> bool:
    """Whether a folder holds all files of the SUSHI data."""
    return all((folder / name).is_file() for name in SUSHI_FILES)


def cache_folder() -> Path:
    """Return the folder of downloaded files."""
    try:
        import pooch
    except ImportError:
        raise missing_extra("pooch", "fetch") from None
    return Path(pooch.os_cache("rankernel"))


def download(urls: list[str], sha256: str | None, path: Path) -> Path:
    """Return a file of the cache, downloaded from the first URL that works."""
    target = cache_folder() / path
    import pooch

    known = None if sha256 is None else f"sha256:{sha256}"
    problems = []
    for url in urls:
        try:
            return Path(pooch.retrieve(url, known, fname=target.name, path=target.parent))
        except OSError as error:  # exceptions of requests are subclasses
            problems.append(f"{url}: {error}")
        except ValueError as error:
            if sha256 is None:
                raise RankingError(f"url={url!r} cannot be downloaded: {error}") from None
            raise RankingError(
                f"the file at {url} does not have the checksum sha256={sha256!r}; it was changed or damaged"
            ) from None
    raise ConnectionError(
        f"could not download {path.name}, which is not in the cache ({'; '.join(problems)}). Without a network, put it "
        f"into the folder of the environment variable {DATA_VARIABLE}: ${DATA_VARIABLE}/{path.as_posix()}"
    )


def check_sha256(path: Path, sha256: str | None) -> None:
    """Raise an error if a file does not have the expected checksum."""
    if sha256 is not None:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != sha256.lower():
            raise RankingError(f"{printable(path)} has the checksum sha256={found!r}; expected {sha256!r}")


def check_sushi(folder: Path) -> None:
    """Raise an error if files of the SUSHI data are not those of 2016; some may be missing."""
    for name, known in SUSHI_SHA256.items():
        if (folder / name).is_file():
            check_sha256(folder / name, known)


def unpack_sushi(archive: Path, folder: Path) -> None:
    """Extract the four files of the archive after checking each; an invalid archive is deleted."""
    try:
        with zipfile.ZipFile(archive) as members:
            files = {name: members.read(f"{SUSHI_FOLDER}/{name}") for name in SUSHI_FILES}
    except (zipfile.BadZipFile, KeyError) as error:
        archive.unlink()
        raise RankingError(f"the downloaded file is not the archive of the SUSHI data ({error})") from None
    for name, raw in files.items():
        if hashlib.sha256(raw).hexdigest() != SUSHI_SHA256[name]:
            archive.unlink()
            raise RankingError(f"{name} in the downloaded archive is not the file of 2016: its checksum differs")
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        write_bytes(folder / name, raw, overwrite=True)


# ---------------------------------------------------------------------- the SUSHI data


@dataclass(frozen=True, eq=False)
class SushiData:
    """The SUSHI data of T. Kamishima: 5,000 people, their rankings of ten kinds of sushi, and user attributes.

    Attributes
    ----------
    rankings : Rankings
        One row per user; the items are named as in the data.
    users : dict of arrays
        ``id``; ``gender`` (0 male, 1 female); ``age`` (group, 0: 15-19, 1: 20-29, ..., 5: 60 and older); ``seconds``
        (time taken); ``prefecture``, ``region`` (0-11) and ``east_west`` (0 east, 1 west) of where the user lives now,
        and the same three with ``_until_15`` for where the user lived longest until the age of 15; ``moved`` (0 or 1:
        the two prefectures differ).
    """

    rankings: Rankings
    users: dict[str, IntArray]

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items."""
        return self.rankings.items


def load_sushi(path: AnyPath, *, which: Which = "a", unlisted: Unlisted = "free") -> SushiData:
    """Read the SUSHI data from the folder of its files, or from its parent folder.

    The data must not be redistributed and is not part of this package: it is free for research from the author's page,
    https://www.kamishima.net/sushi/, and ``fetch_sushi`` downloads it.

    Parameters
    ----------
    path : path
        The folder ``sushi3-2016``, or one that contains it.
    which : {"a", "b"}
        Set a: every user ranks the same 10 items. Set b: every user ranks 10 out of 100.
    unlisted : {"last", "free"}
        Whether the 90 items that a user of set b did not rank are last or free. The users were shown only the other
        10, so the default is "free". Set a lists all its items.

    Returns
    -------
    SushiData
        Rankings and users.

    Examples
    --------
    >>> load_sushi("no-such-folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FileNotFoundError: no-such-folder does not hold the SUSHI data (missing: sushi3a.5000.10.order, ...
    """
    check_choice("which", which, get_args(Which))
    check_unlisted(unlisted)
    folder = sushi_folder(check_path("path", path), which)
    names = read_items(SourceFile(folder / ITEMS))
    items = tuple(names[number] for number in SET_A) if which == "a" else names
    orders = read_sushi_ranks(SourceFile(folder / ORDERS[which]), len(items))
    users = read_users(SourceFile(folder / USERS))
    if len(users["id"]) != len(orders):
        problem = f"there are {len(users['id'])} users but {len(orders)} orders"
        raise SourceFile(folder / USERS).error(None, problem)
    return SushiData(Rankings._trusted(dense_ranks(orders, orders != FREE, unlisted), items), users)


def sushi_folder(path: Path, which: Which) -> Path:
    """Return the folder of the files."""
    needed = (ORDERS[which], USERS, ITEMS)
    for folder in (path, path / SUSHI_FOLDER):
        if all((folder / name).is_file() for name in needed):
            return folder
    missing = ", ".join(name for name in needed if not (path / name).is_file())
    raise FileNotFoundError(
        f"{printable(path)} does not hold the SUSHI data (missing: {missing}); it is available for "
        f"research at {SUSHI_PAGE}: extract {SUSHI_FOLDER}.zip there, or use rankernel.fetch_sushi()"
    )


def read_users(source: SourceFile) -> dict[str, IntArray]:
    """Return the attributes of the users, column by column."""
    rows = read_numbers(source)
    for line, numbers in rows:
        if len(numbers) != len(USER_COLUMNS):
            raise source.error(line, f"expected {len(USER_COLUMNS)} numbers about a user; got {len(numbers)}")
    table = np.array([numbers for _, numbers in rows], dtype=np.int64)
    table.flags.writeable = False
    return dict(zip(USER_COLUMNS, table.T, strict=True))


def read_items(source: SourceFile) -> tuple[str, ...]:
    """Return the names of the hundred items in the order of their numbers."""
    rows = [line.split("\t") for line in source.text.splitlines() if line.strip()]
    for number, cells in enumerate(rows):
        if cells[0].strip() != str(number) or len(cells) < 2:
            raise source.error(number + 1, f"expected item {number}, its name and more, between tabs")
    if len(rows) <= max(SET_A):
        raise source.error(None, f"there are {len(rows)} items, instead of a hundred")
    return source.item_names(cells[1].strip() for cells in rows)
