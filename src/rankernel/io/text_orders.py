"""Lines of text with one order or one ranked item each: orders such as ``3: a > b = c``, TREC runs, sushi orders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from rankernel.errors import RankingError
from rankernel.io.cells import table_of
from rankernel.io.source import FileSource, SourceFile, accepts, quoted
from rankernel.io.tables import orders_rankings
from rankernel.order_tables import long_ranks
from rankernel.rankings import Rankings

COUNTED = re.compile(r"\s*([0-9]{1,15})\s*[:*]\s*(.*)")
SUSHI = re.compile(r"\s*[0-9]+ 1\s*\n0 [0-9]+(?: [0-9]+)+\s*$", re.MULTILINE)
NUMBER = r"[+-]?[0-9.]{1,40}(?:[eE][+-]?[0-9]{1,3})?"
RUN = re.compile(rf"(\S+)\s+Q0\s+(\S+)\s+([0-9]{{1,9}})\s+({NUMBER})\s+(\S.*)", re.IGNORECASE)
JUDGEMENT = re.compile(r"(\S+)\s+\S+\s+(\S+)\s+(-?[0-9]{1,9})")


def is_orders(text: str) -> bool:
    """Whether the first line that is not a comment is an order such as ``3: a > b``, or a sushi file begins."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "{"))]
    return bool(lines) and ((">" in lines[0] and not re.search("[,;\\t|]", lines[0])) or is_sushi(text))


def is_sushi(text: str) -> bool:
    """Whether a text is an ``.order`` file of the SUSHI data: ``10 1``, then lines such as ``0 10 5 0 3 ...``."""
    return bool(SUSHI.match(text))


def is_trec(text: str) -> bool:
    """Whether the first line is that of a TREC run (``query Q0 document rank score system``)."""
    return bool(RUN.fullmatch(text.lstrip().split("\n", 1)[0].strip()))


@accepts(
    "items", "unlisted", "repeated", "write_ins", "aliases", "na_values", "fold_case", "blank", "encoding", "max_bytes"
)
def read_text_orders(path: Any, **keywords: Any) -> Rankings:
    """Read a text with one order per line: ``tea > milk = juice``, ``3: A>B>C`` (ABIF), or a sushi ``.order`` file.

    Parameters
    ----------
    path : path or file object
        The file.
    {options}

    Returns
    -------
    Rankings
        One row per line, with its count. Items that a line of a sushi file does not list are free.
    """
    source = SourceFile.of(path, read_text_orders, keywords)
    lines = [(number, line.strip()) for number, line in enumerate(source.text.splitlines(), start=1) if line.strip()]
    if is_sushi(source.text):
        n_items = int(lines[0][1].split()[0])
        orders = [(line, " > ".join(text.split()[2:])) for line, text in lines[1:]]
        items = source.options.items or tuple(map(str, range(n_items)))
        source = source.with_options(items=items, unlisted=source.options.unlisted or "free")
        rows: Iterable[tuple[int, list[str]]] = [(line, [text, "1"]) for line, text in orders]
    else:
        chosen = [(line, text) for line, text in lines if not text.startswith(("#", "{", "="))]
        matches = [(line, COUNTED.fullmatch(text), text) for line, text in chosen]
        rows = [(line, [match[2], match[1]] if match else [text, "1"]) for line, match, text in matches]
    table = table_of([(1, ["order", "count"]), *rows], source.with_options(header=True))
    return orders_rankings(table)


@accepts("items", "unlisted", "encoding", "max_bytes")
def read_trec(path: Any, **keywords: Any) -> Rankings:
    """Read TREC runs (``query Q0 document rank score system``) or relevance judgements (``query 0 document grade``).

    Parameters
    ----------
    path : path, file object, or list of paths
        The file, or several runs.
    {options}

    Returns
    -------
    Rankings
        One ranking for each query and system, by decreasing score, with the labels ``query`` and ``system``. Documents
        that are not retrieved are free unless ``unlisted="last"`` is given.
    """
    sources = [SourceFile.of(each, read_trec, keywords) for each in (path if isinstance(path, list) else [path])]
    users, documents, values = [], [], []
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), start=1):
            text = line.strip()
            run = RUN.fullmatch(text)
            judgement = None if run else JUDGEMENT.fullmatch(text)
            if not text:
                continue
            if run:
                users.append((run[1], run[5].strip()))
                documents.append(run[2])
                values.append((-float(run[4]), int(run[3])))
            elif judgement:
                users.append((judgement[1], "judgements"))
                documents.append(judgement[2])
                values.append((-float(judgement[3]), 0))
            else:
                raise source.error(number, f"{quoted(text)} is neither a line of a run nor of judgements")
    source = sources[0]
    keys = ["\x1f".join(user) for user in users]
    try:
        ranks, names, items, _ = long_ranks(
            keys,
            documents,
            np.array([score for score, _ in values]),
            source.options.items,
            source.options.unlisted or "free",
            source.check_table_size,
        )
    except RankingError as error:
        raise source.restate(error) from None
    parts = np.array([name.split("\x1f") for name in names], dtype=np.str_).reshape(-1, 2)
    return Rankings._trusted(ranks, items, None, {"query": parts[:, 0], "system": parts[:, 1]}, FileSource("TREC"))
