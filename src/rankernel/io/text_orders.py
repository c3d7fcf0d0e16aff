"""Lines of text with one order or one ranked item each: orders such as ``3: a > b = c``, TREC runs, sushi orders."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np

from rankernel._utils import RankArray
from rankernel.errors import RankingError, ReadingWarning, warn
from rankernel.io.cells import Row, split_rows, table_of
from rankernel.io.source import FileSource, SourceFile, accepts, quoted
from rankernel.io.tables import NUMBER, orders_rankings, table_rankings
from rankernel.order_tables import long_ranks
from rankernel.rankings import FREE, Rankings, dense_ranks

MAX_FACTOR = 10_000  # of fractional weights, which are multiplied to be integers
START = 20_000  # characters that decide about the format
COUNTED = re.compile(r"\s*([0-9]{1,15})\s*[:*]\s*(.*)")
SUSHI = re.compile(r"\s*[0-9]+ 1\s*\n0 [0-9]+(?: [0-9]+)+\s*$", re.MULTILINE)
RUN = re.compile(rf"(\S+)\s+Q0\s+(\S+)\s+[0-9]{{1,9}}\s+({NUMBER.pattern})\s+(\S.*)", re.IGNORECASE)
JUDGEMENT = re.compile(r"(\S+)\s+\S+\s+(\S+)\s+(-?[0-9]{1,9})")


def is_orders(text: str) -> bool:
    """Whether a text is of this format: its first line that is not a comment is an order such as ``3: a > b``."""
    if is_votekit(text) or is_sushi(text):
        return True
    lines = [line for line in text[:START].splitlines() if line.strip() and not line.lstrip().startswith(("#", "{"))]
    return bool(lines) and ">" in lines[0] and not re.search("[,;\\t|]", lines[0])


def is_votekit(text: str) -> bool:
    """Whether a text is a profile saved by VoteKit."""
    return bool(re.match(r"VoteKit (?:Rank|Score|Preference)Profile\b", text))


def is_sushi(text: str) -> bool:
    """Whether a text is an ``.order`` file of the SUSHI data: ``10 1``, then lines such as ``0 10 5 0 3 ...``."""
    return bool(SUSHI.match(text))


def is_trec(text: str) -> bool:
    """Whether the first line is that of a TREC run (``query Q0 document rank score system``)."""
    return bool(RUN.fullmatch(text[:START].lstrip().split("\n", 1)[0].strip()))


@accepts(
    "items", "unlisted", "repeated", "write_ins", "aliases", "na_values", "fold_case", "blank", "encoding", "max_bytes"
)
def read_text_orders(path: Any, **keywords: Any) -> Rankings:
    """Read a text with one order per line: ``tea > milk = juice``, ``3: A>B>C`` (ABIF), SUSHI data, VoteKit profiles.

    Profiles of scores are read as well. Counts are integers, so fractional weights of a profile are multiplied by the
    smallest number that makes them integers, with a warning.

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
    if is_sushi(source.text):
        items = source.options.items or tuple(map(str, range(int(source.text.split(maxsplit=1)[0]))))
        ranks = read_sushi_ranks(source, len(items))
        ranks = dense_ranks(ranks, ranks != FREE, source.options.unlisted or "free")
        return Rankings._trusted(ranks, items, source=FileSource("orders of the SUSHI data"))
    rows: list[Row]
    lines = [(number, line.strip()) for number, line in enumerate(source.text.splitlines(), start=1) if line.strip()]
    if is_votekit(source.text):
        items, rows = votekit_rows(source)
        source = source.with_options(items=source.options.items or items)
        if source.text.startswith("VoteKit ScoreProfile"):
            table = table_of([(1, [*items, "Weight"]), *rows], source.with_options(header=True, count="Weight"))
            return table_rankings(table, "scores")
    else:
        chosen = [(line, text) for line, text in lines if not text.startswith(("#", "{", "="))]
        matches = [(line, COUNTED.fullmatch(text), text) for line, text in chosen]
        rows = [(line, [match[2], match[1]] if match else [text, "1"]) for line, match, text in matches]
    table = table_of([(1, ["order", "count"]), *rows], source.with_options(header=True))
    return orders_rankings(table)


def read_sushi_ranks(source: SourceFile, n_items: int) -> RankArray:
    """Return ranks, -1 for items that are not listed; lines are ``0 10`` and then ten items, best first."""
    rows = read_numbers(source)
    first_line, head = rows[0]
    if head[:1] != [n_items]:
        raise source.error(first_line, f"expected a line that begins with the number of items, {n_items}; got {head}")
    ranks = np.full((len(rows) - 1, n_items), FREE, dtype=np.int32)
    for row, (line, numbers) in enumerate(rows[1:]):
        listed = numbers[2:]
        if len(numbers) < 3 or numbers[1] != len(listed):
            raise source.error(line, f"expected 0, the length of the order, and that many items; got {numbers}")
        if len(set(listed)) != len(listed) or not 0 <= min(listed) <= max(listed) < n_items:
            raise source.error(line, f"an order names items from 0 to {n_items - 1}, each at most once; got {listed}")
        ranks[row, listed] = range(len(listed))
    return ranks


def read_numbers(source: SourceFile) -> list[tuple[int, list[int]]]:
    """Return the line number and the integers of each line that is not empty; an empty file is an error."""
    rows = []
    for line, text in enumerate(source.text.splitlines(), start=1):
        try:
            numbers = [int(word) for word in text.split()]
        except ValueError:
            raise source.error(line, f"expected integers; got {quoted(text)}") from None
        if numbers:
            rows.append((line, numbers))
    if not rows:
        raise source.error(1, "the file is empty")
    return rows


def votekit_rows(source: SourceFile) -> tuple[tuple[str, ...], list[Row]]:
    """Return the candidates of a profile saved by VoteKit, and its ballots as orders with counts."""
    rows = list(split_rows(source.text, ",", source))
    heads = [index for index, (_, cells) in enumerate(rows) if "Weight" in cells]
    names = {}
    for candidate in re.findall(r"\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)", source.text.split("\n", 3)[2]):
        name, *_, code = candidate.split(":")
        names[code] = name
    if not heads or not names:
        raise source.error(1, "the profile of VoteKit has no candidates, or no column Weight")
    columns = rows[heads[0]][1]
    found: list[Row] = []
    ballots = rows[heads[0] + 1 :]
    weights = integer_weights([cells[columns.index("Weight") :][:1] for _, cells in ballots], source)
    for (line, cells), weight in zip(ballots, weights, strict=True):
        record = dict(zip(columns, cells, strict=False))
        if "Ranking_1" not in record:  # VoteKit writes 0 for candidates without a score
            found.append((line, [*("" if float(cell or 0) == 0 else cell for cell in cells[: len(names)]), weight]))
            continue
        codes = [re.findall("'([^']*)'", cell) for name, cell in record.items() if name.startswith("Ranking_")]
        ties = [[names.get(code, code) for code in tie if code != "~"] for tie in codes]
        found.append((line, [" > ".join(" = ".join(tie) for tie in ties if tie), weight]))
    return tuple(names.values()), found


def integer_weights(cells: list[list[str]], source: SourceFile) -> list[str]:
    """Return weights as integers in the same proportions."""
    try:
        weights = [Fraction(cell[0]) for cell in cells]
    except (IndexError, ValueError, ZeroDivisionError):
        raise source.error(None, "a ballot of the profile has no weight that is a number") from None
    factor = math.lcm(*(weight.denominator for weight in weights))
    if factor > MAX_FACTOR:
        raise source.error(None, f"the weights are not multiples of 1/{MAX_FACTOR:,}, so they cannot become counts")
    if factor > 1:
        problem = f"{source.name}: weights are fractions and counts are integers, so all are multiplied by {factor}"
        warn(f"{problem}; standard errors and p-values take them for as many voters", ReadingWarning)
    return [str(weight * factor) for weight in weights]


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
    paths = path if isinstance(path, list) and path else [path]
    sources = [SourceFile.of(each, read_trec, keywords) for each in paths]
    users, documents, values = [], [], []
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), start=1):
            text = line.strip()
            run = RUN.fullmatch(text)
            judgement = None if run else JUDGEMENT.fullmatch(text)
            if not text:
                continue
            if run:
                users.append((run[1], run[4].strip()))
                documents.append(run[2])
                values.append(-float(run[3]))
            elif judgement:
                users.append((judgement[1], "judgements"))
                documents.append(judgement[2])
                values.append(-float(judgement[3]))
            else:
                raise source.error(number, f"{quoted(text)} is neither a line of a run nor of judgements")
    source = sources[0]
    keys = ["\x1f".join(user) for user in users]
    try:
        ranks, names, items, _ = long_ranks(
            keys,
            documents,
            np.array(values),
            source.options.items,
            source.options.unlisted or "free",
            source.check_table_size,
        )
    except RankingError as error:
        raise source.restate(error) from None
    parts = np.array([name.split("\x1f") for name in names], dtype=np.str_).reshape(-1, 2)
    return Rankings._trusted(ranks, items, None, {"query": parts[:, 0], "system": parts[:, 1]}, FileSource("TREC"))
